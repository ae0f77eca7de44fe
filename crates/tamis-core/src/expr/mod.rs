//! Expressions: how they are written, what they mean, and the normal form an index stores.

pub mod ast;
pub mod operators;

pub use ast::{Expr, Outcome, Predicate};
pub use operators::Operator;
