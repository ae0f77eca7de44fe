//! Matches blocks of any length on the processor: in blocks of its own width, and event by event where that
//! is impossible.

use std::cell::Cell;
use std::ops::Range;
use std::time::Instant;

use super::block::BlocksOfView;
use super::view::View;
use crate::engine::contract::{Blocks, Location, Observation, Scored, Version, Work, Workspace};
use crate::engine::segment::bit_parallel::WIDTH;
use crate::error::Result;
use crate::event::{Event, EventSource};
use crate::query::{Filter, Ranking};

/// The blocks of some events, for one thread. Unlike [`BlocksOfView`], it answers every range: events that a block cannot have
/// (those with intervals) are matched one by one, and no event is added twice.
pub struct HostBlocks<'e> {
    view: &'e View,
    events: &'e dyn EventSource,
    filter: &'e Filter<'e>,
    blocks: BlocksOfView<'e>,
    event: Event<'e>,
    alone: Workspace,
}

impl<'e> HostBlocks<'e> {
    pub fn new(view: &'e View, events: &'e dyn EventSource, filter: &'e Filter<'e>) -> Self {
        let blocks = BlocksOfView::new(view, events, filter);
        Self { view, events, filter, blocks, event: Event::default(), alone: Workspace::default() }
    }

    /// See [`Blocks::matches`].
    pub fn matches(
        &mut self,
        range: Range<usize>,
        most: usize,
        add: &mut dyn FnMut(usize, &[Location]),
    ) -> (usize, Observation) {
        let (start, held, mut total) = (range.start, Cell::new(0), Observation::default());
        for block in blocks(range.clone()) {
            let first = block.start - start;
            let left = most.saturating_sub(held.get());
            if left == 0 && first > 0 {
                return (first, total); // only the first event of all is answered whatever it has
            }
            let is_full = Cell::new(false);
            let mut add = |at: usize, locations: &[Location]| {
                // A block answers its first event whatever that has.
                if first > 0 && locations.len() > most.saturating_sub(held.get()) {
                    is_full.set(true);
                    return;
                }
                held.set(held.get() + locations.len());
                add(first + at, locations);
            };
            if let Some((answered, observed)) = self.blocks.matches(block.clone(), left, &mut add) {
                if is_full.get() {
                    return (first, total);
                }
                merge(&mut total, observed);
                if answered < block.len() {
                    return (first + answered, total);
                }
                continue;
            }
            for row in block {
                let answered = row - start;
                let (found, observed) = self.one(row, |view, event, filter, space| {
                    let (found, work) = view.matches(event, filter, space);
                    let matches = found.len();
                    (found, matches, work)
                });
                if answered > 0 && found.len() > most.saturating_sub(held.get()) {
                    return (answered, total);
                }
                merge(&mut total, observed);
                if !found.is_empty() {
                    add(answered - first, &found);
                }
            }
        }
        (range.len(), total)
    }

    /// See [`Blocks::best`].
    pub fn best(
        &mut self,
        range: Range<usize>,
        ranking: &Ranking,
        add: &mut dyn FnMut(usize, &[Scored]) -> bool,
    ) -> Result<Observation> {
        let (start, mut total, mut goes_on) = (range.start, Observation::default(), true);
        for block in blocks(range) {
            let first = block.start - start;
            let mut add = |at: usize, scored: &[Scored]| {
                goes_on = add(first + at, scored);
                goes_on
            };
            if let Some(observed) = self.blocks.best(block.clone(), ranking, &mut add) {
                merge(&mut total, observed?);
            } else {
                for (at, row) in block.enumerate() {
                    let (best, observed) = self.one(row, |view, event, filter, space| {
                        match view.top_k(event, ranking, filter, space) {
                            Ok((best, work)) => {
                                let matches = best.len();
                                (Ok(best), matches, work)
                            }
                            Err(error) => (Err(error), 0, Work::default()),
                        }
                    });
                    merge(&mut total, observed);
                    if !add(at, &best?) {
                        break;
                    }
                }
            }
            if !goes_on {
                break;
            }
        }
        Ok(total)
    }

    /// See [`Blocks::counts`].
    pub fn counts(&mut self, range: Range<usize>, counts: &mut Vec<u32>) -> Observation {
        let mut total = Observation::default();
        for block in blocks(range) {
            if let Some(observed) = self.blocks.counts(block.clone(), counts) {
                merge(&mut total, observed);
                continue;
            }
            for row in block {
                let (count, observed) = self.one(row, |view, event, filter, space| {
                    let (count, work) = view.count(event, filter, space);
                    (count, count, work)
                });
                merge(&mut total, observed);
                counts.push(count as u32);
            }
        }
        total
    }

    /// What comes of `ask` for one event, with the number of matches and the work that it says.
    fn one<T>(
        &mut self,
        row: usize,
        ask: impl FnOnce(&View, &Event<'_>, &Filter<'_>, &mut Workspace) -> (T, usize, Work),
    ) -> (T, Observation) {
        self.events.fill(row, &mut self.event);
        let started = Instant::now();
        let (found, matches, work) = ask(self.view, &self.event, self.filter, &mut self.alone);
        let nanoseconds = started.elapsed().as_nanos() as u64;
        (found, Observation { events: 1, matches, work, nanoseconds })
    }
}

/// Ranges of the width of a block on this processor.
fn blocks(range: Range<usize>) -> impl Iterator<Item = Range<usize>> {
    range.clone().step_by(WIDTH).map(move |start| start..range.end.min(start + WIDTH))
}

/// Adds what more events cost.
fn merge(total: &mut Observation, more: Observation) {
    total.events += more.events;
    total.matches += more.matches;
    total.work += more.work;
    total.nanoseconds += more.nanoseconds;
}
