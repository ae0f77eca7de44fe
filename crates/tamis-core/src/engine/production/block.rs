//! Matches a block of events: looks values up attribute by attribute, then matches one by one or bit-parallel.

use std::ops::{ControlFlow, Range};
use std::time::Instant;

use super::block_matches::{BlockMatches, FoundInBlock, MatchedRows, Room};
use super::id_order::sort_by_row;
use super::view::{AllRows, Part, RowFilter, View};
use crate::engine::contract::{Blocks, FoundMatches, Location, Observation, Scored, Work};
use crate::engine::segment::bit_parallel::{self, BlockScratch, Mask};
use crate::engine::segment::counters::Counters;
use crate::engine::segment::layout::Layout;
use crate::engine::segment::matcher::Scratch;
use crate::engine::segment::unit_evaluation::Truth;
use crate::error::Result;
use crate::event::arrow::ArrowEvents;
use crate::event::{Event, EventSource};
use crate::predicate::bits::Bits;
use crate::predicate::block_lookup::{Fires, LookedUpBlock, LookedUpEvent};
use crate::predicate::catalog::{Catalog, Fired};
use crate::predicate::delegated::{Delegate, Nobody};
use crate::query::collector::Count;
use crate::query::{Filter, Measure, Ranking, Score, TopK};

/// Events that are tried one by one before the rest is matched bit-parallel.
const PROBES: usize = 8;

/// The blocks of some events, for one thread.
pub struct BlocksOfView<'e> {
    view: &'e View,
    events: &'e dyn EventSource,
    filter: &'e Filter<'e>,
    space: BlockSpace<'e>,
}

impl<'e> BlocksOfView<'e> {
    pub fn new(view: &'e View, events: &'e dyn EventSource, filter: &'e Filter<'e>) -> Self {
        Self { view, events, filter, space: BlockSpace::default() }
    }

    /// The events of a range, if all are points, in the memory of the block before.
    fn block(&mut self, range: Range<usize>) -> Option<Block<'e>> {
        Block::in_memory(self.view, self.events, range, std::mem::take(&mut self.space.events))
    }

    /// The matches of the events of a range, as many as there is room for.
    fn find(&mut self, range: Range<usize>, most: usize) -> Option<FoundInBlock<'_>> {
        let block = self.block(range)?;
        let (events, observed) = self.space.find(&block, self.filter, most);
        self.space.keep(block);
        Some(FoundInBlock { view: self.view, matches: &self.space.found, events, observed })
    }
}

impl Blocks for BlocksOfView<'_> {
    fn matches(
        &mut self,
        range: Range<usize>,
        most: usize,
        add: &mut dyn FnMut(usize, &[Location]),
    ) -> Option<(usize, Observation)> {
        let found = self.find(range, most)?;
        let mut locations = vec![];
        for at in (0..found.events).filter(|at| found.matches.count(*at) > 0) {
            found.of_event(at, &mut locations);
            add(at, &locations);
        }
        Some((found.events, found.observed))
    }

    fn find_matches(&mut self, range: Range<usize>, most: usize) -> Option<Box<dyn FoundMatches + '_>> {
        let found = self.find(range, most)?;
        Some(Box::new(found))
    }

    fn best(
        &mut self,
        range: Range<usize>,
        ranking: &Ranking,
        add: &mut dyn FnMut(usize, &[Scored]) -> bool,
    ) -> Option<Result<Observation>> {
        let block = self.block(range)?;
        let observed = self.space.best(&block, ranking, self.filter, add);
        self.space.keep(block);
        Some(observed)
    }

    fn counts(&mut self, range: Range<usize>, counts: &mut Vec<u32>) -> Option<Observation> {
        let block = self.block(range)?;
        let observed = self.space.counts(&block, self.filter, counts);
        self.space.keep(block);
        Some(observed)
    }

    fn event(&self, at: usize) -> Option<&Event<'_>> {
        self.space.events.get(at)
    }
}

/// Events that are points, and the version of the index that they are matched with.
pub(super) struct Block<'e> {
    pub(super) view: &'e View,
    pub(super) events: Events<'e>,
}

pub(super) enum Events<'e> {
    Columns(&'e ArrowEvents<'e>, Range<usize>),
    Loaded(Vec<Event<'e>>),
}

impl<'e> Block<'e> {
    /// The events of a range, if all are points.
    pub(super) fn new(view: &'e View, events: &'e dyn EventSource, range: Range<usize>) -> Option<Self> {
        Self::in_memory(view, events, range, vec![])
    }

    /// The same; `loaded` are events of no interest, whose memory is used again.
    fn in_memory(
        view: &'e View,
        events: &'e dyn EventSource,
        range: Range<usize>,
        mut loaded: Vec<Event<'e>>,
    ) -> Option<Self> {
        if let Some(columns) = events.columns() {
            let events = Events::Columns(columns, range);
            return (!columns.has_intervals()).then_some(Self { view, events });
        }
        loaded.resize_with(range.len(), Event::default);
        events.fill_all(range, &mut loaded);
        let are_points = !loaded.iter().any(|event| event.has_intervals);
        are_points.then_some(Self { view, events: Events::Loaded(loaded) })
    }

    pub(super) fn len(&self) -> usize {
        match &self.events {
            Events::Columns(_, range) => range.len(),
            Events::Loaded(events) => events.len(),
        }
    }

    /// Whether some event gives weights to attributes; columns have none.
    pub(super) fn has_weights(&self) -> bool {
        match &self.events {
            Events::Columns(..) => false,
            Events::Loaded(events) => events.iter().any(|event| !event.weights.is_empty()),
        }
    }

    /// How many values of columns there may be.
    pub(super) fn cells(&self) -> usize {
        match &self.events {
            Events::Columns(columns, range) => columns.columns().len() * range.len(),
            Events::Loaded(_) => 0,
        }
    }

    /// The same events in this many blocks or fewer; none if they do not lie in columns.
    pub(super) fn in_pieces(&self, most: usize) -> Vec<Self> {
        let Events::Columns(columns, range) = &self.events else { return vec![] };
        let piece = range.len().div_ceil(most).max(1);
        let starts = range.clone().step_by(piece);
        let pieces = starts.map(|start| Events::Columns(columns, start..range.end.min(start + piece)));
        pieces.map(|events| Self { view: self.view, events }).collect()
    }

    /// Calls `see` with an event.
    pub(super) fn with_event(&self, at: usize, see: impl FnOnce(&Event<'_>)) {
        match &self.events {
            Events::Columns(columns, range) => see(&columns.event(range.start + at)),
            Events::Loaded(events) => see(&events[at]),
        }
    }

    /// The events as they are, if a catalog looks up one as fast as all together.
    fn as_they_are(&self, catalog: &Catalog) -> Option<&[Event<'e>]> {
        match &self.events {
            Events::Loaded(events) if catalog.is_small() => Some(events),
            _ => None,
        }
    }

    pub(super) fn place(&self, catalog: &Catalog, looked_up: &mut LookedUpBlock<'e>) {
        self.look_up_but(catalog, looked_up, 0, &mut Nobody);
        looked_up.arrange();
    }

    /// The same without the values of columns that a delegate takes, to be arranged by event if need be.
    pub(super) fn look_up_but(
        &self,
        catalog: &Catalog,
        looked_up: &mut LookedUpBlock<'e>,
        most: usize,
        delegate: &mut impl Delegate,
    ) {
        match &self.events {
            Events::Loaded(events) => looked_up.place_events(catalog, events),
            Events::Columns(columns, range) => {
                looked_up.place_rows_but(catalog, columns, range.clone(), most, delegate)
            }
        }
    }

    /// How many values of the first `events` are of a kind that no predicate expects.
    pub(super) fn mismatches(&self, events: usize) -> Work {
        let expected = self.view.expected();
        match &self.events {
            Events::Loaded(loaded) => loaded[..events].iter().fold(Work::default(), |mut all, event| {
                all += expected.mismatches(event);
                all
            }),
            Events::Columns(columns, range) => {
                expected.mismatches_in(columns, range.start..range.start + events)
            }
        }
    }

    /// What the filter keeps of each part, for points such as the one given.
    pub(super) fn filters<'f>(&'f self, filter: &'f Filter<'f>, point: &'f Event<'f>) -> Vec<RowFilter<'f>> {
        self.view.parts.iter().map(|part| RowFilter::new(self.view, part, filter, point)).collect()
    }

    /// The matches in the buffer of the version.
    pub(super) fn buffered(&self, filter: &Filter<'_>, mut found: impl FnMut(usize, Location)) {
        if self.view.buffer.is_empty() {
            return;
        }
        for at in 0..self.len() {
            self.with_event(at, |event| {
                self.view.buffered_matches(event, filter).for_each(|location| found(at, location));
            });
        }
    }
}

/// One event of a block.
enum BlockEvent<'a> {
    Plain(&'a Event<'a>),
    LookedUp(LookedUpEvent<'a>),
}

impl Fires for BlockEvent<'_> {
    fn fire(&self, catalog: &Catalog, bits: &mut Bits, fired: &mut impl Fired) {
        match self {
            Self::Plain(event) => catalog.fire(event, bits, fired),
            Self::LookedUp(event) => event.fire(catalog, bits, fired),
        }
    }

    fn with_intervals(&self) -> Option<&Event<'_>> {
        None
    }
}

/// An event of a block, looked up with the others unless it is matched as it is.
fn event_of<'a, 'e: 'a>(
    block: &'a Block<'e>,
    layout: &Layout,
    looked_up: &'a LookedUpBlock<'e>,
    at: usize,
) -> BlockEvent<'a> {
    match block.as_they_are(&layout.catalog) {
        Some(events) => BlockEvent::Plain(&events[at]),
        None => BlockEvent::LookedUp(looked_up.event(at)),
    }
}

/// What one thread works with.
#[derive(Default)]
struct BlockSpace<'e> {
    /// The events of the last block.
    events: Vec<Event<'e>>,
    scratch: Scratch,
    looked_up: LookedUpBlock<'e>,
    bit_parallel: BlockScratch,
    /// Rows that match some events of the block.
    rows: MatchedRows,
    /// The matches of each event.
    found: BlockMatches,
    /// What each event cost that was matched by itself.
    work: Vec<Work>,
}

impl<'e> BlockSpace<'e> {
    /// Keeps the memory of a block that is done.
    fn keep(&mut self, block: Block<'e>) {
        if let Events::Loaded(events) = block.events {
            self.events = events;
        }
    }

    /// Adds how many matches each event has.
    fn counts(&mut self, block: &Block<'e>, filter: &Filter<'_>, all: &mut Vec<u32>) -> Observation {
        let started = Instant::now();
        let before = all.len();
        all.resize(before + block.len(), 0);
        let counts = &mut all[before..];
        let point = Event::default();
        let filters = block.filters(filter, &point);
        let alone = self.each_part(block, |space, number, part, phase| {
            let (layout, keeps) = (&part.segment.layout, &filters[number as usize]);
            let plain = keeps.keeps_all();
            let kept = |unit: u32| {
                let rows = layout.rows_of(unit);
                if plain { rows.len() } else { rows.iter().filter(|row| keeps.keeps(**row)).count() }
            };
            match phase {
                Phase::One(at) => {
                    let event = event_of(block, layout, &space.looked_up, at);
                    let mut count = Count::default();
                    let work = if plain {
                        let mut rows = AllRows::new(layout, number, &mut count);
                        layout.matching_units(&event, &mut space.scratch, &mut rows)
                    } else {
                        layout.matching_units(&event, &mut space.scratch, &mut |unit| {
                            count.0 += kept(unit);
                            ControlFlow::Continue(())
                        })
                    };
                    counts[at] += count.0 as u32;
                    work
                }
                Phase::Rest(from) => {
                    let mut counters = Counters::default();
                    let events = (from..block.len()).map(|at| event_of(block, layout, &space.looked_up, at));
                    bit_parallel::matching_units(layout, events, &mut space.bit_parallel, |unit, events| {
                        counters.add(events, kept(unit));
                    });
                    for (count, more) in counts[from..].iter_mut().zip(counters.totals()) {
                        *count += more;
                    }
                    Work::default()
                }
            }
        });
        block.buffered(filter, |at, _| counts[at] += 1);
        let matches = counts[..alone].iter().map(|count| *count as usize).sum();
        self.observed(block, block.len(), alone, matches, started)
    }

    /// Calls `add` with each event and its best matches, until it says to stop.
    fn best(
        &mut self,
        block: &Block<'e>,
        ranking: &Ranking,
        filter: &Filter<'_>,
        add: &mut dyn FnMut(usize, &[Scored]) -> bool,
    ) -> Result<Observation> {
        let started = Instant::now();
        let Self { looked_up, scratch, .. } = self;
        let (view, point) = (block.view, Event::default());
        // By priority, segments see nothing of an event but what is looked up.
        let is_seen = ranking.score != Score::Priority || !view.buffer.is_empty();
        let loaded: Vec<Event<'_>> = match &block.events {
            Events::Columns(columns, range) if is_seen => {
                range.clone().map(|row| columns.event(row)).collect()
            }
            _ => vec![],
        };
        let event_at = |at: usize| match &block.events {
            Events::Loaded(events) => &events[at],
            Events::Columns(..) => loaded.get(at).unwrap_or(&point),
        };
        let mut work = block.mismatches(block.len());
        let measure_at = |at| Measure::new(ranking, event_at(at), &view.terms);
        let measures: Vec<Measure<'_>> = (0..block.len()).map(measure_at).collect();
        let mut best: Vec<TopK<'_, Location>> =
            measures.iter().map(|_| TopK::new(ranking.k, ranking.min_score)).collect();
        for (at, (measure, best)) in measures.iter().zip(&mut best).enumerate() {
            view.offer_buffered(event_at(at), measure, filter, best);
            work.candidates += view.buffer.len() as u64;
        }
        for number in 0..view.parts.len() {
            block.place(view.ranked_catalog(number, &ranking.score)?, looked_up);
            for (at, (measure, best)) in measures.iter().zip(&mut best).enumerate() {
                let fires = looked_up.event(at);
                work += view.offer_part(number, event_at(at), &fires, measure, filter, 1, scratch, best)?;
            }
        }
        let mut matches = 0;
        for (at, best) in best.into_iter().enumerate() {
            let sorted = best.into_sorted().into_iter();
            let scored: Vec<Scored> =
                sorted.map(|found| Scored { location: found.item, score: found.score }).collect();
            matches += scored.len();
            if !add(at, &scored) {
                break;
            }
        }
        let nanoseconds = started.elapsed().as_nanos() as u64;
        Ok(Observation { events: block.len(), matches, work, nanoseconds })
    }

    /// Finds the matches of each event, as far as there is room for `most` of them. Says how many events are answered.
    fn find(&mut self, block: &Block<'e>, filter: &Filter<'_>, most: usize) -> (usize, Observation) {
        let started = Instant::now();
        let mut found = std::mem::take(&mut self.found);
        found.start(block.view.parts.len(), block.len());
        let mut room = Room { events: block.len(), held: 0, most };
        let point = Event::default();
        let filters = block.filters(filter, &point);
        let alone = self.each_part(block, |space, number, part, phase| {
            let (layout, keeps) = (&part.segment.layout, &filters[number as usize]);
            match phase {
                Phase::One(at) if at < room.events => {
                    let event = event_of(block, layout, &space.looked_up, at);
                    let own = &mut found.of_part(number)[at];
                    let work = layout.matching_units(&event, &mut space.scratch, &mut |unit| {
                        own.extend(layout.rows_of(unit).iter().filter(|row| keeps.keeps(**row)));
                        ControlFlow::Continue(())
                    });
                    sort_by_row(own, part.segment.len(), |row| *row, |row| row);
                    room.held += own.len();
                    if room.is_short() {
                        room.fit(|at| found.count(at));
                    }
                    work
                }
                Phase::Rest(from) if from < room.events => {
                    let rows = &mut space.rows;
                    rows.start(part.segment.len());
                    let events = (from..room.events).map(|at| event_of(block, layout, &space.looked_up, at));
                    bit_parallel::matching_units(layout, events, &mut space.bit_parallel, |unit, events| {
                        rows.add(
                            layout.rows_of(unit).iter().copied().filter(|row| keeps.keeps(*row)),
                            events,
                        );
                    });
                    room.held += rows.matches();
                    if room.is_short() {
                        let more = rows.by_event();
                        room.fit(|at| found.count(at) + if at < from { 0 } else { more[at - from] });
                    }
                    let with_room = room.events.saturating_sub(from);
                    let (kept, of_events) = (Mask::first(with_room), &mut found.of_part(number)[from..]);
                    // Most have about as many. A list that grows step by step is copied at each step.
                    let usual = rows.matches() / (block.len() - from);
                    of_events[..with_room].iter_mut().for_each(|rows| rows.reserve(usual + usual / 4));
                    rows.for_each(|row, events| {
                        events.and(&kept).for_each(|event| of_events[event].push(row))
                    });
                    Work::default()
                }
                Phase::One(_) | Phase::Rest(_) => Work::default(), // there is no room for these events
            }
        });
        block.buffered(filter, |at, location| {
            if at < room.events {
                found.buffered(at).push(location);
                room.held += 1;
            }
        });
        if room.is_short() {
            room.fit(|at| found.count(at));
        }
        let (answered, alone) = (room.events, alone.min(room.events));
        let matches = (0..alone).map(|at| found.count(at)).sum();
        self.found = found;
        (answered, self.observed(block, answered, alone, matches, started))
    }

    /// Places the block in each part of the index and calls `run` with each of its events, and once with all
    /// from some event on where that is cheaper. Returns how many were matched by themselves everywhere.
    fn each_part(
        &mut self,
        block: &Block<'e>,
        mut run: impl FnMut(&mut Self, u32, &Part, Phase) -> Work,
    ) -> usize {
        let events = block.len();
        let mut alone = events;
        self.work.clear();
        self.work.resize(events, Work::default());
        for (number, part) in block.view.parts.iter().enumerate() {
            let layout = &part.segment.layout;
            if block.as_they_are(&layout.catalog).is_none() {
                block.place(&layout.catalog, &mut self.looked_up);
            }
            let mut total = Work::default();
            for at in 0..events {
                if at == PROBES && together_is_cheaper(layout, &total, at, events - at) {
                    run(self, number as u32, part, Phase::Rest(at));
                    alone = alone.min(at);
                    break;
                }
                let work = run(self, number as u32, part, Phase::One(at));
                total += work;
                self.work[at] += work;
            }
        }
        alone
    }

    /// What those of the answered events cost that were matched by themselves.
    fn observed(
        &self,
        block: &Block<'_>,
        answered: usize,
        alone: usize,
        matches: usize,
        started: Instant,
    ) -> Observation {
        let mut work = block.mismatches(answered);
        self.work[..alone].iter().for_each(|each| work += *each);
        work.candidates += (alone * block.view.buffer.len()) as u64;
        let nanoseconds = started.elapsed().as_nanos() as u64 * alone as u64 / answered.max(1) as u64;
        Observation { events: alone, matches, work, nanoseconds }
    }
}

/// Which events of a block are to be matched.
#[derive(Clone, Copy)]
enum Phase {
    One(usize),
    /// All from this one on, bit-parallel.
    Rest(usize),
}

/// Whether evaluating the rest together is cheaper than one by one, by what `done` events cost.
///
/// Together, an entry, a unit and a key cost the same for one event as for all, but each event needs others. Most
/// single-row units are proved by an entry, so the code of the others is what counts. The
/// weights are nanoseconds. Those of one event by itself were fitted on conjunctive, equality, arbitrary and dense
/// expressions, 10,000 to a million of them; those of a unit and of a key together are estimates from arbitrary
/// expressions, 100,000 and a million of them, in blocks of 512 events.
fn together_is_cheaper(layout: &Layout, work: &Work, done: usize, rest: usize) -> bool {
    let (done, rest) = (done as f64, rest as f64);
    let (candidates, evaluations) = (work.candidates as f64 / done, work.evaluations as f64 / done);
    let with_code = layout.units() - (layout.remembered - layout.single_row);
    let (entries, units, keys) = (layout.entries.len() as f64, with_code as f64, layout.keys() as f64);
    let one_by_one = (candidates * 2.0 + evaluations * 90.0 + keys * 0.03) * rest;
    let entries_read = entries.min(candidates * rest);
    let units_run = units.min(evaluations * rest);
    entries_read * 4.0 + units_run * 120.0 + keys * 15.0 < one_by_one
}
