//! The results of continuous queries.

use std::sync::Arc;

use tamis_core::event::{Record, Value};

use super::Query;
use crate::join::JoinOutput;
use crate::sequence::Told;

/// Whether an answer came or went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Added,
    Retracted,
}

/// Something that a continuous query tells.
#[derive(Clone, Debug)]
pub struct Output {
    pub query: Arc<str>,
    pub kind: Kind,
    /// UTC microseconds.
    pub time: i64,
    /// Names and values: for a rule its windowed terms, for a join its projection.
    pub row: Vec<(Arc<str>, Value)>,
    /// The events that made it true.
    pub events: Vec<Arc<Record>>,
}

pub(super) fn join_output(query: &Query, found: JoinOutput) -> Output {
    let JoinOutput { kind, time, row, events, .. } = found;
    Output { query: query.name.clone(), kind, time, row, events }
}

pub(super) fn sequence_output(query: &Query, found: &Told) -> Output {
    Output {
        query: query.name.clone(),
        kind: Kind::Added,
        time: found.time,
        row: found.counts.iter().map(|(name, count)| (name.clone(), Value::Int(*count))).collect(),
        events: found.events.clone(),
    }
}
