//! Maps the names from the root to an element to nodes of the tree.
//!
//! Documents of one kind have few distinct paths of names, so each path gets a state, which is kept from document to
//! document: a lazily built automaton. The states themselves form a tree. Steps that can be reached from any ancestor (`//`)
//! are found by going up, instead of being copied into every state. When the states take too much memory, all are dropped.

use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;

use super::PathSet;
use super::tree::{Key, ROOT};
use crate::ast::Axis;
use crate::compiled::{ANY, Label, NO_LABEL, NameLabels};

/// The state of the document itself.
pub(super) const DOCUMENT: u32 = 0;

#[derive(Default)]
pub(super) struct Automaton {
    states: Vec<State>,
    next: HashMap<(u32, NameLabels), u32, FxBuildHasher>,
    bytes: usize,
}

pub(super) struct State {
    parent: u32,
    /// Nodes of the tree that are reached here.
    nodes: Box<[u32]>,
    /// Those of them that have steps to descendants.
    descending: Box<[u32]>,
    /// Paths that are true as soon as an element is here.
    pub plain: Box<[u32]>,
    /// Paths whose skeleton ends here and whose conditions must be asked.
    pub checked: Box<[u32]>,
    /// The anchors that are active here: for the name, for its namespace, and for `*`.
    pub active: [Active; 3],
}

/// Some anchors of one label.
#[derive(Default)]
pub(super) struct Active {
    first: u32,
    /// Empty if none is active.
    words: Box<[u64]>,
}

impl Active {
    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    #[inline]
    pub fn has(&self, anchor: u32) -> bool {
        let at = anchor - self.first;
        self.words[at as usize / 64] >> (at % 64) & 1 == 1
    }
}

/// The labels that an element of this name has.
pub(super) fn labels_of(name: NameLabels) -> [Label; 3] {
    [name[0], name[1], ANY]
}

impl Automaton {
    pub fn state(&self, at: u32) -> &State {
        &self.states[at as usize]
    }

    pub fn len(&self) -> usize {
        self.states.len()
    }

    pub fn heap_bytes(&self) -> usize {
        self.bytes + self.next.capacity() * 17
    }

    pub fn clear(&mut self) {
        *self = Self::default();
    }

    /// Before anything else.
    pub fn prepare(&mut self, set: &PathSet) {
        if self.states.is_empty() {
            self.push(set, DOCUMENT, vec![ROOT], [NO_LABEL; 2]);
        }
    }

    /// The state of an element of this name inside an element in that state.
    #[inline]
    pub fn next(&mut self, set: &PathSet, state: u32, name: NameLabels) -> u32 {
        match self.next.get(&(state, name)) {
            Some(next) => *next,
            None => self.create(set, state, name),
        }
    }

    #[cold]
    fn create(&mut self, set: &PathSet, state: u32, name: NameLabels) -> u32 {
        let mut reached = vec![];
        let mut go = |nodes: &[u32], axis: Axis| {
            for label in labels_of(name).into_iter().filter(|label| *label != NO_LABEL) {
                let key = Key::new(axis, label);
                reached.extend(nodes.iter().filter_map(|node| set.tree.child(*node, key)));
            }
        };
        go(&self.state(state).nodes, Axis::Child);
        let mut above = state;
        loop {
            go(&self.state(above).descending, Axis::Descendant);
            if above == DOCUMENT {
                break;
            }
            above = self.state(above).parent;
        }
        reached.sort_unstable();
        reached.dedup();
        let new = self.push(set, state, reached, name);
        self.next.insert((state, name), new);
        new
    }

    fn push(&mut self, set: &PathSet, parent: u32, nodes: Vec<u32>, name: NameLabels) -> u32 {
        let paths_at = |ends: &[(u32, u32)]| -> Box<[u32]> {
            let mut paths = vec![];
            for node in &nodes {
                let start = ends.partition_point(|(end, _)| end < node);
                paths.extend(ends[start..].iter().take_while(|(end, _)| end == node).map(|(_, path)| *path));
            }
            paths.into()
        };
        let active = labels_of(name).map(|label| {
            let run = set.lists.anchors(label);
            let here = nodes.iter().filter(|node| set.tree.key(**node).label() == label && **node != ROOT);
            let anchors: Vec<u32> = here.filter_map(|node| set.lists.anchor(label, *node)).collect();
            if anchors.is_empty() {
                return Active::default();
            }
            let mut words = vec![0u64; run.len().div_ceil(64)];
            for anchor in anchors {
                let at = anchor - run.start;
                words[at as usize / 64] |= 1 << (at % 64);
            }
            Active { first: run.start, words: words.into() }
        });
        let state = State {
            parent,
            descending: nodes.iter().copied().filter(|node| set.tree.descends(*node)).collect(),
            plain: paths_at(&set.plain),
            checked: paths_at(&set.checked),
            active,
            nodes: nodes.into(),
        };
        let lists = [&state.nodes, &state.descending, &state.plain, &state.checked];
        self.bytes += size_of::<State>()
            + lists.iter().map(|list| list.len() * 4).sum::<usize>()
            + state.active.iter().map(|active| active.words.len() * 8).sum::<usize>();
        self.states.push(state);
        self.states.len() as u32 - 1
    }
}
