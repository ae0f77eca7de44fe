//! Plans agree with the reference evaluator.

use std::ops::ControlFlow;

use proptest::prelude::*;

use super::{BitSliced, MOST_RULES, Memory};
use crate::engine::segment::forms::Forms;
use crate::engine::segment::layout::Layout;
use crate::engine::segment::layout_planner::lay_out;
use crate::engine::segment::scoring::ScoringBuilder;
use crate::engine::segment::threads::Threads;
use crate::event::{Event, Terms, Value};
use crate::expr::Expr;
use crate::expr::eval::evaluate;
use crate::expr::parser::parse;
use crate::expr::testing;

fn layout_of(exprs: &[Expr], terms: &mut Terms) -> Layout {
    let mut forms = Forms::default();
    exprs.iter().for_each(|expr| {
        forms.push(expr, terms);
    });
    lay_out(forms, &[], &[], ScoringBuilder::default(), &Threads::new(1)).unwrap().0
}

fn resolve<'a>(event: &'a testing::TestEvent, terms: &Terms) -> Event<'a> {
    let mut values: Vec<_> =
        event.iter().filter_map(|(name, value)| Some((terms.get(name)?, value.as_ref()))).collect();
    values.sort_by_key(|(attribute, _)| *attribute);
    let has_intervals = event.values().any(Value::is_set);
    Event { values, has_intervals, ..Event::default() }
}

/// The rows that a plan finds, sorted; `None` if it declines the event.
fn rows_found(plan: &BitSliced, layout: &Layout, event: &Event<'_>, memory: &mut Memory) -> Option<Vec<u32>> {
    let mut found = vec![];
    plan.matching_units(layout, event, memory, &mut |unit| {
        found.extend_from_slice(layout.rows_of(unit));
        ControlFlow::Continue(())
    })?;
    found.sort_unstable();
    Some(found)
}

fn rows_that_hold(exprs: &[Expr], event: &Event<'_>, terms: &Terms) -> Vec<u32> {
    let holds = |expr: &Expr| evaluate(expr, &|name| event.get(terms.get(name)?)).can_be_true;
    (0..exprs.len() as u32).filter(|row| holds(&exprs[*row as usize])).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]
    #[test]
    fn a_plan_finds_the_expressions_that_hold(
        exprs in prop::collection::vec(testing::any_expr(4), 0..90),
        events in prop::collection::vec(testing::any_event(), 1..6),
    ) {
        let mut terms = Terms::default();
        let layout = layout_of(&exprs, &mut terms);
        if let Some(plan) = BitSliced::new(&layout) {
            // The second event must not see what the first one left.
            let mut memory = Memory::default();
            for event in &events {
                let event = resolve(event, &terms);
                if let Some(found) = rows_found(&plan, &layout, &event, &mut memory) {
                    prop_assert_eq!(found, rows_that_hold(&exprs, &event, &terms));
                }
            }
        }
    }
}

/// Draws that are the same everywhere.
struct Draws(u64);

impl Draws {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

/// Integers that are floats, and their neighbours that are not.
const LARGE: [i64; 5] = [(1 << 53) + 1, 1 << 60, (1 << 60) + 1, -(1 << 60) - 1, i64::MAX];

/// A rule of up to ten predicates, joined by AND, OR of ANDs, AND of ORs, a threshold or XOR.
fn rule(draws: &mut Draws) -> Expr {
    let mut predicate = || {
        let (attribute, operand) = (draws.below(12), draws.below(9) as i64 - 4);
        match draws.below(14) {
            12 => format!("a{attribute} = {}", LARGE[operand.unsigned_abs() as usize % LARGE.len()]),
            13 => format!("a{attribute} > {}", LARGE[operand.unsigned_abs() as usize % LARGE.len()]),
            0 => format!("a{attribute} < {operand}"),
            1 => format!("a{attribute} >= {operand}.5"),
            2 => format!("a{attribute} BETWEEN {operand} AND {}", operand + 2),
            3 => format!("NOT a{attribute} IN ({operand}, {})", operand + 3),
            4 => format!("a{attribute} IS NULL"),
            5 => format!("a{attribute} IS NOT NULL"),
            6 => format!(
                "t{} = '{}'",
                attribute % 3,
                "abcdefghijklmnopqrstuvwxyz".split_at(operand as usize & 31 & 17).0
            ),
            7 => format!("t{} > 'b'", attribute % 2),
            8 => format!("t2 LIKE '%{operand}%'"),
            _ => format!("a{attribute} = {operand}"),
        }
    };
    let mut joined = |count: usize, separator: &str| {
        let parts: Vec<String> = (0..count).map(|_| predicate()).collect();
        format!("({})", parts.join(separator))
    };
    let text = match joined(1, "").len() % 7 {
        0 => (0..4).map(|_| joined(3, " AND ")).collect::<Vec<_>>().join(" OR "),
        1 => (0..3).map(|_| joined(2, " OR ")).collect::<Vec<_>>().join(" AND "),
        2 => format!("{} XOR {}", joined(1, ""), joined(2, " AND ")),
        3 => joined(10, " AND "),
        4 => joined(9, " OR "),
        _ => joined(3, " AND "),
    };
    parse(&text).unwrap()
}

fn event(draws: &mut Draws) -> testing::TestEvent {
    const NUMBERS: [&str; 12] = ["a0", "a1", "a2", "a3", "a4", "a5", "a6", "a7", "a8", "a9", "a10", "a11"];
    let mut event = testing::TestEvent::new();
    // Plans decline most events with large integers.
    let has_large = draws.below(4) == 0;
    for attribute in NUMBERS {
        let value = match draws.below(8) {
            0 => continue,
            1 => Value::Float(draws.below(20) as f64 / 2.0 - 5.0),
            2 => Value::Int([i64::MIN, -100, 100, 1 << 53, i64::MAX][draws.below(5) as usize]),
            3 if has_large => Value::Int(LARGE[draws.below(5) as usize]),
            4 if has_large => Value::Float(LARGE[draws.below(5) as usize] as f64),
            _ => Value::Int(draws.below(11) as i64 - 5),
        };
        event.insert(attribute, value);
    }
    for attribute in &["t0", "t1", "t2"][..draws.below(4) as usize] {
        let text =
            ["", "a", "b", "abcdefghijklmnopq", "abcdefghijklmnopX", "x-3y", "2"][draws.below(7) as usize];
        event.insert(attribute, Value::Str(text.into()));
    }
    event
}

/// Words of rules begin and end at 64; with more rules, words no longer fit into registers, and then there is no plan.
#[test]
fn rules_of_any_number_are_found() {
    let mut draws = Draws(7);
    let (mut planned, mut declined, mut found_any) = (0, 0, 0);
    for count in
        [1, 2, 3, 4, 5, 8, 9, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129, 200, 300, MOST_RULES + 40]
    {
        let exprs: Vec<Expr> = (0..count).map(|_| rule(&mut draws)).collect();
        let mut terms = Terms::default();
        let layout = layout_of(&exprs, &mut terms);
        let Some(plan) = BitSliced::new(&layout) else {
            assert!(count > 200, "{count} rules have no plan");
            continue;
        };
        planned += 1;
        let mut memory = Memory::default();
        for _ in 0..60 {
            let event = event(&mut draws);
            let event = resolve(&event, &terms);
            match rows_found(&plan, &layout, &event, &mut memory) {
                Some(found) => {
                    found_any += found.len();
                    assert_eq!(found, rows_that_hold(&exprs, &event, &terms), "{count} rules");
                }
                None => declined += 1,
            }
        }
    }
    assert!(
        planned >= 19 && declined < 60 * planned / 2 && found_any > 1000,
        "{planned} {declined} {found_any}"
    );
}

/// A predicate on the attribute of this number, and a value for which it holds.
fn predicate_and_value(attribute: usize, draws: &mut Draws) -> (String, Option<Value>) {
    let (name, operand) = (LONG[attribute], draws.below(5) as i64);
    let text = |text: &str| Some(Value::Str(text.into()));
    match (attribute, draws.below(7)) {
        (8, _) => (format!("{name} < {}", (1i64 << 53) + operand), Some(Value::Int((1 << 53) + operand - 1))),
        (9, 0..3) => (format!("{name} IN ('a', 'b{operand}')"), text(&format!("b{operand}"))),
        (9, _) => (
            format!("{name} = 'of more than sixteen bytes {operand}'"),
            text(&format!("of more than sixteen bytes {operand}")),
        ),
        (10, 0..4) => (format!("{name} > 'a{operand}'"), text("b")),
        (10, _) => (format!("{name} <> 'a'"), text("b")),
        (11, 0..4) => (format!("{name} LIKE '%{operand}%'"), text("01234")),
        (11, _) => (format!("NOT {name} LIKE '%x%'"), text("01234")),
        (12, 0..3) => (name.to_string(), Some(Value::Bool(true))),
        (12, _) => (format!("({name} OR {name} IS NULL)"), None),
        (13, 0..4) => (format!("{name} IS NOT NULL"), text("")),
        (13, _) => (format!("{name} IS NULL"), None),
        (_, 0) => (format!("{name} = {operand}"), Some(Value::Int(operand))),
        (_, 1) => (format!("NOT {name} IN ({operand}, {})", operand + 3), Some(Value::Int(operand + 1))),
        (_, 2) => (format!("{name} <> {operand}.5"), Some(Value::Float(operand as f64))),
        (_, 3) => {
            (format!("({name} IS NULL OR {name} > {operand})"), Some(Value::Float(operand as f64 + 0.5)))
        }
        (_, 4) => (format!("({name} < {operand} OR {name} = 'a')"), text("a")),
        (_, 5) => (format!("{name} BETWEEN {operand} AND {}", operand + 2), Some(Value::Int(operand + 2))),
        _ => (format!("{name} >= {operand}"), Some(Value::Int(1 << 53))),
    }
}

const LONG: [&str; 14] = ["a0", "a1", "a2", "a3", "a4", "a5", "a6", "a7", "m", "t", "u", "l", "b", "p"];

/// With so many conjunctions, those whose clauses hold are decided from the values of events.
#[test]
fn long_conjunctions_are_decided_from_values() {
    let mut draws = Draws(11);
    let rules: Vec<[(String, Option<Value>); 14]> = (0..400)
        .map(|_| std::array::from_fn(|attribute| predicate_and_value(attribute, &mut draws)))
        .collect();
    let text = |rule: &[(String, _); 14]| rule.each_ref().map(|(text, _)| text.clone()).join(" AND ");
    let exprs: Vec<Expr> = rules.iter().map(|rule| parse(&text(rule)).unwrap()).collect();
    let mut terms = Terms::default();
    let layout = layout_of(&exprs, &mut terms);
    let plan = BitSliced::new(&layout).unwrap();
    assert!(plan.checks.iter().filter(|check| check.is_some()).count() > 300);
    let (mut memory, mut found_any, mut failed, mut declined) = (Memory::default(), 0, 0, 0);
    for number in 0..3000 {
        // What one rule asks for, with another value or none in a few places.
        let mut event = testing::TestEvent::new();
        for ((_, value), name) in rules[draws.below(400) as usize].iter().zip(LONG) {
            let value = match draws.below(50) {
                0 => None,
                1 => Some(Value::Int([0, 1, 2, 3, i64::MAX, i64::MIN, -1][draws.below(7) as usize])),
                2 => Some(Value::Float([0.5, -0.0, f64::NAN, 3.0, 4.5][draws.below(5) as usize])),
                3 => Some(Value::Str(["a", "b", "a3", "", "x"][draws.below(5) as usize].into())),
                _ => value.clone(),
            };
            value.into_iter().for_each(|value| drop(event.insert(name, value)));
        }
        let resolved = resolve(&event, &terms);
        let Some(found) = rows_found(&plan, &layout, &resolved, &mut memory) else {
            declined += 1;
            continue;
        };
        (found_any, failed) = (found_any + found.len(), failed + found.is_empty() as usize);
        assert_eq!(found, rows_that_hold(&exprs, &resolved, &terms), "event {number}");
    }
    assert!(found_any > 500 && failed > 200 && declined < 2000, "{found_any} {failed} {declined}");
}

/// The table of integers ends just outside the operands; other numbers are searched for.
#[test]
fn numbers_of_every_size_lead_to_their_rows() {
    for far in [3, 1000, 1021, 1022, 1023, 1024, 100_000, 1 << 53] {
        let texts =
            ["x < -1".into(), "x >= 0".into(), format!("x = {far}"), format!("x <= {far}"), "x > 0.5".into()];
        let exprs: Vec<Expr> = texts.iter().map(|text| parse(text).unwrap()).collect();
        let mut terms = Terms::default();
        let layout = layout_of(&exprs, &mut terms);
        let plan = BitSliced::new(&layout).unwrap();
        let mut memory = Memory::default();
        let integers = [-far, -3, -2, -1, 0, 1, far - 1, far, far + 1, 2 * far, i64::MIN, i64::MAX, 1 << 53];
        let floats =
            [-0.0, 0.5, 0.75, -1.5, far as f64 - 0.5, far as f64, f64::NAN, f64::INFINITY, f64::NEG_INFINITY];
        let values = integers.map(Value::Int).into_iter().chain(floats.map(Value::Float));
        for value in values {
            let event = testing::TestEvent::from([("x", value.clone())]);
            let event = resolve(&event, &terms);
            let found = rows_found(&plan, &layout, &event, &mut memory);
            let is_large = matches!(value, Value::Int(number) if number.unsigned_abs() > 1 << 53);
            match found {
                Some(found) => assert_eq!(found, rows_that_hold(&exprs, &event, &terms), "{value:?} {far}"),
                None => assert!(is_large, "{value:?} was declined"),
            }
        }
    }
}

/// An operand that no float equals has no state of its own: integers are then not looked up in a table.
#[test]
fn integers_beyond_all_floats_are_told_apart() {
    for far in [(1i64 << 53) + 1, (1 << 60) + 1, 1_234_567_890_123_456_789, i64::MAX, i64::MIN + 1] {
        let texts = [
            format!("x = {far}"),
            format!("x <> {far}"),
            format!("NOT x = {far}"),
            format!("x IN (5, {far})"),
            format!("x > {} AND x < {}", far - 1, far.saturating_add(1)),
            "x = 5".into(),
        ];
        let exprs: Vec<Expr> = texts.iter().map(|text| parse(text).unwrap()).collect();
        let mut terms = Terms::default();
        let layout = layout_of(&exprs, &mut terms);
        let plan = BitSliced::new(&layout).unwrap();
        let near = [far - 1, far, far.saturating_add(1), 5, 4, 0].map(Value::Int);
        for value in near.into_iter().chain([far as f64, 5.0, f64::INFINITY].map(Value::Float)) {
            let event = testing::TestEvent::from([("x", value.clone())]);
            let event = resolve(&event, &terms);
            if let Some(found) = rows_found(&plan, &layout, &event, &mut Memory::default()) {
                assert_eq!(found, rows_that_hold(&exprs, &event, &terms), "{value:?} {far}");
            }
        }
    }
}

/// Written out, a parity has two to the power of its operands; the power must not wrap.
#[test]
fn long_parities_have_no_plan() {
    for operands in [5, 31, 32, 33, 63, 64, 65, 68, 96, 128, 132] {
        let parts: Vec<String> = (0..operands).map(|at| format!("(x{at} = 1)")).collect();
        let exprs = [parse(&parts.join(" XOR ")).unwrap(), parse("y = 1").unwrap()];
        assert!(BitSliced::new(&layout_of(&exprs, &mut Terms::default())).is_none(), "{operands}");
    }
}

/// Rules of shapes whose plans could grow with the square of what they have: there is none, or it is small.
#[test]
fn a_plan_is_not_much_larger_than_the_layout() {
    let mut draws = Draws(5);
    let mut below = |bound: u64| draws.below(bound);
    let list = |part: &mut dyn FnMut() -> String, count: usize, separator: &str| {
        (0..count).map(|_| part()).collect::<Vec<_>>().join(separator)
    };
    let mut shapes: Vec<(&str, Vec<String>)> = vec![];
    let number = |below: &mut dyn FnMut(u64) -> u64| below(1 << 40).to_string();
    let set = |below: &mut dyn FnMut(u64) -> u64| list(&mut || number(below), 60, ", ");
    shapes.push(("sets", (0..1000).map(|_| format!("id IN ({})", set(&mut below))).collect()));
    let both = |below: &mut dyn FnMut(u64) -> u64| format!("(id IN ({}) AND c = {})", set(below), below(50));
    shapes.push((
        "either",
        (0..400).map(|_| format!("{} OR {}", both(&mut below), both(&mut below))).collect(),
    ));
    let compared = |below: &mut dyn FnMut(u64) -> u64| format!("a{} > {}", below(20), below(1000));
    let ands = |below: &mut dyn FnMut(u64) -> u64| format!("({})", list(&mut || compared(below), 8, " AND "));
    shapes
        .push(("ands", (0..1000).map(|_| format!("{} OR {}", ands(&mut below), ands(&mut below))).collect()));
    let wide = |rule: usize, count: usize| {
        (0..count).map(|at| format!("b{at} = {rule}")).collect::<Vec<_>>().join(" OR ")
    };
    shapes.push(("wide", (0..300).map(|rule| wide(rule, 100)).collect()));
    shapes.push(("widest", vec![wide(1, 3000)]));
    shapes.push(("and or", vec![format!("({}) OR y = 1", wide(1, 1500).replace(" OR ", " AND "))]));
    shapes.push(("patterns", (0..500).map(|at| format!("t LIKE '%w{at}%'")).collect()));
    let address = |below: &mut dyn FnMut(u64) -> u64| {
        format!("'https://example.com/item/{:07}/index.html'", below(10_000_000))
    };
    let addresses = |below: &mut dyn FnMut(u64) -> u64| list(&mut || address(below), 60, ", ");
    shapes.push(("addresses", (0..1000).map(|_| format!("url IN ({})", addresses(&mut below))).collect()));
    for (name, texts) in shapes {
        let exprs: Vec<Expr> = texts.iter().map(|text| parse(text).unwrap()).collect();
        let layout = layout_of(&exprs, &mut Terms::default());
        let of_layout: usize = layout.bytes().iter().map(|(_, bytes)| bytes).sum();
        let bytes = BitSliced::new(&layout).map_or(0, |plan| plan.bytes());
        assert!(bytes <= (6 * of_layout).max(1 << 20), "{name}: {bytes} bytes, the layout {of_layout}");
    }
}

/// What fires in each state is listed, which would take too much memory here.
#[test]
fn many_cuts_of_one_attribute_have_no_plan() {
    let part = |at: usize| format!("(x > {at} AND y{} < {at})", at % 64);
    let rule = |rule: usize| (0..3000).map(|cut| part(3 * cut + rule)).collect::<Vec<_>>().join(" OR ");
    let exprs: Vec<Expr> = (0..3).map(|number| parse(&rule(number)).unwrap()).collect();
    let mut terms = Terms::default();
    assert!(BitSliced::new(&layout_of(&exprs, &mut terms)).is_none());
}

/// A value of a kind that no predicate expects is counted where the layout is asked.
#[test]
fn unexpected_kinds_are_declined() {
    let exprs = ["x > 1", "y LIKE '%a%'", "z IS NOT NULL"].map(|text| parse(text).unwrap());
    let mut terms = Terms::default();
    let layout = layout_of(&exprs, &mut terms);
    let plan = BitSliced::new(&layout).unwrap();
    let answer = |name: &'static str, value: Value| {
        let event = testing::TestEvent::from([(name, value)]);
        rows_found(&plan, &layout, &resolve(&event, &terms), &mut Memory::default())
    };
    let text = || Value::Str("a".into());
    assert_eq!(answer("x", Value::Int(2)), Some(vec![0]));
    assert_eq!(answer("y", text()), Some(vec![1]));
    assert_eq!((answer("z", text()), answer("z", Value::Bool(false))), (Some(vec![2]), Some(vec![2])));
    assert_eq!((answer("x", text()), answer("y", Value::Int(1))), (None, None));
    assert_eq!(answer("x", Value::Array(vec![Value::Int(2)])), None);
    assert_eq!(answer("x", Value::interval(Value::Int(1), Value::Int(5)).unwrap()), None);
}
