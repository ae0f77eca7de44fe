//! The decisions that make up a layout, and the arrays that are written from them.

use std::cmp::Reverse;

use super::access_predicates::{Key, PackedAccess};
use super::layout::{ACCEPTS, BLOCK, Layout, UnitHead};
use super::layout_planner::{LayoutBasis, Sharing};
use super::program::{CodeKind, Leaf};
use super::scoring::entry_bounds::{EntryBound, EntryBounds};
use super::scoring::{Scoring, ScoringBuilder};
use super::units::{Rows, Unit, parents_first};
use crate::predicate::catalog_builder::CatalogBuilder;

/// With fewer units the arrays are written one after the other: by then the code that was planned is gone.
const WORTH_A_THREAD: usize = 32 * 1024;

pub struct Plan {
    pub catalog: CatalogBuilder,
    pub rows: Rows,
    pub units: Vec<Unit>,
    pub code: Vec<u32>,
    pub accesses: Vec<PackedAccess>,
    pub sharing: Sharing,
    pub basis: LayoutBasis,
}

impl Plan {
    /// For each unit, the highest value of a row that it can lead to; empty where there are no values.
    fn bounds(&self, values: &[f64]) -> Vec<f64> {
        if values.is_empty() {
            return vec![];
        }
        let of_rows = |unit: &Unit| {
            let rows = self.rows.of(unit.node).iter();
            rows.map(|row| values[*row as usize]).fold(f64::MIN, f64::max)
        };
        let mut bounds: Vec<f64> = self.units.iter().map(of_rows).collect();
        // Accesses are in the order in which units were compiled: those that wait come first.
        for unit in parents_first(&self.units) {
            let accesses = &self.accesses[self.units[unit as usize].access_range()];
            for awaited in accesses.iter().filter_map(PackedAccess::awaited) {
                bounds[awaited as usize] = bounds[awaited as usize].max(bounds[unit as usize]);
            }
        }
        bounds
    }

    /// Numbers the units and writes the arrays.
    pub fn lay_out(
        mut self,
        priorities: &[f64],
        scoring: ScoringBuilder,
        threads: usize,
    ) -> (Layout, Scoring) {
        if scoring.bounds().is_empty() {
            // Only the programs of scores have tests that are still to be written.
            self.catalog.forget_tests();
        }
        for access in &self.accesses {
            if let Key::Interval { table, above, below } = access.key(self.catalog.cut_tables()) {
                self.catalog.want_interval(table, above, below);
            }
        }
        self.catalog.number_intervals();
        let planned_code = std::mem::take(&mut self.code);
        let bounds = [self.bounds(priorities), self.bounds(scoring.bounds())];
        let is_single_row = self.single_row_units();
        let order = self.order_units(&bounds, &is_single_row);
        let mut number = vec![0u32; order.len()];
        for (at, unit) in order.iter().enumerate() {
            number[*unit as usize] = at as u32;
        }
        let remembered = self.units.iter().filter(|unit| unit.remembered).count() as u32;
        let keys = self.catalog.keys();
        let place_of = |access: &PackedAccess| match access.awaited() {
            Some(unit) => keys + number[unit as usize],
            None => self.bit_or_interval(access),
        };
        let mut first = vec![0u32; keys as usize + remembered as usize + 1];
        for access in &self.accesses {
            first[place_of(access) as usize + 1] += 1;
        }
        for at in 1..first.len() {
            first[at] += first[at - 1];
        }
        let write_entries = || {
            let mut next = first.clone();
            let mut entries = vec![[0u32; 2]; self.accesses.len()];
            let mut block_bounds = [priorities, scoring.bounds()].map(|values| {
                let blocks = if values.is_empty() { 0 } else { entries.len().div_ceil(BLOCK) };
                vec![f64::MIN; blocks]
            });
            for (at, unit) in order.iter().enumerate() {
                let unit_bounds = bounds.each_ref().map(|of| of.get(*unit as usize).copied().unwrap_or(0.0));
                for access in &self.accesses[self.units[*unit as usize].access_range()] {
                    let place = &mut next[place_of(access) as usize];
                    let flag = if access.suffices() { ACCEPTS } else { 0 };
                    entries[*place as usize] = [at as u32 | flag, access.test().0];
                    for (blocks, bound) in block_bounds.iter_mut().zip(unit_bounds) {
                        if let Some(block) = blocks.get_mut(*place as usize / BLOCK) {
                            *block = block.max(bound);
                        }
                    }
                    *place += 1;
                }
            }
            (entries, block_bounds)
        };
        let write_code = || {
            // Gone when all is written.
            let planned_code = planned_code;
            let mut heads = Vec::with_capacity(order.len() + 1);
            let mut code = Vec::with_capacity(planned_code.len());
            let mut rows = Vec::with_capacity(self.rows.rows.len());
            for (at, unit) in order.iter().enumerate() {
                let unit = &self.units[*unit as usize];
                heads.push(UnitHead {
                    code: Layout::pack_code(code.len(), unit.kind),
                    rows: rows.len() as u32,
                    waiting: first[(keys as usize + at).min(first.len() - 1)],
                });
                let place = code.len();
                code.extend_from_slice(&planned_code[unit.code_range()]);
                let (first, step) = unit.kind.leaf_words();
                for word in code[place..].iter_mut().skip(first).step_by(step) {
                    if let Some(other) = Leaf(*word).as_unit() {
                        *word = Leaf::unit(number[other as usize]).0;
                    }
                }
                rows.extend_from_slice(self.rows.of(unit.node));
            }
            heads.push(UnitHead {
                code: Layout::pack_code(code.len(), CodeKind::Conjunction),
                rows: rows.len() as u32,
                waiting: self.accesses.len() as u32,
            });
            (heads, code, rows)
        };
        let ((entries, block_bounds), (heads, mut code, rows)) =
            if threads == 1 || order.len() < WORTH_A_THREAD {
                let code = write_code();
                (write_entries(), code)
            } else {
                std::thread::scope(|scope| {
                    let entries = scope.spawn(write_entries);
                    let code = write_code();
                    (entries.join().expect("no thread panics"), code)
                })
            };
        first.truncate(keys as usize + 1);
        code.shrink_to_fit();
        let [priority_bounds, relevance_bounds] = block_bounds;
        let mut scoring = scoring.finish(&self.catalog, &rows, relevance_bounds);
        if scoring.has_weights() {
            scoring.entry_bounds = self.entry_bounds(&order, &bounds[1], &entries, &scoring);
        }
        let layout = Layout {
            catalog: self.catalog.finish(),
            access_off: first.into(),
            entries: entries.into(),
            block_bounds: priority_bounds.into(),
            heads: heads.into(),
            code: code.into(),
            rows: rows.into(),
            remembered,
            single_row: remembered - is_single_row.iter().filter(|single_row| **single_row).count() as u32,
        };
        (layout, scoring)
    }

    /// What each entry leads to; units are numbered in `order`, and the bounds are those of units.
    fn entry_bounds(
        &self,
        order: &[u32],
        bounds: &[f64],
        entries: &[[u32; 2]],
        scoring: &Scoring,
    ) -> EntryBounds {
        let is_awaited = self.awaited_units();
        let entry_bound_of = |unit: &u32| {
            let only_row = match self.rows.of(self.units[*unit as usize].node) {
                [row] if !is_awaited[*unit as usize] => Some(*row),
                _ => None,
            };
            EntryBound::new(&scoring.sketches, only_row, bounds[*unit as usize])
        };
        let entry_bounds: Vec<EntryBound> = order.iter().map(entry_bound_of).collect();
        EntryBounds(
            entries
                .iter()
                .map(|[unit, _]| entry_bounds[(unit & !ACCEPTS) as usize])
                .collect::<Vec<_>>()
                .into(),
        )
    }

    /// Which units have one row, are remembered, and are waited for by none.
    fn single_row_units(&self) -> Vec<bool> {
        let has_one_row = |unit: &Unit| unit.remembered && self.rows.of(unit.node).len() == 1;
        let units = self.units.iter().zip(self.awaited_units());
        units.map(|(unit, is_awaited)| !is_awaited && has_one_row(unit)).collect()
    }

    /// Which units others wait for.
    fn awaited_units(&self) -> Vec<bool> {
        let mut is_awaited = vec![false; self.units.len()];
        for awaited in self.accesses.iter().filter_map(PackedAccess::awaited) {
            is_awaited[awaited as usize] = true;
        }
        is_awaited
    }

    /// Remembered units first, the single-row ones last among them; then in the order of their first access key,
    /// the best priority first, and the best relevance among equals.
    fn order_units(&self, bounds: &[Vec<f64>; 2], is_single_row: &[bool]) -> Vec<u32> {
        let place = |at: u32| {
            let unit = &self.units[at as usize];
            let (key, test) = match self.accesses[unit.access_range()].first() {
                Some(access) if access.awaited().is_some() => (self.catalog.keys(), access.test().0),
                Some(access) => (self.bit_or_interval(access), access.test().0),
                None => (u32::MAX, 0),
            };
            ((!unit.remembered, is_single_row[at as usize]), key, test)
        };
        let numbers = 0..self.units.len() as u32;
        if bounds.iter().all(Vec::is_empty) {
            let mut places: Vec<_> = numbers.map(|at| (place(at), at)).collect();
            places.sort_unstable();
            return places.into_iter().map(|(_, at)| at).collect();
        }
        let mut order: Vec<u32> = numbers.collect();
        order.sort_by_cached_key(|at| {
            let (kind, key, test) = place(*at);
            let bound = |of: &Vec<f64>| ordered(of.get(*at as usize).copied().unwrap_or(0.0));
            (kind, key, bounds.each_ref().map(|of| Reverse(bound(of))), test)
        });
        order
    }

    fn bit_or_interval(&self, access: &PackedAccess) -> u32 {
        match access.key(self.catalog.cut_tables()) {
            Key::Bit(bit) => bit,
            Key::Interval { table, above, below } => self.catalog.interval_key(table, above, below),
            Key::Unit(_) => unreachable!("units are numbered apart"),
        }
    }
}

/// Floats in an order that sorts.
fn ordered(x: f64) -> i64 {
    let bits = x.to_bits() as i64;
    bits ^ (((bits >> 63) as u64) >> 1) as i64
}
