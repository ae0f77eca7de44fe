//! Merges many small segments into few large ones in the background.
//!
//! Segments that a large build left apart are merged with others only when all are.
//!
//! A merge reads segments of one view and builds the merged one without a lock. It takes the writer's lock only to
//! replace them, and carries over the rows that were removed meanwhile.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use super::bulk::{self, MOST_ROWS, build_segments};
use super::exclusive_work::Turn;
use super::samples::OwnedEvent;
use super::view::{Part, View};
use super::{Inner, as_events};
use crate::engine::contract::{Location, Version};
use crate::engine::segment::forms::Import;
use crate::engine::segment::scoring::has_weights;
use crate::engine::segment::{Segment, SegmentBuilder, Threads, all_cores};
use crate::error::Result;
use crate::event::{Event, Terms};
use crate::subscription::Id;

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
pub(super) fn spawn(inner: &Arc<Inner>, step: fn(&Inner) -> Result<bool>) {
    let Some(turn) = Turn::take(inner, |inner| &inner.merging) else { return };
    // If no thread can be had, the turn ends here and now.
    let _ = std::thread::Builder::new().name("tamis-merge".into()).spawn(move || work(turn, step));
}

/// Takes steps, and then merges what was sealed while no other thread could have the turn.
fn work(turn: Turn, step: fn(&Inner) -> Result<bool>) {
    let (mut turn, mut step) = (turn, step);
    loop {
        let outcome = loop {
            match step(&turn.inner) {
                Ok(true) => continue,
                outcome => break outcome,
            }
        };
        let inner = turn.inner.clone();
        drop(turn);
        // An error leaves the segments as they are: slower, never wrong.
        if outcome.is_err() || choose(&inner.current.load()).is_none() {
            return;
        }
        let Some(next) = Turn::take(&inner, |inner| &inner.merging) else { return };
        (turn, step) = (next, merge_once);
    }
}

/// Merges one group of segments; false when nothing is left to do.
fn merge_once(inner: &Inner) -> Result<bool> {
    match choose(&inner.current.load()) {
        None => Ok(false),
        Some(chosen) => merge(inner, chosen, 1).map(|()| true),
    }
}

/// Merges all segments, once a running merge has finished.
pub(super) fn merge_all(inner: &Arc<Inner>) -> Result<()> {
    let turn = Turn::wait_for(inner, |inner| &inner.merging);
    let outcome = merge_everything(&turn.inner, all_cores());
    drop(turn);
    // What was sealed meanwhile found the turn taken.
    merge_in_background(inner);
    outcome
}

/// Merges all segments and the insert buffer. The caller must have the turn.
pub(super) fn merge_everything(inner: &Inner, threads: usize) -> Result<()> {
    super::seal_buffer(inner)?;
    merge(inner, inner.current.load_full().parts.to_vec(), threads)
}

/// The same on a background thread, unless one is at work.
pub(super) fn merge_all_in_background(inner: &Arc<Inner>) {
    spawn(inner, |inner| merge_everything(inner, 1).map(|()| false));
}

/// Merges the segments that have cost more than merging them takes. The caller must have the turn.
pub(super) fn merge_overdue(inner: &Inner) -> Result<()> {
    let Some(mut parts) = inner.auto.overdue(&inner.current.load()) else { return Ok(()) };
    parts.extend(super::seal_buffer(inner)?);
    merge(inner, parts, 1)
}

/// The segments to merge next: enough of one size class, or one with many dead rows.
fn choose(view: &View) -> Option<Vec<Part>> {
    let mut by_class: Vec<Vec<&Part>> = vec![vec![]; 16];
    for part in view.parts.iter() {
        if is_worn(part) {
            return Some(vec![part.clone()]);
        }
        if bulk::stays_apart(part) {
            continue;
        }
        by_class[size_class(part.living())].push(part);
    }
    let class = by_class.iter().find(|class| class.len() >= FAN_IN)?;
    Some(class.iter().copied().cloned().collect())
}

/// Whether so many rows died that the segment should be rewritten.
pub(super) fn is_worn(part: &Part) -> bool {
    let dead = part.tombstones.count() as f64 / part.segment.len().max(1) as f64;
    dead > MOST_DEAD && part.segment.len() > 64
}

fn size_class(rows: usize) -> usize {
    (rows.max(1).ilog2() / FAN_IN.ilog2()) as usize
}

/// The whole view as few segments: those that it has, if they are all and nothing in them was removed, or new ones.
pub fn compact(view: &View, samples: &[OwnedEvent]) -> Result<Vec<Arc<Segment>>> {
    let parts = view.parts.as_slice();
    let are_few = parts.len() == 1 || !parts.is_empty() && parts.iter().all(bulk::stays_apart);
    if are_few && view.buffer.is_empty() && parts.iter().all(|part| part.tombstones.count() == 0) {
        return Ok(parts.iter().map(|part| part.segment.clone()).collect());
    }
    let mut places: Vec<(Id, Location)> =
        view.unsorted_locations().map(|at| (view.id(at).to_owned(), at)).collect();
    places.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
    let scored = are_scored(&view.parts) || view.buffer.iter().any(|held| has_weights(&held.subscription));
    let add = |builder: &mut SegmentBuilder, range: Range<usize>| {
        places[range].iter().try_for_each(|(_, place)| match *place {
            Location::Row { part, row } => {
                builder.push_row(&view.parts[part as usize].segment, row, None, scored)
            }
            Location::Buffer(at) => builder.push(&view.buffer[at as usize].subscription),
        })
    };
    let built = build_segments(places.len(), view.terms.clone(), &as_events(samples), all_cores(), add)?;
    Ok(built.segments.into_iter().map(Arc::new).collect())
}

/// Replaces some segments by one, or by few. The caller must have the turn.
fn merge(inner: &Inner, parts: Vec<Part>, threads: usize) -> Result<()> {
    let started = inner.current.load_full();
    let mut rows: Vec<(u32, u32)> = vec![];
    for (at, part) in parts.iter().enumerate() {
        // A row that is dying in an unpublished change counts as living: that change may fail.
        let living = (0..part.segment.len() as u32)
            .filter(|row| !part.tombstones.is_removed(*row, started.generation));
        rows.extend(living.map(|row| (at as u32, row)));
    }
    rows.sort_by(|(a, a_row), (b, b_row)| {
        let (a, b) =
            (&parts[*a as usize].segment.subscription_table, &parts[*b as usize].segment.subscription_table);
        a.compare_ids(*a_row, b, *b_row)
    });
    let samples = inner.samples.snapshot();
    let merged = join(&parts, &rows, &started.terms, &as_events(&samples), threads)?;
    // Nothing may be kept of a file that was overwritten while it was read.
    parts.iter().try_for_each(|part| part.segment.prepare())?;
    let mut merged = Part::of_segments(merged, inner.auto.seen());
    // One that is rewritten alone is still one of those it was built with, unless little of it is left.
    let was_apart = matches!(parts.as_slice(), [alone] if alone.is_apart);
    merged.iter_mut().for_each(|part| part.is_apart |= was_apart && part.segment.len() > MOST_ROWS / 2);

    let _lock = inner.writer.lock();
    let mut rows = rows.iter();
    for part in &merged {
        for (new_row, (old, row)) in rows.by_ref().take(part.segment.len()).enumerate() {
            let died = parts[*old as usize].tombstones.generation_of(*row);
            if died != 0 {
                part.tombstones.end(new_row as u32, died);
            }
        }
    }
    let mut next = View::clone(&inner.current.load());
    let held = Arc::make_mut(&mut next.parts);
    let is_old = |part: &Part| parts.iter().any(|old| Arc::ptr_eq(&old.segment, &part.segment));
    // Matches need no merging where the ids of segments follow each other: the new ones take the place of the first old one.
    let place = held.iter().position(is_old).unwrap_or(held.len());
    held.retain(|part| !is_old(part));
    held.splice(place..place, merged.into_iter().filter(|part| part.living() > 0));
    next.expected = OnceLock::new();
    next.owners = OnceLock::new();
    inner.current.store(Arc::new(next));
    Ok(())
}

/// Segments of the given rows (part, row) of several parts, in the order in which they are given.
fn join(
    parts: &[Part],
    rows: &[(u32, u32)],
    terms: &Terms,
    samples: &[Event<'_>],
    threads: usize,
) -> Result<Vec<Segment>> {
    let scored = are_scored(parts);
    let kept_forms = parts.iter().map(|part| part.segment.forms.as_ref());
    let are_kept = kept_forms.clone().all(|forms| forms.is_some());
    if rows.len() <= MOST_ROWS && (threads == 1 || are_kept) {
        let mut imports: Vec<_> =
            kept_forms.map(|forms| forms.map(|forms| Import::new(forms, &[]))).collect();
        let mut builder = SegmentBuilder::new(terms.clone());
        for &(part, row) in rows {
            let import = imports[part as usize].as_mut();
            builder.push_row(&parts[part as usize].segment, row, import, scored)?;
        }
        return Ok(vec![builder.finish(samples, &Threads::new(threads))?.0]);
    }
    let add = |builder: &mut SegmentBuilder, range: Range<usize>| {
        rows[range]
            .iter()
            .try_for_each(|&(part, row)| builder.push_row(&parts[part as usize].segment, row, None, scored))
    };
    Ok(build_segments(rows.len(), terms.clone(), samples, threads, add)?.segments)
}

/// Whether any row has, or may have, weights.
fn are_scored(parts: &[Part]) -> bool {
    parts.iter().any(|part| part.segment.scoring.has_weights())
}
