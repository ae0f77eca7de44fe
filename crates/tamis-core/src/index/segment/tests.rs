//! Segments agree with the reference evaluator.

use proptest::prelude::*;

use super::builder::LayoutBuilder;
use super::matcher::Scratch;
use crate::event::{Attributes, Event};
use crate::expr::atoms::AtomTable;
use crate::expr::eval::evaluate;
use crate::expr::normal_form::normal_form;
use crate::expr::testing;

fn resolve<'a>(event: &'a testing::TestEvent, attributes: &Attributes) -> Event<'a> {
    let mut values: Vec<_> = event
        .iter()
        .filter_map(|(name, value)| Some((attributes.get(name)?, value.as_ref())))
        .collect();
    values.sort_by_key(|(attribute, _)| *attribute);
    let has_intervals = event.values().any(|value| matches!(value, crate::event::Value::Interval(_)));
    Event { values, weights: vec![], has_intervals }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    #[test]
    fn the_rows_found_are_the_expressions_that_hold(
        exprs in prop::collection::vec(testing::any_expr(4), 1..30),
        events in prop::collection::vec(testing::any_event(), 1..6),
    ) {
        let mut attributes = Attributes::default();
        let mut atoms = AtomTable::default();
        let mut builder = LayoutBuilder::default();
        for expr in &exprs {
            builder.push(&normal_form(expr, &mut attributes, &mut atoms).root);
        }
        let resolved: Vec<Event<'_>> = events.iter().map(|event| resolve(event, &attributes)).collect();
        let (layout, _) = builder.finish(&atoms, &resolved[..resolved.len() / 2], &[]).unwrap();
        let mut scratch = Scratch::default();
        for event in &resolved {
            let mut found = vec![];
            layout.matching_units(event, &mut scratch, |unit| {
                found.extend_from_slice(layout.rows_of(unit));
                std::ops::ControlFlow::Continue(())
            });
            found.sort_unstable();
            let expected: Vec<u32> = (0..exprs.len() as u32)
                .filter(|row| {
                    evaluate(&exprs[*row as usize], &|name| event.get(attributes.get(name)?)).can_be_true
                })
                .collect();
            prop_assert_eq!(found, expected);
        }
    }
}
