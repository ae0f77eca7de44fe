//! Kernel errors as the exceptions of `tamis.errors`.

use pyo3::exceptions::{PyOSError, PyTypeError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{IntoPyDict, PyType};
use tamis_core::{Error, ExpressionError};

/// Turns the error of a kernel call into a Python exception: `index.add(…).or_raise(py)?`.
pub trait OrRaise<T> {
    fn or_raise(self, py: Python<'_>) -> PyResult<T>;
}

impl<T, E: Into<Error>> OrRaise<T> for Result<T, E> {
    fn or_raise(self, py: Python<'_>) -> PyResult<T> {
        self.map_err(|error| exception(py, error.into()))
    }
}

/// The Python exception for a kernel error.
pub fn exception(py: Python<'_>, error: Error) -> PyErr {
    match error {
        Error::Expression(error) => expression_error(py, error),
        Error::Unsupported(message) => raise(py, "UnsupportedExpressionError", message),
        Error::Event(message) => raise(py, "EventError", message),
        Error::Id(message) => raise(py, "IdError", message),
        Error::DuplicateId(message) => raise(py, "DuplicateIdError", message),
        Error::UnknownId(message) => raise(py, "UnknownIdError", message),
        Error::Argument(message) => raise(py, "ArgumentError", message),
        Error::Snapshot(message) => raise(py, "SnapshotError", message),
        // With the operating system's number Python picks FileNotFoundError and its like.
        Error::Io(error) => match error.raw_os_error() {
            Some(code) => PyOSError::new_err((code, error.to_string())),
            None => error.into(),
        },
    }
}

/// An `ExpressionError` for something that did not come from text.
pub fn bad_expression(py: Python<'_>, message: impl Into<String>, hint: impl Into<String>) -> PyErr {
    expression_error(py, ExpressionError::new(message).with_hint(hint))
}

fn expression_error(py: Python<'_>, error: ExpressionError) -> PyErr {
    let parts = [
        ("line", error.place.map(|place| place.line).into_pyobject(py)),
        ("column", error.place.map(|place| place.column).into_pyobject(py)),
    ];
    let build = || {
        let keywords = [("hint", error.hint), ("snippet", error.snippet)].into_py_dict(py)?;
        for (name, part) in parts {
            keywords.set_item(name, part?)?;
        }
        class(py, "ExpressionError")?.call((error.message,), Some(&keywords))
    };
    build().map_or_else(|problem| problem, PyErr::from_value)
}

fn raise(py: Python<'_>, name: &str, message: String) -> PyErr {
    match class(py, name) {
        Ok(class) => PyErr::from_type(class, message),
        Err(problem) => problem,
    }
}

/// Warns the caller of the package.
pub fn warn_of_value(py: Python<'_>, message: &str, is_unreadable: bool) -> PyResult<()> {
    py.import("tamis.errors")?.call_method1("warn_of_value", (message, is_unreadable)).map(drop)
}

/// A class of `tamis.errors`, which is written in Python because its classes have two bases.
fn class<'py>(py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyType>> {
    static MODULE: PyOnceLock<Py<PyModule>> = PyOnceLock::new();
    let module = MODULE.get_or_try_init(py, || py.import("tamis.errors").map(Bound::unbind))?;
    Ok(module.bind(py).getattr(name)?.cast_into::<PyType>()?)
}

pub fn argument_error(py: Python<'_>, message: impl Into<String>) -> PyErr {
    raise(py, "ArgumentError", message.into())
}

pub fn type_error(message: impl Into<String>) -> PyErr {
    PyTypeError::new_err(message.into())
}
