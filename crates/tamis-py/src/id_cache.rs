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
    /// Calls `use_it` with what finds the id of each match.
    pub fn with_ids<'py, T>(
        &self,
        py: Python<'py>,
        version: &dyn Version,
        use_it: impl FnOnce(&mut dyn FnMut(Location) -> PyResult<Bound<'py, PyAny>>) -> T,
    ) -> T {
        let plain = |location: Location| id_to_python(py, version.id(location));
        let (Some(mut cached), Some(rows)) = (self.0.try_lock(), version.row_ids()) else {
            return use_it(&mut { plain });
        };
        cached.prepare(rows, version);
        use_it(&mut |location| match location {
            Location::Row { part, row } if !cached.places.is_empty() => {
                let at = (row as usize).wrapping_add((part as usize) << 12) & (cached.places.len() - 1);
                match &cached.places[at] {
                    Some(place) if place.row == row && place.part == part => Ok(place.id.bind(py).clone()),
                    _ => {
                        let id = plain(location)?;
                        cached.places[at] = Some(Place { part, row, id: id.clone().unbind() });
                        Ok(id)
                    }
                }
            }
            _ => plain(location),
        })
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
}
