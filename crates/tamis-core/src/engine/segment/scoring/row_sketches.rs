//! Bounds the score of a row for the current event, in a fraction of the time of scoring it.
//!
//! The bound of a row counts all its leaves. In an expression with many ORs only few leaves are true for an event, so
//! that its score is far below the bound. A sketch adds up the true leaves, wherever they are in the tree. That exceeds
//! the score only if a leaf is true and something above it is not. Weights are rounded up to a byte, and every leaf has
//! two gates, so that it is read without a branch.
//!
//! ```text
//! place  row → where its words begin; `NONE` for a conjunction, whose bound is its score, and for rows
//!        without a program
//! words  head      how wide leaves are, what 1 stands for in a weight, a power of two, and how many
//!                  leaves there are
//!        leaves    narrow: two gates of 16 bits, a word; wide: two gates and the weight, two words
//!        weights   of narrow leaves: a byte each, what it counts when both gates are open
//! ```
//!
//! A gate is a test. Sketches are in the order of their units, so that those of units that fire together are
//! adjacent.

use super::node::NodeKind;
use super::sketch_sums::{sum_of_narrow, sum_of_wide};
use crate::event::{Event, TermId};
use crate::predicate::catalog::{Catalog, TRUE_BIT};
use crate::prefetch::prefetch;
use crate::query::Scale;
use crate::query::bounds::up;
use crate::snapshot::SharedSlice;

#[derive(Clone, Default)]
pub struct RowSketches {
    pub place: SharedSlice<u32>,
    pub words: SharedSlice<u32>,
}

/// In the place of a sketch: there is none.
pub const NONE: u32 = u32::MAX;
/// RowSketches begin below this.
const MAX_WORDS: usize = NONE as usize;
const MOST: f64 = 255.0;
/// Words in a cache line.
const LINE: usize = 16;
/// Gates of narrow and of wide leaves are below these.
const NARROW: u32 = 1 << NARROW_BITS;
const WIDE: u32 = 1 << WIDE_BITS;
const NARROW_BITS: u32 = 16;
const WIDE_BITS: u32 = 28;
/// A gate that is always open.
const OPEN: u32 = TRUE_BIT << 1;

impl RowSketches {
    /// Where the sketch of a row is, if it has one.
    #[inline]
    pub fn place_of(&self, row: u32) -> Option<u32> {
        self.place.get(row as usize).copied().filter(|place| *place != NONE)
    }

    /// An upper bound of the relevance or relaxed score of the row whose sketch is at a place.
    #[inline]
    pub fn bound_at(&self, place: u32, bits: &[u64], factors: &Factors) -> f64 {
        match factors {
            Factors::Nothing => 0.0,
            // A multiple of a power of two is not rounded, in whatever order it is added up.
            Factors::One => {
                let (head, rest) = self.head_at(place);
                let sum = if head.is_wide() {
                    sum_of_wide(head.wide_leaves(rest), bits)
                } else {
                    let (leaves, weights) = head.narrow_leaves(rest);
                    sum_of_narrow(leaves, weights, bits)
                };
                sum as f64 * head.step()
            }
            Factors::ByBit { .. } => {
                let mut sum = 0.0;
                let head = self.for_each_leaf(place, |leaf| {
                    if leaf.is_true(bits) != 0 && leaf.weight != 0 {
                        sum += leaf.weight as f64 * factors.of(leaf.bit());
                    }
                });
                // Nothing is nothing, exactly: of rows that tie at zero all but a few can then be left out.
                if sum == 0.0 { 0.0 } else { up(sum * head.step()) }
            }
        }
    }

    /// Upper bounds of what attributes contribute to the score of a row: each in its place in `most`, which
    /// must be zero before.
    pub fn contributions_at(&self, place: u32, bits: &[u64], factors: &FactorsApart, most: &mut [f64]) {
        let head = self.for_each_leaf(place, |leaf| {
            if leaf.is_true(bits) != 0
                && leaf.weight != 0
                && let Some((attribute, factor)) = factors.of(leaf.bit())
            {
                most[attribute] += leaf.weight as f64 * factor;
            }
        });
        for sum in most.iter_mut().filter(|sum| **sum != 0.0) {
            *sum = up(*sum * head.step());
        }
    }

    /// Calls `use_it` with each leaf of a sketch and returns the head.
    #[inline]
    fn for_each_leaf(&self, place: u32, mut use_it: impl FnMut(SketchLeaf)) -> Head {
        let (head, rest) = self.head_at(place);
        if head.is_wide() {
            head.wide_leaves(rest).iter().for_each(|words| use_it(SketchLeaf::wide(*words)));
        } else {
            let (leaves, weights) = head.narrow_leaves(rest);
            let pairs = leaves.iter().zip(weights);
            pairs.for_each(|(gates, weight)| use_it(SketchLeaf::narrow(*gates, *weight)));
        }
        head
    }

    /// The head of a sketch, and all words behind it.
    #[inline]
    fn head_at(&self, place: u32) -> (Head, &[u32]) {
        let (head, rest) = self.words[place as usize..].split_first().expect("places are inside");
        (Head(*head), rest)
    }

    #[inline]
    pub fn fetch_place(&self, row: u32) {
        if let Some(place) = self.place.get(row as usize) {
            prefetch(place);
        }
    }

    #[inline]
    pub fn fetch(&self, row: u32) {
        if let Some(place) = self.place_of(row) {
            self.fetch_at(place);
        }
    }

    #[inline]
    pub fn fetch_at(&self, place: u32) {
        self.words.get(place as usize).inspect(|word| prefetch(*word));
        self.words.get(place as usize + LINE).inspect(|word| prefetch(*word));
    }

    pub fn bytes(&self) -> usize {
        self.place.byte_len() + self.words.byte_len()
    }

    /// Whether all sketches are inside and name bits that exist, and where they begin; else the name of a
    /// section.
    pub fn validate(&self, rows: usize, bits: u32) -> Result<Places, &'static str> {
        let check = |holds: bool, section: &'static str| if holds { Ok(()) } else { Err(section) };
        check(self.words.len() <= MAX_WORDS, "score_sketches")?;
        let mut places = Places(vec![0; self.words.len().div_ceil(64)]);
        let mut at = 0;
        while let Some(head) = self.words.get(at) {
            let head = Head(*head);
            check(head.is_sound() && at + head.words() <= self.words.len(), "score_sketches")?;
            let mut is_good = true;
            self.for_each_leaf(at as u32, |leaf| is_good &= leaf.gates.iter().all(|gate| gate >> 1 < bits));
            check(is_good, "score_sketches")?;
            places.0[at / 64] |= 1 << (at % 64);
            at += head.words();
        }
        check(at == self.words.len(), "score_sketches")?;
        check(self.place.is_empty() || self.place.len() == rows, "score_sketch_places")?;
        let is_good = |place: &u32| *place == NONE || places.has(*place);
        check(self.place.iter().all(is_good), "score_sketch_places")?;
        Ok(places)
    }
}

/// A leaf of a sketch: what it counts when both its gates are open.
struct SketchLeaf {
    gates: [u32; 2],
    weight: u32,
}

impl SketchLeaf {
    #[inline]
    fn narrow(gates: u32, weight: u8) -> Self {
        Self { gates: [gates % NARROW, gates / NARROW], weight: weight as u32 }
    }

    #[inline]
    fn wide([first, second]: [u32; 2]) -> Self {
        let weight = first >> WIDE_BITS << 4 | second >> WIDE_BITS;
        Self { gates: [first % WIDE, second % WIDE], weight }
    }

    /// The leaf in one word, its weight apart.
    fn to_narrow(&self) -> u32 {
        self.gates[0] | self.gates[1] << NARROW_BITS
    }

    fn to_wide(&self) -> [u32; 2] {
        let [first, second] = self.gates;
        [first | self.weight >> 4 << WIDE_BITS, second | self.weight << WIDE_BITS]
    }

    /// 1 if it is true; without a branch.
    #[inline]
    fn is_true(&self, bits: &[u64]) -> u32 {
        let [first, second] = self.gates.map(|gate| {
            let bit = gate >> 1;
            (bits[(bit >> 6) as usize] >> (bit & 63)) as u32 ^ gate
        });
        first & second & 1
    }

    /// A bit of the attribute that it is about.
    fn bit(&self) -> u32 {
        self.gates[0] >> 1
    }
}

/// The places where sketches begin, a bit for each word.
pub struct Places(Vec<u64>);

impl Places {
    pub fn has(&self, place: u32) -> bool {
        self.0.get(place as usize / 64).is_some_and(|word| word >> (place % 64) & 1 == 1)
    }
}

/// The first word of a sketch: how wide its leaves are, the exponent of its step, and how many leaves there
/// are.
#[derive(Clone, Copy)]
struct Head(u32);

impl Head {
    const IS_WIDE: u32 = 1 << 31;
    const EXPONENT_SHIFT: u32 = 20;
    const EXPONENT_MASK: u32 = 2047;
    /// Of a 64-bit float.
    const BIAS: i32 = 1023;
    const LEAST_EXPONENT: i32 = -1000;

    /// The smallest step of which 255 are at least `most`; `None` if there are too many leaves.
    fn new(most: f64, leaves: usize, is_wide: bool) -> Option<Self> {
        if !most.is_finite() || leaves >= 1 << Self::EXPONENT_SHIFT {
            return None;
        }
        let mut exponent = ((most / MOST).log2().floor() as i32).max(Self::LEAST_EXPONENT);
        while power_of_two(exponent) * MOST < most {
            exponent += 1;
        }
        let width = if is_wide { Self::IS_WIDE } else { 0 };
        let exponent = ((exponent + Self::BIAS) as u32) << Self::EXPONENT_SHIFT;
        Some(Self(width | exponent | leaves as u32))
    }

    #[inline]
    fn is_wide(self) -> bool {
        self.0 & Self::IS_WIDE != 0
    }

    #[inline]
    fn leaves(self) -> usize {
        (self.0 & ((1 << Self::EXPONENT_SHIFT) - 1)) as usize
    }

    #[inline]
    fn exponent(self) -> u32 {
        self.0 >> Self::EXPONENT_SHIFT & Self::EXPONENT_MASK
    }

    #[inline]
    fn step(self) -> f64 {
        power_of_two(self.exponent() as i32 - Self::BIAS)
    }

    /// The gates and the weights of narrow leaves, which begin here.
    #[inline]
    fn narrow_leaves(self, words: &[u32]) -> (&[u32], &[u8]) {
        let (leaves, weights) = words.split_at(self.leaves());
        (leaves, &bytemuck::cast_slice(weights)[..leaves.len()])
    }

    /// The wide leaves that begin here.
    #[inline]
    fn wide_leaves(self, words: &[u32]) -> &[[u32; 2]] {
        words[..2 * self.leaves()].as_chunks().0
    }

    /// How many words the sketch has.
    fn words(self) -> usize {
        let leaves = self.leaves();
        1 + leaves + if self.is_wide() { leaves } else { leaves.div_ceil(4) }
    }

    fn is_sound(self) -> bool {
        (1..2047).contains(&self.exponent())
    }
}

/// For the exponents of normal 64-bit floats.
fn power_of_two(exponent: i32) -> f64 {
    f64::from_bits(((exponent + Head::BIAS) as u64) << 52)
}

/// What the gates of an event's attributes count by.
pub enum Factors {
    One,
    /// No gate that counts can be open.
    Nothing,
    ByBit {
        /// The bits of some attributes, in order, and the factor of each.
        runs: Vec<(u32, u32, f64)>,
        /// For the gates of other attributes.
        otherwise: f64,
    },
}

impl Factors {
    pub fn new(scale: &Scale, event: &Event<'_>, catalog: &Catalog) -> Self {
        if scale.is_plain() {
            return Factors::One;
        }
        let run = |attribute: TermId| {
            let entry = catalog.entry(attribute)?;
            let can_be_open = entry.absent != 0 || event.get(attribute).is_some();
            can_be_open.then(|| (entry.first_bit, entry.end_bit, scale.factor(attribute)))
        };
        // What is left out counts nothing. If nothing is, gates may be open because something is absent.
        let (mut runs, otherwise): (Vec<_>, f64) = match scale.counted() {
            Some(counted) => (counted.filter_map(run).collect(), 0.0),
            None => {
                let present = event.values.iter().map(|(attribute, _)| *attribute);
                let weighted = event.weights.iter().map(|(attribute, _)| *attribute);
                (present.chain(weighted).filter_map(run).collect(), scale.most())
            }
        };
        if runs.is_empty() && otherwise == 0.0 {
            return Factors::Nothing;
        }
        runs.sort_unstable_by_key(|(first, ..)| *first);
        Factors::ByBit { runs, otherwise }
    }

    fn of(&self, bit: u32) -> f64 {
        match self {
            Factors::One => 1.0,
            Factors::Nothing => 0.0,
            Factors::ByBit { runs, otherwise } => {
                let after = runs.partition_point(|(first, ..)| *first <= bit);
                match runs[..after].last() {
                    Some((_, end, factor)) if bit < *end => *factor,
                    _ => *otherwise,
                }
            }
        }
    }
}

/// What the gates of some attributes count by, each for itself.
pub struct FactorsApart {
    /// The bits of an attribute, its number among them, and its factor; those that count only.
    runs: Vec<(u32, u32, usize, f64)>,
}

impl FactorsApart {
    /// In each of the scales one attribute counts.
    pub fn new(scales: &[Scale], event: &Event<'_>, catalog: &Catalog) -> Self {
        let run = |(number, scale): (usize, &Scale)| match Factors::new(scale, event, catalog) {
            Factors::ByBit { runs, .. } => {
                runs.first().map(|(first, end, factor)| (*first, *end, number, *factor))
            }
            _ => None,
        };
        Self { runs: scales.iter().enumerate().filter_map(run).collect() }
    }

    /// The number of the attribute that a bit belongs to, and its factor.
    fn of(&self, bit: u32) -> Option<(usize, f64)> {
        let run = self.runs.iter().find(|(first, end, ..)| (*first..*end).contains(&bit))?;
        Some((run.2, run.3))
    }
}

/// Collects the sketches of a segment, row by row.
#[derive(Default)]
pub struct RowSketchesBuilder {
    place: Vec<u32>,
    words: Vec<u32>,
    /// Of the row that is being added.
    leaves: Vec<([u32; 2], f64)>,
}

impl RowSketchesBuilder {
    /// Adds a leaf of the next row, by its tests.
    pub fn add_leaf(&mut self, form: NodeKind, tests: &[u32], weight: f64) {
        match (form, tests) {
            // The two sides of an "either" exclude each other, so at most one of them counts.
            (NodeKind::One | NodeKind::Either, tests) => {
                self.leaves.extend(tests.iter().map(|test| ([*test, OPEN], weight)));
            }
            (NodeKind::Both, [first, second]) => self.leaves.push(([*first, *second], weight)),
            (NodeKind::OneOrBoth, [one, first, second]) => {
                self.leaves.extend([([*one, OPEN], weight), ([*first, *second], weight)]);
            }
            _ => unreachable!("a leaf of a tree has the tests of its form"),
        }
    }

    pub fn end_row(&mut self) {
        let place = self.words.len() as u32;
        let has_sketch = self.write_row().is_some();
        self.place.push(if has_sketch { place } else { NONE });
        self.leaves.clear();
    }

    /// `None` if the row has no leaves, or none that fit.
    fn write_row(&mut self) -> Option<()> {
        let most = self.leaves.iter().map(|(_, weight)| *weight).fold(0.0, f64::max);
        let last_gate = self.leaves.iter().flat_map(|(gates, _)| *gates).max().filter(|gate| *gate < WIDE)?;
        let head = Head::new(most, self.leaves.len(), last_gate >= NARROW)?;
        self.words.push(head.0);
        let leaves = self.leaves.iter().map(|(gates, weight)| {
            // What counts at all counts at least one, also where the quotient is too small for a float.
            let weight = if *weight > 0.0 { (weight / head.step()).ceil().max(1.0) as u32 } else { 0 };
            SketchLeaf { gates: *gates, weight }
        });
        if head.is_wide() {
            self.words.extend(leaves.flat_map(|leaf| leaf.to_wide()));
        } else {
            self.words.extend(leaves.clone().map(|leaf| leaf.to_narrow()));
            let mut weights: Vec<u8> = leaves.map(|leaf| leaf.weight as u8).collect();
            weights.resize(weights.len().next_multiple_of(4), 0);
            self.words.extend(weights.chunks(4).map(bytemuck::pod_read_unaligned::<u32>));
        }
        Some(())
    }

    /// The sketches in the order in which their rows are listed.
    pub fn finish(self, order: &[u32]) -> RowSketches {
        if self.words.is_empty() || self.words.len() > MAX_WORDS {
            return RowSketches::default();
        }
        let mut place = vec![NONE; self.place.len()];
        let mut words = Vec::with_capacity(self.words.len());
        for row in order {
            let from = self.place[*row as usize];
            if from != NONE {
                place[*row as usize] = words.len() as u32;
                let from = from as usize;
                words.extend_from_slice(&self.words[from..from + Head(self.words[from]).words()]);
            }
        }
        RowSketches { place: place.into(), words: words.into() }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Tests around the first that needs a wide leaf, on both sides.
    fn any_test() -> impl Strategy<Value = u32> {
        prop_oneof![2..40u32, NARROW - 4..NARROW + 4]
    }

    proptest! {
        #[test]
        fn sketches_add_up_what_is_true_however_wide_they_are(
            rows in prop::collection::vec(
                prop::collection::vec((any_test(), any_test(), 0..4u32, 0..9u32), 1..7), 1..5),
            words in prop::collection::vec(any::<u64>(), NARROW as usize / 128 + 1),
        ) {
            let mut words = words;
            words[0] |= 1 << TRUE_BIT;
            let holds = |test: u32| words[test as usize / 128] >> (test / 2 % 64) & 1 != test as u64 & 1;
            let mut builder = RowSketchesBuilder::default();
            let mut expected = vec![];
            for leaves in &rows {
                let mut sum = 0.0;
                for (first, second, form, weight) in leaves {
                    let weight = *weight as f64;
                    let (form, tests, is_true) = match form {
                        0 => (NodeKind::One, vec![*first], holds(*first)),
                        1 => (NodeKind::Both, vec![*first, *second], holds(*first) && holds(*second)),
                        // Both sides of these exclude each other.
                        2 => (NodeKind::Either, vec![*first, first ^ 1], true),
                        _ => (NodeKind::OneOrBoth, vec![*first, first ^ 1, *second], holds(*first) || holds(*second)),
                    };
                    builder.add_leaf(form, &tests, weight);
                    sum += if is_true { weight } else { 0.0 };
                }
                builder.end_row();
                expected.push(sum);
            }
            let order: Vec<u32> = (0..rows.len() as u32).rev().collect();
            let sketches = builder.finish(&order);
            prop_assert!(sketches.validate(rows.len(), NARROW).is_ok());
            prop_assert!(sketches.validate(rows.len(), 1).is_err());
            for (row, sum) in expected.into_iter().enumerate() {
                let place = sketches.place_of(row as u32).unwrap();
                prop_assert_eq!(sketches.bound_at(place, &words, &Factors::One), sum);
            }
        }
    }
}
