//! Scored interval indexes (Machanavajjhala et al. 2008): which of many intervals contain a value, the best
//! first.
//!
//! Every structure answers with an iterator in the order of scores (`getnext()` in the paper): a caller that wants
//! k takes k, and several attributes can be read side by side.
//!
//! | structure | file | memory | an answer of k costs | updates |
//! |---|---|---|---|---|
//! | scored segment tree | `segment_tree.rs` | n log n | one path and k | no |
//! | interval tree by score | `interval_tree.rs`, `by_score.rs` | n | all that are skipped on one path | yes |
//! | interval tree by endpoint | `interval_tree.rs`, `by_endpoint.rs` | n | all that contain the value | yes |
//! | IR-tree | `interval_tree.rs`, `scored_r_tree.rs` | n | no holes: one path and k times a depth | yes |
//! | scored R-tree | `scored_r_tree.rs` | n | the holes on the way | yes |
//! | SOPT-R-tree | `packed.rs`, `arrangement.rs` | n | at most 2k nodes a level | no |
//! | R-tree | `packed.rs` | n | all that contain the value | no |
//! | max-score R-tree | `packed.rs` | n | nodes whose best is good enough | no |
//!
//! `boxes.rs` combines one such index per attribute; `lists.rs` merges, intersects and adds up their answers.

mod arrangement;
mod boxes;
mod by_endpoint;
mod by_score;
mod interval_tree;
mod lists;
mod packed;
mod position;
mod scored_r_tree;
mod segment_tree;
mod structure;

#[cfg(test)]
mod tests;

use std::cmp::Ordering;

pub use boxes::{BoxIndex, Side, Sides};
pub use lists::{Intersection, Merged, RoundRobin};
pub use position::{ABSENT, LAST, position};
pub use structure::{STRUCTURES, Settings, Structure};

/// One result. The better of two is the lesser: higher score, then smaller id.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scored {
    pub score: f64,
    pub id: i64,
}

impl Eq for Scored {}

impl Ord for Scored {
    fn cmp(&self, other: &Self) -> Ordering {
        other.score.total_cmp(&self.score).then(self.id.cmp(&other.id))
    }
}

impl PartialOrd for Scored {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// A closed interval of positions (see `position.rs`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    pub low: u64,
    pub high: u64,
}

impl Extent {
    /// Holds nothing, and is no part of a hull.
    pub const NONE: Extent = Extent { low: u64::MAX, high: 0 };

    pub fn holds(self, at: u64) -> bool {
        self.low <= at && at <= self.high
    }

    pub fn hull(self, other: Extent) -> Extent {
        Extent { low: self.low.min(other.low), high: self.high.max(other.high) }
    }

    pub fn of(intervals: &[ScoredInterval]) -> Extent {
        intervals.iter().fold(Extent::NONE, |hull, interval| hull.hull(interval.extent))
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ScoredInterval {
    pub extent: Extent,
    pub scored: Scored,
}

impl ScoredInterval {
    pub fn holds(&self, at: u64) -> bool {
        self.extent.holds(at)
    }
}

/// Intervals that hold a position, the best first.
pub type BestFirst<'a> = Box<dyn Iterator<Item = Scored> + 'a>;

/// The law: `stab` gives exactly the intervals that hold the position, each once, the best first.
pub trait IntervalIndex: Send + Sync {
    fn stab(&self, at: u64) -> BestFirst<'_>;

    /// Whether the structure is as the paper promises; if not, what is wrong.
    fn check(&self) -> Result<(), String>;

    /// Its memory, including the intervals.
    fn bytes(&self) -> usize;

    /// How changes are made, if they can be.
    fn as_dynamic(&mut self) -> Option<&mut dyn Dynamic> {
        None
    }
}

/// A structure that takes changes one by one.
pub trait Dynamic {
    fn insert(&mut self, interval: ScoredInterval);

    /// Removes an interval that was inserted as it is given.
    fn remove(&mut self, interval: &ScoredInterval);
}

/// Ends a check with a reason unless a promise is kept.
macro_rules! promise {
    ($kept:expr, $($reason:tt)+) => {
        if !$kept {
            return Err(format!($($reason)+));
        }
    };
}
pub(crate) use promise;
