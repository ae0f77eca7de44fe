//! A stream: its name, its allowed lateness, and its progress.

use std::collections::VecDeque;
use std::sync::Arc;

use tamis_core::event::{Record, Schema, Value, parse_timestamp};
use tamis_core::{Error, Result};

use crate::codec::{Damage, Reader, Writer};
use crate::key::record_bytes;
use crate::names::SharedNames;

/// The unit of a number as the time of an event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TimeUnit {
    #[default]
    Seconds,
    Milliseconds,
    Microseconds,
}

impl TimeUnit {
    /// By the name users write.
    ///
    /// ```
    /// assert_eq!(tamis_flow::TimeUnit::named("ms").unwrap(), tamis_flow::TimeUnit::Milliseconds);
    /// ```
    pub fn named(name: &str) -> Result<Self> {
        match name {
            "s" => Ok(Self::Seconds),
            "ms" => Ok(Self::Milliseconds),
            "us" => Ok(Self::Microseconds),
            _ => Err(Error::Argument(format!("unit is \"s\", \"ms\" or \"us\", not {name:?}"))),
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Seconds => "s",
            Self::Milliseconds => "ms",
            Self::Microseconds => "us",
        }
    }

    fn micros(self) -> i64 {
        match self {
            Self::Seconds => 1_000_000,
            Self::Milliseconds => 1_000,
            Self::Microseconds => 1,
        }
    }
}

/// How a stream is read.
#[derive(Clone, Debug, Default)]
pub struct StreamOptions {
    /// The attribute that holds the time; none: the time of arrival.
    pub time: Option<String>,
    pub unit: TimeUnit,
    /// By how many microseconds an event may be older than the latest one.
    pub lateness: i64,
    /// How many microseconds behind the latest event of the flow a silent stream is taken to have come, at most.
    pub idle: Option<i64>,
    pub schema: Option<Schema>,
}

/// How many late events are kept until they are fetched.
const LATE_EVENTS_KEPT: usize = 10_000;

pub(crate) struct Progress {
    pub name: Arc<str>,
    pub options: StreamOptions,
    /// The greatest time that was seen.
    pub latest: Option<i64>,
    /// No earlier event will come, as declared by `advance`.
    pub floor: Option<i64>,
    /// How many events were evaluated.
    pub evaluated: u64,
    pub late_count: u64,
    /// Late events that were not fetched yet, the oldest first.
    late: VecDeque<Arc<Record>>,
    pub late_bytes: usize,
    /// How many late events were dropped before they were fetched.
    pub late_dropped: u64,
    pub names: SharedNames,
}

/// The beginning of year 1 and the end of year 9999, in microseconds.
const FIRST_TIME: i64 = -62_135_596_800_000_000;
const LAST_TIME: i64 = 253_402_300_799_999_999;

impl Progress {
    pub fn new(name: &str, options: StreamOptions) -> Result<Self> {
        if options.lateness < 0 || options.idle.is_some_and(|idle| idle < 0) {
            return Err(Error::Argument("lateness and idle must not be negative".into()));
        }
        Ok(Self {
            name: name.into(),
            options,
            latest: None,
            floor: None,
            evaluated: 0,
            late_count: 0,
            late: VecDeque::new(),
            late_bytes: 0,
            late_dropped: 0,
            names: SharedNames::default(),
        })
    }

    /// The time of an event. `given` is the time of arrival.
    pub fn time_of(&self, record: &Record, given: Option<i64>) -> Result<i64> {
        let Some(attribute) = &self.options.time else {
            return given
                .ok_or_else(|| Error::Argument("a stream without time= needs a time of arrival".into()));
        };
        let stream = &self.name;
        let unusable = |what: String| {
            Error::Event(format!(
                "{what} as the time of an event of stream {stream:?}\n\
                 hint: a timestamp, a number of {}, or text such as '2026-01-31 12:00:00'",
                match self.options.unit {
                    TimeUnit::Seconds => "seconds",
                    TimeUnit::Milliseconds => "milliseconds",
                    TimeUnit::Microseconds => "microseconds",
                }
            ))
        };
        let time = match record.get(attribute) {
            None => {
                return Err(Error::Event(format!(
                    "an event of stream {stream:?} has no `{attribute}`, which is its time"
                )));
            }
            Some(Value::Timestamp(micros)) => Some(*micros),
            Some(Value::Int(number)) => number.checked_mul(self.options.unit.micros()),
            Some(value @ (Value::Float(_) | Value::Decimal(_))) => {
                let micros =
                    value.as_ref().nearest_float().unwrap_or(f64::NAN) * self.options.unit.micros() as f64;
                (micros.abs() < 9e18).then_some(micros.round() as i64)
            }
            Some(Value::Str(text)) => parse_timestamp(text),
            Some(_) => None,
        };
        // The years that a timestamp can be written in: a number of another unit is mostly outside.
        time.filter(|time| FIRST_TIME <= *time && *time <= LAST_TIME)
            .ok_or_else(|| unusable(format!("`{attribute}` cannot serve")))
    }

    /// No earlier event is evaluated any more. `latest_of_all` is the greatest time of all streams. A silent stream is taken
    /// to have come almost as far; its events may be late by as much as ever.
    pub fn watermark(&self, latest_of_all: Option<i64>) -> Option<i64> {
        let idle = self.options.idle.and_then(|idle| Some(latest_of_all?.saturating_sub(idle)));
        let come = self.latest.max(idle);
        let reached = come.map(|come| come.saturating_sub(self.options.lateness).max(FIRST_TIME));
        reached.max(self.floor)
    }

    pub fn keep_late(&mut self, record: Arc<Record>) {
        self.late_count += 1;
        if self.late.len() < LATE_EVENTS_KEPT {
            self.late_bytes += late_bytes(&record);
            self.late.push_back(record);
        } else {
            self.late_dropped += 1;
        }
    }

    /// Hands out the late events.
    pub fn take_late(&mut self) -> Vec<Arc<Record>> {
        self.late_bytes = 0;
        std::mem::take(&mut self.late).into()
    }

    /// Drops the oldest late events until their bytes are at most these.
    pub fn shed_late(&mut self, most: usize) {
        while self.late_bytes > most
            && let Some(gone) = self.late.pop_front()
        {
            self.late_bytes -= late_bytes(&gone);
            self.late_dropped += 1;
        }
    }
}

fn late_bytes(record: &Record) -> usize {
    size_of::<Arc<Record>>() + record_bytes(record)
}

/// How a stream is kept.
impl Progress {
    pub fn write_options(&self, to: &mut Writer) {
        let options = &self.options;
        to.text(&self.name);
        to.flag(options.time.is_some());
        to.text(options.time.as_deref().unwrap_or(""));
        to.text(options.unit.name());
        to.signed(options.lateness);
        to.optional(options.idle);
        to.flag(options.schema.is_some());
        to.text(&options.schema.as_ref().map_or(String::new(), Schema::to_json));
    }

    pub fn read_options(from: &mut Reader<'_>) -> Result<(String, StreamOptions), Damage> {
        let name = from.text()?;
        let (has_time, time) = (from.flag()?, from.text()?);
        let unit = TimeUnit::named(&from.text()?).map_err(|_| Damage)?;
        let (lateness, idle) = (from.signed()?, from.optional()?);
        let (has_schema, schema) = (from.flag()?, from.text()?);
        let schema =
            has_schema.then(|| Schema::from_json(schema.as_bytes())).transpose().map_err(|_| Damage)?;
        Ok((name, StreamOptions { time: has_time.then_some(time), unit, lateness, idle, schema }))
    }

    pub fn write(&self, to: &mut Writer) {
        to.optional(self.latest);
        to.optional(self.floor);
        to.unsigned(self.evaluated);
        to.unsigned(self.late_count);
        to.unsigned(self.late_dropped);
        to.unsigned(self.late.len() as u64);
        self.late.iter().for_each(|record| to.record(record));
    }

    pub fn read(&mut self, from: &mut Reader<'_>) -> Result<(), Damage> {
        self.latest = from.optional()?;
        self.floor = from.optional()?;
        self.evaluated = from.unsigned()?;
        self.late_count = from.unsigned()?;
        self.late_dropped = from.unsigned()?;
        let count = from.length()?;
        self.late = (0..count).map(|_| from.record().map(Arc::new)).collect::<Result<_, _>>()?;
        self.late_bytes = self.late.iter().map(|record| late_bytes(record)).sum();
        Ok(())
    }
}
