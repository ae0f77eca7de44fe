//! The structures that find matches without looking at every subscription.

pub mod a_tree;
pub mod add_many;
#[cfg(test)]
mod agreement;
pub mod algorithm;
pub mod asked_kinds;
pub mod batch;
pub mod bdd;
pub mod be_trees;
pub mod boolean;
pub mod circuit;
pub mod classic;
pub mod conjunctions;
pub mod contributions;
pub mod index;
pub mod leaf_ids;
pub mod neighbourhood;
pub mod options;
pub mod over_predicates;
pub mod persist;
pub mod predicates;
pub mod production;
pub mod reader;
pub mod scan;
pub mod scored_intervals;
pub mod segment;
pub mod short_list;
pub mod statistics;
pub mod tag_counts;
pub mod weights;

pub use crate::subscription::{Id, IdKind, IdRef, Subscription};
pub use index::Index;
pub use reader::{Reader, Scored};
