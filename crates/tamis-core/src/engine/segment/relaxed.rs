//! Relaxed matching: the rows with *some* true predicate, by the sum of the weights of the true ones.
//!
//! For a relaxed query, the expression of a row is the OR of all its leaves. So a second layout is built from those ORs,
//! with the same machinery: every leaf is an access predicate, entries are ordered by the highest possible score of their
//! row, and blocks of entries are taken best first until none can win. The first relaxed query of a segment builds it. It
//! is kept only in memory: it is several times as large as the arrays for matching, and most indexes never need it.

use super::Segment;
use super::forms::Forms;
use super::layout::Layout;
use super::layout_planner::lay_out;
use super::scoring::{MAX_ATTRIBUTE, Scoring, ScoringBuilder};
use super::threads::Threads;
use crate::error::{Error, Result};
use crate::event::Terms;
use crate::expr::atoms::Literal;
use crate::expr::normal_form::{Form, literal};
use crate::expr::{Expr, Predicate};
use crate::query::bounds::relaxed_bound;
use crate::query::score::{distinct_leaves, weight_of};

#[derive(Default)]
pub struct Relaxed {
    pub layout: Layout,
    pub scoring: Scoring,
}

impl Relaxed {
    pub fn build(segment: &Segment, terms: &Terms) -> Result<Self> {
        let mut terms = terms.clone();
        let (mut forms, mut scoring) = (Forms::default(), ScoringBuilder::default());
        for row in 0..segment.len() as u32 {
            let subscription = segment.subscription(row, &terms)?;
            let leaves: Vec<(u32, f64, Option<Literal>)> = distinct_leaves(&subscription.expression)
                .into_iter()
                .map(|(predicate, positive)| {
                    let attribute = terms.intern_term(&predicate.term);
                    let literal = literal(predicate, positive, &mut terms, &mut forms.atoms);
                    (attribute.0, weight_of(predicate, &subscription.weights), literal)
                })
                .collect();
            let mut literals: Vec<Literal> = leaves.iter().filter_map(|(.., literal)| *literal).collect();
            literals.sort_unstable();
            literals.dedup();
            forms.push_form(&match literals[..] {
                [] => Form::False,
                [one] => Form::Literal(one),
                _ => Form::Or(literals.into_iter().map(Form::Literal).collect()),
            });
            match is_scored_by_value(&subscription.expression) {
                true => {
                    let weight = |predicate: &Predicate| weight_of(predicate, &subscription.weights);
                    scoring.push_scored_by_record(relaxed_bound(&subscription.expression, &weight));
                }
                false => scoring.push_leaves(&leaves),
            }
        }
        if terms.len() > MAX_ATTRIBUTE as usize {
            return Err(Error::Argument("relaxed scores need fewer than 67 million attributes".into()));
        }
        let (layout, scoring) = lay_out(forms, &[], &[], scoring, &Threads::new(1))?;
        Ok(Self { layout, scoring })
    }

    pub fn bytes(&self) -> usize {
        self.layout.bytes().iter().map(|(_, bytes)| bytes).sum::<usize>() + self.scoring.bytes()
    }
}

/// Whether some predicate counts more or less, depending on what it sees.
fn is_scored_by_value(expr: &Expr) -> bool {
    let mut found = false;
    expr.for_each_predicate(&mut |predicate| found |= predicate.is_scored_by_value());
    found
}
