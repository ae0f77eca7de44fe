//! The predicates of one segment: from an event to the bits it sets and the access keys it fires.
//!
//! ```text
//! bit 0                       always set
//! per attribute, in order:
//!   present                   the attribute has a value
//!   absent                    it has none (only if some predicate tests it)
//!   defined × kind            it has a value of that kind: NOT p is "defined, and p's bit is clear"
//!   clean × kind              it is an array of that kind without nulls: the same for arrays
//!   points, elements          one bit per distinct `=`, IN, array_contains, arrays_overlap
//!   texts, others             one bit per pattern or operator that must be evaluated
//!   below × cut, above × cut  see `cuts`
//! ```
//!
//! An *access key* is a bit, or one of the keys after them that stand for two-sided intervals.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use bytemuck::{Pod, Zeroable};

use super::bits::Bits;
use super::boolean_bits::BooleanBits;
use super::catalog_builder::DOCUMENT;
use super::equality::{self, PointTable, Points};
use super::interleaved::Interleaved;
use super::interval_lists::IntervalLists;
use super::interval_tree::{IntervalTree, NONE};
use super::keys::ordered_key;
use super::ranges::{self, CutTable, Cuts};
use super::residual::ResidualPredicates;
use super::text_samples::TextSamples;
use crate::event::value::Kind;
use crate::event::value::cell::readings;
use crate::event::{Event, TermId, Value, ValueRef};
use crate::fork::get_or_init;
use crate::prefetch::prefetch;
use crate::snapshot::SharedSlice;

pub const TRUE_BIT: u32 = 0;
pub const NO_ATTRIBUTE: u32 = u32::MAX;
/// From so many terms on, what is known of those in an event is fetched ahead. Tests have no such indexes, and few are enough.
const MANY_TERMS: usize = if cfg!(any(test, feature = "testing")) { 24 } else { 4096 };
/// Values whose terms are fetched together.
pub(super) const FETCHED: usize = 16;

/// Everything a segment knows about one attribute. A bit number of 0 means "not used".
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct AttributeEntry {
    pub attribute: u32,
    /// The kinds that some predicate expects, one bit each; 0 when none expects any.
    pub expected_kinds: u32,
    pub present: u32,
    pub absent: u32,
    pub defined: [u32; 6],
    pub clean: [u32; 4],
    pub first_points: u32,
    pub points: u32,
    pub first_cuts: u32,
    pub cuts: u32,
    /// The run of `asked` predicates.
    pub first_residual: u32,
    pub residual: u32,
    pub first_bit: u32,
    pub end_bit: u32,
}

#[derive(Clone, Default)]
pub struct Catalog {
    pub terms: SharedSlice<AttributeEntry>,
    /// Attribute id of the index → entry, or `NO_ATTRIBUTE`.
    pub entry_of: SharedSlice<u32>,
    /// Entries that have an `absent` bit.
    pub asks_absence: SharedSlice<u32>,
    pub points: Points,
    pub cut_tables: SharedSlice<CutTable>,
    pub cuts: Cuts,
    pub interval_lists: IntervalLists,
    pub interval_tree: IntervalTree,
    pub pool: SharedSlice<u8>,
    pub residual: Arc<ResidualPredicates>,
    pub bits: u32,
    /// Made when the first text is looked up among cuts.
    pub text_samples: OnceLock<Arc<TextSamples>>,
    /// Made for the first event, if there are very many terms.
    pub boolean_bits: OnceLock<Arc<BooleanBits>>,
}

/// Values of an event that are looked up together: what one of them waits for is on its way while the others
/// go on. Made when the first value needs it, because it is large.
#[derive(Default)]
pub(super) struct Lookups {
    points: Interleaved<equality::Search>,
    cuts: Interleaved<ranges::Search>,
}

impl Lookups {
    /// Whether there is no room for the next value.
    fn are_full(&self) -> bool {
        self.points.is_full() || self.cuts.is_full()
    }
}

/// Hears of what an event satisfies.
pub trait Fired {
    /// Whether [`Fired::point`] takes what bits would tell.
    const TAKES_POINTS: bool = false;

    /// One access key.
    fn key(&mut self, key: u32);

    /// Consecutive keys of intervals.
    fn keys(&mut self, keys: Range<u32>) {
        keys.for_each(|key| self.key(key));
    }

    /// A run of keys `from..to` of cuts, not empty; the keys of the table end at `end`.
    fn run(&mut self, from: u32, to: u32, end: u32);

    /// A point of a scalar by its number. True if its predicates need not be told.
    fn point(&mut self, _point: u32) -> bool {
        false
    }

    /// How many cuts of a table lie below a value. True if neither bits nor access keys need be told.
    fn rank(&mut self, _table: u32, _rank: u32) -> bool {
        false
    }
}

impl Catalog {
    pub fn entry(&self, attribute: TermId) -> Option<&AttributeEntry> {
        match self.entry_of.get(attribute.0 as usize) {
            Some(&at) if at != NO_ATTRIBUTE => Some(&self.terms[at as usize]),
            _ => None,
        }
    }

    /// Sets the bits of all predicates that `event` satisfies and reports the access keys that fire.
    /// For an interval value it sets the bits of all that *can* be true.
    pub fn fire(&self, event: &Event<'_>, bits: &mut Bits, fired: &mut impl Fired) {
        match self.is_small() {
            true => self.fire_small(event, bits, fired),
            false => self.fire_large(event, bits, fired),
        }
    }

    /// See [`fire`](Self::fire). Lookups of several values are interleaved.
    pub(super) fn fire_large(&self, event: &Event<'_>, bits: &mut Bits, fired: &mut impl Fired) {
        self.fire_always(bits, fired);
        let mut lookups = None;
        let booleans = self.booleans_of_many(fired);
        for values in event.values.chunks(FETCHED) {
            if self.has_many_terms() {
                self.fetch_values(values, booleans);
            }
            for (attribute, value) in values {
                if let (ValueRef::Bool(truth), Some(booleans)) = (value, booleans)
                    && booleans.fire(*attribute, *truth, bits, fired)
                {
                    continue;
                }
                if let Some(entry) = self.entry(*attribute) {
                    self.fire_value(entry, *value, bits, fired, &mut lookups);
                }
            }
        }
        self.fire_lookups(&mut lookups, bits, fired);
        self.fire_absent(bits, fired);
    }

    /// Whether what is known of the terms is more than the caches hold: quantifiers and places are a term each.
    #[inline]
    pub(super) fn has_many_terms(&self) -> bool {
        self.terms.len() >= MANY_TERMS
    }

    /// What Boolean terms satisfy, if there are very many terms and bits are told.
    #[inline]
    pub(super) fn booleans_of_many<F: Fired>(&self, _: &F) -> Option<&BooleanBits> {
        if !self.has_many_terms() || F::TAKES_POINTS {
            return None;
        }
        let booleans: &Arc<BooleanBits> =
            get_or_init(&self.boolean_bits, || Arc::new(BooleanBits::new(self)));
        Some(booleans)
    }

    /// Fires Boolean terms that were found, each once.
    pub(super) fn fire_booleans(
        &self,
        found: &[(TermId, bool)],
        bits: &mut Bits,
        fired: &mut impl Fired,
        lookups: &mut Option<Lookups>,
    ) {
        let booleans = self.booleans_of_many(fired);
        for found in found.chunks(FETCHED) {
            booleans.inspect(|booleans| found.iter().for_each(|(term, truth)| booleans.fetch(*term, *truth)));
            for (term, truth) in found {
                self.fire_boolean(*term, *truth, booleans, bits, fired, lookups);
            }
        }
    }

    /// Fires one Boolean term: by the table of these, if there is one.
    #[inline]
    pub(super) fn fire_boolean(
        &self,
        term: TermId,
        truth: bool,
        booleans: Option<&BooleanBits>,
        bits: &mut Bits,
        fired: &mut impl Fired,
        lookups: &mut Option<Lookups>,
    ) {
        if booleans.is_some_and(|booleans| booleans.fire(term, truth, bits, fired)) {
            return;
        }
        if let Some(entry) = self.entry(term) {
            self.fire_value(entry, ValueRef::Bool(truth), bits, fired, lookups);
        }
    }

    /// Fetches what is known of the terms of some values.
    fn fetch_values(&self, values: &[(TermId, ValueRef<'_>)], booleans: Option<&BooleanBits>) {
        let mut numbers = [0; FETCHED];
        let mut others = 0;
        for (term, value) in values {
            match (value, booleans) {
                (ValueRef::Bool(truth), Some(booleans)) => booleans.fetch(*term, *truth),
                _ => {
                    self.entry_of.get(term.0 as usize).inspect(|number| prefetch(*number));
                    numbers[others] = term.0;
                    others += 1;
                }
            }
        }
        let numbers = numbers[..others].iter();
        self.fetch_entries(numbers.filter_map(|term| self.entry_of.get(*term as usize)).copied());
    }

    /// Fetches what is known of some terms, by the numbers of their entries, and then the heads of their tables.
    pub(super) fn fetch_entries(&self, numbers: impl Iterator<Item = u32> + Clone) {
        let entries = numbers.filter_map(|at| self.terms.get(at as usize));
        for entry in entries.clone() {
            prefetch(&entry.attribute);
            prefetch(&entry.end_bit);
        }
        for entry in entries {
            self.points.tables.get(entry.first_points as usize).inspect(|table| prefetch(*table));
            if entry.cuts > 0 {
                self.cut_tables.get(entry.first_cuts as usize).inspect(|table| prefetch(*table));
            }
        }
    }

    pub(super) fn fire_always(&self, bits: &mut Bits, fired: &mut impl Fired) {
        set(bits, TRUE_BIT, fired);
    }

    /// After all values: the attributes without one.
    pub(super) fn fire_absent(&self, bits: &mut Bits, fired: &mut impl Fired) {
        for &at in self.asks_absence.iter() {
            let entry = &self.terms[at as usize];
            if !bits.get(entry.present) {
                set(bits, entry.absent, fired);
            }
        }
    }

    /// All that a value satisfies but for points and ranges of values that have keys: those are looked up
    /// later.
    pub(super) fn fire_value(
        &self,
        entry: &AttributeEntry,
        value: ValueRef<'_>,
        bits: &mut Bits,
        fired: &mut impl Fired,
        lookups: &mut Option<Lookups>,
    ) {
        if let ValueRef::Cell(text) = value {
            return self.fire_cell(entry, text, bits, fired, lookups);
        }
        let Some(kind) = value.kind() else { return set_if_residual(bits, entry.present, fired) };
        self.fire_present(entry, kind, bits, fired);
        match value {
            ValueRef::Array(items) => self.fire_elements(entry, items, bits, fired),
            ValueRef::Interval((low, high)) => {
                self.fire_interval(entry, kind, (Some(low), Some(high)), bits, fired);
            }
            // More than can be true; the matches are verified afterwards.
            ValueRef::Set(set) => self.fire_interval(entry, kind, set.hull(), bits, fired),
            _ => self.fire_scalar(entry, kind, value, bits, fired, lookups),
        }
        if entry.residual > 0 {
            self.residual.fire(self.attribute_index(entry), value, &mut |bit| set(bits, bit, fired));
        }
    }

    /// The points and ranges that a scalar satisfies.
    #[inline]
    fn fire_scalar(
        &self,
        entry: &AttributeEntry,
        kind: Kind,
        value: ValueRef<'_>,
        bits: &mut Bits,
        fired: &mut impl Fired,
        lookups: &mut Option<Lookups>,
    ) {
        let mut tables = (entry.first_points..).zip(self.points_of(entry));
        let points = tables.find(|(_, table)| table.kind == kind as u32 && table.of_elements == 0);
        let mut tables = (entry.first_cuts..).zip(self.cuts_of(entry));
        let cuts = tables.find(|(_, table)| table.kind == kind as u32 && table.len > 0);
        if let ValueRef::Str(text) = value {
            if let Some((_, table)) = points {
                let point = self.points.find(table, value, &self.pool);
                point.into_iter().for_each(|point| self.fire_point(point, bits, fired));
            }
            if let Some((_, table)) = cuts {
                let rank = self.rank_of_text(table, text);
                self.fire_rank(table, rank, bits, fired);
            }
        } else if let Some(key) = ordered_key(value) {
            let waiting = lookups.get_or_insert_default();
            if let Some((number, _)) = points {
                waiting.points.push(equality::Search::new(&self.points, number, key));
            }
            if let Some((number, table)) = cuts {
                waiting.cuts.push(ranges::Search::new(number, table, key));
            }
            if waiting.are_full() {
                self.fire_lookups(lookups, bits, fired);
            }
        }
    }

    /// How many cuts of a table lie below a text.
    #[inline]
    pub(super) fn rank_of_text(&self, table: &CutTable, text: &str) -> u32 {
        let make = || Arc::new(TextSamples::new(&self.cut_tables, &self.cuts, &self.pool));
        let around =
            get_or_init(&self.text_samples, make).around(self.number_of(table), text, table.len as usize);
        self.cuts.rank_of_text_within(table, text, &self.pool, around)
    }

    /// All that some reading of a cell satisfies: more than is true, as of a set of values. The matches are verified
    /// afterwards.
    #[cold]
    fn fire_cell(
        &self,
        entry: &AttributeEntry,
        text: &str,
        bits: &mut Bits,
        fired: &mut impl Fired,
        lookups: &mut Option<Lookups>,
    ) {
        set_once(bits, entry.present, fired);
        for reading in readings(text) {
            let (value, Some(kind)) = (reading.as_ref(), reading.kind()) else { continue };
            set_once(bits, entry.defined[kind as usize], fired);
            self.fire_scalar(entry, kind, value, bits, fired, lookups);
            if entry.residual > 0 {
                self.residual.fire(self.attribute_index(entry), value, &mut |bit| set_once(bits, bit, fired));
            }
        }
    }

    /// There is a value of that kind.
    #[inline]
    pub(super) fn fire_present(
        &self,
        entry: &AttributeEntry,
        kind: Kind,
        bits: &mut Bits,
        fired: &mut impl Fired,
    ) {
        set_if_residual(bits, entry.present, fired);
        set_if_residual(bits, entry.defined[kind as usize], fired);
    }

    /// The value is this entry of the points.
    #[inline]
    pub(super) fn fire_point(&self, point: u32, bits: &mut Bits, fired: &mut impl Fired) {
        if fired.point(point) {
            return;
        }
        for &bit in self.points.bits_of(point) {
            set(bits, bit, fired);
        }
    }

    /// Looks up what waits for it and fires what is found.
    pub(super) fn fire_lookups(
        &self,
        lookups: &mut Option<Lookups>,
        bits: &mut Bits,
        fired: &mut impl Fired,
    ) {
        let Some(lookups) = lookups else { return };
        self.points.find_together(lookups.points.take(), |point| self.fire_point(point, bits, fired));
        self.cuts.rank_together(&self.cut_tables, lookups.cuts.as_mut_slice());
        for search in lookups.cuts.take() {
            self.fire_rank(&self.cut_tables[search.table as usize], search.rank(), bits, fired);
        }
    }

    /// This many cuts lie below the value.
    pub(super) fn fire_rank(&self, table: &CutTable, rank: u32, bits: &mut Bits, fired: &mut impl Fired) {
        if fired.rank(self.number_of(table), rank) {
            return;
        }
        self.fire_cuts(table, rank, rank, bits, fired);
        if table.list == NONE {
            self.interval_tree.stab(table.tree, rank, |keys| fired.keys(keys));
        } else {
            self.interval_lists.stab(table.list, rank).iter().for_each(|key| fired.key(*key));
        }
    }

    fn fire_elements(
        &self,
        entry: &AttributeEntry,
        items: &[Value],
        bits: &mut Bits,
        fired: &mut impl Fired,
    ) {
        for (kind, &clean) in entry.clean.iter().enumerate() {
            if clean != 0 && items.iter().all(|item| item.kind().is_some_and(|k| k as usize == kind)) {
                set(bits, clean, fired);
            }
        }
        for table in self.points_of(entry).iter().filter(|table| table.of_elements == 1) {
            for item in items {
                if item.kind().is_some_and(|kind| kind as u32 == table.kind) {
                    for &bit in self.points.lookup(table, item.as_ref(), &self.pool) {
                        if !bits.replace(bit) {
                            fired.key(bit);
                        }
                    }
                }
            }
        }
    }

    fn fire_interval(
        &self,
        entry: &AttributeEntry,
        kind: Kind,
        (low, high): (Option<&Value>, Option<&Value>),
        bits: &mut Bits,
        fired: &mut impl Fired,
    ) {
        for table in self.points_of(entry) {
            if table.kind == kind as u32 && table.of_elements == 0 {
                // Any of them can be true for a value inside; the matches are verified afterwards.
                for point in table.first_entry..table.first_entry + table.entries {
                    for &bit in self.points.bits_of(point) {
                        if !bits.replace(bit) {
                            fired.key(bit);
                        }
                    }
                }
            }
        }
        for table in self.cuts_of(entry).iter().filter(|table| table.kind == kind as u32) {
            let rank_or = |end: Option<&Value>, rest: u32| match end {
                Some(end) => self.cuts.rank(table, end.as_ref(), &self.pool),
                None => Some(rest),
            };
            let ranks = (rank_or(low, 0), rank_or(high, table.len));
            if let (Some(low), Some(high)) = ranks {
                self.fire_cuts(table, low, high, bits, fired);
                let mut found = |key| fired.key(key);
                if table.list == NONE {
                    self.interval_tree.overlap(table.tree, low, high, &mut found);
                } else {
                    self.interval_lists.overlap(table.list, low, high, &mut found);
                }
            }
        }
    }

    /// Above the cuts before `high`, below those from `low` on.
    fn fire_cuts(&self, table: &CutTable, low: u32, high: u32, bits: &mut Bits, fired: &mut impl Fired) {
        let (from, to) = (table.below + low, table.above + high);
        if from < to {
            bits.set_range(from, to);
            fired.run(from, to, table.above + table.len);
        }
    }

    /// All that a value satisfies, as [`fire`](Self::fire) does for an event.
    pub fn fire_one(
        &self,
        entry: &AttributeEntry,
        value: ValueRef<'_>,
        bits: &mut Bits,
        fired: &mut impl Fired,
    ) {
        self.fire_at_once(entry, value, bits, fired);
    }

    /// Whether paths look into the attribute.
    pub fn has_documents(&self, entry: &AttributeEntry) -> bool {
        entry.expected_kinds & DOCUMENT != 0
    }

    pub fn points_of(&self, entry: &AttributeEntry) -> &[PointTable] {
        &self.points.tables[entry.first_points as usize..(entry.first_points + entry.points) as usize]
    }

    pub fn cuts_of(&self, entry: &AttributeEntry) -> &[CutTable] {
        &self.cut_tables[entry.first_cuts as usize..(entry.first_cuts + entry.cuts) as usize]
    }

    /// The number of one of the tables of cuts.
    #[inline(always)]
    pub(super) fn number_of(&self, table: &CutTable) -> u32 {
        let offset = std::ptr::from_ref(table).addr() - self.cut_tables.as_ptr().addr();
        (offset / size_of::<CutTable>()) as u32
    }

    pub fn attribute_index(&self, entry: &AttributeEntry) -> usize {
        self.entry_of[entry.attribute as usize] as usize
    }

    pub fn bytes(&self) -> usize {
        self.terms.byte_len()
            + self.entry_of.byte_len()
            + self.points.tables.byte_len()
            + self.points.slots.byte_len()
            + self.points.keys.byte_len()
            + self.points.bit_off.byte_len()
            + self.points.bits.byte_len()
            + self.cut_tables.byte_len()
            + self.cuts.bytes()
            + self.interval_lists.bytes()
            + self.interval_tree.nodes.byte_len()
            + self.interval_tree.by_low.byte_len()
            + self.interval_tree.by_high.byte_len()
            + self.pool.byte_len()
            + self.residual.path_bytes()
            + self.text_samples.get().map_or(0, |samples| samples.bytes())
            + self.boolean_bits.get().map_or(0, |booleans| booleans.bytes())
    }
}

fn set_if_residual(bits: &mut Bits, bit: u32, fired: &mut impl Fired) {
    if bit != 0 {
        set(bits, bit, fired);
    }
}

/// The same for a bit that may be set.
fn set_once(bits: &mut Bits, bit: u32, fired: &mut impl Fired) {
    if bit != 0 && !bits.replace(bit) {
        fired.key(bit);
    }
}

fn set(bits: &mut Bits, bit: u32, fired: &mut impl Fired) {
    bits.set(bit);
    fired.key(bit);
}
