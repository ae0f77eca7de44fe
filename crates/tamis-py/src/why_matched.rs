//! Why a subscription matches an event or does not. Answers are passed to Python as JSON, and `tamis.explain`
//! turns them into objects.

use std::borrow::Cow;

use pyo3::prelude::*;
use tamis_core::engine::{Case, Workspace, attributes_with, subscription_diagram};
use tamis_core::expr::{Expr, Graph};
use tamis_core::query::Query;
use tamis_core::{Error, Id};

use crate::errors::{OrRaise, argument_error};
use crate::ids::id_from_python;
use crate::index::PyIndex;
use crate::matching::resolved;
use crate::query::PyQuery;

/// The expression of a subscription with the truth of every node, and what else excludes it, as JSON.
#[pyfunction(name = "explain")]
pub fn explain_json(
    index: &PyIndex,
    id: &Bound<'_, PyAny>,
    event: &Bound<'_, PyAny>,
    query: &PyQuery,
) -> PyResult<String> {
    reason(index, id, event, query.query(), |case, id, scratch| {
        Ok(case.explain(id, scratch)?.to_json().to_string())
    })
}

/// The fewest predicates that would have to change, and what else excludes it, as JSON.
#[pyfunction(name = "why_not")]
pub fn why_not_json(
    index: &PyIndex,
    id: &Bound<'_, PyAny>,
    event: &Bound<'_, PyAny>,
    query: &PyQuery,
) -> PyResult<String> {
    reason(index, id, event, query.query(), |case, id, scratch| {
        Ok(case.why_not(id, scratch)?.to_json().to_string())
    })
}

/// The expression of a subscription as a diagram, coloured by truth if there is an event, or with subscriptions
/// that share parts of it.
#[pyfunction]
pub fn diagram(
    py: Python<'_>,
    index: &PyIndex,
    id: &Bound<'_, PyAny>,
    format: &str,
    event: Option<&Bound<'_, PyAny>>,
    neighbours: usize,
) -> PyResult<String> {
    let write = match format {
        "mermaid" => Graph::to_mermaid,
        "dot" => Graph::to_dot,
        other => {
            return Err(argument_error(py, format!("the format is \"mermaid\" or \"dot\", not {other:?}")));
        }
    };
    if neighbours > 0 {
        if event.is_some() {
            return Err(argument_error(py, "a diagram shows neighbours or an event, not both"));
        }
        let id = id_from_python(id).or_raise(py)?;
        let draw = || subscription_diagram(&*index.index().reader()?, &id, neighbours);
        return Ok(write(&py.detach(draw).or_raise(py)?));
    }
    let Some(event) = event else {
        return Ok(write(&Graph::of_expression(&expression(index, id)?, None)));
    };
    reason(index, id, event, &Query::default(), |case, id, scratch| {
        let explanation = case.explain(id, scratch)?.explanation;
        Ok(write(&Graph::of_expression(&case.version.get(id)?.expression, Some(&explanation))))
    })
}

/// Asks for a reason; without the interpreter lock, because a search may take a while.
fn reason(
    index: &PyIndex,
    id: &Bound<'_, PyAny>,
    event: &Bound<'_, PyAny>,
    query: &Query,
    find: impl FnOnce(&Case<'_>, &Id, &mut Workspace) -> Result<String, Error> + Send,
) -> PyResult<String> {
    let py = id.py();
    let id = &id_from_python(id).or_raise(py)?;
    let query = &query.clone().at_current_time();
    let now = query.filter().now;
    resolved(
        index.index(),
        event,
        |reader| Ok(Cow::Owned(attributes_with(&**reader, id)?.at(now))),
        0,
        |reader, terms, event, scratch| {
            find(&Case { version: &**reader, terms, event, filter: query.filter() }, id, scratch)
        },
    )
}

fn expression(index: &PyIndex, id: &Bound<'_, PyAny>) -> PyResult<Expr> {
    let py = id.py();
    let id = id_from_python(id).or_raise(py)?;
    let held = py.detach(|| Ok::<_, Error>(index.index().reader()?.get(&id)?.expression));
    held.or_raise(py)
}
