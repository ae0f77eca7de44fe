//! Values that a device looks up: their encoding as numbers, and the tables for the lookup.
//!
//! A scalar that has a key (see [`keys`](super::keys)) is sent as the 64 leading bits of it. The remaining
//! bits are the same for nearly all values of a kind: booleans, timestamps, floats, and integers of up to
//! 2^53 in magnitude. The others are looked up on the processor.

use std::ops::Range;

use super::catalog::{AttributeEntry, Catalog};
use super::keys::ordered_key;
use crate::event::ValueRef;
use crate::event::number::DISTANCE_BITS;
use crate::event::value::Kind;

/// The kinds of values that have keys. Each attribute has a table for each of them.
const KINDS: [Kind; 3] = [Kind::Bool, Kind::Number, Kind::Timestamp];

/// What values of one attribute and kind are compared with.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeyedTable {
    /// Numbers of points, sorted by key.
    pub points: Range<u32>,
    /// The number of the table of cuts, if there is one.
    pub cuts: Option<u32>,
    /// Bits that each value sets, or 0: that there is a value, and that it is of this kind.
    pub bits: [u32; 2],
    /// What follows the leading bits of keys.
    pub distance: u32,
}

impl KeyedTable {
    /// Whether no predicate uses such values.
    pub fn is_empty(&self) -> bool {
        self.points.is_empty() && self.cuts.is_none() && self.bits == [0; 2]
    }
}

/// Takes values that are looked up elsewhere.
pub trait Delegate {
    /// Whether it takes any.
    const TAKES: bool;

    fn value(&mut self, event: u32, table: u32, head: u64);
}

/// Delegates all values.
pub struct Nobody;

impl Delegate for Nobody {
    const TAKES: bool = false;

    fn value(&mut self, _: u32, _: u32, _: u64) {}
}

/// A key in two parts: what is sent of it, and what is the same for nearly all values.
#[inline]
pub fn head_and_distance(key: u128) -> (u64, u32) {
    ((key >> DISTANCE_BITS) as u64, key as u32 & ((1 << DISTANCE_BITS) - 1))
}

/// The distance of values that are sent.
fn distance_of(kind: Kind) -> u32 {
    let sample = match kind {
        Kind::Number => ValueRef::Float(0.0),
        _ => ValueRef::Bool(false),
    };
    ordered_key(sample).map_or(0, |key| head_and_distance(key).1)
}

/// Which values of one attribute are sent.
#[derive(Clone, Copy)]
pub struct Delegated {
    /// The number of the attribute's first table.
    first: u32,
    is_asked: [bool; KINDS.len()],
    distances: [u32; KINDS.len()],
}

impl Delegated {
    /// The table and the leading bits of a value that is sent, or `None` if it is not. No table if nobody asks for its kind.
    #[inline(always)]
    pub fn place(&self, value: ValueRef<'_>) -> Option<(Option<u32>, u64)> {
        let at = match value {
            ValueRef::Bool(_) => 0,
            ValueRef::Int(_) | ValueRef::Float(_) | ValueRef::Decimal(_) => 1,
            ValueRef::Timestamp(_) => 2,
            _ => return None,
        };
        let (head, distance) = head_and_distance(ordered_key(value)?);
        (distance == self.distances[at])
            .then_some((self.is_asked[at].then_some(self.first + at as u32), head))
    }
}

impl Catalog {
    /// Which values of an attribute are sent, if any: not if some have to be looked at one by one, or if it is asked whether there
    /// is none. There are fewer than `most` tables, or no value is sent.
    pub fn delegated(&self, entry: &AttributeEntry, most: usize) -> Option<Delegated> {
        let is_sent = entry.residual == 0 && entry.absent == 0 && KINDS.len() * self.terms.len() < most;
        is_sent.then(|| Delegated {
            first: (KINDS.len() * self.attribute_index(entry)) as u32,
            is_asked: KINDS.map(|kind| !self.keyed_table(entry, kind).is_empty()),
            distances: KINDS.map(distance_of),
        })
    }

    /// All tables, by number.
    pub fn keyed_tables(&self) -> impl Iterator<Item = KeyedTable> + '_ {
        self.terms.iter().flat_map(|entry| KINDS.map(|kind| self.keyed_table(entry, kind)))
    }

    fn keyed_table(&self, entry: &AttributeEntry, kind: Kind) -> KeyedTable {
        let points = self.points_of(entry).iter();
        let points = points.filter(|table| table.kind == kind as u32 && table.of_elements == 0);
        let mut cuts = (entry.first_cuts..).zip(self.cuts_of(entry));
        KeyedTable {
            points: points
                .map(|table| table.first_entry..table.first_entry + table.entries)
                .next()
                .unwrap_or(0..0),
            cuts: cuts
                .find(|(_, table)| table.kind == kind as u32 && table.len > 0)
                .map(|(number, _)| number),
            bits: [entry.present, entry.defined[kind as usize]],
            distance: distance_of(kind),
        }
    }
}
