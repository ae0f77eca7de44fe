//! Which predicates does this value satisfy?
//!
//! Every distinct predicate of a segment owns a *bit*. An event sets the bits of the predicates it
//! satisfies; after that, testing a predicate is one bit test. Bits are numbered so that setting
//! them is cheap and testing them stays in the cache: attribute by attribute, and within an
//! attribute the range predicates in the order of their operands, so that a value satisfies one
//! run of them and the run is filled a word at a time.

pub mod asked;
pub mod bits;
pub mod catalog;
pub mod catalog_builder;
pub mod cuts;
pub mod keys;
pub mod lanes;
pub mod listing;
pub mod patterns;
pub mod placed;
pub mod points;
pub mod stabbing;
