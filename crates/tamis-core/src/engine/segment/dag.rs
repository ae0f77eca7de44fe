//! Normal forms with every distinct subexpression held once.
//!
//! Identity is checked on the structure (gate and children), never on a hash alone: children are
//! already numbered when their parent is looked up, so comparing two nodes compares small integers.

use hashbrown::HashTable;

use crate::expr::atoms::Literal;
use crate::expr::normal_form::{Form, Node};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Gate {
    And,
    Or,
    /// Children come in pairs: true form, false form.
    OddParity,
    EvenParity,
    /// So many children must be true.
    AtLeast(u32),
}

/// A child: a literal, or another node.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Ref(u32);

pub enum Target {
    Literal(Literal),
    Node(u32),
}

impl Ref {
    fn literal(literal: Literal) -> Self {
        Ref(literal.0 << 1)
    }

    fn node(node: u32) -> Self {
        Ref(node << 1 | 1)
    }

    /// The same test where atoms and nodes have other numbers.
    fn mapped(self, nodes: &[u32], atom: &mut impl FnMut(u32) -> u32) -> Self {
        match self.target() {
            Target::Node(node) => Ref::node(nodes[node as usize]),
            Target::Literal(literal) => {
                Ref::literal(Literal::new(atom(literal.atom()), literal.is_negated()))
            }
        }
    }

    pub fn target(self) -> Target {
        if self.0 & 1 == 1 { Target::Node(self.0 >> 1) } else { Target::Literal(Literal(self.0 >> 1)) }
    }
}

/// The number of no node.
pub const NO_NODE: u32 = u32::MAX;

#[derive(Default)]
pub struct Dag {
    heads: Vec<Head>,
    children: Vec<Ref>,
    /// How many distinct nodes have this one as a child.
    parents: Vec<u32>,
    /// Half of each node's hash and its number: few other nodes are looked at to find one, and none to grow.
    table: HashTable<(u32, u32)>,
}

/// The gate of a node, where its children are, and how many.
#[derive(Clone, Copy)]
struct Head {
    first_child: u32,
    children: u32,
    gate: Gate,
}

impl Dag {
    /// The node of a whole expression, its literals renumbered. A single literal becomes an AND of one.
    pub fn root(&mut self, form: &Form, renumbered: &impl Fn(Literal) -> Literal) -> u32 {
        let reference = match form {
            Form::And(children) if children.iter().all(|child| matches!(child, Form::Literal(_))) => {
                self.flat(Gate::And, children, renumbered)
            }
            _ => form.fold(&mut |node: Node<'_, Ref>| match node {
                Node::True => self.intern(Gate::And, &[]),
                Node::False => self.intern(Gate::Or, &[]),
                Node::Literal(literal) => Ref::literal(renumbered(literal)),
                Node::And(children) => self.intern_sorted(Gate::And, children),
                Node::Or(children) => self.intern_sorted(Gate::Or, children),
                Node::AtLeast(least, children) => {
                    let single: Vec<Ref> = children.iter().map(|child| self.single_test(*child)).collect();
                    self.intern_sorted(Gate::AtLeast(least), &single)
                }
                Node::Parity { odd, children } => {
                    let pairs: Vec<Ref> = children
                        .iter()
                        .flat_map(|(t, f)| [self.single_test(*t), self.single_test(*f)])
                        .collect();
                    self.intern(if odd { Gate::OddParity } else { Gate::EvenParity }, &pairs)
                }
            }),
        };
        match reference.target() {
            Target::Node(node) => node,
            Target::Literal(_) => match self.intern(Gate::And, &[reference]).target() {
                Target::Node(node) => node,
                Target::Literal(_) => unreachable!("intern returns nodes"),
            },
        }
    }

    fn flat(&mut self, gate: Gate, literals: &[Form], renumbered: &impl Fn(Literal) -> Literal) -> Ref {
        let mut children: Vec<Ref> = literals
            .iter()
            .map(|form| match form {
                Form::Literal(literal) => Ref::literal(renumbered(*literal)),
                _ => unreachable!("the caller checked that all are literals"),
            })
            .collect();
        children.sort_unstable();
        self.intern(gate, &children)
    }

    /// Children of parities and thresholds are tested one by one, so a literal there gets a node of its own.
    fn single_test(&mut self, child: Ref) -> Ref {
        match child.target() {
            Target::Node(_) => child,
            Target::Literal(_) => self.intern(Gate::And, &[child]),
        }
    }

    /// The node here that means what `root` means in another graph. `nodes` knows what was imported before,
    /// and `atom` says which numbers the other's atoms have here.
    pub fn import(
        &mut self,
        from: &Dag,
        root: u32,
        nodes: &mut [u32],
        atom: &mut impl FnMut(u32) -> u32,
    ) -> u32 {
        if nodes[root as usize] != NO_NODE {
            return nodes[root as usize];
        }
        for child in from.children(root) {
            if let Target::Node(child) = child.target() {
                self.import(from, child, nodes, atom);
            }
        }
        let mut children: Vec<Ref> =
            from.children(root).iter().map(|child| child.mapped(nodes, atom)).collect();
        let gate = from.gate(root);
        if matches!(gate, Gate::And | Gate::Or | Gate::AtLeast(_)) {
            children.sort_unstable();
        }
        let Target::Node(node) = self.intern(gate, &children).target() else {
            unreachable!("intern returns nodes")
        };
        nodes[root as usize] = node;
        node
    }

    fn intern_sorted(&mut self, gate: Gate, children: &[Ref]) -> Ref {
        let mut sorted = children.to_vec();
        sorted.sort_unstable();
        self.intern(gate, &sorted)
    }

    fn intern(&mut self, gate: Gate, children: &[Ref]) -> Ref {
        let hash = hash_node(gate, children);
        let is_same = |&(half, node): &(u32, u32)| {
            half == hash as u32 && self.gate(node) == gate && self.children(node) == children
        };
        if let Some(&(_, node)) = self.table.find(spread(hash as u32), is_same) {
            return Ref::node(node);
        }
        let node = self.heads.len() as u32;
        self.table.insert_unique(spread(hash as u32), (hash as u32, node), |&(half, _)| spread(half));
        self.heads.push(Head {
            first_child: self.children.len() as u32,
            children: children.len() as u32,
            gate,
        });
        self.children.extend_from_slice(children);
        self.parents.push(0);
        for child in children {
            if let Target::Node(child) = child.target() {
                self.parents[child as usize] += 1;
            }
        }
        Ref::node(node)
    }

    pub fn child_count(&self) -> usize {
        self.children.len()
    }

    /// Makes room for up to so many more nodes, of which some are sure to come.
    pub fn reserve(&mut self, nodes: usize, surely: usize, children: usize) {
        self.heads.reserve_exact(nodes);
        self.parents.reserve_exact(nodes);
        self.children.reserve_exact(children);
        self.table.reserve(surely, |&(half, _)| spread(half));
    }

    /// Ends the adding of nodes: gives back what only finding them needs.
    pub fn seal(&mut self) {
        self.table = HashTable::new();
        self.heads.shrink_to_fit();
        self.children.shrink_to_fit();
        self.parents.shrink_to_fit();
    }

    /// How many nodes the expression of each node had when it was written, the two forms of a parity's child
    /// counted as one.
    pub fn written_nodes(&self) -> Vec<u64> {
        let mut written: Vec<u64> = Vec::with_capacity(self.nodes());
        for node in 0..self.nodes() as u32 {
            let children = self.children(node);
            let step = if matches!(self.gate(node), Gate::OddParity | Gate::EvenParity) { 2 } else { 1 };
            let below = children.iter().step_by(step).map(|child| match child.target() {
                Target::Literal(_) => 1,
                Target::Node(child) => written[child as usize],
            });
            // A node with one child stands for a single literal.
            let own = u64::from(children.len() != 1);
            written.push(below.fold(own, u64::saturating_add));
        }
        written
    }

    /// Bytes on the heap.
    pub fn bytes(&self) -> usize {
        self.heads.capacity() * size_of::<Head>()
            + 4 * (self.children.capacity() + self.parents.capacity())
            + self.table.allocation_size()
    }

    /// How many distinct nodes there are.
    pub fn nodes(&self) -> usize {
        self.heads.len()
    }

    pub fn gate(&self, node: u32) -> Gate {
        self.heads[node as usize].gate
    }

    pub fn children(&self, node: u32) -> &[Ref] {
        let Head { first_child, children, .. } = self.heads[node as usize];
        &self.children[first_child as usize..(first_child + children) as usize]
    }

    pub fn parents(&self, node: u32) -> u32 {
        self.parents[node as usize]
    }
}

fn hash_node(gate: Gate, children: &[Ref]) -> u64 {
    let gate = match gate {
        Gate::And => 0,
        Gate::Or => 1,
        Gate::OddParity => 2,
        Gate::EvenParity => 3,
        Gate::AtLeast(least) => 4 + least as u64,
    };
    let mut hash = gate ^ 0x9E37_79B9_7F4A_7C15;
    for child in children {
        hash = (hash.rotate_left(5) ^ child.0 as u64).wrapping_mul(0x517C_C1B7_2722_0A95);
    }
    hash ^ hash >> 32
}

/// 32 bits of a hash as 64 of which all matter.
fn spread(half: u32) -> u64 {
    (half as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}
