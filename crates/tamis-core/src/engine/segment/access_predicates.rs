//! Access predicates: one of these few tests must be true before an expression is worth evaluating.
//!
//! An expression can only be true if one of its access predicates is: for an AND those of its most selective child, for
//! an OR those of all its children. The rest is evaluated only when an access predicate fires. Each access entry also
//! names one more test, the most selective of the other conditions, so that nearly all candidates are dropped on one bit
//! without touching them. Which child of an AND is the access is decided by both: one that fires more often is better if it
//! leaves a good test, because running a unit takes several times as long as looking at an entry.

use super::program::{Leaf, PlannedLeaf, Tree};
use crate::predicate::catalog::TRUE_BIT;

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Key {
    Bit(u32),
    /// Above one cut and below another of a cut table.
    Interval {
        table: u32,
        above: u32,
        below: u32,
    },
    Unit(u32),
}

/// One way into a unit.
#[derive(Clone, Copy, Debug)]
pub struct Access {
    pub key: Key,
    /// Leaves that hold whenever the key fires; the second only for an interval.
    pub implied: [Option<Leaf>; 2],
    /// Another test that must hold, or "always".
    pub test: PlannedLeaf,
    /// Key and test together make the whole tree true.
    pub suffices: bool,
}

/// What the arrays of a segment need of an access. Some segments have tens of millions while they are built.
#[derive(Clone, Copy)]
pub struct PackedAccess {
    /// The number of a bit, of an interval or of a unit, which the two top bits tell apart.
    key: u32,
    /// The test, and in the top bit, which tests of bits leave free, whether it suffices.
    test: u32,
}

/// What fires an access, once each interval has a number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum PackedKey {
    Bit(u32),
    Interval(u32),
    Unit(u32),
}

const AN_INTERVAL: u32 = 1 << 30;
const A_UNIT: u32 = 1 << 31;
/// What the numbers of bits, intervals and units are below.
pub const MAX_KEYS: usize = 1 << 30;
const SUFFICES: u32 = 1 << 31;

impl PackedAccess {
    /// `number` gives the number of an interval of a cut table.
    pub fn new(access: &Access, number: impl FnOnce(u32, u32, u32) -> u32) -> Self {
        debug_assert!(access.test.leaf.as_unit().is_none(), "units are waited for, not tested");
        let key = match access.key {
            Key::Bit(bit) => bit,
            Key::Unit(unit) => unit | A_UNIT,
            Key::Interval { table, above, below } => number(table, above, below) | AN_INTERVAL,
        };
        Self { key, test: access.test.leaf.0 | if access.suffices { SUFFICES } else { 0 } }
    }

    pub fn key(&self) -> PackedKey {
        let number = self.key & (AN_INTERVAL - 1);
        match self.key & (A_UNIT | AN_INTERVAL) {
            0 => PackedKey::Bit(number),
            AN_INTERVAL => PackedKey::Interval(number),
            _ => PackedKey::Unit(number),
        }
    }

    /// The unit that is waited for.
    pub fn awaited(&self) -> Option<u32> {
        (self.key & A_UNIT != 0).then_some(self.key & !A_UNIT)
    }

    pub fn test(&self) -> Leaf {
        Leaf(self.test & !SUFFICES)
    }

    pub fn suffices(&self) -> bool {
        self.test & SUFFICES != 0
    }
}

const ALWAYS: PlannedLeaf = PlannedLeaf { leaf: Leaf(TRUE_BIT << 1), selectivity: 1.0, cut: None };

/// The accesses of a tree and how often one of them fires, given how often the attribute of a cut
/// table is present.
pub fn plan(tree: &Tree, presence: &impl Fn(u32) -> f64) -> (f64, Vec<Access>) {
    let mut accesses = vec![];
    let cost = add_accesses(tree, presence, &mut accesses);
    (cost, accesses)
}

/// How often an access of a tree fires, if they are chosen well.
fn least_cost(tree: &Tree, presence: &impl Fn(u32) -> f64) -> f64 {
    match tree {
        Tree::Leaf(planned) if planned.leaf.is_bit_clear() => 1.0,
        Tree::Leaf(planned) => planned.selectivity,
        Tree::Or(children) => children.iter().map(|child| least_cost(child, presence)).sum(),
        Tree::And(children) => {
            let of_child = children.iter().map(|child| least_cost(child, presence)).reduce(f64::min);
            let interval = best_interval(children, presence).map_or(f64::INFINITY, |(cost, _)| cost);
            of_child.map_or(1.0, |cost| cost.min(interval))
        }
    }
}

/// What looking at an entry takes, and what running the code of a unit takes, in the same measure.
const ENTRY_WORK: f64 = 1.0;
const UNIT_WORK: f64 = 5.0;

/// The work for accesses that fire this often, if a test that holds this often decides whether the unit is run.
fn work(often: f64, test: f64) -> f64 {
    often * (ENTRY_WORK + UNIT_WORK * test)
}

/// How often the most selective test among some children of an AND holds; 1 if there is none.
fn best_test(children: &[Tree], is_eligible: impl Fn(usize, Leaf) -> bool) -> f64 {
    let tests = children.iter().enumerate().filter_map(|(at, child)| match child {
        Tree::Leaf(leaf) if leaf.leaf.as_unit().is_none() && is_eligible(at, leaf.leaf) => {
            Some(leaf.selectivity)
        }
        _ => None,
    });
    tests.fold(1.0, f64::min)
}

/// Adds the accesses of a tree and returns how often one of them fires.
fn add_accesses(tree: &Tree, presence: &impl Fn(u32) -> f64, out: &mut Vec<Access>) -> f64 {
    match tree {
        Tree::Leaf(planned) => {
            let (cost, access) = leaf_access(planned);
            out.push(access);
            cost
        }
        Tree::Or(children) => children.iter().map(|child| add_accesses(child, presence, out)).sum(),
        Tree::And(children) => add_and(children, presence, out),
    }
}

fn leaf_access(planned: &PlannedLeaf) -> (f64, Access) {
    if planned.leaf.is_bit_clear() {
        // A clear bit cannot fire: the expression has to be looked at every time.
        let key = Key::Bit(TRUE_BIT);
        return (1.0, Access { key, implied: [None, None], test: *planned, suffices: true });
    }
    let key = planned.leaf.as_unit().map_or(Key::Bit(planned.leaf.bit()), Key::Unit);
    let implied = [Some(planned.leaf), None];
    (planned.selectivity, Access { key, implied, test: ALWAYS, suffices: true })
}

fn add_and(children: &[Tree], presence: &impl Fn(u32) -> f64, out: &mut Vec<Access>) -> f64 {
    let of_children = children.iter().enumerate().map(|(at, child)| {
        (work(least_cost(child, presence), best_test(children, |other, _| other != at)), at)
    });
    let Some((least, best)) = of_children.reduce(|best, next| if next.0 < best.0 { next } else { best })
    else {
        let key = Key::Bit(TRUE_BIT);
        out.push(Access { key, implied: [None, None], test: ALWAYS, suffices: true });
        return 1.0;
    };
    let first = out.len();
    let interval = best_interval(children, presence).filter(|(often, access)| {
        work(*often, best_test(children, |_, leaf| !access.implied.contains(&Some(leaf)))) < least
    });
    let (cost, from) = match interval {
        Some((often, access)) => {
            out.push(access);
            (often, None)
        }
        None => (add_accesses(&children[best], presence, out), Some(best)),
    };
    for access in &mut out[first..] {
        let established = access.test.leaf;
        for (at, child) in children.iter().enumerate() {
            if let Tree::Leaf(leaf) = child
                && Some(at) != from
                && leaf.leaf.as_unit().is_none()
                && !access.implied.contains(&Some(leaf.leaf))
                && leaf.selectivity < access.test.selectivity
            {
                access.test = *leaf;
            }
        }
        // The key may hold while a test chosen further down was dropped for a better one.
        access.suffices &= access.test.leaf == established || established == ALWAYS.leaf;
        let known = |leaf: Leaf| access.implied.contains(&Some(leaf)) || leaf == access.test.leaf;
        let rest = children.iter().enumerate().filter(|(at, _)| Some(*at) != from);
        access.suffices &=
            rest.into_iter().all(|(_, child)| matches!(child, Tree::Leaf(leaf) if known(leaf.leaf)));
    }
    cost
}

/// The pair of "above" and "below" on one attribute that holds most rarely, and how often it does.
fn best_interval(children: &[Tree], presence: &impl Fn(u32) -> f64) -> Option<(f64, Access)> {
    let cuts = || {
        children.iter().filter_map(|child| match child {
            Tree::Leaf(leaf) => leaf.cut.map(|cut| (leaf, cut)),
            _ => None,
        })
    };
    let mut best: Option<(f64, Access)> = None;
    for (low, (table, above, is_above)) in cuts() {
        if !is_above {
            continue;
        }
        for (high, (other, below, is_above)) in cuts() {
            if is_above || table != other || above >= below {
                continue;
            }
            // A value that is present is above the lower cut or below the higher one, or both.
            let both = (low.selectivity + high.selectivity - presence(table)).max(1e-9);
            if best.as_ref().is_none_or(|(least, _)| both < *least) {
                let access = Access {
                    key: Key::Interval { table, above, below },
                    implied: [Some(low.leaf), Some(high.leaf)],
                    test: ALWAYS,
                    suffices: true,
                };
                best = Some((both, access));
            }
        }
    }
    best
}
