//! The rows of one key that pass one filter, once for all windows over them.
//!
//! ```text
//! positions   [ 12:00  12:03  12:07  12:09 ]        numbers 41 42 43 44, end = 45
//! column 0    [   3.5    null   4.0   4.5  ]        the values of one argument
//! column 1           [   "a"    "b"    "a" ]        an argument that a later query brought
//! running     {sum(col 0) over 10 min, start 41}  {count(*) over 5 min, start 43}
//! ```
//!
//! A window is the rows from its `start` on. Rows are numbered from zero and never renumbered; those before every start
//! are dropped.

use std::collections::VecDeque;

use smallvec::SmallVec;
use tamis_core::event::Value;

use super::Frame;
use super::aggregate::{Aggregate, Running};
use super::positions::Positions;
use crate::key::heap_bytes;

static NULL: Value = Value::Null;

/// The state of one aggregate.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted {
    pub id: u32,
    pub aggregate: Aggregate,
    pub frame: Frame,
    pub column: Option<u32>,
}

/// One allocation fewer where a store has one aggregate, which most have.
pub(crate) type AllWanted = SmallVec<[Wanted; 1]>;

#[derive(Debug)]
pub(crate) struct Store {
    pub definition: u32,
    /// The number that the next row gets.
    end: u64,
    positions: Positions,
    /// Of counts there are none.
    columns: Option<Box<Columns>>,
    running: SmallVec<[(u32, Running); 1]>,
}

#[derive(Debug, Default)]
struct Columns {
    values: Vec<VecDeque<Value>>,
    /// Bytes of texts and arrays.
    heap: usize,
}

/// One column of the rows, as an aggregate sees it.
pub(crate) struct Rows<'s> {
    column: Option<&'s VecDeque<Value>>,
    end: u64,
}

impl Rows<'_> {
    pub fn end(&self) -> u64 {
        self.end
    }

    /// Null also for a row that came before the column.
    pub fn value(&self, row: u64) -> &Value {
        let Some(column) = self.column else { return &NULL };
        let at = column.len().checked_sub((self.end - row) as usize);
        at.and_then(|at| column.get(at)).unwrap_or(&NULL)
    }
}

fn rows(columns: &Option<Box<Columns>>, end: u64, column: Option<u32>) -> Rows<'_> {
    let column = column.and_then(|column| columns.as_ref()?.values.get(column as usize));
    Rows { column, end }
}

impl Store {
    pub fn new(definition: u32) -> Self {
        Self { definition, end: 0, positions: Positions::default(), columns: None, running: SmallVec::new() }
    }

    pub fn len(&self) -> usize {
        self.positions.len()
    }

    /// Adds a row. `values` are those of the columns in use; none for those that are not.
    pub fn feed(&mut self, position: i64, values: impl Iterator<Item = Option<Value>>, wanted: &[Wanted]) {
        let row = self.end;
        self.positions.push(position);
        self.end += 1;
        for (at, value) in values.enumerate() {
            let columns = self.columns.get_or_insert_default();
            if columns.values.len() <= at {
                columns.values.push(VecDeque::new());
            }
            if let Some(value) = value {
                columns.heap += heap_bytes(&value);
                columns.values[at].push_back(value);
            }
        }
        for want in wanted {
            let rows = rows(&self.columns, self.end, want.column);
            let at = match self.running.iter().position(|(id, _)| *id == want.id) {
                Some(at) => at,
                None => {
                    // The first row since the aggregate was added: it starts empty.
                    self.running.push((want.id, Running::new(want.aggregate, row)));
                    self.running.len() - 1
                }
            };
            self.running[at].1.enter(want.aggregate, row, rows.value(row), &rows);
        }
    }

    /// Lets an aggregate that was just added start from the rows that are here.
    pub fn backfill(&mut self, want: &Wanted) {
        let start = self.end - self.positions.len() as u64;
        self.restore(want, start);
    }

    /// An aggregate as it is once the rows from `start` on have come.
    pub fn restore(&mut self, want: &Wanted, start: u64) {
        let mut running = Running::new(want.aggregate, start);
        // What the aggregate saw when a row was the last one.
        let rows = rows(&self.columns, self.end, want.column);
        for row in start..self.end {
            running.enter(want.aggregate, row, rows.value(row), &rows);
        }
        self.running.retain(|(id, _)| *id != want.id);
        self.running.push((want.id, running));
    }

    /// Lets rows leave the windows of an event at this position, and drops those that are in no window.
    pub fn refresh(&mut self, position: i64, wanted: &[Wanted]) {
        let first = self.end - self.positions.len() as u64;
        let mut needed = self.end;
        for want in wanted {
            let Some((_, running)) = self.running.iter_mut().find(|(id, _)| *id == want.id) else { continue };
            let low = want.frame.low(position);
            let rows = rows(&self.columns, self.end, want.column);
            while running.start < self.end && self.positions.at((running.start - first) as usize) < low {
                running.leave(&rows);
            }
            needed = needed.min(running.start);
        }
        let drop = (needed - first) as usize;
        if drop == 0 {
            return;
        }
        self.positions.drop_first(drop);
        let kept = self.positions.len();
        let Some(columns) = &mut self.columns else { return };
        for column in &mut columns.values {
            while column.len() > kept {
                let gone = column.pop_front().expect("it is longer than that");
                columns.heap -= heap_bytes(&gone);
            }
        }
    }

    /// The value of an aggregate. `is_fed` says that the last row is the event itself.
    pub fn value(&self, want: &Wanted, is_fed: bool) -> Option<Value> {
        let (_, running) = self.running.iter().find(|(id, _)| *id == want.id)?;
        running.value(want.aggregate, &rows(&self.columns, self.end, want.column), is_fed)
    }

    /// Drops aggregates that are no longer needed, and the values of unused columns.
    pub fn forget(&mut self, wanted: &[Wanted]) {
        self.running.retain(|(id, _)| wanted.iter().any(|want| want.id == *id));
        let Some(columns) = &mut self.columns else { return };
        for (at, column) in columns.values.iter_mut().enumerate() {
            if !wanted.iter().any(|want| want.column == Some(at as u32)) {
                columns.heap -= column.iter().map(heap_bytes).sum::<usize>();
                *column = VecDeque::new();
            }
        }
    }

    /// What the contents take, whatever room there is for more: the same after opening as before.
    pub fn bytes(&self) -> usize {
        let columns = self.columns.as_ref().map_or(0, |columns| {
            let values = columns.values.iter().map(|column| column.len() * size_of::<Value>());
            columns.heap + values.sum::<usize>()
        });
        size_of::<Self>()
            + self.positions.bytes()
            + columns
            + self.running.iter().map(|(_, running)| 8 + running.bytes()).sum::<usize>()
    }

    /// The contents to store: the positions, the columns, and where each aggregate starts.
    pub fn parts(&self) -> StoreParts<'_> {
        StoreParts {
            end: self.end,
            positions: &self.positions,
            columns: self.columns.as_ref().map_or(&[], |columns| &columns.values),
            starts: self.running.iter().map(|(id, running)| (*id, running.start)).collect(),
        }
    }

    /// A store from what was stored; aggregates are restored one by one.
    pub fn from_parts(definition: u32, end: u64, positions: Vec<i64>, columns: Vec<Vec<Value>>) -> Self {
        let heap = columns.iter().flatten().map(heap_bytes).sum();
        let values: Vec<VecDeque<Value>> = columns.into_iter().map(VecDeque::from).collect();
        let columns = (!values.is_empty()).then(|| Box::new(Columns { values, heap }));
        Self { end, positions: positions.into_iter().collect(), columns, ..Self::new(definition) }
    }
}

pub(crate) struct StoreParts<'s> {
    pub end: u64,
    pub positions: &'s Positions,
    pub columns: &'s [VecDeque<Value>],
    pub starts: Vec<(u32, u64)>,
}
