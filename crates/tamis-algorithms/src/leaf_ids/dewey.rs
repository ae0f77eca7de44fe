//! Dewey IDs: the path from the root, one number per level; AND and OR take turns, AND first.
//!
//! A number counts the children of its node from 1, and the last child of an AND is marked: with 1, 2 and 3*
//! true, all children are. A root that is an OR or a leaf becomes the only child of an AND.

use super::LeafIds;
use crate::circuit::Tree;
use tamis_core::expr::Literal;

/// Marks the last child of an AND.
const LAST: u16 = 1 << 15;

#[derive(Default)]
pub struct DeweyIds {
    /// Where each id ends.
    ends: Box<[u32]>,
    numbers: Box<[u16]>,
}

impl LeafIds for DeweyIds {
    type Scratch = Vec<u32>;

    fn new(tree: &Tree) -> (Self, Vec<Literal>) {
        let mut ids = Builder::default();
        match tree {
            Tree::And(children) => ids.and(children),
            _ => ids.child(tree, 1 | LAST),
        }
        (Self { ends: ids.ends.into(), numbers: ids.numbers.into() }, ids.literals)
    }

    fn is_true(&self, leaves: impl Iterator<Item = u32>, scratch: &mut Vec<u32>) -> bool {
        scratch.clear();
        scratch.extend(leaves);
        self.and_is_true(scratch, 0)
    }

    fn bytes(&self) -> usize {
        size_of_val(&*self.ends) + size_of_val(&*self.numbers)
    }
}

impl DeweyIds {
    fn id(&self, leaf: u32) -> &[u16] {
        let from = leaf.checked_sub(1).map_or(0, |before| self.ends[before as usize]);
        &self.numbers[from as usize..self.ends[leaf as usize] as usize]
    }

    /// The leaves share the first `depth` numbers of their ids, which name an AND.
    fn and_is_true(&self, leaves: &[u32], depth: usize) -> bool {
        for (expected, child) in (1..).zip(self.children(leaves, depth)) {
            let number = self.id(child[0])[depth];
            if number & !LAST != expected || !self.child_is_true(child, depth, Self::or_is_true) {
                return false;
            }
            if number & LAST != 0 {
                return true;
            }
        }
        false
    }

    fn or_is_true(&self, leaves: &[u32], depth: usize) -> bool {
        self.children(leaves, depth).any(|child| self.child_is_true(child, depth, Self::and_is_true))
    }

    /// The leaves, grouped by their number at `depth`.
    fn children<'a>(&'a self, leaves: &'a [u32], depth: usize) -> impl Iterator<Item = &'a [u32]> {
        leaves.chunk_by(move |a, b| self.id(*a)[depth] == self.id(*b)[depth])
    }

    fn child_is_true(&self, child: &[u32], depth: usize, inner: fn(&Self, &[u32], usize) -> bool) -> bool {
        self.id(child[0]).len() == depth + 1 || inner(self, child, depth + 1)
    }
}

#[derive(Default)]
struct Builder {
    path: Vec<u16>,
    ends: Vec<u32>,
    numbers: Vec<u16>,
    literals: Vec<Literal>,
}

impl Builder {
    fn and(&mut self, children: &[Tree]) {
        for (at, child) in children.iter().enumerate() {
            let last = if at + 1 == children.len() { LAST } else { 0 };
            self.child(child, (at as u16 + 1) | last);
        }
    }

    fn child(&mut self, tree: &Tree, number: u16) {
        self.path.push(number);
        match tree {
            Tree::Leaf(literal) => {
                self.numbers.extend_from_slice(&self.path);
                self.ends.push(self.numbers.len() as u32);
                self.literals.push(*literal);
            }
            Tree::And(children) => self.and(children),
            Tree::Or(children) => {
                for (at, child) in children.iter().enumerate() {
                    self.child(child, at as u16 + 1);
                }
            }
        }
        self.path.pop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_of_the_paper() {
        let leaf = |number: u32| Tree::Leaf(Literal(number));
        let tree = Tree::And(vec![
            Tree::Or(vec![leaf(1), leaf(2), leaf(3)]),
            leaf(4),
            Tree::Or(vec![leaf(5), leaf(6)]),
        ]);
        let (ids, literals) = DeweyIds::new(&tree);
        assert_eq!(literals, [1, 2, 3, 4, 5, 6].map(Literal));
        let written: Vec<&[u16]> = (0..6).map(|leaf| ids.id(leaf)).collect();
        assert_eq!(written, [&[1, 1][..], &[1, 2], &[1, 3], &[2], &[3 | LAST, 1], &[3 | LAST, 2]]);
        let mut scratch = vec![];
        let mut is_true = |leaves: &[u32]| ids.is_true(leaves.iter().copied(), &mut scratch);
        assert!(is_true(&[0, 3, 4]));
        assert!(is_true(&[1, 2, 3, 5]));
        assert!(!is_true(&[0, 1, 2]) && !is_true(&[3, 4]) && !is_true(&[0, 4]) && !is_true(&[0, 3]));
    }
}
