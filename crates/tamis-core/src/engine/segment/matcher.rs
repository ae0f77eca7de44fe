//! Matches one event against one segment.
//!
//! 1. Set the bits of the satisfied predicates; note which access keys fired.
//! 2. Walk the runs of entries that fired. An entry whose test fails is dropped on that one bit, which is in the cache;
//!    the units of the others are queued, without a branch. If there are many, single-row units that key and test prove
//!    do not stay in the queue: each sets its bit in a small set.
//! 3. Run the code of the queued units, with prefetching. A unit that holds delivers its rows and queues the units that
//!    waited for it.
//! 4. Deliver the single-row units of the set in the order of their numbers, which is that of their rows.

use std::hint::select_unpredictable;
use std::ops::Range;

use super::bit_sliced;
use super::entry_tests::queue_entries_that_hold;
use super::layout::{ACCEPTS, Layout};
use super::program::Leaf;
use super::single_row_set::SingleRowSet;
use super::unit_evaluation::Evaluation;
use super::walk::{FETCH_AHEAD, UnitCollector};
use super::walk_on_threads::Claims;
use crate::engine::contract::Work;
use crate::event::Event;
use crate::predicate::bits::Bits;
use crate::predicate::block_lookup::Fires;
use crate::predicate::catalog::Fired;
use crate::prefetch::prefetch;

/// Single-row units that hold are collected in a set when there is a candidate for that many of them; otherwise
/// clearing and reading the set would take longer than it saves.
const SINGLE_ROW_UNITS_PER_CANDIDATE: usize = 512;

/// Working memory for matching, reused from event to event.
#[derive(Default)]
pub struct Scratch {
    bits: Bits,
    runs: Vec<(u32, u32)>,
    queue: Vec<u32>,
    memory: Memory,
    single_row: SingleRowSet,
    /// Bits of attributes that hold intervals: neither set nor clear says that they can't be false.
    open: Vec<(u32, u32)>,
    /// Of plans of small segments.
    bit_sliced: bit_sliced::Memory,
    /// For events that several threads share.
    team: Vec<Helper>,
    claims: Claims,
}

/// Working memory of a thread that helps another one with an event.
#[derive(Default)]
pub struct Helper {
    queue: Vec<u32>,
    memory: Memory,
    single_row: SingleRowSet,
}

impl Helper {
    pub(super) fn single_row(&self) -> &SingleRowSet {
        &self.single_row
    }
}

impl Scratch {
    /// What the plan of a small segment needs.
    #[inline]
    pub fn for_plan(&mut self) -> &mut bit_sliced::Memory {
        &mut self.bit_sliced
    }

    /// What several threads need to share an event; put back when they are done with it.
    pub(super) fn take_team(&mut self) -> (Vec<Helper>, Claims) {
        (std::mem::take(&mut self.team), std::mem::take(&mut self.claims))
    }

    pub(super) fn put_back_team(&mut self, team: Vec<Helper>, claims: Claims) {
        (self.team, self.claims) = (team, claims);
    }
}

/// What is known of remembered units during one event: a byte each, so that one look tells all.
///
/// Five bits say for which event the rest was noted, so that an event need not clear what those before it
/// left: that happens when the numbers have been used up.
#[derive(Default)]
pub(super) struct Memory {
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
    /// Forgets everything and makes room for that many units, and one place for all others.
    fn reset(&mut self, units: usize) {
        self.event = self.event.wrapping_add(EVENT_STEP);
        if self.event == 0 {
            self.states.fill(0);
            self.event = EVENT_STEP;
        }
        if self.states.len() <= units {
            self.states.resize(units + 1, 0);
        }
    }

    #[inline]
    fn of(&self, place: u32) -> u8 {
        let flags = self.states[place as usize] ^ self.event;
        if flags < EVENT_STEP { flags } else { 0 }
    }

    /// Whether a unit holds, if that is known.
    #[inline]
    pub(super) fn truth_of(&self, unit: u32) -> Option<bool> {
        let state = self.of(unit);
        (state & KNOWN != 0).then_some(state & TRUE != 0)
    }

    pub(super) fn note_truth(&mut self, unit: u32, truth: bool) {
        self.states[unit as usize] = self.event | self.of(unit) | KNOWN | if truth { TRUE } else { 0 };
    }
}

impl Layout {
    /// Hands every unit that is true for the event to the collector, once, until it says to stop.
    ///
    /// With interval values, units that only *might* be true are reported too, never one too few.
    pub fn matching_units(
        &self,
        event: &impl Fires,
        scratch: &mut Scratch,
        collector: &mut impl UnitCollector,
    ) -> Work {
        let mut work = Work::default();
        if self.units() == 0 {
            return work;
        }
        let (mut event, runs, queue) = self.start(event, scratch);
        if runs.is_empty() {
            return work;
        }
        let candidates = runs.iter().map(|(from, to)| (to - from) as usize).sum();
        work.candidates = candidates as u64;
        event.open_single_row_set(candidates);
        work += event.walk(runs, queue, collector);
        work
    }

    /// Finds out which predicates an event satisfies, and the runs of entries whose keys fired.
    pub(super) fn start<'a>(
        &'a self,
        event: &impl Fires,
        scratch: &'a mut Scratch,
    ) -> (OneEvent<'a>, &'a mut Vec<(u32, u32)>, &'a mut Vec<u32>) {
        let Scratch { bits, runs, queue, memory, single_row, open, .. } = scratch;
        bits.reset(self.catalog.bits as usize);
        memory.reset(self.remembered as usize);
        runs.clear();
        queue.clear();
        open.clear();
        single_row.close();
        event.fire(&self.catalog, bits, &mut FiredKeys { runs });
        self.entries_of_keys(runs);
        if let Some(event) = event.with_intervals() {
            self.note_open_bits(event, open);
        }
        let event = OneEvent { layout: self, bits: bits.words(), open, memory, single_row, claims: None };
        (event, runs, queue)
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

    fn note_open_bits(&self, event: &Event<'_>, open: &mut Vec<(u32, u32)>) {
        for (attribute, value) in &event.values {
            if value.is_set()
                && let Some(entry) = self.catalog.entry(*attribute)
            {
                open.push((entry.first_bit, entry.end_bit));
            }
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
    fn keys(&mut self, keys: Range<u32>) {
        self.runs.push((keys.start, keys.end));
    }

    #[inline]
    fn run(&mut self, from: u32, to: u32, _: u32) {
        self.runs.push((from, to));
    }
}

/// One event, after its bits are set.
pub(super) struct OneEvent<'a> {
    pub(super) layout: &'a Layout,
    pub(super) bits: &'a [u64],
    pub(super) open: &'a [(u32, u32)],
    pub(super) memory: &'a mut Memory,
    /// Takes the single-row units that hold, while it is open.
    pub(super) single_row: &'a mut SingleRowSet,
    /// What threads that share the event have claimed.
    claims: Option<&'a Claims>,
}

/// What threads that share an event see of it.
pub(super) struct EventParts<'a> {
    layout: &'a Layout,
    bits: &'a [u64],
    open: &'a [(u32, u32)],
    claims: Option<&'a Claims>,
}

impl<'a> EventParts<'a> {
    /// The event with the memory of another thread.
    pub(super) fn event_of<'h>(&self, helper: &'h mut Helper) -> (OneEvent<'h>, &'h mut Vec<u32>)
    where
        'a: 'h,
    {
        let Helper { queue, memory, single_row } = helper;
        let EventParts { layout, bits, open, claims } = *self;
        queue.clear();
        memory.reset(layout.remembered as usize);
        single_row.close();
        (OneEvent { layout, bits, open, memory, single_row, claims }, queue)
    }
}

impl<'a> OneEvent<'a> {
    /// From now on others work on the event, too.
    pub(super) fn share(&mut self, claims: &'a Claims) {
        self.claims = Some(claims);
    }

    pub(super) fn parts(&self) -> EventParts<'a> {
        EventParts { layout: self.layout, bits: self.bits, open: self.open, claims: self.claims }
    }

    /// Whether no other thread has claimed a unit that holds or is to be decided.
    #[inline]
    pub(super) fn claim(&self, unit: u32) -> bool {
        match self.claims {
            None => true,
            Some(claims) => unit >= self.layout.remembered || claims.claim(unit),
        }
    }
}

impl OneEvent<'_> {
    /// Whether another thread has claimed a unit that only one may decide.
    #[inline]
    pub(super) fn is_claimed(&self, unit: u32) -> bool {
        self.claims.is_some() && !self.single_row.takes(unit) && !self.claim(unit)
    }

    /// Opens the set of single-row units if there are enough candidates for clearing and reading it.
    pub(super) fn open_single_row_set(&mut self, candidates: usize) {
        let single_row = (self.layout.remembered - self.layout.single_row) as usize;
        if self.open.is_empty() && candidates * SINGLE_ROW_UNITS_PER_CANDIDATE > single_row {
            self.single_row.open(self.layout);
        }
    }

    /// Takes the units out of the set of single-row ones that were decided before it was opened.
    pub(super) fn forget_decided_single_row_units(&mut self) {
        self.single_row.remove(|unit| self.memory.of(unit) & DONE != 0);
    }
}

impl OneEvent<'_> {
    /// Queues the units of the entries whose test holds, without a branch. Those that are single-row and need no more than
    /// the test go to the set of single-row units, if it is open.
    pub(super) fn queue_entries(
        &mut self,
        runs: impl Iterator<Item = Range<usize>> + Clone,
        queue: &mut Vec<u32>,
    ) {
        let (layout, bits, set) = (self.layout, self.bits, &mut *self.single_row);
        if !set.is_closed() && !layout.is_mostly_single_row() {
            // In a second loop, because the tests drop most entries.
            let before = queue.len();
            queue_entries_that_hold(&layout.entries, runs, bits, queue);
            set.settle(queue, before);
        } else if !set.is_closed() {
            queue_if(layout, runs, queue, |unit, test| {
                let holds = test.holds(bits);
                let is_settled = set.accept(unit, holds);
                holds & !is_settled
            });
        } else if self.open.is_empty() {
            queue_entries_that_hold(&layout.entries, runs, bits, queue);
        } else {
            queue_if(layout, runs, queue, |_, test| self.test_bit(test, &true));
        }
    }

    /// Where the memory keeps what is known of a unit: one place for all that are not remembered, of which it knows nothing.
    #[inline]
    fn place_of(&self, unit: u32) -> u32 {
        unit.min(self.layout.remembered)
    }

    /// Whether a unit was decided before because an access fired.
    #[inline(always)]
    pub(super) fn is_done(&self, unit: u32) -> bool {
        (self.memory.of(self.place_of(unit)) & DONE != 0) | self.single_row.has(unit)
    }

    /// Whether a queued unit holds. Of units that the set of single-row units takes, the set says which are done.
    #[inline(always)]
    pub(super) fn decide(&mut self, queued: u32) -> bool {
        let unit = queued & !ACCEPTS;
        let place = self.place_of(unit);
        let holds = match self.memory.truth_of(place) {
            _ if queued & ACCEPTS != 0 => true,
            Some(truth) => truth,
            None => self.run(unit, true),
        };
        let flags = KNOWN | (TRUE * holds as u8) | (DONE * !self.single_row.takes(unit) as u8);
        let is_remembered = unit < self.layout.remembered;
        self.memory.states[place as usize] =
            select_unpredictable(is_remembered, self.memory.event | flags, 0);
        holds
    }

    #[inline(always)]
    pub(super) fn fetch_unit(&self, unit: u32) {
        prefetch(&self.layout.heads[unit as usize]);
        prefetch(&self.memory.states[self.place_of(unit) as usize]);
    }
}

/// Queues the units of those entries that `is_queued` says so of, without a branch.
#[inline(always)]
fn queue_if(
    layout: &Layout,
    runs: impl Iterator<Item = Range<usize>> + Clone,
    queue: &mut Vec<u32>,
    mut is_queued: impl FnMut(u32, Leaf) -> bool,
) {
    let mut end = queue.len();
    queue.resize(end + runs.clone().map(|run| run.len()).sum::<usize>(), 0);
    for run in runs {
        for [unit, test] in &layout.entries[run] {
            queue[end] = *unit;
            end += is_queued(*unit, Leaf(*test)) as usize;
        }
    }
    queue.truncate(end);
}
