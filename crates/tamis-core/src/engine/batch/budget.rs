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

    /// How many matches a block may have, or `None` if nothing is left for it; `usize::MAX` if there is no limit. The first block always has a
    /// turn, whatever the other threads found meanwhile: every call answers an event at least.
    pub fn share(&self, is_first: bool) -> Option<usize> {
        if self.most == usize::MAX {
            return Some(self.most); // nobody has to count first
        }
        let left = self.most.saturating_sub(self.spent.load(Ordering::Relaxed));
        (left > 0 || is_first).then_some(left.min(self.per_thread))
    }

    pub fn spend(&self, matches: usize) {
        self.spent.fetch_add(matches, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fault: a share of no limit looks like a limit, and a device counts the matches of each block before it lists them.
    #[test]
    fn a_share_of_no_limit_is_none() {
        let budget = Budget::new(usize::MAX, 4);
        budget.spend(10);
        assert_eq!(budget.share(false), Some(usize::MAX));
    }

    #[test]
    fn shares_are_equal_until_little_is_left() {
        let budget = Budget::new(100, 4);
        assert_eq!(budget.share(false), Some(25));
        budget.spend(90);
        assert_eq!(budget.share(false), Some(10));
        budget.spend(10);
        assert_eq!((budget.share(false), budget.share(true)), (None, Some(0)));
    }
}
