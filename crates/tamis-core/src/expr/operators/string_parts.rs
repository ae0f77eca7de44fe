//! `startswith`, `endswith` and `contains`: a fixed string at the start, at the end or anywhere.

use super::operands::{is_one_string, one_string};
use super::{Rules, Shape, Syntax};
use crate::expr::ast::Outcome;
use crate::value::Kind;
use crate::value::{Value, ValueRef};

macro_rules! string_part {
    ($name:ident, $function:literal, $test:ident, $shape:ident) => {
        pub struct $name;

        impl Rules for $name {
            fn name(&self) -> &'static str {
                $function
            }

            fn syntax(&self) -> Syntax {
                Syntax::Function($function)
            }

            fn check(&self, operands: Vec<Value>) -> Result<Vec<Value>, String> {
                one_string(self.name(), operands)
            }

            fn is_canonical(&self, operands: &[Value]) -> bool {
                is_one_string(operands)
            }

            fn expects(&self, _operands: &[Value]) -> Option<Kind> {
                Some(Kind::Str)
            }

            fn evaluate(&self, value: Option<ValueRef<'_>>, operands: &[Value]) -> Outcome {
                match (value, &operands[0]) {
                    (Some(ValueRef::Str(text)), Value::Str(part)) => text.$test(&**part).into(),
                    _ => Outcome::UNDEFINED,
                }
            }

            fn shape<'a>(&self, operands: &'a [Value]) -> Shape<'a> {
                match &operands[0] {
                    Value::Str(part) if part.is_empty() => Shape::Prefix(""),
                    Value::Str(part) => Shape::$shape(part),
                    _ => Shape::Never,
                }
            }

            fn is_two_valued(&self, operands: &[Value]) -> bool {
                operands[0] != Value::Null
            }
        }
    };
}

string_part!(StartsWith, "startswith", starts_with, Prefix);
string_part!(EndsWith, "endswith", ends_with, Suffix);
string_part!(Contains, "contains", contains, Substring);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_found_where_they_belong() {
        let part = [Value::Str("é".into())];
        let text = |text| Some(ValueRef::Str(text));
        assert_eq!(StartsWith.evaluate(text("été"), &part), Outcome::TRUE);
        assert_eq!(StartsWith.evaluate(text("thé"), &part), Outcome::FALSE);
        assert_eq!(EndsWith.evaluate(text("thé"), &part), Outcome::TRUE);
        assert_eq!(Contains.evaluate(text("thés"), &part), Outcome::TRUE);
        assert_eq!(Contains.evaluate(Some(ValueRef::Int(1)), &part), Outcome::UNDEFINED);
        assert_eq!(Contains.evaluate(text("thés"), &[Value::Null]), Outcome::UNDEFINED);
        assert!(matches!(Contains.shape(&[Value::Str("".into())]), Shape::Prefix("")));
    }
}
