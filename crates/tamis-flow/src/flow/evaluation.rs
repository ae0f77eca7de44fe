//! Takes in events, holds them until the clock reaches them, and evaluates them in the order of (time,
//! arrival).

use std::cmp::Reverse;
use std::sync::Arc;

use tamis_core::event::Record;
use tamis_core::{Error, Result};

use super::output::{join_output, sequence_output};
use super::{Flow, Kind, Output, Plan, Room, Waiting};
use crate::join::Row;
use crate::key::record_bytes;

impl Flow {
    /// Takes in an event and tells what became of it, and of events that waited for it. `arrival` is its time in a
    /// stream that has none of its own. Also an event that is refused moves the clock, so that things may be told.
    pub fn push(&mut self, stream: &str, record: Record, arrival: Option<i64>) -> (Vec<Output>, Result<()>) {
        let mut told = vec![];
        let outcome =
            self.stream_number(stream).and_then(|stream| self.accept(stream, record, arrival, &mut told));
        (told, outcome)
    }

    /// Takes in many events, one after the other. What was told before an event that is refused comes with the error.
    pub fn push_many(
        &mut self,
        stream: &str,
        records: impl IntoIterator<Item = Record>,
        arrival: Option<i64>,
    ) -> (Vec<Output>, Result<()>) {
        let mut told = vec![];
        let outcome = self.push_rows(stream, 0, records, arrival, &mut told);
        (told, outcome)
    }

    /// The same for a part of a table, which starts at a row of it. What is told comes behind what was told before.
    pub fn push_rows(
        &mut self,
        stream: &str,
        first_row: usize,
        records: impl IntoIterator<Item = Record>,
        arrival: Option<i64>,
        told: &mut Vec<Output>,
    ) -> Result<()> {
        let stream = self.stream_number(stream)?;
        (first_row..).zip(records).try_for_each(|(row, record)| {
            self.accept(stream, record, arrival, told).map_err(|error| error.within(&format!("row {row}")))
        })
    }

    fn accept(
        &mut self,
        number: usize,
        mut record: Record,
        arrival: Option<i64>,
        told: &mut Vec<Output>,
    ) -> Result<()> {
        if record.has_sets() {
            return Err(Error::Event(
                "an event of a flow holds values, not intervals or sets of values".into(),
            ));
        }
        let latest = self.latest();
        let progress = &mut self.streams[number].progress;
        if let Some(schema) = &progress.options.schema {
            schema.coerce(&mut record);
        }
        let time = match (&progress.options.time, arrival) {
            // Arrivals are in order, whatever a clock says.
            (None, Some(arrival)) => {
                progress.time_of(&record, Some(arrival.max(progress.latest.unwrap_or(i64::MIN))))?
            }
            _ => progress.time_of(&record, arrival)?,
        };
        progress.names.share(&mut record);
        let record = Arc::new(record);
        let is_late = progress.watermark(latest).is_some_and(|watermark| time < watermark);
        if !is_late {
            progress.latest = progress.latest.max(Some(time));
        }
        if let Err(error) = self.make_room(told) {
            let moved = (!is_late).then_some(time);
            self.note(|journal, flow| journal.refused(&flow.streams[number].progress.name, moved));
            return Err(error);
        }
        self.note(|journal, flow| journal.push(&flow.streams[number].progress, &record, time));
        if is_late {
            self.streams[number].progress.keep_late(record);
            return self.evaluate_waiting(told);
        }
        let arrival = self.arrivals;
        self.arrivals += 1;
        if let Some(clock) = self.clock().filter(|clock| time <= *clock)
            && self.waiting.is_empty()
        {
            // Its turn has come.
            self.expire(time, told)?;
            self.evaluate(number, time, &record, told)?;
            return self.expire(clock, told);
        }
        let bytes = record_bytes(&record);
        self.waiting_bytes += bytes;
        self.waiting.push(Reverse(Waiting { time, arrival, stream: number, record, bytes }));
        self.evaluate_waiting(told)
    }

    /// Does again what an event did that was refused: its stream has come to this time, if there is one.
    pub(crate) fn refuse(&mut self, stream: &str, time: Option<i64>) -> Result<()> {
        let number = self.stream_number(stream)?;
        let progress = &mut self.streams[number].progress;
        progress.latest = progress.latest.max(time);
        self.refused += 1;
        self.evaluate_waiting(&mut vec![])
    }

    fn latest(&self) -> Option<i64> {
        self.streams.iter().filter_map(|stream| stream.progress.latest).max()
    }

    /// Everything up to this time has come: the least watermark of the streams that some query reads.
    pub fn clock(&self) -> Option<i64> {
        let latest = self.latest();
        let read = self.streams.iter().filter(|stream| stream.readers > 0);
        let watermarks = read.map(|stream| stream.progress.watermark(latest));
        match watermarks.min() {
            Some(least) => least,
            // No query reads a stream, so there is nothing to wait for.
            None => self.streams.iter().map(|stream| stream.progress.watermark(latest)).max().flatten(),
        }
    }

    pub(super) fn evaluate_waiting(&mut self, told: &mut Vec<Output>) -> Result<()> {
        let Some(clock) = self.clock() else { return Ok(()) };
        while self.waiting.peek().is_some_and(|Reverse(first)| first.time <= clock) {
            let Some(Reverse(Waiting { time, stream, record, bytes, .. })) = self.waiting.pop() else {
                break;
            };
            self.waiting_bytes -= bytes;
            self.expire(time, told)?;
            self.evaluate(stream, time, &record, told)?;
        }
        self.expire(clock, told)
    }

    /// Lets sequences end, and rows of joins leave, whose time is over before this moment.
    pub(super) fn expire(&mut self, now: i64, told: &mut Vec<Output>) -> Result<()> {
        let Self { streams, queries, joins, .. } = self;
        let mut ended = vec![];
        for stream in streams {
            for found in stream.sequences.expire(now) {
                let users = &stream.sequence_users[&found.sequence];
                ended.extend(
                    users
                        .iter()
                        .map(|number| ((found.order, *number), sequence_output(&queries[number], &found))),
                );
            }
        }
        if !ended.is_empty() {
            ended.sort_by_key(|(order, _)| *order);
            told.extend(ended.into_iter().map(|(_, output)| output));
        }
        told.extend(joins.expire(now)?.into_iter().map(|found| join_output(&queries[&found.query], found)));
        Ok(())
    }

    /// One event, in its turn.
    fn evaluate(
        &mut self,
        stream: usize,
        time: i64,
        record: &Arc<Record>,
        told: &mut Vec<Output>,
    ) -> Result<()> {
        let Self { streams, queries, joins, .. } = self;
        let number = stream;
        let stream = &mut streams[number];
        stream.progress.evaluated += 1;
        self.evaluations += 1;
        if stream.readers == 0 {
            return Ok(());
        }
        let Room { mut selected, mut values, mut fired } = std::mem::take(&mut self.room);
        stream.selections.matches(record, time, &mut selected)?;
        stream.windows.feed(stream.progress.evaluated, time, record, &selected, &mut values);
        fired.clear();
        if stream.guards.may_let_pass(&values) {
            stream.rules.matches(record, time, &values, &mut fired)?;
        }
        let mut outputs: Vec<(u32, Output)> = vec![];
        for &number in &fired {
            let query = &queries[&number];
            let Plan::Rule(rule) = &query.plan else { continue };
            let output = Output {
                query: query.name.clone(),
                kind: Kind::Added,
                time,
                row: stream.row(rule, &values),
                events: vec![record.clone()],
            };
            outputs.push((number, output));
        }
        if stream.sequences.len() > 0 {
            for found in stream.sequences.feed(stream.progress.evaluated, time, record, &selected) {
                let users = &stream.sequence_users[&found.sequence];
                outputs
                    .extend(users.iter().map(|number| (*number, sequence_output(&queries[number], &found))));
            }
            outputs.sort_by_key(|(number, _)| *number);
        }
        told.extend(outputs.into_iter().map(|(_, output)| output));
        self.room = Room { selected, values, fired };
        let row = Row { number: self.evaluations, time, record: record.clone() };
        let joined = joins.feed(number, &row)?;
        told.extend(joined.into_iter().map(|found| join_output(&queries[&found.query], found)));
        Ok(())
    }

    /// Says that no event before this time will come on any stream.
    pub fn advance(&mut self, to: i64) -> Result<Vec<Output>> {
        for stream in &mut self.streams {
            stream.progress.floor = stream.progress.floor.max(Some(to));
        }
        let mut told = vec![];
        self.note(|journal, _| journal.advance(to));
        self.evaluate_waiting(&mut told)?;
        Ok(told)
    }

    /// The late events of a stream since the last call. A stream keeps ten thousand of them.
    pub fn late(&mut self, stream: &str) -> Result<Vec<Arc<Record>>> {
        let number = self.stream_number(stream)?;
        self.note(|journal, _| journal.late(stream));
        Ok(self.streams[number].progress.take_late())
    }
}
