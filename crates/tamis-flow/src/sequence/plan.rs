//! The sequences of one stream. An event reaches the trees of those whose steps it satisfies, by the selections that are
//! true for it, and those that must see every row of a key where they have begun.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::sync::Arc;

use rustc_hash::FxHashMap;
use tamis_core::Result;
use tamis_core::event::{Record, Value};
use tamis_core::term::Term;

use super::machine::{Found, Machine, Partial, Row};
use super::taken::Records;
use super::tree::{Changed, NodeId, Tree};
use crate::key::{Key, key_bytes, key_of};
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
    by_selection: FxHashMap<SelectionId, Vec<TreeId>>,
    /// Trees with a condition that no index can decide.
    always: Vec<TreeId>,
    /// By the text of BY: its terms, and which strict trees have begun at a key, and so must see its every row.
    keyed: FxHashMap<Arc<str>, Keyed>,
    /// When partial matches come to their end: (time, first row, tree, key).
    deadlines: BinaryHeap<Reverse<(i64, u64, TreeId, u64)>>,
    keys: FxHashMap<u64, (TreeId, Key)>,
    next_key: u64,
    bytes: usize,
    pub(super) records: Records,
    pub shed_keys: u64,
}

struct Keyed {
    terms: Vec<Term>,
    trees: usize,
    begun: FxHashMap<Key, Vec<TreeId>>,
}

pub(super) struct Sequence {
    text: String,
    epoch: u64,
    uses: usize,
    pub tree: TreeId,
}

/// A tree and its partial matches.
pub(super) struct Grown {
    identity: String,
    by: Arc<str>,
    pub tree: Tree,
    pub machines: FxHashMap<Key, Held>,
}

pub(super) struct Held {
    pub machine: Machine,
    pub number: u64,
    /// The deadline that is in the queue.
    queued: Option<i64>,
    bytes: usize,
}

/// What is held for a sequence, shared or not.
pub(crate) struct SequenceDescription<'p> {
    pub text: &'p str,
    pub by: &'p [Term],
    pub uses: usize,
    pub keys: usize,
    pub partial_matches: usize,
    /// Its share.
    pub bytes: usize,
    /// How many sequences share each of its steps.
    pub shared_by: Vec<usize>,
    /// The last node that it shares with others.
    pub after: Option<(TreeId, NodeId)>,
}

/// Steps that several sequences share.
pub(crate) struct PrefixDescription {
    pub tree: TreeId,
    pub node: NodeId,
    /// The shared node before it.
    pub after: Option<NodeId>,
    pub text: String,
    pub sequences: Vec<SequenceId>,
    pub partial_matches: usize,
    /// Of the partial matches alone, without the rows they took.
    pub bytes: usize,
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
        let keyed = || Keyed { terms: written.by.clone(), trees: 0, begun: FxHashMap::default() };
        self.keyed.entry(by.clone()).or_insert_with(keyed).trees += 1;
        let machines = FxHashMap::default();
        let grown = Grown { identity: identity.clone(), by, tree: Tree::new(written), machines };
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
        if let Some(keyed) = self.keyed.get_mut(&grown.by) {
            keyed.trees -= 1;
            if keyed.trees == 0 {
                self.keyed.remove(&grown.by);
            }
        }
    }

    /// Changes a tree, and then what leads events to it.
    fn changing(
        &mut self,
        id: TreeId,
        selections: &mut Selections,
        change: impl FnOnce(&mut Tree, &mut Selections) -> Result<()>,
    ) -> Result<()> {
        let tree = &mut self.trees[id].tree;
        let was_open = tree.has_open_condition();
        let outcome = change(tree, selections);
        let Changed { added, gone } = std::mem::take(&mut tree.changed);
        for selection in added {
            self.by_selection.entry(selection).or_default().push(id);
        }
        for selection in gone {
            if let Some(trees) = self.by_selection.get_mut(&selection) {
                trees.retain(|other| *other != id);
                if trees.is_empty() {
                    self.by_selection.remove(&selection);
                }
            }
        }
        match (was_open, tree.has_open_condition()) {
            (false, true) => self.always.push(id),
            (true, false) => self.always.retain(|other| *other != id),
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
        let keys: Vec<Key> = self.trees[tree].machines.keys().cloned().collect();
        for key in keys {
            let grown = &mut self.trees[tree];
            if grown.tree.is_empty() {
                self.drop_machine(tree, &key);
                continue;
            }
            if let Some(held) = grown.machines.get_mut(&key) {
                held.machine.forget_removed(&grown.tree, &mut self.records);
                self.settle(tree, &key);
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
        let mut concerned: Vec<TreeId> =
            selected.iter().filter_map(|id| self.by_selection.get(id)).flatten().copied().collect();
        concerned.extend(&self.always);
        let mut keys: FxHashMap<Arc<str>, Key> = FxHashMap::default();
        for (by, keyed) in self.keyed.iter().filter(|(_, keyed)| !keyed.begun.is_empty()) {
            let key = key_of(&keyed.terms, record);
            concerned.extend(keyed.begun.get(&key).into_iter().flatten());
            keys.insert(by.clone(), key);
        }
        concerned.sort_unstable();
        concerned.dedup();
        let row = Row { number, time, record, selected };
        let mut told = vec![];
        for id in concerned {
            let Self { trees, keyed, records, .. } = self;
            let grown = &mut trees[id];
            let key = match keys.get(&grown.by) {
                Some(key) => key,
                None => keys.entry(grown.by.clone()).or_insert(key_of(&keyed[&grown.by].terms, record)),
            };
            if key.iter().any(|value| matches!(value, Value::Null)) {
                continue;
            }
            let mut found = vec![];
            match grown.machines.get_mut(key) {
                Some(held) => {
                    held.machine.feed(&grown.tree, &row, records, &mut found);
                    self.settle(id, key);
                }
                None => {
                    let mut machine = Machine::default();
                    machine.feed(&grown.tree, &row, records, &mut found);
                    if !machine.is_empty() {
                        self.hold(id, key.clone(), machine);
                    }
                }
            }
            told.extend(found.into_iter().map(|found| self.told(found)));
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
            let Some(grown) = self.trees.get_mut(id) else { continue };
            let Some(held) = grown.machines.get_mut(&key) else { continue };
            if held.queued != Some(deadline) {
                continue;
            }
            held.queued = None;
            let mut found = vec![];
            held.machine.expire(&grown.tree, deadline.saturating_add(1), &mut self.records, &mut found);
            self.settle(id, &key);
            let ended = found.into_iter().map(|found| {
                let told = self.told(found);
                Told { order: (deadline, told.order.1), ..told }
            });
            told.extend(ended);
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

    pub(super) fn hold(&mut self, id: TreeId, key: Key, machine: Machine) {
        let number = self.next_key;
        self.next_key += 1;
        self.keys.insert(number, (id, key.clone()));
        let grown = &mut self.trees[id];
        if grown.tree.strict
            && let Some(keyed) = self.keyed.get_mut(&grown.by)
        {
            keyed.begun.entry(key.clone()).or_default().push(id);
        }
        grown.machines.insert(key.clone(), Held { machine, number, queued: None, bytes: 0 });
        self.settle(id, &key);
    }

    /// Drops what is empty, counts the bytes, and queues the next deadline.
    fn settle(&mut self, id: TreeId, key: &Key) {
        let grown = &mut self.trees[id];
        let Some(held) = grown.machines.get_mut(key) else { return };
        if held.machine.is_empty() {
            self.drop_machine(id, key);
            return;
        }
        self.bytes -= held.bytes;
        held.bytes = held.machine.bytes() + size_of::<Held>() + 3 * key_bytes(key) + 144;
        self.bytes += held.bytes;
        let deadline = held.machine.deadline(&grown.tree);
        if held.queued != deadline.map(|(time, _)| time) {
            held.queued = deadline.map(|(time, _)| time);
            if let Some((time, row)) = deadline {
                self.deadlines.push(Reverse((time, row, id, held.number)));
                self.drop_stale_deadlines();
            }
        }
    }

    /// Deadlines of keys that went on, or away, wait in the queue: at most as many as others.
    fn drop_stale_deadlines(&mut self) {
        if self.deadlines.len() <= 2 * self.keys.len() + 64 {
            return;
        }
        let mut deadlines = std::mem::take(&mut self.deadlines);
        deadlines.retain(|Reverse((time, _, tree, number))| {
            let held = self.keys.get(number).and_then(|(_, key)| self.trees.get(*tree)?.machines.get(key));
            held.is_some_and(|held| held.number == *number && held.queued == Some(*time))
        });
        self.deadlines = deadlines;
    }

    fn drop_machine(&mut self, id: TreeId, key: &Key) {
        let grown = &mut self.trees[id];
        let Some(held) = grown.machines.remove(key) else { return };
        held.machine.rows.iter().flatten().for_each(|row| self.records.release(row.number));
        self.bytes -= held.bytes;
        self.keys.remove(&held.number);
        if grown.tree.strict
            && let Some(keyed) = self.keyed.get_mut(&grown.by)
            && let Some(ids) = keyed.begun.get_mut(key)
        {
            ids.retain(|other| *other != id);
            if ids.is_empty() {
                keyed.begun.remove(key);
            }
        }
    }

    pub fn bytes(&self) -> usize {
        self.bytes + self.records.bytes()
    }

    pub fn len(&self) -> usize {
        self.sequences.len()
    }

    /// Drops the keys whose partial matches began first until the bytes are at most these.
    pub fn shed(&mut self, most: usize) {
        if self.bytes() <= most {
            return;
        }
        let mut held: Vec<(u64, &str, TreeId, Key)> = vec![];
        for (id, grown) in self.trees.iter() {
            let starts = grown.machines.iter();
            held.extend(
                starts.map(|(key, held)| {
                    (held.machine.partials[0].start_row, &*grown.identity, id, key.clone())
                }),
            );
        }
        // By what they are and not by number, so that a flow that was opened again sheds the same.
        held.sort_unstable_by_key(|(start, identity, ..)| (*start, *identity));
        let in_order: Vec<(TreeId, Key)> = held.into_iter().map(|(_, _, id, key)| (id, key)).collect();
        for (id, key) in in_order {
            if self.bytes() <= most {
                break;
            }
            self.drop_machine(id, &key);
            self.shed_keys += 1;
        }
    }

    /// What is held for each sequence.
    pub fn describe(&self) -> BTreeMap<SequenceId, SequenceDescription<'_>> {
        let mut described = BTreeMap::new();
        for (id, grown) in self.trees.iter() {
            let Counts { partials, keys } = grown.counts();
            let bytes = grown.machines.values().map(Held::whole_bytes).sum::<usize>();
            let share = bytes / grown.tree.endings.len().max(1);
            for (sequence, ending) in &grown.tree.endings {
                let held = &self.sequences[*sequence];
                let shared_by = |node: &NodeId| grown.tree.nodes[*node].sequences.len();
                let shared = ending.path.iter().copied().take_while(|node| shared_by(node) > 1);
                let of = |counts: &FxHashMap<NodeId, usize>, node| counts.get(node).copied().unwrap_or(0);
                let description = SequenceDescription {
                    text: &held.text,
                    by: &self.keyed[&grown.by].terms,
                    uses: held.uses,
                    keys: ending.path.iter().map(|node| of(&keys, node)).max().unwrap_or(0),
                    partial_matches: ending.path.iter().map(|node| of(&partials, node)).sum(),
                    bytes: share,
                    shared_by: ending.path.iter().map(shared_by).collect(),
                    after: shared.last().map(|node| (id, node)),
                };
                described.insert(*sequence, description);
            }
        }
        described
    }

    /// The steps that several sequences share.
    pub fn prefixes(&self) -> Vec<PrefixDescription> {
        let mut described = vec![];
        for (id, grown) in self.trees.iter() {
            let counts = grown.counts();
            for (node, shared) in grown.tree.nodes.iter().filter(|(_, node)| node.sequences.len() > 1) {
                let partial_matches = counts.partials.get(&node).copied().unwrap_or(0);
                described.push(PrefixDescription {
                    tree: id,
                    node,
                    after: shared.parent,
                    text: grown.tree.text_of(node),
                    sequences: shared.sequences.iter().copied().collect(),
                    partial_matches,
                    bytes: partial_matches * size_of::<Partial>(),
                });
            }
        }
        described
    }

    /// How many partial matches there are at the key of a record.
    pub fn look(&self, id: SequenceId, record: &Record) -> usize {
        let grown = &self.trees[self.sequences[id].tree];
        let held = grown.machines.get(&key_of(&self.keyed[&grown.by].terms, record));
        let partials = held.map_or(&[][..], |held| &held.machine.partials);
        partials.iter().filter(|partial| grown.tree.leads_to(partial.node, id)).count()
    }

    pub fn epoch(&self, id: SequenceId) -> u64 {
        self.sequences[id].epoch
    }
}

/// Of each node: how many partial matches are there, and at how many keys.
struct Counts {
    partials: FxHashMap<NodeId, usize>,
    keys: FxHashMap<NodeId, usize>,
}

impl Grown {
    fn counts(&self) -> Counts {
        let mut counts = Counts { partials: FxHashMap::default(), keys: FxHashMap::default() };
        for held in self.machines.values() {
            let mut nodes: Vec<NodeId> = held.machine.partials.iter().map(|partial| partial.node).collect();
            nodes.iter().for_each(|node| *counts.partials.entry(*node).or_insert(0) += 1);
            nodes.sort_unstable();
            nodes.dedup();
            nodes.iter().for_each(|node| *counts.keys.entry(*node).or_insert(0) += 1);
        }
        counts
    }
}

impl Held {
    /// With the records, which other keys may hold too.
    fn whole_bytes(&self) -> usize {
        let records = self.machine.rows.iter().flatten();
        self.bytes + records.map(|row| crate::key::record_bytes(&row.record)).sum::<usize>()
    }
}

fn by_text(terms: &[Term]) -> Arc<str> {
    terms.iter().map(Term::to_string).collect::<Vec<_>>().join(", ").into()
}
