use super::counting::Counting;
use super::tree::ConjunctionTree;
use super::*;
use crate::algorithm::Algorithm;
use crate::over_predicates::OverPredicates;
use tamis_core::event::Terms;
use tamis_core::expr::parse;
use tamis_core::{Id, Subscription};

fn subscription(text: &str) -> Subscription {
    Subscription::new(Id::Int(1), parse(text).unwrap())
}

#[test]
fn the_normal_form_has_every_choice_once() {
    let leaf = |number: u32| Tree::Leaf(Literal(number));
    let tree = Tree::And(vec![Tree::Or(vec![leaf(1), leaf(2)]), leaf(3), Tree::Or(vec![leaf(2), leaf(1)])]);
    let expected = [vec![1, 2, 3], vec![1, 3], vec![2, 3]].map(|c| c.into_iter().map(Literal).collect());
    let mut all = disjunctive_normal_form(&tree);
    all.sort();
    assert_eq!(all, expected as [Vec<Literal>; 3]);
}

#[test]
fn large_translations_are_refused_and_leave_nothing_behind() {
    let mut counting = OverPredicates::<Translated<Counting>>::default();
    let mut terms = Terms::default();
    counting.set_option("max_conjunctions", &Value::Int(8)).unwrap();
    let pairs: Vec<String> = (0..4).map(|at| format!("(a{at} = 1 OR b{at} = 2)")).collect();
    counting.insert(0, &subscription(&pairs[..3].join(" AND ")), &mut terms).unwrap();
    let before = (counting.counters(), terms.len());
    assert_eq!(before.0, [("predicates", 6), ("conjunctions", 8)]);
    let error = counting.insert(1, &subscription(&pairs.join(" AND ")), &mut terms).unwrap_err();
    assert!(matches!(error, Error::Unsupported(_)));
    assert_eq!(
        error.to_string(),
        "the disjunctive normal form of this expression has 16 conjunctions, and the limit is 8 (option \
         `max_conjunctions`); \"auto\" and \"a-tree\" hold it without translation"
    );
    assert_eq!((counting.counters(), terms.len()), before);
}

#[test]
fn conjunctions_share_the_beginning_of_their_paths() {
    let mut tree = OverPredicates::<Translated<ConjunctionTree>>::default();
    let mut terms = Terms::default();
    let texts = ["a = 1 AND b = 2 AND c < 3", "a = 1 AND b = 2", "a = 1 AND d = 4"];
    for (row, text) in texts.into_iter().enumerate() {
        tree.insert(row as u32, &subscription(text), &mut terms).unwrap();
    }
    // The root and four predicates.
    let nodes = |tree: &OverPredicates<Translated<ConjunctionTree>>| {
        let inner = &tree.filter().conjunctions;
        inner.nodes.len() - inner.free.len()
    };
    assert_eq!(nodes(&tree), 5);
    tree.remove(0, &subscription(texts[0]), &terms);
    assert_eq!(nodes(&tree), 4);
    tree.remove(1, &subscription(texts[1]), &terms);
    tree.remove(2, &subscription(texts[2]), &terms);
    assert_eq!(nodes(&tree), 1);
}
