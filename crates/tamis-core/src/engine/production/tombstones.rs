//! Which rows of an immutable segment have been removed, and when.
//!
//! A tombstone holds the generation of the removal. A reader with an older view still sees the row. So a removal is one
//! store, and no reader waits or copies.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

pub struct Tombstones {
    rows: usize,
    /// The generation of the removal per row, 0 for the living. Not allocated until a row is removed.
    at: OnceLock<Box<[AtomicU64]>>,
    count: AtomicUsize,
    /// The generation of the last removal.
    latest: AtomicU64,
}

impl Tombstones {
    pub fn new(rows: usize) -> Self {
        Self { rows, at: OnceLock::new(), count: AtomicUsize::new(0), latest: AtomicU64::new(0) }
    }

    /// Whether any row was removed, in any generation.
    pub fn any(&self) -> bool {
        self.at.get().is_some()
    }

    pub fn count(&self) -> usize {
        self.count.load(Ordering::Acquire)
    }

    pub fn is_removed(&self, row: u32, generation: u64) -> bool {
        let removed = self.generation_of(row);
        removed != 0 && removed <= generation
    }

    /// 0 for the living.
    pub fn generation_of(&self, row: u32) -> u64 {
        self.at.get().map_or(0, |at| at[row as usize].load(Ordering::Acquire))
    }

    /// A number for what a reader of this generation sees removed: the same number means the same rows.
    pub fn seen_at(&self, generation: u64) -> u64 {
        self.latest.load(Ordering::Acquire).min(generation)
    }

    /// Ends a row as of `generation`, which is not published yet.
    pub fn end(&self, row: u32, generation: u64) {
        self.latest.fetch_max(generation, Ordering::AcqRel);
        let at = self.at.get_or_init(|| (0..self.rows).map(|_| AtomicU64::new(0)).collect());
        if at[row as usize].swap(generation, Ordering::AcqRel) == 0 {
            self.count.fetch_add(1, Ordering::AcqRel);
        }
    }

    /// Takes back an unpublished end.
    pub fn revive(&self, row: u32) {
        if let Some(at) = self.at.get()
            && at[row as usize].swap(0, Ordering::AcqRel) != 0
        {
            self.count.fetch_sub(1, Ordering::AcqRel);
        }
    }

    pub fn bytes(&self) -> usize {
        self.at.get().map_or(0, |at| at.len() * 8)
    }
}
