//! Brings matches into the order of their ids.
//!
//! Rows of one segment are in that order. So the matches of each segment are sorted by row, without looking at ids, and the
//! sorted runs are merged. Segments of one large build hold ids that follow each other, so mostly there is nothing to merge.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;

use super::view::View;
use crate::engine::contract::{Location, Version};

/// Fewer are sorted by comparing their ids.
const MANY: usize = 32;

impl View {
    /// Sorts distinct locations by id.
    pub(super) fn sort_by_id(&self, found: &mut Vec<Location>) {
        if found.len() < 2 {
            return;
        }
        let in_one_segment = self.parts.len() == 1 && self.buffer.is_empty();
        if found.len() < MANY && !in_one_segment {
            return found.sort_unstable_by(|a, b| self.id(*a).cmp(&self.id(*b)));
        }
        for run in found.chunk_by_mut(of_one_part) {
            match run[0] {
                Location::Buffer(_) => run.sort_unstable_by(|a, b| self.id(*a).cmp(&self.id(*b))),
                Location::Row { part, .. } => {
                    let row_of = |location: &Location| match location {
                        Location::Row { row, .. } => *row,
                        Location::Buffer(_) => unreachable!("these are rows"),
                    };
                    let of_row = |row| Location::Row { part, row };
                    sort_by_row(run, self.parts[part as usize].segment.len(), row_of, of_row);
                }
            }
        }
        self.merge_runs(found);
    }

    /// Sorts locations by id that are sorted as far as they follow each other in one part.
    pub(super) fn merge_runs(&self, found: &mut Vec<Location>) {
        let in_order =
            |pair: &[Location]| of_one_part(&pair[0], &pair[1]) || self.id(pair[0]) < self.id(pair[1]);
        if found.windows(2).all(in_order) {
            return;
        }
        let mut end = 0;
        let mut heads: BinaryHeap<_> = found
            .chunk_by(of_one_part)
            .map(|run| {
                end += run.len();
                Reverse((self.id(run[0]), end - run.len(), end))
            })
            .collect();
        let mut merged = Vec::with_capacity(found.len());
        while let Some(Reverse((_, start, end))) = heads.pop() {
            let until = match heads.peek() {
                Some(Reverse((next, ..))) => first_from(start + 1..end, |at| self.id(found[at]) > *next),
                None => end,
            };
            merged.extend_from_slice(&found[start..until]);
            if until < end {
                heads.push(Reverse((self.id(found[until]), until, end)));
            }
        }
        *found = merged;
    }
}

/// Whether runs of ids, of which each has a first and a last, follow each other.
pub(super) fn follow_each_other<T: PartialOrd + Copy>(runs: impl IntoIterator<Item = (T, T)>) -> bool {
    let mut before = None;
    runs.into_iter().all(|(first, last)| before.replace(last).is_none_or(|before| before < first))
}

fn of_one_part(a: &Location, b: &Location) -> bool {
    match (a, b) {
        (Location::Row { part: a, .. }, Location::Row { part: b, .. }) => a == b,
        (Location::Buffer(_), Location::Buffer(_)) => true,
        _ => false,
    }
}

/// The first place for which something holds that also holds for all behind it, or the end. It is near the start, so it is
/// looked for in steps that grow.
fn first_from(range: Range<usize>, holds: impl Fn(usize) -> bool) -> usize {
    let (mut from, mut step) = (range.start, 1);
    while from + step <= range.end && !holds(from + step - 1) {
        from += step;
        step *= 2;
    }
    let mut to = range.end.min(from + step - 1);
    while from < to {
        let middle = from + (to - from) / 2;
        if holds(middle) {
            to = middle;
        } else {
            from = middle + 1;
        }
    }
    from
}

/// Sorts matches that are distinct rows of one segment. Unless they are few, marking them in a set is faster than comparing.
pub(super) fn sort_by_row<T>(
    found: &mut [T],
    rows: usize,
    row_of: impl Fn(&T) -> u32,
    of_row: impl Fn(u32) -> T,
) {
    if found.is_empty() {
        return;
    }
    let comparisons = found.len() * (found.len().ilog2() as usize + 1);
    if comparisons < rows / 64 {
        return found.sort_unstable_by_key(row_of);
    }
    let mut marked = vec![0u64; rows.div_ceil(64)];
    for row in found.iter().map(row_of) {
        marked[row as usize / 64] |= 1 << (row % 64);
    }
    // The words that are not empty, without a branch that depends on which are: there are no more than rows, and one to be
    // written over.
    let (mut words, mut count) = (vec![0u32; found.len() + 1], 0);
    for (at, bits) in marked.iter().enumerate() {
        words[count] = at as u32;
        count += (*bits != 0) as usize;
    }
    let mut places = found.iter_mut();
    for word in &words[..count] {
        let mut bits = marked[*word as usize];
        while bits != 0 {
            let row = 64 * word + bits.trailing_zeros();
            *places.next().expect("each row was found once") = of_row(row);
            bits &= bits - 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::contract::Engine;
    use crate::engine::production::Production;
    use crate::engine::production::tests::List;
    use crate::engine::{Id, Subscription};
    use crate::expr::parser::parse;

    #[test]
    fn runs_follow_each_other_or_do_not() {
        assert!(follow_each_other::<i64>([]));
        assert!(follow_each_other([(1, 5), (6, 6), (7, 9)]));
        assert!(!follow_each_other([(1, 5), (4, 9)]));
        assert!(!follow_each_other([(7, 9), (1, 5)]));
    }

    #[test]
    fn a_place_is_found_wherever_it_is() {
        for end in 0..40 {
            for start in 0..=end {
                for first in start..=end {
                    assert_eq!(first_from(start..end, |at| at >= first), first, "{start}..{end}");
                }
            }
        }
    }

    /// Segments that follow each other, in both orders, interleaved and inside one another; ids in the buffer anywhere; few
    /// matches and many.
    #[test]
    fn matches_of_several_segments_come_in_order() {
        let segments: [&[Range<i64>]; 4] =
            [&[0..300, 300..700], &[300..700, 0..300], &[0..100, 500..900, 100..500], &[5..6, 0..5, 6..400]];
        for (segments, stride) in segments.into_iter().flat_map(|of| [(of, 1), (of, 3)]) {
            for buffered in [0..0, 900..1_000] {
                for as_text in [false, true] {
                    let id = |at: i64| match as_text {
                        true => Id::Str(format!("{:05}", at * stride % 1009).into()),
                        false => Id::Int(at * stride % 1009),
                    };
                    let make = |at: i64| Subscription::new(id(at), parse("x > 1").expect("it is right"));
                    let engine = Production::default();
                    for segment in segments {
                        let mut list: Vec<Subscription> = segment.clone().map(make).collect();
                        list.sort_by(|a, b| a.id.cmp(&b.id));
                        engine.add_all(&List(list)).unwrap_or_else(|error| panic!("{error}"));
                    }
                    for at in buffered.clone() {
                        let added = engine.apply(crate::engine::contract::Change::Add(make(at)));
                        added.unwrap_or_else(|error| panic!("{error}"));
                    }
                    let view = engine.view();
                    let all: Vec<Location> = view.unsorted_locations().collect();
                    for step in [1, 2, 7, 90] {
                        let mut expected: Vec<Location> = all.iter().copied().step_by(step).collect();
                        let mut found = expected.clone();
                        expected.sort_by(|a, b| view.id(*a).cmp(&view.id(*b)));
                        view.sort_by_id(&mut found);
                        assert!(found == expected, "{segments:?} {buffered:?} {as_text} {stride} {step}");
                    }
                }
            }
        }
    }

    /// Few rows are compared, many are marked; the last word of the marks may be full, or have one row.
    #[test]
    fn rows_are_sorted_however_many_there_are() {
        for rows in [1u32, 63, 64, 65, 1000, 12_800] {
            for step in [1, 2, 63, 64, 65, 500] {
                let expected: Vec<u32> =
                    (0..rows).rev().step_by(step).collect::<Vec<_>>().into_iter().rev().collect();
                let mut found = expected.clone();
                found.reverse();
                let middle = found.len() / 3;
                found.rotate_left(middle);
                sort_by_row(&mut found, rows as usize, |row| *row, |row| row);
                assert_eq!(found, expected);
            }
        }
        sort_by_row(&mut [], 100, |row: &u32| *row, |row| row);
    }
}
