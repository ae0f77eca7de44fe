//! Python objects of ids that were returned before.
//!
//! Making a string costs several times what another reference to it costs, and popular subscriptions match
//! again and again. The cache has one slot per row, up to a bound; beyond it, rows share slots, and a row
//! replaces another one in its slot. It is cleared when rows get other ids, that is, when segments are added
//! or merged. Subscriptions that are still in the buffer are not cached.

use std::any::Any;
use std::sync::Weak;

use parking_lot::Mutex;
use pyo3::prelude::*;
use tamis_core::engine::{Location, Version};
use tamis_core::prefetch;

use crate::ids::id_to_python;

/// With the objects about 20 MB at most, of ids of usual length.
const MOST_PLACES: usize = 1 << 18;

/// Belongs to one index. It is used only under the interpreter lock, so no thread waits for it, and no fork
/// finds it locked. But while a list is created, the garbage collector may run code that queries the same
/// index; that code finds it in use and works without it.
#[derive(Default)]
pub struct IdCache(Mutex<Cached>);

#[derive(Default)]
struct Cached {
    /// As long as this is the same, rows have the ids they had.
    rows: Option<Weak<dyn Any + Send + Sync>>,
    places: Vec<Option<Place>>,
}

struct Place {
    part: u32,
    row: u32,
    id: Py<PyAny>,
}

impl IdCache {
    /// The ids of some matches.
    pub fn ids<'py>(
        &self,
        py: Python<'py>,
        version: &dyn Version,
        matches: &[Location],
    ) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let plain = |location: Location| id_to_python(py, version.id(location));
        let (Some(mut cached), Some(rows)) = (self.0.try_lock(), version.row_ids()) else {
            return matches.iter().map(|location| plain(*location)).collect();
        };
        cached.prepare(rows, version);
        let mut ids = Vec::with_capacity(matches.len());
        for (at, location) in matches.iter().enumerate() {
            cached.fetch(&matches[at..]);
            ids.push(match cached.get(*location) {
                Some(id) => id.bind(py).clone(),
                None => {
                    let id = plain(*location)?;
                    cached.keep(*location, &id);
                    id
                }
            });
        }
        Ok(ids)
    }
}

impl Cached {
    fn prepare(&mut self, rows: Weak<dyn Any + Send + Sync>, version: &dyn Version) {
        if self.rows.as_ref().is_some_and(|known| known.ptr_eq(&rows)) {
            return;
        }
        self.rows = Some(rows);
        self.places.clear();
        let total: usize = version.part_sizes().iter().rev().skip(1).sum();
        if total > 0 {
            self.places.resize_with(total.next_power_of_two().min(MOST_PLACES), || None);
        }
        self.places.shrink_to_fit();
    }

    /// The place of a match that may be cached.
    #[inline]
    fn place_of(&self, location: Location) -> Option<usize> {
        let Location::Row { part, row } = location else { return None };
        Some((row as usize).wrapping_add((part as usize) << 12) & self.places.len().checked_sub(1)?)
    }

    /// The id of a match, if it is cached.
    #[inline]
    fn get(&self, location: Location) -> Option<&Py<PyAny>> {
        let place = self.places[self.place_of(location)?].as_ref()?;
        (location == Location::Row { part: place.part, row: place.row }).then_some(&place.id)
    }

    fn keep(&mut self, location: Location, id: &Bound<'_, PyAny>) {
        if let (Location::Row { part, row }, Some(at)) = (location, self.place_of(location)) {
            self.places[at] = Some(Place { part, row, id: id.clone().unbind() });
        }
    }

    /// Fetches what matches further on will need: first their places, then the counts of references.
    #[inline]
    fn fetch(&self, matches: &[Location]) {
        const FETCH_AHEAD: usize = 8;
        if let Some(place) = matches.get(2 * FETCH_AHEAD).and_then(|later| self.place_of(*later)) {
            prefetch(&self.places[place]);
        }
        if let Some(id) = matches.get(FETCH_AHEAD).and_then(|soon| self.get(*soon)) {
            prefetch(id.as_ptr());
        }
    }
}
