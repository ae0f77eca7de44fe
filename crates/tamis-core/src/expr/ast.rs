//! The syntax tree that text, Python and JSON all become.

use super::operands::Operands;
use super::operators::Operator;
use crate::term::{Term, Terms, Uses};

/// What is known of a truth value: can it be true, can it be false?
///
/// A point value gives exactly one of them, an absent attribute neither (*undefined*), an interval
/// maybe both. With these two bits Kleene's three-valued logic and interval events are one algebra.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Outcome {
    pub can_be_true: bool,
    pub can_be_false: bool,
}

impl Outcome {
    pub const TRUE: Self = Self { can_be_true: true, can_be_false: false };
    pub const FALSE: Self = Self { can_be_true: false, can_be_false: true };
    pub const UNDEFINED: Self = Self { can_be_true: false, can_be_false: false };
    pub const EITHER: Self = Self { can_be_true: true, can_be_false: true };

    pub fn and(self, other: Self) -> Self {
        Self {
            can_be_true: self.can_be_true && other.can_be_true,
            can_be_false: self.can_be_false || other.can_be_false,
        }
    }

    pub fn or(self, other: Self) -> Self {
        !(!self).and(!other)
    }

    pub fn xor(self, other: Self) -> Self {
        Self {
            can_be_true: self.can_be_true && other.can_be_false || self.can_be_false && other.can_be_true,
            can_be_false: self.can_be_true && other.can_be_true || self.can_be_false && other.can_be_false,
        }
    }
}

impl Outcome {
    /// That at least this many of these are true.
    pub fn at_least(least: usize, outcomes: impl Iterator<Item = Self>) -> Self {
        let (mut all, mut can_be_true, mut can_be_false) = (0, 0, 0);
        for outcome in outcomes {
            all += 1;
            can_be_true += usize::from(outcome.can_be_true);
            can_be_false += usize::from(outcome.can_be_false);
        }
        Self { can_be_true: can_be_true >= least, can_be_false: can_be_false + least > all }
    }
}

impl std::ops::Not for Outcome {
    type Output = Self;

    fn not(self) -> Self {
        Self { can_be_true: self.can_be_false, can_be_false: self.can_be_true }
    }
}

impl From<bool> for Outcome {
    fn from(truth: bool) -> Self {
        if truth { Self::TRUE } else { Self::FALSE }
    }
}

/// An expression as it was written.
///
/// `And`, `Or`, `Xor` and `Xnor` have two children or more; `Xor` and `Xnor` mean their left fold.
#[derive(Clone, Debug, PartialEq)]
pub enum Expr {
    /// `TRUE`, `FALSE` or `NULL` (undefined).
    Constant(Outcome),
    Predicate(Predicate),
    Not(Box<Expr>),
    And(Vec<Expr>),
    Or(Vec<Expr>),
    Xor(Vec<Expr>),
    Xnor(Vec<Expr>),
    /// `AT LEAST n OF (…)`: true if at least so many children are true, false if so many cannot be reached because
    /// the others are false. Between one and the number of children.
    AtLeast(usize, Vec<Expr>),
}

/// One test of one term, such as `age BETWEEN 22 AND 36`.
#[derive(Clone, Debug)]
pub struct Predicate {
    pub term: Term,
    pub operator: Operator,
    /// `x NOT IN (1, 2)` is `IN`, negated. Undefined exactly when the operator is.
    pub negated: bool,
    /// In the order the operator defines; sets are sorted and free of duplicates.
    pub operands: Operands,
    /// The boost of `(x > 1)^0.4`.
    pub weight: Option<f64>,
}

impl PartialEq for Predicate {
    fn eq(&self, other: &Self) -> bool {
        self.term == other.term
            && self.operator == other.operator
            && self.negated == other.negated
            && self.operands == other.operands
            && self.weight.map(f64::to_bits) == other.weight.map(f64::to_bits)
    }
}

impl Expr {
    /// Notes in the table of terms that one more subscription has this expression, or one fewer. Its terms are there.
    pub fn note_uses(&self, terms: &mut Terms, more: i64) {
        if terms.has_computed() {
            self.for_each_use(true, &mut |predicate, of_false| {
                let of_false = if of_false { more } else { 0 };
                terms.add_uses(&predicate.term, Uses { all: more, of_false });
            });
        }
    }

    /// Calls `visit` with every predicate, and with whether it matters that its term is false and not undefined. For what
    /// is true wherever its parts are (`monotone`), it does not: such an expression only asks which of its predicates
    /// are true.
    fn for_each_use<'a>(&'a self, monotone: bool, visit: &mut impl FnMut(&'a Predicate, bool)) {
        match self {
            Expr::Constant(_) => {}
            Expr::Predicate(predicate) => {
                let asks_for_truth = match predicate.operator.tested(&predicate.operands) {
                    Some(inner) => {
                        predicate.operator == Operator::IS_TRUE
                            && inner.operator == Operator::TRUTH
                            && !inner.negated
                    }
                    None => predicate.operator == Operator::TRUTH,
                };
                visit(predicate, !(monotone && asks_for_truth && !predicate.negated));
            }
            Expr::Not(child) => child.for_each_use(false, visit),
            Expr::And(children) | Expr::Or(children) | Expr::AtLeast(_, children) => {
                children.iter().for_each(|child| child.for_each_use(monotone, visit));
            }
            Expr::Xor(children) | Expr::Xnor(children) => {
                children.iter().for_each(|child| child.for_each_use(false, visit));
            }
        }
    }

    /// Calls `visit` with every predicate, from left to right.
    pub fn for_each_predicate<'a>(&'a self, visit: &mut impl FnMut(&'a Predicate)) {
        match self {
            Expr::Constant(_) => {}
            Expr::Predicate(predicate) => visit(predicate),
            Expr::Not(child) => child.for_each_predicate(visit),
            Expr::And(children)
            | Expr::Or(children)
            | Expr::Xor(children)
            | Expr::Xnor(children)
            | Expr::AtLeast(_, children) => {
                for child in children {
                    child.for_each_predicate(visit);
                }
            }
        }
    }

    /// The same, to change them.
    pub fn for_each_predicate_mut(&mut self, visit: &mut impl FnMut(&mut Predicate)) {
        match self {
            Expr::Constant(_) => {}
            Expr::Predicate(predicate) => visit(predicate),
            Expr::Not(child) => child.for_each_predicate_mut(visit),
            Expr::And(children)
            | Expr::Or(children)
            | Expr::Xor(children)
            | Expr::Xnor(children)
            | Expr::AtLeast(_, children) => {
                for child in children {
                    child.for_each_predicate_mut(visit);
                }
            }
        }
    }
}
