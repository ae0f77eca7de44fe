//! Conditions that always hold when the walk over candidates reaches a unit, and are therefore not in its
//! code.

use super::super::layout::{ACCEPTS, Layout};
use super::super::program::Leaf;
use crate::predicate::catalog::{Catalog, TRUE_BIT};
use crate::predicate::interval_tree::NONE;
use crate::predicate::ranges::CutTable;

const ALWAYS: Leaf = Leaf(TRUE_BIT << 1);

/// The access of each unit that has but one: up to three leaves that hold whenever it is looked at.
pub(super) struct Guards {
    of: Vec<[Leaf; 3]>,
    /// Whether the guards are all there is to it.
    suffice: Vec<bool>,
    /// Units from this number on have guards.
    first: u32,
}

impl Guards {
    pub(super) fn of(layout: &Layout) -> Self {
        let first = layout.remembered;
        let guarded = layout.units().saturating_sub(first) as usize;
        let mut guards = Self { of: vec![[ALWAYS; 3]; guarded], suffice: vec![false; guarded], first };
        let intervals = intervals(&layout.catalog, layout.keys());
        for key in 0..layout.keys() {
            let leaves = match key.checked_sub(layout.catalog.bits) {
                None => [Leaf::set(key), ALWAYS],
                Some(interval) => intervals[interval as usize].map(Leaf::set),
            };
            guards.take(layout, layout.entries_of(key, key + 1), leaves);
        }
        for unit in 0..layout.remembered {
            guards.take(layout, layout.waiting_for(unit), [Leaf::unit(unit), ALWAYS]);
        }
        guards
    }

    fn take(&mut self, layout: &Layout, entries: std::ops::Range<usize>, [a, b]: [Leaf; 2]) {
        for [flagged, test] in &layout.entries[entries] {
            let unit = flagged & !ACCEPTS;
            if unit >= self.first {
                self.of[(unit - self.first) as usize] = [a, b, Leaf(*test)];
                self.suffice[(unit - self.first) as usize] = flagged & ACCEPTS != 0;
            }
        }
    }

    /// The guards of a unit that say anything.
    pub(super) fn guards_of(&self, unit: u32) -> impl Iterator<Item = Leaf> + '_ {
        let known = unit.checked_sub(self.first).map(|at| self.of[at as usize]);
        known.into_iter().flatten().filter(|leaf| *leaf != ALWAYS)
    }

    /// Whether the code of a unit adds nothing to its guards.
    pub(super) fn suffice(&self, unit: u32) -> bool {
        unit.checked_sub(self.first).is_some_and(|at| self.suffice[at as usize])
    }
}

/// Of each key of an interval, the bits of "above" its lower cut and "below" its higher one.
fn intervals(catalog: &Catalog, keys: u32) -> Vec<[u32; 2]> {
    let mut found = vec![[TRUE_BIT; 2]; (keys - catalog.bits.min(keys)) as usize];
    // A rank is inside from just above the lower cut to the higher one.
    let mut low_end = |table: &CutTable, key: u32, rank: u32| {
        found[(key - catalog.bits) as usize][0] = table.above + rank - 1;
    };
    let lists = &catalog.interval_lists;
    let pieces = |table: &CutTable| {
        let [first, count] = lists.tables[table.list as usize].map(|number| number as usize);
        (first..first + count).map(move |piece| (lists.starts[piece], piece))
    };
    let keys_of = |piece: usize| &lists.keys[lists.off[piece] as usize..lists.off[piece + 1] as usize];
    let listed = || catalog.cut_tables.iter().filter(|table| table.list != NONE);
    let in_trees = || {
        catalog.cut_tables.iter().filter(|table| table.list == NONE).flat_map(|table| {
            let mut nodes = vec![];
            let mut open = vec![table.tree];
            while let Some(at) = open.pop() {
                if at != NONE {
                    let node = catalog.interval_tree.nodes[at as usize];
                    open.extend([node.left, node.right]);
                    nodes.push((table, node));
                }
            }
            nodes
        })
    };
    // An interval is in consecutive pieces: it begins with the first of them, and ends where the one after the last begins.
    for table in listed() {
        for (start, piece) in pieces(table).rev() {
            keys_of(piece).iter().for_each(|key| low_end(table, *key, start));
        }
    }
    for (table, node) in in_trees() {
        for [low, key] in &catalog.interval_tree.by_low[node.first as usize..(node.first + node.len) as usize]
        {
            low_end(table, *key, *low);
        }
    }
    let mut high_end = |table: &CutTable, key: u32, rank: u32| {
        found[(key - catalog.bits) as usize][1] = table.below + rank;
    };
    for table in listed() {
        let ends: Vec<u32> = pieces(table).map(|(start, _)| start).collect();
        for (at, (_, piece)) in pieces(table).enumerate() {
            let end = ends.get(at + 1).map_or(0, |next| next - 1);
            keys_of(piece).iter().for_each(|key| high_end(table, *key, end));
        }
    }
    for (table, node) in in_trees() {
        for [high, key] in
            &catalog.interval_tree.by_high[node.first as usize..(node.first + node.len) as usize]
        {
            high_end(table, *key, *high);
        }
    }
    found
}
