//! The conjunctions of a tree, independent of their place in it.

use super::places::Places;
use crate::circuit::{self, Circuit, Gate, Negations};
use crate::span::Span;
use crate::weights::{InOrder, Weight, weights_of};
use tamis_core::event::{Event, TermId, Terms, ValueRef};
use tamis_core::expr::{Atom, Literal, Test};
use tamis_core::query::{Scale, up};
use tamis_core::{Error, Result, Subscription};

/// One conjunction: what must be true, where it lies on each attribute, and what it weighs.
pub struct Conjunction {
    /// The attributes that an event must have, with the interval in which each must lie; sorted.
    dimensions: Box<[(TermId, Span)]>,
    /// Whether an event of exact numbers that lies in all intervals satisfies all predicates.
    is_decided_by_spans: bool,
    leaves: Box<[Leaf]>,
    /// The total weight of its predicates on each attribute; sorted.
    pub weights: Box<[Weight]>,
    /// The total weight of its predicates.
    pub total: f64,
    in_order: InOrder,
}

struct Leaf {
    literal: Literal,
    atom: Atom,
    /// For predicates that are slow to prepare.
    test: Option<Test>,
}

impl Conjunction {
    /// `None` for an expression that is never true; an error for one that is no conjunction.
    pub fn new(subscription: &Subscription, terms: &mut Terms) -> Result<Option<Self>> {
        let circuit = Circuit::checked(&subscription.expression, Negations::PushedDown)?;
        if *circuit.root() == Gate::False {
            return Ok(None);
        }
        if circuit.conjunctions() > 1 {
            return Err(Error::Unsupported(
                "this tree holds conjunctions of predicates only; \"translation\", \"counting\" and \"cluster\" \
                 translate other expressions, \"auto\" and \"a-tree\" hold them as they are"
                    .into(),
            ));
        }
        // Predicates that were folded away still count in scores.
        subscription.expression.for_each_predicate(&mut |predicate| {
            terms.intern_term(&predicate.term);
        });
        let leaf = |leaf: &circuit::Leaf<'_>| Leaf {
            literal: Literal::new(0, leaf.negated),
            atom: Atom {
                attribute: terms.find(leaf.term).expect("all were interned"),
                operator: leaf.operator,
                operands: leaf.operands.into(),
            },
            test: leaf.operator.rules().compile(leaf.operands),
        };
        let mut leaves: Vec<Leaf> = circuit.leaves.iter().map(leaf).collect();
        leaves.sort_by_key(|leaf| leaf.atom.attribute);
        let (dimensions, is_decided_by_spans) = dimensions(&leaves);
        let mut made = Self {
            leaves: leaves.into(),
            dimensions,
            is_decided_by_spans,
            weights: Box::default(),
            total: 0.0,
            in_order: InOrder::default(),
        };
        made.set_weights(subscription, terms);
        Ok(Some(made))
    }

    /// Whether all predicates are true; adds how many were evaluated.
    ///
    /// Where the event lies is asked first: that needs no look at operators and operands.
    pub fn is_true(&self, event: &Event<'_>, places: &Places, evaluations: &mut u64) -> bool {
        let mut are_exact = true;
        for (attribute, span) in &self.dimensions {
            *evaluations += 1;
            let place = places.get(*attribute);
            if !place.is_within(*span) {
                return false;
            }
            are_exact &= place.is_exact;
        }
        self.is_decided_by_spans && are_exact
            || self.leaves.iter().all(|leaf| leaf.is_true(event.get(leaf.atom.attribute)))
    }

    /// Whether the event lies where each of its predicates does: the approximate meaning of a match.
    pub fn is_met(&self, event: &Event<'_>, places: &Places, evaluations: &mut u64) -> bool {
        let is_met = |(attribute, span): &(TermId, Span)| {
            *evaluations += 1;
            places.get(*attribute).is_within(*span)
        };
        let asks_absence = |leaf: &&Leaf| leaf.is_true(None);
        self.dimensions.iter().all(is_met)
            && self
                .leaves
                .iter()
                .filter(asks_absence)
                .all(|leaf| leaf.is_true(event.get(leaf.atom.attribute)))
    }

    /// Where it lies on an attribute that it needs.
    pub fn span(&self, attribute: TermId) -> Option<Span> {
        let at = self.dimensions.binary_search_by_key(&attribute, |(attribute, _)| *attribute).ok()?;
        Some(self.dimensions[at].1)
    }

    pub fn dimensions(&self) -> &[(TermId, Span)] {
        &self.dimensions
    }

    pub fn set_weights(&mut self, subscription: &Subscription, terms: &Terms) {
        self.weights = weights_of(subscription, terms);
        self.total = up(self.weights.iter().map(|weight| weight.most).sum());
        self.in_order = InOrder::of(subscription, terms);
    }

    /// The relevance when all predicates are true, added up as its definition does.
    pub fn relevance(&self, scale: &Scale) -> Option<f64> {
        self.in_order.relevance(scale)
    }

    pub fn bytes(&self) -> usize {
        size_of_val(&*self.leaves)
            + self.leaves.iter().map(|leaf| size_of_val(&*leaf.atom.operands)).sum::<usize>()
            + size_of_val(&*self.dimensions)
            + size_of_val(&*self.weights)
            + self.in_order.heap_bytes()
    }
}

impl Leaf {
    fn is_true(&self, value: Option<ValueRef<'_>>) -> bool {
        let outcome = match (&self.test, value) {
            (Some(test), Some(value)) if !value.is_set() => test(value),
            _ => self.atom.outcome(value),
        };
        self.literal.holds(outcome)
    }
}

/// Only attributes whose absence makes the conjunction not true can be asked for by the tree.
///
/// What several predicates on one attribute have in common is where it must lie. For a point that is plain;
/// an interval that meets each of several intervals, any two of which meet, also meets what all have in
/// common. Where they have nothing in common no point can match, but an interval that spans them can.
///
/// Also says whether the intervals decide for exact numbers.
fn dimensions(leaves: &[Leaf]) -> (Box<[(TermId, Span)]>, bool) {
    let mut are_decided = true;
    let same_attribute = leaves.chunk_by(|a, b| a.atom.attribute == b.atom.attribute);
    let dimension = |leaves: &[Leaf]| {
        let needed = leaves.iter().filter(|leaf| !leaf.is_true(None));
        let spans: Vec<Span> = needed.map(|leaf| Span::of_literal(leaf.literal, &leaf.atom)).collect();
        let hull = spans.iter().copied().reduce(Span::hull);
        let common = spans.into_iter().try_fold(Span::WHOLE, Span::common);
        are_decided &= hull.is_some()
            && common.is_some()
            && leaves.iter().all(|leaf| Span::decides(leaf.literal, &leaf.atom));
        Some((leaves[0].atom.attribute, common.or(hull).filter(|_| hull.is_some())?))
    };
    let dimensions = same_attribute.filter_map(dimension).collect();
    (dimensions, are_decided)
}
