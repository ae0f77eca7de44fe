//! Equality and set membership: from a value to the predicates that name it.
//!
//! One open-addressing table per attribute and kind, all laid out in the same flat arrays:
//!
//! ```text
//! tables   [kind, first slot, mask, first entry]      one per attribute and kind
//! slots    entry + 1, or 0 for an empty slot          at most two thirds full
//! keys     the exact value: an ordered key, or a hash and a place in the string pool
//! bit_off  entry -> its run in `bits`
//! bits     the predicates that are true for that value: `x = v`, and every IN set that contains v
//! ```

use bytemuck::{Pod, Zeroable};

use super::keys::{hash_key, hash_text, is_keyed, ordered_key, split};
use crate::event::ValueRef;
use crate::event::value::Kind;
use crate::prefetch::prefetch;
use crate::snapshot::SharedSlice;

#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct PointTable {
    pub kind: u32,
    /// 1 when the values are elements of an array attribute.
    pub of_elements: u32,
    pub first_slot: u32,
    pub mask: u32,
    pub first_entry: u32,
    pub entries: u32,
}

impl PointTable {
    /// Where the search for a value with that hash begins.
    #[inline]
    fn slot(&self, hash: u64) -> usize {
        (self.first_slot + (hash as u32 & self.mask)) as usize
    }
}

#[derive(Clone, Default)]
pub struct Points {
    pub tables: SharedSlice<PointTable>,
    pub slots: SharedSlice<u32>,
    pub keys: SharedSlice<[u64; 2]>,
    pub bit_off: SharedSlice<u32>,
    pub bits: SharedSlice<u32>,
}

impl Points {
    /// The bits that are true for `value`, which must be of the kind of the table.
    pub fn lookup(&self, table: &PointTable, value: ValueRef<'_>, pool: &[u8]) -> &[u32] {
        match self.find(table, value, pool) {
            Some(entry) => self.bits_of(entry),
            None => &[],
        }
    }

    pub fn bits_of(&self, entry: u32) -> &[u32] {
        let entry = entry as usize;
        &self.bits[self.bit_off[entry] as usize..self.bit_off[entry + 1] as usize]
    }

    /// The entry of `value`, which must be of the kind of the table.
    pub fn find(&self, table: &PointTable, value: ValueRef<'_>, pool: &[u8]) -> Option<u32> {
        match value {
            ValueRef::Str(text) => self.find_text(table, text, hash_text(text), pool),
            _ => self.find_ordered(table, ordered_key(value)?),
        }
    }

    /// The entry of the value with this [`ordered_key`].
    #[inline]
    pub(super) fn find_ordered(&self, table: &PointTable, key: u128) -> Option<u32> {
        let key = split(key);
        self.find_key(table, key, hash_key(key))
    }

    #[inline]
    fn find_key(&self, table: &PointTable, key: [u64; 2], hash: u64) -> Option<u32> {
        self.probe(table, hash, |stored| *stored == key)
    }

    #[inline]
    fn find_text(&self, table: &PointTable, text: &str, hash: u64, pool: &[u8]) -> Option<u32> {
        self.probe(table, hash, |stored| stored[0] == hash && text_at(stored[1], pool) == text.as_bytes())
    }

    #[inline]
    fn probe(&self, table: &PointTable, hash: u64, is_same: impl Fn(&[u64; 2]) -> bool) -> Option<u32> {
        let mut at = hash as u32 & table.mask;
        loop {
            let slot = self.slots[(table.first_slot + at) as usize];
            if slot == 0 {
                return None;
            }
            let entry = table.first_entry + slot - 1;
            if is_same(&self.keys[entry as usize]) {
                return Some(entry);
            }
            at = (at + 1) & table.mask;
        }
    }

    /// Looks up the values of an event and calls `found` with the entry of each. What all of them need is
    /// fetched before any of it is read.
    pub fn find_together(&self, searches: &[Search], mut found: impl FnMut(u32)) {
        for search in searches {
            let table = &self.tables[search.table as usize];
            self.fetch_entry(table, self.slots[table.slot(search.hash)].saturating_sub(1));
        }
        for search in searches {
            let table = &self.tables[search.table as usize];
            if let Some(entry) = self.find_key(table, search.key, search.hash) {
                found(entry);
            }
        }
    }

    #[inline]
    fn fetch_entry(&self, table: &PointTable, entry: u32) {
        let entry = (table.first_entry + entry) as usize;
        self.keys.get(entry).inspect(|key| prefetch(*key));
        self.bit_off.get(entry).inspect(|offset| prefetch(*offset));
    }

    /// Looks up many values that have keys, which must be of the kind of the table.
    pub fn find_keys(&self, table: &PointTable, keys: &[[u64; 2]], lookup: &mut Lookup) {
        lookup.find(self, table, keys.iter().map(|key| hash_key(*key)), |at, hash| {
            self.find_key(table, keys[at], hash)
        });
    }

    /// Looks up many texts.
    pub fn find_texts(&self, table: &PointTable, texts: &[&str], pool: &[u8], lookup: &mut Lookup) {
        lookup.find(self, table, texts.iter().map(|text| hash_text(text)), |at, hash| {
            self.find_text(table, texts[at], hash, pool)
        });
    }
}

/// A key that is looked for in one of all tables.
#[derive(Clone, Copy, Default)]
pub struct Search {
    key: [u64; 2],
    hash: u64,
    table: u32,
}

impl Search {
    /// For the [`ordered_key`] of a value; fetches what it reads first.
    #[inline]
    pub fn new(points: &Points, number: u32, key: u128) -> Self {
        let key = split(key);
        let hash = hash_key(key);
        prefetch(&points.slots[points.tables[number as usize].slot(hash)]);
        Self { key, hash, table: number }
    }
}

/// The entry of a value that no predicate names.
pub const NOWHERE: u32 = u32::MAX;

/// Tables with fewer entries stay in the cache by themselves.
const WORTH_FETCHING: u32 = 512;

/// Many values looked up in one table, fetching what all of them need before any of it is read.
#[derive(Default)]
pub struct Lookup {
    hashes: Vec<u64>,
    /// The entry of each value, or [`NOWHERE`].
    pub found: Vec<u32>,
}

impl Lookup {
    /// This many values for which there is no table.
    pub fn nowhere(&mut self, values: usize) {
        self.found.clear();
        self.found.resize(values, NOWHERE);
    }

    fn find(
        &mut self,
        points: &Points,
        table: &PointTable,
        hashes: impl Iterator<Item = u64>,
        find: impl Fn(usize, u64) -> Option<u32>,
    ) {
        self.hashes.clear();
        self.hashes.extend(hashes);
        if table.entries >= WORTH_FETCHING {
            for hash in &self.hashes {
                prefetch(&points.slots[table.slot(*hash)]);
            }
            for hash in &self.hashes {
                if let Some(entry) = points.slots[table.slot(*hash)].checked_sub(1) {
                    points.fetch_entry(table, entry);
                }
            }
        }
        self.found.clear();
        let each = self.hashes.iter().enumerate();
        self.found.extend(each.map(|(at, hash)| find(at, *hash).unwrap_or(NOWHERE)));
    }
}

/// A place in the string pool: offset and length in one word.
pub fn text_place(offset: usize, length: usize) -> u64 {
    (offset as u64) << 24 | length as u64
}

pub fn text_at(place: u64, pool: &[u8]) -> &[u8] {
    let (offset, length) = ((place >> 24) as usize, (place & 0xFF_FFFF) as usize);
    pool.get(offset..offset + length).unwrap_or_default()
}

/// Collects the points of a segment; one table at a time.
#[derive(Default)]
pub struct PointsBuilder {
    tables: Vec<PointTable>,
    slots: Vec<u32>,
    keys: Vec<[u64; 2]>,
    bit_off: Vec<u32>,
    bits: Vec<u32>,
}

impl PointsBuilder {
    /// Adds the table of one attribute and kind from (value, bit) pairs; a value may come often.
    pub fn table(
        &mut self,
        kind: Kind,
        of_elements: bool,
        pairs: &[(ValueRef<'_>, u32)],
        pool: &mut Vec<u8>,
    ) {
        let mut keyed: Vec<([u64; 2], u32, u32)> = pairs
            .iter()
            .enumerate()
            .map(|(at, (value, bit))| match value {
                ValueRef::Str(text) => ([hash_text(text), 0], at as u32, *bit),
                _ => (split(ordered_key(*value).expect("points are scalars")), at as u32, *bit),
            })
            .collect();
        if is_keyed(kind) {
            keyed.sort_unstable_by_key(|(key, _, bit)| (*key, *bit));
        } else {
            keyed.sort_unstable_by_key(|(key, at, bit)| (key[0], pairs[*at as usize].0.text(), *bit));
        }
        let first_entry = self.keys.len() as u32;
        let mut previous: Option<usize> = None;
        for (mut key, at, bit) in keyed {
            let value = pairs[at as usize].0;
            let same = previous.is_some_and(|previous| {
                let stored = *self.keys.last().expect("there is a previous entry");
                match value {
                    ValueRef::Str(text) => stored[0] == key[0] && pairs[previous].0.text() == text,
                    _ => stored == key,
                }
            });
            if !same {
                if let ValueRef::Str(text) = value {
                    key[1] = text_place(pool.len(), text.len());
                    pool.extend_from_slice(text.as_bytes());
                }
                self.keys.push(key);
                self.bit_off.push(self.bits.len() as u32);
                previous = Some(at as usize);
            }
            let run = *self.bit_off.last().expect("an entry was pushed") as usize;
            if self.bits.len() == run || *self.bits.last().expect("not empty") != bit {
                self.bits.push(bit);
            }
        }
        let entries = self.keys.len() as u32 - first_entry;
        let capacity = (entries as usize * 3 / 2 + 1).next_power_of_two();
        let mask = capacity as u32 - 1;
        let first_slot = self.slots.len();
        self.slots.resize(first_slot + capacity, 0);
        for entry in 0..entries {
            let key = self.keys[(first_entry + entry) as usize];
            let hash = if is_keyed(kind) { hash_key(key) } else { key[0] };
            let mut at = hash as u32 & mask;
            while self.slots[first_slot + at as usize] != 0 {
                at = (at + 1) & mask;
            }
            self.slots[first_slot + at as usize] = entry + 1;
        }
        self.tables.push(PointTable {
            kind: kind as u32,
            of_elements: of_elements as u32,
            first_slot: first_slot as u32,
            mask,
            first_entry,
            entries,
        });
    }

    pub fn tables_so_far(&self) -> u32 {
        self.tables.len() as u32
    }

    pub fn finish(mut self) -> Points {
        self.bit_off.push(self.bits.len() as u32);
        Points {
            tables: self.tables.into(),
            slots: self.slots.into(),
            keys: self.keys.into(),
            bit_off: self.bit_off.into(),
            bits: self.bits.into(),
        }
    }
}
