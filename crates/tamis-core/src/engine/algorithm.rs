//! The contract of every algorithm that can hold subscriptions.
//!
//! Laws:
//! 1. *Agreement.* `matches` reports exactly the rows whose expression is true for the event by the
//!    reference evaluator (`expr::eval`), each once, in any order.
//! 2. *Refusal.* An expression that the algorithm cannot hold is refused by `insert` with
//!    [`Error::Unsupported`](crate::Error::Unsupported), and the structure is as it was before.
//! 3. *Removal.* After `remove` the row is never reported, its memory is free for reuse, and the
//!    structure is equivalent to one that never held it.
//! 4. *Determinism.* The same inserts, removals and events give the same answers on any machine.
//!
//! Scores, ties, tags and expiry are applied by the caller, the same way for all.

use super::conjunctions::Translated;
use super::conjunctions::access::AccessLists;
use super::conjunctions::cluster::Clusters;
use super::conjunctions::counting::Counting;
use super::conjunctions::k_index::KIndex;
use super::conjunctions::tree::ConjunctionTree;
use super::leaf_ids::Annotated;
use super::leaf_ids::dewey::DeweyIds;
use super::leaf_ids::interval::IntervalIds;
use super::over_predicates::{Filter, OverPredicates};
use crate::engine::contract::Work;
use crate::engine::options;
use crate::error::Result;
use crate::event::{Attributes, Event, Value};
use crate::query::{Measure, Scale};
use crate::subscription::Subscription;

pub trait Algorithm: Send + Sync {
    /// Holds `subscription` as `row`, a number that is not in use.
    fn insert(&mut self, row: u32, subscription: &Subscription, attributes: &mut Attributes) -> Result<()>;

    /// Many insertions follow, until [`settle`](Self::settle). An algorithm may wait for all of them.
    fn gather(&mut self) {}

    /// All insertions are there.
    fn settle(&mut self) {}

    /// Forgets a row that was inserted with this subscription.
    fn remove(&mut self, row: u32, subscription: &Subscription, attributes: &Attributes);

    fn matches(&self, event: &Event<'_>, attributes: &Attributes, found: &mut dyn FnMut(u32)) -> Work;

    /// Reports the matches that can be among the best by relevance, and leaves out others as it sees fit; `None`
    /// if it keeps no bounds of scores. `offer` takes a match and returns the least score that is still wanted,
    /// which is `least_wanted` in the beginning.
    fn best(
        &self,
        _event: &Event<'_>,
        _scale: &Scale,
        _least_wanted: f64,
        _offer: &mut dyn FnMut(u32) -> f64,
    ) -> Option<Work> {
        None
    }

    /// The same for any score. For relaxed ones, `offer` takes rows of which at least one predicate may be true.
    fn best_by(
        &self,
        event: &Event<'_>,
        measure: &Measure<'_>,
        least_wanted: f64,
        offer: &mut dyn FnMut(u32) -> f64,
    ) -> Option<Work> {
        match measure {
            Measure::Relevance(scale) => self.best(event, scale, least_wanted, offer),
            _ => None,
        }
    }

    /// The relevance of a row that was offered as a match, if it is known without a look at its expression:
    /// the same number, bit for bit.
    fn relevance(&self, _row: u32, _scale: &Scale) -> Option<f64> {
        None
    }

    /// Notes that the priority or the weights of a row have changed.
    fn rescore(&mut self, _row: u32, _subscription: &Subscription, _attributes: &Attributes) {}

    /// Bytes by part, the subscriptions' own data aside.
    fn bytes(&self) -> Vec<(&'static str, usize)>;

    /// What else is worth counting: nodes, conjunctions, collisions.
    fn counters(&self) -> Vec<(&'static str, u64)> {
        vec![]
    }

    /// Sets an option. Only called before the first `insert`.
    fn set_option(&mut self, name: &str, _: &Value) -> Result<()> {
        Err(options::unknown(name, &[]))
    }
}

/// Makes an empty structure.
pub type Make = fn() -> Box<dyn Algorithm>;

/// The names that can be asked for, and how each is made.
pub static ALGORITHMS: &[(&str, Make)] = &[
    ("scan", || Box::new(super::scan::Scan::default())),
    ("a-tree", || Box::new(super::a_tree::ATree::default())),
    ("boolean", || Box::new(super::boolean::BooleanFiltering::default())),
    ("counting", || over_predicates::<Translated<Counting>>()),
    ("cluster", || over_predicates::<Translated<Clusters>>()),
    ("k-index", || over_predicates::<Translated<KIndex>>()),
    ("translation", || over_predicates::<Translated<ConjunctionTree>>()),
    ("propagation", || over_predicates::<Translated<AccessLists>>()),
    ("dewey-id", || over_predicates::<Annotated<DeweyIds>>()),
    ("interval-id", || over_predicates::<Annotated<IntervalIds>>()),
    ("be-tree", || Box::new(super::be_trees::BeTree::default())),
    ("be-star-tree", || Box::new(super::be_trees::BeStarTree::default())),
    ("interval", || Box::new(super::scored_intervals::ScoredIntervals::default())),
    ("bdd", || Box::new(super::bdd::Bdd::default())),
];

fn over_predicates<F: Filter + 'static>() -> Box<dyn Algorithm> {
    Box::new(OverPredicates::<F>::default())
}
