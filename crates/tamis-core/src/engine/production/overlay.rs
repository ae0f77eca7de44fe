//! Scores that were changed after their rows were laid out: a change of a score rewrites no segment.
//!
//! An overlay belongs to one view and never changes; the next view has the next one, which shares all but
//! one of its shards. The bounds by which a segment prunes were computed from the scores it was built with.
//! They stay upper bounds when a score falls. Rows whose score *rose* above theirs are noted: while they are
//! few they are asked one by one, after everything else; when they are many, no block is believed to be
//! worse than the best of them, until the segment is rewritten. What outlines say of an event does not stay
//! true of rows with other weights: those are asked one by one too, and when they are many no outline is
//! believed before a row is known to hold.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::query::bounds::{relaxed_bound, relevance_bound};
use crate::query::score::weight_of;
use crate::subscription::Subscription;

const SHARDS: usize = 256;
/// Raised rows that are asked one by one.
const FEW: usize = 64;

/// The scores of a row that differ from what its segment holds.
#[derive(Clone, Debug)]
pub struct Rescored {
    pub priority: f64,
    pub weights: Vec<(Box<str>, f64)>,
    /// The record of the segment has other weights.
    pub reweighted: bool,
}

impl Rescored {
    pub fn apply(&self, subscription: &mut Subscription) {
        subscription.priority = self.priority;
        subscription.weights.clone_from(&self.weights);
    }
}

#[derive(Clone, Default)]
pub struct Overlay {
    /// By the low bits of the row; none when nothing was changed.
    shards: Option<Arc<Shards>>,
    len: usize,
    /// Rows with other weights: for some event they may be worth more than before, though they are worth
    /// less at most.
    pub reweighted: Raised,
    pub priority: Raised,
    pub relevance: Raised,
    pub relaxed: Raised,
}

type Shards = [Arc<FxHashMap<u32, Arc<Rescored>>>; SHARDS];

/// Rows whose score may be above what their segment believes.
#[derive(Clone, Default, Debug)]
pub struct Raised {
    /// Sorted; empty when there are too many.
    rows: Arc<Vec<u32>>,
    too_many: bool,
    /// The greatest bound of any of them.
    most: Option<f64>,
}

impl Raised {
    fn note(&mut self, row: u32, bound: f64, believed: f64) {
        if bound <= believed {
            return;
        }
        self.most = Some(self.most.map_or(bound, |most| most.max(bound)));
        if self.too_many {
            return;
        }
        if let Err(place) = self.rows.binary_search(&row) {
            let mut rows = self.rows.to_vec();
            rows.insert(place, row);
            self.too_many = rows.len() > FEW;
            self.rows = Arc::new(if self.too_many { vec![] } else { rows });
        }
    }

    /// The rows to ask one by one, sorted.
    pub fn rows(&self) -> &[u32] {
        &self.rows
    }

    /// Whether there are too many rows to ask.
    pub fn are_too_many(&self) -> bool {
        self.too_many
    }

    /// What no block may be believed to be below, if there are too many rows to ask.
    pub fn floor(&self) -> Option<f64> {
        self.most.filter(|_| self.too_many)
    }
}

impl Overlay {
    pub fn is_empty(&self) -> bool {
        self.shards.is_none()
    }

    /// How many rows it has scores for.
    pub fn len(&self) -> usize {
        self.len
    }

    pub fn get(&self, row: u32) -> Option<&Arc<Rescored>> {
        self.shards.as_ref()?[row as usize % SHARDS].get(&row)
    }

    /// The overlay with new scores for a row; `held` is the subscription as the segment has it.
    pub fn with(&self, row: u32, rescored: Arc<Rescored>, held: &Subscription) -> Self {
        let mut next = self.clone();
        next.priority.note(row, rescored.priority, held.priority);
        if rescored.reweighted {
            next.reweighted.note(row, f64::INFINITY, f64::NEG_INFINITY);
            let bounds = |weights: &[(Box<str>, f64)]| {
                let weight = |predicate: &_| weight_of(predicate, weights);
                (relevance_bound(&held.expression, &weight), relaxed_bound(&held.expression, &weight))
            };
            let ((relevance, relaxed), believed) = (bounds(&rescored.weights), bounds(&held.weights));
            next.relevance.note(row, relevance, believed.0);
            next.relaxed.note(row, relaxed, believed.1);
        }
        let mut shards: Shards = match &self.shards {
            Some(shards) => Shards::clone(shards),
            None => std::array::from_fn(|_| Arc::default()),
        };
        let shard = &mut shards[row as usize % SHARDS];
        if Arc::make_mut(shard).insert(row, rescored).is_none() {
            next.len += 1;
        }
        next.shards = Some(Arc::new(shards));
        next
    }

    pub fn bytes(&self) -> usize {
        let shards = if self.is_empty() { 0 } else { SHARDS * size_of::<usize>() };
        shards + self.len * (size_of::<Rescored>() + 24)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expr::parse;
    use crate::subscription::Id;

    fn held() -> Subscription {
        Subscription { priority: 1.0, ..Subscription::new(Id::Int(1), parse("a AND b").unwrap()) }
    }

    fn rescored(priority: f64, weight: f64) -> Arc<Rescored> {
        Arc::new(Rescored { priority, weights: vec![("a".into(), weight)], reweighted: true })
    }

    #[test]
    fn only_what_rises_is_noted_and_older_overlays_stay() {
        let first = Overlay::default().with(7, rescored(0.5, 0.5), &held());
        assert!(first.priority.rows().is_empty() && first.relevance.rows().is_empty());
        let second = first.with(7, rescored(2.0, 3.0), &held());
        assert_eq!((second.priority.rows(), second.relevance.rows()), (&[7][..], &[7][..]));
        assert_eq!((first.get(7).unwrap().priority, second.get(7).unwrap().priority), (0.5, 2.0));
        assert_eq!((second.len(), second.priority.floor()), (1, None));
    }

    #[test]
    fn many_raised_rows_become_a_floor() {
        let mut overlay = Overlay::default();
        for row in 0..100 {
            overlay = overlay.with(row, rescored(2.0 + row as f64, 1.0), &held());
        }
        assert_eq!((overlay.priority.rows(), overlay.priority.floor()), (&[][..], Some(101.0)));
        assert_eq!(overlay.len(), 100);
    }
}
