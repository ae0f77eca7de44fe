//! A token for work that only one thread may do at a time.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use super::Inner;

/// The process in which a thread has the right, or 0. A forked child has no such thread.
#[derive(Default)]
pub(super) struct TakenIn(AtomicU32);

impl TakenIn {
    /// Whether a thread of this process has it.
    pub fn is_taken(&self) -> bool {
        self.0.load(Ordering::Acquire) == std::process::id()
    }
}

/// Given back when it is dropped.
pub(super) struct Turn {
    pub inner: Arc<Inner>,
    of: fn(&Inner) -> &TakenIn,
}

impl Turn {
    pub fn take(inner: &Arc<Inner>, of: fn(&Inner) -> &TakenIn) -> Option<Self> {
        let (process, TakenIn(taken_in)) = (std::process::id(), of(inner));
        let at_work = taken_in.load(Ordering::Acquire);
        let is_free = at_work != process
            && taken_in.compare_exchange(at_work, process, Ordering::AcqRel, Ordering::Acquire).is_ok();
        is_free.then(|| Turn { inner: inner.clone(), of })
    }

    pub fn wait_for(inner: &Arc<Inner>, of: fn(&Inner) -> &TakenIn) -> Self {
        loop {
            match Self::take(inner, of) {
                Some(turn) => return turn,
                None => std::thread::sleep(Duration::from_millis(1)),
            }
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        (self.of)(&self.inner).0.store(0, Ordering::Release);
    }
}
