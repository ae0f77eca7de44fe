//! The best rows of each event by relevance.
//!
//! Rows are scored in rounds, those with the highest bounds first; the results show which of the others need
//! not be scored. The results of an event in a round go to its own bin. If the bin overflows, the round is
//! repeated for this event with the higher threshold.

use std::sync::Arc;
use std::time::Instant;

use bytemuck::{Pod, Zeroable};
use tamis_core::engine::device::{
    BestByRelevance, DEVICE_WIDTH, DeviceResult, ListedRows, Pause, Relevance, RelevanceQuery, RowOrder,
    ScoredRow,
};

use super::{Block, LONG, MASK_BYTES, PlanOnDevice, SUMMARY_BYTES, WORD};
use crate::driver::{Address, Kernel, Stream};
use crate::lane::{Buffer, Lane};
use crate::shared::{Shared, Stage};

/// Rows that are scored before the others, and before those behind them.
const ROUNDS: [usize; 2] = [2 * 1024, 32 * 1024];
/// Chunks of a round for which it is known which events need them.
const CHUNKS: usize = 64;
/// Entries of a bin: this many, or the second number where memory is short; and so many times as many as are asked for at least.
const ROOMS: [usize; 2] = [256, 32];
const TIMES_ROOM: usize = 2;
/// Rounds of a block that are done again; with more, the processor answers.
const MOST_REPEATED: usize = 8;
/// Where a part of the memory begins.
const ALIGNMENT: usize = 256;

/// A row in a bin; the same as in `kernels.cu`.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct Entry {
    score: u64,
    row: u32,
    unused: u32,
}

/// Programs of rows on the device.
pub(super) struct Programs {
    order: Buffer,
    bounds: Buffer,
    starts: Buffer,
    code: Buffer,
    /// Rows that have one, or score their bounds.
    scored: usize,
    /// The others, which are scored by their records; all rows if the order has none.
    by_record: usize,
    /// Blocks in which these had few matches.
    few: Pause,
    /// Blocks in which few rounds had to be done again.
    straight: Pause,
}

impl Programs {
    pub(super) fn new(
        shared: &Arc<Shared>,
        stream: Stream,
        of: &Relevance,
        rows: usize,
    ) -> DeviceResult<Self> {
        Ok(Self {
            order: Buffer::of_words(shared, stream, &of.order)?,
            bounds: Buffer::of_words(shared, stream, &of.bounds)?,
            starts: Buffer::of_words(shared, stream, &of.starts)?,
            code: Buffer::of_words(shared, stream, &of.code)?,
            scored: of.bounds.len(),
            by_record: rows - of.bounds.len(),
            few: Pause::default(),
            straight: Pause::default(),
        })
    }

    /// What a lane needs at least to find the best ten.
    pub(super) fn lane_bytes(&self) -> usize {
        if self.scored == 0 { 0 } else { Parts::of(0, 10, ROOMS[1]).end as usize }
    }
}

/// Where everything is in the memory of a lane.
struct Parts {
    room: usize,
    least: Address,
    counts: Address,
    open: Address,
    again: Address,
    highest: Address,
    wanted: Address,
    wanted_lanes: Address,
    bins: Address,
    /// How many were found, and what; twice, since one is made of the other.
    found: [Address; 2],
    best: [Address; 2],
    end: Address,
}

impl Parts {
    fn of(start: Address, k: usize, room: usize) -> Self {
        let room = room.max(TIMES_ROOM * k);
        let mut end = start;
        let mut part = |bytes: usize| {
            let from = end;
            end += bytes.next_multiple_of(ALIGNMENT) as Address;
            from
        };
        let (words, entries) = (DEVICE_WIDTH * WORD, DEVICE_WIDTH * size_of::<Entry>());
        Self {
            room,
            least: part(entries),
            counts: part(words),
            open: part(words),
            again: part(WORD),
            highest: part(LONG),
            wanted: part(CHUNKS * MASK_BYTES),
            wanted_lanes: part(CHUNKS * SUMMARY_BYTES),
            bins: part(room * entries),
            found: [part(words), part(words)],
            best: [part(k * entries), part(k * entries)],
            end: part(0),
        }
    }

    /// With as much room as there is.
    fn reserved(lane: &mut Lane, k: usize) -> DeviceResult<Self> {
        let mut reserve = |room: usize| {
            lane.ranked.reserve(Self::of(0, k, room).end as usize)?;
            Ok(Self::of(lane.ranked.address, k, room))
        };
        reserve(ROOMS[0]).or_else(|_| reserve(ROOMS[1]))
    }
}

impl PlanOnDevice {
    /// See [`LoadedPlan::best_by_relevance`](tamis_core::engine::device::LoadedPlan::best_by_relevance).
    pub(super) fn best(
        &self,
        lane: &mut Lane,
        block: Block<'_>,
        query: RelevanceQuery,
    ) -> DeviceResult<Option<BestByRelevance>> {
        let programs = &self.programs;
        if programs.by_record > 0 && !programs.few.is_over()
            || programs.scored > 0 && !programs.straight.is_over()
        {
            return Ok(None);
        }
        let parts = match programs.scored {
            0 => None,
            _ => Some(Parts::reserved(lane, query.k)?),
        };
        let started = self.evaluate_and_keep(lane, block.sent, false)?;
        self.shared.end(Stage::Units, lane.stream, started)?;
        let best = match parts {
            None => Some(vec![vec![]; block.sent.events]),
            Some(parts) => {
                let best = self.score(lane, block, &parts, query)?;
                programs.straight.note(block.sent.events, best.is_some());
                best
            }
        };
        self.scatter(lane, block.sent, true)?;
        let Some(best) = best else { return Ok(None) };
        if programs.by_record == 0 {
            return Ok(Some(BestByRelevance { best, by_record: None }));
        }
        let found = self.list_by_record(lane, block)?;
        programs.few.note(block.sent.events, found.is_some());
        Ok(found.map(|found| BestByRelevance { best, by_record: Some(found) }))
    }

    /// The rows that hold and are scored by their records; `None` if there are too many.
    fn list_by_record(&self, lane: &mut Lane, block: Block<'_>) -> DeviceResult<Option<ListedRows>> {
        let Programs { order, scored, by_record, .. } = &self.programs;
        let order = if *scored == 0 { 0 } else { order.address + (scored * WORD) as u64 };
        let [a, _, c, d, e, _] = self.row_arguments(lane, block, RowOrder::Id, self.rows);
        self.list_few(lane, [a, order, c, d, e, *by_record as u64], block.sent.events, usize::MAX)
    }

    /// The best rows that have programs; `None` if scores grow where bounds fall, so that round upon round is done again.
    fn score(
        &self,
        lane: &mut Lane,
        block: Block<'_>,
        parts: &Parts,
        RelevanceQuery { k, min_score }: RelevanceQuery,
    ) -> DeviceResult<Option<Vec<Vec<ScoredRow>>>> {
        let driver = &self.shared.driver;
        let mut started = Instant::now();
        // Scores are not negative, and neither is a number that is none.
        let least = min_score.max(0.0) + 0.0;
        let bins = [parts.least, parts.counts, parts.bins, parts.room as u64];
        let [found, next_found] = parts.found;
        let arguments = [&bins[..], &[found, least.to_bits()]].concat();
        driver.launch(lane.stream, Kernel::StartBest, DEVICE_WIDTH as u64, &arguments)?;
        let (mut from, mut to) = ((found, parts.best[0]), (next_found, parts.best[1]));
        let (mut first, mut repeated) = (0, 0);
        for last in ROUNDS.into_iter().chain([usize::MAX]).map(|last| last.min(self.programs.scored)) {
            let mut is_again = false;
            while first < last {
                self.score_round(lane, block, parts, first..last, is_again)?;
                driver.fill_with_zeros(lane.stream, parts.again, WORD)?;
                let events = block.sent.events as u64;
                let best = [k as u64, from.0, from.1, to.0, to.1, parts.open, parts.again, events];
                let arguments = [&bins[..], &best].concat();
                driver.launch(lane.stream, Kernel::KeepBest, 32 * events, &arguments)?;
                std::mem::swap(&mut from, &mut to);
                self.shared.end(Stage::Rows, lane.stream, started)?;
                is_again = self.download_words(lane, parts.again, 1)?.as_ref()[0] > 0;
                started = Instant::now();
                if !is_again {
                    first = last;
                    continue;
                }
                repeated += 1;
                if repeated > MOST_REPEATED {
                    return Ok(None);
                }
            }
        }
        let counts = self.download_words(lane, from.0, block.sent.events)?;
        let words = self.download_words(lane, from.1, block.sent.events * k * size_of::<Entry>() / WORD)?;
        let entries: &[Entry] = bytemuck::cast_slice(words.as_ref());
        let of_event = |(count, entries): (&u32, &[Entry])| {
            let found = entries[..*count as usize].iter();
            found.map(|entry| ScoredRow { row: entry.row, score: f64::from_bits(entry.score) }).collect()
        };
        Ok(Some(counts.as_ref().iter().zip(entries.chunks(k)).map(of_event).collect()))
    }

    /// Puts what is good enough of some rows into the bins of its events; again, for those whose bins ran over.
    fn score_round(
        &self,
        lane: &Lane,
        block: Block<'_>,
        parts: &Parts,
        rows: std::ops::Range<usize>,
        is_again: bool,
    ) -> DeviceResult<()> {
        let driver = &self.shared.driver;
        let Programs { order, bounds, starts, code, .. } = &self.programs;
        // Few rows are shared by as many warps as there are.
        let step = (rows.len() / (4 * driver.warps() as usize)).clamp(1, 32);
        let in_chunk = rows.len().div_ceil(CHUNKS).next_multiple_of(step);
        let chunks = rows.len().div_ceil(in_chunk) as u64;
        let arguments = [
            bounds.address,
            rows.start as u64,
            in_chunk as u64,
            block.sent.events as u64,
            u64::from(!is_again),
            parts.open,
            parts.least,
            parts.wanted,
            parts.wanted_lanes,
            parts.highest,
            chunks,
        ];
        driver.launch(lane.stream, Kernel::Want, 32 * chunks, &arguments)?;
        let [a, _, c, d, e, _] = self.row_arguments(lane, block, RowOrder::Id, self.rows);
        let arguments = [
            a,
            order.address,
            c,
            d,
            e,
            rows.end as u64,
            bounds.address,
            starts.address,
            code.address,
            parts.highest,
            rows.start as u64,
            step as u64,
            in_chunk as u64,
            parts.wanted,
            parts.wanted_lanes,
            parts.least,
            parts.counts,
            parts.bins,
            parts.room as u64,
        ];
        let items = rows.len().div_ceil(step) as u64;
        driver.launch(lane.stream, Kernel::ScoreRows, 32 * driver.warps().min(items), &arguments)
    }
}
