//! `array_contains` and `arrays_overlap`.
//!
//! An element that is null, or of another kind than the operand, might be the wanted one: if no other element
//! fits, it makes the result undefined instead of false.

use super::operands::{canonical_set, holds, is_canonical_set, is_one_scalar, one_scalar, split_null};
use super::{Rules, Shape, Syntax};
use crate::expr::ast::Outcome;
use crate::value::Kind;
use crate::value::{Value, ValueRef};

pub struct ArrayContains;

impl Rules for ArrayContains {
    fn name(&self) -> &'static str {
        "array_contains"
    }

    fn syntax(&self) -> Syntax {
        Syntax::Function("array_contains")
    }

    fn check(&self, operands: Vec<Value>) -> Result<Vec<Value>, String> {
        match operands.as_slice() {
            [Value::Null] => Err("array_contains cannot look for NULL".into()),
            _ => one_scalar(self.name(), operands),
        }
    }

    fn is_canonical(&self, operands: &[Value]) -> bool {
        is_one_scalar(operands) && operands[0] != Value::Null
    }

    fn expects(&self, _operands: &[Value]) -> Option<Kind> {
        Some(Kind::Array)
    }

    fn evaluate(&self, value: Option<ValueRef<'_>>, operands: &[Value]) -> Outcome {
        overlap(value, operands, false)
    }

    fn shape<'a>(&self, operands: &'a [Value]) -> Shape<'a> {
        Shape::Elements(operands)
    }

    fn is_two_valued(&self, _operands: &[Value]) -> bool {
        false
    }
}

pub struct ArraysOverlap;

impl Rules for ArraysOverlap {
    fn name(&self) -> &'static str {
        "arrays_overlap"
    }

    fn syntax(&self) -> Syntax {
        Syntax::Function("arrays_overlap")
    }

    /// The operands are the elements of the array that is written: `ARRAY(1, 2)`.
    fn check(&self, operands: Vec<Value>) -> Result<Vec<Value>, String> {
        canonical_set(self.name(), operands)
    }

    fn is_canonical(&self, operands: &[Value]) -> bool {
        is_canonical_set(operands)
    }

    fn expects(&self, _operands: &[Value]) -> Option<Kind> {
        Some(Kind::Array)
    }

    fn evaluate(&self, value: Option<ValueRef<'_>>, operands: &[Value]) -> Outcome {
        let (members, has_null) = split_null(operands);
        overlap(value, members, has_null)
    }

    fn shape<'a>(&self, operands: &'a [Value]) -> Shape<'a> {
        match split_null(operands).0 {
            [] => Shape::Never,
            members => Shape::Elements(members),
        }
    }

    fn is_two_valued(&self, operands: &[Value]) -> bool {
        operands.is_empty()
    }
}

/// Whether an array has an element among these members, which may be accompanied by a null.
fn overlap(value: Option<ValueRef<'_>>, members: &[Value], has_null: bool) -> Outcome {
    let Some(ValueRef::Array(elements)) = value else {
        return Outcome::UNDEFINED;
    };
    if elements.is_empty() || members.is_empty() && !has_null {
        return Outcome::FALSE;
    }
    let kind = members.first().and_then(Value::kind);
    let mut something_is_hidden = has_null;
    for element in elements {
        if element.kind().is_none() || element.kind() != kind {
            something_is_hidden = true;
        } else if holds(members, element.as_ref()) {
            return Outcome::TRUE;
        }
    }
    if something_is_hidden { Outcome::UNDEFINED } else { Outcome::FALSE }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn array(elements: &[Value]) -> Value {
        Value::Array(elements.to_vec())
    }

    #[test]
    fn a_null_element_hides_what_is_not_found() {
        let contains =
            |elements: &[Value]| ArrayContains.evaluate(Some(array(elements).as_ref()), &[Value::Int(2)]);
        assert_eq!(contains(&[Value::Int(1), Value::Float(2.0)]), Outcome::TRUE);
        assert_eq!(contains(&[Value::Null, Value::Int(2)]), Outcome::TRUE);
        assert_eq!(contains(&[Value::Int(1)]), Outcome::FALSE);
        assert_eq!(contains(&[Value::Int(1), Value::Null]), Outcome::UNDEFINED);
        assert_eq!(contains(&[Value::Str("2".into())]), Outcome::UNDEFINED);
        assert_eq!(contains(&[]), Outcome::FALSE);
        assert_eq!(ArrayContains.evaluate(Some(ValueRef::Int(2)), &[Value::Int(2)]), Outcome::UNDEFINED);
        assert_eq!(ArrayContains.evaluate(None, &[Value::Int(2)]), Outcome::UNDEFINED);
    }

    #[test]
    fn overlap_is_undefined_only_when_both_are_non_empty_and_one_holds_null() {
        let overlap = |elements: &[Value], operands: &[Value]| {
            let operands = ArraysOverlap.check(operands.to_vec()).unwrap();
            ArraysOverlap.evaluate(Some(array(elements).as_ref()), &operands)
        };
        let (one, two, null) = (Value::Int(1), Value::Int(2), Value::Null);
        assert_eq!(overlap(&[one.clone(), null.clone()], &[two.clone(), one.clone()]), Outcome::TRUE);
        assert_eq!(overlap(std::slice::from_ref(&one), std::slice::from_ref(&two)), Outcome::FALSE);
        assert_eq!(overlap(&[one.clone(), null.clone()], std::slice::from_ref(&two)), Outcome::UNDEFINED);
        assert_eq!(overlap(std::slice::from_ref(&one), &[two, null.clone()]), Outcome::UNDEFINED);
        assert_eq!(overlap(&[], std::slice::from_ref(&null)), Outcome::FALSE);
        assert_eq!(overlap(std::slice::from_ref(&null), &[]), Outcome::FALSE);
        assert_eq!(overlap(&[one], &[null]), Outcome::UNDEFINED);
    }
}
