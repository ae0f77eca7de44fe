//! Algorithms for conjunctions, and the translation that lets them hold other expressions.
//!
//! An expression is translated to disjunctive normal form, and each of its conjunctions is stored separately:
//! `(a OR b) AND (c OR d)` becomes four. The number of conjunctions can grow exponentially, so a translation
//! beyond a limit is refused. Duplicate predicates of a conjunction and duplicate conjunctions of an
//! expression are removed; nothing else is simplified.
//!
//! | name | file | how a conjunction is found |
//! |---|---|---|
//! | `counting` | `counting.rs` | it has as many hits as predicates |
//! | `cluster` | `cluster.rs` | its access predicate is true; checked together with others of its size |
//! | `k-index` | `k_index.rs` | as many sorted lists hold it as it has predicates; holds conjunctions only |
//! | `propagation` | `access.rs` | its access predicate is true; holds conjunctions only |
//! | `translation` | `tree.rs` | it is at the end of a path of true predicates |

pub mod access;
pub mod cluster;
pub mod counting;
pub mod k_index;
pub mod tree;

#[cfg(test)]
mod tests;

use rustc_hash::FxHashSet;

use super::circuit::{Circuit, Tree};
use super::options;
use super::over_predicates::FilterAlgorithm;
use super::predicates::{Predicates, Satisfied};
use super::short_list::ShortList;
use super::weights::Weight;
use tamis_core::engine::contract::Work;
use tamis_core::event::{Event, TermId, Value};
use tamis_core::expr::{Literal, Shape};
use tamis_core::predicate::Bits;
use tamis_core::query::Scale;
use tamis_core::{Error, Result};

/// Predicates are counted in 16 bits.
const MAX_PREDICATES: usize = u16::MAX as usize;

/// The predicates of the conjunctions, by their number; empty where the number is free.
pub type Held = [Box<[Literal]>];

/// The part that differs: which conjunctions are true?
pub trait Conjunctions: Default + Send + Sync {
    type Scratch: Default + Send;

    /// Whether other expressions are translated. If not, they are refused.
    const TRANSLATES: bool = true;

    /// Holds a conjunction of at least one literal, sorted and distinct.
    fn insert(&mut self, number: u32, literals: &[Literal], predicates: &Predicates);

    fn remove(&mut self, number: u32, literals: &[Literal]);

    /// Calls `found` with the number of every conjunction whose literals are all true, each once.
    fn satisfied(
        &self,
        held: &Held,
        satisfied: &Satisfied,
        scratch: &mut Self::Scratch,
        found: &mut dyn FnMut(u32),
    ) -> Work;

    /// Whether it keeps bounds of scores.
    const IS_RANKED: bool = false;

    /// Notes the most that a conjunction, which it holds, can gain by each of its literals.
    fn weigh(&mut self, _literals: &[Literal], _most: &[Gain]) {}

    /// Calls `offer` with every conjunction that is true and can score what `offer` last returned, at first
    /// `least_wanted`.
    fn best(
        &self,
        _satisfied: &Satisfied,
        _scale: &Scale,
        _least_wanted: f64,
        _scratch: &mut Self::Scratch,
        _offer: &mut dyn FnMut(u32) -> f64,
    ) -> Work {
        unreachable!("only asked of what keeps bounds")
    }

    fn bytes(&self) -> Vec<(&'static str, usize)>;
}

/// The most that a literal adds to a relevance, for an event whose weight of the attribute is 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gain {
    pub attribute: TermId,
    pub most: f64,
}

/// Expressions as disjunctions of conjunctions.
pub struct Translated<C> {
    max_conjunctions: u64,
    conjunctions: C,
    held: Vec<Box<[Literal]>>,
    row_of: Vec<u32>,
    /// From a row to its conjunctions.
    numbers_of: Vec<ShortList>,
    free: Vec<u32>,
}

impl<C: Conjunctions> Default for Translated<C> {
    fn default() -> Self {
        Self {
            max_conjunctions: 4096,
            conjunctions: C::default(),
            held: vec![],
            row_of: vec![],
            numbers_of: vec![],
            free: vec![],
        }
    }
}

#[derive(Default)]
pub struct Scratch<S> {
    conjunctions: S,
    /// Rows that were reported.
    reported: Bits,
}

impl<C: Conjunctions> FilterAlgorithm for Translated<C> {
    type Scratch = Scratch<C::Scratch>;

    const IS_RANKED: bool = C::IS_RANKED;

    const OPTIONS: &'static [&'static str] = if C::TRANSLATES { &["max_conjunctions"] } else { &[] };

    fn check(&self, circuit: &Circuit<'_>) -> Result<()> {
        let (wanted, limit) = (circuit.conjunctions(), self.max_conjunctions);
        if !C::TRANSLATES && wanted > 1 {
            return Err(Error::Unsupported(
                "this algorithm holds conjunctions of predicates only; \"translation\", \"counting\" and \
                 \"cluster\" translate other expressions, \"auto\" and \"a-tree\" hold them as they are"
                    .into(),
            ));
        }
        if circuit.leaves.len() > MAX_PREDICATES {
            return Err(Error::Unsupported(format!(
                "conjunctions have at most {MAX_PREDICATES} predicates, and this expression has {}; \"auto\" and \
                 \"a-tree\" hold it",
                circuit.leaves.len()
            )));
        }
        if wanted > limit {
            let wanted = if wanted == u64::MAX { "more than 2^64".into() } else { wanted.to_string() };
            return Err(Error::Unsupported(format!(
                "the disjunctive normal form of this expression has {wanted} conjunctions, and the limit is \
                 {limit} (option `max_conjunctions`); \"auto\" and \"a-tree\" hold it without translation"
            )));
        }
        Ok(())
    }

    fn insert(&mut self, row: u32, tree: &Tree, predicates: &Predicates) {
        if self.numbers_of.len() <= row as usize {
            self.numbers_of.resize_with(row as usize + 1, ShortList::default);
        }
        for conjunction in disjunctive_normal_form(tree) {
            let number = self.free.pop().unwrap_or(self.held.len() as u32);
            if number as usize == self.held.len() {
                self.held.push(Box::default());
                self.row_of.push(0);
            }
            self.conjunctions.insert(number, &conjunction, predicates);
            self.held[number as usize] = conjunction.into();
            self.row_of[number as usize] = row;
            self.numbers_of[row as usize].push(number);
        }
    }

    fn remove(&mut self, row: u32, release: &mut dyn FnMut(Literal)) {
        let numbers = std::mem::take(&mut self.numbers_of[row as usize]);
        for &number in numbers.as_slice() {
            let literals = std::mem::take(&mut self.held[number as usize]);
            self.conjunctions.remove(number, &literals);
            literals.iter().for_each(|literal| release(*literal));
            self.free.push(number);
        }
    }

    fn matches(
        &self,
        satisfied: &Satisfied,
        _: &Event<'_>,
        scratch: &mut Self::Scratch,
        found: &mut dyn FnMut(u32),
    ) -> Work {
        let Scratch { conjunctions, reported } = scratch;
        reported.reset(self.numbers_of.len());
        self.conjunctions.satisfied(&self.held, satisfied, conjunctions, &mut |number| {
            let row = self.row_of[number as usize];
            if !reported.replace(row) {
                found(row);
            }
        })
    }

    fn weigh(&mut self, row: u32, weights: &[Weight], predicates: &Predicates) {
        let numbers = std::mem::take(&mut self.numbers_of[row as usize]);
        for &number in numbers.as_slice() {
            let literals = &self.held[number as usize];
            let terms = || literals.iter().map(|literal| predicates.atom(*literal).attribute);
            // What was folded away can still count; no literal would answer for it.
            let is_whole =
                weights.iter().all(|weight| terms().any(|attribute| attribute == weight.attribute));
            let gain = |attribute: TermId| {
                let weight = weights.iter().find(|weight| weight.attribute == attribute);
                let most = weight.map_or(0.0, |weight| weight.most);
                Gain { attribute, most: if is_whole { most } else { f64::INFINITY } }
            };
            self.conjunctions.weigh(literals, &terms().map(gain).collect::<Vec<_>>());
        }
        self.numbers_of[row as usize] = numbers;
    }

    fn best(
        &self,
        satisfied: &Satisfied,
        scale: &Scale,
        least_wanted: f64,
        scratch: &mut Self::Scratch,
        offer: &mut dyn FnMut(u32) -> f64,
    ) -> Option<Work> {
        // One conjunction per row: nothing is offered twice.
        debug_assert!(!C::TRANSLATES);
        let mut offer = |number: u32| offer(self.row_of[number as usize]);
        Some(self.conjunctions.best(satisfied, scale, least_wanted, &mut scratch.conjunctions, &mut offer))
    }

    fn bytes(&self) -> Vec<(&'static str, usize)> {
        let literals: usize = self.held.iter().map(|conjunction| size_of_val(&**conjunction)).sum();
        let lists: usize = self.numbers_of.iter().map(ShortList::heap_bytes).sum();
        let numbers = self.row_of.capacity() + self.free.capacity();
        let mut parts = self.conjunctions.bytes();
        parts.push(("translated", self.held.capacity() * size_of::<Box<[Literal]>>() + literals));
        parts.push((
            "rows",
            numbers * size_of::<u32>() + self.numbers_of.capacity() * size_of::<ShortList>() + lists,
        ));
        parts
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        vec![("conjunctions", (self.held.len() - self.free.len()) as u64)]
    }

    fn set_option(&mut self, name: &str, value: &Value) -> Result<()> {
        self.max_conjunctions = options::size(name, value)?;
        Ok(())
    }
}

/// Every way to choose one child of each OR; literals sorted and distinct, and so are the conjunctions.
pub(super) fn disjunctive_normal_form(tree: &Tree) -> Vec<Vec<Literal>> {
    let mut seen = FxHashSet::default();
    let mut all = choices(tree);
    all.iter_mut().for_each(|conjunction| {
        conjunction.sort_unstable();
        conjunction.dedup();
    });
    all.retain(|conjunction| seen.insert(conjunction.clone()));
    all
}

fn choices(tree: &Tree) -> Vec<Vec<Literal>> {
    match tree {
        Tree::Leaf(literal) => vec![vec![*literal]],
        Tree::Or(children) => children.iter().flat_map(choices).collect(),
        Tree::And(children) => children.iter().map(choices).fold(vec![vec![]], |so_far, next| {
            let pairs = so_far.iter().flat_map(|left| next.iter().map(move |right| (left, right)));
            pairs.map(|(left, right)| [&left[..], right].concat()).collect()
        }),
    }
}

/// How good a predicate is at ruling conjunctions out, by its shape: 0 is best.
fn access_rank(literal: Literal, predicates: &Predicates) -> u8 {
    if literal.is_negated() {
        return 5;
    }
    let atom = predicates.atom(literal);
    match atom.operator.rules().shape(&atom.operands) {
        Shape::Points([_]) => 0,
        Shape::Points(_) | Shape::Elements(_) => 1,
        Shape::Range { low: Some(_), high: Some(_) } | Shape::Prefix(_) => 2,
        Shape::Range { .. }
        | Shape::Suffix(_)
        | Shape::Substring(_)
        | Shape::Literals(_)
        | Shape::LowerCase(_) => 3,
        Shape::Absent | Shape::Never | Shape::Opaque => 4,
    }
}

/// The access predicate of a conjunction: the best shape, and of those the one that has least to do so far.
fn choose_access(literals: &[Literal], predicates: &Predicates, load: impl Fn(Literal) -> usize) -> Literal {
    let cost = |literal: &&Literal| (access_rank(**literal, predicates), load(**literal), **literal);
    *literals.iter().min_by_key(cost).expect("a conjunction has predicates")
}
