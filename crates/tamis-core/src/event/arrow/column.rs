//! One column of a batch, read row by row as the values of an attribute.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::types::ArrowPrimitiveType;
use arrow_array::{BooleanArray, LargeStringArray, StringArray, StringViewArray, types::Float16Type};

use super::arrays::Arrays;
use super::place::Place;
use crate::event::value::Kind;
use crate::event::{Value, ValueRef};
use crate::prefetch::prefetch;

pub(super) const MICROS_PER_DAY: i64 = 86_400_000_000;

/// The values of one attribute over the rows of a batch.
pub struct ColumnView<'b> {
    pub(super) place: Place,
    pub(super) data: Data<'b>,
}

/// The elements of a column. The last variants are built when the batch is opened, one element a
/// row; all others read the batch's own memory.
pub(super) enum Data<'b> {
    Bool(&'b BooleanArray),
    Int8(&'b [i8]),
    Int16(&'b [i16]),
    Int32(&'b [i32]),
    Int64(&'b [i64]),
    UInt8(&'b [u8]),
    UInt16(&'b [u16]),
    UInt32(&'b [u32]),
    /// Those above 2^63 - 1 are absent.
    UInt64(&'b [u64]),
    Float16(&'b [<Float16Type as ArrowPrimitiveType>::Native]),
    Float32(&'b [f32]),
    Float64(&'b [f64]),
    Utf8(&'b StringArray),
    LargeUtf8(&'b LargeStringArray),
    Utf8View(&'b StringViewArray),
    /// This many microseconds each; those that do not fit are absent.
    Timestamp(&'b [i64], i64),
    TimestampNanos(&'b [i64]),
    /// Days; those that do not fit are absent.
    Date(&'b [i32]),
    Record,
    /// The same in all rows.
    Same(ValueRef<'b>),
    /// Numbers.
    Decimals(Cow<'b, [Value]>),
    /// Values that were made of others, those of a computed term among them; null where there is none.
    Computed(Cow<'b, [Value]>),
    Arrays(Arc<Arrays<'b>>),
    Intervals(Vec<Option<Value>>),
}

impl Data<'_> {
    /// The same elements, without a copy; `None` for intervals.
    pub fn borrowed(&self) -> Option<Data<'_>> {
        Some(match self {
            Data::Bool(array) => Data::Bool(array),
            Data::Int8(values) => Data::Int8(values),
            Data::Int16(values) => Data::Int16(values),
            Data::Int32(values) => Data::Int32(values),
            Data::Int64(values) => Data::Int64(values),
            Data::UInt8(values) => Data::UInt8(values),
            Data::UInt16(values) => Data::UInt16(values),
            Data::UInt32(values) => Data::UInt32(values),
            Data::UInt64(values) => Data::UInt64(values),
            Data::Float16(values) => Data::Float16(values),
            Data::Float32(values) => Data::Float32(values),
            Data::Float64(values) => Data::Float64(values),
            Data::Utf8(array) => Data::Utf8(array),
            Data::LargeUtf8(array) => Data::LargeUtf8(array),
            Data::Utf8View(array) => Data::Utf8View(array),
            Data::Timestamp(values, micros) => Data::Timestamp(values, *micros),
            Data::TimestampNanos(values) => Data::TimestampNanos(values),
            Data::Date(days) => Data::Date(days),
            Data::Record => Data::Record,
            Data::Same(value) => Data::Same(*value),
            Data::Decimals(values) => Data::Decimals(Cow::Borrowed(values)),
            Data::Computed(values) => Data::Computed(Cow::Borrowed(values)),
            Data::Arrays(arrays) => Data::Arrays(arrays.clone()),
            Data::Intervals(_) => return None,
        })
    }
}

/// Is shown the values of a column. A trait, since a closure would be compiled once for all types of columns:
/// an implementation that is always inlined becomes a loop of its own for each.
pub trait See<'s> {
    fn value(&mut self, row: usize, value: ValueRef<'s>);
}

impl<'b> ColumnView<'b> {
    /// The values of a computed term, one a row, null where it is undefined.
    pub(super) fn computed(values: Vec<Value>) -> Self {
        Self { place: Place::same(values.len()), data: Data::Computed(values.into()) }
    }

    /// The values of another column, each replaced by what it becomes.
    pub(super) fn mapped(&self, convert: impl Fn(ValueRef<'_>) -> Value) -> Self {
        Self::computed((0..self.len()).map(|row| self.value(row).map_or(Value::Null, &convert)).collect())
    }

    /// The same value in all rows.
    pub(super) fn same(value: ValueRef<'b>, rows: usize) -> Self {
        Self { place: Place::same(rows), data: Data::Same(value) }
    }

    /// The value in a row of the batch, or `None` when it is absent. Panics when there is no such row.
    #[inline]
    pub fn value(&self, row: usize) -> Option<ValueRef<'_>> {
        let at = self.place.element(row)?;
        Some(match &self.data {
            Data::Bool(array) => ValueRef::Bool(array.value(at)),
            Data::Int8(values) => ValueRef::Int(values[at] as i64),
            Data::Int16(values) => ValueRef::Int(values[at] as i64),
            Data::Int32(values) => ValueRef::Int(values[at] as i64),
            Data::Int64(values) => ValueRef::Int(values[at]),
            Data::UInt8(values) => ValueRef::Int(values[at] as i64),
            Data::UInt16(values) => ValueRef::Int(values[at] as i64),
            Data::UInt32(values) => ValueRef::Int(values[at] as i64),
            Data::UInt64(values) => ValueRef::Int(values[at] as i64),
            Data::Float16(values) => ValueRef::Float(values[at].to_f64()),
            Data::Float32(values) => ValueRef::Float(values[at] as f64),
            Data::Float64(values) => ValueRef::Float(values[at]),
            Data::Utf8(array) => ValueRef::Str(array.value(at)),
            Data::LargeUtf8(array) => ValueRef::Str(array.value(at)),
            Data::Utf8View(array) => ValueRef::Str(array.value(at)),
            Data::Timestamp(values, micros) => ValueRef::Timestamp(values[at] * micros),
            Data::TimestampNanos(values) => ValueRef::Timestamp(values[at].div_euclid(1000)),
            Data::Date(days) => ValueRef::Timestamp(days[at] as i64 * MICROS_PER_DAY),
            Data::Record => ValueRef::Record,
            Data::Same(value) => *value,
            Data::Decimals(values) => values[at].as_ref(),
            Data::Computed(values) => match values[at].as_ref() {
                ValueRef::Null => return None,
                value => value,
            },
            Data::Arrays(arrays) => ValueRef::Array(arrays.array(at)),
            Data::Intervals(intervals) => intervals[at].as_ref()?.as_ref(),
        })
    }

    /// Hands each of the rows that has a value to `see`, with the value, in order.
    #[inline]
    pub fn for_each<'s>(&'s self, rows: Range<usize>, see: &mut impl See<'s>) {
        // What a column is made of is asked once, and not for every row.
        let place = &self.place;
        match &self.data {
            Data::Int32(values) => {
                place.for_each(rows, |row, at| see.value(row, ValueRef::Int(values[at] as i64)))
            }
            Data::Int64(values) => place.for_each(rows, |row, at| see.value(row, ValueRef::Int(values[at]))),
            Data::Float64(values) => {
                place.for_each(rows, |row, at| see.value(row, ValueRef::Float(values[at])))
            }
            Data::Utf8(array) => {
                place.for_each(rows, |row, at| see.value(row, ValueRef::Str(array.value(at))))
            }
            _ => rows.for_each(|row| {
                if let Some(value) = self.value(row) {
                    see.value(row, value);
                }
            }),
        }
    }

    /// Fetches what [`for_each`](Self::for_each) will read of some rows, where that is scattered.
    pub fn fetch(&self, rows: Range<usize>) {
        let place = &self.place;
        match &self.data {
            Data::Int32(values) => place.fetch(rows, |at| prefetch(&values[at])),
            Data::Int64(values) | Data::Timestamp(values, _) | Data::TimestampNanos(values) => {
                place.fetch(rows, |at| prefetch(&values[at]))
            }
            Data::Float64(values) => place.fetch(rows, |at| prefetch(&values[at])),
            _ => {}
        }
    }

    /// Fetches what says which of the rows have a value.
    pub fn fetch_presence(&self, rows: Range<usize>) {
        self.place.fetch_presence(rows);
    }

    /// The kind of all its values, where they are of one kind by the column's type.
    pub fn kind(&self) -> Option<Kind> {
        Some(match &self.data {
            Data::Bool(_) => Kind::Bool,
            Data::Utf8(_) | Data::LargeUtf8(_) | Data::Utf8View(_) => Kind::Str,
            Data::Timestamp(..) | Data::TimestampNanos(_) | Data::Date(_) => Kind::Timestamp,
            Data::Record => Kind::Record,
            Data::Same(value) => return value.kind(),
            Data::Arrays(_) => Kind::Array,
            Data::Computed(_) | Data::Intervals(_) => return None,
            _ => Kind::Number,
        })
    }

    pub fn is_made_of_arrays(&self) -> bool {
        matches!(self.data, Data::Arrays(_))
    }

    /// Whether some value is a cell that was not read yet.
    pub(super) fn holds_cells(&self) -> bool {
        match &self.data {
            Data::Computed(values) => values.iter().any(|value| matches!(value, Value::Cell(_))),
            _ => false,
        }
    }

    pub fn is_made_of_intervals(&self) -> bool {
        matches!(self.data, Data::Intervals(_))
    }

    /// How many rows there are.
    pub fn len(&self) -> usize {
        self.place.len
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
