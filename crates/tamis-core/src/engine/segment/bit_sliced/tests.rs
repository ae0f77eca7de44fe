//! Plans agree with the reference evaluator.

use std::ops::ControlFlow;

use proptest::prelude::*;

use super::{BitSliced, MOST_RULES, Memory};
use crate::engine::segment::forms::Forms;
use crate::engine::segment::layout::Layout;
use crate::engine::segment::layout_planner::lay_out;
use crate::engine::segment::scoring::ScoringBuilder;
use crate::event::{Event, Terms};
use crate::expr::Expr;
use crate::expr::eval::evaluate;
use crate::expr::parser::parse;
use crate::expr::testing;

fn layout_of(exprs: &[Expr], terms: &mut Terms) -> Layout {
    let mut forms = Forms::default();
    exprs.iter().for_each(|expr| {
        forms.push(expr, terms);
    });
    lay_out(forms, &[], &[], ScoringBuilder::default(), 1).unwrap().0
}

fn resolve<'a>(event: &'a testing::TestEvent, terms: &Terms) -> Event<'a> {
    let mut values: Vec<_> =
        event.iter().filter_map(|(name, value)| Some((terms.get(name)?, value.as_ref()))).collect();
    values.sort_by_key(|(attribute, _)| *attribute);
    let has_intervals = event.values().any(crate::event::Value::is_set);
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
