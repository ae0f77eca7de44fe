//! Random paths and documents over small alphabets, so that many of them match.

use proptest::prelude::*;

/// The text of a path, often with weights.
pub fn scored_path() -> impl Strategy<Value = String> {
    (path(), prop::collection::vec(0..12u32, 0..20)).prop_map(|(path, weights)| {
        // A weight may follow any bracket or parenthesis that is not inside of a NOT, and any name of a step.
        let mut scored = path.clone();
        let mut insert_from = 0;
        for weight in weights {
            let ends = |at: usize| scored[..at].ends_with([']', 'a', 'b', 'c', '*', 'x', 'y', ')']);
            let places: Vec<usize> = (insert_from..=scored.len()).filter(|at| ends(*at)).collect();
            let Some(place) = places.get(weight as usize % places.len().max(1)) else { break };
            let inserted = format!("{}^{}{}", &scored[..*place], f64::from(weight) / 4.0, &scored[*place..]);
            insert_from = *place + inserted.len() - scored.len();
            if crate::Path::parse(&inserted).is_ok() {
                scored = inserted;
            }
        }
        scored
    })
}

/// The text of a path.
pub fn path() -> impl Strategy<Value = String> {
    prop::collection::vec(step(2), 1..5).prop_map(|steps| steps.concat()).prop_flat_map(|steps| {
        prop_oneof![
            5 => Just(steps.clone()),
            1 => Just(format!("{steps}/@x")),
            1 => Just(format!("{steps}//@*[. = '1']")),
            1 => Just(format!("{steps}/text()")),
            1 => Just("//@y".to_string()),
            1 => Just("/text()".to_string()),
        ]
    })
}

fn name() -> impl Strategy<Value = &'static str> {
    prop_oneof![4 => Just("a"), 2 => Just("b"), 1 => Just("c"), 1 => Just("*"), 1 => Just("Q{u}a"), 1 => Just("Q{u}*")]
}

fn step(nesting: u32) -> BoxedStrategy<String> {
    let conditions = match nesting {
        0 => Just(String::new()).boxed(),
        _ => {
            prop_oneof![3 => Just(String::new()), 2 => condition(nesting - 1).prop_map(|c| format!("[{c}]"))]
                .boxed()
        }
    };
    (prop_oneof![Just("/"), Just("//")], name(), conditions.clone(), conditions)
        .prop_map(|(slashes, name, first, second)| format!("{slashes}{name}{first}{second}"))
        .boxed()
}

fn relative(nesting: u32) -> BoxedStrategy<String> {
    prop_oneof![
        2 => Just(".".to_string()),
        2 => prop_oneof![Just("@x"), Just("@y"), Just("@*"), Just("text()"), Just(".//text()"), Just(".//@x")].prop_map(str::to_string),
        4 => prop::collection::vec(step(nesting), 1..3).prop_map(|steps| format!(".{}", steps.concat())),
        1 => prop::collection::vec(step(nesting), 1..3).prop_map(|steps| format!(".{}/@x", steps.concat())),
    ]
    .boxed()
}

fn condition(nesting: u32) -> BoxedStrategy<String> {
    let comparison = prop_oneof![Just("="), Just("!="), Just("<"), Just("<="), Just(">"), Just(">=")];
    let literal =
        prop_oneof![Just("1"), Just("2"), Just("1.5"), Just("'1'"), Just("'x'"), Just("''"), Just("'12'")];
    let text = prop_oneof![Just("''"), Just("'1'"), Just("'x1'"), Just("'2'")];
    let simple = prop_oneof![
        3 => relative(nesting),
        4 => (relative(nesting), comparison, literal).prop_map(|(path, op, value)| format!("{path} {op} {value}")),
        1 => (relative(nesting), text.clone()).prop_map(|(path, text)| format!("contains({path}, {text})")),
        1 => (relative(nesting), text).prop_map(|(path, text)| format!("starts-with({path}, {text})")),
    ];
    simple
        .prop_recursive(2, 6, 3, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 2..4)
                    .prop_map(|parts| format!("({})", parts.join(" and "))),
                prop::collection::vec(inner.clone(), 2..4)
                    .prop_map(|parts| format!("({})", parts.join(" or "))),
                inner.prop_map(|inner| format!("not({inner})")),
            ]
        })
        .boxed()
}

/// The text of a document.
pub fn document() -> impl Strategy<Value = String> {
    let text = prop_oneof![
        Just("1"),
        Just("2"),
        Just("x"),
        Just(" 1 "),
        Just("<!-- -->"),
        Just("&#49;"),
        Just("<![CDATA[2]]>"),
        Just("")
    ];
    let attributes = prop_oneof![
        Just(""),
        Just(" x='1'"),
        Just(" y='2'"),
        Just(" x='2' y='x'"),
        Just(" y='' p:x='1'"),
        Just(" xmlns='u'")
    ];
    let tag = prop_oneof![4 => Just("a"), 2 => Just("b"), 1 => Just("c"), 1 => Just("p:a"), 1 => Just("p:b")];
    let leaf = text.prop_map(str::to_string);
    let element = leaf.prop_recursive(6, 40, 5, move |inner| {
        (tag.clone(), attributes.clone(), prop::collection::vec(inner, 0..5))
            .prop_map(|(tag, attributes, inside)| format!("<{tag}{attributes}>{}</{tag}>", inside.concat()))
    });
    (prop::collection::vec(element, 0..5), prop_oneof![Just("a"), Just("b")])
        .prop_map(|(inside, root)| format!("<{root} xmlns:p='u'>{}</{root}>", inside.concat()))
}

/// A text with something put between its characters.
pub fn with_inserted(text: &str, at: prop::sample::Index, inserted: &str) -> String {
    let places: Vec<usize> = text.char_indices().map(|(at, _)| at).chain([text.len()]).collect();
    let at = places[at.index(places.len())];
    format!("{}{inserted}{}", &text[..at], &text[at..])
}
