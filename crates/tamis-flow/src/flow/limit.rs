//! The limit on the bytes of state of a flow, and what happens when it is exceeded.

use std::cmp::Reverse;

use tamis_core::{Error, Result};

use super::output::join_output;
use super::{Flow, Output};

/// How a flow handles state beyond the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnLimit {
    /// Events are refused until windows have become smaller.
    Refuse,
    /// The keys that were idle for longest are forgotten, rows of joins leave early, and late events are dropped.
    Shed,
}

/// How many bytes the state of a flow may have.
#[derive(Clone, Copy, Debug)]
pub struct Limit {
    pub bytes: usize,
    pub then: OnLimit,
}

impl Flow {
    /// The bytes of all state: of the contents, so that they are the same after opening as before.
    pub fn bytes(&self) -> usize {
        let streams = self
            .streams
            .iter()
            .map(|stream| stream.windows.bytes() + stream.sequences.bytes() + stream.progress.late_bytes);
        self.waiting_bytes + self.joins.bytes() + streams.sum::<usize>()
    }

    /// Another limit, or none, from the next event on. The next checkpoint writes all: what its log says was decided under
    /// one limit.
    pub fn set_limit(&mut self, limit: Option<Limit>) {
        self.limit = limit;
        self.journal = None;
    }

    /// Before an event comes, whose time its stream has come to: lets state go whose time is over, then refuses or sheds.
    pub(super) fn make_room(&mut self, told: &mut Vec<Output>) -> Result<()> {
        let Some(limit) = self.limit else { return Ok(()) };
        if self.bytes() <= limit.bytes {
            return Ok(());
        }
        // What is over may still be held, depending on who was looked at: only what is left decides.
        self.drop_expired(told)?;
        if self.bytes() <= limit.bytes {
            return Ok(());
        }
        // As the event itself would: what waits for no later time than the clock is evaluated, in its order, before it.
        self.evaluate_waiting(told)?;
        self.drop_expired(told)?;
        let bytes = self.bytes();
        if bytes <= limit.bytes {
            return Ok(());
        }
        if limit.then == OnLimit::Shed && self.waiting_bytes <= limit.bytes {
            return self.shed(limit.bytes, bytes, told);
        }
        self.refused += 1;
        let hint = match limit.then {
            OnLimit::Refuse => {
                "shorten windows, take out late events, raise limit=, or let the flow forget with on_limit=\"shed\""
            }
            OnLimit::Shed => {
                "events that wait for the clock cannot be forgotten: shorten lateness=, raise limit=, or advance(…)"
            }
        };
        Err(Error::Argument(format!(
            "the state of the flow has {bytes} bytes, more than the limit of {}; the event is refused\nhint: {hint}",
            limit.bytes
        )))
    }

    /// Drops all that is over for the next event.
    fn drop_expired(&mut self, told: &mut Vec<Output>) -> Result<()> {
        // Events that still wait see the windows of their time.
        let waiting = self.waiting.peek().map(|Reverse(first)| first.time);
        let Some(now) = self.clock().map(|clock| waiting.map_or(clock, |time| clock.min(time))) else {
            return Ok(());
        };
        self.expire(now, told)?;
        for stream in &mut self.streams {
            stream.windows.expire_all(now);
            stream.sequences.expire_all(now);
        }
        Ok(())
    }

    /// Forgets until a tenth of the limit is free, so that it is rare; each part keeps its share.
    fn shed(&mut self, limit: usize, bytes: usize, told: &mut Vec<Output>) -> Result<()> {
        let fixed = self.waiting_bytes as f64;
        let share = (limit as f64 * 0.9 - fixed).max(0.0) / (bytes as f64 - fixed).max(1.0);
        let kept = |bytes: usize| (bytes as f64 * share) as usize;
        for stream in &mut self.streams {
            stream.progress.shed_late(kept(stream.progress.late_bytes));
            stream.windows.shed(kept(stream.windows.bytes()));
            stream.sequences.shed(kept(stream.sequences.bytes()));
        }
        let clock = self.clock().unwrap_or(i64::MIN);
        let gone = self.joins.shed(kept(self.joins.bytes()), clock)?;
        told.extend(gone.into_iter().map(|found| join_output(&self.queries[&found.query], found)));
        Ok(())
    }
}
