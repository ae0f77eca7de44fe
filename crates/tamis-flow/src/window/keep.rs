//! Saves and restores windows: the rows of each key, and where each aggregate starts among them.

use rustc_hash::FxHashMap;
use tamis_core::term::Term;

use super::partition::Entry;
use super::plan::{AggregateId, WindowPlan};
use super::rows_of_key::Store;
use crate::codec::{Damage, Reader, Writer};
use crate::key::Key;

impl WindowPlan {
    /// Writes the state of all keys, after [`sweep_dead`](Self::sweep_dead). The definitions are written by whoever holds
    /// the queries; aggregates are named by `number`, which must say the same for the same aggregate when the state is
    /// read.
    pub fn write(&self, to: &mut Writer, number: &FxHashMap<AggregateId, u64>) {
        to.unsigned(self.shed_keys);
        to.unsigned(self.keys() as u64);
        for (_, partition) in self.partitions.iter() {
            for (_, key, entry) in partition.keys.iter() {
                to.text(&partition.text);
                to.values(key);
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
                    parts.positions.iter().for_each(|position| to.signed(position));
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
            let key = Key::from(from.values()?);
            let (rows_seen, last_event) = (from.signed()?, from.unsigned()?);
            let mut entry = Entry { rows_seen, last_event, ..Entry::default() };
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
            if partition.keys.find(0, &key).is_some() {
                return Err(Damage);
            }
            // Looked at with the next event: nobody knows for how long it was idle.
            entry.looked_at = Some(i64::MIN);
            let number = partition.keys.insert(0, key, entry);
            partition.looked_at.push_back((i64::MIN, number));
            partition.settle(number);
        }
        Ok(())
    }
}
