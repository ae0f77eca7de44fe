//! The scan accepts what the byte-by-byte reader accepts, and its tokens are where that reader would go.

use proptest::prelude::*;

use super::super::cursor::{ByteCursor, Cursor};
#[cfg(target_arch = "x86_64")]
use super::super::simd::{Avx2, Avx512, with_avx2, with_avx512};
use super::*;

/// The judge: reading byte by byte.
fn is_object(text: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(text) else { return false };
    let mut cursor = ByteCursor::new(text);
    cursor.peek() == Some(b'{') && cursor.skip().is_ok() && cursor.peek().is_none()
}

/// The scan with each kind of lanes that this processor has.
fn scans(text: &[u8]) -> Vec<(bool, Structure)> {
    let mut found = vec![];
    let mut chosen = Structure::default();
    if text.iter().find(|byte| !is_white(**byte)) != Some(&b'{') {
        assert!(chosen.scan(text, Skipped::Checked).is_none());
        return found;
    }
    #[cfg(target_arch = "x86_64")]
    {
        let accepts = |scanned: Option<Bytes>| match scanned {
            Some(Bytes::Ascii) => text.is_ascii(),
            Some(Bytes::Other) => std::str::from_utf8(text).is_ok(),
            None => false,
        };
        if let Some(lanes) = Avx512::find() {
            let mut into = Structure { lanes: Some(Found::Avx512(lanes)), ..Structure::default() };
            let scanned = with_avx512(Scan::<true> { text, into: &mut into }, lanes);
            found.push((accepts(scanned), into));
        }
        if let Some(lanes) = Avx2::find() {
            let mut into = Structure { lanes: Some(Found::Avx2(lanes)), ..Structure::default() };
            let scanned = with_avx2(Scan::<true> { text, into: &mut into }, lanes);
            found.push((accepts(scanned), into));
        }
        let scanned = chosen.scan(text, Skipped::Checked);
        assert!(scanned.is_none_or(|scanned| scanned.as_bytes() == text));
        found.push((scanned.is_some(), chosen));
    }
    found
}

/// Every promise about a text.
fn check(text: &[u8]) {
    let expected = is_object(text);
    for (accepted, structure) in scans(text) {
        assert_eq!(accepted, expected, "{:?}", String::from_utf8_lossy(text));
        if accepted {
            let tokens = structure.gathered(std::str::from_utf8(text).expect("it was accepted"));
            check_tokens(text, tokens);
        }
    }
    let mut unchecked = Structure::default();
    let is_scanned = unchecked.scan(text, Skipped::Unchecked).is_some();
    if expected {
        assert_eq!(is_scanned, cfg!(target_arch = "x86_64"));
    }
    if is_scanned && expected {
        check_tokens(text, unchecked.marked(std::str::from_utf8(text).expect("it was scanned")));
    }
}

/// Of a text that is JSON: tokens are where they are, and brackets have partners.
fn check_tokens(text: &[u8], tokens: impl Tokens) {
    let (mut open, mut at, mut next) = (vec![], 0, tokens.first());
    while at < text.len() {
        let start = at;
        at += 1;
        match text[start] {
            byte if is_white(byte) => continue,
            b'"' => {
                while text[at] != b'"' {
                    at += 1 + usize::from(text[at] == b'\\');
                }
                at += 1;
            }
            b'{' | b'[' => open.push(next),
            b'}' | b']' => assert_eq!(tokens.closing_of(open.pop().unwrap()), Some(next)),
            b':' | b',' => {}
            _ => {
                let is_inside = |byte: &u8| byte.is_ascii_alphanumeric() || b"+-.".contains(byte);
                at += text[at..].iter().take_while(|byte| is_inside(byte)).count();
            }
        }
        let found = (tokens.byte(next), tokens.place(next));
        assert_eq!(found, (Some(text[start]), start), "{:?}", String::from_utf8_lossy(text));
        next = tokens.after(next);
    }
    assert_eq!((tokens.byte(next), tokens.place(next)), (None, text.len()));
}

/// Values that are JSON.
const VALUES: [&str; 45] = [
    "0",
    "-0",
    "1",
    "-1",
    "10",
    "123456789012345678901234567890",
    "0.0",
    "-0.0",
    "1.5",
    "0e0",
    "0E+0",
    "1e-9",
    "1.25e+300",
    "-0.000001E-10",
    "1e999",
    "true",
    "false",
    "null",
    "\"\"",
    "\"a\"",
    "\"\\\"\"",
    "\"\\\\\"",
    "\"\\\\\\\"\"",
    "\"\\/\\b\\f\\n\\r\\t\"",
    "\"\\u0000\"",
    "\"\\uD83D\\uDE00\"",
    "\"\\u00e9\"",
    "\"é😀\u{7f}\"",
    "\"{}[]:,\"",
    "\"\\\\{\\\\\"",
    "{}",
    "[]",
    "{ }",
    "[ ]",
    "[1]",
    "[[]]",
    "[{}]",
    "{\"a\":{}}",
    "[1,\"a\",null,{\"b\":[true]}]",
    "[\"a\" , \"b\"]",
    "{\"a\":1,\"b\":\"c\"}",
    "{\"\":\"\"}",
    "[[[[[[]]]]]]",
    "[{\"a\":[{\"b\":[{}]}]}]",
    "\"true\"",
];

/// Values that are not.
const WRONG: [&str; 88] = [
    "",
    ",",
    ":",
    "]",
    "}",
    "01",
    "-01",
    "00",
    "-",
    "+1",
    ".5",
    "1.",
    "1.e5",
    "1e",
    "1e+",
    "1e1.5",
    "1e5e5",
    "1.2.3",
    "1.5e3.2",
    "-.5",
    "--1",
    "1-2",
    "1+2",
    "0x1",
    "1a",
    "e5",
    "1e5-",
    "١",
    "Infinity",
    "NaN",
    "-Infinity",
    "tru",
    "truee",
    "true1",
    "1true",
    "nul",
    "nulll",
    "True",
    "fals",
    "falsé",
    "'a'",
    "\"",
    "\"a",
    "\"\\\"",
    "\"\\x\"",
    "\"\\u12\"",
    "\"\\u12G4\"",
    "\"\\uD800\"",
    "\"\\uDC00\"",
    "\"\\uD800\\u0041\"",
    "\"\\uD800\\n\"",
    "\"\t\"",
    "\"\n\"",
    "\"\u{0}\"",
    "\"\u{1f}\"",
    "\"a\"\"b\"",
    "\"a\" \"b\"",
    "\"a\"1",
    "1\"a\"",
    "1 2",
    "[1 2]",
    "[1,]",
    "[,1]",
    "[,]",
    "[1,,2]",
    "[1:2]",
    "[\"a\":1]",
    "[1}",
    "{1]",
    "[",
    "{",
    "[[]",
    "{\"a\"}",
    "{\"a\":}",
    "{\"a\" 1}",
    "{:1}",
    "{1:1}",
    "{a:1}",
    "{\"a\":1,}",
    "{,}",
    "{\"a\":1 \"b\":2}",
    "{\"a\":1:2}",
    "{\"a\":\"b\":\"c\"}",
    "{\"a\",\"b\"}",
    "{null:1}",
    "{\"a\":1}}",
    "\\\"a\\\"",
    "/*1*/1",
];

#[test]
fn values_are_told_from_what_is_none_at_every_place_of_a_block() {
    for (values, expected) in [(&VALUES[..], true), (&WRONG[..], false)] {
        for value in values {
            for frame in [
                "{\"n\":@}",
                "{ \"n\" : @ }",
                "{\"n\":[@]}",
                "{\"n\":[ 0 , @ , 1 ] }",
                "{\"o\":{\"m\":1,\"n\":@,\"z\":[]}}",
            ] {
                let text = frame.replace('@', value);
                // Two closing brackets inside a frame may end it, and `,` may continue it.
                assert!(is_object(text.as_bytes()) == expected || !expected, "{text}");
                for shift in 0..=2 * WIDTH {
                    check(format!("{}{text}", " ".repeat(shift)).as_bytes());
                    check(format!("{{\"{}\":1,{}", "x".repeat(shift), &text[1..]).as_bytes());
                    check(format!("{text}{}", "\n".repeat(shift)).as_bytes());
                }
            }
        }
    }
}

#[test]
fn every_short_row_of_tokens_is_judged_alike() {
    const TOKENS: [&str; 8] = ["{", "}", "[", "]", ":", ",", "\"a\"", "1"];
    const LONGEST: u32 = 4;
    for length in 0..=LONGEST {
        for number in 0..TOKENS.len().pow(length) {
            let digits = (0..length).map(|at| number / TOKENS.len().pow(at) % TOKENS.len());
            let row: String = digits.map(|digit| TOKENS[digit]).collect();
            check(format!("{{{row}}}").as_bytes());
            check(format!("{{\"n\":{row}}}").as_bytes());
            check(format!("{{\"n\":[{row}]}}").as_bytes());
            check(format!("{{\"n\":[{{\"m\":1{row}}},2]}}").as_bytes());
        }
    }
}

#[test]
fn white_space_and_backslashes_run_across_blocks() {
    for length in 0..3 * WIDTH {
        for white in [" ", "\n", "\r", "\t"] {
            let white = white.repeat(length);
            for text in [
                "{@\"a\"@:@1@,@\"b\"@:@[@{@}@,@2@]@}@",
                "@{@}",
                "{@\"a\"@1}",
                "{\"a\":1@,@}",
                "{\"a\":[1@2]}",
            ] {
                check(text.replace('@', &white).as_bytes());
            }
        }
        for ending in ["\"}", "\\\"}", "n\"}", "\"", "u0041\"}", "\":\"x\"}"] {
            check(format!("{{\"a\":\"{}{ending}", "\\".repeat(length)).as_bytes());
            check(format!("{{\"a\":\"x{}{ending}", "\\".repeat(length)).as_bytes());
            check(format!("{{\"a\":\"{}\\{ending}", "é".repeat(length)).as_bytes());
        }
        let digits = "7".repeat(length);
        for number in
            ["@", "-@", "0.@", "1@.@", "1e@", "1e-@", "1@.@e@", "0@", "1.@.1", "1e@e1", "1e@.1", "@a"]
        {
            check(format!("{{\"a\":{}}}", number.replace('@', &digits)).as_bytes());
            check(format!("{{\"a\":[{} ]}}", number.replace('@', &digits)).as_bytes());
        }
    }
}

#[test]
fn brackets_may_be_nested_to_any_depth() {
    for depth in [1, 2, 31, 62, 63, 64, 65, 127, 128, 129, 200, 1000] {
        for (open, close) in [("[", "]"), ("{\"a\":", "}"), ("[{\"a\":", "}]")] {
            let nested = |open: &str, close: &str, inner: &str| {
                format!("{{\"n\":{}{inner}{}}}", open.repeat(depth), close.repeat(depth))
            };
            check(nested(open, close, "1").as_bytes());
            check(nested(open, close, "").as_bytes());
            check(nested(open, close, "]").as_bytes());
            check(nested(open, close, "{}").as_bytes());
            let good = nested(open, close, "1");
            check(&good.as_bytes()[..good.len() - 1]);
            check(format!("{good}}}").as_bytes());
            // The wrong kind of bracket at each depth.
            for at in (0..good.len()).filter(|at| matches!(good.as_bytes()[*at], b']' | b'}')).step_by(7) {
                let mut bad = good.clone().into_bytes();
                bad[at] = if bad[at] == b']' { b'}' } else { b']' };
                check(&bad);
            }
        }
    }
}

#[test]
fn blocks_may_be_full_of_brackets() {
    for depth in [1, 2, 63, 64, 65, 66, 127, 128, 129, 191, 192, 193, 300] {
        for closed in [0, 1, 62, 63, 64, 65, 128, 300] {
            for shift in [0, 1, 31, 57, 58, 59, 60, 63] {
                let white = " ".repeat(shift);
                let (open, close) = ("[".repeat(depth), "]".repeat(depth));
                // As many as there are, fewer, and more than there are.
                check(format!("{white}{{\"n\":{open}{close}}}").as_bytes());
                check(format!("{white}{{\"n\":{open}{}}}", "]".repeat(closed)).as_bytes());
                check(format!("{white}{{\"n\":{open}{white}{close}{}", "}".repeat(closed)).as_bytes());
                check(format!("{white}{}", "{".repeat(depth) + &"}".repeat(closed)).as_bytes());
                let pairs = "[],".repeat(depth);
                check(format!("{white}{{\"n\":[{pairs}{{}}]}}").as_bytes());
                check(format!("{white}{{\"n\":[{pairs}{{]]}}").as_bytes());
            }
        }
    }
}

#[test]
fn only_white_space_follows_the_last_bracket() {
    for text in ["{}", "{\"a\":[{}]}"] {
        for rest in [
            ",",
            ",{}",
            "{}",
            "[]",
            "]",
            "}",
            "1",
            "\"a\"",
            ":1",
            ",\"a\":1",
            ",\"a\":{}}",
            ",1",
            "[",
            "{",
            "\0",
        ] {
            for shift in 0..=WIDTH {
                let white = "\t".repeat(shift);
                check(format!("{white}{text}{rest}").as_bytes());
                check(format!("{text}{white}{rest}").as_bytes());
                check(format!("{text}{rest}{white}").as_bytes());
            }
        }
    }
}

#[test]
fn a_text_leaves_nothing_to_the_next() {
    let deep = |depth: usize| format!("{{\"n\":{}{}}}", "[{\"a\":".repeat(depth) + "1", "}]".repeat(depth));
    let mut structure = Structure::default();
    for depth in [300, 3, 100, 0] {
        for text in [
            deep(depth),
            format!("{{\"n\":{}", "{\"a\":[".repeat(depth)),
            "{]".into(),
            "{}]".into(),
            "{\"a\":[1,2]}".into(),
            "{\"a\":{1,2}}".into(),
            "{\"a\":\"".into(),
            "{\"a\":1e".into(),
            "{\"a\":1}".into(),
        ] {
            let accepted = structure.scan(text.as_bytes(), Skipped::Checked).is_some();
            assert!(accepted == is_object(text.as_bytes()) || !cfg!(target_arch = "x86_64"), "{text}");
        }
    }
}

#[test]
fn what_is_not_utf8_is_refused() {
    for bytes in
        [&b"\x80"[..], b"\xc3", b"\xff", b"\xed\xa0\x80", b"\xc0\xaf", b"\xf4\x90\x80\x80", b"\xc3\xa9"]
    {
        for shift in 0..WIDTH {
            let mut text = format!("{{\"{}", "x".repeat(shift)).into_bytes();
            text.extend(bytes);
            text.extend(b"\":1}");
            check(&text);
            let mut outside = format!("{{\"a\":{}", " ".repeat(shift)).into_bytes();
            outside.extend(bytes);
            outside.extend(b"1}");
            check(&outside);
            outside = b"{}".to_vec();
            outside.extend(std::iter::repeat_n(b' ', shift));
            outside.extend(bytes);
            check(&outside);
        }
    }
}

/// Pieces that often meet in JSON, and often should not.
fn pieces() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "{",
        "}",
        "[",
        "]",
        ":",
        ",",
        "\"",
        "\\",
        "\"a\"",
        "\"b\":",
        "\"c\": ",
        " ",
        "\n",
        "1",
        "-",
        "0",
        ".5",
        "e",
        "E+3",
        "12.25",
        "true",
        "false",
        "null",
        "t",
        "\\u00e9",
        "\\ud83d",
        "\\ude00",
        "\\\\",
        "é",
        "\t",
        "\u{1}",
        "{}",
        "[]",
        ", ",
        "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
        "          ",
    ]);
    prop::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat())
}

fn value() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        prop::sample::select(&VALUES[..]).prop_map(String::from),
        any::<f64>().prop_map(|x| if x.is_finite() { format!("{x:e}") } else { "0".into() }),
        "\\PC{0,70}".prop_map(|text| serde_json::Value::from(text).to_string()),
    ];
    leaf.prop_recursive(5, 40, 6, |inner| {
        let member = (prop::sample::select(vec!["a", "bb", "é\\n", ""]), inner.clone());
        prop_oneof![
            (prop::collection::vec(inner, 0..6), prop::sample::select(vec![",", ", ", " ,\n"]))
                .prop_map(|(items, comma)| format!("[{}]", items.join(comma))),
            (prop::collection::vec(member, 0..6), prop::sample::select(vec![":", ": ", " :\t"])).prop_map(
                |(members, colon)| {
                    let members: Vec<_> = members
                        .into_iter()
                        .map(|(name, value)| format!("\"{name}\"{colon}{value}"))
                        .collect();
                    format!("{{{}}}", members.join(","))
                }
            ),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn pieces_of_json_are_judged_alike(pieces in pieces(), shift in 0usize..70) {
        check(pieces.as_bytes());
        check(format!("{{{}{pieces}}}", " ".repeat(shift)).as_bytes());
        check(format!("{{\"{}\":{pieces}}}", "x".repeat(shift)).as_bytes());
        check(format!("{{\"a\":[{}{pieces}]}}", " ".repeat(shift)).as_bytes());
    }

    #[test]
    fn good_json_is_accepted(value in value(), shift in 0usize..130) {
        let text = format!("{{{}\"n\":{value}}}", " ".repeat(shift));
        prop_assert!(is_object(text.as_bytes()));
        check(text.as_bytes());
    }

    #[test]
    fn damaged_json_is_judged_alike(
        value in value(), at in any::<prop::sample::Index>(), byte in prop_oneof![
            any::<u8>(), prop::sample::select(b"{}[]:,\"\\ 0123456789.eE+-tfnu\n".to_vec())
        ], how in 0..4,
    ) {
        let mut text = format!("{{\"n\":{value}}}").into_bytes();
        let at = at.index(text.len());
        match how {
            0 => text[at] = byte,
            1 => text.insert(at, byte),
            2 => drop(text.remove(at)),
            _ => text.truncate(at),
        }
        check(&text);
    }

    #[test]
    fn any_bytes_are_judged_alike(mut text in prop::collection::vec(any::<u8>(), 0..200)) {
        check(&text);
        text.insert(0, b'{');
        check(&text);
    }
}

#[test]
fn room_for_very_many_tokens_is_not_kept() {
    let small = format!("{{\"a\":[{}0]}}", "0,".repeat(1_000));
    let large = format!("{{\"a\":[{}0]}}", "0,".repeat(MOST_KEPT));
    for (accepted, structure) in scans(small.as_bytes()) {
        assert!(accepted && !structure.is_large());
    }
    for (accepted, structure) in scans(large.as_bytes()) {
        assert!(accepted && structure.is_large());
    }
}

/// Places of two bytes start again every 65,536 bytes, wherever that is.
#[test]
fn long_texts_have_their_tokens_where_they_are() {
    let values = r#"{"a": true, "b": [-1.5, null, "\u00e9 \\"]}, false, "#;
    for white in [0, 1, SEGMENT - 2, SEGMENT, 2 * SEGMENT + 1] {
        for repeated in [1, SEGMENT / values.len(), 3 * SEGMENT / values.len()] {
            let values = values.repeat(repeated);
            let text = format!("{}{{\"n\": [{values}0]}}", " ".repeat(white));
            assert!(is_object(text.as_bytes()));
            check(text.as_bytes());
            for (right, wrong) in
                [("false, 0", "falsy, 0"), ("\\u00e9 \\\\\"]}, false, 0", "\\u00eg \\\\\"]}, false, 0")]
            {
                check(text.replace(right, wrong).as_bytes());
            }
        }
        // All of it but the end of one string, and white space.
        check(format!("{{\"n\": \"{}\"{}}}", "x".repeat(SEGMENT), " ".repeat(white)).as_bytes());
    }
}
