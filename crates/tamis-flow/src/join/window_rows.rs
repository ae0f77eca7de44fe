//! The rows of one window of a stream, stored once for all joins that use it, with an index for each term
//! they join by.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use tamis_core::event::{Record, Value};
use tamis_core::term::Term;

use crate::key::{ByValue, heap_bytes, join_value, record_bytes, value_of};
use crate::window::Frame;

#[derive(Clone, Debug)]
pub(crate) struct Row {
    pub number: u64,
    pub time: i64,
    pub record: Arc<Record>,
}

/// Rows leave in the order in which they came, so that the first of every list is the oldest.
pub(crate) struct WindowRows {
    pub stream: usize,
    pub frame: Frame,
    pub rows: VecDeque<Row>,
    indexes: Vec<TermIndex>,
    /// The joins that look at it.
    pub joins: BTreeSet<u32>,
    /// How many sources of joins it is.
    pub uses: usize,
    pub bytes: usize,
}

struct TermIndex {
    term: Term,
    uses: usize,
    rows: ByValue<Value, VecDeque<Row>>,
}

impl WindowRows {
    pub fn new(stream: usize, frame: Frame) -> Self {
        Self {
            stream,
            frame,
            rows: VecDeque::new(),
            indexes: vec![],
            joins: BTreeSet::new(),
            uses: 0,
            bytes: 0,
        }
    }

    pub fn acquire_index(&mut self, term: &Term) {
        if let Some(index) = self.indexes.iter_mut().find(|index| index.term == *term) {
            index.uses += 1;
            return;
        }
        let mut index = TermIndex { term: term.clone(), uses: 1, rows: ByValue::default() };
        for row in &self.rows {
            index.add(row);
            self.bytes += index.bytes_of(row);
        }
        self.indexes.push(index);
    }

    pub fn release_index(&mut self, term: &Term) {
        if let Some(index) = self.indexes.iter_mut().find(|index| index.term == *term) {
            index.uses -= 1;
            if index.uses == 0 {
                self.bytes -= self.rows.iter().map(|row| index.bytes_of(row)).sum::<usize>();
            }
        }
        self.indexes.retain(|index| index.uses > 0);
    }

    fn row_bytes(&self, row: &Row) -> usize {
        let indexes = self.indexes.iter().map(|index| index.bytes_of(row));
        size_of::<Row>() + record_bytes(&row.record) + indexes.sum::<usize>()
    }

    /// Returns how many of its ON terms hold an array or a record, which equals nothing.
    pub fn add(&mut self, row: Row) -> u64 {
        self.bytes += self.row_bytes(&row);
        let is_lost = |index: &&TermIndex| {
            let value = value_of(&index.term, &row.record);
            matches!(value, Value::Array(_) | Value::Fields(_))
        };
        let lost = self.indexes.iter().filter(is_lost).count() as u64;
        self.indexes.iter_mut().for_each(|index| index.add(&row));
        self.rows.push_back(row);
        lost
    }

    pub fn remove_first(&mut self) {
        let Some(row) = self.rows.pop_front() else { return };
        self.indexes.iter_mut().for_each(|index| index.remove(&row));
        self.bytes -= self.row_bytes(&row);
    }

    /// The rows in which a term has this value.
    pub fn having(&self, term: &Term, value: &Value) -> Option<&VecDeque<Row>> {
        self.indexes.iter().find(|index| index.term == *term)?.rows.get(value)
    }

    /// About how many rows have the same value of a term.
    pub fn rows_per_value(&self, term: &Term) -> f64 {
        let values =
            self.indexes.iter().find(|index| index.term == *term).map_or(1, |index| index.rows.len());
        self.rows.len() as f64 / values.max(1) as f64
    }

    /// Until when the first row stays.
    pub fn first_end(&self) -> Option<(i64, u64)> {
        let Frame::Range(length) = self.frame else { return None };
        self.rows.front().map(|row| (row.time.saturating_add(length), row.number))
    }
}

impl TermIndex {
    fn bytes_of(&self, row: &Row) -> usize {
        48 + join_value(&self.term, &row.record).as_ref().map_or(0, heap_bytes)
    }

    fn add(&mut self, row: &Row) {
        if let Some(key) = join_value(&self.term, &row.record) {
            self.rows.entry(key).or_default().push_back(row.clone());
        }
    }

    fn remove(&mut self, row: &Row) {
        let Some(key) = join_value(&self.term, &row.record) else { return };
        if let Some(rows) = self.rows.get_mut(&key) {
            rows.pop_front();
            if rows.is_empty() {
                self.rows.remove(&key);
            }
        }
    }
}
