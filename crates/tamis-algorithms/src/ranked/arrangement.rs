//! Arranges intervals so that those that share a value are ordered by score, and neighbours are close together.
//!
//! The *constraint graph* has an edge from an interval to a worse one if some value is in both and in none
//! between them in score. It has at most 3n edges, and every order that respects it lists the intervals of any
//! value by score. Among the intervals that may come next, the one with the lowest start is chosen.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use super::{LAST, ScoredInterval};

/// Edges between places in a list that is sorted by score: from the better to the worse, distinct.
///
/// Looking from below, each part of the line shows the worst interval so far: a *visible block*. The next
/// interval gets an edge from every block that it meets, and then hides them where it is.
pub fn constraints(intervals: &[ScoredInterval]) -> Vec<(u32, u32)> {
    debug_assert!(intervals.is_sorted_by(|a, b| a.scored < b.scored));
    // From the first position of a block to the interval that is seen there; it ends where the next begins.
    let mut blocks: BTreeMap<u64, Option<u32>> = BTreeMap::from([(0, None)]);
    let mut edges = vec![];
    let mut met = vec![];
    for (at, interval) in intervals.iter().enumerate() {
        let (low, high) = (interval.extent.low, interval.extent.high);
        let seen_at = |position: u64| blocks.range(..=position).next_back().expect("a block begins at 0").1;
        let after = (high < LAST).then(|| (high + 1, *seen_at(high + 1)));
        met.clear();
        met.extend(*seen_at(low));
        met.extend(blocks.range(low..=high).filter_map(|(_, seen)| *seen));
        met.sort_unstable();
        met.dedup();
        edges.extend(met.iter().map(|better| (*better, at as u32)));
        let hidden: Vec<u64> = blocks.range(low..=high).map(|(start, _)| *start).collect();
        hidden.into_iter().for_each(|start| {
            blocks.remove(&start);
        });
        blocks.insert(low, Some(at as u32));
        if let Some((start, seen)) = after {
            blocks.entry(start).or_insert(seen);
        }
    }
    edges
}

/// Brings intervals that are sorted by score into an order that respects the constraints, the leftmost first.
pub fn arrange(intervals: &[ScoredInterval]) -> Vec<ScoredInterval> {
    let edges = constraints(intervals);
    // The worse neighbours of all intervals, one after the other: edges are sorted by the worse end.
    let mut offsets = vec![0; intervals.len() + 1];
    let mut waits_for = vec![0; intervals.len()];
    for (better, worse) in &edges {
        offsets[*better as usize + 1] += 1;
        waits_for[*worse as usize] += 1;
    }
    for at in 1..offsets.len() {
        offsets[at] += offsets[at - 1];
    }
    let (mut next, mut neighbours) = (offsets.clone(), vec![0; edges.len()]);
    for (better, worse) in edges {
        neighbours[next[better as usize]] = worse;
        next[better as usize] += 1;
    }
    let entry = |at: u32| Reverse((intervals[at as usize].extent.low, at));
    let mut free: BinaryHeap<_> =
        (0..intervals.len() as u32).filter(|at| waits_for[*at as usize] == 0).map(entry).collect();
    let mut arranged = Vec::with_capacity(intervals.len());
    while let Some(Reverse((_, at))) = free.pop() {
        arranged.push(intervals[at as usize]);
        for &worse in &neighbours[offsets[at as usize]..offsets[at as usize + 1]] {
            waits_for[worse as usize] -= 1;
            if waits_for[worse as usize] == 0 {
                free.push(entry(worse));
            }
        }
    }
    arranged
}
