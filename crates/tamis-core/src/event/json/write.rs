//! Records as JSON text that reads back as the same record.

use crate::event::timestamp::format_timestamp_iso;
use crate::event::{Record, Value};

/// Writes a record as one line of JSON, with flat names: the record `a` is `{}` and its field is `"a.b"`.
///
/// ```
/// use tamis_core::event::{json, Record, Value};
/// let record = Record::new([("age", Value::Int(27))], [("age", 0.5)]).unwrap();
/// assert_eq!(json::write(&record), r#"{"$event":{"age":27},"$weights":{"age":0.5}}"#);
/// ```
pub fn write(record: &Record) -> String {
    let mut json = String::new();
    let has_weights = record.weights().len() > 0;
    if has_weights {
        json.push_str("{\"$event\":");
    }
    write_object(&mut json, record.values(), write_value);
    if has_weights {
        json.push_str(",\"$weights\":");
        write_object(&mut json, record.weights(), write_float);
        json.push('}');
    }
    json
}

fn write_object<'r, V>(
    json: &mut String,
    members: impl Iterator<Item = (&'r str, V)>,
    write_member: impl Fn(&mut String, V),
) {
    json.push('{');
    for (at, (name, value)) in members.enumerate() {
        if at > 0 {
            json.push(',');
        }
        write_text(json, name);
        json.push(':');
        write_member(json, value);
    }
    json.push('}');
}

fn write_value(json: &mut String, value: &Value) {
    match value {
        Value::Null => json.push_str("null"),
        Value::Bool(truth) => json.push_str(if *truth { "true" } else { "false" }),
        Value::Int(i) => json.push_str(&i.to_string()),
        Value::Float(x) => write_float(json, *x),
        Value::Decimal(decimal) => json.push_str(&format!("{{\"$decimal\":\"{decimal}\"}}")),
        Value::Str(text) => write_text(json, text),
        Value::Timestamp(micros) => {
            json.push_str("{\"$timestamp\":\"");
            json.push_str(&format_timestamp_iso(*micros));
            json.push_str("\"}");
        }
        Value::Array(items) => write_array(json, items.iter()),
        Value::Record => json.push_str("{}"),
        Value::Interval(ends) => {
            json.push_str("{\"$interval\":");
            write_array(json, [&ends.0, &ends.1].into_iter());
            json.push('}');
        }
        Value::Among(set) => {
            json.push_str("{\"$where\":");
            write_text(json, &set.text());
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

fn write_float(json: &mut String, x: f64) {
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
