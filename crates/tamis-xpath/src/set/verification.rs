//! Verifies the rest of a path, once its access condition is true at an element.

use super::builder::PROVED;
use super::matching::Satisfied;
use super::tree::Key;
use super::{ConditionId, OPAQUE, PathSet};
use crate::ast::Axis;
use crate::compiled::passes;
use crate::document::{NONE, Node};
use crate::evaluation::View;

/// The header of a path's record: the step of its access, the number of steps and of other conditions, and whether one of these is
/// at a step before the access.
///
/// ```text
/// head | step, condition | step, condition | ... | keys of the steps: all if a condition lies before the access, else those after it
/// ```
#[derive(Clone, Copy)]
pub(super) struct Head(pub u32);

const ABOVE: u32 = 1 << 31;

impl Head {
    pub fn new(access_step: u32, steps: u32, conditions: usize, above: bool) -> Self {
        debug_assert!(conditions < 1 << 15, "a path is shorter than that");
        Self(access_step | steps << 8 | (conditions as u32) << 16 | if above { ABOVE } else { 0 })
    }

    pub fn access_step(self) -> usize {
        (self.0 & 0xFF) as usize
    }

    fn steps(self) -> usize {
        (self.0 >> 8 & 0xFF) as usize
    }

    fn is_about_steps_above(self) -> bool {
        self.0 & ABOVE != 0
    }

    /// The first step whose key is there.
    pub fn first_key(self) -> usize {
        if self.is_about_steps_above() { 0 } else { self.access_step() + 1 }
    }

    fn keys_at(self) -> usize {
        1 + 2 * ((self.0 & !ABOVE) >> 16) as usize
    }

    /// Of words that begin with the head: all that belong to the path.
    pub fn words(self, words: &[u32]) -> &[u32] {
        &words[..self.keys_at() + self.steps() - self.first_key()]
    }

    /// Steps and conditions, in turns.
    pub fn conditions(self, words: &[u32]) -> &[u32] {
        &words[1..self.keys_at()]
    }
}

/// A document that is being matched.
pub(super) struct Occasion<'a, 'v> {
    pub view: &'a View<'v>,
    /// What its elements satisfy, once that is known of all.
    pub satisfied: Option<&'a Satisfied>,
}

/// The steps of one path and its conditions, other than the access.
struct Rest<'s, 'v> {
    set: &'s PathSet,
    head: Head,
    words: &'s [u32],
    occasion: &'s Occasion<'s, 'v>,
}

impl PathSet {
    pub(super) fn is_proved(&self, path: u32) -> bool {
        self.paths[path as usize].rest == PROVED
    }

    /// Whether a path whose access holds at an element, and whose skeleton leads there, is true.
    pub(super) fn verify(&self, path: u32, element: u32, occasion: &Occasion<'_, '_>) -> bool {
        let start = self.paths[path as usize].rest as usize;
        let head = Head(self.rests[start]);
        let rest = Rest { set: self, head, words: &self.rests[start..], occasion };
        // Conditions at the access come first: they cost no search.
        rest.conditions_hold(head.access_step(), element)
            && (!head.is_about_steps_above() || rest.holds_above(element))
            && (head.access_step() + 1 == head.steps() || rest.holds_below(element))
    }

    fn condition_holds(&self, condition: ConditionId, element: u32, occasion: &Occasion<'_, '_>) -> bool {
        let view = occasion.view;
        if condition & OPAQUE != 0 {
            return view.holds(Node::Element(element), &self.opaque[(condition & !OPAQUE) as usize]);
        }
        if let Some(satisfied) = occasion.satisfied {
            return satisfied.by(element, condition);
        }
        let condition = self.lists.condition(condition);
        let test = self.simple.test(condition);
        let subject = &self.subjects[self.simple.subject(condition) as usize];
        let holds = |node: Node| test.holds(view.document.string_value(node));
        if test.is_of_first() {
            return view.first(Node::Element(element), subject).is_some_and(holds);
        }
        view.select(Node::Element(element), subject, &mut |node| holds(node))
    }
}

impl Rest<'_, '_> {
    fn key(&self, step: usize) -> Key {
        Key::from_word(self.words[self.head.keys_at() + step - self.head.first_key()])
    }

    fn conditions_hold(&self, step: usize, element: u32) -> bool {
        let mut here =
            self.head.conditions(self.words).chunks_exact(2).filter(|pair| pair[0] as usize == step);
        here.all(|pair| self.set.condition_holds(pair[1], element, self.occasion))
    }

    /// Follows the steps from the root to the element of the access, with their conditions.
    fn holds_above(&self, element: u32) -> bool {
        let view = self.occasion.view;
        let access_step = self.head.access_step();
        // From the element upwards.
        let mut chain = [0u32; 32];
        let mut depth = 0;
        let mut deeper = vec![];
        let mut at = view.document.elements[element as usize].parent;
        while at != NONE {
            match chain.get_mut(depth) {
                Some(place) => *place = at,
                None => deeper.push(at),
            }
            depth += 1;
            at = view.document.elements[at as usize].parent;
        }
        // A bit per step: taken to the last element, or to any element so far.
        let (mut to_last, mut to_any) = (0u64, 0u64);
        let may_take =
            |step: usize, is_root: bool, to_last: u64, to_any: u64| match (self.key(step).axis(), step) {
                (Axis::Child, 0) => is_root,
                (Axis::Descendant, 0) => true,
                (Axis::Child, step) => to_last >> (step - 1) & 1 == 1,
                (Axis::Descendant, step) => to_any >> (step - 1) & 1 == 1,
            };
        let chain = &chain[..depth.min(chain.len())];
        for (depth, &ancestor) in deeper.iter().rev().chain(chain.iter().rev()).enumerate() {
            let labels = view.labels_of(ancestor);
            let mut taken = 0u64;
            for step in 0..access_step {
                if may_take(step, depth == 0, to_last, to_any)
                    && passes(self.key(step).label(), labels)
                    && self.conditions_hold(step, ancestor)
                {
                    taken |= 1 << step;
                }
            }
            to_last = taken;
            to_any |= taken;
        }
        may_take(access_step, depth == 0, to_last, to_any)
    }

    /// Follows the steps after the access, below its element.
    fn holds_below(&self, element: u32) -> bool {
        let first = 1 << (self.head.access_step() + 1);
        self.below(element, first, first)
    }

    fn below(&self, element: u32, here: u64, beneath: u64) -> bool {
        let view = self.occasion.view;
        for child in view.document.children(element) {
            let labels = view.labels_of(child);
            let (mut next, mut deeper) = (0u64, 0u64);
            let mut waiting = beneath;
            while waiting != 0 {
                let step = waiting.trailing_zeros() as usize;
                waiting &= waiting - 1;
                let key = self.key(step);
                if key.axis() == Axis::Descendant {
                    deeper |= 1 << step;
                } else if here >> step & 1 == 0 {
                    continue;
                }
                if passes(key.label(), labels) && self.conditions_hold(step, child) {
                    if step + 1 == self.head.steps() {
                        return true;
                    }
                    next |= 1 << (step + 1);
                }
            }
            if next | deeper != 0 && self.below(child, next, next | deeper) {
                return true;
            }
        }
        false
    }
}
