//! Many events at once: from tables, from lists of events, from JSON lines.

use std::sync::Arc;
use std::time::Instant;

use arrow_array::{ArrayRef, Float64Array, Int64Array, RecordBatch};
use arrow_schema::{DataType, Field, Schema};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};
use tamis_core::Error;
use tamis_core::engine::batch::{count_events, match_events, top_k_events};
use tamis_core::engine::location::id_type;
use tamis_core::engine::{Index, Version, Work, Workspace};
use tamis_core::event::arrow::ArrowEvents;
use tamis_core::event::weighted::WeightedEvents;
use tamis_core::event::{Attributes, Event, EventError, EventSource, Record, json};
use tamis_core::query::{Filter, Ranking};

use crate::arrow_ffi::{self, PyArrowStream};
use crate::errors::{OrRaise, argument_error};
use crate::event::with_record;
use crate::index::{PyIndex, filter};
use crate::matching::{Answer, ask, coerced};
use crate::ranking::{GivenRanking, GivenWeights};

/// Events as a caller gave them, out of reach of the interpreter.
pub enum Given {
    Tables { batches: Vec<RecordBatch>, intervals: Vec<String> },
    Records(Vec<Record>),
}

impl Given {
    pub fn from_python(events: &Bound<'_, PyAny>, intervals: Vec<String>) -> PyResult<Self> {
        let py = events.py();
        if arrow_ffi::is_arrow(events)? {
            return Ok(Self::Tables { batches: arrow_ffi::batches(events)?, intervals });
        }
        if let Ok(text) = events.cast::<PyString>() {
            let text = text.to_str()?;
            return py.detach(|| read_lines(text.as_bytes())).or_raise(py).map(Self::Records);
        }
        if let Ok(bytes) = events.cast::<PyBytes>() {
            let bytes = bytes.as_bytes();
            return py.detach(|| read_lines(bytes)).or_raise(py).map(Self::Records);
        }
        let records = events
            .try_iter()?
            .enumerate()
            .map(|(row, event)| with_record(&event?, Record::clone).map_err(|error| in_row(py, row, error)));
        records.collect::<PyResult<_>>().map(Self::Records)
    }
}

/// Events, and the weights that were given beside them.
struct Batch {
    events: Given,
    weights: Option<GivenWeights>,
}

impl Batch {
    fn from_python(
        events: &Bound<'_, PyAny>,
        intervals: Vec<String>,
        weights: Option<GivenWeights>,
    ) -> PyResult<Self> {
        Ok(Self { events: Given::from_python(events, intervals)?, weights })
    }

    /// The events of a batch with the weights beside them.
    fn weighted<'e>(
        &self,
        events: &'e dyn EventSource,
        batch: Option<&RecordBatch>,
        attributes: &Attributes,
    ) -> Result<WeightedEvents<'e>, Error> {
        let weights = self.weights.as_ref().map_or(Ok(vec![]), |given| given.resolve(batch, attributes))?;
        Ok(WeightedEvents { events, weights })
    }

    /// Calls `visit` with the events of each batch, resolved for the index, and with the number of the first.
    fn visit(
        &self,
        index: &Index,
        attributes: &Attributes,
        mut visit: impl FnMut(usize, &dyn EventSource) -> Result<(), Error>,
    ) -> Result<(), Error> {
        match &self.events {
            Given::Tables { batches, intervals } => {
                let mut first = 0;
                for batch in batches {
                    let events = ArrowEvents::with_intervals(batch, attributes, index.schema(), intervals)
                        .map_err(|error| EventError { row: error.row.map(|row| first + row), ..error })?;
                    match &self.weights {
                        None => visit(first, &events)?,
                        Some(_) => visit(first, &self.weighted(&events, Some(batch), attributes)?)?,
                    }
                    first += batch.num_rows();
                }
                Ok(())
            }
            Given::Records(records) => {
                let records: Vec<_> = records.iter().map(|record| coerced(index, record)).collect();
                let resolved: Vec<Event<'_>> =
                    records.iter().map(|record| record.resolve(attributes)).collect();
                visit(0, &self.weighted(&resolved, None, attributes)?)
            }
        }
    }
}

/// How a batch is to be matched.
#[derive(FromPyObject)]
pub struct Options<'py> {
    #[pyo3(item)]
    tags: Option<Bound<'py, PyAny>>,
    #[pyo3(item)]
    now: Option<Bound<'py, PyAny>>,
    /// Columns that are intervals.
    #[pyo3(item)]
    intervals: Vec<String>,
    #[pyo3(item)]
    threads: Option<usize>,
    #[pyo3(item)]
    weights: Option<GivenWeights>,
}

impl Options<'_> {
    fn filter(&self) -> PyResult<Filter> {
        filter(self.tags.as_ref(), self.now.as_ref())
    }

    fn threads(&self, py: Python<'_>) -> PyResult<usize> {
        match self.threads {
            Some(0) => Err(argument_error(py, "threads must be 1 or more")),
            Some(threads) => Ok(threads),
            None => Ok(std::thread::available_parallelism().map_or(1, usize::from)),
        }
    }
}

/// A table of (event, subscription), events numbered from `first`.
#[pyfunction]
pub fn match_batch(
    py: Python<'_>,
    index: &PyIndex,
    events: &Bound<'_, PyAny>,
    first: usize,
    options: Options<'_>,
) -> PyResult<PyArrowStream> {
    let (filter, threads) = (options.filter()?, options.threads(py)?);
    answer(index.index(), events, options, Scored::No, |index, reader, at, events| {
        let found = match_events(index, reader, events, &filter, threads);
        Ok(vec![numbers(first + at, &found.events), reader.id_column(&found.locations)?])
    })
}

/// The same with the columns score and rank.
#[pyfunction]
pub fn top_k_batch(
    py: Python<'_>,
    index: &PyIndex,
    events: &Bound<'_, PyAny>,
    ranking: GivenRanking,
    first: usize,
    options: Options<'_>,
) -> PyResult<PyArrowStream> {
    let (filter, threads, ranking) = (options.filter()?, options.threads(py)?, ranking.resolve(py)?);
    answer(index.index(), events, options, Scored::Yes, |index, reader, at, events| {
        let best = top_k_events(index, reader, events, &ranking, &filter, threads)?;
        Ok(vec![
            numbers(first + at, &best.events),
            reader.id_column(&best.locations)?,
            Arc::new(Float64Array::from(best.scores)),
            numbers(0, &best.ranks),
        ])
    })
}

/// A table of one column, the number of matches per event.
#[pyfunction]
pub fn count_batch(
    py: Python<'_>,
    index: &PyIndex,
    events: &Bound<'_, PyAny>,
    options: Options<'_>,
) -> PyResult<PyArrowStream> {
    let (filter, threads) = (options.filter()?, options.threads(py)?);
    let given = Batch::from_python(events, options.intervals, None)?;
    let counts = py.detach(|| {
        let reader = index.index().reader()?;
        let mut counts = vec![];
        given.visit(index.index(), reader.attributes(), |_, events| {
            counts.extend(count_events(index.index(), &*reader, events, &filter, threads));
            Ok(())
        })?;
        reader.prepare()?;
        Ok::<_, Error>(counts)
    });
    one_column("count", numbers(0, &counts.or_raise(py)?))
}

/// A table of one column: per event, the least time in nanoseconds of `repeats` questions.
#[pyfunction]
pub fn time_events(
    py: Python<'_>,
    index: &PyIndex,
    events: &Bound<'_, PyAny>,
    mode: &str,
    ranking: GivenRanking,
    repeats: usize,
    options: Options<'_>,
) -> PyResult<PyArrowStream> {
    let ask: fn(&dyn Version, &Event<'_>, &Ranking, &Filter, &mut Workspace) -> usize = match mode {
        "count" => |reader, event, _, filter, scratch| reader.count(event, filter, scratch).0,
        "match" => |reader, event, _, filter, scratch| reader.matches(event, filter, scratch).0.len(),
        "top_k" => |reader, event, ranking, filter, scratch| {
            reader.top_k(event, ranking, filter, scratch).map_or(0, |(best, _)| best.len())
        },
        other => {
            let message = format!("the mode is \"count\", \"match\" or \"top_k\", not {other:?}");
            return Err(argument_error(py, message));
        }
    };
    let (filter, ranking) = (options.filter()?, ranking.resolve(py)?);
    let given = Batch::from_python(events, options.intervals, options.weights)?;
    let times = py.detach(|| {
        let reader = index.index().reader()?;
        let mut times = vec![];
        given.visit(index.index(), reader.attributes(), |_, events| {
            times.extend(least_times(events, repeats, |event, scratch| {
                ask(&*reader, event, &ranking, &filter, scratch)
            }));
            Ok(())
        })?;
        Ok::<_, Error>(times)
    });
    one_column("nanoseconds", Arc::new(Int64Array::from(times.or_raise(py)?)))
}

/// The matches of one event, sorted by id: id, priority, relevance, and one column per attribute that
/// contributes to any of them.
#[pyfunction]
pub fn contributions(
    index: &PyIndex,
    event: &Bound<'_, PyAny>,
    dimensions: Option<Vec<String>>,
    tags: Option<&Bound<'_, PyAny>>,
    now: Option<&Bound<'_, PyAny>>,
) -> PyResult<PyArrowStream> {
    let filter = filter(tags, now)?;
    let dimensions = dimensions.map(|names| names.into_iter().map(Into::into).collect());
    let columns = ask(index.index(), event, |reader, event, scratch| {
        let mut noted = (0, Work::default());
        let columns = || -> Result<Vec<(String, ArrayRef)>, Error> {
            let (found, work) = reader.contributions(event, dimensions, &filter, scratch)?;
            noted = (found.locations.len(), work);
            let mut columns = vec![
                (String::from("id"), reader.id_column(&found.locations)?),
                (String::from("priority"), Arc::new(Float64Array::from(found.priorities)) as ArrayRef),
                (String::from("relevance"), Arc::new(Float64Array::from(found.relevances))),
            ];
            for (attribute, column) in found.attributes {
                let name = reader.attributes().name(attribute).to_string();
                columns.push((name, Arc::new(Float64Array::from(column))));
            }
            Ok(columns)
        };
        let answer = columns();
        Answer { answer, matches: noted.0, work: noted.1 }
    })?;
    let columns = columns.or_raise(event.py())?;
    let fields: Vec<Field> =
        columns.iter().map(|(name, column)| Field::new(name, column.data_type().clone(), false)).collect();
    let schema = Arc::new(Schema::new(fields));
    let columns = columns.into_iter().map(|(_, column)| column).collect();
    let batch = RecordBatch::try_new(schema.clone(), columns).map_err(arrow_ffi::unreadable)?;
    Ok(PyArrowStream { schema, batches: vec![batch] })
}

/// One question after the other, as a stream of events would ask them.
fn least_times(
    events: &dyn EventSource,
    repeats: usize,
    mut ask: impl FnMut(&Event<'_>, &mut Workspace) -> usize,
) -> Vec<i64> {
    let mut scratch = Workspace::default();
    let resolved: Vec<Event<'_>> = (0..events.len())
        .map(|row| {
            let mut event = Event::default();
            events.fill(row, &mut event);
            event
        })
        .collect();
    let mut times = vec![i64::MAX; resolved.len()];
    for _ in 0..repeats.max(1) {
        for (event, least) in resolved.iter().zip(&mut times) {
            let start = Instant::now();
            std::hint::black_box(ask(event, &mut scratch));
            *least = (*least).min(start.elapsed().as_nanos() as i64);
        }
    }
    times
}

/// Whether a result has the columns score and rank.
#[derive(PartialEq)]
enum Scored {
    Yes,
    No,
}

/// Matches batch by batch without the interpreter lock; `columns` gives the result for one.
fn answer(
    index: &Index,
    events: &Bound<'_, PyAny>,
    options: Options<'_>,
    scored: Scored,
    columns: impl Fn(&Index, &dyn Version, usize, &dyn EventSource) -> Result<Vec<ArrayRef>, Error> + Sync,
) -> PyResult<PyArrowStream> {
    let py = events.py();
    let given = Batch::from_python(events, options.intervals, options.weights)?;
    let matched = py.detach(|| {
        let reader = index.reader()?;
        let mut tables = vec![];
        given.visit(index, reader.attributes(), |first, events| {
            tables.push(columns(index, &*reader, first, events)?);
            Ok(())
        })?;
        // Nothing may be answered from a file that was overwritten while it was read.
        reader.prepare()?;
        Ok::<_, Error>((id_type(reader.id_kind()), tables))
    });
    let (id_type, tables) = matched.or_raise(py)?;
    let mut fields =
        vec![Field::new("event", DataType::Int64, false), Field::new("subscription", id_type, false)];
    if scored == Scored::Yes {
        fields.push(Field::new("score", DataType::Float64, false));
        fields.push(Field::new("rank", DataType::Int64, false));
    }
    let schema = Arc::new(Schema::new(fields));
    let batches = tables.into_iter().map(|columns| RecordBatch::try_new(schema.clone(), columns));
    let batches = batches.collect::<Result<_, _>>().map_err(arrow_ffi::unreadable)?;
    Ok(PyArrowStream { schema, batches })
}

fn numbers(first: usize, numbers: &[u32]) -> ArrayRef {
    Arc::new(Int64Array::from_iter_values(numbers.iter().map(|number| first as i64 + *number as i64)))
}

fn one_column(name: &str, column: ArrayRef) -> PyResult<PyArrowStream> {
    let batch = RecordBatch::try_from_iter([(name, column)]).map_err(arrow_ffi::unreadable)?;
    Ok(PyArrowStream { schema: batch.schema(), batches: vec![batch] })
}

/// Events as JSON lines; empty lines are skipped.
fn read_lines(text: &[u8]) -> Result<Vec<Record>, EventError> {
    let lines = text.split(|byte| *byte == b'\n').enumerate();
    let lines = lines.filter(|(_, line)| !line.trim_ascii().is_empty());
    let read = |(at, line): (usize, &[u8])| {
        json::read_record(line).map_err(|mut error| {
            if let Some(place) = &mut error.place {
                place.line = at as u32 + 1;
            }
            error
        })
    };
    lines.map(read).collect()
}

/// The same exception, saying which event of a list it is about.
fn in_row(py: Python<'_>, row: usize, error: PyErr) -> PyErr {
    PyErr::from_type(error.get_type(py), format!("event {row}: {}", error.value(py)))
}
