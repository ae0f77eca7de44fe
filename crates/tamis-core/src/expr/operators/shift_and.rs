//! Bit-parallel search (Shift-And, Baeza-Yates and Gonnet 1992) for literals with `_` between them.
//!
//! Bit `i` of the state says that the first `i + 1` characters of the pattern end at the current character of
//! the text. One character of the text shifts the state by one and keeps the bits of the places that take the
//! character, for 64 places at a time:
//!
//! ```text
//! pattern   a _ b         state = (state << 1 | 1) & (any | takes[character])
//! takes[a]  1 0 0
//! takes[b]  0 0 1         any: the places of `_`
//! any       0 1 0
//! ```
//!
//! So its time does not depend on the text: each character costs at most one step per 64 characters of the
//! pattern. Words above the highest bit that is set are not visited. While no bit is set, the text is skipped
//! up to the next occurrence of the literal that the pattern starts with, after which the state is always the
//! same.
//!
//! `takes` holds only the words that are not zero, at most one per character of the pattern. Full rows would
//! take space quadratic in the length of a pattern of distinct characters.

use super::wildcard::Piece;

pub struct ShiftAnd {
    /// The places of `_`, 64 to a word.
    any: Box<[u64]>,
    /// Each distinct character of the pattern and where its words end in `takes`, sorted.
    rows: Box<[(char, u32)]>,
    /// Per character: which word, and its places in it.
    takes: Box<[(u32, u64)]>,
    /// The state after the first literal, without the words above its last bit.
    after_first: Box<[u64]>,
    /// The last place, in the last word.
    accept: u64,
}

impl ShiftAnd {
    /// Searches for `pieces`, of which the first is `first`.
    pub fn new(first: &str, pieces: &[Piece]) -> Self {
        let (mut places, mut any, mut length) = (vec![], vec![], 0);
        for piece in pieces {
            match piece {
                Piece::Literal(literal) => {
                    places.extend(literal.chars().zip(length..));
                    length += literal.chars().count();
                }
                Piece::Any(count) => {
                    any.extend(length..length + count);
                    length += count;
                }
            }
        }
        places.sort_unstable();
        let mut takes: Vec<(u32, u64)> = vec![];
        let mut rows: Vec<(char, u32)> = vec![];
        for (character, place) in places {
            let (word, bit) = ((place / 64) as u32, 1 << (place % 64));
            let same_row = rows.last().is_some_and(|&(last, _)| last == character);
            match takes.last_mut() {
                Some((last, bits)) if same_row && *last == word => *bits |= bit,
                _ => takes.push((word, bit)),
            }
            match rows.last_mut() {
                Some((_, end)) if same_row => *end = takes.len() as u32,
                _ => rows.push((character, takes.len() as u32)),
            }
        }
        let mut words = vec![0; length.div_ceil(64)];
        for place in any {
            words[place / 64] |= 1 << (place % 64);
        }
        let accept = 1 << ((length - 1) % 64);
        let mut search = Self {
            any: words.into(),
            rows: rows.into(),
            takes: takes.into(),
            after_first: Box::default(),
            accept,
        };
        let (mut state, mut live) = (vec![0; length.div_ceil(64)], 0);
        for character in first.chars() {
            live = search.step(&mut state, live, character, &mut 0);
        }
        state.truncate(live);
        search.after_first = state.into();
        search
    }

    /// The end of the first occurrence in `text`, which starts with `first`. `steps` counts the words that
    /// were computed.
    pub fn find_end(&self, text: &str, first: &str, steps: &mut usize) -> Option<usize> {
        if self.any.len() == 1 {
            return self.find_end_by_word(text, first, steps);
        }
        let mut state = vec![0; self.any.len()];
        let mut at = 0;
        loop {
            at += first.len();
            // How many words may have a bit set.
            let mut live = self.after_first.len();
            state[..live].copy_from_slice(&self.after_first);
            *steps += live;
            while live > 0 {
                let character = text[at..].chars().next()?;
                at += character.len_utf8();
                live = self.step(&mut state, live, character, steps);
                if live == state.len() && state[live - 1] & self.accept != 0 {
                    return Some(at);
                }
            }
            at += text[at..].find(first)?;
        }
    }

    /// The same for a state of one word: most patterns are short.
    fn find_end_by_word(&self, text: &str, first: &str, steps: &mut usize) -> Option<usize> {
        let mut at = 0;
        loop {
            at += first.len();
            let mut state = self.after_first[0];
            *steps += 1;
            let mut rest = text[at..].chars();
            while state != 0 {
                let takes = self.row(rest.next()?).first().map_or(0, |(_, bits)| *bits);
                state = (state << 1 | 1) & (self.any[0] | takes);
                *steps += 1;
                if state & self.accept != 0 {
                    return Some(text.len() - rest.as_str().len());
                }
            }
            at = text.len() - rest.as_str().len();
            at += text[at..].find(first)?;
        }
    }

    /// Takes one character; only the first `live` words of `state` have bits. Says how many have any after it.
    fn step(&self, state: &mut [u64], live: usize, character: char, steps: &mut usize) -> usize {
        let mut takes = self.row(character).iter().peekable();
        let (mut carry, mut still_live) = (1, 0);
        for (word, (state, any)) in state.iter_mut().zip(&self.any).enumerate() {
            if word >= live && carry == 0 {
                break;
            }
            let here = takes.next_if(|(at, _)| *at as usize == word);
            let next = (*state << 1 | carry) & (any | here.map_or(0, |(_, bits)| *bits));
            carry = *state >> 63;
            *state = next;
            if next != 0 {
                still_live = word + 1;
            }
            *steps += 1;
        }
        still_live
    }

    fn row(&self, character: char) -> &[(u32, u64)] {
        match self.rows.binary_search_by_key(&character, |&(held, _)| held) {
            Ok(0) => &self.takes[..self.rows[0].1 as usize],
            Ok(at) => &self.takes[self.rows[at - 1].1 as usize..self.rows[at].1 as usize],
            Err(_) => &[],
        }
    }
}
