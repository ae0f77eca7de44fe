//! The structures that find matches without looking at every subscription.

pub mod add_many;
pub mod algorithm;
pub mod asked_kinds;
pub mod classic;
pub mod contributions;
pub mod persist;
pub mod production;
pub mod reader;
pub mod scan;
pub mod segment;
pub mod statistics;
pub mod store;
pub mod subscription;

pub use reader::{IdRef, Reader, Scored};
pub use store::Index;
pub use subscription::{Id, IdKind, Subscription};
