//! The sequences of one stream. An event reaches the trees whose steps it satisfies, through the selections
//! that are true for it, and the trees that must see every row of a key at which they have begun.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use tamis_core::Result;
use tamis_core::event::{Record, Value};
use tamis_core::term::Term;

use super::looks::Looks;
use super::machine::{Found, Machine, Partial, Row};
use super::machines::Machines;
use super::taken::{Holders, Records};
use super::tree::{Changed, Tree};
use crate::key::{Key, key_of};
use crate::selection::{SelectionId, Selections};
use crate::slots::Slots;
use crate::text::SequenceText;

pub(crate) type SequenceId = u32;
pub(crate) type TreeId = u32;

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
    pub(super) sequences: Slots<Sequence>,
    by_text: FxHashMap<String, Vec<SequenceId>>,
    pub(super) trees: Slots<Grown>,
    tree_of: FxHashMap<String, TreeId>,
    /// By the number of the selection.
    by_selection: Vec<SmallVec<[Concerned; 2]>>,
    /// Trees with a condition that no index can decide.
    always: Vec<Concerned>,
    pub(super) keyed: Slots<Keyed>,
    /// The partial matches of each tree and key.
    pub(super) machines: Machines,
    /// When keys are visited next.
    pub(super) looks: Looks,
    pub(super) next_number: u64,
    /// The clock. Expired state may still be held until its key is visited.
    pub(super) now: Option<i64>,
    pub(super) bytes: usize,
    pub(super) records: Records,
    pub shed_keys: u64,
    room: Room,
}

/// A tree that a row may concern, with the number of its BY: the key is looked for before anybody looks at the tree, so
/// that nothing waits for both.
pub(super) type Concerned = (TreeId, u32);

/// Memory that is used again from event to event.
#[derive(Default)]
struct Room {
    concerned: Vec<Concerned>,
    /// Of an event, by the number of the BY: its key, and the number of that if it is known.
    keys: Vec<Option<(Key, Option<u32>)>>,
    partials: Vec<Partial>,
}

/// The terms of BY.
pub(super) struct Keyed {
    text: Arc<str>,
    pub terms: Vec<Term>,
    trees: usize,
    /// How often a strict tree has begun at a key, and so must see its every row.
    pub strict_machines: usize,
}

pub(super) struct Sequence {
    pub text: String,
    epoch: u64,
    pub uses: usize,
    pub tree: TreeId,
}

/// A tree and where its partial matches are.
pub(super) struct Grown {
    pub identity: String,
    /// The number of its BY.
    pub by: u32,
    pub tree: Tree,
    /// Numbers of keys.
    pub machines: Vec<u32>,
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
        let by = by_text(&written.by);
        let identity = Tree::identity(written, epoch, &by);
        let tree = match self.tree_of.get(&identity) {
            Some(tree) => *tree,
            None => self.new_tree(identity, written, by),
        };
        let id = self.sequences.insert(Sequence { text: text.clone(), epoch, uses: 1, tree });
        let added =
            self.changing(tree, selections, |tree, selections| tree.add(id, written, epoch, selections));
        if let Err(error) = added {
            self.sequences.remove(id);
            self.drop_if_empty(tree);
            return Err(error);
        }
        self.by_text.entry(text).or_default().push(id);
        Ok(id)
    }

    fn new_tree(&mut self, identity: String, written: &SequenceText, by: Arc<str>) -> TreeId {
        let known = self.keyed.iter().find(|(_, keyed)| keyed.text == by).map(|(number, _)| number);
        let by = known.unwrap_or_else(|| {
            let terms = written.by.clone();
            self.keyed.insert(Keyed { text: by, terms, trees: 0, strict_machines: 0 })
        });
        self.keyed[by].trees += 1;
        let grown = Grown { identity: identity.clone(), by, tree: Tree::new(written), machines: vec![] };
        let tree = self.trees.insert(grown);
        self.tree_of.insert(identity, tree);
        tree
    }

    fn drop_if_empty(&mut self, id: TreeId) {
        if !self.trees[id].tree.is_empty() {
            return;
        }
        let Some(grown) = self.trees.remove(id) else { return };
        self.tree_of.remove(&grown.identity);
        self.keyed[grown.by].trees -= 1;
        if self.keyed[grown.by].trees == 0 {
            self.keyed.remove(grown.by);
        }
    }

    /// Changes a tree, and then what leads events to it.
    fn changing(
        &mut self,
        id: TreeId,
        selections: &mut Selections,
        change: impl FnOnce(&mut Tree, &mut Selections) -> Result<()>,
    ) -> Result<()> {
        let Grown { tree, by, .. } = &mut self.trees[id];
        let concerned = (id, *by);
        let was_open = tree.has_open_condition();
        let outcome = change(tree, selections);
        let Changed { added, gone } = std::mem::take(&mut tree.changed);
        for selection in added.into_iter().map(|selection| selection as usize) {
            if self.by_selection.len() <= selection {
                self.by_selection.resize(selection + 1, SmallVec::new());
            }
            self.by_selection[selection].push(concerned);
        }
        for selection in gone {
            if let Some(trees) = self.by_selection.get_mut(selection as usize) {
                trees.retain(|(other, _)| *other != id);
            }
        }
        match (was_open, tree.has_open_condition()) {
            (false, true) => self.always.push(concerned),
            (true, false) => self.always.retain(|(other, _)| *other != id),
            _ => {}
        }
        outcome
    }

    /// Uses a sequence once less.
    pub fn release(&mut self, id: SequenceId, selections: &mut Selections) -> Result<()> {
        self.sequences[id].uses -= 1;
        if self.sequences[id].uses > 0 {
            return Ok(());
        }
        let Sequence { tree, text, .. } = self.sequences.remove(id).expect("it is in use");
        if let Some(same) = self.by_text.get_mut(&text) {
            same.retain(|other| *other != id);
            if same.is_empty() {
                self.by_text.remove(&text);
            }
        }
        self.changing(tree, selections, |tree, selections| tree.remove(id, selections))?;
        for number in self.trees[tree].machines.clone() {
            let grown = &self.trees[tree];
            if grown.tree.is_empty() {
                self.drop_machine(number);
            } else {
                self.machines[number].machine.forget_removed(&grown.tree, &mut self.records);
                self.settle(number);
            }
        }
        self.drop_if_empty(tree);
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
        let mut room = std::mem::take(&mut self.room);
        let Room { concerned, keys, .. } = &mut room;
        concerned.clear();
        keys.clear();
        keys.resize(self.keyed.bound(), None);
        concerned.extend(selected.iter().filter_map(|id| self.by_selection.get(*id as usize)).flatten());
        concerned.extend(&self.always);
        for (by, keyed) in self.keyed.iter().filter(|(_, keyed)| keyed.strict_machines > 0) {
            let key = key_of(&keyed.terms, record);
            let number = self.machines.key_number(by, &key);
            let strict = number.into_iter().flat_map(|number| self.machines.strict_trees(number));
            concerned.extend(strict.map(|tree| (tree, by)));
            keys[by as usize] = Some((key, number));
        }
        if concerned.len() > 1 {
            concerned.sort_unstable();
            concerned.dedup();
        }
        let holders = (concerned.len() > 1).then(Holders::default);
        let row = Row { number, time, record, selected, holders };
        let (mut told, mut found) = (vec![], vec![]);
        for (id, by) in &room.concerned {
            let Self { trees, keyed, machines, records, .. } = self;
            let (key, key_number) = room.keys[*by as usize].get_or_insert_with(|| {
                let key = key_of(&keyed[*by].terms, record);
                let number = machines.key_number(*by, &key);
                (key, number)
            });
            if key.iter().any(|value| matches!(value, Value::Null)) {
                continue;
            }
            let tree = &trees[*id].tree;
            match key_number.and_then(|key| machines.at(key, *id)) {
                Some(number) => {
                    let machine = &mut machines[number].machine;
                    // Where a match waits, this was done in time.
                    if machine.first_deadline(tree).is_some_and(|deadline| deadline < time) {
                        machine.expire(tree, time, records, &mut found);
                    }
                    machine.feed(tree, &row, records, &mut room.partials, &mut found);
                    self.settle(number);
                    if self.machines.get(number).is_none() {
                        // Perhaps the key went with it.
                        *key_number = self.machines.key_number(*by, key);
                    }
                }
                None => {
                    let mut machine = Machine::default();
                    machine.feed(tree, &row, records, &mut room.partials, &mut found);
                    if !machine.is_empty() {
                        *key_number = Some(self.hold(*id, key, machine));
                    }
                }
            }
            told.extend(found.drain(..).map(|found| self.told(found)));
        }
        self.room = room;
        told
    }

    /// The partial matches of a tree at a key.
    pub(super) fn find(&self, tree: TreeId, key: &Key) -> Option<u32> {
        let key = self.machines.key_number(self.trees[tree].by, key)?;
        self.machines.at(key, tree)
    }

    /// Partial matches whose time is over before this moment end; what waited for them is told.
    pub fn expire(&mut self, now: i64) -> Vec<Told> {
        self.now = self.now.max(Some(now));
        let mut told = vec![];
        while let Some((time, since, number)) = self.looks.pop_before(now) {
            let Some(held) = self.machines.get_mut(number) else { continue };
            if held.number != since || held.queued != Some(time) {
                continue;
            }
            held.queued = None;
            let tree = &self.trees[held.tree].tree;
            let mut ended = vec![];
            // One deadline after the other while a match waits, which says when it became final.
            while held.machine.has_complete()
                && let Some(deadline) = held.machine.first_deadline(tree)
                && deadline < now
            {
                let mut found = vec![];
                held.machine.expire(tree, deadline.saturating_add(1), &mut self.records, &mut found);
                ended.extend(found.into_iter().map(|found| (deadline, found)));
            }
            // Rows that came meanwhile may still go on: then all are kept, whenever that was.
            if held.machine.next_look(tree).is_none_or(|deadline| deadline < now) {
                held.machine.expire(tree, now, &mut self.records, &mut vec![]);
            }
            self.settle(number);
            told.extend(ended.into_iter().map(|(deadline, found)| {
                let told = self.told(found);
                Told { order: (deadline, told.order.1), ..told }
            }));
        }
        told
    }

    fn told(&self, found: Found) -> Told {
        let Found { sequence, start_row, start_time, rows } = found;
        let tree = &self.trees[self.sequences[sequence].tree].tree;
        let counts = tree.endings[&sequence].path.iter().enumerate().filter_map(|(at, node)| {
            let taken = rows.iter().filter(|(step, _)| *step == at).count();
            Some((tree.nodes[*node].name.clone()?, taken as i64))
        });
        Told {
            sequence,
            order: (start_time, start_row),
            time: rows.last().map_or(0, |(_, row)| row.time),
            counts: counts.collect(),
            events: rows.iter().map(|(_, row)| row.record.clone()).collect(),
        }
    }

    pub fn len(&self) -> usize {
        self.sequences.len()
    }

    pub fn epoch(&self, id: SequenceId) -> u64 {
        self.sequences[id].epoch
    }
}

fn by_text(terms: &[Term]) -> Arc<str> {
    terms.iter().map(Term::to_string).collect::<Vec<_>>().join(", ").into()
}
