//! Case-sensitive text predicates, and those that see a text in lower case.

use std::cell::Cell;

use super::arrays::{ArraysReader, ArraysWriter};
use super::{Answer, Patterns};
use crate::expr::operators::{Shape, TextShape};

/// The text predicates of one attribute.
///
/// ```
/// use tamis_core::expr::{Shape, TextShape};
/// use tamis_core::predicate::TextPredicates;
///
/// let predicates = TextPredicates::new([
///     (1, Shape::Prefix("http")),
///     (2, Shape::LowerCase(TextShape::Substring("tamis".into()))),
///     (3, Shape::Literals(vec!["org".into(), "com".into()])),
///     (4, Shape::Suffix(".net")),
/// ]);
/// let (mut satisfied, mut candidates) = (vec![], vec![]);
/// predicates.satisfied("http://Tamis.org", &mut |id, candidate| match candidate {
///     None => satisfied.push(id),
///     Some(_) => candidates.push(id),
/// });
/// assert_eq!((satisfied, candidates), (vec![1, 2], vec![3]));
/// ```
#[derive(Debug, Default)]
pub struct TextPredicates {
    as_written: Patterns,
    in_lower_case: Patterns,
}

/// Room for a longer text is not kept for the next.
const MOST_KEPT: usize = 1 << 16;

thread_local! {
    // Taken out while in use, so that a callback may query another set.
    static LOWER_CASE: Cell<String> = const { Cell::new(String::new()) };
}

/// A predicate that might be true of a text must be asked, of the text as it is written or in lower case.
#[derive(Clone, Copy, Debug)]
pub struct Candidate<'t> {
    /// Set if the text in lower case made it a candidate.
    pub lower_case: Option<&'t str>,
}

impl TextPredicates {
    /// Builds the structure for `shapes`, in which each id occurs once and each shape is one of
    /// [texts](Shape::is_of_text).
    pub fn new<'a>(shapes: impl IntoIterator<Item = (u32, Shape<'a>)>) -> Self {
        let (mut as_written, mut in_lower_case) = (vec![], vec![]);
        for (id, shape) in shapes {
            match shape {
                Shape::LowerCase(shape) => in_lower_case.push((id, shape)),
                Shape::Prefix(text) => as_written.push((id, TextShape::Prefix(text.into()))),
                Shape::Suffix(text) => as_written.push((id, TextShape::Suffix(text.into()))),
                Shape::Substring(text) => as_written.push((id, TextShape::Substring(text.into()))),
                Shape::Literals(literals) => as_written.push((id, TextShape::Literals(literals))),
                _ => as_written.push((id, TextShape::Opaque)),
            }
        }
        Self { as_written: Patterns::new(as_written), in_lower_case: Patterns::new(in_lower_case) }
    }

    /// Reports every id once: as it is if `text` satisfies its predicate, as a [`Candidate`] if its predicate must
    /// still be asked, and not at all if its predicate is not true.
    pub fn satisfied(&self, text: &str, report: &mut impl FnMut(u32, Option<Candidate<'_>>)) {
        let as_candidate = |answer: Answer, lower_case| match answer {
            Answer::True => None,
            Answer::Candidate => Some(Candidate { lower_case }),
        };
        if !self.as_written.is_empty() {
            self.as_written.satisfied(text, &mut |id, answer| report(id, as_candidate(answer, None)));
        }
        if !self.in_lower_case.is_empty() {
            let mut room = LOWER_CASE.take();
            let lower_case = lower_case(text, &mut room);
            let mut found = |id, answer| report(id, as_candidate(answer, Some(lower_case)));
            self.in_lower_case.satisfied(lower_case, &mut found);
            if room.capacity() <= MOST_KEPT {
                LOWER_CASE.set(room);
            }
        }
    }

    /// How many bytes the structure takes, on the heap or in a snapshot.
    pub fn heap_bytes(&self) -> usize {
        self.as_written.heap_bytes() + self.in_lower_case.heap_bytes()
    }

    /// Appends its arrays.
    pub fn store(&self, out: &mut ArraysWriter) {
        self.as_written.store(out);
        self.in_lower_case.store(out);
    }

    /// Takes what [`store`](Self::store) appended; `None` if it is something else. Ids are below `ids`.
    pub fn restore(arrays: &mut ArraysReader, ids: u32) -> Option<Self> {
        let mut patterns = || Patterns::restore(arrays, ids);
        Some(Self { as_written: patterns()?, in_lower_case: patterns()? })
    }
}

/// [`str::to_lowercase`] in the memory of another text, faster for the texts that are most frequent.
fn lower_case<'r>(text: &str, room: &'r mut String) -> &'r str {
    if text.is_ascii() {
        room.clear();
        room.push_str(text);
        room.make_ascii_lowercase();
    } else {
        *room = text.to_lowercase();
    }
    room
}
