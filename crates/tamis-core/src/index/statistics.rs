//! What an index is made of, and what matching cost so far.

use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::{Value as Json, json};

use super::reader::Reader;
use super::segment::forms::Forms;
use super::segment::matcher::Work;
use super::store::{Engine, Index};
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
        self.events.fetch_add(events as u64, Ordering::Relaxed);
        self.matches.fetch_add(matches as u64, Ordering::Relaxed);
        self.candidates.fetch_add(work.candidates, Ordering::Relaxed);
        self.evaluations.fetch_add(work.evaluations, Ordering::Relaxed);
        self.mismatches.fetch_add(work.mismatches, Ordering::Relaxed);
        self.nanoseconds.fetch_add(nanoseconds, Ordering::Relaxed);
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

impl Index {
    pub fn observed(&self) -> &Observed {
        &self.observed
    }

    /// Everything known of the index, as JSON.
    pub fn statistics(&self) -> Json {
        let reader = self.unchecked_reader();
        let mut stats = json!({
            "algorithm": self.algorithm(),
            "subscriptions": reader.len(),
            "generation": reader.generation(),
            "attributes": reader.attributes().len(),
            "optimizing": self.is_optimizing(),
        });
        let structure = match &reader {
            Reader::View(view) => view_statistics(view),
            Reader::Classic(state) => {
                let parts: Vec<_> = state.algorithm.bytes();
                let mut structure =
                    json!({ "bytes": bytes(parts.iter().copied()), "index_bytes": sum(&parts) });
                let counters = state.algorithm.counters();
                let counters = counters.into_iter().map(|(name, count)| (name.into(), Json::from(count)));
                merge(&mut structure, Json::Object(counters.collect()));
                structure
            }
        };
        merge(&mut stats, structure);
        if let Engine::Production(production) = self.engine() {
            let mode = if production.optimizes_automatically() { "auto" } else { "manual" };
            merge(
                &mut stats,
                json!({ "optimize": mode, "automatic_optimizations": production.automatic_optimizations() }),
            );
        }
        merge(&mut stats, json!({ "observed": self.observed.statistics() }));
        stats
    }
}

impl Observed {
    fn statistics(&self) -> Json {
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

fn view_statistics(view: &super::production::view::View) -> Json {
    let mut parts: Vec<(&'static str, usize)> = vec![];
    let (mut nodes, mut written, mut predicates, mut units, mut accesses) = (0, 0, 0, 0, 0);
    let mut add = |name: &'static str, count: usize| match parts.iter_mut().find(|(known, _)| *known == name)
    {
        Some((_, total)) => *total += count,
        None => parts.push((name, count)),
    };
    for part in view.parts.iter() {
        let segment = &part.segment;
        segment.layout.bytes().into_iter().chain(segment.ledger.bytes()).for_each(|(name, n)| add(name, n));
        add("removed rows", part.deaths.bytes());
        add("kept for merging", segment.forms.as_ref().map_or(0, Forms::bytes));
        add("scores", segment.scoring.bytes());
        add("relaxed matching", segment.relaxed_bytes());
        nodes += segment.sharing.nodes;
        written += segment.sharing.written_nodes;
        predicates += segment.sharing.predicates;
        units += segment.layout.units() as usize;
        accesses += segment.layout.entries.len();
    }
    let index_bytes: usize = parts
        .iter()
        .filter(|(name, _)| ["predicates", "access", "code", "rows"].contains(name))
        .map(|(_, count)| count)
        .sum();
    json!({
        "segments": view.parts.iter().map(|part| part.segment.len()).collect::<Vec<_>>(),
        "buffered": view.buffer.len(),
        "predicates": predicates,
        "nodes": nodes,
        "sharing_ratio": written as f64 / nodes.max(1) as f64,
        "units": units,
        "access_entries": accesses,
        "expected_candidates_per_event":
            view.parts.iter().map(|part| part.segment.layout_basis.candidates).sum::<f64>(),
        "bytes": bytes(parts.iter().copied()),
        "index_bytes": index_bytes,
        "bytes_per_subscription": index_bytes as f64 / view.len.max(1) as f64,
    })
}

fn bytes(parts: impl Iterator<Item = (&'static str, usize)>) -> Json {
    parts.map(|(name, count)| (name.to_string(), Json::from(count))).collect::<serde_json::Map<_, _>>().into()
}

fn sum(parts: &[(&'static str, usize)]) -> usize {
    parts.iter().map(|(_, count)| count).sum()
}

fn merge(into: &mut Json, from: Json) {
    if let (Json::Object(into), Json::Object(from)) = (into, from) {
        into.extend(from);
    }
}
