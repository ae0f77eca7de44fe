//! From the value of a subject to the paths that have a condition on it as access.
//!
//! ```text
//! watch       (label, subject): a subject to evaluate for elements of that name
//! list        (watch, condition), also without entries; an entry is (anchor, path, another list), sorted by anchor
//! by text     hash of (watch, text) → list of `subject = 'text'`
//! by number   hash of (watch, number) → list of `subject = number`
//! thresholds  per watch and comparison, sorted, as their lists are: a value satisfies one run of lists
//! text index  per watch, the texts that `contains` and `starts-with` search for in the first node (`text_index`)
//! ```
//!
//! The other list of an entry belongs to another condition of the path: unless that condition is satisfied somewhere in the
//! document, the path is not true.
//!
//! An anchor is a place in the tree at which some path has its access. Anchors are numbered by label, so that those that
//! an element can have active are a run of numbers for its name and one for `*`.

use std::hash::BuildHasher;
use std::ops::Range;

use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;

use super::simple::{COMPARISONS, SimpleConditions, SimpleTest, number_bits, number_words};
use super::text_index::{MakeTextIndex, TextIndex, TextTest};
use super::value_table::ValueTable;
use crate::ast::Comparison;
use crate::compiled::{ANY, Label, NO_LABEL};

/// What elements of one name are asked for.
pub(super) struct Watch {
    pub subject: u32,
    /// The list of its existence, or [`NONE`].
    pub exists: u32,
    pub has_texts: bool,
    pub has_numbers: bool,
    /// The index of what its first node is searched for, or [`NONE`].
    pub texts: u32,
    /// Its lists.
    lists: Range<u32>,
    /// For each of [`COMPARISONS`] but equality.
    runs: [Run; 4],
}

impl Watch {
    pub fn has_list(&self, list: u32) -> bool {
        self.lists.contains(&list)
    }
}

/// The lists of one comparison, and where their thresholds begin.
#[derive(Clone, Copy, Default)]
struct Run {
    start: u32,
    end: u32,
    threshold: u32,
}

pub(super) const NONE: u32 = u32::MAX;

#[derive(Clone, Copy)]
struct List {
    condition: u32,
    first_entry: u32,
    /// The value of the condition, as [`SimpleConditions::value`] has it.
    value: [u32; 2],
}

#[derive(Clone, Copy)]
pub(super) struct Entry {
    pub anchor: u32,
    pub path: u32,
    /// The list of another condition, or [`NONE`].
    pub second: u32,
}

#[derive(Default)]
pub(super) struct Lists {
    watches: Vec<Watch>,
    /// By label, `*` last: the first watch.
    first_watch: Vec<u32>,
    lists: Vec<List>,
    entries: Vec<Entry>,
    by_text: ValueTable,
    by_number: ValueTable,
    /// What first nodes are searched for, by watch; tests are known by their lists.
    text_indexes: Vec<Box<dyn TextIndex>>,
    thresholds: Vec<f64>,
    /// Tree nodes, sorted by label and node; the place is the anchor.
    anchors: Vec<u32>,
    /// By label, `*` last.
    first_anchor: Vec<u32>,
}

/// An access of a path, before lists are made.
#[derive(Clone, Copy)]
pub(super) struct Access {
    pub label: Label,
    pub list: u32,
    /// A node of the tree.
    pub node: u32,
    pub path: u32,
    /// The list of another simple condition of the path, or [`NONE`].
    pub second: u32,
}

/// The numbers of lists: of all simple conditions, each with the label of a step.
pub(super) struct ListNumbers {
    sorted: Vec<(Label, u32)>,
    numbers: HashMap<(Label, u32), u32, FxBuildHasher>,
    labels: usize,
}

impl ListNumbers {
    /// For paths with this many labels.
    pub fn new(mut conditions: Vec<(Label, u32)>, labels: usize, simple: &SimpleConditions) -> Self {
        conditions.sort_unstable_by_key(|(label, id)| {
            (place(*label, labels), simple.subject(*id), simple.test(*id).order(), *id)
        });
        let number = |(list, key): (u32, &(Label, u32))| (*key, list);
        let numbers = (0..).zip(&conditions).map(number).collect();
        Self { sorted: conditions, numbers, labels }
    }

    pub fn get(&self, label: Label, condition: u32) -> u32 {
        self.numbers[&(label, condition)]
    }
}

/// Labels by number, `*` last.
fn place(label: Label, labels: usize) -> usize {
    if label == ANY { labels } else { label as usize }
}

pub(super) fn text_hash(watch: u32, text: &str) -> u64 {
    FxBuildHasher.hash_one((watch, text))
}

pub(super) fn number_hash(watch: u32, number: f64) -> u64 {
    FxBuildHasher.hash_one((watch, number_bits(number)))
}

impl Lists {
    /// Lists with these numbers, and the entries of these accesses.
    pub fn new(
        accesses: Vec<Access>,
        numbers: ListNumbers,
        simple: &SimpleConditions,
        make_text_index: MakeTextIndex,
    ) -> Self {
        let ListNumbers { sorted: conditions, labels, numbers } = numbers;
        drop(numbers);
        let place = |label: Label| place(label, labels);
        let mut nodes: Vec<(usize, u32)> =
            accesses.iter().map(|access| (place(access.label), access.node)).collect();
        nodes.sort_unstable();
        nodes.dedup();
        let of_test = |is_of: fn(&SimpleTest<'_>) -> bool| {
            conditions.iter().filter(|(_, condition)| is_of(&simple.test(*condition))).count()
        };
        let mut built = Self {
            first_anchor: starts(nodes.iter().map(|(place, _)| *place), labels + 1),
            by_text: ValueTable::new(of_test(|test| matches!(test, SimpleTest::Text(_)))),
            by_number: ValueTable::new(of_test(|test| {
                matches!(test, SimpleTest::Number(Comparison::Equal, _))
            })),
            ..Self::default()
        };
        let anchor_of =
            |label: Label, node: u32| nodes.binary_search(&(place(label), node)).expect("it is one") as u32;
        let entry = |access: Access| {
            let anchor = anchor_of(access.label, access.node);
            (access.list, Entry { anchor, path: access.path, second: access.second })
        };
        let mut entries: Vec<(u32, Entry)> = accesses.into_iter().map(entry).collect();
        entries.sort_unstable_by_key(|(list, entry)| (*list, entry.anchor, entry.path));
        let first_entries = starts(entries.iter().map(|(list, _)| *list as usize), conditions.len());
        built.entries = entries.into_iter().map(|(_, entry)| entry).collect();
        built.lists = Vec::with_capacity(conditions.len() + 1);
        let mut watch_places = vec![];
        let subject = |id: u32| simple.subject(id);
        for of_watch in conditions.chunk_by(|a, b| a.0 == b.0 && subject(a.1) == subject(b.1)) {
            let watch = built.watches.len() as u32;
            watch_places.push(place(of_watch[0].0));
            let mut new = Watch {
                subject: subject(of_watch[0].1),
                exists: NONE,
                has_texts: false,
                has_numbers: false,
                texts: NONE,
                lists: built.lists.len() as u32..(built.lists.len() + of_watch.len()) as u32,
                runs: [Run::default(); 4],
            };
            let mut searched = vec![];
            for &(_, condition) in of_watch {
                let list = built.lists.len() as u32;
                let first_entry = first_entries[list as usize];
                built.lists.push(List { condition, first_entry, value: simple.value(condition) });
                match simple.test(condition) {
                    SimpleTest::Contains(text) => {
                        searched.push(TextTest { id: list, text, at_start: false });
                    }
                    SimpleTest::StartsWith(text) => {
                        searched.push(TextTest { id: list, text, at_start: true });
                    }
                    test => built.put(watch, &mut new, list, test),
                }
            }
            if !searched.is_empty() {
                new.texts = built.text_indexes.len() as u32;
                built.text_indexes.push(make_text_index(&searched));
            }
            built.watches.push(new);
        }
        let first_entry = built.entries.len() as u32;
        built.lists.push(List { condition: 0, first_entry, value: [0; 2] });
        built.first_watch = starts(watch_places.into_iter(), labels + 1);
        built.anchors = nodes.into_iter().map(|(_, node)| node).collect();
        built
    }

    /// Puts the last list where a value of its watch finds it.
    fn put(&mut self, number: u32, watch: &mut Watch, list: u32, test: SimpleTest<'_>) {
        match test {
            SimpleTest::Exists => watch.exists = list,
            SimpleTest::Text(text) => {
                watch.has_texts = true;
                self.by_text.insert(text_hash(number, text), list);
            }
            SimpleTest::Number(Comparison::Equal, value) => {
                watch.has_numbers = true;
                self.by_number.insert(number_hash(number, value), list);
            }
            SimpleTest::Number(comparison, value) => {
                watch.has_numbers = true;
                let at = COMPARISONS[1..].iter().position(|known| *known == comparison);
                let run = &mut watch.runs[at.expect("it is simple")];
                if run.start == run.end {
                    *run = Run { start: list, end: list, threshold: self.thresholds.len() as u32 };
                }
                run.end += 1;
                self.thresholds.push(value);
            }
            SimpleTest::Contains(_) | SimpleTest::StartsWith(_) => {
                unreachable!("an index has those of a watch together")
            }
        }
    }

    fn place(&self, label: Label) -> Option<usize> {
        match label {
            NO_LABEL => None,
            ANY => Some(self.first_watch.len() - 2),
            label => Some(label as usize),
        }
    }

    /// The watches of a label.
    pub fn watches(&self, label: Label) -> Range<usize> {
        match self.place(label) {
            Some(at) => self.first_watch[at] as usize..self.first_watch[at + 1] as usize,
            None => 0..0,
        }
    }

    pub fn watch(&self, at: usize) -> &Watch {
        &self.watches[at]
    }

    /// The run of anchors of a label.
    pub fn anchors(&self, label: Label) -> Range<u32> {
        match self.place(label) {
            Some(at) => self.first_anchor[at]..self.first_anchor[at + 1],
            None => 0..0,
        }
    }

    /// The anchor at a node of the tree, whose label this is.
    pub fn anchor(&self, label: Label, node: u32) -> Option<u32> {
        let run = self.anchors(label);
        let nodes = &self.anchors[run.start as usize..run.end as usize];
        nodes.binary_search(&node).ok().map(|at| run.start + at as u32)
    }

    /// The nodes of the tree at which paths have their access.
    pub fn anchor_nodes(&self) -> &[u32] {
        &self.anchors
    }

    /// How many lists there are.
    pub fn len(&self) -> usize {
        self.lists.len() - 1
    }

    /// The entries of consecutive lists.
    pub fn entries(&self, lists: Range<u32>) -> &[Entry] {
        let first = |list: u32| self.lists[list as usize].first_entry as usize;
        &self.entries[first(lists.start)..first(lists.end)]
    }

    /// Numbers paths in the order of the entries, so that what is tried together lies together; `number` says the number of
    /// a path, and gives it one when it is asked for the first time.
    pub fn renumber(&mut self, mut number: impl FnMut(u32) -> u32) {
        self.entries.iter_mut().for_each(|entry| entry.path = number(entry.path));
    }

    /// The condition of a list.
    pub fn condition(&self, list: u32) -> u32 {
        self.lists[list as usize].condition
    }

    /// Every path that has an access, with its list.
    pub fn accesses(&self) -> impl Iterator<Item = (u32, u32)> {
        let entries =
            |(at, _): (u32, &List)| self.entries(at..at + 1).iter().map(move |entry| (entry.path, at));
        (0..).zip(&self.lists[..self.len()]).flat_map(entries)
    }

    /// Calls `found` with the lists of the conditions that the value of the first node of a subject satisfies; only of a
    /// watch that has texts to search for.
    pub fn satisfied_by_first(&self, watch: usize, value: &str, found: &mut impl FnMut(Range<u32>)) {
        let index = &self.text_indexes[self.watches[watch].texts as usize];
        index.passed(value, &mut |list| found(list..list + 1));
    }

    /// A list that probably asks for the text with this hash, or [`NONE`].
    pub fn probable_text_list(&self, hash: u64) -> u32 {
        self.by_text.find(hash, |_| true).unwrap_or(NONE)
    }

    /// The same for a number.
    pub fn probable_number_list(&self, hash: u64) -> u32 {
        self.by_number.find(hash, |_| true).unwrap_or(NONE)
    }

    /// The value of the condition of a list, as [`SimpleConditions::value`] has it.
    pub fn value(&self, list: u32) -> [u32; 2] {
        self.lists[list as usize].value
    }

    /// The list of a watch that asks for a text, whose hash is given.
    pub fn text_list(&self, watch: &Watch, hash: u64, text: &str, simple: &SimpleConditions) -> Option<u32> {
        self.by_text.find(hash, |list| watch.has_list(list) && simple.text_at(self.value(list)) == text)
    }

    /// The list of a watch that asks for a number, whose hash is given.
    pub fn number_list(&self, watch: &Watch, hash: u64, number: f64) -> Option<u32> {
        self.by_number.find(hash, |list| watch.has_list(list) && self.value(list) == number_words(number))
    }

    /// Calls `found` with the lists of a watch whose thresholds a number satisfies.
    pub fn satisfied_thresholds(&self, watch: &Watch, number: f64, found: &mut impl FnMut(Range<u32>)) {
        for (comparison, run) in COMPARISONS[1..].iter().zip(&watch.runs) {
            if run.start == run.end {
                continue;
            }
            let first = run.threshold as usize;
            let thresholds = &self.thresholds[first..first + (run.end - run.start) as usize];
            let below = |is_below: fn(&f64, f64) -> bool| {
                run.start + thresholds.partition_point(|threshold| is_below(threshold, number)) as u32
            };
            let satisfied = match comparison {
                Comparison::Less => below(|threshold, number| *threshold <= number)..run.end,
                Comparison::LessOrEqual => below(|threshold, number| *threshold < number)..run.end,
                Comparison::Greater => run.start..below(|threshold, number| *threshold < number),
                _ => run.start..below(|threshold, number| *threshold <= number),
            };
            if !satisfied.is_empty() {
                found(satisfied);
            }
        }
    }

    pub fn heap_bytes(&self) -> usize {
        self.watches.capacity() * size_of::<Watch>()
            + (self.first_watch.capacity() + self.first_anchor.capacity() + self.anchors.capacity()) * 4
            + self.lists.capacity() * size_of::<List>()
            + self.entries.capacity() * size_of::<Entry>()
            + self.by_text.heap_bytes()
            + self.by_number.heap_bytes()
            + self.thresholds.capacity() * 8
            + self.text_indexes.iter().map(|index| index.heap_bytes() + 16).sum::<usize>()
    }
}

/// Of sorted places below `count`: where those of each begin, and the end of all.
fn starts(places: impl Iterator<Item = usize>, count: usize) -> Vec<u32> {
    let mut starts = vec![0u32; count + 1];
    places.for_each(|place| starts[place + 1] += 1);
    for at in 0..count {
        starts[at + 1] += starts[at];
    }
    starts
}

/// Distinct subjects while paths are added.
#[derive(Default)]
pub(super) struct SubjectNumbers(pub HashMap<Vec<(bool, u8, Label)>, u32, FxBuildHasher>);
