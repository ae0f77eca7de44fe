//! Finds which of many intervals contain a point: a centred interval tree over ranks, in flat arrays.
//!
//! A node holds the intervals that contain its centre and are in no node above, once sorted by their low end
//! and once by their high end. A point left of the centre is inside exactly those that start at or before it:
//! a prefix of the first list; on the right, a prefix of the second. A search walks one path and reads only
//! the intervals it finds and one more entry per node.

use std::ops::Range;

use bytemuck::{Pod, Zeroable};

use crate::snapshot::SharedSlice;

pub const NONE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct IntervalTreeNode {
    pub centre: u32,
    pub left: u32,
    pub right: u32,
    pub first: u32,
    pub len: u32,
}

/// All interval trees of a segment.
#[derive(Clone, Default)]
pub struct IntervalTree {
    pub nodes: SharedSlice<IntervalTreeNode>,
    /// (low end, key), per node in rising order; the keys are consecutive.
    pub by_low: SharedSlice<[u32; 2]>,
    /// (high end, key), per node in falling order.
    pub by_high: SharedSlice<[u32; 2]>,
}

impl IntervalTree {
    /// Calls `found` with runs of the keys of all intervals of the tree that contain `point`.
    pub fn stab(&self, root: u32, point: u32, mut found: impl FnMut(Range<u32>)) {
        let mut at = root;
        while at != NONE {
            let node = &self.nodes[at as usize];
            let list = node.first as usize..(node.first + node.len) as usize;
            if point <= node.centre {
                let list = &self.by_low[list];
                let count = list.iter().take_while(|[low, _]| *low <= point).count() as u32;
                if let Some([_, first]) = list.first()
                    && count > 0
                {
                    found(*first..*first + count);
                }
                at = if point == node.centre { NONE } else { node.left };
            } else {
                for [high, key] in &self.by_high[list] {
                    if *high < point {
                        break;
                    }
                    found(*key..*key + 1);
                }
                at = node.right;
            }
        }
    }

    /// Calls `found` with the key of every interval of the tree that overlaps `low..=high`.
    pub fn overlap(&self, root: u32, low: u32, high: u32, found: &mut impl FnMut(u32)) {
        if root == NONE {
            return;
        }
        let node = &self.nodes[root as usize];
        let list = node.first as usize..(node.first + node.len) as usize;
        if high < node.centre {
            self.by_low[list].iter().take_while(|[from, _]| *from <= high).for_each(|[_, key]| found(*key));
        } else if low > node.centre {
            self.by_high[list].iter().take_while(|[to, _]| *to >= low).for_each(|[_, key]| found(*key));
        } else {
            self.by_low[list].iter().for_each(|[_, key]| found(*key));
        }
        if low < node.centre {
            self.overlap(node.left, low, high, found);
        }
        if high > node.centre {
            self.overlap(node.right, low, high, found);
        }
    }
}

#[derive(Default)]
pub struct IntervalTreeBuilder {
    nodes: Vec<IntervalTreeNode>,
    by_low: Vec<[u32; 2]>,
    by_high: Vec<[u32; 2]>,
}

impl IntervalTreeBuilder {
    /// Builds one tree over closed intervals `(low, high, name)` and returns its root. Each interval
    /// is given its key when its turn comes, node by node, by rising low end; each is one more than the last.
    pub fn tree(&mut self, intervals: Vec<(u32, u32, u32)>, key_of: &mut impl FnMut(u32) -> u32) -> u32 {
        if intervals.is_empty() {
            return NONE;
        }
        let mut ends: Vec<u32> = intervals.iter().flat_map(|(low, high, _)| [*low, *high]).collect();
        let middle = ends.len() / 2;
        let centre = *ends.select_nth_unstable(middle).1;
        let (mut here, mut left, mut right) = (vec![], vec![], vec![]);
        for interval in intervals {
            if interval.1 < centre {
                left.push(interval);
            } else if interval.0 > centre {
                right.push(interval);
            } else {
                here.push(interval);
            }
        }
        let at = self.nodes.len();
        let first = self.by_low.len() as u32;
        here.sort_unstable_by_key(|(low, _, name)| (*low, *name));
        here.iter_mut().for_each(|(_, _, name)| *name = key_of(*name));
        self.by_low.extend(here.iter().map(|(low, _, key)| [*low, *key]));
        here.sort_unstable_by_key(|(_, high, key)| (std::cmp::Reverse(*high), *key));
        self.by_high.extend(here.iter().map(|(_, high, key)| [*high, *key]));
        self.nodes.push(IntervalTreeNode { centre, left: NONE, right: NONE, first, len: here.len() as u32 });
        self.nodes[at].left = self.tree(left, key_of);
        self.nodes[at].right = self.tree(right, key_of);
        at as u32
    }

    pub fn finish(self) -> IntervalTree {
        IntervalTree { nodes: self.nodes.into(), by_low: self.by_low.into(), by_high: self.by_high.into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn finds_exactly_the_intervals_that_contain_the_point(
            ends in prop::collection::vec((0u32..40, 0u32..40), 0..60), low in 0u32..45, length in 0u32..10
        ) {
            let intervals: Vec<_> =
                ends.iter().enumerate().map(|(key, (a, b))| (*a.min(b), *a.max(b), key as u32)).collect();
            let mut builder = IntervalTreeBuilder::default();
            let mut key_of = vec![0; intervals.len()];
            let mut next_key = 7;
            let root = builder.tree(intervals.clone(), &mut |name| {
                key_of[name as usize] = next_key;
                next_key += 1;
                next_key - 1
            });
            let tree = builder.finish();
            let expected = |from: u32, to: u32| -> Vec<u32> {
                let inside = intervals.iter().filter(|(a, b, _)| *a <= to && *b >= from);
                let mut keys: Vec<u32> = inside.map(|(_, _, name)| key_of[*name as usize]).collect();
                keys.sort_unstable();
                keys
            };
            let mut found = vec![];
            tree.stab(root, low, |keys| found.extend(keys));
            found.sort_unstable();
            prop_assert_eq!(found, expected(low, low));
            let mut found = vec![];
            tree.overlap(root, low, low + length, &mut |key| found.push(key));
            found.sort_unstable();
            prop_assert_eq!(found, expected(low, low + length));
        }
    }
}
