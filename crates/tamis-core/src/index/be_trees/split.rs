//! How an overflowing bucket of BE*-Tree is divided into a left side, a right side and what lies over both
//! (Sadoghi and Jacobsen 2012, section V).
//!
//! ```text
//! left   ├──┤ ├────┤                        the sides never meet,
//! over            ├─────────┤               and nothing that a side would enclose is left over
//! right                 ├───┤  ├──────┤
//! ```
//!
//! *Exhaustive*: for each number of leftmost intervals as the left side (and of rightmost ones as the right
//! side), the other side is what does not meet it; the least overlap wins, then the least coverage. *Approximate*:
//! intervals are dealt to the sides from both ends in one pass. Where neither gives both sides their share, the
//! space is cut in half.

use super::span::{Span, number_at};

/// Which side each interval goes to; `None` for those that lie over both.
pub type Sides = Vec<Option<usize>>;

/// Divides intervals that do not all have the same single position.
pub fn split(spans: &[Span], min_share: f64, exhaustive: bool) -> Sides {
    let least = ((min_share * spans.len() as f64).ceil() as usize).max(1);
    let has_shares = |sides: &Sides| {
        (0..2).all(|side| sides.iter().filter(|chosen| **chosen == Some(side)).count() >= least)
    };
    let ruler = Ruler::new(spans);
    let by_data = match exhaustive {
        true => exhaustively(spans, &ruler, has_shares),
        false => Some(approximately(spans)).filter(has_shares),
    };
    let sides = by_data.unwrap_or_else(|| by_space(spans, &ruler));
    // Beyond the finite numbers there is no centre: a side that takes all divides nothing.
    let takes_all = (0..2).any(|side| sides.iter().all(|chosen| *chosen == Some(side)));
    if takes_all { vec![None; spans.len()] } else { sides }
}

fn exhaustively(spans: &[Span], ruler: &Ruler, has_shares: impl Fn(&Sides) -> bool) -> Option<Sides> {
    // Everything that ends by `end` is left, and what starts after it right. Then the same from the right.
    let from_left = spans.iter().map(|end| {
        let left = |span: &Span| span.high <= end.high;
        let right = |span: &Span| span.low > end.high;
        assign(spans, left, right)
    });
    let from_right = spans.iter().map(|start| {
        let left = |span: &Span| span.high < start.low;
        let right = |span: &Span| span.low >= start.low;
        assign(spans, left, right)
    });
    let good = from_left.chain(from_right).filter(has_shares);
    let cost = |sides: &Sides| (ruler.overlap(spans, sides), ruler.coverage(spans, sides));
    let least = good.map(|sides| (cost(&sides), sides)).reduce(|a, b| if b.0 < a.0 { b } else { a });
    least.map(|(_, sides)| sides)
}

fn assign(spans: &[Span], left: impl Fn(&Span) -> bool, right: impl Fn(&Span) -> bool) -> Sides {
    let side = |span: &Span| if left(span) { Some(0) } else { right(span).then_some(1) };
    spans.iter().map(side).collect()
}

fn approximately(spans: &[Span]) -> Sides {
    let mut up: Vec<usize> = (0..spans.len()).collect();
    let mut down = up.clone();
    up.sort_by_key(|at| spans[*at].high);
    down.sort_by_key(|at| std::cmp::Reverse(spans[*at].low));
    let mut sides: Sides = vec![None; spans.len()];
    let mut hulls: [Option<Span>; 2] = [None, None];
    for (leftmost, rightmost) in up.into_iter().zip(down) {
        for (side, at) in [leftmost, rightmost].into_iter().enumerate() {
            let is_apart = |hull: Span| !hull.overlaps(spans[at]);
            if sides[at].is_none() && hulls[1 - side].is_none_or(is_apart) {
                sides[at] = Some(side);
                hulls[side] = Some(hulls[side].map_or(spans[at], |hull| hull.hull(spans[at])));
            }
        }
    }
    sides
}

fn by_space(spans: &[Span], ruler: &Ruler) -> Sides {
    let centre = ruler.low / 2.0 + ruler.high / 2.0;
    assign(spans, |span| number_at(span.high) < centre, |span| number_at(span.low) > centre)
}

/// Measures lengths within the domain seen: an open end is as far as any interval ends.
struct Ruler {
    low: f64,
    high: f64,
}

impl Ruler {
    fn new(spans: &[Span]) -> Self {
        let numbers = spans.iter().flat_map(|span| [number_at(span.low), number_at(span.high)]);
        let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
        for number in numbers.filter(|number| number.is_finite()) {
            (low, high) = (low.min(number), high.max(number));
        }
        if low > high { Self { low: 0.0, high: 0.0 } } else { Self { low, high } }
    }

    fn length(&self, span: Span) -> f64 {
        let clipped = |position: u64| number_at(position).clamp(self.low, self.high);
        clipped(span.high) - clipped(span.low)
    }

    /// The length of what lies over both sides.
    fn overlap(&self, spans: &[Span], sides: &Sides) -> f64 {
        hull_of(spans, sides, None).map_or(0.0, |hull| self.length(hull))
    }

    /// The length of the union of all three: the parts are in order, so only neighbours meet.
    fn coverage(&self, spans: &[Span], sides: &Sides) -> f64 {
        let parts = [Some(0), None, Some(1)].into_iter().filter_map(|side| hull_of(spans, sides, side));
        let mut parts: Vec<Span> = parts.collect();
        parts.sort_unstable();
        let mut union: Vec<Span> = vec![];
        for part in parts {
            match union.last_mut() {
                Some(last) if last.overlaps(part) => *last = last.hull(part),
                _ => union.push(part),
            }
        }
        union.into_iter().map(|part| self.length(part)).sum()
    }
}

fn hull_of(spans: &[Span], sides: &Sides, side: Option<usize>) -> Option<Span> {
    let chosen = spans.iter().zip(sides).filter(|(_, chosen)| **chosen == side);
    chosen.map(|(span, _)| *span).reduce(Span::hull)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::event::ValueRef;

    fn span(low: i64, length: i64) -> Span {
        let at = |x: i64| Span::of_value(ValueRef::Int(x));
        at(low).hull(at(low + length))
    }

    proptest! {
        #[test]
        fn sides_never_meet_and_enclose_nothing_that_is_left_over(
            ends in prop::collection::vec((-20i64..20, 0i64..15), 2..20), exhaustive in any::<bool>()
        ) {
            let spans: Vec<Span> = ends.iter().map(|(low, length)| span(*low, *length)).collect();
            let sides = split(&spans, 0.1, exhaustive);
            let [left, right] = [0, 1].map(|side| hull_of(&spans, &sides, Some(side)));
            if let (Some(left), Some(right)) = (left, right) {
                prop_assert!(left.high < right.low);
            }
            for (span, _) in spans.iter().zip(&sides).filter(|(_, side)| side.is_none()) {
                prop_assert!(!left.is_some_and(|left| left.encloses(*span)));
                prop_assert!(!right.is_some_and(|right| right.encloses(*span)));
            }
        }

        #[test]
        fn the_exhaustive_split_overlaps_no_more_than_the_approximate_one_from_one_end(
            ends in prop::collection::vec((-20i64..20, 0i64..15), 2..20)
        ) {
            let spans: Vec<Span> = ends.iter().map(|(low, length)| span(*low, *length)).collect();
            let ruler = Ruler::new(&spans);
            let any = |_: &Sides| true;
            let best = exhaustively(&spans, &ruler, any).unwrap();
            for end in &spans {
                let one = assign(&spans, |span| span.high <= end.high, |span| span.low > end.high);
                prop_assert!(ruler.overlap(&spans, &best) <= ruler.overlap(&spans, &one));
            }
        }
    }

    #[test]
    fn gaps_are_found_and_space_is_cut_where_there_are_none() {
        let spans = [span(0, 1), span(2, 1), span(1, 1), span(50, 2), span(52, 1)];
        for exhaustive in [true, false] {
            let left = Some(0);
            assert_eq!(split(&spans, 0.1, exhaustive), [left, left, left, Some(1), Some(1)], "{exhaustive}");
        }
        let nested = [span(0, 100), span(10, 80), span(20, 60), span(70, 5), span(71, 2)];
        assert_eq!(split(&nested, 0.3, true), [None, None, None, Some(1), Some(1)]);
        let open = [Span::WHOLE, span(0, 4), span(6, 4), span(8, 2)];
        assert_eq!(split(&open, 0.1, true), [None, Some(0), Some(1), Some(1)]);
    }
}
