//! An event on several threads has the same answer as on one, and an index that is queried becomes one
//! segment.
//!
//! In tests, two entries are enough for another thread, so that nearly every event is shared.

use proptest::prelude::*;

use crate::engine::contract::{Answer, NewSubscriptions, Version, Workspace};
use crate::engine::{Id, Index, Subscription};
use crate::error::{Error, Result};
use crate::event::{Event, Value, ValueRef};
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
