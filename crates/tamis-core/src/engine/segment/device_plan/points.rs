//! Assigns masks to predicates and points.

use super::super::layout::Layout;
use super::super::program::Leaf;
use super::shape::Shape;
use crate::engine::device::{IN_POINTS, NO_MASK};
use crate::predicate::catalog::TRUE_BIT;

/// Predicates that hold for a few values (`=`, short `IN`) share the masks of these values where possible. A value may satisfy
/// hundreds of predicates, and setting a bit in the mask of each takes longer than reading a few more leaves.
///
/// The points of a catalog are numbered behind its predicates here: leaf `bits + point` is the mask of a point.
pub(super) struct PointsOfPredicates {
    /// The first of them.
    bits: u32,
    /// Where the points of each predicate begin.
    offsets: Vec<u32>,
    points: Vec<u32>,
    /// By predicate, whether its points are read in its place.
    is_read_so: Vec<bool>,
}

/// A predicate is replaced by at most this many values, if each of them satisfies this many predicates on average.
const MOST_POINTS: usize = 4;
const LEAST_SHARED: usize = 16;

impl PointsOfPredicates {
    pub(super) fn of(layout: &Layout, shapes: impl Iterator<Item = Shape>) -> Self {
        let (catalog, bits) = (&layout.catalog, layout.catalog.bits);
        let mut is_read_so = vec![true; bits as usize];
        is_read_so.first_mut().into_iter().for_each(|always| *always = false);
        for table in catalog.cut_tables.iter() {
            is_read_so[table.below as usize..(table.above + table.len) as usize].fill(false);
        }
        let mut offsets = vec![0u32; bits as usize + 2];
        for table in catalog.points.tables.iter() {
            for point in table.first_entry..table.first_entry + table.entries {
                for bit in catalog.points.bits_of(point) {
                    offsets[*bit as usize + 2] += 1;
                    // Elements of arrays are not told of as points.
                    is_read_so[*bit as usize] &= table.of_elements == 0;
                }
            }
        }
        (2..offsets.len()).for_each(|at| offsets[at] += offsets[at - 1]);
        let mut points = vec![0; catalog.points.bits.len()];
        for point in 0..catalog.points.keys.len() as u32 {
            for bit in catalog.points.bits_of(point) {
                let next = &mut offsets[*bit as usize + 1];
                points[*next as usize] = point;
                *next += 1;
            }
        }
        offsets.pop();
        let mut found = Self { bits, offsets, points, is_read_so };
        for bit in 0..bits {
            let of_bit = found.points_of(bit);
            let is_shared = || {
                let all: usize = of_bit.iter().map(|point| catalog.points.bits_of(*point).len()).sum();
                all >= LEAST_SHARED * of_bit.len()
            };
            let is_so = of_bit.len() == 1 || (2..=MOST_POINTS).contains(&of_bit.len()) && is_shared();
            found.is_read_so[bit as usize] &= is_so;
        }
        for shape in shapes {
            shape.for_each_leaf_that_is_one(|leaf| {
                if leaf.as_unit().is_none() && found.points_of(leaf.bit()).len() > 1 {
                    found.is_read_so[leaf.bit() as usize] = false;
                }
            });
        }
        found
    }

    pub(super) fn points_of(&self, bit: u32) -> &[u32] {
        &self.points[self.offsets[bit as usize] as usize..self.offsets[bit as usize + 1] as usize]
    }

    /// What is read in place of a leaf, if it is not itself.
    pub(super) fn in_place_of(&self, leaf: Leaf) -> Option<impl Iterator<Item = Leaf> + '_> {
        let bit =
            leaf.as_unit().is_none().then(|| leaf.bit()).filter(|bit| self.is_read_so[*bit as usize])?;
        let as_leaf = if leaf.is_clear() { Leaf::clear } else { Leaf::set };
        Some(self.points_of(bit).iter().map(move |point| as_leaf(self.bits + point)))
    }
}

/// The masks of predicates and points: those that are read have one.
pub(super) struct MasksOfPredicates<'a> {
    points: &'a PointsOfPredicates,
    /// By predicate, and then by point.
    is_read: Vec<bool>,
    pub(super) of: Vec<u32>,
    pub(super) count: u32,
}

impl<'a> MasksOfPredicates<'a> {
    pub(super) fn new(layout: &Layout, points: &'a PointsOfPredicates) -> Self {
        let all = layout.catalog.bits as usize + layout.catalog.points.keys.len();
        Self { points, is_read: vec![false; all.max(1)], of: vec![NO_MASK; all.max(1)], count: 0 }
    }

    pub(super) fn read(&mut self, leaf: Leaf) {
        if leaf.as_unit().is_none() {
            self.is_read[leaf.bit() as usize] = true;
        }
    }

    /// Numbers them. Those of a table of cuts follow one another, whether they are read or not.
    pub(super) fn number(&mut self, layout: &Layout) {
        let mut is_numbered = self.is_read.clone();
        is_numbered[TRUE_BIT as usize] = true;
        for table in layout.catalog.cut_tables.iter() {
            is_numbered[table.below as usize..(table.above + table.len) as usize].fill(true);
        }
        for (bit, _) in is_numbered.iter().enumerate().filter(|(_, is)| **is) {
            self.of[bit] = self.count;
            self.count += 1;
        }
        for (bit, is_so) in self.points.is_read_so.iter().enumerate() {
            if *is_so {
                self.of[bit] = IN_POINTS;
            }
        }
    }

    /// Whether they are read, by mask.
    pub(super) fn by_mask(&self) -> Vec<bool> {
        let masks = self.of.iter().zip(&self.is_read);
        let mut found = vec![false; self.count as usize];
        masks.filter(|(mask, _)| **mask < IN_POINTS).for_each(|(mask, is)| found[*mask as usize] = *is);
        found
    }

    /// The masks that are set for each point.
    pub(super) fn by_point(&self, layout: &Layout) -> (Vec<u32>, Vec<u32>) {
        let points = &layout.catalog.points;
        let (mut offsets, mut masks) = (vec![0], vec![]);
        for point in 0..points.keys.len() as u32 {
            let bits =
                std::iter::once(layout.catalog.bits + point).chain(points.bits_of(point).iter().copied());
            masks.extend(bits.map(|bit| self.of[bit as usize]).filter(|mask| *mask < IN_POINTS));
            offsets.push(masks.len() as u32);
        }
        (offsets, masks)
    }
}
