//! Resolves the columns of a batch to the views that subscriptions use.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, MapArray, RecordBatch, StructArray};
use arrow_schema::DataType;
use rustc_hash::FxHashMap;

use super::column::{ColumnView, Data};
use super::place::Place;
use super::view::{UnreadableRows, decoded, in_row, unsupported, view};
use crate::event::error::{EventError, MAX_DEPTH};
use crate::event::fields::given_twice;
use crate::event::value::Kind;
use crate::event::value::cell::read_cell;
use crate::event::{Schema, TermId, Terms, Type, Unreadable, Value, ValueRef};

/// The views of all columns that some subscription uses, sorted by attribute, and what could not be read in them.
pub(super) fn columns<'b>(
    batch: &'b RecordBatch,
    terms: &Terms,
    schema: Option<&Schema>,
    interval_columns: &[String],
    cells: Option<&BTreeMap<String, Vec<Kind>>>,
) -> Result<(Vec<(TermId, ColumnView<'b>)>, Unreadable), EventError> {
    let mut resolver = Resolver {
        terms,
        schema,
        interval_columns,
        cells,
        columns: Vec::new(),
        unreadable: Unreadable::default(),
    };
    for (field, array) in batch.schema_ref().fields().iter().zip(batch.columns()) {
        resolver.column(field.name(), &**array, Place::same(batch.num_rows()), 1)?;
    }
    let Resolver { mut columns, unreadable, .. } = resolver;
    columns.sort_by_key(|(attribute, _)| *attribute);
    match columns.windows(2).find(|pair| pair[0].0 == pair[1].0) {
        Some(twice) => Err(given_twice("a column", terms.name(twice[0].0))),
        None => Ok((columns, unreadable)),
    }
}

struct Resolver<'b, 'i> {
    terms: &'i Terms,
    schema: Option<&'i Schema>,
    interval_columns: &'i [String],
    /// If columns of text hold cells: the kinds that predicates expect.
    cells: Option<&'i BTreeMap<String, Vec<Kind>>>,
    columns: Vec<(TermId, ColumnView<'b>)>,
    unreadable: Unreadable,
}

impl<'b> Resolver<'b, '_> {
    /// Adds the views of a column and of the fields inside it, if they are used. `place` leads from the
    /// rows of the batch to the elements of `array`, which would be a list or a record of that level.
    fn column(
        &mut self,
        path: &str,
        array: &'b dyn Array,
        place: Place,
        level: usize,
    ) -> Result<(), EventError> {
        let attribute = self.terms.of_field(path);
        let has_fields = self.terms.has_fields(path);
        if attribute.is_none() && !has_fields {
            return Ok(());
        }
        if let Some((values, place)) = decoded(array, &place)? {
            return self.column(path, values, place, level);
        }
        let is_interval = self.interval_columns.iter().any(|name| name == path);
        // Of a record, only used fields are read; of a list, everything.
        let read = match array.data_type() {
            DataType::Struct(_) | DataType::Map(..) => usize::from(has_fields),
            list => levels(list),
        };
        if level + read > MAX_DEPTH + 1 {
            return Err(EventError::too_deep().at_path(path));
        }
        if has_fields && !is_interval {
            match array.data_type() {
                DataType::Struct(_) => self.fields(path, array.as_struct(), &place, level + 1)?,
                DataType::Map(..) => self.entries(path, array.as_map(), &place, level + 1)?,
                _ => {}
            }
        }
        if let Some(attribute) = attribute {
            let mut unreadable = UnreadableRows::default();
            let view = if is_interval {
                Some(intervals(path, array, place, &mut unreadable)?)
            } else {
                view(path, array, place, &mut unreadable)?
            };
            self.unreadable.add(unreadable.into());
            self.columns.extend(view.map(|view| (attribute, self.coerced(path, view))));
        }
        Ok(())
    }

    fn fields(
        &mut self,
        path: &str,
        array: &'b StructArray,
        place: &Place,
        level: usize,
    ) -> Result<(), EventError> {
        for (field, child) in array.fields().iter().zip(array.columns()) {
            let path = format!("{path}.{}", field.name());
            self.column(&path, &**child, place.clone().without(array.nulls()), level)?;
        }
        Ok(())
    }

    /// Makes one column of every key of a map that is used.
    fn entries(
        &mut self,
        path: &str,
        array: &'b MapArray,
        place: &Place,
        level: usize,
    ) -> Result<(), EventError> {
        let place = place.clone().without(array.nulls());
        let keys =
            view(path, &**array.keys(), Place::same(array.keys().len()), &mut UnreadableRows::default())?;
        let offsets = array.value_offsets();
        let mut columns: Vec<(String, Vec<Option<usize>>)> = Vec::new();
        let mut column_of_key: FxHashMap<&str, Option<usize>> = FxHashMap::default();
        for (row, at) in place.present() {
            for entry in offsets[at] as usize..offsets[at + 1] as usize {
                let key = match keys.as_ref().and_then(|keys| keys.value(entry)) {
                    Some(ValueRef::Str(key)) => key,
                    _ => return Err(unsupported(path, array.data_type())),
                };
                let column = *column_of_key.entry(key).or_insert_with(|| {
                    let path = format!("{path}.{key}");
                    let is_used = self.terms.of_field(&path).is_some() || self.terms.has_fields(&path);
                    is_used.then(|| {
                        columns.push((path, vec![None; place.len]));
                        columns.len() - 1
                    })
                });
                if let Some(column) = column
                    && columns[column].1[row].replace(entry).is_some()
                {
                    return Err(in_row(path, row, format!("the map has the key {key:?} twice")));
                }
            }
        }
        for (path, entries) in columns {
            self.column(&path, &**array.values(), Place::scattered(entries.into_iter())?, level)?;
        }
        Ok(())
    }

    /// Turns text and epoch numbers into timestamps where the schema declares them.
    fn coerced(&self, path: &str, view: ColumnView<'b>) -> ColumnView<'b> {
        if let Some(expected) = self.cells.filter(|_| view.kind() == Some(Kind::Str)) {
            return self.of_cells(path, view, expected.get(path).map_or(&[], |kinds| &kinds[..]));
        }
        let Some(schema) = self.schema else { return view };
        if schema.is_around_timestamps(path) {
            let ColumnView { place, data } = view;
            let data = match data {
                Data::Arrays(arrays) => {
                    let arrays = Arc::into_inner(arrays).expect("nobody else has what was just read");
                    let coerced = |name: &str, view| self.coerced(&format!("{path}.{name}"), view);
                    Data::Arrays(arrays.with_fields(coerced).into())
                }
                data => data,
            };
            return ColumnView { place, data };
        }
        let Some(declared) = schema.get(path) else { return view };
        let of_scalars = matches!(view.kind(), Some(Kind::Str | Kind::Number));
        if of_scalars && matches!(declared, Type::Timestamp(_)) {
            return view.mapped(|value| {
                let timestamp = schema.coerce_scalar(path, value).map(Value::Timestamp);
                timestamp.unwrap_or_else(|| value.to_owned())
            });
        }
        let ColumnView { place, data } = view;
        let holds_timestamps = matches!(declared, Type::Array(of) if matches!(**of, Type::Timestamp(_)));
        match data {
            Data::Arrays(arrays) if holds_timestamps => {
                let coerced = arrays.mapped(|values| {
                    let mut array = Value::Array(values);
                    schema.coerce_value(path, &mut array);
                    if let Value::Array(coerced) = array { coerced } else { vec![] }
                });
                ColumnView { place, data: Data::Arrays(coerced.into()) }
            }
            Data::Intervals(mut intervals) => {
                for interval in intervals.iter_mut().flatten() {
                    schema.coerce_value(path, interval);
                }
                ColumnView { place, data: Data::Intervals(intervals) }
            }
            data => ColumnView { place, data },
        }
    }
}

impl<'b> Resolver<'b, '_> {
    /// A column of cells as what it is declared as, or as the only kind that predicates expect. Otherwise each predicate
    /// reads the cells.
    fn of_cells(&self, path: &str, view: ColumnView<'b>, expected: &[Kind]) -> ColumnView<'b> {
        let text = |value: ValueRef<'_>| Box::<str>::from(value.text());
        if let Some(schema) = self.schema {
            return view.mapped(|value| schema.read_cell(path, value.text()));
        }
        match expected {
            [Kind::Str] => view,
            [kind] => view.mapped(|value| read_cell(value.text(), *kind).unwrap_or(Value::Str(text(value)))),
            // `IS NULL` alone, which any value will do for.
            [] if !self.terms.has_computed() => view,
            _ => view.mapped(|value| Value::Cell(text(value))),
        }
    }
}

/// How many lists and records lie inside one another in values of that type; counted as far as one too many.
pub(super) fn levels(of: &DataType) -> usize {
    fn inside(of: &DataType, left: usize) -> usize {
        let Some(left) = left.checked_sub(1) else { return 0 };
        match of {
            DataType::List(item)
            | DataType::LargeList(item)
            | DataType::ListView(item)
            | DataType::LargeListView(item)
            | DataType::FixedSizeList(item, _) => 1 + inside(item.data_type(), left),
            DataType::Struct(fields) => {
                1 + fields.iter().map(|field| inside(field.data_type(), left)).max().unwrap_or(0)
            }
            DataType::Map(entries, _) => match entries.data_type() {
                DataType::Struct(fields) => {
                    1 + fields.last().map_or(0, |value| inside(value.data_type(), left))
                }
                _ => 1,
            },
            DataType::Dictionary(_, values) => inside(values, left),
            DataType::RunEndEncoded(_, values) => inside(values.data_type(), left),
            _ => 0,
        }
    }
    inside(of, MAX_DEPTH + 1)
}

/// A struct of `low` and `high` as intervals.
fn intervals<'b>(
    path: &str,
    array: &'b dyn Array,
    place: Place,
    unreadable: &mut UnreadableRows,
) -> Result<ColumnView<'b>, EventError> {
    let not_an_interval = || {
        let of = array.data_type();
        EventError::new(format!("an interval column is a struct of `low` and `high`, not {of}")).at_path(path)
    };
    let ends = array.as_struct_opt().filter(|ends| ends.num_columns() == 2).ok_or_else(not_an_interval)?;
    let place = place.without(ends.nulls());
    let mut end = |name: &str| {
        let array = ends.column_by_name(name).ok_or_else(not_an_interval)?;
        view(path, &**array, place.clone(), unreadable)
    };
    let (low, high) = (end("low")?, end("high")?);
    let value = |end: &Option<ColumnView<'_>>, row: usize| {
        end.as_ref().and_then(|end| end.value(row)).map_or(Value::Null, ValueRef::to_owned)
    };
    let mut intervals = vec![None; place.len];
    let readable = place.present().filter(|(row, _)| !unreadable.rows.contains(row));
    for (row, _) in readable {
        let interval = Value::interval(value(&low, row), value(&high, row));
        intervals[row] = Some(interval.map_err(|wrong| in_row(path, row, wrong))?);
    }
    Ok(ColumnView { place: place.by_row(), data: Data::Intervals(intervals) })
}
