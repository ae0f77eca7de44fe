//! Many events at once: on several threads, and where many match, a bit per event.
//!
//! Two ways, chosen per block of events by what the first of them cost: one by one (few candidates
//! survive, so little is shared between events) or bit-parallel (see `bit_parallel`).

pub mod bit_parallel;
pub mod counters;
mod masks;
mod threads;
pub mod weights;

use std::time::Instant;

use crate::error::Result;
use crate::event::Event;
use crate::event::arrow::ArrowEvents;
use crate::index::production::view::{Filter, Location, RowFilter, View};
use crate::index::segment::matcher::{Scratch, Work};
use crate::index::{Index, Reader};
use crate::rank::Ranking;
use bit_parallel::{BlockScratch, Mask, WIDTH};
use counters::Counters;
use threads::in_blocks;

/// Events that are tried one by one before a block is started.
const PROBES: usize = 8;

/// Events by number, wherever they are stored.
pub trait EventSource: Sync {
    fn len(&self) -> usize;

    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Puts event `row` in the place of what `event` held.
    fn fill<'a>(&'a self, row: usize, event: &mut Event<'a>);
}

impl EventSource for ArrowEvents<'_> {
    fn len(&self) -> usize {
        ArrowEvents::len(self)
    }

    fn fill<'a>(&'a self, row: usize, event: &mut Event<'a>) {
        ArrowEvents::fill(self, row, event);
    }
}

/// Events that are resolved already.
impl EventSource for [Event<'_>] {
    fn len(&self) -> usize {
        <[Event<'_>]>::len(self)
    }

    fn fill<'a>(&'a self, row: usize, event: &mut Event<'a>) {
        event.clone_from(&self[row]);
    }
}

/// Matches of many events, sorted by event, then by id.
#[derive(Default, Debug)]
pub struct BatchMatches {
    pub events: Vec<u32>,
    pub locations: Vec<Location>,
}

/// The best matches of many events, sorted by event, then by rank.
#[derive(Default, Debug)]
pub struct BatchTopK {
    pub events: Vec<u32>,
    pub locations: Vec<Location>,
    pub scores: Vec<f64>,
    pub ranks: Vec<u32>,
}

/// Every match of every event.
pub fn match_events(
    index: &Index,
    reader: &Reader,
    events: &(impl EventSource + ?Sized),
    filter: &Filter,
    threads: usize,
) -> BatchMatches {
    let blocks = in_blocks(events.len(), WIDTH, threads, Workspace::default, |space, range| {
        let batch = load(events, range.clone());
        let mut found = BatchMatches::default();
        let first = range.start as u32;
        let alone = space.probe(index, reader, &batch, |space, event, values| {
            let (locations, work) = reader.matches(values, filter, &mut space.scratch);
            found.events.extend(std::iter::repeat_n(first + event as u32, locations.len()));
            found.locations.extend_from_slice(&locations);
            (locations.len(), work)
        });
        if let (Some(view), true) = (bit_view(reader), alone < batch.len()) {
            note_mismatches(index, view, &batch[alone..]);
            space.match_block(view, reader, &batch[alone..], first + alone as u32, filter, &mut found);
        }
        found
    });
    let mut all = BatchMatches::default();
    for block in blocks {
        all.events.extend(block.events);
        all.locations.extend(block.locations);
    }
    all
}

/// How many matches every event has.
pub fn count_events(
    index: &Index,
    reader: &Reader,
    events: &(impl EventSource + ?Sized),
    filter: &Filter,
    threads: usize,
) -> Vec<u32> {
    let blocks = in_blocks(events.len(), WIDTH, threads, Workspace::default, |space, range| {
        let batch = load(events, range);
        let mut counts = Vec::with_capacity(batch.len());
        let alone = space.probe(index, reader, &batch, |space, _, values| {
            let (count, work) = reader.count(values, filter, &mut space.scratch);
            counts.push(count as u32);
            (count, work)
        });
        if let (Some(view), true) = (bit_view(reader), alone < batch.len()) {
            note_mismatches(index, view, &batch[alone..]);
            space.count_block(view, &batch[alone..], filter, &mut counts);
        }
        counts
    });
    blocks.concat()
}

/// The best matches of every event by a score.
pub fn top_k_events(
    index: &Index,
    reader: &Reader,
    events: &(impl EventSource + ?Sized),
    ranking: &Ranking,
    filter: &Filter,
    threads: usize,
) -> Result<BatchTopK> {
    let blocks: Vec<Result<BatchTopK>> =
        in_blocks(events.len(), WIDTH, threads, Scratch::default, |scratch, range| {
            let mut found = BatchTopK::default();
            let mut event = Event::default();
            for row in range {
                events.fill(row, &mut event);
                let start = Instant::now();
                let (best, work) = reader.top_k(&event, ranking, filter, scratch)?;
                index.observe(&event, best.len(), work, start.elapsed().as_nanos() as u64);
                for (at, scored) in best.iter().enumerate() {
                    found.events.push(row as u32);
                    found.locations.push(scored.location);
                    found.scores.push(scored.score);
                    found.ranks.push(at as u32 + 1);
                }
            }
            Ok(found)
        });
    let mut all = BatchTopK::default();
    for block in blocks {
        let block = block?;
        all.events.extend(block.events);
        all.locations.extend(block.locations);
        all.scores.extend(block.scores);
        all.ranks.extend(block.ranks);
    }
    Ok(all)
}

fn load<'a>(events: &'a (impl EventSource + ?Sized), range: std::ops::Range<usize>) -> Vec<Event<'a>> {
    range
        .map(|row| {
            let mut event = Event::default();
            events.fill(row, &mut event);
            event
        })
        .collect()
}

/// The view behind a reader, if it can be matched bit-parallel.
fn bit_view(reader: &Reader) -> Option<&View> {
    match reader {
        Reader::View(view) => Some(view),
        Reader::Classic(_) => None,
    }
}

fn note_mismatches(index: &Index, view: &View, events: &[Event<'_>]) {
    index.observed().note_mismatches(events.iter().map(|event| view.mismatches(event)).sum());
}

/// What one thread works with.
#[derive(Default)]
struct Workspace {
    scratch: Scratch,
    block: BlockScratch,
    /// Rows that match some events of the block, and which.
    rows: Vec<(u32, Mask)>,
}

impl Workspace {
    /// Matches events one by one until it is clear that a block is cheaper, and returns how many
    /// were matched: all of them if it never is.
    fn probe(
        &mut self,
        index: &Index,
        reader: &Reader,
        batch: &[Event<'_>],
        mut one: impl FnMut(&mut Self, usize, &Event<'_>) -> (usize, Work),
    ) -> usize {
        let blockable = bit_view(reader).is_some() && !batch.iter().any(|event| event.has_intervals);
        let mut total = Work::default();
        for (at, event) in batch.iter().enumerate() {
            if at == PROBES && blockable && block_is_cheaper(reader, &total, at, batch.len() - at) {
                return at;
            }
            let start = Instant::now();
            let (matches, work) = one(self, at, event);
            index.observe(event, matches, work, start.elapsed().as_nanos() as u64);
            total += work;
        }
        batch.len()
    }

    fn match_block(
        &mut self,
        view: &View,
        reader: &Reader,
        batch: &[Event<'_>],
        first: u32,
        filter: &Filter,
        found: &mut BatchMatches,
    ) {
        let mut by_event: Vec<Vec<Location>> = vec![vec![]; batch.len()];
        for (part, held) in view.parts.iter().enumerate() {
            let keeps = RowFilter::new(view, held, filter, &batch[0]);
            let layout = &held.segment.layout;
            let rows = &mut self.rows;
            rows.clear();
            bit_parallel::matching_units(layout, batch, &mut self.block, |unit, events| {
                rows.extend(
                    layout.rows_of(unit).iter().filter(|row| keeps.keeps(**row)).map(|row| (*row, *events)),
                );
            });
            rows.sort_unstable_by_key(|(row, _)| *row);
            for (row, events) in rows.iter() {
                let location = Location::Row { part: part as u32, row: *row };
                events.for_each(|event| by_event[event].push(location));
            }
        }
        for (event, locations) in by_event.iter_mut().enumerate() {
            locations.extend(view.buffered_matches(&batch[event], filter));
            if view.parts.len() > 1 || !view.buffer.is_empty() {
                reader.sort_by_id(locations);
            }
            found.events.extend(std::iter::repeat_n(first + event as u32, locations.len()));
            found.locations.extend_from_slice(locations);
        }
    }

    fn count_block(&mut self, view: &View, batch: &[Event<'_>], filter: &Filter, counts: &mut Vec<u32>) {
        let mut counters = Counters::default();
        for held in view.parts.iter() {
            let keeps = RowFilter::new(view, held, filter, &batch[0]);
            let layout = &held.segment.layout;
            let plain = keeps.keeps_all();
            bit_parallel::matching_units(layout, batch, &mut self.block, |unit, events| {
                let rows = layout.rows_of(unit);
                let kept =
                    if plain { rows.len() } else { rows.iter().filter(|row| keeps.keeps(**row)).count() };
                counters.add(events, kept);
            });
        }
        let totals = counters.totals();
        for (event, values) in batch.iter().enumerate() {
            counts.push(totals[event] + view.buffered_matches(values, filter).count() as u32);
        }
    }
}

/// Whether evaluating the rest as a block is cheaper than one by one, by what `done` events cost.
///
/// A block reads every access entry and runs every unit that some event needs, whatever the number
/// of events; one by one, entries cost little and evaluations much. The weights were measured.
fn block_is_cheaper(reader: &Reader, work: &Work, done: usize, rest: usize) -> bool {
    let Some(view) = bit_view(reader) else { return false };
    let entries: usize = view.parts.iter().map(|part| part.segment.layout.entries.len()).sum();
    let keys: usize = view.parts.iter().map(|part| part.segment.layout.keys() as usize).sum();
    let one_by_one =
        (work.candidates as f64 * 3.0 + work.evaluations as f64 * 100.0) / done as f64 * rest as f64;
    let block = entries as f64 * 110.0 + keys as f64 * 6.0;
    block < one_by_one
}
