//! The matching half of a segment: flat arrays, the same in memory and in a snapshot.
//!
//! ```text
//! access_off   access key → its run in `entries`; keys are bits, then intervals, then units
//! entries      (unit, test): look at the unit if the test holds
//! code_off     unit → its code, with the code's kind in the two top bits
//! code         see `program`
//! rows_off     unit → its run in `rows`
//! rows         the subscriptions that hold when the unit does
//! ```
//!
//! Units that are reached in more than one way (several accesses, or as part of others) have the
//! lowest numbers, so that remembering what is known of them takes few bits. The rest follow in the
//! order of their access keys: what fires together lies together.

use super::program::CodeKind;
use crate::predicate::catalog::Catalog;
use crate::snapshot::Buffer;

const KIND_SHIFT: u32 = 30;
/// Entries per bound.
pub const BLOCK: usize = 64;
/// The largest code a segment can hold, in words.
pub const MAX_CODE: usize = 1 << KIND_SHIFT;

#[derive(Clone, Default)]
pub struct Layout {
    pub catalog: Catalog,
    pub access_off: Buffer<u32>,
    pub entries: Buffer<[u32; 2]>,
    /// For every block of entries, the highest priority that its units lead to; empty when all are 0.
    pub block_bounds: Buffer<f64>,
    pub code_off: Buffer<u32>,
    pub code: Buffer<u32>,
    pub rows_off: Buffer<u32>,
    pub rows: Buffer<u32>,
    /// Units below this number are reached in several ways.
    pub remembered: u32,
    /// The first access key that stands for a unit.
    pub first_unit_key: u32,
}

impl Layout {
    pub fn pack_code(offset: usize, kind: CodeKind) -> u32 {
        debug_assert!(offset < MAX_CODE);
        offset as u32 | (kind as u32) << KIND_SHIFT
    }

    pub fn code_of(&self, unit: u32) -> (CodeKind, &[u32]) {
        let (packed, next) = (self.code_off[unit as usize], self.code_off[unit as usize + 1]);
        let kind = match packed >> KIND_SHIFT {
            0 => CodeKind::Conjunction,
            1 => CodeKind::Jumps,
            2 => CodeKind::OddParity,
            _ => CodeKind::EvenParity,
        };
        let mask = (1 << KIND_SHIFT) - 1;
        (kind, &self.code[(packed & mask) as usize..(next & mask) as usize])
    }

    pub fn units(&self) -> u32 {
        self.code_off.len().saturating_sub(1) as u32
    }

    pub fn rows_of(&self, unit: u32) -> &[u32] {
        &self.rows[self.rows_off[unit as usize] as usize..self.rows_off[unit as usize + 1] as usize]
    }

    pub fn entries_of(&self, from_key: u32, to_key: u32) -> std::ops::Range<usize> {
        self.access_off[from_key as usize] as usize..self.access_off[to_key as usize] as usize
    }

    /// Bytes by part, the subscriptions' own data aside.
    pub fn bytes(&self) -> [(&'static str, usize); 4] {
        [
            ("predicates", self.catalog.bytes()),
            ("access", self.access_off.byte_len() + self.entries.byte_len()),
            ("code", self.code_off.byte_len() + self.code.byte_len()),
            ("rows", self.rows_off.byte_len() + self.rows.byte_len()),
        ]
    }
}
