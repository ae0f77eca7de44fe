//! Brings the values of an event into the order of their terms.
//!
//! Events come with their fields in any order. Sorting twenty values takes as long as looking one up in a large index, because each
//! comparison is a branch that nobody can predict. So the terms are marked in a set, which returns them in their order:
//!
//! ```text
//! values   (7, a) (2, b) (4, c)
//! places   2 → 1   4 → 2   7 → 0       where the value of a term is
//! set      2, 4, 7
//! ranks    2, 0, 1                     where each value belongs
//! ```

use super::{TermId, ValueRef};

/// Larger terms are left to a sort.
const TERMS: usize = 512;
/// So are more values.
const MOST: usize = 64;

/// Sorts values by their terms. False, and nothing done, if it cannot: a term has two values, or there are too many.
pub(super) fn sort_by_marks(values: &mut [(TermId, ValueRef<'_>)]) -> bool {
    if values.len() > MOST {
        return false;
    }
    let mut marks = [0u64; TERMS / 64];
    let mut places = [0u8; TERMS];
    let mut repeats = 0;
    for (place, (term, _)) in values.iter().enumerate() {
        let Some(known) = places.get_mut(term.0 as usize) else { return false };
        *known = place as u8;
        let mark = &mut marks[term.0 as usize / 64];
        repeats |= *mark >> (term.0 % 64) & 1;
        *mark |= 1 << (term.0 % 64);
    }
    if repeats != 0 {
        return false;
    }
    let (mut ranks, mut rank) = ([0u8; MOST], 0);
    for (word, mark) in marks.iter().enumerate() {
        let mut left = *mark;
        while left != 0 {
            let term = 64 * word + left.trailing_zeros() as usize;
            ranks[places[term] as usize % MOST] = rank;
            rank += 1;
            left &= left - 1;
        }
    }
    for at in 0..values.len() {
        while ranks[at] as usize != at {
            let to = ranks[at] as usize;
            values.swap(at, to);
            ranks.swap(at, to);
        }
    }
    true
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
            prop_assert_eq!(sort_by_marks(&mut values), can);
            let expected = if can { &sorted } else { &terms };
            let found: Vec<u32> = values.iter().map(|(term, _)| term.0).collect();
            prop_assert_eq!(&found, expected);
            prop_assert!(values.iter().all(|(term, value)| matches!(value, ValueRef::Int(n) if *n == term.0 as i64)));
        }
    }
}
