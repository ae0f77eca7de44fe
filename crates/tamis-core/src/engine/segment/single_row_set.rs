//! The single-row units that hold for one event, one bit each.
//!
//! A single-row unit has one row and no unit waits for it, so its number is all there is to know once it holds. A set
//! that fits into the cache replaces a visit to each unit, and returns them in the order of their rows.

use std::hint::select_unpredictable;
use std::ops::ControlFlow;

use super::layout::{ACCEPTS, Layout};
use super::walk::UnitCollector;

/// Open, it takes the single-row units of one layout; closed, it takes none.
pub struct SingleRowSet {
    first: u32,
    units: u32,
    /// The last [`SPARE`] ones are always empty: there a unit that does not belong here looks, to no effect, instead of taking a
    /// branch. With only one, each such look would wait for the one before.
    words: Vec<u64>,
}

const SPARE: usize = 8;

impl Default for SingleRowSet {
    fn default() -> Self {
        Self { first: 0, units: 0, words: vec![0; SPARE] }
    }
}

impl SingleRowSet {
    pub fn close(&mut self) {
        self.units = 0;
        self.words.clear();
        self.words.resize(SPARE, 0);
    }

    /// Empties the set and makes room for the single-row units of a layout.
    pub fn open(&mut self, layout: &Layout) {
        self.first = layout.single_row;
        self.units = layout.remembered - layout.single_row;
        self.words.clear();
        self.words.resize((self.units as usize).div_ceil(64) + SPARE, 0);
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

    /// Whether the unit belongs here and was inserted, without a branch.
    #[inline]
    pub fn has(&self, unit: u32) -> bool {
        let (word, bit, _) = self.place(unit);
        self.words[word] >> bit & 1 == 1
    }

    /// Inserts a unit that `holds`, if it belongs here; says whether it does. Without a branch.
    #[inline]
    pub fn insert_if(&mut self, unit: u32, holds: bool) -> bool {
        let (word, bit, is_here) = self.place(unit);
        self.words[word] |= ((holds & is_here) as u64) << bit;
        is_here
    }

    /// The same for the unit of an access entry, if it needs no more than the entry's test, which `holds` or not.
    #[inline]
    pub fn accept(&mut self, flagged_unit: u32, holds: bool) -> bool {
        // Without the flag, it becomes a number that no unit has.
        self.insert_if(flagged_unit ^ ACCEPTS, holds)
    }

    /// Takes the queued units, from a place on, that belong here and need no more than the test of their entry, which held.
    /// The others stay in the queue.
    pub fn settle(&mut self, queue: &mut Vec<u32>, from: usize) {
        let mut left = from;
        for at in from..queue.len() {
            let flagged_unit = queue[at];
            let is_settled = self.accept(flagged_unit, true);
            queue[left] = flagged_unit;
            left += !is_settled as usize;
        }
        queue.truncate(left);
    }

    /// The word and the bit of a unit, and whether it belongs here; if not, they are spare.
    #[inline]
    fn place(&self, unit: u32) -> (usize, u32, bool) {
        let place = unit.wrapping_sub(self.first);
        let is_here = place < self.units;
        let spare = self.words.len() - 1 - unit as usize % SPARE;
        (select_unpredictable(is_here, place as usize / 64, spare), place % 64, is_here)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_takes_what_is_flagged_and_belongs_here() {
        let layout = Layout { single_row: 10, remembered: 200, ..Layout::default() };
        let mut set = SingleRowSet::default();
        set.open(&layout);
        let mut queue =
            vec![ACCEPTS | 10, 10 | ACCEPTS, 11, ACCEPTS | 9, ACCEPTS | 199, ACCEPTS | 200, 199, 5];
        set.settle(&mut queue, 1);
        assert_eq!(queue, [ACCEPTS | 10, 11, ACCEPTS | 9, ACCEPTS | 200, 199, 5]);
        let found: Vec<u32> = (0..300).filter(|unit| set.has(*unit)).collect();
        assert_eq!(found, [10, 199]);
    }
}
