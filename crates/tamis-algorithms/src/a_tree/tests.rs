use proptest::prelude::*;

use super::*;
use tamis_core::Id;
use tamis_core::event::Record;
use tamis_core::expr::testing::{TestEvent, any_event, any_expr, any_interval_event, lookup};
use tamis_core::expr::{Expr, evaluate, parse};

fn tree(options: &[(&str, Value)]) -> ATree {
    let mut tree = ATree::default();
    options.iter().for_each(|(name, value)| tree.set_option(name, value).unwrap());
    tree
}

fn add(tree: &mut ATree, terms: &mut Terms, row: u32, expr: &Expr) {
    tree.insert(row, &Subscription::new(Id::Int(row as i64), expr.clone()), terms).unwrap();
}

fn take(tree: &mut ATree, terms: &Terms, row: u32, expr: &Expr) {
    tree.remove(row, &Subscription::new(Id::Int(row as i64), expr.clone()), terms);
}

fn matches(tree: &ATree, terms: &Terms, event: &TestEvent) -> Vec<u32> {
    let record = Record::new(event.iter().map(|(name, value)| (*name, value.clone())), []).unwrap();
    let mut found = vec![];
    tree.matches(&record.resolve(terms), terms, &mut |row| found.push(row));
    found.sort_unstable();
    found
}

fn count(tree: &ATree, name: &str) -> u64 {
    tree.counters().into_iter().find(|(counter, _)| *counter == name).unwrap().1
}

fn settings() -> impl Strategy<Value = Vec<(&'static str, Value)>> {
    let switch = |name: &'static str| any::<bool>().prop_map(move |on| (name, Value::Bool(on)));
    let shape = prop_oneof![4 => Just("multitree"), 1 => Just("binary")];
    (
        prop_oneof![4 => Just(true), 1 => Just(false)],
        shape,
        switch("reorganize"),
        switch("self_adjust"),
        switch("zero_suppression"),
        switch("propagation_on_demand"),
        switch("published_ids"),
    )
        .prop_map(|(sharing, shape, a, b, c, d, e)| {
            vec![("sharing", Value::Bool(sharing)), ("shape", Value::Str(shape.into())), a, b, c, d, e]
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]
    #[test]
    fn every_setting_agrees_with_the_evaluator_and_keeps_the_invariants(
        options in settings(),
        expressions in prop::collection::vec((any_expr(3), any::<bool>()), 1..14),
        events in prop::collection::vec(prop_oneof![3 => any_event(), 1 => any_interval_event()], 1..5),
    ) {
        let (mut tree, mut terms) = (tree(&options), Terms::default());
        let mut held: Vec<(u32, &Expr)> = vec![];
        for (row, (expr, stays)) in expressions.iter().enumerate() {
            add(&mut tree, &mut terms, row as u32, expr);
            held.push((row as u32, expr));
            tree.check();
            if !stays {
                let (row, expr) = held.swap_remove(row / 2 % held.len());
                take(&mut tree, &terms, row, expr);
                tree.check();
            }
        }
        for event in &events {
            let mut expected: Vec<u32> = held
                .iter()
                .filter(|(_, expr)| evaluate(expr, &lookup(event)).can_be_true)
                .map(|(row, _)| *row)
                .collect();
            expected.sort_unstable();
            prop_assert_eq!(matches(&tree, &terms, event), expected);
        }
        for (row, expr) in held {
            take(&mut tree, &terms, row, expr);
        }
        prop_assert_eq!((tree.graph.len(), tree.predicates.len()), (0, 0));
    }
}

/// `p1` stands for `p1 = 1`.
fn written(text: &str) -> Expr {
    let mut out = String::new();
    for word in text.replace('(', "( ").replace(')', " )").split(' ') {
        out += &if word.starts_with('p') { format!("{word} = 1 ") } else { format!("{word} ") };
    }
    parse(&out).unwrap()
}

#[test]
fn the_example_of_the_paper_shares_its_subexpression() {
    let (mut tree, mut terms) = (tree(&[]), Terms::default());
    add(&mut tree, &mut terms, 0, &written("(p1 OR p2 OR p3) AND p4 AND (p5 OR p6)"));
    add(&mut tree, &mut terms, 1, &written("(p5 OR p6) AND (p7 OR p8)"));
    // 8 leaves, 3 ORs and 2 ANDs.
    assert_eq!((count(&tree, "nodes"), count(&tree, "levels")), (13, 3));
    // The same expression in another order is the same node.
    add(&mut tree, &mut terms, 2, &written("p4 AND (p3 OR p2 OR p1) AND (p6 OR p5)"));
    assert_eq!(count(&tree, "nodes"), 13);
    tree.check();
}

#[test]
fn expressions_are_put_together_from_what_exists() {
    let (mut tree, mut terms) = (tree(&[]), Terms::default());
    add(&mut tree, &mut terms, 0, &written("p1 AND p2 AND p3"));
    add(&mut tree, &mut terms, 1, &written("p3 AND p4"));
    add(&mut tree, &mut terms, 2, &written("p1 AND p2 AND p3 AND p4"));
    let node = &tree.graph.nodes[tree.node_of[2] as usize];
    let mut children = node.children().to_vec();
    children.sort_unstable();
    assert_eq!(children, [tree.node_of[0], tree.node_of[1]]);
    assert_eq!((node.operands.len(), count(&tree, "reorganized"), count(&tree, "levels")), (4, 1, 3));
    // When a part goes, its children take its place.
    take(&mut tree, &terms, 0, &written("p1 AND p2 AND p3"));
    tree.check();
    assert_eq!(count(&tree, "nodes"), 6);
    let event: TestEvent = ["p1", "p2", "p3", "p4"].map(|name| (name, Value::Int(1))).into();
    assert_eq!(matches(&tree, &terms, &event), [1, 2]);
}

#[test]
fn the_graph_adjusts_to_the_order_of_arrival() {
    let parts = ["p1 AND p2", "p1 AND p2 AND p3", "p1 AND p2 AND p3 AND p4 AND p5", "p4 AND p5"];
    let mut links = vec![];
    for order in [[0, 1, 2, 3], [2, 3, 1, 0], [1, 3, 2, 0]] {
        let (mut tree, mut terms) = (tree(&[]), Terms::default());
        for at in order {
            add(&mut tree, &mut terms, at as u32, &written(parts[at]));
            tree.check();
        }
        links.push(count(&tree, "links"));
    }
    assert_eq!(links, [8, 8, 8]);
}

#[test]
fn colliding_ids_are_counted_and_never_merge_expressions() {
    let (mut tree, mut terms) = (tree(&[("published_ids", Value::Bool(true))]), Terms::default());
    add(&mut tree, &mut terms, 0, &written("(p1 AND p2) OR p3"));
    assert_eq!(count(&tree, "id_collisions"), 0);
    add(&mut tree, &mut terms, 1, &written("(p1 OR p3) AND (p2 OR p3)"));
    assert_eq!(count(&tree, "id_collisions"), 1);
    assert_ne!(tree.node_of[0], tree.node_of[1]);
    tree.check();
}

#[test]
fn falsehood_reaches_a_negation_through_an_and_on_demand() {
    let (mut tree, mut terms) = (tree(&[("zero_suppression", Value::Bool(false))]), Terms::default());
    add(&mut tree, &mut terms, 0, &written("p1 AND p2"));
    assert!(tree.graph.nodes[tree.node_of[0] as usize].on_demand);
    add(&mut tree, &mut terms, 1, &written("NOT (p1 AND p2)"));
    assert!(!tree.graph.nodes[tree.node_of[0] as usize].on_demand);
    for (one, other) in [("p1", "p2"), ("p2", "p1")] {
        let event: TestEvent = [(one, Value::Int(0))].into();
        assert_eq!(matches(&tree, &terms, &event), [1], "{other} is absent");
    }
}

#[test]
fn unknown_options_and_values_are_refused() {
    let mut tree = ATree::default();
    let error = tree.set_option("zero_supression", &Value::Bool(true)).unwrap_err().to_string();
    assert!(error.contains("there is no option `zero_supression`") && error.contains("zero_suppression"));
    let error = tree.set_option("shape", &Value::Str("round".into())).unwrap_err().to_string();
    assert_eq!(error, "the option `shape` is one of \"multitree\", \"binary\", not \"round\"");
}
