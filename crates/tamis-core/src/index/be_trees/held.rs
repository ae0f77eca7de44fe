//! The conjunctions that a tree holds, apart from where it holds them.

use super::span::Span;
use crate::error::{Error, Result};
use crate::event::{AttrId, Attributes, Event, ValueRef};
use crate::expr::Expr;
use crate::expr::atoms::{Atom, Literal};
use crate::expr::operators::Test;
use crate::index::circuit::{self, Circuit, Gate, Negations};
use crate::index::subscription::Subscription;
use crate::rank::score::weight_of;

/// One conjunction: what must be true, where it lies on each attribute, and what it weighs.
pub struct Conjunction {
    leaves: Box<[Leaf]>,
    /// The attributes that an event must have, with the interval in which each must lie; sorted.
    dimensions: Box<[(AttrId, Span)]>,
    /// What its predicates on each attribute weigh together; sorted.
    pub weights: Box<[Weight]>,
}

struct Leaf {
    literal: Literal,
    atom: Atom,
    /// For predicates that are slow to prepare.
    test: Option<Test>,
}

/// The most that predicates on one attribute can add to a relevance.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Weight {
    pub attribute: AttrId,
    pub most: f64,
    /// Whether some of it counts when the attribute is absent.
    pub when_absent: bool,
}

impl Conjunction {
    /// `None` for an expression that is never true; an error for one that is no conjunction.
    pub fn new(subscription: &Subscription, attributes: &mut Attributes) -> Result<Option<Self>> {
        let circuit = Circuit::new(&subscription.expression, Negations::PushedDown);
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
            attributes.intern(&predicate.attribute);
        });
        let leaf = |leaf: &circuit::Leaf<'_>| Leaf {
            literal: Literal::new(0, leaf.negated),
            atom: Atom {
                attribute: attributes.get(leaf.attribute).expect("all were interned"),
                operator: leaf.operator,
                operands: leaf.operands.into(),
            },
            test: leaf.operator.rules().compile(leaf.operands),
        };
        let mut leaves: Vec<Leaf> = circuit.leaves.iter().map(leaf).collect();
        leaves.sort_by_key(|leaf| leaf.atom.attribute);
        let dimensions = dimensions(&leaves);
        let weights = weights(subscription, attributes);
        Ok(Some(Self { leaves: leaves.into(), dimensions, weights }))
    }

    /// Whether all predicates are true; adds how many were evaluated.
    pub fn is_true(&self, event: &Event<'_>, evaluations: &mut u64) -> bool {
        self.leaves.iter().all(|leaf| {
            *evaluations += 1;
            leaf.is_true(event.get(leaf.atom.attribute))
        })
    }

    /// Where it lies on an attribute that it needs.
    pub fn span(&self, attribute: AttrId) -> Option<Span> {
        let at = self.dimensions.binary_search_by_key(&attribute, |(attribute, _)| *attribute).ok()?;
        Some(self.dimensions[at].1)
    }

    pub fn dimensions(&self) -> &[(AttrId, Span)] {
        &self.dimensions
    }

    pub fn set_weights(&mut self, subscription: &Subscription, attributes: &Attributes) {
        self.weights = weights(subscription, attributes);
    }

    pub fn bytes(&self) -> usize {
        size_of_val(&*self.leaves)
            + self.leaves.iter().map(|leaf| size_of_val(&*leaf.atom.operands)).sum::<usize>()
            + size_of_val(&*self.dimensions)
            + size_of_val(&*self.weights)
    }
}

impl Leaf {
    fn is_true(&self, value: Option<ValueRef<'_>>) -> bool {
        let outcome = match (&self.test, value) {
            (Some(test), Some(value)) if !matches!(value, ValueRef::Interval(_)) => test(value),
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
fn dimensions(leaves: &[Leaf]) -> Box<[(AttrId, Span)]> {
    let same_attribute = leaves.chunk_by(|a, b| a.atom.attribute == b.atom.attribute);
    let dimension = |leaves: &[Leaf]| {
        let needed = leaves.iter().filter(|leaf| !leaf.is_true(None));
        let spans: Vec<Span> = needed.map(|leaf| Span::of_literal(leaf.literal, &leaf.atom)).collect();
        let hull = spans.iter().copied().reduce(Span::hull)?;
        let common = spans.into_iter().try_fold(Span::WHOLE, Span::common);
        Some((leaves[0].atom.attribute, common.unwrap_or(hull)))
    };
    same_attribute.filter_map(dimension).collect()
}

/// Every predicate as written counts, also one that is written twice.
fn weights(subscription: &Subscription, attributes: &Attributes) -> Box<[Weight]> {
    let mut weights: Vec<Weight> = vec![];
    subscription.expression.for_each_predicate(&mut |predicate| {
        let Some(attribute) = attributes.get(&predicate.attribute) else { return };
        let atom = Atom { attribute, operator: predicate.operator, operands: predicate.operands.clone() };
        let outcome = atom.outcome(None);
        let when_absent = outcome.can_be_true || outcome.can_be_false;
        let most = weight_of(predicate, &subscription.weights);
        match weights.binary_search_by_key(&attribute, |weight| weight.attribute) {
            Ok(at) => {
                weights[at].most += most;
                weights[at].when_absent |= when_absent;
            }
            Err(at) => weights.insert(at, Weight { attribute, most, when_absent }),
        }
    });
    // The cases of an XOR with a constant are added up, so its predicates can count more than once.
    if has_xor(&subscription.expression) {
        weights.iter_mut().for_each(|weight| weight.most = f64::INFINITY);
    }
    weights.into()
}

fn has_xor(expr: &Expr) -> bool {
    match expr {
        Expr::Xor(_) | Expr::Xnor(_) => true,
        Expr::And(children) | Expr::Or(children) => children.iter().any(has_xor),
        Expr::Not(child) => has_xor(child),
        Expr::Constant(_) | Expr::Predicate(_) => false,
    }
}
