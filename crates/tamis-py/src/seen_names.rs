//! Names of fields that came before, told by the Python object that holds them.
//!
//! Dicts of one program mostly have the same string objects as keys. A string that is known by its address needs to be neither
//! read nor looked up. Strings are held as long as they are remembered, so no other one has the address meanwhile.

use pyo3::prelude::*;
use tamis_core::event::SeenField;

const SLOTS: usize = 256;
/// Of names that find their slot taken, one in so many replaces the other.
const REPLACED: u32 = 8;
/// Keys of parsed JSON are new strings each time. After so many of them without one that was seen, names are not asked about for a
/// while: asking in vain takes a tenth of reading a field.
const MISSES: u32 = 128;
const PAUSE: u32 = 16 * 1024;

/// Belongs to the memory that the fields were learnt in.
pub struct SeenNames {
    slots: Vec<Option<(Py<PyAny>, SeenField)>>,
    /// Names that found their slot taken, since one was seen.
    refused: u32,
    /// So many names are not asked about.
    pause: u32,
}

impl Default for SeenNames {
    fn default() -> Self {
        Self { slots: (0..SLOTS).map(|_| None).collect(), refused: 0, pause: 0 }
    }
}

impl SeenNames {
    fn slot(name: &Bound<'_, PyAny>) -> usize {
        // Objects are at least 16 bytes apart.
        let address = name.as_ptr().addr() >> 4;
        (address ^ address >> 8) % SLOTS
    }

    /// Whether it pays to ask.
    #[inline]
    pub fn is_asked(&mut self) -> bool {
        let is_asked = self.pause == 0;
        self.pause = self.pause.saturating_sub(1);
        is_asked
    }

    #[inline]
    pub fn field(&mut self, name: &Bound<'_, PyAny>) -> Option<SeenField> {
        let (known, field) = self.slots[Self::slot(name)].as_ref()?;
        if known.as_ptr() != name.as_ptr() {
            return None;
        }
        self.refused = 0;
        Some(*field)
    }

    pub fn note(&mut self, name: &Bound<'_, PyAny>, field: SeenField) {
        let slot = &mut self.slots[Self::slot(name)];
        let is_free = slot.as_ref().is_none_or(|(known, _)| known.as_ptr() == name.as_ptr());
        self.refused += u32::from(!is_free);
        if is_free || self.refused.is_multiple_of(REPLACED) {
            *slot = Some((name.clone().unbind(), field));
        }
        if self.refused >= MISSES {
            (self.refused, self.pause) = (0, PAUSE);
        }
    }
}
