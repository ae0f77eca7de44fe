//! Joins: rows in windows, combinations of them, and the queries that each combination satisfies.
//!
//! A combination is again an event, for one index of the conditions that queries over the same join have
//! beyond its equalities. Answers are not stored: a row that leaves its window retracts its combinations,
//! which are found in the same way as when it arrived.

mod combine;
mod definition;
mod keep;
mod plan;
mod query;
mod window_rows;

pub(crate) use plan::{JoinOutput, JoinPlan};
pub(crate) use window_rows::Row;
