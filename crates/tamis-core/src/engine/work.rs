//! The cost of matching one event, and the unexpected values it found.

use crate::event::value::Kind;
use crate::term::TermId;

/// The bit that stands for a term. Terms may share one: then the first of them is told.
pub fn bit_of(term: TermId) -> u64 {
    1 << (term.0 % 64)
}

/// An attribute that has a value of a kind that no predicate on it expects.
#[derive(Clone, Debug, PartialEq)]
pub struct WrongKind {
    pub term: TermId,
    pub found: Kind,
    pub expected: Vec<Kind>,
}

/// The cost of one event.
#[derive(Clone, Copy, Default, Debug)]
pub struct Work {
    /// Entries of fired access keys.
    pub candidates: u64,
    /// Units that were looked at because an access fired; single-row ones that it proves need no look.
    pub evaluations: u64,
    /// Values of a kind that no predicate on their attribute expects.
    pub mismatches: u64,
    /// The terms that these values are on, a bit each; see [`bit_of`].
    pub wrong_terms: u64,
}

impl std::ops::AddAssign for Work {
    fn add_assign(&mut self, other: Self) {
        self.candidates += other.candidates;
        self.evaluations += other.evaluations;
        self.mismatches += other.mismatches;
        self.wrong_terms |= other.wrong_terms;
    }
}
