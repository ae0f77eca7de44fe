//! The partial matches of one sequence at one key.
//!
//! They are a list in the order of preference: earlier starts first and, of one start, the preferred choices first. Each
//! row lets every partial match branch in the order that `docs/flows.md` fixes: take the row for the step it is in, take
//! it for the next step, skip it. A match that is complete waits in its place until nothing is left above it. What is
//! below it and starts no later than it ends can never be told, whatever happens above:
//! a match from above ends later still, and excludes it too.

use std::sync::Arc;

use rustc_hash::FxHashSet;
use tamis_core::event::{Record, Value, ValueRef};
use tamis_core::expr::{Expr, evaluate};
use tamis_core::term::{NOW, STRINGS};

use crate::key::record_bytes;
use crate::selection::SelectionId;

/// A condition on a row: what an index decides, and what is left because it speaks of earlier steps.
#[derive(Debug)]
pub(crate) struct Condition {
    pub selection: Option<SelectionId>,
    pub residual: Option<Expr>,
}

#[derive(Debug)]
pub(crate) struct Step {
    pub name: Option<Arc<str>>,
    pub condition: Condition,
    pub least: u32,
    pub most: Option<u32>,
    pub absent: Option<Condition>,
}

/// What a machine runs.
#[derive(Debug)]
pub(crate) struct Program {
    pub steps: Vec<Step>,
    pub strict: bool,
    pub within: i64,
    pub skip_to_next: bool,
    /// The steps whose rows some condition speaks of.
    pub referenced: Vec<usize>,
}

/// A row as a machine sees it.
pub(crate) struct Row<'r> {
    pub number: u64,
    pub time: i64,
    pub record: &'r Arc<Record>,
    /// The selections that are true for it, in order.
    pub selected: &'r [SelectionId],
}

/// The rows that a partial match has taken, the last one first; partial matches share what they have in common.
#[derive(Debug)]
pub(crate) struct Taken {
    pub step: usize,
    pub row: u64,
    pub time: i64,
    pub record: Arc<Record>,
    pub before: Option<Arc<Taken>>,
    bytes: usize,
}

/// A chain would be freed link by link on the stack, which thousands of links could exhaust.
impl Drop for Taken {
    fn drop(&mut self) {
        let mut next = self.before.take();
        while let Some(link) = next {
            next = Arc::into_inner(link).and_then(|mut link| link.before.take());
        }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Partial {
    pub start_row: u64,
    pub start_time: i64,
    step: usize,
    /// How many rows the step has taken; no further than it matters.
    count: u32,
    /// What must be absent was seen since the last row that was taken.
    blocked: bool,
    is_complete: bool,
    end_row: u64,
    pub taken: Arc<Taken>,
}

#[derive(Debug, Default)]
pub(crate) struct Machine {
    partials: Vec<Partial>,
}

impl Program {
    fn holds(
        &self,
        condition: &Condition,
        row: &Row<'_>,
        taken: Option<&Arc<Taken>>,
        own: Option<&str>,
    ) -> bool {
        if let Some(selection) = condition.selection
            && row.selected.binary_search(&selection).is_err()
        {
            return false;
        }
        let Some(residual) = &condition.residual else { return true };
        let value_of = |name: &str| {
            if name == NOW {
                return Some(ValueRef::Timestamp(row.time));
            }
            if name == STRINGS {
                return Some(row.record.strings().as_ref());
            }
            if let Some((step, attribute)) = name.split_once('.') {
                if own == Some(step) {
                    return row.record.get(attribute).map(Value::as_ref);
                }
                if let Some(at) = self.steps.iter().position(|known| known.name.as_deref() == Some(step)) {
                    let record = last_of(at, taken)?;
                    return record.record.get(attribute).map(Value::as_ref);
                }
            }
            row.record.get(name).map(Value::as_ref)
        };
        let outcome = evaluate(residual, &value_of);
        outcome.can_be_true
    }

    fn takes(&self, step: usize, row: &Row<'_>, taken: Option<&Arc<Taken>>) -> bool {
        let step = &self.steps[step];
        self.holds(&step.condition, row, taken, step.name.as_deref())
    }
}

fn last_of(step: usize, taken: Option<&Arc<Taken>>) -> Option<&Taken> {
    let mut link = taken;
    while let Some(taken) = link {
        if taken.step == step {
            return Some(taken);
        }
        link = taken.before.as_ref();
    }
    None
}

fn link(step: usize, row: &Row<'_>, before: Option<&Arc<Taken>>) -> Arc<Taken> {
    chained(step, row.number, row.time, row.record.clone(), before.cloned())
}

pub(crate) fn chained(
    step: usize,
    row: u64,
    time: i64,
    record: Arc<Record>,
    before: Option<Arc<Taken>>,
) -> Arc<Taken> {
    let bytes = before.as_ref().map_or(0, |before| before.bytes) + size_of::<Taken>() + record_bytes(&record);
    Arc::new(Taken { step, row, time, record, before, bytes })
}

impl Partial {
    fn new(program: &Program, row: &Row<'_>) -> Self {
        let mut partial = Self {
            start_row: row.number,
            start_time: row.time,
            step: 0,
            count: 1,
            blocked: false,
            is_complete: false,
            end_row: row.number,
            taken: link(0, row, None),
        };
        partial.settle(program);
        partial
    }

    /// The same, with the row taken for a step.
    fn taking(&self, program: &Program, step: usize, row: &Row<'_>) -> Self {
        let mut next = Self {
            step,
            count: if step == self.step { self.count + 1 } else { 1 },
            blocked: false,
            end_row: row.number,
            taken: link(step, row, Some(&self.taken)),
            ..self.clone()
        };
        next.settle(program);
        next
    }

    fn settle(&mut self, program: &Program) {
        let step = &program.steps[self.step];
        self.is_complete = self.step + 1 == program.steps.len() && self.count >= step.least;
        if step.most.is_none() {
            self.count = self.count.min(step.least);
        }
    }

    fn can_take_more(&self, program: &Program) -> bool {
        program.steps[self.step].most.is_none_or(|most| self.count < most)
    }

    /// Adds what becomes of it at a row, in the order of preference.
    fn branch(&self, program: &Program, row: &Row<'_>, into: &mut Vec<Self>) {
        let taken = Some(&self.taken);
        if self.can_take_more(program) && program.takes(self.step, row, taken) {
            into.push(self.taking(program, self.step, row));
        }
        let has_enough = self.count >= program.steps[self.step].least;
        let next = self.step + 1;
        if has_enough && !self.blocked && next < program.steps.len() && program.takes(next, row, taken) {
            into.push(self.taking(program, next, row));
        }
        if !program.strict {
            let mut skipping = self.clone();
            let absent = program.steps.get(next).and_then(|step| step.absent.as_ref());
            skipping.blocked |= absent.is_some_and(|absent| program.holds(absent, row, taken, None));
            if !skipping.blocked || skipping.can_take_more(program) {
                into.push(skipping);
            }
        }
    }

    /// What decides its future.
    fn future(&self, program: &Program) -> (u64, usize, u32, bool, Vec<Option<u64>>) {
        let rows =
            program.referenced.iter().map(|step| last_of(*step, Some(&self.taken)).map(|taken| taken.row));
        (self.start_row, self.step, self.count, self.blocked, rows.collect())
    }

    pub fn deadline(&self, program: &Program) -> i64 {
        self.start_time.saturating_add(program.within)
    }

    /// The rows it has taken, in order.
    pub fn rows(&self) -> Vec<&Taken> {
        let mut rows = vec![];
        let mut link = Some(&self.taken);
        while let Some(taken) = link {
            rows.push(&**taken);
            link = taken.before.as_ref();
        }
        rows.reverse();
        rows
    }

    pub fn flags(&self) -> (u64, i64, usize, u32, bool, bool, u64) {
        (self.start_row, self.start_time, self.step, self.count, self.blocked, self.is_complete, self.end_row)
    }

    pub fn from_flags(flags: (u64, i64, usize, u32, bool, bool, u64), taken: Arc<Taken>) -> Self {
        let (start_row, start_time, step, count, blocked, is_complete, end_row) = flags;
        Self { start_row, start_time, step, count, blocked, is_complete, end_row, taken }
    }
}

impl Machine {
    pub fn is_empty(&self) -> bool {
        self.partials.is_empty()
    }

    /// A row of the key. Matches that are final are added to `told`.
    pub fn feed(&mut self, program: &Program, row: &Row<'_>, told: &mut Vec<Partial>) {
        let mut next: Vec<Partial> = Vec::with_capacity(self.partials.len() + 1);
        for partial in &self.partials {
            if partial.is_complete {
                next.push(partial.clone());
            } else {
                partial.branch(program, row, &mut next);
            }
        }
        if program.takes(0, row, None) {
            next.push(Partial::new(program, row));
        }
        self.partials = pruned(program, next);
        self.tell(program, told);
    }

    /// Lets partial matches go whose time is over before this moment.
    pub fn expire(&mut self, program: &Program, now: i64, told: &mut Vec<Partial>) {
        self.partials.retain(|partial| partial.is_complete || partial.deadline(program) >= now);
        self.tell(program, told);
    }

    /// Takes out the complete matches that nothing above can replace.
    fn tell(&mut self, program: &Program, told: &mut Vec<Partial>) {
        if !self.partials.iter().any(|partial| partial.is_complete) {
            return;
        }
        let mut kept: Vec<Partial> = Vec::with_capacity(self.partials.len());
        for partial in self.partials.drain(..) {
            let is_open = match kept.last() {
                None => true,
                Some(above) => program.skip_to_next && above.start_row != partial.start_row,
            };
            if partial.is_complete && is_open { told.push(partial) } else { kept.push(partial) }
        }
        self.partials = kept;
    }

    /// When the first partial match that is not complete comes to its end.
    pub fn deadline(&self, program: &Program) -> Option<(i64, u64)> {
        let open = self.partials.iter().find(|partial| !partial.is_complete)?;
        Some((open.deadline(program), open.start_row))
    }

    pub fn bytes(&self) -> usize {
        self.partials.iter().map(|partial| size_of::<Partial>() + partial.taken.bytes).sum()
    }

    pub fn partials(&self) -> &[Partial] {
        &self.partials
    }

    pub fn from_partials(partials: Vec<Partial>) -> Self {
        Self { partials }
    }
}

/// Without those that can never be told: below a complete match that excludes them, or with the same future as one
/// above.
fn pruned(program: &Program, partials: Vec<Partial>) -> Vec<Partial> {
    let mut kept: Vec<Partial> = Vec::with_capacity(partials.len());
    let mut futures = FxHashSet::default();
    // Of the last complete match above: what it excludes.
    let mut excluded: Option<(u64, u64)> = None;
    for partial in partials {
        let is_excluded = excluded.is_some_and(|(start, end)| {
            if program.skip_to_next { partial.start_row == start } else { partial.start_row <= end }
        });
        if is_excluded {
            continue;
        }
        if partial.is_complete {
            excluded = Some((partial.start_row, partial.end_row));
        } else if !futures.insert(partial.future(program)) {
            continue;
        }
        kept.push(partial);
    }
    kept
}
