//! Matches blocks of events on a device, and on the processor where the device cannot or fails.

mod relevance;

use std::any::Any;
use std::ops::{Range, RangeInclusive};
use std::sync::Arc;
use std::time::Instant;

use super::block::Block;
use super::device_tokens::{Gathering, gather, gathering_threads};
use super::host_blocks::HostBlocks;
use super::id_order::follow_each_other;
use super::view::{Part, RowFilter, View};
use crate::engine::contract::{Blocks, FoundMatches, Location, Observation, RowCounts, Scored, Version};
use crate::engine::device::{
    BestRows, DEVICE_WIDTH, DeviceMemory, DeviceResult, HeldSegment, HostStage, KeptFor, KeptRows,
    LEAST_EVENTS, ListedRows, LoadedRows, Pause, RowNumbers, RowOrder, RowQuery, Tokens,
};
use crate::engine::permits::Permits;
use crate::engine::segment::Segment;
use crate::engine::segment::device_plan::{by_priority, device_plan};
use crate::error::Result;
use crate::event::{Event, EventSource};
use crate::query::{Filter, Measure, Ranking, Score, TopK};
use crate::streaming_stores::extend_past_caches;
use crate::subscription::IdKind;

/// Blocks of fewer than [`LEAST_EVENTS`] events use the device only if they make this many pairs of event and subscription.
const LEAST_PAIRS: usize = 1 << 21;

/// A segment is run in this many parts at most. Each needs masks for all predicates, so more of them save little.
const MOST_PARTS: u32 = 64;

/// The rows with the highest priorities are searched first: this many, if there are several times as many in all.
const BEST_ROWS: usize = 32 * 1024;
const TIMES_BEST_ROWS: usize = 4;

/// If these rows do not suffice for a few events, the CPU answers those: at most this many, and at most one in this many of a block.
const FEW_EVENTS: usize = 16;

/// From this many matches of an event on, ids are written past the caches.
const MANY_MATCHES: usize = 64;

/// Filters that are remembered for each part.
const FILTERS: usize = 4;

/// The blocks of some events, for one thread.
pub struct BlocksOnDevice<'e> {
    view: &'e View,
    events: &'e dyn EventSource,
    filter: &'e Filter<'e>,
    memory: &'e DeviceMemory,
    here: HostBlocks<'e>,
    /// How many events are worth starting the device.
    least: usize,
    /// For each block.
    threads: usize,
    /// For all blocks of a call.
    permits: &'e Permits,
    workspace: Gathering<'e>,
    /// By part.
    tokens: Vec<Tokens>,
}

impl<'e> BlocksOnDevice<'e> {
    pub fn new(
        view: &'e View,
        events: &'e dyn EventSource,
        filter: &'e Filter<'e>,
        memory: &'e DeviceMemory,
        threads: usize,
        permits: &'e Permits,
    ) -> Self {
        let rows: usize = view.parts.iter().map(|part| part.segment.len()).sum();
        Self {
            view,
            events,
            filter,
            memory,
            here: HostBlocks::new(view, events, filter),
            least: (LEAST_PAIRS / rows.max(1)).clamp(1, LEAST_EVENTS),
            threads,
            permits,
            workspace: Gathering::default(),
            tokens: vec![],
        }
    }

    /// The events of a range, if the device is to match them.
    fn block(&self, range: Range<usize>) -> Option<Block<'e>> {
        let events = range.len();
        let is_for_device = (self.least..=DEVICE_WIDTH).contains(&events)
            && self.memory.is_usable()
            && (events >= LEAST_EVENTS || self.is_prepared() || self.memory.is_worth_preparing(events));
        is_for_device.then(|| Block::new(self.view, self.events, range)).flatten()
    }

    /// Whether all plans are on the device, and what the filter keeps of their rows is known. Both take longer than a small block.
    fn is_prepared(&self) -> bool {
        self.view.parts.iter().all(|part| {
            let held = held_plan(&self.memory.plans.lock(), &part.segment);
            let is_known = |rows: &LoadedRows| is_known(self.memory, self.view, part, rows, self.filter);
            held.is_some_and(|held| held.iter().all(is_known))
        })
    }

    /// What comes of `ask` for each part of each segment; `None` if the device failed, which is noted.
    fn each_part<T>(
        &mut self,
        block: &Block<'e>,
        mut ask: impl FnMut(PartOnDevice<'_>) -> DeviceResult<T>,
    ) -> Option<Vec<T>> {
        match self.try_each_part(block, &mut ask) {
            Ok(answers) => {
                self.memory.note_block();
                Some(answers)
            }
            Err(error) => {
                self.memory.fail(error);
                None
            }
        }
    }

    fn try_each_part<T>(
        &mut self,
        block: &Block<'e>,
        ask: &mut impl FnMut(PartOnDevice<'_>) -> DeviceResult<T>,
    ) -> DeviceResult<Vec<T>> {
        let view = self.view;
        let mut answers = vec![];
        self.tokens.resize_with(view.parts.len(), Tokens::default);
        for (number, part) in view.parts.iter().enumerate() {
            let loaded = loaded(self.memory, view, part)?;
            let catalog = &part.segment.layout.catalog;
            let tokens = &mut self.tokens[number];
            let threads = gathering_threads(block, self.threads);
            let of_call = self.permits.take(threads);
            let of_all = self.memory.gathering.take(of_call.count());
            let started = Instant::now();
            gather(block, catalog, of_all.count(), &mut self.workspace, tokens);
            drop((of_all, of_call));
            self.memory.end(HostStage::Gather, started);
            for rows in loaded.iter() {
                let part = PartOnDevice {
                    view,
                    memory: self.memory,
                    filter: self.filter,
                    part,
                    number: number as u32,
                    rows,
                    tokens,
                };
                answers.push(ask(part)?);
            }
        }
        Ok(answers)
    }

    /// What is noted of a block: values that nobody expects. Statistics are about events that were matched one by one.
    fn observed(block: &Block<'_>, events: usize) -> Observation {
        Observation { events: 0, matches: 0, work: block.mismatches(events), nanoseconds: 0 }
    }

    fn counts_of(&mut self, block: &Block<'e>) -> Option<Vec<u32>> {
        let by_part =
            self.each_part(block, |part| part.rows.plan.counts(part.tokens, part.kept().as_ref()))?;
        let mut counts = vec![0; block.len()];
        for part in by_part {
            counts.iter_mut().zip(part).for_each(|(all, more)| *all += more);
        }
        block.buffered(self.filter, |at, _| counts[at] += 1);
        Some(counts)
    }

    /// How many events have no more than `most` matches together; one at least.
    fn events_with_room(&mut self, block: &Block<'e>, most: usize) -> Option<usize> {
        if most == usize::MAX {
            return Some(block.len());
        }
        let mut held = 0;
        let counts = self.counts_of(block)?;
        let fit = counts.iter().take_while(|count| {
            held += **count as usize;
            held <= most
        });
        Some(fit.count().max(1))
    }

    /// The rows of each part that hold for the first events.
    fn rows_of(&mut self, block: &Block<'e>, query: RowQuery) -> Option<Vec<ListedPart>> {
        self.each_part(block, |part| match query.order {
            RowOrder::Priority => part.best(query),
            RowOrder::Id => part.list(part.rows, query),
        })
    }

    /// All matches of a block, if the device is to find them: not if only few of its events will be answered.
    fn find(&mut self, range: Range<usize>, most: usize) -> Option<ListedMatches<'e>> {
        if self.memory.events_with(most) < range.len().min(LEAST_EVENTS).max(self.least) {
            return None;
        }
        let block = self.block(range)?;
        let events = self.events_with_room(&block, most)?;
        let parts = self.rows_of(&block, RowQuery { order: RowOrder::Id, events, most: u32::MAX })?;
        let mut buffered: Vec<Vec<Location>> = vec![vec![]; events];
        block.buffered(self.filter, |at, location| {
            if at < events {
                buffered[at].push(location);
            }
        });
        let found =
            ListedMatches { view: self.view, parts, buffered, observed: Self::observed(&block, events) };
        if block.len() >= LEAST_EVENTS {
            self.memory.note_matches(found.matches(), events);
        }
        Some(found)
    }
}

/// Rows of a segment on the device, with what the events of a block satisfy there.
struct PartOnDevice<'a> {
    view: &'a View,
    memory: &'a DeviceMemory,
    filter: &'a Filter<'a>,
    part: &'a Part,
    number: u32,
    rows: &'a LoadedRows,
    tokens: &'a Tokens,
}

impl PartOnDevice<'_> {
    /// What the filter keeps of the rows, if not all.
    fn kept(&self) -> Option<Arc<KeptRows>> {
        kept_rows(self.memory, self.view, self.part, self.rows, self.filter)
    }

    /// The rows that hold, among those that are given: all rows of this part, or some of them.
    fn list(&self, rows: &LoadedRows, query: RowQuery) -> DeviceResult<ListedPart> {
        let kept = kept_rows(self.memory, self.view, self.part, rows, self.filter);
        let listed = rows.plan.rows(self.tokens, kept.as_ref(), query)?;
        Ok(ListedPart { part: self.number, rows: rows.rows.clone(), listed, too_few_for: vec![] })
    }

    /// The rows that hold and have the highest priorities. Where few have to be looked at, the others are not evaluated at all.
    fn best(&self, query: RowQuery) -> DeviceResult<ListedPart> {
        let RowQuery { events, most, .. } = query;
        if let Some(few) = self.of_highest_priority(events)
            && most as usize * TIMES_BEST_ROWS <= BEST_ROWS
            && few.pause.is_over()
        {
            // They are in the order of priorities.
            let mut found = self.list(&few.loaded, RowQuery { order: RowOrder::Id, ..query })?;
            let is_short = |at: &usize| found.listed.of(*at).len() < most as usize;
            let too_few_for: Vec<usize> = (0..events).filter(is_short).collect();
            let is_enough = too_few_for.len() <= FEW_EVENTS.min(events / FEW_EVENTS);
            few.pause.note(events, is_enough);
            if is_enough {
                found.too_few_for = too_few_for;
                return Ok(found);
            }
        }
        self.list(self.rows, query)
    }

    /// The rows of highest priority, if there are such and they are worth preparing for so many events.
    fn of_highest_priority(&self, events: usize) -> Option<&BestRows> {
        let best = &self.rows.best;
        let is_known = |few: &BestRows| is_known(self.memory, self.view, self.part, &few.loaded, self.filter);
        let is_prepared = || best.get().is_some_and(|few| few.as_ref().is_none_or(is_known));
        if events >= LEAST_EVENTS || is_prepared() || self.memory.is_worth_preparing(events) {
            best.get_or_init(|| best_rows(self.memory, self.part, self.rows)).as_ref()
        } else {
            None
        }
    }
}

/// The rows with the highest priorities on the device, if they are worth a plan of their own and there is room for it.
fn best_rows(memory: &DeviceMemory, part: &Part, all: &LoadedRows) -> Option<BestRows> {
    let rows = &all.rows;
    if rows.len() < TIMES_BEST_ROWS * BEST_ROWS {
        return None;
    }
    let order = by_priority(&part.segment, rows);
    let best: Vec<u32> = match order.is_empty() {
        true => rows.iter().take(BEST_ROWS).collect(),
        false => order.iter().take(BEST_ROWS).map(|number| rows.row(*number)).collect(),
    };
    let rows = RowNumbers::Listed(best.into());
    let plan = memory.device().load(&device_plan(&part.segment, &rows).ok()?).ok()?;
    // What they take must not be missing elsewhere.
    all.plan.has_room().then(|| BestRows { loaded: LoadedRows::new(rows, plan), pause: Pause::default() })
}

/// Rows of one part, as the device numbers them.
struct ListedPart {
    part: u32,
    rows: RowNumbers,
    listed: ListedRows,
    /// Events whose rows are not all that were asked for, in order.
    too_few_for: Vec<usize>,
}

impl ListedPart {
    fn of(&self, event: usize) -> impl Iterator<Item = Location> + '_ {
        let rows = self.listed.of(event).iter();
        rows.map(|number| Location::Row { part: self.part, row: self.rows.row(*number) })
    }
}

/// The matches of a block, as the device listed them.
struct ListedMatches<'e> {
    view: &'e View,
    parts: Vec<ListedPart>,
    /// By event.
    buffered: Vec<Vec<Location>>,
    observed: Observation,
}

impl FoundMatches for ListedMatches<'_> {
    fn events(&self) -> usize {
        self.buffered.len()
    }

    fn matches(&self) -> usize {
        self.parts.iter().map(|part| part.listed.len()).sum::<usize>()
            + self.buffered.iter().map(Vec::len).sum::<usize>()
    }

    fn matches_of(&self, at: usize) -> usize {
        self.parts.iter().map(|part| part.listed.of(at).len()).sum::<usize>() + self.buffered[at].len()
    }

    fn add_int_ids(&self, at: usize, ids: &mut Vec<i64>, past_caches: bool) -> bool {
        if self.view.id_kind() != Some(IdKind::Int) || !self.buffered[at].is_empty() {
            return false;
        }
        let int_ids =
            |part: &ListedPart| &*self.view.parts[part.part as usize].segment.subscription_table.int_ids;
        let runs = self.parts.iter().filter_map(|part| {
            let (first, last) = part.listed.of(at).first().zip(part.listed.of(at).last())?;
            let id = |number: &u32| int_ids(part)[part.rows.row(*number) as usize];
            Some((id(first), id(last)))
        });
        if !follow_each_other(runs) {
            return false;
        }
        for part in &self.parts {
            let own = int_ids(part);
            let numbers = part.listed.of(at);
            match &part.rows {
                RowNumbers::Run(first, count) if past_caches && numbers.len() >= MANY_MATCHES => {
                    let own = &own[*first as usize..(first + count) as usize];
                    // They are sorted. Looking each up would read a line of memory for every match.
                    if own[own.len() - 1].checked_sub(own[0]) == Some(own.len() as i64 - 1) {
                        extend_past_caches(ids, numbers.len(), |at| own[0] + i64::from(numbers[at]));
                    } else {
                        extend_past_caches(ids, numbers.len(), |at| own[numbers[at] as usize]);
                    }
                }
                rows => ids.extend(numbers.iter().map(|number| own[rows.row(*number) as usize])),
            }
        }
        true
    }

    fn of_event(&self, at: usize, locations: &mut Vec<Location>) {
        locations.clear();
        for part in &self.parts {
            locations.extend(part.of(at));
        }
        let rows = locations.len();
        locations.extend_from_slice(&self.buffered[at]);
        locations[rows..].sort_unstable_by(|a, b| self.view.id(*a).cmp(&self.view.id(*b)));
        self.view.merge_runs(locations);
    }

    fn observed(&self) -> Observation {
        self.observed
    }
}

impl Blocks for BlocksOnDevice<'_> {
    fn find_matches(&mut self, range: Range<usize>, most: usize) -> Option<Box<dyn FoundMatches + '_>> {
        let found = self.find(range, most)?;
        Some(Box::new(found))
    }

    fn matches(
        &mut self,
        range: Range<usize>,
        most: usize,
        add: &mut dyn FnMut(usize, &[Location]),
    ) -> Option<(usize, Observation)> {
        Some(self.here.matches(range, most, add))
    }

    fn best(
        &mut self,
        range: Range<usize>,
        ranking: &Ranking,
        add: &mut dyn FnMut(usize, &[Scored]) -> bool,
    ) -> Option<Result<Observation>> {
        if ranking.score == Score::Relevance {
            return Some(self.best_by_relevance(range, ranking, add));
        }
        let most = u32::try_from(ranking.k).unwrap_or(u32::MAX);
        let listed = match ranking.score {
            Score::Priority => self.block(range.clone()).and_then(|block| {
                let query = RowQuery { order: RowOrder::Priority, events: block.len(), most };
                let rows = self.rows_of(&block, query)?;
                Some((block, rows))
            }),
            _ => None,
        };
        let Some((block, parts)) = listed else { return Some(self.here.best(range, ranking, add)) };
        let mut best = vec![];
        for at in 0..block.len() {
            let mut goes_on = true;
            if parts.iter().any(|part| part.too_few_for.binary_search(&at).is_ok()) {
                let event = range.start + at;
                let mut add = |_: usize, scored: &[Scored]| {
                    goes_on = add(at, scored);
                    goes_on
                };
                if let Err(error) = self.here.best(event..event + 1, ranking, &mut add) {
                    return Some(Err(error));
                }
            } else {
                self.best_of(&block, at, ranking, &parts, &mut best);
                goes_on = add(at, &best);
            }
            if !goes_on {
                break;
            }
        }
        Some(Ok(Self::observed(&block, block.len())))
    }

    fn counts(&mut self, range: Range<usize>, counts: &mut Vec<u32>) -> Option<Observation> {
        let counted = self.block(range.clone()).and_then(|block| {
            let found = self.counts_of(&block)?;
            Some((block, found))
        });
        let Some((block, found)) = counted else { return Some(self.here.counts(range, counts)) };
        counts.extend(found);
        Some(Self::observed(&block, block.len()))
    }

    fn row_counts(&mut self, range: Range<usize>, counts: &mut RowCounts) -> Option<Observation> {
        let counted = self.block(range.clone()).and_then(|block| {
            let mut found = vec![];
            let is_done = self.each_part(&block, |part| {
                let mut more = vec![0; part.rows.rows.len()];
                part.rows.plan.row_counts(part.tokens, part.kept().as_ref(), &mut more)?;
                found.push((part.number, part.rows.rows.row(0), more));
                Ok(())
            });
            is_done.map(|_| (block, found))
        });
        let (block, found) = counted?;
        for (part, first, more) in found {
            let own = &mut counts.parts[part as usize][first as usize..];
            own.iter_mut().zip(more).for_each(|(all, more)| *all += more);
        }
        block.buffered(self.filter, |_, location| counts.add(location));
        Some(Self::observed(&block, block.len()))
    }
}

impl<'e> BlocksOnDevice<'e> {
    fn best_by_relevance(
        &mut self,
        range: Range<usize>,
        ranking: &Ranking,
        add: &mut dyn FnMut(usize, &[Scored]) -> bool,
    ) -> Result<Observation> {
        let ranked = self.block(range.clone()).and_then(|block| {
            let parts = self.ranked_by_relevance(&block, ranking)?;
            Some((block, parts))
        });
        let Some((block, parts)) = ranked else { return self.here.best(range, ranking, add) };
        let mut best = vec![];
        for at in 0..block.len() {
            relevance::best_of(self.view, self.filter, &block, at, ranking, &parts, &mut best)?;
            if !add(at, &best) {
                break;
            }
        }
        Ok(Self::observed(&block, block.len()))
    }

    /// Replaces `found` by the best matches of an event by priority, the best first.
    fn best_of(
        &self,
        block: &Block<'e>,
        at: usize,
        ranking: &Ranking,
        parts: &[ListedPart],
        found: &mut Vec<Scored>,
    ) {
        let view = self.view;
        found.clear();
        if let ([part], true) = (parts, view.buffer.is_empty()) {
            // They come in order. -0.0 and 0.0 are one score.
            let scored =
                part.of(at).map(|location| Scored { location, score: view.priority(location) + 0.0 });
            found.extend(scored.filter(|scored| scored.score >= ranking.min_score));
            return;
        }
        let mut best = TopK::new(ranking.k, ranking.min_score);
        if !view.buffer.is_empty() {
            block.with_event(at, |event| {
                let measure = Measure::new(ranking, event, &view.terms);
                view.offer_buffered(event, &measure, self.filter, &mut best);
            });
        }
        for location in parts.iter().flat_map(|part| part.of(at)) {
            best.offer(view.id(location), view.priority(location), location);
        }
        let sorted = best.into_sorted().into_iter();
        found.extend(sorted.map(|best| Scored { location: best.item, score: best.score }));
    }
}

fn address(segment: &Arc<Segment>) -> usize {
    Arc::as_ptr(segment).addr()
}

fn held_at(held: &HeldSegment) -> usize {
    held.as_ptr().cast::<()>().addr()
}

/// The plans of a segment, if they are on the device.
fn held_plan(
    plans: &[(HeldSegment, Arc<[LoadedRows]>)],
    segment: &Arc<Segment>,
) -> Option<Arc<[LoadedRows]>> {
    let plan = plans.iter().find(|(held, _)| held_at(held) == address(segment));
    plan.map(|(_, plan)| plan.clone())
}

/// The plans of a segment, which are copied to the device when they are asked for first.
fn loaded(memory: &DeviceMemory, view: &View, part: &Part) -> DeviceResult<Arc<[LoadedRows]>> {
    let mut plans = memory.plans.lock();
    if let Some(plan) = held_plan(&plans, &part.segment) {
        return Ok(plan);
    }
    // Those of segments that are gone. Others may be asked for again, by readers of another version.
    plans.retain(|(held, _)| held.strong_count() > 0);
    let is_held = |at: usize, plans: &[(HeldSegment, _)]| plans.iter().any(|(held, _)| held_at(held) == at);
    let mut parts = 1;
    let loaded = loop {
        match load_in_parts(memory, &part.segment, parts) {
            Ok(loaded) => break loaded,
            Err(error) if !error.is_memory => return Err(error),
            Err(error) => {
                let before = plans.len();
                let in_view = |held: usize| view.parts.iter().any(|part| address(&part.segment) == held);
                plans.retain(|(held, _)| in_view(held_at(held)));
                if plans.len() == before {
                    parts *= 2;
                    if parts > MOST_PARTS || parts as usize > part.segment.len() {
                        return Err(error);
                    }
                }
            }
        }
    };
    memory.kept.lock().retain(|kept| is_held(kept.rows_of.0, &plans));
    let segment: Arc<dyn Any + Send + Sync> = part.segment.clone();
    plans.push((Arc::downgrade(&segment), loaded.clone()));
    Ok(loaded)
}

fn load_in_parts(memory: &DeviceMemory, segment: &Segment, parts: u32) -> DeviceResult<Arc<[LoadedRows]>> {
    let rows = segment.len() as u32;
    let each = rows.div_ceil(parts).max(1);
    (0..rows.max(1))
        .step_by(each as usize)
        .map(|first| {
            let last = rows.min(first.saturating_add(each));
            let rows = RowNumbers::Run(first, last - first);
            let plan = memory.device().load(&device_plan(segment, &rows)?)?;
            Ok(LoadedRows::new(rows, plan))
        })
        .collect()
}

/// The rows that a filter keeps, if not all; remembered from block to block and from query to query, for as long as no
/// subscription of the part is removed, starts or expires.
fn kept_rows(
    memory: &DeviceMemory,
    view: &View,
    part: &Part,
    loaded: &LoadedRows,
    filter: &Filter<'_>,
) -> Option<Arc<KeptRows>> {
    let point = Event::default();
    let keeps = RowFilter::new(view, part, filter, &point);
    if keeps.keeps_all() {
        return None;
    }
    let (rows_of, wanted) = remembered_as(view, part, loaded, filter);
    let mut kept = memory.kept.lock();
    if let Some(at) = kept.iter().position(|known| known.is_for(rows_of, &wanted, filter.now)) {
        let known = kept.remove(at);
        kept.insert(0, known);
        return Some(kept[0].rows.clone());
    }
    let mut words = vec![0u32; loaded.rows.len().div_ceil(32)];
    for (number, _) in loaded.rows.iter().enumerate().filter(|(_, row)| keeps.keeps_row(*row)) {
        words[number / 32] |= 1 << (number % 32);
    }
    let moments = unchanged_at(part, loaded.rows.iter(), filter.now);
    let rows = Arc::new(KeptRows::new(words));
    kept.insert(0, KeptFor { rows_of, wanted, moments, rows: rows.clone() });
    let mut held = 0;
    kept.retain(|known| {
        held += usize::from(known.rows_of == rows_of);
        known.rows_of != rows_of || held <= FILTERS
    });
    Some(rows)
}

/// Whether [`kept_rows`] answers without a look at each row.
fn is_known(
    memory: &DeviceMemory,
    view: &View,
    part: &Part,
    loaded: &LoadedRows,
    filter: &Filter<'_>,
) -> bool {
    let point = Event::default();
    if RowFilter::new(view, part, filter, &point).keeps_all() {
        return true;
    }
    let (rows_of, wanted) = remembered_as(view, part, loaded, filter);
    memory.kept.lock().iter().any(|known| known.is_for(rows_of, &wanted, filter.now))
}

/// The rows that a filter is asked about, and what it wants of them, as [`KeptFor`] has them.
fn remembered_as(
    view: &View,
    part: &Part,
    loaded: &LoadedRows,
    filter: &Filter<'_>,
) -> ((usize, (bool, u32)), (u64, String)) {
    let wanted = (part.tombstones.seen_at(view.generation), format!("{:?}", filter.tags));
    ((address(&part.segment), loaded.rows.key()), wanted)
}

/// The moments around this one at which the same rows are active.
fn unchanged_at(part: &Part, rows: impl Iterator<Item = u32>, now: i64) -> RangeInclusive<i64> {
    let table = &part.segment.subscription_table;
    let (mut from, mut to) = (i64::MIN, i64::MAX);
    if !table.is_timeless() {
        for change in rows.flat_map(|row| [table.starts(row), table.expires(row)]) {
            if change <= now {
                from = from.max(change);
            } else {
                to = to.min(change - 1);
            }
        }
    }
    from..=to
}
