//! Unexpected values in events, each reported once: values of a kind that no predicate on their attribute expects, and
//! unreadable values.
//!
//! Matching counts such values anyway, and reports in a word of bits which attributes have them. The event is
//! inspected again only if a bit is new, so an index that has reported everything pays one comparison.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use rustc_hash::FxHashSet;

use super::work::Work;
use crate::event::EventError;
use crate::event::value::Kind;
use crate::fork::Mutex;

/// A value that is hardly meant.
#[derive(Clone, Debug, PartialEq)]
pub enum Surprise {
    /// No predicate on the attribute expects a value of this kind.
    WrongKind { attribute: String, found: Kind, expected: Vec<Kind>, has_schema: bool },
    /// No value can hold it.
    Unreadable(EventError),
}

impl Surprise {
    fn attribute(&self) -> &str {
        match self {
            Surprise::WrongKind { attribute, .. } => attribute,
            Surprise::Unreadable(error) => error.path.as_deref().unwrap_or_default(),
        }
    }
}

impl fmt::Display for Surprise {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Surprise::Unreadable(error) => {
                let message = format!("{}; the attribute is absent there", error.message);
                EventError { message, ..error.clone() }.fmt(f)
            }
            Surprise::WrongKind { attribute, found, expected, has_schema } => {
                if expected.contains(found) {
                    return write!(f, "attribute `{attribute}` is not a readable document");
                }
                let names: Vec<&str> = expected.iter().map(|kind| kind.with_article()).collect();
                let (expected_names, found_name) = (names.join(" or "), found.with_article());
                write!(
                    f,
                    "attribute `{attribute}` is {found_name} in an event, but predicates compare it with \
                     {expected_names}: they are undefined there\nhint: {}",
                    remedy(attribute, *found, expected, *has_schema)
                )
            }
        }
    }
}

/// What would be right.
fn remedy(attribute: &str, found: Kind, expected: &[Kind], has_schema: bool) -> String {
    let expects = |kind| expected.contains(&kind);
    match found {
        Kind::Str | Kind::Number if expects(Kind::Timestamp) && has_schema => {
            "a timestamp is written 2026-01-31T12:00:00Z, or counted in the unit that the schema declares: timestamp is \
             in seconds, timestamp_ms in milliseconds"
                .into()
        }
        Kind::Str | Kind::Number if expects(Kind::Timestamp) => format!(
            "a schema reads ISO text and epoch numbers as timestamps: declare {{\"{attribute}\": \"timestamp\"}}, or \
             \"timestamp_ms\" for milliseconds"
        ),
        Kind::Str if expects(Kind::Number) => {
            format!("send numbers without quotes, or compare CAST({attribute} AS double)")
        }
        Kind::Number if expects(Kind::Str) => "send text, or write the operands without quotes".into(),
        Kind::Array => format!("look into it with array_contains({attribute}, …) or exists({attribute}, …)"),
        Kind::Record => format!("compare one of its fields, such as {attribute}.name"),
        _ if expects(Kind::Array) => format!("send an array, or compare ANY({attribute})"),
        _ => format!("send {}", expected.first().map_or("a value", |kind| kind.with_article())),
    }
}

/// The unexpected values of one index: those that were reported, and those that wait to be reported.
#[derive(Default)]
pub struct Surprises {
    told_bits: AtomicU64,
    told: Mutex<FxHashSet<String>>,
    waiting: Mutex<Vec<Surprise>>,
    has_waiting: AtomicBool,
}

impl Surprises {
    /// Whether some value is on an attribute that was not told of.
    #[inline]
    pub fn are_new(&self, work: &Work) -> bool {
        work.wrong_terms != 0 && work.wrong_terms & !self.told_bits.load(Ordering::Relaxed) != 0
    }

    /// From now on, these bits are told of.
    pub fn tell_bits(&self, bits: u64) {
        self.told_bits.fetch_or(bits, Ordering::Relaxed);
    }

    /// Keeps a new unexpected value of an attribute until it is reported.
    pub fn add(&self, surprise: Surprise) {
        if self.told.lock().insert(surprise.attribute().into()) {
            self.waiting.lock().push(surprise);
            self.has_waiting.store(true, Ordering::Release);
        }
    }

    /// Whether some wait to be reported.
    #[inline]
    pub fn are_waiting(&self) -> bool {
        self.has_waiting.load(Ordering::Acquire)
    }

    /// Those that were not reported yet.
    pub fn take(&self) -> Vec<Surprise> {
        self.has_waiting.store(false, Ordering::Release);
        std::mem::take(&mut *self.waiting.lock())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::work::bit_of;
    use crate::term::TermId;

    #[test]
    fn each_attribute_is_told_once_and_with_a_remedy() {
        let surprises = Surprises::default();
        let wrong = |attribute: &str, found, expected| Surprise::WrongKind {
            attribute: attribute.into(),
            found,
            expected,
            has_schema: false,
        };
        surprises.add(wrong("ts", Kind::Str, vec![Kind::Timestamp]));
        surprises.add(wrong("ts", Kind::Number, vec![Kind::Timestamp]));
        surprises.add(wrong("age", Kind::Str, vec![Kind::Number]));
        let told: Vec<String> = surprises.take().iter().map(ToString::to_string).collect();
        assert_eq!(told.len(), 2);
        assert!(told[0].contains("`ts` is a string in an event") && told[0].contains("\"timestamp\""));
        assert!(told[1].contains("CAST(age AS double)"), "{}", told[1]);
        assert!(surprises.take().is_empty());
    }

    #[test]
    fn what_was_told_is_not_looked_at_again() {
        let surprises = Surprises::default();
        let work = Work { wrong_terms: bit_of(TermId(3)) | bit_of(TermId(70)), ..Work::default() };
        assert!(surprises.are_new(&work) && !surprises.are_new(&Work::default()));
        surprises.tell_bits(bit_of(TermId(3)));
        assert!(surprises.are_new(&work));
        surprises.tell_bits(work.wrong_terms);
        assert!(!surprises.are_new(&work));
    }
}
