//! All stored literals that occur in a text, by one Aho-Corasick automaton.
//!
//! An automaton takes a state per byte and, in each state, a list of the literals that end there. Long
//! literals would make it huge (one of a megabyte among many short ones takes gigabytes), so it holds the
//! *head* of each literal, its first 64 bytes. A literal that is longer is looked for where its head was
//! found, among the long ones that the text continues with.
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

/// What an occurrence of a literal means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Target {
    /// The predicate `id` is true.
    Decided { id: u32 },
    /// The predicate `id` may be true. All its literals bear its `number`; numbers count from 0.
    Candidate { id: u32, number: u32 },
}

/// A set of literals, each with its targets.
#[derive(Debug, Default)]
pub(super) struct Literals {
    /// `None` if there are no literals.
    automaton: Option<AhoCorasick>,
    /// For each pattern of the automaton, the literal that it is.
    heads: Vec<u32>,
    /// The literals that are longer than their head, owned by their numbers.
    long: Prefixes,
    /// The targets of literal i are `targets[target_starts[i]..target_starts[i + 1]]`.
    targets: Vec<Target>,
    target_starts: Vec<u32>,
}

impl Literals {
    /// The set of `entries`, whose literals are not empty.
    pub fn new(mut entries: Vec<(Vec<u8>, Target)>) -> Self {
        if entries.is_empty() {
            return Self::default();
        }
        entries.sort_unstable();
        let mut set = Self::default();
        let mut patterns: Vec<&[u8]> = vec![];
        let mut long = vec![];
        for (literal, same) in entries.chunk_by(|a, b| a.0 == b.0).enumerate() {
            let literal = literal as u32;
            set.target_starts.push(set.targets.len() as u32);
            set.targets.extend(same.iter().map(|&(_, target)| target));
            let text = same[0].0.as_slice();
            let head = &text[..text.len().min(HEAD_BYTES)];
            // Sorted: those with the same head are neighbours, and the one that is the head comes first.
            if patterns.last() != Some(&head) {
                patterns.push(head);
                set.heads.push(if head == text { literal } else { NO_LITERAL });
            }
            if head != text {
                long.push((text.to_vec(), literal));
            }
        }
        set.target_starts.push(set.targets.len() as u32);
        set.long = Prefixes::new(long);
        set.automaton = Some(automaton_of(&patterns));
        set
    }

    /// Reports the targets of every literal that occurs in `text`, each id once.
    pub fn each_in(
        &self,
        text: &[u8],
        seen: &mut Seen,
        on_true: &mut impl FnMut(u32),
        on_candidate: &mut impl FnMut(u32),
    ) {
        let Some(automaton) = &self.automaton else { return };
        let literal_count = self.target_starts.len() as u32 - 1;
        seen.clear();
        let mut found = |literal: u32| {
            if !seen.insert(literal) {
                return;
            }
            let place = literal as usize;
            let targets = self.target_starts[place] as usize..self.target_starts[place + 1] as usize;
            for target in &self.targets[targets] {
                match *target {
                    Target::Decided { id } => on_true(id),
                    Target::Candidate { id, number } => {
                        if seen.insert(literal_count + number) {
                            on_candidate(id);
                        }
                    }
                }
            }
        };
        for occurrence in automaton.find_overlapping_iter(text) {
            let literal = self.heads[occurrence.pattern()];
            if literal != NO_LITERAL {
                found(literal);
            }
            if occurrence.len() == HEAD_BYTES {
                self.long.each_prefix_of(&text[occurrence.start()..], &mut found);
            }
        }
    }

    pub fn heap_bytes(&self) -> usize {
        self.automaton.as_ref().map_or(0, AhoCorasick::memory_usage)
            + self.long.heap_bytes()
            + self.targets.capacity() * size_of::<Target>()
            + (self.heads.capacity() + self.target_starts.capacity()) * size_of::<u32>()
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

/// A set of small numbers that is emptied in no time: a number is in it if it bears the current stamp.
#[derive(Debug, Default)]
pub(super) struct Seen {
    stamps: Vec<u32>,
    current: u32,
}

impl Seen {
    fn clear(&mut self) {
        self.current = self.current.wrapping_add(1);
        if self.current == 0 {
            self.stamps.fill(0);
            self.current = 1;
        }
    }

    /// Whether `number` is new.
    fn insert(&mut self, number: u32) -> bool {
        let number = number as usize;
        if number >= self.stamps.len() {
            self.stamps.resize(number + 1, 0);
        }
        std::mem::replace(&mut self.stamps[number], self.current) != self.current
    }
}
