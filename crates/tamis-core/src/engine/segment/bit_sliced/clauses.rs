//! A formula as clauses: all of them must hold, and each holds if one of its literals does.

use super::formula::{Formula, Literal};

pub(super) type Clause = Vec<Literal>;

/// The literals of all clauses of a rule are no more than this.
const MOST_LITERALS: usize = 64;

/// The clauses that together are a formula, or `None` if they are more than `most` or long.
pub(super) fn clauses(formula: &Formula, most: usize) -> Option<Vec<Clause>> {
    let clauses = match formula {
        Formula::True => vec![],
        Formula::False => vec![vec![]],
        Formula::Literal(literal) => vec![vec![literal.clone()]],
        Formula::And(parts) => {
            let mut all = vec![];
            for part in parts {
                all.extend(clauses(part, most)?);
                if all.len() > most {
                    return None;
                }
            }
            all
        }
        Formula::Or(parts) => {
            let mut all: Vec<Clause> = vec![vec![]];
            for part in parts {
                let further = clauses(part, most)?;
                if all.len() * further.len() > most {
                    return None;
                }
                let joined =
                    all.iter().flat_map(|clause| further.iter().filter_map(|more| either(clause, more)));
                all = joined.collect();
            }
            all
        }
    };
    (clauses.iter().map(Vec::len).sum::<usize>() <= MOST_LITERALS).then_some(clauses)
}

/// Clauses that hold whenever a formula does, at most so many: those that seem to hold most rarely.
pub(super) fn necessary_clauses(formula: &Formula, most: usize) -> Vec<Clause> {
    let mut clauses = match formula {
        Formula::True => vec![],
        Formula::False => vec![vec![]],
        Formula::Literal(literal) => vec![vec![literal.clone()]],
        Formula::And(parts) => parts.iter().flat_map(|part| necessary_clauses(part, most)).collect(),
        Formula::Or(parts) => {
            let parts: Vec<Vec<Clause>> = parts.iter().map(|part| necessary_clauses(part, most)).collect();
            let least = parts.iter().map(Vec::len).min().unwrap_or(0);
            let nth = |at: usize| {
                parts.iter().try_fold(vec![], |clause: Clause, clauses| either(&clause, &clauses[at]))
            };
            (0..least).filter_map(nth).collect()
        }
    };
    clauses.retain(|clause| clause.len() <= MOST_LITERALS);
    clauses.sort_by(|a, b| share(a).total_cmp(&share(b)));
    clauses.truncate(most);
    clauses
}

/// The clause that holds if one of two does; `None` if it always holds.
fn either(a: &Clause, b: &Clause) -> Option<Clause> {
    let literals = a.iter().chain(b).cloned().map(Formula::Literal).collect();
    match Formula::join(literals, false) {
        Formula::True => None,
        Formula::False => Some(vec![]),
        Formula::Literal(literal) => Some(vec![literal]),
        Formula::And(parts) | Formula::Or(parts) => {
            let literal = |part| match part {
                Formula::Literal(literal) => literal,
                _ => unreachable!("literals were joined"),
            };
            Some(parts.into_iter().map(literal).collect())
        }
    }
}

fn share(clause: &Clause) -> f64 {
    clause.iter().map(Literal::share).sum()
}
