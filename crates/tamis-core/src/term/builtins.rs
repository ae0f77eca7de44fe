//! What each function computes. Append new lines to the table: positions serve as handles.

use chrono::{Datelike, Months, NaiveDate, NaiveDateTime, TimeDelta, TimeZone, Timelike};
use chrono_tz::Tz;

use super::function::{ADDITIVE, COMPARISON, MULTIPLICATIVE, Notation, Rules};
use super::interval::{FIXED, MONTHS, fixed_unit};
use super::network::ip_key;
use crate::value::timestamp::{format_timestamp, parse_timestamp};
use crate::value::{Kind, Value, ValueRef};

const MICROS_PER_SECOND: i64 = 1_000_000;
/// Bytes of one string that is put together.
const MAX_COMPUTED_BYTES: usize = 1 << 20;

const NUMBER: Option<Kind> = Some(Kind::Number);
const TEXT: Option<Kind> = Some(Kind::Str);
const TIME: Option<Kind> = Some(Kind::Timestamp);
const TRUTH: Option<Kind> = Some(Kind::Bool);

const fn call(
    name: &'static str,
    arity: (usize, usize),
    takes: &'static [Option<Kind>],
    gives: Option<Kind>,
    compute: fn(&[ValueRef<'_>]) -> Option<Value>,
) -> Rules {
    Rules { name, notation: Notation::Call, arity, takes, gives, takes_nulls: false, compute }
}

const fn infix(
    name: &'static str,
    binding: u8,
    takes: Option<Kind>,
    gives: Option<Kind>,
    compute: fn(&[ValueRef<'_>]) -> Option<Value>,
) -> Rules {
    let takes: &'static [Option<Kind>] = match takes {
        Some(Kind::Number) => &[NUMBER],
        Some(Kind::Str) => &[TEXT],
        _ => &[None],
    };
    Rules {
        name,
        notation: Notation::Infix(binding),
        arity: (2, 2),
        takes,
        gives,
        takes_nulls: false,
        compute,
    }
}

/// A timestamp and the length of an interval, in the last of these units.
const fn interval(
    name: &'static str,
    units: &'static [(&'static str, i64)],
    compute: fn(&[ValueRef<'_>]) -> Option<Value>,
) -> Rules {
    Rules {
        name,
        notation: Notation::Interval(units),
        arity: (2, 2),
        takes: &[TIME, NUMBER],
        gives: TIME,
        takes_nulls: false,
        compute,
    }
}

const fn cast(
    name: &'static str,
    to: &'static str,
    gives: Option<Kind>,
    compute: fn(&[ValueRef<'_>]) -> Option<Value>,
) -> Rules {
    Rules {
        name,
        notation: Notation::Cast(to),
        arity: (1, 1),
        takes: &[None],
        gives,
        takes_nulls: false,
        compute,
    }
}

pub(super) static FUNCTIONS: &[Rules] = &[
    infix("=", COMPARISON, None, TRUTH, |values| compared(values, |order| order.is_eq())),
    infix("<", COMPARISON, None, TRUTH, |values| compared(values, |order| order.is_lt())),
    infix("<=", COMPARISON, None, TRUTH, |values| compared(values, |order| order.is_le())),
    infix(">", COMPARISON, None, TRUTH, |values| compared(values, |order| order.is_gt())),
    infix(">=", COMPARISON, None, TRUTH, |values| compared(values, |order| order.is_ge())),
    Rules { takes_nulls: true, ..infix("<=>", COMPARISON, None, TRUTH, same_or_both_absent) },
    infix("+", ADDITIVE, NUMBER, NUMBER, |values| arithmetic(values, i64::checked_add, |a, b| Some(a + b))),
    infix("-", ADDITIVE, NUMBER, NUMBER, |values| arithmetic(values, i64::checked_sub, |a, b| Some(a - b))),
    infix("*", MULTIPLICATIVE, NUMBER, NUMBER, |values| {
        arithmetic(values, i64::checked_mul, |a, b| Some(a * b))
    }),
    infix("/", MULTIPLICATIVE, NUMBER, NUMBER, quotient),
    infix("%", MULTIPLICATIVE, NUMBER, NUMBER, |values| {
        arithmetic(values, remainder, |a, b| (b != 0.0).then(|| a % b))
    }),
    call("abs", (1, 1), &[NUMBER], NUMBER, absolute),
    call("round", (1, 2), &[NUMBER], NUMBER, rounded),
    call("floor", (1, 1), &[NUMBER], NUMBER, |values| whole(values[0], f64::floor)),
    call("ceil", (1, 1), &[NUMBER], NUMBER, |values| whole(values[0], f64::ceil)),
    call("lower", (1, 1), &[TEXT], TEXT, |values| text(values[0]).map(|text| string(text.to_lowercase()))),
    call("upper", (1, 1), &[TEXT], TEXT, |values| text(values[0]).map(|text| string(text.to_uppercase()))),
    call("length", (1, 1), &[TEXT], NUMBER, |values| {
        text(values[0]).map(|text| Value::Int(text.chars().count() as i64))
    }),
    call("trim", (1, 1), &[TEXT], TEXT, |values| text(values[0]).map(|text| string(text.trim_matches(' ')))),
    call("substring", (2, 3), &[TEXT, NUMBER, NUMBER], TEXT, substring),
    call("concat", (1, usize::MAX), &[TEXT], TEXT, concatenated),
    call("year", (1, 1), &[TIME], NUMBER, |values| of_date(values, |date| i64::from(date.year()))),
    call("quarter", (1, 1), &[TIME], NUMBER, |values| {
        of_date(values, |date| i64::from(date.month0() / 3 + 1))
    }),
    call("month", (1, 1), &[TIME], NUMBER, |values| of_date(values, |date| i64::from(date.month()))),
    call("day", (1, 1), &[TIME], NUMBER, |values| of_date(values, |date| i64::from(date.day()))),
    call("dayofweek", (1, 1), &[TIME], NUMBER, |values| {
        of_date(values, |date| i64::from(date.weekday().num_days_from_sunday() + 1))
    }),
    call("dayofyear", (1, 1), &[TIME], NUMBER, |values| of_date(values, |date| i64::from(date.ordinal()))),
    call("hour", (1, 1), &[TIME], NUMBER, |values| of_time(values, |second| second / 3600)),
    call("minute", (1, 1), &[TIME], NUMBER, |values| of_time(values, |second| second / 60 % 60)),
    call("second", (1, 1), &[TIME], NUMBER, |values| of_time(values, |second| second % 60)),
    call("date_trunc", (2, 2), &[TEXT, TIME], TIME, truncated),
    call("from_utc_timestamp", (2, 2), &[TIME, TEXT], TIME, from_utc),
    call("to_utc_timestamp", (2, 2), &[TIME, TEXT], TIME, to_utc),
    call("size", (1, 1), &[Some(Kind::Array)], NUMBER, |values| match values[0] {
        ValueRef::Array(items) => Some(Value::Int(items.len() as i64)),
        _ => None,
    }),
    call("element_at", (2, 2), &[Some(Kind::Array), NUMBER], None, element),
    Rules {
        takes_nulls: true,
        ..call("coalesce", (1, usize::MAX), &[None], None, |values| {
            let present = values.iter().find(|value| !matches!(value, ValueRef::Null));
            present.map(|value| ValueRef::to_owned(*value))
        })
    },
    cast("cast as bool", "bool", TRUTH, to_bool),
    cast("cast as int", "int", NUMBER, to_int),
    cast("cast as float", "float", NUMBER, to_float),
    cast("cast as string", "string", TEXT, to_text),
    cast("cast as timestamp", "timestamp", TIME, to_timestamp),
    call("ip", (1, 1), &[TEXT], TEXT, |values| text(values[0]).and_then(ip_key).map(string)),
    interval("+ months", &MONTHS, |values| {
        let (ValueRef::Timestamp(micros), months) = (values[0], int(values[1])?) else { return None };
        let length = Months::new(u32::try_from(months.unsigned_abs()).ok()?);
        let from = calendar(micros)?;
        let to = if months < 0 { from.checked_sub_months(length) } else { from.checked_add_months(length) };
        micros_of(to?).map(Value::Timestamp)
    }),
    interval("+ micros", &FIXED, |values| {
        let (ValueRef::Timestamp(micros), length) = (values[0], int(values[1])?) else { return None };
        micros.checked_add(length).map(Value::Timestamp)
    }),
    call("timestampdiff", (3, 3), &[TEXT, TIME, TIME], NUMBER, |values| {
        let (ValueRef::Timestamp(from), ValueRef::Timestamp(to)) = (values[1], values[2]) else {
            return None;
        };
        Some(Value::Int(to.checked_sub(from)? / fixed_unit(text(values[0])?)?))
    }),
];

fn string(text: impl Into<Box<str>>) -> Value {
    Value::Str(text.into())
}

fn text(value: ValueRef<'_>) -> Option<&str> {
    match value {
        ValueRef::Str(text) => Some(text),
        _ => None,
    }
}

fn int(value: ValueRef<'_>) -> Option<i64> {
    match value {
        ValueRef::Int(i) => Some(i),
        _ => None,
    }
}

fn compared(values: &[ValueRef<'_>], holds: fn(std::cmp::Ordering) -> bool) -> Option<Value> {
    values[0].compare(values[1]).map(|order| Value::Bool(holds(order)))
}

fn same_or_both_absent(values: &[ValueRef<'_>]) -> Option<Value> {
    let absent = values.iter().filter(|value| matches!(value, ValueRef::Null)).count();
    match absent {
        0 => compared(values, |order| order.is_eq()),
        absent => Some(Value::Bool(absent == 2)),
    }
}

/// Integers among themselves stay integers; anything else is computed with floats.
fn arithmetic(
    values: &[ValueRef<'_>],
    integers: fn(i64, i64) -> Option<i64>,
    floats: fn(f64, f64) -> Option<f64>,
) -> Option<Value> {
    match (values[0], values[1]) {
        (ValueRef::Int(a), ValueRef::Int(b)) => integers(a, b).map(Value::Int),
        (a, b) => floats(a.nearest_float()?, b.nearest_float()?).map(Value::Float),
    }
}

/// The sign is that of the dividend. Nothing is left of the smallest integer divided by -1.
fn remainder(a: i64, b: i64) -> Option<i64> {
    (b != 0).then(|| a.wrapping_rem(b))
}

fn quotient(values: &[ValueRef<'_>]) -> Option<Value> {
    let (a, b) = (values[0].nearest_float()?, values[1].nearest_float()?);
    (b != 0.0).then(|| Value::Float(a / b))
}

fn absolute(values: &[ValueRef<'_>]) -> Option<Value> {
    match values[0] {
        ValueRef::Int(i) => i.checked_abs().map(Value::Int),
        number => number.nearest_float().map(|x| Value::Float(x.abs())),
    }
}

/// Half away from zero, by the decimal digits that the number is written with.
fn rounded(values: &[ValueRef<'_>]) -> Option<Value> {
    let places = match values.get(1) {
        Some(places) => int(*places)?,
        None => 0,
    };
    match values[0] {
        ValueRef::Int(i) if places >= 0 => Some(Value::Int(i)),
        ValueRef::Int(i) => {
            let Some(unit) = u32::try_from(-places).ok().and_then(|power| 10i128.checked_pow(power)) else {
                return Some(Value::Int(0));
            };
            let i = i128::from(i);
            let up = (i.abs() + unit / 2) / unit * unit * i.signum();
            i64::try_from(up).ok().map(Value::Int)
        }
        number => {
            let x = number.nearest_float()?;
            Some(Value::Float(if x.is_finite() { round_decimal(x, places) } else { x }))
        }
    }
}

fn round_decimal(x: f64, places: i64) -> f64 {
    let written = format!("{:e}", x.abs());
    let (digits, exponent) = written.split_once('e').expect("floats are written so");
    let exponent: i64 = exponent.parse().expect("an exponent is an integer");
    let digits: Vec<u8> = digits.bytes().filter(u8::is_ascii_digit).map(|digit| digit - b'0').collect();
    // The digit at `at` counts units of 10 to the power of `exponent - at`.
    let kept = exponent + places + 1;
    if kept >= digits.len() as i64 {
        return x;
    }
    if kept < 0 {
        return 0.0f64.copysign(x);
    }
    let kept = kept as usize;
    let mut whole: Vec<u8> = digits[..kept].to_vec();
    if digits[kept] >= 5 {
        let mut carry = true;
        for digit in whole.iter_mut().rev() {
            *digit = (*digit + 1) % 10;
            carry = *digit == 0;
            if !carry {
                break;
            }
        }
        if carry {
            whole.insert(0, 1);
        }
    }
    let text: String = whole.iter().map(|digit| char::from(digit + b'0')).collect();
    let text = if text.is_empty() { "0".into() } else { text };
    let rounded: f64 = format!("{text}e{}", -places).parse().expect("digits and an exponent");
    rounded.copysign(x)
}

fn whole(value: ValueRef<'_>, to_whole: fn(f64) -> f64) -> Option<Value> {
    match value {
        ValueRef::Int(i) => Some(Value::Int(i)),
        number => as_int(to_whole(number.nearest_float()?)),
    }
}

fn as_int(x: f64) -> Option<Value> {
    const BEYOND: f64 = 9_223_372_036_854_775_808.0;
    (-BEYOND..BEYOND).contains(&x).then_some(Value::Int(x as i64))
}

/// Counts characters from 1, from the end where the start is negative.
fn substring(values: &[ValueRef<'_>]) -> Option<Value> {
    let (text, start) = (text(values[0])?, int(values[1])?);
    let characters = text.chars().count() as i64;
    let from = match start {
        1.. => start - 1,
        0 => 0,
        _ => characters.saturating_add(start),
    };
    let to = match values.get(2) {
        Some(length) => from.saturating_add(int(*length)?),
        None => characters,
    };
    let from = from.clamp(0, characters) as usize;
    let count = (to.clamp(0, characters) as usize).saturating_sub(from);
    Some(string(text.chars().skip(from).take(count).collect::<String>()))
}

/// Undefined where it would be too long: a short expression could otherwise double a long text again and again.
fn concatenated(values: &[ValueRef<'_>]) -> Option<Value> {
    let texts: Vec<&str> = values.iter().map(|value| text(*value)).collect::<Option<_>>()?;
    let bytes: usize = texts.iter().map(|text| text.len()).sum();
    (bytes <= MAX_COMPUTED_BYTES).then(|| string(texts.concat()))
}

/// The date and time of a timestamp; `None` beyond the years that the calendar knows.
fn calendar(micros: i64) -> Option<NaiveDateTime> {
    NaiveDate::from_ymd_opt(1970, 1, 1)?
        .and_hms_opt(0, 0, 0)?
        .checked_add_signed(TimeDelta::microseconds(micros))
}

fn of_date(values: &[ValueRef<'_>], part: fn(NaiveDate) -> i64) -> Option<Value> {
    let ValueRef::Timestamp(micros) = values[0] else { return None };
    calendar(micros).map(|time| Value::Int(part(time.date())))
}

/// A part of the time of day, from its second.
fn of_time(values: &[ValueRef<'_>], part: fn(i64) -> i64) -> Option<Value> {
    let ValueRef::Timestamp(micros) = values[0] else { return None };
    Some(Value::Int(part(micros.div_euclid(MICROS_PER_SECOND).rem_euclid(86_400))))
}

/// The units of `date_trunc`, with their other names.
const TIME_UNITS: [(&str, Unit); 13] = [
    ("year", Unit::Year),
    ("yyyy", Unit::Year),
    ("yy", Unit::Year),
    ("quarter", Unit::Quarter),
    ("month", Unit::Month),
    ("mon", Unit::Month),
    ("mm", Unit::Month),
    ("week", Unit::Week),
    ("day", Unit::Day),
    ("dd", Unit::Day),
    ("hour", Unit::Seconds(3600)),
    ("minute", Unit::Seconds(60)),
    ("second", Unit::Seconds(1)),
];

#[derive(Clone, Copy)]
enum Unit {
    Year,
    Quarter,
    Month,
    Week,
    Day,
    Seconds(i64),
}

fn time_unit(name: &str) -> Option<Unit> {
    TIME_UNITS.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, unit)| *unit)
}

pub(super) fn is_time_unit(name: &str) -> bool {
    time_unit(name).is_some()
}

fn truncated(values: &[ValueRef<'_>]) -> Option<Value> {
    let (unit, ValueRef::Timestamp(micros)) = (time_unit(text(values[0])?)?, values[1]) else { return None };
    let date = calendar(micros)?.date();
    let first = match unit {
        Unit::Seconds(seconds) => {
            let unit = seconds * MICROS_PER_SECOND;
            return micros.div_euclid(unit).checked_mul(unit).map(Value::Timestamp);
        }
        Unit::Year => NaiveDate::from_ymd_opt(date.year(), 1, 1)?,
        Unit::Quarter => NaiveDate::from_ymd_opt(date.year(), date.month0() / 3 * 3 + 1, 1)?,
        Unit::Month => date.with_day(1)?,
        Unit::Week => {
            date.checked_sub_signed(TimeDelta::days(date.weekday().num_days_from_monday().into()))?
        }
        Unit::Day => date,
    };
    micros_of(first.and_hms_opt(0, 0, 0)?).map(Value::Timestamp)
}

fn micros_of(time: NaiveDateTime) -> Option<i64> {
    let time = time.and_utc();
    time.timestamp().checked_mul(MICROS_PER_SECOND)?.checked_add(i64::from(time.nanosecond() / 1000))
}

fn time_zone(name: &str) -> Option<Tz> {
    name.parse().ok()
}

pub(super) fn is_time_zone(name: &str) -> bool {
    time_zone(name).is_some()
}

/// What a clock of that zone shows at this time.
fn from_utc(values: &[ValueRef<'_>]) -> Option<Value> {
    let (ValueRef::Timestamp(micros), zone) = (values[0], time_zone(text(values[1])?)?) else { return None };
    micros_of(zone.from_utc_datetime(&calendar(micros)?).naive_local()).map(Value::Timestamp)
}

/// When a clock of that zone shows this time: the first time, where it shows it twice; where it never does, as long
/// after the gap as the time lies in it.
fn to_utc(values: &[ValueRef<'_>]) -> Option<Value> {
    let (ValueRef::Timestamp(micros), zone) = (values[0], time_zone(text(values[1])?)?) else { return None };
    let shown = calendar(micros)?;
    let time = match zone.from_local_datetime(&shown).earliest() {
        Some(time) => time.naive_utc(),
        None => {
            let day_before = shown.checked_sub_signed(TimeDelta::days(1))?;
            let offset = zone.from_local_datetime(&day_before).earliest()?.naive_utc() - day_before;
            shown.checked_add_signed(offset)?
        }
    };
    micros_of(time).map(Value::Timestamp)
}

/// Counts from 1, from the end where the place is negative.
fn element(values: &[ValueRef<'_>]) -> Option<Value> {
    let (ValueRef::Array(items), place) = (values[0], int(values[1])?) else { return None };
    let at = match place {
        1.. => usize::try_from(place - 1).ok()?,
        0 => return None,
        _ => items.len().checked_sub(usize::try_from(place.unsigned_abs()).ok()?)?,
    };
    items.get(at).cloned()
}

fn to_bool(values: &[ValueRef<'_>]) -> Option<Value> {
    match values[0] {
        ValueRef::Bool(truth) => Some(Value::Bool(truth)),
        ValueRef::Str(text) => {
            let text = text.trim_ascii().to_ascii_lowercase();
            match &*text {
                "t" | "true" | "y" | "yes" | "1" => Some(Value::Bool(true)),
                "f" | "false" | "n" | "no" | "0" => Some(Value::Bool(false)),
                _ => None,
            }
        }
        ValueRef::Timestamp(_) => None,
        number => number.nearest_float().map(|x| Value::Bool(x != 0.0)),
    }
}

fn to_int(values: &[ValueRef<'_>]) -> Option<Value> {
    match values[0] {
        ValueRef::Bool(truth) => Some(Value::Int(truth.into())),
        ValueRef::Int(i) => Some(Value::Int(i)),
        ValueRef::Timestamp(micros) => Some(Value::Int(micros.div_euclid(MICROS_PER_SECOND))),
        ValueRef::Str(text) => text.trim_ascii().parse().ok().map(Value::Int),
        number => as_int(number.nearest_float()?.trunc()),
    }
}

fn to_float(values: &[ValueRef<'_>]) -> Option<Value> {
    match values[0] {
        ValueRef::Bool(truth) => Some(Value::Float(truth.into())),
        ValueRef::Timestamp(micros) => Some(Value::Float(micros as f64 / MICROS_PER_SECOND as f64)),
        ValueRef::Str(text) => text.trim_ascii().parse().ok().map(Value::Float),
        number => number.nearest_float().map(Value::Float),
    }
}

/// The text of a float is not the same everywhere, so it is no one's.
fn to_text(values: &[ValueRef<'_>]) -> Option<Value> {
    match values[0] {
        ValueRef::Bool(truth) => Some(string(truth.to_string())),
        ValueRef::Int(i) => Some(string(i.to_string())),
        ValueRef::Decimal(decimal) => Some(string(decimal.plain())),
        ValueRef::Str(text) => Some(string(text)),
        ValueRef::Timestamp(micros) => Some(string(format_timestamp(micros))),
        _ => None,
    }
}

fn to_timestamp(values: &[ValueRef<'_>]) -> Option<Value> {
    match values[0] {
        ValueRef::Timestamp(micros) => Some(Value::Timestamp(micros)),
        ValueRef::Int(seconds) => seconds.checked_mul(MICROS_PER_SECOND).map(Value::Timestamp),
        ValueRef::Str(text) => parse_timestamp(text).map(Value::Timestamp),
        number @ (ValueRef::Float(_) | ValueRef::Decimal(_)) => {
            match as_int((number.nearest_float()? * MICROS_PER_SECOND as f64).floor())? {
                Value::Int(micros) => Some(Value::Timestamp(micros)),
                _ => None,
            }
        }
        _ => None,
    }
}
