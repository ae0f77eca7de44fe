//! What makes a unit of a layout true, as a formula over the states of attributes.
//!
//! A unit that is reached in only one way does not test again what its access has established, so its formula is that of its
//! access entry and its code. Parts of a formula that look at one attribute only become one literal: a table of the states in
//! which it holds. So `x >= 3 AND x < 7 AND x != 5` is one literal.

use super::attributes::{AttributeStates, Attributes};
use crate::engine::segment::layout::{ACCEPTS, Layout};
use crate::engine::segment::program::{ACCEPT, CodeKind, EVEN, Leaf, ODD, REJECT, THRESHOLD};
use crate::predicate::catalog::TRUE_BIT;

/// A formula with more nodes than this is given up: shared subexpressions are written out.
const MOST_NODES: usize = 4096;

/// No more alternatives are written out for a parity or a threshold.
const MOST_ALTERNATIVES: usize = 16;

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Formula {
    True,
    False,
    Literal(Literal),
    And(Vec<Formula>),
    Or(Vec<Formula>),
}

/// A test of one attribute.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Literal {
    /// Its place in the catalog.
    pub attribute: u32,
    pub truth: Truth,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Truth {
    /// Whether it holds, by state.
    States(Vec<bool>),
    /// For attributes without states: of the keys that a value fires.
    Keys(KeyTest),
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum KeyTest {
    /// Whether a key fires, or whether it does not.
    Key(u32, bool),
    All(Vec<KeyTest>),
    Any(Vec<KeyTest>),
}

impl KeyTest {
    pub fn holds(&self, is_fired: &impl Fn(u32) -> bool) -> bool {
        match self {
            KeyTest::Key(key, wanted) => is_fired(*key) == *wanted,
            KeyTest::All(tests) => tests.iter().all(|test| test.holds(is_fired)),
            KeyTest::Any(tests) => tests.iter().any(|test| test.holds(is_fired)),
        }
    }
}

impl Literal {
    /// Both, or either, of two tests of the same attribute.
    fn join(self, other: Literal, all: bool) -> Literal {
        let truth = match (self.truth, other.truth) {
            (Truth::States(a), Truth::States(b)) => {
                let joined = a.iter().zip(&b).map(|(a, b)| if all { *a && *b } else { *a || *b });
                Truth::States(joined.collect())
            }
            (Truth::Keys(a), Truth::Keys(b)) => {
                let tests = vec![a, b];
                Truth::Keys(if all { KeyTest::All(tests) } else { KeyTest::Any(tests) })
            }
            _ => unreachable!("an attribute has states or not"),
        };
        Literal { attribute: self.attribute, truth }
    }

    /// In which share of the states it holds: a guess at how often.
    pub fn share(&self) -> f64 {
        match &self.truth {
            Truth::States(states) => {
                states.iter().filter(|holds| **holds).count() as f64 / states.len() as f64
            }
            Truth::Keys(_) => 0.3,
        }
    }

    /// The same of the states of values.
    pub fn share_of_present(&self) -> f64 {
        match &self.truth {
            Truth::States(states) => {
                states[1..].iter().filter(|holds| **holds).count() as f64 / (states.len() - 1).max(1) as f64
            }
            Truth::Keys(_) => 0.3,
        }
    }

    /// 1 if it holds without a value.
    pub fn share_of_absent(&self) -> f64 {
        match &self.truth {
            Truth::States(states) => states[0] as u32 as f64,
            Truth::Keys(_) => 0.0,
        }
    }
}

impl Formula {
    /// All or any of some parts.
    pub fn join(parts: Vec<Formula>, all: bool) -> Formula {
        let (neutral, decided) =
            if all { (Formula::True, Formula::False) } else { (Formula::False, Formula::True) };
        let (mut literals, mut others): (Vec<Literal>, Vec<Formula>) = (vec![], vec![]);
        let mut waiting = parts;
        waiting.reverse();
        while let Some(part) = waiting.pop() {
            match part {
                part if part == neutral => {}
                part if part == decided => return decided,
                Formula::And(parts) if all => waiting.extend(parts.into_iter().rev()),
                Formula::Or(parts) if !all => waiting.extend(parts.into_iter().rev()),
                Formula::Literal(literal) => {
                    match literals.iter().position(|known| known.attribute == literal.attribute) {
                        Some(at) => {
                            let known = literals.swap_remove(at);
                            literals.push(known.join(literal, all));
                        }
                        None => literals.push(literal),
                    }
                }
                other => others.push(other),
            }
        }
        let mut parts = vec![];
        for literal in literals {
            match literal.truth {
                Truth::States(ref states) if states.iter().all(|holds| *holds) => {
                    if !all {
                        return decided;
                    }
                }
                Truth::States(ref states) if states.iter().all(|holds| !holds) => {
                    if all {
                        return decided;
                    }
                }
                _ => parts.push(Formula::Literal(literal)),
            }
        }
        parts.extend(others);
        match parts.len() {
            0 => neutral,
            1 => parts.remove(0),
            _ if all => Formula::And(parts),
            _ => Formula::Or(parts),
        }
    }
}

impl Formula {
    /// Its literals, if all of them must hold.
    pub fn as_conjunction(&self) -> Option<Vec<&Literal>> {
        let Formula::And(parts) = self else { return None };
        let literals = parts.iter().map(|part| match part {
            Formula::Literal(literal) => Some(literal),
            _ => None,
        });
        literals.collect()
    }

    /// How many literals it has.
    pub fn literals(&self) -> usize {
        match self {
            Formula::True | Formula::False => 0,
            Formula::Literal(_) => 1,
            Formula::And(parts) | Formula::Or(parts) => parts.iter().map(Formula::literals).sum(),
        }
    }
}

/// Reads formulas of units from a layout.
pub(super) struct Formulas<'a> {
    layout: &'a Layout,
    attributes: &'a Attributes,
    /// By unit, less those that are remembered: the access entry that leads to it.
    access: Vec<Option<(Reached, Leaf)>>,
    nodes: usize,
}

/// Part of a tree that is written as jumps, and where it leads.
struct Block {
    /// Its first leaf.
    at: u32,
    formula: Formula,
    if_true: u32,
    if_false: u32,
}

impl Block {
    /// Whether it and the next are all, or any, of one part: then both lead to the same place if that fails, or holds.
    fn joins(&self, next: &Block) -> Option<bool> {
        if self.if_true == next.at && self.if_false == next.if_false {
            return Some(true);
        }
        (self.if_false == next.at && self.if_true == next.if_true).then_some(false)
    }
}

/// What leads to an access entry.
#[derive(Clone, Copy)]
enum Reached {
    Key(u32),
    Unit(u32),
}

impl<'a> Formulas<'a> {
    pub fn new(layout: &'a Layout, attributes: &'a Attributes) -> Self {
        let mut access = vec![None; (layout.units() - layout.remembered) as usize];
        let by_key = (0..layout.keys()).map(|key| (Reached::Key(key), layout.entries_of(key, key + 1)));
        let by_unit = (0..layout.single_row).map(|unit| (Reached::Unit(unit), layout.waiting_for(unit)));
        for (reached, entries) in by_key.chain(by_unit) {
            for [unit, test] in &layout.entries[entries] {
                if let Some(place) = (unit & !ACCEPTS).checked_sub(layout.remembered) {
                    access[place as usize] = Some((reached, Leaf(*test)));
                }
            }
        }
        Self { layout, attributes, access, nodes: 0 }
    }

    /// What makes a unit true; `None` if that is too long.
    pub fn of_unit(&mut self, unit: u32) -> Option<Formula> {
        self.nodes = 0;
        self.unit(unit)
    }

    fn unit(&mut self, unit: u32) -> Option<Formula> {
        self.nodes += 1;
        if self.nodes > MOST_NODES {
            return None;
        }
        let code = self.code(unit)?;
        let Some(place) = unit.checked_sub(self.layout.remembered) else { return Some(code) };
        // A unit that nothing leads to is never true.
        let Some((reached, test)) = self.access[place as usize] else { return Some(Formula::False) };
        let reached = match reached {
            Reached::Key(key) => self.key(key, true)?,
            Reached::Unit(unit) => self.unit(unit)?,
        };
        Some(Formula::join(vec![reached, self.leaf(test)?, code], true))
    }

    fn code(&mut self, unit: u32) -> Option<Formula> {
        let layout = self.layout;
        let (kind, code) = layout.code_of(unit);
        match kind {
            CodeKind::Conjunction => Some(Formula::join(self.leaves(code)?, true)),
            CodeKind::Disjunction => Some(Formula::join(self.leaves(code)?, false)),
            CodeKind::Jumps => self.follow(code.as_chunks().0),
            CodeKind::Count => {
                let leaves = self.leaves(&code[1..])?;
                match code[0] {
                    parity @ (EVEN | ODD) => odd_or_even(leaves, parity == ODD),
                    least => at_least((least - THRESHOLD) as usize, &leaves),
                }
            }
        }
    }

    fn leaves(&mut self, leaves: &[u32]) -> Option<Vec<Formula>> {
        leaves.iter().map(|leaf| self.leaf(Leaf(*leaf))).collect()
    }

    /// The tree of AND and OR whose leaves are written as jumps: two neighbours become one where the second is reached from the
    /// first only, and both give up to the same place.
    ///
    /// ```text
    /// a  true → b, false → x          a AND b  true → y, false → x
    /// b  true → y, false → x
    /// ```
    fn follow(&mut self, steps: &[[u32; 2]]) -> Option<Formula> {
        let end = steps.len() as u32;
        let target = |place: u32| if place == end { ACCEPT } else { place };
        let mut blocks: Vec<Block> = vec![];
        for (at, &[leaf, jump]) in (0..).zip(steps) {
            let (next, other) = (target(at + 1), target(jump >> 1));
            let (if_true, if_false) = if jump & 1 == 1 { (next, other) } else { (other, next) };
            blocks.push(Block { at, formula: self.leaf(Leaf(leaf))?, if_true, if_false });
            // What ends here may complete what began before.
            while let [.., first, second] = &blocks[..]
                && let Some(all) = first.joins(second)
                && !steps[..first.at as usize].iter().any(|[_, jump]| target(jump >> 1) == second.at)
            {
                let (Some(second), Some(first)) = (blocks.pop(), blocks.pop()) else { return None };
                let formula = Formula::join(vec![first.formula, second.formula], all);
                blocks.push(Block { at: first.at, formula, ..second });
            }
        }
        match &mut blocks[..] {
            [whole] if (whole.if_true, whole.if_false) == (ACCEPT, REJECT) => {
                Some(std::mem::replace(&mut whole.formula, Formula::True))
            }
            _ => None,
        }
    }

    fn leaf(&mut self, leaf: Leaf) -> Option<Formula> {
        match leaf.as_unit() {
            Some(unit) => self.unit(unit),
            None => self.key(leaf.bit(), !leaf.is_clear()),
        }
    }

    /// That a key fires, or that it does not.
    fn key(&mut self, key: u32, wanted: bool) -> Option<Formula> {
        self.nodes += 1;
        if key == TRUE_BIT {
            return Some(if wanted { Formula::True } else { Formula::False });
        }
        let Some(attribute) = self.attributes.of_key(key) else {
            // Nothing fires it.
            return Some(if wanted { Formula::False } else { Formula::True });
        };
        let truth = match &self.attributes.all[attribute as usize] {
            AttributeStates::Listed(states, states_of_keys) => {
                let mut truth = vec![!wanted; states.fired.len()];
                let firing = states_of_keys.get(&key).map_or(&[][..], |states| states);
                firing.iter().for_each(|state| truth[*state as usize] = wanted);
                Truth::States(truth)
            }
            AttributeStates::Unlisted => Truth::Keys(KeyTest::Key(key, wanted)),
        };
        Some(Formula::join(vec![Formula::Literal(Literal { attribute, truth })], true))
    }
}

fn size(formula: &Formula) -> usize {
    match formula {
        Formula::And(parts) | Formula::Or(parts) => parts.iter().map(size).sum::<usize>() + 1,
        _ => 1,
    }
}

/// That an odd or even number of children is true, where each child comes as "true" and "false".
fn odd_or_even(leaves: Vec<Formula>, odd: bool) -> Option<Formula> {
    if 1 << (leaves.len() / 2) > MOST_ALTERNATIVES {
        return None;
    }
    let (mut even, mut odd_so_far) = (Formula::True, Formula::False);
    for pair in leaves.chunks_exact(2) {
        let [t, f] = pair else { unreachable!("children come in pairs") };
        let both = |a: &Formula, b: &Formula| Formula::join(vec![a.clone(), b.clone()], true);
        let next_even = Formula::join(vec![both(&even, f), both(&odd_so_far, t)], false);
        odd_so_far = Formula::join(vec![both(&odd_so_far, f), both(&even, t)], false);
        even = next_even;
    }
    Some(if odd { odd_so_far } else { even })
}

/// That at least this many of the children are true.
fn at_least(least: usize, children: &[Formula]) -> Option<Formula> {
    if least * children.len() > MOST_ALTERNATIVES {
        return None;
    }
    // By how many are needed: what makes that many of the last children true.
    let mut enough = vec![Formula::False; least + 1];
    enough[0] = Formula::True;
    for child in children.iter().rev() {
        for needed in (1..=least).rev() {
            let with = Formula::join(vec![child.clone(), enough[needed - 1].clone()], true);
            enough[needed] = Formula::join(vec![with, enough[needed].clone()], false);
        }
    }
    let formula = enough.swap_remove(least);
    (size(&formula) <= MOST_NODES).then_some(formula)
}
