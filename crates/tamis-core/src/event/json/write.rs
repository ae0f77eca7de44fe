//! Records as JSON text that reads back as the same record.

use crate::event::Record;
use crate::json::{write_float, write_text, write_value};

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
