//! Removes the nodes that only a removed subscription needed (Algorithm 5).
//!
//! A node is needed while it is the expression of a subscription or an operand of another node. A node that is no
//! longer needed may still be a child of nodes that were regrouped: these take over its children. Each of its
//! operands then has one user less. The paper walks over the child expressions for this; here the walk
//! follows the operands, because the count of users belongs to them and not to the children.

use super::ATree;
use super::graph::Op;
use tamis_core::expr::Literal;

impl ATree {
    pub(super) fn drop_use(&mut self, node: u32) {
        let uses = &mut self.graph.nodes[node as usize].uses;
        *uses -= 1;
        if *uses == 0 {
            self.delete(node);
        }
    }

    /// Removes a node that is not needed, and what it alone needed.
    pub(super) fn delete(&mut self, node: u32) {
        let mut open = vec![node];
        while let Some(at) = open.pop() {
            self.hand_over(at);
            let graph = &mut self.graph;
            graph.unlink_children(at);
            graph.identities.remove(at, self.settings.published_ids, &graph.nodes);
            let node = &graph.nodes[at as usize];
            if node.op == Op::Leaf {
                let literal = Literal(node.literal);
                graph.leaves[literal.0 as usize].remove(at);
                self.predicates.release(literal);
                if !self.settings.zero_suppression {
                    self.predicates.release(literal.not());
                }
            }
            let operands = self.graph.nodes[at as usize].operands.clone();
            self.graph.clear(at);
            for &operand in &operands {
                let uses = &mut self.graph.nodes[operand as usize].uses;
                *uses -= 1;
                if *uses == 0 {
                    open.push(operand);
                }
            }
        }
    }

    /// Gives the children of a node to the parents that were put together from it.
    fn hand_over(&mut self, at: u32) {
        let node = &self.graph.nodes[at as usize];
        let mut parents: Vec<u32> = node.parents().collect();
        parents.sort_unstable();
        parents.dedup();
        let inherited = node.children().to_vec();
        for parent in parents {
            let mut children: Vec<u32> = self.graph.nodes[parent as usize].children().to_vec();
            children.retain(|child| *child != at);
            for &child in &inherited {
                if !children.contains(&child) {
                    children.push(child);
                }
            }
            children.sort_unstable();
            self.graph.set_children(parent, children);
        }
    }
}
