//! Which predicates a schema refuses: those on attributes that it does not declare, and those that could never be true or
//! false for values of the declared types. Bodies of quantifiers are checked like any other expression: their variable
//! stands for an element of the array.

use super::{Schema, Type};
use crate::error::ExpressionError;
use crate::event::timestamp::{format_timestamp, parse_timestamp};
use crate::event::{Value, value::Kind};
use crate::expr::Predicate;
use crate::expr::operators::Syntax;
use crate::expr::quantifier::{Quantified, Quantifier, field_of};
use crate::suggest::suggest;
use crate::term::{Argument, Computed, NOW, STRINGS, Term};

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
    /// assert_eq!(error.message, "attribute `tags[]` is declared as string, but this `>` is about a number");
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
        let rules = predicate.operator.rules();
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
            let name = rules.name();
            let message = format!(
                "attribute `{attribute}` is declared as {declared}, but this `{name}` is about {}",
                expected.with_article()
            );
            return Err(ExpressionError::new(message).with_hint(hint_for(predicate, declared, expected)));
        }
        if let Type::Array(of) = declared {
            let tested = predicate.operator.tested(&predicate.operands);
            for element in elements(tested.map_or(&*predicate.operands, |inner| inner.operands)) {
                if let Some(kind) = element.kind().filter(|kind| *kind != of.kind()) {
                    let message = format!(
                        "attribute `{attribute}` is declared as {declared}, which holds no {}",
                        kind.name()
                    );
                    let hint = literal_hint(element, of).unwrap_or_else(|| format!("give a {of} instead"));
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
                    "attribute `{array}` is declared as {of}, but `{name}` is about an array"
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
                let (given, expected) = (given.with_article(), expected.with_article());
                let (name, term) = (predicate.operator.rules().name(), &predicate.term);
                Err(ExpressionError::new(format!(
                    "`{term}` is {given}, but this `{name}` is about {expected}"
                )))
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
            Some("") => (format!("{}[]", inner.array), inner.elements),
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
        Some(other) => Err(ExpressionError::new(format!(
            "`{NOW}` is a timestamp, but this `{}` is about {}",
            predicate.operator.rules().name(),
            other.with_article()
        ))),
    }
}

/// The scalars among operands, whether they stand alone or in an array.
fn elements(operands: &[Value]) -> impl Iterator<Item = &Value> {
    operands.iter().flat_map(|operand| match operand {
        Value::Array(items) => items.as_slice(),
        scalar => std::slice::from_ref(scalar),
    })
}

fn hint_for(predicate: &Predicate, declared: &Type, expected: Kind) -> String {
    let attribute = predicate.term.name();
    if let Type::Array(_) = declared {
        return format!("use array_contains({attribute}, …)");
    }
    if expected == Kind::Array {
        return format!("`{attribute}` holds one value: compare it with `=` or IN");
    }
    let is_comparison = !matches!(predicate.operator.rules().syntax(), Syntax::Function(_) | Syntax::Bare);
    let literal = predicate.operands.iter().find(|operand| operand.kind().is_some());
    literal
        .filter(|_| is_comparison)
        .and_then(|literal| literal_hint(literal, declared))
        .unwrap_or_else(|| format!("use a predicate about {}", declared.kind().with_article()))
}

/// How the literal would be written to fit the type.
fn literal_hint(literal: &Value, declared: &Type) -> Option<String> {
    match (declared, literal) {
        (Type::Timestamp(_), Value::Str(text)) if parse_timestamp(text).is_some() => {
            Some(format!("write TIMESTAMP '{text}'"))
        }
        (Type::Timestamp(_), _) => Some("timestamps are written TIMESTAMP '2026-01-31 12:00:00'".into()),
        (Type::Int | Type::Float, Value::Str(text)) if text.parse::<f64>().is_ok() => {
            Some(format!("write {text} without quotes"))
        }
        (Type::Str, Value::Int(i)) => Some(format!("write '{i}' in quotes")),
        (Type::Str, Value::Float(x)) => Some(format!("write '{x}' in quotes")),
        (Type::Str, Value::Decimal(decimal)) => Some(format!("write '{decimal}' in quotes")),
        (Type::Str, Value::Bool(truth)) => Some(format!("write '{truth}' in quotes")),
        (Type::Str, Value::Timestamp(micros)) => Some(format!("write '{}' alone", format_timestamp(*micros))),
        (Type::Bool, _) => Some("a boolean is TRUE or FALSE".into()),
        _ => None,
    }
}
