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
pub(super) fn necessary_clauses(
    formula: &Formula,
    most: usize,
    odds: &impl Fn(&Literal) -> f64,
) -> Vec<Clause> {
    let mut clauses = match formula {
        Formula::True => vec![],
        Formula::False => vec![vec![]],
        Formula::Literal(literal) => vec![vec![literal.clone()]],
        Formula::And(parts) => parts.iter().flat_map(|part| necessary_clauses(part, most, odds)).collect(),
        Formula::Or(parts) => {
            let parts: Vec<Vec<Clause>> =
                parts.iter().map(|part| necessary_clauses(part, most, odds)).collect();
            let least = parts.iter().map(Vec::len).min().unwrap_or(0);
            let nth = |at: usize| {
                parts.iter().try_fold(vec![], |clause: Clause, clauses| either(&clause, &clauses[at]))
            };
            (0..least).filter_map(nth).collect()
        }
    };
    clauses.retain(|clause| clause.len() <= MOST_LITERALS);
    clauses.sort_by_cached_key(|clause| in_order(clause.iter().map(odds).sum()));
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

/// A guess at how often literals of conjunctions hold.
pub(super) struct Odds {
    /// By attribute: how many of the formulas ask for it. So many events may have it.
    presence: Vec<f64>,
}

impl Odds {
    pub fn new<'a>(formulas: impl ExactSizeIterator<Item = &'a Formula>, attributes: usize) -> Self {
        let mut presence = vec![0.0; attributes];
        let each = 1.0 / formulas.len() as f64;
        for formula in formulas {
            let mut asked = vec![];
            attributes_of(formula, &mut asked);
            asked.sort_unstable();
            asked.dedup();
            asked.into_iter().for_each(|attribute| presence[attribute as usize] += each);
        }
        Self { presence }
    }

    pub fn of_literal(&self, literal: &Literal) -> f64 {
        let presence = self.presence[literal.attribute as usize];
        literal.share_of_absent() * (1.0 - presence) + literal.share_of_present() * presence
    }
}

/// An integer that sorts like a number that is not negative.
pub(super) fn in_order(odds: f64) -> u64 {
    odds.abs().to_bits()
}

fn attributes_of(formula: &Formula, asked: &mut Vec<u32>) {
    match formula {
        Formula::True | Formula::False => {}
        Formula::Literal(literal) => asked.push(literal.attribute),
        Formula::And(parts) | Formula::Or(parts) => parts.iter().for_each(|part| attributes_of(part, asked)),
    }
}
