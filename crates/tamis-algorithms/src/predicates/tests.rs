//! Both matchers agree with the reference evaluator after any acquisitions and releases.

use proptest::prelude::*;

use super::*;
use tamis_core::event::{Record, Terms};
use tamis_core::expr::Predicate;
use tamis_core::expr::testing::{TestEvent, any_event, any_interval_event, any_predicate};

fn reported(predicates: &Predicates, terms: &Terms, event: &TestEvent) -> Vec<Literal> {
    let record = Record::new(event.iter().map(|(name, value)| (*name, value.clone())), []).unwrap();
    let mut satisfied = Satisfied::default();
    predicates.satisfied(&record.resolve(terms), &mut satisfied);
    assert!(satisfied.literals.iter().all(|literal| satisfied.holds(*literal)));
    satisfied.literals.sort_unstable();
    satisfied.literals
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    #[test]
    fn matchers_report_exactly_the_true_literals_in_use(
        predicates in prop::collection::vec((any_predicate(), any::<bool>(), any::<bool>()), 1..25),
        events in prop::collection::vec(prop_oneof![3 => any_event(), 1 => any_interval_event()], 1..4),
    ) {
        for matcher in ["indexed", "evaluate-each"] {
            let mut terms = Terms::default();
            let mut in_use = Predicates::with_matcher(matcher).unwrap();
            let mut held: Vec<(Literal, Predicate)> = vec![];
            for (round, (predicate, negated, stays)) in predicates.iter().enumerate() {
                let attribute = terms.intern_term(&predicate.term);
                let operands = &predicate.operands;
                let literal = in_use.acquire(attribute, predicate.operator, operands, *negated);
                held.push((literal, Predicate { negated: *negated, ..predicate.clone() }));
                if !stays {
                    let (gone, _) = held.swap_remove(round / 2 % held.len());
                    in_use.release(gone);
                }
                for event in &events {
                    let mut expected: Vec<Literal> = held
                        .iter()
                        .filter(|(_, p)| p.outcome(event.get(p.term.name()).map(Value::as_ref)).can_be_true)
                        .map(|(literal, _)| *literal)
                        .collect();
                    expected.sort_unstable();
                    expected.dedup();
                    prop_assert_eq!(reported(&in_use, &terms, event), expected, "{}", matcher);
                }
            }
            for (literal, _) in held {
                in_use.release(literal);
            }
            prop_assert!(in_use.len() == 0);
        }
    }
}

#[test]
fn numbers_of_forgotten_predicates_are_given_away_again() {
    let mut predicates = Predicates::default();
    let equal = |predicates: &mut Predicates, value: i64, negated: bool| {
        predicates.acquire(TermId(0), Operator::EQUAL, &[Value::Int(value)], negated)
    };
    let first = equal(&mut predicates, 1, false);
    let other = equal(&mut predicates, 1, true);
    assert_eq!(first.not(), other);
    assert_eq!(equal(&mut predicates, 1, false), first);
    predicates.release(first);
    predicates.release(other);
    assert_eq!(predicates.len(), 1);
    predicates.release(first);
    assert_eq!(predicates.len(), 0);
    assert_eq!(equal(&mut predicates, 2, false), first);
    assert_eq!(predicates.literals(), 2);
}

#[test]
fn unknown_matchers_are_refused() {
    let error = Predicates::with_matcher("magic").err().unwrap();
    assert_eq!(
        error.to_string(),
        "the option `predicates` is \"indexed\" or \"evaluate-each\", not \"magic\""
    );
}
