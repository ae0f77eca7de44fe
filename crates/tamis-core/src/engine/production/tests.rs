//! An event on several threads has the same answer as on one, and an index that is queried becomes one
//! segment.
//!
//! In tests, two entries are enough for another thread, so that nearly every event is shared.

use proptest::prelude::*;

use crate::engine::contract::{Answer, NewSubscriptions, Version, Workspace};
use crate::engine::{Id, Index, Subscription};
use crate::error::{Error, Result};
use crate::event::{Event, Value, ValueRef};
use crate::expr::eval::evaluate;
use crate::expr::{Expr, testing};
use crate::query::{Ask, Query, Ranking, Score, Tags};
use crate::subscription::IdRef;

const THREADS: [usize; 3] = [2, 3, 16];

/// Subscriptions to be added at once, sorted by id.
pub(super) struct List(pub Vec<Subscription>);

impl NewSubscriptions for List {
    fn len(&self) -> usize {
        self.0.len()
    }

    fn get(&self, at: usize) -> Result<Option<Subscription>> {
        Ok(Some(self.0[at].clone()))
    }

    fn refuse(&self, _: usize, error: Error) -> Result<()> {
        Err(error)
    }
}

/// A subscription that may be tagged, owned, weighted, and not active at moment 0.
fn subscription(id: usize, expression: Expr, draw: u32) -> Subscription {
    let mut subscription = Subscription::new(Id::Int((id * 7 % 101) as i64), expression);
    subscription.priority = f64::from(draw % 5);
    subscription.owner = (!draw.is_multiple_of(3)).then(|| format!("owner {}", draw % 3).into());
    subscription.tags =
        ["a", "b"].into_iter().filter(|tag| draw % 7 < 3 || *tag == "b").map(Into::into).collect();
    subscription.expires = draw.is_multiple_of(11).then_some(0);
    if draw.is_multiple_of(2) {
        subscription.weights = vec![("a".into(), f64::from(draw % 4)), ("b".into(), 0.5)];
    }
    subscription
}

fn queries() -> Vec<Query> {
    let tagged =
        Tags { any: Some(vec!["a".into(), "c".into()]), all: vec!["b".into()], none: vec!["d".into()] };
    let scores = ["priority", "relevance", "relaxed", "max(a, 2 * b)"];
    let rankings = scores.into_iter().flat_map(|score| {
        let score = Score::named(score).expect(score);
        [1, 3, 1000].map(|k| Ask::Best(Ranking::new(k, score.clone())))
    });
    let asks: Vec<Ask> =
        [Ask::All, Ask::Count, Ask::Exists, Ask::Owners].into_iter().chain(rankings).collect();
    let mut queries = vec![];
    for tags in [Tags::default(), tagged] {
        queries.extend(asks.iter().map(|ask| Query { ask: ask.clone(), tags: tags.clone(), now: Some(0) }));
    }
    queries
}

fn shown(version: &dyn Version, answer: Answer) -> String {
    match answer {
        Answer::All(found) => format!("{:?}", found.iter().map(|at| version.id(*at)).collect::<Vec<_>>()),
        Answer::Best(best) => {
            let best = best.iter().map(|scored| (version.id(scored.location), scored.score.to_bits()));
            format!("{:?}", best.collect::<Vec<_>>())
        }
        other => format!("{other:?}"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20))]
    #[test]
    fn threads_change_no_answer(
        exprs in prop::collection::vec((testing::any_expr(3), 0..1000u32), 1..60),
        events in prop::collection::vec(prop_oneof![3 => testing::any_event(), 1 => testing::any_interval_event()], 1..4),
        removed in prop::collection::vec(0..60usize, 0..6),
        buffered in 0..3usize,
    ) {
        let index = Index::default();
        let (late, early) = exprs.split_at(buffered.min(exprs.len()));
        for (at, (expr, draw)) in early.iter().enumerate() {
            index.add(subscription(at, expr.clone(), *draw)).unwrap();
        }
        index.optimize().unwrap();
        for (at, (expr, draw)) in late.iter().enumerate() {
            index.add(subscription(early.len() + at, expr.clone(), *draw)).unwrap();
        }
        for at in removed {
            let _ = index.remove(Id::Int((at * 7 % 101) as i64));
        }
        let reader = index.reader().unwrap();
        let terms = reader.terms();
        let (mut alone, mut shared) = (Workspace::default(), Workspace::default());
        for event in &events {
            let mut values: Vec<_> =
                event.iter().filter_map(|(name, value)| Some((terms.get(name)?, value.as_ref()))).collect();
            values.sort_by_key(|(term, _)| *term);
            let has_intervals = event.values().any(Value::is_set);
            let event = Event { values, has_intervals, ..Event::default() };
            for query in queries() {
                let expected = shown(&*reader, reader.ask(&query, &event, &mut alone).unwrap().0);
                for threads in THREADS {
                    shared.set_threads(threads);
                    let found = shown(&*reader, reader.ask(&query, &event, &mut shared).unwrap().0);
                    prop_assert_eq!(&found, &expected, "{} threads: {:?}", threads, query);
                }
            }
        }
    }
}

#[test]
fn an_index_that_is_asked_often_becomes_one_segment_with_the_same_answers() {
    let index = Index::default();
    for number in 0..3_000 {
        let expression = crate::expr::parse(&format!("x = {number} OR y = {number}")).unwrap();
        index.add(Subscription::new(Id::Int(number), expression)).unwrap();
    }
    let parts = || index.reader().unwrap().part_sizes();
    assert!(parts().iter().filter(|size| **size > 0).count() > 1);
    let query = Query { ask: Ask::All, tags: Tags::default(), now: Some(0) };
    let mut space = Workspace::default();
    let mut asked = 0;
    while parts() != [3_000, 0] {
        let reader = index.reader().unwrap();
        let terms = reader.terms();
        for _ in 0..100 {
            let x = asked % 3_000;
            asked += 1;
            let mut values = vec![(terms.get("x").unwrap(), x), (terms.get("y").unwrap(), 7)];
            values.sort_unstable();
            let values = values.into_iter().map(|(term, value)| (term, ValueRef::Int(value))).collect();
            let event = Event { values, ..Event::default() };
            let (answer, _) = index.ask(&*reader, &query, &event, &mut space).unwrap();
            let mut expected = vec![x, 7];
            expected.sort_unstable();
            expected.dedup();
            let expected: Vec<_> = expected.into_iter().map(IdRef::Int).collect();
            assert_eq!(shown(&*reader, answer), format!("{expected:?}"));
        }
        assert!(asked < 5_000_000, "{:?}", parts());
    }
}

/// Draws that are the same everywhere.
struct Draws(u64);

impl Draws {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % bound
    }

    fn one_of<T: Clone>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())].clone()
    }
}

/// Numbers next to one another where floats and integers differ, and values of other kinds that look like them.
const OPERANDS: [&str; 14] = [
    "0",
    "-0.0",
    "2",
    "2.5",
    "9007199254740991",
    "9007199254740992",
    "9007199254740993",
    "-9007199254740993",
    "9223372036854775807",
    "'2'",
    "''",
    "'ab'",
    "TRUE",
    "TIMESTAMP '1970-01-01 00:00:00.000002'",
];

fn hostile_rule(draws: &mut Draws) -> Expr {
    let predicate = |draws: &mut Draws| {
        let name = draws.one_of(&["x", "y", "z", "w"]);
        let (one, other) = (draws.one_of(&OPERANDS), draws.one_of(&OPERANDS));
        match draws.below(14) {
            0 => format!("{name} IS NULL"),
            1 => format!("{name} IS NOT NULL"),
            2 => format!("{name} LIKE '{}'", draws.one_of(&["a%", "%2%", "_", "%", "ab"])),
            3 => format!("{name} ILIKE 'A%'"),
            4 => format!("NOT {name} < {one}"),
            5 => format!("{name} IN ({one}, {one})"),
            6 => format!("array_contains({name}, {one})"),
            7 => format!("{name} <=> {one}"),
            8 => format!("{name} >= {one} XOR {name} = {other}"),
            9 => format!("NOT ({name} = {one} OR {name} > {other})"),
            10 => format!("({name} > {one}) IS UNKNOWN"),
            11 => format!("{name} != {one}"),
            12 => format!("{name} <= {one}"),
            _ => format!("{name} = {one}"),
        }
    };
    loop {
        let separator = draws.one_of(&[" AND ", " AND ", " OR ", " XOR "]);
        // With more than eight parts, clauses alone do not decide.
        let parts = draws.one_of(&[1, 1, 2, 2, 3, 4, 10]);
        let inner = draws.one_of(&[" AND ", " OR "]);
        let part = |draws: &mut Draws| {
            let (one, other) = (predicate(draws), predicate(draws));
            if draws.below(3) > 0 { one } else { format!("({one}{inner}{other})") }
        };
        let text: Vec<String> = (0..parts).map(|_| format!("({})", part(draws))).collect();
        if let Ok(expression) = crate::expr::parse(&text.join(separator)) {
            return expression;
        }
    }
}

fn hostile_value(draws: &mut Draws) -> Option<Value> {
    const LIMIT: i64 = 1 << 53;
    Some(match draws.below(18) {
        0 | 1 => return None,
        2 => Value::Float(draws.one_of(&[-0.0, 0.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY])),
        3 | 4 => Value::Int(LIMIT + draws.one_of(&[-1, 0, 1, 2])),
        5 => Value::Float(LIMIT as f64 + draws.one_of(&[-1.0, 0.0, 2.0])),
        6 => Value::Int(draws.one_of(&[i64::MIN, i64::MAX, -LIMIT, -LIMIT - 1, -LIMIT - 2])),
        7 => Value::decimal(draws.one_of(&["9007199254740992.5", "2.50000000000000000000001"])).unwrap(),
        8 | 9 => Value::Int(draws.one_of(&[0, 1, 2, 3])),
        10 => Value::Float(draws.one_of(&[2.0, 2.5, 2.4999999999999996])),
        11 | 12 => Value::Str(draws.one_of(&["2", "", "ab", "AB", "a2", "\0"]).into()),
        13 => Value::Bool(draws.below(2) == 0),
        14 => Value::Timestamp(draws.one_of(&[0, 2, i64::MIN, i64::MAX])),
        15 => Value::Array(vec![Value::Int(2), Value::Null]),
        16 => Value::interval(Value::Int(0), Value::Int(LIMIT + 1)).unwrap(),
        _ => Value::Cell(draws.one_of(&["2", "", "true", "9007199254740993"]).into()),
    })
}

/// A small index has what the evaluator says, also while rules are removed and replaced, for queries that see only some of them, and
/// for threads that make its plan at the same time.
#[test]
fn a_small_index_has_the_matches_that_hold() {
    let mut draws = Draws(18);
    let moments = [None, Some(0), Some(10)];
    let mut found_any = 0;
    for round in 0..60 {
        let index = Index::default();
        let mut rules = std::collections::BTreeMap::new();
        let drawn = |draws: &mut Draws, id: i64| {
            let expression = hostile_rule(draws);
            let mut subscription = Subscription::new(Id::Int(id), expression);
            subscription.tags = draws.one_of(&[vec![], vec!["a".into()], vec!["a".into(), "b".into()]]);
            subscription.expires = if round % 3 == 0 { draws.one_of(&moments) } else { None };
            subscription
        };
        for id in 0..1 + draws.below(120) as i64 {
            let subscription = drawn(&mut draws, id);
            rules.insert(id, subscription.clone());
            index.add(subscription).unwrap();
        }
        for step in 0..4 {
            match step {
                0 => index.optimize().unwrap(),
                1 => (0..3).for_each(|_| {
                    let id = draws.below(121) as i64;
                    assert_eq!(index.remove(Id::Int(id)).is_ok(), rules.remove(&id).is_some());
                }),
                2 => (0..2).for_each(|_| {
                    let id = draws.below(121) as i64;
                    let subscription = drawn(&mut draws, id);
                    rules.insert(id, subscription.clone());
                    index.upsert(subscription).unwrap();
                }),
                _ => index.optimize().unwrap(),
            }
            let events: Vec<_> =
                (0..25).map(|_| ["x", "y", "z", "w"].map(|name| (name, hostile_value(&mut draws)))).collect();
            let filter = |tags: &[&str]| tags.iter().map(|tag| (*tag).into()).collect::<Vec<Box<str>>>();
            let tags = draws.one_of(&[
                Tags::default(),
                Tags { any: Some(filter(&["b", "c"])), ..Tags::default() },
                Tags { all: filter(&["a"]), none: filter(&["b"]), ..Tags::default() },
            ]);
            let query = Query { ask: Ask::All, tags, now: Some(draws.one_of(&[-5, 0, 5, 10])) };
            let ask_all = || {
                let (reader, mut space) = (index.reader().unwrap(), Workspace::default());
                let mut all = vec![];
                for event in &events {
                    let terms = reader.terms();
                    let mut values: Vec<_> = event
                        .iter()
                        .filter_map(|(name, value)| Some((terms.get(name)?, value.as_ref()?.as_ref())))
                        .collect();
                    values.sort_by_key(|(term, _)| *term);
                    let has_intervals = values.iter().any(|(_, value)| value.is_set());
                    let event = Event { values, has_intervals, ..Event::default() };
                    let mut ask = |ask: Ask| {
                        let query = Query { ask, ..query.clone() };
                        shown(&*reader, index.ask(&*reader, &query, &event, &mut space).unwrap().0)
                    };
                    all.push([ask(Ask::All), ask(Ask::Count), ask(Ask::Exists)]);
                }
                all
            };
            let answers: Vec<_> = std::thread::scope(|scope| {
                let threads: Vec<_> = (0..3).map(|_| scope.spawn(ask_all)).collect();
                threads.into_iter().map(|thread| thread.join().unwrap()).collect()
            });
            for (at, event) in events.iter().enumerate() {
                let value = |name: &str| {
                    event.iter().find(|(known, _)| *known == name).and_then(|(_, value)| value.as_ref())
                };
                let holds = |rule: &Subscription| {
                    let truth = evaluate(&rule.expression, &|name| value(name).map(Value::as_ref));
                    query.filter().keeps(rule) && truth.can_be_true
                };
                let ids: Vec<IdRef<'_>> =
                    rules.values().filter(|rule| holds(rule)).map(|rule| rule.id.as_ref()).collect();
                let count = ids.len();
                found_any += count;
                let expected = [
                    format!("{ids:?}"),
                    format!("{:?}", Answer::Count(count)),
                    format!("{:?}", Answer::Exists(count > 0)),
                ];
                for answer in &answers {
                    assert_eq!(answer[at], expected, "{event:?}, {query:?}");
                }
            }
        }
    }
    assert!(found_any > 10_000, "{found_any}");
}
