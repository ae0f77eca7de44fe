//! A boolean attribute on its own: `opted_out`.

use super::{Rules, Shape, Syntax};
use crate::expr::ast::Outcome;
use crate::value::Kind;
use crate::value::{Value, ValueRef};

static TRUE: [Value; 1] = [Value::Bool(true)];

pub struct Truth;

impl Rules for Truth {
    fn name(&self) -> &'static str {
        "truth"
    }

    fn syntax(&self) -> Syntax {
        Syntax::Bare
    }

    fn check(&self, operands: Vec<Value>) -> Result<Vec<Value>, String> {
        match operands.len() {
            0 => Ok(operands),
            given => Err(format!("a boolean attribute on its own takes no operand, not {given}")),
        }
    }

    fn is_canonical(&self, operands: &[Value]) -> bool {
        operands.is_empty()
    }

    fn expects(&self, _operands: &[Value]) -> Option<Kind> {
        Some(Kind::Bool)
    }

    fn evaluate(&self, value: Option<ValueRef<'_>>, _operands: &[Value]) -> Outcome {
        match value {
            Some(ValueRef::Bool(truth)) => truth.into(),
            Some(ValueRef::Interval((Value::Bool(low), Value::Bool(high)))) => {
                Outcome { can_be_true: *high, can_be_false: !low }
            }
            _ => Outcome::UNDEFINED,
        }
    }

    fn shape<'a>(&self, _operands: &'a [Value]) -> Shape<'a> {
        Shape::Points(&TRUE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_the_value_itself() {
        assert_eq!(Truth.evaluate(Some(ValueRef::Bool(true)), &[]), Outcome::TRUE);
        assert_eq!(Truth.evaluate(Some(ValueRef::Bool(false)), &[]), Outcome::FALSE);
        assert_eq!(Truth.evaluate(Some(ValueRef::Int(1)), &[]), Outcome::UNDEFINED);
        assert_eq!(Truth.evaluate(None, &[]), Outcome::UNDEFINED);
        let either = Value::Interval(Box::new((Value::Bool(false), Value::Bool(true))));
        assert_eq!(Truth.evaluate(Some(either.as_ref()), &[]), Outcome::EITHER);
    }
}
