//! One event against one segment.
//!
//! 1. Set the bits of the satisfied predicates; note which access keys fired.
//! 2. Walk the fired runs of entries. An entry whose test fails is dropped on that one bit, which
//!    is in the cache; the units of the others are queued, without a branch. When there are many, lone
//!    units for which key and test suffice are not queued: each sets its bit in a small set.
//! 3. Run the code of the queued units, fetching ahead. A unit that holds delivers its rows and
//!    queues the units that waited for it.
//! 4. Deliver the lone units of the set in the order of their numbers, which is that of their rows.

use std::ops::ControlFlow;

use super::evaluation::{Evaluation, OnePath};
use super::layout::{ACCEPTS, Layout, code_place};
use super::lone_set::LoneSet;
use super::program::Leaf;
use crate::event::Event;
use crate::predicate::bits::Bits;
use crate::predicate::catalog::Fired;
use crate::predicate::placed::Fires;
use crate::prefetch::prefetch;

/// How far ahead of the evaluation memory is fetched, in units.
const FETCH_AHEAD: usize = 4;

/// Lone units that hold are collected in a set when there is a candidate for that many of them; otherwise
/// clearing and reading the set would take longer than it saves.
const LONE_PER_CANDIDATE: usize = 512;

/// Working memory for matching, reused from event to event.
#[derive(Default)]
pub struct Scratch {
    pub(super) bits: Bits,
    pub(super) runs: Vec<(u32, u32)>,
    pub(super) queue: Vec<u32>,
    pub(super) memory: Memory,
    pub(super) lone: LoneSet,
    /// Bits of attributes that hold intervals: neither set nor clear says that they can't be false.
    pub(super) open: Vec<(u32, u32)>,
}

/// What is known of remembered units during one event: a byte each, so that one look tells all.
///
/// Five bits say for which event the rest was noted, so that an event need not clear what those before it
/// left: that happens when the numbers have been used up.
#[derive(Default)]
pub(super) struct Memory {
    pub(super) states: Vec<u8>,
    event: u8,
}

/// The unit was decided because an access fired.
pub(super) const DONE: u8 = 1;
const KNOWN: u8 = 2;
const TRUE: u8 = 4;
/// The number of the event, counted in steps of this.
const EVENT_STEP: u8 = 8;

impl Memory {
    /// Forgets everything and makes room for that many units.
    pub(super) fn reset(&mut self, units: usize) {
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
    pub(super) fn of(&self, unit: u32) -> u8 {
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
    /// Entries of fired access keys in a question for the best, whether or not they were looked at.
    pub fired: u64,
}

impl std::ops::AddAssign for Work {
    fn add_assign(&mut self, other: Self) {
        self.candidates += other.candidates;
        self.evaluations += other.evaluations;
        self.mismatches += other.mismatches;
        self.fired += other.fired;
    }
}

impl Layout {
    /// Hands every unit that is true for the event to `holding`, once, until it says to stop.
    ///
    /// With interval values, units that only *might* be true are reported too, never one too few.
    pub fn matching_units(
        &self,
        event: &impl Fires,
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
        event.fire(&self.catalog, bits, &mut FiredKeys { runs });
        self.entries_of_keys(runs);
        let with_intervals = event.with_intervals();
        if let Some(event) = with_intervals {
            self.note_open_bits(event, open);
        }
        work.candidates = runs.iter().map(|(from, to)| (to - from) as u64).sum();
        if with_intervals.is_none() && self.is_worth_a_lone_set(work.candidates as usize) {
            lone.open(self);
        } else {
            lone.close();
        }
        let mut run = Run { layout: self, bits: bits.words(), open, memory, path: OnePath };
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

    /// Whether there are enough candidates for clearing and reading a set of the lone units.
    pub(super) fn is_worth_a_lone_set(&self, candidates: usize) -> bool {
        candidates * LONE_PER_CANDIDATE > (self.remembered - self.lone) as usize
    }

    /// Makes runs of entries of runs of keys. Keys are scattered, so what belongs to them is fetched ahead.
    pub(super) fn entries_of_keys(&self, runs: &mut Vec<(u32, u32)>) {
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
    pub(super) fn fetch(&self, queue: &[u32], at: usize, states: &[u8]) {
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
pub(super) struct FiredKeys<'a> {
    pub(super) runs: &'a mut Vec<(u32, u32)>,
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

/// The evaluation of one event, after its bits are set.
pub(super) struct Run<'a> {
    pub(super) layout: &'a Layout,
    pub(super) bits: &'a [u64],
    pub(super) open: &'a [(u32, u32)],
    pub(super) memory: &'a mut Memory,
    pub(super) path: OnePath,
}

impl Run<'_> {
    /// Queues the units of the entries whose test holds, but for those that are lone and thereby accepted:
    /// they go to the set of lone units, if it is open.
    pub(super) fn sort_entries(&self, run: std::ops::Range<usize>, queue: &mut Vec<u32>, lone: &mut LoneSet) {
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
    pub(super) fn queue_entries(&self, entries: &[[u32; 2]], queue: &mut Vec<u32>) {
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
                end += self.can_hold(Leaf(*test)) as usize;
            }
        }
        queue.truncate(end);
    }

    /// A test that is not a unit, for point values.
    #[inline]
    pub(super) fn bit(&self, leaf: Leaf) -> bool {
        let bit = leaf.bit();
        (self.bits[(bit >> 6) as usize] >> (bit & 63) ^ leaf.0 as u64) & 1 == 1
    }

    /// A test that is not a unit. What can't be known to be true may also be false.
    #[inline]
    fn can_hold(&self, leaf: Leaf) -> bool {
        self.bit(leaf)
            || !self.open.is_empty()
                && leaf.is_clear()
                && self.open.iter().any(|(from, to)| (*from..*to).contains(&leaf.bit()))
    }

    /// Whether a queued unit holds.
    #[inline]
    pub(super) fn decide(&mut self, queued: u32) -> bool {
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

    fn evaluate(&mut self, unit: u32) -> bool {
        self.run(unit, true)
    }
}

impl<'a> Evaluation<'a> for Run<'a> {
    type Truth = bool;

    #[inline]
    fn layout(&self) -> &'a Layout {
        self.layout
    }

    #[inline]
    fn test_bit(&self, leaf: Leaf, _: &bool) -> bool {
        self.can_hold(leaf)
    }

    fn pull(&mut self, unit: u32) -> bool {
        let state = self.memory.of(unit);
        if state & KNOWN != 0 {
            return state & TRUE != 0;
        }
        let is_true = self.evaluate(unit);
        self.memory.note(unit, if is_true { KNOWN | TRUE } else { KNOWN });
        is_true
    }

    #[inline]
    fn paths(&mut self) -> &mut OnePath {
        &mut self.path
    }
}
