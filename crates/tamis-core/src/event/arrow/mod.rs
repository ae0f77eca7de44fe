//! Events as rows of an Arrow batch, read in place.
//!
//! Columns are resolved to attributes once per batch, and only those that some subscription uses. Strings are never
//! copied. The value of a column:
//!
//! | Arrow | value |
//! |---|---|
//! | boolean, integers, floats (also of 16 bits) | the same; an unsigned integer above 2^63 - 1 is *unreadable* |
//! | utf8, large utf8, utf8 view | string |
//! | timestamp of any unit and zone, date | timestamp in UTC microseconds, nanoseconds rounded down |
//! | decimal | the same number: an integer, a float that stands for it, or a decimal |
//! | lists of any layout | array, also of structs; one of lists is present but compares with nothing |
//! | struct | a nested record: `column.field`; a null struct makes its fields absent |
//! | struct of `low` and `high`, if the caller says so | interval |
//! | map with string keys | spread into `column.key` |
//! | dictionary, run-end encoded | as its values |
//! | null | absent |
//!
//! An unreadable value (such an integer, or seconds or days beyond the range of microseconds) is absent and
//! counted; so is an array with such an element. Anything else (binary, time of day, duration, union) is an
//! error that names the column, if a subscription uses it.

mod arrays;
mod booleans;
mod column;
mod place;
mod resolve;
mod strings;
mod view;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use arrow_array::RecordBatch;

use super::error::EventError;
use super::value::Kind;
use super::{Event, Names, Record, Schema, TermId, Terms, Unreadable, Value, ValueRef};

pub use arrays::ElementColumns;
pub use booleans::{ByColumns, ColumnFinder, FoundBooleans, FoundInRow};
pub use column::{ColumnView, See};

/// Sets of columns of which names are remembered while rows become records.
const MOST_KINDS_OF_ROWS: usize = 16;

/// The rows of a batch as events for one index.
pub struct ArrowEvents<'b> {
    /// Sorted by attribute, each once.
    columns: Vec<(TermId, ColumnView<'b>)>,
    rows: usize,
    booleans: FoundBooleans,
    unreadable: Unreadable,
    /// Whether some value may stand for several.
    has_sets: bool,
}

impl<'b> ArrowEvents<'b> {
    /// Ties the columns of a batch to attributes. With a schema, text and epoch numbers become timestamps where
    /// they are declared.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
    /// use tamis_core::event::{ArrowEvents, Terms, Value};
    ///
    /// let ages: ArrayRef = Arc::new(Int64Array::from(vec![Some(27), None]));
    /// let countries: ArrayRef = Arc::new(StringArray::from(vec!["CA", "US"]));
    /// let batch = RecordBatch::try_from_iter([("age", ages), ("country", countries)]).unwrap();
    /// let mut terms = Terms::default();
    /// let (country, age) = (terms.intern("country"), terms.intern("age"));
    ///
    /// let events = ArrowEvents::new(&batch, &terms, None).unwrap();
    /// assert_eq!(events.event(0).get(age).unwrap().to_owned(), Value::Int(27));
    /// assert!(events.event(1).get(age).is_none());
    /// assert_eq!(events.event(1).get(country).unwrap().to_owned(), Value::Str("US".into()));
    /// ```
    pub fn new(batch: &'b RecordBatch, terms: &Terms, schema: Option<&Schema>) -> Result<Self, EventError> {
        Self::with_intervals(batch, terms, schema, &[])
    }

    /// The same, where the columns of these dotted names are intervals: structs of `low` and `high`.
    pub fn with_intervals(
        batch: &'b RecordBatch,
        terms: &Terms,
        schema: Option<&Schema>,
        interval_columns: &[String],
    ) -> Result<Self, EventError> {
        Self::read(batch, terms, schema, interval_columns, None)
    }

    /// The same, where columns of text hold cells, as those of a CSV file; `expected` are the kinds of values that
    /// predicates expect. Where they expect one kind, the column is read as that; see [`cell`](crate::value::cell).
    pub fn of_cells(
        batch: &'b RecordBatch,
        terms: &Terms,
        schema: Option<&Schema>,
        expected: &BTreeMap<String, Vec<Kind>>,
    ) -> Result<Self, EventError> {
        Self::read(batch, terms, schema, &[], Some(expected))
    }

    fn read(
        batch: &'b RecordBatch,
        terms: &Terms,
        schema: Option<&Schema>,
        interval_columns: &[String],
        cells: Option<&BTreeMap<String, Vec<Kind>>>,
    ) -> Result<Self, EventError> {
        let (mut columns, unreadable) = resolve::columns(batch, terms, schema, interval_columns, cells)?;
        let rows = batch.num_rows();
        if let Some(id) = terms.strings() {
            put(&mut columns, id, strings::column(batch, interval_columns)?);
        }
        let mut events = Self::computed(columns, rows, terms, cells.is_some());
        events.unreadable = unreadable;
        // Whatever looks into the strings has found what it looks for, unless matches are verified.
        let passing = terms.passing_strings().filter(|_| !events.has_sets);
        events.columns.retain(|(id, _)| Some(*id) != passing);
        Ok(events)
    }

    /// Rows whose attributes lie in these columns, sorted and each once. No value is a cell.
    pub fn of_columns(columns: Vec<(TermId, ColumnView<'b>)>, rows: usize, terms: &Terms) -> Self {
        Self::computed(columns, rows, terms, false)
    }

    /// The same with all that is computed from them.
    fn computed(
        mut columns: Vec<(TermId, ColumnView<'b>)>,
        rows: usize,
        terms: &Terms,
        may_hold_cells: bool,
    ) -> Self {
        if let Some((id, now)) = terms.now() {
            put(&mut columns, id, ColumnView::same(now, rows));
        }
        if terms.has_computed() {
            add_computed(&mut columns, terms, rows);
        }
        let has_sets = columns
            .iter()
            .any(|(_, column)| column.is_made_of_intervals() || may_hold_cells && column.holds_cells());
        let (booleans, unreadable) = (FoundBooleans::default(), Unreadable::default());
        let mut events = Self { columns, rows, booleans, unreadable, has_sets };
        if terms.has_families() {
            events.booleans = FoundBooleans::find(&events, terms);
        }
        events
    }

    /// How many events there are.
    pub fn len(&self) -> usize {
        self.rows
    }

    pub fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// One row as an event. Panics when there is no such row.
    pub fn event(&self, row: usize) -> Event<'_> {
        let mut event = Event::default();
        self.fill(row, &mut event);
        event
    }

    /// The same into an event whose memory is used again.
    pub fn fill<'s>(&'s self, row: usize, event: &mut Event<'s>) {
        assert!(row < self.rows, "row {row} of a batch of {} rows", self.rows);
        event.values.clear();
        event.weights.clear();
        event.has_intervals = false;
        event.unreadable.clear();
        for (attribute, column) in &self.columns {
            if let Some(value) = column.value(row) {
                event.has_intervals |= value.is_set();
                event.values.push((*attribute, value));
            }
        }
        let found = self.booleans.of_row(row);
        if !found.is_empty() {
            event.values.extend(found.iter().map(|(term, truth)| (*term, ValueRef::Bool(*truth))));
            event.values.sort_unstable_by_key(|(term, _)| *term);
        }
    }

    /// The rows as records of their own. Those with the same columns present share their names.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use arrow_array::{ArrayRef, Int64Array, RecordBatch};
    /// use tamis_core::event::{ArrowEvents, Terms, Value};
    ///
    /// let column = |values| Arc::new(Int64Array::from(values)) as ArrayRef;
    /// let columns = [("b", column(vec![Some(1), None, Some(2)])), ("a", column(vec![Some(3), Some(4), Some(5)]))];
    /// let batch = RecordBatch::try_from_iter(columns).unwrap();
    /// let mut terms = Terms::default();
    /// ["b", "a"].map(|name| terms.intern(name));
    ///
    /// let events = ArrowEvents::new(&batch, &terms, None).unwrap();
    /// let records: Vec<_> = events.records(&terms).collect();
    /// assert_eq!(records[0].get("b"), Some(&Value::Int(1)));
    /// assert_eq!(records[1].values().collect::<Vec<_>>(), [("a", &Value::Int(4))]);
    /// assert!(Arc::ptr_eq(records[0].names(), records[2].names()));
    /// ```
    pub fn records<'e>(&'e self, terms: &'e Terms) -> impl Iterator<Item = Record> + 'e {
        let mut columns: Vec<(&str, &ColumnView<'b>)> =
            self.columns.iter().map(|(id, column)| (terms.name(*id), column)).collect();
        columns.sort_unstable_by_key(|(name, _)| *name);
        // By the columns that are present, the latest first.
        let mut known: Vec<(Vec<u32>, Names)> = vec![];
        let (mut present, mut values): (Vec<u32>, Vec<Value>) = (vec![], vec![]);
        let record = move |row| {
            present.clear();
            for (place, (_, column)) in (0..).zip(&columns) {
                if let Some(value) = column.value(row) {
                    present.push(place);
                    values.push(value.to_owned());
                }
            }
            let at = known.iter().position(|(known, _)| *known == present).unwrap_or_else(|| {
                let names = present.iter().map(|place| columns[*place as usize].0.into()).collect();
                known.truncate(MOST_KINDS_OF_ROWS - 1);
                known.insert(0, (present.clone(), names));
                0
            });
            Record::sharing(&known[at].1, values.drain(..).collect())
        };
        (0..self.rows).map(record)
    }

    /// The Boolean terms that were found in each row, if there are any. No column has them.
    pub fn booleans(&self) -> Option<&FoundBooleans> {
        Some(&self.booleans).filter(|booleans| !booleans.is_empty())
    }

    /// The column of an attribute, or `None` when the batch has none: it is absent from all rows.
    pub fn column(&self, attribute: TermId) -> Option<&ColumnView<'b>> {
        let at = self.columns.binary_search_by_key(&attribute, |(id, _)| *id).ok()?;
        Some(&self.columns[at].1)
    }

    /// What was given for attributes and no value can hold.
    pub fn unreadable(&self) -> Unreadable {
        self.unreadable.clone()
    }

    /// Whether some value may stand for several.
    pub fn has_intervals(&self) -> bool {
        self.has_sets
    }

    /// Every column that some subscription uses, sorted by attribute.
    pub fn columns(&self) -> impl ExactSizeIterator<Item = (TermId, &ColumnView<'b>)> {
        self.columns.iter().map(|(attribute, column)| (*attribute, column))
    }
}

/// Computes the terms in use, column by column.
fn add_computed(columns: &mut Vec<(TermId, ColumnView<'_>)>, terms: &Terms, rows: usize) {
    for (id, compute) in terms.computations() {
        let values = (0..rows).map(|row| {
            compute.value(&|term| {
                let at = columns.binary_search_by_key(&term, |(id, _)| *id).ok()?;
                columns[at].1.value(row)
            })
        });
        let view = ColumnView::computed(values.collect());
        put(columns, id, view);
    }
}

/// Puts a column where it belongs.
fn put<'b>(columns: &mut Vec<(TermId, ColumnView<'b>)>, id: TermId, view: ColumnView<'b>) {
    let at = columns.partition_point(|(other, _)| *other < id);
    columns.insert(at, (id, view));
}
