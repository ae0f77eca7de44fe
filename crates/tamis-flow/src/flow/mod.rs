//! A flow: streams, continuous queries over them, and the order in which events are evaluated.
//!
//! `queries` adds and removes streams and queries; `stream_plan` has what the queries over one stream share;
//! `evaluation` takes in events and evaluates them in order, and `waiting` holds those whose time has not
//! come; `limit` bounds the state; `output` has the results; `inspection` describes the contents.

mod evaluation;
mod inspection;
mod limit;
mod output;
mod queries;
mod stream_plan;
mod waiting;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::guard::GuardId;
use crate::join::JoinPlan;
use crate::journal::Journal;
use crate::selection::SelectionId;
use crate::sequence::SequenceId;
use crate::window::{AggregateId, Fed};

pub use limit::{Limit, OnLimit};
pub use output::{Kind, Output};
pub(crate) use stream_plan::StreamPlan;
pub(crate) use waiting::Waiting;

/// Continuous queries over named streams.
///
/// ```
/// use tamis_core::event::{Record, Value};
/// use tamis_flow::{Flow, StreamOptions};
///
/// let mut flow = Flow::new(None);
/// flow.stream("logins", StreamOptions { time: Some("ts".into()), ..StreamOptions::default() }).unwrap();
/// flow.add("burst", "count(* WHERE NOT ok BY user LAST 10m) >= 2", Some("logins"), false).unwrap();
/// let login = |ts| Record::new([("ts", Value::Int(ts)), ("ok", Value::Bool(false))], []).unwrap();
/// let (told, outcome) = flow.push("logins", login(0), None);
/// assert!(told.is_empty() && outcome.is_ok());
/// assert_eq!(&*flow.push("logins", login(600), None).0[0].query, "burst");
/// assert!(flow.push("logins", login(1201), None).0.is_empty());
/// ```
#[derive(Default)]
pub struct Flow {
    pub(crate) streams: Vec<StreamPlan>,
    pub(crate) queries: BTreeMap<u32, Query>,
    pub(crate) query_numbers: FxHashMap<Arc<str>, u32>,
    pub(crate) next_query: u32,
    /// Events that wait for the clock: (time, arrival), and which.
    pub(crate) waiting: BinaryHeap<Reverse<Waiting>>,
    pub(crate) waiting_bytes: usize,
    pub(crate) arrivals: u64,
    pub(crate) limit: Option<Limit>,
    pub(crate) refused: u64,
    pub(crate) joins: JoinPlan,
    /// How many events were evaluated, of all streams.
    pub(crate) evaluations: u64,
    /// The input since the last checkpoint, if there was one.
    pub(crate) journal: Option<Journal>,
    room: Room,
}

/// Memory that is used again from event to event.
#[derive(Default)]
struct Room {
    selected: Vec<SelectionId>,
    values: Vec<Fed>,
    fired: Vec<u32>,
}

pub(crate) struct Query {
    pub name: Arc<str>,
    pub text: String,
    pub stream: usize,
    pub plan: Plan,
}

pub(crate) enum Plan {
    Rule(Rule),
    Sequence(SequenceId),
    /// Of these streams.
    Join(Vec<usize>),
}

pub(crate) struct Rule {
    pub aggregates: Vec<AggregateId>,
    pub guard: GuardId,
}

/// Which moments the parts of a query began at: now, or those of a query that was stored.
#[derive(Clone, Copy)]
pub(crate) enum Start<'e> {
    Empty,
    Backfilled,
    Stored(&'e [u64]),
}

impl Flow {
    pub fn new(limit: Option<Limit>) -> Self {
        Self { limit, ..Self::default() }
    }

    /// Notes a change for the next checkpoint.
    fn note(&mut self, write: impl FnOnce(&mut Journal, &Self)) {
        if let Some(mut journal) = self.journal.take() {
            write(&mut journal, self);
            self.journal = Some(journal);
        }
    }
}
