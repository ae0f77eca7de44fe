//! The diagram: unique nodes, reference counts, and `apply`.

use std::hash::{Hash, Hasher};

use hashbrown::HashTable;
use rustc_hash::{FxHashMap, FxHasher};

use tamis_core::expr::Literal;

pub const FALSE: u32 = 0;
pub const TRUE: u32 = 1;

#[derive(Clone, Copy)]
struct Node {
    literal: Literal,
    /// Where to go if the literal is not true, and if it is.
    low: u32,
    high: u32,
    /// Roots and nodes that lead here.
    references: u32,
}

pub struct Diagram {
    nodes: Vec<Node>,
    unique: HashTable<u32>,
    free: Vec<u32>,
}

/// The two ends, whose literal is after all others.
impl Default for Diagram {
    fn default() -> Self {
        let end = Node { literal: Literal(u32::MAX), low: 0, high: 0, references: 1 };
        Self { nodes: vec![end, end], unique: HashTable::new(), free: vec![] }
    }
}

impl Diagram {
    pub fn len(&self) -> usize {
        self.unique.len()
    }

    /// Walks from a root to an end, and says how many steps it took.
    pub fn is_true(&self, root: u32, holds: impl Fn(Literal) -> bool) -> (bool, u64) {
        let (mut at, mut steps) = (root, 0);
        while at > TRUE {
            let node = &self.nodes[at as usize];
            at = if holds(node.literal) { node.high } else { node.low };
            steps += 1;
        }
        (at == TRUE, steps)
    }

    /// One reference less; nodes that nobody leads to any more go, and `gone` hears of their literals.
    pub fn release(&mut self, root: u32, gone: &mut impl FnMut(Literal)) {
        let mut open = vec![root];
        while let Some(at) = open.pop() {
            if at <= TRUE {
                continue;
            }
            self.nodes[at as usize].references -= 1;
            if self.nodes[at as usize].references == 0 {
                let Node { literal, low, high, .. } = self.nodes[at as usize];
                self.forget(at);
                gone(literal);
                open.extend([low, high]);
            }
        }
    }

    fn forget(&mut self, at: u32) {
        let Node { literal, low, high, .. } = self.nodes[at as usize];
        let entry = self.unique.find_entry(hash_of(literal, low, high), |&other| other == at);
        entry.expect("every node is in the table").remove();
        self.free.push(at);
    }

    pub fn bytes(&self) -> usize {
        self.nodes.capacity() * size_of::<Node>()
            + self.unique.capacity() * (size_of::<u32>() + 1)
            + self.free.capacity() * size_of::<u32>()
    }
}

/// The diagram of one expression grew beyond the limit.
#[derive(Debug)]
pub struct TooLarge;

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Operation {
    And,
    Or,
}

/// Builds the diagram of one expression inside the shared one.
pub struct Apply<'a> {
    diagram: &'a mut Diagram,
    max_nodes: usize,
    made: Vec<u32>,
    done: FxHashMap<(Operation, u32, u32), u32>,
}

impl<'a> Apply<'a> {
    pub fn new(diagram: &'a mut Diagram, max_nodes: usize) -> Self {
        Self { diagram, max_nodes, made: vec![], done: FxHashMap::default() }
    }

    pub fn variable(&mut self, literal: Literal) -> Result<u32, TooLarge> {
        self.node(literal, FALSE, TRUE)
    }

    pub fn all(&mut self, roots: Vec<u32>) -> Result<u32, TooLarge> {
        self.fold(Operation::And, roots, TRUE)
    }

    pub fn any(&mut self, roots: Vec<u32>) -> Result<u32, TooLarge> {
        self.fold(Operation::Or, roots, FALSE)
    }

    /// From the last variable to the first, so that each step puts something on top.
    fn fold(&mut self, operation: Operation, mut roots: Vec<u32>, neutral: u32) -> Result<u32, TooLarge> {
        roots.sort_by_key(|root| std::cmp::Reverse(self.diagram.nodes[*root as usize].literal));
        roots.into_iter().try_fold(neutral, |so_far, root| self.apply(operation, so_far, root))
    }

    fn apply(&mut self, operation: Operation, a: u32, b: u32) -> Result<u32, TooLarge> {
        let (a, b) = (a.min(b), a.max(b));
        match (operation, a, b) {
            (_, a, b) if a == b => return Ok(a),
            (Operation::And, FALSE, _) => return Ok(FALSE),
            (Operation::And, TRUE, other) | (Operation::Or, FALSE, other) => return Ok(other),
            (Operation::Or, TRUE, _) => return Ok(TRUE),
            _ => {}
        }
        if let Some(&known) = self.done.get(&(operation, a, b)) {
            return Ok(known);
        }
        let (left, right) = (self.diagram.nodes[a as usize], self.diagram.nodes[b as usize]);
        let literal = left.literal.min(right.literal);
        let branches =
            |node: Node, at: u32| if node.literal == literal { (node.low, node.high) } else { (at, at) };
        let ((a_low, a_high), (b_low, b_high)) = (branches(left, a), branches(right, b));
        let low = self.apply(operation, a_low, b_low)?;
        let high = self.apply(operation, a_high, b_high)?;
        let result = self.node(literal, low, high)?;
        self.done.insert((operation, a, b), result);
        Ok(result)
    }

    /// The one node with this question and these answers; none if the answer does not matter.
    fn node(&mut self, literal: Literal, low: u32, high: u32) -> Result<u32, TooLarge> {
        if low == high {
            return Ok(low);
        }
        let Diagram { nodes, unique, free } = &mut *self.diagram;
        let hash = hash_of(literal, low, high);
        let same = |&at: &u32| {
            let node = &nodes[at as usize];
            (node.literal, node.low, node.high) == (literal, low, high)
        };
        if let Some(&at) = unique.find(hash, same) {
            return Ok(at);
        }
        if self.made.len() >= self.max_nodes {
            return Err(TooLarge);
        }
        let node = Node { literal, low, high, references: 0 };
        let at = match free.pop() {
            Some(at) => {
                nodes[at as usize] = node;
                at
            }
            None => {
                nodes.push(node);
                nodes.len() as u32 - 1
            }
        };
        unique.insert_unique(hash, at, |&at| {
            let node = &nodes[at as usize];
            hash_of(node.literal, node.low, node.high)
        });
        nodes[low as usize].references += 1;
        nodes[high as usize].references += 1;
        self.made.push(at);
        Ok(at)
    }

    /// Adds a reference to the root and drops what was made on the way and is not below it. Returns the
    /// literals of the new nodes, each as often as it is asked.
    pub fn keep(mut self, root: u32) -> Vec<Literal> {
        if root > TRUE {
            self.diagram.nodes[root as usize].references += 1;
        }
        self.sweep()
    }

    /// Drops everything that was made.
    pub fn give_up(mut self) {
        self.sweep();
    }

    /// Parents are made after their children, so one pass backwards is enough.
    fn sweep(&mut self) -> Vec<Literal> {
        let mut kept = vec![];
        for at in std::mem::take(&mut self.made).into_iter().rev() {
            let Node { literal, low, high, references } = self.diagram.nodes[at as usize];
            if references > 0 {
                kept.push(literal);
                continue;
            }
            self.diagram.forget(at);
            for child in [low, high].into_iter().filter(|child| *child > TRUE) {
                self.diagram.nodes[child as usize].references -= 1;
            }
        }
        kept
    }
}

fn hash_of(literal: Literal, low: u32, high: u32) -> u64 {
    let mut hasher = FxHasher::default();
    (literal, low, high).hash(&mut hasher);
    hasher.finish()
}
