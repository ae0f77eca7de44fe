//! From a value to the words that it sets.
//!
//! ```text
//! values     of one attribute, or none; equal ones and neighbours may share a row
//! row        (word, mask) twice, and a run of more for the few values that need it
//! words      of an event: what all rows of its values set
//! ```

use bytemuck::{Pod, Zeroable};
use rustc_hash::FxHashMap;

use super::formula::{KeyTest, Literal, Truth};

/// Which bits of the words one value sets.
#[derive(Clone, Copy, Debug, Default, Pod, Zeroable)]
#[repr(C)]
pub(super) struct Row {
    masks: [u64; 2],
    words: [u16; 2],
    /// A run of further words.
    more: u16,
    first_more: u16,
}

/// All rows, each once. The first sets nothing.
#[derive(Default)]
pub(super) struct Rows {
    rows: Vec<Row>,
    more: Vec<(u16, u64)>,
}

impl Rows {
    /// Sets what a row says.
    #[inline(always)]
    pub fn set(&self, row: u16, words: &mut [u64]) {
        let row = &self.rows[row as usize];
        words[row.words[0] as usize] |= row.masks[0];
        words[row.words[1] as usize] |= row.masks[1];
        if row.more > 0 {
            self.set_more(row, words);
        }
    }

    #[inline(never)]
    fn set_more(&self, row: &Row, words: &mut [u64]) {
        for (word, mask) in &self.more[row.first_more as usize..][..row.more as usize] {
            words[*word as usize] |= mask;
        }
    }

    pub fn bytes(&self) -> usize {
        size_of_val(&self.rows[..]) + size_of_val(&self.more[..])
    }
}

/// Collects what values set.
pub(super) struct RowsBuilder {
    rows: Rows,
    known: FxHashMap<Vec<(u16, u64)>, u16>,
}

impl RowsBuilder {
    pub fn new() -> Self {
        let rows = Rows { rows: vec![Row::default()], more: vec![] };
        Self { rows, known: FxHashMap::from_iter([(vec![], 0)]) }
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
        let mut row = Row::default();
        for (at, (word, mask)) in set.iter().take(2).enumerate() {
            (row.words[at], row.masks[at]) = (*word, *mask);
        }
        if let Some(more) = set.get(2..).filter(|more| !more.is_empty()) {
            row.first_more = u16::try_from(self.rows.more.len()).ok()?;
            row.more = more.len() as u16;
            self.rows.more.extend(more);
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
}

impl BitsOfLiterals {
    /// From now on this literal sets a bit where it holds.
    pub fn add(&mut self, literal: &Literal, bit: u32) {
        match self.literals.iter_mut().find(|(truth, _)| *truth == literal.truth) {
            Some((_, bits)) => bits.push(bit),
            None => self.literals.push((literal.truth.clone(), vec![bit])),
        }
    }

    /// The bits that are set in a state.
    pub fn of_state(&self, state: usize) -> Vec<u32> {
        let holds = |truth: &Truth| matches!(truth, Truth::States(states) if states[state]);
        let holding = self.literals.iter().filter(|(truth, _)| holds(truth));
        holding.flat_map(|(_, bits)| bits.iter().copied()).collect()
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
