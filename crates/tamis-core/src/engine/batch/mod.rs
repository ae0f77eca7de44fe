//! Matches many events: on several threads, attribute by attribute and, if many subscriptions match, with one bit per event.
//!
//! Events come in blocks. First the values of a block are looked up in the predicates of each segment (see
//! `predicate::block_lookup`). Then its events are matched in one of two ways, depending on the cost of the first ones:
//! one by one (few candidates survive, so events share little) or bit-parallel (see `segment::bit_parallel`). Engines
//! without blocks match every event separately.

mod answer;
mod budget;
mod observation;
mod rows;
mod threads;

use std::ops::Range;
use std::time::Instant;

use super::contract::{Blocks, FoundMatches, Location, RowCounts, Scored, Version, Work, Workspace};
use super::device::{DEVICE_WIDTH, DeviceMemory, HostStage};
use super::index::Index;
use super::segment::bit_parallel::WIDTH;
use crate::error::{Error, Result};
use crate::event::EventSource;
use crate::query::{Ask, Filter, Query, Ranking};
pub use answer::{BatchAnswer, BatchMatches, BatchOwners, BatchTopK};
use budget::Budget;
use observation::{observe, one_by_one};
pub use rows::{BestMatchRows, Layout, MatchRows, Output, list_type};
use rows::{FoundBest, Writer, WrittenBest, join};
use threads::{GATHERED_AT_ONCE, Helpers, in_blocks};

/// How many events are matched together.
fn width(device: Option<&DeviceMemory>) -> usize {
    if device.is_some() { DEVICE_WIDTH } else { WIDTH }
}

/// Asks the same about every event, on several threads; `output` is how all matches are written. Where matches are listed, it stops before the event with
/// which there would be more than `most`, but not before the first: memory is bounded by `most`, and by the
/// matches of one event on each thread.
pub fn ask_events(
    index: &Index,
    version: &dyn Version,
    query: &Query,
    events: &dyn EventSource,
    threads: usize,
    most: usize,
    output: Output,
) -> Result<BatchAnswer> {
    let filter = &query.filter();
    let answer = match &query.ask {
        Ask::All => BatchAnswer::All(match_events(index, version, events, filter, threads, most, output)?),
        Ask::Count => BatchAnswer::Count(count_events(index, version, events, filter, threads)),
        Ask::Exists => {
            let counts = count_events(index, version, events, filter, threads);
            BatchAnswer::Exists(counts.into_iter().map(|count| count > 0).collect())
        }
        Ask::Owners => BatchAnswer::Owners(owners_of_events(index, version, events, filter, threads)?),
        Ask::Best(ranking) => {
            let first = output.first;
            BatchAnswer::Best(top_k_events(index, version, events, ranking, filter, threads, most, first)?)
        }
    };
    index.note_unreadable(events.unreadable())?;
    Ok(answer)
}

/// The working memory of one thread: blocks, if the engine supports them, and memory for events that are
/// matched one by one.
struct Thread<'e> {
    blocks: Option<Box<dyn Blocks + 'e>>,
    alone: Workspace,
}

impl<'e> Thread<'e> {
    fn new(
        version: &'e dyn Version,
        events: &'e dyn EventSource,
        filter: &'e Filter<'e>,
        device: Option<&'e DeviceMemory>,
        helpers: &'e Helpers,
    ) -> Self {
        let Helpers { each, gathering } = helpers;
        let on_device =
            device.and_then(|device| version.device_blocks(events, filter, device, *each, gathering));
        Self { blocks: on_device.or_else(|| version.blocks(events, filter)), alone: Workspace::default() }
    }
}

impl Thread<'_> {
    fn found(&mut self, block: Range<usize>, most: usize) -> Option<Box<dyn FoundMatches + '_>> {
        self.blocks.as_mut()?.find_matches(block, most)
    }
}

/// Matches of a block that a device lists: while some are written, those of the next block are listed and copied.
const LISTED_ON_DEVICE: usize = 1 << 24;

/// How many events are matched together when all their matches are listed.
fn width_of_lists(device: Option<&DeviceMemory>) -> usize {
    let width = width(device);
    match device {
        Some(device) => device.events_with(LISTED_ON_DEVICE).min(width).next_multiple_of(WIDTH),
        None => width,
    }
}

/// Every match of the events for which there is room.
fn match_events(
    index: &Index,
    version: &dyn Version,
    events: &dyn EventSource,
    filter: &Filter<'_>,
    threads: usize,
    most: usize,
    output: Output,
) -> Result<BatchMatches> {
    let device = index.device();
    let device = device.as_deref().filter(|device| device.is_usable());
    let width = width_of_lists(device);
    let helpers = Helpers::new(events.len(), width, threads, threads);
    let new_thread = || Thread::new(version, events, filter, device, &helpers);
    let blocks = events.len().div_ceil(width);
    let memory = device.map(|device| &device.answers);
    let budget = Budget::new(most, threads.min(blocks));
    // Long runs make large chunks. With a bound, no thread should be far ahead of what will be answered.
    let run =
        if most == usize::MAX { width * blocks.div_ceil(threads * RUNS_PER_THREAD).max(1) } else { width };
    let runs = in_blocks(events.len(), run, threads, new_thread, |thread, run| {
        let mut writer = Writer::new(version, output, memory, run.start);
        let mut answered = 0;
        for start in run.clone().step_by(width) {
            let block = start..run.end.min(start + width);
            let Some(most) = budget.share(start == 0) else { break };
            let (before, length) = (writer.matches(), block.len());
            let done = if let Some(found) = thread.found(block.clone(), most) {
                observe(index, events, start, found.observed(), None);
                let started = Instant::now();
                write_found(start, &*found, helpers.each, &mut writer)?;
                if let Some(device) = device {
                    device.end(HostStage::Write, started);
                }
                found.events()
            } else {
                match_block(index, version, events, filter, thread, block, most, &mut writer)?
            };
            budget.spend(writer.matches() - before);
            writer.reach(start + done);
            answered += done;
            if done < length {
                break;
            }
        }
        Ok::<_, Error>((answered, writer.matches(), writer.finish()?))
    });
    let mut all = BatchMatches::default();
    let mut written = vec![];
    for one in runs {
        let (answered, matches, rows) = one?;
        if all.answered > 0 && all.matches + matches > most {
            break; // threads that ran at the same time did not know of one another
        }
        all.answered += answered;
        all.matches += matches;
        written.push(rows);
        if answered < run {
            break;
        }
    }
    all.rows = join(version, output.layout, written.into_iter())?;
    Ok(all)
}

/// Matches that are worth a thread of their own.
const MATCHES_PER_HELPER: usize = 1 << 18;

/// Writes what was found of the events from `first` on, on several threads if that pays: when there are fewer blocks than threads.
fn write_found(
    first: usize,
    found: &dyn FoundMatches,
    helpers: usize,
    writer: &mut Writer<'_>,
) -> Result<()> {
    let write = |range: Range<usize>, writer: &mut Writer<'_>| {
        let mut locations = vec![];
        for at in range.clone().filter(|at| found.matches_of(*at) > 0) {
            writer.reserve((at..range.end).map(|at| found.matches_of(at)));
            if !writer.add_ids(first + at, |ids, past_caches| found.add_int_ids(at, ids, past_caches))? {
                found.of_event(at, &mut locations);
                writer.add(first + at, &locations)?;
            }
        }
        Ok(())
    };
    let helpers = helpers.min(found.matches() / MATCHES_PER_HELPER);
    if helpers <= 1 {
        return write(0..found.events(), writer);
    }
    // Shorter pieces than threads: events differ in how much they match.
    let piece = found.events().div_ceil(4 * helpers).max(1);
    let pieces = in_blocks(
        found.events(),
        piece,
        helpers,
        || (),
        |(), range| {
            let mut writer = writer.another(first + range.start);
            write(range.clone(), &mut writer)?;
            writer.reach(first + range.end);
            writer.settle()?; // here, where others write at the same time
            Ok::<_, Error>(writer)
        },
    );
    pieces.into_iter().try_for_each(|piece| writer.append(piece?))
}

/// How many runs of events a thread answers, unless one is slower than the others.
const RUNS_PER_THREAD: usize = 8;

/// Writes the matches of a block; says how many of its events are answered.
#[allow(clippy::too_many_arguments)]
fn match_block(
    index: &Index,
    version: &dyn Version,
    events: &dyn EventSource,
    filter: &Filter<'_>,
    thread: &mut Thread<'_>,
    block: Range<usize>,
    most: usize,
    writer: &mut Writer<'_>,
) -> Result<usize> {
    let first = block.start;
    let mut outcome = Ok(());
    let mut add = |at: usize, locations: &[Location]| {
        if outcome.is_ok() {
            outcome = writer.add(first + at, locations);
        }
    };
    let answered =
        match thread.blocks.as_mut().and_then(|blocks| blocks.matches(block.clone(), most, &mut add)) {
            Some((answered, observed)) => {
                observe(index, events, first, observed, thread.blocks.as_deref());
                answered
            }
            None => {
                let mut held = 0;
                one_by_one(index, events, block, |at, event| {
                    let (locations, work) = version.matches(event, filter, &mut thread.alone);
                    held += locations.len();
                    let fits = held <= most || at == 0;
                    if fits {
                        add(at, &locations);
                    }
                    (fits, locations.len(), work)
                })
            }
        };
    outcome.map(|()| answered)
}

/// Blocks whose matches a device counts at once.
const COUNTED_AT_ONCE: usize = 8;

/// How many matches every event has.
fn count_events(
    index: &Index,
    version: &dyn Version,
    events: &dyn EventSource,
    filter: &Filter<'_>,
    threads: usize,
) -> Vec<u32> {
    let device = index.device();
    let device = device.as_deref().filter(|device| device.is_usable());
    let width = width(device);
    let helpers = Helpers::new(events.len(), width, threads, GATHERED_AT_ONCE);
    let new_thread = || Thread::new(version, events, filter, device, &helpers);
    let at_once = if device.is_some() { threads.min(COUNTED_AT_ONCE) } else { threads };
    let blocks = in_blocks(events.len(), width, at_once, new_thread, |thread, range| {
        let mut counts = Vec::with_capacity(range.len());
        match thread.blocks.as_mut().and_then(|blocks| blocks.counts(range.clone(), &mut counts)) {
            Some(observed) => {
                observe(index, events, range.start, observed, thread.blocks.as_deref());
                range.len()
            }
            None => one_by_one(index, events, range, |_, event| {
                let (count, work) = version.count(event, filter, &mut thread.alone);
                counts.push(count as u32);
                (true, count, work)
            }),
        };
        counts
    });
    blocks.concat()
}

/// Adds to each subscription how many of the events it matches.
pub fn count_by_subscription(
    index: &Index,
    version: &dyn Version,
    query: &Query,
    events: &dyn EventSource,
    threads: usize,
    total: &mut RowCounts,
) -> Result<()> {
    let filter = &query.filter();
    let device = index.device();
    let device = device.as_deref().filter(|device| device.is_usable());
    let sizes = version.part_sizes();
    let width = width(device);
    // A thread has counters for all subscriptions, so it answers one long run.
    let run = width * events.len().div_ceil(width).div_ceil(threads).max(1);
    let helpers = Helpers::new(events.len(), width, threads, GATHERED_AT_ONCE);
    let new_thread = || Thread::new(version, events, filter, device, &helpers);
    let runs = in_blocks(events.len(), run, threads, new_thread, |thread, run| {
        let mut counts = RowCounts::new(&sizes);
        for start in run.clone().step_by(width) {
            let block = start..run.end.min(start + width);
            let counted =
                thread.blocks.as_mut().and_then(|blocks| blocks.row_counts(block.clone(), &mut counts));
            if let Some(observed) = counted {
                observe(index, events, start, observed, thread.blocks.as_deref());
                continue;
            }
            let mut add =
                |_: usize, found: &[Location]| found.iter().for_each(|location| counts.add(*location));
            match thread
                .blocks
                .as_mut()
                .and_then(|blocks| blocks.matches(block.clone(), usize::MAX, &mut add))
            {
                Some((_, observed)) => observe(index, events, start, observed, thread.blocks.as_deref()),
                None => {
                    one_by_one(index, events, block, |at, event| {
                        let (locations, work) = version.matches(event, filter, &mut thread.alone);
                        add(at, &locations);
                        (true, locations.len(), work)
                    });
                }
            }
        }
        counts
    });
    runs.into_iter().for_each(|counts| total.merge(counts));
    index.note_unreadable(events.unreadable())
}

/// The owners of the matches of every event. Events are asked one by one: each stops when all owners are found.
fn owners_of_events(
    index: &Index,
    version: &dyn Version,
    events: &dyn EventSource,
    filter: &Filter<'_>,
    threads: usize,
) -> Result<BatchOwners> {
    let blocks = in_blocks(events.len(), WIDTH, threads, Workspace::default, |space, range| {
        let mut found = BatchOwners::default();
        let mut outcome = Ok(());
        let first = range.start as u32;
        one_by_one(index, events, range, |at, event| match version.owners(event, filter, space) {
            Ok((owners, work)) => {
                let count = owners.len();
                found.events.extend(std::iter::repeat_n(first + at as u32, count));
                found.owners.extend(owners);
                (true, count, work)
            }
            Err(error) => {
                outcome = Err(error);
                (false, 0, Work::default())
            }
        });
        outcome.map(|()| found)
    });
    let mut all = BatchOwners::default();
    for block in blocks {
        let block = block?;
        all.events.extend(block.events);
        all.owners.extend(block.owners);
    }
    Ok(all)
}

/// The best matches by a score, of the events for which there is room; the first is number `first`.
#[allow(clippy::too_many_arguments)]
fn top_k_events(
    index: &Index,
    version: &dyn Version,
    events: &dyn EventSource,
    ranking: &Ranking,
    filter: &Filter<'_>,
    threads: usize,
    most: usize,
    first: usize,
) -> Result<BatchTopK> {
    let device = index.device();
    let device = device.as_deref().filter(|device| device.is_usable());
    let width = width(device);
    let helpers = Helpers::new(events.len(), width, threads, threads);
    let new_thread = || Thread::new(version, events, filter, device, &helpers);
    let budget = Budget::new(most, threads.min(events.len().div_ceil(width)));
    let blocks = in_blocks(events.len(), width, threads, new_thread, |thread, range| {
        let (mut found, mut answered) = (FoundBest::default(), 0);
        let Some(most) = budget.share(range.start == 0) else {
            return Ok((0, 0, WrittenBest::default()));
        };
        let start = range.start;
        let mut add = |at: usize, best: &[Scored]| {
            if answered > 0 && found.len() + best.len() > most {
                return false;
            }
            answered += 1;
            found.add(first + start + at, best);
            true
        };
        match thread.blocks.as_mut().and_then(|blocks| blocks.best(range.clone(), ranking, &mut add)) {
            Some(observed) => observe(index, events, start, observed?, thread.blocks.as_deref()),
            None => {
                let mut outcome = Ok(());
                one_by_one(index, events, range, |at, event| {
                    match version.top_k(event, ranking, filter, &mut thread.alone) {
                        Ok((best, work)) => (add(at, &best), best.len(), work),
                        Err(error) => {
                            outcome = Err(error);
                            (false, 0, Work::default())
                        }
                    }
                });
                outcome?;
            }
        }
        let matches = found.len();
        budget.spend(matches);
        Ok::<_, Error>((answered, matches, found.settle(version)?))
    });
    let (mut all, mut listed) = (BatchTopK::default(), 0);
    let mut rest = FoundBest::default();
    for block in blocks {
        let (answered, matches, written) = block?;
        if all.answered > 0 && listed + matches > most {
            break;
        }
        listed += matches;
        written.append_to(version, &mut rest, &mut all.rows)?;
        all.answered += answered;
        if answered < width {
            break;
        }
    }
    rest.write(version, &mut all.rows)?;
    Ok(all)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::cast::AsArray;
    use arrow_array::types::{Float64Type, Int32Type, Int64Type};
    use arrow_array::*;

    use super::*;
    use crate::engine::{Id, Subscription};
    use crate::event::arrow::ArrowEvents;
    use crate::query::{Score, Tags};
    use crate::subscription::IdRef;

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

    fn pairs(lists: &[Vec<i64>]) -> impl Iterator<Item = (i64, i64)> {
        let events = lists.iter().enumerate();
        events.flat_map(|(event, ids)| ids.iter().map(move |id| (event as i64, *id)))
    }

    fn pairs_of(found: &BatchMatches) -> Vec<(i64, i64)> {
        let numbers = |column: &ArrayRef| column.as_primitive::<Int64Type>().values().to_vec();
        let rows = found.rows.iter();
        rows.flat_map(|rows| numbers(&rows.events).into_iter().zip(numbers(&rows.ids))).collect()
    }

    /// Event, id, score and rank of each row.
    fn columns_of(rows: &[BestMatchRows]) -> Vec<(i64, i64, f64, i64)> {
        let numbers = |column: &ArrayRef| column.as_primitive::<Int64Type>().values().to_vec();
        let mut found = vec![];
        for rows in rows {
            let ids = rows.ids.iter().flat_map(numbers);
            let scores = rows.scores.as_primitive::<Float64Type>().values();
            let pairs = numbers(&rows.events).into_iter().zip(ids);
            let scored = pairs.zip(scores.iter().copied().zip(numbers(&rows.ranks)));
            found.extend(scored.map(|((event, id), (score, rank))| (event, id, score, rank)));
        }
        found
    }

    fn lists_of(found: &BatchMatches) -> Vec<Vec<i64>> {
        let mut lists = vec![];
        for rows in &found.rows {
            for (event, ids) in
                rows.events.as_primitive::<Int64Type>().values().iter().zip(rows.ids.as_list::<i32>().iter())
            {
                assert_eq!(*event, lists.len() as i64);
                lists.push(ids.expect("no list is null").as_primitive::<Int64Type>().values().to_vec());
            }
        }
        lists
    }

    #[test]
    fn columns_of_every_kind_match_as_events_do() {
        // In one segment, in several, and in the buffer; few subscriptions, and so many that blocks pay.
        for (copies, sealed) in [(1, false), (1, true), (40, true)] {
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
            let batch = batch(if copies == 1 { 1300 } else { 600 });
            let tags = Tags::default();
            let filter = Filter { tags: &tags, now: 0 };
            let events = ArrowEvents::new(&batch, reader.terms(), None).expect("every type is known");
            let mut space = Workspace::default();
            let ids = |locations: Vec<Location>| -> Vec<i64> {
                let id = |location: &Location| match reader.id(*location) {
                    IdRef::Int(id) => id,
                    IdRef::Str(_) => unreachable!("the ids are integers"),
                };
                locations.iter().map(id).collect()
            };
            let alone: Vec<Vec<i64>> = (0..events.len())
                .map(|row| ids(reader.matches(&events.event(row), &filter, &mut space).0))
                .collect();
            let counts: Vec<_> = alone.iter().map(|found| found.len() as u32).collect();
            assert!(counts.iter().any(|count| *count > 0) && counts.iter().any(|count| *count != counts[0]));
            for threads in [1, 2] {
                assert_eq!(count_events(&index, &*reader, &events, &filter, threads), counts);
                let most = usize::MAX;
                let output = Output { first: 7, ..Output::default() };
                let found = match_events(&index, &*reader, &events, &filter, threads, most, output);
                let expected: Vec<(i64, i64)> = pairs(&alone).map(|(event, id)| (event + 7, id)).collect();
                assert_eq!(pairs_of(&found.expect("it fits")), expected);
                let output = Output { layout: Layout::Lists, first: 0 };
                let found = match_events(&index, &*reader, &events, &filter, threads, most, output);
                assert_eq!(lists_of(&found.expect("it fits")), alone);
            }
            // With many subscriptions, a limit lets through an event or two at a time: some events are enough.
            let some_events = if copies == 1 { events.len() } else { 100 };
            for (most, threads) in [(0, 1), (1, 3), (50, 1), (50, 3), (3_000, 1), (3_000, 3)] {
                let mut found = vec![];
                let mut done = 0;
                while done < some_events {
                    let rest = batch.slice(done, some_events - done);
                    let rest = ArrowEvents::new(&rest, reader.terms(), None).expect("as before");
                    let output = Output { first: done, ..Output::default() };
                    let some = match_events(&index, &*reader, &rest, &filter, threads, most, output);
                    let some = some.expect("it fits");
                    assert!((1..=rest.len()).contains(&some.answered));
                    assert!(some.matches <= most || some.answered == 1);
                    done += some.answered;
                    let pairs = pairs_of(&some);
                    assert!(pairs.iter().all(|(event, _)| (*event as usize) < done));
                    found.extend(pairs);
                }
                assert_eq!(found, pairs(&alone[..some_events]).collect::<Vec<_>>());
            }
            for score in ["priority", "relevance", "relaxed", "max(int, 2 * float) + small"] {
                let ranking = Ranking::new(3, Score::named(score).expect(score));
                let one =
                    |row| reader.top_k(&events.event(row), &ranking, &filter, &mut Workspace::default());
                let most = usize::MAX;
                let together =
                    top_k_events(&index, &*reader, &events, &ranking, &filter, 2, most, 7).expect(score);
                assert_eq!(together.answered, events.len());
                let mut expected = FoundBest::default();
                let judged = (0..events.len()).step_by(events.len() / some_events);
                judged.clone().for_each(|row| expected.add(7 + row, &one(row).expect(score).0));
                let mut rows = vec![];
                expected.write(&*reader, &mut rows).expect("it fits");
                let mut found = columns_of(&together.rows);
                found.retain(|(event, ..)| judged.clone().any(|row| *event == 7 + row as i64));
                assert_eq!(found, columns_of(&rows), "{score}");
            }
            let counting = Query { ask: Ask::Count, ..Query::default() };
            let noted = || index.statistics()["observed"]["type_mismatches"].as_u64();
            index.reset_observed();
            for row in 0..events.len() {
                let event = events.event(row);
                index.ask(&*reader, &counting, &event, &mut space).expect("it can be asked");
            }
            let wrong = noted();
            assert!(wrong > Some(0));
            index.reset_observed();
            count_events(&index, &*reader, &events, &filter, 1);
            assert_eq!(noted(), wrong);
        }
    }
}
