//! Counts for 512 events at once: adding a mask adds one to every event in it.
//!
//! Plane p holds bit p of every event's count, so adding is a ripple of carries that mostly ends
//! after a plane or two.

use super::bit_parallel::{Mask, WIDTH};

#[derive(Default)]
pub struct Counters {
    planes: Vec<Mask>,
}

impl Counters {
    /// Adds `times` for each event of the mask.
    #[inline]
    pub fn add(&mut self, mask: &Mask, times: usize) {
        let mut rest = times;
        while rest != 0 {
            self.add_at(rest.trailing_zeros() as usize, *mask);
            rest &= rest - 1;
        }
    }

    #[inline]
    fn add_at(&mut self, mut plane: usize, mut carry: Mask) {
        loop {
            if self.planes.len() <= plane {
                self.planes.resize(plane + 1, Mask::NONE);
            }
            let sum = &mut self.planes[plane];
            let mut any = 0;
            for lane in 0..carry.0.len() {
                let both = sum.0[lane] & carry.0[lane];
                sum.0[lane] ^= carry.0[lane];
                carry.0[lane] = both;
                any |= both;
            }
            if any == 0 {
                return;
            }
            plane += 1;
        }
    }

    pub fn totals(&self) -> [u32; WIDTH] {
        let mut totals = [0; WIDTH];
        for (plane, mask) in self.planes.iter().enumerate() {
            mask.for_each(|event| totals[event] += 1 << plane);
        }
        totals
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_what_was_added() {
        let mut counters = Counters::default();
        let mut expected = [0u32; WIDTH];
        for step in 1..200usize {
            let mut mask = Mask::NONE;
            for event in (0..WIDTH).filter(|event| (event * 7 + step * step) % 5 < 2) {
                mask.0[event / 64] |= 1 << (event % 64);
                expected[event] += (step % 4) as u32;
            }
            counters.add(&mask, step % 4);
        }
        assert_eq!(counters.totals(), expected);
    }
}
