//! Limits how many matches a call holds at once, over all its blocks and threads.

use std::sync::atomic::{AtomicUsize, Ordering};

/// A number of matches that blocks take from. What runs at the same time is bounded by giving each thread an
/// equal share; what was found stays spent.
pub struct Budget {
    most: usize,
    per_thread: usize,
    spent: AtomicUsize,
}

impl Budget {
    pub fn new(most: usize, threads: usize) -> Self {
        Self { most, per_thread: most / threads.max(1), spent: AtomicUsize::new(0) }
    }

    /// How many matches a block may have, or `None` if nothing is left for it. The first block always has a
    /// turn, whatever the other threads found meanwhile: every call answers an event at least.
    pub fn share(&self, is_first: bool) -> Option<usize> {
        let left = self.most.saturating_sub(self.spent.load(Ordering::Relaxed));
        (left > 0 || is_first).then_some(left.min(self.per_thread))
    }

    pub fn spend(&self, matches: usize) {
        self.spent.fetch_add(matches, Ordering::Relaxed);
    }
}
