//! The plan of a segment for a device: every unit as code over masks, by level.
//!
//! The walk over candidates looks at a unit only when its access fires, so the code of a unit with a single way in leaves
//! out what that way implies. A device evaluates every unit, so here the access comes back in front of the code, as guards.

use super::Segment;
use super::layout::{ACCEPTS, Layout};
use super::program::{ACCEPT, CodeKind, Leaf, REJECT, THRESHOLD};
use crate::engine::device::{
    DEVICE_WIDTH, DeviceError, DeviceResult, NO_MASK, Plan, PlannedUnit, SAVE_NOTHING, SAVED, TAKE_ALWAYS,
    TAKE_LAST, TAKE_NEVER, UnitKind, UnitRun,
};
use crate::predicate::catalog::{Catalog, TRUE_BIT};
use crate::predicate::cuts::CutTable;
use crate::predicate::interval_tree::NONE;

const ALWAYS: Leaf = Leaf(TRUE_BIT << 1);
const KIND_SHIFT: u32 = 28;
const MOST_TABLES: usize = (1 << 32) / DEVICE_WIDTH;

/// Plans a segment. An error says what in it a device cannot evaluate.
pub fn device_plan(segment: &Segment) -> DeviceResult<Plan> {
    let layout = &segment.layout;
    // Numbers of tables and events, and of masks and a bit, share a word.
    let masks = u64::from(layout.catalog.bits) + u64::from(layout.units());
    if layout.catalog.cut_tables.len() >= MOST_TABLES || masks >= 1 << 31 {
        return Err(DeviceError("the index has more attributes or parts than a device can number".into()));
    }
    let guards = Guards::of(layout);
    let is_read = units_that_are_read(layout, &guards);
    let has_rows = |unit: u32| !layout.rows_of(unit).is_empty();
    let level_of = levels(layout, &guards);
    let mut order: Vec<u32> =
        (0..layout.units()).filter(|unit| is_read[*unit as usize] || has_rows(*unit)).collect();
    let is_flat = |unit: u32| guards.suffice(unit) || is_flat(layout, &guards, unit);
    order.sort_by_cached_key(|unit| (level_of[*unit as usize], !is_flat(*unit)));

    let bits = layout.catalog.bits.max(1);
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
        shared_masks,
        masks,
        mask_of_row: vec![0; segment.len()],
        by_priority: by_priority(&segment.subscription_table.priorities),
        point_offsets: layout.catalog.points.bit_off.to_vec(),
        point_bits: layout.catalog.points.bits.to_vec(),
        cut_tables: layout
            .catalog
            .cut_tables
            .iter()
            .map(|table| [table.below, table.above, table.len])
            .collect(),
        ..Plan::default()
    };
    let mut run = None;
    for unit in order {
        let this = (level_of[unit as usize], is_flat(unit));
        if let Some((_, is_flat)) = run.replace(this).filter(|last| *last != this) {
            plan.runs.push(UnitRun { end: plan.units.len() as u32, is_flat });
        }
        let mask = mask_of_unit[unit as usize];
        let code = plan.code.len() as u32;
        let writer = CodeWriter { masks: &mask_of_unit, code: &mut plan.code };
        let (kind, leaves) = writer.write(layout, &guards, unit)?;
        let rows = layout.rows_of(unit);
        rows.iter().for_each(|row| plan.mask_of_row[*row as usize] = mask);
        let leaves = leaves | (kind as u32) << KIND_SHIFT;
        plan.units.push(PlannedUnit { code, leaves, mask, rows: rows.len() as u32 });
    }
    plan.runs.extend(run.map(|(_, is_flat)| UnitRun { end: plan.units.len() as u32, is_flat }));
    Ok(plan)
}

/// Whether a unit is all leaves or any leaf.
fn is_flat(layout: &Layout, guards: &Guards, unit: u32) -> bool {
    match layout.code_of(unit).0 {
        CodeKind::Conjunction => true,
        CodeKind::Disjunction => guards.guards_of(unit).next().is_none(),
        CodeKind::Jumps | CodeKind::Count => false,
    }
}

/// Rows by falling priority; empty if their own order is that.
fn by_priority(priorities: &[f64]) -> Vec<u32> {
    if priorities.is_sorted_by(|a, b| a >= b) {
        return vec![];
    }
    let mut rows: Vec<u32> = (0..priorities.len() as u32).collect();
    // -0.0 and 0.0 are one priority.
    rows.sort_by(|a, b| (priorities[*b as usize] + 0.0).total_cmp(&(priorities[*a as usize] + 0.0)));
    rows
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

fn units_that_are_read(layout: &Layout, guards: &Guards) -> Vec<bool> {
    let mut is_read = vec![false; layout.units() as usize];
    for unit in 0..layout.units() {
        units_read_by(layout, guards, unit).for_each(|read| is_read[read as usize] = true);
    }
    is_read
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

/// Writes the code of units over masks.
struct CodeWriter<'a> {
    masks: &'a [u32],
    code: &'a mut Vec<u32>,
}

impl CodeWriter<'_> {
    /// Appends the code of a unit. Returns how it is read, and the number of leaves.
    fn write(mut self, layout: &Layout, guards: &Guards, unit: u32) -> DeviceResult<(UnitKind, u32)> {
        let first = self.code.len();
        let (kind, code) = layout.code_of(unit);
        let guard_words: Vec<u32> = guards.guards_of(unit).map(|leaf| self.word(leaf)).collect();
        if guards.suffice(unit) {
            self.code.extend(&guard_words);
            return Ok((UnitKind::All, guard_words.len() as u32));
        }
        Ok(match kind {
            CodeKind::Conjunction => {
                self.code.extend(&guard_words);
                self.leaves(code);
                (UnitKind::All, (self.code.len() - first) as u32)
            }
            CodeKind::Disjunction if guard_words.is_empty() => {
                self.leaves(code);
                (UnitKind::Any, code.len() as u32)
            }
            CodeKind::Disjunction => {
                let steps: Vec<Step> = code
                    .iter()
                    .enumerate()
                    .map(|(at, word)| Step { leaf: Leaf(*word), on_true: ACCEPT, on_false: at as u32 + 1 })
                    .collect();
                self.choices(&guard_words, &steps, REJECT)?
            }
            CodeKind::Jumps => {
                let steps: Vec<Step> = code
                    .as_chunks()
                    .0
                    .iter()
                    .enumerate()
                    .map(|(at, &[leaf, jump])| {
                        let (next, target) = (at as u32 + 1, jump >> 1);
                        let (on_true, on_false) = if jump & 1 == 1 { (next, target) } else { (target, next) };
                        Step { leaf: Leaf(leaf), on_true, on_false }
                    })
                    .collect();
                self.choices(&guard_words, &steps, ACCEPT)?
            }
            CodeKind::Count if code[0] >= THRESHOLD => {
                self.code.push(code[0] - THRESHOLD);
                self.leaves(&code[1..]);
                (UnitKind::Threshold, code.len() as u32 - 1)
            }
            CodeKind::Count => {
                self.code.push(code[0]);
                self.leaves(&code[1..]);
                (UnitKind::Parity, code.len() as u32 - 1)
            }
        })
    }

    fn word(&self, leaf: Leaf) -> u32 {
        match leaf.as_unit() {
            Some(unit) => self.masks[unit as usize] << 1,
            None => leaf.0,
        }
    }

    fn leaves(&mut self, leaves: &[u32]) {
        for leaf in leaves {
            let word = self.word(Leaf(*leaf));
            self.code.push(word);
        }
    }

    /// Steps that go forward, from the last to the first: what a step comes to depends on later ones alone. What is needed
    /// again is saved, and a place is free when nobody needs it any more. `behind` is what the end of the code comes to.
    fn choices(&mut self, guards: &[u32], steps: &[Step], behind: u32) -> DeviceResult<(UnitKind, u32)> {
        self.code.push(guards.len() as u32);
        self.code.extend(guards);
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
                to if to == end && behind == ACCEPT => TAKE_ALWAYS,
                to if to == end => TAKE_NEVER,
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
                    DeviceError(format!(
                        "an expression nests more than {SAVED} alternatives, which a device does not evaluate"
                    ))
                })?;
            }
            let word = self.word(step.leaf);
            self.code.extend([word, on_true | on_false << 8 | saved_at[at as usize] << 16]);
        }
        Ok((UnitKind::Choices, end))
    }
}

/// A test, and where it leads.
struct Step {
    leaf: Leaf,
    on_true: u32,
    on_false: u32,
}
