//! Writes names and values in the syntax of expressions.

use std::fmt::{self, Display, Formatter, Write};

use crate::value::Value;
use crate::value::decimal::float_text;
use crate::value::timestamp::format_timestamp;

/// Every reserved word, which is a name only in backquotes; `REGEXP` is another spelling of `RLIKE`.
pub const RESERVED_WORDS: [&str; 16] = [
    "AND", "OR", "NOT", "XOR", "XNOR", "IN", "BETWEEN", "IS", "NULL", "LIKE", "ILIKE", "RLIKE", "REGEXP",
    "ESCAPE", "TRUE", "FALSE",
];

/// Whether a name is a word that needs no backquotes: a letter or `_`, then letters, digits and `_`, and
/// not a reserved word.
pub fn is_plain_word(name: &str) -> bool {
    let starts_well = name.chars().next().is_some_and(|c| is_word_char(c) && !c.is_numeric());
    let is_reserved = || RESERVED_WORDS.iter().any(|reserved| reserved.eq_ignore_ascii_case(name));
    starts_well && name.chars().all(is_word_char) && !is_reserved()
}

/// Whether a character can be part of a word.
pub fn is_word_char(c: char) -> bool {
    c == '_' || c.is_alphanumeric()
}

/// An attribute name, each part of its path in backquotes where it needs them.
pub struct Name<'a>(pub &'a str);

impl Display for Name<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if is_plain_word(self.0) {
            return f.write_str(self.0);
        }
        // Nothing can stand between two dots, so such a name is quoted as a whole.
        if self.0.split('.').any(str::is_empty) {
            return write_quoted(f, self.0, '`');
        }
        for (at, part) in self.0.split('.').enumerate() {
            if at > 0 {
                f.write_char('.')?;
            }
            match is_plain_word(part) {
                true => f.write_str(part)?,
                false => write_quoted(f, part, '`')?,
            }
        }
        Ok(())
    }
}

/// A text between quotes, with quotes inside doubled.
pub fn write_quoted(f: &mut impl Write, text: &str, quote: char) -> fmt::Result {
    f.write_char(quote)?;
    for c in text.chars() {
        if c == quote {
            f.write_char(quote)?;
        }
        f.write_char(c)?;
    }
    f.write_char(quote)
}

/// Values with commas between them.
pub struct List<'a>(pub &'a [Value]);

impl Display for List<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for (at, value) in self.0.iter().enumerate() {
            if at > 0 {
                f.write_str(", ")?;
            }
            LiteralText(value).fmt(f)?;
        }
        Ok(())
    }
}

/// A value as a literal of the language; records and intervals, which only events have, in words.
pub struct LiteralText<'a>(pub &'a Value);

impl Display for LiteralText<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.0 {
            Value::Null => f.write_str("NULL"),
            Value::Bool(true) => f.write_str("TRUE"),
            Value::Bool(false) => f.write_str("FALSE"),
            Value::Int(i) => i.fmt(f),
            Value::Float(x) if x.is_nan() => f.write_str("double('NaN')"),
            Value::Float(f64::INFINITY) => f.write_str("double('Infinity')"),
            Value::Float(f64::NEG_INFINITY) => f.write_str("double('-Infinity')"),
            // Always with a point or an exponent.
            Value::Float(x) => f.write_str(&float_text(*x)),
            Value::Decimal(decimal) => decimal.fmt(f),
            Value::Str(text) | Value::Cell(text) => write_string(f, text),
            Value::Timestamp(micros) => write!(f, "TIMESTAMP '{}'", format_timestamp(*micros)),
            Value::Array(items) => write!(f, "ARRAY({})", List(items)),
            Value::Record | Value::Fields(_) | Value::Nested(_) => f.write_str("a record"),
            Value::Interval(ends) => write!(f, "in [{}, {}]", LiteralText(&ends.0), LiteralText(&ends.1)),
            Value::Set(set) => f.write_str(set.text()),
        }
    }
}

/// A string literal with Spark's escapes.
pub fn write_string(f: &mut impl Write, text: &str) -> fmt::Result {
    f.write_char('\'')?;
    let mut written = 0;
    for (at, byte) in text.bytes().enumerate() {
        let escape = match byte {
            b'\'' => "\\'",
            b'\\' => "\\\\",
            b'\n' => "\\n",
            b'\r' => "\\r",
            b'\t' => "\\t",
            0..0x20 | 0x7F => "",
            _ => continue,
        };
        f.write_str(&text[written..at])?;
        match escape {
            "" => write!(f, "\\u{byte:04X}")?,
            escape => f.write_str(escape)?,
        }
        written = at + 1;
    }
    f.write_str(&text[written..])?;
    f.write_char('\'')
}
