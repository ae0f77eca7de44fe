//! The scored segment tree: an interval is listed at the few nodes that it covers completely, so every interval
//! listed on the path of a value contains it. The list of a node is sorted by score, and those of a path are merged.
//!
//! ```text
//!                     ·
//!              ┌──────┴──────┐
//!             {1}           {2}
//!           ┌──┴──┐       ┌──┴──┐
//!           ·    {2}     {3}    ·
//! segments  0     1       2     3        1 covers 0 and 1, 2 covers 1 to 3, 3 covers 2
//! ```

use super::lists::Merged;
use super::{BestFirst, IntervalIndex, LAST, Scored, ScoredInterval, promise};

pub struct SegmentTree {
    /// Where segments begin, the first one aside: each low end, and the position after each high end. Sorted.
    starts: Vec<u64>,
    /// The root is 1, the children of n are 2n and 2n + 1, segment s is leaf `leaves + s`.
    leaves: usize,
    /// The notes of node n are from offset n to offset n + 1.
    offsets: Vec<u32>,
    notes: Vec<Scored>,
    intervals: usize,
}

impl SegmentTree {
    /// Intervals are sorted by score.
    pub fn new(intervals: &[ScoredInterval]) -> Self {
        let mut starts: Vec<u64> = intervals.iter().flat_map(ends).collect();
        starts.sort_unstable();
        starts.dedup();
        starts.shrink_to_fit();
        let leaves = (starts.len() + 1).next_power_of_two();
        let mut tree = Self { starts, leaves, offsets: vec![], notes: vec![], intervals: intervals.len() };
        let mut counts = vec![0u32; 2 * leaves + 1];
        for interval in intervals {
            tree.for_each_node(interval, |node| counts[node + 1] += 1);
        }
        for node in 1..counts.len() {
            counts[node] += counts[node - 1];
        }
        tree.offsets = counts;
        let mut next = tree.offsets.clone();
        let mut notes = vec![Scored { score: 0.0, id: 0 }; *next.last().expect("there is a root") as usize];
        for interval in intervals {
            tree.for_each_node(interval, |node| {
                notes[next[node] as usize] = interval.scored;
                next[node] += 1;
            });
        }
        tree.notes = notes;
        tree
    }

    fn segment(&self, at: u64) -> usize {
        self.starts.partition_point(|start| *start <= at)
    }

    /// The largest nodes that lie inside an interval.
    fn for_each_node(&self, interval: &ScoredInterval, mut visit: impl FnMut(usize)) {
        let mut first = self.leaves + self.segment(interval.extent.low);
        let mut end = self.leaves + self.segment(interval.extent.high) + 1;
        while first < end {
            if first % 2 == 1 {
                visit(first);
                first += 1;
            }
            if end % 2 == 1 {
                end -= 1;
                visit(end);
            }
            (first, end) = (first / 2, end / 2);
        }
    }

    fn notes_of(&self, node: usize) -> &[Scored] {
        &self.notes[self.offsets[node] as usize..self.offsets[node + 1] as usize]
    }
}

fn ends(interval: &ScoredInterval) -> impl Iterator<Item = u64> {
    let after = (interval.extent.high < LAST).then(|| interval.extent.high + 1);
    [interval.extent.low].into_iter().chain(after)
}

impl IntervalIndex for SegmentTree {
    fn stab(&self, at: u64) -> BestFirst<'_> {
        let leaf = self.leaves + self.segment(at);
        let path = std::iter::successors(Some(leaf), |node| Some(node / 2).filter(|parent| *parent > 0));
        Box::new(Merged::new(path.map(|node| self.notes_of(node).iter().copied())))
    }

    /// At most 2n + 1 segments; an interval at most twice a level, and never at two siblings.
    fn check(&self) -> Result<(), String> {
        promise!(self.starts.len() <= 2 * self.intervals, "{} segments", self.starts.len() + 1);
        promise!(self.starts.is_sorted_by(|a, b| a < b), "segments are sorted");
        let mut distinct = rustc_hash::FxHashSet::default();
        for level in 0..=self.leaves.ilog2() {
            let mut times = rustc_hash::FxHashMap::<i64, usize>::default();
            for node in 1 << level..2 << level {
                let notes = self.notes_of(node);
                promise!(notes.is_sorted_by(|a, b| a < b), "the notes of node {node} are sorted by score");
                for note in notes {
                    distinct.insert(note.id);
                    *times.entry(note.id).or_default() += 1;
                    let sibling = if node == 1 { &[] } else { self.notes_of(node ^ 1) };
                    promise!(!sibling.contains(note), "{note:?} is noted at node {node} and at its sibling");
                }
            }
            let most = times.values().max().copied().unwrap_or(0);
            promise!(most <= 2, "an interval is noted {most} times at level {level}");
        }
        promise!(distinct.len() == self.intervals, "{} intervals are noted", distinct.len());
        Ok(())
    }

    fn bytes(&self) -> usize {
        self.starts.capacity() * size_of::<u64>()
            + self.offsets.capacity() * size_of::<u32>()
            + self.notes.capacity() * size_of::<Scored>()
    }
}
