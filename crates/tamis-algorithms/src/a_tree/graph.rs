//! The nodes, and which node reports to which.
//!
//! A node has *operands*, which define it: the distinct child expressions as they were written, none of them
//! with its own operator. It also has *children*, from which it is computed: the operands or, after
//! regrouping, nodes of the same operator that represent several operands at once. Operands give a node its
//! identity and keep it alive; children only carry results.
//!
//! ```text
//! AND {p1, p2, p3, p4}          operands: p1 p2 p3 p4
//!     ╱           ╲
//! AND {p1,p2,p3}  AND {p3,p4}   children, in use elsewhere; they may overlap in AND and OR
//! ```

use super::identity::Identities;
use crate::short_list::ShortList;

pub const NONE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Op {
    Leaf,
    /// A constant that is neither true nor false.
    Undefined,
    And,
    Or,
    Not,
    Xor,
    Xnor,
}

#[derive(Debug)]
pub struct Node {
    pub op: Op,
    /// An AND that hears of its access child only.
    pub on_demand: bool,
    /// Somebody above must hear when this node is false.
    pub tells_false: bool,
    /// The literal of a leaf.
    pub literal: u32,
    /// Subscriptions that are this node, and nodes that have it as an operand.
    pub uses: u32,
    /// The child that reports to an on-demand node.
    pub access: u32,
    /// Sorted, and distinct in AND and OR.
    pub operands: Box<[u32]>,
    /// `None`: the operands.
    pub children: Option<Box<[u32]>>,
    /// Parents that hear of this node's result.
    pub pushes_to: ShortList,
    /// Parents that look it up when they need it.
    pub held_by: ShortList,
    /// The subscriptions that are this node.
    pub rows: ShortList,
}

#[derive(Default)]
pub struct Graph {
    pub nodes: Vec<Node>,
    /// Beside the nodes, because matching reads a parent's level before anything else of it.
    pub levels: Vec<u16>,
    /// How many nodes have each level.
    population: Vec<u32>,
    free: Vec<u32>,
    /// From a literal to its leaves: one, or as many as are written if nothing is shared.
    pub leaves: Vec<ShortList>,
    pub identities: Identities,
    /// How many nodes were put together from others of their operator.
    pub reorganized: u64,
    /// How many nodes took a newer one as a child.
    pub adjusted: u64,
}

impl Node {
    pub fn new(op: Op, operands: Box<[u32]>) -> Self {
        Self {
            op,
            on_demand: false,
            tells_false: false,
            literal: NONE,
            uses: 0,
            access: NONE,
            operands,
            children: None,
            pushes_to: ShortList::default(),
            held_by: ShortList::default(),
            rows: ShortList::default(),
        }
    }

    pub fn children(&self) -> &[u32] {
        self.children.as_deref().unwrap_or(&self.operands)
    }

    pub fn parents(&self) -> impl Iterator<Item = u32> {
        self.pushes_to.as_slice().iter().chain(self.held_by.as_slice()).copied()
    }

    fn parent_count(&self) -> usize {
        self.pushes_to.len() + self.held_by.len()
    }

    /// Whether its parents must hear when it is false because of its own operator.
    fn listens_to_false(&self) -> bool {
        self.tells_false || matches!(self.op, Op::Not | Op::Xor | Op::Xnor)
    }
}

impl Graph {
    /// Nodes in use.
    pub fn len(&self) -> usize {
        self.nodes.len() - self.free.len()
    }

    pub fn links(&self) -> usize {
        self.nodes.iter().map(Node::parent_count).sum()
    }

    pub fn highest_level(&self) -> usize {
        self.population.iter().rposition(|count| *count > 0).unwrap_or(0)
    }

    /// Puts a node without links into a free place.
    pub fn place(&mut self, node: Node) -> u32 {
        let at = match self.free.pop() {
            Some(at) => {
                self.nodes[at as usize] = node;
                at
            }
            None => {
                self.nodes.push(node);
                self.levels.push(0);
                self.nodes.len() as u32 - 1
            }
        };
        self.set_level(at, 1);
        at
    }

    /// Frees the place of a node that has no links any more.
    pub fn clear(&mut self, at: u32) {
        debug_assert_eq!(self.nodes[at as usize].parent_count(), 0);
        self.nodes[at as usize] = Node::new(Op::Undefined, Box::default());
        self.set_level(at, 0);
        self.free.push(at);
    }

    pub fn is_free(&self, at: u32) -> bool {
        self.levels[at as usize] == 0
    }

    /// Gives an AND or OR other children. Links that stay are not touched: a popular predicate has many, and
    /// finding one among them takes long.
    pub fn set_children(&mut self, at: u32, children: Vec<u32>) {
        let node = &mut self.nodes[at as usize];
        let before = node.children().to_vec();
        node.children = (children[..] != *node.operands).then(|| children[..].into());
        for &child in before.iter().filter(|child| !children.contains(child)) {
            self.unlink(child, at);
        }
        let added = || children.iter().copied().filter(|child| !before.contains(child));
        let node = &mut self.nodes[at as usize];
        if node.on_demand && !children.contains(&node.access) {
            let access = any_of(&children, at);
            node.access = access;
            if before.contains(&access) {
                self.unlink(access, at);
                self.link(access, at);
            }
        }
        added().for_each(|child| self.link(child, at));
        self.update_level(at);
    }

    /// Links a new node to its children.
    pub fn link_children(&mut self, at: u32) {
        let children = self.nodes[at as usize].children().to_vec();
        if self.nodes[at as usize].on_demand {
            self.nodes[at as usize].access = any_of(&children, at);
        }
        children.iter().for_each(|&child| self.link(child, at));
        self.update_level(at);
    }

    pub fn unlink_children(&mut self, at: u32) {
        let children = self.nodes[at as usize].children().to_vec();
        children.iter().for_each(|&child| self.unlink(child, at));
    }

    fn link(&mut self, child: u32, parent: u32) {
        let node = &self.nodes[parent as usize];
        let (hears, needs_false) = (!node.on_demand || node.access == child, node.listens_to_false());
        let links = &mut self.nodes[child as usize];
        if hears { &mut links.pushes_to } else { &mut links.held_by }.push(parent);
        if needs_false {
            self.tell_false(child);
        }
    }

    fn unlink(&mut self, child: u32, parent: u32) {
        let links = &mut self.nodes[child as usize];
        assert!(links.pushes_to.remove(parent) || links.held_by.remove(parent), "links are symmetric");
    }

    /// Somebody above a node must hear when it is false: it then has to hear of all its children, and so
    /// must the nodes below.
    fn tell_false(&mut self, at: u32) {
        let mut open = vec![at];
        while let Some(at) = open.pop() {
            let node = &mut self.nodes[at as usize];
            if std::mem::replace(&mut node.tells_false, true) {
                continue;
            }
            let children: Vec<u32> = node.children().to_vec();
            if std::mem::replace(&mut node.on_demand, false) {
                let access = std::mem::replace(&mut node.access, NONE);
                for &child in children.iter().filter(|child| **child != access) {
                    let links = &mut self.nodes[child as usize];
                    links.held_by.remove(at);
                    links.pushes_to.push(at);
                }
            }
            open.extend(children);
        }
    }

    /// Recomputes the level of a node and of everything above it that depends on it.
    fn update_level(&mut self, at: u32) {
        let mut open = vec![at];
        while let Some(at) = open.pop() {
            let node = &self.nodes[at as usize];
            let highest = node.children().iter().map(|&child| self.levels[child as usize]).max();
            let level = highest.map_or(1, |highest| highest + 1);
            if level != self.levels[at as usize] {
                open.extend(node.parents());
                self.set_level(at, level);
            }
        }
    }

    fn set_level(&mut self, at: u32, level: u16) {
        let before = std::mem::replace(&mut self.levels[at as usize], level);
        if self.population.len() <= level as usize {
            self.population.resize(level as usize + 1, 0);
        }
        if before > 0 {
            self.population[before as usize] -= 1;
        }
        if level > 0 {
            self.population[level as usize] += 1;
        }
    }

    pub fn bytes(&self) -> Vec<(&'static str, usize)> {
        let lists = |node: &Node| {
            let ids = node.operands.len() + node.children.as_ref().map_or(0, |children| children.len());
            ids * size_of::<u32>()
                + node.pushes_to.heap_bytes()
                + node.held_by.heap_bytes()
                + node.rows.heap_bytes()
        };
        vec![
            (
                "nodes",
                self.nodes.capacity() * size_of::<Node>()
                    + self.levels.capacity() * size_of::<u16>()
                    + self.free.capacity() * size_of::<u32>(),
            ),
            ("links", self.nodes.iter().map(lists).sum()),
            (
                "leaves",
                self.leaves.capacity() * size_of::<ShortList>()
                    + self.leaves.iter().map(ShortList::heap_bytes).sum::<usize>(),
            ),
            ("expression table", self.identities.bytes()),
        ]
    }
}

/// The paper takes an access child at random; this is as random, and the same on every machine.
fn any_of(children: &[u32], node: u32) -> u32 {
    let random = (node as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 33;
    children[random as usize % children.len()]
}
