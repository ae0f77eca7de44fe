//! The words that begin the nodes of a scoring program.
//!
//! ```text
//! bit  31 30   29    28       27           26 ... 0
//! ALL   0  0   number of leaves
//! AND   0  1    0    number of nodes
//! LEAST 0  1    1    how many must be true (12 bits), number of nodes (17 bits)
//! OR    1  0    0    number of nodes
//! XOR   1  0    1    negates  wants false  number of children
//! LEAF  1  1  plain  form (3 bits), then the attribute
//! ```
//!
//! Nothing outside this file knows the bits: programs are read and written as [`Node`]s.

use crate::event::TermId;

const OP_SHIFT: u32 = 30;
const ALL: u32 = 0;
const AND: u32 = 1;
const OR_OR_XOR: u32 = 2;
const IS_XOR: u32 = 1 << 29;
const IS_COUNTED: u32 = 1 << 29;
const LEAST_SHIFT: u32 = 17;
const XOR_NEGATES: u32 = 1 << 28;
const XOR_WANTS_FALSE: u32 = 1 << 27;
const LEAF: u32 = 3;
const LEAF_IS_PLAIN: u32 = 1 << 29;
const FORM_SHIFT: u32 = 26;
const FORM_MASK: u32 = 7;

/// The greatest number of an attribute that a leaf can name.
pub const MAX_ATTRIBUTE: u32 = (1 << FORM_SHIFT) - 1;

/// The most that a threshold can ask for, and of how many.
pub const MAX_LEAST: u32 = (1 << 12) - 1;
pub const MAX_COUNTED: u32 = (1 << LEAST_SHIFT) - 1;

/// What begins at a word of a program.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Node {
    /// This many leaves without tests: a conjunction that holds has only true leaves.
    All(u32),
    /// This many nodes.
    And(u32),
    /// This many nodes.
    Or(u32),
    /// How many must be true, and this many nodes: no more than [`MAX_LEAST`] and [`MAX_COUNTED`].
    AtLeast(u32, u32),
    Xor(XorChain),
    Leaf(LeafNode),
}

/// A chain of XORs or XNORs. Each child is two nodes: what counts when it is true, and when it is false.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct XorChain {
    pub children: u32,
    /// Each step is negated: XNOR.
    pub negates: bool,
    /// The whole chain is asked to be false.
    pub wants_false: bool,
}

/// A weighted predicate. Its weight follows unless it is plain, and then the tests of its form.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LeafNode {
    pub attribute: TermId,
    pub form: NodeKind,
    /// The weight is 1, and not written.
    pub plain: bool,
}

/// Which tests make a leaf true.
#[derive(Clone, Copy, Debug, PartialEq)]
#[repr(u32)]
pub enum NodeKind {
    /// None is needed.
    True = 0,
    One = 1,
    Both = 2,
    Either = 3,
    /// The first, or the other two.
    OneOrBoth = 4,
}

impl NodeKind {
    const ALL: [NodeKind; 5] =
        [NodeKind::True, NodeKind::One, NodeKind::Both, NodeKind::Either, NodeKind::OneOrBoth];

    pub fn tests(self) -> usize {
        match self {
            NodeKind::True => 0,
            NodeKind::One => 1,
            NodeKind::Both | NodeKind::Either => 2,
            NodeKind::OneOrBoth => 3,
        }
    }
}

impl LeafNode {
    /// How many words the weight takes.
    pub fn weight_words(self) -> usize {
        if self.plain { 0 } else { 2 }
    }
}

impl Node {
    /// `None` for a word that begins no node.
    #[inline]
    pub fn read(word: u32) -> Option<Self> {
        let has = |flag: u32| word & flag != 0;
        Some(match word >> OP_SHIFT {
            ALL => Node::All(word),
            AND if !has(IS_COUNTED) => Node::And(below(word, 29)),
            AND => Node::AtLeast(below(word, 29) >> LEAST_SHIFT, below(word, LEAST_SHIFT)),
            OR_OR_XOR if !has(IS_XOR) => Node::Or(below(word, 29)),
            OR_OR_XOR => Node::Xor(XorChain {
                children: below(word, 27),
                negates: has(XOR_NEGATES),
                wants_false: has(XOR_WANTS_FALSE),
            }),
            _ => Node::Leaf(LeafNode {
                attribute: TermId(word & MAX_ATTRIBUTE),
                form: *NodeKind::ALL.get((word >> FORM_SHIFT & FORM_MASK) as usize)?,
                plain: has(LEAF_IS_PLAIN),
            }),
        })
    }

    pub fn word(self) -> u32 {
        let flag = |is_set: bool, flag: u32| if is_set { flag } else { 0 };
        match self {
            Node::All(leaves) => ALL << OP_SHIFT | leaves,
            Node::And(nodes) => AND << OP_SHIFT | nodes,
            Node::Or(nodes) => OR_OR_XOR << OP_SHIFT | nodes,
            Node::AtLeast(least, nodes) => AND << OP_SHIFT | IS_COUNTED | least << LEAST_SHIFT | nodes,
            Node::Xor(XorChain { children, negates, wants_false }) => {
                let flags = flag(negates, XOR_NEGATES) | flag(wants_false, XOR_WANTS_FALSE);
                OR_OR_XOR << OP_SHIFT | IS_XOR | flags | children
            }
            Node::Leaf(LeafNode { attribute, form, plain }) => {
                let form = (form as u32) << FORM_SHIFT;
                LEAF << OP_SHIFT | flag(plain, LEAF_IS_PLAIN) | form | attribute.0
            }
        }
    }
}

/// The bits of a word below a place.
fn below(word: u32, place: u32) -> u32 {
    word & ((1 << place) - 1)
}

/// A weight as two words.
pub fn weight_words(weight: f64) -> [u32; 2] {
    let bits = weight.to_bits();
    [bits as u32, (bits >> 32) as u32]
}

pub fn weight(words: [u32; 2]) -> f64 {
    f64::from_bits(words[0] as u64 | (words[1] as u64) << 32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_node_is_read_as_it_was_written() {
        let mut nodes =
            vec![Node::All(0), Node::All(7), Node::And(0), Node::And(9), Node::Or(0), Node::Or(12)];
        nodes.extend([Node::AtLeast(1, 1), Node::AtLeast(MAX_LEAST, MAX_COUNTED)]);
        for (negates, wants_false) in [(false, false), (false, true), (true, false), (true, true)] {
            nodes.push(Node::Xor(XorChain { children: 3, negates, wants_false }));
        }
        for form in NodeKind::ALL {
            for (attribute, plain) in [(0, true), (MAX_ATTRIBUTE, false)] {
                nodes.push(Node::Leaf(LeafNode { attribute: TermId(attribute), form, plain }));
            }
        }
        for node in nodes {
            assert_eq!(Node::read(node.word()), Some(node));
        }
        assert_eq!(Node::read(LEAF << OP_SHIFT | 5 << FORM_SHIFT), None, "there is no sixth form");
    }
}
