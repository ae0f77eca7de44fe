//! The interface of an algorithm: a mutable structure of numbered rows. [`locked`](crate::locked) turns it into an
//! engine.
//!
//! Laws:
//! 1. *Agreement.* `matches` reports exactly the rows whose expression is true for the event by the
//!    reference evaluator (`expr::eval`), each once, in any order.
//! 2. *Refusal.* An expression that the algorithm cannot hold is refused by `insert` with
//!    [`Error::Unsupported`](tamis_core::Error::Unsupported), and the structure is as it was before.
//! 3. *Removal.* After `remove` the row is never reported, its memory is free for reuse, and the
//!    structure is equivalent to one that never held it.
//! 4. *Determinism.* The same inserts, removals and events give the same answers on any machine.
//!
//! Scores, ties, tags and expiry are applied by the caller, the same way for all.

use crate::options;
use tamis_core::engine::contract::Work;
use tamis_core::event::{Event, Terms, Value};
use tamis_core::query::{Measure, Scale};
use tamis_core::{Result, Subscription};

pub trait Algorithm: Send + Sync {
    /// Holds `subscription` as `row`, a number that is not in use.
    fn insert(&mut self, row: u32, subscription: &Subscription, terms: &mut Terms) -> Result<()>;

    /// Many insertions follow, until [`settle`](Self::settle). An algorithm may wait for all of them.
    fn gather(&mut self) {}

    /// All insertions are there.
    fn settle(&mut self) {}

    /// Forgets a row that was inserted with this subscription.
    fn remove(&mut self, row: u32, subscription: &Subscription, terms: &Terms);

    fn matches(&self, event: &Event<'_>, terms: &Terms, found: &mut dyn FnMut(u32)) -> Work;

    /// Reports the matches that can be among the best by relevance, and may omit others; `None` if it keeps no bounds
    /// of scores. `offer` takes a match and returns the least score that is still wanted,
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
    fn rescore(&mut self, _row: u32, _subscription: &Subscription, _attributes: &Terms) {}

    /// Bytes by part, the subscriptions' own data aside.
    fn bytes(&self) -> Vec<(&'static str, usize)>;

    /// Other statistics: nodes, conjunctions, collisions.
    fn counters(&self) -> Vec<(&'static str, u64)> {
        vec![]
    }

    /// Sets an option. Only called before the first `insert`.
    fn set_option(&mut self, name: &str, _: &Value) -> Result<()> {
        Err(options::unknown(name, &[]))
    }
}
