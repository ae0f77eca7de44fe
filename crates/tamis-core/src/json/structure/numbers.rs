//! Whether the scalars of a text are numbers. Whatever does not begin as a number does is left to the grammar.
//!
//! *Where a run ends*: adding the start of a run to the run leaves a bit behind its end. That is how a fraction finds its last
//! digit, and a literal its end. Most numbers have no exponent and most blocks no literal; what only these need is looked at
//! only where there is one.

use super::{WIDTH, shifted};
use crate::json::simd::Lanes;

/// What a block leaves to the next: the bit that was shifted out of a word, or carried.
#[derive(Default)]
struct Numbers {
    digit: u64,
    dot: u64,
    sign: u64,
    first_zero: u64,
    fraction: u64,
    others: Others,
}

/// The same, of what most numbers do not have.
#[derive(Default)]
struct Others {
    literal: u64,
    exponent: u64,
    exponent_sign: u64,
    power: u64,
    /// Whether one of these is not zero.
    any: u64,
}

/// Whether what begins as a number is one. By block, `scalars` says where there are any.
#[inline(always)]
pub(super) fn are_sound<L: Lanes>(lanes: L, text: &[u8], scalars: &[u64]) -> bool {
    let (whole, tail) = text.as_chunks::<WIDTH>();
    let mut numbers = Numbers::default();
    let (mut before, mut wrong) = (0, 0);
    for (number, &scalar) in scalars.iter().enumerate() {
        let after = shifted(scalar, &mut before);
        if scalar | after != 0 {
            let block = match whole.get(number) {
                Some(bytes) => lanes.load(bytes),
                None => lanes.load_tail(tail),
            };
            wrong |= numbers.wrong(lanes, block, scalar, scalar & !after);
        }
    }
    wrong == 0
}

impl Numbers {
    /// What cannot stand where it stands in the scalars of a block, of which `starts` are the first bytes.
    #[inline(always)]
    fn wrong<L: Lanes>(&mut self, lanes: L, block: L::Block, scalar: u64, starts: u64) -> u64 {
        let mut digit = lanes.digits(block) & scalar;
        let mut dot = lanes.equal(block, b'.') & scalar;
        let sign = lanes.equal(block, b'-') & starts;
        let other = scalar & !(digit | dot | sign);
        let mut wrong = 0;
        let after_digit = shifted(digit, &mut self.digit);
        if other | self.others.any != 0 {
            let Others { literal, exponent, exponent_sign, power, any } = &mut self.others;
            let literal_starts = starts & other;
            // Runs that have no such start are numbers.
            let number = scalar & run_ends_or_others(literal_starts, scalar, literal);
            digit &= number;
            dot &= number;
            let other = other & number;
            let e = lanes.equal_with_bit_5(block, b'e') & other;
            let power_sign = (lanes.equal(block, b'-') | lanes.equal(block, b'+')) & other;
            let after_e = shifted(e, exponent);
            let after_sign = shifted(power_sign, exponent_sign);
            let power_ends = run_ends((after_e | after_sign) & digit, digit, power);
            *any = *literal | *exponent | *exponent_sign | *power;
            wrong |= other & !(e | power_sign)
                | e & !after_digit
                | power_sign & !after_e
                | after_e & !(digit | power_sign)
                | after_sign & !digit
                | power_ends & (dot | e);
        }
        let after_dot = shifted(dot, &mut self.dot);
        let after_sign = shifted(sign, &mut self.sign);
        let first_zero = lanes.equal(block, b'0') & (starts | after_sign);
        let after_first_zero = shifted(first_zero, &mut self.first_zero);
        let fraction_ends = run_ends(after_dot & digit, digit, &mut self.fraction);
        wrong
            | (after_sign | after_dot) & !digit
            | dot & (!after_digit | fraction_ends)
            | after_first_zero & digit
    }
}

/// The places behind those runs that have a start.
#[inline(always)]
fn run_ends(starts: u64, runs: u64, carry: &mut u64) -> u64 {
    run_ends_or_others(starts, runs, carry) & !runs
}

/// The same, and all runs that have no start.
#[inline(always)]
fn run_ends_or_others(starts: u64, runs: u64, carry: &mut u64) -> u64 {
    let (sum, overflow) = runs.overflowing_add(starts | *carry);
    *carry = overflow as u64;
    sum
}
