//! Matches as Arrow rows, written by the threads that find them.
//!
//! A thread answers a run of consecutive events and writes its own columns. They become the chunks of the answer, so
//! nothing is copied at the end. Runs with few matches are combined first, because many small chunks would cost the
//! reader more than they save.

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, Float64Array, Int64Array, ListArray};
use arrow_buffer::OffsetBuffer;
use arrow_schema::{DataType, Field};

use crate::engine::answer_memory::AnswerMemory;
use crate::engine::contract::{Location, Scored, Version};
use crate::error::{Error, Result};
use crate::heap::prefer_huge_pages;
use crate::streaming_stores::extend_past_caches;
use crate::subscription::IdKind;

/// From this many matches on, a chunk ends with the event at hand.
const FULL: usize = 1 << 20;
/// The events of so many matches are written past the caches where columns are large.
const MANY_MATCHES: usize = 64;
/// Runs with fewer matches are combined with their neighbours.
const FEW: usize = 1 << 14;

/// The kind of rows of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// A row for each match.
    Pairs,
    /// A row for each event, with a list of its matches.
    Lists,
}

/// How matches are to be written.
#[derive(Clone, Copy, Debug)]
pub struct Output {
    pub layout: Layout,
    /// The number of the first event.
    pub first: usize,
}

impl Default for Output {
    fn default() -> Self {
        Self { layout: Layout::Pairs, first: 0 }
    }
}

/// Consecutive rows of an answer: the number of the event, and an id or a list of ids.
#[derive(Clone, Debug)]
pub struct MatchRows {
    pub events: ArrayRef,
    pub ids: ArrayRef,
}

/// The type of a column of lists of ids.
pub fn list_type(ids: DataType) -> DataType {
    DataType::List(item_of(ids))
}

fn item_of(ids: DataType) -> Arc<Field> {
    Arc::new(Field::new("item", ids, false))
}

/// The matches until they are written: ids, if they are integers, else the locations of subscriptions.
#[derive(Debug)]
enum Matched {
    Ids(Vec<i64>),
    Locations(Vec<Location>),
}

impl Matched {
    fn new(version: &dyn Version) -> Self {
        match version.id_kind() {
            Some(IdKind::Int) => Self::Ids(vec![]),
            _ => Self::Locations(vec![]),
        }
    }

    fn len(&self) -> usize {
        match self {
            Self::Ids(ids) => ids.len(),
            Self::Locations(locations) => locations.len(),
        }
    }

    fn append(&mut self, later: Self) {
        match (self, later) {
            (Self::Ids(ids), Self::Ids(mut later)) => ids.append(&mut later),
            (Self::Locations(locations), Self::Locations(mut later)) => locations.append(&mut later),
            _ => unreachable!("all are of one version"),
        }
    }

    fn columns(self, version: &dyn Version, memory: Option<&Arc<AnswerMemory>>) -> Result<Vec<ArrayRef>> {
        match self {
            Self::Ids(ids) => Ok(vec![integers(ids, memory)]),
            Self::Locations(locations) => version.id_columns(&locations),
        }
    }
}

/// A column, in memory that is used again if there is any.
fn integers(values: Vec<i64>, memory: Option<&Arc<AnswerMemory>>) -> ArrayRef {
    match memory {
        Some(memory) => memory.lend(values),
        None => Arc::new(Int64Array::from(values)),
    }
}

/// Matches that were found and not written yet.
#[derive(Debug)]
struct Found {
    /// The event of each match, or of each list.
    events: Vec<i64>,
    matched: Matched,
    /// Where each list ends.
    ends: Vec<i32>,
}

/// The output of one run of events.
#[derive(Debug)]
pub(super) struct Written {
    rows: Vec<MatchRows>,
    /// The last of them, if they are few.
    rest: Found,
}

/// Whether the memory of each column at hand was used before: then it is in no cache. New pages are, because they were cleared.
#[derive(Clone, Copy, Default)]
struct PastCaches {
    ids: bool,
    events: bool,
}

/// Writes the matches of a run of events.
pub(super) struct Writer<'v> {
    version: &'v dyn Version,
    output: Output,
    /// Where columns come from, if they are used again.
    memory: Option<&'v Arc<AnswerMemory>>,
    past_caches: PastCaches,
    written: Written,
    /// The event that comes next.
    next: usize,
    /// How many matches it was given.
    matches: usize,
}

impl<'v> Writer<'v> {
    /// For events from `first` on.
    pub fn new(
        version: &'v dyn Version,
        output: Output,
        memory: Option<&'v Arc<AnswerMemory>>,
        first: usize,
    ) -> Self {
        let written = Written { rows: vec![], rest: Found::new(version) };
        Self { version, output, memory, past_caches: PastCaches::default(), written, next: first, matches: 0 }
    }

    /// One of the same kind, for events from `first` on.
    pub fn another(&self, first: usize) -> Self {
        Self::new(self.version, self.output, self.memory, first)
    }

    pub fn matches(&self) -> usize {
        self.matches
    }

    /// Adds all matches of an event. Events come in order; those without matches may be left out.
    pub fn add(&mut self, event: usize, locations: &[Location]) -> Result<()> {
        self.reach(event);
        match &mut self.written.rest.matched {
            Matched::Ids(ids) => self.version.add_int_ids(locations, ids),
            Matched::Locations(all) => all.extend_from_slice(locations),
        }
        self.end_event(event, locations.len())
    }

    /// The same for matches of which only ids are known: `add` appends them, all of them integers, or declines and appends nothing.
    /// Says whether it did.
    pub fn add_ids(&mut self, event: usize, add: impl FnOnce(&mut Vec<i64>, bool) -> bool) -> Result<bool> {
        self.reach(event);
        let Matched::Ids(ids) = &mut self.written.rest.matched else { return Ok(false) };
        let before = ids.len();
        if !add(ids, self.past_caches.ids) {
            return Ok(false);
        }
        let more = ids.len() - before;
        self.end_event(event, more)?;
        Ok(true)
    }

    /// Notes that the last matches are those of an event.
    fn end_event(&mut self, event: usize, matches: usize) -> Result<()> {
        self.matches += matches;
        let found = &mut self.written.rest;
        let number = (self.output.first + event) as i64;
        match self.output.layout {
            Layout::Pairs if self.past_caches.events && matches >= MANY_MATCHES => {
                extend_past_caches(&mut found.events, matches, |_| number);
            }
            Layout::Pairs => found.events.extend(std::iter::repeat_n(number, matches)),
            Layout::Lists => found.end_list(number),
        }
        self.next = event + 1;
        if found.matched.len() >= FULL {
            self.write()?;
        }
        Ok(())
    }

    /// Makes room for the matches of the events that come next, as many as go into one chunk, if one begins.
    pub fn reserve(&mut self, matches: impl Iterator<Item = usize>) {
        let found = &mut self.written.rest;
        if found.matched.len() > 0 {
            return;
        }
        let mut all = 0;
        for more in matches {
            all += more;
            if all >= FULL {
                break;
            }
        }
        let memory = self.memory;
        let make_room = |column: &mut Vec<i64>| match memory {
            Some(memory) => {
                let (room, was_used) = memory.take(all);
                *column = room;
                was_used
            }
            None => {
                column.reserve_exact(all);
                prefer_huge_pages(column.spare_capacity_mut());
                false
            }
        };
        self.past_caches = PastCaches::default();
        if let Matched::Ids(ids) = &mut found.matched {
            self.past_caches.ids = make_room(ids);
        }
        if self.output.layout == Layout::Pairs {
            self.past_caches.events = make_room(&mut found.events);
        }
    }

    /// The events before `event` have no matches but those that were added.
    pub fn reach(&mut self, event: usize) {
        if self.output.layout == Layout::Lists {
            for empty in self.next..event {
                self.written.rest.end_list((self.output.first + empty) as i64);
            }
        }
        self.next = self.next.max(event);
    }

    /// Adds what another writer wrote, of the events that come next.
    pub fn append(&mut self, later: Self) -> Result<()> {
        if !later.written.rows.is_empty() {
            self.write()?;
            self.written.rows.extend(later.written.rows);
        }
        self.written.rest.append(later.written.rest);
        self.matches += later.matches;
        self.next = later.next;
        if self.written.rest.matched.len() >= FULL {
            self.write()?;
        }
        Ok(())
    }

    fn write(&mut self) -> Result<()> {
        let found = std::mem::replace(&mut self.written.rest, Found::new(self.version));
        found.write(self.version, self.output.layout, self.memory, &mut self.written.rows)
    }

    /// Writes what is left, unless it is to be put together with its neighbours.
    pub fn settle(&mut self) -> Result<()> {
        if self.written.rest.matched.len() >= FEW { self.write() } else { Ok(()) }
    }

    pub fn finish(mut self) -> Result<Written> {
        self.settle()?;
        Ok(self.written)
    }
}

impl Found {
    fn new(version: &dyn Version) -> Self {
        Self { events: vec![], matched: Matched::new(version), ends: vec![] }
    }

    fn end_list(&mut self, event: i64) {
        self.events.push(event);
        self.ends.push(self.matched.len() as i32);
    }

    fn append(&mut self, mut later: Self) {
        let before = self.matched.len() as i32;
        self.events.append(&mut later.events);
        self.matched.append(later.matched);
        self.ends.extend(later.ends.iter().map(|end| before + end));
    }

    fn write(
        self,
        version: &dyn Version,
        layout: Layout,
        memory: Option<&Arc<AnswerMemory>>,
        rows: &mut Vec<MatchRows>,
    ) -> Result<()> {
        if self.events.is_empty() {
            return Ok(());
        }
        let events = integers(self.events, memory);
        let ids = self.matched.columns(version, memory)?;
        if layout == Layout::Lists {
            let [values] = &ids[..] else {
                let message = "the ids are too long for lists; ask for a row per match";
                return Err(Error::Argument(message.into()));
            };
            let ends = std::iter::once(0).chain(self.ends).collect();
            let offsets = OffsetBuffer::new(ends);
            let lists =
                ListArray::try_new(item_of(values.data_type().clone()), offsets, values.clone(), None);
            let lists = lists.map_err(|error| Error::Argument(error.to_string()))?;
            rows.push(MatchRows { events, ids: Arc::new(lists) });
            return Ok(());
        }
        let mut first = 0;
        for ids in ids {
            let length = ids.len();
            rows.push(MatchRows { events: events.slice(first, length), ids });
            first += length;
        }
        Ok(())
    }
}

/// Consecutive rows of an answer with scores. Ids may need several columns; the others are as long as these together.
#[derive(Clone, Debug)]
pub struct BestMatchRows {
    pub events: ArrayRef,
    pub ids: Vec<ArrayRef>,
    pub scores: ArrayRef,
    pub ranks: ArrayRef,
}

/// The best matches of some events, not written yet.
#[derive(Debug, Default)]
pub(super) struct FoundBest {
    events: Vec<i64>,
    locations: Vec<Location>,
    scores: Vec<f64>,
    ranks: Vec<i64>,
}

/// The columns that the finding thread wrote, or the matches themselves, if they are few.
#[derive(Debug, Default)]
pub(super) struct WrittenBest {
    rows: Vec<BestMatchRows>,
    rest: FoundBest,
}

impl FoundBest {
    pub fn len(&self) -> usize {
        self.events.len()
    }

    /// Adds the best matches of an event, the best first.
    pub fn add(&mut self, event: usize, best: &[Scored]) {
        self.events.extend(std::iter::repeat_n(event as i64, best.len()));
        self.locations.extend(best.iter().map(|scored| scored.location));
        self.scores.extend(best.iter().map(|scored| scored.score));
        self.ranks.extend(1..=best.len() as i64);
    }

    pub fn write(self, version: &dyn Version, rows: &mut Vec<BestMatchRows>) -> Result<()> {
        if self.events.is_empty() {
            return Ok(());
        }
        rows.push(BestMatchRows {
            ids: version.id_columns(&self.locations)?,
            events: Arc::new(Int64Array::from(self.events)),
            scores: Arc::new(Float64Array::from(self.scores)),
            ranks: Arc::new(Int64Array::from(self.ranks)),
        });
        Ok(())
    }

    /// Writes them, unless they are to be put together with their neighbours.
    pub fn settle(self, version: &dyn Version) -> Result<WrittenBest> {
        if self.len() < FEW {
            return Ok(WrittenBest { rows: vec![], rest: self });
        }
        let mut written = WrittenBest::default();
        self.write(version, &mut written.rows)?;
        Ok(written)
    }
}

impl WrittenBest {
    /// Adds what follows `rest` and `rows`.
    pub fn append_to(
        mut self,
        version: &dyn Version,
        rest: &mut FoundBest,
        rows: &mut Vec<BestMatchRows>,
    ) -> Result<()> {
        if !self.rows.is_empty() {
            std::mem::take(rest).write(version, rows)?;
            rows.append(&mut self.rows);
        }
        rest.events.append(&mut self.rest.events);
        rest.locations.append(&mut self.rest.locations);
        rest.scores.append(&mut self.rest.scores);
        rest.ranks.append(&mut self.rest.ranks);
        Ok(())
    }
}

/// The rows of all runs, in order.
pub(super) fn join(
    version: &dyn Version,
    layout: Layout,
    runs: impl Iterator<Item = Written>,
) -> Result<Vec<MatchRows>> {
    let mut rows = vec![];
    let mut few = Found::new(version);
    for run in runs {
        if !run.rows.is_empty() {
            std::mem::replace(&mut few, Found::new(version)).write(version, layout, None, &mut rows)?;
            rows.extend(run.rows);
        }
        few.append(run.rest);
        if few.matched.len() >= FEW {
            std::mem::replace(&mut few, Found::new(version)).write(version, layout, None, &mut rows)?;
        }
    }
    few.write(version, layout, None, &mut rows)?;
    Ok(rows)
}
