//! Decides whether one event can make two expressions true.
//!
//! [`overlaps`] searches for such an event (see [`decide`](super::decide)). [`may_overlap`] is the test of
//! Bittner (2008, chapter 7), which only compares pairs of predicates. It never misses an overlap, but has false
//! positives: it does not notice `x < 3` and `x > 5` within one expression.

use rustc_hash::FxHashMap;

use super::decide::{Answer, ExampleEvent, Second, find, is_possible};
use super::tree::{Leaf, LeafId, Leaves, Tree};
use crate::expr::Expr;

/// Whether some event of points makes both expressions true.
///
/// [`Answer::Unknown`] after `budget` steps, or where patterns say too little of themselves.
///
/// ```
/// use tamis_core::expr::parse;
/// use tamis_core::relate::{Answer, BUDGET, may_overlap, overlaps};
///
/// let a = parse("price < 12 AND country = 'CA'")?;
/// assert_eq!(overlaps(&a, &parse("price > 10")?, BUDGET), Answer::Yes);
/// assert_eq!(overlaps(&a, &parse("price > 12 OR country = 'US'")?, BUDGET), Answer::No);
/// // Pairs alone do not show that no price is between 10 and 9.
/// let b = parse("price > 10")?;
/// let c = parse("price < 12 AND price < 9 AND price > 8")?;
/// assert_eq!(overlaps(&b, &c, BUDGET), Answer::No);
/// assert!(!may_overlap(&b, &c) && may_overlap(&parse("TRUE")?, &parse("x < 1 AND x > 2")?));
/// # Ok::<_, tamis_core::ExpressionError>(())
/// ```
pub fn overlaps(a: &Expr, b: &Expr, budget: usize) -> Answer {
    is_possible(a, b, Second::True, budget)
}

/// An event that makes both expressions true, if [`overlaps`] finds one.
pub fn example_of_overlap(a: &Expr, b: &Expr, budget: usize) -> Option<ExampleEvent> {
    find(a, b, Second::True, budget).1
}

/// Whether two expressions may overlap, as far as pairs of predicates tell (Bittner 2008). For events of
/// points; false is a proof.
pub fn may_overlap(a: &Expr, b: &Expr) -> bool {
    let mut leaves = Leaves::default();
    let (a, b) = (leaves.tree(a), leaves.tree(b));
    let mut pairs = Pairs { leaves, disjoint: FxHashMap::default() };
    let mut of_b = vec![];
    b.for_each_leaf(&mut |id| of_b.push(id));
    of_b.sort_unstable();
    of_b.dedup();
    let Some(alternatives) = pairs.disjoint_sets(&a, &of_b) else {
        return true;
    };
    alternatives.iter().any(|disjoint| {
        let holds = |id: LeafId| !disjoint[of_b.binary_search(&id).expect("a leaf of b")];
        b.is_true(&holds)
    })
}

/// How many alternatives of an expression are looked at before it may overlap with everything.
const MOST_ALTERNATIVES: usize = 4096;

/// How many steps a pair of predicates may take.
const PAIR_BUDGET: usize = 20_000;

struct Pairs {
    leaves: Leaves,
    disjoint: FxHashMap<(LeafId, LeafId), bool>,
}

impl Pairs {
    /// For each alternative of the tree (a term of its disjunctive form), which of the leaves are disjoint
    /// with one of its predicates. `None` if there are too many.
    fn disjoint_sets(&mut self, tree: &Tree, others: &[LeafId]) -> Option<Vec<Vec<bool>>> {
        match tree {
            Tree::True => Some(vec![vec![false; others.len()]]),
            Tree::False => Some(vec![]),
            Tree::Leaf(id) => Some(vec![others.iter().map(|other| self.are_disjoint(*id, *other)).collect()]),
            Tree::Or(children) => {
                let mut all = vec![];
                for child in children {
                    all.extend(self.disjoint_sets(child, others)?);
                }
                (all.len() <= MOST_ALTERNATIVES).then_some(all)
            }
            Tree::And(children) => {
                let mut all = vec![vec![false; others.len()]];
                for child in children {
                    let sets = self.disjoint_sets(child, others)?;
                    if all.len() * sets.len() > MOST_ALTERNATIVES {
                        return None;
                    }
                    let union = |a: &[bool], b: &[bool]| a.iter().zip(b).map(|(a, b)| *a || *b).collect();
                    all = all.iter().flat_map(|a| sets.iter().map(move |b| union(a, b))).collect();
                    all.sort_unstable();
                    all.dedup();
                }
                Some(all)
            }
        }
    }

    fn are_disjoint(&mut self, a: LeafId, b: LeafId) -> bool {
        let attribute = |id: LeafId| match self.leaves.leaf(id) {
            Leaf::Literal(literal) => Some(self.leaves.atoms().atom(literal.atom()).attribute),
            Leaf::Part(_) => None,
        };
        if a == b || attribute(a).is_none() || attribute(a) != attribute(b) {
            return false;
        }
        *self.disjoint.entry((a.min(b), a.max(b))).or_insert_with(|| {
            let (a, b) = (self.leaves.expr(a), self.leaves.expr(b));
            overlaps(&a, &b, PAIR_BUDGET) == Answer::No
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::expr::testing::{any_event, any_expr, lookup};
    use crate::expr::{Outcome, evaluate, parse};
    use crate::relate::BUDGET;

    /// The subscriptions and the advertisement of Bittner's example for the overlap of Boolean expressions.
    const S1: &str = "contains(title, 'Harry Potter') AND ending < 1440 AND \
        (condition = 'new' AND price < 15 OR price < 12 AND condition = 'used')";
    const S4: &str = "contains(title, 'The Chronicles of Narnia') AND ending < 1440 AND \
        (format = 'hardcover' AND (condition = 'new' AND price < 25 OR price < 20 AND condition = 'used') OR \
        format = 'softcover' AND (condition = 'new' AND price < 15 OR price < 10 AND condition = 'used'))";
    const S3: &str = "(category = 'Ancient Literature' OR author = 'JK Rowling') AND \
        (ending < 60 AND (bids = 0 OR special = 'signed') OR buy_it_now AND special = 'signed')";
    const A3: &str = "title = 'Harry Potter and the Goblet of Fire' AND \
        (condition = 'used' AND price > 11 OR price > 14 AND condition = 'new')";

    #[test]
    fn the_example_of_the_thesis() {
        let [a3, s1, s3, s4] = [A3, S1, S3, S4].map(|text| parse(text).unwrap());
        for (subscription, expected) in [(&s1, true), (&s3, true), (&s4, false)] {
            assert_eq!(may_overlap(&a3, subscription), expected);
            assert_eq!(may_overlap(subscription, &a3), expected);
            let answer = if expected { Answer::Yes } else { Answer::No };
            assert_eq!(overlaps(&a3, subscription, BUDGET), answer);
            assert_eq!(overlaps(subscription, &a3, BUDGET), answer);
        }
    }

    #[test]
    fn pairs_of_comparisons_are_disjoint_as_their_values_are() {
        let operators = ["=", "!=", "<", "<=", ">", ">="];
        for (a, b) in operators.iter().flat_map(|a| operators.iter().map(move |b| (a, b))) {
            for (v, w) in (0..4).flat_map(|v| (0..4).map(move |w| (v, w))) {
                let holds = |operator: &str, x: f64, y: f64| match operator {
                    "=" => x == y,
                    "!=" => x != y,
                    "<" => x < y,
                    "<=" => x <= y,
                    ">" => x > y,
                    _ => x >= y,
                };
                let values = (-2..12).map(|halves| halves as f64 / 2.0);
                let expected = values.into_iter().any(|x| holds(a, x, v as f64) && holds(b, x, w as f64));
                let expr = |operator: &str, operand: i32| parse(&format!("x {operator} {operand}")).unwrap();
                assert_eq!(may_overlap(&expr(a, v), &expr(b, w)), expected, "x {a} {v} / x {b} {w}");
            }
        }
    }

    #[test]
    fn strings_overlap_as_their_parts_allow() {
        for (a, b, expected) in [
            ("contains(x, 'ab')", "NOT contains(x, 'a')", Answer::No),
            ("contains(x, 'a')", "NOT contains(x, 'ab')", Answer::Yes),
            ("endswith(x, 'ab')", "endswith(x, 'b')", Answer::Yes),
            ("endswith(x, 'ab')", "endswith(x, 'cb')", Answer::No),
            ("startswith(x, 'ab')", "startswith(x, 'b')", Answer::No),
            ("startswith(x, 'b')", "endswith(x, 'a')", Answer::Yes),
            ("x = 'abc'", "endswith(x, 'bc')", Answer::Yes),
            ("x = 'abc'", "x RLIKE '^b'", Answer::No),
            ("x > 'b'", "startswith(x, 'a')", Answer::No),
            ("x RLIKE '^b+$'", "x RLIKE '^a+$'", Answer::Unknown),
        ] {
            let (a, b) = (parse(a).unwrap(), parse(b).unwrap());
            assert_eq!(overlaps(&a, &b, BUDGET), expected, "{a} / {b}");
        }
    }

    #[test]
    fn a_budget_ends_in_not_knowing() {
        let hard = |text: &str| {
            let parts = (0..12).map(|at| text.replace('#', &at.to_string()));
            parse(&parts.collect::<Vec<_>>().join(" AND ")).unwrap()
        };
        let (a, b) = (hard("(x# > 1 XOR y = #)"), hard("(x# < 1 XOR z > #)"));
        assert_eq!(overlaps(&a, &b, 100), Answer::Unknown);
        assert!(may_overlap(&a, &b));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(600))]

        #[test]
        fn no_event_contradicts(
            a in any_expr(3), b in any_expr(3), events in prop::collection::vec(any_event(), 40)
        ) {
            let answer = overlaps(&a, &b, BUDGET);
            let satisfies_both = |event| {
                let lookup = lookup(event);
                evaluate(&a, &lookup).can_be_true && evaluate(&b, &lookup).can_be_true
            };
            let seen = events.iter().any(satisfies_both);
            prop_assert!(answer != Answer::No || !seen);
            let published = may_overlap(&a, &b);
            prop_assert!(published || !seen);
            prop_assert!(published || answer != Answer::Yes);
            prop_assert_eq!(overlaps(&b, &a, BUDGET), answer);
            let example = example_of_overlap(&a, &b, BUDGET);
            prop_assert_eq!(example.is_some(), answer == Answer::Yes);
            if let Some(example) = example {
                let lookup = |name: &str| {
                    example.iter().find(|(attribute, _)| **attribute == *name).map(|(_, value)| value.as_ref())
                };
                prop_assert_eq!(evaluate(&a, &lookup), Outcome::TRUE, "{:?}", example);
                prop_assert_eq!(evaluate(&b, &lookup), Outcome::TRUE, "{:?}", example);
            }
        }
    }
}
