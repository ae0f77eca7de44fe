//! A block of events against an index: placed attribute by attribute, matched one by one or bit-parallel.

use std::ops::Range;
use std::time::Instant;

use super::EventSource;
use super::bit_parallel::{self, BlockScratch, Mask};
use super::counters::Counters;
use crate::event::Event;
use crate::event::arrow::ArrowEvents;
use crate::index::production::view::{Counting, Filter, Location, Part, RowFilter, View};
use crate::index::reader::{GO_ON, sort_by_row};
use crate::index::segment::layout::Layout;
use crate::index::segment::matcher::{Scratch, Work};
use crate::index::{Index, Reader};
use crate::predicate::catalog::Catalog;
use crate::predicate::placed::PlacedBlock;

/// Events that are tried one by one before the rest is matched bit-parallel.
const PROBES: usize = 8;

/// Events that are points, and the version of the index that they are matched with.
pub struct Block<'e> {
    view: &'e View,
    events: Events<'e>,
}

enum Events<'e> {
    Columns(&'e ArrowEvents<'e>, Range<usize>),
    Loaded(Vec<Event<'e>>),
}

impl<'e> Block<'e> {
    /// The events of a range, if all are points and the index can match them in blocks.
    pub fn new(
        reader: &'e Reader,
        events: &'e (impl EventSource + ?Sized),
        range: Range<usize>,
    ) -> Option<Self> {
        let Reader::View(view) = reader else { return None };
        if let Some(columns) = events.columns() {
            let events = Events::Columns(columns, range);
            return (!columns.has_intervals()).then_some(Self { view, events });
        }
        let load = |row| {
            let mut event = Event::default();
            events.fill(row, &mut event);
            event
        };
        let loaded: Vec<_> = range.map(load).collect();
        let are_points = !loaded.iter().any(|event| event.has_intervals);
        are_points.then_some(Self { view, events: Events::Loaded(loaded) })
    }

    fn len(&self) -> usize {
        match &self.events {
            Events::Columns(_, range) => range.len(),
            Events::Loaded(events) => events.len(),
        }
    }

    /// Calls `see` with an event.
    fn with_event(&self, at: usize, see: impl FnOnce(&Event<'_>)) {
        match &self.events {
            Events::Columns(columns, range) => see(&columns.event(range.start + at)),
            Events::Loaded(events) => see(&events[at]),
        }
    }

    fn place(&self, catalog: &Catalog, placed: &mut PlacedBlock<'e>) {
        match &self.events {
            Events::Loaded(events) => placed.place_events(catalog, events),
            Events::Columns(columns, range) => {
                placed.clear(range.len());
                for (attribute, column) in columns.columns() {
                    if let Some(entry) = catalog.entry(attribute) {
                        placed.place_column(catalog, entry, column, range.clone());
                    }
                }
                placed.arrange();
            }
        }
    }

    /// How many values are of a kind that no predicate expects.
    fn mismatches(&self) -> u64 {
        let expected = self.view.expected();
        match &self.events {
            Events::Loaded(events) => events.iter().map(|event| expected.mismatches(event)).sum(),
            Events::Columns(columns, range) => {
                let may_be_wrong = columns.columns().filter(|(attribute, column)| {
                    column.kind().is_none_or(|kind| expected.is_wrong(*attribute, kind))
                });
                let values = may_be_wrong.flat_map(|(attribute, column)| {
                    range.clone().filter_map(move |row| Some((attribute, column.value(row)?.kind()?)))
                });
                values.filter(|(attribute, kind)| expected.is_wrong(*attribute, *kind)).count() as u64
            }
        }
    }

    /// What the filter keeps of each part, for points such as the one given.
    fn filters<'f>(&'f self, filter: &'f Filter, point: &'f Event<'f>) -> Vec<RowFilter<'f>> {
        self.view.parts.iter().map(|part| RowFilter::new(self.view, part, filter, point)).collect()
    }

    /// The matches in the buffer of the version.
    fn buffered(&self, filter: &Filter, mut found: impl FnMut(usize, Location)) {
        if self.view.buffer.is_empty() {
            return;
        }
        for at in 0..self.len() {
            self.with_event(at, |event| {
                self.view.buffered_matches(event, filter).for_each(|location| found(at, location));
            });
        }
    }
}

/// What one thread works with.
#[derive(Default)]
pub struct Workspace<'e> {
    pub scratch: Scratch,
    placed: PlacedBlock<'e>,
    bit_parallel: BlockScratch,
    /// Rows that match some events of the block, and which.
    rows: Vec<(u32, Mask)>,
    /// The matches of each event.
    found: Vec<Vec<Location>>,
    /// What each event cost that was matched by itself.
    work: Vec<Work>,
}

impl<'e> Workspace<'e> {
    /// How many matches each event has.
    pub fn counts(&mut self, index: &Index, block: &Block<'e>, filter: &Filter) -> Vec<u32> {
        let started = Instant::now();
        let mut counts = vec![0; block.len()];
        let point = Event::default();
        let filters = block.filters(filter, &point);
        let alone = self.each_part(block, |space, number, part, phase| {
            let (layout, keeps) = (&part.segment.layout, &filters[number as usize]);
            let plain = keeps.keeps_all();
            let kept = |unit: u32| {
                let rows = layout.rows_of(unit);
                if plain { rows.len() } else { rows.iter().filter(|row| keeps.keeps(**row)).count() }
            };
            match phase {
                Phase::One(at) => {
                    let event = space.placed.event(at);
                    let mut counting = Counting { layout, rows: 0 };
                    let work = if plain {
                        layout.matching_units(&event, &mut space.scratch, &mut counting)
                    } else {
                        layout.matching_units(&event, &mut space.scratch, &mut |unit| {
                            counting.rows += kept(unit);
                            GO_ON
                        })
                    };
                    counts[at] += counting.rows as u32;
                    work
                }
                Phase::Rest(from) => {
                    let mut counters = Counters::default();
                    let events = space.placed.events(from..block.len());
                    bit_parallel::matching_units(layout, events, &mut space.bit_parallel, |unit, events| {
                        counters.add(events, kept(unit));
                    });
                    for (count, more) in counts[from..].iter_mut().zip(counters.totals()) {
                        *count += more;
                    }
                    Work::default()
                }
            }
        });
        block.buffered(filter, |at, _| counts[at] += 1);
        let matches = counts[..alone].iter().map(|count| *count as usize).sum();
        self.learn(index, block, alone, matches, started);
        counts
    }

    /// Calls `add` with each event that matches something and all its matches, ordered by id.
    pub fn matches(
        &mut self,
        index: &Index,
        block: &Block<'e>,
        filter: &Filter,
        mut add: impl FnMut(usize, &[Location]),
    ) {
        let started = Instant::now();
        let mut found = std::mem::take(&mut self.found);
        found.resize_with(found.len().max(block.len()), Vec::new);
        let point = Event::default();
        let filters = block.filters(filter, &point);
        let alone = self.each_part(block, |space, number, part, phase| {
            let (layout, keeps) = (&part.segment.layout, &filters[number as usize]);
            match phase {
                Phase::One(at) => {
                    let event = space.placed.event(at);
                    let found = &mut found[at];
                    let before = found.len();
                    let work = layout.matching_units(&event, &mut space.scratch, &mut |unit| {
                        let rows = layout.rows_of(unit).iter().filter(|row| keeps.keeps(**row));
                        found.extend(rows.map(|row| Location::Row { part: number, row: *row }));
                        GO_ON
                    });
                    sort_by_row(&mut found[before..], part.segment.len());
                    work
                }
                Phase::Rest(from) => {
                    let rows = &mut space.rows;
                    rows.clear();
                    let events = space.placed.events(from..block.len());
                    bit_parallel::matching_units(layout, events, &mut space.bit_parallel, |unit, events| {
                        let kept = layout.rows_of(unit).iter().filter(|row| keeps.keeps(**row));
                        rows.extend(kept.map(|row| (*row, *events)));
                    });
                    rows.sort_unstable_by_key(|(row, _)| *row);
                    for (row, events) in rows.iter() {
                        let location = Location::Row { part: number, row: *row };
                        events.for_each(|event| found[from + event].push(location));
                    }
                    Work::default()
                }
            }
        });
        block.buffered(filter, |at, location| found[at].push(location));
        let is_sorted = block.view.parts.len() <= 1 && block.view.buffer.is_empty();
        let mut matches = 0;
        for (at, locations) in found[..block.len()].iter_mut().enumerate() {
            if !is_sorted {
                locations.sort_unstable_by(|a, b| block.view.id_ref(*a).cmp(&block.view.id_ref(*b)));
            }
            if !locations.is_empty() {
                add(at, locations);
            }
            matches += if at < alone { locations.len() } else { 0 };
            locations.clear();
        }
        self.found = found;
        self.learn(index, block, alone, matches, started);
    }

    /// Places the block in each part of the index and calls `run` with each of its events, and once with all
    /// from some event on where that is cheaper. Returns how many were matched by themselves everywhere.
    fn each_part(
        &mut self,
        block: &Block<'e>,
        mut run: impl FnMut(&mut Self, u32, &Part, Phase) -> Work,
    ) -> usize {
        let events = block.len();
        let mut alone = events;
        self.work.clear();
        self.work.resize(events, Work::default());
        for (number, part) in block.view.parts.iter().enumerate() {
            let layout = &part.segment.layout;
            block.place(&layout.catalog, &mut self.placed);
            let mut total = Work::default();
            for at in 0..events {
                if at == PROBES && together_is_cheaper(layout, &total, at, events - at) {
                    run(self, number as u32, part, Phase::Rest(at));
                    alone = alone.min(at);
                    break;
                }
                let work = run(self, number as u32, part, Phase::One(at));
                total += work;
                self.work[at] += work;
            }
        }
        alone
    }

    /// Learns from the events that were matched by themselves.
    fn learn(&self, index: &Index, block: &Block<'_>, alone: usize, matches: usize, started: Instant) {
        let mut work = Work { mismatches: block.mismatches(), ..Work::default() };
        self.work[..alone].iter().for_each(|each| work += *each);
        work.candidates += (alone * block.view.buffer.len()) as u64;
        let nanoseconds = started.elapsed().as_nanos() as u64 * alone as u64 / block.len().max(1) as u64;
        index.observe_many(alone, matches, work, nanoseconds, |at, keep| block.with_event(at, keep));
    }
}

/// Which events of a block are to be matched.
#[derive(Clone, Copy)]
enum Phase {
    One(usize),
    /// All from this one on, bit-parallel.
    Rest(usize),
}

/// Whether evaluating the rest together is cheaper than one by one, by what `done` events cost.
///
/// Together, an entry, a unit and a key cost the same for one event as for all, but each event needs others. The
/// weights are nanoseconds, fitted to both ways on conjunctive, equality, arbitrary and dense expressions, 10,000 to
/// a million of them, and to blocks of 64 to 512 events.
fn together_is_cheaper(layout: &Layout, work: &Work, done: usize, rest: usize) -> bool {
    let (done, rest) = (done as f64, rest as f64);
    let (candidates, evaluations) = (work.candidates as f64 / done, work.evaluations as f64 / done);
    let (entries, units, keys) = (layout.entries.len() as f64, layout.units() as f64, layout.keys() as f64);
    let one_by_one = (candidates * 2.0 + evaluations * 90.0 + keys * 0.03) * rest;
    let entries_read = entries.min(candidates * rest);
    let units_run = units.min(evaluations * rest);
    entries_read * 4.0 + units_run * 230.0 + keys * 30.0 < one_by_one
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::types::Int32Type;
    use arrow_array::*;

    use super::*;
    use crate::batch::{count_events, match_events};
    use crate::index::{Id, Subscription};

    const RULES: [&str; 14] = [
        "int = 7",
        "int IN (1, 2, 3) OR NOT int > 90",
        "int BETWEEN 10 AND 60 AND float < 0.5",
        "float >= 0.25 AND NOT text = 'c3'",
        "text LIKE 'c%' AND flag",
        "text < 'c5' OR price = 12.5",
        "price > 3 AND price <= 40",
        "array_contains(list, 4)",
        "NOT array_contains(list, 4)",
        "label IN ('red', 'blue') AND text IS NOT NULL",
        "text IS NULL OR small = 3",
        "when > timestamp '1970-01-01T00:00:01Z' AND NOT label = 'red'",
        "int <=> 5 OR NOT (float <=> 0.5)",
        "odd = 'a text'",
    ];

    /// Rows of every kind of column; a value is missing now and then.
    fn batch(rows: usize) -> RecordBatch {
        let some = |row: usize, step: usize| (!row.is_multiple_of(step)).then_some(row);
        let each = |step| (0..rows).map(move |row| some(row, step));
        let list =
            (0..rows).map(|row| some(row, 5).map(|row| vec![Some(row as i32 % 9), some(row, 3).map(|_| 4)]));
        let labels: DictionaryArray<Int32Type> =
            each(6).map(|row| row.map(|row| ["red", "green", "blue"][row % 3])).collect();
        let price: Decimal128Array = each(7).map(|row| row.map(|row| row as i128 * 25 % 5000)).collect();
        let columns: [(&str, ArrayRef); 10] = [
            ("odd", Arc::new(each(2).map(|row| row.map(|row| row as i64)).collect::<Int64Array>())),
            (
                "int",
                Arc::new(each(11).map(|row| row.map(|row| row as i64 * 13 % 97)).collect::<Int64Array>()),
            ),
            (
                "float",
                Arc::new(each(4).map(|row| row.map(|row| row as f64 % 8.0 / 8.0)).collect::<Float64Array>()),
            ),
            (
                "text",
                Arc::new(each(9).map(|row| row.map(|row| format!("c{}", row % 8))).collect::<StringArray>()),
            ),
            ("flag", Arc::new(each(8).map(|row| row.map(|row| row % 2 == 0)).collect::<BooleanArray>())),
            ("small", Arc::new(each(3).map(|row| row.map(|row| (row % 5) as i8)).collect::<Int8Array>())),
            ("price", Arc::new(price.with_precision_and_scale(10, 2).expect("it fits"))),
            ("list", Arc::new(ListArray::from_iter_primitive::<Int32Type, _, _>(list))),
            ("label", Arc::new(labels)),
            (
                "when",
                Arc::new(
                    each(13)
                        .map(|row| row.map(|row| row as i64 * 10_000))
                        .collect::<TimestampMicrosecondArray>(),
                ),
            ),
        ];
        RecordBatch::try_from_iter_with_nullable(columns.map(|(name, column)| (name, column, true)))
            .expect("equal lengths")
    }

    #[test]
    fn columns_of_every_kind_match_as_events_do() {
        // In one segment, in several, and in the buffer; few subscriptions, and so many that blocks pay.
        for (copies, sealed) in [(1, false), (1, true), (200, true)] {
            let index = Index::default();
            for copy in 0..copies {
                for (at, rule) in RULES.iter().enumerate() {
                    let expression = crate::expr::parser::parse(rule).expect(rule);
                    let id = Id::Int((copy * RULES.len() + at) as i64);
                    index.add(Subscription::new(id, expression)).expect(rule);
                }
            }
            if sealed {
                index.optimize().expect("nothing is in the way");
            }
            let reader = index.reader().expect("it can be read");
            let (batch, filter) = (batch(1300), Filter { tags: None, now: 0 });
            let events = ArrowEvents::new(&batch, reader.attributes(), None).expect("every type is known");
            let mut scratch = Scratch::default();
            let alone: Vec<_> = (0..events.len())
                .map(|row| reader.matches(&events.event(row), &filter, &mut scratch).0)
                .collect();
            let counts: Vec<_> = alone.iter().map(|found| found.len() as u32).collect();
            assert!(counts.iter().any(|count| *count > 0) && counts.iter().any(|count| *count != counts[0]));
            for threads in [1, 2] {
                assert_eq!(count_events(&index, &reader, &events, &filter, threads), counts);
                assert_eq!(
                    match_events(&index, &reader, &events, &filter, threads).locations,
                    alone.concat()
                );
            }
            let wrong: u64 = (0..events.len())
                .map(|row| match &reader {
                    Reader::View(view) => view.mismatches(&events.event(row)),
                    Reader::Classic(_) => unreachable!("it is the production index"),
                })
                .sum();
            assert!(wrong > 0);
            index.observed().reset();
            count_events(&index, &reader, &events, &filter, 1);
            assert_eq!(index.statistics()["observed"]["type_mismatches"], wrong);
        }
    }
}
