//! Finds the value for a row of the batch in an array that may be indirect: the values of a dictionary, the fields of a
//! struct, the entries of a map.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use arrow_buffer::NullBuffer;
use arrow_buffer::bit_chunk_iterator::UnalignedBitChunk;
use arrow_buffer::bit_iterator::BitIndexIterator;

use crate::event::error::EventError;
use crate::prefetch::prefetch;

/// Marks a row without a value.
const ABSENT: u32 = u32::MAX;

/// If no more than one of so many rows has a value, each value is fetched by itself.
const FEW_OF: usize = 8;

const CACHE_LINE: usize = 64;

/// Which of the rows are present, counted from the first of them. Nothing is shared with other threads that do the same.
#[inline]
fn present_in<'n>(nulls: &'n NullBuffer, rows: &Range<usize>) -> BitIndexIterator<'n> {
    BitIndexIterator::new(nulls.validity(), nulls.offset() + rows.start, rows.len())
}

/// From the rows of a batch to the elements of one array.
#[derive(Clone)]
pub(super) struct Place {
    /// How many rows there are.
    pub len: usize,
    /// The element of each row; `None` when rows and elements are the same.
    elements: Option<Arc<[u32]>>,
    /// Which elements (not rows) are null.
    nulls: Option<NullBuffer>,
}

impl Place {
    /// Row and element are the same, and all are present.
    pub fn same(len: usize) -> Self {
        Self { len, elements: None, nulls: None }
    }

    /// The element of each row, one by one.
    pub fn scattered(elements: impl Iterator<Item = Option<usize>>) -> Result<Self, EventError> {
        let elements: Result<Arc<[u32]>, EventError> = elements
            .map(|element| match element.map(u32::try_from) {
                None => Ok(ABSENT),
                Some(Ok(element)) if element != ABSENT => Ok(element),
                Some(_) => Err(EventError::new("a column holds more than 2^32 elements")
                    .with_hint("split the table into smaller batches")),
            })
            .collect();
        let elements = elements?;
        Ok(Self { len: elements.len(), elements: Some(elements), nulls: None })
    }

    /// Elements that are null here are absent, besides those that were.
    pub fn without(mut self, nulls: Option<&NullBuffer>) -> Self {
        self.nulls = NullBuffer::union(self.nulls.as_ref(), nulls);
        self
    }

    /// The same without the elements of these rows.
    pub fn without_rows(self, rows: &BTreeSet<usize>) -> Result<Self, EventError> {
        if rows.is_empty() {
            return Ok(self);
        }
        Self::scattered((0..self.len).map(|row| self.element(row).filter(|_| !rows.contains(&row))))
    }

    /// The element of a row, or `None` when it has no value.
    #[inline]
    pub fn element(&self, row: usize) -> Option<usize> {
        let element = match &self.elements {
            None => row,
            Some(elements) => match elements[row] {
                ABSENT => return None,
                element => element as usize,
            },
        };
        match &self.nulls {
            Some(nulls) if nulls.is_null(element) => None,
            _ => Some(element),
        }
    }

    /// Calls `see` with each of the rows that has a value, and with its element, in order.
    #[inline]
    pub fn for_each(&self, rows: Range<usize>, mut see: impl FnMut(usize, usize)) {
        match (&self.elements, &self.nulls) {
            (None, None) => rows.for_each(|row| see(row, row)),
            (None, Some(nulls)) => {
                let first = rows.start;
                present_in(nulls, &rows).for_each(|at| see(first + at, first + at));
            }
            (Some(_), _) => rows.for_each(|row| {
                if let Some(at) = self.element(row) {
                    see(row, at);
                }
            }),
        }
    }

    /// Calls `fetch` with the elements that `for_each` will ask for, if they are so few that most memory between them is not
    /// needed. Otherwise it is read from end to end, and processors fetch ahead on their own.
    #[inline]
    pub fn fetch(&self, rows: Range<usize>, mut fetch: impl FnMut(usize)) {
        let (None, Some(nulls)) = (&self.elements, &self.nulls) else { return };
        let first = rows.start;
        let count = UnalignedBitChunk::new(nulls.validity(), nulls.offset() + first, rows.len()).count_ones();
        if count * FEW_OF <= rows.len() {
            present_in(nulls, &rows).for_each(|at| fetch(first + at));
        }
    }

    /// Fetches what says which of the rows have a value.
    pub fn fetch_presence(&self, rows: Range<usize>) {
        if let (None, Some(nulls)) = (&self.elements, &self.nulls) {
            let bytes = (nulls.offset() + rows.start) / 8..(nulls.offset() + rows.end).div_ceil(8);
            nulls.validity()[bytes].chunks(CACHE_LINE).for_each(|line| prefetch(&line[0]));
        }
    }

    /// The present rows, each with its element.
    pub fn present(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        (0..self.len).filter_map(|row| Some((row, self.element(row)?)))
    }

    /// The elements of other rows: one row for each of these; the same ones if none are given.
    pub fn through(&self, rows: Option<impl Iterator<Item = usize>>) -> Result<Self, EventError> {
        match rows {
            None => Ok(self.clone()),
            Some(rows) => Self::scattered(rows.map(|row| self.element(row))),
        }
    }

    /// The same presence for an array that was built with one element a row.
    pub fn by_row(&self) -> Self {
        if self.elements.is_none() {
            return self.clone();
        }
        let nulls: NullBuffer = (0..self.len).map(|row| self.element(row).is_some()).collect();
        Self { len: self.len, elements: None, nulls: Some(nulls) }
    }
}
