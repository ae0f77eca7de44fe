//! The rows that the partial matches of one key have taken, each kept once, and which of them a partial match took.
//!
//! ```text
//! rows           [ r0  r1  r2  r3  r4  r5 ]
//! start at r0     (step a: r0 to r3) ← (step b: r4 to r4)
//! start at r1     (step a: r1 to r3) ← (step b: r4 to r4)
//! ```
//!
//! A partial match is a chain of runs, the last one first. A greedy step takes one row after the other, so that a run
//! grows instead of the chain: a match of a thousand rows has as many runs as it has steps, mostly. Chains share what they
//! have in common.

use std::collections::VecDeque;
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};
use tamis_core::event::Record;

use crate::key::record_bytes;

#[derive(Clone, Debug)]
pub(crate) struct TakenRow {
    pub number: u64,
    pub time: i64,
    pub record: Arc<Record>,
}

/// Rows that follow one another, taken for one step.
#[derive(Debug)]
pub(crate) struct Run {
    pub step: usize,
    /// Positions among the rows of the key.
    pub first: u64,
    pub last: u64,
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
    /// The chain with one more row.
    pub fn taking(head: Option<&Arc<Run>>, step: usize, row: u64) -> Arc<Run> {
        match head {
            Some(head) if head.step == step && head.last + 1 == row => {
                Arc::new(Run { step, first: head.first, last: row, before: head.before.clone() })
            }
            _ => Arc::new(Run { step, first: row, last: row, before: head.cloned() }),
        }
    }

    /// The position of the last row that a step took.
    pub fn last_of(head: &Arc<Run>, step: usize) -> Option<u64> {
        Self::chain(head).find(|run| run.step == step).map(|run| run.last)
    }

    /// The runs from the last one to the first.
    pub fn chain(head: &Arc<Run>) -> impl Iterator<Item = &Arc<Run>> {
        std::iter::successors(Some(head), |run| run.before.as_ref())
    }
}

/// The rows of one key, by position. A row that nobody holds any more leaves a gap until those before it are gone.
#[derive(Debug, Default)]
pub(crate) struct TakenRows {
    rows: VecDeque<Option<TakenRow>>,
    first: u64,
}

impl TakenRows {
    pub fn get(&self, position: u64) -> Option<&TakenRow> {
        self.rows.get(position.checked_sub(self.first)? as usize)?.as_ref()
    }

    pub fn push(&mut self, row: Option<TakenRow>) -> u64 {
        self.rows.push_back(row);
        self.first + self.rows.len() as u64 - 1
    }

    /// By position, with the gaps.
    pub fn iter(&self) -> impl Iterator<Item = Option<&TakenRow>> {
        self.rows.iter().map(Option::as_ref)
    }

    /// The position of the first one.
    pub fn start(&self) -> u64 {
        self.first
    }

    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Lets rows go that no chain holds, and says how many runs the chains have together.
    pub fn keep_only<'c>(
        &mut self,
        heads: impl Iterator<Item = &'c Arc<Run>>,
        records: &mut Records,
    ) -> usize {
        let mut seen: FxHashSet<*const Run> = FxHashSet::default();
        let mut held = vec![false; self.rows.len()];
        for head in heads {
            for run in Run::chain(head) {
                if !seen.insert(Arc::as_ptr(run)) {
                    break;
                }
                held[(run.first - self.first) as usize..=(run.last - self.first) as usize].fill(true);
            }
        }
        for (row, is_held) in self.rows.iter_mut().zip(held) {
            if !is_held && let Some(gone) = row.take() {
                records.release(gone.number);
            }
        }
        while let Some(None) = self.rows.back() {
            self.rows.pop_back();
        }
        while let Some(None) = self.rows.front() {
            self.rows.pop_front();
            self.first += 1;
        }
        seen.len()
    }
}

/// The records that rows of any key hold, each counted once however many partial matches took it.
#[derive(Debug, Default)]
pub(crate) struct Records {
    held: FxHashMap<u64, (u32, usize)>,
    bytes: usize,
}

impl Records {
    pub fn acquire(&mut self, number: u64, record: &Record) {
        let (uses, bytes) = self.held.entry(number).or_insert_with(|| (0, record_bytes(record) + 32));
        *uses += 1;
        if *uses == 1 {
            self.bytes += *bytes;
        }
    }

    pub fn release(&mut self, number: u64) {
        let Some((uses, bytes)) = self.held.get_mut(&number) else { return };
        *uses -= 1;
        if *uses == 0 {
            self.bytes -= *bytes;
            self.held.remove(&number);
        }
    }

    pub fn bytes(&self) -> usize {
        self.bytes
    }
}
