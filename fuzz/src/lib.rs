//! The promises of every reader of untrusted bytes, one function for each: it takes any bytes, and panics if
//! a promise is broken. The coverage-guided fuzzer (`fuzz_targets/`) calls these.

use std::sync::OnceLock;

use tamis_core::engine::Index;
use tamis_core::event::{Scratch, json as event_json};
use tamis_core::expr::{Expr, codec, json as expression_json, limits, parse};
use tamis_core::query::{Filter, Tags};
use tamis_core::term::{Term, TermId, Terms};
use tamis_core::{Id, Snapshot, SnapshotWriter, Subscription, fuzz_snapshot};

/// A reader and a few inputs that it accepts.
pub struct Target {
    pub name: &'static str,
    pub check: fn(&[u8]),
    pub seeds: fn() -> Vec<Vec<u8>>,
}

pub const TARGETS: [Target; 6] = [
    Target { name: "parse", check: parse_text, seeds: || texts(EXPRESSIONS) },
    Target { name: "expression_json", check: read_expression_json, seeds: expression_json_seeds },
    Target { name: "event_json", check: read_event_json, seeds: || texts(EVENTS) },
    Target { name: "codec", check: decode_expression, seeds: codec_seeds },
    Target { name: "snapshot", check: fuzz_snapshot, seeds: snapshot_seeds },
    Target { name: "index", check: open_damaged_index, seeds: || vec![vec![0; 8], vec![7; 16]] },
];

/// The target of that name.
pub fn target(name: &str) -> &'static Target {
    static ALL: [Target; 6] = TARGETS;
    ALL.iter().find(|target| target.name == name).expect("a target of that name")
}

const EXPRESSIONS: &[&str] = &[
    "age BETWEEN 22 AND 36 AND country IN ('CA', 'US') OR NOT (opted_out)",
    "NOT AT LEAST 2 OF (a > 1, (b LIKE 'x%') IS NOT TRUE, EXACTLY 1 OF (c, d)) AND (a XOR b > 1) IS UNKNOWN",
    "hour(from_utc_timestamp(ts, 'Europe/Berlin')) BETWEEN 8 AND 18 AND price * (quantity + 1) > 9.5 / rate",
    "lower(concat(a, 'x')) = b OR CAST(c AS int) % 2 = 0 OR ip_in(d, '10.0.0.0/8') OR a < coalesce(b, 1)",
    "(credit_score > 650)^0.4 XOR `first name` <=> NULL XNOR a.b.`c d` IS NOT NULL",
    r"x LIKE '50!%' ESCAPE '!' AND y NOT ILIKE '\%\u00e9' AND z RLIKE '^a+(b|c)'",
    "startswith(name, 'A') OR arrays_overlap(tags, ARRAY(1, 2.5, NULL)) OR array_contains(t, TRUE)",
    "-5 <= x AND 1.5e3D != y AND 7S = z AND TIMESTAMP '2026-01-31 12:00:00' > t",
    "/* a /* b */ */ x -- c\n = r'raw' 'next' AND endswith(`b``c`, \"it's\") AND contains(d, '')",
    "x NOT BETWEEN NULL AND 2 OR FALSE AND ! TRUE OR y IS NOT TRUE",
    "exists(items, i -> i.price > 5 AND i.sku = 'A') OR forall(tags, t -> length(t) > 2) OR ANY(tags) LIKE 'a%'",
    "exists(orders, o -> exists(o.items, i -> i.price > o.limit + least)) AND NOT ANY(all_strings()) ILIKE '%key%'",
    "within_distance(lat, lon, 52.52, 13.40, 1500) OR within_polygon(lat, lon, 'POLYGON((0 0, 4 0, 4 4, 0 0))')",
    "ts > current_timestamp() - INTERVAL 7 DAYS AND finished - started > INTERVAL 90 MINUTES AND a <=> b",
    "timestampdiff(HOUR, a, b) > 1 AND date_trunc('MONTH', ts + INTERVAL 1 MONTH) < ts AND element_at(n, -1) % 3 = 1",
    "xpath(doc, '/a[b > 5]^2//c[@x = \"1\" and not(d)]') AND round(x, 2) = abs(y) AND (a < b) = coalesce(c, TRUE)",
    "any(tags, t -> exists(o, t -> t.x > least) XNOR trim(t) || 'x' <=> substring(t, -2, 1)) IS NOT UNKNOWN",
    "array_contains(lower(tags), 'a') OR arrays_overlap(upper(tags), ARRAY('B', NULL)) OR size(tags) >= ceil(x) - floor(y)",
    "year(t) * 12 + month(t) > 5 AND day(t) <= dayofyear(t) AND minute(t) != second(u) AND dayofweek(t) IN (1, 7)",
    "quarter(to_utc_timestamp(t, 'Asia/Tokyo')) = -n AND CAST(n AS string) = 'x' AND CAST(s AS timestamp) > t",
    "current_date() < t AND CAST(b AS bool) IS NOT FALSE AND AT MOST 0 OF (CAST(s AS float) > 1e-400, ANY(n) IS NULL)",
    "x IN () AND (((y)) > DATE '2026-01-31') OR DOUBLE 'NaN' = z",
];

const EVENTS: &[&str] = &[
    r#"{"age": 27, "country": "CA", "opted_out": false, "score": -1.5e3}"#,
    r#"{"address": {"city": "Gen\u00e8ve", "zip": null}, "tags": ["a", null], "n": [1, 2.5]}"#,
    r#"{"$event": {"hours": {"$interval": [20, 30]}, "t": {"$timestamp": "2026-01-31T12:00:00Z"}},
        "$weights": {"hours": 0.6}}"#,
    r#"{"big": 9223372036854775807, "huge": 1e308, "deep": {"a": {"b": {"c": {}}}}, "rows": [{"x": 1}]}"#,
    r#"{"doc": "<a><b>7</b></a>", "items": [{"sku": "A", "price": 7}, null], "tags": ["ab", null], "orders": [{"limit": 1, "items": [{"price": 9}]}],
        "lat": 52.5, "lon": 13.4, "least": 1, "mixed": [1, "x", 99999999999999999999], "d": "10.1.2.3"}"#,
];

fn texts(texts: &[&str]) -> Vec<Vec<u8>> {
    texts.iter().map(|text| text.as_bytes().to_vec()).collect()
}

fn sample_expressions() -> impl Iterator<Item = Expr> {
    EXPRESSIONS.iter().map(|text| parse(text).expect("a good sample"))
}

/// Text is read or refused with a place inside it; what is read prints back to itself.
pub fn parse_text(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    match parse(text) {
        Ok(expr) => {
            limits::check_limits(&expr).expect("what is read keeps to the limits");
            let printed = expr.to_string();
            // Escapes and backquotes may make the printed text longer than any text may be.
            if printed.len() <= limits::MAX_TEXT_BYTES {
                assert_eq!(parse(&printed).as_ref(), Ok(&expr), "{printed}");
            }
        }
        Err(error) => {
            assert!(!error.message.is_empty());
            let place = error.place.expect("a place");
            let line = text.split('\n').nth(place.line as usize - 1).expect("a line of the text");
            assert!((1..=line.chars().count() as u32 + 1).contains(&place.column));
            assert!(error.snippet.expect("a snippet").ends_with('^'));
        }
    }
}

/// An expression in JSON is read or refused; what is read is written back to itself.
pub fn read_expression_json(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    if let Ok(expr) = expression_json::from_json(text) {
        limits::check_limits(&expr).expect("what is read keeps to the limits");
        assert_eq!(expression_json::from_json(&expression_json::to_json(&expr)).as_ref(), Ok(&expr));
    }
}

fn expression_json_seeds() -> Vec<Vec<u8>> {
    sample_expressions().map(|expr| expression_json::to_json(&expr).into_bytes()).collect()
}

/// An event in JSON is read or refused. What is read as a whole is written back to itself, and an index
/// that knows its attributes reads the same values. (An index that knows fewer skips what it need not read.)
pub fn read_event_json(data: &[u8]) {
    let Ok(record) = event_json::read_record(data) else {
        let _ = event_json::read(data, &Terms::default(), None, &mut Scratch::default());
        return;
    };
    let written = event_json::write(&record);
    assert_eq!(event_json::read_record(written.as_bytes()).as_ref(), Ok(&record), "{written}");
    let mut terms = Terms::default();
    let named: Vec<_> = record.values().map(|(name, value)| (terms.intern(name), value)).collect();
    let mut scratch = Scratch::default();
    let event = event_json::read(data, &terms, None, &mut scratch).expect("it was read before");
    for (attribute, value) in named {
        assert_eq!(event.get(attribute).map(|value| value.to_owned()).as_ref(), Some(value));
    }
}

const STORED_NAMES: u32 = 16;

fn stored_name(id: TermId) -> Option<Term> {
    (id.0 < STORED_NAMES).then(|| Term::attribute(&format!("a{}", id.0)))
}

/// A stored expression is read or refused; what is read is stored as something that means the same.
pub fn decode_expression(data: &[u8]) {
    let Ok(expr) = codec::decode(data, &stored_name) else { return };
    let mut stored = vec![];
    codec::encode(&expr, &mut stored, &mut |term| TermId(term.name()[1..].parse().expect("a stored name")));
    assert_eq!(codec::decode(&stored, &stored_name).expect("it was just stored"), expr);
}

fn codec_seeds() -> Vec<Vec<u8>> {
    let stored = |expr: Expr| {
        let (mut stored, mut terms) = (vec![], Terms::default());
        codec::encode(&expr, &mut stored, &mut |term| TermId(terms.intern_term(term).0 % STORED_NAMES));
        stored
    };
    sample_expressions().map(stored).collect()
}

fn snapshot_seeds() -> Vec<Vec<u8>> {
    let mut writer = SnapshotWriter::in_memory();
    writer.section("small", &[1u32, 2, 3]).expect("written to memory");
    writer.section_bytes("texts", b"age > 5").expect("written to memory");
    vec![writer.finish(1).expect("written to memory"), sample_index().to_bytes().expect("written to memory")]
}

fn sample_index() -> Index {
    let index = Index::new(None);
    for (id, expression) in sample_expressions().enumerate() {
        let tags = vec!["q4".into()];
        let subscription = Subscription { tags, ..Subscription::new(Id::Int(id as i64), expression) };
        index.add(subscription).expect("a good subscription");
    }
    index
}

/// One section of the sample index: name, size of an element, content.
type Section = (String, usize, Vec<u8>);

/// An index whose checksums are right and whose content is not is refused, or it answers; it never
/// panics and never reads out of bounds. The bytes are changes: which section, where, and four new bytes.
pub fn open_damaged_index(data: &[u8]) {
    static SECTIONS: OnceLock<Vec<Section>> = OnceLock::new();
    let mut sections =
        SECTIONS.get_or_init(|| sections(&sample_index().to_bytes().expect("in memory"))).clone();
    for change in data.chunks_exact(7) {
        let at_section = change[0] as usize % sections.len();
        let content = &mut sections[at_section].2;
        if let Some(room) = content.len().checked_sub(4) {
            let at = u16::from_le_bytes([change[1], change[2]]) as usize % (room + 1);
            content[at..at + 4].copy_from_slice(&change[3..7]);
        }
    }
    let Ok(index) = Index::from_bytes(snapshot_of(&sections)) else { return };
    let Ok(reader) = index.reader() else { return };
    let mut scratch = Default::default();
    let tags = Tags { any: Some(vec!["q4".into()]), ..Tags::default() };
    let tagged = Filter { tags: &tags, now: 0 };
    for text in EVENTS {
        let record = event_json::read_record(text.as_bytes()).expect("a good sample");
        let (terms, mut room) = (reader.terms().at(0), vec![]);
        let event = record.resolve_into(&terms, &mut room);
        let (found, _) = reader.matches(&event, &tagged, &mut scratch);
        for location in found {
            let _ = reader.subscription(location);
        }
    }
    let _ = index.verify();
}

/// Does `$body` with an element type of as many bytes as `$size` says.
macro_rules! with_element {
    ($size:expr, $element:ident => $body:expr) => {
        with_element!($size, $element => $body,
            1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32)
    };
    ($size:expr, $element:ident => $body:expr, $($words:literal)*) => {
        match $size {
            1 => { type $element = u8; $body }
            2 => { type $element = u16; $body }
            $(bytes if bytes == 4 * $words => { type $element = [u32; $words]; $body })*
            other => panic!("no section has elements of {other} bytes"),
        }
    };
}

fn sections(bytes: &[u8]) -> Vec<Section> {
    let snapshot = Snapshot::from_bytes(bytes.to_vec()).expect("a good snapshot");
    let sizes = [1, 2].into_iter().chain((4..=128).step_by(4));
    let read = |name: &str| {
        let content = sizes.clone().find_map(|size| {
            with_element!(size, Element => {
                let elements = snapshot.section::<Element>(name).ok()?;
                Some((size, bytemuck::cast_slice(&elements).to_vec()))
            })
        });
        let (size, content) = content.expect("elements of a size in the list");
        (name.to_string(), size, content)
    };
    snapshot.section_names().map(read).collect()
}

fn snapshot_of(sections: &[Section]) -> Vec<u8> {
    let mut writer = SnapshotWriter::in_memory();
    for (name, size, content) in sections {
        with_element!(*size, Element => {
            let elements: Vec<Element> = content.chunks(*size).map(bytemuck::pod_read_unaligned).collect();
            writer.section(name, &elements).expect("written to memory");
        });
    }
    writer.finish(1).expect("written to memory")
}
