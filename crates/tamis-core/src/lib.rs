//! The Tamis kernel: given one event, find every stored Boolean expression that it satisfies.
//!
//! The walk of the data, and the only one:
//! text → AST → normal form → index on one side,
//! record → encoded event → satisfied predicates → candidates → matches → ranked on the other.

pub mod engine;
pub mod error;
pub mod event;
pub mod expr;
pub mod fork;
pub mod predicate;
mod prefetch;
pub mod query;
pub mod ranked;
pub mod relate;
pub mod snapshot;
pub mod subscription;

pub use error::{Error, Result};
