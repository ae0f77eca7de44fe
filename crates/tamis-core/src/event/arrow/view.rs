//! Turns a column into attribute values, by its Arrow type.

use std::collections::BTreeSet;

use arrow_array::cast::AsArray;
use arrow_array::types::*;
use arrow_array::{
    Array, FixedSizeListArray, GenericListArray, GenericListViewArray, OffsetSizeTrait, RunArray, StructArray,
};
use arrow_buffer::ArrowNativeType;
use arrow_schema::{DataType, TimeUnit};

use super::arrays::{Arrays, Elements, Records};
use super::column::{ColumnView, Data, MICROS_PER_DAY};
use super::place::Place;
use crate::event::error::EventError;
use crate::event::{Unreadable, Value};

const SUPPORTED: &str = "booleans, integers, floats, decimals, strings, timestamps, dates, lists of these, \
                         structs, maps with string keys, and dictionaries";

/// The rows of a column that hold what no value can.
#[derive(Default)]
pub(super) struct UnreadableRows {
    pub rows: BTreeSet<usize>,
    pub first: Option<EventError>,
}

impl UnreadableRows {
    fn add(&mut self, row: usize, error: impl FnOnce() -> EventError) {
        self.rows.insert(row);
        self.first.get_or_insert_with(error);
    }

    /// Of the elements of lists: counts the rows of their lists. Row `r` holds the elements from `offsets[r]` on.
    fn add_elements(&mut self, elements: UnreadableRows, offsets: &[usize]) {
        let row_of = |element: usize| offsets.partition_point(|offset| *offset <= element) - 1;
        self.rows.extend(elements.rows.into_iter().map(row_of));
        if let Some(mut error) = elements.first.filter(|_| self.first.is_none()) {
            error.row = error.row.map(row_of);
            self.first = Some(error);
        }
    }
}

impl From<UnreadableRows> for Unreadable {
    fn from(unreadable: UnreadableRows) -> Self {
        Self { count: unreadable.rows.len() as u64, first: unreadable.first }
    }
}

/// The view of one column; `None` when it is null in all rows because of its type.
pub(super) fn view<'x>(
    path: &str,
    array: &'x dyn Array,
    place: Place,
    unreadable: &mut UnreadableRows,
) -> Result<Option<ColumnView<'x>>, EventError> {
    if let Some((values, place)) = decoded(array, &place)? {
        return view(path, values, place, unreadable);
    }
    let mut place = place.without(array.nulls());
    let mut fitting = |target: &str, wrong: &dyn Fn(usize) -> Option<String>| {
        place = readable(path, &place, target, wrong, unreadable)?;
        Ok::<_, EventError>(())
    };
    let data = match array.data_type() {
        DataType::Null => return Ok(None),
        DataType::Boolean => Data::Bool(array.as_boolean()),
        DataType::Int8 => Data::Int8(array.as_primitive::<Int8Type>().values()),
        DataType::Int16 => Data::Int16(array.as_primitive::<Int16Type>().values()),
        DataType::Int32 => Data::Int32(array.as_primitive::<Int32Type>().values()),
        DataType::Int64 => Data::Int64(array.as_primitive::<Int64Type>().values()),
        DataType::UInt8 => Data::UInt8(array.as_primitive::<UInt8Type>().values()),
        DataType::UInt16 => Data::UInt16(array.as_primitive::<UInt16Type>().values()),
        DataType::UInt32 => Data::UInt32(array.as_primitive::<UInt32Type>().values()),
        DataType::UInt64 => {
            let values = array.as_primitive::<UInt64Type>().values();
            fitting("a signed 64-bit integer", &|at| {
                (values[at] > i64::MAX as u64).then(|| values[at].to_string())
            })?;
            Data::UInt64(values)
        }
        DataType::Float16 => Data::Float16(array.as_primitive::<Float16Type>().values()),
        DataType::Float32 => Data::Float32(array.as_primitive::<Float32Type>().values()),
        DataType::Float64 => Data::Float64(array.as_primitive::<Float64Type>().values()),
        DataType::Utf8 => Data::Utf8(array.as_string()),
        DataType::LargeUtf8 => Data::LargeUtf8(array.as_string()),
        DataType::Utf8View => Data::Utf8View(array.as_string_view()),
        DataType::Timestamp(TimeUnit::Second, _) => {
            timestamps(array.as_primitive::<TimestampSecondType>().values(), 1_000_000, fitting)?
        }
        DataType::Timestamp(TimeUnit::Millisecond, _) => {
            timestamps(array.as_primitive::<TimestampMillisecondType>().values(), 1000, fitting)?
        }
        DataType::Timestamp(TimeUnit::Microsecond, _) => {
            Data::Timestamp(array.as_primitive::<TimestampMicrosecondType>().values(), 1)
        }
        DataType::Timestamp(TimeUnit::Nanosecond, _) => {
            Data::TimestampNanos(array.as_primitive::<TimestampNanosecondType>().values())
        }
        DataType::Date32 => {
            let days = array.as_primitive::<Date32Type>().values();
            fitting("a timestamp", &|at| {
                let micros = (days[at] as i64).checked_mul(MICROS_PER_DAY);
                micros.is_none().then(|| format!("day {}", days[at]))
            })?;
            Data::Date(days)
        }
        DataType::Date64 => timestamps(array.as_primitive::<Date64Type>().values(), 1000, fitting)?,
        DataType::Decimal32(_, scale) => decimals::<Decimal32Type>(array, &place, *scale),
        DataType::Decimal64(_, scale) => decimals::<Decimal64Type>(array, &place, *scale),
        DataType::Decimal128(_, scale) => decimals::<Decimal128Type>(array, &place, *scale),
        DataType::Decimal256(_, scale) => decimals::<Decimal256Type>(array, &place, *scale),
        DataType::Struct(_) | DataType::Map(..) => Data::Record,
        _ => match list(array) {
            Some(list) => {
                let (data, absent) = arrays(path, list, &place, unreadable)?;
                place = place.without_rows(&absent)?;
                data
            }
            None => return Err(unsupported(path, array.data_type())),
        },
    };
    let is_by_row = matches!(data, Data::Decimals(_) | Data::Arrays(_));
    Ok(Some(ColumnView { place: if is_by_row { place.by_row() } else { place }, data }))
}

/// The elements of a list column, and the rows whose lists cannot be read.
fn arrays<'x>(
    path: &str,
    list: List<'x>,
    place: &Place,
    unreadable: &mut UnreadableRows,
) -> Result<(Data<'x>, BTreeSet<usize>), EventError> {
    let mut offsets = vec![0];
    let mut elements: Vec<Option<usize>> = Vec::new();
    let mut is_in_order = true;
    for row in 0..place.len {
        if let Some(at) = place.element(row) {
            let (start, length) = (list.range)(at);
            is_in_order &= start == elements.len() || length == 0;
            elements.extend((start..start + length).map(Some));
        }
        offsets.push(elements.len());
    }
    let elements =
        if is_in_order { Place::same(elements.len()) } else { Place::scattered(elements.into_iter())? };
    let count = elements.len;
    // What is wrong with an element is wrong with the row of its list.
    let in_its_row = |mut error: EventError| {
        error.row = error.row.map(|element| offsets.partition_point(|offset| *offset <= element) - 1);
        error
    };
    let mut of_elements = UnreadableRows::default();
    if let DataType::Struct(_) = list.values.data_type() {
        // A field that cannot be read is absent from its record.
        let records = records(path, list.values.as_struct(), elements, &mut of_elements);
        unreadable.add_elements(of_elements, &offsets);
        let arrays = Arrays::new(offsets, Elements::Records(records));
        return Ok((Data::Arrays(arrays.into()), BTreeSet::new()));
    }
    let elements = match view(path, list.values, elements, &mut of_elements).map_err(in_its_row)? {
        Some(ColumnView { data: Data::Record | Data::Arrays(_), .. }) => {
            return Ok((Data::Record, BTreeSet::new()));
        }
        Some(view) => view,
        None => ColumnView::computed(vec![Value::Null; count]),
    };
    let mut absent = UnreadableRows::default();
    absent.add_elements(of_elements, &offsets);
    unreadable.rows.extend(&absent.rows);
    unreadable.first = unreadable.first.take().or(absent.first);
    Ok((Data::Arrays(Arrays::new(offsets, Elements::Scalars(elements)).into()), absent.rows))
}

/// Structs as elements of arrays, each with its fields. A field of a type that nobody can look at is present and
/// nothing else.
fn records<'x>(
    path: &str,
    array: &'x StructArray,
    place: Place,
    unreadable: &mut UnreadableRows,
) -> Records<'x> {
    let place = place.without(array.nulls());
    let mut fields = vec![];
    for (field, column) in array.fields().iter().zip(array.columns()) {
        let name = field.name();
        let path = format!("{path}.{name}");
        if let DataType::Struct(_) = column.data_type() {
            let inner = self::records(&path, column.as_struct(), place.clone(), unreadable);
            fields.push((name.as_str().into(), ColumnView { place: inner.place, data: Data::Record }));
            let outer = |(field, view): (Box<str>, ColumnView<'x>)| (format!("{name}.{field}").into(), view);
            fields.extend(inner.fields.into_iter().map(outer));
            continue;
        }
        let view = match view(&path, &**column, place.clone(), unreadable) {
            Ok(Some(view)) => view,
            Ok(None) => continue,
            Err(_) => ColumnView { place: place.clone(), data: Data::Record },
        };
        fields.push((name.as_str().into(), view));
    }
    Records { place, fields }
}

/// The values of a dictionary or of a run-end encoded array, and the way to them.
pub(super) fn decoded<'x>(
    array: &'x dyn Array,
    place: &Place,
) -> Result<Option<(&'x dyn Array, Place)>, EventError> {
    match array.data_type() {
        DataType::Dictionary(..) => {
            let dictionary = array.as_any_dictionary();
            let place = place.clone().without(dictionary.keys().nulls());
            let keys = if dictionary.values().is_empty() { Vec::new() } else { dictionary.normalized_keys() };
            let elements = (0..place.len).map(|row| keys.get(place.element(row)?).copied());
            Ok(Some((&**dictionary.values(), Place::scattered(elements)?)))
        }
        DataType::RunEndEncoded(ends, _) => match ends.data_type() {
            DataType::Int16 => runs::<Int16Type>(array.as_run(), place).map(Some),
            DataType::Int32 => runs::<Int32Type>(array.as_run(), place).map(Some),
            _ => runs::<Int64Type>(array.as_run(), place).map(Some),
        },
        _ => Ok(None),
    }
}

fn runs<'x, R: RunEndIndexType>(
    array: &'x RunArray<R>,
    place: &Place,
) -> Result<(&'x dyn Array, Place), EventError> {
    let elements = (0..place.len).map(|row| place.element(row).map(|at| array.get_physical_index(at)));
    Ok((&**array.values(), Place::scattered(elements)?))
}

/// A list of any layout: where the elements of each list start, and how many they are.
pub(super) struct List<'x> {
    pub(super) values: &'x dyn Array,
    pub(super) range: Box<dyn Fn(usize) -> (usize, usize) + 'x>,
}

pub(super) fn list(array: &dyn Array) -> Option<List<'_>> {
    fn of_offsets<O: OffsetSizeTrait>(array: &GenericListArray<O>) -> List<'_> {
        let offsets = array.value_offsets();
        let range = move |at: usize| (offsets[at].as_usize(), (offsets[at + 1] - offsets[at]).as_usize());
        List { values: &**array.values(), range: Box::new(range) }
    }
    fn of_views<O: OffsetSizeTrait>(array: &GenericListViewArray<O>) -> List<'_> {
        let range = |at: usize| (array.value_offset(at).as_usize(), array.value_size(at).as_usize());
        List { values: &**array.values(), range: Box::new(range) }
    }
    fn of_size(array: &FixedSizeListArray) -> List<'_> {
        let length = array.value_length() as usize;
        List { values: &**array.values(), range: Box::new(move |at| (at * length, length)) }
    }
    match array.data_type() {
        DataType::List(_) => Some(of_offsets::<i32>(array.as_list())),
        DataType::LargeList(_) => Some(of_offsets::<i64>(array.as_list())),
        DataType::ListView(_) => Some(of_views::<i32>(array.as_list_view())),
        DataType::LargeListView(_) => Some(of_views::<i64>(array.as_list_view())),
        DataType::FixedSizeList(..) => Some(of_size(array.as_fixed_size_list())),
        _ => None,
    }
}

fn timestamps<'x>(
    values: &'x [i64],
    micros: i64,
    mut fitting: impl FnMut(&str, &dyn Fn(usize) -> Option<String>) -> Result<(), EventError>,
) -> Result<Data<'x>, EventError> {
    fitting("a timestamp in microseconds", &|at| {
        values[at].checked_mul(micros).is_none().then(|| values[at].to_string())
    })?;
    Ok(Data::Timestamp(values, micros))
}

fn decimals<'x, T: DecimalType>(array: &dyn Array, place: &Place, scale: i8) -> Data<'x> {
    let decimals = array.as_primitive::<T>().values();
    let mut values = vec![Value::Null; place.len];
    for (row, at) in place.present() {
        values[row] = decimal::<T>(decimals[at], scale);
    }
    Data::Decimals(values.into())
}

/// Those that are exact.
const POWERS_OF_TEN: [f64; 23] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18,
    1e19, 1e20, 1e21, 1e22,
];

/// Decimals up to this many units are always what their nearest float stands for: they have at most 15 digits.
const FEW_UNITS: u64 = 1_000_000_000_000_000;

fn decimal<T: DecimalType>(unscaled: T::Native, scale: i8) -> Value {
    match unscaled.to_i64() {
        Some(i) if scale == 0 => Value::Int(i),
        // Both are exact floats, so the division rounds once and to the nearest.
        Some(i) if i.unsigned_abs() <= FEW_UNITS && (1..=22).contains(&scale) => {
            Value::Float(i as f64 / POWERS_OF_TEN[scale as usize])
        }
        _ => Value::decimal(&T::format_decimal(unscaled, T::MAX_PRECISION, scale))
            .expect("the decimals of Arrow have fewer digits and smaller exponents than ours"),
    }
}

/// The place without the elements for which `wrong` gives a text.
fn readable(
    path: &str,
    place: &Place,
    target: &str,
    wrong: &dyn Fn(usize) -> Option<String>,
    unreadable: &mut UnreadableRows,
) -> Result<Place, EventError> {
    let mut found = BTreeSet::new();
    for (row, at) in place.present() {
        if let Some(text) = wrong(at) {
            found.insert(row);
            unreadable.add(row, || in_row(path, row, format!("{text} does not fit in {target}")));
        }
    }
    place.clone().without_rows(&found)
}

pub(super) fn in_row(path: &str, row: usize, message: String) -> EventError {
    EventError { row: Some(row), ..EventError::new(message).at_path(path) }
}

pub(super) fn unsupported(path: &str, of: &DataType) -> EventError {
    EventError::new(format!("a column of Arrow type {of} cannot be matched"))
        .at_path(path)
        .with_hint(format!("supported are {SUPPORTED}"))
}
