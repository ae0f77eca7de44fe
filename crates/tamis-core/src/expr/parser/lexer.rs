//! Text to tokens: words, names in backquotes, numbers, strings and symbols.
//!
//! A token is a kind and a span of the text, so reading one allocates nothing; [`literals`](super::literals)
//! turns the spans of numbers and strings into values. White space and comments (`-- …`, `/* … */`)
//! separate tokens and mean nothing else.

use super::fault::{Fault, Parsed};
use crate::text::is_word_char;

/// What a token is. Reserved words are kinds of their own, all other words are [`Kind::Word`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    End,
    /// An unquoted name, a function, or a word that is not reserved.
    Word,
    /// A name in backquotes.
    QuotedName,
    Number,
    /// A string in single or double quotes; `plain` when it holds neither an escape nor a doubled quote.
    Str {
        plain: bool,
    },
    /// `r'…'`
    RawStr,
    Reserved(Reserved),
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    NullSafeEqual,
    Bang,
    Open,
    Close,
    Comma,
    Dot,
    Plus,
    Minus,
    Star,
    Slash,
    Percent,
    /// `||`
    Concat,
    /// `->`
    Arrow,
    Caret,
    /// A symbol that means nothing here.
    Other,
}

/// The words that are names only in backquotes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reserved {
    And,
    Or,
    Not,
    Xor,
    Xnor,
    In,
    Between,
    Is,
    Null,
    Like,
    ILike,
    RLike,
    Escape,
    True,
    False,
}

impl Reserved {
    fn of(word: &str) -> Option<Self> {
        let mut lower = [0u8; 7];
        let lower = lower.get_mut(..word.len())?;
        lower.copy_from_slice(word.as_bytes());
        lower.make_ascii_lowercase();
        Some(match &*lower {
            b"and" => Self::And,
            b"or" => Self::Or,
            b"not" => Self::Not,
            b"xor" => Self::Xor,
            b"xnor" => Self::Xnor,
            b"in" => Self::In,
            b"between" => Self::Between,
            b"is" => Self::Is,
            b"null" => Self::Null,
            b"like" => Self::Like,
            b"ilike" => Self::ILike,
            b"rlike" | b"regexp" => Self::RLike,
            b"escape" => Self::Escape,
            b"true" => Self::True,
            b"false" => Self::False,
            _ => return None,
        })
    }
}

/// A kind and the bytes of the text from `start` to `end`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Token {
    pub kind: Kind,
    pub start: usize,
    pub end: usize,
}

pub(super) struct Lexer<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Lexer<'a> {
    pub fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    /// For a part of a text, with places in the whole of it.
    pub fn within(text: &'a str, from: usize, to: usize) -> Self {
        Self { text: &text[..to], at: from }
    }

    pub fn text(&self) -> &'a str {
        self.text
    }

    fn byte(&self, at: usize) -> Option<u8> {
        self.text.as_bytes().get(at).copied()
    }

    fn char_at(&self, at: usize) -> Option<char> {
        self.text[at..].chars().next()
    }

    /// The next token; at the end of the text [`Kind::End`], again and again.
    pub fn next(&mut self) -> Parsed<Token> {
        self.skip_blanks()?;
        let start = self.at;
        let kind = match self.byte(start) {
            None => Kind::End,
            Some(b'r' | b'R') if matches!(self.byte(start + 1), Some(b'\'' | b'"')) => self.raw_string()?,
            Some(b'a'..=b'z' | b'A'..=b'Z' | b'_') => self.word(),
            Some(b'0'..=b'9') => self.number(),
            Some(b'.') if self.byte(start + 1).is_some_and(|next| next.is_ascii_digit()) => self.number(),
            Some(b'\'' | b'"') => self.string()?,
            Some(b'`') => self.quoted_name()?,
            Some(byte) if byte.is_ascii() => self.symbol(byte),
            Some(_) => match self.char_at(start) {
                Some(c) if c.is_alphabetic() => self.word(),
                Some(c) => {
                    self.at += c.len_utf8();
                    Kind::Other
                }
                None => Kind::End,
            },
        };
        Ok(Token { kind, start, end: self.at })
    }

    fn skip_blanks(&mut self) -> Parsed<()> {
        loop {
            match self.byte(self.at) {
                Some(b' ' | b'\t' | b'\n' | b'\r' | b'\x0b' | b'\x0c') => self.at += 1,
                Some(b'-') if self.byte(self.at + 1) == Some(b'-') => {
                    let line = &self.text[self.at..];
                    self.at += line.find('\n').unwrap_or(line.len());
                }
                Some(b'/') if self.byte(self.at + 1) == Some(b'*') => self.skip_comment()?,
                Some(byte) if !byte.is_ascii() => match self.char_at(self.at) {
                    Some(c) if c.is_whitespace() => self.at += c.len_utf8(),
                    _ => return Ok(()),
                },
                _ => return Ok(()),
            }
        }
    }

    /// `/* … */`, which may hold further ones, as in Spark.
    fn skip_comment(&mut self) -> Parsed<()> {
        let start = self.at;
        let mut open = 0usize;
        loop {
            match (self.byte(self.at), self.byte(self.at + 1)) {
                (Some(b'/'), Some(b'*')) => {
                    open += 1;
                    self.at += 2;
                }
                (Some(b'*'), Some(b'/')) => {
                    open -= 1;
                    self.at += 2;
                    if open == 0 {
                        return Ok(());
                    }
                }
                (Some(_), _) => self.at += 1,
                (None, _) => {
                    return Err(Fault::new(start, "this comment is never closed").hint("close it: */"));
                }
            }
        }
    }

    fn word(&mut self) -> Kind {
        let start = self.at;
        self.skip_word_chars();
        match Reserved::of(&self.text[start..self.at]) {
            Some(reserved) => Kind::Reserved(reserved),
            None => Kind::Word,
        }
    }

    fn skip_word_chars(&mut self) {
        loop {
            match self.byte(self.at) {
                Some(byte) if byte.is_ascii_alphanumeric() || byte == b'_' => self.at += 1,
                Some(byte) if !byte.is_ascii() => match self.char_at(self.at) {
                    Some(c) if is_word_char(c) => self.at += c.len_utf8(),
                    _ => return,
                },
                _ => return,
            }
        }
    }

    fn skip_digits(&mut self) {
        while self.byte(self.at).is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
    }

    /// Digits, fraction, exponent, and whatever letters follow: which of them are a suffix is not decided here.
    fn number(&mut self) -> Kind {
        self.skip_digits();
        if self.byte(self.at) == Some(b'.') {
            self.at += 1;
            self.skip_digits();
        }
        if matches!(self.byte(self.at), Some(b'e' | b'E')) {
            let sign = matches!(self.byte(self.at + 1), Some(b'+' | b'-')) as usize;
            if self.byte(self.at + 1 + sign).is_some_and(|byte| byte.is_ascii_digit()) {
                self.at += 1 + sign;
                self.skip_digits();
            }
        }
        self.skip_word_chars();
        Kind::Number
    }

    fn string(&mut self) -> Parsed<Kind> {
        let (start, bytes) = (self.at, self.text.as_bytes());
        let quote = bytes[start];
        let mut plain = true;
        let mut at = start + 1;
        loop {
            match bytes.get(at) {
                None => return Err(unclosed(start, "string", quote)),
                Some(b'\\') => {
                    plain = false;
                    at += 2;
                }
                Some(&byte) if byte == quote => {
                    at += 1;
                    if bytes.get(at) != Some(&quote) {
                        self.at = at;
                        return Ok(Kind::Str { plain });
                    }
                    plain = false;
                    at += 1;
                }
                Some(_) => at += 1,
            }
        }
    }

    fn raw_string(&mut self) -> Parsed<Kind> {
        let quote = self.text.as_bytes()[self.at + 1];
        self.skip_to_quote(self.at + 2, quote).ok_or_else(|| unclosed(self.at, "string", quote))?;
        Ok(Kind::RawStr)
    }

    fn quoted_name(&mut self) -> Parsed<Kind> {
        let start = self.at;
        loop {
            self.skip_to_quote(self.at + 1, b'`').ok_or_else(|| unclosed(start, "name", b'`'))?;
            if self.byte(self.at) != Some(b'`') {
                return Ok(Kind::QuotedName);
            }
        }
    }

    /// Moves behind the next `quote`.
    fn skip_to_quote(&mut self, from: usize, quote: u8) -> Option<()> {
        let length = self.text.as_bytes().get(from..)?.iter().position(|&byte| byte == quote)?;
        self.at = from + length + 1;
        Some(())
    }

    fn symbol(&mut self, first: u8) -> Kind {
        let next = self.byte(self.at + 1);
        let (length, kind) = match (first, next) {
            (b'<', Some(b'=')) if self.byte(self.at + 2) == Some(b'>') => (3, Kind::NullSafeEqual),
            (b'<', Some(b'=')) => (2, Kind::LessOrEqual),
            (b'<', Some(b'>')) => (2, Kind::NotEqual),
            (b'<', _) => (1, Kind::Less),
            (b'>', Some(b'=')) => (2, Kind::GreaterOrEqual),
            (b'>', _) => (1, Kind::Greater),
            (b'=', Some(b'=')) => (2, Kind::Equal),
            (b'=', Some(b'<' | b'>' | b'~')) => (2, Kind::Other),
            (b'=', _) => (1, Kind::Equal),
            (b'!', Some(b'=')) => (2, Kind::NotEqual),
            (b'!', Some(b'~')) => (2, Kind::Other),
            (b'!', _) => (1, Kind::Bang),
            (b'(', _) => (1, Kind::Open),
            (b')', _) => (1, Kind::Close),
            (b',', _) => (1, Kind::Comma),
            (b'.', _) => (1, Kind::Dot),
            (b'+', _) => (1, Kind::Plus),
            (b'-', Some(b'>')) => (2, Kind::Arrow),
            (b'-', _) => (1, Kind::Minus),
            (b'*', _) => (1, Kind::Star),
            (b'/', _) => (1, Kind::Slash),
            (b'%', _) => (1, Kind::Percent),
            (b'|', Some(b'|')) => (2, Kind::Concat),
            (b'^', _) => (1, Kind::Caret),
            (b'&' | b'|', Some(second)) if second == first => (2, Kind::Other),
            _ => (1, Kind::Other),
        };
        self.at += length;
        kind
    }
}

fn unclosed(start: usize, what: &str, quote: u8) -> Box<Fault> {
    let quote = quote as char;
    Fault::new(start, format!("this {what} is never closed")).hint(format!("close it with {quote}"))
}
