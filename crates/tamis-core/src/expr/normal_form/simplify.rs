//! AND and OR of forms: flattened, constants folded, duplicates and absorbed children removed, sorted.

use super::form::Form;
use super::literals::{Settled, settle_and, settle_or};
use crate::expr::atoms::{AtomTable, Literal};

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Connective {
    And,
    Or,
}

/// Joins forms. Sets `point_only` when an interval could tell the result from what was joined.
pub(super) fn connect(
    connective: Connective,
    mut forms: Vec<Form>,
    atoms: &AtomTable,
    point_only: &mut bool,
) -> Form {
    let (neutral, deciding) = match connective {
        Connective::And => (Form::True, Form::False),
        Connective::Or => (Form::False, Form::True),
    };
    flatten(connective, &mut forms);
    forms.retain(|form| *form != neutral);
    if forms.contains(&deciding) {
        return deciding;
    }
    forms.sort_unstable();
    forms.dedup();

    // Literals sort before everything that is left.
    let literal_count = forms.partition_point(|form| matches!(form, Form::Literal(_)));
    if literal_count > 1 {
        let literals = forms[..literal_count].iter().map(|form| match form {
            Form::Literal(literal) => *literal,
            _ => unreachable!("counted as literals"),
        });
        let settled = match connective {
            Connective::And => settle_and(literals, atoms),
            Connective::Or => settle_or(literals, atoms),
        };
        *point_only |= settled.point_only;
        if settled.decided {
            return deciding;
        }
        absorb(connective, &mut forms, literal_count);
        drop_redundant(&mut forms, settled);
    } else {
        absorb(connective, &mut forms, literal_count);
    }

    match forms.len() {
        0 => neutral,
        1 => forms.pop().expect("there is one"),
        _ => match connective {
            Connective::And => Form::And(forms),
            Connective::Or => Form::Or(forms),
        },
    }
}

/// Puts the children of nested nodes of the same connective in their place. One level is enough:
/// such a node has none of its own.
fn flatten(connective: Connective, forms: &mut Vec<Form>) {
    for at in 0..forms.len() {
        match (&mut forms[at], connective) {
            (Form::And(nested), Connective::And) | (Form::Or(nested), Connective::Or) => {
                let mut nested = std::mem::take(nested);
                forms[at] = nested.pop().expect("a connective has children");
                forms.append(&mut nested);
            }
            _ => {}
        }
    }
}

/// `a AND (a OR b)` is `a`, and so is `a OR (a AND b)`.
fn absorb(connective: Connective, forms: &mut Vec<Form>, literal_count: usize) {
    let (literals, composite) = forms.split_at(literal_count);
    let is_absorbed = |form: &Form| match (form, connective) {
        (Form::Or(children), Connective::And) | (Form::And(children), Connective::Or) => children
            .iter()
            .take_while(|child| matches!(child, Form::Literal(_)))
            .any(|child| literals.binary_search(child).is_ok()),
        _ => false,
    };
    if literals.is_empty() || !composite.iter().any(is_absorbed) {
        return;
    }
    let absorbed: Vec<bool> = composite.iter().map(is_absorbed).collect();
    let mut is_kept = std::iter::repeat_n(true, literal_count).chain(absorbed.into_iter().map(|gone| !gone));
    forms.retain(|_| is_kept.next().expect("one answer for each form"));
}

fn drop_redundant(forms: &mut Vec<Form>, settled: Settled) {
    let mut redundant: Vec<Literal> = settled.redundant;
    if redundant.is_empty() {
        return;
    }
    redundant.sort_unstable();
    forms.retain(|form| match form {
        Form::Literal(literal) => redundant.binary_search(literal).is_err(),
        _ => true,
    });
}
