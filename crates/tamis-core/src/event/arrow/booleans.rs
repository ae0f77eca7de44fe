//! Which Boolean terms are true in each row of a batch.

use std::sync::Arc;

use super::ArrowEvents;
use crate::event::{TermId, Terms};
use crate::term::boolean::Finder;

/// A [`Finder`] that looks at a batch column by column.
pub trait ColumnFinder: Send + Sync {
    /// Finds the members of all rows of a batch without sets of values: calls `found` with row, place and truth, rows and
    /// the places in a row rising, each once. False if rows have to be looked at one by one; then nothing was found.
    fn find_in_columns(&self, events: &ArrowEvents<'_>, found: &mut dyn FnMut(usize, usize, bool)) -> bool;
}

/// What [`Finder::by_columns`] returns: terms know nothing of batches.
pub struct ByColumns(pub Arc<dyn ColumnFinder>);

impl ByColumns {
    fn of(finder: &dyn Finder) -> Option<&Self> {
        finder.by_columns()?.downcast_ref()
    }
}

/// The Boolean terms whose truth was found, row by row.
#[derive(Default)]
pub(super) struct FoundBooleans {
    /// Where those of each row end; they begin where those of the row before end.
    ends: Vec<u32>,
    /// Sorted by term within a row.
    found: Vec<(TermId, bool)>,
}

impl FoundBooleans {
    /// Asks each finder about all rows, column by column where it can, and otherwise row by row.
    pub fn find(events: &ArrowEvents<'_>, terms: &Terms) -> Self {
        let mut found: Vec<(u32, TermId, bool)> = vec![];
        let mut by_row = vec![];
        let mut finders = 0;
        for (ids, finder) in terms.finders() {
            let mut add = |row: usize, place: usize, truth| found.push((row as u32, ids[place], truth));
            // What cells are read as depends on who looks at them.
            let by_columns = if events.has_sets { None } else { ByColumns::of(finder) };
            if !by_columns.is_some_and(|finder| finder.0.find_in_columns(events, &mut add)) {
                by_row.push((ids, finder));
            }
            finders += 1;
        }
        if !by_row.is_empty() {
            for row in 0..events.rows {
                let event = events.event(row);
                let mut add = |id, truth| found.push((row as u32, id, truth));
                terms.find_booleans_by(by_row.iter().copied(), &event.values, &mut add);
            }
        }
        // A finder goes from row to row, and finds nothing twice.
        if finders > 1 || !by_row.is_empty() {
            found.sort_unstable_by_key(|(row, id, _)| (*row, *id));
            found.dedup_by_key(|(row, id, _)| (*row, *id));
        }
        let mut ends = vec![0; events.rows];
        found.iter().for_each(|(row, ..)| ends[*row as usize] += 1);
        let mut end = 0;
        for each in &mut ends {
            end += *each;
            *each = end;
        }
        Self { ends, found: found.into_iter().map(|(_, id, truth)| (id, truth)).collect() }
    }

    pub fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    pub fn of_row(&self, row: usize) -> &[(TermId, bool)] {
        let Some(end) = self.ends.get(row) else { return &[] };
        let start = if row == 0 { 0 } else { self.ends[row - 1] };
        &self.found[start as usize..*end as usize]
    }
}
