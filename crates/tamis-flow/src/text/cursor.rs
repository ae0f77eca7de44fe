//! A reader of tokens, one after the other.

use tamis_core::ExpressionError;
use tamis_core::expr::Expr;
use tamis_core::term::Term;

use super::place::{Span, fault};
use super::token::{Kind, Token, tokens};

/// Goes through the tokens of a text, or of a part of it.
pub(crate) struct Cursor<'t> {
    pub text: &'t str,
    tokens: Vec<Token>,
    at: usize,
    /// The number of the token behind the last one.
    end: usize,
}

impl<'t> Cursor<'t> {
    pub fn new(text: &'t str) -> Result<Self, ExpressionError> {
        let tokens = tokens(text)?;
        let end = tokens.len();
        Ok(Self { text, tokens, at: 0, end })
    }

    pub fn peek(&self) -> Option<Token> {
        self.look(0)
    }

    pub fn look(&self, ahead: usize) -> Option<Token> {
        (self.at + ahead < self.end).then(|| self.tokens[self.at + ahead])
    }

    pub fn next(&mut self) -> Option<Token> {
        let token = self.peek()?;
        self.at += 1;
        Some(token)
    }

    pub fn is_done(&self) -> bool {
        self.at >= self.end
    }

    /// The byte where the next token starts, or the end of the last one.
    pub fn place(&self) -> usize {
        match self.peek() {
            Some(token) => token.span.start,
            None => self.tokens[..self.end].last().map_or(self.text.len(), |token| token.span.end),
        }
    }

    /// Whether the word `ahead` tokens from here is this keyword.
    pub fn is_word(&self, ahead: usize, keyword: &str) -> bool {
        self.look(ahead).is_some_and(|token| {
            token.kind == Kind::Word && token.span.of(self.text).eq_ignore_ascii_case(keyword)
        })
    }

    pub fn is_symbol(&self, ahead: usize, symbol: u8) -> bool {
        self.look(ahead).is_some_and(|token| token.kind == Kind::Symbol(symbol))
    }

    pub fn accept(&mut self, keyword: &str) -> bool {
        let found = self.is_word(0, keyword);
        self.at += usize::from(found);
        found
    }

    pub fn accept_symbol(&mut self, symbol: u8) -> bool {
        let found = self.is_symbol(0, symbol);
        self.at += usize::from(found);
        found
    }

    pub fn expect(&mut self, keyword: &str) -> Result<(), ExpressionError> {
        if self.accept(keyword) { Ok(()) } else { Err(self.expected(keyword)) }
    }

    pub fn expect_symbol(&mut self, symbol: u8) -> Result<(), ExpressionError> {
        if self.accept_symbol(symbol) { Ok(()) } else { Err(self.expected(&(symbol as char).to_string())) }
    }

    pub fn expected(&self, what: &str) -> ExpressionError {
        let found = match self.peek() {
            Some(token) => format!("`{}`", token.span.of(self.text)),
            None => "the end".into(),
        };
        self.fault(format!("expected {what}, found {found}"))
    }

    pub fn fault(&self, message: impl Into<String>) -> ExpressionError {
        fault(self.text, self.place(), message)
    }

    /// The number of the token that closes the parenthesis which is the token with this number.
    fn closing(&self, open: usize) -> Result<usize, ExpressionError> {
        let mut depth = 0;
        for at in open..self.end {
            match self.tokens[at].kind {
                Kind::Symbol(b'(') => depth += 1,
                Kind::Symbol(b')') => {
                    depth -= 1;
                    if depth == 0 {
                        return Ok(at);
                    }
                }
                _ => {}
            }
        }
        Err(fault(self.text, self.tokens[open].span.start, "this parenthesis is never closed"))
    }

    /// The text in the parentheses that open here; the cursor moves behind them.
    pub fn parentheses(&mut self) -> Result<Cursor<'t>, ExpressionError> {
        if !self.is_symbol(0, b'(') {
            return Err(self.expected("("));
        }
        let close = self.closing(self.at)?;
        let inside =
            Cursor { text: self.text, tokens: self.tokens[..close].to_vec(), at: self.at + 1, end: close };
        self.at = close + 1;
        Ok(inside)
    }

    /// How many tokens there are from here to the first, outside of parentheses, for which `stop` holds; all if none.
    pub fn until(&self, stop: impl Fn(&Self, usize) -> bool) -> usize {
        let mut depth = 0;
        for ahead in 0..self.end - self.at {
            if depth == 0 && stop(self, ahead) {
                return ahead;
            }
            match self.tokens[self.at + ahead].kind {
                Kind::Symbol(b'(') => depth += 1,
                Kind::Symbol(b')') => depth -= 1,
                _ => {}
            }
        }
        self.end - self.at
    }

    /// The text of the next tokens; the cursor goes behind them.
    pub fn take(&mut self, count: usize, what: &str) -> Result<Span, ExpressionError> {
        if count == 0 {
            return Err(self.expected(what));
        }
        let span =
            Span { start: self.tokens[self.at].span.start, end: self.tokens[self.at + count - 1].span.end };
        self.at += count;
        Ok(span)
    }

    /// An expression that ends before `stop`.
    pub fn expression(&mut self, stop: impl Fn(&Self, usize) -> bool) -> Result<Expr, ExpressionError> {
        let count = self.until(stop);
        self.take(count, "an expression")?.expression(self.text)
    }

    /// Terms with commas between them, the last of which ends before `stop`.
    pub fn terms(&mut self, stop: impl Fn(&Self, usize) -> bool) -> Result<Vec<Term>, ExpressionError> {
        let mut terms = Vec::new();
        loop {
            let count = self.until(|cursor, ahead| cursor.is_symbol(ahead, b',') || stop(cursor, ahead));
            terms.push(self.take(count, "a term")?.term(self.text)?);
            if !self.accept_symbol(b',') {
                return Ok(terms);
            }
        }
    }

    /// A whole number that is at least `least`.
    pub fn whole(&mut self, what: &str, least: u32) -> Result<u32, ExpressionError> {
        let number = self.peek().filter(|token| token.kind == Kind::Number);
        let number = number.and_then(|token| token.span.of(self.text).parse::<u32>().ok());
        match number.filter(|number| *number >= least) {
            Some(number) => {
                self.at += 1;
                Ok(number)
            }
            None => Err(self.expected(&format!("{what}, a whole number from {least} on"))),
        }
    }

    pub fn finish(&self) -> Result<(), ExpressionError> {
        if self.is_done() { Ok(()) } else { Err(self.expected("the end")) }
    }
}

impl Cursor<'_> {
    /// The byte behind the token that was read last.
    pub fn behind(&self) -> usize {
        if self.at == 0 { 0 } else { self.tokens[self.at - 1].span.end }
    }
}
