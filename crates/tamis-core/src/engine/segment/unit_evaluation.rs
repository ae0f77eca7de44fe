//! Runs the code of a unit, for one event or for many at once.
//!
//! The result of a test is a [`Truth`]: a bit for one event, a mask for a block of events. The code is the same (see
//! `program`), and so is its meaning. The difference is the way through it: one event takes one path (`one_path`), the events
//! of a block take several, each with its events (`many_paths`).

use super::layout::Layout;
use super::program::{CodeKind, Leaf, ODD, THRESHOLD};

/// A threshold has fewer leaves than this: an expression has no more predicates than half of it.
pub const MOST_COUNTED: usize = 1 << 17;

/// For which events something holds.
pub trait Truth: Copy {
    /// Whether there is one event.
    const IS_SINGLE: bool;
    const NEVER: Self;

    fn is_ever(&self) -> bool;
    fn and(&self, other: &Self) -> Self;
    fn or(&self, other: &Self) -> Self;
    fn and_not(&self, other: &Self) -> Self;

    /// The opposite if `flip`, computed without a branch.
    fn flipped_if(&self, flip: bool) -> Self;
}

impl Truth for bool {
    const IS_SINGLE: bool = true;
    const NEVER: bool = false;

    #[inline(always)]
    fn is_ever(&self) -> bool {
        *self
    }

    #[inline(always)]
    fn and(&self, other: &bool) -> bool {
        *self & *other
    }

    #[inline(always)]
    fn or(&self, other: &bool) -> bool {
        *self | *other
    }

    #[inline(always)]
    fn and_not(&self, other: &bool) -> bool {
        *self & !*other
    }

    #[inline(always)]
    fn flipped_if(&self, flip: bool) -> bool {
        *self ^ flip
    }
}

/// Events whose predicates are known, so that code can be run for them.
pub trait Evaluation<'a> {
    type Truth: Truth;

    fn layout(&self) -> &'a Layout;

    /// Those of `events` for which a test that is not a unit holds.
    fn test_bit(&self, leaf: Leaf, events: &Self::Truth) -> Self::Truth;

    /// The events for which a remembered unit holds, computed at most once.
    fn pull(&mut self, unit: u32) -> Self::Truth;

    /// Those of `events` for which all leaves hold.
    fn all_of(&mut self, leaves: &[u32], events: Self::Truth) -> Self::Truth;

    /// Those of `events` for which some leaf holds.
    fn any_of(&mut self, leaves: &[u32], events: Self::Truth) -> Self::Truth;

    /// Those of `events` that leaves with jumps accept.
    fn follow(&mut self, steps: &[[u32; 2]], events: Self::Truth) -> Self::Truth;

    /// Those of `events` for which a test holds.
    #[inline(always)]
    fn test(&mut self, leaf: Leaf, events: &Self::Truth) -> Self::Truth {
        match leaf.as_unit() {
            None => self.test_bit(leaf, events),
            Some(unit) => events.and(&self.pull(unit)),
        }
    }

    /// Those of `events` for which a unit holds.
    #[inline(always)]
    fn run(&mut self, unit: u32, events: Self::Truth) -> Self::Truth {
        let (kind, code) = self.layout().code_of(unit);
        match kind {
            CodeKind::Conjunction => self.all_of(code, events),
            CodeKind::Disjunction => self.any_of(code, events),
            CodeKind::Jumps => self.follow(code.as_chunks().0, events),
            CodeKind::Count if code[0] >= THRESHOLD => self.run_threshold(code, events),
            CodeKind::Count => {
                let (mut even, mut odd) = (events, Self::Truth::NEVER);
                for [when_true, when_false] in code[1..].as_chunks().0 {
                    let t = self.test(Leaf(*when_true), &events);
                    let f = self.test(Leaf(*when_false), &events);
                    (even, odd) = (even.and(&f).or(&odd.and(&t)), odd.and(&f).or(&even.and(&t)));
                }
                if code[0] == ODD { odd } else { even }
            }
        }
    }

    /// Those of `events` for which enough leaves hold.
    #[inline(never)]
    fn run_threshold(&mut self, code: &[u32], events: Self::Truth) -> Self::Truth {
        let (least, leaves) = ((code[0] - THRESHOLD) as usize, &code[1..]);
        if Self::Truth::IS_SINGLE {
            let (mut wanted, mut left) = (least, leaves.len());
            for leaf in leaves {
                if wanted == 0 || wanted > left || !events.is_ever() {
                    break;
                }
                left -= 1;
                wanted -= usize::from(self.test(Leaf(*leaf), &events).is_ever());
            }
            return if wanted == 0 { events } else { Self::Truth::NEVER };
        }
        // A counter for each event, bit by bit: the first mask has the ones, the next one the twos, and so on.
        let mut digits = [Self::Truth::NEVER; MOST_COUNTED.ilog2() as usize];
        let used = (leaves.len() + 1).next_power_of_two().ilog2().max(1) as usize;
        for leaf in leaves {
            let mut carry = self.test(Leaf(*leaf), &events);
            for digit in &mut digits[..used] {
                let both = digit.and(&carry);
                *digit = digit.or(&carry).and_not(&both);
                carry = both;
            }
        }
        // From the highest digit down: which counts are greater, and which are the same so far?
        if least >> used != 0 {
            return Self::Truth::NEVER;
        }
        let (mut greater, mut same) = (Self::Truth::NEVER, events);
        for (at, digit) in digits[..used].iter().enumerate().rev() {
            if least >> at & 1 == 1 {
                same = same.and(digit);
            } else {
                greater = greater.or(&same.and(digit));
                same = same.and_not(digit);
            }
        }
        greater.or(&same)
    }
}
