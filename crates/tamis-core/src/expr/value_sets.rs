//! Sets of values that are given by a predicate, and the truth of other predicates for them.
//!
//! See [`ValueSet`], which holds such a set and knows nothing about operators.

use super::operators::{Bound, Operator, Shape};
use super::{Expr, Outcome, Predicate, parse};
use crate::error::ExpressionError;
use crate::value::set::{End, Piece, ValueSet, gaps};
use crate::value::{Value, ValueRef};

/// The name that stands for the value in the text of a set.
const NAME: &str = "value";

impl Value {
    /// The set that a text such as `> 15` or `NOT IN (1, 5)` gives: a predicate without its attribute.
    pub fn satisfying_text(text: &str) -> Result<Value, ExpressionError> {
        // A name on its own is a predicate, too.
        let alone = parse(NAME);
        match parse(&format!("{NAME} {text}")) {
            Ok(Expr::Predicate(predicate))
                if predicate.term == NAME.into()
                    && predicate.weight.is_none()
                    && alone.as_ref() != Ok(&Expr::Predicate(predicate.clone())) =>
            {
                Value::satisfying(predicate.operator, &predicate.operands, predicate.negated)
                    .map_err(ExpressionError::new)
            }
            Ok(_) => Err(ExpressionError::new(format!(
                "{text:?} is not one predicate without its attribute, such as \"> 15\""
            ))),
            Err(error) => Err(without_the_name(text, error)),
        }
    }

    /// The values that satisfy an operator or, negated, make it false: a plain value or an interval where that
    /// is what they are. An error says in one sentence why there is no such set.
    pub fn satisfying(operator: Operator, operands: &[Value], negated: bool) -> Result<Value, String> {
        if operator == Operator::IS_TRUE
            && !negated
            && let Some(inner) = operator.tested(operands)
        {
            return Value::satisfying(inner.operator, inner.operands, inner.negated);
        }
        let rules = operator.rules();
        let (operator, negated) = match rules.complement() {
            Some(complement) if negated => (complement, false),
            _ => (operator, negated),
        };
        let rules = operator.rules();
        if negated && !rules.is_two_valued(operands) {
            return Err("no value satisfies it: with NULL in the set, NOT IN is never true".into());
        }
        let point = |value: &Value| Piece {
            low: Some(End { value: value.clone(), inclusive: true }),
            high: Some(End { value: value.clone(), inclusive: true }),
        };
        let pieces: Vec<Piece> = match rules.shape(operands) {
            Shape::Points(points) if operator != Operator::IS_TRUE => points.iter().map(point).collect(),
            Shape::Range { low, high } if operator != Operator::IS_TRUE => {
                let end =
                    |bound: Bound<'_>| End { value: bound.value.to_owned(), inclusive: bound.inclusive };
                vec![Piece { low: low.map(end), high: high.map(end) }]
            }
            Shape::Never if !negated => return Err("no value satisfies it".into()),
            _ => {
                let name = rules.name();
                return Err(format!(
                    "{name} does not give a value: use =, !=, <, <=, >, >=, IN, NOT IN, BETWEEN or NOT BETWEEN"
                ));
            }
        };
        let pieces = if negated { gaps(pieces) } else { pieces };
        let written = || without_attribute(operator, operands, negated);
        ValueSet::of(pieces, written).ok_or_else(|| "no value satisfies it".into())
    }
}

/// The error of `value {text}` as one of the text alone, which is what the caller wrote.
fn without_the_name(text: &str, mut error: ExpressionError) -> ExpressionError {
    error.message =
        format!("{text:?} is not a predicate without its attribute, such as \"> 15\": {}", error.message);
    if let Ok(Expr::Predicate(Predicate { term, .. })) = parse(text) {
        error.hint = Some(format!("leave out {term}: the event says which attribute it is"));
    } else if parse(&format!("{NAME} = {text}")).is_ok() {
        error.hint = Some(format!("write \"= {text}\", or the value itself instead of a set"));
    }
    if let Some(place) = error.place.as_mut().filter(|place| place.line == 1) {
        let added = NAME.len() + 1;
        place.column = place.column.saturating_sub(added as u32).max(1);
        // Under the place there are at least as many blanks as there are characters before it.
        let cut = |line: &str| line.get(added..).unwrap_or("^").to_owned();
        error.snippet = error.snippet.map(|snippet| match snippet.starts_with(NAME) {
            true => snippet.lines().map(cut).collect::<Vec<_>>().join("\n"),
            false => snippet,
        });
    }
    error
}

/// A predicate without its attribute, as [`Value::satisfying_text`] reads it.
fn without_attribute(operator: Operator, operands: &[Value], negated: bool) -> String {
    let written = Expr::Predicate(Predicate {
        term: NAME.into(),
        operator,
        negated,
        operands: operands.into(),
        weight: None,
    })
    .to_string();
    written.strip_prefix(NAME).unwrap_or(&written).trim_start().to_owned()
}

impl ValueSet {
    /// What an operator can be for the values in the set.
    pub fn outcome(&self, operator: Operator, operands: &[Value]) -> Outcome {
        let outcomes = self.pieces().iter().map(|piece| outcome_of(piece, operator, operands));
        outcomes.fold(Outcome::UNDEFINED, |a, b| Outcome {
            can_be_true: a.can_be_true || b.can_be_true,
            can_be_false: a.can_be_false || b.can_be_false,
        })
    }
}

fn outcome_of(piece: &Piece, operator: Operator, operands: &[Value]) -> Outcome {
    let rules = operator.rules();
    if let Some((low, high)) = piece.closed() {
        return rules.evaluate(Some(ValueRef::Interval(&(low.clone(), high.clone()))), operands);
    }
    let end = piece.low.as_ref().or(piece.high.as_ref()).expect("a piece has an end");
    let kind = end.value.kind();
    match rules.shape(operands) {
        Shape::Absent => Outcome::FALSE,
        // Whatever the value is, the answer is the same.
        Shape::Never => rules.evaluate(Some(end.value.as_ref()), operands),
        Shape::Points(_) | Shape::Range { .. } if rules.expects(operands) != kind => Outcome::UNDEFINED,
        Shape::Points(points) => Outcome {
            can_be_true: points.iter().any(|point| piece.holds(point.as_ref())),
            // A piece with an open end holds more values than anyone can list.
            can_be_false: rules.is_two_valued(operands),
        },
        Shape::Range { low, high } => {
            let end = |bound: Bound<'_>| End { value: bound.value.to_owned(), inclusive: bound.inclusive };
            let range = Piece { low: low.map(end), high: high.map(end) };
            Outcome {
                can_be_true: piece.common(&range).and_then(Piece::normal).is_some(),
                can_be_false: gaps(vec![range])
                    .iter()
                    .any(|gap| piece.common(gap).and_then(Piece::normal).is_some()),
            }
        }
        _ => Outcome::UNDEFINED,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::expr::testing::{any_event, any_predicate};
    use crate::expr::truth_test::test_of;

    fn set_of(text: &str) -> Result<Value, String> {
        let Expr::Predicate(predicate) = parse(text).unwrap() else { panic!("{text} is no predicate") };
        Value::satisfying(predicate.operator, &predicate.operands, predicate.negated)
    }

    fn outcome(event: &str, subscription: &str) -> Outcome {
        let Expr::Predicate(predicate) = parse(subscription).unwrap() else { panic!("{subscription}") };
        predicate.outcome(Some(set_of(event).unwrap().as_ref()))
    }

    #[test]
    fn a_predicate_is_satisfied_if_some_value_satisfies_both() {
        for (event, subscription, expected) in [
            ("x > 15", "x <= 15", Outcome::FALSE),
            ("x > 15", "x < 15.5", Outcome::EITHER),
            ("x > 15", "x > 15", Outcome::TRUE),
            ("x >= 15", "x > 15", Outcome::EITHER),
            ("x > 15", "x != 15", Outcome::TRUE),
            ("x != 3", "x = 3", Outcome::FALSE),
            ("x != 3", "x BETWEEN 3 AND 3", Outcome::FALSE),
            ("x != 3", "x IN (3, 4)", Outcome::EITHER),
            ("x IN (1, 5)", "x BETWEEN 2 AND 4", Outcome::FALSE),
            ("x IN (1, 5)", "x < 7", Outcome::TRUE),
            ("x NOT IN (1, 5)", "x NOT IN (1, 5)", Outcome::TRUE),
            ("x NOT BETWEEN 1 AND 5", "x IN (1, 3, 5)", Outcome::FALSE),
            ("x NOT BETWEEN 1 AND 5", "x > 5", Outcome::EITHER),
            ("x < 3", "x = 'a'", Outcome::UNDEFINED),
            ("x < 3", "x LIKE 'a%'", Outcome::UNDEFINED),
            ("x < 3", "x IS NULL", Outcome::FALSE),
            ("x < 3", "x IN (1, NULL)", Outcome::TRUE),
            ("x > 'a'", "x < 'a\u{0}'", Outcome::FALSE),
            ("x < 'b'", "x > 'a'", Outcome::EITHER),
            ("x > TIMESTAMP '2026-01-01 00:00:00'", "x = TIMESTAMP '2026-01-01 00:00:00'", Outcome::FALSE),
        ] {
            assert_eq!(outcome(event, subscription), expected, "{event}: {subscription}");
        }
    }

    #[test]
    fn texts_lead_back() {
        for text in ["> 15", "!= 'a'", "NOT IN (1, 5)", "IN ('a', 'b')", "NOT BETWEEN 2 AND 3.5"] {
            let Ok(Value::Set(set)) = Value::satisfying_text(text) else { panic!("{text}") };
            assert_eq!(set.text(), text);
        }
        for wrong in ["> 15 AND value < 3", "AND x = 1", "", "> "] {
            let error = Value::satisfying_text(wrong).unwrap_err();
            assert!(error.message.contains("predicate without its attribute"), "{error}");
        }
    }

    #[test]
    fn errors_point_into_the_text_as_it_was_written() {
        for (wrong, column, snippet) in [
            ("visits > 5", 1, "visits > 5\n^"),
            ("> 5 5", 5, "> 5 5\n    ^"),
            ("IN (1,", 7, "IN (1,\n      ^"),
        ] {
            let error = Value::satisfying_text(wrong).unwrap_err();
            assert_eq!(error.place.map(|place| (place.line, place.column)), Some((1, column)), "{error}");
            assert_eq!(error.snippet.as_deref(), Some(snippet), "{error}");
        }
        let below = Value::satisfying_text("IN (1,\n2 3)").unwrap_err();
        assert_eq!(below.place.map(|place| (place.line, place.column)), Some((2, 3)), "{below}");
        assert_eq!(below.snippet.as_deref(), Some("2 3)\n  ^"), "{below}");
        let long = Value::satisfying_text(&format!("IN ({} x)", "1, ".repeat(200))).unwrap_err();
        assert_eq!(long.place.map(|place| place.column), Some(606), "{long}");
        let hint = Value::satisfying_text("visits > 5").unwrap_err().hint;
        assert_eq!(hint.as_deref(), Some("leave out visits: the event says which attribute it is"));
    }

    #[test]
    fn plain_sets_are_plain_values() {
        assert_eq!(set_of("x = 3"), Ok(Value::Int(3)));
        assert_eq!(set_of("x != TRUE"), Ok(Value::Bool(false)));
        assert_eq!(set_of("x BETWEEN 1 AND 2"), Value::interval(Value::Int(1), Value::Int(2)));
        assert!(set_of("x BETWEEN 2 AND 1").unwrap_err().contains("no value"));
        assert!(set_of("x IS NOT NULL").unwrap_err().contains("does not give a value"));
        assert!(set_of("x NOT IN (1, NULL)").unwrap_err().contains("never true"));
        assert!(set_of("x < ''").is_err());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(3000))]
        #[test]
        fn values_of_the_set_are_answered_for(
            given in any_predicate(), asked in any_predicate(), events in prop::collection::vec(any_event(), 1..6)
        ) {
            if let Ok(set) = Value::satisfying(given.operator, &given.operands, given.negated) {
                let bits = asked.outcome(Some(set.as_ref()));
                // Tests of what is undefined for every set say so.
                let looked_at = test_of(&asked).map_or(asked.clone(), |(looked_at, _)| looked_at);
                let is_pattern = looked_at.outcome(Some(set.as_ref())) == Outcome::UNDEFINED;
                for value in events.iter().flat_map(|event| event.values()) {
                    let is_in_set = given.outcome(Some(value.as_ref())) == Outcome::TRUE;
                    if is_in_set && !is_pattern {
                        let one = asked.outcome(Some(value.as_ref()));
                        prop_assert!(bits.can_be_true || !one.can_be_true, "{given:?} {asked:?} {value:?}");
                        prop_assert!(bits.can_be_false || !one.can_be_false, "{given:?} {asked:?} {value:?}");
                    }
                }
            }
        }
    }
}
