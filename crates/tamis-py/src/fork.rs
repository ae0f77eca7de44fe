//! Forks of the interpreter: around each one Python calls these two (`os.register_at_fork`).
//!
//! Who forks holds the interpreter while it does. So nobody may wait for a fork, nor for a lock of the kernel,
//! without having released the interpreter; and who works in the kernel without releasing it does not wait.

use pyo3::prelude::*;
use tamis_core::fork;

/// Waits until nobody holds a lock of the kernel, and keeps it so.
#[pyfunction]
pub fn before_fork(py: Python<'_>) {
    py.detach(fork::pause);
}

/// Lets everybody go on, in the parent and in the child.
#[pyfunction]
pub fn after_fork() {
    fork::resume();
}
