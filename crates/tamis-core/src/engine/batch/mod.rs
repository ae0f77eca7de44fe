//! Many events at once: on several threads, attribute by attribute, and where many match, a bit per event.
//!
//! Events come in blocks. The values of a block are looked up in the predicates of each segment first (see
//! `predicate::placed`). Then its events are matched in one of two ways, chosen by what the first of them
//! cost: one by one (few candidates survive, so little is shared between events) or bit-parallel (see
//! `bit_parallel`).

mod threads;
pub mod weights;

use std::ops::Range;
use std::time::Instant;

use crate::engine::production::block::{Block, Workspace};
use crate::engine::production::view::{Filter, Location};
use crate::engine::segment::bit_parallel::WIDTH;
use crate::engine::segment::matcher::{Scratch, Work};
use crate::engine::{Index, Reader};
use crate::error::Result;
use crate::event::Event;
use crate::event::arrow::ArrowEvents;
use crate::query::Ranking;
use threads::in_blocks;

/// Events by number, wherever they are stored.
pub trait EventSource: Sync {
    fn len(&self) -> usize;

    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Puts event `row` in the place of what `event` held.
    fn fill<'a>(&'a self, row: usize, event: &mut Event<'a>);

    /// The events as columns, if that is how they are stored.
    fn columns(&self) -> Option<&ArrowEvents<'_>> {
        None
    }
}

impl EventSource for ArrowEvents<'_> {
    fn len(&self) -> usize {
        ArrowEvents::len(self)
    }

    fn fill<'a>(&'a self, row: usize, event: &mut Event<'a>) {
        ArrowEvents::fill(self, row, event);
    }

    fn columns(&self) -> Option<&ArrowEvents<'_>> {
        Some(self)
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
        let mut found = BatchMatches::default();
        let first = range.start as u32;
        let mut add = |event: usize, locations: &[Location]| {
            found.events.extend(std::iter::repeat_n(first + event as u32, locations.len()));
            found.locations.extend_from_slice(locations);
        };
        if let Some(block) = Block::new(reader, events, range.clone()) {
            space.matches(index, &block, filter, &mut add);
        } else {
            one_by_one(index, events, range, |at, event| {
                let (locations, work) = reader.matches(event, filter, &mut space.scratch);
                add(at, &locations);
                (locations.len(), work)
            });
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
        if let Some(block) = Block::new(reader, events, range.clone()) {
            return space.counts(index, &block, filter);
        }
        let mut counts = Vec::with_capacity(range.len());
        one_by_one(index, events, range, |_, event| {
            let (count, work) = reader.count(event, filter, &mut space.scratch);
            counts.push(count as u32);
            (count, work)
        });
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

/// Asks for each event of a range, and learns from it; `one` gets the event and its place in the range.
fn one_by_one(
    index: &Index,
    events: &(impl EventSource + ?Sized),
    range: Range<usize>,
    mut one: impl FnMut(usize, &Event<'_>) -> (usize, Work),
) {
    let mut event = Event::default();
    for (at, row) in range.enumerate() {
        events.fill(row, &mut event);
        let start = Instant::now();
        let (matches, work) = one(at, &event);
        index.observe(&event, matches, work, start.elapsed().as_nanos() as u64);
    }
}
