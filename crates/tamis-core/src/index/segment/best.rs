//! The units that may lead to the best scores, and as few others as possible.
//!
//! Entries lie in blocks, each with a bound of the scores that it can lead to; where there are weights, each
//! entry has a lead besides, which says what it can lead to for the event at hand. There are four ways
//! through the entries of an event:
//!
//! 1. As long as everything is wanted, any order will do: they are taken as they lie, a few at a time.
//! 2. With leads, the best of the entries whose test holds are decided first, then, among those that can
//!    still win, four times as many, and so on. Most are never decided.
//! 3. Without, the block with the highest bound is next, until none can win. That is also the way where
//!    bounds are scores and runs are long, of which it reads the beginnings only.
//! 4. Where hardly more is there than is wanted, order is lost labour. What is left is then matched as if
//!    everything were wanted, and all that holds is handed over together, to be judged one by one.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::ops::{ControlFlow, Range};

use super::evaluation::OnePath;
use super::layout::{ACCEPTS, BLOCK, Layout};
use super::lone_set::LoneSet;
use super::matcher::{DONE, FiredKeys, Run, Scratch, Work};
use super::program::Leaf;
use super::scoring::leads::Lead;
use crate::event::Event;
use crate::prefetch::prefetch;

/// How many entries are looked at, and how many units are queued, before units are decided: enough for
/// fetching ahead, little compared with what knowing the first scores can save. Entries that hardly ever
/// queue a unit are cheap, and stopping between them is not.
const GATHER: u32 = 16_384;
const GATHER_UNITS: usize = 128;

/// Whether order is worth its while is asked after one of so many entries, but not after fewer than that.
const TRIAL: usize = 128;
const LEAST_TRIAL: usize = if cfg!(test) { 2 } else { 256 };

/// The part of the runs whose leads are read first, one in so many.
const FEW: usize = 8;

/// How far ahead of reading leads memory is fetched.
const FETCH_AHEAD: usize = 8;

/// Judges the units that hold. What it returns is the least score that is wanted from then on.
pub trait Judge {
    /// The least bound of a lead that allows for a score.
    fn least_bound(&self, score: f64) -> f32;

    /// The highest score that a lead promises, by what is true.
    fn promised(&self, lead: Lead, bits: &[u64]) -> f64;

    /// Fetches what a lead points to.
    fn fetch_promised(&self, lead: Lead);

    /// Whether a unit on which nothing else hangs could be wanted for the least score that is.
    fn could_tie(&self, unit: u32) -> bool;

    /// The bits of the event come with a unit.
    fn unit(&mut self, unit: u32, bits: &[u64]) -> f64;

    /// Many at once, so that what they need can be fetched ahead.
    fn units(&mut self, units: &[u32], bits: &[u64]) -> f64;
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
    /// judge last wanted.
    pub fn best_units(
        &self,
        event: &Event<'_>,
        scratch: &mut Scratch,
        wanted: &Wanted<'_>,
        judge: &mut impl Judge,
    ) -> Work {
        let work = Work::default();
        if self.units() == 0 {
            return work;
        }
        let Scratch { bits, runs, queue, memory, open, lone } = scratch;
        bits.reset(self.catalog.bits as usize);
        memory.reset(self.remembered as usize);
        runs.clear();
        open.clear();
        self.catalog.fire(event, bits, &mut FiredKeys { runs });
        self.entries_of_keys(runs);
        let run = Run { layout: self, bits: bits.words(), open, memory, path: OnePath };
        let (limits, least) = (&wanted.limits, wanted.least);
        let mut search = Search { run, limits, blocks: BinaryHeap::new(), least, found: 0, work, judge };
        let total: usize = runs.iter().map(|(from, to)| (to - from) as usize).sum();
        search.work.fired = total as u64;
        if total <= wanted.k {
            search.match_all(runs, queue, lone);
            return search.work;
        }
        let by_leads = limits.has_leads() && (limits.are_loose || total < BLOCK * runs.len());
        let trial = (total / TRIAL).max(LEAST_TRIAL);
        // Where bounds are scores, all that has to be seen is whether there is more than is wanted.
        let mut units = if limits.are_loose { GATHER_UNITS } else { wanted.k.clamp(1, GATHER_UNITS) };
        let mut left = &mut runs[..];
        while !left.is_empty() {
            let is_tried = search.work.candidates as usize >= trial;
            if is_tried && !search.is_order_worth_it(left, wanted.k, total) {
                search.match_all(left, queue, lone);
                return search.work;
            }
            let is_enough_known = search.least > f64::NEG_INFINITY;
            if is_tried && by_leads || is_enough_known && (is_tried || !limits.are_loose) {
                break;
            }
            left = search.gather(left, units, queue);
            search.decide_all(queue);
            units = (2 * units).min(GATHER_UNITS);
        }
        if left.is_empty() && search.blocks.is_empty() {
            return search.work;
        }
        if by_leads {
            search.take_leads(left, queue, wanted.k);
        } else {
            search.add_blocks(left);
            search.take_blocks(queue);
        }
        search.work
    }
}

/// A search for the best, as far as it has come.
struct Search<'a, J> {
    run: Run<'a>,
    limits: &'a Limits<'a>,
    /// Blocks of entries that wait for their turn.
    blocks: BinaryHeap<PendingBlock>,
    /// Scores below this are not wanted.
    least: f64,
    /// How many units hold.
    found: usize,
    work: Work,
    judge: &'a mut J,
}

impl<J: Judge> Search<'_, J> {
    /// Queues so many units of the next entries, or a few more, and returns the runs that are left.
    fn gather<'r>(
        &mut self,
        mut runs: &'r mut [(u32, u32)],
        units: usize,
        queue: &mut Vec<u32>,
    ) -> &'r mut [(u32, u32)] {
        queue.clear();
        let mut gathered = 0;
        while gathered < GATHER
            && queue.len() < units
            && let Some((from, to)) = runs.first_mut()
        {
            let end = (*from + GATHER - gathered).min(*to);
            self.run.queue_entries(&self.run.layout.entries[*from as usize..end as usize], queue);
            gathered += end - *from;
            *from = end;
            if end == *to {
                runs = &mut runs[1..];
            }
        }
        self.work.candidates += gathered as u64;
        runs
    }

    /// Whether taking what is left in the order of its bounds can save much, by what was seen so far: there
    /// must be more matches than are wanted, and loose bounds without leads must rule out half of the entries.
    fn is_order_worth_it(&self, left: &[(u32, u32)], k: usize, total: usize) -> bool {
        if self.least == f64::NEG_INFINITY {
            let looked_at = self.work.candidates as usize;
            return self.found * total >= k.saturating_mul(2).saturating_mul(looked_at);
        }
        if !self.limits.are_loose || self.limits.has_leads() {
            return true;
        }
        let (mut entries, mut wanted) = (0, 0);
        for (from, to) in left {
            entries += (to - from) as usize;
            self.limits.add_blocks(*from..*to, self.least, |block| wanted += block.entries().len());
        }
        2 * wanted <= entries
    }

    /// Puts the blocks of runs of entries in line.
    fn add_blocks(&mut self, runs: &[(u32, u32)]) {
        let mut blocks = std::mem::take(&mut self.blocks).into_vec();
        for (from, to) in runs {
            self.limits.add_blocks(*from..*to, self.least, |block| blocks.push(block));
        }
        self.blocks = blocks.into();
    }

    /// Decides what the best leads of all that is left promise, then what the next ones do, four times as
    /// many each time, until none promises enough.
    fn take_leads(&mut self, runs: &[(u32, u32)], queue: &mut Vec<u32>, k: usize) {
        let (mut promises, mut turn) = (vec![], 2 * k.max(2));
        // The best of a few raise what the others must promise to be read at all.
        let (few, others) = runs.split_at(runs.len() / FEW);
        let mut parts = [few, others].into_iter();
        loop {
            queue.clear();
            let part = parts.next();
            self.gather_wanted(part.unwrap_or_default(), queue);
            // What waits for units that hold, and is in line from the trial or from the turn before.
            let waiting: Vec<_> = self.blocks.drain().map(|block| (block.from, block.to)).collect();
            self.gather_wanted(&waiting, queue);
            promises.retain(|promise: &Promise| promise.score >= self.least);
            self.read_leads(queue, &mut promises);
            if promises.is_empty() && part.is_none() {
                return;
            }
            let first = promises.len().saturating_sub(turn);
            if first > 0 {
                promises.select_nth_unstable_by(first, |a, b| a.score.total_cmp(&b.score));
            }
            let best = &mut promises[first..];
            best.sort_unstable_by(|a, b| b.score.total_cmp(&a.score));
            self.decide_promised(best, queue);
            promises.truncate(first);
            turn = turn.saturating_mul(4);
        }
    }

    /// Queues the numbers of the entries whose test holds and whose lead allows for a score that is wanted,
    /// without a branch.
    fn gather_wanted(&mut self, runs: &[(u32, u32)], queue: &mut Vec<u32>) {
        let least_bound = self.judge.least_bound(self.least);
        let total: usize = runs.iter().map(|(from, to)| (to - from) as usize).sum();
        self.work.candidates += total as u64;
        let mut end = queue.len();
        queue.resize(end + total, 0);
        for (at, (from, to)) in runs.iter().enumerate() {
            if let Some((later, _)) = runs.get(at + FETCH_AHEAD) {
                prefetch(&self.run.layout.entries[*later as usize]);
                prefetch(&self.limits.leads[*later as usize]);
            }
            let run = *from as usize..*to as usize;
            let (entries, leads) = (&self.run.layout.entries[run.clone()], &self.limits.leads[run]);
            for ((number, [_, test]), lead) in (*from..*to).zip(entries).zip(leads) {
                queue[end] = number;
                end += (self.run.bit(Leaf(*test)) & (lead.bound >= least_bound)) as usize;
            }
        }
        queue.truncate(end);
    }

    /// Adds what queued entries promise, if it is enough. What their leads point to is fetched ahead.
    fn read_leads(&self, queue: &[u32], promises: &mut Vec<Promise>) {
        let lead_of = |entry: u32| self.limits.leads[entry as usize];
        for (at, entry) in queue.iter().enumerate() {
            if let Some(soon) = queue.get(at + FETCH_AHEAD) {
                self.judge.fetch_promised(lead_of(*soon));
            }
            let score = self.judge.promised(lead_of(*entry), self.run.bits);
            if score >= self.least {
                promises.push(Promise { score, unit: self.run.layout.entries[*entry as usize][0] });
            }
        }
    }

    /// Decides units, the best promise first, as long as they promise enough.
    fn decide_promised(&mut self, best: &[Promise], queue: &mut Vec<u32>) {
        queue.clear();
        queue.extend(best.iter().map(|promise| promise.unit));
        for (at, promise) in best.iter().enumerate() {
            if promise.score < self.least {
                return;
            }
            self.run.layout.fetch(queue, at, &self.run.memory.states);
            let unit = promise.unit & !ACCEPTS;
            let is_alone = unit >= self.run.layout.lone;
            if is_alone && promise.score == self.least && !self.judge.could_tie(unit) {
                continue;
            }
            if self.decide(promise.unit) {
                self.least = self.judge.unit(unit, self.run.bits);
                if !is_alone {
                    self.add_waiting(unit);
                }
            }
        }
    }

    /// Puts what waits for a unit in line.
    fn add_waiting(&mut self, unit: u32) {
        let waiting = self.run.layout.waiting_for(unit);
        let waiting = waiting.start as u32..waiting.end as u32;
        self.limits.add_blocks(waiting, self.least, |block| self.blocks.push(block));
    }

    /// Whether a queued unit holds; no if that was asked before.
    fn decide(&mut self, queued: u32) -> bool {
        let unit = queued & !ACCEPTS;
        if unit < self.run.layout.remembered && self.run.memory.of(unit) & DONE != 0 {
            return false;
        }
        self.work.evaluations += 1;
        let holds = self.run.decide(queued);
        self.found += holds as usize;
        holds
    }

    /// Takes the best block first, until none is wanted.
    fn take_blocks(&mut self, queue: &mut Vec<u32>) {
        while let Some(block) = self.blocks.pop().filter(|block| block.bound >= self.least) {
            let entries = block.entries();
            self.work.candidates += entries.len() as u64;
            queue.clear();
            self.run.queue_entries(&self.run.layout.entries[entries], queue);
            self.decide_all(queue);
        }
    }

    /// Decides the queued units. What waits for those that hold is queued behind them as long as everything
    /// is wanted, and gets its turn by its bound from then on.
    fn decide_all(&mut self, queue: &mut Vec<u32>) {
        let layout = self.run.layout;
        let mut at = 0;
        while at < queue.len() {
            let queued = queue[at];
            layout.fetch(queue, at, &self.run.memory.states);
            at += 1;
            if !self.decide(queued) {
                continue;
            }
            let unit = queued & !ACCEPTS;
            self.least = self.judge.unit(unit, self.run.bits);
            if unit >= layout.lone {
                continue;
            }
            if self.least == f64::NEG_INFINITY {
                let waiting = layout.waiting_for(unit);
                self.work.candidates += waiting.len() as u64;
                self.run.queue_entries(&layout.entries[waiting], queue);
            } else {
                self.add_waiting(unit);
            }
        }
    }

    /// Finds all units that the runs and what waits lead to, those aside that were decided before, and hands
    /// them over.
    fn match_all(&mut self, runs: &[(u32, u32)], queue: &mut Vec<u32>, lone: &mut LoneSet) {
        let Self { run, work, blocks, .. } = self;
        let layout = run.layout;
        let runs = runs.iter().map(|(from, to)| *from as usize..*to as usize);
        let entries: Vec<Range<usize>> = runs.chain(blocks.drain().map(|block| block.entries())).collect();
        let candidates = entries.iter().map(Range::len).sum();
        work.candidates += candidates as u64;
        if layout.is_worth_a_lone_set(candidates) {
            lone.open(layout);
        } else {
            lone.close();
        }
        queue.clear();
        for entries in entries {
            run.sort_entries(entries, queue, lone);
        }
        let mut holding = vec![];
        let mut at = 0;
        while let Some(&queued) = queue.get(at) {
            layout.fetch(queue, at, &run.memory.states);
            at += 1;
            let unit = queued & !ACCEPTS;
            let is_done = unit < layout.remembered && run.memory.of(unit) & DONE != 0;
            if is_done || lone.takes(unit) && lone.has(unit) {
                continue;
            }
            work.evaluations += 1;
            if !run.decide(queued) {
                continue;
            }
            holding.push(unit);
            if unit < layout.lone {
                let waiting = layout.waiting_for(unit);
                work.candidates += waiting.len() as u64;
                run.sort_entries(waiting, queue, lone);
            }
        }
        // Lone units that were decided by their code are not in the set, or they are known to be done.
        let _ = lone.deliver(&mut |unit| {
            if run.memory.of(unit) & DONE == 0 {
                holding.push(unit);
            }
            ControlFlow::Continue(())
        });
        self.least = self.judge.units(&holding, run.bits);
    }
}

/// What the entries of each block can lead to at most.
pub struct Limits<'a> {
    /// Per block of entries; without any, everything may lead to `otherwise`.
    bounds: &'a [f64],
    otherwise: f64,
    /// From a stored bound to one of the score in question.
    score: &'a dyn Fn(f64) -> f64,
    /// Scores are often far below their bounds, so that it has to be seen whether order is worth its while.
    are_loose: bool,
    /// Per entry, what the judge reads promises from; empty if there are none.
    leads: &'a [Lead],
}

impl<'a> Limits<'a> {
    /// A score that rises with the stored bound.
    pub fn new(bounds: &'a [f64], otherwise: f64, score: &'a dyn Fn(f64) -> f64) -> Self {
        Self { bounds, otherwise, score, are_loose: false, leads: &[] }
    }

    /// The same for scores that are often far below their bounds.
    pub fn loose(self, are_loose: bool) -> Self {
        Self { are_loose, ..self }
    }

    /// The same with a lead for each entry.
    pub fn with_leads(self, leads: &'a [Lead]) -> Self {
        Self { leads, ..self }
    }

    fn has_leads(&self) -> bool {
        !self.leads.is_empty()
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
