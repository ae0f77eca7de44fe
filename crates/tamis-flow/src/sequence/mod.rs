//! Sequences: partial matches that go on, step by step, as rows come.
//!
//! `tree` has the steps of sequences that begin alike, `condition` what a step asks of a row; `machine` the partial matches
//! of one key, in the order of preference, and `taken` the rows they took; `plan` the sequences of a stream, and which of
//! them an event concerns; `machines` the keys, `held` for how long, `looks` when somebody looks at them again;
//! `inspection` says what there is; `keep` writes and reads it.

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
