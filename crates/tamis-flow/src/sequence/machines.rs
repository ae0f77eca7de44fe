//! The partial matches of each tree and key. A key is looked up once for all trees with the same BY.
//!
//! ```text
//! keys       (BY, key) → number of the key → its trees (`begun`), each with the number of what is held
//! held       number → the partial matches of one tree at one key
//! ```

use super::begun::BegunTrees;
use super::held::Held;
use super::plan::TreeId;
use crate::by_key::ByKey;
use crate::key::Key;
use crate::slots::Slots;

#[derive(Default)]
pub(super) struct Machines {
    keys: ByKey<BegunTrees>,
    held: Slots<Held>,
}

impl Machines {
    /// The number of a key.
    pub fn key_number(&self, by: u32, key: &Key) -> Option<u32> {
        self.keys.find(by, key)
    }

    /// The partial matches of a tree at a key.
    pub fn at(&self, key: u32, tree: TreeId) -> Option<u32> {
        self.keys[key].number_of(tree)
    }

    /// The strict trees that have begun at a key.
    pub fn strict_trees(&self, key: u32) -> impl Iterator<Item = TreeId> {
        self.keys[key].strict()
    }

    /// Holds something for a tree that has not begun at the key; says the number of the key, too.
    pub fn insert(&mut self, by: u32, key: &Key, strict: bool, held: impl FnOnce(u32) -> Held) -> (u32, u32) {
        let key = match self.keys.find(by, key) {
            Some(number) => number,
            None => self.keys.insert(by, key.clone(), BegunTrees::default()),
        };
        let held = held(key);
        let tree = held.tree;
        let number = self.held.insert(held);
        self.keys[key].insert(tree, number, strict);
        (number, key)
    }

    /// Lets go of it, and of the key with its last tree.
    pub fn remove(&mut self, number: u32) -> Option<Held> {
        let held = self.held.remove(number)?;
        let begun = &mut self.keys[held.key];
        begun.remove(held.tree);
        if begun.is_empty() {
            self.keys.remove(held.key);
        }
        Some(held)
    }

    pub fn key(&self, number: u32) -> &Key {
        self.keys.key(self.held[number].key)
    }

    pub fn get(&self, number: u32) -> Option<&Held> {
        self.held.get(number)
    }

    pub fn get_mut(&mut self, number: u32) -> Option<&mut Held> {
        self.held.get_mut(number)
    }

    pub fn iter(&self) -> impl Iterator<Item = (u32, &Held)> {
        self.held.iter()
    }

    pub fn len(&self) -> usize {
        self.held.len()
    }

    /// One more than the greatest number there ever was.
    pub fn bound(&self) -> u32 {
        self.held.bound() as u32
    }
}

impl std::ops::Index<u32> for Machines {
    type Output = Held;

    fn index(&self, number: u32) -> &Held {
        &self.held[number]
    }
}

impl std::ops::IndexMut<u32> for Machines {
    fn index_mut(&mut self, number: u32) -> &mut Held {
        &mut self.held[number]
    }
}
