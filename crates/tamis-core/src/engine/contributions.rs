//! The contribution of each attribute to the relevance of every match, for scores computed by the caller's
//! function.

use super::contract::{Location, Version, Work, Workspace};
use crate::error::Result;
use crate::event::{Event, TermId};
use crate::expr::Predicate;
use crate::query::score::weight_of;
use crate::query::{Measure, Query, Ranking, Score, relevance};

/// The matches of one event, sorted by id, with columns of numbers.
#[derive(Debug, Default)]
pub struct Contributions {
    pub locations: Vec<Location>,
    pub priorities: Vec<f64>,
    pub relevances: Vec<f64>,
    /// One column per attribute that contributes anything, in the order of their numbers.
    pub terms: Vec<(TermId, Vec<f64>)>,
}

impl dyn Version + '_ {
    /// The matches of a query, and what attributes contribute; those outside its dimensions count 0. The
    /// contribution of an attribute is the relevance of the match with all other attributes left out.
    pub fn contributions(
        &self,
        query: &Query,
        event: &Event<'_>,
        space: &mut Workspace,
    ) -> Result<(Contributions, Work)> {
        let terms = self.terms();
        let dimensions = query.ranking().and_then(|ranking| ranking.dimensions.clone());
        let ranking = Ranking { dimensions, ..Ranking::new(0, Score::Relevance) };
        let measure = Measure::new(&ranking, event, terms);
        let Measure::Relevance(scale) = &measure else { unreachable!("the score is relevance") };
        let (locations, work) = self.matches(event, &query.filter(), space);
        let mut found = Contributions::default();
        let mut columns: Vec<Option<Vec<f64>>> = vec![None; terms.len()];
        for (at, location) in locations.iter().enumerate() {
            let subscription = self.subscription(*location)?;
            found.priorities.push(subscription.priority);
            found.relevances.push(measure.of(&subscription, event, terms).unwrap_or(0.0));
            let mut named: Vec<TermId> = vec![];
            subscription.expression.for_each_predicate(&mut |predicate| {
                named.extend(terms.find(&predicate.term));
            });
            named.sort_unstable();
            named.dedup();
            for attribute in named {
                let amount = |predicate: &Predicate| {
                    let counts = terms.find(&predicate.term) == Some(attribute);
                    if counts {
                        weight_of(predicate, &subscription.weights) * scale.factor(attribute)
                    } else {
                        0.0
                    }
                };
                let value_of = |name: &str| event.get(terms.get(name)?);
                let part = relevance(&subscription.expression, &value_of, &amount).unwrap_or(0.0);
                if part != 0.0 {
                    let column = &mut columns[attribute.0 as usize];
                    column.get_or_insert_with(|| vec![0.0; locations.len()])[at] = part;
                }
            }
        }
        let numbered = columns.into_iter().enumerate();
        found.terms =
            numbered.filter_map(|(attribute, column)| Some((TermId(attribute as u32), column?))).collect();
        found.locations = locations;
        Ok((found, work))
    }
}
