//! The Python face of the Tamis kernel: thin wrappers, no logic.
use pyo3::prelude::*;

#[pymodule]
mod _kernel {}
