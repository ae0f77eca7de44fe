//! Many events at once: on several threads, attribute by attribute, and where many match, a bit per event.
//!
//! Events come in blocks. The values of a block are looked up in the predicates of each segment first (see
//! `predicate::placed`). Then its events are matched in one of two ways, chosen by what the first of them
//! cost: one by one (few candidates survive, so little is shared between events) or bit-parallel (see
//! `bit_parallel`).

pub mod bit_parallel;
mod block;
mod budget;
pub mod counters;
mod masks;
mod threads;
pub mod weights;

use std::ops::Range;
use std::time::Instant;

use crate::error::Result;
use crate::event::Event;
use crate::event::arrow::ArrowEvents;
use crate::index::production::view::{Filter, Location};
use crate::index::segment::matcher::{Scratch, Work};
use crate::index::{Index, Reader};
use crate::rank::Ranking;
use bit_parallel::WIDTH;
use block::{Block, Workspace};
use budget::Budget;
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
    /// How many events were answered, counted from the first: all of them, or fewer if a caller set a bound.
    pub answered: usize,
}

/// The best matches of many events, sorted by event, then by rank.
#[derive(Default, Debug)]
pub struct BatchTopK {
    pub events: Vec<u32>,
    pub locations: Vec<Location>,
    pub scores: Vec<f64>,
    pub ranks: Vec<u32>,
    /// As in [`BatchMatches`].
    pub answered: usize,
}

/// Every match of every event.
pub fn match_events(
    index: &Index,
    reader: &Reader,
    events: &(impl EventSource + ?Sized),
    filter: &Filter,
    threads: usize,
) -> BatchMatches {
    match_events_up_to(index, reader, events, filter, threads, usize::MAX)
}

/// Every match of the first events: of all that have no more than `most` matches together, and of one at
/// least. Memory is bounded by `most`, and by the matches of one event on each thread.
pub fn match_events_up_to(
    index: &Index,
    reader: &Reader,
    events: &(impl EventSource + ?Sized),
    filter: &Filter,
    threads: usize,
    most: usize,
) -> BatchMatches {
    let budget = Budget::new(most, threads.min(events.len().div_ceil(WIDTH)));
    let blocks = in_blocks(events.len(), WIDTH, threads, Workspace::default, |space, range| {
        let mut found = BatchMatches::default();
        let Some(most) = budget.share(range.start == 0) else { return found };
        let first = range.start as u32;
        let mut add = |event: usize, locations: &[Location]| {
            found.events.extend(std::iter::repeat_n(first + event as u32, locations.len()));
            found.locations.extend_from_slice(locations);
        };
        found.answered = if let Some(block) = Block::new(reader, events, range.clone()) {
            space.matches(index, &block, filter, most, &mut add)
        } else {
            let mut held = 0;
            one_by_one(index, events, range, |at, event| {
                let (locations, work) = reader.matches(event, filter, &mut space.scratch);
                held += locations.len();
                let fits = held <= most || at == 0;
                if fits {
                    add(at, &locations);
                }
                (fits, locations.len(), work)
            })
        };
        budget.spend(found.locations.len());
        found
    });
    let mut all = BatchMatches::default();
    for block in blocks {
        let ends_here = block.answered < WIDTH;
        all.answered += block.answered;
        if all.events.is_empty() {
            (all.events, all.locations) = (block.events, block.locations);
        } else {
            all.events.extend(block.events);
            all.locations.extend(block.locations);
        }
        if ends_here {
            break;
        }
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
            (true, count, work)
        });
        counts
    });
    blocks.concat()
}

/// The best matches of the first events by a score: of as many as [`match_events_up_to`] would answer.
pub fn top_k_events_up_to(
    index: &Index,
    reader: &Reader,
    events: &(impl EventSource + ?Sized),
    ranking: &Ranking,
    filter: &Filter,
    threads: usize,
    most: usize,
) -> Result<BatchTopK> {
    let budget = Budget::new(most, threads.min(events.len().div_ceil(WIDTH)));
    let blocks: Vec<Result<BatchTopK>> =
        in_blocks(events.len(), WIDTH, threads, Scratch::default, |scratch, range| {
            let mut found = BatchTopK::default();
            let Some(most) = budget.share(range.start == 0) else { return Ok(found) };
            let mut event = Event::default();
            for row in range {
                events.fill(row, &mut event);
                let start = Instant::now();
                let (best, work) = reader.top_k(&event, ranking, filter, scratch)?;
                index.observe(&event, best.len(), work, start.elapsed().as_nanos() as u64);
                if found.answered > 0 && found.events.len() + best.len() > most {
                    break;
                }
                found.answered += 1;
                for (at, scored) in best.iter().enumerate() {
                    found.events.push(row as u32);
                    found.locations.push(scored.location);
                    found.scores.push(scored.score);
                    found.ranks.push(at as u32 + 1);
                }
            }
            budget.spend(found.events.len());
            Ok(found)
        });
    let mut all = BatchTopK::default();
    for block in blocks {
        let block = block?;
        all.answered += block.answered;
        all.events.extend(block.events);
        all.locations.extend(block.locations);
        all.scores.extend(block.scores);
        all.ranks.extend(block.ranks);
        if block.answered < WIDTH {
            break;
        }
    }
    Ok(all)
}

/// Asks for each event of a range, and learns from it; `one` gets the event and its place in the range, and
/// says whether there was room for its answer. Stops where there was not, and returns how many were answered.
fn one_by_one(
    index: &Index,
    events: &(impl EventSource + ?Sized),
    range: Range<usize>,
    mut one: impl FnMut(usize, &Event<'_>) -> (bool, usize, Work),
) -> usize {
    let mut event = Event::default();
    let len = range.len();
    for (at, row) in range.enumerate() {
        events.fill(row, &mut event);
        let start = Instant::now();
        let (fits, matches, work) = one(at, &event);
        index.observe(&event, matches, work, start.elapsed().as_nanos() as u64);
        if !fits {
            return at;
        }
    }
    len
}
