//! `<=>`: equality that treats an absent attribute as a value, so it is never undefined for one. `x <=> NULL`
//! is `x IS NULL`.

use super::operands::{is_one_scalar, one_scalar};
use super::{Operator, Rules, Shape, Syntax};
use crate::expr::ast::Outcome;
use crate::value::Kind;
use crate::value::{Value, ValueRef};

pub struct NullSafeEqual;

impl Rules for NullSafeEqual {
    fn name(&self) -> &'static str {
        "<=>"
    }

    fn syntax(&self) -> Syntax {
        Syntax::Infix { symbol: "<=>", negated: None }
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
        match (value, &operands[0]) {
            (_, Value::Null) => value.is_none().into(),
            (None, _) => Outcome::FALSE,
            _ => Operator::EQUAL.rules().evaluate(value, operands),
        }
    }

    fn shape<'a>(&self, operands: &'a [Value]) -> Shape<'a> {
        match operands[0] {
            Value::Null => Shape::Absent,
            _ => Shape::Points(operands),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn absent_is_a_value_of_its_own() {
        let five = [Value::Int(5)];
        assert_eq!(NullSafeEqual.evaluate(None, &five), Outcome::FALSE);
        assert_eq!(NullSafeEqual.evaluate(Some(ValueRef::Float(5.0)), &five), Outcome::TRUE);
        assert_eq!(NullSafeEqual.evaluate(Some(ValueRef::Int(6)), &five), Outcome::FALSE);
        assert_eq!(NullSafeEqual.evaluate(Some(ValueRef::Str("5")), &five), Outcome::UNDEFINED);
        assert_eq!(NullSafeEqual.evaluate(None, &[Value::Null]), Outcome::TRUE);
        assert_eq!(NullSafeEqual.evaluate(Some(ValueRef::Record), &[Value::Null]), Outcome::FALSE);
    }
}
