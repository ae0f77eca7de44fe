//! `LIKE` and `ILIKE`: patterns with `%` and `_`.
//!
//! The operand is the pattern with `\` as its escape character; a pattern written with another one
//! (`LIKE '50!%' ESCAPE '!'`) is rewritten when it is read. ILIKE compares in lower case.

use super::operands::{is_one_string, one_string};
use super::wildcard::Wildcard;
use super::{LowerCaseTest, Rules, Shape, Syntax, Test, TextShape};
use crate::expr::ast::Outcome;
use crate::value::Kind;
use crate::value::{Value, ValueRef};

pub struct Like;

impl Rules for Like {
    fn name(&self) -> &'static str {
        "LIKE"
    }

    fn syntax(&self) -> Syntax {
        Syntax::Keyword("LIKE")
    }

    fn check(&self, operands: Vec<Value>) -> Result<Vec<Value>, String> {
        checked_pattern(self.name(), operands)
    }

    fn is_canonical(&self, operands: &[Value]) -> bool {
        is_one_string(operands)
    }

    fn expects(&self, _operands: &[Value]) -> Option<Kind> {
        Some(Kind::Str)
    }

    fn evaluate(&self, value: Option<ValueRef<'_>>, operands: &[Value]) -> Outcome {
        match (value, pattern(operands)) {
            (Some(ValueRef::Str(text)), Some(pattern)) => pattern.matches(text).into(),
            _ => Outcome::UNDEFINED,
        }
    }

    fn shape<'a>(&self, operands: &'a [Value]) -> Shape<'a> {
        match &operands[0] {
            Value::Str(pattern) if pattern.contains(['\\', '_']) => longest_literal(pattern),
            Value::Str(pattern) => {
                let body = pattern.trim_matches('%');
                match (pattern.starts_with('%'), pattern.ends_with('%')) {
                    _ if body.contains('%') => longest_literal(pattern),
                    (false, false) => Shape::Points(operands),
                    (false, true) => Shape::Prefix(body),
                    _ if body.is_empty() => Shape::Prefix(""),
                    (true, false) => Shape::Suffix(body),
                    (true, true) => Shape::Substring(body),
                }
            }
            _ => Shape::Never,
        }
    }

    fn is_two_valued(&self, operands: &[Value]) -> bool {
        operands[0] != Value::Null
    }

    fn compile(&self, operands: &[Value]) -> Option<Test> {
        let pattern = pattern(operands)?;
        Some(Box::new(move |value| match value {
            ValueRef::Str(text) => pattern.matches(text).into(),
            _ => Outcome::UNDEFINED,
        }))
    }
}

pub struct ILike;

impl Rules for ILike {
    fn name(&self) -> &'static str {
        "ILIKE"
    }

    fn syntax(&self) -> Syntax {
        Syntax::Keyword("ILIKE")
    }

    fn check(&self, operands: Vec<Value>) -> Result<Vec<Value>, String> {
        checked_pattern(self.name(), operands)
    }

    fn is_canonical(&self, operands: &[Value]) -> bool {
        is_one_string(operands)
    }

    fn expects(&self, _operands: &[Value]) -> Option<Kind> {
        Some(Kind::Str)
    }

    fn evaluate(&self, value: Option<ValueRef<'_>>, operands: &[Value]) -> Outcome {
        match (value, lower_case_pattern(operands)) {
            (Some(ValueRef::Str(text)), Some(pattern)) => pattern.matches(&text.to_lowercase()).into(),
            _ => Outcome::UNDEFINED,
        }
    }

    fn shape<'a>(&self, operands: &'a [Value]) -> Shape<'a> {
        if operands[0] == Value::Null {
            return Shape::Never;
        }
        match lower_case_pattern(operands).map(|pattern| pattern.shape()) {
            Some(TextShape::Opaque) | None => Shape::Opaque,
            Some(shape) => Shape::LowerCase(shape),
        }
    }

    fn is_two_valued(&self, operands: &[Value]) -> bool {
        operands[0] != Value::Null
    }

    fn compile(&self, operands: &[Value]) -> Option<Test> {
        let pattern = lower_case_pattern(operands)?;
        Some(Box::new(move |value| match value {
            ValueRef::Str(text) => pattern.matches(&text.to_lowercase()).into(),
            _ => Outcome::UNDEFINED,
        }))
    }

    fn compile_lower_case(&self, operands: &[Value]) -> Option<LowerCaseTest> {
        let pattern = lower_case_pattern(operands)?;
        Some(Box::new(move |text| pattern.matches(text)))
    }
}

fn checked_pattern(operator: &str, operands: Vec<Value>) -> Result<Vec<Value>, String> {
    let operands = one_string(operator, operands)?;
    if let Value::Str(pattern) = &operands[0] {
        Wildcard::parse(pattern)?;
    }
    Ok(operands)
}

fn pattern(operands: &[Value]) -> Option<Wildcard> {
    match &operands[0] {
        Value::Str(pattern) => Wildcard::parse(pattern).ok(),
        _ => None,
    }
}

fn lower_case_pattern(operands: &[Value]) -> Option<Wildcard> {
    match &operands[0] {
        Value::Str(pattern) => Wildcard::parse(&pattern.to_lowercase()).ok(),
        _ => None,
    }
}

/// What an operator says of a pattern that it cannot borrow a part from.
fn longest_literal(pattern: &str) -> Shape<'static> {
    let longest = Wildcard::parse(pattern).ok().and_then(|pattern| pattern.longest_literal());
    longest.map_or(Shape::Opaque, |literal| Shape::Literals(vec![literal]))
}

#[cfg(test)]
mod tests {
    use super::super::wildcard::tests::reference;
    use super::*;
    use proptest::prelude::*;

    fn shape_of(rules: &dyn Rules, pattern: &str) -> String {
        format!("{:?}", rules.shape(&[Value::Str(pattern.into())]))
    }

    #[test]
    fn shapes_of_like() {
        assert_eq!(shape_of(&Like, "abc"), r#"Points([Str("abc")])"#);
        assert_eq!(shape_of(&Like, ""), r#"Points([Str("")])"#);
        assert_eq!(shape_of(&Like, "abc%%"), r#"Prefix("abc")"#);
        assert_eq!(shape_of(&Like, "%abc"), r#"Suffix("abc")"#);
        assert_eq!(shape_of(&Like, "%abc%"), r#"Substring("abc")"#);
        assert_eq!(shape_of(&Like, "%"), r#"Prefix("")"#);
        assert_eq!(shape_of(&Like, "a%bcd_e"), r#"Literals(["bcd"])"#);
        assert_eq!(shape_of(&Like, r"50\%%"), r#"Literals(["50%"])"#);
        assert_eq!(shape_of(&Like, "_%_"), "Opaque");
        assert!(matches!(Like.shape(&[Value::Null]), Shape::Never));
    }

    #[test]
    fn ilike_folds_case_and_names_only_true_literals() {
        let ilike =
            |text, pattern: &str| ILike.evaluate(Some(ValueRef::Str(text)), &[Value::Str(pattern.into())]);
        assert_eq!(ilike("ÉTÉ", "é%"), Outcome::TRUE);
        assert_eq!(ilike("été", "É_É"), Outcome::TRUE);
        assert_eq!(ilike("\u{212a}ELVIN", "kel%"), Outcome::TRUE);
        assert_eq!(ilike("50%", r"50\%"), Outcome::TRUE);
        assert_eq!(shape_of(&ILike, "Disk-2026%"), r#"LowerCase(Prefix("disk-2026"))"#);
        assert_eq!(shape_of(&ILike, "%Ab%%"), r#"LowerCase(Substring("ab"))"#);
        assert_eq!(shape_of(&ILike, "%ab"), r#"LowerCase(Suffix("ab"))"#);
        assert_eq!(shape_of(&ILike, r"50\%%"), r#"LowerCase(Prefix("50%"))"#);
        assert_eq!(shape_of(&ILike, "A_c"), r#"LowerCase(Literals(["c"]))"#);
        assert_eq!(shape_of(&ILike, "ab%cde%f"), r#"LowerCase(Literals(["cde"]))"#);
        assert_eq!(shape_of(&ILike, "ABC"), r#"LowerCase(Whole("abc"))"#);
        assert_eq!(shape_of(&ILike, ""), r#"LowerCase(Whole(""))"#);
        assert_eq!(shape_of(&ILike, "%%"), r#"LowerCase(Prefix(""))"#);
        assert_eq!(shape_of(&ILike, "%_"), "Opaque");
    }

    #[test]
    fn compiled_and_evaluated_agree() {
        for rules in [&Like as &dyn Rules, &ILike] {
            let operands = [Value::Str("%Ab_%".into())];
            let test = rules.compile(&operands).unwrap();
            for text in ["ab", "xAbc", "xabc", ""] {
                let value = ValueRef::Str(text);
                assert_eq!(test(value), rules.evaluate(Some(value), &operands));
            }
            assert_eq!(test(ValueRef::Int(1)), Outcome::UNDEFINED);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1000))]

        /// The Kelvin sign and İ become `k` and two characters in lower case.
        #[test]
        fn ilike_is_like_in_lower_case(
            text in "[aAbBéÉ\u{212a}İ%]{0,12}",
            pattern in "([aAbBéÉkİ_%]|\\\\%){0,9}",
        ) {
            let operands = [Value::Str(pattern.as_str().into())];
            let expected: Outcome = reference(&text.to_lowercase(), &pattern.to_lowercase()).into();
            let value = ValueRef::Str(&text);
            prop_assert_eq!(ILike.evaluate(Some(value), &operands), expected);
            prop_assert_eq!(ILike.compile(&operands).unwrap()(value), expected);
            let lower_case = text.to_lowercase();
            let is_true = ILike.compile_lower_case(&operands).unwrap()(&lower_case);
            prop_assert_eq!(Outcome::from(is_true), expected);
            if let Shape::LowerCase(shape) = ILike.shape(&operands) {
                let (decided, may_be) = match &shape {
                    TextShape::Whole(whole) => (true, lower_case == *whole),
                    TextShape::Prefix(part) => (true, lower_case.starts_with(part)),
                    TextShape::Suffix(part) => (true, lower_case.ends_with(part)),
                    TextShape::Substring(part) => (true, lower_case.contains(part)),
                    TextShape::Literals(parts) => (false, parts.iter().any(|part| lower_case.contains(part))),
                    TextShape::Opaque => (false, true),
                };
                prop_assert!(if decided { is_true == may_be } else { may_be || !is_true }, "{:?}", shape);
            }
        }
    }
}
