//! The plan of a segment for a device: every unit as code over masks, by level.
//!
//! The walk over candidates reaches a unit only when its access fires, so the code of a unit with a single
//! access omits what this access implies. A device evaluates every unit, so here the access is put back in
//! front of the code, as guards.

mod guards;
mod points;
mod programs;
mod shape;
mod values;

use super::Segment;
use super::layout::Layout;
use super::program::Leaf;
use crate::engine::device::{
    CODE_ALIGNMENT, DeviceError, DeviceResult, Level, MOST_TABLES, NO_MASK, Plan, PlannedUnit, RowNumbers,
    RunKind,
};
use guards::Guards;
use points::{MasksOfPredicates, PointsOfPredicates};
use shape::Shape;

/// Plans rows of a segment, and whatever they share with others. An error says what in it a device cannot evaluate.
pub fn device_plan(segment: &Segment, rows: &RowNumbers) -> DeviceResult<Plan> {
    let layout = &segment.layout;
    // Numbers of tables and events, and of masks and a bit, share a word.
    let predicates = u64::from(layout.catalog.bits) + layout.catalog.points.keys.len() as u64;
    let masks = predicates + u64::from(layout.units());
    if layout.catalog.cut_tables.len() >= MOST_TABLES || masks >= 1 << 30 {
        return Err(DeviceError::new("the index has more attributes or parts than a device can number"));
    }
    let guards = Guards::of(layout);
    let number_of_row = numbers_by_row(segment, rows);
    let rows_of = |unit: u32| {
        let numbers = layout.rows_of(unit).iter().map(|row| number_of_row[*row as usize]);
        numbers.filter(|number| *number != NOT_PLANNED)
    };
    let Wanted { is_wanted, is_read } = Wanted::of(layout, &guards, |unit| rows_of(unit).next().is_some());
    let level_of = levels(layout, &guards);
    let wanted = || (0..layout.units()).filter(|unit| is_wanted[*unit as usize]);
    let points = PointsOfPredicates::of(layout, wanted().map(|unit| Shape::of(layout, &guards, unit)));
    let shape_of = |unit: u32| {
        let mut shape = Shape::of(layout, &guards, unit);
        shape.read_points(&points);
        shape
    };
    let mut masks_of = MasksOfPredicates::new(layout, &points);
    let mut order: Vec<u32> = wanted().collect();
    // Neighbours of one kind and about one length, of which no thread waits long for another.
    order.sort_by_cached_key(|unit| {
        let shape = shape_of(*unit);
        let length = (shape.guards.len() + shape.leaves.len()).div_ceil(4);
        shape.guards.iter().chain(&shape.leaves).for_each(|leaf| masks_of.read(*leaf));
        (level_of[*unit as usize], shape.kind.run_kind(), shape.kind as u32, length)
    });
    programs::read(segment, rows, &points, &mut masks_of);
    masks_of.number(layout);

    let bits = masks_of.count;
    let mut mask_of_unit = vec![NO_MASK; layout.units() as usize];
    let mut masks = bits;
    for wanted in [true, false] {
        for unit in order.iter().filter(|unit| is_read[**unit as usize] == wanted) {
            mask_of_unit[*unit as usize] = masks;
            masks += 1;
        }
    }
    let shared_masks = bits + is_read.iter().filter(|read| **read).count() as u32;

    let mut plan = Plan {
        bits,
        is_read: masks_of.by_mask(),
        shared_masks,
        masks,
        mask_of_row: vec![0; rows.len()],
        by_priority: by_priority(segment, rows),
        relevance: programs::plan(segment, rows, &points, &masks_of)?,
        cut_tables: layout
            .catalog
            .cut_tables
            .iter()
            .map(|table| [table.below, table.above].map(|bit| masks_of.of[bit as usize]))
            .zip(layout.catalog.cut_tables.iter())
            .map(|([below, above], table)| [below, above, table.len])
            .collect(),
        ..Plan::default()
    };
    (plan.point_offsets, plan.point_masks) = masks_of.by_point(layout);
    let mut level = None;
    for unit in order {
        let shape = shape_of(unit);
        let (place, this) = (plan.units.len() as u32, Some(level_of[unit as usize]));
        if std::mem::replace(&mut level, this) != this {
            plan.levels.push(Level { first: place, ends: [place; RunKind::COUNT] });
        }
        if let Some(open) = plan.levels.last_mut() {
            open.ends[shape.kind.run_kind() as usize..].fill(place + 1);
        }
        let mask = mask_of_unit[unit as usize];
        plan.code.resize(plan.code.len().next_multiple_of(CODE_ALIGNMENT), 0);
        let code = u32::try_from(plan.code.len()).map_err(|_| {
            DeviceError::of_memory("the code of a segment is longer than a device can number")
        })?;
        let leaves = shape.write(&masks_of, &mask_of_unit, &mut plan.code)?;
        let mut held = 0;
        for number in rows_of(unit) {
            plan.mask_of_row[number as usize] = mask;
            held += 1;
        }
        plan.units.push(PlannedUnit { code, leaves, mask, rows: held });
    }
    plan.code.resize(plan.code.len().next_multiple_of(CODE_ALIGNMENT), 0);
    masks_of.of.truncate(layout.catalog.bits as usize);
    plan.mask_of_bit = masks_of.of;
    values::plan(&layout.catalog, &mut plan);
    Ok(plan)
}

const NOT_PLANNED: u32 = u32::MAX;

/// By row of the segment, its number in the plan.
fn numbers_by_row(segment: &Segment, rows: &RowNumbers) -> Vec<u32> {
    let mut numbers = vec![NOT_PLANNED; segment.len()];
    for (number, row) in (0..).zip(rows.iter()) {
        numbers[row as usize] = number;
    }
    numbers
}

/// Which units have to be evaluated, and which of them others read.
struct Wanted {
    is_wanted: Vec<bool>,
    is_read: Vec<bool>,
}

impl Wanted {
    fn of(layout: &Layout, guards: &Guards, has_rows: impl Fn(u32) -> bool) -> Self {
        let units = layout.units() as usize;
        let mut found = Self { is_wanted: vec![false; units], is_read: vec![false; units] };
        let mut open = vec![];
        for start in (0..layout.units()).filter(|unit| has_rows(*unit)) {
            open.push(start);
            while let Some(unit) = open.pop() {
                if std::mem::replace(&mut found.is_wanted[unit as usize], true) {
                    continue;
                }
                for read in units_read_by(layout, guards, unit) {
                    found.is_read[read as usize] = true;
                    open.push(read);
                }
            }
        }
        found
    }
}

/// The numbers of rows by falling priority; none if their own order is that.
pub fn by_priority(segment: &Segment, rows: &RowNumbers) -> Vec<u32> {
    let priorities = &segment.subscription_table.priorities;
    // -0.0 and 0.0 are one priority.
    let of = |number: u32| priorities[rows.row(number) as usize] + 0.0;
    if priorities.is_empty()
        || rows.iter().is_sorted_by(|a, b| priorities[*a as usize] >= priorities[*b as usize])
    {
        return vec![];
    }
    let mut numbers: Vec<u32> = (0..rows.len() as u32).collect();
    numbers.sort_by(|a, b| of(*b).total_cmp(&of(*a)));
    numbers
}

/// The leaves of a unit's code.
fn leaves_of(layout: &Layout, unit: u32) -> impl Iterator<Item = Leaf> + '_ {
    let (kind, code) = layout.code_of(unit);
    let (first, step) = kind.leaf_words();
    code.iter().skip(first).step_by(step).map(|word| Leaf(*word))
}

fn units_read_by<'a>(layout: &'a Layout, guards: &'a Guards, unit: u32) -> impl Iterator<Item = u32> + 'a {
    guards.guards_of(unit).chain(leaves_of(layout, unit)).filter_map(Leaf::as_unit)
}

/// One more than the highest level of what a unit reads.
fn levels(layout: &Layout, guards: &Guards) -> Vec<u32> {
    const UNKNOWN: u32 = u32::MAX;
    let mut level_of = vec![UNKNOWN; layout.units() as usize];
    let mut open = vec![];
    for start in 0..layout.units() {
        open.push(start);
        while let Some(&unit) = open.last() {
            if level_of[unit as usize] != UNKNOWN {
                open.pop();
                continue;
            }
            let before = open.len();
            let mut level = 0;
            for read in units_read_by(layout, guards, unit) {
                match level_of[read as usize] {
                    UNKNOWN => open.push(read),
                    known => level = level.max(known + 1),
                }
            }
            if open.len() == before {
                level_of[unit as usize] = level;
                open.pop();
            }
        }
    }
    level_of
}
