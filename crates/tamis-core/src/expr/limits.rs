//! Limits on the size of an expression, for every input (text, JSON, builder, stored form).
//!
//! Trees are walked recursively when they are printed, normalised or dropped. The depth limit keeps a hostile expression
//! from overflowing the stack of a small thread.

use super::ast::{Expr, Predicate};
use crate::error::ExpressionError;
use crate::term::{NOW, STRINGS, Term};
use crate::value::Value;

/// Bytes of the text of one expression, as SQL or as JSON.
pub const MAX_TEXT_BYTES: usize = 16 << 20;

/// Levels of the tree, a single predicate being one; also levels of parentheses and NOT in text.
pub const MAX_DEPTH: usize = 256;

/// Predicates in one expression.
pub const MAX_PREDICATES: usize = 65_536;

/// Members of one set, as written: `x IN (…)`, `arrays_overlap(x, ARRAY(…))`.
pub const MAX_SET_MEMBERS: usize = 1_000_000;

/// Bytes of one string literal.
pub const MAX_STRING_BYTES: usize = 1 << 20;

/// Bytes of one attribute name, dots included.
pub const MAX_NAME_BYTES: usize = 1024;

/// Bytes that one compiled regular expression may take.
pub const MAX_REGEX_BYTES: usize = 1 << 20;

/// Checks an expression that was put together by hand. What [`parse`](super::parse), the JSON reader
/// and [`build`](super::build) return has passed already.
pub fn check_limits(expr: &Expr) -> Result<(), ExpressionError> {
    let mut predicates = 0;
    check_node(expr, 1, &mut predicates)
}

fn check_node(expr: &Expr, depth: usize, predicates: &mut usize) -> Result<(), ExpressionError> {
    if depth > MAX_DEPTH {
        return Err(too_deep());
    }
    match expr {
        Expr::Constant(_) => Ok(()),
        Expr::Predicate(predicate) => {
            *predicates += 1;
            if *predicates > MAX_PREDICATES {
                return Err(too_many_predicates());
            }
            check_predicate(predicate)
        }
        Expr::Not(inner) => check_node(inner, depth + 1, predicates),
        Expr::And(children)
        | Expr::Or(children)
        | Expr::Xor(children)
        | Expr::Xnor(children)
        | Expr::AtLeast(_, children) => {
            children.iter().try_for_each(|child| check_node(child, depth + 1, predicates))
        }
    }
}

fn check_predicate(predicate: &Predicate) -> Result<(), ExpressionError> {
    check_term(&predicate.term)?;
    check_set_size(predicate.operands.len())?;
    predicate.operands.iter().try_for_each(check_value)
}

pub(super) fn check_term(term: &Term) -> Result<(), ExpressionError> {
    match term {
        Term::Attribute(name) if **name == *NOW => return Ok(()),
        Term::Attribute(name) => return check_name(name),
        Term::Computed(_) | Term::Boolean(_) => {}
    }
    let mut checked = Ok(());
    term.for_each_attribute(&mut |name| {
        if checked.is_ok() && **name != *STRINGS {
            checked = check_name(name);
        }
    });
    checked
}

pub fn check_name(name: &str) -> Result<(), ExpressionError> {
    match name.len() {
        0 => Err(ExpressionError::new("an attribute needs a name")),
        _ if name == NOW => Err(ExpressionError::new(format!("no attribute can be called {NOW}"))
            .with_hint("without backquotes it is the moment of the query")),
        _ if name == STRINGS => Err(ExpressionError::new(format!("no attribute can be called {STRINGS}"))
            .with_hint(format!(
                "all strings of the event stand in a quantifier: ANY({STRINGS}) ILIKE '%a%'"
            ))),
        1..=MAX_NAME_BYTES => Ok(()),
        bytes => Err(ExpressionError::new(format!(
            "an attribute name of {bytes} bytes is longer than the limit of {MAX_NAME_BYTES}"
        ))),
    }
}

pub(super) fn check_set_size(members: usize) -> Result<(), ExpressionError> {
    if members <= MAX_SET_MEMBERS {
        return Ok(());
    }
    Err(ExpressionError::new(format!("a set may have at most {MAX_SET_MEMBERS} members"))
        .with_hint("split it: x IN (…) OR x IN (…)"))
}

pub(super) fn check_value(value: &Value) -> Result<(), ExpressionError> {
    match value {
        Value::Str(text) => check_string_size(text.len()),
        _ => Ok(()),
    }
}

pub(super) fn check_string_size(bytes: usize) -> Result<(), ExpressionError> {
    if bytes <= MAX_STRING_BYTES {
        return Ok(());
    }
    Err(ExpressionError::new(format!(
        "a string literal of {bytes} bytes is longer than the limit of {MAX_STRING_BYTES}"
    )))
}

pub(super) fn check_text_size(bytes: usize) -> Result<(), ExpressionError> {
    if bytes <= MAX_TEXT_BYTES {
        return Ok(());
    }
    Err(ExpressionError::new(format!(
        "an expression of {bytes} bytes is longer than the limit of {MAX_TEXT_BYTES}"
    )))
}

pub(super) fn too_deep() -> ExpressionError {
    ExpressionError::new(format!("the expression is nested deeper than {MAX_DEPTH} levels")).with_hint(
        "a AND b AND c is one level, ((a AND b) AND c) is two: drop parentheses that change nothing",
    )
}

pub(super) fn term_too_deep() -> ExpressionError {
    ExpressionError::new(format!("functions are nested deeper than {} levels", crate::term::MAX_DEPTH))
        .with_hint("signs and parentheses inside a term count, too")
}

pub(super) fn too_many_predicates() -> ExpressionError {
    ExpressionError::new(format!("the expression has more than {MAX_PREDICATES} predicates"))
        .with_hint("x = 1 OR x = 2 OR … is one predicate when written x IN (1, 2, …)")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expr::ast::Outcome;

    fn nested(levels: usize) -> Expr {
        (1..levels).fold(Expr::Constant(Outcome::TRUE), |inner, _| Expr::Not(Box::new(inner)))
    }

    #[test]
    fn depth_is_counted_from_one() {
        assert!(check_limits(&nested(MAX_DEPTH)).is_ok());
        assert!(check_limits(&nested(MAX_DEPTH + 1)).unwrap_err().message.contains("deeper than 256"));
    }
}
