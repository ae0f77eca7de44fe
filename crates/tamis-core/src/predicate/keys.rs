//! Scalars as integers that compare, or hash, like the scalars.

use crate::event::ValueRef;
use crate::event::number::{DISTANCE_BITS, Number};
use crate::event::value::Kind;

/// How many bits a key may have, and one for the side of a cut: 64 that lead, and the distance of a number.
pub const KEY_BITS: u32 = 64 + DISTANCE_BITS;

/// A number, timestamp or boolean as an integer of [`KEY_BITS`] that sorts like it. Numbers that are not exact
/// (see [`has_exact_key`]) lie between those that are. `None` for strings and for what is not a scalar.
#[inline]
pub fn ordered_key(value: ValueRef<'_>) -> Option<u128> {
    match value {
        ValueRef::Bool(b) => Some((b as u128) << DISTANCE_BITS),
        ValueRef::Timestamp(t) => Some(((t as u64 ^ 1 << 63) as u128) << DISTANCE_BITS),
        _ => value.number().map(|number| number.key()),
    }
}

/// Whether no other value of its kind has the key of this one. Operands that are found by their keys must have
/// such a key; values need not.
pub fn has_exact_key(operand: ValueRef<'_>) -> bool {
    match operand {
        ValueRef::Decimal(decimal) => decimal.number().is_exact(),
        _ => true,
    }
}

/// The leading bits of a key: those of the nearest float, for a number.
pub fn head_of_key(key: u128) -> u64 {
    (key >> DISTANCE_BITS) as u64
}

/// The key of a value with these leading bits; of numbers, the float or small integer itself.
pub fn key_of_head(kind: Kind, head: u64) -> u128 {
    let rest =
        if kind == Kind::Number { Number::from_f64(0.0).key() & ((1 << DISTANCE_BITS) - 1) } else { 0 };
    (head as u128) << DISTANCE_BITS | rest
}

/// The leading bits of the key of a scalar that has no others but those of [`key_of_head`]. `None` for strings, decimals, large
/// integers, and what is not a scalar.
#[inline]
pub fn head(value: ValueRef<'_>) -> Option<u64> {
    const MOST: u64 = 1 << f64::MANTISSA_DIGITS;
    match value {
        ValueRef::Int(i) if i.unsigned_abs() <= MOST => Some(Number::from_f64(i as f64).float_bits()),
        ValueRef::Float(x) => Some(Number::from_f64(x).float_bits()),
        ValueRef::Bool(b) => Some(b as u64),
        ValueRef::Timestamp(t) => Some(t as u64 ^ 1 << 63),
        _ => None,
    }
}

pub fn split(key: u128) -> [u64; 2] {
    [(key >> 64) as u64, key as u64]
}

pub fn join(parts: [u64; 2]) -> u128 {
    (parts[0] as u128) << 64 | parts[1] as u128
}

/// Tables in snapshots rely on it: to change this function is to change the format.
#[inline]
pub fn hash_key(parts: [u64; 2]) -> u64 {
    // The upper bits meet the distance, which is the same for all integers and floats.
    let mixed = (parts[1] ^ parts[0]) as u128 * 0x9E37_79B9_7F4A_7C15;
    (mixed ^ (mixed >> 64)) as u64
}

pub fn hash_text(text: &str) -> u64 {
    xxhash_rust::xxh3::xxh3_64(text.as_bytes())
}

/// The kinds whose values sort by an [`ordered_key`].
pub fn is_keyed(kind: Kind) -> bool {
    matches!(kind, Kind::Bool | Kind::Number | Kind::Timestamp)
}
