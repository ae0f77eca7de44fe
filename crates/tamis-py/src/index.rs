//! The index as a Python object. The public class is `tamis.Index`, which wraps this one.

use std::path::PathBuf;

use parking_lot::Mutex;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};
use tamis_core::engine::{Index, OnError};
use tamis_core::event::{Kind, Schema, Value};
use tamis_core::query::Query;
use tamis_core::{Error, Subscription};

use crate::errors::{OrRaise, argument_error, exception};
use crate::id_cache::IdCache;
use crate::ids::{id_from_python, id_to_python};
use crate::matching::ask;
use crate::query::PyQuery;
use crate::results::Found;
use crate::rows::Rows;
use crate::subscription::{Details, Draft, number, subscription_to_python, weights_from_python};

/// The value of an option. A boolean is tried first: in Python it is an integer too.
#[derive(FromPyObject, IntoPyObject)]
pub enum Setting {
    Flag(bool),
    Number(i64),
    Share(f64),
    Text(String),
}

impl From<Setting> for Value {
    fn from(setting: Setting) -> Self {
        match setting {
            Setting::Flag(on) => Value::Bool(on),
            Setting::Number(number) => Value::Int(number),
            Setting::Share(share) => Value::Float(share),
            Setting::Text(text) => Value::Str(text.into()),
        }
    }
}

impl Setting {
    fn of(value: &Value) -> Option<Self> {
        match value {
            Value::Bool(on) => Some(Setting::Flag(*on)),
            Value::Int(number) => Some(Setting::Number(*number)),
            Value::Float(share) => Some(Setting::Share(*share)),
            Value::Str(text) => Some(Setting::Text(text.to_string())),
            _ => None,
        }
    }
}

#[pyclass(name = "Index", module = "tamis._kernel", frozen)]
pub struct PyIndex(Index, IdCache);

impl PyIndex {
    fn of(index: Index) -> Self {
        Self(index, IdCache::default())
    }

    pub fn index(&self) -> &Index {
        &self.0
    }

    /// The answer to a query; see [`ask`](Self::ask).
    pub fn answer<'py>(
        &self,
        event: &Bound<'py, PyAny>,
        query: &Query,
        threads: i64,
    ) -> PyResult<Bound<'py, PyAny>> {
        let threads = usize::try_from(threads).ok().filter(|threads| *threads > 0);
        let threads = threads.ok_or_else(|| argument_error(event.py(), "threads must be 1 or more"))?;
        ask(&self.0, &self.1, event, query, threads)
    }

    /// Makes a change without the interpreter lock: a writer may have to wait for another.
    fn change(
        &self,
        id: &Bound<'_, PyAny>,
        expression: &Bound<'_, PyAny>,
        details: Details<'_>,
        apply: fn(&Index, Subscription) -> Result<(), Error>,
    ) -> PyResult<()> {
        let draft = Draft::new(id, expression, details)?;
        id.py().detach(|| self.verified().and_then(|index| draft.apply(index, apply))).or_raise(id.py())
    }

    /// The index, once the file it was opened from is known to be sound.
    pub fn verified(&self) -> Result<&Index, Error> {
        self.0.unchecked_reader().prepare()?;
        Ok(&self.0)
    }
}

#[pymethods]
impl PyIndex {
    #[new]
    fn new(
        py: Python<'_>,
        algorithm: &str,
        schema: Option<&str>,
        options: Vec<(String, Setting)>,
        optimize: &str,
        strict: bool,
    ) -> PyResult<Self> {
        let schema = schema.map(|json| Schema::from_json(json.as_bytes())).transpose().or_raise(py)?;
        let options: Vec<_> = options.into_iter().map(|(name, setting)| (name, setting.into())).collect();
        let index =
            tamis_algorithms::new_index(algorithm, schema, &options).or_raise(py)?.with_strictness(strict);
        match optimize {
            "auto" => index.optimize_automatically(true),
            "manual" => index.optimize_automatically(false),
            other => {
                let message = format!("optimize is \"auto\" or \"manual\", not {other:?}");
                return Err(argument_error(py, message));
            }
        }
        Ok(Self::of(index))
    }

    // --- changes -----------------------------------------------------------------------------------

    fn add(
        &self,
        id: &Bound<'_, PyAny>,
        expression: &Bound<'_, PyAny>,
        details: Details<'_>,
    ) -> PyResult<()> {
        self.change(id, expression, details, Index::add)
    }

    fn replace(
        &self,
        id: &Bound<'_, PyAny>,
        expression: &Bound<'_, PyAny>,
        details: Details<'_>,
    ) -> PyResult<()> {
        self.change(id, expression, details, Index::replace)
    }

    fn upsert(
        &self,
        id: &Bound<'_, PyAny>,
        expression: &Bound<'_, PyAny>,
        details: Details<'_>,
    ) -> PyResult<()> {
        self.change(id, expression, details, Index::upsert)
    }

    fn remove(&self, id: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = id.py();
        let id = id_from_python(id).or_raise(py)?;
        py.detach(|| self.verified()?.remove(id)).or_raise(py)
    }

    fn set_priority(&self, id: &Bound<'_, PyAny>, priority: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = id.py();
        let (id, priority) = (id_from_python(id).or_raise(py)?, number("the priority", priority)?);
        py.detach(|| self.verified()?.set_priority(id, priority)).or_raise(py)
    }

    fn set_weights(&self, id: &Bound<'_, PyAny>, weights: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = id.py();
        let (id, weights) = (id_from_python(id).or_raise(py)?, weights_from_python(weights)?);
        py.detach(|| self.verified()?.set_weights(id, weights)).or_raise(py)
    }

    /// Returns the rows that were not added: (row, id, exception).
    fn add_many<'py>(
        &self,
        py: Python<'py>,
        ids: &Bound<'py, PyAny>,
        expressions: &Bound<'py, PyAny>,
        details: Option<&Bound<'py, PyAny>>,
        on_error: &str,
    ) -> PyResult<Vec<Bound<'py, PyTuple>>> {
        let on_error = match on_error {
            "raise" => OnError::Raise,
            "collect" => OnError::Collect,
            other => {
                let message = format!("on_error is \"raise\" or \"collect\", not {other:?}");
                return Err(argument_error(py, message));
            }
        };
        let rows = Rows::from_python(ids, expressions, details)?;
        let added = py.detach(|| self.verified()?.add_many(&rows, on_error)).or_raise(py)?;
        let show = |error: tamis_core::engine::RowError| {
            let id = error.id.as_ref().map(|id| id_to_python(py, id.as_ref())).transpose()?;
            (error.row, id, exception(py, error.error).into_value(py)).into_pyobject(py)
        };
        added.errors.into_iter().map(show).collect()
    }

    // --- looking up --------------------------------------------------------------------------------

    fn __len__(&self, py: Python<'_>) -> usize {
        py.detach(|| self.0.len())
    }

    fn contains(&self, py: Python<'_>, id: &Bound<'_, PyAny>) -> PyResult<bool> {
        let Ok(id) = id_from_python(id) else { return Ok(false) };
        py.detach(|| Ok::<_, Error>(self.0.reader()?.locate(&id).is_some())).or_raise(py)
    }

    fn get<'py>(&self, id: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyTuple>> {
        let py = id.py();
        let id = id_from_python(id).or_raise(py)?;
        let subscription = py.detach(|| self.0.get(&id)).or_raise(py)?;
        subscription_to_python(py, subscription)
    }

    /// All ids, sorted.
    fn ids(&self, py: Python<'_>) -> PyResult<PyIds> {
        let all = || {
            let reader = self.0.reader()?;
            Ok::<_, Error>(Found::new(&reader, reader.locations()))
        };
        Ok(PyIds { all: py.detach(all).or_raise(py)?, next: Mutex::new(0) })
    }

    #[getter]
    fn generation(&self, py: Python<'_>) -> u64 {
        py.detach(|| self.0.unchecked_reader().generation())
    }

    #[getter]
    fn algorithm(&self) -> &'static str {
        self.0.algorithm()
    }

    /// The options of the algorithm that were set.
    #[getter]
    fn options(&self) -> Vec<(String, Setting)> {
        self.0
            .options()
            .iter()
            .filter_map(|(name, value)| Some((name.clone(), Setting::of(value)?)))
            .collect()
    }

    /// (attribute, kinds of values that predicates on it expect), sorted by attribute.
    fn attributes(&self, py: Python<'_>) -> PyResult<Vec<(String, Vec<&'static str>)>> {
        let asked = || {
            let asked = self.0.reader()?.expected_kinds().into_iter();
            Ok::<_, Error>(asked.map(|(name, kinds)| (name, kinds.into_iter().map(Kind::name).collect())))
        };
        py.detach(|| asked().map(Iterator::collect)).or_raise(py)
    }

    /// (tag, number of subscriptions that have it), sorted by tag.
    fn tags(&self, py: Python<'_>) -> PyResult<Vec<(String, usize)>> {
        let counts = py.detach(|| self.0.reader().map(|reader| reader.tag_counts())).or_raise(py)?;
        Ok(counts.into_iter().map(|(tag, count)| (tag.into(), count)).collect())
    }

    /// The payloads of subscriptions, None for those that have none: of all, or of the first that together
    /// have no more than `most` bytes, and of one at least.
    #[pyo3(signature = (ids, most = None))]
    fn payloads<'py>(
        &self,
        py: Python<'py>,
        ids: Vec<Bound<'py, PyAny>>,
        most: Option<usize>,
    ) -> PyResult<Vec<Option<Bound<'py, PyBytes>>>> {
        let ids = ids.iter().map(id_from_python).collect::<Result<Vec<_>, _>>().or_raise(py)?;
        let payloads = || {
            let reader = self.0.reader()?;
            let (mut found, mut bytes) = (vec![], 0);
            for id in &ids {
                let payload = reader.get(id)?.payload;
                bytes += payload.as_ref().map_or(0, |payload| payload.len());
                if most.is_some_and(|most| bytes > most) && !found.is_empty() {
                    break;
                }
                found.push(payload);
            }
            Ok::<_, Error>(found)
        };
        let found = py.detach(payloads).or_raise(py)?;
        Ok(found.into_iter().map(|payload| payload.map(|bytes| PyBytes::new(py, &bytes))).collect())
    }

    /// The schema as JSON.
    #[getter]
    fn schema(&self) -> Option<String> {
        self.0.schema().map(Schema::to_json)
    }

    /// Whether an unreadable value is an error.
    #[getter]
    fn strict(&self) -> bool {
        self.0.is_strict()
    }

    // --- queries -----------------------------------------------------------------------------------

    /// The answer to a query: ids, a number, a bool, or tuples of id, score and rank. An event with much to do may
    /// use this many threads.
    #[pyo3(signature = (event, query, threads=1))]
    fn ask<'py>(
        &self,
        event: &Bound<'py, PyAny>,
        query: &PyQuery,
        threads: i64,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.answer(event, query.query(), threads)
    }

    // --- keeping -----------------------------------------------------------------------------------

    fn save(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        py.detach(|| self.0.save(path)).or_raise(py)
    }

    #[staticmethod]
    fn open(py: Python<'_>, path: PathBuf, copy: bool, strict: bool) -> PyResult<Self> {
        py.detach(|| if copy { Index::open_copied(path) } else { Index::open(path) })
            .or_raise(py)
            .map(|index| Self::of(index.with_strictness(strict)))
    }

    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        Ok(PyBytes::new(py, &py.detach(|| self.0.to_bytes()).or_raise(py)?))
    }

    #[staticmethod]
    fn from_bytes(py: Python<'_>, bytes: &[u8], strict: bool) -> PyResult<Self> {
        let index = py.detach(|| Index::from_bytes(bytes.to_vec())).or_raise(py)?;
        Ok(Self::of(index.with_strictness(strict)))
    }

    fn verify(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.0.verify()).or_raise(py)
    }

    // --- how it is doing ---------------------------------------------------------------------------

    /// The statistics as JSON.
    fn stats(&self, py: Python<'_>) -> String {
        py.detach(|| self.0.statistics().to_string())
    }

    fn reset_stats(&self, py: Python<'_>) {
        py.detach(|| self.0.reset_observed());
    }

    fn optimize(&self, py: Python<'_>, background: bool) -> PyResult<()> {
        let optimize = || {
            let index = self.verified()?;
            if background {
                index.optimize_in_background();
                return Ok(());
            }
            index.optimize()
        };
        py.detach(optimize).or_raise(py)
    }

    #[getter]
    fn is_optimizing(&self) -> bool {
        self.0.is_optimizing()
    }
}

/// The names of all algorithms.
#[pyfunction]
pub fn algorithms() -> Vec<&'static str> {
    tamis_algorithms::algorithm_names().collect()
}

/// Walks over the ids of one version of an index.
#[pyclass(name = "Ids", module = "tamis._kernel", frozen)]
pub struct PyIds {
    all: Found,
    next: Mutex<usize>,
}

#[pymethods]
impl PyIds {
    fn __iter__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let at = {
            let mut next = self.next.lock();
            *next += 1;
            *next - 1
        };
        if at < self.all.len() { self.all.id(py, at).map(Some) } else { Ok(None) }
    }

    fn __length_hint__(&self) -> usize {
        self.all.len().saturating_sub(*self.next.lock())
    }
}
