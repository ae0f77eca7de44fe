//! What is asked of a driver: memory, copies and launches.

use serde_json::Value as Json;
use tamis_core::engine::device::DeviceResult;

/// A place in the memory of the device.
pub type Address = u64;

/// Launches on one stream follow one another.
pub type Stream = u64;

#[derive(Clone, Copy, Debug)]
#[repr(u32)]
pub enum Kernel {
    ScatterBits = 0,
    ScatterPoints = 1,
    ScatterRanks = 2,
    Cuts = 3,
    Evaluate = 4,
    CountChunks = 5,
    Scan = 6,
    ListChunks = 7,
}

/// The names of the kernels, by number.
pub const NAMES: [&str; 8] = [
    "scatter_bits",
    "scatter_points",
    "scatter_ranks",
    "cuts",
    "evaluate",
    "count_chunks",
    "scan",
    "list_chunks",
];

/// Threads that share a processor of the device: see `__launch_bounds__` in `kernels.cu`.
pub const THREADS_PER_BLOCK: u64 = 256;

pub trait Driver: Send + Sync {
    fn describe(&self) -> Json;

    /// Bytes that are free.
    fn free_memory(&self) -> DeviceResult<u64>;

    /// Warps that run at once.
    fn warps(&self) -> u64;

    fn allocate(&self, bytes: usize) -> DeviceResult<Address>;

    fn release(&self, address: Address, bytes: usize);

    fn new_stream(&self) -> DeviceResult<Stream>;

    fn end_stream(&self, stream: Stream);

    fn upload(&self, stream: Stream, to: Address, bytes: &[u8]) -> DeviceResult<()>;

    /// Waits for what was launched before, and copies.
    fn download(&self, stream: Stream, from: Address, into: &mut [u8]) -> DeviceResult<()>;

    fn fill_with_zeros(&self, stream: Stream, at: Address, bytes: usize) -> DeviceResult<()>;

    fn launch(&self, stream: Stream, kernel: Kernel, threads: u64, arguments: &[u64]) -> DeviceResult<()>;
}
