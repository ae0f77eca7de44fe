//! How a rule is decided if its clauses hold and are not all of it.

use super::formula::{Literal, Truth};
use super::rows::{MOST_WORDS, Words};
use crate::event::value::Kind;
use crate::event::{TermId, ValueRef};
use crate::predicate::keys::head;
use crate::predicate::states::{Operands, SCALARS, States, StatesOfKind};

/// A literal with more alternatives than this gets a bit instead.
const MOST_ALTERNATIVES: usize = 8;

pub(super) enum Check {
    /// Of the words of an event.
    Bits(BitCheck),
    /// All of these.
    Values(Vec<ValueCheck>),
}

pub(super) enum BitCheck {
    Bit(u32),
    All(Vec<BitCheck>),
    Any(Vec<BitCheck>),
}

impl BitCheck {
    pub fn holds(&self, words: &Words) -> bool {
        match self {
            BitCheck::Bit(bit) => words[*bit as usize / 64 % MOST_WORDS] >> (bit % 64) & 1 == 1,
            BitCheck::All(checks) => checks.iter().all(|check| check.holds(words)),
            BitCheck::Any(checks) => checks.iter().any(|check| check.holds(words)),
        }
    }
}

pub(super) enum ValueCheck {
    /// A bit of the words of an event.
    Bit(u32),
    Present(u32),
    Absent(u32),
    /// The value of a term is of this kind, and its leading bits lie between these.
    Between(Between),
    /// The value of a term is this text.
    Text(u32, Box<str>),
    Any(Vec<ValueCheck>),
}

pub(super) struct Between {
    term: u32,
    kind: Kind,
    low: u64,
    high: u64,
}

impl ValueCheck {
    #[inline]
    pub fn holds(&self, words: &Words, values: &Values<'_, '_>) -> bool {
        match self {
            ValueCheck::Bit(bit) => BitCheck::Bit(*bit).holds(words),
            ValueCheck::Between(between) => {
                values.get(between.term).is_some_and(|value| between.holds(value))
            }
            ValueCheck::Text(term, text) => {
                matches!(values.get(*term), Some(ValueRef::Str(value)) if *value == **text)
            }
            ValueCheck::Present(term) => values.get(*term).is_some(),
            ValueCheck::Absent(term) => values.get(*term).is_none(),
            ValueCheck::Any(checks) => checks.iter().any(|check| check.holds(words, values)),
        }
    }

    /// Asks for the value instead of a bit; `None` if that would take long.
    pub fn of_value(literal: &Literal, states: &States, term: u32) -> Option<ValueCheck> {
        let Truth::States(truth) = &literal.truth else { return None };
        let mut any = vec![];
        if truth.has(0) {
            any.push(ValueCheck::Absent(term));
        }
        if states.present.is_some_and(|state| truth.has(state)) {
            any.push(ValueCheck::Present(term));
        }
        for (kind, of) in SCALARS.into_iter().zip(&states.kinds) {
            let Some(StatesOfKind { first, operands }) = of else { continue };
            let truth = |states: usize| (*first..first + states as u32).map(|state| truth.has(state));
            match operands {
                Operands::Heads(heads) => {
                    // Integers that have no leading bits of their own must lie outside all operands.
                    if kind == Kind::Number && !are_near(heads) {
                        return None;
                    }
                    let truth: Vec<bool> = truth(2 * heads.len() + 1).collect();
                    let ranges = true_runs(&truth);
                    let ranges =
                        ranges.filter_map(|(from, to)| Some((lowest(from, heads)?, highest(to, heads)?)));
                    any.extend(
                        ranges.map(|(low, high)| ValueCheck::Between(Between { term, kind, low, high })),
                    );
                }
                Operands::Texts(texts) => {
                    let truth = || truth(2 * texts.len() + 1);
                    if truth().step_by(2).any(|holds| holds) {
                        return None;
                    }
                    let equal = texts.iter().zip(truth().skip(1).step_by(2)).filter(|(_, holds)| *holds);
                    any.extend(equal.map(|(text, _)| ValueCheck::Text(term, text.clone())));
                }
            }
        }
        match any.len() {
            0 | 2..=MOST_ALTERNATIVES => Some(ValueCheck::Any(any)),
            1 => any.pop(),
            _ => None,
        }
    }

    fn bytes(&self) -> usize {
        size_of::<Self>()
            + match self {
                ValueCheck::Text(_, text) => text.len(),
                ValueCheck::Any(checks) => checks.iter().map(ValueCheck::bytes).sum(),
                _ => 0,
            }
    }
}

impl Check {
    /// Beside itself.
    pub fn bytes(&self) -> usize {
        match self {
            Check::Bits(_) => 0,
            Check::Values(checks) => checks.iter().map(ValueCheck::bytes).sum(),
        }
    }
}

impl Between {
    #[inline]
    fn holds(&self, value: ValueRef<'_>) -> bool {
        const FAR: i64 = 1 << f64::MANTISSA_DIGITS;
        let head = match value {
            ValueRef::Int(number) => head(ValueRef::Int(number.clamp(-FAR, FAR))),
            value => head(value),
        };
        value.kind() == Some(self.kind) && head.is_some_and(|head| self.low <= head && head <= self.high)
    }
}

/// The least leading bits in this state; `None` if there are none.
fn lowest(state: usize, heads: &[u64]) -> Option<u64> {
    match state {
        0 => Some(0),
        state if state % 2 == 1 => Some(heads[state / 2]),
        state => heads[state / 2 - 1].checked_add(1),
    }
}

/// The greatest leading bits in this state; `None` if there are none.
fn highest(state: usize, heads: &[u64]) -> Option<u64> {
    match heads.get(state / 2) {
        None => Some(u64::MAX),
        Some(head) if state % 2 == 1 => Some(*head),
        Some(head) => head.checked_sub(1),
    }
}

/// The first and the last of each run of states in which it is true.
fn true_runs(truth: &[bool]) -> impl Iterator<Item = (usize, usize)> {
    let runs = truth.chunk_by(|a, b| a == b).scan(0, |start, run| {
        let from = *start;
        *start += run.len();
        Some((run[0], (from, *start - 1)))
    });
    runs.filter(|(holds, _)| *holds).map(|(_, run)| run)
}

/// Whether these leading bits are those of numbers near which all integers are floats.
pub(super) fn are_near(heads: &[u64]) -> bool {
    const FARTHEST: f64 = (1u64 << 52) as f64;
    let (low, high) = ends(heads);
    low > -FARTHEST && high < FARTHEST
}

/// The least and the greatest of some numbers, by their leading bits; zeros if there are none.
pub(super) fn ends(heads: &[u64]) -> (f64, f64) {
    let float = |head: u64| f64::from_bits(if head >> 63 == 1 { head & !(1 << 63) } else { !head });
    heads.first().zip(heads.last()).map_or((0.0, 0.0), |(low, high)| (float(*low), float(*high)))
}

/// The values of an event, by term.
pub(super) struct Values<'a, 'e> {
    pub values: &'a [(TermId, ValueRef<'e>)],
    /// Where the value of each term is, if it is there at all: what other events left is not cleared.
    pub place_of: &'a [u32],
}

impl<'e> Values<'_, 'e> {
    #[inline]
    fn get(&self, term: u32) -> Option<ValueRef<'e>> {
        let place = self.place_of[term as usize] as usize;
        self.values.get(place).filter(|(of, _)| of.0 == term).map(|(_, value)| *value)
    }
}

/// Notes where the value of each of so many terms is.
pub(super) fn note_places(values: &[(TermId, ValueRef<'_>)], terms: usize, place_of: &mut Vec<u32>) {
    if place_of.len() < terms {
        place_of.resize(terms, 0);
    }
    for (place, (term, _)) in (0..).zip(values) {
        match place_of.get_mut(term.0 as usize) {
            Some(place_of) => *place_of = place,
            None => break,
        }
    }
}
