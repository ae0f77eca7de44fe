//! R-trees that are built once and never change: intervals in some order, b per node, levels as arrays.
//!
//! ```text
//! level 1 (root)   ────────────────
//! level 0          ───── ───── ────      extents
//! intervals        ..... ..... ....      in their order
//! ```
//!
//! *The SOPT-R-tree* has an order that respects the constraints of `arrangement.rs`: the walk from left to right
//! finds the best first, and of two nodes that it visits in succession on a level, at least one contains an
//! answer. *The R-tree* orders them by their start, so that nodes are narrow; all answers are found, then returned
//! from a heap. *The max-score R-tree* adds the best score below each node, and opens the most promising first.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::arrangement::{arrange, constraints};
use super::{BestFirst, Extent, IntervalIndex, Scored, ScoredInterval, promise};

struct Packed {
    /// In the order of the walk.
    intervals: Vec<ScoredInterval>,
    /// The extents of the nodes, leaves first; a node covers `branching` of the level below.
    levels: Vec<Vec<Extent>>,
    branching: usize,
}

impl Packed {
    fn new(intervals: Vec<ScoredInterval>, branching: usize) -> Self {
        let mut levels: Vec<Vec<Extent>> = vec![intervals.chunks(branching).map(Extent::of).collect()];
        while let Some(last) = levels.last()
            && last.len() > 1
        {
            let hull = |extents: &[Extent]| extents.iter().fold(Extent::NONE, |hull, next| hull.hull(*next));
            levels.push(last.chunks(branching).map(hull).collect());
        }
        Self { intervals, levels, branching }
    }

    /// What is below a node: places on the level below, which are intervals below level 0.
    fn below(&self, level: usize, node: usize) -> std::ops::Range<usize> {
        let most = if level == 0 { self.intervals.len() } else { self.levels[level - 1].len() };
        node * self.branching..most.min((node + 1) * self.branching)
    }

    fn walk(&self, at: u64) -> Walk<'_> {
        let top = self.levels.len() - 1;
        Walk { tree: self, at, open: vec![(top, 0..self.levels[top].len())], leaf: [].iter() }
    }

    fn bytes(&self) -> usize {
        let extents: usize = self.levels.iter().map(Vec::capacity).sum();
        self.intervals.capacity() * size_of::<ScoredInterval>() + extents * size_of::<Extent>()
    }

    fn check(&self) -> Result<(), String> {
        for (level, extents) in self.levels.iter().enumerate() {
            for (node, extent) in extents.iter().enumerate() {
                let below = self.below(level, node);
                promise!(!below.is_empty(), "node {node} of level {level} is empty");
                let hull = match level {
                    0 => Extent::of(&self.intervals[below]),
                    _ => {
                        self.levels[level - 1][below].iter().fold(Extent::NONE, |hull, next| hull.hull(*next))
                    }
                };
                promise!(*extent == hull, "the extent of node {node} of level {level} is wrong");
            }
        }
        Ok(())
    }
}

/// A walk from left to right.
struct Walk<'a> {
    tree: &'a Packed,
    at: u64,
    /// A level, and its nodes that are still to be looked at.
    open: Vec<(usize, std::ops::Range<usize>)>,
    leaf: std::slice::Iter<'a, ScoredInterval>,
}

impl Walk<'_> {
    /// Goes on to the next node that holds the value, and returns its level.
    #[inline]
    fn visit(&mut self) -> Option<usize> {
        loop {
            let (level, nodes) = self.open.last_mut()?;
            let (level, extents) = (*level, &self.tree.levels[*level]);
            let Some(node) = nodes.find(|node| extents[*node].holds(self.at)) else {
                self.open.pop();
                continue;
            };
            let below = self.tree.below(level, node);
            if level == 0 {
                self.leaf = self.tree.intervals[below].iter();
            } else {
                self.open.push((level - 1, below));
            }
            return Some(level);
        }
    }
}

impl Iterator for Walk<'_> {
    type Item = Scored;

    fn next(&mut self) -> Option<Scored> {
        loop {
            let at = self.at;
            if let Some(interval) = self.leaf.find(|interval| interval.holds(at)) {
                return Some(interval.scored);
            }
            self.visit()?;
        }
    }
}

/// The score-optimal R-tree.
pub struct SoptRTree(Packed);

impl SoptRTree {
    /// Intervals are sorted by score.
    pub fn new(intervals: Vec<ScoredInterval>, branching: usize) -> Self {
        Self(Packed::new(arrange(&intervals), branching))
    }

    /// At most 3n constraints, all respected.
    fn check_arrangement(&self) -> Result<(), String> {
        let arranged = &self.0.intervals;
        let mut sorted: Vec<(ScoredInterval, usize)> = arranged.iter().copied().zip(0..).collect();
        sorted.sort_unstable_by_key(|(interval, _)| interval.scored);
        let intervals: Vec<ScoredInterval> = sorted.iter().map(|(interval, _)| *interval).collect();
        let edges = constraints(&intervals);
        promise!(edges.len() <= 3 * arranged.len(), "{} edges of {} intervals", edges.len(), arranged.len());
        for (better, worse) in edges {
            let [better, worse] = [better, worse].map(|at| &sorted[at as usize]);
            promise!(better.1 < worse.1, "{:?} stands before {:?}", worse.0, better.0);
        }
        Ok(())
    }

    /// Theorem 3.2: an answer of k visits at most 2k nodes a level, for every k.
    fn check_visits(&self, at: u64) -> Result<(), String> {
        let mut walk = self.0.walk(at);
        let mut visited = vec![0; self.0.levels.len()];
        let mut found = 0;
        loop {
            // Those of a leaf follow without another visit.
            found += walk.leaf.by_ref().filter(|interval| interval.holds(at)).count();
            let Some(level) = walk.visit() else { return Ok(()) };
            visited[level] += 1;
            // On its way to the next answer.
            promise!(
                visited[level] <= 2 * (found + 1),
                "{} nodes of level {level} were visited for {} answers to {at}",
                visited[level],
                found + 1
            );
        }
    }
}

impl IntervalIndex for SoptRTree {
    fn stab(&self, at: u64) -> BestFirst<'_> {
        Box::new(self.0.walk(at))
    }

    fn check(&self) -> Result<(), String> {
        self.0.check()?;
        self.check_arrangement()?;
        // Every end and what lies beside it; a sample where there are many.
        let step = self.0.intervals.len() / 512 + 1;
        let extents = self.0.intervals.iter().step_by(step).map(|interval| interval.extent);
        extents.into_iter().try_for_each(|Extent { low, high }| {
            let beside = [low.saturating_sub(1), low, high, high.saturating_add(1)];
            beside.into_iter().try_for_each(|at| self.check_visits(at))
        })
    }

    fn bytes(&self) -> usize {
        self.0.bytes()
    }
}

/// The conventional R-tree.
pub struct PlainRTree(Packed);

impl PlainRTree {
    pub fn new(mut intervals: Vec<ScoredInterval>, branching: usize) -> Self {
        intervals.sort_unstable_by_key(|interval| (interval.extent.low, interval.extent.high));
        Self(Packed::new(intervals, branching))
    }
}

impl IntervalIndex for PlainRTree {
    fn stab(&self, at: u64) -> BestFirst<'_> {
        let mut found: BinaryHeap<_> = self.0.walk(at).map(Reverse).collect::<Vec<_>>().into();
        Box::new(std::iter::from_fn(move || found.pop().map(|best| best.0)))
    }

    fn check(&self) -> Result<(), String> {
        self.0.check()
    }

    fn bytes(&self) -> usize {
        self.0.bytes()
    }
}

/// The aggregate R-tree: each node knows the best score below it.
pub struct MaxScoreRTree {
    packed: Packed,
    /// By level and node, like the extents.
    best: Vec<Vec<f64>>,
}

impl MaxScoreRTree {
    pub fn new(intervals: Vec<ScoredInterval>, branching: usize) -> Self {
        let packed = PlainRTree::new(intervals, branching).0;
        let mut best: Vec<Vec<f64>> = vec![];
        for level in 0..packed.levels.len() {
            let best_below = |node: usize| {
                let below = packed.below(level, node);
                match level {
                    0 => greatest(packed.intervals[below].iter().map(|interval| interval.scored.score)),
                    _ => greatest(best[level - 1][below].iter().copied()),
                }
            };
            let of_level = (0..packed.levels[level].len()).map(best_below).collect();
            best.push(of_level);
        }
        Self { packed, best }
    }
}

fn greatest(scores: impl Iterator<Item = f64>) -> f64 {
    scores.fold(f64::NEG_INFINITY, f64::max)
}

/// What waits to be opened or given out, the most promising first.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Waiting {
    /// The score, or the best score below; the id is not used.
    bound: Scored,
    what: What,
}

/// Of equal bounds nodes come first: they may hold smaller ids.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum What {
    Node { level: usize, place: usize },
    Interval { id: i64 },
}

impl MaxScoreRTree {
    fn waiting(&self, level: usize, place: usize) -> Reverse<Waiting> {
        let bound = Scored { score: self.best[level][place], id: 0 };
        Reverse(Waiting { bound, what: What::Node { level, place } })
    }
}

impl IntervalIndex for MaxScoreRTree {
    fn stab(&self, at: u64) -> BestFirst<'_> {
        let Packed { intervals, levels, .. } = &self.packed;
        let top = levels.len() - 1;
        let reached = move |level: usize, places: std::ops::Range<usize>| {
            places
                .filter(move |place| levels[level][*place].holds(at))
                .map(move |place| self.waiting(level, place))
        };
        let mut waiting: BinaryHeap<Reverse<Waiting>> = reached(top, 0..levels[top].len()).collect();
        Box::new(std::iter::from_fn(move || {
            loop {
                let Reverse(Waiting { bound, what }) = waiting.pop()?;
                match what {
                    What::Interval { id } => return Some(Scored { score: bound.score, id }),
                    What::Node { level: 0, place } => {
                        let held = intervals[self.packed.below(0, place)].iter().filter(|i| i.holds(at));
                        waiting.extend(held.map(|interval| {
                            let Scored { score, id } = interval.scored;
                            Reverse(Waiting { bound: Scored { score, id: 0 }, what: What::Interval { id } })
                        }));
                    }
                    What::Node { level, place } => {
                        waiting.extend(reached(level - 1, self.packed.below(level, place)));
                    }
                }
            }
        }))
    }

    /// A bound is the best score below its node.
    fn check(&self) -> Result<(), String> {
        let Self { packed, best } = self;
        packed.check()?;
        for (level, bounds) in best.iter().enumerate() {
            let covered = packed.branching.pow(level as u32 + 1);
            for (intervals, bound) in packed.intervals.chunks(covered).zip(bounds) {
                let score = greatest(intervals.iter().map(|interval| interval.scored.score));
                promise!(*bound == score, "the bound {bound} of level {level} should be {score}");
            }
        }
        Ok(())
    }

    fn bytes(&self) -> usize {
        self.packed.bytes() + self.best.iter().map(Vec::capacity).sum::<usize>() * size_of::<f64>()
    }
}
