//! The interface to a device that evaluates whole blocks of events.
//!
//! A device holds a [`Plan`] for each segment: masks, one bit per event of a block, and code that computes
//! the masks of units from those of predicates. The host collects values and looks up those that a device
//! cannot ([`Tokens`]). The device turns these tokens into masks, evaluates all units, and counts or lists
//! rows. Nothing here depends on the kind of device.

use std::any::Any;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Instant;

use serde_json::{Value as Json, json};

use super::answer_memory::AnswerMemory;
use super::permits::Permits;
use crate::fork::Mutex;

/// The most events in a block.
pub const DEVICE_WIDTH: usize = 8192;

/// Blocks of this size always use the device, and pay for preparing what it needs. The cost of a smaller block says little about others.
pub const LEAST_EVENTS: usize = 256;

/// No mask: the truth of the unit is needed for its rows alone.
pub const NO_MASK: u32 = u32::MAX;

/// A predicate without a mask of its own: it holds for some points, and whoever reads it reads the masks of these.
pub const IN_POINTS: u32 = u32::MAX - 1;

/// The deepest nesting of alternatives that a device evaluates.
pub const SAVED: u32 = 24;

/// Thresholds have fewer leaves than this: a device counts them in this many bits.
pub const MOST_IN_THRESHOLD: usize = 1 << 18;

/// In place of where a program begins: the row scores its bound.
pub const NO_PROGRAM: u32 = u32::MAX;

/// The deepest nesting of a program.
pub const PROGRAM_DEPTH: usize = 16;

/// The most rows of an event that are asked for by relevance.
pub const MOST_BY_RELEVANCE: usize = 256;

/// A failure of a device, or an unsupported operation.
#[derive(Clone, Debug)]
pub struct DeviceError {
    pub text: String,
    /// Whether less at once would have been possible.
    pub is_memory: bool,
}

impl DeviceError {
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), is_memory: false }
    }

    pub fn of_memory(text: impl Into<String>) -> Self {
        Self { text: text.into(), is_memory: true }
    }
}

pub type DeviceResult<T> = std::result::Result<T, DeviceError>;

/// One unit of a plan, as a device reads it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct PlannedUnit {
    /// Where its code begins.
    pub code: u32,
    /// The number of leaves, guards included; the number of guards in the two bits above the lowest 26, and the [`UnitKind`]
    /// in the top four.
    pub leaves: u32,
    /// Where its truth goes.
    pub mask: u32,
    /// How many rows hold when it does.
    pub rows: u32,
}

/// How the code of a unit is read. The leaves come first: guards, all of which hold, and then the others. A leaf is the number of
/// a mask, shifted by one; the lowest bit says that the mask must be clear.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum UnitKind {
    /// All leaves hold.
    All = 0,
    /// Some leaf holds.
    Any = 1,
    /// Choices, the last one first. A word for each leaf follows: what to take if it holds, if it does not, and where to save what
    /// came out (8 bits each).
    Choices = 2,
    /// Pairs of leaves, true and false. 0 or 1 follows: the number of the true ones is even or odd.
    Parity = 3,
    /// The least number of leaves that hold follows.
    Threshold = 4,
    /// All leaves of some group hold. A bit for each leaf follows, set for the last one of a group.
    AnyOfAll = 5,
    /// Some leaf of each group holds.
    AllOfAny = 6,
    /// The same without guards, for conjunctions of predicates that hold for a few values.
    AllOfSets = 7,
}

/// In a choice: what the choice before came to, always, never; smaller numbers are what was saved there.
pub const TAKE_LAST: u32 = 255;
pub const TAKE_ALWAYS: u32 = 254;
pub const TAKE_NEVER: u32 = 253;
/// In a choice: nothing is saved.
pub const SAVE_NOTHING: u32 = 255;

/// Which kinds of units a run has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(usize)]
pub enum RunKind {
    /// All leaves or any leaf.
    Flat,
    /// Groups of leaves.
    Groups,
    Sets,
    Other,
}

impl UnitKind {
    pub fn run_kind(self) -> RunKind {
        match self {
            UnitKind::All | UnitKind::Any => RunKind::Flat,
            UnitKind::AnyOfAll | UnitKind::AllOfAny => RunKind::Groups,
            UnitKind::AllOfSets => RunKind::Sets,
            UnitKind::Choices | UnitKind::Parity | UnitKind::Threshold => RunKind::Other,
        }
    }
}

impl RunKind {
    /// How many there are.
    pub const COUNT: usize = 4;
}

/// Units that can be evaluated at once: those of a level read only what earlier levels write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Level {
    /// The first of its units.
    pub first: u32,
    /// Where the units of each [`RunKind`] end; they begin where those of the kind before end.
    pub ends: [u32; RunKind::COUNT],
}

impl Level {
    pub fn end(&self) -> u32 {
        self.ends[RunKind::COUNT - 1]
    }
}

/// The code of a unit begins at a multiple of so many words, and there is as much of the last one's.
pub const CODE_ALIGNMENT: usize = 4;

/// Everything a device needs of a segment, or of some consecutive rows of it.
#[derive(Debug, Default)]
pub struct Plan {
    /// Masks of predicates and points; mask 0 is always set.
    pub bits: u32,
    /// By predicate, its mask; [`NO_MASK`] if nobody reads it, or [`IN_POINTS`].
    pub mask_of_bit: Vec<u32>,
    /// By mask of a predicate, whether some unit reads it.
    pub is_read: Vec<bool>,
    /// Those, and the masks of units that other units read.
    pub shared_masks: u32,
    /// Those, and the masks of units that only rows wait for.
    pub masks: u32,
    /// By level.
    pub units: Vec<PlannedUnit>,
    pub levels: Vec<Level>,
    pub code: Vec<u32>,
    /// By row, the mask of its unit.
    pub mask_of_row: Vec<u32>,
    /// Rows by falling priority, those of equal priority by id.
    pub by_priority: Vec<u32>,
    pub relevance: Relevance,
    /// Where the masks of each point begin, and what they are: its own, and those of predicates that hold for it.
    pub point_offsets: Vec<u32>,
    pub point_masks: Vec<u32>,
    /// Of each table of cuts: the mask of "below" the first cut, that of "above" it, and how many cuts there are.
    pub cut_tables: Vec<[u32; 3]>,
    /// In which the device looks values up.
    pub value_tables: Vec<ValueTable>,
    /// By point, its key; and the same of all cuts.
    pub point_keys: Keys,
    pub cut_keys: Keys,
}

/// The scores of rows for events without weights.
#[derive(Debug, Default)]
pub struct Relevance {
    /// Rows by falling bound, those of equal bounds by id; behind them the rows that have to be scored by their records. None if that is
    /// all of them.
    pub order: Vec<u32>,
    /// By place in this order: the most that the row scores, as the bits of a number that is not negative.
    pub bounds: Vec<u64>,
    /// Where its program begins, or [`NO_PROGRAM`].
    pub starts: Vec<u32>,
    /// One record more than there are.
    pub code: Vec<[u32; 4]>,
}

/// The operands that values of one attribute and kind are compared with, in the form a device reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct ValueTable {
    /// The first of its points among all keys of points, which are sorted, and their number.
    pub first_point: u32,
    pub points: u32,
    /// The same of its cuts.
    pub first_cut: u32,
    pub cuts: u32,
    /// The number of their table.
    pub cut_table: u32,
    /// Masks that each value sets, or [`NO_MASK`].
    pub masks: [u32; 2],
    /// What follows the head of each value that is looked up; the lowest bit is clear.
    pub rest: u32,
}

/// Keys of 96 bits: 64, and the rest.
#[derive(Debug, Default)]
pub struct Keys {
    pub heads: Vec<u64>,
    pub rests: Vec<u32>,
}

/// Tables and events share a word: there are fewer tables than this.
pub const MOST_TABLES: usize = (1 << 32) / DEVICE_WIDTH;

/// The predicates that the events of a block satisfy, as numbers of the plan.
#[derive(Debug, Default)]
pub struct Tokens {
    /// The number of events.
    pub events: usize,
    /// Event and predicate.
    pub bits: Vec<[u32; 2]>,
    /// Event and point.
    pub points: Vec<[u32; 2]>,
    /// Table of cuts times [`DEVICE_WIDTH`] plus event, and how many cuts lie below the value.
    pub ranks: Vec<[u32; 2]>,
    /// Of values that the device looks up, [`ValueTable`] times [`DEVICE_WIDTH`] plus event, and the head of the key.
    pub places: Vec<u32>,
    pub heads: Vec<u64>,
}

impl Tokens {
    pub fn clear(&mut self, events: usize) {
        self.events = events;
        self.clear_found();
        self.places.clear();
        self.heads.clear();
    }

    /// Numbers events from this one on.
    pub fn move_events(&mut self, first: u32) {
        for [place, _] in self.bits.iter_mut().chain(&mut self.points).chain(&mut self.ranks) {
            *place += first;
        }
        self.places.iter_mut().for_each(|place| *place += first);
    }

    /// Adds those of other events, the first of which is this one.
    pub fn append(&mut self, mut other: Self, first: u32) {
        other.move_events(first);
        self.events += other.events;
        self.bits.append(&mut other.bits);
        self.points.append(&mut other.points);
        self.ranks.append(&mut other.ranks);
        self.places.append(&mut other.places);
        self.heads.append(&mut other.heads);
    }

    /// Forgets what was looked up here.
    pub fn clear_found(&mut self) {
        self.bits.clear();
        self.points.clear();
        self.ranks.clear();
    }
}

/// The rows that a filter keeps: one bit per row. Equal numbers mean equal rows.
#[derive(Debug)]
pub struct KeptRows {
    pub number: u64,
    pub words: Vec<u32>,
}

impl KeptRows {
    pub fn new(words: Vec<u32>) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        Self { number: NEXT.fetch_add(1, Ordering::Relaxed), words }
    }
}

/// In which order rows are listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowOrder {
    Id,
    Priority,
}

/// Which rows are listed: those that hold for each of the first `events` events, at most this many of them.
#[derive(Clone, Copy, Debug)]
pub struct RowQuery {
    pub order: RowOrder,
    pub events: usize,
    pub most: u32,
}

/// The best by relevance: this many of them for each event, which score so much at least.
#[derive(Clone, Copy, Debug)]
pub struct RelevanceQuery {
    pub k: usize,
    pub min_score: f64,
}

/// A row that holds, and what it scores.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ScoredRow {
    pub row: u32,
    pub score: f64,
}

/// The result of a query by relevance.
pub struct BestByRelevance {
    /// The best of each event, in order.
    pub best: Vec<Vec<ScoredRow>>,
    /// The rows that hold and have to be scored by their records; `None` if no row has to.
    pub by_record: Option<ListedRows>,
}

/// The rows of each event, those of the first event first.
pub struct ListedRows {
    /// Where the rows of each event end.
    pub ends: Vec<usize>,
    /// They may lie in memory that the device copies to.
    pub rows: Box<dyn AsRef<[u32]> + Send + Sync>,
}

impl ListedRows {
    pub fn of(&self, event: usize) -> &[u32] {
        let from = if event == 0 { 0 } else { self.ends[event - 1] };
        &(*self.rows).as_ref()[from..self.ends[event]]
    }

    pub fn len(&self) -> usize {
        self.ends.last().copied().unwrap_or(0)
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// A plan that is on a device. Called from several threads.
pub trait LoadedPlan: Send + Sync {
    /// How many rows hold for each event; `kept` of them, if not all are.
    fn counts(&self, tokens: &Tokens, kept: Option<&Arc<KeptRows>>) -> DeviceResult<Vec<u32>>;

    /// The rows that are wanted; `kept` of them, if not all are.
    fn rows(
        &self,
        tokens: &Tokens,
        kept: Option<&Arc<KeptRows>>,
        query: RowQuery,
    ) -> DeviceResult<ListedRows>;

    /// The best rows by relevance, for events without weights; `kept` of them, if not all are. `None` if this processor should answer:
    /// too many rows have to be scored by their records, scores rise where bounds fall, or memory is short.
    fn best_by_relevance(
        &self,
        tokens: &Tokens,
        kept: Option<&Arc<KeptRows>>,
        query: RelevanceQuery,
    ) -> DeviceResult<Option<BestByRelevance>>;

    /// Adds to each row the number of events for which it holds.
    fn row_counts(
        &self,
        tokens: &Tokens,
        kept: Option<&Arc<KeptRows>>,
        counts: &mut [u64],
    ) -> DeviceResult<()>;

    /// Whether there is room for two blocks of events at once, beside all plans.
    fn has_room(&self) -> bool;
}

/// A device.
pub trait Device: Send + Sync {
    /// Copies a plan there. Fails for want of memory unless there is room for a block of events too.
    fn load(&self, plan: &Plan) -> DeviceResult<Arc<dyn LoadedPlan>>;

    /// Bytes of its memory that are taken, working memory included.
    fn bytes(&self) -> u64;

    /// Bytes of this machine's memory that are pinned for copies, whether they are in use or kept for later.
    fn pinned_bytes(&self) -> u64;

    /// Its name, and whatever else is known of it, as an object of JSON.
    fn describe(&self) -> Json;
}

/// A segment of any engine. It is not kept alive, but its address is not used again.
pub type HeldSegment = Weak<dyn Any + Send + Sync>;

/// Rows of a segment that a device was given. It numbers them from 0 on.
#[derive(Clone)]
pub enum RowNumbers {
    /// Consecutive ones: the first, and how many there are.
    Run(u32, u32),
    Listed(Arc<[u32]>),
}

impl RowNumbers {
    pub fn len(&self) -> usize {
        match self {
            Self::Run(_, count) => *count as usize,
            Self::Listed(rows) => rows.len(),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The row of the segment that a device knows by this number.
    pub fn row(&self, number: u32) -> u32 {
        match self {
            Self::Run(first, _) => first + number,
            Self::Listed(rows) => rows[number as usize],
        }
    }

    pub fn iter(&self) -> impl Iterator<Item = u32> + Clone + '_ {
        (0..self.len() as u32).map(|number| self.row(number))
    }

    /// What tells them from the other rows of the segment that a device was given.
    pub(super) fn key(&self) -> (bool, u32) {
        match self {
            Self::Run(first, _) => (false, *first),
            Self::Listed(rows) => (true, rows.first().copied().unwrap_or(0)),
        }
    }
}

/// Rows of a segment that are on a device.
#[derive(Clone)]
pub struct LoadedRows {
    pub rows: RowNumbers,
    pub plan: Arc<dyn LoadedPlan>,
    /// Those of them that have the highest priorities, in the order of these; there when they are first asked for, if they are few
    /// of many and there is room.
    pub(super) best: Arc<OnceLock<Option<BestRows>>>,
}

impl LoadedRows {
    pub(super) fn new(rows: RowNumbers, plan: Arc<dyn LoadedPlan>) -> Self {
        Self { rows, plan, best: Arc::default() }
    }
}

/// The rows with the highest priorities, as a plan of their own: most top-k queries are answered by these.
pub(super) struct BestRows {
    pub loaded: LoadedRows,
    pub pause: Pause,
}

/// Leaves out what failed for some blocks, for twice as many each time.
#[derive(Debug, Default)]
pub struct Pause {
    left: AtomicU64,
    /// How long the last one was; 0 after a success.
    last: AtomicU64,
}

impl Pause {
    const LONGEST: u64 = 64;

    /// Whether to try again; a block passes.
    pub fn is_over(&self) -> bool {
        let order = Ordering::Relaxed;
        self.left.fetch_update(order, order, |blocks| blocks.checked_sub(1)).is_err()
    }

    /// Records whether a block of this many events succeeded. A small block proves little: a single event decides it.
    pub fn note(&self, events: usize, is_success: bool) {
        if events < LEAST_EVENTS {
            return;
        }
        let last = self.last.load(Ordering::Relaxed);
        let blocks = if is_success { 0 } else { (2 * last + 1).min(Self::LONGEST) };
        self.last.store(blocks, Ordering::Relaxed);
        self.left.store(blocks, Ordering::Relaxed);
    }
}

/// The rows that a filter keeps, and until when that is valid.
pub(super) struct KeptFor {
    /// The address of the segment, and the rows of it.
    pub rows_of: (usize, (bool, u32)),
    /// The removals that were seen, and the tags.
    pub wanted: (u64, String),
    /// At these moments, and at those between them, the same rows are active.
    pub moments: std::ops::RangeInclusive<i64>,
    pub rows: Arc<KeptRows>,
}

impl KeptFor {
    pub fn is_for(&self, rows_of: (usize, (bool, u32)), wanted: &(u64, String), now: i64) -> bool {
        self.rows_of == rows_of && self.wanted == *wanted && self.moments.contains(&now)
    }
}

/// What this processor does for a device.
#[derive(Clone, Copy)]
pub(super) enum HostStage {
    /// From columns to tokens.
    Gather,
    /// From rows to columns of ids.
    Write,
}

const HOST_STAGES: [&str; 2] = ["gather", "write"];

/// A device, and what an index keeps there.
pub struct DeviceMemory {
    device: Arc<dyn Device>,
    /// Each with the segment it was made of, which is known by its address.
    pub(super) plans: Mutex<Vec<(HeldSegment, Arc<[LoadedRows]>)>>,
    /// What was asked for last comes first.
    pub(super) kept: Mutex<Vec<KeptFor>>,
    failure: Mutex<Option<String>>,
    is_reported: AtomicBool,
    blocks: AtomicU64,
    /// Matches of a thousand events that were listed last.
    matches_per_thousand: AtomicU64,
    /// Events of small blocks that did without something because it was not prepared.
    did_without: AtomicUsize,
    /// Nanoseconds by [`HostStage`], of all threads together.
    host_stages: [AtomicU64; HOST_STAGES.len()],
    /// Of answers that list matches.
    pub(super) answers: Arc<AnswerMemory>,
    /// Who gathers a block takes as many as it has threads for it, and has no more threads than it got.
    pub(super) gathering: Permits,
    /// A device does not survive a fork.
    process: u32,
}

impl DeviceMemory {
    pub fn new(device: Arc<dyn Device>) -> Self {
        Self {
            device,
            plans: Mutex::default(),
            kept: Mutex::default(),
            failure: Mutex::default(),
            is_reported: AtomicBool::new(false),
            blocks: AtomicU64::new(0),
            matches_per_thousand: AtomicU64::new(0),
            did_without: AtomicUsize::new(0),
            host_stages: Default::default(),
            answers: Arc::default(),
            gathering: Permits::new(std::thread::available_parallelism().map_or(1, usize::from)),
            process: std::process::id(),
        }
    }

    pub fn device(&self) -> &dyn Device {
        &*self.device
    }

    /// Whether blocks may be sent to it.
    pub fn is_usable(&self) -> bool {
        self.process == std::process::id() && self.failure.lock().is_none()
    }

    /// Why this processor answers in its place, if it does.
    pub fn failure(&self) -> Option<String> {
        if self.process != std::process::id() {
            return Some(
                "the process was forked, and a device cannot be used on both sides of a fork".into(),
            );
        }
        self.failure.lock().clone()
    }

    /// The same, once.
    pub fn unreported_failure(&self) -> Option<String> {
        self.failure().filter(|_| !self.is_reported.swap(true, Ordering::Relaxed))
    }

    /// From now on this processor answers.
    pub fn fail(&self, error: DeviceError) {
        self.failure.lock().get_or_insert(error.text);
        self.plans.lock().clear();
        self.kept.lock().clear();
    }

    /// Notes that a block was answered.
    pub(super) fn note_block(&self) {
        self.blocks.fetch_add(1, Ordering::Relaxed);
    }

    /// Starts an answer, in one piece or several. Memory that recent answers did not use is freed.
    pub fn begin_answer(&self) {
        self.answers.begin_answer();
    }

    /// Whether a small block of this many events should prepare optional data: once the small blocks before it add up to a large
    /// one.
    pub(super) fn is_worth_preparing(&self, events: usize) -> bool {
        let order = Ordering::Relaxed;
        let is_worth = self.did_without.fetch_add(events, order) + events >= LEAST_EVENTS;
        if is_worth {
            self.did_without.store(0, order);
        }
        is_worth
    }

    /// Notes that a stage has ended.
    pub(super) fn end(&self, stage: HostStage, started: Instant) {
        self.host_stages[stage as usize].fetch_add(started.elapsed().as_nanos() as u64, Ordering::Relaxed);
    }

    /// Notes how many matches some events had together.
    pub(super) fn note_matches(&self, matches: usize, events: usize) {
        let rate = matches as u64 * 1000 / events.max(1) as u64;
        self.matches_per_thousand.store(rate, Ordering::Relaxed);
    }

    /// How many events have this many matches, going by those that were listed last.
    pub(super) fn events_with(&self, matches: usize) -> usize {
        match self.matches_per_thousand.load(Ordering::Relaxed) {
            0 => usize::MAX,
            rate => (matches as u64).saturating_mul(1000).div_ceil(rate) as usize,
        }
    }

    pub fn statistics(&self) -> Json {
        let mut device = self.device.describe();
        if let Some(seconds) = device.get_mut("seconds").and_then(Json::as_object_mut) {
            let here = self.host_stages.each_ref().map(|stage| stage.load(Ordering::Relaxed) as f64 / 1e9);
            seconds.extend(HOST_STAGES.map(String::from).into_iter().zip(here.map(Json::from)));
        }
        let parts: usize = self.plans.lock().iter().map(|(_, parts)| parts.len()).sum();
        json!({
            "device": device,
            "device_bytes": self.device.bytes(),
            "device_pinned_bytes": self.device.pinned_bytes(),
            "device_answer_bytes": self.answers.bytes(),
            "device_parts": parts,
            "device_blocks": self.blocks.load(Ordering::Relaxed),
            "device_failure": self.failure(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fault: a block of one event, for which nearly everything works, ends the pause of all others.
    #[test]
    fn small_blocks_change_no_pause() {
        let pause = Pause::default();
        pause.note(1, false);
        assert!(pause.is_over());
        (0..2).for_each(|_| pause.note(LEAST_EVENTS, false));
        pause.note(LEAST_EVENTS - 1, true);
        let blocks = (0..10).take_while(|_| !pause.is_over());
        assert_eq!(blocks.count(), 3);
        pause.note(LEAST_EVENTS, true);
        assert!(pause.is_over());
    }
}
