//! The skeletons of all paths as a prefix tree in flat arrays.
//!
//! ```text
//! nodes in breadth-first order, so that the children of a node lie together, sorted by key
//! first_child[n] .. first_child[n + 1]   the children of n
//! keys[n]      axis and label of the step that leads to n
//! parents[n]
//! ```

use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;

use crate::ast::Axis;
use crate::compiled::{ANY, Label};

/// Axis and label of a step in one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Key(u32);

const DESCENDANT: u32 = 1 << 31;
const ANY_LABEL: u32 = DESCENDANT - 1;

impl Key {
    pub fn new(axis: Axis, label: Label) -> Self {
        let label = if label == ANY { ANY_LABEL } else { label };
        Self(label | if axis == Axis::Descendant { DESCENDANT } else { 0 })
    }

    pub fn to_word(self) -> u32 {
        self.0
    }

    pub fn from_word(word: u32) -> Self {
        Self(word)
    }

    pub fn axis(self) -> Axis {
        if self.0 & DESCENDANT == 0 { Axis::Child } else { Axis::Descendant }
    }

    pub fn label(self) -> Label {
        match self.0 & !DESCENDANT {
            ANY_LABEL => ANY,
            label => label,
        }
    }
}

pub(super) const ROOT: u32 = 0;

#[derive(Default)]
pub(super) struct Tree {
    first_child: Vec<u32>,
    keys: Vec<Key>,
    parents: Vec<u32>,
    /// A bit for each node from which some path can become true.
    live: Vec<u64>,
}

impl Tree {
    pub fn parent(&self, node: u32) -> u32 {
        self.parents[node as usize]
    }

    pub fn key(&self, node: u32) -> Key {
        self.keys[node as usize]
    }

    /// The nodes from the first step to this one.
    pub fn way_to(&self, mut node: u32) -> Vec<u32> {
        let mut nodes = vec![];
        while node != ROOT {
            nodes.push(node);
            node = self.parent(node);
        }
        nodes.reverse();
        nodes
    }

    pub fn child(&self, node: u32, key: Key) -> Option<u32> {
        let (start, end) = (self.first_child[node as usize], self.first_child[node as usize + 1]);
        let children = &self.keys[start as usize..end as usize];
        // Most nodes have a few children.
        let at = if children.len() <= 8 {
            children.iter().position(|known| *known == key)?
        } else {
            children.binary_search(&key).ok()?
        };
        Some(start + at as u32).filter(|child| self.is_live(*child))
    }

    /// Whether some step from here goes to descendants.
    pub fn descends(&self, node: u32) -> bool {
        let (start, end) = (self.first_child[node as usize], self.first_child[node as usize + 1]);
        // They sort last.
        start < end && self.keys[end as usize - 1].axis() == Axis::Descendant
    }

    fn is_live(&self, node: u32) -> bool {
        self.live[node as usize / 64] >> (node % 64) & 1 == 1
    }

    /// Notes that paths can become true at a node, or below it.
    pub fn make_live(&mut self, mut node: u32) {
        while !self.is_live(node) {
            self.live[node as usize / 64] |= 1 << (node % 64);
            node = self.parents[node as usize];
        }
    }

    pub fn heap_bytes(&self) -> usize {
        (self.first_child.capacity() + self.keys.capacity() + self.parents.capacity()) * 4
            + self.live.capacity() * 8
    }
}

/// The tree while paths are added.
pub(super) struct TreeBuilder {
    nodes: Vec<(u32, Key)>,
    children: HashMap<(u32, Key), u32, FxBuildHasher>,
}

impl Default for TreeBuilder {
    fn default() -> Self {
        Self { nodes: vec![(ROOT, Key(0))], children: HashMap::default() }
    }
}

impl TreeBuilder {
    pub fn child(&mut self, node: u32, key: Key) -> u32 {
        *self.children.entry((node, key)).or_insert_with(|| {
            self.nodes.push((node, key));
            self.nodes.len() as u32 - 1
        })
    }

    /// The tree, and what the nodes are called in it.
    pub fn finish(self) -> (Tree, Vec<u32>) {
        drop(self.children);
        let count = self.nodes.len();
        let mut by_parent: Vec<u32> = (1..count as u32).collect();
        by_parent.sort_unstable_by_key(|node| self.nodes[*node as usize]);
        let mut first_of = vec![0u32; count + 1];
        for (parent, _) in &self.nodes[1..] {
            first_of[*parent as usize + 1] += 1;
        }
        for at in 0..count {
            first_of[at + 1] += first_of[at];
        }
        let mut order = vec![ROOT];
        let mut new_number = vec![0u32; count];
        let mut tree = Tree {
            first_child: Vec::with_capacity(count + 1),
            keys: Vec::with_capacity(count),
            parents: Vec::with_capacity(count),
            live: vec![0; count.div_ceil(64)],
        };
        tree.keys.push(Key(0));
        tree.parents.push(ROOT);
        let mut at = 0;
        while at < order.len() {
            let old = order[at] as usize;
            tree.first_child.push(order.len() as u32);
            for &child in &by_parent[first_of[old] as usize..first_of[old + 1] as usize] {
                new_number[child as usize] = order.len() as u32;
                order.push(child);
                tree.keys.push(self.nodes[child as usize].1);
                tree.parents.push(at as u32);
            }
            at += 1;
        }
        tree.first_child.push(order.len() as u32);
        // The root stops the walk upwards.
        tree.live[0] |= 1;
        (tree, new_number)
    }
}
