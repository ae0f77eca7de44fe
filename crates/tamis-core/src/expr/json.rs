//! Expressions as JSON, for programs that build or analyse them.
//!
//! ```text
//! expression = true | false | null
//!            | {"and": [expression, expression, …]}      also "or", "xor", "xnor": two or more
//!            | {"not": expression}
//!            | {"at_least": 2, "of": [expression, …]}      also "at_most", "exactly"
//!            | {"is_true": expression}                   also "is_false", "is_unknown", "is_not_true", …
//!            | {"attribute": "address.city", "operator": "IN", "operands": ["Geneva", "Paris"],
//!               "negated": true, "weight": 0.4}
//!            | {"term": "lower(address.city)", "operator": "=", "operands": ["geneva"]}
//! operand    = null | true | 12 | 1.5 | "text"
//!            | {"$timestamp": "2026-01-31T12:00:00Z"} | {"$float": "NaN"}
//! ```
//! Operators have the names of the registry: `=`, `<`, `<=`, `>`, `>=`, `<=>`, `IN`, `BETWEEN`, `IS NULL`,
//! `LIKE`, `ILIKE`, `RLIKE`, `startswith`, `endswith`, `contains`, `array_contains`, `arrays_overlap`, and
//! `truth` for a boolean attribute on its own. `operands` may be omitted if there are none, and `negated` if
//! it is false. Numbers are integers unless written with a fraction or an exponent.
//!
//! Names may come in any order, but an unknown or duplicate one is an error: a mistyped `wieght` must not
//! silently change a ranking.

use std::borrow::Cow;
use std::fmt::Write;

use super::ast::{Expr, Outcome, Predicate};
use super::build;
use super::limits::{MAX_DEPTH, MAX_PREDICATES, MAX_SET_MEMBERS};
use super::limits::{check_text_size, too_deep, too_many_predicates};
use super::operators::{Operator, REGISTRY};
use super::parser::parse_term;
use super::truth_test::{TruthTest, test_of, truth_test};
use crate::error::{ExpressionError, Place};
use crate::json::TextPlace;
use crate::json::cursor::{ByteCursor, Cursor, Fault};
use crate::json::{write_array, write_text};
use crate::suggest::suggest;
use crate::term::{NOW, Term};
use crate::value::Value;
use crate::value::timestamp::parse_timestamp;

const CONNECTIVES: [&str; 5] = ["and", "or", "xor", "xnor", "not"];
const THRESHOLDS: [&str; 3] = ["at_least", "at_most", "exactly"];
const PREDICATE_NAMES: [&str; 6] = ["attribute", "term", "operator", "operands", "negated", "weight"];

/// The expression as one line of JSON.
///
/// ```
/// use tamis_core::expr::{json, parse};
/// let expression = parse("age > 30 AND NOT opted_out")?;
/// let text = json::to_json(&expression);
/// assert_eq!(
///     text,
///     r#"{"and":[{"attribute":"age","operator":">","operands":[30]},{"not":{"attribute":"opted_out","operator":"truth"}}]}"#
/// );
/// assert_eq!(json::from_json(&text)?, expression);
/// # Ok::<_, tamis_core::ExpressionError>(())
/// ```
pub fn to_json(expr: &Expr) -> String {
    let mut json = String::new();
    write_expr(&mut json, expr);
    json
}

fn write_expr(json: &mut String, expr: &Expr) {
    match expr {
        Expr::Constant(Outcome::TRUE) => json.push_str("true"),
        Expr::Constant(Outcome::FALSE) => json.push_str("false"),
        Expr::Constant(_) => json.push_str("null"),
        Expr::Predicate(predicate) => write_predicate(json, predicate),
        Expr::Not(child) => {
            json.push_str("{\"not\":");
            write_expr(json, child);
            json.push('}');
        }
        Expr::And(children) => write_chain(json, "and", children),
        Expr::Or(children) => write_chain(json, "or", children),
        Expr::Xor(children) => write_chain(json, "xor", children),
        Expr::Xnor(children) => write_chain(json, "xnor", children),
        Expr::AtLeast(least, children) => {
            let _ = write!(json, "{{\"at_least\":{least},\"of\":[");
            write_list(json, children);
            json.push_str("]}");
        }
    }
}

fn write_chain(json: &mut String, connective: &str, children: &[Expr]) {
    json.push_str("{\"");
    json.push_str(connective);
    json.push_str("\":[");
    write_list(json, children);
    json.push_str("]}");
}

fn write_list(json: &mut String, children: &[Expr]) {
    for (at, child) in children.iter().enumerate() {
        if at > 0 {
            json.push(',');
        }
        write_expr(json, child);
    }
}

fn write_predicate(json: &mut String, predicate: &Predicate) {
    if let Some((looked_at, test)) = test_of(predicate) {
        let _ = write!(json, "{{\"{}\":", test.name());
        write_predicate(json, &Predicate { weight: predicate.weight, ..looked_at });
        json.push('}');
        return;
    }
    match &predicate.term {
        Term::Attribute(name) if **name != *NOW => {
            json.push_str("{\"attribute\":");
            write_text(json, name);
        }
        computed => {
            json.push_str("{\"term\":");
            write_text(json, computed.name());
        }
    }
    json.push_str(",\"operator\":");
    write_text(json, predicate.operator.rules().name());
    if !predicate.operands.is_empty() || takes_set(predicate.operator) {
        json.push_str(",\"operands\":");
        write_array(json, predicate.operands.iter());
    }
    if predicate.negated {
        json.push_str(",\"negated\":true");
    }
    if let Some(weight) = predicate.weight {
        let _ = write!(json, ",\"weight\":{weight:?}");
    }
    json.push('}');
}

/// Whether no operands are operands too: the empty set.
fn takes_set(operator: Operator) -> bool {
    matches!(operator, Operator::IN | Operator::ARRAYS_OVERLAP)
}

/// Reads an expression from JSON. Errors name the path of the element that is wrong, and its place.
///
/// ```
/// use tamis_core::expr::json::from_json;
/// let error = from_json(r#"{"and": [true, {"attribute": "age", "opertor": ">"}]}"#).unwrap_err();
/// assert_eq!(error.message, r#"and[1]: unknown name "opertor""#);
/// assert_eq!(error.hint.unwrap(), "did you mean `operator`?");
/// ```
pub fn from_json(text: &str) -> Result<Expr, ExpressionError> {
    check_text_size(text.len())?;
    let mut reader = Reader { cursor: ByteCursor::new(text), path: vec![], predicates: 0 };
    reader.document().map_err(|wrong| {
        let Wrong { at, mut error } = *wrong;
        if !reader.path.is_empty() {
            error.message = format!("{}: {}", shown_path(&reader.path), error.message);
        }
        let TextPlace { line, column, .. } = TextPlace::of(text, at);
        ExpressionError { place: Some(Place { line, column }), ..error }
    })
}

/// One step from an element to one inside it.
#[derive(Clone, Copy)]
enum Step {
    Name(&'static str),
    Index(usize),
}

fn shown_path(path: &[Step]) -> String {
    let mut shown = String::new();
    for step in path {
        let _ = match step {
            Step::Name(name) if shown.is_empty() => write!(shown, "{name}"),
            Step::Name(name) => write!(shown, ".{name}"),
            Step::Index(index) => write!(shown, "[{index}]"),
        };
    }
    shown
}

/// What is wrong, at which byte. Boxed, as it is rare and results are returned at every level.
struct Wrong {
    at: usize,
    error: ExpressionError,
}

type Read<T> = Result<T, Box<Wrong>>;

impl From<Fault> for Box<Wrong> {
    fn from(Fault { at, message, hint }: Fault) -> Self {
        Box::new(Wrong {
            at,
            error: ExpressionError { hint: hint.map(str::to_string), ..ExpressionError::new(message) },
        })
    }
}

fn wrong<T>(at: usize, error: ExpressionError) -> Read<T> {
    Err(Box::new(Wrong { at, error }))
}

struct Reader<'a> {
    cursor: ByteCursor<'a>,
    /// Where the reader is; left as it is when something is wrong.
    path: Vec<Step>,
    predicates: usize,
}

impl<'a> Reader<'a> {
    fn document(&mut self) -> Read<Expr> {
        let expr = self.expression(1)?;
        match self.cursor.peek() {
            None => Ok(expr),
            Some(_) => {
                wrong(self.cursor.at(), ExpressionError::new("there is more text after the expression"))
            }
        }
    }

    fn expression(&mut self, depth: usize) -> Read<Expr> {
        let first = self.cursor.peek();
        if depth > MAX_DEPTH {
            return wrong(self.cursor.at(), too_deep());
        }
        match first {
            Some(b'{') => self.object(depth),
            Some(b't' | b'f' | b'n') => Ok(Expr::Constant(match self.word()? {
                Some(truth) => truth.into(),
                None => Outcome::UNDEFINED,
            })),
            Some(b'[' | b'"' | b'-' | b'0'..=b'9') => wrong(
                self.cursor.at(),
                ExpressionError::new("an expression is an object, true, false or null")
                    .with_hint(r#"write {"attribute": "age", "operator": ">", "operands": [30]}"#),
            ),
            _ => Err(self.cursor.unexpected("an expression").into()),
        }
    }

    /// `None` for null.
    fn word(&mut self) -> Read<Option<bool>> {
        Ok(match self.cursor.peek() {
            Some(b't') => self.cursor.word("true").map(|()| Some(true))?,
            Some(b'f') => self.cursor.word("false").map(|()| Some(false))?,
            Some(b'n') => self.cursor.word("null").map(|()| None)?,
            _ => return Err(self.cursor.unexpected("a value").into()),
        })
    }

    /// A connective or a predicate, as its first name says.
    fn object(&mut self, depth: usize) -> Read<Expr> {
        let start = self.cursor.at();
        self.cursor.expect(b'{', "an object")?;
        if self.cursor.take(b'}') {
            let hint = r#"write {"and": […]} or {"attribute": "age", "operator": ">", "operands": [30]}"#;
            return wrong(start, ExpressionError::new("this object is empty").with_hint(hint));
        }
        let (name, at) = self.name()?;
        if let Some(connective) = CONNECTIVES.into_iter().find(|known| *known == name) {
            return self.connective(connective, depth);
        }
        if let Some(threshold) = THRESHOLDS.into_iter().find(|known| *known == name) {
            return self.threshold(threshold, start, depth);
        }
        if let Some(test) = TruthTest::ALL.into_iter().find(|test| test.name() == name) {
            return self.connective(test.name(), depth);
        }
        if let Some(first) = PREDICATE_NAMES.into_iter().find(|known| *known == name) {
            return self.predicate(first, start);
        }
        unknown_name(&name, at, CONNECTIVES.into_iter().chain(THRESHOLDS).chain(PREDICATE_NAMES))
    }

    /// The name of a member, behind which its value follows.
    fn name(&mut self) -> Read<(Cow<'a, str>, usize)> {
        if self.cursor.peek() != Some(b'"') {
            return Err(self.cursor.unexpected("a name in quotes").into());
        }
        let at = self.cursor.at();
        let name = self.cursor.string()?;
        self.cursor.expect(b':', "`:` after a name")?;
        Ok((name, at))
    }

    fn connective(&mut self, connective: &'static str, depth: usize) -> Read<Expr> {
        self.path.push(Step::Name(connective));
        let expr = match connective {
            "not" => Expr::Not(Box::new(self.expression(depth + 1)?)),
            "and" => Expr::And(self.children(connective, depth)?),
            "or" => Expr::Or(self.children(connective, depth)?),
            "xor" => Expr::Xor(self.children(connective, depth)?),
            "xnor" => Expr::Xnor(self.children(connective, depth)?),
            test => self.truth_test(test, depth)?,
        };
        self.path.pop();
        match self.cursor.peek() {
            Some(b',') => wrong(
                self.cursor.at(),
                ExpressionError::new(format!("another name follows `{connective}`"))
                    .with_hint("an object with a connective has no other name: nest the objects"),
            ),
            _ => Ok(self.cursor.expect(b'}', "`}`").map(|()| expr)?),
        }
    }

    /// The number and the children of a threshold; its first name has been read.
    fn threshold(&mut self, name: &'static str, start: usize, depth: usize) -> Read<Expr> {
        self.path.push(Step::Name(name));
        self.cursor.peek();
        let at = self.cursor.at();
        let count = match self.operand()? {
            Value::Int(count) => usize::try_from(count).ok(),
            _ => None,
        };
        let Some(count) = count else {
            return wrong(
                at,
                ExpressionError::new("this must be the number of expressions that are asked for"),
            );
        };
        self.path.pop();
        let names = || ExpressionError::new(format!("`{name}` and `of` belong together"));
        if !self.cursor.take(b',') {
            return wrong(start, names().with_hint(format!(r#"write {{"{name}": {count}, "of": […]}}"#)));
        }
        let (of, at) = self.name()?;
        if of != "of" {
            return wrong(at, names());
        }
        self.path.push(Step::Name("of"));
        self.cursor.peek();
        let at = self.cursor.at();
        let before = self.predicates;
        let children = self.list(usize::MAX, |reader| reader.expression(depth + 1))?;
        if children.is_empty() {
            return wrong(at, ExpressionError::new("a threshold needs at least one expression"));
        }
        self.path.pop();
        let expr = match name {
            "at_least" => build::at_least(count, children),
            "at_most" => build::at_most(count, children),
            _ => build::exactly(count, children),
        };
        self.recount(&expr, before, at)?;
        self.cursor.expect(b'}', "`}`")?;
        Ok(expr)
    }

    /// Counts what an expression has become since there were this many predicates.
    fn recount(&mut self, expr: &Expr, before: usize, at: usize) -> Read<()> {
        let mut predicates = 0;
        expr.for_each_predicate(&mut |_| predicates += 1);
        self.predicates = before + predicates;
        match self.predicates > MAX_PREDICATES {
            true => wrong(at, too_many_predicates()),
            false => Ok(()),
        }
    }

    /// What stands behind the name of a truth test.
    fn truth_test(&mut self, name: &str, depth: usize) -> Read<Expr> {
        self.cursor.peek();
        let start = self.cursor.at();
        let before = self.predicates;
        let expr = self.expression(depth + 1)?;
        let test = TruthTest::ALL.into_iter().find(|test| test.name() == name).expect("the name of a test");
        let tested = truth_test(&expr, test).or_else(|error| wrong(start, error))?;
        self.recount(&tested, before, start)?;
        Ok(tested)
    }

    fn children(&mut self, connective: &str, depth: usize) -> Read<Vec<Expr>> {
        self.cursor.peek();
        let start = self.cursor.at();
        let children = self.list(usize::MAX, |reader| reader.expression(depth + 1))?;
        if children.len() < 2 {
            let message = format!("`{connective}` needs two expressions or more, not {}", children.len());
            return wrong(start, ExpressionError::new(message));
        }
        Ok(children)
    }

    fn list<T>(&mut self, most: usize, mut item: impl FnMut(&mut Self) -> Read<T>) -> Read<Vec<T>> {
        self.cursor.expect(b'[', "an array")?;
        let mut items = vec![];
        if self.cursor.take(b']') {
            return Ok(items);
        }
        loop {
            if items.len() == most {
                let message = format!("an array here may have at most {most} elements");
                return wrong(self.cursor.at(), ExpressionError::new(message));
            }
            self.path.push(Step::Index(items.len()));
            items.push(item(self)?);
            self.path.pop();
            if self.cursor.take(b']') {
                return Ok(items);
            }
            self.cursor.expect(b',', "`,` or `]`")?;
        }
    }

    /// The members of a predicate; the first name has been read.
    fn predicate(&mut self, first: &'static str, start: usize) -> Read<Expr> {
        self.predicates += 1;
        if self.predicates > MAX_PREDICATES {
            return wrong(start, too_many_predicates());
        }
        let (mut attribute, mut term, mut operator, mut operands) = (None, None, None, None);
        let (mut negated, mut weight) = (None, None);
        let (mut name, mut at) = (first, start);
        loop {
            self.path.push(Step::Name(name));
            let is_new = match name {
                "attribute" => attribute.replace(self.cursor.string()?).is_none(),
                "term" => term.replace(self.cursor.string()?).is_none(),
                "operator" => operator.replace(self.operator()?).is_none(),
                "operands" => operands.replace(self.list(MAX_SET_MEMBERS, Self::operand)?).is_none(),
                "negated" => negated.replace(self.truth()?).is_none(),
                _ => weight.replace(self.weight()?).is_none(),
            };
            self.path.pop();
            if !is_new {
                return wrong(at, ExpressionError::new(format!("the name {name:?} is given twice")));
            }
            if self.cursor.take(b'}') {
                break;
            }
            self.cursor.expect(b',', "`,` or `}`")?;
            let (next, next_at) = self.name()?;
            (name, at) = match PREDICATE_NAMES.into_iter().find(|known| *known == next) {
                Some(known) => (known, next_at),
                None => return unknown_name(&next, next_at, PREDICATE_NAMES),
            };
        }
        let missing = |name: &str| wrong(start, ExpressionError::new(format!("`{name}` is missing")));
        let term = match (attribute, term) {
            (Some(attribute), None) => Ok(Term::attribute(&attribute)),
            (None, Some(text)) => parse_term(&text),
            (None, None) => return missing("attribute"),
            (Some(_), Some(_)) => Err(ExpressionError::new("`attribute` and `term` are both given")
                .with_hint("an attribute is the simplest term: keep one of them")),
        };
        let Some(operator) = operator else { return missing("operator") };
        let operands = operands.unwrap_or_default();
        let negated = negated.unwrap_or(false);
        let built = term.and_then(|term| build::predicate(term, operator, negated, operands));
        let built = built.and_then(|expr| build::check_truth(&expr).map(|()| expr));
        let boosted = match weight {
            None => built,
            Some(weight) => built.and_then(|expr| build::boost(expr, weight)),
        };
        boosted.or_else(|error| wrong(start, error))
    }

    fn operator(&mut self) -> Read<Operator> {
        self.cursor.peek();
        let at = self.cursor.at();
        let name = self.cursor.string()?;
        if let Some(operator) = Operator::named(&name) {
            return Ok(operator);
        }
        let error = ExpressionError::new(format!("there is no operator {name:?}"));
        let positive = match &*name {
            "!=" | "<>" => Some("="),
            "IS NOT NULL" => Some("IS NULL"),
            other => other.strip_prefix("NOT ").filter(|rest| Operator::named(rest).is_some()),
        };
        if let Some(positive) = positive {
            let hint = format!("write \"operator\": {positive:?}, \"negated\": true");
            return wrong(at, error.with_hint(hint));
        }
        wrong(at, with_suggestion(error, &name, REGISTRY.iter().map(|rules| rules.name())))
    }

    fn truth(&mut self) -> Read<bool> {
        match self.cursor.peek() {
            Some(b't' | b'f') => Ok(self.word()? == Some(true)),
            _ => Err(self.cursor.unexpected("true or false").into()),
        }
    }

    fn weight(&mut self) -> Read<f64> {
        match self.cursor.peek() {
            Some(b'-' | b'0'..=b'9') => {
                Ok(self.cursor.number()?.as_ref().nearest_float().expect("it is a number"))
            }
            _ => Err(self.cursor.unexpected("a number as the weight").into()),
        }
    }

    fn operand(&mut self) -> Read<Value> {
        Ok(match self.cursor.peek() {
            Some(b'"') => Value::Str(self.cursor.string()?.into()),
            Some(b'-' | b'0'..=b'9') => self.cursor.number()?,
            Some(b'{') => self.marked_operand()?,
            Some(b'[') => {
                let error = ExpressionError::new("an operand cannot be an array")
                    .with_hint("the members of a set are the operands: \"operands\": [1, 2]");
                return wrong(self.cursor.at(), error);
            }
            _ => self.word()?.map_or(Value::Null, Value::Bool),
        })
    }

    /// `{"$timestamp": "…"}`, `{"$float": "…"}` or `{"$decimal": "…"}`.
    fn marked_operand(&mut self) -> Read<Value> {
        self.cursor.expect(b'{', "an object")?;
        let (marker, at) = self.name()?;
        if !matches!(&*marker, "$timestamp" | "$float" | "$decimal") {
            return unknown_name(&marker, at, ["$timestamp", "$float", "$decimal"]);
        }
        self.cursor.peek();
        let at = self.cursor.at();
        let text = self.cursor.string()?;
        let (value, hint) = match &*marker {
            "$timestamp" => {
                let value = parse_timestamp(&text).map(Value::Timestamp);
                (value, "timestamps are written \"2026-01-31T12:00:00Z\"")
            }
            "$decimal" => (
                Value::decimal(&text).ok(),
                "decimals are written \"12345678901234567.89\", with up to 100 digits",
            ),
            _ => {
                let value = match &*text {
                    "NaN" => Some(f64::NAN),
                    "Infinity" => Some(f64::INFINITY),
                    "-Infinity" => Some(f64::NEG_INFINITY),
                    _ => None,
                };
                (value.map(Value::Float), "a float in quotes is \"NaN\", \"Infinity\" or \"-Infinity\"")
            }
        };
        let Some(value) = value else {
            let error = ExpressionError::new(format!("{text:?} is no {}", &marker[1..]));
            return wrong(at, error.with_hint(hint));
        };
        self.cursor.expect(b'}', "`}`")?;
        Ok(value)
    }
}

fn unknown_name<T>(name: &str, at: usize, known: impl IntoIterator<Item = &'static str> + Clone) -> Read<T> {
    let error = ExpressionError::new(format!("unknown name {name:?}"));
    wrong(at, with_suggestion(error, name, known))
}

fn with_suggestion(
    error: ExpressionError,
    name: &str,
    known: impl IntoIterator<Item = &'static str> + Clone,
) -> ExpressionError {
    match suggest(name, known.clone()) {
        Some(meant) => error.with_hint(format!("did you mean `{meant}`?")),
        None => {
            let known: Vec<_> = known.into_iter().collect();
            error.with_hint(format!("known are {}", known.join(", ")))
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::expr::parse;
    use crate::expr::testing::{any_expr, predicate};

    #[test]
    fn json_and_text_say_the_same() {
        for (text, json) in [
            ("TRUE", "true"),
            ("NULL", " null "),
            ("a", r#"{"attribute": "a", "operator": "truth"}"#),
            ("a IN ()", r#"{"attribute": "a", "operator": "IN"}"#),
            ("a != 1", r#"{"attribute":"a","operator":"=","operands":[1],"negated":true}"#),
            ("a IN (2, 1.5)", r#"{"operands": [2, 1.5], "operator": "IN", "attribute": "a"}"#),
            ("(a > 1)^0.4", r#"{"weight": 0.4, "attribute": "a", "operator": ">", "operands": [1]}"#),
            (
                "NOT startswith(a, 'x')",
                r#"{"attribute": "a", "operator": "startswith", "operands": ["x"], "negated": true}"#,
            ),
            (
                "t = TIMESTAMP '2026-01-31 12:00:00'",
                r#"{"attribute":"t","operator":"=","operands":[{"$timestamp":"2026-01-31T12:00:00Z"}]}"#,
            ),
            (
                "x IN (double('-Infinity'), double('NaN'))",
                r#"{"attribute":"x","operator":"IN","operands":[{"$float":"NaN"},{"$float":"-Infinity"}]}"#,
            ),
            (
                "a AND (b OR c) XOR NOT d",
                r#"{"xor": [{"and": [{"attribute":"a","operator":"truth"},
                    {"or": [{"attribute":"b","operator":"truth"}, {"attribute":"c","operator":"truth"}]}]},
                    {"not": {"attribute":"d","operator":"truth"}}]}"#,
            ),
            ("TRUE XNOR NULL", r#"{"xnor": [true, null]}"#),
        ] {
            let expected = parse(text).unwrap();
            assert_eq!(from_json(json).unwrap_or_else(|error| panic!("{json}: {error}")), expected);
            assert_eq!(from_json(&to_json(&expected)).unwrap(), expected);
        }
    }

    #[test]
    fn errors_name_the_element() {
        for (json, message, hint) in [
            ("", "the text ends where an expression should follow", ""),
            ("1", "an expression is an object", r#"{"attribute""#),
            ("true true", "more text after the expression", ""),
            ("{}", "this object is empty", ""),
            (r#"{"adn": []}"#, r#"unknown name "adn""#, "did you mean `and`?"),
            (r#"{"column": "a"}"#, r#"unknown name "column""#, "known are and, or"),
            (r#"{"and": [true]}"#, "and: `and` needs two expressions or more, not 1", ""),
            (r#"{"and": [true, false], "or": [true, false]}"#, "another name follows `and`", "nest"),
            (r#"{"or": [true, {"not": {"wieght": 1}}]}"#, r#"or[1].not: unknown name "wieght""#, "`weight`"),
            (r#"{"attribute": "a"}"#, "`operator` is missing", ""),
            (r#"{"operator": "="}"#, "`attribute` is missing", ""),
            (r#"{"attribute": "a", "attribute": "b"}"#, r#"the name "attribute" is given twice"#, ""),
            (r#"{"attribute": 1}"#, "attribute: expected a string", ""),
            (r#"{"attribute": "a", "operator": "between"}"#, "operator: there is no operator", "`BETWEEN`"),
            (r#"{"attribute": "a", "operator": "NOT IN"}"#, "no operator", r#""IN", "negated": true"#),
            (r#"{"attribute": "a", "operator": "!="}"#, "no operator", r#""=", "negated": true"#),
            (r#"{"attribute": "a", "operator": "=", "operands": []}"#, "= takes one operand, not 0", ""),
            (r#"{"attribute": "", "operator": "truth"}"#, "an attribute needs a name", ""),
            (
                r#"{"attribute": "a", "operands": [1, [2]]}"#,
                "operands[1]: an operand cannot be an array",
                "set",
            ),
            (r#"{"attribute": "a", "operands": [{"$date": ""}]}"#, "operands[0]: unknown name", "$timestamp"),
            (r#"{"attribute": "a", "operands": [{"$float": "1"}]}"#, r#""1" is no float"#, "NaN"),
            (r#"{"attribute": "a", "operands": [9223372036854775808]}"#, "does not fit in 64 bits", ""),
            (r#"{"attribute": "a", "negated": 1}"#, "negated: expected true or false", ""),
            (r#"{"attribute": "a", "operator": "truth", "weight": -1}"#, "weight of -1 is refused", "finite"),
            (r#"{"and": [true, {"not": ]}"#, "and[1].not: expected an expression", ""),
        ] {
            let error = from_json(json).expect_err(json);
            assert!(error.message.contains(message), "{json}: {error}");
            assert!(error.hint.unwrap_or_default().contains(hint), "{json}");
            assert!(error.place.is_some());
        }
        let error = from_json("{\"and\": [true,\n  {\"or\": 1}]}").unwrap_err();
        assert_eq!(error.place, Some(Place { line: 2, column: 10 }));
    }

    #[test]
    fn limits_are_kept() {
        let nested = |levels: usize| format!("{}true{}", "{\"not\":".repeat(levels), "}".repeat(levels));
        assert!(from_json(&nested(MAX_DEPTH - 1)).is_ok());
        assert!(from_json(&nested(MAX_DEPTH)).unwrap_err().message.contains("deeper than 256"));
        let deep = nested(MAX_DEPTH - 1);
        let in_a_thread = std::thread::Builder::new().stack_size(2 << 20);
        let read = in_a_thread.spawn(move || {
            let text = from_json(&deep).map(|expr| (expr.to_string(), to_json(&expr)));
            text.unwrap().1 == deep && from_json(&"{\"not\":".repeat(100_000)).is_err()
        });
        assert!(read.unwrap().join().unwrap());
        let one = to_json(&Expr::Predicate(predicate("a", "truth", &[])));
        let many = format!("{{\"or\":[{}]}}", vec![one.as_str(); MAX_PREDICATES + 1].join(","));
        assert!(from_json(&many).unwrap_err().message.contains("more than 65536 predicates"));
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(expr in any_expr(5)) {
            let again = from_json(&to_json(&expr)).unwrap();
            prop_assert_eq!(again.to_string(), expr.to_string());
            prop_assert_eq!(from_json(&to_json(&again)).unwrap(), again);
        }

        #[test]
        fn no_text_is_fatal(text in any::<String>(), expr in any_expr(2), cut in any::<prop::sample::Index>()) {
            let _ = from_json(&text);
            let mut json = to_json(&expr);
            let at = cut.index(json.len());
            if json.is_char_boundary(at) {
                json.replace_range(at.., "}");
                let _ = from_json(&json);
            }
        }
    }
}
