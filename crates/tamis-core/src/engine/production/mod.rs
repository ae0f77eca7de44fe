//! The production index: arbitrary expressions that may change at any time, matched without waiting.
//!
//! New subscriptions go to a small buffer. A full buffer becomes a segment, and segments of similar size are merged in
//! the background. So an index has few segments, and the largest was laid out for its subscriptions and the events seen.
//! Every change publishes a new [`View`]; a reader works on the view it took and never waits.

pub mod block;
mod block_matches;
mod bulk;
mod consolidation;
mod device_blocks;
mod device_tokens;
mod exclusive_work;
mod host_blocks;
mod id_order;
pub mod insert_buffer;
pub mod merge;
mod owners;
mod persistence;
mod reorganize;
pub mod samples;
mod sealing;
mod shared_expressions;
mod statistics;
#[cfg(test)]
mod tests;
pub mod tombstones;
pub mod top_k;
mod version;
pub mod view;

use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use arc_swap::ArcSwap;
use serde_json::{Value as Json, json};

use crate::engine::contract::{
    AUTO, Change, Engine, Location, NewSubscriptions, Reader, Version, VisitEvent, Work,
};
use crate::engine::segment::buffered_subscription::BufferedSubscription;
use crate::engine::segment::{Segment, SegmentBuilder, Threads, all_cores};
use crate::error::{Error, Result};
use crate::event::Schema;
use crate::fork::Mutex;
use crate::snapshot::SnapshotWriter;
use crate::subscription::{Id, Subscription};
use bulk::build_segments;
use exclusive_work::TakenIn;
use insert_buffer::InsertBuffer;
use reorganize::AutoOptimizer;
use samples::{OwnedEvent, Samples};
use sealing::Sealing;
use view::{Part, View};

pub struct Production {
    inner: Arc<Inner>,
}

pub(crate) struct Inner {
    current: ArcSwap<View>,
    /// Held while the next view is made.
    writer: Mutex<()>,
    samples: Samples,
    /// By whoever merges: two merges of the same segment would leave its rows twice.
    merging: TakenIn,
    sealing: Sealing,
    auto: AutoOptimizer,
}

impl Inner {
    /// Notes that a segment was made of the insert buffer.
    fn note_sealed(&self) {
        self.auto.note_sealed();
        self.sealing.note_sealed();
    }
}

impl Default for Production {
    fn default() -> Self {
        Self::from_view(View::default())
    }
}

impl Production {
    pub fn from_view(view: View) -> Self {
        Self {
            inner: Arc::new(Inner {
                current: ArcSwap::from_pointee(view),
                writer: Mutex::new(()),
                samples: Samples::default(),
                merging: TakenIn::default(),
                sealing: Sealing::default(),
                auto: AutoOptimizer::default(),
            }),
        }
    }

    /// The current version.
    pub fn view(&self) -> Arc<View> {
        self.inner.current.load_full()
    }

    pub fn samples(&self) -> &Samples {
        &self.inner.samples
    }
}

impl Engine for Production {
    fn name(&self) -> &'static str {
        AUTO
    }

    fn apply(&self, change: Change) -> Result<()> {
        let lock = self.inner.writer.lock();
        let mut draft = Draft::new(&self.inner);
        draft.change(change)?;
        draft.seal_if_full(&self.inner)?;
        let concerns_merges = draft.sealed || draft.ended.iter().any(|(part, _)| merge::is_worn(part));
        draft.publish();
        drop(lock);
        self.inner.sealing.drop_remains();
        if concerns_merges {
            merge::merge_in_background(&self.inner);
        }
        Ok(())
    }

    /// They become segments of their own.
    fn add_all(&self, subscriptions: &dyn NewSubscriptions) -> Result<usize> {
        let lock = self.inner.writer.lock();
        let mut draft = Draft::new(&self.inner);
        let (terms, samples) = (draft.next.terms.without_uses(), self.inner.samples.snapshot());
        let add = |builder: &mut SegmentBuilder, range: Range<usize>| {
            builder.push_all(range.map(|at| subscriptions.get(at)))
        };
        let built = build_segments(subscriptions.len(), terms, &as_events(&samples), all_cores(), add)?;
        let added = built.segments.iter().map(Segment::len).sum();
        if added > 0 {
            for table in built.segments.iter().map(|segment| &segment.subscription_table) {
                // Those of a segment are of one type.
                let checked = if draft.next.len > 0 { table.len() } else { table.len().min(1) };
                for row in 0..checked as u32 {
                    let id = table.id_ref(row).to_owned();
                    draft.accept_id(&id)?;
                    if draft.next.locate(&id).is_some() {
                        return Err(Error::duplicate(&id));
                    }
                }
            }
            draft.next.terms = built.terms.with_uses_of(&draft.next.terms);
            let parts = Part::of_segments(built.segments, self.inner.auto.seen());
            Arc::make_mut(&mut draft.next.parts).extend(parts);
            draft.next.expected = OnceLock::new();
            draft.next.len += added;
            draft.publish();
        }
        drop(lock);
        merge::merge_in_background(&self.inner);
        Ok(added)
    }

    fn reader(&self) -> Reader {
        Reader::Kept(self.view())
    }

    /// Makes a segment of the insert buffer where trying all it holds with each event would take longer. Readers wait
    /// for no writer: if one is at work, the buffer stays. An error is met again by the next writer, who reports it.
    fn expect_events(&self, events: usize) {
        let buffered = self.inner.current.load().buffer.len();
        if buffered > insert_buffer::BLOCK
            && consolidation::is_sealing_cheaper(events)
            && let Some(lock) = self.inner.writer.try_lock()
        {
            let sealed = seal_under_lock(&self.inner);
            drop(lock);
            if sealed.is_ok() {
                merge::merge_in_background(&self.inner);
            }
        }
    }

    /// Rewrites the whole index into one segment.
    fn optimize(&self) -> Result<()> {
        merge::merge_all(&self.inner)
    }

    /// Does nothing if a thread is at work.
    fn optimize_in_background(&self) {
        merge::merge_all_in_background(&self.inner);
    }

    fn optimize_automatically(&self, enabled: bool) {
        self.inner.auto.enable(enabled);
    }

    /// Whether a thread of this process is merging, or makes a segment of the insert buffer.
    fn is_optimizing(&self) -> bool {
        self.inner.merging.is_taken() || self.inner.sealing.is_at_work()
    }

    fn learn(&self, events: usize, work: &Work, visit: VisitEvent<'_>) {
        sealing::note_event(&self.inner);
        let before = self.inner.samples.offer_many(events, visit);
        reorganize::note(&self.inner, before, events, work);
    }

    fn save(&self, path: &Path, schema: Option<&Schema>) -> Result<()> {
        self.write(SnapshotWriter::create(path)?, schema)
    }

    fn to_bytes(&self, schema: Option<&Schema>) -> Result<Vec<u8>> {
        self.write(SnapshotWriter::in_memory(), schema)
    }

    fn verify(&self) -> Result<()> {
        self.verify_file()
    }

    fn statistics(&self) -> Json {
        let mode = if self.inner.auto.is_enabled() { "auto" } else { "manual" };
        json!({ "optimize": mode, "automatic_optimizations": self.inner.auto.runs() })
    }
}

pub(crate) fn as_events(samples: &[OwnedEvent]) -> Vec<crate::event::Event<'_>> {
    samples.iter().map(OwnedEvent::as_event).collect()
}

/// Makes a segment of what lies in the insert buffer, if anything does.
fn seal_buffer(inner: &Inner) -> Result<Option<Part>> {
    let _lock = inner.writer.lock();
    seal_under_lock(inner)
}

fn seal_under_lock(inner: &Inner) -> Result<Option<Part>> {
    let mut draft = Draft::new(inner);
    if draft.next.buffer.is_empty() {
        return Ok(None);
    }
    // The subscriptions stay what they were.
    draft.next.generation -= 1;
    draft.seal()?;
    let sealed = draft.next.parts.last().cloned();
    draft.publish();
    Ok(sealed)
}

/// The next view while it is made, under the writer's lock. Dropped without publishing, it leaves
/// no trace.
struct Draft<'a> {
    inner: &'a Inner,
    next: View,
    ended: Vec<(Part, u32)>,
    /// The buffer became a segment.
    sealed: bool,
    published: bool,
}

impl<'a> Draft<'a> {
    fn new(inner: &'a Inner) -> Self {
        let mut next = View::clone(&inner.current.load());
        next.generation += 1;
        next.owners = OnceLock::new();
        Self { inner, next, ended: vec![], sealed: false, published: false }
    }

    fn change(&mut self, change: Change) -> Result<()> {
        match change {
            Change::Add(subscription) => {
                self.accept_id(&subscription.id)?;
                if self.next.locate(&subscription.id).is_some() {
                    return Err(Error::duplicate(&subscription.id));
                }
                self.insert(subscription);
            }
            Change::Replace(subscription) => {
                let place =
                    self.next.locate(&subscription.id).ok_or_else(|| Error::missing(&subscription.id))?;
                self.end(place);
                self.insert(subscription);
            }
            Change::Upsert(subscription) => {
                self.accept_id(&subscription.id)?;
                if let Some(place) = self.next.locate(&subscription.id) {
                    self.end(place);
                }
                self.insert(subscription);
            }
            Change::Remove(id) => {
                let place = self.next.locate(&id).ok_or_else(|| Error::missing(&id))?;
                self.end(place);
            }
            Change::Rescore(id, scores) => {
                let place = self.next.locate(&id).ok_or_else(|| Error::missing(&id))?;
                let mut subscription = self.next.subscription(place)?;
                scores.apply(&mut subscription);
                subscription.check()?;
                self.end(place);
                self.insert(subscription);
            }
        }
        Ok(())
    }

    fn accept_id(&mut self, id: &Id) -> Result<()> {
        self.next.id_kind.get_or_insert(id.kind()).check(id)
    }

    fn insert(&mut self, subscription: Subscription) {
        let buffered = Arc::new(BufferedSubscription::new(subscription, &mut self.next.terms));
        buffered.subscription.expression.note_uses(&mut self.next.terms, 1);
        if let Some(expected) = self.next.expected.get_mut() {
            expected.note(&buffered.atoms);
            expected.note_arguments(&self.next.terms);
        }
        self.next.buffer.push(buffered);
        self.next.len += 1;
    }

    fn end(&mut self, place: Location) {
        if self.next.terms.has_computed()
            && let Ok(subscription) = self.next.subscription(place)
        {
            subscription.expression.note_uses(&mut self.next.terms, -1);
        }
        match place {
            Location::Row { part, row } => {
                let part = &self.next.parts[part as usize];
                part.tombstones.end(row, self.next.generation);
                self.ended.push((part.clone(), row));
            }
            Location::Buffer(gone) => {
                self.next.buffer = self.next.buffer.without(gone as usize);
            }
        }
        self.next.len -= 1;
    }

    fn seal_if_full(&mut self, inner: &Arc<Inner>) -> Result<()> {
        if sealing::is_up_to_writer(inner, self.next.buffer.len()) {
            self.seal()?;
        }
        if self.ended.iter().any(|(part, _)| part.living() == 0) {
            Arc::make_mut(&mut self.next.parts).retain(|part| part.living() > 0);
        }
        Ok(())
    }

    /// Makes a segment of the buffer.
    fn seal(&mut self) -> Result<()> {
        let mut buffered: Vec<_> = self.next.buffer.iter().cloned().collect();
        let builder = sealing::build(&mut buffered, self.next.terms.clone())?;
        // Small segments are short-lived: guesses are good enough and cheaper than samples.
        let (segment, _) = builder.finish(&[], &Threads::new(1))?;
        Arc::make_mut(&mut self.next.parts).push(Part::new(segment, self.inner.auto.seen()));
        self.inner.note_sealed();
        self.next.buffer = InsertBuffer::default();
        self.sealed = true;
        Ok(())
    }

    fn publish(mut self) {
        self.published = true;
        let next = std::mem::take(&mut self.next);
        self.inner.current.store(Arc::new(next));
    }
}

impl Drop for Draft<'_> {
    fn drop(&mut self) {
        if !self.published {
            for (part, row) in &self.ended {
                part.tombstones.revive(*row);
            }
        }
    }
}
