//! A declared schema: which attributes there are, and of which type.
//!
//! A schema is strict about subscriptions: a predicate on an attribute that is not declared, or with
//! a literal that cannot fit, is refused. It is lenient about events: attributes that are not declared
//! are ignored, a value of another type is kept (it makes the predicates on it undefined), and where a
//! timestamp is declared, text in ISO form and epoch numbers become timestamps.

use std::fmt;

use rustc_hash::FxBuildHasher;

use super::timestamp::{can_be_written, format_timestamp, parse_timestamp};
use super::value::Kind;
use super::value::cell::read_cell;
use super::{Record, Value, ValueRef, json};
use crate::error::{Error, ExpressionError, Result};
use crate::expr::Predicate;
use crate::expr::operators::Syntax;
use crate::suggest::suggest;
use crate::term::{Argument, Computed, NOW, STRINGS, Term};

/// The type of an attribute. Integers and floats are one kind: each compares with the other.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Type {
    Bool,
    Int,
    Float,
    Str,
    /// Numbers count these units since the epoch.
    Timestamp(EpochUnit),
    /// An array of scalars of one type, or of records.
    Array(Box<Type>),
    /// A record with any fields; only in an array.
    Record,
}

/// What a number counts where a timestamp is declared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EpochUnit {
    Seconds,
    Milliseconds,
    Microseconds,
    Nanoseconds,
}

impl EpochUnit {
    /// Microseconds since the epoch, nanoseconds rounded down; `None` outside the years 0001 to 9999: a count of
    /// milliseconds that is taken for seconds is refused and does not become another time.
    ///
    /// ```
    /// use tamis_core::event::{EpochUnit, ValueRef};
    /// assert_eq!(EpochUnit::Milliseconds.micros(ValueRef::Int(1500)), Some(1_500_000));
    /// assert_eq!(EpochUnit::Seconds.micros(ValueRef::Float(1.5)), Some(1_500_000));
    /// assert_eq!(EpochUnit::Seconds.micros(ValueRef::Int(1_769_860_800_000)), None);
    /// ```
    pub fn micros(self, number: ValueRef<'_>) -> Option<i64> {
        let micros = match (number, self) {
            (ValueRef::Int(count), EpochUnit::Seconds) => count.checked_mul(1_000_000)?,
            (ValueRef::Int(count), EpochUnit::Milliseconds) => count.checked_mul(1000)?,
            (ValueRef::Int(count), EpochUnit::Microseconds) => count,
            (ValueRef::Int(count), EpochUnit::Nanoseconds) => count.div_euclid(1000),
            (ValueRef::Float(_) | ValueRef::Decimal(_), unit) => {
                let per_unit = match unit {
                    EpochUnit::Seconds => 1e6,
                    EpochUnit::Milliseconds => 1e3,
                    EpochUnit::Microseconds => 1.0,
                    EpochUnit::Nanoseconds => 1e-3,
                };
                // To the nearest: most decimal fractions of a second are no floats.
                let micros = (number.nearest_float()? * per_unit).round();
                if micros.is_nan() || micros.abs() > i64::MAX as f64 {
                    return None;
                }
                micros as i64
            }
            _ => return None,
        };
        can_be_written(micros).then_some(micros)
    }
}

const TIMESTAMP: Type = Type::Timestamp(EpochUnit::Seconds);

const TYPE_NAMES: [(&str, Type); 35] = [
    ("bool", Type::Bool),
    ("boolean", Type::Bool),
    ("int", Type::Int),
    ("integer", Type::Int),
    ("tinyint", Type::Int),
    ("smallint", Type::Int),
    ("bigint", Type::Int),
    ("byte", Type::Int),
    ("short", Type::Int),
    ("long", Type::Int),
    ("int8", Type::Int),
    ("int16", Type::Int),
    ("int32", Type::Int),
    ("int64", Type::Int),
    ("float", Type::Float),
    ("double", Type::Float),
    ("real", Type::Float),
    ("float32", Type::Float),
    ("float64", Type::Float),
    ("number", Type::Float),
    ("numeric", Type::Float),
    ("decimal", Type::Float),
    ("string", Type::Str),
    ("str", Type::Str),
    ("text", Type::Str),
    ("char", Type::Str),
    ("varchar", Type::Str),
    ("timestamp", TIMESTAMP),
    ("timestamp_s", TIMESTAMP),
    ("timestamp_ms", Type::Timestamp(EpochUnit::Milliseconds)),
    ("timestamp_us", Type::Timestamp(EpochUnit::Microseconds)),
    ("timestamp_ns", Type::Timestamp(EpochUnit::Nanoseconds)),
    ("timestamp_ntz", TIMESTAMP),
    ("datetime", TIMESTAMP),
    ("date", TIMESTAMP),
];

const TYPE_HINT: &str = "types are bool, int, float, string, timestamp (timestamp_ms for epoch milliseconds) and arrays of them, such as \
     array<string>";

impl Type {
    /// Reads the name of a type, as SQL, Spark or Arrow write it. Case does not matter.
    ///
    /// ```
    /// use tamis_core::event::Type;
    /// assert_eq!(Type::parse("bigint").unwrap(), Type::Int);
    /// assert_eq!(Type::parse("array<string>").unwrap().to_string(), "array<string>");
    /// ```
    pub fn parse(text: &str) -> Result<Self> {
        let name = text.trim().to_ascii_lowercase();
        let unknown =
            |hint: String| Error::Argument(format!("there is no type `{}`\nhint: {hint}", text.trim()));
        if let Some(inner) = name.strip_prefix("array<").and_then(|rest| rest.strip_suffix('>')) {
            if inner == "record" || inner.starts_with("struct<") && inner.ends_with('>') {
                return Ok(Type::Array(Box::new(Type::Record)));
            }
            return match Type::parse(inner)? {
                Type::Array(_) => Err(unknown("an array holds scalars: no predicate can look deeper".into())),
                of => Ok(Type::Array(Box::new(of))),
            };
        }
        // decimal(10,2) and varchar(20): how long they are does not matter here.
        let stem = match name.split_once('(') {
            Some((stem @ ("decimal" | "numeric" | "varchar" | "char"), rest)) if rest.ends_with(')') => stem,
            _ => &name,
        };
        match TYPE_NAMES.iter().find(|(known, _)| *known == stem) {
            Some((_, found)) => Ok(found.clone()),
            None => Err(unknown(match suggest(stem, TYPE_NAMES.iter().map(|(known, _)| *known)) {
                Some(known) => format!("did you mean `{known}`? {TYPE_HINT}"),
                None => TYPE_HINT.into(),
            })),
        }
    }

    pub fn kind(&self) -> Kind {
        match self {
            Type::Bool => Kind::Bool,
            Type::Int | Type::Float => Kind::Number,
            Type::Str => Kind::Str,
            Type::Timestamp(_) => Kind::Timestamp,
            Type::Array(_) => Kind::Array,
            Type::Record => Kind::Record,
        }
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Type::Bool => f.write_str("bool"),
            Type::Int => f.write_str("int"),
            Type::Float => f.write_str("float"),
            Type::Str => f.write_str("string"),
            Type::Timestamp(EpochUnit::Seconds) => f.write_str("timestamp"),
            Type::Timestamp(EpochUnit::Milliseconds) => f.write_str("timestamp_ms"),
            Type::Timestamp(EpochUnit::Microseconds) => f.write_str("timestamp_us"),
            Type::Timestamp(EpochUnit::Nanoseconds) => f.write_str("timestamp_ns"),
            Type::Array(of) => write!(f, "array<{of}>"),
            Type::Record => f.write_str("record"),
        }
    }
}

/// The declared attributes and their types.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Schema {
    types: hashbrown::HashMap<Box<str>, Type, FxBuildHasher>,
    has_timestamps: bool,
}

impl Schema {
    /// From dotted names and types. A name may be declared once, and nothing may lie inside a scalar.
    pub fn new<N: Into<Box<str>>>(types: impl IntoIterator<Item = (N, Type)>) -> Result<Self> {
        let mut schema = Schema::default();
        for (name, of) in types {
            let name = name.into();
            schema.has_timestamps |= match &of {
                Type::Array(of) => matches!(**of, Type::Timestamp(_)),
                of => matches!(of, Type::Timestamp(_)),
            };
            if schema.types.contains_key(&name) {
                return Err(Error::Argument(format!("attribute `{name}` is declared twice")));
            }
            schema.types.insert(name, of);
        }
        for (name, _) in schema.iter() {
            for (dot, _) in name.match_indices('.') {
                if let Some(of) = schema.get(&name[..dot]) {
                    let around = &name[..dot];
                    return Err(Error::Argument(format!(
                        "attribute `{name}` is declared inside `{around}`, which is declared as {of}\n\
                         hint: a record is declared by its fields alone"
                    )));
                }
            }
        }
        Ok(schema)
    }

    /// From pairs of a dotted name and the name of a type.
    ///
    /// ```
    /// use tamis_core::event::{Schema, Type};
    /// let schema = Schema::parse([("age", "int"), ("tags", "array<string>")]).unwrap();
    /// assert_eq!(schema.get("age"), Some(&Type::Int));
    /// ```
    pub fn parse<N: AsRef<str>, T: AsRef<str>>(pairs: impl IntoIterator<Item = (N, T)>) -> Result<Self> {
        let types: Result<Vec<(Box<str>, Type)>> = pairs
            .into_iter()
            .map(|(name, text)| match Type::parse(text.as_ref()) {
                Ok(of) => Ok((name.as_ref().into(), of)),
                Err(error) => Err(Error::Argument(format!("attribute `{}`: {error}", name.as_ref()))),
            })
            .collect();
        Schema::new(types?)
    }

    /// Reads `{"age": "int", "address": {"city": "string"}}`.
    pub fn from_json(json: &[u8]) -> Result<Self> {
        let record = json::read_record(json).map_err(|error| Error::Argument(format!("schema: {error}")))?;
        let mut pairs: Vec<(&str, &str)> = Vec::new();
        for (name, value) in record.values() {
            match value {
                Value::Str(text) => pairs.push((name, text)),
                Value::Record => {}
                _ => {
                    let hint = "write the name of a type, such as \"int\"";
                    return Err(Error::Argument(format!("attribute `{name}` has no type\nhint: {hint}")));
                }
            }
        }
        Schema::parse(pairs)
    }

    /// Writes what [`from_json`](Self::from_json) reads, with flat names, sorted.
    pub fn to_json(&self) -> String {
        let members: serde_json::Map<String, serde_json::Value> =
            self.iter().map(|(name, of)| (name.into(), of.to_string().into())).collect();
        serde_json::Value::Object(members).to_string()
    }

    /// The declared type of an attribute.
    pub fn get(&self, attribute: &str) -> Option<&Type> {
        self.types.get(attribute)
    }

    /// Every declared attribute, sorted by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Type)> {
        let mut sorted: Vec<(&str, &Type)> = self.types.iter().map(|(name, of)| (&**name, of)).collect();
        sorted.sort_unstable_by_key(|(name, _)| *name);
        sorted.into_iter()
    }

    /// Refuses a predicate on an attribute that is not declared, or that could never be true or false
    /// for a value of the declared type.
    pub fn check_predicate(&self, predicate: &Predicate) -> Result<(), ExpressionError> {
        let attribute = match &predicate.term {
            Term::Attribute(name) if **name == *NOW => return check_now(predicate),
            Term::Attribute(name) => &**name,
            Term::Computed(computed) => return self.check_computed(computed, predicate),
            Term::Boolean(boolean) => {
                return boolean.inputs().iter().try_for_each(|input| self.check_input(input));
            }
        };
        let rules = predicate.operator.rules();
        let expected = predicate.operator.is_about(&predicate.operands);
        let Some(declared) = self.get(attribute) else {
            return match self.first_field_of(attribute) {
                None => Err(self.not_declared(attribute)),
                Some(_) if expected.is_none() => Ok(()),
                Some(field) => Err(ExpressionError::new(format!("attribute `{attribute}` is a record"))
                    .with_hint(format!("compare one of its fields, such as `{field}`"))),
            };
        };
        let Some(expected) = expected else { return Ok(()) };
        if expected != declared.kind() {
            let name = rules.name();
            let message = format!(
                "attribute `{attribute}` is declared as {declared}, but this `{name}` is about a {}",
                expected.name()
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

    /// Refuses a computed term that is undefined for all values of the declared types, and a predicate about
    /// another kind of value than the term has.
    fn check_computed(&self, computed: &Computed, predicate: &Predicate) -> Result<(), ExpressionError> {
        let given = self.kind_of(computed)?;
        let expected = predicate.operator.is_about(&predicate.operands);
        match given.zip(expected) {
            Some((given, expected)) if given != expected => {
                let (given, expected) = (given.name(), expected.name());
                let (name, term) = (predicate.operator.rules().name(), &predicate.term);
                Err(ExpressionError::new(format!(
                    "`{term}` is a {given}, but this `{name}` is about a {expected}"
                )))
            }
            _ => Ok(()),
        }
    }

    /// Refuses what is computed from attributes that are not declared.
    fn check_input(&self, input: &Term) -> Result<(), ExpressionError> {
        match input {
            Term::Attribute(name) if matches!(&**name, NOW | STRINGS) => Ok(()),
            Term::Attribute(name) => match (self.get(name), self.first_field_of(name)) {
                (None, None) => Err(self.not_declared(name)),
                _ => Ok(()),
            },
            Term::Computed(computed) => self.kind_of(computed).map(drop),
            Term::Boolean(boolean) => boolean.inputs().iter().try_for_each(|input| self.check_input(input)),
        }
    }

    /// The kind of a term's values, where the schema says it.
    fn kind_of(&self, computed: &Computed) -> Result<Option<Kind>, ExpressionError> {
        let function = computed.function();
        for (place, argument) in computed.arguments().iter().enumerate() {
            let kind = match argument {
                Argument::Constant(value) => value.kind(),
                Argument::Term(Term::Computed(inner)) => self.kind_of(inner)?,
                Argument::Term(Term::Boolean(_)) => Some(Kind::Bool),
                Argument::Term(Term::Attribute(name)) if **name == *NOW => Some(Kind::Timestamp),
                Argument::Term(Term::Attribute(name)) => match (self.get(name), self.first_field_of(name)) {
                    (Some(declared), _) => Some(declared.kind()),
                    (None, Some(_)) => Some(Kind::Record),
                    (None, None) => return Err(self.not_declared(name)),
                },
            };
            if let (Some(takes), Some(kind)) = (function.takes(place), kind)
                && takes != kind
            {
                let (name, takes, kind) = (function.name(), takes.name(), kind.name());
                return Err(ExpressionError::new(format!(
                    "`{name}` takes a {takes}, but `{argument}` is a {kind}"
                )));
            }
        }
        Ok(function.gives())
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

    /// Turns text and epoch numbers into timestamps where they are declared. Everything else stays as it is: an
    /// integer is a fine float, and a value of another type makes the predicates on it undefined.
    pub fn coerce(&self, record: &mut Record) {
        record.rewrite(|name, value| self.coerce_value(name, value));
    }

    /// The timestamp that a scalar means for this attribute, if it is declared as one.
    #[inline]
    pub(super) fn coerce_scalar(&self, attribute: &str, value: ValueRef<'_>) -> Option<i64> {
        match self.has_timestamps.then(|| self.get(attribute))? {
            Some(Type::Timestamp(unit)) => timestamp(value, *unit),
            _ => None,
        }
    }

    /// A cell as the declared type of its attribute; text where it cannot be read so.
    pub(super) fn read_cell(&self, attribute: &str, text: &str) -> Value {
        let read = match self.get(attribute) {
            Some(Type::Timestamp(unit)) => read_cell(text, Kind::Timestamp).or_else(|| {
                let number = read_cell(text, Kind::Number)?;
                unit.micros(number.as_ref()).map(Value::Timestamp)
            }),
            Some(of) => read_cell(text, of.kind()),
            None => None,
        };
        read.unwrap_or_else(|| Value::Str(text.into()))
    }

    /// Puts what the schema makes of a value in its place, and returns what was there.
    pub(super) fn coerce_value(&self, attribute: &str, value: &mut Value) -> Option<Value> {
        if let Value::Cell(text) = value {
            let read = self.read_cell(attribute, text);
            return Some(std::mem::replace(value, read));
        }
        if !self.has_timestamps {
            return None;
        }
        let coerced = match (self.get(attribute), &*value) {
            (Some(Type::Timestamp(unit)), Value::Interval(ends)) => {
                let ends = as_timestamp(&ends.0, *unit).zip(as_timestamp(&ends.1, *unit));
                // Text and time may sort differently; an interval that would be empty stays text.
                ends.and_then(|(low, high)| Value::interval(low, high).ok())
            }
            (Some(Type::Timestamp(unit)), value) => timestamp(value.as_ref(), *unit).map(Value::Timestamp),
            (Some(Type::Array(of)), Value::Array(items)) => match **of {
                Type::Timestamp(unit) => {
                    let items = items.iter().map(|item| as_timestamp(item, unit));
                    items.collect::<Option<Vec<Value>>>().map(Value::Array)
                }
                _ => None,
            },
            _ => None,
        };
        coerced.map(|coerced| std::mem::replace(value, coerced))
    }
}

/// Refuses a predicate on the moment of the query that is not about a timestamp.
fn check_now(predicate: &Predicate) -> Result<(), ExpressionError> {
    match predicate.operator.is_about(&predicate.operands) {
        None | Some(Kind::Timestamp) => Ok(()),
        Some(other) => Err(ExpressionError::new(format!(
            "`{NOW}` is a timestamp, but this `{}` is about a {}",
            predicate.operator.rules().name(),
            other.name()
        ))),
    }
}

/// The timestamp that text or a number means.
fn timestamp(value: ValueRef<'_>, unit: EpochUnit) -> Option<i64> {
    match value {
        ValueRef::Str(text) => parse_timestamp(text),
        number => unit.micros(number),
    }
}

fn as_timestamp(value: &Value, unit: EpochUnit) -> Option<Value> {
    match value {
        Value::Timestamp(_) | Value::Null => Some(value.clone()),
        value => timestamp(value.as_ref(), unit).map(Value::Timestamp),
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
        .unwrap_or_else(|| format!("use a predicate about a {}", declared.kind().name()))
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expr::Operator;

    fn schema() -> Schema {
        Schema::parse([
            ("age", "INT"),
            ("country", "varchar(2)"),
            ("price", "decimal(10, 2)"),
            ("opted_out", "boolean"),
            ("seen", "date"),
            ("tags", "array<string>"),
            ("visits", "array< timestamp >"),
            ("address.city", "string"),
        ])
        .unwrap()
    }

    fn predicate(attribute: &str, operator: &str, operand: Value) -> Predicate {
        Predicate {
            term: attribute.into(),
            operator: Operator::named(operator).unwrap(),
            negated: false,
            operands: [operand].into(),
            weight: None,
        }
    }

    #[test]
    fn numbers_count_the_unit_that_is_declared() {
        let schema = Schema::parse([
            ("s", "timestamp_s"),
            ("ms", "TIMESTAMP_MS"),
            ("us", "timestamp_us"),
            ("ns", "timestamp_ns"),
            ("all", "array<timestamp_ms>"),
        ])
        .unwrap();
        let shown = r#"{"all":"array<timestamp_ms>","ms":"timestamp_ms","ns":"timestamp_ns","s":"timestamp","us":"timestamp_us"}"#;
        assert_eq!(schema.to_json(), shown);
        let names = ["s", "ms", "us", "ns"];
        let mut record = Record::new(names.map(|name| (name, Value::Int(1_769_860_800))), []).unwrap();
        schema.coerce(&mut record);
        let micros = [1_769_860_800_000_000, 1_769_860_800_000, 1_769_860_800, 1_769_860];
        for (name, micros) in names.into_iter().zip(micros) {
            assert_eq!(record.get(name), Some(&Value::Timestamp(micros)), "{name}");
        }
        let mut all = Value::Array(vec![Value::Int(1), Value::Null, Value::Str("1970-01-01".into())]);
        schema.coerce_value("all", &mut all);
        assert_eq!(all, Value::Array(vec![Value::Timestamp(1000), Value::Null, Value::Timestamp(0)]));
    }

    #[test]
    fn json_round_trips() {
        let schema = schema();
        assert_eq!(Schema::from_json(schema.to_json().as_bytes()).unwrap(), schema);
        let nested = br#"{"address": {"city": "string"}, "age": "bigint"}"#;
        assert_eq!(Schema::from_json(nested).unwrap().to_json(), r#"{"address.city":"string","age":"int"}"#);
    }

    #[test]
    fn bad_declarations_are_named() {
        for (pairs, wrong) in [
            (vec![("a", "strin")], "attribute `a`: there is no type `strin`\nhint: did you mean `string`?"),
            (vec![("a", "map<string,int>")], "there is no type `map<string,int>`"),
            (vec![("a", "array<array<int>>")], "no predicate can look deeper"),
            (vec![("a", "int"), ("a", "int")], "`a` is declared twice"),
            (vec![("a", "int"), ("a.b.c", "int")], "`a.b.c` is declared inside `a`"),
        ] {
            let error = Schema::parse(pairs).unwrap_err().to_string();
            assert!(error.contains(wrong), "{error}");
        }
        for json in ["{\"a\": 3}", "[]", "{\"a\": \"int\", \"a\": \"int\"}"] {
            assert!(Schema::from_json(json.as_bytes()).is_err(), "{json}");
        }
    }

    #[test]
    fn predicates_that_fit_pass() {
        for (attribute, operator, operand) in [
            ("age", "=", Value::Int(3)),
            ("age", ">", Value::Float(3.5)),
            ("price", "<", Value::Int(3)),
            ("country", "=", Value::Str("CA".into())),
            ("seen", ">=", Value::Timestamp(0)),
            ("opted_out", "=", Value::Bool(true)),
            ("age", "=", Value::Null),
            ("address", "=", Value::Null),
        ] {
            schema().check_predicate(&predicate(attribute, operator, operand)).unwrap();
        }
    }

    #[test]
    fn predicates_that_cannot_fit_are_refused_with_a_hint() {
        for (attribute, operand, message, hint) in [
            ("agee", Value::Int(3), "`agee` is not in the schema", "did you mean `age`?"),
            ("zip", Value::Int(3), "`zip` is not in the schema", "add it to the schema"),
            (
                "age",
                Value::Str("3".into()),
                "declared as int, but this `=` is about a string",
                "3 without quotes",
            ),
            ("age", Value::Str("x".into()), "declared as int", "use a predicate about a number"),
            ("country", Value::Int(3), "declared as string", "write '3' in quotes"),
            (
                "seen",
                Value::Str("2026-01-31".into()),
                "declared as timestamp",
                "write TIMESTAMP '2026-01-31'",
            ),
            ("seen", Value::Str("now".into()), "declared as timestamp", "timestamps are written"),
            ("opted_out", Value::Int(1), "declared as bool", "TRUE or FALSE"),
            ("tags", Value::Str("q4".into()), "declared as array<string>", "array_contains(tags"),
            ("address", Value::Str("x".into()), "`address` is a record", "such as `address.city`"),
        ] {
            let error = schema().check_predicate(&predicate(attribute, "=", operand)).unwrap_err();
            assert!(error.message.contains(message), "{error}");
            assert!(error.hint.as_ref().unwrap().contains(hint), "{error}");
        }
    }

    #[test]
    fn text_becomes_timestamps_where_they_are_declared() {
        let text = |text: &str| Value::Str(text.into());
        let interval = |low, high| Value::interval(low, high).unwrap();
        let mut record = Record::new(
            [
                ("seen", text("1970-01-02")),
                ("visits", Value::Array(vec![text("1970-01-01 00:00:01"), Value::Null])),
                ("country", text("1970-01-02")),
                ("age", text("old")),
                ("undeclared", text("1970-01-02")),
            ],
            [],
        )
        .unwrap();
        schema().coerce(&mut record);
        assert_eq!(record.get("seen"), Some(&Value::Timestamp(86_400_000_000)));
        assert_eq!(record.get("visits"), Some(&Value::Array(vec![Value::Timestamp(1_000_000), Value::Null])));
        assert_eq!(record.get("country"), Some(&text("1970-01-02")));
        assert_eq!(record.get("age"), Some(&text("old")));
        assert_eq!(record.get("undeclared"), Some(&text("1970-01-02")));

        for (given, kept) in [
            (text("soon"), text("soon")),
            (Value::Int(7), Value::Timestamp(7_000_000)),
            (Value::Float(-0.5), Value::Timestamp(-500_000)),
            (Value::Bool(true), Value::Bool(true)),
            // In the years that can be written, milliseconds are no seconds.
            (Value::Int(1_769_860_800_000), Value::Int(1_769_860_800_000)),
            (Value::Float(f64::NAN), Value::Float(f64::NAN)),
            (
                interval(Value::Int(1), Value::Int(2)),
                interval(Value::Timestamp(1_000_000), Value::Timestamp(2_000_000)),
            ),
            (
                interval(text("1970-01-01"), text("1970-01-02")),
                interval(Value::Timestamp(0), Value::Timestamp(86_400_000_000)),
            ),
            (interval(text("1970-01-01"), text("x")), interval(text("1970-01-01"), text("x"))),
        ] {
            let mut record = Record::new([("seen", given)], []).unwrap();
            schema().coerce(&mut record);
            assert_eq!(record.get("seen"), Some(&kept));
        }
    }
}
