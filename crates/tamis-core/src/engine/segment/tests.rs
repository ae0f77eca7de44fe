//! Segments agree with the reference evaluator.

use std::ops::ControlFlow;

use proptest::prelude::*;

use super::SegmentBuilder;
use super::best_first::{Limits, RankingCollector, Wanted};
use super::bit_parallel::{self, BlockScratch};
use super::forms::Forms;
use super::layout::Layout;
use super::layout_planner::lay_out;
use super::matcher::Scratch;
use super::scoring::ScoringBuilder;
use super::scoring::entry_bounds::EntryBound;
use super::scoring::row_sketches::{Factors, RowSketches};
use super::threads::Threads;
use super::walk::UnitCollector;
use crate::event::{Event, Terms};
use crate::expr::Expr;
use crate::expr::eval::evaluate;
use crate::expr::testing;
use crate::query::{Measure, Ranking, Scale, Score};
use crate::subscription::{Id, Subscription};

fn resolve<'a>(event: &'a testing::TestEvent, terms: &Terms) -> Event<'a> {
    let mut values: Vec<_> =
        event.iter().filter_map(|(name, value)| Some((terms.get(name)?, value.as_ref()))).collect();
    values.sort_by_key(|(attribute, _)| *attribute);
    let has_intervals = event.values().any(crate::event::Value::is_set);
    Event { values, has_intervals, ..Event::default() }
}

fn rows_found(layout: &Layout, event: &Event<'_>, scratch: &mut Scratch) -> Vec<u32> {
    let mut found = vec![];
    layout.matching_units(event, scratch, &mut |unit| {
        found.extend_from_slice(layout.rows_of(unit));
        std::ops::ControlFlow::Continue(())
    });
    found.sort_unstable();
    found
}

fn rows_that_hold(exprs: &[Expr], event: &Event<'_>, terms: &Terms) -> Vec<u32> {
    let holds = |expr: &Expr| evaluate(expr, &|name| event.get(terms.get(name)?)).can_be_true;
    (0..exprs.len() as u32).filter(|row| holds(&exprs[*row as usize])).collect()
}

/// What the sketch of a row says, if it has one.
fn bound(sketches: &RowSketches, row: u32, bits: &[u64], factors: &Factors) -> Option<f64> {
    sketches.place_of(row).map(|place| sketches.bound_at(place, bits, factors))
}

/// Takes units one by one, and remembers the threshold that the last one gave.
struct OneByOne<F>(F, f64);

impl<F: FnMut(u32, &[u64]) -> f64> UnitCollector for OneByOne<F> {
    fn unit(&mut self, unit: u32, bits: &[u64]) -> ControlFlow<()> {
        self.1 = self.0(unit, bits);
        ControlFlow::Continue(())
    }

    fn least_wanted(&self) -> f64 {
        self.1
    }
}

impl<F: FnMut(u32, &[u64]) -> f64> RankingCollector for OneByOne<F> {
    fn least_bound(&self, _: f64) -> f32 {
        0.0
    }

    fn promised(&self, _: EntryBound, _: &[u64]) -> f64 {
        f64::INFINITY
    }

    fn fetch_promised(&self, _: EntryBound) {}

    fn could_tie(&self, _: u32) -> bool {
        true
    }

    fn units(&mut self, units: &[u32], bits: &[u64]) {
        for unit in units {
            let _ = self.unit(*unit, bits);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    #[test]
    fn the_rows_found_are_the_expressions_that_hold(
        exprs in prop::collection::vec(testing::any_expr(4), 1..30),
        events in prop::collection::vec(testing::any_event(), 1..6),
    ) {
        let mut terms = Terms::default();
        let mut forms = Forms::default();
        for expr in &exprs {
            forms.push(expr, &mut terms);
        }
        let resolved: Vec<Event<'_>> = events.iter().map(|event| resolve(event, &terms)).collect();
        let half = &resolved[..resolved.len() / 2];
        let (layout, ..) = lay_out(forms, half, &[], ScoringBuilder::default(), &Threads::new(1)).unwrap();
        let mut scratch = Scratch::default();
        for event in &resolved {
            let found = rows_found(&layout, event, &mut scratch);
            let expected = rows_that_hold(&exprs, event, &terms);
            prop_assert_eq!(found, expected);
        }
        // The second block must not see what the first one left.
        let mut scratch = BlockScratch::default();
        for block in [&resolved[..], half, &resolved[..]] {
            let mut by_event = vec![vec![]; block.len()];
            bit_parallel::matching_units(&layout, block.iter(), &mut scratch, |unit, events| {
                events.for_each(|event| by_event[event].extend_from_slice(layout.rows_of(unit)));
            });
            for (event, mut found) in block.iter().zip(by_event) {
                found.sort_unstable();
                prop_assert_eq!(found, rows_that_hold(&exprs, event, &terms));
            }
        }
    }

    #[test]
    fn interval_events_report_at_least_the_rows_that_can_hold(
        exprs in prop::collection::vec(testing::any_expr(4), 1..20),
        event in testing::any_interval_event(),
    ) {
        let mut terms = Terms::default();
        let mut forms = Forms::default();
        let mut point_only = vec![];
        for (row, expr) in exprs.iter().enumerate() {
            point_only.extend(forms.push(expr, &mut terms).then_some(row as u32));
        }
        let (layout, ..) = lay_out(forms, &[], &[], ScoringBuilder::default(), &Threads::new(1)).unwrap();
        let event = resolve(&event, &terms);
        let found = rows_found(&layout, &event, &mut Scratch::default());
        for row in rows_that_hold(&exprs, &event, &terms) {
            prop_assert!(found.contains(&row) || point_only.contains(&row), "row {} is missing", row);
        }
    }

    #[test]
    fn best_first_finds_every_row_that_is_wanted(
        exprs in prop::collection::vec((testing::any_expr(3), 0..4), 1..200),
        event in testing::any_event(),
        k in 1usize..6,
    ) {
        let mut terms = Terms::default();
        let mut forms = Forms::default();
        for (expr, _) in &exprs {
            forms.push(expr, &mut terms);
        }
        let priorities: Vec<f64> = exprs.iter().map(|(_, priority)| *priority as f64).collect();
        let (layout, ..) = lay_out(forms, &[], &priorities, ScoringBuilder::default(), &Threads::new(1)).unwrap();
        let event = resolve(&event, &terms);
        let mut scores = vec![];
        let wanted = Wanted { k, least: f64::NEG_INFINITY, limits: Limits::new(&layout.block_bounds, 0.0, &|bound| bound) };
        layout.best_units(&event, &mut Scratch::default(), &wanted, &mut OneByOne(|unit, _: &[u64]| {
            scores.extend(layout.rows_of(unit).iter().map(|row| priorities[*row as usize]));
            scores.sort_by(|a, b| b.total_cmp(a));
            scores.get(k - 1).copied().unwrap_or(f64::NEG_INFINITY)
        }, f64::NEG_INFINITY));
        let plain: Vec<Expr> = exprs.into_iter().map(|(expr, _)| expr).collect();
        let mut expected: Vec<f64> =
            rows_that_hold(&plain, &event, &terms).into_iter().map(|row| priorities[row as usize]).collect();
        expected.sort_by(|a, b| b.total_cmp(a));
        expected.truncate(k);
        scores.truncate(k);
        prop_assert_eq!(scores, expected);
    }

    #[test]
    fn programs_score_as_the_definition_does(
        exprs in prop::collection::vec(testing::any_expr(4), 1..20),
        event in testing::any_event(),
        factor in 0.0..2.0f64,
    ) {
        let mut builder = SegmentBuilder::new(Terms::default());
        let subscriptions: Vec<Subscription> = (0..exprs.len() as i64)
            .map(|id| Subscription {
                weights: vec![("a".into(), 0.1 + id as f64 / 7.0), ("b".into(), 1.0)],
                ..Subscription::new(Id::Int(id), exprs[id as usize].clone())
            })
            .collect();
        for subscription in &subscriptions {
            builder.push(subscription).unwrap();
        }
        let (segment, terms) = builder.finish(&[], &Threads::new(1)).unwrap();
        let (entries, bits) = (segment.layout.entries.len(), segment.layout.catalog.bits);
        prop_assert_eq!(segment.scoring.validate(exprs.len(), entries, bits), Ok(()));
        let relaxed = segment.relaxed(&terms).unwrap();
        let plain = resolve(&event, &terms);
        let weights = terms.get("a").map(|a| (a, factor)).into_iter().collect();
        let weighted = Event { weights, ..plain.clone() };
        for event in [&plain, &weighted] {
            let scale = Scale::new(event, None, &terms);
            let score = |score: Score, row: u32| {
                let ranking = Ranking::new(1, score);
                Measure::new(&ranking, event, &terms).of(&subscriptions[row as usize], event, &terms)
            };
            let mut scratch = Scratch::default();
            let limits = Limits::new(&[], f64::INFINITY, &|bound| bound);
            let everything = Wanted { k: usize::MAX, least: f64::NEG_INFINITY, limits };
            let factors = Factors::new(&scale, event, &segment.layout.catalog);
            let mut found = vec![];
            segment.layout.best_units(event, &mut scratch, &everything, &mut OneByOne(|unit, bits: &[u64]| {
                for &row in segment.layout.rows_of(unit) {
                    let sketch = bound(&segment.scoring.sketches, row, bits, &factors);
                    found.push((row, segment.scoring.relevance(row, bits, &scale), sketch));
                }
                f64::NEG_INFINITY
            }, f64::NEG_INFINITY));
            for (row, program, sketch) in found {
                if program.is_some() {
                    prop_assert_eq!(program, score(Score::Relevance, row));
                    prop_assert!(sketch.is_none_or(|sketch| sketch >= program.unwrap()));
                }
            }
            let factors = Factors::new(&scale, event, &relaxed.layout.catalog);
            let mut found = vec![];
            relaxed.layout.best_units(event, &mut scratch, &everything, &mut OneByOne(|unit, bits: &[u64]| {
                for &row in relaxed.layout.rows_of(unit) {
                    let score = relaxed.scoring.relaxed(row, bits, &scale);
                    let sketch = bound(&relaxed.scoring.sketches, row, bits, &factors);
                    // Attributes that the event lacks count by the greatest factor. What is rounded up is at most a
                    // step, two of 255 of the greatest weight, per leaf.
                    let stretch = if event.values.len() < terms.len() { scale.most().max(1.0) } else { 1.0 };
                    let slack = 0.01 + 400.0 * scale.most() * 3.0 / 255.0;
                    assert!(
                        sketch.zip(score).is_some_and(|(sketch, score)| {
                            sketch >= score && sketch <= score * stretch + slack
                        }),
                        "{sketch:?} bounds {score:?}, the greatest factor is {}",
                        scale.most()
                    );
                    found.push((row, score));
                }
                f64::NEG_INFINITY
            }, f64::NEG_INFINITY));
            found.sort_by_key(|(row, _)| *row);
            let expected: Vec<(u32, Option<f64>)> = (0..exprs.len() as u32)
                .map(|row| (row, score(Score::Relaxed, row)))
                .filter(|(_, score)| score.is_some())
                .collect();
            prop_assert_eq!(found, expected);
        }
    }
}
