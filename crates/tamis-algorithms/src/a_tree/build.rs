//! Finds the node of an expression, or creates it from existing nodes (Algorithms 1 to 4).

use rustc_hash::FxHashSet;

use super::graph::{Node, Op};
use super::identity::leaf_id;
use super::{ATree, Shape};
use crate::circuit::{Circuit, Gate};
use crate::short_list::ShortList;
use tamis_core::event::Terms;
use tamis_core::expr::Literal;

impl ATree {
    /// The node of an expression, used once more.
    pub(super) fn insert_circuit(&mut self, circuit: &Circuit<'_>, terms: &mut Terms) -> u32 {
        let literals = circuit.acquire(&mut self.predicates, terms);
        let mut made = vec![];
        let mut nodes: Vec<u32> = Vec::with_capacity(circuit.gates.len());
        for gate in &circuit.gates {
            let of = |children: &[u32]| children.iter().map(|&child| nodes[child as usize]).collect();
            let node = match gate {
                Gate::Leaf(leaf) => self.leaf(literals[*leaf as usize], &mut made),
                Gate::Undefined => self.node(Op::Undefined, vec![], &mut made),
                Gate::And(children) => self.node(Op::And, of(children), &mut made),
                Gate::Or(children) => self.node(Op::Or, of(children), &mut made),
                Gate::Not(child) => self.node(Op::Not, vec![nodes[*child as usize]], &mut made),
                Gate::Xor(children) => self.node(Op::Xor, of(children), &mut made),
                Gate::Xnor(children) => self.node(Op::Xnor, of(children), &mut made),
                Gate::True | Gate::False => unreachable!("constants are folded"),
            };
            nodes.push(node);
        }
        let root = nodes[circuit.root as usize];
        self.graph.nodes[root as usize].uses += 1;
        // What was flattened into its parent is used by nobody.
        for node in made.into_iter().rev() {
            if !self.graph.is_free(node) && self.graph.nodes[node as usize].uses == 0 {
                self.delete(node);
            }
        }
        literals.into_iter().for_each(|literal| self.predicates.release(literal));
        root
    }

    fn leaf(&mut self, literal: Literal, made: &mut Vec<u32>) -> u32 {
        let known = self.graph.leaves.get(literal.0 as usize).and_then(|list| list.as_slice().first());
        if let (Some(&leaf), true) = (known, self.settings.sharing) {
            return leaf;
        }
        let mut node = Node::new(Op::Leaf, Box::default());
        node.literal = literal.0;
        let at = self.graph.place(node);
        made.push(at);
        if self.graph.leaves.len() <= literal.0 as usize {
            self.graph.leaves.resize_with(literal.0 as usize + 1, ShortList::default);
        }
        self.graph.leaves[literal.0 as usize].push(at);
        self.predicates.acquire_again(literal);
        if !self.settings.zero_suppression {
            // Also when it is false.
            self.predicates.acquire_again(literal.not());
        }
        if self.settings.published_ids {
            let id = leaf_id(self.predicates.atom(literal), literal.is_negated());
            self.graph.identities.set_published(at, id);
        }
        at
    }

    fn node(&mut self, op: Op, mut operands: Vec<u32>, made: &mut Vec<u32>) -> u32 {
        if matches!(op, Op::And | Op::Or) {
            if self.settings.shape == Shape::Multitree {
                operands = self.flattened(op, operands);
            }
            operands.sort_unstable();
            operands.dedup();
            if let [only] = operands[..] {
                return only;
            }
        } else {
            operands.sort_unstable();
        }
        if self.settings.shape == Shape::Binary && operands.len() > 2 {
            return self.binary(op, &operands, made);
        }
        self.find_or_make(op, operands, made)
    }

    /// Equal subexpressions written in different order become one node, which can bring an AND into an AND.
    fn flattened(&self, op: Op, operands: Vec<u32>) -> Vec<u32> {
        let nodes = &self.graph.nodes;
        let flat = operands.iter().flat_map(|operand| match &nodes[*operand as usize] {
            node if node.op == op => &node.operands[..],
            _ => std::slice::from_ref(operand),
        });
        flat.copied().collect()
    }

    /// `((a op b) op c) op d`; the left fold of XNOR is that of XOR, negated once per step.
    fn binary(&mut self, op: Op, operands: &[u32], made: &mut Vec<u32>) -> u32 {
        let mut pairs = operands.iter().copied();
        let mut left = pairs.next().expect("there are more than two");
        for right in pairs {
            let mut pair = vec![left, right];
            pair.sort_unstable();
            left = match &pair[..] {
                [a, b] if a == b && matches!(op, Op::And | Op::Or) => *a,
                _ => self.find_or_make(op, pair, made),
            };
        }
        left
    }

    fn find_or_make(&mut self, op: Op, operands: Vec<u32>, made: &mut Vec<u32>) -> u32 {
        let published = self.settings.published_ids;
        let graph = &mut self.graph;
        if self.settings.sharing
            && let Some(node) = graph.identities.find(op, &operands, published, &graph.nodes)
        {
            return node;
        }
        for &operand in &operands {
            graph.nodes[operand as usize].uses += 1;
        }
        let children = if self.settings.reorganize && self.settings.may_regroup() {
            self.reorganized(op, &operands)
        } else {
            None
        };
        let graph = &mut self.graph;
        graph.reorganized += children.is_some() as u64;
        let mut node = Node::new(op, operands.into());
        node.children = children.map(Into::into);
        node.on_demand = op == Op::And && self.settings.propagation_on_demand;
        let at = graph.place(node);
        made.push(at);
        graph.link_children(at);
        if self.settings.sharing {
            graph.identities.insert(at, published, &graph.nodes);
        } else if published {
            graph.identities.set_published(at, 0);
        }
        if self.settings.self_adjust && self.settings.may_regroup() {
            self.self_adjust(at);
        }
        at
    }

    /// Algorithm 2: covers the operands greedily with nodes that exist. A node qualifies if it has the same
    /// operator, only operands of ours, and one that is not covered yet. Covers may overlap, which AND and OR
    /// do not mind; XOR would.
    fn reorganized(&self, op: Op, operands: &[u32]) -> Option<Vec<u32>> {
        if !matches!(op, Op::And | Op::Or) || operands.len() < 3 {
            return None;
        }
        let nodes = &self.graph.nodes;
        let mut seen = FxHashSet::default();
        let mut candidates: Vec<u32> = vec![];
        let mut open = operands.to_vec();
        while let Some(below) = open.pop() {
            for parent in nodes[below as usize].parents().take(self.settings.search_limit) {
                let node = &nodes[parent as usize];
                let qualifies = node.op == op && node.operands.len() < operands.len();
                if qualifies && is_subset(&node.operands, operands) && seen.insert(parent) {
                    candidates.push(parent);
                    open.push(parent);
                }
            }
        }
        candidates.sort_unstable();
        let mut uncovered: FxHashSet<u32> = operands.iter().copied().collect();
        let mut children = vec![];
        loop {
            let gain = |node: u32| {
                nodes[node as usize].operands.iter().filter(|operand| uncovered.contains(operand)).count()
            };
            let best = candidates.iter().map(|&node| (gain(node), std::cmp::Reverse(node))).max();
            match best {
                Some((gain, std::cmp::Reverse(node))) if gain >= 1 => {
                    nodes[node as usize].operands.iter().for_each(|operand| {
                        uncovered.remove(operand);
                    });
                    children.push(node);
                }
                _ => break,
            }
        }
        if children.is_empty() {
            return None;
        }
        children.extend(operands.iter().filter(|operand| uncovered.contains(operand)));
        Some(children)
    }

    /// Algorithm 3: nodes whose operands include all of the new node's take it as a child, in the place of
    /// the children that it stands for.
    fn self_adjust(&mut self, new: u32) {
        let op = self.graph.nodes[new as usize].op;
        if !matches!(op, Op::And | Op::Or) {
            return;
        }
        let nodes = &self.graph.nodes;
        let mut candidates: Vec<u32> = vec![];
        for &child in nodes[new as usize].children() {
            candidates.extend(nodes[child as usize].parents().take(self.settings.search_limit));
        }
        candidates.sort_unstable();
        candidates.dedup();
        for parent in candidates.into_iter().filter(|parent| *parent != new) {
            let nodes = &self.graph.nodes;
            let (node, ours) = (&nodes[parent as usize], &nodes[new as usize].operands);
            if node.op != op || node.operands.len() <= ours.len() || !is_subset(ours, &node.operands) {
                continue;
            }
            let is_covered = |child: &u32| {
                let child_node = &nodes[*child as usize];
                ours.binary_search(child).is_ok()
                    || child_node.op == op && is_subset(&child_node.operands, ours)
            };
            let mut children: Vec<u32> = node.children().to_vec();
            let before = children.len();
            children.retain(|child| !is_covered(child));
            // With one child replaced, nothing would be gained.
            if before - children.len() >= 2 {
                children.push(new);
                self.graph.set_children(parent, children);
                self.graph.adjusted += 1;
            }
        }
    }
}

/// Both sorted.
pub(super) fn is_subset(small: &[u32], large: &[u32]) -> bool {
    let mut large = large.iter();
    small.iter().all(|wanted| large.by_ref().any(|found| found == wanted))
}
