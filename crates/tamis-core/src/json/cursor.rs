//! A pull parser for JSON text (RFC 8259): the reader asks for the next string, number or skip.
//!
//! Hand-written because an event needs four things that a general deserializer does not give together: a
//! distinction of integers and floats at any size, the byte of every error, values skipped without parsing
//! them, and strings borrowed from the text. Tests compare it with `serde_json`.
//!
//! Two readers give the same answers: [`ByteCursor`], which looks at every byte and says what is wrong where, and
//! [`TokenCursor`](super::token_cursor::TokenCursor), which goes from token to token of a text that was scanned.

use std::borrow::Cow;

use crate::value::Value;

/// What is wrong, at which byte.
#[derive(Debug)]
pub(crate) struct Fault {
    pub at: usize,
    pub message: String,
    pub hint: Option<&'static str>,
}

impl Fault {
    pub fn new(at: usize, message: impl Into<String>) -> Self {
        Self { at, message: message.into(), hint: None }
    }

    pub fn with_hint(mut self, hint: &'static str) -> Self {
        self.hint = Some(hint);
        self
    }
}

/// A place in JSON text, which moves on as tokens are read.
pub(crate) trait Cursor<'a>: Clone {
    /// The byte of the next token, or of the white space before it.
    fn at(&self) -> usize;

    /// All there is, read or not.
    fn text(&self) -> &'a str;

    /// The first byte of the next token, which is not consumed; `None` at the end of the text.
    fn peek(&mut self) -> Option<u8>;

    /// Consumes the next token if it is this one, of one byte.
    fn take(&mut self, token: u8) -> bool;

    /// Goes past a name of this many bytes, of which all or none are left, and the colon after it.
    fn after_name(&mut self, bytes: usize) -> Result<(), Fault>;

    /// `true`, `false` or `null`.
    fn word(&mut self, word: &str) -> Result<(), Fault>;

    /// A string, borrowed from the text unless it has escapes.
    fn string(&mut self) -> Result<Cow<'a, str>, Fault>;

    /// A number, where one that no value can hold is told from text that is no number. The cursor is after it.
    fn numeral(&mut self) -> Result<Result<Value, Fault>, Fault>;

    /// Goes past one value of any depth without recursion; only its syntax is checked.
    fn skip(&mut self) -> Result<(), Fault>;

    /// Goes past a member of an object, and the comma after it, if `is_passed` says so of what is not read yet, from its name on.
    /// Whether it did. A cursor that says what is wrong passes none: faults have a path.
    #[inline]
    fn pass_member(&mut self, _is_passed: impl FnOnce(&[u8]) -> bool) -> bool {
        false
    }

    /// The name that comes next, without its quotes, if it is known to have no escapes. Nothing is consumed. Without a colon
    /// behind it, it is no name, and [`after_name`](Self::after_name) says so.
    #[inline]
    fn plain_name(&self) -> Option<&'a str> {
        None
    }

    /// What is not read yet.
    #[inline]
    fn rest(&self) -> &'a [u8] {
        &self.text().as_bytes()[self.at()..]
    }

    /// Consumes the next token, which must be this one.
    #[inline]
    fn expect(&mut self, token: u8, expected: &str) -> Result<(), Fault> {
        if self.take(token) { Ok(()) } else { Err(self.unexpected(expected)) }
    }

    /// A number. One with a fraction or an exponent is a float, rounded to the nearest; but with more digits than
    /// any float is written with, it is exact.
    fn number(&mut self) -> Result<Value, Fault> {
        self.numeral()?
    }

    /// Complains about the next token.
    #[cold]
    fn unexpected(&mut self, expected: &str) -> Fault {
        match self.peek() {
            None => Fault::new(self.at(), format!("the text ends where {expected} should follow")),
            Some(_) => {
                let found = self.text()[self.at()..].chars().next().unwrap_or_default();
                let fault = Fault::new(self.at(), format!("expected {expected}, found {found:?}"));
                if found == '\'' { fault.with_hint("JSON uses double quotes") } else { fault }
            }
        }
    }

    /// Whether the object that starts here may have a dollar in its first name: that starts with one, or with an escape.
    #[inline]
    fn may_open_marker(&self) -> bool {
        let mut ahead = self.clone();
        ahead.take(b'{') && ahead.peek() == Some(b'"') && is_marker(ahead.rest())
    }
}

/// Whether a string in quotes starts with a dollar, or with an escape.
pub(super) fn is_marker(string: &[u8]) -> bool {
    matches!(string.get(1), Some(b'$' | b'\\'))
}

/// Looks at every byte.
#[derive(Clone)]
pub(crate) struct ByteCursor<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Cursor<'a> for ByteCursor<'a> {
    fn at(&self) -> usize {
        self.at
    }

    fn text(&self) -> &'a str {
        self.text
    }

    #[inline]
    fn peek(&mut self) -> Option<u8> {
        while let Some(byte) = self.byte() {
            if !matches!(byte, b' ' | b'\n' | b'\r' | b'\t') {
                return Some(byte);
            }
            self.at += 1;
        }
        None
    }

    #[inline]
    fn take(&mut self, token: u8) -> bool {
        let found = self.peek() == Some(token);
        self.at += found as usize;
        found
    }

    #[inline]
    fn after_name(&mut self, bytes: usize) -> Result<(), Fault> {
        self.at += bytes;
        self.expect(b':', "`:` after a name")
    }

    fn word(&mut self, word: &str) -> Result<(), Fault> {
        if self.text[self.at..].starts_with(word) {
            self.at += word.len();
            return Ok(());
        }
        Err(self.unexpected("a value"))
    }

    fn string(&mut self) -> Result<Cow<'a, str>, Fault> {
        let start = self.open_string()?;
        self.run_of_plain_bytes();
        if self.byte() == Some(b'"') {
            let plain = &self.text[start..self.at];
            self.at += 1;
            return Ok(Cow::Borrowed(plain));
        }
        let mut decoded = String::from(&self.text[start..self.at]);
        loop {
            match self.byte() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(Cow::Owned(decoded));
                }
                Some(b'\\') => decoded.push(self.escape()?),
                _ => return Err(self.broken_string(start)),
            }
            let run = self.at;
            self.run_of_plain_bytes();
            decoded.push_str(&self.text[run..self.at]);
        }
    }

    fn numeral(&mut self) -> Result<Result<Value, Fault>, Fault> {
        let start = self.at;
        let is_integer = self.scan_number()?;
        Ok(self.value_of_digits(start, is_integer))
    }

    fn skip(&mut self) -> Result<(), Fault> {
        let mut open = Vec::new();
        loop {
            match self.peek() {
                Some(b'{') => {
                    self.at += 1;
                    if !self.take(b'}') {
                        open.push(b'}');
                        self.skip_name()?;
                        continue;
                    }
                }
                Some(b'[') => {
                    self.at += 1;
                    if !self.take(b']') {
                        open.push(b']');
                        continue;
                    }
                }
                Some(b'"') => self.skip_string()?,
                Some(b'-' | b'0'..=b'9') => drop(self.scan_number()?),
                Some(b't') => self.word("true")?,
                Some(b'f') => self.word("false")?,
                Some(b'n') => self.word("null")?,
                _ => return Err(self.unexpected("a value")),
            }
            loop {
                let Some(close) = open.last() else { return Ok(()) };
                if self.take(*close) {
                    open.pop();
                } else if *close == b'}' {
                    self.expect(b',', "`,` or `}`")?;
                    self.skip_name()?;
                    break;
                } else {
                    self.expect(b',', "`,` or `]`")?;
                    break;
                }
            }
        }
    }
}

impl<'a> ByteCursor<'a> {
    pub fn new(text: &'a str) -> Self {
        Self::from(text, 0)
    }

    /// From a place on, which is not inside a character.
    pub fn from(text: &'a str, at: usize) -> Self {
        Self { text, at }
    }

    #[inline]
    fn byte(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn skip_string(&mut self) -> Result<(), Fault> {
        let start = self.open_string()?;
        loop {
            self.run_of_plain_bytes();
            match self.byte() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(());
                }
                Some(b'\\') => self.escape()?,
                _ => return Err(self.broken_string(start)),
            };
        }
    }

    /// The byte after the opening quote.
    fn open_string(&mut self) -> Result<usize, Fault> {
        self.expect(b'"', "a string")?;
        Ok(self.at)
    }

    /// Everything but quotes, escapes and control characters.
    #[inline]
    fn run_of_plain_bytes(&mut self) {
        let rest = &self.text.as_bytes()[self.at..];
        let run = rest.iter().position(|byte| !IS_PLAIN[*byte as usize]);
        self.at += run.unwrap_or(rest.len());
    }

    fn broken_string(&self, start: usize) -> Fault {
        match self.byte() {
            None => Fault::new(start - 1, "this string does not end"),
            Some(control) => {
                Fault::new(self.at, format!("a string holds the control character {control:#04x}"))
                    .with_hint("write it as an escape, such as \\n")
            }
        }
    }

    fn escape(&mut self) -> Result<char, Fault> {
        let (letter, end) = escape(self.text.as_bytes(), self.at)?;
        self.at = end;
        Ok(letter)
    }

    #[inline]
    fn value_of_digits(&self, start: usize, is_integer: bool) -> Result<Value, Fault> {
        let digits = &self.text[start..self.at];
        if is_integer {
            let too_large = || {
                Fault::new(start, format!("the integer {} does not fit in 64 bits", shortened(digits)))
                    .with_hint("write it as a float (1e20), exactly as {\"$decimal\": \"…\"}, or as a string")
            };
            return digits.parse().map(Value::Int).map_err(|_| too_large());
        }
        if has_more_digits_than_floats(digits) {
            return Value::decimal(digits).map_err(|refused| {
                Fault::new(start, format!("the number {} cannot be read: {refused}", shortened(digits)))
                    .with_hint("write it with fewer digits, or as a string")
            });
        }
        match digits.parse::<f64>() {
            Ok(x) if x.is_finite() => Ok(Value::Float(x)),
            _ => Err(Fault::new(
                start,
                format!("the number {} is beyond every 64-bit float", shortened(digits)),
            )
            .with_hint("infinity is written {\"$float\": \"Infinity\"}")),
        }
    }

    /// Goes to the end of a number; whether it is written as an integer.
    fn scan_number(&mut self) -> Result<bool, Fault> {
        let start = self.at;
        if self.byte() == Some(b'-') {
            self.at += 1;
        }
        let first = self.byte();
        let whole = self.run_of_digits();
        if whole == 0 {
            return Err(Fault::new(self.at, "a number needs a digit here"));
        }
        if whole > 1 && first == Some(b'0') {
            return Err(Fault::new(start, "a number must not start with 0"));
        }
        let mut is_integer = true;
        if self.byte() == Some(b'.') {
            self.at += 1;
            is_integer = false;
            if self.run_of_digits() == 0 {
                return Err(Fault::new(self.at, "a number needs a digit after its point"));
            }
        }
        if matches!(self.byte(), Some(b'e' | b'E')) {
            self.at += 1;
            is_integer = false;
            if matches!(self.byte(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            if self.run_of_digits() == 0 {
                return Err(Fault::new(self.at, "a number needs a digit in its exponent"));
            }
        }
        Ok(is_integer)
    }

    fn run_of_digits(&mut self) -> usize {
        let rest = &self.text.as_bytes()[self.at..];
        let run = rest.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(rest.len());
        self.at += run;
        run
    }

    fn skip_name(&mut self) -> Result<(), Fault> {
        if self.peek() != Some(b'"') {
            return Err(self.unexpected("a name in quotes"));
        }
        self.skip_string()?;
        self.after_name(0)
    }
}

/// The character that the escape at a place stands for, and the place after it.
pub(super) fn escape(text: &[u8], start: usize) -> Result<(char, usize), Fault> {
    let unknown = || Fault::new(start, "unknown escape in a string");
    let letter = match *text.get(start + 1).ok_or_else(unknown)? {
        letter @ (b'"' | b'\\' | b'/') => letter as char,
        b'b' => '\u{8}',
        b'f' => '\u{c}',
        b'n' => '\n',
        b'r' => '\r',
        b't' => '\t',
        b'u' => {
            let lone = || Fault::new(start, "half of a surrogate pair stands alone in a string");
            let first = hex(text, start + 2, start)?;
            if !(0xD800..0xDC00).contains(&first) {
                return char::from_u32(first).map(|letter| (letter, start + 6)).ok_or_else(lone);
            }
            if text.get(start + 6..start + 8) != Some(b"\\u") {
                return Err(lone());
            }
            let second = hex(text, start + 8, start)?;
            if !(0xDC00..0xE000).contains(&second) {
                return Err(lone());
            }
            let code = 0x10000 + ((first - 0xD800) << 10) + (second - 0xDC00);
            return char::from_u32(code).map(|letter| (letter, start + 12)).ok_or_else(lone);
        }
        _ => return Err(unknown()),
    };
    Ok((letter, start + 2))
}

/// The number of four hexadecimal digits, of an escape that starts at `start`.
fn hex(text: &[u8], at: usize, start: usize) -> Result<u32, Fault> {
    let digits = text.get(at..at + 4).filter(|digits| digits.iter().all(u8::is_ascii_hexdigit));
    let Some(digits) = digits else {
        return Err(Fault::new(start, "\\u must be followed by four hexadecimal digits"));
    };
    Ok(digits.iter().fold(0, |code, digit| code * 16 + (*digit as char).to_digit(16).unwrap_or(0)))
}

/// Bytes that stand for themselves in a string. A table, as it is asked for every byte.
static IS_PLAIN: [bool; 256] = {
    let mut plain = [true; 256];
    let mut control = 0;
    while control < 0x20 {
        plain[control] = false;
        control += 1;
    }
    plain[b'"' as usize] = false;
    plain[b'\\' as usize] = false;
    plain
};

/// Whether a number has digits behind the 17th, zeros around them aside: no float is written so.
fn has_more_digits_than_floats(number: &str) -> bool {
    const MOST_DIGITS_OF_FLOATS: usize = 17;
    if number.len() <= MOST_DIGITS_OF_FLOATS {
        return false;
    }
    let mantissa = number.split(['e', 'E']).next().unwrap_or_default();
    let is_zero = |c: char| matches!(c, '0' | '.' | '-');
    let significant = mantissa.trim_start_matches(is_zero).trim_end_matches(is_zero);
    significant.bytes().filter(u8::is_ascii_digit).count() > MOST_DIGITS_OF_FLOATS
}

fn shortened(digits: &str) -> Cow<'_, str> {
    if digits.len() <= 40 { digits.into() } else { format!("{}…", &digits[..40]).into() }
}
