//! JSON text that expressions and events share: reading it piece by piece, and writing values.

pub(crate) mod cursor;
mod simd;
pub(crate) mod structure;
pub(crate) mod token_cursor;

use crate::value::Value;
use crate::value::timestamp::format_timestamp_iso;

/// A place in a text. Lines and columns count from 1, columns in characters; bytes from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TextPlace {
    pub line: u32,
    pub column: u32,
    pub byte: usize,
}

impl TextPlace {
    /// The place of a byte of `text`; a byte inside a character, or after the end, is brought back to the
    /// nearest character before it.
    pub fn of(text: &str, byte: usize) -> Self {
        let before = (0..=byte.min(text.len())).rev().find_map(|end| text.get(..end)).unwrap_or("");
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        Self {
            line: 1 + before.bytes().filter(|b| *b == b'\n').count() as u32,
            column: 1 + before[line_start..].chars().count() as u32,
            byte: before.len(),
        }
    }
}

pub(crate) fn write_value(json: &mut String, value: &Value) {
    match value {
        Value::Null => json.push_str("null"),
        Value::Bool(truth) => json.push_str(if *truth { "true" } else { "false" }),
        Value::Int(i) => json.push_str(&i.to_string()),
        Value::Float(x) => write_float(json, *x),
        Value::Decimal(decimal) => json.push_str(&format!("{{\"$decimal\":\"{decimal}\"}}")),
        Value::Str(text) | Value::Cell(text) => write_text(json, text),
        Value::Timestamp(micros) => {
            json.push_str("{\"$timestamp\":\"");
            json.push_str(&format_timestamp_iso(*micros));
            json.push_str("\"}");
        }
        Value::Array(items) => write_array(json, items.iter()),
        Value::Record => json.push_str("{}"),
        Value::Nested(strings) => {
            json.push('[');
            write_array(json, strings.iter());
            json.push(']');
        }
        Value::Fields(fields) => {
            json.push('{');
            for (at, (name, value)) in fields.iter().enumerate() {
                if at > 0 {
                    json.push(',');
                }
                write_text(json, name);
                json.push(':');
                write_value(json, value);
            }
            json.push('}');
        }
        Value::Interval(ends) => {
            json.push_str("{\"$interval\":");
            write_array(json, [&ends.0, &ends.1].into_iter());
            json.push('}');
        }
        Value::Set(set) => {
            json.push_str("{\"$where\":");
            write_text(json, set.text());
            json.push('}');
        }
    }
}

pub(crate) fn write_array<'r>(json: &mut String, items: impl Iterator<Item = &'r Value>) {
    json.push('[');
    for (at, item) in items.enumerate() {
        if at > 0 {
            json.push(',');
        }
        write_value(json, item);
    }
    json.push(']');
}

pub(crate) fn write_float(json: &mut String, x: f64) {
    if x.is_finite() {
        // The shortest text that reads back as the same float, always with a point or an exponent.
        json.push_str(&format!("{x:?}"));
    } else {
        let name = if x.is_nan() {
            "NaN"
        } else if x > 0.0 {
            "Infinity"
        } else {
            "-Infinity"
        };
        json.push_str(&format!("{{\"$float\":\"{name}\"}}"));
    }
}

pub(crate) fn write_text(json: &mut String, text: &str) {
    json.push_str(&serde_json::Value::from(text).to_string());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_count_lines_and_characters() {
        let text = "{\n  \"é\": x}";
        assert_eq!(TextPlace::of(text, text.find('x').unwrap()), TextPlace { line: 2, column: 8, byte: 10 });
        assert_eq!(TextPlace::of("", 9), TextPlace { line: 1, column: 1, byte: 0 });
    }
}
