//! The common part of all algorithms that first find the satisfied predicates and then the matches.
//!
//! ```text
//! insert:  expression → circuit → tree of literals ─► FilterAlgorithm::insert
//! match:   event → satisfied literals ──────────────► FilterAlgorithm::matches
//! ```
//!
//! Expressions that are constant never reach the [`FilterAlgorithm`].

use rustc_hash::FxHashMap;

use super::algorithm::Algorithm;
use super::circuit::{Circuit, Gate, Negations, Tree};
use super::options;
use super::predicates::{Predicates, Satisfied};
use super::weights::{InOrder, Weight, weights_of};
use tamis_core::engine::contract::Work;
use tamis_core::event::{Event, Terms, Value};
use tamis_core::expr::Literal;
use tamis_core::fork::Mutex;
use tamis_core::query::Scale;
use tamis_core::{Result, Subscription};

/// The part that differs: how trees of literals are held, and which of them are true.
pub trait FilterAlgorithm: Default + Send + Sync {
    /// What one event needs, kept for the next.
    type Scratch: Default + Send;

    /// The options other than `predicates`.
    const OPTIONS: &'static [&'static str];

    /// Whether it can hold the expression. Nothing has been changed yet.
    fn check(&self, circuit: &Circuit<'_>) -> Result<()>;

    /// Holds an expression that passed [`check`](Self::check).
    fn insert(&mut self, row: u32, tree: &Tree, predicates: &Predicates);

    /// Forgets a row and calls `release` with its literals, each at least once.
    fn remove(&mut self, row: u32, release: &mut dyn FnMut(Literal));

    /// Reports every row whose expression is true, each once.
    fn matches(
        &self,
        satisfied: &Satisfied,
        event: &Event<'_>,
        scratch: &mut Self::Scratch,
        found: &mut dyn FnMut(u32),
    ) -> Work;

    /// Notes what the predicates of a row on each attribute weigh together, when it is new and whenever that
    /// changes.
    fn weigh(&mut self, _row: u32, _weights: &[Weight], _predicates: &Predicates) {}

    /// As [`Algorithm::best`].
    fn best(
        &self,
        _satisfied: &Satisfied,
        _scale: &Scale,
        _least_wanted: f64,
        _scratch: &mut Self::Scratch,
        _offer: &mut dyn FnMut(u32) -> f64,
    ) -> Option<Work> {
        None
    }

    /// Whether it keeps bounds of scores: then it is told of weights, and asked for the best.
    const IS_RANKED: bool = false;

    fn bytes(&self) -> Vec<(&'static str, usize)>;

    /// Sets one of [`OPTIONS`](Self::OPTIONS).
    fn set_option(&mut self, name: &str, value: &Value) -> Result<()>;

    fn counters(&self) -> Vec<(&'static str, u64)> {
        vec![]
    }
}

#[derive(Default)]
pub struct OverPredicates<F: FilterAlgorithm> {
    predicates: Predicates,
    filter: F,
    /// Rows that are true, or not, for every event.
    constant: FxHashMap<u32, bool>,
    /// What the predicates of each row count, if bounds of scores are kept.
    in_order: Vec<InOrder>,
    scratch: Mutex<Vec<Scratch<F>>>,
}

struct Scratch<F: FilterAlgorithm> {
    satisfied: Satisfied,
    filter: F::Scratch,
}

impl<F: FilterAlgorithm> Default for Scratch<F> {
    fn default() -> Self {
        Self { satisfied: Satisfied::default(), filter: F::Scratch::default() }
    }
}

impl<F: FilterAlgorithm> OverPredicates<F> {
    pub fn filter(&self) -> &F {
        &self.filter
    }

    pub fn filter_mut(&mut self) -> &mut F {
        &mut self.filter
    }
}

impl<F: FilterAlgorithm> Algorithm for OverPredicates<F> {
    fn insert(&mut self, row: u32, subscription: &Subscription, terms: &mut Terms) -> Result<()> {
        let circuit = Circuit::checked(&subscription.expression, Negations::PushedDown)?;
        if matches!(circuit.root(), Gate::True | Gate::False) {
            self.constant.insert(row, *circuit.root() == Gate::True);
            return Ok(());
        }
        self.filter.check(&circuit)?;
        let literals = circuit.acquire(&mut self.predicates, terms);
        let tree = circuit.tree(&literals).expect("constants are held elsewhere");
        self.filter.insert(row, &tree, &self.predicates);
        self.rescore(row, subscription, terms);
        Ok(())
    }

    fn rescore(&mut self, row: u32, subscription: &Subscription, terms: &Terms) {
        if F::IS_RANKED && !self.constant.contains_key(&row) {
            self.filter.weigh(row, &weights_of(subscription, terms), &self.predicates);
            if self.in_order.len() <= row as usize {
                self.in_order.resize_with(row as usize + 1, InOrder::default);
            }
            self.in_order[row as usize] = InOrder::of(subscription, terms);
        }
    }

    /// A match of a list of predicates has all of them true: nothing need be evaluated again.
    fn relevance(&self, row: u32, scale: &Scale) -> Option<f64> {
        self.in_order.get(row as usize)?.relevance(scale)
    }

    fn best(
        &self,
        event: &Event<'_>,
        scale: &Scale,
        least_wanted: f64,
        offer: &mut dyn FnMut(u32) -> f64,
    ) -> Option<Work> {
        if !F::IS_RANKED {
            return None;
        }
        let mut least_wanted = least_wanted;
        for (row, _) in self.constant.iter().filter(|(_, is_true)| **is_true) {
            least_wanted = offer(*row);
        }
        let mut scratch = self.scratch.lock().pop().unwrap_or_default();
        self.predicates.satisfied(event, &mut scratch.satisfied);
        let Scratch { satisfied, filter } = &mut scratch;
        let work = self.filter.best(satisfied, scale, least_wanted, filter, offer);
        self.scratch.lock().push(scratch);
        work
    }

    fn remove(&mut self, row: u32, _: &Subscription, _: &Terms) {
        if self.constant.remove(&row).is_some() {
            return;
        }
        if let Some(in_order) = self.in_order.get_mut(row as usize) {
            *in_order = InOrder::default();
        }
        let mut literals = vec![];
        self.filter.remove(row, &mut |literal| literals.push(literal));
        literals.sort_unstable();
        literals.dedup();
        literals.into_iter().for_each(|literal| self.predicates.release(literal));
    }

    fn matches(&self, event: &Event<'_>, _: &Terms, found: &mut dyn FnMut(u32)) -> Work {
        self.constant.iter().filter(|(_, is_true)| **is_true).for_each(|(row, _)| found(*row));
        let mut scratch = self.scratch.lock().pop().unwrap_or_default();
        self.predicates.satisfied(event, &mut scratch.satisfied);
        let Scratch { satisfied, filter } = &mut scratch;
        let work = self.filter.matches(satisfied, event, filter, found);
        self.scratch.lock().push(scratch);
        work
    }

    fn bytes(&self) -> Vec<(&'static str, usize)> {
        let mut parts = vec![("predicates", self.predicates.bytes())];
        parts.extend(self.filter.bytes());
        if F::IS_RANKED {
            let amounts: usize = self.in_order.iter().map(InOrder::heap_bytes).sum();
            parts.push(("weights", self.in_order.capacity() * size_of::<InOrder>() + amounts));
        }
        parts
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        let mut counters = vec![("predicates", self.predicates.len() as u64)];
        counters.extend(self.filter.counters());
        counters
    }

    fn set_option(&mut self, name: &str, value: &Value) -> Result<()> {
        if name == "predicates" {
            self.predicates = Predicates::with_matcher(options::text(name, value)?)?;
            return Ok(());
        }
        if !F::OPTIONS.contains(&name) {
            return Err(options::unknown(name, &[&["predicates"], F::OPTIONS].concat()));
        }
        self.filter.set_option(name, value)
    }
}
