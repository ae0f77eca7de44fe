//! What the trees know about the worth of their nodes: which attribute to partition by, whether a partition
//! was a good idea, and what the conjunctions below a node can score at most.

use std::sync::atomic::{AtomicU64, Ordering};

use super::held::{Conjunction, Weight};
use super::span::{Span, number_at};
use crate::event::Event;
use crate::rank::Scale;
use crate::rank::bounds::up;

/// How many events a loss is averaged over before old ones count half.
const WINDOW: u64 = 1024;

/// Cells of the histogram behind the selectivity estimate.
const CELLS: usize = 16;

/// How the loss of a partition is estimated before any event has visited it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Loss {
    /// None at all; events will tell.
    #[default]
    Popularity,
    /// The mean size of a histogram's cells.
    Selectivity,
}

impl Loss {
    /// The rank of partitioning these intervals: gain (how many have the attribute) less loss.
    pub fn rank(self, spans: &[Span]) -> f64 {
        let gain = spans.len() as f64;
        match self {
            Loss::Popularity => gain,
            Loss::Selectivity => gain - mean_cell(spans),
        }
    }
}

/// How many of the intervals meet a cell, on average over the cells that any of them meets.
fn mean_cell(spans: &[Span]) -> f64 {
    let numbers = || spans.iter().flat_map(|span| [number_at(span.low), number_at(span.high)]);
    let finite = |x: &f64| x.is_finite();
    let low = numbers().filter(finite).fold(f64::INFINITY, f64::min);
    let high = numbers().filter(finite).fold(f64::NEG_INFINITY, f64::max);
    if low >= high {
        return spans.len() as f64;
    }
    let cell = |x: f64| (((x - low) / (high - low) * CELLS as f64) as usize).min(CELLS - 1);
    let mut met = [0usize; CELLS];
    for span in spans {
        (cell(number_at(span.low))..=cell(number_at(span.high))).for_each(|at| met[at] += 1);
    }
    let used = met.iter().filter(|count| **count > 0).count().max(1);
    met.iter().sum::<usize>() as f64 / used as f64
}

/// What events told about a partition: predicates that were evaluated for conjunctions that did not match.
#[derive(Default)]
pub struct Feedback {
    visits: AtomicU64,
    discarded: AtomicU64,
}

impl Feedback {
    /// One event was here. Readers do not wait for one another, and a count that is lost matters little.
    pub fn note(&self, discarded: u64) {
        let visits = self.visits.fetch_add(1, Ordering::Relaxed) + 1;
        self.discarded.fetch_add(discarded, Ordering::Relaxed);
        if visits >= WINDOW {
            self.visits.store(WINDOW / 2, Ordering::Relaxed);
            let discarded = self.discarded.load(Ordering::Relaxed);
            self.discarded.store(discarded * (WINDOW / 2) / visits, Ordering::Relaxed);
        }
    }

    /// Discarded evaluations per event, over a window of events.
    pub fn loss(&self) -> f64 {
        let visits = self.visits.load(Ordering::Relaxed);
        self.discarded.load(Ordering::Relaxed) as f64 / visits.max(1) as f64
    }

    /// Whether enough events were here to judge by.
    pub fn is_settled(&self) -> bool {
        self.visits.load(Ordering::Relaxed) >= WINDOW / 4
    }
}

/// The most that any conjunction below a node weighs on each attribute.
#[derive(Debug, Default)]
pub struct Summary {
    weights: Vec<Weight>,
}

impl Summary {
    pub fn widen(&mut self, conjunction: &Conjunction) {
        for weight in &conjunction.weights {
            match self.weights.binary_search_by_key(&weight.attribute, |weight| weight.attribute) {
                Ok(at) => {
                    let held = &mut self.weights[at];
                    held.most = held.most.max(weight.most);
                    held.when_absent |= weight.when_absent;
                }
                Err(at) => self.weights.insert(at, *weight),
            }
        }
    }

    pub fn clear(&mut self) {
        self.weights.clear();
    }

    /// No relevance below the node is higher.
    pub fn bound(&self, event: &Event<'_>, scale: &Scale) -> f64 {
        let counts = |weight: &&Weight| weight.when_absent || event.get(weight.attribute).is_some();
        let product = |weight: &Weight| {
            if weight.most == f64::INFINITY {
                f64::INFINITY
            } else {
                weight.most * scale.factor(weight.attribute)
            }
        };
        up(self.weights.iter().filter(counts).map(product).sum())
    }

    /// Whether it covers the weights of a conjunction.
    pub fn covers(&self, conjunction: &Conjunction) -> bool {
        conjunction.weights.iter().all(|weight| {
            self.weights.iter().any(|held| {
                held.attribute == weight.attribute
                    && held.most >= weight.most
                    && held.when_absent >= weight.when_absent
            })
        })
    }

    pub fn bytes(&self) -> usize {
        self.weights.capacity() * size_of::<Weight>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selectivity_prefers_what_lies_apart() {
        let at = |x: f64| Span::of_value(crate::event::ValueRef::Float(x));
        let apart: Vec<Span> = (0..16).map(|x| at(x as f64)).collect();
        let wide: Vec<Span> = (0..16).map(|x| at(0.0).hull(at(15.0 - x as f64 / 100.0))).collect();
        assert_eq!(Loss::Popularity.rank(&apart), Loss::Popularity.rank(&wide));
        assert_eq!(Loss::Selectivity.rank(&apart), 15.0);
        assert!(Loss::Selectivity.rank(&wide) < 1.0);
    }

    #[test]
    fn a_loss_follows_the_events_of_its_window() {
        let feedback = Feedback::default();
        (0..WINDOW).for_each(|_| feedback.note(8));
        assert!(feedback.is_settled());
        assert_eq!(feedback.loss(), 8.0);
        (0..20 * WINDOW).for_each(|_| feedback.note(2));
        assert!(feedback.loss() < 2.1);
    }
}
