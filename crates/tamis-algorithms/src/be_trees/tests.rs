use proptest::prelude::*;

use super::*;
use tamis_core::event::Record;
use tamis_core::expr::testing::{TestEvent, any_event, any_interval_event, any_predicate, compare, lookup};
use tamis_core::expr::{Expr, evaluate, parse};
use tamis_core::query::{Measure, Ranking, Score, TopK};
use tamis_core::{Id, IdRef};

fn subscription(row: u32, expression: Expr) -> Subscription {
    Subscription::new(Id::Int(row as i64), expression)
}

/// Conjunctions of intervals over a few attributes, as the papers have them.
fn intervals() -> impl Strategy<Value = Expr> {
    let predicate = (0..3usize, 0..40i64, 0..12i64).prop_map(|(attribute, low, length)| {
        let attribute = ["a", "b", "c"][attribute];
        let ends = [compare(attribute, ">=", low), compare(attribute, "<=", low + length)];
        if length < 4 { compare(attribute, "=", low) } else { Expr::And(ends.into()) }
    });
    prop::collection::vec(predicate, 1..4).prop_map(Expr::And)
}

fn any_conjunction() -> impl Strategy<Value = Expr> {
    let any = prop::collection::vec(any_predicate().prop_map(Expr::Predicate), 1..4).prop_map(Expr::And);
    prop_oneof![3 => intervals(), 1 => any]
}

/// Events that lie among those intervals.
fn event_among_intervals() -> impl Strategy<Value = TestEvent> {
    let values = [(); 3].map(|()| prop::option::weighted(0.8, (0..55i64).prop_map(Value::Int)));
    values.prop_map(|values| {
        ["a", "b", "c"].into_iter().zip(values).filter_map(|(name, value)| Some((name, value?))).collect()
    })
}

fn events() -> impl Strategy<Value = Vec<TestEvent>> {
    let event = prop_oneof![3 => event_among_intervals(), 2 => any_event(), 1 => any_interval_event()];
    prop::collection::vec(event, 1..8)
}

/// An insertion, and which row goes then, if any.
fn changes() -> impl Strategy<Value = Vec<(Expr, Option<usize>)>> {
    prop::collection::vec((any_conjunction(), prop::option::weighted(0.4, any::<usize>())), 1..60)
}

fn keeps_its_promises<D: Directory>(
    mut tree: Tree<D>,
    changes: &[(Expr, Option<usize>)],
    events: &[TestEvent],
) {
    let mut terms = Terms::default();
    let mut held: Vec<(u32, Subscription)> = vec![];
    for (row, (expr, goes)) in changes.iter().enumerate() {
        let subscription = subscription(row as u32, expr.clone());
        if tree.insert(row as u32, &subscription, &mut terms).is_ok() {
            held.push((row as u32, subscription));
        }
        tree.check();
        if let Some(goes) = goes
            && !held.is_empty()
        {
            let (row, subscription) = held.swap_remove(goes % held.len());
            tree.remove(row, &subscription, &terms);
            tree.check();
        }
    }
    for event in events {
        let record = Record::new(event.iter().map(|(name, value)| (*name, value.clone())), []).unwrap();
        assert_visits_one_side(&tree, &record.resolve(&terms));
        let mut found = vec![];
        tree.matches(&record.resolve(&terms), &terms, &mut |row| found.push(row));
        found.sort_unstable();
        let is_true = |held: &&(u32, Subscription)| evaluate(&held.1.expression, &lookup(event)).can_be_true;
        let mut expected: Vec<u32> = held.iter().filter(is_true).map(|held| held.0).collect();
        expected.sort_unstable();
        assert_eq!(found, expected);
    }
    for (row, subscription) in held {
        tree.remove(row, &subscription, &terms);
        tree.check();
    }
    assert!(tree.counters().iter().all(|(_, count)| *count == 0));
}

/// A point enters at most one side of any bucket: with thirds of equal size it looks at two of them at most.
fn assert_visits_one_side<D: Directory>(tree: &Tree<D>, event: &Event<'_>) {
    fn visit<D: Directory>(cnode: &CNode<D>, event: &Event<'_>) {
        for pnode in &cnode.partitions {
            if let Some(value) = event.get(pnode.attribute)
                && Span::of_value(value).is_point()
            {
                pnode.directory.assert_one_side(Span::of_value(value));
            }
            pnode.directory.for_each(&mut |cnode| visit(cnode, event));
        }
    }
    visit(&tree.root, event);
}

fn with_capacity<D>(capacity: usize) -> Tree<D> {
    let mut tree = Tree::default();
    tree.store.settings.capacity = capacity;
    tree
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn a_be_tree_keeps_its_promises(
        changes in changes(),
        events in events(),
        capacity in 1usize..6,
    ) {
        keeps_its_promises(with_capacity::<Grid>(capacity), &changes, &events);
    }

    #[test]
    fn a_be_tree_over_a_finite_domain_keeps_its_promises(
        changes in changes(),
        events in events(),
        capacity in 1usize..6,
        domain in prop::sample::select(vec![1, 2, 32, 60]),
    ) {
        let mut tree = with_capacity::<Grid>(capacity);
        tree.set_option("domain", &Value::Int(domain)).unwrap();
        keeps_its_promises(tree, &changes, &events);
    }

    #[test]
    fn trees_that_are_built_at_once_keep_their_promises(
        expressions in prop::collection::vec(any_conjunction(), 1..60),
        changes in changes(),
        events in events(),
        capacity in 1usize..6,
        exhaustive_split in any::<bool>(),
    ) {
        fn check<D: Directory>(
            mut tree: Tree<D>, expressions: &[Expr], changes: &[(Expr, Option<usize>)], events: &[TestEvent]
        ) {
            let batch = Value::Str("batch".into());
            tree.set_option("construction", &batch).unwrap();
            let mut terms = Terms::default();
            let rows = 1000..1000 + expressions.len() as u32;
            let held: Vec<_> = rows.zip(expressions).map(|(row, expr)| (row, subscription(row, expr.clone()))).collect();
            tree.gather();
            let is_held = |(row, subscription): &&(u32, Subscription)| {
                tree.insert(*row, subscription, &mut terms).is_ok()
            };
            let held: Vec<_> = held.iter().filter(is_held).cloned().collect();
            tree.settle();
            tree.check();
            for event in events {
                let record = Record::new(event.iter().map(|(name, value)| (*name, value.clone())), []).unwrap();
                let mut found = vec![];
                tree.matches(&record.resolve(&terms), &terms, &mut |row| found.push(row));
                found.sort_unstable();
                let is_true = |held: &&(u32, Subscription)| evaluate(&held.1.expression, &lookup(event)).can_be_true;
                assert_eq!(found, held.iter().filter(is_true).map(|held| held.0).collect::<Vec<_>>());
            }
            for (row, subscription) in held {
                tree.remove(row, &subscription, &terms);
                tree.check();
            }
            keeps_its_promises(tree, changes, events);
        }
        check(with_capacity::<Grid>(capacity), &expressions, &changes, &events);
        let mut tree = with_capacity::<Boxes>(capacity);
        tree.store.settings.exhaustive_split = exhaustive_split;
        check(tree, &expressions, &changes, &events);
    }

    #[test]
    fn the_approximate_meaning_is_that_intervals_overlap(
        expressions in prop::collection::vec(intervals(), 1..40), event in event_among_intervals()
    ) {
        let mut tree = with_capacity::<Boxes>(3);
        tree.set_option("overlap", &Value::Str("approximate".into())).unwrap();
        let mut terms = Terms::default();
        for (row, expr) in expressions.iter().enumerate() {
            tree.insert(row as u32, &subscription(row as u32, expr.clone()), &mut terms).unwrap();
        }
        let record = Record::new(event.iter().map(|(name, value)| (*name, value.clone())), []).unwrap();
        let mut found = vec![];
        tree.matches(&record.resolve(&terms), &terms, &mut |row| found.push(row));
        found.sort_unstable();
        // For conjunctions of closed intervals with something in common, and points, both meanings are one.
        let is_true = |row: &u32| evaluate(&expressions[*row as usize], &lookup(&event)).can_be_true;
        let expected: Vec<u32> = (0..expressions.len() as u32).filter(is_true).collect();
        prop_assert!(expected.iter().all(|row| found.contains(row)), "nothing is missed");
    }

    #[test]
    fn a_be_star_tree_keeps_its_promises(
        changes in changes(),
        events in events(),
        capacity in 1usize..6,
        exhaustive_split in any::<bool>(),
        max_growth in prop::sample::select(vec![1.0, 2.0, 4.0]),
    ) {
        let mut tree = with_capacity::<Boxes>(capacity);
        tree.store.settings.exhaustive_split = exhaustive_split;
        tree.store.settings.max_growth = max_growth;
        keeps_its_promises(tree, &changes, &events);
    }

    #[test]
    fn the_best_are_the_best_of_all_matches(
        expressions in prop::collection::vec((any_conjunction(), 0..4u32, any::<bool>()), 1..60),
        events in events(),
        weights in prop::collection::vec(0..3u32, 3),
        capacity in 1usize..6,
        k in 1usize..4,
    ) {
        let mut tree = with_capacity::<Boxes>(capacity);
        let mut terms = Terms::default();
        let mut held: Vec<Subscription> = vec![];
        for (row, (expr, weight, is_rescored)) in expressions.into_iter().enumerate() {
            let mut subscription = subscription(row as u32, expr);
            if tree.insert(row as u32, &subscription, &mut terms).is_err() {
                continue;
            }
            if is_rescored {
                subscription.weights = vec![("a".into(), weight as f64), ("b".into(), 0.5)];
                tree.rescore(row as u32, &subscription, &terms);
            }
            held.push(subscription);
            tree.check();
        }
        for event in &events {
            let weights = ["a", "b", "c"].into_iter().zip(weights.iter().map(|weight| *weight as f64));
            let weights = weights.filter(|(name, _)| event.contains_key(name));
            let values = event.iter().map(|(name, value)| (*name, value.clone()));
            let record = Record::new(values, weights).unwrap();
            let event = record.resolve(&terms);
            let ranking = Ranking::new(k, Score::Relevance);
            let measure = Measure::new(&ranking, &event, &terms);
            let Measure::Relevance(scale) = &measure else { unreachable!("the score is relevance") };
            let score = |row: u32| {
                let is_row = |held: &&Subscription| held.id == Id::Int(row as i64);
                measure.of(held.iter().find(is_row).unwrap(), &event, &terms)
            };
            let mut best = TopK::new(k, f64::NEG_INFINITY);
            let work = tree.best(&event, scale, f64::NEG_INFINITY, &mut |row| {
                best.offer(IdRef::Int(row as i64), score(row).unwrap(), ());
                best.least_wanted()
            });
            prop_assert!(work.is_some());
            let mut expected = TopK::new(k, f64::NEG_INFINITY);
            tree.matches(&event, &terms, &mut |row| {
                expected.offer(IdRef::Int(row as i64), score(row).unwrap(), ());
            });
            let sorted = |best: TopK<'_, ()>| {
                let sorted = best.into_sorted().into_iter();
                sorted.map(|kept| (format!("{:?}", kept.id), kept.score)).collect::<Vec<_>>()
            };
            prop_assert_eq!(sorted(best), sorted(expected));
        }
    }

    #[test]
    fn the_cells_of_a_be_tree_do_not_depend_on_the_order_of_insertion(
        spans in prop::collection::vec((0..60i64, 0..20i64), 1..30), order in any::<u64>(), capacity in 1usize..5
    ) {
        let layout_of = |rows: Vec<usize>| {
            let mut tree = with_capacity::<Grid>(capacity);
            let mut terms = Terms::default();
            for row in rows {
                let (low, length) = spans[row];
                let expr = Expr::And(vec![compare("a", ">=", low), compare("a", "<=", low + length)]);
                tree.insert(row as u32, &subscription(row as u32, expr), &mut terms).unwrap();
            }
            let mut members = tree.root.members.clone();
            members.sort_unstable();
            (members, tree.root.partitions.iter().map(|pnode| grid::layout(&pnode.directory)).collect::<Vec<_>>())
        };
        let sorted: Vec<usize> = (0..spans.len()).collect();
        let mut shuffled = sorted.clone();
        shuffled.sort_by_key(|row| (*row as u64 + 1).wrapping_mul(order | 1).rotate_left(23));
        prop_assert_eq!(layout_of(sorted), layout_of(shuffled));
    }
}

#[test]
fn other_expressions_are_refused_and_leave_nothing_behind() {
    let mut tree = BeTree::default();
    let mut terms = Terms::default();
    let error = tree
        .insert(0, &subscription(0, parse("a = 1 OR b = 2").unwrap()), &mut terms)
        .unwrap_err()
        .to_string();
    assert!(error.starts_with("this tree holds conjunctions of predicates only"), "{error}");
    assert_eq!(terms.len(), 0);
    tree.set_option("match_probability", &Value::Float(0.05)).unwrap();
    assert_eq!(tree.store.settings.capacity, 20);
    let error = tree.set_option("match_probability", &Value::Int(7)).unwrap_err().to_string();
    assert!(error.contains("a number from 0 to 1"), "{error}");
}

#[test]
fn an_event_looks_only_where_its_values_are() {
    let mut tree = BeTree::default();
    let mut terms = Terms::default();
    for row in 0..1000 {
        let text = format!("a BETWEEN {row} AND {} AND b = {}", row + 1, row % 7);
        tree.insert(row, &subscription(row, parse(&text).unwrap()), &mut terms).unwrap();
    }
    let record = Record::new([("a", Value::Int(500)), ("b", Value::Int(3))], []).unwrap();
    let mut found = vec![];
    let work = tree.matches(&record.resolve(&terms), &terms, &mut |row| found.push(row));
    assert_eq!(found, [500]);
    assert!(work.candidates < 60, "{} of 1000 were looked at", work.candidates);
}

#[test]
fn a_partition_that_only_costs_is_reinserted() {
    let mut tree = BeTree::default();
    let mut terms = Terms::default();
    let mut insert = |tree: &mut BeTree, row: u32| {
        let text = format!("a > 0 AND b = {row} AND c = {}", row % 3);
        tree.insert(row, &subscription(row, parse(&text).unwrap()), &mut terms).unwrap();
    };
    (0..40).for_each(|row| insert(&mut tree, row));
    let first = tree.root.partitions[0].attribute;
    assert_eq!(tree.root.partitions.len(), 1);
    // Two wasted predicates for each of its conjunctions.
    (0..2000).for_each(|_| tree.root.partitions[0].feedback.note(80));
    insert(&mut tree, 40);
    tree.check();
    assert!(tree.root.partitions.iter().all(|pnode| pnode.attribute != first));
}

#[test]
fn top_k_leaves_out_what_cannot_be_among_the_best() {
    let mut tree = BeStarTree::default();
    let mut terms = Terms::default();
    for row in 0..1000 {
        let text = format!("(x{} > 0)^{}", row % 10, row % 10 + 1);
        tree.insert(row, &subscription(row, parse(&text).unwrap()), &mut terms).unwrap();
    }
    let names: Vec<String> = (0..10).map(|at| format!("x{at}")).collect();
    let record = Record::new(names.iter().map(|name| (name.as_str(), Value::Int(5))), []).unwrap();
    let event = record.resolve(&terms);
    let all = tree.matches(&event, &terms, &mut |_| {});
    assert_eq!(all.candidates, 1000);
    let mut best = f64::NEG_INFINITY;
    let one = tree.best(&event, &Scale::PLAIN, best, &mut |row| {
        best = best.max((row % 10 + 1) as f64);
        best
    });
    assert_eq!(best, 10.0);
    let looked_at = one.unwrap().candidates;
    assert!(looked_at < 120, "{looked_at} of 1000: only the partition of x9 can win");
}

#[test]
fn at_most_two_thirds_are_looked_at_where_intervals_are_uniform() {
    let mut tree = with_capacity::<Boxes>(30);
    let mut terms = Terms::default();
    let count = 3000;
    for row in 0..count {
        // Starts all over the domain, and lengths up to a third of it.
        let (low, length) = (row as i64 * 7919 % 10_007, row as i64 * 104_729 % 3_301);
        let text = format!("a BETWEEN {low} AND {}", low + length);
        tree.insert(row, &subscription(row, parse(&text).unwrap()), &mut terms).unwrap();
    }
    for value in (0..13_000).step_by(101) {
        let record = Record::new([("a", Value::Int(value))], []).unwrap();
        let looked_at = tree.matches(&record.resolve(&terms), &terms, &mut |_| {}).candidates;
        assert!(looked_at <= count as u64 * 2 / 3, "{looked_at} of {count} for {value}");
    }
}

#[test]
fn l_nodes_grow_when_many_conjunctions_match() {
    let mut tree = BeStarTree::default();
    let mut terms = Terms::default();
    let mut insert = |tree: &mut BeStarTree, row: u32| {
        let text = format!("a > {} AND b = {}", row % 3, row % 50);
        tree.insert(row, &subscription(row, parse(&text).unwrap()), &mut terms).unwrap();
        tree.check();
    };
    (0..200).for_each(|row| insert(&mut tree, row));
    assert_eq!(tree.store.settings.capacity, 5);
    let mut names = Terms::default();
    let record = Record::new([("a", Value::Int(9)), ("b", Value::Int(7))], []).unwrap();
    for name in ["a", "b"] {
        names.intern(name);
    }
    for _ in 0..300 {
        tree.matches(&record.resolve(&names), &names, &mut |_| {});
    }
    // Two of a hundred match; twice or half as many would still be between 1 % and 10 %.
    insert(&mut tree, 200);
    assert_eq!(tree.store.settings.capacity, 20);
    let mut found = vec![];
    tree.matches(&record.resolve(&names), &names, &mut |row| found.push(row));
    found.sort_unstable();
    assert_eq!(found, [7, 57, 107, 157]);
}

#[test]
fn the_approximate_meaning_takes_sets_for_intervals() {
    let text = |text: &str| Value::Str(text.into());
    let mut terms = Terms::default();
    let record = Record::new([("a", Value::Int(5))], []).unwrap();
    for (meaning, expected) in [("exact", vec![1]), ("approximate", vec![0, 1, 2])] {
        let mut tree = BeStarTree::default();
        tree.set_option("overlap", &text(meaning)).unwrap();
        for (row, expression) in ["a IN (1, 9)", "a IN (1, 5)", "a != 5", "a = 6"].iter().enumerate() {
            let subscription = subscription(row as u32, parse(expression).unwrap());
            tree.insert(row as u32, &subscription, &mut terms).unwrap();
        }
        let mut found = vec![];
        tree.matches(&record.resolve(&terms), &terms, &mut |row| found.push(row));
        found.sort_unstable();
        assert_eq!(found, expected, "{meaning}");
    }
}

#[test]
fn a_bucket_that_would_grow_too_much_gets_one_above_it() {
    let mut tree = with_capacity::<Boxes>(2);
    let mut terms = Terms::default();
    let texts = ["a BETWEEN 0 AND 1", "a BETWEEN 1 AND 2", "a BETWEEN 8 AND 9", "a BETWEEN 9 AND 10"];
    let far = ["a BETWEEN 900 AND 1000", "a > 3", "a > 4", "a < 7", "a != 8"];
    for (row, text) in texts.into_iter().chain(far).enumerate() {
        let subscription = subscription(row as u32, parse(text).unwrap());
        tree.insert(row as u32, &subscription, &mut terms).unwrap();
        tree.check();
    }
    let work = |value: i64| {
        let record = Record::new([("a", Value::Int(value))], []).unwrap();
        tree.matches(&record.resolve(&terms), &terms, &mut |_| {}).candidates
    };
    assert!(work(950) < 9, "what lies near 0 is not looked at");
}
