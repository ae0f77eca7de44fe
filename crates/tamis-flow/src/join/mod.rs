//! Joins: rows in windows, combinations of them, and the queries that each combination satisfies.
//!
//! A combination is again an event, for one index of what the queries over the same join ask beyond the equalities that
//! define it. Nothing is stored of the answers themselves: a row that leaves its window retracts what it takes part in,
//! which is found in the same way as when it came.

mod combine;
mod definition;
mod keep;
mod plan;
mod query;
mod window_rows;

pub(crate) use plan::{JoinOutput, JoinPlan};
pub(crate) use window_rows::Row;
