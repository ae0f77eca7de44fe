//! All strings of each row of a batch, in any column.

use arrow_array::cast::AsArray;
use arrow_array::{Array, RecordBatch};
use arrow_schema::DataType;

use super::arrays::Arrays;
use super::column::{ColumnView, Data};
use super::place::Place;
use super::resolve::levels;
use super::view::{decoded, list};
use crate::event::Value;
use crate::event::error::{EventError, MAX_DEPTH};

/// An array of strings a row. An interval of strings counts as a null.
pub(super) fn column<'b>(
    batch: &RecordBatch,
    interval_columns: &[String],
) -> Result<ColumnView<'b>, EventError> {
    let count = batch.num_rows();
    let mut gathering = Gathering { rows: vec![vec![]; count], interval_columns };
    for (field, array) in batch.schema_ref().fields().iter().zip(batch.columns()) {
        if levels(array.data_type()) > MAX_DEPTH {
            return Err(EventError::too_deep().at_path(field.name()));
        }
        gathering.gather(field.name(), &**array, Place::same(count), None)?;
    }
    let (mut values, mut offsets) = (vec![], vec![0]);
    for row in gathering.rows {
        values.extend(row);
        offsets.push(values.len());
    }
    Ok(ColumnView { place: Place::same(count), data: Data::Arrays(Arrays::made(offsets, values).into()) })
}

struct Gathering<'i> {
    rows: Vec<Vec<Value>>,
    interval_columns: &'i [String],
}

impl Gathering<'_> {
    /// Adds the strings of an array. `place` leads from positions to its elements, and `owners` from positions to rows;
    /// without owners, the position is the row.
    fn gather(
        &mut self,
        path: &str,
        array: &dyn Array,
        place: Place,
        owners: Option<&[usize]>,
    ) -> Result<(), EventError> {
        if let Some((values, place)) = decoded(array, &place)? {
            return self.gather(path, values, place, owners);
        }
        let place = place.without(array.nulls());
        let row_of = |position: usize| owners.map_or(position, |owners| owners[position]);
        let mut add = |position: usize, text: &str| {
            self.rows[row_of(position)].push(Value::Str(text.into()));
        };
        match array.data_type() {
            DataType::Utf8 => {
                let texts = array.as_string::<i32>();
                place.present().for_each(|(position, at)| add(position, texts.value(at)));
            }
            DataType::LargeUtf8 => {
                let texts = array.as_string::<i64>();
                place.present().for_each(|(position, at)| add(position, texts.value(at)));
            }
            DataType::Utf8View => {
                let texts = array.as_string_view();
                place.present().for_each(|(position, at)| add(position, texts.value(at)));
            }
            DataType::Struct(fields) if self.interval_columns.iter().any(|name| name == path) => {
                if fields.iter().any(|field| is_text(field.data_type())) {
                    for (position, _) in place.present() {
                        self.rows[row_of(position)].push(Value::Null);
                    }
                }
            }
            DataType::Struct(fields) => {
                for (field, column) in fields.iter().zip(array.as_struct().columns()) {
                    self.gather(&format!("{path}.{}", field.name()), &**column, place.clone(), owners)?;
                }
            }
            DataType::Map(..) => {
                let map = array.as_map();
                let offsets = map.value_offsets();
                let entries = |at: usize| offsets[at] as usize..offsets[at + 1] as usize;
                self.gather_many(path, &**map.values(), &place, owners, entries)?;
            }
            _ => {
                if let Some(list) = list(array) {
                    let entries = |at: usize| {
                        let (start, length) = (list.range)(at);
                        start..start + length
                    };
                    self.gather_many(path, list.values, &place, owners, entries)?;
                }
            }
        }
        Ok(())
    }

    /// The same where each element of an array is a range of elements of another.
    fn gather_many(
        &mut self,
        path: &str,
        values: &dyn Array,
        place: &Place,
        owners: Option<&[usize]>,
        entries: impl Fn(usize) -> std::ops::Range<usize>,
    ) -> Result<(), EventError> {
        if !may_hold_text(values.data_type()) {
            return Ok(());
        }
        let (mut elements, mut rows) = (vec![], vec![]);
        for (position, at) in place.present() {
            let row = owners.map_or(position, |owners| owners[position]);
            for element in entries(at) {
                elements.push(Some(element));
                rows.push(row);
            }
        }
        // An array that an interval column is an element of has no such name.
        self.gather(&format!("{path}[]"), values, Place::scattered(elements.into_iter())?, Some(&rows))
    }
}

fn is_text(of: &DataType) -> bool {
    match of {
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => true,
        DataType::Dictionary(_, values) => is_text(values),
        DataType::RunEndEncoded(_, values) => is_text(values.data_type()),
        _ => false,
    }
}

fn may_hold_text(of: &DataType) -> bool {
    is_text(of) || of.is_nested() || matches!(of, DataType::Dictionary(..) | DataType::RunEndEncoded(..))
}
