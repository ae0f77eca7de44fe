//! A record: an event as its source gave it, owned and not yet tied to an index.

use std::sync::{Arc, OnceLock};

use super::error::EventError;
use super::fields::{Fields, Path, Wanted, check_weight, given_twice};
use super::{Event, TermId, Terms, Value, ValueRef};
use crate::stamp::Stamp;

/// The names of a record, sorted, each once. Records of one source mostly have the same, and may share them.
pub type Names = Arc<[Box<str>]>;

/// Attribute names with their values, and the event's own weights per attribute.
///
/// Flat: a nested record `{"a": {"b": 1}}` is the attribute `a`, which is present as [`Value::Record`]
/// and compares with nothing, and the attribute `a.b`. Absent and null are the same, so nulls are dropped.
#[derive(Clone, Debug, Default)]
pub struct Record {
    names: Names,
    /// One for each name.
    values: Box<[Value]>,
    rest: Option<Box<Rest>>,
    /// All strings, computed on first use.
    strings: OnceLock<Box<Value>>,
}

/// Rarely used parts of a record.
#[derive(Clone, Debug, Default)]
struct Rest {
    weights: Vec<(Box<str>, f64)>,
    /// The strings that a schema has read as another kind, and the strings in unreadable values.
    as_written: Vec<Value>,
    /// The unreadable values.
    unreadable: Vec<EventError>,
}

impl PartialEq for Record {
    fn eq(&self, other: &Self) -> bool {
        self.names == other.names
            && self.values == other.values
            && self.given_weights() == other.given_weights()
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
        let (names, values): (Vec<Box<str>>, Vec<Value>) = values.into_iter().unzip();
        let mut record = Self::sharing(&names.into(), values.into());
        if !weights.is_empty() {
            record.rest = Some(Box::new(Rest { weights, ..Rest::default() }));
        }
        Ok(record)
    }

    /// From names that other records have too. No value is null, and there are as many as names.
    pub(super) fn sharing(names: &Names, values: Box<[Value]>) -> Self {
        debug_assert_eq!(names.len(), values.len());
        Self { names: names.clone(), values, ..Self::default() }
    }

    /// Has these names instead of its own, if they are the same: then many records hold them once.
    ///
    /// ```
    /// use tamis_core::event::{Record, Value};
    /// let one = Record::new([("age", Value::Int(27))], []).unwrap();
    /// let mut other = Record::new([("age", Value::Int(28))], []).unwrap();
    /// assert!(other.share_names(&one.names().clone()));
    /// assert!(std::sync::Arc::ptr_eq(one.names(), other.names()));
    /// assert!(!Record::default().share_names(one.names()));
    /// ```
    pub fn share_names(&mut self, names: &Names) -> bool {
        let are_same = Arc::ptr_eq(&self.names, names) || self.names == *names;
        if are_same {
            self.names = names.clone();
        }
        are_same
    }

    /// As [`share_names`](Self::share_names), with names that are known to be the same.
    pub fn share_same_names(&mut self, names: &Names) {
        debug_assert!(self.names == *names, "they are the same");
        self.names = names.clone();
    }

    pub fn names(&self) -> &Names {
        &self.names
    }

    /// The record as an element of an array. What is left of it: why fields are absent, and the strings in those.
    pub fn into_element(mut self) -> (Value, Vec<EventError>, Vec<Value>) {
        let names: Vec<Box<str>> = match Arc::get_mut(&mut self.names) {
            Some(names) => names.iter_mut().map(std::mem::take).collect(),
            None => self.names.to_vec(),
        };
        let Rest { unreadable, as_written, .. } = self.rest.map_or_else(Rest::default, |rest| *rest);
        (Value::Fields(names.into_iter().zip(self.values).collect()), unreadable, as_written)
    }

    /// The value of an attribute, or `None` when it is absent.
    pub fn get(&self, attribute: &str) -> Option<&Value> {
        let at = self.names.binary_search_by(|name| (**name).cmp(attribute)).ok()?;
        Some(&self.values[at])
    }

    /// Names and values, sorted by name.
    pub fn values(&self) -> impl ExactSizeIterator<Item = (&str, &Value)> {
        self.names.iter().zip(&self.values).map(|(name, value)| (&**name, value))
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
            let as_written = self.rest.iter().flat_map(|rest| &rest.as_written);
            for value in self.values.iter().chain(as_written) {
                value.for_each_string(&mut |string| strings.push(string.clone()));
            }
            Box::new(Value::Array(strings))
        })
    }

    /// Lets a schema read values as others. `read` returns what it has replaced.
    pub(super) fn rewrite(&mut self, read: impl Fn(&str, &mut Value) -> Option<Value>) {
        let mut values = self.names.iter().zip(&mut self.values);
        let mut replaced = values.by_ref().filter_map(|(name, value)| read(name, value)).peekable();
        if replaced.peek().is_some() {
            self.rest.get_or_insert_default().as_written.extend(replaced);
        }
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
        self.rest.as_ref().map_or(&[], |rest| &rest.unreadable)
    }

    /// The event's weights, sorted by attribute.
    pub fn weights(&self) -> impl ExactSizeIterator<Item = (&str, f64)> {
        self.given_weights().iter().map(|(name, weight)| (&**name, *weight))
    }

    fn given_weights(&self) -> &[(Box<str>, f64)] {
        self.rest.as_ref().map_or(&[], |rest| &rest.weights)
    }

    /// The part of this record that an index needs: the attributes that some subscription uses, and the terms
    /// that are computed from them, whose values live in `room`.
    pub fn resolve_into<'a>(&'a self, terms: &Terms, room: &'a mut Vec<Value>) -> Event<'a> {
        let mut event = self.resolve(terms);
        terms.compute(&mut event.values, room);
        event
    }

    /// The attributes that some subscription uses, without computed terms.
    pub fn resolve<'a>(&'a self, terms: &Terms) -> Event<'a> {
        let mut event = Event::default();
        for (name, value) in self.names.iter().zip(&self.values) {
            if let Some(attribute) = terms.of_field(name) {
                event.values.push((attribute, value.as_ref()));
                event.has_intervals |= value.is_set();
            }
        }
        self.resolve_rest(terms, &mut event);
        event.values.sort_unstable_by_key(|(attribute, _)| *attribute);
        event
    }

    /// All but the values under their names.
    fn resolve_rest<'a>(&'a self, terms: &Terms, event: &mut Event<'a>) {
        event.values.extend(terms.strings().map(|id| (id, self.strings().as_ref())));
        let Some(rest) = &self.rest else { return };
        let weights = rest.weights.iter();
        event.weights.extend(weights.filter_map(|(name, weight)| Some((terms.named(name)?, *weight))));
        event.weights.sort_unstable_by_key(|(attribute, _)| *attribute);
        let is_used = |error: &&EventError| error.path.as_ref().is_some_and(|path| terms.needs(path));
        event.unreadable.extend(rest.unreadable.iter().filter(is_used).cloned());
    }
}

/// Which attributes of an index the names of records are, remembered from record to record: those that share their names
/// are not looked up again.
#[derive(Default)]
pub struct NameResolver {
    names: Names,
    stamp: Stamp,
    /// Attributes in order, each with the place of its value.
    places: Vec<(TermId, u32)>,
}

impl NameResolver {
    /// As [`Record::resolve`], into an event without values.
    ///
    /// ```
    /// use tamis_core::event::{Event, NameResolver, Record, Terms, Value};
    /// let mut terms = Terms::default();
    /// let (b, a) = (terms.intern("b"), terms.intern("a"));
    /// let record = Record::new([("a", Value::Int(1)), ("b", Value::Int(2)), ("c", Value::Int(3))], []).unwrap();
    /// let mut resolver = NameResolver::default();
    /// for _ in 0..2 {
    ///     let mut event = Event::default();
    ///     resolver.resolve(&record, &terms, &mut event);
    ///     assert_eq!(event.values.len(), 2);
    ///     assert_eq!(event.get(a).unwrap().to_owned(), Value::Int(1));
    ///     assert_eq!(event.get(b).unwrap().to_owned(), Value::Int(2));
    /// }
    /// ```
    pub fn resolve<'a>(&mut self, record: &'a Record, terms: &Terms, event: &mut Event<'a>) {
        if !Arc::ptr_eq(&self.names, &record.names) || self.stamp != terms.stamp() {
            self.look_up(record, terms);
        }
        for (attribute, place) in &self.places {
            let value = &record.values[*place as usize];
            event.values.push((*attribute, value.as_ref()));
            event.has_intervals |= value.is_set();
        }
        let known = event.values.len();
        record.resolve_rest(terms, event);
        if event.values.len() > known {
            event.values.sort_unstable_by_key(|(attribute, _)| *attribute);
        }
    }

    #[cold]
    fn look_up(&mut self, record: &Record, terms: &Terms) {
        let names = record.names.iter().zip(0..);
        self.places.clear();
        self.places.extend(names.filter_map(|(name, place)| Some((terms.of_field(name)?, place))));
        self.places.sort_unstable();
        self.names = record.names.clone();
        self.stamp = terms.stamp();
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
        let mut record = Record::new(self.values, self.weights)?;
        if !self.unreadable.is_empty() || !self.strings.is_empty() {
            let rest = record.rest.get_or_insert_default();
            rest.unreadable = self.unreadable;
            rest.as_written = self.strings;
        }
        Ok(record)
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
    fn a_resolver_notices_other_names_and_other_terms() {
        let record =
            |names: &[&str]| Record::new(names.iter().map(|name| (*name, Value::Bool(true))), []).unwrap();
        let mut resolver = NameResolver::default();
        let mut known = terms(&["c", "a"]);
        let (one, other) = (record(&["a", "b"]), record(&["b", "c"]));
        for round in 0..3 {
            for record in [&one, &one, &other, &Record::default()] {
                let mut event = Event::default();
                resolver.resolve(record, &known, &mut event);
                let shown = |event: &Event<'_>| format!("{:?}", event.values);
                assert_eq!(shown(&event), shown(&record.resolve(&known)), "round {round}");
            }
            known.intern(["b", "d", "e"][round]);
        }
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
