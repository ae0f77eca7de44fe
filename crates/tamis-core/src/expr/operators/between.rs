//! `BETWEEN low AND high`, both ends included. With a NULL end it is not one predicate: the parser
//! and the builder write it as `x >= low AND x <= high`, where one half can still be false.

use super::comparison::compare_ends;
use super::operands::is_scalar;
use super::{Bound, Rules, Shape, Syntax};
use crate::expr::ast::Outcome;
use crate::value::Kind;
use crate::value::{Value, ValueRef};

pub struct Between;

impl Rules for Between {
    fn name(&self) -> &'static str {
        "BETWEEN"
    }

    fn syntax(&self) -> Syntax {
        Syntax::Keyword("BETWEEN")
    }

    fn check(&self, operands: Vec<Value>) -> Result<Vec<Value>, String> {
        let [low, high] = operands.as_slice() else {
            return Err(format!("BETWEEN takes two operands, not {}", operands.len()));
        };
        match (low.kind(), high.kind()) {
            _ if !is_scalar(low) || !is_scalar(high) => Err("the ends of BETWEEN are scalars".into()),
            (Some(a), Some(b)) if a == b => Ok(operands),
            (Some(a), Some(b)) => Err(format!("BETWEEN mixes {} and {}", a.with_article(), b.with_article())),
            _ => Err("an end of BETWEEN is NULL: write x >= low AND x <= high".into()),
        }
    }

    fn is_canonical(&self, operands: &[Value]) -> bool {
        matches!(operands, [low, high] if is_scalar(low) && low.kind().is_some() && low.kind() == high.kind())
    }

    fn expects(&self, operands: &[Value]) -> Option<Kind> {
        operands[0].kind()
    }

    fn evaluate(&self, value: Option<ValueRef<'_>>, operands: &[Value]) -> Outcome {
        let (low, high) = (&operands[0], &operands[1]);
        let (Some(to_low), Some(to_high)) = (compare_ends(value, low), compare_ends(value, high)) else {
            return Outcome::UNDEFINED;
        };
        let overlaps = to_low.1.is_ge() && to_high.0.is_le();
        let leaves = to_low.0.is_lt() || to_high.1.is_gt();
        let is_empty = is_reversed(operands);
        Outcome { can_be_true: overlaps && !is_empty, can_be_false: leaves || is_empty }
    }

    fn shape<'a>(&self, operands: &'a [Value]) -> Shape<'a> {
        let bound = |value: &'a Value| Some(Bound { value: value.as_ref(), inclusive: true });
        match is_reversed(operands) {
            true => Shape::Never,
            false => Shape::Range { low: bound(&operands[0]), high: bound(&operands[1]) },
        }
    }
}

fn is_reversed(operands: &[Value]) -> bool {
    operands[0].as_ref().compare(operands[1].as_ref()).is_some_and(|order| order.is_gt())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn between(value: Value, low: i64, high: i64) -> Outcome {
        Between.evaluate(Some(value.as_ref()), &[Value::Int(low), Value::Int(high)])
    }

    fn interval(low: i64, high: i64) -> Value {
        Value::Interval(Box::new((Value::Int(low), Value::Int(high))))
    }

    #[test]
    fn both_ends_are_included() {
        assert_eq!(between(Value::Int(22), 22, 36), Outcome::TRUE);
        assert_eq!(between(Value::Float(36.0), 22, 36), Outcome::TRUE);
        assert_eq!(between(Value::Float(36.5), 22, 36), Outcome::FALSE);
        assert_eq!(between(Value::Int(30), 36, 22), Outcome::FALSE);
        assert_eq!(between(Value::Str("30".into()), 22, 36), Outcome::UNDEFINED);
    }

    #[test]
    fn intervals_overlap_or_leave() {
        assert_eq!(between(interval(22, 36), 22, 36), Outcome::TRUE);
        assert_eq!(between(interval(21, 36), 22, 36), Outcome::EITHER);
        assert_eq!(between(interval(36, 40), 22, 36), Outcome::EITHER);
        assert_eq!(between(interval(37, 40), 22, 36), Outcome::FALSE);
        assert_eq!(between(interval(20, 40), 36, 22), Outcome::FALSE);
        assert_eq!(between(interval(30, 31), 36, 22), Outcome::FALSE);
    }

    #[test]
    fn ends_are_of_one_kind() {
        let check = |low, high| Between.check(vec![low, high]);
        assert!(check(Value::Int(1), Value::Float(2.0)).is_ok());
        assert!(check(Value::Int(1), Value::Str("a".into())).unwrap_err().contains("mixes"));
        assert!(check(Value::Int(1), Value::Null).unwrap_err().contains("NULL"));
    }
}
