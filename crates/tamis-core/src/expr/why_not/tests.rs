//! Answers must be as small as those of an exhaustive search.

use proptest::prelude::*;
use rustc_hash::FxHashMap;

use super::*;
use crate::expr::ast::Outcome;
use crate::expr::operators::Shape;
use crate::expr::testing::{TestEvent, any_event, any_expr, any_interval_event, compare, lookup, predicate};
use crate::value::Value;

fn not(expr: Expr) -> Expr {
    Expr::Not(Box::new(expr))
}

fn changes_of(answer: WhyNot) -> Vec<Change> {
    match answer {
        WhyNot::Changes { changes, is_smallest: true } => changes,
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_cheaper_branch_is_reported() {
    let event = TestEvent::from([("age", Value::Int(20)), ("b", Value::Int(1))]);
    let expr = Expr::And(vec![
        compare("age", ">=", 22),
        Expr::Or(vec![
            Expr::And(vec![compare("c", "=", 1), compare("d", "=", 1)]),
            not(compare("b", "<", 5)),
        ]),
    ]);
    let answer = why_not(&expr, &lookup(&event));
    let json = answer.to_json();
    assert_eq!(json["changes"][0]["text"], "age is 20; needs to be >= 22");
    assert_eq!(json["changes"][1]["text"], "b is 1; needs to be >= 5");
    assert_eq!(json["is_smallest"], true);
    assert_eq!(json["changes"][0]["paths"], json!([[0]]));
    assert_eq!(json["changes"][1]["paths"], json!([[1, 1, 0]]));
    assert_eq!(json["changes"][1]["becomes"], false);
}

#[test]
fn what_matches_and_what_never_can() {
    let event = TestEvent::from([("a", Value::Int(1))]);
    let answer = |expr: &Expr| why_not(expr, &lookup(&event));
    assert_eq!(answer(&compare("a", "=", 1)), WhyNot::Matches);
    assert_eq!(
        answer(&Expr::And(vec![compare("a", "=", 1), Expr::Constant(Outcome::FALSE)])),
        WhyNot::Impossible
    );
    let both = Expr::And(vec![compare("a", "<", 1), compare("b", "=", 1), compare("a", ">=", 1)]);
    assert_eq!(answer(&both), WhyNot::Impossible);
}

#[test]
fn what_can_never_be_true_is_not_asked_for() {
    let null = |operator: &str| Expr::Predicate(predicate("a", operator, &[Value::Null]));
    let answer = |expr: &Expr| why_not(expr, &lookup(&TestEvent::new()));
    assert_eq!(answer(&null("=")), WhyNot::Impossible);
    assert_eq!(answer(&not(null("<"))), WhyNot::Impossible);
    assert_eq!(changes_of(answer(&Expr::Or(vec![null("="), compare("b", "=", 1)]))).len(), 1);
}

#[test]
fn a_repeated_predicate_changes_once() {
    let repeated = || compare("a", "=", 1);
    let branch = |other: &str| Expr::And(vec![repeated(), compare(other, "=", 1)]);
    let expr = Expr::And(vec![
        Expr::Or(vec![repeated(), compare("x", "=", 1)]),
        Expr::Or(vec![compare("y", "=", 1), branch("b")]),
        Expr::Or(vec![compare("z", "=", 1), not(not(repeated()))]),
    ]);
    let found = changes_of(why_not(&expr, &lookup(&TestEvent::from([("b", Value::Int(1))]))));
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].paths, [vec![0, 0], vec![1, 1, 0], vec![2, 1, 0, 0]]);
}

#[test]
fn a_search_that_is_cut_short_says_so() {
    // Each of many repeated predicates is needed in two places.
    let pairs = |from: i64| {
        let pair = |i: i64| Expr::Or(vec![compare("a", "=", i), compare("a", "=", (i * 7 + from) % 60)]);
        Expr::And((0..60).map(pair).collect())
    };
    let expr = Expr::And(vec![pairs(3), pairs(11), pairs(29)]);
    let event = TestEvent::new();
    let WhyNot::Changes { changes, is_smallest } = why_not_within(100_000, &expr, &lookup(&event)) else {
        panic!("an upper bound");
    };
    assert!(!is_smallest && changes.len() <= 60);

    let p = |name: &str| compare(name, "=", 1);
    let unlucky = Expr::And(vec![
        Expr::Or(vec![p("a"), Expr::And(vec![p("b"), p("c")])]),
        Expr::Or(vec![not(p("a")), Expr::And(vec![p("d"), p("e")])]),
    ]);
    assert_eq!(changes_of(why_not(&unlucky, &lookup(&event))).len(), 3);
    let never = Expr::And(vec![p("a"), not(p("a"))]);
    assert_eq!(why_not_within(1, &never, &lookup(&event)), WhyNot::Unknown);
    assert_eq!(why_not(&never, &lookup(&event)), WhyNot::Impossible);
}

/// The name of the positive one of a complementary pair, and whether the predicate is the other.
fn canonical(predicate: &Predicate) -> (String, bool) {
    let (operator, turned) = match predicate.operator.rules().name() {
        ">=" => ("<", true),
        ">" => ("<=", true),
        name => (name, false),
    };
    let name = format!("{} {operator} {:?}", predicate.term, predicate.operands);
    (name, turned != predicate.negated)
}

/// What each distinct predicate is now, and what it can become.
#[derive(Default)]
struct Variables {
    now: FxHashMap<String, Outcome>,
    possible: FxHashMap<String, Outcome>,
}

fn outcome_under(expr: &Expr, truths: &FxHashMap<String, Outcome>) -> Outcome {
    let all = |children: &[Expr]| -> Vec<Outcome> {
        children.iter().map(|child| outcome_under(child, truths)).collect()
    };
    match expr {
        Expr::Constant(outcome) => *outcome,
        Expr::Predicate(predicate) => {
            let (name, turned) = canonical(predicate);
            if turned { !truths[&name] } else { truths[&name] }
        }
        Expr::Not(child) => !outcome_under(child, truths),
        Expr::And(children) => all(children).into_iter().reduce(Outcome::and).unwrap(),
        Expr::Or(children) => all(children).into_iter().reduce(Outcome::or).unwrap(),
        Expr::Xor(children) => all(children).into_iter().reduce(Outcome::xor).unwrap(),
        Expr::Xnor(children) => all(children).into_iter().reduce(|a, b| !a.xor(b)).unwrap(),
        Expr::AtLeast(least, children) => Outcome::at_least(*least, all(children).into_iter()),
    }
}

fn collect(expr: &Expr, event: &TestEvent, variables: &mut Variables) {
    match expr {
        Expr::Constant(_) => {}
        Expr::Predicate(predicate) => {
            let (name, turned) = canonical(predicate);
            let outcome = predicate.look(&lookup(event));
            variables.now.insert(name.clone(), if turned { !outcome } else { outcome });
            let rules = predicate.operator.rules();
            let is_ordering = rules.complement().is_some();
            let is_never = matches!(rules.shape(&predicate.operands), Shape::Never);
            let possible = Outcome { can_be_true: !is_never, can_be_false: !(is_never && is_ordering) };
            variables.possible.insert(name, possible);
        }
        Expr::Not(child) => collect(child, event, variables),
        Expr::And(children)
        | Expr::Or(children)
        | Expr::Xor(children)
        | Expr::Xnor(children)
        | Expr::AtLeast(_, children) => children.iter().for_each(|child| collect(child, event, variables)),
    }
}

fn at<'e>(expr: &'e Expr, path: &[usize]) -> &'e Expr {
    path.iter().fold(expr, |expr, &step| match expr {
        Expr::Not(child) => child,
        Expr::And(children)
        | Expr::Or(children)
        | Expr::Xor(children)
        | Expr::Xnor(children)
        | Expr::AtLeast(_, children) => &children[step],
        leaf => panic!("{leaf:?} has no children"),
    })
}

/// The least number of changes, by trying them all.
fn by_force(expr: &Expr, variables: &Variables) -> Option<usize> {
    let names: Vec<&String> = variables.now.keys().collect();
    let tries = (0..3usize.pow(names.len() as u32)).filter_map(|case| {
        let mut truths = variables.now.clone();
        let mut changed = 0;
        for (place, name) in names.iter().enumerate() {
            let possible = variables.possible[*name];
            match case / 3usize.pow(place as u32) % 3 {
                1 if possible.can_be_true => truths.insert((*name).clone(), Outcome::TRUE),
                2 if possible.can_be_false => truths.insert((*name).clone(), Outcome::FALSE),
                _ => continue,
            };
            changed += 1;
        }
        outcome_under(expr, &truths).can_be_true.then_some(changed)
    });
    tries.min()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, ..ProptestConfig::default() })]

    #[test]
    fn no_smaller_set_would_do(expr in any_expr(3), event in prop_oneof![3 => any_event(), 1 => any_interval_event()]) {
        let mut variables = Variables::default();
        collect(&expr, &event, &mut variables);
        prop_assume!(variables.now.len() <= 7);
        let least = by_force(&expr, &variables);
        let mut truths = variables.now;
        match why_not(&expr, &lookup(&event)) {
            WhyNot::Matches => prop_assert_eq!(least, Some(0)),
            WhyNot::Impossible => prop_assert_eq!(least, None),
            WhyNot::Unknown => prop_assert!(false, "small expressions are always solved"),
            WhyNot::Changes { changes, is_smallest } => {
                prop_assert!(is_smallest);
                prop_assert_eq!(Some(changes.len()), least);
                for change in changes {
                    let (name, turned) = canonical(&change.predicate);
                    for path in &change.paths {
                        let Expr::Predicate(predicate) = at(&expr, path) else { panic!("a predicate") };
                        prop_assert_eq!(&canonical(predicate).0, &name);
                    }
                    truths.insert(name, (change.becomes != turned).into());
                }
                prop_assert!(outcome_under(&expr, &truths).can_be_true);
            }
        }
    }
}
