//! The vectors of the algorithm, and the steps after predicate matching: candidates, then evaluation.

use super::encoding::{Encoding, Style, is_conjunction};
use super::minimum;
use super::order::Frequencies;
use crate::circuit::{Circuit, Tree};
use crate::options;
use crate::over_predicates::FilterAlgorithm;
use crate::predicates::{Predicates, Satisfied};
use crate::short_list::ShortList;
use tamis_core::engine::contract::Work;
use tamis_core::event::{Event, Value};
use tamis_core::expr::Literal;
use tamis_core::{Error, Result};

/// Counts are bytes.
const MAX_PREDICATES: u64 = 255;

#[derive(Default)]
pub struct BooleanFilter {
    settings: Settings,
    /// From a literal to the subscriptions whose trees have it, once per leaf.
    association: Vec<ShortList>,
    /// The encoded tree of each subscription; empty for a number that is free.
    trees: Vec<Box<[u8]>>,
    minimum: Vec<u8>,
    row_of: Vec<u32>,
    /// From a row to its number; numbers are dense, whatever the rows are.
    number_of: Vec<u32>,
    free: Vec<u32>,
    frequencies: Frequencies,
}

#[derive(Clone, Copy, Default)]
pub struct Settings {
    pub style: Style,
    /// Minima by meaning instead of by structure.
    semantic: bool,
    /// Children in the order in which they decide.
    order_children: bool,
}

#[derive(Default)]
pub struct Scratch {
    hits: Vec<u8>,
    candidates: Vec<u32>,
}

impl BooleanFilter {
    pub fn settings(&self) -> Settings {
        self.settings
    }

    pub fn with_settings(settings: Settings) -> Self {
        Self { settings, ..Self::default() }
    }

    #[cfg(test)]
    pub fn tree_and_minimum(&self, row: u32) -> (&[u8], u8) {
        let number = self.number_of[row as usize] as usize;
        (&self.trees[number], self.minimum[number])
    }

    fn find_candidates(&self, satisfied: &Satisfied, scratch: &mut Scratch, minimum: impl Fn(u32) -> u8) {
        scratch.candidates.clear();
        scratch.hits.clear();
        scratch.hits.resize(self.trees.len(), 0);
        for literal in &satisfied.literals {
            let Some(list) = self.association.get(literal.0 as usize) else { continue };
            for &number in list.as_slice() {
                let hits = &mut scratch.hits[number as usize];
                *hits = hits.saturating_add(1);
                if *hits == minimum(number) {
                    scratch.candidates.push(number);
                }
            }
        }
    }
}

impl FilterAlgorithm for BooleanFilter {
    type Scratch = Scratch;

    const OPTIONS: &'static [&'static str] =
        &["encoding", "mark_conjunctions", "short_circuit", "minimum", "order_children"];

    fn check(&self, circuit: &Circuit<'_>) -> Result<()> {
        let leaves = circuit.tree_leaves();
        if leaves <= MAX_PREDICATES {
            return Ok(());
        }
        Err(Error::Unsupported(format!(
            "Boolean filtering counts predicates in a byte, so an expression has at most {MAX_PREDICATES}; this \
             one has {leaves} once XOR is expanded; \"auto\" and \"a-tree\" hold it"
        )))
    }

    fn insert(&mut self, row: u32, tree: &Tree, predicates: &Predicates) {
        let ordered;
        let tree = if self.settings.order_children {
            ordered = self.frequencies.ordered(tree, predicates);
            &ordered
        } else {
            tree
        };
        let minimum = if self.settings.semantic {
            minimum::by_meaning(tree, predicates).unwrap_or(u32::MAX)
        } else {
            minimum::by_structure(tree)
        };
        let number = self.free.pop().unwrap_or(self.trees.len() as u32);
        if number as usize == self.trees.len() {
            self.trees.push(Box::default());
            self.minimum.push(0);
            self.row_of.push(0);
        }
        self.trees[number as usize] = self.settings.style.encode(tree);
        self.minimum[number as usize] = minimum.min(MAX_PREDICATES as u32) as u8;
        self.row_of[number as usize] = row;
        if self.number_of.len() <= row as usize {
            self.number_of.resize(row as usize + 1, u32::MAX);
        }
        self.number_of[row as usize] = number;
        if self.association.len() < predicates.literals() {
            self.association.resize_with(predicates.literals(), ShortList::default);
        }
        tree.for_each_leaf(&mut |literal| self.association[literal.0 as usize].push(number));
    }

    fn remove(&mut self, row: u32, release: &mut dyn FnMut(Literal)) {
        let number = std::mem::replace(&mut self.number_of[row as usize], u32::MAX);
        let tree = std::mem::take(&mut self.trees[number as usize]);
        self.settings.style.for_each_leaf(&tree, &mut |literal| {
            let list = &mut self.association[literal.0 as usize];
            list.remove(number);
            if list.is_empty() {
                self.frequencies.forget(literal);
            }
            release(literal);
        });
        self.free.push(number);
    }

    fn matches(
        &self,
        satisfied: &Satisfied,
        event: &Event<'_>,
        scratch: &mut Scratch,
        found: &mut dyn FnMut(u32),
    ) -> Work {
        if self.settings.order_children {
            self.frequencies.observe(satisfied);
        }
        // Minima by meaning hold for points only.
        let is_counted = !(event.has_intervals && self.settings.semantic);
        if is_counted {
            self.find_candidates(satisfied, scratch, |number| self.minimum[number as usize]);
        } else {
            self.find_candidates(satisfied, scratch, |_| 1);
        }
        let mut work = Work { candidates: scratch.candidates.len() as u64, ..Work::default() };
        for &number in &scratch.candidates {
            let tree = &self.trees[number as usize];
            if is_counted && is_conjunction(tree) {
                found(self.row_of[number as usize]);
                continue;
            }
            work.evaluations += 1;
            if self.settings.style.is_true(tree, &|literal| satisfied.holds(literal)) {
                found(self.row_of[number as usize]);
            }
        }
        work
    }

    fn bytes(&self) -> Vec<(&'static str, usize)> {
        let lists: usize = self.association.iter().map(ShortList::heap_bytes).sum();
        let encoded: usize = self.trees.iter().map(|tree| tree.len()).sum();
        let numbers = self.row_of.capacity() + self.number_of.capacity() + self.free.capacity();
        vec![
            ("association", self.association.capacity() * size_of::<ShortList>() + lists),
            ("encoded trees", encoded),
            ("locations", self.trees.capacity() * size_of::<Box<[u8]>>()),
            ("minima", self.minimum.capacity()),
            ("rows", numbers * size_of::<u32>()),
        ]
    }

    fn set_option(&mut self, name: &str, value: &Value) -> Result<()> {
        let settings = &mut self.settings;
        match name {
            "encoding" => {
                settings.style.encoding = match options::choice(name, value, &["plain", "width-prefixed"])? {
                    0 => Encoding::Plain,
                    _ => Encoding::WidthPrefixed,
                }
            }
            "mark_conjunctions" => settings.style.mark_conjunctions = options::boolean(name, value)?,
            "short_circuit" => settings.style.short_circuit = options::boolean(name, value)?,
            "minimum" => {
                settings.semantic = options::choice(name, value, &["syntactic", "semantic"])? == 1;
            }
            "order_children" => settings.order_children = options::boolean(name, value)?,
            _ => unreachable!("one of OPTIONS"),
        }
        Ok(())
    }
}
