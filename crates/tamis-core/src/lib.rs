//! The Tamis kernel: given one event, find every stored Boolean expression that it satisfies.
//!
//! The walk of the data, and the only one:
//! text → AST → normal form → engine on one side,
//! record → terms → satisfied predicates → candidates → matches → collector on the other.
//!
//! Who matches needs [`Index`](engine::Index), [`Subscription`](subscription::Subscription), [`Query`](query::Query) and the
//! events of [`event`]. Who writes an engine needs [`engine::contract`] and, of the rest, what is public on purpose: atoms
//! and operators of [`expr`], some structures of [`predicate`], bounds of [`query`], and the locks of [`fork`].

pub mod engine;
pub mod error;
pub mod event;
pub mod expr;
pub mod fork;
mod json;
#[cfg(test)]
mod module_graph;
mod number_table;
pub mod predicate;
mod prefetch;
pub mod query;
pub mod relate;
pub mod snapshot;
mod stamp;
pub mod subscription;
pub mod suggest;
pub mod term;
mod text;
pub mod value;
pub mod xml;

pub use error::{Error, Result};
