//! Whether the rest of a path is true, once its access holds at an element.

use super::builder::PROVED;
use super::tree::{Key, ROOT};
use super::{ConditionId, OPAQUE, PathSet};
use crate::ast::Axis;
use crate::compiled::passes;
use crate::document::{NONE, Node};
use crate::evaluation::View;
use crate::parser::MAX_STEPS;

/// The steps of one path and its conditions, other than the access.
pub(super) struct Rest<'s> {
    set: &'s PathSet,
    keys: [Key; MAX_STEPS],
    steps: usize,
    access_step: usize,
    /// Step and condition, in turns.
    conditions: &'s [u32],
}

impl PathSet {
    pub(super) fn is_proved(&self, path: u32) -> bool {
        self.paths[path as usize].rest == PROVED
    }

    /// Whether a path whose access holds at an element, and whose skeleton leads there, is true.
    pub(super) fn verify(&self, path: u32, element: u32, view: &View<'_>) -> bool {
        let entry = self.paths[path as usize];
        let head = self.rests[entry.rest as usize];
        let start = entry.rest as usize + 1;
        let conditions = &self.rests[start..start + 2 * (head >> 8) as usize];
        let access_step = (head & 0xFF) as usize;
        // Conditions at the access come first to mind: they cost no search.
        let here = conditions.chunks_exact(2).filter(|pair| pair[0] as usize == access_step);
        for pair in here {
            if !self.condition_holds(pair[1], element, view) {
                return false;
            }
        }
        let mut rest =
            Rest { set: self, keys: [self.tree.key(ROOT); MAX_STEPS], steps: 0, access_step, conditions };
        let mut node = entry.node;
        while node != ROOT {
            rest.keys[rest.steps] = self.tree.key(node);
            rest.steps += 1;
            node = self.tree.parent(node);
        }
        rest.keys[..rest.steps].reverse();
        let above = conditions.chunks_exact(2).any(|pair| (pair[0] as usize) < access_step);
        (!above || rest.holds_above(element, view)) && rest.holds_below(element, view)
    }

    fn condition_holds(&self, condition: ConditionId, element: u32, view: &View<'_>) -> bool {
        if condition & OPAQUE != 0 {
            return view.holds(Node::Element(element), &self.opaque[(condition & !OPAQUE) as usize]);
        }
        let test = self.simple.test(condition);
        let subject = &self.subjects[self.simple.subject(condition) as usize];
        view.select(Node::Element(element), subject, &mut |node| test.holds(view.document.string_value(node)))
    }
}

impl Rest<'_> {
    fn conditions_hold(&self, step: usize, element: u32, view: &View<'_>) -> bool {
        let mut here = self.conditions.chunks_exact(2).filter(|pair| pair[0] as usize == step);
        here.all(|pair| self.set.condition_holds(pair[1], element, view))
    }

    /// Follows the steps from the root to the element of the access, with their conditions.
    fn holds_above(&self, element: u32, view: &View<'_>) -> bool {
        let mut chain = vec![];
        let mut at = view.document.elements[element as usize].parent;
        while at != NONE {
            chain.push(at);
            at = view.document.elements[at as usize].parent;
        }
        // A bit per step: taken to the last element, or to any element so far.
        let (mut to_last, mut to_any) = (0u64, 0u64);
        let may_take =
            |step: usize, is_root: bool, to_last: u64, to_any: u64| match (self.keys[step].axis(), step) {
                (Axis::Child, 0) => is_root,
                (Axis::Descendant, 0) => true,
                (Axis::Child, step) => to_last >> (step - 1) & 1 == 1,
                (Axis::Descendant, step) => to_any >> (step - 1) & 1 == 1,
            };
        for (depth, &ancestor) in chain.iter().rev().enumerate() {
            let labels = view.labels_of(ancestor);
            let mut taken = 0u64;
            for step in 0..self.access_step {
                if may_take(step, depth == 0, to_last, to_any)
                    && passes(self.keys[step].label(), labels)
                    && self.conditions_hold(step, ancestor, view)
                {
                    taken |= 1 << step;
                }
            }
            to_last = taken;
            to_any |= taken;
        }
        may_take(self.access_step, chain.is_empty(), to_last, to_any)
    }

    /// Follows the steps after the access, below its element.
    fn holds_below(&self, element: u32, view: &View<'_>) -> bool {
        if self.access_step + 1 == self.steps {
            return true;
        }
        let first = 1 << (self.access_step + 1);
        self.below(element, first, first, view)
    }

    fn below(&self, element: u32, here: u64, beneath: u64, view: &View<'_>) -> bool {
        for child in view.document.children(element) {
            let labels = view.labels_of(child);
            let (mut next, mut deeper) = (0u64, 0u64);
            let mut waiting = beneath;
            while waiting != 0 {
                let step = waiting.trailing_zeros() as usize;
                waiting &= waiting - 1;
                let key = self.keys[step];
                if key.axis() == Axis::Descendant {
                    deeper |= 1 << step;
                } else if here >> step & 1 == 0 {
                    continue;
                }
                if passes(key.label(), labels) && self.conditions_hold(step, child, view) {
                    if step + 1 == self.steps {
                        return true;
                    }
                    next |= 1 << (step + 1);
                }
            }
            if next | deeper != 0 && self.below(child, next, next | deeper, view) {
                return true;
            }
        }
        false
    }
}
