//! Walks over the candidates of one event, and passes on the units that hold.
//!
//! Entries whose access key fired and whose test holds queue their units. The queue is decided from front to back, with
//! prefetching. A unit that holds goes to the collector, and the units that waited for it are queued behind the others;
//! or, once the collector has a threshold, passed to it to be taken by their bounds.

use std::iter::once;
use std::ops::{ControlFlow, Range};

use super::layout::{ACCEPTS, code_place};
use super::matcher::OneEvent;
use super::program::Leaf;
use super::unit_evaluation::Evaluation;
use crate::engine::contract::Work;
use crate::prefetch::prefetch;

/// How far ahead of the evaluation memory is fetched, in units.
pub const FETCH_AHEAD: usize = 4;

/// What becomes of the units that hold. With each come the bits of the predicates that the event satisfies.
pub trait UnitCollector {
    /// Takes a unit, once, or says that no more are wanted.
    fn unit(&mut self, unit: u32, bits: &[u64]) -> ControlFlow<()>;

    /// Takes single-row units, of which bit n of `units` stands for `first` + n.
    fn single_row(&mut self, first: u32, mut units: u64, bits: &[u64]) -> ControlFlow<()> {
        while units != 0 {
            self.unit(first + units.trailing_zeros(), bits)?;
            units &= units - 1;
        }
        ControlFlow::Continue(())
    }

    /// Whether some units may be all that is wanted. What is known to hold is then offered before the rest
    /// is looked at, and once more with the rest.
    fn may_stop(&self) -> bool {
        false
    }

    /// Scores below this are not wanted; −∞ as long as everything is.
    fn least_wanted(&self) -> f64 {
        f64::NEG_INFINITY
    }

    /// Takes the entries of units that waited for one that holds, once there is a threshold.
    fn defer(&mut self, _waiting: Range<usize>) {}
}

impl<F: FnMut(u32) -> ControlFlow<()>> UnitCollector for F {
    #[inline]
    fn unit(&mut self, unit: u32, _: &[u64]) -> ControlFlow<()> {
        self(unit)
    }
}

impl OneEvent<'_> {
    /// Walks runs of entries and delivers the units that hold.
    #[inline]
    pub(super) fn walk(
        &mut self,
        runs: &[(u32, u32)],
        queue: &mut Vec<u32>,
        collector: &mut impl UnitCollector,
    ) -> Work {
        let mut work = Work::default();
        self.queue_entries(runs.iter().map(|(from, to)| *from as usize..*to as usize), queue);
        if collector.may_stop() && self.single_row.deliver(collector, self.bits).is_break() {
            return work;
        }
        if self.drain(queue, &mut work, collector).is_continue() {
            let _ = self.single_row.deliver(collector, self.bits);
        }
        work
    }

    /// Decides what is queued, and what waited for it, and so on.
    #[inline]
    pub(super) fn drain(
        &mut self,
        queue: &mut Vec<u32>,
        work: &mut Work,
        collector: &mut impl UnitCollector,
    ) -> ControlFlow<()> {
        let layout = self.layout();
        let shares = layout.shares_much();
        let mut at = 0;
        while let Some(&queued) = queue.get(at) {
            self.fetch(queue, at, shares);
            at += 1;
            let unit = queued & !ACCEPTS;
            if self.is_done(unit) || self.is_claimed(unit) {
                continue;
            }
            work.evaluations += 1;
            let holds = self.decide(queued);
            if self.single_row.insert_if(unit, holds) | !holds {
                continue;
            }
            collector.unit(unit, self.bits)?;
            if unit < layout.single_row {
                let waiting = layout.waiting_for(unit);
                if collector.least_wanted() == f64::NEG_INFINITY {
                    work.candidates += waiting.len() as u64;
                    self.queue_entries(once(waiting), queue);
                } else {
                    collector.defer(waiting);
                }
            }
        }
        queue.clear();
        ControlFlow::Continue(())
    }

    /// Fetches what will be needed of units further down a queue: first heads, then code; and if units share others, what
    /// their code asks of these and what waits for them. That takes branches which depend on the unit, so it is not for all.
    #[inline(always)]
    pub(super) fn fetch(&self, queue: &[u32], at: usize, shares: bool) {
        let layout = self.layout();
        if let Some(&later) = queue.get(at + 3 * FETCH_AHEAD) {
            self.fetch_unit(later & !ACCEPTS);
        }
        if let Some(&later) = queue.get(at + 2 * FETCH_AHEAD) {
            let head = &layout.heads[(later & !ACCEPTS) as usize];
            if later & ACCEPTS == 0 || !shares {
                layout.code.get(code_place(head.code)).inspect(|code| prefetch(*code));
            } else {
                layout.entries.get(head.waiting as usize).inspect(|entry| prefetch(*entry));
            }
        }
        if shares
            && let Some(&soon) = queue.get(at + FETCH_AHEAD)
            && soon & ACCEPTS == 0
        {
            for unit in layout.leaves_of(soon).filter_map(Leaf::as_unit) {
                self.fetch_unit(unit);
            }
        }
    }
}
