//! Several best-first lists as one: merged, intersected, or read in turn by the Threshold Algorithm.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;

use rustc_hash::FxHashSet;

use super::{BestFirst, Scored};

/// Lists that share no item, as one list, the best first: a heap of their heads.
pub struct Merged<I> {
    /// The head of each list, and which it is.
    heads: BinaryHeap<Reverse<(Scored, u32)>>,
    rests: Vec<I>,
}

impl<I: Iterator<Item = Scored>> Merged<I> {
    pub fn new(lists: impl Iterator<Item = I>) -> Self {
        let (mut heads, mut rests) = (vec![], vec![]);
        for mut list in lists {
            if let Some(head) = list.next() {
                heads.push(Reverse((head, rests.len() as u32)));
                rests.push(list);
            }
        }
        Self { heads: heads.into(), rests }
    }
}

impl<I: Iterator<Item = Scored>> Iterator for Merged<I> {
    type Item = Scored;

    fn next(&mut self) -> Option<Scored> {
        let mut head = self.heads.peek_mut()?;
        let Reverse((best, list)) = *head;
        match self.rests[list as usize].next() {
            Some(next) => head.0.0 = next,
            None => {
                PeekMut::pop(head);
            }
        }
        Some(best)
    }
}

/// The intersection of all lists: exact matches, if every dimension has the same scores.
pub struct Intersection<'a> {
    lists: Vec<BestFirst<'a>>,
    /// Items taken from the lists.
    pub reads: u64,
}

impl<'a> Intersection<'a> {
    pub fn new(lists: Vec<BestFirst<'a>>) -> Self {
        Self { lists, reads: 0 }
    }
}

impl Iterator for Intersection<'_> {
    type Item = Scored;

    fn next(&mut self) -> Option<Scored> {
        let count = self.lists.len();
        let (mut agree, mut worst, mut turn) = (0, None, 0);
        // Nothing better than the worst head can be in all lists; when all stand at it, it is.
        while agree < count {
            let head = loop {
                let head = self.lists[turn].next()?;
                self.reads += 1;
                if worst.is_none_or(|worst| head >= worst) {
                    break head;
                }
            };
            agree = if worst == Some(head) { agree + 1 } else { 1 };
            worst = Some(head);
            turn = (turn + 1) % count;
        }
        worst
    }
}

/// Lists read in turn, each item reported when it is first seen: the reading half of Fagin's Threshold
/// Algorithm. Scores are not negative.
pub struct RoundRobin<'a> {
    lists: Vec<List<'a>>,
    turn: usize,
    seen: FxHashSet<i64>,
    /// Items taken from the lists.
    pub reads: u64,
}

struct List<'a> {
    rest: BestFirst<'a>,
    /// By which its scores are multiplied.
    factor: f64,
    /// The score last read: ∞ before the first, 0 after the last.
    last: f64,
}

impl<'a> RoundRobin<'a> {
    /// Each list with the factor of its scores.
    pub fn new(lists: impl Iterator<Item = (BestFirst<'a>, f64)>) -> Self {
        let lists = lists.map(|(rest, factor)| List { rest, factor, last: f64::INFINITY }).collect();
        Self { lists, turn: 0, seen: FxHashSet::default(), reads: 0 }
    }

    /// The most that the scores of an item which was not seen can add up to, in the order of the lists.
    pub fn threshold(&self) -> f64 {
        let most = |list: &List<'_>| if list.factor == 0.0 { 0.0 } else { list.last * list.factor };
        self.lists.iter().map(most).fold(0.0, |sum, most| sum + most)
    }
}

impl Iterator for RoundRobin<'_> {
    type Item = i64;

    fn next(&mut self) -> Option<i64> {
        let mut exhausted = 0;
        while exhausted < self.lists.len() {
            let count = self.lists.len();
            let list = &mut self.lists[self.turn];
            self.turn = (self.turn + 1) % count;
            match list.rest.next() {
                Some(scored) => {
                    self.reads += 1;
                    exhausted = 0;
                    list.last = scored.score;
                    if self.seen.insert(scored.id) {
                        return Some(scored.id);
                    }
                }
                None => {
                    exhausted += 1;
                    list.last = 0.0;
                }
            }
        }
        None
    }
}

/// The Threshold Algorithm: the k items with the greatest whole scores, the best first.
///
/// It stops as soon as the k-th best is above the threshold; a score that only equals it does not suffice, as a
/// smaller id may have it, too.
pub fn best_sums(lists: &mut RoundRobin<'_>, k: usize, sum: impl Fn(i64) -> f64) -> Vec<Scored> {
    // The worst of the best is on top.
    let mut best: BinaryHeap<Scored> = BinaryHeap::new();
    while best.len() < k || best.peek().is_some_and(|worst| worst.score <= lists.threshold()) {
        let Some(id) = lists.next() else { break };
        let found = Scored { score: sum(id), id };
        if best.len() < k {
            best.push(found);
        } else if let Some(mut worst) = best.peek_mut()
            && found < *worst
        {
            *worst = found;
        }
    }
    best.into_sorted_vec()
}
