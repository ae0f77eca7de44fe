//! The c-directory of BE-Tree (Sadoghi 2012): space is halved along a fixed grid, independent of the data.
//!
//! The line of positions is finite, so halving it again and again gives cells of 2ⁿ positions. A conjunction
//! belongs to the smallest cell that encloses its interval:
//!
//! ```text
//!                cell [0, 7]         home of [2, 5] and [3, 4]: they span both halves
//!               /           \
//!        cell [0, 3]      cell [4, 7]
//!        home of [1, 2]   not split: all of [4, 4], [5, 6], [6, 7]
//! ```
//!
//! - A bucket is *open* until it overflows; then it is split before anything is partitioned (forced split). A
//!   split bucket keeps the intervals that span both halves (it is their home), and partitions them when it
//!   overflows.
//! - A bucket of a single position is *atomic*: it cannot be split, so it is partitioned.
//! - A bucket and its halves that fit into one l-node are merged into an open bucket again.
//!
//! Cells with everything in one half are skipped, so the depth follows the contents, not the size of the
//! domain. Which cells exist depends only on the intervals, not on the order of insertion.

use super::node::{Bounds, CNode, Directory, Path, Store, hull, rows};
use crate::span::{Span, number_at};
use tamis_core::event::TermId;

#[derive(Default)]
pub struct Grid {
    /// The conjunctions whose home is this bucket.
    home: CNode<Grid>,
    bucket: Bucket,
    size: usize,
    /// The cell that must be halved next, where no cells are skipped.
    frame: Option<Cell>,
}

#[derive(Default)]
enum Bucket {
    #[default]
    Open,
    Atomic(u64),
    Split(Box<Halves>),
}

struct Halves {
    cell: Cell,
    halves: [Grid; 2],
}

/// 2^bits positions, the first of which is a multiple of that.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Cell {
    first: u64,
    bits: u32,
}

impl Cell {
    /// The smallest cell that encloses a span.
    fn around(span: Span) -> Self {
        let bits = u64::BITS - (span.low ^ span.high).leading_zeros();
        Self { first: span.low.checked_shr(bits).map_or(0, |prefix| prefix << bits), bits }
    }

    fn span(self) -> Span {
        let rest = 1u64.checked_shl(self.bits).map_or(u64::MAX, |size| size - 1);
        Span { low: self.first, high: self.first + rest }
    }

    fn half(self, side: usize) -> Cell {
        let bits = self.bits - 1;
        Cell { first: self.first + ((side as u64) << bits), bits }
    }

    /// The half that encloses a span, if one does.
    fn side(self, span: Span) -> Option<usize> {
        (0..2).find(|side| self.half(*side).span().encloses(span))
    }
}

impl Grid {
    fn in_frame(frame: Option<Cell>) -> Self {
        Self { frame, ..Self::default() }
    }

    /// Where a row lies on the line that is halved.
    fn place(&self, row: u32, path: &[TermId], store: &Store) -> Span {
        self.of(store.span(row, *path.last().expect("a directory has an attribute")))
    }

    /// A finite domain is one of whole numbers from 0; what lies beyond it is at home in its first cell.
    fn of(&self, span: Span) -> Span {
        let whole = |position: u64| number_at(position).floor().clamp(0.0, (1u64 << 53) as f64) as u64;
        match self.frame {
            None => span,
            Some(_) => Span { low: whole(span.low), high: whole(span.high) },
        }
    }

    /// The frames of both halves of a cell.
    fn halves(&self, cell: Cell) -> [Grid; 2] {
        [0, 1].map(|side| Grid::in_frame(self.frame.map(|_| cell.half(side))))
    }

    /// What the bucket must enclose to stay as it is; an open one takes anything.
    fn cell(&self) -> Option<Cell> {
        match &self.bucket {
            Bucket::Open => None,
            Bucket::Atomic(value) => Some(Cell { first: *value, bits: 0 }),
            Bucket::Split(halves) => Some(halves.cell),
        }
    }

    /// Puts a larger cell above the bucket, which becomes one of its halves.
    fn wrap(&mut self, cell: Cell, around: Cell) {
        let side = around.side(cell.span()).expect("the smaller cell lies in one half of the larger");
        let inner = std::mem::take(self);
        self.size = inner.size;
        let mut halves = [Grid::default(), Grid::default()];
        halves[side] = inner;
        self.bucket = Bucket::Split(Box::new(Halves { cell: around, halves }));
    }

    /// An open bucket that overflows is split, or partitioned if it is atomic.
    fn divide(&mut self, path: &mut Path, store: &mut Store) {
        let spans = self.home.members.iter().map(|row| self.place(*row, path, store));
        let hull = spans.reduce(Span::hull).expect("an overflowing bucket is not empty");
        let cell = self.frame.unwrap_or_else(|| Cell::around(hull));
        if cell.bits == 0 {
            self.bucket = Bucket::Atomic(cell.first);
        } else {
            let mut halves = self.halves(cell);
            let mut rows = [vec![], vec![]];
            for row in self.home.take_members() {
                match cell.side(self.place(row, path, store)) {
                    Some(side) => rows[side].push(row),
                    None => self.home.hold(row, path, store),
                }
            }
            halves.iter_mut().zip(rows).for_each(|(half, rows)| half.fill(rows, path, store));
            self.bucket = Bucket::Split(Box::new(Halves { cell, halves }));
        }
        self.home.partition(path, store);
    }

    /// Calls `reach` with the c-nodes of all cells that meet a place on the line that is halved.
    fn reach_place<'a>(&'a self, place: Span, reach: &mut dyn FnMut(&'a CNode<Grid>)) {
        let is_beside = |cell: Cell| self.frame.is_none() && !cell.span().overlaps(place);
        if self.size == 0 || self.cell().is_some_and(is_beside) {
            return;
        }
        reach(&self.home);
        if let Bucket::Split(split) = &self.bucket {
            for (side, half) in split.halves.iter().enumerate() {
                if split.cell.half(side).span().overlaps(place) {
                    half.reach_place(place, reach);
                }
            }
        }
    }

    /// Puts rows into an empty bucket.
    fn fill(&mut self, rows: Vec<u32>, path: &mut Path, store: &mut Store) {
        self.size = rows.len();
        rows.into_iter().for_each(|row| self.home.hold(row, path, store));
        if self.home.is_overflowing(store) {
            self.divide(path, store);
        }
    }
}

impl Directory for Grid {
    const IS_RANKED: bool = false;

    fn build(rows: Vec<u32>, path: &mut Path, store: &mut Store) -> Self {
        let mut made = Self::in_frame(store.settings.domain_bits.map(|bits| Cell { first: 0, bits }));
        made.fill(rows, path, store);
        made
    }

    fn size(&self) -> usize {
        self.size
    }

    fn most(&self) -> f64 {
        f64::INFINITY
    }

    fn insert(&mut self, row: u32, path: &mut Path, store: &mut Store) {
        let span = self.place(row, path, store);
        if self.frame.is_none()
            && let Some(cell) = self.cell()
            && !cell.span().encloses(span)
        {
            self.wrap(cell, Cell::around(cell.span().hull(span)));
        }
        self.size += 1;
        if let Bucket::Split(split) = &mut self.bucket
            && let Some(side) = split.cell.side(span)
        {
            return split.halves[side].insert(row, path, store);
        }
        if self.home.insert(row, path, store) {
            match self.bucket {
                Bucket::Open => self.divide(path, store),
                _ => self.home.partition_for(row, path, store),
            }
        }
    }

    fn remove(&mut self, row: u32, path: &mut Path, store: &mut Store) -> bool {
        let span = self.place(row, path, store);
        let side = match &self.bucket {
            Bucket::Split(split) => split.cell.side(span),
            _ => None,
        };
        let was_here = match (&mut self.bucket, side) {
            (Bucket::Split(split), Some(side)) => split.halves[side].remove(row, path, store),
            _ => self.home.remove(row, path, store),
        };
        if !was_here {
            return false;
        }
        self.size -= 1;
        if self.size <= store.settings.capacity {
            if !matches!(self.bucket, Bucket::Open) {
                let rows = rows(self);
                *self = Self::in_frame(self.frame);
                self.fill(rows, path, store);
            }
        } else if self.frame.is_none()
            && self.home.size() == 0
            && let Bucket::Split(split) = &mut self.bucket
            && let Some(only) = (0..2).find(|side| split.halves[1 - side].size == 0)
        {
            // One half holds everything: the cell is skipped.
            *self = std::mem::take(&mut split.halves[only]);
        }
        true
    }

    fn reach<'a>(&'a self, span: Span, _: f64, reach: &mut dyn FnMut(&'a CNode<Grid>)) {
        self.reach_place(self.of(span), reach);
    }

    fn for_each<'a>(&'a self, visit: &mut dyn FnMut(&'a CNode<Grid>)) {
        visit(&self.home);
        if let Bucket::Split(split) = &self.bucket {
            split.halves.iter().for_each(|half| half.for_each(visit));
        }
    }

    fn bounds(&self, path: &[TermId], store: &Store) -> Option<Bounds> {
        rows(self).into_iter().map(|row| store.bounds(row, path)).reduce(hull)
    }

    #[cfg(test)]
    fn check(&self, path: &mut Path, store: &Store) {
        let capacity = store.settings.capacity;
        let here = path.clone();
        let place = |row: u32| self.place(row, &here, store);
        assert_eq!(self.size, rows(self).len(), "sizes are counted");
        match &self.bucket {
            Bucket::Open => {
                assert!(self.home.partitions.is_empty(), "a bucket is split before it is partitioned");
                assert!(self.size <= capacity, "an open bucket fits into its l-node");
            }
            Bucket::Atomic(value) => {
                assert!(self.size > capacity, "a small atomic bucket is open again");
                let is_atom =
                    |row: u32| self.frame.is_some() || place(row) == Span { low: *value, high: *value };
                assert!(rows(self).into_iter().all(is_atom), "an atomic bucket has one value");
            }
            Bucket::Split(split) => {
                assert!(self.size > capacity, "small buckets are merged");
                let hull = rows(self).into_iter().map(place).reduce(Span::hull).expect("not empty");
                let expected = self.frame.unwrap_or_else(|| Cell::around(hull));
                assert_eq!(split.cell, expected, "the cell is the smallest, or the next one");
                let mut at_home = vec![];
                self.home.collect(&mut at_home);
                for row in at_home {
                    let side = split.cell.side(place(row));
                    assert_eq!(side, None, "row {row} is in the smallest bucket that encloses it");
                }
                for (side, half) in split.halves.iter().enumerate() {
                    let encloses = |row: u32| split.cell.half(side).span().encloses(place(row));
                    assert!(rows(half).into_iter().all(encloses), "a half encloses what it holds");
                    half.check(path, store);
                }
            }
        }
        self.home.check(path, store);
    }

    fn bytes(&self) -> usize {
        let halves = match &self.bucket {
            Bucket::Split(split) => {
                size_of::<Halves>() + split.halves.iter().map(Directory::bytes).sum::<usize>()
            }
            _ => 0,
        };
        self.home.bytes() + halves
    }
}

/// The cells of a directory and what is at home in each, for comparing two directories.
#[cfg(test)]
pub(super) fn layout(grid: &Grid) -> String {
    let mut rows = vec![];
    grid.home.collect(&mut rows);
    rows.sort_unstable();
    match &grid.bucket {
        Bucket::Open => format!("{rows:?}"),
        Bucket::Atomic(value) => format!("{value}{rows:?}"),
        Bucket::Split(split) => {
            let [left, right] = split.halves.each_ref().map(layout);
            format!("({left} {rows:?} {right})")
        }
    }
}
