//! Converts matches to Python objects.

use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::PyList;
use tamis_core::Id;
use tamis_core::engine::{Location, Reader, Version};

use crate::id_cache::IdCache;
use crate::ids::id_to_python;

/// Matches that outlive the query, without a lock: Python code may run, and change the index, while their ids
/// become Python objects.
pub enum Found {
    Kept(Arc<dyn Version + Send>, Vec<Location>),
    /// Of a version that cannot be kept.
    Copied(Vec<Id>),
}

impl Found {
    pub fn new(reader: &Reader, places: Vec<Location>) -> Self {
        match reader {
            _ if places.is_empty() => Found::Copied(vec![]),
            Reader::Kept(version) => Found::Kept(version.clone(), places),
            Reader::Locked(version) => {
                Found::Copied(places.iter().map(|place| version.id(*place).to_owned()).collect())
            }
        }
    }

    pub fn len(&self) -> usize {
        match self {
            Found::Kept(_, places) => places.len(),
            Found::Copied(ids) => ids.len(),
        }
    }

    /// The id of one match.
    pub fn id<'py>(&self, py: Python<'py>, at: usize) -> PyResult<Bound<'py, PyAny>> {
        match self {
            Found::Kept(version, places) => id_to_python(py, version.id(places[at])),
            Found::Copied(ids) => id_to_python(py, ids[at].as_ref()),
        }
    }

    pub fn to_list<'py>(&self, py: Python<'py>, cache: &IdCache) -> PyResult<Bound<'py, PyList>> {
        match self {
            _ if self.len() == 0 => Ok(PyList::empty(py)),
            Found::Kept(version, places) => PyList::new(py, cache.ids(py, &**version, places)?),
            Found::Copied(ids) => {
                let ids = ids.iter().map(|id| id_to_python(py, id.as_ref()));
                PyList::new(py, ids.collect::<PyResult<Vec<_>>>()?)
            }
        }
    }
}
