//! Numbers and strings of the text as values, with Spark's suffixes and escapes.

use std::borrow::Cow;

use super::fault::{Fault, Parsed};
use crate::value::Value;
use crate::value::decimal::Refused;
use crate::value::timestamp::parse_timestamp;

/// The value of a number token, which `negative` puts below zero.
///
/// Digits alone are an integer, as with the suffixes `L`, `S` and `Y`. With the suffix `D` or `F` it is a float,
/// rounded to the nearest. All others are the number that is written: an integer that fits, a float that stands
/// for it, or a decimal.
pub(super) fn number(text: &str, negative: bool, at: usize) -> Parsed<Value> {
    if text.bytes().all(|byte| byte.is_ascii_digit()) {
        return match integer(text, negative, i64::MIN, i64::MAX, at) {
            Err(_) => exact(text, negative, at),
            fits => fits,
        };
    }
    let (body, suffix) = split_suffix(text);
    let is_integer = body.bytes().all(|byte| byte.is_ascii_digit());
    match suffix {
        'L' if is_integer => integer(body, negative, i64::MIN, i64::MAX, at),
        'S' if is_integer => integer(body, negative, i16::MIN.into(), i16::MAX.into(), at),
        'Y' if is_integer => integer(body, negative, i8::MIN.into(), i8::MAX.into(), at),
        // A 32-bit float has the value it is rounded to, as in Spark.
        'F' => float(body.parse::<f32>().ok().map(f64::from), text, negative, at),
        'D' => float(body.parse::<f64>().ok(), text, negative, at),
        'B' | ' ' => exact(body, negative, at),
        _ => Err(bad_number(text, at)),
    }
}

/// The digits and the suffix in upper case: `B` for `BD`, a space for none.
fn split_suffix(text: &str) -> (&str, char) {
    let Some(last) = text.chars().next_back().filter(char::is_ascii_alphabetic) else {
        return (text, ' ');
    };
    let body = &text[..text.len() - 1];
    match last.to_ascii_uppercase() {
        'D' => body.strip_suffix(['b', 'B']).map_or((body, 'D'), |body| (body, 'B')),
        'B' => (text, '?'),
        suffix => (body, suffix),
    }
}

fn integer(digits: &str, negative: bool, lowest: i64, highest: i64, at: usize) -> Parsed<Value> {
    let magnitude =
        digits
            .bytes()
            .try_fold(0u64, |sum, digit| sum.checked_mul(10)?.checked_add((digit - b'0').into()))
            .and_then(|magnitude| {
                if negative { 0i64.checked_sub_unsigned(magnitude) } else { magnitude.try_into().ok() }
            });
    match magnitude {
        Some(value) if (lowest..=highest).contains(&value) => Ok(Value::Int(value)),
        _ if lowest == i64::MIN => Err(Fault::new(at, "the integer does not fit into 64 bits")
            .hint(format!("with the suffix L it must lie between {lowest} and {highest}"))),
        _ => Err(Fault::new(at, "the integer does not fit its suffix").hint(format!(
            "it must lie between {lowest} and {highest}; without the suffix it may be larger"
        ))),
    }
}

fn exact(text: &str, negative: bool, at: usize) -> Parsed<Value> {
    // Few digits and no exponent, and most numbers are so, need no other look at them.
    let is_short = text.len() <= 15 && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let value = match text.parse::<f64>() {
        Ok(float) if is_short => return Ok(Value::Float(if negative { -float } else { float })),
        _ if negative => Value::number_literal(&format!("-{text}")),
        _ => Value::number_literal(text),
    };
    value.map_err(|refused| match refused {
        Refused::NoNumber => bad_number(text, at),
        Refused::TooLarge => too_large(at),
        Refused::TooSmall | Refused::TooManyDigits => {
            Fault::new(at, format!("the number cannot be compared exactly: {refused}"))
                .hint("write the suffix D for the nearest float: 1e-500D")
        }
    })
}

fn too_large(at: usize) -> Box<Fault> {
    Fault::new(at, "the number is too large for a float").hint("write DOUBLE 'Infinity' if you mean infinity")
}

fn float(parsed: Option<f64>, text: &str, negative: bool, at: usize) -> Parsed<Value> {
    match parsed {
        Some(value) if value.is_infinite() => Err(too_large(at)),
        Some(value) => Ok(Value::Float(if negative { -value } else { value })),
        None => Err(bad_number(text, at)),
    }
}

fn bad_number(text: &str, at: usize) -> Box<Fault> {
    let shown: String = text.chars().take(40).collect();
    Fault::new(at, format!("{shown} is not a number"))
        .hint("numbers are written 42, 42L, 1.5, 2e-3; a name that starts with a digit needs backquotes")
}

/// The text of a string token: without its quotes, escapes replaced.
pub(super) fn string<'a>(token: &'a str, plain: bool, at: usize) -> Parsed<Cow<'a, str>> {
    let body = &token[1..token.len() - 1];
    if plain {
        Ok(Cow::Borrowed(body))
    } else {
        unescape(body, token.as_bytes()[0] as char, at + 1).map(Cow::Owned)
    }
}

/// The text of `r'…'`.
pub(super) fn raw_string(token: &str) -> Cow<'_, str> {
    Cow::Borrowed(&token[2..token.len() - 1])
}

/// A name without its backquotes.
pub(super) fn quoted_name(token: &str) -> String {
    token[1..token.len() - 1].replace("``", "`")
}

/// Spark's escapes. `\%` and `\_` keep their backslash, for LIKE; a backslash before any other character
/// without a meaning is dropped.
fn unescape(body: &str, quote: char, at: usize) -> Parsed<String> {
    let mut text = String::with_capacity(body.len());
    let mut rest = body;
    while let Some(special) = rest.find(['\\', quote]) {
        text.push_str(&rest[..special]);
        let after = &rest[special + 1..];
        let taken = match rest.as_bytes()[special] {
            // A quote inside a string is a doubled one.
            quote if quote != b'\\' => {
                text.push(quote as char);
                1
            }
            _ => {
                let place = at + body.len() - rest.len() + special;
                let (character, taken) = escape(after, place)?;
                if matches!(character, '%' | '_') {
                    text.push('\\');
                }
                text.push(character);
                taken
            }
        };
        rest = &after[taken..];
    }
    text.push_str(rest);
    Ok(text)
}

/// The character that is written by what follows a backslash, and the bytes it is written with.
fn escape(after: &str, at: usize) -> Parsed<(char, usize)> {
    let bytes = after.as_bytes();
    if let [first @ b'0'..=b'1', second @ b'0'..=b'7', third @ b'0'..=b'7', ..] = bytes {
        let code = (first - b'0') * 64 + (second - b'0') * 8 + (third - b'0');
        return Ok((code as char, 3));
    }
    if let Some((code, taken)) = code_point(after) {
        return match char::from_u32(code) {
            Some(character) => Ok((character, taken)),
            None => Err(Fault::new(at, format!("\\{} is not a Unicode character", &after[..taken]))
                .hint("characters go up to \\U0010FFFF; a surrogate needs its partner: \\uD83D\\uDE00")),
        };
    }
    let character = after.chars().next().unwrap_or('\\');
    let meaning = match character {
        '0' => '\0',
        'b' => '\u{8}',
        'n' => '\n',
        'r' => '\r',
        't' => '\t',
        'Z' => '\u{1a}',
        other => other,
    };
    Ok((meaning, character.len_utf8().min(after.len())))
}

/// `uXXXX`, a pair of surrogates so written, or `UXXXXXXXX`, with the bytes it takes.
fn code_point(after: &str) -> Option<(u32, usize)> {
    let hex = |range: std::ops::Range<usize>| {
        let digits = after.get(range)?;
        digits.bytes().all(|byte| byte.is_ascii_hexdigit()).then(|| u32::from_str_radix(digits, 16).ok())?
    };
    match after.as_bytes().first()? {
        b'U' => Some((hex(1..9)?, 9)),
        b'u' => {
            let unit = hex(1..5)?;
            let low = || if after.get(5..7)? == "\\u" { hex(7..11) } else { None };
            match (unit, (0xD800..0xDC00).contains(&unit).then(low).flatten()) {
                (high, Some(low @ 0xDC00..0xE000)) => {
                    Some((0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00), 11))
                }
                _ => Some((unit, 5)),
            }
        }
        _ => None,
    }
}

/// The types that may stand before a string: `TIMESTAMP '…'`, `DATE '…'`, `DOUBLE '…'`.
pub(super) const TYPED_LITERALS: [&str; 5] =
    ["TIMESTAMP", "TIMESTAMP_NTZ", "TIMESTAMP_LTZ", "DATE", "DOUBLE"];

/// The value of a string with a type before it; `None` when there is no such type.
pub(super) fn typed(type_name: &str, text: &str, at: usize) -> Option<Parsed<Value>> {
    let known = TYPED_LITERALS.into_iter().find(|known| known.eq_ignore_ascii_case(type_name))?;
    let (value, hint) = match known {
        "DOUBLE" => {
            (double(text), "write DOUBLE 'NaN', DOUBLE 'Infinity', DOUBLE '-Infinity' or a plain number")
        }
        "DATE" => (date(text), "write DATE '2026-01-31', with a day that exists"),
        _ => (
            parse_timestamp(text).map(Value::Timestamp),
            "write TIMESTAMP '2026-01-31 12:00:00', with an offset such as +02:00 if it is not UTC",
        ),
    };
    let shown: String = text.chars().take(40).collect();
    Some(
        value
            .ok_or_else(|| Fault::new(at, format!("'{shown}' is not a {}", known.to_lowercase())).hint(hint)),
    )
}

/// A date is the timestamp of its first microsecond; as in Spark, a time of day that follows is ignored.
fn date(text: &str) -> Option<Value> {
    let day = text.trim_ascii().split([' ', 'T']).next()?;
    parse_timestamp(day).map(Value::Timestamp)
}

fn double(text: &str) -> Option<Value> {
    text.trim_ascii().parse().ok().map(Value::Float)
}
