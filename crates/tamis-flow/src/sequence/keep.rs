//! Saves and restores sequences: each record once, each run of rows once, and partial matches that refer to
//! them.

use std::collections::BTreeMap;
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use super::machine::{Machine, Partial, Passed};
use super::plan::{SequenceId, SequencePlan, TreeId};
use super::taken::{Holders, Position, Run, TakenRow};
use super::tree::Tree;
use crate::codec::{Damage, Reader, Writer};
use crate::key::Key;
use crate::names::SharedNames;

impl SequencePlan {
    /// Writes the state of these sequences, which are all there are. Their definitions are written by whoever holds the
    /// queries; the order must be the same when the state is read.
    pub fn write(&self, sequences: &[SequenceId], to: &mut Writer) {
        to.unsigned(self.shed_keys);
        let mut rows: BTreeMap<u64, &TakenRow> = BTreeMap::new();
        for (_, held) in self.machines.iter() {
            rows.extend(held.machine.rows.iter().flatten().map(|row| (row.number, row)));
        }
        to.unsigned(rows.len() as u64);
        for row in rows.values() {
            to.unsigned(row.number);
            to.signed(row.time);
            to.record(&row.record);
        }
        let places: FxHashMap<SequenceId, u64> =
            sequences.iter().enumerate().map(|(at, id)| (*id, at as u64)).collect();
        for tree in self.trees_of(sequences) {
            let grown = &self.trees[tree];
            // In the order of their numbers, which decides the order of ties after reading too.
            let mut machines = grown.machines.clone();
            machines.sort_unstable_by_key(|number| self.machines[*number].number);
            to.unsigned(machines.len() as u64);
            for number in machines {
                to.values(self.machines.key(number));
                write_machine(&self.machines[number].machine, &grown.tree, &places, to);
            }
        }
    }

    /// The trees of some sequences, in their order.
    fn trees_of(&self, sequences: &[SequenceId]) -> Vec<TreeId> {
        let mut seen = FxHashSet::default();
        let trees = sequences.iter().map(|id| self.sequences[*id].tree);
        trees.filter(|tree| seen.insert(*tree)).collect()
    }

    /// Reads what [`write`](Self::write) wrote into a plan with the same sequences.
    pub fn read(&mut self, sequences: &[SequenceId], from: &mut Reader<'_>) -> Result<(), Damage> {
        self.shed_keys = from.unsigned()?;
        let mut names = SharedNames::default();
        let mut rows: FxHashMap<u64, TakenRow> = FxHashMap::default();
        for _ in 0..from.length()? {
            let (number, time, mut record) = (from.unsigned()?, from.signed()?, from.record()?);
            names.share(&mut record);
            let holders = Some(Holders::default());
            rows.insert(number, TakenRow { number, time, record: Arc::new(record), holders });
        }
        for tree in self.trees_of(sequences) {
            for _ in 0..from.length()? {
                let key = Key::from(from.values()?);
                let mut machine = read_machine(from, &self.trees[tree].tree, sequences, &rows)?;
                for row in machine.rows.iter().flatten() {
                    self.records.acquire(row);
                }
                machine.settle(&mut self.records);
                if machine.is_empty() || self.find(tree, &key).is_some() {
                    return Err(Damage);
                }
                self.hold(tree, &key, machine);
            }
        }
        Ok(())
    }
}

fn write_machine(machine: &Machine, tree: &Tree, places: &FxHashMap<SequenceId, u64>, to: &mut Writer) {
    let start = machine.rows.start();
    to.unsigned(machine.rows.len() as u64);
    for row in machine.rows.iter() {
        to.flag(row.is_some());
        if let Some(row) = row {
            to.unsigned(row.number);
        }
    }
    let mut runs: Vec<&Run> = vec![];
    let mut run_numbers: FxHashMap<*const Run, u64> = FxHashMap::default();
    for partial in &machine.partials {
        let is_new = |run: &&Run| !run_numbers.contains_key(&std::ptr::from_ref(*run));
        let mut new: Vec<&Run> = partial.taken.chain().take_while(is_new).collect();
        // What comes before a run is written before it.
        while let Some(run) = new.pop() {
            run_numbers.insert(run, runs.len() as u64);
            runs.push(run);
        }
    }
    to.unsigned(runs.len() as u64);
    for run in runs {
        to.unsigned(run.step.into());
        to.unsigned(run.first.wrapping_sub(start).into());
        to.unsigned(run.last.wrapping_sub(run.first).into());
        to.unsigned(run.before.as_ref().map_or(0, |before| run_numbers[&Arc::as_ptr(before)] + 1));
    }
    to.unsigned(machine.partials.len() as u64);
    for partial in &machine.partials {
        let node = &tree.nodes[partial.node];
        let through = node.sequences.iter().map(|sequence| places[sequence]).min();
        to.unsigned(partial.start_row);
        to.signed(partial.start_time);
        to.unsigned(through.unwrap_or(0));
        to.unsigned(node.step as u64);
        to.unsigned(partial.count.into());
        to.flag(partial.blocked);
        to.flag(partial.is_complete);
        to.unsigned(machine.end_of(partial));
        to.unsigned(run_numbers[&std::ptr::from_ref(&partial.taken)]);
    }
    let passed: BTreeMap<u64, &Passed> =
        machine.passed.iter().map(|(id, passed)| (places[id], passed)).collect();
    to.unsigned(passed.len() as u64);
    for (place, passed) in passed {
        to.unsigned(place);
        to.unsigned(passed.through);
        to.unsigned(passed.starts.len() as u64);
        passed.starts.iter().for_each(|start| to.unsigned(*start));
    }
}

fn read_machine(
    from: &mut Reader<'_>,
    tree: &Tree,
    sequences: &[SequenceId],
    rows: &FxHashMap<u64, TakenRow>,
) -> Result<Machine, Damage> {
    let mut machine = Machine::default();
    for _ in 0..from.length()? {
        let row = if from.flag()? { Some(rows.get(&from.unsigned()?).ok_or(Damage)?.clone()) } else { None };
        machine.rows.push(row);
    }
    let mut runs: Vec<Arc<Run>> = vec![];
    for _ in 0..from.length()? {
        let (step, first, more, before) =
            (from.unsigned()?, from.unsigned()?, from.unsigned()?, from.unsigned()?);
        let last = first.checked_add(more).filter(|last| *last < machine.rows.len() as u64).ok_or(Damage)?;
        let (first, last) = (first as Position, last as Position);
        if (first..=last).any(|position| machine.rows.get(position).is_none()) {
            return Err(Damage);
        }
        let before = match before.checked_sub(1) {
            Some(number) => Some(runs.get(number as usize).ok_or(Damage)?.clone()),
            None => None,
        };
        let step = u32::try_from(step).map_err(|_| Damage)?;
        runs.push(Arc::new(Run { step, first, last, before }));
    }
    for _ in 0..from.length()? {
        let (start_row, start_time) = (from.unsigned()?, from.signed()?);
        let ending = sequence_of(from, tree, sequences)?;
        let node =
            tree.endings.get(&ending).and_then(|ending| ending.path.get(from.unsigned().ok()? as usize));
        let node = *node.ok_or(Damage)?;
        let count = u32::try_from(from.unsigned()?).map_err(|_| Damage)?;
        let (blocked, is_complete, end_row) = (from.flag()?, from.flag()?, from.unsigned()?);
        let taken = Run::clone(runs.get(from.unsigned()? as usize).ok_or(Damage)?);
        if is_complete && tree.nodes[node].end.is_none() {
            return Err(Damage);
        }
        let partial = Partial { start_row, start_time, node, count, blocked, is_complete, taken };
        if machine.end_of(&partial) != end_row {
            return Err(Damage);
        }
        machine.partials.push(partial);
    }
    for _ in 0..from.length()? {
        let sequence = sequence_of(from, tree, sequences)?;
        let through = from.unsigned()?;
        let count = from.length()?;
        let starts = (0..count).map(|_| from.unsigned()).collect::<Result<_, _>>()?;
        machine.passed.insert(sequence, Passed { through, starts });
    }
    Ok(machine)
}

fn sequence_of(from: &mut Reader<'_>, tree: &Tree, sequences: &[SequenceId]) -> Result<SequenceId, Damage> {
    let sequence = *sequences.get(from.unsigned()? as usize).ok_or(Damage)?;
    if tree.endings.contains_key(&sequence) { Ok(sequence) } else { Err(Damage) }
}
