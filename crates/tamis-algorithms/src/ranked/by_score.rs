//! The intervals of an interval-tree node as one list by score: those that do not contain the value are skipped.

use super::interval_tree::Held;
use super::{Extent, Scored, ScoredInterval, promise};

pub struct ByScore {
    intervals: Vec<ScoredInterval>,
    /// From the lowest to the highest end: a value outside need not look.
    extent: Extent,
}

/// A walk along the list.
pub struct Skipping<'a> {
    rest: std::slice::Iter<'a, ScoredInterval>,
    at: u64,
}

impl Iterator for Skipping<'_> {
    type Item = Scored;

    fn next(&mut self) -> Option<Scored> {
        self.rest.find(|interval| interval.holds(self.at)).map(|interval| interval.scored)
    }
}

impl Held for ByScore {
    type Stab<'a> = Skipping<'a>;

    fn new(intervals: Vec<ScoredInterval>, _: usize) -> Self {
        Self { extent: Extent::of(&intervals), intervals }
    }

    fn stab(&self, at: u64, _: u64) -> Skipping<'_> {
        let looked_at = if self.extent.holds(at) { &self.intervals[..] } else { &[] };
        Skipping { rest: looked_at.iter(), at }
    }

    fn insert(&mut self, interval: ScoredInterval) {
        let place = self.intervals.partition_point(|other| other.scored < interval.scored);
        self.intervals.insert(place, interval);
        self.extent = self.extent.hull(interval.extent);
    }

    fn remove(&mut self, interval: &ScoredInterval) {
        let place = self.intervals.binary_search_by_key(&interval.scored, |other| other.scored);
        self.intervals.remove(place.expect("only what was inserted is removed"));
        if interval.extent.low == self.extent.low || interval.extent.high == self.extent.high {
            self.extent = Extent::of(&self.intervals);
        }
    }

    fn collect(&self, into: &mut Vec<ScoredInterval>) {
        into.extend(&self.intervals);
    }

    fn heap_bytes(&self) -> usize {
        self.intervals.capacity() * size_of::<ScoredInterval>()
    }

    fn check(&self) -> Result<(), String> {
        promise!(self.intervals.is_sorted_by(|a, b| a.scored < b.scored), "a list is not sorted by score");
        promise!(self.extent == Extent::of(&self.intervals), "an extent is not that of its intervals");
        Ok(())
    }
}
