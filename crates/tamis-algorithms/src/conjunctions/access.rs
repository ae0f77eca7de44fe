//! Access predicates alone (after the propagation algorithm of Fabret et al. 2001), for conjunctions.
//!
//! A conjunction is filed under its most selective predicate. When that predicate is true, the others are
//! looked up until one is not true. This is `cluster` without clusters and without translation: it keeps
//! conjunctions one by one and refuses everything else.

use super::{Conjunctions, Held, choose_access};
use crate::predicates::{Predicates, Satisfied};
use crate::short_list::ShortList;
use tamis_core::engine::contract::Work;
use tamis_core::expr::Literal;

#[derive(Default)]
pub struct AccessLists {
    /// From an access predicate to its conjunctions.
    filed: Vec<ShortList>,
    access_of: Vec<Literal>,
}

impl Conjunctions for AccessLists {
    type Scratch = ();

    const TRANSLATES: bool = false;

    fn insert(&mut self, number: u32, literals: &[Literal], predicates: &Predicates) {
        if self.filed.len() < predicates.literals() {
            self.filed.resize_with(predicates.literals(), ShortList::default);
        }
        let access = choose_access(literals, predicates, |literal| self.filed[literal.0 as usize].len());
        self.filed[access.0 as usize].push(number);
        if self.access_of.len() <= number as usize {
            self.access_of.resize(number as usize + 1, Literal(0));
        }
        self.access_of[number as usize] = access;
    }

    fn remove(&mut self, number: u32, _: &[Literal]) {
        self.filed[self.access_of[number as usize].0 as usize].remove(number);
    }

    fn satisfied(&self, held: &Held, satisfied: &Satisfied, _: &mut (), found: &mut dyn FnMut(u32)) -> Work {
        let mut work = Work::default();
        for literal in &satisfied.literals {
            let Some(filed) = self.filed.get(literal.0 as usize) else { continue };
            work.candidates += filed.len() as u64;
            work.evaluations += filed.len() as u64;
            for &number in filed.as_slice() {
                if held[number as usize].iter().all(|literal| satisfied.holds(*literal)) {
                    found(number);
                }
            }
        }
        work
    }

    fn bytes(&self) -> Vec<(&'static str, usize)> {
        let lists: usize = self.filed.iter().map(ShortList::heap_bytes).sum();
        let access = self.filed.capacity() * size_of::<ShortList>() + lists;
        vec![("access", access + self.access_of.capacity() * size_of::<Literal>())]
    }
}
