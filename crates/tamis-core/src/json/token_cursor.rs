//! Reads a text that was scanned, from token to token: nothing between two tokens is looked at, and a value of any size is
//! skipped in one step.
//!
//! What it says of a fault is not for users: whoever meets one reads the text again with a
//! [`ByteCursor`](super::cursor::ByteCursor).

use std::borrow::Cow;

use super::cursor::{ByteCursor, Cursor, Fault, is_marker};
use super::structure::{Skipped, Tokens};
use crate::value::Value;

#[derive(Clone)]
pub(crate) struct TokenCursor<'a, T> {
    text: &'a str,
    tokens: T,
    next: usize,
    /// Whether strings are known to be JSON, and to have no escapes.
    are_strings_plain: bool,
    are_strings_checked: bool,
}

impl<'a, T: Tokens> TokenCursor<'a, T> {
    /// For a text that was scanned.
    pub fn new(text: &'a str, tokens: T, skipped: Skipped, has_escapes: bool) -> Self {
        let are_strings_checked = skipped == Skipped::Checked;
        Self {
            text,
            tokens,
            next: tokens.first(),
            are_strings_plain: are_strings_checked && !has_escapes,
            are_strings_checked,
        }
    }

    #[inline]
    fn advance(&mut self) {
        self.next = self.tokens.after(self.next);
    }

    /// Where the white space before the token after the next begins, if the next is a string or a scalar: behind its last byte.
    #[inline]
    fn end(&self) -> usize {
        let after = self.tokens.place(self.tokens.after(self.next));
        let value = &self.text.as_bytes()[self.at()..after];
        let white = value.iter().rev().take_while(|byte| matches!(byte, b' ' | b'\n' | b'\r' | b'\t'));
        after - white.count()
    }

    #[cold]
    fn fault(&self) -> Fault {
        Fault::new(self.at(), "unexpected")
    }

    /// Lets a cursor over bytes read a string or a scalar. It must read all of it.
    fn by_bytes<V>(
        &mut self,
        read: impl FnOnce(&mut ByteCursor<'a>) -> Result<V, Fault>,
    ) -> Result<V, Fault> {
        let mut cursor = ByteCursor::from(self.text, self.at());
        let value = read(&mut cursor)?;
        if cursor.at() != self.end() {
            return Err(self.fault());
        }
        self.advance();
        Ok(value)
    }
}

impl<'a, T: Tokens> Cursor<'a> for TokenCursor<'a, T> {
    #[inline]
    fn at(&self) -> usize {
        self.tokens.place(self.next)
    }

    fn text(&self) -> &'a str {
        self.text
    }

    #[inline]
    fn peek(&mut self) -> Option<u8> {
        self.tokens.byte(self.next)
    }

    #[inline]
    fn take(&mut self, token: u8) -> bool {
        let found = self.peek() == Some(token);
        if found {
            self.advance();
        }
        found
    }

    #[inline]
    fn after_name(&mut self, bytes: usize) -> Result<(), Fault> {
        if bytes > 0 {
            self.advance();
        }
        self.expect(b':', "`:` after a name")
    }

    fn word(&mut self, word: &str) -> Result<(), Fault> {
        self.by_bytes(|cursor| cursor.word(word))
    }

    fn string(&mut self) -> Result<Cow<'a, str>, Fault> {
        if self.peek() != Some(b'"') {
            return Err(self.fault());
        }
        if self.are_strings_checked {
            let string = &self.text[self.at() + 1..self.end() - 1];
            if self.are_strings_plain || !string.as_bytes().contains(&b'\\') {
                self.advance();
                return Ok(Cow::Borrowed(string));
            }
        }
        self.by_bytes(ByteCursor::string)
    }

    fn numeral(&mut self) -> Result<Result<Value, Fault>, Fault> {
        self.by_bytes(ByteCursor::numeral)
    }

    #[inline]
    fn skip(&mut self) -> Result<(), Fault> {
        match self.peek() {
            Some(b'{' | b'[') => {
                self.next = self.tokens.closing_of(self.next).ok_or_else(|| self.fault())?;
            }
            None | Some(b'}' | b']' | b':' | b',') => return Err(self.fault()),
            _ => {}
        }
        self.advance();
        Ok(())
    }

    #[inline(always)]
    fn pass_member(&mut self, is_passed: impl FnOnce(&[u8]) -> bool) -> bool {
        let (tokens, name) = (self.tokens, self.next);
        if tokens.byte(name) != Some(b'"') || !is_passed(&self.text.as_bytes()[tokens.place(name)..]) {
            return false;
        }
        let colon = tokens.after(name);
        let value = tokens.after(colon);
        if T::ARE_CHECKED {
            // A value follows, and then a comma or the end of the object, unless another line would close a bracket.
            let is_bracket = matches!(tokens.byte(value), Some(b'{' | b'['));
            let Some(last) = (if is_bracket { tokens.closing_of(value) } else { Some(value) }) else {
                return false;
            };
            let after = tokens.after(last);
            self.next = after + usize::from(tokens.byte(after) == Some(b','));
            return true;
        }
        let last = match tokens.byte(value) {
            Some(b'{' | b'[') => tokens.closing_of(value),
            None | Some(b'}' | b']' | b':' | b',') => None,
            _ => Some(value),
        };
        let Some(last) = last.filter(|_| tokens.byte(colon) == Some(b':')) else { return false };
        let after = tokens.after(last);
        let next = match tokens.byte(after) {
            Some(b'}') => after,
            Some(b',') => tokens.after(after),
            _ => return false,
        };
        // Whatever cannot stand here is for the reader to find.
        if next != after && tokens.byte(next) != Some(b'"') {
            return false;
        }
        self.next = next;
        true
    }

    #[inline]
    fn plain_name(&self) -> Option<&'a str> {
        if !self.are_strings_plain || self.tokens.byte(self.next) != Some(b'"') {
            return None;
        }
        // Mostly the colon is right behind it.
        let colon = self.tokens.place(self.tokens.after(self.next));
        let name = self.text.get(self.at() + 1..colon)?;
        name.strip_suffix('"')
    }

    #[inline]
    fn may_open_marker(&self) -> bool {
        let name = self.tokens.after(self.next);
        self.tokens.byte(self.next) == Some(b'{')
            && self.tokens.byte(name) == Some(b'"')
            && is_marker(&self.text.as_bytes()[self.tokens.place(name)..])
    }

    #[cold]
    fn unexpected(&mut self, _: &str) -> Fault {
        self.fault()
    }
}
