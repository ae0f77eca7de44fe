use proptest::prelude::*;

use super::*;
use crate::ranked::STRUCTURES;
use tamis_core::event::Record;
use tamis_core::expr::parse;
use tamis_core::expr::testing::compare;
use tamis_core::query::{Ranking, Score, TopK};
use tamis_core::{Id, IdRef};

fn subscription(row: u32, expression: tamis_core::expr::Expr) -> Subscription {
    Subscription::new(Id::Int(row as i64), expression)
}

fn intervals() -> impl Strategy<Value = tamis_core::expr::Expr> {
    let predicate = (0..3usize, 0..40i64, 0..16i64).prop_map(|(attribute, low, length)| {
        let attribute = ["a", "b", "c"][attribute];
        let ends = [compare(attribute, ">=", low), compare(attribute, "<=", low + length)];
        if length < 3 { compare(attribute, "=", low) } else { tamis_core::expr::Expr::And(ends.into()) }
    });
    prop::collection::vec(predicate, 1..4).prop_map(|mut children| match children.len() {
        1 => children.remove(0),
        _ => tamis_core::expr::Expr::And(children),
    })
}

type TestEvent = Vec<(&'static str, Value)>;

fn events() -> impl Strategy<Value = Vec<TestEvent>> {
    let values = [(); 3].map(|()| prop::option::weighted(0.8, (0..55i64).prop_map(Value::Int)));
    let event = values.prop_map(|values| -> TestEvent {
        ["a", "b", "c"].into_iter().zip(values).filter_map(|(name, value)| Some((name, value?))).collect()
    });
    prop::collection::vec(event, 1..4)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]
    #[test]
    fn the_best_are_those_of_the_definition_also_after_changes(
        given in prop::collection::vec((intervals(), 0..3u8, 0..4u8, prop::option::weighted(0.3, any::<usize>())), 1..30),
        events in events(),
        k in 1usize..6,
    ) {
        for (name, structure) in STRUCTURES {
            let settings = Settings { structure, branching: 3 };
            let mut index = ScoredIntervals { settings, ..ScoredIntervals::default() };
            let mut terms = Terms::default();
            let mut held: Vec<(u32, Subscription)> = vec![];
            for (row, (expr, priority, weight, changed)) in given.iter().enumerate() {
                let mut new = subscription(row as u32, expr.clone());
                new.priority = f64::from(*priority);
                new.weights = vec![("a".into(), f64::from(*weight) / 10.0)];
                index.insert(row as u32, &new, &mut terms).unwrap();
                held.push((row as u32, new));
                if let Some(which) = changed {
                    let which = which % held.len();
                    if which % 2 == 1 {
                        let (row, rescored) = &mut held[which];
                        rescored.priority += 1.5;
                        index.rescore(*row, rescored, &terms);
                    } else {
                        let (row, gone) = held.swap_remove(which);
                        index.remove(row, &gone, &terms);
                    }
                }
                if row % 5 != 0 && row + 1 != given.len() {
                    continue;
                }
                for event in &events {
                    let weights = [("b", 2.0), ("c", 0.0)];
                    let record = Record::new(event.iter().cloned(), weights).unwrap();
                    let event = record.resolve(&terms);
                    for score in [Score::Priority, Score::Relaxed] {
                        let ranking = Ranking { k, score, min_score: f64::NEG_INFINITY, dimensions: None };
                        let measure = Measure::new(&ranking, &event, &terms);
                        let (mut best, mut scan) = (TopK::new(k, f64::NEG_INFINITY), TopK::new(k, f64::NEG_INFINITY));
                        for (row, subscription) in &held {
                            if let Some(score) = measure.of(subscription, &event, &terms) {
                                scan.offer(IdRef::Int(*row as i64), score, ());
                            }
                        }
                        let mut offer = |row: u32| {
                            let (_, subscription) = held.iter().find(|(other, _)| *other == row).unwrap();
                            if let Some(score) = measure.of(subscription, &event, &terms) {
                                best.offer(IdRef::Int(row as i64), score, ());
                            }
                            best.least_wanted()
                        };
                        index.best_by(&event, &measure, f64::NEG_INFINITY, &mut offer).unwrap();
                        let found = |top: TopK<'_, ()>| {
                            top.into_sorted().into_iter().map(|one| (one.id, one.score)).map(|(id, score)| {
                                let IdRef::Int(id) = id else { unreachable!("ids are integers") };
                                (id, score)
                            }).collect::<Vec<_>>()
                        };
                        prop_assert_eq!(found(best), found(scan), "{}", name);
                    }
                }
                index.check().map_err(TestCaseError::fail)?;
            }
        }
    }
}

#[test]
fn only_conjunctions_of_intervals_are_held() {
    let mut index = ScoredIntervals::default();
    let mut terms = Terms::default();
    let held = ["x = 1", "x BETWEEN 1 AND 2 AND y < 3", "NOT (x >= 5 OR y > 2)", "s >= 'a' AND s < 'b'"];
    let refused =
        ["x = 1 OR y = 2", "x != 1", "x IN (1, 2)", "TRUE", "x IS NULL", "s LIKE '%a'", "x = 1 XOR y = 2"];
    for (row, text) in held.into_iter().enumerate() {
        index.insert(row as u32, &subscription(row as u32, parse(text).unwrap()), &mut terms).unwrap();
    }
    for text in refused {
        let error =
            index.insert(9, &subscription(9, parse(text).unwrap()), &mut terms).unwrap_err().to_string();
        assert!(error.contains("conjunctions of intervals only"), "{text}: {error}");
    }
    assert_eq!(index.counters(), [("conjunctions", 4), ("families", 3)]);
}
