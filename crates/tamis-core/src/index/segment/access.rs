//! Access predicates: which few tests must be true before an expression is worth looking at?
//!
//! An expression can only be true if one of its access predicates is: for an AND those of its most
//! selective child, for an OR those of all its children. Everything else is looked at only when an
//! access predicate fires. Each access also names one more test, the most selective of what must
//! hold beside it, so that nearly all candidates are dropped on one bit without touching them.

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

const ALWAYS: PlannedLeaf = PlannedLeaf { leaf: Leaf(TRUE_BIT << 1), selectivity: 1.0, cut: None };

/// The accesses of a tree and how often one of them fires, given how often the attribute of a cut
/// table is present.
pub fn plan(tree: &Tree, presence: &impl Fn(u32) -> f64) -> (f64, Vec<Access>) {
    match tree {
        Tree::Leaf(planned) => plan_leaf(planned),
        Tree::Or(children) => {
            let (mut cost, mut all) = (0.0, vec![]);
            for child in children {
                let (child_cost, accesses) = plan(child, presence);
                cost += child_cost;
                all.extend(accesses);
            }
            (cost, all)
        }
        Tree::And(children) => plan_and(children, presence),
    }
}

fn plan_leaf(planned: &PlannedLeaf) -> (f64, Vec<Access>) {
    let key = match planned.leaf.as_unit() {
        Some(unit) => Key::Unit(unit),
        // A clear bit cannot fire: the expression has to be looked at every time.
        None if planned.leaf.is_clear() => {
            let key = Key::Bit(TRUE_BIT);
            return (1.0, vec![Access { key, implied: [None, None], test: *planned, suffices: true }]);
        }
        None => Key::Bit(planned.leaf.bit()),
    };
    (
        planned.selectivity,
        vec![Access { key, implied: [Some(planned.leaf), None], test: ALWAYS, suffices: true }],
    )
}

fn plan_and(children: &[Tree], presence: &impl Fn(u32) -> f64) -> (f64, Vec<Access>) {
    let mut best: Option<(f64, Vec<Access>, Option<usize>)> = None;
    for (at, child) in children.iter().enumerate() {
        let (cost, accesses) = plan(child, presence);
        if best.as_ref().is_none_or(|(least, ..)| cost < *least) {
            best = Some((cost, accesses, Some(at)));
        }
    }
    for (cost, access) in intervals(children, presence) {
        if best.as_ref().is_none_or(|(least, ..)| cost < *least) {
            best = Some((cost, vec![access], None));
        }
    }
    let Some((cost, mut accesses, from)) = best else {
        let key = Key::Bit(TRUE_BIT);
        return (1.0, vec![Access { key, implied: [None, None], test: ALWAYS, suffices: true }]);
    };
    for access in &mut accesses {
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
        // The key may hold while a test chosen further down was given up for a better one.
        access.suffices &= access.test.leaf == established || established == ALWAYS.leaf;
        let known = |leaf: Leaf| access.implied.contains(&Some(leaf)) || leaf == access.test.leaf;
        let rest = children.iter().enumerate().filter(|(at, _)| Some(*at) != from);
        access.suffices &=
            rest.into_iter().all(|(_, child)| matches!(child, Tree::Leaf(leaf) if known(leaf.leaf)));
    }
    (cost, accesses)
}

/// Pairs of "above" and "below" on one attribute, and how often both hold.
fn intervals(children: &[Tree], presence: &impl Fn(u32) -> f64) -> Vec<(f64, Access)> {
    let comparisons: Vec<&PlannedLeaf> = children
        .iter()
        .filter_map(|child| match child {
            Tree::Leaf(leaf) if leaf.cut.is_some() => Some(leaf),
            _ => None,
        })
        .collect();
    let mut found = vec![];
    for low in &comparisons {
        for high in &comparisons {
            if let (Some((table, above, true)), Some((other, below, false))) = (low.cut, high.cut)
                && table == other
                && above < below
            {
                // A value that is present is above the lower cut or below the higher one, or both.
                let both = low.selectivity + high.selectivity - presence(table);
                let access = Access {
                    key: Key::Interval { table, above, below },
                    implied: [Some(low.leaf), Some(high.leaf)],
                    test: ALWAYS,
                    suffices: true,
                };
                found.push((both.max(1e-9), access));
            }
        }
    }
    found
}
