//! Queries between Python and the kernel.

use std::hash::{DefaultHasher, Hash, Hasher};

use pyo3::prelude::*;
use pyo3::types::{PyBool, PyString, PyTuple};
use tamis_core::event::Value;
use tamis_core::query::{Ask, Query, Ranking, Score, Tags};

use crate::convert::value_to_python;
use crate::errors::{OrRaise, argument_error, type_error};
use crate::subscription::{moment_from_python, number, tags_from_python};

/// A query about an event: one immutable value, for `Index`, Spark and the command line.
///
/// `ask` is "all" (the ids of all matches), "count", "exists", "owners" (the owners of matches) or "best".
/// `k`, `score`, `min_score` and `dimensions` are for "best", which is implied if one of them is given: the
/// `k` matches (default 10) with the highest score, which is "priority" (the default), "relevance",
/// "relaxed", or a function such as "min(a, b) + 0.5 * c". Matches with a score below `min_score` are left
/// out; only attributes in `dimensions` count. With `k=0`, there are no matches.
///
/// Subscriptions are selected by their tags: at least one of `tags`, all of `tags_all`, none of `tags_none`. `now`
/// (a datetime, or UTC microseconds) decides what has expired; it is the time of asking unless given.
///
/// >>> from tamis import Index, Query
/// >>> index = Index()
/// >>> index.add("a", "x > 1", priority=1.0, tags=["q4", "north"])
/// >>> index.add("b", "x > 2", priority=2.0, tags=["q4"])
/// >>> index.ask(Query(tags=["q4"], tags_none=["north"]), {"x": 3})
/// ['b']
/// >>> best = Query(k=1)
/// >>> best, index.ask(best, {"x": 3})
/// (Query('best', k=1, score='priority'), [Match(id='b', score=2.0, rank=1)])
/// >>> Query.from_json(best.to_json()) == best
/// True
#[pyclass(name = "Query", module = "tamis._kernel", frozen)]
pub struct PyQuery(Query);

impl PyQuery {
    pub fn query(&self) -> &Query {
        &self.0
    }
}

#[pymethods]
impl PyQuery {
    #[new]
    #[pyo3(signature = (
        ask=None, *, k=None, score=None, min_score=None, dimensions=None,
        tags=None, tags_all=None, tags_none=None, now=None
    ))]
    #[allow(clippy::too_many_arguments)]
    fn new(
        py: Python<'_>,
        ask: Option<&str>,
        k: Option<&Bound<'_, PyAny>>,
        score: Option<&Bound<'_, PyAny>>,
        min_score: Option<&Bound<'_, PyAny>>,
        dimensions: Option<&Bound<'_, PyAny>>,
        tags: Option<&Bound<'_, PyAny>>,
        tags_all: Option<&Bound<'_, PyAny>>,
        tags_none: Option<&Bound<'_, PyAny>>,
        now: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let is_ranked = k.is_some() || score.is_some() || min_score.is_some() || dimensions.is_some();
        let mut ranking = Ranking::default();
        if let Some(k) = k {
            ranking.k = number_of_matches(k)?;
        }
        if let Some(score) = score {
            ranking.score = Score::named(score_text(score)?.to_str()?).or_raise(py)?;
        }
        if let Some(least) = min_score {
            ranking.min_score = number("min_score", least)?;
            if ranking.min_score.is_nan() {
                return Err(argument_error(py, "min_score is a number, not NaN"));
            }
        }
        ranking.dimensions = dimensions.map(dimensions_from_python).transpose()?;
        let asked = ask.unwrap_or(if is_ranked { "best" } else { "all" });
        let ask = Ask::named(asked, is_ranked.then_some(ranking)).or_raise(py)?;
        selection(ask, tags, tags_all, tags_none, now).map(Self)
    }

    /// The kind of query: "all", "count", "exists", "owners" or "best".
    #[getter]
    fn ask(&self) -> &'static str {
        self.0.ask.name()
    }

    /// The number of best matches; None for other queries.
    #[getter]
    fn k(&self) -> Option<usize> {
        self.0.ranking().map(|ranking| ranking.k)
    }

    /// The score of the best matches; None for other queries.
    #[getter]
    fn score(&self) -> Option<&str> {
        self.0.ranking().map(|ranking| ranking.score.text())
    }

    /// The minimum score, if there is one.
    #[getter]
    fn min_score(&self) -> Option<f64> {
        self.0.ranking().map(|ranking| ranking.min_score).filter(|least| *least != f64::NEG_INFINITY)
    }

    /// The attributes that count, if not all do.
    #[getter]
    fn dimensions<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyTuple>>> {
        let dimensions = self.0.ranking().and_then(|ranking| ranking.dimensions.as_deref());
        dimensions.map(|names| texts(py, names)).transpose()
    }

    /// Tags of which a subscription must have at least one, if any were given.
    #[getter]
    fn tags<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyTuple>>> {
        self.0.tags.any.as_deref().map(|tags| texts(py, tags)).transpose()
    }

    /// Tags that a subscription must have.
    #[getter]
    fn tags_all<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        texts(py, &self.0.tags.all)
    }

    /// Tags that a subscription must not have.
    #[getter]
    fn tags_none<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        texts(py, &self.0.tags.none)
    }

    /// The moment that decides what has expired; None for the time of the query.
    #[getter]
    fn now<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.0.now.map(|micros| value_to_python(py, &Value::Timestamp(micros))).transpose()
    }

    /// The same query at a moment.
    ///
    /// >>> from tamis import Query
    /// >>> Query("count").at(0)
    /// Query('count', now=0)
    fn at(&self, now: &Bound<'_, PyAny>) -> PyResult<Self> {
        Ok(Self(Query { now: Some(moment_from_python("now", now)?), ..self.0.clone() }))
    }

    /// The query as JSON, which `from_json` reads.
    ///
    /// >>> from tamis import Query
    /// >>> Query(k=3, tags=["q4"]).to_json()
    /// '{"ask":"best","k":3,"score":"priority","tags":["q4"]}'
    fn to_json(&self) -> String {
        self.0.to_json()
    }

    /// The query that JSON text describes; `tamis.ArgumentError` says what is wrong with it.
    ///
    /// >>> from tamis import Query
    /// >>> Query.from_json('{"ask": "count", "tags_none": ["paused"]}')
    /// Query('count', tags_none=['paused'])
    #[staticmethod]
    fn from_json(py: Python<'_>, text: &str) -> PyResult<Self> {
        Query::from_json(text).or_raise(py).map(Self)
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<PyQuery>().is_ok_and(|other| other.get().0 == self.0)
    }

    fn __hash__(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.0.to_json().hash(&mut hasher);
        hasher.finish()
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let mut shown = format!("Query('{}'", self.0.ask.name());
        let mut put = |name: &str, value: String| shown.push_str(&format!(", {name}={value}"));
        let list = |names: &[Box<str>]| -> PyResult<String> {
            let names: Vec<&str> = names.iter().map(|name| &**name).collect();
            Ok(names.into_pyobject(py)?.repr()?.to_string())
        };
        if let Some(ranking) = self.0.ranking() {
            put("k", ranking.k.to_string());
            put("score", PyString::new(py, ranking.score.text()).repr()?.to_string());
            if let Some(least) = self.min_score() {
                put("min_score", least.into_pyobject(py)?.repr()?.to_string());
            }
            if let Some(dimensions) = &ranking.dimensions {
                put("dimensions", list(dimensions)?);
            }
        }
        let Tags { any, all, none } = &self.0.tags;
        if let Some(any) = any {
            put("tags", list(any)?);
        }
        for (name, tags) in [("tags_all", all), ("tags_none", none)] {
            if !tags.is_empty() {
                put(name, list(tags)?);
            }
        }
        if let Some(now) = self.0.now {
            put("now", now.to_string());
        }
        Ok(shown + ")")
    }

    /// Pickled as JSON.
    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, (String,))> {
        Ok((py.get_type::<PyQuery>().getattr("from_json")?, (self.to_json(),)))
    }
}

/// A query about those subscriptions that tags and the moment select.
pub fn selection(
    ask: Ask,
    tags: Option<&Bound<'_, PyAny>>,
    tags_all: Option<&Bound<'_, PyAny>>,
    tags_none: Option<&Bound<'_, PyAny>>,
    now: Option<&Bound<'_, PyAny>>,
) -> PyResult<Query> {
    let list = |tags: Option<&Bound<'_, PyAny>>| tags.map(tags_from_python).transpose();
    Ok(Query {
        ask,
        tags: Tags {
            any: list(tags)?,
            all: list(tags_all)?.unwrap_or_default(),
            none: list(tags_none)?.unwrap_or_default(),
        },
        now: now.map(|moment| moment_from_python("now", moment)).transpose()?,
    })
}

fn number_of_matches(k: &Bound<'_, PyAny>) -> PyResult<usize> {
    let number = if k.is_instance_of::<PyBool>() { None } else { k.extract::<i64>().ok() };
    let Some(number) = number else {
        return Err(type_error(format!("k is an integer such as 10, not {}", k.repr()?)));
    };
    usize::try_from(number)
        .map_err(|_| argument_error(k.py(), format!("k must not be negative, not {number}")))
}

fn texts<'py>(py: Python<'py>, list: &[Box<str>]) -> PyResult<Bound<'py, PyTuple>> {
    PyTuple::new(py, list.iter().map(|text| &**text))
}

fn score_text<'a, 'py>(score: &'a Bound<'py, PyAny>) -> PyResult<&'a Bound<'py, PyString>> {
    score.cast::<PyString>().map_err(|_| {
        let hint = if score.is_callable() { "; a function is given to Index.top_k" } else { "" };
        let name = score.get_type().name().map_or_else(|_| "object".into(), |name| name.to_string());
        type_error(format!("the score of a query is a string, not {name}{hint}"))
    })
}

fn dimensions_from_python(dimensions: &Bound<'_, PyAny>) -> PyResult<Vec<Box<str>>> {
    if dimensions.is_instance_of::<PyString>() {
        return Err(type_error(format!(
            "dimensions is a list of attributes; write dimensions=[{}]",
            dimensions.repr()?
        )));
    }
    let names = dimensions.try_iter().map_err(|_| type_error("dimensions is a list of attributes"))?;
    names.map(|name| Ok(name?.extract::<String>()?.into())).collect()
}
