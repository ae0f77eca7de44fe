//! Inspection of sequences: the state of each, the steps they share, and the partial matches at a key.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;
use tamis_core::event::Record;
use tamis_core::term::Term;

use super::machine::{Machine, Partial};
use super::plan::{Grown, SequenceId, SequencePlan, TreeId};
use super::tree::{NodeId, Tree};
use crate::key::key_of;

/// The state of a sequence, shared or not.
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

/// Of each node: how many partial matches are there, and at how many keys.
struct Counts {
    partials: FxHashMap<NodeId, usize>,
    keys: FxHashMap<NodeId, usize>,
}

impl SequencePlan {
    /// The state of each sequence.
    pub fn describe(&self) -> BTreeMap<SequenceId, SequenceDescription<'_>> {
        let mut described = BTreeMap::new();
        for (id, grown) in self.trees.iter() {
            let Counts { partials, keys } = self.counts(grown);
            let held = grown.machines.iter().map(|number| self.machines[*number].whole_bytes());
            let bytes = held.sum::<usize>();
            let share = bytes / grown.tree.endings.len().max(1);
            for (sequence, ending) in &grown.tree.endings {
                let held = &self.sequences[*sequence];
                let shared_by = |node: &NodeId| grown.tree.nodes[*node].sequences.len();
                let shared = ending.path.iter().copied().take_while(|node| shared_by(node) > 1);
                let of = |counts: &FxHashMap<NodeId, usize>, node| counts.get(node).copied().unwrap_or(0);
                let description = SequenceDescription {
                    text: &held.text,
                    by: &self.keyed[grown.by].terms,
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
            let counts = self.counts(grown);
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
        let tree = self.sequences[id].tree;
        let grown = &self.trees[tree];
        let key = key_of(&self.keyed[grown.by].terms, record);
        let Some(number) = self.find(tree, &key) else { return 0 };
        let partials = self.living(&grown.tree, &self.machines[number].machine);
        partials.filter(|partial| grown.tree.leads_to(partial.node, id)).count()
    }

    /// The partial matches that have not come to their end.
    fn living<'m>(&self, tree: &'m Tree, machine: &'m Machine) -> impl Iterator<Item = &'m Partial> {
        let now = self.now.unwrap_or(i64::MIN);
        machine.partials.iter().filter(move |partial| partial.is_complete || partial.deadline(tree) >= now)
    }

    fn counts(&self, grown: &Grown) -> Counts {
        let mut counts = Counts { partials: FxHashMap::default(), keys: FxHashMap::default() };
        for number in &grown.machines {
            let living = self.living(&grown.tree, &self.machines[*number].machine);
            let mut nodes: Vec<NodeId> = living.map(|partial| partial.node).collect();
            nodes.iter().for_each(|node| *counts.partials.entry(*node).or_insert(0) += 1);
            nodes.sort_unstable();
            nodes.dedup();
            nodes.iter().for_each(|node| *counts.keys.entry(*node).or_insert(0) += 1);
        }
        counts
    }
}
