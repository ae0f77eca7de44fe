//! Scalars as integers that compare, or hash, like the scalars.

use crate::event::ValueRef;
use crate::event::value::Kind;

/// A number, timestamp or boolean as an integer of at most 81 bits that sorts like it.
/// `None` for strings and for what is not a scalar.
#[inline]
pub fn ordered_key(value: ValueRef<'_>) -> Option<u128> {
    match value {
        ValueRef::Bool(b) => Some(b as u128),
        ValueRef::Timestamp(t) => Some((t as u64 ^ 1 << 63) as u128),
        _ => value.number().map(|number| number.key()),
    }
}

pub fn split(key: u128) -> [u64; 2] {
    [(key >> 64) as u64, key as u64]
}

pub fn join(parts: [u64; 2]) -> u128 {
    (parts[0] as u128) << 64 | parts[1] as u128
}

/// Hashes are stored in snapshots: this function never changes.
#[inline]
pub fn hash_key(parts: [u64; 2]) -> u64 {
    let mixed = (parts[1] ^ parts[0].rotate_left(32)) as u128 * 0x9E37_79B9_7F4A_7C15;
    (mixed ^ (mixed >> 64)) as u64
}

pub fn hash_text(text: &str) -> u64 {
    xxhash_rust::xxh3::xxh3_64(text.as_bytes())
}

/// The kinds whose values sort by an [`ordered_key`].
pub fn is_keyed(kind: Kind) -> bool {
    matches!(kind, Kind::Bool | Kind::Number | Kind::Timestamp)
}
