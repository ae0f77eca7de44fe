//! Conditions that compare the value of a subject, and from a value to the paths that have such a condition as access.
//!
//! ```text
//! watch       (label, subject): what elements of that name are asked for
//! list        (watch, condition), also without entries; an entry is (anchor, path, another list), sorted by anchor
//! by text     hash of (watch, text) → list of `subject = 'text'`
//! by number   hash of (watch, number) → list of `subject = number`
//! thresholds  per watch and comparison, sorted, as their lists are: a value satisfies one run of lists
//! text index  per watch, of what `contains` and `starts-with` look for in the first node (`text_index`)
//! ```
//!
//! The other list of an entry is that of another condition of the path: unless that is satisfied somewhere in the document, the path
//! is not true.
//!
//! An anchor is a place in the tree at which some path has its access. Anchors are numbered by label, so that those that
//! an element can have active are a run of numbers for its name and one for `*`.

use std::hash::BuildHasher;
use std::ops::Range;

use hashbrown::{HashMap, HashTable};
use rustc_hash::FxBuildHasher;

use super::text_index::{MakeTextIndex, TextIndex, TextTest};
use crate::ast::Comparison;
use crate::compiled::{ANY, Label, NO_LABEL, compare};
use crate::number::number;

/// What a simple condition asks of the nodes of its subject: that there is one, or that one has such a value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum SimpleTest<'a> {
    Exists,
    Text(&'a str),
    Number(Comparison, f64),
    /// That the first node contains a text, which is not empty.
    Contains(&'a str),
    StartsWith(&'a str),
}

impl SimpleTest<'_> {
    pub fn holds(&self, value: &str) -> bool {
        match self {
            Self::Exists => true,
            Self::Text(text) => value == *text,
            Self::Number(comparison, operand) => compare(number(value), *comparison, *operand),
            Self::Contains(text) => value.contains(*text),
            Self::StartsWith(text) => value.starts_with(*text),
        }
    }

    /// Whether it asks the first node only.
    pub fn is_of_first(&self) -> bool {
        matches!(self, Self::Contains(_) | Self::StartsWith(_))
    }

    /// Lists are sorted by it: those of one comparison lie together, in the order of their thresholds.
    fn order(&self) -> (u32, u64) {
        match self {
            Self::Exists => (0, 0),
            Self::Text(_) => (1, 0),
            Self::Number(comparison, number) => {
                let bits = number_bits(*number);
                let ordered = if bits >> 63 == 0 { bits | 1 << 63 } else { !bits };
                (2 + *comparison as u32, ordered)
            }
            Self::Contains(_) => (10, 0),
            Self::StartsWith(_) => (11, 0),
        }
    }

    /// How selective it is likely to be, from 1.
    pub fn rank(&self) -> u32 {
        match self {
            Self::Exists => 1,
            Self::Number(Comparison::Equal, _) | Self::Text(_) => 4,
            Self::Number(..) => 2,
            Self::Contains(_) | Self::StartsWith(_) => 3,
        }
    }
}

/// Distinct simple conditions in 12 bytes each.
#[derive(Default)]
pub(super) struct SimpleConditions {
    all: Vec<Packed>,
    pool: String,
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
const CONTAINS: u32 = FIRST_COMPARISON + COMPARISONS.len() as u32;
const STARTS_WITH: u32 = CONTAINS + 1;
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
        let text = || &self.pool[first as usize..(first + second) as usize];
        match head >> SUBJECT_BITS {
            0 => SimpleTest::Exists,
            TEXT => SimpleTest::Text(text()),
            CONTAINS => SimpleTest::Contains(text()),
            STARTS_WITH => SimpleTest::StartsWith(text()),
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
            SimpleTest::Contains(text) => FxBuildHasher.hash_one((subject, CONTAINS, text)),
            SimpleTest::StartsWith(text) => FxBuildHasher.hash_one((subject, STARTS_WITH, text)),
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
        let mut keep = |text: &str| {
            let place = [self.pool.len() as u32, text.len() as u32];
            self.pool.push_str(text);
            place
        };
        let (code, value) = match test {
            SimpleTest::Exists => (0, [0, 0]),
            SimpleTest::Text(text) => (TEXT, keep(text)),
            SimpleTest::Contains(text) => (CONTAINS, keep(text)),
            SimpleTest::StartsWith(text) => (STARTS_WITH, keep(text)),
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
    /// The index of what its first node is searched for, or [`NONE`].
    pub texts: u32,
    /// For each of [`COMPARISONS`] but equality.
    runs: [Run; 4],
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
    watch: u32,
    condition: u32,
    first_entry: u32,
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
    by_text: HashTable<u32>,
    by_number: HashTable<u32>,
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

fn text_hash(watch: u32, text: &str) -> u64 {
    FxBuildHasher.hash_one((watch, text))
}

fn number_hash(watch: u32, number: f64) -> u64 {
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
        let mut built = Self {
            first_anchor: starts(nodes.iter().map(|(place, _)| *place), labels + 1),
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
                runs: [Run::default(); 4],
            };
            let mut searched = vec![];
            for &(_, condition) in of_watch {
                let list = built.lists.len() as u32;
                built.lists.push(List { watch, condition, first_entry: first_entries[list as usize] });
                match simple.test(condition) {
                    SimpleTest::Contains(text) => {
                        searched.push(TextTest { id: list, text, at_start: false });
                    }
                    SimpleTest::StartsWith(text) => {
                        searched.push(TextTest { id: list, text, at_start: true });
                    }
                    _ => built.put(&mut new, list, simple),
                }
            }
            if !searched.is_empty() {
                new.texts = built.text_indexes.len() as u32;
                built.text_indexes.push(make_text_index(&searched));
            }
            built.watches.push(new);
        }
        built.lists.push(List { watch: NONE, condition: 0, first_entry: built.entries.len() as u32 });
        built.first_watch = starts(watch_places.into_iter(), labels + 1);
        built.anchors = nodes.into_iter().map(|(_, node)| node).collect();
        built
    }

    /// Puts the last list where a value of its watch finds it.
    fn put(&mut self, watch: &mut Watch, list: u32, simple: &SimpleConditions) {
        let lists = &self.lists;
        let List { watch: number, condition, .. } = lists[list as usize];
        match simple.test(condition) {
            SimpleTest::Exists => watch.exists = list,
            SimpleTest::Text(text) => {
                watch.has_texts = true;
                let hash = |at: &u32| {
                    let list = &lists[*at as usize];
                    text_hash(list.watch, list.text(simple).unwrap_or_default())
                };
                self.by_text.insert_unique(text_hash(number, text), list, hash);
            }
            SimpleTest::Number(Comparison::Equal, value) => {
                watch.has_numbers = true;
                let hash = |at: &u32| {
                    let list = &lists[*at as usize];
                    number_hash(list.watch, list.number(simple).unwrap_or_default())
                };
                self.by_number.insert_unique(number_hash(number, value), list, hash);
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

    /// Calls `found` with the lists of the conditions that a value of the subject satisfies, whichever of its nodes it is of.
    pub fn satisfied(
        &self,
        watch: usize,
        value: &str,
        simple: &SimpleConditions,
        found: &mut impl FnMut(Range<u32>),
    ) {
        let Watch { exists, has_texts, has_numbers, runs, .. } = &self.watches[watch];
        let watch = watch as u32;
        if *exists != NONE {
            found(*exists..exists + 1);
        }
        if *has_texts {
            let same = |list: &u32| {
                let list = &self.lists[*list as usize];
                list.watch == watch && list.text(simple) == Some(value)
            };
            if let Some(list) = self.by_text.find(text_hash(watch, value), same) {
                found(*list..list + 1);
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
            found(*list..list + 1);
        }
        for (comparison, run) in COMPARISONS[1..].iter().zip(runs) {
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
            + (self.by_text.capacity() + self.by_number.capacity()) * 5
            + self.thresholds.capacity() * 8
            + self.text_indexes.iter().map(|index| index.heap_bytes() + 16).sum::<usize>()
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
