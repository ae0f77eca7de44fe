//! The expression-to-node table, which decides when two expressions are the same.
//!
//! They are if their operator and their set of operands are. Operands are nodes, so equal ones have the same
//! number, and neither order nor nesting within one operator matters.
//!
//! The paper finds a node by a number computed from its predicates' numbers: AND adds, OR multiplies, NOT,
//! XOR and XNOR are the bitwise operations. Different expressions can get the same number: `(a AND b) OR c`
//! and `(a OR c) AND (b OR c)` always do. As an option, the table is keyed by those numbers and counts such
//! collisions. The structure still decides, so two different expressions are never confused.

use std::hash::{Hash, Hasher};

use hashbrown::HashTable;
use rustc_hash::FxHasher;

use super::graph::{Node, Op};
use tamis_core::expr::Atom;

#[derive(Default)]
pub struct Identities {
    table: HashTable<u32>,
    /// The paper's number of every node; empty unless asked for.
    published: Vec<u64>,
    /// How often a new expression got the number of another one.
    pub collisions: u64,
}

/// The paper's number of a predicate: a hash of what is written.
pub fn leaf_id(atom: &Atom, negated: bool) -> u64 {
    let mut hasher = FxHasher::default();
    (atom.attribute, atom.operator, &atom.operands, negated).hash(&mut hasher);
    hasher.finish()
}

impl Identities {
    /// The node of an expression, if it has one.
    pub fn find(&self, op: Op, operands: &[u32], published: bool, nodes: &[Node]) -> Option<u32> {
        let hash = self.key(op, operands, published);
        let same = |&at: &u32| nodes[at as usize].op == op && *nodes[at as usize].operands == *operands;
        self.table.find(hash, same).copied()
    }

    /// Enters a new node.
    pub fn insert(&mut self, at: u32, published: bool, nodes: &[Node]) {
        let node = &nodes[at as usize];
        let hash = self.key(node.op, &node.operands, published);
        if published {
            self.collisions +=
                self.table.find(hash, |&other| self.published[other as usize] == hash).is_some() as u64;
            self.set_published(at, hash);
        }
        let Self { table, published: numbers, .. } = self;
        table.insert_unique(hash, at, |&other| match published {
            true => numbers[other as usize],
            false => structural(nodes[other as usize].op, &nodes[other as usize].operands),
        });
    }

    pub fn remove(&mut self, at: u32, published: bool, nodes: &[Node]) {
        let node = &nodes[at as usize];
        let hash = self.key(node.op, &node.operands, published);
        if let Ok(entry) = self.table.find_entry(hash, |&other| other == at) {
            entry.remove();
        }
    }

    /// Notes the paper's number of a node.
    pub fn set_published(&mut self, at: u32, id: u64) {
        if self.published.len() <= at as usize {
            self.published.resize(at as usize + 1, 0);
        }
        self.published[at as usize] = id;
    }

    fn key(&self, op: Op, operands: &[u32], published: bool) -> u64 {
        if !published {
            return structural(op, operands);
        }
        let mut ids = operands.iter().map(|&operand| self.published[operand as usize]);
        match op {
            Op::And => ids.fold(0, u64::wrapping_add),
            Op::Or => ids.fold(1, u64::wrapping_mul),
            Op::Not => !ids.next().expect("NOT has an operand"),
            Op::Xor => ids.fold(0, |a, b| a ^ b),
            Op::Xnor => !ids.fold(0, |a, b| a ^ b),
            Op::Leaf | Op::Undefined => 0,
        }
    }

    pub fn bytes(&self) -> usize {
        self.table.capacity() * (size_of::<u32>() + 1) + self.published.capacity() * size_of::<u64>()
    }
}

fn structural(op: Op, operands: &[u32]) -> u64 {
    let mut hasher = FxHasher::default();
    (op, operands).hash(&mut hasher);
    hasher.finish()
}
