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
            // Parts of one clause are one clause together; only the others multiply.
            let (mut literals, mut several, mut alternatives) = (vec![], vec![], 1);
            for part in parts {
                let mut of_part = clauses(part, most)?;
                alternatives *= of_part.len();
                match &mut of_part[..] {
                    [only] => literals.append(only),
                    _ => several.push(of_part),
                }
                if alternatives > most || literals.len() > MOST_LITERALS {
                    return None;
                }
            }
            let mut all: Vec<Clause> = any_of(literals).into_iter().collect();
            for further in several {
                let join = |clause: &Clause, more: &Clause| any_of(clause.iter().chain(more).cloned());
                all = all
                    .iter()
                    .flat_map(|clause| further.iter().filter_map(|more| join(clause, more)))
                    .collect();
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
                let literals = || parts.iter().flat_map(|clauses| &clauses[at]);
                // Many literals may be few in the end, but need not be looked at for that.
                any_of((literals().count() <= 4 * MOST_LITERALS).then(|| literals().cloned())?)
            };
            (0..least).filter_map(nth).collect()
        }
    };
    clauses.retain(|clause| clause.len() <= MOST_LITERALS);
    clauses.sort_by_cached_key(|clause| in_order(clause.iter().map(odds).sum()));
    clauses.truncate(most);
    clauses
}

/// The clause that holds if one of these literals does; `None` if it always holds.
fn any_of(literals: impl IntoIterator<Item = Literal>) -> Option<Clause> {
    match Formula::join(literals.into_iter().map(Formula::Literal).collect(), false) {
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
