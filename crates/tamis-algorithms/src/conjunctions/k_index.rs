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
//! *Top-k*: a list has an upper bound of the score that a conjunction gains by its predicate. Sizes whose best lists
//! together stay below the threshold are skipped, and only matches whose lists can reach it are scored. The
//! bounds are computed once, before the walk: there is nothing below a list that could refine them. Large sizes come
//! first, as published: they can score more, so small ones are more often skipped.
//!
//! The original expands a range to one list per value. Here the key of a list is the predicate, and the
//! shared predicate index says which of them a value satisfies: the same lists, without the blow-up. Sorted
//! lists suit a set that is known in advance: a change in the middle moves everything after it.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use rustc_hash::FxHashMap;

use super::{Conjunctions, Gain, Held};
use crate::predicates::{Predicates, Satisfied};
use tamis_core::engine::contract::Work;
use tamis_core::expr::Literal;
use tamis_core::query::{Scale, up};

#[derive(Default)]
pub struct KIndex {
    /// One list for each size, in the order of sizes: an event looks a predicate up once for all sizes.
    by_literal: FxHashMap<Literal, Vec<Posting>>,
}

/// The conjunctions of one size that have a predicate.
struct Posting {
    size: usize,
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
    /// The same, the greatest in front.
    greatest: Vec<f64>,
}

impl Conjunctions for KIndex {
    type Scratch = Walk;

    const TRANSLATES: bool = false;

    const IS_RANKED: bool = true;

    fn insert(&mut self, number: u32, literals: &[Literal], _: &Predicates) {
        let size = literals.len();
        for literal in literals {
            let postings = self.by_literal.entry(*literal).or_default();
            let at = place(postings, size).unwrap_or_else(|at| {
                postings.insert(at, Posting { size, numbers: vec![], most: None });
                at
            });
            let numbers = &mut postings[at].numbers;
            numbers.insert(numbers.partition_point(|other| *other < number), number);
        }
    }

    fn remove(&mut self, number: u32, literals: &[Literal]) {
        for literal in literals {
            let postings = self.by_literal.get_mut(literal).expect(HELD);
            let at = place(postings, literals.len()).expect(HELD);
            let numbers = &mut postings[at].numbers;
            numbers.remove(numbers.binary_search(&number).expect(HELD));
            if numbers.is_empty() {
                postings.remove(at);
            }
            if postings.is_empty() {
                self.by_literal.remove(literal);
            }
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
        for (literal, gain) in literals.iter().zip(most) {
            let postings = self.by_literal.get_mut(literal).expect(HELD);
            let at = place(postings, literals.len()).expect(HELD);
            let held = &mut postings[at].most;
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
        let of_literal = |postings: &Vec<Posting>| {
            let numbers: usize = postings.iter().map(|list| list.numbers.capacity()).sum();
            postings.capacity() * size_of::<Posting>() + numbers * size_of::<u32>()
        };
        let table = self.by_literal.capacity() * (size_of::<(Literal, Vec<Posting>)>() + 1);
        vec![("postings", table + self.by_literal.values().map(of_literal).sum::<usize>())]
    }
}

const HELD: &str = "only what was inserted is removed or weighed";

/// Where the list of a size is, or belongs.
fn place(postings: &[Posting], size: usize) -> Result<usize, usize> {
    postings.binary_search_by_key(&size, |posting| posting.size)
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
        // A conjunction needs as many satisfied predicates as it has.
        let is_small = |posting: &&Posting| posting.size <= satisfied.literals.len();
        let held = satisfied.literals.iter().filter_map(|literal| self.by_literal.get(literal));
        let mut held: Vec<&Posting> =
            held.flat_map(|postings| postings.iter().take_while(is_small)).collect();
        held.sort_unstable_by_key(|posting| Reverse(posting.size));
        let mut work = Work::default();
        for lists in held.chunk_by(|a, b| a.size == b.size) {
            walk.gains.clear();
            if let Some(scale) = scale {
                walk.gains.extend(lists.iter().map(|posting| posting.gain(scale)));
            }
            let (looked_at, least) = walk.run(lists[0].size, lists, least_wanted, offer);
            work.candidates += looked_at;
            least_wanted = least;
        }
        work
    }
}

impl AsRef<[u32]> for Posting {
    fn as_ref(&self) -> &[u32] {
        &self.numbers
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
        lists: &[impl AsRef<[u32]>],
        mut least_wanted: f64,
        offer: &mut dyn FnMut(u32) -> f64,
    ) -> (u64, f64) {
        if lists.len() < size || !self.can_win(size, least_wanted) {
            return (0, least_wanted);
        }
        let Self { heads, places, taken, gains, .. } = self;
        heads.clear();
        places.clear();
        places.resize(lists.len(), 0);
        heads.extend(lists.iter().zip(0..).map(|(list, at)| Reverse((list.as_ref()[0], at))));
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
                let (numbers, place) = (lists[list as usize].as_ref(), &mut places[list as usize]);
                let is_behind = |number: &u32| *number < last || is_match && *number == last;
                *place += skip(&numbers[*place..], is_behind);
                if let Some(&number) = numbers.get(*place) {
                    heads.push(Reverse((number, list)));
                }
            }
        }
        (looked_at, least_wanted)
    }

    /// Whether any `size` of the lists can make a score that is wanted.
    fn can_win(&mut self, size: usize, least_wanted: f64) -> bool {
        let Self { gains, greatest, .. } = self;
        if gains.is_empty() || least_wanted == f64::NEG_INFINITY {
            return true;
        }
        greatest.clone_from(gains);
        if greatest.len() > size {
            greatest.select_nth_unstable_by(size, |a, b| b.total_cmp(a));
        }
        bound(greatest.iter().take(size).copied()) >= least_wanted
    }
}

/// No score that is made of these gains is higher.
fn bound(gains: impl Iterator<Item = f64>) -> f64 {
    up(gains.sum())
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
            let mut found = vec![];
            Walk::default().run(size, &lists, f64::NEG_INFINITY, &mut |number| {
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
