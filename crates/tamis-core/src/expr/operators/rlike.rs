//! `RLIKE`: a regular expression found anywhere in a string, in time linear in its length.
//!
//! The dialect is the regex crate's, with the classes `\d`, `\w`, `\s` and the boundary `\b` restricted to
//! ASCII, as in Spark. Look-around and back-references are not supported.

use std::cell::RefCell;
use std::collections::HashMap;

use regex::{Regex, RegexBuilder};

use super::operands::{is_one_string, one_string};
use super::regex_literals::shape_of;
use super::{Rules, Shape, Syntax, Test};
use crate::expr::ast::Outcome;
use crate::expr::limits::MAX_REGEX_BYTES;
use crate::value::Kind;
use crate::value::{Value, ValueRef};

pub struct RLike;

impl Rules for RLike {
    fn name(&self) -> &'static str {
        "RLIKE"
    }

    fn syntax(&self) -> Syntax {
        Syntax::Keyword("RLIKE")
    }

    fn check(&self, operands: Vec<Value>) -> Result<Vec<Value>, String> {
        let operands = one_string(self.name(), operands)?;
        if let Value::Str(pattern) = &operands[0] {
            compiled(pattern).map_err(|error| explain(&error))?;
        }
        Ok(operands)
    }

    fn is_canonical(&self, operands: &[Value]) -> bool {
        is_one_string(operands)
    }

    fn expects(&self, _operands: &[Value]) -> Option<Kind> {
        Some(Kind::Str)
    }

    fn evaluate(&self, value: Option<ValueRef<'_>>, operands: &[Value]) -> Outcome {
        match (value, &operands[0]) {
            (Some(ValueRef::Str(text)), Value::Str(pattern)) => {
                compiled(pattern).map_or(Outcome::UNDEFINED, |regex| regex.is_match(text).into())
            }
            _ => Outcome::UNDEFINED,
        }
    }

    fn shape<'a>(&self, operands: &'a [Value]) -> Shape<'a> {
        match &operands[0] {
            Value::Str(pattern) => regex_syntax::parse(&with_ascii_classes(pattern))
                .ok()
                .map_or(Shape::Opaque, |hir| shape_of(&hir)),
            _ => Shape::Never,
        }
    }

    fn is_two_valued(&self, operands: &[Value]) -> bool {
        operands[0] != Value::Null
    }

    fn compile(&self, operands: &[Value]) -> Option<Test> {
        let Value::Str(pattern) = &operands[0] else {
            return None;
        };
        let regex = compiled(pattern).ok()?;
        Some(Box::new(move |value| match value {
            ValueRef::Str(text) => regex.is_match(text).into(),
            _ => Outcome::UNDEFINED,
        }))
    }
}

/// Compiling costs a thousand times a match, and the same pattern tends to be asked for again soon.
fn compiled(pattern: &str) -> Result<Regex, regex::Error> {
    const KEPT: usize = 64;
    thread_local! {
        static RECENT: RefCell<HashMap<Box<str>, Regex>> = RefCell::default();
    }
    RECENT.with_borrow_mut(|recent| {
        if let Some(regex) = recent.get(pattern) {
            return Ok(regex.clone());
        }
        let regex = RegexBuilder::new(&with_ascii_classes(pattern))
            .size_limit(MAX_REGEX_BYTES)
            .dfa_size_limit(MAX_REGEX_BYTES)
            .build()?;
        if recent.len() == KEPT {
            recent.clear();
        }
        recent.insert(pattern.into(), regex.clone());
        Ok(regex)
    })
}

fn explain(error: &regex::Error) -> String {
    match error {
        regex::Error::CompiledTooBig(_) => {
            format!("the regular expression is too large: compiled it may take {MAX_REGEX_BYTES} bytes")
        }
        other => {
            let text = other.to_string();
            let reason = text.lines().last().unwrap_or_default().trim_start_matches("error: ");
            format!("the regular expression is not valid: {reason}")
        }
    }
}

/// Spells out `\d`, `\w`, `\s`, their opposites and `\b` as ASCII; a class may stand inside another.
fn with_ascii_classes(pattern: &str) -> String {
    let mut spelt = String::with_capacity(pattern.len() + 16);
    let mut brackets = 0usize;
    let mut chars = pattern.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some('d') => spelt.push_str("[0-9]"),
                Some('D') => spelt.push_str("[^0-9]"),
                Some('w') => spelt.push_str("[0-9A-Za-z_]"),
                Some('W') => spelt.push_str("[^0-9A-Za-z_]"),
                Some('s') => spelt.push_str(r"[ \t\n\x0B\f\r]"),
                Some('S') => spelt.push_str(r"[^ \t\n\x0B\f\r]"),
                // `\b{start}` and its kin are the crate's own.
                Some('b') if brackets == 0 && chars.peek() != Some(&'{') => spelt.push_str(r"(?-u:\b)"),
                Some(other) => spelt.extend(['\\', other]),
                None => spelt.push('\\'),
            },
            '[' => {
                spelt.push('[');
                brackets += 1;
                spelt.extend(chars.next_if_eq(&'^'));
                spelt.extend(chars.next_if_eq(&']'));
            }
            ']' => {
                spelt.push(']');
                brackets = brackets.saturating_sub(1);
            }
            c => spelt.push(c),
        }
    }
    spelt
}

#[cfg(test)]
mod tests {
    use super::super::TextShape;
    use super::*;

    fn rlike(text: &str, pattern: &str) -> Outcome {
        let operands = RLike.check(vec![Value::Str(pattern.into())]).unwrap();
        RLike.evaluate(Some(ValueRef::Str(text)), &operands)
    }

    #[test]
    fn finds_anywhere() {
        assert_eq!(rlike("disk 7 is full", r"disk \d+ is"), Outcome::TRUE);
        assert_eq!(rlike("disk is full", r"^is"), Outcome::FALSE);
        assert_eq!(RLike.evaluate(Some(ValueRef::Int(7)), &[Value::Str("7".into())]), Outcome::UNDEFINED);
        assert_eq!(RLike.evaluate(Some(ValueRef::Str("7")), &[Value::Null]), Outcome::UNDEFINED);
    }

    #[test]
    fn perl_classes_are_ascii() {
        assert_eq!(rlike("٣", r"^\d$"), Outcome::FALSE);
        assert_eq!(rlike("é", r"\w"), Outcome::FALSE);
        assert_eq!(rlike("é", r"^[^\w]$"), Outcome::TRUE);
        assert_eq!(rlike("a-1", r"^[\w-]+$"), Outcome::TRUE);
        assert_eq!(rlike("[]]", r"^[]\[]+$"), Outcome::TRUE);
        assert_eq!(rlike("caféx", r"caf\b"), Outcome::TRUE);
        assert_eq!(rlike(r"a\d", r"a\\d"), Outcome::TRUE);
    }

    #[test]
    fn bad_and_huge_patterns_are_refused() {
        let refused = |pattern: &str| RLike.check(vec![Value::Str(pattern.into())]).unwrap_err();
        assert!(refused("(a").contains("not valid: unclosed group"));
        assert!(refused("a(?=b)").contains("look-around"));
        assert!(refused(r"(a)\1").contains("backreferences"));
        assert!(refused(r"(\p{L}{1000}){1000}").contains("too large"));
        assert_eq!(RLike.evaluate(Some(ValueRef::Str("a")), &[Value::Str("(".into())]), Outcome::UNDEFINED);
    }

    #[test]
    fn shape_names_literals_that_every_match_has() {
        let shape = |pattern: &str| format!("{:?}", RLike.shape(&[Value::Str(pattern.into())]));
        assert_eq!(shape(r"\d+ error: disk \w+"), r#"Literals([" error: disk "])"#);
        assert_eq!(shape("(foo|barn).*x"), r#"Literals(["foo", "barn"])"#);
        assert_eq!(shape(".*(foo|bar)"), r#"Literals(["foo", "bar"])"#);
        assert_eq!(shape("(.+foo|.+bar)+"), r#"Literals(["foo", "bar"])"#);
        assert_eq!(shape("(foo)?.*"), "Opaque");
        assert_eq!(shape(""), "Opaque");
    }

    #[test]
    fn without_regard_to_case_literals_are_in_lower_case() {
        let shape = |pattern: &str| format!("{:?}", RLike.shape(&[Value::Str(pattern.into())]));
        assert_eq!(shape("(?i)Invoke-(Web|Rest)Request"), r#"LowerCase(Literals(["invoke-"]))"#);
        assert_eq!(shape("(?i)(foo|bar)+x"), r#"LowerCase(Literals(["foo", "bar"]))"#);
        assert_eq!(shape("[Dd]isk"), r#"LowerCase(Literals(["disk"]))"#);
        assert_eq!(shape("(?i)."), "Opaque");
    }

    #[test]
    fn every_match_has_a_literal_of_its_shape() {
        let patterns =
            ["(?i)disk", "(?i)οδός", "(?i)ΣΑΣ", "(?i)straße", "(?i)İx", "(?i)aſ", "[ΣS]x", "Σx", "(?i)ǆa"];
        let texts =
            ["DISK", "disk", "dis\u{212a}", "ΟΔΌΣ", "ὈΔΌΣ", "σας", "ΣΑΣ", "ΣΑΣ ΣΑΣ", "STRAẞE", "İX", "i̇x"];
        let texts = texts.iter().copied().chain(["AS", "aſ", "Σx", "aΣ", "Sx", "ǅA", "Ǆa", "xΣx"]);
        for text in texts {
            for pattern in patterns {
                if rlike(text, pattern) == Outcome::TRUE {
                    let (parts, text) = match RLike.shape(&[Value::Str(pattern.into())]) {
                        Shape::Literals(parts) => (parts, text.to_string()),
                        Shape::LowerCase(TextShape::Literals(parts)) => (parts, text.to_lowercase()),
                        _ => continue,
                    };
                    assert!(parts.iter().any(|part| text.contains(part)), "{pattern}: {text}: {parts:?}");
                }
            }
        }
    }
}
