//! Finds the true expressions, with one queue per level, from the leaves up (Algorithm 6).
//!
//! A node enters the queue of its level when the first child reports to it, and is evaluated when all lower
//! levels are done. By then the results of its children are final, and a child without a result is undefined
//! (or false, which is the same under zero suppression). Results carry the number of the event, so nothing has
//! to be cleared between events.

use super::ATree;
use super::graph::Op;
use crate::predicates::Satisfied;
use tamis_core::engine::contract::Work;
use tamis_core::expr::Outcome;

#[derive(Default)]
pub struct Scratch {
    pub satisfied: Satisfied,
    /// The number of the event in the upper bits, then: can be true, can be false.
    results: Vec<u32>,
    event: u32,
    queues: Vec<Vec<u32>>,
}

const TRUE: u32 = 2;
const FALSE: u32 = 1;
const BITS: u32 = 2;

impl Scratch {
    fn start(&mut self, nodes: usize, levels: usize) {
        if self.event == u32::MAX >> BITS {
            self.results.fill(0);
            self.event = 0;
        }
        self.event += 1;
        self.results.resize(nodes.max(self.results.len()), 0);
        self.queues.resize_with((levels + 1).max(self.queues.len()), Vec::new);
    }

    /// Puts a node into its queue unless it is there already.
    fn enqueue(&mut self, node: u32, level: u16) {
        let result = &mut self.results[node as usize];
        if *result >> BITS != self.event {
            *result = self.event << BITS;
            self.queues[level as usize].push(node);
        }
    }

    fn bits(&self, node: u32) -> u32 {
        let result = self.results[node as usize];
        if result >> BITS == self.event { result & (TRUE | FALSE) } else { 0 }
    }

    fn outcome(&self, node: u32) -> Outcome {
        let bits = self.bits(node);
        Outcome { can_be_true: bits & TRUE != 0, can_be_false: bits & FALSE != 0 }
    }
}

impl ATree {
    pub(super) fn propagate(&self, scratch: &mut Scratch, found: &mut dyn FnMut(u32)) -> Work {
        let graph = &self.graph;
        let levels = graph.highest_level();
        scratch.start(graph.nodes.len(), levels);
        let leaves =
            |literal: u32| graph.leaves.get(literal as usize).map_or(&[][..], |list| list.as_slice());
        for at in 0..scratch.satisfied.literals.len() {
            let literal = scratch.satisfied.literals[at];
            for &leaf in leaves(literal.0) {
                scratch.enqueue(leaf, 1);
                scratch.results[leaf as usize] |= TRUE;
            }
            if !self.settings.zero_suppression {
                for &leaf in leaves(literal.not().0) {
                    scratch.enqueue(leaf, 1);
                    scratch.results[leaf as usize] |= FALSE;
                }
            }
        }
        let mut work = Work::default();
        for level in 1..=levels {
            let mut queue = std::mem::take(&mut scratch.queues[level]);
            work.candidates += queue.len() as u64;
            for node in queue.drain(..) {
                if level > 1 {
                    work.evaluations += 1;
                    scratch.results[node as usize] |= self.evaluate(node, scratch);
                }
                self.report(node, scratch, found);
            }
            scratch.queues[level] = queue;
        }
        work
    }

    fn report(&self, at: u32, scratch: &mut Scratch, found: &mut dyn FnMut(u32)) {
        let (graph, bits) = (&self.graph, scratch.bits(at));
        let is_true = bits & TRUE != 0;
        if bits == 0 || self.settings.zero_suppression && !is_true {
            return;
        }
        let node = &graph.nodes[at as usize];
        if is_true {
            node.rows.as_slice().iter().for_each(|&row| found(row));
        }
        for &parent in node.pushes_to.as_slice() {
            if is_true || !graph.nodes[parent as usize].on_demand {
                scratch.enqueue(parent, graph.levels[parent as usize]);
            }
        }
    }

    fn evaluate(&self, at: u32, scratch: &Scratch) -> u32 {
        let node = &self.graph.nodes[at as usize];
        let mut outcomes = node.children().iter().map(|&child| scratch.outcome(child));
        if self.settings.zero_suppression {
            return match node.op {
                // Only true children report.
                Op::Or => TRUE,
                _ => outcomes.all(|outcome| outcome.can_be_true) as u32 * TRUE,
            };
        }
        let outcome = match node.op {
            Op::And => outcomes.fold(Outcome::TRUE, Outcome::and),
            Op::Or => outcomes.fold(Outcome::FALSE, Outcome::or),
            Op::Not => !outcomes.next().expect("NOT has a child"),
            Op::Xor => outcomes.fold(Outcome::FALSE, Outcome::xor),
            // The left fold of XNOR: the XOR of all, negated if their number is even.
            Op::Xnor if node.children().len().is_multiple_of(2) => {
                !outcomes.fold(Outcome::FALSE, Outcome::xor)
            }
            Op::Xnor => outcomes.fold(Outcome::FALSE, Outcome::xor),
            Op::Leaf | Op::Undefined => unreachable!("leaves are on the first level"),
        };
        (outcome.can_be_true as u32 * TRUE) | (outcome.can_be_false as u32 * FALSE)
    }
}
