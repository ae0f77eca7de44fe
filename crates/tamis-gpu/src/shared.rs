//! State shared by the plans and lanes of a device: its driver, and its accounts of memory and time.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use serde_json::Value as Json;
use tamis_core::engine::device::{DeviceError, DeviceResult};

use crate::driver::{Address, Driver, Stream};
use crate::lane::Use;
use crate::pinned::Pinned;

/// What the time of a block goes to.
#[derive(Clone, Copy)]
pub enum Stage {
    Upload,
    Predicates,
    Units,
    Rows,
    Download,
}

const STAGES: [&str; 5] = ["upload", "predicates", "units", "rows", "download"];

/// The driver, and how much of the device's memory is taken.
pub struct Shared {
    pub driver: Box<dyn Driver>,
    pub pinned: Pinned,
    limit: u64,
    taken: AtomicU64,
    /// The part of it that lanes have.
    working: AtomicU64,
    /// Nanoseconds by stage, if they are taken: whoever takes them waits after each stage.
    stages: Option<[AtomicU64; STAGES.len()]>,
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.pinned.release(&*self.driver);
    }
}

impl Shared {
    pub fn new(driver: Box<dyn Driver>, limit: u64, timed: bool) -> Self {
        Self {
            driver,
            pinned: Pinned::default(),
            limit,
            taken: AtomicU64::new(0),
            working: AtomicU64::new(0),
            stages: timed.then(Default::default),
        }
    }

    /// Bytes of the device's memory that are taken.
    pub fn bytes(&self) -> u64 {
        self.taken.load(Ordering::Relaxed)
    }

    /// The seconds that went to each stage so far, if they are taken.
    pub fn seconds(&self) -> Option<Json> {
        let stages = self.stages.as_ref()?;
        let seconds = stages.each_ref().map(|stage| stage.load(Ordering::Relaxed) as f64 / 1e9);
        Some(STAGES.into_iter().zip(seconds).collect())
    }

    /// Ends a stage; says when the next one begins.
    pub fn end(&self, stage: Stage, stream: Stream, started: Instant) -> DeviceResult<Instant> {
        if let Some(stages) = &self.stages {
            self.driver.wait(stream)?;
            stages[stage as usize].fetch_add(started.elapsed().as_nanos() as u64, Ordering::Relaxed);
        }
        Ok(Instant::now())
    }

    pub fn allocate(&self, bytes: usize, used_for: Use) -> DeviceResult<Address> {
        let before = self.taken.fetch_add(bytes as u64, Ordering::Relaxed);
        let found = if before + bytes as u64 > self.limit {
            Err(self.too_large())
        } else {
            self.driver.allocate(bytes)
        };
        if found.is_err() {
            self.taken.fetch_sub(bytes as u64, Ordering::Relaxed);
        } else if used_for == Use::Work {
            self.working.fetch_add(bytes as u64, Ordering::Relaxed);
        }
        found
    }

    pub fn release(&self, address: Address, bytes: usize, used_for: Use) {
        self.driver.release(address, bytes);
        self.taken.fetch_sub(bytes as u64, Ordering::Relaxed);
        if used_for == Use::Work {
            self.working.fetch_sub(bytes as u64, Ordering::Relaxed);
        }
    }

    fn too_large(&self) -> DeviceError {
        DeviceError::of_memory(format!(
            "the index needs more than the {} bytes of device memory that it may take",
            self.limit
        ))
    }

    /// Fails unless a lane of this size finds room beside the plans.
    pub fn check_room(&self, lane: usize) -> DeviceResult<()> {
        // Two loads: in between, others may have given back.
        let plans = self.taken.load(Ordering::Relaxed).saturating_sub(self.working.load(Ordering::Relaxed));
        if plans + lane as u64 > self.limit { Err(self.too_large()) } else { Ok(()) }
    }
}
