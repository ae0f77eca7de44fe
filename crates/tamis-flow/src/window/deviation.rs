//! The standard deviation of numbers that come and go, from their exact sum and the exact sum of their squares.
//!
//! n Σx² − (Σx)² is computed exactly and rounded once, so that no precision is lost where leading digits
//! cancel, as for large numbers that are close together. The squares of numbers above 2^480 would overflow,
//! and those of numbers below 2^-480 would lose digits; both are held separately, scaled.

use tamis_core::event::Value;

use super::exact_sum::{ExactSum, power_of_two};

const LARGE: f64 = power_of_two(480);
const SMALL: f64 = power_of_two(-480);
/// Where the squares of all other numbers add up to less, everything is scaled up.
const SMALL_SQUARES: f64 = power_of_two(-800);
const DOWN: f64 = power_of_two(-600);
const UP: f64 = power_of_two(600);

#[derive(Clone, Debug, Default)]
pub(crate) struct Moments {
    numbers: u64,
    sum: ExactSum,
    squares: ExactSum,
    large: u64,
    /// Of the numbers above [`LARGE`], each scaled by 2^-600.
    large_squares: ExactSum,
    /// Of the numbers below [`SMALL`], each scaled by 2^600.
    small_squares: ExactSum,
}

impl Moments {
    pub fn put(&mut self, value: &Value, more: i64) {
        let Some(x) = value.as_ref().nearest_float() else { return };
        let put = |sum: &mut ExactSum, x| if more > 0 { sum.add(x) } else { sum.subtract(x) };
        self.numbers = self.numbers.saturating_add_signed(more);
        put(&mut self.sum, x);
        if !x.is_finite() {
            return;
        }
        let (squares, x) = if x.abs() >= LARGE {
            self.large = self.large.saturating_add_signed(more);
            (&mut self.large_squares, x * DOWN)
        } else if x.abs() < SMALL {
            (&mut self.small_squares, x * UP)
        } else {
            (&mut self.squares, x)
        };
        let (square, rest) = product(x, x);
        put(squares, square);
        put(squares, rest);
    }

    /// The standard deviation of a sample. With an infinite number there is none: NaN.
    pub fn deviation(&self) -> Option<Value> {
        if self.numbers < 2 {
            return None;
        }
        if !self.sum.is_finite() {
            return Some(Value::Float(f64::NAN));
        }
        let (scale, back, apart, scale_apart) = if self.large > 0 {
            (DOWN, UP, &self.large_squares, 1.0) // small numbers are nothing beside these
        } else if self.squares.value() < SMALL_SQUARES {
            (UP, DOWN, &self.small_squares, 1.0)
        } else {
            (1.0, 1.0, &self.small_squares, DOWN)
        };
        let n = self.numbers as f64;
        let mut difference = ExactSum::default();
        let mut add_product = |x: f64, y: f64| {
            let (high, low) = product(x, y);
            difference.add(high);
            difference.add(low);
        };
        // Scaled twice, one after the other: the square of the scale is no float.
        for (squares, scale) in [(&self.squares, scale), (apart, scale_apart)] {
            squares.scaled_parts(scale).for_each(|part| add_product(n, part * scale));
        }
        let sum: Vec<f64> = self.sum.scaled_parts(scale).collect();
        sum.iter().for_each(|x| sum.iter().for_each(|y| add_product(-x, *y)));
        Some(Value::Float((difference.value().max(0.0) / n / (n - 1.0)).sqrt() * back))
    }
}

/// A product as a float and what is missing of it.
fn product(x: f64, y: f64) -> (f64, f64) {
    let high = x * y;
    (high, x.mul_add(y, -high))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn deviation(values: &[f64]) -> f64 {
        let mut moments = Moments::default();
        // What comes and goes leaves no trace.
        for gone in [1e300, 3.0, f64::INFINITY] {
            moments.put(&Value::Float(gone), 1);
        }
        values.iter().for_each(|x| moments.put(&Value::Float(*x), 1));
        for gone in [1e300, 3.0, f64::INFINITY] {
            moments.put(&Value::Float(gone), -1);
        }
        match moments.deviation() {
            Some(Value::Float(found)) => found,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn large_numbers_that_lie_close_together_keep_their_digits() {
        assert_eq!(deviation(&[1e16, 1e16 + 2.0]), 2f64.sqrt());
        assert_eq!(deviation(&[1e8, 1e8 + 1.0, 1e8 + 2.0]), 1.0);
        assert_eq!(deviation(&[0.1, 0.1, 0.1]), 0.0);
    }

    #[test]
    fn squares_may_be_beyond_the_range_of_floats() {
        let close = |found: f64, expected: f64| assert!((found / expected - 1.0).abs() < 1e-15, "{found}");
        close(deviation(&[1e200, 2e200]), 2f64.sqrt() / 2.0 * 1e200);
        close(deviation(&[1e200, 2e200, 1.0, -5.0]), 9.574271077563381e199);
        close(deviation(&[1e308, -1e308]), 1e308 * 2f64.sqrt());
        assert_eq!(deviation(&[1.7e308, -1.7e308]), f64::INFINITY);
        close(deviation(&[1e-150, 3e-150]), 2f64.sqrt() * 1e-150);
        close(deviation(&[1e-170, 3e-170, 5e-170]), 2e-170);
        close(deviation(&[1e-300, 3e-300]), 2f64.sqrt() * 1e-300);
        assert!((deviation(&[1e-320, 3e-320]) - 2f64.sqrt() * 1e-320).abs() <= f64::from_bits(1));
        close(deviation(&[power_of_two(-481), power_of_two(-479)]), 1.5 * power_of_two(-480) / 2f64.sqrt());
        close(deviation(&[1e-100, 3e-170]), 1e-100 / 2f64.sqrt());
        assert_eq!(deviation(&[3e-200, 3e-200]), 0.0);
        assert!(deviation(&[1.0, f64::INFINITY]).is_nan());
        assert!(deviation(&[1.0, f64::NAN]).is_nan());
    }
}
