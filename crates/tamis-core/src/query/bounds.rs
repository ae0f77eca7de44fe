//! Upper bounds of a score, whatever the event: never too low.
//!
//! Adding floats from left to right rounds, but it is monotone: with greater or equal numbers in the same places, every
//! partial sum is greater or equal. So the bound of an expression, added up in the order of its score, needs no
//! correction. If numbers are added or multiplied in another order (an event's weight times a bound instead of a sum of
//! products), [`up`] makes room for the rounding.

use super::score::distinct_leaves;
use crate::expr::{Expr, Predicate};

/// A bound that stays one when the sum behind it was rounded otherwise: at most 65,536 roundings of
/// 2⁻⁵³ each, and as many smallest numbers where rounding is absolute.
pub fn up(bound: f64) -> f64 {
    bound * (1.0 + 1e-10) + 1e-300
}

/// The highest relevance that an expression can have for an event of points without weights.
///
/// An XOR has one true case for points, so its bound is that of the better one.
pub fn relevance_bound(expr: &Expr, weight: &impl Fn(&Predicate) -> f64) -> f64 {
    bounds(expr, weight).0
}

/// The highest relaxed score for an event without weights: that of all distinct leaves, added up in order.
pub fn relaxed_bound(expr: &Expr, weight: &impl Fn(&Predicate) -> f64) -> f64 {
    distinct_leaves(expr).into_iter().fold(0.0, |sum, (predicate, positive)| {
        let (if_true, if_false) = predicate.most_score();
        sum + weight(predicate) * if positive { if_true } else { if_false }
    })
}

/// When true, when false.
fn bounds(expr: &Expr, weight: &impl Fn(&Predicate) -> f64) -> (f64, f64) {
    let sums = |children: &[Expr]| {
        children
            .iter()
            .map(|child| bounds(child, weight))
            .fold((0.0, 0.0), |(t, f), (ct, cf)| (t + ct, f + cf))
    };
    let xor =
        |(at, af): (f64, f64), (bt, bf): (f64, f64)| (f64::max(at + bf, af + bt), f64::max(at + bt, af + bf));
    let fold = |children: &[Expr], combine: &dyn Fn((f64, f64), (f64, f64)) -> (f64, f64)| {
        children.iter().map(|child| bounds(child, weight)).reduce(combine).expect("a connective has children")
    };
    match expr {
        Expr::Constant(_) => (0.0, 0.0),
        Expr::Predicate(predicate) => {
            let (if_true, if_false) = predicate.most_score();
            (weight(predicate) * if_true, weight(predicate) * if_false)
        }
        Expr::Not(child) => {
            let (t, f) = bounds(child, weight);
            (f, t)
        }
        Expr::And(children) | Expr::Or(children) | Expr::AtLeast(_, children) => sums(children),
        Expr::Xor(children) => fold(children, &xor),
        Expr::Xnor(children) => fold(children, &|a, b| {
            let (t, f) = xor(a, b);
            (f, t)
        }),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::expr::testing::{any_event, any_expr, lookup};
    use crate::query::relevance;

    /// A weight with many digits, from what a predicate looks like.
    fn weight(predicate: &Predicate) -> f64 {
        let text = format!("{predicate:?}");
        text.bytes().fold(0u32, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte as u32)) as f64 / 7e8
    }

    proptest! {
        #[test]
        fn no_score_is_above_its_bound(expr in any_expr(5), event in any_event(), factor in 0.0..3.0f64) {
            let plain = relevance_bound(&expr, &weight);
            if let Some(score) = relevance(&expr, &lookup(&event), &weight) {
                prop_assert!(score <= plain);
            }
            let scaled = relevance(&expr, &lookup(&event), &|predicate| {
                weight(predicate) * if predicate.term.name() == "a" { factor } else { 1.0 }
            });
            if let Some(score) = scaled {
                prop_assert!(score <= up(plain * factor.max(1.0)));
            }
        }
    }

    #[test]
    fn rounding_up_covers_zero_and_infinity() {
        assert!(up(0.0) > 0.0);
        assert_eq!(up(f64::INFINITY), f64::INFINITY);
    }
}
