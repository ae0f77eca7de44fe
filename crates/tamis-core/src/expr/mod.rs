//! Expressions: how they are written, what they mean, and the normal form an index stores.

pub mod ast;
pub mod atoms;
pub mod build;
pub mod codec;
pub mod diagram;
pub mod eval;
pub(crate) mod explain;
pub(crate) mod explanation_text;
pub mod json;
pub mod limits;
pub mod normal_form;
pub(crate) mod operands;
pub mod operators;
pub mod parser;
pub(crate) mod printer;
pub mod quantifier;
pub mod sql;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub mod truth_test;
mod value_sets;
pub(crate) mod why_not;

pub use ast::{Expr, Outcome, Predicate};
pub use atoms::{Atom, AtomTable, Literal};
pub use eval::evaluate;
pub use explain::{Explanation, explain};
pub use normal_form::{Form, NormalForm, normal_form};
pub use operands::Operands;
pub use operators::Operator;
pub use parser::{parse, parse_term};
pub use truth_test::{TruthTest, truth_test};
pub use why_not::{WhyNot, why_not};
