//! Finds the text predicates of one attribute that a text satisfies, all of them together.
//!
//! | shape | found by | cost for a text |
//! |---|---|---|
//! | prefix | sorted prefixes, linked by length (`prefixes`) | one binary search, then the matches |
//! | suffix | the same, on reversed bytes | the same |
//! | whole | the same, of the same length | one binary search |
//! | substring, literals | one of their grams (`grams`), or one automaton (`automaton`) | one pass over the text |
//! | opaque | nothing: always a candidate | the opaque predicates |
//!
//! All shapes but literals are decided here. Literals only say that a predicate *may* be true (a regular expression that
//! needs one of these words), so they find candidates that must still be evaluated. Case-insensitive
//! predicates see the text in lower case, which is computed once (`by_case`).
//!
//! All of it is flat arrays, which a snapshot stores (`arrays`): opening a snapshot builds nothing.
//!
//! Memory: a text takes its bytes and 30 to 60 more. [`TextPredicates::heap_bytes`] returns the sum. Each thread that
//! matches keeps 4 bytes per literal of the largest set it has used, and up to 64 KB for text in lower case.

mod arrays;
mod automaton;
mod by_case;
mod grams;
mod literals;
mod prefixes;
mod texts;

#[cfg(test)]
mod tests;

use std::cell::Cell;

pub use arrays::{ArraysReader, ArraysWriter};
pub use by_case::{Candidate, TextPredicates};
use literals::{Literals, Seen, Target};
use prefixes::Prefixes;

use crate::expr::operators::TextShape;

/// What is known of a predicate whose id is reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    True,
    /// It must still be asked.
    Candidate,
}

/// The text predicates of one attribute that are asked of the same spelling of a text.
#[derive(Debug, Default)]
struct Patterns {
    wholes: Prefixes,
    prefixes: Prefixes,
    /// Of reversed texts.
    suffixes: Prefixes,
    literals: Literals,
    always_true: Vec<u32>,
    always_candidates: Vec<u32>,
}

/// What a thread keeps between queries, so that one costs no allocation.
#[derive(Default)]
struct Scratch {
    seen: Seen,
    reversed: Vec<u8>,
}

thread_local! {
    // Taken out while in use, so that a callback may query another set.
    static SCRATCH: Cell<Scratch> = Cell::default();
}

impl Patterns {
    /// Builds the structure for `shapes`, in which each id occurs once.
    fn new(shapes: impl IntoIterator<Item = (u32, TextShape)>) -> Self {
        let (mut wholes, mut prefixes, mut suffixes, mut literals) = (vec![], vec![], vec![], vec![]);
        let (mut always_true, mut always_candidates) = (vec![], vec![]);
        let mut candidates = 0;
        for (id, shape) in shapes {
            match shape {
                TextShape::Whole(text) => wholes.push((text.into_bytes(), id)),
                TextShape::Prefix(text) => prefixes.push((text.into_bytes(), id)),
                TextShape::Suffix(text) => suffixes.push((reversed(text.into_bytes()), id)),
                // It is at every place of every text.
                TextShape::Substring(text) if text.is_empty() => always_true.push(id),
                TextShape::Substring(text) => literals.push((text.into_bytes(), Target::Decided { id })),
                TextShape::Literals(texts) if texts.iter().any(String::is_empty) => {
                    always_candidates.push(id);
                }
                TextShape::Literals(texts) if texts.is_empty() => {} // true of no text
                TextShape::Literals(texts) => {
                    let target = Target::Candidate { id, number: candidates };
                    candidates += 1;
                    literals.extend(texts.into_iter().map(|text| (text.into_bytes(), target)));
                }
                TextShape::Opaque => always_candidates.push(id),
            }
        }
        Self {
            wholes: Prefixes::new(wholes),
            prefixes: Prefixes::new(prefixes),
            suffixes: Prefixes::new(suffixes),
            literals: Literals::new(literals),
            always_true,
            always_candidates,
        }
    }

    /// Reports every id once if `text` satisfies its predicate or might, and not at all if its predicate is not
    /// true.
    fn satisfied(&self, text: &str, report: &mut impl FnMut(u32, Answer)) {
        let text = text.as_bytes();
        let mut is_true = |id| report(id, Answer::True);
        self.always_true.iter().for_each(|&id| is_true(id));
        if !self.wholes.is_empty() {
            self.wholes.each_equal_to(text, &mut is_true);
        }
        if !self.prefixes.is_empty() {
            self.prefixes.each_prefix_of(text, &mut is_true);
        }
        if !self.suffixes.is_empty() || !self.literals.is_empty() {
            let mut scratch = SCRATCH.take();
            if !self.suffixes.is_empty() {
                let tail = &text[text.len().saturating_sub(self.suffixes.longest())..];
                scratch.reversed.clear();
                scratch.reversed.extend(tail.iter().rev());
                self.suffixes.each_prefix_of(&scratch.reversed, &mut is_true);
            }
            self.literals.each_in(text, &mut scratch.seen, report);
            SCRATCH.set(scratch);
        }
        self.always_candidates.iter().for_each(|&id| report(id, Answer::Candidate));
    }

    /// Whether no predicate is asked.
    fn is_empty(&self) -> bool {
        let all_prefixes = [&self.wholes, &self.prefixes, &self.suffixes];
        all_prefixes.iter().all(|set| set.is_empty())
            && self.literals.is_empty()
            && self.always_true.is_empty()
            && self.always_candidates.is_empty()
    }

    fn heap_bytes(&self) -> usize {
        let ids = self.always_true.capacity() + self.always_candidates.capacity();
        self.wholes.heap_bytes()
            + self.prefixes.heap_bytes()
            + self.suffixes.heap_bytes()
            + self.literals.heap_bytes()
            + ids * size_of::<u32>()
    }

    fn store(&self, out: &mut ArraysWriter) {
        [&self.wholes, &self.prefixes, &self.suffixes].iter().for_each(|set| set.store(out));
        self.literals.store(out);
        out.put(&self.always_true);
        out.put(&self.always_candidates);
    }

    /// Reads what [`store`](Self::store) wrote; ids are below `ids`.
    fn restore(arrays: &mut ArraysReader, ids: u32) -> Option<Self> {
        let mut prefixes = || Prefixes::restore(arrays, ids);
        let (wholes, prefixes, suffixes) = (prefixes()?, prefixes()?, prefixes()?);
        let literals = Literals::restore(arrays, ids)?;
        let (always_true, always_candidates) = (arrays.take()?.to_vec(), arrays.take()?.to_vec());
        let are_ids = always_true.iter().chain(&always_candidates).all(|id| *id < ids);
        are_ids.then_some(Self { wholes, prefixes, suffixes, literals, always_true, always_candidates })
    }
}

fn reversed(mut bytes: Vec<u8>) -> Vec<u8> {
    bytes.reverse();
    bytes
}
