//! What a row can score for the event at hand, in a fraction of the time of scoring it.
//!
//! The bound of a row counts all its leaves. Of an expression with many ORs only few are true for an event,
//! so that its score is far below that. An outline adds up the leaves that are true, wherever in the tree
//! they are: more than the score only where a leaf is true and something above it is not. Weights are
//! rounded up to a byte, and the tests of all leaves stand in a row, so that it is read without a branch.
//!
//! ```text
//! place  row → where its words begin; `NONE` for a conjunction, whose bound is its score, and for rows
//!        without a program
//! words  head      what 1 stands for in a weight, a power of two, and how many gates there are
//!        gates     a test per word; a flag says that the gate is open only if the one before it is
//!        weights   a byte per gate: what it counts when it is open
//! ```
//!
//! Outlines lie in the order of their units, so that those of units that fire together lie together.

use super::node::Form;
use crate::event::{AttrId, Event};
use crate::predicate::catalog::Catalog;
use crate::prefetch::prefetch;
use crate::rank::Scale;
use crate::rank::bounds::up;
use crate::snapshot::Buffer;

#[derive(Clone, Default)]
pub struct Outlines {
    pub place: Buffer<u32>,
    pub words: Buffer<u32>,
}

/// In the place of an outline: there is none.
pub const NONE: u32 = u32::MAX;
/// Outlines begin below this, so that the top bit of a place is free.
const MAX_WORDS: usize = 1 << 31;
/// In a gate: it is open only if the one before it is open, too.
const CHAINED: u32 = 1 << 31;
const MOST: f64 = 255.0;
/// Words in a cache line.
const LINE: usize = 16;

impl Outlines {
    /// An upper bound of the relevance or relaxed score of a row; `None` if it has no outline.
    #[inline]
    pub fn bound(&self, row: u32, bits: &[u64], factors: &Factors) -> Option<f64> {
        self.place_of(row).map(|place| self.bound_at(place, bits, factors))
    }

    #[inline]
    pub fn place_of(&self, row: u32) -> Option<u32> {
        self.place.get(row as usize).copied().filter(|place| *place != NONE)
    }

    /// The bound of the row whose outline is at a place.
    #[inline]
    pub fn bound_at(&self, place: u32, bits: &[u64], factors: &Factors) -> f64 {
        let (head, gates) = self.gates_at(place);
        let mut before = 1;
        match factors {
            Factors::Nothing => 0.0,
            Factors::One => {
                let mut sum = 0;
                for (gate, weight) in gates {
                    before = is_open(*gate, before, bits);
                    sum += before * *weight as u32;
                }
                // A multiple of a power of two is not rounded, in whatever order it is added up.
                sum as f64 * head.step()
            }
            Factors::ByBit { .. } => {
                let mut sum = 0.0;
                for (gate, weight) in gates {
                    before = is_open(*gate, before, bits);
                    if before != 0 && *weight != 0 {
                        sum += *weight as f64 * factors.of(bit_of(*gate));
                    }
                }
                // Nothing is nothing, exactly: of rows that tie at zero all but a few can then be left out.
                if sum == 0.0 { 0.0 } else { up(sum * head.step()) }
            }
        }
    }

    /// Upper bounds of what attributes contribute to the score of a row: each in its place in `most`, which
    /// must be zero before.
    pub fn contributions_at(&self, place: u32, bits: &[u64], factors: &FactorsApart, most: &mut [f64]) {
        let (head, gates) = self.gates_at(place);
        let mut before = 1;
        for (gate, weight) in gates {
            before = is_open(*gate, before, bits);
            if before != 0
                && *weight != 0
                && let Some((attribute, factor)) = factors.of(bit_of(*gate))
            {
                most[attribute] += *weight as f64 * factor;
            }
        }
        for sum in most.iter_mut().filter(|sum| **sum != 0.0) {
            *sum = up(*sum * head.step());
        }
    }

    /// The head of an outline, and its gates with their weights.
    #[inline]
    fn gates_at(&self, place: u32) -> (Head, impl Iterator<Item = (&u32, &u8)>) {
        let (head, rest) = self.words[place as usize..].split_first().expect("places are inside");
        let (gates, rest) = rest.split_at(Head(*head).gates());
        (Head(*head), gates.iter().zip(bytemuck::cast_slice(rest)))
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

    /// Whether all outlines are inside and name bits that exist, and where they begin; else the name of a
    /// section.
    pub fn validate(&self, rows: usize, bits: u32) -> Result<Places, &'static str> {
        let check = |holds: bool, section: &'static str| if holds { Ok(()) } else { Err(section) };
        let mut places = Places(vec![0; self.words.len().div_ceil(64)]);
        let mut at = 0;
        while let Some(head) = self.words.get(at) {
            let head = Head(*head);
            check(head.is_sound(), "score_outlines")?;
            let gates = self.words.get(at + 1..at + 1 + head.gates()).ok_or("score_outlines")?;
            check(gates.iter().all(|gate| (gate & !CHAINED) >> 1 < bits), "score_outlines")?;
            places.0[at / 64] |= 1 << (at % 64);
            at += head.words();
        }
        check(at == self.words.len() && at <= MAX_WORDS, "score_outlines")?;
        check(self.place.is_empty() || self.place.len() == rows, "score_outline_places")?;
        let is_good = |place: &u32| *place == NONE || places.has(*place);
        check(self.place.iter().all(is_good), "score_outline_places")?;
        Ok(places)
    }
}

fn bit_of(gate: u32) -> u32 {
    (gate & !CHAINED) >> 1
}

/// 1 if a gate is open, given whether the one before it is; without a branch.
#[inline]
fn is_open(gate: u32, before: u32, bits: &[u64]) -> u32 {
    let bit = bit_of(gate);
    let holds = (bits[(bit >> 6) as usize] >> (bit & 63)) as u32 ^ gate;
    holds & (before | !gate >> 31) & 1
}

/// The places where outlines begin, a bit for each word.
pub struct Places(Vec<u64>);

impl Places {
    pub fn has(&self, place: u32) -> bool {
        self.0.get(place as usize / 64).is_some_and(|word| word >> (place % 64) & 1 == 1)
    }
}

/// The first word of an outline: the exponent of its step, and how many gates there are.
#[derive(Clone, Copy)]
struct Head(u32);

impl Head {
    const EXPONENT_SHIFT: u32 = 20;
    /// Of a 64-bit float.
    const BIAS: i32 = 1023;
    const LEAST_EXPONENT: i32 = -1000;

    /// The smallest step of which 255 are `most`; `None` if there are too many gates.
    fn new(most: f64, gates: usize) -> Option<Self> {
        let mut exponent = ((most / MOST).log2().floor() as i32).max(Self::LEAST_EXPONENT);
        while power_of_two(exponent) * MOST < most {
            exponent += 1;
        }
        let is_good = most.is_finite() && gates < 1 << Self::EXPONENT_SHIFT;
        is_good.then_some(Self(((exponent + Self::BIAS) as u32) << Self::EXPONENT_SHIFT | gates as u32))
    }

    fn gates(self) -> usize {
        (self.0 & ((1 << Self::EXPONENT_SHIFT) - 1)) as usize
    }

    fn step(self) -> f64 {
        power_of_two((self.0 >> Self::EXPONENT_SHIFT) as i32 - Self::BIAS)
    }

    /// How many words the outline has.
    fn words(self) -> usize {
        1 + self.gates() + self.gates().div_ceil(4)
    }

    fn is_sound(self) -> bool {
        (1..2047).contains(&(self.0 >> Self::EXPONENT_SHIFT))
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
        let run = |attribute: AttrId| {
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

/// Collects the outlines of a segment, row by row.
#[derive(Default)]
pub struct OutlineBuilder {
    place: Vec<u32>,
    words: Vec<u32>,
    /// Of the row that is being added.
    gates: Vec<(u32, f64)>,
}

impl OutlineBuilder {
    /// Adds a leaf of the next row, by its tests.
    pub fn add_leaf(&mut self, form: Form, tests: &[u32], weight: f64) {
        match (form, tests) {
            // The two sides of an "either" exclude each other, so at most one of them counts.
            (Form::One | Form::Either, tests) => self.gates.extend(tests.iter().map(|test| (*test, weight))),
            (Form::Both, [first, second]) => {
                self.gates.extend([(*first, 0.0), (*second | CHAINED, weight)]);
            }
            (Form::OneOrBoth, [one, first, second]) => {
                self.gates.extend([(*one, weight), (*first, 0.0), (*second | CHAINED, weight)]);
            }
            _ => unreachable!("a leaf of a tree has the tests of its form"),
        }
    }

    pub fn end_row(&mut self) {
        let most = self.gates.iter().map(|(_, weight)| *weight).fold(0.0, f64::max);
        let gates: Vec<(u32, f64)> = self.gates.drain(..).collect();
        let Some(head) = Head::new(most, gates.len()).filter(|_| !gates.is_empty()) else {
            self.place.push(NONE);
            return;
        };
        self.place.push(self.words.len() as u32);
        self.words.push(head.0);
        self.words.extend(gates.iter().map(|(gate, _)| gate));
        for four in gates.chunks(4) {
            let mut bytes = [0; 4];
            for (byte, (_, weight)) in bytes.iter_mut().zip(four) {
                *byte = (weight / head.step()).ceil() as u8;
            }
            self.words.push(u32::from_ne_bytes(bytes));
        }
    }

    /// The outlines in the order in which their rows are listed.
    pub fn finish(self, order: &[u32]) -> Outlines {
        if self.words.is_empty() || self.words.len() > MAX_WORDS {
            return Outlines::default();
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
        Outlines { place: place.into(), words: words.into() }
    }
}
