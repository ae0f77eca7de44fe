//! Names of fields that came before, told by the Python object that holds them.
//!
//! Dicts of one program mostly have the same string objects as keys. A string that is known by its address needs to be neither
//! read nor looked up. Strings are held as long as they are remembered, so no other one has the address meanwhile.

use pyo3::prelude::*;
use tamis_core::event::SeenField;

const SLOTS: usize = 256;
/// Of names that find their slot taken, one in so many replaces the other: keys of parsed JSON are new strings each time.
const REPLACED: u32 = 8;

/// Belongs to the memory that the fields were learnt in.
pub struct SeenNames {
    slots: Vec<Option<(Py<PyAny>, SeenField)>>,
    refused: u32,
}

impl Default for SeenNames {
    fn default() -> Self {
        Self { slots: (0..SLOTS).map(|_| None).collect(), refused: 0 }
    }
}

impl SeenNames {
    fn slot(name: &Bound<'_, PyAny>) -> usize {
        // Objects are at least 16 bytes apart.
        let address = name.as_ptr().addr() >> 4;
        (address ^ address >> 8) % SLOTS
    }

    #[inline]
    pub fn field(&self, name: &Bound<'_, PyAny>) -> Option<SeenField> {
        let (known, field) = self.slots[Self::slot(name)].as_ref()?;
        (known.as_ptr() == name.as_ptr()).then_some(*field)
    }

    pub fn note(&mut self, name: &Bound<'_, PyAny>, field: SeenField) {
        let slot = &mut self.slots[Self::slot(name)];
        let is_free = slot.as_ref().is_none_or(|(known, _)| known.as_ptr() == name.as_ptr());
        self.refused = if is_free { self.refused } else { (self.refused + 1) % REPLACED };
        if is_free || self.refused == 0 {
            *slot = Some((name.clone().unbind(), field));
        }
    }
}
