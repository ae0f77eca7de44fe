//! The Tamis kernel: given one event, find every stored Boolean expression that it satisfies.
//!
//! Data takes two paths: text → AST → normal form → engine, and record → terms → satisfied predicates →
//! candidates → matches → collector.
//!
//! To match events, use [`Index`](engine::Index), [`Subscription`], [`Query`](query::Query) and the events of
//! [`event`]. To write an engine, use [`engine::contract`] and the other public modules. A module re-exports
//! its public names and keeps its files private, except where the file's name is part of the meaning
//! ([`expr::json`], [`engine::device`]).

pub mod engine;
mod error;
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
mod snapshot;
mod stamp;
mod streaming_stores;
mod subscription;
mod suggest;
pub mod term;
mod text;
mod value;
pub mod xml;

pub use error::{Error, ExpressionError, Place, Result};
pub use prefetch::prefetch;
pub use snapshot::{AtomicFile, SharedSlice, Snapshot, SnapshotWriter, fuzz_snapshot};
pub use subscription::{Id, IdKind, IdRef, Subscription};
pub use suggest::suggest;
