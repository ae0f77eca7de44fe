//! The newest subscriptions, in the order of their arrival, shared by the versions that hold them.
//!
//! ```text
//! full blocks   | 128, found by id | 128 | … |      shared; a removal copies one block
//! last block    | filled, filled, …, free, free |   a version sees the first `len` slots
//! ```
//!
//! The writer of the next version fills one more slot, which no older version looks at, so an insertion copies nothing.

use std::hash::{Hash, Hasher};
use std::ops::Index;
use std::sync::{Arc, OnceLock};

use hashbrown::HashMap;
use rustc_hash::{FxBuildHasher, FxHasher};

use crate::engine::segment::buffered_subscription::BufferedSubscription;
use crate::subscription::Id;

/// Subscriptions of a block. While events come, as many become a segment: fewer make more and smaller segments to merge,
/// more are slower to try one by one.
pub const BLOCK: usize = 128;
/// Entries of the table by which ids are found in a block: at most half are taken.
const TABLE: usize = 2 * BLOCK;

type Held = Arc<BufferedSubscription>;

#[derive(Clone, Default)]
pub struct InsertBuffer {
    full: Arc<Vec<Arc<FullBlock>>>,
    /// How many subscriptions the full blocks hold.
    in_full: usize,
    last: LastBlock,
}

/// A block that gets no more subscriptions. It is never empty.
struct FullBlock {
    held: Box<[Held]>,
    /// By hash of the id: the place in `held`, counted from 1.
    places: [u8; TABLE],
}

#[derive(Clone, Default)]
struct LastBlock {
    slots: Arc<[OnceLock<Held>]>,
    len: usize,
}

impl InsertBuffer {
    pub fn len(&self) -> usize {
        self.in_full + self.last.len
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn iter(&self) -> impl Iterator<Item = &Held> {
        self.full.iter().flat_map(|block| block.held.iter()).chain(self.last.iter())
    }

    /// The place of the subscription with this id.
    pub fn find(&self, id: &Id) -> Option<usize> {
        let in_last = self.last.iter().position(|held| held.subscription.id == *id);
        if let Some(at) = in_last {
            return Some(self.in_full + at);
        }
        let hash = hash_of(id);
        let mut first = 0;
        for block in self.full.iter() {
            if let Some(at) = block.find(id, hash) {
                return Some(first + at);
            }
            first += block.held.len();
        }
        None
    }

    /// Adds one at the end. The caller must hold the writer's lock.
    pub fn push(&mut self, held: Held) {
        self.last.push(held);
        if self.last.len == BLOCK {
            Arc::make_mut(&mut self.full).push(Arc::new(FullBlock::new(self.last.iter().cloned().collect())));
            self.in_full += BLOCK;
            self.last = LastBlock::default();
        }
    }

    pub fn without(&self, gone: usize) -> Self {
        let mut others = self.clone();
        let Some(mut at) = gone.checked_sub(self.in_full) else {
            others.remove_from_full(gone);
            return others;
        };
        others.last = LastBlock::default();
        for held in self.last.iter() {
            if at != 0 {
                others.last.push(held.clone());
            }
            at = at.wrapping_sub(1);
        }
        others
    }

    fn remove_from_full(&mut self, gone: usize) {
        let (mut at, mut block) = (gone, 0);
        while at >= self.full[block].held.len() {
            at -= self.full[block].held.len();
            block += 1;
        }
        self.in_full -= 1;
        let full = Arc::make_mut(&mut self.full);
        let others = full[block].held.iter().enumerate().filter(|(place, _)| *place != at);
        let others: Box<[Held]> = others.map(|(_, held)| held.clone()).collect();
        match others.is_empty() {
            true => drop(full.remove(block)),
            false => full[block] = Arc::new(FullBlock::new(others)),
        }
    }

    /// What is here and not among `taken`, and which of those are still here.
    pub fn separate(&self, taken: &[Held]) -> (Self, Vec<bool>) {
        let places: HashMap<*const BufferedSubscription, usize, FxBuildHasher> =
            taken.iter().enumerate().map(|(at, held)| (Arc::as_ptr(held), at)).collect();
        let mut are_here = vec![false; taken.len()];
        let mut others = Self::default();
        for held in self.iter() {
            match places.get(&Arc::as_ptr(held)) {
                Some(at) => are_here[*at] = true,
                None => others.push(held.clone()),
            }
        }
        (others, are_here)
    }
}

impl Index<usize> for InsertBuffer {
    type Output = Held;

    fn index(&self, at: usize) -> &Self::Output {
        let Some(in_last) = at.checked_sub(self.in_full) else {
            let mut at = at;
            for block in self.full.iter() {
                match block.held.get(at) {
                    Some(held) => return held,
                    None => at -= block.held.len(),
                }
            }
            unreachable!("full blocks hold as many as they are counted to hold");
        };
        self.last.slots[..self.last.len][in_last].get().expect("a version sees filled slots only")
    }
}

impl FullBlock {
    fn new(held: Box<[Held]>) -> Self {
        debug_assert!(!held.is_empty() && held.len() <= BLOCK);
        let mut places = [0; TABLE];
        for (at, held) in held.iter().enumerate() {
            let mut entry = hash_of(&held.subscription.id) % TABLE;
            while places[entry] != 0 {
                entry = (entry + 1) % TABLE;
            }
            places[entry] = at as u8 + 1;
        }
        Self { held, places }
    }

    fn find(&self, id: &Id, hash: usize) -> Option<usize> {
        let mut entry = hash % TABLE;
        while let Some(at) = self.places[entry].checked_sub(1) {
            if self.held[at as usize].subscription.id == *id {
                return Some(at as usize);
            }
            entry = (entry + 1) % TABLE;
        }
        None
    }
}

impl LastBlock {
    fn iter(&self) -> impl Iterator<Item = &Held> {
        self.slots[..self.len].iter().map(|slot| slot.get().expect("a version sees filled slots only"))
    }

    fn push(&mut self, held: Held) {
        // The slot is taken if there is none yet, or by a version that was never published.
        let filled = self.slots.get(self.len).is_some_and(|slot| slot.set(held.clone()).is_ok());
        if !filled {
            let mut slots: Vec<_> = self.iter().cloned().chain([held]).map(OnceLock::from).collect();
            slots.resize_with(BLOCK, OnceLock::new);
            self.slots = slots.into();
        }
        self.len += 1;
    }
}

fn hash_of(id: &Id) -> usize {
    let mut hasher = FxHasher::default();
    id.hash(&mut hasher);
    hasher.finish() as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Terms;
    use crate::expr::parser::parse;
    use crate::subscription::{Id, Subscription};

    fn buffered(id: i64) -> Arc<BufferedSubscription> {
        let subscription = Subscription::new(Id::Int(id), parse("a = 1").unwrap());
        Arc::new(BufferedSubscription::new(subscription, &mut Terms::default()))
    }

    fn ids(buffer: &InsertBuffer) -> Vec<i64> {
        let id = |held: &Held| match held.subscription.id {
            Id::Int(id) => id,
            Id::Str(_) => unreachable!("all ids are numbers"),
        };
        buffer.iter().map(id).collect()
    }

    #[test]
    fn versions_see_what_they_held() {
        let mut first = InsertBuffer::default();
        first.push(buffered(1));
        let mut second = first.clone();
        second.push(buffered(2));
        let third = second.without(0);
        assert_eq!(ids(&first), [1]);
        assert_eq!(ids(&second), [1, 2]);
        assert_eq!(ids(&third), [2]);
    }

    #[test]
    fn a_slot_of_an_unpublished_version_is_not_reused() {
        let mut published = InsertBuffer::default();
        published.push(buffered(1));
        published.clone().push(buffered(2));
        published.push(buffered(3));
        assert_eq!(ids(&published), [1, 3]);
    }

    /// Against a list: additions at the end, removals anywhere, in blocks that become empty, too.
    #[test]
    fn blocks_hold_what_a_list_would() {
        let (mut buffer, mut list) = (InsertBuffer::default(), vec![]);
        let mut draw = 7u64;
        for id in 0..1500i64 {
            // Ids that rise, that fall, and that share their lower bits.
            let id = [id, -id, id << 40][id as usize % 3];
            buffer.push(buffered(id));
            list.push(id);
            draw = draw.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let removals = if (600..700).contains(&list.len()) { 5 } else { (draw >> 62) as usize / 2 };
            for removal in 0..removals.min(list.len()) {
                // Often the first: then a whole block goes.
                let at = if removal % 2 == 0 { 0 } else { (draw >> 20) as usize % list.len() };
                buffer = buffer.without(at);
                let gone = list.remove(at);
                assert_eq!(buffer.find(&Id::Int(gone)), None);
            }
            assert_eq!(buffer.len(), list.len());
            if id % 50 == 0 {
                assert_eq!(ids(&buffer), list);
                for (at, id) in list.iter().enumerate() {
                    assert_eq!(buffer.find(&Id::Int(*id)), Some(at));
                    assert_eq!(buffer[at].subscription.id, Id::Int(*id));
                }
            }
        }
        assert!(list.len() > 2 * BLOCK);
    }

    #[test]
    fn what_came_and_went_meanwhile_is_told_apart() {
        let mut buffer = InsertBuffer::default();
        (0..300).for_each(|id| buffer.push(buffered(id)));
        let taken: Vec<Held> = buffer.iter().cloned().collect();
        let mut later = buffer.without(299).without(150).without(0);
        // The same id again is another subscription.
        [300, 150, 301].into_iter().for_each(|id| later.push(buffered(id)));
        let (others, are_here) = later.separate(&taken);
        assert_eq!(ids(&others), [300, 150, 301]);
        let gone: Vec<usize> = (0..300).filter(|at| !are_here[*at]).collect();
        assert_eq!(gone, [0, 150, 299]);
    }
}
