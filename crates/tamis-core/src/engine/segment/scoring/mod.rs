//! The data for computing the relevance of rows: weights and leaves as written, ready to be added up.
//!
//! The layout does not keep the original expression (repetition, order, weights), so each row has a small scoring program.
//! Programs exist only in segments in which some subscription has a weight. Without any, for XORs nested deeply in one
//! another, and for paths with weights, whose scores bits cannot express, the record is decoded and scored by the
//! definition (`query::score`).
//!
//! ```text
//! bounds        row → the highest relevance it can have for an event without weights; no array at all
//!               when no subscription has weights
//! sketches      row → what it can have for the event at hand, in a cache line or two; see `row_sketches`
//! entry_bounds  access entry → the sketch or the bound of what it leads to; see `entry_bounds`
//! code_off      row → its words in `code`; none for a row that must be scored by its record
//! code          the expression, NOT pushed down, in prefix order; see `node`
//! block_bounds  block of access entries → the highest bound of a row that it leads to
//! ```

mod builder;
pub mod entry_bounds;
pub(super) mod node;
mod program;
pub mod row_sketches;
mod sketch_sums;

pub use builder::{ScoringBuilder, has_weights};
pub use node::MAX_ATTRIBUTE;

use super::layout::BLOCK;
use crate::expr::limits::MAX_DEPTH;
use crate::prefetch::prefetch;
use crate::query::Scale;
use crate::snapshot::SharedSlice;
use entry_bounds::EntryBounds;
use node::Node;
use program::{Program, length_if_sound};
use row_sketches::RowSketches;

#[derive(Clone, Default)]
pub struct Scoring {
    pub bounds: SharedSlice<f64>,
    pub sketches: RowSketches,
    pub entry_bounds: EntryBounds,
    pub code_off: SharedSlice<u32>,
    pub code: SharedSlice<u32>,
    pub block_bounds: SharedSlice<f64>,
}

impl Scoring {
    /// Whether some subscription has weights.
    pub fn has_weights(&self) -> bool {
        !self.bounds.is_empty()
    }

    /// The highest relevance of a row for an event whose weights are at most 1.
    pub fn bound(&self, row: u32) -> f64 {
        self.bounds.get(row as usize).copied().unwrap_or(f64::INFINITY)
    }

    /// The relevance of a row that holds, given the bits of the event; `None` if the row has no program.
    #[inline]
    pub fn relevance(&self, row: u32, bits: &[u64], scale: &Scale) -> Option<f64> {
        let row = row as usize;
        let (from, to) = (*self.code_off.get(row)? as usize, self.code_off[row + 1] as usize);
        let first = *self.code[from..to].first()?;
        if scale.is_plain() && matches!(Node::read(first), Some(Node::All(_))) {
            // The bound of a conjunction is its sum, added up in the same order.
            return Some(self.bounds[row]);
        }
        Some(Program::new(&self.code[from..to], bits, scale).relevance())
    }

    /// Whether a row is scored by its record.
    #[inline]
    pub fn is_scored_by_record(&self, row: u32) -> bool {
        self.code_off[row as usize] == self.code_off[row as usize + 1]
    }

    /// The sum of the true leaves of a row that was added as leaves; `None` if there is none that counts.
    #[inline]
    pub fn relaxed(&self, row: u32, bits: &[u64], scale: &Scale) -> Option<f64> {
        let (from, to) = (self.code_off[row as usize] as usize, self.code_off[row as usize + 1] as usize);
        Program::new(&self.code[from..to], bits, scale).relaxed()
    }

    /// Fetches where the parts of a row begin, to be followed by [`fetch`](Self::fetch).
    #[inline]
    pub fn fetch_places(&self, row: u32) {
        self.sketches.fetch_place(row);
        if let Some(place) = self.code_off.get(row as usize) {
            prefetch(place);
        }
        if let Some(bound) = self.bounds.get(row as usize) {
            prefetch(bound);
        }
    }

    /// Fetches what a look at a row begins with: its sketch, or its program if it will be scored anyhow.
    #[inline]
    pub fn fetch(&self, row: u32, is_scored: bool) {
        if !is_scored {
            self.sketches.fetch(row);
        } else if let Some(place) = self.code_off.get(row as usize) {
            for line in 0..4 {
                self.code.get(*place as usize + 16 * line).inspect(|word| prefetch(*word));
            }
        }
    }

    pub fn bytes(&self) -> usize {
        self.bounds.byte_len()
            + self.sketches.bytes()
            + self.entry_bounds.0.byte_len()
            + self.code_off.byte_len()
            + self.code.byte_len()
            + self.block_bounds.byte_len()
    }

    /// Whether every program ends where it should and names bits that exist; else the name of a section.
    pub fn validate(&self, rows: usize, entries: usize, bits: u32) -> Result<(), &'static str> {
        let check = |holds: bool, section: &'static str| if holds { Ok(()) } else { Err(section) };
        check(self.bounds.is_empty() || self.bounds.len() == rows, "score_bounds")?;
        check(self.bounds.iter().all(|bound| *bound >= 0.0), "score_bounds")?;
        let blocks = entries.div_ceil(BLOCK);
        check(self.block_bounds.is_empty() || self.block_bounds.len() == blocks, "score_block_bounds")?;
        check(self.bounds.is_empty() == self.code_off.is_empty(), "score_code_offsets")?;
        self.entry_bounds.validate(entries, &self.sketches.validate(rows, bits)?)?;
        if self.code_off.is_empty() {
            return check(self.code.is_empty(), "score_code");
        }
        check(self.code_off.len() == rows + 1 && self.code_off[0] == 0, "score_code_offsets")?;
        check(self.code_off[rows] as usize == self.code.len(), "score_code_offsets")?;
        check(self.code_off.is_sorted(), "score_code_offsets")?;
        for row in 0..rows {
            let code = &self.code[self.code_off[row] as usize..self.code_off[row + 1] as usize];
            let good =
                code.is_empty() || length_if_sound(code, bits, true, MAX_DEPTH + 1) == Some(code.len());
            check(good, "score_code")?;
        }
        Ok(())
    }
}
