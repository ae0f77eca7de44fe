//! One event against one segment.
//!
//! 1. Set the bits of the satisfied predicates; note which access keys fired.
//! 2. Walk the fired runs of entries. An entry whose test fails is dropped on that one bit, which
//!    is in the cache; the units of the others are queued, without a branch. When there are many, lone
//!    units for which key and test suffice are not queued: each sets its bit in a small set.
//! 3. Run the code of the queued units, fetching ahead. A unit that holds delivers its rows and
//!    queues the units that waited for it.
//! 4. Deliver the lone units of the set in the order of their numbers, which is that of their rows.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::ops::ControlFlow;

use super::layout::{ACCEPTS, BLOCK, Layout, code_place};
use super::lone_set::LoneSet;
use super::program::{ACCEPT, CodeKind, Leaf, REJECT};
use crate::event::Event;
use crate::predicate::bits::Bits;
use crate::predicate::catalog::Fired;
use crate::prefetch::prefetch;

/// How far ahead of the evaluation memory is fetched, in units.
const FETCH_AHEAD: usize = 4;

/// How many entries are looked at, and how many units are queued, before the units are decided: enough for
/// fetching ahead, little compared with what knowing the first scores can save.
const GATHER: u32 = 4096;
const GATHER_UNITS: usize = 128;

/// Lone units that hold are collected in a set when there is a candidate for that many of them; otherwise
/// clearing and reading the set would take longer than it saves.
const LONE_PER_CANDIDATE: usize = 512;

/// Working memory for matching, reused from event to event.
#[derive(Default)]
pub struct Scratch {
    bits: Bits,
    runs: Vec<(u32, u32)>,
    queue: Vec<u32>,
    memory: Memory,
    lone: LoneSet,
    /// Bits of attributes that hold intervals: neither set nor clear says that they can't be false.
    open: Vec<(u32, u32)>,
}

/// What is known of remembered units during one event: a byte each, so that one look tells all.
///
/// Five bits say for which event the rest was noted, so that an event need not clear what those before it
/// left: that happens when the numbers have been used up.
#[derive(Default)]
struct Memory {
    states: Vec<u8>,
    event: u8,
}

/// The unit was decided because an access fired.
const DONE: u8 = 1;
const KNOWN: u8 = 2;
const TRUE: u8 = 4;
/// The number of the event, counted in steps of this.
const EVENT_STEP: u8 = 8;

impl Memory {
    /// Forgets everything and makes room for that many units.
    fn reset(&mut self, units: usize) {
        self.event = self.event.wrapping_add(EVENT_STEP);
        if self.event == 0 {
            self.states.fill(0);
            self.event = EVENT_STEP;
        }
        if self.states.len() < units {
            self.states.resize(units, 0);
        }
    }

    #[inline]
    fn of(&self, unit: u32) -> u8 {
        let flags = self.states[unit as usize] ^ self.event;
        if flags < EVENT_STEP { flags } else { 0 }
    }

    #[inline]
    fn note(&mut self, unit: u32, flags: u8) {
        self.states[unit as usize] = self.event | self.of(unit) | flags;
    }
}

/// What becomes of the units that hold for an event.
pub trait Holding {
    fn unit(&mut self, unit: u32) -> ControlFlow<()>;

    /// Whether some units may be all that is wanted. What is known to hold is then offered before the rest
    /// is looked at, and once more with the rest.
    fn may_stop(&self) -> bool {
        false
    }

    /// Lone units, of which bit n stands for `first` + n.
    fn lone(&mut self, first: u32, mut bits: u64) -> ControlFlow<()> {
        while bits != 0 {
            self.unit(first + bits.trailing_zeros())?;
            bits &= bits - 1;
        }
        ControlFlow::Continue(())
    }
}

impl<F: FnMut(u32) -> ControlFlow<()>> Holding for F {
    fn unit(&mut self, unit: u32) -> ControlFlow<()> {
        self(unit)
    }
}

/// What one event cost.
#[derive(Clone, Copy, Default, Debug)]
pub struct Work {
    /// Entries of fired access keys.
    pub candidates: u64,
    /// Units that were looked at because an access fired; lone ones that it proves need no look.
    pub evaluations: u64,
    /// Values of a kind that no predicate on their attribute expects.
    pub mismatches: u64,
}

impl std::ops::AddAssign for Work {
    fn add_assign(&mut self, other: Self) {
        self.candidates += other.candidates;
        self.evaluations += other.evaluations;
        self.mismatches += other.mismatches;
    }
}

impl Layout {
    /// Hands every unit that is true for the event to `holding`, once, until it says to stop.
    ///
    /// With interval values, units that only *might* be true are reported too, never one too few.
    pub fn matching_units(
        &self,
        event: &Event<'_>,
        scratch: &mut Scratch,
        holding: &mut impl Holding,
    ) -> Work {
        if self.units() == 0 {
            return Work::default();
        }
        let Scratch { bits, runs, queue, memory, lone, open } = scratch;
        bits.reset(self.catalog.bits as usize);
        memory.reset(self.remembered as usize);
        runs.clear();
        queue.clear();
        open.clear();
        let mut work = Work::default();
        self.catalog.fire(event, bits, &mut FiredKeys { runs });
        self.entries_of_keys(runs);
        if event.has_intervals {
            self.note_open_bits(event, open);
        }
        work.candidates = runs.iter().map(|(from, to)| (to - from) as u64).sum();
        let lone_units = (self.remembered - self.lone) as usize;
        if !event.has_intervals && work.candidates as usize * LONE_PER_CANDIDATE > lone_units {
            lone.open(self);
        } else {
            lone.close();
        }
        let mut run = Run { layout: self, bits: bits.words(), open, memory };
        for &(from, to) in runs.iter() {
            run.sort_entries(from as usize..to as usize, queue, lone);
        }
        if holding.may_stop() && lone.deliver(holding).is_break() {
            return work;
        }
        let mut at = 0;
        while let Some(&queued) = queue.get(at) {
            self.fetch(queue, at, &run.memory.states);
            at += 1;
            let unit = queued & !ACCEPTS;
            let in_set = lone.takes(unit);
            let is_done = match in_set {
                true => lone.has(unit),
                false => unit < self.remembered && run.memory.of(unit) & DONE != 0,
            };
            if is_done {
                continue;
            }
            work.evaluations += 1;
            if !run.decide(queued) {
                continue;
            }
            if in_set {
                lone.insert(unit);
                continue;
            }
            if holding.unit(unit).is_break() {
                return work;
            }
            if unit < self.lone {
                let waiting = self.waiting_for(unit);
                work.candidates += waiting.len() as u64;
                run.sort_entries(waiting, queue, lone);
            }
        }
        let _ = lone.deliver(holding);
        work
    }

    /// Makes runs of entries of runs of keys. Keys are scattered, so what belongs to them is fetched ahead.
    fn entries_of_keys(&self, runs: &mut Vec<(u32, u32)>) {
        let mut kept = 0;
        for at in 0..runs.len() {
            if let Some((later, _)) = runs.get(at + 2 * FETCH_AHEAD) {
                prefetch(&self.access_off[*later as usize]);
            }
            let (from, to) = runs[at];
            let (from, to) = (self.access_off[from as usize], self.access_off[to as usize]);
            if from == to {
                continue;
            }
            prefetch(&self.entries[from as usize]);
            if kept > 0 && runs[kept - 1].1 == from {
                runs[kept - 1].1 = to;
            } else {
                runs[kept] = (from, to);
                kept += 1;
            }
        }
        runs.truncate(kept);
    }

    /// As [`matching_units`](Self::matching_units), the most promising candidates first, and none
    /// that can only lead to scores below what `holds` last returned. `holds` also gets the bits of
    /// the event.
    pub fn best_units(
        &self,
        event: &Event<'_>,
        scratch: &mut Scratch,
        limits: &Limits<'_>,
        wanted: f64,
        holds: impl FnMut(u32, &[u64]) -> f64,
    ) -> Work {
        let work = Work::default();
        if self.units() == 0 {
            return work;
        }
        let Scratch { bits, runs, queue, memory, open, .. } = scratch;
        bits.reset(self.catalog.bits as usize);
        memory.reset(self.remembered as usize);
        runs.clear();
        open.clear();
        self.catalog.fire(event, bits, &mut FiredKeys { runs });
        self.entries_of_keys(runs);
        let run = Run { layout: self, bits: bits.words(), open, memory };
        let mut search = Search { run, limits, late: BinaryHeap::new(), wanted, work, holds };
        // As long as everything is wanted, the order is of no use: this part is plain matching.
        let mut next = 0;
        while search.wanted == f64::NEG_INFINITY && next < runs.len() {
            queue.clear();
            let mut gathered = 0;
            while next < runs.len() && gathered < GATHER && queue.len() < GATHER_UNITS {
                let (from, to) = &mut runs[next];
                let end = (*from + GATHER - gathered).min(*to);
                search.run.queue_entries(&self.entries[*from as usize..end as usize], queue);
                gathered += end - *from;
                *from = end;
                next += (end == *to) as usize;
            }
            search.work.candidates += gathered as u64;
            search.decide_all(queue);
        }
        let mut pending: Vec<PendingBlock> = vec![];
        for &(from, to) in &runs[next..] {
            limits.add_blocks(from..to, search.wanted, |block| pending.push(block));
        }
        pending.sort_unstable();
        loop {
            let block = match (pending.last(), search.late.peek()) {
                (Some(block), Some(late)) if late > block => search.late.pop(),
                (Some(_), _) => pending.pop(),
                (None, _) => search.late.pop(),
            };
            let Some(block) = block.filter(|block| block.bound >= search.wanted) else { break };
            search.work.candidates += (block.to - block.from) as u64;
            queue.clear();
            search.run.queue_entries(&self.entries[block.from as usize..block.to as usize], queue);
            search.decide_all(queue);
        }
        search.work
    }

    fn note_open_bits(&self, event: &Event<'_>, open: &mut Vec<(u32, u32)>) {
        for (attribute, value) in &event.values {
            if value.is_set()
                && let Some(entry) = self.catalog.entry(*attribute)
            {
                open.push((entry.first_bit, entry.end_bit));
            }
        }
    }

    /// Fetches what will be needed of units further down the queue: first heads, then code, then what the
    /// code asks of other units.
    #[inline]
    fn fetch(&self, queue: &[u32], at: usize, states: &[u8]) {
        if let Some(&later) = queue.get(at + 3 * FETCH_AHEAD) {
            self.fetch_head((later & !ACCEPTS) as usize, states);
        }
        if let Some(&later) = queue.get(at + 2 * FETCH_AHEAD) {
            let head = &self.heads[(later & !ACCEPTS) as usize];
            if later & ACCEPTS == 0 {
                self.code.get(code_place(head.code)).inspect(|code| prefetch(*code));
            } else {
                self.entries.get(head.waiting as usize).inspect(|entry| prefetch(*entry));
            }
        }
        if let Some(&soon) = queue.get(at + FETCH_AHEAD)
            && soon & ACCEPTS == 0
        {
            let (kind, code) = self.code_of(soon);
            let (first, step) = kind.leaf_words();
            for leaf in code.iter().skip(first).step_by(step) {
                if let Some(unit) = Leaf(*leaf).as_unit() {
                    self.fetch_head(unit as usize, states);
                }
            }
        }
    }

    #[inline]
    fn fetch_head(&self, unit: usize, states: &[u8]) {
        prefetch(&self.heads[unit]);
        if let Some(state) = states.get(unit) {
            prefetch(state);
        }
    }
}

/// Notes runs of fired keys.
struct FiredKeys<'a> {
    runs: &'a mut Vec<(u32, u32)>,
}

impl Fired for FiredKeys<'_> {
    #[inline]
    fn key(&mut self, key: u32) {
        self.runs.push((key, key + 1));
    }

    #[inline]
    fn run(&mut self, from: u32, to: u32, _: u32) {
        self.runs.push((from, to));
    }
}

/// A search for the best, as far as it has come.
struct Search<'a, H> {
    run: Run<'a>,
    limits: &'a Limits<'a>,
    /// Blocks of entries that waited for units which hold.
    late: BinaryHeap<PendingBlock>,
    wanted: f64,
    work: Work,
    holds: H,
}

impl<H: FnMut(u32, &[u64]) -> f64> Search<'_, H> {
    /// Decides the queued units. What waits for those that hold is queued behind them as long as everything
    /// is wanted, and gets its turn by its bound from then on.
    fn decide_all(&mut self, queue: &mut Vec<u32>) {
        let layout = self.run.layout;
        let mut at = 0;
        while at < queue.len() {
            let queued = queue[at];
            layout.fetch(queue, at, &self.run.memory.states);
            at += 1;
            let unit = queued & !ACCEPTS;
            let remembered = unit < layout.remembered;
            if remembered && self.run.memory.of(unit) & DONE != 0 {
                continue;
            }
            self.work.evaluations += 1;
            if !self.run.decide(queued) {
                continue;
            }
            self.wanted = (self.holds)(unit, self.run.bits);
            if unit < layout.lone {
                let waiting = layout.waiting_for(unit);
                if self.wanted == f64::NEG_INFINITY {
                    self.work.candidates += waiting.len() as u64;
                    self.run.queue_entries(&layout.entries[waiting], queue);
                } else {
                    let waiting = waiting.start as u32..waiting.end as u32;
                    self.limits.add_blocks(waiting, self.wanted, |block| self.late.push(block));
                }
            }
        }
    }
}

/// What the entries of each block can lead to at most.
pub struct Limits<'a> {
    /// Per block of entries; without any, everything may lead to `otherwise`.
    bounds: &'a [f64],
    otherwise: f64,
    /// From a stored bound to one of the score in question.
    score: Box<dyn Fn(f64) -> f64 + 'a>,
}

impl<'a> Limits<'a> {
    /// The bounds are the scores.
    pub fn of_priorities(layout: &'a Layout) -> Self {
        Self { bounds: &layout.block_bounds, otherwise: 0.0, score: Box::new(|bound| bound) }
    }

    /// A score that rises with the stored bound.
    pub fn new(bounds: &'a [f64], otherwise: f64, score: impl Fn(f64) -> f64 + 'a) -> Self {
        Self { bounds, otherwise, score: Box::new(score) }
    }

    /// The blocks of a run of entries that may lead to scores that are wanted.
    fn add_blocks(&self, run: std::ops::Range<u32>, wanted: f64, mut add: impl FnMut(PendingBlock)) {
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

/// A block of entries that waits for its turn: the highest bound first.
struct PendingBlock {
    bound: f64,
    from: u32,
    to: u32,
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

/// The evaluation of one event, after its bits are set.
struct Run<'a> {
    layout: &'a Layout,
    bits: &'a [u64],
    open: &'a [(u32, u32)],
    memory: &'a mut Memory,
}

impl Run<'_> {
    /// Queues the units of the entries whose test holds, but for those that are lone and thereby accepted:
    /// they go to the set of lone units, if it is open.
    fn sort_entries(&self, run: std::ops::Range<usize>, queue: &mut Vec<u32>, lone: &mut LoneSet) {
        let entries = &self.layout.entries[run];
        if lone.is_closed() {
            return self.queue_entries(entries, queue);
        }
        let mut queued = queue.len();
        queue.resize(queued + entries.len(), 0);
        for [unit, test] in entries {
            let holds = self.bit(Leaf(*test));
            let is_settled = lone.accept(*unit, holds);
            queue[queued] = *unit;
            queued += (holds & !is_settled) as usize;
        }
        queue.truncate(queued);
    }

    /// Queues the units of the entries whose test holds.
    fn queue_entries(&self, entries: &[[u32; 2]], queue: &mut Vec<u32>) {
        let start = queue.len();
        queue.resize(start + entries.len(), 0);
        let mut end = start;
        if self.open.is_empty() {
            for [unit, test] in entries {
                queue[end] = *unit;
                end += self.bit(Leaf(*test)) as usize;
            }
        } else {
            for [unit, test] in entries {
                queue[end] = *unit;
                end += self.test_bit(Leaf(*test)) as usize;
            }
        }
        queue.truncate(end);
    }

    /// A test that is not a unit, for point values.
    #[inline]
    fn bit(&self, leaf: Leaf) -> bool {
        let bit = leaf.bit();
        (self.bits[(bit >> 6) as usize] >> (bit & 63) ^ leaf.0 as u64) & 1 == 1
    }

    /// A test that is not a unit. What can't be known to be true may also be false.
    #[inline]
    fn test_bit(&self, leaf: Leaf) -> bool {
        self.bit(leaf)
            || !self.open.is_empty()
                && leaf.is_clear()
                && self.open.iter().any(|(from, to)| (*from..*to).contains(&leaf.bit()))
    }

    #[inline]
    fn test(&mut self, leaf: Leaf) -> bool {
        match leaf.as_unit() {
            None => self.test_bit(leaf),
            Some(unit) => self.pull(unit),
        }
    }

    /// Whether a queued unit holds.
    #[inline]
    fn decide(&mut self, queued: u32) -> bool {
        let unit = queued & !ACCEPTS;
        let accepted = queued & ACCEPTS != 0;
        if unit >= self.layout.remembered {
            return accepted || self.evaluate(unit);
        }
        if accepted {
            self.memory.note(unit, DONE | KNOWN | TRUE);
            return true;
        }
        let is_true = self.pull(unit);
        self.memory.note(unit, DONE);
        is_true
    }

    /// The truth of a remembered unit, computed at most once.
    fn pull(&mut self, unit: u32) -> bool {
        let state = self.memory.of(unit);
        if state & KNOWN != 0 {
            return state & TRUE != 0;
        }
        let is_true = self.evaluate(unit);
        self.memory.note(unit, if is_true { KNOWN | TRUE } else { KNOWN });
        is_true
    }

    fn evaluate(&mut self, unit: u32) -> bool {
        let layout = self.layout;
        let (kind, code) = layout.code_of(unit);
        match kind {
            CodeKind::Conjunction => code.iter().all(|leaf| self.test(Leaf(*leaf))),
            CodeKind::Disjunction => code.iter().any(|leaf| self.test(Leaf(*leaf))),
            CodeKind::Jumps => {
                let mut at = 0;
                while let Some(&[leaf, jump]) = code.get(at..at + 2).and_then(|pair| pair.first_chunk()) {
                    if self.test(Leaf(leaf)) == (jump & 1 == 1) {
                        at += 2;
                    } else {
                        match jump >> 1 {
                            ACCEPT => return true,
                            REJECT => return false,
                            target => at = 2 * target as usize,
                        }
                    }
                }
                true
            }
            CodeKind::Parity => {
                let (mut even, mut odd) = (true, false);
                for pair in code[1..].chunks_exact(2) {
                    let (t, f) = (self.test(Leaf(pair[0])), self.test(Leaf(pair[1])));
                    (even, odd) = (even && f || odd && t, odd && f || even && t);
                }
                if code[0] == 1 { odd } else { even }
            }
        }
    }
}
