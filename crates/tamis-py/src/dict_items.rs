//! Goes over the fields of a dict, counting references to few of them.
//!
//! PyO3's iterator counts two references for each item and asks for the size of the dict, which takes as long as finding the item.
//! Most fields are known by the address of their name, and have no value that is wanted, or a plain one. No Python code runs for
//! these, so nothing can change the dict, and what it holds is borrowed.
//!
//! `unsafe` is here for that: the function that goes from item to item returns borrowed references.

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyString};
use tamis_core::event::{EventError, Fields, SeenField, ValueRef};

use crate::seen_names::SeenNames;

/// Strings of an event that are read where they are, each with its field. References to them are held meanwhile.
pub type Texts = Vec<(SeenField, Py<PyString>)>;

/// Takes the plain fields of an event, but for strings, which are collected. Calls `take_slowly` with all others, and with
/// whether their names were asked about.
pub fn take_fields<'py, 'a, F: Fields<'a>>(
    dict: &Bound<'py, PyDict>,
    fields: &mut F,
    names: &mut SeenNames,
    texts: &mut Texts,
    mut take_slowly: impl FnMut(
        &Bound<'py, PyAny>,
        &Bound<'py, PyAny>,
        &mut F,
        &mut SeenNames,
        bool,
    ) -> Result<(), EventError>,
) -> Result<(), EventError> {
    let (py, size) = (dict.py(), dict.len());
    let (mut place, mut name, mut value) = (0, std::ptr::null_mut(), std::ptr::null_mut());
    // SAFETY: it is a dict, the interpreter lock is held, and the other pointers are to variables.
    while unsafe { ffi::PyDict_Next(dict.as_ptr(), &mut place, &mut name, &mut value) } != 0 {
        // SAFETY: both are objects that the dict refers to until Python code changes it, and none runs before they are used for the
        // last time, or counted.
        let (name, value) = unsafe { (Borrowed::from_ptr(py, name), Borrowed::from_ptr(py, value)) };
        let is_asked = names.is_asked();
        if is_asked && take_plain(&name, &value, fields, names, texts) {
            continue;
        }
        let (name, value) = (name.to_owned(), value.to_owned());
        take_slowly(&name, &value, fields, names, is_asked)?;
        if dict.len() != size {
            return Err(EventError::new("the dict was changed while it was read"));
        }
    }
    Ok(())
}

/// Takes a field, or says that it did not. Runs no Python code: neither that of a class, nor, by raising an exception, whatever the
/// garbage collector runs.
#[inline(always)]
fn take_plain<'a>(
    name: &Bound<'_, PyAny>,
    value: &Bound<'_, PyAny>,
    fields: &mut impl Fields<'a>,
    names: &mut SeenNames,
    texts: &mut Texts,
) -> bool {
    let Some(seen) = names.field(name) else { return false };
    let mut is_text = false;
    let is_taken = fields.take_seen(seen, || {
        if let Ok(text) = value.cast_exact::<PyString>() {
            is_text = true;
            texts.push((seen, text.clone().unbind()));
            return None;
        }
        plain_number(value)
    });
    is_taken || is_text
}

#[inline]
fn plain_number<'a>(value: &Bound<'_, PyAny>) -> Option<ValueRef<'a>> {
    if value.is_exact_instance_of::<PyInt>() {
        let mut overflow = 0;
        // SAFETY: it is an integer. One that is too large is told by `overflow`, not by an exception.
        let number = unsafe { ffi::PyLong_AsLongLongAndOverflow(value.as_ptr(), &mut overflow) };
        return (overflow == 0).then_some(ValueRef::Int(number));
    }
    if let Ok(float) = value.cast_exact::<PyFloat>() {
        return Some(ValueRef::Float(float.value()));
    }
    if let Ok(truth) = value.cast_exact::<PyBool>() {
        return Some(ValueRef::Bool(truth.is_true()));
    }
    value.is_none().then_some(ValueRef::Null)
}
