//! The windows of one stream: each distinct (aggregate, filter, partition, frame) is kept once, rows are shared by
//! all windows with the same filter and partition, and keys by all windows with the same partition.

use std::collections::VecDeque;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use tamis_core::event::{Record, Value};
use tamis_core::term::Term;

use super::Aggregate;
use super::partition::{Partition, StoreDefinition, read};
use super::rows_of_key::{AllWanted, Wanted};
use crate::by_key::ByKey;
use crate::key::key_of;
use crate::selection::SelectionId;
use crate::slots::Slots;
use crate::text::WindowedTerm;

pub(crate) type AggregateId = u32;

/// An aggregate and its value at an event.
pub(crate) type Fed = (AggregateId, Value);

#[derive(Default)]
pub(crate) struct WindowPlan {
    pub(super) partitions: Slots<Partition>,
    pub(super) stores: Slots<StoreDefinition>,
    pub(super) aggregates: Slots<AggregateDefinition>,
    pub(super) partition_by_text: FxHashMap<String, u32>,
    store_by_identity: FxHashMap<(u32, Option<SelectionId>, bool), u32>,
    /// By canonical text: those that started at different moments, the oldest first.
    aggregate_by_text: FxHashMap<Arc<str>, Vec<AggregateId>>,
    /// By the number of the selection.
    stores_by_selection: Vec<SmallVec<[u32; 2]>>,
    /// Aggregates that no query uses, whose state is still in some keys.
    dead: Vec<AggregateId>,
    /// The stores that the filters of an event feed, and those of one partition: memory that is used again.
    fed: Vec<u32>,
    affected: Vec<u32>,
    /// How many keys were dropped to stay below the limit.
    pub shed_keys: u64,
}

pub(super) struct AggregateDefinition {
    text: Arc<str>,
    pub store: u32,
    /// How many events of the stream were evaluated before it was added.
    epoch: u64,
    uses: usize,
    aggregate: Aggregate,
}

impl WindowPlan {
    /// The aggregate for a windowed term, which is used once more. `selection` is that of its filter.
    /// Whether it is new is said too: if not, the caller's use of the selection is one too many.
    pub fn acquire(
        &mut self,
        term: &WindowedTerm,
        selection: Option<SelectionId>,
        epoch: u64,
        backfill: bool,
    ) -> (AggregateId, bool) {
        let text: Arc<str> = term.to_string().into();
        let same = self.aggregate_by_text.get(&text).map_or(&[][..], |ids| ids);
        let shared = same.iter().find(|id| backfill || self.aggregates[**id].epoch == epoch);
        if let Some(&id) = shared {
            self.aggregates[id].uses += 1;
            return (id, false);
        }
        let partition = self.partition(&term.partition);
        let store = self.store(partition, selection, term.frame.counts_rows());
        let column = term.argument.as_ref().map(|argument| self.stores[store].column(argument));
        let definition =
            AggregateDefinition { text: text.clone(), store, epoch, uses: 1, aggregate: term.aggregate };
        let id = self.aggregates.insert(definition);
        let same = self.aggregate_by_text.entry(text).or_default();
        same.push(id);
        same.sort_by_key(|id| self.aggregates[*id].epoch);
        let want = Wanted { id, aggregate: term.aggregate, frame: term.frame, column };
        self.stores[store].wanted.push(want);
        let horizon = &mut self.partitions[partition].horizon;
        *horizon = (*horizon).max(term.frame.length());
        if backfill {
            for (_, entry) in self.partitions[partition].keys.iter_mut() {
                for held in entry.stores.iter_mut().filter(|held| held.definition == store) {
                    held.backfill(&want);
                }
            }
        }
        (id, true)
    }

    fn partition(&mut self, terms: &[Term]) -> u32 {
        let text = terms.iter().map(Term::to_string).collect::<Vec<_>>().join(", ");
        if let Some(&id) = self.partition_by_text.get(&text) {
            return id;
        }
        let id = self.partitions.insert(Partition {
            terms: terms.to_vec(),
            text: text.clone(),
            keys: ByKey::default(),
            unfiltered: vec![],
            stores: 0,
            horizon: None,
            looked_at: VecDeque::new(),
            bytes: 0,
        });
        self.partition_by_text.insert(text, id);
        id
    }

    fn store(&mut self, partition: u32, selection: Option<SelectionId>, counts_rows: bool) -> u32 {
        let identity = (partition, selection, counts_rows);
        if let Some(&id) = self.store_by_identity.get(&identity) {
            return id;
        }
        let definition =
            StoreDefinition { partition, selection, counts_rows, columns: vec![], wanted: AllWanted::new() };
        let id = self.stores.insert(definition);
        self.store_by_identity.insert(identity, id);
        self.partitions[partition].stores += 1;
        match selection {
            Some(selection) => {
                let at = selection as usize;
                if self.stores_by_selection.len() <= at {
                    self.stores_by_selection.resize(at + 1, SmallVec::new());
                }
                self.stores_by_selection[at].push(id);
            }
            None => self.partitions[partition].unfiltered.push(id),
        }
        id
    }

    /// Uses an aggregate once less. Returns its selection if the aggregate is no longer used.
    pub fn release(&mut self, id: AggregateId) -> Option<SelectionId> {
        let definition = &mut self.aggregates[id];
        definition.uses -= 1;
        if definition.uses > 0 {
            return None;
        }
        let (store, text) = (definition.store, definition.text.clone());
        if let Some(same) = self.aggregate_by_text.get_mut(&text) {
            same.retain(|other| *other != id);
            if same.is_empty() {
                self.aggregate_by_text.remove(&text);
            }
        }
        let definition = &mut self.stores[store];
        definition.wanted.retain(|want| want.id != id);
        let (selection, is_unused) = (definition.selection, definition.wanted.is_empty());
        self.dead.push(id);
        if is_unused {
            self.detach_store(store);
        }
        selection
    }

    /// Drops the state of unused aggregates, and everything that only they needed.
    pub fn sweep_dead(&mut self) {
        if self.dead.is_empty() {
            return;
        }
        let mut touched: Vec<u32> = self.dead.iter().map(|id| self.aggregates[*id].store).collect();
        touched.sort_unstable();
        touched.dedup();
        for store in &touched {
            let definition = &mut self.stores[*store];
            for (at, column) in definition.columns.iter_mut().enumerate() {
                if !definition.wanted.iter().any(|want| want.column == Some(at as u32)) {
                    *column = None;
                }
            }
        }
        for (_, partition) in self.partitions.iter_mut() {
            for key in 0..partition.keys.bound() {
                let Some(entry) = partition.keys.get_mut(key) else { continue };
                for held in &mut entry.stores {
                    if touched.binary_search(&held.definition).is_ok() {
                        held.forget(&self.stores[held.definition].wanted);
                    }
                }
                entry.stores.retain(|held| !self.stores[held.definition].wanted.is_empty());
                partition.settle(key);
            }
        }
        for id in self.dead.drain(..) {
            self.aggregates.remove(id);
        }
        for store in touched {
            if self.stores[store].wanted.is_empty() {
                self.drop_store(store);
            }
        }
        for (id, partition) in self.partitions.iter_mut() {
            let stores = self.stores.iter().filter(|(_, store)| store.partition == id);
            let frames = stores.flat_map(|(_, store)| store.wanted.iter().map(|want| want.frame.length()));
            partition.horizon = frames.max().flatten();
        }
    }

    /// Nothing feeds the store any more, and no new aggregate finds it.
    fn detach_store(&mut self, id: u32) {
        let definition = &self.stores[id];
        self.store_by_identity.remove(&(definition.partition, definition.selection, definition.counts_rows));
        match definition.selection {
            Some(selection) => {
                if let Some(stores) = self.stores_by_selection.get_mut(selection as usize) {
                    stores.retain(|store| *store != id);
                }
            }
            None => self.partitions[definition.partition].unfiltered.retain(|store| *store != id),
        }
    }

    /// Drops a store that was detached, and its partition with the last store.
    fn drop_store(&mut self, id: u32) {
        let Some(definition) = self.stores.remove(id) else { return };
        let partition = &mut self.partitions[definition.partition];
        partition.stores -= 1;
        if partition.stores == 0 {
            self.partition_by_text.remove(&partition.text);
            self.partitions.remove(definition.partition);
        }
    }

    /// Puts an event into the windows whose filters it passes, and says the values of all aggregates that have rows at
    /// its keys.
    pub fn feed(
        &mut self,
        event: u64,
        time: i64,
        record: &Record,
        selected: &[SelectionId],
        values: &mut Vec<Fed>,
    ) {
        values.clear();
        if !self.dead.is_empty() && self.dead.len() * 64 >= self.keys() {
            self.sweep_dead();
        }
        let Self { partitions, stores, stores_by_selection, fed, affected, .. } = self;
        fed.clear();
        fed.extend(selected.iter().filter_map(|id| stores_by_selection.get(*id as usize)).flatten());
        for (id, partition) in partitions.iter_mut() {
            affected.clear();
            affected.extend(fed.iter().filter(|store| stores[**store].partition == id));
            affected.extend(&partition.unfiltered);
            partition.feed(event, time, record, affected, stores, values);
            partition.expire_some(time, stores);
        }
    }

    /// The values of all aggregates that have rows at the keys of a record, as an event at this time would see them
    /// that passes no filter.
    pub fn look(&mut self, record: &Record, time: i64) -> Vec<Fed> {
        let mut values = vec![];
        for (_, partition) in self.partitions.iter_mut() {
            let key = key_of(&partition.terms, record);
            let Some(number) = partition.keys.find(0, &key) else { continue };
            let entry = &mut partition.keys[number];
            for held in &mut entry.stores {
                let definition = &self.stores[held.definition];
                let position = if definition.counts_rows { entry.rows_seen - 1 } else { time };
                held.refresh(position, &definition.wanted);
                read(held, definition, false, &mut values);
            }
        }
        values
    }

    pub fn keys(&self) -> usize {
        self.partitions.iter().map(|(_, partition)| partition.keys.len()).sum()
    }

    pub fn bytes(&self) -> usize {
        self.partitions.iter().map(|(_, partition)| partition.bytes).sum()
    }

    /// Drops what the windows of an event at this time no longer hold, of all keys.
    pub fn expire_all(&mut self, time: i64) {
        self.sweep_dead();
        for (_, partition) in self.partitions.iter_mut() {
            for key in 0..partition.keys.bound() {
                partition.expire(key, time, &self.stores);
            }
        }
    }

    /// Drops the keys that were idle for longest until the bytes are at most these.
    pub fn shed(&mut self, most: usize) {
        let mut bytes = self.bytes();
        if bytes <= most {
            return;
        }
        let mut idle: Vec<(u64, &str, u32, u32)> = vec![];
        for (id, partition) in self.partitions.iter() {
            let keys = partition.keys.iter();
            idle.extend(keys.map(|(key, _, entry)| (entry.last_event, &*partition.text, id, key)));
        }
        // By what they are before their numbers, so that a flow that was opened again sheds the same.
        idle.sort_unstable();
        let idle: Vec<(u32, u32)> = idle.into_iter().map(|(_, _, partition, key)| (partition, key)).collect();
        for (partition, key) in idle {
            if bytes <= most {
                break;
            }
            let partition = &mut self.partitions[partition];
            bytes -= partition.keys[key].bytes;
            partition.keys[key].stores.clear();
            partition.settle(key);
            self.shed_keys += 1;
        }
    }

    /// The text of an aggregate, how many queries use it, its rows and its share of the bytes.
    pub fn describe(&self, id: AggregateId) -> NodeDescription<'_> {
        let definition = &self.aggregates[id];
        let store = definition.store;
        let wanted = self.stores[store].wanted.len().max(1);
        let (mut rows, mut bytes, mut keys) = (0, 0, 0);
        for (_, _, entry) in self.partitions[self.stores[store].partition].keys.iter() {
            for held in entry.stores.iter().filter(|held| held.definition == store) {
                keys += 1;
                rows += held.len();
                bytes += held.bytes();
            }
        }
        NodeDescription {
            text: definition.text.clone(),
            partition: &self.partitions[self.stores[store].partition].terms,
            uses: definition.uses,
            keys,
            rows,
            bytes: bytes / wanted,
        }
    }

    pub fn ids(&self) -> Vec<AggregateId> {
        self.aggregates.iter().filter(|(_, definition)| definition.uses > 0).map(|(id, _)| id).collect()
    }

    pub fn text(&self, id: AggregateId) -> Arc<str> {
        self.aggregates[id].text.clone()
    }

    pub fn has_filter(&self, id: AggregateId) -> bool {
        self.stores[self.aggregates[id].store].selection.is_some()
    }

    pub fn counts(&self, id: AggregateId) -> bool {
        self.aggregates[id].aggregate.counts()
    }

    pub fn epoch(&self, id: AggregateId) -> u64 {
        self.aggregates[id].epoch
    }
}

/// The contents of a node of the plan.
#[derive(Clone, Debug)]
pub(crate) struct NodeDescription<'p> {
    pub text: Arc<str>,
    /// The terms of PARTITION BY.
    pub partition: &'p [Term],
    pub uses: usize,
    pub keys: usize,
    pub rows: usize,
    pub bytes: usize,
}
