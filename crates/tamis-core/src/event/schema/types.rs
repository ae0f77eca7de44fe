//! The types that a schema can declare, and the units of numeric timestamps.

use std::fmt;

use crate::error::{Error, Result};
use crate::suggest::suggest;
use crate::value::timestamp::can_be_written;
use crate::value::{Kind, ValueRef};

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

/// The unit of a number where a timestamp is declared.
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

/// The declared fields of the records in `array<struct<at: timestamp, sku: string>>`, by dotted path. Fields of types that no
/// predicate can look at are left out, like all that is not declared.
pub(super) fn fields_of_elements(text: &str) -> Vec<(String, Type)> {
    let mut found = vec![];
    if let Some(inner) = within(text, "array").and_then(|inner| within(inner, "struct")) {
        collect_fields(inner, "", &mut found);
    }
    found
}

fn collect_fields(fields: &str, record: &str, found: &mut Vec<(String, Type)>) {
    let mut depth = 0_i32;
    let parts = fields.split(|letter| {
        depth += i32::from(matches!(letter, '<' | '(')) - i32::from(matches!(letter, '>' | ')'));
        letter == ',' && depth == 0
    });
    for part in parts {
        let Some((name, text)) = part.split_once(':') else { continue };
        let path = format!("{record}{}", name.trim().trim_matches('`'));
        if let Some(inner) = within(text, "struct") {
            collect_fields(inner, &format!("{path}."), found);
        } else if let Ok(of) = Type::parse(text) {
            if let Some(inner) = within(text, "array").and_then(|inner| within(inner, "struct")) {
                collect_fields(inner, &format!("{path}."), found);
            }
            found.push((path, of));
        }
    }
}

/// The text between the angle brackets of `name<…>`.
fn within<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    let text = text.trim();
    let head = text.get(..name.len()).filter(|head| head.eq_ignore_ascii_case(name))?;
    text[head.len()..].trim_start().strip_prefix('<')?.strip_suffix('>')
}
