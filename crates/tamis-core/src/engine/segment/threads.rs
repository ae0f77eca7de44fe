//! The threads of a build, and of several builds side by side.
//!
//! Threads are started for one step of a build and end with it: a pool would not survive a fork. How many there are decides
//! nothing that can be seen.

use std::sync::atomic::{AtomicIsize, AtomicUsize, Ordering};

use crate::error::Result;

/// How many threads to build on when nobody is to be left in peace.
pub fn all_cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// How many threads builds may use together.
pub struct Threads {
    all: usize,
    /// Those that nobody uses. Whoever calls has one already, and lends it while it waits; if it is still in use
    /// afterwards, there is one too many for a while, and this is negative.
    spare: AtomicIsize,
}

impl Threads {
    /// That many, of which the caller is one.
    pub fn new(all: usize) -> Self {
        let all = all.max(1);
        Self { all, spare: AtomicIsize::new(all as isize - 1) }
    }

    /// How many there are.
    pub fn all(&self) -> usize {
        self.all
    }

    /// Takes so many more, or as many as nobody uses now. Never waits.
    pub fn take(&self, most: usize) -> Taken<'_> {
        let mut count = 0;
        let _ = self.spare.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |spare| {
            count = most.min(spare.max(0) as usize);
            (count > 0).then_some(spare - count as isize)
        });
        Taken { threads: self, count }
    }

    fn lend(&self, count: usize) {
        self.spare.fetch_add(count as isize, Ordering::Relaxed);
    }

    /// Does `jobs` jobs on up to that many threads, each by whichever is free, and returns what they return in order, or
    /// the first error in order.
    pub fn share<T: Send>(
        &self,
        jobs: usize,
        most: usize,
        job: impl Fn(usize) -> Result<T> + Sync,
    ) -> Result<Vec<T>> {
        let next = AtomicUsize::new(0);
        let failed = AtomicUsize::new(usize::MAX);
        let work = || {
            let mut done = vec![];
            loop {
                let at = next.fetch_add(1, Ordering::Relaxed);
                // What follows an error is not wanted; what comes before it may have an earlier one.
                if at >= jobs || at > failed.load(Ordering::Relaxed) {
                    return done;
                }
                let outcome = job(at);
                if outcome.is_err() {
                    failed.fetch_min(at, Ordering::Relaxed);
                }
                done.push((at, outcome));
            }
        };
        let others = self.take(most.min(jobs).saturating_sub(1)).keep();
        let mut done = std::thread::scope(|scope| {
            let other = || {
                let done = work();
                self.lend(1);
                done
            };
            let running: Vec<_> = (0..others).map(|_| scope.spawn(other)).collect();
            let mut done = work();
            self.lend(1);
            done.extend(running.into_iter().flat_map(|thread| thread.join().expect("no thread panics")));
            done
        });
        self.spare.fetch_sub(1, Ordering::Relaxed);
        done.sort_unstable_by_key(|(at, _)| *at);
        done.into_iter().map(|(_, outcome)| outcome).collect()
    }
}

/// Threads that are free again when this is dropped.
pub struct Taken<'a> {
    threads: &'a Threads,
    count: usize,
}

impl Taken<'_> {
    pub fn count(&self) -> usize {
        self.count
    }

    /// They are given back one by one instead, each when it ends.
    fn keep(self) -> usize {
        let count = self.count;
        std::mem::forget(self);
        count
    }
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        self.threads.lend(self.count);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;

    #[test]
    fn what_is_taken_comes_back() {
        let threads = Threads::new(4);
        let (two, one) = (threads.take(2), threads.take(2));
        assert_eq!((two.count(), one.count(), threads.take(1).count()), (2, 1, 0));
        drop(two);
        assert_eq!(threads.take(9).count(), 2);
        drop(one);
        assert_eq!(threads.take(9).count(), 3);
        assert_eq!(Threads::new(0).take(1).count(), 0);
    }

    #[test]
    fn results_come_in_order_and_so_does_the_first_error() {
        for all in [1, 2, 5] {
            let threads = Threads::new(all);
            for jobs in [0, 1, 2, 50] {
                let results = threads.share(jobs, all, |at| Ok(at * at));
                let results = results.unwrap_or_else(|error| panic!("{error}"));
                assert_eq!(results, (0..jobs).map(|at| at * at).collect::<Vec<_>>());
            }
            let outcome = threads.share(50, all, |at| match at {
                0..30 => Ok(at),
                at => Err(Error::Argument(at.to_string())),
            });
            assert_eq!(outcome.map_err(|error| error.to_string()), Err("30".to_string()));
            assert_eq!(threads.take(usize::MAX).count(), all - 1, "all came back");
        }
    }
}
