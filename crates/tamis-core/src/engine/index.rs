//! The index that users hold: an engine, an optional schema, and statistics of past queries.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use serde_json::{Value as Json, json};

use super::contract::{
    Answer, Change, Engine, NewScores, Reader, Version, VisitEvent, Work, Workspace, WrongKind,
};
use super::contributions::Contributions;
use super::device::{Device, DeviceMemory};
use super::matching_costs::{Observed, SlowEvent};
use super::production::Production;
use super::stopwatch::Stopwatch;
use super::unexpected_values::{Surprise, Surprises};
use crate::error::{Error, Result};
use crate::event::{Event, EventSource, Schema, Unreadable, Value};
use crate::expr::Predicate;
use crate::expr::limits::check_limits;
use crate::expr::parser::locate;
use crate::fork::Mutex;
use crate::query::Query;
use crate::snapshot::Snapshot;
use crate::subscription::{Id, Subscription};

pub struct Index {
    engine: Box<dyn Engine>,
    /// The options of the algorithm that were set.
    options: Vec<(String, Value)>,
    schema: Option<Schema>,
    /// Whether what no value can hold is an error.
    strict: bool,
    observed: Observed,
    device: Mutex<Option<Arc<DeviceMemory>>>,
    surprises: Surprises,
}

impl Default for Index {
    fn default() -> Self {
        Self::new(None)
    }
}

impl Index {
    /// An empty index on the production engine.
    pub fn new(schema: Option<Schema>) -> Self {
        Self::with_engine(Box::new(Production::default()), vec![], schema)
    }

    /// An index on an engine that was made with these options.
    pub fn with_engine(
        engine: Box<dyn Engine>,
        options: Vec<(String, Value)>,
        schema: Option<Schema>,
    ) -> Self {
        let (observed, surprises) = (Observed::default(), Surprises::default());
        Self { engine, options, schema, strict: false, observed, surprises, device: Mutex::default() }
    }

    /// The same index; if it is strict, what an event gives and no value can hold is an error. Otherwise the attribute is
    /// absent, and is counted.
    pub fn with_strictness(self, strict: bool) -> Self {
        Self { strict, ..self }
    }

    pub fn is_strict(&self) -> bool {
        self.strict
    }

    pub fn algorithm(&self) -> &'static str {
        self.engine.name()
    }

    pub fn options(&self) -> &[(String, Value)] {
        &self.options
    }

    pub fn schema(&self) -> Option<&Schema> {
        self.schema.as_ref()
    }

    pub(super) fn engine(&self) -> &dyn Engine {
        &*self.engine
    }

    // --- changes -----------------------------------------------------------------------------------

    pub fn add(&self, subscription: Subscription) -> Result<()> {
        self.check(&subscription)?;
        self.engine.apply(Change::Add(subscription))
    }

    /// Puts another subscription in the place of one with the same id.
    pub fn replace(&self, subscription: Subscription) -> Result<()> {
        self.check(&subscription)?;
        let id = subscription.id.clone();
        self.engine.apply(Change::Replace(subscription)).map_err(|error| self.about_id(error, &id))
    }

    /// Adds or replaces.
    pub fn upsert(&self, subscription: Subscription) -> Result<()> {
        self.check(&subscription)?;
        self.engine.apply(Change::Upsert(subscription))
    }

    pub fn remove(&self, id: Id) -> Result<()> {
        self.change(id, Change::Remove)
    }

    /// Changes the priority of a subscription; its expression stays where it is.
    pub fn set_priority(&self, id: Id, priority: f64) -> Result<()> {
        self.change(id, |id| Change::Rescore(id, NewScores { priority: Some(priority), weights: None }))
    }

    /// Changes the weights per attribute of a subscription; its expression stays where it is.
    pub fn set_weights(&self, id: Id, weights: Vec<(Box<str>, f64)>) -> Result<()> {
        self.change(id, |id| Change::Rescore(id, NewScores { priority: None, weights: Some(weights) }))
    }

    fn change(&self, id: Id, change: impl FnOnce(Id) -> Change) -> Result<()> {
        self.engine.apply(change(id.clone())).map_err(|error| self.about_id(error, &id))
    }

    /// Whether this index accepts the subscription: limits, weights, priority and schema.
    pub fn check(&self, subscription: &Subscription) -> Result<()> {
        check_limits(&subscription.expression)?;
        self.check_parsed(subscription)
    }

    /// The same for an expression that was read from text: the parser keeps to the limits.
    pub(super) fn check_parsed(&self, subscription: &Subscription) -> Result<()> {
        subscription.check()?;
        if let Some(schema) = &self.schema {
            let mut outcome = Ok(());
            subscription.expression.for_each_predicate(&mut |predicate| {
                if outcome.is_ok() {
                    outcome = schema.check_predicate(predicate);
                }
            });
            outcome?;
        }
        Ok(())
    }

    /// What is wrong with an expression that was read from `text`: with its place, if only the schema could say so.
    pub fn located(&self, error: Error, text: &str) -> Error {
        match (error, &self.schema) {
            (Error::Expression(error), Some(schema)) if error.place.is_none() => {
                let same = error.clone();
                let is_refused = |predicate: &Predicate| {
                    schema.check_predicate(predicate).is_err_and(|other| other == same)
                };
                Error::Expression(locate(text, error, &is_refused))
            }
            (error, _) => error,
        }
    }

    /// An error about the id of a subscription; if it is unknown because ids have the other type, says so.
    fn about_id(&self, error: Error, id: &Id) -> Error {
        match (error, self.unchecked_reader().id_kind()) {
            (Error::UnknownId(message), Some(kind)) if kind != id.kind() => {
                Error::UnknownId(format!("{message}: its ids are {}", kind.plural()))
            }
            (error, _) => error,
        }
    }

    // --- reading -----------------------------------------------------------------------------------

    /// The subscription with this id.
    pub fn get(&self, id: &Id) -> Result<Subscription> {
        let found = self.reader()?.get(id);
        found.map_err(|error| self.about_id(error, id))
    }

    /// The current version, its stored bytes verified if they came from a file.
    pub fn reader(&self) -> Result<Reader> {
        let reader = self.unchecked_reader();
        reader.prepare()?;
        Ok(reader)
    }

    /// The same, for about this many events.
    pub fn reader_for(&self, events: usize) -> Result<Reader> {
        self.engine.expect_events(events);
        self.reader()
    }

    /// The current version, for queries that read no matching structure.
    pub fn unchecked_reader(&self) -> Reader {
        self.engine.reader()
    }

    /// Whether a reader keeps writers out; see [`Engine::locks_readers`].
    pub fn locks_readers(&self) -> bool {
        self.engine.locks_readers()
    }

    pub fn len(&self) -> usize {
        self.unchecked_reader().len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The answer to a query about one event, which is resolved for `version`. What it cost is noted; if that was
    /// much, the caller may describe the event and note it among the slowest.
    pub fn ask(
        &self,
        version: &dyn Version,
        query: &Query,
        event: &Event<'_>,
        space: &mut Workspace,
    ) -> Result<(Answer, Option<Box<SlowEvent>>)> {
        self.observed(event, || {
            let (answer, work) = version.ask(query, event, space)?;
            Ok((answer.matches(), work, answer))
        })
    }

    /// The contribution of each attribute to every match of one event; recorded in the statistics like
    /// [`ask`](Self::ask).
    pub fn contributions(
        &self,
        version: &dyn Version,
        query: &Query,
        event: &Event<'_>,
        space: &mut Workspace,
    ) -> Result<(Contributions, Option<Box<SlowEvent>>)> {
        self.observed(event, || {
            let (found, work) = version.contributions(query, event, space)?;
            Ok((found.locations.len(), work, found))
        })
    }

    /// Asks, and notes what it cost: matches and work come with the answer.
    fn observed<T>(
        &self,
        event: &Event<'_>,
        ask: impl FnOnce() -> Result<(usize, Work, T)>,
    ) -> Result<(T, Option<Box<SlowEvent>>)> {
        if !event.unreadable.is_empty() {
            self.note_unreadable(Unreadable::from(&*event.unreadable))?;
        }
        let watch = Stopwatch::start();
        let (matches, work, answer) = ask()?;
        let nanoseconds = watch.nanoseconds();
        if self.is_surprised(&work) {
            self.note_surprises(&vec![event.clone()], 0..1, &work);
        }
        self.observe_many(1, matches, work, nanoseconds, &|_, keep| keep(event));
        let is_slow = self.observed.is_slow(nanoseconds);
        let slow = || Box::new(SlowEvent { nanoseconds, matches, work, event: None });
        Ok((answer, is_slow.then(slow)))
    }

    /// Whether matching met a value that is hardly meant, on an attribute that was not told of yet.
    #[inline]
    pub(super) fn is_surprised(&self, work: &Work) -> bool {
        self.surprises.are_new(work)
    }

    /// Looks for such values in a range of events.
    #[cold]
    pub(super) fn note_surprises(&self, events: &dyn EventSource, range: Range<usize>, work: &Work) {
        let reader = self.unchecked_reader();
        for WrongKind { term, found, expected } in reader.wrong_kinds(events, range) {
            let attribute = reader.terms().name(term).into();
            let has_schema = self.schema.is_some();
            self.surprises.add(Surprise::WrongKind { attribute, found, expected, has_schema });
        }
        self.surprises.tell_bits(work.wrong_terms);
    }

    /// Counts what no value can hold, or refuses it.
    #[cold]
    pub(super) fn note_unreadable(&self, unreadable: Unreadable) -> Result<()> {
        let Unreadable { count, first: Some(first) } = unreadable else { return Ok(()) };
        if self.strict {
            return Err(first.into());
        }
        self.observed.note(0, 0, Work { mismatches: count, ..Work::default() }, 0);
        self.surprises.add(Surprise::Unreadable(first));
        Ok(())
    }

    /// Whether there are values of events that are probably unintended and were not reported yet.
    #[inline]
    pub fn has_surprises(&self) -> bool {
        self.surprises.are_waiting()
    }

    /// Probably unintended values of events: once per attribute, each reported once.
    pub fn take_surprises(&self) -> Vec<Surprise> {
        self.surprises.take()
    }

    // --- devices -----------------------------------------------------------------------------------

    /// From now on blocks of events are matched on a device, or here again.
    pub fn use_device(&self, device: Option<Arc<dyn Device>>) {
        *self.device.lock() = device.map(|device| Arc::new(DeviceMemory::new(device)));
    }

    /// The device that matches blocks of events, and what is kept there.
    pub fn device(&self) -> Option<Arc<DeviceMemory>> {
        self.device.lock().clone()
    }

    // --- upkeep ------------------------------------------------------------------------------------

    /// Rewrites the index for the events seen so far. Matching goes on meanwhile.
    pub fn optimize(&self) -> Result<()> {
        self.engine.optimize()
    }

    /// As [`optimize`](Self::optimize), on a thread of its own.
    pub fn optimize_in_background(&self) {
        self.engine.optimize_in_background();
    }

    /// Whether the index optimizes itself when events turn out to be others than it was laid out for; it does
    /// unless told otherwise. Algorithms that do not learn ignore this.
    pub fn optimize_automatically(&self, enabled: bool) {
        self.engine.optimize_automatically(enabled);
    }

    /// Whether a background thread is rewriting segments.
    pub fn is_optimizing(&self) -> bool {
        self.engine.is_optimizing()
    }

    /// Notes what some events cost together, and keeps some of them to learn from; `see` calls what it is given
    /// with the event of a number.
    pub(super) fn observe_many(
        &self,
        events: usize,
        matches: usize,
        work: Work,
        nanoseconds: u64,
        visit: VisitEvent<'_>,
    ) {
        self.engine.learn(events, &work, visit);
        self.observed.note(events, matches, work, nanoseconds);
    }

    /// Notes one of the slowest events; see [`ask`](Self::ask).
    pub fn note_slow(&self, slow: SlowEvent) {
        self.observed.note_slow(slow);
    }

    /// Forgets what was observed.
    pub fn reset_observed(&self) {
        self.observed.reset();
    }

    /// Everything known of the index, as JSON.
    pub fn statistics(&self) -> Json {
        let reader = self.unchecked_reader();
        let mut stats = json!({
            "algorithm": self.algorithm(),
            "subscriptions": reader.len(),
            "generation": reader.generation(),
            "attributes": reader.terms().attributes().count(),
            "computed_terms": reader.terms().computed_per_event(),
            "optimizing": self.is_optimizing(),
            "schema": self.schema().map(|schema| schema.iter().map(|(name, of)| (name.into(), of.to_string().into())).collect::<serde_json::Map<String, Json>>()),
            "strict": self.strict,
        });
        let observed = json!({ "observed": self.observed.statistics() });
        let device = self.device().map_or(Json::Null, |device| device.statistics());
        for part in [reader.statistics(), self.engine.statistics(), observed, device] {
            if let (Json::Object(all), Json::Object(part)) = (&mut stats, part) {
                all.extend(part);
            }
        }
        stats
    }

    // --- keeping -----------------------------------------------------------------------------------

    /// Writes the current version to a file, which it replaces at once or not at all.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        self.engine.save(path.as_ref(), self.schema())
    }

    /// The bytes that [`save`](Self::save) would write.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        self.engine.to_bytes(self.schema())
    }

    /// Opens a saved index by mapping it into memory; what it holds is verified on first use.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        Self::from_snapshot(Snapshot::open(path)?)
    }

    /// The same from a copy in memory, to which nothing can happen that happens to the file.
    pub fn open_copied(path: impl AsRef<Path>) -> Result<Self> {
        Self::from_snapshot(Snapshot::open_copied(path)?)
    }

    pub fn from_bytes(bytes: Vec<u8>) -> Result<Self> {
        Self::from_snapshot(Snapshot::from_bytes(bytes)?)
    }

    fn from_snapshot(snapshot: Snapshot) -> Result<Self> {
        let (engine, schema) = Production::from_snapshot(snapshot)?;
        Ok(Self::with_engine(Box::new(engine), vec![], schema))
    }

    /// Verifies every byte of the file this index was opened from, records and payloads included.
    pub fn verify(&self) -> Result<()> {
        self.engine.verify()
    }
}
