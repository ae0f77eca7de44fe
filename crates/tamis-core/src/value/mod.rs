//! The values in events and the operands of predicates.

pub(crate) mod cell;
pub(crate) mod decimal;
pub(crate) mod number;
pub(crate) mod set;
pub(crate) mod timestamp;

use std::cmp::Ordering;

use decimal::Decimal;
use number::Number;
use set::ValueSet;

/// An owned value: an operand of a predicate, or a field of a record.
#[derive(Clone, Debug)]
pub enum Value {
    /// Only as an operand (`x IN (1, NULL)`) or as an element of an array.
    Null,
    Bool(bool),
    Int(i64),
    Float(f64),
    /// A number that is neither a 64-bit integer nor a float.
    Decimal(Box<Decimal>),
    Str(Box<str>),
    /// Microseconds since the epoch, UTC.
    Timestamp(i64),
    Array(Vec<Value>),
    /// A nested record: present, but compares with nothing. Its fields are attributes of their own.
    Record,
    /// A record that is an element of an array, with its own fields by dotted path, sorted by name, each once. A record
    /// inside it is a [`Value::Record`] and the fields that it has.
    Fields(Box<[(Box<str>, Value)]>),
    /// An array of arrays with strings inside: present, but compares with nothing. All that is kept of it is the strings.
    Nested(Box<[Value]>),
    /// A closed interval of two scalars of one kind, `low <= high`. Only in events.
    Interval(Box<(Value, Value)>),
    /// Any other set of values, given by a predicate. Only in events.
    Set(Box<ValueSet>),
    /// Text that each predicate reads as the kind it is about; see [`cell`]. Only in events.
    Cell(Box<str>),
}

/// A borrowed value: what an index sees of an event.
#[derive(Clone, Copy, Debug)]
pub enum ValueRef<'a> {
    Null,
    Bool(bool),
    Int(i64),
    Float(f64),
    Decimal(&'a Decimal),
    Str(&'a str),
    Timestamp(i64),
    Array(&'a [Value]),
    Record,
    Fields(&'a [(Box<str>, Value)]),
    Interval(&'a (Value, Value)),
    Set(&'a ValueSet),
    Cell(&'a str),
}

/// Which values can be compared with one another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Kind {
    Bool = 0,
    /// Integers, floats and decimals, compared by the values they stand for (see [`super::number`]).
    Number = 1,
    Str = 2,
    Timestamp = 3,
    Array = 4,
    Record = 5,
}

impl Kind {
    pub const ALL: [Kind; 6] =
        [Kind::Bool, Kind::Number, Kind::Str, Kind::Timestamp, Kind::Array, Kind::Record];

    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

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

    /// Its name in a sentence: "a number", "an array".
    pub fn with_article(self) -> &'static str {
        match self {
            Kind::Bool => "a boolean",
            Kind::Number => "a number",
            Kind::Str => "a string",
            Kind::Timestamp => "a timestamp",
            Kind::Array => "an array",
            Kind::Record => "a record",
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
            Value::Decimal(decimal) => ValueRef::Decimal(decimal),
            Value::Str(s) => ValueRef::Str(s),
            Value::Timestamp(t) => ValueRef::Timestamp(*t),
            Value::Array(items) => ValueRef::Array(items),
            Value::Record | Value::Nested(_) => ValueRef::Record,
            Value::Fields(fields) => ValueRef::Fields(fields),
            Value::Interval(ends) => ValueRef::Interval(ends),
            Value::Set(set) => ValueRef::Set(set),
            Value::Cell(text) => ValueRef::Cell(text),
        }
    }

    /// Whether it stands for several values: an interval, or another set.
    pub fn is_set(&self) -> bool {
        self.as_ref().is_set()
    }

    /// `None` for null.
    pub fn kind(&self) -> Option<Kind> {
        self.as_ref().kind()
    }

    /// A closed interval, or one sentence that says why these two ends make none.
    pub fn interval(low: Value, high: Value) -> Result<Value, String> {
        for (end, value) in [("low", &low), ("high", &high)] {
            match value {
                Value::Bool(_) | Value::Int(_) | Value::Decimal(_) | Value::Str(_) | Value::Timestamp(_) => {}
                Value::Float(x) if !x.is_nan() => {}
                Value::Float(_) => return Err(format!("the {end} end of an interval must not be NaN")),
                Value::Null => return Err(format!("the {end} end of an interval must not be null")),
                Value::Array(_)
                | Value::Record
                | Value::Fields(_)
                | Value::Nested(_)
                | Value::Interval(_)
                | Value::Set(_)
                | Value::Cell(_) => {
                    return Err(format!("the {end} end of an interval must be a scalar"));
                }
            }
        }
        match low.as_ref().compare(high.as_ref()) {
            Some(order) if order.is_le() => Ok(Value::Interval(Box::new((low, high)))),
            Some(_) => Err("the low end of an interval must not be above its high end".into()),
            None => {
                let [low, high] = [&low, &high].map(|end| end.kind().map_or("null", Kind::with_article));
                Err(format!("the ends of an interval must be of one kind, not {low} and {high}"))
            }
        }
    }

    /// An array of scalars of one kind and nulls, or of records and nulls, or one sentence that says why these are none.
    ///
    /// Arrays of arrays are data that no predicate on them can look at: they become [`Value::Record`], which is present
    /// and nothing else, or [`Value::Nested`].
    pub fn array(items: Vec<Value>) -> Result<Value, String> {
        let mut kinds = items.iter().filter_map(Value::kind);
        let Some(first) = kinds.next() else {
            return Ok(Value::Array(items));
        };
        if let Some(other) = kinds.find(|kind| *kind != first) {
            let (first, other) = (first.with_article(), other.with_article());
            return Err(format!("an array must hold values of one kind, not {first} and {other}"));
        }
        if items.iter().any(Value::is_set) {
            return Err("an array cannot hold an interval".into());
        }
        match first {
            Kind::Array => Ok(Self::nested(&items)),
            Kind::Record if items.iter().any(|item| matches!(item, Value::Record | Value::Nested(_))) => {
                Ok(Self::nested(&items))
            }
            _ => Ok(Value::Array(items)),
        }
    }

    fn nested(items: &[Value]) -> Value {
        let mut strings = vec![];
        items.iter().for_each(|item| item.for_each_string(&mut |text| strings.push(text.clone())));
        if strings.is_empty() { Value::Record } else { Value::Nested(strings.into()) }
    }

    /// Calls `see` with every string in the value, wherever it lies, and with null for a set of strings.
    pub fn for_each_string(&self, see: &mut impl FnMut(&Value)) {
        match self {
            Value::Str(_) => see(self),
            Value::Cell(text) => see(&Value::Str(text.clone())),
            Value::Array(items) => items.iter().for_each(|item| item.for_each_string(see)),
            Value::Nested(strings) => strings.iter().for_each(see),
            Value::Fields(fields) => fields.iter().for_each(|(_, value)| value.for_each_string(see)),
            Value::Interval(_) | Value::Set(_) if self.kind() == Some(Kind::Str) => see(&Value::Null),
            _ => {}
        }
    }
}

impl<'a> ValueRef<'a> {
    /// `None` for null; the kind of its ends for an interval.
    #[inline]
    pub fn kind(self) -> Option<Kind> {
        match self {
            ValueRef::Null => None,
            ValueRef::Bool(_) => Some(Kind::Bool),
            ValueRef::Int(_) | ValueRef::Float(_) | ValueRef::Decimal(_) => Some(Kind::Number),
            ValueRef::Str(_) | ValueRef::Cell(_) => Some(Kind::Str),
            ValueRef::Timestamp(_) => Some(Kind::Timestamp),
            ValueRef::Array(_) => Some(Kind::Array),
            ValueRef::Record | ValueRef::Fields(_) => Some(Kind::Record),
            ValueRef::Interval(ends) => ends.0.kind(),
            ValueRef::Set(set) => set.kind(),
        }
    }

    /// Whether it stands for several values: an interval, another set, or a cell, which is another value for each kind.
    pub fn is_set(self) -> bool {
        matches!(self, ValueRef::Interval(_) | ValueRef::Set(_) | ValueRef::Cell(_))
    }

    pub fn number(self) -> Option<Number> {
        match self {
            ValueRef::Int(i) => Some(Number::from_i64(i)),
            ValueRef::Float(x) => Some(Number::from_f64(x)),
            ValueRef::Decimal(decimal) => Some(decimal.number()),
            _ => None,
        }
    }

    /// The float that is nearest to a number.
    pub fn nearest_float(self) -> Option<f64> {
        match self {
            ValueRef::Float(x) => Some(x),
            _ => self.number().map(Number::nearest),
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
            (ValueRef::Decimal(a), ValueRef::Decimal(b)) => Some(a.compare(b)),
            _ => Some(self.number()?.cmp(&other.number()?)),
        }
    }

    pub fn to_owned(self) -> Value {
        match self {
            ValueRef::Null => Value::Null,
            ValueRef::Bool(b) => Value::Bool(b),
            ValueRef::Int(i) => Value::Int(i),
            ValueRef::Float(x) => Value::Float(x),
            ValueRef::Decimal(decimal) => Value::Decimal(Box::new(decimal.clone())),
            ValueRef::Str(s) => Value::Str(s.into()),
            ValueRef::Timestamp(t) => Value::Timestamp(t),
            ValueRef::Array(items) => Value::Array(items.to_vec()),
            ValueRef::Record => Value::Record,
            ValueRef::Fields(fields) => Value::Fields(fields.into()),
            ValueRef::Interval(ends) => Value::Interval(Box::new(ends.clone())),
            ValueRef::Set(set) => Value::Set(Box::new(set.clone())),
            ValueRef::Cell(text) => Value::Cell(text.into()),
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
            (Value::Decimal(a), Value::Decimal(b)) => a == b,
            (Value::Str(a), Value::Str(b)) => a == b,
            (Value::Array(a), Value::Array(b)) => a == b,
            (Value::Nested(a), Value::Nested(b)) => a == b,
            (Value::Fields(a), Value::Fields(b)) => a == b,
            (Value::Interval(a), Value::Interval(b)) => a == b,
            (Value::Set(a), Value::Set(b)) => a == b,
            (Value::Cell(a), Value::Cell(b)) => a == b,
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
            Value::Decimal(decimal) => decimal.hash(state),
            Value::Str(s) => s.hash(state),
            Value::Array(items) => items.hash(state),
            Value::Nested(strings) => strings.hash(state),
            Value::Fields(fields) => fields.hash(state),
            Value::Interval(ends) => ends.hash(state),
            Value::Set(set) => set.hash(state),
            Value::Cell(text) => text.hash(state),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_have_two_comparable_ends_in_order() {
        assert!(Value::interval(Value::Int(1), Value::Int(1)).is_ok());
        assert!(Value::interval(Value::Int(1), Value::Float(f64::INFINITY)).is_ok());
        assert!(Value::interval(Value::Str("a".into()), Value::Str("b".into())).is_ok());
        for (low, high, wrong) in [
            (Value::Int(2), Value::Int(1), "above its high end"),
            (Value::Int(2), Value::Str("x".into()), "not a number and a string"),
            (Value::Float(f64::NAN), Value::Int(1), "low end of an interval must not be NaN"),
            (Value::Int(1), Value::Null, "high end of an interval must not be null"),
            (Value::Int(1), Value::Record, "must be a scalar"),
        ] {
            let error = Value::interval(low, high).unwrap_err();
            assert!(error.contains(wrong), "{error}");
        }
    }

    #[test]
    fn arrays_hold_one_kind() {
        let mixed = vec![Value::Null, Value::Int(1), Value::Float(2.5)];
        assert_eq!(Value::array(mixed.clone()), Ok(Value::Array(mixed)));
        assert_eq!(Value::array(vec![]), Ok(Value::Array(vec![])));
        assert_eq!(Value::array(vec![Value::Record, Value::Null]), Ok(Value::Record));
        assert_eq!(Value::array(vec![Value::Array(vec![])]), Ok(Value::Record));
        let inner = || Value::Array(vec![Value::Str("x".into()), Value::Null]);
        let nested = Value::array(vec![inner(), inner()]).unwrap();
        assert_eq!(nested, Value::Nested([Value::Str("x".into()), Value::Str("x".into())].into()));
        assert_eq!((nested.kind(), Value::array(vec![nested.clone()])), (Some(Kind::Record), Ok(nested)));
        let error = Value::array(vec![Value::Int(1), Value::Bool(true)]).unwrap_err();
        assert_eq!(error, "an array must hold values of one kind, not a number and a boolean");
        let interval = Value::interval(Value::Int(1), Value::Int(2)).unwrap();
        assert!(Value::array(vec![interval]).unwrap_err().contains("interval"));
    }
}
