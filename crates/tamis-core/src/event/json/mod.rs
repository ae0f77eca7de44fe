//! Events as JSON text.
//!
//! An event is a JSON object. Numbers without fraction and exponent are integers of 64 bits; all others are
//! floats, rounded to the nearest, except that a number with more than 17 digits is exact. Objects are nested
//! records and become dotted paths. Arrays hold scalars of one kind, or records, and nulls; arrays of arrays
//! are present but compare with nothing. An integer of more than 64 bits, a number beyond every float and an
//! array of mixed kinds are *unreadable*: their attribute is absent, and the event says so. A duplicate name
//! is an error. Values that JSON lacks are objects with one name that starts with a dollar sign:
//!
//! | JSON | value |
//! |---|---|
//! | `{"$timestamp": "2026-01-31T12:00:00Z"}` | a timestamp |
//! | `{"$interval": [20, 30]}` | a closed interval |
//! | `{"$float": "NaN"}`, `"Infinity"`, `"-Infinity"` | the floats JSON lacks |
//! | `{"$decimal": "12345678901234567.89"}` | a number, exactly |
//! | `{"$event": {…}, "$weights": {"age": 0.6}}` | at the top: an event with weights |
//!
//! Fields that no subscription uses are skipped: their syntax is checked, their values are not.

mod lines;
mod write;

#[cfg(test)]
mod tests;

use std::borrow::Cow;

use super::error::EventError;
pub use super::error::MAX_DEPTH;
use super::fields::{EventBuilder, Fields, Scratch, Wanted};
use super::record::{Record, RecordBuilder};
use super::timestamp::parse_timestamp;
use super::{Event, Schema, Terms, Value, ValueRef};
use crate::json::TextPlace;
use crate::json::cursor::{ByteCursor, Cursor, Fault};
pub use crate::json::structure::Skipped;
use crate::json::token_cursor::TokenCursor;

pub use lines::JsonLines;
pub use write::write;

/// Reads what an index needs of an event, straight from the text.
///
/// Strings without escapes are borrowed from `json`; the rest lives in `scratch`. With a schema, strings
/// of attributes that are declared as timestamps become timestamps.
///
/// ```
/// use tamis_core::event::{json, Terms, Scratch};
/// let mut terms = Terms::default();
/// let age = terms.intern("person.age");
/// let mut scratch = Scratch::default();
/// let text = br#"{"person": {"age": 27, "name": "Ada"}}"#;
/// let event = json::read(text, &terms, None, &mut scratch).unwrap();
/// assert_eq!(event.values.len(), 1);
/// assert_eq!(event.get(age).unwrap().to_owned(), tamis_core::event::Value::Int(27));
/// ```
pub fn read<'a>(
    json: &'a [u8],
    terms: &Terms,
    schema: Option<&Schema>,
    scratch: &'a mut Scratch,
) -> Result<Event<'a>, EventError> {
    read_with(json, terms, schema, scratch, Skipped::Checked)
}

/// Shorter texts are read byte by byte: one block of a scan costs more.
const SHORT: usize = if cfg!(any(test, feature = "testing")) { 4 } else { 64 };

/// As [`read`], and says how much is checked of what no subscription asks for.
///
/// The text is scanned in blocks first, and only what is asked for is read. A text in which something is wrong is read
/// once more, byte by byte, to say what and where.
///
/// ```
/// use tamis_core::event::{json, Scratch, Terms};
/// let (terms, mut scratch) = (Terms::default(), Scratch::default());
/// let text = br#"{"unused": 01}"#;
/// assert!(json::read_with(text, &terms, None, &mut scratch, json::Skipped::Checked).is_err());
/// ```
pub fn read_with<'a>(
    json: &'a [u8],
    terms: &Terms,
    schema: Option<&Schema>,
    scratch: &'a mut Scratch,
    skipped: Skipped,
) -> Result<Event<'a>, EventError> {
    let mut event = scratch.spare();
    let made = read_into(json, terms, schema, scratch, skipped, &mut event)?;
    Ok(made.unwrap_or(event))
}

/// As [`read_with`], in the place of another event, whose memory is used. Returns the event if it borrows from the scratch too.
///
/// ```
/// use tamis_core::event::{Event, Scratch, Terms, ValueRef, json};
/// let mut terms = Terms::default();
/// terms.intern("age");
/// let (mut event, mut scratch) = (Event::default(), Scratch::default());
/// let checked = json::Skipped::Checked;
/// assert!(json::read_into(br#"{"age": 27}"#, &terms, None, &mut scratch, checked, &mut event).unwrap().is_none());
/// assert!(matches!(event.values[0].1, ValueRef::Int(27)));
/// ```
pub fn read_into<'t, 's>(
    json: &'t [u8],
    terms: &Terms,
    schema: Option<&Schema>,
    scratch: &'s mut Scratch,
    skipped: Skipped,
    event: &mut Event<'t>,
) -> Result<Option<Event<'s>>, EventError>
where
    't: 's,
{
    let mut builder = EventBuilder::new(terms, schema, scratch, event);
    read_fields(json, &mut builder, skipped)?;
    builder.finish()
}

fn read_fields<'t>(
    json: &'t [u8],
    builder: &mut EventBuilder<'_, 't, '_, '_>,
    skipped: Skipped,
) -> Result<(), EventError> {
    if json.len() < SHORT && skipped == Skipped::Checked {
        return walk(json, builder);
    }
    let mut structure = builder.take_structure();
    let is_read = match structure.scan(json, skipped) {
        Some(text) => {
            let has_escapes = structure.has_escapes();
            match skipped {
                Skipped::Checked => {
                    let tokens = structure.gathered(text);
                    Reader::is_read(TokenCursor::new(text, tokens, skipped, has_escapes), builder)
                }
                Skipped::Unchecked => {
                    let tokens = structure.marked(text);
                    Reader::is_read(TokenCursor::new(text, tokens, skipped, has_escapes), builder)
                }
            }
        }
        None => false,
    };
    builder.return_structure(structure);
    if is_read {
        return Ok(());
    }
    builder.start_again();
    walk(json, builder)
}

/// Reads a whole event.
///
/// ```
/// use tamis_core::event::{json, Value};
/// let record = json::read_record(br#"{"address": {"city": "Geneva"}}"#).unwrap();
/// assert_eq!(record.get("address.city"), Some(&Value::Str("Geneva".into())));
/// assert_eq!(record.get("address"), Some(&Value::Record));
/// ```
pub fn read_record(json: &[u8]) -> Result<Record, EventError> {
    let mut builder = RecordBuilder::default();
    walk(json, &mut builder)?;
    builder.finish()
}

/// Reads an event and tells its fields to whoever listens.
pub fn walk<'a>(json: &'a [u8], fields: &mut impl Fields<'a>) -> Result<(), EventError> {
    let text = std::str::from_utf8(json).map_err(|error| {
        let valid = std::str::from_utf8(&json[..error.valid_up_to()]).unwrap_or("");
        let place = Some(TextPlace::of(valid, valid.len()));
        EventError { place, ..EventError::new("the text is not UTF-8") }
    })?;
    let mut reader = Reader { cursor: ByteCursor::new(text), fields, depth: 0 };
    reader.document().map_err(|fault| fault.into_error(text, reader.fields.path()))
}

impl Fault {
    /// As what is wrong with a field of an event that is written as this text.
    fn into_error(self, text: &str, path: &str) -> EventError {
        let Fault { at, message, hint } = self;
        let place = Some(TextPlace::of(text, at));
        EventError { place, hint: hint.map(str::to_string), ..EventError::new(message) }.at_path(path)
    }
}

const ENVELOPE_HINT: &str =
    "an event with weights is {\"$event\": {…}, \"$weights\": {\"age\": 0.6}} and nothing else";
const NO_NAN_HINT: &str = "JSON has no NaN: write null, or {\"$float\": \"NaN\"}";
const NO_INFINITY_HINT: &str = "JSON has no Infinity: write {\"$float\": \"Infinity\"}";
const ONE_KIND_HINT: &str = "send numbers as numbers and text as text, or as two arrays";
const FILE_HINT: &str =
    "a string is JSON text; for a file, give what is in it: its text, or a table that was read from it";
const ONLY_NAME_HINT: &str = "an object with such a name is a value and must have no other name";

/// Whether a text that is not JSON is probably the path of a file: one word with an extension.
fn is_file_name(text: &str) -> bool {
    let is_extension =
        |end: &str| (1..=8).contains(&end.len()) && end.bytes().all(|byte| byte.is_ascii_alphanumeric());
    let is_word = !text.trim().contains([' ', '\n', '"', '{', '}']);
    is_word && text.trim().rsplit_once('.').is_some_and(|(_, end)| is_extension(end))
}

/// The names that make an object a value instead of a record.
#[derive(Clone, Copy)]
enum Marker {
    Timestamp,
    Interval,
    Where,
    Float,
    Decimal,
}

impl Marker {
    fn named(name: &str) -> Option<Self> {
        match name {
            "$timestamp" => Some(Marker::Timestamp),
            "$interval" => Some(Marker::Interval),
            "$where" => Some(Marker::Where),
            "$float" => Some(Marker::Float),
            "$decimal" => Some(Marker::Decimal),
            _ => None,
        }
    }
}

struct Reader<'f, F, C> {
    cursor: C,
    fields: &'f mut F,
    depth: usize,
}

impl<'f, 'a, F: Fields<'a>, C: Cursor<'a>> Reader<'f, F, C> {
    /// Reads an event; whether nothing is wrong with it.
    fn is_read(cursor: C, fields: &'f mut F) -> bool {
        Self { cursor, fields, depth: 0 }.document().is_ok()
    }

    fn document(&mut self) -> Result<(), Fault> {
        match self.cursor.peek() {
            Some(b'{') => {}
            Some(b'[' | b'"' | b'-' | b'0'..=b'9' | b't' | b'f' | b'n') => {
                return Err(Fault::new(self.cursor.at(), "an event must be a JSON object").with_hint(
                    "events are written {\"age\": 27, \"country\": \"CA\"}; read many of them one by one",
                ));
            }
            _ => {
                let fault = self.cursor.unexpected("a JSON object");
                let is_file = is_file_name(self.cursor.text());
                return Err(if is_file { fault.with_hint(FILE_HINT) } else { fault });
            }
        }
        match self.first_name()?.as_deref() {
            Some("$event" | "$weights") => self.envelope()?,
            _ => self.record()?,
        }
        match self.cursor.peek() {
            None => Ok(()),
            Some(_) => Err(Fault::new(self.cursor.at(), "there is more text after the event")
                .with_hint("read several events one by one")),
        }
    }

    /// The first name of the object that starts here, if it may be one with a dollar; nothing is consumed.
    #[inline]
    fn first_name(&mut self) -> Result<Option<Cow<'a, str>>, Fault> {
        if !self.cursor.may_open_marker() {
            return Ok(None);
        }
        let mut ahead = self.cursor.clone();
        ahead.expect(b'{', "an object")?;
        ahead.string().map(Some)
    }

    /// Reads an object; `member` reads each name and its value, from the quote on, and says whether the object ended.
    #[inline]
    fn object(&mut self, mut member: impl FnMut(&mut Self) -> Result<bool, Fault>) -> Result<(), Fault> {
        self.cursor.expect(b'{', "an object")?;
        if self.cursor.take(b'}') {
            return Ok(());
        }
        loop {
            if self.cursor.peek() != Some(b'"') {
                return Err(self.cursor.unexpected("a name in quotes"));
            }
            if member(self)? || self.cursor.take(b'}') {
                return Ok(());
            }
            self.cursor.expect(b',', "`,` or `}`")?;
        }
    }

    /// A name, with its colon, and where it stands.
    fn name(&mut self) -> Result<(Cow<'a, str>, usize), Fault> {
        let at = self.cursor.at();
        let name = self.cursor.string()?;
        self.cursor.after_name(0)?;
        Ok((name, at))
    }

    fn envelope(&mut self) -> Result<(), Fault> {
        let (mut has_event, mut has_weights) = (false, false);
        let start = self.cursor.at();
        self.object(|reader| {
            let (name, at) = reader.name()?;
            let seen = match &*name {
                "$event" => &mut has_event,
                "$weights" => &mut has_weights,
                _ => return Err(Fault::new(at, format!("unexpected name {name:?}")).with_hint(ENVELOPE_HINT)),
            };
            if std::mem::replace(seen, true) {
                return Err(Fault::new(at, format!("the name {name:?} is given twice")));
            }
            if &*name == "$event" {
                reader.record()?
            } else {
                reader.weights()?
            }
            Ok(false)
        })?;
        if has_event {
            Ok(())
        } else {
            Err(Fault::new(start, "`$event` is missing").with_hint(ENVELOPE_HINT))
        }
    }

    fn weights(&mut self) -> Result<(), Fault> {
        self.object(|reader| {
            let (name, _) = reader.name()?;
            let at = match reader.cursor.peek() {
                Some(b'-' | b'0'..=b'9') => reader.cursor.at(),
                _ => return Err(reader.cursor.unexpected("a number as the weight")),
            };
            let weight = reader.cursor.number()?.as_ref().nearest_float().expect("it is a number");
            let put = reader.fields.put_weight(&name, weight);
            put.map_err(|error| Fault::new(at, format!("{} (of `{name}`)", error.message)))?;
            Ok(false)
        })
    }

    /// Reads the fields of a record, the event itself included.
    fn record(&mut self) -> Result<(), Fault> {
        self.check_level(self.depth)?;
        let strings = match self.depth == 0 && self.fields.wants_strings() {
            true => self.all_strings(),
            false => Ok(()),
        };
        self.depth += 1;
        self.object(|reader| {
            // Most fields are where they were in the events before, and nobody wants them.
            let Self { cursor, fields, .. } = reader;
            fields.pass_unwanted(|name| cursor.pass_member(|text| name.begins(text)));
            if cursor.take(b'}') {
                return Ok(true);
            }
            reader.field()?;
            Ok(false)
        })?;
        self.depth -= 1;
        // A fault that reading the fields finds too is told with its path.
        strings
    }

    /// Reads a field of a record.
    fn field(&mut self) -> Result<(), Fault> {
        let wanted = if let Some((bytes, wanted)) = self.fields.enter_expected(self.cursor.rest()) {
            // Without a colon it is not known that this is a field.
            self.cursor.after_name(bytes).inspect_err(|_| self.fields.leave())?;
            wanted
        } else if let Some(name) = self.cursor.plain_name()
            && !name.starts_with('$')
            && let Some(wanted) = self.fields.enter_known(name)
        {
            self.cursor.after_name(name.len() + "\"\"".len()).inspect_err(|_| self.fields.leave())?;
            wanted
        } else {
            let (name, at) = self.name()?;
            if name.starts_with('$') {
                self.refuse_misplaced(&name, at)?;
            }
            self.fields.enter(&name)
        };
        self.value(wanted)?;
        self.fields.leave();
        Ok(())
    }

    /// Refuses a list or a record, which starts here, inside too many others.
    fn check_level(&self, level: usize) -> Result<(), Fault> {
        match level > MAX_DEPTH {
            true => Err(Fault::new(self.cursor.at(), EventError::too_deep().message)),
            false => Ok(()),
        }
    }

    /// Gives every string of the value that starts here, also of what no attribute could have as its value. Nothing is
    /// consumed.
    fn all_strings(&mut self) -> Result<(), Fault> {
        let start = self.cursor.clone();
        let mut strings = vec![];
        let read = self.strings_of_value(self.depth, &mut strings);
        strings.into_iter().for_each(|string| self.fields.put_string(string));
        self.cursor = start;
        read
    }

    /// Adds the strings of a value inside that many lists and records.
    fn strings_of_value(&mut self, level: usize, strings: &mut Vec<Value>) -> Result<(), Fault> {
        // The brackets that will close what is open.
        let mut open = vec![];
        loop {
            match self.cursor.peek() {
                Some(b'"') => strings.push(Value::Str(self.cursor.string()?.into())),
                Some(b'{') => match self.first_name()?.as_deref().and_then(Marker::named) {
                    Some(marker) => {
                        let start = self.cursor.clone();
                        match self.marked(marker) {
                            Ok(Ok(value)) => {
                                value.for_each_string(&mut |string| strings.push(string.clone()))
                            }
                            Ok(Err(_)) => {} // no value can hold it
                            // Whoever asks for the attribute hears of it.
                            Err(_) => {
                                self.cursor = start;
                                self.cursor.skip()?;
                            }
                        }
                    }
                    None => {
                        self.check_level(level + open.len())?;
                        self.cursor.expect(b'{', "an object")?;
                        if !self.cursor.take(b'}') {
                            open.push(b'}');
                            self.name()?;
                            continue;
                        }
                    }
                },
                Some(b'[') => {
                    self.check_level(level + open.len())?;
                    self.cursor.expect(b'[', "an array")?;
                    if !self.cursor.take(b']') {
                        open.push(b']');
                        continue;
                    }
                }
                _ => self.cursor.skip()?,
            }
            loop {
                let Some(&close) = open.last() else { return Ok(()) };
                if !self.cursor.take(close) {
                    self.cursor.expect(b',', "`,`, `]` or `}`")?;
                    if close == b'}' {
                        self.cursor.peek();
                        self.name()?;
                    }
                    break;
                }
                open.pop();
            }
        }
    }

    /// Names with a dollar that mean something, but not here.
    fn refuse_misplaced(&self, name: &str, at: usize) -> Result<(), Fault> {
        if matches!(name, "$event" | "$weights") {
            return Err(Fault::new(at, format!("`{name}` cannot stand here")).with_hint(ENVELOPE_HINT));
        }
        match Marker::named(name) {
            Some(_) => Err(Fault::new(at, format!("`{name}` cannot stand here")).with_hint(ONLY_NAME_HINT)),
            None => Ok(()),
        }
    }

    fn value(&mut self, wanted: Wanted) -> Result<(), Fault> {
        let first = self.cursor.peek();
        if first == Some(b'{') {
            return self.nested(wanted);
        }
        if !wanted.value {
            return self.cursor.skip();
        }
        match first {
            Some(b'"') => match self.cursor.string()? {
                Cow::Borrowed(text) => self.fields.put(ValueRef::Str(text)),
                Cow::Owned(text) => self.fields.put_owned(Value::Str(text.into())),
            },
            Some(b'-' | b'0'..=b'9') => match self.cursor.numeral()? {
                Ok(Value::Int(i)) => self.fields.put(ValueRef::Int(i)),
                Ok(Value::Float(x)) => self.fields.put(ValueRef::Float(x)),
                Ok(decimal) => self.fields.put_owned(decimal),
                Err(fault) => self.unreadable(fault),
            },
            Some(b'[') => {
                let at = self.cursor.at();
                let start = self.fields.keeps_nested().then(|| self.cursor.clone());
                let array = self.items()?.and_then(|items| {
                    Value::array(items).map_err(|wrong| Fault::new(at, wrong).with_hint(ONE_KIND_HINT))
                });
                if let (Err(_), Some(start)) = (&array, start) {
                    self.cursor = start;
                    let mut strings = vec![];
                    self.strings_of_value(self.depth, &mut strings)?;
                    strings.into_iter().for_each(|string| self.fields.put_string(string));
                }
                self.put_or_refuse(array);
            }
            _ => match self.word()? {
                Some(truth) => self.fields.put(ValueRef::Bool(truth)),
                None => self.fields.put(ValueRef::Null),
            },
        }
        Ok(())
    }

    fn put_or_refuse(&mut self, value: Result<Value, Fault>) {
        match value {
            Ok(value) => self.fields.put_owned(value),
            Err(fault) => self.unreadable(fault),
        }
    }

    /// What stands here is JSON, and no value can hold it.
    fn unreadable(&mut self, fault: Fault) {
        let error = fault.into_error(self.cursor.text(), self.fields.path());
        self.fields.put_unreadable(error);
    }

    /// `None` for null.
    fn word(&mut self) -> Result<Option<bool>, Fault> {
        match self.cursor.peek() {
            Some(b't') => self.cursor.word("true").map(|()| Some(true)),
            Some(b'f') => self.cursor.word("false").map(|()| Some(false)),
            Some(b'n') => self.cursor.word("null").map(|()| None),
            Some(b'N') => Err(self.cursor.unexpected("a value").with_hint(NO_NAN_HINT)),
            Some(b'I') => Err(self.cursor.unexpected("a value").with_hint(NO_INFINITY_HINT)),
            _ => Err(self.cursor.unexpected("a value")),
        }
    }

    /// An object inside an event: a record, or a value that JSON lacks.
    fn nested(&mut self, wanted: Wanted) -> Result<(), Fault> {
        if !wanted.value && !wanted.fields {
            return self.cursor.skip();
        }
        if let Some(marker) = self.first_name()?.as_deref().and_then(Marker::named) {
            let value = self.marked(marker)?;
            self.put_or_refuse(value);
            return Ok(());
        }
        if wanted.value {
            self.fields.put(ValueRef::Record);
        }
        if wanted.fields { self.record() } else { self.cursor.skip() }
    }

    /// `{"$timestamp": …}`, `{"$interval": …}`, `{"$where": …}`, `{"$float": …}` or `{"$decimal": …}`.
    fn marked(&mut self, marker: Marker) -> Result<Result<Value, Fault>, Fault> {
        self.cursor.expect(b'{', "an object")?;
        self.name()?;
        self.cursor.peek();
        let at = self.cursor.at();
        let value =
            match marker {
                Marker::Timestamp => {
                    let text = self.cursor.string()?;
                    let micros = parse_timestamp(&text).ok_or_else(|| {
                        Fault::new(at, format!("{text:?} is no timestamp"))
                            .with_hint("timestamps are written \"2026-01-31T12:00:00Z\"")
                    })?;
                    Ok(Value::Timestamp(micros))
                }
                Marker::Float => match &*self.cursor.string()? {
                    "NaN" => Ok(Value::Float(f64::NAN)),
                    "Infinity" => Ok(Value::Float(f64::INFINITY)),
                    "-Infinity" => Ok(Value::Float(f64::NEG_INFINITY)),
                    other => {
                        return Err(Fault::new(at, format!("{other:?} is no such float"))
                            .with_hint("a float in quotes is \"NaN\", \"Infinity\" or \"-Infinity\""));
                    }
                },
                Marker::Decimal => {
                    let text = self.cursor.string()?;
                    Value::decimal(&text).map_err(|refused| {
                        Fault::new(at, format!("{text:?} is no decimal: {refused}"))
                            .with_hint("decimals are written {\"$decimal\": \"12345678901234567.89\"}")
                    })
                }
                Marker::Where => {
                    let text = self.cursor.string()?;
                    Ok(Value::satisfying_text(&text).map_err(|wrong| {
                        Fault::new(at, wrong.message)
                            .with_hint("a set of values is written {\"$where\": \"> 15\"}")
                    })?)
                }
                Marker::Interval => {
                    let hint = "intervals are written {\"$interval\": [20, 30]}";
                    match self.items()?.map(<[Value; 2]>::try_from) {
                        Err(unreadable) => Err(unreadable),
                        Ok(Err(ends)) => {
                            let message = format!("an interval has two ends, not {}", ends.len());
                            return Err(Fault::new(at, message).with_hint(hint));
                        }
                        Ok(Ok([low, high])) => Ok(Value::interval(low, high)
                            .map_err(|wrong| Fault::new(at, wrong).with_hint(hint))?),
                    }
                }
            };
        match self.cursor.peek() {
            Some(b',') => Err(Fault::new(self.cursor.at(), "another name follows").with_hint(ONLY_NAME_HINT)),
            _ => self.cursor.expect(b'}', "`}`").map(|()| value),
        }
    }

    /// A record that is an element of an array.
    fn element(&mut self) -> Result<Value, Fault> {
        let at = self.cursor.at();
        let mut fields = RecordBuilder::default();
        let mut reader = Reader { cursor: self.cursor.clone(), fields: &mut fields, depth: self.depth + 1 };
        reader.record()?;
        self.cursor = reader.cursor;
        let record = fields.finish().map_err(|error| Fault::new(at, error.to_string()))?;
        let (element, unreadable, strings) = record.into_element();
        for error in unreadable {
            let inner = error.path.as_deref().unwrap_or_default();
            let path = format!("{}.{inner}", self.fields.path());
            self.fields.put_unreadable(error.at_path(&path));
        }
        if self.fields.keeps_nested() {
            strings.into_iter().for_each(|string| self.fields.put_string(string));
        }
        Ok(element)
    }

    /// The elements of an array, or why no value can hold one of them. Of arrays nested in them at most the strings are kept, as
    /// nothing can compare with them.
    fn items(&mut self) -> Result<Result<Vec<Value>, Fault>, Fault> {
        self.check_level(self.depth)?;
        self.cursor.expect(b'[', "an array")?;
        let mut items = Vec::new();
        if self.cursor.take(b']') {
            return Ok(Ok(items));
        }
        let mut unreadable = None;
        let mut readable = |value: Result<Value, Fault>| {
            value.unwrap_or_else(|fault| {
                unreadable.get_or_insert(fault);
                Value::Null
            })
        };
        loop {
            items.push(match self.cursor.peek() {
                Some(b'"') => Value::Str(self.cursor.string()?.into()),
                Some(b'-' | b'0'..=b'9') => readable(self.cursor.numeral()?),
                Some(b'[') => {
                    let mut strings = vec![];
                    self.strings_of_value(self.depth + 1, &mut strings)?;
                    if !self.fields.keeps_nested() {
                        strings.clear();
                    }
                    Value::Array(strings)
                }
                Some(b'{') => match self.first_name()?.as_deref().and_then(Marker::named) {
                    // An interval has no place in an array, and reading it would recurse.
                    Some(Marker::Interval | Marker::Where) => {
                        return Err(Fault::new(self.cursor.at(), "an array cannot hold an interval"));
                    }
                    Some(marker) => readable(self.marked(marker)?),
                    None => self.element()?,
                },
                _ => self.word()?.map_or(Value::Null, Value::Bool),
            });
            if self.cursor.take(b']') {
                return Ok(unreadable.map_or(Ok(items), Err));
            }
            self.cursor.expect(b',', "`,` or `]`")?;
        }
    }
}
