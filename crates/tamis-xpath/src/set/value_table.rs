//! From the hash of a value to the list of the condition that compares with it.
//!
//! A slot is a part of the hash and a list, so that most lookups read one cache line.

use super::values::NONE;

#[derive(Default)]
pub(super) struct ValueTable {
    slots: Vec<Slot>,
}

#[derive(Clone, Copy)]
struct Slot {
    tag: u32,
    /// Or [`NONE`]: the slot is free.
    list: u32,
}

impl ValueTable {
    /// With room for this many lists.
    pub fn new(lists: usize) -> Self {
        // Two of three slots are taken, and at least one is free, where searches end.
        let slots = if lists == 0 { 0 } else { lists + lists / 2 + 1 };
        Self { slots: vec![Slot { tag: 0, list: NONE }; slots] }
    }

    /// Adds a list; there must be room.
    pub fn insert(&mut self, hash: u64, list: u32) {
        let mut at = self.start(hash);
        while self.slots[at].list != NONE {
            at = self.after(at);
        }
        self.slots[at] = Slot { tag: hash as u32, list };
    }

    /// The list with this hash for which `is_meant` is true; others are few.
    #[inline]
    pub fn find(&self, hash: u64, mut is_meant: impl FnMut(u32) -> bool) -> Option<u32> {
        if self.slots.is_empty() {
            return None;
        }
        let mut at = self.start(hash);
        loop {
            let Slot { tag, list } = self.slots[at];
            if list == NONE || (tag == hash as u32 && is_meant(list)) {
                return (list != NONE).then_some(list);
            }
            at = self.after(at);
        }
    }

    fn start(&self, hash: u64) -> usize {
        // The lower half is the tag, so that it should not decide about the place, too.
        let mixed = hash.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
        ((mixed * self.slots.len() as u64) >> 32) as usize
    }

    fn after(&self, at: usize) -> usize {
        if at + 1 == self.slots.len() { 0 } else { at + 1 }
    }

    pub fn heap_bytes(&self) -> usize {
        self.slots.capacity() * size_of::<Slot>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_every_list_and_nothing_else() {
        for lists in [0, 1, 2, 100, 5_000] {
            // Hashes of which many are equal, and many differ in their tag or in their place alone.
            let hash = |list: u32| u64::from(list % 70) << 32 | u64::from(list / 70 % 3);
            let mut table = ValueTable::new(lists as usize);
            (0..lists).for_each(|list| table.insert(hash(list), list));
            for list in 0..lists {
                assert_eq!(table.find(hash(list), |found| found == list), Some(list));
            }
            assert_eq!(table.find(hash(0), |_| false), None);
            assert_eq!(table.find(u64::MAX, |_| true), None);
        }
    }
}
