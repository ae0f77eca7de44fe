//! Sequences: partial matches that continue, step by step, as rows arrive.
//!
//! `tree` has the steps of sequences that begin alike, and `condition` the conditions of a step. `machine`
//! has the partial matches of one key, in the order of preference, and `taken` the rows they took. `plan` has
//! the sequences of a stream, and which of them an event concerns. `machines` has the keys, `held` how long
//! they are kept, and `looks` when they are visited next. `inspection` describes the contents; `keep` saves
//! and restores them.

mod begun;
mod condition;
mod held;
mod inspection;
mod keep;
mod looks;
mod machine;
mod machines;
mod plan;
mod taken;
mod tree;

pub(crate) use plan::{SequenceId, SequencePlan, Told};
