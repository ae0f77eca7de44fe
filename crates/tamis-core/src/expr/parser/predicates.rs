//! One predicate: a term, an operator and its operands, in every way that they can be written.

use super::cursor::Cursor;
use super::fault::{Fault, Parsed};
use super::lexer::{Kind, Reserved, Token};
use super::names::attribute;
use super::values::{is_array, is_double};
use super::{Threshold, ThresholdKind};
use crate::expr::ast::{Expr, Outcome};
use crate::expr::build;
use crate::expr::operators::wildcard::with_standard_escape;
use crate::expr::operators::{Operator, REGISTRY, Syntax};
use crate::expr::truth_test::{TruthTest, truth_test};
use crate::term::place::is_place;
use crate::term::{Argument, Function, Term, network_ends};
use crate::value::Value;

impl Cursor<'_> {
    /// A predicate or a constant.
    pub fn predicate(&mut self) -> Parsed<Expr> {
        match self.token.kind {
            Kind::Word if self.at_interval() => {
                let start = self.token.start;
                let operand = self.factor()?;
                self.after_operand(operand, start)
            }
            Kind::Word => {
                let word = self.token;
                self.advance()?;
                match self.token.kind {
                    Kind::Open => self.call(word),
                    Kind::Str { .. } | Kind::RawStr => {
                        let value = self.typed_literal(word)?;
                        self.after_value(value, word.start)
                    }
                    _ => {
                        let name = self.rest_of_name(word)?;
                        self.after_term(attribute(&name), word.start)
                    }
                }
            }
            Kind::QuotedName => {
                let start = self.token.start;
                let name = self.name()?;
                self.after_term(attribute(&name), start)
            }
            Kind::Plus | Kind::Minus if !self.signs_number() => {
                let start = self.token.start;
                let operand = self.factor()?;
                self.after_operand(operand, start)
            }
            Kind::Reserved(Reserved::True | Reserved::False | Reserved::Null)
            | Kind::Number
            | Kind::Str { .. }
            | Kind::RawStr
            | Kind::Plus
            | Kind::Minus => {
                let start = self.token.start;
                let value = self.value()?;
                self.after_value(value, start)
            }
            _ => Err(self.expected_predicate()),
        }
    }

    fn after_operand(&mut self, operand: Argument, start: usize) -> Parsed<Expr> {
        match operand {
            Argument::Term(term) => self.after_term(term, start),
            Argument::Constant(value) => self.after_value(value, start),
        }
    }

    /// What follows the first term of a predicate: the rest of the term, then the operator.
    pub fn after_term(&mut self, term: Term, start: usize) -> Parsed<Expr> {
        if !self.at_arithmetic() {
            return self.test(term);
        }
        let operand = self.rest_of_operand(Argument::Term(term))?;
        self.after_operand_read(operand, start)
    }

    fn after_operand_read(&mut self, operand: Argument, start: usize) -> Parsed<Expr> {
        match operand {
            Argument::Term(term) => self.test(term),
            Argument::Constant(value) => self.literal_first(value, start),
        }
    }

    /// The same after a value.
    fn after_value(&mut self, value: Value, start: usize) -> Parsed<Expr> {
        if !self.at_arithmetic() {
            return self.literal_first(value, start);
        }
        let operand = self.rest_of_operand(Argument::Constant(value))?;
        self.after_operand_read(operand, start)
    }

    /// Whether the token can follow a term in parentheses.
    pub fn continues_term(&self) -> bool {
        self.at_operator() || self.at_arithmetic()
    }

    /// Whether the token can follow the attribute of a predicate.
    pub fn at_operator(&self) -> bool {
        use Reserved::{Between, ILike, In, Is, Like, Not, RLike};
        comparison(self.token.kind).is_some()
            || matches!(self.token.kind, Kind::Reserved(Between | ILike | In | Is | Like | Not | RLike))
    }

    /// What follows the term that is tested.
    fn test(&mut self, term: Term) -> Parsed<Expr> {
        if let Some((operator, negated)) = comparison(self.token.kind) {
            self.advance()?;
            let at = self.token.start;
            if let Some((term, micros)) = self.compared_interval(&term)? {
                return self.build(term, operator, negated, vec![micros], at);
            }
            return match self.operand()? {
                Argument::Constant(operand) => build::comparison(term, operator, negated, operand)
                    .map_err(|error| Fault::from_error(at, error)),
                Argument::Term(other) => self.comparison_of_terms(term, operator, negated, other, at),
            };
        }
        let negated = self.take(Kind::Reserved(Reserved::Not))?;
        let operator = match self.token.kind {
            Kind::Reserved(Reserved::In) => {
                self.advance()?;
                let at = self.token.start;
                let members = self.values_in_parentheses()?;
                return self.build(term, Operator::IN, negated, members, at);
            }
            Kind::Reserved(Reserved::Between) => {
                self.advance()?;
                let at = self.token.start;
                if let Some((term, low)) = self.compared_interval(&term)? {
                    self.and_of_between()?;
                    let Some((_, high)) = self.compared_interval(&term)? else {
                        return Err(self.expected("an interval, as the lower end is one"));
                    };
                    return self.build(term, Operator::BETWEEN, negated, vec![low, high], at);
                }
                let low = self.operand()?;
                self.and_of_between()?;
                let high = self.operand()?;
                return self.between(term, negated, low, high, at);
            }
            Kind::Reserved(Reserved::Is) if !negated => {
                self.advance()?;
                return self.is_predicate(term);
            }
            Kind::Reserved(Reserved::Like) => Operator::LIKE,
            Kind::Reserved(Reserved::ILike) => Operator::ILIKE,
            Kind::Reserved(Reserved::RLike) => Operator::RLIKE,
            _ if negated => return Err(self.expected("IN, BETWEEN, LIKE, ILIKE or RLIKE after NOT")),
            _ => return self.build(term, Operator::TRUTH, false, Vec::new(), self.previous_end),
        };
        self.advance()?;
        let at = self.token.start;
        let mut pattern = self.value()?;
        if operator != Operator::RLIKE && self.take(Kind::Reserved(Reserved::Escape))? {
            pattern = self.rewrite_escape(pattern, at)?;
        }
        self.build(term, operator, negated, vec![pattern], at)
    }

    /// A comparison of two terms is a term itself, of which the truth is tested.
    fn comparison_of_terms(
        &self,
        left: Term,
        operator: Operator,
        negated: bool,
        right: Term,
        at: usize,
    ) -> Parsed<Expr> {
        let function = Function::named(operator.rules().name()).expect("every comparison is a function");
        let arguments = vec![Argument::Term(left), Argument::Term(right)];
        let term = Term::computed(function, arguments).map_err(|error| Fault::from_error(at, error))?;
        self.build(term, Operator::TRUTH, negated, vec![], at)
    }

    /// The AND between the two ends.
    fn and_of_between(&mut self) -> Parsed<()> {
        match self.take(Kind::Reserved(Reserved::And))? {
            true => Ok(()),
            false => Err(self
                .expected("AND and the upper end of BETWEEN")
                .hint("write both ends with AND between them: age BETWEEN 22 AND 36")),
        }
    }

    /// An end that is a term makes it two comparisons.
    fn between(&self, term: Term, negated: bool, low: Argument, high: Argument, at: usize) -> Parsed<Expr> {
        let (low, high) = match (low, high) {
            (Argument::Constant(low), Argument::Constant(high)) => {
                return self.build(term, Operator::BETWEEN, negated, vec![low, high], at);
            }
            ends => ends,
        };
        let ends = [(Operator::GREATER_OR_EQUAL, low), (Operator::LESS_OR_EQUAL, high)];
        let halves = ends.into_iter().map(|(operator, end)| match end {
            Argument::Constant(end) => self.build(term.clone(), operator, false, vec![end], at),
            Argument::Term(end) => self.comparison_of_terms(term.clone(), operator, false, end, at),
        });
        let both = Expr::And(halves.collect::<Parsed<_>>()?);
        Ok(if negated { Expr::Not(Box::new(both)) } else { both })
    }

    fn rewrite_escape(&mut self, pattern: Value, at: usize) -> Parsed<Value> {
        let escape_at = self.token.start;
        let escape = match self.value()? {
            Value::Str(text) if text.chars().count() == 1 => text.chars().next(),
            _ => None,
        };
        let escape = escape.ok_or_else(|| {
            Fault::new(escape_at, "ESCAPE takes a string of one character")
                .hint("write LIKE '50!%' ESCAPE '!'")
        })?;
        match pattern {
            Value::Str(pattern) => with_standard_escape(&pattern, escape)
                .map(|rewritten| Value::Str(rewritten.into()))
                .map_err(|message| Fault::new(at, message)),
            other => Ok(other),
        }
    }

    /// What follows `x IS`: a null test of a term, or a truth test of a boolean one.
    fn is_predicate(&mut self, term: Term) -> Parsed<Expr> {
        let at = self.token.start;
        match self.after_is()? {
            (None, negated) => self.build(term, Operator::IS_NULL, negated, vec![], at),
            (Some(test), _) => {
                let truth = self.build(term, Operator::TRUTH, false, vec![], at)?;
                build::check_truth(&truth).map_err(|error| Fault::from_error(at, error))?;
                truth_test(&truth, test).map_err(|error| Fault::from_error(at, error))
            }
        }
    }

    /// The words before the parenthesis of a threshold, `AT LEAST 2 OF`; `None` if there are none.
    ///
    /// None of them is reserved: an attribute `at` is not followed by `least`.
    pub fn threshold(&mut self) -> Parsed<Option<Threshold>> {
        let is = |word: &str, known: &str| word.eq_ignore_ascii_case(known);
        if !matches!(self.lexeme().len(), 2 | 7) {
            return Ok(None);
        }
        if !is(self.lexeme(), "AT") && !is(self.lexeme(), "EXACTLY") {
            return Ok(None);
        }
        let rest = self.text()[self.token.end..].trim_start();
        let next = rest.split(|letter: char| !letter.is_alphanumeric()).next().unwrap_or("");
        let kind = match self.lexeme() {
            at if is(at, "AT") && is(next, "LEAST") => ThresholdKind::AtLeast,
            at if is(at, "AT") && is(next, "MOST") => ThresholdKind::AtMost,
            word if is(word, "EXACTLY") && next.starts_with(|digit: char| digit.is_ascii_digit()) => {
                ThresholdKind::Exactly
            }
            _ => return Ok(None),
        };
        self.advance()?;
        if !matches!(kind, ThresholdKind::Exactly) {
            self.advance()?;
        }
        let count = match self.token.kind {
            Kind::Number => self.lexeme().parse::<u32>().ok(),
            _ => None,
        };
        let Some(count) = count else {
            return Err(self.expected("a whole number of expressions").hint("write AT LEAST 2 OF (a, b, c)"));
        };
        self.advance()?;
        match self.token.kind {
            Kind::Word if is(self.lexeme(), "OF") => self.advance()?,
            _ => return Err(self.expected("OF").hint("write AT LEAST 2 OF (a, b, c)")),
        }
        match self.token.kind {
            Kind::Open => Ok(Some(Threshold { kind, count: count as usize })),
            _ => Err(self.expected("( and the expressions").hint("write AT LEAST 2 OF (a, b, c)")),
        }
    }

    /// What follows IS: a truth test, or `None` for NULL, and whether there is a NOT.
    pub fn after_is(&mut self) -> Parsed<(Option<TruthTest>, bool)> {
        let negated = self.take(Kind::Reserved(Reserved::Not))?;
        let test = match self.token.kind {
            Kind::Reserved(Reserved::Null) => None,
            Kind::Reserved(Reserved::True) => Some(TruthTest::True),
            Kind::Reserved(Reserved::False) => Some(TruthTest::False),
            Kind::Word if self.lexeme().eq_ignore_ascii_case("UNKNOWN") => Some(TruthTest::Unknown),
            _ => return Err(self.expected("NULL, TRUE, FALSE or UNKNOWN after IS")),
        };
        self.advance()?;
        Ok((test.map(|test| if negated { test.opposite() } else { test }), negated))
    }

    /// What follows a value at the start of a predicate: `5 < age` is `age > 5`.
    fn literal_first(&mut self, value: Value, start: usize) -> Parsed<Expr> {
        let Some((operator, negated)) = comparison(self.token.kind) else {
            return self.constant(value, start);
        };
        let flipped = match operator {
            Operator::LESS => Operator::GREATER,
            Operator::LESS_OR_EQUAL => Operator::GREATER_OR_EQUAL,
            Operator::GREATER => Operator::LESS,
            Operator::GREATER_OR_EQUAL => Operator::LESS_OR_EQUAL,
            symmetric => symmetric,
        };
        self.advance()?;
        let without_attribute = |cursor: &Self| {
            cursor
                .expected("an attribute to compare the value with")
                .hint("a predicate has an attribute: age > 5; TRUE and FALSE are expressions of their own")
        };
        let fault = without_attribute(self);
        if !matches!(self.token.kind, Kind::Word | Kind::QuotedName | Kind::Open) && !self.at_sign_of_term() {
            return Err(fault);
        }
        let Argument::Term(term) = self.operand()? else { return Err(fault) };
        let name = term.to_string();
        let expr = self.build(term, flipped, negated, vec![value], start)?;
        if comparison(self.token.kind).is_some() {
            return Err(self
                .expected("AND, OR or the end")
                .hint(format!("comparisons do not chain: write {name} > 1 AND {name} < 5, or BETWEEN")));
        }
        Ok(expr)
    }

    /// A value without a comparison: TRUE, FALSE and NULL are expressions, others are not.
    fn constant(&mut self, value: Value, start: usize) -> Parsed<Expr> {
        let is_truth = matches!(value, Value::Bool(_) | Value::Null);
        if self.at_operator() && !(is_truth && self.token.kind == Kind::Reserved(Reserved::Is)) {
            let hint = match self.token.kind {
                Kind::Reserved(Reserved::In) => {
                    "write array_contains(tags, 'x') for x being in an array attribute"
                }
                _ => "the attribute stands before IN, BETWEEN, LIKE and IS",
            };
            return Err(Fault::new(start, "expected an attribute, found a value").hint(hint));
        }
        let outcome = match value {
            Value::Bool(truth) => truth.into(),
            Value::Null => Outcome::UNDEFINED,
            _ => {
                let hint = "a value alone is not a predicate: write name = 'text', or x IN (1, 2) for several values";
                return Err(self.expected("a comparison after the value").hint(hint));
            }
        };
        Ok(Expr::Constant(outcome))
    }

    /// What follows the name of a function.
    fn call(&mut self, word: Token) -> Parsed<Expr> {
        let name = self.slice(word);
        if is_double(name) || is_array(name) {
            let value = self.value_call(word)?;
            return self.literal_first(value, word.start);
        }
        if name.eq_ignore_ascii_case("ip_in") {
            return self.network(word);
        }
        if is_place(name) {
            let term = self.place(word)?;
            return self.after_term(term, word.start);
        }
        if let Some(quantifier) = self.quantifier(word) {
            return self.quantified_predicate(quantifier, word);
        }
        let Some(operator) = function_named(name) else {
            let operand = self.function_call(word)?;
            return self.after_operand(operand, word.start);
        };
        self.advance()?;
        let at = self.token.start;
        let term = match self.operand()? {
            Argument::Term(term) => term,
            Argument::Constant(_) => {
                let message = format!("expected an attribute as the first argument of {name}, found a value");
                return Err(Fault::new(at, message).hint(format!("write {name}(attribute, value)")));
            }
        };
        self.expect(Kind::Comma, "a comma and the second argument")?;
        let at = self.token.start;
        let operand = self.value()?;
        self.expect(Kind::Close, ")")?;
        let operands = match operand {
            Value::Array(members) if operator == Operator::ARRAYS_OVERLAP => members,
            _ if operator == Operator::ARRAYS_OVERLAP => {
                let fault = Fault::new(at, "arrays_overlap takes an array");
                return Err(
                    fault.hint("write arrays_overlap(tags, ARRAY('a', 'b')), or array_contains(tags, 'a')")
                );
            }
            operand => vec![operand],
        };
        self.build(term, operator, false, operands, at)
    }

    /// `ip_in(address, '10.0.0.0/8')` is a range of `ip(address)`.
    fn network(&mut self, word: Token) -> Parsed<Expr> {
        self.advance()?;
        let address = self.operand()?;
        self.expect(Kind::Comma, "a comma and a network")?;
        let at = self.token.start;
        let network = self.value()?;
        self.expect(Kind::Close, ")")?;
        let Value::Str(network) = network else {
            return Err(
                Fault::new(at, "ip_in takes a network as a string").hint("write ip_in(x, '10.0.0.0/8')")
            );
        };
        let ends = network_ends(&network).map_err(|error| Fault::from_error(at, error))?;
        let ends = [ends.0, ends.1].map(|end| Value::Str(end.into()));
        match self.apply("ip", vec![address], word.start)? {
            Argument::Term(term) => self.build(term, Operator::BETWEEN, false, ends.to_vec(), at),
            Argument::Constant(_) => Err(Fault::new(
                word.start,
                "expected an attribute as the first argument of ip_in, found a value",
            )),
        }
    }

    /// The truth of a term.
    pub fn truth_of(&self, term: Term, at: usize) -> Parsed<Expr> {
        self.build(term, Operator::TRUTH, false, vec![], at)
    }

    fn build(
        &self,
        term: Term,
        operator: Operator,
        negated: bool,
        operands: Vec<Value>,
        at: usize,
    ) -> Parsed<Expr> {
        build::predicate(term, operator, negated, operands).map_err(|error| Fault::from_error(at, error))
    }

    fn expected_predicate(&self) -> Box<Fault> {
        let fault = self.expected("a predicate");
        match self.token.kind {
            Kind::End if self.previous_end == 0 => {
                fault.hint("an expression that is always true is written TRUE")
            }
            Kind::Reserved(_) => {
                let name = self.lexeme();
                fault.hint(format!("if {name} is the name of an attribute, write it in backquotes: `{name}`"))
            }
            _ => fault,
        }
    }
}

/// The operator of a comparison symbol, and whether it is negated.
pub(super) fn comparison(kind: Kind) -> Option<(Operator, bool)> {
    Some(match kind {
        Kind::Equal => (Operator::EQUAL, false),
        Kind::NotEqual => (Operator::EQUAL, true),
        Kind::Less => (Operator::LESS, false),
        Kind::LessOrEqual => (Operator::LESS_OR_EQUAL, false),
        Kind::Greater => (Operator::GREATER, false),
        Kind::GreaterOrEqual => (Operator::GREATER_OR_EQUAL, false),
        Kind::NullSafeEqual => (Operator::NULL_SAFE_EQUAL, false),
        _ => return None,
    })
}

pub(super) fn function_named(name: &str) -> Option<Operator> {
    let is_it = |syntax| matches!(syntax, Syntax::Function(known) if known.eq_ignore_ascii_case(name));
    let code = REGISTRY.iter().position(|rules| is_it(rules.syntax()))?;
    Operator::from_code(code as u8)
}
