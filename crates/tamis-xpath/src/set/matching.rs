//! One pass over a document for all paths of a set.

use super::PathSet;
use super::automaton::{Automaton, DOCUMENT, labels_of};
use crate::compiled::{NO_LABEL, NameLabels};
use crate::document::{Document, Node};
use crate::evaluation::{Memo, View};

/// What states may take: so many bytes per path, and so many in any case.
const STATE_BYTES_PER_PATH: usize = 32;
const LEAST_STATE_BYTES: usize = 8 << 20;

/// What is kept from document to document.
#[derive(Default)]
pub(super) struct Scratch {
    automaton: Automaton,
    names: Vec<NameLabels>,
    memo: Memo,
    found: Found,
    open: Vec<Open>,
    /// For each state the number of the document in which it was last met.
    met: Vec<u64>,
    document_number: u64,
}

/// An element around the current one.
struct Open {
    element: u32,
    end: u32,
    state: u32,
}

/// The paths that are true.
#[derive(Default)]
struct Found {
    bits: Vec<u64>,
    paths: Vec<u32>,
}

impl Found {
    #[inline]
    fn has(&self, path: u32) -> bool {
        self.bits[path as usize / 64] >> (path % 64) & 1 == 1
    }

    #[inline]
    fn add(&mut self, path: u32) {
        let word = &mut self.bits[path as usize / 64];
        if *word >> (path % 64) & 1 == 0 {
            *word |= 1 << (path % 64);
            self.paths.push(path);
        }
    }

    /// Starts over, with room for so many paths.
    fn clear(&mut self, paths: usize) {
        for path in self.paths.drain(..) {
            self.bits[path as usize / 64] = 0;
        }
        self.bits.resize(paths.div_ceil(64), 0);
    }
}

impl Scratch {
    pub fn heap_bytes(&self) -> usize {
        self.automaton.heap_bytes()
            + self.found.bits.capacity() * 8
            + self.met.capacity() * 8
            + self.memo.capacity() * 25
    }
}

impl PathSet {
    pub(super) fn match_with(&self, document: &Document, scratch: &mut Scratch, found: &mut dyn FnMut(u32)) {
        let Scratch { automaton, names, memo, found: matched, open, met, document_number } = scratch;
        self.labels.resolve(&document.names, names);
        memo.clear();
        matched.clear(self.paths.len());
        open.clear();
        *document_number += 1;
        let view = View::new(document, names, memo);
        let most_bytes = LEAST_STATE_BYTES + self.paths.len() * STATE_BYTES_PER_PATH;
        automaton.prepare(self);
        for (element, here) in (0..).zip(&document.elements) {
            while open.last().is_some_and(|outer| outer.end <= element) {
                open.pop();
            }
            if automaton.heap_bytes() > most_bytes {
                forget_states(self, automaton, open, &view);
                met.clear();
            }
            let outer = open.last().map_or(DOCUMENT, |outer| outer.state);
            let name = view.labels_of(element);
            let state = automaton.next(self, outer, name);
            open.push(Open { element, end: here.end, state });
            if met.len() < automaton.len() {
                met.resize(automaton.len(), 0);
            }
            if std::mem::replace(&mut met[state as usize], *document_number) != *document_number {
                automaton.state(state).plain.iter().for_each(|path| matched.add(*path));
            }
            for &path in &automaton.state(state).checked {
                if !matched.has(path) && self.verify(path, element, &view) {
                    matched.add(path);
                }
            }
            for (label, active) in labels_of(name).into_iter().zip(&automaton.state(state).active) {
                if label == NO_LABEL || active.is_empty() {
                    continue;
                }
                for watch in self.lists.watches(label) {
                    let subject = &self.subjects[self.lists.watch(watch).subject as usize];
                    view.select(Node::Element(element), subject, &mut |node| {
                        let value = document.string_value(node);
                        self.lists.satisfied(watch, value, &self.simple, &mut |list| {
                            for entry in self.lists.entries(list) {
                                if active.has(entry.anchor)
                                    && !matched.has(entry.path)
                                    && (self.is_proved(entry.path) || self.verify(entry.path, element, &view))
                                {
                                    matched.add(entry.path);
                                }
                            }
                        });
                        false
                    });
                }
            }
        }
        matched.paths.iter().for_each(|path| found(*path));
    }
}

/// Starts the automaton over, with the states of the elements that are open.
fn forget_states(set: &PathSet, automaton: &mut Automaton, open: &mut [Open], view: &View<'_>) {
    automaton.clear();
    automaton.prepare(set);
    let mut state = DOCUMENT;
    for outer in open {
        state = automaton.next(set, state, view.labels_of(outer.element));
        outer.state = state;
    }
}
