//! The k-index (Whang et al. 2009, as described by Sadoghi and Jacobsen 2012 (BE*-Tree)), for conjunctions.
//!
//! Conjunctions are kept apart by their size. Among those of size K, each predicate has a posting list of the
//! conjunctions that have it, sorted by number. A conjunction of size K is true exactly if K lists of
//! satisfied predicates hold it, so the lists are walked together, smallest number first:
//!
//! ```text
//! size 2     a = 1   ─► 4  9           the two smallest heads are 4 and 7: nothing below 7 can be in two
//!            b < 3   ─► 7  9           lists, so the list of a = 1 skips to 7 and lands on 9
//!            c = 5   ─► 9  12          then 7 and 9: skip to 9; then 9 and 9: conjunction 9 is true
//! ```
//!
//! *Top-k*: a list knows the most that a conjunction gains by its predicate. Sizes whose best lists together stay
//! below what is wanted are not walked, and of the matches only those are scored whose lists can reach it. The
//! bounds are made once, before the walk: there is nothing below a list that could refine them.
//!
//! The original writes ranges out as one list per value. Here the key of a list is the predicate, and the
//! shared predicate index says which of them a value satisfies: the same lists, without the blow-up. Sorted
//! lists are made for what is known in advance; a change in their middle moves what comes after it.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use rustc_hash::FxHashMap;

use super::{Conjunctions, Gain, Held};
use crate::expr::atoms::Literal;
use crate::index::predicates::{Predicates, Satisfied};
use crate::index::segment::matcher::Work;
use crate::rank::Scale;
use crate::rank::bounds::up;

#[derive(Default)]
pub struct KIndex {
    by_size: BTreeMap<usize, Postings>,
}

/// The conjunctions of one size under each of their predicates.
type Postings = FxHashMap<Literal, Posting>;

#[derive(Default)]
struct Posting {
    /// In ascending order.
    numbers: Vec<u32>,
    /// The most that any of them gains by the predicate.
    most: Option<Gain>,
}

/// The lists of one size that an event walks, and the number each of them stands at, the smallest first.
#[derive(Default)]
pub struct Walk {
    heads: BinaryHeap<Reverse<(u32, u32)>>,
    /// Where in its postings each list stands.
    places: Vec<usize>,
    taken: Vec<u32>,
    /// The most that a conjunction gains by being in each list.
    gains: Vec<f64>,
}

impl Conjunctions for KIndex {
    type Scratch = Walk;

    const TRANSLATES: bool = false;

    const IS_RANKED: bool = true;

    fn insert(&mut self, number: u32, literals: &[Literal], _: &Predicates) {
        let postings = self.by_size.entry(literals.len()).or_default();
        for literal in literals {
            let list = &mut postings.entry(*literal).or_default().numbers;
            let at = list.partition_point(|other| *other < number);
            list.insert(at, number);
        }
    }

    fn remove(&mut self, number: u32, literals: &[Literal]) {
        let postings = self.by_size.get_mut(&literals.len()).expect("only what was inserted is removed");
        for literal in literals {
            let list = &mut postings.get_mut(literal).expect("only what was inserted is removed").numbers;
            list.remove(list.binary_search(&number).expect("only what was inserted is removed"));
            if list.is_empty() {
                postings.remove(literal);
            }
        }
        if postings.is_empty() {
            self.by_size.remove(&literals.len());
        }
    }

    fn satisfied(
        &self,
        _: &Held,
        satisfied: &Satisfied,
        walk: &mut Walk,
        found: &mut dyn FnMut(u32),
    ) -> Work {
        walk.gains.clear();
        self.walk(satisfied, walk, None, f64::NEG_INFINITY, &mut |number| {
            found(number);
            f64::NEG_INFINITY
        })
    }

    fn weigh(&mut self, literals: &[Literal], most: &[Gain]) {
        let postings = self.by_size.get_mut(&literals.len()).expect("only what is held is weighed");
        for (literal, gain) in literals.iter().zip(most) {
            let held = &mut postings.get_mut(literal).expect("only what is held is weighed").most;
            *held = Some(held.map_or(*gain, |held| Gain { most: held.most.max(gain.most), ..*gain }));
        }
    }

    fn best(
        &self,
        satisfied: &Satisfied,
        scale: &Scale,
        least_wanted: f64,
        walk: &mut Walk,
        offer: &mut dyn FnMut(u32) -> f64,
    ) -> Work {
        self.walk(satisfied, walk, Some(scale), least_wanted, offer)
    }

    fn bytes(&self) -> Vec<(&'static str, usize)> {
        let of_size = |postings: &Postings| {
            postings.capacity() * (size_of::<(Literal, Posting)>() + 1)
                + postings.values().map(|list| list.numbers.capacity() * size_of::<u32>()).sum::<usize>()
        };
        vec![("postings", self.by_size.values().map(of_size).sum())]
    }
}

impl KIndex {
    /// Walks the lists of each size; with a scale only for what can score enough.
    fn walk(
        &self,
        satisfied: &Satisfied,
        walk: &mut Walk,
        scale: Option<&Scale>,
        mut least_wanted: f64,
        offer: &mut dyn FnMut(u32) -> f64,
    ) -> Work {
        let mut work = Work::default();
        // A conjunction needs as many satisfied predicates as it has.
        for (&size, postings) in self.by_size.range(..=satisfied.literals.len()) {
            let held = satisfied.literals.iter().filter_map(|literal| postings.get(literal));
            let held: Vec<&Posting> = held.collect();
            let lists: Vec<&[u32]> = held.iter().map(|posting| posting.numbers.as_slice()).collect();
            walk.gains.clear();
            if let Some(scale) = scale {
                walk.gains.extend(held.iter().map(|posting| posting.gain(scale)));
            }
            let (looked_at, least) = walk.run(size, &lists, least_wanted, offer);
            work.candidates += looked_at;
            least_wanted = least;
        }
        work
    }
}

impl Posting {
    fn gain(&self, scale: &Scale) -> f64 {
        match self.most {
            Some(Gain { attribute, most }) if most.is_finite() => most * scale.factor(attribute),
            _ => f64::INFINITY,
        }
    }
}

impl Walk {
    /// Offers the numbers that are in `size` of the lists and, where gains are known, can score what is wanted;
    /// returns how many heads were looked at, and what is wanted then.
    fn run(
        &mut self,
        size: usize,
        lists: &[&[u32]],
        mut least_wanted: f64,
        offer: &mut dyn FnMut(u32) -> f64,
    ) -> (u64, f64) {
        let Self { heads, places, taken, gains } = self;
        if !can_win(gains, size, least_wanted) {
            return (0, least_wanted);
        }
        heads.clear();
        places.clear();
        places.resize(lists.len(), 0);
        heads.extend(lists.iter().enumerate().map(|(list, numbers)| Reverse((numbers[0], list as u32))));
        let mut looked_at = 0;
        while heads.len() >= size {
            taken.clear();
            let (mut first, mut last) = (None, 0);
            for _ in 0..size {
                let Reverse((number, list)) = heads.pop().expect("there are as many");
                first = first.or(Some(number));
                last = number;
                taken.push(list);
            }
            looked_at += size as u64;
            // All lists taken stand at the same number: it is in `size` lists. Otherwise nothing before the
            // last number can be.
            let is_match = first == Some(last);
            if is_match
                && (gains.is_empty() || bound(taken.iter().map(|list| gains[*list as usize])) >= least_wanted)
            {
                least_wanted = offer(last);
            }
            for &list in taken.iter() {
                let (numbers, place) = (lists[list as usize], &mut places[list as usize]);
                let is_behind = |number: &u32| *number < last || is_match && *number == last;
                *place += skip(&numbers[*place..], is_behind);
                if let Some(&number) = numbers.get(*place) {
                    heads.push(Reverse((number, list)));
                }
            }
        }
        (looked_at, least_wanted)
    }
}

/// No score that is made of these gains is higher.
fn bound(gains: impl Iterator<Item = f64>) -> f64 {
    up(gains.sum())
}

/// Whether any `size` of the lists can make a score that is wanted.
fn can_win(gains: &[f64], size: usize, least_wanted: f64) -> bool {
    let mut greatest = gains.to_vec();
    greatest.sort_unstable_by(|a, b| b.total_cmp(a));
    gains.is_empty() || bound(greatest.into_iter().take(size)) >= least_wanted
}

/// How many numbers at the beginning of a sorted list are behind: by doubling steps, so that a short skip is
/// cheap and a long one logarithmic.
fn skip(numbers: &[u32], is_behind: impl Fn(&u32) -> bool) -> usize {
    let mut end = 1;
    while end < numbers.len() && is_behind(&numbers[end]) {
        end *= 2;
    }
    let end = (end + 1).min(numbers.len());
    numbers[..end].partition_point(is_behind)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_walk_finds_the_numbers_that_are_in_enough_lists(
            members in prop::collection::vec(prop::collection::btree_set(0u32..40, 1..20), 1..8), size in 1usize..4
        ) {
            // Every number is in at most `size` lists, as in the postings of one size.
            let mut lists: Vec<Vec<u32>> = vec![];
            for members in members {
                let room = |number: &u32| lists.iter().filter(|list| list.contains(number)).count() < size;
                let list: Vec<u32> = members.into_iter().filter(room).collect();
                if !list.is_empty() {
                    lists.push(list);
                }
            }
            let is_in = |number: u32| lists.iter().filter(|list| list.contains(&number)).count();
            let expected: Vec<u32> = (0..40).filter(|number| is_in(*number) == size).collect();
            let slices: Vec<&[u32]> = lists.iter().map(Vec::as_slice).collect();
            let mut found = vec![];
            Walk::default().run(size, &slices, f64::NEG_INFINITY, &mut |number| {
                found.push(number);
                f64::NEG_INFINITY
            });
            prop_assert_eq!(found, expected);
        }

        #[test]
        fn a_skip_passes_all_that_are_behind(
            numbers in prop::collection::btree_set(0u32..60, 1..30), to in 0u32..62
        ) {
            let numbers: Vec<u32> = numbers.into_iter().collect();
            let behind = numbers.iter().filter(|number| **number < to).count();
            prop_assert_eq!(skip(&numbers, |number| *number < to), behind);
        }
    }
}
