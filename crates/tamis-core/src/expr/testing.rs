//! Random expressions and events for property tests: few attributes and few values, so that predicates
//! repeat, contradict and imply one another. Every registered operator occurs.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::ast::{Expr, Outcome, Predicate};
use super::operators::{Operator, REGISTRY};
use super::truth_test::{TruthTest, truth_test};
use crate::term::{Argument, Function, Term};
use crate::value::{Kind, Value, ValueRef};

/// Near the other numbers, and near one another; the longer ones have no key of their own.
const DECIMALS: [&str; 6] = [
    "2.0000000000000000001",
    "1.9999999999999999999",
    "2.5000000000000000000000000000001",
    "2.5000000000000000000000000000002",
    "2.4999999999999999999999999999999",
    "12345678901234567.89",
];

const ATTRIBUTES: [&str; 3] = ["a", "b", "c"];

/// The attributes that are present, with their values.
pub type TestEvent = BTreeMap<&'static str, Value>;

/// How an evaluator looks up an attribute of a test event.
pub fn lookup<'a>(event: &'a TestEvent) -> impl Fn(&str) -> Option<ValueRef<'a>> {
    |name| event.get(name).map(Value::as_ref)
}

/// A predicate on `attribute`, with operands as they are written.
pub fn predicate(attribute: &str, operator: &str, operands: &[Value]) -> Predicate {
    let operator = Operator::named(operator).expect("a registered operator");
    let operands = operator.rules().check(operands.to_vec()).expect("good operands");
    Predicate { term: attribute.into(), operator, negated: false, operands: operands.into(), weight: None }
}

/// `attribute operator number`.
pub fn compare(attribute: &str, operator: &str, number: i64) -> Expr {
    Expr::Predicate(predicate(attribute, operator, &[Value::Int(number)]))
}

fn number() -> impl Strategy<Value = Value> {
    prop_oneof![
        6 => (0..5i64).prop_map(Value::Int),
        1 => (0..10).prop_map(|halves| Value::Float(halves as f64 / 2.0)),
        1 => Just(Value::Float(f64::NAN)),
        1 => prop::sample::select(&DECIMALS[..]).prop_map(|text| Value::decimal(text).expect("a number")),
    ]
}

fn string() -> impl Strategy<Value = Value> {
    prop_oneof![Just("a"), Just("ab"), Just("b"), Just("ba"), Just("")].prop_map(|s| Value::Str(s.into()))
}

fn operands() -> impl Strategy<Value = Vec<Value>> {
    prop_oneof![
        6 => prop::collection::vec(number(), 3),
        2 => prop::collection::vec(string(), 3),
        1 => prop::collection::vec(any::<bool>().prop_map(Value::Bool), 3),
        1 => prop::collection::vec(prop_oneof![number(), Just(Value::Null)], 3),
    ]
}

/// A predicate of any operator, or a truth test of one.
pub fn any_predicate() -> impl Strategy<Value = Predicate> {
    let test = prop::option::weighted(0.2, prop::sample::select(&TruthTest::ALL[..]));
    (any_plain_predicate(), test).prop_map(|(predicate, test)| {
        let tested = test.and_then(|test| truth_test(&Expr::Predicate(predicate.clone()), test).ok());
        match tested {
            Some(Expr::Predicate(tested)) => tested,
            _ => predicate,
        }
    })
}

/// A predicate that is no truth test: operands are offered in several numbers until its operator accepts them.
fn any_plain_predicate() -> impl Strategy<Value = Predicate> {
    (0..ATTRIBUTES.len(), 0..REGISTRY.len(), any::<bool>(), operands()).prop_map(
        |(attribute, operator, negated, operands)| {
            let accepted = |operator: Operator| {
                [1, 2, 3, 0].into_iter().find_map(|n| operator.rules().check(operands[..n].to_vec()).ok())
            };
            let wanted = Operator::named(REGISTRY[operator].name()).expect("registered");
            let equal = Operator::named("=").expect("registered");
            let (operator, operands) = match accepted(wanted) {
                Some(operands) => (wanted, operands),
                None => (equal, accepted(equal).expect("equality takes any scalar")),
            };
            Predicate {
                term: ATTRIBUTES[attribute].into(),
                operator,
                negated,
                operands: operands.into(),
                weight: None,
            }
        },
    )
}

/// A computed term of any function: arguments are offered until it accepts them.
pub fn any_term() -> impl Strategy<Value = Term> {
    let attribute = prop::sample::select(&ATTRIBUTES[..]).prop_map(Term::attribute).boxed();
    let constant = || prop_oneof![number(), string()].prop_map(Argument::Constant);
    attribute.prop_recursive(2, 6, 3, move |inner| {
        let argument = prop_oneof![3 => inner.clone().prop_map(Argument::Term), 1 => constant()];
        let functions: Vec<Function> = Function::all().collect();
        (prop::sample::select(functions), inner, argument.clone(), argument).prop_map(
            |(function, first, second, third)| {
                let offers = [
                    vec![Argument::Term(first.clone())],
                    vec![Argument::Term(first.clone()), second.clone()],
                    vec![second.clone(), Argument::Term(first.clone())],
                    vec![Argument::Term(first.clone()), second, third],
                ];
                let computed = offers.into_iter().find_map(|offer| Term::computed(function, offer).ok());
                computed.unwrap_or(first)
            },
        )
    })
}

/// The same with predicates on computed terms.
pub fn any_expr_of_terms(depth: u32) -> impl Strategy<Value = Expr> {
    let predicate =
        (any_term(), any_predicate()).prop_filter_map("a test of such values", |(term, predicate)| {
            let is_truth = match &term {
                Term::Attribute(_) | Term::Boolean(_) => true,
                Term::Computed(computed) => computed.function().gives().is_none_or(|kind| kind == Kind::Bool),
            };
            let tested = predicate.operator.tested(&predicate.operands);
            let operator = tested.map_or(predicate.operator, |inner| inner.operator);
            let of_arrays = matches!(operator, Operator::ARRAY_CONTAINS | Operator::ARRAYS_OVERLAP);
            let may_be_array = term.kind().is_none_or(|kind| kind == Kind::Array);
            let fits = (operator != Operator::TRUTH || is_truth) && (!of_arrays || may_be_array);
            fits.then_some(Predicate { term, ..predicate })
        });
    any_expr_over(predicate, depth)
}

/// Expressions of all node types, at most `depth` connectives deep.
pub fn any_expr(depth: u32) -> impl Strategy<Value = Expr> {
    any_expr_over(any_predicate(), depth)
}

fn any_expr_over(
    predicates: impl Strategy<Value = Predicate> + 'static,
    depth: u32,
) -> impl Strategy<Value = Expr> {
    let constants = vec![Outcome::TRUE, Outcome::FALSE, Outcome::UNDEFINED];
    let leaf = prop_oneof![
        20 => predicates.prop_map(Expr::Predicate),
        1 => prop::sample::select(constants).prop_map(Expr::Constant),
    ];
    leaf.prop_recursive(depth, 48, 4, |inner| {
        let children = || prop::collection::vec(inner.clone(), 2..4);
        prop_oneof![
            3 => children().prop_map(Expr::And),
            3 => children().prop_map(Expr::Or),
            2 => inner.clone().prop_map(|child| Expr::Not(Box::new(child))),
            1 => children().prop_map(Expr::Xor),
            1 => children().prop_map(Expr::Xnor),
            2 => (prop::collection::vec(inner.clone(), 1..6), any::<prop::sample::Index>())
                .prop_map(|(children, least)| Expr::AtLeast(least.index(children.len()) + 1, children)),
            1 => (inner.clone(), prop::sample::select(&TruthTest::ALL[..]))
                .prop_map(|(child, test)| truth_test(&child, test).expect("a small expression")),
        ]
    })
}

fn point() -> impl Strategy<Value = Value> {
    prop_oneof![
        8 => number(),
        3 => string(),
        1 => any::<bool>().prop_map(Value::Bool),
        1 => prop::collection::vec(prop_oneof![number(), Just(Value::Null)], 0..3).prop_map(Value::Array),
        1 => Just(Value::Record),
    ]
}

fn interval() -> impl Strategy<Value = Value> {
    prop_oneof![3 => (number(), number()), 1 => (string(), string())].prop_map(|(a, b)| {
        let ordered = a.as_ref().compare(b.as_ref()).expect("one kind").is_le();
        Value::Interval(Box::new(if ordered { (a, b) } else { (b, a) }))
    })
}

fn event_of(value: impl Strategy<Value = Value> + Clone) -> impl Strategy<Value = TestEvent> {
    let values = [(); ATTRIBUTES.len()].map(|()| prop::option::weighted(0.75, value.clone()));
    values.prop_map(|values| {
        ATTRIBUTES.into_iter().zip(values).filter_map(|(name, value)| Some((name, value?))).collect()
    })
}

/// Events of points; an attribute may be absent or of any kind.
pub fn any_event() -> impl Strategy<Value = TestEvent> {
    event_of(point().boxed())
}

/// Events with intervals and other sets of values among the points.
pub fn any_interval_event() -> impl Strategy<Value = TestEvent> {
    event_of(prop_oneof![2 => interval(), 1 => set(), 1 => point()].boxed())
}

/// The values that satisfy some predicate.
fn set() -> impl Strategy<Value = Value> {
    any_predicate().prop_filter_map("a predicate that gives values", |predicate| {
        Value::satisfying(predicate.operator, &predicate.operands, predicate.negated).ok()
    })
}
