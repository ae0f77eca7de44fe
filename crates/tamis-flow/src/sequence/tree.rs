//! Sequences that begin alike, as a tree of steps: common steps are one path, whose partial matches are kept
//! once.
//!
//! ```text
//! (a: NOT ok){3,} ─┬─ (b: ok) ─┬─ (c: amount > 100)    sequence 1
//!                  │           └─ (c: country = 'XX')  sequence 2
//!                  └─ (b: locked)                      sequence 3
//! ```
//!
//! Sequences of one tree have the same BY, WITHIN and strictness. An inner node also has the conditions that
//! must not occur before the next step, because they decide how long its partial matches can continue. The
//! last step of a sequence is a separate node: there a sequence reports its matches, except those that its
//! earlier matches exclude.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use tamis_core::Result;

use super::condition::{Condition, refuse_later_steps};
use super::machine::Row;
use super::plan::SequenceId;
use crate::selection::{SelectionId, Selections};
use crate::slots::Slots;
use crate::text::{SequenceText, StepText};

pub(crate) type NodeId = u32;

/// Nodes with their parents, in order.
pub(crate) type Possible = SmallVec<[(Option<NodeId>, NodeId); 4]>;

#[derive(Debug)]
pub(crate) struct Node {
    /// The step as it is written: what makes it the same as that of another sequence.
    text: String,
    pub parent: Option<NodeId>,
    /// Which step it is.
    pub step: usize,
    pub name: Option<Arc<str>>,
    pub condition: Condition,
    pub least: u32,
    pub most: Option<u32>,
    /// Conditions that must not occur before the next step.
    pub next_absent: Option<Condition>,
    /// Steps, this one or earlier, whose rows later conditions refer to; for each, the number of sequences that do.
    pub referenced: BTreeMap<usize, usize>,
    /// Those that go through it.
    pub sequences: BTreeSet<SequenceId>,
    /// The sequence that ends here.
    pub end: Option<SequenceId>,
}

/// What most rows need of a node. There may be as many trees as sequences, and an event comes to one after the other: a few
/// of these lie in the tree itself, so that it is read in one go.
#[derive(Clone, Debug)]
pub(crate) struct Summary {
    pub parent: Option<NodeId>,
    selection: Option<SelectionId>,
    pub step: u32,
    pub least: u32,
    pub most: Option<u32>,
    /// The only sequence that goes through it.
    pub only: Option<SequenceId>,
    pub is_end: bool,
    /// Whether an index does not decide all of its condition.
    pub has_rest: bool,
    pub has_absent: bool,
    /// Rows may be skipped, and nothing that was skipped makes it necessary to take another.
    pub is_enough_at_least: bool,
    is_gone: bool,
    /// Steps whose rows decide what comes.
    pub referenced: SmallVec<[u32; 2]>,
}

impl Summary {
    /// Steps before its own whose rows decide what comes.
    pub fn earlier_referenced(&self) -> impl Iterator<Item = u32> {
        self.referenced.iter().copied().filter(|step| *step != self.step)
    }
}

/// Trees with no more nodes find those that a row may take one by one.
const FEW_NODES: usize = 8;

/// Where a sequence ends, and how.
#[derive(Debug)]
pub(crate) struct Ending {
    /// It sees matches that start at rows with greater numbers.
    pub epoch: u64,
    pub skip_to_next: bool,
    /// Its nodes, step by step.
    pub path: Vec<NodeId>,
    /// For each step, the steps whose rows decide what comes.
    referenced: Vec<BTreeSet<usize>>,
}

#[derive(Debug, Default)]
pub(crate) struct Tree {
    pub strict: bool,
    pub within: i64,
    pub nodes: Slots<Node>,
    /// By the number of the node.
    summaries: SmallVec<[Summary; 2]>,
    pub endings: FxHashMap<SequenceId, Ending>,
    /// No sequence began later, also of those that are gone.
    pub latest_epoch: u64,
    /// By parent and text.
    inner: FxHashMap<(Option<NodeId>, String), NodeId>,
    /// The nodes whose step has this selection as its condition.
    by_selection: FxHashMap<SelectionId, Vec<NodeId>>,
    /// Nodes whose step no index decides.
    open: Vec<NodeId>,
    /// How many conditions have this selection.
    selections: FxHashMap<SelectionId, usize>,
    open_conditions: usize,
    /// The selections that came into use and went out of use since the last call.
    pub changed: Changed,
}

#[derive(Debug, Default)]
pub(crate) struct Changed {
    pub added: Vec<SelectionId>,
    pub gone: Vec<SelectionId>,
}

impl Tree {
    pub fn new(written: &SequenceText) -> Self {
        Self { strict: written.strict, within: written.within, ..Self::default() }
    }

    /// The properties that sequences of one tree share. A sequence of one step has nothing to share.
    pub fn identity(written: &SequenceText, epoch: u64, by: &str) -> String {
        match &written.steps[..] {
            [_] => format!("{epoch} {written}"),
            steps => format!("{} {} {} {by}", step_text(steps, 0), written.strict, written.within),
        }
    }

    /// Adds a sequence. On an error nothing is left of it.
    pub fn add(
        &mut self,
        id: SequenceId,
        written: &SequenceText,
        epoch: u64,
        selections: &mut Selections,
    ) -> Result<()> {
        let steps = &written.steps;
        refuse_later_steps(steps)?;
        let mut path: Vec<NodeId> = vec![];
        for at in 0..steps.len() {
            let parent = path.last().copied();
            let is_end = at + 1 == steps.len();
            let text = step_text(steps, at);
            let known = if is_end { None } else { self.inner.get(&(parent, text.clone())).copied() };
            let node = match known {
                Some(node) => node,
                None => match self.new_node(parent, text, steps, at, is_end.then_some(id), selections) {
                    Ok(node) => node,
                    Err(error) => {
                        self.remove_path(id, &path, selections)?;
                        return Err(error);
                    }
                },
            };
            self.nodes[node].sequences.insert(id);
            path.push(node);
        }
        let referenced = self.referenced(&path);
        for (node, steps) in path.iter().zip(&referenced) {
            for step in steps {
                *self.nodes[*node].referenced.entry(*step).or_insert(0) += 1;
            }
        }
        path.iter().for_each(|node| self.summarize(*node));
        let ending = Ending { epoch, skip_to_next: written.skip_to_next, path, referenced };
        self.endings.insert(id, ending);
        self.latest_epoch = self.latest_epoch.max(epoch);
        Ok(())
    }

    /// For each step of a path, the steps up to it that its own condition or a later one looks at.
    fn referenced(&self, path: &[NodeId]) -> Vec<BTreeSet<usize>> {
        let mut found: Vec<BTreeSet<usize>> = vec![];
        let mut later = BTreeSet::new();
        for (at, node) in path.iter().enumerate().rev() {
            let node = &self.nodes[*node];
            later.extend(node.next_absent.iter().flat_map(Condition::referenced));
            later.extend(node.condition.referenced());
            found.push(later.iter().copied().filter(|step| *step <= at).collect());
        }
        found.reverse();
        found
    }

    fn new_node(
        &mut self,
        parent: Option<NodeId>,
        text: String,
        steps: &[StepText],
        at: usize,
        end: Option<SequenceId>,
        selections: &mut Selections,
    ) -> Result<NodeId> {
        let step = &steps[at];
        let condition = Condition::new(&step.condition, steps, at, false, selections)?;
        let next = steps.get(at + 1).and_then(|next| next.absent.as_ref());
        let next_absent = next.map(|absent| Condition::new(absent, steps, at + 1, true, selections));
        let next_absent = match next_absent.transpose() {
            Ok(next_absent) => next_absent,
            Err(error) => {
                condition.selection.map_or(Ok(()), |selection| selections.release(selection))?;
                return Err(error);
            }
        };
        for condition in [Some(&condition), next_absent.as_ref()].into_iter().flatten() {
            match condition.selection {
                Some(selection) => {
                    let uses = self.selections.entry(selection).or_insert(0);
                    *uses += 1;
                    if *uses == 1 {
                        self.changed.added.push(selection);
                    }
                }
                None => self.open_conditions += 1,
            }
        }
        let selection = condition.selection;
        let id = self.nodes.insert(Node {
            text: text.clone(),
            parent,
            step: at,
            name: step.name.as_deref().map(Arc::from),
            condition,
            least: step.least,
            most: step.most,
            next_absent,
            referenced: BTreeMap::new(),
            sequences: BTreeSet::new(),
            end,
        });
        match selection {
            Some(selection) => self.by_selection.entry(selection).or_default().push(id),
            None => self.open.push(id),
        }
        if end.is_none() {
            self.inner.insert((parent, text), id);
        }
        Ok(id)
    }

    /// Removes a sequence, and the nodes that no other goes through.
    pub fn remove(&mut self, id: SequenceId, selections: &mut Selections) -> Result<()> {
        let Some(ending) = self.endings.remove(&id) else { return Ok(()) };
        for (node, steps) in ending.path.iter().zip(&ending.referenced) {
            let referenced = &mut self.nodes[*node].referenced;
            for step in steps {
                if let Some(uses) = referenced.get_mut(step) {
                    *uses -= 1;
                }
            }
            referenced.retain(|_, uses| *uses > 0);
        }
        self.remove_path(id, &ending.path, selections)
    }

    fn remove_path(&mut self, id: SequenceId, path: &[NodeId], selections: &mut Selections) -> Result<()> {
        for node in path.iter().rev() {
            self.nodes[*node].sequences.remove(&id);
            if self.nodes[*node].sequences.is_empty() {
                self.remove_node(*node, selections)?;
            }
            self.summarize(*node);
        }
        Ok(())
    }

    /// Sums up a node that came, changed or went.
    fn summarize(&mut self, id: NodeId) {
        let at = id as usize;
        let Some(node) = self.nodes.get(id) else {
            if let Some(summary) = self.summaries.get_mut(at) {
                summary.is_gone = true;
            }
            return;
        };
        let summary = Summary {
            parent: node.parent,
            selection: node.condition.selection,
            step: node.step as u32,
            least: node.least,
            most: node.most,
            only: node.sequences.first().copied().filter(|_| node.sequences.len() == 1),
            is_end: node.end.is_some(),
            has_rest: node.condition.has_rest(),
            has_absent: node.next_absent.is_some(),
            is_enough_at_least: !self.strict && node.next_absent.is_none(),
            is_gone: false,
            referenced: node.referenced.keys().map(|step| *step as u32).collect(),
        };
        match self.summaries.get_mut(at) {
            Some(known) => *known = summary,
            None => {
                // Numbers of nodes are given out in order; those between belong to nodes that are not summed up yet.
                let gone = Summary { is_gone: true, ..summary.clone() };
                self.summaries.resize(at, gone);
                self.summaries.push(summary);
            }
        }
    }

    /// What most rows need of a node.
    pub fn summary(&self, node: NodeId) -> &Summary {
        &self.summaries[node as usize]
    }

    fn remove_node(&mut self, id: NodeId, selections: &mut Selections) -> Result<()> {
        let Some(node) = self.nodes.remove(id) else { return Ok(()) };
        if node.end.is_none() {
            self.inner.remove(&(node.parent, node.text));
        }
        match node.condition.selection {
            Some(selection) => {
                if let Some(nodes) = self.by_selection.get_mut(&selection) {
                    nodes.retain(|other| *other != id);
                    if nodes.is_empty() {
                        self.by_selection.remove(&selection);
                    }
                }
            }
            None => self.open.retain(|other| *other != id),
        }
        for condition in [Some(&node.condition), node.next_absent.as_ref()].into_iter().flatten() {
            let Some(selection) = condition.selection else {
                self.open_conditions -= 1;
                continue;
            };
            if let Some(uses) = self.selections.get_mut(&selection) {
                *uses -= 1;
                if *uses == 0 {
                    self.selections.remove(&selection);
                    self.changed.gone.push(selection);
                }
            }
            selections.release(selection)?;
        }
        Ok(())
    }

    /// The nodes whose step a row may take by what an index says, as (parent, node) and in order.
    pub fn possible(&self, row: &Row<'_>) -> Possible {
        if self.summaries.len() <= FEW_NODES {
            let is_possible = |summary: &Summary| {
                let selection = summary.selection;
                !summary.is_gone && selection.is_none_or(|it| row.selected.binary_search(&it).is_ok())
            };
            let nodes = (0..).zip(&self.summaries).filter(|(_, summary)| is_possible(summary));
            let mut found: Possible = nodes.map(|(node, summary)| (summary.parent, node)).collect();
            found.sort_unstable();
            return found;
        }
        let by_index = |selection: &SelectionId| self.by_selection.get(selection).into_iter().flatten();
        let known = |node: &NodeId| (self.nodes[*node].parent, *node);
        let mut found: Possible = if row.selected.len() <= self.by_selection.len() {
            row.selected.iter().flat_map(by_index).map(known).collect()
        } else {
            let held = self.by_selection.keys().filter(|known| row.selected.binary_search(known).is_ok());
            held.flat_map(by_index).map(known).collect()
        };
        found.extend(self.open.iter().map(known));
        found.sort_unstable();
        found
    }

    pub fn has_open_condition(&self) -> bool {
        self.open_conditions > 0
    }

    pub fn is_empty(&self) -> bool {
        self.endings.is_empty()
    }

    /// Whether a partial match at a node may become one of a sequence.
    pub fn leads_to(&self, node: NodeId, sequence: SequenceId) -> bool {
        self.endings[&sequence].path.get(self.nodes[node].step) == Some(&node)
    }

    /// The steps of a node, as they are written.
    pub fn text_of(&self, node: NodeId) -> String {
        let node = &self.nodes[node];
        match node.parent {
            Some(parent) => format!("{} THEN {}", self.text_of(parent), node.text),
            None => node.text.clone(),
        }
    }
}

/// A step with what must be absent before the next one: what two sequences must have in common to share it.
fn step_text(steps: &[StepText], at: usize) -> String {
    let mut text = steps[at].to_string();
    if let Some(absent) = steps.get(at + 1).and_then(|next| next.absent.as_ref()) {
        let _ = write!(text, " THEN NOT ({absent})");
    }
    text
}
