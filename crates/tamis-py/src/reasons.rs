//! Why a subscription matches an event or does not. Answers go to Python as JSON, where `tamis.explain` makes
//! objects of them.

use pyo3::prelude::*;
use tamis_core::Error;
use tamis_core::engine::neighbourhood;
use tamis_core::event::{Record, ValueRef};
use tamis_core::expr::diagram::Graph;
use tamis_core::expr::{Expr, explain, why_not};

use crate::errors::{OrRaise, argument_error};
use crate::event::with_record;
use crate::ids::id_from_python;
use crate::index::PyIndex;
use crate::matching::coerced;

/// The expression of a subscription with the truth of every node, as JSON.
#[pyfunction(name = "explain")]
pub fn explain_json(index: &PyIndex, id: &Bound<'_, PyAny>, event: &Bound<'_, PyAny>) -> PyResult<String> {
    let (expr, record) = pair(index, id, event)?;
    Ok(explain::explain(&expr, &values(&record)).to_json().to_string())
}

/// The fewest predicates that would have to change, as JSON.
#[pyfunction(name = "why_not")]
pub fn why_not_json(index: &PyIndex, id: &Bound<'_, PyAny>, event: &Bound<'_, PyAny>) -> PyResult<String> {
    let (expr, record) = pair(index, id, event)?;
    Ok(id.py().detach(|| why_not::why_not(&expr, &values(&record)).to_json().to_string()))
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
        let draw = || neighbourhood(&*index.index().reader()?, &id, neighbours);
        return Ok(write(&py.detach(draw).or_raise(py)?));
    }
    let Some(event) = event else {
        return Ok(write(&Graph::of_expression(&expression(index, id)?, None)));
    };
    let (expr, record) = pair(index, id, event)?;
    let explanation = explain::explain(&expr, &values(&record));
    Ok(write(&Graph::of_expression(&expr, Some(&explanation))))
}

fn pair(index: &PyIndex, id: &Bound<'_, PyAny>, event: &Bound<'_, PyAny>) -> PyResult<(Expr, Record)> {
    let record = with_record(event, |record| coerced(index.index(), record).into_owned())?;
    Ok((expression(index, id)?, record))
}

fn expression(index: &PyIndex, id: &Bound<'_, PyAny>) -> PyResult<Expr> {
    let py = id.py();
    let id = id_from_python(id).or_raise(py)?;
    let held = py.detach(|| Ok::<_, Error>(index.index().reader()?.get(&id)?.expression));
    held.or_raise(py)
}

fn values<'r>(record: &'r Record) -> impl Fn(&str) -> Option<ValueRef<'r>> {
    |attribute| record.get(attribute).map(|value| value.as_ref())
}
