//! Tests of the JSON reader: values, refusals and their messages, and that its paths agree with each other
//! and with `serde_json`.

use proptest::prelude::*;

use super::*;
use crate::event::{EventSource, TermId};

fn record(json: &str) -> Record {
    read_record(json.as_bytes()).unwrap_or_else(|error| panic!("{json}: {error}"))
}

/// What is wrong with an event, or with the first value in it that nothing can hold.
fn refused(json: &str) -> EventError {
    match read_record(json.as_bytes()) {
        Err(error) => error,
        Ok(record) => record.unreadable().first().unwrap_or_else(|| panic!("{json} is fine")).clone(),
    }
}

fn terms<'n>(names: impl IntoIterator<Item = &'n str>) -> Terms {
    let mut terms = Terms::default();
    for name in names {
        terms.intern(name);
    }
    terms
}

/// What an event holds, in a form that can be compared.
type Contents = (Vec<(TermId, Value)>, Vec<(TermId, f64)>, bool);

fn contents(event: &Event<'_>) -> Contents {
    let values = event.values.iter().map(|(attribute, value)| (*attribute, (*value).to_owned())).collect();
    (values, event.weights.clone(), event.has_intervals)
}

fn text(text: &str) -> Value {
    Value::Str(text.into())
}

#[test]
fn scalars_keep_their_type() {
    let record = record(
        r#"{"i": -9223372036854775808, "j": 9223372036854775807, "x": 1.0, "e": 1e2, "z": -0, "t": true,
            "f": false, "n": null, "s": "caf\u00e9 \ud83d\ude00 \" \\ \/ \b\f\n\r\t", "plain": "é😀", "": 1}"#,
    );
    assert_eq!(record.get("i"), Some(&Value::Int(i64::MIN)));
    assert_eq!(record.get("j"), Some(&Value::Int(i64::MAX)));
    assert_eq!(record.get("x"), Some(&Value::Float(1.0)));
    assert_eq!(record.get("e"), Some(&Value::Float(100.0)));
    assert_eq!(record.get("z"), Some(&Value::Int(0)));
    assert_eq!(record.get("t"), Some(&Value::Bool(true)));
    assert_eq!(record.get("f"), Some(&Value::Bool(false)));
    assert_eq!(record.get("n"), None);
    assert_eq!(record.get("s"), Some(&text("café 😀 \" \\ / \u{8}\u{c}\n\r\t")));
    assert_eq!(record.get("plain"), Some(&text("é😀")));
    assert_eq!(record.get(""), Some(&Value::Int(1)));
}

#[test]
fn nested_records_become_dotted_paths() {
    let record = record(r#"{"a": {"b": {"c": 1, "$id": 2}, "d": null, "e": {}}, "a.f": 3}"#);
    let names: Vec<&str> = record.values().map(|(name, _)| name).collect();
    assert_eq!(names, ["a", "a.b", "a.b.$id", "a.b.c", "a.e", "a.f"]);
    assert_eq!(record.get("a.b"), Some(&Value::Record));
    assert_eq!(record.get("a.e"), Some(&Value::Record));
    assert_eq!(record.get("a.f"), Some(&Value::Int(3)));
}

#[test]
fn objects_with_a_dollar_are_values() {
    let record = record(
        r#"{"t": {"$timestamp": "1970-01-01T00:00:01Z"}, "n": {"$float": "NaN"},
            "p": {"$float": "Infinity"}, "m": {"$float": "-Infinity"}, "i": {"$interval": [20, 30.5]},
            "j": {"$interval": [{"$timestamp": "1970-01-01"}, {"$timestamp": "1970-01-02"}]},
            "k": {"$interval": [{"$float": "-Infinity"}, 0]}, "a": [{"$timestamp": "1970-01-01"}, null]}"#,
    );
    assert_eq!(record.get("t"), Some(&Value::Timestamp(1_000_000)));
    assert_eq!(record.get("n"), Some(&Value::Float(f64::NAN)));
    assert_eq!(record.get("p"), Some(&Value::Float(f64::INFINITY)));
    assert_eq!(record.get("m"), Some(&Value::Float(f64::NEG_INFINITY)));
    assert_eq!(record.get("i"), Value::interval(Value::Int(20), Value::Float(30.5)).ok().as_ref());
    assert_eq!(record.get("j").and_then(Value::kind), Some(crate::event::value::Kind::Timestamp));
    assert!(record.get("k").is_some());
    assert_eq!(record.get("a"), Some(&Value::Array(vec![Value::Timestamp(0), Value::Null])));
    assert_eq!(record.get("t.$timestamp"), None);
}

#[test]
fn arrays_hold_scalars_of_one_kind_or_records() {
    let record = record(
        r#"{"s": ["a", "\n", null], "n": [1, 2.5], "e": [], "r": [{"x": 1}, null],
            "d": [[1], ["deep", [2]]]}"#,
    );
    assert_eq!(record.get("s"), Some(&Value::Array(vec![text("a"), text("\n"), Value::Null])));
    assert_eq!(record.get("n"), Some(&Value::Array(vec![Value::Int(1), Value::Float(2.5)])));
    assert_eq!(record.get("e"), Some(&Value::Array(vec![])));
    let fields = Value::Fields([("x".into(), Value::Int(1))].into());
    assert_eq!(record.get("r"), Some(&Value::Array(vec![fields, Value::Null])));
    assert_eq!(record.get("d"), Some(&Value::Nested([text("deep")].into())));
}

#[test]
fn weights_stand_beside_the_event() {
    let weighted = record(r#"{"$weights": {"age": 0.6, "address.city": 2}, "$event": {"age": 27}}"#);
    assert_eq!(weighted.get("age"), Some(&Value::Int(27)));
    assert_eq!(weighted.weights().collect::<Vec<_>>(), [("address.city", 2.0), ("age", 0.6)]);
    assert_eq!(record(r#"{"$event": {}}"#), Record::default());
}

#[test]
fn faults_say_what_where_and_what_would_be_right() {
    for (json, path, message, hint) in [
        ("[1]", None, "must be a JSON object", Some("one by one")),
        ("", None, "the text ends where a JSON object should follow", None),
        ("nul", None, "must be a JSON object", None),
        ("{\"a\": 1} {}", None, "more text after the event", Some("one by one")),
        ("{\"a\" 1}", None, "expected `:` after a name, found '1'", None),
        ("{a: 1}", None, "expected a name in quotes, found 'a'", None),
        ("{'a': 1}", None, "expected a name in quotes", Some("double quotes")),
        ("{\"a\": 'x'}", Some("a"), "expected a value", Some("double quotes")),
        ("data/events.jsonl", None, "expected a JSON object", Some("for a file")),
        ("see a.b", None, "expected a JSON object", None),
        ("{\"a\": 1,}", None, "expected a name in quotes, found '}'", None),
        ("{\"a\": 1", None, "the text ends where `,` or `}` should follow", None),
        ("{\"a\": é}", Some("a"), "expected a value, found 'é'", None),
        ("{\"a\": nule}", Some("a"), "expected a value, found 'n'", None),
        ("{\"a\": NaN}", Some("a"), "expected a value, found 'N'", Some("JSON has no NaN")),
        ("{\"a\": \"x", Some("a"), "does not end", None),
        ("{\"a\": \"\t\"}", Some("a"), "control character 0x09", Some("escape")),
        ("{\"a\": \"\\x\"}", Some("a"), "unknown escape", None),
        ("{\"a\": \"\\u12\"}", Some("a"), "four hexadecimal digits", None),
        ("{\"a\": \"\\ud800\"}", Some("a"), "surrogate", None),
        ("{\"a\": \"\\udc00\"}", Some("a"), "surrogate", None),
        ("{\"a\": \"\\ud800\\u0041\"}", Some("a"), "surrogate", None),
        ("{\"a\": 01}", Some("a"), "must not start with 0", None),
        ("{\"a\": -}", Some("a"), "needs a digit here", None),
        ("{\"a\": 1.}", Some("a"), "after its point", None),
        ("{\"a\": 1e}", Some("a"), "in its exponent", None),
        (
            "{\"a\": {\"b\": 9223372036854775808}}",
            Some("a.b"),
            "9223372036854775808 does not fit",
            Some("a string"),
        ),
        ("{\"a\": -9223372036854775809}", Some("a"), "does not fit in 64 bits", None),
        ("{\"a\": 99999999999999999999}", Some("a"), "does not fit in 64 bits", Some("1e20")),
        ("{\"a\": [1, 99999999999999999999]}", Some("a"), "does not fit in 64 bits", None),
        ("{\"a\": 1e999}", Some("a"), "beyond every 64-bit float", Some("$float")),
        ("{\"a\": [1, \"b\"]}", Some("a"), "one kind, not a number and a string", None),
        ("{\"a\": [1, {}]}", Some("a"), "one kind, not a number and a record", None),
        ("{\"a\": [{\"$interval\": [1, 2]}]}", Some("a"), "cannot hold an interval", None),
        ("{\"a\": [1 2]}", Some("a"), "expected `,` or `]`, found '2'", None),
        ("{\"a\": {\"$interval\": [1]}}", Some("a"), "two ends, not 1", Some("[20, 30]")),
        ("{\"a\": {\"$interval\": [2, 1]}}", Some("a"), "above its high end", Some("[20, 30]")),
        ("{\"a\": {\"$interval\": [1, \"b\"]}}", Some("a"), "of one kind", None),
        ("{\"a\": {\"$interval\": [null, 1]}}", Some("a"), "must not be null", None),
        ("{\"a\": {\"$interval\": [{\"$float\": \"NaN\"}, 1]}}", Some("a"), "must not be NaN", None),
        ("{\"a\": {\"$interval\": 3}}", Some("a"), "expected an array", None),
        (
            "{\"a\": {\"$interval\": [1, 2], \"b\": 1}}",
            Some("a"),
            "another name follows",
            Some("no other name"),
        ),
        ("{\"a\": {\"b\": 1, \"$interval\": [1, 2]}}", Some("a"), "`$interval` cannot stand here", None),
        ("{\"$interval\": [1, 2]}", None, "`$interval` cannot stand here", None),
        (
            "{\"a\": {\"$timestamp\": \"noon\"}}",
            Some("a"),
            "\"noon\" is no timestamp",
            Some("2026-01-31T12:00:00Z"),
        ),
        ("{\"a\": {\"$timestamp\": 3}}", Some("a"), "expected a string, found '3'", None),
        ("{\"a\": {\"$float\": \"inf\"}}", Some("a"), "no such float", Some("Infinity")),
        ("{\"a\": 1, \"$event\": {}}", None, "`$event` cannot stand here", Some("$weights")),
        ("{\"$event\": {}, \"a\": 1}", None, "unexpected name \"a\"", Some("$weights")),
        ("{\"$event\": {}, \"$event\": {}}", None, "given twice", None),
        ("{\"$weights\": {}}", None, "`$event` is missing", None),
        ("{\"$event\": {}, \"$weights\": {\"a\": -1}}", None, "not negative, not -1 (of `a`)", None),
        (
            "{\"$event\": {}, \"$weights\": {\"a\": \"x\"}}",
            None,
            "expected a number as the weight, found",
            None,
        ),
        ("{\"$event\": [], \"$weights\": {}}", None, "expected an object, found '['", None),
    ] {
        let error = refused(json);
        assert!(error.message.contains(message), "{json}: {error}");
        assert_eq!(error.path.as_deref(), path, "{json}: {error}");
        assert!(error.place.is_some(), "{json}: {error}");
        if let Some(hint) = hint {
            assert!(error.hint.as_deref().is_some_and(|text| text.contains(hint)), "{json}: {error}");
        }
    }
}

#[test]
fn faults_give_line_column_and_byte() {
    let error = refused("{\n  \"é\": [1,\n    \"b\"]}");
    assert_eq!(error.place, Some(TextPlace { line: 2, column: 8, byte: 10 }));
    let error = read_record(b"{\"a\": \"\xff\"}").unwrap_err();
    assert_eq!((error.message.as_str(), error.place.unwrap().byte), ("the text is not UTF-8", 7));
}

#[test]
fn a_name_given_twice_is_refused_even_when_null() {
    for json in [
        r#"{"a": {"b": 1}, "a.b": 2}"#,
        r#"{"a.b": 1, "a.b": 2}"#,
        r#"{"a": {"b": 1, "b": 1}}"#,
        r#"{"a.b": null, "a": {"b": 1}}"#,
        r#"{"a": {"b": 1}, "a.b": "\n"}"#,
    ] {
        assert_eq!(refused(json).path.as_deref(), Some("a.b"), "{json}");
        let (terms, mut scratch) = (terms(["a.b"]), Scratch::default());
        let error = read(json.as_bytes(), &terms, None, &mut scratch).expect_err(json);
        assert_eq!(error.path.as_deref(), Some("a.b"), "{json}");
    }
    assert!(refused(r#"{"$event": {}, "$weights": {"a": 1, "a": 1}}"#).message.contains("given twice"));
}

#[test]
fn depth_is_limited_and_what_is_skipped_is_not() {
    let nest = |depth: usize| format!("{}1{}", "{\"a\":".repeat(depth), "}".repeat(depth));
    assert_eq!(record(&nest(MAX_DEPTH + 1)).values().len(), MAX_DEPTH + 1);
    let too_deep = |json: &str| refused(json).message.contains("nested deeper than 100 levels");
    assert!(too_deep(&nest(MAX_DEPTH + 2)));
    let deep = nest(1_000_000);
    let (terms, mut scratch) = (terms(["b"]), Scratch::default());
    assert!(read(deep.as_bytes(), &terms, None, &mut scratch).unwrap().values.is_empty());
    let brackets = |depth: usize| format!("{{\"a\": {}{}}}", "[".repeat(depth), "]".repeat(depth));
    assert_eq!(record(&brackets(MAX_DEPTH)).get("a"), Some(&Value::Record));
    assert!(too_deep(&brackets(MAX_DEPTH + 1)));
    assert!(too_deep(&brackets(1_000_000)));
}

#[test]
fn what_no_subscription_uses_is_skipped() {
    let json = br#"{"huge": 99999999999999999999, "mixed": [1, "a"],
                    "a": {"x": {"$timestamp": "?"}, "b": 1}, "a": 2}"#;
    let (terms, mut scratch) = (terms(["a.b"]), Scratch::default());
    let event = read(json, &terms, None, &mut scratch).unwrap();
    assert_eq!(contents(&event), (vec![(TermId(0), Value::Int(1))], vec![], false));
    assert!(read(b"{\"huge\": 1x}", &terms, None, &mut scratch).is_err());
}

#[test]
fn strings_without_escapes_are_borrowed() {
    let json = br#"{"a": "plain", "b": "\u0041"}"#;
    let (terms, mut scratch) = (terms(["a", "b"]), Scratch::default());
    let event = read(json, &terms, None, &mut scratch).unwrap();
    let Some(ValueRef::Str(plain)) = event.get(TermId(0)) else { panic!() };
    assert!(json.as_ptr_range().contains(&plain.as_ptr()));
    let Some(ValueRef::Str(escaped)) = event.get(TermId(1)) else { panic!() };
    assert_eq!(escaped, "A");
}

#[test]
fn the_schema_turns_text_into_timestamps() {
    let schema = Schema::parse([("t", "timestamp"), ("all", "array<timestamp>"), ("s", "string")]).unwrap();
    let (terms, mut scratch) = (terms(["t", "all", "s"]), Scratch::default());
    let json = br#"{"t": "1970-01-01 00:00:01", "all": ["1970-01-01"], "s": "1970-01-01"}"#;
    let direct = contents(&read(json, &terms, Some(&schema), &mut scratch).unwrap());
    let expected = [Value::Timestamp(1_000_000), Value::Array(vec![Value::Timestamp(0)]), text("1970-01-01")];
    assert_eq!(direct.0.iter().map(|(_, value)| value.clone()).collect::<Vec<_>>(), expected);
    let mut record = read_record(json).unwrap();
    schema.coerce(&mut record);
    assert_eq!(contents(&record.resolve(&terms)), direct);
    let escaped = br#"{"t": "1970-01-01\u002000:00:01"}"#;
    assert_eq!(contents(&read(escaped, &terms, Some(&schema), &mut scratch).unwrap()).0[0].1, expected[0]);
}

const NAMES: [&str; 8] = ["a", "b", "c", "a.b", "b.c", "a.b.c", "é\n", "$x"];

fn scalar() -> impl Strategy<Value = String> {
    prop_oneof![
        Just("null".to_string()),
        any::<bool>().prop_map(|truth| truth.to_string()),
        any::<i64>().prop_map(|i| i.to_string()),
        any::<f64>().prop_filter("finite", |x| x.is_finite()).prop_map(|x| format!("{x:?}")),
        "\\PC{0,6}".prop_map(|text| serde_json::Value::from(text).to_string()),
        "[\\x00-\\x20\"\\\\a]{0,4}".prop_map(|text| serde_json::Value::from(text).to_string()),
        (0i64..4_000_000_000_000_000).prop_map(|micros| {
            format!("{{\"$timestamp\": \"{}\"}}", crate::event::timestamp::format_timestamp_iso(micros))
        }),
        "[1-9][0-9]{0,24}\\.[0-9]{1,24}".prop_map(|digits| format!("{{\"$decimal\": \"{digits}\"}}")),
        prop::sample::select(vec!["NaN", "Infinity", "-Infinity"])
            .prop_map(|name| format!("{{\"$float\": \"{name}\"}}")),
        (any::<i32>(), any::<u16>())
            .prop_map(|(low, width)| format!("{{\"$interval\": [{low}, {}]}}", low as i64 + width as i64)),
    ]
}

/// JSON objects that are mostly good events.
fn object() -> impl Strategy<Value = String> {
    let value = scalar().prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            prop::collection::vec((prop::sample::select(&NAMES[..]), inner.clone()), 0..4)
                .prop_map(to_object),
            prop::collection::vec(inner, 0..3).prop_map(|items| format!("[{}]", items.join(" , "))),
        ]
    });
    prop::collection::vec((prop::sample::select(&NAMES[..]), value), 0..5).prop_map(to_object)
}

fn to_object(members: Vec<(&'static str, String)>) -> String {
    let members: Vec<String> = members
        .into_iter()
        .map(|(name, value)| format!("{}: {value}", serde_json::Value::from(name)))
        .collect();
    format!("{{{}}}", members.join(","))
}

/// What is wrong with a text, and where.
type Refusal = (String, Option<String>, Option<TextPlace>);

fn refusal(error: EventError) -> Refusal {
    (error.message, error.path.map(|path| path.to_string()), error.place)
}

/// The judge: reads byte by byte, and remembers nothing of other events.
fn read_by_bytes(json: &[u8], terms: &Terms) -> Result<Contents, Refusal> {
    let mut scratch = Scratch::default();
    let mut event = Event::default();
    let mut builder = EventBuilder::new(terms, None, &mut scratch, &mut event);
    walk(json, &mut builder).map_err(refusal)?;
    let made = builder.finish().map_err(refusal)?;
    Ok(contents(made.as_ref().unwrap_or(&event)))
}

/// Reading in blocks, with what was learnt from the events before, is reading byte by byte.
fn agrees_with_the_judge(json: &[u8]) {
    thread_local! { static SCRATCH: std::cell::RefCell<Scratch> = std::cell::RefCell::default(); }
    SCRATCH.with_borrow_mut(|scratch| {
        for names in [&["a", "c", "é\n", "b.c"][..], &["a.b", "a.b.c"], &NAMES, &[]] {
            let terms = terms(names.iter().copied());
            let judged = read_by_bytes(json, &terms);
            // Twice: the second time all fields are known.
            for _ in 0..2 {
                let read = read(json, &terms, None, scratch).map(|event| contents(&event));
                assert_eq!(read.map_err(refusal), judged, "{}", String::from_utf8_lossy(json));
            }
            let unchecked = read_with(json, &terms, None, scratch, Skipped::Unchecked);
            let unchecked = unchecked.map(|event| contents(&event)).map_err(refusal);
            // Of a text with faults nothing is promised but that one may be found.
            assert!(judged.is_err() || unchecked == judged);
        }
    });
}

/// What was learnt from the events before changes nothing: fields come elsewhere, twice, or not at all.
fn agree_as_one_stream(events: &[Vec<u8>]) {
    for names in [&["a", "c"][..], &["a.b.c", "$x"], &["b"]] {
        let (terms, mut scratch) = (terms(names.iter().copied()), Scratch::default());
        let judged: Vec<_> = events.iter().map(|json| read_by_bytes(json, &terms)).collect();
        for (json, judged) in std::iter::zip(events, &judged).cycle().take(2 * events.len()) {
            let shown = String::from_utf8_lossy(json);
            let checked = read(json, &terms, None, &mut scratch).map(|event| contents(&event));
            assert_eq!(&checked.map_err(refusal), judged, "{shown}");
            let unchecked = read_with(json, &terms, None, &mut scratch, Skipped::Unchecked);
            let unchecked = unchecked.map(|event| contents(&event)).map_err(refusal);
            assert!(judged.is_err() || &unchecked == judged, "{shown}");
        }
        // As lines, into the memory of one event.
        let text = events.join(&b'\n');
        let lines = JsonLines::new(&text, &terms, None, Skipped::Checked);
        let mut event = Event::default();
        for row in (0..lines.len()).chain(0..lines.len()) {
            lines.fill(row, &mut event);
            let expected = judged[row].clone().unwrap_or_default();
            assert_eq!(contents(&event), expected, "{}", String::from_utf8_lossy(&events[row]));
        }
        assert_eq!(lines.fault().is_some(), judged.iter().any(Result::is_err));
        let together = JsonLines::new(&text, &terms, None, Skipped::Checked);
        let mut all = vec![Event::default(); together.len()];
        together.fill_all(0..all.len(), &mut all);
        for (event, judged) in std::iter::zip(&all, &judged) {
            assert_eq!(contents(event), judged.clone().unwrap_or_default());
        }
        assert_eq!(together.fault().map(refusal), lines.fault().map(refusal));
    }
}

#[test]
fn unwanted_fields_are_passed_only_where_nothing_is_wrong() {
    let usual = r#"{"x": 1, "y": {"z": [1]}, "a": 2, "w": "w", "v": null}"#;
    let others = [
        r#"{"x": 1, "y": {"z": [1]}, "a": 2, "w": "w", "a": 3}"#, // a wanted name is given twice
        r#"{"x": 1, "a": 5, "y": {"z": [1]}, "w": "w", "v": null}"#, // another order
        r#"{"x": 1, "xx": 1, "y": 2, "a": 6}"#,
        r#"{"x": 1}"#,
        r#"{"x" : 1 , "y" : [ ] , "a" : 7 , "w" : { } }"#,
        r#"{"\u0078": 1, "y": "\"", "\u0061": 8}"#, // names may have escapes
        r#"{"x": 1, "y": {"z": [1]}, }"#,
        r#"{"x": 1, "y": {"z": [1]} "a": 2}"#,
        r#"{"x": 1, "y": , "a": 2}"#,
        r#"{"x" 1, "a": 2}"#,
        r#"{"x": 1, "y"}"#,
        r#"{"x": 1, 2, "a": 2}"#,
        r#"{"x": [1, "a": 2}"#,
        r#"{"x": 1, "y": {"$event": 1}, "a": {"$event": 2}}"#,
    ];
    for other in others {
        agree_as_one_stream(&[usual, other, usual, other].map(|event| event.as_bytes().to_vec()));
    }
    // Not checked, but strict between the fields of what is read.
    let (terms, mut scratch) = (terms(["a"]), Scratch::default());
    for wrong in &others[6..13] {
        for event in [usual, wrong] {
            let read = read_with(event.as_bytes(), &terms, None, &mut scratch, Skipped::Unchecked);
            assert_eq!(read.is_ok(), event == usual, "{event}");
        }
    }
}

#[test]
fn what_is_read_in_blocks_agrees_at_every_place_of_a_block() {
    let events = [
        r#"{"a": "x", "b": {"c": [1, "deep"], "d": {"e": null}}, "c": -1.5e3, "a.b": true}"#,
        r#"{"z": [{"a": 1}, {"a": 2}], "a": {"b": {"c": 7, "x": [[], {}]}}, "\u0061": 3}"#,
        r#"{"a": {"$timestamp": "1970-01-01T00:00:01Z"}, "c": {"$interval": [1, 2]}, "b": {"x": "\\"}}"#,
        r#"{"$weights": {"a": 0.5, "zz": 1}, "$event": {"a": "\ud83d\ude00", "c": [1, 2, null]}}"#,
        r#"{"a": 99999999999999999999}"#,
        r#"{"zz": 99999999999999999999, "a": 1, "a": 2}"#,
        r#"{"zz": "\ud800", "a": 1}"#,
        r#"{"zz": [1, {"y": tru}], "a": 1}"#,
        "{\"a\": 1, \"zz\": \"\u{1}\"}",
        r#"{"a": 1} {"a": 1}"#,
        r#"{"a": [1, "b"], "b": {"$interval": [2, 1]}}"#,
        r#"{"a": {"x": 1, "$interval": [1, 2]}}"#,
    ];
    for event in events {
        for shift in 0..=130 {
            agrees_with_the_judge(format!("{}{event}", " ".repeat(shift)).as_bytes());
            let filled = format!("{{\"{}\": 0, {}", "p".repeat(shift), &event[1..]);
            agrees_with_the_judge(filled.as_bytes());
        }
    }
}

#[test]
fn unchecked_means_that_faults_in_what_is_skipped_may_pass() {
    let (terms, mut scratch) = (terms(["a"]), Scratch::default());
    let mut read = |json: &str, skipped| {
        let event = read_with(json.as_bytes(), &terms, None, &mut scratch, skipped);
        event.map(|event| contents(&event).0).map_err(refusal)
    };
    let json = r#"{"zz": [01, "\x", tru], "a": 7}"#;
    assert!(read(json, Skipped::Checked).is_err());
    assert_eq!(
        read(json, Skipped::Unchecked).is_ok(),
        cfg!(target_arch = "x86_64"),
        "without lanes everything is checked"
    );
    for wrong in
        [r#"{"zz": 1, "a": 07}"#, r#"{"a": "\x"}"#, r#"{"a": 1, "a": 2}"#, r#"{"a": 1"#, "{\"a\": \"\t\"}"]
    {
        assert!(read(wrong, Skipped::Unchecked).is_err(), "{wrong}");
    }
}

/// Everything the reader promises for any bytes at all: the body of a fuzz target.
fn fuzz_json_event(json: &[u8]) {
    agrees_with_the_judge(json);
    let terms = terms(NAMES.into_iter().step_by(2));
    let mut scratch = Scratch::default();
    let direct = read(json, &terms, None, &mut scratch).map(|event| contents(&event));
    let whole = read_record(json);
    let is_read = whole.is_ok();
    if let Ok(record) = whole {
        // What is good as a whole is good in part, and the two agree.
        assert_eq!(direct.unwrap(), contents(&record.resolve(&terms)));
        let written = write(&record);
        assert_eq!(read_record(written.as_bytes()).unwrap(), record, "{written}");
    }
    // What is read is JSON, and the skipping path accepts exactly that; `serde_json` also limits depth and the size of floats.
    if let Ok(text) = std::str::from_utf8(json) {
        let mut cursor = ByteCursor::new(text);
        let skipped = cursor.skip().is_ok() && cursor.peek().is_none();
        match serde_json::from_slice::<serde_json::Value>(json) {
            Ok(_) => assert!(skipped, "{text}"),
            Err(error) => {
                let message = error.to_string();
                let is_limit = message.contains("recursion limit") || message.contains("number out of range");
                assert!(!(skipped || is_read) || is_limit, "{text}: {error}");
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn both_ways_to_an_event_agree(json in object(), weighted in any::<bool>()) {
        let weights = "{\"a\": 0.5, \"c\": 2}";
        let with_weights = format!("{{\"$event\": {json}, \"$weights\": {weights}}}");
        fuzz_json_event(if weighted { with_weights } else { json }.as_bytes());
    }

    #[test]
    fn events_of_one_stream_agree(events in prop::collection::vec(object(), 2..6), cut in any::<prop::sample::Index>()) {
        let mut events: Vec<Vec<u8>> = events.into_iter().map(String::into_bytes).collect();
        agree_as_one_stream(&events);
        let at = cut.index(events[0].len());
        events[0].truncate(at.max(1));
        agree_as_one_stream(&events);
    }

    #[test]
    fn arbitrary_bytes_never_panic(json in prop::collection::vec(any::<u8>(), 0..64)) {
        fuzz_json_event(&json);
    }

    #[test]
    fn almost_json_never_panics(json in "[{}\\[\\]:,\"\\\\a$u0-9eE.+\\- tn]{0,24}") {
        fuzz_json_event(json.as_bytes());
    }

    #[test]
    fn damaged_json_never_panics(
        json in object(), at in any::<prop::sample::Index>(), byte in any::<u8>(), cut in any::<bool>(),
    ) {
        let mut json = json.into_bytes();
        let at = at.index(json.len());
        json[at] = byte;
        if cut {
            json.truncate(at);
        }
        fuzz_json_event(&json);
    }

    #[test]
    fn floats_are_rounded_to_the_nearest(digits in "-?[1-9][0-9]{0,7}\\.[0-9]{1,9}0{0,9}(e-?[0-9]{1,2})?") {
        let expected: f64 = digits.parse().unwrap();
        let read = record(&format!("{{\"a\": {digits}}}"));
        prop_assert_eq!(read.get("a"), Some(&Value::Float(expected)));
    }

    #[test]
    fn with_more_digits_than_floats_have_a_number_is_exact(
        digits in "-?[1-9][0-9]{0,24}\\.[0-9]{17,24}[1-9](e-?[0-9]{1,2})?",
    ) {
        let expected = Value::decimal(&digits).unwrap();
        for json in [format!("{{\"a\": {digits}}}"), format!("{{\"a\": {{\"$decimal\": \"{digits}\"}}}}")] {
            let read = record(&json);
            prop_assert_eq!(read.get("a"), Some(&expected));
            prop_assert_eq!(&record(&write(&read)), &read);
        }
    }
}
