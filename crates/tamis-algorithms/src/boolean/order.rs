//! Chooses which child to evaluate first: in AND the one that is least often true, in OR the one that is most
//! often true.
//!
//! How often a predicate is true is learnt from a sample of the events; before the first event, it is guessed from
//! the operator. Trees are ordered once, when they are registered.

use std::sync::atomic::{AtomicU32, Ordering};

use crate::circuit::Tree;
use crate::predicates::{Predicates, Satisfied};
use tamis_core::expr::{Literal, Shape};
use tamis_core::fork::Mutex;

/// One event of this many is looked at.
const SAMPLED: u32 = 16;

/// As many events as the guess by operator weighs.
const PRIOR: f64 = 4.0;

#[derive(Default)]
pub struct Frequencies {
    events: AtomicU32,
    sample: Mutex<Sample>,
}

#[derive(Default)]
struct Sample {
    events: u32,
    /// How often each literal was true.
    hits: Vec<u32>,
}

impl Frequencies {
    pub fn observe(&self, satisfied: &Satisfied) {
        if !self.events.fetch_add(1, Ordering::Relaxed).is_multiple_of(SAMPLED) {
            return;
        }
        let mut sample = self.sample.lock();
        sample.events += 1;
        for literal in &satisfied.literals {
            let at = literal.0 as usize;
            if sample.hits.len() <= at {
                sample.hits.resize(at + 1, 0);
            }
            sample.hits[at] += 1;
        }
    }

    /// Forgets a predicate whose number will be given to another.
    pub fn forget(&self, literal: Literal) {
        if let Some(hits) = self.sample.lock().hits.get_mut(literal.0 as usize) {
            *hits = 0;
        }
    }

    /// The same tree, children in the order in which they should be looked at.
    pub fn ordered(&self, tree: &Tree, predicates: &Predicates) -> Tree {
        self.order(tree, predicates, &self.sample.lock()).1
    }

    fn order(&self, tree: &Tree, predicates: &Predicates, sample: &Sample) -> (f64, Tree) {
        let each = |children: &[Tree]| -> Vec<(f64, Tree)> {
            children.iter().map(|child| self.order(child, predicates, sample)).collect()
        };
        match tree {
            Tree::Leaf(literal) => {
                let hits = sample.hits.get(literal.0 as usize).copied().unwrap_or(0) as f64;
                let guess = guess(*literal, predicates);
                ((hits + PRIOR * guess) / (sample.events as f64 + PRIOR), tree.clone())
            }
            Tree::And(children) => {
                let mut children = each(children);
                children.sort_by(|a, b| a.0.total_cmp(&b.0));
                let truth = children.iter().map(|(truth, _)| truth).product();
                (truth, Tree::And(children.into_iter().map(|(_, tree)| tree).collect()))
            }
            Tree::Or(children) => {
                let mut children = each(children);
                children.sort_by(|a, b| b.0.total_cmp(&a.0));
                let falsehood: f64 = children.iter().map(|(truth, _)| 1.0 - truth).product();
                (1.0 - falsehood, Tree::Or(children.into_iter().map(|(_, tree)| tree).collect()))
            }
        }
    }
}

/// How often a predicate of this shape is true, for want of anything better.
fn guess(literal: Literal, predicates: &Predicates) -> f64 {
    let atom = predicates.atom(literal);
    let truth = match atom.operator.rules().shape(&atom.operands) {
        Shape::Points(values) | Shape::Elements(values) => (0.02 * values.len() as f64).min(0.5),
        Shape::Range { low: Some(_), high: Some(_) } => 0.25,
        Shape::Range { .. } => 0.5,
        Shape::Never => 0.0,
        _ => 0.1,
    };
    if literal.is_negated() { 0.9 - truth.min(0.8) } else { truth }
}
