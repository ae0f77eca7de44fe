//! The scoring programs of rows in the form a device runs: over masks, from left to right, with a stack.

use super::super::Segment;
use super::super::program::Leaf;
use super::super::scoring::node::{LeafNode, Node, NodeKind, weight_words};
use super::super::scoring::{Scoring, node};
use super::points::{MasksOfPredicates, PointsOfPredicates};
use crate::engine::device::{DeviceError, DeviceResult, NO_PROGRAM, PROGRAM_DEPTH};
use crate::engine::device::{Relevance, RowNumbers};

/// What begins at a word of a program; see `relevance.cuh`.
#[derive(Clone, Copy)]
#[repr(u32)]
enum Operation {
    /// The number of tests, the first of them, and the weight; the other tests follow. Some group of them holds. A test is a mask,
    /// whether it must be clear, and whether it is the last one of its group.
    Leaf = 0,
    Open = 1,
    /// The least number of parts that hold.
    Close = 2,
    /// 1 for XNOR.
    XorStep = 3,
    /// 1 if the chain is asked to be false.
    XorEnd = 4,
    End = 5,
    /// The number of leaves with one test each; they follow, each as a [`Leaf`](Self::Leaf).
    Run = 6,
}

const OPERATION_SHIFT: u32 = 29;
const NUMBERS: u32 = 1 << 28;
const MASK_SHIFT: u32 = 2;
const IS_CLEAR: u32 = 2;
const ENDS_GROUP: u32 = 1;

/// The words of the scoring program of a row, if it has one.
fn program_of(scoring: &Scoring, row: u32) -> Option<&[u32]> {
    let (from, to) = (*scoring.code_off.get(row as usize)?, *scoring.code_off.get(row as usize + 1)?);
    Some(&scoring.code[from as usize..to as usize]).filter(|code| !code.is_empty())
}

/// Whether what a row scores is its bound, for events without weights.
fn is_its_bound(code: &[u32]) -> bool {
    matches!(code.first().and_then(|word| Node::read(*word)), Some(Node::All(_)))
}

/// Notes which predicates the programs of rows read.
pub(super) fn read(
    segment: &Segment,
    rows: &RowNumbers,
    points: &PointsOfPredicates,
    masks: &mut MasksOfPredicates<'_>,
) {
    for code in rows.iter().filter_map(|row| program_of(&segment.scoring, row)) {
        for_each_test(code, |test| match points.in_place_of(test) {
            Some(others) => others.for_each(|other| masks.read(other)),
            None => masks.read(test),
        });
    }
}

fn for_each_test(code: &[u32], mut see: impl FnMut(Leaf)) {
    let mut at = 0;
    while at < code.len() {
        let tests = match Node::read(code[at]) {
            Some(Node::Leaf(leaf)) => {
                at += leaf.weight_words();
                leaf.form.tests()
            }
            _ => 0,
        };
        code[at + 1..at + 1 + tests].iter().for_each(|word| see(Leaf(*word)));
        at += 1 + tests;
    }
}

/// The programs of rows, those with the highest bounds first; behind them the rows that only their records can score.
pub(super) fn plan(
    segment: &Segment,
    rows: &RowNumbers,
    points: &PointsOfPredicates,
    masks: &MasksOfPredicates<'_>,
) -> DeviceResult<Relevance> {
    let scoring = &segment.scoring;
    let mut found = Relevance::default();
    if !scoring.has_weights() {
        return Ok(found);
    }
    let mut scored = vec![];
    let mut by_record = vec![];
    for (number, row) in (0..).zip(rows.iter()) {
        let Some(code) = program_of(scoring, row) else {
            by_record.push(number);
            continue;
        };
        let start = found.code.len();
        let mut writer = Writer { code, at: 0, points, masks, depth: 0, run: None, written: &mut found.code };
        let place = match is_its_bound(code) {
            true => NO_PROGRAM,
            false if writer.row().is_some() => u32::try_from(start)
                .map_err(|_| DeviceError::of_memory("programs are longer than a device can number"))?,
            false => {
                found.code.truncate(start);
                by_record.push(number);
                continue;
            }
        };
        // Bounds are not negative; those that are negative zero are zero.
        scored.push(((scoring.bound(row) + 0.0).to_bits(), number, place));
    }
    scored.sort_unstable_by(|(a, first, _), (b, second, _)| b.cmp(a).then(first.cmp(second)));
    found.code.push([0; 4]);
    found.order = scored.iter().map(|(_, number, _)| *number).chain(by_record).collect();
    found.bounds = scored.iter().map(|(bound, ..)| *bound).collect();
    found.starts = scored.iter().map(|(.., start)| *start).collect();
    Ok(found)
}

/// Writes the program of one row.
struct Writer<'a> {
    code: &'a [u32],
    at: usize,
    points: &'a PointsOfPredicates,
    masks: &'a MasksOfPredicates<'a>,
    depth: usize,
    /// Where the run begins that the next leaf may belong to.
    run: Option<usize>,
    written: &'a mut Vec<[u32; 4]>,
}

impl Writer<'_> {
    /// `None` if the row is nested too deeply.
    fn row(&mut self) -> Option<()> {
        let root = Node::read(self.code[0])?;
        match root {
            // The row holds, so its parts count.
            Node::And(parts) | Node::Or(parts) | Node::AtLeast(_, parts) => {
                self.at = 1;
                (0..parts).try_for_each(|_| self.node())?;
            }
            _ => self.node()?,
        }
        self.write(Operation::End, 0)
    }

    fn write(&mut self, operation: Operation, number: u32) -> Option<()> {
        self.run = None;
        self.written.push([(operation as u32) << OPERATION_SHIFT | number, 0, 0, 0]);
        (number < NUMBERS).then_some(())
    }

    fn open(&mut self) -> Option<()> {
        self.depth += 1;
        self.write(Operation::Open, 0)?;
        (self.depth <= PROGRAM_DEPTH).then_some(())
    }

    fn node(&mut self) -> Option<()> {
        let node = Node::read(self.code[self.at])?;
        self.at += 1;
        let (least, parts) = match node {
            Node::Leaf(leaf) => return self.leaf(leaf),
            Node::Xor(chain) => return self.xor(chain),
            Node::All(parts) | Node::And(parts) => (parts, parts),
            Node::Or(parts) => (1, parts),
            Node::AtLeast(least, parts) => (least, parts),
        };
        self.open()?;
        (0..parts).try_for_each(|_| self.node())?;
        self.depth -= 1;
        self.write(Operation::Close, least)
    }

    fn xor(&mut self, chain: node::XorChain) -> Option<()> {
        for child in 0..chain.children {
            for _ in 0..2 {
                self.open()?;
                self.node()?;
            }
            if child > 0 {
                self.depth -= 2;
                self.write(Operation::XorStep, u32::from(chain.negates))?;
            }
        }
        self.depth -= 2;
        self.write(Operation::XorEnd, u32::from(chain.wants_false))
    }

    fn leaf(&mut self, leaf: LeafNode) -> Option<()> {
        let words = |at: usize| [self.code[at], self.code[at + 1]];
        let weight = if leaf.plain { 1.0 } else { node::weight(words(self.at)) };
        let first = self.at + leaf.weight_words();
        self.at = first + leaf.form.tests();
        let tests: Vec<Leaf> = self.code[first..self.at].iter().map(|word| Leaf(*word)).collect();
        let groups = match (leaf.form, &tests[..]) {
            (NodeKind::True, _) => vec![vec![]],
            (NodeKind::Both, [a, b]) => both(&self.groups(*a), &self.groups(*b)),
            (NodeKind::OneOrBoth, [one, a, b]) => {
                [self.groups(*one), both(&self.groups(*a), &self.groups(*b))].concat()
            }
            _ => tests.iter().flat_map(|test| self.groups(*test)).collect(),
        };
        let mut tests = vec![];
        for mut group in groups {
            *group.last_mut()? |= ENDS_GROUP;
            tests.append(&mut group);
        }
        let (first, others) = tests.split_first()?;
        let [low, high] = weight_words(weight);
        match (self.run, others) {
            (Some(start), []) => self.written[start][0] += 1,
            (None, []) => {
                self.write(Operation::Run, 1)?;
                self.run = Some(self.written.len() - 1);
            }
            _ => self.run = None,
        }
        self.written.push([
            (Operation::Leaf as u32) << OPERATION_SHIFT | tests.len() as u32,
            *first,
            low,
            high,
        ]);
        self.written
            .extend(others.chunks(4).map(|some| std::array::from_fn(|at| *some.get(at).unwrap_or(&0))));
        Some(())
    }

    /// Some of these hold, all of each: what a test is in masks.
    fn groups(&self, test: Leaf) -> Vec<Vec<u32>> {
        let word = |leaf: Leaf| {
            let clear = if leaf.is_clear() { IS_CLEAR } else { 0 };
            self.masks.of[leaf.bit() as usize] << MASK_SHIFT | clear
        };
        match self.points.in_place_of(test) {
            None => vec![vec![word(test)]],
            Some(points) if test.is_clear() => vec![points.map(word).collect()],
            Some(points) => points.map(|point| vec![word(point)]).collect(),
        }
    }
}

/// One of each.
fn both(a: &[Vec<u32>], b: &[Vec<u32>]) -> Vec<Vec<u32>> {
    a.iter().flat_map(|a| b.iter().map(move |b| [&a[..], b].concat())).collect()
}
