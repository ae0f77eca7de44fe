//! Where words, numbers, strings and symbols begin and end: enough to find the parts of a continuous query.

use tamis_core::ExpressionError;

use super::place::{Span, fault};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Word,
    /// A name in backquotes.
    Name,
    Number,
    Text,
    Symbol(u8),
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Token {
    pub kind: Kind,
    pub span: Span,
}

/// The tokens of a text. Blanks and comments are left out, as in the language of expressions.
pub(crate) fn tokens(text: &str) -> Result<Vec<Token>, ExpressionError> {
    let bytes = text.as_bytes();
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let start = at;
        let kind = match byte {
            b'-' if bytes.get(at + 1) == Some(&b'-') => {
                at += text[at..].find('\n').unwrap_or(text.len() - at);
                continue;
            }
            b'/' if bytes.get(at + 1) == Some(&b'*') => {
                at = after_comment(text, at)?;
                continue;
            }
            b'r' | b'R' if matches!(bytes.get(at + 1), Some(b'\'' | b'"')) => {
                at = after_quote(text, at + 1, false)?;
                Kind::Text
            }
            b'\'' | b'"' => {
                at = after_quote(text, at, true)?;
                Kind::Text
            }
            b'`' => {
                at = after_quote(text, at, false)?;
                Kind::Name
            }
            b'0'..=b'9' => {
                at = after_word(text, at);
                if bytes.get(at) == Some(&b'.') && bytes.get(at + 1).is_some_and(u8::is_ascii_digit) {
                    at = after_word(text, at + 1);
                }
                Kind::Number
            }
            _ => {
                let c = text[at..].chars().next().unwrap_or(' ');
                if c.is_whitespace() {
                    at += c.len_utf8();
                    continue;
                }
                if c == '_' || c.is_alphabetic() {
                    at = after_word(text, at);
                    Kind::Word
                } else {
                    at += c.len_utf8();
                    Kind::Symbol(byte)
                }
            }
        };
        found.push(Token { kind, span: Span { start, end: at } });
    }
    Ok(found)
}

fn after_word(text: &str, from: usize) -> usize {
    let rest = &text[from..];
    from + rest.find(|c: char| c != '_' && !c.is_alphanumeric()).unwrap_or(rest.len())
}

/// Behind a quoted text that starts at `open`; a doubled quote is part of it.
fn after_quote(text: &str, open: usize, escapes: bool) -> Result<usize, ExpressionError> {
    let bytes = text.as_bytes();
    let quote = bytes[open];
    let mut at = open + 1;
    loop {
        match bytes.get(at) {
            None => {
                let hint = format!("close it with {}", quote as char);
                return Err(fault(text, open, "this quote is never closed").with_hint(hint));
            }
            Some(b'\\') if escapes => at += 2,
            Some(&byte) if byte == quote => {
                at += 1;
                if bytes.get(at) != Some(&quote) {
                    return Ok(at);
                }
                at += 1;
            }
            Some(_) => at += 1,
        }
    }
}

fn after_comment(text: &str, open: usize) -> Result<usize, ExpressionError> {
    let bytes = text.as_bytes();
    let (mut at, mut depth) = (open, 0);
    loop {
        match (bytes.get(at), bytes.get(at + 1)) {
            (Some(b'/'), Some(b'*')) => {
                depth += 1;
                at += 2;
            }
            (Some(b'*'), Some(b'/')) => {
                depth -= 1;
                at += 2;
                if depth == 0 {
                    return Ok(at);
                }
            }
            (Some(_), _) => at += 1,
            (None, _) => {
                return Err(fault(text, open, "this comment is never closed").with_hint("close it: */"));
            }
        }
    }
}
