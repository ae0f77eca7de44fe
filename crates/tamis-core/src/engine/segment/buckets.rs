//! Reorders a large array with little more memory than the array itself takes.
//!
//! ```text
//! array, by unit   | c | a | d | b |        read from its end, which is given back as it is read
//! buckets          | b a |  | d c |         by where things will be; within a bucket in any order
//! array, in order  | a | b | c | d |        bucket by bucket, each given back once it is written
//! ```
//!
//! Two arrays would take twice the memory, and reading or writing either in random order costs a cache miss
//! per item. A bucket fits into the cache.

use memmap2::MmapMut;

/// Bytes of a bucket, more or less: what a cache holds.
const BUCKET: usize = if cfg!(test) { 1 << 10 } else { 4 << 20 };
/// Buckets of this many bytes are memory of their own: the allocator would keep it for itself.
const OWN_MEMORY: usize = 1 << 18;

/// How many buckets this many bytes make.
pub fn bucket_count(bytes: usize) -> usize {
    bytes.div_ceil(BUCKET).clamp(1, 256)
}

/// Bytes that are added once and read once.
pub struct Bucket {
    room: Room,
    len: usize,
}

enum Room {
    Heap(Vec<u8>),
    Own(MmapMut),
}

impl Bucket {
    /// A bucket for up to this many bytes. They take no memory before they are added.
    pub fn new(bytes: usize) -> Self {
        let own = if bytes < OWN_MEMORY { None } else { MmapMut::map_anon(bytes).ok() };
        Self { room: own.map_or_else(|| Room::Heap(vec![0; bytes]), Room::Own), len: 0 }
    }

    #[inline]
    pub fn push(&mut self, bytes: &[u8]) {
        let all: &mut [u8] = match &mut self.room {
            Room::Heap(all) => all,
            Room::Own(map) => map,
        };
        all[self.len..self.len + bytes.len()].copy_from_slice(bytes);
        self.len += bytes.len();
    }

    pub fn bytes(&self) -> &[u8] {
        let all: &[u8] = match &self.room {
            Room::Heap(all) => all,
            Room::Own(map) => map,
        };
        &all[..self.len]
    }
}

/// Gives back the end of an array, a few megabytes at a time.
pub fn give_back<T>(array: &mut Vec<T>, from: usize) {
    const AT_LEAST: usize = 4 << 20;
    if (array.len() - from) * size_of::<T>() >= AT_LEAST || from == 0 {
        array.truncate(from);
        array.shrink_to_fit();
    }
}
