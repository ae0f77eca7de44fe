//! A record: an event as its source gave it, owned and not yet tied to an index.

use std::sync::OnceLock;

use super::error::EventError;
use super::fields::{Fields, Path, Wanted, check_weight, given_twice};
use super::{Event, Terms, Value, ValueRef};

/// Attribute names with their values, and the event's own weights per attribute.
///
/// Flat: a nested record `{"a": {"b": 1}}` is the attribute `a`, which is present as [`Value::Record`]
/// and compares with nothing, and the attribute `a.b`. Absent and null are the same, so nulls are dropped.
#[derive(Clone, Debug, Default)]
pub struct Record {
    /// Sorted by name; each name once.
    values: Vec<(Box<str>, Value)>,
    weights: Vec<(Box<str>, f64)>,
    /// What a schema has read as something else, and the strings in what no value can hold.
    as_written: Vec<Value>,
    /// All strings, once somebody has asked for them.
    strings: OnceLock<Value>,
    /// What was given and no value can hold.
    unreadable: Vec<EventError>,
}

impl PartialEq for Record {
    fn eq(&self, other: &Self) -> bool {
        (&self.values, &self.weights) == (&other.values, &other.weights)
    }
}

impl Record {
    /// From flat names. Nulls are dropped; a name given twice is an error.
    ///
    /// ```
    /// use tamis_core::event::{Record, Value};
    /// let values = [("age", Value::Int(27)), ("country", Value::Null)];
    /// let record = Record::new(values, [("age", 0.6)]).unwrap();
    /// assert_eq!(record.get("age"), Some(&Value::Int(27)));
    /// assert_eq!(record.get("country"), None);
    /// ```
    pub fn new<N: Into<Box<str>>>(
        values: impl IntoIterator<Item = (N, Value)>,
        weights: impl IntoIterator<Item = (N, f64)>,
    ) -> Result<Self, EventError> {
        let mut values: Vec<(Box<str>, Value)> =
            values.into_iter().map(|(name, value)| (name.into(), value)).collect();
        values.sort_by(|a, b| a.0.cmp(&b.0));
        if let Some(twice) = values.windows(2).find(|pair| pair[0].0 == pair[1].0) {
            return Err(given_twice("a value", &twice[0].0));
        }
        values.retain(|(_, value)| *value != Value::Null);
        let mut weights: Vec<(Box<str>, f64)> =
            weights.into_iter().map(|(name, weight)| (name.into(), weight)).collect();
        weights.sort_by(|a, b| a.0.cmp(&b.0));
        if let Some(twice) = weights.windows(2).find(|pair| pair[0].0 == pair[1].0) {
            return Err(given_twice("a weight", &twice[0].0));
        }
        for (name, weight) in &weights {
            check_weight(name, *weight)?;
        }
        Ok(Self { values, weights, ..Self::default() })
    }

    /// The record as an element of an array. What is left of it: why fields are absent, and the strings in those.
    pub fn into_element(self) -> (Value, Vec<EventError>, Vec<Value>) {
        (Value::Fields(self.values.into()), self.unreadable, self.as_written)
    }

    /// The value of an attribute, or `None` when it is absent.
    pub fn get(&self, attribute: &str) -> Option<&Value> {
        let at = self.values.binary_search_by(|(name, _)| (**name).cmp(attribute)).ok()?;
        Some(&self.values[at].1)
    }

    /// Names and values, sorted by name.
    pub fn values(&self) -> impl ExactSizeIterator<Item = (&str, &Value)> {
        self.values.iter().map(|(name, value)| (&**name, value))
    }

    /// All strings of the event, in arrays and in records too, as an array. What a schema reads as something else
    /// remains a string here. A set of strings is a null.
    ///
    /// ```
    /// use tamis_core::event::{json, Value};
    /// let record = json::read_record(br#"{"a": {"b": "x"}, "c": [{"d": ["y"]}, {"d": 5}]}"#).unwrap();
    /// assert_eq!(record.strings(), &Value::Array(vec![Value::Str("x".into()), Value::Str("y".into())]));
    /// ```
    pub fn strings(&self) -> &Value {
        self.strings.get_or_init(|| {
            let mut strings = vec![];
            for value in self.values.iter().map(|(_, value)| value).chain(&self.as_written) {
                value.for_each_string(&mut |string| strings.push(string.clone()));
            }
            Value::Array(strings)
        })
    }

    /// Lets a schema read values as others. `read` returns what it has replaced.
    pub(super) fn rewrite(&mut self, read: impl Fn(&str, &mut Value) -> Option<Value>) {
        let replaced = self.values.iter_mut().filter_map(|(name, value)| read(name, value));
        self.as_written.extend(replaced);
        self.strings = OnceLock::new();
    }

    /// Whether some attribute holds an interval, or another set of values, instead of a point.
    pub fn has_sets(&self) -> bool {
        self.values().any(|(_, value)| value.is_set())
    }

    /// Why attributes are absent although the event gave them something; in the order in which it did.
    ///
    /// ```
    /// use tamis_core::event::json::read_record;
    /// let record = read_record(br#"{"n": 99999999999999999999, "age": 27}"#).unwrap();
    /// assert_eq!(record.unreadable()[0].path.as_deref(), Some("n"));
    /// assert!(record.get("n").is_none() && record.get("age").is_some());
    /// ```
    pub fn unreadable(&self) -> &[EventError] {
        &self.unreadable
    }

    /// The event's weights, sorted by attribute.
    pub fn weights(&self) -> impl ExactSizeIterator<Item = (&str, f64)> {
        self.weights.iter().map(|(name, weight)| (&**name, *weight))
    }

    /// What an index needs of this record: the attributes that some subscription uses, and the terms that are
    /// computed from them, whose values live in `room`.
    pub fn resolve_into<'a>(&'a self, terms: &Terms, room: &'a mut Vec<Value>) -> Event<'a> {
        let mut event = self.resolve(terms);
        terms.compute(&mut event.values, room);
        event
    }

    /// The attributes that some subscription uses, without computed terms.
    pub fn resolve<'a>(&'a self, terms: &Terms) -> Event<'a> {
        let mut event = Event::default();
        for (name, value) in &self.values {
            if let Some(attribute) = terms.of_field(name) {
                event.values.push((attribute, value.as_ref()));
                event.has_intervals |= value.is_set();
            }
        }
        event.values.extend(terms.strings().map(|id| (id, self.strings().as_ref())));
        event.values.sort_unstable_by_key(|(attribute, _)| *attribute);
        event
            .weights
            .extend(self.weights.iter().filter_map(|(name, weight)| Some((terms.named(name)?, *weight))));
        event.weights.sort_unstable_by_key(|(attribute, _)| *attribute);
        let is_used = |error: &&EventError| error.path.as_ref().is_some_and(|path| terms.needs(path));
        event.unreadable.extend(self.unreadable.iter().filter(is_used).cloned());
        event
    }
}

/// Listens to a reader and keeps everything.
#[derive(Default)]
pub struct RecordBuilder {
    values: Vec<(Box<str>, Value)>,
    weights: Vec<(Box<str>, f64)>,
    unreadable: Vec<EventError>,
    /// In what no value can hold.
    strings: Vec<Value>,
    path: Path,
}

impl RecordBuilder {
    /// The record, once everything is read; an error when a name was given twice.
    pub fn finish(self) -> Result<Record, EventError> {
        let record = Record::new(self.values, self.weights)?;
        Ok(Record { unreadable: self.unreadable, as_written: self.strings, ..record })
    }
}

impl<'a> Fields<'a> for RecordBuilder {
    fn enter(&mut self, name: &str) -> Wanted {
        self.path.enter(name);
        Wanted { value: true, fields: true }
    }

    fn leave(&mut self) {
        self.path.leave();
    }

    fn path(&self) -> &str {
        self.path.as_str()
    }

    fn put(&mut self, value: ValueRef<'a>) {
        self.put_owned(value.to_owned());
    }

    fn put_owned(&mut self, value: Value) {
        self.values.push((self.path.as_str().into(), value));
    }

    fn put_unreadable(&mut self, error: EventError) {
        self.unreadable.push(error);
    }

    fn put_weight(&mut self, attribute: &str, weight: f64) -> Result<(), EventError> {
        check_weight(attribute, weight)?;
        self.weights.push((attribute.into(), weight));
        Ok(())
    }

    fn put_string(&mut self, string: Value) {
        self.strings.push(string);
    }

    fn keeps_nested(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::TermId;

    fn terms(names: &[&str]) -> Terms {
        let mut terms = Terms::default();
        for name in names {
            terms.intern(name);
        }
        terms
    }

    #[test]
    fn resolving_keeps_what_subscriptions_use_sorted_by_id() {
        let record = Record::new(
            [
                ("b", Value::Int(2)),
                ("a", Value::Int(1)),
                ("unused", Value::Bool(true)),
                ("c", Value::Null),
                ("hours", Value::interval(Value::Int(20), Value::Int(30)).unwrap()),
            ],
            [("a", 0.5), ("elsewhere", 1.0), ("b", 2.0)],
        )
        .unwrap();
        let event = record.resolve(&terms(&["hours", "b", "c", "a"]));
        let ids: Vec<u32> = event.values.iter().map(|(TermId(id), _)| *id).collect();
        assert_eq!(ids, [0, 1, 3]);
        assert!(event.has_intervals);
        assert_eq!(event.weights, [(TermId(1), 2.0), (TermId(3), 0.5)]);
        assert!(!record.resolve(&terms(&["a"])).has_intervals);
    }

    #[test]
    fn a_name_given_twice_is_named() {
        let error = Record::new([("a.b", Value::Null), ("a.b", Value::Int(1))], []).unwrap_err();
        assert_eq!(error.path.as_deref(), Some("a.b"));
        let error = Record::new([("a", Value::Int(1))], [("x", 1.0), ("x", 2.0)]).unwrap_err();
        assert_eq!(error.path.as_deref(), Some("x"));
    }

    #[test]
    fn weights_are_finite_and_not_negative() {
        for weight in [-1.0, f64::NAN, f64::INFINITY] {
            let error = Record::new([("a", Value::Int(1))], [("a", weight)]).unwrap_err();
            assert!(error.message.contains("finite and not negative"), "{error}");
        }
        assert!(Record::new([("a", Value::Int(1))], [("a", 0.0)]).is_ok());
    }
}
