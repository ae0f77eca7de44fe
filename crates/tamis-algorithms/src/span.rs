//! Intervals of one attribute, as the trees see them: values have positions on one line, and a predicate is
//! mapped to the interval of all values that can satisfy it (γ of the paper).
//!
//! A position is a 64-bit integer that sorts like the value: the bits of the nearest double. Values of
//! different kinds share the line, and texts contribute only their first six bytes: positions rule candidates
//! out, but never prove a match.

use tamis_core::event::{Value, ValueRef};
use tamis_core::expr::{Atom, Bound, Literal, Shape};
use tamis_core::predicate::{KEY_BITS, ordered_key};

/// A closed interval of positions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Span {
    pub low: u64,
    pub high: u64,
}

impl Span {
    pub const WHOLE: Span = Span { low: 0, high: u64::MAX };

    pub fn is_point(self) -> bool {
        self.low == self.high
    }

    pub fn overlaps(self, other: Span) -> bool {
        self.low <= other.high && other.low <= self.high
    }

    pub fn encloses(self, other: Span) -> bool {
        self.low <= other.low && other.high <= self.high
    }

    /// The smallest span that encloses both.
    pub fn hull(self, other: Span) -> Span {
        Span { low: self.low.min(other.low), high: self.high.max(other.high) }
    }

    /// The intersection of both.
    pub fn common(self, other: Span) -> Option<Span> {
        let common = Span { low: self.low.max(other.low), high: self.high.min(other.high) };
        (common.low <= common.high).then_some(common)
    }

    /// Where the value of an event lies. Arrays and records have no position: they may satisfy anything.
    pub fn of_value(value: ValueRef<'_>) -> Span {
        match value {
            ValueRef::Interval((low, high)) => match (position(low.as_ref()), position(high.as_ref())) {
                (Some(low), Some(high)) => Span { low, high },
                _ => Span::WHOLE,
            },
            ValueRef::Set(set) => {
                let end = |value: Option<&Value>| value.and_then(|value| position(value.as_ref()));
                let (low, high) = set.hull();
                Span { low: end(low).unwrap_or(u64::MIN), high: end(high).unwrap_or(u64::MAX) }
            }
            value => position(value).map_or(Span::WHOLE, |at| Span { low: at, high: at }),
        }
    }

    /// The values that can make a literal true (Table I).
    pub fn of_literal(literal: Literal, atom: &Atom) -> Span {
        let operator = match literal.is_negated() {
            false => Some(atom.operator),
            true => atom.operator.rules().complement(),
        };
        let shape = operator.map(|operator| operator.rules().shape(&atom.operands));
        let between = |low: Option<u64>, high: Option<u64>| Span {
            low: low.unwrap_or(u64::MIN),
            high: high.unwrap_or(u64::MAX),
        };
        match shape {
            Some(Shape::Points([first @ .., last])) => {
                let first = first.first().unwrap_or(last);
                between(position(first.as_ref()), position(last.as_ref()))
            }
            Some(Shape::Range { low, high }) => {
                let end = |bound: Option<Bound<'_>>| bound.and_then(|bound| position(bound.value));
                between(end(low), end(high))
            }
            Some(Shape::Prefix(text)) => {
                between(Some(text_position(text, 0)), Some(text_position(text, 255)))
            }
            _ => Span::WHOLE,
        }
    }
    /// Whether a number that is its own position satisfies the literal exactly if it lies in its span.
    pub fn decides(literal: Literal, atom: &Atom) -> bool {
        if literal.is_negated() {
            return false;
        }
        match atom.operator.rules().shape(&atom.operands) {
            Shape::Points([only]) => is_exact_number(only.as_ref()),
            Shape::Range { low, high } => {
                let is_exact = |bound: Bound<'_>| bound.inclusive && is_exact_number(bound.value);
                low.is_none_or(is_exact) && high.is_none_or(is_exact)
            }
            _ => false,
        }
    }
}

/// Whether the position of a value stands for this number alone.
pub fn is_exact_number(value: ValueRef<'_>) -> bool {
    match value {
        ValueRef::Int(number) => number.unsigned_abs() <= 1 << 53,
        ValueRef::Float(number) => number.is_finite() && number.abs() <= (1u64 << 53) as f64,
        _ => false,
    }
}

/// The place of a scalar on the line.
fn position(value: ValueRef<'_>) -> Option<u64> {
    let number = match value {
        ValueRef::Str(text) => return Some(text_position(text, 0)),
        ValueRef::Bool(b) => Value::Int(b as i64),
        ValueRef::Timestamp(t) => Value::Int(t),
        ValueRef::Int(i) => Value::Int(i),
        ValueRef::Float(_) | ValueRef::Decimal(_) => return nearest_double(value),
        _ => return None,
    };
    nearest_double(number.as_ref())
}

/// The prefix of the key of a number.
fn nearest_double(number: ValueRef<'_>) -> Option<u64> {
    ordered_key(number).map(|key| (key >> (KEY_BITS - u64::BITS)) as u64)
}

/// The first six bytes of a text as a number; `fill` stands where there are fewer.
fn text_position(text: &str, fill: u8) -> u64 {
    let byte = |at: usize| text.as_bytes().get(at).copied().unwrap_or(fill) as i64;
    let number = (0..6).fold(0, |number, at| number << 8 | byte(at));
    position(ValueRef::Int(number)).expect("numbers have positions")
}

/// The double at a position; what is beyond the doubles is infinite.
pub fn number_at(position: u64) -> f64 {
    let is_positive = position >> 63 == 1;
    let number = f64::from_bits(if is_positive { position & !(1 << 63) } else { !position });
    match (number.is_nan(), is_positive) {
        (false, _) => number,
        (true, true) => f64::INFINITY,
        (true, false) => f64::NEG_INFINITY,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use tamis_core::event::TermId;
    use tamis_core::expr::Operator;
    use tamis_core::expr::testing::{any_event, any_interval_event, any_predicate};

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]
        #[test]
        fn a_value_that_satisfies_a_literal_lies_in_its_span(
            predicate in any_predicate(), event in prop_oneof![any_event(), any_interval_event()]
        ) {
            let atom =
                Atom { attribute: TermId(0), operator: predicate.operator, operands: predicate.operands.clone() };
            for negated in [false, true] {
                let literal = Literal::new(0, negated);
                for value in event.values() {
                    if literal.holds(atom.outcome(Some(value.as_ref()))) {
                        let (span, at) = (Span::of_literal(literal, &atom), Span::of_value(value.as_ref()));
                        prop_assert!(span.overlaps(at), "{:?} {:?}: {:?} and {:?}", atom, value, span, at);
                    }
                }
            }
        }

        #[test]
        fn spans_decide_where_they_say_so(
            predicate in any_predicate(), event in any_event(), numbers in prop::array::uniform3(-3i64..9)
        ) {
            let operands = match predicate.operator {
                Operator::BETWEEN => vec![Value::Int(numbers[0]), Value::Float(numbers[1] as f64)],
                _ => predicate.operands.to_vec(),
            };
            let atom = Atom { attribute: TermId(0), operator: predicate.operator, operands: operands.into() };
            let literal = Literal::new(0, false);
            let number = [Value::Int(numbers[2]), Value::Float(-0.0)];
            for value in event.values().chain(&number) {
                if is_exact_number(value.as_ref()) && Span::decides(literal, &atom) {
                    let is_within = Span::of_literal(literal, &atom).encloses(Span::of_value(value.as_ref()));
                    let is_true = literal.holds(atom.outcome(Some(value.as_ref())));
                    prop_assert_eq!(is_within, is_true, "{:?} {:?}", atom, value);
                }
            }
        }

        #[test]
        fn positions_sort_like_numbers_and_lead_back(a in any::<f64>(), b in any::<f64>(), i in any::<i64>()) {
            let at = |x: f64| position(ValueRef::Float(x)).unwrap();
            prop_assert_eq!(a < b, at(a) < at(b));
            prop_assert_eq!(number_at(at(a)), a);
            prop_assert_eq!(number_at(position(ValueRef::Int(i)).unwrap()), i as f64);
        }
    }

    #[test]
    fn texts_sort_by_their_beginning() {
        let at = |text: &str| text_position(text, 0);
        assert!(at("") < at("a") && at("a") < at("ab") && at("ab") < at("b"));
        assert_eq!(at("abcdef"), at("abcdefgh"));
        assert!(text_position("ab", 255) > at("abzz") && text_position("ab", 255) < at("ac"));
    }
}
