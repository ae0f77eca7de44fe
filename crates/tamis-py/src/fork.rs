//! Forks that leave no lock behind: a forked child has only the thread that forked, so a lock that another
//! thread held would never be released in it.
//!
//! Python calls [`before_fork`] and [`after_fork`] around every fork (`os.register_at_fork`), in the thread
//! that forks. Between them that thread holds every lock of every index, and it holds the interpreter while it
//! forks: so nobody may wait for one of these locks without having released the interpreter.

use std::cell::RefCell;
use std::sync::{Arc, LazyLock, Weak};

use parking_lot::lock_api::ArcMutexGuard;
use parking_lot::{Mutex, RawMutex};
use pyo3::prelude::*;
use tamis_core::index::Index;
use tamis_core::index::store::Quiet;

/// Every index of this process. Who forks holds it, so that there is one fork at a time: two threads that
/// each wait for the locks of the other would wait for ever.
static LIVE: LazyLock<Arc<Mutex<Vec<Weak<Index>>>>> = LazyLock::new(Arc::default);

thread_local! {
    static HELD: RefCell<Option<Held>> = const { RefCell::new(None) };
}

struct Held {
    _indexes: Vec<Quiet>,
    _live: ArcMutexGuard<RawMutex, Vec<Weak<Index>>>,
}

/// An index that forks know of.
pub fn register(py: Python<'_>, index: Index) -> Arc<Index> {
    let index = Arc::new(index);
    py.detach(|| {
        let mut live = LIVE.lock();
        live.retain(|other| other.strong_count() > 0);
        live.push(Arc::downgrade(&index));
    });
    index
}

/// Waits until nobody holds a lock of an index, and keeps it so.
#[pyfunction]
pub fn before_fork(py: Python<'_>) {
    py.detach(|| {
        let live = LIVE.lock_arc();
        let indexes = live.iter().filter_map(Weak::upgrade).map(|index| index.quiet()).collect();
        HELD.set(Some(Held { _indexes: indexes, _live: live }));
    });
}

/// Lets everybody go on, in the parent and in the child.
#[pyfunction]
pub fn after_fork() {
    HELD.set(None);
}
