//! Reads one token at a time, and reports "expected this, found that" for an unexpected one.

use super::advice;
use super::fault::{Fault, Parsed};
use super::lexer::{Kind, Lexer, Token};

pub(super) struct Cursor<'a> {
    lexer: Lexer<'a>,
    /// The token to be read next.
    pub token: Token,
    /// Where the token before it ended: the place of what is missing.
    pub previous_end: usize,
    /// How deep the term is nested that is being read.
    pub term_depth: usize,
    /// How many quantifiers the text lies in.
    pub nested: usize,
}

impl<'a> Cursor<'a> {
    pub fn new(text: &'a str) -> Parsed<Self> {
        let mut lexer = Lexer::new(text);
        let token = lexer.next()?;
        Ok(Self { lexer, token, previous_end: 0, term_depth: 0, nested: 0 })
    }

    /// For a part of a text, inside this many quantifiers.
    pub fn within(text: &'a str, from: usize, to: usize, nested: usize) -> Parsed<Self> {
        let mut lexer = Lexer::within(text, from, to);
        let token = lexer.next()?;
        Ok(Self { lexer, token, previous_end: from, term_depth: 0, nested })
    }

    pub fn text(&self) -> &'a str {
        self.lexer.text()
    }

    pub fn advance(&mut self) -> Parsed<()> {
        self.previous_end = self.token.end;
        self.token = self.lexer.next()?;
        Ok(())
    }

    /// Whether a parenthesis was closed just before the token.
    pub fn follows_parenthesis(&self) -> bool {
        self.text()[..self.previous_end].ends_with(')')
    }

    pub fn take(&mut self, kind: Kind) -> Parsed<bool> {
        let found = self.token.kind == kind;
        if found {
            self.advance()?;
        }
        Ok(found)
    }

    pub fn expect(&mut self, kind: Kind, what: &str) -> Parsed<()> {
        if self.take(kind)? { Ok(()) } else { Err(self.expected(what)) }
    }

    pub fn slice(&self, token: Token) -> &'a str {
        &self.lexer.text()[token.start..token.end]
    }

    pub fn lexeme(&self) -> &'a str {
        self.slice(self.token)
    }

    /// "expected …, found …", with a hint if there is one for what was found.
    pub fn expected(&self, what: &str) -> Box<Fault> {
        let lexeme = self.lexeme();
        let (at, found) = match self.token.kind {
            Kind::End => (self.previous_end, "the end of the expression".into()),
            _ => (self.token.start, shown(lexeme)),
        };
        let fault = Fault::new(at, format!("expected {what}, found {found}"));
        let hint = match self.token.kind {
            Kind::Word | Kind::Other | Kind::Plus | Kind::Minus => advice::for_stray(lexeme),
            Kind::Bang if self.text()[..self.token.start].ends_with('=') => Some("write !=".into()),
            _ => None,
        };
        match hint {
            Some(hint) => fault.hint(hint),
            None => fault,
        }
    }
}

/// A piece of the text for a message: not too long.
pub(super) fn shown(lexeme: &str) -> String {
    const LONGEST: usize = 40;
    match lexeme.char_indices().nth(LONGEST) {
        Some((cut, _)) => format!("{}…", &lexeme[..cut]),
        // What cannot be seen: a zero-width space, a mark of the byte order.
        None if lexeme.chars().count() == 1 && !lexeme.is_ascii() => {
            match lexeme.escape_debug().to_string() {
                escaped if escaped != lexeme => format!("the character {escaped}"),
                _ => lexeme.into(),
            }
        }
        None => lexeme.into(),
    }
}
