//! Locks that a fork never finds held.
//!
//! A forked child has only the thread that forked: it could never release a lock that another thread held.
//! Taking all locks before the fork would not help, because a fair lock is handed to a thread
//! that waits for it, and in the child that thread does not exist. So a thread that holds a lock counts as *busy*, and
//! a thread that forks calls [`pause`] first: it waits until no thread is busy, and none becomes busy before
//! [`resume`] is called, in the parent and in the child.
//!
//! Operations without locks, such as matching, continue meanwhile.

use std::cell::Cell;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

static BUSY: AtomicUsize = AtomicUsize::new(0);
static FORKING: AtomicBool = AtomicBool::new(false);

thread_local! {
    /// How often this thread is busy. Who is busy already never waits: the fork waits for it.
    static DEPTH: Cell<usize> = const { Cell::new(0) };
}

/// Waits until no thread holds a lock, and prevents new ones. Paired with [`resume`].
pub fn pause() {
    while FORKING.swap(true, SeqCst) {
        wait();
    }
    while BUSY.load(SeqCst) > 0 {
        wait();
    }
}

/// Lets everybody go on.
pub fn resume() {
    FORKING.store(false, SeqCst);
}

fn wait() {
    std::thread::sleep(Duration::from_micros(50));
}

/// Forks wait for the thread that holds one. Stays on its thread.
pub struct Busy(PhantomData<parking_lot::MutexGuard<'static, ()>>);

impl Busy {
    /// Waits for a fork that is under way.
    pub fn new() -> Self {
        loop {
            match Self::unless_forking() {
                Some(busy) => return busy,
                None => wait(),
            }
        }
    }

    /// Does not wait.
    fn without_waiting() -> Self {
        BUSY.fetch_add(1, SeqCst);
        DEPTH.set(DEPTH.get() + 1);
        Busy(PhantomData)
    }

    /// Does not wait either: `None` while a thread forks.
    pub fn unless_forking() -> Option<Self> {
        let busy = Self::without_waiting();
        (DEPTH.get() > 1 || !FORKING.load(SeqCst)).then_some(busy)
    }
}

impl Default for Busy {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        DEPTH.set(DEPTH.get() - 1);
        BUSY.fetch_sub(1, SeqCst);
    }
}

/// For a thread that keeps an interpreter's lock for as long as it has this. Who forks needs that lock, so no fork finds
/// the thread at work, and forks need not be told of it; but it must not wait for one, as that one waits for the lock.
pub struct KeepsInterpreter(PhantomData<parking_lot::MutexGuard<'static, ()>>);

impl KeepsInterpreter {
    pub fn new() -> Self {
        DEPTH.set(DEPTH.get() + 1);
        Self(PhantomData)
    }
}

impl Default for KeepsInterpreter {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for KeepsInterpreter {
    fn drop(&mut self) {
        DEPTH.set(DEPTH.get() - 1);
    }
}

/// A mutex whose holder is busy.
#[derive(Default)]
pub struct Mutex<T>(parking_lot::Mutex<T>);

pub struct MutexGuard<'a, T> {
    // Released before the thread stops being busy: fields are dropped in this order.
    guard: parking_lot::MutexGuard<'a, T>,
    _busy: Busy,
}

impl<T> Mutex<T> {
    pub fn new(value: T) -> Self {
        Self(parking_lot::Mutex::new(value))
    }

    pub fn lock(&self) -> MutexGuard<'_, T> {
        let busy = Busy::new();
        MutexGuard { guard: self.0.lock(), _busy: busy }
    }

    /// Never waits, neither for the holder nor for a fork.
    pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        let busy = Busy::unless_forking()?;
        Some(MutexGuard { guard: self.0.try_lock()?, _busy: busy })
    }
}

impl<T> Deref for MutexGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.guard
    }
}

impl<T> DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.guard
    }
}

/// [`OnceLock::get_or_init`], whose first caller is busy: others wait for it, so a fork must not lose it.
pub fn get_or_init<T>(cell: &OnceLock<T>, make: impl FnOnce() -> T) -> &T {
    match cell.get() {
        Some(value) => value,
        None => {
            let _busy = Busy::new();
            cell.get_or_init(make)
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::mpsc::channel;

    use super::*;

    /// All in one test, because a pause concerns every test of the process.
    #[test]
    fn a_pause_waits_for_holders_and_keeps_others_out() {
        let mutex = Arc::new(Mutex::new(0));
        let (held, wait_until_held) = channel();
        let (release, wait_for_release) = channel::<()>();
        let holder = {
            let mutex = mutex.clone();
            std::thread::spawn(move || {
                let mut guard = mutex.lock();
                held.send(()).unwrap();
                wait_for_release.recv().unwrap();
                // Who is busy already gets further locks, also during a pause.
                assert_eq!(*Mutex::new(7).lock(), 7);
                *guard += 1;
            })
        };
        wait_until_held.recv().unwrap();
        let (paused, wait_until_paused) = channel();
        let (go_on, wait_to_go_on) = channel::<()>();
        let forker = std::thread::spawn(move || {
            pause();
            paused.send(()).unwrap();
            wait_to_go_on.recv().unwrap();
            resume();
        });
        assert!(wait_until_paused.recv_timeout(Duration::from_millis(50)).is_err());
        release.send(()).unwrap();
        wait_until_paused.recv().unwrap();
        holder.join().unwrap();

        assert!(mutex.try_lock().is_none());
        let keeps = KeepsInterpreter::new();
        assert_eq!(*mutex.lock(), 1);
        drop(keeps);
        assert!(mutex.try_lock().is_none());
        let late = {
            let mutex = mutex.clone();
            std::thread::spawn(move || *mutex.lock())
        };
        std::thread::sleep(Duration::from_millis(20));
        assert!(!late.is_finished());
        go_on.send(()).unwrap();
        forker.join().unwrap();
        assert_eq!(late.join().unwrap(), 1);
        assert_eq!(*mutex.try_lock().unwrap(), 1);
    }
}
