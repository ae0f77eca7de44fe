//! Which predicates a schema refuses: those on attributes that it does not declare, and those that could never be true or
//! false for values of the declared types. Bodies of quantifiers are checked like any other expression: their variable
//! stands for an element of the array.

use super::{Schema, Type};
use crate::error::ExpressionError;
use crate::event::timestamp::{format_timestamp, parse_timestamp};
use crate::event::{Value, value::Kind};
use crate::expr::operators::{Operator, Syntax};
use crate::expr::quantifier::{Quantified, Quantifier, field_of};
use crate::expr::{Expr, Predicate};
use crate::suggest::suggest;
use crate::term::{Argument, Computed, NOW, STRINGS, Term};
use crate::text::{LiteralText, Name};

/// Follows the name of an array where its elements are meant.
const ELEMENT: &str = "[]";

/// What a schema says about a name.
#[derive(Clone, Copy)]
enum Declared<'s> {
    As(&'s Type),
    /// A record, or an array of records, with this field.
    Record(&'s str),
    /// It lies in a record that may have any fields.
    Open,
    Nothing,
}

impl Declared<'_> {
    fn kind(self) -> Option<Kind> {
        match self {
            Declared::As(of) => Some(of.kind()),
            Declared::Record(_) => Some(Kind::Record),
            Declared::Open | Declared::Nothing => None,
        }
    }
}

/// The variable of a quantifier around a predicate.
struct Scope<'a> {
    variable: &'a str,
    /// The path of the array.
    array: String,
    /// What the elements are.
    elements: Declared<'a>,
    around: Option<&'a Scope<'a>>,
}

impl Schema {
    /// Refuses a predicate on an attribute that is not declared, or that could never be true or false
    /// for a value of the declared type.
    ///
    /// ```
    /// use tamis_core::event::Schema;
    /// use tamis_core::expr::{Expr, parse};
    /// let schema = Schema::parse([("tags", "array<string>")]).unwrap();
    /// let Expr::Predicate(predicate) = parse("exists(tags, t -> t > 5)").unwrap() else { unreachable!() };
    /// let error = schema.check_predicate(&predicate).unwrap_err();
    /// assert_eq!(error.message, "`tags[]` is a string; `>` compares it with the number 5");
    /// ```
    pub fn check_predicate(&self, predicate: &Predicate) -> Result<(), ExpressionError> {
        self.check_in(predicate, None)
    }

    fn check_in(&self, predicate: &Predicate, scope: Option<&Scope<'_>>) -> Result<(), ExpressionError> {
        let name = match &predicate.term {
            Term::Attribute(name) if **name == *NOW => return check_now(predicate),
            Term::Attribute(name) => &**name,
            Term::Computed(computed) => return self.check_computed(computed, predicate, scope),
            Term::Boolean(boolean) => {
                return match boolean.as_any().downcast_ref() {
                    Some(quantified) => self.check_quantified(quantified, scope),
                    None => boolean.inputs().iter().try_for_each(|input| self.check_number(input, scope)),
                };
            }
        };
        let expected = predicate.operator.is_about(&predicate.operands);
        let (attribute, declared) = self.declared_in(name, scope);
        let declared = match declared {
            Declared::As(declared) => declared,
            Declared::Open => return Ok(()),
            Declared::Nothing => return Err(self.not_declared(&attribute)),
            Declared::Record(_) if expected.is_none() => return Ok(()),
            Declared::Record(field) => {
                return Err(ExpressionError::new(format!("attribute `{attribute}` is a record"))
                    .with_hint(format!("compare one of its fields, such as `{field}`")));
            }
        };
        let Some(expected) = expected else { return Ok(()) };
        if expected != declared.kind() {
            return Err(wrong_kind(&attribute, declared.into(), predicate, expected));
        }
        if let Type::Array(of) = declared {
            let tested = predicate.operator.tested(&predicate.operands);
            for element in elements(tested.map_or(&*predicate.operands, |inner| inner.operands)) {
                if let Some(kind) = element.kind().filter(|kind| *kind != of.kind()) {
                    let message = format!("`{attribute}` is an {declared}, which holds no {}", kind.name());
                    let hint =
                        literal_hint(element, of.kind()).unwrap_or_else(|| format!("give a {of} instead"));
                    return Err(ExpressionError::new(message).with_hint(hint));
                }
            }
        }
        Ok(())
    }

    /// Refuses a quantifier over what has no elements, and one whose body is refused for them.
    fn check_quantified(
        &self,
        quantified: &Quantified,
        scope: Option<&Scope<'_>>,
    ) -> Result<(), ExpressionError> {
        let (array, declared) = match &*quantified.array {
            STRINGS => (STRINGS.to_owned(), Declared::As(&Type::Str)),
            name => self.declared_in(name, scope),
        };
        let elements = match declared {
            Declared::Nothing => return Err(self.not_declared(&array)),
            Declared::As(Type::Array(of)) if **of == Type::Record => Declared::Open,
            Declared::As(Type::Array(of)) => Declared::As(of),
            Declared::As(_) if array == STRINGS || quantified.quantifier == Quantifier::Any => declared,
            Declared::As(of) => {
                let name = quantified.quantifier.name();
                return Err(ExpressionError::new(format!(
                    "`{array}` is {}; `{name}` takes an array",
                    with_article(of)
                ))
                .with_hint(format!(
                    "`any` takes a value for an array of one: ANY({}) = …",
                    quantified.array
                )));
            }
            open => open,
        };
        let scope = Scope { variable: &quantified.variable, array, elements, around: scope };
        let mut outcome = Ok(());
        quantified.body.for_each_predicate(&mut |predicate| {
            if outcome.is_ok() {
                outcome = self.check_in(predicate, Some(&scope));
            }
        });
        outcome
    }

    /// Refuses a computed term that is undefined for all values of the declared types, and a predicate about
    /// another kind of value than the term has.
    fn check_computed(
        &self,
        computed: &Computed,
        predicate: &Predicate,
        scope: Option<&Scope<'_>>,
    ) -> Result<(), ExpressionError> {
        let given = self.kind_of(computed, scope)?;
        let expected = predicate.operator.is_about(&predicate.operands);
        match given.zip(expected) {
            Some((given, expected)) if given != expected => {
                Err(wrong_kind(predicate.term.name(), given.into(), predicate, expected))
            }
            _ => Ok(()),
        }
    }

    /// Refuses what can be no coordinate.
    fn check_number(&self, input: &Term, scope: Option<&Scope<'_>>) -> Result<(), ExpressionError> {
        match self.kind_of_term(input, scope)? {
            None | Some(Kind::Number) => Ok(()),
            Some(kind) => Err(ExpressionError::new(format!(
                "`{input}` is {}, but a place is made of numbers",
                kind.with_article()
            ))),
        }
    }

    /// The kind of a computed term's values, where the schema says it.
    fn kind_of(
        &self,
        computed: &Computed,
        scope: Option<&Scope<'_>>,
    ) -> Result<Option<Kind>, ExpressionError> {
        let function = computed.function();
        for (place, argument) in computed.arguments().iter().enumerate() {
            let kind = match argument {
                Argument::Constant(value) => value.kind(),
                Argument::Term(term) => self.kind_of_term(term, scope)?,
            };
            if let (Some(takes), Some(kind)) = (function.takes(place), kind)
                && takes != kind
            {
                let (name, takes, kind) = (function.name(), takes.with_article(), kind.with_article());
                return Err(ExpressionError::new(format!(
                    "`{name}` takes {takes}, but `{argument}` is {kind}"
                )));
            }
        }
        Ok(function.gives())
    }

    fn kind_of_term(&self, term: &Term, scope: Option<&Scope<'_>>) -> Result<Option<Kind>, ExpressionError> {
        match term {
            Term::Computed(computed) => self.kind_of(computed, scope),
            Term::Boolean(_) => Ok(Some(Kind::Bool)),
            Term::Attribute(name) if **name == *NOW => Ok(Some(Kind::Timestamp)),
            Term::Attribute(name) => match self.declared_in(name, scope) {
                (path, Declared::Nothing) => Err(self.not_declared(&path)),
                (_, declared) => Ok(declared.kind()),
            },
        }
    }

    /// What a name inside quantifiers means, and the path that it stands for.
    fn declared_in<'s>(&'s self, name: &str, scope: Option<&Scope<'s>>) -> (String, Declared<'s>) {
        let Some(inner) = scope else { return (name.to_owned(), self.declared(name)) };
        match field_of(name, inner.variable) {
            None => self.declared_in(name, inner.around),
            Some("") => (format!("{}{ELEMENT}", inner.array), inner.elements),
            Some(field) => {
                let path = format!("{}.{field}", inner.array);
                let declared = match (self.declared(&path), inner.elements) {
                    (Declared::Nothing, Declared::Open) => Declared::Open,
                    (declared, _) => declared,
                };
                (path, declared)
            }
        }
    }

    fn declared(&self, path: &str) -> Declared<'_> {
        if let Some(of) = self.get(path) {
            return Declared::As(of);
        }
        if let Some(field) = self.first_field_of(path) {
            return Declared::Record(field);
        }
        Declared::Nothing
    }

    fn first_field_of(&self, record: &str) -> Option<&str> {
        let fields = self.types.keys().map(|name| &**name);
        fields.filter(|name| name.strip_prefix(record).is_some_and(|rest| rest.starts_with('.'))).min()
    }

    fn not_declared(&self, attribute: &str) -> ExpressionError {
        let error = ExpressionError::new(format!("attribute `{attribute}` is not in the schema"));
        match suggest(attribute, self.types.keys().map(|name| &**name)) {
            Some(known) => error.with_hint(format!("did you mean `{known}`?")),
            None => error.with_hint("add it to the schema, or declare no schema"),
        }
    }
}

/// Refuses a predicate on the moment of the query that is not about a timestamp.
fn check_now(predicate: &Predicate) -> Result<(), ExpressionError> {
    match predicate.operator.is_about(&predicate.operands) {
        None | Some(Kind::Timestamp) => Ok(()),
        Some(other) => Err(wrong_kind(NOW, Kind::Timestamp.into(), predicate, other)),
    }
}

/// The scalars among operands, whether they stand alone or in an array.
fn elements(operands: &[Value]) -> impl Iterator<Item = &Value> {
    operands.iter().flat_map(|operand| match operand {
        Value::Array(items) => items.as_slice(),
        scalar => std::slice::from_ref(scalar),
    })
}

/// What a term is: a type that a schema declares, or the kind of a computed term.
struct Is {
    named: String,
    kind: Kind,
}

impl From<&Type> for Is {
    fn from(declared: &Type) -> Self {
        Self { named: with_article(declared), kind: declared.kind() }
    }
}

impl From<Kind> for Is {
    fn from(kind: Kind) -> Self {
        Self { named: kind.with_article().into(), kind }
    }
}

fn with_article(declared: &Type) -> String {
    let name = declared.to_string();
    format!("{} {name}", if name.starts_with(['a', 'i']) { "an" } else { "a" })
}

/// For a predicate that is about `expected`, where its term has values of another kind.
fn wrong_kind(term: &str, is: Is, predicate: &Predicate, expected: Kind) -> ExpressionError {
    let Is { named, kind } = is;
    let tested = predicate.operator.tested(&predicate.operands);
    let (operator, negated, operands) = match tested {
        Some(inner) => (inner.operator, inner.negated, inner.operands),
        None => (predicate.operator, predicate.negated, &*predicate.operands),
    };
    let literal = operands.iter().find(|operand| operand.kind().is_some());
    let (says, compared) = match (operator.rules().syntax(), literal) {
        (Syntax::Bare, _) => ("only a boolean is a predicate on its own".into(), None),
        (Syntax::Infix { symbol, negated: opposite }, Some(literal)) => {
            let symbol = opposite.filter(|_| negated).unwrap_or(symbol);
            (compares(symbol, literal), Some(literal))
        }
        (Syntax::Keyword(name), Some(literal)) if [Operator::IN, Operator::BETWEEN].contains(&operator) => {
            (compares(name, literal), Some(literal))
        }
        _ => (format!("`{}` takes {}", operator.rules().name(), expected.with_article()), None),
    };
    let error = ExpressionError::new(format!("`{term}` is {named}; {says}"));
    let name = Name(predicate.term.name());
    error.with_hint(match (kind, expected) {
        (Kind::Array, _) => format!("use array_contains({name}, …)"),
        (_, Kind::Array) => format!("`{term}` holds one value: compare it with `=` or IN"),
        _ => match compared.and_then(|literal| literal_hint(literal, kind)) {
            Some(hint) => hint,
            None => {
                let verb = if compared.is_some() { "write" } else { "compare it with" };
                let (what, such) = example(&predicate.term, kind, operator);
                match term.ends_with(ELEMENT) {
                    true => format!("{verb} {what}"), // its variable may not be in the text
                    false => format!("{verb} {what}, such as {such}"),
                }
            }
        },
    })
}

fn compares(operator: &str, literal: &Value) -> String {
    const LONGEST: usize = 40;
    let kind = literal.kind().map_or("value", Kind::name);
    let mut text = LiteralText(literal).to_string();
    if let Some((cut, _)) = text.char_indices().nth(LONGEST) {
        text.truncate(cut);
        text.push('…');
    }
    format!("`{operator}` compares it with the {kind} {text}")
}

/// What a value of the kind is called, and a predicate with one.
fn example(term: &Term, kind: Kind, operator: Operator) -> (&'static str, Expr) {
    let (what, values) = match kind {
        Kind::Number => ("a number", [Value::Int(30), Value::Int(40)]),
        Kind::Bool => ("a boolean", [Value::Bool(true), Value::Bool(false)]),
        Kind::Timestamp => ("a timestamp", ["2026-01-31", "2026-02-28"].map(timestamp)),
        Kind::Str | Kind::Array | Kind::Record => {
            ("a string", ["a", "b"].map(|text| Value::Str(text.into())))
        }
    };
    let operator = match operator.rules().syntax() {
        Syntax::Infix { .. } => operator,
        Syntax::Keyword(_) if [Operator::IN, Operator::BETWEEN].contains(&operator) => operator,
        _ if kind == Kind::Number => Operator::GREATER,
        _ => Operator::EQUAL,
    };
    let [first, second] = values;
    let operands = match operator {
        Operator::IN | Operator::BETWEEN => vec![first, second],
        _ => vec![first],
    };
    let term = term.clone();
    let predicate = Predicate { term, operator, negated: false, operands: operands.into(), weight: None };
    (what, Expr::Predicate(predicate))
}

fn timestamp(day: &str) -> Value {
    parse_timestamp(day).map_or(Value::Null, Value::Timestamp)
}

/// How the literal would be written to be of the kind.
fn literal_hint(literal: &Value, kind: Kind) -> Option<String> {
    match (kind, literal) {
        (Kind::Timestamp, Value::Str(text)) if parse_timestamp(text).is_some() => {
            Some(format!("write TIMESTAMP '{text}'"))
        }
        (Kind::Timestamp, _) => Some("timestamps are written TIMESTAMP '2026-01-31 12:00:00'".into()),
        (Kind::Number, Value::Str(text)) if text.parse::<f64>().is_ok() => {
            Some(format!("write {text} without quotes"))
        }
        (Kind::Str, Value::Int(i)) => Some(format!("write '{i}' in quotes")),
        (Kind::Str, Value::Float(x)) => Some(format!("write '{x}' in quotes")),
        (Kind::Str, Value::Decimal(decimal)) => Some(format!("write '{decimal}' in quotes")),
        (Kind::Str, Value::Bool(truth)) => Some(format!("write '{truth}' in quotes")),
        (Kind::Str, Value::Timestamp(micros)) => Some(format!("write '{}' alone", format_timestamp(*micros))),
        (Kind::Bool, _) => Some("a boolean is TRUE or FALSE".into()),
        _ => None,
    }
}
