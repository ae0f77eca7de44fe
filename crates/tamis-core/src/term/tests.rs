//! Computed terms end to end: an index with random expressions over them agrees with the reference evaluator,
//! for every source of events, after changes, and after a snapshot.

use std::sync::Arc;

use arrow_array::{ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray, TimestampMicrosecondArray};
use proptest::prelude::*;

use crate::engine::contract::Workspace;
use crate::engine::{Id, Index, Subscription};
use crate::event::arrow::ArrowEvents;
use crate::event::{Event, Record, Scratch, json};
use crate::expr::testing::{TestEvent, any_event, any_expr_of_terms, any_interval_event, lookup};
use crate::expr::{Expr, evaluate, parse, parse_term};
use crate::query::Query;
use crate::value::{Value, ValueRef};

fn index(expressions: &[Expr]) -> Index {
    let index = Index::default();
    for (id, expression) in expressions.iter().enumerate() {
        index.add(Subscription::new(Id::Int(id as i64), expression.clone())).unwrap();
    }
    index
}

fn found(index: &Index, event: &Event<'_>) -> Vec<Id> {
    let reader = index.reader().unwrap();
    let query = Query::default();
    let (locations, _) = reader.matches(event, &query.filter(), &mut Workspace::default());
    locations.into_iter().map(|location| reader.id(location).to_owned()).collect()
}

fn expected(expressions: &[Expr], event: &TestEvent) -> Vec<Id> {
    let is_true = |(_, expression): &(usize, &Expr)| evaluate(expression, &lookup(event)).can_be_true;
    expressions.iter().enumerate().filter(is_true).map(|(id, _)| Id::Int(id as i64)).collect()
}

fn found_for_record(index: &Index, event: &TestEvent) -> Vec<Id> {
    let record = Record::new(event.iter().map(|(name, value)| (*name, value.clone())), []).unwrap();
    let (reader, mut room) = (index.reader().unwrap(), vec![]);
    found(index, &record.resolve_into(reader.terms(), &mut room))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn an_index_agrees_with_the_evaluator(
        expressions in prop::collection::vec(any_expr_of_terms(3), 1..12),
        events in prop::collection::vec(prop_oneof![3 => any_event(), 1 => any_interval_event()], 1..6),
        many in any::<bool>(),
    ) {
        let index = index(&expressions);
        if many {
            index.optimize().unwrap();
        }
        let reopened = Index::from_bytes(index.to_bytes().unwrap()).unwrap();
        for event in &events {
            prop_assert_eq!(found_for_record(&index, event), expected(&expressions, event));
            prop_assert_eq!(found_for_record(&reopened, event), expected(&expressions, event));
        }
        for id in 1..expressions.len() {
            reopened.remove(Id::Int(id as i64)).unwrap();
        }
        for event in &events {
            prop_assert_eq!(found_for_record(&reopened, event), expected(&expressions[..1], event));
        }
        reopened.remove(Id::Int(0)).unwrap();
        prop_assert_eq!(reopened.reader().unwrap().terms().computed_per_event(), 0);
    }
}

#[test]
fn all_ways_to_read_an_event_compute_the_same() {
    let texts = [
        "hour(from_utc_timestamp(t, 'Europe/Berlin')) BETWEEN 8 AND 18",
        "price * quantity > 1000",
        "lower(name) = 'ada' AND length(name) < 5",
        "a < b",
        "a != b",
        "coalesce(absent, name) = 'Ada'",
        "absent + 1 > 0 OR absent + 1 IS NULL",
        "CAST(a AS string) = '3'",
    ];
    let expressions: Vec<Expr> = texts.iter().map(|text| parse(text).unwrap()).collect();
    let index = index(&expressions);
    let reader = index.reader().unwrap();
    let rows = 4;
    let times = [0i64, 7, 12, 23].map(|hour| hour * 3_600_000_000);
    let names = ["Ada", "ADA", "adam", "x"];
    let columns: [(&str, ArrayRef); 5] = [
        ("t", Arc::new(TimestampMicrosecondArray::from(times.to_vec()))),
        ("price", Arc::new(Float64Array::from(vec![10.0, 1000.5, 0.0, 1e300]))),
        ("quantity", Arc::new(Int64Array::from(vec![101, 1, 5, 7]))),
        ("name", Arc::new(StringArray::from(names.to_vec()))),
        ("a", Arc::new(Int64Array::from(vec![1, 2, 3, 4]))),
    ];
    let b: ArrayRef = Arc::new(Int64Array::from(vec![Some(1), None, Some(2), Some(9)]));
    let batch = RecordBatch::try_from_iter(columns.into_iter().chain([("b", b)])).unwrap();
    let arrow = ArrowEvents::new(&batch, reader.terms(), None).unwrap();
    for row in 0..rows {
        let event = arrow.event(row);
        let of_row = found(&index, &event);
        let value = |name: &str| event.get(reader.terms().get(name)?);
        let is_true = |expression: &&Expr| evaluate(expression, &value).can_be_true;
        assert_eq!(of_row.len(), expressions.iter().filter(is_true).count(), "row {row}");
        let owned = |name: &'static str| Some((name, value(name)?.to_owned()));
        let record: TestEvent =
            ["t", "price", "quantity", "name", "a", "b"].into_iter().filter_map(owned).collect();
        assert_eq!(found_for_record(&index, &record), of_row, "row {row}");
        let mut scratch = Scratch::default();
        let b = record
            .get("b")
            .map_or("null".into(), |b| format!("{:?}", b.as_ref().number().unwrap().nearest()));
        let text = format!(
            r#"{{"t": {{"$timestamp": "1970-01-01T{:02}:00:00Z"}}, "name": "{}", "price": {:?}, "quantity": {}, "a": {}, "b": {b}}}"#,
            times[row] / 3_600_000_000,
            names[row],
            [10.0, 1000.5, 0.0, 1e300][row],
            [101, 1, 5, 7][row],
            row + 1,
        );
        let event = json::read(text.as_bytes(), reader.terms(), None, &mut scratch).unwrap();
        assert_eq!(found(&index, &event), of_row, "{text}");
    }
}

#[test]
fn functions_have_the_values_that_spark_gives_them() {
    let stamp = |text: &str| Value::Timestamp(crate::value::timestamp::parse_timestamp(text).unwrap());
    let event = TestEvent::from([
        ("i", Value::Int(7)),
        ("most", Value::Int(i64::MAX)),
        ("x", Value::Float(2.5)),
        ("nan", Value::Float(f64::NAN)),
        ("s", Value::Str(" Straße ".into())),
        ("t", stamp("2026-03-29 01:30:15.5")),
        ("list", Value::Array(vec![Value::Int(5), Value::Null])),
        ("flag", Value::Bool(true)),
    ]);
    let text = |text: &str| Some(Value::Str(text.into()));
    let int = |i: i64| Some(Value::Int(i));
    let float = |x: f64| Some(Value::Float(x));
    for (term, value) in [
        ("i + 1", int(8)),
        ("i + x", float(9.5)),
        ("i / 2", float(3.5)),
        ("i / 0", None),
        ("x / 0.0", None),
        ("-i % 4", int(-3)),
        ("(0 - i) % 4", int(-3)),
        ("i % 0", None),
        ("most + 1", None),
        ("most * 2", None),
        ("abs(0 - i)", int(7)),
        ("i + s", None),
        ("i + absent", None),
        ("round(x)", float(3.0)),
        ("round(0 - x)", float(-3.0)),
        ("round(x * 0.47, 2)", float(1.17)),
        ("round(i, -1)", int(10)),
        ("round(x + 1e300, 2)", float(1e300)),
        ("floor(x)", int(2)),
        ("ceil(x)", int(3)),
        ("floor(nan)", None),
        ("floor(x * 1e300)", None),
        ("lower(s)", text(" straße ")),
        ("upper(trim(s))", text("STRASSE")),
        ("length(s)", int(8)),
        ("substring(s, 2, 3)", text("Str")),
        ("substring(s, -3)", text("ße ")),
        ("substring(s, -20, 15)", text(" St")),
        ("substring(s, 0, 2)", text(" S")),
        ("substring(s, 5, -1)", text("")),
        ("concat(trim(s), '!', trim(s))", text("Straße!Straße")),
        ("concat(s, absent)", None),
        ("year(t) * 10000 + month(t) * 100 + day(t)", int(20_260_329)),
        ("dayofweek(t)", int(1)),
        ("dayofyear(t)", int(88)),
        ("quarter(t)", int(1)),
        ("hour(t) * 100 + minute(t)", int(130)),
        ("second(t)", int(15)),
        ("date_trunc('week', t)", Some(stamp("2026-03-23"))),
        ("date_trunc('MINUTE', t)", Some(stamp("2026-03-29 01:30"))),
        ("date_trunc('quarter', t)", Some(stamp("2026-01-01"))),
        ("from_utc_timestamp(t, 'Europe/Berlin')", Some(stamp("2026-03-29 03:30:15.5"))),
        ("from_utc_timestamp(t, 'America/New_York')", Some(stamp("2026-03-28 21:30:15.5"))),
        (
            "to_utc_timestamp(from_utc_timestamp(t, 'Asia/Kolkata'), 'Asia/Kolkata')",
            Some(stamp("2026-03-29 01:30:15.5")),
        ),
        ("size(list)", int(2)),
        ("size(s)", None),
        ("element_at(list, 1)", int(5)),
        ("element_at(list, -2)", int(5)),
        ("element_at(list, 2)", None),
        ("element_at(list, 3)", None),
        ("coalesce(absent, i, x)", int(7)),
        ("CAST(x AS int)", int(2)),
        ("CAST(nan AS int)", None),
        ("CAST(i AS float)", float(7.0)),
        ("CAST(x AS string)", None),
        ("CAST(i AS string)", text("7")),
        ("CAST(t AS string)", text("2026-03-29 01:30:15.5")),
        ("CAST(s AS int)", None),
        ("CAST(concat(trim(s), '') AS timestamp)", None),
        ("CAST(flag AS int)", int(1)),
        ("CAST(i AS bool)", Some(Value::Bool(true))),
        ("i < x", Some(Value::Bool(false))),
        ("i < s", None),
        ("i <=> absent", Some(Value::Bool(false))),
        ("absent <=> missing", Some(Value::Bool(true))),
    ] {
        let parsed = parse_term(term).unwrap_or_else(|error| panic!("{term}: {error}"));
        let computed = parsed.with_value(&lookup(&event), |value| value.map(ValueRef::to_owned));
        assert_eq!(computed, value, "{term}");
    }
}

#[test]
fn what_the_normal_form_leaves_out_is_still_there_in_a_segment() {
    let index = Index::default();
    for id in 0..2000 {
        let text = format!("never{} IN () OR y > {id}", id % 7);
        index.add(Subscription::new(Id::Int(id), parse(&text).unwrap())).unwrap();
    }
    for id in 0..2000 {
        let text = format!("never{} IN () OR y > {id}", id % 7);
        assert_eq!(index.reader().unwrap().get(&Id::Int(id)).unwrap().expression, parse(&text).unwrap());
    }
}

#[test]
fn a_text_that_grows_too_long_is_undefined() {
    let mut doubled = "s".to_string();
    for _ in 0..9 {
        doubled = format!("concat({doubled}, {doubled})");
    }
    let term = parse_term(&doubled).unwrap();
    for (bytes, is_defined) in [(1 << 11, true), ((1 << 11) + 1, false), (1 << 20, false)] {
        let event = TestEvent::from([("s", Value::Str("x".repeat(bytes).into()))]);
        assert_eq!(term.with_value(&lookup(&event), |value| value.is_some()), is_defined, "{bytes}");
    }
}
