//! Cells: text without a declared type, as in CSV. Each predicate reads a cell as the kind that it expects.
//!
//! `02134` is text for `zip = '02134'` and a number for `zip > 5`. The value of a cell for a predicate depends only on its
//! text and that predicate, so no rule affects another. A cell that cannot be read as the expected kind is text: the
//! predicate is undefined, and the attribute is present.

use super::timestamp::parse_timestamp;
use super::{Kind, Value, ValueRef};

/// A number as JSON writes it, with leading zeros and a plus sign allowed: what a person may type. `nan` and `inf` are
/// words.
fn read_number(text: &str) -> Option<Value> {
    let digits = text.strip_prefix('+').filter(|rest| !rest.starts_with('-')).unwrap_or(text);
    let is_numeral = |byte: u8| byte.is_ascii_digit() || matches!(byte, b'-' | b'+' | b'.' | b'e' | b'E');
    if !digits.bytes().all(is_numeral) || !digits.bytes().any(|byte| byte.is_ascii_digit()) {
        return None;
    }
    if let Ok(integer) = digits.parse() {
        return Some(Value::Int(integer));
    }
    let is_exact = digits.bytes().filter(u8::is_ascii_digit).count() > 17;
    if is_exact && let Ok(decimal) = Value::decimal(digits) {
        return Some(decimal);
    }
    digits.parse::<f64>().ok().filter(|x| x.is_finite()).map(Value::Float)
}

/// A cell as a value of that kind, or `None` where it cannot be read so.
///
/// ```
/// use tamis_core::event::Value;
/// use tamis_core::event::{Kind, read_cell};
/// assert_eq!(read_cell("02134", Kind::Number), Some(Value::Int(2134)));
/// assert_eq!(read_cell("02134", Kind::Str), Some(Value::Str("02134".into())));
/// assert_eq!(read_cell("TRUE", Kind::Bool), Some(Value::Bool(true)));
/// assert_eq!(read_cell("soon", Kind::Timestamp), None);
/// ```
pub fn read_cell(text: &str, kind: Kind) -> Option<Value> {
    let trimmed = text.trim_ascii();
    match kind {
        Kind::Str => Some(Value::Str(text.into())),
        Kind::Number => read_number(trimmed),
        Kind::Timestamp => parse_timestamp(trimmed).map(Value::Timestamp),
        Kind::Bool if trimmed.eq_ignore_ascii_case("true") => Some(Value::Bool(true)),
        Kind::Bool if trimmed.eq_ignore_ascii_case("false") => Some(Value::Bool(false)),
        Kind::Bool | Kind::Array | Kind::Record => None,
    }
}

/// All that a cell can be read as; text comes first.
pub fn readings(text: &str) -> impl Iterator<Item = Value> + '_ {
    [Kind::Str, Kind::Number, Kind::Bool, Kind::Timestamp]
        .into_iter()
        .filter_map(|kind| read_cell(text, kind))
}

/// A cell where several kinds are accepted: a number if it reads as one, else text.
pub fn guessed(text: &str) -> Value {
    read_cell(text, Kind::Number).unwrap_or_else(|| Value::Str(text.into()))
}

/// Two values that are compared with one another, with their cells read as what both can be: as the other's kind, or for
/// two cells as numbers, times or text, the first that both are.
pub(crate) fn read_pair(values: [ValueRef<'_>; 2]) -> [Value; 2] {
    let as_kind = |value: ValueRef<'_>, kind: Kind| match value {
        ValueRef::Cell(text) => read_cell(text, kind).unwrap_or_else(|| Value::Str(text.into())),
        value => value.to_owned(),
    };
    let kind = match values {
        [ValueRef::Cell(a), ValueRef::Cell(b)] => [Kind::Number, Kind::Timestamp]
            .into_iter()
            .find(|kind| read_cell(a, *kind).is_some() && read_cell(b, *kind).is_some()),
        [ValueRef::Cell(_), other] | [other, ValueRef::Cell(_)] => other.kind(),
        _ => None,
    };
    values.map(|value| as_kind(value, kind.unwrap_or(Kind::Str)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_what_a_person_types() {
        for (text, number) in [
            ("5", Value::Int(5)),
            ("+5", Value::Int(5)),
            ("-007", Value::Int(-7)),
            (" 5 ", Value::Int(5)),
            ("1e3", Value::Float(1000.0)),
            (".5", Value::Float(0.5)),
            ("9223372036854775808", Value::decimal("9223372036854775808").unwrap()),
            ("0.1234567890123456789", Value::decimal("0.1234567890123456789").unwrap()),
        ] {
            assert_eq!(read_cell(text, Kind::Number), Some(number), "{text}");
        }
        for text in ["", "nan", "inf", "NaN", "e", "-", "+-5", "1 2", "0x10", "1e999", "5%"] {
            assert_eq!(read_cell(text, Kind::Number), None, "{text}");
        }
    }

    #[test]
    fn two_cells_are_compared_as_what_both_are() {
        let cell = |text| ValueRef::Cell(text);
        assert_eq!(read_pair([cell("10"), cell("9")]), [Value::Int(10), Value::Int(9)]);
        assert_eq!(read_pair([cell("10"), cell("x")]), [Value::Str("10".into()), Value::Str("x".into())]);
        assert_eq!(
            read_pair([cell("10"), ValueRef::Str("9")]),
            [Value::Str("10".into()), Value::Str("9".into())]
        );
        assert_eq!(read_pair([ValueRef::Int(9), cell("10")]), [Value::Int(9), Value::Int(10)]);
    }
}
