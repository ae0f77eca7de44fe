//! Plans on a device, whatever its driver.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Instant;

use serde_json::Value as Json;
use tamis_core::engine::device::{
    DEVICE_WIDTH, Device, DeviceError, DeviceResult, KeptRows, ListedRows, LoadedPlan, Plan, RowOrder,
    Tokens, UnitRun,
};

use crate::driver::{Address, Driver, Kernel, Stream};
use crate::lane::{Buffer, Lane};

const WORD: usize = 4;
const MASK_BYTES: usize = DEVICE_WIDTH / 8;
/// Rows that one warp counts and lists; the same as in `kernels.cu`.
const CHUNK: usize = 256;
/// Rows that are looked at first when only the best are wanted: with many matches they are among these.
const FIRST_LOOK: usize = 32 * 1024;
/// Cuts that one warp sets; the same as in `kernels.cu`.
const CUTS_PER_ITEM: u32 = 32;
/// Blocks that are on the device at once: while one is computed, others are copied.
const LANES: usize = 4;
/// Words of code that are read ahead of what is computed; the same as in `kernels.cu`.
const AHEAD: usize = 4;
/// Rows that are listed before they are copied back.
const LISTED_AT_ONCE: usize = 1 << 25;

/// What the time of a block goes to.
#[derive(Clone, Copy)]
enum Stage {
    Upload,
    Predicates,
    Units,
    Rows,
    Download,
}

const STAGES: [&str; 5] = ["upload", "predicates", "units", "rows", "download"];

/// The driver, and how much of the device's memory is taken.
pub struct Shared {
    pub driver: Box<dyn Driver>,
    limit: u64,
    taken: AtomicU64,
    /// Nanoseconds by stage, if they are taken: whoever takes them waits after each stage.
    stages: Option<[AtomicU64; STAGES.len()]>,
}

impl Shared {
    /// Ends a stage; says when the next one begins.
    fn end(&self, stage: Stage, stream: Stream, started: Instant) -> DeviceResult<Instant> {
        if let Some(stages) = &self.stages {
            self.driver.wait(stream)?;
            stages[stage as usize].fetch_add(started.elapsed().as_nanos() as u64, Ordering::Relaxed);
        }
        Ok(Instant::now())
    }

    pub fn allocate(&self, bytes: usize) -> DeviceResult<Address> {
        let before = self.taken.fetch_add(bytes as u64, Ordering::Relaxed);
        let found = if before + bytes as u64 > self.limit {
            Err(DeviceError(format!(
                "the index needs more than the {} bytes of device memory that it may take",
                self.limit
            )))
        } else {
            self.driver.allocate(bytes)
        };
        found.inspect_err(|_| {
            self.taken.fetch_sub(bytes as u64, Ordering::Relaxed);
        })
    }

    pub fn release(&self, address: Address, bytes: usize) {
        self.driver.release(address, bytes);
        self.taken.fetch_sub(bytes as u64, Ordering::Relaxed);
    }
}

pub struct Evaluator {
    shared: Arc<Shared>,
}

impl Evaluator {
    pub fn new(driver: Box<dyn Driver>, memory: Option<u64>, timed: bool) -> DeviceResult<Self> {
        let free = driver.free_memory()?;
        let limit = memory.unwrap_or(free / 10 * 9);
        Ok(Self {
            shared: Arc::new(Shared {
                driver,
                limit,
                taken: AtomicU64::new(0),
                stages: timed.then(Default::default),
            }),
        })
    }
}

impl Device for Evaluator {
    fn load(&self, plan: &Plan) -> DeviceResult<Arc<dyn LoadedPlan>> {
        Ok(Arc::new(PlanOnDevice::new(&self.shared, plan)?))
    }

    fn describe(&self) -> Json {
        let mut description = self.shared.driver.describe();
        if let Some(stages) = &self.shared.stages {
            let seconds = stages.each_ref().map(|stage| stage.load(Ordering::Relaxed) as f64 / 1e9);
            description["seconds"] = STAGES.into_iter().zip(seconds).collect();
        }
        description
    }
}

/// A plan in the memory of the device.
struct PlanOnDevice {
    shared: Arc<Shared>,
    masks: u32,
    shared_masks: u32,
    rows: usize,
    tables: usize,
    cut_items: usize,
    runs: Vec<UnitRun>,
    units: Buffer,
    code: Buffer,
    mask_of_row: Buffer,
    by_priority: Option<Buffer>,
    point_offsets: Buffer,
    point_bits: Buffer,
    cut_tables: Buffer,
    items: Buffer,
    /// What was kept last.
    kept: Mutex<Vec<(u64, Arc<Buffer>)>>,
    lanes: Mutex<Lanes>,
    freed: Condvar,
}

#[derive(Default)]
struct Lanes {
    free: Vec<Lane>,
    made: usize,
}

/// What a block is asked for.
#[derive(Clone, Copy)]
struct Block<'a> {
    tokens: &'a Tokens,
    kept: Option<&'a Arc<Buffer>>,
}

impl PlanOnDevice {
    fn new(shared: &Arc<Shared>, plan: &Plan) -> DeviceResult<Self> {
        let stream = shared.driver.new_stream()?;
        let loaded = Self::load(shared, stream, plan);
        shared.driver.end_stream(stream);
        loaded
    }

    fn load(shared: &Arc<Shared>, stream: Stream, plan: &Plan) -> DeviceResult<Self> {
        let words = |words: &[u32]| Buffer::of_words(shared, stream, words);
        let units: Vec<u32> =
            plan.units.iter().flat_map(|unit| [unit.code, unit.leaves, unit.mask, unit.rows]).collect();
        let items: Vec<u32> = (0..)
            .zip(&plan.cut_tables)
            .flat_map(|(table, [.., cuts])| {
                (0..*cuts).step_by(CUTS_PER_ITEM as usize).flat_map(move |first| [table, first])
            })
            .collect();
        let loaded = Self {
            shared: shared.clone(),
            masks: plan.masks,
            shared_masks: plan.shared_masks,
            rows: plan.mask_of_row.len(),
            tables: plan.cut_tables.len(),
            cut_items: items.len() / 2,
            runs: plan.runs.clone(),
            units: words(&units)?,
            code: words(&[&plan.code[..], &[0; AHEAD]].concat())?,
            mask_of_row: words(&plan.mask_of_row)?,
            by_priority: if plan.by_priority.is_empty() { None } else { Some(words(&plan.by_priority)?) },
            point_offsets: words(&plan.point_offsets)?,
            point_bits: words(&plan.point_bits)?,
            cut_tables: words(plan.cut_tables.as_flattened())?,
            items: words(&items)?,
            kept: Mutex::default(),
            lanes: Mutex::default(),
            freed: Condvar::new(),
        };
        // What was uploaded is there before any other stream looks at it.
        shared.driver.download(stream, loaded.items.address, &mut [0; WORD])?;
        Ok(loaded)
    }

    fn new_lane(&self, masks: u32) -> DeviceResult<Lane> {
        let shared = &self.shared;
        let buffer = |bytes| Buffer::new(shared, bytes);
        let lane = Lane {
            shared: shared.clone(),
            masks: buffer(masks as usize * MASK_BYTES)?,
            mask_count: masks,
            ranks: buffer(self.tables.max(1) * DEVICE_WIDTH * WORD)?,
            present: buffer(self.tables.max(1) * MASK_BYTES)?,
            tokens: [buffer(WORD)?, buffer(WORD)?, buffer(WORD)?],
            counts: buffer(DEVICE_WIDTH * WORD)?,
            places: buffer(WORD)?,
            offsets: buffer((DEVICE_WIDTH + 1) * 8)?,
            listed: buffer(WORD)?,
            stream: shared.driver.new_stream()?,
        };
        shared.driver.fill_with_zeros(lane.stream, lane.present.address, lane.present.bytes())?;
        self.clear_masks(&lane)?;
        Ok(lane)
    }

    /// Empties all masks but the first, which is always full.
    fn clear_masks(&self, lane: &Lane) -> DeviceResult<()> {
        let driver = &self.shared.driver;
        driver.fill_with_zeros(lane.stream, lane.masks.address, lane.mask_count as usize * MASK_BYTES)?;
        driver.upload(lane.stream, lane.masks.address, &[255; MASK_BYTES])
    }

    /// A lane with room for so many masks. Waits for one if there are as many as may be, or if memory has no room for another.
    fn lane(&self, masks: u32) -> DeviceResult<Lane> {
        let mut lanes = self.lanes.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let mut lane = loop {
            if let Some(lane) = lanes.free.pop() {
                break lane;
            }
            if lanes.made < LANES {
                match self.new_lane(masks) {
                    Ok(lane) => {
                        lanes.made += 1;
                        break lane;
                    }
                    Err(error) if lanes.made == 0 => return Err(error),
                    Err(_) => {}
                }
            }
            lanes = self.freed.wait(lanes).unwrap_or_else(|poisoned| poisoned.into_inner());
        };
        drop(lanes);
        if lane.mask_count < masks {
            let grown = lane.masks.reserve(masks as usize * MASK_BYTES).and_then(|()| {
                lane.mask_count = masks;
                self.clear_masks(&lane)
            });
            if let Err(error) = grown {
                self.forget(lane);
                return Err(error);
            }
        }
        Ok(lane)
    }

    fn give_back(&self, lane: Lane) {
        let mut lanes = self.lanes.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        lanes.free.push(lane);
        self.freed.notify_one();
    }

    fn forget(&self, lane: Lane) {
        drop(lane);
        let mut lanes = self.lanes.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        lanes.made -= 1;
        // Whoever waits may have to hear that there is no lane left to wait for.
        self.freed.notify_all();
    }

    /// Works with a lane. After a failure it is not used again: nobody knows what is in it.
    fn with_lane<T>(&self, masks: u32, work: impl FnOnce(&mut Lane) -> DeviceResult<T>) -> DeviceResult<T> {
        let mut lane = self.lane(masks)?;
        let outcome = work(&mut lane);
        match outcome {
            Ok(_) => self.give_back(lane),
            Err(_) => self.forget(lane),
        }
        outcome
    }

    fn kept(&self, kept: Option<&Arc<KeptRows>>) -> DeviceResult<Option<Arc<Buffer>>> {
        let Some(rows) = kept else { return Ok(None) };
        let mut held = self.kept.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if let Some((_, buffer)) = held.iter().find(|(number, _)| *number == rows.number) {
            return Ok(Some(buffer.clone()));
        }
        let stream = self.shared.driver.new_stream()?;
        let buffer = Buffer::of_words(&self.shared, stream, &rows.words).and_then(|buffer| {
            self.shared.driver.download(stream, buffer.address, &mut [0; WORD])?;
            Ok(Arc::new(buffer))
        });
        self.shared.driver.end_stream(stream);
        let buffer = buffer?;
        held.truncate(1);
        held.insert(0, (rows.number, buffer.clone()));
        Ok(Some(buffer))
    }

    /// Sets the masks of predicates, or clears what it set.
    fn scatter(&self, lane: &Lane, tokens: &Tokens, clears: bool) -> DeviceResult<()> {
        let launch = |kernel, count: usize, arguments: &[u64]| match count {
            0 => Ok(()),
            _ => self.shared.driver.launch(lane.stream, kernel, count as u64, arguments),
        };
        let clears = u64::from(clears);
        let [bits, points, ranks] = [&tokens.bits, &tokens.points, &tokens.ranks].map(Vec::len);
        let masks = lane.masks.address;
        launch(Kernel::ScatterBits, bits, &[lane.tokens[0].address, bits as u64, masks, clears])?;
        let (offsets, of_points) = (self.point_offsets.address, self.point_bits.address);
        let arguments = [lane.tokens[1].address, points as u64, offsets, of_points, masks, clears];
        launch(Kernel::ScatterPoints, points, &arguments)?;
        let arguments =
            [lane.tokens[2].address, ranks as u64, lane.ranks.address, lane.present.address, clears];
        launch(Kernel::ScatterRanks, ranks, &arguments)
    }

    /// Computes the masks of all units; counts their rows if asked to, or stores the masks of those that have rows.
    fn evaluate(&self, lane: &mut Lane, tokens: &Tokens, counts: bool) -> DeviceResult<()> {
        let driver = &self.shared.driver;
        let started = Instant::now();
        for (buffer, pairs) in lane.tokens.iter_mut().zip([&tokens.bits, &tokens.points, &tokens.ranks]) {
            if !pairs.is_empty() {
                buffer.reserve(2 * WORD * pairs.len())?;
                driver.upload(lane.stream, buffer.address, bytemuck::cast_slice(pairs))?;
            }
        }
        let started = self.shared.end(Stage::Upload, lane.stream, started)?;
        self.scatter(lane, tokens, false)?;
        let (items, masks) = (self.cut_items as u64, lane.masks.address);
        let arguments = [
            self.items.address,
            items,
            self.cut_tables.address,
            lane.ranks.address,
            lane.present.address,
            masks,
        ];
        driver.launch(lane.stream, Kernel::Cuts, 32 * items, &arguments)?;
        let started = self.shared.end(Stage::Predicates, lane.stream, started)?;
        if counts {
            driver.fill_with_zeros(lane.stream, lane.counts.address, lane.counts.bytes())?;
        }
        let stored = if counts { self.shared_masks } else { self.masks };
        let counted = if counts { lane.counts.address } else { 0 };
        let mut first = 0;
        for &UnitRun { end: last, is_flat } in &self.runs {
            if first < last {
                let warps = driver.warps().min(u64::from(last - first));
                let arguments = [
                    self.units.address,
                    first.into(),
                    last.into(),
                    self.code.address,
                    masks,
                    stored.into(),
                    counted,
                ];
                let kernel = if is_flat { Kernel::EvaluateFlat } else { Kernel::Evaluate };
                driver.launch(lane.stream, kernel, 32 * warps, &arguments)?;
            }
            first = last;
        }
        self.scatter(lane, tokens, true)?;
        self.shared.end(Stage::Units, lane.stream, started).map(|_| ())
    }

    /// Finds out where the rows of each chunk go, and how many each event has.
    fn count_rows(
        &self,
        lane: &mut Lane,
        block: Block<'_>,
        order: RowOrder,
        rows: usize,
    ) -> DeviceResult<Vec<u32>> {
        let driver = &self.shared.driver;
        let started = Instant::now();
        let chunks = rows.div_ceil(CHUNK);
        lane.places.reserve(chunks * DEVICE_WIDTH * WORD)?;
        let arguments = [
            self.mask_of_row.address,
            self.order(order),
            rows as u64,
            block.kept.map_or(0, |kept| kept.address),
            lane.masks.address,
            lane.places.address,
            chunks as u64,
        ];
        driver.launch(lane.stream, Kernel::CountChunks, 32 * chunks as u64, &arguments)?;
        let arguments = [lane.places.address, chunks as u64, lane.counts.address];
        driver.launch(lane.stream, Kernel::Scan, DEVICE_WIDTH as u64, &arguments)?;
        self.shared.end(Stage::Rows, lane.stream, started)?;
        self.download_words(lane, lane.counts.address, block.tokens.events)
    }

    fn order(&self, order: RowOrder) -> u64 {
        match (order, &self.by_priority) {
            (RowOrder::Priority, Some(rows)) => rows.address,
            _ => 0,
        }
    }

    fn download_words(&self, lane: &Lane, from: Address, count: usize) -> DeviceResult<Vec<u32>> {
        let started = Instant::now();
        let mut words = vec![0; count];
        self.shared.driver.download(lane.stream, from, bytemuck::cast_slice_mut(&mut words))?;
        self.shared.end(Stage::Download, lane.stream, started)?;
        Ok(words)
    }

    fn list(
        &self,
        lane: &mut Lane,
        block: Block<'_>,
        order: RowOrder,
        events: usize,
        most: u32,
    ) -> DeviceResult<ListedRows> {
        let driver = &self.shared.driver;
        self.evaluate(lane, block.tokens, false)?;
        let mut looked_at = if most == u32::MAX { self.rows } else { self.rows.min(FIRST_LOOK) };
        let mut totals = self.count_rows(lane, block, order, looked_at)?;
        if looked_at < self.rows && totals[..events].iter().any(|total| *total < most) {
            looked_at = self.rows;
            totals = self.count_rows(lane, block, order, looked_at)?;
        }
        let mut end = 0;
        let ends: Vec<usize> = totals[..events]
            .iter()
            .map(|total| {
                end += (*total).min(most) as usize;
                end
            })
            .collect();
        let starts = |event: usize| if event == 0 { 0 } else { ends[event - 1] };
        let offsets: Vec<u64> = (0..events).map(|event| starts(event) as u64).collect();
        driver.upload(lane.stream, lane.offsets.address, bytemuck::cast_slice(&offsets))?;
        let mut rows = vec![];
        let mut first = 0;
        while first < events {
            // As many events as there is room for, and one at least.
            let fit = ends[first..].partition_point(|end| end - starts(first) <= LISTED_AT_ONCE).max(1);
            let last = first + fit;
            let count = ends[last - 1] - starts(first);
            if count > 0 {
                lane.listed.reserve(count * WORD)?;
                let chunks = looked_at.div_ceil(CHUNK) as u64;
                let arguments = [
                    self.mask_of_row.address,
                    self.order(order),
                    looked_at as u64,
                    block.kept.map_or(0, |kept| kept.address),
                    lane.masks.address,
                    lane.places.address,
                    lane.offsets.address,
                    first as u64,
                    last as u64,
                    most.into(),
                    lane.listed.address,
                    chunks,
                ];
                let started = Instant::now();
                driver.launch(lane.stream, Kernel::ListChunks, 32 * chunks, &arguments)?;
                self.shared.end(Stage::Rows, lane.stream, started)?;
                match self.download_words(lane, lane.listed.address, count)? {
                    all if rows.is_empty() => rows = all,
                    more => rows.extend(more),
                }
            }
            first = last;
        }
        Ok(ListedRows { ends, rows })
    }
}

impl LoadedPlan for PlanOnDevice {
    fn counts(&self, tokens: &Tokens, kept: Option<&Arc<KeptRows>>) -> DeviceResult<Vec<u32>> {
        let kept = self.kept(kept)?;
        if kept.is_some() {
            // Which rows of a unit count is known row by row only.
            let block = Block { tokens, kept: kept.as_ref() };
            return self.with_lane(self.masks, |lane| {
                self.evaluate(lane, tokens, false)?;
                self.count_rows(lane, block, RowOrder::Id, self.rows)
            });
        }
        self.with_lane(self.shared_masks, |lane| {
            self.evaluate(lane, tokens, true)?;
            self.download_words(lane, lane.counts.address, tokens.events)
        })
    }

    fn rows(
        &self,
        tokens: &Tokens,
        kept: Option<&Arc<KeptRows>>,
        order: RowOrder,
        events: usize,
        most: u32,
    ) -> DeviceResult<ListedRows> {
        let kept = self.kept(kept)?;
        let block = Block { tokens, kept: kept.as_ref() };
        self.with_lane(self.masks, |lane| self.list(lane, block, order, events, most))
    }

    fn bytes(&self) -> u64 {
        self.shared.taken.load(Ordering::Relaxed)
    }
}
