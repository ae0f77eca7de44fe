//! Finds the literals that grams do not distinguish, with one Aho-Corasick automaton, whose time is linear
//! for any text and any literals.
//!
//! An automaton takes a state per byte and, in each state, a list of the literals that end there. Long
//! literals would make it huge (one of a megabyte among many short ones takes gigabytes), so it holds the
//! *head* of each literal, its first 64 bytes. Where a head is found, the longer literals are compared with the
//! text that follows.
//!
//! ```text
//!   literals          heads in the automaton      at the end of an occurrence
//!   "tamis"           "tamis"                     literal found
//!   64 bytes + "x"    the 64 bytes                which long literals are prefixes of the text from here?
//! ```

use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind, StartKind};

use super::prefixes::Prefixes;

/// Few literals are longer, and it bounds the automaton: 64 states per literal, 64 literals per state.
const HEAD_BYTES: usize = 64;

/// A deterministic automaton of this size still fits the cache of one core.
const MAX_TABLE_BYTES: usize = 2 << 20;

/// The head is only the start of literals, none of which it is itself.
const NO_LITERAL: u32 = u32::MAX;

/// A set of literals, each with its number.
#[derive(Debug)]
pub(super) struct Automaton {
    automaton: AhoCorasick,
    /// For each pattern of the automaton, the literal that it is.
    heads: Vec<u32>,
    /// The literals that are longer than their head, owned by their numbers.
    long: Prefixes,
}

impl Automaton {
    /// Of different literals, sorted, none of them empty.
    pub fn new<'t>(literals: impl IntoIterator<Item = (&'t [u8], u32)>) -> Self {
        let (mut patterns, mut heads, mut long): (Vec<&[u8]>, _, _) = (vec![], vec![], vec![]);
        for (text, literal) in literals {
            let head = &text[..text.len().min(HEAD_BYTES)];
            // Sorted: those with the same head are neighbours, and the one that is the head comes first.
            if patterns.last() != Some(&head) {
                patterns.push(head);
                heads.push(if head == text { literal } else { NO_LITERAL });
            }
            if head != text {
                long.push((text.to_vec(), literal));
            }
        }
        Self { automaton: automaton_of(&patterns), heads, long: Prefixes::new(long) }
    }

    /// Reports every literal that occurs in `text`, once for each occurrence.
    pub fn each_in(&self, text: &[u8], found: &mut impl FnMut(u32)) {
        for occurrence in self.automaton.find_overlapping_iter(text) {
            let literal = self.heads[occurrence.pattern()];
            if literal != NO_LITERAL {
                found(literal);
            }
            if occurrence.len() == HEAD_BYTES {
                self.long.each_prefix_of(&text[occurrence.start()..], found);
            }
        }
    }

    pub fn heap_bytes(&self) -> usize {
        self.automaton.memory_usage() + self.long.heap_bytes() + self.heads.capacity() * size_of::<u32>()
    }
}

fn automaton_of(patterns: &[&[u8]]) -> AhoCorasick {
    // Deterministic where that is small: one step per byte. Elsewhere the library's choice, which is compact
    // and, where both are larger than the cache, no slower.
    let deterministic = table_bytes(patterns) <= MAX_TABLE_BYTES;
    AhoCorasick::builder()
        .match_kind(MatchKind::Standard) // the one kind that can report overlapping occurrences
        .start_kind(StartKind::Unanchored)
        .kind(deterministic.then_some(AhoCorasickKind::DFA))
        .build(patterns)
        .expect("the limit of 2^31 states is beyond the literals that fit in memory")
}

/// About the size of a deterministic automaton: for each byte of the patterns, a state with a number for each
/// different byte.
fn table_bytes(patterns: &[&[u8]]) -> usize {
    let mut occurs = [false; 256];
    patterns.iter().copied().flatten().for_each(|&byte| occurs[byte as usize] = true);
    let classes = 1 + occurs.iter().filter(|&&occurs| occurs).count();
    let states: usize = patterns.iter().map(|pattern| pattern.len()).sum();
    states * classes.next_power_of_two() * size_of::<u32>()
}
