//! Finds literals by one of their *grams*: four consecutive bytes (all bytes of a shorter literal).
//!
//! Each literal is filed under one of its grams, the one that the fewest other literals have. A text is read gram by
//! gram. A filter bit says whether anything is filed under grams with this hash. It is rarely set; if it is, the
//! literals in question are compared with the text around the gram:
//!
//! ```text
//!   literal "\temp\run"   filed under "p\ru", at offset 4
//!
//!   text  C:\temp\runas   ... "emp\" no  "mp\r" no  "p\ru" yes: compare from 4 bytes before
//!
//!   filter    one bit per hash of a gram, at most 1 in 16 is set
//!   starts    the leading bits of the hash are a bucket, a run of entries
//!   entries   gram, offset, literal
//! ```
//!
//! The grams of a text do not depend on one another, so their bits are fetched together, while an automaton waits for
//! each state before it knows the next. Both are about as fast: with the 11,189 literals that public detection rules
//! search for in command lines, a text of 411 bytes that contains 39 of them took 8.5 µs with grams and 7.5 µs with an
//! automaton. But grams are built in a quarter of the time, and they are flat arrays, which a snapshot stores.
//!
//! A bucket with more entries than [`MAX_BUCKET`] would make some texts slow. Its literals go to the automaton.

use super::arrays::{ArraysReader, ArraysWriter, are_starts};
use super::texts::Texts;
use crate::snapshot::SharedSlice;

/// The bytes of a gram; a shorter literal has grams of its own length.
pub(super) const WIDEST: usize = 4;

/// The most literals that are compared at one place of a text.
const MAX_BUCKET: usize = 16;

/// Grams of a literal that are looked at; the later ones of a long literal are not.
const MAX_CHOICES: usize = 64;

/// Bits of the filter for each bucket, as a power of two.
const FILTER_PER_BUCKET: u32 = 3;

const MAX_BUCKET_BITS: u32 = 24;

/// The numbers of an entry, one after the other: gram, offset, literal.
const ENTRY: usize = 3;

/// Literals of one width of grams.
#[derive(Debug)]
pub(super) struct Grams {
    width: usize,
    bucket_bits: u32,
    filter: SharedSlice<u64>,
    starts: SharedSlice<u32>,
    entries: SharedSlice<u32>,
}

impl Grams {
    /// Files the literals with these numbers, all of them at least `width` bytes long. Those that it does not file,
    /// because too many would share a bucket, are pushed to `crowded`.
    pub fn new(width: usize, numbers: &[u32], texts: &Texts, crowded: &mut Vec<u32>) -> Self {
        let bucket_bits = (2 * numbers.len()).next_power_of_two().ilog2().clamp(3, MAX_BUCKET_BITS);
        let mut entries = filed(width, bucket_bits, numbers, texts);
        let mut keep = vec![];
        for bucket in entries.chunk_by(|a, b| a.0 == b.0) {
            if bucket.len() > MAX_BUCKET {
                crowded.extend(bucket.iter().map(|(_, [_, _, literal])| *literal));
            } else {
                keep.extend_from_slice(bucket);
            }
        }
        entries = keep;
        let mut filter = vec![0u64; (1usize << (bucket_bits + FILTER_PER_BUCKET)).div_ceil(64)];
        let mut starts = Vec::with_capacity((1 << bucket_bits) + 1);
        for (at, (bucket, [gram, ..])) in entries.iter().enumerate() {
            starts.resize(*bucket as usize + 1, at as u32);
            let hash = hash(*gram, bucket_bits);
            filter[hash as usize / 64] |= 1 << (hash % 64);
        }
        starts.resize((1 << bucket_bits) + 1, entries.len() as u32);
        let entries: Vec<u32> = entries.into_iter().flat_map(|(_, entry)| entry).collect();
        Self { width, bucket_bits, filter: filter.into(), starts: starts.into(), entries: entries.into() }
    }

    /// Reports every literal that occurs in `text`, unless it is settled.
    #[inline]
    pub fn each_in(&self, text: &[u8], texts: &Texts, report: &mut impl Report) {
        match self.width {
            1 => self.scan::<1>(text, texts, report),
            2 => self.scan::<2>(text, texts, report),
            3 => self.scan::<3>(text, texts, report),
            _ => self.scan::<4>(text, texts, report),
        }
    }

    fn scan<const WIDTH: usize>(&self, text: &[u8], texts: &Texts, report: &mut impl Report) {
        let filter = &self.filter[..];
        for (at, window) in text.windows(WIDTH).enumerate() {
            let gram = gram::<WIDTH>(window);
            let hash = hash(gram, self.bucket_bits);
            if filter[hash as usize / 64] >> (hash % 64) & 1 == 1 {
                self.compare(gram, hash, text, at, texts, report);
            }
        }
    }

    #[inline(never)]
    fn compare(&self, gram: u32, hash: u32, text: &[u8], at: usize, texts: &Texts, report: &mut impl Report) {
        let bucket = (hash >> FILTER_PER_BUCKET) as usize;
        let run = self.starts[bucket] as usize * ENTRY..self.starts[bucket + 1] as usize * ENTRY;
        for entry in self.entries[run].as_chunks::<ENTRY>().0 {
            let [filed_under, offset, literal] = *entry;
            if filed_under == gram && !report.is_settled(literal) {
                let occurs = at
                    .checked_sub(offset as usize)
                    .is_some_and(|start| text[start..].starts_with(texts.get(literal as usize)));
                if occurs {
                    report.found(literal);
                }
            }
        }
    }

    pub fn heap_bytes(&self) -> usize {
        self.filter.byte_len() + self.starts.byte_len() + self.entries.byte_len()
    }

    pub fn store(&self, out: &mut ArraysWriter) {
        out.put_number(self.width as u32);
        out.put_number(self.bucket_bits);
        out.put_wide(&self.filter);
        out.put(&self.starts);
        out.put(&self.entries);
    }

    /// Reads what [`store`](Self::store) wrote, of this many literals.
    pub fn restore(arrays: &mut ArraysReader, literals: usize) -> Option<Self> {
        let (width, bucket_bits) = (arrays.number()? as usize, arrays.number()?);
        let (filter, starts, entries) = (arrays.take_wide()?, arrays.take()?, arrays.take()?);
        let grams = Self { width, bucket_bits, filter, starts, entries };
        let bits = 3..=MAX_BUCKET_BITS;
        let (entries, rest) = grams.entries.as_chunks::<ENTRY>();
        let is_consistent = (1..=WIDEST).contains(&width)
            && bits.contains(&bucket_bits)
            && grams.filter.len() == (1usize << (bucket_bits + FILTER_PER_BUCKET)).div_ceil(64)
            && are_starts(&grams.starts, 1 << bucket_bits, entries.len())
            && rest.is_empty()
            && entries.iter().all(|[_, _, literal]| (*literal as usize) < literals);
        is_consistent.then_some(grams)
    }
}

/// Hears of literals that occur.
pub(super) trait Report {
    /// Whether it has heard of it before.
    fn is_settled(&self, literal: u32) -> bool;

    fn found(&mut self, literal: u32);
}

/// Chooses for each literal the gram that is rarest among all, and sorts the entries by bucket.
fn filed(width: usize, bucket_bits: u32, numbers: &[u32], texts: &Texts) -> Vec<(u32, [u32; 3])> {
    // By hash: grams that share one are counted together, which only makes the choice a little worse.
    let count_bits = bucket_bits + FILTER_PER_BUCKET;
    let mut counts = vec![0u32; if width < WIDEST { 0 } else { 1 << count_bits }];
    let choices = |literal: u32| {
        let text = texts.get(literal as usize);
        let text = &text[..text.len().min(MAX_CHOICES + width - 1)];
        text.windows(width).map(gram_of).enumerate()
    };
    if width == WIDEST {
        for &literal in numbers {
            for (_, gram) in choices(literal) {
                counts[hash(gram, bucket_bits) as usize] += 1;
            }
        }
    }
    let mut entries: Vec<(u32, [u32; 3])> = numbers
        .iter()
        .map(|&literal| {
            // A literal that is no longer than a gram has no choice.
            let rarity = |gram: u32| counts.get(hash(gram, bucket_bits) as usize).copied().unwrap_or(0);
            let (offset, gram) = choices(literal)
                .min_by_key(|(_, gram)| rarity(*gram))
                .expect("a literal is as long as a gram");
            (hash(gram, bucket_bits) >> FILTER_PER_BUCKET, [gram, offset as u32, literal])
        })
        .collect();
    entries.sort_unstable();
    entries
}

#[inline(always)]
fn gram<const WIDTH: usize>(window: &[u8]) -> u32 {
    let mut bytes = [0; WIDEST];
    bytes[..WIDTH].copy_from_slice(window);
    u32::from_le_bytes(bytes)
}

fn gram_of(window: &[u8]) -> u32 {
    let mut bytes = [0; WIDEST];
    bytes[..window.len()].copy_from_slice(window);
    u32::from_le_bytes(bytes)
}

/// The number of a gram's bit in the filter; its leading bits are the bucket.
#[inline(always)]
fn hash(gram: u32, bucket_bits: u32) -> u32 {
    gram.wrapping_mul(0x9e37_79b1) >> (u32::BITS - bucket_bits - FILTER_PER_BUCKET)
}
