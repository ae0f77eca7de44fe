//! The single-row units that hold for one event, one bit each.
//!
//! A single-row unit has one row and no unit waits for it, so its number is all there is to know once it holds. A set
//! that fits into the cache replaces a visit to each unit, and returns them in the order of their rows.

use std::ops::ControlFlow;

use super::layout::{ACCEPTS, Layout};
use super::walk::UnitCollector;

/// Open, it takes the single-row units of one layout; closed, it takes none.
#[derive(Default)]
pub struct SingleRowSet {
    first: u32,
    units: u32,
    words: Vec<u64>,
}

impl SingleRowSet {
    pub fn close(&mut self) {
        self.units = 0;
        self.words.clear();
    }

    /// Empties the set and makes room for the single-row units of a layout.
    pub fn open(&mut self, layout: &Layout) {
        self.first = layout.single_row;
        self.units = layout.remembered - layout.single_row;
        self.words.clear();
        self.words.resize((self.units as usize).div_ceil(64), 0);
    }

    #[inline]
    pub fn is_closed(&self) -> bool {
        self.units == 0
    }

    /// Whether the unit belongs here.
    #[inline]
    pub fn takes(&self, unit: u32) -> bool {
        unit.wrapping_sub(self.first) < self.units
    }

    #[inline]
    pub fn has(&self, unit: u32) -> bool {
        let place = unit - self.first;
        self.words[place as usize / 64] >> (place % 64) & 1 == 1
    }

    #[inline]
    pub fn insert(&mut self, unit: u32) {
        let place = unit - self.first;
        self.words[place as usize / 64] |= 1 << (place % 64);
    }

    /// Whether the unit of an access entry belongs here and needs no more than the entry's test; if the test
    /// `holds` it is inserted. Without a branch, so the set must be open.
    #[inline]
    pub fn accept(&mut self, flagged_unit: u32, holds: bool) -> bool {
        let place = flagged_unit.wrapping_sub(self.first | ACCEPTS);
        let is_single_row = place < self.units;
        let place = if is_single_row { place } else { 0 };
        self.words[place as usize / 64] |= ((holds & is_single_row) as u64) << (place % 64);
        is_single_row
    }

    /// Adds the units of another set of the same layout.
    pub fn unite(&mut self, other: &Self) {
        for (word, more) in self.words.iter_mut().zip(&other.words) {
            *word |= more;
        }
    }

    /// Takes out units that `is_gone` says so of.
    pub fn remove(&mut self, is_gone: impl Fn(u32) -> bool) {
        for (at, word) in self.words.iter_mut().enumerate() {
            let mut rest = *word;
            while rest != 0 {
                let place = rest.trailing_zeros();
                *word &= !((is_gone(self.first + 64 * at as u32 + place) as u64) << place);
                rest &= rest - 1;
            }
        }
    }

    /// Hands the units over, in the order of their numbers.
    pub fn deliver(&self, collector: &mut impl UnitCollector, bits: &[u64]) -> ControlFlow<()> {
        for (at, word) in self.words.iter().enumerate() {
            if *word != 0 {
                collector.single_row(self.first + 64 * at as u32, *word, bits)?;
            }
        }
        ControlFlow::Continue(())
    }
}
