//! The k best seen so far: higher score first, then smaller id.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use crate::subscription::IdRef;

/// Keeps the best k of what it is offered, and knows which scores are not worth offering any more.
#[derive(Clone)]
pub struct TopK<'a, T> {
    k: usize,
    /// Matches with a lower score are dropped, however few there are.
    min_score: f64,
    heap: BinaryHeap<Candidate<'a, T>>,
}

/// A subscription that was kept.
#[derive(Clone, Copy, Debug)]
pub struct Candidate<'a, T> {
    pub score: f64,
    pub id: IdRef<'a>,
    pub item: T,
}

/// The greatest candidate is the worst, so that the heap gives it away first.
impl<T> Ord for Candidate<'_, T> {
    fn cmp(&self, other: &Self) -> Ordering {
        other.score.total_cmp(&self.score).then_with(|| self.id.cmp(&other.id))
    }
}

impl<T> PartialOrd for Candidate<'_, T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> PartialEq for Candidate<'_, T> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl<T> Eq for Candidate<'_, T> {}

impl<'a, T> TopK<'a, T> {
    /// `min_score` is negative infinity when every score is good enough.
    pub fn new(k: usize, min_score: f64) -> Self {
        Self { k, min_score, heap: BinaryHeap::with_capacity(k.min(1024) + 1) }
    }

    /// How many are wanted.
    pub fn k(&self) -> usize {
        self.k
    }

    /// Offers a subscription, each at most once.
    pub fn offer(&mut self, id: IdRef<'a>, score: f64, item: T) {
        if score < self.min_score {
            return;
        }
        // -0.0 and 0.0 are one score.
        let candidate = Candidate { score: score + 0.0, id, item };
        if self.heap.len() < self.k {
            self.heap.push(candidate);
        } else if let Some(mut worst) = self.heap.peek_mut()
            && candidate < *worst
        {
            *worst = candidate;
        }
    }

    /// Candidates that score less can't enter any more.
    pub fn least_wanted(&self) -> f64 {
        match self.heap.peek() {
            _ if self.k == 0 => f64::INFINITY,
            Some(worst) if self.heap.len() >= self.k => worst.score.max(self.min_score),
            _ => self.min_score,
        }
    }

    /// The worst of those that are kept, if there are as many as are wanted.
    pub fn worst(&self) -> Option<&Candidate<'a, T>> {
        self.heap.peek().filter(|_| self.heap.len() >= self.k)
    }

    /// The best first.
    pub fn into_sorted(self) -> Vec<Candidate<'a, T>> {
        let mut kept = self.heap.into_vec();
        kept.sort_unstable();
        kept
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn keeps_what_sorting_would_put_first(
            scores in prop::collection::vec(-2..3i64, 0..40),
            k in 0usize..8,
            min_score in prop_oneof![Just(f64::NEG_INFINITY), Just(0.0), Just(1.0)],
        ) {
            let mut best = TopK::new(k, min_score);
            // Ids in another order than offers.
            let offers: Vec<(i64, f64)> =
                scores.iter().enumerate().map(|(at, score)| (at as i64 * 17 % 41, *score as f64)).collect();
            for (id, score) in &offers {
                let is_outscored = *score < best.least_wanted();
                let ties = *score == best.least_wanted();
                let loses_tie = ties && best.worst().is_some_and(|worst| worst.id < IdRef::Int(*id));
                if !is_outscored && !loses_tie {
                    best.offer(IdRef::Int(*id), *score, *id);
                }
            }
            let mut expected = offers;
            expected.retain(|(_, score)| *score >= min_score);
            expected.sort_by(|(a, a_score), (b, b_score)| b_score.total_cmp(a_score).then(a.cmp(b)));
            expected.truncate(k);
            let found: Vec<(i64, f64)> =
                best.into_sorted().into_iter().map(|kept| (kept.item, kept.score)).collect();
            prop_assert_eq!(found, expected);
        }
    }

    #[test]
    fn both_zeros_are_one_score() {
        let mut best = TopK::new(1, f64::NEG_INFINITY);
        best.offer(IdRef::Int(1), -0.0, ());
        best.offer(IdRef::Int(2), 0.0, ());
        assert_eq!(best.into_sorted()[0].id, IdRef::Int(1));
    }
}
