//! Runs the code of a unit, for one event or for many at once.
//!
//! The result of a test is a [`Truth`]: a bit for one event, a mask for a block of events. The code is the same (see
//! `program`), and so is its meaning. The difference is when to stop. One event ends a conjunction at the first false leaf
//! and follows one path through jumps. A mask reads all leaves without a branch, so that many memory accesses overlap, and
//! takes both paths, each with its events.

use super::layout::Layout;
use super::program::{ACCEPT, CodeKind, Leaf, ODD, REJECT, THRESHOLD};

/// A threshold has fewer leaves than this: an expression has no more predicates than half of it.
pub const MOST_COUNTED: usize = 1 << 17;

/// Where events go for which a unit does not hold: no leaf has that number.
pub const REJECTED: usize = usize::MAX;

/// For which events something holds.
pub trait Truth: Copy {
    /// Whether there is one event, whose first answer is the last.
    const IS_SINGLE: bool;
    const NEVER: Self;
    type Paths: Paths<Self>;

    fn is_ever(&self) -> bool;
    fn and(&self, other: &Self) -> Self;
    fn or(&self, other: &Self) -> Self;
    fn and_not(&self, other: &Self) -> Self;

    /// The opposite if `flip`, computed without a branch.
    fn flipped_if(&self, flip: bool) -> Self;
}

/// Which events have come to which leaf of a unit's code.
pub trait Paths<T> {
    /// Starts with all events at the first leaf. Returns a frame for the other calls.
    fn enter(&mut self, leaves: usize, events: T) -> usize;

    /// The events that have come to a leaf.
    fn at(&self, frame: usize, leaf: usize) -> T;

    /// Moves some events to the next leaf and the others to a target, which may be behind the last leaf
    /// (accepted) or [`REJECTED`]. Returns the leaf to look at next.
    fn split(&mut self, frame: usize, leaf: usize, goes_on: T, jumps: T, target: usize) -> usize;

    /// The events that were accepted; `leaf` is what the last split returned.
    fn leave(&mut self, frame: usize, leaf: usize, leaves: usize) -> T;
}

impl Truth for bool {
    const IS_SINGLE: bool = true;
    const NEVER: bool = false;
    type Paths = OnePath;

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

/// The path of one event: it is where the last split sent it.
pub struct OnePath;

impl Paths<bool> for OnePath {
    #[inline(always)]
    fn enter(&mut self, _: usize, _: bool) -> usize {
        0
    }

    #[inline(always)]
    fn at(&self, _: usize, _: usize) -> bool {
        true
    }

    #[inline(always)]
    fn split(&mut self, _: usize, leaf: usize, goes_on: bool, _: bool, target: usize) -> usize {
        if goes_on { leaf + 1 } else { target }
    }

    #[inline(always)]
    fn leave(&mut self, _: usize, leaf: usize, leaves: usize) -> bool {
        leaf == leaves
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

    fn paths(&mut self) -> &mut <Self::Truth as Truth>::Paths;

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
            CodeKind::Conjunction => {
                let mut left = events;
                for leaf in code {
                    left = self.test(Leaf(*leaf), &left);
                    if Self::Truth::IS_SINGLE && !left.is_ever() {
                        break;
                    }
                }
                left
            }
            CodeKind::Disjunction => {
                let mut found = Self::Truth::NEVER;
                for leaf in code {
                    found = found.or(&self.test(Leaf(*leaf), &events));
                    if Self::Truth::IS_SINGLE && found.is_ever() {
                        break;
                    }
                }
                found
            }
            CodeKind::Jumps => {
                let (steps, _) = code.as_chunks();
                let leaves = steps.len();
                let frame = self.paths().enter(leaves, events);
                let mut at = 0;
                while let Some(&[leaf, jump]) = steps.get(at) {
                    let here = self.paths().at(frame, at);
                    let true_here = self.test(Leaf(leaf), &here);
                    let goes_on = here.and(&true_here.flipped_if(jump & 1 == 0));
                    let jumps = here.and_not(&goes_on);
                    let target = match jump >> 1 {
                        ACCEPT => leaves,
                        REJECT => REJECTED,
                        target => target as usize,
                    };
                    at = self.paths().split(frame, at, goes_on, jumps, target);
                }
                self.paths().leave(frame, at, leaves)
            }
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
