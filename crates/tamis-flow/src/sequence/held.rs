//! The state of sequences: the partial matches of each tree and key, when to visit them next, and their
//! bytes.

use super::machine::{IN_PLACE, Machine};
use super::plan::{SequencePlan, TreeId};
use crate::key::{Key, key_bytes, record_bytes};

pub(super) struct Held {
    pub machine: Machine,
    pub tree: TreeId,
    /// The number of its key.
    pub key: u32,
    /// Its place among those of the tree.
    place: u32,
    /// Keys are numbered as they come.
    pub number: u64,
    /// When it is visited next.
    pub queued: Option<i64>,
    bytes: usize,
}

impl Held {
    /// With the records, which other keys may hold too.
    pub fn whole_bytes(&self) -> usize {
        let records = self.machine.rows.iter().flatten();
        self.bytes + records.map(|row| record_bytes(&row.record)).sum::<usize>()
    }
}

impl SequencePlan {
    /// Holds the partial matches of a tree at a key where it had none; says the number of the key.
    pub(super) fn hold(&mut self, tree: TreeId, key: &Key, machine: Machine) -> u32 {
        let grown = &mut self.trees[tree];
        let strict = grown.tree.strict;
        self.keyed[grown.by].strict_machines += usize::from(strict);
        let (place, since) = (grown.machines.len() as u32, self.next_number);
        self.next_number += 1;
        let held = |key| Held { machine, tree, key, place, number: since, queued: None, bytes: 0 };
        let (number, key) = self.machines.insert(grown.by, key, strict, held);
        grown.machines.push(number);
        self.settle(number);
        key
    }

    /// Drops empty state, counts the bytes, and schedules the next visit of the key.
    pub(super) fn settle(&mut self, number: u32) {
        let key = key_bytes(self.machines.key(number));
        let held = &mut self.machines[number];
        let tree = &self.trees[held.tree].tree;
        if held.machine.is_empty() {
            self.drop_machine(number);
            return;
        }
        self.bytes -= held.bytes;
        held.bytes = held.machine.bytes() + size_of::<Held>() - IN_PLACE + size_of::<Key>() + key + 48;
        self.bytes += held.bytes;
        if let Some(look) = held.machine.next_look(tree)
            && held.queued.is_none_or(|queued| look < queued)
        {
            held.queued = Some(look);
            self.looks.push((look, held.number, number));
            self.drop_stale_looks();
        }
    }

    /// Looks that are no longer wanted wait in the queue: at most as many as others.
    fn drop_stale_looks(&mut self) {
        if self.looks.len() <= 2 * self.machines.len() + 64 {
            return;
        }
        self.looks.retain(|(time, since, number)| {
            let held = self.machines.get(*number);
            held.is_some_and(|held| held.number == *since && held.queued == Some(*time))
        });
    }

    pub(super) fn drop_machine(&mut self, number: u32) {
        let Some(held) = self.machines.remove(number) else { return };
        held.machine.rows.iter().flatten().for_each(|row| self.records.release(row));
        self.bytes -= held.bytes;
        let grown = &mut self.trees[held.tree];
        grown.machines.swap_remove(held.place as usize);
        if let Some(moved) = grown.machines.get(held.place as usize) {
            self.machines[*moved].place = held.place;
        }
        self.keyed[grown.by].strict_machines -= usize::from(grown.tree.strict);
    }

    /// Drops all that came to its end before this moment, after [`expire`](Self::expire).
    pub fn expire_all(&mut self, now: i64) {
        for number in 0..self.machines.bound() {
            let Some(held) = self.machines.get_mut(number) else { continue };
            held.machine.expire(&self.trees[held.tree].tree, now, &mut self.records, &mut vec![]);
            self.settle(number);
        }
    }

    pub fn bytes(&self) -> usize {
        self.bytes + self.records.bytes()
    }

    /// Drops the keys whose partial matches began first until the bytes are at most these.
    pub fn shed(&mut self, most: usize) {
        if self.bytes() <= most {
            return;
        }
        let starts = self.machines.iter().map(|(number, held)| {
            (held.machine.partials[0].start_row, &*self.trees[held.tree].identity, number)
        });
        let mut held: Vec<(u64, &str, u32)> = starts.collect();
        // By what they are before their number, so that a flow that was opened again sheds the same.
        held.sort_unstable();
        let in_order: Vec<u32> = held.into_iter().map(|(_, _, number)| number).collect();
        for number in in_order {
            if self.bytes() <= most {
                break;
            }
            self.drop_machine(number);
            self.shed_keys += 1;
        }
    }
}
