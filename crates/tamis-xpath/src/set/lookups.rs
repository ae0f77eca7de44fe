//! Looks up the values of a document, many at a time.
//!
//! With a million paths, the tables are far larger than caches, and every step of a lookup waits for memory: the slot of
//! a hash, the list in it, the text of its condition, its first entry. So each step is taken for many values before the
//! next one is, and the processor waits for all of them together.

use std::ops::Range;

use super::simple::{SimpleConditions, number_words};
use super::values::{Lists, NONE, number_hash, text_hash};
use crate::number::number;

/// How many values are looked up together.
pub(super) const TOGETHER: usize = 128;

/// A value to be looked up.
pub(super) struct Lookup<'d> {
    pub element: u32,
    pub state: u32,
    /// Which of the labels of the element: its name, its namespace or `*`.
    pub class: u8,
    pub watch: u32,
    pub value: &'d str,
    /// The value of the first node of the subject, to be searched for texts; else that of any node.
    pub is_of_first: bool,
}

/// How far the lookup of a value has come.
#[derive(Clone, Copy)]
struct Probe {
    text_hash: u64,
    number_hash: u64,
    /// NaN if it is not asked for.
    number: f64,
    asks_text: bool,
    /// Lists that probably ask for the value, or [`NONE`].
    text_list: u32,
    number_list: u32,
    /// The values of their conditions.
    text_value: [u32; 2],
    number_value: [u32; 2],
    /// Read ahead; only that it was read matters.
    ahead: u8,
}

/// Memory for the probes, kept from call to call.
#[derive(Default)]
pub(super) struct Probes(Vec<Probe>);

impl Lists {
    /// Calls `found` with each lookup and the lists of the conditions that its value satisfies.
    pub fn look_up<'d>(
        &self,
        lookups: &[Lookup<'d>],
        simple: &SimpleConditions,
        Probes(probes): &mut Probes,
        found: &mut impl FnMut(&Lookup<'d>, Range<u32>),
    ) {
        probes.clear();
        probes.extend(lookups.iter().map(|lookup| self.probe(lookup)));
        for probe in &mut *probes {
            if probe.asks_text {
                probe.text_list = self.probable_text_list(probe.text_hash);
            }
            if !probe.number.is_nan() {
                probe.number_list = self.probable_number_list(probe.number_hash);
            }
        }
        for probe in &mut *probes {
            if probe.text_list != NONE {
                probe.text_value = self.value(probe.text_list);
            }
            if probe.number_list != NONE {
                probe.number_value = self.value(probe.number_list);
            }
        }
        for probe in probes.iter_mut().filter(|probe| probe.text_list != NONE) {
            probe.ahead = simple.text_at(probe.text_value).bytes().next().unwrap_or_default();
        }
        for (lookup, probe) in lookups.iter().zip(&*probes) {
            self.satisfied(lookup, probe, simple, &mut |lists| found(lookup, lists));
        }
    }

    fn probe(&self, lookup: &Lookup<'_>) -> Probe {
        let watch = self.watch(lookup.watch as usize);
        let asks_text = watch.has_texts && !lookup.is_of_first;
        let asks_number = watch.has_numbers && !lookup.is_of_first;
        let number = if asks_number { number(lookup.value) } else { f64::NAN };
        Probe {
            text_hash: if asks_text { text_hash(lookup.watch, lookup.value) } else { 0 },
            number_hash: if number.is_nan() { 0 } else { number_hash(lookup.watch, number) },
            number,
            asks_text,
            text_list: NONE,
            number_list: NONE,
            text_value: [0; 2],
            number_value: [0; 2],
            ahead: 0,
        }
    }

    fn satisfied(
        &self,
        lookup: &Lookup<'_>,
        probe: &Probe,
        simple: &SimpleConditions,
        found: &mut impl FnMut(Range<u32>),
    ) {
        if lookup.is_of_first {
            return self.satisfied_by_first(lookup.watch as usize, lookup.value, found);
        }
        let watch = self.watch(lookup.watch as usize);
        if watch.exists != NONE {
            found(watch.exists..watch.exists + 1);
        }
        // Nearly always the probable list is the one; if not, others may lie behind it.
        if probe.text_list != NONE {
            let is_meant =
                watch.has_list(probe.text_list) && simple.text_at(probe.text_value) == lookup.value;
            let list = if is_meant {
                Some(probe.text_list)
            } else {
                self.text_list(watch, probe.text_hash, lookup.value, simple)
            };
            list.into_iter().for_each(|list| found(list..list + 1));
        }
        if probe.number_list != NONE {
            let is_meant =
                watch.has_list(probe.number_list) && probe.number_value == number_words(probe.number);
            let list = if is_meant {
                Some(probe.number_list)
            } else {
                self.number_list(watch, probe.number_hash, probe.number)
            };
            list.into_iter().for_each(|list| found(list..list + 1));
        }
        if !probe.number.is_nan() {
            self.satisfied_thresholds(watch, probe.number, found);
        }
    }
}
