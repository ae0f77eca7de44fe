//! The ways of many events through the code of a unit.
//!
//! If some events follow a jump and others do not, both paths are taken, each with its events. All leaves are read, without a
//! branch, so that many memory accesses overlap.

use super::bit_parallel::Mask;
use super::program::{ACCEPT, REJECT};
use super::unit_evaluation::Truth;

/// The masks of the events that have come to each leaf, and of those that were accepted: a frame for every unit that
/// is being evaluated, that of the innermost last.
#[derive(Default)]
pub struct ManyPaths(Vec<Mask>);

impl ManyPaths {
    /// Starts with all events at the first leaf. Returns a frame for the other calls.
    #[inline(always)]
    pub fn enter(&mut self, leaves: usize, events: Mask) -> usize {
        let frame = self.0.len();
        self.0.resize(frame + leaves + 1, Mask::NONE);
        self.0[frame] = events;
        frame
    }

    /// The events that have come to a leaf.
    #[inline(always)]
    pub fn at(&self, frame: usize, leaf: usize) -> Mask {
        self.0[frame + leaf]
    }

    /// Moves some events to the next leaf, behind the last of which they are accepted, and the others to a target.
    #[inline(always)]
    pub fn split(&mut self, frame: usize, leaf: usize, goes_on: Mask, jumps: Mask, target: u32) {
        let next = &mut self.0[frame + leaf + 1];
        *next = next.or(&goes_on);
        let place = match target {
            REJECT => return,
            ACCEPT => self.0.len() - 1,
            target => frame + target as usize,
        };
        self.0[place] = self.0[place].or(&jumps);
    }

    /// The events that were accepted.
    #[inline(always)]
    pub fn leave(&mut self, frame: usize, leaves: usize) -> Mask {
        let accepted = self.0[frame + leaves];
        self.0.truncate(frame);
        accepted
    }
}
