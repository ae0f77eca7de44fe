//! Finds subscriptions that share parts of their expressions.
//!
//! Sharing happens within a segment. So the neighbours of a subscription are those in the same segment that have the same
//! unit, or that need a unit that it needs.

use super::view::View;
use crate::engine::contract::Location;
use crate::engine::segment::layout::{ACCEPTS, Layout};
use crate::engine::segment::program::Leaf;

/// The living rows of the same segment that share code with a row, in the order of their ids.
pub fn neighbours(view: &View, part: u32, row: u32) -> Vec<Location> {
    let held = &view.parts[part as usize];
    let layout = &held.segment.layout;
    let Some(own) = (0..layout.units()).find(|unit| layout.rows_of(*unit).contains(&row)) else {
        return vec![];
    };
    let dependencies = UnitDependencies::of(layout);
    let mut shared = vec![false; layout.units() as usize];
    dependencies.mark(own, &mut shared);
    shared[own as usize] = true;
    let mut rows: Vec<u32> = (0..layout.units())
        .filter(|unit| {
            shared[*unit as usize] || dependencies.of_unit(*unit).any(|needed| shared[needed as usize])
        })
        .flat_map(|unit| layout.rows_of(unit))
        .copied()
        .filter(|other| *other != row && !held.tombstones.is_removed(*other, view.generation))
        .collect();
    rows.sort_unstable();
    rows.into_iter().map(|row| Location::Row { part, row }).collect()
}

/// Which units need which others: their code asks for them, or it leaves them out because the unit waits for them.
struct UnitDependencies<'a> {
    layout: &'a Layout,
    /// Pairs of a unit and one that it waits for, sorted.
    awaited: Vec<(u32, u32)>,
}

impl<'a> UnitDependencies<'a> {
    fn of(layout: &'a Layout) -> Self {
        let awaited = (0..layout.single_row).flat_map(|awaited| {
            let waiting = &layout.entries[layout.waiting_for(awaited)];
            waiting.iter().map(move |[flagged, _]| (flagged & !ACCEPTS, awaited))
        });
        let mut awaited: Vec<(u32, u32)> = awaited.collect();
        awaited.sort_unstable();
        Self { layout, awaited }
    }

    /// The units that one needs.
    fn of_unit(&self, unit: u32) -> impl Iterator<Item = u32> + '_ {
        let first = self.awaited.partition_point(|(waiting, _)| *waiting < unit);
        let awaited = self.awaited[first..].iter().take_while(move |(waiting, _)| *waiting == unit);
        self.layout.leaves_of(unit).filter_map(Leaf::as_unit).chain(awaited.map(|(_, awaited)| *awaited))
    }

    fn mark(&self, unit: u32, marked: &mut [bool]) {
        for needed in self.of_unit(unit) {
            if !std::mem::replace(&mut marked[needed as usize], true) {
                self.mark(needed, marked);
            }
        }
    }
}
