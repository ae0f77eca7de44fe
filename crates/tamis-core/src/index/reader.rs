//! One consistent version of an index, as every caller sees it.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::ops::ControlFlow;
use std::sync::Arc;

use super::classic::ClassicReader;
use super::production::view::{Filter, Location, View};
use super::segment::matcher::{Scratch, Work};
use super::subscription::{Id, IdKind, Subscription};
use crate::error::{Error, Result};
use crate::event::{Attributes, Event};

pub enum Reader {
    View(Arc<View>),
    Classic(ClassicReader),
}

/// An id where it is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum IdRef<'a> {
    Int(i64),
    Str(&'a str),
}

/// A match and its score.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scored {
    pub location: Location,
    pub score: f64,
}

impl Reader {
    pub fn attributes(&self) -> &Attributes {
        match self {
            Reader::View(view) => &view.attributes,
            Reader::Classic(state) => &state.attributes,
        }
    }

    pub fn generation(&self) -> u64 {
        match self {
            Reader::View(view) => view.generation,
            Reader::Classic(state) => state.generation,
        }
    }

    pub fn id_kind(&self) -> Option<IdKind> {
        match self {
            Reader::View(view) => view.id_kind,
            Reader::Classic(state) => state.id_kind,
        }
    }

    /// Whether [`prepare`](Self::prepare) has nothing left to do.
    pub fn is_prepared(&self) -> bool {
        match self {
            Reader::View(view) => view.parts.iter().all(|part| part.segment.is_prepared()),
            Reader::Classic(_) => true,
        }
    }

    /// Verifies what was read from a file, once.
    pub fn prepare(&self) -> Result<()> {
        match self {
            Reader::View(view) => view.parts.iter().try_for_each(|part| part.segment.prepare()),
            Reader::Classic(_) => Ok(()),
        }
    }

    pub fn len(&self) -> usize {
        match self {
            Reader::View(view) => view.len,
            Reader::Classic(state) => state.by_id.len(),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn locate(&self, id: &Id) -> Option<Location> {
        match self {
            Reader::View(view) => view.locate(id),
            Reader::Classic(state) => state.by_id.get(id).map(|row| Location::Row { part: 0, row: *row }),
        }
    }

    pub fn get(&self, id: &Id) -> Result<Subscription> {
        self.locate(id).ok_or_else(|| Error::missing(id)).and_then(|location| self.subscription(location))
    }

    pub fn subscription(&self, location: Location) -> Result<Subscription> {
        match self {
            Reader::View(view) => view.subscription_at(location),
            Reader::Classic(state) => Ok(state.at(location).clone()),
        }
    }

    pub fn id(&self, location: Location) -> IdRef<'_> {
        match (self, location) {
            (Reader::View(view), Location::Row { part, row }) => {
                view.parts[part as usize].segment.ledger.id_ref(row)
            }
            (Reader::View(view), Location::Buffer(at)) => view.buffer[at as usize].subscription.id.as_ref(),
            (Reader::Classic(state), location) => state.at(location).id.as_ref(),
        }
    }

    pub fn priority(&self, location: Location) -> f64 {
        match (self, location) {
            (Reader::View(view), location) => view.priority(location),
            (Reader::Classic(state), location) => state.at(location).priority,
        }
    }

    /// Every subscription, sorted by id.
    pub fn locations(&self) -> Vec<Location> {
        match self {
            Reader::View(view) => {
                let mut all: Vec<Location> = view.locations().collect();
                self.sort_by_id(&mut all);
                all
            }
            Reader::Classic(state) => {
                state.by_id.values().map(|row| Location::Row { part: 0, row: *row }).collect()
            }
        }
    }

    /// Calls `found` with every match, each once, in no particular order.
    pub fn for_each_match(
        &self,
        event: &Event<'_>,
        filter: &Filter,
        scratch: &mut Scratch,
        mut found: impl FnMut(Location),
    ) -> Work {
        match self {
            Reader::View(view) => view.for_each_match(event, filter, scratch, found),
            Reader::Classic(state) => state.algorithm.matches(event, &state.attributes, &mut |row| {
                let location = Location::Row { part: 0, row };
                if filter.keeps(state.at(location)) {
                    found(location);
                }
            }),
        }
    }

    /// The matches, sorted by id.
    pub fn matches(
        &self,
        event: &Event<'_>,
        filter: &Filter,
        scratch: &mut Scratch,
    ) -> (Vec<Location>, Work) {
        let mut found = vec![];
        let work = self.for_each_match(event, filter, scratch, |location| found.push(location));
        self.sort_by_id(&mut found);
        (found, work)
    }

    pub fn count(&self, event: &Event<'_>, filter: &Filter, scratch: &mut Scratch) -> (usize, Work) {
        match self {
            Reader::View(view) => view.count(event, filter, scratch),
            Reader::Classic(_) => {
                let mut count = 0;
                let work = self.for_each_match(event, filter, scratch, |_| count += 1);
                (count, work)
            }
        }
    }

    /// Whether anything matches; stops at the first match.
    pub fn exists(&self, event: &Event<'_>, filter: &Filter, scratch: &mut Scratch) -> (bool, Work) {
        match self {
            Reader::View(view) => view.exists(event, filter, scratch),
            Reader::Classic(_) => {
                let (count, work) = self.count(event, filter, scratch);
                (count > 0, work)
            }
        }
    }

    /// The k matches with the highest priority, ties by smaller id.
    pub fn top_k_by_priority(
        &self,
        event: &Event<'_>,
        k: usize,
        filter: &Filter,
        scratch: &mut Scratch,
    ) -> (Vec<Scored>, Work) {
        let mut best = TopK::new(self, k);
        let work = match self {
            Reader::View(view) => view.best_first(event, filter, scratch, |location, priority| {
                best.offer(location, priority);
                best.least_wanted()
            }),
            Reader::Classic(_) => self.for_each_match(event, filter, scratch, |location| {
                best.offer(location, self.priority(location));
            }),
        };
        (best.into_sorted(), work)
    }

    pub fn sort_by_id(&self, found: &mut [Location]) {
        match self {
            // Rows of one segment are in the order of their ids.
            Reader::View(view) if view.parts.len() == 1 && view.buffer.is_empty() => {
                found.sort_unstable_by_key(|location| match location {
                    Location::Row { row, .. } => *row,
                    Location::Buffer(_) => u32::MAX,
                });
            }
            _ => found.sort_unstable_by(|a, b| self.id(*a).cmp(&self.id(*b))),
        }
    }
}

impl super::classic::ClassicState {
    fn at(&self, location: Location) -> &Subscription {
        match location {
            Location::Row { row, .. } => self.rows[row as usize].as_ref().expect("located rows are filled"),
            Location::Buffer(_) => unreachable!("only views have a buffer"),
        }
    }
}

/// The best k seen so far: higher score first, then smaller id.
struct TopK<'a> {
    reader: &'a Reader,
    k: usize,
    heap: BinaryHeap<Candidate<'a>>,
}

struct Candidate<'a> {
    score: f64,
    id: IdRef<'a>,
    location: Location,
}

/// The greatest candidate is the worst, so that the heap gives it away first.
impl Ord for Candidate<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        other.score.total_cmp(&self.score).then_with(|| self.id.cmp(&other.id))
    }
}

impl PartialOrd for Candidate<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Candidate<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Candidate<'_> {}

impl<'a> TopK<'a> {
    fn new(reader: &'a Reader, k: usize) -> Self {
        Self { reader, k, heap: BinaryHeap::with_capacity(k.min(1024) + 1) }
    }

    fn offer(&mut self, location: Location, score: f64) {
        // -0.0 and 0.0 are one score.
        let candidate = Candidate { score: score + 0.0, id: self.reader.id(location), location };
        if self.heap.len() < self.k {
            self.heap.push(candidate);
        } else if self.heap.peek().is_some_and(|worst| candidate < *worst) {
            self.heap.pop();
            self.heap.push(candidate);
        }
    }

    /// Candidates that score less can't enter any more.
    fn least_wanted(&self) -> f64 {
        match self.heap.peek() {
            Some(worst) if self.heap.len() >= self.k => worst.score,
            _ if self.k == 0 => f64::INFINITY,
            _ => f64::NEG_INFINITY,
        }
    }

    fn into_sorted(self) -> Vec<Scored> {
        let sorted = self.heap.into_sorted_vec();
        sorted.into_iter().map(|found| Scored { location: found.location, score: found.score }).collect()
    }
}

/// For callers that stop early.
pub(super) const STOP: ControlFlow<()> = ControlFlow::Break(());
pub(super) const GO_ON: ControlFlow<()> = ControlFlow::Continue(());
