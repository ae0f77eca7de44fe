//! Creates predicates. Every input (text, JSON, builder) uses these functions, so that all of them check the same things
//! and write the same predicate in the same way.

use super::ast::{Expr, Outcome, Predicate};
use super::limits::{check_set_size, check_term, check_value};
use super::operands::Operands;
use super::operators::Operator;
use super::quantifier::{Quantified, Quantifier};
use crate::error::ExpressionError;
use crate::term::{Argument, Term};
use crate::value::{Kind, Value};

/// A checked predicate, its operands in canonical form.
///
/// `BETWEEN` with a NULL end is not one predicate and becomes `x >= low AND x <= high`, or its negation.
/// The negation of an operator that has no negated form, such as `<`, becomes `NOT`, as it is in text.
///
/// ```
/// use tamis_core::event::Value;
/// use tamis_core::expr::{Expr, Operator, build::predicate};
///
/// let Ok(Expr::Predicate(p)) = predicate("age", Operator::IN, false, vec![Value::Int(2), Value::Int(1)]) else {
///     unreachable!()
/// };
/// assert_eq!(*p.operands, [Value::Int(1), Value::Int(2)]);
/// assert!(predicate("age", Operator::LESS, false, vec![]).is_err());
/// ```
pub fn predicate(
    term: impl Into<Term>,
    operator: Operator,
    negated: bool,
    operands: Vec<Value>,
) -> Result<Expr, ExpressionError> {
    let term = term.into();
    check_term(&term)?;
    check_set_size(operands.len())?;
    operands.iter().try_for_each(check_value)?;
    if operator == Operator::BETWEEN && operands.len() == 2 && operands.contains(&Value::Null) {
        return half_open_between(term, negated, operands);
    }
    if matches!(operator, Operator::ARRAY_CONTAINS | Operator::ARRAYS_OVERLAP)
        && let Some(kind) = term.kind().filter(|kind| *kind != Kind::Array)
    {
        return of_elements(&term, kind, operator, negated, operands);
    }
    if let (Operator::XPATH, [Value::Str(path)]) = (operator, operands.as_slice()) {
        check_path(path)?;
    }
    let operands = operator.rules().check(operands).map_err(ExpressionError::new)?;
    Ok(checked(term, operator, negated, operands.into()))
}

/// The same with one operand. Nearly all predicates compare with a number, for which no list is made.
pub fn comparison(
    term: Term,
    operator: Operator,
    negated: bool,
    operand: Value,
) -> Result<Expr, ExpressionError> {
    let is_number = matches!(operand, Value::Int(_) | Value::Float(_));
    let is_attribute = matches!(term, Term::Attribute(_));
    if is_number && is_attribute && operator.rules().is_canonical(std::slice::from_ref(&operand)) {
        check_term(&term)?;
        return Ok(checked(term, operator, negated, Operands::One(operand)));
    }
    predicate(term, operator, negated, vec![operand])
}

fn checked(term: Term, operator: Operator, negated: bool, operands: Operands) -> Expr {
    let has_negated_form = operator.rules().syntax().has_negated_form();
    let built = Expr::Predicate(Predicate {
        term,
        operator,
        negated: negated && has_negated_form,
        operands,
        weight: None,
    });
    if negated && !has_negated_form { Expr::Not(Box::new(built)) } else { built }
}

/// `array_contains(lower(tags), 'new')`: a function of text, asked of each element, is a quantifier. Of other terms that are no
/// arrays the predicate would never be true or false.
fn of_elements(
    term: &Term,
    kind: Kind,
    operator: Operator,
    negated: bool,
    operands: Vec<Value>,
) -> Result<Expr, ExpressionError> {
    let operands = operator.rules().check(operands).map_err(ExpressionError::new)?;
    let array = match term {
        Term::Computed(computed) if matches!(computed.function().name(), "lower" | "upper") => {
            match computed.arguments() {
                [Argument::Term(Term::Attribute(name))] => Some(name),
                _ => None,
            }
        }
        _ => None,
    };
    let Some(array) = array else {
        let message =
            format!("{} takes an array, but {term} is {}", operator.rules().name(), kind.with_article());
        return Err(
            ExpressionError::new(message).with_hint("look at each element: exists(tags, t -> length(t) = 3)")
        );
    };
    // Nothing is in an empty set, and null elements do not matter.
    if operands.is_empty() {
        return predicate(Term::Attribute(array.clone()), operator, negated, operands);
    }
    let element = term.renamed(&|_| ELEMENT.into())?;
    let test = if operator == Operator::ARRAY_CONTAINS { Operator::EQUAL } else { Operator::IN };
    let body = predicate(element, test, false, operands)?;
    predicate(Quantified::term(Quantifier::Exists, array, ELEMENT, body)?, Operator::TRUTH, negated, vec![])
}

/// The variable of quantifiers that were not written as such.
const ELEMENT: &str = "element";

/// Says what is wrong with a path, and what would work.
fn check_path(path: &str) -> Result<(), ExpressionError> {
    tamis_xpath::Path::parse(path).map(|_| ()).map_err(|fault| {
        let message =
            format!("in the path, at character {}: {}", character(path, fault.offset), fault.message);
        match fault.hint {
            Some(hint) => ExpressionError::new(message).with_hint(hint),
            None => ExpressionError::new(message),
        }
    })
}

/// The number of the character at this byte, from 1.
fn character(text: &str, byte: usize) -> usize {
    text.char_indices().take_while(|(at, _)| *at < byte).count() + 1
}

fn half_open_between(term: Term, negated: bool, operands: Vec<Value>) -> Result<Expr, ExpressionError> {
    let halves = [Operator::GREATER_OR_EQUAL, Operator::LESS_OR_EQUAL]
        .into_iter()
        .zip(operands)
        .map(|(operator, end)| predicate(term.clone(), operator, false, vec![end]))
        .collect::<Result<Vec<_>, _>>()?;
    let both = Expr::And(halves);
    Ok(if negated { Expr::Not(Box::new(both)) } else { both })
}

/// Refuses a term that stands for a truth and has no values that are true or false: text cannot write it.
pub fn check_truth(expr: &Expr) -> Result<(), ExpressionError> {
    match expr {
        Expr::Predicate(Predicate { operator: Operator::TRUTH, term, .. }) => match term.kind() {
            Some(kind) if kind != Kind::Bool => {
                let message = format!("{term} is {}, which is neither true nor false", kind.with_article());
                Err(ExpressionError::new(message).with_hint(format!("compare it: {term} = …")))
            }
            _ => Ok(()),
        },
        _ => Ok(()),
    }
}

/// `AT LEAST n OF (…)`. Of no child less than none is asked, and more than all are never true.
///
/// ```
/// use tamis_core::expr::{build::at_least, parse};
/// let children = || ["a", "b", "c"].map(|name| parse(name).unwrap()).to_vec();
/// assert_eq!(at_least(2, children()).to_string(), "AT LEAST 2 OF (a, b, c)");
/// assert_eq!(at_least(4, children()).to_string(), "FALSE");
/// ```
pub fn at_least(least: usize, children: Vec<Expr>) -> Expr {
    match least {
        0 => Expr::Constant(Outcome::TRUE),
        least if least > children.len() => Expr::Constant(Outcome::FALSE),
        least => Expr::AtLeast(least, children),
    }
}

/// `AT MOST n OF (…)`: not at least one more.
pub fn at_most(most: usize, children: Vec<Expr>) -> Expr {
    match at_least(most.saturating_add(1), children) {
        Expr::Constant(outcome) => Expr::Constant(!outcome),
        more => Expr::Not(Box::new(more)),
    }
}

/// `EXACTLY n OF (…)`: at least and at most that many.
pub fn exactly(count: usize, children: Vec<Expr>) -> Expr {
    match (at_least(count, children.clone()), at_most(count, children)) {
        (Expr::Constant(Outcome::TRUE), most) => most,
        (least, Expr::Constant(Outcome::TRUE)) => least,
        (never @ Expr::Constant(_), _) => never,
        (least, most) => Expr::And(vec![least, most]),
    }
}

/// The same expression with a weight, `(age > 30)^0.4`. Only a predicate without one can take it.
pub fn boost(expr: Expr, weight: f64) -> Result<Expr, ExpressionError> {
    if !weight.is_finite() || weight < 0.0 {
        let message = format!("a weight of {weight} is refused");
        return Err(ExpressionError::new(message).with_hint("weights are finite and not negative"));
    }
    match expr {
        Expr::Predicate(predicate) if predicate.weight.is_some() => {
            Err(ExpressionError::new("the predicate has a weight already").with_hint("keep one of them"))
        }
        Expr::Predicate(predicate) => {
            // The sum turns -0.0 into 0.0.
            Ok(Expr::Predicate(Predicate { weight: Some(weight + 0.0), ..predicate }))
        }
        Expr::Not(_) => Err(ExpressionError::new("only a predicate can have a weight")
            .with_hint("weigh the predicate inside: NOT (x > 1)^0.4")),
        _ => Err(ExpressionError::new("only a predicate can have a weight")
            .with_hint("weigh each predicate by itself: (x > 1)^0.4 AND (y > 2)^0.4")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expr::limits::{MAX_NAME_BYTES, MAX_STRING_BYTES};

    fn between(negated: bool, low: Value, high: Value) -> Result<Expr, ExpressionError> {
        predicate("x", Operator::BETWEEN, negated, vec![low, high])
    }

    #[test]
    fn between_with_a_null_end_is_two_comparisons() {
        let low = predicate("x", Operator::GREATER_OR_EQUAL, false, vec![Value::Int(1)]).unwrap();
        let high = predicate("x", Operator::LESS_OR_EQUAL, false, vec![Value::Null]).unwrap();
        let both = Expr::And(vec![low, high]);
        assert_eq!(between(false, Value::Int(1), Value::Null).unwrap(), both);
        assert_eq!(between(true, Value::Int(1), Value::Null).unwrap(), Expr::Not(Box::new(both)));
        assert!(matches!(between(true, Value::Int(1), Value::Int(2)), Ok(Expr::Predicate(p)) if p.negated));
        assert!(between(false, Value::Int(1), Value::Str("a".into())).is_err());
    }

    /// Also what is no number, no comparison, or refused.
    #[test]
    fn one_operand_makes_the_same_predicate_with_and_without_a_list() {
        let values = [
            Value::Int(-3),
            Value::Float(f64::NAN),
            Value::Bool(true),
            Value::Null,
            Value::Str("a".into()),
            Value::Str("x".repeat(MAX_STRING_BYTES + 1).into()),
            Value::Array(vec![Value::Int(1)]),
        ];
        let names = ["x".into(), String::new(), "x".repeat(MAX_NAME_BYTES + 1)];
        for operator in (0..=u8::MAX).map_while(Operator::from_code) {
            for (value, name) in values.iter().flat_map(|value| names.iter().map(move |name| (value, name))) {
                for negated in [false, true] {
                    let term = || Term::attribute(name);
                    let alone = comparison(term(), operator, negated, value.clone());
                    let listed = predicate(term(), operator, negated, vec![value.clone()]);
                    assert_eq!(format!("{alone:?}"), format!("{listed:?}"), "{operator:?} {value:?} {name}");
                }
            }
        }
    }

    #[test]
    fn names_and_operands_are_checked() {
        let equal = |name: &str, value| predicate(name, Operator::EQUAL, false, vec![value]);
        assert!(equal("", Value::Int(1)).unwrap_err().message.contains("needs a name"));
        assert!(equal(&"x".repeat(MAX_NAME_BYTES), Value::Int(1)).is_ok());
        assert!(equal(&"x".repeat(MAX_NAME_BYTES + 1), Value::Int(1)).is_err());
        let long = Value::Str("x".repeat(MAX_STRING_BYTES + 1).into());
        assert!(equal("x", long).unwrap_err().message.contains("longer than the limit"));
        assert!(equal("x", Value::Array(vec![])).is_err());
    }

    #[test]
    fn weights_belong_to_predicates() {
        let truth = || predicate("x", Operator::TRUTH, false, vec![]).unwrap();
        assert!(matches!(boost(truth(), 0.4), Ok(Expr::Predicate(p)) if p.weight == Some(0.4)));
        for refused in [f64::NAN, f64::INFINITY, -0.1] {
            assert!(boost(truth(), refused).is_err());
        }
        assert!(boost(boost(truth(), 1.0).unwrap(), 2.0).is_err());
        assert!(boost(Expr::Not(Box::new(truth())), 1.0).unwrap_err().hint.unwrap().contains("NOT (x"));
        assert!(boost(Expr::And(vec![truth(), truth()]), 1.0).is_err());
    }
}
