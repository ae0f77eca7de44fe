//! Runs a scoring program, and validates one that was read from a file.

use super::node::{LeafNode, Node, NodeKind, XorChain, weight};
use crate::engine::segment::program::Leaf;
use crate::query::Scale;

/// A program as it runs, for one event.
pub struct Program<'a> {
    code: &'a [u32],
    at: usize,
    bits: &'a [u64],
    scale: &'a Scale,
    /// Leaves of attributes that are left out are not true.
    relaxed: bool,
}

/// Whether a node is true, and what it counts: 0 unless it is.
type Counted = (bool, f64);

impl<'a> Program<'a> {
    pub fn new(code: &'a [u32], bits: &'a [u64], scale: &'a Scale) -> Self {
        Self { code, at: 0, bits, scale, relaxed: false }
    }

    /// What a program of an expression that is true counts.
    pub fn relevance(mut self) -> f64 {
        self.node().1
    }

    /// What a program of leaves counts, if one of them is true and not left out.
    pub fn relaxed(mut self) -> Option<f64> {
        self.relaxed = true;
        let (some, sum) = self.node();
        some.then_some(sum)
    }

    fn word(&mut self) -> u32 {
        self.at += 1;
        self.code[self.at - 1]
    }

    fn node(&mut self) -> Counted {
        match Node::read(self.word()) {
            Some(Node::Leaf(leaf)) => self.leaf(leaf),
            Some(Node::All(children) | Node::And(children)) => {
                let (held, sum) = self.children(children);
                let all = held == children;
                (all, if all { sum } else { 0.0 })
            }
            Some(Node::Or(children)) => {
                let (held, sum) = self.children(children);
                (held > 0, sum)
            }
            Some(Node::AtLeast(least, children)) => {
                let (held, sum) = self.children(children);
                (held >= least, if held >= least { sum } else { 0.0 })
            }
            Some(Node::Xor(chain)) => self.xor(chain),
            None => (false, 0.0),
        }
    }

    /// How many of the next nodes are true, and what they count together.
    fn children(&mut self, children: u32) -> (u32, f64) {
        let (mut held, mut sum) = (0, 0.0);
        for _ in 0..children {
            let (holds, amount) = self.node();
            held += u32::from(holds);
            sum += amount;
        }
        (held, sum)
    }

    /// What counts in the true case of a chain and what in its false case, step by step.
    fn xor(&mut self, chain: XorChain) -> Counted {
        let both = |a: Counted, b: Counted| if a.0 && b.0 { (true, a.1 + b.1) } else { (false, 0.0) };
        let either = |a: Counted, b: Counted| (a.0 || b.0, a.1 + b.1);
        let (mut if_true, mut if_false) = (self.node(), self.node());
        for _ in 1..chain.children {
            let (t, f) = (self.node(), self.node());
            let differ = either(both(if_true, f), both(if_false, t));
            let agree = either(both(if_true, t), both(if_false, f));
            (if_true, if_false) = if chain.negates { (agree, differ) } else { (differ, agree) };
        }
        if chain.wants_false { if_false } else { if_true }
    }

    #[inline]
    fn leaf(&mut self, LeafNode { attribute, form, plain }: LeafNode) -> Counted {
        let weight = if plain { 1.0 } else { weight([self.word(), self.word()]) };
        let holds = match form {
            NodeKind::One => self.test(),
            NodeKind::Both => self.test() & self.test(),
            NodeKind::Either => self.test() | self.test(),
            NodeKind::OneOrBoth => self.test() | (self.test() & self.test()),
            NodeKind::True => true,
        };
        let holds = holds && !(self.relaxed && self.scale.leaves_out(attribute));
        (holds, if holds { weight * self.scale.factor(attribute) } else { 0.0 })
    }

    fn test(&mut self) -> bool {
        let leaf = Leaf(self.word());
        let bit = leaf.bit();
        (self.bits[(bit >> 6) as usize] >> (bit & 63) ^ leaf.0 as u64) & 1 == 1
    }
}

/// The length of the node at the start of `code`, if it is sound. Only `tested` leaves have tests.
pub fn length_if_sound(code: &[u32], bits: u32, tested: bool, depth: usize) -> Option<usize> {
    let node = Node::read(*code.first()?)?;
    let (nodes, only_leaves) = match node {
        Node::Leaf(leaf) => return leaf_length_if_sound(leaf, code, bits, tested),
        Node::Xor(XorChain { children: 0, .. }) => return None,
        Node::Xor(XorChain { children, .. }) => (2 * children, false),
        Node::And(nodes) | Node::Or(nodes) | Node::AtLeast(_, nodes) => (nodes, false),
        Node::All(leaves) => (leaves, true),
    };
    let depth = depth.checked_sub(1)?;
    let mut at = 1;
    for _ in 0..nodes {
        if only_leaves && !matches!(Node::read(*code.get(at)?), Some(Node::Leaf(_))) {
            return None;
        }
        at += length_if_sound(code.get(at..)?, bits, !only_leaves, depth)?;
    }
    Some(at)
}

fn leaf_length_if_sound(leaf: LeafNode, code: &[u32], bits: u32, tested: bool) -> Option<usize> {
    let first_test = 1 + leaf.weight_words();
    let tests = code.get(first_test..first_test + leaf.form.tests())?;
    let is_good = |test: &u32| Leaf(*test).as_unit().is_none() && Leaf(*test).bit() < bits;
    let weight_is_good = leaf.plain || (0.0..f64::INFINITY).contains(&weight([code[1], code[2]]));
    (tests.iter().all(is_good) && weight_is_good && (tested || tests.is_empty()))
        .then_some(first_test + leaf.form.tests())
}
