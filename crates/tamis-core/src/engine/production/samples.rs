//! A sample of past events, from which selectivities are learnt.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::event::{Event, TermId, Value};
use crate::fork::Mutex;

const CAPACITY: usize = 512;
/// After the first ones, one event in this many is considered.
const EVERY: u64 = 32;

/// An event that outlives its source.
#[derive(Clone, Debug)]
pub struct OwnedEvent {
    values: Vec<(TermId, Value)>,
}

impl OwnedEvent {
    pub fn new(event: &Event<'_>) -> Self {
        Self {
            values: event.values.iter().map(|(attribute, value)| (*attribute, (*value).to_owned())).collect(),
        }
    }

    pub fn as_event(&self) -> Event<'_> {
        Event {
            values: self.values.iter().map(|(attribute, value)| (*attribute, value.as_ref())).collect(),
            weights: vec![],
            has_intervals: self.values.iter().any(|(_, value)| value.is_set()),
            unreadable: vec![],
        }
    }
}

/// A window over the stream: the newest sample replaces the oldest, so that it follows the load.
#[derive(Default)]
pub struct Samples {
    seen: AtomicU64,
    kept: Mutex<(Vec<OwnedEvent>, usize)>,
}

impl Samples {
    /// Considers this many events; `see` calls what it is given with the event of a number. Never waits. Says how many were offered
    /// before.
    #[inline]
    pub fn offer_many(&self, events: usize, see: impl Fn(usize, &mut dyn FnMut(&Event<'_>))) -> u64 {
        let first = self.seen.fetch_add(events as u64, Ordering::Relaxed);
        for at in 0..events {
            let seen = first + at as u64;
            if seen < CAPACITY as u64 || seen.is_multiple_of(EVERY) {
                see(at, &mut |event| self.keep(event));
            }
        }
        first
    }

    fn keep(&self, event: &Event<'_>) {
        if let Some(mut kept) = self.kept.try_lock() {
            let (events, next) = &mut *kept;
            if events.len() < CAPACITY {
                events.push(OwnedEvent::new(event));
            } else {
                events[*next] = OwnedEvent::new(event);
                *next = (*next + 1) % CAPACITY;
            }
        }
    }

    /// How many are kept; 0 while one is being added.
    pub fn len(&self) -> usize {
        self.kept.try_lock().map_or(0, |kept| kept.0.len())
    }

    pub fn snapshot(&self) -> Vec<OwnedEvent> {
        self.kept.lock().0.clone()
    }
}
