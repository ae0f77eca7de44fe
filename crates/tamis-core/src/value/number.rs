//! One totally ordered key for 64-bit integers and floats, exact for both.
//!
//! An integer `i` becomes `(f, i - f)` where `f` is the nearest float: rounding never reverses an
//! order, so comparing floats first and remainders second compares the exact values. A float is
//! `(f, 0)`. The float part is stored as bits that sort like the number, with -0 folded into 0 and
//! NaN, equal to itself, above everything (Spark's rule).

/// A number as a sortable key: equal keys are equal numbers, and keys sort as numbers do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Number {
    float_bits: u64,
    remainder: i16,
}

impl Number {
    #[inline]
    pub fn from_i64(i: i64) -> Self {
        let nearest = i as f64;
        let is_exact = i.unsigned_abs() <= 1 << f64::MANTISSA_DIGITS;
        let remainder = if is_exact { 0 } else { (i as i128 - nearest as i128) as i16 };
        Self { float_bits: sortable(nearest), remainder }
    }

    #[inline]
    pub fn from_f64(x: f64) -> Self {
        Self { float_bits: sortable(x), remainder: 0 }
    }

    /// The whole key in one integer that sorts the same way; its upper bound is below 2^81.
    pub fn key(self) -> u128 {
        ((self.float_bits as u128) << 16) | (self.remainder as i32 + 32768) as u128
    }
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
}
