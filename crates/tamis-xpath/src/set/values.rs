//! Conditions that compare the value of a subject, and from a value to the paths that have such a condition as access.
//!
//! ```text
//! watch       (label, subject): what elements of that name are asked for
//! list        (watch, condition): its entries are (anchor, path), sorted by anchor
//! by text     hash of (watch, text) → list of `subject = 'text'`
//! by number   hash of (watch, number) → list of `subject = number`
//! thresholds  per watch and comparison, sorted: a value satisfies one run of them
//! ```
//!
//! An anchor is a place in the tree at which some path has its access. Anchors are numbered by label, so that those that
//! an element can have active are a run of numbers for its name and one for `*`.

use std::hash::BuildHasher;

use hashbrown::{HashMap, HashTable};
use rustc_hash::FxBuildHasher;

use crate::ast::Comparison;
use crate::compiled::{ANY, Label, NO_LABEL, compare};
use crate::number::number;

/// What a simple condition asks of the nodes of its subject: that there is one, or that one has such a value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum SimpleTest<'a> {
    Exists,
    Text(&'a str),
    Number(Comparison, f64),
}

impl SimpleTest<'_> {
    pub fn holds(&self, value: &str) -> bool {
        match self {
            Self::Exists => true,
            Self::Text(text) => value == *text,
            Self::Number(comparison, operand) => compare(number(value), *comparison, *operand),
        }
    }

    /// How selective it is likely to be, from 1.
    pub fn rank(&self) -> u32 {
        match self {
            Self::Exists => 1,
            Self::Number(Comparison::Equal, _) => 3,
            Self::Number(..) => 2,
            Self::Text(_) => 4,
        }
    }
}

/// Distinct simple conditions in 12 bytes each.
#[derive(Default)]
pub(super) struct SimpleConditions {
    all: Vec<Packed>,
    pool: Vec<u8>,
    numbers: HashTable<u32>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
struct Packed {
    /// The test in the highest bits, then the subject.
    head: u32,
    /// Offset and length of a text; the two halves of a number.
    value: [u32; 2],
}

const SUBJECT_BITS: u32 = 28;
const TEXT: u32 = 1;
const FIRST_COMPARISON: u32 = 2;
/// The comparisons that simple conditions have, in the order of their codes.
pub(super) const COMPARISONS: [Comparison; 5] = [
    Comparison::Equal,
    Comparison::Less,
    Comparison::LessOrEqual,
    Comparison::Greater,
    Comparison::GreaterOrEqual,
];

fn number_bits(number: f64) -> u64 {
    // Both zeros are equal.
    (number + 0.0).to_bits()
}

impl SimpleConditions {
    pub fn subject(&self, id: u32) -> u32 {
        self.all[id as usize].head & ((1 << SUBJECT_BITS) - 1)
    }

    pub fn test(&self, id: u32) -> SimpleTest<'_> {
        let Packed { head, value: [first, second] } = self.all[id as usize];
        match head >> SUBJECT_BITS {
            0 => SimpleTest::Exists,
            TEXT => {
                let text = &self.pool[first as usize..(first + second) as usize];
                SimpleTest::Text(std::str::from_utf8(text).unwrap_or_default())
            }
            code => {
                let number = f64::from_bits(u64::from(first) << 32 | u64::from(second));
                SimpleTest::Number(COMPARISONS[(code - FIRST_COMPARISON) as usize], number)
            }
        }
    }

    pub fn intern(&mut self, subject: u32, test: SimpleTest<'_>) -> u32 {
        let hash = |subject: u32, test: SimpleTest<'_>| match test {
            SimpleTest::Exists => FxBuildHasher.hash_one((subject, 0)),
            SimpleTest::Text(text) => FxBuildHasher.hash_one((subject, text)),
            SimpleTest::Number(comparison, number) => {
                FxBuildHasher.hash_one((subject, comparison, number_bits(number)))
            }
        };
        let found = self
            .numbers
            .find(hash(subject, test), |id| self.subject(*id) == subject && self.test(*id) == test);
        if let Some(id) = found {
            return *id;
        }
        let (code, value) = match test {
            SimpleTest::Exists => (0, [0, 0]),
            SimpleTest::Text(text) => {
                let place = [self.pool.len() as u32, text.len() as u32];
                self.pool.extend_from_slice(text.as_bytes());
                (TEXT, place)
            }
            SimpleTest::Number(comparison, number) => {
                let code = COMPARISONS.iter().position(|known| *known == comparison).expect("it is simple");
                let bits = number_bits(number);
                (FIRST_COMPARISON + code as u32, [(bits >> 32) as u32, bits as u32])
            }
        };
        let id = self.all.len() as u32;
        self.all.push(Packed { head: code << SUBJECT_BITS | subject, value });
        let mut numbers = std::mem::take(&mut self.numbers);
        numbers.insert_unique(hash(subject, test), id, |id| hash(self.subject(*id), self.test(*id)));
        self.numbers = numbers;
        id
    }

    /// Nothing will be added.
    pub fn finish(&mut self) {
        self.numbers = HashTable::new();
        self.all.shrink_to_fit();
        self.pool.shrink_to_fit();
    }

    pub fn heap_bytes(&self) -> usize {
        self.all.capacity() * size_of::<Packed>() + self.pool.capacity()
    }
}

/// What elements of one name are asked for.
pub(super) struct Watch {
    pub subject: u32,
    /// The list of its existence, or [`NONE`].
    pub exists: u32,
    pub has_texts: bool,
    pub has_numbers: bool,
    /// For each of [`COMPARISONS`] but equality: the run of thresholds.
    runs: [(u32, u32); 4],
}

pub(super) const NONE: u32 = u32::MAX;

#[derive(Clone, Copy)]
struct List {
    watch: u32,
    condition: u32,
    first_entry: u32,
}

#[derive(Clone, Copy)]
pub(super) struct Entry {
    pub anchor: u32,
    pub path: u32,
}

#[derive(Default)]
pub(super) struct Lists {
    watches: Vec<Watch>,
    /// By label, `*` last: the first watch.
    first_watch: Vec<u32>,
    lists: Vec<List>,
    entries: Vec<Entry>,
    by_text: HashTable<u32>,
    by_number: HashTable<u32>,
    thresholds: Vec<f64>,
    threshold_lists: Vec<u32>,
    /// Tree nodes, sorted by label and node; the place is the anchor.
    anchors: Vec<u32>,
    /// By label, `*` last.
    first_anchor: Vec<u32>,
}

/// An access of a path, before lists are made.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Access {
    pub label: Label,
    pub condition: u32,
    /// A node of the tree.
    pub node: u32,
    pub path: u32,
}

fn text_hash(watch: u32, text: &str) -> u64 {
    FxBuildHasher.hash_one((watch, text))
}

fn number_hash(watch: u32, number: f64) -> u64 {
    FxBuildHasher.hash_one((watch, number_bits(number)))
}

impl Lists {
    /// Lists of these accesses, for paths with so many labels.
    pub fn new(mut accesses: Vec<Access>, labels: usize, simple: &SimpleConditions) -> Self {
        let place = |label: Label| if label == ANY { labels } else { label as usize };
        let mut nodes: Vec<(usize, u32)> =
            accesses.iter().map(|access| (place(access.label), access.node)).collect();
        nodes.sort_unstable();
        nodes.dedup();
        let mut built = Self {
            first_anchor: starts(nodes.iter().map(|(place, _)| *place), labels + 1),
            ..Self::default()
        };
        let anchor_of =
            |label: Label, node: u32| nodes.binary_search(&(place(label), node)).expect("it is one") as u32;
        accesses.sort_unstable_by_key(|access| {
            (
                place(access.label),
                simple.subject(access.condition),
                access.condition,
                access.node,
                access.path,
            )
        });
        let mut watch_places = vec![];
        let same_watch = |a: &Access, b: &Access| {
            a.label == b.label && simple.subject(a.condition) == simple.subject(b.condition)
        };
        for of_watch in accesses.chunk_by(same_watch) {
            let watch = built.watches.len() as u32;
            watch_places.push(place(of_watch[0].label));
            let mut ranges: [Vec<(f64, u32)>; 4] = Default::default();
            let mut new = Watch {
                subject: simple.subject(of_watch[0].condition),
                exists: NONE,
                has_texts: false,
                has_numbers: false,
                runs: [(0, 0); 4],
            };
            for of_condition in of_watch.chunk_by(|a, b| a.condition == b.condition) {
                let condition = of_condition[0].condition;
                let list = built.lists.len() as u32;
                built.lists.push(List { watch, condition, first_entry: built.entries.len() as u32 });
                built.entries.extend(
                    of_condition.iter().map(|a| Entry { anchor: anchor_of(a.label, a.node), path: a.path }),
                );
                let lists = &built.lists;
                match simple.test(condition) {
                    SimpleTest::Exists => new.exists = list,
                    SimpleTest::Text(text) => {
                        new.has_texts = true;
                        built.by_text.insert_unique(text_hash(watch, text), list, |at| {
                            match lists[*at as usize].text(simple) {
                                Some(text) => text_hash(lists[*at as usize].watch, text),
                                None => 0,
                            }
                        });
                    }
                    SimpleTest::Number(Comparison::Equal, number) => {
                        new.has_numbers = true;
                        built.by_number.insert_unique(number_hash(watch, number), list, |at| {
                            match lists[*at as usize].number(simple) {
                                Some(number) => number_hash(lists[*at as usize].watch, number),
                                None => 0,
                            }
                        });
                    }
                    SimpleTest::Number(comparison, number) => {
                        new.has_numbers = true;
                        let at = COMPARISONS[1..].iter().position(|known| *known == comparison);
                        ranges[at.expect("it is simple")].push((number, list));
                    }
                }
            }
            for (run, mut range) in new.runs.iter_mut().zip(ranges) {
                range.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
                let start = built.thresholds.len() as u32;
                built.thresholds.extend(range.iter().map(|(number, _)| *number));
                built.threshold_lists.extend(range.iter().map(|(_, list)| *list));
                *run = (start, built.thresholds.len() as u32);
            }
            built.watches.push(new);
        }
        built.first_watch = starts(watch_places.into_iter(), labels + 1);
        built.anchors = nodes.into_iter().map(|(_, node)| node).collect();
        built.lists.shrink_to_fit();
        built.entries.shrink_to_fit();
        built
    }

    fn place(&self, label: Label) -> Option<usize> {
        match label {
            NO_LABEL => None,
            ANY => Some(self.first_watch.len() - 2),
            label => Some(label as usize),
        }
    }

    /// The watches of a label.
    pub fn watches(&self, label: Label) -> std::ops::Range<usize> {
        match self.place(label) {
            Some(at) => self.first_watch[at] as usize..self.first_watch[at + 1] as usize,
            None => 0..0,
        }
    }

    pub fn watch(&self, at: usize) -> &Watch {
        &self.watches[at]
    }

    /// The run of anchors of a label.
    pub fn anchors(&self, label: Label) -> std::ops::Range<u32> {
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

    pub fn entries(&self, list: u32) -> &[Entry] {
        let start = self.lists[list as usize].first_entry as usize;
        let end =
            self.lists.get(list as usize + 1).map_or(self.entries.len(), |next| next.first_entry as usize);
        &self.entries[start..end]
    }

    /// Every path that has an access, with the condition.
    pub fn accesses(&self) -> impl Iterator<Item = (u32, u32)> {
        let entries = |(at, list): (u32, &List)| {
            let condition = list.condition;
            self.entries(at).iter().map(move |entry| (entry.path, condition))
        };
        (0..).zip(&self.lists).flat_map(entries)
    }

    /// Calls `found` with the lists of the conditions that a value of the subject satisfies.
    pub fn satisfied(
        &self,
        watch: usize,
        value: &str,
        simple: &SimpleConditions,
        found: &mut impl FnMut(u32),
    ) {
        let Watch { exists, has_texts, has_numbers, runs, .. } = &self.watches[watch];
        let watch = watch as u32;
        if *exists != NONE {
            found(*exists);
        }
        if *has_texts {
            let same = |list: &u32| {
                let list = &self.lists[*list as usize];
                list.watch == watch && list.text(simple) == Some(value)
            };
            if let Some(list) = self.by_text.find(text_hash(watch, value), same) {
                found(*list);
            }
        }
        if !has_numbers {
            return;
        }
        let number = number(value);
        if number.is_nan() {
            return;
        }
        let same = |list: &u32| {
            let list = &self.lists[*list as usize];
            list.watch == watch && list.number(simple) == Some(number)
        };
        if let Some(list) = self.by_number.find(number_hash(watch, number), same) {
            found(*list);
        }
        for (comparison, (start, end)) in COMPARISONS[1..].iter().zip(runs) {
            let (start, end) = (*start as usize, *end as usize);
            if start == end {
                continue;
            }
            let thresholds = &self.thresholds[start..end];
            let run = match comparison {
                Comparison::Less => start + thresholds.partition_point(|t| *t <= number)..end,
                Comparison::LessOrEqual => start + thresholds.partition_point(|t| *t < number)..end,
                Comparison::Greater => start..start + thresholds.partition_point(|t| *t < number),
                _ => start..start + thresholds.partition_point(|t| *t <= number),
            };
            self.threshold_lists[run].iter().for_each(|list| found(*list));
        }
    }

    pub fn heap_bytes(&self) -> usize {
        self.watches.capacity() * size_of::<Watch>()
            + (self.first_watch.capacity() + self.first_anchor.capacity() + self.anchors.capacity()) * 4
            + self.lists.capacity() * size_of::<List>()
            + self.entries.capacity() * size_of::<Entry>()
            + (self.by_text.capacity() + self.by_number.capacity()) * 5
            + self.thresholds.capacity() * 12
    }
}

impl List {
    fn text<'s>(&self, simple: &'s SimpleConditions) -> Option<&'s str> {
        match simple.test(self.condition) {
            SimpleTest::Text(text) => Some(text),
            _ => None,
        }
    }

    fn number(&self, simple: &SimpleConditions) -> Option<f64> {
        match simple.test(self.condition) {
            SimpleTest::Number(Comparison::Equal, number) => Some(number),
            _ => None,
        }
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
