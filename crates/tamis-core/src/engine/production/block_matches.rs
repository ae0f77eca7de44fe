//! The matches of a block of events, from the masks of rows to the rows of each event.
//!
//! There may be 25,000 for each of 512 events, more than the caches hold. So they are rows, four bytes each, until they are
//! written, and rows are brought into order by a bit for each, not by comparing.

use super::id_order::follow_each_other;
use super::view::View;
use crate::engine::contract::{FoundMatches, Location, Observation, Version};
use crate::engine::segment::bit_parallel::{Mask, WIDTH};
use crate::heap::prefer_huge_pages;
use crate::prefetch::prefetch;
use crate::subscription::IdKind;

/// Rows of a segment that match some events of a block, and which events.
#[derive(Default)]
pub(super) struct MatchedRows {
    /// A bit per row: whether it matches some event.
    is_matched: Vec<u64>,
    /// Per row that does, the place of its mask.
    place_of: Vec<u32>,
    masks: Vec<Mask>,
    matches: usize,
}

/// How far ahead of the walk over rows their masks are fetched, in rows.
const FETCH_AHEAD: usize = 16;

impl MatchedRows {
    /// None of that many rows matches.
    pub fn start(&mut self, rows: usize) {
        self.is_matched.clear();
        self.is_matched.resize(rows.div_ceil(64), 0);
        self.place_of.resize(rows + FETCH_AHEAD, 0);
        self.masks.clear();
        if self.masks.capacity() < rows {
            self.masks.reserve_exact(rows);
            prefer_huge_pages(self.masks.spare_capacity_mut());
        }
        self.matches = 0;
    }

    /// Adds rows that match the same events.
    #[inline]
    pub fn add(&mut self, rows: impl Iterator<Item = u32>, events: &Mask) {
        let (place, mut added) = (self.masks.len() as u32, 0);
        for row in rows {
            self.is_matched[row as usize / 64] |= 1 << (row % 64);
            self.place_of[row as usize] = place;
            added += 1;
        }
        if added > 0 {
            self.matches += added * events.count();
            self.masks.push(*events);
        }
    }

    /// How many matches there are.
    pub fn matches(&self) -> usize {
        self.matches
    }

    /// Calls `visit` with each row, in order, and its events.
    #[inline]
    pub fn for_each(&self, mut visit: impl FnMut(u32, &Mask)) {
        for (at, word) in self.is_matched.iter().enumerate() {
            let mut rest = *word;
            while rest != 0 {
                let row = 64 * at + rest.trailing_zeros() as usize;
                rest &= rest - 1;
                prefetch(self.masks.as_ptr().wrapping_add(self.place_of[row + FETCH_AHEAD] as usize));
                visit(row as u32, &self.masks[self.place_of[row] as usize]);
            }
        }
    }

    /// How many matches each event has.
    pub fn by_event(&self) -> [usize; WIDTH] {
        let mut matches = [0; WIDTH];
        self.for_each(|_, events| events.for_each(|event| matches[event] += 1));
        matches
    }
}

/// The matches of each event of a block, used again from block to block.
#[derive(Default)]
pub(super) struct BlockMatches {
    /// By part and event: rows, sorted.
    parts: Vec<Vec<Vec<u32>>>,
    /// By event: matches in the buffer.
    buffered: Vec<Vec<Location>>,
}

impl BlockMatches {
    /// No matches of that many events in as many parts.
    pub fn start(&mut self, parts: usize, events: usize) {
        self.parts.resize_with(parts, Vec::new);
        self.parts.iter_mut().for_each(|of_events| empty(of_events, events));
        empty(&mut self.buffered, events);
    }

    /// The rows of a part that match each event.
    pub fn of_part(&mut self, part: u32) -> &mut [Vec<u32>] {
        &mut self.parts[part as usize]
    }

    /// The matches of an event in the buffer.
    pub fn buffered(&mut self, at: usize) -> &mut Vec<Location> {
        &mut self.buffered[at]
    }

    /// How many matches an event has.
    pub fn count(&self, at: usize) -> usize {
        self.parts.iter().map(|of_events| of_events[at].len()).sum::<usize>() + self.buffered[at].len()
    }

    /// Replaces `locations` by the matches of an event, sorted by id.
    pub fn of_event(&self, view: &View, at: usize, locations: &mut Vec<Location>) {
        locations.clear();
        for (part, of_events) in (0..).zip(&self.parts) {
            locations.extend(of_events[at].iter().map(|row| Location::Row { part, row: *row }));
        }
        let rows = locations.len();
        locations.extend_from_slice(&self.buffered[at]);
        locations[rows..].sort_unstable_by(|a, b| view.id(*a).cmp(&view.id(*b)));
        view.merge_runs(locations);
    }

    /// Adds the ids of an event's matches, sorted, unless segments must be merged for that.
    fn add_int_ids(&self, view: &View, at: usize, ids: &mut Vec<i64>) -> bool {
        let tables = view.parts.iter().map(|part| &part.segment.subscription_table);
        let runs = tables.clone().zip(&self.parts).filter_map(|(table, of_events)| {
            let (first, last) = of_events[at].first().zip(of_events[at].last())?;
            Some((table.int_ids[*first as usize], table.int_ids[*last as usize]))
        });
        if !self.buffered[at].is_empty() || !follow_each_other(runs) {
            return false;
        }
        for (table, of_events) in tables.zip(&self.parts) {
            table.add_int_ids(&of_events[at], ids);
        }
        true
    }
}

/// Makes that many lists, all of them empty.
fn empty<T>(lists: &mut Vec<Vec<T>>, count: usize) {
    lists.resize_with(count.max(lists.len()), Vec::new);
    lists.iter_mut().for_each(Vec::clear);
}

/// The matches of the events of a block that are answered.
pub(super) struct FoundInBlock<'a> {
    pub view: &'a View,
    pub matches: &'a BlockMatches,
    pub events: usize,
    pub observed: Observation,
}

impl FoundMatches for FoundInBlock<'_> {
    fn events(&self) -> usize {
        self.events
    }

    fn matches(&self) -> usize {
        (0..self.events).map(|at| self.matches.count(at)).sum()
    }

    fn matches_of(&self, at: usize) -> usize {
        self.matches.count(at)
    }

    fn of_event(&self, at: usize, locations: &mut Vec<Location>) {
        self.matches.of_event(self.view, at, locations);
    }

    fn add_int_ids(&self, at: usize, ids: &mut Vec<i64>, _: bool) -> bool {
        self.view.id_kind() == Some(IdKind::Int) && self.matches.add_int_ids(self.view, at, ids)
    }

    fn observed(&self) -> Observation {
        self.observed
    }
}

/// For how many events of a block there is room: as many as have no more than `most` matches together, and one
/// at least. Parts of the index are asked one after the other, so an event may lose its place later.
pub(super) struct Room {
    pub events: usize,
    /// Matches of these events so far.
    pub held: usize,
    pub most: usize,
}

impl Room {
    pub fn is_short(&self) -> bool {
        self.held > self.most
    }

    /// Drops the events for which there is no room; `matches_of` says how many an event has.
    pub fn fit(&mut self, matches_of: impl Fn(usize) -> usize) {
        self.held = 0;
        for at in 0..self.events {
            let matches = matches_of(at);
            if at > 0 && self.held + matches > self.most {
                self.events = at;
                return;
            }
            self.held += matches;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Memory that an earlier segment used must not show: it had more rows, or fewer, and other masks.
    #[test]
    fn rows_come_in_order_with_their_events() {
        let mut matched = MatchedRows::default();
        for (rows, step) in [(1, 1), (64, 3), (65, 7), (1000, 13), (130, 1), (7, 5), (1000, 999)] {
            matched.start(rows);
            let mut expected = vec![];
            for first in (0..step.min(rows)).rev() {
                // All rows at this distance match as many events as the number of the first says, and one more.
                let mask = Mask::first(first % WIDTH + 1);
                let of_mask = (first..rows).step_by(step).map(|row| row as u32);
                matched.add(of_mask.clone(), &mask);
                expected.extend(of_mask.map(|row| (row, mask)));
            }
            matched.add([].into_iter(), &Mask::first(WIDTH));
            expected.sort_by_key(|(row, _)| *row);
            let mut found = vec![];
            matched.for_each(|row, events| found.push((row, *events)));
            assert_eq!(found, expected);
            let total = expected.iter().map(|(_, events)| events.count()).sum::<usize>();
            assert_eq!(matched.matches(), total);
            let by_event = matched.by_event();
            assert_eq!(by_event.iter().sum::<usize>(), total);
            assert_eq!(by_event[0], rows);
        }
    }

    #[test]
    fn the_first_event_has_room_whatever_it_matches() {
        let matches = [5, 0, 3, 2, 9];
        let events_with = |most| {
            let mut room = Room { events: matches.len(), held: matches.iter().sum(), most };
            if room.is_short() {
                room.fit(|at| matches[at]);
            }
            (room.events, room.held)
        };
        assert_eq!([0, 5, 7, 8, 10, 19].map(events_with), [(1, 5), (2, 5), (2, 5), (3, 8), (4, 10), (5, 19)]);
    }
}
