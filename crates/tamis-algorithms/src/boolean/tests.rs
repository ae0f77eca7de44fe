//! The golden values of the online book auctions, and answers that no setting may change.

use super::by_type::BooleanFiltering;
use super::encoding::{Encoding, Style};
use super::minimum::{by_meaning, by_structure};
use crate::algorithm::Algorithm;
use crate::circuit::{Circuit, Negations, Tree};
use crate::conjunctions::disjunctive_normal_form;
use crate::predicates::Predicates;
use tamis_core::event::{Record, Terms, Value};
use tamis_core::expr::{Literal, parse};
use tamis_core::{Id, Subscription};

const CLASS_1: &str = "contains(title, 'Harry Potter') \
    AND (condition = 'new' AND price < 15 OR price < 12 AND condition = 'used') AND ending < 1440";
const CLASS_2: &str = "contains(title, 'Harry Potter') AND \
    (format = 'hardcover' AND (condition = 'new' AND price < 25 OR price < 20 AND condition = 'used') \
     OR format = 'softcover' AND (condition = 'new' AND price < 15 OR price < 10 AND condition = 'used')) \
    AND ending < 1440";
const CLASS_3: &str = "(category = 'ancient literature' OR contains(author, 'JK Rowling')) \
    AND (ending < 60 AND (bids = 0 OR special = 'signed') OR buy_it_now AND special = 'signed')";

fn lowered(text: &str) -> (Tree, Predicates) {
    let (mut predicates, mut terms) = (Predicates::default(), Terms::default());
    let expr = parse(text).unwrap();
    let circuit = Circuit::checked(&expr, Negations::PushedDown).unwrap();
    let literals = circuit.acquire(&mut predicates, &mut terms);
    (circuit.tree(&literals).unwrap(), predicates)
}

#[test]
fn sizes_and_minima_of_the_subscription_classes() {
    let classes = [(CLASS_1, 38, 4, 4, (2, 8)), (CLASS_2, 80, 5, 6, (4, 20)), (CLASS_3, 47, 3, 3, (6, 18))];
    for (text, size, structure, meaning, translated) in classes {
        let (tree, predicates) = lowered(text);
        let conjunctions = disjunctive_normal_form(&tree);
        assert_eq!((conjunctions.len(), conjunctions.concat().len()), translated);
        assert_eq!(Style::default().encode(&tree).len(), size);
        assert_eq!(by_structure(&tree), structure);
        assert_eq!(by_meaning(&tree, &predicates), Some(meaning));
    }
}

#[test]
fn the_layout_byte_by_byte() {
    let leaf = |number: u32| Tree::Leaf(Literal(number));
    let pair = |a, b| Tree::And(vec![leaf(a), leaf(b)]);
    let tree = Tree::And(vec![leaf(1), Tree::Or(vec![pair(3, 4), pair(5, 6)]), leaf(2)]);
    let plain = Style::default().encode(&tree);
    #[rustfmt::skip]
    let expected = [
        1, 3, 4, 1, 0, 0, 0, 2, 2, 1, 2, 4, 3, 0, 0, 0, 4, 4, 0, 0, 0,
        1, 2, 4, 5, 0, 0, 0, 4, 6, 0, 0, 0, 4, 2, 0, 0, 0,
    ];
    assert_eq!(*plain, expected);
    let prefixed = Style { encoding: Encoding::WidthPrefixed, ..Style::default() };
    // Two bytes more for each of the nine children.
    assert_eq!(prefixed.encode(&tree).len(), plain.len() + 2 * 9);
    assert_eq!(Style::default().encode(&pair(1, 2))[0], 3, "conjunctions have a code of their own");
}

#[test]
fn every_style_evaluates_alike() {
    let (tree, predicates) = lowered(CLASS_3);
    let literals = predicates.literals() as u32 / 2;
    let styles = [Encoding::Plain, Encoding::WidthPrefixed].into_iter().flat_map(|encoding| {
        [true, false].map(|short_circuit| Style { encoding, short_circuit, mark_conjunctions: true })
    });
    for style in styles {
        let bytes = style.encode(&tree);
        let mut leaves = vec![];
        style.for_each_leaf(&bytes, &mut |literal| leaves.push(literal));
        assert_eq!(leaves.len(), 7);
        for truth in 0..1u32 << literals {
            let holds = |literal: Literal| truth >> literal.atom() & 1 == 1;
            assert_eq!(style.is_true(&bytes, &holds), is_true(&tree, &holds));
        }
    }
}

fn is_true(tree: &Tree, holds: &impl Fn(Literal) -> bool) -> bool {
    match tree {
        Tree::Leaf(literal) => holds(*literal),
        Tree::And(children) => children.iter().all(|child| is_true(child, holds)),
        Tree::Or(children) => children.iter().any(|child| is_true(child, holds)),
    }
}

fn event() -> Record {
    let text = |text: &str| Value::Str(text.into());
    let values = [
        ("type", text("book")),
        ("category", text("fantasy")),
        ("format", text("softcover")),
        ("special", text("none")),
        ("condition", text("used")),
        ("buy_it_now", Value::Bool(false)),
        ("price", Value::Int(11)),
        ("ending", Value::Int(360)),
        ("bids", Value::Int(0)),
        ("title", text("Harry Potter and the Goblet of Fire")),
        ("author", text("JK Rowling")),
    ];
    Record::new(values, []).unwrap()
}

fn add(filter: &mut BooleanFiltering, terms: &mut Terms, row: u32, text: &str) {
    filter.insert(row, &Subscription::new(Id::Int(row as i64), parse(text).unwrap()), terms).unwrap();
}

#[test]
fn the_example_has_two_candidates_and_one_match() {
    let (mut filter, mut terms) = (BooleanFiltering::default(), Terms::default());
    for (row, text) in [CLASS_1, CLASS_2, CLASS_3].into_iter().enumerate() {
        add(&mut filter, &mut terms, row as u32, text);
    }
    let mut found = vec![];
    let record = event();
    let work = filter.matches(&record.resolve(&terms), &terms, &mut |row| found.push(row));
    assert_eq!((found, work.candidates), (vec![0], 2));
    assert_eq!(filter.untyped().tree_and_minimum(1).1, 5);
}

#[test]
fn types_keep_subscriptions_apart() {
    let (mut filter, mut terms) = (BooleanFiltering::default(), Terms::default());
    filter.set_option("type_attribute", &Value::Str("type".into())).unwrap();
    for (row, text) in
        ["type = 'book' AND price < 12", "type = 'car' AND price < 12", "price < 12"].into_iter().enumerate()
    {
        add(&mut filter, &mut terms, row as u32, text);
    }
    assert_eq!(filter.types(), 2);
    let (mut found, record) = (vec![], event());
    let work = filter.matches(&record.resolve(&terms), &terms, &mut |row| found.push(row));
    found.sort_unstable();
    assert_eq!((found, work.candidates), (vec![0, 2], 2));
}

#[test]
fn numbers_are_recycled_and_long_expressions_refused() {
    let (mut filter, mut terms) = (BooleanFiltering::default(), Terms::default());
    add(&mut filter, &mut terms, 7, CLASS_1);
    let subscription = Subscription::new(Id::Int(7), parse(CLASS_1).unwrap());
    filter.remove(7, &subscription, &terms);
    let empty = filter.counters();
    add(&mut filter, &mut terms, 3, "a = 1 AND b = 2");
    assert_eq!(filter.untyped().tree_and_minimum(3), (&[3, 2, 4, 10, 0, 0, 0, 4, 8, 0, 0, 0][..], 2));
    assert_eq!(empty[0], ("predicates", 0));
    let long: Vec<String> = (0..256).map(|value| format!("a{value} = 1")).collect();
    let subscription = Subscription::new(Id::Int(1), parse(&long.join(" OR ")).unwrap());
    let error = filter.insert(1, &subscription, &mut terms).unwrap_err().to_string();
    assert!(error.contains("at most 255; this one has 256"), "{error}");
    assert_eq!(filter.counters()[0], ("predicates", 2));
}
