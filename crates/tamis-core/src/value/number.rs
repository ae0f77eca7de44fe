//! One totally ordered key for integers, floats and decimals.
//!
//! Numbers are compared by the values that they stand for. Integers and decimals stand for themselves. A
//! float stands for itself if it is a whole number of at most 2^63 in magnitude, so that it compares exactly
//! with integers; any other float stands for the shortest decimal that reads back as it, which is how it is
//! written: 0.1 is one tenth. Both round to this float, so floats keep their order.
//!
//! The key of a number is `(f, d)`: the nearest float, and the distance from what that float stands for. Rounding
//! never reverses an order, so comparing floats first and distances second compares the values.
//!
//! ```text
//! 64 bits   the float, as bits that sort like it; -0 is 0, and NaN, equal to itself, is above everything
//! 30 bits   the distance, in units of 10^u, rounded down; u depends on the float (see `unit`)
//!  1 bit    whether there is more behind it
//! ```
//!
//! All integers and floats, and all decimals of up to 23 digits, are *exact*: nothing is behind the last unit,
//! and equal keys are equal numbers. A longer decimal may be inexact. Its key still lies on the right
//! side of every exact one, but two inexact numbers may share a key.

/// A number as a sortable key: keys sort as numbers do, and those that are exact are equal as numbers are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Number {
    float_bits: u64,
    /// Twice the distance, and one more if it is inexact; raised so that it is never negative.
    distance: u32,
}

/// How many bits of a key follow those of the float.
pub const DISTANCE_BITS: u32 = 31;

/// A distance is below this in magnitude, in units.
const MOST_UNITS: i64 = 1 << MOST_UNITS_BITS;
const MOST_UNITS_BITS: i32 = 29;

/// By the negative power of ten; the distances of integers are counted in 10^-5 to 10^-8.
const UNITS_IN_ONE: [i64; 9] = [1, 10, 100, 1000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000];

const NO_DISTANCE: u32 = 1 << (MOST_UNITS_BITS + 1);

impl Number {
    #[inline]
    pub fn from_i64(i: i64) -> Self {
        let nearest = i as f64;
        if i.unsigned_abs() <= 1 << f64::MANTISSA_DIGITS {
            return Self::from_f64(nearest);
        }
        let distance = (i as i128 - nearest as i128) as i64;
        Self::near(nearest, distance * UNITS_IN_ONE[-unit(nearest) as usize], false)
    }

    #[inline]
    pub fn from_f64(x: f64) -> Self {
        Self { float_bits: sortable(x), distance: NO_DISTANCE }
    }

    /// The number that lies this many units above the one that its nearest float stands for, or, if there is
    /// more, between that and the next unit.
    pub(super) fn near(float: f64, units: i64, and_more: bool) -> Self {
        debug_assert!((-MOST_UNITS..MOST_UNITS).contains(&units), "{units} units from {float}");
        let distance = ((units + MOST_UNITS) as u32) << 1 | and_more as u32;
        Self { float_bits: sortable(float), distance }
    }

    /// Whether no other number has this key.
    #[inline]
    pub fn is_exact(self) -> bool {
        self.distance & 1 == 0
    }

    /// The nearest float.
    pub fn nearest(self) -> f64 {
        let is_positive = self.float_bits >> 63 == 1;
        f64::from_bits(if is_positive { self.float_bits & !(1 << 63) } else { !self.float_bits })
    }

    /// The float, as bits that sort like it.
    #[inline]
    pub fn float_bits(self) -> u64 {
        self.float_bits
    }

    /// The whole key in one integer of 95 bits that sorts the same way.
    #[inline]
    pub fn key(self) -> u128 {
        (self.float_bits as u128) << DISTANCE_BITS | self.distance as u128
    }
}

/// The power of ten in which distances from a float are counted: the smallest for which all numbers that are
/// rounded to the float are fewer units away than a key can hold.
pub(super) fn unit(float: f64) -> i32 {
    let exponent = (float.to_bits() >> 52 & 0x7FF) as i32;
    // The gap between the float and the next is 2^this; that of subnormal numbers is the smallest.
    let gap = exponent.max(1) - 1075;
    floor_log10_of_power_of_two(gap - MOST_UNITS_BITS) + 1
}

/// Right for all exponents of floats.
fn floor_log10_of_power_of_two(exponent: i32) -> i32 {
    ((exponent as i64 * 1_262_611) >> 22) as i32
}

#[inline]
fn sortable(x: f64) -> u64 {
    let x = if x.is_nan() {
        f64::NAN.abs()
    } else if x == 0.0 {
        0.0
    } else {
        x
    };
    let bits = x.to_bits();
    if bits >> 63 == 1 { !bits } else { bits | 1 << 63 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_and_floats_compare_exactly() {
        let two_53 = 1i64 << 53;
        assert!(Number::from_i64(two_53 + 1) > Number::from_f64(two_53 as f64));
        assert!(Number::from_i64(two_53 - 1) < Number::from_f64(two_53 as f64));
        assert_eq!(Number::from_i64(7), Number::from_f64(7.0));
        assert!(Number::from_i64(i64::MAX) < Number::from_f64(2f64.powi(63)));
        assert_eq!(Number::from_i64(i64::MIN), Number::from_f64(-(2f64.powi(63))));
        assert!(Number::from_f64(f64::INFINITY) < Number::from_f64(f64::NAN));
        assert_eq!(Number::from_f64(f64::NAN), Number::from_f64(-f64::NAN));
        assert_eq!(Number::from_f64(-0.0), Number::from_i64(0));
        assert!(Number::from_f64(f64::NEG_INFINITY) < Number::from_i64(i64::MIN));
    }

    #[test]
    fn the_nearest_float_leads_back() {
        for x in [0.0, 0.1, -2.5, 1e300, 5e-324, f64::INFINITY, f64::NEG_INFINITY] {
            assert_eq!(Number::from_f64(x).nearest(), x);
        }
        assert!(Number::from_f64(f64::NAN).nearest().is_nan());
        assert_eq!(Number::from_i64(i64::MAX).nearest(), 2f64.powi(63));
    }

    #[test]
    fn units_are_as_small_as_keys_allow() {
        for exponent in -1074..=971 {
            let gap = 2f64.powi(exponent);
            let float = if exponent == -1074 { 5e-324 } else { gap * 2f64.powi(52) };
            if float.is_finite() && float > 0.0 {
                // In logarithms, which are exact enough except at powers of ten.
                let gap = exponent as f64 * 2f64.log10();
                let most = MOST_UNITS_BITS as f64 * 2f64.log10();
                let unit = unit(float) as f64;
                assert!(gap - unit < most + 1e-9 && gap - unit > most - 1.0 - 1e-9, "{float:e}: {unit}");
            }
        }
    }
}
