//! What makes a unit of a layout true, as a formula over the states of attributes.
//!
//! A unit that is reached in only one way does not test again what its access has established, so its formula is that of its
//! access entry and its code. Parts of a formula that look at one attribute only become one literal: a table of the states in
//! which it holds. So `x >= 3 AND x < 7 AND x != 5` is one literal.

use std::rc::Rc;

use rustc_hash::FxHashMap;

use super::attributes::{AttributeStates, Attributes};
use super::state_set::StateSet;
use crate::engine::segment::layout::{ACCEPTS, Layout};
use crate::engine::segment::program::{ACCEPT, CodeKind, EVEN, Leaf, ODD, REJECT, THRESHOLD};
use crate::predicate::catalog::TRUE_BIT;

/// A formula with more nodes than this is given up: shared subexpressions are written out. So is a layout with more in all.
const MOST_NODES: usize = 1024;
const MOST_NODES_IN_ALL: usize = 64 * 1024;

/// Words of all sets of states together.
const MOST_WORDS_OF_STATES: usize = 1 << 20;

/// No more alternatives are written out for a threshold, and no more operands for a parity, which has two to that power.
const MOST_ALTERNATIVES: usize = 16;
const MOST_OF_PARITY: usize = 4;

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

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Truth {
    /// The states in which it holds.
    States(Rc<StateSet>),
    /// For attributes without states: of the keys that a value fires.
    Keys(KeyTest),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
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

    /// Both, or either.
    fn join(self, other: KeyTest, all: bool) -> KeyTest {
        let mut tests = match self {
            KeyTest::All(tests) if all => tests,
            KeyTest::Any(tests) if !all => tests,
            test => vec![test],
        };
        tests.push(other);
        if all { KeyTest::All(tests) } else { KeyTest::Any(tests) }
    }
}

impl Literal {
    /// Both, or either, of two tests of the same attribute.
    fn join(self, other: Literal, all: bool) -> Literal {
        let truth = match (self.truth, other.truth) {
            (Truth::States(a), Truth::States(b)) => Truth::States(a.joined(&b, all).into()),
            (Truth::Keys(a), Truth::Keys(b)) => Truth::Keys(a.join(b, all)),
            _ => unreachable!("an attribute has states or not"),
        };
        Literal { attribute: self.attribute, truth }
    }

    /// In which share of the states it holds: a guess at how often.
    pub fn share(&self) -> f64 {
        match &self.truth {
            Truth::States(states) => states.count() as f64 / states.states() as f64,
            Truth::Keys(_) => 0.3,
        }
    }

    /// The same of the states of values.
    pub fn share_of_present(&self) -> f64 {
        match &self.truth {
            Truth::States(states) => {
                let present = states.count() - states.has(0) as usize;
                present as f64 / (states.states() - 1).max(1) as f64
            }
            Truth::Keys(_) => 0.3,
        }
    }

    /// 1 if it holds without a value.
    pub fn share_of_absent(&self) -> f64 {
        match &self.truth {
            Truth::States(states) => states.has(0) as u32 as f64,
            Truth::Keys(_) => 0.0,
        }
    }
}

impl Formula {
    /// All or any of some parts.
    pub fn join(parts: Vec<Formula>, all: bool) -> Formula {
        let (neutral, decided) =
            if all { (Formula::True, Formula::False) } else { (Formula::False, Formula::True) };
        let (mut literals, mut others): (Vec<Option<Literal>>, Vec<Formula>) = (vec![], vec![]);
        let mut place_of: FxHashMap<u32, usize> = FxHashMap::default();
        let mut waiting = parts;
        waiting.reverse();
        while let Some(part) = waiting.pop() {
            match part {
                part if part == neutral => {}
                part if part == decided => return decided,
                Formula::And(parts) if all => waiting.extend(parts.into_iter().rev()),
                Formula::Or(parts) if !all => waiting.extend(parts.into_iter().rev()),
                Formula::Literal(literal) => {
                    let place = *place_of.entry(literal.attribute).or_insert(literals.len());
                    match literals.get_mut(place) {
                        Some(known) => {
                            *known = known.take().map(|known| known.join(literal, all));
                        }
                        None => literals.push(Some(literal)),
                    }
                }
                other => others.push(other),
            }
        }
        let mut parts = vec![];
        for literal in literals.into_iter().flatten() {
            match literal.truth {
                Truth::States(ref states) if states.is_all() => {
                    if !all {
                        return decided;
                    }
                }
                Truth::States(ref states) if states.is_empty() => {
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
    /// Of the unit at hand, and of all.
    nodes: usize,
    nodes_in_all: usize,
    /// How many words more sets of states may take.
    words_left: usize,
}

/// Part of a tree that is written as jumps, and where it leads.
struct Block {
    /// Its first leaf.
    at: u32,
    /// What it is all or any of.
    parts: Vec<Formula>,
    all: bool,
    if_true: u32,
    if_false: u32,
}

impl Block {
    fn formula(self) -> Formula {
        Formula::join(self.parts, self.all)
    }

    /// What it is all, or any, of.
    fn parts_of(self, all: bool) -> Vec<Formula> {
        if self.all == all || self.parts.len() == 1 { self.parts } else { vec![self.formula()] }
    }

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
        let words_left = MOST_WORDS_OF_STATES;
        Self { layout, attributes, access, nodes: 0, nodes_in_all: 0, words_left }
    }

    /// What makes a unit true; `None` if that is too long, or all together are.
    pub fn of_unit(&mut self, unit: u32) -> Option<Formula> {
        self.nodes = 0;
        self.unit(unit)
    }

    /// Counts a node; `None` if there are too many.
    fn count_node(&mut self) -> Option<()> {
        self.nodes += 1;
        self.nodes_in_all += 1;
        (self.nodes <= MOST_NODES && self.nodes_in_all <= MOST_NODES_IN_ALL).then_some(())
    }

    fn unit(&mut self, unit: u32) -> Option<Formula> {
        self.count_node()?;
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
            blocks.push(Block { at, parts: vec![self.leaf(Leaf(leaf))?], all: true, if_true, if_false });
            // What ends here may complete what began before.
            while let [.., first, second] = &blocks[..]
                && let Some(all) = first.joins(second)
                && !steps[..first.at as usize].iter().any(|[_, jump]| target(jump >> 1) == second.at)
            {
                let (Some(second), Some(first)) = (blocks.pop(), blocks.pop()) else { return None };
                let (at, if_true, if_false) = (first.at, second.if_true, second.if_false);
                let mut parts = first.parts_of(all);
                parts.extend(second.parts_of(all));
                blocks.push(Block { at, parts, all, if_true, if_false });
            }
        }
        let whole = blocks.pop()?;
        let is_whole = blocks.is_empty() && (whole.if_true, whole.if_false) == (ACCEPT, REJECT);
        is_whole.then(|| whole.formula())
    }

    fn leaf(&mut self, leaf: Leaf) -> Option<Formula> {
        match leaf.as_unit() {
            Some(unit) => self.unit(unit),
            None => self.key(leaf.bit(), !leaf.is_clear()),
        }
    }

    /// That a key fires, or that it does not.
    fn key(&mut self, key: u32, wanted: bool) -> Option<Formula> {
        self.count_node()?;
        if key == TRUE_BIT {
            return Some(if wanted { Formula::True } else { Formula::False });
        }
        let Some(attribute) = self.attributes.of_key(key) else {
            // Nothing fires it.
            return Some(if wanted { Formula::False } else { Formula::True });
        };
        let truth = match &self.attributes.all[attribute as usize] {
            AttributeStates::Listed(states, states_of_keys) => {
                let states = states.fired.len();
                self.words_left = self.words_left.checked_sub(StateSet::words_of(states))?;
                let mut truth = StateSet::new(states, !wanted);
                let firing = states_of_keys.get(&key).map_or(&[][..], |states| states);
                firing.iter().for_each(|state| truth.flip(*state));
                Truth::States(truth.into())
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
    if leaves.len() / 2 > MOST_OF_PARITY {
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
    let formula = if odd { odd_so_far } else { even };
    (size(&formula) <= MOST_NODES).then_some(formula)
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
