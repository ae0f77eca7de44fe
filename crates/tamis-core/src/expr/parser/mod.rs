//! Text to tree: the Boolean subset of Spark SQL.
//!
//! ```text
//! expression = expression (OR | XOR | XNOR | AND) expression | NOT expression | ( expression ) | predicate
//! predicate  = name [NOT] operator operands | literal comparison name | function(name, operands)
//!            | name | TRUE | FALSE | NULL, each with an optional ^weight
//! ```
//!
//! OR binds least, then XOR and XNOR, then AND, then NOT. A chain of one connective is one node. What waits
//! for its right side lies on an explicit stack, so no text, however nested, can exhaust the thread's own.

mod advice;
mod fault;
pub mod lexer;
mod literals;
#[cfg(test)]
mod tests;

use std::borrow::Cow;

use crate::error::ExpressionError;
use crate::event::Value;
use crate::expr::ast::{Expr, Outcome};
use crate::expr::build;
use crate::expr::limits::{
    MAX_DEPTH, MAX_PREDICATES, check_name, check_set_size, check_string_size, check_text_size, too_deep,
    too_many_predicates,
};
use crate::expr::operators::wildcard::with_standard_escape;
use crate::expr::operators::{Operator, REGISTRY, Syntax};
use fault::{Fault, Parsed, place_of};
use lexer::{Kind, Lexer, Reserved, Token};

/// Reads an expression, or says what is wrong with it, where, and what would be right.
///
/// ```
/// use tamis_core::expr::{Expr, parse};
///
/// let expr = parse("age BETWEEN 22 AND 36 AND country IN ('CA', 'US')").unwrap();
/// assert!(matches!(expr, Expr::And(children) if children.len() == 2));
///
/// let error = parse("age BETWEN 22 AND 36").unwrap_err();
/// assert_eq!(error.place.unwrap().column, 5);
/// assert_eq!(error.hint.unwrap(), "did you mean BETWEEN?");
/// ```
pub fn parse(text: &str) -> Result<Expr, ExpressionError> {
    check_text_size(text.len())?;
    Parser::new(text).and_then(Parser::expression).map_err(|fault| fault.locate(text))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Connective {
    Or,
    Xor,
    Xnor,
    And,
}

impl Connective {
    fn of(kind: Kind) -> Option<Self> {
        match kind {
            Kind::Reserved(Reserved::Or) => Some(Self::Or),
            Kind::Reserved(Reserved::Xor) => Some(Self::Xor),
            Kind::Reserved(Reserved::Xnor) => Some(Self::Xnor),
            Kind::Reserved(Reserved::And) => Some(Self::And),
            _ => None,
        }
    }

    fn binding(self) -> u8 {
        match self {
            Self::Or => 1,
            Self::Xor | Self::Xnor => 2,
            Self::And => 3,
        }
    }

    fn join(self, children: Vec<Expr>) -> Expr {
        match self {
            Self::Or => Expr::Or(children),
            Self::Xor => Expr::Xor(children),
            Self::Xnor => Expr::Xnor(children),
            Self::And => Expr::And(children),
        }
    }
}

/// A finished part of the tree and how many levels it has.
struct Node {
    expr: Expr,
    height: usize,
}

/// What waits for its right side.
enum Pending {
    /// An open parenthesis, and where it is.
    Parenthesis(usize),
    Not,
    /// A chain that has just read its connective.
    Chain {
        connective: Connective,
        children: Vec<Expr>,
        height: usize,
    },
}

impl Pending {
    fn binding(&self) -> u8 {
        match self {
            Self::Parenthesis(_) => 0,
            Self::Chain { connective, .. } => connective.binding(),
            Self::Not => 4,
        }
    }
}

struct Parser<'a> {
    lexer: Lexer<'a>,
    token: Token,
    /// Where the token before this one ended: the place of what is missing.
    previous_end: usize,
    predicates: usize,
    pending: Vec<Pending>,
    /// Parentheses and NOTs among the pending.
    levels: usize,
}

impl<'a> Parser<'a> {
    fn new(text: &'a str) -> Parsed<Self> {
        let mut lexer = Lexer::new(text);
        let token = lexer.next()?;
        Ok(Self { lexer, token, previous_end: 0, predicates: 0, pending: Vec::new(), levels: 0 })
    }

    fn expression(mut self) -> Parsed<Expr> {
        loop {
            self.open_levels()?;
            let mut node = self.predicate()?;
            loop {
                match self.token.kind {
                    Kind::Close => node = self.close(node)?,
                    Kind::Caret => node = self.boost(node)?,
                    Kind::End => return self.finish(node),
                    kind => match Connective::of(kind) {
                        Some(connective) => {
                            self.push_connective(node, connective)?;
                            break;
                        }
                        None => return Err(self.stray_after(&node.expr)),
                    },
                }
            }
        }
    }

    // --- the tree ---------------------------------------------------------------------------------

    /// Reads NOTs and opening parentheses.
    fn open_levels(&mut self) -> Parsed<()> {
        loop {
            let level = match self.token.kind {
                Kind::Open => Pending::Parenthesis(self.token.start),
                Kind::Bang | Kind::Reserved(Reserved::Not) => Pending::Not,
                _ => return Ok(()),
            };
            self.levels += 1;
            if self.levels > MAX_DEPTH {
                return Err(Fault::from_error(self.token.start, too_deep()));
            }
            self.pending.push(level);
            self.advance()?;
        }
    }

    /// Gives `node` to everything pending that binds more tightly than `floor`.
    fn reduce(&mut self, mut node: Node, floor: u8) -> Parsed<Node> {
        while let Some(top) = self.pending.pop_if(|top| top.binding() > floor) {
            node = match top {
                Pending::Not => {
                    self.levels -= 1;
                    Node { expr: Expr::Not(Box::new(node.expr)), height: node.height + 1 }
                }
                Pending::Chain { connective, mut children, height } => {
                    children.push(node.expr);
                    Node { expr: connective.join(children), height: height.max(node.height) + 1 }
                }
                Pending::Parenthesis(_) => unreachable!("a parenthesis binds nothing"),
            };
            if node.height > MAX_DEPTH {
                return Err(Fault::from_error(self.token.start, too_deep()));
            }
        }
        Ok(node)
    }

    fn push_connective(&mut self, node: Node, connective: Connective) -> Parsed<()> {
        let mut node = self.reduce(node, connective.binding())?;
        if let Some(Pending::Chain { connective: open, children, height }) = self.pending.last_mut()
            && *open == connective
        {
            children.push(node.expr);
            *height = node.height.max(*height);
            return self.advance();
        }
        // XOR after XNOR, or the reverse: from left to right.
        if self.pending.last().is_some_and(|top| top.binding() == connective.binding()) {
            node = self.reduce(node, connective.binding() - 1)?;
        }
        let mut children = Vec::with_capacity(4);
        children.push(node.expr);
        self.pending.push(Pending::Chain { connective, children, height: node.height });
        self.advance()
    }

    fn close(&mut self, node: Node) -> Parsed<Node> {
        let node = self.reduce(node, 0)?;
        if self.pending.pop().is_none() {
            let hint = "leave it out, or open a parenthesis before";
            return Err(Fault::new(self.token.start, "this ) closes nothing").hint(hint));
        }
        self.levels -= 1;
        self.advance()?;
        match node.expr {
            // `(age) > 30` is `age > 30`.
            Expr::Predicate(bare)
                if bare.operator == Operator::TRUTH && bare.weight.is_none() && self.at_operator() =>
            {
                self.predicates -= 1;
                self.attribute_predicate(&bare.attribute)
            }
            expr => Ok(Node { expr, ..node }),
        }
    }

    fn boost(&mut self, node: Node) -> Parsed<Node> {
        let at = self.token.start;
        self.advance()?;
        let negative = self.take(Kind::Minus)?;
        if self.token.kind != Kind::Number {
            return Err(self.expected("a weight after ^").hint("write (x > 1)^0.4"));
        }
        let weight = match literals::number(self.lexeme(), negative, self.token.start)? {
            Value::Int(weight) => weight as f64,
            Value::Float(weight) => weight,
            _ => unreachable!("a number token is a number"),
        };
        self.advance()?;
        let expr = build::boost(node.expr, weight).map_err(|error| Fault::from_error(at, error))?;
        Ok(Node { expr, ..node })
    }

    fn finish(&mut self, node: Node) -> Parsed<Expr> {
        let node = self.reduce(node, 0)?;
        match self.pending.pop() {
            None => Ok(node.expr),
            Some(Pending::Parenthesis(at)) => {
                let opened = place_of(self.lexer.text(), at);
                let hint = format!(
                    "the parenthesis of line {}, column {} is never closed",
                    opened.line, opened.column
                );
                Err(self.expected(")").hint(hint))
            }
            Some(_) => unreachable!("all but parentheses were reduced"),
        }
    }

    // --- predicates -------------------------------------------------------------------------------

    fn predicate(&mut self) -> Parsed<Node> {
        self.predicates += 1;
        if self.predicates > MAX_PREDICATES {
            return Err(Fault::from_error(self.token.start, too_many_predicates()));
        }
        match self.token.kind {
            Kind::Word => {
                let word = self.token;
                self.advance()?;
                match self.token.kind {
                    Kind::Open => self.call(word),
                    Kind::Str { .. } | Kind::RawStr => {
                        let value = self.typed_literal(word)?;
                        self.literal_first(value, word.start)
                    }
                    _ => {
                        let name = self.rest_of_name(word)?;
                        self.attribute_predicate(&name)
                    }
                }
            }
            Kind::QuotedName => {
                let name = self.name()?;
                self.attribute_predicate(&name)
            }
            Kind::Reserved(Reserved::True | Reserved::False | Reserved::Null)
            | Kind::Number
            | Kind::Str { .. }
            | Kind::RawStr
            | Kind::Plus
            | Kind::Minus => {
                let start = self.token.start;
                let value = self.value()?;
                self.literal_first(value, start)
            }
            _ => Err(self.expected_predicate()),
        }
    }

    /// Whether the token can follow the attribute of a predicate.
    fn at_operator(&self) -> bool {
        use Reserved::{Between, ILike, In, Is, Like, Not, RLike};
        comparison(self.token.kind).is_some()
            || matches!(self.token.kind, Kind::Reserved(Between | ILike | In | Is | Like | Not | RLike))
    }

    /// What follows the attribute.
    fn attribute_predicate(&mut self, name: &str) -> Parsed<Node> {
        if let Some((operator, negated)) = comparison(self.token.kind) {
            self.advance()?;
            let at = self.token.start;
            let operand = self.value()?;
            return self.build(name, operator, negated, vec![operand], at);
        }
        let negated = self.take(Kind::Reserved(Reserved::Not))?;
        let operator = match self.token.kind {
            Kind::Reserved(Reserved::In) => {
                self.advance()?;
                let at = self.token.start;
                let members = self.values_in_parentheses()?;
                return self.build(name, Operator::IN, negated, members, at);
            }
            Kind::Reserved(Reserved::Between) => {
                self.advance()?;
                let at = self.token.start;
                let low = self.value()?;
                self.expect(Kind::Reserved(Reserved::And), "AND and the upper end of BETWEEN")?;
                let high = self.value()?;
                return self.build(name, Operator::BETWEEN, negated, vec![low, high], at);
            }
            Kind::Reserved(Reserved::Is) if !negated => {
                self.advance()?;
                return self.is_predicate(name);
            }
            Kind::Reserved(Reserved::Like) => Operator::LIKE,
            Kind::Reserved(Reserved::ILike) => Operator::ILIKE,
            Kind::Reserved(Reserved::RLike) => Operator::RLIKE,
            _ if negated => return Err(self.expected("IN, BETWEEN, LIKE, ILIKE or RLIKE after NOT")),
            _ => return self.build(name, Operator::TRUTH, false, Vec::new(), self.previous_end),
        };
        self.advance()?;
        let at = self.token.start;
        let mut pattern = self.value()?;
        if operator != Operator::RLIKE && self.take(Kind::Reserved(Reserved::Escape))? {
            pattern = self.rewrite_escape(pattern, at)?;
        }
        self.build(name, operator, negated, vec![pattern], at)
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

    /// What follows `name IS`. `x IS TRUE` is `x <=> TRUE`, as in Spark.
    fn is_predicate(&mut self, name: &str) -> Parsed<Node> {
        let negated = self.take(Kind::Reserved(Reserved::Not))?;
        let at = self.token.start;
        let (operator, operands) = match self.token.kind {
            Kind::Reserved(Reserved::Null) => (Operator::IS_NULL, Vec::new()),
            Kind::Reserved(Reserved::True) => (Operator::NULL_SAFE_EQUAL, vec![Value::Bool(true)]),
            Kind::Reserved(Reserved::False) => (Operator::NULL_SAFE_EQUAL, vec![Value::Bool(false)]),
            _ => return Err(self.expected("NULL, NOT NULL, TRUE or FALSE after IS")),
        };
        self.advance()?;
        self.build(name, operator, negated, operands, at)
    }

    /// What follows a value at the start of a predicate: `5 < age` is `age > 5`.
    fn literal_first(&mut self, value: Value, start: usize) -> Parsed<Node> {
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
        if !matches!(self.token.kind, Kind::Word | Kind::QuotedName) {
            return Err(self
                .expected("an attribute to compare the value with")
                .hint("a predicate has an attribute: age > 5; TRUE and FALSE are expressions of their own"));
        }
        let name = self.name()?;
        let node = self.build(&name, flipped, negated, vec![value], start)?;
        if comparison(self.token.kind).is_some() {
            return Err(self
                .expected("AND, OR or the end")
                .hint(format!("comparisons do not chain: write {name} > 1 AND {name} < 5, or BETWEEN")));
        }
        Ok(node)
    }

    /// A value without a comparison: TRUE, FALSE and NULL are expressions, others are not.
    fn constant(&mut self, value: Value, start: usize) -> Parsed<Node> {
        if self.at_operator() {
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
            _ if self.at_arithmetic() => return Err(self.stray()),
            _ => {
                let hint =
                    "a value alone is no predicate: write name = 'text', or x IN (1, 2) for several values";
                return Err(self.expected("a comparison after the value").hint(hint));
            }
        };
        self.predicates -= 1;
        Ok(Node { expr: Expr::Constant(outcome), height: 1 })
    }

    /// What follows the name of a function.
    fn call(&mut self, word: Token) -> Parsed<Node> {
        let name = self.slice(word);
        if is_double(name) || is_array(name) {
            let value = self.value_call(word)?;
            return self.literal_first(value, word.start);
        }
        let Some(operator) = function_named(name) else {
            let message = format!("there is no function {}", shown(name));
            return Err(Fault::new(word.start, message).hint(advice::for_function(name)));
        };
        self.advance()?;
        if !matches!(self.token.kind, Kind::Word | Kind::QuotedName) {
            let what = format!("an attribute as the first argument of {name}");
            return Err(self.expected(&what).hint(format!("write {name}(attribute, value)")));
        }
        let attribute = self.name()?;
        if self.token.kind == Kind::Open {
            let hint = format!("{name} takes an attribute: functions are not nested");
            return Err(self.expected("a comma").hint(hint));
        }
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
        self.build(&attribute, operator, false, operands, at)
    }

    fn build(
        &self,
        name: &str,
        operator: Operator,
        negated: bool,
        operands: Vec<Value>,
        at: usize,
    ) -> Parsed<Node> {
        let expr = build::predicate(name, operator, negated, operands)
            .map_err(|error| Fault::from_error(at, error))?;
        let height = match expr {
            Expr::Predicate(_) => 1,
            Expr::And(_) => 2,
            _ => 3,
        };
        Ok(Node { expr, height })
    }

    // --- names and values -------------------------------------------------------------------------

    /// A name whose first token is the current one.
    fn name(&mut self) -> Parsed<Cow<'a, str>> {
        let first = self.token;
        self.advance()?;
        self.rest_of_name(first)
    }

    /// The dotted path that starts with a token just read, as one flat name.
    fn rest_of_name(&mut self, first: Token) -> Parsed<Cow<'a, str>> {
        let mut name = self.segment(first)?;
        while self.take(Kind::Dot)? {
            if !matches!(self.token.kind, Kind::Word | Kind::QuotedName | Kind::Reserved(_)) {
                return Err(self
                    .expected("a name after the dot")
                    .hint("a name of other characters needs backquotes: a.`1st`"));
            }
            let segment = self.segment(self.token)?;
            self.advance()?;
            let name = name.to_mut();
            name.push('.');
            name.push_str(&segment);
            if name.len() > crate::expr::limits::MAX_NAME_BYTES {
                break;
            }
        }
        check_name(&name).map_err(|error| Fault::from_error(first.start, error))?;
        Ok(name)
    }

    fn segment(&self, token: Token) -> Parsed<Cow<'a, str>> {
        match (token.kind, self.slice(token)) {
            (Kind::QuotedName, "``") => {
                Err(Fault::new(token.start, "an attribute needs a name")
                    .hint("write it between the backquotes"))
            }
            (Kind::QuotedName, quoted) => Ok(Cow::Owned(literals::quoted_name(quoted))),
            (_, word) => Ok(Cow::Borrowed(word)),
        }
    }

    /// A literal: number, string, TRUE, FALSE, NULL, typed literal or array.
    fn value(&mut self) -> Parsed<Value> {
        let token = self.token;
        let value = match token.kind {
            Kind::Number => literals::number(self.lexeme(), false, token.start)?,
            Kind::Str { .. } | Kind::RawStr => return Ok(Value::Str(self.string()?.into())),
            Kind::Reserved(Reserved::True) => Value::Bool(true),
            Kind::Reserved(Reserved::False) => Value::Bool(false),
            Kind::Reserved(Reserved::Null) => Value::Null,
            Kind::Minus | Kind::Plus => {
                self.advance()?;
                if self.token.kind != Kind::Number {
                    return Err(self.expected("a number after the sign").hint(advice::ARITHMETIC));
                }
                literals::number(self.lexeme(), token.kind == Kind::Minus, token.start)?
            }
            Kind::Word => {
                self.advance()?;
                return match self.token.kind {
                    Kind::Open => self.value_call(token),
                    Kind::Str { .. } | Kind::RawStr => self.typed_literal(token),
                    _ => Err(self.not_a_value(token)),
                };
            }
            Kind::QuotedName => return Err(self.not_a_value(token)),
            Kind::Open => return Err(self.expected("a value").hint("write the value without parentheses")),
            _ => return Err(self.expected("a value")),
        };
        self.advance()?;
        Ok(value)
    }

    fn not_a_value(&self, token: Token) -> Box<Fault> {
        let word = self.slice(token);
        let message = format!("expected a value, found the attribute {}", shown(word));
        let hint = advice::for_word(word).unwrap_or_else(|| advice::TWO_ATTRIBUTES.into());
        Fault::new(token.start, message).hint(hint)
    }

    /// One or more strings; those that follow one another are one.
    fn string(&mut self) -> Parsed<Cow<'a, str>> {
        let start = self.token.start;
        let mut text = self.string_token()?;
        self.advance()?;
        while let Kind::Str { .. } | Kind::RawStr = self.token.kind {
            let next = self.string_token()?;
            text.to_mut().push_str(&next);
            self.check_string(text.len(), start)?;
            self.advance()?;
        }
        Ok(text)
    }

    fn string_token(&self) -> Parsed<Cow<'a, str>> {
        let lexeme = self.lexeme();
        let text = match self.token.kind {
            Kind::Str { plain } => literals::string(lexeme, plain, self.token.start)?,
            _ => literals::raw_string(lexeme),
        };
        self.check_string(text.len(), self.token.start)?;
        Ok(text)
    }

    fn check_string(&self, bytes: usize, at: usize) -> Parsed<()> {
        check_string_size(bytes).map_err(|error| Fault::from_error(at, error))
    }

    /// `TIMESTAMP '…'`: the word was read, the string is next.
    fn typed_literal(&mut self, word: Token) -> Parsed<Value> {
        let at = self.token.start;
        let text = self.string()?;
        let type_name = self.slice(word);
        literals::typed(type_name, &text, at).unwrap_or_else(|| {
            let message = format!("{} cannot stand before a string", shown(type_name));
            Err(Fault::new(word.start, message).hint(advice::for_typed_literal(type_name)))
        })
    }

    /// `ARRAY(…)` or `double('NaN')`: the word was read, the parenthesis is next.
    fn value_call(&mut self, word: Token) -> Parsed<Value> {
        let name = self.slice(word);
        if is_double(name) {
            self.advance()?;
            if !matches!(self.token.kind, Kind::Str { .. } | Kind::RawStr) {
                return Err(self.expected("a string").hint("write double('NaN')"));
            }
            let value = self.typed_literal(word)?;
            self.expect(Kind::Close, ")")?;
            return Ok(value);
        }
        if !is_array(name) {
            let message = format!("expected a value, found a call of {}", shown(name));
            let hint = advice::for_word(name).unwrap_or_else(|| {
                "the right side is a literal: a number, 'text', TIMESTAMP '…' or ARRAY(…)".into()
            });
            return Err(Fault::new(word.start, message).hint(hint));
        }
        self.values_in_parentheses().map(Value::Array)
    }

    /// `(value, …)`, which may be empty.
    fn values_in_parentheses(&mut self) -> Parsed<Vec<Value>> {
        self.expect(Kind::Open, "a list in parentheses")?;
        let mut values = Vec::new();
        if self.take(Kind::Close)? {
            return Ok(values);
        }
        loop {
            let start = self.token.start;
            let value = self.value()?;
            if matches!(value, Value::Array(_)) {
                return Err(Fault::new(start, "an array cannot be a member of a list or of an array"));
            }
            values.push(value);
            check_set_size(values.len()).map_err(|error| Fault::from_error(start, error))?;
            if self.take(Kind::Close)? {
                return Ok(values);
            }
            self.expect(Kind::Comma, "a comma or )")?;
        }
    }

    // --- tokens -----------------------------------------------------------------------------------

    fn advance(&mut self) -> Parsed<()> {
        self.previous_end = self.token.end;
        self.token = self.lexer.next()?;
        Ok(())
    }

    fn take(&mut self, kind: Kind) -> Parsed<bool> {
        let found = self.token.kind == kind;
        if found {
            self.advance()?;
        }
        Ok(found)
    }

    fn expect(&mut self, kind: Kind, what: &str) -> Parsed<()> {
        if self.take(kind)? { Ok(()) } else { Err(self.expected(what)) }
    }

    fn slice(&self, token: Token) -> &'a str {
        &self.lexer.text()[token.start..token.end]
    }

    fn lexeme(&self) -> &'a str {
        self.slice(self.token)
    }

    // --- what is wrong ----------------------------------------------------------------------------

    /// "expected …, found …", with a hint if there is one for what was found.
    fn expected(&self, what: &str) -> Box<Fault> {
        let lexeme = self.lexeme();
        let (at, found) = match self.token.kind {
            Kind::End => (self.previous_end, "the end of the expression".into()),
            _ => (self.token.start, shown(lexeme)),
        };
        let fault = Fault::new(at, format!("expected {what}, found {found}"));
        let hint = match self.token.kind {
            Kind::Word | Kind::Other | Kind::Plus | Kind::Minus => advice::for_stray(lexeme),
            _ => None,
        };
        match hint {
            Some(hint) => fault.hint(hint),
            None => fault,
        }
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

    fn at_arithmetic(&self) -> bool {
        matches!(self.lexeme(), "+" | "-" | "*" | "/" | "%")
    }

    fn stray(&self) -> Box<Fault> {
        self.expected("AND, OR or the end")
    }

    /// The token cannot follow what was read.
    fn stray_after(&self, read: &Expr) -> Box<Fault> {
        let name = match read {
            Expr::Predicate(bare) if bare.operator == Operator::TRUTH => Some(&*bare.attribute),
            _ => None,
        };
        let after_name = name.is_some();
        let what = match (after_name, self.levels) {
            (true, _) => "an operator after the attribute",
            (false, 0) => "AND, OR or the end",
            (false, _) => "AND, OR or )",
        };
        let fault = self.expected(what);
        let word = self.lexeme();
        let hint = match self.token.kind {
            Kind::Word if after_name => {
                let known =
                    ["BETWEEN", "IN", "IS", "LIKE", "ILIKE", "RLIKE", "NOT", "AND", "OR", "XOR", "XNOR"];
                // `CASE WHEN …`: the name was meant as a keyword.
                name.and_then(advice::for_word).or_else(|| advice::did_you_mean(word, known))
            }
            Kind::Word => advice::did_you_mean(word, ["AND", "OR", "XOR", "XNOR", "ESCAPE"]),
            Kind::Str { .. } | Kind::RawStr | Kind::Number if after_name => Some("write name = value".into()),
            kind if comparison(kind).is_some() => {
                Some("comparisons do not chain: write x > 1 AND x < 5, or x BETWEEN 1 AND 5".into())
            }
            _ => None,
        };
        match hint {
            Some(hint) => fault.hint(hint),
            None => fault,
        }
    }
}

/// The operator of a comparison symbol, and whether it is negated.
fn comparison(kind: Kind) -> Option<(Operator, bool)> {
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

fn function_named(name: &str) -> Option<Operator> {
    let is_it = |syntax| matches!(syntax, Syntax::Function(known) if known.eq_ignore_ascii_case(name));
    let code = REGISTRY.iter().position(|rules| is_it(rules.syntax()))?;
    Operator::from_code(code as u8)
}

fn is_double(name: &str) -> bool {
    name.eq_ignore_ascii_case("double")
}

fn is_array(name: &str) -> bool {
    name.eq_ignore_ascii_case("array")
}

/// A piece of the text for a message: not too long.
fn shown(lexeme: &str) -> String {
    const LONGEST: usize = 40;
    match lexeme.char_indices().nth(LONGEST) {
        Some((cut, _)) => format!("{}…", &lexeme[..cut]),
        None => lexeme.into(),
    }
}
