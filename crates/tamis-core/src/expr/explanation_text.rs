//! The wording of values and predicates in explanations: as text for people, as JSON for programs.

use serde_json::json;
use tamis_xpath::{Explanation, Path};

use super::ast::{Outcome, Predicate};
use super::operators::{Operator, Syntax};
use super::printer::Unweighted;
use crate::text::LiteralText;
use crate::value::Kind;
use crate::value::cell::read_cell;
use crate::value::timestamp::format_timestamp_iso;
use crate::value::{Value, ValueRef};
use crate::xml::{check, with_document};

/// What a predicate saw of the event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Seen {
    Absent,
    Value(Value),
    /// A value that cannot be compared with the operands, so the predicate is undefined.
    WrongKind {
        value: Value,
        is: Kind,
        needs: Kind,
    },
    /// A document, and in words how far a path goes in it.
    Document {
        value: Value,
        text: String,
    },
}

impl Seen {
    pub(super) fn by(predicate: &Predicate, value: Option<ValueRef<'_>>) -> Self {
        let Some(value) = value.filter(|value| !matches!(value, ValueRef::Null)) else {
            return Seen::Absent;
        };
        if let (ValueRef::Str(document), Operator::XPATH, [Value::Str(path)]) =
            (value, predicate.operator, &*predicate.operands)
        {
            return Seen::Document { value: value.to_owned(), text: way_through(document, path) };
        }
        let about = predicate.operator.is_about(&predicate.operands);
        if let (ValueRef::Cell(text), Some(kind)) = (value, about)
            && let Some(read) = read_cell(text, kind)
        {
            return Seen::Value(read);
        }
        match (value.kind(), about) {
            (Some(is), Some(needs)) if is != needs => Seen::WrongKind { value: value.to_owned(), is, needs },
            _ => Seen::Value(value.to_owned()),
        }
    }

    /// `is absent`, `is 20`, `is 'x', a string, but needs a number`, or `reaches step 1 of 3, /news; there is no /item`.
    pub fn text(&self) -> String {
        match self {
            Seen::Absent => "is absent".into(),
            Seen::Value(value) => format!("is {}", value_text(value)),
            Seen::Document { text, .. } => text.clone(),
            Seen::WrongKind { value, is, needs } => {
                format!("is {}, {}, but needs {}", value_text(value), a_kind(*is), a_kind(*needs))
            }
        }
    }

    /// The value, null when absent.
    pub fn value_json(&self) -> serde_json::Value {
        match self {
            Seen::Absent => serde_json::Value::Null,
            Seen::Value(value) | Seen::WrongKind { value, .. } | Seen::Document { value, .. } => {
                value_json(value)
            }
        }
    }
}

/// How far a path goes in a document, or why it is none.
fn way_through(document: &str, path: &str) -> String {
    with_document(document, |read| match (read, Path::parse(path)) {
        (Some(read), Ok(path)) => Explanation::new(&path, read).to_string(),
        _ => match check(document) {
            Err(error) => format!("is not a well-formed document: {error}"),
            Ok(()) => "is a document".into(),
        },
    })
}

fn a_kind(kind: Kind) -> String {
    let article = if kind == Kind::Array { "an" } else { "a" };
    format!("{article} {}", kind.name())
}

/// `true`, `false`, `undefined` or `either`.
pub fn outcome_name(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::TRUE => "true",
        Outcome::FALSE => "false",
        Outcome::UNDEFINED => "undefined",
        Outcome::EITHER => "either",
    }
}

/// The predicate as it is written, without its weight.
pub fn predicate_text(predicate: &Predicate) -> String {
    Unweighted(predicate).to_string()
}

/// What the attribute would have to be for the predicate to be true: `to be >= 22`.
pub(super) fn requirement(predicate: &Predicate) -> String {
    let operands = &predicate.operands;
    match predicate.operator.rules().syntax() {
        Syntax::Infix { symbol, .. } if !predicate.negated => {
            format!("to be {symbol} {}", value_text(&operands[0]))
        }
        Syntax::Infix { negated: Some(symbol), .. } => format!("to be {symbol} {}", value_text(&operands[0])),
        Syntax::Bare => format!("to be {}", value_text(&Value::Bool(!predicate.negated))),
        _ => predicate_text(predicate),
    }
}

/// The predicate that is true when this one is false.
pub(super) fn opposite(predicate: &Predicate) -> Predicate {
    let complement: Option<Operator> = predicate.operator.rules().complement();
    match complement {
        Some(operator) if !predicate.negated => Predicate { operator, ..predicate.clone() },
        _ => Predicate { negated: !predicate.negated, ..predicate.clone() },
    }
}

/// The value as it is written in an expression; intervals and records, which are not, in words.
pub fn value_text(value: &Value) -> String {
    LiteralText(value).to_string()
}

/// The value as events write it in JSON.
pub fn value_json(value: &Value) -> serde_json::Value {
    match value {
        Value::Null => serde_json::Value::Null,
        Value::Bool(truth) => json!(truth),
        Value::Int(number) => json!(number),
        Value::Float(number) if number.is_finite() => json!(number),
        Value::Float(number) if number.is_nan() => json!({"$float": "NaN"}),
        Value::Float(number) => json!({"$float": if *number > 0.0 { "Infinity" } else { "-Infinity" }}),
        Value::Decimal(decimal) => json!({"$decimal": decimal.to_string()}),
        Value::Str(text) | Value::Cell(text) => json!(**text),
        Value::Timestamp(micros) => json!({"$timestamp": format_timestamp_iso(*micros)}),
        Value::Array(items) => items.iter().map(value_json).collect(),
        Value::Record | Value::Nested(_) => json!({}),
        Value::Fields(fields) => {
            let members = fields.iter().map(|(name, value)| (name.to_string(), value_json(value)));
            serde_json::Value::Object(members.collect())
        }
        Value::Interval(ends) => json!({"$interval": [value_json(&ends.0), value_json(&ends.1)]}),
        Value::Set(set) => json!({"$where": set.text()}),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expr::testing::predicate;

    #[test]
    fn predicates_read_as_they_are_written() {
        let mut equal = predicate("address.city", "=", &[Value::Str("L'Île".into())]);
        assert_eq!(predicate_text(&equal), "address.city = 'L\\'Île'");
        equal.negated = true;
        assert_eq!(predicate_text(&equal), "address.city != 'L\\'Île'");
        assert_eq!(requirement(&equal), "to be != 'L\\'Île'");
        assert_eq!(predicate_text(&opposite(&equal)), "address.city = 'L\\'Île'");
        let less = predicate("odd name", "<", &[Value::Float(2.0)]);
        assert_eq!(predicate_text(&less), "`odd name` < 2.0");
        assert_eq!(predicate_text(&opposite(&less)), "`odd name` >= 2.0");
        let boosted =
            Predicate { weight: Some(0.4), ..predicate("tags", "arrays_overlap", &[Value::Int(1)]) };
        assert_eq!(predicate_text(&boosted), "arrays_overlap(tags, ARRAY(1))");
    }

    #[test]
    fn values_that_json_lacks_are_marked() {
        let interval = Value::Interval(Box::new((Value::Int(1), Value::Float(f64::INFINITY))));
        assert_eq!(value_json(&interval).to_string(), r#"{"$interval":[1,{"$float":"Infinity"}]}"#);
        let moment = Value::Array(vec![Value::Timestamp(0), Value::Null]);
        assert_eq!(value_json(&moment).to_string(), r#"[{"$timestamp":"1970-01-01T00:00:00Z"},null]"#);
    }

    #[test]
    fn a_value_of_another_kind_says_so() {
        let less = predicate("age", "<", &[Value::Int(3)]);
        assert_eq!(Seen::by(&less, Some(ValueRef::Str("x"))).text(), "is 'x', a string, but needs a number");
        assert_eq!(Seen::by(&less, Some(ValueRef::Cell("x"))).text(), "is 'x', a string, but needs a number");
        assert_eq!(Seen::by(&less, Some(ValueRef::Cell("02"))).text(), "is 2");
        assert_eq!(Seen::by(&less, Some(ValueRef::Null)).text(), "is absent");
        assert_eq!(Seen::by(&less, Some(ValueRef::Int(7))).text(), "is 7");
    }
}
