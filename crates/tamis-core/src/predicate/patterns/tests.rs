//! Against the definition: every predicate asked on its own.

use proptest::prelude::*;

use super::*;

/// The ids that must be reported as true and as candidates, sorted.
fn by_definition(shapes: &[(u32, TextShape)], text: &str) -> (Vec<u32>, Vec<u32>) {
    let (mut satisfied, mut candidates) = (vec![], vec![]);
    for (id, shape) in shapes {
        match shape {
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
    patterns.satisfied(text, &mut |id| satisfied.push(id), &mut |id| candidates.push(id));
    satisfied.sort_unstable();
    candidates.sort_unstable();
    (satisfied, candidates)
}

#[track_caller]
fn assert_as_defined(shapes: &[(u32, TextShape)], texts: &[&str]) {
    let patterns = Patterns::new(shapes.to_vec());
    for text in texts {
        assert_eq!(reported(&patterns, text), by_definition(shapes, text), "for {text:?}");
    }
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
        TextShape::Prefix("".into()),
        TextShape::Suffix("".into()),
        TextShape::Substring("".into()),
        TextShape::Literals(strings(["", "x"])),
        TextShape::Literals(vec![]),
        TextShape::Opaque,
    ]);
    assert_as_defined(&shapes, &["", "x", "text"]);
    assert_eq!(reported(&Patterns::new(shapes), ""), (vec![7, 10, 13], vec![16, 22]));
}

#[test]
fn equal_and_nested_patterns_are_all_reported() {
    let nested = ["a", "ab", "abc", "abcd", "b", "bc", "abc", "a", "\u{e9}", "\0", "a\0"];
    let shapes = nested.iter().flat_map(|&text| {
        [
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
    outer.satisfied("abc", &mut |id| answers.push((id, reported(&inner, "abc").0)), &mut |_| {});
    answers.sort();
    assert_eq!(answers, [(5, vec![1, 2]), (6, vec![1, 2])]);
}

#[test]
fn a_huge_literal_among_many_short_ones_stays_small() {
    let nested = (1..=1000).map(|len| TextShape::Substring("a".repeat(len)));
    let patterns = Patterns::new(numbered(nested.chain([TextShape::Substring("a".repeat(1_000_000))])));
    let bytes = patterns.heap_bytes();
    assert!((1_500_000..4_000_000).contains(&bytes), "{bytes} bytes");
    assert_eq!(reported(&patterns, &"a".repeat(500)).0.len(), 500);
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
        for text in texts {
            let text = text.concat();
            prop_assert_eq!(reported(&patterns, &text), by_definition(&shapes, &text), "for {:?}", text);
        }
    }
}
