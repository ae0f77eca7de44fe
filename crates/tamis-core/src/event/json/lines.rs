//! JSON lines as many events, each parsed by the thread that matches it.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::OnceLock;

use super::{Reader, Skipped, read_fields, read_into};
use crate::event::fields::EventBuilder;
use crate::event::{Event, EventError, EventSource, Schema, Scratch, Terms, Unreadable, Value, ValueRef};
use crate::fork::{Mutex, get_or_init};
use crate::json::TextPlace;
use crate::json::structure::Structure;
use crate::json::token_cursor::TokenCursor;

/// Lines are scanned together up to so many bytes: enough for what a scan costs before its first byte, and few enough for the
/// nearest caches.
const SCANNED_TOGETHER: usize = if cfg!(any(test, feature = "testing")) { 256 } else { 1 << 14 };

/// The lines of a text that are not empty, as events of one index.
///
/// Nothing is read before it is asked for. A line that cannot be read is an event without values, and
/// [`fault`](Self::fault) tells of the first.
///
/// ```
/// use tamis_core::event::{Terms, Event, EventSource, json};
/// let mut attributes = Terms::default();
/// let age = attributes.intern("age");
/// let lines = json::JsonLines::new(b"{\"age\": 27}\n\n{\"age\": 30}\n", &attributes, None, json::Skipped::Checked);
/// let mut event = Event::default();
/// lines.fill(1, &mut event);
/// assert_eq!(event.get(age).unwrap().to_owned(), tamis_core::event::Value::Int(30));
/// assert!(lines.len() == 2 && lines.fault().is_none());
/// ```
pub struct JsonLines<'t> {
    text: &'t [u8],
    attributes: &'t Terms,
    schema: Option<&'t Schema>,
    skipped: Skipped,
    lines: Vec<Range<usize>>,
    /// By line, values that are not in the text as they are: strings with escapes, arrays, decimals. Most texts have none.
    made: OnceLock<Box<[Made]>>,
    /// How many lines of the file come before the text.
    lines_before: usize,
    /// Whether the lines are the events of a list, which are known by their rows.
    are_rows: bool,
    fault: Mutex<Option<(usize, EventError)>>,
    /// By row, what no value can hold.
    unreadable: Mutex<BTreeMap<usize, Unreadable>>,
}

type Made = OnceLock<Box<[Value]>>;

/// What a thread reads lines with.
#[derive(Default)]
struct LineMemory {
    scratch: Scratch,
    /// The tokens of lines that are scanned together.
    structure: Structure,
    /// An event that is of no interest any more, for its memory.
    spare: Event<'static>,
}

thread_local! {
    /// Taken while in use.
    static MEMORY: Cell<Option<Box<LineMemory>>> = const { Cell::new(None) };
}

impl<'t> JsonLines<'t> {
    pub fn new(text: &'t [u8], attributes: &'t Terms, schema: Option<&'t Schema>, skipped: Skipped) -> Self {
        let mut lines = vec![];
        let mut start = 0;
        for end in memchr::memchr_iter(b'\n', text).chain([text.len()]) {
            if !text[start..end].trim_ascii_start().is_empty() {
                lines.push(start..end);
            }
            start = end + 1;
        }
        Self {
            text,
            attributes,
            schema,
            skipped,
            lines,
            made: OnceLock::new(),
            lines_before: 0,
            are_rows: false,
            fault: Mutex::new(None),
            unreadable: Mutex::default(),
        }
    }

    /// For a text that is a part of a file: this many lines come before it, and faults say where in the file they are.
    pub fn after_lines(self, lines_before: usize) -> Self {
        Self { lines_before, ..self }
    }

    /// For the events of a list, put side by side as lines: faults name their rows instead of lines.
    ///
    /// ```
    /// use tamis_core::event::{Event, EventSource, Terms, json};
    /// let terms = Terms::default();
    /// let listed = json::JsonLines::new(b"{}\n{\n", &terms, None, json::Skipped::Checked).of_rows();
    /// listed.fill(1, &mut Event::default());
    /// let fault = listed.fault().unwrap();
    /// assert_eq!((fault.row, fault.place.unwrap().line), (Some(1), 1));
    /// ```
    pub fn of_rows(self) -> Self {
        Self { are_rows: true, ..self }
    }

    /// What is wrong with the first line that could not be read, of those that were asked for.
    pub fn fault(&self) -> Option<EventError> {
        self.fault.lock().as_ref().map(|(_, error)| error.clone())
    }

    /// Where values of a line are kept.
    fn made(&self, row: usize) -> &Made {
        &get_or_init(&self.made, || self.lines.iter().map(|_| Made::new()).collect())[row]
    }

    /// As many lines from the first of some on as are scanned together, and where they are.
    fn together(&self, rows: Range<usize>) -> (Range<usize>, Range<usize>) {
        let start = self.lines[rows.start].start;
        let fits = |row: &usize| self.lines[*row].end - start <= SCANNED_TOGETHER;
        let more = (rows.start + 1..rows.end).take_while(fits).count();
        (rows.start..rows.start + 1 + more, start..self.lines[rows.start + more].end)
    }

    /// Reads a line that was scanned with others, or by itself.
    fn fill_from<'a>(
        &'a self,
        row: usize,
        scanned: Option<LineOf<'a, '_>>,
        memory: (&mut Scratch, &mut Event<'static>),
        event: &mut Event<'a>,
    ) {
        let (scratch, spare) = memory;
        let line = &self.text[self.lines[row].clone()];
        let read = match scanned {
            Some(scanned) => read_line(scanned, self.attributes, self.schema, scratch, self.skipped, event),
            None => read_into(line, self.attributes, self.schema, scratch, self.skipped, event),
        };
        match read {
            Ok(None) => {}
            Ok(Some(mut read)) => {
                // Whatever looks into the strings has found what it looks for, unless matches are verified.
                let passing = self.attributes.passing_strings().filter(|_| !read.has_intervals);
                if passing.is_some() {
                    read.values.retain(|(attribute, _)| passing != Some(*attribute));
                }
                *event = std::mem::take(spare);
                outlive(&read, line, || self.made(row), event);
                *spare = read.recycled();
            }
            Err(error) => {
                *event = Event::default(); // a line that is refused may have been large
                self.note(row, error);
            }
        }
        if !event.unreadable.is_empty() {
            self.unreadable.lock().insert(row, Unreadable::from(&*event.unreadable));
        }
    }

    fn note(&self, row: usize, mut error: EventError) {
        let mut fault = self.fault.lock();
        if fault.as_ref().is_none_or(|(first, _)| row < *first) {
            self.put_line(row, &mut error);
            *fault = Some((row, error));
        }
    }

    /// Gives an error the number of its line in the whole text; column and byte stay those in the line. In a list, its row.
    fn put_line(&self, row: usize, error: &mut EventError) {
        if self.are_rows {
            error.row = Some(row);
            return;
        }
        // Some faults are those of the whole event; its line is known all the same.
        let place = error.place.get_or_insert(TextPlace { line: 1, column: 1, byte: 0 });
        let before = &self.text[..self.lines[row].start];
        let line = 1 + self.lines_before + memchr::memchr_iter(b'\n', before).count();
        place.line = u32::try_from(line).unwrap_or(u32::MAX);
    }
}

impl EventSource for JsonLines<'_> {
    fn len(&self) -> usize {
        self.lines.len()
    }

    fn fill<'a>(&'a self, row: usize, event: &mut Event<'a>) {
        let mut memory = MEMORY.take().unwrap_or_default();
        let LineMemory { scratch, spare, .. } = &mut *memory;
        self.fill_from(row, None, (scratch, spare), event);
        MEMORY.set(Some(memory));
    }

    fn fill_all<'a>(&'a self, mut rows: Range<usize>, mut events: &mut [Event<'a>]) {
        let mut memory = MEMORY.take().unwrap_or_default();
        let LineMemory { scratch, spare, structure } = &mut *memory;
        while !rows.is_empty() {
            let (now, place) = self.together(rows.clone());
            let text = &self.text[place.clone()];
            // What is wrong with one of them is for its own reader to find.
            let scanned =
                if now.len() > 1 { structure.scan_lines(text, now.len(), self.skipped) } else { None };
            let (filled, rest) = std::mem::take(&mut events).split_at_mut(now.len());
            for (number, (row, event)) in now.clone().zip(filled).enumerate() {
                let Range { start, end } = self.lines[row];
                let line = start - place.start..end - place.start;
                let scanned = scanned.map(|text| LineOf { text, structure, number, line });
                self.fill_from(row, scanned, (scratch, spare), event);
            }
            (rows.start, events) = (now.end, rest);
        }
        MEMORY.set(Some(memory));
    }

    fn unreadable(&self) -> Unreadable {
        let mut all = Unreadable::default();
        for (row, unreadable) in self.unreadable.lock().iter() {
            let mut unreadable = unreadable.clone();
            if let Some(first) = unreadable.first.as_mut().filter(|_| all.first.is_none()) {
                self.put_line(*row, first);
            }
            all.add(unreadable);
        }
        all
    }
}

/// One of several lines that were scanned together.
struct LineOf<'t, 's> {
    /// Of all lines.
    text: &'t str,
    structure: &'s Structure,
    number: usize,
    /// Where it is in the text.
    line: Range<usize>,
}

/// As [`read_into`], of a line that was scanned with others. If it cannot be read from what they found, it is read by itself.
fn read_line<'t, 's>(
    of: LineOf<'t, '_>,
    terms: &Terms,
    schema: Option<&Schema>,
    scratch: &'s mut Scratch,
    skipped: Skipped,
    event: &mut Event<'t>,
) -> Result<Option<Event<'s>>, EventError>
where
    't: 's,
{
    let LineOf { text, structure, number, line } = of;
    let mut builder = EventBuilder::new(terms, schema, scratch, event);
    let (all, text, has_escapes) = (text, &text[line.clone()], structure.has_escapes());
    let is_read = match skipped {
        Skipped::Checked => structure.gathered_line(number, line).is_some_and(|tokens| {
            Reader::is_read(TokenCursor::new(text, tokens, skipped, has_escapes), &mut builder)
        }),
        Skipped::Unchecked => structure.marked_line(all, line).is_some_and(|tokens| {
            Reader::is_read(TokenCursor::new(text, tokens, skipped, has_escapes), &mut builder)
        }),
    };
    if !is_read {
        builder.start_again();
        read_fields(text.as_bytes(), &mut builder, skipped)?;
    }
    builder.finish()
}

/// Puts an event that borrows from a thread's memory in the place of `event`, which is empty and borrows from the line and
/// from `made` alone.
fn outlive<'a>(read: &Event<'_>, line: &'a [u8], made: impl FnOnce() -> &'a Made, event: &mut Event<'a>) {
    let mut new = vec![];
    event.values.reserve_exact(read.values.len());
    for (attribute, value) in &read.values {
        let same = match *value {
            ValueRef::Bool(truth) => Some(ValueRef::Bool(truth)),
            ValueRef::Int(number) => Some(ValueRef::Int(number)),
            ValueRef::Float(number) => Some(ValueRef::Float(number)),
            ValueRef::Timestamp(micros) => Some(ValueRef::Timestamp(micros)),
            ValueRef::Record => Some(ValueRef::Record),
            ValueRef::Str(text) => within(line, text).map(ValueRef::Str),
            _ => None,
        };
        let value = same.unwrap_or_else(|| {
            new.push((event.values.len(), (*value).to_owned()));
            ValueRef::Null
        });
        event.values.push((*attribute, value));
    }
    if !new.is_empty() {
        let (places, values): (Vec<usize>, Vec<Value>) = new.into_iter().unzip();
        // Whoever was first made the same values, from the same line.
        let made = made().get_or_init(|| values.into());
        for (place, value) in places.into_iter().zip(made) {
            event.values[place].1 = value.as_ref();
        }
    }
    event.weights.extend_from_slice(&read.weights);
    event.has_intervals = read.has_intervals;
    event.unreadable.clone_from(&read.unreadable);
}

/// The part of a line that a text is, if it is one.
fn within<'a>(line: &'a [u8], text: &str) -> Option<&'a str> {
    let start = (text.as_ptr() as usize).checked_sub(line.as_ptr() as usize)?;
    std::str::from_utf8(line.get(start..start + text.len())?).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::event::json::read;

    fn attributes() -> Terms {
        let mut attributes = Terms::default();
        for name in ["plain", "escaped", "list", "exact", "when", "set", "a.b"] {
            attributes.intern(name);
        }
        attributes
    }

    fn owned(event: &Event<'_>) -> Vec<(u32, Value)> {
        event.values.iter().map(|(attribute, value)| (attribute.0, (*value).to_owned())).collect()
    }

    #[test]
    fn lines_are_read_as_single_events_are() {
        let lines = [
            r#"{"plain": "x", "escaped": "a\nb", "list": [1, 2], "exact": {"$decimal": "1.000000000000000000001"}}"#,
            r#"{"set": {"$interval": [1, 2]}, "when": {"$timestamp": "1970-01-01"}, "unused": "\u00e9"}"#,
            r#"{"$event": {"a": {"b": true}, "plain": 7, "list": ["\t", "y"]}, "$weights": {"plain": 2}}"#,
            r#"{}"#,
            "  {\"plain\": \"é\"}\r",
        ];
        let (attributes, mut scratch) = (attributes(), Scratch::default());
        let text = lines.join("\n\n \n");
        let source = JsonLines::new(text.as_bytes(), &attributes, None, Skipped::Checked);
        assert_eq!(source.len(), lines.len());
        let mut event = Event::default();
        // Backwards, and each twice.
        for row in [4, 3, 3, 2, 2, 1, 1, 0, 0] {
            source.fill(row, &mut event);
            let alone = read(lines[row].as_bytes(), &attributes, None, &mut scratch).expect(lines[row]);
            assert_eq!(owned(&event), owned(&alone));
            assert_eq!((&event.weights, event.has_intervals), (&alone.weights, alone.has_intervals));
        }
        assert_eq!(source.fault(), None);
    }

    #[test]
    fn the_first_fault_is_told_whatever_is_read_first() {
        let attributes = attributes();
        let text = b"{}\n{\"plain\": 1}\n\n{\"plain\": 01}\n{\"plain\": }\n{}";
        let source = JsonLines::new(text, &attributes, None, Skipped::Checked);
        let mut event = Event::default();
        for row in (0..source.len()).rev() {
            source.fill(row, &mut event);
            assert_eq!(event.values.len(), usize::from(row == 1));
        }
        let fault = source.fault().expect("two lines are wrong");
        assert!(fault.message.contains("must not start with 0"), "{fault}");
        assert_eq!(fault.place.map(|place| (place.line, place.column)), Some((4, 11)));
        let later = JsonLines::new(text, &attributes, None, Skipped::Checked).after_lines(100);
        (0..later.len()).for_each(|row| later.fill(row, &mut event));
        assert_eq!(later.fault().and_then(|fault| fault.place).map(|place| place.line), Some(104));
    }

    /// All that can be said of some lines, read one by one or together.
    fn everything(text: &[u8], skipped: Skipped, together: bool) -> impl PartialEq + std::fmt::Debug {
        let attributes = attributes();
        let lines = JsonLines::new(text, &attributes, None, skipped);
        let mut events = vec![Event::default(); lines.len()];
        for _ in 0..2 {
            match together {
                true => lines.fill_all(0..lines.len(), &mut events),
                false => events.iter_mut().enumerate().for_each(|(row, event)| lines.fill(row, event)),
            }
        }
        let read: Vec<_> = events
            .iter()
            .map(|event| {
                let unreadable: Vec<String> = event.unreadable.iter().map(ToString::to_string).collect();
                (owned(event), event.weights.clone(), event.has_intervals, unreadable)
            })
            .collect();
        let first = lines.unreadable().first.map(|error| error.to_string());
        (read, lines.fault().map(|error| error.to_string()), first)
    }

    const LINES: [&str; 34] = [
        r#"{"plain": "x", "list": [1, 2], "unused": {"deep": [[{}], -1.5e3]}}"#,
        r#"{"plain": 7, "escaped": "a\nb", "when": {"$timestamp": "1970-01-01"}}"#,
        r#"{"a": {"b": true, "c": null}, "set": {"$interval": [1, 2]}}"#,
        r#"{"plain": 99999999999999999999, "list": [1, "x"]}"#,
        r#"{"$event": {"plain": "é"}, "$weights": {"plain": 2}}"#,
        "{}",
        "  {\t\"plain\" : 1 } \r",
        "",
        " ",
        "\u{c}",
        // An object in two lines, two in one, and half of one.
        r#"{"plain": 1"#,
        r#", "list": [2]}"#,
        r#"{"plain": 1} {"plain": 2}"#,
        r#"{"plain": 1}{"plain": 2}"#,
        r#"{"plain": 1}{"unused": {"x": 2}"#,
        r#"} {"plain": 2}"#,
        "{",
        "}",
        "}{",
        // Brackets that another line would close.
        r#"{"unused": [{}"#,
        r#"{"plain": 3}]}"#,
        r#"{"list": [{"a": 1}"#,
        r#"{"plain": 4}], "plain": 5}"#,
        r#"{"unused": {"x": {}"#,
        r#"{"plain": 6}}"#,
        // Strings that another line would end.
        r#"{"unused": "x"#,
        r#"", "plain": 8}"#,
        r#"x" {"plain": 9}"#,
        r#"{"unused": "\"#,
        r#""plain": 1}"#,
        // Wrong by themselves.
        r#"{"plain": 01}"#,
        r#"{"plain": 1, "unused": tru}"#,
        r#"{"plain": 1, "plain": 2}"#,
        "[1]",
    ];

    proptest! {
        #[test]
        fn lines_are_read_together_as_they_are_one_by_one(
            lines in prop::collection::vec(0..2 * LINES.len(), 0..24), bad in 0usize..2000,
        ) {
            // Most are as they should be.
            let lines = lines.into_iter().map(|at| LINES.get(at).copied().unwrap_or(LINES[at % 6]));
            let mut text = lines.collect::<Vec<_>>().join("\n").into_bytes();
            if let Some(byte) = text.get_mut(bad) {
                *byte = 0xFF;
            }
            for skipped in [Skipped::Checked, Skipped::Unchecked] {
                let together = everything(&text, skipped, true);
                prop_assert_eq!(together, everything(&text, skipped, false), "{}", String::from_utf8_lossy(&text));
            }
        }
    }

    #[test]
    fn every_pair_of_lines_is_read_together_as_one_by_one() {
        for one in LINES {
            for two in LINES {
                let text = [LINES[0], one, two, LINES[1]].join("\n");
                for skipped in [Skipped::Checked, Skipped::Unchecked] {
                    let together = everything(text.as_bytes(), skipped, true);
                    assert_eq!(together, everything(text.as_bytes(), skipped, false), "{text}");
                }
            }
        }
    }
}
