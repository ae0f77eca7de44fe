//! Ranks the nodes of a tree: which attribute to partition by, whether a partition has paid off, and how large
//! l-nodes should be.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::span::{Span, number_at};

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
    /// What a partition of these intervals would make events look at for nothing.
    pub fn estimate(self, spans: &[Span]) -> f64 {
        match self {
            Loss::Popularity => 0.0,
            Loss::Selectivity => mean_cell(spans),
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

/// The leaf capacity for a share of matches (Table II of Sadoghi and Jacobsen 2012).
pub fn capacity_for(match_probability: f64) -> usize {
    match match_probability {
        p if p < 0.01 => 5,
        p if p < 0.1 => 20,
        _ => 160,
    }
}

/// How many of the conjunctions match an event, over the last events.
#[derive(Default)]
pub struct MatchShare {
    events: AtomicU64,
    /// Matches per million conjunctions.
    millionths: AtomicU64,
}

impl MatchShare {
    /// One event had this many matches. A count that is lost matters little.
    pub fn note(&self, matches: usize, conjunctions: usize) {
        let share = matches as u64 * 1_000_000 / conjunctions.max(1) as u64;
        self.millionths.fetch_add(share, Ordering::Relaxed);
        self.events.fetch_add(1, Ordering::Relaxed);
    }

    /// Another capacity that would be clearly better than the present one. A share that is near the limit
    /// between two capacities changes nothing, or the tree would be rebuilt again and again.
    pub fn better_capacity(&self, present: usize) -> Option<usize> {
        let events = self.events.load(Ordering::Relaxed);
        let share = self.millionths.load(Ordering::Relaxed) as f64 / 1e6 / events.max(1) as f64;
        let better = capacity_for(share);
        let is_clear = capacity_for(share * 2.0) != present && capacity_for(share / 2.0) != present;
        (events >= WINDOW / 4 && better != present && is_clear).then_some(better)
    }

    /// Starts over.
    pub fn forget(&self) {
        self.events.store(0, Ordering::Relaxed);
        self.millionths.store(0, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capacities_follow_a_clear_share_of_matches() {
        let share = MatchShare::default();
        (0..WINDOW / 4 - 1).for_each(|_| share.note(40, 100));
        assert_eq!(share.better_capacity(5), None, "too few events");
        share.note(40, 100);
        assert_eq!(share.better_capacity(5), Some(160));
        assert_eq!(share.better_capacity(160), None);
        share.forget();
        (0..WINDOW).for_each(|_| share.note(15, 1000));
        assert_eq!(share.better_capacity(5), None, "1.5 % is near the limit of 1 %");
        assert_eq!(share.better_capacity(160), Some(20));
    }

    #[test]
    fn selectivity_prefers_what_lies_apart() {
        let at = |x: f64| Span::of_value(tamis_core::event::ValueRef::Float(x));
        let apart: Vec<Span> = (0..16).map(|x| at(x as f64)).collect();
        let wide: Vec<Span> = (0..16).map(|x| at(0.0).hull(at(15.0 - x as f64 / 100.0))).collect();
        assert_eq!(Loss::Popularity.estimate(&apart), Loss::Popularity.estimate(&wide));
        assert_eq!(Loss::Selectivity.estimate(&apart), 1.0);
        assert!(Loss::Selectivity.estimate(&wide) > 15.0);
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
