//! Decides when the index reorganizes itself.
//!
//! A layout is chosen for the events that were known when it was built, and predicts how many candidates an event has.
//! Every few events, the actual number of candidates is compared with the prediction. If it is much higher, the events
//! have drifted. If the layout was chosen without any event and some are known now, it can only get better. In both
//! cases the index is rewritten in the background, as by `optimize`. If neither is the case, small segments may have become
//! too expensive (`consolidation`); those are merged.
//!
//! Rewriting takes at most a twentieth of the time, however often the events change. An index that was mapped from a
//! file is left alone, because rewriting it would give every process its own copy. Answers do not depend on the layout.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;

use super::merge::{merge_everything, merge_overdue, spawn};
use super::view::{Part, View};
use super::{Inner, consolidation};
use crate::engine::contract::Work;
use crate::error::Result;
use crate::fork::{Busy, Mutex};

/// Events between two looks.
const WINDOW: u64 = 1024;
/// Smaller indexes are fast with any layout.
const LEAST_SUBSCRIPTIONS: usize = 10_000;
/// Samples that are worth learning from.
const LEAST_SAMPLES: usize = 256;
/// Events have drifted when they have this many times the expected candidates, and this many more. Choosing the
/// least of many estimates makes what was chosen look better than it is, so a factor of two means nothing.
const DRIFT: f64 = 4.0;
const DRIFT_AT_LEAST: f64 = 100.0;
/// Rewriting pauses for this many times as long as it took.
const REST: u32 = 19;

pub(super) struct AutoOptimizer {
    enabled: AtomicBool,
    /// Of the current window.
    candidates: AtomicU64,
    /// The events of all windows before.
    seen: AtomicU64,
    /// For each event since the buffer was sealed, how many subscriptions were in it.
    buffered: AtomicU64,
    runs: AtomicU64,
    rest_until: Mutex<Option<Instant>>,
}

impl Default for AutoOptimizer {
    fn default() -> Self {
        Self {
            enabled: AtomicBool::new(true),
            candidates: AtomicU64::new(0),
            seen: AtomicU64::new(0),
            buffered: AtomicU64::new(0),
            runs: AtomicU64::new(0),
            rest_until: Mutex::new(None),
        }
    }
}

impl AutoOptimizer {
    pub fn enable(&self, enabled: bool) {
        self.enabled.store(enabled, Ordering::Relaxed);
    }

    pub fn is_enabled(&self) -> bool {
        self.enabled.load(Ordering::Relaxed)
    }

    /// How often the index was reorganized without being asked.
    pub fn runs(&self) -> u64 {
        self.runs.load(Ordering::Relaxed)
    }

    /// How many events came, but for the last few.
    pub fn seen(&self) -> u64 {
        self.seen.load(Ordering::Relaxed)
    }

    pub fn note_sealed(&self) {
        self.buffered.store(0, Ordering::Relaxed);
    }

    /// The segments that have cost more than merging them would, with the buffer.
    pub fn overdue(&self, view: &View) -> Option<Vec<Part>> {
        consolidation::overdue(view, self.seen(), self.buffered.load(Ordering::Relaxed))
    }

    /// The candidates per event of a window that ends with these events, before which came so many.
    #[inline]
    fn note(&self, before: u64, events: usize, work: &Work, view: &ArcSwap<View>) -> Option<f64> {
        if work.candidates > 0 {
            self.candidates.fetch_add(work.candidates, Ordering::Relaxed);
        }
        let now = before + events as u64;
        if before / WINDOW == now / WINDOW { None } else { self.end_window(now, view) }
    }

    #[cold]
    fn end_window(&self, now: u64, view: &ArcSwap<View>) -> Option<f64> {
        // Another thread may have ended a later window just now.
        let events = now.saturating_sub(self.seen.fetch_max(now, Ordering::Relaxed));
        if events == 0 {
            return None;
        }
        self.buffered.fetch_add(events * view.load().buffer.len() as u64, Ordering::Relaxed);
        Some(self.candidates.swap(0, Ordering::Relaxed) as f64 / events as f64)
    }

    /// Never waits: who matches is not held up.
    fn is_resting(&self) -> bool {
        self.rest_until.try_lock().is_none_or(|until| until.is_some_and(|until| Instant::now() < until))
    }
}

/// Notes what some events cost together, before which came so many, and starts rewriting the index if that has come to pay.
#[inline]
pub(super) fn note(inner: &Arc<Inner>, before: u64, events: usize, work: &Work) {
    let auto = &inner.auto;
    if !auto.is_enabled() {
        return;
    }
    let Some(candidates) = auto.note(before, events, work, &inner.current) else { return };
    if auto.is_resting() {
        return;
    }
    let view = inner.current.load();
    let step: fn(&Inner) -> Result<bool> = if pays(&view, candidates, inner.samples.len()) {
        |inner| rewrite(inner, |inner| merge_everything(inner, 1))
    } else if auto.overdue(&view).is_some() {
        |inner| rewrite(inner, merge_overdue)
    } else {
        return;
    };
    // No thread is started while the process forks: the next window will do.
    let Some(_busy) = Busy::unless_forking() else { return };
    spawn(inner, step);
}

/// Merges, and then rests for as long as that allows for.
fn rewrite(inner: &Inner, merge: fn(&Inner) -> Result<()>) -> Result<bool> {
    let started = Instant::now();
    let outcome = merge(inner);
    let took: Duration = started.elapsed();
    *inner.auto.rest_until.lock() = Some(Instant::now() + took * REST);
    inner.auto.runs.fetch_add(1, Ordering::Relaxed);
    outcome.map(|()| false)
}

/// Whether a new layout promises to be better, given what events cost now.
fn pays(view: &View, candidates: f64, samples: usize) -> bool {
    let is_mapped = view.parts.iter().any(|part| part.segment.origin.is_some());
    if view.len < LEAST_SUBSCRIPTIONS || is_mapped || samples < LEAST_SAMPLES {
        return false;
    }
    let expected: f64 = view.parts.iter().map(|part| part.segment.layout_basis.candidates).sum();
    let drifted = candidates > DRIFT * expected && candidates > expected + DRIFT_AT_LEAST;
    let unlearnt: usize = view
        .parts
        .iter()
        .filter(|part| part.segment.layout_basis.samples < LEAST_SAMPLES / 2)
        .map(|part| part.living())
        .sum();
    drifted || 2 * unlearnt > view.len
}
