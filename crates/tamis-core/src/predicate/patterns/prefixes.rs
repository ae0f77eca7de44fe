//! All stored prefixes of a text.
//!
//! Prefixes are sorted, and each is linked to the longest other one that is a prefix of it:
//!
//! ```text
//!   number   prefix   link
//!        0   a        –
//!        1   ab       0
//!        2   abc      1          text "abd": the last prefix not above it is number 2;
//!        3   b        –          the links from there lead over 1 and 0, which are the answer
//! ```
//!
//! Every stored prefix of a text is on the chain of links that starts at the last stored prefix not above the
//! text: it is itself not above the text, and everything between the two in the order starts with it.

use super::arrays::{ArraysReader, ArraysWriter, are_starts};
use super::texts::{Texts, TextsBuilder};
use crate::snapshot::SharedSlice;

/// A set of prefixes, each with the owners to report.
#[derive(Debug, Default)]
pub(super) struct Prefixes {
    /// The first eight bytes of each prefix as a number of the same order: most of a search happens here.
    keys: SharedSlice<u64>,
    texts: Texts,
    links: SharedSlice<u32>,
    /// The owners of number i are `owners[owner_starts[i]..owner_starts[i + 1]]`.
    owners: SharedSlice<u32>,
    owner_starts: SharedSlice<u32>,
    longest: usize,
}

const NO_LINK: u32 = u32::MAX;

impl Prefixes {
    pub fn new(mut entries: Vec<(Vec<u8>, u32)>) -> Self {
        entries.sort_unstable();
        let (mut texts, mut keys, mut links) = (TextsBuilder::default(), vec![], vec![]);
        let (mut owners, mut owner_starts) = (vec![], vec![]);
        for same in entries.chunk_by(|a, b| a.0 == b.0) {
            let prefix = &same[0].0;
            links.push(link_of_next(prefix, &texts, &links));
            keys.push(key(prefix));
            texts.push(prefix);
            owner_starts.push(owners.len() as u32);
            owners.extend(same.iter().map(|&(_, owner)| owner));
        }
        owner_starts.push(owners.len() as u32);
        let longest = entries.iter().map(|(text, _)| text.len()).max().unwrap_or(0);
        Self {
            keys: keys.into(),
            texts: texts.finish(),
            links: links.into(),
            owners: owners.into(),
            owner_starts: owner_starts.into(),
            longest,
        }
    }

    /// Reports the owners of every stored prefix of `text`.
    pub fn each_prefix_of(&self, text: &[u8], found: &mut impl FnMut(u32)) {
        let mut number = self.last_not_above(text);
        if number == NO_LINK {
            return;
        }
        // What is on the chain and no longer than the part in common with its start is a prefix of both.
        let common = std::iter::zip(self.stored(number), text).take_while(|(a, b)| a == b).count();
        while number != NO_LINK {
            let place = number as usize;
            if self.texts.len_of(place) <= common {
                self.owners_of(place).iter().for_each(|&owner| found(owner));
            }
            number = self.links[place];
        }
    }

    /// Reports the owners of what is stored as exactly this text.
    pub fn each_equal_to(&self, text: &[u8], found: &mut impl FnMut(u32)) {
        let number = self.last_not_above(text);
        if number != NO_LINK && self.stored(number) == text {
            self.owners_of(number as usize).iter().for_each(|&owner| found(owner));
        }
    }

    fn owners_of(&self, place: usize) -> &[u32] {
        &self.owners[self.owner_starts[place] as usize..self.owner_starts[place + 1] as usize]
    }

    fn last_not_above(&self, text: &[u8]) -> u32 {
        let text_key = key(text);
        let below = self.keys.partition_point(|&key| key < text_key);
        let (mut low, mut high) = (below, below + self.keys[below..].partition_point(|&key| key == text_key));
        while low < high {
            let middle = low + (high - low) / 2;
            if self.stored(middle as u32) <= text {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        (low as u32).wrapping_sub(1)
    }

    fn stored(&self, number: u32) -> &[u8] {
        self.texts.get(number as usize)
    }

    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// The length of the longest prefix.
    pub fn longest(&self) -> usize {
        self.longest
    }

    pub fn heap_bytes(&self) -> usize {
        self.keys.byte_len()
            + self.texts.heap_bytes()
            + self.links.byte_len()
            + self.owners.byte_len()
            + self.owner_starts.byte_len()
    }

    pub fn store(&self, out: &mut ArraysWriter) {
        out.put_wide(&self.keys);
        self.texts.store(out);
        out.put(&self.links);
        out.put(&self.owners);
        out.put(&self.owner_starts);
    }

    /// Reads what [`store`](Self::store) wrote; owners are below `ids`.
    pub fn restore(arrays: &mut ArraysReader, ids: u32) -> Option<Self> {
        let (keys, texts) = (arrays.take_wide()?, Texts::restore(arrays)?);
        let (links, owners, owner_starts) = (arrays.take()?, arrays.take()?, arrays.take()?);
        let longest = (0..texts.len()).map(|number| texts.len_of(number)).max().unwrap_or(0);
        let set = Self { keys, texts, links, owners, owner_starts, longest };
        let count = set.texts.len();
        // Links go back, so that no walk goes round in circles.
        let goes_back = |(at, link): (usize, &u32)| *link == NO_LINK || (*link as usize) < at;
        let is_consistent = set.keys.len() == count
            && set.links.len() == count
            && set.links.iter().enumerate().all(goes_back)
            && set.owners.iter().all(|owner| *owner < ids)
            && are_starts(&set.owner_starts, count, set.owners.len());
        is_consistent.then_some(set)
    }
}

/// The longest prefix of `prefix` among `texts`, which are sorted and below it.
fn link_of_next(prefix: &[u8], texts: &TextsBuilder, links: &[u32]) -> u32 {
    let mut number = (texts.len() as u32).wrapping_sub(1);
    while number != NO_LINK && !prefix.starts_with(texts.get(number as usize)) {
        number = links[number as usize];
    }
    number
}

/// The first eight bytes as a number. Different numbers are ordered as the texts are.
fn key(text: &[u8]) -> u64 {
    if let Some(first) = text.first_chunk() {
        return u64::from_be_bytes(*first);
    }
    // Copying a number of bytes that is not known before would be a call.
    let (mut key, mut free, mut rest) = (0, u64::BITS, text);
    if let Some((four, after)) = rest.split_first_chunk() {
        free -= 32;
        key |= u64::from(u32::from_be_bytes(*four)) << free;
        rest = after;
    }
    for byte in rest {
        free -= 8;
        key |= u64::from(*byte) << free;
    }
    key
}
