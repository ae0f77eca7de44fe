//! The rows that the partial matches of one key have taken, each kept once, and which of them a partial match took.
//!
//! ```text
//! rows           [ r0  r1  r2  r3  r4  r5 ]
//! start at r0     (step a: r0 to r3) ← (step b: r4 to r4)
//! start at r1     (step a: r1 to r3) ← (step b: r4 to r4)
//! ```
//!
//! A partial match is a chain of runs, the last one first. A greedy step takes one row after the other, so
//! that a run grows instead of the chain: a match of a thousand rows mostly has as many runs as steps. The
//! last run is stored in the partial match itself; the chains before it are shared.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use rustc_hash::FxHashSet;
use smallvec::SmallVec;
use tamis_core::event::Record;

use crate::key::record_bytes;

#[derive(Clone, Debug)]
pub(crate) struct TakenRow {
    pub number: u64,
    pub time: i64,
    pub record: Arc<Record>,
    /// How many keys hold the record; none: no other can.
    pub holders: Option<Holders>,
}

/// How many keys hold a record.
pub(crate) type Holders = Arc<AtomicU32>;

/// Where a row is among those of its key, counted from the first one there ever was. Four billion rows later a number comes
/// again: no key holds as many.
pub(crate) type Position = u32;

/// Rows that follow one another, taken for one step.
#[derive(Clone, Debug)]
pub(crate) struct Run {
    pub step: u32,
    /// Positions among the rows of the key.
    pub first: Position,
    pub last: Position,
    pub before: Option<Arc<Run>>,
}

/// A chain would be freed link by link on the stack, which thousands of links could exhaust.
impl Drop for Run {
    fn drop(&mut self) {
        let mut next = self.before.take();
        while let Some(run) = next {
            next = Arc::into_inner(run).and_then(|mut run| run.before.take());
        }
    }
}

impl Run {
    /// The chain with one more row. `runs` counts those that are not the last of a chain.
    pub fn taking(&self, step: u32, row: Position, runs: &mut usize) -> Run {
        if self.step == step && self.last.wrapping_add(1) == row {
            Run { step, first: self.first, last: row, before: self.before.clone() }
        } else {
            *runs += 1;
            Run { step, first: row, last: row, before: Some(Arc::new(self.clone())) }
        }
    }

    /// The first row.
    pub fn starting(row: Position) -> Run {
        Run { step: 0, first: row, last: row, before: None }
    }

    /// The position of the last row that a step took.
    pub fn last_of(&self, step: u32) -> Option<Position> {
        self.chain().find(|run| run.step == step).map(|run| run.last)
    }

    /// The positions of its rows.
    pub fn positions(&self) -> impl DoubleEndedIterator<Item = Position> {
        let first = self.first;
        (0..=self.last.wrapping_sub(first)).map(move |more| first.wrapping_add(more))
    }

    /// The runs from the last one to the first.
    pub fn chain(&self) -> impl Iterator<Item = &Run> {
        std::iter::once(self).chain(self.earlier().map(|run| &**run))
    }

    /// The runs before this one, the last one first.
    pub fn earlier(&self) -> impl Iterator<Item = &Arc<Run>> {
        std::iter::successors(self.before.as_ref(), |run| run.before.as_ref())
    }
}

/// As many rows of a key lie in place.
pub(super) const ROWS_IN_PLACE: usize = 3;

/// The rows of one key, by position. A row that nobody holds any more leaves a gap until those before it are gone.
#[derive(Debug, Default)]
pub(crate) struct TakenRows {
    rows: SmallVec<[Option<TakenRow>; ROWS_IN_PLACE]>,
    /// How many gaps there are before the first row, which are no more than the others.
    gone: u32,
    /// The position of the first row.
    first: Position,
}

impl TakenRows {
    pub fn get(&self, position: Position) -> Option<&TakenRow> {
        self.rows.get(self.gone as usize + position.wrapping_sub(self.first) as usize)?.as_ref()
    }

    pub fn push(&mut self, row: Option<TakenRow>) -> Position {
        self.rows.push(row);
        self.first.wrapping_add(self.len() as Position - 1)
    }

    /// By position, with the gaps.
    pub fn iter(&self) -> impl Iterator<Item = Option<&TakenRow>> {
        self.rows[self.gone as usize..].iter().map(Option::as_ref)
    }

    /// The position of the first one.
    pub fn start(&self) -> Position {
        self.first
    }

    pub fn len(&self) -> usize {
        self.rows.len() - self.gone as usize
    }

    /// Gives back the room of gaps at both ends, unless that would move more rows than there were gaps.
    fn trim(&mut self) {
        while let Some(None) = self.rows.last() {
            self.rows.pop();
        }
        self.gone = self.gone.min(self.rows.len() as u32);
        let gaps = self.rows[self.gone as usize..].iter().take_while(|row| row.is_none()).count() as u32;
        self.gone += gaps;
        self.first = self.first.wrapping_add(gaps);
        if self.gone as usize >= self.len() {
            self.rows.drain(..self.gone as usize);
            self.gone = 0;
        }
        if self.rows.spilled() && self.rows.len() < ROWS_IN_PLACE {
            self.rows.shrink_to_fit();
        }
    }

    /// Lets rows go that no chain holds, and says how many runs the chains share or might share.
    pub fn keep_only<'c>(&mut self, heads: impl Iterator<Item = &'c Run>, records: &mut Records) -> usize {
        let mut seen = Seen::default();
        let mut held: SmallVec<[bool; 64]> = SmallVec::from_elem(false, self.len());
        let place = |position: Position| position.wrapping_sub(self.first) as usize;
        let mut hold = |run: &Run| held[place(run.first)..=place(run.last)].fill(true);
        for head in heads {
            hold(head);
            for run in head.earlier() {
                if !seen.insert(Arc::as_ptr(run)) {
                    break;
                }
                hold(run);
            }
        }
        for (row, is_held) in self.rows[self.gone as usize..].iter_mut().zip(held) {
            if !is_held && let Some(gone) = row.take() {
                records.release(&gone);
            }
        }
        self.trim();
        seen.len()
    }
}

/// Runs that were seen: most keys have few, which need no table.
#[derive(Default)]
struct Seen {
    few: SmallVec<[*const Run; 16]>,
    many: FxHashSet<*const Run>,
}

impl Seen {
    /// Says whether the run is new.
    fn insert(&mut self, run: *const Run) -> bool {
        if self.few.contains(&run) {
            return false;
        }
        if self.few.len() < self.few.inline_size() {
            self.few.push(run);
            return true;
        }
        self.many.insert(run)
    }

    fn len(&self) -> usize {
        self.few.len() + self.many.len()
    }
}

/// The bytes of the records that rows of any key hold, each counted once however many partial matches took it.
#[derive(Debug, Default)]
pub(crate) struct Records {
    bytes: usize,
}

impl Records {
    /// One more key holds a record.
    pub fn acquire(&mut self, row: &TakenRow) {
        let holders = row.holders.as_ref();
        if holders.is_none_or(|holders| holders.fetch_add(1, Ordering::Relaxed) == 0) {
            self.bytes += record_bytes(&row.record);
        }
    }

    pub fn release(&mut self, row: &TakenRow) {
        let holders = row.holders.as_ref();
        if holders.is_none_or(|holders| holders.fetch_sub(1, Ordering::Relaxed) == 1) {
            self.bytes -= record_bytes(&row.record);
        }
    }

    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    /// Rows come and go, few and many, from both ends and in between, across the greatest position.
    #[test]
    fn rows_are_found_by_their_position_for_as_long_as_somebody_holds_them() {
        let mut rows = TakenRows { first: Position::MAX - 100, ..TakenRows::default() };
        let (mut expected, mut records) = (BTreeMap::<u64, Position>::new(), Records::default());
        let mut state = 7u64;
        let mut draw = |bound: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % bound
        };
        for number in 0..2_000u64 {
            let row = TakenRow { number, time: 0, record: Arc::default(), holders: None };
            records.acquire(&row);
            expected.insert(number, rows.push(Some(row)));
            let most = [3, 40, 1][number as usize / 100 % 3];
            if draw(3) == 0 {
                while expected.len() > most {
                    let gone = *expected.keys().nth(draw(expected.len() as u64) as usize / 2).unwrap();
                    expected.remove(&gone);
                }
                if draw(20) == 0 {
                    expected.clear();
                }
                let heads: Vec<Run> = expected.values().map(|position| Run::starting(*position)).collect();
                rows.keep_only(heads.iter(), &mut records);
                assert_eq!(rows.iter().flatten().count(), expected.len());
                assert_eq!(records.bytes(), expected.len() * record_bytes(&Record::default()));
                assert_eq!(rows.start(), expected.values().next().copied().unwrap_or(rows.start()));
            }
            for (number, position) in &expected {
                assert_eq!(rows.get(*position).map(|row| row.number), Some(*number));
            }
            assert!(rows.get(rows.start().wrapping_sub(1)).is_none());
        }
    }

    #[test]
    fn a_run_grows_across_the_greatest_position() {
        let mut runs = 0;
        let run = Run::starting(Position::MAX).taking(0, 0, &mut runs).taking(0, 1, &mut runs);
        assert_eq!((run.positions().collect::<Vec<_>>(), runs), (vec![Position::MAX, 0, 1], 0));
    }
}
