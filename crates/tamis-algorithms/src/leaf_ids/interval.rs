//! Interval IDs: an expression is true if its true leaves tile the whole line.
//!
//! AND divides its interval among its children, one after the other; the children of an OR get the whole
//! interval each. Leaves of different branches of an OR must not fit together, so no two ANDs divide at the
//! same point. Every leaf takes a new number, an AND divides where the numbers of one child end, and its
//! first and last child extend to the ends of the interval.
//!
//! ```text
//! (a AND b) OR (c AND d)       a [1,1]  b [2,4]       a's end is continued by b alone,
//!                              c [1,3]  d [4,4]       c's end by d alone
//! ```

use super::LeafIds;
use crate::circuit::Tree;
use tamis_core::expr::Literal;

#[derive(Default)]
pub struct IntervalIds {
    /// First and last point, sorted.
    intervals: Box<[(u16, u16)]>,
}

impl LeafIds for IntervalIds {
    /// The points up to which a tiling was found.
    type Scratch = Vec<bool>;

    fn new(tree: &Tree) -> (Self, Vec<Literal>) {
        let mut leaves = vec![];
        let points = leaf_count(tree);
        divide(tree, (1, points), &mut 1, &mut leaves);
        leaves.sort_unstable();
        let intervals = leaves.iter().map(|(interval, _)| *interval).collect();
        (Self { intervals }, leaves.into_iter().map(|(_, literal)| literal).collect())
    }

    fn is_true(&self, leaves: impl Iterator<Item = u32>, reached: &mut Vec<bool>) -> bool {
        let points = self.intervals.len();
        reached.clear();
        reached.resize(points + 1, false);
        reached[0] = true;
        for leaf in leaves {
            let (first, last) = self.intervals[leaf as usize];
            if reached[first as usize - 1] {
                reached[last as usize] = true;
            }
        }
        reached[points]
    }

    fn bytes(&self) -> usize {
        size_of_val(&*self.intervals)
    }
}

fn leaf_count(tree: &Tree) -> u16 {
    let mut count = 0;
    tree.for_each_leaf(&mut |_| count += 1);
    count
}

/// Gives the leaves of `tree` their parts of an interval; `next` is the first number that is not taken.
fn divide(tree: &Tree, (first, last): (u16, u16), next: &mut u16, leaves: &mut Vec<((u16, u16), Literal)>) {
    match tree {
        Tree::Leaf(literal) => {
            *next += 1;
            leaves.push(((first, last), *literal));
        }
        Tree::Or(children) => {
            children.iter().for_each(|child| divide(child, (first, last), next, leaves));
        }
        Tree::And(children) => {
            let mut from = first;
            for (at, child) in children.iter().enumerate() {
                let to = if at + 1 == children.len() { last } else { *next + leaf_count(child) - 1 };
                divide(child, (from, to), next, leaves);
                from = to + 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn leaf(number: u32) -> Tree {
        Tree::Leaf(Literal(number))
    }

    #[test]
    fn the_example_of_the_paper() {
        let tree = Tree::And(vec![
            Tree::Or(vec![leaf(1), leaf(2), leaf(3)]),
            leaf(4),
            Tree::Or(vec![leaf(5), leaf(6)]),
        ]);
        let (ids, _) = IntervalIds::new(&tree);
        assert_eq!(*ids.intervals, [(1, 3), (1, 3), (1, 3), (4, 4), (5, 6), (5, 6)]);
        let mut scratch = vec![];
        let mut is_true = |leaves: &[u32]| ids.is_true(leaves.iter().copied(), &mut scratch);
        assert!(is_true(&[0, 3, 4]) && is_true(&[1, 2, 3, 5]));
        assert!(!is_true(&[0, 1, 2]) && !is_true(&[3, 4]) && !is_true(&[0, 4]));
    }

    #[test]
    fn branches_of_an_or_do_not_continue_one_another() {
        let pair = |a, b| Tree::And(vec![leaf(a), leaf(b)]);
        let (ids, literals) = IntervalIds::new(&Tree::Or(vec![pair(1, 2), pair(3, 4)]));
        assert_eq!(*ids.intervals, [(1, 1), (1, 3), (2, 4), (4, 4)]);
        assert_eq!(literals, [1, 3, 2, 4].map(Literal));
        let mut scratch = vec![];
        let mut is_true = |leaves: &[u32]| ids.is_true(leaves.iter().copied(), &mut scratch);
        assert!(is_true(&[0, 2]) && is_true(&[1, 3]));
        assert!(!is_true(&[0, 3]) && !is_true(&[1, 2]) && !is_true(&[0, 1]));
    }
}
