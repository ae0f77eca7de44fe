//! Schedules when keys are visited next.
//!
//! ```text
//! near    a heap        all times up to the end of the second that was reached
//! far     by second     the later ones, in no order until their second comes
//! ```
//!
//! Most times are far in the future when they are scheduled. A second has few of them, so the heap stays in
//! the cache, whatever the number of keys.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

/// The time, since when the key is there, and its number.
pub(super) type Look = (i64, u64, u32);

/// Microseconds, about a second.
const SPAN: i64 = 1 << 20;

#[derive(Default)]
pub(super) struct Looks {
    near: BinaryHeap<Reverse<Look>>,
    far: BTreeMap<i64, Vec<Look>>,
    /// Times in this second or before are near.
    reached: Option<i64>,
    len: usize,
}

impl Looks {
    pub fn push(&mut self, look: Look) {
        let second = look.0.div_euclid(SPAN);
        if Some(second) <= self.reached {
            self.near.push(Reverse(look));
        } else {
            self.far.entry(second).or_default().push(look);
        }
        self.len += 1;
    }

    /// Takes out the first one, if its time is before this moment.
    pub fn pop_before(&mut self, now: i64) -> Option<Look> {
        loop {
            if let Some(Reverse(first)) = self.near.peek() {
                if first.0 >= now {
                    return None;
                }
                self.len -= 1;
                return self.near.pop().map(|Reverse(first)| first);
            }
            let next = self.far.first_entry().filter(|next| *next.key() <= now.div_euclid(SPAN))?;
            let (second, looks) = next.remove_entry();
            self.reached = Some(second);
            self.near.extend(looks.into_iter().map(Reverse));
        }
    }

    pub fn retain(&mut self, keep: impl Fn(&Look) -> bool) {
        self.near.retain(|Reverse(look)| keep(look));
        self.far.retain(|_, looks| {
            looks.retain(&keep);
            !looks.is_empty()
        });
        self.len = self.near.len() + self.far.values().map(Vec::len).sum::<usize>();
    }

    pub fn len(&self) -> usize {
        self.len
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Times before and after what was reached, in one second and far apart, and before the epoch.
    #[test]
    fn they_come_in_the_order_of_time() {
        let (mut looks, mut expected) = (Looks::default(), BinaryHeap::new());
        let mut state = 7u64;
        let mut draw = |bound: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            ((state >> 33) % bound) as i64
        };
        let mut now = -20 * SPAN;
        for round in 0..3_000u32 {
            let ahead = if round % 3 == 0 { draw(1_000) } else { draw(30 * SPAN as u64) };
            let look = (now + ahead - 500, u64::from(round), round);
            looks.push(look);
            expected.push(Reverse(look));
            now += draw(SPAN as u64 / 8);
            if round % 500 == 499 {
                let odd = |look: &Look| look.2 % 2 == 1;
                looks.retain(odd);
                expected.retain(|Reverse(look)| odd(look));
            }
            while expected.peek().is_some_and(|Reverse(first)| first.0 < now) && round % 7 != 0 {
                assert_eq!(looks.pop_before(now), expected.pop().map(|Reverse(first)| first));
            }
            if round % 7 != 0 {
                assert_eq!(looks.pop_before(now), None);
            }
            assert_eq!(looks.len(), expected.len());
        }
    }
}
