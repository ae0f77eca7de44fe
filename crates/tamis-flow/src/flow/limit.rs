//! How many bytes of state a flow may have, and what happens beyond.

use std::cmp::Reverse;

use tamis_core::{Error, Result};

use super::Flow;

/// What happens when the state would grow beyond the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnLimit {
    /// Events are refused until windows have become smaller.
    Refuse,
    /// The keys that were idle for longest are forgotten.
    Shed,
}

/// How many bytes the state of a flow may have.
#[derive(Clone, Copy, Debug)]
pub struct Limit {
    pub bytes: usize,
    pub then: OnLimit,
}

impl Flow {
    /// The bytes of all state.
    pub fn bytes(&self) -> usize {
        let streams = self.streams.iter();
        self.waiting_bytes
            + self.joins.bytes()
            + streams.map(|stream| stream.windows.bytes() + stream.sequences.bytes()).sum::<usize>()
    }

    pub(super) fn make_room(&mut self) -> Result<()> {
        let Some(limit) = self.limit else { return Ok(()) };
        if self.bytes() <= limit.bytes {
            return Ok(());
        }
        // Events that wait still see the windows of their time.
        let waiting = self.waiting.peek().map(|Reverse(first)| first.time);
        if let Some(now) = self.clock().map(|clock| waiting.map_or(clock, |time| clock.min(time))) {
            self.streams.iter_mut().for_each(|stream| stream.windows.expire_all(now));
        }
        let bytes = self.bytes();
        if bytes <= limit.bytes {
            return Ok(());
        }
        match limit.then {
            OnLimit::Refuse => {
                self.refused += 1;
                Err(Error::Argument(format!(
                    "the state of the flow has {bytes} bytes, more than the limit of {}; the event is refused\n\
                     hint: shorten windows, raise limit=, or let the flow forget idle keys with on_limit=\"shed\"",
                    limit.bytes
                )))
            }
            OnLimit::Shed => {
                // A tenth more than needed, so that shedding is rare; each part keeps its share.
                let fixed = (self.waiting_bytes + self.joins.bytes()) as f64;
                let share = (limit.bytes as f64 * 0.9 - fixed).max(0.0) / (bytes as f64 - fixed).max(1.0);
                for stream in &mut self.streams {
                    let kept = |bytes: usize| (bytes as f64 * share) as usize;
                    stream.windows.shed(kept(stream.windows.bytes()));
                    stream.sequences.shed(kept(stream.sequences.bytes()));
                }
                Ok(())
            }
        }
    }
}
