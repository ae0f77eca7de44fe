//! Which text predicates of one attribute does a text satisfy? All of them are asked together.
//!
//! | shape | found by | cost for a text |
//! |---|---|---|
//! | prefix | sorted prefixes, linked by length (`prefixes`) | one binary search, then the matches |
//! | suffix | the same, on reversed bytes | the same |
//! | substring, literals | one automaton for all (`literals`) | one pass over the text, its occurrences |
//! | opaque | nothing: always a candidate | the opaque predicates |
//!
//! Prefixes, suffixes and substrings are decided here. Literals only say that a predicate *may* be true (a
//! regular expression that needs one of these words to occur), so what they find are candidates that must
//! still be asked.
//!
//! Memory: a prefix or suffix takes its bytes and 30 to 60 more. A substring or literal takes the automaton's
//! states, at most one per byte and at most 64 in all, about 10 to 20 bytes each, and about 20 bytes more;
//! small sets take up to 2 MiB together for a faster automaton. [`Patterns::heap_bytes`] has the sum. A
//! thread that asks keeps 4 bytes per literal of the largest set it has asked.

mod literals;
mod prefixes;

#[cfg(test)]
mod tests;

use std::cell::Cell;

use literals::{Literals, Seen, Target};
use prefixes::Prefixes;

/// What a predicate asks of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TextShape {
    /// True exactly for texts that start with this.
    Prefix(String),
    /// True exactly for texts that end with this.
    Suffix(String),
    /// True exactly for texts that contain this.
    Substring(String),
    /// True at most for texts that contain one of these.
    Literals(Vec<String>),
    /// Nothing is known.
    Opaque,
}

/// The text predicates of one attribute.
///
/// ```
/// use tamis_core::predicate::patterns::{Patterns, TextShape};
///
/// let patterns = Patterns::new([
///     (1, TextShape::Prefix("http".into())),
///     (2, TextShape::Substring("tamis".into())),
///     (3, TextShape::Literals(vec!["org".into(), "com".into()])),
///     (4, TextShape::Suffix(".net".into())),
/// ]);
/// let (mut satisfied, mut candidates) = (vec![], vec![]);
/// patterns.satisfied("http://tamis.org", &mut |id| satisfied.push(id), &mut |id| candidates.push(id));
/// assert_eq!((satisfied, candidates), (vec![1, 2], vec![3]));
/// ```
#[derive(Debug, Default)]
pub struct Patterns {
    prefixes: Prefixes,
    /// Of reversed texts.
    suffixes: Prefixes,
    literals: Literals,
    always_true: Vec<u32>,
    always_candidates: Vec<u32>,
}

/// What a thread keeps between questions, so that one costs no allocation.
#[derive(Default)]
struct Scratch {
    seen: Seen,
    reversed: Vec<u8>,
}

thread_local! {
    // Taken out while in use, so that a callback may ask another question.
    static SCRATCH: Cell<Scratch> = Cell::default();
}

impl Patterns {
    /// Builds the structure for `shapes`, in which each id occurs once.
    pub fn new(shapes: impl IntoIterator<Item = (u32, TextShape)>) -> Self {
        let mut patterns = Self::default();
        let (mut prefixes, mut suffixes, mut literals) = (vec![], vec![], vec![]);
        let mut candidates = 0;
        for (id, shape) in shapes {
            match shape {
                TextShape::Prefix(text) => prefixes.push((text.into_bytes(), id)),
                TextShape::Suffix(text) => suffixes.push((reversed(text.into_bytes()), id)),
                // An automaton would find the empty text at every place.
                TextShape::Substring(text) if text.is_empty() => patterns.always_true.push(id),
                TextShape::Substring(text) => literals.push((text.into_bytes(), Target::Decided { id })),
                TextShape::Literals(texts) if texts.iter().any(String::is_empty) => {
                    patterns.always_candidates.push(id);
                }
                TextShape::Literals(texts) => {
                    let target = Target::Candidate { id, number: candidates };
                    candidates += 1;
                    literals.extend(texts.into_iter().map(|text| (text.into_bytes(), target)));
                }
                TextShape::Opaque => patterns.always_candidates.push(id),
            }
        }
        patterns.prefixes = Prefixes::new(prefixes);
        patterns.suffixes = Prefixes::new(suffixes);
        patterns.literals = Literals::new(literals);
        patterns
    }

    /// Reports every id once: to `on_true` if `text` satisfies its predicate, to `on_candidate` if its
    /// predicate must still be asked, and not at all if its predicate is not true.
    pub fn satisfied(&self, text: &str, on_true: &mut impl FnMut(u32), on_candidate: &mut impl FnMut(u32)) {
        let text = text.as_bytes();
        let mut scratch = SCRATCH.take();
        self.always_true.iter().for_each(|&id| on_true(id));
        self.prefixes.each_prefix_of(text, on_true);
        if !self.suffixes.is_empty() {
            let tail = &text[text.len().saturating_sub(self.suffixes.longest())..];
            scratch.reversed.clear();
            scratch.reversed.extend(tail.iter().rev());
            self.suffixes.each_prefix_of(&scratch.reversed, on_true);
        }
        self.literals.each_in(text, &mut scratch.seen, on_true, on_candidate);
        self.always_candidates.iter().for_each(|&id| on_candidate(id));
        SCRATCH.set(scratch);
    }

    /// How many bytes the structure takes on the heap.
    pub fn heap_bytes(&self) -> usize {
        let ids = self.always_true.capacity() + self.always_candidates.capacity();
        self.prefixes.heap_bytes()
            + self.suffixes.heap_bytes()
            + self.literals.heap_bytes()
            + ids * size_of::<u32>()
    }
}

fn reversed(mut bytes: Vec<u8>) -> Vec<u8> {
    bytes.reverse();
    bytes
}
