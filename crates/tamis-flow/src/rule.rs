//! Rules with windowed terms: each becomes an expression over the event and the values of its windows.

use std::collections::BTreeSet;

use tamis_core::ExpressionError;
use tamis_core::event::{Value, ValueRef};
use tamis_core::expr::{self, Expr, Outcome, Predicate};
use tamis_core::term::{Argument, Function, Term};

use crate::selection::windowed_attribute;
use crate::text::WINDOW_PREFIX;
use crate::window::AggregateId;

/// The expression with each placeholder of a windowed term replaced by the attribute of its aggregate.
///
/// An aggregate without rows is not told to the index, so that an event costs what it affects. An empty window
/// counts zero: predicates on counts say what they mean for an absent value.
pub(crate) fn over_aggregates(
    expression: &Expr,
    aggregates: &[(AggregateId, bool)],
) -> Result<Expr, ExpressionError> {
    rewritten(expression, aggregates, true)
}

/// `is_positive`: only AND, OR and AT LEAST are above, where *false* and *undefined* cannot be told apart.
fn rewritten(
    expression: &Expr,
    aggregates: &[(AggregateId, bool)],
    is_positive: bool,
) -> Result<Expr, ExpressionError> {
    let each = |children: &[Expr], is_positive: bool| {
        let children = children.iter().map(|child| rewritten(child, aggregates, is_positive));
        children.collect::<Result<Vec<_>, _>>()
    };
    Ok(match expression {
        Expr::Constant(outcome) => Expr::Constant(*outcome),
        Expr::Predicate(predicate) => over_aggregate(predicate, aggregates, is_positive)?,
        Expr::Not(child) => Expr::Not(Box::new(rewritten(child, aggregates, false)?)),
        Expr::And(children) => Expr::And(each(children, is_positive)?),
        Expr::Or(children) => Expr::Or(each(children, is_positive)?),
        Expr::Xor(children) => Expr::Xor(each(children, false)?),
        Expr::Xnor(children) => Expr::Xnor(each(children, false)?),
        Expr::AtLeast(least, children) => Expr::AtLeast(*least, each(children, is_positive)?),
    })
}

fn over_aggregate(
    predicate: &Predicate,
    aggregates: &[(AggregateId, bool)],
    is_positive: bool,
) -> Result<Expr, ExpressionError> {
    let replaced = |term: Term| Expr::Predicate(Predicate { term, ..predicate.clone() });
    let Some((id, counts)) = aggregate_of(&predicate.term, aggregates) else {
        return Ok(replaced(with_zeros(&predicate.term, aggregates)?));
    };
    let name = windowed_attribute(id);
    let tested = replaced(Term::attribute(&name));
    if !counts {
        return Ok(tested);
    }
    let of_zero = predicate.outcome(Some(ValueRef::Int(0)));
    Ok(match of_zero {
        // A test for presence would be looked at for every event, whether or not it affects the window. IS NULL is true
        // of what is absent, and needs one.
        Outcome::FALSE if is_positive && !predicate.outcome(None).can_be_true => tested,
        Outcome::TRUE => Expr::Or(vec![tested, expr::parse(&format!("`{name}` IS NULL"))?]),
        Outcome::FALSE => Expr::And(vec![tested, expr::parse(&format!("`{name}` IS NOT NULL"))?]),
        _ => tested,
    })
}

/// The aggregate that a term is.
fn aggregate_of(term: &Term, aggregates: &[(AggregateId, bool)]) -> Option<(AggregateId, bool)> {
    let Term::Attribute(name) = term else { return None };
    let number = name.strip_prefix(WINDOW_PREFIX)?.parse::<usize>().ok()?;
    aggregates.get(number).copied()
}

/// A term of aggregates, in which counts that are absent are zero.
fn with_zeros(term: &Term, aggregates: &[(AggregateId, bool)]) -> Result<Term, ExpressionError> {
    if let Some((id, counts)) = aggregate_of(term, aggregates) {
        let attribute = Term::attribute(&windowed_attribute(id));
        if !counts {
            return Ok(attribute);
        }
        let coalesce = Function::named("coalesce").expect("the language has it");
        return Term::computed(coalesce, vec![Argument::Term(attribute), Argument::Constant(Value::Int(0))]);
    }
    match term {
        Term::Attribute(_) => Ok(term.clone()),
        Term::Computed(computed) => {
            let arguments = computed.arguments().iter().map(|argument| match argument {
                Argument::Constant(value) => Ok(Argument::Constant(value.clone())),
                Argument::Term(inner) => with_zeros(inner, aggregates).map(Argument::Term),
            });
            Term::computed(computed.function(), arguments.collect::<Result<_, _>>()?)
        }
        Term::Boolean(_) => {
            let mut has_window = false;
            term.for_each_attribute(&mut |name| has_window |= name.starts_with(WINDOW_PREFIX));
            match has_window {
                true => Err(ExpressionError::new("a windowed term cannot stand inside a quantifier")
                    .with_hint("compare it outside: exists(items, i -> …) AND count(…) > 5")),
                false => Ok(term.clone()),
            }
        }
    }
}

/// The attributes of the event that an expression names.
pub(crate) fn attributes(expression: &Expr, found: &mut BTreeSet<String>) {
    expression.for_each_predicate(&mut |predicate| note_attributes(&predicate.term, found));
}

/// The attributes of the event that a term names.
pub(crate) fn note_attributes(term: &Term, found: &mut BTreeSet<String>) {
    term.for_each_attribute(&mut |name| {
        if !name.starts_with(WINDOW_PREFIX) {
            found.insert(name.to_string());
        }
    });
}
