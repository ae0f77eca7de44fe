//! One consistent version of an index, as every caller sees it.

use std::ops::ControlFlow;
use std::sync::Arc;

use super::classic::{ClassicReader, ClassicState};
use super::production::view::{Filter, Location, View};
use super::segment::matcher::{Scratch, Work};
use crate::error::{Error, Result};
use crate::event::{Attributes, Event};
use crate::query::{Measure, Ranking, TopK};
use crate::subscription::{Id, IdKind, IdRef, Subscription};

pub enum Reader {
    View(Arc<View>),
    Classic(ClassicReader),
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

    /// The best matches by a score, ties by smaller id.
    pub fn top_k(
        &self,
        event: &Event<'_>,
        ranking: &Ranking,
        filter: &Filter,
        scratch: &mut Scratch,
    ) -> Result<(Vec<Scored>, Work)> {
        let measure = Measure::new(ranking, event, self.attributes());
        let mut best = TopK::new(ranking.k, ranking.min_score);
        let work = match self {
            Reader::View(view) => view.offer_best(event, &measure, filter, scratch, &mut best)?,
            Reader::Classic(state) => state.offer_best(event, &measure, filter, &mut best),
        };
        let sorted = best.into_sorted().into_iter();
        Ok((sorted.map(|found| Scored { location: found.item, score: found.score }).collect(), work))
    }

    pub fn sort_by_id(&self, found: &mut [Location]) {
        match self {
            // Rows of one segment are in the order of their ids.
            Reader::View(view) if view.parts.len() == 1 && view.buffer.is_empty() => {
                sort_by_row(found, view.parts[0].segment.len());
            }
            _ => found.sort_unstable_by(|a, b| self.id(*a).cmp(&self.id(*b))),
        }
    }
}

/// Sorts distinct rows of one segment. Where they are many, marking them in a set is faster than comparing.
pub(crate) fn sort_by_row(found: &mut [Location], rows: usize) {
    let row_of = |location: &Location| match location {
        Location::Row { row, .. } => *row,
        Location::Buffer(_) => unreachable!("these are rows"),
    };
    let Some(&Location::Row { part, .. }) = found.first() else { return };
    if found.len() * 64 < rows {
        return found.sort_unstable_by_key(row_of);
    }
    let mut marked = vec![0u64; rows.div_ceil(64)];
    for row in found.iter().map(row_of) {
        marked[row as usize / 64] |= 1 << (row % 64);
    }
    let mut places = found.iter_mut();
    for (at, mut bits) in marked.into_iter().enumerate() {
        while bits != 0 {
            let row = 64 * at as u32 + bits.trailing_zeros();
            *places.next().expect("each row was found once") = Location::Row { part, row };
            bits &= bits - 1;
        }
    }
}

impl ClassicState {
    /// Every algorithm finds matches; scores are taken of them by definition. Relaxed matches are not
    /// matches, so without an algorithm for those everything is looked at.
    fn offer_best<'a>(
        &'a self,
        event: &Event<'_>,
        measure: &Measure<'_>,
        filter: &Filter,
        best: &mut TopK<'a, Location>,
    ) -> Work {
        let least_wanted = best.least_wanted();
        let mut offer = |row: u32| {
            let location = Location::Row { part: 0, row };
            let subscription = self.at(location);
            let known = match measure {
                Measure::Relevance(scale) => self.algorithm.relevance(row, scale),
                _ => None,
            };
            if filter.keeps(subscription)
                && let Some(score) = known.or_else(|| measure.of(subscription, event, &self.attributes))
            {
                best.offer(subscription.id.as_ref(), score, location);
            }
            best.least_wanted()
        };
        if let Some(work) = self.algorithm.best_by(event, measure, least_wanted, &mut offer) {
            return work;
        }
        if let Measure::Relaxed(_) = measure {
            for row in self.by_id.values() {
                offer(*row);
            }
            return Work { candidates: self.by_id.len() as u64, ..Work::default() };
        }
        if let Measure::Priority = measure {
            // What the algorithm calls a match is not asked again: its meaning may be wider than the expression's.
            return self.algorithm.matches(event, &self.attributes, &mut |row| {
                let location = Location::Row { part: 0, row };
                let subscription = self.at(location);
                if filter.keeps(subscription) {
                    best.offer(subscription.id.as_ref(), subscription.priority, location);
                }
            });
        }
        self.algorithm.matches(event, &self.attributes, &mut |row| {
            offer(row);
        })
    }

    fn at(&self, location: Location) -> &Subscription {
        match location {
            Location::Row { row, .. } => self.rows[row as usize].as_ref().expect("located rows are filled"),
            Location::Buffer(_) => unreachable!("only views have a buffer"),
        }
    }
}

/// For callers that stop early.
pub(crate) const STOP: ControlFlow<()> = ControlFlow::Break(());
pub(crate) const GO_ON: ControlFlow<()> = ControlFlow::Continue(());
