//! The attributes of a layout: their states, and the keys that their values fire.

use rustc_hash::FxHashMap;

use crate::predicate::catalog::Catalog;
use crate::predicate::interval_tree::NONE;
use crate::predicate::states::{States, TooManyKeys};

pub(super) struct Attributes {
    /// As in the catalog.
    pub all: Vec<AttributeStates>,
    /// The first bit of each, rising.
    first_bits: Vec<u32>,
    /// The attribute of each access key that is not a bit.
    of_intervals: FxHashMap<u32, u32>,
}

pub(super) enum AttributeStates {
    /// The states, and for each key that fires in some of them, in which.
    Listed(Box<States>, FxHashMap<u32, Vec<u32>>),
    /// Patterns or elements are looked for.
    Unlisted,
}

impl Attributes {
    /// `None` if there are documents, or there may be more states than this in all, or more keys that fire in them.
    pub fn new(catalog: &Catalog, most_states: usize, most_fired: usize) -> Option<Self> {
        let mut of_intervals = FxHashMap::default();
        let (mut all, mut states, mut keys_left) = (Vec::with_capacity(catalog.terms.len()), 0, most_fired);
        for (at, entry) in (0..).zip(catalog.terms.iter()) {
            let cuts: usize = catalog.cuts_of(entry).iter().map(|table| table.len as usize).sum();
            let points: usize = catalog.points_of(entry).iter().map(|table| table.entries as usize).sum();
            states += 2 * (cuts + points) + 2;
            if states > most_states {
                return None;
            }
            for table in catalog.cuts_of(entry) {
                let mut note = |key| {
                    of_intervals.insert(key, at);
                };
                if table.tree != NONE {
                    catalog.interval_tree.overlap(table.tree, 0, table.len, &mut note);
                } else if table.list != NONE {
                    catalog.interval_lists.overlap(table.list, 0, table.len, &mut note);
                }
            }
            all.push(match catalog.states(entry, &mut keys_left) {
                Ok(Some(listed)) => {
                    let states_of_keys = states_of_keys(&listed);
                    AttributeStates::Listed(Box::new(listed), states_of_keys)
                }
                Ok(None) if !catalog.has_documents(entry) => AttributeStates::Unlisted,
                Ok(None) | Err(TooManyKeys) => return None,
            });
        }
        let first_bits = catalog.terms.iter().map(|entry| entry.first_bit).collect();
        Some(Self { all, first_bits, of_intervals })
    }

    /// The attribute whose values may fire a key.
    pub fn of_key(&self, key: u32) -> Option<u32> {
        let end_of_bits = || self.first_bits.partition_point(|first| *first <= key).checked_sub(1);
        match self.of_intervals.get(&key) {
            Some(attribute) => Some(*attribute),
            None => end_of_bits().map(|at| at as u32),
        }
    }
}

fn states_of_keys(states: &States) -> FxHashMap<u32, Vec<u32>> {
    let mut found: FxHashMap<u32, Vec<u32>> = FxHashMap::default();
    for (state, fired) in (0..).zip(&states.fired) {
        fired.iter().for_each(|key| found.entry(*key).or_default().push(state));
    }
    found
}
