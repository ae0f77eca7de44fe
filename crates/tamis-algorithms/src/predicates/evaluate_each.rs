//! Evaluates every predicate in use: slow, obviously correct, and the reference for the indexed matcher.

use super::{PredicateMatcher, PredicateTable, Satisfied};
use crate::short_list::ShortList;
use tamis_core::event::Event;
use tamis_core::expr::{Atom, Literal};

#[derive(Default)]
pub struct EvaluateEach {
    /// The watched literals of each attribute.
    by_attribute: Vec<ShortList>,
}

impl PredicateMatcher for EvaluateEach {
    fn watch(&mut self, literal: Literal, atom: &Atom, _: bool) {
        let at = atom.attribute.0 as usize;
        if self.by_attribute.len() <= at {
            self.by_attribute.resize_with(at + 1, ShortList::default);
        }
        self.by_attribute[at].push(literal.0);
    }

    fn forget(&mut self, literal: Literal, atom: &Atom, _: bool) {
        self.by_attribute[atom.attribute.0 as usize].remove(literal.0);
    }

    fn satisfied(&self, event: &Event<'_>, table: &PredicateTable, satisfied: &mut Satisfied) {
        for list in &self.by_attribute {
            for &literal in list.as_slice() {
                let (literal, atom) = (Literal(literal), table.atom(literal >> 1));
                if literal.holds(atom.outcome(event.get(atom.attribute))) {
                    satisfied.report(literal);
                }
            }
        }
    }

    fn bytes(&self) -> usize {
        self.by_attribute.capacity() * size_of::<ShortList>()
            + self.by_attribute.iter().map(ShortList::heap_bytes).sum::<usize>()
    }
}
