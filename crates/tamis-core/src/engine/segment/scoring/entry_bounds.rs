//! Bounds the score that an access entry can lead to for the current event, before its unit is decided.
//!
//! An entry leads to one or more rows, and none of them scores above its bound, whatever the event. If it leads to only
//! one row, the sketch of that row says more: the sum of what is true, which is close to its score. Bounds are stored
//! next to the entries, so that the best of many candidates are visited first, and most of them not at all.

use bytemuck::{Pod, Zeroable};

use super::row_sketches::{NONE, Places, RowSketches};
use crate::snapshot::SharedSlice;

/// One for each access entry; none when no subscription has weights.
#[derive(Clone, Default)]
pub struct EntryBounds(pub SharedSlice<EntryBound>);

#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct EntryBound {
    /// The highest score for an event without weights, rounded up.
    pub bound: f32,
    /// Of the sketch of the only row, or `NONE`.
    sketch: u32,
}

impl EntryBound {
    /// The lead of a unit: its only row, if nothing else hangs on it, and a bound of all that does.
    pub fn new(sketches: &RowSketches, only_row: Option<u32>, bound: f64) -> Self {
        Self {
            bound: rounded_up(bound.max(0.0)),
            sketch: only_row.and_then(|row| sketches.place_of(row)).unwrap_or(NONE),
        }
    }

    #[inline]
    pub fn sketch(self) -> Option<u32> {
        (self.sketch != NONE).then_some(self.sketch)
    }
}

/// The least short float that is not below a number.
pub fn rounded_up(number: f64) -> f32 {
    let near = number as f32;
    if (near as f64) < number { near.next_up() } else { near }
}

impl EntryBounds {
    pub fn validate(&self, entries: usize, places: &Places) -> Result<(), &'static str> {
        let is_good = |entry_bound: &EntryBound| {
            entry_bound.bound >= 0.0 && entry_bound.sketch().is_none_or(|place| places.has(place))
        };
        let fits = self.0.is_empty() || self.0.len() == entries;
        if fits && self.0.iter().all(is_good) { Ok(()) } else { Err("score_entry_bounds") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_never_rounded_down() {
        for bound in [0.0, 1.0, 0.1, 1.0 + 1e-12, 16_777_217.0, 1e300, f64::INFINITY] {
            let read = EntryBound::new(&RowSketches::default(), Some(0), bound).bound as f64;
            assert!(read >= bound && (bound > 1e38 || read <= bound * 1.000_001), "{bound} became {read}");
        }
    }
}
