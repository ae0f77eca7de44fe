//! Runs every example of `docs/expressions.md`, the page that says what an expression means.

use tamis_core::event::ValueRef;
use tamis_core::event::json::read_record;
use tamis_core::expr::{Outcome, evaluate, json, parse};
use tamis_core::query::current_time;
use tamis_core::term::{NOW, STRINGS};

const PAGE: &str = include_str!("../../../docs/expressions.md");

/// The lines of all blocks of one kind, with their numbers.
fn lines_of(kind: &str) -> Vec<(usize, &'static str)> {
    let mut open = false;
    let mut lines = vec![];
    for (number, line) in PAGE.lines().enumerate() {
        match line.strip_prefix("```") {
            Some(tag) => open = tag == kind,
            None if open => lines.push((number + 1, line)),
            None => {}
        }
    }
    assert!(!lines.is_empty(), "the page has no {kind}");
    lines
}

#[test]
fn examples_have_the_truth_that_the_page_says() {
    for (number, line) in lines_of("tamis-example") {
        let parts: Vec<&str> = line.split(" | ").collect();
        let [expression, event, truth] = parts[..] else { panic!("line {number}: {line}") };
        let expected = match truth {
            "true" => Outcome::TRUE,
            "false" => Outcome::FALSE,
            "undefined" => Outcome::UNDEFINED,
            "either" => Outcome::EITHER,
            other => panic!("line {number}: {other} is no truth"),
        };
        let expr = parse(expression).unwrap_or_else(|error| panic!("line {number}: {error}"));
        let record = read_record(event.as_bytes()).unwrap_or_else(|error| panic!("line {number}: {error}"));
        let outcome = evaluate(&expr, &|attribute| match attribute {
            NOW => Some(ValueRef::Timestamp(current_time())),
            STRINGS => Some(record.strings().as_ref()),
            attribute => record.get(attribute).map(|value| value.as_ref()),
        });
        assert_eq!(outcome, expected, "line {number}: {line}");
        assert_eq!(parse(&expr.to_string()).unwrap(), expr, "line {number}: as text");
        assert_eq!(json::from_json(&json::to_json(&expr)).unwrap(), expr, "line {number}: as JSON");
    }
}

#[test]
fn errors_say_what_the_page_says() {
    for (number, line) in lines_of("tamis-error") {
        let (expression, part) = line.split_once(" | ").unwrap_or_else(|| panic!("line {number}: {line}"));
        let error = parse(expression).expect_err(line);
        assert!(error.to_string().contains(part), "line {number}: {expression}\n{error}");
        assert!(error.place.is_some(), "line {number}: {line}");
    }
}
