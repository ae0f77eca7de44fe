//! Quantifiers: `exists(items, i -> i.price > 5)` and `ANY(tags) LIKE 'a%'`.

use super::Parser;
use super::cursor::{Cursor, shown};
use super::fault::{Fault, Parsed};
use super::lexer::{Kind, Token};
use crate::expr::ast::Expr;
use crate::expr::quantifier::{Quantified, Quantifier};
use crate::term::{STRINGS, Term};

/// Quantifiers inside quantifiers: each is read by a parser of its own.
const MAX_NESTED: usize = 8;

const HINT: &str = "write exists(tags, t -> t LIKE 'a%'), or i.price for a field of an element i";

/// The name of [`STRINGS`] as a function.
const ALL_STRINGS: &str = STRINGS.split_at(STRINGS.len() - "()".len()).0;

impl Cursor<'_> {
    /// The quantifier whose name was read, if the parenthesis that is next holds what it takes.
    pub fn quantifier(&self, word: Token) -> Option<Quantifier> {
        Quantifier::named(self.slice(word)).filter(|_| self.token.kind == Kind::Open)
    }

    /// `exists(items, i -> …)` as a term: the word was read, the parenthesis is next.
    pub fn quantified(&mut self, quantifier: Quantifier, word: Token) -> Parsed<Term> {
        let (array, variable) = self.array_and_variable(quantifier)?;
        let Some(variable) = variable else {
            return Err(
                Fault::new(word.start, "ANY(x) is followed by an operator").hint("write ANY(tags) = 'new'")
            );
        };
        let body = self.body(word)?;
        Quantified::term(quantifier, &array, &variable, body)
            .map_err(|error| Fault::from_error(word.start, error))
    }

    /// The same as a predicate; also `ANY(tags) = 'new'`.
    pub fn quantified_predicate(&mut self, quantifier: Quantifier, word: Token) -> Parsed<Expr> {
        let (array, variable) = self.array_and_variable(quantifier)?;
        let fault = |error| Fault::from_error(word.start, error);
        let Some(variable) = variable else {
            let variable = self.free_name();
            let tested = self.after_term(Term::attribute(&variable), word.start)?;
            let term = Quantified::term(Quantifier::Any, &array, &variable, tested).map_err(fault)?;
            return self.truth_of(term, word.start);
        };
        let body = self.body(word)?;
        let term = Quantified::term(quantifier, &array, &variable, body).map_err(fault)?;
        self.after_term(term, word.start)
    }

    /// The array and the variable, up to the arrow; no variable for `ANY(tags)`.
    fn array_and_variable(&mut self, quantifier: Quantifier) -> Parsed<(String, Option<String>)> {
        self.advance()?;
        let at = self.token.start;
        if !matches!(self.token.kind, Kind::Word | Kind::QuotedName) {
            return Err(self.expected("an attribute that holds an array").hint(HINT));
        }
        let is_word = self.token.kind == Kind::Word;
        let mut array = self.name()?.into_owned();
        if is_word && array.eq_ignore_ascii_case(ALL_STRINGS) && self.take(Kind::Open)? {
            self.expect(Kind::Close, ")")?;
            array = STRINGS.into();
        }
        if quantifier == Quantifier::Any && self.take(Kind::Close)? {
            return Ok((array, None));
        }
        if self.token.kind == Kind::Open {
            return Err(Fault::new(at, "a quantifier takes an attribute, and nothing computed").hint(HINT));
        }
        self.expect(Kind::Comma, "a comma and a variable")?;
        if self.token.kind != Kind::Word {
            return Err(self.expected("a variable").hint(HINT));
        }
        let variable = self.lexeme().to_owned();
        self.advance()?;
        if !self.take(Kind::Arrow)? {
            return Err(self.expected("-> after the variable").hint(HINT));
        }
        Ok((array, Some(variable)))
    }

    /// The body of a quantifier, and the parenthesis behind it.
    fn body(&mut self, word: Token) -> Parsed<Expr> {
        let start = self.token.start;
        let mut open = 0;
        loop {
            match self.token.kind {
                Kind::Open => open += 1,
                Kind::Close if open == 0 => break,
                Kind::Close => open -= 1,
                Kind::End => {
                    let fault = Fault::new(
                        word.start,
                        format!("the parenthesis of {} is never closed", shown(self.slice(word))),
                    );
                    return Err(fault.hint(HINT));
                }
                _ => {}
            }
            self.advance()?;
        }
        let nested = self.nested + 1;
        if nested > MAX_NESTED {
            let message = format!("quantifiers are nested deeper than {MAX_NESTED} levels");
            return Err(Fault::new(word.start, message));
        }
        // Up to the parenthesis, so that places in it are those of the whole text.
        let body = Parser::nested(self.text(), start, self.token.start, nested)?.expression()?;
        self.advance()?;
        Ok(body)
    }

    /// A variable that the text does not mention.
    fn free_name(&self) -> String {
        let names = std::iter::once("element".to_owned()).chain((1..).map(|n| format!("element{n}")));
        let mut free = names.filter(|name| !self.text().contains(name.as_str()));
        free.next().expect("a text mentions finitely many names")
    }
}
