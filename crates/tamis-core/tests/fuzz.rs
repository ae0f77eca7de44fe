//! Fuzzes all readers of untrusted input: expressions as text and as JSON, events, snapshots.
//!
//! Each target damages and mixes valid inputs for `FUZZ_SECONDS` (by default a moment), and checks what the reader
//! promises for any input. Inputs that a reader accepts join the valid ones, so that later ones go deeper. To repeat
//! a run, set `FUZZ_SEED` to the seed that it prints when it fails.

use std::env;
use std::fmt::Debug;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::{Duration, Instant};

use tamis_core::event::json::{read_record, write};
use tamis_core::expr::{json, parse};
use tamis_core::{Snapshot, SnapshotWriter, fuzz_snapshot};

const SECONDS_IN_TESTS: u64 = 2;
const MAX_BYTES: usize = 4096;
const MAX_CORPUS: usize = 2000;

/// Bits that look random and are the same for the same seed (splitmix64).
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((bits ^ (bits >> 31)) % bound.max(1) as u64) as usize
    }

    /// A part of some bytes, maybe empty.
    fn part<'a>(&mut self, bytes: &'a [u8]) -> &'a [u8] {
        let start = self.below(bytes.len() + 1);
        let length = self.below((bytes.len() - start).min(64) + 1);
        &bytes[start..start + length]
    }
}

/// One good input, damaged a few times, perhaps with parts of another one.
fn damaged(corpus: &[Vec<u8>], words: &[&str], random: &mut Random) -> Vec<u8> {
    let mut input = corpus[random.below(corpus.len())].clone();
    for _ in 0..1 + random.below(4) {
        let at = random.below(input.len() + 1);
        let insert: Vec<u8> = match random.below(6) {
            0 if !input.is_empty() => {
                let at = at.min(input.len() - 1);
                input[at] ^= 1 << random.below(8);
                continue;
            }
            1 => {
                let end = (at + random.below(16)).min(input.len());
                input.drain(at..end);
                continue;
            }
            2 => vec![random.below(256) as u8; 1 + random.below(8)],
            3 => {
                let other = random.below(corpus.len());
                random.part(&corpus[other]).to_vec()
            }
            4 => random.part(&input).repeat(1 + random.below(20)),
            _ => words[random.below(words.len())].as_bytes().to_vec(),
        };
        input.splice(at..at, insert);
        input.truncate(MAX_BYTES);
    }
    input
}

/// Runs a target until its time is up. `accepts` checks the promises and says whether the input was good.
fn fuzz(seeds: &[Vec<u8>], words: &[&str], accepts: impl Fn(&[u8]) -> bool) {
    let number = |name: &str| env::var(name).ok().map(|text| text.parse().expect("a whole number"));
    let budget = Duration::from_secs(number("FUZZ_SECONDS").unwrap_or(SECONDS_IN_TESTS));
    let seed: u64 = number("FUZZ_SEED").unwrap_or(1);
    let mut random = Random(seed);
    let mut corpus = seeds.to_vec();
    for input in seeds {
        assert!(accepts(input), "a seed must be good: {}", String::from_utf8_lossy(input));
    }
    let start = Instant::now();
    let (mut tried, mut accepted) = (0u64, 0u64);
    while start.elapsed() < budget {
        let input = damaged(&corpus, words, &mut random);
        let good = catch_unwind(AssertUnwindSafe(|| accepts(&input))).unwrap_or_else(|panic| {
            eprintln!("FUZZ_SEED={seed}, input {tried}: {:?}", String::from_utf8_lossy(&input));
            resume_unwind(panic)
        });
        tried += 1;
        if good {
            accepted += 1;
            match corpus.len() {
                MAX_CORPUS => corpus[seeds.len() + random.below(MAX_CORPUS - seeds.len())] = input,
                _ => corpus.push(input),
            }
        }
    }
    println!("{tried} inputs, {accepted} of them good");
    assert!(
        accepted > 0,
        "nothing but refusals: the damage is too great to test what lies behind the first check"
    );
}

fn bytes(texts: &[&str]) -> Vec<Vec<u8>> {
    texts.iter().map(|text| text.as_bytes().to_vec()).collect()
}

/// What is read must be written and read back as the same.
fn round_trip<T: PartialEq + Debug, E: Debug>(value: &T, written: &str, read: impl Fn(&str) -> Result<T, E>) {
    let again =
        read(written).unwrap_or_else(|error| panic!("{written:?} is written but not read: {error:?}"));
    assert_eq!(&again, value, "{written:?}");
}

const TEXTS: &[&str] = &[
    "age BETWEEN 22 AND 36 AND country IN ('CA', 'US')",
    "(credit_score > 650)^0.4 OR NOT a.b <=> NULL",
    "x NOT LIKE '50\\%_' AND y ILIKE 'é%' XOR z RLIKE '^a[bc]+$'",
    "AT MOST 1 OF (a > 1, (b LIKE 'x%') IS NOT TRUE, c) OR (a XOR b > 1) IS UNKNOWN",
    "startswith(`odd name`, 'a') XNOR arrays_overlap(tags, ARRAY('a', NULL))",
    "hour(from_utc_timestamp(ts, 'Europe/Berlin')) BETWEEN 8 AND 18 AND price * (quantity + 1) > 9.5 / rate",
    "lower(concat(a, 'x')) = b OR CAST(c AS int) % 2 = 0 OR ip_in(d, '10.0.0.0/8') OR (a < b) = coalesce(c, TRUE)",
    "exists(items, i -> i.price > 5 AND i.sku = 'A') OR forall(tags, t -> length(t) > 2) OR ANY(tags) LIKE 'a%'",
    "exists(orders, o -> exists(o.items, i -> i.price > o.limit + least)) AND NOT ANY(all_strings()) ILIKE '%key%'",
    "within_distance(lat, lon, 52.52, 13.40, 1500) OR within_polygon(lat, lon, 'POLYGON((0 0, 4 0, 4 4, 0 0))')",
    "ts > current_timestamp() - INTERVAL 7 DAYS AND finished - started > INTERVAL 90 MINUTES AND a <=> b",
    "timestampdiff(HOUR, a, b) > 1 AND date_trunc('MONTH', ts + INTERVAL 1 MONTH) < ts AND element_at(n, -1) % 3 = 1",
    "xpath(doc, '/a[b > 5]^2//c[@x = \"1\" and not(d)]') AND EXACTLY 1 OF (a, b IS FALSE, round(x, 2) = abs(y))",
    "array_contains(lower(tags), 'a') OR arrays_overlap(upper(tags), ARRAY('B', NULL)) OR size(tags) >= ceil(x) - floor(y)",
    "year(t) * 12 + month(t) > 5 AND day(t) <= dayofyear(t) AND minute(t) != second(u) AND dayofweek(t) IN (1, 7)",
    "quarter(to_utc_timestamp(t, 'Asia/Tokyo')) = -n AND CAST(n AS string) = 'x' AND CAST(s AS timestamp) > t",
    "current_date() < t AND CAST(b AS bool) IS NOT FALSE AND AT MOST 0 OF (CAST(s AS float) > 1e-400, ANY(n) IS NULL)",
    "substring(trim(s), 2, 3) = upper(concat(a, b)) AND EXACTLY 2 OF (i % 2 = 1, ip_in(d, 'fe80::/10'), (a) IS FALSE)",
    "t >= TIMESTAMP '2026-01-31 12:00:00' -- why not\n AND f != double('NaN') AND flag IS NOT NULL AND 1e3 > g",
];

#[test]
fn expressions_as_text() {
    let words = [
        " AND ",
        " OR ",
        " XOR ",
        "NOT ",
        "(",
        ")",
        "'",
        "`",
        "\\",
        "^0.5",
        " IN (",
        "NULL",
        "--",
        "/*",
        "9223372036854775808",
        "1e308",
        " BETWEEN ",
        ",",
        "<=>",
        "\u{1F980}",
        "TIMESTAMP '",
        "exists(a, x -> ",
        "ANY(all_strings())",
        "AT LEAST 2 OF (",
        " IS NOT UNKNOWN",
        "CAST(",
        " AS int)",
        "coalesce(",
        " + INTERVAL 1 MONTH",
        "current_timestamp()",
        " % ",
        "x.y",
        "xpath(d, '//a')",
        "within_distance(a, b, 1, 2, 3)",
        "array_contains(lower(",
        "^0",
        " IS TRUE",
        "\u{feff}",
    ];
    fuzz(&bytes(TEXTS), &words, |input| {
        let Ok(text) = std::str::from_utf8(input) else { return false };
        match parse(text) {
            Err(error) => {
                let _ = error.to_string();
                false
            }
            Ok(expr) => {
                round_trip(&expr, &expr.to_string(), parse);
                round_trip(&expr, &json::to_json(&expr), json::from_json);
                true
            }
        }
    });
}

#[test]
fn expressions_as_json() {
    let seeds: Vec<_> =
        TEXTS.iter().map(|text| json::to_json(&parse(text).expect("a seed is good")).into_bytes()).collect();
    let words = [
        "{",
        "}",
        "[",
        "]",
        "\"and\":",
        "\"not\":",
        "\"is_true\":",
        "\"at_least\": 1, \"of\":",
        "\"term\": \"exists(a, x -> x > 1)\"",
        "\"operator\": \"truth\"",
        "{\"term\": \"lower(a)\", \"operator\": \"truth\"}",
        "{\"term\": \"lower(a)\", \"operator\": \"array_contains\", \"operands\": [\"x\"]}",
        "null",
        "{\"$float\": \"NaN\"}",
        "1e999",
        "-0.0",
        "\\ud800",
        ",",
    ];
    fuzz(&seeds, &words, |input| {
        let Ok(text) = std::str::from_utf8(input) else { return false };
        json::from_json(text).is_ok_and(|expr| {
            round_trip(&expr, &json::to_json(&expr), json::from_json);
            round_trip(&expr, &expr.to_string(), parse);
            true
        })
    });
}

#[test]
fn events_as_json() {
    let seeds = bytes(&[
        r#"{"age": 27, "address": {"city": "Geneva\u00e9"}, "tags": ["a", null], "x": -1.5e3}"#,
        r#"{"hours": {"$interval": [20, 30]}, "t": {"$timestamp": "2026-01-31T12:00:00Z"}, "n": {"$float": "NaN"}}"#,
        r#"{"$event": {"a.b": true}, "$weights": {"a.b": 0.6}}"#,
        r#"{"deep": [[["x"], {"a": [[1], {}]}], []], "d": {"$decimal": "1234567890123456789.5"}, "m": [1, "a"]}"#,
        r#"{"items": [{"sku": "A", "parts": [{"price": 7}, null], "of": {"x": 1.5}}, null], "at": {"$where": "> 15"}}"#,
    ]);
    let words = [
        "{",
        "}",
        "[",
        "]",
        "\"",
        ":",
        ",",
        "null",
        "{\"$interval\": [",
        "{\"$float\": \"",
        "{\"$decimal\": \"1",
        "[[[[[[[[[[[[[[[[[[[[[[[[[[",
        "]]]]]]]]]]]]]]]]]]]]]]]]]]",
        "{\"a\": [{\"a\": [",
        "]}]}",
        "\\ud83e\\udd80",
        "1e999",
    ];
    fuzz(&seeds, &words, |input| {
        read_record(input).is_ok_and(|record| {
            round_trip(&record, &write(&record), |text| read_record(text.as_bytes()));
            true
        })
    });
}

#[test]
fn snapshots() {
    let seeds = [0usize, 3, 40].map(|count| {
        let mut writer = SnapshotWriter::in_memory();
        for at in 0..count {
            writer
                .section(&format!("section-{at}"), &vec![at as u64; at * 7])
                .expect("it is written to memory");
        }
        writer.finish(count as u64).expect("it is written to memory")
    });
    fuzz(&seeds, &["\0\0\0\0", "section-"], |input| {
        fuzz_snapshot(input);
        Snapshot::from_bytes(input.to_vec()).is_ok()
    });
}
