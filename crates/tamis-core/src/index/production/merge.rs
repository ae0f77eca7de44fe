//! Few large segments instead of many small ones, made while everybody goes on.
//!
//! A merge reads segments of one view, builds the merged one without any lock, and takes the
//! writer's lock only to put it in their place, carrying over the rows that died meanwhile.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::samples::OwnedEvent;
use super::view::{Location, Part, View};
use super::{Inner, as_events};
use crate::error::Result;
use crate::index::segment::{Segment, SegmentBuilder};
use crate::index::subscription::Id;

/// Segments of one size class before they are merged.
const FAN_IN: usize = 16;
/// A segment with a larger share of dead rows is rewritten.
const MOST_DEAD: f64 = 0.3;

/// Merges what should be merged on a thread of its own, unless one is at work already.
pub(super) fn merge_in_background(inner: &Arc<Inner>) {
    if choose(&inner.current.load()).is_some() {
        spawn(inner, merge_once);
    }
}

/// Runs `step` on a background thread as long as it returns true.
pub(super) fn spawn(inner: &Arc<Inner>, step: fn(&Arc<Inner>) -> Result<bool>) {
    let process = std::process::id();
    let at_work = inner.merging_in.load(Ordering::Acquire);
    if at_work == process
        || inner.merging_in.compare_exchange(at_work, process, Ordering::AcqRel, Ordering::Acquire).is_err()
    {
        return;
    }
    let shared = inner.clone();
    let thread = std::thread::Builder::new().name("tamis-merge".into()).spawn(move || {
        // An error leaves the segments as they are: slower, never wrong.
        while step(&shared).unwrap_or(false) {}
        shared.merging_in.store(0, Ordering::Release);
    });
    if thread.is_err() {
        inner.merging_in.store(0, Ordering::Release);
    }
}

/// Merges one group of segments; false when nothing is left to do.
fn merge_once(inner: &Arc<Inner>) -> Result<bool> {
    match choose(&inner.current.load()) {
        None => Ok(false),
        Some(chosen) => merge(inner, chosen).map(|_| true),
    }
}

pub(super) fn merge_all(inner: &Arc<Inner>) -> Result<()> {
    while !merge(inner, inner.current.load_full().parts.clone())? {}
    Ok(())
}

/// The segments to merge next: enough of one size class, or one with many dead rows.
fn choose(view: &View) -> Option<Vec<Part>> {
    let mut by_class: Vec<Vec<&Part>> = vec![vec![]; 16];
    for part in &view.parts {
        let dead = part.deaths.count() as f64 / part.segment.len().max(1) as f64;
        if dead > MOST_DEAD && part.segment.len() > 64 {
            return Some(vec![part.clone()]);
        }
        by_class[size_class(part.living())].push(part);
    }
    let class = by_class.iter().find(|class| class.len() >= FAN_IN)?;
    Some(class.iter().copied().cloned().collect())
}

fn size_class(rows: usize) -> usize {
    (rows.max(1).ilog2() / FAN_IN.ilog2()) as usize
}

/// The whole view as one segment: the one it has, if that is all, or a new one.
pub fn compact(view: &View, samples: &[OwnedEvent]) -> Result<Arc<Segment>> {
    if let [part] = view.parts.as_slice()
        && view.buffer.is_empty()
        && part.deaths.count() == 0
    {
        return Ok(part.segment.clone());
    }
    let mut places: Vec<(Id, Location)> = view.locations().map(|at| (view.id_at(at), at)).collect();
    places.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
    let mut attributes = view.attributes.clone();
    let mut builder = SegmentBuilder::new(&mut attributes);
    for (_, place) in places {
        builder.push(&view.subscription_at(place)?)?;
    }
    Ok(Arc::new(builder.finish(&as_events(samples))?))
}

/// Puts one segment in the place of some; false, and nothing has changed, when another merge has
/// replaced one of them meanwhile.
fn merge(inner: &Arc<Inner>, parts: Vec<Part>) -> Result<bool> {
    let started = inner.current.load_full();
    let mut rows: Vec<(u32, u32)> = vec![];
    for (at, part) in parts.iter().enumerate() {
        // A row that is dying in an unpublished change counts as living: that change may fail.
        let living =
            (0..part.segment.len() as u32).filter(|row| !part.deaths.is_dead(*row, started.generation));
        rows.extend(living.map(|row| (at as u32, row)));
    }
    rows.sort_by(|(a, a_row), (b, b_row)| {
        let (a, b) = (&parts[*a as usize].segment.ledger, &parts[*b as usize].segment.ledger);
        a.compare_ids(*a_row, b, *b_row)
    });
    let mut attributes = started.attributes.clone();
    let mut builder = SegmentBuilder::new(&mut attributes);
    for (part, row) in &rows {
        builder.push_row(&parts[*part as usize].segment, *row)?;
    }
    let merged = Part::new(builder.finish(&as_events(&inner.samples.snapshot()))?);

    let _lock = inner.writer.lock();
    for (new_row, (part, row)) in rows.iter().enumerate() {
        let died = parts[*part as usize].deaths.generation_of(*row);
        if died != 0 {
            merged.deaths.end(new_row as u32, died);
        }
    }
    let mut next = View::clone(&inner.current.load());
    let unmerged = next.parts.len();
    next.parts.retain(|part| !parts.iter().any(|old| Arc::ptr_eq(&old.segment, &part.segment)));
    if unmerged - next.parts.len() < parts.len() {
        return Ok(false);
    }
    if merged.living() > 0 {
        next.parts.push(merged);
    }
    inner.current.store(Arc::new(next));
    Ok(true)
}
