//! What came since the last checkpoint, as bytes: evaluated again, it leads to the same state.

use tamis_core::event::Record;
use tamis_core::{Error, Result};

use crate::codec::{Damage, Reader, Writer};
use crate::flow::Flow;
use crate::stream::Progress;

/// Changes and events, in order.
#[derive(Default)]
pub(crate) struct Journal {
    entries: Writer,
}

const STREAM: u64 = 0;
const ADD: u64 = 1;
const REMOVE: u64 = 2;
const PUSH: u64 = 3;
const ADVANCE: u64 = 4;

impl Journal {
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

    /// What was noted since the last call.
    pub fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.entries.0)
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
            flow.push(&stream, record, Some(time)).map(drop)
        }
        ADVANCE => flow.advance(from.signed().map_err(damaged)?).map(drop),
        _ => Err(damaged(Damage)),
    }
}
