//! Decides whether one expression is true whenever another is.
//!
//! First by structure, as subscriptions are compared in content-based routing: an OR is covered if all its
//! children are, an AND if one of them is, down to pairs of predicates. The remaining cases are decided by a search
//! for an event that makes one true and the other not (see [`decide`](super::decide)).

use rustc_hash::FxHashMap;

use super::decide::{Answer, Second, is_possible};
use super::tree::{Leaf, LeafId, Leaves, Tree};
use crate::event::value::Kind;
use crate::event::{Value, ValueRef};
use crate::expr::{Atom, Expr, Outcome};

/// Whether every event of points that makes `covered` true makes `covering` true.
///
/// [`Answer::Unknown`] after `budget` steps, or where patterns say too little of themselves.
///
/// ```
/// use tamis_core::expr::parse;
/// use tamis_core::relate::{Answer, BUDGET, covers};
///
/// let wide = parse("age BETWEEN 20 AND 40")?;
/// let narrow = parse("age > 25 AND age < 30 AND country = 'CA'")?;
/// assert_eq!(covers(&wide, &narrow, BUDGET), Answer::Yes);
/// assert_eq!(covers(&narrow, &wide, BUDGET), Answer::No);
/// // An absent age makes neither side true.
/// assert_eq!(covers(&parse("age > 1 OR age <= 1")?, &parse("TRUE")?, BUDGET), Answer::No);
/// # Ok::<_, tamis_core::ExpressionError>(())
/// ```
pub fn covers(covering: &Expr, covered: &Expr, budget: usize) -> Answer {
    if covers_by_structure(covering, covered) {
        return Answer::Yes;
    }
    !is_possible(covered, covering, Second::NotTrue, budget)
}

/// Whether the structure of two expressions shows that one covers the other, for every event, those
/// with intervals included. May miss, never invents.
pub fn covers_by_structure(covering: &Expr, covered: &Expr) -> bool {
    let mut leaves = Leaves::default();
    let (covering, covered) = (leaves.tree(covering), leaves.tree(covered));
    let mut comparison = Comparison { leaves, implied: FxHashMap::default(), steps_left: MOST_STEPS };
    comparison.covers(&covering, &covered)
}

/// How many pairs of subtrees are compared before the answer is no.
const MOST_STEPS: usize = 10_000;

/// How many steps a pair of predicates may take.
const PAIR_BUDGET: usize = 20_000;

struct Comparison {
    leaves: Leaves,
    implied: FxHashMap<(LeafId, LeafId), bool>,
    steps_left: usize,
}

impl Comparison {
    fn covers(&mut self, covering: &Tree, covered: &Tree) -> bool {
        if self.steps_left == 0 {
            return false;
        }
        self.steps_left -= 1;
        match (covering, covered) {
            (Tree::True, _) | (_, Tree::False) => true,
            (Tree::False, _) | (_, Tree::True) => false,
            (_, Tree::Or(children)) => children.iter().all(|child| self.covers(covering, child)),
            (Tree::And(children), _) => children.iter().all(|child| self.covers(child, covered)),
            (Tree::Leaf(covering), Tree::Leaf(covered)) => self.leaf_covers(*covering, *covered),
            (Tree::Or(children), Tree::Leaf(_)) => children.iter().any(|child| self.covers(child, covered)),
            (Tree::Leaf(_), Tree::And(children)) => children.iter().any(|child| self.covers(covering, child)),
            (Tree::Or(alternatives), Tree::And(children)) => {
                alternatives.iter().any(|alternative| self.covers(alternative, covered))
                    || children.iter().any(|child| self.covers(covering, child))
            }
        }
    }

    fn leaf_covers(&mut self, covering: LeafId, covered: LeafId) -> bool {
        if covering == covered {
            return true;
        }
        let (Leaf::Literal(wide), Leaf::Literal(narrow)) =
            (self.leaves.leaf(covering), self.leaves.leaf(covered))
        else {
            return false;
        };
        let atoms = self.leaves.atoms();
        let (wide, narrow) = (atoms.atom(wide.atom()), atoms.atom(narrow.atom()));
        if wide.attribute != narrow.attribute || wide.operator.tested(&wide.operands).is_some() {
            return false;
        }
        // An interval that holds a value which satisfies the narrow one holds one that satisfies the wide one,
        // unless the wide one is a pattern, which is undefined for every interval. What asks for no kind of value
        // does not look at it.
        let kind = |atom: &Atom| atom.operator.rules().expects(&atom.operands);
        let takes_intervals = || {
            let point = (Value::Str("".into()), Value::Str("".into()));
            kind(wide) != Some(Kind::Str)
                || wide.outcome(Some(ValueRef::Interval(&point))) != Outcome::UNDEFINED
        };
        let is_alike = kind(wide).is_none() || kind(wide) == kind(narrow) && takes_intervals();
        if wide.operator != narrow.operator && !is_alike {
            return false;
        }
        *self.implied.entry((covering, covered)).or_insert_with(|| {
            let (wide, narrow) = (self.leaves.expr(covering), self.leaves.expr(covered));
            is_possible(&narrow, &wide, Second::NotTrue, PAIR_BUDGET) == Answer::No
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::expr::testing::{any_event, any_expr, any_interval_event, lookup};
    use crate::expr::{evaluate, parse};
    use crate::relate::BUDGET;

    fn covers_text(covering: &str, covered: &str) -> Answer {
        covers(&parse(covering).unwrap(), &parse(covered).unwrap(), BUDGET)
    }

    #[test]
    fn what_covers_and_what_does_not() {
        for (covering, covered) in [
            ("x > 3", "x > 3"),
            ("x > 3", "x = 4 AND y = 1"),
            ("x > 3 OR y = 1", "x > 5"),
            ("x IN (1, 2, 3)", "x = 1 OR x = 3"),
            ("x BETWEEN 1 AND 3", "x >= 1 AND x < 2"),
            ("x IS NOT NULL", "startswith(x, 'a')"),
            ("startswith(x, 'a')", "startswith(x, 'ab')"),
            ("startswith(x, 'a')", "x >= 'ab' AND x < 'ac'"),
            ("contains(x, 'a')", "startswith(x, 'bab')"),
            ("contains(x, 'a') AND y > 1", "endswith(x, 'ba') AND y > 2"),
            ("x LIKE '%a%'", "contains(x, 'bab')"),
            ("x RLIKE 'a+b' OR y", "x RLIKE 'a+b'"),
            ("x < 1 OR x >= 1 OR x IS NULL OR NOT (x < 1 OR x >= 1)", "x = 3"),
            ("arrays_overlap(x, ARRAY(1, 2))", "array_contains(x, 1)"),
            ("NOT array_contains(x, 1)", "NOT arrays_overlap(x, ARRAY(1, 2))"),
            ("TRUE", "x"),
            ("x", "FALSE"),
            ("x", "y = 1 AND y = 2"),
            ("a XOR b", "a AND NOT b"),
        ] {
            assert_eq!(covers_text(covering, covered), Answer::Yes, "{covering} / {covered}");
        }
        for (covering, covered) in [
            ("x = 4", "x > 3"),
            ("x > 3", "x >= 3"),
            ("x != 1", "x IS NULL"),
            ("x < 1 OR x >= 1", "x IS NOT NULL"),
            ("NOT x", "x IS NULL"),
            ("startswith(x, 'ab')", "startswith(x, 'a')"),
            ("contains(x, 'a')", "contains(x, 'b')"),
            ("array_contains(x, 1)", "arrays_overlap(x, ARRAY(1, 2))"),
        ] {
            assert_eq!(covers_text(covering, covered), Answer::No, "{covering} / {covered}");
        }
    }

    #[test]
    fn structure_alone_is_enough_for_intervals() {
        let by_structure = |a: &str, b: &str| covers_by_structure(&parse(a).unwrap(), &parse(b).unwrap());
        assert!(by_structure("x > 3 AND y < 5", "x = 4 AND y IN (1, 2) AND z"));
        assert!(!by_structure("x", "y > 5 AND y < 3"), "an interval can satisfy both");
        assert!(!by_structure("startswith(x, 'a')", "x = 'ab'"), "undefined for an interval");
        assert!(by_structure("startswith(x, 'a')", "startswith(x, 'ab')"));
        assert!(by_structure("x IS NOT NULL", "x > 3 OR contains(x, 'a')"));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(600))]

        #[test]
        fn no_event_contradicts(
            a in any_expr(3), b in any_expr(3), events in prop::collection::vec(any_event(), 40)
        ) {
            let answer = covers(&a, &b, BUDGET);
            let is_against = |event| {
                let lookup = lookup(event);
                evaluate(&b, &lookup).can_be_true && !evaluate(&a, &lookup).can_be_true
            };
            prop_assert!(answer != Answer::Yes || !events.iter().any(is_against));
        }

        #[test]
        fn structure_holds_for_intervals(
            a in any_expr(2), b in any_expr(2), events in prop::collection::vec(any_interval_event(), 40)
        ) {
            let holds = covers_by_structure(&a, &b);
            for event in &events {
                let lookup = lookup(event);
                let is_against = evaluate(&b, &lookup).can_be_true && !evaluate(&a, &lookup).can_be_true;
                prop_assert!(!(holds && is_against), "{a} / {b} / {event:?}");
            }
        }
    }
}
