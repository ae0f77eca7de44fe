//! Expressions: how they are written, what they mean, and the normal form an index stores.

pub mod ast;
pub mod build;
pub mod codec;
pub mod json;
pub mod limits;
pub mod parser;
pub mod atoms;
pub mod eval;
pub mod normal_form;
pub mod operators;
pub mod printer;
pub mod sql;
#[cfg(test)]
pub(crate) mod testing;

pub use ast::{Expr, Outcome, Predicate};
pub use atoms::{Atom, AtomTable, Literal};
pub use eval::evaluate;
pub use normal_form::{Form, NormalForm, normal_form};
pub use operators::Operator;
pub use parser::parse;
