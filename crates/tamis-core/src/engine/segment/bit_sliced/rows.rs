//! From a value to the words that it sets.
//!
//! ```text
//! values     of one attribute, or none; equal ones and neighbours may share a row
//! wide row   all words, if they are few: they stay in registers while an event is read
//! row        three of (word, mask), and a run of more for the few values that need it
//! words      of an event: what all rows of its values set
//! ```
//!
//! Whether a row has more than two words is as good as random, so three are set without asking. Those that it does not have set
//! nothing.

use rustc_hash::FxHashMap;

use super::formula::{KeyTest, Literal, Truth};
use super::lanes::{Pair, Register};

/// Words of rows beyond the first few, in all: most rows have none.
const MOST_FURTHER_WORDS: usize = 64 * 1024;

/// Bits that the states of all attributes set, each counted for each literal that does.
const MOST_SET: usize = 4 << 20;

/// An event never has more words, with the spare ones at the end.
pub(super) const MOST_WORDS: usize = 512;

/// Words that nobody reads. What a row does not have is set there, in another place for each row: the same word cannot be set
/// twice without waiting for the first to be stored.
pub(super) const SPARE_WORDS: usize = 64;

fn spare_words(row: u16) -> [u16; INLINE] {
    let spare = |at: usize| MOST_WORDS - 1 - (row as usize * INLINE + at) % SPARE_WORDS;
    std::array::from_fn(|at| spare(at) as u16)
}

/// What an event has set.
pub(super) type Words = [u64; MOST_WORDS];

/// So many words are set without a branch.
const INLINE: usize = 3;

/// Which bits of the words one value sets.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C, align(32))]
pub(super) struct Row {
    masks: [u64; INLINE],
    words: [u16; INLINE],
    /// The number of a run of further words, or 0.
    more: u16,
}

/// All rows, each once. The first sets nothing.
#[derive(Default)]
pub(super) struct Rows {
    rows: Vec<Row>,
    more: Vec<Vec<(u16, u64)>>,
    /// The words of all rows, one row after the other; instead of the others.
    wide: Vec<Pair>,
}

/// A few words, for wide rows of as many.
pub(super) struct Wide<const PAIRS: usize>([Register; PAIRS]);

impl<const PAIRS: usize> Wide<PAIRS> {
    /// Begins with these words, of which there are enough.
    #[inline(always)]
    pub fn new(words: &[u64]) -> Self {
        let pairs = words.as_chunks::<2>().0;
        Self(std::array::from_fn(|at| Register::load(&Pair(pairs[at]))))
    }

    /// Sets what a row says.
    #[inline(always)]
    pub fn set(&mut self, row: &[Pair; PAIRS]) {
        for (register, pair) in self.0.iter_mut().zip(row) {
            *register = register.or(pair);
        }
    }

    #[inline(always)]
    pub fn store(self, words: &mut Words) {
        for (words, register) in words.as_chunks_mut().0.iter_mut().zip(self.0) {
            *words = register.words();
        }
    }
}

impl Rows {
    /// All wide rows, which have this many pairs of words.
    #[inline]
    pub fn wide<const PAIRS: usize>(&self) -> &[[Pair; PAIRS]] {
        self.wide.as_chunks().0
    }

    /// Sets what a row says, if rows are not wide.
    #[inline]
    pub fn set(&self, row: u16, words: &mut Words) {
        let row = &self.rows[row as usize];
        for (word, mask) in row.words.iter().zip(row.masks) {
            words[*word as usize % MOST_WORDS] |= mask;
        }
        if row.more > 0 {
            self.set_more(row, words);
        }
    }

    #[inline(never)]
    fn set_more(&self, row: &Row, words: &mut Words) {
        for (word, mask) in &self.more[row.more as usize] {
            words[*word as usize % MOST_WORDS] |= mask;
        }
    }

    /// Makes wide rows of this many pairs of words.
    pub fn widen(&mut self, pairs: usize) {
        let mut wide = Vec::with_capacity(pairs * self.rows.len());
        let mut all = [0; MOST_WORDS];
        for row in &self.rows {
            all[..2 * pairs].fill(0);
            for (word, mask) in row.words.iter().zip(row.masks) {
                all[*word as usize] |= mask;
            }
            self.set_more(row, &mut all);
            wide.extend(all.as_chunks().0[..pairs].iter().copied().map(Pair));
        }
        *self = Self { wide, ..Self::default() };
    }

    pub fn bytes(&self) -> usize {
        size_of_val(&self.rows[..])
            + size_of_val(&self.wide[..])
            + self.more.iter().map(|more| 24 + size_of_val(&more[..])).sum::<usize>()
    }
}

/// Collects what values set.
pub(super) struct RowsBuilder {
    rows: Rows,
    known: FxHashMap<Vec<(u16, u64)>, u16>,
    further_words: usize,
    set: usize,
}

impl RowsBuilder {
    pub fn new() -> Self {
        let rows = Rows {
            rows: vec![Row { words: spare_words(0), ..Row::default() }],
            more: vec![vec![]],
            wide: vec![],
        };
        Self { rows, known: FxHashMap::from_iter([(vec![], 0)]), further_words: 0, set: 0 }
    }

    /// The rows of all states of an attribute; `None` if they would be too much.
    pub fn rows_of_states(&mut self, literals: &BitsOfLiterals, states: usize) -> Option<Vec<u16>> {
        self.set += literals.bits_set();
        if self.set > MOST_SET {
            return None;
        }
        literals.by_state(states).iter().map(|bits| self.row(bits)).collect()
    }

    /// The row of a value that sets these bits; `None` if there are too many rows.
    pub fn row(&mut self, bits: &[u32]) -> Option<u16> {
        let mut set: Vec<(u16, u64)> = vec![];
        let mut sorted = bits.to_vec();
        sorted.sort_unstable();
        for bit in sorted {
            let (word, mask) = (u16::try_from(bit / 64).ok()?, 1 << (bit % 64));
            match set.last_mut() {
                Some((last, masks)) if *last == word => *masks |= mask,
                _ => set.push((word, mask)),
            }
        }
        if let Some(row) = self.known.get(&set) {
            return Some(*row);
        }
        let number = u16::try_from(self.rows.rows.len()).ok()?;
        let mut row = Row { words: spare_words(number), ..Row::default() };
        for (at, (word, mask)) in set.iter().take(INLINE).enumerate() {
            (row.words[at], row.masks[at]) = (*word, *mask);
        }
        if let Some(more) = set.get(INLINE..).filter(|more| !more.is_empty()) {
            self.further_words += more.len();
            if self.further_words > MOST_FURTHER_WORDS {
                return None;
            }
            row.more = u16::try_from(self.rows.more.len()).ok()?;
            self.rows.more.push(more.to_vec());
        }
        self.rows.rows.push(row);
        self.known.insert(set, number);
        Some(number)
    }

    pub fn finish(self) -> Rows {
        self.rows
    }
}

/// What the literals on one attribute set.
#[derive(Default)]
pub(super) struct BitsOfLiterals {
    literals: Vec<(Truth, Vec<u32>)>,
    place_of: FxHashMap<Truth, usize>,
}

impl BitsOfLiterals {
    /// From now on this literal sets a bit where it holds.
    pub fn add(&mut self, literal: &Literal, bit: u32) {
        match self.place_of.get(&literal.truth) {
            Some(place) => self.literals[*place].1.push(bit),
            None => {
                self.place_of.insert(literal.truth.clone(), self.literals.len());
                self.literals.push((literal.truth.clone(), vec![bit]));
            }
        }
    }

    /// How many bits all states set.
    fn bits_set(&self) -> usize {
        let of_literal = |(truth, bits): &(Truth, Vec<u32>)| match truth {
            Truth::States(states) => states.count() * bits.len(),
            Truth::Keys(_) => 0,
        };
        self.literals.iter().map(of_literal).sum()
    }

    /// The bits that are set in each of so many states.
    fn by_state(&self, states: usize) -> Vec<Vec<u32>> {
        let mut set = vec![vec![]; states];
        for (truth, bits) in &self.literals {
            if let Truth::States(holding) = truth {
                holding.iter().for_each(|state| set[state as usize].extend(bits));
            }
        }
        set
    }

    /// The tests of keys, and the bits that each sets.
    pub fn into_tests(self) -> Vec<(KeyTest, Vec<u32>)> {
        let test = |(truth, bits)| match truth {
            Truth::Keys(test) => Some((test, bits)),
            Truth::States(_) => None,
        };
        self.literals.into_iter().filter_map(test).collect()
    }
}
