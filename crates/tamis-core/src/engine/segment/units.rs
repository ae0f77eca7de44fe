//! The units of a layout while it is planned: nodes with their own code, their rows, and the compiled code.

use std::ops::Range;

use super::access_predicates::Access;
use super::layout::{Layout, code_place};
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

/// The units in the order in which they are compiled, parents first. Code and accesses of each begin where those of the
/// unit before end, and there are more units than rows, so that each has 12 bytes.
#[derive(Default)]
pub struct Units(Vec<Unit>);

struct Unit {
    /// The node, and in the top bit, which nodes leave free, whether it is reached in several ways.
    node: u32,
    /// The end of its code and the code's kind, as in the layout.
    code_end: u32,
    accesses_end: u32,
}

const REMEMBERED: u32 = 1 << 31;

impl Units {
    /// Units of these nodes, not compiled yet.
    pub fn new(nodes: impl Iterator<Item = (u32, bool)>, count: usize) -> Self {
        let mut units = Vec::with_capacity(count);
        units.extend(nodes.map(|(node, remembered)| Unit {
            node: node | if remembered { REMEMBERED } else { 0 },
            code_end: 0,
            accesses_end: 0,
        }));
        Self(units)
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// The unit of a node comes before those of nodes with lower numbers.
    pub fn node(&self, unit: u32) -> u32 {
        self.0[unit as usize].node & !REMEMBERED
    }

    /// Whether it is reached in several ways, so that what is known of it is remembered during an event.
    pub fn is_remembered(&self, unit: u32) -> bool {
        self.0[unit as usize].node & REMEMBERED != 0
    }

    pub fn remember(&mut self, unit: u32) {
        self.0[unit as usize].node |= REMEMBERED;
    }

    /// Says where code and accesses of a unit end; those before it were given theirs.
    pub fn set_ends(&mut self, unit: u32, code_end: usize, kind: CodeKind, accesses_end: usize) {
        let unit = &mut self.0[unit as usize];
        (unit.code_end, unit.accesses_end) = (Layout::pack_code(code_end, kind), accesses_end as u32);
    }

    pub fn kind(&self, unit: u32) -> CodeKind {
        Layout::code_kind(self.0[unit as usize].code_end)
    }

    /// The words of its code.
    pub fn words(&self, unit: u32) -> usize {
        self.from(unit, |before| code_place(before.code_end)).len()
    }

    pub fn accesses(&self, unit: u32) -> Range<usize> {
        self.from(unit, |before| before.accesses_end as usize)
    }

    fn from(&self, unit: u32, end: impl Fn(&Unit) -> usize) -> Range<usize> {
        let start = unit.checked_sub(1).map_or(0, |before| end(&self.0[before as usize]));
        start..end(&self.0[unit as usize])
    }

    pub fn iter(&self) -> Range<u32> {
        0..self.0.len() as u32
    }
}

/// What compiling a run of units gave. Accesses are planned for all of them, also for those that nobody
/// turns out to wait for.
#[derive(Default)]
pub struct Compiled {
    /// As [`planned_code`](super::planned_code) stores it.
    pub code: Vec<u8>,
    pub words: usize,
    pub accesses: Vec<Access>,
    pub units: Vec<CompiledUnit>,
}

pub struct CompiledUnit {
    pub kind: CodeKind,
    pub remembered: bool,
    /// How often one of its accesses fires, per event.
    pub candidates: f64,
    /// Code, in words, and accesses begin where those of the unit before end.
    pub code_end: u32,
    pub accesses_end: u32,
}
