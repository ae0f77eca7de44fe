//! A tree of conjunctions (in the manner of Aguilera et al. 1999): one path of predicates for each;
//! conjunctions that begin alike share a prefix.
//!
//! ```text
//! a = 1 AND b = 2 AND c < 3        a = 1 ── b = 2 ── c < 3 ●
//! a = 1 AND b = 2                            ●
//! a = 1 AND d = 4                       └── d = 4 ●
//! ```
//!
//! The order of predicates on a path is fixed: the most selective shapes come first, so that few paths are
//! entered; predicates of one shape are ordered by number, so that equal prefixes are shared.

use rustc_hash::FxHashMap;

use super::{Conjunctions, Held, access_rank};
use crate::predicates::{Predicates, Satisfied};
use crate::short_list::ShortList;
use tamis_core::engine::contract::Work;
use tamis_core::expr::Literal;

const ROOT: u32 = 0;

pub struct ConjunctionTree {
    pub(super) nodes: Vec<Node>,
    /// From a node and a literal to the next node.
    edges: FxHashMap<(u32, Literal), u32>,
    /// The last node of each conjunction.
    end_of: Vec<u32>,
    pub(super) free: Vec<u32>,
}

pub(super) struct Node {
    literal: Literal,
    parent: u32,
    children: ShortList,
    /// Conjunctions that end here.
    ends: ShortList,
}

impl Node {
    fn new(literal: Literal, parent: u32) -> Self {
        Self { literal, parent, children: ShortList::default(), ends: ShortList::default() }
    }
}

impl Default for ConjunctionTree {
    fn default() -> Self {
        let nodes = vec![Node::new(Literal(u32::MAX), ROOT)];
        Self { nodes, edges: FxHashMap::default(), end_of: vec![], free: vec![] }
    }
}

impl ConjunctionTree {
    fn child(&mut self, parent: u32, literal: Literal) -> u32 {
        if let Some(&child) = self.edges.get(&(parent, literal)) {
            return child;
        }
        let node = Node::new(literal, parent);
        let at = match self.free.pop() {
            Some(at) => {
                self.nodes[at as usize] = node;
                at
            }
            None => {
                self.nodes.push(node);
                self.nodes.len() as u32 - 1
            }
        };
        self.nodes[parent as usize].children.push(at);
        self.edges.insert((parent, literal), at);
        at
    }
}

impl Conjunctions for ConjunctionTree {
    /// Nodes to be entered.
    type Scratch = Vec<u32>;

    fn insert(&mut self, number: u32, literals: &[Literal], predicates: &Predicates) {
        let mut path = literals.to_vec();
        path.sort_unstable_by_key(|literal| (access_rank(*literal, predicates), *literal));
        let end = path.into_iter().fold(ROOT, |node, literal| self.child(node, literal));
        self.nodes[end as usize].ends.push(number);
        if self.end_of.len() <= number as usize {
            self.end_of.resize(number as usize + 1, ROOT);
        }
        self.end_of[number as usize] = end;
    }

    fn remove(&mut self, number: u32, _: &[Literal]) {
        let mut at = self.end_of[number as usize];
        self.nodes[at as usize].ends.remove(number);
        while at != ROOT {
            let node = &self.nodes[at as usize];
            if !node.ends.is_empty() || !node.children.is_empty() {
                break;
            }
            let (parent, literal) = (node.parent, node.literal);
            self.edges.remove(&(parent, literal));
            self.nodes[parent as usize].children.remove(at);
            self.free.push(at);
            at = parent;
        }
    }

    fn satisfied(
        &self,
        _: &Held,
        satisfied: &Satisfied,
        open: &mut Vec<u32>,
        found: &mut dyn FnMut(u32),
    ) -> Work {
        let mut work = Work::default();
        open.clear();
        open.push(ROOT);
        while let Some(at) = open.pop() {
            let node = &self.nodes[at as usize];
            work.candidates += 1;
            node.ends.as_slice().iter().for_each(|&number| found(number));
            let children = node.children.as_slice();
            if children.len() <= satisfied.literals.len() {
                let is_true = |child: &u32| satisfied.holds(self.nodes[*child as usize].literal);
                open.extend(children.iter().copied().filter(is_true));
            } else {
                let next = |literal: &Literal| self.edges.get(&(at, *literal)).copied();
                open.extend(satisfied.literals.iter().filter_map(next));
            }
        }
        work
    }

    fn bytes(&self) -> Vec<(&'static str, usize)> {
        let lists = |node: &Node| node.children.heap_bytes() + node.ends.heap_bytes();
        vec![
            ("tree", self.nodes.capacity() * size_of::<Node>() + self.nodes.iter().map(lists).sum::<usize>()),
            ("edges", self.edges.capacity() * (size_of::<((u32, Literal), u32)>() + 1)),
            ("ends", self.end_of.capacity() * size_of::<u32>()),
        ]
    }
}
