//! Finds which of many intervals contain a point, for intervals that hardly overlap: the answers are precomputed.
//!
//! The ends of the intervals divide the ranks into pieces, and every point of a piece is in the same intervals. With few
//! intervals per piece, a list for each is smaller than a tree, and one search finds it.
//!
//! ```text
//! tables   (first piece, pieces)               one per table of cuts whose intervals are listed
//! starts   piece → its first rank              rising within a table; there is nothing before the first
//! off      piece → its run in `keys`
//! keys     the intervals of a piece, rising
//! ```

use crate::snapshot::SharedSlice;

/// Intervals are listed if they are in no more pieces than this, on average: nested networks are in five or six. A list of
/// eight is hardly larger than the tree.
const MOST_PIECES: usize = 8;

#[derive(Clone, Default)]
pub struct IntervalLists {
    pub tables: SharedSlice<[u32; 2]>,
    pub starts: SharedSlice<u32>,
    pub off: SharedSlice<u32>,
    pub keys: SharedSlice<u32>,
}

impl IntervalLists {
    /// The keys of the intervals of a table that contain a point.
    #[inline]
    pub fn stab(&self, table: u32, point: u32) -> &[u32] {
        let (first, starts) = self.pieces(table);
        match starts.partition_point(|start| *start <= point) {
            0 => &[],
            after => self.keys_of(first + after - 1),
        }
    }

    /// Calls `found` with the key of every interval of a table that overlaps `low..=high`.
    pub fn overlap(&self, table: u32, low: u32, high: u32, found: &mut impl FnMut(u32)) {
        let (first, starts) = self.pieces(table);
        let from = starts.partition_point(|start| *start <= low).saturating_sub(1);
        let to = starts.partition_point(|start| *start <= high);
        let mut before: &[u32] = &[];
        for piece in from..to {
            // An interval is in consecutive pieces, and is reported with the first of them.
            let keys = self.keys_of(first + piece);
            keys.iter().filter(|key| before.binary_search(key).is_err()).for_each(|key| found(*key));
            before = keys;
        }
    }

    fn pieces(&self, table: u32) -> (usize, &[u32]) {
        let [first, pieces] = self.tables[table as usize].map(|number| number as usize);
        (first, &self.starts[first..first + pieces])
    }

    fn keys_of(&self, piece: usize) -> &[u32] {
        &self.keys[self.off[piece] as usize..self.off[piece + 1] as usize]
    }

    pub fn bytes(&self) -> usize {
        self.tables.byte_len() + self.starts.byte_len() + self.off.byte_len() + self.keys.byte_len()
    }
}

#[derive(Default)]
pub struct IntervalListsBuilder {
    tables: Vec<[u32; 2]>,
    starts: Vec<u32>,
    off: Vec<u32>,
    keys: Vec<u32>,
}

impl IntervalListsBuilder {
    /// Lists closed intervals `(low, high, name)`, sorted by their low ends, and returns the number of their
    /// table; `None` if there are none or they overlap too much. Each is given its key when its turn comes, by rising low end.
    pub fn table(
        &mut self,
        intervals: &[(u32, u32, u32)],
        key_of: &mut impl FnMut(u32) -> u32,
    ) -> Option<u32> {
        if intervals.is_empty() {
            return None;
        }
        let mut starts: Vec<u32> = intervals.iter().flat_map(|(low, high, _)| [*low, high + 1]).collect();
        starts.sort_unstable();
        starts.dedup();
        let piece_of = |rank: u32| starts.partition_point(|start| *start < rank);
        let mut count = vec![0u32; starts.len()];
        let mut listed = 0;
        for (low, high, _) in intervals {
            let pieces = piece_of(*low)..piece_of(high + 1);
            listed += pieces.len();
            if listed > MOST_PIECES * intervals.len() {
                return None;
            }
            count[pieces].iter_mut().for_each(|count| *count += 1);
        }
        let mut next = Vec::with_capacity(starts.len());
        let mut end = self.keys.len();
        for count in count {
            next.push(end);
            self.off.push(end as u32);
            end += count as usize;
        }
        self.keys.resize(end, 0);
        for (low, high, name) in intervals {
            let key = key_of(*name);
            for next in &mut next[piece_of(*low)..piece_of(high + 1)] {
                self.keys[*next] = key;
                *next += 1;
            }
        }
        self.tables.push([self.starts.len() as u32, starts.len() as u32]);
        self.starts.extend(starts);
        Some(self.tables.len() as u32 - 1)
    }

    pub fn finish(mut self) -> IntervalLists {
        self.off.push(self.keys.len() as u32);
        IntervalLists {
            tables: self.tables.into(),
            starts: self.starts.into(),
            off: self.off.into(),
            keys: self.keys.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn finds_exactly_the_intervals_that_contain_the_point(
            tables in prop::collection::vec(prop::collection::vec((0u32..40, 0u32..4), 1..20), 1..4),
            low in 0u32..50,
            length in 0u32..10,
        ) {
            let mut builder = IntervalListsBuilder::default();
            let mut next_key = 0;
            let mut listed = vec![];
            for table in tables {
                let mut intervals: Vec<(u32, u32, u32)> =
                    table.iter().enumerate().map(|(name, (low, more))| (*low, low + more, name as u32)).collect();
                intervals.sort_unstable();
                let mut keys = vec![0; intervals.len()];
                let number = builder.table(&intervals, &mut |name| {
                    keys[name as usize] = next_key;
                    next_key += 1;
                    next_key - 1
                });
                if let Some(number) = number {
                    listed.push((number, intervals, keys));
                }
            }
            let interval_lists = builder.finish();
            for (number, intervals, keys) in listed {
                let expected = |from: u32, to: u32| -> Vec<u32> {
                    let inside = intervals.iter().filter(|(low, high, _)| *low <= to && *high >= from);
                    let mut found: Vec<u32> = inside.map(|(.., name)| keys[*name as usize]).collect();
                    found.sort_unstable();
                    found
                };
                prop_assert_eq!(interval_lists.stab(number, low), expected(low, low));
                let mut found = vec![];
                interval_lists.overlap(number, low, low + length, &mut |key| found.push(key));
                found.sort_unstable();
                prop_assert_eq!(found, expected(low, low + length));
            }
        }
    }

    #[test]
    fn intervals_that_overlap_much_are_not_listed() {
        let nested: Vec<(u32, u32, u32)> = (0..100).map(|name| (name, 200 - name, name)).collect();
        assert_eq!(IntervalListsBuilder::default().table(&nested, &mut |name| name), None);
    }
}
