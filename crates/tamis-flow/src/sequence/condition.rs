//! Conditions of steps: the part that an index decides for a row alone, and the part that refers to earlier
//! steps.

use std::collections::BTreeSet;
use std::sync::Arc;

use tamis_core::event::{Value, ValueRef};
use tamis_core::expr::{Expr, evaluate};
use tamis_core::term::{NOW, STRINGS};
use tamis_core::{ExpressionError, Result};

use super::machine::Row;
use super::taken::TakenRow;
use crate::rule::attributes;
use crate::selection::{SelectionId, Selections};
use crate::text::StepText;

#[derive(Debug)]
pub(crate) struct Condition {
    /// The part that an index decides, if any.
    pub selection: Option<SelectionId>,
    residual: Option<Expr>,
    /// The earlier steps that the residual speaks of, by name.
    speaks_of: Vec<(Arc<str>, usize)>,
    /// The name of the step itself, which stands for the row.
    own: Option<Arc<str>>,
}

impl Condition {
    /// The condition of step `at`, or with `is_absence` that of what must not happen before it.
    pub fn new(
        expression: &Expr,
        steps: &[StepText],
        at: usize,
        is_absence: bool,
        selections: &mut Selections,
    ) -> Result<Self> {
        let own = if is_absence { None } else { steps[at].name.as_deref() };
        let (mut fixed, mut residual, mut speaks_of) = (vec![], vec![], BTreeSet::new());
        let children = match expression {
            Expr::And(children) => children.clone(),
            other => vec![other.clone()],
        };
        for child in children {
            let mut names = BTreeSet::new();
            attributes(&child, &mut names);
            let mut speaks_of_steps = false;
            for name in names {
                let Some((step, _)) = name.split_once('.') else { continue };
                let known = steps[..at].iter().position(|known| known.name.as_deref() == Some(step));
                speaks_of.extend(known.map(|known| (Arc::from(step), known)));
                speaks_of_steps |= known.is_some() || own == Some(step);
            }
            if speaks_of_steps { residual.push(child) } else { fixed.push(child) }
        }
        let selection = joined(fixed).map(|fixed| selections.acquire(&fixed)).transpose()?;
        Ok(Self {
            selection,
            residual: joined(residual),
            speaks_of: speaks_of.into_iter().collect(),
            own: own.map(Arc::from),
        })
    }

    /// The earlier steps whose rows it looks at.
    pub fn referenced(&self) -> impl Iterator<Item = usize> {
        self.speaks_of.iter().map(|(_, step)| *step)
    }

    /// Whether an index does not decide all of it.
    pub fn has_rest(&self) -> bool {
        self.residual.is_some()
    }

    /// Whether the row passes what an index decides of it.
    pub fn is_possible(&self, row: &Row<'_>) -> bool {
        self.selection.is_none_or(|selection| row.selected.binary_search(&selection).is_ok())
    }

    /// Whether the rest of it is true. `last` says which row an earlier step took last.
    pub fn rest_holds<'t>(&self, row: &Row<'_>, last: impl Fn(usize) -> Option<&'t TakenRow>) -> bool {
        let Some(residual) = &self.residual else { return true };
        let value_of = |name: &str| {
            if name == NOW {
                return Some(ValueRef::Timestamp(row.time));
            }
            if name == STRINGS {
                return Some(row.record.strings().as_ref());
            }
            if let Some((step, attribute)) = name.split_once('.') {
                if self.own.as_deref() == Some(step) {
                    return row.record.get(attribute).map(Value::as_ref);
                }
                if let Some((_, at)) = self.speaks_of.iter().find(|(known, _)| &**known == step) {
                    return last(*at)?.record.get(attribute).map(Value::as_ref);
                }
            }
            row.record.get(name).map(Value::as_ref)
        };
        evaluate(residual, &value_of).can_be_true
    }
}

/// Refuses a sequence with a step that speaks of a later one.
pub(crate) fn refuse_later_steps(steps: &[StepText]) -> Result<()> {
    for (at, step) in steps.iter().enumerate() {
        for expression in [Some(&step.condition), step.absent.as_ref()].into_iter().flatten() {
            if let Some(later) = first_spoken_of(expression, &steps[at + 1..]) {
                let error = ExpressionError::new(format!("a step cannot speak of the later step {later}"));
                return Err(error.with_hint("compare in the later step instead").into());
            }
        }
    }
    Ok(())
}

/// The first of these steps that an expression speaks of.
fn first_spoken_of<'s>(expression: &Expr, steps: &'s [StepText]) -> Option<&'s str> {
    let mut names = BTreeSet::new();
    attributes(expression, &mut names);
    let spoken: Vec<&str> = names.iter().filter_map(|name| Some(name.split_once('.')?.0)).collect();
    steps.iter().filter_map(|step| step.name.as_deref()).find(|name| spoken.contains(name))
}

fn joined(mut children: Vec<Expr>) -> Option<Expr> {
    match children.len() {
        0 => None,
        1 => children.pop(),
        _ => Some(Expr::And(children)),
    }
}
