//! The trees that have begun at one key: a short list, or a map if there are many, as at the single key of
//! all sequences without BY.

use std::collections::{BTreeMap, BTreeSet};

use smallvec::SmallVec;

use super::plan::TreeId;

/// Up to here, moving the list is cheaper than a map.
const MOST_IN_A_LIST: usize = 32;

pub(super) enum BegunTrees {
    /// In the order of the trees.
    Few(SmallVec<[Begun; 4]>),
    Many(Box<Many>),
}

pub(super) struct Begun {
    tree: TreeId,
    /// Of what is held for it.
    number: u32,
    /// It must see every row of the key.
    strict: bool,
}

#[derive(Default)]
pub(super) struct Many {
    numbers: BTreeMap<TreeId, u32>,
    strict: BTreeSet<TreeId>,
}

impl Default for BegunTrees {
    fn default() -> Self {
        Self::Few(SmallVec::new())
    }
}

impl BegunTrees {
    /// The number of what is held for a tree.
    pub fn number_of(&self, tree: TreeId) -> Option<u32> {
        match self {
            Self::Few(begun) => {
                let at = begun.binary_search_by_key(&tree, |begun| begun.tree).ok()?;
                Some(begun[at].number)
            }
            Self::Many(many) => many.numbers.get(&tree).copied(),
        }
    }

    /// The strict ones, in order.
    pub fn strict(&self) -> impl Iterator<Item = TreeId> {
        let (few, many) = match self {
            Self::Few(begun) => (Some(begun), None),
            Self::Many(many) => (None, Some(many)),
        };
        let few = few.into_iter().flatten().filter(|begun| begun.strict).map(|begun| begun.tree);
        few.chain(many.into_iter().flat_map(|many| many.strict.iter().copied()))
    }

    /// Adds a tree that has not begun.
    pub fn insert(&mut self, tree: TreeId, number: u32, strict: bool) {
        match self {
            Self::Few(begun) if begun.len() < MOST_IN_A_LIST => {
                let place = begun.partition_point(|begun| begun.tree < tree);
                begun.insert(place, Begun { tree, number, strict });
            }
            Self::Few(begun) => {
                let mut many = Box::<Many>::default();
                for begun in begun.drain(..) {
                    many.insert(begun.tree, begun.number, begun.strict);
                }
                many.insert(tree, number, strict);
                *self = Self::Many(many);
            }
            Self::Many(many) => many.insert(tree, number, strict),
        }
    }

    pub fn remove(&mut self, tree: TreeId) {
        match self {
            Self::Few(begun) => begun.retain(|begun| begun.tree != tree),
            Self::Many(many) => {
                many.numbers.remove(&tree);
                many.strict.remove(&tree);
            }
        }
    }

    pub fn is_empty(&self) -> bool {
        match self {
            Self::Few(begun) => begun.is_empty(),
            Self::Many(many) => many.numbers.is_empty(),
        }
    }
}

impl Many {
    fn insert(&mut self, tree: TreeId, number: u32, strict: bool) {
        self.numbers.insert(tree, number);
        if strict {
            self.strict.insert(tree);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_that_becomes_a_map_holds_the_same() {
        let mut trees = BegunTrees::default();
        let is_strict = |tree: TreeId| tree.is_multiple_of(3);
        for tree in (0..100).rev() {
            trees.insert(tree, 1_000 + tree, is_strict(tree));
            assert!((tree..100).all(|tree| trees.number_of(tree) == Some(1_000 + tree)));
            assert!(trees.strict().eq((tree..100).filter(|tree| is_strict(*tree))));
        }
        for tree in 0..100 {
            assert!(!trees.is_empty());
            trees.remove(tree);
            assert_eq!(trees.number_of(tree), None);
            assert!(trees.strict().eq((tree + 1..100).filter(|tree| is_strict(*tree))));
        }
        assert!(trees.is_empty());
    }
}
