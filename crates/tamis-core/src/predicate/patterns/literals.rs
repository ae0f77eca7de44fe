//! Finds all stored literals that occur in a text, and the predicates they belong to.

use std::sync::OnceLock;

use super::Answer;
use super::arrays::{ArraysReader, ArraysWriter, are_starts};
use super::automaton::Automaton;
use super::grams::{Grams, Report, WIDEST};
use super::texts::{Texts, TextsBuilder};
use crate::fork::get_or_init;
use crate::snapshot::SharedSlice;

/// What an occurrence of a literal means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Target {
    /// The predicate `id` is true.
    Decided { id: u32 },
    /// The predicate `id` may be true. All its literals bear its `number`; numbers count from 0.
    Candidate { id: u32, number: u32 },
}

/// In place of the number of a candidate, where an array has two numbers for each target.
const DECIDED: u32 = u32::MAX;

/// A set of literals, each with its targets.
#[derive(Debug, Default)]
pub(super) struct Literals {
    /// Sorted.
    texts: Texts,
    /// Id and number. The targets of literal i are those from `target_starts[i]` up to `target_starts[i + 1]`.
    targets: SharedSlice<u32>,
    target_starts: SharedSlice<u32>,
    candidates: u32,
    /// One for each width that occurs.
    grams: Vec<Grams>,
    /// The literals that grams do not tell apart, sorted.
    crowded: SharedSlice<u32>,
    /// Of those, built when a text is first asked about.
    automaton: OnceLock<Box<Automaton>>,
}

impl Literals {
    /// The set of `entries`, whose literals are not empty.
    pub fn new(mut entries: Vec<(Vec<u8>, Target)>) -> Self {
        entries.sort_unstable();
        let (mut texts, mut targets, mut target_starts) = (TextsBuilder::default(), vec![], vec![]);
        let mut candidates = 0;
        for same in entries.chunk_by(|a, b| a.0 == b.0) {
            target_starts.push(targets.len() as u32 / 2);
            for (_, target) in same {
                match *target {
                    Target::Decided { id } => targets.extend([id, DECIDED]),
                    Target::Candidate { id, number } => {
                        targets.extend([id, number]);
                        candidates = candidates.max(number + 1);
                    }
                }
            }
            texts.push(&same[0].0);
        }
        target_starts.push(targets.len() as u32 / 2);
        let texts = texts.finish();
        let mut by_width: [Vec<u32>; WIDEST] = Default::default();
        for literal in 0..texts.len() {
            by_width[texts.len_of(literal).min(WIDEST) - 1].push(literal as u32);
        }
        let mut crowded = vec![];
        let grams = by_width.iter().enumerate().filter(|(_, literals)| !literals.is_empty());
        let grams = grams.map(|(at, literals)| Grams::new(at + 1, literals, &texts, &mut crowded)).collect();
        crowded.sort_unstable();
        Self {
            texts,
            targets: targets.into(),
            target_starts: target_starts.into(),
            candidates,
            grams,
            crowded: crowded.into(),
            automaton: OnceLock::new(),
        }
    }

    /// Reports the targets of every literal that occurs in `text`, each id once.
    pub fn each_in(&self, text: &[u8], seen: &mut Seen, report: &mut impl FnMut(u32, Answer)) {
        if self.is_empty() {
            return;
        }
        seen.clear(self.texts.len() + self.candidates as usize);
        let mut found = Occurrences { literals: self, seen, report };
        for grams in &self.grams {
            grams.each_in(text, &self.texts, &mut found);
        }
        if !self.crowded.is_empty() {
            let automaton = get_or_init(&self.automaton, || {
                let literals =
                    self.crowded.iter().map(|literal| (self.texts.get(*literal as usize), *literal));
                Box::new(Automaton::new(literals))
            });
            automaton.each_in(text, &mut |literal| found.found(literal));
        }
    }

    pub fn is_empty(&self) -> bool {
        self.texts.len() == 0
    }

    pub fn heap_bytes(&self) -> usize {
        self.texts.heap_bytes()
            + self.targets.byte_len()
            + self.target_starts.byte_len()
            + self.grams.iter().map(Grams::heap_bytes).sum::<usize>()
            + self.crowded.byte_len()
            + self.automaton.get().map_or(0, |automaton| automaton.heap_bytes())
    }

    pub fn store(&self, out: &mut ArraysWriter) {
        self.texts.store(out);
        out.put(&self.targets);
        out.put(&self.target_starts);
        out.put_number(self.candidates);
        out.put(&self.crowded);
        out.put_number(self.grams.len() as u32);
        self.grams.iter().for_each(|grams| grams.store(out));
    }

    /// Reads what [`store`](Self::store) wrote; ids are below `ids`.
    pub fn restore(arrays: &mut ArraysReader, ids: u32) -> Option<Self> {
        let texts = Texts::restore(arrays)?;
        let (targets, target_starts) = (arrays.take()?, arrays.take()?);
        let (candidates, crowded) = (arrays.number()?, arrays.take()?);
        let mut grams = vec![];
        for _ in 0..arrays.number()? {
            grams.push(Grams::restore(arrays, texts.len())?);
        }
        let set =
            Self { texts, targets, target_starts, candidates, grams, crowded, automaton: OnceLock::new() };
        let (pairs, rest) = set.targets.as_chunks::<2>();
        let is_target = |[id, number]: &[u32; 2]| *id < ids && (*number == DECIDED || *number < candidates);
        let is_consistent = rest.is_empty()
            && pairs.iter().all(is_target)
            && candidates as usize <= pairs.len()
            && are_starts(&set.target_starts, set.texts.len(), pairs.len())
            // The automaton takes different ones, sorted, that are not empty.
            && set.crowded.is_sorted_by(|a, b| a < b)
            && set.crowded.last().is_none_or(|last| (*last as usize) < set.texts.len())
            && set.crowded.windows(2).all(|pair| set.texts.get(pair[0] as usize) < set.texts.get(pair[1] as usize))
            && set.crowded.first().is_none_or(|first| !set.texts.get(*first as usize).is_empty());
        is_consistent.then_some(set)
    }
}

/// Literals as they are found, and what follows from them.
struct Occurrences<'a, F> {
    literals: &'a Literals,
    seen: &'a mut Seen,
    report: &'a mut F,
}

impl<F: FnMut(u32, Answer)> Report for Occurrences<'_, F> {
    fn is_settled(&self, literal: u32) -> bool {
        self.seen.holds(literal)
    }

    fn found(&mut self, literal: u32) {
        if !self.seen.insert(literal) {
            return;
        }
        let set = self.literals;
        let starts = &set.target_starts[literal as usize..literal as usize + 2];
        for [id, number] in set.targets[2 * starts[0] as usize..2 * starts[1] as usize].as_chunks().0 {
            if *number == DECIDED {
                (self.report)(*id, Answer::True);
            } else if self.seen.insert(set.texts.len() as u32 + number) {
                (self.report)(*id, Answer::Candidate);
            }
        }
    }
}

/// A set of small numbers that is emptied in no time: a number is in it if it bears the current stamp.
#[derive(Debug, Default)]
pub(super) struct Seen {
    stamps: Vec<u32>,
    current: u32,
}

impl Seen {
    /// Empties it and makes room for the numbers below `end`.
    fn clear(&mut self, end: usize) {
        if end > self.stamps.len() {
            self.stamps.resize(end, 0);
        }
        self.current = self.current.wrapping_add(1);
        if self.current == 0 {
            self.stamps.fill(0);
            self.current = 1;
        }
    }

    fn holds(&self, number: u32) -> bool {
        self.stamps[number as usize] == self.current
    }

    /// Whether `number` is new.
    fn insert(&mut self, number: u32) -> bool {
        std::mem::replace(&mut self.stamps[number as usize], self.current) != self.current
    }
}
