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

use rustc_hash::FxHashMap;

use super::conjunction::Conjunction;
use super::rank::{Feedback, Loss};
use super::summary::{Bounding, Summary};
use crate::span::Span;
use tamis_core::event::TermId;

/// Partitions are nested at most this deep; below, l-nodes grow.
const MAX_DEPTH: usize = 64;

/// How the conjunctions of one p-node are clustered by their intervals on its attribute.
pub trait Directory: Default + Send + Sync {
    /// Whether nodes keep weight summaries for top-k.
    const IS_RANKED: bool;

    /// A directory of rows that are known in advance, which may be none.
    fn build(rows: Vec<u32>, path: &mut Path, store: &mut Store) -> Self;

    /// Conjunctions below.
    fn size(&self) -> usize;

    /// The most that one conjunction below weighs, if summaries are kept.
    fn most(&self) -> f64;

    /// The last attribute of the path is the one that is clustered by.
    fn insert(&mut self, row: u32, path: &mut Path, store: &mut Store);

    /// Returns whether the row was here.
    fn remove(&mut self, row: u32, path: &mut Path, store: &mut Store) -> bool;

    /// Calls `reach` with every c-node that can hold a conjunction which meets the span. Where summaries are kept,
    /// parts of the directory in which everything weighs less than `least_weight` may be left out.
    fn reach<'a>(&'a self, span: Span, least_weight: f64, reach: &mut dyn FnMut(&'a CNode<Self>));

    /// All c-nodes, wherever they lie.
    fn for_each<'a>(&'a self, visit: &mut dyn FnMut(&'a CNode<Self>));

    /// The smallest intervals around everything below, for the attributes of the path; `None` if nothing is.
    /// A directory that does not keep them computes them.
    fn bounds(&self, path: &[TermId], store: &Store) -> Option<Bounds>;

    /// Panics if a point would enter both sides of a bucket.
    #[cfg(test)]
    fn assert_one_side(&self, _point: Span) {}

    /// Panics unless everything that the paper promises of this directory holds.
    #[cfg(test)]
    fn check(&self, path: &mut Path, store: &Store);

    /// Bytes of the directory itself, c-nodes included.
    fn bytes(&self) -> usize;
}

/// The attributes of the partitions that lead to a node.
pub type Path = Vec<TermId>;

/// One interval for each attribute of a path.
#[derive(Clone, Debug, PartialEq)]
pub struct Bounds {
    /// Of the last attribute: it directs events.
    pub active: Span,
    /// Of those before.
    pub inactive: Box<[Span]>,
}

/// The contents of the tree and their places, apart from its nodes.
pub struct Store {
    pub conjunctions: Vec<Option<Conjunction>>,
    /// The partitions that lead to each row.
    pub paths: Vec<Box<[TermId]>>,
    /// How often a row was put into an l-node since the tree was empty: once when it came, and again whenever
    /// one was divided.
    pub moves: u64,
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
    pub bounding: Bounding,
    /// The number of bits of a finite domain that is halved as it is, without skipping empty cells.
    pub domain_bits: Option<u32>,
}

impl Store {
    pub fn conjunction(&self, row: u32) -> &Conjunction {
        self.conjunctions[row as usize].as_ref().expect("rows in the tree are filled")
    }

    /// Where a row lies on an attribute of its path.
    pub fn span(&self, row: u32, attribute: TermId) -> Span {
        self.conjunction(row).span(attribute).expect("a row is partitioned by attributes that it needs")
    }

    pub fn bounds(&self, row: u32, path: &[TermId]) -> Bounds {
        let (last, before) = path.split_last().expect("a directory has an attribute");
        let inactive = before.iter().map(|attribute| self.span(row, *attribute)).collect();
        Bounds { active: self.span(row, *last), inactive }
    }

    /// Whether a row could still be partitioned below a path.
    pub fn is_movable(&self, row: u32, path: &Path) -> bool {
        let dimensions = self.conjunction(row).dimensions();
        path.len() < MAX_DEPTH && dimensions.iter().any(|(attribute, _)| !path.contains(attribute))
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
    avoided: Option<TermId>,
}

pub struct PNode<D> {
    pub attribute: TermId,
    pub directory: D,
    pub feedback: Feedback,
    /// Of everything below.
    pub summary: Summary,
    /// Removals since the summary was made: they leave it higher than it need be.
    removals: usize,
}

impl<D> Default for CNode<D> {
    fn default() -> Self {
        Self { members: vec![], partitions: vec![], summary: Summary::default(), avoided: None }
    }
}

impl<D: Directory> PNode<D> {
    fn build(attribute: TermId, rows: Vec<u32>, path: &mut Path, store: &mut Store) -> Self {
        let mut summary = Summary::default();
        if D::IS_RANKED {
            rows.iter().for_each(|row| summary.widen(store.conjunction(*row)));
        }
        path.push(attribute);
        let directory = D::build(rows, path, store);
        path.pop();
        Self { attribute, directory, feedback: Feedback::default(), summary, removals: 0 }
    }

    /// Gain less loss: how many conjunctions have its predicate in common, less what it made events evaluate
    /// for nothing.
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

    fn remove(&mut self, row: u32, path: &mut Path, store: &mut Store) -> bool {
        path.push(self.attribute);
        let was_here = self.directory.remove(row, path, store);
        path.pop();
        self.removals += was_here as usize;
        // So seldom that a removal costs the same on average.
        if D::IS_RANKED && self.removals > self.directory.size() {
            self.summary.clear();
            rows(&self.directory).into_iter().for_each(|row| self.summary.widen(store.conjunction(row)));
            self.removals = 0;
        }
        was_here
    }
}

impl<D: Directory> CNode<D> {
    pub fn size(&self) -> usize {
        self.members.len() + self.partitions.iter().map(|pnode| pnode.directory.size()).sum::<usize>()
    }

    /// The most that one conjunction at this node or below weighs, if summaries are kept.
    pub fn most(&self) -> f64 {
        let partitions = self.partitions.iter().map(|pnode| pnode.directory.most());
        partitions.fold(self.summary.altogether(), f64::max)
    }

    pub fn is_overflowing(&self, store: &Store) -> bool {
        self.members.len() > store.settings.capacity
    }

    /// Puts a row into the partition with the highest rank, or into the l-node where no partition fits. Returns
    /// whether the l-node overflows by it, which is for the caller to divide.
    pub fn insert(&mut self, row: u32, path: &mut Path, store: &mut Store) -> bool {
        self.recycle_useless(path, store);
        match self.best_partition(row, path, store) {
            Some(at) => {
                self.partitions[at].insert(row, path, store);
                false
            }
            None => {
                self.hold(row, path, store);
                self.is_overflowing(store)
            }
        }
    }

    /// Partitions an l-node that overflows by a row. If it did before, everything else in it cannot be
    /// partitioned, and by another such row it only grows.
    pub fn partition_for(&mut self, row: u32, path: &mut Path, store: &mut Store) {
        let did_before = self.members.len() > store.settings.capacity + 1;
        if !did_before || store.is_movable(row, path) {
            self.partition(path, store);
        }
    }

    /// Puts a row into the l-node.
    pub fn hold(&mut self, row: u32, path: &Path, store: &mut Store) {
        self.members.push(row);
        store.moves += 1;
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

    pub fn place(&self, attribute: TermId) -> Result<usize, usize> {
        self.partitions.binary_search_by_key(&attribute, |pnode| pnode.attribute)
    }

    /// Moves conjunctions of an overflowing l-node into new partitions, the best attribute first, until it
    /// fits or no attribute is left.
    pub fn partition(&mut self, path: &mut Path, store: &mut Store) {
        if !self.is_overflowing(store) || path.len() >= MAX_DEPTH {
            return;
        }
        let mut staying = self.take_members();
        let mut popularity = popularity(&staying, path, store);
        while staying.len() > store.settings.capacity {
            let Some(attribute) = self.best_attribute(&staying, &popularity, store) else { break };
            let has = |row: &u32| store.conjunction(*row).span(attribute).is_some();
            let moving: Vec<u32> = staying.extract_if(.., |row| has(row)).collect();
            for row in &moving {
                for (attribute, _) in store.conjunction(*row).dimensions() {
                    if let Some(count) = popularity.get_mut(attribute) {
                        *count -= 1;
                    }
                }
            }
            match self.place(attribute) {
                Ok(at) => moving.into_iter().for_each(|row| self.partitions[at].insert(row, path, store)),
                Err(at) => self.partitions.insert(at, PNode::build(attribute, moving, path, store)),
            }
        }
        staying.into_iter().for_each(|row| self.hold(row, path, store));
    }

    fn best_attribute(
        &self,
        rows: &[u32],
        popularity: &FxHashMap<TermId, usize>,
        store: &Store,
    ) -> Option<TermId> {
        let loss = |attribute: TermId| match store.settings.loss {
            Loss::Popularity => 0.0,
            Loss::Selectivity => {
                let spans = rows.iter().filter_map(|row| store.conjunction(*row).span(attribute));
                store.settings.loss.estimate(&spans.collect::<Vec<_>>())
            }
        };
        // What was avoided comes last, but before nothing at all; of equal ranks the first attribute wins.
        let ranked = popularity.iter().filter(|(_, count)| **count > 0).map(|(attribute, count)| {
            let is_liked = self.avoided != Some(*attribute);
            (is_liked, *count as f64 - loss(*attribute), std::cmp::Reverse(*attribute))
        });
        let best = ranked.reduce(|best, next| if next > best { next } else { best });
        best.map(|(_, _, attribute)| attribute.0)
    }

    /// Reinserts the conjunctions of a partition whose rank fell below zero: events evaluate more predicates
    /// for nothing there than it has conjunctions.
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
        let was_here = self.partitions[at].remove(row, path, store);
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
    pub fn bounds(&self, path: &[TermId], store: &Store) -> Option<Bounds> {
        let members = self.members.iter().map(|row| store.bounds(*row, path));
        let partitions = self.partitions.iter().filter_map(|pnode| {
            let path = [path, &[pnode.attribute]].concat();
            let below = pnode.directory.bounds(&path, store)?;
            let (active, inactive) = below.inactive.split_last().expect("the path is longer below");
            Some(Bounds { active: *active, inactive: inactive.into() })
        });
        members.chain(partitions).reduce(hull)
    }

    /// Panics unless what both trees promise holds.
    #[cfg(test)]
    pub fn check(&self, path: &mut Path, store: &Store) {
        let capacity = store.settings.capacity;
        let mut summary = Summary::default();
        if D::IS_RANKED {
            self.members.iter().for_each(|row| summary.widen(store.conjunction(*row)));
        }
        assert_eq!(self.summary, summary, "the summary of an l-node is that of its members");
        for &row in &self.members {
            assert_eq!(*store.paths[row as usize], **path, "row {row} knows where it is");
            assert!(!D::IS_RANKED || self.summary.covers(store.conjunction(row)), "the l-node's bound holds");
            assert!(
                !self.is_overflowing(store) || !store.is_movable(row, path),
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
            let totals = rows(&pnode.directory).into_iter().map(|row| store.conjunction(row).total);
            let most = totals.fold(0.0, f64::max);
            assert!(!D::IS_RANKED || pnode.directory.most() == most, "the bound of a directory is exact");
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

/// How many of the rows could be partitioned by each attribute.
fn popularity(rows: &[u32], path: &Path, store: &Store) -> FxHashMap<TermId, usize> {
    let mut popularity: FxHashMap<TermId, usize> = FxHashMap::default();
    for &row in rows {
        for (attribute, _) in store.conjunction(row).dimensions() {
            *popularity.entry(*attribute).or_default() += 1;
        }
    }
    popularity.retain(|attribute, _| !path.contains(attribute));
    popularity
}

/// The smallest intervals around both.
pub fn hull(mut a: Bounds, b: Bounds) -> Bounds {
    a.active = a.active.hull(b.active);
    a.inactive.iter_mut().zip(&b.inactive).for_each(|(a, b)| *a = a.hull(*b));
    a
}

/// All rows of a directory.
pub fn rows<D: Directory>(directory: &D) -> Vec<u32> {
    let mut found = vec![];
    directory.for_each(&mut |cnode| cnode.collect(&mut found));
    found
}
