//! `IS NULL`: whether an attribute is absent. Never undefined.

use super::{Rules, Shape, Syntax};
use crate::expr::ast::Outcome;
use crate::value::Kind;
use crate::value::{Value, ValueRef};

pub struct IsNull;

impl Rules for IsNull {
    fn name(&self) -> &'static str {
        "IS NULL"
    }

    fn syntax(&self) -> Syntax {
        Syntax::Keyword("IS NULL")
    }

    fn check(&self, operands: Vec<Value>) -> Result<Vec<Value>, String> {
        match operands.len() {
            0 => Ok(operands),
            given => Err(format!("IS NULL takes no operand, not {given}")),
        }
    }

    fn is_canonical(&self, operands: &[Value]) -> bool {
        operands.is_empty()
    }

    fn expects(&self, _operands: &[Value]) -> Option<Kind> {
        None
    }

    fn evaluate(&self, value: Option<ValueRef<'_>>, _operands: &[Value]) -> Outcome {
        value.is_none().into()
    }

    fn shape<'a>(&self, _operands: &'a [Value]) -> Shape<'a> {
        Shape::Absent
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_absence_counts() {
        assert_eq!(IsNull.evaluate(None, &[]), Outcome::TRUE);
        assert_eq!(IsNull.evaluate(Some(ValueRef::Record), &[]), Outcome::FALSE);
        let interval = Value::Interval(Box::new((Value::Int(1), Value::Int(2))));
        assert_eq!(IsNull.evaluate(Some(interval.as_ref()), &[]), Outcome::FALSE);
    }
}
