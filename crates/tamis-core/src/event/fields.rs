//! The interface through which any reader of events (JSON, a Python dict) reports what it finds, field by field.
//!
//! A reader walks a record and calls [`Fields`]. The listener decides whether to build an owned
//! [`Record`](super::Record) or an [`Event`] for one index. So both follow one flattening rule: nested records become
//! dotted paths, the record itself is present as [`Value::Record`], nulls are absent, and a duplicate name
//! (`{"a.b": 1, "a": {"b": 2}}`) is an error.

use super::error::EventError;
use super::known_fields::{KnownField, KnownFields, Quoted, SeenField};
use super::order::Order;
use super::{Event, Schema, TermId, Terms, Value, ValueRef};
use crate::json::structure::Structure;

/// What the listener wants of a field. What it does not want, the reader may skip unread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// The value of the field itself.
    pub value: bool,
    /// The fields inside it, if it is a record.
    pub fields: bool,
}

/// Listens to a reader that walks an event.
pub trait Fields<'a> {
    /// Goes to the field `name` of the record that is being read. Paired with [`leave`](Self::leave).
    fn enter(&mut self, name: &str) -> Wanted;

    /// What the current field may be entered by, faster than by its name, if it is a field of the event itself.
    fn seen_field(&self) -> Option<SeenField> {
        None
    }

    /// The same as [`enter`](Self::enter) for a field of the event that was seen before; `None` if that was forgotten.
    fn enter_seen(&mut self, _seen: SeenField) -> Option<Wanted> {
        None
    }

    /// Takes a field of the event that was seen before at once, if nothing is wanted of it, or if it has an attribute and `scalar`
    /// gives its value. False, and nothing done, if it has to be entered.
    fn take_seen(&mut self, _seen: SeenField, _scalar: impl FnOnce() -> Option<ValueRef<'a>>) -> bool {
        false
    }

    /// The same as [`enter`](Self::enter) for a field that came in an event before, of any record. `None` if it did not.
    fn enter_known(&mut self, _name: &str) -> Option<Wanted> {
        None
    }

    /// Goes to the field whose name, in quotes, stands at the beginning of the text, if that is the one that was
    /// expected next. Says how long the name is, with its quotes.
    fn enter_expected(&mut self, _text: &[u8]) -> Option<(usize, Wanted)> {
        None
    }

    /// Goes past the fields that were expected next for as long as nothing is wanted of them and `pass` goes past a member of
    /// that name.
    fn pass_unwanted(&mut self, _pass: impl FnMut(&Quoted) -> bool) {}

    /// Goes back to the record around the field.
    fn leave(&mut self);

    /// The dotted path of the current field, for error messages.
    fn path(&self) -> &str;

    /// Gives the value of the current field, null included; [`ValueRef::Record`] before its fields.
    fn put(&mut self, value: ValueRef<'a>);

    /// The same for a value that the reader had to build.
    fn put_owned(&mut self, value: Value);

    /// Says why the current field has no value although the event gives it one: an integer of more than 64 bits, an array
    /// of mixed kinds. It is absent.
    fn put_unreadable(&mut self, error: EventError);

    /// Gives the event's weight for an attribute, by its full dotted name.
    fn put_weight(&mut self, attribute: &str, weight: f64) -> Result<(), EventError>;

    /// Whether every string of the event is asked for, wherever it lies and whatever lies beside it. The reader then
    /// gives them all, apart from the fields, by [`put_string`](Self::put_string).
    fn wants_strings(&self) -> bool {
        false
    }

    /// Gives a string; null stands for a set of strings.
    fn put_string(&mut self, _string: Value) {}

    /// Whether the strings in arrays of arrays are to be kept with their values. The strings in what no value can hold are then
    /// given by [`put_string`](Self::put_string).
    fn keeps_nested(&self) -> bool {
        false
    }
}

pub(super) fn check_weight(attribute: &str, weight: f64) -> Result<(), EventError> {
    if weight.is_finite() && weight >= 0.0 {
        return Ok(());
    }
    Err(EventError::new(format!("a weight must be finite and not negative, not {weight}")).at_path(attribute))
}

pub(super) fn given_twice(what: &str, attribute: &str) -> EventError {
    EventError::new(format!("{what} is given twice"))
        .at_path(attribute)
        .with_hint("a flat name with a dot and a field of a nested record are the same attribute")
}

/// The dotted path from the event to the field that is being read.
#[derive(Debug, Default)]
pub(super) struct Path {
    text: String,
    /// The length of `text` outside each field that was entered.
    outside: Vec<usize>,
}

impl Path {
    pub fn enter(&mut self, name: &str) {
        self.outside.push(self.text.len());
        if self.outside.len() > 1 {
            self.text.push('.');
        }
        self.text.push_str(name);
    }

    pub fn leave(&mut self) {
        let outside = self.outside.pop().expect("every leave follows its enter");
        self.text.truncate(outside);
    }

    pub fn as_str(&self) -> &str {
        &self.text
    }
}

/// Memory for one event at a time, reused from event to event: what an [`Event`] cannot borrow from its
/// source (strings with escapes, arrays, intervals) lives here.
#[derive(Debug, Default)]
pub struct Scratch {
    owned: Vec<Value>,
    /// The values of computed terms.
    computed: Vec<Value>,
    /// All strings of the event, if they are needed.
    strings: Vec<Value>,
    /// For each owned value, its place among the event's values.
    places: Vec<usize>,
    known: KnownFields,
    /// What each step from the event to the current field is known as.
    entered: Vec<KnownField>,
    /// Of JSON text; taken while one is being read.
    structure: Option<Box<Structure>>,
    /// How many values the last event had: a good guess for the next.
    last_len: usize,
    order: Order,
    /// An event that is of no interest any more, for its memory.
    spare: Event<'static>,
}

impl Scratch {
    /// An event without values, in the memory of the last one that was given to [`recycle`](Self::recycle).
    #[inline]
    pub fn spare<'t>(&mut self) -> Event<'t> {
        std::mem::take(&mut self.spare)
    }

    /// Keeps the memory of an event for the next.
    #[inline]
    pub fn recycle(&mut self, spare: Event<'_>) {
        self.spare = spare.recycled();
    }
}

/// Listens to a reader and keeps what some subscription uses: the fast way from a source to an [`Event`].
///
/// The event borrows from the source, and from the scratch what had to be made. It is built in the place of another one, whose
/// memory it uses: events are large enough that moving them about would count.
pub struct EventBuilder<'e, 't, 's, 'i> {
    terms: &'i Terms,
    schema: Option<&'i Schema>,
    scratch: &'s mut Scratch,
    event: &'e mut Event<'t>,
}

impl<'e, 't, 's, 'i> EventBuilder<'e, 't, 's, 'i> {
    /// With a schema, strings and numbers of attributes that are declared as timestamps become timestamps.
    #[inline]
    pub fn new(
        terms: &'i Terms,
        schema: Option<&'i Schema>,
        scratch: &'s mut Scratch,
        event: &'e mut Event<'t>,
    ) -> Self {
        scratch.known.prepare(terms);
        let mut builder = Self { terms, schema, scratch, event };
        builder.start_again();
        builder.event.values.reserve(builder.scratch.last_len);
        builder
    }

    /// Forgets what was read.
    #[inline]
    pub(super) fn start_again(&mut self) {
        self.event.clear();
        self.scratch.owned.clear();
        self.scratch.strings.clear();
        self.scratch.places.clear();
        self.scratch.entered.clear();
    }

    /// Memory for the tokens of a text, to be returned by [`return_structure`](Self::return_structure).
    #[inline]
    pub(super) fn take_structure(&mut self) -> Box<Structure> {
        self.scratch.structure.take().unwrap_or_default()
    }

    #[inline]
    pub(super) fn return_structure(&mut self, structure: Box<Structure>) {
        self.scratch.structure = (!structure.is_large()).then_some(structure);
    }

    /// Finishes the event, once everything is read; an error when an attribute was given twice. If the event borrows from the
    /// scratch too, it is returned; otherwise it is in its place.
    #[inline]
    pub fn finish(self) -> Result<Option<Event<'s>>, EventError>
    where
        't: 's,
    {
        if !self.is_borrowed() {
            return self.finish_made().map(Some);
        }
        sort(self.event, self.terms, &mut self.scratch.order)?;
        self.scratch.last_len = self.event.values.len();
        Ok(None)
    }

    /// Whether all values borrow from the source.
    #[inline]
    fn is_borrowed(&self) -> bool {
        let Self { terms, scratch, .. } = self;
        scratch.owned.is_empty() && !terms.adds_values()
    }

    fn finish_made(self) -> Result<Event<'s>, EventError>
    where
        't: 's,
    {
        let Self { terms, scratch, event, .. } = self;
        let read = event.values.len();
        let Scratch { owned, computed, strings, places, last_len, order, .. } = scratch;
        let mut event: Event<'s> = std::mem::take(event);
        for (place, value) in places.iter().zip(&*owned) {
            event.values[*place].1 = value.as_ref();
            event.has_intervals |= value.is_set();
        }
        event.values.extend(terms.strings().map(|id| (id, ValueRef::Array(strings))));
        sort(&mut event, terms, order)?;
        *last_len = read;
        terms.compute(&mut event.values, computed);
        Ok(event)
    }

    fn current(&self) -> Option<TermId> {
        self.scratch.entered.last().and_then(|field| self.scratch.known.attribute(*field))
    }
}

impl<'t> Fields<'t> for EventBuilder<'_, 't, '_, '_> {
    fn enter(&mut self, name: &str) -> Wanted {
        let Scratch { known, entered, .. } = &mut *self.scratch;
        let field = known.field(entered.last().copied(), name, self.terms);
        entered.push(field);
        known.wanted(field)
    }

    fn seen_field(&self) -> Option<SeenField> {
        match &self.scratch.entered[..] {
            [field] => self.scratch.known.seen(*field),
            _ => None,
        }
    }

    #[inline]
    fn enter_seen(&mut self, seen: SeenField) -> Option<Wanted> {
        let Scratch { known, entered, .. } = &mut *self.scratch;
        let field = known.enter_seen(seen)?;
        entered.push(field);
        Some(known.wanted(field))
    }

    #[inline]
    fn take_seen(&mut self, seen: SeenField, scalar: impl FnOnce() -> Option<ValueRef<'t>>) -> bool {
        let Some((wanted, attribute)) = self.scratch.known.wanted_of_seen(seen) else { return false };
        let Some(attribute) = attribute else { return !wanted.fields };
        // A schema reads some values as timestamps.
        if self.schema.is_some() {
            return false;
        }
        let Some(value) = scalar() else { return false };
        self.event.values.push((attribute, value));
        true
    }

    #[inline]
    fn enter_known(&mut self, name: &str) -> Option<Wanted> {
        let Scratch { known, entered, .. } = &mut *self.scratch;
        let (field, wanted) = known.field_of_before(entered.last().copied(), name)?;
        entered.push(field);
        Some(wanted)
    }

    #[inline(always)]
    fn enter_expected(&mut self, text: &[u8]) -> Option<(usize, Wanted)> {
        let Scratch { known, entered, .. } = &mut *self.scratch;
        let (field, bytes, wanted) = known.expected_field(entered.last().copied(), text)?;
        entered.push(field);
        Some((bytes, wanted))
    }

    #[inline(always)]
    fn pass_unwanted(&mut self, pass: impl FnMut(&Quoted) -> bool) {
        let Scratch { known, entered, .. } = &mut *self.scratch;
        known.pass_unwanted(entered.last().copied(), pass);
    }

    #[inline]
    fn leave(&mut self) {
        self.scratch.entered.pop();
    }

    fn path(&self) -> &str {
        self.scratch.entered.last().map_or("", |field| self.scratch.known.path(*field))
    }

    fn put(&mut self, mut value: ValueRef<'t>) {
        let Some(attribute) = self.current() else { return };
        if let Some(schema) = self.schema
            && let Some(micros) = schema.coerce_scalar(self.path(), value)
        {
            value = ValueRef::Timestamp(micros);
        }
        self.event.has_intervals |= value.is_set();
        self.event.values.push((attribute, value));
    }

    fn put_owned(&mut self, mut value: Value) {
        let Some(attribute) = self.current() else { return };
        if let Some(schema) = self.schema {
            schema.coerce_value(self.path(), &mut value);
        }
        self.scratch.places.push(self.event.values.len());
        self.scratch.owned.push(value);
        self.event.values.push((attribute, ValueRef::Null));
    }

    fn put_unreadable(&mut self, error: EventError) {
        if self.current().is_some() {
            self.event.unreadable.push(error);
        }
    }

    fn put_weight(&mut self, attribute: &str, weight: f64) -> Result<(), EventError> {
        check_weight(attribute, weight)?;
        if let Some(attribute) = self.terms.named(attribute) {
            self.event.weights.push((attribute, weight));
        }
        Ok(())
    }

    fn wants_strings(&self) -> bool {
        self.terms.strings().is_some()
    }

    fn put_string(&mut self, string: Value) {
        self.scratch.strings.push(string);
    }
}

/// Brings the values of an event into the order of their attributes, without nulls.
#[inline]
fn sort<'t>(event: &mut Event<'t>, terms: &Terms, order: &mut Order) -> Result<(), EventError> {
    let Event { values, weights, .. } = event;
    let (mut is_sorted, mut has_nulls, mut least) = (true, false, 0);
    for (attribute, value) in &*values {
        is_sorted &= attribute.0 >= least;
        least = attribute.0 + 1;
        has_nulls |= matches!(value, ValueRef::Null);
    }
    if !is_sorted && !order.sort(values) {
        sort_and_check(values, terms)?;
    }
    if has_nulls {
        values.retain(|(_, value)| !matches!(value, ValueRef::Null));
    }
    if weights.is_empty() { Ok(()) } else { sort_weights(weights, terms) }
}

#[cold]
fn sort_and_check(values: &mut [(TermId, ValueRef<'_>)], terms: &Terms) -> Result<(), EventError> {
    values.sort_unstable_by_key(|(attribute, _)| *attribute);
    match values.windows(2).find(|pair| pair[0].0 == pair[1].0) {
        Some(twice) => Err(given_twice("a value", terms.name(twice[0].0))),
        None => Ok(()),
    }
}

#[cold]
fn sort_weights(weights: &mut [(TermId, f64)], terms: &Terms) -> Result<(), EventError> {
    weights.sort_unstable_by_key(|(attribute, _)| *attribute);
    match weights.windows(2).find(|pair| pair[0].0 == pair[1].0) {
        Some(twice) => Err(given_twice("a weight", terms.name(twice[0].0))),
        None => Ok(()),
    }
}
