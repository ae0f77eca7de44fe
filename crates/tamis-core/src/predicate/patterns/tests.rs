//! Compares the index with separate evaluation of every predicate.

use proptest::prelude::*;

use super::*;
use crate::expr::operators::Shape;

/// The ids that must be reported as true and as candidates, sorted.
fn by_definition(shapes: &[(u32, TextShape)], text: &str) -> (Vec<u32>, Vec<u32>) {
    let (mut satisfied, mut candidates) = (vec![], vec![]);
    for (id, shape) in shapes {
        match shape {
            TextShape::Whole(whole) if text == whole => satisfied.push(*id),
            TextShape::Prefix(prefix) if text.starts_with(prefix) => satisfied.push(*id),
            TextShape::Suffix(suffix) if text.ends_with(suffix) => satisfied.push(*id),
            TextShape::Substring(part) if text.contains(part) => satisfied.push(*id),
            TextShape::Literals(parts) if parts.iter().any(|part| text.contains(part)) => {
                candidates.push(*id)
            }
            TextShape::Opaque => candidates.push(*id),
            _ => {}
        }
    }
    satisfied.sort_unstable();
    candidates.sort_unstable();
    (satisfied, candidates)
}

/// What is reported, sorted; an id that is reported twice is there twice.
fn reported(patterns: &Patterns, text: &str) -> (Vec<u32>, Vec<u32>) {
    let (mut satisfied, mut candidates) = (vec![], vec![]);
    patterns.satisfied(text, &mut |id, answer| match answer {
        Answer::True => satisfied.push(id),
        Answer::Candidate => candidates.push(id),
    });
    satisfied.sort_unstable();
    candidates.sort_unstable();
    (satisfied, candidates)
}

#[track_caller]
fn assert_as_defined(shapes: &[(u32, TextShape)], texts: &[&str]) {
    let patterns = Patterns::new(shapes.to_vec());
    let restored = stored_and_restored(&patterns, shapes);
    for text in texts {
        assert_eq!(reported(&patterns, text), by_definition(shapes, text), "for {text:?}");
        assert_eq!(reported(&restored, text), by_definition(shapes, text), "restored, for {text:?}");
    }
}

fn arrays_of(patterns: &Patterns) -> ArraysReader {
    let mut out = ArraysWriter::default();
    patterns.store(&mut out);
    ArraysReader { numbers: out.numbers.into(), wide: out.wide.into(), bytes: out.bytes.into() }
}

/// As a snapshot would give it back.
fn stored_and_restored(patterns: &Patterns, shapes: &[(u32, TextShape)]) -> Patterns {
    let mut arrays = arrays_of(patterns);
    let ids = shapes.iter().map(|(id, _)| id + 1).max().unwrap_or(0);
    let restored = Patterns::restore(&mut arrays, ids).expect("what was stored is consistent");
    assert!(arrays.is_empty());
    restored
}

fn numbered(shapes: impl IntoIterator<Item = TextShape>) -> Vec<(u32, TextShape)> {
    // Ids need not be dense.
    (7..).step_by(3).zip(shapes).collect()
}

fn strings<const N: usize>(texts: [&str; N]) -> Vec<String> {
    texts.map(String::from).to_vec()
}

#[test]
fn no_predicates_report_nothing() {
    assert_eq!(reported(&Patterns::new([]), "text"), (vec![], vec![]));
    assert_eq!(reported(&Patterns::default(), ""), (vec![], vec![]));
}

#[test]
fn empty_patterns_are_in_every_text() {
    let shapes = numbered([
        TextShape::Whole("".into()),
        TextShape::Prefix("".into()),
        TextShape::Suffix("".into()),
        TextShape::Substring("".into()),
        TextShape::Literals(strings(["", "x"])),
        TextShape::Literals(vec![]),
        TextShape::Opaque,
    ]);
    assert_as_defined(&shapes, &["", "x", "text"]);
    assert_eq!(reported(&Patterns::new(shapes), ""), (vec![7, 10, 13, 16], vec![19, 25]));
}

#[test]
fn equal_and_nested_patterns_are_all_reported() {
    let nested = ["a", "ab", "abc", "abcd", "b", "bc", "abc", "a", "\u{e9}", "\0", "a\0"];
    let shapes = nested.iter().flat_map(|&text| {
        [
            TextShape::Whole(text.into()),
            TextShape::Prefix(text.into()),
            TextShape::Suffix(text.into()),
            TextShape::Substring(text.into()),
            TextShape::Literals(strings([text, text, "zz"])),
        ]
    });
    let texts = ["", "a", "ab", "abb", "abd", "abcd", "xabcx", "dcba", "zz", "é", "è", "a\0b", "\0", "aaaa"];
    assert_as_defined(&numbered(shapes), &texts);
}

#[test]
fn long_literals_are_found_behind_their_head() {
    let head = "0123456789abcdef".repeat(4);
    let lengthened = |tail: &str| head.clone() + tail;
    let shapes = numbered([
        TextShape::Substring(head.clone()),
        TextShape::Substring(lengthened("x")),
        TextShape::Substring(lengthened("xy")),
        TextShape::Substring(lengthened("z")),
        TextShape::Substring(head[..63].into()),
        TextShape::Substring("a".repeat(65)),
        TextShape::Literals(vec![lengthened("xy"), "q".repeat(1000)]),
    ]);
    let texts = [
        head.clone(),
        lengthened("x"),
        lengthened("xyz"),
        lengthened("") + &lengthened("z"), // the second occurrence of the head decides
        head[1..].to_string(),
        "a".repeat(64),
        "a".repeat(200),
        "q".repeat(999),
        "q".repeat(1001),
    ];
    assert_as_defined(&shapes, &texts.each_ref().map(String::as_str));
}

#[test]
fn a_callback_may_ask_again() {
    let inner = Patterns::new([(1, TextShape::Substring("b".into())), (2, TextShape::Suffix("c".into()))]);
    let outer =
        Patterns::new([(5, TextShape::Substring("a".into())), (6, TextShape::Substring("ab".into()))]);
    let mut answers = vec![];
    outer.satisfied("abc", &mut |id, _| answers.push((id, reported(&inner, "abc").0)));
    answers.sort();
    assert_eq!(answers, [(5, vec![1, 2]), (6, vec![1, 2])]);
}

#[test]
fn a_huge_literal_among_many_short_ones_stays_small() {
    let nested = (1..=1000).map(|len| TextShape::Substring("a".repeat(len)));
    let patterns = Patterns::new(numbered(nested.chain([TextShape::Substring("a".repeat(1_000_000))])));
    assert_eq!(reported(&patterns, &"a".repeat(500)).0.len(), 500);
    let bytes = patterns.heap_bytes();
    assert!((1_500_000..6_000_000).contains(&bytes), "{bytes} bytes");
}

#[test]
fn ten_thousand_literals_are_told_apart() {
    // Most differ in a digit only; some share every gram with many others, and go to the automaton.
    let words = (0..10_000).map(|number| match number % 4 {
        0 => format!("\\Windows\\System32\\tool{number}.exe"),
        1 => format!("user{number}"),
        2 => "ab".repeat(3 + number / 1000) + &"c".repeat(number % 1000 / 4),
        _ => format!("{number:x}"),
    });
    let words: Vec<String> = words.collect();
    let shapes = numbered(words.iter().map(|word| TextShape::Substring(word.clone())));
    let mut texts: Vec<String> = words.iter().step_by(997).map(|word| format!("x{word}y")).collect();
    texts.push(words[..400].concat());
    texts.push("ab".repeat(40) + &"c".repeat(300));
    let patterns = Patterns::new(shapes.clone());
    let restored = stored_and_restored(&patterns, &shapes);
    for text in &texts {
        let expected = by_definition(&shapes, text);
        assert_eq!(reported(&patterns, text), expected, "for {text:?}");
        assert_eq!(reported(&restored, text), expected, "restored, for {text:?}");
    }
}

/// What finds a pattern in lower case is the text in lower case, whatever its letters.
#[test]
fn lower_case_is_that_of_the_whole_text() {
    let parts = ["ς", "σ", "k", "i\u{307}", "ss", "ß", "é", "e\u{301}", "ab"];
    let shapes = (0..).zip(parts.map(|part| Shape::LowerCase(TextShape::Substring(part.into()))));
    let predicates = TextPredicates::new(shapes);
    for text in ["ΟΔΟΣ", "ΣΑ", "\u{212a}", "İ", "STRASSE", "ẞ", "É", "E\u{301}", "xABx", "", "ΟΔΟΣ ΣΟΣ AB"]
    {
        let mut found = vec![];
        predicates.satisfied(text, &mut |id, candidate| {
            assert!(candidate.is_none());
            found.push(id);
        });
        found.sort_unstable();
        let lower = text.to_lowercase();
        let expected: Vec<u32> =
            (0..).zip(parts).filter(|(_, part)| lower.contains(part)).map(|(id, _)| id).collect();
        assert_eq!(found, expected, "for {text:?}");
    }
}

#[test]
fn arrays_of_another_shape_are_refused() {
    let shapes = numbered([
        TextShape::Whole("w".into()),
        TextShape::Prefix("ab".into()),
        TextShape::Prefix("abc".into()),
        TextShape::Suffix("z".into()),
        TextShape::Substring("needle".into()),
        TextShape::Substring("x".into()),
        TextShape::Literals(strings(["one", "three"])),
        TextShape::Opaque,
    ]);
    let crowd = (1..60).map(|len| TextShape::Substring("a".repeat(len)));
    let shapes = numbered(shapes.into_iter().map(|(_, shape)| shape).chain(crowd));
    let ids = shapes.last().unwrap().0 + 1;
    let good = arrays_of(&Patterns::new(shapes));
    assert!(Patterns::restore(&mut good.clone(), ids).is_some());
    assert!(Patterns::restore(&mut good.clone(), 10).is_none(), "ids are too large");
    // One number changed: refused, or harmless for every text.
    for at in 0..good.numbers.len() {
        for change in [0, 1, 7, u32::MAX] {
            let mut numbers = good.numbers.to_vec();
            numbers[at] = change;
            let mut arrays = ArraysReader { numbers: numbers.into(), ..good.clone() };
            if let Some(patterns) = Patterns::restore(&mut arrays, ids) {
                for text in ["abc", "needle in x one", "aaaaaaaaaaaaaaaaaaaaaaaaaa", ""] {
                    assert!(reported(&patterns, text).0.iter().all(|id| *id < ids));
                }
            }
        }
    }
}

/// A few letters, so that patterns overlap, nest and occur; long repeats to pass the length of a head.
fn piece() -> impl Strategy<Value = String> {
    prop_oneof![
        8 => "[ab]{0,6}",
        2 => "[abé\u{0}]{0,12}",
        1 => ("[ab]{1,3}", 20..60usize).prop_map(|(text, times)| text.repeat(times)),
    ]
}

fn shape() -> impl Strategy<Value = TextShape> {
    prop_oneof![
        1 => piece().prop_map(TextShape::Whole),
        3 => piece().prop_map(TextShape::Prefix),
        3 => piece().prop_map(TextShape::Suffix),
        3 => piece().prop_map(TextShape::Substring),
        2 => prop::collection::vec(piece(), 0..4).prop_map(TextShape::Literals),
        1 => Just(TextShape::Opaque),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn patterns_report_what_the_definition_says(
        shapes in prop::collection::vec(shape(), 0..150),
        texts in prop::collection::vec(prop::collection::vec(piece(), 0..4), 1..8),
    ) {
        let shapes = numbered(shapes);
        let patterns = Patterns::new(shapes.clone());
        let restored = stored_and_restored(&patterns, &shapes);
        for text in texts {
            let text = text.concat();
            let expected = by_definition(&shapes, &text);
            prop_assert_eq!(&reported(&patterns, &text), &expected, "for {:?}", text);
            prop_assert_eq!(&reported(&restored, &text), &expected, "restored, for {:?}", text);
        }
    }
}
