//! Which Boolean terms are true in each row of a batch.

use std::sync::Arc;

use super::ArrowEvents;
use crate::event::{TermId, Terms};
use crate::term::boolean::Finder;

/// Takes a row, and the places and truths of the members that were found in it.
pub type FoundInRow<'f> = dyn FnMut(usize, &[(u32, bool)]) + 'f;

/// A [`Finder`] that looks at a batch column by column.
pub trait ColumnFinder: Send + Sync {
    /// Finds the members of all rows of a batch without sets of values: calls `found` with each row that has any, rising, and
    /// with their places and truths, rising, each once. False if rows have to be looked at one by one; then nothing was found.
    fn find_in_columns(&self, events: &ArrowEvents<'_>, found: &mut FoundInRow<'_>) -> bool;
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
pub struct FoundBooleans {
    /// Where those of each row end; they begin where those of the row before end.
    ends: Vec<u32>,
    /// Sorted by term within a row, each once.
    found: Vec<(TermId, bool)>,
}

impl FoundBooleans {
    /// Asks each finder about all rows, column by column where it can, and otherwise row by row.
    pub(super) fn find(events: &ArrowEvents<'_>, terms: &Terms) -> Self {
        let mut parts = vec![];
        let mut by_row = vec![];
        for (ids, finder) in terms.finders() {
            // What cells are read as depends on who looks at them.
            let by_columns = if events.has_sets { None } else { ByColumns::of(finder) };
            let mut of_finder = Self { ends: Vec::with_capacity(events.rows), found: vec![] };
            let mut add = |row: usize, found: &[(u32, bool)]| {
                of_finder.end_rows_before(row);
                of_finder.found.extend(found.iter().map(|(place, truth)| (ids[*place as usize], *truth)));
            };
            if by_columns.is_some_and(|finder| finder.0.find_in_columns(events, &mut add)) {
                of_finder.end_rows_before(events.rows);
                parts.push(of_finder);
            } else {
                by_row.push((ids, finder));
            }
        }
        if !by_row.is_empty() {
            let mut of_rows = Self::default();
            let mut in_row: Vec<(TermId, bool)> = vec![];
            for row in 0..events.rows {
                let event = events.event(row);
                let mut add = |id, truth| in_row.push((id, truth));
                terms.find_booleans_by(by_row.iter().copied(), &event.values, &mut add);
                in_row.sort_unstable_by_key(|(id, _)| *id);
                in_row.dedup_by_key(|(id, _)| *id);
                of_rows.found.append(&mut in_row);
                of_rows.end_rows_before(row + 1);
            }
            parts.push(of_rows);
        }
        parts.retain(|part| !part.is_empty());
        if parts.len() < 2 { parts.pop().unwrap_or_default() } else { Self::together(&parts, events.rows) }
    }

    /// What was found so far belongs to rows before that one.
    #[inline]
    fn end_rows_before(&mut self, row: usize) {
        self.ends.resize(row, self.found.len() as u32);
    }

    /// What any of them found.
    fn together(parts: &[Self], rows: usize) -> Self {
        let mut all = Self::default();
        let mut in_row: Vec<(TermId, bool)> = vec![];
        for row in 0..rows {
            parts.iter().for_each(|part| in_row.extend_from_slice(part.of_row(row)));
            in_row.sort_unstable_by_key(|(id, _)| *id);
            in_row.dedup_by_key(|(id, _)| *id);
            all.found.append(&mut in_row);
            all.end_rows_before(row + 1);
        }
        all
    }

    pub fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    #[inline]
    pub fn of_row(&self, row: usize) -> &[(TermId, bool)] {
        let Some(end) = self.ends.get(row) else { return &[] };
        let start = if row == 0 { 0 } else { self.ends[row - 1] };
        &self.found[start as usize..*end as usize]
    }
}
