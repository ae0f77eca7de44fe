//! From a Python event to an answer: the path of `match`, `count`, `exists` and `top_k`.
//!
//! A dict is read under the interpreter lock, straight into what the index needs of it: attributes that no
//! subscription uses are not looked at. JSON is read without the lock. Then the lock is released, unless the
//! index is so small that releasing costs more than matching.

use std::borrow::Cow;
use std::cell::Cell;
use std::time::Instant;

use pyo3::prelude::*;
use tamis_core::Error;
use tamis_core::engine::observed::SlowEvent;
use tamis_core::engine::{Index, Reader, Work, Workspace};
use tamis_core::event::{Attributes, Event, EventBuilder, Record, Scratch as EventScratch, json};
use tamis_core::fork::Busy;

use crate::convert::walk_mapping;
use crate::errors::OrRaise;
use crate::event::{Source, source, with_record};

/// From this many subscriptions on, matching takes longer than releasing the interpreter lock.
const RELEASE_FROM: usize = 1000;

/// What a question found out.
pub struct Answer<T> {
    pub answer: T,
    pub matches: usize,
    pub work: Work,
}

/// Memory that a thread uses from event to event.
#[derive(Default)]
struct Memory {
    event: EventScratch,
    matching: Workspace,
}

thread_local! {
    /// Taken while in use: reading an event may run Python code that asks another question.
    static MEMORY: Cell<Option<Box<Memory>>> = const { Cell::new(None) };
}

/// Asks the current version of the index about one event. What it cost is noted in the statistics.
pub fn ask<T: Send>(
    index: &Index,
    event: &Bound<'_, PyAny>,
    question: impl FnOnce(&Reader, &Event<'_>, &mut Workspace) -> Answer<T> + Send,
) -> PyResult<T> {
    let (answer, slow) = with_event(
        index,
        event,
        |reader| Ok(Cow::Borrowed(reader.attributes())),
        RELEASE_FROM,
        |reader, _, event, scratch| measured(index, reader, event, scratch, question),
    )?;
    if let Some(slow) = slow {
        let described = with_record(event, json::write).ok();
        // The list of slow events has a lock; nobody waits for it with the interpreter in hand.
        event.py().detach(|| index.observed().note_slow(SlowEvent { event: described, ..slow }));
    }
    Ok(answer)
}

/// Reads the given attributes of an event, for the current version of the index. The interpreter lock is released
/// while `use_it` runs, from `release_from` subscriptions on.
pub fn with_event<T: Send>(
    index: &Index,
    event: &Bound<'_, PyAny>,
    attributes: impl FnOnce(&Reader) -> Result<Cow<'_, Attributes>, Error> + Send,
    release_from: usize,
    use_it: impl FnOnce(&Reader, &Attributes, &Event<'_>, &mut Workspace) -> T + Send,
) -> PyResult<T> {
    let mut memory = MEMORY.take().unwrap_or_default();
    let answer = with_memory(index, event, attributes, release_from, &mut memory, use_it);
    MEMORY.set(Some(memory));
    answer
}

fn with_memory<T: Send>(
    index: &Index,
    event: &Bound<'_, PyAny>,
    attributes: impl FnOnce(&Reader) -> Result<Cow<'_, Attributes>, Error> + Send,
    release_from: usize,
    memory: &mut Memory,
    use_it: impl FnOnce(&Reader, &Attributes, &Event<'_>, &mut Workspace) -> T + Send,
) -> PyResult<T> {
    let py = event.py();
    let Memory { event: scratch, matching } = memory;
    let Some(reader) = lock_free_reader(py, index)? else {
        // Python code may run under the interpreter lock, so such a reader is never held there.
        let record = with_record(event, Record::clone)?;
        let ask = || -> Result<_, Error> {
            let reader = index.reader()?;
            let record = coerced(index, &record);
            let attributes = attributes(&reader)?;
            let event = record.resolve(&attributes);
            Ok(use_it(&reader, &attributes, &event, matching))
        };
        return py.detach(ask).or_raise(py);
    };
    let releases = reader.len() >= release_from;
    let attributes = attributes(&reader).or_raise(py)?;
    let answer = match source(event)? {
        Source::Mapping => {
            let mut builder = EventBuilder::new(&attributes, index.schema(), scratch);
            walk_mapping(event, &mut builder).or_raise(py)?;
            let event = builder.finish().or_raise(py)?;
            detached(py, releases, || use_it(&reader, &attributes, &event, matching))
        }
        Source::Json(text) => {
            let ask = || -> Result<_, Error> {
                let event = json::read(&text, &attributes, index.schema(), scratch)?;
                Ok(use_it(&reader, &attributes, &event, matching))
            };
            detached(py, releases, ask).or_raise(py)?
        }
        Source::Event(event) => {
            let record = coerced(index, event.get().record());
            let event = record.resolve(&attributes);
            detached(py, releases, || use_it(&reader, &attributes, &event, matching))
        }
    };
    // Nothing may be answered from a file that was overwritten while it was read.
    ready(py, &reader)?;
    Ok(answer)
}

/// An answer, and what to remember if it took long.
type Measured<T> = (T, Option<SlowEvent>);

fn measured<T>(
    index: &Index,
    reader: &Reader,
    event: &Event<'_>,
    scratch: &mut Workspace,
    question: impl FnOnce(&Reader, &Event<'_>, &mut Workspace) -> Answer<T>,
) -> Measured<T> {
    let start = Instant::now();
    let Answer { answer, matches, work } = question(reader, event, scratch);
    let nanoseconds = start.elapsed().as_nanos() as u64;
    index.observe(event, matches, work, nanoseconds);
    let is_slow = index.observed().is_slow(nanoseconds);
    (answer, is_slow.then_some(SlowEvent { nanoseconds, matches, work, event: None }))
}

/// The current version, verified, if holding it holds no lock.
pub fn lock_free_reader(py: Python<'_>, index: &Index) -> PyResult<Option<Reader>> {
    if index.locks_readers() {
        return Ok(None);
    }
    let reader = index.unchecked_reader();
    ready(py, &reader)?;
    Ok(Some(reader))
}

/// Verifies what a version was mapped from, unless that was done and the file is as it was.
fn ready(py: Python<'_>, reader: &Reader) -> PyResult<()> {
    if reader.is_prepared() { Ok(()) } else { py.detach(|| reader.prepare()).or_raise(py) }
}

/// The record as the schema declares it.
pub fn coerced<'r>(index: &Index, record: &'r Record) -> Cow<'r, Record> {
    match index.schema() {
        None => Cow::Borrowed(record),
        Some(schema) => {
            let mut record = record.clone();
            schema.coerce(&mut record);
            Cow::Owned(record)
        }
    }
}

fn detached<T: Send>(py: Python<'_>, releases: bool, work: impl FnOnce() -> T + Send) -> T {
    if releases {
        return py.detach(work);
    }
    let _busy = Busy::without_waiting();
    work()
}
