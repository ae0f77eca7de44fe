//! An expression as straight-line code: a sequence of tests, each with one jump.
//!
//! An AND/OR tree becomes its leaves in order. After a leaf, one truth value continues with the next leaf and the other
//! jumps forward, or ends. Short-circuit evaluation needs nothing else, so there is no stack, and the code is read from
//! front to back.
//!
//! ```text
//! (a AND b) OR c      0: a  true → 1, false jumps to 2
//!                     1: b  false → 2, true jumps to ACCEPT
//!                     2: c  true → end, which accepts; false jumps to REJECT
//! ```
//!
//! A pure conjunction or disjunction needs no jumps and stores its leaves alone.

/// A test: a predicate's bit, set or clear, or another unit.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub struct Leaf(pub u32);

const UNIT: u32 = 1 << 31;

impl Leaf {
    pub fn set(bit: u32) -> Self {
        Leaf(bit << 1)
    }

    pub fn clear(bit: u32) -> Self {
        Leaf(bit << 1 | 1)
    }

    pub fn unit(unit: u32) -> Self {
        Leaf(UNIT | unit)
    }

    pub fn as_unit(self) -> Option<u32> {
        (self.0 & UNIT != 0).then_some(self.0 & !UNIT)
    }

    pub fn bit(self) -> u32 {
        self.0 >> 1
    }

    pub fn is_clear(self) -> bool {
        self.0 & 1 == 1
    }

    /// Whether a test that is not a unit holds, for point values that set these bits.
    #[inline(always)]
    pub fn holds(self, bits: &[u64]) -> bool {
        let bit = self.bit();
        (bits[(bit >> 6) as usize] >> (bit & 63) ^ self.0 as u64) & 1 == 1
    }

    /// Whether it asks for a bit that is clear.
    pub fn is_bit_clear(self) -> bool {
        self.as_unit().is_none() && self.is_clear()
    }
}

/// Jump targets beyond every program.
pub const ACCEPT: u32 = (1 << 31) - 2;
pub const REJECT: u32 = (1 << 31) - 1;

/// The kind of a unit's code, stored next to its offset.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum CodeKind {
    /// Leaves that must all hold.
    Conjunction = 0,
    /// Leaves of which one must hold.
    Disjunction = 1,
    /// Pairs of a leaf and a jump: `target << 1 | value that goes on`.
    Jumps = 2,
    /// What is asked of the number of children that are true, and their leaves.
    ///
    /// [`ODD`] or [`EVEN`]: then leaves come in pairs, true form and false form, and each child must be one of them.
    /// Any other number, less [`THRESHOLD`], is the least number of leaves that must be true.
    Count = 3,
}

/// What begins the code of a count.
pub const EVEN: u32 = 0;
pub const ODD: u32 = 1;
pub const THRESHOLD: u32 = 2;

impl CodeKind {
    /// Which words of the code are leaves: the first of them, and the step to the next.
    pub fn leaf_words(self) -> (usize, usize) {
        match self {
            CodeKind::Conjunction | CodeKind::Disjunction => (0, 1),
            CodeKind::Jumps => (0, 2),
            CodeKind::Count => (1, 1),
        }
    }
}

/// A part of an expression as it is compiled.
#[derive(Clone, Debug)]
pub enum Tree {
    Leaf(PlannedLeaf),
    And(Vec<Tree>),
    Or(Vec<Tree>),
}

/// A leaf with what the planner needs to know of it.
#[derive(Clone, Copy, Debug)]
pub struct PlannedLeaf {
    pub leaf: Leaf,
    /// How often it is true.
    pub selectivity: f64,
    /// For a comparison: its cut table, the cut, and whether it asks for "above".
    pub cut: Option<(u32, u32, bool)>,
}

impl Tree {
    pub fn selectivity(&self) -> f64 {
        match self {
            Tree::Leaf(leaf) => leaf.selectivity,
            Tree::And(children) => children.iter().map(Tree::selectivity).product(),
            Tree::Or(children) => {
                1.0 - children.iter().map(|child| 1.0 - child.selectivity()).product::<f64>()
            }
        }
    }

    /// Tests on average, roughly: pulling another unit costs more than a bit.
    fn cost(&self) -> f64 {
        match self {
            Tree::Leaf(leaf) => {
                if leaf.leaf.as_unit().is_some() {
                    6.0
                } else {
                    1.0
                }
            }
            Tree::And(children) | Tree::Or(children) => children.iter().map(Tree::cost).sum(),
        }
    }

    /// Merges ANDs into ANDs and ORs into ORs, and puts the tests first that decide soonest.
    pub fn arrange(self) -> Self {
        match self {
            Tree::Leaf(_) => self,
            Tree::And(children) => {
                let mut flat = Vec::with_capacity(children.len() + 4);
                for child in children {
                    match child.arrange() {
                        Tree::And(inner) => flat.extend(inner),
                        other => flat.push(other),
                    }
                }
                let mut flat = by_falling(flat, |child| (1.0 - child.selectivity()) / child.cost());
                if flat.len() == 1 { flat.remove(0) } else { Tree::And(flat) }
            }
            Tree::Or(children) => {
                let mut flat = Vec::with_capacity(children.len() + 4);
                for child in children {
                    match child.arrange() {
                        Tree::Or(inner) => flat.extend(inner),
                        other => flat.push(other),
                    }
                }
                let mut flat = by_falling(flat, |child| child.selectivity() / child.cost());
                if flat.len() == 1 { flat.remove(0) } else { Tree::Or(flat) }
            }
        }
    }

    fn leaves(&self) -> u32 {
        match self {
            Tree::Leaf(_) => 1,
            Tree::And(children) | Tree::Or(children) => children.iter().map(Tree::leaves).sum(),
        }
    }

    /// Appends the code of this tree and says what kind it is.
    pub fn compile(&self, code: &mut Vec<u32>) -> CodeKind {
        match self {
            Tree::Leaf(leaf) => {
                code.push(leaf.leaf.0);
                CodeKind::Conjunction
            }
            Tree::And(children) if children.iter().all(|child| matches!(child, Tree::Leaf(_))) => {
                for child in children {
                    child.compile(code);
                }
                CodeKind::Conjunction
            }
            Tree::Or(children) if children.iter().all(|child| matches!(child, Tree::Leaf(_))) => {
                for child in children {
                    child.compile(code);
                }
                CodeKind::Disjunction
            }
            _ => {
                self.emit(0, ACCEPT, REJECT, code);
                CodeKind::Jumps
            }
        }
    }

    /// Emits the leaves from number `at` on; where to go when the tree is true, and when false.
    fn emit(&self, at: u32, on_true: u32, on_false: u32, code: &mut Vec<u32>) {
        match self {
            Tree::Leaf(leaf) => {
                let goes_on_if_true = on_true == at + 1 || on_false != at + 1;
                let jump = if goes_on_if_true { on_false } else { on_true };
                code.push(leaf.leaf.0);
                code.push(jump << 1 | goes_on_if_true as u32);
            }
            Tree::And(children) => {
                let mut next = at;
                for (i, child) in children.iter().enumerate() {
                    let after = next + child.leaves();
                    let last = i + 1 == children.len();
                    child.emit(next, if last { on_true } else { after }, on_false, code);
                    next = after;
                }
            }
            Tree::Or(children) => {
                let mut next = at;
                for (i, child) in children.iter().enumerate() {
                    let after = next + child.leaves();
                    let last = i + 1 == children.len();
                    child.emit(next, on_true, if last { on_false } else { after }, code);
                    next = after;
                }
            }
        }
    }
}

/// Sorts trees by a merit, the greatest first. That of a leaf is known at once; others are computed once each.
fn by_falling(mut trees: Vec<Tree>, merit: impl Fn(&Tree) -> f64) -> Vec<Tree> {
    if trees.iter().all(|tree| matches!(tree, Tree::Leaf(_))) {
        trees.sort_by(|a, b| merit(b).total_cmp(&merit(a)));
        return trees;
    }
    let mut judged: Vec<(f64, Tree)> = trees.into_iter().map(|tree| (merit(&tree), tree)).collect();
    judged.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    judged.into_iter().map(|(_, tree)| tree).collect()
}
