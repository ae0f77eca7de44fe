//! Plans on a device, whatever its driver.

mod relevance;
mod rows;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use serde_json::Value as Json;
use tamis_core::engine::device::{
    BestByRelevance, DEVICE_WIDTH, Device, DeviceError, DeviceResult, IN_POINTS, KeptRows, Keys, Level,
    ListedRows, LoadedPlan, NO_MASK, Pause, Plan, PlannedUnit, RelevanceQuery, RowOrder, RowQuery, RunKind,
    Tokens, ValueTable,
};

use crate::driver::{Driver, Kernel, Stream};
use crate::lane::{Buffer, Lane, Lanes};
use crate::pinned::Words;
use crate::shared::{Shared, Stage};
use relevance::Programs;

const WORD: usize = 4;
const LONG: usize = 8;
const MASK_BYTES: usize = DEVICE_WIDTH / 8;
/// Events of a lane; the same as in `kernels.cu`. The summary of a mask has a bit for each lane.
const LANE_EVENTS: usize = 128;
const SUMMARY_BYTES: usize = DEVICE_WIDTH / LANE_EVENTS / 8;
/// The size of what is listed of a unit, and of a unit in one lane; the same as in `kernels.cu`.
const TASK_BYTES: usize = 32;
const SINGLE_BYTES: usize = 8;
/// Units in one lane that are listed for each unit of a level, on average; the same as in `kernels.cu`.
const SINGLES_PER_UNIT: usize = 2;
/// Words for the numbers of what is listed in a level: one for each kind, one for singles, and some to fill a sector.
const LISTED_WORDS: usize = 8;
/// Rows that one warp counts and lists; the same as in `kernels.cu`.
const CHUNK: usize = 256;
/// Chunks whose counts one thread adds up.
const CHUNKS_IN_GROUP: usize = 64;
/// Cuts that one warp sets; the same as in `kernels.cu`.
const CUTS_PER_ITEM: u32 = 8;
/// If this many bits were set for each mask of a predicate, filling all masks takes less time than clearing them one by one.
const CLEARED_AT_ONCE: f64 = 4.0;
/// Filters whose rows are kept on the device, for each plan.
const FILTERS: usize = 4;

pub struct Evaluator {
    shared: Arc<Shared>,
    lanes: Arc<Lanes>,
}

impl Evaluator {
    pub fn new(driver: Box<dyn Driver>, memory: Option<u64>, timed: bool) -> DeviceResult<Self> {
        let free = driver.free_memory()?;
        let limit = memory.unwrap_or(free / 10 * 9);
        Ok(Self { shared: Arc::new(Shared::new(driver, limit, timed)), lanes: Arc::default() })
    }
}

impl Device for Evaluator {
    fn load(&self, plan: &Plan) -> DeviceResult<Arc<dyn LoadedPlan>> {
        let load = || PlanOnDevice::new(&self.shared, &self.lanes, plan);
        let loaded = load().or_else(|error| {
            if !error.is_memory {
                return Err(error);
            }
            self.lanes.drop_idle();
            load()
        });
        Ok(Arc::new(loaded?))
    }

    fn bytes(&self) -> u64 {
        self.shared.bytes()
    }

    fn pinned_bytes(&self) -> u64 {
        self.shared.pinned.bytes()
    }

    fn describe(&self) -> Json {
        let mut description = self.shared.driver.describe();
        if let Some(seconds) = self.shared.seconds() {
            description["seconds"] = seconds;
        }
        description
    }
}

/// A plan in the memory of the device.
struct PlanOnDevice {
    shared: Arc<Shared>,
    lanes: Arc<Lanes>,
    /// No other plan of the process has the same.
    number: u64,
    bits: u32,
    /// By predicate: see [`Plan::mask_of_bit`].
    mask_of_bit: Box<[u32]>,
    /// Masks that are set for a point, on average.
    masks_per_point: f64,
    masks: u32,
    shared_masks: u32,
    rows: usize,
    tables: usize,
    cut_items: usize,
    levels: Vec<Level>,
    /// The units of the largest level.
    most_in_level: usize,
    units: Buffer,
    code: Buffer,
    mask_of_row: Buffer,
    by_priority: Option<Buffer>,
    programs: Programs,
    point_offsets: Buffer,
    point_masks: Buffer,
    value_tables: Buffer,
    point_keys: KeysOnDevice,
    cut_keys: KeysOnDevice,
    cut_tables: Buffer,
    items: Buffer,
    first_look: Pause,
    few: Pause,
    /// What was kept last.
    kept: Mutex<Vec<(u64, Arc<Buffer>)>>,
}

/// A table as the kernels read it.
fn words_of(table: &ValueTable) -> [u32; 8] {
    let ValueTable { first_point, points, first_cut, cuts, cut_table, masks: [a, b], rest } = *table;
    [first_point, points, first_cut, cuts, cut_table, a, b, rest]
}

impl Drop for PlanOnDevice {
    fn drop(&mut self) {
        self.lanes.remove_plan();
    }
}

struct KeysOnDevice {
    heads: Buffer,
    rests: Buffer,
}

impl KeysOnDevice {
    fn new(shared: &Arc<Shared>, stream: Stream, keys: &Keys) -> DeviceResult<Self> {
        let heads = Buffer::of_words(shared, stream, &keys.heads)?;
        Ok(Self { heads, rests: Buffer::of_words(shared, stream, &keys.rests)? })
    }
}

/// The tokens of a block as the device reads them: heads of values and their places; pairs of event and mask, of event and point, and
/// ranks. They stay until the stream on which they are copied was waited for.
struct Sent {
    events: usize,
    words: Words,
    values: usize,
    /// How many pairs there are of each kind.
    counts: [usize; 3],
}

/// What becomes of the masks that values set; the same as in `kernels.cu`.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u64)]
enum Masks {
    Set = 0,
    Clear = 1,
    Leave = 2,
}

/// What a block is asked for.
#[derive(Clone, Copy)]
struct Block<'a> {
    sent: &'a Sent,
    kept: Option<&'a Arc<Buffer>>,
}

impl PlanOnDevice {
    fn new(shared: &Arc<Shared>, lanes: &Arc<Lanes>, plan: &Plan) -> DeviceResult<Self> {
        let stream = shared.driver.new_stream()?;
        let loaded = Self::load(shared, lanes, stream, plan);
        shared.driver.end_stream(stream);
        loaded
    }

    fn load(shared: &Arc<Shared>, lanes: &Arc<Lanes>, stream: Stream, plan: &Plan) -> DeviceResult<Self> {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let words = |words: &[u32]| Buffer::of_words(shared, stream, words);
        let units: Vec<u32> =
            plan.units.iter().flat_map(|unit| [unit.code, unit.leaves, unit.mask, unit.rows]).collect();
        let items: Vec<u32> = (0..)
            .zip(&plan.cut_tables)
            .flat_map(|(table, &[below, above, cuts])| {
                let reads = move |mask: u32| plan.is_read[mask as usize];
                (0..cuts).step_by(CUTS_PER_ITEM as usize).flat_map(move |first| {
                    let number = CUTS_PER_ITEM.min(cuts - first);
                    let read = (0..number).fold(0, |read, at| {
                        let of_cut = [reads(below + first + at), reads(above + first + at)].map(u32::from);
                        read | of_cut[0] << at | of_cut[1] << (CUTS_PER_ITEM + at)
                    });
                    Some([table, first, read]).filter(|_| read != 0)
                })
            })
            .flatten()
            .collect();
        let tables: Vec<u32> = plan.value_tables.iter().flat_map(words_of).collect();
        let cut_tables: Vec<u32> =
            plan.cut_tables.iter().flat_map(|[below, above, _]| [*below, *above]).collect();
        let loaded = Self {
            shared: shared.clone(),
            lanes: lanes.clone(),
            number: NEXT.fetch_add(1, Ordering::Relaxed),
            bits: plan.bits,
            mask_of_bit: plan.mask_of_bit.as_slice().into(),
            masks_per_point: plan.point_masks.len() as f64 / plan.point_offsets.len().max(1) as f64,
            masks: plan.masks,
            shared_masks: plan.shared_masks,
            rows: plan.mask_of_row.len(),
            tables: plan.cut_tables.len(),
            cut_items: items.len() / 3,
            levels: plan.levels.clone(),
            most_in_level: plan
                .levels
                .iter()
                .map(|level| (level.end() - level.first) as usize)
                .max()
                .unwrap_or(0),
            units: words(&units)?,
            code: words(&plan.code)?,
            mask_of_row: words(&plan.mask_of_row)?,
            by_priority: if plan.by_priority.is_empty() { None } else { Some(words(&plan.by_priority)?) },
            programs: Programs::new(shared, stream, &plan.relevance, plan.mask_of_row.len())?,
            point_offsets: words(&plan.point_offsets)?,
            point_masks: words(&plan.point_masks)?,
            value_tables: words(&tables)?,
            point_keys: KeysOnDevice::new(shared, stream, &plan.point_keys)?,
            cut_keys: KeysOnDevice::new(shared, stream, &plan.cut_keys)?,
            cut_tables: words(&cut_tables)?,
            items: words(&items)?,
            first_look: Pause::default(),
            few: Pause::default(),
            kept: Mutex::default(),
        };
        lanes.add_plan();
        // What was uploaded is there before any other stream looks at it.
        shared.driver.wait(stream)?;
        shared.check_room(loaded.lane_bytes())?;
        Ok(loaded)
    }

    /// What a lane needs for most queries; lists of rows come in addition, and are made as short as they have to be.
    fn lane_bytes(&self) -> usize {
        let tables = self.tables.max(1) * (DEVICE_WIDTH * WORD + MASK_BYTES);
        let chunks = self.rows.div_ceil(CHUNK);
        let places = (chunks + chunks.div_ceil(CHUNKS_IN_GROUP)) * DEVICE_WIDTH * WORD;
        let fixed = DEVICE_WIDTH * (WORD + LONG) + self.levels.len() * LISTED_WORDS * WORD;
        let lists = self.most_in_level * (TASK_BYTES + SINGLES_PER_UNIT * SINGLE_BYTES);
        self.masks as usize * (MASK_BYTES + SUMMARY_BYTES)
            + tables
            + places
            + lists
            + fixed
            + self.rows * WORD
            + self.programs.lane_bytes()
    }

    /// Works with a lane that has room for so many masks, in which no predicate is set. When it returns, nothing is under way: what
    /// was copied from may be used for something else.
    fn with_lane<T>(
        &self,
        masks: u32,
        mut work: impl FnMut(&mut Lane) -> DeviceResult<T>,
    ) -> DeviceResult<T> {
        self.lanes.with_lane(&self.shared, self.number, |lane| {
            self.prepare(lane, masks as usize)?;
            let done = work(lane)?;
            if lane.is_under_way {
                self.shared.driver.wait(lane.stream)?;
                lane.is_under_way = false;
            }
            Ok(done)
        })
    }

    fn prepare(&self, lane: &mut Lane, masks: usize) -> DeviceResult<()> {
        let mut is_new = lane.plan != self.number;
        is_new |= lane.masks.reserve(masks * MASK_BYTES)?;
        is_new |= lane.summaries.reserve(masks * SUMMARY_BYTES)?;
        is_new |= lane.ranks.reserve(self.tables.max(1) * DEVICE_WIDTH * WORD)?;
        is_new |= lane.present.reserve(self.tables.max(1) * MASK_BYTES)?;
        lane.tasks.reserve(self.most_in_level * TASK_BYTES)?;
        lane.singles.reserve(self.most_in_level * SINGLES_PER_UNIT * SINGLE_BYTES)?;
        lane.listed.reserve(self.levels.len() * LISTED_WORDS * WORD)?;
        lane.counts.reserve(DEVICE_WIDTH * WORD)?;
        lane.offsets.reserve(DEVICE_WIDTH * LONG)?;
        if is_new {
            // Masks of units are written before they are read, and so are the ranks of what is present.
            let driver = &self.shared.driver;
            lane.plan = 0;
            driver.fill_with_zeros(lane.stream, lane.masks.address, self.bits as usize * MASK_BYTES)?;
            driver.fill_with_zeros(lane.stream, lane.summaries.address, lane.summaries.bytes())?;
            driver.fill_with_zeros(lane.stream, lane.present.address, lane.present.bytes())?;
            // The first mask is always full.
            driver.upload(lane.stream, lane.masks.address, &[255; MASK_BYTES])?;
            driver.upload(lane.stream, lane.summaries.address, &[255; SUMMARY_BYTES])?;
            lane.plan = self.number;
        }
        Ok(())
    }

    fn kept(&self, kept: Option<&Arc<KeptRows>>) -> DeviceResult<Option<Arc<Buffer>>> {
        let Some(rows) = kept else { return Ok(None) };
        let mut held = self.kept.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if let Some(at) = held.iter().position(|(number, _)| *number == rows.number) {
            held[..=at].rotate_right(1);
            return Ok(Some(held[0].1.clone()));
        }
        held.truncate(FILTERS - 1);
        let upload = || {
            let stream = self.shared.driver.new_stream()?;
            let buffer = Buffer::of_words(&self.shared, stream, &rows.words);
            let buffer = buffer.and_then(|buffer| self.shared.driver.wait(stream).map(|()| Arc::new(buffer)));
            self.shared.driver.end_stream(stream);
            buffer
        };
        let buffer = upload().or_else(|error| {
            if !error.is_memory {
                return Err(error);
            }
            self.lanes.drop_idle();
            upload()
        })?;
        held.insert(0, (rows.number, buffer.clone()));
        Ok(Some(buffer))
    }

    /// Sets the masks of predicates, or clears what it set.
    fn scatter(&self, lane: &Lane, sent: &Sent, clears: bool) -> DeviceResult<()> {
        let driver = &self.shared.driver;
        let launch = |kernel, count: usize, arguments: &[u64]| match count {
            0 => Ok(()),
            _ => driver.launch(lane.stream, kernel, count as u64, arguments),
        };
        let [bits, points, ranks] = sent.counts;
        let tokens = lane.tokens.address;
        let heads_end = tokens + (LONG * sent.values) as u64;
        let at = |pairs: usize| heads_end + (WORD * (sent.values + 2 * pairs)) as u64;
        let (masks, summaries) = (lane.masks.address, lane.summaries.address);
        let set = bits as f64 + (points + sent.values) as f64 * self.masks_per_point;
        let mut does = if clears { Masks::Clear } else { Masks::Set };
        if clears && set > CLEARED_AT_ONCE * f64::from(self.bits) {
            // All but the first, which is always full.
            let others = self.bits as usize - 1;
            driver.fill_with_zeros(lane.stream, masks + MASK_BYTES as u64, others * MASK_BYTES)?;
            driver.fill_with_zeros(lane.stream, summaries + SUMMARY_BYTES as u64, others * SUMMARY_BYTES)?;
            does = Masks::Leave;
        } else {
            let clears = u64::from(clears);
            let arguments = [at(0), bits as u64, masks, summaries, clears];
            launch(Kernel::ScatterBits, bits, &arguments)?;
            let (offsets, of_points) = (self.point_offsets.address, self.point_masks.address);
            let arguments = [at(bits), points as u64, offsets, of_points, masks, summaries, clears];
            launch(Kernel::ScatterPoints, points, &arguments)?;
        }
        let (of_points, of_cuts) = (&self.point_keys, &self.cut_keys);
        let arguments = [
            heads_end,
            tokens,
            lane.points.address,
            sent.values as u64,
            self.value_tables.address,
            of_points.heads.address,
            of_points.rests.address,
            of_cuts.heads.address,
            of_cuts.rests.address,
            self.point_offsets.address,
            self.point_masks.address,
            lane.ranks.address,
            lane.present.address,
            masks,
            summaries,
            does as u64,
        ];
        launch(Kernel::LookUp, sent.values, &arguments)?;
        let clears = u64::from(clears);
        let arguments = [at(bits + points), ranks as u64, lane.ranks.address, lane.present.address, clears];
        launch(Kernel::ScatterRanks, ranks, &arguments)
    }

    /// What is sent of the tokens of a block.
    fn sent(&self, tokens: &Tokens) -> DeviceResult<Sent> {
        let mask_of = |[_, bit]: &[u32; 2]| self.mask_of_bit[*bit as usize];
        if tokens.bits.iter().any(|token| mask_of(token) == IN_POINTS) {
            return Err(DeviceError::new("a value was not told of as a point"));
        }
        let read = || tokens.bits.iter().filter(|token| mask_of(token) != NO_MASK);
        let counts = [read().count(), tokens.points.len(), tokens.ranks.len()];
        let values = tokens.heads.len();
        let mut words = Words::new(&self.shared, 3 * values + 2 * counts.iter().sum::<usize>())?;
        let (heads, rest) = words.as_mut().split_at_mut(2 * values);
        heads.copy_from_slice(bytemuck::cast_slice(&tokens.heads));
        let (places, rest) = rest.split_at_mut(values);
        places.copy_from_slice(&tokens.places);
        let (bits, rest) = rest.split_at_mut(2 * counts[0]);
        for (to, token) in bits.as_chunks_mut().0.iter_mut().zip(read()) {
            *to = [token[0], mask_of(token)];
        }
        let (points, ranks) = rest.split_at_mut(2 * counts[1]);
        points.copy_from_slice(tokens.points.as_flattened());
        ranks.copy_from_slice(tokens.ranks.as_flattened());
        Ok(Sent { events: tokens.events, words, values, counts })
    }

    /// Computes the masks of all units; counts their rows if asked to, or stores the masks of those that have rows.
    fn evaluate(&self, lane: &mut Lane, sent: &Sent, counts: bool) -> DeviceResult<()> {
        let started = self.evaluate_and_keep(lane, sent, counts)?;
        self.scatter(lane, sent, true)?;
        self.shared.end(Stage::Units, lane.stream, started).map(|_| ())
    }

    /// The same, and leaves the masks of predicates as they are, to be cleared. Says when the last stage began.
    fn evaluate_and_keep(&self, lane: &mut Lane, sent: &Sent, counts: bool) -> DeviceResult<Instant> {
        let driver = &self.shared.driver;
        let started = Instant::now();
        let words = sent.words.as_ref();
        lane.is_under_way = true;
        if !words.is_empty() {
            lane.tokens.reserve_generously(WORD * words.len())?;
            lane.points.reserve_generously(WORD * sent.values)?;
            driver.upload(lane.stream, lane.tokens.address, bytemuck::cast_slice(words))?;
        }
        let started = self.shared.end(Stage::Upload, lane.stream, started)?;
        self.scatter(lane, sent, false)?;
        let (items, masks) = (self.cut_items as u64, lane.masks.address);
        let arguments = [
            self.items.address,
            items,
            self.cut_tables.address,
            lane.ranks.address,
            lane.present.address,
            masks,
            lane.summaries.address,
        ];
        // A warp for each half of the lanes.
        let threads = items * (DEVICE_WIDTH / LANE_EVENTS) as u64;
        driver.launch(lane.stream, Kernel::Cuts, threads, &arguments)?;
        let started = self.shared.end(Stage::Predicates, lane.stream, started)?;
        if counts {
            driver.fill_with_zeros(lane.stream, lane.counts.address, lane.counts.bytes())?;
        }
        self.evaluate_levels(lane, sent.events, counts)?;
        Ok(started)
    }

    fn evaluate_levels(&self, lane: &Lane, events: usize, counts: bool) -> DeviceResult<()> {
        let driver = &self.shared.driver;
        let stored = u64::from(if counts { self.shared_masks } else { self.masks });
        let counted = if counts { lane.counts.address } else { 0 };
        let lanes = u64::MAX >> (u64::BITS as usize - events.div_ceil(LANE_EVENTS).max(1));
        let (code, masks, summaries) = (self.code.address, lane.masks.address, lane.summaries.address);
        driver.fill_with_zeros(lane.stream, lane.listed.address, self.levels.len() * LISTED_WORDS * WORD)?;
        for (number, level) in self.levels.iter().enumerate() {
            let units = self.units.address + u64::from(level.first) * size_of::<PlannedUnit>() as u64;
            let listed = lane.listed.address + (number * LISTED_WORDS * WORD) as u64;
            let [a, b, c, d] = level.ends.map(|end| u64::from(end - level.first));
            let all = [units, a, b, c, d, lane.tasks.address, lane.singles.address, listed, code];
            let arguments = [&all[..], &[summaries, stored, lanes]].concat();
            driver.launch(lane.stream, Kernel::LookAhead, d, &arguments)?;
            let arguments = [&all[..], &[masks, stored, counted, summaries]].concat();
            driver.launch(lane.stream, Kernel::RunSingles, SINGLES_PER_UNIT as u64 * d, &arguments)?;
            let kinds = [
                (RunKind::Flat, Kernel::EvaluateFlat),
                (RunKind::Groups, Kernel::EvaluateGroups),
                (RunKind::Sets, Kernel::EvaluateSets),
                (RunKind::Other, Kernel::EvaluateOther),
            ];
            let mut first = 0;
            for (kind, kernel) in kinds {
                let last = u64::from(level.ends[kind as usize] - level.first);
                let tasks = lane.tasks.address + first * TASK_BYTES as u64;
                let number = listed + (kind as usize * WORD) as u64;
                let arguments = [tasks, number, code, masks, stored, counted, summaries];
                driver.launch(lane.stream, kernel, 32 * driver.warps().min(last - first), &arguments)?;
                first = last;
            }
        }
        Ok(())
    }
}

impl LoadedPlan for PlanOnDevice {
    fn counts(&self, tokens: &Tokens, kept: Option<&Arc<KeptRows>>) -> DeviceResult<Vec<u32>> {
        let (kept, sent) = (self.kept(kept)?, self.sent(tokens)?);
        if kept.is_some() {
            // Which rows of a unit count is known row by row only.
            let block = Block { sent: &sent, kept: kept.as_ref() };
            return self.with_lane(self.masks, |lane| {
                self.evaluate(lane, &sent, false)?;
                self.count_rows(lane, block, RowOrder::Id, self.rows)
            });
        }
        self.with_lane(self.shared_masks, |lane| {
            self.evaluate(lane, &sent, true)?;
            self.download_counts(lane, tokens.events)
        })
    }

    fn rows(
        &self,
        tokens: &Tokens,
        kept: Option<&Arc<KeptRows>>,
        query: RowQuery,
    ) -> DeviceResult<ListedRows> {
        let (kept, sent) = (self.kept(kept)?, self.sent(tokens)?);
        let block = Block { sent: &sent, kept: kept.as_ref() };
        self.with_lane(self.masks, |lane| self.list(lane, block, query))
    }

    fn best_by_relevance(
        &self,
        tokens: &Tokens,
        kept: Option<&Arc<KeptRows>>,
        query: RelevanceQuery,
    ) -> DeviceResult<Option<BestByRelevance>> {
        let (kept, sent) = (self.kept(kept)?, self.sent(tokens)?);
        let block = Block { sent: &sent, kept: kept.as_ref() };
        match self.with_lane(self.masks, |lane| self.best(lane, block, query)) {
            Err(error) if error.is_memory => Ok(None),
            found => found,
        }
    }

    fn row_counts(
        &self,
        tokens: &Tokens,
        kept: Option<&Arc<KeptRows>>,
        counts: &mut [u64],
    ) -> DeviceResult<()> {
        let (kept, sent) = (self.kept(kept)?, self.sent(tokens)?);
        let block = Block { sent: &sent, kept: kept.as_ref() };
        let found = self.with_lane(self.masks, |lane| {
            let driver = &self.shared.driver;
            self.evaluate(lane, &sent, false)?;
            let started = Instant::now();
            lane.row_counts.reserve(self.rows * WORD)?;
            let [a, b, c, d, e, f] = self.row_arguments(lane, block, RowOrder::Id, self.rows);
            let arguments = [a, b, c, d, e, f, tokens.events as u64, lane.row_counts.address];
            driver.launch(lane.stream, Kernel::CountEvents, self.rows as u64, &arguments)?;
            self.shared.end(Stage::Rows, lane.stream, started)?;
            let counted = lane.row_counts.address;
            self.download_words(lane, counted, self.rows)
        })?;
        counts.iter_mut().zip(found.as_ref()).for_each(|(all, more)| *all += u64::from(*more));
        Ok(())
    }

    fn has_room(&self) -> bool {
        self.shared.check_room(2 * self.lane_bytes()).is_ok()
    }
}

#[cfg(test)]
mod tests;
