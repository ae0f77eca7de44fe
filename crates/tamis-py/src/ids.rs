//! Ids between Python and the kernel.

use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyInt, PyString};
use tamis_core::{Error, Id, IdRef};

/// The id of a Python object: a string or an integer of 64 bits.
pub fn id_from_python(object: &Bound<'_, PyAny>) -> Result<Id, Error> {
    if let Ok(text) = object.cast::<PyString>() {
        return match text.to_str() {
            Ok(text) => Ok(Id::Str(text.into())),
            Err(_) => {
                Err(Error::Id(format!("the id {text:?} is not Unicode text: it holds a lone surrogate")))
            }
        };
    }
    if object.is_instance_of::<PyInt>() && !object.is_instance_of::<PyBool>() {
        return object
            .extract()
            .map(Id::Int)
            .map_err(|_| Error::Id(format!("the id {object} does not fit in 64 bits; use a string")));
    }
    // NumPy's integers and their like.
    if !object.is_instance_of::<PyBool>()
        && object.hasattr("__index__").unwrap_or(false)
        && let Ok(id) = object.extract()
    {
        return Ok(Id::Int(id));
    }
    let class = object.get_type();
    let name = class.name().map_or_else(|_| "object".into(), |name| name.to_string());
    Err(Error::Id(format!("an id is a string or a 64-bit integer, not {name}")))
}

pub fn id_to_python<'py>(py: Python<'py>, id: IdRef<'_>) -> PyResult<Bound<'py, PyAny>> {
    match id {
        IdRef::Int(id) => id.into_bound_py_any(py),
        IdRef::Str(id) => Ok(PyString::new(py, id).into_any()),
    }
}
