//! The plan of a segment for a device: every unit as code over masks, by level.
//!
//! The walk over candidates looks at a unit only when its access fires, so the code of a unit with a single way in leaves
//! out what that way implies. A device evaluates every unit, so here the access comes back in front of the code, as guards.

use super::Segment;
use super::layout::{ACCEPTS, Layout};
use super::program::{ACCEPT, CodeKind, Leaf, REJECT, THRESHOLD};
use crate::engine::device::{
    DEVICE_WIDTH, DeviceError, DeviceResult, IN_POINTS, MOST_IN_THRESHOLD, NO_MASK, Plan, PlannedUnit,
    RowNumbers, SAVE_NOTHING, SAVED, TAKE_ALWAYS, TAKE_LAST, TAKE_NEVER, UnitKind, UnitRun,
};
use crate::predicate::catalog::{Catalog, TRUE_BIT};
use crate::predicate::interval_tree::NONE;
use crate::predicate::ranges::CutTable;

const ALWAYS: Leaf = Leaf(TRUE_BIT << 1);
const KIND_SHIFT: u32 = 28;
const GUARDS_SHIFT: u32 = 26;
/// Leaves of a unit are numbered in the bits below.
const MOST_LEAVES: usize = 1 << GUARDS_SHIFT;
const MOST_TABLES: usize = (1 << 32) / DEVICE_WIDTH;

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
    let mut run = None;
    for unit in order {
        let shape = shape_of(unit);
        let this = (level_of[unit as usize], shape.kind.run_kind());
        if let Some((_, kind)) = run.replace(this).filter(|last| *last != this) {
            plan.runs.push(UnitRun { end: plan.units.len() as u32, kind });
        }
        let mask = mask_of_unit[unit as usize];
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
    plan.runs.extend(run.map(|(_, kind)| UnitRun { end: plan.units.len() as u32, kind }));
    masks_of.of.truncate(layout.catalog.bits as usize);
    plan.mask_of_bit = masks_of.of;
    Ok(plan)
}

/// Predicates that hold for a few values (`=`, short `IN`) have no mask of their own if that can be: whoever reads them reads the
/// masks of these values. A value may satisfy hundreds of them, and setting a bit in each of their masks takes longer
/// than reading a few more leaves.
///
/// The points of a catalog are numbered behind its predicates here: leaf `bits + point` is the mask of a point.
struct PointsOfPredicates {
    /// The first of them.
    bits: u32,
    /// Where the points of each predicate begin.
    offsets: Vec<u32>,
    points: Vec<u32>,
    /// By predicate, whether its points are read in its place.
    is_read_so: Vec<bool>,
}

/// So many values are read in place of a predicate, if they satisfy so many others each on average.
const MOST_POINTS: usize = 4;
const LEAST_SHARED: usize = 16;

impl PointsOfPredicates {
    fn of(layout: &Layout, shapes: impl Iterator<Item = Shape>) -> Self {
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

    fn points_of(&self, bit: u32) -> &[u32] {
        &self.points[self.offsets[bit as usize] as usize..self.offsets[bit as usize + 1] as usize]
    }

    /// What is read in place of a leaf, if it is not itself.
    fn in_place_of(&self, leaf: Leaf) -> Option<impl Iterator<Item = Leaf> + '_> {
        let bit =
            leaf.as_unit().is_none().then(|| leaf.bit()).filter(|bit| self.is_read_so[*bit as usize])?;
        let as_leaf = if leaf.is_clear() { Leaf::clear } else { Leaf::set };
        Some(self.points_of(bit).iter().map(move |point| as_leaf(self.bits + point)))
    }
}

/// The masks of predicates and points: those that are read have one.
struct MasksOfPredicates<'a> {
    points: &'a PointsOfPredicates,
    /// By predicate, and then by point.
    is_read: Vec<bool>,
    of: Vec<u32>,
    count: u32,
}

impl<'a> MasksOfPredicates<'a> {
    fn new(layout: &Layout, points: &'a PointsOfPredicates) -> Self {
        let all = layout.catalog.bits as usize + layout.catalog.points.keys.len();
        Self { points, is_read: vec![false; all.max(1)], of: vec![NO_MASK; all.max(1)], count: 0 }
    }

    fn read(&mut self, leaf: Leaf) {
        if leaf.as_unit().is_none() {
            self.is_read[leaf.bit() as usize] = true;
        }
    }

    /// Numbers them. Those of a table of cuts follow one another, whether they are read or not.
    fn number(&mut self, layout: &Layout) {
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
    fn by_mask(&self) -> Vec<bool> {
        let masks = self.of.iter().zip(&self.is_read);
        let mut found = vec![false; self.count as usize];
        masks.filter(|(mask, _)| **mask < IN_POINTS).for_each(|(mask, is)| found[*mask as usize] = *is);
        found
    }

    /// The masks that are set for each point.
    fn by_point(&self, layout: &Layout) -> (Vec<u32>, Vec<u32>) {
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

/// The access of each unit that has but one: up to three leaves that hold whenever it is looked at.
struct Guards {
    of: Vec<[Leaf; 3]>,
    /// Whether the guards are all there is to it.
    suffice: Vec<bool>,
    /// Units from this number on have guards.
    first: u32,
}

impl Guards {
    fn of(layout: &Layout) -> Self {
        let first = layout.remembered;
        let guarded = layout.units().saturating_sub(first) as usize;
        let mut guards = Self { of: vec![[ALWAYS; 3]; guarded], suffice: vec![false; guarded], first };
        let intervals = intervals(&layout.catalog, layout.keys());
        for key in 0..layout.keys() {
            let leaves = match key.checked_sub(layout.catalog.bits) {
                None => [Leaf::set(key), ALWAYS],
                Some(interval) => intervals[interval as usize].map(Leaf::set),
            };
            guards.take(layout, layout.entries_of(key, key + 1), leaves);
        }
        for unit in 0..layout.remembered {
            guards.take(layout, layout.waiting_for(unit), [Leaf::unit(unit), ALWAYS]);
        }
        guards
    }

    fn take(&mut self, layout: &Layout, entries: std::ops::Range<usize>, [a, b]: [Leaf; 2]) {
        for [flagged, test] in &layout.entries[entries] {
            let unit = flagged & !ACCEPTS;
            if unit >= self.first {
                self.of[(unit - self.first) as usize] = [a, b, Leaf(*test)];
                self.suffice[(unit - self.first) as usize] = flagged & ACCEPTS != 0;
            }
        }
    }

    /// The guards of a unit that say anything.
    fn guards_of(&self, unit: u32) -> impl Iterator<Item = Leaf> + '_ {
        let known = unit.checked_sub(self.first).map(|at| self.of[at as usize]);
        known.into_iter().flatten().filter(|leaf| *leaf != ALWAYS)
    }

    /// Whether the code of a unit adds nothing to its guards.
    fn suffice(&self, unit: u32) -> bool {
        unit.checked_sub(self.first).is_some_and(|at| self.suffice[at as usize])
    }
}

/// Of each key of an interval, the bits of "above" its lower cut and "below" its higher one.
fn intervals(catalog: &Catalog, keys: u32) -> Vec<[u32; 2]> {
    let mut found = vec![[TRUE_BIT; 2]; (keys - catalog.bits.min(keys)) as usize];
    // A rank is inside from just above the lower cut to the higher one.
    let mut low_end = |table: &CutTable, key: u32, rank: u32| {
        found[(key - catalog.bits) as usize][0] = table.above + rank - 1;
    };
    let lists = &catalog.interval_lists;
    let pieces = |table: &CutTable| {
        let [first, count] = lists.tables[table.list as usize].map(|number| number as usize);
        (first..first + count).map(move |piece| (lists.starts[piece], piece))
    };
    let keys_of = |piece: usize| &lists.keys[lists.off[piece] as usize..lists.off[piece + 1] as usize];
    let listed = || catalog.cut_tables.iter().filter(|table| table.list != NONE);
    let in_trees = || {
        catalog.cut_tables.iter().filter(|table| table.list == NONE).flat_map(|table| {
            let mut nodes = vec![];
            let mut open = vec![table.tree];
            while let Some(at) = open.pop() {
                if at != NONE {
                    let node = catalog.interval_tree.nodes[at as usize];
                    open.extend([node.left, node.right]);
                    nodes.push((table, node));
                }
            }
            nodes
        })
    };
    // An interval is in consecutive pieces: it begins with the first of them, and ends where the one after the last begins.
    for table in listed() {
        for (start, piece) in pieces(table).rev() {
            keys_of(piece).iter().for_each(|key| low_end(table, *key, start));
        }
    }
    for (table, node) in in_trees() {
        for [low, key] in &catalog.interval_tree.by_low[node.first as usize..(node.first + node.len) as usize]
        {
            low_end(table, *key, *low);
        }
    }
    let mut high_end = |table: &CutTable, key: u32, rank: u32| {
        found[(key - catalog.bits) as usize][1] = table.below + rank;
    };
    for table in listed() {
        let ends: Vec<u32> = pieces(table).map(|(start, _)| start).collect();
        for (at, (_, piece)) in pieces(table).enumerate() {
            let end = ends.get(at + 1).map_or(0, |next| next - 1);
            keys_of(piece).iter().for_each(|key| high_end(table, *key, end));
        }
    }
    for (table, node) in in_trees() {
        for [high, key] in
            &catalog.interval_tree.by_high[node.first as usize..(node.first + node.len) as usize]
        {
            high_end(table, *key, *high);
        }
    }
    found
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

/// What the code of a unit is to be.
struct Shape {
    kind: UnitKind,
    guards: Vec<Leaf>,
    leaves: Vec<Leaf>,
    /// Where groups end, by leaf; guards are no part of it.
    ends: Vec<bool>,
    /// The steps of choices.
    steps: Vec<Step>,
    /// What a count is compared with.
    number: u32,
}

impl Shape {
    fn of(layout: &Layout, guards: &Guards, unit: u32) -> Self {
        let mut shape = Self {
            kind: UnitKind::All,
            guards: guards.guards_of(unit).collect(),
            leaves: vec![],
            ends: vec![],
            steps: vec![],
            number: 0,
        };
        if guards.suffice(unit) {
            shape.leaves.append(&mut shape.guards);
            return shape;
        }
        let (kind, code) = layout.code_of(unit);
        let as_leaves = |code: &[u32]| code.iter().map(|word| Leaf(*word)).collect::<Vec<_>>();
        match kind {
            CodeKind::Conjunction => {
                shape.leaves.append(&mut shape.guards);
                shape.leaves.extend(as_leaves(code));
            }
            CodeKind::Disjunction => {
                shape.leaves = as_leaves(code);
                if shape.guards.is_empty() {
                    shape.kind = UnitKind::Any;
                } else {
                    shape.kind = UnitKind::AnyOfAll;
                    shape.ends = vec![true; code.len()];
                }
            }
            CodeKind::Jumps => shape.jumps(code),
            CodeKind::Count => {
                shape.guards.clear();
                shape.leaves = as_leaves(&code[1..]);
                (shape.kind, shape.number) = match code[0].checked_sub(THRESHOLD) {
                    Some(least) => (UnitKind::Threshold, least),
                    None => (UnitKind::Parity, code[0]),
                };
            }
        }
        shape
    }

    /// Steps that go forward; the end of the code accepts.
    fn jumps(&mut self, code: &[u32]) {
        let pairs = code.as_chunks().0;
        let end = pairs.len() as u32;
        let to = |target: u32| if target == end { ACCEPT } else { target };
        self.steps = (0..)
            .zip(pairs)
            .map(|(at, &[leaf, jump])| {
                let (next, target) = (to(at + 1), to(jump >> 1));
                let (on_true, on_false) = if jump & 1 == 1 { (next, target) } else { (target, next) };
                Step { leaf: Leaf(leaf), on_true, on_false }
            })
            .collect();
        let any_of_all = || ends_of_groups(&self.steps, |step| [step.on_true, step.on_false], ACCEPT, REJECT);
        let all_of_any = || ends_of_groups(&self.steps, |step| [step.on_false, step.on_true], REJECT, ACCEPT);
        (self.kind, self.ends) = if let Some(ends) = any_of_all() {
            (UnitKind::AnyOfAll, ends)
        } else if let Some(ends) = all_of_any() {
            (UnitKind::AllOfAny, ends)
        } else {
            (UnitKind::Choices, vec![])
        };
        self.leaves = self.steps.iter().map(|step| step.leaf).collect();
        if self.kind == UnitKind::Choices {
            self.leaves.reverse(); // the last one first
        } else {
            self.steps.clear();
        }
    }

    /// Calls `is_one` with each leaf that cannot be several in its place. All of a set of values fail where each fails; one of them
    /// holds where some leaf has to.
    fn for_each_leaf_that_is_one(&self, mut is_one: impl FnMut(Leaf)) {
        let mut first = 0;
        for (at, leaf) in self.leaves.iter().enumerate() {
            let is_alone = self.ends.get(at).is_some_and(|is_end| *is_end && first == at);
            if self.ends.get(at) == Some(&true) {
                first = at + 1;
            }
            let may_be_several = match self.kind {
                UnitKind::All => true,
                UnitKind::Any => !leaf.is_clear(),
                UnitKind::AllOfAny | UnitKind::AllOfSets => !leaf.is_clear() || is_alone,
                UnitKind::AnyOfAll => leaf.is_clear() || is_alone,
                UnitKind::Choices | UnitKind::Parity | UnitKind::Threshold => false,
            };
            if !may_be_several {
                is_one(*leaf);
            }
        }
        if self.kind != UnitKind::AllOfAny {
            self.guards.iter().for_each(|leaf| is_one(*leaf));
        }
    }

    /// Reads points in place of predicates.
    fn read_points(&mut self, points: &PointsOfPredicates) {
        let is_several =
            |leaf: &Leaf| points.in_place_of(*leaf).is_some_and(|mut found| found.nth(1).is_some());
        let is_some_of_several = |leaf: &Leaf| !leaf.is_clear() && is_several(leaf);
        if self.kind == UnitKind::All && self.leaves.iter().any(is_some_of_several) {
            self.kind = UnitKind::AllOfSets;
            self.ends = vec![true; self.leaves.len()];
        }
        if self.kind == UnitKind::AllOfAny && self.guards.iter().any(is_several) {
            self.ends.splice(0..0, self.guards.iter().map(|_| true));
            self.leaves.splice(0..0, self.guards.drain(..));
        }
        for guard in &mut self.guards {
            *guard = points.in_place_of(*guard).and_then(|mut found| found.next()).unwrap_or(*guard);
        }
        let (leaves, ends) = (std::mem::take(&mut self.leaves), std::mem::take(&mut self.ends));
        for (at, leaf) in leaves.into_iter().enumerate() {
            match points.in_place_of(leaf) {
                Some(found) => self.leaves.extend(found),
                None => self.leaves.push(leaf),
            }
            if let Some(is_end) = ends.get(at) {
                // Values that all have to be missing are groups of their own where each group has to hold, and so are values of
                // which one has to be there where one group has to.
                let are_groups = *is_end && (self.kind != UnitKind::AnyOfAll) == leaf.is_bit_clear();
                self.ends.resize(self.leaves.len() - 1, are_groups);
                self.ends.push(*is_end);
            }
        }
    }

    /// Appends the code. Returns the number of leaves, with that of the guards and the kind.
    fn write(
        &self,
        of_predicates: &MasksOfPredicates<'_>,
        masks: &[u32],
        code: &mut Vec<u32>,
    ) -> DeviceResult<u32> {
        let count = self.guards.len() + self.leaves.len();
        if count >= MOST_LEAVES || self.kind == UnitKind::Threshold && count >= MOST_IN_THRESHOLD {
            return Err(DeviceError::new(format!(
                "an expression has {count} parts in a row, more than a device evaluates"
            )));
        }
        code.extend(self.guards.iter().chain(&self.leaves).map(|leaf| match leaf.as_unit() {
            Some(unit) => masks[unit as usize] << 1,
            None => of_predicates.of[leaf.bit() as usize] << 1 | u32::from(leaf.is_clear()),
        }));
        match self.kind {
            UnitKind::All | UnitKind::Any => {}
            UnitKind::Parity | UnitKind::Threshold => code.push(self.number),
            UnitKind::AnyOfAll | UnitKind::AllOfAny | UnitKind::AllOfSets => {
                let first = code.len();
                code.resize(first + count.div_ceil(32), 0);
                for (at, _) in self.ends.iter().enumerate().filter(|(_, is_end)| **is_end) {
                    let bit = self.guards.len() + at;
                    code[first + bit / 32] |= 1 << (bit % 32);
                }
            }
            UnitKind::Choices => {
                code.extend(self.guards.iter().map(|_| 0));
                self.choices(code)?;
            }
        }
        Ok(count as u32 | (self.guards.len() as u32) << GUARDS_SHIFT | (self.kind as u32) << KIND_SHIFT)
    }

    /// From the last step to the first: what a step comes to depends on later ones alone. What is needed
    /// again is saved, and a place is free when nobody needs it any more.
    fn choices(&self, code: &mut Vec<u32>) -> DeviceResult<()> {
        let steps = &self.steps;
        let end = steps.len() as u32;
        // The first step that goes to each one, other than the one before it.
        let mut first_user = vec![u32::MAX; steps.len()];
        for (at, step) in (0..).zip(steps) {
            for to in [step.on_true, step.on_false] {
                if to < end && to != at + 1 {
                    let first = &mut first_user[to as usize];
                    *first = (*first).min(at);
                }
            }
        }
        let mut saved_at = vec![SAVE_NOTHING; steps.len()];
        let mut free: Vec<u32> = (0..SAVED).rev().collect();
        for at in (0..end).rev() {
            let step = &steps[at as usize];
            let take = |to: u32| match to {
                ACCEPT => TAKE_ALWAYS,
                REJECT => TAKE_NEVER,
                to if to == at + 1 => TAKE_LAST,
                to => saved_at[to as usize],
            };
            let (on_true, on_false) = (take(step.on_true), take(step.on_false));
            for to in [step.on_true, step.on_false] {
                if to < end && first_user[to as usize] == at {
                    first_user[to as usize] = u32::MAX;
                    free.push(saved_at[to as usize]);
                }
            }
            if first_user[at as usize] != u32::MAX {
                saved_at[at as usize] = free.pop().ok_or_else(|| {
                    DeviceError::new(format!(
                        "an expression nests more than {SAVED} alternatives, which a device does not evaluate"
                    ))
                })?;
            }
            code.push(on_true | on_false << 8 | saved_at[at as usize] << 16);
        }
        Ok(())
    }
}

/// A test, and where it leads.
struct Step {
    leaf: Leaf,
    on_true: u32,
    on_false: u32,
}

/// Whether steps are groups, one of which must hold as a whole; if so, which steps end one. `ways` says where a step leads if it
/// holds and if it fails; `done` is where the last step of a group leads if it holds, `none` where the last group leads if it fails.
fn ends_of_groups(
    steps: &[Step],
    ways: impl Fn(&Step) -> [u32; 2],
    done: u32,
    none: u32,
) -> Option<Vec<bool>> {
    let mut ends = vec![false; steps.len()];
    let mut first = 0;
    while first < steps.len() {
        let last = (first..steps.len()).find(|at| ways(&steps[*at])[0] == done)?;
        let next = if last + 1 == steps.len() { none } else { last as u32 + 1 };
        let are_all = (first..=last).all(|at| {
            let [holds, fails] = ways(&steps[at]);
            fails == next && (at == last || holds == at as u32 + 1)
        });
        if !are_all {
            return None;
        }
        ends[last] = true;
        first = last + 1;
    }
    Some(ends)
}
