//! Trees as bytes.
//!
//! ```text
//! leaf     04, the literal in four bytes, the least first
//! inner    01 for AND, 02 for OR, 03 for an AND of leaves alone; the number of children; the children
//! ```
//!
//! A predicate takes 5 bytes, an operator 2. A child that is no longer needed must still be walked to find its
//! end. With *width prefixes*, two bytes before each child give its length, and it can be skipped.

use crate::circuit::Tree;
use tamis_core::expr::Literal;

const AND: u8 = 1;
const OR: u8 = 2;
/// An AND of leaves: whoever has as many hits as leaves is true without looking.
const CONJUNCTION: u8 = 3;
const LEAF: u8 = 4;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Encoding {
    #[default]
    Plain,
    WidthPrefixed,
}

#[derive(Clone, Copy, Debug)]
pub struct Style {
    pub encoding: Encoding,
    /// Gives conjunctions the code that needs no evaluation.
    pub mark_conjunctions: bool,
    /// Stops at the first child that decides.
    pub short_circuit: bool,
}

impl Default for Style {
    fn default() -> Self {
        Self { encoding: Encoding::Plain, mark_conjunctions: true, short_circuit: true }
    }
}

impl Style {
    pub fn encode(&self, tree: &Tree) -> Box<[u8]> {
        let mut out = vec![];
        self.put(tree, &mut out);
        let is_conjunction = match tree {
            Tree::And(children) => children.iter().all(|child| matches!(child, Tree::Leaf(_))),
            Tree::Leaf(_) | Tree::Or(_) => false,
        };
        if is_conjunction && self.mark_conjunctions {
            out[0] = CONJUNCTION;
        }
        out.into()
    }

    fn put(&self, tree: &Tree, out: &mut Vec<u8>) {
        let (code, children) = match tree {
            Tree::Leaf(literal) => {
                out.push(LEAF);
                out.extend_from_slice(&literal.0.to_le_bytes());
                return;
            }
            Tree::And(children) => (AND, children),
            Tree::Or(children) => (OR, children),
        };
        out.extend_from_slice(&[code, children.len() as u8]);
        for child in children {
            match self.encoding {
                Encoding::Plain => self.put(child, out),
                Encoding::WidthPrefixed => {
                    let at = out.len();
                    out.extend_from_slice(&[0, 0]);
                    self.put(child, out);
                    let width = (out.len() - at - 2) as u16;
                    out[at..at + 2].copy_from_slice(&width.to_le_bytes());
                }
            }
        }
    }

    /// Whether an encoded tree is true.
    pub fn is_true(&self, bytes: &[u8], holds: &impl Fn(Literal) -> bool) -> bool {
        self.evaluate(bytes, 0, true, holds).0
    }

    /// The truth of the node at `at`, and where the next one starts; at the root that is not asked for.
    fn evaluate(
        &self,
        bytes: &[u8],
        at: usize,
        is_root: bool,
        holds: &impl Fn(Literal) -> bool,
    ) -> (bool, usize) {
        if bytes[at] == LEAF {
            return (holds(literal_at(bytes, at + 1)), at + 5);
        }
        let (deciding, count) = (bytes[at] == OR, bytes[at + 1]);
        let (mut truth, mut next) = (!deciding, at + 2);
        for _ in 0..count {
            let child = match self.encoding {
                Encoding::Plain => next,
                Encoding::WidthPrefixed => next + 2,
            };
            if truth == deciding && self.short_circuit {
                if is_root {
                    return (truth, next);
                }
                next = self.skip(bytes, next);
                continue;
            }
            let (outcome, end) = self.evaluate(bytes, child, false, holds);
            if outcome == deciding {
                truth = deciding;
            }
            next = end;
        }
        (truth, next)
    }

    /// Where the child that starts at `at` (with its width, if it has one) ends.
    fn skip(&self, bytes: &[u8], at: usize) -> usize {
        match self.encoding {
            Encoding::WidthPrefixed => at + 2 + u16::from_le_bytes([bytes[at], bytes[at + 1]]) as usize,
            Encoding::Plain if bytes[at] == LEAF => at + 5,
            Encoding::Plain => (0..bytes[at + 1]).fold(at + 2, |next, _| self.skip(bytes, next)),
        }
    }

    /// Calls `visit` with every leaf: deregistration needs no other table.
    pub fn for_each_leaf(&self, bytes: &[u8], visit: &mut impl FnMut(Literal)) {
        self.evaluate_all(bytes, 0, visit);
    }

    fn evaluate_all(&self, bytes: &[u8], at: usize, visit: &mut impl FnMut(Literal)) -> usize {
        if bytes[at] == LEAF {
            visit(literal_at(bytes, at + 1));
            return at + 5;
        }
        let prefix = if self.encoding == Encoding::WidthPrefixed { 2 } else { 0 };
        (0..bytes[at + 1]).fold(at + 2, |next, _| self.evaluate_all(bytes, next + prefix, visit))
    }
}

/// Whether every candidate with this tree is true.
pub fn is_conjunction(bytes: &[u8]) -> bool {
    bytes[0] == CONJUNCTION
}

fn literal_at(bytes: &[u8], at: usize) -> Literal {
    Literal(u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes")))
}
