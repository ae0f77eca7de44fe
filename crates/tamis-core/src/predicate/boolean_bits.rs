//! The predicates that Boolean terms satisfy, for a catalog with very many of them.
//!
//! Every quantifier and place is a term, and nearly all of them have one predicate. One table holds its bit,
//! so a true term costs one lookup instead of one each for its entry, its points, their keys and their bits:
//!
//! ```text
//! of[truth]   term → 0: nobody asks; a bit; RUN | place in `runs`; or ASK: look it up as any value
//! runs        length, bits
//! ```

use super::bits::Bits;
use super::catalog::{Catalog, Fired, NO_ATTRIBUTE};
use crate::event::value::Kind;
use crate::event::{TermId, ValueRef};
use crate::prefetch::prefetch;

const RUN: u32 = 1 << 31;
const ASK: u32 = u32::MAX;

pub struct BooleanBits {
    of: [Box<[u32]>; 2],
    runs: Vec<u32>,
}

impl BooleanBits {
    pub fn new(catalog: &Catalog) -> Self {
        let mut runs = vec![];
        let of = [false, true].map(|truth| {
            catalog.entry_of.iter().map(|number| told(catalog, *number, truth, &mut runs)).collect()
        });
        Self { of, runs }
    }

    /// Tells what a term with that truth satisfies; false if it has to be looked up.
    #[inline]
    pub fn fire(&self, term: TermId, truth: bool, bits: &mut Bits, fired: &mut impl Fired) -> bool {
        let mut tell = |bit: u32| {
            bits.set(bit);
            fired.key(bit);
        };
        match self.of[truth as usize].get(term.0 as usize) {
            None | Some(0) => {}
            Some(&ASK) => return false,
            Some(&bit) if bit & RUN == 0 => tell(bit),
            Some(&run) => {
                let at = (run & !RUN) as usize;
                let bits = &self.runs[at + 1..][..self.runs[at] as usize];
                bits.iter().for_each(|bit| tell(*bit));
            }
        }
        true
    }

    #[inline]
    pub fn fetch(&self, term: TermId, truth: bool) {
        self.of[truth as usize].get(term.0 as usize).inspect(|bit| prefetch(*bit));
    }

    pub fn bytes(&self) -> usize {
        (self.of[0].len() + self.of[1].len() + self.runs.len()) * size_of::<u32>()
    }
}

/// What is told of a term, by the number of its entry.
fn told(catalog: &Catalog, number: u32, truth: bool, runs: &mut Vec<u32>) -> u32 {
    if number == NO_ATTRIBUTE {
        return 0;
    }
    let entry = &catalog.terms[number as usize];
    let kind = Kind::Bool as u32;
    if entry.residual > 0 || catalog.cuts_of(entry).iter().any(|table| table.kind == kind) {
        return ASK;
    }
    let points = catalog.points_of(entry).iter();
    let points = points.filter(|table| table.kind == kind && table.of_elements == 0);
    let found = points
        .filter_map(|table| catalog.points.find(table, ValueRef::Bool(truth), &catalog.pool))
        .flat_map(|point| catalog.points.bits_of(point));
    let first = runs.len();
    runs.push(0);
    runs.extend([entry.present, entry.defined[Kind::Bool as usize]].iter().filter(|bit| **bit != 0));
    runs.extend(found);
    let told = match &runs[first + 1..] {
        [] => 0,
        [bit] if bit & RUN == 0 => *bit,
        bits => {
            if first as u32 >= RUN - 1 || bits.iter().any(|bit| bit & RUN != 0) {
                runs.truncate(first);
                return ASK;
            }
            let length = bits.len() as u32;
            runs[first] = length;
            return RUN | first as u32;
        }
    };
    runs.truncate(first);
    told
}
