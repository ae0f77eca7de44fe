//! A hash table from items to their numbers, which can prefetch the slots of later lookups.
//!
//! ```text
//! slots   tag, number | tag, number | empty | …      8 bytes each, at most three quarters of them in use
//! ```
//!
//! The tag is half of a hash and says where to start: slots are nearly in the order of their tags. So a table grows
//! to any size in one pass over the slots, and reads nothing else. The items are stored by the owner, who compares
//! them: a tag is never taken for an identity.
//!
//! A general hash table reads two places for each lookup and cannot prefetch them. In tables of millions, these
//! cache misses are nearly the whole cost.

use crate::prefetch::prefetch;

#[derive(Clone, Default)]
pub struct NumberTable {
    slots: Vec<Slot>,
    len: usize,
}

#[derive(Clone, Copy)]
struct Slot {
    tag: u32,
    number: u32,
}

const EMPTY: Slot = Slot { tag: 0, number: u32::MAX };
const FEWEST_SLOTS: usize = 16;

/// The half of a hash that decides. All bits of the hash matter, also if it was made by multiplication alone.
#[inline]
pub fn tag(hash: u64) -> u32 {
    ((hash ^ hash >> 32).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) as u32
}

impl NumberTable {
    /// An empty table with room for this many numbers.
    pub fn with_room(numbers: usize) -> Self {
        Self { slots: vec![EMPTY; (4 * numbers).div_ceil(3)], len: 0 }
    }

    #[inline]
    fn first_slot(&self, tag: u32) -> usize {
        ((u64::from(tag) * self.slots.len() as u64) >> 32) as usize
    }

    /// The number with this tag for which `is_it` holds.
    #[inline]
    pub fn find(&self, tag: u32, mut is_it: impl FnMut(u32) -> bool) -> Option<u32> {
        let mut at = self.first_slot(tag);
        loop {
            let slot = self.slots.get(at)?;
            if slot.number == EMPTY.number {
                return None;
            }
            if slot.tag == tag && is_it(slot.number) {
                return Some(slot.number);
            }
            at = if at + 1 == self.slots.len() { 0 } else { at + 1 };
        }
    }

    /// Adds a number that is not there.
    pub fn insert(&mut self, tag: u32, number: u32) {
        if 4 * (self.len + 1) > 3 * self.slots.len() {
            self.resize((2 * self.slots.len()).max(FEWEST_SLOTS));
        }
        self.place(Slot { tag, number });
        self.len += 1;
    }

    fn place(&mut self, slot: Slot) {
        let mut at = self.first_slot(slot.tag);
        while self.slots[at].number != EMPTY.number {
            at = if at + 1 == self.slots.len() { 0 } else { at + 1 };
        }
        self.slots[at] = slot;
    }

    fn resize(&mut self, slots: usize) {
        let before = std::mem::replace(&mut self.slots, vec![EMPTY; slots]);
        for slot in before.into_iter().filter(|slot| slot.number != EMPTY.number) {
            self.place(slot);
        }
    }

    /// Fetches what finding this tag will need.
    #[inline]
    pub fn fetch(&self, tag: u32) {
        if let Some(slot) = self.slots.get(self.first_slot(tag)) {
            prefetch(slot);
        }
    }

    /// A number with this tag, most likely the one that is looked for.
    #[inline]
    pub fn candidate(&self, tag: u32) -> Option<u32> {
        self.find(tag, |_| true)
    }

    /// Bytes on the heap.
    pub fn bytes(&self) -> usize {
        self.slots.capacity() * size_of::<Slot>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_found_by_tag_and_content() {
        let content: Vec<u64> = (0..10_000).map(|number| number * 977 % 4_000).collect();
        let mut table = NumberTable::default();
        let mut numbers = vec![];
        for (at, value) in content.iter().enumerate() {
            // Few tags, so that many values share one.
            let tag = tag(*value % 512);
            let found = table.find(tag, |number| content[number as usize] == *value);
            assert_eq!(found, numbers.iter().copied().find(|number| content[*number as usize] == *value));
            if found.is_none() {
                table.insert(tag, at as u32);
                numbers.push(at as u32);
            }
        }
        assert_eq!(table.len, 4_000);
        assert_eq!(table.candidate(tag(512)), None);
    }

    #[test]
    fn room_is_enough_and_not_the_most() {
        for room in 0..40 {
            let mut table = NumberTable::with_room(room);
            let slots = table.slots.len();
            for number in 0..100u32 {
                assert_eq!(table.find(tag(number.into()), |_| true), None);
                table.insert(tag(number.into()), number);
                assert!(number as usize >= room || table.slots.len() == slots, "{number} of {room}");
            }
            assert!((0..100u32).all(|number| table.find(tag(number.into()), |_| true) == Some(number)));
        }
    }

    #[test]
    fn the_last_slots_go_on_at_the_first() {
        let mut table = NumberTable::default();
        for number in 0..100 {
            table.insert(u32::MAX, number);
        }
        for wanted in 0..100 {
            assert_eq!(table.find(u32::MAX, |number| number == wanted), Some(wanted));
        }
        assert_eq!(table.find(u32::MAX, |_| false), None);
        assert_eq!(NumberTable::default().find(7, |_| true), None);
    }
}
