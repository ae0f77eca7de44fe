//! Windows: rows that are kept per key, and aggregates over them that are kept up to date.
//!
//! `rows_of_key` has the rows of one key, stored once for all windows that use the same ones; `aggregate` has
//! the aggregates over them; `partition` has the keys; `plan` has the definitions, each kept once however
//! many queries use it; `keep` saves and restores them.

mod aggregate;
mod deviation;
mod exact_sum;
mod keep;
mod partition;
mod plan;
mod positions;
mod rows_of_key;

use crate::text::interval_text;

pub(crate) use aggregate::Aggregate;
pub(crate) use plan::{AggregateId, Fed, WindowPlan};

/// Which rows of its partition an event sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Frame {
    /// Those of the last microseconds.
    Range(i64),
    /// The last so many, the event included.
    Rows(i64),
    /// Those since the last multiple of this length.
    Tumbling(i64),
}

impl Frame {
    /// Positions are row numbers, not times.
    pub fn counts_rows(self) -> bool {
        matches!(self, Frame::Rows(_))
    }

    /// For how long it may hold a row; none if time has nothing to do with it.
    pub fn length(self) -> Option<i64> {
        match self {
            Frame::Range(length) | Frame::Tumbling(length) => Some(length),
            Frame::Rows(_) => None,
        }
    }

    /// The first position inside the window of an event at this one.
    pub fn low(self, position: i64) -> i64 {
        match self {
            Frame::Range(length) => position.saturating_sub(length),
            Frame::Rows(rows) => position.saturating_sub(rows - 1),
            Frame::Tumbling(length) => position.div_euclid(length).saturating_mul(length),
        }
    }
}

/// As it is written in a query.
impl std::fmt::Display for Frame {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Frame::Range(micros) => write!(f, "RANGE {}", interval_text(*micros)),
            Frame::Rows(rows) => write!(f, "ROWS {rows}"),
            Frame::Tumbling(micros) => write!(f, "TUMBLING {}", interval_text(*micros)),
        }
    }
}
