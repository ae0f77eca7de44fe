//! Decimal numbers with more digits than 64-bit integers and floats can hold.
//!
//! [`Value::decimal`] returns the simplest value of a decimal text: an integer, a float that represents exactly this
//! number (see [`number`](super::number)), or a [`Decimal`]. So no decimal equals an integer or a float, and two decimals
//! are equal if their digits are.

use std::cmp::Ordering;
use std::fmt::{self, Display, Formatter};

use super::Value;
use super::number::{Number, unit};

/// Digits that a number may have, without zeros before and behind them. Arrow's widest decimals have 76.
pub const MAX_DIGITS: usize = 100;

/// Numbers that are nearer to zero than ten to the power of this are refused.
const LEAST_POINT: i32 = -400;

/// An exact number that no 64-bit integer or float stands for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Decimal {
    number: Number,
    digits: Digits,
}

/// Why a text is not a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    NoNumber,
    /// Beyond every float.
    TooLarge,
    TooSmall,
    TooManyDigits,
}

impl Display for Refused {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Refused::NoNumber => f.write_str("it is not a number"),
            Refused::TooLarge => f.write_str("it is beyond every 64-bit float"),
            Refused::TooSmall => write!(f, "it is nearer to zero than 1e{LEAST_POINT}"),
            Refused::TooManyDigits => write!(f, "it has more than {MAX_DIGITS} digits"),
        }
    }
}

impl Value {
    /// The number that is written in a text, exactly: `12`, `-0.50`, `1.5e-7`.
    ///
    /// ```
    /// use tamis_core::event::Value;
    /// assert_eq!(Value::decimal("12"), Ok(Value::Int(12)));
    /// assert_eq!(Value::decimal("0.10"), Ok(Value::Float(0.1)));
    /// let exact = Value::decimal("12345678901234567.89").unwrap();
    /// assert!(matches!(exact, Value::Decimal(_)));
    /// assert!(exact.as_ref().compare(Value::decimal("12345678901234567.88").unwrap().as_ref()).unwrap().is_gt());
    /// ```
    pub fn decimal(text: &str) -> Result<Value, Refused> {
        let digits = Digits::parse(text).ok_or(Refused::NoNumber)?;
        let is_written_as_integer = !text.contains(['.', 'e', 'E']);
        digits.value(is_written_as_integer)
    }

    /// The number of a literal: the same, but the shortest text of a float, with an exponent, is that float.
    /// So whatever is printed reads back.
    pub fn number_literal(text: &str) -> Result<Value, Refused> {
        if text.contains(['e', 'E'])
            && let Ok(float) = text.parse::<f64>()
            && Digits::parse(text) == Some(Digits::shortest(float))
        {
            return Ok(Value::Float(float));
        }
        Value::decimal(text)
    }

    /// A number between two others, the first below the second. `None` if there is none with few enough digits.
    pub fn number_between(low: &Value, high: &Value) -> Option<Value> {
        let (low, high) = (Digits::of(low)?, Digits::of(high)?);
        // One digit more than the longer of them has, added to the lower one.
        let last = low.last_place().min(high.last_place()) - 1;
        let between = low.plus_one_at(last)?;
        between.value(false).ok()
    }
}

/// The text of a float that reads back as it, also as a literal: the number that it stands for, or the shortest.
pub fn float_text(float: f64) -> String {
    let usual = format!("{float:?}");
    let shortest = Digits::shortest(float);
    match float.is_finite() && Digits::parse(&usual).as_ref() != Some(&shortest) {
        true => shortest.plain(),
        false => usual,
    }
}

impl Decimal {
    pub fn number(&self) -> Number {
        self.number
    }

    /// The order of two decimals, by all their digits.
    pub fn compare(&self, other: &Self) -> Ordering {
        self.number.cmp(&other.number).then_with(|| self.digits.compare(&other.digits))
    }

    /// The text without an exponent.
    pub fn plain(&self) -> String {
        self.digits.plain()
    }

    /// How many digits there are, zeros behind the last one or between the point and the first one included.
    pub fn precision(&self) -> usize {
        let Digits { point, digits, .. } = &self.digits;
        match *point {
            ..=0 => digits.len() + point.unsigned_abs() as usize,
            point => digits.len().max(point as usize),
        }
    }
}

/// The text that [`Value::decimal`] reads back.
impl Display for Decimal {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Digits { is_negative, point, digits } = &self.digits;
        if (-10..=40).contains(point) {
            return f.write_str(&self.digits.plain());
        }
        let (first, rest) = digits.split_at(1);
        let (sign, dot) = (if *is_negative { "-" } else { "" }, if rest.is_empty() { "" } else { "." });
        write!(f, "{sign}{first}{dot}{rest}e{}", point - 1)
    }
}

/// Any finite number: ±0.digits × 10^point, without zeros before and behind the digits; zero has none.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Digits {
    is_negative: bool,
    point: i32,
    digits: Box<str>,
}

impl Digits {
    fn parse(text: &str) -> Option<Self> {
        let (is_negative, text) = match text.as_bytes().first()? {
            b'-' => (true, &text[1..]),
            b'+' => (false, &text[1..]),
            _ => (false, text),
        };
        let (mantissa, exponent) = match text.find(['e', 'E']) {
            Some(at) => (&text[..at], exponent(&text[at + 1..])?),
            None => (text, 0),
        };
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let is_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
        if whole.len() + fraction.len() == 0 || !is_digits(whole) || !is_digits(fraction) {
            return None;
        }
        let all = [whole, fraction].concat();
        let significant = all.trim_start_matches('0');
        let leading = all.len() - significant.len();
        let point = (whole.len() as i64 - leading as i64).saturating_add(exponent);
        let point = point.clamp(i32::MIN as i64 / 2, i32::MAX as i64 / 2) as i32;
        Some(Self::new(is_negative, point, significant))
    }

    fn new(is_negative: bool, point: i32, digits: &str) -> Self {
        match digits.trim_end_matches('0') {
            "" => Self { is_negative: false, point: 0, digits: "".into() },
            digits => Self { is_negative, point, digits: digits.into() },
        }
    }

    /// Those of what a number stands for; none of one that is not finite.
    fn of(value: &Value) -> Option<Self> {
        match value {
            Value::Int(i) => Self::parse(&i.to_string()),
            Value::Float(x) => x.is_finite().then(|| Self::of_float(*x)),
            Value::Decimal(decimal) => Some(decimal.digits.clone()),
            _ => None,
        }
    }

    /// What a finite float stands for.
    fn of_float(float: f64) -> Self {
        if float.fract() == 0.0 && float.abs() <= (1u64 << 63) as f64 {
            return Self::parse(&(float as i128).to_string()).expect("an integer is a number");
        }
        Self::shortest(float)
    }

    /// The shortest that read back as a finite float, and of those the nearest; if two are equally near, the one
    /// whose last digit is even, as most languages write it. None for floats that are not finite.
    fn shortest(float: f64) -> Self {
        let Some(shortest) = Self::parse(&format!("{float:e}")) else { return Self::new(false, 0, "") };
        // Of two that are equally near, this has the upper one; rounding to this many digits takes the even one.
        let rounded = format!("{float:.*e}", shortest.digits.len().saturating_sub(1));
        match rounded.parse() == Ok(float) {
            true => Self::parse(&rounded).expect("it was just read"),
            false => shortest,
        }
    }

    /// The simplest value that is this number.
    fn value(self, prefers_integer: bool) -> Result<Value, Refused> {
        /// Two different decimals with no more digits are never rounded to the same float, ...
        const ALWAYS_APART: usize = 15;
        /// ... if these are near enough to one.
        const NORMAL: std::ops::RangeInclusive<i32> = -290..=290;

        if self.digits.len() > MAX_DIGITS {
            return Err(Refused::TooManyDigits);
        }
        if self.point <= LEAST_POINT {
            return Err(Refused::TooSmall);
        }
        if prefers_integer && let Some(integer) = self.integer() {
            return Ok(Value::Int(integer));
        }
        let sign = if self.is_negative { "-" } else { "" };
        let nearest: f64 =
            format!("{sign}0.{}0e{}", self.digits, self.point).parse().expect("it is a number");
        if nearest.is_infinite() {
            return Err(Refused::TooLarge);
        }
        let is_apart = self.digits.len() <= ALWAYS_APART && NORMAL.contains(&self.point);
        // Where floats stand for themselves, they are not always what is written.
        let is_whole = self.last_place() >= 0;
        if is_apart && !is_whole {
            return Ok(Value::Float(nearest));
        }
        let stood_for = Self::of_float(nearest);
        if stood_for == self {
            return Ok(Value::Float(nearest));
        }
        if let Some(integer) = self.integer() {
            return Ok(Value::Int(integer));
        }
        let number = self.distance(nearest, &stood_for);
        Ok(Value::Decimal(Box::new(Decimal { number, digits: self })))
    }

    /// The key, given the nearest float and what that stands for.
    fn distance(&self, nearest: f64, stood_for: &Digits) -> Number {
        let unit = unit(nearest);
        let (units, and_more) = self.in_units(unit);
        let (origin, _) = stood_for.in_units(unit);
        Number::near(nearest, units.wrapping_sub(origin) as i64, and_more)
    }

    /// How many times ten to this power, rounded down, and whether something is left. Counted modulo 2^128: the
    /// difference between numbers that lie near one another is right all the same.
    fn in_units(&self, power: i32) -> (i128, bool) {
        let places = usize::try_from(self.point - power).unwrap_or(0);
        let kept = &self.digits[..places.min(self.digits.len())];
        let zeros = (places - kept.len()) as u32;
        let digits = kept.bytes().map(|digit| (digit - b'0') as i128);
        let whole = digits
            .fold(0i128, |sum, digit| sum.wrapping_mul(10).wrapping_add(digit))
            .wrapping_mul(10i128.wrapping_pow(zeros));
        let and_more = kept.len() < self.digits.len();
        (if self.is_negative { whole.wrapping_neg().wrapping_sub(and_more as i128) } else { whole }, and_more)
    }

    /// The place of the last digit: 0 for ones, -1 for tenths.
    fn last_place(&self) -> i32 {
        self.point - self.digits.len() as i32
    }

    fn integer(&self) -> Option<i64> {
        let is_small = self.last_place() >= 0 && self.point <= 19;
        if is_small { i64::try_from(self.in_units(0).0).ok() } else { None }
    }

    fn compare(&self, other: &Self) -> Ordering {
        let sign = |digits: &Self| match digits.digits.is_empty() {
            true => 0,
            false if digits.is_negative => -1,
            false => 1,
        };
        let magnitudes = || self.point.cmp(&other.point).then_with(|| self.digits.cmp(&other.digits));
        sign(self).cmp(&sign(other)).then_with(|| match sign(self) {
            -1 => magnitudes().reverse(),
            _ => magnitudes(),
        })
    }

    /// Plus ten to the power of a place below the last digit; `None` if that makes more digits than allowed.
    fn plus_one_at(&self, place: i32) -> Option<Self> {
        if self.digits.is_empty() {
            return Some(Self::new(false, place + 1, "1"));
        }
        let zeros = usize::try_from(self.last_place() - place - 1).ok()?;
        if self.digits.len() + zeros + 1 > MAX_DIGITS {
            return None;
        }
        let zeros_and_one = format!("{}{}1", self.digits, "0".repeat(zeros));
        if !self.is_negative {
            return Some(Self::new(false, self.point, &zeros_and_one));
        }
        // Below zero: one less in magnitude, so that the last digit is lowered and nines follow.
        let (head, last) = self.digits.split_at(self.digits.len() - 1);
        let lowered = (last.as_bytes()[0] - 1) as char;
        let digits = format!("{head}{lowered}{}", "9".repeat(zeros + 1));
        let significant = digits.trim_start_matches('0');
        let lost = (digits.len() - significant.len()) as i32;
        Some(Self::new(true, self.point - lost, significant))
    }

    /// Without an exponent.
    fn plain(&self) -> String {
        let Self { is_negative, point, digits } = self;
        let sign = if *is_negative { "-" } else { "" };
        match usize::try_from(*point) {
            _ if digits.is_empty() => "0".into(),
            Err(_) | Ok(0) => format!("{sign}0.{}{digits}", "0".repeat(point.unsigned_abs() as usize)),
            Ok(whole) if whole >= digits.len() => {
                format!("{sign}{digits}{}", "0".repeat(whole - digits.len()))
            }
            Ok(whole) => format!("{sign}{}.{}", &digits[..whole], &digits[whole..]),
        }
    }
}

/// A whole number with a sign; what is larger than any sensible exponent is as large as that.
fn exponent(text: &str) -> Option<i64> {
    let (is_negative, digits) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let digits = digits.trim_start_matches('0');
    let magnitude = if digits.len() > 9 { i32::MAX as i64 / 2 } else { digits.parse().unwrap_or(0) };
    Some(if is_negative { -magnitude } else { magnitude })
}

#[cfg(test)]
#[allow(clippy::excessive_precision)] // digits beyond the double are what these tests are about
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn value(text: &str) -> Value {
        Value::decimal(text).unwrap()
    }

    fn compare(a: &Value, b: &Value) -> Ordering {
        a.as_ref().compare(b.as_ref()).unwrap()
    }

    #[test]
    fn the_simplest_value_of_a_text() {
        for (text, expected) in [
            ("12", Value::Int(12)),
            ("-0", Value::Int(0)),
            ("9223372036854775807", Value::Int(i64::MAX)),
            ("-9223372036854775808", Value::Int(i64::MIN)),
            ("9223372036854775808", Value::Float(2f64.powi(63))),
            ("0.10", Value::Float(0.1)),
            ("-12.00", Value::Float(-12.0)),
            ("1e23", Value::Float(1e23)),
            ("100000000000000000000000", Value::Float(1e23)),
            ("1E-7", Value::Float(1e-7)),
            ("5e-324", Value::Float(5e-324)),
            ("0.0000", Value::Float(0.0)),
            ("72057594037927940.00", Value::Int(72057594037927940)),
            ("72057594037927936.00", Value::Float(2f64.powi(56))),
        ] {
            assert_eq!(Value::decimal(text), Ok(expected), "{text}");
        }
        for text in [
            "0.1000000000000000055511151231257827",
            "12345678901234567.89",
            "900719925474099.21",
            "9223372036854775808.5",
            "12345678901234567890",
            "4e-324",
            "1e-400",
        ] {
            assert!(matches!(value(text), Value::Decimal(_)), "{text}");
        }
        for (text, expected) in [
            ("", Refused::NoNumber),
            (".", Refused::NoNumber),
            ("1e", Refused::NoNumber),
            ("1e+", Refused::NoNumber),
            ("--1", Refused::NoNumber),
            ("1,5", Refused::NoNumber),
            ("NaN", Refused::NoNumber),
            ("1e309", Refused::TooLarge),
            ("-1e99999999999999999999", Refused::TooLarge),
            ("1e-401", Refused::TooSmall),
            ("1e-99999999999999999999", Refused::TooSmall),
            (&"3".repeat(101), Refused::TooManyDigits),
        ] {
            assert_eq!(Value::decimal(text), Err(expected), "{text}");
        }
        assert!(Value::decimal(&format!("0.{}{}", "0".repeat(50), "3".repeat(100))).is_ok());
    }

    #[test]
    fn floats_stand_for_what_is_written() {
        let tenth = Value::Float(0.1);
        assert_eq!(compare(&value("0.1000"), &tenth), Ordering::Equal);
        assert_eq!(compare(&value("0.1000000000000000055511151231257827"), &tenth), Ordering::Greater);
        assert_eq!(compare(&value("0.09999999999999999999"), &tenth), Ordering::Less);
        assert_eq!(compare(&value("-0.09999999999999999999"), &Value::Float(-0.1)), Ordering::Greater);
        // Up to 2^63 a whole float is exactly itself, as it must be among integers.
        let two_60 = Value::Float(2f64.powi(60));
        assert_eq!(compare(&value("1152921504606846976"), &two_60), Ordering::Equal);
        assert_eq!(compare(&value("1152921504606847000.0"), &two_60), Ordering::Greater);
        assert_eq!(compare(&value("1152921504606846975.9"), &two_60), Ordering::Less);
    }

    #[test]
    fn printed_literals_read_back() {
        for text in
            ["0.1000000000000000055511151231257827", "12345678901234567890", "1.2345678901234567890123e-300"]
        {
            assert_eq!(Value::number_literal(text).unwrap(), value(text));
        }
        // The last ones lie in the middle between two shortest texts.
        for float in
            [2f64.powi(60), 1e23, -0.1, 900719925474099.25, 140737488355328.125, -1125899906842624.75]
        {
            assert_eq!(Value::number_literal(&float_text(float)), Ok(Value::Float(float)), "{float}");
        }
        assert_eq!(float_text(900719925474099.25), "900719925474099.2");
        assert_eq!(float_text(900719925474099.75), "900719925474099.8");
        assert_eq!((float_text(5.0), float_text(f64::NAN)), ("5.0".into(), "NaN".into()));
        assert_eq!(Value::number_literal("72057594037927940.0"), Ok(Value::Int(72057594037927940)));
    }

    /// Numbers that are near one another, and near floats and integers.
    fn number() -> impl Strategy<Value = Value> {
        let near = prop_oneof![
            Just(0.1f64),
            Just(9007199254740993.0),
            Just(2f64.powi(60)),
            Just(1e23),
            Just(5e-324),
            Just(123.456),
            Just(900719925474099.25),
            Just(140737488355328.125),
            Just(1e15),
            any::<i16>().prop_map(|i| i as f64 / 100.0),
            any::<f64>().prop_filter("not too large", |x| x.abs() < 1e300),
        ];
        let steps = -2i64..=2;
        (near, any::<bool>(), steps, -4i64..=4, 0..60usize, 0..5u8).prop_map(
            |(float, negative, step, digit, zeros, kind)| {
                let mut float = if negative { -float } else { float };
                for _ in 0..step.abs() {
                    float = if step > 0 { float.next_up() } else { float.next_down() };
                }
                let exact = Digits::of_float(float);
                match kind {
                    0 => Value::Float(float),
                    1 => Value::Int((float as i64).saturating_add(digit)),
                    _ if digit == 0 => exact.value(false).unwrap(),
                    // A few units somewhere behind the last digit.
                    _ => {
                        let digits = format!("{}{}{}", exact.digits, "0".repeat(zeros), digit.abs());
                        let point = if exact.digits.is_empty() { -3 } else { exact.point };
                        Digits::new(exact.is_negative, point, digits.trim_start_matches('0'))
                            .value(false)
                            .unwrap()
                    }
                }
            },
        )
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(5000))]
        #[test]
        fn numbers_compare_by_the_values_they_stand_for(a in number(), b in number()) {
            let expected = Digits::of(&a).unwrap().compare(&Digits::of(&b).unwrap());
            prop_assert_eq!(compare(&a, &b), expected, "{:?} and {:?}", a, b);
            let keys = [&a, &b].map(|value| value.as_ref().number().unwrap());
            if keys[0].is_exact() || keys[1].is_exact() {
                prop_assert_eq!(keys[0].cmp(&keys[1]), expected, "{:?} and {:?}", a, b);
            }
        }

        #[test]
        fn up_to_23_digits_are_exact(digits in "[1-9][0-9]{0,22}", point in -280..290i32, negative in any::<bool>()) {
            let value = Digits::new(negative, point, &digits).value(false).unwrap();
            prop_assert!(value.as_ref().number().unwrap().is_exact());
        }

        #[test]
        fn texts_read_back(a in number()) {
            if let Value::Decimal(decimal) = &a {
                prop_assert_eq!(&Value::decimal(&decimal.to_string()).unwrap(), &a);
                prop_assert_eq!(&Value::number_literal(&decimal.to_string()).unwrap(), &a);
                prop_assert_eq!(&Value::decimal(&decimal.plain()).unwrap(), &a);
            }
        }

        #[test]
        fn there_is_a_number_between_two(a in number(), b in number()) {
            let (low, high) = match compare(&a, &b) {
                Ordering::Less => (a, b),
                Ordering::Greater => (b, a),
                Ordering::Equal => return Ok(()),
            };
            if let Some(between) = Value::number_between(&low, &high) {
                prop_assert!(compare(&low, &between).is_lt() && compare(&between, &high).is_lt());
            }
        }
    }
}
