//! Ranges: every comparison is a place relative to a *cut* between values.
//!
//! A cut lies just before or just after an operand. `x >= 5` means "above the cut before 5",
//! `x > 5` "above the cut after 5", `x < 5` "below the cut before 5". With the distinct cuts of an
//! attribute sorted, a value is above the first `rank` of them and below all others, so the
//! satisfied comparisons are two runs of consecutive bits. BETWEEN is above one and below another.
//!
//! ```text
//! cuts        c0    c1    c2    c3        value v between c1 and c2: rank 2
//! ABOVE bits   1     1     0     0        run  [above, above + rank)
//! BELOW bits   0     0     1     1        run  [below + rank, below + n)
//! ```

use bytemuck::{Pod, Zeroable};

use super::keys::{join, ordered_key, split};
use super::points::{text_at, text_place};
use crate::event::ValueRef;
use crate::snapshot::Buffer;

#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct CutTable {
    pub kind: u32,
    pub first: u32,
    pub len: u32,
    /// The bit of "above cut 0"; the others follow.
    pub above: u32,
    /// The bit of "below cut 0"; the others follow.
    pub below: u32,
    /// The root of the stabbing tree over access intervals, or `u32::MAX`.
    pub tree: u32,
}

impl CutTable {
    fn cuts<'a>(&self, all: &'a [[u64; 2]]) -> &'a [[u64; 2]] {
        &all[self.first as usize..(self.first + self.len) as usize]
    }
}

/// A cut as it is built: an operand and on which side of it the cut lies.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Cut {
    Keyed(u128),
    Text(Box<str>, bool),
}

impl Cut {
    pub fn new(operand: ValueRef<'_>, after: bool) -> Self {
        match operand {
            ValueRef::Str(text) => Cut::Text(text.into(), after),
            _ => Cut::Keyed(ordered_key(operand).expect("ranges compare scalars") << 1 | after as u128),
        }
    }

    /// The stored form; texts go to the pool.
    pub fn store(&self, pool: &mut Vec<u8>) -> [u64; 2] {
        match self {
            Cut::Keyed(key) => split(*key),
            Cut::Text(text, after) => {
                let place = text_place(pool.len(), text.len());
                pool.extend_from_slice(text.as_bytes());
                [place, *after as u64]
            }
        }
    }
}

/// How many cuts of the table lie below the value; `None` if it cannot be compared.
pub fn rank(cuts: &Buffer<[u64; 2]>, table: &CutTable, value: ValueRef<'_>, pool: &[u8]) -> Option<u32> {
    match value {
        ValueRef::Str(text) => Some(rank_of_text(cuts, table, text, pool)),
        _ => Some(rank_of_key(cuts, table, ordered_key(value)?)),
    }
}

/// The same for the [`ordered_key`] of a value.
pub fn rank_of_key(cuts: &Buffer<[u64; 2]>, table: &CutTable, key: u128) -> u32 {
    let key = key << 1 | 1;
    table.cuts(cuts).partition_point(|cut| join(*cut) < key) as u32
}

/// The same for a text.
pub fn rank_of_text(cuts: &Buffer<[u64; 2]>, table: &CutTable, text: &str, pool: &[u8]) -> u32 {
    let is_below = |cut: &[u64; 2]| match text_at(cut[0], pool).cmp(text.as_bytes()) {
        std::cmp::Ordering::Less => true,
        std::cmp::Ordering::Equal => cut[1] == 0,
        std::cmp::Ordering::Greater => false,
    };
    table.cuts(cuts).partition_point(is_below) as u32
}
