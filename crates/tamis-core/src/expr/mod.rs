//! Expressions: how they are written, what they mean, and the normal form an index stores.

pub(crate) mod ast;
pub(crate) mod atoms;
pub mod build;
pub mod codec;
pub(crate) mod diagram;
pub(crate) mod eval;
pub(crate) mod explain;
pub(crate) mod explanation_text;
pub mod json;
pub mod limits;
pub(crate) mod normal_form;
pub(crate) mod operands;
pub(crate) mod operators;
pub(crate) mod parser;
pub(crate) mod printer;
pub(crate) mod quantifier;
pub mod sql;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub(crate) mod truth_test;
mod value_sets;
pub(crate) mod why_not;

pub use ast::{Expr, Outcome, Predicate};
pub use atoms::{Atom, AtomTable, Literal};
pub use diagram::Graph;
pub use eval::evaluate;
pub use explain::{Explanation, explain};
pub use normal_form::{Form, NormalForm, normal_form};
pub use operands::Operands;
pub use operators::{Bound, Operator, Shape, Test, TextShape};
pub use parser::{parse, parse_term};
pub use quantifier::{Quantified, Quantifier};
pub use truth_test::{TruthTest, missing_is_false, truth_test};
pub use why_not::{WhyNot, why_not};
