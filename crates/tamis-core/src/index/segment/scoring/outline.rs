//! What a row can score for the event at hand, in a fraction of the time of scoring it.
//!
//! The bound of a row counts all its leaves. Of an expression with many ORs only few are true for an event,
//! so that its score is far below that. An outline adds up the leaves that are true, wherever in the tree
//! they are: more than the score only where a leaf is true and something above it is not. Weights are
//! rounded up to a byte, and the tests of all leaves stand in a row, so that it is read without a branch.
//!
//! ```text
//! off    row → its words; none for a conjunction, whose bound is its score, and for rows without a program
//! words  step      what 1 stands for in a weight: a 32-bit float
//!        gates     a test per word; a flag says that the gate is open only if the one before it is
//!        weights   a byte per gate: what it counts when it is open
//! ```

use super::node::Form;
use crate::event::{AttrId, Event};
use crate::predicate::catalog::Catalog;
use crate::prefetch::prefetch;
use crate::rank::Scale;
use crate::rank::bounds::up;
use crate::snapshot::Buffer;

#[derive(Clone, Default)]
pub struct Outlines {
    pub off: Buffer<u32>,
    pub words: Buffer<u32>,
}

/// In a gate: it is open only if the one before it is open, too.
const CHAINED: u32 = 1 << 31;
const MOST: f64 = 255.0;
/// Words in a cache line.
const LINE: usize = 16;

impl Outlines {
    /// An upper bound of the relevance or relaxed score of a row; `None` if it has no outline.
    #[inline]
    pub fn bound(&self, row: u32, bits: &[u64], factors: &Factors) -> Option<f64> {
        let (from, to) = (*self.off.get(row as usize)? as usize, self.off[row as usize + 1] as usize);
        let (step, rest) = self.words[from..to].split_first()?;
        let (gates, weights) = rest.split_at(gates_in(to - from));
        let weights = bytemuck::cast_slice::<u32, u8>(weights);
        let is_open = |before: u32, gate: u32| {
            let bit = (gate & !CHAINED) >> 1;
            let holds = (bits[(bit >> 6) as usize] >> (bit & 63)) as u32 ^ gate;
            holds & (before | !gate >> 31) & 1
        };
        let mut before = 1;
        let sum = match factors {
            Factors::Nothing => 0.0,
            Factors::One => {
                let mut sum = 0;
                for (gate, weight) in gates.iter().zip(weights) {
                    before = is_open(before, *gate);
                    sum += before * *weight as u32;
                }
                sum as f64
            }
            Factors::ByBit { .. } => {
                let mut sum = 0.0;
                for (gate, weight) in gates.iter().zip(weights) {
                    before = is_open(before, *gate);
                    if before != 0 && *weight != 0 {
                        sum += *weight as f64 * factors.of((gate & !CHAINED) >> 1);
                    }
                }
                sum
            }
        };
        // Nothing is nothing, exactly: of rows that tie at zero all but the first few can then be left out.
        Some(if sum == 0.0 { 0.0 } else { up(sum * f32::from_bits(*step) as f64) })
    }

    #[inline]
    pub fn fetch_place(&self, row: u32) {
        if let Some(place) = self.off.get(row as usize) {
            prefetch(place);
        }
    }

    #[inline]
    pub fn fetch(&self, row: u32) {
        if let Some(place) = self.off.get(row as usize) {
            self.words.get(*place as usize).inspect(|word| prefetch(*word));
            self.words.get(*place as usize + LINE).inspect(|word| prefetch(*word));
        }
    }

    pub fn bytes(&self) -> usize {
        self.off.byte_len() + self.words.byte_len()
    }

    /// Whether all outlines are inside and name bits that exist; else the name of a section.
    pub fn validate(&self, rows: usize, bits: u32) -> Result<(), &'static str> {
        let check = |holds: bool, section: &'static str| if holds { Ok(()) } else { Err(section) };
        if self.off.is_empty() {
            return check(self.words.is_empty(), "score_outlines");
        }
        check(self.off.len() == rows + 1 && self.off[0] == 0, "score_outline_offsets")?;
        check(self.off[rows] as usize == self.words.len(), "score_outline_offsets")?;
        check(self.off.is_sorted(), "score_outline_offsets")?;
        for row in 0..rows {
            if let Some((step, rest)) =
                self.words[self.off[row] as usize..self.off[row + 1] as usize].split_first()
            {
                let gates = gates_in(1 + rest.len());
                check(1 + gates + gates.div_ceil(4) == 1 + rest.len(), "score_outlines")?;
                check((0.0..f32::INFINITY).contains(&f32::from_bits(*step)), "score_outlines")?;
                check(rest[..gates].iter().all(|gate| (gate & !CHAINED) >> 1 < bits), "score_outlines")?;
            }
        }
        Ok(())
    }
}

/// How many gates there are in an outline of so many words.
fn gates_in(words: usize) -> usize {
    (words - 1) * 4 / 5
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

/// Collects the outlines of a segment, row by row.
#[derive(Default)]
pub struct OutlineBuilder {
    off: Vec<u32>,
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
        self.off.push(self.words.len() as u32);
        let most = self.gates.iter().map(|(_, weight)| *weight).fold(0.0, f64::max);
        let mut step = (most / MOST) as f32;
        if (step as f64) * MOST < most {
            step = step.next_up();
        }
        let gates: Vec<(u32, f64)> = self.gates.drain(..).collect();
        if gates.is_empty() || !step.is_finite() {
            return;
        }
        self.words.push(step.to_bits());
        self.words.extend(gates.iter().map(|(gate, _)| gate));
        let steps =
            |weight: f64| if weight == 0.0 { 0 } else { (weight / step as f64).ceil().min(MOST) as u8 };
        for four in gates.chunks(4) {
            let mut bytes = [0; 4];
            for (byte, (_, weight)) in bytes.iter_mut().zip(four) {
                *byte = steps(*weight);
            }
            self.words.push(u32::from_ne_bytes(bytes));
        }
    }

    pub fn finish(mut self) -> Outlines {
        if self.words.is_empty() || self.words.len() > u32::MAX as usize {
            return Outlines::default();
        }
        self.off.push(self.words.len() as u32);
        Outlines { off: self.off.into(), words: self.words.into() }
    }
}
