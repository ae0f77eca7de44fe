//! Working memory for one block of events at a time, and the stream that processes it.
//!
//! All plans on a device share its lanes: there are at most as many blocks on the device as lanes, whatever
//! their plans. If memory has no room for several lanes, one is enough.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};

use bytemuck::NoUninit;
use tamis_core::engine::device::DeviceResult;

use crate::driver::{Address, Stream};
use crate::shared::Shared;

/// Blocks that are on the device at once: while one is computed, others are copied.
const LANES: usize = 4;

/// What memory is taken for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    Plan,
    Work,
}

/// Memory of the device that is released when it goes.
pub struct Buffer {
    shared: Arc<Shared>,
    pub address: Address,
    bytes: usize,
    used_for: Use,
}

impl Buffer {
    pub fn new(shared: &Arc<Shared>, bytes: usize, used_for: Use) -> DeviceResult<Self> {
        let address = shared.allocate(bytes, used_for)?;
        Ok(Self { shared: shared.clone(), address, bytes, used_for })
    }

    /// A copy of words that are here; of a byte at least, so that there is an address.
    pub fn of_words<T: NoUninit>(shared: &Arc<Shared>, stream: Stream, words: &[T]) -> DeviceResult<Self> {
        let bytes: &[u8] = bytemuck::cast_slice(words);
        let buffer = Self::new(shared, bytes.len().max(1), Use::Plan)?;
        shared.driver.upload(stream, buffer.address, bytes)?;
        Ok(buffer)
    }

    /// Makes it as large as this at least; what it held is lost if it grows, which is told. It is gone before the larger one is there.
    pub fn reserve(&mut self, bytes: usize) -> DeviceResult<bool> {
        if bytes <= self.bytes {
            return Ok(false);
        }
        self.release();
        self.address = self.shared.allocate(bytes, self.used_for)?;
        self.bytes = bytes;
        Ok(true)
    }

    /// As [`reserve`](Self::reserve), with half as much again if it has grown before and there is room: for what grows often.
    pub fn reserve_generously(&mut self, bytes: usize) -> DeviceResult<bool> {
        let more = bytes.max(self.bytes + self.bytes / 2);
        if bytes <= self.bytes {
            return Ok(false);
        }
        self.reserve(more).or_else(|_| self.reserve(bytes))
    }

    fn release(&mut self) {
        if self.bytes > 0 {
            self.shared.release(self.address, self.bytes, self.used_for);
            self.bytes = 0;
        }
    }

    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        self.release();
    }
}

pub struct Lane {
    pub shared: Arc<Shared>,
    pub stream: Stream,
    /// Whether something was sent on the stream that nobody has waited for.
    pub is_under_way: bool,
    /// The number of the plan whose predicates are clear in its masks; 0 for none.
    pub plan: u64,
    pub masks: Buffer,
    /// By mask.
    pub summaries: Buffer,
    pub ranks: Buffer,
    pub present: Buffer,
    pub tokens: Buffer,
    /// By value that is looked up, its point.
    pub points: Buffer,
    /// Of a level, by kind, and those that are run lane by lane.
    pub tasks: Buffer,
    pub singles: Buffer,
    /// By level, how many there are of each.
    pub listed: Buffer,
    pub counts: Buffer,
    /// By chunk of rows and event.
    pub places: Buffer,
    /// By group of chunks and event.
    pub groups: Buffer,
    pub offsets: Buffer,
    pub found: Buffer,
    pub row_counts: Buffer,
    /// The best by relevance, and the bins of events.
    pub ranked: Buffer,
}

impl Lane {
    fn new(shared: &Arc<Shared>) -> DeviceResult<Self> {
        let buffer = || Buffer::new(shared, 4, Use::Work);
        Ok(Self {
            shared: shared.clone(),
            is_under_way: false,
            plan: 0,
            masks: buffer()?,
            summaries: buffer()?,
            ranks: buffer()?,
            present: buffer()?,
            tokens: buffer()?,
            points: buffer()?,
            tasks: buffer()?,
            singles: buffer()?,
            listed: buffer()?,
            counts: buffer()?,
            places: buffer()?,
            groups: buffer()?,
            offsets: buffer()?,
            found: buffer()?,
            row_counts: buffer()?,
            ranked: buffer()?,
            // Last: what comes before is released if it fails, and this is when the lane is.
            stream: shared.driver.new_stream()?,
        })
    }
}

impl Drop for Lane {
    fn drop(&mut self) {
        // After a failure, copies may still be under way. If the device is lost, none is.
        let _ = self.shared.driver.wait(self.stream);
        self.shared.driver.end_stream(self.stream);
    }
}

/// The lanes of a device.
pub struct Lanes {
    held: Mutex<Held>,
    freed: Condvar,
    /// How many plans use them.
    plans: AtomicUsize,
}

struct Held {
    free: Vec<Lane>,
    /// Those that are free, and those that are in use.
    made: usize,
    /// How many there may be: fewer when memory was short.
    most: usize,
}

impl Default for Lanes {
    fn default() -> Self {
        let held = Mutex::new(Held { free: vec![], made: 0, most: LANES });
        Self { held, freed: Condvar::new(), plans: AtomicUsize::new(0) }
    }
}

impl Lanes {
    fn lock(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Notes that a plan uses them.
    pub fn add_plan(&self) {
        self.plans.fetch_add(1, Ordering::AcqRel);
    }

    /// Notes that a plan is gone. After the last one, working memory is released.
    pub fn remove_plan(&self) {
        if self.plans.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.drop_idle();
        }
    }

    /// A lane, the one that a plan used last if it is free. Waits if there are as many as may be.
    fn take(&self, shared: &Arc<Shared>, plan: u64) -> DeviceResult<Lane> {
        let mut held = self.lock();
        loop {
            if let Some(last) = held.free.len().checked_sub(1) {
                let at = held.free.iter().position(|lane| lane.plan == plan).unwrap_or(last);
                return Ok(held.free.swap_remove(at));
            }
            if held.made < held.most {
                held.made += 1;
                drop(held);
                return Lane::new(shared).inspect_err(|_| self.forget());
            }
            held = self.freed.wait(held).unwrap_or_else(|poisoned| poisoned.into_inner());
        }
    }

    fn give_back(&self, lane: Lane) {
        let mut held = self.lock();
        if held.made > held.most {
            held.made -= 1;
            drop(held);
            drop(lane);
        } else {
            held.free.push(lane);
        }
        self.freed.notify_all();
    }

    /// Notes that a lane is gone.
    fn forget(&self) {
        self.lock().made -= 1;
        self.freed.notify_all();
    }

    /// Drops the lanes that nobody uses.
    pub fn drop_idle(&self) {
        let mut held = self.lock();
        held.made -= held.free.len();
        let idle = std::mem::take(&mut held.free);
        drop(held);
        drop(idle);
    }

    /// After memory was short: allows one lane less, and waits until there are no more than that. Says whether trying
    /// again makes sense.
    fn make_room(&self) -> bool {
        self.drop_idle();
        let mut held = self.lock();
        if held.most == 1 && held.made == 0 {
            return false;
        }
        held.most = (held.most - 1).max(1);
        while held.made >= held.most {
            held = self.freed.wait(held).unwrap_or_else(|poisoned| poisoned.into_inner());
            held.made -= held.free.len();
            drop(std::mem::take(&mut held.free));
        }
        true
    }

    /// Works with a lane. After a failure it is not used again: nobody knows what is in it. If memory was short, the work is
    /// done again when others have left more.
    pub fn with_lane<T>(
        &self,
        shared: &Arc<Shared>,
        plan: u64,
        mut work: impl FnMut(&mut Lane) -> DeviceResult<T>,
    ) -> DeviceResult<T> {
        loop {
            let outcome = self.take(shared, plan).and_then(|lane| {
                let mut taken = Taken { lanes: self, lane: Some(lane) };
                let done = taken.lane.as_mut().map(&mut work).expect("it was just taken")?;
                taken.lane.take().into_iter().for_each(|lane| self.give_back(lane));
                Ok(done)
            });
            match outcome {
                Err(error) if error.is_memory && self.make_room() => {}
                outcome => return outcome,
            }
        }
    }
}

/// A lane that is gone if it was not given back: after a failure, or a panic.
struct Taken<'a> {
    lanes: &'a Lanes,
    lane: Option<Lane>,
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        if let Some(lane) = self.lane.take() {
            drop(lane);
            self.lanes.forget();
        }
    }
}
