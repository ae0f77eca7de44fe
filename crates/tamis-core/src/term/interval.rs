//! Durations: `INTERVAL 3 DAYS`, and the difference of two timestamps.
//!
//! As in Spark, an interval counts months, or a fixed length of microseconds, never both: a month has no fixed length.

use super::{Argument, Function, Term};
use crate::error::ExpressionError;
use crate::value::{Kind, Value};

/// Units of months, the largest first.
pub(super) const MONTHS: [(&str, i64); 2] = [("YEAR", 12), ("MONTH", 1)];
/// Units of microseconds, the largest first.
pub(super) const FIXED: [(&str, i64); 6] = [
    ("DAY", 86_400_000_000),
    ("HOUR", 3_600_000_000),
    ("MINUTE", 60_000_000),
    ("SECOND", 1_000_000),
    ("MILLISECOND", 1000),
    ("MICROSECOND", 1),
];
const WEEK: (&str, i64) = ("WEEK", 7 * FIXED[0].1);

/// How long an interval is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Length {
    Months(i64),
    Micros(i64),
}

fn size(name: &str, units: &[(&str, i64)]) -> Option<i64> {
    let is_it = |unit: &str| {
        let (word, end) = (name.get(..unit.len()), name.get(unit.len()..));
        word.is_some_and(|word| word.eq_ignore_ascii_case(unit))
            && end.is_some_and(|end| end.is_empty() || end.eq_ignore_ascii_case("s"))
    };
    units.iter().find(|(unit, _)| is_it(unit)).map(|(_, size)| *size)
}

/// The microseconds of a unit of fixed length: `hour`, `HOURS`.
pub fn fixed_unit(name: &str) -> Option<i64> {
    size(name, &FIXED).or_else(|| size(name, &[WEEK]))
}

/// Whether this is the name of a unit.
pub fn is_unit(name: &str) -> bool {
    fixed_unit(name).is_some() || size(name, &MONTHS).is_some()
}

impl Length {
    /// So many of a unit, the number as it is written; only seconds may have a fraction.
    ///
    /// ```
    /// use tamis_core::term::interval::Length;
    /// assert_eq!(Length::parse("-2", "weeks").unwrap(), Length::Micros(-14 * 86_400_000_000));
    /// assert_eq!(Length::parse("1.5", "SECOND").unwrap(), Length::Micros(1_500_000));
    /// assert!(Length::parse("1.5", "DAY").is_err());
    /// ```
    pub fn parse(number: &str, unit: &str) -> Result<Self, ExpressionError> {
        let wrong = || {
            ExpressionError::new(format!("{number:?} is not a number of {}", unit.to_ascii_lowercase()))
                .with_hint("write a whole number of 64 bits: INTERVAL 3 DAYS; seconds may have six decimals")
        };
        let digits = number.strip_prefix(['+', '-']).unwrap_or(number);
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
        let is_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        if whole.is_empty() || !is_digits(whole) || !is_digits(fraction) || fraction.len() > 6 {
            return Err(wrong());
        }
        let sign = if number.starts_with('-') { -1 } else { 1 };
        let whole = whole.parse::<i64>().map_err(|_| wrong())?;
        let count =
            |size: i64| whole.checked_mul(size).and_then(|count| count.checked_mul(sign)).ok_or_else(wrong);
        match (size(unit, &MONTHS), fixed_unit(unit)) {
            (Some(months), _) if fraction.is_empty() => count(months).map(Self::Months),
            (_, Some(micros)) if fraction.is_empty() => count(micros).map(Self::Micros),
            (_, Some(1_000_000)) => {
                let micros = format!("{fraction:0<6}").parse::<i64>().map_err(|_| wrong())?;
                count(1_000_000)?.checked_add(sign * micros).map(Self::Micros).ok_or_else(wrong)
            }
            _ => Err(wrong()),
        }
    }

    /// Both together.
    pub fn plus(self, other: Self) -> Result<Self, ExpressionError> {
        let sum = match (self, other) {
            (Self::Months(a), Self::Months(b)) => a.checked_add(b).map(Self::Months),
            (Self::Micros(a), Self::Micros(b)) => a.checked_add(b).map(Self::Micros),
            _ => {
                return Err(ExpressionError::new("an interval counts months or a fixed time, not both")
                    .with_hint("add two: ts + INTERVAL 1 MONTH + INTERVAL 2 DAYS"));
            }
        };
        sum.ok_or_else(|| ExpressionError::new("the interval does not fit into 64 bits"))
    }

    /// As long in the other direction.
    pub fn negated(self) -> Result<Self, ExpressionError> {
        let negated = match self {
            Self::Months(months) => months.checked_neg().map(Self::Months),
            Self::Micros(micros) => micros.checked_neg().map(Self::Micros),
        };
        negated.ok_or_else(|| ExpressionError::new("the interval does not fit into 64 bits"))
    }

    /// The function that adds such an interval to a timestamp, and its second argument.
    pub fn addition(self) -> (Function, Argument) {
        let (name, count) = match self {
            Self::Months(months) => ("+ months", months),
            Self::Micros(micros) => ("+ micros", micros),
        };
        (Function::named(name).expect("it is in the table"), Argument::Constant(Value::Int(count)))
    }
}

/// `left - right` as microseconds, if one is a timestamp for certain and the other may be one.
pub fn difference(left: &Argument, right: &Argument) -> Option<Vec<Argument>> {
    let kinds = [left.kind(), right.kind()];
    let may_be_time = |kind: &Option<Kind>| kind.is_none_or(|kind| kind == Kind::Timestamp);
    (kinds.contains(&Some(Kind::Timestamp)) && kinds.iter().all(may_be_time))
        .then(|| vec![Argument::Constant(Value::Str("MICROSECOND".into())), right.clone(), left.clone()])
}

/// A term that is compared with an interval, as a number of microseconds: a difference of two timestamps.
///
/// ```
/// use tamis_core::expr::parse_term;
/// use tamis_core::term::interval::as_micros;
/// let term = as_micros(&parse_term("finished - started").unwrap()).unwrap();
/// assert_eq!(term.name(), "timestampdiff(MICROSECOND, started, finished)");
/// assert!(as_micros(&parse_term("finished").unwrap()).is_err());
/// ```
pub fn as_micros(term: &Term) -> Result<Term, ExpressionError> {
    if let Term::Computed(computed) = term {
        match (computed.function().name(), computed.arguments()) {
            ("-", [left, right]) => return Term::difference(left.clone(), right.clone()),
            ("timestampdiff", [Argument::Constant(Value::Str(unit)), ..]) if is_microsecond(unit) => {
                return Ok(term.clone());
            }
            _ => {}
        }
    }
    Err(ExpressionError::new(format!("{term} is not a difference of two timestamps")).with_hint(
        "write current_timestamp() - ts > INTERVAL 1 DAY, or ts < current_timestamp() - INTERVAL 1 DAY",
    ))
}

fn is_microsecond(unit: &str) -> bool {
    fixed_unit(unit) == Some(1)
}

impl Term {
    fn difference(left: Argument, right: Argument) -> Result<Self, ExpressionError> {
        let unit = Argument::Constant(Value::Str("MICROSECOND".into()));
        Self::computed(Function::named("timestampdiff").expect("it is in the table"), vec![unit, right, left])
    }
}
