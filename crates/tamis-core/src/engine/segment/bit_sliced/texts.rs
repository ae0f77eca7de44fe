//! From a text to its row: a hash table whose slots hold the text itself if that is short.

use crate::predicate::equality::{text_at, text_place};
use crate::predicate::keys::hash_text;

/// The texts of one attribute.
#[derive(Default)]
pub(super) struct Texts {
    /// A power of two, at most half full.
    slots: Vec<Slot>,
    /// Of texts longer than two words.
    pool: Vec<u8>,
    /// No text here is longer, so that none of an event is taken for an empty slot.
    longest: usize,
    /// The row of all other texts.
    other: u16,
}

#[derive(Clone, Copy)]
struct Slot {
    length: u32,
    row: u16,
    ends: [u64; 2],
    place: u64,
}

const EMPTY: Slot = Slot { length: u32::MAX, row: 0, ends: [0; 2], place: 0 };

impl Texts {
    pub fn new(texts: &[(&str, u16)], other: u16) -> Self {
        let longest = texts.iter().map(|(text, _)| text.len()).max().unwrap_or(0);
        let slots = vec![EMPTY; (2 * texts.len()).next_power_of_two()];
        let mut made = Self { slots, pool: vec![], longest, other };
        for (text, row) in texts {
            let ends = ends(text.as_bytes());
            let mut at = made.first_slot(ends, text);
            while made.slots[at].length != EMPTY.length {
                at = (at + 1) & (made.slots.len() - 1);
            }
            let place = text_place(made.pool.len(), text.len());
            made.pool.extend_from_slice(text.as_bytes());
            made.slots[at] = Slot { length: text.len() as u32, row: *row, ends, place };
        }
        made
    }

    #[inline]
    pub fn row(&self, text: &str) -> u16 {
        if text.len() > self.longest {
            return self.other;
        }
        let ends = ends(text.as_bytes());
        let mut at = self.first_slot(ends, text);
        loop {
            let slot = &self.slots[at];
            if slot.length as usize == text.len() && slot.ends == ends {
                if text.len() <= 16 || text_at(slot.place, &self.pool) == text.as_bytes() {
                    return slot.row;
                }
            } else if slot.length == EMPTY.length {
                return self.other;
            }
            at = (at + 1) & (self.slots.len() - 1);
        }
    }

    /// Long texts of one length may well have the same ends: addresses, paths, times.
    #[inline]
    fn first_slot(&self, ends: [u64; 2], text: &str) -> usize {
        let hash = if text.len() > 16 { hash_text(text) } else { mixed(ends, text.len()) };
        hash as usize & (self.slots.len() - 1)
    }

    pub fn bytes(&self) -> usize {
        size_of_val(&self.slots[..]) + self.pool.len()
    }
}

/// Both halves of a product: each bit depends on all of both ends.
#[inline]
fn mixed(ends: [u64; 2], length: usize) -> u64 {
    let [first, last] = [ends[0] ^ 0x9E37_79B9_7F4A_7C15, ends[1] ^ 0xD1B5_4A32_D192_ED03 ^ length as u64];
    let product = first as u128 * last as u128;
    (product >> 64) as u64 ^ product as u64
}

/// The first and the last eight bytes, or what there is of them: texts of one length up to sixteen are the same if these are.
#[inline]
fn ends(text: &[u8]) -> [u64; 2] {
    if let (Some(first), Some(last)) = (text.first_chunk(), text.last_chunk()) {
        return [u64::from_le_bytes(*first), u64::from_le_bytes(*last)];
    }
    if let (Some(first), Some(last)) = (text.first_chunk(), text.last_chunk()) {
        return [u32::from_le_bytes(*first) as u64, u32::from_le_bytes(*last) as u64];
    }
    match text {
        [] => [0; 2],
        _ => {
            let middle = text[text.len() / 2] as u64;
            [text[0] as u64 | middle << 8 | (text[text.len() - 1] as u64) << 16, 0]
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Texts of all lengths, each next to those that differ from it in one byte.
    #[test]
    fn a_text_has_its_row_and_others_have_another() {
        let all: Vec<String> = (0..40).map(|length| "abcdefghij".repeat(4)[..length].to_string()).collect();
        for step in [1, 2, 3, 7, 40] {
            let some: Vec<(&str, u16)> =
                all.iter().step_by(step).zip(1..).map(|(text, row)| (text.as_str(), row)).collect();
            let texts = Texts::new(&some, 0);
            for (at, text) in all.iter().enumerate() {
                let expected = if at % step == 0 { (at / step + 1) as u16 } else { 0 };
                assert_eq!(texts.row(text), expected, "{text}");
                for place in 0..text.len() {
                    let mut other = text.clone();
                    other.replace_range(place..place + 1, "z");
                    assert_eq!(texts.row(&other), 0, "{other}");
                }
            }
        }
        assert_eq!(Texts::new(&[], 5).row("x"), 5);
    }

    /// Addresses, times and the like are as long as one another and begin and end alike.
    #[test]
    fn texts_that_begin_and_end_alike_are_spread() {
        for form in
            [("https://example.com/item/", "/index.html"), ("2026-", "T00:00:00.000Z"), ("id-", ""), ("", "")]
        {
            let all: Vec<String> = (0..10_000).map(|n| format!("{}{n:06}{}", form.0, form.1)).collect();
            let some: Vec<(&str, u16)> = all.iter().map(|text| (text.as_str(), 1)).collect();
            let texts = Texts::new(&some, 0);
            let taken: Vec<bool> = texts.slots.iter().map(|slot| slot.length != EMPTY.length).collect();
            let longest_run = taken.chunk_by(|a, b| a == b).filter(|run| run[0]).map(<[bool]>::len).max();
            assert!(longest_run < Some(200), "{form:?}: {longest_run:?}");
        }
    }
}
