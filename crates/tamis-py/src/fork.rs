//! Forks of the interpreter: around each one Python calls these two (`os.register_at_fork`).
//!
//! A thread that forks holds the interpreter lock meanwhile. So a thread must release the interpreter lock
//! before it waits for a fork or for a lock of the kernel, and a thread that keeps it must not wait in the
//! kernel.

use pyo3::prelude::*;
use tamis_core::fork;

/// Waits until no thread holds a lock of the kernel, and prevents new ones.
#[pyfunction]
pub fn before_fork(py: Python<'_>) {
    py.detach(fork::pause);
}

/// Lets all threads continue, in the parent and in the child.
#[pyfunction]
pub fn after_fork() {
    fork::resume();
}
