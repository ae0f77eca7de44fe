//! A table of items that are found by key and then referred to by number.
//!
//! ```text
//! table   hash of (owner, key) → number          4 bytes an entry
//! slots   number → (owner, key, thing)           each key once
//! ```

use std::hash::RandomState;

use hashbrown::HashTable;

use crate::key::Key;
use crate::slots::Slots;

pub(crate) struct ByKey<T> {
    table: HashTable<u32>,
    slots: Slots<Kept<T>>,
    secret: RandomState,
}

struct Kept<T> {
    owner: u32,
    key: Key,
    thing: T,
}

impl<T> Default for ByKey<T> {
    fn default() -> Self {
        Self { table: HashTable::new(), slots: Slots::default(), secret: RandomState::new() }
    }
}

impl<T> ByKey<T> {
    pub fn find(&self, owner: u32, key: &Key) -> Option<u32> {
        let is_it = |number: &u32| {
            let kept = &self.slots[*number];
            kept.owner == owner && kept.key == *key
        };
        self.table.find(key.hash_of(owner, &self.secret), is_it).copied()
    }

    /// Adds what is not there yet.
    pub fn insert(&mut self, owner: u32, key: Key, thing: T) -> u32 {
        let hash = key.hash_of(owner, &self.secret);
        let number = self.slots.insert(Kept { owner, key, thing });
        let Self { table, slots, secret } = self;
        table.insert_unique(hash, number, |other| {
            let kept = &slots[*other];
            kept.key.hash_of(kept.owner, secret)
        });
        number
    }

    pub fn remove(&mut self, number: u32) -> Option<(Key, T)> {
        let Kept { owner, key, thing } = self.slots.remove(number)?;
        let hash = key.hash_of(owner, &self.secret);
        if let Ok(found) = self.table.find_entry(hash, |other| *other == number) {
            found.remove();
        }
        Some((key, thing))
    }

    pub fn key(&self, number: u32) -> &Key {
        &self.slots[number].key
    }

    pub fn get_mut(&mut self, number: u32) -> Option<&mut T> {
        self.slots.get_mut(number).map(|kept| &mut kept.thing)
    }

    pub fn iter(&self) -> impl Iterator<Item = (u32, &Key, &T)> {
        self.slots.iter().map(|(number, kept)| (number, &kept.key, &kept.thing))
    }

    pub fn iter_mut(&mut self) -> impl Iterator<Item = (u32, &mut T)> {
        self.slots.iter_mut().map(|(number, kept)| (number, &mut kept.thing))
    }

    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// One more than the greatest number there ever was.
    pub fn bound(&self) -> u32 {
        self.slots.bound() as u32
    }
}

impl<T> std::ops::Index<u32> for ByKey<T> {
    type Output = T;

    fn index(&self, number: u32) -> &T {
        &self.slots[number].thing
    }
}

impl<T> std::ops::IndexMut<u32> for ByKey<T> {
    fn index_mut(&mut self, number: u32) -> &mut T {
        &mut self.slots[number].thing
    }
}

#[cfg(test)]
mod tests {
    use tamis_core::event::Value;

    use super::*;

    #[test]
    fn keys_of_different_owners_are_apart_and_numbers_are_used_again() {
        let mut kept = ByKey::default();
        let key = |number: i64| Key::One(Value::Int(number));
        let numbers: Vec<u32> = (0..1_000).map(|at| kept.insert(at as u32 % 3, key(at / 3), at)).collect();
        for (at, number) in (0..1_000).zip(&numbers) {
            assert_eq!(kept.find(at as u32 % 3, &key(at / 3)), Some(*number));
            assert_eq!(kept[*number], at);
        }
        for number in numbers.iter().step_by(2) {
            kept.remove(*number).unwrap();
        }
        assert!(kept.remove(numbers[0]).is_none());
        assert_eq!(kept.len(), 500);
        assert_eq!((kept.find(0, &key(0)), kept.find(1, &key(0))), (None, Some(numbers[1])));
        let again = kept.insert(0, key(0), 7);
        assert!(again < kept.bound() && kept.bound() == 1_000);
        assert_eq!(kept.find(0, &key(0)), Some(again));
    }

    #[test]
    fn keys_that_collide_without_a_secret_are_spread() {
        // The multiplier of FxHash, and its inverse: multiples of that differ in their lowest bits only.
        let multiplier: u64 = 0xf135_7aea_2e62_a9c5;
        let inverse = (0..6).fold(1u64, |x, _| x.wrapping_mul(2u64.wrapping_sub(multiplier.wrapping_mul(x))));
        assert_eq!(multiplier.wrapping_mul(inverse), 1);
        let secret = RandomState::new();
        let place =
            |at: u64| Key::One(Value::Int(inverse.wrapping_mul(at) as i64)).hash_of(0, &secret) % 1024;
        let places: std::collections::BTreeSet<u64> = (0..1024).map(place).collect();
        assert!(places.len() > 500, "{}", places.len());
    }
}
