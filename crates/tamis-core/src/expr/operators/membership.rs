//! `IN (…)`: whether a scalar is one of a set, found by binary search.
//!
//! With NULL in the set, a value that is not a member gives undefined instead of false. The empty set, which
//! SQL does not allow, is false for every present value.

use super::operands::{canonical_set, count_below, holds, is_canonical_set, split_null};
use super::{Rules, Shape, Syntax};
use crate::expr::ast::Outcome;
use crate::value::Kind;
use crate::value::{Value, ValueRef};

pub struct In;

impl Rules for In {
    fn name(&self) -> &'static str {
        "IN"
    }

    fn syntax(&self) -> Syntax {
        Syntax::Keyword("IN")
    }

    fn check(&self, operands: Vec<Value>) -> Result<Vec<Value>, String> {
        canonical_set(self.name(), operands)
    }

    fn is_canonical(&self, operands: &[Value]) -> bool {
        is_canonical_set(operands)
    }

    fn expects(&self, operands: &[Value]) -> Option<Kind> {
        operands.first().and_then(Value::kind)
    }

    fn evaluate(&self, value: Option<ValueRef<'_>>, operands: &[Value]) -> Outcome {
        let Some(value) = value else {
            return Outcome::UNDEFINED;
        };
        let (members, has_null) = split_null(operands);
        if !members.is_empty() && value.kind() != members[0].kind() {
            return Outcome::UNDEFINED;
        }
        match value {
            ValueRef::Interval((low, high)) => {
                let first = count_below(members, low.as_ref(), false);
                let inside = count_below(members, high.as_ref(), true).saturating_sub(first) as u64;
                let all_inside_are_members = count_between(low, high) == Some(inside);
                Outcome { can_be_true: inside > 0, can_be_false: !has_null && !all_inside_are_members }
            }
            point => {
                let found = holds(members, point);
                Outcome { can_be_true: found, can_be_false: !found && !has_null }
            }
        }
    }

    fn shape<'a>(&self, operands: &'a [Value]) -> Shape<'a> {
        match split_null(operands).0 {
            [] => Shape::Never,
            members => Shape::Points(members),
        }
    }

    fn is_two_valued(&self, operands: &[Value]) -> bool {
        !split_null(operands).1
    }
}

/// How many values lie in a closed interval, `None` for infinitely many. Numbers are taken for the
/// real line; between two strings lie infinitely many, unless one is the other followed by NULs.
fn count_between(low: &Value, high: &Value) -> Option<u64> {
    if low.as_ref().compare(high.as_ref())?.is_eq() {
        return Some(1);
    }
    match (low, high) {
        (Value::Bool(_), Value::Bool(_)) => Some(2),
        (Value::Timestamp(low), Value::Timestamp(high)) => high.abs_diff(*low).checked_add(1),
        (Value::Str(low), Value::Str(high)) => {
            let rest = high.strip_prefix(&**low)?;
            rest.bytes().all(|byte| byte == 0).then_some(rest.len() as u64 + 1)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_in(value: &Value, members: Vec<Value>) -> Outcome {
        In.evaluate(Some(value.as_ref()), &In.check(members).unwrap())
    }

    fn ints(members: &[i64]) -> Vec<Value> {
        members.iter().copied().map(Value::Int).collect()
    }

    fn interval(low: Value, high: Value) -> Value {
        Value::Interval(Box::new((low, high)))
    }

    #[test]
    fn null_in_the_set_makes_a_miss_undefined() {
        assert_eq!(is_in(&Value::Int(1), vec![Value::Null, Value::Int(1)]), Outcome::TRUE);
        assert_eq!(is_in(&Value::Int(2), vec![Value::Null, Value::Int(1)]), Outcome::UNDEFINED);
        assert_eq!(is_in(&Value::Int(2), vec![Value::Null]), Outcome::UNDEFINED);
        assert!(!In.is_two_valued(&[Value::Int(1), Value::Null]));
    }

    #[test]
    fn the_empty_set_is_false_when_present() {
        assert_eq!(is_in(&Value::Int(1), vec![]), Outcome::FALSE);
        assert_eq!(is_in(&Value::Str("a".into()), vec![]), Outcome::FALSE);
        assert_eq!(In.evaluate(None, &[]), Outcome::UNDEFINED);
    }

    #[test]
    fn numbers_are_found_by_exact_value() {
        let huge = (1i64 << 53) + 1;
        assert_eq!(is_in(&Value::Float(3.0), ints(&[3, 1, 2])), Outcome::TRUE);
        assert_eq!(is_in(&Value::Float((1i64 << 53) as f64), ints(&[huge])), Outcome::FALSE);
        assert_eq!(is_in(&Value::Float(f64::NAN), vec![Value::Float(f64::NAN)]), Outcome::TRUE);
        assert_eq!(is_in(&Value::Str("3".into()), ints(&[3])), Outcome::UNDEFINED);
    }

    #[test]
    fn intervals_count_what_lies_inside() {
        let ten_to_twenty = interval(Value::Int(10), Value::Int(20));
        assert_eq!(is_in(&ten_to_twenty, ints(&[1, 15])), Outcome::EITHER);
        assert_eq!(is_in(&ten_to_twenty, ints(&[1, 25])), Outcome::FALSE);
        let with_null = vec![Value::Int(15), Value::Null];
        assert_eq!(is_in(&ten_to_twenty, with_null), Outcome::TRUE);
        assert_eq!(is_in(&interval(Value::Int(1), Value::Int(2)), ints(&[1, 2])), Outcome::EITHER);
        assert_eq!(is_in(&interval(Value::Int(1), Value::Int(1)), ints(&[1, 2])), Outcome::TRUE);
        let either = interval(Value::Bool(false), Value::Bool(true));
        assert_eq!(is_in(&either, vec![Value::Bool(true), Value::Bool(false)]), Outcome::TRUE);
        let two_ticks = interval(Value::Timestamp(5), Value::Timestamp(6));
        assert_eq!(is_in(&two_ticks, vec![Value::Timestamp(5), Value::Timestamp(6)]), Outcome::TRUE);
        let all_time = interval(Value::Timestamp(i64::MIN), Value::Timestamp(i64::MAX));
        assert_eq!(is_in(&all_time, vec![Value::Timestamp(5)]), Outcome::EITHER);
        let adjacent = interval(Value::Str("a".into()), Value::Str("a\0".into()));
        assert_eq!(is_in(&adjacent, vec![Value::Str("a".into()), Value::Str("a\0".into())]), Outcome::TRUE);
        assert_eq!(is_in(&adjacent, vec![Value::Str("a".into())]), Outcome::EITHER);
    }

    #[test]
    fn a_large_set_is_searched() {
        let set = In.check((0..100_000).map(|i| Value::Int(i * 2)).collect()).unwrap();
        assert_eq!(In.evaluate(Some(ValueRef::Int(150_000)), &set), Outcome::TRUE);
        assert_eq!(In.evaluate(Some(ValueRef::Int(150_001)), &set), Outcome::FALSE);
    }
}
