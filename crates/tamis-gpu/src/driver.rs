//! The interface of a driver: memory, copies and launches.

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
    /// Of tasks: units that are all leaves or any leaf.
    EvaluateFlat = 4,
    /// Of units that are groups of leaves.
    EvaluateGroups = 5,
    EvaluateOther = 6,
    CountChunks = 7,
    Scan = 8,
    ListChunks = 9,
    CountEvents = 10,
    /// Of the first rows of each event.
    TakeFirst = 11,
    /// Of units that are all of some sets of leaves.
    EvaluateSets = 12,
    /// Finds out which units of a level may hold, and lists them.
    LookAhead = 13,
    /// Of units that may hold in few lanes, lane by lane.
    RunSingles = 14,
    /// Of values in tables of points and cuts.
    LookUp = 15,
    /// Of all rows of all events, without order.
    ListFew = 16,
    /// Of the best by relevance: nothing is found yet.
    StartBest = 17,
    /// Finds out for which events chunks of rows may be good enough.
    Want = 18,
    /// Puts what is good enough into the bins of its events.
    ScoreRows = 19,
    /// Takes the best of each bin.
    KeepBest = 20,
}

/// The names of the kernels, by number.
pub const NAMES: [&str; 21] = [
    "scatter_bits",
    "scatter_points",
    "scatter_ranks",
    "cuts",
    "evaluate_flat",
    "evaluate_groups",
    "evaluate_other",
    "count_chunks",
    "scan",
    "list_chunks",
    "count_events",
    "take_first",
    "evaluate_sets",
    "look_ahead",
    "run_singles",
    "look_up",
    "list_few",
    "start_best",
    "want",
    "score_rows",
    "keep_best",
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

    /// Memory of this machine, set to zero, that is copied to without help.
    fn allocate_pinned(&self, bytes: usize) -> DeviceResult<Address>;

    fn release_pinned(&self, address: Address, bytes: usize);

    fn new_stream(&self) -> DeviceResult<Stream>;

    fn end_stream(&self, stream: Stream);

    /// Copies after what was launched before. The bytes may be changed when it returns, but not if they are pinned: then they stay
    /// until the stream is waited for.
    fn upload(&self, stream: Stream, to: Address, bytes: &[u8]) -> DeviceResult<()>;

    /// Waits for what was launched before, and copies.
    fn download(&self, stream: Stream, from: Address, into: &mut [u8]) -> DeviceResult<()>;

    fn wait(&self, stream: Stream) -> DeviceResult<()>;

    fn fill_with_zeros(&self, stream: Stream, at: Address, bytes: usize) -> DeviceResult<()>;

    fn launch(&self, stream: Stream, kernel: Kernel, threads: u64, arguments: &[u64]) -> DeviceResult<()>;
}
