//! One pass over a document for all paths of a set.

use std::ops::Range;

use super::PathSet;
use super::automaton::{Automaton, DOCUMENT, labels_of};
use super::lookups::{Lookup, Probes, TOGETHER};
use super::values::{Entry, NONE, Watch};
use super::verification::Occasion;
use crate::compiled::NameLabels;
use crate::document::{Document, Node};
use crate::evaluation::{Memo, View};

/// The memory limit of states: this many bytes per path, plus this many in any case.
const STATE_BYTES_PER_PATH: usize = 32;
const LEAST_STATE_BYTES: usize = 8 << 20;

/// State that is kept from document to document.
#[derive(Default)]
pub(super) struct Scratch {
    automaton: Automaton,
    names: Vec<NameLabels>,
    memo: Memo,
    found: Found,
    satisfied: Satisfied,
    probes: Probes,
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

    /// Starts over, with room for this many paths.
    fn clear(&mut self, paths: usize) {
        for path in self.paths.drain(..) {
            self.bits[path as usize / 64] = 0;
        }
        self.bits.resize(paths.div_ceil(64), 0);
    }
}

/// What elements satisfy, and so also which lists are satisfied somewhere.
#[derive(Default)]
pub(super) struct Satisfied {
    all: Vec<Fired>,
    /// By element: where those of it begin.
    first: Vec<u32>,
    /// A bit per list.
    lists: Vec<u64>,
}

/// Consecutive lists that an element satisfies.
struct Fired {
    element: u32,
    state: u32,
    /// Which of the labels of the element: its name, its namespace or `*`.
    class: u8,
    lists: Range<u32>,
}

impl Satisfied {
    /// Elements come in order.
    fn add(&mut self, fired: Fired) {
        while self.first.len() <= fired.element as usize {
            self.first.push(self.all.len() as u32);
        }
        let Range { start, end } = fired.lists;
        if start + 1 == end {
            self.lists[start as usize / 64] |= 1 << (start % 64);
        } else {
            for (word, bits) in words(start..end) {
                self.lists[word] |= bits;
            }
        }
        self.all.push(fired);
    }

    /// Whether an element satisfies the condition of a list.
    pub fn by(&self, element: u32, list: u32) -> bool {
        let place = |element: u32| self.first.get(element as usize).map_or(self.all.len(), |at| *at as usize);
        let mut of_element = self.all[place(element)..place(element + 1)].iter();
        of_element.any(|fired| fired.lists.contains(&list))
    }

    /// Whether some element does.
    fn has(&self, list: u32) -> bool {
        list == NONE || self.lists[list as usize / 64] >> (list % 64) & 1 == 1
    }

    /// Starts over, with room for this many lists.
    fn clear(&mut self, lists: usize) {
        self.first.clear();
        for fired in self.all.drain(..) {
            for (word, _) in words(fired.lists) {
                self.lists[word] = 0;
            }
        }
        self.lists.resize(lists.div_ceil(64), 0);
    }
}

/// The words that hold some consecutive bits, each with those of its bits.
fn words(bits: Range<u32>) -> impl Iterator<Item = (usize, u64)> {
    let (first, last) = (bits.start / 64, (bits.end - 1) / 64);
    (first..=last).map(move |word| {
        let from = if word == first { bits.start % 64 } else { 0 };
        let to = if word == last { (bits.end - 1) % 64 } else { 63 };
        (word as usize, (u64::MAX << from) & (u64::MAX >> (63 - to)))
    })
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
    /// First all elements are visited: paths without conditions are found, and what the elements satisfy is written down. Then the
    /// paths behind that are tried; most of them fail because another condition of theirs is satisfied nowhere.
    pub(super) fn match_with(&self, document: &Document, scratch: &mut Scratch, found: &mut dyn FnMut(u32)) {
        let most_bytes = LEAST_STATE_BYTES + self.paths.len() * STATE_BYTES_PER_PATH;
        self.match_within(most_bytes, document, scratch, found);
    }

    /// The same, with states that take this many bytes at most.
    pub(super) fn match_within(
        &self,
        most_bytes: usize,
        document: &Document,
        scratch: &mut Scratch,
        found: &mut dyn FnMut(u32),
    ) {
        let Scratch { automaton, names, memo, found: matched, satisfied, probes, open, met, document_number } =
            scratch;
        self.labels.resolve(&document.names, names);
        memo.clear();
        matched.clear(self.paths.len());
        satisfied.clear(self.lists.len());
        open.clear();
        *document_number += 1;
        let view = View::new(document, names, memo);
        automaton.prepare(self);
        let mut is_complete = true;
        let mut lookups = Vec::with_capacity(2 * TOGETHER);
        for (element, here) in (0..).zip(&document.elements) {
            while open.last().is_some_and(|outer| outer.end <= element) {
                open.pop();
            }
            if automaton.heap_bytes() > most_bytes {
                // What was written down speaks of states that will be gone.
                is_complete = false;
                self.look_up(&mut lookups, probes, satisfied);
                self.try_paths(automaton, satisfied, is_complete, &view, matched);
                satisfied.clear(self.lists.len());
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
                if !matched.has(path)
                    && self.verify(path, element, &Occasion { view: &view, satisfied: None })
                {
                    matched.add(path);
                }
            }
            for (class, label) in (0..).zip(labels_of(name)) {
                for watch in self.lists.watches(label) {
                    let Watch { subject, texts, .. } = *self.lists.watch(watch);
                    let mut first: Option<Node> = None;
                    let mut look_up = |node: Node, is_of_first: bool| {
                        let value = document.string_value(node);
                        lookups.push(Lookup {
                            element,
                            state,
                            class,
                            watch: watch as u32,
                            value,
                            is_of_first,
                        });
                    };
                    view.select(Node::Element(element), &self.subjects[subject as usize], &mut |node| {
                        look_up(node, false);
                        if texts != NONE
                            && first.is_none_or(|first| document.offset(node) < document.offset(first))
                        {
                            first = Some(node);
                        }
                        false
                    });
                    if let Some(first) = first {
                        look_up(first, true);
                    }
                }
            }
            if lookups.len() >= TOGETHER {
                self.look_up(&mut lookups, probes, satisfied);
            }
        }
        self.look_up(&mut lookups, probes, satisfied);
        self.try_paths(automaton, satisfied, is_complete, &view, matched);
        matched.paths.iter().for_each(|path| found(self.given[*path as usize]));
    }

    /// Writes down what values satisfy.
    fn look_up(&self, lookups: &mut Vec<Lookup<'_>>, probes: &mut Probes, satisfied: &mut Satisfied) {
        self.lists.look_up(lookups, &self.simple, probes, &mut |lookup, lists| {
            let Lookup { element, state, class, .. } = *lookup;
            satisfied.add(Fired { element, state, class, lists });
        });
        lookups.clear();
    }

    /// Tries the paths whose access is satisfied; `is_complete` says that what is written down is of all elements.
    fn try_paths(
        &self,
        automaton: &Automaton,
        satisfied: &Satisfied,
        is_complete: bool,
        view: &View<'_>,
        matched: &mut Found,
    ) {
        let occasion = Occasion { view, satisfied: is_complete.then_some(satisfied) };
        // Where entries are is read for many lists before the entries are; see `lookups`.
        let mut entries: Vec<&[Entry]> = Vec::with_capacity(TOGETHER);
        for together in satisfied.all.chunks(TOGETHER) {
            entries.clear();
            entries.extend(together.iter().map(|fired| self.lists.entries(fired.lists.clone())));
            for (Fired { element, state, class, .. }, entries) in together.iter().zip(&entries) {
                let active = &automaton.state(*state).active[*class as usize];
                if active.is_empty() {
                    continue;
                }
                for entry in *entries {
                    if active.has(entry.anchor)
                        && (satisfied.has(entry.second) || !is_complete)
                        && !matched.has(entry.path)
                        && (self.is_proved(entry.path) || self.verify(entry.path, *element, &occasion))
                    {
                        matched.add(entry.path);
                    }
                }
            }
        }
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
