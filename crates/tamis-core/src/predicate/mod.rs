//! Finds the predicates that a value satisfies.
//!
//! Every distinct predicate of a segment owns a *bit*. An event sets the bits of the predicates it
//! satisfies; after that, testing a predicate is one bit test. Bits are numbered so that setting
//! them is cheap and testing them stays in the cache: attribute by attribute, and within an
//! attribute the range predicates in the order of their operands, so that a value satisfies one
//! run of them and the run is filled a word at a time.

pub(crate) mod bits;
pub(crate) mod block_lookup;
mod boolean_bits;
pub(crate) mod catalog;
pub(crate) mod catalog_builder;
pub(crate) mod delegated;
pub(crate) mod equality;
pub(crate) mod interleaved;
pub(crate) mod interval_lists;
pub(crate) mod interval_tree;
pub(crate) mod keys;
pub(crate) mod path_texts;
pub(crate) mod paths;
pub(crate) mod patterns;
pub(crate) mod ranges;
pub(crate) mod residual;
mod small_catalog;
pub(crate) mod states;
pub(crate) mod text_samples;

pub use bits::Bits;
pub(crate) use catalog_builder::DOCUMENT;
pub use keys::{KEY_BITS, has_exact_key, ordered_key};
pub use patterns::TextPredicates;
pub use ranges::Cut;
