//! Learns from what was asked about many events.

use std::ops::Range;
use std::time::Instant;

use crate::engine::contract::{Blocks, Observation, Work};
use crate::engine::index::Index;
use crate::engine::segment::bit_parallel::WIDTH;
use crate::event::{Event, EventSource};

/// Learns from the events of a block that begins with event `first`. Events that `blocks` has read are not read again.
pub fn observe(
    index: &Index,
    events: &dyn EventSource,
    first: usize,
    observed: Observation,
    blocks: Option<&dyn Blocks>,
) {
    let Observation { events: count, matches, work, nanoseconds } = observed;
    if index.is_surprised(&work) {
        index.note_surprises(events, first..events.len().min(first + count.max(WIDTH)), &work);
    }
    index.observe_many(count, matches, work, nanoseconds, &|at, keep| {
        if let Some(event) = blocks.and_then(|blocks| blocks.event(at)) {
            return keep(event);
        }
        let mut event = Event::default();
        events.fill(first + at, &mut event);
        keep(&event);
    });
}

/// Asks for each event of a range, and learns from it; `one` gets the event and its place in the range, and says
/// whether to go on. Returns how many events came before the one at which it ended.
pub fn one_by_one(
    index: &Index,
    events: &dyn EventSource,
    range: Range<usize>,
    mut one: impl FnMut(usize, &Event<'_>) -> (bool, usize, Work),
) -> usize {
    let len = range.len();
    let mut event = Event::default();
    for (at, row) in range.enumerate() {
        events.fill(row, &mut event);
        let start = Instant::now();
        let (goes_on, matches, work) = one(at, &event);
        let nanoseconds = start.elapsed().as_nanos() as u64;
        observe(index, events, row, Observation { events: 1, matches, work, nanoseconds }, None);
        if !goes_on {
            return at;
        }
    }
    len
}
