//! One-dimensional indexes, one set per attribute: the cost of an event grows with the predicates it satisfies.
//!
//! | shape | found by |
//! |---|---|
//! | `=`, IN, array elements | hashing the value |
//! | `<`, `<=`, `>`, `>=` | two sorted maps of cuts (see [`predicate::ranges`](tamis_core::predicate::ranges)) |
//! | BETWEEN | a treap of intervals |
//! | patterns, others | `residual` |
//! | NOT p | all defined predicates, less those found to be true |
//! | IS NULL | a list per attribute, walked when the attribute is absent |

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use super::intervals::Intervals;
use super::residual::ResidualPredicates;
use super::{PredicateMatcher, PredicateTable, Satisfied};
use crate::short_list::ShortList;
use tamis_core::event::{Event, Kind, TermId, Value, ValueRef};
use tamis_core::expr::{Atom, Bound, Literal, Shape};
use tamis_core::predicate::{Cut, KEY_BITS, has_exact_key, ordered_key};

#[derive(Default)]
pub struct Indexed {
    terms: Vec<AttributeIndex>,
    /// Terms whose absence satisfies something.
    asks_absence: Vec<TermId>,
    /// A bit for each predicate that is watched itself and not only for its negation.
    positive: Vec<u64>,
}

#[derive(Default)]
struct AttributeIndex {
    points: Points,
    elements: Points,
    /// Predicates that are true above the cut, and below it.
    above: BTreeMap<Cut, ShortList>,
    below: BTreeMap<Cut, ShortList>,
    between: Intervals,
    residual: ResidualPredicates,
    /// Negated predicates that are true whenever the value is of this kind (or any) and the predicate is
    /// not true.
    negated: [Vec<u32>; 7],
    /// Negated predicates that have to be asked.
    negated_asked: Vec<u32>,
    /// Literals that are true when the attribute is absent.
    absent: Vec<u32>,
}

/// From a scalar to the predicates that name it.
#[derive(Default)]
struct Points {
    keyed: FxHashMap<u128, ShortList>,
    texts: FxHashMap<Box<str>, ShortList>,
}

/// The place in `negated` of predicates that take values of any kind.
const ANY_KIND: usize = 6;

/// The kind goes above the bits of a cut.
const KIND_SHIFT: u32 = 100;
const _: () = assert!(KEY_BITS < KIND_SHIFT);

impl PredicateMatcher for Indexed {
    fn watch(&mut self, literal: Literal, atom: &Atom, other: bool) {
        let at = atom.attribute.0 as usize;
        if self.terms.len() <= at {
            self.terms.resize_with(at + 1, AttributeIndex::default);
        }
        let index = &mut self.terms[at];
        if !other {
            index.change(literal.atom(), atom, Change::Insert);
        }
        if literal.is_negated() {
            index.negative(atom).push(literal.atom());
        } else {
            let word = literal.atom() as usize / 64;
            if self.positive.len() <= word {
                self.positive.resize(word + 1, 0);
            }
            self.positive[word] |= 1 << (literal.atom() % 64);
        }
        if holds_when_absent(literal, atom) {
            if index.absent.is_empty() {
                self.asks_absence.push(atom.attribute);
            }
            index.absent.push(literal.0);
        }
    }

    fn forget(&mut self, literal: Literal, atom: &Atom, other: bool) {
        let index = &mut self.terms[atom.attribute.0 as usize];
        if !other {
            index.change(literal.atom(), atom, Change::Remove);
        }
        if literal.is_negated() {
            take(index.negative(atom), literal.atom());
        } else {
            self.positive[literal.atom() as usize / 64] &= !(1 << (literal.atom() % 64));
        }
        if holds_when_absent(literal, atom) {
            take(&mut index.absent, literal.0);
            if index.absent.is_empty() {
                self.asks_absence.retain(|attribute| *attribute != atom.attribute);
            }
        }
    }

    fn satisfied(&self, event: &Event<'_>, table: &PredicateTable, satisfied: &mut Satisfied) {
        for (attribute, value) in &event.values {
            let Some(index) = self.terms.get(attribute.0 as usize) else { continue };
            match value {
                ValueRef::Null => {}
                value if value.is_set() => index.ask_all(*value, table, &mut |literal| {
                    if literal.is_negated() || self.is_positive(literal.atom()) {
                        satisfied.report(literal);
                    }
                }),
                value => {
                    index.positive(*value, table, &mut |atom| {
                        if self.is_positive(atom) {
                            satisfied.report(Literal::new(atom, false));
                        } else {
                            satisfied.note(atom);
                        }
                    });
                    index.negatives(*value, table, satisfied);
                }
            }
        }
        for attribute in &self.asks_absence {
            if event.get(*attribute).is_none_or(|value| matches!(value, ValueRef::Null)) {
                for &literal in &self.terms[attribute.0 as usize].absent {
                    satisfied.report(Literal(literal));
                }
            }
        }
    }

    fn bytes(&self) -> usize {
        self.terms.iter().map(AttributeIndex::bytes).sum::<usize>()
            + self.terms.capacity() * size_of::<AttributeIndex>()
            + self.positive.capacity() * size_of::<u64>()
    }
}

impl Indexed {
    fn is_positive(&self, atom: u32) -> bool {
        self.positive.get(atom as usize / 64).is_some_and(|word| word >> (atom % 64) & 1 == 1)
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Change {
    Insert,
    Remove,
}

impl Change {
    fn apply(self, list: &mut ShortList, atom: u32) {
        match self {
            Change::Insert => list.push(atom),
            Change::Remove => assert!(list.remove(atom), "only what was inserted is removed"),
        }
    }
}

impl AttributeIndex {
    /// Puts a predicate where its truth is found, or takes it from there.
    fn change(&mut self, atom: u32, predicate: &Atom, change: Change) {
        let mut shape = predicate.operator.rules().shape(&predicate.operands);
        if !predicate.operands.iter().all(|operand| has_exact_key(operand.as_ref())) {
            // Its key would find what is not equal to it.
            shape = Shape::Opaque;
        }
        match shape {
            Shape::Points(values) => self.points.change(values, atom, change),
            Shape::Elements(values) => self.elements.change(values, atom, change),
            Shape::Range { low, high } => {
                let cut = |bound: Bound<'_>, after: bool| cut(bound.value, after);
                let low = low.map(|bound| cut(bound, !bound.inclusive));
                let high = high.map(|bound| cut(bound, bound.inclusive));
                match (low, high, change) {
                    (Some(low), Some(high), Change::Insert) => self.between.insert(low, high, atom),
                    (Some(low), Some(_), Change::Remove) => self.between.remove(&low, atom),
                    (Some(low), None, _) => change_at(&mut self.above, low, atom, change),
                    (None, Some(high), _) => change_at(&mut self.below, high, atom, change),
                    (None, None, _) => unreachable!("a range has an end"),
                }
            }
            // Their truth needs no value: see `absent`.
            Shape::Absent | Shape::Never => {}
            Shape::Prefix(_)
            | Shape::Suffix(_)
            | Shape::Substring(_)
            | Shape::Literals(_)
            | Shape::LowerCase(_)
            | Shape::Opaque => match change {
                Change::Insert => self.residual.insert(atom),
                Change::Remove => self.residual.remove(atom),
            },
        }
    }

    /// The list that a negated predicate belongs to.
    fn negative(&mut self, predicate: &Atom) -> &mut Vec<u32> {
        let rules = predicate.operator.rules();
        let holds_null = predicate.operands.iter().any(|operand| matches!(operand, Value::Null));
        if holds_null || !rules.is_two_valued(&predicate.operands) {
            return &mut self.negated_asked;
        }
        &mut self.negated[rules.expects(&predicate.operands).map_or(ANY_KIND, |kind| kind as usize)]
    }

    /// Calls `found` with every predicate that is true for a point value.
    fn positive(&self, value: ValueRef<'_>, table: &PredicateTable, found: &mut impl FnMut(u32)) {
        match value {
            ValueRef::Array(items) => {
                for item in items {
                    self.elements.lookup(item.as_ref()).iter().for_each(|&atom| found(atom));
                }
            }
            ValueRef::Record | ValueRef::Fields(_) => {}
            _ => {
                self.points.lookup(value).iter().for_each(|&atom| found(atom));
                self.ranges(value, found);
            }
        }
        self.residual.satisfied(value, table, found);
    }

    fn ranges(&self, value: ValueRef<'_>, found: &mut impl FnMut(u32)) {
        if self.above.is_empty() && self.below.is_empty() && self.between.is_empty() {
            return;
        }
        let Some(kind) = value.kind() else { return };
        // A value lies above the cuts before this one and below the others.
        let place = cut(value, true);
        let (first, last) = match kind {
            Kind::Str => (Cut::Text("".into(), false), None),
            _ => {
                let first = (kind as u128) << KIND_SHIFT;
                (Cut::Keyed(first), Some(Cut::Keyed(first + (1 << KIND_SHIFT))))
            }
        };
        for (_, atoms) in self.above.range(first..place.clone()) {
            atoms.as_slice().iter().for_each(|&atom| found(atom));
        }
        let below = match last {
            Some(last) => self.below.range(place.clone()..last),
            None => self.below.range(place.clone()..),
        };
        for (_, atoms) in below {
            atoms.as_slice().iter().for_each(|&atom| found(atom));
        }
        self.between.stab(&place, found);
    }

    /// Reports the negated predicates that a point value satisfies, once the true ones are known.
    fn negatives(&self, value: ValueRef<'_>, table: &PredicateTable, satisfied: &mut Satisfied) {
        let kind = value.kind().map_or(ANY_KIND, |kind| kind as usize);
        for list in [&self.negated[kind], &self.negated[ANY_KIND]] {
            for &atom in list {
                if !satisfied.holds(Literal::new(atom, false)) {
                    satisfied.report(Literal::new(atom, true));
                }
            }
        }
        for &atom in &self.negated_asked {
            if table.atom(atom).outcome(Some(value)).can_be_false {
                satisfied.report(Literal::new(atom, true));
            }
        }
    }

    /// Evaluates every predicate of the attribute: an interval can satisfy a predicate and its negation.
    fn ask_all(&self, value: ValueRef<'_>, table: &PredicateTable, found: &mut impl FnMut(Literal)) {
        let lists = (self.points.lists()).chain(self.elements.lists()).chain(self.above.values());
        let listed = lists.chain(self.below.values()).flat_map(|list| list.as_slice().iter().copied());
        for atom in listed.chain(self.between.names()).chain(self.residual.atoms()) {
            if table.atom(atom).outcome(Some(value)).can_be_true {
                found(Literal::new(atom, false));
            }
        }
        for &atom in self.negated.iter().flatten().chain(&self.negated_asked) {
            if table.atom(atom).outcome(Some(value)).can_be_false {
                found(Literal::new(atom, true));
            }
        }
    }

    fn bytes(&self) -> usize {
        let cuts = self.above.iter().chain(&self.below);
        self.points.bytes()
            + self.elements.bytes()
            + cuts.map(|(_, list)| size_of::<(Cut, ShortList)>() + list.heap_bytes()).sum::<usize>()
            + self.between.bytes()
            + self.residual.bytes()
            + (self.negated.iter().map(Vec::capacity).sum::<usize>()
                + self.negated_asked.capacity()
                + self.absent.capacity())
                * size_of::<u32>()
    }
}

impl Points {
    fn change(&mut self, values: &[Value], atom: u32, change: Change) {
        for value in values {
            match value.as_ref() {
                ValueRef::Null => {}
                ValueRef::Str(text) => {
                    let list = self.texts.entry(text.into()).or_default();
                    change.apply(list, atom);
                    if list.is_empty() {
                        self.texts.remove(text);
                    }
                }
                value => {
                    let key = keyed(value).expect("points are scalars");
                    let list = self.keyed.entry(key).or_default();
                    change.apply(list, atom);
                    if list.is_empty() {
                        self.keyed.remove(&key);
                    }
                }
            }
        }
    }

    fn lookup(&self, value: ValueRef<'_>) -> &[u32] {
        let list = match value {
            ValueRef::Str(text) => self.texts.get(text),
            _ => keyed(value).and_then(|key| self.keyed.get(&key)),
        };
        list.map_or(&[], ShortList::as_slice)
    }

    fn lists(&self) -> impl Iterator<Item = &ShortList> {
        self.keyed.values().chain(self.texts.values())
    }

    fn bytes(&self) -> usize {
        self.keyed.capacity() * (size_of::<(u128, ShortList)>() + 1)
            + self.texts.capacity() * (size_of::<(Box<str>, ShortList)>() + 1)
            + self.texts.keys().map(|text| text.len()).sum::<usize>()
            + self.lists().map(ShortList::heap_bytes).sum::<usize>()
    }
}

fn change_at(map: &mut BTreeMap<Cut, ShortList>, cut: Cut, atom: u32, change: Change) {
    let list = map.entry(cut.clone()).or_default();
    change.apply(list, atom);
    if list.is_empty() {
        map.remove(&cut);
    }
}

/// Whether an absent attribute satisfies the literal.
fn holds_when_absent(literal: Literal, atom: &Atom) -> bool {
    literal.holds(atom.outcome(None))
}

/// A scalar other than a string as an integer: values of one kind sort like it.
fn keyed(value: ValueRef<'_>) -> Option<u128> {
    Some((value.kind()? as u128) << KIND_SHIFT | ordered_key(value)?)
}

/// The cut just before or after a value.
fn cut(value: ValueRef<'_>, after: bool) -> Cut {
    match Cut::new(value, after) {
        Cut::Keyed(key) => Cut::Keyed((value.kind().expect("a scalar") as u128) << KIND_SHIFT | key),
        text => text,
    }
}

fn take(list: &mut Vec<u32>, number: u32) {
    let at = list.iter().position(|other| *other == number).expect("only what was inserted is removed");
    list.swap_remove(at);
}
