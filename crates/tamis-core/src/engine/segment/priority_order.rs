//! The best by priority where an event is in very many intervals: rows that come in the order of priority.
//!
//! Matching fires every access interval that an event is in, which takes as long as there are, however few
//! answers are wanted. Where subscriptions are conjunctions of wide intervals, a scored interval index has
//! the best of them in microseconds. So a segment whose top-k questions turn out to be of that kind gets one
//! besides, made by a thread of its own and kept in memory only. Questions go on as before until it is
//! there, and again where it does not help: what is read in the order of priority has a limit.

use std::cell::Cell;
use std::sync::atomic::{AtomicI32, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

use super::Segment;
use crate::engine::scored_intervals::ScoredIntervals;
use crate::error::{Error, Result};
use crate::event::{Attributes, Event};

/// A question is wide if it fires so many entries, and so many for each answer that is wanted.
const MANY: u64 = 4096;
const MANY_PER_ANSWER: u64 = 64;
/// With more sets of attributes than this, looking at each of them takes longer than firing many entries.
const MOST_FAMILIES: usize = 64;
/// After so many wide questions an order is made.
const QUESTIONS: u32 = 16;
/// A good question earns one of credit and one in vain loses one. There is this much of it, and this much debt.
/// With every step into debt half as many questions try again, so that what is in vain costs nothing in the end.
const MOST_CREDIT: i32 = 64;
const MOST_DEBT: i32 = 16;

#[derive(Default)]
pub struct PriorityOrder {
    wide_questions: AtomicU32,
    /// Entries that the last wide question fired.
    fired: AtomicU64,
    credit: AtomicI32,
    /// `None` if there are other rows than conjunctions of intervals, or too many kinds of these.
    rows: OnceLock<Option<ScoredIntervals>>,
}

impl PriorityOrder {
    /// Notes a question for `k` answers that fired so many entries. Says whether it is time to make an order.
    fn note(&self, k: usize, fired: u64) -> bool {
        if fired < MANY || fired < MANY_PER_ANSWER.saturating_mul(k as u64) || self.rows.get().is_some() {
            return false;
        }
        self.fired.store(fired, Relaxed);
        self.wide_questions.fetch_add(1, Relaxed) + 1 == QUESTIONS
    }

    /// Whether rows are in order, and that is likely to help a question for `k` answers.
    pub fn helps(&self, k: usize) -> bool {
        let debt = self.credit.load(Relaxed).min(0).unsigned_abs();
        matches!(self.rows.get(), Some(Some(_)))
            && MANY_PER_ANSWER.saturating_mul(k as u64) <= self.fired.load(Relaxed)
            && (debt == 0 || self.wide_questions.fetch_add(1, Relaxed).is_multiple_of(1 << debt))
    }

    /// Offers the rows that hold, the best priority first, until `offer` wants none as low as the next. Returns
    /// how many were read; `None` if that reached its limit and the question must be asked otherwise.
    pub fn best(
        &self,
        event: &Event<'_>,
        least_wanted: f64,
        offer: &mut dyn FnMut(u32) -> f64,
    ) -> Option<u64> {
        let rows = self.rows.get()?.as_ref()?;
        // Reading one takes about as long as an entry that fires.
        let limit = self.fired.load(Relaxed);
        let left = Cell::new(limit);
        rows.best_within(event, least_wanted, &left, offer);
        let is_done = left.get() > 0;
        let credit = self.credit.load(Relaxed) + if is_done { 1 } else { -1 };
        self.credit.store(credit.clamp(-MOST_DEBT, MOST_CREDIT), Relaxed);
        is_done.then(|| limit - left.get())
    }

    pub fn bytes(&self) -> usize {
        let rows = self.rows.get().and_then(Option::as_ref);
        rows.map_or(0, |rows| rows.bytes().iter().map(|(_, bytes)| bytes).sum())
    }
}

impl Segment {
    /// Notes a question by priority. The one that makes it worth while has an order made in the background.
    pub fn note_question_by_priority(self: &Arc<Self>, k: usize, fired: u64, attributes: &Attributes) {
        if self.order.note(k, fired) {
            let (segment, attributes) = (self.clone(), attributes.clone());
            let make = move || {
                let rows = rows_in_order(&segment, attributes).ok();
                let _ = segment.order.rows.set(rows);
            };
            // Without a thread there is no order, and all else goes on.
            let _ = std::thread::Builder::new().name("tamis-order".into()).spawn(make);
        }
    }
}

/// An error if there are other rows than conjunctions of intervals, on few sets of attributes, or if they cannot
/// be read.
fn rows_in_order(segment: &Segment, mut attributes: Attributes) -> Result<ScoredIntervals> {
    let mut rows = ScoredIntervals::unchanging();
    for row in 0..segment.len() as u32 {
        let subscription = segment.subscription(row, &attributes)?;
        rows.insert(row, &subscription, &mut attributes)?;
        if rows.families() > MOST_FAMILIES {
            return Err(Error::Argument("conjunctions are on too many sets of attributes".into()));
        }
    }
    rows.build_indexes();
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::segment::SegmentBuilder;
    use crate::expr::parser::parse;
    use crate::subscription::{Id, Subscription};

    fn order_of(expressions: impl Iterator<Item = String>) -> Result<ScoredIntervals> {
        let mut builder = SegmentBuilder::new(Attributes::default());
        for (id, text) in expressions.enumerate() {
            builder.push(&Subscription::new(Id::Int(id as i64), parse(&text).unwrap())).unwrap();
        }
        let (segment, attributes) = builder.finish(&[], 1).unwrap();
        rows_in_order(&segment, attributes)
    }

    #[test]
    fn questions_in_vain_become_rare() {
        let order = PriorityOrder { fired: AtomicU64::new(MANY), ..PriorityOrder::default() };
        assert!(!order.helps(1));
        assert!(order.rows.set(Some(ScoredIntervals::unchanging())).is_ok());
        let tried = |credit: i32| {
            order.credit.store(credit, Relaxed);
            (0..1 << 17).filter(|_| order.helps(1)).count()
        };
        assert_eq!([0, -1, -5, -MOST_DEBT].map(tried), [1 << 17, 1 << 16, 1 << 12, 2]);
        assert!(!order.helps(MANY as usize));
    }

    #[test]
    fn rows_on_many_sets_of_attributes_get_no_order() {
        let on = |first: usize| format!("a{first} < 5 AND a{} > 3", first + 1);
        assert!(order_of((0..MOST_FAMILIES).map(on)).is_ok());
        assert!(order_of((0..MOST_FAMILIES + 1).map(on)).is_err());
        assert!(order_of((0..1000).map(|_| on(0))).is_ok());
        assert!(order_of(["a < 5 OR b > 3".to_string()].into_iter()).is_err());
    }
}
