//! The matching half of a segment: flat arrays, the same in memory and in a snapshot.
//!
//! ```text
//! access_off   access key → its run in `entries`; keys are bits, then intervals
//! entries      (unit, test): look at the unit if the test holds; a flag says that it then holds, too
//! heads        unit → its code (with the code's kind in the two top bits), its run in `rows`, and
//!              its run in `entries`: the units that wait for it. All that is needed of a unit
//!              lies together, and runs end where those of the next head begin.
//! code         see `program`
//! rows         the subscriptions that hold when the unit does
//! ```
//!
//! Units that are reached in more than one way (several accesses, or as part of others) have the lowest
//! numbers, so that remembering their truth takes few bytes. The last of those are the single-row units: one
//! row each, and no unit waits for them, so their number is all that is needed once they hold. Units of each
//! kind are in the order of their access keys, so that units that fire together are adjacent.

use bytemuck::{Pod, Zeroable};

use super::program::{CodeKind, Leaf};
use crate::predicate::catalog::Catalog;
use crate::snapshot::SharedSlice;

const KIND_SHIFT: u32 = 30;
/// Entries per bound.
pub const BLOCK: usize = 64;
/// The largest code a segment can hold, in words.
pub const MAX_CODE: usize = 1 << KIND_SHIFT;

#[derive(Clone, Default)]
pub struct Layout {
    pub catalog: Catalog,
    pub access_off: SharedSlice<u32>,
    pub entries: SharedSlice<[u32; 2]>,
    /// For every block of entries, the highest priority that its units lead to; empty when all are 0.
    pub block_bounds: SharedSlice<f64>,
    /// One more than there are units.
    pub heads: SharedSlice<UnitHead>,
    pub code: SharedSlice<u32>,
    pub rows: SharedSlice<u32>,
    /// Units below this number are reached in several ways.
    pub remembered: u32,
    /// Units from this number up to `remembered` have one row each, and none waits for them.
    pub single_row: u32,
}

/// Where the parts of a unit begin.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct UnitHead {
    pub code: u32,
    pub rows: u32,
    /// In `entries`; the same for all units that are single-row or not remembered.
    pub waiting: u32,
}

/// In the unit of an entry: key and test together make the unit true.
pub const ACCEPTS: u32 = 1 << 31;

impl Layout {
    pub fn pack_code(offset: usize, kind: CodeKind) -> u32 {
        debug_assert!(offset < MAX_CODE);
        offset as u32 | (kind as u32) << KIND_SHIFT
    }

    pub fn code_kind(packed: u32) -> CodeKind {
        match packed >> KIND_SHIFT {
            0 => CodeKind::Conjunction,
            1 => CodeKind::Disjunction,
            2 => CodeKind::Jumps,
            _ => CodeKind::Count,
        }
    }

    pub fn code_of(&self, unit: u32) -> (CodeKind, &[u32]) {
        let (packed, next) = (self.heads[unit as usize].code, self.heads[unit as usize + 1].code);
        (Self::code_kind(packed), &self.code[code_place(packed)..code_place(next)])
    }

    /// What the code of a unit tests.
    #[inline(always)]
    pub fn leaves_of(&self, unit: u32) -> impl Iterator<Item = Leaf> + '_ {
        let (kind, code) = self.code_of(unit);
        let (first, step) = kind.leaf_words();
        code.iter().skip(first).step_by(step).map(|word| Leaf(*word))
    }

    pub fn units(&self) -> u32 {
        self.heads.len().saturating_sub(1) as u32
    }

    #[inline]
    pub fn rows_of(&self, unit: u32) -> &[u32] {
        if self.is_single_row(unit) {
            let row = (self.heads[self.single_row as usize].rows + unit - self.single_row) as usize;
            return &self.rows[row..row + 1];
        }
        &self.rows[self.heads[unit as usize].rows as usize..self.heads[unit as usize + 1].rows as usize]
    }

    #[inline]
    pub fn is_single_row(&self, unit: u32) -> bool {
        (self.single_row..self.remembered).contains(&unit)
    }

    /// Whether most entries lead to single-row units.
    #[inline]
    pub fn is_mostly_single_row(&self) -> bool {
        self.remembered - self.single_row > self.units() / 5 * 2
    }

    /// Whether evaluating a unit is likely to need others, because many are shared.
    #[inline]
    pub fn shares_much(&self) -> bool {
        self.single_row > self.units() / 16
    }

    pub fn entries_of(&self, from_key: u32, to_key: u32) -> std::ops::Range<usize> {
        self.access_off[from_key as usize] as usize..self.access_off[to_key as usize] as usize
    }

    /// The entries of the units that wait for this one.
    pub fn waiting_for(&self, unit: u32) -> std::ops::Range<usize> {
        self.heads[unit as usize].waiting as usize..self.heads[unit as usize + 1].waiting as usize
    }

    /// The number of access keys.
    pub fn keys(&self) -> u32 {
        self.access_off.len().saturating_sub(1) as u32
    }

    /// Bytes by part, the subscriptions' own data aside.
    pub fn bytes(&self) -> [(&'static str, usize); 4] {
        [
            ("predicates", self.catalog.bytes()),
            ("access", self.access_off.byte_len() + self.entries.byte_len()),
            ("code", self.heads.byte_len() + self.code.byte_len()),
            ("rows", self.rows.byte_len()),
        ]
    }
}

/// The offset in a packed code word.
pub fn code_place(packed: u32) -> usize {
    (packed & ((1 << KIND_SHIFT) - 1)) as usize
}
