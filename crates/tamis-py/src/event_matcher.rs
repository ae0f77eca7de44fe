//! `match`, `count` and `exists` of `tamis.Index`.
//!
//! A Python function around them, with a default for each of its arguments, would take a quarter of a call that finds
//! little. So `tamis.Index` inherits these from a class of the kernel.

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyTuple};
use tamis_core::query::{Ask, Query, Tags};
use tamis_core::suggest;

use crate::errors::{argument_error, type_error};
use crate::index::PyIndex;
use crate::query::selection;

/// The most frequent queries about one event, for `tamis.Index` to inherit.
///
/// >>> from tamis import Index
/// >>> index = Index()
/// >>> index.add("a", "x > 1")
/// >>> index.match({"x": 2}), index.count({"x": 2}), index.exists({"x": 2})
/// (['a'], 1, True)
// Messages about wrong arguments name the class that users know.
#[pyclass(name = "Index", module = "tamis", subclass, frozen)]
pub struct PyEventMatcher(PyOnceLock<Py<PyIndex>>);

/// What the keyword arguments of a query are, as they were given.
type Given<'a, 'py> = Option<&'a Bound<'py, PyAny>>;

impl PyEventMatcher {
    fn ask<'py>(
        &self,
        event: &Bound<'py, PyAny>,
        ask: Ask,
        [tags, tags_all, tags_none, now]: [Given<'_, 'py>; 4],
        threads: i64,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = event.py();
        let kernel = self.0.get(py).ok_or_else(|| argument_error(py, "the index was not initialized"))?;
        let is_plain = tags.is_none() && tags_all.is_none() && tags_none.is_none() && now.is_none();
        let query = match is_plain {
            true => Query { ask, tags: Tags::default(), now: None },
            false => selection(ask, tags, tags_all, tags_none, now)?,
        };
        kernel.get().answer(event, &query, threads)
    }
}

/// Refuses keywords that no parameter has.
fn refuse_unknown(method: &str, unknown: Option<&Bound<'_, PyDict>>) -> PyResult<()> {
    let Some(name) = unknown.and_then(|unknown| unknown.keys().iter().next()) else { return Ok(()) };
    let name: String = name.extract()?;
    let known = ["event", "tags", "tags_all", "tags_none", "now", "threads"];
    let hint = match suggest(&name, known) {
        Some(meant) => format!("; did you mean {meant:?}?"),
        None => format!("; the keywords are {}", known[1..].join(", ")),
    };
    Err(type_error(format!("Index.{method}() got an unexpected keyword argument {name:?}{hint}")))
}

#[pymethods]
impl PyEventMatcher {
    #[new]
    #[pyo3(signature = (*_arguments, **_options))]
    fn new(_arguments: &Bound<'_, PyTuple>, _options: Option<&Bound<'_, PyDict>>) -> Self {
        Self(PyOnceLock::new())
    }

    /// Says which index answers, once.
    fn _answer_from(&self, py: Python<'_>, kernel: Py<PyIndex>) -> PyResult<()> {
        self.0.set(py, kernel).map_err(|_| argument_error(py, "an index is initialized once"))
    }

    /// The ids of all subscriptions that the event satisfies, sorted.
    ///
    /// An event is a dict, a `tamis.Event`, or JSON text or bytes. Subscriptions are selected by their tags:
    /// at least one of `tags`, all of `tags_all`, none of `tags_none`. A tag that no subscription has
    /// (`Index.tags` lists them) selects nothing. `now` decides what has expired; the default is the current
    /// time.
    ///
    /// With `threads`, up to this many threads share an expensive event; the answer is the same. Events that
    /// take less than about 200 µs stay on one thread. It pays off if cores are idle: on a busy machine, the
    /// answer waits for the slowest thread.
    ///
    /// >>> from tamis import Index
    /// >>> index = Index()
    /// >>> index.add(2, "age > 21", tags=["q4"])
    /// >>> index.add(1, "age > 25")
    /// >>> index.match({"age": 27}), index.match({"age": 27}, tags=["q4"]), index.match({})
    /// ([1, 2], [2], [])
    /// >>> index.match({"age": 27}, tags_none=["q4"]), index.match({"age": 27}, threads=4)
    /// ([1], [1, 2])
    #[pyo3(
        name = "match",
        signature = (event, *, tags=None, tags_all=None, tags_none=None, now=None, threads=1, **unknown),
        text_signature = "($self, event, *, tags=None, tags_all=None, tags_none=None, now=None, threads=1)"
    )]
    #[allow(clippy::too_many_arguments)]
    fn all<'py>(
        &self,
        event: &Bound<'py, PyAny>,
        tags: Given<'_, 'py>,
        tags_all: Given<'_, 'py>,
        tags_none: Given<'_, 'py>,
        now: Given<'_, 'py>,
        threads: i64,
        unknown: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        refuse_unknown("match", unknown)?;
        self.ask(event, Ask::All, [tags, tags_all, tags_none, now], threads)
    }

    /// The number of subscriptions that the event satisfies; faster than `match`. Arguments are those of
    /// `match`.
    ///
    /// >>> from tamis import Index
    /// >>> index = Index()
    /// >>> index.add("a", "x > 1")
    /// >>> index.count({"x": 2}), index.count({"x": 1})
    /// (1, 0)
    #[pyo3(
        signature = (event, *, tags=None, tags_all=None, tags_none=None, now=None, threads=1, **unknown),
        text_signature = "($self, event, *, tags=None, tags_all=None, tags_none=None, now=None, threads=1)"
    )]
    #[allow(clippy::too_many_arguments)]
    fn count<'py>(
        &self,
        event: &Bound<'py, PyAny>,
        tags: Given<'_, 'py>,
        tags_all: Given<'_, 'py>,
        tags_none: Given<'_, 'py>,
        now: Given<'_, 'py>,
        threads: i64,
        unknown: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        refuse_unknown("count", unknown)?;
        self.ask(event, Ask::Count, [tags, tags_all, tags_none, now], threads)
    }

    /// Whether the event satisfies any subscription; stops at the first. Arguments are those of `match`.
    ///
    /// >>> from tamis import Index
    /// >>> index = Index()
    /// >>> index.add("a", "x > 1")
    /// >>> index.exists({"x": 2}), index.exists({"x": 1})
    /// (True, False)
    #[pyo3(
        signature = (event, *, tags=None, tags_all=None, tags_none=None, now=None, threads=1, **unknown),
        text_signature = "($self, event, *, tags=None, tags_all=None, tags_none=None, now=None, threads=1)"
    )]
    #[allow(clippy::too_many_arguments)]
    fn exists<'py>(
        &self,
        event: &Bound<'py, PyAny>,
        tags: Given<'_, 'py>,
        tags_all: Given<'_, 'py>,
        tags_none: Given<'_, 'py>,
        now: Given<'_, 'py>,
        threads: i64,
        unknown: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        refuse_unknown("exists", unknown)?;
        self.ask(event, Ask::Exists, [tags, tags_all, tags_none, now], threads)
    }
}
