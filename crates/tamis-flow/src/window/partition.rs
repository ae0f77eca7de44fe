//! The keys of one PARTITION BY, their state, and when a key without events is removed.

use std::collections::VecDeque;

use tamis_core::event::Record;
use tamis_core::term::Term;

use super::plan::Fed;
use super::rows_of_key::{AllWanted, Store};
use crate::by_key::ByKey;
use crate::key::{Key, key_bytes, key_of, value_of};
use crate::selection::SelectionId;
use crate::slots::Slots;

/// How many keys an event may look at whose rows are over. More than one, so that their number goes down; few, so that no
/// event waits for all keys after a pause.
const MOST_EXPIRED_BY_AN_EVENT: usize = 8;

pub(super) struct Partition {
    pub terms: Vec<Term>,
    pub text: String,
    pub keys: ByKey<Entry>,
    /// The stores without a filter.
    pub unfiltered: Vec<u32>,
    pub stores: u32,
    /// The longest time for which a window holds a row; none if there are windows of rows only.
    pub horizon: Option<i64>,
    /// When keys were last visited, by time. After the horizon a key is visited again, so that keys without
    /// events go away.
    pub looked_at: VecDeque<(i64, u32)>,
    pub bytes: usize,
}

/// The state of one key.
#[derive(Default)]
pub(super) struct Entry {
    /// When it was last looked at, if it waits to be looked at again.
    pub looked_at: Option<i64>,
    /// How many events of this key came since there is an entry: their positions in windows of rows.
    pub rows_seen: i64,
    /// The number of its last event in the stream: what says for how long it is idle.
    pub last_event: u64,
    pub stores: Vec<Store>,
    pub bytes: usize,
}

/// Rows that pass one filter: what is computed of them at every key.
pub(super) struct StoreDefinition {
    pub partition: u32,
    pub selection: Option<SelectionId>,
    pub counts_rows: bool,
    pub columns: Vec<Option<Term>>,
    pub wanted: AllWanted,
}

impl StoreDefinition {
    /// The column that holds a term.
    pub fn column(&mut self, term: &Term) -> u32 {
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

pub(super) fn read(held: &Store, definition: &StoreDefinition, is_fed: bool, values: &mut Vec<Fed>) {
    for want in &definition.wanted {
        if let Some(value) = held.value(want, is_fed) {
            values.push((want.id, value));
        }
    }
}

impl Partition {
    pub fn feed(
        &mut self,
        event: u64,
        time: i64,
        record: &Record,
        affected: &[u32],
        definitions: &Slots<StoreDefinition>,
        values: &mut Vec<Fed>,
    ) {
        let key = key_of(&self.terms, record);
        let number = match self.keys.find(0, &key) {
            Some(number) => number,
            None if affected.is_empty() => return,
            None => self.keys.insert(0, key, Entry::default()),
        };
        let entry = &mut self.keys[number];
        let row = entry.rows_seen;
        entry.rows_seen += 1;
        entry.last_event = event;
        if entry.looked_at.is_none() && self.horizon.is_some() {
            entry.looked_at = Some(time);
            self.looked_at.push_back((time, number));
        }
        for &store in affected {
            let definition = &definitions[store];
            let held = match entry.stores.iter().position(|held| held.definition == store) {
                Some(at) => &mut entry.stores[at],
                None => {
                    // Keys have few stores, and there are many keys: no room for more than there are.
                    if entry.stores.len() < 8 {
                        entry.stores.reserve_exact(1);
                    }
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
    pub fn settle(&mut self, number: u32) {
        let entry = &mut self.keys[number];
        entry.stores.retain(|held| held.len() > 0);
        self.bytes -= entry.bytes;
        if entry.stores.is_empty() {
            self.keys.remove(number);
            return;
        }
        let stores = entry.stores.iter().map(Store::bytes).sum::<usize>();
        let key = size_of::<Key>() + key_bytes(self.keys.key(number));
        let entry = &mut self.keys[number];
        entry.bytes = size_of::<Entry>() + key + 16 + stores;
        self.bytes += entry.bytes;
    }

    /// Looks at keys whose rows may all be over.
    pub fn expire_some(&mut self, time: i64, definitions: &Slots<StoreDefinition>) {
        let Some(horizon) = self.horizon else { return };
        for _ in 0..MOST_EXPIRED_BY_AN_EVENT {
            let Some(&(looked_at, number)) = self.looked_at.front() else { return };
            if looked_at.saturating_add(horizon) >= time {
                return;
            }
            self.looked_at.pop_front();
            match self.keys.get_mut(number) {
                Some(entry) if entry.looked_at == Some(looked_at) => entry.looked_at = None,
                // Another key has the number now.
                _ => continue,
            }
            self.expire(number, time, definitions);
            // What windows of rows hold is never over.
            if let Some(entry) = self.keys.get_mut(number)
                && entry.stores.iter().any(|held| !definitions[held.definition].counts_rows)
            {
                entry.looked_at = Some(time);
                self.looked_at.push_back((time, number));
            }
        }
    }

    /// Drops what the windows of an event at this time no longer hold of a key.
    pub fn expire(&mut self, number: u32, time: i64, definitions: &Slots<StoreDefinition>) {
        let Some(entry) = self.keys.get_mut(number) else { return };
        for held in &mut entry.stores {
            let definition = &definitions[held.definition];
            if !definition.counts_rows {
                held.refresh(time, &definition.wanted);
            }
        }
        self.settle(number);
    }
}
