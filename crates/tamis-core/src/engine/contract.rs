//! The contract of everything that holds subscriptions and finds those that an event satisfies.
//!
//! An [`Engine`] takes changes. A [`Version`] of it is what a query sees: all changes up to some generation and none
//! after it. Callers query a version and never ask which engine it belongs to. If an engine lacks an operation, the
//! default here refuses it or does nothing.
//!
//! Laws:
//! 1. *Agreement.* A version reports exactly the subscriptions whose expression is true for the event by the
//!    reference evaluator (`expr::eval`) and that the filter keeps, each once.
//! 2. *Order.* Matches are sorted by id. The best are sorted by score, ties by the smaller id, and each score is
//!    that of `query::score`, bit for bit.
//! 3. *Refusal.* An expression that the engine cannot hold is refused with
//!    [`Error::Unsupported`](crate::Error::Unsupported), and the engine is as it was before.
//! 4. *Removal.* A removed subscription is in no later version, its memory is free for reuse, and the engine is
//!    equivalent to one that never held it.
//! 5. *Isolation.* A version never changes. Changes that were made together are in a version together.
//! 6. *Determinism.* The same changes and events give the same answers on any machine.

use std::any::Any;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::{Deref, Range};
use std::path::Path;
use std::sync::{Arc, Weak};

use arrow_array::ArrayRef;
use serde_json::Value as Json;

use super::device::DeviceMemory;
use super::expected_kinds::ExpectedKinds;
use super::id_column::id_columns;
use super::permits::Permits;
pub use super::work::{Work, WrongKind};
use crate::error::{Error, Result};
use crate::event::value::Kind;
use crate::event::{Event, EventSource, Schema, Terms};
use crate::query::{Ask, Filter, Measure, Query, Ranking, TopK};
pub use crate::subscription::Location;
use crate::subscription::{Id, IdKind, IdRef, Subscription};

/// Holds subscriptions and takes changes.
pub trait Engine: Send + Sync {
    /// The name by which it is chosen.
    fn name(&self) -> &'static str;

    /// Makes one change; versions taken from now on have it.
    fn apply(&self, change: Change) -> Result<()>;

    /// Adds many at once; they become visible together. Returns how many were added.
    fn add_all(&self, subscriptions: &dyn NewSubscriptions) -> Result<usize>;

    /// The current version.
    fn reader(&self) -> Reader;

    /// Announces that about this many events will be matched with one version, so that the engine can prepare for them.
    fn expect_events(&self, _events: usize) {}

    /// Whether its readers are [`Reader::Locked`]. No foreign code may run while one of those is held.
    fn locks_readers(&self) -> bool {
        false
    }

    /// Rewrites what it holds for the events seen so far. Matching goes on meanwhile.
    fn optimize(&self) -> Result<()> {
        Ok(())
    }

    /// As [`optimize`](Self::optimize), on a thread of its own.
    fn optimize_in_background(&self) {}

    /// Whether it optimizes itself when events no longer fit its layout.
    fn optimize_automatically(&self, _enabled: bool) {}

    /// Whether a background thread is rewriting what it holds.
    fn is_optimizing(&self) -> bool {
        false
    }

    /// Learns from events that were matched, and from what they cost together. `visit` calls a closure with the event at an
    /// index below `events`.
    fn learn(&self, _events: usize, _work: &Work, _visit: VisitEvent<'_>) {}

    /// Writes the current version to a file, which it replaces at once or not at all.
    fn save(&self, _path: &Path, _schema: Option<&Schema>) -> Result<()> {
        Err(cannot_be_saved(self.name()))
    }

    /// The bytes that [`save`](Self::save) would write.
    fn to_bytes(&self, _schema: Option<&Schema>) -> Result<Vec<u8>> {
        Err(cannot_be_saved(self.name()))
    }

    /// Verifies every byte of the file it was opened from, if it was.
    fn verify(&self) -> Result<()> {
        Ok(())
    }

    /// Maintenance statistics, as a JSON object.
    fn statistics(&self) -> Json {
        Json::Object(Default::default())
    }
}

fn cannot_be_saved(name: &str) -> Error {
    Error::Argument(format!(
        "an index with algorithm {name:?} can't be saved; only the production index ({AUTO:?}) can"
    ))
}

/// The name under which the production engine is chosen.
pub const AUTO: &str = "auto";

/// Calls a closure with the event at an index.
pub type VisitEvent<'a> = &'a dyn Fn(usize, &mut dyn FnMut(&Event<'_>));

/// Subscriptions that are to be added, in rising order of id. Asked from several threads.
pub trait NewSubscriptions: Sync {
    fn len(&self) -> usize;

    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// `None` if this one is left out. An error means that none is added. May be asked for again.
    fn get(&self, at: usize) -> Result<Option<Subscription>>;

    /// The engine cannot hold this one. An error means that none is added.
    fn refuse(&self, at: usize, error: Error) -> Result<()>;
}

/// A change of one subscription.
#[derive(Clone, Debug)]
pub enum Change {
    Add(Subscription),
    Replace(Subscription),
    Upsert(Subscription),
    Remove(Id),
    Rescore(Id, NewScores),
}

/// New scores for a subscription; what is `None` stays as it is.
#[derive(Clone, Debug, Default)]
pub struct NewScores {
    pub priority: Option<f64>,
    pub weights: Option<Vec<(Box<str>, f64)>>,
}

impl NewScores {
    pub fn apply(self, subscription: &mut Subscription) {
        subscription.priority = self.priority.unwrap_or(subscription.priority);
        if let Some(weights) = self.weights {
            subscription.weights = weights;
        }
    }
}

/// One consistent version of what an engine holds.
pub trait Version: Sync {
    fn terms(&self) -> &Terms;

    /// How many changes were published before it.
    fn generation(&self) -> u64;

    /// `None` before the first subscription.
    fn id_kind(&self) -> Option<IdKind>;

    fn len(&self) -> usize;

    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether every subscription is known to be active at any moment. False is always allowed.
    fn is_timeless(&self) -> bool {
        false
    }

    /// Whether [`prepare`](Self::prepare) has nothing left to do.
    fn is_prepared(&self) -> bool {
        true
    }

    /// Verifies what was read from a file, once, and that the file was not overwritten, every time. Comes before
    /// any query; after one it says that nothing changed meanwhile.
    fn prepare(&self) -> Result<()> {
        Ok(())
    }

    fn locate(&self, id: &Id) -> Option<Location>;

    /// The stored subscription.
    fn subscription(&self, location: Location) -> Result<Subscription>;

    fn get(&self, id: &Id) -> Result<Subscription> {
        self.locate(id).ok_or_else(|| Error::missing(id)).and_then(|location| self.subscription(location))
    }

    fn id(&self, location: Location) -> IdRef<'_>;

    fn priority(&self, location: Location) -> f64;

    /// Every subscription, sorted by id.
    fn locations(&self) -> Vec<Location>;

    /// How many rows each part has, used or not, and last how many the buffer has.
    fn part_sizes(&self) -> Vec<usize>;

    /// An object that stays the same as long as every [`Location::Row`] keeps its id, across versions; `None`
    /// if that is not known.
    fn row_ids(&self) -> Option<Weak<dyn Any + Send + Sync>> {
        None
    }

    /// The ids of some subscriptions as a column: integers, or a dictionary of the strings that occur.
    fn id_columns(&self, locations: &[Location]) -> Result<Vec<ArrayRef>> {
        id_columns(self.id_kind(), &self.part_sizes(), locations, |location| self.id(location))
    }

    /// Appends the ids of some subscriptions of an index whose ids are integers.
    fn add_int_ids(&self, locations: &[Location], ids: &mut Vec<i64>) {
        ids.extend(locations.iter().map(|location| match self.id(*location) {
            IdRef::Int(id) => id,
            IdRef::Str(_) => unreachable!("an index has ids of one kind"),
        }));
    }

    /// The matches, sorted by id.
    fn matches(&self, event: &Event<'_>, filter: &Filter<'_>, space: &mut Workspace)
    -> (Vec<Location>, Work);

    fn count(&self, event: &Event<'_>, filter: &Filter<'_>, space: &mut Workspace) -> (usize, Work) {
        let (found, work) = self.matches(event, filter, space);
        (found.len(), work)
    }

    /// Whether anything matches.
    fn exists(&self, event: &Event<'_>, filter: &Filter<'_>, space: &mut Workspace) -> (bool, Work) {
        let (count, work) = self.count(event, filter, space);
        (count > 0, work)
    }

    /// The owners of which at least one subscription matches, sorted.
    fn owners(
        &self,
        event: &Event<'_>,
        filter: &Filter<'_>,
        space: &mut Workspace,
    ) -> Result<(Vec<Box<str>>, Work)> {
        let (found, work) = self.matches(event, filter, space);
        let mut owners = BTreeSet::new();
        for location in found {
            owners.extend(self.subscription(location)?.owner);
        }
        Ok((owners.into_iter().collect(), work))
    }

    /// Offers everything that may be among the best.
    fn offer_best<'v>(
        &'v self,
        event: &Event<'_>,
        measure: &Measure<'_>,
        filter: &Filter<'_>,
        space: &mut Workspace,
        best: &mut TopK<'v, Location>,
    ) -> Result<Work>;

    /// The best matches by a score, ties by smaller id.
    fn top_k(
        &self,
        event: &Event<'_>,
        ranking: &Ranking,
        filter: &Filter<'_>,
        space: &mut Workspace,
    ) -> Result<(Vec<Scored>, Work)> {
        let measure = Measure::new(ranking, event, self.terms());
        let mut best = TopK::new(ranking.k, ranking.min_score);
        let work = self.offer_best(event, &measure, filter, space, &mut best)?;
        let sorted = best.into_sorted().into_iter();
        Ok((sorted.map(|found| Scored { location: found.item, score: found.score }).collect(), work))
    }

    /// The answer to a query about one event.
    fn ask(&self, query: &Query, event: &Event<'_>, space: &mut Workspace) -> Result<(Answer, Work)> {
        // Reading the clock takes a few percent of a call.
        let filter = if self.is_timeless() { query.timeless_filter() } else { query.filter() };
        Ok(match &query.ask {
            Ask::All => {
                let (found, work) = self.matches(event, &filter, space);
                (Answer::All(found), work)
            }
            Ask::Count => {
                let (count, work) = self.count(event, &filter, space);
                (Answer::Count(count), work)
            }
            Ask::Exists => {
                let (exists, work) = self.exists(event, &filter, space);
                (Answer::Exists(exists), work)
            }
            Ask::Owners => {
                let (owners, work) = self.owners(event, &filter, space)?;
                (Answer::Owners(owners), work)
            }
            Ask::Best(ranking) => {
                let (best, work) = self.top_k(event, ranking, &filter, space)?;
                (Answer::Best(best), work)
            }
        })
    }

    /// A matcher of many events in blocks, for one thread; `None` if events are matched one by one.
    fn blocks<'e>(
        &'e self,
        _events: &'e dyn EventSource,
        _filter: &'e Filter<'e>,
    ) -> Option<Box<dyn Blocks + 'e>> {
        None
    }

    /// The same on a device, in blocks of any size. Each may be gathered by this many threads, if there are permits for them; `None` if
    /// the engine has no plan for a device.
    fn device_blocks<'e>(
        &'e self,
        _events: &'e dyn EventSource,
        _filter: &'e Filter<'e>,
        _memory: &'e DeviceMemory,
        _threads: usize,
        _permits: &'e Permits,
    ) -> Option<Box<dyn Blocks + 'e>> {
        None
    }

    /// Each tag, with the number of subscriptions that have it.
    fn tag_counts(&self) -> BTreeMap<Box<str>, usize>;

    /// Attributes by name, with the kinds of values that some predicate expects. No kinds: any value will do, as
    /// for `IS NULL`.
    fn expected_kinds(&self) -> BTreeMap<String, Vec<Kind>> {
        let mut terms = self.terms().clone();
        let mut expected = ExpectedKinds::default();
        for location in self.locations() {
            if let Ok(subscription) = self.subscription(location) {
                expected.note_expression(&subscription.expression, &mut terms);
            }
        }
        expected.by_name(&terms)
    }

    /// The attributes on which some events of a range have values of a kind that no predicate expects, with the kind of the
    /// first such value and the kinds that are expected. Engines that do not count such values know of none.
    fn wrong_kinds(&self, _events: &dyn EventSource, _range: Range<usize>) -> Vec<WrongKind> {
        vec![]
    }

    /// Other subscriptions that share parts of their expression with this one in the structure, sorted by id.
    fn neighbours(&self, _location: Location) -> Vec<Location> {
        vec![]
    }

    /// Its parts, as a JSON object; among others `bytes` by part and `index_bytes`.
    fn statistics(&self) -> Json;
}

/// Matches events of one source in blocks, on one thread. Returns `None` for a block with interval values.
pub trait Blocks {
    /// Calls `add` with each event that matches something, counted from the first of the range, and with all
    /// its matches, sorted by id. Ends before the event with which there would be more than `most` matches, but
    /// not before the first; says how many events are answered.
    fn matches(
        &mut self,
        range: Range<usize>,
        most: usize,
        add: &mut dyn FnMut(usize, &[Location]),
    ) -> Option<(usize, Observation)>;

    /// As [`matches`](Self::matches), but several threads may read what is found. `None` if the engine does not support that; then
    /// callers use `matches`.
    fn find_matches(&mut self, range: Range<usize>, most: usize) -> Option<Box<dyn FoundMatches + '_>> {
        let _ = (range, most);
        None
    }

    /// Calls `add` with each event and its best matches, the best first, until it says to stop.
    fn best(
        &mut self,
        range: Range<usize>,
        ranking: &Ranking,
        add: &mut dyn FnMut(usize, &[Scored]) -> bool,
    ) -> Option<Result<Observation>>;

    /// Adds the number of matches of each event to `counts`.
    fn counts(&mut self, range: Range<usize>, counts: &mut Vec<u32>) -> Option<Observation>;

    /// An event of the range that was asked about last, counted from its first, if it was read for that.
    fn event(&self, at: usize) -> Option<&Event<'_>> {
        let _ = at;
        None
    }

    /// Adds to each subscription the number of events that it matches. `None` if it is not counted that way: then
    /// `matches` is asked.
    fn row_counts(&mut self, range: Range<usize>, counts: &mut RowCounts) -> Option<Observation> {
        let _ = (range, counts);
        None
    }
}

/// The matches of a block of events.
pub trait FoundMatches: Sync {
    /// How many events are answered.
    fn events(&self) -> usize;

    /// How many matches they have together.
    fn matches(&self) -> usize;

    /// How many matches an event has.
    fn matches_of(&self, at: usize) -> usize;

    /// Replaces `locations` by the matches of an event, sorted by id.
    fn of_event(&self, at: usize, locations: &mut Vec<Location>);

    /// Appends the ids of the matches of an event, sorted, if they are integers and matches come in that order; past the caches, if that
    /// is better for this column. Says whether it did.
    fn add_int_ids(&self, at: usize, ids: &mut Vec<i64>, past_caches: bool) -> bool;

    fn observed(&self) -> Observation;
}

/// For how many events each subscription holds.
#[derive(Clone, Debug, Default)]
pub struct RowCounts {
    /// By part and row.
    pub parts: Vec<Vec<u64>>,
    /// By place in the buffer.
    pub buffer: Vec<u64>,
}

impl RowCounts {
    /// For subscriptions in this many rows of each part, and last of the buffer; see [`Version::part_sizes`].
    pub fn new(part_sizes: &[usize]) -> Self {
        let mut parts: Vec<Vec<u64>> = part_sizes.iter().map(|size| vec![0; *size]).collect();
        let buffer = parts.pop().unwrap_or_default();
        Self { parts, buffer }
    }

    pub fn add(&mut self, location: Location) {
        match location {
            Location::Row { part, row } => self.parts[part as usize][row as usize] += 1,
            Location::Buffer(at) => self.buffer[at as usize] += 1,
        }
    }

    /// Adds what another thread counted.
    pub fn merge(&mut self, other: Self) {
        let own = self.parts.iter_mut().chain([&mut self.buffer]);
        for (own, other) in own.zip(other.parts.into_iter().chain([other.buffer])) {
            own.iter_mut().zip(other).for_each(|(all, more)| *all += more);
        }
    }

    /// Those that hold for any event, and for how many, sorted by id.
    pub fn found(&self, version: &dyn Version) -> Vec<(Location, u64)> {
        let rows = (0..).zip(&self.parts).flat_map(|(part, counts)| {
            (0..).zip(counts).map(move |(row, count)| (Location::Row { part, row }, *count))
        });
        let buffered = (0..).zip(&self.buffer).map(|(at, count)| (Location::Buffer(at), *count));
        let mut found: Vec<_> = rows.chain(buffered).filter(|(_, count)| *count > 0).collect();
        found.sort_unstable_by(|(a, _), (b, _)| version.id(*a).cmp(&version.id(*b)));
        found
    }
}

/// The observations of a block. Events that were matched together, on the processor or on a device, have no
/// separate cost.
#[derive(Clone, Copy, Debug, Default)]
pub struct Observation {
    /// How many were matched one by one, which are the first of the block, their matches, and the time that they took.
    pub events: usize,
    pub matches: usize,
    /// The work for these, and values of kinds that nobody expects in any event of the block.
    pub work: Work,
    pub nanoseconds: u64,
}

/// A version, and what keeps it as it is.
pub enum Reader {
    /// Immutable: it may be kept indefinitely.
    Kept(Arc<dyn Version + Send>),
    /// Keeps writers out until it is dropped, and stays on its thread.
    Locked(Box<dyn Version>),
}

impl Deref for Reader {
    type Target = dyn Version;

    fn deref(&self) -> &Self::Target {
        match self {
            Reader::Kept(version) => &**version,
            Reader::Locked(version) => &**version,
        }
    }
}

/// The answer to a query, of the kind that was asked for.
#[derive(Clone, Debug)]
pub enum Answer {
    All(Vec<Location>),
    Count(usize),
    Exists(bool),
    Owners(Vec<Box<str>>),
    Best(Vec<Scored>),
}

impl Answer {
    /// How many matches it tells of.
    pub fn matches(&self) -> usize {
        match self {
            Answer::All(found) => found.len(),
            Answer::Count(count) => *count,
            Answer::Exists(exists) => usize::from(*exists),
            Answer::Owners(owners) => owners.len(),
            Answer::Best(best) => best.len(),
        }
    }
}

/// A match and its score.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scored {
    pub location: Location,
    pub score: f64,
}

/// The state that a thread reuses from event to event: memory of the engine's own kind, and how many threads may work on one event.
#[derive(Default)]
pub struct Workspace {
    memory: Option<Box<dyn Any + Send>>,
    helpers: usize,
}

/// More threads are never used for one event.
const MOST_THREADS: usize = 256;

impl Workspace {
    /// How many threads may work on one event, the one that asks included. Answers do not depend on it, and an engine
    /// may use fewer.
    pub fn threads(&self) -> usize {
        self.helpers + 1
    }

    /// One thread, unless this says otherwise.
    pub fn set_threads(&mut self, threads: usize) {
        self.helpers = threads.clamp(1, MOST_THREADS) - 1;
    }

    /// The memory of one kind; empty if the last event was matched by another engine.
    pub fn of<T: Default + Send + 'static>(&mut self) -> &mut T {
        if !self.memory.as_ref().is_some_and(|held| held.is::<T>()) {
            self.memory = Some(Box::<T>::default());
        }
        self.memory.as_mut().and_then(|held| held.downcast_mut()).expect("it was put there")
    }
}
