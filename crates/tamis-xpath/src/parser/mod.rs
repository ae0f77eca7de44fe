//! From text to [`Path`]. Everything outside the subset is refused, with its position and a hint.
//!
//! This file has tokens, steps and node tests; `conditions` parses what is in square brackets.

mod conditions;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use crate::ast::{Axis, Condition, Literal, Name, NameTest, Path, Step, Test, XML_NAMESPACE};
use crate::error::PathError;
use crate::names::name_length;
use crate::number::number;

const MAX_BYTES: usize = 16 << 10;
/// Steps of one path: the states of an evaluation are the bits of a word.
pub(crate) const MAX_STEPS: usize = 62;

const OTHER_AXES: [&str; 10] = [
    "ancestor",
    "ancestor-or-self",
    "descendant-or-self",
    "following",
    "following-sibling",
    "namespace",
    "parent",
    "preceding",
    "preceding-sibling",
    "self",
];

pub(crate) fn parse(text: &str) -> Result<Path, PathError> {
    if text.len() > MAX_BYTES {
        let message = format!("a path of {} bytes is longer than the limit of {MAX_BYTES}", text.len());
        return Err(PathError::new(0, message));
    }
    let mut parser =
        Parser { text, at: 0, prefixes: vec![("xml", XML_NAMESPACE)], nesting: 0, is_negated: false };
    parser.declarations()?;
    parser.space();
    if !parser.rest().starts_with('/') {
        let error = parser.error("a path begins with / or //");
        return Err(if parser.rest().is_empty() {
            error.with_hint("write /news/item or //item")
        } else {
            error.with_hint(format!("write /{0} or //{0}", first_word(parser.rest())))
        });
    }
    let steps = parser.steps(true)?;
    parser.space();
    match parser.rest().chars().next() {
        None => match (Path { steps }) {
            path if path.most_score().is_finite() => Ok(path),
            _ => Err(PathError::new(0, "the weights of a path add up to more than a 64-bit float holds")),
        },
        Some('|') => Err(parser
            .error("a union of paths is not supported")
            .with_hint("write xpath(doc, '...') OR xpath(doc, '...')")),
        Some('=' | '!' | '<' | '>') => Err(parser
            .error("a path is true when it selects something; it is not compared with a value")
            .with_hint("put the comparison into a predicate: /news/item[price > 5]")),
        Some(other) => Err(parser.error(format!("{other:?} is not expected here"))),
    }
}

fn first_word(text: &str) -> &str {
    match name_length(text) {
        0 => "news",
        length => &text[..length],
    }
}

struct Parser<'t> {
    text: &'t str,
    at: usize,
    prefixes: Vec<(&'t str, &'t str)>,
    nesting: usize,
    /// Inside of `not(...)`.
    is_negated: bool,
}

impl<'t> Parser<'t> {
    fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    fn error(&self, message: impl Into<String>) -> PathError {
        PathError::new(self.at, message)
    }

    fn space(&mut self) {
        self.at = self.text.len() - self.rest().trim_start_matches([' ', '\t', '\n', '\r']).len();
    }

    /// Goes past `token`, if it comes next, and the space before it.
    fn take(&mut self, token: &str) -> bool {
        self.space();
        let found = self.rest().starts_with(token);
        if found {
            self.at += token.len();
        }
        found
    }

    /// Goes past a word that is not the beginning of a longer name.
    fn take_word(&mut self, word: &str) -> bool {
        self.space();
        let found = self.peek_name() == Some(word);
        if found {
            self.at += word.len();
        }
        found
    }

    fn expect(&mut self, token: &str, what: &str) -> Result<(), PathError> {
        if self.take(token) { Ok(()) } else { Err(self.error(format!("{token:?} is expected {what}"))) }
    }

    fn peek_name(&self) -> Option<&'t str> {
        match name_length(self.rest()) {
            0 => None,
            length => Some(&self.rest()[..length]),
        }
    }

    /// `declare namespace n = 'urn:news';`, any number of times.
    fn declarations(&mut self) -> Result<(), PathError> {
        while self.take_word("declare") {
            self.space();
            if !self.take_word("namespace") {
                return Err(self.error("\"namespace\" is expected after \"declare\""));
            }
            self.space();
            let Some(prefix) = self.peek_name() else {
                return Err(self.error("a prefix is expected after \"declare namespace\""));
            };
            let place = self.at;
            self.at += prefix.len();
            self.expect("=", "after the prefix")?;
            self.space();
            let uri_at = self.at;
            let Some(uri) = self.quoted()? else {
                return Err(self.error("the namespace is expected in quotes"));
            };
            if uri.is_empty() || uri.contains(['{', '}']) {
                return Err(PathError::new(uri_at, "a namespace is not empty and has no braces"));
            }
            if prefix == "xml" || self.prefixes.iter().any(|(known, _)| *known == prefix) {
                return Err(PathError::new(place, format!("the prefix {prefix} is declared twice")));
            }
            self.prefixes.push((prefix, uri));
            self.expect(";", "after a declaration")?;
        }
        Ok(())
    }

    fn quoted(&mut self) -> Result<Option<&'t str>, PathError> {
        self.space();
        let Some(quote) = self.rest().chars().next().filter(|c| matches!(c, '\'' | '"')) else {
            return Ok(None);
        };
        let Some(length) = self.rest()[1..].find(quote) else {
            return Err(self.error("this text has no closing quote"));
        };
        let text = &self.rest()[1..1 + length];
        self.at += length + 2;
        Ok(Some(text))
    }

    /// The steps of a path; an absolute one has slashes before its first step.
    fn steps(&mut self, absolute: bool) -> Result<Vec<Step>, PathError> {
        let mut steps: Vec<Step> = vec![];
        loop {
            self.space();
            let slashes_at = self.at;
            let axis = if self.take("//") {
                Axis::Descendant
            } else if self.take("/") || steps.is_empty() && !absolute {
                Axis::Child
            } else {
                return Ok(steps);
            };
            if let Some(last) = steps.last()
                && !matches!(last.test, Test::Element(_))
            {
                let message = "attributes and texts have no children: nothing can follow them";
                return Err(PathError::new(slashes_at, message));
            }
            if steps.len() == MAX_STEPS {
                return Err(self.error(format!("a path has at most {MAX_STEPS} steps")));
            }
            steps.push(self.step(axis)?);
        }
    }

    fn step(&mut self, mut axis: Axis) -> Result<Step, PathError> {
        self.space();
        let mut attribute = self.take("@");
        if let Some(name) = self.peek_name()
            && !attribute
            && self.rest()[name.len()..].trim_start().starts_with("::")
        {
            match name {
                "child" => {}
                "descendant" => axis = Axis::Descendant,
                "attribute" => attribute = true,
                other if OTHER_AXES.contains(&other) => {
                    return Err(self
                        .error(format!("the axis {other} is not supported"))
                        .with_hint("there are child (/a), descendant (//a) and attribute (@a)"));
                }
                other => return Err(self.error(format!("there is no axis {other}"))),
            }
            self.at += name.len();
            self.take("::");
        }
        self.space();
        let test = self.test(attribute)?;
        let weight = self.weight()?;
        let mut conditions = vec![];
        while self.take("[") {
            let condition = self.nested(|parser| parser.alternatives())?;
            self.expect("]", "at the end of a predicate")?;
            conditions.push(self.weighted(condition)?);
        }
        Ok(Step { axis, test, weight, conditions })
    }

    /// `^2.5`, if it comes next.
    fn weight(&mut self) -> Result<Option<f64>, PathError> {
        self.space();
        let start = self.at;
        if !self.take("^") {
            return Ok(None);
        }
        if self.is_negated {
            return Err(PathError::new(start, "what is inside not() counts nothing, so it has no weight")
                .with_hint("write the weight behind it: not(price > 5)^2"));
        }
        self.space();
        let hint = "write it as 2 or 0.5";
        match self.number()? {
            Some(Literal::Number(_, weight)) if weight.is_finite() && weight.is_sign_positive() => {
                if self.take("^") {
                    return Err(PathError::new(self.at - 1, "a weight is given twice"));
                }
                Ok(Some(weight))
            }
            _ => Err(PathError::new(start, "a weight is a number, finite and not negative").with_hint(hint)),
        }
    }

    /// A condition with the weight that follows it, if any.
    fn weighted(&mut self, condition: Condition) -> Result<Condition, PathError> {
        let start = self.at;
        match (condition, self.weight()?) {
            (Condition::Weighted(..), Some(_)) => Err(PathError::new(start, "a weight is given twice")),
            (condition, Some(weight)) => Ok(Condition::Weighted(Box::new(condition), weight)),
            (condition, None) => Ok(condition),
        }
    }

    fn test(&mut self, attribute: bool) -> Result<Test, PathError> {
        let named = if attribute { Test::Attribute } else { Test::Element };
        if self.rest().starts_with("..") {
            return Err(self.error("the parent (..) is not supported").with_hint(
                "put what is below the parent into a predicate: //item[price > 5]/title, not //price/../title",
            ));
        }
        if self.rest().starts_with('.') {
            return Err(self.error("the step . is only supported at the beginning of a path in a predicate"));
        }
        if self.take("*") {
            return Ok(named(NameTest::Any));
        }
        if self.rest().starts_with("Q{") {
            let Some(length) = self.rest().find('}') else {
                return Err(self.error("this Q{ has no closing brace"));
            };
            let uri = &self.rest()[2..length];
            if uri.contains('{') {
                return Err(self.error("a namespace has no braces"));
            }
            self.at += length + 1;
            return self.local_name(uri).map(named);
        }
        let start = self.at;
        let Some(name) = self.peek_name() else {
            return Err(match self.rest().chars().next() {
                None => self.error("a name is expected after the slash").with_hint("write /news or //news"),
                Some(other) => self.error(format!("a name, *, @ or text() is expected, not {other:?}")),
            });
        };
        self.at += name.len();
        if self.rest().starts_with(':') && !self.rest().starts_with("::") {
            self.at += 1;
            let Some((_, uri)) = self.prefixes.iter().find(|(known, _)| *known == name) else {
                return Err(PathError::new(start, format!("the prefix {name} is not declared")).with_hint(
                    format!(
                        "begin with declare namespace {name} = 'http://...'; or write Q{{http://...}}name"
                    ),
                ));
            };
            let uri = *uri;
            return self.local_name(uri).map(named);
        }
        if !attribute && self.rest().trim_start().starts_with('(') {
            return match name {
                "text" => {
                    self.take("(");
                    self.expect(")", "after text(")?;
                    Ok(Test::Text)
                }
                "node" | "comment" | "processing-instruction" => {
                    Err(PathError::new(start, format!("the node test {name}() is not supported"))
                        .with_hint("there are names, *, @name, @* and text()"))
                }
                _ => Err(self.unknown_function(start, name)),
            };
        }
        Ok(named(NameTest::Name(Name { namespace: "".into(), local: name.into() })))
    }

    fn local_name(&mut self, uri: &str) -> Result<NameTest, PathError> {
        let namespace: Arc<str> = uri.into();
        if self.rest().starts_with('*') {
            self.at += 1;
            return Ok(NameTest::AnyIn(namespace));
        }
        let Some(local) = self.peek_name() else {
            return Err(self.error("a name or * is expected after the namespace"));
        };
        self.at += local.len();
        Ok(NameTest::Name(Name { namespace, local: local.into() }))
    }

    fn unknown_function(&self, at: usize, name: &str) -> PathError {
        let hint = match name {
            "position" | "last" | "count" => {
                "positions and counts are not supported; test for what a node contains"
            }
            "true" | "false" => "leave the predicate out, or write TRUE or FALSE outside of the path",
            "string" | "number" | "normalize-space" => "compare the node itself: [title = 'x'], [price > 5]",
            _ => "there are not(), contains(), starts-with() and text()",
        };
        PathError::new(at, format!("the function {name}() is not supported")).with_hint(hint)
    }

    fn number(&mut self) -> Result<Option<Literal>, PathError> {
        let negative = self.rest().starts_with('-');
        let start = self.at + usize::from(negative);
        let after_sign = self.text[start..].trim_start();
        let is_digit = |text: &str| text.starts_with(|c: char| c.is_ascii_digit());
        if !is_digit(after_sign) && !after_sign.strip_prefix('.').is_some_and(is_digit) {
            return if negative {
                Err(self.error("a minus sign stands before numbers only"))
            } else {
                Ok(None)
            };
        }
        let from = self.text.len() - after_sign.len();
        let mut end = from;
        let mut points = 0;
        while let Some(byte) = self.text.as_bytes().get(end) {
            match byte {
                b'0'..=b'9' => {}
                b'.' if points == 0 => points = 1,
                _ => break,
            }
            end += 1;
        }
        let text = format!("{}{}", if negative { "-" } else { "" }, &self.text[from..end]);
        self.at = end;
        if name_length(self.rest()) > 0 {
            return Err(PathError::new(end, "a number ends before this")
                .with_hint("numbers are written 5, 5.25 or -5; names do not begin with a digit"));
        }
        let value = number(&text);
        Ok(Some(Literal::Number(text.into(), value)))
    }
}
