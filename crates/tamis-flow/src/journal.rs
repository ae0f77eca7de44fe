//! The input since the last checkpoint, as bytes. Evaluating it again leads to the same state.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use tamis_core::event::Record;
use tamis_core::{Error, Result};

use crate::codec::{Damage, Reader, Writer};
use crate::flow::Flow;
use crate::stream::Progress;

/// Changes and events, in order, since a checkpoint.
pub(crate) struct Journal {
    entries: Writer,
    pub written: Written,
}

/// The files that a checkpoint left, as they looked then.
#[derive(PartialEq, Eq)]
pub(crate) struct Written {
    pub path: PathBuf,
    pub whole: Seen,
    pub log: Seen,
}

/// Which file it is, how long, and when it was last written.
#[derive(PartialEq, Eq)]
pub(crate) struct Seen {
    pub bytes: u64,
    modified: Option<SystemTime>,
    /// Files that replace one another may have been written in the same tick of the clock.
    #[cfg(unix)]
    number: u64,
}

impl Seen {
    /// `None` if there is no such file.
    pub fn of(path: &Path) -> Option<Self> {
        let found = std::fs::metadata(path).ok()?;
        Some(Self {
            bytes: found.len(),
            modified: found.modified().ok(),
            #[cfg(unix)]
            number: std::os::unix::fs::MetadataExt::ino(&found),
        })
    }
}

const STREAM: u64 = 0;
const ADD: u64 = 1;
const REMOVE: u64 = 2;
const PUSH: u64 = 3;
const ADVANCE: u64 = 4;
const LATE: u64 = 5;
const REFUSED: u64 = 6;

impl Journal {
    /// Nothing came yet since these files were written.
    pub fn after(written: Written) -> Self {
        Self { entries: Writer::default(), written }
    }

    pub fn stream(&mut self, progress: &Progress) {
        self.entries.unsigned(STREAM);
        progress.write_options(&mut self.entries);
    }

    pub fn add(&mut self, name: &str, text: &str, on: &str, backfill: bool) {
        self.entries.unsigned(ADD);
        self.entries.text(name);
        self.entries.text(text);
        self.entries.text(on);
        self.entries.flag(backfill);
    }

    pub fn remove(&mut self, name: &str) {
        self.entries.unsigned(REMOVE);
        self.entries.text(name);
    }

    pub fn push(&mut self, progress: &Progress, record: &Record, time: i64) {
        self.entries.unsigned(PUSH);
        self.entries.text(&progress.name);
        self.entries.signed(time);
        self.entries.record(record);
    }

    pub fn advance(&mut self, to: i64) {
        self.entries.unsigned(ADVANCE);
        self.entries.signed(to);
    }

    /// Late events were handed out.
    pub fn late(&mut self, stream: &str) {
        self.entries.unsigned(LATE);
        self.entries.text(stream);
    }

    /// An event was refused, and moved the clock if it has a time here.
    pub fn refused(&mut self, stream: &str, time: Option<i64>) {
        self.entries.unsigned(REFUSED);
        self.entries.text(stream);
        self.entries.optional(time);
    }

    /// The recorded input.
    pub fn entries(&self) -> &[u8] {
        &self.entries.0
    }

    /// Does again what was noted.
    pub fn replay(bytes: &[u8], flow: &mut Flow) -> Result<()> {
        let mut from = Reader(bytes);
        while !from.0.is_empty() {
            replay_one(&mut from, flow)?;
        }
        Ok(())
    }
}

fn replay_one(from: &mut Reader<'_>, flow: &mut Flow) -> Result<()> {
    let damaged = |_: Damage| Error::Snapshot("the log of a flow's checkpoint is damaged".into());
    match from.unsigned().map_err(damaged)? {
        STREAM => {
            let (name, options) = Progress::read_options(from).map_err(damaged)?;
            flow.stream(&name, options)
        }
        ADD => {
            let mut text = || from.text().map_err(damaged);
            let (name, query, on) = (text()?, text()?, text()?);
            let backfill = from.flag().map_err(damaged)?;
            flow.add(&name, &query, Some(&on), backfill)
        }
        REMOVE => flow.remove(&from.text().map_err(damaged)?),
        PUSH => {
            let stream = from.text().map_err(damaged)?;
            let time = from.signed().map_err(damaged)?;
            let record = from.record().map_err(damaged)?;
            flow.push(&stream, record, Some(time)).1
        }
        ADVANCE => flow.advance(from.signed().map_err(damaged)?).map(drop),
        LATE => flow.late(&from.text().map_err(damaged)?).map(drop),
        REFUSED => {
            let stream = from.text().map_err(damaged)?;
            flow.refuse(&stream, from.optional().map_err(damaged)?)
        }
        _ => Err(damaged(Damage)),
    }
}
