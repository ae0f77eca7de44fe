//! The values that events carry and predicates compare with.

use std::cmp::Ordering;

use super::number::Number;

/// An owned value: an operand of a predicate, or a field of a record.
#[derive(Clone, Debug)]
pub enum Value {
    /// Only as an operand (`x IN (1, NULL)`) or as an element of an array.
    Null,
    Bool(bool),
    Int(i64),
    Float(f64),
    Str(Box<str>),
    /// Microseconds since the epoch, UTC.
    Timestamp(i64),
    Array(Vec<Value>),
    /// A nested record: present, but compares with nothing. Its fields are attributes of their own.
    Record,
    /// A closed interval of two scalars of one kind, `low <= high`. Only in events.
    Interval(Box<(Value, Value)>),
}

/// A borrowed value: what an index sees of an event.
#[derive(Clone, Copy, Debug)]
pub enum ValueRef<'a> {
    Null,
    Bool(bool),
    Int(i64),
    Float(f64),
    Str(&'a str),
    Timestamp(i64),
    Array(&'a [Value]),
    Record,
    Interval(&'a (Value, Value)),
}

/// Which values can be compared with one another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Kind {
    Bool = 0,
    /// Integers and floats, compared by exact mathematical value.
    Number = 1,
    Str = 2,
    Timestamp = 3,
    Array = 4,
    Record = 5,
}

impl Kind {
    pub fn name(self) -> &'static str {
        match self {
            Kind::Bool => "boolean",
            Kind::Number => "number",
            Kind::Str => "string",
            Kind::Timestamp => "timestamp",
            Kind::Array => "array",
            Kind::Record => "record",
        }
    }
}

impl Value {
    pub fn as_ref(&self) -> ValueRef<'_> {
        match self {
            Value::Null => ValueRef::Null,
            Value::Bool(b) => ValueRef::Bool(*b),
            Value::Int(i) => ValueRef::Int(*i),
            Value::Float(x) => ValueRef::Float(*x),
            Value::Str(s) => ValueRef::Str(s),
            Value::Timestamp(t) => ValueRef::Timestamp(*t),
            Value::Array(items) => ValueRef::Array(items),
            Value::Record => ValueRef::Record,
            Value::Interval(ends) => ValueRef::Interval(ends),
        }
    }

    /// `None` for null.
    pub fn kind(&self) -> Option<Kind> {
        self.as_ref().kind()
    }
}

impl<'a> ValueRef<'a> {
    /// `None` for null; the kind of its ends for an interval.
    pub fn kind(self) -> Option<Kind> {
        match self {
            ValueRef::Null => None,
            ValueRef::Bool(_) => Some(Kind::Bool),
            ValueRef::Int(_) | ValueRef::Float(_) => Some(Kind::Number),
            ValueRef::Str(_) => Some(Kind::Str),
            ValueRef::Timestamp(_) => Some(Kind::Timestamp),
            ValueRef::Array(_) => Some(Kind::Array),
            ValueRef::Record => Some(Kind::Record),
            ValueRef::Interval(ends) => ends.0.kind(),
        }
    }

    pub fn number(self) -> Option<Number> {
        match self {
            ValueRef::Int(i) => Some(Number::from_i64(i)),
            ValueRef::Float(x) => Some(Number::from_f64(x)),
            _ => None,
        }
    }

    /// The text of a string, or the empty text of anything else.
    pub fn text(self) -> &'a str {
        match self {
            ValueRef::Str(text) => text,
            _ => "",
        }
    }

    /// The order of two scalars of the same kind; `None` when they cannot be compared.
    pub fn compare(self, other: ValueRef<'_>) -> Option<Ordering> {
        match (self, other) {
            (ValueRef::Bool(a), ValueRef::Bool(b)) => Some(a.cmp(&b)),
            (ValueRef::Str(a), ValueRef::Str(b)) => Some(a.as_bytes().cmp(b.as_bytes())),
            (ValueRef::Timestamp(a), ValueRef::Timestamp(b)) => Some(a.cmp(&b)),
            _ => Some(self.number()?.cmp(&other.number()?)),
        }
    }

    pub fn to_owned(self) -> Value {
        match self {
            ValueRef::Null => Value::Null,
            ValueRef::Bool(b) => Value::Bool(b),
            ValueRef::Int(i) => Value::Int(i),
            ValueRef::Float(x) => Value::Float(x),
            ValueRef::Str(s) => Value::Str(s.into()),
            ValueRef::Timestamp(t) => Value::Timestamp(t),
            ValueRef::Array(items) => Value::Array(items.to_vec()),
            ValueRef::Record => Value::Record,
            ValueRef::Interval(ends) => Value::Interval(Box::new(ends.clone())),
        }
    }
}

/// Equality as written, not as compared: `1` and `1.0` differ, and NaN equals itself.
impl PartialEq for Value {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Value::Null, Value::Null) | (Value::Record, Value::Record) => true,
            (Value::Bool(a), Value::Bool(b)) => a == b,
            (Value::Int(a), Value::Int(b)) | (Value::Timestamp(a), Value::Timestamp(b)) => a == b,
            (Value::Float(a), Value::Float(b)) => a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan(),
            (Value::Str(a), Value::Str(b)) => a == b,
            (Value::Array(a), Value::Array(b)) => a == b,
            (Value::Interval(a), Value::Interval(b)) => a == b,
            _ => false,
        }
    }
}

impl Eq for Value {}

impl std::hash::Hash for Value {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        std::mem::discriminant(self).hash(state);
        match self {
            Value::Null | Value::Record => {}
            Value::Bool(b) => b.hash(state),
            Value::Int(i) | Value::Timestamp(i) => i.hash(state),
            Value::Float(x) => if x.is_nan() { f64::NAN } else { *x }.to_bits().hash(state),
            Value::Str(s) => s.hash(state),
            Value::Array(items) => items.hash(state),
            Value::Interval(ends) => ends.hash(state),
        }
    }
}
