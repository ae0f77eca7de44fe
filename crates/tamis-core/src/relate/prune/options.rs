//! The valid prunings of one tree, each with a profile of the result.
//!
//! Every node knows the combined value of its siblings. So one walk up from a removed node shows its effect on the whole
//! tree, and all prunings of a tree with n nodes cost n walks instead of n trees.

use super::measure::{Estimate, LEAF_BYTES, LeafFacts, Measure, NODE_BYTES, Profile};
use crate::relate::tree::Tree;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Connective {
    And,
    Or,
}

impl Connective {
    /// Of no children.
    fn neutral(self) -> Profile {
        let share = if self == Self::And { 1.0 } else { 0.0 };
        let least_true = if self == Self::And { 0 } else { u32::MAX };
        Profile { estimate: Estimate { min: share, avg: share, max: share }, least_true, ..Profile::TRUE }
    }

    /// Of both; bounds may be left out of 0..1 until [`finish`](Self::finish).
    fn join(self, a: Profile, b: Profile) -> Profile {
        let (x, y) = (a.estimate, b.estimate);
        let (estimate, least_true) = match self {
            Self::And => (
                Estimate { min: x.min + y.min - 1.0, avg: x.avg * y.avg, max: x.max.min(y.max) },
                a.least_true.saturating_add(b.least_true),
            ),
            Self::Or => (
                Estimate { min: x.min.max(y.min), avg: x.avg + y.avg - x.avg * y.avg, max: x.max + y.max },
                a.least_true.min(b.least_true),
            ),
        };
        Profile { estimate, least_true, bytes: a.bytes + b.bytes, occurrence: a.occurrence + b.occurrence }
    }

    fn finish(self, mut profile: Profile) -> Profile {
        profile.estimate.min = profile.estimate.min.max(0.0);
        profile.estimate.max = profile.estimate.max.min(1.0);
        profile
    }
}

/// A tree laid out so that its prunings can be compared.
#[derive(Default)]
pub struct Layout {
    /// Parents before children; the first is the root.
    nodes: Vec<Node>,
    /// Children that are waiting for their siblings.
    waiting: Vec<usize>,
}

struct Node {
    parent: Option<usize>,
    /// The place among its siblings.
    place: usize,
    /// `None` for a leaf.
    connective: Option<Connective>,
    children: usize,
    profile: Profile,
    /// What its siblings amount to.
    siblings: Profile,
    /// Whether a pruning is possible inside.
    can_be_pruned: bool,
    /// Of all children of this node, when there are two: whether the other is an OR.
    sibling_is_or: bool,
}

/// One valid pruning.
#[derive(Clone, Copy, Debug)]
pub struct Pruning {
    /// The node that is removed.
    removed: usize,
    pub after: Profile,
}

impl Layout {
    /// Lays out a tree that is no constant, in the memory of the last one.
    pub fn lay_out(&mut self, tree: &Tree, facts: &LeafFacts<'_>) {
        self.nodes.clear();
        self.add(tree, None, 0, facts);
    }

    /// The profile of the whole tree.
    pub fn profile(&self) -> Profile {
        self.nodes[0].profile
    }

    fn add(&mut self, tree: &Tree, parent: Option<usize>, place: usize, facts: &LeafFacts<'_>) -> usize {
        let at = self.nodes.len();
        let (connective, children, profile) = match tree {
            Tree::True | Tree::False => unreachable!("a constant has nothing to prune"),
            Tree::Leaf(id) => (None, &[][..], facts.profile(*id)),
            Tree::And(children) => (Some(Connective::And), &children[..], Profile::TRUE),
            Tree::Or(children) => (Some(Connective::Or), &children[..], Profile::TRUE),
        };
        self.nodes.push(Node {
            parent,
            place,
            connective,
            children: children.len(),
            profile,
            siblings: Profile::TRUE,
            can_be_pruned: connective == Some(Connective::And),
            sibling_is_or: false,
        });
        let Some(connective) = connective else {
            return at;
        };
        let first = self.waiting.len();
        for (place, child) in children.iter().enumerate() {
            let child = self.add(child, Some(at), place, facts);
            self.nodes[at].can_be_pruned |= self.nodes[child].can_be_pruned;
            self.waiting.push(child);
        }
        let Self { nodes, waiting } = self;
        let children = &waiting[first..];
        let mut before = connective.neutral();
        for &child in children {
            nodes[child].siblings = before;
            before = connective.join(before, nodes[child].profile);
        }
        let mut behind = connective.neutral();
        for &child in children.iter().rev() {
            nodes[child].siblings = connective.join(nodes[child].siblings, behind);
            behind = connective.join(nodes[child].profile, behind);
        }
        if let [one, other] = *children {
            nodes[one].sibling_is_or = nodes[other].connective == Some(Connective::Or);
            nodes[other].sibling_is_or = nodes[one].connective == Some(Connective::Or);
        }
        nodes[at].profile = connective.finish(before);
        nodes[at].profile.bytes += NODE_BYTES;
        waiting.truncate(first);
        at
    }

    /// All valid prunings: the children of ANDs. By memory, one that contains no other.
    pub fn prunings(&self, measure: Measure) -> impl Iterator<Item = Pruning> {
        let is_valid = move |node: &Node| {
            let is_in_and =
                node.parent.is_some_and(|parent| self.nodes[parent].connective == Some(Connective::And));
            is_in_and && !(measure == Measure::Memory && node.can_be_pruned)
        };
        let valid = self.nodes.iter().enumerate().filter(move |(_, node)| is_valid(node));
        valid.map(|(removed, node)| Pruning { removed, after: self.without(node) })
    }

    /// The places to go through from the root to what a pruning removes.
    pub fn path(&self, pruning: &Pruning) -> Vec<usize> {
        let mut path = vec![];
        let mut node = &self.nodes[pruning.removed];
        while let Some(parent) = node.parent {
            path.push(node.place);
            node = &self.nodes[parent];
        }
        path.reverse();
        path
    }

    /// The profile of the tree without a child of an AND.
    fn without(&self, removed: &Node) -> Profile {
        let and = &self.nodes[removed.parent.expect("the root is never removed")];
        let mut after = Connective::And.finish(removed.siblings);
        if and.children > 2 {
            after.bytes += NODE_BYTES;
        } else if removed.sibling_is_or && and.parent.is_some() {
            // The OR that is left joins the OR above.
            after.bytes -= NODE_BYTES;
        }
        let mut at = and;
        while let Some(parent) = at.parent {
            let parent = &self.nodes[parent];
            let connective = parent.connective.expect("a parent is no leaf");
            after = connective.finish(connective.join(at.siblings, after));
            after.bytes += NODE_BYTES;
            at = parent;
        }
        after
    }
}

/// Removes what the path leads to. ANDs and ORs with one child left are replaced by it, and nested ones of
/// one kind are joined.
pub fn remove(tree: &mut Tree, path: &[usize]) {
    let (Tree::And(children) | Tree::Or(children)) = tree else {
        unreachable!("a path leads through connectives")
    };
    match path {
        [place] => {
            children.remove(*place);
        }
        [place, rest @ ..] => remove(&mut children[*place], rest),
        [] => unreachable!("the root is never removed"),
    }
    let children = std::mem::take(children);
    *tree = if matches!(tree, Tree::And(_)) { Tree::and(children) } else { Tree::or(children) };
}

/// The bytes of a tree: Bittner's encoding, 5 for a predicate and 2 for an AND or OR.
pub fn bytes(tree: &Tree) -> usize {
    match tree {
        Tree::True | Tree::False => 0,
        Tree::Leaf(_) => LEAF_BYTES,
        Tree::And(children) | Tree::Or(children) => NODE_BYTES + children.iter().map(bytes).sum::<usize>(),
    }
}
