//! Blocks of events on a device. What it cannot do, and what fails there, this processor does.

use std::ops::Range;
use std::sync::Arc;

use super::block::{Block, BlocksOfView};
use super::view::{Part, RowFilter, View};
use crate::engine::contract::{Blocks, Location, Observation, Scored, Version};
use crate::engine::device::{
    self, DEVICE_WIDTH, DeviceMemory, DeviceResult, KeptRows, ListedRows, LoadedPlan, RowOrder, Tokens,
};
use crate::engine::segment::Segment;
use crate::engine::segment::bit_parallel::WIDTH;
use crate::engine::segment::device_plan::device_plan;
use crate::error::Result;
use crate::event::{Event, EventSource};
use crate::predicate::bits::Bits;
use crate::predicate::block_lookup::{Fires, LookedUpBlock};
use crate::predicate::catalog::{Catalog, Fired, TRUE_BIT};
use crate::query::{Filter, Measure, Ranking, Score, TopK};

/// Fewer events than this are matched here: starting the device would take longer.
const LEAST: usize = 256;

/// The blocks of some events, for one thread.
pub struct BlocksOnDevice<'e> {
    view: &'e View,
    events: &'e dyn EventSource,
    filter: &'e Filter<'e>,
    memory: &'e DeviceMemory,
    here: BlocksOfView<'e>,
    looked_up: LookedUpBlock<'e>,
    bits: Bits,
    /// By part.
    tokens: Vec<Tokens>,
}

impl<'e> BlocksOnDevice<'e> {
    pub fn new(
        view: &'e View,
        events: &'e dyn EventSource,
        filter: &'e Filter<'e>,
        memory: &'e DeviceMemory,
    ) -> Self {
        Self {
            view,
            events,
            filter,
            memory,
            here: BlocksOfView::new(view, events, filter),
            looked_up: LookedUpBlock::default(),
            bits: Bits::default(),
            tokens: vec![],
        }
    }

    /// The events of a range, if the device is to match them.
    fn block(&self, range: Range<usize>) -> Option<Block<'e>> {
        let is_for_device = (LEAST..=DEVICE_WIDTH).contains(&range.len()) && self.memory.is_usable();
        is_for_device.then(|| Block::new(self.view, self.events, range)).flatten()
    }

    /// What comes of `ask` for each part; `None` if the device failed, which is noted.
    fn each_part<T>(
        &mut self,
        block: &Block<'e>,
        mut ask: impl FnMut(&dyn LoadedPlan, &Tokens, Option<&Arc<KeptRows>>) -> DeviceResult<T>,
    ) -> Option<Vec<T>> {
        let answers = self.try_each_part(block, &mut ask);
        self.memory.note_block();
        answers.map_err(|error| self.memory.fail(error)).ok()
    }

    fn try_each_part<T>(
        &mut self,
        block: &Block<'e>,
        ask: &mut impl FnMut(&dyn LoadedPlan, &Tokens, Option<&Arc<KeptRows>>) -> DeviceResult<T>,
    ) -> DeviceResult<Vec<T>> {
        let view = self.view;
        let mut answers = vec![];
        self.tokens.resize_with(view.parts.len(), Tokens::default);
        for (number, part) in view.parts.iter().enumerate() {
            let plan = loaded(self.memory, view, part)?;
            let kept = kept_rows(self.memory, view, part, self.filter);
            let catalog = &part.segment.layout.catalog;
            block.place(catalog, &mut self.looked_up);
            let tokens = &mut self.tokens[number];
            tokenize(catalog, &self.looked_up, block.len(), &mut self.bits, tokens);
            answers.push(ask(&*plan, tokens, kept.as_ref())?);
        }
        Ok(answers)
    }

    /// What is noted of a block: values that nobody expects. Statistics are about events that were matched one by one.
    fn observed(block: &Block<'_>, events: usize) -> Observation {
        Observation { events: 0, matches: 0, work: block.mismatches(events), nanoseconds: 0 }
    }

    fn counts_of(&mut self, block: &Block<'e>) -> Option<Vec<u32>> {
        let by_part = self.each_part(block, |plan, tokens, kept| plan.counts(tokens, kept))?;
        let mut counts = vec![0; block.len()];
        for part in by_part {
            counts.iter_mut().zip(part).for_each(|(all, more)| *all += more);
        }
        block.buffered(self.filter, |at, _| counts[at] += 1);
        Some(counts)
    }

    /// How many events have no more than `most` matches together; one at least.
    fn events_with_room(&mut self, block: &Block<'e>, most: usize) -> Option<usize> {
        if most == usize::MAX {
            return Some(block.len());
        }
        let mut held = 0;
        let counts = self.counts_of(block)?;
        let fit = counts.iter().take_while(|count| {
            held += **count as usize;
            held <= most
        });
        Some(fit.count().max(1))
    }
}

impl Blocks for BlocksOnDevice<'_> {
    fn matches(
        &mut self,
        range: Range<usize>,
        most: usize,
        add: &mut dyn FnMut(usize, &[Location]),
    ) -> Option<(usize, Observation)> {
        let listed = self.block(range.clone()).and_then(|block| {
            let events = self.events_with_room(&block, most)?;
            let rows = self.each_part(&block, |plan, tokens, kept| {
                plan.rows(tokens, kept, RowOrder::Id, events, u32::MAX)
            });
            rows.map(|rows| (block, events, rows))
        });
        let Some((block, events, parts)) = listed else { return self.matches_here(range, most, add) };
        let mut buffered: Vec<Vec<Location>> = vec![vec![]; events];
        block.buffered(self.filter, |at, location| {
            if at < events {
                buffered[at].push(location);
            }
        });
        let is_sorted = parts.len() <= 1 && self.view.buffer.is_empty();
        let mut locations = vec![];
        for (at, buffered) in buffered.iter().enumerate() {
            locations.clear();
            for (part, listed) in (0..).zip(&parts) {
                locations.extend(listed.of(at).iter().map(|row| Location::Row { part, row: *row }));
            }
            locations.extend_from_slice(buffered);
            if !is_sorted {
                locations.sort_unstable_by(|a, b| self.view.id(*a).cmp(&self.view.id(*b)));
            }
            if !locations.is_empty() {
                add(at, &locations);
            }
        }
        Some((events, Self::observed(&block, events)))
    }

    fn best(
        &mut self,
        range: Range<usize>,
        ranking: &Ranking,
        add: &mut dyn FnMut(usize, &[Scored]) -> bool,
    ) -> Option<Result<Observation>> {
        let most = u32::try_from(ranking.k).unwrap_or(u32::MAX);
        let listed = match ranking.score {
            Score::Priority => self.block(range.clone()).and_then(|block| {
                let events = block.len();
                let rows = self.each_part(&block, |plan, tokens, kept| {
                    plan.rows(tokens, kept, RowOrder::Priority, events, most)
                });
                rows.map(|rows| (block, rows))
            }),
            _ => None,
        };
        let Some((block, parts)) = listed else { return self.best_here(range, ranking, add) };
        for at in 0..block.len() {
            let scored = self.best_of(&block, at, ranking, &parts);
            if !add(at, &scored) {
                break;
            }
        }
        Some(Ok(Self::observed(&block, block.len())))
    }

    fn counts(&mut self, range: Range<usize>, counts: &mut Vec<u32>) -> Option<Observation> {
        let counted = self.block(range.clone()).and_then(|block| {
            let found = self.counts_of(&block)?;
            Some((block, found))
        });
        let Some((block, found)) = counted else { return self.counts_here(range, counts) };
        counts.extend(found);
        Some(Self::observed(&block, block.len()))
    }
}

/// The same on this processor, in blocks of its own size.
impl BlocksOnDevice<'_> {
    fn matches_here(
        &mut self,
        range: Range<usize>,
        most: usize,
        add: &mut dyn FnMut(usize, &[Location]),
    ) -> Option<(usize, Observation)> {
        let (mut done, mut held, mut total) = (0, 0, None);
        for block in blocks(range) {
            let (first, length) = (done, block.len());
            let left = most.saturating_sub(held);
            if left == 0 && first > 0 {
                break; // only the first event of all is answered whatever it has
            }
            let mut add = |at: usize, locations: &[Location]| {
                held += locations.len();
                add(first + at, locations);
            };
            let (answered, observed) = self.here.matches(block, left, &mut add)?;
            merge(&mut total, observed);
            done += answered;
            if answered < length {
                break;
            }
        }
        total.map(|observed| (done, observed))
    }

    fn best_here(
        &mut self,
        range: Range<usize>,
        ranking: &Ranking,
        add: &mut dyn FnMut(usize, &[Scored]) -> bool,
    ) -> Option<Result<Observation>> {
        let (mut total, mut first, mut goes_on) = (None, 0, true);
        for block in blocks(range) {
            let length = block.len();
            let mut add = |at: usize, scored: &[Scored]| {
                goes_on = add(first + at, scored);
                goes_on
            };
            match self.here.best(block, ranking, &mut add)? {
                Ok(observed) => merge(&mut total, observed),
                Err(error) => return Some(Err(error)),
            }
            first += length;
            if !goes_on {
                break;
            }
        }
        total.map(Ok)
    }

    fn counts_here(&mut self, range: Range<usize>, counts: &mut Vec<u32>) -> Option<Observation> {
        let before = counts.len();
        let mut total = None;
        for block in blocks(range) {
            match self.here.counts(block, counts) {
                Some(observed) => merge(&mut total, observed),
                None => {
                    counts.truncate(before);
                    return None;
                }
            }
        }
        total
    }
}

impl<'e> BlocksOnDevice<'e> {
    /// The best matches of an event by priority, the best first.
    fn best_of(&self, block: &Block<'e>, at: usize, ranking: &Ranking, parts: &[ListedRows]) -> Vec<Scored> {
        let view = self.view;
        let mut best = TopK::new(ranking.k, ranking.min_score);
        if !view.buffer.is_empty() {
            block.with_event(at, |event| {
                let measure = Measure::new(ranking, event, &view.terms);
                view.offer_buffered(event, &measure, self.filter, &mut best);
            });
        }
        for (part, listed) in (0..).zip(parts) {
            for &row in listed.of(at) {
                let location = Location::Row { part, row };
                best.offer(view.id(location), view.priority(location), location);
            }
        }
        let sorted = best.into_sorted().into_iter();
        sorted.map(|found| Scored { location: found.item, score: found.score }).collect()
    }
}

/// Ranges of the size of a block on this processor.
fn blocks(range: Range<usize>) -> impl Iterator<Item = Range<usize>> {
    range.clone().step_by(WIDTH).map(move |start| start..range.end.min(start + WIDTH))
}

/// Adds what more events cost.
fn merge(total: &mut Option<Observation>, more: Observation) {
    match total {
        None => *total = Some(more),
        Some(total) => {
            total.events += more.events;
            total.matches += more.matches;
            total.work += more.work;
            total.nanoseconds += more.nanoseconds;
        }
    }
}

/// The plan of a part, which is copied to the device when it is asked for first. Those of segments that the
/// version no longer has are dropped then.
fn loaded(memory: &DeviceMemory, view: &View, part: &Part) -> DeviceResult<Arc<dyn LoadedPlan>> {
    let mut plans = memory.plans.lock();
    let address = |segment: &Arc<Segment>| Arc::as_ptr(segment).addr();
    let is_of = |held: &device::Segment| Arc::as_ptr(held).cast::<()>().addr() == address(&part.segment);
    if let Some((_, plan)) = plans.iter().find(|(held, _)| is_of(held)) {
        return Ok(plan.clone());
    }
    let is_there = |held: usize| view.parts.iter().any(|part| address(&part.segment) == held);
    plans.retain(|(held, _)| is_there(Arc::as_ptr(held).cast::<()>().addr()));
    memory.kept.lock().retain(|(held, ..)| is_there(*held));
    let plan = memory.device().load(&device_plan(&part.segment)?)?;
    plans.push((part.segment.clone(), plan.clone()));
    Ok(plan)
}

/// The rows that a filter keeps, if not all; remembered from block to block.
fn kept_rows(memory: &DeviceMemory, view: &View, part: &Part, filter: &Filter<'_>) -> Option<Arc<KeptRows>> {
    let point = Event::default();
    let keeps = RowFilter::new(view, part, filter, &point);
    if keeps.keeps_all() {
        return None;
    }
    let now = if part.segment.subscription_table.is_timeless() { 0 } else { filter.now };
    let wanted = format!("{} {now} {:?}", view.generation, filter.tags);
    let address = Arc::as_ptr(&part.segment).addr();
    let mut kept = memory.kept.lock();
    if let Some((.., rows)) = kept.iter().find(|(at, what, _)| *at == address && *what == wanted) {
        return Some(rows.clone());
    }
    let mut words = vec![0u32; part.segment.len().div_ceil(32)];
    for row in (0..part.segment.len() as u32).filter(|row| keeps.keeps_row(*row)) {
        words[row as usize / 32] |= 1 << (row % 32);
    }
    let rows = Arc::new(KeptRows::new(words));
    kept.retain(|(at, ..)| *at != address);
    kept.push((address, wanted, rows.clone()));
    Some(rows)
}

/// Says of the events of a block what they satisfy.
fn tokenize(
    catalog: &Catalog,
    looked_up: &LookedUpBlock<'_>,
    events: usize,
    bits: &mut Bits,
    tokens: &mut Tokens,
) {
    tokens.clear(events);
    for at in 0..events {
        bits.reset(catalog.bits as usize);
        let mut told = Told { tokens, event: at as u32, bits: catalog.bits };
        looked_up.event(at).fire(catalog, bits, &mut told);
    }
}

struct Told<'a> {
    tokens: &'a mut Tokens,
    event: u32,
    /// Keys from this one on are of intervals, which the device computes from ranks.
    bits: u32,
}

impl Fired for Told<'_> {
    fn key(&mut self, key: u32) {
        if key != TRUE_BIT && key < self.bits {
            self.tokens.bits.push([self.event, key]);
        }
    }

    fn run(&mut self, _: u32, _: u32, _: u32) {
        unreachable!("a point has a rank in each table")
    }

    fn point(&mut self, point: u32) -> bool {
        self.tokens.points.push([self.event, point]);
        true
    }

    fn rank(&mut self, table: u32, rank: u32) -> bool {
        self.tokens.ranks.push([table * DEVICE_WIDTH as u32 + self.event, rank]);
        true
    }
}
