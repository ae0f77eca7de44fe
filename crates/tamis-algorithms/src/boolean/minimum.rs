//! The least number of leaves that are true whenever the expression is.
//!
//! By structure: a leaf counts 1, AND adds, OR takes the least. By *meaning* it can be more, because
//! predicates on one attribute depend on each other: if an expression needs `condition = 'new'` and has that
//! leaf in two branches, both leaves are true at once. So for each attribute whose predicates name single
//! values, try every value: its leaves are then fixed, the others are counted by structure, and the least
//! over all values counts. Each attribute gives a valid minimum; the largest is taken.
//!
//! An interval can satisfy what no single value does, so minima by meaning hold for points only.

use rustc_hash::FxHashMap;

use crate::circuit::Tree;
use crate::predicates::Predicates;
use tamis_core::event::{TermId, Value};
use tamis_core::expr::{Atom, Literal, Shape};

/// More than any expression has.
const NEVER: u32 = u32::MAX;

/// Algorithm 1 of the thesis.
pub fn by_structure(tree: &Tree) -> u32 {
    least(tree, &|_| Some(1))
}

/// `None` when no point event can satisfy the expression.
pub fn by_meaning(tree: &Tree, predicates: &Predicates) -> Option<u32> {
    let mut by_attribute: FxHashMap<TermId, Vec<Literal>> = FxHashMap::default();
    tree.for_each_leaf(&mut |literal| {
        by_attribute.entry(predicates.atom(literal).attribute).or_default().push(literal);
    });
    let refined = by_attribute.values().filter(|leaves| leaves.len() > 1).filter_map(|leaves| {
        let values = representatives(leaves, predicates)?;
        let attribute = predicates.atom(leaves[0]).attribute;
        let over_values = values.iter().map(|value| {
            let holds = |literal: Literal| {
                literal.holds(predicates.atom(literal).outcome(value.as_ref().map(Value::as_ref)))
            };
            let fixed = leaves.iter().filter(|leaf| holds(**leaf)).count() as u32;
            let others = least(tree, &|literal| match predicates.atom(literal).attribute == attribute {
                true => holds(literal).then_some(0),
                false => Some(1),
            });
            others.saturating_add(if others == NEVER { 0 } else { fixed })
        });
        over_values.min()
    });
    let best = refined.fold(by_structure(tree), u32::max);
    (best != NEVER).then_some(best)
}

/// The least sum over the leaves that make the tree true; `None` for a leaf that cannot be.
fn least(tree: &Tree, of_leaf: &impl Fn(Literal) -> Option<u32>) -> u32 {
    match tree {
        Tree::Leaf(literal) => of_leaf(*literal).unwrap_or(NEVER),
        Tree::And(children) => {
            children.iter().fold(0, |sum: u32, child| sum.saturating_add(least(child, of_leaf)))
        }
        Tree::Or(children) => {
            children.iter().map(|child| least(child, of_leaf)).min().expect("OR has children")
        }
    }
}

/// Values of an attribute that between them make its leaves true in every possible way: each value that is
/// named, one of each kind that is not, and none at all. `None` if the leaves are not about single values.
fn representatives(leaves: &[Literal], predicates: &Predicates) -> Option<Vec<Option<Value>>> {
    let mut values = vec![None];
    let (mut longest, mut largest) = (String::new(), 0i64);
    for leaf in leaves {
        let Atom { operator, operands, .. } = predicates.atom(*leaf);
        let Shape::Points(points) = operator.rules().shape(operands) else { return None };
        for point in points {
            match point {
                Value::Str(text) if text.len() >= longest.len() => longest = format!("{text}+"),
                Value::Int(number) => largest = largest.max(number.checked_add(1)?),
                Value::Str(_) | Value::Bool(_) => {}
                // Rare enough not to bother.
                _ => return None,
            }
            values.push(Some(point.clone()));
        }
    }
    values.extend([Value::Str(longest.into()), Value::Int(largest)].map(Some));
    values.extend([Value::Bool(false), Value::Bool(true)].map(Some));
    Some(values)
}
