//! The c-directory of BE*-Tree (Sadoghi and Jacobsen 2012): buckets are as large as their contents.
//!
//! A bucket that overflows is split into a left and a right side that never meet, and keeps the intervals that
//! span both (see `split.rs`). Buckets are minimum bounding boxes, so an event enters only those that contain its value:
//!
//! ```text
//! bucket [0, 90]         home of [20, 80]
//!   left  [0, 31]        three conjunctions
//!   right [70, 90]       three conjunctions; nothing is kept for 32 to 69
//! ```
//!
//! - *Top-down*: a conjunction goes to the side it meets, or else to the side that grows less. If it meets both
//!   sides, or would make a divided side grow by more than β, this bucket is its home.
//! - *Bottom-up*: if the whole directory would grow by more than β, it gets a new bucket above it.
//! - A box has one interval for each attribute on the path. The last is *active* and directs events; the others are
//!   *inactive*: with them, a removal recomputes the boxes above it along one path, without visiting others below.
//!
//! In the paper, a side can grow over conjunctions whose home is the bucket above; these are then no longer
//! in the smallest bucket that encloses them. Here a side does not grow that far: a conjunction that would
//! make it do so stays in the bucket above, too. Partitioned homes are not checked, because that would take a
//! search; they are corrected when they are merged.

use super::node::{Bounds, CNode, Directory, Path, Store, hull, rows};
use super::split::split;
use crate::span::{Span, number_at};
use tamis_core::event::TermId;

#[derive(Default)]
pub struct Boxes {
    home: CNode<Boxes>,
    /// Around what is at home here, and around everything.
    home_bounds: Option<Bounds>,
    bounds: Option<Bounds>,
    sides: Option<Box<[Boxes; 2]>>,
    size: usize,
    /// The most that one conjunction in the bucket weighs.
    most: f64,
}

fn active(bounds: &Option<Bounds>) -> Option<Span> {
    bounds.as_ref().map(|bounds| bounds.active)
}

fn union(a: Option<Bounds>, b: Option<Bounds>) -> Option<Bounds> {
    match (a, b) {
        (Some(a), Some(b)) => Some(hull(a, b)),
        (a, b) => a.or(b),
    }
}

fn length(span: Span) -> f64 {
    let length = number_at(span.high) - number_at(span.low);
    // Infinity less itself is no number.
    match span.is_point() {
        true => 0.0,
        false if length.is_nan() => f64::INFINITY,
        false => length,
    }
}

impl Boxes {
    /// Whether it was divided, by value or by attribute: what is here cannot simply be sorted again.
    fn is_divided(&self) -> bool {
        self.sides.is_some() || !self.home.partitions.is_empty()
    }

    /// Whether a divided bucket would grow by more than β. An open end is as long as can be, so that a bucket
    /// grows by it once.
    fn outgrows(&self, span: Span, store: &Store) -> bool {
        let Some(now) = active(&self.bounds) else { return false };
        let then = now.hull(span);
        self.is_divided() && then != now && length(then) > store.settings.max_growth * length(now)
    }

    /// The side of a split bucket that a span belongs to.
    fn side(&self, span: Span, attribute: TermId, store: &Store) -> Option<usize> {
        let sides = self.sides.as_ref()?;
        let [left, right] = [0, 1].map(|side| active(&sides[side].bounds));
        let meets = |side: Option<Span>| side.is_some_and(|side| side.overlaps(span));
        let side = match (left, right) {
            _ if meets(left) && meets(right) => return None,
            _ if meets(left) => 0,
            _ if meets(right) => 1,
            (Some(left), Some(right)) if left.high < span.low && span.high < right.low => {
                let hulls = [(left, left.hull(span)), (right, right.hull(span))];
                let [by_left, by_right] = hulls.map(|(now, then)| length(then) - length(now));
                (by_right < by_left) as usize
            }
            (Some(left), _) => (left.high < span.low) as usize,
            (None, Some(right)) => (right.high < span.low) as usize,
            (None, None) => {
                let home = active(&self.home_bounds)?;
                if home.overlaps(span) {
                    return None;
                }
                (home.high < span.low) as usize
            }
        };
        let now = active(&sides[side].bounds);
        let then = now.map_or(span, |now| now.hull(span));
        let hides = |row: &u32| then.encloses(store.span(*row, attribute));
        let grows_over_home =
            now != Some(then) && self.home.partitions.is_empty() && self.home.members.iter().any(hides);
        (!grows_over_home && !sides[side].outgrows(span, store)).then_some(side)
    }

    /// Bottom-up: puts a bucket above this one.
    fn wrap(&mut self, span: Span) {
        let inner = std::mem::take(self);
        (self.size, self.most) = (inner.size, inner.most);
        self.bounds = inner.bounds.clone();
        let now = active(&inner.bounds).expect("an empty bucket does not outgrow anything");
        let empty = Boxes::default();
        self.sides = Some(Box::new(if span.low < now.low { [empty, inner] } else { [inner, empty] }));
    }

    /// Divides the l-node of a bucket that has no sides yet; one of a single value is partitioned.
    fn divide(&mut self, path: &mut Path, store: &mut Store) {
        let at = *path.last().expect("a directory has an attribute");
        let is_atomic = active(&self.bounds).is_some_and(Span::is_point);
        if !is_atomic && self.home.partitions.is_empty() {
            let members = self.home.take_members();
            let spans: Vec<Span> = members.iter().map(|row| store.span(*row, at)).collect();
            let chosen = split(&spans, store.settings.min_share, store.settings.exhaustive_split);
            let mut rows = [vec![], vec![]];
            for (row, side) in members.into_iter().zip(chosen) {
                match side {
                    Some(side) => rows[side].push(row),
                    None => self.home.hold(row, path, store),
                }
            }
            self.sides = Some(Box::new(rows.map(|rows| Boxes::build(rows, path, store))));
            self.home_bounds = self.home.bounds(path, store);
        }
        self.home.partition(path, store);
    }

    /// Moves down what a side has grown over while the home was partitioned.
    fn relocate(&mut self, side: usize, path: &mut Path, store: &mut Store) {
        let Some(sides) = &mut self.sides else { return };
        let Some(around) = active(&sides[side].bounds) else { return };
        let at = *path.last().expect("a directory has an attribute");
        let is_enclosed = |row: &u32| around.encloses(store.span(*row, at));
        if !self.home.partitions.is_empty() || !self.home.members.iter().any(is_enclosed) {
            return;
        }
        for row in self.home.take_members() {
            if around.encloses(store.span(row, at)) {
                sides[side].insert(row, path, store);
            } else {
                self.home.hold(row, path, store);
            }
        }
        self.home_bounds = self.home.bounds(path, store);
    }
}

impl Directory for Boxes {
    const IS_RANKED: bool = true;

    fn build(rows: Vec<u32>, path: &mut Path, store: &mut Store) -> Self {
        let mut made = Self { size: rows.len(), ..Self::default() };
        rows.into_iter().for_each(|row| made.home.hold(row, path, store));
        made.home_bounds = made.home.bounds(path, store);
        made.bounds = made.home_bounds.clone();
        made.most = made.home.most();
        if made.home.is_overflowing(store) {
            made.divide(path, store);
        }
        made
    }

    fn size(&self) -> usize {
        self.size
    }

    fn most(&self) -> f64 {
        self.most
    }

    fn insert(&mut self, row: u32, path: &mut Path, store: &mut Store) {
        let attribute = *path.last().expect("a directory has an attribute");
        let span = store.span(row, attribute);
        if self.outgrows(span, store) {
            self.wrap(span);
        }
        self.size += 1;
        self.most = self.most.max(store.conjunction(row).total);
        let bounds = Some(store.bounds(row, path));
        self.bounds = union(self.bounds.take(), bounds.clone());
        if let Some(side) = self.side(span, attribute, store) {
            return self.sides.as_mut().expect("it has that side")[side].insert(row, path, store);
        }
        self.home_bounds = union(self.home_bounds.take(), bounds);
        if self.home.insert(row, path, store) {
            let is_atomic = active(&self.bounds).is_some_and(Span::is_point);
            if self.sides.is_some() || is_atomic || !self.home.partitions.is_empty() {
                self.home.partition_for(row, path, store);
            } else {
                self.divide(path, store);
            }
        }
    }

    fn remove(&mut self, row: u32, path: &mut Path, store: &mut Store) -> bool {
        let span = store.span(row, *path.last().expect("a directory has an attribute"));
        let mut was_here = false;
        for side in self.sides.iter_mut().flat_map(|sides| sides.iter_mut()) {
            let may_be = active(&side.bounds).is_some_and(|bounds| bounds.encloses(span));
            was_here = was_here || may_be && side.remove(row, path, store);
        }
        if !was_here {
            if !self.home.remove(row, path, store) {
                return false;
            }
            self.home_bounds = self.home.bounds(path, store);
            // A home that is no longer partitioned can be sorted out.
            (0..2).for_each(|side| self.relocate(side, path, store));
        }
        self.size -= 1;
        if self.size <= store.settings.capacity && self.is_divided() {
            let rows = rows(self);
            *self = Self { size: rows.len(), ..Self::default() };
            rows.into_iter().for_each(|row| self.home.hold(row, path, store));
            self.home_bounds = self.home.bounds(path, store);
        }
        if self.home.size() == 0
            && let Some(sides) = &mut self.sides
            && let Some(only) = (0..2).find(|side| sides[1 - side].size == 0)
        {
            *self = std::mem::take(&mut sides[only]);
        }
        let sides = self.sides.iter().flat_map(|sides| sides.iter());
        self.bounds = sides.map(|side| side.bounds.clone()).fold(self.home_bounds.clone(), union);
        let sides = self.sides.iter().flat_map(|sides| sides.iter());
        self.most = sides.map(|side| side.most).fold(self.home.most(), f64::max);
        true
    }

    fn reach<'a>(&'a self, span: Span, least_weight: f64, reach: &mut dyn FnMut(&'a CNode<Boxes>)) {
        let meets = |bounds: &Option<Bounds>| active(bounds).is_some_and(|bounds| bounds.overlaps(span));
        if self.most < least_weight || !meets(&self.bounds) {
            return;
        }
        if meets(&self.home_bounds) {
            reach(&self.home);
        }
        for side in self.sides.iter().flat_map(|sides| sides.iter()) {
            side.reach(span, least_weight, reach);
        }
    }

    fn for_each<'a>(&'a self, visit: &mut dyn FnMut(&'a CNode<Boxes>)) {
        visit(&self.home);
        self.sides.iter().flat_map(|sides| sides.iter()).for_each(|side| side.for_each(visit));
    }

    fn bounds(&self, _: &[TermId], _: &Store) -> Option<Bounds> {
        self.bounds.clone()
    }

    #[cfg(test)]
    fn assert_one_side(&self, point: Span) {
        let sides: Vec<&Boxes> = self.sides.iter().flat_map(|sides| sides.iter()).collect();
        let is_entered = |side: &&&Boxes| active(&side.bounds).is_some_and(|bounds| bounds.overlaps(point));
        assert!(sides.iter().filter(is_entered).count() <= 1, "a point enters at most one side");
        sides.into_iter().for_each(|side| side.assert_one_side(point));
    }

    #[cfg(test)]
    fn check(&self, path: &mut Path, store: &Store) {
        let capacity = store.settings.capacity;
        let at = *path.last().expect("a directory has an attribute");
        let minimum = |rows: Vec<u32>| rows.into_iter().map(|row| store.bounds(row, path)).reduce(hull);
        let mut at_home = vec![];
        self.home.collect(&mut at_home);
        assert_eq!(self.size, rows(self).len(), "sizes are counted");
        assert_eq!(self.bounds, minimum(rows(self)), "boxes are minimal");
        assert_eq!(self.home_bounds, minimum(at_home.clone()), "boxes are minimal at home");
        assert!(!self.is_divided() || self.size > capacity, "small buckets are merged");
        if let Some(sides) = &self.sides {
            let [left, right] = [0, 1].map(|side| active(&sides[side].bounds));
            if let (Some(left), Some(right)) = (left, right) {
                assert!(left.high < right.low, "the sides repel each other: a point meets at most one");
            }
            for row in at_home.into_iter().filter(|_| self.home.partitions.is_empty()) {
                let is_around =
                    |side: Option<Span>| side.is_some_and(|side| side.encloses(store.span(row, at)));
                assert!(!is_around(left) && !is_around(right), "row {row} is in the smallest bucket");
            }
            sides.iter().for_each(|side| side.check(path, store));
        } else {
            let is_atomic = active(&self.bounds).is_none_or(Span::is_point);
            assert!(
                is_atomic || self.home.partitions.is_empty(),
                "a bucket is split before it is partitioned"
            );
            assert!(is_atomic || self.size <= capacity, "an open bucket fits into its l-node");
        }
        self.home.check(path, store);
    }

    fn bytes(&self) -> usize {
        let of = |bounds: &Option<Bounds>| bounds.as_ref().map_or(0, |bounds| size_of_val(&*bounds.inactive));
        let sides = self.sides.iter().flat_map(|sides| sides.iter());
        self.home.bytes()
            + of(&self.bounds)
            + of(&self.home_bounds)
            + sides.map(|side| size_of::<Boxes>() + side.bytes()).sum::<usize>()
    }
}
