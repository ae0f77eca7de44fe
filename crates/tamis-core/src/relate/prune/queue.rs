//! Prunes many expressions: a queue of the best pruning of each, the best of all first.
//!
//! A rank is computed when an expression enters and after each of its prunings. Its inputs (how common predicates are, how
//! often they are true) may have changed when its turn comes: [`Execution`] says whether that matters.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

#[cfg(test)]
use super::measure::Measure;
use super::measure::{LeafFacts, Profile, Rank};
use super::options::{self, Layout, Pruning};
use super::{Options, Until};
use crate::expr::Expr;
use crate::relate::selectivity::Selectivities;
use crate::relate::tree::{Leaves, Tree};

/// What to do with a rank that has grown old.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Execution {
    /// Prune in the order of the ranks as they were computed.
    Strict,
    /// Compute the rank again; if it grew by more than this share, queue up again.
    StaticallyRestricted(f64),
    /// Compute the rank again; if another one is better now, queue up again.
    DynamicallyRestricted,
}

/// How often in a row an expression may queue up again.
const MOST_RETURNS: u32 = 8;

/// Expressions that are pruned together.
pub struct PruningQueue {
    options: Options,
    leaves: Leaves,
    selectivities: Selectivities,
    /// By leaf.
    selectivity: Vec<f64>,
    occurrence: Vec<u32>,
    entries: Vec<Option<Entry>>,
    free: Vec<usize>,
    queue: BinaryHeap<Reverse<(Rank, usize, u64)>>,
    /// The last version given to any entry. They are unique, because the number of an expression that was
    /// taken out is given to another, and the places of the former must be void for the latter.
    last_version: u64,
    bytes: usize,
    predicates: usize,
    layout: Layout,
}

struct Entry {
    tree: Tree,
    original: Profile,
    distance: u32,
    /// Of its place in the queue, 0 before the first; older places are void.
    version: u64,
    next: Option<Next>,
}

/// The preferred pruning.
enum Next {
    Remove(Vec<usize>),
    MakeTrue,
}

impl PruningQueue {
    pub fn new(options: Options, selectivities: Selectivities) -> Self {
        Self {
            options,
            leaves: Leaves::default(),
            selectivities,
            selectivity: vec![],
            occurrence: vec![],
            entries: vec![],
            free: vec![],
            queue: BinaryHeap::new(),
            last_version: 0,
            bytes: 0,
            predicates: 0,
            layout: Layout::default(),
        }
    }

    /// Adds an expression whose subscriber is `distance` hops away; returns the number by which it is
    /// known here.
    pub fn add(&mut self, expr: &Expr, distance: u32) -> usize {
        let entry = self.register(expr, distance);
        self.rank(entry);
        entry
    }

    /// Adds many, one hop away, numbered in their order if the queue was empty. All are ranked by what is
    /// known when all are there.
    pub fn add_many<'e>(&mut self, expressions: impl Iterator<Item = &'e Expr>) {
        let entries: Vec<usize> = expressions.map(|expr| self.register(expr, 1)).collect();
        for entry in entries {
            self.rank(entry);
        }
    }

    /// Takes an expression out, however much it was pruned. Returns whether it was there.
    pub fn remove(&mut self, entry: usize) -> bool {
        let Some(removed) = self.entries.get_mut(entry).and_then(Option::take) else {
            return false;
        };
        self.count(&removed.tree, false);
        self.free.push(entry);
        true
    }

    /// An expression as it is now.
    pub fn expression(&self, entry: usize) -> Option<Expr> {
        let entry = self.entries.get(entry)?.as_ref()?;
        Some(self.leaves.written(&entry.tree))
    }

    /// All expressions as they are now, in the order of their numbers.
    pub fn expressions(&self) -> Vec<Expr> {
        self.entries.iter().flatten().map(|entry| self.leaves.written(&entry.tree)).collect()
    }

    /// The bytes of all expressions: 5 for a predicate, 2 for an AND or OR.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The predicates of all expressions, repeated ones included.
    pub fn predicates(&self) -> usize {
        self.predicates
    }

    /// Replaces what is known of how often predicates are true. Ranks stay as they are until
    /// their turn, and what an expression was when it was added is not estimated again.
    pub fn learn(&mut self, selectivities: Selectivities) {
        self.selectivity = selectivities.of_leaves(&self.leaves, 0);
        self.selectivities = selectivities;
    }

    /// Prunes; returns how many prunings were done.
    pub fn prune(&mut self, until: Until) -> usize {
        let mut steps = 0;
        let mut returns = 0;
        while !match until {
            Until::Steps(most) => steps >= most,
            Until::Bytes(most) => self.bytes <= most,
            Until::Predicates(most) => self.predicates <= most,
        } {
            let Some(Reverse((rank, entry, version))) = self.queue.pop() else {
                break;
            };
            if self.entries[entry].as_ref().is_none_or(|entry| entry.version != version) {
                continue;
            }
            if self.options.execution != Execution::Strict && returns < MOST_RETURNS {
                // Computing it again puts it back into the queue, with what is preferred now.
                let now = self.rank(entry);
                if now.is_none_or(|now| self.must_wait(entry, &rank, &now)) {
                    returns += 1;
                    continue;
                }
            }
            returns = 0;
            self.execute(entry);
            steps += 1;
        }
        steps
    }

    /// Whether an expression that has just been ranked again must let others go first.
    fn must_wait(&self, entry: usize, old: &Rank, now: &Rank) -> bool {
        match self.options.execution {
            Execution::Strict => false,
            Execution::StaticallyRestricted(share) => now.value() > old.value() + old.value().abs() * share,
            Execution::DynamicallyRestricted => {
                self.queue.peek().is_some_and(|Reverse((_, best, _))| *best != entry)
            }
        }
    }

    fn register(&mut self, expr: &Expr, distance: u32) -> usize {
        let tree = self.leaves.tree(expr);
        let known = self.selectivity.len();
        if self.leaves.len() > known {
            self.selectivity.extend(self.selectivities.of_leaves(&self.leaves, known));
            self.occurrence.resize(self.leaves.len(), 0);
        }
        self.count(&tree, true);
        let entry = Entry { tree, original: Profile::TRUE, distance, version: 0, next: None };
        match self.free.pop() {
            Some(at) => {
                self.entries[at] = Some(entry);
                at
            }
            None => {
                self.entries.push(Some(entry));
                self.entries.len() - 1
            }
        }
    }

    /// Adds a tree to what is counted over all of them, or takes it out.
    fn count(&mut self, tree: &Tree, is_added: bool) {
        let bytes = options::bytes(tree);
        let mut predicates = 0;
        tree.for_each_leaf(&mut |leaf| {
            let occurrence = &mut self.occurrence[leaf.0 as usize];
            *occurrence = if is_added { *occurrence + 1 } else { *occurrence - 1 };
            predicates += 1;
        });
        if is_added {
            self.bytes += bytes;
            self.predicates += predicates;
        } else {
            self.bytes -= bytes;
            self.predicates -= predicates;
        }
    }

    /// Finds the preferred pruning of an expression, if there is one, and queues it up.
    fn rank(&mut self, at: usize) -> Option<Rank> {
        let entry = self.entries[at].as_mut().expect("an entry that is there");
        let is_new = entry.version == 0;
        self.last_version += 1;
        entry.version = self.last_version;
        entry.next = None;
        if matches!(entry.tree, Tree::True | Tree::False) {
            return None;
        }
        let facts = LeafFacts { selectivity: &self.selectivity, occurrence: &self.occurrence };
        self.layout.lay_out(&entry.tree, &facts);
        let before = self.layout.profile();
        if is_new {
            entry.original = before;
        }
        let Options { measure, to_true, .. } = self.options;
        let rank_of = |after: &Profile| Rank::new(measure, &entry.original, &before, after, entry.distance);
        let ranked = self.layout.prunings(measure).map(|pruning: Pruning| (rank_of(&pruning.after), pruning));
        let (rank, next) = match ranked.min_by_key(|(rank, _)| *rank) {
            Some((rank, pruning)) => (rank, Next::Remove(self.layout.path(&pruning))),
            None if to_true => (rank_of(&Profile::TRUE).as_last_resort(), Next::MakeTrue),
            None => return None,
        };
        entry.next = Some(next);
        self.queue.push(Reverse((rank, at, entry.version)));
        Some(rank)
    }

    fn execute(&mut self, at: usize) {
        let entry = self.entries[at].as_mut().expect("an entry that is there");
        let mut tree = std::mem::replace(&mut entry.tree, Tree::True);
        let next = entry.next.take().expect("what is queued up can be pruned");
        self.count(&tree, false);
        match next {
            Next::Remove(path) => options::remove(&mut tree, &path),
            Next::MakeTrue => tree = Tree::True,
        }
        self.count(&tree, true);
        self.entries[at].as_mut().expect("the same entry").tree = tree;
        self.rank(at);
    }
}

impl PruningQueue {
    /// The profile of an expression as it is now.
    #[cfg(test)]
    pub(super) fn profile(&mut self, at: usize) -> Profile {
        self.ranked(at, Measure::Accuracy);
        self.layout.profile()
    }

    /// The prunings of an expression as it is now, with their ranks, the best first.
    #[cfg(test)]
    pub(super) fn ranked(&mut self, at: usize, measure: Measure) -> Vec<(Rank, Vec<usize>, Profile)> {
        let entry = self.entries[at].as_ref().expect("an entry that is there");
        if matches!(entry.tree, Tree::True | Tree::False) {
            return vec![];
        }
        let facts = LeafFacts { selectivity: &self.selectivity, occurrence: &self.occurrence };
        self.layout.lay_out(&entry.tree, &facts);
        let before = self.layout.profile();
        let rank = |after: &Profile| Rank::new(measure, &entry.original, &before, after, entry.distance);
        let prunings = self.layout.prunings(measure);
        let mut all: Vec<_> = prunings.map(|p| (rank(&p.after), self.layout.path(&p), p.after)).collect();
        all.sort_by_key(|(rank, ..)| *rank);
        all
    }

    /// Says how often predicates occur in all.
    #[cfg(test)]
    pub(super) fn set_occurrences(&mut self, occurrence: &[u32]) {
        self.occurrence.copy_from_slice(occurrence);
    }
}
