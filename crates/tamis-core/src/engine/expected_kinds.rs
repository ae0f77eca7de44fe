//! Which attributes predicates use, and which kinds of values they expect there.
//!
//! A value of another kind makes every predicate on it undefined. That is worth counting, because it is rarely intended.
//! And a reader of wide records can skip columns that no predicate uses. Removed subscriptions count until their segment
//! is rewritten.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use super::work::{Work, WrongKind, bit_of};
use crate::event::arrow::ArrowEvents;
use crate::event::value::Kind;
use crate::event::value::cell::readings;
use crate::event::{Event, EventSource, TermId, Terms, ValueRef};
use crate::expr::Expr;
use crate::expr::atoms::AtomTable;
use crate::expr::normal_form::normal_form;
use crate::expr::operators::Operator;
use crate::predicate::DOCUMENT;
use crate::term::{Argument, NOW, Term};
use crate::xml::with_document;

/// Some predicate asks for the attribute.
const USED: u32 = 1 << 31;

/// By attribute, a bit per kind; no kinds where any value will do, as for `IS NULL`.
#[derive(Clone, Default)]
pub struct ExpectedKinds(Arc<Vec<u32>>);

impl ExpectedKinds {
    /// Adds what the predicates of a subscription expect.
    pub fn note(&mut self, atoms: &AtomTable) {
        for atom in atoms.iter() {
            let kind = atom.operator.is_about(&atom.operands).map_or(0, |kind| 1 << kind as u32);
            let document = if atom.operator == Operator::XPATH { DOCUMENT } else { 0 };
            self.add(atom.attribute, kind | document);
        }
    }

    /// Adds what functions expect of the attributes that they are applied to, for all computed terms that are asked for.
    pub fn note_arguments(&mut self, terms: &Terms) {
        const ANY: u32 = (1 << Kind::ALL.len()) - 1;
        if !terms.has_computed() {
            return;
        }
        // A term comes after those that it is computed from.
        for at in (0..terms.len() as u32).rev() {
            let term = terms.term(TermId(at));
            if !term.is_computed() || self.0.get(at as usize).is_none_or(|kinds| kinds & USED == 0) {
                continue;
            }
            if let Term::Boolean(boolean) = term {
                let inputs = boolean.inputs().iter().filter_map(|input| terms.find(input));
                inputs.for_each(|input| self.add(input, ANY));
            }
            let Term::Computed(computed) = term else { continue };
            for (place, argument) in computed.arguments().iter().enumerate() {
                if let Argument::Term(term) = argument
                    && let Some(id) = terms.find(term)
                {
                    let kinds = computed.function().takes(place).map_or(ANY, |kind| 1 << kind as u32);
                    self.add(id, kinds);
                }
            }
        }
    }

    /// The same, of an expression that is not in normal form.
    pub fn note_expression(&mut self, expression: &Expr, terms: &mut Terms) {
        let mut atoms = AtomTable::default();
        normal_form(expression, terms, &mut atoms);
        self.note(&atoms);
        self.note_arguments(terms);
    }

    /// Adds kinds, a bit for each, that predicates on an attribute expect.
    pub fn add(&mut self, attribute: TermId, kinds: u32) {
        let (place, kinds) = (attribute.0 as usize, kinds | USED);
        let known = self.0.get(place).copied().unwrap_or(0);
        if known | kinds == known {
            return;
        }
        let by_attribute = Arc::make_mut(&mut self.0);
        if by_attribute.len() <= place {
            by_attribute.resize(place + 1, 0);
        }
        by_attribute[place] |= kinds;
    }

    fn kinds(&self, attribute: TermId) -> u32 {
        self.0.get(attribute.0 as usize).copied().unwrap_or(0) & !(USED | DOCUMENT)
    }

    /// Whether paths look into the attribute.
    fn is_document(&self, attribute: TermId) -> bool {
        self.0.get(attribute.0 as usize).is_some_and(|kinds| kinds & DOCUMENT != 0)
    }

    /// Whether predicates on a present value are undefined: it has another kind than any expects, or is no document where paths
    /// look for one.
    fn is_wrong_value(&self, attribute: TermId, value: ValueRef<'_>) -> bool {
        match value {
            ValueRef::Str(text) if self.is_document(attribute) => {
                with_document(text, |document| document.is_none())
            }
            ValueRef::Cell(text) => {
                let kinds = self.kinds(attribute);
                kinds != 0
                    && !readings(text)
                        .any(|read| read.kind().is_some_and(|kind| kinds >> kind as u32 & 1 == 1))
            }
            value => value.kind().is_some_and(|kind| self.is_wrong(attribute, kind)),
        }
    }

    /// Whether no predicate on the attribute expects values of that kind.
    fn is_wrong(&self, attribute: TermId, kind: Kind) -> bool {
        let kinds = self.kinds(attribute);
        kinds != 0 && kinds >> kind as u32 & 1 == 0
    }

    /// How many values of an event are of a kind that none expects, and on which attributes.
    #[inline]
    pub fn mismatches(&self, event: &Event<'_>) -> Work {
        let mut work = Work::default();
        for (attribute, value) in &event.values {
            if !self.is_plainly_expected(*attribute, *value) && self.is_wrong_value(*attribute, *value) {
                work += mismatch(*attribute);
            }
        }
        work
    }

    /// Whether a value is of a kind that some predicate expects, and that is all there is to it: true of nearly every
    /// value, and cheap to ask.
    #[inline]
    fn is_plainly_expected(&self, attribute: TermId, value: ValueRef<'_>) -> bool {
        let kinds = self.0.get(attribute.0 as usize).copied().unwrap_or(0);
        let kind = match value {
            ValueRef::Int(_) | ValueRef::Float(_) => Kind::Number,
            ValueRef::Bool(_) => Kind::Bool,
            ValueRef::Str(_) if kinds & DOCUMENT == 0 => Kind::Str,
            _ => return false,
        };
        kinds >> kind as u32 & 1 == 1
    }

    /// The same for a range of events in columns.
    pub fn mismatches_in(&self, columns: &ArrowEvents<'_>, range: Range<usize>) -> Work {
        let mut work = Work::default();
        self.for_each_wrong(columns, range, |attribute, _| work += mismatch(attribute));
        work
    }

    /// The attributes with such values in a range of events, each with the kind of its first.
    pub fn wrong_kinds(&self, events: &dyn EventSource, range: Range<usize>) -> Vec<WrongKind> {
        let mut found: BTreeMap<TermId, Kind> = BTreeMap::new();
        let mut add = |attribute, kind| {
            found.entry(attribute).or_insert(kind);
        };
        if let Some(columns) = events.columns() {
            self.for_each_wrong(columns, range, &mut add);
        } else {
            self.for_each_wrong_value(events, range, &mut add);
        }
        let expected = |term: TermId| {
            let kinds = self.kinds(term);
            let document = self.is_document(term).then_some(Kind::Str);
            let named = Kind::ALL.into_iter().filter(|kind| kinds >> *kind as u32 & 1 == 1);
            named.chain(document).collect()
        };
        found.into_iter().map(|(term, found)| WrongKind { term, found, expected: expected(term) }).collect()
    }

    /// Calls `found` with every value in columns that is of a kind that none expects. Only columns that may
    /// hold such values are read.
    fn for_each_wrong(
        &self,
        columns: &ArrowEvents<'_>,
        range: Range<usize>,
        mut found: impl FnMut(TermId, Kind),
    ) {
        for (attribute, column) in columns.columns() {
            let may_be_wrong = |kind| self.is_document(attribute) || self.is_wrong(attribute, kind);
            if column.kind().is_some_and(|kind| !may_be_wrong(kind)) {
                continue;
            }
            for row in range.clone() {
                if let Some(value) = column.value(row)
                    && self.is_wrong_value(attribute, value)
                    && let Some(kind) = value.kind()
                {
                    found(attribute, kind);
                }
            }
        }
    }

    /// How many values of many events are of a kind that none expects, by attribute and kind.
    pub fn wrong_values(&self, events: &dyn EventSource) -> BTreeMap<(TermId, Kind), u64> {
        let mut counts = BTreeMap::new();
        let mut add = |attribute, kind| *counts.entry((attribute, kind)).or_default() += 1;
        if let Some(columns) = events.columns() {
            self.for_each_wrong(columns, 0..columns.len(), &mut add);
            return counts;
        }
        self.for_each_wrong_value(events, 0..events.len(), &mut add);
        counts
    }

    fn for_each_wrong_value(
        &self,
        events: &dyn EventSource,
        range: Range<usize>,
        mut found: impl FnMut(TermId, Kind),
    ) {
        let mut event = Event::default();
        for row in range {
            events.fill(row, &mut event);
            for (attribute, value) in &event.values {
                if let Some(kind) = value.kind().filter(|_| self.is_wrong_value(*attribute, *value)) {
                    found(*attribute, kind);
                }
            }
        }
    }

    /// What is expected of attributes by name, with the numbers that they get.
    pub fn named<'n>(expected: impl IntoIterator<Item = (&'n str, Vec<Kind>)>) -> (Self, Terms) {
        let (mut all, mut terms) = (Self::default(), Terms::default());
        for (name, kinds) in expected {
            let kinds = kinds.into_iter().fold(0, |kinds, kind| kinds | 1 << kind as u32);
            all.add(terms.intern(name), kinds);
        }
        (all, terms)
    }

    /// The attributes that are asked for, with the kinds that are expected.
    pub fn by_name(&self, terms: &Terms) -> BTreeMap<String, Vec<Kind>> {
        let asked = self.0.iter().enumerate().filter(|(_, kinds)| **kinds & USED != 0);
        let named = asked.filter_map(|(attribute, kinds)| {
            let Term::Attribute(name) = terms.term(TermId(attribute as u32)) else { return None };
            if **name == *NOW {
                return None;
            }
            let any = Kind::ALL.into_iter().all(|kind| kinds >> kind as u32 & 1 == 1);
            let expected = Kind::ALL.into_iter().filter(|kind| !any && kinds >> *kind as u32 & 1 == 1);
            Some((name.to_string(), expected.collect()))
        });
        named.collect()
    }
}

fn mismatch(attribute: TermId) -> Work {
    Work { mismatches: 1, wrong_terms: bit_of(attribute), ..Work::default() }
}

#[cfg(test)]
mod tests {
    use crate::event::json::read_record;

    use super::*;
    use crate::engine::{Id, Index, Subscription};
    use crate::expr::parser::parse;

    fn holding(texts: &[String]) -> Index {
        let index = Index::default();
        for (id, text) in texts.iter().enumerate() {
            index.add(Subscription::new(Id::Int(id as i64), parse(text).unwrap())).unwrap();
        }
        index
    }

    #[test]
    fn the_same_in_the_buffer_and_in_segments() {
        let few: Vec<String> =
            ["age > 3 AND name = 'a'", "NOT (age = 'old') OR x IS NULL"].map(String::from).into();
        let many: Vec<String> = few.iter().cycle().take(100).cloned().collect();
        let expected = BTreeMap::from([
            ("age".to_owned(), vec![Kind::Number, Kind::Str]),
            ("name".to_owned(), vec![Kind::Str]),
            ("x".to_owned(), vec![]),
        ]);
        for texts in [&few, &many] {
            assert_eq!(holding(texts).reader().unwrap().expected_kinds(), expected);
        }
    }

    #[test]
    fn wrong_values_are_counted_by_attribute_and_kind() {
        let (expected, terms) = ExpectedKinds::named([
            ("age", vec![Kind::Number]),
            ("x", vec![]),
            ("s", vec![Kind::Str, Kind::Bool]),
        ]);
        let read = |text: &str| read_record(text.as_bytes()).unwrap();
        let records = [
            read(r#"{"age": "27", "x": 1, "s": true, "unknown": 1}"#),
            read(r#"{"age": "30", "s": 1.5}"#),
            read(r#"{"age": 30, "s": null}"#),
        ];
        let events: Vec<Event<'_>> = records.iter().map(|record| record.resolve(&terms)).collect();
        let wrong = |name: &str, kind| (terms.get(name).unwrap(), kind);
        let counts = BTreeMap::from([(wrong("age", Kind::Str), 2), (wrong("s", Kind::Number), 1)]);
        assert_eq!(expected.wrong_values(&events), counts);
    }
}
