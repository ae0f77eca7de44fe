//! Merges two expressions into one.
//!
//! The *perfect* merger is true exactly when one of the two is. If two conjunctions differ in one predicate, and a single
//! predicate can replace these two, it is no larger than either; otherwise it is their OR. An *imperfect* merger is that
//! OR, pruned a few times (Bittner 2008, section 6.3.5).

use super::covers::covers;
use super::decide::{Answer, BUDGET};
use super::prune::{Options, Until, prune};
use super::selectivity::Selectivities;
use super::tree::{Leaf, LeafId, Leaves, Tree};
use crate::event::{Value, ValueRef};
use crate::expr::operators::{Bound, Operator, Shape};
use crate::expr::{Expr, build};
use crate::term::Term;

/// The expression that is true exactly when `a` or `b` is, without an OR between them, if there is one: one
/// that covers the other, or two conjunctions that differ in one predicate, joined. For events of points.
///
/// ```
/// use tamis_core::expr::parse;
/// use tamis_core::relate::merge::perfect_merger;
///
/// let merged = perfect_merger(&parse("x = 1 AND y > 2")?, &parse("y > 2 AND x IN (3, 4)")?);
/// assert_eq!(merged.unwrap().to_string(), "x IN (1, 3, 4) AND y > 2");
/// assert!(perfect_merger(&parse("x = 1 AND y > 2")?, &parse("x = 2 AND y > 3")?).is_none());
/// # Ok::<_, tamis_core::ExpressionError>(())
/// ```
pub fn perfect_merger(a: &Expr, b: &Expr) -> Option<Expr> {
    if covers(a, b, BUDGET) == Answer::Yes {
        return Some(a.clone());
    }
    if covers(b, a, BUDGET) == Answer::Yes {
        return Some(b.clone());
    }
    let mut leaves = Leaves::default();
    let (a, b) = (leaves.tree(a), leaves.tree(b));
    let (of_a, of_b) = (conjunction(&a)?, conjunction(&b)?);
    let only = |these: &[LeafId], those: &[LeafId]| -> Vec<LeafId> {
        these.iter().filter(|leaf| !those.contains(leaf)).copied().collect()
    };
    let (only_a, only_b) = (only(&of_a, &of_b), only(&of_b, &of_a));
    let ([one], [other]) = (&only_a[..], &only_b[..]) else {
        return None;
    };
    let joined = join_predicates(&leaves, *one, *other)?;
    let written = of_a.iter().map(|leaf| if leaf == one { joined.clone() } else { leaves.expr(*leaf) });
    let mut written: Vec<Expr> = written.collect();
    Some(if written.len() == 1 { written.remove(0) } else { Expr::And(written) })
}

/// An expression that covers both: their perfect merger, or their OR, pruned `prunings` times.
pub fn merge(a: &Expr, b: &Expr, prunings: usize, options: Options, selectivities: &Selectivities) -> Expr {
    let merged = perfect_merger(a, b).unwrap_or_else(|| Expr::Or(vec![a.clone(), b.clone()]));
    if prunings == 0 { merged } else { prune(&merged, Until::Steps(prunings), options, selectivities) }
}

/// The leaves of a pure conjunction, each once.
fn conjunction(tree: &Tree) -> Option<Vec<LeafId>> {
    let leaf = |tree: &Tree| match tree {
        Tree::Leaf(id) => Some(*id),
        _ => None,
    };
    let mut leaves = match tree {
        Tree::Leaf(id) => vec![*id],
        Tree::And(children) => children.iter().map(leaf).collect::<Option<Vec<_>>>()?,
        _ => return None,
    };
    let mut seen = vec![];
    leaves.retain(|leaf| {
        !seen.contains(leaf) && {
            seen.push(*leaf);
            true
        }
    });
    Some(leaves)
}

/// One predicate that is true exactly when one of the two is.
fn join_predicates(leaves: &Leaves, one: LeafId, other: LeafId) -> Option<Expr> {
    let (Leaf::Literal(a), Leaf::Literal(b)) = (leaves.leaf(one), leaves.leaf(other)) else {
        return None;
    };
    let (x, y) = (leaves.atoms().atom(a.atom()), leaves.atoms().atom(b.atom()));
    if x.attribute != y.attribute || a.is_negated() || b.is_negated() {
        return None;
    }
    let term = leaves.terms().term(x.attribute);
    let shape =
        |atom: &crate::expr::Atom| matches!(atom.operator.rules().shape(&atom.operands), Shape::Points(_));
    let joined = match (x.operator.rules().shape(&x.operands), y.operator.rules().shape(&y.operands)) {
        (Shape::Points(some), Shape::Points(more)) if shape(x) => {
            let members = some.iter().chain(more).cloned().collect();
            build::predicate(term.clone(), Operator::IN, false, members).ok()?
        }
        (Shape::Range { low, high }, Shape::Range { low: other_low, high: other_high }) => {
            let low = low.zip(other_low).map(|(a, b)| lower(a, b));
            let high = high.zip(other_high).map(|(a, b)| higher(a, b));
            range(term, low, high)?
        }
        _ => return None,
    };
    // Two ranges with a gap between them, or kinds that do not agree, are told here.
    let either = Expr::Or(vec![leaves.expr(one), leaves.expr(other)]);
    let is_same =
        covers(&joined, &either, BUDGET) == Answer::Yes && covers(&either, &joined, BUDGET) == Answer::Yes;
    is_same.then_some(joined)
}

fn lower<'a>(a: Bound<'a>, b: Bound<'a>) -> Bound<'a> {
    match a.value.compare(b.value) {
        Some(order) if order.is_lt() || order.is_eq() && a.inclusive => a,
        _ => b,
    }
}

fn higher<'a>(a: Bound<'a>, b: Bound<'a>) -> Bound<'a> {
    match a.value.compare(b.value) {
        Some(order) if order.is_gt() || order.is_eq() && a.inclusive => a,
        _ => b,
    }
}

/// A range as one predicate, if it is one.
fn range(term: &Term, low: Option<Bound<'_>>, high: Option<Bound<'_>>) -> Option<Expr> {
    let owned = |value: ValueRef<'_>| -> Value { value.to_owned() };
    let (operator, operands) = match (low, high) {
        (Some(low), Some(high)) if low.inclusive && high.inclusive => {
            (Operator::BETWEEN, vec![owned(low.value), owned(high.value)])
        }
        (Some(low), None) if low.inclusive => (Operator::GREATER_OR_EQUAL, vec![owned(low.value)]),
        (Some(low), None) => (Operator::GREATER, vec![owned(low.value)]),
        (None, Some(high)) if high.inclusive => (Operator::LESS_OR_EQUAL, vec![owned(high.value)]),
        (None, Some(high)) => (Operator::LESS, vec![owned(high.value)]),
        _ => return None,
    };
    build::predicate(term.clone(), operator, false, operands).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::expr::testing::{any_event, any_predicate, lookup};
    use crate::expr::{evaluate, parse};

    fn merged(a: &str, b: &str) -> Option<String> {
        perfect_merger(&parse(a).unwrap(), &parse(b).unwrap()).map(|merged| merged.to_string())
    }

    #[test]
    fn one_predicate_says_what_two_did() {
        assert_eq!(merged("x = 1", "x = 2").as_deref(), Some("x IN (1, 2)"));
        assert_eq!(merged("x < 3 AND y", "x < 5 AND y").as_deref(), Some("x < 5 AND y"));
        assert_eq!(
            merged("x BETWEEN 1 AND 3 AND y", "y AND x BETWEEN 2 AND 9").as_deref(),
            Some("x BETWEEN 1 AND 9 AND y")
        );
        assert_eq!(merged("x BETWEEN 1 AND 2", "x BETWEEN 3 AND 4"), None);
        assert_eq!(merged("x > 3", "x < 5"), None, "IS NOT NULL would also take strings");
        assert_eq!(merged("x = 1", "x = 'a'"), None);
        assert_eq!(merged("x = 1 OR y", "x = 2 OR y"), None);
    }

    proptest! {
        #[test]
        fn a_perfect_merger_is_true_exactly_when_one_is(
            shared in any_predicate(), a in any_predicate(), b in any_predicate(),
            events in prop::collection::vec(any_event(), 40)
        ) {
            let with = |own: &crate::expr::Predicate| {
                Expr::And(vec![Expr::Predicate(shared.clone()), Expr::Predicate(own.clone())])
            };
            let (a, b) = (with(&a), with(&b));
            let merger = perfect_merger(&a, &b);
            let wide = merge(&a, &b, 1, Options::default(), &Selectivities::default());
            for event in &events {
                let lookup = lookup(event);
                let is_true = |expr: &Expr| evaluate(expr, &lookup).can_be_true;
                let expected = is_true(&a) || is_true(&b);
                if let Some(merger) = &merger {
                    prop_assert_eq!(is_true(merger), expected, "{} / {} / {}", a, b, merger);
                }
                prop_assert!(!expected || is_true(&wide));
            }
        }
    }
}
