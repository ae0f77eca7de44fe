//! Sequences: partial matches that go on, step by step, as rows come.
//!
//! `machine` has the partial matches of one key, in the order of preference; `plan` the sequences of a stream, and which
//! of them an event concerns.

mod machine;
mod plan;

pub(crate) use plan::{SequenceId, SequencePlan, Told};
