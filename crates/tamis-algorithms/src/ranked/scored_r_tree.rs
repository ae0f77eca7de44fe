//! The scored R-tree: intervals in the order of their scores, b per node, each node with the extent of all
//! intervals below it. A search goes from left to right, so the best come first.
//!
//! ```text
//! root   [0, 100]                [10, 95]
//! leaf   1: [30, 55]  2: [65, 90]    3: [45, 55]  4: [65, 90] ...      scores fall from left to right
//! ```
//!
//! A node groups intervals from everywhere, so none of them may contain a value inside its extent: a
//! *hole*. Intervals that all contain a common position have no holes; an IR-tree has such a set at each of its
//! nodes.
//!
//! It is updated like a B-tree: nodes have b/2 to b children, full nodes are split in half, sparse ones
//! borrow from a neighbour.

use super::interval_tree::Held;
use super::{BestFirst, Dynamic, Extent, IntervalIndex, Scored, ScoredInterval, promise};

pub struct ScoredRTree {
    root: Node,
    extent: Extent,
    branching: u32,
}

enum Node {
    Leaf(Vec<ScoredInterval>),
    Inner(Vec<Child>),
}

struct Child {
    extent: Extent,
    /// The worst below it.
    last: Scored,
    node: Box<Node>,
}

impl ScoredRTree {
    /// Intervals are sorted by score.
    pub fn new(intervals: Vec<ScoredInterval>, branching: usize) -> Self {
        let extent = Extent::of(&intervals);
        let mut tree = Self { root: Node::Leaf(vec![]), extent, branching: branching as u32 };
        if intervals.len() <= branching {
            tree.root = Node::Leaf(intervals);
            return tree;
        }
        let leaves = even_parts(intervals, branching);
        let mut level: Vec<Child> = leaves.into_iter().map(|part| Child::new(Node::Leaf(part))).collect();
        while level.len() > branching {
            let parts = even_parts(level, branching);
            level = parts.into_iter().map(|part| Child::new(Node::Inner(part))).collect();
        }
        tree.root = Node::Inner(level);
        tree
    }

    pub fn search(&self, at: u64) -> Search<'_> {
        let mut search = Search { at, open: vec![], leaf: [].iter() };
        if self.extent.holds(at) {
            search.enter(&self.root);
        }
        search
    }
}

/// As few parts of at most `most` as there can be, all about equally long.
fn even_parts<T>(items: Vec<T>, most: usize) -> Vec<Vec<T>> {
    let (length, count) = (items.len(), items.len().div_ceil(most));
    let mut items = items.into_iter();
    (0..count)
        .map(|part| items.by_ref().take((part + 1) * length / count - part * length / count).collect())
        .collect()
}

impl Child {
    fn new(node: Node) -> Self {
        let mut child =
            Self { extent: Extent::NONE, last: Scored { score: 0.0, id: 0 }, node: Box::new(node) };
        child.summarize();
        child
    }

    fn summarize(&mut self) {
        self.extent = self.node.extent();
        self.last = match &*self.node {
            Node::Leaf(intervals) => intervals.last().map_or(self.last, |interval| interval.scored),
            Node::Inner(children) => children.last().map_or(self.last, |child| child.last),
        };
    }
}

impl Node {
    fn len(&self) -> usize {
        match self {
            Node::Leaf(intervals) => intervals.len(),
            Node::Inner(children) => children.len(),
        }
    }

    fn extent(&self) -> Extent {
        match self {
            Node::Leaf(intervals) => Extent::of(intervals),
            Node::Inner(children) => {
                children.iter().fold(Extent::NONE, |hull, child| hull.hull(child.extent))
            }
        }
    }

    /// Inserts, and returns the second half if there is one too many.
    fn insert(&mut self, interval: ScoredInterval, branching: usize) -> Option<Node> {
        match self {
            Node::Leaf(intervals) => {
                let place = intervals.partition_point(|other| other.scored < interval.scored);
                intervals.insert(place, interval);
            }
            Node::Inner(children) => {
                let place = child_for(children, interval.scored);
                let half = children[place].node.insert(interval, branching);
                children[place].summarize();
                if let Some(half) = half {
                    children.insert(place + 1, Child::new(half));
                }
            }
        }
        (self.len() > branching).then(|| self.cut(self.len() / 2))
    }

    fn remove(&mut self, interval: &ScoredInterval, branching: usize) {
        match self {
            Node::Leaf(intervals) => {
                let place = intervals.binary_search_by_key(&interval.scored, |other| other.scored);
                intervals.remove(place.expect("only what was inserted is removed"));
            }
            Node::Inner(children) => {
                let place = child_for(children, interval.scored);
                children[place].node.remove(interval, branching);
                let left = children[place].node.len();
                if left == 0 {
                    children.remove(place);
                } else if left < branching / 2 && children.len() > 1 {
                    share(children, place.min(children.len() - 2), branching);
                } else {
                    children[place].summarize();
                }
            }
        }
    }

    /// Keeps the first children and returns the others.
    fn cut(&mut self, kept: usize) -> Node {
        match self {
            Node::Leaf(intervals) => Node::Leaf(intervals.split_off(kept)),
            Node::Inner(children) => Node::Inner(children.split_off(kept)),
        }
    }

    fn append(&mut self, next: Node) {
        match (self, next) {
            (Node::Leaf(intervals), Node::Leaf(mut next)) => intervals.append(&mut next),
            (Node::Inner(children), Node::Inner(mut next)) => children.append(&mut next),
            _ => unreachable!("all leaves have the same depth"),
        }
    }

    fn collect(&self, into: &mut Vec<ScoredInterval>) {
        match self {
            Node::Leaf(intervals) => into.extend(intervals),
            Node::Inner(children) => children.iter().for_each(|child| child.node.collect(into)),
        }
    }

    fn heap_bytes(&self) -> usize {
        match self {
            Node::Leaf(intervals) => intervals.capacity() * size_of::<ScoredInterval>(),
            Node::Inner(children) => {
                let below = children.iter().map(|child| size_of::<Node>() + child.node.heap_bytes());
                children.capacity() * size_of::<Child>() + below.sum::<usize>()
            }
        }
    }

    /// Checks what is below a node, and returns its depth.
    fn check(&self, branching: usize, is_root: bool) -> Result<usize, String> {
        let fewest = if is_root { 0 } else { (branching / 2).max(1) };
        promise!((fewest..=branching).contains(&self.len()), "a node has {} children", self.len());
        let Node::Inner(children) = self else { return Ok(0) };
        promise!(!is_root || children.len() > 1, "an inner root has a single child");
        let mut depths = vec![];
        for child in children {
            depths.push(child.node.check(branching, false)?);
            promise!(child.extent == child.node.extent(), "an extent is not that of what is below");
            let mut below = vec![];
            child.node.collect(&mut below);
            promise!(below.last().map(|i| i.scored) == Some(child.last), "the last of a child is another");
        }
        promise!(depths.iter().all(|depth| *depth == depths[0]), "leaves have different depths");
        Ok(depths[0] + 1)
    }

    /// Lemma 3.1: every position of an extent is held by an interval below it.
    fn check_no_holes(&self) -> Result<(), String> {
        let mut below = vec![];
        self.collect(&mut below);
        below.sort_unstable_by_key(|interval| interval.extent.low);
        let mut reached = below.first().map_or(0, |interval| interval.extent.high);
        for interval in &below {
            promise!(interval.extent.low <= reached, "there is a hole before {interval:?}");
            reached = reached.max(interval.extent.high);
        }
        let Node::Inner(children) = self else { return Ok(()) };
        children.iter().try_for_each(|child| child.node.check_no_holes())
    }
}

/// The child in whose range a score falls; the last one takes what is worse than all.
fn child_for(children: &[Child], scored: Scored) -> usize {
    children.partition_point(|child| child.last < scored).min(children.len() - 1)
}

/// Makes one node, or two equal ones, of a child and the next.
fn share(children: &mut Vec<Child>, place: usize, branching: usize) {
    let next = children.remove(place + 1);
    let node = &mut children[place].node;
    node.append(*next.node);
    let half = (node.len() > branching).then(|| node.cut(node.len() / 2));
    children[place].summarize();
    if let Some(half) = half {
        children.insert(place + 1, Child::new(half));
    }
}

/// A walk from left to right.
pub struct Search<'a> {
    at: u64,
    /// The children still to be looked at, level by level.
    open: Vec<std::slice::Iter<'a, Child>>,
    leaf: std::slice::Iter<'a, ScoredInterval>,
}

impl<'a> Search<'a> {
    fn enter(&mut self, node: &'a Node) {
        match node {
            Node::Leaf(intervals) => self.leaf = intervals.iter(),
            Node::Inner(children) => self.open.push(children.iter()),
        }
    }
}

impl Iterator for Search<'_> {
    type Item = Scored;

    fn next(&mut self) -> Option<Scored> {
        loop {
            let at = self.at;
            if let Some(interval) = self.leaf.find(|interval| interval.holds(at)) {
                return Some(interval.scored);
            }
            match self.open.last_mut()?.find(|child| child.extent.holds(at)) {
                Some(child) => self.enter(&child.node),
                None => {
                    self.open.pop();
                }
            }
        }
    }
}

impl Dynamic for ScoredRTree {
    fn insert(&mut self, interval: ScoredInterval) {
        self.extent = self.extent.hull(interval.extent);
        if let Some(half) = self.root.insert(interval, self.branching as usize) {
            let first = std::mem::replace(&mut self.root, Node::Leaf(vec![]));
            self.root = Node::Inner(vec![Child::new(first), Child::new(half)]);
        }
    }

    fn remove(&mut self, interval: &ScoredInterval) {
        self.root.remove(interval, self.branching as usize);
        while let Node::Inner(children) = &mut self.root
            && children.len() < 2
        {
            self.root = children.pop().map_or(Node::Leaf(vec![]), |only| *only.node);
        }
        self.extent = self.root.extent();
    }
}

impl ScoredRTree {
    fn check_order(&self) -> Result<(), String> {
        let mut all = vec![];
        self.root.collect(&mut all);
        promise!(all.is_sorted_by(|a, b| a.scored < b.scored), "leaves are not sorted by score");
        promise!(self.extent == self.root.extent(), "the extent of the root is wrong");
        self.root.check(self.branching as usize, true).map(|_| ())
    }
}

impl IntervalIndex for ScoredRTree {
    fn stab(&self, at: u64) -> BestFirst<'_> {
        Box::new(self.search(at))
    }

    fn check(&self) -> Result<(), String> {
        self.check_order()
    }

    fn bytes(&self) -> usize {
        size_of::<Self>() + self.root.heap_bytes()
    }

    fn as_dynamic(&mut self) -> Option<&mut dyn Dynamic> {
        Some(self)
    }
}

impl Held for ScoredRTree {
    type Stab<'a> = Search<'a>;

    fn new(intervals: Vec<ScoredInterval>, branching: usize) -> Self {
        Self::new(intervals, branching)
    }

    fn stab(&self, at: u64, _: u64) -> Search<'_> {
        self.search(at)
    }

    fn insert(&mut self, interval: ScoredInterval) {
        Dynamic::insert(self, interval);
    }

    fn remove(&mut self, interval: &ScoredInterval) {
        Dynamic::remove(self, interval);
    }

    fn collect(&self, into: &mut Vec<ScoredInterval>) {
        self.root.collect(into);
    }

    fn heap_bytes(&self) -> usize {
        self.root.heap_bytes()
    }

    fn check(&self) -> Result<(), String> {
        self.check_order()?;
        self.root.check_no_holes()
    }
}
