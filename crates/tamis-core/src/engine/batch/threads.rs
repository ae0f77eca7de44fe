//! Processes blocks on several threads and returns the results in order.
//!
//! Threads are started per call, because a pool would not survive a fork, and Python services fork.

use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::engine::permits::Permits;

/// How many blocks are gathered for a device at the same time, where running them takes longer than gathering: the device waits for
/// the first one. Further blocks wait until some of the threads are free.
pub const GATHERED_AT_ONCE: usize = 4;

/// The threads of a call, shared by its blocks.
pub struct Helpers {
    /// How many a block may have for itself.
    pub each: usize,
    /// How many gather blocks for a device, all together.
    pub gathering: Permits,
}

impl Helpers {
    /// At most `at_once` blocks are gathered at the same time.
    pub fn new(len: usize, block: usize, threads: usize, at_once: usize) -> Self {
        let each = (threads / len.div_ceil(block).clamp(1, at_once.max(1))).max(1);
        Self { each, gathering: Permits::new(threads) }
    }
}

/// Calls `work` for every block of `0..len` and returns the results in the order of the blocks.
/// Each thread makes one workspace.
pub fn in_blocks<S, R: Send>(
    len: usize,
    block: usize,
    threads: usize,
    workspace: impl Fn() -> S + Sync,
    work: impl Fn(&mut S, Range<usize>) -> R + Sync,
) -> Vec<R> {
    let blocks = len.div_ceil(block);
    let range = |at: usize| at * block..((at + 1) * block).min(len);
    if threads <= 1 || blocks <= 1 {
        let mut space = workspace();
        return (0..blocks).map(|at| work(&mut space, range(at))).collect();
    }
    let next = AtomicUsize::new(0);
    let done: Mutex<Vec<(usize, R)>> = Mutex::new(Vec::with_capacity(blocks));
    std::thread::scope(|scope| {
        for _ in 0..threads.min(blocks) {
            scope.spawn(|| {
                let mut space = workspace();
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    if at >= blocks {
                        return;
                    }
                    let result = work(&mut space, range(at));
                    done.lock().expect("no thread panics while it holds this").push((at, result));
                }
            });
        }
    });
    let mut done = done.into_inner().expect("all threads have ended");
    done.sort_unstable_by_key(|(at, _)| *at);
    done.into_iter().map(|(_, result)| result).collect()
}
