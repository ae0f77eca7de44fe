//! How often a predicate is true: learnt from past events, guessed if there are none.

use crate::event::Event;
use crate::predicate::bits::Bits;
use crate::predicate::catalog::{Catalog, Fired, TRUE_BIT};

/// Presence of an attribute of which nothing is known.
const PRIOR_PRESENCE: f64 = 0.5;
/// How many observed events the guess counts for.
const PRIOR_WEIGHT: f64 = 2.0;
/// A pattern of which nothing is known.
const PRIOR_PATTERN: f64 = 0.1;

/// The probability of every bit of a catalog.
pub struct Selectivity {
    by_bit: Vec<f32>,
}

impl Selectivity {
    pub fn estimate(catalog: &Catalog, samples: &[Event<'_>]) -> Self {
        let mut guesses = guess(catalog);
        if !samples.is_empty() {
            let mut steps = vec![0i32; catalog.bits as usize + 1];
            let mut bits = Bits::default();
            for event in samples {
                bits.reset(catalog.bits as usize);
                catalog.fire(event, &mut bits, &mut Steps(&mut steps));
            }
            let mut seen = 0;
            for (guess, step) in guesses.iter_mut().zip(&steps) {
                seen += step;
                let observed = seen as f64 + *guess as f64 * PRIOR_WEIGHT;
                *guess = (observed / (samples.len() as f64 + PRIOR_WEIGHT)) as f32;
            }
        }
        Self { by_bit: guesses }
    }

    pub fn of_bit(&self, bit: u32) -> f64 {
        self.by_bit[bit as usize] as f64
    }
}

/// Counts runs by where they start and end.
struct Steps<'a>(&'a mut [i32]);

impl Fired for Steps<'_> {
    fn key(&mut self, key: u32) {
        self.run(key, key + 1, 0);
    }

    fn run(&mut self, from: u32, to: u32, _: u32) {
        self.0[from as usize] += 1;
        self.0[to as usize] -= 1;
    }
}

fn guess(catalog: &Catalog) -> Vec<f32> {
    let mut guesses = vec![(PRIOR_PRESENCE * PRIOR_PATTERN) as f32; catalog.bits as usize];
    guesses[TRUE_BIT as usize] = 1.0;
    for entry in catalog.terms.iter() {
        let presence = [entry.present].into_iter().chain(entry.defined).chain(entry.clean);
        for bit in presence.filter(|bit| *bit != 0) {
            guesses[bit as usize] = PRIOR_PRESENCE as f32;
        }
        if entry.absent != 0 {
            guesses[entry.absent as usize] = (1.0 - PRIOR_PRESENCE) as f32;
        }
        for table in catalog.points_of(entry) {
            let share = (PRIOR_PRESENCE / table.entries.max(4) as f64) as f32;
            for point in table.first_entry..table.first_entry + table.entries {
                for &bit in catalog.points.bits_of(point) {
                    guesses[bit as usize] = 0.0;
                }
            }
            for point in table.first_entry..table.first_entry + table.entries {
                for &bit in catalog.points.bits_of(point) {
                    guesses[bit as usize] += share;
                }
            }
        }
        for table in catalog.cuts_of(entry) {
            let gaps = (table.len + 1) as f64;
            for cut in 0..table.len {
                let below = (cut + 1) as f64 / gaps;
                guesses[(table.above + cut) as usize] = (PRIOR_PRESENCE * (1.0 - below)) as f32;
                guesses[(table.below + cut) as usize] = (PRIOR_PRESENCE * below) as f32;
            }
        }
    }
    guesses
}
