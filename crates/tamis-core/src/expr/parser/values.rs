//! Names of attributes, and the literals that they are compared with.

use std::borrow::Cow;

use super::cursor::{Cursor, shown};
use super::fault::{Fault, Parsed};
use super::lexer::{Kind, Reserved, Token};
use super::{advice, literals};
use crate::expr::limits::{MAX_NAME_BYTES, check_name, check_set_size, check_string_size};
use crate::value::Value;

impl<'a> Cursor<'a> {
    /// A name whose first token is the current one.
    pub fn name(&mut self) -> Parsed<Cow<'a, str>> {
        let first = self.token;
        self.advance()?;
        self.rest_of_name(first)
    }

    /// The dotted path that starts with a token just read, as one flat name.
    pub fn rest_of_name(&mut self, first: Token) -> Parsed<Cow<'a, str>> {
        let mut name = self.segment(first)?;
        while self.take(Kind::Dot)? {
            if !matches!(self.token.kind, Kind::Word | Kind::QuotedName | Kind::Reserved(_)) {
                return Err(self
                    .expected("a name after the dot")
                    .hint("a name of other characters needs backquotes: a.`1st`"));
            }
            let segment = self.segment(self.token)?;
            self.advance()?;
            let name = name.to_mut();
            name.push('.');
            name.push_str(&segment);
            if name.len() > MAX_NAME_BYTES {
                break;
            }
        }
        check_name(&name).map_err(|error| Fault::from_error(first.start, error))?;
        Ok(name)
    }

    fn segment(&self, token: Token) -> Parsed<Cow<'a, str>> {
        match (token.kind, self.slice(token)) {
            (Kind::QuotedName, "``") => {
                Err(Fault::new(token.start, "an attribute needs a name")
                    .hint("write it between the backquotes"))
            }
            (Kind::QuotedName, quoted) => Ok(Cow::Owned(literals::quoted_name(quoted))),
            (_, word) => Ok(Cow::Borrowed(word)),
        }
    }

    /// A literal: number, string, TRUE, FALSE, NULL, typed literal or array.
    pub fn value(&mut self) -> Parsed<Value> {
        let token = self.token;
        let value = match token.kind {
            Kind::Number => literals::number(self.lexeme(), false, token.start)?,
            Kind::Str { .. } | Kind::RawStr => return Ok(Value::Str(self.string()?.into())),
            Kind::Reserved(Reserved::True) => Value::Bool(true),
            Kind::Reserved(Reserved::False) => Value::Bool(false),
            Kind::Reserved(Reserved::Null) => Value::Null,
            Kind::Minus | Kind::Plus => {
                self.advance()?;
                if self.token.kind != Kind::Number {
                    return Err(self.expected("a number after the sign"));
                }
                literals::number(self.lexeme(), token.kind == Kind::Minus, token.start)?
            }
            Kind::Word => {
                self.advance()?;
                return match self.token.kind {
                    Kind::Open => self.value_call(token),
                    Kind::Str { .. } | Kind::RawStr => self.typed_literal(token),
                    _ => Err(self.not_a_value(token)),
                };
            }
            Kind::QuotedName => return Err(self.not_a_value(token)),
            Kind::Open => return Err(self.expected("a value").hint("write the value without parentheses")),
            _ => return Err(self.expected("a value")),
        };
        self.advance()?;
        Ok(value)
    }

    fn not_a_value(&self, token: Token) -> Box<Fault> {
        let word = self.slice(token);
        let message = format!("expected a value, found the attribute {}", shown(word));
        let hint = advice::for_word(word).unwrap_or_else(|| advice::TWO_ATTRIBUTES.into());
        Fault::new(token.start, message).hint(hint)
    }

    /// One or more strings; those that follow one another are one.
    fn string(&mut self) -> Parsed<Cow<'a, str>> {
        let start = self.token.start;
        let mut text = self.string_token()?;
        self.advance()?;
        while let Kind::Str { .. } | Kind::RawStr = self.token.kind {
            let next = self.string_token()?;
            text.to_mut().push_str(&next);
            self.check_string(text.len(), start)?;
            self.advance()?;
        }
        Ok(text)
    }

    fn string_token(&self) -> Parsed<Cow<'a, str>> {
        let lexeme = self.lexeme();
        let text = match self.token.kind {
            Kind::Str { plain } => literals::string(lexeme, plain, self.token.start)?,
            _ => literals::raw_string(lexeme),
        };
        self.check_string(text.len(), self.token.start)?;
        Ok(text)
    }

    fn check_string(&self, bytes: usize, at: usize) -> Parsed<()> {
        check_string_size(bytes).map_err(|error| Fault::from_error(at, error))
    }

    /// `TIMESTAMP '…'`: the word was read, the string is next.
    pub fn typed_literal(&mut self, word: Token) -> Parsed<Value> {
        let at = self.token.start;
        let text = self.string()?;
        let type_name = self.slice(word);
        literals::typed(type_name, &text, at).unwrap_or_else(|| {
            let message = format!("{} cannot stand before a string", shown(type_name));
            Err(Fault::new(word.start, message).hint(advice::for_typed_literal(type_name)))
        })
    }

    /// `ARRAY(…)` or `double('NaN')`: the word was read, the parenthesis is next.
    pub fn value_call(&mut self, word: Token) -> Parsed<Value> {
        let name = self.slice(word);
        if is_double(name) {
            self.advance()?;
            if !matches!(self.token.kind, Kind::Str { .. } | Kind::RawStr) {
                return Err(self.expected("a string").hint("write double('NaN')"));
            }
            let value = self.typed_literal(word)?;
            self.expect(Kind::Close, ")")?;
            return Ok(value);
        }
        if !is_array(name) {
            let message = format!("expected a value, found a call of {}", shown(name));
            let hint = advice::for_word(name).unwrap_or_else(|| {
                "the right side is a literal: a number, 'text', TIMESTAMP '…' or ARRAY(…)".into()
            });
            return Err(Fault::new(word.start, message).hint(hint));
        }
        self.values_in_parentheses().map(Value::Array)
    }

    /// `(value, …)`, which may be empty.
    pub fn values_in_parentheses(&mut self) -> Parsed<Vec<Value>> {
        if !self.take(Kind::Open)? {
            return Err(self
                .expected("a list in parentheses")
                .hint("put the values in parentheses: country IN ('CA', 'US')"));
        }
        let mut values = Vec::new();
        if self.take(Kind::Close)? {
            return Ok(values);
        }
        loop {
            let start = self.token.start;
            let value = self.value()?;
            if matches!(value, Value::Array(_)) {
                return Err(Fault::new(start, "an array cannot be a member of a list or of an array"));
            }
            values.push(value);
            check_set_size(values.len()).map_err(|error| Fault::from_error(start, error))?;
            if self.take(Kind::Close)? {
                return Ok(values);
            }
            self.expect(Kind::Comma, "a comma or )")?;
        }
    }
}

pub(super) fn is_double(name: &str) -> bool {
    name.eq_ignore_ascii_case("double")
}

pub(super) fn is_array(name: &str) -> bool {
    name.eq_ignore_ascii_case("array")
}
