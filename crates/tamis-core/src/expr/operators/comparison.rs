//! `=`, `<`, `<=`, `>` and `>=`: order and equality of scalars of one kind.

use std::cmp::Ordering;

use super::operands::{is_one_scalar, one_scalar};
use super::{Bound, Operator, Rules, Shape, Syntax};
use crate::expr::ast::Outcome;
use crate::value::Kind;
use crate::value::{Value, ValueRef};

/// Compares a present value with an operand: the ends of an interval, or one point twice.
pub(super) fn compare_ends(value: Option<ValueRef<'_>>, operand: &Value) -> Option<(Ordering, Ordering)> {
    match value? {
        ValueRef::Interval(ends) => {
            Some((ends.0.as_ref().compare(operand.as_ref())?, ends.1.as_ref().compare(operand.as_ref())?))
        }
        point => {
            let order = point.compare(operand.as_ref())?;
            Some((order, order))
        }
    }
}

pub struct Equal;

impl Rules for Equal {
    fn name(&self) -> &'static str {
        "="
    }

    fn syntax(&self) -> Syntax {
        Syntax::Infix { symbol: "=", negated: Some("!=") }
    }

    fn check(&self, operands: Vec<Value>) -> Result<Vec<Value>, String> {
        one_scalar(self.name(), operands)
    }

    fn is_canonical(&self, operands: &[Value]) -> bool {
        is_one_scalar(operands)
    }

    fn expects(&self, operands: &[Value]) -> Option<Kind> {
        operands[0].kind()
    }

    fn evaluate(&self, value: Option<ValueRef<'_>>, operands: &[Value]) -> Outcome {
        match compare_ends(value, &operands[0]) {
            None => Outcome::UNDEFINED,
            Some((low, high)) => Outcome {
                can_be_true: low.is_le() && high.is_ge(),
                can_be_false: low.is_ne() || high.is_ne(),
            },
        }
    }

    fn shape<'a>(&self, operands: &'a [Value]) -> Shape<'a> {
        match operands[0] {
            Value::Null => Shape::Never,
            _ => Shape::Points(operands),
        }
    }

    fn is_two_valued(&self, operands: &[Value]) -> bool {
        operands[0] != Value::Null
    }
}

macro_rules! ordering {
    ($name:ident, $symbol:literal, $complement:ident, $low:ident, $holds:ident, $end:ident, $inclusive:literal) => {
        pub struct $name;

        impl Rules for $name {
            fn name(&self) -> &'static str {
                $symbol
            }

            fn syntax(&self) -> Syntax {
                Syntax::Infix { symbol: $symbol, negated: None }
            }

            fn check(&self, operands: Vec<Value>) -> Result<Vec<Value>, String> {
                one_scalar(self.name(), operands)
            }

            fn is_canonical(&self, operands: &[Value]) -> bool {
                is_one_scalar(operands)
            }

            fn expects(&self, operands: &[Value]) -> Option<Kind> {
                operands[0].kind()
            }

            fn evaluate(&self, value: Option<ValueRef<'_>>, operands: &[Value]) -> Outcome {
                match compare_ends(value, &operands[0]) {
                    None => Outcome::UNDEFINED,
                    Some((low, high)) => Outcome {
                        can_be_true: low.$holds() || high.$holds(),
                        can_be_false: !low.$holds() || !high.$holds(),
                    },
                }
            }

            fn shape<'a>(&self, operands: &'a [Value]) -> Shape<'a> {
                let bound = Bound { value: operands[0].as_ref(), inclusive: $inclusive };
                match operands[0] {
                    Value::Null => Shape::Never,
                    _ => Shape::Range { $low: Some(bound), $end: None },
                }
            }

            fn complement(&self) -> Option<Operator> {
                Some(Operator::$complement)
            }

            fn is_two_valued(&self, operands: &[Value]) -> bool {
                operands[0] != Value::Null
            }
        }
    };
}

ordering!(Less, "<", GREATER_OR_EQUAL, high, is_lt, low, false);
ordering!(LessOrEqual, "<=", GREATER, high, is_le, low, true);
ordering!(Greater, ">", LESS_OR_EQUAL, low, is_gt, high, false);
ordering!(GreaterOrEqual, ">=", LESS, low, is_ge, high, true);

#[cfg(test)]
mod tests {
    use super::*;

    fn interval(low: i64, high: i64) -> Value {
        Value::Interval(Box::new((Value::Int(low), Value::Int(high))))
    }

    fn evaluate(operator: Operator, value: &Value, operand: Value) -> Outcome {
        operator.rules().evaluate(Some(value.as_ref()), &[operand])
    }

    #[test]
    fn nan_is_equal_to_itself_and_above_every_number() {
        let nan = Value::Float(f64::NAN);
        assert_eq!(evaluate(Operator::EQUAL, &nan, nan.clone()), Outcome::TRUE);
        assert_eq!(evaluate(Operator::GREATER, &nan, Value::Float(f64::INFINITY)), Outcome::TRUE);
        assert_eq!(evaluate(Operator::LESS, &Value::Int(i64::MAX), nan.clone()), Outcome::TRUE);
    }

    #[test]
    fn other_kinds_and_null_are_undefined() {
        for operator in [Operator::EQUAL, Operator::LESS, Operator::GREATER_OR_EQUAL] {
            assert_eq!(evaluate(operator, &Value::Str("1".into()), Value::Int(1)), Outcome::UNDEFINED);
            assert_eq!(evaluate(operator, &Value::Bool(true), Value::Int(1)), Outcome::UNDEFINED);
            assert_eq!(evaluate(operator, &Value::Int(1), Value::Null), Outcome::UNDEFINED);
            assert_eq!(operator.rules().evaluate(None, &[Value::Int(1)]), Outcome::UNDEFINED);
            assert!(!operator.rules().is_two_valued(&[Value::Null]));
        }
    }

    #[test]
    fn intervals_set_the_bits_that_some_value_inside_gives() {
        assert_eq!(evaluate(Operator::EQUAL, &interval(1, 3), Value::Int(2)), Outcome::EITHER);
        assert_eq!(evaluate(Operator::EQUAL, &interval(2, 2), Value::Int(2)), Outcome::TRUE);
        assert_eq!(evaluate(Operator::EQUAL, &interval(1, 3), Value::Int(4)), Outcome::FALSE);
        assert_eq!(evaluate(Operator::LESS, &interval(1, 3), Value::Int(3)), Outcome::EITHER);
        assert_eq!(evaluate(Operator::LESS, &interval(1, 3), Value::Int(4)), Outcome::TRUE);
        assert_eq!(evaluate(Operator::LESS, &interval(1, 3), Value::Int(1)), Outcome::FALSE);
        assert_eq!(evaluate(Operator::GREATER_OR_EQUAL, &interval(1, 3), Value::Int(3)), Outcome::EITHER);
    }
}
