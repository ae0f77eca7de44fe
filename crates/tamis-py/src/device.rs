//! Devices that match blocks of events.

use std::ffi::CString;
use std::path::PathBuf;

use pyo3::exceptions::PyRuntimeWarning;
use pyo3::prelude::*;
use tamis_core::engine::Index;
use tamis_core::fork::KeepsInterpreter;

use crate::index::PyIndex;

/// Matches blocks of events on a CUDA device from now on, or on a substitute: a library that was compiled
/// from the kernels. Returns the reason if it cannot be used. With `timed`, statistics contain times by step,
/// which makes it slower.
#[pyfunction]
pub fn use_device(
    py: Python<'_>,
    index: &PyIndex,
    number: usize,
    memory: Option<u64>,
    library: Option<PathBuf>,
    timed: bool,
) -> Option<String> {
    let index = index.index();
    let device = py.detach(|| match library {
        Some(library) => tamis_gpu::host_device(&library, memory, timed),
        None => tamis_gpu::cuda_device(number, memory, timed),
    });
    match device {
        Ok(device) => index.use_device(Some(device)),
        Err(error) => return Some(error.text),
    }
    None
}

/// Matches blocks of events on this processor again.
#[pyfunction]
pub fn leave_device(py: Python<'_>, index: &PyIndex) {
    let index = index.index();
    py.detach(|| index.use_device(None));
}

/// The name of the device that matches blocks of events, if there is one that works.
#[pyfunction]
pub fn device_name(index: &PyIndex) -> Option<String> {
    let memory = index.index().device().filter(|memory| memory.is_usable())?;
    memory.device().describe()["name"].as_str().map(str::to_owned)
}

/// Warns once when a device has failed.
pub fn warn_of_failure(py: Python<'_>, index: &Index) -> PyResult<()> {
    let why = {
        let _keeps = KeepsInterpreter::new(); // a fork may wait for the interpreter
        index.device().and_then(|memory| memory.unreported_failure())
    };
    let Some(why) = why else { return Ok(()) };
    let message = format!("{why}; the processor answers from now on");
    let message = CString::new(message.replace('\0', " ")).expect("no zero is left");
    PyErr::warn(py, &py.get_type::<PyRuntimeWarning>(), &message, 2)
}
