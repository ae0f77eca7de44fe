//! The published algorithms for matching Boolean expressions, each as its paper describes it, behind the contract
//! of the kernel.
//!
//! They are mutable structures behind one lock ([`locked`]), chosen by name. They are fair baselines for the
//! experiments, and usable on their own.

mod a_tree;
#[cfg(test)]
mod agreement;
mod algorithm;
mod bdd;
mod be_trees;
mod boolean;
mod circuit;
mod conjunctions;
mod leaf_ids;
mod locked;
mod options;
mod over_predicates;
mod predicates;
pub mod ranked;
mod registry;
mod scan;
mod scored_intervals;
mod short_list;
mod span;
mod weights;

pub use registry::{algorithm_names, new_index};
