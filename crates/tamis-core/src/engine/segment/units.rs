//! The units of a layout while it is planned: nodes with their own code, their rows, and the compiled code.

use std::ops::Range;

use super::access_predicates::PackedAccess;
use super::program::CodeKind;

/// Rows by node.
pub struct Rows {
    first: Vec<u32>,
    pub rows: Vec<u32>,
}

impl Rows {
    pub fn group(roots: &[u32], nodes: usize) -> Self {
        let mut first = vec![0u32; nodes + 1];
        for root in roots {
            first[*root as usize + 1] += 1;
        }
        for at in 0..nodes {
            first[at + 1] += first[at];
        }
        let mut next = first.clone();
        let mut rows = vec![0; roots.len()];
        for (row, root) in roots.iter().enumerate() {
            rows[next[*root as usize] as usize] = row as u32;
            next[*root as usize] += 1;
        }
        Self { first, rows }
    }

    pub fn of(&self, node: u32) -> &[u32] {
        &self.rows[self.first[node as usize] as usize..self.first[node as usize + 1] as usize]
    }
}

/// Offsets of code and of accesses fit 32 bits, as they do in the layout.
pub struct Unit {
    pub node: u32,
    pub code: Range<u32>,
    pub accesses: Range<u32>,
    pub kind: CodeKind,
    /// Reached in several ways, so what is known of it is remembered during an event.
    pub remembered: bool,
    /// Some unit below it, or a subscription, waits for it to fire.
    pub active: bool,
}

impl Unit {
    pub fn code_range(&self) -> Range<usize> {
        self.code.start as usize..self.code.end as usize
    }

    pub fn access_range(&self) -> Range<usize> {
        self.accesses.start as usize..self.accesses.end as usize
    }
}

/// What compiling a run of units gave. Accesses are planned for all of them, also for those that nobody
/// turns out to wait for.
#[derive(Default)]
pub struct Compiled {
    pub code: Vec<u32>,
    pub accesses: Vec<PackedAccess>,
    pub units: Vec<CompiledUnit>,
}

pub struct CompiledUnit {
    pub kind: CodeKind,
    pub remembered: bool,
    /// How often one of its accesses fires, per event.
    pub candidates: f64,
    /// Code and accesses begin where those of the unit before end.
    pub code_end: u32,
    pub accesses_end: u32,
}

/// The numbers of units, parents first: children have lower nodes than their parents.
pub fn parents_first(units: &[Unit]) -> Vec<u32> {
    let mut order: Vec<u32> = (0..units.len() as u32).collect();
    order.sort_unstable_by_key(|unit| std::cmp::Reverse(units[*unit as usize].node));
    order
}
