//! Reads a text that was scanned, from token to token: nothing between two tokens is looked at, and a value of any size is
//! skipped in one step.
//!
//! What it says of a fault is not for users: whoever meets one reads the text again with a
//! [`ByteCursor`](super::cursor::ByteCursor).

use std::borrow::Cow;

use super::cursor::{ByteCursor, Cursor, Fault, is_marker};
use super::structure::{Skipped, Structure};
use crate::value::Value;

#[derive(Clone)]
pub(crate) struct TokenCursor<'a, 's> {
    text: &'a str,
    bytes: &'s [u8],
    places: &'s [u32],
    structure: &'s Structure,
    /// The number of the next token.
    next: usize,
    /// Whether strings are known to be JSON, and to have no escapes.
    are_strings_plain: bool,
    are_strings_checked: bool,
}

impl<'a, 's> TokenCursor<'a, 's> {
    /// For a text that was scanned.
    pub fn new(text: &'a str, structure: &'s Structure, skipped: Skipped) -> Self {
        let are_strings_checked = skipped == Skipped::Checked;
        Self {
            text,
            bytes: structure.bytes(),
            places: structure.places(),
            structure,
            next: 0,
            are_strings_plain: are_strings_checked && !structure.has_escapes(),
            are_strings_checked,
        }
    }

    /// Where the white space before the token after the next begins, if the next is a string or a scalar: behind its last byte.
    #[inline]
    fn end(&self) -> usize {
        let after = self.places.get(self.next + 1).map_or(self.text.len(), |place| *place as usize);
        let value = &self.text.as_bytes()[self.at()..after];
        let white = value.iter().rev().take_while(|byte| matches!(byte, b' ' | b'\n' | b'\r' | b'\t'));
        after - white.count()
    }

    #[cold]
    fn fault(&self) -> Fault {
        Fault::new(self.at(), "unexpected")
    }

    /// Lets a cursor over bytes read a string or a scalar. It must read all of it.
    fn by_bytes<T>(
        &mut self,
        read: impl FnOnce(&mut ByteCursor<'a>) -> Result<T, Fault>,
    ) -> Result<T, Fault> {
        let mut cursor = ByteCursor::from(self.text, self.at());
        let value = read(&mut cursor)?;
        if cursor.at() != self.end() {
            return Err(self.fault());
        }
        self.next += 1;
        Ok(value)
    }
}

impl<'a> Cursor<'a> for TokenCursor<'a, '_> {
    #[inline]
    fn at(&self) -> usize {
        self.places.get(self.next).map_or(self.text.len(), |place| *place as usize)
    }

    fn text(&self) -> &'a str {
        self.text
    }

    #[inline]
    fn peek(&mut self) -> Option<u8> {
        self.bytes.get(self.next).copied()
    }

    #[inline]
    fn take(&mut self, token: u8) -> bool {
        let found = self.peek() == Some(token);
        self.next += found as usize;
        found
    }

    #[inline]
    fn after_name(&mut self, bytes: usize) -> Result<(), Fault> {
        self.next += usize::from(bytes > 0);
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
                self.next += 1;
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
                self.next = self.structure.closing_of(self.next).ok_or_else(|| self.fault())? + 1
            }
            None | Some(b'}' | b']' | b':' | b',') => return Err(self.fault()),
            _ => self.next += 1,
        }
        Ok(())
    }

    #[inline]
    fn may_open_marker(&self) -> bool {
        let (tokens, place) = (self.bytes.get(self.next..self.next + 2), self.places.get(self.next + 1));
        tokens == Some(b"{\"") && place.is_some_and(|at| is_marker(&self.text.as_bytes()[*at as usize..]))
    }

    #[cold]
    fn unexpected(&mut self, _: &str) -> Fault {
        self.fault()
    }
}
