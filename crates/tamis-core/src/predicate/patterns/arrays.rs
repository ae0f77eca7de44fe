//! Patterns in a snapshot: three long arrays. Each structure reads its pieces in the order in which it wrote
//! them. In an open snapshot the pieces are slices of the mapped file, so nothing is built and nothing is
//! copied.
//!
//! ```text
//!   numbers   3 a b c 2 d e 4 ...      before each piece its length, also for pieces of the other two arrays
//!   wide      ...                      of eight bytes
//!   bytes     ...
//! ```

use bytemuck::Pod;

use crate::snapshot::SharedSlice;

/// The arrays while they are written.
#[derive(Debug, Default)]
pub struct ArraysWriter {
    pub numbers: Vec<u32>,
    pub wide: Vec<u64>,
    pub bytes: Vec<u8>,
}

impl ArraysWriter {
    pub fn put_number(&mut self, number: u32) {
        self.numbers.push(number);
    }

    pub fn put(&mut self, numbers: &[u32]) {
        self.numbers.push(numbers.len() as u32);
        self.numbers.extend_from_slice(numbers);
    }

    pub fn put_wide(&mut self, values: &[u64]) {
        self.numbers.push(values.len() as u32);
        self.wide.extend_from_slice(values);
    }

    /// May be longer than 2³² bytes.
    pub fn put_bytes(&mut self, bytes: &[u8]) {
        self.numbers.extend([bytes.len() as u32, (bytes.len() as u64 >> 32) as u32]);
        self.bytes.extend_from_slice(bytes);
    }
}

/// The arrays of a snapshot, read from the front. Whoever takes a piece checks it: a file may hold anything.
#[derive(Clone, Default)]
pub struct ArraysReader {
    pub numbers: SharedSlice<u32>,
    pub wide: SharedSlice<u64>,
    pub bytes: SharedSlice<u8>,
}

impl ArraysReader {
    pub fn number(&mut self) -> Option<u32> {
        let number = *self.numbers.first()?;
        self.numbers = self.numbers.slice(1..self.numbers.len())?;
        Some(number)
    }

    pub fn take(&mut self) -> Option<SharedSlice<u32>> {
        let length = self.number()? as usize;
        front(&mut self.numbers, length)
    }

    pub fn take_wide(&mut self) -> Option<SharedSlice<u64>> {
        let length = self.number()? as usize;
        front(&mut self.wide, length)
    }

    pub fn take_bytes(&mut self) -> Option<SharedSlice<u8>> {
        let length = self.number()? as u64 | (self.number()? as u64) << 32;
        front(&mut self.bytes, usize::try_from(length).ok()?)
    }

    /// Whether nothing is left.
    pub fn is_empty(&self) -> bool {
        self.numbers.is_empty() && self.wide.is_empty() && self.bytes.is_empty()
    }
}

fn front<T: Pod>(values: &mut SharedSlice<T>, length: usize) -> Option<SharedSlice<T>> {
    let piece = values.slice(0..length)?;
    *values = values.slice(length..values.len())?;
    Some(piece)
}

/// Whether these are the starts of runs of an array of this many values: ascending, the last one its end. No runs may
/// have no starts.
pub(super) fn are_starts<T: Copy + Into<u64>>(starts: &[T], runs: usize, values: usize) -> bool {
    match starts.last() {
        None => runs == 0 && values == 0,
        Some(last) => {
            starts.len() == runs + 1
                && starts.is_sorted_by(|a, b| (*a).into() <= (*b).into())
                && (*last).into() == values as u64
        }
    }
}
