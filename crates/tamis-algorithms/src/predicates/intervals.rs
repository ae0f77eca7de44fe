//! Finds which of many intervals contain a value, with a treap that can change at any time.
//!
//! The intervals are sorted by their low end, and each node knows the highest high end below it: a subtree
//! that ends before the value is not entered, and neither is anything that starts after it.

use tamis_core::predicate::Cut;

const NONE: u32 = u32::MAX;

#[derive(Default)]
pub struct Intervals {
    nodes: Vec<Node>,
    free: Vec<u32>,
    root: Option<u32>,
}

struct Node {
    low: Cut,
    high: Cut,
    name: u32,
    left: u32,
    right: u32,
    /// The node of this subtree with the highest high end.
    highest: u32,
}

impl Intervals {
    pub fn is_empty(&self) -> bool {
        self.root.is_none()
    }

    pub fn insert(&mut self, low: Cut, high: Cut, name: u32) {
        let node = Node { low, high, name, left: NONE, right: NONE, highest: NONE };
        let at = match self.free.pop() {
            Some(at) => {
                self.nodes[at as usize] = node;
                at
            }
            None => {
                self.nodes.push(node);
                self.nodes.len() as u32 - 1
            }
        };
        self.update(at);
        let (before, after) = self.split(self.root.unwrap_or(NONE), at);
        let before = self.merge(before, at);
        self.root = Some(self.merge(before, after));
    }

    /// Takes out an interval that was inserted.
    pub fn remove(&mut self, low: &Cut, name: u32) {
        let root = self.remove_below(self.root.unwrap_or(NONE), low, name);
        self.root = (root != NONE).then_some(root);
    }

    /// Calls `found` with the name of every interval whose low end is below `value` and whose high end is not.
    pub fn stab(&self, value: &Cut, found: &mut impl FnMut(u32)) {
        if let Some(root) = self.root {
            self.stab_below(root, value, found);
        }
    }

    pub fn names(&self) -> impl Iterator<Item = u32> {
        let mut names = vec![];
        let mut open: Vec<u32> = self.root.into_iter().collect();
        while let Some(at) = open.pop() {
            let node = &self.nodes[at as usize];
            names.push(node.name);
            open.extend([node.left, node.right].into_iter().filter(|child| *child != NONE));
        }
        names.into_iter()
    }

    pub fn bytes(&self) -> usize {
        self.nodes.capacity() * size_of::<Node>() + self.free.capacity() * size_of::<u32>()
    }

    fn stab_below(&self, at: u32, value: &Cut, found: &mut impl FnMut(u32)) {
        if at == NONE {
            return;
        }
        let node = &self.nodes[at as usize];
        if self.nodes[node.highest as usize].high < *value {
            return;
        }
        self.stab_below(node.left, value, found);
        if node.low < *value {
            if node.high >= *value {
                found(node.name);
            }
            self.stab_below(node.right, value, found);
        }
    }

    fn is_before(&self, a: u32, b: u32) -> bool {
        let (a, b) = (&self.nodes[a as usize], &self.nodes[b as usize]);
        (&a.low, a.name) < (&b.low, b.name)
    }

    /// Random enough for balance, and the same on every machine.
    fn priority(&self, at: u32) -> u64 {
        (self.nodes[at as usize].name as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(29)
    }

    fn update(&mut self, at: u32) {
        let (left, right) = (self.nodes[at as usize].left, self.nodes[at as usize].right);
        let mut highest = at;
        for child in [left, right] {
            if child != NONE {
                let candidate = self.nodes[child as usize].highest;
                if self.nodes[candidate as usize].high > self.nodes[highest as usize].high {
                    highest = candidate;
                }
            }
        }
        self.nodes[at as usize].highest = highest;
    }

    /// Parts a subtree into what is before `pivot` and what is not.
    fn split(&mut self, at: u32, pivot: u32) -> (u32, u32) {
        if at == NONE {
            return (NONE, NONE);
        }
        let parts = if self.is_before(at, pivot) {
            let (before, after) = self.split(self.nodes[at as usize].right, pivot);
            self.nodes[at as usize].right = before;
            (at, after)
        } else {
            let (before, after) = self.split(self.nodes[at as usize].left, pivot);
            self.nodes[at as usize].left = after;
            (before, at)
        };
        self.update(at);
        parts
    }

    /// Joins two subtrees of which the first is before the second.
    fn merge(&mut self, a: u32, b: u32) -> u32 {
        if a == NONE || b == NONE {
            return if a == NONE { b } else { a };
        }
        if self.priority(a) > self.priority(b) {
            let joined = self.merge(self.nodes[a as usize].right, b);
            self.nodes[a as usize].right = joined;
            self.update(a);
            a
        } else {
            let joined = self.merge(a, self.nodes[b as usize].left);
            self.nodes[b as usize].left = joined;
            self.update(b);
            b
        }
    }

    fn remove_below(&mut self, at: u32, low: &Cut, name: u32) -> u32 {
        assert!(at != NONE, "only what was inserted is removed");
        let node = &self.nodes[at as usize];
        if node.name == name {
            let (left, right) = (node.left, node.right);
            self.free.push(at);
            return self.merge(left, right);
        }
        let node = &self.nodes[at as usize];
        if (low, name) < (&node.low, node.name) {
            let left = self.remove_below(node.left, low, name);
            self.nodes[at as usize].left = left;
        } else {
            let right = self.remove_below(node.right, low, name);
            self.nodes[at as usize].right = right;
        }
        self.update(at);
        at
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn finds_exactly_the_intervals_that_contain_the_value(
            ends in prop::collection::vec((0u128..30, 0u128..30, any::<bool>()), 0..80), value in 0u128..32
        ) {
            let (mut tree, mut held) = (Intervals::default(), vec![]);
            for (name, (a, b, stays)) in ends.iter().enumerate() {
                let (low, high) = (*a.min(b), *a.max(b));
                tree.insert(Cut::Keyed(low), Cut::Keyed(high), name as u32);
                held.push((low, high, name as u32));
                if !stays {
                    let (low, _, name) = held.swap_remove(name / 2 % held.len());
                    tree.remove(&Cut::Keyed(low), name);
                }
            }
            let mut expected: Vec<u32> =
                held.iter().filter(|(low, high, _)| *low < value && value <= *high).map(|h| h.2).collect();
            let mut found = vec![];
            tree.stab(&Cut::Keyed(value), &mut |name| found.push(name));
            found.sort_unstable();
            expected.sort_unstable();
            prop_assert_eq!(found, expected);
            prop_assert_eq!(tree.names().count(), held.len());
        }
    }
}
