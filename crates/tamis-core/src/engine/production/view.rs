//! One consistent version of an index. Readers hold one; writers publish the next.

use std::iter::once;
use std::ops::ControlFlow;
use std::sync::{Arc, OnceLock};

use super::insert_buffer::InsertBuffer;
use super::owners::Owners;
use super::tombstones::Tombstones;
use crate::engine::contract::{Location, Work};
use crate::engine::expected_kinds::ExpectedKinds;
use crate::engine::quantified::new_terms;
use crate::engine::segment::Segment;
use crate::engine::segment::buffered_subscription::Presence;
use crate::engine::segment::layout::Layout;
use crate::engine::segment::matcher::Scratch;
use crate::engine::segment::subscription_table::SubscriptionTable;
use crate::engine::segment::walk::UnitCollector;
use crate::event::{Event, TermId, Terms};
use crate::expr::eval::evaluate;
use crate::fork::get_or_init;
use crate::prefetch::prefetch;
use crate::query::collector::Shared;
use crate::query::{Collector, Filter, Tags};
use crate::subscription::IdKind;

/// A segment, and which of its rows have died.
#[derive(Clone)]
pub struct Part {
    pub segment: Arc<Segment>,
    pub tombstones: Arc<Tombstones>,
    /// How many events the index had seen when the segment was built.
    pub built_after: u64,
    /// One of several that a large build made (`bulk`): it is not merged with others unless all are.
    pub is_apart: bool,
}

impl Part {
    pub fn new(segment: Segment, built_after: u64) -> Self {
        let tombstones = Arc::new(Tombstones::new(segment.len()));
        Self { segment: Arc::new(segment), tombstones, built_after, is_apart: false }
    }

    /// The segments that were built together.
    pub fn of_segments(segments: Vec<Segment>, built_after: u64) -> Vec<Self> {
        let is_apart = segments.len() > 1;
        let part = |segment| Self { is_apart, ..Self::new(segment, built_after) };
        segments.into_iter().map(part).collect()
    }

    pub fn living(&self) -> usize {
        self.segment.len() - self.tombstones.count()
    }
}

#[derive(Clone)]
pub struct View {
    pub generation: u64,
    pub terms: Terms,
    pub id_kind: Option<IdKind>,
    pub len: usize,
    /// Shared by all versions between two changes of a segment.
    pub parts: Arc<Vec<Part>>,
    pub buffer: InsertBuffer,
    /// Made when an event asks, and kept up to date by insertions from then on.
    pub expected: OnceLock<ExpectedKinds>,
    /// Built on the first query for owners; every change resets it.
    pub owners: OnceLock<Arc<Owners>>,
}

impl Default for View {
    fn default() -> Self {
        Self {
            generation: 0,
            terms: new_terms(),
            id_kind: None,
            len: 0,
            parts: Arc::default(),
            buffer: InsertBuffer::default(),
            expected: OnceLock::new(),
            owners: OnceLock::new(),
        }
    }
}

impl View {
    /// Every living subscription's place, in no particular order.
    pub fn unsorted_locations(&self) -> impl Iterator<Item = Location> + '_ {
        let rows = self.parts.iter().enumerate().flat_map(move |(part, held)| {
            (0..held.segment.len() as u32)
                .filter(move |row| !held.tombstones.is_removed(*row, self.generation))
                .map(move |row| Location::Row { part: part as u32, row })
        });
        rows.chain((0..self.buffer.len() as u32).map(Location::Buffer))
    }

    /// How many values of an event are of a kind that no predicate expects, as work.
    pub fn mismatches(&self, event: &Event<'_>) -> Work {
        self.expected().mismatches(event)
    }

    /// The kinds of values that predicates expect.
    pub fn expected(&self) -> &ExpectedKinds {
        get_or_init(&self.expected, || {
            let mut expected = ExpectedKinds::default();
            for part in self.parts.iter() {
                for entry in part.segment.layout.catalog.terms.iter() {
                    expected.add(TermId(entry.attribute), entry.expected_kinds);
                }
            }
            self.buffer.iter().for_each(|buffered| expected.note(&buffered.atoms));
            expected.note_arguments(&self.terms);
            expected
        })
    }

    /// Hands every match to the collector, each once, in no particular order, until it wants no more. An event with
    /// much to do is shared by this many threads.
    pub fn collect<C: Shared>(
        &self,
        event: &Event<'_>,
        filter: &Filter<'_>,
        threads: usize,
        scratch: &mut Scratch,
        collector: &mut C,
    ) -> Work {
        if let Some(work) = self.collect_from_plan(event, filter, scratch, collector) {
            return work;
        }
        let mut work = self.mismatches(event);
        let is_small = !self.parts.iter().any(|part| part.segment.layout.may_need_threads());
        let threads = if is_small { 1 } else { threads };
        let mut others: Vec<C> = (1..threads).map(|_| collector.empty()).collect();
        if collector.may_stop() && self.collect_buffered(event, filter, collector).is_break() {
            return work;
        }
        for (number, part) in self.parts.iter().enumerate() {
            let keeps = RowFilter::new(self, part, filter, event);
            let layout = &part.segment.layout;
            let all_rows = |collector| AllRows::new(layout, number as u32, collector);
            let kept_rows = |collector| KeptRows { keeps: &keeps, rows: all_rows(collector) };
            let (units, is_done) = match (keeps.keeps_all(), others.is_empty() || !layout.may_need_threads())
            {
                (true, true) => {
                    let mut rows = all_rows(collector);
                    (part.segment.matching_units(event, scratch, &mut rows), rows.finish())
                }
                (false, true) => {
                    let mut rows = kept_rows(collector);
                    (part.segment.matching_units(event, scratch, &mut rows), rows.rows.is_done)
                }
                (true, false) => {
                    let mut rows: Vec<_> = once(&mut *collector).chain(&mut others).map(all_rows).collect();
                    let work = layout.matching_units_on_threads(event, scratch, &mut rows);
                    (work, rows.into_iter().fold(false, |is_done, rows| rows.finish() | is_done))
                }
                (false, false) => {
                    let mut rows: Vec<_> = once(&mut *collector).chain(&mut others).map(kept_rows).collect();
                    let work = layout.matching_units_on_threads(event, scratch, &mut rows);
                    (work, rows.iter().any(|rows| rows.rows.is_done))
                }
            };
            others.iter_mut().for_each(|other| {
                let found = std::mem::replace(other, collector.empty());
                collector.unite(found);
            });
            work += units;
            if is_done {
                return work;
            }
            if event.has_intervals {
                for &row in part.segment.subscription_table.point_only.iter() {
                    // The normal form may have found it too: it is reported here alone.
                    let found = Location::Row { part: number as u32, row };
                    if keeps.keeps_point_only(row) && collector.collect(found).is_break() {
                        return work;
                    }
                }
            }
        }
        work.candidates += self.buffer.len() as u64;
        if !collector.may_stop() {
            let _ = self.collect_buffered(event, filter, collector);
        }
        work
    }

    /// The same from the plan of a segment that is all there is; `None` if it has none, or declines the event. A plan that does
    /// not decline knows that all kinds are expected, unless values are looked at that only computed terms need.
    #[inline]
    fn collect_from_plan(
        &self,
        event: &Event<'_>,
        filter: &Filter<'_>,
        scratch: &mut Scratch,
        collector: &mut impl Collector,
    ) -> Option<Work> {
        let [part] = &self.parts[..] else { return None };
        if !self.buffer.is_empty() || self.terms.has_computed() {
            return None;
        }
        let (plan, layout) = (part.segment.bit_sliced()?, &part.segment.layout);
        let mut rows = AllRows::new(layout, 0, collector);
        if RowFilter::would_keep_all(part, filter, event) {
            let work = plan.matching_units(layout, event, scratch.for_plan(), &mut rows);
            rows.finish();
            return work;
        }
        let keeps = RowFilter::new(self, part, filter, event);
        plan.matching_units(layout, event, scratch.for_plan(), &mut KeptRows { keeps: &keeps, rows })
    }

    fn collect_buffered(
        &self,
        event: &Event<'_>,
        filter: &Filter<'_>,
        collector: &mut impl Collector,
    ) -> ControlFlow<()> {
        self.buffered_matches(event, filter).try_for_each(|found| collector.collect(found))
    }

    /// The owners of subscriptions, numbered over all segments and the buffer.
    pub fn owners(&self) -> &Owners {
        let owners: &Arc<Owners> = get_or_init(&self.owners, || Arc::new(Owners::of(self)));
        owners
    }

    /// The places of the matches in the buffer.
    pub fn buffered_matches(&self, event: &Event<'_>, filter: &Filter<'_>) -> impl Iterator<Item = Location> {
        let present = Presence::of(event);
        self.buffer.iter().enumerate().filter_map(move |(at, buffered)| {
            let holds = filter.keeps(&buffered.subscription) && buffered.holds(event, present, &self.terms);
            holds.then_some(Location::Buffer(at as u32))
        })
    }
}

/// Hands the rows of the units that hold to a collector.
pub(super) struct AllRows<'a, C> {
    layout: &'a Layout,
    part: u32,
    collector: &'a mut C,
    /// The collector wants no more.
    is_done: bool,
    /// Units whose rows are on their way from memory, and how many they are.
    fetched: [u32; FETCHED],
    waiting: usize,
}

/// Units that are passed on together, if all are wanted: their rows are anywhere in memory.
const FETCHED: usize = 16;

impl<'a, C> AllRows<'a, C> {
    pub(super) fn new(layout: &'a Layout, part: u32, collector: &'a mut C) -> Self {
        Self { layout, part, collector, is_done: false, fetched: [0; FETCHED], waiting: 0 }
    }
}

impl<C: Collector> AllRows<'_, C> {
    /// Hands the last rows over; says whether the collector wants no more.
    #[inline]
    fn finish(mut self) -> bool {
        if self.waiting > 0 {
            self.hand_over_fetched();
        }
        self.is_done
    }

    fn hand_over_fetched(&mut self) {
        for at in 0..std::mem::take(&mut self.waiting) {
            let _ = self.hand_over(self.fetched[at]);
        }
    }

    #[inline]
    fn hand_over(&mut self, unit: u32) -> ControlFlow<()> {
        for &row in self.layout.rows_of(unit) {
            if self.collector.collect(Location::Row { part: self.part, row }).is_break() {
                self.is_done = true;
                return ControlFlow::Break(());
            }
        }
        ControlFlow::Continue(())
    }
}

impl<C: Collector> UnitCollector for AllRows<'_, C> {
    #[inline]
    fn unit(&mut self, unit: u32, _: &[u64]) -> ControlFlow<()> {
        if C::COUNTS {
            self.collector.add(self.layout.rows_of(unit).len());
            return ControlFlow::Continue(());
        }
        if self.collector.may_stop() {
            return self.hand_over(unit);
        }
        if self.waiting == FETCHED {
            self.hand_over_fetched();
        }
        prefetch(self.layout.rows_of(unit).as_ptr());
        self.fetched[self.waiting] = unit;
        self.waiting += 1;
        ControlFlow::Continue(())
    }

    fn single_row(&mut self, first: u32, mut units: u64, _: &[u64]) -> ControlFlow<()> {
        if C::COUNTS {
            self.collector.add(units.count_ones() as usize);
            return ControlFlow::Continue(());
        }
        while units != 0 {
            self.hand_over(first + units.trailing_zeros())?;
            units &= units - 1;
        }
        ControlFlow::Continue(())
    }

    fn may_stop(&self) -> bool {
        self.collector.may_stop()
    }
}

/// The same for those rows that a filter keeps.
struct KeptRows<'a, C> {
    keeps: &'a RowFilter<'a>,
    rows: AllRows<'a, C>,
}

impl<C: Collector> UnitCollector for KeptRows<'_, C> {
    #[inline]
    fn unit(&mut self, unit: u32, _: &[u64]) -> ControlFlow<()> {
        let rows = &mut self.rows;
        for &row in rows.layout.rows_of(unit) {
            let found = Location::Row { part: rows.part, row };
            if self.keeps.keeps(row) && rows.collector.collect(found).is_break() {
                rows.is_done = true;
                return ControlFlow::Break(());
            }
        }
        ControlFlow::Continue(())
    }

    fn may_stop(&self) -> bool {
        self.rows.may_stop()
    }
}

/// The filter of one part: the living, the unexpired, the tagged, and for interval events the
/// verified.
pub struct RowFilter<'a> {
    view: &'a View,
    part: &'a Part,
    now: i64,
    tags: Option<TaggedRows<'a>>,
    event: &'a Event<'a>,
    checks_tombstones: bool,
    checks_time: bool,
}

impl<'a> RowFilter<'a> {
    pub fn new(view: &'a View, part: &'a Part, filter: &'a Filter<'a>, event: &'a Event<'a>) -> Self {
        let subscription_table = &part.segment.subscription_table;
        Self {
            view,
            part,
            now: filter.now,
            tags: (!filter.tags.are_free()).then(|| TaggedRows::new(filter.tags, subscription_table)),
            event,
            checks_tombstones: part.tombstones.any(),
            checks_time: !subscription_table.is_timeless(),
        }
    }

    /// Whether there would be nothing to filter.
    #[inline]
    fn would_keep_all(part: &Part, filter: &Filter<'_>, event: &Event<'_>) -> bool {
        !part.tombstones.any()
            && part.segment.subscription_table.is_timeless()
            && filter.tags.are_free()
            && !event.has_intervals
    }

    /// Whether there is nothing to filter.
    pub fn keeps_all(&self) -> bool {
        !self.checks_tombstones && !self.checks_time && self.tags.is_none() && !self.event.has_intervals
    }

    pub fn keeps(&self, row: u32) -> bool {
        self.keeps_row(row)
            && (!self.event.has_intervals
                || self.part.segment.subscription_table.point_only.binary_search(&row).is_err()
                    && self.verified(row))
    }

    fn keeps_point_only(&self, row: u32) -> bool {
        self.keeps_row(row) && self.verified(row)
    }

    /// Whether the row is alive, active at the moment and tagged.
    pub fn keeps_row(&self, row: u32) -> bool {
        !(self.checks_tombstones && self.part.tombstones.is_removed(row, self.view.generation)
            || self.checks_time && !self.part.segment.subscription_table.is_active(row, self.now))
            && self.tags.as_ref().is_none_or(|tags| tags.keep(row))
    }

    fn verified(&self, row: u32) -> bool {
        let terms = &self.view.terms;
        self.part.segment.subscription(row, terms).is_ok_and(|subscription| {
            evaluate(&subscription.expression, &|name| self.event.get(terms.get(name)?)).can_be_true
        })
    }
}

/// The rows of one segment that have the tags that a query names.
struct TaggedRows<'a> {
    any: Option<Vec<&'a [u32]>>,
    all: Vec<&'a [u32]>,
    none: Vec<&'a [u32]>,
}

impl<'a> TaggedRows<'a> {
    fn new(tags: &Tags, subscription_table: &'a SubscriptionTable) -> Self {
        let rows = |tags: &[Box<str>]| tags.iter().map(|tag| subscription_table.rows_with_tag(tag)).collect();
        Self { any: tags.any.as_deref().map(rows), all: rows(&tags.all), none: rows(&tags.none) }
    }

    fn keep(&self, row: u32) -> bool {
        let has = |rows: &&[u32]| rows.binary_search(&row).is_ok();
        self.any.as_ref().is_none_or(|lists| lists.iter().any(has))
            && self.all.iter().all(has)
            && !self.none.iter().any(has)
    }
}
