//! Terms: attributes, functions of them, and arithmetic.
//!
//! ```text
//! operand = product { (+ | - | ||) product }
//! product = factor { (* | / | %) factor }
//! factor  = [+ | -] factor | ( operand ) | name | value | function ( operand, … ) | CAST ( operand AS type )
//! ```
//! A term of literals alone is a literal.

use super::cursor::{Cursor, shown};
use super::fault::{Fault, Parsed};
use super::lexer::{Kind, Token};
use super::names::attribute;
use super::values::{is_array, is_double};
use super::{advice, predicates};
use crate::expr::limits::term_too_deep;
use crate::expr::quantifier::Quantifier;
use crate::term::place::{WithinShape, is_place};
use crate::term::{Argument, Function, MAX_DEPTH, Notation, Term, interval};
use crate::value::Value;

impl Cursor<'_> {
    /// A term or a value.
    pub fn operand(&mut self) -> Parsed<Argument> {
        let first = match self.token.kind {
            Kind::Number | Kind::Str { .. } => Argument::Constant(self.value()?),
            _ => self.factor()?,
        };
        match self.at_arithmetic() {
            true => self.rest_of_operand(first),
            false => Ok(first),
        }
    }

    /// The same, or a comparison of two of them: what the text of a term may hold.
    pub fn comparison_or_operand(&mut self) -> Parsed<Argument> {
        let left = self.operand()?;
        let Some((operator, false)) = predicates::comparison(self.token.kind) else { return Ok(left) };
        let at = self.token.start;
        self.advance()?;
        let right = self.operand()?;
        self.apply(operator.rules().name(), vec![left, right], at)
    }

    /// What follows the first factor of a term.
    pub fn rest_of_operand(&mut self, first: Argument) -> Parsed<Argument> {
        let mut sum = self.rest_of_product(first)?;
        while let Some(function) = additive(self.token.kind) {
            let at = self.token.start;
            self.advance()?;
            if function != "concat" && self.at_interval() {
                let length = self.interval()?;
                let length = if function == "-" { length.negated() } else { Ok(length) };
                let (function, length) = length.map_err(|error| Fault::from_error(at, error))?.addition();
                sum = self.apply(function.name(), vec![sum, length], at)?;
                continue;
            }
            let right = self.factor()?;
            let right = self.rest_of_product(right)?;
            sum = self.apply(function, vec![sum, right], at)?;
        }
        Ok(sum)
    }

    fn rest_of_product(&mut self, first: Argument) -> Parsed<Argument> {
        let mut product = first;
        while let Some(function) = multiplicative(self.token.kind) {
            let at = self.token.start;
            self.advance()?;
            let right = self.factor()?;
            product = self.apply(function, vec![product, right], at)?;
        }
        Ok(product)
    }

    pub fn factor(&mut self) -> Parsed<Argument> {
        let token = self.token;
        match token.kind {
            Kind::Plus | Kind::Minus if !self.signs_number() => {
                self.deeper(token)?;
                self.advance()?;
                let factor = self.factor()?;
                self.term_depth -= 1;
                if token.kind == Kind::Plus {
                    return Ok(factor);
                }
                self.apply("-", vec![Argument::Constant(Value::Int(0)), factor], token.start)
            }
            Kind::Open => {
                self.deeper(token)?;
                self.advance()?;
                let inner = self.comparison_or_operand()?;
                self.term_depth -= 1;
                self.expect(Kind::Close, ")")?;
                Ok(inner)
            }
            Kind::QuotedName => Ok(Argument::Term(attribute(&self.name()?))),
            Kind::Word if self.at_interval() => {
                let fault = Fault::new(
                    token.start,
                    "an interval is added to a timestamp or compared with a difference",
                );
                Err(fault.hint("write ts + INTERVAL 1 DAY: the timestamp stands first"))
            }
            Kind::Word => {
                self.advance()?;
                match self.token.kind {
                    Kind::Open if is_now(self.slice(token)) => self.now(token),
                    Kind::Open if !is_double(self.slice(token)) && !is_array(self.slice(token)) => {
                        self.function_call(token)
                    }
                    Kind::Open => self.value_call(token).map(Argument::Constant),
                    Kind::Str { .. } | Kind::RawStr => self.typed_literal(token).map(Argument::Constant),
                    _ => Ok(Argument::Term(attribute(&self.rest_of_name(token)?))),
                }
            }
            _ => self.value().map(Argument::Constant),
        }
    }

    /// `lower(name)` or `CAST(x AS int)`: the word was read, the parenthesis is next.
    pub fn function_call(&mut self, word: Token) -> Parsed<Argument> {
        let name = self.slice(word);
        if is_now(name) {
            return self.now(word);
        }
        self.deeper(word)?;
        let call = if name.eq_ignore_ascii_case("cast") || name.eq_ignore_ascii_case("try_cast") {
            self.cast(word)?
        } else {
            let function =
                Function::named(&other_name(name)).filter(|function| function.notation() == Notation::Call);
            let Some(function) = function else {
                let is_truth = predicates::function_named(name).is_some()
                    || Quantifier::named(name).is_some()
                    || is_place(name);
                let message = match is_truth.then_some(()) {
                    Some(()) => format!("{} is true or false: it cannot be part of a term", shown(name)),
                    None => format!("there is no function {}", shown(name)),
                };
                return Err(Fault::new(word.start, message).hint(advice::for_function(name)));
            };
            self.advance()?;
            let mut arguments = vec![];
            if !self.take(Kind::Close)? {
                loop {
                    arguments.push(match self.unit_of(function, arguments.len())? {
                        Some(unit) => unit,
                        None => self.comparison_or_operand()?,
                    });
                    if self.take(Kind::Close)? {
                        break;
                    }
                    self.expect(Kind::Comma, "a comma or )")?;
                }
            }
            self.apply(function.name(), arguments, word.start)?
        };
        self.term_depth -= 1;
        Ok(call)
    }

    /// `within_distance(lat, lon, …)`: the word was read, the parenthesis is next.
    pub fn place(&mut self, word: Token) -> Parsed<Term> {
        self.advance()?;
        let mut arguments = vec![];
        if !self.take(Kind::Close)? {
            loop {
                arguments.push(self.operand()?);
                if self.take(Kind::Close)? {
                    break;
                }
                self.expect(Kind::Comma, "a comma or )")?;
            }
        }
        WithinShape::term(self.slice(word), arguments).map_err(|error| Fault::from_error(word.start, error))
    }

    /// `timestampdiff(HOUR, …)`: the unit needs no quotes.
    fn unit_of(&mut self, function: Function, place: usize) -> Parsed<Option<Argument>> {
        if place > 0 || !function.starts_with_unit() || self.token.kind != Kind::Word {
            return Ok(None);
        }
        let unit = Argument::Constant(Value::Str(self.lexeme().to_ascii_uppercase().into()));
        self.advance()?;
        Ok(Some(unit))
    }

    /// `current_timestamp()`, `now()` or `current_date()`: the word was read, the parenthesis is next.
    fn now(&mut self, word: Token) -> Parsed<Argument> {
        let name = self.slice(word);
        self.advance()?;
        if !self.take(Kind::Close)? {
            return Err(self.expected(&format!("): {name} takes no arguments")));
        }
        let now = Argument::Term(Term::now());
        if name.eq_ignore_ascii_case("current_date") {
            let day = Argument::Constant(Value::Str("DAY".into()));
            return self.apply("date_trunc", vec![day, now], word.start);
        }
        Ok(now)
    }

    fn cast(&mut self, word: Token) -> Parsed<Argument> {
        self.advance()?;
        let operand = self.comparison_or_operand()?;
        if self.token.kind != Kind::Word || !self.lexeme().eq_ignore_ascii_case("as") {
            return Err(self.expected("AS and a type").hint("write CAST(price AS float)"));
        }
        self.advance()?;
        let at = self.token.start;
        let to = self.lexeme();
        let function = cast_to(to).ok_or_else(|| {
            Fault::new(at, format!("there is no cast to {}", shown(to)))
                .hint("types are bool, int, float, string and timestamp")
        })?;
        self.advance()?;
        self.expect(Kind::Close, ")")?;
        self.apply(function, vec![operand], word.start)
    }

    /// A function of values alone is a value.
    pub fn apply(&self, function: &str, arguments: Vec<Argument>, at: usize) -> Parsed<Argument> {
        if let ("-", [left, right]) = (function, &*arguments)
            && let Some(times) = interval::difference(left, right)
        {
            return self.apply("timestampdiff", times, at);
        }
        let function = Function::named(function).expect("it is in the table");
        let joins = self.text()[at..].starts_with("||");
        let refused = |error| match joins {
            true => Fault::from_error(at, error).hint("write OR for one of two conditions: || joins strings"),
            false => Fault::from_error(at, error),
        };
        // Whether the call is one at all is the same for values and for terms, and is asked before anything is computed.
        let term = Term::computed(function, arguments).map_err(refused)?;
        let Term::Computed(call) = &term else { return Ok(Argument::Term(term)) };
        let constants: Option<Vec<_>> = call
            .arguments()
            .iter()
            .map(|argument| match argument {
                Argument::Constant(value) => Some(value.as_ref()),
                Argument::Term(_) => None,
            })
            .collect();
        let value = constants.map(|values| function.compute(&values).unwrap_or(Value::Null));
        Ok(value.map_or_else(|| Argument::Term(term), Argument::Constant))
    }

    fn deeper(&mut self, token: Token) -> Parsed<()> {
        self.term_depth += 1;
        if self.term_depth > 2 * MAX_DEPTH {
            return Err(Fault::from_error(token.start, term_too_deep()));
        }
        Ok(())
    }

    /// Whether a sign belongs to a number.
    pub fn signs_number(&self) -> bool {
        self.text()[self.token.end..]
            .trim_start()
            .starts_with(|next: char| next.is_ascii_digit() || next == '.')
    }

    /// Whether a sign comes that belongs to no number.
    pub fn at_sign_of_term(&self) -> bool {
        matches!(self.token.kind, Kind::Plus | Kind::Minus) && !self.signs_number()
    }

    pub fn at_arithmetic(&self) -> bool {
        use Kind::{Concat, Minus, Percent, Plus, Slash, Star};
        matches!(self.token.kind, Plus | Minus | Concat | Star | Slash | Percent)
    }
}

/// Whether it is a name of the function that tells the moment of the query.
pub(super) fn is_now(name: &str) -> bool {
    NOW_NAMES.iter().any(|known| known.eq_ignore_ascii_case(name))
}

pub(super) const NOW_NAMES: [&str; 3] = ["current_timestamp", "now", "current_date"];

fn additive(kind: Kind) -> Option<&'static str> {
    match kind {
        Kind::Plus => Some("+"),
        Kind::Minus => Some("-"),
        Kind::Concat => Some("concat"),
        _ => None,
    }
}

fn multiplicative(kind: Kind) -> Option<&'static str> {
    match kind {
        Kind::Star => Some("*"),
        Kind::Slash => Some("/"),
        Kind::Percent => Some("%"),
        _ => None,
    }
}

/// The name in the table of a function that has several.
fn other_name(name: &str) -> String {
    let name = name.to_ascii_lowercase();
    let known = match &*name {
        "lcase" => "lower",
        "ucase" => "upper",
        "char_length" | "character_length" | "len" => "length",
        "substr" => "substring",
        "dayofmonth" => "day",
        "ceiling" => "ceil",
        "cardinality" | "array_size" => "size",
        "try_element_at" => "element_at",
        "ifnull" | "nvl" => "coalesce",
        _ => return name,
    };
    known.into()
}

fn cast_to(name: &str) -> Option<&'static str> {
    Some(match &*name.to_ascii_lowercase() {
        "bool" | "boolean" => "cast as bool",
        "int" | "integer" | "bigint" | "long" => "cast as int",
        "float" | "double" => "cast as float",
        "string" | "varchar" | "text" => "cast as string",
        "timestamp" => "cast as timestamp",
        _ => return None,
    })
}
