//! The ids of matches as a column of Arrow.
//!
//! Strings become a dictionary of those that occur, numbered in the order of their first appearance.

use std::sync::Arc;

use arrow_array::builder::StringBuilder;
use arrow_array::types::Int32Type;
use arrow_array::{ArrayRef, DictionaryArray, Int32Array, Int64Array};
use arrow_schema::DataType;
use rustc_hash::FxHashMap;

use crate::error::{Error, Result};
use crate::subscription::{IdKind, IdRef, Location};

/// The Arrow type of a column of ids. An index that never had a subscription has ids of no type yet; strings
/// are as good as any for a column without rows.
pub fn id_type(kind: Option<IdKind>) -> DataType {
    match kind {
        Some(IdKind::Int) => DataType::Int64,
        Some(IdKind::Str) | None => DataType::Dictionary(DataType::Int32.into(), DataType::Utf8.into()),
    }
}

/// The ids of some subscriptions; `part_sizes` says how many rows each part has, and last the buffer.
pub(super) fn id_column<'v>(
    kind: Option<IdKind>,
    part_sizes: &[usize],
    locations: &[Location],
    id: impl Fn(Location) -> IdRef<'v>,
) -> Result<ArrayRef> {
    if kind == Some(IdKind::Int) {
        let ids = locations.iter().map(|location| match id(*location) {
            IdRef::Int(id) => id,
            IdRef::Str(_) => unreachable!("an index has ids of one kind"),
        });
        return Ok(Arc::new(Int64Array::from_iter_values(ids)));
    }
    let mut codes = Codes::new(part_sizes, locations.len());
    let mut occurring = StringBuilder::new();
    let mut bytes = 0;
    let mut keys = Vec::with_capacity(locations.len());
    for location in locations {
        let (code, is_new) = codes.code(*location);
        if is_new && let IdRef::Str(id) = id(*location) {
            bytes += id.len();
            if bytes > i32::MAX as usize {
                return Err(Error::Argument(
                    "the ids of these matches take more than 2 GiB; match fewer events at once".into(),
                ));
            }
            occurring.append_value(id);
        }
        keys.push(code);
    }
    let column = DictionaryArray::<Int32Type>::try_new(Int32Array::from(keys), Arc::new(occurring.finish()));
    column.map(|column| Arc::new(column) as ArrayRef).map_err(|error| Error::Argument(error.to_string()))
}

/// Numbers locations in the order of their first appearance.
enum Codes {
    /// Where most of an index matches: a code per row, -1 for none yet. The buffer comes last.
    Dense { part_starts: Vec<usize>, codes: Vec<i32>, next: i32 },
    /// Where little of it does.
    Sparse(FxHashMap<(usize, u32), i32>),
}

const IN_BUFFER: usize = usize::MAX;

impl Codes {
    fn new(part_sizes: &[usize], locations: usize) -> Self {
        let total: usize = part_sizes.iter().sum();
        // A probe of a hash table costs about as much as filling sixteen places.
        if locations < total / 16 {
            return Codes::Sparse(FxHashMap::default());
        }
        let starts = part_sizes.iter().scan(0, |start, size| Some(std::mem::replace(start, *start + size)));
        Codes::Dense { part_starts: starts.collect(), codes: vec![-1; total], next: 0 }
    }

    fn code(&mut self, location: Location) -> (i32, bool) {
        match self {
            Codes::Dense { part_starts, codes, next } => {
                let at = match location {
                    Location::Row { part, row } => part_starts[part as usize] + row as usize,
                    Location::Buffer(at) => part_starts[part_starts.len() - 1] + at as usize,
                };
                if codes[at] >= 0 {
                    return (codes[at], false);
                }
                codes[at] = *next;
                *next += 1;
                (codes[at], true)
            }
            Codes::Sparse(codes) => {
                let key = match location {
                    Location::Row { part, row } => (part as usize, row),
                    Location::Buffer(at) => (IN_BUFFER, at),
                };
                let next = codes.len() as i32;
                let code = *codes.entry(key).or_insert(next);
                (code, code == next)
            }
        }
    }
}
