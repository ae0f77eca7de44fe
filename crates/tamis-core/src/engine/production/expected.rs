//! Which kinds of values the predicates on each attribute expect, over all segments and the buffer.
//!
//! A value of another kind makes every predicate on it undefined: worth counting, since it is rarely meant.
//! Removed subscriptions count until their segment is rewritten.

use std::sync::Arc;

use super::view::View;
use crate::event::value::Kind;
use crate::event::{AttrId, Event, ValueRef};
use crate::expr::atoms::AtomTable;

/// By attribute, a bit per kind; no bits where any value will do, as for `IS NULL`.
#[derive(Clone, Default)]
pub struct ExpectedKinds(Arc<Vec<u32>>);

impl ExpectedKinds {
    pub fn of(view: &View) -> Self {
        let mut expected = Self::default();
        for part in view.parts.iter() {
            for entry in part.segment.layout.catalog.attributes.iter() {
                expected.add(AttrId(entry.attribute), entry.expected_kinds);
            }
        }
        for buffered in view.buffer.iter() {
            expected.note(&buffered.atoms);
        }
        expected
    }

    /// Adds what the predicates of a new subscription expect.
    pub fn note(&mut self, atoms: &AtomTable) {
        for atom in atoms.iter() {
            let kind = atom.operator.rules().expects(&atom.operands);
            self.add(atom.attribute, kind.map_or(0, |kind| 1 << kind as u32));
        }
    }

    fn add(&mut self, attribute: AttrId, kinds: u32) {
        if self.kinds(attribute) | kinds == self.kinds(attribute) {
            return;
        }
        let by_attribute = Arc::make_mut(&mut self.0);
        let place = attribute.0 as usize;
        if by_attribute.len() <= place {
            by_attribute.resize(place + 1, 0);
        }
        by_attribute[place] |= kinds;
    }

    fn kinds(&self, attribute: AttrId) -> u32 {
        self.0.get(attribute.0 as usize).copied().unwrap_or(0)
    }

    /// Whether no predicate on the attribute expects values of that kind.
    pub fn is_wrong(&self, attribute: AttrId, kind: Kind) -> bool {
        let kinds = self.kinds(attribute);
        kinds != 0 && kinds >> kind as u32 & 1 == 0
    }

    /// How many values of an event are of a kind that none expects.
    pub fn mismatches(&self, event: &Event<'_>) -> u64 {
        let is_wrong = |(attribute, value): &&(AttrId, ValueRef<'_>)| {
            value.kind().is_some_and(|kind| self.is_wrong(*attribute, kind))
        };
        event.values.iter().filter(is_wrong).count() as u64
    }
}
