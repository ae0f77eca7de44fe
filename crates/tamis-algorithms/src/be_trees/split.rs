//! Divides an overflowing bucket of BE*-Tree into a left side, a right side, and the intervals that span both
//! (Sadoghi and Jacobsen 2012, section V).
//!
//! ```text
//! left   ├──┤ ├────┤                        the sides never meet,
//! over            ├─────────┤               and nothing that a side would enclose is left over
//! right                 ├───┤  ├──────┤
//! ```
//!
//! *Exhaustive*: for each number of leftmost intervals as the left side (and of rightmost ones as the right
//! side), the other side has the intervals that do not meet it; the least overlap wins, then the least coverage.
//! *Approximate*: intervals are dealt to the sides from both ends in one pass. If neither method gives both sides
//! their share, the space is cut in half.

use crate::span::{Span, number_at};

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
        true => exhaustively(spans, &ruler, least),
        false => Some(approximately(spans)).filter(has_shares),
    };
    let sides = by_data.unwrap_or_else(|| by_space(spans, &ruler));
    // Beyond the finite numbers there is no centre: a side that takes all divides nothing.
    let takes_all = (0..2).any(|side| sides.iter().all(|chosen| *chosen == Some(side)));
    if takes_all { vec![None; spans.len()] } else { sides }
}

/// The best of all ways to take some of the leftmost intervals as the left side, or of the rightmost as the
/// right side. Sorted once, each way is judged by a few lookups.
fn exhaustively(spans: &[Span], ruler: &Ruler, least: usize) -> Option<Sides> {
    let sorted = Sorted::new(spans);
    // Everything that ends by a cut is left, and what starts after it right. Then the same from the right, where
    // what starts at a cut is right already.
    let from_left = spans.iter().map(|span| Cut { at: span.high, starts_right: false });
    let from_right = spans.iter().map(|span| Cut { at: span.low, starts_right: true });
    let mut best: Option<((f64, f64), Cut)> = None;
    for cut in from_left.chain(from_right) {
        let Some(parts) = sorted.parts(cut, least) else { continue };
        let cost = (ruler.overlap(&parts), ruler.coverage(&parts));
        if best.as_ref().is_none_or(|(least, _)| cost < *least) {
            best = Some((cost, cut));
        }
    }
    best.map(|(_, cut)| assign(spans, |span| cut.is_left(span), |span| cut.is_right(span)))
}

/// A place between two positions: just after `at`, or just before it.
#[derive(Clone, Copy, Debug)]
struct Cut {
    at: u64,
    starts_right: bool,
}

impl Cut {
    fn is_left(self, span: &Span) -> bool {
        if self.starts_right { span.high < self.at } else { span.high <= self.at }
    }

    fn is_right(self, span: &Span) -> bool {
        if self.starts_right { span.low >= self.at } else { span.low > self.at }
    }
}

/// What a cut makes of the intervals: the hulls of both sides, and of what lies over the cut.
struct Parts {
    left: Option<Span>,
    over: Option<Span>,
    right: Option<Span>,
}

/// The intervals in both orders, each with what one needs to know of those before or after a place.
struct Sorted {
    by_high: Vec<Span>,
    by_low: Vec<Span>,
    /// The least start of the first n by end, and of all but the first n.
    least_low_before: Vec<u64>,
    least_low_after: Vec<u64>,
    /// The greatest end of the first n by start, and of all but the first n.
    most_high_before: Vec<u64>,
    most_high_after: Vec<u64>,
}

impl Sorted {
    fn new(spans: &[Span]) -> Self {
        let (mut by_high, mut by_low) = (spans.to_vec(), spans.to_vec());
        by_high.sort_unstable_by_key(|span| span.high);
        by_low.sort_unstable_by_key(|span| span.low);
        let lows = || by_high.iter().map(|span| span.low);
        let highs = || by_low.iter().map(|span| span.high);
        Self {
            least_low_before: running(lows(), u64::MAX, u64::min),
            least_low_after: reversed(running(lows().rev(), u64::MAX, u64::min)),
            most_high_before: running(highs(), 0, u64::max),
            most_high_after: reversed(running(highs().rev(), 0, u64::max)),
            by_high,
            by_low,
        }
    }

    /// `None` if a side gets less than it must.
    fn parts(&self, cut: Cut, least: usize) -> Option<Parts> {
        let left = self.by_high.partition_point(|span| cut.is_left(span));
        let not_right = self.by_low.partition_point(|span| !cut.is_right(span));
        if left < least || self.by_low.len() - not_right < least {
            return None;
        }
        let high_of_left = self.by_high[left - 1].high;
        let low_of_right = self.by_low[not_right].low;
        // What is not left ends after the cut, what is not right starts before it; both together lie over it.
        let is_any_over = left < not_right;
        Some(Parts {
            left: Some(Span { low: self.least_low_before[left], high: high_of_left }),
            over: is_any_over
                .then(|| Span { low: self.least_low_after[left], high: self.most_high_before[not_right] }),
            right: Some(Span { low: low_of_right, high: self.most_high_after[not_right] }),
        })
    }
}

/// What a fold has come to after none, one, two, ... of the numbers.
fn running(numbers: impl Iterator<Item = u64>, start: u64, fold: fn(u64, u64) -> u64) -> Vec<u64> {
    let mut so_far = start;
    let further = numbers.map(|number| {
        so_far = fold(so_far, number);
        so_far
    });
    std::iter::once(start).chain(further).collect()
}

fn reversed(mut numbers: Vec<u64>) -> Vec<u64> {
    numbers.reverse();
    numbers
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
    fn overlap(&self, parts: &Parts) -> f64 {
        parts.over.map_or(0.0, |over| self.length(over))
    }

    /// The length of the union of all three: what meets is one.
    fn coverage(&self, parts: &Parts) -> f64 {
        let mut union: Vec<Span> = vec![];
        let mut in_order: Vec<Span> = [parts.left, parts.over, parts.right].into_iter().flatten().collect();
        in_order.sort_unstable();
        for part in in_order {
            match union.last_mut() {
                Some(last) if last.overlaps(part) => *last = last.hull(part),
                _ => union.push(part),
            }
        }
        union.into_iter().map(|part| self.length(part)).sum()
    }
}

/// The hull of the intervals on a side.
#[cfg(test)]
fn hull_of(spans: &[Span], sides: &Sides, side: Option<usize>) -> Option<Span> {
    let chosen = spans.iter().zip(sides).filter(|(_, chosen)| **chosen == side);
    chosen.map(|(span, _)| *span).reduce(Span::hull)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use tamis_core::event::ValueRef;

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
        fn the_exhaustive_split_is_the_best_of_all_cuts(
            ends in prop::collection::vec((-20i64..20, 0i64..15), 2..20), least in 1usize..4
        ) {
            let spans: Vec<Span> = ends.iter().map(|(low, length)| span(*low, *length)).collect();
            let ruler = Ruler::new(&spans);
            // The same by definition, one cut after the other.
            let mut best = None;
            for place in &spans {
                for cut in [
                    Cut { at: place.high, starts_right: false },
                    Cut { at: place.low, starts_right: true },
                ] {
                    let sides = assign(&spans, |span| cut.is_left(span), |span| cut.is_right(span));
                    let count = |side| sides.iter().filter(|chosen| **chosen == Some(side)).count();
                    if count(0) >= least && count(1) >= least {
                        let cost = cost_of(&spans, &sides, &ruler);
                        best = Some(best.map_or(cost, |best: (f64, f64)| if cost < best { cost } else { best }));
                    }
                }
            }
            let chosen = exhaustively(&spans, &ruler, least);
            prop_assert_eq!(chosen.map(|sides| cost_of(&spans, &sides, &ruler)), best);
        }
    }

    /// Overlap and coverage of a split, from the hulls of its three parts.
    fn cost_of(spans: &[Span], sides: &Sides, ruler: &Ruler) -> (f64, f64) {
        let [left, over, right] = [Some(0), None, Some(1)].map(|side| hull_of(spans, sides, side));
        let parts = Parts { left, over, right };
        (ruler.overlap(&parts), ruler.coverage(&parts))
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
