//! `=`, `<`, `<=`, `>` and `>=`: order and equality of scalars of one kind.

use std::cmp::Ordering;

use super::{Bound, Operator, Rules, Shape, Syntax};
use crate::event::value::Kind;
use crate::event::{Value, ValueRef};
use crate::expr::ast::Outcome;

/// Compares a present value with an operand: the ends of an interval, or one point twice.
fn compare_ends(value: Option<ValueRef<'_>>, operand: &Value) -> Option<(Ordering, Ordering)> {
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

fn one_scalar(operands: Vec<Value>) -> Result<Vec<Value>, String> {
    match operands.as_slice() {
        [Value::Array(_) | Value::Record | Value::Interval(_)] => Err("a comparison takes a scalar".into()),
        [_] => Ok(operands),
        _ => Err(format!("a comparison takes one operand, not {}", operands.len())),
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
        one_scalar(operands)
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
}

macro_rules! ordering {
    ($name:ident, $symbol:literal, $complement:literal, $low:ident, $holds:ident, $end:ident, $inclusive:literal) => {
        pub struct $name;

        impl Rules for $name {
            fn name(&self) -> &'static str {
                $symbol
            }

            fn syntax(&self) -> Syntax {
                Syntax::Infix { symbol: $symbol, negated: None }
            }

            fn check(&self, operands: Vec<Value>) -> Result<Vec<Value>, String> {
                one_scalar(operands)
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
                Operator::named($complement)
            }
        }
    };
}

ordering!(Less, "<", ">=", high, is_lt, low, false);
ordering!(LessOrEqual, "<=", ">", high, is_le, low, true);
ordering!(Greater, ">", "<=", low, is_gt, high, false);
ordering!(GreaterOrEqual, ">=", "<", low, is_ge, high, true);
