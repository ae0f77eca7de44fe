//! Finds subscriptions that share parts of their expressions.
//!
//! Sharing happens within a segment. So the neighbours of a subscription are those in the same segment that have the same
//! unit, or whose code uses a unit that its code uses.

use super::view::View;
use crate::engine::contract::Location;
use crate::engine::segment::layout::Layout;
use crate::engine::segment::program::Leaf;

/// The living rows of the same segment that share code with a row, in the order of their ids.
pub fn neighbours(view: &View, part: u32, row: u32) -> Vec<Location> {
    let held = &view.parts[part as usize];
    let layout = &held.segment.layout;
    let Some(own) = (0..layout.units()).find(|unit| layout.rows_of(*unit).contains(&row)) else {
        return vec![];
    };
    let mut shared = vec![false; layout.units() as usize];
    mark_asked(layout, own, &mut shared);
    shared[own as usize] = true;
    let mut rows: Vec<u32> = (0..layout.units())
        .filter(|unit| shared[*unit as usize] || asked_by(layout, *unit).any(|asked| shared[asked as usize]))
        .flat_map(|unit| layout.rows_of(unit))
        .copied()
        .filter(|other| *other != row && !held.tombstones.is_removed(*other, view.generation))
        .collect();
    rows.sort_unstable();
    rows.into_iter().map(|row| Location::Row { part, row }).collect()
}

/// The units that the code of one asks for.
fn asked_by(layout: &Layout, unit: u32) -> impl Iterator<Item = u32> + '_ {
    let (kind, code) = layout.code_of(unit);
    let (first, step) = kind.leaf_words();
    code.iter().skip(first).step_by(step).filter_map(|word| Leaf(*word).as_unit())
}

fn mark_asked(layout: &Layout, unit: u32, marked: &mut [bool]) {
    for asked in asked_by(layout, unit) {
        if !std::mem::replace(&mut marked[asked as usize], true) {
            mark_asked(layout, asked, marked);
        }
    }
}
