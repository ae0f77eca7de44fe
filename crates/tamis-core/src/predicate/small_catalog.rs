//! Fires the predicates of a small catalog.
//!
//! Its tables stay in the nearest caches, so nothing is gained by looking up several values at a time. Each value is
//! looked up and fired at once, in as few instructions as possible: with a few rules, that is nearly all of the work.

use super::bits::Bits;
use super::catalog::{AttributeEntry, Catalog, Fired};
use super::keys::ordered_key;
use crate::event::{Event, ValueRef};

/// A catalog with no more bits is small. Tests have few larger ones, and both ways must be tested.
const SMALL: u32 = if cfg!(any(test, feature = "testing")) { 48 } else { 8192 };

impl Catalog {
    #[inline]
    pub fn is_small(&self) -> bool {
        self.bits <= SMALL && !self.has_many_terms()
    }

    /// See [`fire`](Catalog::fire).
    pub(super) fn fire_small(&self, event: &Event<'_>, bits: &mut Bits, fired: &mut impl Fired) {
        self.fire_always(bits, fired);
        for (attribute, value) in &event.values {
            if let Some(entry) = self.entry(*attribute) {
                self.fire_at_once(entry, *value, bits, fired);
            }
        }
        self.fire_absent(bits, fired);
    }

    #[inline]
    pub(super) fn fire_at_once(
        &self,
        entry: &AttributeEntry,
        value: ValueRef<'_>,
        bits: &mut Bits,
        fired: &mut impl Fired,
    ) {
        let key = ordered_key(value);
        let text = if let ValueRef::Str(text) = value { Some(text) } else { None };
        let (Some(kind), true) = (value.kind(), key.is_some() || text.is_some()) else {
            return self.fire_several(entry, value, bits, fired);
        };
        self.fire_present(entry, kind, bits, fired);
        let is_of_kind = |of: u32| of == kind as u32;
        let points =
            self.points_of(entry).iter().find(|table| is_of_kind(table.kind) && table.of_elements == 0);
        if let Some(table) = points {
            let point = match key {
                Some(key) => self.points.find_ordered(table, key),
                None => self.points.find(table, value, &self.pool),
            };
            point.into_iter().for_each(|point| self.fire_point(point, bits, fired));
        }
        let cuts = self.cuts_of(entry).iter().find(|table| is_of_kind(table.kind) && table.len > 0);
        if let Some(table) = cuts {
            let rank = match (key, text) {
                (Some(key), _) => self.cuts.rank_of_key(table, key),
                (None, text) => self.rank_of_text(table, text.unwrap_or_default()),
            };
            self.fire_rank(table, rank, bits, fired);
        }
        if entry.residual > 0 {
            self.residual.fire(self.attribute_index(entry), value, &mut |bit| {
                bits.set(bit);
                fired.key(bit);
            });
        }
    }

    /// What is not a scalar, or stands for several values.
    #[cold]
    fn fire_several(
        &self,
        entry: &AttributeEntry,
        value: ValueRef<'_>,
        bits: &mut Bits,
        fired: &mut impl Fired,
    ) {
        let mut lookups = None;
        self.fire_value(entry, value, bits, fired, &mut lookups);
        self.fire_lookups(&mut lookups, bits, fired);
    }
}

#[cfg(test)]
mod tests {
    use std::ops::Range;

    use proptest::prelude::*;

    use super::*;
    use crate::event::Terms;
    use crate::expr::atoms::AtomTable;
    use crate::expr::normal_form::normal_form;
    use crate::expr::testing;
    use crate::predicate::catalog_builder::CatalogBuilder;

    #[derive(Default)]
    struct Keys(Vec<u32>);

    impl Fired for Keys {
        fn key(&mut self, key: u32) {
            self.0.push(key);
        }

        fn run(&mut self, from: u32, to: u32, _: u32) {
            self.0.extend(Range { start: from, end: to });
        }
    }

    proptest! {
        #[test]
        fn a_small_catalog_fires_what_a_large_one_does(
            exprs in prop::collection::vec(testing::any_expr(3), 1..40),
            events in prop::collection::vec(prop_oneof![testing::any_event(), testing::any_interval_event()], 1..4),
        ) {
            let (mut terms, mut atoms) = (Terms::default(), AtomTable::default());
            for expr in &exprs {
                normal_form(expr, &mut terms, &mut atoms);
            }
            let catalog = CatalogBuilder::new(&atoms).draft();
            let (mut few, mut many) = (Bits::default(), Bits::default());
            for event in &events {
                let values = event.iter().filter_map(|(name, value)| Some((terms.get(name)?, value.as_ref())));
                let event = Event { values: values.collect(), ..Event::default() };
                let (mut by_small, mut by_large) = (Keys::default(), Keys::default());
                few.reset(catalog.bits as usize);
                catalog.fire_small(&event, &mut few, &mut by_small);
                many.reset(catalog.bits as usize);
                catalog.fire_large(&event, &mut many, &mut by_large);
                prop_assert_eq!(few.words(), many.words());
                by_small.0.sort_unstable();
                by_large.0.sort_unstable();
                prop_assert_eq!(by_small.0, by_large.0);
            }
        }
    }
}
