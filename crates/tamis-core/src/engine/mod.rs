//! Finds matches without looking at every subscription.
//!
//! `contract` states what an engine promises. `production` is the default engine of `Index`: it makes immutable
//! `segment`s dynamic. `batch` matches many events at once.

pub(crate) mod add_many;
mod answer_memory;
pub mod batch;
pub mod contract;
pub(crate) mod contributions;
pub mod device;
pub(crate) mod expected_kinds;
pub(crate) mod id_column;
pub(crate) mod index;
pub(crate) mod matching_costs;
mod permits;
pub(crate) mod production;
pub(crate) mod quantified;
pub(crate) mod segment;
mod stopwatch;
pub(crate) mod subscription_diagram;
pub(crate) mod unexpected_values;
pub(crate) mod why_matched;
pub(crate) mod work;

pub(crate) use crate::subscription::{Id, Subscription};
pub use add_many::{NewRows, OnError, RowError, Source};
pub use contract::{Answer, Location, Reader, Scored, Version, Work, Workspace};
pub use contributions::Contributions;
pub use expected_kinds::ExpectedKinds;
pub use id_column::id_type;
pub use index::Index;
pub use matching_costs::SlowEvent;
pub use quantified::new_terms;
pub use subscription_diagram::subscription_diagram;
pub use unexpected_values::Surprise;
pub use why_matched::{Case, attributes_with};
