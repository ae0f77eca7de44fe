//! A few interleaved searches, so that the memory accesses of one overlap with the work of the others.

const MOST: usize = 16;

/// At most sixteen searches, without memory of their own.
pub struct Interleaved<T> {
    interleaved: [T; MOST],
    len: usize,
}

impl<T> Interleaved<T> {
    pub fn is_full(&self) -> bool {
        self.len == MOST
    }

    /// There must be room.
    #[inline]
    pub fn push(&mut self, search: T) {
        self.interleaved[self.len] = search;
        self.len += 1;
    }

    pub fn as_mut_slice(&mut self) -> &mut [T] {
        &mut self.interleaved[..self.len]
    }

    /// The searches; there are none from then on.
    pub fn take(&mut self) -> &[T] {
        &self.interleaved[..std::mem::take(&mut self.len)]
    }
}

impl<T: Copy + Default> Default for Interleaved<T> {
    fn default() -> Self {
        Self { interleaved: [T::default(); MOST], len: 0 }
    }
}
