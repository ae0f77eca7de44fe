//! Saves and restores joins: the rows of their windows. What DISTINCT has seen follows from them.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use tamis_core::event::Record;

use super::plan::JoinPlan;
use super::window_rows::{Row, WindowRows};
use crate::codec::{Damage, Reader, Writer};
use crate::flow::Kind;
use crate::window::Frame;

impl JoinPlan {
    pub fn write(&self, to: &mut Writer) {
        let mut windows: Vec<&WindowRows> = self.windows.iter().map(|(_, window)| window).collect();
        windows.sort_by_key(|window| (window.stream, format!("{:?}", window.frame)));
        to.unsigned(self.shed_rows);
        to.unsigned(self.unequal_keys);
        to.unsigned(windows.len() as u64);
        for window in windows {
            to.unsigned(window.stream as u64);
            let (kind, size) = match window.frame {
                Frame::Range(length) => (0, length),
                Frame::Rows(rows) => (1, rows),
                Frame::Tumbling(length) => (2, length),
            };
            to.unsigned(kind);
            to.signed(size);
            to.unsigned(window.rows.len() as u64);
            for row in &window.rows {
                to.unsigned(row.number);
                to.signed(row.time);
                to.record(&row.record);
            }
        }
    }

    /// Reads what [`write`](Self::write) wrote into a plan with the same queries. Rows enter in the order in which they
    /// came, which also counts what DISTINCT has seen.
    pub fn read(&mut self, from: &mut Reader<'_>) -> std::result::Result<(), Damage> {
        self.shed_rows = from.unsigned()?;
        let unequal_keys = from.unsigned()?;
        let mut entering: Vec<(u64, u32, Row)> = vec![];
        let mut records: FxHashMap<u64, Arc<Record>> = FxHashMap::default();
        for _ in 0..from.unsigned()? {
            let stream = from.unsigned()? as usize;
            let (kind, size) = (from.unsigned()?, from.signed()?);
            let frame = match kind {
                0 => Frame::Range(size),
                1 => Frame::Rows(size),
                _ => return Err(Damage),
            };
            let window = *self.window_of.get(&(stream, frame)).ok_or(Damage)?;
            for _ in 0..from.length()? {
                let (number, time) = (from.unsigned()?, from.signed()?);
                let record = from.record()?;
                let record = records.entry(number).or_insert_with(|| Arc::new(record)).clone();
                entering.push((number, window, Row { number, time, record }));
            }
        }
        entering.sort_by_key(|(number, window, _)| (*number, *window));
        for (_, window, row) in entering {
            let mut come = vec![];
            let time = row.time;
            self.enter(window, row, &mut come).map_err(|_| Damage)?;
            self.tell(come, Kind::Added, time);
        }
        self.unequal_keys = unequal_keys;
        Ok(())
    }
}
