//! Narrows the search for a text among many cuts: the leading bytes of every sixteenth cut.
//!
//! A search among texts reads a position and a text at each step, and waits for both. The leading bytes of the samples are
//! stored together and fit into the cache, so that only the last steps read texts, which are adjacent. Samples are not
//! stored in snapshots: the first lookup of a text creates them.
//!
//! ```text
//! cuts     4:0a000000  4:0a0000ff  …  4:0a01007f  …        sorted
//! shared   "4:0a0"                                        the common beginning of the first and the last cut
//! heads    every 16th cut, the next eight bytes as a number
//! ```

use super::equality::text_at;
use super::ranges::{CutTable, Cuts};
use crate::event::value::Kind;

/// Cuts between two samples.
const STEP: usize = 16;
/// Fewer cuts than this are found as fast without.
const FEWEST: usize = 256;

/// By the number of a table of cuts.
#[derive(Default)]
pub struct TextSamples(Vec<Samples>);

#[derive(Default)]
struct Samples {
    shared: Box<[u8]>,
    heads: Box<[u64]>,
}

impl TextSamples {
    pub fn new(tables: &[CutTable], cuts: &Cuts, pool: &[u8]) -> Self {
        let samples = |table: &CutTable| {
            let places = cuts.heads_of(table);
            if table.kind != Kind::Str as u32 || places.len() < FEWEST {
                return Samples::default();
            }
            let [first, last] = [places[0], places[places.len() - 1]].map(|place| text_at(place, pool));
            let shared = first.iter().zip(last).take_while(|(a, b)| a == b).count();
            let head = |place: &u64| head_of(text_at(*place, pool).get(shared..).unwrap_or_default());
            Samples { shared: first[..shared].into(), heads: places.iter().step_by(STEP).map(head).collect() }
        };
        Self(tables.iter().map(samples).collect())
    }

    /// Between which cuts of a table, of this many, a text lies: the first that is not below it is one of these, or the one
    /// behind them.
    #[inline]
    pub fn around(&self, table: u32, text: &str, cuts: usize) -> (usize, usize) {
        let samples = self.0.get(table as usize).filter(|samples| !samples.heads.is_empty());
        let Some((samples, rest)) =
            samples.and_then(|samples| Some((samples, text.as_bytes().strip_prefix(&*samples.shared)?)))
        else {
            return (0, cuts);
        };
        let head = head_of(rest);
        let below = samples.heads.partition_point(|sample| *sample < head);
        let same = samples.heads[below..].partition_point(|sample| *sample == head);
        (below.saturating_sub(1) * STEP, ((below + same) * STEP).min(cuts))
    }

    pub fn bytes(&self) -> usize {
        self.0.iter().map(|samples| samples.shared.len() + size_of_val(&*samples.heads)).sum()
    }
}

/// The first eight bytes as a number that sorts like them, or not at all.
fn head_of(bytes: &[u8]) -> u64 {
    match bytes.first_chunk() {
        Some(first) => u64::from_be_bytes(*first),
        None => {
            let mut first = [0; 8];
            first[..bytes.len()].copy_from_slice(bytes);
            u64::from_be_bytes(first)
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::event::ValueRef;
    use crate::predicate::ranges::{Cut, CutsBuilder};

    proptest! {
        #[test]
        fn the_narrow_place_has_the_rank_of_the_whole_table(
            shared in "[a\0]{0,2}",
            words in prop::collection::btree_set("[ab\0]{0,10}", 300..500),
            asked in prop::collection::vec("[abc\0]{0,12}", 1..40),
        ) {
            let texts: Vec<String> = words.iter().map(|word| format!("{shared}{word}")).collect();
            let mut cuts: Vec<Cut> = texts
                .iter()
                .flat_map(|text| [false, true].map(|after| Cut::new(ValueRef::Str(text), after)))
                .collect();
            cuts.sort_unstable();
            let (mut builder, mut pool) = (CutsBuilder::default(), vec![]);
            cuts.iter().for_each(|cut| builder.push(cut, &mut pool));
            let built = builder.finish();
            let len = cuts.len() as u32;
            let table = CutTable { kind: Kind::Str as u32, first: 0, len, below: 0, above: len, list: 0, tree: 0 };
            let samples = TextSamples::new(&[table], &built, &pool);
            for text in asked.iter().map(|word| format!("{shared}{word}")).chain(asked.clone()).chain(texts) {
                let narrow = samples.around(0, &text, cuts.len());
                prop_assert_eq!(
                    built.rank_of_text_within(&table, &text, &pool, narrow),
                    built.rank_of_text(&table, &text, &pool),
                    "{:?} in {:?}", text, narrow
                );
            }
        }
    }
}
