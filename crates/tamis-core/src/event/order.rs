//! Brings the values of an event into the order of their terms.
//!
//! Events come with their fields in any order. Sorting twenty values takes as long as looking one up in a large index, because each
//! comparison is a branch that nobody can predict. So the terms are marked in a set, which returns them in their order:
//!
//! ```text
//! values   (7, a) (2, b) (4, c)
//! places   2 → 1   4 → 2   7 → 0       where the value of a term is
//! set      2, 4, 7
//! sorted   (2, b) (4, c) (7, a)
//! ```

use super::{TermId, ValueRef};

/// Larger terms are left to a sort.
const TERMS: usize = 512;
/// So are more values.
const MOST: usize = 64;

/// Memory to sort with.
#[derive(Debug)]
pub(super) struct Order {
    /// Where the value of a term is, if the term is marked.
    places: [u8; TERMS],
    /// Of the last event, for its memory.
    spare: Vec<(TermId, ValueRef<'static>)>,
}

impl Default for Order {
    fn default() -> Self {
        Self { places: [0; TERMS], spare: vec![] }
    }
}

impl Order {
    /// Sorts values by their terms. False, and nothing done, if it cannot: a term has two values, or there are too many.
    pub fn sort<'a>(&mut self, values: &mut Vec<(TermId, ValueRef<'a>)>) -> bool {
        if values.len() > MOST {
            return false;
        }
        let mut marks = [0u64; TERMS / 64];
        let mut repeats = 0;
        for (place, (term, _)) in values.iter().enumerate() {
            let Some(known) = self.places.get_mut(term.0 as usize) else { return false };
            *known = place as u8;
            let mark = &mut marks[term.0 as usize / 64];
            repeats |= *mark >> (term.0 % 64) & 1;
            *mark |= 1 << (term.0 % 64);
        }
        if repeats != 0 {
            return false;
        }
        // Collecting into a vector of the same layout keeps its memory.
        let spare = std::mem::take(&mut self.spare);
        let mut sorted: Vec<(TermId, ValueRef<'a>)> =
            spare.into_iter().map(|_| unreachable!("it was cleared")).collect();
        sorted.reserve(values.len());
        for (word, mark) in marks.iter().enumerate() {
            let mut left = *mark;
            while left != 0 {
                let term = 64 * word + left.trailing_zeros() as usize;
                sorted.push(values[self.places[term] as usize]);
                left &= left - 1;
            }
        }
        let mut unsorted = std::mem::replace(values, sorted);
        unsorted.clear();
        self.spare = unsorted.into_iter().map(|_| unreachable!("it was cleared")).collect();
        true
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_sorts_what_a_sort_sorts(terms in prop::collection::vec(0..550u32, 0..80), few in any::<bool>()) {
            let mut terms = terms;
            if few {
                let mut seen = std::collections::BTreeSet::new();
                terms.retain(|term| *term < TERMS as u32 && seen.insert(*term));
            }
            let value = |term: &u32| (TermId(*term), ValueRef::Int(*term as i64));
            let mut values: Vec<_> = terms.iter().map(value).collect();
            let mut sorted = terms.clone();
            sorted.sort_unstable();
            let is_repeated = sorted.windows(2).any(|pair| pair[0] == pair[1]);
            let can = terms.len() <= MOST && terms.iter().all(|term| *term < TERMS as u32) && !is_repeated;
            let mut order = Order::default();
            // What an event before it left does not matter.
            order.sort(&mut vec![(TermId(3), ValueRef::Null), (TermId(1), ValueRef::Null)]);
            prop_assert_eq!(order.sort(&mut values), can);
            let expected = if can { &sorted } else { &terms };
            let found: Vec<u32> = values.iter().map(|(term, _)| term.0).collect();
            prop_assert_eq!(&found, expected);
            prop_assert!(values.iter().all(|(term, value)| matches!(value, ValueRef::Int(n) if *n == term.0 as i64)));
        }
    }
}
