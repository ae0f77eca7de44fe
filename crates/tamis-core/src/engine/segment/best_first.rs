//! Visits the units that may lead to the best scores, and as few others as possible.
//!
//! Entries are in blocks, each with a bound of the scores that it can lead to. With weights, each entry also has its own
//! bound for the current event. There are four ways through the entries of an event:
//!
//! 1. While everything is wanted, order does not matter: entries are taken as stored, a few at a time.
//! 2. With bounds of entries, the best entries whose test holds are decided first, then four times as many of those that
//!    can still win, and so on. Most are never decided.
//! 3. Without them, the block with the highest bound is next, until none can win. This way is also used if bounds are
//!    scores and runs are long, because it reads only the beginnings of runs.
//! 4. If there are hardly more candidates than wanted matches, ordering is wasted effort. The rest is then matched as if
//!    everything were wanted, and all matches are passed on together, to be judged one by one.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::iter::once;
use std::ops::{ControlFlow, Range};

use super::layout::{ACCEPTS, BLOCK, Layout};
use super::matcher::{OneEvent, Scratch};
use super::program::Leaf;
use super::scoring::entry_bounds::EntryBound;
use super::unit_evaluation::Evaluation;
use super::walk::UnitCollector;
use crate::engine::contract::Work;
use crate::predicate::block_lookup::Fires;
use crate::prefetch::prefetch;

/// How many entries are looked at, and how many units are queued, before units are decided: enough for
/// fetching ahead, little compared with what knowing the first scores can save. Entries that hardly ever
/// queue a unit are cheap, and stopping between them is not.
const GATHER: u32 = if cfg!(test) { 7 } else { 16_384 };
const GATHER_UNITS: usize = 128;

/// The first entries are queued this many at a time, the next twice as many, and so on: most runs have two or three, and each
/// call costs as much as ten. Where many of them queue a unit, few are enough.
const FIRST_AT_ONCE: u32 = if cfg!(test) { 2 } else { 8 };

/// Whether order is worth its while is asked after one of this many entries, but not after fewer than that.
const TRIAL: usize = 128;
const LEAST_TRIAL: usize = if cfg!(test) { 2 } else { 256 };

/// The part of the runs whose entry bounds are read first, one in this many.
const FEW: usize = 8;

/// How far ahead of reading entry bounds memory is fetched.
const FETCH_AHEAD: usize = 8;

/// A collector that ranks, and knows what can be had before a unit is decided.
pub trait RankingCollector: UnitCollector {
    /// The least bound of a lead that allows for a score.
    fn least_bound(&self, score: f64) -> f32;

    /// The highest score that a lead promises, by what is true.
    fn promised(&self, entry_bound: EntryBound, bits: &[u64]) -> f64;

    /// Fetches what a lead points to.
    fn fetch_promised(&self, entry_bound: EntryBound);

    /// Whether a unit on which nothing else hangs could be wanted for the least score that is.
    fn could_tie(&self, unit: u32) -> bool;

    /// Takes many units at once, so that what they need can be fetched ahead.
    fn units(&mut self, units: &[u32], bits: &[u64]);
}

/// What is asked for.
pub struct Wanted<'a> {
    /// How many.
    pub k: usize,
    /// Scores below this are not wanted.
    pub least: f64,
    pub limits: Limits<'a>,
}

impl Layout {
    /// As [`matching_units`](Self::matching_units), but none that can only lead to scores below what the
    /// collector last wanted.
    pub fn best_units(
        &self,
        event: &impl Fires,
        scratch: &mut Scratch,
        wanted: &Wanted<'_>,
        collector: &mut impl RankingCollector,
    ) -> Work {
        if self.units() == 0 {
            return Work::default();
        }
        let (event, runs, queue) = self.start(event, scratch);
        self.search_best(event, runs, queue, wanted, collector)
    }

    /// The same for some runs of entries of an event.
    pub(super) fn search_best<'a>(
        &'a self,
        event: OneEvent<'a>,
        runs: &mut [(u32, u32)],
        queue: &'a mut Vec<u32>,
        wanted: &'a Wanted<'_>,
        collector: &'a mut impl RankingCollector,
    ) -> Work {
        let total: usize = runs.iter().map(|(from, to)| (to - from) as usize).sum();
        let limits = &wanted.limits;
        let order = Order { limits, blocks: BinaryHeap::new(), least: wanted.least, found: 0, collector };
        let mut search = Search { event, queue, work: Work::default(), order };
        if total <= wanted.k {
            search.match_all(runs);
            return search.work;
        }
        let by_entry_bounds = limits.has_entry_bounds() && (limits.are_loose || total < BLOCK * runs.len());
        let trial = (total / TRIAL).max(LEAST_TRIAL);
        // Where bounds are scores, all that has to be seen is whether there is more than is wanted.
        let mut units = if limits.are_loose { GATHER_UNITS } else { wanted.k.clamp(1, GATHER_UNITS) };
        let mut left = runs;
        while !left.is_empty() {
            let is_tried = search.work.candidates as usize >= trial;
            if is_tried && !search.is_order_worth_it(left, wanted.k, total) {
                search.match_all(left);
                return search.work;
            }
            let is_enough_known = search.order.least > f64::NEG_INFINITY;
            if is_tried && by_entry_bounds || is_enough_known && (is_tried || !limits.are_loose) {
                break;
            }
            left = search.gather(left, units);
            search.decide_queued();
            units = (2 * units).min(GATHER_UNITS);
        }
        if left.is_empty() && search.order.blocks.is_empty() {
            return search.work;
        }
        if by_entry_bounds {
            search.take_entry_bounds(left, wanted.k);
        } else {
            search.order.add_blocks(left);
            search.take_blocks();
        }
        search.work
    }
}

/// A search for the best, as far as it has come.
struct Search<'a, C> {
    event: OneEvent<'a>,
    queue: &'a mut Vec<u32>,
    work: Work,
    order: Order<'a, C>,
}

/// What is found, and what waits for its turn.
struct Order<'a, C> {
    limits: &'a Limits<'a>,
    /// Blocks of entries that wait for their turn.
    blocks: BinaryHeap<PendingBlock>,
    /// Scores below this are not wanted.
    least: f64,
    /// How many units hold.
    found: usize,
    collector: &'a mut C,
}

impl<C: RankingCollector> UnitCollector for Order<'_, C> {
    fn unit(&mut self, unit: u32, bits: &[u64]) -> ControlFlow<()> {
        self.found += 1;
        let flow = self.collector.unit(unit, bits);
        self.least = self.collector.least_wanted();
        flow
    }

    fn least_wanted(&self) -> f64 {
        self.least
    }

    /// Puts what waits for a unit in line.
    fn defer(&mut self, waiting: Range<usize>) {
        let waiting = waiting.start as u32..waiting.end as u32;
        self.limits.add_blocks(waiting, self.least, |block| self.blocks.push(block));
    }
}

impl<C> Order<'_, C> {
    /// Puts the blocks of runs of entries in line.
    fn add_blocks(&mut self, runs: &[(u32, u32)]) {
        let mut blocks = std::mem::take(&mut self.blocks).into_vec();
        for (from, to) in runs {
            self.limits.add_blocks(*from..*to, self.least, |block| blocks.push(block));
        }
        self.blocks = blocks.into();
    }
}

impl<C: RankingCollector> Search<'_, C> {
    /// Queues this many units of the next entries, or a few more, and returns the runs that are left.
    fn gather<'r>(&mut self, mut runs: &'r mut [(u32, u32)], units: usize) -> &'r mut [(u32, u32)] {
        let (mut gathered, mut at_once) = (0, FIRST_AT_ONCE);
        while gathered < GATHER && self.queue.len() < units && !runs.is_empty() {
            let wanted = at_once.min(GATHER - gathered);
            let (mut entries, mut taken) = (0, 0);
            while entries < wanted
                && let Some((from, to)) = runs.get(taken)
            {
                entries += to - from;
                taken += 1;
            }
            let last = &mut runs[taken - 1];
            let (end, excess) = (last.1, entries.saturating_sub(wanted));
            last.1 -= excess;
            let ranges = runs[..taken].iter().map(|(from, to)| *from as usize..*to as usize);
            self.event.queue_entries(ranges, self.queue);
            gathered += entries - excess;
            if excess > 0 {
                taken -= 1;
                runs[taken] = (end - excess, end);
            }
            runs = &mut runs[taken..];
            at_once *= 2;
        }
        self.work.candidates += gathered as u64;
        runs
    }

    /// Whether taking what is left in the order of its bounds can save much, by what was seen so far: there
    /// must be more matches than are wanted, and loose bounds without those of entries must rule out half of the entries.
    fn is_order_worth_it(&self, left: &[(u32, u32)], k: usize, total: usize) -> bool {
        let Order { limits, least, found, .. } = self.order;
        if least == f64::NEG_INFINITY {
            let looked_at = self.work.candidates as usize;
            return found * total >= k.saturating_mul(2).saturating_mul(looked_at);
        }
        if !limits.are_loose || limits.has_entry_bounds() {
            return true;
        }
        let (mut entries, mut wanted) = (0, 0);
        for (from, to) in left {
            entries += (to - from) as usize;
            limits.add_blocks(*from..*to, least, |block| wanted += block.entries().len());
        }
        2 * wanted <= entries
    }

    /// Decides what the best entries of all that is left promise, then what the next ones do, four times as
    /// many each time, until none promises enough.
    fn take_entry_bounds(&mut self, runs: &[(u32, u32)], k: usize) {
        let (mut promises, mut turn) = (vec![], 2 * k.max(2));
        // The best of a few raise what the others must promise to be read at all.
        let (few, others) = runs.split_at(runs.len() / FEW);
        let mut parts = [few, others].into_iter();
        loop {
            self.queue.clear();
            let part = parts.next();
            self.gather_wanted(part.unwrap_or_default());
            // What waits for units that hold, and is in line from the trial or from the turn before.
            let waiting: Vec<_> = self.order.blocks.drain().map(|block| (block.from, block.to)).collect();
            self.gather_wanted(&waiting);
            promises.retain(|promise: &Promise| promise.score >= self.order.least);
            self.read_entry_bounds(&mut promises);
            if promises.is_empty() && part.is_none() {
                return;
            }
            let first = promises.len().saturating_sub(turn);
            if first > 0 {
                promises.select_nth_unstable_by(first, |a, b| a.score.total_cmp(&b.score));
            }
            let best = &mut promises[first..];
            best.sort_unstable_by(|a, b| b.score.total_cmp(&a.score));
            self.decide_promised(best);
            promises.truncate(first);
            turn = turn.saturating_mul(4);
        }
    }

    /// Queues the numbers of the entries whose test holds and whose lead allows for a score that is wanted,
    /// without a branch.
    fn gather_wanted(&mut self, runs: &[(u32, u32)]) {
        let Self { event, queue, work, order } = self;
        let (layout, entry_bounds) = (event.layout(), order.limits.entry_bounds);
        let least_bound = order.collector.least_bound(order.least);
        let total: usize = runs.iter().map(|(from, to)| (to - from) as usize).sum();
        work.candidates += total as u64;
        let mut end = queue.len();
        queue.resize(end + total, 0);
        for (at, (from, to)) in runs.iter().enumerate() {
            if let Some((later, _)) = runs.get(at + FETCH_AHEAD) {
                prefetch(&layout.entries[*later as usize]);
                prefetch(&entry_bounds[*later as usize]);
            }
            let run = *from as usize..*to as usize;
            let (entries, entry_bounds) = (&layout.entries[run.clone()], &entry_bounds[run]);
            for ((number, [_, test]), entry_bound) in (*from..*to).zip(entries).zip(entry_bounds) {
                queue[end] = number;
                end += (Leaf(*test).holds(event.bits) & (entry_bound.bound >= least_bound)) as usize;
            }
        }
        queue.truncate(end);
    }

    /// Adds what queued entries promise, if it is enough. What their bounds point to is fetched ahead.
    fn read_entry_bounds(&self, promises: &mut Vec<Promise>) {
        let Self { event, queue, order, .. } = self;
        let entry_bound_of = |entry: u32| order.limits.entry_bounds[entry as usize];
        for (at, entry) in queue.iter().enumerate() {
            if let Some(soon) = queue.get(at + FETCH_AHEAD) {
                order.collector.fetch_promised(entry_bound_of(*soon));
            }
            let score = order.collector.promised(entry_bound_of(*entry), event.bits);
            if score >= order.least {
                promises.push(Promise { score, unit: event.layout().entries[*entry as usize][0] });
            }
        }
    }

    /// Decides units, the best promise first, as long as they promise enough.
    fn decide_promised(&mut self, best: &[Promise]) {
        let Self { event, queue, work, order } = self;
        let layout = event.layout();
        let shares = layout.shares_much();
        queue.clear();
        queue.extend(best.iter().map(|promise| promise.unit));
        for (at, promise) in best.iter().enumerate() {
            if promise.score < order.least {
                return;
            }
            event.fetch(queue, at, shares);
            let unit = promise.unit & !ACCEPTS;
            let is_alone = unit >= layout.single_row;
            let cannot_win = is_alone && promise.score == order.least && !order.collector.could_tie(unit);
            if cannot_win || event.is_done(unit) || !event.claim(unit) {
                continue;
            }
            work.evaluations += 1;
            if event.decide(promise.unit) {
                let _ = order.unit(unit, event.bits);
                if !is_alone {
                    order.defer(layout.waiting_for(unit));
                }
            }
        }
    }

    /// Takes the best block first, until none is wanted.
    fn take_blocks(&mut self) {
        while let Some(block) = self.order.blocks.pop().filter(|block| block.bound >= self.order.least) {
            let entries = block.entries();
            self.work.candidates += entries.len() as u64;
            self.event.queue_entries(once(entries), self.queue);
            self.decide_queued();
        }
    }

    /// Decides the queued units.
    fn decide_queued(&mut self) {
        let _ = self.event.drain(self.queue, &mut self.work, &mut self.order);
    }

    /// Finds all units that the runs and what waits lead to, those aside that were decided before, and hands
    /// them over.
    fn match_all(&mut self, runs: &[(u32, u32)]) {
        let Self { event, queue, work, order } = self;
        let runs = runs.iter().map(|(from, to)| *from as usize..*to as usize);
        let waiting = std::mem::take(&mut order.blocks).into_vec();
        let waiting = waiting.iter().map(PendingBlock::entries);
        let candidates = runs.clone().chain(waiting.clone()).map(|run| run.len()).sum();
        work.candidates += candidates as u64;
        event.open_single_row_set(candidates);
        event.queue_entries(runs, queue);
        event.queue_entries(waiting, queue);
        let mut units = vec![];
        let mut all = |unit| {
            units.push(unit);
            ControlFlow::Continue(())
        };
        let _ = event.drain(queue, work, &mut all);
        event.forget_decided_single_row_units();
        let mut claimed = |unit| if event.claim(unit) { all(unit) } else { ControlFlow::Continue(()) };
        let _ = event.single_row.deliver(&mut claimed, event.bits);
        order.collector.units(&units, event.bits);
    }
}

/// What the entries of each block can lead to at most.
pub struct Limits<'a> {
    /// Per block of entries; without any, everything may lead to `otherwise`.
    bounds: &'a [f64],
    otherwise: f64,
    /// From a stored bound to one of the score in question.
    score: &'a (dyn Fn(f64) -> f64 + Sync),
    /// Scores are often far below their bounds, so that it has to be seen whether order is worth its while.
    are_loose: bool,
    /// Per entry, what the collector reads promises from; empty if there are none.
    entry_bounds: &'a [EntryBound],
}

impl<'a> Limits<'a> {
    /// A score that rises with the stored bound.
    pub fn new(bounds: &'a [f64], otherwise: f64, score: &'a (dyn Fn(f64) -> f64 + Sync)) -> Self {
        Self { bounds, otherwise, score, are_loose: false, entry_bounds: &[] }
    }

    /// The same for scores that are often far below their bounds.
    pub fn loose(self, are_loose: bool) -> Self {
        Self { are_loose, ..self }
    }

    /// The same with a lead for each entry.
    pub fn with_entry_bounds(self, entry_bounds: &'a [EntryBound]) -> Self {
        Self { entry_bounds, ..self }
    }

    fn has_entry_bounds(&self) -> bool {
        !self.entry_bounds.is_empty()
    }

    /// The blocks of a run of entries that may lead to scores that are wanted.
    fn add_blocks(&self, run: Range<u32>, wanted: f64, mut add: impl FnMut(PendingBlock)) {
        let (mut at, end) = (run.start as usize, run.end as usize);
        if self.bounds.is_empty() {
            if self.otherwise >= wanted && at < end {
                add(PendingBlock { bound: self.otherwise, from: run.start, to: run.end });
            }
            return;
        }
        while at < end {
            let block_end = ((at / BLOCK + 1) * BLOCK).min(end);
            let bound = (self.score)(self.bounds[at / BLOCK]);
            if bound >= wanted {
                add(PendingBlock { bound, from: at as u32, to: block_end as u32 });
            }
            at = block_end;
        }
    }
}

/// What the lead of an entry promises.
#[derive(Clone, Copy)]
struct Promise {
    score: f64,
    /// As in the entry.
    unit: u32,
}

/// A block of entries that waits for its turn: the highest bound first.
struct PendingBlock {
    bound: f64,
    from: u32,
    to: u32,
}

impl PendingBlock {
    fn entries(&self) -> Range<usize> {
        self.from as usize..self.to as usize
    }
}

impl Ord for PendingBlock {
    fn cmp(&self, other: &Self) -> Ordering {
        self.bound.total_cmp(&other.bound).then(other.from.cmp(&self.from))
    }
}

impl PartialOrd for PendingBlock {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for PendingBlock {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for PendingBlock {}
