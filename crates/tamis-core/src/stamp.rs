//! Identifies one state of a table, so that data derived from it can be cached.

use std::sync::atomic::{AtomicU64, Ordering};

/// The name of one state of a table. A clone has the state, and so the stamp, of what it was cloned from; tables
/// that never changed are all empty, and share one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stamp(u64);

impl Stamp {
    /// After a change: a stamp that no table ever had.
    pub fn renew(&mut self) {
        static LAST: AtomicU64 = AtomicU64::new(0);
        self.0 = 1 + LAST.fetch_add(1, Ordering::Relaxed);
    }
}
