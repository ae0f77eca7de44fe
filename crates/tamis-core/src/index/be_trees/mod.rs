//! BE-Tree and BE*-Tree: conjunctions in a tree that divides space twice over.
//!
//! *Partitioning* chooses an attribute and gathers the conjunctions that have a predicate on it; *clustering*
//! groups those by where their intervals lie on that attribute. A group that is still too large is
//! partitioned by another attribute, and so on:
//!
//! ```text
//! root c-node ── p-node of age ── c-directory ┬ [0, 31]: l-node of three conjunctions
//!             │                               └ [32, 63] ── p-node of country ── ...
//!             └ p-node of price ── ...
//! ```
//!
//! | file | what it holds |
//! |---|---|
//! | `span.rs` | values as positions on a line, predicates as intervals (γ) |
//! | `held.rs` | the conjunctions |
//! | `node.rs` | p-nodes, c-nodes and l-nodes, partitioning, reinsertion |
//! | `rank.rs` | which attribute is worth a partition; upper bounds of scores |
//! | `grid.rs` | the c-directory of BE-Tree: halving |
//! | `boxes.rs`, `split.rs` | the c-directory of BE*-Tree: bounding boxes, and how they are split |
//! | `top_k.rs` | the best matches by relevance |

mod boxes;
mod grid;
mod held;
mod node;
mod rank;
pub(super) mod span;
mod split;
mod top_k;

#[cfg(test)]
mod tests;

use boxes::Boxes;
use grid::Grid;
use held::Conjunction;
use node::{CNode, Directory, Settings, Store};
use rank::Loss;
use span::Span;

use super::algorithm::Algorithm;
use super::options;
use crate::error::Result;
use crate::event::{Attributes, Event, Value};
use crate::index::segment::matcher::Work;
use crate::index::subscription::Subscription;
use crate::rank::Scale;

/// BE-Tree (Sadoghi 2012): rigid clustering by halving.
pub type BeTree = Tree<Grid>;

/// BE*-Tree (Sadoghi and Jacobsen 2012): clustering by bounding boxes, and top-k.
pub type BeStarTree = Tree<Boxes>;

/// The leaf capacity for a share of matches (Table II of Sadoghi and Jacobsen 2012).
fn capacity_for(match_probability: f64) -> usize {
    match match_probability {
        p if p < 0.01 => 5,
        p if p < 0.1 => 20,
        _ => 160,
    }
}

pub struct Tree<D> {
    root: CNode<D>,
    store: Store,
}

impl<D> Default for Tree<D> {
    fn default() -> Self {
        let settings = Settings {
            capacity: capacity_for(0.0),
            loss: Loss::default(),
            min_share: 0.1,
            max_growth: 4.0,
            exhaustive_split: true,
        };
        Self { root: CNode::default(), store: Store { conjunctions: vec![], paths: vec![], settings } }
    }
}

impl<D: Directory> Algorithm for Tree<D> {
    fn insert(&mut self, row: u32, subscription: &Subscription, attributes: &mut Attributes) -> Result<()> {
        let conjunction = Conjunction::new(subscription, attributes)?;
        let Store { conjunctions, paths, .. } = &mut self.store;
        if conjunctions.len() <= row as usize {
            conjunctions.resize_with(row as usize + 1, || None);
            paths.resize_with(row as usize + 1, Box::default);
        }
        // What is never true need not be found.
        if conjunction.is_some() {
            conjunctions[row as usize] = conjunction;
            self.root.insert(row, &mut vec![], &mut self.store);
            self.root.partition(&mut vec![], &mut self.store);
        }
        Ok(())
    }

    fn remove(&mut self, row: u32, _: &Subscription, _: &Attributes) {
        if self.store.conjunctions[row as usize].is_some() {
            let was_here = self.root.remove(row, &mut vec![], &mut self.store);
            assert!(was_here, "only what was inserted is removed");
            self.store.conjunctions[row as usize] = None;
        }
    }

    fn matches(&self, event: &Event<'_>, _: &Attributes, found: &mut dyn FnMut(u32)) -> Work {
        let mut work = Work::default();
        self.find(&self.root, event, &mut work, found);
        work
    }

    fn best(
        &self,
        event: &Event<'_>,
        scale: &Scale,
        least_wanted: f64,
        offer: &mut dyn FnMut(u32) -> f64,
    ) -> Option<Work> {
        D::IS_RANKED.then(|| self.find_best(event, scale, least_wanted, offer))
    }

    /// The row is inserted anew, so that the summaries above it know its weights.
    fn rescore(&mut self, row: u32, subscription: &Subscription, attributes: &Attributes) {
        if D::IS_RANKED && self.store.conjunctions[row as usize].is_some() {
            let was_here = self.root.remove(row, &mut vec![], &mut self.store);
            assert!(was_here, "only what was inserted is rescored");
            let held = self.store.conjunctions[row as usize].as_mut().expect("it was there");
            held.set_weights(subscription, attributes);
            self.root.insert(row, &mut vec![], &mut self.store);
            self.root.partition(&mut vec![], &mut self.store);
        }
    }

    fn bytes(&self) -> Vec<(&'static str, usize)> {
        let held = self.store.conjunctions.iter().flatten().map(Conjunction::bytes).sum::<usize>();
        let paths: usize = self.store.paths.iter().map(|path| size_of_val(&**path)).sum();
        vec![
            ("tree", self.root.bytes()),
            ("conjunctions", self.store.conjunctions.capacity() * size_of::<Option<Conjunction>>() + held),
            ("paths", self.store.paths.capacity() * size_of::<Box<[u32]>>() + paths),
        ]
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        let mut counts = Counts::default();
        counts.add(&self.root);
        let Counts { conjunctions, p_nodes, c_nodes } = counts;
        vec![("conjunctions", conjunctions), ("p_nodes", p_nodes), ("c_nodes", c_nodes)]
    }

    fn set_option(&mut self, name: &str, value: &Value) -> Result<()> {
        let settings = &mut self.store.settings;
        match name {
            "leaf_capacity" => settings.capacity = options::size(name, value)? as usize,
            "match_probability" => settings.capacity = capacity_for(options::share(name, value)?),
            "loss" => {
                settings.loss = match options::choice(name, value, &["popularity", "selectivity"])? {
                    0 => Loss::Popularity,
                    _ => Loss::Selectivity,
                }
            }
            "split" if D::IS_RANKED => {
                settings.exhaustive_split =
                    options::choice(name, value, &["exhaustive", "approximate"])? == 0;
            }
            "min_share" if D::IS_RANKED => settings.min_share = options::share(name, value)?,
            "max_growth" if D::IS_RANKED => settings.max_growth = options::size(name, value)? as f64,
            _ => {
                let known =
                    ["leaf_capacity", "match_probability", "loss", "split", "min_share", "max_growth"];
                return Err(options::unknown(name, &known[..if D::IS_RANKED { 6 } else { 3 }]));
            }
        }
        Ok(())
    }
}

#[derive(Default)]
struct Counts {
    conjunctions: u64,
    p_nodes: u64,
    /// The root aside.
    c_nodes: u64,
}

impl Counts {
    fn add<D: Directory>(&mut self, cnode: &CNode<D>) {
        self.conjunctions += cnode.members.len() as u64;
        self.p_nodes += cnode.partitions.len() as u64;
        for pnode in &cnode.partitions {
            pnode.directory.for_each(&mut |cnode| {
                self.c_nodes += 1;
                self.add(cnode);
            });
        }
    }
}

impl<D: Directory> Tree<D> {
    /// Looks at a c-node and at what the event reaches below it; returns how many predicates were evaluated
    /// for conjunctions that are not true.
    fn find(&self, cnode: &CNode<D>, event: &Event<'_>, work: &mut Work, found: &mut dyn FnMut(u32)) -> u64 {
        let mut discarded = self.scan(cnode, event, work, found);
        self.for_each_partition(cnode, event, &mut |at, span| {
            let pnode = &cnode.partitions[at];
            let mut below = 0;
            pnode.directory.reach(span, &mut |cnode| below += self.find(cnode, event, work, found));
            pnode.feedback.note(below);
            discarded += below;
        });
        discarded
    }

    /// Evaluates the conjunctions of an l-node.
    fn scan(&self, cnode: &CNode<D>, event: &Event<'_>, work: &mut Work, found: &mut dyn FnMut(u32)) -> u64 {
        work.candidates += cnode.members.len() as u64;
        let mut discarded = 0;
        for &row in &cnode.members {
            let mut evaluations = 0;
            if self.store.conjunction(row).is_true(event, &mut evaluations) {
                found(row);
            } else {
                discarded += evaluations;
            }
            work.evaluations += evaluations;
        }
        discarded
    }

    /// The partitions whose attribute the event has, each with the place of its value.
    fn for_each_partition(&self, cnode: &CNode<D>, event: &Event<'_>, visit: &mut dyn FnMut(usize, Span)) {
        if cnode.partitions.len() < event.values.len() {
            for (at, pnode) in cnode.partitions.iter().enumerate() {
                if let Some(value) = event.get(pnode.attribute) {
                    visit(at, Span::of_value(value));
                }
            }
        } else {
            for (attribute, value) in &event.values {
                if let Ok(at) = cnode.place(*attribute) {
                    visit(at, Span::of_value(*value));
                }
            }
        }
    }

    /// Panics unless the structure is as the papers promise.
    pub fn check(&self) {
        self.root.check(&mut vec![], &self.store);
        let mut rows = vec![];
        self.root.collect(&mut rows);
        rows.sort_unstable();
        let held = self.store.conjunctions.iter().enumerate().filter(|(_, held)| held.is_some());
        assert_eq!(rows, held.map(|(row, _)| row as u32).collect::<Vec<_>>(), "every row is held once");
    }
}
