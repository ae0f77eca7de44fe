//! The invariants of the graph, walked by tests.

use rustc_hash::FxHashMap;

use super::ATree;
use super::build::is_subset;
use super::graph::{NONE, Op};
use tamis_core::expr::Literal;

impl ATree {
    /// Panics at the first invariant that does not hold.
    pub(super) fn check(&self) {
        let graph = &self.graph;
        let in_use: Vec<u32> = (0..graph.nodes.len() as u32).filter(|at| !graph.is_free(*at)).collect();
        assert_eq!(in_use.len(), graph.len());
        let mut uses: FxHashMap<u32, u32> = FxHashMap::default();
        let mut links: FxHashMap<(u32, u32), i32> = FxHashMap::default();
        for &at in &in_use {
            let node = &graph.nodes[at as usize];
            *uses.entry(at).or_default() += node.rows.len() as u32;
            node.rows.as_slice().iter().for_each(|&row| assert_eq!(self.node_of[row as usize], at));
            for &operand in &node.operands {
                assert!(!graph.is_free(operand), "node {at} has a removed operand");
                *uses.entry(operand).or_default() += 1;
            }
            for &child in node.children() {
                assert!(!graph.is_free(child), "node {at} has a removed child");
                *links.entry((child, at)).or_default() += 1;
            }
            for parent in node.parents() {
                *links.entry((at, parent)).or_default() -= 1;
            }
            self.check_level(at);
            self.check_access(at);
            self.check_cover(at);
            self.check_identity(at);
        }
        for &at in &in_use {
            assert_eq!(graph.nodes[at as usize].uses, uses[&at], "uses of node {at}");
            assert!(uses[&at] > 0, "node {at} is needed by nobody");
        }
        assert!(links.values().all(|difference| *difference == 0), "links are symmetric");
        let highest = in_use.iter().map(|at| graph.levels[*at as usize] as usize).max().unwrap_or(0);
        assert_eq!(graph.highest_level(), highest);
    }

    fn check_level(&self, at: u32) {
        let graph = &self.graph;
        let below = graph.nodes[at as usize].children().iter().map(|child| graph.levels[*child as usize]);
        assert_eq!(graph.levels[at as usize], below.max().map_or(1, |level| level + 1), "level of node {at}");
    }

    /// The access child of an AND on demand reports to it and no other does; nobody listens to its falsehood.
    fn check_access(&self, at: u32) {
        let graph = &self.graph;
        let node = &graph.nodes[at as usize];
        let reporting: Vec<u32> = (node.children().iter().copied())
            .filter(|child| graph.nodes[*child as usize].pushes_to.as_slice().contains(&at))
            .collect();
        if node.on_demand {
            assert_eq!(node.op, Op::And);
            assert_eq!(reporting, [node.access]);
            assert!(!node.tells_false);
        } else {
            assert_eq!(reporting.len(), node.children().len());
            assert_eq!(node.access, NONE);
        }
        for parent in node.parents() {
            let parent = &graph.nodes[parent as usize];
            let listens = parent.tells_false || matches!(parent.op, Op::Not | Op::Xor | Op::Xnor);
            assert!(node.tells_false || !listens, "somebody needs the falsehood of node {at}");
        }
    }

    /// The children stand for exactly the operands.
    fn check_cover(&self, at: u32) {
        let nodes = &self.graph.nodes;
        let node = &nodes[at as usize];
        if node.children.is_none() {
            return;
        }
        assert!(self.settings.may_regroup() && matches!(node.op, Op::And | Op::Or));
        let mut covered = vec![];
        for &child in node.children() {
            let child_node = &nodes[child as usize];
            if child_node.op == node.op {
                assert!(is_subset(&child_node.operands, &node.operands));
                covered.extend(&child_node.operands);
            } else {
                covered.push(child);
            }
        }
        covered.sort_unstable();
        covered.dedup();
        assert_eq!(covered, *node.operands, "cover of node {at}");
    }

    fn check_identity(&self, at: u32) {
        let graph = &self.graph;
        let node = &graph.nodes[at as usize];
        if node.op == Op::Leaf {
            let leaves = graph.leaves[node.literal as usize].as_slice();
            assert!(leaves.contains(&at));
            assert!(!self.settings.sharing || leaves.len() == 1);
            assert!(self.predicates.atom(Literal(node.literal)).attribute.0 != NONE);
        } else if self.settings.sharing {
            let published = self.settings.published_ids;
            let known = graph.identities.find(node.op, &node.operands, published, &graph.nodes);
            assert_eq!(known, Some(at), "an expression is one node");
        }
        let is_set = matches!(node.op, Op::And | Op::Or);
        assert!(node.operands.windows(2).all(|pair| pair[0] < pair[1] || !is_set && pair[0] == pair[1]));
    }
}
