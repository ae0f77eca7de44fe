//! Interval trees: each node has a midpoint and the intervals that contain it; intervals entirely to the left
//! or to the right are below. A value follows one path, on which it finds all intervals that contain it.
//!
//! ```text
//!           middle 50: {1, 3, 10}
//!          ┌──────────┴───────────┐
//!   middle 20: {5, 6, 9}    middle 80: {2, 4, 7, 8}
//! ```
//!
//! The variants differ in how a node stores its intervals ([`Held`]): a list by score, two lists by endpoint,
//! or, in the IR-tree, a scored R-tree. Intervals that contain a common midpoint leave no holes between them,
//! so a search in the R-tree of a node always finds something.
//!
//! The paper claims updates but does not describe them. Here an interval goes to the first node on its path
//! whose midpoint it contains, or becomes a new leaf. A subtree is rebuilt when one side has become much
//! heavier than the other, or when half of its original intervals are gone. So the depth stays logarithmic,
//! and an update costs a logarithm on average.

use super::lists::Merged;
use super::{BestFirst, Dynamic, IntervalIndex, Scored, ScoredInterval, promise};

/// The intervals of one node, all of which hold its middle.
pub trait Held: Send + Sync + Sized {
    type Stab<'a>: Iterator<Item = Scored>
    where
        Self: 'a;

    /// Intervals are sorted by score.
    fn new(intervals: Vec<ScoredInterval>, branching: usize) -> Self;

    /// Those that hold a position, the best first.
    fn stab(&self, at: u64, middle: u64) -> Self::Stab<'_>;

    fn insert(&mut self, interval: ScoredInterval);

    fn remove(&mut self, interval: &ScoredInterval);

    fn collect(&self, into: &mut Vec<ScoredInterval>);

    fn heap_bytes(&self) -> usize;

    fn check(&self) -> Result<(), String>;
}

pub struct IntervalTree<H> {
    root: Option<Box<Node<H>>>,
    branching: usize,
}

struct Node<H> {
    middle: u64,
    held: H,
    /// Intervals here and below, now and when the subtree was built.
    size: usize,
    built: usize,
    below: [Option<Box<Node<H>>>; 2],
}

enum Place {
    Here,
    Below(usize),
}

/// A subtree of so few intervals is never rebuilt for balance.
const SMALL: usize = 8;

impl<H: Held> IntervalTree<H> {
    /// Intervals are sorted by score.
    pub fn new(intervals: Vec<ScoredInterval>, branching: usize) -> Self {
        Self { root: Node::new(intervals, branching), branching }
    }

    fn path(&self, at: u64) -> impl Iterator<Item = &Node<H>> {
        std::iter::successors(self.root.as_deref(), move |node| {
            if at == node.middle { None } else { node.below[(at > node.middle) as usize].as_deref() }
        })
    }
}

impl<H: Held> Node<H> {
    fn new(intervals: Vec<ScoredInterval>, branching: usize) -> Option<Box<Self>> {
        if intervals.is_empty() {
            return None;
        }
        let size = intervals.len();
        let middle = median_end(&intervals);
        let (mut here, mut left, mut right) = (vec![], vec![], vec![]);
        for interval in intervals {
            if interval.holds(middle) {
                here.push(interval);
            } else if interval.extent.high < middle {
                left.push(interval);
            } else {
                right.push(interval);
            }
        }
        here.shrink_to_fit();
        let below = [Self::new(left, branching), Self::new(right, branching)];
        Some(Box::new(Self { middle, held: H::new(here, branching), size, built: size, below }))
    }

    fn place(&self, interval: &ScoredInterval) -> Place {
        if interval.holds(self.middle) {
            Place::Here
        } else {
            Place::Below((interval.extent.low > self.middle) as usize)
        }
    }

    fn insert(&mut self, interval: ScoredInterval, branching: usize) {
        self.size += 1;
        match self.place(&interval) {
            Place::Here => self.held.insert(interval),
            Place::Below(side) => match &mut self.below[side] {
                Some(below) => {
                    below.insert(interval, branching);
                    rebalance(&mut self.below[side], branching);
                }
                empty => *empty = Self::new(vec![interval], branching),
            },
        }
    }

    fn remove(&mut self, interval: &ScoredInterval, branching: usize) {
        self.size -= 1;
        match self.place(interval) {
            Place::Here => self.held.remove(interval),
            Place::Below(side) => {
                let below = self.below[side].as_mut().expect("only what was inserted is removed");
                below.remove(interval, branching);
                rebalance(&mut self.below[side], branching);
            }
        }
    }

    /// A median of endpoints puts at most half of the intervals on either side; two thirds are let pass.
    fn is_worn(&self) -> bool {
        let heaviest = self.below.iter().flatten().map(|below| below.size).max().unwrap_or(0);
        self.size == 0 || self.size * 2 < self.built || self.size > SMALL && heaviest * 3 > self.size * 2
    }

    fn collect(&self, into: &mut Vec<ScoredInterval>) {
        self.held.collect(into);
        self.below.iter().flatten().for_each(|below| below.collect(into));
    }

    fn bytes(&self) -> usize {
        let below = self.below.iter().flatten().map(|below| below.bytes());
        size_of::<Self>() + self.held.heap_bytes() + below.sum::<usize>()
    }

    /// `between` is where all intervals of the subtree must lie.
    /// Returns the depth.
    fn check(&self, between: (u64, u64)) -> Result<usize, String> {
        let (low, high) = between;
        let mut here = vec![];
        self.held.collect(&mut here);
        let mut size = here.len();
        for interval in here {
            promise!(interval.holds(self.middle), "{interval:?} does not hold its middle {}", self.middle);
            let inside = low <= interval.extent.low && interval.extent.high <= high;
            promise!(inside, "{interval:?} should be above, it is beyond {between:?}");
        }
        self.held.check()?;
        promise!(!self.is_worn(), "a subtree of {} intervals is out of balance", self.size);
        let sides = [(low, self.middle.wrapping_sub(1)), (self.middle.wrapping_add(1), high)];
        let mut depth = 0;
        for (below, between) in self.below.iter().zip(sides) {
            if let Some(below) = below {
                depth = depth.max(below.check(between)?);
                size += below.size;
            }
        }
        promise!(size == self.size, "{size} intervals, {} counted", self.size);
        Ok(depth + 1)
    }
}

fn rebalance<H: Held>(subtree: &mut Option<Box<Node<H>>>, branching: usize) {
    if let Some(node) = subtree
        && node.is_worn()
    {
        let mut intervals = Vec::with_capacity(node.size);
        node.collect(&mut intervals);
        intervals.sort_unstable_by_key(|interval| interval.scored);
        *subtree = Node::new(intervals, branching);
    }
}

/// At most half of the endpoints are less, and at most half are greater.
fn median_end(intervals: &[ScoredInterval]) -> u64 {
    let mut ends: Vec<u64> = intervals.iter().flat_map(|i| [i.extent.low, i.extent.high]).collect();
    let half = ends.len() / 2;
    *ends.select_nth_unstable(half).1
}

impl<H: Held> IntervalIndex for IntervalTree<H> {
    fn stab(&self, at: u64) -> BestFirst<'_> {
        Box::new(Merged::new(self.path(at).map(move |node| node.held.stab(at, node.middle))))
    }

    fn check(&self) -> Result<(), String> {
        let Some(root) = &self.root else { return Ok(()) };
        let depth = root.check((u64::MIN, u64::MAX))?;
        // Every step leaves at most two thirds, until there are few.
        let most = (root.size as f64).log(1.5) as usize + SMALL + 1;
        promise!(depth <= most, "a depth of {depth} for {} intervals", root.size);
        Ok(())
    }

    fn bytes(&self) -> usize {
        self.root.as_ref().map_or(0, |root| root.bytes())
    }

    fn as_dynamic(&mut self) -> Option<&mut dyn Dynamic> {
        Some(self)
    }
}

impl<H: Held> Dynamic for IntervalTree<H> {
    fn insert(&mut self, interval: ScoredInterval) {
        match &mut self.root {
            Some(root) => root.insert(interval, self.branching),
            empty => *empty = Node::new(vec![interval], self.branching),
        }
        rebalance(&mut self.root, self.branching);
    }

    fn remove(&mut self, interval: &ScoredInterval) {
        self.root.as_mut().expect("only what was inserted is removed").remove(interval, self.branching);
        rebalance(&mut self.root, self.branching);
    }
}
