//! Statistics of past queries: counters, and the slowest events.

use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::{Value as Json, json};

use super::contract::Work;
use crate::fork::Mutex;

/// How many of the slowest events are remembered.
const SLOWEST: usize = 16;

/// Counters of all events matched one by one, and of wrong values in those matched together.
#[derive(Default)]
pub struct Observed {
    events: AtomicU64,
    matches: AtomicU64,
    candidates: AtomicU64,
    evaluations: AtomicU64,
    mismatches: AtomicU64,
    nanoseconds: AtomicU64,
    /// The least time that enters the list of the slowest.
    slow_from: AtomicU64,
    slowest: Mutex<Vec<SlowEvent>>,
}

/// One of the slowest events.
#[derive(Clone, Debug)]
pub struct SlowEvent {
    pub nanoseconds: u64,
    pub matches: usize,
    pub work: Work,
    /// The event as JSON, if the caller described it.
    pub event: Option<String>,
}

impl Observed {
    pub fn note(&self, events: usize, matches: usize, work: Work, nanoseconds: u64) {
        // Adding nothing to a shared counter costs as much as adding something.
        let add = |counter: &AtomicU64, more: u64| {
            if more > 0 {
                counter.fetch_add(more, Ordering::Relaxed);
            }
        };
        add(&self.events, events as u64);
        add(&self.matches, matches as u64);
        add(&self.candidates, work.candidates);
        add(&self.evaluations, work.evaluations);
        add(&self.mismatches, work.mismatches);
        add(&self.nanoseconds, nanoseconds);
    }

    /// Whether an event of this duration belongs to the slowest.
    pub fn is_slow(&self, nanoseconds: u64) -> bool {
        nanoseconds > self.slow_from.load(Ordering::Relaxed)
    }

    pub fn note_slow(&self, slow: SlowEvent) {
        let mut slowest = self.slowest.lock();
        slowest.push(slow);
        slowest.sort_by_key(|slow| std::cmp::Reverse(slow.nanoseconds));
        slowest.truncate(SLOWEST);
        if slowest.len() == SLOWEST {
            self.slow_from.store(slowest[SLOWEST - 1].nanoseconds, Ordering::Relaxed);
        }
    }

    pub fn reset(&self) {
        for counter in [
            &self.events,
            &self.matches,
            &self.candidates,
            &self.evaluations,
            &self.mismatches,
            &self.nanoseconds,
            &self.slow_from,
        ] {
            counter.store(0, Ordering::Relaxed);
        }
        self.slowest.lock().clear();
    }
}

impl Observed {
    pub fn statistics(&self) -> Json {
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let events = load(&self.events);
        let per_event = |counter: &AtomicU64| load(counter) as f64 / events.max(1) as f64;
        let slowest: Vec<Json> = self
            .slowest
            .lock()
            .iter()
            .map(|slow| {
                json!({
                    "microseconds": slow.nanoseconds as f64 / 1000.0,
                    "matches": slow.matches,
                    "candidates": slow.work.candidates,
                    "evaluations": slow.work.evaluations,
                    "event": slow.event,
                })
            })
            .collect();
        json!({
            "events": events,
            "matches_per_event": per_event(&self.matches),
            "candidates_per_event": per_event(&self.candidates),
            "evaluations_per_event": per_event(&self.evaluations),
            "microseconds_per_event": per_event(&self.nanoseconds) / 1000.0,
            "type_mismatches": load(&self.mismatches),
            "slowest": slowest,
        })
    }
}
