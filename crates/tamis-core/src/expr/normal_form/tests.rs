//! The form must be true exactly when the written expression is; and it must stay small.

use std::time::Instant;

use proptest::prelude::*;

use super::*;
use crate::expr::ast::Outcome;
use crate::expr::atoms::Literal;
use crate::expr::eval::evaluate;
use crate::expr::testing::{TestEvent, any_event, any_expr, any_interval_event, compare, lookup, predicate};
use crate::value::Value;

/// One index: expressions normalised here share attributes and atoms.
#[derive(Default)]
struct Index {
    terms: Terms,
    atoms: AtomTable,
}

impl Index {
    fn normal_form(&mut self, expr: &Expr) -> NormalForm {
        normal_form(expr, &mut self.terms, &mut self.atoms)
    }

    fn form(&mut self, expr: &Expr) -> Form {
        self.normal_form(expr).root
    }

    fn is_true(&self, form: &Form, event: &TestEvent) -> bool {
        form.is_true(&|literal: Literal| {
            let atom = self.atoms.atom(literal.atom());
            let value = event.get(self.terms.name(atom.attribute));
            literal.holds(atom.outcome(value.map(Value::as_ref)))
        })
    }
}

fn not(expr: Expr) -> Expr {
    Expr::Not(Box::new(expr))
}

fn and<const N: usize>(children: [Expr; N]) -> Expr {
    Expr::And(children.into())
}

fn or<const N: usize>(children: [Expr; N]) -> Expr {
    Expr::Or(children.into())
}

fn xor<const N: usize>(children: [Expr; N]) -> Expr {
    Expr::Xor(children.into())
}

/// Predicates on attributes of their own, so that nothing is known of them but their names.
fn p(name: &str) -> Expr {
    compare(name, "=", 1)
}

/// The same expression with the children of AND, OR, XOR in another order, and a double negation.
fn rearranged(expr: &Expr) -> Expr {
    let turned = |children: &[Expr]| children.iter().rev().map(rearranged).collect::<Vec<_>>();
    match expr {
        Expr::And(children) => Expr::And(turned(children)),
        Expr::Or(children) => not(not(Expr::Or(turned(children)))),
        Expr::Xor(children) => Expr::Xor(turned(children)),
        Expr::Xnor(children) => Expr::Xnor(turned(children)),
        Expr::AtLeast(least, children) => Expr::AtLeast(*least, turned(children)),
        Expr::Not(child) => not(rearranged(child)),
        leaf => leaf.clone(),
    }
}

/// What the type promises: sorted, distinct, flat, no constants inside.
fn assert_normal(form: &Form) {
    if let Form::And(children) | Form::Or(children) = form {
        assert!(children.len() > 1 && children.is_sorted_by(|a, b| a < b), "{form:?}");
        for child in children {
            assert!(!matches!(child, Form::True | Form::False), "{form:?}");
            assert_ne!(std::mem::discriminant(child), std::mem::discriminant(form), "{form:?}");
            assert_normal(child);
        }
    }
    if let Form::AtLeast(least, children) = form {
        assert!(1 < *least && (*least as usize) < children.len() && children.is_sorted(), "{form:?}");
        for child in children {
            assert!(!matches!(child, Form::True | Form::False), "{form:?}");
            assert_normal(child);
        }
    }
    if let Form::Parity { children, .. } = form {
        assert!(children.len() > 1 && children.is_sorted(), "{form:?}");
        for (if_true, if_false) in children {
            assert_normal(if_true);
            assert_normal(if_false);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, ..ProptestConfig::default() })]

    #[test]
    fn true_exactly_when_the_expression_is(expr in any_expr(5), events in prop::collection::vec(any_event(), 8)) {
        let mut index = Index::default();
        let form = index.form(&expr);
        let negation = index.form(&not(expr.clone()));
        assert_normal(&form);
        for event in &events {
            let outcome = evaluate(&expr, &lookup(event));
            prop_assert_eq!(index.is_true(&form, event), outcome.can_be_true, "{:?} on {:?}", form, event);
            prop_assert_eq!(index.is_true(&negation, event), outcome.can_be_false, "{:?} on {:?}", negation, event);
        }
    }

    #[test]
    fn exact_for_intervals_unless_it_says_otherwise(
        expr in any_expr(4),
        events in prop::collection::vec(any_interval_event(), 8),
    ) {
        let mut index = Index::default();
        let NormalForm { root, point_only } = index.normal_form(&expr);
        if !point_only {
            for event in &events {
                let outcome = evaluate(&expr, &lookup(event));
                prop_assert_eq!(index.is_true(&root, event), outcome.can_be_true, "{:?} on {:?}", root, event);
            }
        }
    }

    #[test]
    fn order_and_double_negation_do_not_matter(expr in any_expr(5)) {
        let mut index = Index::default();
        let form = index.form(&expr);
        prop_assert_eq!(index.form(&rearranged(&expr)), form);
    }
}

#[test]
fn thresholds_stay_one_node() {
    let mut index = Index::default();
    let some = |least, names: &[&str]| Expr::AtLeast(least, names.iter().map(|name| p(name)).collect());
    assert_eq!(index.form(&some(1, &["a", "b"])), index.form(&or([p("a"), p("b")])));
    assert_eq!(index.form(&some(2, &["a", "b"])), index.form(&and([p("a"), p("b")])));
    let negations = ["a", "b", "c", "d"].map(|name| not(p(name))).to_vec();
    assert_eq!(index.form(&not(some(2, &["a", "b", "c", "d"]))), index.form(&Expr::AtLeast(3, negations)));
    let repeated = index.form(&some(2, &["a", "a", "b"]));
    assert!(matches!(&repeated, Form::AtLeast(2, children) if children.len() == 3), "duplicates count");
    let with_constants =
        vec![p("a"), Expr::Constant(Outcome::TRUE), p("b"), Expr::Constant(Outcome::UNDEFINED), p("c")];
    assert_eq!(index.form(&Expr::AtLeast(3, with_constants)), index.form(&some(2, &["a", "b", "c"])));
    let names: Vec<String> = (0..60).map(|i| format!("x{i}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    assert_eq!(index.form(&some(30, &names)).node_count(), 61, "no combinations are written out");
}

#[test]
fn nested_connectives_become_one() {
    let mut index = Index::default();
    let flat = index.form(&and([p("a"), p("b"), p("c")]));
    assert!(matches!(&flat, Form::And(children) if children.len() == 3));
    assert_eq!(index.form(&and([p("c"), and([p("b"), not(or([not(p("a")), not(p("b"))]))])])), flat);
}

#[test]
fn negation_becomes_the_complement_or_a_negated_literal() {
    let mut index = Index::default();
    let at_least = index.form(&compare("a", ">=", 3));
    assert_eq!(index.form(&not(compare("a", "<", 3))), at_least);
    let mut written_negated = predicate("a", "<", &[Value::Int(3)]);
    written_negated.negated = true;
    assert_eq!(index.form(&Expr::Predicate(written_negated)), at_least);
    let Form::Literal(equal) = index.form(&p("a")) else { panic!("a literal") };
    assert_eq!(index.form(&not(p("a"))), Form::Literal(equal.not()));
}

#[test]
fn what_no_point_satisfies_is_false() {
    let number = |operator, n| compare("x", operator, n);
    let text = Expr::Predicate(predicate("x", "=", &[Value::Str("a".into())]));
    let contradictions = [
        (and([number(">", 5), number("<", 3)]), true),
        (and([number(">", 3), number("<=", 3)]), true),
        (and([number("=", 1), number("=", 2)]), true),
        (and([number("=", 1), number(">", 5)]), true),
        (and([number("=", 1), not(number("=", 1))]), true),
        (
            and([p("y"), or([and([number("<", 1), number("=", 1)]), and([number(">", 5), number("<", 3)])])]),
            true,
        ),
        (and([number("=", 1), text.clone()]), true),
        (and([number(">", 1), not(text)]), true),
    ];
    for (expr, point_only) in contradictions {
        assert_eq!(
            Index::default().normal_form(&expr),
            NormalForm { root: Form::False, point_only },
            "{expr:?}"
        );
    }
    for possible in [
        and([number(">", 3), number("<", 4)]),
        and([number(">=", 3), number("<=", 3)]),
        or([number("<", 1), number(">", 5)]),
        or([number("=", 1), not(number("=", 1))]),
    ] {
        let form = Index::default().normal_form(&possible);
        assert!(!matches!(form.root, Form::False | Form::True) && !form.point_only, "{possible:?}");
    }
}

#[test]
fn implied_ranges_are_dropped() {
    let mut index = Index::default();
    let number = |operator, n| compare("x", operator, n);
    for (written, short) in [
        (and([number(">", 3), number(">", 5), number(">=", 5)]), number(">", 5)),
        (and([number("=", 7), number(">", 5)]), number("=", 7)),
        (or([number(">", 3), number(">", 5), number(">=", 3)]), number(">=", 3)),
        (
            and([number(">", 3), number(">", 5), number("<", 9), number("<=", 9)]),
            and([number(">", 5), number("<", 9)]),
        ),
    ] {
        let expected = NormalForm { root: index.form(&short), point_only: false };
        assert_eq!(index.normal_form(&written), expected, "{written:?}");
    }
}

#[test]
fn absorption() {
    let mut index = Index::default();
    let a = index.form(&p("a"));
    assert_eq!(index.form(&or([p("a"), and([p("b"), p("a")])])), a);
    assert_eq!(index.form(&and([p("a"), or([p("b"), p("a")])])), a);
}

#[test]
fn undefined_is_never_true() {
    let null = Expr::Constant(Outcome::UNDEFINED);
    let mut index = Index::default();
    assert_eq!(index.form(&null), Form::False);
    assert_eq!(index.form(&not(null.clone())), Form::False);
    assert_eq!(index.form(&xor([null.clone(), p("a")])), Form::False);
    assert_eq!(index.form(&or([null, p("a")])), index.form(&p("a")));
    assert_eq!(index.form(&Expr::Predicate(predicate("a", "<", &[Value::Null]))), Form::False);
}

#[test]
fn two_children_are_expanded_and_three_are_kept() {
    let mut index = Index::default();
    let expanded = index.form(&or([and([p("a"), not(p("b"))]), and([not(p("a")), p("b")])]));
    assert_eq!(index.form(&xor([p("a"), p("b")])), expanded);
    assert_eq!(index.form(&Expr::Xnor(vec![p("a"), not(p("b"))])), expanded);
    let kept = index.form(&xor([p("a"), p("b"), p("c")]));
    assert!(matches!(&kept, Form::Parity { odd: true, children } if children.len() == 3));
    let true_ = Expr::Constant(Outcome::TRUE);
    for same in [
        xor([p("c"), xor([p("b"), p("a")])]),
        xor([not(p("c")), Expr::Xnor(vec![p("b"), p("a")])]),
        xor([not(p("c")), xor([true_.clone(), p("b")]), p("a")]),
        xor([p("c"), and([true_, xor([p("b"), p("a")])])]),
    ] {
        assert_eq!(index.form(&same), kept, "{same:?}");
    }
}

#[test]
fn equal_children_of_a_parity_cancel_for_points() {
    let mut index = Index::default();
    let form = index.normal_form(&xor([p("a"), p("b"), p("a")]));
    assert!(form.point_only);
    assert!(form.root.node_count() <= 5, "{form:?}");
    let with = |values: &[(&'static str, i64)]| -> TestEvent {
        values.iter().map(|&(name, value)| (name, Value::Int(value))).collect()
    };
    assert!(index.is_true(&form.root, &with(&[("a", 0), ("b", 1)])));
    assert!(!index.is_true(&form.root, &with(&[("b", 1)])), "an absent a makes it undefined");
}

#[test]
fn a_long_xor_chain_stays_short() {
    let children: Vec<Expr> = (0..20).map(|i| p(&format!("x{i}"))).collect();
    assert_eq!(Index::default().form(&Expr::Xor(children)).node_count(), 41);
}

/// XOR inside AND inside XOR …, the same subexpression on both sides or not.
fn nest(levels: usize) -> Expr {
    (0..levels).fold(p("x"), |inner, level| {
        xor([and([inner, p(&format!("a{level}"))]), p(&format!("b{level}")), p(&format!("c{level}"))])
    })
}

#[test]
fn nested_parities_grow_with_the_text() {
    let count = |levels| Index::default().form(&nest(levels)).node_count();
    let (ten, hundred) = (count(10), count(100));
    assert!(ten < 150 && hundred < 15 * ten, "{ten} and {hundred} nodes");

    let mut index = Index::default();
    let twins = index.form(&xor([and([nest(90), p("l")]), and([nest(90), p("r")]), nest(90), p("z")]));
    assert!(twins.node_count() < 3000);
    let guarded = (0..60).fold(p("x"), |inner, level| {
        let never = and([compare("y", "=", 1), compare("y", "=", 2), inner]);
        xor([never, p(&format!("b{level}")), p(&format!("c{level}"))])
    });
    assert!(index.form(&guarded).node_count() < 3000);
}

#[test]
fn nested_parities_are_right() {
    let expr = nest(3);
    let mut index = Index::default();
    let form = index.form(&expr);
    let names = ["x", "a0", "b0", "c0", "a1", "b1", "c1", "a2", "b2"];
    for case in 0..3usize.pow(names.len() as u32) {
        let digit = |at: usize| case / 3usize.pow(at as u32) % 3;
        let event: TestEvent = (0..names.len())
            .filter(|&at| digit(at) < 2)
            .map(|at| (names[at], Value::Int(digit(at) as i64)))
            .chain([("c2", Value::Int(0))])
            .collect();
        assert_eq!(index.is_true(&form, &event), evaluate(&expr, &lookup(&event)).can_be_true);
    }
}

#[test]
fn wide_expressions_take_no_quadratic_time() {
    let start = Instant::now();
    let wide = |operator: &'static str, terms: usize| -> Vec<Expr> {
        (0..20_000).map(|i| compare(&format!("x{}", i % terms), operator, i as i64)).collect()
    };
    let mut index = Index::default();
    for children in [wide("=", 1), wide("=", 20_000), wide("<", 1), wide(">", 100)] {
        let negated = children.iter().cloned().map(not).collect();
        index.form(&Expr::And(children.clone()));
        index.form(&Expr::Or(children.clone()));
        index.form(&Expr::And(negated));
        index.form(&Expr::Xor(children));
    }
    // Linear work takes a fraction of a second; quadratic would be minutes.
    assert!(start.elapsed().as_secs() < 20);
}
