//! The decisions that make up a layout, and the arrays that are written from them.

use std::cmp::Reverse;

use super::access_predicates::{PackedAccess, PackedKey};
use super::buckets::{Bucket, bucket_count, give_back};
use super::layout::{ACCEPTS, BLOCK, Layout, UnitHead, code_place};
use super::layout_planner::{LayoutBasis, Sharing};
use super::planned_code::{MOST_BYTES, last_words, put_words, read_words};
use super::program::{CodeKind, Leaf};
use super::scoring::entry_bounds::{EntryBound, EntryBounds};
use super::scoring::{Scoring, ScoringBuilder};
use super::threads::Threads;
use super::units::{Rows, UnitEnds, Units};
use crate::heap::give_back_free_memory;
use crate::predicate::catalog_builder::CatalogBuilder;

/// With fewer units the arrays are written one after the other: by then the code that was planned is gone.
const WORTH_A_THREAD: usize = 32 * 1024;

pub struct LayoutPlan {
    pub catalog: CatalogBuilder,
    pub rows: Rows,
    pub units: Units,
    /// As [`planned_code`](super::planned_code) stores it.
    pub code: Vec<u8>,
    pub accesses: Vec<PackedAccess>,
    pub sharing: Sharing,
    pub basis: LayoutBasis,
}

impl LayoutPlan {
    /// For each unit, the highest value of a row that it can lead to; empty where there are no values.
    fn bounds(&self, values: &[f64]) -> Vec<f64> {
        if values.is_empty() {
            return vec![];
        }
        let of_rows = |unit: u32| {
            let rows = self.rows.of(self.units.node(unit)).iter();
            rows.map(|row| values[*row as usize]).fold(f64::MIN, f64::max)
        };
        let mut bounds: Vec<f64> = self.units.iter().map(of_rows).collect();
        // Those that wait come first.
        for unit in self.units.iter() {
            for awaited in self.accesses[self.units.accesses(unit)].iter().filter_map(PackedAccess::awaited) {
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
        threads: &Threads,
    ) -> (Layout, Scoring) {
        if scoring.bounds().is_empty() {
            // Only the programs of scores have tests that are still to be written.
            self.catalog.forget_tests();
        }
        self.catalog.number_intervals();
        let bounds = [self.bounds(priorities), self.bounds(scoring.bounds())];
        let is_single_row = self.single_row_units();
        let single_row_units = is_single_row.iter().filter(|single_row| **single_row).count() as u32;
        let order = self.order_units(&bounds, is_single_row);
        let mut number = vec![0u32; order.len()];
        for (at, unit) in order.iter().enumerate() {
            number[*unit as usize] = at as u32;
        }
        let remembered = self.units.iter().filter(|unit| self.units.is_remembered(*unit)).count() as u32;
        let mut first = self.first_entries(&number, remembered);
        let (heads, rows) = self.heads_and_rows(&order, &first);
        // Only bounds are looked up by unit.
        let order = if bounds.iter().all(Vec::is_empty) { vec![] } else { order };
        let Self { catalog, units, code, accesses, rows: by_node, .. } = self;
        drop(by_node);
        let units = units.into_ends();
        if heads.len() >= WORTH_A_THREAD {
            give_back_free_memory();
        }
        let write_code = || write_code(&units, code, &heads, &number);
        let write_entries = || write_entries(&units, accesses, &catalog, &number, &first);
        let other = threads.take(usize::from(heads.len() >= WORTH_A_THREAD));
        let (entries, code) = if other.count() == 0 {
            let code = write_code();
            (write_entries(), code)
        } else {
            std::thread::scope(|scope| {
                let entries = scope.spawn(write_entries);
                let code = write_code();
                (entries.join().expect("no thread panics"), code)
            })
        };
        drop((other, units, number));
        first.truncate(catalog.keys() as usize + 1);
        let block_bounds = bounds.each_ref().map(|of| block_bounds(of, &entries, &order));
        let [priority_bounds, relevance_bounds] = block_bounds;
        let mut scoring = scoring.finish(&catalog, &rows, relevance_bounds);
        if scoring.has_weights() {
            scoring.entry_bounds = entry_bounds(&order, &bounds[1], &heads, &rows, &entries, &scoring);
        }
        let layout = Layout {
            catalog: catalog.finish(),
            access_off: first.into(),
            entries: entries.into(),
            block_bounds: priority_bounds.into(),
            heads: heads.into(),
            code: code.into(),
            rows: rows.into(),
            remembered,
            single_row: remembered - single_row_units,
        };
        (layout, scoring)
    }

    /// Where the entries of each access key begin, and behind them those of the units that wait for each remembered one.
    fn first_entries(&self, number: &[u32], remembered: u32) -> Vec<u32> {
        let mut first = vec![0u32; self.catalog.keys() as usize + remembered as usize + 1];
        for access in &self.accesses {
            first[place_of(access, &self.catalog, number) as usize + 1] += 1;
        }
        for at in 1..first.len() {
            first[at] += first[at - 1];
        }
        first
    }

    fn heads_and_rows(&self, order: &[u32], first: &[u32]) -> (Vec<UnitHead>, Vec<u32>) {
        let mut heads = Vec::with_capacity(order.len() + 1);
        let mut rows = Vec::with_capacity(self.rows.rows.len());
        let mut code = 0;
        let keys = self.catalog.keys() as usize;
        for (at, unit) in order.iter().enumerate() {
            heads.push(UnitHead {
                code: Layout::pack_code(code, self.units.kind(*unit)),
                rows: rows.len() as u32,
                waiting: first[(keys + at).min(first.len() - 1)],
            });
            code += self.units.words(*unit);
            rows.extend_from_slice(self.rows.of(self.units.node(*unit)));
        }
        heads.push(UnitHead {
            code: Layout::pack_code(code, CodeKind::Conjunction),
            rows: rows.len() as u32,
            waiting: self.accesses.len() as u32,
        });
        (heads, rows)
    }

    /// Which units have one row, are remembered, and are waited for by none.
    fn single_row_units(&self) -> Vec<bool> {
        let has_one_row =
            |unit| self.units.is_remembered(unit) && self.rows.of(self.units.node(unit)).len() == 1;
        let mut is_single_row: Vec<bool> = self.units.iter().map(has_one_row).collect();
        for awaited in self.accesses.iter().filter_map(PackedAccess::awaited) {
            is_single_row[awaited as usize] = false;
        }
        is_single_row
    }

    /// Remembered units first, the single-row ones last among them; then in the order of their first access key,
    /// the best priority first, and the best relevance among equals.
    fn order_units(&self, bounds: &[Vec<f64>; 2], is_single_row: Vec<bool>) -> Vec<u32> {
        let kind =
            |at: u32| u32::from(!self.units.is_remembered(at)) << 1 | u32::from(is_single_row[at as usize]);
        let place = |at: u32| match self.accesses[self.units.accesses(at)].first() {
            Some(access) => match access.key() {
                PackedKey::Unit(_) => (self.catalog.keys(), access.test().0),
                PackedKey::Bit(bit) => (bit, access.test().0),
                PackedKey::Interval(number) => (self.catalog.interval_key(number), access.test().0),
            },
            None => (u32::MAX, 0),
        };
        // Of equals, children come first.
        let numbers = self.units.iter().rev();
        if bounds.iter().all(Vec::is_empty) {
            let packed = |at: u32| {
                let (key, test) = place(at);
                [key, test, !at].into_iter().fold(0, |all, part| all << 32 | u128::from(part))
            };
            let mut order = Vec::with_capacity(self.units.len());
            // One kind after the other: the places of all take more memory than anything else at this time.
            for wanted in 0..4 {
                let mut places = Vec::with_capacity(numbers.clone().filter(|at| kind(*at) == wanted).count());
                places.extend(numbers.clone().filter(|at| kind(*at) == wanted).map(packed));
                places.sort_unstable();
                order.extend(places.into_iter().map(|place: u128| !(place as u32)));
            }
            return order;
        }
        let mut order: Vec<u32> = numbers.collect();
        order.sort_by_cached_key(|at| {
            let (key, test) = place(*at);
            let bound = |of: &Vec<f64>| ordered(of.get(*at as usize).copied().unwrap_or(0.0));
            (kind(*at), key, bounds.each_ref().map(|of| Reverse(bound(of))), test)
        });
        order
    }
}

/// Which of the lists of entries an access belongs to.
fn place_of(access: &PackedAccess, catalog: &CatalogBuilder, number: &[u32]) -> u32 {
    match access.key() {
        PackedKey::Bit(bit) => bit,
        PackedKey::Interval(interval) => catalog.interval_key(interval),
        PackedKey::Unit(unit) => catalog.keys() + number[unit as usize],
    }
}

/// The code of all units, in their order.
fn write_code(units: &UnitEnds, mut planned: Vec<u8>, heads: &[UnitHead], number: &[u32]) -> Vec<u32> {
    /// The number of a unit, before its code.
    const NUMBER: usize = size_of::<u32>();
    let count = units.iter().len();
    let start_of = |unit: usize| code_place(heads[unit.min(count)].code);
    let per_bucket = count.div_ceil(bucket_count(planned.len())).max(1);
    let mut room = vec![0; count.div_ceil(per_bucket)];
    let mut end = planned.len();
    for unit in units.iter().rev() {
        let start = last_words(&planned[..end], units.words(unit));
        room[number[unit as usize] as usize / per_bucket] += NUMBER + end - start;
        end = start;
    }
    let mut code = Vec::with_capacity(start_of(count));
    let mut buckets: Vec<Bucket> = room.into_iter().map(Bucket::new).collect();
    end = planned.len();
    for unit in units.iter().rev() {
        let number = number[unit as usize];
        let start = last_words(&planned[..end], units.words(unit));
        let bucket = &mut buckets[number as usize / per_bucket];
        bucket.push(&number.to_ne_bytes());
        bucket.push(&planned[start..end]);
        give_back(&mut planned, start);
        end = start;
    }
    for (at, bucket) in buckets.into_iter().enumerate() {
        code.resize(start_of((at + 1) * per_bucket), 0);
        let mut rest = bucket.bytes();
        while let Some((unit, following)) = rest.split_first_chunk::<NUMBER>() {
            let unit = u32::from_ne_bytes(*unit) as usize;
            let words = &mut code[start_of(unit)..start_of(unit + 1)];
            rest = read_words(following, words);
            let (first, step) = Layout::code_kind(heads[unit].code).leaf_words();
            for word in words.iter_mut().skip(first).step_by(step) {
                if let Some(other) = Leaf(*word).as_unit() {
                    *word = Leaf::unit(number[other as usize]).0;
                }
            }
        }
    }
    code
}

/// The entries of all keys, those of each in the order of units. `first` says where they begin.
fn write_entries(
    units: &UnitEnds,
    mut accesses: Vec<PackedAccess>,
    catalog: &CatalogBuilder,
    number: &[u32],
    first: &[u32],
) -> Vec<[u32; 2]> {
    /// The most bytes of an entry: its list, counted from the first of the bucket, its unit and its test.
    const ENTRY: usize = 3 * MOST_BYTES;
    let per_bucket = accesses.len().div_ceil(bucket_count(ENTRY * accesses.len())).max(1);
    // A list is in the bucket in which it begins.
    let bucket_of = |place: usize| first[place] as usize / per_bucket;
    let lists = first.len() - 1;
    // The first list of each bucket, and the end of the last.
    let mut starts = vec![0; accesses.len() / per_bucket + 2];
    let mut next = 0;
    for place in 0..lists {
        while next <= bucket_of(place) {
            starts[next] = place;
            next += 1;
        }
    }
    starts[next..].fill(lists);
    let room = |lists: &[usize]| ENTRY * (first[lists[1]] - first[lists[0]]) as usize;
    let mut buckets: Vec<Bucket> = starts.windows(2).map(|lists| Bucket::new(room(lists))).collect();
    let mut entries = Vec::with_capacity(accesses.len());
    let mut bytes = vec![];
    for unit in units.iter().rev() {
        let range = units.accesses(unit);
        for access in &accesses[range.clone()] {
            let place = place_of(access, catalog, number) as usize;
            let bucket = bucket_of(place);
            let flag = if access.suffices() { ACCEPTS } else { 0 };
            bytes.clear();
            let list = (place - starts[bucket]) as u32;
            put_words(&[list, number[unit as usize] | flag, access.test().0], &mut bytes);
            buckets[bucket].push(&bytes);
        }
        give_back(&mut accesses, range.start);
    }
    for (bucket, lists) in buckets.into_iter().zip(starts.windows(2)) {
        let mut next = first[lists[0]..lists[1]].to_vec();
        entries.resize(first[lists[1]] as usize, [0; 2]);
        let (mut rest, mut entry) = (bucket.bytes(), [0; 3]);
        while !rest.is_empty() {
            rest = read_words(rest, &mut entry);
            let [list, unit, test] = entry;
            let next = &mut next[list as usize];
            entries[*next as usize] = [unit, test];
            *next += 1;
        }
        for place in lists[0]..lists[1] {
            let list = &mut entries[first[place] as usize..first[place + 1] as usize];
            list.sort_unstable_by_key(|[unit, test]| (unit & !ACCEPTS, *test, *unit));
        }
    }
    entries
}

/// For every block of entries, the highest of the bounds of its units.
fn block_bounds(bounds: &[f64], entries: &[[u32; 2]], order: &[u32]) -> Vec<f64> {
    if bounds.is_empty() {
        return vec![];
    }
    let bound = |entry: &[u32; 2]| bounds[order[(entry[0] & !ACCEPTS) as usize] as usize];
    let blocks = entries.chunks(BLOCK);
    blocks.map(|block| block.iter().map(bound).fold(f64::MIN, f64::max)).collect()
}

/// What each entry leads to; the bounds are those of units.
fn entry_bounds(
    order: &[u32],
    bounds: &[f64],
    heads: &[UnitHead],
    rows: &[u32],
    entries: &[[u32; 2]],
    scoring: &Scoring,
) -> EntryBounds {
    let entry_bound_of = |(heads, unit): (&[UnitHead], &u32)| {
        let only_row = match &rows[heads[0].rows as usize..heads[1].rows as usize] {
            [row] if heads[0].waiting == heads[1].waiting => Some(*row),
            _ => None,
        };
        EntryBound::new(&scoring.sketches, only_row, bounds[*unit as usize])
    };
    let of_units: Vec<EntryBound> = heads.windows(2).zip(order).map(entry_bound_of).collect();
    EntryBounds(
        entries.iter().map(|[unit, _]| of_units[(unit & !ACCEPTS) as usize]).collect::<Vec<_>>().into(),
    )
}

/// Floats in an order that sorts.
fn ordered(x: f64) -> i64 {
    let bits = x.to_bits() as i64;
    bits ^ (((bits >> 63) as u64) >> 1) as i64
}
