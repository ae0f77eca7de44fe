//! The meaning of an expression: the reference evaluator of the tree as written.
//!
//! It follows the two-bit algebra of [`Outcome`] literally, and everything faster is checked against it. It short-circuits
//! only if the rest cannot change the outcome.

use super::ast::{Expr, Outcome, Predicate};
use crate::value::ValueRef;

/// The outcome of an expression. `value_of` gives the value of an attribute, or `None` when it is
/// absent; a null value counts as absent.
pub fn evaluate<'a>(expr: &Expr, value_of: &impl Fn(&str) -> Option<ValueRef<'a>>) -> Outcome {
    match expr {
        Expr::Constant(outcome) => *outcome,
        Expr::Predicate(predicate) => predicate.look(value_of),
        Expr::Not(child) => !evaluate(child, value_of),
        Expr::And(children) => fold_until(children, value_of, Outcome::and, Outcome::FALSE),
        Expr::Or(children) => fold_until(children, value_of, Outcome::or, Outcome::TRUE),
        Expr::Xor(children) => fold_until(children, value_of, Outcome::xor, Outcome::UNDEFINED),
        Expr::Xnor(children) => {
            fold_until(children, value_of, |left, right| !left.xor(right), Outcome::UNDEFINED)
        }
        Expr::AtLeast(least, children) => {
            Outcome::at_least(*least, children.iter().map(|child| evaluate(child, value_of)))
        }
    }
}

/// The left fold of the children's outcomes, cut short at the outcome that nothing can change.
fn fold_until<'a>(
    children: &[Expr],
    value_of: &impl Fn(&str) -> Option<ValueRef<'a>>,
    combine: impl Fn(Outcome, Outcome) -> Outcome,
    absorbing: Outcome,
) -> Outcome {
    let mut outcomes = children.iter().map(|child| evaluate(child, value_of));
    let mut folded = outcomes.next().expect("a connective has children");
    while folded != absorbing {
        match outcomes.next() {
            Some(outcome) => folded = combine(folded, outcome),
            None => break,
        }
    }
    folded
}

impl Predicate {
    /// The outcome for an event, of which `value_of` gives the values of attributes.
    pub fn look<'a>(&self, value_of: &impl Fn(&str) -> Option<ValueRef<'a>>) -> Outcome {
        self.term.with_value(value_of, |value| self.outcome(value))
    }

    /// The outcome for an event, and what the predicate counts there, before its weight: 1, but for paths with weights.
    pub fn look_scored<'a>(&self, value_of: &impl Fn(&str) -> Option<ValueRef<'a>>) -> (Outcome, f64) {
        self.term.with_value(value_of, |value| {
            let value = value.filter(|value| !matches!(value, ValueRef::Null));
            let (outcome, score) = self.operator.outcome_scored(value, &self.operands);
            (if self.negated { !outcome } else { outcome }, score)
        })
    }

    /// What the predicate counts at most, before its weight, where it is true and where it is false.
    pub fn most_score(&self) -> (f64, f64) {
        match self.operator.rules().most_score(&self.operands) {
            None => (1.0, 1.0),
            Some(most) if self.negated => (1.0, most),
            Some(most) => (most, 1.0),
        }
    }

    /// Whether what it counts depends on more than whether it is true.
    pub fn is_scored_by_value(&self) -> bool {
        self.operator.rules().most_score(&self.operands).is_some()
    }

    /// The outcome for one value of the term; `None` and null are an absent one.
    pub fn outcome(&self, value: Option<ValueRef<'_>>) -> Outcome {
        let value = value.filter(|value| !matches!(value, ValueRef::Null));
        let outcome = self.operator.outcome(value, &self.operands);
        if self.negated { !outcome } else { outcome }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expr::Operator;
    use crate::value::Value;

    fn constant(outcome: Outcome) -> Expr {
        Expr::Constant(outcome)
    }

    fn outcome(expr: &Expr) -> Outcome {
        evaluate(expr, &|_| None)
    }

    const ALL: [Outcome; 4] = [Outcome::TRUE, Outcome::FALSE, Outcome::UNDEFINED, Outcome::EITHER];

    #[test]
    fn kleene_tables() {
        use Expr::{And, Not, Or, Xor};
        let [t, f, u, _] = ALL.map(constant);
        assert_eq!(outcome(&And(vec![u.clone(), f.clone()])), Outcome::FALSE);
        assert_eq!(outcome(&And(vec![u.clone(), t.clone()])), Outcome::UNDEFINED);
        assert_eq!(outcome(&Or(vec![u.clone(), t.clone()])), Outcome::TRUE);
        assert_eq!(outcome(&Or(vec![u.clone(), f.clone()])), Outcome::UNDEFINED);
        assert_eq!(outcome(&Xor(vec![u.clone(), t.clone()])), Outcome::UNDEFINED);
        assert_eq!(outcome(&Xor(vec![t.clone(), f])), Outcome::TRUE);
        assert_eq!(outcome(&Not(Box::new(u))), Outcome::UNDEFINED);
        assert_eq!(outcome(&Not(Box::new(t))), Outcome::FALSE);
    }

    #[test]
    fn short_cuts_agree_with_the_full_fold() {
        for a in ALL {
            for b in ALL {
                for c in ALL {
                    let children = || [a, b, c].map(constant).to_vec();
                    assert_eq!(outcome(&Expr::And(children())), a.and(b).and(c));
                    assert_eq!(outcome(&Expr::Or(children())), a.or(b).or(c));
                    assert_eq!(outcome(&Expr::Xor(children())), a.xor(b).xor(c));
                    assert_eq!(outcome(&Expr::Xnor(children())), !(!a.xor(b)).xor(c));
                }
            }
        }
    }

    #[test]
    fn a_null_value_is_an_absent_attribute() {
        let predicate = Predicate {
            term: "x".into(),
            operator: Operator::named("=").unwrap(),
            negated: true,
            operands: [Value::Int(1)].into(),
            weight: None,
        };
        assert_eq!(predicate.outcome(Some(ValueRef::Null)), Outcome::UNDEFINED);
        assert_eq!(predicate.outcome(None), Outcome::UNDEFINED);
        assert_eq!(predicate.outcome(Some(ValueRef::Int(2))), Outcome::TRUE);
        assert_eq!(predicate.outcome(Some(ValueRef::Int(1))), Outcome::FALSE);
    }
}
