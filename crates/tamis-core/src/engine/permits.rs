//! Bounds how many threads do something at once, over all queries.

use std::sync::{Condvar, Mutex, MutexGuard};

/// A number of permits, some of which are taken.
pub(super) struct Permits {
    all: usize,
    left: Mutex<usize>,
    given_back: Condvar,
}

impl Permits {
    pub fn new(all: usize) -> Self {
        Self { all, left: Mutex::new(all), given_back: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, usize> {
        self.left.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Waits for so many, or for all if there are fewer.
    pub fn take(&self, count: usize) -> Taken<'_> {
        let count = count.min(self.all);
        let waited = self.given_back.wait_while(self.lock(), |left| *left < count);
        *waited.unwrap_or_else(|poisoned| poisoned.into_inner()) -= count;
        Taken { permits: self, count }
    }
}

/// Permits that go back when this is dropped.
pub(super) struct Taken<'a> {
    permits: &'a Permits,
    count: usize,
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        *self.permits.lock() += self.count;
        self.permits.given_back.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn no_more_are_taken_than_there_are() {
        let (permits, held, most) = (Permits::new(5), AtomicUsize::new(0), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            for count in 1..=8 {
                let (permits, held, most) = (&permits, &held, &most);
                scope.spawn(move || {
                    for _ in 0..50 {
                        let taken = permits.take(count);
                        let now = held.fetch_add(taken.count, Ordering::SeqCst) + taken.count;
                        most.fetch_max(now, Ordering::SeqCst);
                        std::thread::yield_now();
                        held.fetch_sub(taken.count, Ordering::SeqCst);
                    }
                });
            }
        });
        assert!(most.into_inner() <= 5);
        assert_eq!(*permits.lock(), 5);
    }
}
