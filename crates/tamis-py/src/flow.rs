//! Continuous queries as a Python object. The public class is `tamis.Flow`, which wraps this one.

use std::path::PathBuf;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{DataType, Fields};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use tamis_core::event::{ArrowEvents, Record, Schema, Terms, Value};
use tamis_core::fork::Mutex;
use tamis_flow::{Flow, Kind, Limit, OnLimit, Output, StreamOptions, TimeUnit};

use crate::batch::{Given, GivenRecord};
use crate::convert::value_to_python;
use crate::errors::{OrRaise, argument_error, exception};
use crate::event::{PyEvent, with_record};

/// Each output as (query, kind, time, row, events).
type Told<'py> = Vec<Bound<'py, PyTuple>>;

#[pyclass(name = "Flow", module = "tamis._kernel", frozen)]
pub struct PyFlow(Mutex<Flow>);

#[pymethods]
impl PyFlow {
    #[new]
    fn new(py: Python<'_>, limit: Option<usize>, on_limit: &str) -> PyResult<Self> {
        Ok(Self(Mutex::new(Flow::new(limit_of(py, limit, on_limit)?))))
    }

    fn set_limit(&self, py: Python<'_>, limit: Option<usize>, on_limit: &str) -> PyResult<()> {
        let limit = limit_of(py, limit, on_limit)?;
        self.locked(py, |flow| flow.set_limit(limit));
        Ok(())
    }

    #[allow(clippy::too_many_arguments)]
    fn stream(
        &self,
        py: Python<'_>,
        name: &str,
        time: Option<String>,
        unit: &str,
        lateness: i64,
        idle: Option<i64>,
        schema: Option<&str>,
    ) -> PyResult<()> {
        let schema = schema.map(|json| Schema::from_json(json.as_bytes())).transpose().or_raise(py)?;
        let unit = TimeUnit::named(unit).or_raise(py)?;
        let options = StreamOptions { time, unit, lateness, idle, schema };
        self.locked(py, |flow| flow.stream(name, options)).or_raise(py)
    }

    fn add(&self, py: Python<'_>, name: &str, text: &str, on: Option<&str>, backfill: bool) -> PyResult<()> {
        self.locked(py, |flow| flow.add(name, text, on, backfill)).or_raise(py)
    }

    fn remove(&self, py: Python<'_>, name: &str) -> PyResult<()> {
        self.locked(py, |flow| flow.remove(name)).or_raise(py)
    }

    fn contains(&self, py: Python<'_>, name: &str) -> bool {
        self.locked(py, |flow| flow.contains(name))
    }

    fn __len__(&self, py: Python<'_>) -> usize {
        self.locked(py, |flow| flow.len())
    }

    fn names(&self, py: Python<'_>) -> Vec<String> {
        self.locked(py, |flow| flow.names().map(str::to_owned).collect())
    }

    /// The text of a query and the stream it reads.
    fn query(&self, py: Python<'_>, name: &str) -> PyResult<(String, String)> {
        let owned = |(text, stream): (&str, &str)| (text.to_owned(), stream.to_owned());
        self.locked(py, |flow| flow.query(name).map(owned)).or_raise(py)
    }

    /// The results, and the exception of the event if it was refused.
    fn push<'py>(
        &self,
        stream: &str,
        event: &Bound<'py, PyAny>,
        arrival: Option<i64>,
    ) -> PyResult<(Told<'py>, Option<Bound<'py, PyAny>>)> {
        let py = event.py();
        let record = with_record(event, Record::clone)?;
        let (told, outcome) = self.locked(py, |flow| flow.push(stream, record, arrival));
        Ok((to_python(py, told)?, fault(py, outcome)))
    }

    /// The results, and the exception of the event that was refused, if any.
    fn push_batch<'py>(
        &self,
        stream: &str,
        events: &Bound<'py, PyAny>,
        arrival: Option<i64>,
    ) -> PyResult<(Told<'py>, Option<Bound<'py, PyAny>>)> {
        let py = events.py();
        let (told, outcome) = match Given::from_python(events, vec![], 1)? {
            Given::Records(records) => {
                let records: Vec<Record> = records.into_iter().map(GivenRecord::into_record).collect();
                self.locked(py, |flow| flow.push_many(stream, records, arrival))
            }
            Given::Tables { batches, .. } => py.detach(|| {
                let mut told = vec![];
                let outcome = push_tables(&mut self.0.lock(), stream, &batches, arrival, &mut told);
                (told, outcome)
            }),
        };
        Ok((to_python(py, told)?, fault(py, outcome)))
    }

    fn advance<'py>(&self, py: Python<'py>, to: i64) -> PyResult<Told<'py>> {
        let told = self.locked(py, |flow| flow.advance(to)).or_raise(py)?;
        to_python(py, told)
    }

    fn late(&self, py: Python<'_>, stream: &str) -> PyResult<Vec<PyEvent>> {
        let late = self.locked(py, |flow| flow.late(stream)).or_raise(py)?;
        Ok(late.iter().map(|record| PyEvent::of(Record::clone(record))).collect())
    }

    /// UTC microseconds, or `None` before the first event.
    fn clock(&self, py: Python<'_>) -> Option<i64> {
        self.locked(py, |flow| flow.clock())
    }

    fn explain(&self, py: Python<'_>, name: &str, key: Option<&Bound<'_, PyAny>>) -> PyResult<String> {
        let key = key.map(|key| with_record(key, Record::clone)).transpose()?;
        self.locked(py, |flow| flow.explain(name, key.as_ref()).map(|json| json.to_string())).or_raise(py)
    }

    fn save(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        self.locked(py, |flow| flow.save(&path)).or_raise(py)
    }

    fn checkpoint(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        self.locked(py, |flow| flow.checkpoint(&path)).or_raise(py)
    }

    #[staticmethod]
    fn open(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        py.detach(|| Flow::open(&path)).or_raise(py).map(|flow| Self(Mutex::new(flow)))
    }

    fn plan(&self, py: Python<'_>) -> String {
        self.locked(py, |flow| flow.plan().to_string())
    }

    fn stats(&self, py: Python<'_>) -> String {
        self.locked(py, |flow| flow.statistics().to_string())
    }
}

impl PyFlow {
    /// No thread waits for the lock, nor for a fork, while it holds the interpreter lock.
    fn locked<T: Send>(&self, py: Python<'_>, work: impl FnOnce(&mut Flow) -> T + Send) -> T {
        py.detach(|| work(&mut self.0.lock()))
    }
}

fn limit_of(py: Python<'_>, limit: Option<usize>, on_limit: &str) -> PyResult<Option<Limit>> {
    let then = match on_limit {
        "refuse" => OnLimit::Refuse,
        "shed" => OnLimit::Shed,
        other => {
            let message = format!("on_limit is \"refuse\" or \"shed\", not {other:?}");
            return Err(argument_error(py, message));
        }
    };
    Ok(limit.map(|bytes| Limit { bytes, then }))
}

/// A duration, in microseconds.
#[pyfunction]
pub fn parse_interval(py: Python<'_>, text: &str) -> PyResult<i64> {
    tamis_flow::parse_interval(text).or_raise(py)
}

/// The exception of what failed.
fn fault(py: Python<'_>, outcome: tamis_core::Result<()>) -> Option<Bound<'_, PyAny>> {
    outcome.err().map(|error| exception(py, error).into_value(py).into_bound(py).into_any())
}

fn to_python(py: Python<'_>, told: Vec<Output>) -> PyResult<Told<'_>> {
    told.into_iter().map(|output| output_to_python(py, output)).collect()
}

fn output_to_python(py: Python<'_>, output: Output) -> PyResult<Bound<'_, PyTuple>> {
    let row = PyDict::new(py);
    for (name, value) in &output.row {
        row.set_item(&**name, value_to_python(py, value)?)?;
    }
    let kind = match output.kind {
        Kind::Added => "+",
        Kind::Retracted => "-",
    };
    let events: Vec<PyEvent> =
        output.events.into_iter().map(|record| PyEvent::of(Arc::unwrap_or_clone(record))).collect();
    let time = value_to_python(py, &Value::Timestamp(output.time))?;
    (&*output.query, kind, time, row, events).into_pyobject(py)
}

/// Rows of a table that are read at once: what is read of nested columns stays in memory until the last of them.
const ROWS_AT_ONCE: usize = 4_096;

fn push_tables(
    flow: &mut Flow,
    stream: &str,
    batches: &[RecordBatch],
    arrival: Option<i64>,
    told: &mut Vec<Output>,
) -> tamis_core::Result<()> {
    let terms: Vec<Terms> = batches.iter().map(terms_of).collect();
    // A table that cannot be read is refused as a whole.
    for (batch, terms) in batches.iter().zip(&terms) {
        ArrowEvents::new(batch, terms, None)?;
    }
    let parts =
        batches.iter().zip(&terms).flat_map(|(batch, terms)| parts(batch).map(move |part| (part, terms)));
    let mut first_row = 0;
    for (part, terms) in parts {
        // One by one: each is evaluated while it lies in the cache.
        let records = ArrowEvents::new(&part, terms, None)?;
        flow.push_rows(stream, first_row, records.records(terms), arrival, told)?;
        first_row += part.num_rows();
    }
    // A stream that nobody knows is an error, whether there are rows or not.
    flow.push_rows(stream, first_row, [], arrival, told)
}

fn parts(batch: &RecordBatch) -> impl Iterator<Item = RecordBatch> {
    let rows = batch.num_rows();
    (0..rows).step_by(ROWS_AT_ONCE).map(move |at| batch.slice(at, ROWS_AT_ONCE.min(rows - at)))
}

/// All columns of a batch.
fn terms_of(batch: &RecordBatch) -> Terms {
    let mut terms = Terms::default();
    intern_fields(batch.schema().fields(), "", &mut terms);
    terms
}

fn intern_fields(fields: &Fields, inside: &str, terms: &mut Terms) {
    for field in fields {
        let name = format!("{inside}{}", field.name());
        terms.intern(&name);
        if let DataType::Struct(fields) = field.data_type() {
            intern_fields(fields, &format!("{name}."), terms);
        }
    }
}
