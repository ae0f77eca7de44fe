//! Paths in documents: finds all paths on one attribute that a document satisfies.
//!
//! Each path has a bit, and one more bit says that there is a document at all, well-formed and within the limits.
//! `NOT xpath(...)` is "that bit is set, and the path's is clear", so false paths cost nothing.

use tamis_xpath::{Path, PathSet, PathSetBuilder};

use super::path_texts;
use super::residual::{number, put, take};
use crate::xml::with_document;

pub struct PathPredicates {
    document_bit: u32,
    first_bit: u32,
    set: PathSet,
}

impl PathPredicates {
    /// From the texts of paths, which get consecutive bits; `None` if one of them is no path.
    pub fn new<'t>(
        document_bit: u32,
        first_bit: u32,
        texts: impl IntoIterator<Item = &'t str>,
    ) -> Option<Self> {
        let mut builder = PathSetBuilder::with_text_index(path_texts::make_index);
        for text in texts {
            builder.add(&Path::parse(text).ok()?);
        }
        Some(Self { document_bit, first_bit, set: builder.finish() })
    }

    /// After the last of its bits.
    pub fn end_bit(&self) -> u32 {
        (self.first_bit + self.set.len() as u32).max(self.document_bit + 1)
    }

    /// Calls `set` with the bits that a document sets.
    pub fn fire(&self, text: &str, set: &mut impl FnMut(u32)) {
        with_document(text, |document| {
            let Some(document) = document else { return };
            set(self.document_bit);
            self.set.matches(document, &mut |path| set(self.first_bit + path));
        });
    }

    pub fn heap_bytes(&self) -> usize {
        self.set.heap_bytes()
    }

    /// Appends the stored form: how many there are and, if any, their bits and texts.
    pub fn encode(paths: Option<&Self>, out: &mut Vec<u8>) {
        let Some(paths) = paths else { return put(out, 0) };
        put(out, paths.set.len() as u32);
        put(out, paths.document_bit);
        put(out, paths.first_bit);
        paths.set.for_each_text(&mut |text| {
            put(out, text.len() as u32);
            out.extend_from_slice(text.as_bytes());
        });
    }

    /// Reads what [`encode`](Self::encode) wrote; the outer `None` if it is something else.
    pub fn decode(bytes: &mut &[u8]) -> Option<Option<Self>> {
        let count = number(bytes)?;
        if count == 0 {
            return Some(None);
        }
        let (document_bit, first_bit) = (number(bytes)?, number(bytes)?);
        first_bit.checked_add(count).filter(|_| document_bit < u32::MAX)?;
        let mut builder = PathSetBuilder::with_text_index(path_texts::make_index);
        for _ in 0..count {
            let length = number(bytes)? as usize;
            let text = std::str::from_utf8(take(bytes, length)?).ok()?;
            builder.add(&Path::parse(text).ok()?);
        }
        Some(Some(Self { document_bit, first_bit, set: builder.finish() }))
    }
}
