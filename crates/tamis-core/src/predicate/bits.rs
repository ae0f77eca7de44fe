//! A set of bits that remembers which words it touched, so that clearing costs no more than setting. A small set is
//! cleared whole: that takes less than remembering.

/// A bit set for one event.
#[derive(Default)]
pub struct Bits {
    words: Vec<u64>,
    /// Words (first, last + 1) that may be non-zero, unless the set is small.
    touched: Vec<(u32, u32)>,
}

/// Sets with no more words are small: a few instructions clear them.
const FEW_WORDS: usize = if cfg!(any(test, feature = "testing")) { 2 } else { 128 };

impl Bits {
    /// Makes room for `bits` bits, all clear.
    pub fn reset(&mut self, bits: usize) {
        if self.words.len() <= FEW_WORDS {
            self.words.fill(0);
        }
        for (from, to) in self.touched.drain(..) {
            // Mostly one word, for which filling takes longer than writing it.
            self.words[from as usize] = 0;
            if from + 1 < to {
                self.words[from as usize + 1..to as usize].fill(0);
            }
        }
        let words = bits.div_ceil(64);
        if self.words.len() < words {
            self.words.resize(words, 0);
        }
    }

    #[inline]
    pub fn set(&mut self, bit: u32) {
        let word = bit >> 6;
        self.words[word as usize] |= 1 << (bit & 63);
        self.touch(word, word + 1);
    }

    /// Sets the bits `from..to`, a word at a time.
    #[inline]
    pub fn set_range(&mut self, from: u32, to: u32) {
        if from >= to {
            return;
        }
        let (first, last) = (from >> 6, (to - 1) >> 6);
        let head = u64::MAX << (from & 63);
        let tail = u64::MAX >> (63 - ((to - 1) & 63));
        if first == last {
            self.words[first as usize] |= head & tail;
        } else {
            self.words[first as usize] |= head;
            self.words[first as usize + 1..last as usize].fill(u64::MAX);
            self.words[last as usize] |= tail;
        }
        self.touch(first, last + 1);
    }

    #[inline]
    fn touch(&mut self, from: u32, to: u32) {
        if self.words.len() > FEW_WORDS {
            self.touched.push((from, to));
        }
    }

    pub fn get(&self, bit: u32) -> bool {
        self.words[(bit >> 6) as usize] >> (bit & 63) & 1 == 1
    }

    /// Sets a bit and says whether it was set before.
    pub fn replace(&mut self, bit: u32) -> bool {
        let was = self.get(bit);
        if !was {
            self.set(bit);
        }
        was
    }

    pub fn words(&self) -> &[u64] {
        &self.words
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_that_grows_is_cleared_whole() {
        let mut bits = Bits::default();
        for size in [64, 64, 128, 500, 100] {
            bits.reset(size);
            assert!(bits.words().iter().all(|word| *word == 0));
            bits.set_range(3, size as u32);
            bits.set(0);
        }
    }

    #[test]
    fn ranges_equal_single_bits_and_reset_clears_everything() {
        for from in 0..130u32 {
            for to in from..200 {
                let (mut a, mut b) = (Bits::default(), Bits::default());
                a.reset(200);
                b.reset(200);
                a.set_range(from, to);
                (from..to).for_each(|bit| b.set(bit));
                assert_eq!(a.words(), b.words());
                a.reset(200);
                assert!(a.words().iter().all(|word| *word == 0));
            }
        }
    }
}
