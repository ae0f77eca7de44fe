//! The exact sum of floats that come and go, rounded once when it is read.
//!
//! The sum is held as floats that do not overlap (Shewchuk 1997): adding one is exact, and so is taking it
//! back by adding its negative. So a sum depends on what is in the window, not on how it got there. Values
//! above 2^960 are held separately, scaled by 2^-60, so that no partial sum overflows.

const HUGE: f64 = power_of_two(960);
const DOWN: f64 = power_of_two(-60);
const UP: f64 = power_of_two(60);

pub(super) const fn power_of_two(exponent: i64) -> f64 {
    f64::from_bits(((exponent + 1023) as u64) << 52)
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ExactSum {
    parts: Vec<f64>,
    huge: Vec<f64>,
    not_a_number: u32,
    infinite: u32,
    minus_infinite: u32,
}

impl ExactSum {
    pub fn add(&mut self, x: f64) {
        self.put(x, 1);
    }

    /// Takes back one value that was added.
    pub fn subtract(&mut self, x: f64) {
        self.put(-x, -1);
    }

    fn put(&mut self, x: f64, more: i32) {
        if x.is_finite() {
            if x.abs() < HUGE {
                grow(&mut self.parts, x)
            } else {
                grow(&mut self.huge, x * DOWN)
            }
            return;
        }
        let x = if more < 0 { -x } else { x };
        let count = match x {
            _ if x.is_nan() => &mut self.not_a_number,
            _ if x > 0.0 => &mut self.infinite,
            _ => &mut self.minus_infinite,
        };
        *count = count.saturating_add_signed(more);
    }

    /// The sum, rounded to the nearest float, ties to even.
    pub fn value(&self) -> f64 {
        match (self.not_a_number, self.infinite, self.minus_infinite) {
            (0, 0, 0) => {}
            (0, _, 0) => return f64::INFINITY,
            (0, 0, _) => return f64::NEG_INFINITY,
            _ => return f64::NAN,
        }
        if self.huge.is_empty() {
            return rounded(&self.parts);
        }
        let mut scaled = self.huge.clone();
        for part in &self.parts {
            let down = part * DOWN;
            // What is lost below the smallest float can only decide a tie: its sign is enough.
            grow(&mut scaled, if down == 0.0 { f64::from_bits(1).copysign(*part) } else { down });
        }
        rounded(&scaled) * UP
    }

    /// Floats that do not overlap and whose sum is this one times a power of two: what is finite of it.
    pub fn scaled_parts(&self, scale: f64) -> impl Iterator<Item = f64> {
        let parts = self.parts.iter().map(move |part| part * scale);
        parts.chain(self.huge.iter().map(move |part| part * scale * UP))
    }

    pub fn is_finite(&self) -> bool {
        (self.not_a_number, self.infinite, self.minus_infinite) == (0, 0, 0)
    }
}

/// Adds to floats that do not overlap, smallest first.
fn grow(parts: &mut Vec<f64>, mut x: f64) {
    let mut kept = 0;
    for at in 0..parts.len() {
        let mut y = parts[at];
        if x.abs() < y.abs() {
            std::mem::swap(&mut x, &mut y);
        }
        let high = x + y;
        let low = y - (high - x);
        if low != 0.0 {
            parts[kept] = low;
            kept += 1;
        }
        x = high;
    }
    parts.truncate(kept);
    if x != 0.0 {
        parts.push(x);
    }
}

/// The nearest float to the sum of floats that do not overlap, smallest first.
fn rounded(parts: &[f64]) -> f64 {
    let Some((&last, rest)) = parts.split_last() else { return 0.0 };
    let (mut high, mut low) = (last, 0.0);
    let mut left = rest.len();
    while left > 0 {
        left -= 1;
        let (x, y) = (high, rest[left]);
        high = x + y;
        low = y - (high - x);
        if low != 0.0 {
            break;
        }
    }
    // Half way between two floats, what is left over decides.
    if left > 0 && (low < 0.0) == (rest[left - 1] < 0.0) {
        let twice = low * 2.0;
        let up = high + twice;
        if twice == up - high {
            high = up;
        }
    }
    high
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn sum(values: &[f64]) -> f64 {
        let mut sum = ExactSum::default();
        values.iter().for_each(|x| sum.add(*x));
        sum.value()
    }

    #[test]
    fn a_sum_is_rounded_once() {
        assert_eq!(sum(&[0.1; 10]), 1.0);
        assert_eq!(sum(&[1e100, 1.0, -1e100]), 1.0);
        assert_eq!(sum(&[f64::MAX, f64::MAX, -f64::MAX]), f64::MAX);
        assert_eq!(sum(&[f64::MAX, f64::MAX]), f64::INFINITY);
        assert_eq!(sum(&[1.0, power_of_two(-53), f64::from_bits(1)]), 1.0 + f64::EPSILON);
        assert_eq!(sum(&[]), 0.0);
    }

    #[test]
    fn what_is_not_finite_leaves_without_a_trace() {
        let mut sum = ExactSum::default();
        sum.add(2.5);
        sum.add(f64::INFINITY);
        assert_eq!(sum.value(), f64::INFINITY);
        sum.add(f64::NEG_INFINITY);
        assert!(sum.value().is_nan());
        sum.subtract(f64::INFINITY);
        sum.subtract(f64::NEG_INFINITY);
        assert_eq!(sum.value(), 2.5);
    }

    proptest! {
        #[test]
        fn what_left_the_window_leaves_no_trace(kept in prop::collection::vec(any::<f64>(), 0..20), gone in prop::collection::vec(any::<f64>(), 0..20)) {
            let finite = |values: Vec<f64>| values.into_iter().filter(|x| x.is_finite()).collect::<Vec<_>>();
            let (kept, gone) = (finite(kept), finite(gone));
            let mut moved = ExactSum::default();
            gone.iter().for_each(|x| moved.add(*x));
            kept.iter().for_each(|x| moved.add(*x));
            gone.iter().for_each(|x| moved.subtract(*x));
            prop_assert_eq!(moved.value().to_bits(), sum(&kept).to_bits());
        }
    }
}
