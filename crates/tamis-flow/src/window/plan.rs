//! The windows of one stream: each distinct (aggregate, filter, partition, frame) is kept once, rows are shared by
//! all windows with the same filter and partition, and keys by all windows with the same partition.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use tamis_core::event::{Record, Value};
use tamis_core::term::Term;

use super::Aggregate;
use super::rows_of_key::{Store, Wanted};
use crate::codec::{Damage, Reader, Writer};
use crate::key::{Key, key_bytes, key_of, value_of};
use crate::selection::SelectionId;
use crate::slots::Slots;
use crate::text::WindowedTerm;

pub(crate) type AggregateId = u32;

/// An aggregate and its value at an event.
pub(crate) type Fed = (AggregateId, Value);

#[derive(Default)]
pub(crate) struct WindowPlan {
    partitions: Slots<Partition>,
    stores: Slots<StoreDefinition>,
    aggregates: Slots<AggregateDefinition>,
    partition_by_text: FxHashMap<String, u32>,
    store_by_identity: FxHashMap<(u32, Option<SelectionId>, bool), u32>,
    /// By canonical text: those that started at different moments, the oldest first.
    aggregate_by_text: FxHashMap<Arc<str>, Vec<AggregateId>>,
    stores_by_selection: FxHashMap<SelectionId, Vec<u32>>,
    /// Aggregates that no query uses, whose state is still in some keys.
    dead: Vec<AggregateId>,
    /// How many keys were dropped to stay below the limit.
    pub shed_keys: u64,
}

struct Partition {
    terms: Vec<Term>,
    text: String,
    numbers: FxHashMap<Key, u32>,
    keys: Slots<Entry>,
    /// The stores without a filter.
    unfiltered: Vec<u32>,
    stores: u32,
    /// Where the search for keys without rows goes on.
    sweep: u32,
    bytes: usize,
}

/// What is known of one key.
struct Entry {
    key: Key,
    /// How many events of this key came since there is an entry: their positions in windows of rows.
    rows_seen: i64,
    /// The number of its last event in the stream: what says for how long it is idle.
    last_event: u64,
    stores: Vec<Store>,
    bytes: usize,
}

struct StoreDefinition {
    partition: u32,
    selection: Option<SelectionId>,
    counts_rows: bool,
    columns: Vec<Option<Term>>,
    wanted: Vec<Wanted>,
}

struct AggregateDefinition {
    text: Arc<str>,
    store: u32,
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
            numbers: FxHashMap::default(),
            keys: Slots::default(),
            unfiltered: vec![],
            stores: 0,
            sweep: 0,
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
            StoreDefinition { partition, selection, counts_rows, columns: vec![], wanted: vec![] };
        let id = self.stores.insert(definition);
        self.store_by_identity.insert(identity, id);
        self.partitions[partition].stores += 1;
        match selection {
            Some(selection) => self.stores_by_selection.entry(selection).or_default().push(id),
            None => self.partitions[partition].unfiltered.push(id),
        }
        id
    }

    /// Uses an aggregate once less. Returns the selection that it fed on if nobody uses the aggregate any more.
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

    /// Drops the state of aggregates that nobody uses, and what was only there for them.
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
            let keys: Vec<u32> = partition.keys.iter().map(|(id, _)| id).collect();
            for key in keys {
                let entry = &mut partition.keys[key];
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
    }

    /// Nothing feeds the store any more, and no new aggregate finds it.
    fn detach_store(&mut self, id: u32) {
        let definition = &self.stores[id];
        self.store_by_identity.remove(&(definition.partition, definition.selection, definition.counts_rows));
        match definition.selection {
            Some(selection) => {
                if let Some(stores) = self.stores_by_selection.get_mut(&selection) {
                    stores.retain(|store| *store != id);
                    if stores.is_empty() {
                        self.stores_by_selection.remove(&selection);
                    }
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
        let Self { partitions, stores, stores_by_selection, .. } = self;
        let fed: Vec<u32> =
            selected.iter().filter_map(|id| stores_by_selection.get(id)).flatten().copied().collect();
        for (id, partition) in partitions.iter_mut() {
            let affected = fed.iter().copied().filter(|store| stores[*store].partition == id);
            let affected: Vec<u32> = affected.chain(partition.unfiltered.iter().copied()).collect();
            partition.feed(event, time, record, &affected, stores, values);
            partition.expire_some(time, stores);
        }
    }

    /// The values of all aggregates that have rows at the keys of a record, as an event at this time would see them
    /// that passes no filter.
    pub fn look(&mut self, record: &Record, time: i64) -> Vec<Fed> {
        let mut values = vec![];
        for (_, partition) in self.partitions.iter_mut() {
            let key = key_of(&partition.terms, record);
            let Some(&number) = partition.numbers.get(&key) else { continue };
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
            for _ in 0..partition.keys.bound() {
                partition.expire_next(time, &self.stores);
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
            idle.extend(keys.map(|(key, entry)| (entry.last_event, &*partition.text, id, key)));
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
        for (_, entry) in self.partitions[self.stores[store].partition].keys.iter() {
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

    // --- keeping -----------------------------------------------------------------------------------

    /// Writes the state of all keys, after [`sweep_dead`](Self::sweep_dead). The definitions are written by whoever holds
    /// the queries; aggregates are named by `number`, which must say the same for the same aggregate when the state is
    /// read.
    pub fn write(&self, to: &mut Writer, number: &FxHashMap<AggregateId, u64>) {
        to.unsigned(self.shed_keys);
        to.unsigned(self.keys() as u64);
        for (_, partition) in self.partitions.iter() {
            for (_, entry) in partition.keys.iter() {
                to.text(&partition.text);
                to.values(&entry.key);
                to.signed(entry.rows_seen);
                to.unsigned(entry.last_event);
                to.unsigned(entry.stores.len() as u64);
                for held in &entry.stores {
                    let definition = &self.stores[held.definition];
                    let parts = held.parts();
                    // Any aggregate says which store it is.
                    to.unsigned(number[&definition.wanted[0].id]);
                    to.unsigned(parts.end);
                    to.unsigned(parts.positions.len() as u64);
                    parts.positions.iter().for_each(|position| to.signed(*position));
                    let columns = parts
                        .columns
                        .iter()
                        .enumerate()
                        .filter_map(|(at, column)| Some((definition.columns.get(at)?.as_ref()?, column)));
                    let columns: Vec<_> = columns.collect();
                    to.unsigned(columns.len() as u64);
                    for (term, column) in columns {
                        to.text(&term.to_string());
                        to.unsigned(column.len() as u64);
                        column.iter().for_each(|value| to.value(value));
                    }
                    let starts = parts.starts.iter().filter_map(|(id, start)| Some((number.get(id)?, start)));
                    let starts: Vec<_> = starts.collect();
                    to.unsigned(starts.len() as u64);
                    for (id, start) in starts {
                        to.unsigned(*id);
                        to.unsigned(*start);
                    }
                }
            }
        }
    }

    /// Reads what [`write`](Self::write) wrote into a plan with the same aggregates.
    pub fn read(&mut self, from: &mut Reader<'_>, ids: &[AggregateId]) -> Result<(), Damage> {
        let id_of = |number: u64| ids.get(number as usize).copied().ok_or(Damage);
        self.shed_keys = from.unsigned()?;
        for _ in 0..from.unsigned()? {
            let text = from.text()?;
            let partition = *self.partition_by_text.get(&text).ok_or(Damage)?;
            let key = from.values()?;
            let (rows_seen, last_event) = (from.signed()?, from.unsigned()?);
            let mut entry = Entry { key, rows_seen, last_event, stores: vec![], bytes: 0 };
            for _ in 0..from.unsigned()? {
                let store = self.aggregates[id_of(from.unsigned()?)?].store;
                let definition = &self.stores[store];
                let end = from.unsigned()?;
                let count = from.length()?;
                let positions = (0..count).map(|_| from.signed()).collect::<Result<Vec<_>, _>>()?;
                let mut columns = vec![vec![]; definition.columns.len()];
                for _ in 0..from.unsigned()? {
                    let term = from.text()?;
                    let is_it = |column: &Option<Term>| {
                        column.as_ref().is_some_and(|known| known.to_string() == term)
                    };
                    let at = definition.columns.iter().position(is_it).ok_or(Damage)?;
                    let count = from.length()?;
                    columns[at] = (0..count).map(|_| from.value()).collect::<Result<_, _>>()?;
                }
                if (positions.len() as u64) > end
                    || columns.iter().any(|column| column.len() > positions.len())
                {
                    return Err(Damage);
                }
                let first = end - positions.len() as u64;
                let mut held = Store::from_parts(store, end, positions, columns);
                for _ in 0..from.unsigned()? {
                    let (id, start) = (id_of(from.unsigned()?)?, from.unsigned()?);
                    let want = definition.wanted.iter().find(|want| want.id == id).ok_or(Damage)?;
                    if !(first..=end).contains(&start) {
                        return Err(Damage);
                    }
                    held.restore(want, start);
                }
                entry.stores.push(held);
            }
            let partition = &mut self.partitions[partition];
            let key = entry.key.clone();
            let number = partition.keys.insert(entry);
            if partition.numbers.insert(key, number).is_some() {
                return Err(Damage);
            }
            partition.settle(number);
        }
        Ok(())
    }
}

/// What a node of the plan holds.
#[derive(Clone, Debug)]
pub(crate) struct NodeDescription<'p> {
    pub text: Arc<str>,
    /// What PARTITION BY says.
    pub partition: &'p [Term],
    pub uses: usize,
    pub keys: usize,
    pub rows: usize,
    pub bytes: usize,
}

impl StoreDefinition {
    /// The column that holds a term.
    fn column(&mut self, term: &Term) -> u32 {
        let same = |column: &Option<Term>| column.as_ref() == Some(term);
        if let Some(at) = self.columns.iter().position(same) {
            return at as u32;
        }
        match self.columns.iter().position(Option::is_none) {
            Some(free) => {
                self.columns[free] = Some(term.clone());
                free as u32
            }
            None => {
                self.columns.push(Some(term.clone()));
                self.columns.len() as u32 - 1
            }
        }
    }
}

fn read(held: &Store, definition: &StoreDefinition, is_fed: bool, values: &mut Vec<Fed>) {
    for want in &definition.wanted {
        if let Some(value) = held.value(want, is_fed) {
            values.push((want.id, value));
        }
    }
}

impl Partition {
    fn feed(
        &mut self,
        event: u64,
        time: i64,
        record: &Record,
        affected: &[u32],
        definitions: &Slots<StoreDefinition>,
        values: &mut Vec<Fed>,
    ) {
        let key = key_of(&self.terms, record);
        let number = match self.numbers.get(&key) {
            Some(number) => *number,
            None if affected.is_empty() => return,
            None => {
                let entry = Entry { key: key.clone(), rows_seen: 0, last_event: 0, stores: vec![], bytes: 0 };
                let number = self.keys.insert(entry);
                self.numbers.insert(key, number);
                number
            }
        };
        let entry = &mut self.keys[number];
        let row = entry.rows_seen;
        entry.rows_seen += 1;
        entry.last_event = event;
        for &store in affected {
            let definition = &definitions[store];
            let held = match entry.stores.iter().position(|held| held.definition == store) {
                Some(at) => &mut entry.stores[at],
                None => {
                    entry.stores.push(Store::new(store));
                    entry.stores.last_mut().expect("it was just put there")
                }
            };
            let columns = definition.columns.iter();
            let columns = columns.map(|term| term.as_ref().map(|term| value_of(term, record)));
            held.feed(if definition.counts_rows { row } else { time }, columns, &definition.wanted);
        }
        for held in &mut entry.stores {
            let definition = &definitions[held.definition];
            held.refresh(if definition.counts_rows { row } else { time }, &definition.wanted);
            read(held, definition, affected.contains(&held.definition), values);
        }
        self.settle(number);
    }

    /// Drops what is empty, and counts the bytes again.
    fn settle(&mut self, number: u32) {
        let entry = &mut self.keys[number];
        entry.stores.retain(|held| held.len() > 0);
        self.bytes -= entry.bytes;
        if entry.stores.is_empty() {
            let entry = self.keys.remove(number).expect("it is there");
            self.numbers.remove(&entry.key);
            return;
        }
        let key = 2 * key_bytes(&entry.key) + 48;
        entry.bytes = size_of::<Entry>() + key + entry.stores.iter().map(Store::bytes).sum::<usize>();
        self.bytes += entry.bytes;
    }

    /// Looks at two keys, so that those without events go away however many there are.
    fn expire_some(&mut self, time: i64, definitions: &Slots<StoreDefinition>) {
        for _ in 0..2 {
            self.expire_next(time, definitions);
        }
    }

    fn expire_next(&mut self, time: i64, definitions: &Slots<StoreDefinition>) {
        if self.keys.bound() == 0 {
            return;
        }
        self.sweep = (self.sweep + 1) % self.keys.bound() as u32;
        let Some(entry) = self.keys.get_mut(self.sweep) else { return };
        for held in &mut entry.stores {
            let definition = &definitions[held.definition];
            if !definition.counts_rows {
                held.refresh(time, &definition.wanted);
            }
        }
        self.settle(self.sweep);
    }
}
