//! Implements the contract's `Version` for a view.

use std::any::Any;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, Weak};

use serde_json::Value as Json;

use super::block::BlocksOfView;
use super::device_blocks::BlocksOnDevice;
use super::shared_expressions::neighbours;
use super::statistics::statistics;
use super::view::{Part, View};
use crate::engine::contract::{Blocks, Location, Version, Work, Workspace, WrongKind};
use crate::engine::device::DeviceMemory;
use crate::engine::permits::Permits;
use crate::engine::segment::matcher::Scratch;
use crate::error::Result;
use crate::event::value::Kind;
use crate::event::{Event, EventSource, Terms};
use crate::query::{Filter, Measure, TopK, collector};
use crate::subscription::{Id, IdKind, IdRef, Subscription};

impl Version for View {
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
        self.len
    }

    fn is_timeless(&self) -> bool {
        self.buffer.is_empty() && self.parts.iter().all(|part| part.segment.subscription_table.is_timeless())
    }

    fn is_prepared(&self) -> bool {
        self.parts.iter().all(|part| part.segment.is_prepared())
    }

    fn prepare(&self) -> Result<()> {
        self.parts.iter().try_for_each(|part| part.segment.prepare())
    }

    fn locate(&self, id: &Id) -> Option<Location> {
        if let Some(at) = self.buffer.find(id) {
            return Some(Location::Buffer(at as u32));
        }
        self.parts.iter().enumerate().find_map(|(part, held)| {
            let row = held.segment.subscription_table.find(id)?;
            (!held.tombstones.is_removed(row, self.generation))
                .then_some(Location::Row { part: part as u32, row })
        })
    }

    fn subscription(&self, location: Location) -> Result<Subscription> {
        match location {
            Location::Buffer(at) => Ok(self.buffer[at as usize].subscription.clone()),
            Location::Row { part, row } => self.parts[part as usize].segment.subscription(row, &self.terms),
        }
    }

    fn id(&self, location: Location) -> IdRef<'_> {
        match location {
            Location::Buffer(at) => self.buffer[at as usize].subscription.id.as_ref(),
            Location::Row { part, row } => self.parts[part as usize].segment.subscription_table.id_ref(row),
        }
    }

    fn priority(&self, location: Location) -> f64 {
        match location {
            Location::Row { part, row } => self.parts[part as usize].segment.subscription_table.priority(row),
            Location::Buffer(at) => self.buffer[at as usize].subscription.priority,
        }
    }

    fn locations(&self) -> Vec<Location> {
        let mut all: Vec<Location> = self.unsorted_locations().collect();
        self.sort_by_id(&mut all);
        all
    }

    fn part_sizes(&self) -> Vec<usize> {
        self.parts.iter().map(|part| part.segment.len()).chain([self.buffer.len()]).collect()
    }

    fn row_ids(&self) -> Option<Weak<dyn Any + Send + Sync>> {
        let parts: Weak<Vec<Part>> = Arc::downgrade(&self.parts);
        Some(parts)
    }

    fn matches(
        &self,
        event: &Event<'_>,
        filter: &Filter<'_>,
        space: &mut Workspace,
    ) -> (Vec<Location>, Work) {
        let mut all = collector::All::default();
        let work = self.collect(event, filter, space.threads(), space.of(), &mut all);
        self.sort_by_id(&mut all.0);
        (all.0, work)
    }

    fn count(&self, event: &Event<'_>, filter: &Filter<'_>, space: &mut Workspace) -> (usize, Work) {
        let mut count = collector::Count::default();
        let work = self.collect(event, filter, space.threads(), space.of(), &mut count);
        (count.0, work)
    }

    fn exists(&self, event: &Event<'_>, filter: &Filter<'_>, space: &mut Workspace) -> (bool, Work) {
        let mut exists = collector::Exists::default();
        let work = self.collect(event, filter, space.threads(), space.of(), &mut exists);
        (exists.0, work)
    }

    /// Stops when every owner has a match.
    fn owners(
        &self,
        event: &Event<'_>,
        filter: &Filter<'_>,
        space: &mut Workspace,
    ) -> Result<(Vec<Box<str>>, Work)> {
        let owners = View::owners(self);
        if owners.len() == 0 {
            return Ok((vec![], self.mismatches(event)));
        }
        let mut per_owner = collector::PerOwner::new(owners.len(), |found| owners.number(self, found));
        let work = self.collect(event, filter, space.threads(), space.of(), &mut per_owner);
        let mut found: Vec<&str> = per_owner.found().into_iter().map(|owner| owners.name(owner)).collect();
        found.sort_unstable();
        Ok((found.into_iter().map(Box::from).collect(), work))
    }

    fn offer_best<'v>(
        &'v self,
        event: &Event<'_>,
        measure: &Measure<'_>,
        filter: &Filter<'_>,
        space: &mut Workspace,
        best: &mut TopK<'v, Location>,
    ) -> Result<Work> {
        self.offer_ranked(event, measure, filter, space.threads(), space.of::<Scratch>(), best)
    }

    fn blocks<'e>(
        &'e self,
        events: &'e dyn EventSource,
        filter: &'e Filter<'e>,
    ) -> Option<Box<dyn Blocks + 'e>> {
        Some(Box::new(BlocksOfView::new(self, events, filter)))
    }

    fn device_blocks<'e>(
        &'e self,
        events: &'e dyn EventSource,
        filter: &'e Filter<'e>,
        memory: &'e DeviceMemory,
        threads: usize,
        permits: &'e Permits,
    ) -> Option<Box<dyn Blocks + 'e>> {
        Some(Box::new(BlocksOnDevice::new(self, events, filter, memory, threads, permits)))
    }

    fn tag_counts(&self) -> BTreeMap<Box<str>, usize> {
        let mut counts: BTreeMap<Box<str>, usize> = BTreeMap::new();
        for part in self.parts.iter() {
            let subscription_table = &part.segment.subscription_table;
            for tag in (0..subscription_table.tag_count()).map(|tag| subscription_table.tag_name(tag)) {
                let rows = subscription_table.rows_with_tag(tag);
                let alive =
                    rows.iter().filter(|row| !part.tombstones.is_removed(**row, self.generation)).count();
                if alive > 0 {
                    *counts.entry(tag.into()).or_default() += alive;
                }
            }
        }
        for tag in self.buffer.iter().flat_map(|buffered| &buffered.subscription.tags) {
            *counts.entry(tag.clone()).or_default() += 1;
        }
        counts
    }

    fn wrong_kinds(&self, events: &dyn EventSource, range: Range<usize>) -> Vec<WrongKind> {
        self.expected().wrong_kinds(events, range)
    }

    fn expected_kinds(&self) -> BTreeMap<String, Vec<Kind>> {
        self.expected().by_name(&self.terms)
    }

    fn neighbours(&self, location: Location) -> Vec<Location> {
        match location {
            Location::Row { part, row } => neighbours(self, part, row),
            Location::Buffer(_) => vec![],
        }
    }

    fn statistics(&self) -> Json {
        statistics(self)
    }
}

#[cfg(test)]
mod tests {
    use crate::engine::{Id, Index, Subscription};
    use crate::expr::parser::parse;

    #[test]
    fn tags_are_counted_in_the_buffer_and_in_segments() {
        for many in [6, 900] {
            let index = Index::default();
            for id in 0..many {
                let mut subscription = Subscription::new(Id::Int(id), parse("x > 1").unwrap());
                subscription.tags = match id % 3 {
                    0 => vec!["a".into()],
                    1 => vec!["a".into(), "b".into()],
                    _ => vec![],
                };
                index.add(subscription).unwrap();
            }
            let counted = || index.reader().unwrap().tag_counts().into_iter().collect::<Vec<_>>();
            let third = many as usize / 3;
            assert_eq!(counted(), [("a".into(), 2 * third), ("b".into(), third)]);
            (0..many).filter(|id| id % 3 == 1).for_each(|id| index.remove(Id::Int(id)).unwrap());
            assert_eq!(counted(), [("a".into(), third)]);
        }
    }
}
