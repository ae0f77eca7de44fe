//! A user's own score: a small expression over the contributions of attributes to the relevance.
//!
//! ```text
//! min(price, distance) + 0.5 * age
//!
//! sum      product + product + ...
//! product  factor * factor, factor / number
//! factor   a number that is not negative, an attribute (`quoted` where its name needs it), (sum),
//!          min(sum, ...), max(sum, ...), sqrt(sum)
//! ```
//!
//! An attribute stands for the relevance of the match if only that attribute counted: 0 if none of its
//! predicates does. Every function of this language is *monotone*: if no contribution is smaller, neither is
//! the score. This makes upper bounds possible, and it is why there is no subtraction.

use crate::error::{Error, Result};

/// Levels of parentheses and calls.
const MAX_DEPTH: usize = 64;
/// Bytes of text.
const MAX_TEXT: usize = 64 << 10;

/// A monotone function of the contributions of some attributes.
#[derive(Clone, Debug, PartialEq)]
pub struct Function {
    text: Box<str>,
    attributes: Vec<Box<str>>,
    root: Node,
}

#[derive(Clone, Debug, PartialEq)]
enum Node {
    Number(f64),
    /// By its place in `attributes`.
    Attribute(usize),
    Sum(Vec<Node>),
    Product(Vec<Node>),
    Quotient(Box<Node>, f64),
    Min(Vec<Node>),
    Max(Vec<Node>),
    Sqrt(Box<Node>),
}

impl Function {
    /// Reads a function, or says where and why it cannot be read.
    ///
    /// ```
    /// use tamis_core::query::Function;
    /// let function = Function::parse("min(price, distance) + 0.5 * age").unwrap();
    /// assert_eq!(function.attributes(), ["price".into(), "distance".into(), "age".into()]);
    /// assert_eq!(function.evaluate(&[2.0, 3.0, 4.0]), 4.0);
    /// assert!(Function::parse("price - age").unwrap_err().to_string().contains("monotone"));
    /// ```
    pub fn parse(text: &str) -> Result<Self> {
        let mut parser = Parser { text, at: 0, depth: 0, attributes: vec![] };
        if text.len() > MAX_TEXT {
            return Err(parser.error("a score function may have at most 64 KiB"));
        }
        let root = parser.sum()?;
        match parser.peek() {
            None => Ok(Self { text: text.into(), attributes: parser.attributes, root }),
            Some('-') => Err(parser.error("a score must be monotone, so nothing can be subtracted")),
            Some(other) => Err(parser.error(&format!("expected +, *, / or the end, found {other:?}"))),
        }
    }

    /// As it was written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The attributes it asks for, in the order of first mention.
    pub fn attributes(&self) -> &[Box<str>] {
        &self.attributes
    }

    /// The score, given what each of [`attributes`](Self::attributes) contributes.
    pub fn evaluate(&self, contributions: &[f64]) -> f64 {
        let score = self.root.evaluate(contributions);
        // Only infinity times 0 gets here.
        if score.is_nan() { 0.0 } else { score }
    }

    /// The highest score of contributions up to `most`, which may be infinite.
    pub fn most(&self, most: &[f64]) -> f64 {
        let score = self.root.evaluate(most);
        // Infinity times 0 says nothing, so the score may be anything.
        if score.is_nan() { f64::INFINITY } else { score }
    }
}

impl Node {
    fn evaluate(&self, of: &[f64]) -> f64 {
        let all = |nodes: &[Node], combine: fn(f64, f64) -> f64| {
            nodes.iter().map(|node| node.evaluate(of)).reduce(combine).unwrap_or(0.0)
        };
        match self {
            Node::Number(number) => *number,
            Node::Attribute(at) => of[*at],
            Node::Sum(nodes) => all(nodes, |a, b| a + b),
            Node::Product(nodes) => all(nodes, |a, b| a * b),
            Node::Quotient(node, divisor) => node.evaluate(of) / divisor,
            Node::Min(nodes) => all(nodes, f64::min),
            Node::Max(nodes) => all(nodes, f64::max),
            Node::Sqrt(node) => node.evaluate(of).sqrt(),
        }
    }
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
    attributes: Vec<Box<str>>,
}

impl Parser<'_> {
    fn error(&self, what: &str) -> Error {
        let column = self.text[..self.at].chars().count() + 1;
        Error::Argument(format!("the score {:?}, column {column}: {what}", self.text))
    }

    fn peek(&mut self) -> Option<char> {
        let rest = &self.text[self.at..];
        self.at += rest.len() - rest.trim_start().len();
        self.text[self.at..].chars().next()
    }

    fn take(&mut self, wanted: char) -> bool {
        let found = self.peek() == Some(wanted);
        self.at += if found { wanted.len_utf8() } else { 0 };
        found
    }

    fn need(&mut self, wanted: char) -> Result<()> {
        if self.take(wanted) {
            return Ok(());
        }
        Err(self.error(&format!("expected {wanted:?}")))
    }

    fn sum(&mut self) -> Result<Node> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(self.error("nested too deeply"));
        }
        let mut terms = vec![self.product()?];
        while self.take('+') {
            terms.push(self.product()?);
        }
        self.depth -= 1;
        Ok(one_or(terms, Node::Sum))
    }

    fn product(&mut self) -> Result<Node> {
        let mut factors = vec![self.factor()?];
        loop {
            if self.take('*') {
                factors.push(self.factor()?);
            } else if self.take('/') {
                self.peek();
                let divisor = match self.factor()? {
                    Node::Number(number) if number > 0.0 => number,
                    _ => return Err(self.error("a score can only be divided by a number above 0")),
                };
                factors = vec![Node::Quotient(Box::new(one_or(factors, Node::Product)), divisor)];
            } else {
                return Ok(one_or(factors, Node::Product));
            }
        }
    }

    fn factor(&mut self) -> Result<Node> {
        match self.peek() {
            None => Err(self.error("expected an attribute or a number, found the end")),
            Some('(') => {
                self.at += 1;
                let inner = self.sum()?;
                self.need(')')?;
                Ok(inner)
            }
            Some('-') => Err(self.error("a score must be monotone, so nothing in it can be negative")),
            Some('`') => self.quoted(),
            Some(first) if first.is_ascii_digit() || first == '.' => self.number(),
            Some(first) if first.is_alphabetic() || first == '_' => self.name_or_call(),
            Some(other) => Err(self.error(&format!("expected an attribute or a number, found {other:?}"))),
        }
    }

    fn number(&mut self) -> Result<Node> {
        let rest = &self.text[self.at..];
        let mut end = 0;
        for (at, byte) in rest.bytes().enumerate() {
            let exponent_sign =
                matches!(byte, b'+' | b'-') && matches!(rest.as_bytes()[at.max(1) - 1], b'e' | b'E');
            if !(byte.is_ascii_alphanumeric() || byte == b'.' || exponent_sign) {
                break;
            }
            end = at + 1;
        }
        match rest[..end].parse::<f64>() {
            Ok(number) if number.is_finite() => {
                self.at += end;
                Ok(Node::Number(number))
            }
            _ => Err(self.error(&format!("{:?} is not a finite number", &rest[..end]))),
        }
    }

    fn quoted(&mut self) -> Result<Node> {
        let mut name = String::new();
        let mut end = self.at + 1;
        loop {
            let rest = &self.text[end..];
            let Some(quote) = rest.find('`') else {
                return Err(self.error("the backquote is never closed"));
            };
            name.push_str(&rest[..quote]);
            end += quote + 1;
            // Two backquotes are one, inside a name.
            if !self.text[end..].starts_with('`') {
                break;
            }
            name.push('`');
            end += 1;
        }
        self.at = end;
        Ok(self.attribute(&name))
    }

    fn name_or_call(&mut self) -> Result<Node> {
        let rest = &self.text[self.at..];
        let is_part = |letter: char| letter.is_alphanumeric() || letter == '_' || letter == '.';
        let end = rest.find(|letter| !is_part(letter)).unwrap_or(rest.len());
        let (start, name) = (self.at, &rest[..end]);
        self.at += end;
        if self.peek() != Some('(') {
            return Ok(self.attribute(name));
        }
        self.at += 1;
        let mut arguments = vec![self.sum()?];
        while self.take(',') {
            arguments.push(self.sum()?);
        }
        self.need(')')?;
        match name {
            "min" => Ok(one_or(arguments, Node::Min)),
            "max" => Ok(one_or(arguments, Node::Max)),
            "sqrt" if arguments.len() == 1 => Ok(Node::Sqrt(Box::new(arguments.remove(0)))),
            "sqrt" => Err(self.error("sqrt takes one argument")),
            _ => {
                self.at = start;
                Err(self.error(&format!("there is no function {name:?}; there are min, max and sqrt")))
            }
        }
    }

    fn attribute(&mut self, name: &str) -> Node {
        let known = self.attributes.iter().position(|other| **other == *name);
        Node::Attribute(known.unwrap_or_else(|| {
            self.attributes.push(name.into());
            self.attributes.len() - 1
        }))
    }
}

fn one_or(mut nodes: Vec<Node>, many: fn(Vec<Node>) -> Node) -> Node {
    if nodes.len() == 1 { nodes.remove(0) } else { many(nodes) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(text: &str, of: &[f64]) -> f64 {
        Function::parse(text).unwrap().evaluate(of)
    }

    #[test]
    fn binds_as_usual() {
        assert_eq!(value("1 + 2 * 3", &[]), 7.0);
        assert_eq!(value("(1 + 2) * 3 / 2", &[]), 4.5);
        assert_eq!(value("max(a, 2 * b.c, `d e`) + min(a, b.c)", &[3.0, 2.0, 1.0]), 6.0);
        assert_eq!(value("sqrt(a * a) + 1.5e-1", &[3.0]), 3.15);
        assert_eq!(value("a + A", &[1.0, 10.0]), 11.0);
        assert_eq!(value("min", &[4.0]), 4.0);
        assert_eq!(Function::parse("`a``b`").unwrap().attributes(), ["a`b".into()]);
    }

    #[test]
    fn what_is_not_monotone_or_no_function_is_refused() {
        for (text, part) in [
            ("a - b", "monotone"),
            ("-a", "monotone"),
            ("a / b", "divided by a number"),
            ("a / 0", "divided by a number"),
            ("", "found the end"),
            ("a b", "expected +"),
            ("log(a)", "no function \"log\""),
            ("min(a", "expected ')'"),
            ("`a", "never closed"),
            ("1e999", "finite"),
            ("1x", "finite"),
            ("a $ b", "found '$'"),
        ] {
            let error = Function::parse(text).unwrap_err().to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
        let deep = format!("{}a{}", "(".repeat(100), ")".repeat(100));
        assert!(Function::parse(&deep).unwrap_err().to_string().contains("nested too deeply"));
    }

    #[test]
    fn infinity_times_zero_is_a_score() {
        assert_eq!(value("a * b", &[f64::INFINITY, 0.0]), 0.0);
    }
}
