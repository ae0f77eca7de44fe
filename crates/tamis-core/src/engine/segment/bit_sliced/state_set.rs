//! Some of the states of an attribute, a bit each.

/// Sets of the same attribute have the same length, and no bits behind it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct StateSet {
    states: u32,
    words: Box<[u64]>,
}

impl StateSet {
    /// All of so many states, or none.
    pub fn new(states: usize, all: bool) -> Self {
        let mut words = vec![if all { u64::MAX } else { 0 }; Self::words_of(states)];
        if all && !states.is_multiple_of(64) {
            words[states / 64] >>= 64 - states % 64;
        }
        Self { states: states as u32, words: words.into() }
    }

    /// How many words a set takes.
    pub fn words_of(states: usize) -> usize {
        states.div_ceil(64)
    }

    pub fn flip(&mut self, state: u32) {
        self.words[state as usize / 64] ^= 1 << (state % 64);
    }

    pub fn has(&self, state: u32) -> bool {
        self.words[state as usize / 64] >> (state % 64) & 1 == 1
    }

    /// How many states there are, in the set or not.
    pub fn states(&self) -> usize {
        self.states as usize
    }

    /// What is in both, or in either.
    pub fn joined(&self, other: &StateSet, both: bool) -> StateSet {
        let pairs = self.words.iter().zip(&other.words);
        let words = pairs.map(|(a, b)| if both { a & b } else { a | b });
        Self { states: self.states, words: words.collect() }
    }

    pub fn count(&self) -> usize {
        self.words.iter().map(|word| word.count_ones() as usize).sum()
    }

    pub fn is_empty(&self) -> bool {
        self.words.iter().all(|word| *word == 0)
    }

    pub fn is_all(&self) -> bool {
        self.count() == self.states()
    }

    /// The states in the set, rising.
    pub fn iter(&self) -> impl Iterator<Item = u32> {
        (0..).zip(&self.words).flat_map(|(at, word)| {
            let mut left = *word;
            std::iter::from_fn(move || {
                let bit = (left != 0).then(|| left.trailing_zeros())?;
                left &= left - 1;
                Some(64 * at + bit)
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_of_any_length_know_what_is_in_them() {
        for states in [1, 2, 63, 64, 65, 127, 128, 200] {
            let (all, none) = (StateSet::new(states, true), StateSet::new(states, false));
            assert!(all.is_all() && all.count() == states && none.is_empty() && !none.is_all());
            let (mut some, mut others) = (none.clone(), all.clone());
            for state in (0..states as u32).step_by(7) {
                some.flip(state);
                others.flip(state);
            }
            assert_eq!(some.iter().collect::<Vec<_>>(), (0..states as u32).step_by(7).collect::<Vec<_>>());
            assert!((0..states as u32).all(|state| some.has(state) == (state % 7 == 0)));
            assert_eq!((some.joined(&others, true), some.joined(&others, false)), (none, all));
        }
    }
}
