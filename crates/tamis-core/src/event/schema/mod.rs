//! A declared schema: the attributes and their types.
//!
//! A schema is strict about subscriptions: it refuses a predicate on an undeclared attribute, or with a literal of the
//! wrong type. It is lenient about events: it ignores undeclared attributes, and keeps a value of another type (which
//! makes the predicates on it undefined). If a timestamp is declared, ISO text and epoch numbers become timestamps.

mod check;
mod types;

use rustc_hash::FxBuildHasher;

pub use types::{EpochUnit, Type};

use super::timestamp::parse_timestamp;
use super::value::Kind;
use super::value::cell::read_cell;
use super::{Record, Value, ValueRef, json};
use crate::error::{Error, Result};

/// The declared attributes and their types.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Schema {
    types: hashbrown::HashMap<Box<str>, Type, FxBuildHasher>,
    has_timestamps: bool,
    /// Every path that has a declared timestamp somewhere below it: `a` and `a.b`, for `a.b.at`.
    around_timestamps: hashbrown::HashSet<Box<str>, FxBuildHasher>,
}

impl Schema {
    /// From dotted names and types. A name may be declared once, and nothing may lie inside a scalar. The fields of records in
    /// an array are declared behind its name, with or without the array itself.
    pub fn new<N: Into<Box<str>>>(types: impl IntoIterator<Item = (N, Type)>) -> Result<Self> {
        let mut schema = Schema::default();
        for (name, of) in types {
            let name = name.into();
            let is_timestamp = match &of {
                Type::Array(of) => matches!(**of, Type::Timestamp(_)),
                of => matches!(of, Type::Timestamp(_)),
            };
            if is_timestamp {
                schema.has_timestamps = true;
                let around = name.match_indices('.').map(|(dot, _)| Box::from(&name[..dot]));
                schema.around_timestamps.extend(around);
            }
            if schema.types.contains_key(&name) {
                return Err(Error::Argument(format!("attribute `{name}` is declared twice")));
            }
            schema.types.insert(name, of);
        }
        for (name, _) in schema.iter() {
            for (dot, _) in name.match_indices('.') {
                let around = &name[..dot];
                let records = Type::Array(Box::new(Type::Record));
                if let Some(of) = schema.get(around).filter(|of| **of != records) {
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
        let mut types: Vec<(Box<str>, Type)> = vec![];
        for (name, text) in pairs {
            let (name, text) = (name.as_ref(), text.as_ref());
            let of =
                Type::parse(text).map_err(|error| Error::Argument(format!("attribute `{name}`: {error}")))?;
            if of == Type::Array(Box::new(Type::Record)) {
                let fields = types::fields_of_elements(text);
                types.extend(fields.into_iter().map(|(field, of)| (format!("{name}.{field}").into(), of)));
            }
            types.push((name.into(), of));
        }
        Schema::new(types)
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
        if let Value::Array(items) = value
            && self.is_around_timestamps(attribute)
        {
            return self.coerce_elements(attribute, items);
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

    /// Whether a declared timestamp lies below a path: in a record, or in records of an array.
    pub(super) fn is_around_timestamps(&self, path: &str) -> bool {
        self.around_timestamps.contains(path)
    }

    /// The same for the fields of records in an array. Returns an array of what was replaced.
    fn coerce_elements(&self, array: &str, items: &mut [Value]) -> Option<Value> {
        let mut replaced = vec![];
        for item in items {
            if let Value::Fields(fields) = item {
                let coerced = fields
                    .iter_mut()
                    .filter_map(|(name, value)| self.coerce_value(&format!("{array}.{name}"), value));
                replaced.extend(coerced);
            }
        }
        (!replaced.is_empty()).then_some(Value::Array(replaced))
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expr::{Operator, Predicate};

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
                "`age` is an int; `=` compares it with the string '3'",
                "3 without quotes",
            ),
            ("age", Value::Str("x".into()), "the string 'x'", "write a number, such as age = 30"),
            ("age", Value::Str("x".repeat(99).into()), "xxx…", "write a number"),
            ("country", Value::Int(3), "`country` is a string; `=`", "write '3' in quotes"),
            (
                "seen",
                Value::Str("2026-01-31".into()),
                "`seen` is a timestamp; `=`",
                "write TIMESTAMP '2026-01-31'",
            ),
            ("seen", Value::Str("now".into()), "`seen` is a timestamp; `=`", "timestamps are written"),
            ("opted_out", Value::Int(1), "`opted_out` is a bool; `=`", "TRUE or FALSE"),
            ("tags", Value::Str("q4".into()), "`tags` is an array<string>; `=`", "array_contains(tags"),
            ("address", Value::Str("x".into()), "`address` is a record", "such as `address.city`"),
        ] {
            let error = schema().check_predicate(&predicate(attribute, "=", operand)).unwrap_err();
            assert!(error.message.contains(message), "{error}");
            assert!(error.hint.as_ref().unwrap().contains(hint), "{error}");
        }
    }

    #[test]
    fn every_way_to_write_a_predicate_is_refused_in_its_own_words() {
        for (text, message, hint) in [
            ("age != 'x'", "`!=` compares it with the string 'x'", "such as age = 30"),
            ("age BETWEEN 'a' AND 'b'", "`BETWEEN` compares it", "such as age BETWEEN 30 AND 40"),
            ("age NOT IN ('a', 'b')", "`IN` compares it with the string 'a'", "such as age IN (30, 40)"),
            (
                "age LIKE 'a%'",
                "`age` is an int; `LIKE` takes a string",
                "compare it with a number, such as age > 30",
            ),
            ("age", "only a boolean is a predicate on its own", "such as age > 30"),
            ("country", "only a boolean", "compare it with a string, such as country = 'a'"),
            ("(age > 'x') IS NOT TRUE", "`>` compares it with the string 'x'", "such as age > 30"),
            ("array_contains(age, 3)", "`array_contains` takes an array", "holds one value"),
            (
                "length(country) = 'x'",
                "`length(country)` is a number; `=` compares",
                "such as length(country) = 30",
            ),
            ("lower(country) > 5", "`lower(country)` is a string; `>`", "write '5' in quotes"),
            ("current_timestamp() = 5", "is a timestamp; `=` compares it with the number 5", "TIMESTAMP"),
            ("startswith(seen, 'a')", "`startswith` takes a string", "such as seen = TIMESTAMP '2026-01-31"),
        ] {
            let parsed = crate::expr::parse(text).unwrap();
            let mut refused = None;
            parsed.for_each_predicate(&mut |predicate| refused = schema().check_predicate(predicate).err());
            let error = refused.expect(text);
            assert!(error.message.contains(message), "{text}: {error}");
            assert!(error.hint.as_ref().is_some_and(|given| given.contains(hint)), "{text}: {error}");
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
