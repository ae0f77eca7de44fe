//! Relations between expressions: the functions and classes behind `tamis.relate` and behind methods of
//! expressions.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString};
use tamis_core::Error;
use tamis_core::engine::Source;
use tamis_core::event::{ArrowEvents, Value, can_be_written};
use tamis_core::expr::{Expr, parse};
use tamis_core::fork::Mutex;
use tamis_core::query::current_time;
use tamis_core::relate::prune::{Execution, Measure, Options, PruningQueue, Until};
use tamis_core::relate::{self, Answer, BUDGET, Selectivities};

use crate::batch::Given;
use crate::convert::value_to_python;
use crate::errors::{OrRaise, argument_error};
use crate::expr::{self as python_expr, PyExpression, expression_from_python, expression_or_text};
use crate::rows::Expressions;

// --- relations -------------------------------------------------------------------------------------

pub fn covers(
    py: Python<'_>,
    covering: &Expr,
    covered: &Expr,
    budget: Option<usize>,
    intervals: bool,
) -> bool {
    py.detach(|| match intervals {
        true => relate::covers_by_structure(covering, covered),
        false => relate::covers(covering, covered, budget.unwrap_or(BUDGET)) == Answer::Yes,
    })
}

pub fn overlaps(py: Python<'_>, a: &Expr, b: &Expr, method: &str, budget: Option<usize>) -> PyResult<bool> {
    match method {
        "pairs" => Ok(py.detach(|| relate::may_overlap(a, b))),
        "exact" => Ok(py.detach(|| match relate::overlaps(a, b, budget.unwrap_or(BUDGET)) {
            Answer::Yes => true,
            Answer::No => false,
            Answer::Unknown => relate::may_overlap(a, b),
        })),
        other => Err(argument_error(py, format!("method is \"exact\" or \"pairs\", not {other:?}"))),
    }
}

fn known(answer: Answer) -> Option<bool> {
    match answer {
        Answer::Yes => Some(true),
        Answer::No => Some(false),
        Answer::Unknown => None,
    }
}

#[pyfunction]
pub fn decide_covers(
    py: Python<'_>,
    covering: &Bound<'_, PyAny>,
    covered: &Bound<'_, PyAny>,
    budget: Option<usize>,
) -> PyResult<Option<bool>> {
    let (a, b) = (expression_from_python(covering)?, expression_from_python(covered)?);
    let (a, b) = (a.get().expr(), b.get().expr());
    Ok(known(py.detach(|| relate::covers(a, b, budget.unwrap_or(BUDGET)))))
}

#[pyfunction]
pub fn decide_overlaps(
    py: Python<'_>,
    a: &Bound<'_, PyAny>,
    b: &Bound<'_, PyAny>,
    budget: Option<usize>,
) -> PyResult<Option<bool>> {
    let (a, b) = (expression_from_python(a)?, expression_from_python(b)?);
    let (a, b) = (a.get().expr(), b.get().expr());
    Ok(known(py.detach(|| relate::overlaps(a, b, budget.unwrap_or(BUDGET)))))
}

#[pyfunction]
pub fn example_of_overlap<'py>(
    py: Python<'py>,
    a: &Bound<'py, PyAny>,
    b: &Bound<'py, PyAny>,
    budget: Option<usize>,
) -> PyResult<Option<Bound<'py, PyDict>>> {
    let (a, b) = (expression_from_python(a)?, expression_from_python(b)?);
    let (a, b) = (a.get().expr(), b.get().expr());
    let example = py.detach(|| relate::example_of_overlap(a, b, budget.unwrap_or(BUDGET)));
    let Some(example) = example else { return Ok(None) };
    let event = PyDict::new(py);
    for (attribute, value) in example {
        // A datetime cannot hold it, and neither can any other value of a dict.
        if matches!(value, Value::Timestamp(micros) if !can_be_written(micros)) {
            return Ok(None);
        }
        event.set_item(&*attribute, value_to_python(py, &value)?)?;
    }
    Ok(Some(event))
}

// --- selectivities ---------------------------------------------------------------------------------

#[pyclass(name = "Selectivities", module = "tamis._kernel", frozen)]
pub struct PySelectivities(Selectivities);

#[pymethods]
impl PySelectivities {
    /// From (predicate, how often it is true).
    #[new]
    fn new(py: Python<'_>, known: Vec<(Bound<'_, PyAny>, f64)>) -> PyResult<Self> {
        let known = known.iter().map(|(predicate, share)| Ok((parsed(predicate)?, *share)));
        let known = known.collect::<PyResult<Vec<_>>>()?;
        Selectivities::new(known).or_raise(py).map(Self)
    }

    #[staticmethod]
    fn from_events(
        py: Python<'_>,
        expressions: &Bound<'_, PyAny>,
        events: &Bound<'_, PyAny>,
        intervals: Vec<String>,
    ) -> PyResult<Self> {
        let expressions = Expressions::from_python(expressions)?;
        let events = Given::from_python(events, intervals, 1)?;
        let count = || {
            let expressions = parse_all(&expressions)?;
            Selectivities::from_events(expressions.iter(), |terms, visit| {
                let terms = &terms.at(current_time());
                match &events {
                    Given::Tables { batches, intervals, .. } => {
                        for batch in batches {
                            visit(&ArrowEvents::with_intervals(batch, terms, None, intervals)?);
                        }
                    }
                    Given::Records(records) => {
                        let mut rooms = vec![Vec::new(); records.len()];
                        let records = records.iter().zip(&mut rooms);
                        visit(
                            &records
                                .map(|(given, room)| given.record().resolve_into(terms, room))
                                .collect::<Vec<_>>(),
                        )
                    }
                }
                Ok(())
            })
        };
        py.detach(count).or_raise(py).map(Self)
    }

    /// `None` for what is not one predicate.
    fn of(&self, predicate: &Bound<'_, PyAny>) -> PyResult<Option<f64>> {
        Ok(self.0.of(&parsed(predicate)?))
    }

    fn items(&self) -> Vec<(String, f64)> {
        self.0.iter().map(|(predicate, share)| (predicate.to_string(), share)).collect()
    }

    fn __len__(&self) -> usize {
        self.0.len()
    }
}

/// What a caller gave for selectivities: nothing, a mapping, or an object with the attribute `_kernel`.
pub fn selectivities(py: Python<'_>, given: Option<&Bound<'_, PyAny>>) -> PyResult<Selectivities> {
    let Some(given) = given else { return Ok(Selectivities::default()) };
    if let Ok(known) = given.cast::<PySelectivities>() {
        return Ok(known.get().0.clone());
    }
    let made = py.import("tamis.relate")?.getattr("Selectivities")?;
    let known = if given.is_instance(&made)? { given.clone() } else { made.call1((given,))? };
    Ok(known.getattr("_kernel")?.cast::<PySelectivities>()?.get().0.clone())
}

/// One expression, however it was given.
pub fn parsed(expression: &Bound<'_, PyAny>) -> PyResult<Expr> {
    match expression_or_text(expression)? {
        python_expr::Given::Text(text) => parse(&text).or_raise(expression.py()),
        python_expr::Given::Parsed(expr) => Ok((*expr).clone()),
    }
}

// --- pruning ---------------------------------------------------------------------------------------

pub fn until(
    py: Python<'_>,
    steps: Option<usize>,
    predicates: Option<usize>,
    bytes: Option<usize>,
) -> PyResult<Until> {
    match (steps, predicates, bytes) {
        (Some(steps), None, None) => Ok(Until::Steps(steps)),
        (None, Some(predicates), None) => Ok(Until::Predicates(predicates)),
        (None, None, Some(bytes)) => Ok(Until::Bytes(bytes)),
        _ => Err(argument_error(py, "say how far to prune with one of steps, predicates and bytes")),
    }
}

pub fn options(py: Python<'_>, measure: &str, execution: &str, to_true: bool) -> PyResult<Options> {
    let measure = Measure::named(measure).ok_or_else(|| {
        let names = Measure::NAMES.map(|(name, _)| format!("{name:?}")).join(", ");
        argument_error(py, format!("unknown measure {measure:?}: use one of {names}"))
    })?;
    let execution = match execution {
        "strict" => Execution::Strict,
        "restricted" => Execution::DynamicallyRestricted,
        other => {
            let message = format!("execution is \"strict\" or \"restricted\", not {other:?}");
            return Err(argument_error(py, message));
        }
    };
    Ok(Options { measure, execution, to_true })
}

#[pyfunction]
#[allow(clippy::too_many_arguments)]
pub fn prune_many(
    py: Python<'_>,
    expressions: &Bound<'_, PyAny>,
    steps: Option<usize>,
    predicates: Option<usize>,
    bytes: Option<usize>,
    measure: &str,
    known: Option<&Bound<'_, PyAny>>,
    to_true: bool,
) -> PyResult<Vec<PyExpression>> {
    let until = until(py, steps, predicates, bytes)?;
    let options = options(py, measure, "strict", to_true)?;
    let known = selectivities(py, known)?;
    let expressions = Expressions::from_python(expressions)?;
    let pruned = py.detach(|| {
        let parsed = parse_all(&expressions)?;
        Ok::<_, Error>(relate::prune::prune_many(&parsed.iter().collect::<Vec<_>>(), until, options, &known))
    });
    Ok(pruned.or_raise(py)?.into_iter().map(PyExpression::new).collect())
}

/// Entries are numbers; `tamis.relate.PruningQueue` gives them names.
#[pyclass(name = "PruningQueue", module = "tamis._kernel", frozen)]
pub struct PyPruningQueue(Mutex<PruningQueue>);

#[pymethods]
impl PyPruningQueue {
    #[new]
    fn new(
        py: Python<'_>,
        measure: &str,
        known: Option<&Bound<'_, PyAny>>,
        execution: &str,
        to_true: bool,
    ) -> PyResult<Self> {
        let options = options(py, measure, execution, to_true)?;
        Ok(Self(Mutex::new(PruningQueue::new(options, selectivities(py, known)?))))
    }

    fn add(&self, py: Python<'_>, expression: &Bound<'_, PyAny>, distance: u32) -> PyResult<usize> {
        let expr = parsed(expression)?;
        Ok(py.detach(|| self.0.lock().add(&expr, distance)))
    }

    fn remove(&self, py: Python<'_>, entry: usize) -> bool {
        py.detach(|| self.0.lock().remove(entry))
    }

    fn expression(&self, py: Python<'_>, entry: usize) -> Option<PyExpression> {
        py.detach(|| self.0.lock().expression(entry)).map(PyExpression::new)
    }

    fn prune(
        &self,
        py: Python<'_>,
        steps: Option<usize>,
        predicates: Option<usize>,
        bytes: Option<usize>,
    ) -> PyResult<usize> {
        let until = until(py, steps, predicates, bytes)?;
        Ok(py.detach(|| self.0.lock().prune(until)))
    }

    fn learn(&self, py: Python<'_>, known: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
        let known = selectivities(py, known)?;
        py.detach(|| self.0.lock().learn(known));
        Ok(())
    }

    #[getter]
    fn bytes(&self, py: Python<'_>) -> usize {
        py.detach(|| self.0.lock().bytes())
    }

    #[getter]
    fn predicates(&self, py: Python<'_>) -> usize {
        py.detach(|| self.0.lock().predicates())
    }
}

// --- access predicates -----------------------------------------------------------------------------

#[pyfunction]
pub fn access_predicates<'py>(
    py: Python<'py>,
    expressions: &Bound<'py, PyAny>,
    known: Option<&Bound<'py, PyAny>>,
) -> PyResult<Vec<Bound<'py, PyList>>> {
    let known = selectivities(py, known)?;
    let expressions = Expressions::from_python(expressions)?;
    let plan = py.detach(|| {
        let parsed = parse_all(&expressions)?;
        Ok::<_, Error>(relate::access_predicates(parsed.iter(), &known))
    });
    let plan = plan.or_raise(py)?;
    // One Python string for each distinct predicate.
    let texts: Vec<Bound<'py, PyString>> = plan.texts.iter().map(|text| PyString::new(py, text)).collect();
    let list = |places: &Vec<u32>| PyList::new(py, places.iter().map(|place| &texts[*place as usize]));
    plan.of_expression.iter().map(list).collect()
}

/// A thread parses at least this many expressions.
const LEAST_PER_THREAD: usize = 1024;

/// Parses on all cores; the first error says which row it is.
fn parse_all(expressions: &Expressions) -> Result<Vec<Expr>, Error> {
    let parse = |row: usize| {
        let parsed = match expressions.source(row) {
            Ok(Source::Text(text)) => parse(text).map_err(Error::from),
            Ok(Source::Parsed(expr)) => Ok(expr),
            Err(error) => Err(error),
        };
        parsed.map_err(|error| error.within(&format!("expression {row}")))
    };
    let rows = expressions.len();
    // For a few, starting a thread takes longer than parsing.
    if rows <= LEAST_PER_THREAD {
        return (0..rows).map(parse).collect();
    }
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let share = rows.div_ceil(threads).max(LEAST_PER_THREAD);
    std::thread::scope(|scope| {
        let starts = (0..rows).step_by(share);
        let workers: Vec<_> = starts
            .map(|start| {
                scope
                    .spawn(move || (start..rows.min(start + share)).map(parse).collect::<Result<Vec<_>, _>>())
            })
            .collect();
        let mut parsed = Vec::with_capacity(rows);
        for worker in workers {
            parsed.extend(worker.join().expect("parsing does not panic")?);
        }
        Ok(parsed)
    })
}
