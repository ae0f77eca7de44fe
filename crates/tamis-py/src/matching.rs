//! From a Python event to an answer.
//!
//! A dict is read under the interpreter lock, directly into the attributes that the index needs; all others
//! are skipped. JSON is read without the lock. Then the lock is released, unless the index is so small that
//! releasing costs more than matching.

use std::borrow::Cow;
use std::cell::Cell;
use std::sync::OnceLock;

use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use tamis_core::Error;
use tamis_core::engine::contract::Answer;
use tamis_core::engine::{Index, Reader, SlowEvent, Surprise, Workspace};
use tamis_core::event::json::{self, Skipped};
use tamis_core::event::{Event, EventBuilder, Record, Scratch as EventScratch, Terms};
use tamis_core::fork::KeepsInterpreter;
use tamis_core::query::{Ask, Query, current_time};

use crate::convert::walk_event;
use crate::dict_items::Texts;
use crate::errors::{OrRaise, warn_of_value};
use crate::event::{Source, source, with_record};
use crate::id_cache::IdCache;
use crate::results::Found;
use crate::seen_names::SeenNames;

/// From this many subscriptions on, matching takes longer than releasing the interpreter lock.
const RELEASE_FROM: usize = 1000;

/// Memory that a thread uses from event to event.
#[derive(Default)]
struct Memory {
    event: EventScratch,
    names: SeenNames,
    /// Empty between events.
    texts: Texts,
    matching: Workspace,
}

thread_local! {
    /// Taken while in use: reading an event may run Python code that asks another query.
    static MEMORY: Cell<Option<Box<Memory>>> = const { Cell::new(None) };
}

/// An answer on its way to Python: ids, a number, a bool, names of owners, or tuples of id, score and rank.
enum Answered {
    All(Found),
    Count(usize),
    Exists(bool),
    Owners(Vec<Box<str>>),
    Best(Found, Vec<f64>),
}

/// Asks the current version of the index about one event.
pub fn ask<'py>(
    index: &Index,
    ids: &IdCache,
    event: &Bound<'py, PyAny>,
    query: &Query,
    threads: usize,
) -> PyResult<Bound<'py, PyAny>> {
    let py = event.py();
    let asked = with_event(index, event, query, |reader, event, query, space| {
        space.set_threads(threads);
        let (answer, slow) = index.ask(&**reader, query, event, space)?;
        let answered = match answer {
            Answer::All(places) => Answered::All(Found::new(reader, places)),
            Answer::Count(count) => Answered::Count(count),
            Answer::Exists(exists) => Answered::Exists(exists),
            Answer::Owners(owners) => Answered::Owners(owners),
            Answer::Best(best) => {
                let places = best.iter().map(|scored| scored.location).collect();
                let scores = best.iter().map(|scored| scored.score).collect();
                Answered::Best(Found::new(reader, places), scores)
            }
        };
        Ok((answered, slow))
    });
    let answered = asked?;
    warn_of_surprises(py, index)?;
    match answered {
        Answered::All(found) => Ok(found.to_list(py, ids)?.into_any()),
        Answered::Count(count) => count.into_bound_py_any(py),
        Answered::Exists(exists) => exists.into_bound_py_any(py),
        Answered::Owners(owners) => {
            let owners: Vec<&str> = owners.iter().map(|owner| &**owner).collect();
            owners.into_bound_py_any(py)
        }
        Answered::Best(found, scores) => {
            let ranked = scores.into_iter().enumerate();
            let shown: PyResult<Vec<_>> =
                ranked.map(|(at, score)| Ok((found.id(py, at)?, score, at + 1))).collect();
            shown?.into_bound_py_any(py)
        }
    }
}

/// Warns about probably unintended values, once per attribute. If warnings are errors, this raises one.
#[inline]
pub fn warn_of_surprises(py: Python<'_>, index: &Index) -> PyResult<()> {
    if index.has_surprises() { warn_of_each(py, index) } else { Ok(()) }
}

#[cold]
fn warn_of_each(py: Python<'_>, index: &Index) -> PyResult<()> {
    let surprises = {
        let _keeps = KeepsInterpreter::new(); // a fork may wait for the interpreter
        index.take_surprises()
    };
    for surprise in surprises {
        let is_unreadable = matches!(surprise, Surprise::Unreadable(_));
        warn_of_value(py, &surprise.to_string(), is_unreadable)?;
    }
    Ok(())
}

/// Resolves an event for the current version and asks something about it, on one thread unless `asked` allows for
/// more. What was slow is noted.
pub fn with_event<T: Send>(
    index: &Index,
    event: &Bound<'_, PyAny>,
    query: &Query,
    asked: impl FnOnce(&Reader, &Event<'_>, &Query, &mut Workspace) -> Measured<T> + Send,
) -> PyResult<T> {
    let moment = Moment::of(query);
    let (answer, slow) = resolved(
        index,
        event,
        |reader| Ok(moment.terms(reader.terms())),
        RELEASE_FROM,
        |reader, terms, event, space| {
            space.set_threads(1);
            asked(reader, event, &moment.query(terms), space)
        },
    )?;
    if let Some(slow) = slow {
        let described = with_record(event, json::write).ok();
        // The list of slow events has a lock; nobody waits for it with the interpreter in hand.
        event.py().detach(|| index.note_slow(SlowEvent { event: described, ..*slow }));
    }
    Ok(answer)
}

/// When a query is asked: one moment for what has expired and for what `current_timestamp()` is.
///
/// The clock is read only if the moment is needed: it takes a twentieth of a call.
pub struct Moment<'q> {
    query: &'q Query,
    now: OnceLock<i64>,
}

impl<'q> Moment<'q> {
    pub fn of(query: &'q Query) -> Self {
        Self { query, now: query.now.map_or_else(OnceLock::new, OnceLock::from) }
    }

    fn now(&self) -> i64 {
        *self.now.get_or_init(current_time)
    }

    /// The terms to read events with.
    pub fn terms<'t>(&self, terms: &'t Terms) -> Cow<'t, Terms> {
        let is_scored = matches!(self.query.ask, Ask::Best(_)) && terms.strings().is_some();
        let at_moment =
            if terms.needs_now() { Cow::Owned(terms.at(self.now())) } else { Cow::Borrowed(terms) };
        if is_scored { Cow::Owned(at_moment.into_owned().keeping_strings()) } else { at_moment }
    }

    /// The query, with its moment where an expression looks at it.
    pub fn query(&self, terms: &Terms) -> Cow<'q, Query> {
        match self.query.now {
            None if terms.needs_now() => Cow::Owned(Query { now: Some(self.now()), ..self.query.clone() }),
            _ => Cow::Borrowed(self.query),
        }
    }
}

/// An answer, and what to remember if it took long.
type Measured<T> = Result<(T, Option<Box<SlowEvent>>), Error>;

/// Reads some attributes of an event, for the current version of the index. The interpreter lock is released while
/// `use_it` runs, from `release_from` subscriptions on.
pub fn resolved<T: Send>(
    index: &Index,
    event: &Bound<'_, PyAny>,
    terms: impl FnOnce(&Reader) -> Result<Cow<'_, Terms>, Error> + Send,
    release_from: usize,
    use_it: impl FnOnce(&Reader, &Terms, &Event<'_>, &mut Workspace) -> Result<T, Error> + Send,
) -> PyResult<T> {
    let mut memory = MEMORY.take().unwrap_or_default();
    let answer = resolved_in(&mut memory, index, event, terms, release_from, use_it);
    memory.texts.clear();
    MEMORY.set(Some(memory));
    answer
}

fn resolved_in<T: Send>(
    memory: &mut Memory,
    index: &Index,
    event: &Bound<'_, PyAny>,
    terms: impl FnOnce(&Reader) -> Result<Cow<'_, Terms>, Error> + Send,
    release_from: usize,
    use_it: impl FnOnce(&Reader, &Terms, &Event<'_>, &mut Workspace) -> Result<T, Error> + Send,
) -> PyResult<T> {
    let py = event.py();
    let Memory { event: scratch, names, texts, matching } = memory;
    let Some(reader) = lock_free_reader(py, index)? else {
        // Python code may run under the interpreter lock, so such a reader is never held there.
        let record = with_record(event, Record::clone)?;
        let ask = || -> Result<T, Error> {
            let reader = index.reader()?;
            let record = coerced(index, &record);
            let terms = terms(&reader)?;
            let mut room = vec![];
            let event = record.resolve_into(&terms, &mut room);
            use_it(&reader, &terms, &event, matching)
        };
        return py.detach(ask).or_raise(py);
    };
    let releases = reader.len() >= release_from;
    let terms = terms(&reader).or_raise(py)?;
    let answer = match source(event)? {
        Source::Mapping => {
            let mut resolved = scratch.spare();
            let mut builder = EventBuilder::new(&terms, index.schema(), scratch, &mut resolved);
            walk_event(event, &mut builder, names, texts).or_raise(py)?;
            let made = computed(|| builder.finish()).or_raise(py)?;
            let event = made.as_ref().unwrap_or(&resolved);
            let answer = detached(py, releases, || use_it(&reader, &terms, event, matching));
            let spare = made.map(Event::recycled).unwrap_or(resolved);
            scratch.recycle(spare);
            answer
        }
        Source::Json(text) => {
            let ask = || -> Result<T, Error> {
                let mut event = scratch.spare();
                let made =
                    json::read_into(&text, &terms, index.schema(), scratch, Skipped::Checked, &mut event)?;
                let answer = use_it(&reader, &terms, made.as_ref().unwrap_or(&event), matching);
                let spare = made.map(Event::recycled).unwrap_or(event);
                scratch.recycle(spare);
                answer
            };
            detached(py, releases, ask)
        }
        Source::Event(event) => {
            let record = coerced(index, event.get().record());
            let mut room = vec![];
            let event = computed(|| record.resolve_into(&terms, &mut room));
            detached(py, releases, || use_it(&reader, &terms, &event, matching))
        }
    };
    // Nothing may be answered from a file that was overwritten while it was read.
    ready(py, &reader)?;
    answer.or_raise(py)
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

/// Computes the terms of an event, some of which ask an index of their own, with the interpreter in hand.
fn computed<T>(work: impl FnOnce() -> T) -> T {
    let _keeps = KeepsInterpreter::new();
    work()
}

fn detached<T: Send>(py: Python<'_>, releases: bool, work: impl FnOnce() -> T + Send) -> T {
    if releases {
        return py.detach(work);
    }
    let _keeps = KeepsInterpreter::new();
    work()
}
