//! The Python face of the Tamis kernel: thin wrappers, no logic. The module is `tamis._kernel`; what users
//! import is in `src/tamis/`.

mod convert;
mod errors;
mod event;
mod expr;

use pyo3::prelude::*;

#[pymodule]
mod _kernel {
    #[pymodule_export]
    use crate::event::{PyEvent, PyInterval};
    #[pymodule_export]
    use crate::expr::{PyExpression, predicate};
}
