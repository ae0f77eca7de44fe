//! Forks that leave no lock behind: a forked child has only the thread that forked, so a lock that another
//! thread held would never be released in it.
//!
//! Python calls [`before_fork`] and [`after_fork`] around every fork (`os.register_at_fork`), in the thread
//! that forks. Between them that thread holds the locks of all indexes.

use std::cell::RefCell;
use std::sync::LazyLock;

use parking_lot::lock_api::ArcMutexGuard;
use parking_lot::{Mutex, RawMutex};
use pyo3::prelude::*;
use std::sync::Arc;
use tamis_core::index::store::Quiet;

use crate::index::PyIndex;

/// One fork at a time: two threads that each wait for the locks of the other would wait for ever.
static FORKING: LazyLock<Arc<Mutex<()>>> = LazyLock::new(Arc::default);

thread_local! {
    static HELD: RefCell<Option<Held>> = const { RefCell::new(None) };
}

struct Held {
    _indexes: Vec<Quiet>,
    _forking: ArcMutexGuard<RawMutex, ()>,
}

/// Waits until nobody holds a lock of these indexes, and keeps it so.
#[pyfunction]
pub fn before_fork(py: Python<'_>, indexes: Vec<Py<PyIndex>>) {
    // Who holds a lock may need the interpreter to let go of it.
    py.detach(|| {
        let forking = FORKING.lock_arc();
        let held = Held {
            _indexes: indexes.iter().map(|index| index.get().index().quiet()).collect(),
            _forking: forking,
        };
        HELD.with_borrow_mut(|place| *place = Some(held));
    });
}

/// Lets everybody go on, in the parent and in the child.
#[pyfunction]
pub fn after_fork() {
    HELD.with_borrow_mut(|place| *place = None);
}
