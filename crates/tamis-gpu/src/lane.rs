//! Working memory for one block of events at a time, and the stream on which it is worked on.

use std::sync::Arc;

use tamis_core::engine::device::DeviceResult;

use crate::driver::{Address, Stream};
use crate::evaluator::Shared;

/// Memory of the device that is released when it goes.
pub struct Buffer {
    shared: Arc<Shared>,
    pub address: Address,
    bytes: usize,
}

impl Buffer {
    pub fn new(shared: &Arc<Shared>, bytes: usize) -> DeviceResult<Self> {
        let address = shared.allocate(bytes)?;
        Ok(Self { shared: shared.clone(), address, bytes })
    }

    /// A copy of what is here; of one word at least, so that there is an address.
    pub fn of_words(shared: &Arc<Shared>, stream: Stream, words: &[u32]) -> DeviceResult<Self> {
        let buffer = Self::new(shared, 4 * words.len().max(1))?;
        shared.driver.upload(stream, buffer.address, bytemuck::cast_slice(words))?;
        Ok(buffer)
    }

    /// Makes it as large as this at least; what it held is lost if it grows. It is gone before the larger one is there.
    pub fn reserve(&mut self, bytes: usize) -> DeviceResult<()> {
        if bytes > self.bytes {
            let larger = bytes.max(self.bytes + self.bytes / 2);
            self.release();
            self.address = self.shared.allocate(larger)?;
            self.bytes = larger;
        }
        Ok(())
    }

    fn release(&mut self) {
        if self.bytes > 0 {
            self.shared.release(self.address, self.bytes);
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
    pub masks: Buffer,
    /// How many masks there is room for.
    pub mask_count: u32,
    pub ranks: Buffer,
    pub present: Buffer,
    pub tokens: [Buffer; 3],
    pub counts: Buffer,
    /// By chunk of rows and event.
    pub places: Buffer,
    pub offsets: Buffer,
    pub listed: Buffer,
}

impl Drop for Lane {
    fn drop(&mut self) {
        self.shared.driver.end_stream(self.stream);
    }
}
