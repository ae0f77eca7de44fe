//! Values as positions on a discrete line: integers that sort like the numbers.
//!
//! Every position has a next one, so a closed interval ends just before `high + 1`, and intervals that only
//! touch have a position in common. Ends need no special rules.

/// Below every number: only an interval without a lower end holds it. An event that lacks a value is here.
pub const ABSENT: u64 = 0;

/// Above every number.
pub const LAST: u64 = u64::MAX;

/// The position of a number, infinite ones included.
pub fn position(number: f64) -> u64 {
    // -0.0 and 0.0 are one number.
    let bits = (number + 0.0).to_bits();
    if bits >> 63 == 0 { bits | 1 << 63 } else { !bits }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn positions_sort_like_numbers(a in any::<f64>(), b in any::<f64>()) {
            prop_assert_eq!(a < b, position(a) < position(b));
            prop_assert_eq!(a == b, position(a) == position(b));
        }
    }

    #[test]
    fn infinite_numbers_lie_between_absent_and_last() {
        assert!(ABSENT < position(f64::NEG_INFINITY) && position(f64::NEG_INFINITY) < position(f64::MIN));
        assert!(position(f64::MAX) < position(f64::INFINITY) && position(f64::INFINITY) < LAST);
        assert_eq!(position(-0.0), position(0.0));
    }
}
