//! Keys of partitions and joins: values that are equal when the language says so.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hash, Hasher, RandomState};
use std::ops::Deref;

use tamis_core::event::{Record, Value};
use tamis_core::term::Term;

/// The values of some terms. A single one, which most keys are, lies in place.
#[derive(Clone, Debug)]
pub(crate) enum Key {
    One(Value),
    Several(Box<[Value]>),
}

impl Deref for Key {
    type Target = [Value];

    fn deref(&self) -> &[Value] {
        match self {
            Self::One(value) => std::slice::from_ref(value),
            Self::Several(values) => values,
        }
    }
}

impl From<Box<[Value]>> for Key {
    fn from(values: Box<[Value]>) -> Self {
        match <Box<[Value; 1]>>::try_from(values) {
            Ok(one) => {
                let [value] = *one;
                Self::One(value)
            }
            Err(values) => Self::Several(values),
        }
    }
}

impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for Key {}

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (**self).hash(state);
    }
}

/// A table by values of events. Whoever sends events chooses these: hashed with a secret, nobody can choose values that
/// collide. Nothing depends on the order of such a table.
pub(crate) type ByValue<K, V> = HashMap<K, V, RandomState>;

impl Key {
    /// For a table of keys under numbers: those of one owner, such as a tree of sequences.
    pub fn hash_of(&self, owner: u32, secret: &RandomState) -> u64 {
        let mut hasher = secret.build_hasher();
        hasher.write_u32(owner);
        self.iter().for_each(|value| value.hash(&mut hasher));
        hasher.finish()
    }
}

const TWO_TO_63: f64 = 9_223_372_036_854_775_808.0;

/// A value written so that equal ones are written alike: `1.0` as `1`, one zero, one NaN.
pub(crate) fn normal(value: Value) -> Value {
    match value {
        Value::Float(x) if x.fract() == 0.0 && (-TWO_TO_63..TWO_TO_63).contains(&x) => Value::Int(x as i64),
        Value::Float(x) if x.is_nan() => Value::Float(f64::NAN),
        Value::Array(items) => Value::Array(items.into_iter().map(normal).collect()),
        Value::Fields(fields) => {
            Value::Fields(fields.into_iter().map(|(name, value)| (name, normal(value))).collect())
        }
        other => other,
    }
}

/// The value of a term; null when it is absent. A nested record is its fields.
pub(crate) fn value_of(term: &Term, record: &Record) -> Value {
    match term {
        Term::Attribute(name) => match record.get(name) {
            Some(Value::Record | Value::Nested(_)) => fields_of(name, record),
            found => found.cloned().unwrap_or(Value::Null),
        },
        Term::Computed(_) | Term::Boolean(_) => {
            let get = |name: &str| record.get(name).map(Value::as_ref);
            term.with_value(&get, |value| value.map_or(Value::Null, |value| value.to_owned()))
        }
    }
}

/// The fields of a nested record, which an event holds under dotted names.
fn fields_of(name: &str, record: &Record) -> Value {
    let prefix = format!("{name}.");
    let mut fields: Vec<(Box<str>, Value)> = vec![];
    for (path, value) in record.values() {
        let Some(field) = path.strip_prefix(&prefix) else { continue };
        let mut dots = field.match_indices('.').map(|(at, _)| &path[..prefix.len() + at]);
        if dots.any(|inner| matches!(record.get(inner), Some(Value::Record | Value::Nested(_)))) {
            continue;
        }
        let value = if matches!(value, Value::Record | Value::Nested(_)) {
            fields_of(path, record)
        } else {
            value.clone()
        };
        fields.push((field.into(), value));
    }
    Value::Fields(fields.into())
}

/// The value by which a row joins: none where an equality is not true of anything.
pub(crate) fn join_value(term: &Term, record: &Record) -> Option<Value> {
    match normal(value_of(term, record)) {
        Value::Null | Value::Array(_) | Value::Record | Value::Nested(_) | Value::Fields(_) => None,
        scalar => Some(scalar),
    }
}

pub(crate) fn key_of(terms: &[Term], record: &Record) -> Key {
    let value = |term| normal(value_of(term, record));
    match terms {
        [term] => Key::One(value(term)),
        terms => Key::Several(terms.iter().map(value).collect()),
    }
}

/// The bytes that a value takes outside of its enum.
pub(crate) fn heap_bytes(value: &Value) -> usize {
    match value {
        Value::Str(text) => text.len(),
        Value::Array(items) => items.iter().map(|item| size_of::<Value>() + heap_bytes(item)).sum(),
        Value::Fields(fields) => {
            let bytes = |(name, value): &(Box<str>, Value)| {
                size_of::<(Box<str>, Value)>() + name.len() + heap_bytes(value)
            };
            fields.iter().map(bytes).sum()
        }
        Value::Decimal(_) | Value::Interval(_) | Value::Set(_) => 64,
        _ => 0,
    }
}

/// The bytes that a key takes outside of its enum.
pub(crate) fn key_bytes(key: &Key) -> usize {
    match key {
        Key::One(value) => heap_bytes(value),
        Key::Several(values) => values.iter().map(|value| size_of::<Value>() + heap_bytes(value)).sum(),
    }
}

/// The bytes of a record, about. Records of one stream share their names, which are not counted.
pub(crate) fn record_bytes(record: &Record) -> usize {
    let cells = record.values().map(|(_, value)| size_of::<Value>() + heap_bytes(value));
    cells.sum::<usize>() + size_of::<Record>() + 32
}
