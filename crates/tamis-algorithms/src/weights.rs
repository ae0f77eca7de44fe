//! The weights of the predicates of a subscription: by attribute, for bounds of the relevance, and in written
//! order, for the relevance of a conjunction.

use tamis_core::Subscription;
use tamis_core::event::{TermId, Terms};
use tamis_core::expr::{Atom, Expr};
use tamis_core::query::{Scale, weight_of};

/// The most that predicates on one attribute can add to a relevance.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Weight {
    pub attribute: TermId,
    pub most: f64,
    /// Whether some of it counts when the attribute is absent.
    pub when_absent: bool,
}

/// Sorted by attribute. Every predicate as written counts, also one that is written twice.
pub fn weights_of(subscription: &Subscription, terms: &Terms) -> Box<[Weight]> {
    let mut weights: Vec<Weight> = vec![];
    subscription.expression.for_each_predicate(&mut |predicate| {
        let Some(attribute) = terms.find(&predicate.term) else { return };
        let atom = Atom { attribute, operator: predicate.operator, operands: predicate.operands.clone() };
        let outcome = atom.outcome(None);
        let when_absent = outcome.can_be_true || outcome.can_be_false;
        let (if_true, if_false) = predicate.most_score();
        let most = weight_of(predicate, &subscription.weights) * f64::max(if_true, if_false);
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

/// What each predicate of a conjunction counts, in the order they are added up; `None` if the expression was
/// written as more than a list of predicates, or if one of them is a path with weights.
#[derive(Default)]
pub struct InOrder(Option<Box<[(TermId, f64)]>>);

impl InOrder {
    pub fn of(subscription: &Subscription, terms: &Terms) -> Self {
        let amount = |child: &Expr| match child {
            Expr::Predicate(predicate) if !predicate.is_scored_by_value() => {
                Some((terms.find(&predicate.term)?, weight_of(predicate, &subscription.weights)))
            }
            _ => None,
        };
        Self(match &subscription.expression {
            Expr::And(children) => children.iter().map(amount).collect(),
            single => [single].into_iter().map(amount).collect(),
        })
    }

    /// The relevance when all predicates are true, added up as its definition does.
    pub fn relevance(&self, scale: &Scale) -> Option<f64> {
        let amounts = self.0.as_ref()?.iter();
        Some(amounts.map(|(attribute, weight)| weight * scale.factor(*attribute)).fold(0.0, |a, b| a + b))
    }

    pub fn heap_bytes(&self) -> usize {
        self.0.as_ref().map_or(0, |amounts| size_of_val(&**amounts))
    }
}

fn has_xor(expr: &Expr) -> bool {
    match expr {
        Expr::Xor(_) | Expr::Xnor(_) => true,
        Expr::And(children) | Expr::Or(children) | Expr::AtLeast(_, children) => children.iter().any(has_xor),
        Expr::Not(child) => has_xor(child),
        Expr::Constant(_) | Expr::Predicate(_) => false,
    }
}
