//! Text to tree: the Boolean subset of Spark SQL.
//!
//! ```text
//! expression = expression (OR | XOR | XNOR | AND) expression | NOT expression | ( expression ) | predicate
//!            | expression IS [NOT] (TRUE | FALSE | UNKNOWN)
//!            | (AT LEAST | AT MOST | EXACTLY) number OF (expression, …)
//! predicate  = term [NOT] operator operands | term comparison term | function(term, operands)
//!            | term | TRUE | FALSE | NULL, each with an optional ^weight
//! ```
//!
//! OR binds least, then XOR and XNOR, then AND, then NOT. A chain of one connective is one node. Operators
//! that wait for their right side are on an explicit stack, so no nesting can exhaust the thread's stack.

mod advice;
mod cursor;
mod fault;
mod intervals;
pub mod lexer;
mod literals;
mod names;
mod predicates;
mod quantifiers;
mod terms;
#[cfg(test)]
mod tests;
mod values;

use cursor::Cursor;
use fault::{Fault, Parsed, place_of};
use lexer::{Kind, Reserved};
use predicates::comparison;

use super::ast::{Expr, Predicate};
use super::build;
use super::limits::{MAX_DEPTH, MAX_PREDICATES, check_text_size, too_deep, too_many_predicates};
use super::operators::Operator;
use super::quantifier;
use super::truth_test::{TruthTest, truth_test};
use crate::error::ExpressionError;
use crate::term::place::is_place;
use crate::term::{Argument, Term};
use crate::text::is_plain_word;
use crate::value;

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
    let read = Parser::new(text).and_then(Parser::expression);
    read.map_err(|fault| advice::for_statement(text).unwrap_or(fault).locate(text))
}

/// The error with which a predicate of a text was refused after it was read, and the place of that predicate.
///
/// The tree keeps no places: few expressions are refused, and those are read again.
pub fn locate(
    text: &str,
    error: ExpressionError,
    is_refused: &dyn Fn(&Predicate) -> bool,
) -> ExpressionError {
    let parser = Parser::new(text).map(|parser| Parser { is_refused: Some(is_refused), ..parser });
    match parser.and_then(Parser::expression) {
        Ok(_) => error,
        Err(fault) => fault.with_error(error).locate(text),
    }
}

/// Reads a term, such as `lower(name)`.
///
/// ```
/// use tamis_core::expr::parse_term;
/// assert_eq!(parse_term("price*quantity").unwrap().name(), "price * quantity");
/// assert!(parse_term("5 + 3").is_err());
/// ```
pub fn parse_term(text: &str) -> Result<Term, ExpressionError> {
    check_text_size(text.len())?;
    let read = || {
        let mut cursor = Cursor::new(text)?;
        let word = cursor.token;
        let operand = match quantifier::Quantifier::named(cursor.lexeme()) {
            Some(quantifier) if word.kind == Kind::Word && text[word.end..].trim_start().starts_with('(') => {
                cursor.advance()?;
                Argument::Term(cursor.quantified(quantifier, word)?)
            }
            None if is_place(cursor.lexeme()) && text[word.end..].trim_start().starts_with('(') => {
                cursor.advance()?;
                Argument::Term(cursor.place(word)?)
            }
            _ => cursor.comparison_or_operand()?,
        };
        match (operand, cursor.token.kind) {
            (Argument::Term(term), Kind::End) => Ok(term),
            (_, Kind::End) => Err(Fault::new(0, "a term names at least one attribute")),
            _ => Err(cursor.expected("the end of the term")),
        }
    };
    read().map_err(|fault: Box<Fault>| fault.locate(text))
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

/// What is asked of the children of a threshold.
#[derive(Clone, Copy)]
struct Threshold {
    kind: ThresholdKind,
    count: usize,
}

#[derive(Clone, Copy)]
enum ThresholdKind {
    AtLeast,
    AtMost,
    Exactly,
}

impl Threshold {
    fn of(self, children: Vec<Expr>) -> Expr {
        match self.kind {
            ThresholdKind::AtLeast => build::at_least(self.count, children),
            ThresholdKind::AtMost => build::at_most(self.count, children),
            ThresholdKind::Exactly => build::exactly(self.count, children),
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
    /// A threshold that has just read its parenthesis, which is here, or a comma.
    Threshold {
        threshold: Threshold,
        children: Vec<Expr>,
        at: usize,
    },
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
            Self::Parenthesis(_) | Self::Threshold { .. } => 0,
            Self::Chain { connective, .. } => connective.binding(),
            Self::Not => 4,
        }
    }
}

struct Parser<'a> {
    cursor: Cursor<'a>,
    pending: Vec<Pending>,
    /// Parentheses and NOTs among the pending.
    levels: usize,
    predicates: usize,
    /// Which predicate to stop at; see [`locate`].
    is_refused: Option<&'a dyn Fn(&Predicate) -> bool>,
}

impl<'a> Parser<'a> {
    fn new(text: &'a str) -> Parsed<Self> {
        Ok(Self::at(Cursor::new(text)?))
    }

    /// For a part of a text, inside this many quantifiers.
    fn nested(text: &'a str, from: usize, to: usize, quantifiers: usize) -> Parsed<Self> {
        Ok(Self::at(Cursor::within(text, from, to, quantifiers)?))
    }

    fn at(cursor: Cursor<'a>) -> Self {
        Self { cursor, pending: Vec::new(), levels: 0, predicates: 0, is_refused: None }
    }

    fn expression(mut self) -> Parsed<Expr> {
        loop {
            self.open_levels()?;
            let start = self.cursor.token.start;
            let leaf = self.cursor.predicate()?;
            let mut node = self.count(leaf, start)?;
            self.check_truth(&node.expr)?;
            loop {
                match self.cursor.token.kind {
                    Kind::Close => node = self.close(node)?,
                    Kind::Caret => node = self.boost(node)?,
                    Kind::Reserved(Reserved::Is) => node = self.truth_test(node)?,
                    Kind::Comma if self.in_threshold() => {
                        self.next_of_threshold(node)?;
                        break;
                    }
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

    /// Reads NOTs and opening parentheses.
    fn open_levels(&mut self) -> Parsed<()> {
        loop {
            let level = match self.cursor.token.kind {
                Kind::Open => Pending::Parenthesis(self.cursor.token.start),
                Kind::Bang | Kind::Reserved(Reserved::Not) => Pending::Not,
                Kind::Word => match self.cursor.threshold()? {
                    Some(threshold) => {
                        let at = self.cursor.token.start;
                        Pending::Threshold { threshold, children: vec![], at }
                    }
                    None => return Ok(()),
                },
                _ => return Ok(()),
            };
            self.levels += 1;
            if self.levels > MAX_DEPTH {
                return Err(Fault::from_error(self.cursor.token.start, too_deep()));
            }
            self.pending.push(level);
            self.cursor.advance()?;
        }
    }

    /// Takes in what was read as one predicate, which may have become a small tree.
    fn count(&mut self, leaf: Expr, start: usize) -> Parsed<Node> {
        let (predicates, height) = size(&leaf);
        self.predicates += predicates;
        if self.predicates > MAX_PREDICATES {
            return Err(Fault::from_error(start, too_many_predicates()));
        }
        if let Some(is_refused) = self.is_refused {
            let mut is_found = false;
            leaf.for_each_predicate(&mut |predicate| is_found |= is_refused(predicate));
            if is_found {
                return Err(Fault::new(start, "this predicate is refused"));
            }
        }
        Ok(Node { expr: leaf, height })
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
                Pending::Parenthesis(_) | Pending::Threshold { .. } => {
                    unreachable!("a parenthesis binds nothing")
                }
            };
            if node.height > MAX_DEPTH {
                return Err(Fault::from_error(self.cursor.token.start, too_deep()));
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
            return self.cursor.advance();
        }
        // XOR after XNOR, or the reverse: from left to right.
        if self.pending.last().is_some_and(|top| top.binding() == connective.binding()) {
            node = self.reduce(node, connective.binding() - 1)?;
        }
        let mut children = Vec::with_capacity(4);
        children.push(node.expr);
        self.pending.push(Pending::Chain { connective, children, height: node.height });
        self.cursor.advance()
    }

    fn close(&mut self, node: Node) -> Parsed<Node> {
        let node = self.reduce(node, 0)?;
        match self.pending.pop() {
            None => {
                let hint = "leave it out, or open a parenthesis before";
                return Err(Fault::new(self.cursor.token.start, "this ) closes nothing").hint(hint));
            }
            Some(Pending::Threshold { threshold, mut children, at }) => {
                self.levels -= 1;
                self.cursor.advance()?;
                self.check_truth_of_child(&node.expr)?;
                children.push(node.expr);
                self.predicates -= children.iter().map(|child| size(child).0).sum::<usize>();
                let built = threshold.of(children);
                let node = self.count(built, at)?;
                return match node.height > MAX_DEPTH {
                    true => Err(Fault::from_error(at, too_deep())),
                    false => Ok(node),
                };
            }
            Some(_) => {}
        }
        self.levels -= 1;
        self.cursor.advance()?;
        match node.expr {
            // `(age) > 30` is `age > 30`, and `(a + b) * 2` goes on as a term.
            Expr::Predicate(bare)
                if bare.operator == Operator::TRUTH
                    && bare.weight.is_none()
                    && self.cursor.continues_term() =>
            {
                self.predicates -= 1;
                let start = self.cursor.token.start;
                let leaf = self.cursor.after_term(bare.term, start)?;
                self.check_truth(&leaf)?;
                self.count(leaf, start)
            }
            expr => {
                self.check_truth(&expr)?;
                Ok(Node { expr, ..node })
            }
        }
    }

    /// Whether the innermost parenthesis that is open is that of a threshold.
    fn in_threshold(&self) -> bool {
        let open = self.pending.iter().rev().find(|pending| pending.binding() == 0);
        matches!(open, Some(Pending::Threshold { .. }))
    }

    /// Takes in a child of a threshold behind which a comma stands.
    fn next_of_threshold(&mut self, node: Node) -> Parsed<()> {
        let node = self.reduce(node, 0)?;
        self.check_truth_of_child(&node.expr)?;
        if let Some(Pending::Threshold { children, .. }) = self.pending.last_mut() {
            children.push(node.expr);
        }
        self.cursor.advance()
    }

    /// In a threshold, a term that is neither true nor false does not go on behind the parenthesis.
    fn check_truth_of_child(&self, expr: &Expr) -> Parsed<()> {
        match expr {
            Expr::Predicate(Predicate { operator: Operator::TRUTH, term, .. })
                if term.kind().is_some_and(|kind| kind != value::Kind::Bool) =>
            {
                Err(self.cursor.expected("a comparison before the end of the threshold"))
            }
            _ => Ok(()),
        }
    }

    /// A term that is neither true nor false must go on, if not here then behind its parenthesis.
    fn check_truth(&self, expr: &Expr) -> Parsed<()> {
        let Expr::Predicate(Predicate { operator: Operator::TRUTH, term, .. }) = expr else {
            return Ok(());
        };
        match term.kind() {
            Some(kind) if kind != value::Kind::Bool && self.cursor.token.kind != Kind::Close => {
                let hint = match term {
                    Term::Computed(computed) if computed.function().name() == "concat" => {
                        "write OR for one of two conditions: || joins strings".into()
                    }
                    _ => format!("{} alone is not a predicate: compare it with a value", kind.with_article()),
                };
                Err(self.cursor.expected("a comparison after the term").hint(hint))
            }
            _ => Ok(()),
        }
    }

    fn boost(&mut self, node: Node) -> Parsed<Node> {
        let at = self.cursor.token.start;
        self.cursor.advance()?;
        let negative = self.cursor.take(Kind::Minus)?;
        if self.cursor.token.kind != Kind::Number {
            return Err(self.cursor.expected("a weight after ^").hint("write (x > 1)^0.4"));
        }
        let weight = literals::number(self.cursor.lexeme(), negative, self.cursor.token.start)?;
        let weight = weight.as_ref().nearest_float().expect("a number token is a number");
        self.cursor.advance()?;
        let expr = build::boost(node.expr, weight).map_err(|error| Fault::from_error(at, error))?;
        Ok(Node { expr, ..node })
    }

    /// `(e) IS TRUE`, which `(e) IS NOT NULL` is not far from: that e is not unknown.
    fn truth_test(&mut self, node: Node) -> Parsed<Node> {
        let at = self.cursor.token.start;
        self.cursor.advance()?;
        let test = match self.cursor.after_is()? {
            (Some(test), _) => test,
            (None, true) => TruthTest::NotUnknown,
            (None, false) => TruthTest::Unknown,
        };
        self.predicates -= size(&node.expr).0;
        let tested = truth_test(&node.expr, test).map_err(|error| Fault::from_error(at, error))?;
        self.count(tested, at)
    }

    fn finish(&mut self, node: Node) -> Parsed<Expr> {
        let node = self.reduce(node, 0)?;
        match self.pending.pop() {
            None => Ok(node.expr),
            Some(Pending::Parenthesis(at) | Pending::Threshold { at, .. }) => {
                let opened = place_of(self.cursor.text(), at);
                let hint = format!(
                    "the parenthesis of line {}, column {} is never closed",
                    opened.line, opened.column
                );
                Err(self.cursor.expected(")").hint(hint))
            }
            Some(_) => unreachable!("all but parentheses were reduced"),
        }
    }

    /// The hint where a few words follow the first one of a name.
    fn name_with_blanks(&self, first: &str) -> Option<String> {
        const MOST_WORDS: usize = 8;
        if !is_plain_word(first) {
            return None;
        }
        let text = self.cursor.text();
        let mut ahead = Cursor::within(text, self.cursor.token.start, text.len(), 0).ok()?;
        let mut words = vec![first];
        while ahead.token.kind == Kind::Word && words.len() <= MOST_WORDS {
            words.push(ahead.lexeme());
            ahead.advance().ok()?;
        }
        let name = || words.join(" ");
        ahead.at_operator().then(|| format!("if this is one name, write it in backquotes: `{}`", name()))
    }

    /// The token cannot follow what was read.
    fn stray_after(&self, read: &Expr) -> Box<Fault> {
        let name = match read {
            Expr::Predicate(bare) if bare.operator == Operator::TRUTH => Some(bare.term.name()),
            _ => None,
        };
        let after_name = name.is_some();
        let what = match (after_name, self.levels) {
            (true, _) => "an operator after the attribute",
            (false, 0) => "AND, OR or the end",
            (false, _) => "AND, OR or )",
        };
        let fault = self.cursor.expected(what);
        let word = self.cursor.lexeme();
        let hint = match self.cursor.token.kind {
            Kind::Word if after_name => {
                let known =
                    ["BETWEEN", "IN", "IS", "LIKE", "ILIKE", "RLIKE", "NOT", "AND", "OR", "XOR", "XNOR"];
                // `CASE WHEN …`: the name was meant as a keyword.
                name.and_then(advice::for_word)
                    .or_else(|| advice::did_you_mean(word, known))
                    .or_else(|| self.name_with_blanks(name?))
            }
            Kind::Word => advice::did_you_mean(word, ["AND", "OR", "XOR", "XNOR", "ESCAPE"]),
            Kind::Str { .. } | Kind::RawStr | Kind::Number if after_name => Some("write name = value".into()),
            Kind::Equal if self.cursor.follows_parenthesis() => {
                Some("an expression is not a term: write (a > 1) XNOR b for two truths that are equal".into())
            }
            Kind::NotEqual if self.cursor.follows_parenthesis() => {
                Some("an expression is not a term: write (a > 1) XOR b for two truths that differ".into())
            }
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

/// The predicates and the levels of what one predicate of the text has become.
fn size(leaf: &Expr) -> (usize, usize) {
    match leaf {
        Expr::Constant(_) => (0, 1),
        Expr::Predicate(_) => (1, 1),
        Expr::Not(child) => {
            let (predicates, height) = size(child);
            (predicates, height + 1)
        }
        Expr::And(children)
        | Expr::Or(children)
        | Expr::Xor(children)
        | Expr::Xnor(children)
        | Expr::AtLeast(_, children) => {
            let sizes = children.iter().map(size);
            sizes.fold((0, 1), |(sum, highest), (predicates, height)| {
                (sum + predicates, highest.max(height + 1))
            })
        }
    }
}
