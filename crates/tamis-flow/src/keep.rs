//! Saves and restores a flow: a file of its whole state, and a log of later input, which is evaluated again.
//!
//! The file is a snapshot in the kernel's container, with checksums, and is replaced atomically. The log next
//! to it, `<path>.log`, has frames of (length, checksum, entries). A truncated frame was never acknowledged
//! and is ignored, and so is a log that belongs to another file.

use std::cmp::Reverse;
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use rustc_hash::FxHashMap;
use tamis_core::{AtomicFile, Error, Result, Snapshot, SnapshotWriter};

use crate::codec::{Damage, Reader, Writer};
use crate::flow::{Flow, Limit, OnLimit, Plan, Start, Waiting};
use crate::journal::{Journal, Seen, Written};
use crate::key::record_bytes;
use crate::sequence::SequenceId;
use crate::window::AggregateId;

const SECTION: &str = "flow";
const FORMAT: u64 = 2;
/// A log that is longer than this and than the file it follows is folded into a new file.
const LOG_BYTES_AT_LEAST: u64 = 1 << 20;

impl Flow {
    /// Writes the whole flow to a file, which it replaces at once or not at all.
    pub fn save(&mut self, path: &Path) -> Result<()> {
        let mut file = AtomicFile::create(path)?;
        file.write_all(&self.serialized(0)?)?;
        file.commit()?;
        Ok(())
    }

    /// Opens what [`save`](Self::save) or [`checkpoint`](Self::checkpoint) wrote; it goes on as if it had never stopped.
    pub fn open(path: &Path) -> Result<Self> {
        let mut bytes = vec![];
        File::open(path)?.read_to_end(&mut bytes)?;
        let (mut flow, base) = Self::from_bytes(bytes)?;
        if base != 0
            && let Ok(mut log) = File::open(log_path(path))
        {
            let mut bytes = vec![];
            log.read_to_end(&mut bytes)?;
            for frame in frames(&bytes, base) {
                Journal::replay(frame, &mut flow)?;
            }
        }
        Ok(flow)
    }

    /// Makes what happened so far durable. The first call writes the whole state; later ones append what came since,
    /// until that is longer than the state itself. Where the files are not those of the last checkpoint, or the last one
    /// failed, the whole state is written again.
    pub fn checkpoint(&mut self, path: &Path) -> Result<()> {
        match self.journal.take() {
            Some(journal) if is_as_left(&journal.written, path) => self.append(journal),
            _ => self.write_all(path),
        }
    }

    /// Appends what came since the last checkpoint. On an error there is no journal, so that the next one writes all.
    fn append(&mut self, journal: Journal) -> Result<()> {
        if journal.entries().is_empty() {
            self.journal = Some(journal);
            return Ok(());
        }
        let log = log_path(&journal.written.path);
        let mut file = OpenOptions::new().append(true).open(&log)?;
        file.write_all(&framed(journal.entries()))?;
        file.sync_data()?;
        drop(file);
        self.journal = written(&journal.written.path).map(Journal::after);
        Ok(())
    }

    fn write_all(&mut self, path: &Path) -> Result<()> {
        let log = log_path(path);
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        let base = since.map_or(1, |since| since.as_nanos() as u64) | 1;
        let mut file = AtomicFile::create(path)?;
        file.write_all(&self.serialized(base)?)?;
        file.commit()?;
        let mut file = AtomicFile::create(&log)?;
        file.write_all(&base.to_le_bytes())?;
        file.commit()?;
        self.journal = written(path).map(Journal::after);
        Ok(())
    }

    fn serialized(&mut self, base: u64) -> Result<Vec<u8>> {
        self.streams.iter_mut().for_each(|stream| stream.windows.sweep_dead());
        let mut to = Writer::default();
        to.unsigned(FORMAT);
        to.unsigned(base);
        to.optional(self.limit.map(|limit| limit.bytes as i64));
        to.flag(self.limit.is_some_and(|limit| limit.then == OnLimit::Shed));
        to.unsigned(self.streams.len() as u64);
        for stream in &self.streams {
            stream.progress.write_options(&mut to);
            stream.progress.write(&mut to);
        }
        to.unsigned(self.next_query.into());
        to.unsigned(self.arrivals);
        to.unsigned(self.refused);
        to.unsigned(self.evaluations);
        to.unsigned(self.queries.len() as u64);
        for (number, query) in &self.queries {
            let stream = &self.streams[query.stream];
            to.unsigned((*number).into());
            to.text(&query.name);
            to.text(&query.text);
            to.unsigned(query.stream as u64);
            let epochs: Vec<u64> = match &query.plan {
                Plan::Rule(rule) => rule.aggregates.iter().map(|id| stream.windows.epoch(*id)).collect(),
                Plan::Sequence(id) => vec![stream.sequences.epoch(*id)],
                Plan::Join(_) => vec![self.joins.birth(*number)],
            };
            to.unsigned(epochs.len() as u64);
            epochs.iter().for_each(|epoch| to.unsigned(*epoch));
        }
        let mut waiting: Vec<&Waiting> = self.waiting.iter().map(|Reverse(waiting)| waiting).collect();
        waiting.sort_unstable();
        to.unsigned(waiting.len() as u64);
        for event in waiting {
            to.signed(event.time);
            to.unsigned(event.arrival);
            to.unsigned(event.stream as u64);
            to.record(&event.record);
        }
        for (number, stream) in self.streams.iter().enumerate() {
            let (aggregates, sequences) = self.numbered(number);
            let by_id =
                aggregates.iter().enumerate().map(|(at, id)| (*id, at as u64)).collect::<FxHashMap<_, _>>();
            stream.windows.write(&mut to, &by_id);
            stream.sequences.write(&sequences, &mut to);
        }
        self.joins.write(&mut to);
        let mut writer = SnapshotWriter::in_memory();
        writer.section(SECTION, &to.0)?;
        writer.finish(1)
    }

    /// The aggregates and sequences of a stream in the order in which queries first name them: the same before and
    /// after.
    fn numbered(&self, stream: usize) -> (Vec<AggregateId>, Vec<SequenceId>) {
        let (mut aggregates, mut sequences) = (vec![], vec![]);
        for query in self.queries.values().filter(|query| query.stream == stream) {
            match &query.plan {
                Plan::Rule(rule) => aggregates.extend(&rule.aggregates),
                Plan::Sequence(id) => sequences.push(*id),
                Plan::Join(_) => {}
            }
        }
        (distinct(aggregates), distinct(sequences))
    }

    fn from_bytes(bytes: Vec<u8>) -> Result<(Self, u64)> {
        let damaged = |_: Damage| Error::Snapshot("this file does not hold a flow, or it is damaged".into());
        let snapshot = Snapshot::from_bytes(bytes)?;
        snapshot.check(SECTION)?;
        let body = snapshot.section::<u8>(SECTION)?;
        let mut from = Reader(&body);
        if from.unsigned().map_err(damaged)? != FORMAT {
            return Err(Error::Snapshot("this flow was saved by another version of Tamis".into()));
        }
        let base = from.unsigned().map_err(damaged)?;
        Self::read(&mut from)
            .map_err(|error| error.unwrap_or_else(|| damaged(Damage)))
            .map(|flow| (flow, base))
    }

    /// `None` is damage.
    fn read(from: &mut Reader<'_>) -> Result<Self, Option<Error>> {
        let bytes = from.optional()?;
        let then = if from.flag()? { OnLimit::Shed } else { OnLimit::Refuse };
        let mut flow = Flow::new(bytes.map(|bytes| Limit { bytes: bytes as usize, then }));
        for _ in 0..from.unsigned()? {
            let (name, options) = crate::stream::Progress::read_options(from)?;
            flow.stream(&name, options)?;
            let stream = flow.streams.last_mut().expect("it was just declared");
            stream.progress.read(from)?;
        }
        flow.next_query = u32::try_from(from.unsigned()?).map_err(|_| None)?;
        flow.arrivals = from.unsigned()?;
        flow.refused = from.unsigned()?;
        flow.evaluations = from.unsigned()?;
        for _ in 0..from.unsigned()? {
            let number = u32::try_from(from.unsigned()?).map_err(|_| None)?;
            let (name, text) = (from.text()?, from.text()?);
            let stream = from.unsigned()? as usize;
            let count = from.length()?;
            let epochs = (0..count).map(|_| from.unsigned()).collect::<Result<Vec<_>, _>>()?;
            if stream >= flow.streams.len() {
                return Err(None);
            }
            flow.insert(number, &name, &text, stream, Start::Stored(&epochs))?;
        }
        for _ in 0..from.unsigned()? {
            let (time, arrival) = (from.signed()?, from.unsigned()?);
            let stream = from.unsigned()? as usize;
            if stream >= flow.streams.len() {
                return Err(None);
            }
            let record = Arc::new(from.record()?);
            let bytes = record_bytes(&record);
            flow.waiting_bytes += bytes;
            flow.waiting.push(Reverse(Waiting { time, arrival, stream, record, bytes }));
        }
        for number in 0..flow.streams.len() {
            let (aggregates, sequences) = flow.numbered(number);
            let stream = &mut flow.streams[number];
            stream.windows.read(from, &aggregates)?;
            stream.sequences.read(&sequences, from)?;
        }
        flow.joins.read(from)?;
        if from.0.is_empty() { Ok(flow) } else { Err(None) }
    }
}

impl From<Damage> for Option<Error> {
    fn from(_: Damage) -> Self {
        None
    }
}

fn distinct(ids: Vec<u32>) -> Vec<u32> {
    let mut seen = rustc_hash::FxHashSet::default();
    ids.into_iter().filter(|id| seen.insert(*id)).collect()
}

fn log_path(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".log");
    name.into()
}

/// The two files of a checkpoint as they are now.
fn written(path: &Path) -> Option<Written> {
    Some(Written { path: path.to_owned(), whole: Seen::of(path)?, log: Seen::of(&log_path(path))? })
}

/// Whether the last checkpoint was to this path, nobody wrote there since, and its log is not too long.
fn is_as_left(last: &Written, path: &Path) -> bool {
    let is_long = last.log.bytes > LOG_BYTES_AT_LEAST && last.log.bytes > last.whole.bytes;
    !is_long && written(path).is_some_and(|now| now == *last)
}

fn framed(entries: &[u8]) -> Vec<u8> {
    let mut frame = Vec::with_capacity(entries.len() + 16);
    frame.extend((entries.len() as u64).to_le_bytes());
    frame.extend(checksum(entries).to_le_bytes());
    frame.extend(entries);
    frame
}

/// The whole frames of a log that follows this base.
fn frames(log: &[u8], base: u64) -> Vec<&[u8]> {
    let mut found = vec![];
    let Some((header, mut rest)) = log.split_first_chunk::<8>() else { return found };
    if u64::from_le_bytes(*header) != base {
        return found;
    }
    while let Some((length, after)) = rest.split_first_chunk::<8>()
        && let Some((sum, after)) = after.split_first_chunk::<8>()
        && let Some((entries, after)) = after.split_at_checked(u64::from_le_bytes(*length) as usize)
    {
        if checksum(entries) != u64::from_le_bytes(*sum) {
            break;
        }
        found.push(entries);
        rest = after;
    }
    found
}

/// FNV-1a.
fn checksum(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |sum, byte| (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}
