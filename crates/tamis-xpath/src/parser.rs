//! From text to [`Path`]; what is not in the subset is refused with its place and what would work.

use std::sync::Arc;

use crate::ast::{
    Axis, Comparison, Condition, Literal, Name, NameTest, Path, RelativePath, Step, Test, XML_NAMESPACE,
};
use crate::error::PathError;
use crate::names::name_length;
use crate::number::number;

const MAX_BYTES: usize = 16 << 10;
/// Steps of one path: the states of an evaluation are the bits of a word.
pub(crate) const MAX_STEPS: usize = 62;
/// Predicates inside predicates, and parentheses.
const MAX_NESTING: usize = 32;

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

/// What stands on one side of a comparison.
enum Operand {
    Path(RelativePath),
    Literal(Literal),
    Condition(Condition),
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

    fn nested<T>(&mut self, parse: impl FnOnce(&mut Self) -> Result<T, PathError>) -> Result<T, PathError> {
        if self.nesting == MAX_NESTING {
            return Err(self.error(format!("predicates are nested deeper than {MAX_NESTING} levels")));
        }
        self.nesting += 1;
        let parsed = parse(self);
        self.nesting -= 1;
        parsed
    }

    fn alternatives(&mut self) -> Result<Condition, PathError> {
        self.chain("or", Condition::Or, |parser| {
            parser.chain("and", Condition::And, |parser| parser.comparison())
        })
    }

    fn chain(
        &mut self,
        word: &str,
        join: fn(Vec<Condition>) -> Condition,
        mut part: impl FnMut(&mut Self) -> Result<Condition, PathError>,
    ) -> Result<Condition, PathError> {
        let mut parts = vec![part(self)?];
        while self.take_word(word) {
            parts.push(part(self)?);
        }
        Ok(if parts.len() == 1 { parts.remove(0) } else { join(parts) })
    }

    fn comparison(&mut self) -> Result<Condition, PathError> {
        self.space();
        let start = self.at;
        let left = self.operand()?;
        self.space();
        let operator_at = self.at;
        let Some(comparison) = self.comparison_symbol() else {
            return match left {
                Operand::Path(path) => Ok(Condition::Exists(path)),
                Operand::Condition(condition) => Ok(condition),
                Operand::Literal(Literal::Number(..)) => {
                    Err(PathError::new(start, "positions are not supported")
                        .with_hint("choose nodes by what they contain: item[price > 5], item[@id = '1']"))
                }
                Operand::Literal(Literal::Text(_)) => {
                    Err(PathError::new(start, "a text on its own is no predicate")
                        .with_hint("compare it with something: [title = 'x']"))
                }
            };
        };
        let right_at = {
            self.space();
            self.at
        };
        let right = self.operand()?;
        let condition = match (left, right) {
            (Operand::Path(path), Operand::Literal(literal)) => Condition::Compare(path, comparison, literal),
            (Operand::Literal(literal), Operand::Path(path)) => {
                Condition::Compare(path, comparison.flipped(), literal)
            }
            (Operand::Path(_), Operand::Path(_)) => {
                return Err(PathError::new(right_at, "two paths are not compared with one another")
                    .with_hint("compare a path with a number or with a text in quotes"));
            }
            (Operand::Literal(_), Operand::Literal(_)) => {
                return Err(PathError::new(
                    operator_at,
                    "two values are compared, which does not depend on any document",
                ));
            }
            _ => {
                return Err(PathError::new(operator_at, "only paths are compared with values")
                    .with_hint("join conditions with and, or and not()"));
            }
        };
        self.space();
        if self.rest().starts_with(['=', '!', '<', '>']) {
            return Err(self.error("comparisons do not follow one another").with_hint("join them with and"));
        }
        if self.rest().starts_with('^') {
            return Err(self
                .error("a weight stands behind a predicate or a parenthesis, not behind a value")
                .with_hint("write [price > 5]^2 or (price > 5)^2"));
        }
        Ok(condition)
    }

    fn comparison_symbol(&mut self) -> Option<Comparison> {
        use Comparison::{Equal, Greater, GreaterOrEqual, Less, LessOrEqual, NotEqual};
        let all = [NotEqual, LessOrEqual, GreaterOrEqual, Equal, Less, Greater];
        all.into_iter().find(|comparison| self.take(comparison.symbol()))
    }

    fn operand(&mut self) -> Result<Operand, PathError> {
        self.space();
        if let Some(text) = self.quoted()? {
            return Ok(Operand::Literal(Literal::Text(text.into())));
        }
        if let Some(literal) = self.number()? {
            return Ok(Operand::Literal(literal));
        }
        if self.take("(") {
            let inner = self.nested(|parser| parser.alternatives())?;
            self.expect(")", "to close the parenthesis")?;
            // A path in parentheses is still a path, but only its existence is asked here.
            return self.weighted(inner).map(Operand::Condition);
        }
        if self.rest().starts_with('/') {
            return Err(self
                .error("a path in a predicate begins at the node, not at the document")
                .with_hint("write .//a, or another xpath() for what is elsewhere in the document"));
        }
        let start = self.at;
        if let Some(name) = self.peek_name()
            && !matches!(name, "text" | "node" | "comment" | "processing-instruction")
            && self.rest()[name.len()..].trim_start().starts_with('(')
        {
            self.at += name.len();
            self.take("(");
            return self.call(start, name).map(Operand::Condition);
        }
        self.relative_path().map(Operand::Path)
    }

    fn call(&mut self, start: usize, name: &str) -> Result<Condition, PathError> {
        let condition = match name {
            "not" => {
                let outside = std::mem::replace(&mut self.is_negated, true);
                let inner = self.nested(|parser| parser.alternatives())?;
                self.is_negated = outside;
                Condition::Not(Box::new(inner))
            }
            "contains" | "starts-with" => {
                let path = match self.operand()? {
                    Operand::Path(path) => path,
                    _ => {
                        return Err(PathError::new(start, format!("{name}() takes a path and a text"))
                            .with_hint(format!("write {name}(title, 'x') or {name}(., 'x')")));
                    }
                };
                self.expect(",", &format!("between the path and the text of {name}()"))?;
                let Some(text) = self.quoted()? else {
                    return Err(self.error(format!("{name}() takes a text in quotes")));
                };
                if name == "contains" {
                    Condition::Contains(path, text.into())
                } else {
                    Condition::StartsWith(path, text.into())
                }
            }
            _ => return Err(self.unknown_function(start, name)),
        };
        self.expect(")", &format!("at the end of {name}()"))?;
        self.weighted(condition)
    }

    fn relative_path(&mut self) -> Result<RelativePath, PathError> {
        if self.rest().starts_with('.') && !self.rest().starts_with("..") {
            self.at += 1;
            self.space();
            if self.rest().starts_with('/') {
                return self.steps(true).map(|steps| RelativePath { steps });
            }
            if self.rest().starts_with('[') {
                return Err(self.error("a predicate cannot follow .").with_hint("join conditions with and"));
            }
            if self.rest().starts_with('^') {
                return Err(self.error("a weight cannot follow .").with_hint("write (.)^2"));
            }
            return Ok(RelativePath { steps: vec![] });
        }
        let steps = self.steps(false)?;
        self.space();
        match self.rest().chars().next() {
            Some('|') => {
                Err(self.error("a union of paths is not supported").with_hint("join conditions with or"))
            }
            Some('+' | '*') => Err(self
                .error("arithmetic is not supported")
                .with_hint("compare a path with a number: [price > 5]")),
            _ => Ok(RelativePath { steps }),
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    fn printed(text: &str) -> String {
        let path = parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        let printed = path.to_string();
        assert_eq!(parse(&printed).unwrap(), path, "{printed}");
        printed
    }

    #[test]
    fn paths_print_as_they_were_written() {
        for text in [
            "/a",
            "//a",
            "/a/b//c/*",
            "//*//@id",
            "/a/text()",
            "/a//text()",
            "/a/@*",
            "/a[b]",
            "/a[.//b/@c]",
            "/a[. = 'x']",
            "/a[b = 5][@c != \"it's\"]",
            "/a[b < -5.25 or c >= .5 and not(d)]",
            "/a[(b or c) and d]",
            "/a[contains(., 'x') and starts-with(b/c, 'y')]/d",
            "/a[b[c[d = 'x']]]",
            "/Q{urn:x}a/Q{urn:x}*/@xml:lang",
            "/a[@id[. = 'x' and not(. = 'y')]]",
            "/or[and]/div[mod or or]",
            "/a^2/b^0.5[c]^3[d]//@e^1",
            "/a[(b > 5)^2 or (c)^0 or (not(d))^1.5]",
            "/a[b^2/c^3 = 'x' and contains(d^4, 'y')]",
            "/a[contains(b, 'y')]^2",
        ] {
            assert_eq!(printed(text), text);
        }
    }

    #[test]
    fn other_spellings_have_one_form() {
        for (text, form) in [
            ("  / a // b [ c ] ", "/a//b[c]"),
            ("/child::a/descendant::b/attribute::c", "/a//b/@c"),
            ("/a[5 < b]", "/a[b > 5]"),
            ("/a[./b and .//c]", "/a[b and .//c]"),
            ("/a[(b)]", "/a[b]"),
            ("/a[b>-  5]", "/a[b > -5]"),
            ("/a ^ 2.50 [ (b = 1) ^ 03 ]", "/a^2.5[b = 1]^3"),
            ("/a[not(b)^2 and contains(c, 'x') ^ .5]", "/a[(not(b))^2 and (contains(c, 'x'))^0.5]"),
            (
                "declare namespace n='urn:n'; declare namespace m = \"urn:m\";//n:a/m:*[@n:b]",
                "//Q{urn:n}a/Q{urn:m}*[@Q{urn:n}b]",
            ),
        ] {
            assert_eq!(printed(text), form);
        }
    }

    #[test]
    fn what_is_not_supported_is_refused_with_its_place() {
        for (text, place, part) in [
            ("", 0, "begins with"),
            ("news/item", 0, "begins with"),
            ("/", 1, "name is expected"),
            ("/a/", 3, "name is expected"),
            ("/a[1]", 3, "positions"),
            ("/a[position() = 1]", 3, "position()"),
            ("/a[last()]", 3, "last()"),
            ("/a/..", 3, "parent"),
            ("/a/.", 3, "step ."),
            ("/a/parent::b", 3, "axis parent"),
            ("/a/following-sibling::b", 3, "axis following-sibling"),
            ("/a/upwards::b", 3, "no axis"),
            ("/a | /b", 3, "union"),
            ("/a[b | c]", 5, "union"),
            ("/a/b > 5", 5, "compared"),
            ("/a[b = c]", 7, "two paths"),
            ("/a['x' = 'x']", 7, "two values"),
            ("/a['x']", 3, "on its own"),
            ("/a[b = 'x]", 7, "closing quote"),
            ("/a[b", 4, "\"]\""),
            ("/a[/b]", 3, "begins at the node"),
            ("/a[count(b) > 5]", 3, "count()"),
            ("/a[b + 1 > 5]", 5, "arithmetic"),
            ("/a[1 < b < 5]", 9, "follow one another"),
            ("/a[contains(b)]", 13, "\",\""),
            ("/a[contains('x', b)]", 3, "path and a text"),
            ("/a[contains(b, c)]", 15, "text in quotes"),
            ("/n:a", 1, "prefix n"),
            ("/a/node()", 3, "node()"),
            ("/a/comment()", 3, "comment()"),
            ("/a/@b/c", 5, "no children"),
            ("/a/text()/b", 9, "no children"),
            ("/a[true()]", 3, "true()"),
            ("/a b", 3, "not expected"),
            ("/a[b = 5x]", 8, "number ends"),
            ("/a[.[b]]", 4, "cannot follow ."),
            ("/a^", 2, "a weight is a number"),
            ("/a^-1", 2, "a weight is a number"),
            ("/a^'2'", 2, "a weight is a number"),
            ("/a^2^3", 4, "given twice"),
            ("/a[(b)^2]^3", 9, "given twice"),
            ("/a[b > 5^2]", 8, "not behind a value"),
            ("/a[.^2]", 4, "cannot follow ."),
            ("/a[not(b^2)]", 8, "inside not()"),
            ("/a[not((b)^2 or c)]", 10, "inside not()"),
            ("declare namespace a = ''; /a:b", 22, "not empty"),
        ] {
            let error = parse(text).unwrap_err();
            assert_eq!(error.offset, place, "{text}: {error}");
            assert!(error.message.contains(part), "{text}: {error}");
        }
    }

    #[test]
    fn the_weights_of_a_path_have_a_finite_sum() {
        let large = "9".repeat(308);
        assert!(parse(&format!("/a^{large}/b")).is_ok());
        assert!(parse(&format!("/a^{large}9")).unwrap_err().message.contains("a weight is a number"));
        let many = format!("/a{}", format!("/b^{large}").repeat(20));
        assert!(parse(&many).unwrap_err().message.contains("add up to more"));
    }

    #[test]
    fn size_and_nesting_are_bounded() {
        let long = format!("/a{}", "/a".repeat(MAX_STEPS));
        assert!(parse(&long).unwrap_err().message.contains("steps"));
        assert!(parse(&long[2..]).is_ok());
        let deep = format!("/a{}{}", "[a".repeat(40), "]".repeat(40));
        assert!(parse(&deep).unwrap_err().message.contains("nested deeper"));
        let deep = format!("/a[{}a{}]", "(".repeat(40_000), ")".repeat(40_000));
        assert!(parse(&deep).unwrap_err().message.contains("longer than"));
        let deep = format!("/a[{}a{}]", "not(".repeat(1000), ")".repeat(1000));
        assert!(parse(&deep).unwrap_err().message.contains("nested deeper"));
    }
}
