//! Predicates on one attribute that must be evaluated: patterns, and operators without a shape.
//!
//! As in [`predicate::residual`](tamis_core::predicate::residual), one pass over a text finds which of them it could
//! satisfy. The index of literals is rebuilt by the first event after a change.

use std::sync::OnceLock;

use rustc_hash::FxHashMap;

use super::PredicateTable;
use tamis_core::event::ValueRef;
use tamis_core::expr::Test;
use tamis_core::fork::get_or_init;
use tamis_core::predicate::TextPredicates;

#[derive(Default)]
pub struct ResidualPredicates {
    list: Vec<Residual>,
    place_of: FxHashMap<u32, u32>,
    ready: OnceLock<Ready>,
}

struct Residual {
    atom: u32,
    test: OnceLock<Option<Test>>,
}

struct Ready {
    texts: TextPredicates,
    /// Places in the list that no literal can rule out.
    always: Vec<u32>,
}

impl ResidualPredicates {
    pub fn insert(&mut self, atom: u32) {
        self.place_of.insert(atom, self.list.len() as u32);
        self.list.push(Residual { atom, test: OnceLock::new() });
        self.ready = OnceLock::new();
    }

    pub fn remove(&mut self, atom: u32) {
        let at = self.place_of.remove(&atom).expect("only what was inserted is removed");
        self.list.swap_remove(at as usize);
        if let Some(moved) = self.list.get(at as usize) {
            self.place_of.insert(moved.atom, at);
        }
        self.ready = OnceLock::new();
    }

    pub fn atoms(&self) -> impl Iterator<Item = u32> {
        self.list.iter().map(|residual| residual.atom)
    }

    /// Calls `found` with every predicate that is true for a point value.
    pub fn satisfied(&self, value: ValueRef<'_>, table: &PredicateTable, found: &mut impl FnMut(u32)) {
        if self.list.is_empty() {
            return;
        }
        let ready = get_or_init(&self.ready, || Ready::new(&self.list, table));
        let mut candidates = vec![];
        if let ValueRef::Str(text) = value {
            let list = &self.list;
            ready.texts.satisfied(text, &mut |at, candidate| match candidate {
                None => found(list[at as usize].atom),
                Some(_) => candidates.push(at),
            });
        }
        for at in ready.always.iter().copied().chain(candidates) {
            let residual = &self.list[at as usize];
            let atom = table.atom(residual.atom);
            let rules = atom.operator.rules();
            let outcome = match get_or_init(&residual.test, || rules.compile(&atom.operands)) {
                Some(test) => test(value),
                None => rules.evaluate(Some(value), &atom.operands),
            };
            if outcome.can_be_true {
                found(residual.atom);
            }
        }
    }

    pub fn bytes(&self) -> usize {
        self.list.capacity() * size_of::<Residual>()
            + self.place_of.capacity() * size_of::<(u32, u32)>()
            + self.ready.get().map_or(0, |ready| ready.texts.heap_bytes())
    }
}

impl Ready {
    fn new(list: &[Residual], table: &PredicateTable) -> Self {
        let (mut texts, mut always) = (vec![], vec![]);
        for (at, residual) in list.iter().enumerate() {
            let atom = table.atom(residual.atom);
            let shape = atom.operator.rules().shape(&atom.operands);
            if shape.is_of_text() {
                texts.push((at as u32, shape));
            } else {
                always.push(at as u32);
            }
        }
        Self { texts: TextPredicates::new(texts), always }
    }
}
