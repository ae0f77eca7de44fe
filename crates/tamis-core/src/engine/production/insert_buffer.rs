//! The newest subscriptions, in the order of their arrival, shared by the versions that hold them.
//!
//! A version sees the first `len` slots. The writer of the next version fills one more slot, which no older version
//! looks at, so an insertion copies nothing; a removal or a change copies the list.

use std::ops::Index;
use std::sync::{Arc, OnceLock};

use crate::engine::segment::buffered_subscription::BufferedSubscription;

/// Subscriptions in the buffer before they become a segment: fewer make more and smaller segments to merge,
/// more are slower to try one by one.
pub const CAPACITY: usize = 128;

#[derive(Clone, Default)]
pub struct InsertBuffer {
    slots: Arc<[OnceLock<Arc<BufferedSubscription>>]>,
    len: usize,
}

impl InsertBuffer {
    pub fn len(&self) -> usize {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub fn is_full(&self) -> bool {
        self.len >= CAPACITY
    }

    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Arc<BufferedSubscription>> + ExactSizeIterator {
        self.slots[..self.len].iter().map(|slot| slot.get().expect("a version sees filled slots only"))
    }

    /// Adds one at the end, by whoever holds the writer's lock.
    pub fn push(&mut self, buffered: Arc<BufferedSubscription>) {
        // The slot is taken if the buffer has none left, or by a version that was never published.
        let filled = self.slots.get(self.len).is_some_and(|slot| slot.set(buffered.clone()).is_ok());
        if !filled {
            *self = self.iter().cloned().chain([buffered]).collect();
            return;
        }
        self.len += 1;
    }

    pub fn without(&self, gone: usize) -> Self {
        self.iter().enumerate().filter(|(at, _)| *at != gone).map(|(_, held)| held.clone()).collect()
    }
}

impl Index<usize> for InsertBuffer {
    type Output = Arc<BufferedSubscription>;

    fn index(&self, at: usize) -> &Self::Output {
        self.slots[..self.len][at].get().expect("a version sees filled slots only")
    }
}

impl FromIterator<Arc<BufferedSubscription>> for InsertBuffer {
    fn from_iter<I: IntoIterator<Item = Arc<BufferedSubscription>>>(all: I) -> Self {
        let mut slots: Vec<_> = all.into_iter().map(OnceLock::from).collect();
        let len = slots.len();
        slots.resize_with(len.max(CAPACITY), OnceLock::new);
        Self { slots: slots.into(), len }
    }
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

    fn ids(buffer: &InsertBuffer) -> Vec<Id> {
        buffer.iter().map(|held| held.subscription.id.clone()).collect()
    }

    #[test]
    fn versions_see_what_they_held() {
        let mut first = InsertBuffer::default();
        first.push(buffered(1));
        let mut second = first.clone();
        second.push(buffered(2));
        let third = second.without(0);
        assert_eq!(ids(&first), [Id::Int(1)]);
        assert_eq!(ids(&second), [Id::Int(1), Id::Int(2)]);
        assert_eq!(ids(&third), [Id::Int(2)]);
    }

    #[test]
    fn a_slot_of_an_unpublished_version_is_not_reused() {
        let mut published = InsertBuffer::default();
        published.push(buffered(1));
        published.clone().push(buffered(2));
        published.push(buffered(3));
        assert_eq!(ids(&published), [Id::Int(1), Id::Int(3)]);
    }
}
