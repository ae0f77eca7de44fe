//! What finds matches without looking at every subscription.
//!
//! `contract` says what an engine promises. `production` is the engine that `Index` runs on unless it is given
//! another one: it makes `segment`s, which are immutable, dynamic. `batch` is for many events at once.

pub mod add_many;
pub mod batch;
pub mod contract;
pub mod contributions;
pub mod expected_kinds;
pub mod id_column;
pub mod index;
pub mod neighbourhood;
pub mod observed;
pub mod production;
pub mod scored_intervals;
pub mod segment;

pub use crate::subscription::{Id, IdKind, IdRef, Subscription};
pub use contract::{Location, Reader, Scored, Version, Work, Workspace};
pub use index::Index;
