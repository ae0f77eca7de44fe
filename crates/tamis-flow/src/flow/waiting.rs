//! Events that wait until the clock has reached their time.

use std::sync::Arc;

use tamis_core::event::Record;

pub(crate) struct Waiting {
    pub time: i64,
    pub arrival: u64,
    pub stream: usize,
    pub record: Arc<Record>,
    /// Of the record.
    pub bytes: usize,
}

impl PartialEq for Waiting {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Waiting {}

impl PartialOrd for Waiting {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Waiting {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.time, self.arrival).cmp(&(other.time, other.arrival))
    }
}
