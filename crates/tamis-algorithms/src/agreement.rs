//! The laws of [`algorithm`](super::algorithm), as tests that every registered algorithm must pass.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::algorithm::Algorithm;
use super::registry::ALGORITHMS;
use tamis_core::event::{Record, Terms, Value};
use tamis_core::expr::testing::{TestEvent, any_event, any_expr, any_interval_event, any_predicate, lookup};
use tamis_core::expr::{Expr, evaluate};
use tamis_core::query::{Measure, Ranking, Score, TopK};
use tamis_core::{Error, Id, IdRef, Subscription};

/// Settings that change how an algorithm works; without any, and one by one.
fn variants() -> Vec<(String, Box<dyn Algorithm>)> {
    let text = |text: &str| Value::Str(text.into());
    let options = [
        ("predicates", text("evaluate-each")),
        ("encoding", text("width-prefixed")),
        ("minimum", text("semantic")),
        ("order_children", Value::Bool(true)),
        ("short_circuit", Value::Bool(false)),
        ("mark_conjunctions", Value::Bool(false)),
        ("type_attribute", text("a")),
        ("max_conjunctions", Value::Int(6)),
        ("max_nodes", Value::Int(12)),
        ("zero_suppression", Value::Bool(false)),
        ("propagation_on_demand", Value::Bool(false)),
        ("leaf_capacity", Value::Int(1)),
        ("loss", text("selectivity")),
        ("split", text("approximate")),
        ("structure", text("sopt-r")),
        ("structure", text("segment")),
        ("branching", Value::Int(2)),
        ("construction", text("batch")),
        ("domain", Value::Int(8)),
        ("summaries", text("by-attribute")),
    ];
    let mut variants = vec![];
    for (name, make) in ALGORITHMS {
        variants.push((name.to_string(), make()));
        for (option, value) in &options {
            let mut made = make();
            if made.set_option(option, value).is_ok() {
                variants.push((format!("{name} with {option} {value:?}"), made));
            }
        }
    }
    variants
}

fn matches(algorithm: &dyn Algorithm, terms: &Terms, event: &TestEvent) -> Vec<u32> {
    let record = Record::new(event.iter().map(|(name, value)| (*name, value.clone())), []).unwrap();
    let mut found = vec![];
    algorithm.matches(&record.resolve(terms), terms, &mut |row| found.push(row));
    found.sort_unstable();
    found
}

/// The best k by relevance of what a search reports, as texts.
fn best_of(
    search: impl FnOnce(&mut dyn FnMut(u32) -> f64),
    k: usize,
    score: &dyn Fn(u32) -> Option<f64>,
) -> Vec<String> {
    let mut best = TopK::new(k, f64::NEG_INFINITY);
    search(&mut |row| {
        if let Some(score) = score(row) {
            best.offer(IdRef::Int(row as i64), score, ());
        }
        best.least_wanted()
    });
    best.into_sorted().into_iter().map(|kept| format!("{:?} {}", kept.id, kept.score)).collect()
}

/// Conjunctions are rare among random expressions, and some algorithms hold nothing else.
fn expression() -> impl Strategy<Value = Expr> {
    let leaves = prop::collection::vec(any_predicate().prop_map(Expr::Predicate), 2..5);
    prop_oneof![2 => any_expr(3), 1 => leaves.prop_map(Expr::And)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]
    #[test]
    fn every_algorithm_agrees_with_the_evaluator_after_insertions_and_removals(
        expressions in prop::collection::vec((expression(), any::<bool>()), 1..20),
        events in prop::collection::vec(prop_oneof![4 => any_event(), 1 => any_interval_event()], 1..5),
    ) {
        for (name, mut algorithm) in variants() {
            let mut terms = Terms::default();
            let mut held: Vec<(u32, Subscription)> = vec![];
            let mut free: Vec<u32> = vec![];
            let mut next = 0;
            for (round, (expr, stays)) in expressions.iter().enumerate() {
                let row = free.pop().unwrap_or_else(|| { next += 1; next - 1 });
                let subscription = Subscription::new(Id::Int(row as i64), expr.clone());
                let before = algorithm.counters();
                match algorithm.insert(row, &subscription, &mut terms) {
                    Ok(()) => held.push((row, subscription)),
                    Err(Error::Unsupported(reason)) => {
                        prop_assert!(!["scan", "a-tree"].contains(&&*name), "{name} refused: {reason}");
                        prop_assert_eq!(algorithm.counters(), before, "{} was changed", name);
                        free.push(row);
                    }
                    Err(other) => prop_assert!(false, "{name}: {other}"),
                }
                if !stays && !held.is_empty() {
                    let (row, subscription) = held.swap_remove(round / 2 % held.len());
                    algorithm.remove(row, &subscription, &terms);
                    free.push(row);
                }
                if round % 4 == 0 || round + 1 == expressions.len() {
                    for event in &events {
                        let is_true = |held: &&(u32, Subscription)| {
                            evaluate(&held.1.expression, &lookup(event)).can_be_true
                        };
                        let mut expected: Vec<u32> = held.iter().filter(is_true).map(|held| held.0).collect();
                        expected.sort_unstable();
                        prop_assert_eq!(matches(&*algorithm, &terms, event), expected, "{}", name);
                    }
                }
            }
            for (row, subscription) in held {
                algorithm.remove(row, &subscription, &terms);
            }
            for (counter, count) in algorithm.counters() {
                let grows = ["reorganized", "adjusted", "id_collisions", "types"].contains(&counter);
                prop_assert!(grows || count == 0, "{name} still has {count} {counter}");
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]
    #[test]
    fn the_best_are_the_best_of_all_matches_wherever_bounds_are_kept(
        rows in prop::collection::vec((expression(), 0..4u32, prop::option::of(0..4u32)), 1..30),
        events in prop::collection::vec(prop_oneof![4 => any_event(), 1 => any_interval_event()], 1..4),
        factor in 0..3u32,
        k in 1usize..4,
    ) {
        for (name, mut algorithm) in variants() {
            let mut terms = Terms::default();
            let mut held: BTreeMap<u32, Subscription> = BTreeMap::new();
            algorithm.gather();
            for (row, (expr, weight, _)) in rows.iter().enumerate() {
                let mut subscription = Subscription::new(Id::Int(row as i64), expr.clone());
                subscription.weights = vec![("a".into(), *weight as f64)];
                if algorithm.insert(row as u32, &subscription, &mut terms).is_ok() {
                    held.insert(row as u32, subscription);
                }
            }
            algorithm.settle();
            for (row, subscription) in &mut held {
                if let Some(weight) = rows[*row as usize].2 {
                    subscription.weights = vec![("b".into(), weight as f64 / 2.0)];
                    algorithm.rescore(*row, subscription, &terms);
                }
            }
            for event in &events {
                let weights = event.contains_key("a").then_some(("a", factor as f64));
                let values = event.iter().map(|(name, value)| (*name, value.clone()));
                let record = Record::new(values, weights).unwrap();
                let event = record.resolve(&terms);
                let ranking = Ranking::new(k, Score::Relevance);
                let measure = Measure::new(&ranking, &event, &terms);
                let Measure::Relevance(scale) = &measure else { unreachable!("the score is relevance") };
                let score = |row: u32| {
                    let score = measure.of(&held[&row], &event, &terms);
                    let known = algorithm.relevance(row, scale);
                    assert!(known.is_none() || known == score, "{name}: {known:?} is not {score:?}");
                    score
                };
                let mut keeps_bounds = false;
                let best = best_of(
                    |offer| {
                        keeps_bounds = algorithm.best(&event, scale, f64::NEG_INFINITY, offer).is_some();
                    },
                    k,
                    &score,
                );
                let all = best_of(
                    |offer| {
                        algorithm.matches(&event, &terms, &mut |row| {
                            offer(row);
                        });
                    },
                    k,
                    &score,
                );
                prop_assert!(!keeps_bounds || best == all, "{}: {:?} and {:?}", name, best, all);
                prop_assert!(keeps_bounds || !["k-index", "be-star-tree"].contains(&&*name));
            }
        }
    }
}

#[test]
fn names_are_distinct_and_sizes_are_reported_by_part() {
    let mut names: Vec<&str> = ALGORITHMS.iter().map(|(name, _)| *name).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), ALGORITHMS.len());
    for (name, make) in ALGORITHMS {
        let parts = make().bytes();
        assert!(!parts.is_empty(), "{name}");
        let unknown = make().set_option("no_such_option", &Value::Bool(true)).unwrap_err().to_string();
        assert!(unknown.starts_with("there is no option `no_such_option`"), "{unknown}");
    }
}

#[test]
fn constants_and_absent_attributes() {
    use tamis_core::expr::parse;
    let texts = ["TRUE", "FALSE", "x IS NULL", "x IS NULL OR y = 1", "NOT (x <=> 1)", "x = 1 OR NOT x = 1"];
    for (name, mut algorithm) in variants() {
        let mut terms = Terms::default();
        let mut expected = vec![];
        for (row, text) in texts.into_iter().enumerate() {
            let subscription = Subscription::new(Id::Int(0), parse(text).unwrap());
            if algorithm.insert(row as u32, &subscription, &mut terms).is_ok() && [0, 2, 3, 4].contains(&row)
            {
                expected.push(row as u32);
            }
        }
        assert_eq!(matches(&*algorithm, &terms, &TestEvent::new()), expected, "{name}");
    }
}
