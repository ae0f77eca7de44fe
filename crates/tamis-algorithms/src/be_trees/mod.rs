//! BE-Tree and BE*-Tree: conjunctions in a tree that divides space in two ways.
//!
//! *Partitioning* chooses an attribute and collects the conjunctions that have a predicate on it;
//! *clustering* groups these by the position of their intervals. A group that is still too large is
//! partitioned by another attribute, and so on:
//!
//! ```text
//! root c-node ── p-node of age ── c-directory ┬ [0, 31]: l-node of three conjunctions
//!             │                               └ [32, 63] ── p-node of country ── ...
//!             └ p-node of price ── ...
//! ```
//!
//! | file | contents |
//! |---|---|
//! | `span.rs` | values as positions on a line, predicates as intervals (γ) |
//! | `places.rs` | where the values of an event lie |
//! | `held.rs` | the conjunctions |
//! | `node.rs` | p-nodes, c-nodes and l-nodes, partitioning, reinsertion |
//! | `rank.rs` | which attribute is worth a partition; how large l-nodes should be |
//! | `summary.rs` | upper bounds of scores |
//! | `grid.rs` | the c-directory of BE-Tree: halving |
//! | `boxes.rs`, `split.rs` | the c-directory of BE*-Tree: bounding boxes, and how they are split |
//! | `top_k.rs` | the best matches by relevance |

mod boxes;
mod conjunction;
mod grid;
mod node;
mod places;
mod rank;
pub(super) mod split;
mod summary;
mod top_k;

#[cfg(test)]
mod tests;

use crate::span::Span;
use boxes::Boxes;
use conjunction::Conjunction;
use grid::Grid;
use node::{CNode, Directory, Settings, Store};
use places::Places;
use rank::{Loss, MatchShare, capacity_for};
use summary::Bounding;

use super::algorithm::Algorithm;
use super::options;
use tamis_core::engine::contract::Work;
use tamis_core::event::{Event, Terms, Value};
use tamis_core::fork::Mutex;
use tamis_core::query::Scale;
use tamis_core::{Result, Subscription};

/// BE-Tree (Sadoghi 2012): rigid clustering by halving.
pub type BeTree = Tree<Grid>;

/// BE*-Tree (Sadoghi and Jacobsen 2012): clustering by bounding boxes, and top-k.
pub type BeStarTree = Tree<Boxes>;

pub struct Tree<D> {
    root: CNode<D>,
    store: Store,
    /// What is true of a conjunction that matches.
    meaning: Meaning,
    /// Whether what is added at once to an empty tree is divided at once, too (BE*-B).
    builds_in_batches: bool,
    /// Whether rows are only held until all are there.
    is_gathering: bool,
    /// Whether the capacity of l-nodes follows the share of matches.
    is_adaptive: bool,
    match_share: MatchShare,
    /// For one event each.
    places: Mutex<Vec<Places>>,
}

#[derive(Clone, Copy, PartialEq)]
enum Meaning {
    /// All its predicates can be true.
    Exact,
    /// The event overlaps the intervals of all its predicates.
    Overlap,
}

impl<D> Default for Tree<D> {
    fn default() -> Self {
        let settings = Settings {
            capacity: capacity_for(0.0),
            loss: Loss::default(),
            min_share: 0.1,
            max_growth: 4.0,
            exhaustive_split: true,
            bounding: Bounding::default(),
            domain_bits: None,
        };
        Self {
            root: CNode::default(),
            store: Store { conjunctions: vec![], paths: vec![], moves: 0, settings },
            meaning: Meaning::Exact,
            builds_in_batches: false,
            is_gathering: false,
            is_adaptive: true,
            match_share: MatchShare::default(),
            places: Mutex::default(),
        }
    }
}

impl<D: Directory> Algorithm for Tree<D> {
    fn insert(&mut self, row: u32, subscription: &Subscription, terms: &mut Terms) -> Result<()> {
        let conjunction = Conjunction::new(subscription, terms)?;
        let Store { conjunctions, paths, .. } = &mut self.store;
        if conjunctions.len() <= row as usize {
            conjunctions.resize_with(row as usize + 1, || None);
            paths.resize_with(row as usize + 1, Box::default);
        }
        // What is never true need not be found.
        if conjunction.is_some() {
            conjunctions[row as usize] = conjunction;
            self.adapt();
            match self.is_gathering {
                true => self.root.hold(row, &vec![], &mut self.store),
                false => self.put(row),
            }
        }
        Ok(())
    }

    fn gather(&mut self) {
        self.is_gathering = self.builds_in_batches && self.root.size() == 0;
    }

    fn settle(&mut self) {
        if std::mem::take(&mut self.is_gathering) {
            self.root.partition(&mut vec![], &mut self.store);
        }
    }

    fn remove(&mut self, row: u32, _: &Subscription, _: &Terms) {
        if self.store.conjunctions[row as usize].is_some() {
            let was_here = self.root.remove(row, &mut vec![], &mut self.store);
            assert!(was_here, "only what was inserted is removed");
            self.store.conjunctions[row as usize] = None;
            if self.root.members.is_empty() && self.root.partitions.is_empty() {
                self.store.moves = 0;
            }
        }
    }

    fn matches(&self, event: &Event<'_>, _: &Terms, found: &mut dyn FnMut(u32)) -> Work {
        let mut work = Work::default();
        self.with_places(event, |places| {
            let mut matches = 0;
            self.find(&self.root, event, places, &mut work, &mut |row| {
                matches += 1;
                found(row);
            });
            if self.is_adaptive {
                self.match_share.note(matches, self.root.size());
            }
        });
        work
    }

    fn best(
        &self,
        event: &Event<'_>,
        scale: &Scale,
        least_wanted: f64,
        offer: &mut dyn FnMut(u32) -> f64,
    ) -> Option<Work> {
        let find = |places: &Places| self.find_best(event, places, scale, least_wanted, offer);
        D::IS_RANKED.then(|| self.with_places(event, find))
    }

    fn relevance(&self, row: u32, scale: &Scale) -> Option<f64> {
        self.store.conjunction(row).relevance(scale)
    }

    /// In a tree that ranks, the row is inserted again, so that the summaries above it know its weights.
    fn rescore(&mut self, row: u32, subscription: &Subscription, terms: &Terms) {
        if self.store.conjunctions[row as usize].is_none() {
            return;
        }
        if D::IS_RANKED {
            let was_here = self.root.remove(row, &mut vec![], &mut self.store);
            assert!(was_here, "only what was inserted is rescored");
        }
        let held = self.store.conjunctions[row as usize].as_mut().expect("it was there");
        held.set_weights(subscription, terms);
        if D::IS_RANKED {
            self.put(row);
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
        vec![
            ("conjunctions", conjunctions),
            ("p_nodes", p_nodes),
            ("c_nodes", c_nodes),
            ("moves", self.store.moves),
        ]
    }

    fn set_option(&mut self, name: &str, value: &Value) -> Result<()> {
        let settings = &mut self.store.settings;
        match name {
            "leaf_capacity" => {
                settings.capacity = options::size(name, value)? as usize;
                self.is_adaptive = false;
            }
            "match_probability" => {
                settings.capacity = capacity_for(options::share(name, value)?);
                self.is_adaptive = false;
            }
            "loss" => {
                settings.loss = match options::choice(name, value, &["popularity", "selectivity"])? {
                    0 => Loss::Popularity,
                    _ => Loss::Selectivity,
                }
            }
            "construction" => {
                self.builds_in_batches = options::choice(name, value, &["dynamic", "batch"])? == 1;
            }
            "domain" if !D::IS_RANKED => {
                settings.domain_bits = Some(u64::BITS - (options::size(name, value)? - 1).leading_zeros());
            }
            "split" if D::IS_RANKED => {
                settings.exhaustive_split =
                    options::choice(name, value, &["exhaustive", "approximate"])? == 0;
            }
            "min_share" if D::IS_RANKED => settings.min_share = options::share(name, value)?,
            "max_growth" if D::IS_RANKED => settings.max_growth = options::size(name, value)? as f64,
            "summaries" if D::IS_RANKED => {
                settings.bounding =
                    match options::choice(name, value, &["both", "by-attribute", "altogether"])? {
                        0 => Bounding::Both,
                        1 => Bounding::ByAttribute,
                        _ => Bounding::Altogether,
                    }
            }
            "overlap" if D::IS_RANKED => {
                self.meaning = match options::choice(name, value, &["exact", "approximate"])? {
                    0 => Meaning::Exact,
                    _ => Meaning::Overlap,
                }
            }
            _ => {
                let common = ["leaf_capacity", "match_probability", "loss", "construction"];
                let own: &[&str] = match D::IS_RANKED {
                    true => &["split", "min_share", "max_growth", "summaries", "overlap"],
                    false => &["domain"],
                };
                return Err(options::unknown(name, &[&common, own].concat()));
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
    /// Puts a row that is filled where it belongs.
    fn put(&mut self, row: u32) {
        if self.root.insert(row, &mut vec![], &mut self.store) {
            self.root.partition_for(row, &mut vec![], &mut self.store);
        }
    }

    /// Rebuilds the tree if events have shown that its l-nodes should have another size.
    fn adapt(&mut self) {
        if self.is_adaptive
            && let Some(capacity) = self.match_share.better_capacity(self.store.settings.capacity)
        {
            self.match_share.forget();
            self.store.settings.capacity = capacity;
            let mut rows = vec![];
            std::mem::take(&mut self.root).collect(&mut rows);
            rows.into_iter().for_each(|row| self.root.hold(row, &vec![], &mut self.store));
            if !self.is_gathering {
                self.root.partition(&mut vec![], &mut self.store);
            }
        }
    }

    fn with_places<R>(&self, event: &Event<'_>, ask: impl FnOnce(&Places) -> R) -> R {
        let mut places = self.places.lock().pop().unwrap_or_default();
        places.put(event);
        let answer = ask(&places);
        places.take_out(event);
        self.places.lock().push(places);
        answer
    }

    /// Looks at a c-node and at what the event reaches below it; returns how many predicates were evaluated
    /// for conjunctions that are not true.
    fn find(
        &self,
        cnode: &CNode<D>,
        event: &Event<'_>,
        places: &Places,
        work: &mut Work,
        found: &mut dyn FnMut(u32),
    ) -> u64 {
        let all = f64::NEG_INFINITY;
        let mut discarded = self.scan(cnode, event, places, work, all, &mut |row| {
            found(row);
            all
        });
        self.for_each_partition(cnode, event, places, &mut |at, span| {
            let pnode = &cnode.partitions[at];
            let mut below = 0;
            let mut look = |cnode| below += self.find(cnode, event, places, work, found);
            pnode.directory.reach(span, all, &mut look);
            pnode.feedback.note(below);
            discarded += below;
        });
        discarded
    }

    /// Evaluates the conjunctions of an l-node that weigh enough; `found` says how much that is from then on.
    /// Returns how many predicates were evaluated for those that are not true.
    fn scan(
        &self,
        cnode: &CNode<D>,
        event: &Event<'_>,
        places: &Places,
        work: &mut Work,
        mut least_weight: f64,
        found: &mut dyn FnMut(u32) -> f64,
    ) -> u64 {
        let mut discarded = 0;
        for &row in &cnode.members {
            let mut evaluations = 0;
            let conjunction = self.store.conjunction(row);
            if conjunction.total < least_weight {
                continue;
            }
            work.candidates += 1;
            let is_match = match self.meaning {
                Meaning::Exact => conjunction.is_true(event, places, &mut evaluations),
                Meaning::Overlap => conjunction.is_met(event, places, &mut evaluations),
            };
            if is_match {
                least_weight = found(row);
            } else {
                discarded += evaluations;
            }
            work.evaluations += evaluations;
        }
        discarded
    }

    /// The partitions whose attribute the event has, each with the place of its value.
    fn for_each_partition(
        &self,
        cnode: &CNode<D>,
        event: &Event<'_>,
        places: &Places,
        visit: &mut dyn FnMut(usize, Span),
    ) {
        if cnode.partitions.len() < event.values.len() {
            for (at, pnode) in cnode.partitions.iter().enumerate() {
                if let Some(span) = places.get(pnode.attribute).span() {
                    visit(at, span);
                }
            }
        } else {
            for (attribute, _) in &event.values {
                if let (Ok(at), Some(span)) = (cnode.place(*attribute), places.get(*attribute).span()) {
                    visit(at, span);
                }
            }
        }
    }

    /// Panics unless the structure is as the papers promise.
    #[cfg(test)]
    pub fn check(&self) {
        self.root.check(&mut vec![], &self.store);
        let mut rows = vec![];
        self.root.collect(&mut rows);
        rows.sort_unstable();
        let held = self.store.conjunctions.iter().enumerate().filter(|(_, held)| held.is_some());
        assert_eq!(rows, held.map(|(row, _)| row as u32).collect::<Vec<_>>(), "every row is held once");
    }
}
