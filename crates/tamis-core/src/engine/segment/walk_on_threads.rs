//! Matches one event on several threads.
//!
//! The calling thread finds the satisfied predicates. The entries whose keys fired are then cut into pieces, and each
//! thread takes the next piece until none is left. Threads share the truth of predicates; each has its own memory and
//! collector. Several pieces may reach the same remembered unit: the thread that claims it first decides it, delivers it
//! and queues the units that wait for it, so that every unit is delivered once. Each thread has a set of single-row units,
//! and the sets are combined at the end.
//!
//! For top-k, each thread searches its share of the pieces with its own threshold.
//!
//! Threads are started per event, because a pool would not survive a fork. That takes some ten microseconds each, so
//! events with few entries stay on the calling thread.

use std::ops::ControlFlow;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::thread;

use super::best_first::{RankingCollector, Wanted};
use super::layout::Layout;
use super::matcher::{Helper, OneEvent, Scratch};
use super::walk::UnitCollector;
use crate::engine::contract::Work;
use crate::predicate::block_lookup::Fires;

/// How many entries a thread must have to be worth starting: about a hundred microseconds of work.
const ENTRIES_PER_THREAD: usize = if cfg!(test) { 2 } else { 6_000 };
/// Pieces per thread: enough for fast threads to take over from slow ones.
const PIECES_PER_THREAD: usize = 16;

/// Remembered units that some thread has claimed, a bit each.
#[derive(Default)]
pub struct Claims(Vec<AtomicU64>);

impl Claims {
    fn reset(&mut self, units: usize) {
        self.0.iter_mut().for_each(|word| *word.get_mut() = 0);
        self.0.resize_with(self.0.len().max(units.div_ceil(64)), AtomicU64::default);
    }

    /// Whether nobody has claimed the unit before.
    #[inline]
    pub fn claim(&self, unit: u32) -> bool {
        // What the unit leads to is read from the segment alone, which no thread writes.
        self.0[unit as usize / 64].fetch_or(1 << (unit % 64), Ordering::Relaxed) >> (unit % 64) & 1 == 0
    }
}

impl Layout {
    /// Whether some event may have so many entries that it is worth a second thread.
    pub fn may_need_threads(&self) -> bool {
        self.entries.len() >= 2 * ENTRIES_PER_THREAD
    }

    /// As [`matching_units`](Self::matching_units), on as many threads as there are collectors if the event is
    /// worth it. The first collector is that of the thread that asks; what all have together is the answer.
    pub fn matching_units_on_threads<C: UnitCollector + Send>(
        &self,
        event: &impl Fires,
        scratch: &mut Scratch,
        collectors: &mut [C],
    ) -> Work {
        let [collector, others @ ..] = collectors else { return Work::default() };
        if self.units() == 0 {
            return Work::default();
        }
        let (mut team, mut claims) = scratch.take_team();
        let (mut event, runs, queue) = self.start(event, scratch);
        let entries = total(runs);
        let helpers = helpers(entries, others.len(), &mut team);
        let mut work = Work { candidates: entries as u64, ..Work::default() };
        event.open_single_row_set(entries);
        if helpers.is_empty() {
            work += event.walk(runs, queue, collector);
        } else {
            claims.reset(self.remembered as usize);
            let walk = SharedWalk {
                pieces: pieces(runs, entries, (helpers.len() + 1) * PIECES_PER_THREAD),
                next: AtomicUsize::new(0),
                is_over: AtomicBool::new(false),
            };
            event.share(&claims);
            let parts = event.parts();
            let (walk, used) = (&walk, helpers.len());
            work += on_threads(
                helpers,
                others,
                |helper, collector| {
                    let (mut event, queue) = parts.event_of(helper);
                    event.open_single_row_set(entries);
                    walk.run(&mut event, queue, collector)
                },
                || walk.run(&mut event, queue, collector),
            );
            for helper in &team[..used] {
                event.single_row.unite(helper.single_row());
            }
            if !walk.is_over.load(Ordering::Relaxed) {
                let _ = event.single_row.deliver(collector, event.bits);
            }
        }
        scratch.put_back_team(team, claims);
        work
    }

    /// As [`best_units`](Self::best_units), on as many threads as there are collectors if the event is worth it. Each
    /// collector gets what may be among the best of its share.
    pub fn best_units_on_threads<C: RankingCollector + Send>(
        &self,
        event: &impl Fires,
        scratch: &mut Scratch,
        wanted: &Wanted<'_>,
        collectors: &mut [C],
    ) -> Work {
        let [collector, others @ ..] = collectors else { return Work::default() };
        if self.units() == 0 {
            return Work::default();
        }
        let (mut team, mut claims) = scratch.take_team();
        let (mut event, runs, queue) = self.start(event, scratch);
        let entries = total(runs);
        let helpers = helpers(entries, others.len(), &mut team);
        let work = if helpers.is_empty() {
            self.search_best(event, runs, queue, wanted, collector)
        } else {
            claims.reset(self.remembered as usize);
            let count = helpers.len() + 1;
            let pieces = pieces(runs, entries, count * PIECES_PER_THREAD);
            let share = |first: usize| -> Vec<(u32, u32)> {
                pieces.iter().skip(first).step_by(count).flatten().copied().collect()
            };
            event.share(&claims);
            let parts = event.parts();
            let numbers = AtomicUsize::new(1);
            on_threads(
                helpers,
                others,
                |helper, collector| {
                    let (event, queue) = parts.event_of(helper);
                    let mut runs = share(numbers.fetch_add(1, Ordering::Relaxed));
                    self.search_best(event, &mut runs, queue, wanted, collector)
                },
                || self.search_best(event, &mut share(0), queue, wanted, collector),
            )
        };
        scratch.put_back_team(team, claims);
        work
    }
}

fn total(runs: &[(u32, u32)]) -> usize {
    runs.iter().map(|(from, to)| (to - from) as usize).sum()
}

/// Memory for as many more threads as an event with this many entries is worth, at most `most`.
fn helpers(entries: usize, most: usize, team: &mut Vec<Helper>) -> &mut [Helper] {
    let wanted = (entries / ENTRIES_PER_THREAD).saturating_sub(1).min(most);
    if team.len() < wanted {
        team.resize_with(wanted, Helper::default);
    }
    &mut team[..wanted]
}

/// Cuts runs of entries into this many pieces of about the same size.
fn pieces(runs: &[(u32, u32)], entries: usize, count: usize) -> Vec<Vec<(u32, u32)>> {
    let size = entries.div_ceil(count).max(1) as u32;
    let (mut pieces, mut piece, mut room) = (Vec::with_capacity(count), vec![], size);
    for &(mut from, to) in runs {
        while from < to {
            let end = to.min(from + room);
            piece.push((from, end));
            room -= end - from;
            from = end;
            if room == 0 {
                pieces.push(std::mem::take(&mut piece));
                room = size;
            }
        }
    }
    pieces.push(piece);
    pieces
}

/// Runs `help` on a thread for each helper, with a collector of its own, and `own` on this one; adds up the work.
fn on_threads<C: Send>(
    helpers: &mut [Helper],
    collectors: &mut [C],
    help: impl Fn(&mut Helper, &mut C) -> Work + Sync,
    own: impl FnOnce() -> Work,
) -> Work {
    thread::scope(|scope| {
        let help = &help;
        let started: Vec<_> = helpers
            .iter_mut()
            .zip(collectors)
            .map(|(helper, collector)| scope.spawn(move || help(helper, collector)))
            .collect();
        let mut work = own();
        for thread in started {
            work += thread.join().unwrap_or_else(|panic| resume_unwind(panic));
        }
        work
    })
}

/// A walk that several threads are on.
struct SharedWalk {
    pieces: Vec<Vec<(u32, u32)>>,
    next: AtomicUsize,
    /// A collector wants no more.
    is_over: AtomicBool,
}

impl SharedWalk {
    /// Takes pieces until none is left. Single-row units stay in the set of the event.
    fn run(
        &self,
        event: &mut OneEvent<'_>,
        queue: &mut Vec<u32>,
        collector: &mut impl UnitCollector,
    ) -> Work {
        let mut work = Work::default();
        if self.take_pieces(event, queue, collector, &mut work).is_break() {
            self.is_over.store(true, Ordering::Relaxed);
        }
        work
    }

    fn take_pieces(
        &self,
        event: &mut OneEvent<'_>,
        queue: &mut Vec<u32>,
        collector: &mut impl UnitCollector,
        work: &mut Work,
    ) -> ControlFlow<()> {
        let mut is_first = true;
        while !self.is_over.load(Ordering::Relaxed)
            && let Some(piece) = self.pieces.get(self.next.fetch_add(1, Ordering::Relaxed))
        {
            event.queue_entries(piece.iter().map(|(from, to)| *from as usize..*to as usize), queue);
            if std::mem::take(&mut is_first) && collector.may_stop() {
                event.single_row.deliver(collector, event.bits)?;
            }
            event.drain(queue, work, collector)?;
        }
        ControlFlow::Continue(())
    }
}
