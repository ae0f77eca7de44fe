//! Many byte strings, one after the other in one array.

use super::arrays::{ArraysReader, ArraysWriter, are_starts};
use crate::snapshot::SharedSlice;

/// Number i is `bytes[starts[i]..starts[i + 1]]`.
#[derive(Debug, Default)]
pub(super) struct Texts {
    bytes: SharedSlice<u8>,
    starts: SharedSlice<u64>,
}

impl Texts {
    pub fn len(&self) -> usize {
        self.starts.len().saturating_sub(1)
    }

    #[inline]
    pub fn get(&self, number: usize) -> &[u8] {
        &self.bytes[self.starts[number] as usize..self.starts[number + 1] as usize]
    }

    pub fn len_of(&self, number: usize) -> usize {
        (self.starts[number + 1] - self.starts[number]) as usize
    }

    pub fn heap_bytes(&self) -> usize {
        self.bytes.byte_len() + self.starts.byte_len()
    }

    pub fn store(&self, out: &mut ArraysWriter) {
        out.put_bytes(&self.bytes);
        out.put_wide(&self.starts);
    }

    pub fn restore(arrays: &mut ArraysReader) -> Option<Self> {
        let (bytes, starts) = (arrays.take_bytes()?, arrays.take_wide()?);
        let texts = Self { bytes, starts };
        are_starts(&texts.starts, texts.len(), texts.bytes.len()).then_some(texts)
    }
}

#[derive(Default)]
pub(super) struct TextsBuilder {
    bytes: Vec<u8>,
    starts: Vec<u64>,
}

impl TextsBuilder {
    pub fn push(&mut self, text: &[u8]) {
        self.starts.push(self.bytes.len() as u64);
        self.bytes.extend_from_slice(text);
    }

    pub fn get(&self, number: usize) -> &[u8] {
        let end = self.starts.get(number + 1).map_or(self.bytes.len(), |end| *end as usize);
        &self.bytes[self.starts[number] as usize..end]
    }

    pub fn len(&self) -> usize {
        self.starts.len()
    }

    pub fn finish(mut self) -> Texts {
        if !self.starts.is_empty() {
            self.starts.push(self.bytes.len() as u64);
        }
        Texts { bytes: self.bytes.into(), starts: self.starts.into() }
    }
}
