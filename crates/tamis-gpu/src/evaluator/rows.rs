//! The rows that hold for the events of a block: counted, or listed in one of three ways.
//!
//! If each event has many, the first ones are found among a few rows. If all events together have few, one
//! thread per row records the events for which it holds, in no order, and the host sorts them. Otherwise rows
//! are counted by chunk first, which says where those of each event go.

use std::time::Instant;

use tamis_core::engine::device::{DEVICE_WIDTH, DeviceResult, ListedRows, RowOrder, RowQuery};

use super::{Block, CHUNK, CHUNKS_IN_GROUP, PlanOnDevice, WORD};
use crate::driver::{Address, Kernel};
use crate::lane::Lane;
use crate::pinned::Words;
use crate::shared::Stage;

/// Events whose rows a warp counts and lists; the same as in `kernels.cu`.
const COLUMN: usize = 32;
/// Rows that are looked at first when only the best are wanted: with many matches they are among these.
const FIRST_LOOK: usize = 32 * 1024;
/// No more than so many are looked for that way.
const MOST_FIRST: u32 = 64;
/// Rows that are listed before they are copied back.
const LISTED_AT_ONCE: usize = 1 << 25;
/// Room for them grows by so many bytes: blocks differ a little, and whoever allocates waits for everything on the device.
const ROOM_STEP: usize = 1 << 24;
/// Matches of a block that are listed without order.
const FEW_MATCHES: usize = 32 * DEVICE_WIDTH;
/// Words of such a match: event, place of the row in the order that was asked for, and row.
const MATCH_WORDS: usize = 3;

impl PlanOnDevice {
    /// The first arguments of all kernels that look at rows.
    pub(super) fn row_arguments(
        &self,
        lane: &Lane,
        block: Block<'_>,
        order: RowOrder,
        rows: usize,
    ) -> [u64; 6] {
        [
            self.mask_of_row.address,
            self.order(order),
            block.kept.map_or(0, |kept| kept.address),
            lane.masks.address,
            lane.summaries.address,
            rows as u64,
        ]
    }

    /// Finds out where the rows of each chunk go, and how many each event has.
    pub(super) fn count_rows(
        &self,
        lane: &mut Lane,
        block: Block<'_>,
        order: RowOrder,
        rows: usize,
    ) -> DeviceResult<Vec<u32>> {
        let driver = &self.shared.driver;
        let started = Instant::now();
        let chunks = rows.div_ceil(CHUNK);
        let groups = chunks.div_ceil(CHUNKS_IN_GROUP);
        lane.places.reserve(chunks * DEVICE_WIDTH * WORD)?;
        lane.groups.reserve(groups * DEVICE_WIDTH * WORD)?;
        if rows == 0 {
            return Ok(vec![0; block.sent.events]);
        }
        let [a, b, c, d, e, f] = self.row_arguments(lane, block, order, rows);
        let columns = block.sent.events.div_ceil(COLUMN);
        let warps = (chunks * columns) as u64;
        let arguments = [a, b, c, d, e, f, columns as u64, lane.places.address, warps];
        driver.launch(lane.stream, Kernel::CountChunks, COLUMN as u64 * warps, &arguments)?;
        let [chunks, columns] = [chunks as u64, columns as u64];
        let arguments = [lane.places.address, chunks, CHUNKS_IN_GROUP as u64, lane.groups.address, columns];
        driver.launch(lane.stream, Kernel::Scan, (groups * DEVICE_WIDTH) as u64, &arguments)?;
        let arguments = [lane.groups.address, groups as u64, groups as u64, lane.counts.address, columns];
        driver.launch(lane.stream, Kernel::Scan, DEVICE_WIDTH as u64, &arguments)?;
        self.shared.end(Stage::Rows, lane.stream, started)?;
        self.download_counts(lane, block.sent.events)
    }

    fn order(&self, order: RowOrder) -> u64 {
        match (order, &self.by_priority) {
            (RowOrder::Priority, Some(rows)) => rows.address,
            _ => 0,
        }
    }

    fn download(&self, lane: &mut Lane, from: Address, into: &mut [u32]) -> DeviceResult<()> {
        let started = Instant::now();
        self.shared.driver.download(lane.stream, from, bytemuck::cast_slice_mut(into))?;
        lane.is_under_way = false;
        self.shared.end(Stage::Download, lane.stream, started).map(|_| ())
    }

    pub(super) fn download_words(&self, lane: &mut Lane, from: Address, count: usize) -> DeviceResult<Words> {
        let mut words = Words::new(&self.shared, count)?;
        self.download(lane, from, words.as_mut())?;
        Ok(words)
    }

    pub(super) fn download_counts(&self, lane: &mut Lane, events: usize) -> DeviceResult<Vec<u32>> {
        let counts = lane.counts.address;
        self.download_words(lane, counts, events).map(|words| words.as_ref().to_vec())
    }

    /// The first of some rows, in order, that hold for each event.
    fn take_first(
        &self,
        lane: &mut Lane,
        block: Block<'_>,
        query: RowQuery,
        rows: usize,
    ) -> DeviceResult<ListedRows> {
        let RowQuery { order, events, most } = query;
        let started = Instant::now();
        let count = events * (1 + most as usize);
        lane.found.reserve(count * WORD)?;
        let [a, b, c, d, e, f] = self.row_arguments(lane, block, order, rows);
        let (counts, listed) = (lane.found.address, lane.found.address + (events * WORD) as u64);
        let arguments = [a, b, c, d, e, f, events as u64, most.into(), counts, listed];
        self.shared.driver.launch(lane.stream, Kernel::TakeFirst, events as u64, &arguments)?;
        self.shared.end(Stage::Rows, lane.stream, started)?;
        let words = self.download_words(lane, counts, count)?;
        let (counts, listed) = words.as_ref().split_at(events);
        let mut found = Vec::with_capacity(listed.len());
        let ends = counts.iter().zip(listed.chunks(most as usize)).map(|(count, rows)| {
            found.extend_from_slice(&rows[..*count as usize]);
            found.len()
        });
        Ok(ListedRows { ends: ends.collect(), rows: Box::new(found) })
    }

    /// The first of some rows, given by the arguments of kernels, that hold for each event, if there are few. `None` if there are more.
    pub(super) fn list_few(
        &self,
        lane: &mut Lane,
        rows: [u64; 6],
        events: usize,
        most: usize,
    ) -> DeviceResult<Option<ListedRows>> {
        let driver = &self.shared.driver;
        let started = Instant::now();
        lane.found.reserve((1 + MATCH_WORDS * FEW_MATCHES) * WORD)?;
        let counted = lane.found.address;
        let listed = counted + WORD as u64;
        driver.fill_with_zeros(lane.stream, counted, WORD)?;
        let [a, b, c, d, e, f] = rows;
        let arguments = [a, b, c, d, e, f, events as u64, counted, FEW_MATCHES as u64, listed];
        driver.launch(lane.stream, Kernel::ListFew, f, &arguments)?;
        self.shared.end(Stage::Rows, lane.stream, started)?;
        let count = self.download_words(lane, counted, 1)?.as_ref()[0] as usize;
        if count > FEW_MATCHES {
            return Ok(None);
        }
        if count == 0 {
            return Ok(Some(sorted(&[], events, 0)));
        }
        let words = self.download_words(lane, listed, MATCH_WORDS * count)?;
        Ok(Some(sorted(words.as_ref().as_chunks().0, events, most)))
    }

    pub(super) fn list(
        &self,
        lane: &mut Lane,
        block: Block<'_>,
        query: RowQuery,
    ) -> DeviceResult<ListedRows> {
        let RowQuery { order, events, most } = query;
        let driver = &self.shared.driver;
        self.evaluate(lane, block.sent, false)?;
        let looked_at = self.rows.min(FIRST_LOOK);
        let looks_at_all = looked_at == self.rows;
        if (1..=MOST_FIRST).contains(&most) && (looks_at_all || self.first_look.is_over()) {
            match self.take_first(lane, block, query, looked_at) {
                // The lists below are as short as they have to be.
                Err(error) if error.is_memory => {}
                found => {
                    let found = found?;
                    let is_enough = looks_at_all || found.len() == events * most as usize;
                    self.first_look.note(events, is_enough);
                    if is_enough {
                        return Ok(found);
                    }
                }
            }
        }
        if self.few.is_over() {
            let all = self.row_arguments(lane, block, order, self.rows);
            match self.list_few(lane, all, events, most as usize) {
                Err(error) if error.is_memory => {}
                found => {
                    let found = found?;
                    self.few.note(events, found.is_some());
                    if let Some(found) = found {
                        return Ok(found);
                    }
                }
            }
        }
        let totals = self.count_rows(lane, block, order, self.rows)?;
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
        let mut rows = Words::new(&self.shared, ends.last().copied().unwrap_or(0))?;
        let (mut first, mut at_once) = (0, LISTED_AT_ONCE);
        while first < events {
            // As many events as there is room for, and one at least.
            let fit = ends[first..].partition_point(|end| end - starts(first) <= at_once).max(1);
            let last = first + fit;
            let count = ends[last - 1] - starts(first);
            if count > 0 {
                let bytes = count * WORD;
                let has_room = bytes <= lane.found.bytes();
                let room =
                    if has_room || bytes < ROOM_STEP { bytes } else { bytes.next_multiple_of(ROOM_STEP) };
                match lane.found.reserve(room).or_else(|_| lane.found.reserve(bytes)) {
                    Err(error) if error.is_memory && fit > 1 => {
                        at_once = count / 2;
                        continue;
                    }
                    reserved => reserved?,
                };
                let columns = last.div_ceil(COLUMN) - first / COLUMN;
                let warps = (self.rows.div_ceil(CHUNK) * columns) as u64;
                let [a, b, c, d, e, f] = self.row_arguments(lane, block, order, self.rows);
                let arguments = [
                    a,
                    b,
                    c,
                    d,
                    e,
                    f,
                    lane.places.address,
                    lane.groups.address,
                    lane.offsets.address,
                    lane.found.address,
                    CHUNKS_IN_GROUP as u64,
                    first as u64,
                    last as u64,
                    most.into(),
                    columns as u64,
                    warps,
                ];
                let started = Instant::now();
                driver.launch(lane.stream, Kernel::ListChunks, COLUMN as u64 * warps, &arguments)?;
                self.shared.end(Stage::Rows, lane.stream, started)?;
                let into = &mut rows.as_mut()[starts(first)..ends[last - 1]];
                let listed = lane.found.address;
                self.download(lane, listed, into)?;
            }
            first = last;
        }
        Ok(ListedRows { ends, rows: Box::new(rows) })
    }
}

/// The first `most` rows of each event by place.
fn sorted(matches: &[[u32; MATCH_WORDS]], events: usize, most: usize) -> ListedRows {
    let mut ends = vec![0; events + 1];
    matches.iter().for_each(|[event, ..]| ends[*event as usize + 1] += 1);
    for event in 0..events {
        ends[event + 1] += ends[event];
    }
    // Where the next match of each event goes; in the end, where they end.
    let mut by_event = vec![[0; 2]; matches.len()];
    for [event, place, row] in matches {
        let next = &mut ends[*event as usize];
        by_event[*next] = [*place, *row];
        *next += 1;
    }
    let mut rows = Vec::with_capacity(matches.len());
    let mut first = 0;
    for end in &mut ends[..events] {
        let own = &mut by_event[first..*end];
        own.sort_unstable();
        rows.extend(own.iter().take(most).map(|[_, row]| *row));
        first = std::mem::replace(end, rows.len());
    }
    ends.truncate(events);
    ListedRows { ends, rows: Box::new(rows) }
}
