//! Many events at once: from tables, from lists of events, from JSON lines.

use std::sync::Arc;
use std::time::Instant;

use arrow_array::{ArrayRef, BooleanArray, Float64Array, Int64Array, RecordBatch, StringArray};
use arrow_schema::{ArrowError, DataType, Field, Schema};
use pyo3::exceptions::PyUnicodeEncodeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyString};
use tamis_core::engine::batch::{
    BatchAnswer, BestMatchRows, Layout, MatchRows, Output, ask_events, count_by_subscription, list_type,
};
use tamis_core::engine::contract::RowCounts;
use tamis_core::engine::{Index, Version, Workspace, id_type};
use tamis_core::event::json::{JsonLines, Skipped};
use tamis_core::event::{ArrowEvents, Event, EventError, EventSource, Record, Terms, WeightedEvents, json};
use tamis_core::query::{Ask, Query};
use tamis_core::{Error, IdKind};

use crate::arrow_ffi::{self, PyArrowStream};
use crate::device::warn_of_failure;
use crate::errors::{OrRaise, argument_error};
use crate::event::{PyEvent, with_record};
use crate::index::PyIndex;
use crate::matching::{Moment, coerced, warn_of_surprises, with_event};
use crate::query::PyQuery;
use crate::weights::GivenWeights;

/// Events as a caller gave them, out of reach of the interpreter.
pub enum Given {
    Tables { batches: Vec<RecordBatch>, intervals: Vec<String>, cells: bool },
    Records(Vec<GivenRecord>),
}

/// An event of a list.
pub enum GivenRecord {
    /// A `tamis.Event`, which never changes.
    Shared(Py<PyEvent>),
    Read(Record),
}

impl GivenRecord {
    fn from_python(event: &Bound<'_, PyAny>) -> PyResult<Self> {
        match event.cast::<PyEvent>() {
            Ok(event) => Ok(Self::Shared(event.clone().unbind())),
            Err(_) => with_record(event, Record::clone).map(Self::Read),
        }
    }

    pub fn record(&self) -> &Record {
        match self {
            Self::Shared(event) => event.get().record(),
            Self::Read(record) => record,
        }
    }

    pub fn into_record(self) -> Record {
        match self {
            Self::Shared(event) => event.get().record().clone(),
            Self::Read(record) => record,
        }
    }
}

impl Given {
    /// Tables are validated on so many threads.
    pub fn from_python(events: &Bound<'_, PyAny>, intervals: Vec<String>, threads: usize) -> PyResult<Self> {
        let py = events.py();
        if arrow_ffi::is_arrow(events)? {
            return Ok(Self::Tables {
                batches: arrow_ffi::batches(events, threads)?,
                intervals,
                cells: false,
            });
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
            .map(|(row, event)| GivenRecord::from_python(&event?).map_err(|error| in_row(py, row, error)));
        records.collect::<PyResult<_>>().map(Self::Records)
    }
}

/// Events, and their separately given weights.
struct Batch<'e> {
    events: Events<'e>,
    weights: Option<GivenWeights>,
}

enum Events<'e> {
    Read(Given),
    /// JSON, parsed by the thread that matches it, after this many lines of a file.
    Lines(&'e [u8], Skipped, usize),
    /// A list of JSON texts, side by side as lines.
    Rows(Vec<u8>, Skipped),
}

impl<'e> Batch<'e> {
    fn from_python(
        events: &'e Bound<'_, PyAny>,
        intervals: Vec<String>,
        weights: Option<GivenWeights>,
        skipped: Skipped,
        lines_before: usize,
        threads: usize,
    ) -> PyResult<Self> {
        let events = if let Ok(text) = events.cast::<PyString>() {
            Events::Lines(text.to_str()?.as_bytes(), skipped, lines_before)
        } else if let Ok(bytes) = events.cast::<PyBytes>() {
            Events::Lines(bytes.as_bytes(), skipped, lines_before)
        } else if let Some(text) = events.cast_exact::<PyList>().ok().and_then(side_by_side) {
            Events::Rows(text, skipped)
        } else {
            Events::Read(Given::from_python(events, intervals, threads)?)
        };
        Ok(Self { events, weights })
    }

    /// The same; if set, text columns hold cells of a CSV file.
    fn with_cells(mut self, are_cells: bool) -> Self {
        if let Events::Read(Given::Tables { cells, .. }) = &mut self.events {
            *cells = are_cells;
        }
        self
    }

    /// The events of a batch with their weights.
    fn weighted<'s>(
        &self,
        events: &'s dyn EventSource,
        batch: Option<&RecordBatch>,
        terms: &Terms,
    ) -> Result<WeightedEvents<'s>, Error> {
        let weights = self.weights.as_ref().map_or(Ok(vec![]), |given| given.resolve(batch, terms))?;
        Ok(WeightedEvents { events, weights })
    }

    /// About how many events there are.
    fn about(&self) -> usize {
        const BYTES_OF_A_LINE: usize = 256;
        match &self.events {
            Events::Lines(text, ..) => text.len() / BYTES_OF_A_LINE,
            Events::Rows(text, _) => text.len() / BYTES_OF_A_LINE,
            Events::Read(Given::Tables { batches, .. }) => batches.iter().map(|batch| batch.num_rows()).sum(),
            Events::Read(Given::Records(records)) => records.len(),
        }
    }

    /// Calls `visit` with lines, and tells of the first that cannot be read.
    fn visit_lines(
        &self,
        lines: &JsonLines<'_>,
        terms: &Terms,
        mut visit: impl FnMut(usize, &dyn EventSource) -> Result<(), Error>,
    ) -> Result<(), Error> {
        match &self.weights {
            None => visit(0, lines)?,
            Some(_) => visit(0, &self.weighted(lines, None, terms)?)?,
        }
        match lines.fault() {
            None => Ok(()),
            Some(mut fault) => Err(match fault.row.take() {
                Some(row) => Error::Event(format!("event {row}: {fault}")),
                None => fault.into(),
            }),
        }
    }

    /// Calls `visit` with the events of each batch, resolved for the index, and with the number of the first.
    fn visit(
        &self,
        index: &Index,
        version: &dyn Version,
        terms: &Terms,
        mut visit: impl FnMut(usize, &dyn EventSource) -> Result<(), Error>,
    ) -> Result<(), Error> {
        match &self.events {
            Events::Lines(text, skipped, lines_before) => {
                let lines = JsonLines::new(text, terms, index.schema(), *skipped).after_lines(*lines_before);
                self.visit_lines(&lines, terms, visit)
            }
            Events::Rows(text, skipped) => {
                let lines = JsonLines::new(text, terms, index.schema(), *skipped).of_rows();
                self.visit_lines(&lines, terms, visit)
            }
            Events::Read(Given::Tables { batches, intervals, cells }) => {
                let mut first = 0;
                let expected = cells.then(|| version.expected_kinds());
                for batch in batches {
                    let schema = index.schema();
                    let events = match &expected {
                        Some(expected) => ArrowEvents::of_cells(batch, terms, schema, expected),
                        None => ArrowEvents::with_intervals(batch, terms, schema, intervals),
                    };
                    let events = events
                        .map_err(|error| EventError { row: error.row.map(|row| first + row), ..error })?;
                    match &self.weights {
                        None => visit(first, &events)?,
                        Some(_) => visit(first, &self.weighted(&events, Some(batch), terms)?)?,
                    }
                    first += batch.num_rows();
                }
                Ok(())
            }
            Events::Read(Given::Records(records)) => {
                let records: Vec<_> = records.iter().map(|given| coerced(index, given.record())).collect();
                let mut rooms = vec![Vec::new(); records.len()];
                let resolved: Vec<Event<'_>> = records
                    .iter()
                    .zip(&mut rooms)
                    .map(|(record, room)| record.resolve_into(terms, room))
                    .collect();
                visit(0, &self.weighted(&resolved, None, terms)?)
            }
        }
    }
}

/// The events of a list as JSON lines, if each is a text on one line.
fn side_by_side(events: &Bound<'_, PyList>) -> Option<Vec<u8>> {
    let events: Vec<_> = events.iter().collect();
    let mut texts = Vec::with_capacity(events.len());
    for event in &events {
        let text = match event.cast::<PyBytes>() {
            Ok(bytes) => bytes.as_bytes(),
            Err(_) => event.cast::<PyString>().ok()?.to_str().ok()?.as_bytes(),
        };
        let is_line = memchr::memchr(b'\n', text).is_none() && !text.trim_ascii_start().is_empty();
        texts.push(is_line.then_some(text)?);
    }
    Some(texts.join(&b'\n'))
}

/// How a batch is to be matched.
#[derive(FromPyObject)]
pub struct Options {
    /// Columns that are intervals.
    #[pyo3(item)]
    intervals: Vec<String>,
    #[pyo3(item)]
    threads: Option<usize>,
    /// How many matches may be listed; `None`: all of them.
    #[pyo3(item)]
    most: Option<usize>,
    #[pyo3(item)]
    weights: Option<GivenWeights>,
    /// Whether matches are listed by event.
    #[pyo3(item)]
    lists: bool,
    /// Whether JSON that no subscription uses is validated.
    #[pyo3(item)]
    validate: bool,
    /// How many lines of a file come before JSON lines.
    #[pyo3(item)]
    lines_before: usize,
    /// Whether text columns hold cells of a CSV file, which each predicate reads as the kind it expects.
    #[pyo3(item)]
    cells: bool,
}

impl Options {
    fn threads(&self, py: Python<'_>) -> PyResult<usize> {
        match self.threads {
            Some(0) => Err(argument_error(py, "threads must be 1 or more")),
            Some(threads) => Ok(threads),
            None => Ok(std::thread::available_parallelism().map_or(1, usize::from)),
        }
    }

    fn layout(&self) -> Layout {
        if self.lists { Layout::Lists } else { Layout::Pairs }
    }

    fn skipped(&self) -> Skipped {
        if self.validate { Skipped::Checked } else { Skipped::Unchecked }
    }
}

/// The answers to one query about many events, as a table: `event`, numbered from `first`, and `subscription`, or a row
/// per event and a list `subscriptions`; for the best also `score` and `rank`; for owners `event` and `owner`; or one column `count` or `exists`. Also how many of
/// the events it answers.
#[pyfunction]
pub fn ask_batch(
    index: &PyIndex,
    events: &Bound<'_, PyAny>,
    query: &PyQuery,
    first: usize,
    options: Options,
) -> PyResult<(PyArrowStream, usize)> {
    let (py, index, query) = (events.py(), index.index(), query.query());
    let threads = options.threads(py)?;
    let (layout, skipped) = (options.layout(), options.skipped());
    let mut left = options.most.unwrap_or(usize::MAX);
    let Options { intervals, weights, lines_before, cells, .. } = options;
    let given =
        Batch::from_python(events, intervals, weights, skipped, lines_before, threads)?.with_cells(cells);
    let asked = py.detach(|| {
        let reader = index.reader_for(given.about())?;
        let moment = Moment::of(query);
        let terms = moment.terms(reader.terms());
        let query = &*moment.query(&terms);
        let mut tables = vec![];
        let mut answered = 0;
        if let Some(device) = index.device() {
            device.begin_answer();
        }
        given.visit(index, &*reader, &terms, |at, events| {
            // After an event that is not answered, or when nothing is left, no other has a turn.
            if at == 0 || (at == answered && left > 0) {
                let output = Output { layout, first: first + at };
                let answer = ask_events(index, &*reader, query, events, threads, left, output)?;
                if at > 0 && answer.matches() > left {
                    return Ok(()); // it answers its first event whatever that has
                }
                if left != usize::MAX {
                    left = left.saturating_sub(answer.matches());
                }
                answered += answer.answered(events.len());
                Columns::of(first + at, answer, &mut tables);
            }
            Ok(())
        })?;
        // Nothing may be answered from a file that was overwritten while it was read.
        reader.prepare()?;
        Ok::<_, Error>((schema_of(query, layout, reader.id_kind()), tables, answered))
    });
    let (schema, tables, answered) = asked.or_raise(py)?;
    warn_of_failure(py, index)?;
    warn_of_surprises(py, index)?;
    let batches = tables.into_iter().map(|columns| columns.batches(&schema));
    let batches: Vec<_> = batches.collect::<Result<_, _>>().map_err(arrow_ffi::unreadable)?;
    Ok((PyArrowStream { schema, batches: batches.concat() }, answered))
}

/// How many of the events each subscription matches, for those that match any: `subscription` and `matches`, sorted by id.
#[pyfunction]
pub fn count_batch_by_subscription(
    index: &PyIndex,
    events: &Bound<'_, PyAny>,
    query: &PyQuery,
    options: Options,
) -> PyResult<PyArrowStream> {
    let (py, index, query) = (events.py(), index.index(), query.query());
    let threads = options.threads(py)?;
    let skipped = options.skipped();
    let Options { intervals, weights, lines_before, cells, .. } = options;
    let given =
        Batch::from_python(events, intervals, weights, skipped, lines_before, threads)?.with_cells(cells);
    let asked = py.detach(|| {
        let reader = index.reader_for(given.about())?;
        let moment = Moment::of(query);
        let terms = moment.terms(reader.terms());
        let query = &*moment.query(&terms);
        let mut counts = RowCounts::new(&reader.part_sizes());
        given.visit(index, &*reader, &terms, |_, events| {
            count_by_subscription(index, &*reader, query, events, threads, &mut counts)
        })?;
        let (locations, counts): (Vec<_>, Vec<_>) = counts.found(&*reader).into_iter().unzip();
        let names = reader.id_columns(&locations)?;
        // Nothing may be answered from a file that was overwritten while it was read.
        reader.prepare()?;
        let counts = Int64Array::from_iter_values(counts.into_iter().map(|count| count as i64));
        let columns = Columns { before: vec![], names, after: vec![Arc::new(counts) as _] };
        Ok::<_, Error>((id_type(reader.id_kind()), columns))
    });
    let (ids, columns) = asked.or_raise(py)?;
    warn_of_failure(py, index)?;
    warn_of_surprises(py, index)?;
    let fields = vec![Field::new("subscription", ids, false), Field::new("matches", DataType::Int64, false)];
    let schema = Arc::new(Schema::new(fields));
    let batches = columns.batches(&schema).map_err(arrow_ffi::unreadable)?;
    Ok(PyArrowStream { schema, batches })
}

fn schema_of(query: &Query, layout: Layout, ids: Option<IdKind>) -> Arc<Schema> {
    let field = |name: &str, kind: DataType| Field::new(name, kind, false);
    let mut fields = match query.ask {
        Ask::Count => vec![field("count", DataType::Int64)],
        Ask::Exists => vec![field("exists", DataType::Boolean)],
        Ask::Owners => vec![field("event", DataType::Int64), field("owner", DataType::Utf8)],
        Ask::All if layout == Layout::Lists => {
            vec![field("event", DataType::Int64), field("subscriptions", list_type(id_type(ids)))]
        }
        Ask::All | Ask::Best(_) => {
            vec![field("event", DataType::Int64), field("subscription", id_type(ids))]
        }
    };
    if let Ask::Best(_) = query.ask {
        fields.extend([field("score", DataType::Float64), field("rank", DataType::Int64)]);
    }
    Arc::new(Schema::new(fields))
}

/// The columns of an answer. Names may need more than one column: 32-bit offsets hold 2 GiB of text.
struct Columns {
    before: Vec<ArrayRef>,
    names: Vec<ArrayRef>,
    after: Vec<ArrayRef>,
}

impl Columns {
    /// Adds the columns of an answer, chunk by chunk.
    fn of(first: usize, answer: BatchAnswer, chunks: &mut Vec<Self>) {
        let (before, names, after) = match answer {
            BatchAnswer::Count(counts) => (vec![], vec![numbers(0, &counts)], vec![]),
            BatchAnswer::Exists(exists) => (vec![], vec![Arc::new(BooleanArray::from(exists)) as _], vec![]),
            BatchAnswer::Owners(found) => {
                (vec![numbers(first, &found.events)], text_columns(&found.owners), vec![])
            }
            BatchAnswer::All(found) => {
                let chunk = |rows: MatchRows| Self {
                    before: vec![rows.events],
                    names: vec![rows.ids],
                    after: vec![],
                };
                return chunks.extend(found.rows.into_iter().map(chunk));
            }
            BatchAnswer::Best(best) => {
                let chunk = |rows: BestMatchRows| Self {
                    before: vec![rows.events],
                    names: rows.ids,
                    after: vec![rows.scores, rows.ranks],
                };
                return chunks.extend(best.rows.into_iter().map(chunk));
            }
        };
        chunks.push(Self { before, names, after });
    }

    /// A batch for each column of names, with the others cut alike.
    fn batches(self, schema: &Arc<Schema>) -> Result<Vec<RecordBatch>, ArrowError> {
        let mut next = 0;
        let cut = |names: ArrayRef| {
            let (first, rows) = (next, names.len());
            next += rows;
            let part = |column: &ArrayRef| column.slice(first, rows);
            let columns = self.before.iter().map(part).chain([names]).chain(self.after.iter().map(part));
            RecordBatch::try_new(schema.clone(), columns.collect())
        };
        self.names.into_iter().map(cut).collect()
    }
}

/// Texts in as many columns as they need.
fn text_columns(texts: &[Box<str>]) -> Vec<ArrayRef> {
    let (mut columns, mut rest) = (vec![], texts);
    while !rest.is_empty() || columns.is_empty() {
        let mut bytes = 0;
        let fitting = rest.iter().take_while(|text| {
            bytes += text.len();
            bytes <= i32::MAX as usize
        });
        let (column, later) = rest.split_at(fitting.count().clamp(rest.len().min(1), rest.len()));
        columns.push(Arc::new(StringArray::from_iter_values(column)) as ArrayRef);
        rest = later;
    }
    columns
}

/// A table of one column: per event, the least time in nanoseconds of `repeats` queries.
#[pyfunction]
pub fn time_events(
    py: Python<'_>,
    index: &PyIndex,
    events: &Bound<'_, PyAny>,
    query: &PyQuery,
    repeats: usize,
    options: Options,
) -> PyResult<PyArrowStream> {
    // The clock is read once: what is measured is matching.
    let query = query.query().clone().at_current_time();
    let skipped = options.skipped();
    let Options { intervals, weights, lines_before, .. } = options;
    let given = Batch::from_python(events, intervals, weights, skipped, lines_before, 1)?;
    let times = py.detach(|| {
        let reader = index.index().reader_for(given.about())?;
        let mut times = vec![];
        let terms = Moment::of(&query).terms(reader.terms()).into_owned();
        given.visit(index.index(), &*reader, &terms, |_, events| {
            times.extend(least_times(events, repeats, |event, space| {
                reader.ask(&query, event, space).map_or(0, |(answer, _)| answer.matches())
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
pub fn contributions(index: &PyIndex, event: &Bound<'_, PyAny>, query: &PyQuery) -> PyResult<PyArrowStream> {
    let (index, query) = (index.index(), query.query());
    let columns = with_event(index, event, query, |reader, event, query, space| {
        let (found, slow) = index.contributions(&**reader, query, event, space)?;
        let ids = reader.id_columns(&found.locations)?;
        let mut columns = vec![
            (String::from("priority"), Arc::new(Float64Array::from(found.priorities)) as ArrayRef),
            (String::from("relevance"), Arc::new(Float64Array::from(found.relevances))),
        ];
        for (attribute, column) in found.terms {
            let name = reader.terms().name(attribute).to_string();
            columns.push((name, Arc::new(Float64Array::from(column))));
        }
        Ok(((ids, columns), slow))
    })?;
    warn_of_surprises(event.py(), index)?;
    let (ids, columns) = columns;
    let id_field = Field::new("id", ids[0].data_type().clone(), false);
    let fields = columns.iter().map(|(name, column)| Field::new(name, column.data_type().clone(), false));
    let schema = Arc::new(Schema::new(std::iter::once(id_field).chain(fields).collect::<Vec<_>>()));
    let after = columns.into_iter().map(|(_, column)| column).collect();
    let columns = Columns { before: vec![], names: ids, after };
    let batches = columns.batches(&schema).map_err(arrow_ffi::unreadable)?;
    Ok(PyArrowStream { schema, batches })
}

/// One query after the other, as a stream of events would ask them.
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

fn numbers(first: usize, numbers: &[u32]) -> ArrayRef {
    Arc::new(Int64Array::from_iter_values(numbers.iter().map(|number| first as i64 + *number as i64)))
}

fn one_column(name: &str, column: ArrayRef) -> PyResult<PyArrowStream> {
    let batch = RecordBatch::try_from_iter([(name, column)]).map_err(arrow_ffi::unreadable)?;
    Ok(PyArrowStream { schema: batch.schema(), batches: vec![batch] })
}

/// Events as JSON lines; empty lines are skipped.
fn read_lines(text: &[u8]) -> Result<Vec<GivenRecord>, EventError> {
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
    lines.map(|line| read(line).map(GivenRecord::Read)).collect()
}

/// The same exception, saying which event of a list it is about.
fn in_row(py: Python<'_>, row: usize, error: PyErr) -> PyErr {
    if error.is_instance_of::<PyUnicodeEncodeError>(py) {
        // It cannot be made from a message.
        let noted = error.value(py).call_method1("add_note", (format!("event {row}"),));
        return noted.err().unwrap_or(error);
    }
    PyErr::from_type(error.get_type(py), format!("event {row}: {}", error.value(py)))
}
