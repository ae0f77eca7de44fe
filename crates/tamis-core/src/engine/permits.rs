//! Bounds how many threads do something at once, over all queries.

use std::sync::{Condvar, Mutex, MutexGuard};

/// A number of permits, some of which are taken.
pub struct Permits {
    left: Mutex<usize>,
    given_back: Condvar,
}

impl Permits {
    /// This many, but at least one.
    pub fn new(all: usize) -> Self {
        Self { left: Mutex::new(all.max(1)), given_back: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, usize> {
        self.left.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Takes up to this many permits, and waits only while there are none. A thread that waited for all of them at once could starve.
    pub fn take(&self, count: usize) -> Taken<'_> {
        let waited = self.given_back.wait_while(self.lock(), |left| *left == 0);
        let mut left = waited.unwrap_or_else(|poisoned| poisoned.into_inner());
        let count = count.min(*left);
        *left -= count;
        Taken { permits: self, count }
    }
}

/// Permits that go back when this is dropped.
pub struct Taken<'a> {
    permits: &'a Permits,
    count: usize,
}

impl Taken<'_> {
    /// How many these are.
    pub fn count(&self) -> usize {
        self.count
    }
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

    /// Fault: who wants many waits until nobody else has any.
    #[test]
    fn what_is_left_is_taken_without_waiting() {
        let permits = Permits::new(5);
        let one = permits.take(1);
        let rest = permits.take(8);
        assert_eq!((one.count(), rest.count()), (1, 4));
        drop(one);
        assert_eq!(permits.take(2).count(), 1);
        drop(rest);
        assert_eq!(permits.take(8).count(), 5);
        assert_eq!(Permits::new(0).take(3).count(), 1);
    }

    #[test]
    fn no_more_are_taken_than_there_are() {
        let (permits, held, most) = (Permits::new(5), AtomicUsize::new(0), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            for count in 1..=8 {
                let (permits, held, most) = (&permits, &held, &most);
                scope.spawn(move || {
                    for _ in 0..50 {
                        let taken = permits.take(count);
                        let now = held.fetch_add(taken.count(), Ordering::SeqCst) + taken.count();
                        most.fetch_max(now, Ordering::SeqCst);
                        std::thread::yield_now();
                        held.fetch_sub(taken.count(), Ordering::SeqCst);
                    }
                });
            }
        });
        assert!(most.into_inner() <= 5);
        assert_eq!(*permits.lock(), 5);
    }
}
