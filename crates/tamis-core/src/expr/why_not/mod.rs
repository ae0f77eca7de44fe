//! The fewest predicates that would have to change for an expression to become true.
//!
//! A predicate that occurs twice changes in both places, also as `x < 3` and `x >= 3`. Different predicates
//! count as independent, even on one attribute.

mod search;

use serde_json::json;

use self::search::Search;
use super::ast::{Expr, Predicate};
use super::explanation_text::{Seen, opposite, predicate_text, requirement};
use crate::value::ValueRef;

/// Nodes that one search may look at: a few tens of milliseconds.
const BUDGET: usize = 4_000_000;

/// What stands between an event and an expression.
#[derive(Clone, Debug, PartialEq)]
pub enum WhyNot {
    /// Nothing: it is true.
    Matches,
    /// These predicates.
    Changes {
        changes: Vec<Change>,
        /// No smaller set would do. Otherwise the search was cut short and a smaller one may exist.
        is_smallest: bool,
    },
    /// No change of any predicates helps: `x = 1 AND FALSE`, `x = 1 AND x != 1`.
    Impossible,
    /// The search was cut short before it found any answer.
    Unknown,
}

/// A predicate that has to change.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// As it is written at the first of its places.
    pub predicate: Predicate,
    /// What it has to become.
    pub becomes: bool,
    /// What the event has for its attribute now.
    pub seen: Seen,
    /// Its places: for each, which child to take at each level from the root.
    pub paths: Vec<Vec<usize>>,
}

impl Change {
    /// `age is 20; needs to be >= 22`.
    pub fn text(&self) -> String {
        let needed = if self.becomes { self.predicate.clone() } else { opposite(&self.predicate) };
        format!("{} {}; needs {}", self.predicate.term.name(), self.seen.text(), requirement(&needed))
    }
}

impl WhyNot {
    /// `answer` is `matches`, `changes`, `impossible` or `unknown`; `changes` come with `is_smallest`.
    pub fn to_json(&self) -> serde_json::Value {
        match self {
            WhyNot::Matches => json!({"answer": "matches"}),
            WhyNot::Impossible => json!({"answer": "impossible"}),
            WhyNot::Unknown => json!({"answer": "unknown"}),
            WhyNot::Changes { changes, is_smallest } => {
                let change = |change: &Change| {
                    json!({
                        "predicate": predicate_text(&change.predicate),
                        "attribute": change.predicate.term.name(),
                        "value": change.seen.value_json(),
                        "becomes": change.becomes,
                        "text": change.text(),
                        "paths": change.paths,
                    })
                };
                let changes: Vec<_> = changes.iter().map(change).collect();
                json!({"answer": "changes", "changes": changes, "is_smallest": is_smallest})
            }
        }
    }
}

/// Finds the fewest predicates that would have to change for `expr` to become true. `value_of` is
/// that of [`evaluate`](super::eval::evaluate).
pub fn why_not<'a>(expr: &Expr, value_of: &impl Fn(&str) -> Option<ValueRef<'a>>) -> WhyNot {
    why_not_within(BUDGET, expr, value_of)
}

fn why_not_within<'a>(
    budget: usize,
    expr: &Expr,
    value_of: &impl Fn(&str) -> Option<ValueRef<'a>>,
) -> WhyNot {
    let mut search = Search::new(expr, value_of, budget);
    search.run();
    match search.answer() {
        Some(changes) if changes.is_empty() => WhyNot::Matches,
        Some(changed) => {
            let changes = changed.into_iter().map(|(variable, becomes)| {
                let predicate = search.written(variable);
                Change {
                    predicate: predicate.clone(),
                    becomes,
                    seen: predicate.term.with_value(value_of, |value| Seen::by(predicate, value)),
                    paths: search.paths(variable).to_vec(),
                }
            });
            WhyNot::Changes { changes: changes.collect(), is_smallest: search.is_complete() }
        }
        None if search.is_complete() => WhyNot::Impossible,
        None => WhyNot::Unknown,
    }
}

#[cfg(test)]
mod tests;
