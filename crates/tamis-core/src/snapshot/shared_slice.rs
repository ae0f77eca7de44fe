//! `SharedSlice`: an immutable, shared slice of plain values that lives on the heap or inside a snapshot.
//!
//! An index is made of flat arrays. Freshly built they are vectors; opened from a snapshot they are pieces of
//! a mapped file. `SharedSlice` makes the two the same type, and reading it costs as much as reading a slice:
//! the address and the length are in the buffer itself, and the owner that keeps them alive is stored next to
//! them and never consulted.
//!
//! All `unsafe` of snapshots is in this file, and rests on three facts:
//!
//! 1. The owner (an `Arc`) lives at least as long as the buffer, and neither a `Vec` or memory behind an `Arc` nor a
//!    mapping ever moves or changes its bytes.
//! 2. `T: Pod`: every pattern of bits is a valid `T`, so damaged bytes can be wrong but never undefined
//!    behaviour.
//! 3. A snapshot file is replaced, never modified in place. The mapping holds the old file (its inode) alive
//!    after a rename has put a new one at its path, so the mapped bytes stay what they were.
//!
//! The third fact is a promise that other programs can break: one that *truncates* a mapped file in place
//! makes the next access to the lost pages raise SIGBUS, and one that overwrites it changes values under the
//! reader. [`Snapshot::check_unchanged`](super::Snapshot::check_unchanged) detects overwriting from the
//! header. [`Snapshot::open_copied`](super::Snapshot::open_copied) reads the file into memory, where neither
//! can happen.

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::ops::{Deref, Range};
use std::ptr::NonNull;
use std::sync::Arc;

use bytemuck::Pod;
use memmap2::{Mmap, MmapMut, MmapOptions};

/// An immutable, cheaply cloneable slice of plain values, owned or inside a snapshot.
///
/// ```
/// use tamis_core::SharedSlice;
///
/// let buffer = SharedSlice::from(vec![1u32, 2, 3]);
/// let same = buffer.clone(); // shares the values
/// assert_eq!(same[1..], [2, 3]);
/// assert_eq!(same.byte_len(), 12);
/// ```
pub struct SharedSlice<T: Pod> {
    start: NonNull<T>,
    len: usize,
    owner: Owner<T>,
}

/// What keeps the values of a buffer alive.
#[derive(Clone)]
enum Owner<T> {
    /// An empty buffer points at nothing.
    Nothing,
    // Only dropped, never read: the buffer reads through its own pointer.
    Vector(#[allow(dead_code)] Arc<Vec<T>>),
    Snapshot(#[allow(dead_code)] Arc<Memory>),
    Pages(#[allow(dead_code)] Arc<MmapMut>),
}

/// Values of this many bytes or more are put on huge pages: they are read at random, and with small pages
/// looking up the address takes longer than the value.
const HUGE_FROM: usize = 4 << 20;

// SAFETY: a buffer gives out shared references to `T` only, and its owner is an `Arc` of data that nobody
// changes, so it may go where `&T` and `Arc<Vec<T>>` may go.
unsafe impl<T: Pod + Send + Sync> Send for SharedSlice<T> {}
// SAFETY: as above.
unsafe impl<T: Pod + Send + Sync> Sync for SharedSlice<T> {}

impl<T: Pod> SharedSlice<T> {
    /// The values that lie in `bytes` of `memory`; `None` if they are out of bounds, are no whole number of
    /// values or are not aligned for `T`.
    pub(super) fn within(memory: &Arc<Memory>, bytes: Range<usize>) -> Option<Self> {
        let values: &[T] = bytemuck::try_cast_slice(memory.get(bytes)?).ok()?;
        Some(Self {
            start: NonNull::from(values).cast(),
            len: values.len(),
            owner: Owner::Snapshot(Arc::clone(memory)),
        })
    }

    /// Moves values to huge pages, from the end on. The vector shrinks meanwhile, so that they are not there twice.
    fn on_huge_pages(mut values: Vec<T>) -> std::result::Result<Self, Vec<T>> {
        let len = values.len();
        let Ok(mut mapping) = Memory::on_huge_pages(size_of_val(values.as_slice())) else {
            return Err(values);
        };
        let Ok(moved) = bytemuck::try_cast_slice_mut::<u8, T>(&mut mapping) else { return Err(values) };
        while !values.is_empty() {
            let from = values.len().saturating_sub((HUGE_FROM / size_of::<T>()).max(1));
            moved[from..values.len()].copy_from_slice(&values[from..]);
            values.truncate(from);
            values.shrink_to_fit();
        }
        let start = NonNull::from(&*moved).cast();
        Ok(Self { start, len, owner: Owner::Pages(Arc::new(mapping)) })
    }

    /// A part of the values, which shares them; `None` if it is out of bounds.
    ///
    /// ```
    /// # use tamis_core::SharedSlice;
    /// let buffer = SharedSlice::from(vec![1u32, 2, 3]);
    /// assert_eq!(buffer.slice(1..3).unwrap()[..], [2, 3]);
    /// assert!(buffer.slice(1..4).is_none());
    /// ```
    pub fn slice(&self, range: Range<usize>) -> Option<Self> {
        let part = self.get(range)?;
        Some(Self { start: NonNull::from(part).cast(), len: part.len(), owner: self.owner.clone() })
    }

    /// The size of the values in bytes.
    pub fn byte_len(&self) -> usize {
        size_of_val::<[T]>(self)
    }

    /// Whether the values are part of a snapshot rather than a vector of this buffer's own.
    pub fn is_in_snapshot(&self) -> bool {
        matches!(self.owner, Owner::Snapshot(_))
    }
}

impl<T: Pod> Deref for SharedSlice<T> {
    type Target = [T];

    #[inline(always)]
    fn deref(&self) -> &[T] {
        // SAFETY: `start` and `len` were taken from a slice of `owner`, which is alive, and whose values are
        // neither moved nor changed (facts 1 and 3 above); for an empty buffer without owner, `start` is
        // aligned and `len` is 0.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }
}

impl<T: Pod> From<Vec<T>> for SharedSlice<T> {
    fn from(values: Vec<T>) -> Self {
        if values.is_empty() {
            return Self::default();
        }
        let values = match size_of_val(values.as_slice()) >= HUGE_FROM {
            true => match Self::on_huge_pages(values) {
                Ok(moved) => return moved,
                Err(values) => values,
            },
            false => values,
        };
        let values = Arc::new(values);
        Self {
            start: NonNull::from(values.as_slice()).cast(),
            len: values.len(),
            owner: Owner::Vector(values),
        }
    }
}

impl<T: Pod> Default for SharedSlice<T> {
    fn default() -> Self {
        Self { start: NonNull::dangling(), len: 0, owner: Owner::Nothing }
    }
}

impl<T: Pod> Clone for SharedSlice<T> {
    fn clone(&self) -> Self {
        Self { start: self.start, len: self.len, owner: self.owner.clone() }
    }
}

impl<T: Pod + fmt::Debug> fmt::Debug for SharedSlice<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}

/// Bytes at an address that is a multiple of the size of a page: a mapped file, or anonymous memory.
pub(super) struct Memory(Mmap);

impl Memory {
    /// Maps the first `len` bytes of `file`, read-only.
    pub fn map(file: &File, len: usize) -> io::Result<Self> {
        // SAFETY: the file is not modified while it is mapped (fact 3 above; what happens if another program
        // does is said there too), and only ever read as `Pod` values (fact 2).
        unsafe { MmapOptions::new().len(len).map(file) }.map(Self)
    }

    /// Reads `len` bytes of `source` into memory for which the system is asked to use huge pages.
    pub fn copy(source: &mut impl Read, len: usize) -> io::Result<Self> {
        let mut mapping = Self::on_huge_pages(len)?;
        source.read_exact(&mut mapping[..len])?;
        mapping.make_read_only().map(Self)
    }

    /// Memory for `len` bytes, on huge pages if the system has some.
    fn on_huge_pages(len: usize) -> io::Result<MmapMut> {
        let mapping = MmapMut::map_anon(len.max(1))?;
        #[cfg(target_os = "linux")]
        let _ = mapping.advise(memmap2::Advice::HugePage); // only a wish
        Ok(mapping)
    }

    /// The eight bytes at `offset` as they are now, even if another program has changed the file.
    pub fn current_word(&self, offset: usize) -> u64 {
        let word = &self.0[offset..][..size_of::<u64>()];
        // SAFETY: the bytes lie inside the mapping, and any of them are a valid `u64`. Volatile, so that the
        // compiler neither keeps an older value nor assumes that it cannot change.
        u64::from_ne_bytes(unsafe { word.as_ptr().cast::<[u8; 8]>().read_volatile() })
    }
}

impl Deref for Memory {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}
