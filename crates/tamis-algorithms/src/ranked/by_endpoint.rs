//! The intervals of an interval-tree node as two lists, by low and by high end. All intervals that contain the
//! value, and no others, are read and then returned from a heap.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::interval_tree::Held;
use super::{Scored, ScoredInterval, promise};

pub struct ByEndpoint {
    /// An interval begins at `end`, ascending.
    lows: Vec<Entry>,
    /// An interval ends at `end`, descending.
    highs: Vec<Entry>,
}

#[derive(Clone, Copy, PartialEq)]
struct Entry {
    end: u64,
    scored: Scored,
}

/// The results, as a heap.
pub struct Popping(BinaryHeap<Reverse<Scored>>);

impl Iterator for Popping {
    type Item = Scored;

    fn next(&mut self) -> Option<Scored> {
        self.0.pop().map(|best| best.0)
    }
}

impl ByEndpoint {
    fn place_of_low(&self, low: u64, scored: Scored) -> usize {
        self.lows.partition_point(|entry| (entry.end, entry.scored) < (low, scored))
    }

    fn place_of_high(&self, high: u64, scored: Scored) -> usize {
        self.highs.partition_point(|entry| (Reverse(entry.end), entry.scored) < (Reverse(high), scored))
    }
}

impl Held for ByEndpoint {
    type Stab<'a> = Popping;

    fn new(intervals: Vec<ScoredInterval>, _: usize) -> Self {
        let entry = |end: u64, interval: &ScoredInterval| Entry { end, scored: interval.scored };
        let mut lows: Vec<Entry> = intervals.iter().map(|i| entry(i.extent.low, i)).collect();
        let mut highs: Vec<Entry> = intervals.iter().map(|i| entry(i.extent.high, i)).collect();
        lows.sort_unstable_by_key(|entry| (entry.end, entry.scored));
        highs.sort_unstable_by_key(|entry| (Reverse(entry.end), entry.scored));
        Self { lows, highs }
    }

    /// What begins before the middle and not after the value holds it, and so on the other side.
    fn stab(&self, at: u64, middle: u64) -> Popping {
        let held = if at <= middle {
            &self.lows[..self.lows.partition_point(|entry| entry.end <= at)]
        } else {
            &self.highs[..self.highs.partition_point(|entry| entry.end >= at)]
        };
        Popping(held.iter().map(|entry| Reverse(entry.scored)).collect::<Vec<_>>().into())
    }

    fn insert(&mut self, interval: ScoredInterval) {
        let ScoredInterval { extent, scored } = interval;
        self.lows.insert(self.place_of_low(extent.low, scored), Entry { end: extent.low, scored });
        self.highs.insert(self.place_of_high(extent.high, scored), Entry { end: extent.high, scored });
    }

    fn remove(&mut self, interval: &ScoredInterval) {
        let ScoredInterval { extent, scored } = *interval;
        let low = self.lows.remove(self.place_of_low(extent.low, scored));
        let high = self.highs.remove(self.place_of_high(extent.high, scored));
        assert!(low.scored == scored && high.scored == scored, "only what was inserted is removed");
    }

    fn collect(&self, into: &mut Vec<ScoredInterval>) {
        let mut highs: Vec<&Entry> = self.highs.iter().collect();
        let mut lows: Vec<&Entry> = self.lows.iter().collect();
        highs.sort_unstable_by_key(|entry| entry.scored);
        lows.sort_unstable_by_key(|entry| entry.scored);
        into.extend(lows.into_iter().zip(highs).map(|(low, high)| ScoredInterval {
            extent: super::Extent { low: low.end, high: high.end },
            scored: low.scored,
        }));
    }

    fn heap_bytes(&self) -> usize {
        (self.lows.capacity() + self.highs.capacity()) * size_of::<Entry>()
    }

    fn check(&self) -> Result<(), String> {
        promise!(self.lows.is_sorted_by_key(|entry| entry.end), "low ends do not ascend");
        promise!(self.highs.is_sorted_by_key(|entry| Reverse(entry.end)), "high ends do not descend");
        promise!(self.lows.len() == self.highs.len(), "an interval has no low or no high end");
        Ok(())
    }
}
