//! The nodes that both trees share: c-nodes with their l-node and p-directory, and p-nodes.
//!
//! ```text
//! c-node ┬ l-node: conjunctions that are looked at one by one
//!        └ p-directory ┬ p-node of attribute a ─ c-directory ─► c-nodes
//!                      └ p-node of attribute b ─ c-directory ─► c-nodes
//! ```
//!
//! An event visits a c-node's l-node, and the p-nodes of the attributes it has; a c-directory (the part in which
//! the trees differ) leads it to the c-nodes whose conjunctions can be true for its value.

use super::held::Conjunction;
use super::rank::{Feedback, Loss, Summary};
use super::span::Span;
use crate::event::AttrId;

/// Partitions are nested at most this deep; below, l-nodes grow.
const MAX_DEPTH: usize = 64;

/// How the conjunctions of one p-node are clustered by their intervals on its attribute.
pub trait Directory: Default + Send + Sync {
    /// Whether nodes keep weight summaries for top-k.
    const IS_RANKED: bool;

    /// Conjunctions below.
    fn size(&self) -> usize;

    /// The last attribute of the path is the one that is clustered by.
    fn insert(&mut self, row: u32, path: &mut Path, store: &mut Store);

    /// Returns whether the row was here.
    fn remove(&mut self, row: u32, path: &mut Path, store: &mut Store) -> bool;

    /// Calls `reach` with every c-node that can hold a conjunction which meets the span.
    fn reach<'a>(&'a self, span: Span, reach: &mut dyn FnMut(&'a CNode<Self>));

    /// All c-nodes, wherever they lie.
    fn for_each<'a>(&'a self, visit: &mut dyn FnMut(&'a CNode<Self>));

    /// The smallest intervals around everything below, for the attributes of the path; `None` if nothing is.
    /// A directory that does not keep them computes them.
    fn bounds(&self, path: &[AttrId], store: &Store) -> Option<Bounds>;

    /// Panics unless everything that the paper promises of this directory holds.
    fn check(&self, path: &mut Path, store: &Store);

    /// Bytes of the directory itself, c-nodes included.
    fn bytes(&self) -> usize;
}

/// The attributes of the partitions that lead to a node.
pub type Path = Vec<AttrId>;

/// One interval for each attribute of a path; the last is the active dimension.
pub type Bounds = Vec<Span>;

/// What the tree holds, and where, apart from its nodes.
pub struct Store {
    pub conjunctions: Vec<Option<Conjunction>>,
    /// The partitions that lead to each row.
    pub paths: Vec<Box<[AttrId]>>,
    pub settings: Settings,
}

#[derive(Clone)]
pub struct Settings {
    /// Conjunctions in an l-node before it is divided.
    pub capacity: usize,
    pub loss: Loss,
    /// The least share of an overflowing bucket that each side of a split must get (α).
    pub min_share: f64,
    /// How much longer a bucket may become before a new one is put above it (β).
    pub max_growth: f64,
    pub exhaustive_split: bool,
}

impl Store {
    pub fn conjunction(&self, row: u32) -> &Conjunction {
        self.conjunctions[row as usize].as_ref().expect("rows in the tree are filled")
    }

    /// Where a row lies on an attribute of its path.
    pub fn span(&self, row: u32, attribute: AttrId) -> Span {
        self.conjunction(row).span(attribute).expect("a row is partitioned by attributes that it needs")
    }

    pub fn bounds(&self, row: u32, path: &[AttrId]) -> Bounds {
        path.iter().map(|attribute| self.span(row, *attribute)).collect()
    }
}

pub struct CNode<D> {
    /// The l-node.
    pub members: Vec<u32>,
    /// The p-directory, sorted by attribute.
    pub partitions: Vec<PNode<D>>,
    /// Of the l-node.
    pub summary: Summary,
    /// The attribute of a partition that events found useless.
    avoided: Option<AttrId>,
}

pub struct PNode<D> {
    pub attribute: AttrId,
    pub directory: D,
    pub feedback: Feedback,
    /// Of everything below.
    pub summary: Summary,
}

impl<D> Default for CNode<D> {
    fn default() -> Self {
        Self { members: vec![], partitions: vec![], summary: Summary::default(), avoided: None }
    }
}

impl<D: Directory> PNode<D> {
    fn new(attribute: AttrId) -> Self {
        let (directory, feedback) = (D::default(), Feedback::default());
        Self { attribute, directory, feedback, summary: Summary::default() }
    }

    /// Gain less loss: how many conjunctions have its predicate in common, less what it made events evaluate
    /// in vain.
    fn rank(&self) -> f64 {
        self.directory.size() as f64 - self.feedback.loss()
    }

    fn insert(&mut self, row: u32, path: &mut Path, store: &mut Store) {
        if D::IS_RANKED {
            self.summary.widen(store.conjunction(row));
        }
        path.push(self.attribute);
        self.directory.insert(row, path, store);
        path.pop();
    }
}

impl<D: Directory> CNode<D> {
    pub fn size(&self) -> usize {
        self.members.len() + self.partitions.iter().map(|pnode| pnode.directory.size()).sum::<usize>()
    }

    pub fn is_overflowing(&self, store: &Store) -> bool {
        self.members.len() > store.settings.capacity
    }

    /// Puts a row into the partition with the highest rank, or into the l-node where no partition fits.
    /// An l-node that overflows is for the caller to divide.
    pub fn insert(&mut self, row: u32, path: &mut Path, store: &mut Store) {
        self.recycle_useless(path, store);
        match self.best_partition(row, path, store) {
            Some(at) => self.partitions[at].insert(row, path, store),
            None => self.hold(row, path, store),
        }
    }

    /// Puts a row into the l-node.
    pub fn hold(&mut self, row: u32, path: &Path, store: &mut Store) {
        self.members.push(row);
        store.paths[row as usize] = path.as_slice().into();
        if D::IS_RANKED {
            self.summary.widen(store.conjunction(row));
        }
    }

    /// Takes all members out of the l-node.
    pub fn take_members(&mut self) -> Vec<u32> {
        self.summary.clear();
        std::mem::take(&mut self.members)
    }

    fn best_partition(&self, row: u32, path: &Path, store: &Store) -> Option<usize> {
        let dimensions = store.conjunction(row).dimensions();
        let unused = dimensions.iter().filter(|(attribute, _)| !path.contains(attribute));
        let places = unused.filter_map(|(attribute, _)| self.place(*attribute).ok());
        // Of equal ranks the first attribute wins.
        places.reduce(
            |best, next| {
                if self.partitions[next].rank() > self.partitions[best].rank() { next } else { best }
            },
        )
    }

    pub fn place(&self, attribute: AttrId) -> Result<usize, usize> {
        self.partitions.binary_search_by_key(&attribute, |pnode| pnode.attribute)
    }

    /// Moves conjunctions of an overflowing l-node into new partitions, the best attribute first, until it
    /// fits or no attribute is left.
    pub fn partition(&mut self, path: &mut Path, store: &mut Store) {
        while self.is_overflowing(store) && path.len() < MAX_DEPTH {
            let Some(attribute) = self.best_attribute(path, store) else { break };
            let has = |row: &u32| store.conjunction(*row).span(attribute).is_some();
            let (moving, staying): (Vec<u32>, Vec<u32>) = self.take_members().into_iter().partition(has);
            staying.into_iter().for_each(|row| self.hold(row, path, store));
            let at = self.place(attribute).unwrap_or_else(|at| {
                self.partitions.insert(at, PNode::new(attribute));
                at
            });
            moving.into_iter().for_each(|row| self.partitions[at].insert(row, path, store));
        }
    }

    fn best_attribute(&self, path: &Path, store: &Store) -> Option<AttrId> {
        let mut spans: Vec<(AttrId, Span)> = vec![];
        for &row in &self.members {
            let dimensions = store.conjunction(row).dimensions().iter();
            spans.extend(dimensions.filter(|(attribute, _)| !path.contains(attribute)));
        }
        spans.sort_unstable();
        let groups = spans.chunk_by(|a, b| a.0 == b.0);
        let ranked = groups.map(|group| {
            let of_attribute: Vec<Span> = group.iter().map(|(_, span)| *span).collect();
            (group[0].0, store.settings.loss.rank(&of_attribute))
        });
        // What was avoided comes last, but before nothing at all.
        let ranked = ranked.map(|(attribute, rank)| (self.avoided != Some(attribute), rank, attribute));
        let best = ranked.reduce(|best, next| if (next.0, next.1) > (best.0, best.1) { next } else { best });
        best.map(|(_, _, attribute)| attribute)
    }

    /// Reinserts the conjunctions of a partition whose rank fell below zero: events evaluate more predicates
    /// in vain there than it has conjunctions.
    fn recycle_useless(&mut self, path: &mut Path, store: &mut Store) {
        let is_useless = |pnode: &PNode<D>| pnode.feedback.is_settled() && pnode.rank() < 0.0;
        if let Some(at) = self.partitions.iter().position(is_useless) {
            self.avoided = Some(self.partitions[at].attribute);
            self.recycle(at, path, store);
        }
    }

    /// Takes a partition apart and inserts what it held again.
    fn recycle(&mut self, at: usize, path: &mut Path, store: &mut Store) {
        let pnode = self.partitions.remove(at);
        for row in rows(&pnode.directory) {
            match self.best_partition(row, path, store) {
                Some(at) => self.partitions[at].insert(row, path, store),
                None => self.hold(row, path, store),
            }
        }
        self.partition(path, store);
    }

    /// Returns whether the row was here. What became too small is merged or reinserted.
    pub fn remove(&mut self, row: u32, path: &mut Path, store: &mut Store) -> bool {
        let Some(&attribute) = store.paths[row as usize].get(path.len()) else {
            let Some(at) = self.members.iter().position(|member| *member == row) else { return false };
            self.members.swap_remove(at);
            self.summarize(store);
            self.merge(path, store);
            return true;
        };
        let Ok(at) = self.place(attribute) else { return false };
        path.push(attribute);
        let was_here = self.partitions[at].directory.remove(row, path, store);
        path.pop();
        if was_here {
            let size = self.partitions[at].directory.size();
            if size == 0 {
                self.partitions.remove(at);
            } else if size * 4 <= store.settings.capacity {
                self.recycle(at, path, store);
            }
            self.merge(path, store);
        }
        was_here
    }

    /// A node whose conjunctions fit into its l-node needs no partitions.
    fn merge(&mut self, path: &mut Path, store: &mut Store) {
        if !self.partitions.is_empty() && self.size() <= store.settings.capacity {
            for pnode in std::mem::take(&mut self.partitions) {
                rows(&pnode.directory).into_iter().for_each(|row| self.hold(row, path, store));
            }
        }
        if self.partitions.is_empty() {
            self.avoided = None;
        }
    }

    pub fn summarize(&mut self, store: &Store) {
        self.summary.clear();
        if D::IS_RANKED {
            self.members.iter().for_each(|row| self.summary.widen(store.conjunction(*row)));
        }
    }

    /// All rows at this node and below.
    pub fn collect(&self, found: &mut Vec<u32>) {
        found.extend(&self.members);
        for pnode in &self.partitions {
            pnode.directory.for_each(&mut |cnode| cnode.collect(found));
        }
    }

    /// The smallest intervals around everything at this node and below, for the attributes of the path.
    pub fn bounds(&self, path: &[AttrId], store: &Store) -> Option<Bounds> {
        let members = self.members.iter().map(|row| store.bounds(*row, path));
        let partitions = self.partitions.iter().filter_map(|pnode| {
            let path = [path, &[pnode.attribute]].concat();
            let mut bounds = pnode.directory.bounds(&path, store)?;
            bounds.pop();
            Some(bounds)
        });
        members.chain(partitions).reduce(hull)
    }

    /// Panics unless what both trees promise holds.
    pub fn check(&self, path: &mut Path, store: &Store) {
        let capacity = store.settings.capacity;
        for &row in &self.members {
            assert_eq!(*store.paths[row as usize], **path, "row {row} knows where it is");
            assert!(!D::IS_RANKED || self.summary.covers(store.conjunction(row)), "the l-node's bound holds");
            let dimensions = store.conjunction(row).dimensions();
            let unused = dimensions.iter().filter(|(attribute, _)| !path.contains(attribute)).count();
            assert!(
                !self.is_overflowing(store) || unused == 0 || path.len() == MAX_DEPTH,
                "an l-node overflows only where no attribute is left"
            );
        }
        assert!(self.partitions.is_empty() || self.size() > capacity, "small nodes are merged");
        assert!(self.partitions.is_sorted_by(|a, b| a.attribute < b.attribute));
        for pnode in &self.partitions {
            assert!(pnode.directory.size() > 0, "empty nodes are recycled");
            assert!(!path.contains(&pnode.attribute), "an attribute partitions once on a path");
            for row in rows(&pnode.directory) {
                let covered = !D::IS_RANKED || pnode.summary.covers(store.conjunction(row));
                assert!(covered, "the p-node's bound holds");
            }
            path.push(pnode.attribute);
            pnode.directory.check(path, store);
            path.pop();
        }
    }

    /// Bytes on the heap.
    pub fn bytes(&self) -> usize {
        let partitions = self.partitions.iter();
        self.members.capacity() * size_of::<u32>()
            + self.summary.bytes()
            + self.partitions.capacity() * size_of::<PNode<D>>()
            + partitions.map(|pnode| pnode.directory.bytes() + pnode.summary.bytes()).sum::<usize>()
    }
}

/// The smallest intervals around both.
pub fn hull(a: Bounds, b: Bounds) -> Bounds {
    a.into_iter().zip(b).map(|(a, b)| a.hull(b)).collect()
}

/// All rows of a directory.
pub fn rows<D: Directory>(directory: &D) -> Vec<u32> {
    let mut found = vec![];
    directory.for_each(&mut |cnode| cnode.collect(&mut found));
    found
}
