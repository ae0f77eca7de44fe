//! The way of one event through the code of a unit.
//!
//! Which leaves hold is as good as random, so a branch that depends on it is mispredicted half of the time, and that takes as long as
//! ten tests. So leaves are tested a few at a time whether they matter or not, and what follows from a test is chosen without a branch.
//! Other units that the code asks for are evaluated only if they matter.
//!
//! ```text
//! (a AND b) OR c      at = 0    a: if at is 0, at = 1 or 2
//!                               b: if at is 1, at = ACCEPT or 2
//!                               c: if at is 2, at = 3, which accepts, or REJECT
//! ```

use std::hint::select_unpredictable;

use super::layout::Layout;
use super::matcher::OneEvent;
use super::program::{ACCEPT, Leaf};
use super::unit_evaluation::Evaluation;

/// Leaves that are tested before it is asked whether the others matter.
const AT_ONCE: usize = 8;

impl<'a> Evaluation<'a> for OneEvent<'a> {
    type Truth = bool;

    #[inline]
    fn layout(&self) -> &'a Layout {
        self.layout
    }

    /// Of interval values, what can't be known to be true may also be false.
    #[inline(always)]
    fn test_bit(&self, leaf: Leaf, _: &bool) -> bool {
        match self.point_bits() {
            Some(bits) => leaf.holds(bits),
            None => self.can_hold(leaf),
        }
    }

    fn pull(&mut self, unit: u32) -> bool {
        match self.memory.truth_of(unit) {
            Some(truth) => truth,
            None => {
                let truth = self.run(unit, true);
                self.memory.note_truth(unit, truth);
                truth
            }
        }
    }

    #[inline(always)]
    fn all_of(&mut self, leaves: &[u32], _: bool) -> bool {
        let bits = self.point_bits();
        leaves.chunks(AT_ONCE).all(|some| {
            let mut all = true;
            for leaf in some {
                all &= self.test_if(all, Leaf(*leaf), bits);
            }
            all
        })
    }

    #[inline(always)]
    fn any_of(&mut self, leaves: &[u32], _: bool) -> bool {
        let bits = self.point_bits();
        leaves.chunks(AT_ONCE).any(|some| {
            let mut any = false;
            for leaf in some {
                any |= self.test_if(!any, Leaf(*leaf), bits);
            }
            any
        })
    }

    #[inline(always)]
    fn follow(&mut self, steps: &[[u32; 2]], _: bool) -> bool {
        let bits = self.point_bits();
        let mut at = 0;
        while let Some(rest) = steps.get(at as usize..)
            && !rest.is_empty()
        {
            for (number, &[leaf, jump]) in (at..).zip(rest.iter().take(AT_ONCE)) {
                let is_here = at == number;
                let goes_on = self.test_if(is_here, Leaf(leaf), bits) == (jump & 1 == 1);
                let next = select_unpredictable(goes_on, number + 1, jump >> 1);
                at = select_unpredictable(is_here, next, at);
            }
        }
        at as usize == steps.len() || at == ACCEPT
    }
}

impl<'a> OneEvent<'a> {
    /// The bits that are all there is to tests, if all values are points.
    #[inline(always)]
    fn point_bits(&self) -> Option<&'a [u64]> {
        self.open.is_empty().then_some(self.bits)
    }

    /// A test whose result counts only if it `matters`, with the [`point_bits`](Self::point_bits).
    #[inline(always)]
    fn test_if(&mut self, matters: bool, leaf: Leaf, bits: Option<&[u64]>) -> bool {
        match (leaf.as_unit(), bits) {
            (Some(unit), _) => matters && self.pull(unit),
            (None, Some(bits)) => leaf.holds(bits),
            (None, None) => self.can_hold(leaf),
        }
    }

    /// A test of an event with interval values.
    #[cold]
    fn can_hold(&self, leaf: Leaf) -> bool {
        let is_open = || self.open.iter().any(|(from, to)| (*from..*to).contains(&leaf.bit()));
        leaf.holds(self.bits) || leaf.is_clear() && is_open()
    }
}
