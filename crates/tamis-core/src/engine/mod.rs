//! Finds matches without looking at every subscription.
//!
//! `contract` states what an engine promises. `production` is the default engine of `Index`: it makes immutable
//! `segment`s dynamic. `batch` matches many events at once.

pub mod add_many;
pub mod batch;
pub mod contract;
pub(crate) mod contributions;
pub mod device;
pub(crate) mod expected_kinds;
pub(crate) mod id_column;
pub(crate) mod index;
pub(crate) mod matching_costs;
pub(crate) mod production;
pub mod quantified;
pub(crate) mod segment;
mod stopwatch;
pub(crate) mod subscription_diagram;
pub mod unexpected_values;
pub mod why_matched;
pub(crate) mod work;

pub use crate::subscription::{Id, IdKind, IdRef, Subscription};
pub use contract::{Answer, Location, Reader, Scored, Version, Work, Workspace};
pub use contributions::Contributions;
pub use expected_kinds::ExpectedKinds;
pub use id_column::id_type;
pub use index::Index;
pub use matching_costs::SlowEvent;
pub use quantified::new_terms;
pub use subscription_diagram::subscription_diagram;
