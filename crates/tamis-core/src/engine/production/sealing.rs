//! Turns the insert buffer into segments on a separate thread while no events come.
//!
//! Without events, the buffer grows to several blocks, which then become one larger segment. That takes less
//! time than building a small segment per block and merging them, and the writer does not wait. Once an event
//! has come, a full block becomes a segment at once, because subscriptions in the buffer are tried one by
//! one.
//!
//! ```text
//! events come      | block → segment | block → segment |          by the writer
//! none come        | block | block | block | … → segment          by the thread
//! ```

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use super::exclusive_work::{TakenIn, Turn};
use super::insert_buffer::BLOCK;
use super::view::{Part, View};
use super::{Inner, as_events, merge};
use crate::engine::segment::buffered_subscription::BufferedSubscription;
use crate::engine::segment::{SegmentBuilder, Threads};
use crate::error::Result;
use crate::event::Terms;
use crate::fork::{Busy, Mutex};

/// Subscriptions that the thread waits for: as many as a first merge puts together, so that there is one merge less.
const WAITS_FOR: usize = if cfg!(test) { 2 * BLOCK } else { 16 * BLOCK };
/// With more, the thread cannot keep up, and the writer makes a segment itself.
const MOST: usize = 3 * WAITS_FOR;
/// How long the thread waits at most, and how often it looks.
const PATIENCE: Duration = Duration::from_millis(50);
const LOOKS_EVERY: Duration = Duration::from_millis(2);

#[derive(Default)]
pub(super) struct Sealing {
    thread_in: TakenIn,
    /// An event has come since a segment was made of the buffer.
    asked: AtomicBool,
    /// What segments were made of, for the writer to drop. Its names and its memory are those that the writer uses next: two
    /// threads that count references to the same names, and give back memory of one another, take twice the time.
    remains: Mutex<Vec<Remains>>,
    has_remains: AtomicBool,
}

/// The last version with some subscriptions in the buffer, and these.
type Remains = (Arc<View>, Vec<Arc<BufferedSubscription>>);

impl Sealing {
    /// Whether a thread of this process waits or is at work.
    pub fn is_at_work(&self) -> bool {
        self.thread_in.is_taken()
    }

    pub fn note_sealed(&self) {
        self.asked.store(false, Ordering::Relaxed);
    }

    /// Drops what segments were made of.
    #[inline]
    pub fn drop_remains(&self) {
        if self.has_remains.load(Ordering::Relaxed) {
            let remains = {
                let mut remains = self.remains.lock();
                self.has_remains.store(false, Ordering::Relaxed);
                std::mem::take(&mut *remains)
            };
            drop(remains);
        }
    }

    fn leave(&self, remains: Remains) {
        let mut all = self.remains.lock();
        all.push(remains);
        self.has_remains.store(true, Ordering::Relaxed);
    }
}

/// Whether the writer has to make a segment of a buffer of this size, because no other thread will, or not
/// soon enough.
pub(super) fn is_up_to_writer(inner: &Arc<Inner>, buffered: usize) -> bool {
    let sealing = &inner.sealing;
    buffered >= BLOCK
        && (buffered >= MOST
            || sealing.asked.load(Ordering::Relaxed)
            || !sealing.is_at_work() && !start(inner))
}

/// Notes that an event came. If it had to try more than a block, they become a segment now.
#[inline]
pub(super) fn note_event(inner: &Arc<Inner>) {
    if !inner.sealing.asked.load(Ordering::Relaxed) {
        note_first_event(inner);
    }
}

#[cold]
fn note_first_event(inner: &Arc<Inner>) {
    inner.sealing.asked.store(true, Ordering::Relaxed);
    if inner.current.load().buffer.len() > BLOCK
        && let Some(_busy) = Busy::unless_forking()
    {
        start(inner);
    }
}

/// Starts the thread; false if there can be none.
fn start(inner: &Arc<Inner>) -> bool {
    let Some(turn) = Turn::take(inner, |inner| &inner.sealing.thread_in) else { return true };
    std::thread::Builder::new().name("tamis-seal".into()).spawn(move || work(turn)).is_ok()
}

fn work(turn: Turn) {
    let mut turn = turn;
    loop {
        wait(&turn.inner);
        // An error leaves the buffer as it is; the writer that meets it next reports it.
        let outcome = seal_apart(&turn.inner);
        let inner = turn.inner.clone();
        merge::merge_in_background(&inner);
        if outcome.is_ok() && inner.current.load().buffer.len() >= BLOCK {
            continue;
        }
        // No writer came for them.
        inner.sealing.drop_remains();
        drop(turn);
        // What filled a block in between was left to this thread.
        if outcome.is_err() || inner.current.load().buffer.len() < BLOCK {
            return;
        }
        match Turn::take(&inner, |inner| &inner.sealing.thread_in) {
            Some(next) => turn = next,
            None => return,
        }
    }
}

/// Waits until a segment is worth making, or an event came.
fn wait(inner: &Inner) {
    let started = Instant::now();
    while inner.current.load().buffer.len() < WAITS_FOR
        && !inner.sealing.asked.load(Ordering::Relaxed)
        && started.elapsed() < PATIENCE
    {
        std::thread::sleep(LOOKS_EVERY);
    }
}

/// Makes a segment of what lies in the buffer now. The writer's lock is held only to put it there.
fn seal_apart(inner: &Inner) -> Result<()> {
    if let Some(made) = Made::from(inner)? {
        made.publish(inner);
    }
    Ok(())
}

/// A segment of what lay in the buffer.
struct Made {
    part: Part,
    /// By row.
    taken: Vec<Arc<BufferedSubscription>>,
}

impl Made {
    fn from(inner: &Inner) -> Result<Option<Self>> {
        let started = inner.current.load_full();
        if started.buffer.is_empty() {
            return Ok(None);
        }
        let mut taken: Vec<_> = started.buffer.iter().cloned().collect();
        let builder = build(&mut taken, started.terms.clone())?;
        let (segment, _) = builder.finish(&as_events(&inner.samples.snapshot()), &Threads::new(1))?;
        Ok(Some(Self { part: Part::new(segment, inner.auto.seen()), taken }))
    }

    /// Puts it in the place of what it was made of.
    fn publish(self, inner: &Inner) {
        let _lock = inner.writer.lock();
        let mut next = View::clone(&inner.current.load());
        let (others, are_here) = next.buffer.separate(&self.taken);
        // Others were removed meanwhile, or another thread made a segment of them.
        for (row, _) in are_here.iter().enumerate().filter(|(_, is_here)| !**is_here) {
            self.part.tombstones.end(row as u32, next.generation);
        }
        next.buffer = others;
        next.owners = OnceLock::new();
        if self.part.living() > 0 {
            Arc::make_mut(&mut next.parts).push(self.part);
        }
        inner.note_sealed();
        inner.sealing.leave((inner.current.swap(Arc::new(next)), self.taken));
    }
}

/// A segment of these subscriptions, which are sorted by id.
pub(super) fn build(buffered: &mut [Arc<BufferedSubscription>], terms: Terms) -> Result<SegmentBuilder> {
    buffered.sort_by(|a, b| a.subscription.id.cmp(&b.subscription.id));
    let mut builder = SegmentBuilder::new(terms);
    buffered.iter().try_for_each(|held| builder.push_buffered(held))?;
    Ok(builder)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::engine::contract::{Change, Engine, Version, Workspace};
    use crate::engine::production::Production;
    use crate::event::json::read_record;
    use crate::expr::parser::parse;
    use crate::query::{Filter, Tags};
    use crate::subscription::{Id, IdRef, Subscription};

    /// True for one value of x.
    fn subscription(id: i64, x: i64) -> Subscription {
        let mut made = Subscription::new(Id::Int(id), parse(&format!("x = {x} OR y < {}", -x)).unwrap());
        made.owner = Some(format!("owner {}", x % 7).into());
        made
    }

    /// The ids that match an event with this x, in this version.
    fn matches(version: &dyn Version, x: i64) -> Vec<i64> {
        let record = read_record(format!("{{\"x\": {x}}}").as_bytes()).unwrap();
        let (event, tags) = (record.resolve(version.terms()), Tags::default());
        let (found, _) = version.matches(&event, &Filter { tags: &tags, now: 0 }, &mut Workspace::default());
        let id = |id: IdRef<'_>| match id {
            IdRef::Int(id) => id,
            IdRef::Str(_) => unreachable!("all ids are numbers"),
        };
        found.into_iter().map(|at| id(version.id(at))).collect()
    }

    fn owner(version: &View, id: i64) -> String {
        let number = version.owners().number(version, version.locate(&Id::Int(id)).unwrap());
        version.owners().name(number.unwrap()).into()
    }

    #[test]
    fn what_changes_while_a_segment_is_made_is_not_undone() {
        let index = Production::default();
        (0..100).for_each(|id| index.apply(Change::Add(subscription(id, id % 10))).unwrap());
        let before = index.view();
        let all: Vec<i64> = (0..100).collect();
        let with = |x: i64| all.iter().copied().filter(move |id| id % 10 == x).collect::<Vec<_>>();
        assert_eq!(owner(&before, 99), "owner 2");
        let made = Made::from(&index.inner).unwrap().unwrap();
        index.apply(Change::Remove(Id::Int(3))).unwrap();
        index.apply(Change::Replace(subscription(4, 5))).unwrap();
        index.apply(Change::Add(subscription(100, 3))).unwrap();
        let generation = index.view().generation;
        assert_eq!(owner(&index.view(), 99), "owner 2", "made for this version");
        made.publish(&index.inner);
        let after = index.view();
        assert_eq!((after.generation, after.len), (generation, 100));
        assert_eq!((after.parts.len(), after.buffer.len()), (1, 2), "the new ones and the replaced one");
        assert_eq!(matches(&*after, 3), [&with(3)[1..], &[100]].concat());
        assert_eq!(matches(&*after, 4), with(4)[1..]);
        assert_eq!(matches(&*after, 5), [vec![4], with(5)].concat());
        assert!(after.locate(&Id::Int(3)).is_none());
        assert_eq!((owner(&after, 99), owner(&after, 100)), ("owner 2".into(), "owner 3".into()));
        assert_eq!(after.subscription(after.locate(&Id::Int(4)).unwrap()).unwrap(), subscription(4, 5));
        // Whoever holds the version before sees what it held.
        assert_eq!((matches(&*before, 3), matches(&*before, 4)), (with(3), with(4)));
    }

    #[test]
    fn what_somebody_else_made_a_segment_of_is_there_once() {
        let index = Production::default();
        (0..100).for_each(|id| index.apply(Change::Add(subscription(id, 1))).unwrap());
        let made = Made::from(&index.inner).unwrap().unwrap();
        index.optimize().unwrap();
        made.publish(&index.inner);
        assert_eq!(index.view().parts.len(), 1);
        assert_eq!(matches(&*index.view(), 1), (0..100).collect::<Vec<_>>());
        assert!(Made::from(&index.inner).unwrap().is_none());
    }

    #[test]
    fn without_events_the_thread_makes_segments_and_with_them_the_writer() {
        let index = Production::default();
        let add = |ids: std::ops::Range<i64>| {
            ids.for_each(|id| index.apply(Change::Add(subscription(id, id))).unwrap());
        };
        add(0..BLOCK as i64 + 1);
        // The thread waits for more, or has made one segment of all; a writer would have left the last one.
        assert!(index.is_optimizing() || index.view().buffer.is_empty());
        while index.is_optimizing() {
            std::thread::sleep(Duration::from_millis(1));
        }
        assert!(index.view().buffer.len() < BLOCK, "nobody waits for ever");
        let (blocks, buffered) = (index.view().parts.len(), index.view().buffer.len());
        // After an event, each block becomes a segment at once.
        note_event(&index.inner);
        add(1000..1000 + (BLOCK - buffered) as i64);
        assert_eq!((index.view().parts.len(), index.view().buffer.len()), (blocks + 1, 0));
        // However fast insertions come, the buffer has a limit.
        for id in 5000..5000 + 3 * MOST as i64 {
            index.apply(Change::Add(subscription(id, id))).unwrap();
            assert!(index.view().buffer.len() < MOST);
        }
        // Many events are worth waiting for a segment, few are not; readers never wait for a writer.
        add(20_000..20_000 + 2 * BLOCK as i64);
        let writer = index.inner.writer.lock();
        index.expect_events(100_000);
        drop(writer);
        while index.view().buffer.len() > BLOCK {
            index.expect_events(100_000); // does nothing while the thread has the lock
        }
    }

    /// Every kind of change, with events now and then, while the thread and merges are at work.
    #[test]
    fn random_changes_leave_what_they_leave_in_a_map() {
        let index = Production::default();
        let mut expected: BTreeMap<i64, i64> = BTreeMap::new();
        let mut draw = 1u64;
        let mut next = |below: u64| {
            draw = draw.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (draw >> 33) % below
        };
        for step in 0..12_000 {
            let (id, x) = (next(3_000) as i64, next(20) as i64);
            let change = match (next(10), expected.contains_key(&id)) {
                (0..=1, true) => Change::Remove(Id::Int(id)),
                (2..=3, true) => Change::Replace(subscription(id, x)),
                (4, _) | (_, true) => Change::Upsert(subscription(id, x)),
                _ => Change::Add(subscription(id, x)),
            };
            match &change {
                Change::Remove(_) => drop(expected.remove(&id)),
                _ => drop(expected.insert(id, x)),
            }
            index.apply(change).unwrap();
            // Stretches without events, and some with.
            if step % 1_000 == 999 || step % 4_000 > 3_500 && step % 50 == 0 {
                let x = next(20) as i64;
                let ids: Vec<i64> = expected.iter().filter(|(_, of)| **of == x).map(|(id, _)| *id).collect();
                assert_eq!(matches(&*index.view(), x), ids, "step {step}");
                note_event(&index.inner);
            }
        }
        assert_eq!(index.view().len, expected.len());
        index.optimize().unwrap();
        let last = index.view();
        assert_eq!((last.parts.len(), last.buffer.len(), last.len), (1, 0, expected.len()));
    }
}
