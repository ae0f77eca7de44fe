//! Shared code of operators: counting their operands, and sets of scalars in canonical form.

use std::cmp::Ordering;

use crate::expr::limits::MAX_SET_MEMBERS;
use crate::value::Kind;
use crate::value::{Value, ValueRef};

pub fn is_scalar(value: &Value) -> bool {
    !matches!(value, Value::Array(_) | Value::Record | Value::Fields(_) | Value::Nested(_)) && !value.is_set()
}

/// Exactly one scalar, or NULL.
pub fn one_scalar(operator: &str, operands: Vec<Value>) -> Result<Vec<Value>, String> {
    match operands.as_slice() {
        [operand] if is_scalar(operand) => Ok(operands),
        [_] => Err(format!("{operator} takes a number, a string, a boolean or a timestamp")),
        _ => Err(format!("{operator} takes one operand, not {}", operands.len())),
    }
}

pub fn is_one_scalar(operands: &[Value]) -> bool {
    matches!(operands, [operand] if is_scalar(operand))
}

/// Exactly one string, or NULL.
pub fn one_string(operator: &str, operands: Vec<Value>) -> Result<Vec<Value>, String> {
    match operands.as_slice() {
        [Value::Str(_) | Value::Null] => Ok(operands),
        [other] => {
            let kind = other.kind().map_or("null", Kind::with_article);
            Err(format!("{operator} takes a string, not {kind}"))
        }
        _ => Err(format!("{operator} takes one operand, not {}", operands.len())),
    }
}

pub fn is_one_string(operands: &[Value]) -> bool {
    matches!(operands, [Value::Str(_) | Value::Null])
}

/// The canonical form of a set: scalars of one kind, sorted, each value once, then at most one NULL.
pub fn canonical_set(operator: &str, mut members: Vec<Value>) -> Result<Vec<Value>, String> {
    if members.len() > MAX_SET_MEMBERS {
        return Err(format!("a set may have at most {MAX_SET_MEMBERS} members"));
    }
    if members.iter().any(|member| !is_scalar(member)) {
        return Err(format!("the members of {operator} are numbers, strings, booleans or timestamps"));
    }
    let mut kinds = members.iter().filter_map(Value::kind);
    if let Some(first) = kinds.next()
        && let Some(other) = kinds.find(|kind| *kind != first)
    {
        return Err(format!("{operator} mixes {} and {}", first.with_article(), other.with_article()));
    }
    members.sort_by(order);
    members.dedup_by(|a, b| order(a, b).is_eq());
    Ok(members)
}

pub fn is_canonical_set(members: &[Value]) -> bool {
    let kind = members.first().and_then(Value::kind);
    members.iter().all(|member| is_scalar(member) && (member.kind() == kind || *member == Value::Null))
        && members.is_sorted_by(|a, b| order(a, b).is_lt())
}

/// The order inside a set: NULL is last.
fn order(a: &Value, b: &Value) -> Ordering {
    match (a, b) {
        (Value::Null, Value::Null) => Ordering::Equal,
        (Value::Null, _) => Ordering::Greater,
        (_, Value::Null) => Ordering::Less,
        _ => a.as_ref().compare(b.as_ref()).unwrap_or(Ordering::Equal),
    }
}

/// Splits a canonical set into its members and whether it holds NULL.
pub fn split_null(set: &[Value]) -> (&[Value], bool) {
    match set {
        [members @ .., Value::Null] => (members, true),
        members => (members, false),
    }
}

/// How many members are below a scalar of their kind, or, with `inclusive`, not above it.
pub fn count_below(members: &[Value], scalar: ValueRef<'_>, inclusive: bool) -> usize {
    members.partition_point(|member| match member.as_ref().compare(scalar) {
        Some(Ordering::Less) => true,
        Some(Ordering::Equal) => inclusive,
        _ => false,
    })
}

/// Whether a canonical set of scalars of the same kind holds this one.
pub fn holds(members: &[Value], scalar: ValueRef<'_>) -> bool {
    members.binary_search_by(|member| member.as_ref().compare(scalar).unwrap_or(Ordering::Less)).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_are_sorted_by_exact_value_with_null_last() {
        let two_53 = 1i64 << 53;
        let set = canonical_set(
            "IN",
            vec![
                Value::Null,
                Value::Float(f64::NAN),
                Value::Int(two_53 + 1),
                Value::Float(two_53 as f64),
                Value::Int(two_53),
                Value::Null,
            ],
        )
        .unwrap();
        assert_eq!(
            set,
            [Value::Float(two_53 as f64), Value::Int(two_53 + 1), Value::Float(f64::NAN), Value::Null]
        );
        assert!(is_canonical_set(&set));
        assert!(!is_canonical_set(&[Value::Int(2), Value::Int(1)]));
        assert!(!is_canonical_set(&[Value::Int(1), Value::Str("a".into())]));
        assert!(!is_canonical_set(&[Value::Null, Value::Int(1)]));
        assert!(is_canonical_set(&[]));
    }

    #[test]
    fn mixed_sets_are_refused() {
        let error = canonical_set("IN", vec![Value::Int(1), Value::Str("a".into())]).unwrap_err();
        assert_eq!(error, "IN mixes a number and a string");
    }
}
