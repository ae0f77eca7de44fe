//! The structures that find matches without looking at every subscription.

pub mod a_tree;
pub mod add_many;
#[cfg(test)]
mod agreement;
pub mod algorithm;
pub mod batch;
pub mod bdd;
pub mod be_trees;
pub mod boolean;
pub mod circuit;
pub mod classic;
pub mod conjunctions;
pub mod contract;
pub mod contributions;
pub mod expected_kinds;
pub mod id_column;
pub mod index;
pub mod leaf_ids;
pub mod neighbourhood;
pub mod observed;
pub mod options;
pub mod over_predicates;
pub mod predicates;
pub mod production;
pub mod scan;
pub mod scored_intervals;
pub mod segment;
pub mod short_list;
pub mod weights;

pub use crate::subscription::{Id, IdKind, IdRef, Subscription};
pub use contract::{Location, Reader, Scored, Version, Work, Workspace};
pub use index::Index;
