//! Checks XML documents, and reports errors.

use pyo3::prelude::*;
use tamis_core::xml;

/// Line, column and message of the first fault of a document, or None.
#[pyfunction]
pub fn xml_fault(py: Python<'_>, text: &str) -> Option<(usize, usize, String)> {
    let fault = py.detach(|| xml::check(text).err())?;
    Some((fault.line, fault.column, fault.message))
}
