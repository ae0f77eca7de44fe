//! The engine of an index that runs on one of the published algorithms.
//!
//! These are mutable structures: readers share a lock, and a writer holds it alone.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Deref;
use std::sync::Arc;

use parking_lot::lock_api::ArcRwLockReadGuard;
use parking_lot::{RawRwLock, RwLock};
use serde_json::{Map, Value as Json};

use crate::algorithm::Algorithm;
use tamis_core::engine::contract::{
    Change, Engine, Location, NewSubscriptions, Reader, Version, Work, Workspace,
};
use tamis_core::engine::new_terms;
use tamis_core::event::{Event, Terms};
use tamis_core::fork::Busy;
use tamis_core::query::{Filter, Measure, TopK};
use tamis_core::{Error, Id, IdKind, IdRef, Result, Subscription};

/// Keeps writers out, and forks.
pub struct LockedReader {
    // Released before the thread stops being busy: fields are dropped in this order.
    state: ArcRwLockReadGuard<RawRwLock, LockedState>,
    _busy: Busy,
}

impl Deref for LockedReader {
    type Target = LockedState;

    fn deref(&self) -> &LockedState {
        &self.state
    }
}

pub struct LockedEngine {
    name: &'static str,
    state: Arc<RwLock<LockedState>>,
}

pub struct LockedState {
    pub generation: u64,
    pub terms: Terms,
    pub id_kind: Option<IdKind>,
    pub algorithm: Box<dyn Algorithm>,
    pub rows: Vec<Option<Subscription>>,
    pub by_id: BTreeMap<Id, u32>,
    free: Vec<u32>,
}

impl LockedEngine {
    pub fn new(name: &'static str, algorithm: Box<dyn Algorithm>) -> Self {
        let state = LockedState {
            generation: 0,
            terms: new_terms().keeping_strings(),
            id_kind: None,
            algorithm,
            rows: vec![],
            by_id: BTreeMap::new(),
            free: vec![],
        };
        Self { name, state: Arc::new(RwLock::new(state)) }
    }
}

impl Engine for LockedEngine {
    fn name(&self) -> &'static str {
        self.name
    }

    fn apply(&self, change: Change) -> Result<()> {
        let _busy = Busy::new();
        let mut state = self.state.write();
        state.change(change)?;
        state.generation += 1;
        Ok(())
    }

    fn add_all(&self, subscriptions: &dyn NewSubscriptions) -> Result<usize> {
        let _busy = Busy::new();
        let mut state = self.state.write();
        let mut added = vec![];
        state.algorithm.gather();
        let outcome = (0..subscriptions.len()).try_for_each(|at| {
            let Some(subscription) = subscriptions.get(at)? else { return Ok(()) };
            let id = subscription.id.clone();
            match state.change(Change::Add(subscription)) {
                Ok(()) => {
                    added.push(id);
                    Ok(())
                }
                Err(error) => subscriptions.refuse(at, error),
            }
        });
        state.algorithm.settle();
        if let Err(error) = outcome {
            for id in added {
                state.change(Change::Remove(id))?;
            }
            return Err(error);
        }
        state.generation += 1;
        Ok(added.len())
    }

    fn reader(&self) -> Reader {
        let busy = Busy::new();
        Reader::Locked(Box::new(LockedReader { state: self.state.read_arc(), _busy: busy }))
    }

    fn locks_readers(&self) -> bool {
        true
    }
}

impl Version for LockedReader {
    fn terms(&self) -> &Terms {
        &self.terms
    }

    fn generation(&self) -> u64 {
        self.generation
    }

    fn id_kind(&self) -> Option<IdKind> {
        self.id_kind
    }

    fn len(&self) -> usize {
        self.by_id.len()
    }

    fn locate(&self, id: &Id) -> Option<Location> {
        self.by_id.get(id).map(|row| located(*row))
    }

    fn subscription(&self, location: Location) -> Result<Subscription> {
        Ok(self.at(location).clone())
    }

    fn id(&self, location: Location) -> IdRef<'_> {
        self.at(location).id.as_ref()
    }

    fn priority(&self, location: Location) -> f64 {
        self.at(location).priority
    }

    fn locations(&self) -> Vec<Location> {
        self.by_id.values().map(|row| located(*row)).collect()
    }

    fn part_sizes(&self) -> Vec<usize> {
        vec![self.rows.len(), 0]
    }

    fn matches(&self, event: &Event<'_>, filter: &Filter<'_>, _: &mut Workspace) -> (Vec<Location>, Work) {
        let mut found = vec![];
        let work = self.for_each_match(event, filter, |row| found.push(located(row)));
        found.sort_unstable_by(|a, b| self.id(*a).cmp(&self.id(*b)));
        (found, work)
    }

    fn count(&self, event: &Event<'_>, filter: &Filter<'_>, _: &mut Workspace) -> (usize, Work) {
        let mut count = 0;
        let work = self.for_each_match(event, filter, |_| count += 1);
        (count, work)
    }

    fn owners(
        &self,
        event: &Event<'_>,
        filter: &Filter<'_>,
        _: &mut Workspace,
    ) -> Result<(Vec<Box<str>>, Work)> {
        let mut owners = BTreeSet::new();
        let work = self.for_each_match(event, filter, |row| {
            owners.extend(self.at(located(row)).owner.as_deref());
        });
        Ok((owners.into_iter().map(Into::into).collect(), work))
    }

    fn offer_best<'v>(
        &'v self,
        event: &Event<'_>,
        measure: &Measure<'_>,
        filter: &Filter<'_>,
        _: &mut Workspace,
        best: &mut TopK<'v, Location>,
    ) -> Result<Work> {
        Ok(self.offer_best_rows(event, measure, filter, best))
    }

    fn tag_counts(&self) -> BTreeMap<Box<str>, usize> {
        let mut counts = BTreeMap::new();
        for tag in self.rows.iter().flatten().flat_map(|held| &held.tags) {
            *counts.entry(tag.clone()).or_default() += 1;
        }
        counts
    }

    fn statistics(&self) -> Json {
        let parts = self.algorithm.bytes();
        let mut statistics = Map::new();
        let total: usize = parts.iter().map(|(_, bytes)| bytes).sum();
        let bytes: Map<String, Json> =
            parts.into_iter().map(|(part, bytes)| (part.to_string(), bytes.into())).collect();
        statistics.insert("bytes".into(), bytes.into());
        statistics.insert("index_bytes".into(), total.into());
        let counters = self.algorithm.counters().into_iter();
        statistics.extend(counters.map(|(name, count)| (name.to_string(), Json::from(count))));
        statistics.into()
    }
}

fn located(row: u32) -> Location {
    Location::Row { part: 0, row }
}

fn row_of(location: Location) -> u32 {
    match location {
        Location::Row { row, .. } => row,
        Location::Buffer(_) => unreachable!("only the production engine has a buffer"),
    }
}

impl LockedState {
    fn at(&self, location: Location) -> &Subscription {
        self.rows[row_of(location) as usize].as_ref().expect("located rows are filled")
    }

    fn for_each_match(&self, event: &Event<'_>, filter: &Filter<'_>, mut found: impl FnMut(u32)) -> Work {
        self.algorithm.matches(event, &self.terms, &mut |row| {
            if filter.keeps(self.at(located(row))) {
                found(row);
            }
        })
    }

    /// Every algorithm finds matches; scores are taken of them by definition. Relaxed matches are not
    /// matches, so without an algorithm for those everything is looked at.
    fn offer_best_rows<'a>(
        &'a self,
        event: &Event<'_>,
        measure: &Measure<'_>,
        filter: &Filter<'_>,
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
                && let Some(score) = known.or_else(|| measure.of(subscription, event, &self.terms))
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
            return self.algorithm.matches(event, &self.terms, &mut |row| {
                let location = Location::Row { part: 0, row };
                let subscription = self.at(location);
                if filter.keeps(subscription) {
                    best.offer(subscription.id.as_ref(), subscription.priority, location);
                }
            });
        }
        self.algorithm.matches(event, &self.terms, &mut |row| {
            offer(row);
        })
    }
}

impl LockedState {
    fn change(&mut self, change: Change) -> Result<()> {
        match change {
            Change::Add(subscription) => {
                self.id_kind.unwrap_or(subscription.id.kind()).check(&subscription.id)?;
                if self.by_id.contains_key(&subscription.id) {
                    return Err(Error::duplicate(&subscription.id));
                }
                self.insert(subscription)
            }
            Change::Replace(subscription) => {
                let row = self.row(&subscription.id)?;
                self.exchange(row, subscription)
            }
            Change::Upsert(subscription) => {
                self.id_kind.unwrap_or(subscription.id.kind()).check(&subscription.id)?;
                match self.by_id.get(&subscription.id) {
                    Some(&row) => self.exchange(row, subscription),
                    None => self.insert(subscription),
                }
            }
            Change::Remove(id) => {
                let row = self.row(&id)?;
                self.take(row);
                Ok(())
            }
            Change::Rescore(id, scores) => {
                let row = self.row(&id)?;
                let held = self.rows[row as usize].as_mut().expect("rows named by an id are filled");
                let mut changed = held.clone();
                scores.apply(&mut changed);
                changed.check()?;
                *held = changed;
                self.algorithm.rescore(row, held, &self.terms);
                Ok(())
            }
        }
    }

    fn row(&self, id: &Id) -> Result<u32> {
        self.by_id.get(id).copied().ok_or_else(|| Error::missing(id))
    }

    fn insert(&mut self, subscription: Subscription) -> Result<()> {
        let row = self.free.pop().unwrap_or(self.rows.len() as u32);
        if let Err(error) = self.algorithm.insert(row, &subscription, &mut self.terms) {
            self.free.push(row);
            if row as usize == self.rows.len() {
                self.rows.push(None);
            }
            return Err(error);
        }
        if row as usize == self.rows.len() {
            self.rows.push(None);
        }
        // Predicates that the algorithm folded away may still be looked at by scores.
        subscription.expression.for_each_predicate(&mut |predicate| {
            self.terms.intern_term(&predicate.term);
        });
        subscription.expression.note_uses(&mut self.terms, 1);
        self.id_kind = Some(subscription.id.kind());
        self.by_id.insert(subscription.id.clone(), row);
        self.rows[row as usize] = Some(subscription);
        Ok(())
    }

    /// Replaces, or leaves the old one in place if the new one is refused.
    fn exchange(&mut self, row: u32, subscription: Subscription) -> Result<()> {
        let old = self.take(row);
        self.insert(subscription).or_else(|error| {
            self.insert(old)?;
            Err(error)
        })
    }

    fn take(&mut self, row: u32) -> Subscription {
        let old = self.rows[row as usize].take().expect("rows named by an id are filled");
        self.by_id.remove(&old.id);
        self.algorithm.remove(row, &old, &self.terms);
        old.expression.note_uses(&mut self.terms, -1);
        self.free.push(row);
        old
    }
}

#[cfg(test)]
mod tests {
    use tamis_core::event::Kind;
    use tamis_core::expr::parse;

    use super::*;
    use crate::new_index;

    #[test]
    fn tags_and_kinds_are_those_of_what_is_held() {
        let index = new_index("scan", None, &[]).unwrap();
        for (id, text, tags) in
            [(1, "age > 3 AND name = 'a'", &["a", "b"][..]), (2, "NOT (age = 'old') OR x IS NULL", &["a"])]
        {
            let mut subscription = Subscription::new(Id::Int(id), parse(text).unwrap());
            subscription.tags = tags.iter().map(|tag| (*tag).into()).collect();
            index.add(subscription).unwrap();
        }
        let expected = BTreeMap::from([
            ("age".to_owned(), vec![Kind::Number, Kind::Str]),
            ("name".to_owned(), vec![Kind::Str]),
            ("x".to_owned(), vec![]),
        ]);
        assert_eq!(index.reader().unwrap().expected_kinds(), expected);
        assert_eq!(index.reader().unwrap().tag_counts(), BTreeMap::from([("a".into(), 2), ("b".into(), 1)]));
        index.remove(Id::Int(1)).unwrap();
        assert_eq!(index.reader().unwrap().tag_counts(), BTreeMap::from([("a".into(), 1)]));
    }

    #[test]
    fn what_cannot_be_done_is_said() {
        let index = new_index("scan", None, &[]).unwrap();
        let error = index.to_bytes().unwrap_err().to_string();
        assert!(error.contains("\"scan\" can't be saved"), "{error}");
        assert!(index.locks_readers() && !index.is_optimizing() && index.optimize().is_ok());
        assert!(
            index
                .reader()
                .unwrap()
                .blocks(&Vec::new(), &Filter { tags: &Default::default(), now: 0 })
                .is_none()
        );
    }
}
