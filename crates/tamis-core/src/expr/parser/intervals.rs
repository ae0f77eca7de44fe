//! Durations: `INTERVAL 3 DAYS`, `INTERVAL '3' DAY`, `INTERVAL '1 day 2 hours'`.

use super::cursor::{Cursor, shown};
use super::fault::{Fault, Parsed};
use super::lexer::Kind;
use crate::term::Term;
use crate::term::interval::{self, Length};
use crate::value::Value;

const HINT: &str = "write INTERVAL 3 DAYS; units go from year to microsecond";

impl Cursor<'_> {
    /// Whether an interval comes, and not an attribute that is called so: a string or a number with a unit follows.
    pub fn at_interval(&self) -> bool {
        if self.token.kind != Kind::Word || !self.lexeme().eq_ignore_ascii_case("INTERVAL") {
            return false;
        }
        let rest = self.text()[self.token.end..].trim_start();
        let rest = rest.strip_prefix(['+', '-']).map_or(rest, str::trim_start);
        if rest.starts_with(['\'', '"']) {
            return true;
        }
        let behind = rest.trim_start_matches(|digit: char| digit.is_ascii_digit() || digit == '.');
        let word =
            behind.trim_start().split(|letter: char| !letter.is_ascii_alphabetic()).next().unwrap_or("");
        behind.len() < rest.len() && interval::is_unit(word)
    }

    /// The interval that comes.
    pub fn interval(&mut self) -> Parsed<Length> {
        let start = self.token.start;
        self.advance()?;
        let mut length: Option<Length> = None;
        loop {
            let sign = match self.token.kind {
                Kind::Minus => "-",
                Kind::Plus => "+",
                _ => "",
            };
            // Behind the first part a sign belongs to what follows the interval.
            if length.is_some() && !sign.is_empty() {
                break;
            }
            let before_sign = self.token;
            if !sign.is_empty() {
                self.advance()?;
            }
            let part = match self.token.kind {
                Kind::Number => self.interval_part(sign, before_sign.start)?,
                Kind::Str { .. } | Kind::RawStr => self.interval_text(sign)?,
                _ if length.is_some() => break,
                _ => return Err(self.expected("the length of the interval").hint(HINT)),
            };
            let sum = length.map_or(Ok(part), |length| length.plus(part));
            length = Some(sum.map_err(|error| Fault::from_error(start, error))?);
        }
        length.ok_or_else(|| self.expected("the length of the interval").hint(HINT))
    }

    /// `3 DAYS`
    fn interval_part(&mut self, sign: &str, at: usize) -> Parsed<Length> {
        let number = format!("{sign}{}", self.lexeme());
        self.advance()?;
        self.unit_of_interval(&number, at)
    }

    fn unit_of_interval(&mut self, number: &str, at: usize) -> Parsed<Length> {
        let unit = self.lexeme();
        if self.token.kind != Kind::Word || !interval::is_unit(unit) {
            return Err(self.expected("a unit of time").hint(HINT));
        }
        self.advance()?;
        if self.token.kind == Kind::Word && self.lexeme().eq_ignore_ascii_case("TO") {
            let fault = Fault::new(self.token.start, "an interval has one unit for each number");
            return Err(fault.hint("write INTERVAL 1 DAY 2 HOURS"));
        }
        Length::parse(number, unit).map_err(|error| Fault::from_error(at, error))
    }

    /// `'3' DAY` or `'1 day 2 hours'`
    fn interval_text(&mut self, sign: &str) -> Parsed<Length> {
        let at = self.token.start;
        let Value::Str(text) = self.value()? else { return Err(Fault::new(at, "an interval is text")) };
        let words: Vec<&str> = text.split_whitespace().collect();
        if let [number] = *words {
            return self.unit_of_interval(&format!("{sign}{number}"), at);
        }
        let fault = |error| Fault::from_error(at, error);
        let mut length: Option<Length> = None;
        for pair in words.chunks(2) {
            let (Some(number), Some(unit)) =
                (pair.first(), pair.get(1).filter(|unit| interval::is_unit(unit)))
            else {
                return Err(Fault::new(at, format!("{} is not an interval", shown(&text))).hint(HINT));
            };
            let part = Length::parse(number, unit).map_err(fault)?;
            length = Some(length.map_or(Ok(part), |length| length.plus(part)).map_err(fault)?);
        }
        let length = length.ok_or_else(|| Fault::new(at, "the interval is empty").hint(HINT))?;
        if sign == "-" { length.negated().map_err(fault) } else { Ok(length) }
    }

    /// If an interval comes to compare a term with: the microseconds that both are.
    pub fn compared_interval(&mut self, term: &Term) -> Parsed<Option<(Term, Value)>> {
        if !self.at_interval() {
            return Ok(None);
        }
        let at = self.token.start;
        match self.interval()? {
            Length::Micros(micros) => {
                let term = interval::as_micros(term).map_err(|error| Fault::from_error(at, error))?;
                Ok(Some((term, Value::Int(micros))))
            }
            Length::Months(_) => Err(Fault::new(at, "the difference of two timestamps has no months")
                .hint("compare it with days: INTERVAL 30 DAYS")),
        }
    }
}
