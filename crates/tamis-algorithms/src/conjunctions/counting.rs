//! The counting algorithm (Yan and Garcia-Molina 1994, as described by Bittner 2008).
//!
//! Every satisfied predicate adds a hit to each conjunction that has it; a conjunction with as many hits as
//! predicates is true. Nothing is looked up twice, but every true predicate of every conjunction costs an
//! increment, whether the others are true or not.

use super::{Conjunctions, Held};
use crate::predicates::{Predicates, Satisfied};
use crate::short_list::ShortList;
use tamis_core::engine::contract::Work;
use tamis_core::expr::Literal;

#[derive(Default)]
pub struct Counting {
    /// From a literal to the conjunctions that have it.
    association: Vec<ShortList>,
    /// How many predicates each conjunction has.
    sizes: Vec<u16>,
}

impl Conjunctions for Counting {
    type Scratch = Vec<u16>;

    fn insert(&mut self, number: u32, literals: &[Literal], predicates: &Predicates) {
        if self.association.len() < predicates.literals() {
            self.association.resize_with(predicates.literals(), ShortList::default);
        }
        for literal in literals {
            self.association[literal.0 as usize].push(number);
        }
        if self.sizes.len() <= number as usize {
            self.sizes.resize(number as usize + 1, 0);
        }
        self.sizes[number as usize] = literals.len() as u16;
    }

    fn remove(&mut self, number: u32, literals: &[Literal]) {
        for literal in literals {
            self.association[literal.0 as usize].remove(number);
        }
    }

    fn satisfied(
        &self,
        _: &Held,
        satisfied: &Satisfied,
        hits: &mut Vec<u16>,
        found: &mut dyn FnMut(u32),
    ) -> Work {
        hits.clear();
        hits.resize(self.sizes.len(), 0);
        let mut work = Work::default();
        for literal in &satisfied.literals {
            let Some(list) = self.association.get(literal.0 as usize) else { continue };
            work.candidates += list.len() as u64;
            for &number in list.as_slice() {
                let count = &mut hits[number as usize];
                *count += 1;
                if *count == self.sizes[number as usize] {
                    found(number);
                }
            }
        }
        work
    }

    fn bytes(&self) -> Vec<(&'static str, usize)> {
        let lists: usize = self.association.iter().map(ShortList::heap_bytes).sum();
        vec![
            ("association", self.association.capacity() * size_of::<ShortList>() + lists),
            ("sizes", self.sizes.capacity() * size_of::<u16>()),
        ]
    }
}
