//! The normal form: what an index stores of an expression.
//!
//! Once NOT is pushed down to the predicates, AND and OR only need to know which of their children are
//! *true*, and the negation of a predicate is a separate literal. So the form is monotone: it is true exactly
//! when the expression is, given which literals are true, and an index never handles *undefined*.
//! Three-valued logic remains inside literals and inside [`Form::Parity`]. A child of a parity is given
//! twice: as a form that is true when the child is true, and as one that is true when it is false. Neither is
//! true when it is undefined.
//!
//! The rules, each exact for every event unless it says otherwise:
//!
//! 1. NOT is pushed into predicates; an operator with a complement (`<` and `>=`) becomes it.
//! 2. Nested XOR, XNOR and NOT become one parity. Children that are constant, never true or never false are
//!    removed; equal ones cancel (points only).
//! 3. A parity of two children is expanded to `(a AND NOT b) OR (NOT a AND b)`, which has the same size and
//!    can be cut short, unless it lies inside another parity: there both polarities are needed and a kept
//!    parity shares its children between them. Three children or more are kept: expanding n of them takes
//!    n·2ⁿ⁻¹ literals instead of 2n. A threshold is kept: its negation is a threshold of the negations. One
//!    of many is OR, all of them AND, and constants are folded.
//! 4. AND in AND and OR in OR are flattened, constants folded, duplicates removed, and
//!    `a OR (a AND b)` becomes `a`, as `a AND (a OR b)` does.
//! 5. An AND that no value can satisfy becomes false (mostly points only), and a range that
//!    another one implies is dropped; see [`literals`].
//! 6. Children are sorted, so that equal expressions become equal forms.
//!
//! *Points only* means that an interval could satisfy what was removed (`x > 5 AND x < 3` by
//! stabbing `[0, 9]`): [`NormalForm::point_only`] is set and interval events must evaluate the
//! written expression.

mod build;
mod form;
mod literals;
mod simplify;

pub use form::{Form, Node};

use super::ast::{Expr, Predicate};
use super::atoms::{AtomTable, Literal};
use super::operators::Operator;
use crate::term::Terms;

/// An expression, ready for an index.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct NormalForm {
    pub root: Form,
    /// Something was removed that a point value can never satisfy but an interval could: interval
    /// events must evaluate the written expression.
    pub point_only: bool,
}

/// The normal form of an expression over the attributes and atoms of one index.
///
/// Takes time and space in proportion to the expression (times a logarithm for sorting).
pub fn normal_form(expr: &Expr, terms: &mut Terms, atoms: &mut AtomTable) -> NormalForm {
    build::build(expr, terms, atoms)
}

/// Calls `visit` with every predicate as it is written, and with the operators of the literals that the normal form most
/// likely has for it: one, or inside a parity two.
pub fn for_each_literal(expr: &Expr, visit: &mut impl FnMut(&Predicate, [Option<Operator>; 2])) {
    build::for_each_literal(expr, visit);
}

/// The literal that is true when a predicate is true (`polarity`) or when it is false; `None` if it never is.
pub fn literal(
    predicate: &Predicate,
    polarity: bool,
    terms: &mut Terms,
    atoms: &mut AtomTable,
) -> Option<Literal> {
    build::literal(predicate, polarity, terms, atoms)
}

#[cfg(test)]
mod tests;
