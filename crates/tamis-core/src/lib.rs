//! The Tamis kernel: given one event, find every stored Boolean expression that it satisfies.
//!
//! The walk of the data, and the only one:
//! text → AST → normal form → index on one side,
//! record → encoded event → satisfied predicates → candidates → matches → ranked on the other.

pub mod attributes;
pub mod engine;
pub mod error;
pub mod event;
pub mod expr;
pub mod fork;
mod json;
#[cfg(test)]
mod module_graph;
pub mod predicate;
mod prefetch;
pub mod query;
pub mod ranked;
pub mod relate;
pub mod snapshot;
pub mod subscription;
pub mod suggest;
pub mod value;

pub use error::{Error, Result};
