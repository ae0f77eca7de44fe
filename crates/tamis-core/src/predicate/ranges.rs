//! Ranges: every comparison tests the position of a value relative to a *cut* between values.
//!
//! A cut lies just before or just after an operand. `x >= 5` means "above the cut before 5",
//! `x > 5` "above the cut after 5", `x < 5` "below the cut before 5". With the distinct cuts of an
//! attribute sorted, a value is above the first `rank` of them and below all others. The bits of "below" come
//! before those of "above", so the satisfied comparisons are one run of consecutive bits. BETWEEN is above one
//! cut and below another.
//!
//! ```text
//! cuts        c0    c1    c2    c3        value v between c1 and c2: rank 2
//! BELOW bits   0     0     1     1        run  [below + rank, above + rank)
//! ABOVE bits   1     1     0     0
//! ```

use std::hint::select_unpredictable;

use bytemuck::{Pod, Zeroable};

use super::equality::{text_at, text_place};
use super::keys::{KEY_BITS, ordered_key};
use crate::event::ValueRef;
use crate::snapshot::SharedSlice;

#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct CutTable {
    pub kind: u32,
    pub first: u32,
    pub len: u32,
    /// The bit of "below cut 0"; the others follow.
    pub below: u32,
    /// The bit of "above cut 0", next to the last of "below"; the others follow.
    pub above: u32,
    /// The list of access intervals, or `u32::MAX`.
    pub list: u32,
    /// The root of the interval_tree tree over access intervals, if they are not listed, or `u32::MAX`.
    pub tree: u32,
}

/// The cuts of all tables, sorted within each. A search reads leading bits, and the rest only of those that
/// have the same: often a cut just before an operand and the one just after it.
#[derive(Clone, Default)]
pub struct Cuts {
    /// The leading 64 bits of a key, or the place of a text.
    pub heads: SharedSlice<u64>,
    /// The other bits of a key, or whether a cut is just after its text.
    pub rests: SharedSlice<u32>,
}

/// Cuts have no more bits than this behind the first 64: those of a key, and one for the side of the cut.
const REST_BITS: u32 = KEY_BITS + 1 - 64;

/// No more cuts than this are counted instead of searched.
const FEW_CUTS: usize = 16;

/// Cuts with the same leading bits that are looked at one by one: there are seldom more than two.
const FEW_SAME: usize = 4;

fn head_and_rest(key: u128) -> (u64, u32) {
    const { assert!(REST_BITS == u32::BITS) };
    ((key >> REST_BITS) as u64, key as u32)
}

impl Cuts {
    pub(super) fn heads_of(&self, table: &CutTable) -> &[u64] {
        &self.heads[table.first as usize..(table.first + table.len) as usize]
    }

    /// How many cuts of the table lie below the value; `None` if it cannot be compared.
    pub fn rank(&self, table: &CutTable, value: ValueRef<'_>, pool: &[u8]) -> Option<u32> {
        match value {
            ValueRef::Str(text) => Some(self.rank_of_text(table, text, pool)),
            _ => Some(self.rank_of_key(table, ordered_key(value)?)),
        }
    }

    /// The same for the [`ordered_key`] of a value.
    pub fn rank_of_key(&self, table: &CutTable, key: u128) -> u32 {
        let (head, rest) = head_and_rest(key << 1 | 1);
        let heads = self.heads_of(table);
        let smaller = match heads.len() {
            // Without a branch, and without waiting for one comparison before the next.
            ..=FEW_CUTS => heads.iter().filter(|cut| **cut < head).count(),
            _ => heads.partition_point(|cut| *cut < head),
        };
        self.rank_among_same(table, smaller, head, rest)
    }

    /// The rank of a key, if this many heads are smaller than its own.
    #[inline]
    fn rank_among_same(&self, table: &CutTable, smaller: usize, head: u64, rest: u32) -> u32 {
        let heads = &self.heads_of(table)[smaller..];
        if heads.first() != Some(&head) {
            return smaller as u32;
        }
        let few = heads.iter().take(FEW_SAME).take_while(|cut| **cut == head).count();
        let same = if few < FEW_SAME { few } else { heads.partition_point(|cut| *cut == head) };
        let rests = &self.rests[table.first as usize + smaller..][..same];
        (smaller + rests.partition_point(|cut| *cut < rest)) as u32
    }

    /// Finds the ranks of several keys, step by step in turns: what one of them waits for is on its way
    /// while the others go on.
    pub fn rank_together(&self, tables: &[CutTable], searches: &mut [Search]) {
        let mut most = searches.iter().map(|search| search.left).max().unwrap_or(0);
        while most > 1 {
            for search in &mut *searches {
                let half = search.left / 2;
                let is_smaller = self.heads[(search.at + half) as usize - (half > 0) as usize] < search.head;
                search.at = select_unpredictable(is_smaller, search.at + half, search.at);
                search.left -= half;
            }
            most -= most / 2;
        }
        for search in searches {
            let table = &tables[search.table as usize];
            let smaller = search.at + (self.heads[search.at as usize] < search.head) as u32 - table.first;
            search.at = self.rank_among_same(table, smaller as usize, search.head, search.rest);
        }
    }

    /// The same for a text.
    pub fn rank_of_text(&self, table: &CutTable, text: &str, pool: &[u8]) -> u32 {
        self.rank_of_text_within(table, text, pool, (0, table.len as usize))
    }

    /// The same, if the first cut that is not below the text is one of these, or the one behind them.
    pub fn rank_of_text_within(
        &self,
        table: &CutTable,
        text: &str,
        pool: &[u8],
        (from, to): (usize, usize),
    ) -> u32 {
        let heads = self.heads_of(table);
        let is_before = |place: &u64, or_same: bool| {
            let order = text_at(*place, pool).cmp(text.as_bytes());
            order.is_lt() || or_same && order.is_eq()
        };
        let first = from + heads[from..to].partition_point(|place| is_before(place, false));
        // One cut just before a text, and one just after it.
        let same = heads[first..].iter().take(2).take_while(|place| is_before(place, true)).count();
        let rests = &self.rests[table.first as usize + first..][..same];
        (first + rests.partition_point(|is_after| *is_after == 0)) as u32
    }

    pub fn bytes(&self) -> usize {
        self.heads.byte_len() + self.rests.byte_len()
    }
}

/// A cut as it is built: an operand and on which side of it the cut lies.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Cut {
    Keyed(u128),
    Text(Box<str>, bool),
}

impl Cut {
    /// The cut just before or just after an operand, or a value that is looked for.
    pub fn new(operand: ValueRef<'_>, after: bool) -> Self {
        match operand {
            ValueRef::Str(text) => Cut::Text(text.into(), after),
            _ => Cut::Keyed(ordered_key(operand).expect("ranges compare scalars") << 1 | after as u128),
        }
    }

    /// The stored form; texts go to the pool.
    fn store(&self, pool: &mut Vec<u8>) -> (u64, u32) {
        match self {
            Cut::Keyed(key) => head_and_rest(*key),
            Cut::Text(text, after) => {
                let place = text_place(pool.len(), text.len());
                pool.extend_from_slice(text.as_bytes());
                (place, *after as u32)
            }
        }
    }
}

/// A key that is looked for in one of all tables, which is not empty.
#[derive(Clone, Copy, Default)]
pub struct Search {
    head: u64,
    rest: u32,
    pub table: u32,
    /// Where the search is, in the heads of all tables, and how many of them are left; in the end, the rank.
    at: u32,
    left: u32,
}

impl Search {
    /// For the [`ordered_key`] of a value.
    #[inline]
    pub fn new(number: u32, table: &CutTable, key: u128) -> Self {
        let (head, rest) = head_and_rest(key << 1 | 1);
        Self { head, rest, table: number, at: table.first, left: table.len }
    }

    /// After the search.
    pub fn rank(&self) -> u32 {
        self.at
    }
}

/// Collects cuts, those of one table after another.
#[derive(Default)]
pub struct CutsBuilder {
    heads: Vec<u64>,
    rests: Vec<u32>,
}

impl CutsBuilder {
    /// How many cuts there are.
    pub fn count(&self) -> usize {
        self.heads.len()
    }

    /// Adds the next cut of a table; texts go to the pool.
    pub fn push(&mut self, cut: &Cut, pool: &mut Vec<u8>) {
        let (head, rest) = cut.store(pool);
        self.heads.push(head);
        self.rests.push(rest);
    }

    pub fn finish(self) -> Cuts {
        Cuts { heads: self.heads.into(), rests: self.rests.into() }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::event::Value;

    proptest! {
        #[test]
        fn the_rank_of_a_value_is_the_number_of_cuts_below_it(
            operands in prop::collection::vec((-6i64..6, any::<bool>()), 0..30),
            value in -7i64..7,
            kind in 0..4,
        ) {
            let as_value = |number: i64| match kind {
                0 => Value::Int(number),
                1 => Value::Float(number as f64 / 3.0),
                2 => Value::Timestamp(number),
                _ => Value::Str("ab".repeat((number + 7) as usize).into()),
            };
            let mut cuts: Vec<Cut> =
                operands.iter().map(|(number, after)| Cut::new(as_value(*number).as_ref(), *after)).collect();
            cuts.sort_unstable();
            cuts.dedup();
            let (mut builder, mut pool) = (CutsBuilder::default(), vec![]);
            // The cuts of another table come first.
            builder.push(&Cut::new(as_value(0).as_ref(), false), &mut pool);
            cuts.iter().for_each(|cut| builder.push(cut, &mut pool));
            let table = CutTable { kind: 0, first: 1, len: cuts.len() as u32, below: 0, above: cuts.len() as u32, list: 0, tree: 0 };
            let is_below = |cut: &&Cut| **cut <= Cut::new(as_value(value).as_ref(), false);
            let first = CutTable { first: 0, len: 1, ..table };
            let built = builder.finish();
            let rank = built.rank(&table, as_value(value).as_ref(), &pool);
            let expected = cuts.iter().filter(is_below).count() as u32;
            prop_assert_eq!(rank, Some(expected));
            if let Some(key) = ordered_key(as_value(value).as_ref())
                && !cuts.is_empty()
            {
                let mut searches = [Search::new(0, &table, key), Search::new(1, &first, key)];
                built.rank_together(&[table, first], &mut searches);
                prop_assert_eq!(searches.map(|search| search.rank()), [expected, (value >= 0) as u32]);
            }
        }
    }
}
