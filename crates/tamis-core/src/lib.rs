//! The Tamis kernel: given one event, find every stored Boolean expression that it satisfies.
//!
//! Data takes two paths, and no others:
//! text → AST → normal form → engine, and
//! record → terms → satisfied predicates → candidates → matches → collector.
//!
//! To match events, use [`Index`](engine::Index), [`Subscription`](subscription::Subscription), [`Query`](query::Query) and the
//! events of [`event`]. To write an engine, use [`engine::contract`] and the other public parts: atoms
//! and operators of [`expr`], some structures of [`predicate`], bounds of [`query`], and the locks of [`fork`].

pub mod engine;
pub mod error;
pub mod event;
pub mod expr;
pub mod fork;
mod heap;
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
