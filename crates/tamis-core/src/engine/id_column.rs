//! The ids of matches as Arrow columns.
//!
//! Strings become a dictionary, numbered in the order of their first appearance. Offsets into it have 32 bits, so a
//! dictionary that would outgrow them ends its column, and another column begins.

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

/// Bytes in one dictionary.
const MOST_BYTES: usize = i32::MAX as usize;

/// The ids of some subscriptions, in one column or in several, one after the other; `part_sizes` says how many
/// rows each part has, and last the buffer.
pub(super) fn id_columns<'v>(
    kind: Option<IdKind>,
    part_sizes: &[usize],
    locations: &[Location],
    id: impl Fn(Location) -> IdRef<'v>,
) -> Result<Vec<ArrayRef>> {
    let mut columns = vec![];
    let mut rest = locations;
    while !rest.is_empty() || columns.is_empty() {
        let column = first_ids(kind, part_sizes, rest, MOST_BYTES, &id)?;
        rest = &rest[column.len()..];
        columns.push(column);
    }
    Ok(columns)
}

/// The first ids, as many as fit into one column, and one at least.
fn first_ids<'v>(
    kind: Option<IdKind>,
    part_sizes: &[usize],
    locations: &[Location],
    most_bytes: usize,
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
            if bytes > most_bytes && !keys.is_empty() {
                break;
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

#[cfg(test)]
mod tests {
    use arrow_array::cast::AsArray;
    use arrow_array::{Array, StringArray};

    use super::*;

    #[test]
    fn a_dictionary_that_is_full_ends_its_column() {
        let names = ["a", "bb", "ccc", "dddd"];
        let name = |location: Location| match location {
            Location::Row { row, .. } => IdRef::Str(names[row as usize]),
            Location::Buffer(_) => unreachable!("nothing is in the buffer"),
        };
        let rows = [0, 1, 0, 2, 1, 3, 3, 0];
        let locations: Vec<_> = rows.iter().map(|row| Location::Row { part: 0, row: *row }).collect();
        for most in 0..12 {
            let mut found = vec![];
            while found.len() < locations.len() {
                let rest = &locations[found.len()..];
                let column = first_ids(Some(IdKind::Str), &[4, 0], rest, most, name).expect("it fits");
                let column = column.as_dictionary::<Int32Type>();
                let held: &StringArray = column.values().as_string();
                assert!(held.value_data().len() <= most || held.len() == 1);
                found.extend(column.keys().values().iter().map(|key| held.value(*key as usize).to_string()));
            }
            assert_eq!(found, rows.map(|row| names[row as usize]));
        }
        let none = id_columns(Some(IdKind::Str), &[4, 0], &[], name).expect("it fits");
        assert_eq!(none.iter().map(|column| column.len()).collect::<Vec<_>>(), [0]);
    }
}
