//! The sequences of one stream. An event reaches those whose steps it satisfies, by the selections that are true for it,
//! and those that must see every row of a key where they have begun.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};
use std::sync::Arc;

use rustc_hash::FxHashMap;
use tamis_core::Result;
use tamis_core::error::ExpressionError;
use tamis_core::event::Record;
use tamis_core::expr::Expr;
use tamis_core::term::Term;

use super::machine::{Condition, Machine, Partial, Program, Row, Step, chained};
use crate::codec::{Damage, Reader, Writer};
use crate::key::{Key, key_bytes, key_of};
use crate::rule::attributes;
use crate::selection::{SelectionId, Selections};
use crate::slots::Slots;
use crate::text::{SequenceText, StepText};

pub(crate) type SequenceId = u32;

/// A match of a sequence: which, the numbers of rows by step, and the events.
pub(crate) struct Told {
    pub sequence: SequenceId,
    /// When the clock made it final, if no row did: the time and its first row.
    pub order: (i64, u64),
    pub time: i64,
    pub counts: Vec<(Arc<str>, i64)>,
    pub events: Vec<Arc<Record>>,
}

#[derive(Default)]
pub(crate) struct SequencePlan {
    sequences: Slots<Sequence>,
    by_text: FxHashMap<String, Vec<SequenceId>>,
    by_selection: FxHashMap<SelectionId, Vec<SequenceId>>,
    /// Those with a condition that no index can decide.
    always: Vec<SequenceId>,
    /// Of strict sequences, by their BY terms: which have begun at a key, and so must see its every row.
    strict: FxHashMap<String, Begun>,
    /// When partial matches come to their end: (time, first row, sequence, key).
    deadlines: BinaryHeap<Reverse<(i64, u64, SequenceId, u64)>>,
    keys: FxHashMap<u64, (SequenceId, Key)>,
    next_key: u64,
    bytes: usize,
    pub shed_keys: u64,
}

struct Begun {
    terms: Vec<Term>,
    sequences: usize,
    at: FxHashMap<Key, Vec<SequenceId>>,
}

struct Sequence {
    text: String,
    epoch: u64,
    uses: usize,
    by: Vec<Term>,
    program: Program,
    machines: FxHashMap<Key, Held>,
}

struct Held {
    machine: Machine,
    number: u64,
    /// The deadline that is in the queue.
    queued: Option<i64>,
    bytes: usize,
}

impl SequencePlan {
    /// The sequence with this definition, which is used once more.
    pub fn acquire(
        &mut self,
        written: &SequenceText,
        selections: &mut Selections,
        epoch: u64,
    ) -> Result<SequenceId> {
        let text = written.to_string();
        let same = self.by_text.get(&text).map_or(&[][..], |ids| ids);
        if let Some(&id) = same.iter().find(|id| self.sequences[**id].epoch == epoch) {
            self.sequences[id].uses += 1;
            return Ok(id);
        }
        let program = match program(written, selections) {
            Ok(program) => program,
            Err((error, acquired)) => {
                acquired.into_iter().try_for_each(|selection| selections.release(selection))?;
                return Err(error);
            }
        };
        let (used, has_open) = (program.selections(), program.has_open_condition());
        if program.strict {
            let terms = written.by.clone();
            let begun = || Begun { terms, sequences: 0, at: FxHashMap::default() };
            self.strict.entry(by_text(&written.by)).or_insert_with(begun).sequences += 1;
        }
        let sequence = Sequence {
            text: text.clone(),
            epoch,
            uses: 1,
            by: written.by.clone(),
            program,
            machines: FxHashMap::default(),
        };
        let id = self.sequences.insert(sequence);
        self.by_text.entry(text).or_default().push(id);
        for selection in used.iter().collect::<BTreeSet<_>>() {
            self.by_selection.entry(*selection).or_default().push(id);
        }
        if has_open {
            self.always.push(id);
        }
        Ok(id)
    }

    /// Uses a sequence once less.
    pub fn release(&mut self, id: SequenceId, selections: &mut Selections) -> Result<()> {
        self.sequences[id].uses -= 1;
        if self.sequences[id].uses > 0 {
            return Ok(());
        }
        let keys: Vec<Key> = self.sequences[id].machines.keys().cloned().collect();
        keys.iter().for_each(|key| self.drop_machine(id, key));
        let sequence = self.sequences.remove(id).expect("it is in use");
        if sequence.program.strict {
            let by = by_text(&sequence.by);
            if let Some(begun) = self.strict.get_mut(&by) {
                begun.sequences -= 1;
                if begun.sequences == 0 {
                    self.strict.remove(&by);
                }
            }
        }
        if let Some(same) = self.by_text.get_mut(&sequence.text) {
            same.retain(|other| *other != id);
            if same.is_empty() {
                self.by_text.remove(&sequence.text);
            }
        }
        self.always.retain(|other| *other != id);
        for selection in sequence.program.selections() {
            if let Some(users) = self.by_selection.get_mut(&selection) {
                users.retain(|other| *other != id);
                if users.is_empty() {
                    self.by_selection.remove(&selection);
                }
            }
            selections.release(selection)?;
        }
        Ok(())
    }

    /// An event, in its turn.
    pub fn feed(
        &mut self,
        number: u64,
        time: i64,
        record: &Arc<Record>,
        selected: &[SelectionId],
    ) -> Vec<Told> {
        let mut concerned: Vec<SequenceId> =
            selected.iter().filter_map(|id| self.by_selection.get(id)).flatten().copied().collect();
        concerned.extend(&self.always);
        for begun in self.strict.values() {
            concerned.extend(begun.at.get(&key_of(&begun.terms, record)).into_iter().flatten());
        }
        concerned.sort_unstable();
        concerned.dedup();
        let row = Row { number, time, record, selected };
        let mut told = vec![];
        for id in concerned {
            let sequence = &mut self.sequences[id];
            let key = key_of(&sequence.by, record);
            if key.iter().any(|value| matches!(value, tamis_core::event::Value::Null)) {
                continue;
            }
            let mut found = vec![];
            match sequence.machines.get_mut(&key) {
                Some(held) => {
                    held.machine.feed(&sequence.program, &row, &mut found);
                    self.settle(id, &key);
                }
                None => {
                    let mut machine = Machine::default();
                    machine.feed(&sequence.program, &row, &mut found);
                    if !machine.is_empty() {
                        self.hold(id, key, machine);
                    }
                }
            }
            told.extend(found.into_iter().map(|partial| self.told(id, &partial)));
        }
        told
    }

    /// Partial matches whose time is over before this moment end; what waited for them is told.
    pub fn expire(&mut self, now: i64) -> Vec<Told> {
        let mut told = vec![];
        while let Some(Reverse((deadline, _, id, number))) = self.deadlines.peek().copied() {
            if deadline >= now {
                break;
            }
            self.deadlines.pop();
            let Some((_, key)) = self.keys.get(&number).cloned() else { continue };
            let Some(sequence) = self.sequences.get_mut(id) else { continue };
            let Some(held) = sequence.machines.get_mut(&key) else { continue };
            if held.queued != Some(deadline) {
                continue;
            }
            held.queued = None;
            let mut found = vec![];
            held.machine.expire(&sequence.program, deadline.saturating_add(1), &mut found);
            self.settle(id, &key);
            let ended = found.into_iter().map(|partial| {
                let told = self.told(id, &partial);
                Told { order: (deadline, told.order.1), ..told }
            });
            told.extend(ended);
        }
        told
    }

    fn told(&self, id: SequenceId, partial: &Partial) -> Told {
        let rows = partial.rows();
        let steps = self.sequences[id].program.steps.iter().enumerate();
        let counts = steps.filter_map(|(at, step)| {
            Some((step.name.clone()?, rows.iter().filter(|taken| taken.step == at).count() as i64))
        });
        Told {
            sequence: id,
            order: (partial.start_time, partial.start_row),
            time: rows.last().map_or(0, |taken| taken.time),
            counts: counts.collect(),
            events: rows.iter().map(|taken| taken.record.clone()).collect(),
        }
    }

    fn hold(&mut self, id: SequenceId, key: Key, machine: Machine) {
        let number = self.next_key;
        self.next_key += 1;
        self.keys.insert(number, (id, key.clone()));
        if self.sequences[id].program.strict
            && let Some(begun) = self.strict.get_mut(&by_text(&self.sequences[id].by))
        {
            begun.at.entry(key.clone()).or_default().push(id);
        }
        self.sequences[id].machines.insert(key.clone(), Held { machine, number, queued: None, bytes: 0 });
        self.settle(id, &key);
    }

    /// Drops what is empty, counts the bytes, and queues the next deadline.
    fn settle(&mut self, id: SequenceId, key: &Key) {
        let sequence = &mut self.sequences[id];
        let Some(held) = sequence.machines.get_mut(key) else { return };
        if held.machine.is_empty() {
            self.drop_machine(id, key);
            return;
        }
        self.bytes -= held.bytes;
        held.bytes = held.machine.bytes() + size_of::<Held>() + 3 * key_bytes(key) + 64;
        self.bytes += held.bytes;
        let deadline = held.machine.deadline(&sequence.program);
        if held.queued != deadline.map(|(time, _)| time) {
            held.queued = deadline.map(|(time, _)| time);
            if let Some((time, row)) = deadline {
                self.deadlines.push(Reverse((time, row, id, held.number)));
            }
        }
    }

    fn drop_machine(&mut self, id: SequenceId, key: &Key) {
        let sequence = &mut self.sequences[id];
        let Some(held) = sequence.machines.remove(key) else { return };
        self.bytes -= held.bytes;
        self.keys.remove(&held.number);
        if sequence.program.strict
            && let Some(begun) = self.strict.get_mut(&by_text(&sequence.by))
            && let Some(ids) = begun.at.get_mut(key)
        {
            ids.retain(|other| *other != id);
            if ids.is_empty() {
                begun.at.remove(key);
            }
        }
    }

    pub fn bytes(&self) -> usize {
        self.bytes + self.deadlines.len() * 40
    }

    pub fn len(&self) -> usize {
        self.sequences.len()
    }

    /// Drops the keys whose partial matches began first until the bytes are at most these.
    pub fn shed(&mut self, most: usize) {
        let mut held: Vec<(u64, SequenceId, Key)> = vec![];
        for (id, sequence) in self.sequences.iter() {
            let starts = sequence.machines.iter();
            held.extend(starts.map(|(key, held)| (held.machine.partials()[0].start_row, id, key.clone())));
        }
        held.sort_unstable_by_key(|(start, id, _)| (*start, *id));
        for (_, id, key) in held {
            if self.bytes() <= most {
                break;
            }
            self.drop_machine(id, &key);
            self.shed_keys += 1;
        }
    }

    /// The text of a sequence, how many queries use it, its keys, partial matches and bytes.
    pub fn describe(&self, id: SequenceId) -> (&str, usize, usize, usize, usize) {
        let sequence = &self.sequences[id];
        let held = || sequence.machines.values();
        let partials = held().map(|held| held.machine.partials().len()).sum();
        let bytes = held().map(|held| held.bytes).sum();
        (&sequence.text, sequence.uses, sequence.machines.len(), partials, bytes)
    }

    /// How many partial matches there are at the key of a record.
    pub fn look(&self, id: SequenceId, record: &Record) -> usize {
        let sequence = &self.sequences[id];
        let held = sequence.machines.get(&key_of(&sequence.by, record));
        held.map_or(0, |held| held.machine.partials().len())
    }

    pub fn epoch(&self, id: SequenceId) -> u64 {
        self.sequences[id].epoch
    }

    // --- keeping -----------------------------------------------------------------------------------

    pub fn write(&self, id: SequenceId, to: &mut Writer) {
        let sequence = &self.sequences[id];
        // In the order of their numbers, which decides the order of ties after reading too.
        let mut machines: Vec<_> = sequence.machines.iter().collect();
        machines.sort_unstable_by_key(|(_, held)| held.number);
        to.unsigned(machines.len() as u64);
        for (key, held) in machines {
            to.values(key);
            to.unsigned(held.machine.partials().len() as u64);
            for partial in held.machine.partials() {
                let (start_row, start_time, step, count, blocked, is_complete, end_row) = partial.flags();
                to.unsigned(start_row);
                to.signed(start_time);
                to.unsigned(step as u64);
                to.unsigned(count.into());
                to.flag(blocked);
                to.flag(is_complete);
                to.unsigned(end_row);
                let rows = partial.rows();
                to.unsigned(rows.len() as u64);
                for taken in rows {
                    to.unsigned(taken.step as u64);
                    to.unsigned(taken.row);
                    to.signed(taken.time);
                    to.record(&taken.record);
                }
            }
        }
    }

    pub fn read(&mut self, id: SequenceId, from: &mut Reader<'_>) -> std::result::Result<(), Damage> {
        let steps = self.sequences[id].program.steps.len() as u64;
        let mut records: FxHashMap<u64, Arc<Record>> = FxHashMap::default();
        for _ in 0..from.unsigned()? {
            let key = from.values()?;
            let count = from.length()?;
            let mut partials = Vec::with_capacity(count);
            for _ in 0..count {
                let (start_row, start_time) = (from.unsigned()?, from.signed()?);
                let step = from.unsigned()?;
                let count = u32::try_from(from.unsigned()?).map_err(|_| Damage)?;
                let (blocked, is_complete, end_row) = (from.flag()?, from.flag()?, from.unsigned()?);
                let mut taken = None;
                for _ in 0..from.length()? {
                    let (of, row, time) = (from.unsigned()?, from.unsigned()?, from.signed()?);
                    let record = from.record()?;
                    let record = records.entry(row).or_insert_with(|| Arc::new(record)).clone();
                    if of >= steps {
                        return Err(Damage);
                    }
                    taken = Some(chained(of as usize, row, time, record, taken));
                }
                let taken = taken.filter(|_| step < steps).ok_or(Damage)?;
                let flags = (start_row, start_time, step as usize, count, blocked, is_complete, end_row);
                partials.push(Partial::from_flags(flags, taken));
            }
            if !partials.is_empty() {
                self.hold(id, key, Machine::from_partials(partials));
            }
        }
        Ok(())
    }
}

impl Program {
    fn conditions(&self) -> impl Iterator<Item = &Condition> {
        self.steps.iter().flat_map(|step| [Some(&step.condition), step.absent.as_ref()]).flatten()
    }

    fn selections(&self) -> Vec<SelectionId> {
        self.conditions().filter_map(|condition| condition.selection).collect()
    }

    fn has_open_condition(&self) -> bool {
        self.conditions().any(|condition| condition.selection.is_none())
    }
}

fn by_text(terms: &[Term]) -> String {
    terms.iter().map(Term::to_string).collect::<Vec<_>>().join(", ")
}

/// The program of a sequence, or an error with the selections that were acquired before it.
fn program(
    written: &SequenceText,
    selections: &mut Selections,
) -> std::result::Result<Program, (tamis_core::Error, Vec<SelectionId>)> {
    let mut acquired = vec![];
    let mut referenced = BTreeSet::new();
    let mut steps: Vec<Step> = vec![];
    for (at, step) in written.steps.iter().enumerate() {
        let names: Vec<Option<&str>> = written.steps[..at].iter().map(|step| step.name.as_deref()).collect();
        let mut condition = |expression: &Expr, own: Option<&str>| {
            if let Some(later) = speaks_of(expression, &written.steps[at + 1..]) {
                let error = ExpressionError::new(format!("a step cannot speak of the later step {later}"));
                return Err(error.with_hint("compare in the later step instead").into());
            }
            let (fixed, residual) = split(expression, &names, own, &mut referenced);
            let selection = fixed.map(|fixed| selections.acquire(&fixed)).transpose()?;
            acquired.extend(selection);
            Ok(Condition { selection, residual })
        };
        let made = condition(&step.condition, step.name.as_deref()).and_then(|made| {
            let absent = step.absent.as_ref().map(|absent| condition(absent, None)).transpose()?;
            Ok((made, absent))
        });
        let (condition, absent) = match made {
            Ok(made) => made,
            Err(error) => return Err((error, acquired)),
        };
        let name = step.name.as_deref().map(Arc::from);
        steps.push(Step { name, condition, least: step.least, most: step.most, absent });
    }
    Ok(Program {
        steps,
        strict: written.strict,
        within: written.within,
        skip_to_next: written.skip_to_next,
        referenced: referenced.into_iter().collect(),
    })
}

/// The first of these steps that an expression speaks of.
fn speaks_of<'s>(expression: &Expr, steps: &'s [StepText]) -> Option<&'s str> {
    let mut names = BTreeSet::new();
    attributes(expression, &mut names);
    let spoken: Vec<&str> = names.iter().filter_map(|name| Some(name.split_once('.')?.0)).collect();
    steps.iter().filter_map(|step| step.name.as_deref()).find(|name| spoken.contains(name))
}

/// What of a condition speaks of the row alone, and what of earlier steps too.
fn split(
    expression: &Expr,
    earlier: &[Option<&str>],
    own: Option<&str>,
    referenced: &mut BTreeSet<usize>,
) -> (Option<Expr>, Option<Expr>) {
    let children = match expression {
        Expr::And(children) => children.clone(),
        other => vec![other.clone()],
    };
    let (mut fixed, mut residual) = (vec![], vec![]);
    for child in children {
        let mut names = BTreeSet::new();
        attributes(&child, &mut names);
        let mut speaks_of_steps = false;
        for name in names {
            let Some((step, _)) = name.split_once('.') else { continue };
            if let Some(at) = earlier.iter().position(|known| *known == Some(step)) {
                referenced.insert(at);
                speaks_of_steps = true;
            }
            speaks_of_steps |= own == Some(step);
        }
        if speaks_of_steps { residual.push(child) } else { fixed.push(child) }
    }
    (joined(fixed), joined(residual))
}

fn joined(mut children: Vec<Expr>) -> Option<Expr> {
    match children.len() {
        0 => None,
        1 => children.pop(),
        _ => Some(Expr::And(children)),
    }
}
