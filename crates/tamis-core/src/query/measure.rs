//! A score prepared for one event: names resolved and weights looked up, ready to be computed for many subscriptions.

use super::bounds::up;
use super::function::Function;
use super::scale::Scale;
use super::score::{Ranking, Score, relaxed, relevance, weight_of};
use crate::event::{Event, Terms, ValueRef};
use crate::expr::{Predicate, evaluate};
use crate::subscription::Subscription;

/// How matches of one event are measured.
pub enum Measure<'a> {
    Priority,
    Relevance(Scale),
    Relaxed(Scale),
    /// For each attribute of the function, the scale by which only that attribute counts.
    Function(&'a Function, Vec<Scale>),
}

impl<'a> Measure<'a> {
    pub fn new(ranking: &'a Ranking, event: &Event<'_>, terms: &Terms) -> Self {
        let dimensions = ranking.dimensions.as_deref();
        let scale = || Scale::new(event, dimensions, terms);
        match &ranking.score {
            Score::Priority => Measure::Priority,
            Score::Relevance => Measure::Relevance(scale()),
            Score::Relaxed => Measure::Relaxed(scale()),
            Score::Function(function) => {
                let names = function.attributes();
                let only = |at: usize| {
                    let counts = dimensions.is_none_or(|dimensions| dimensions.contains(&names[at]));
                    let counted = if counts { &names[at..=at] } else { &[] };
                    Scale::new(event, Some(counted), terms)
                };
                Measure::Function(function, (0..names.len()).map(only).collect())
            }
        }
    }

    /// The score of a subscription by its definition; `None` if it does not match.
    pub fn of(&self, subscription: &Subscription, event: &Event<'_>, terms: &Terms) -> Option<f64> {
        let Subscription { expression, weights, priority, .. } = subscription;
        let value_of = |name: &str| -> Option<ValueRef<'_>> { event.get(terms.get(name)?) };
        let amount = |predicate: &Predicate, scale: &Scale| {
            let factor = terms.find(&predicate.term).map_or(1.0, |attribute| scale.factor(attribute));
            weight_of(predicate, weights) * factor
        };
        match self {
            Measure::Priority => evaluate(expression, &value_of).can_be_true.then_some(*priority),
            Measure::Relevance(scale) => {
                relevance(expression, &value_of, &|predicate| amount(predicate, scale))
            }
            Measure::Relaxed(scale) => relaxed(expression, &value_of, &|predicate| {
                let left_out =
                    terms.find(&predicate.term).is_some_and(|attribute| scale.leaves_out(attribute));
                (!left_out).then(|| amount(predicate, scale))
            }),
            Measure::Function(function, scales) => {
                let contributions: Vec<f64> = relevance(expression, &value_of, &|predicate| {
                    scales.iter().map(|scale| amount(predicate, scale)).collect()
                })?;
                let mut all = vec![0.0; scales.len()];
                all[..contributions.len()].copy_from_slice(&contributions);
                Some(function.evaluate(&all))
            }
        }
    }

    /// The highest score that goes with a bound of the relevance (of the relaxed score, for that one) for
    /// events without weights. Rises with the bound.
    pub fn bound(&self, bound: f64) -> f64 {
        match self {
            Measure::Priority => bound,
            Measure::Relevance(scale) | Measure::Relaxed(scale) => scaled(bound, scale),
            Measure::Function(function, scales) => {
                let most: Vec<f64> = scales.iter().map(|scale| scaled(bound, scale)).collect();
                function.most(&most)
            }
        }
    }
}

fn scaled(bound: f64, scale: &Scale) -> f64 {
    match scale.most() {
        _ if scale.is_plain() => bound,
        // Nothing counts, also where the bound is infinite because nothing is known of a row.
        0.0 => 0.0,
        most => up(bound * most),
    }
}
