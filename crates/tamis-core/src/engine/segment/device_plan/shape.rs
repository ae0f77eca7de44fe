//! The code of one unit: its kind, and the encoding of its leaves.

use super::super::layout::Layout;
use super::super::program::{ACCEPT, CodeKind, Leaf, REJECT, THRESHOLD};
use super::guards::Guards;
use super::points::{MasksOfPredicates, PointsOfPredicates};
use crate::engine::device::{
    DeviceError, DeviceResult, MOST_IN_THRESHOLD, SAVE_NOTHING, SAVED, TAKE_ALWAYS, TAKE_LAST, TAKE_NEVER,
    UnitKind,
};

const KIND_SHIFT: u32 = 28;
const GUARDS_SHIFT: u32 = 26;
/// Leaves of a unit are numbered in the bits below.
const MOST_LEAVES: usize = 1 << GUARDS_SHIFT;

/// What the code of a unit is to be.
pub(super) struct Shape {
    pub(super) kind: UnitKind,
    pub(super) guards: Vec<Leaf>,
    pub(super) leaves: Vec<Leaf>,
    /// Where groups end, by leaf; guards are no part of it.
    ends: Vec<bool>,
    /// The steps of choices.
    steps: Vec<Step>,
    /// What a count is compared with.
    number: u32,
}

impl Shape {
    pub(super) fn of(layout: &Layout, guards: &Guards, unit: u32) -> Self {
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
    pub(super) fn for_each_leaf_that_is_one(&self, mut is_one: impl FnMut(Leaf)) {
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
    pub(super) fn read_points(&mut self, points: &PointsOfPredicates) {
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
    pub(super) fn write(
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
