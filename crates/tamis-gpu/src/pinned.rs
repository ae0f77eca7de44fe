//! Host memory that a device copies to at the speed of the link. Allocating it is slow, so it is reused.
//!
//! `unsafe`: the driver hands out addresses.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use tamis_core::engine::device::DeviceResult;

use crate::driver::{Address, Driver};
use crate::shared::Shared;

/// So much is kept for later.
const KEPT: usize = 2 << 30;
const SMALLEST: usize = 1 << 16;
/// Sizes are powers of two, or multiples of this.
const LARGE: usize = 1 << 26;

/// The pinned memory of a device: what is in use, and what is kept for later.
#[derive(Default)]
pub struct Pinned {
    bytes: AtomicU64,
    unused: Mutex<Vec<(Address, usize)>>,
}

impl Pinned {
    /// All that is allocated.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    fn lock(&self) -> MutexGuard<'_, Vec<(Address, usize)>> {
        self.unused.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Unused memory, or new.
    fn take(&self, driver: &dyn Driver, bytes: usize) -> DeviceResult<(Address, usize)> {
        if let Some(found) = self.take_unused(bytes) {
            return Ok(found);
        }
        let address = driver.allocate_pinned(bytes)?;
        self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        Ok((address, bytes))
    }

    /// The smallest that is large enough, and not far too large.
    fn take_unused(&self, bytes: usize) -> Option<(Address, usize)> {
        let mut held = self.lock();
        let fits = |(_, (_, size)): &(usize, &(Address, usize))| (bytes..=8 * bytes).contains(size);
        let at = held.iter().enumerate().filter(fits).min_by_key(|(_, (_, size))| *size)?.0;
        Some(held.swap_remove(at))
    }

    /// Keeps it if it is not too much, and releases it otherwise.
    fn give_back(&self, driver: &dyn Driver, (address, bytes): (Address, usize)) {
        let mut held = self.lock();
        let all: usize = held.iter().map(|(_, size)| size).sum();
        if all + bytes <= KEPT {
            held.push((address, bytes));
            return;
        }
        drop(held);
        self.free(driver, address, bytes);
    }

    fn free(&self, driver: &dyn Driver, address: Address, bytes: usize) {
        driver.release_pinned(address, bytes);
        self.bytes.fetch_sub(bytes as u64, Ordering::Relaxed);
    }

    /// Releases what nobody uses.
    pub fn release(&self, driver: &dyn Driver) {
        let unused = std::mem::take(&mut *self.lock());
        unused.into_iter().for_each(|(address, bytes)| self.free(driver, address, bytes));
    }
}

/// Words that a device copies to: in pinned memory, or in any if there is no more of that.
pub enum Words {
    Pinned { shared: Arc<Shared>, address: Address, bytes: usize, count: usize },
    Plain(Vec<u32>),
}

impl Words {
    /// So many words; they may be anything.
    pub fn new(shared: &Arc<Shared>, count: usize) -> DeviceResult<Self> {
        let bytes = match 4 * count {
            bytes if bytes > LARGE => bytes.next_multiple_of(LARGE),
            bytes => bytes.next_power_of_two().max(SMALLEST),
        };
        match shared.pinned.take(&*shared.driver, bytes) {
            Ok((address, bytes)) => Ok(Self::Pinned { shared: shared.clone(), address, bytes, count }),
            Err(error) if error.is_memory => Ok(Self::Plain(vec![0; count])),
            Err(error) => Err(error),
        }
    }

    pub fn as_mut(&mut self) -> &mut [u32] {
        match self {
            // SAFETY: the driver allocated so many bytes, and nobody else has them until they are given back. Any bytes are words;
            // the driver sets new ones to zero.
            Self::Pinned { address, count, .. } => unsafe {
                std::slice::from_raw_parts_mut(
                    std::ptr::with_exposed_provenance_mut(*address as usize),
                    *count,
                )
            },
            Self::Plain(words) => words,
        }
    }
}

impl AsRef<[u32]> for Words {
    fn as_ref(&self) -> &[u32] {
        match self {
            // SAFETY: as above.
            Self::Pinned { address, count, .. } => unsafe {
                std::slice::from_raw_parts(std::ptr::with_exposed_provenance(*address as usize), *count)
            },
            Self::Plain(words) => words,
        }
    }
}

impl Drop for Words {
    fn drop(&mut self) {
        if let Self::Pinned { shared, address, bytes, .. } = self {
            shared.pinned.give_back(&*shared.driver, (*address, *bytes));
        }
    }
}
