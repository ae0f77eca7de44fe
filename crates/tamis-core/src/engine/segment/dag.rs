//! Normal forms with each distinct subexpression stored once.
//!
//! Identity is checked on the structure (gate and children), never on a hash alone. Children are numbered before their
//! parent is looked up, so comparing two nodes compares small integers.

use std::sync::Arc;

use crate::expr::atoms::Literal;
use crate::expr::normal_form::{Form, Node};
use crate::number_table::{NumberTable, tag};
use crate::prefetch::prefetch;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Gate {
    And,
    Or,
    /// Children come in pairs: true form, false form.
    OddParity,
    EvenParity,
    /// This many children must be true.
    AtLeast(u32),
}

impl Gate {
    /// A number below 8; all thresholds have the same.
    fn code(self) -> u32 {
        match self {
            Gate::And => 0,
            Gate::Or => 1,
            Gate::OddParity => 2,
            Gate::EvenParity => 3,
            Gate::AtLeast(_) => 4,
        }
    }

    /// Whether the order of the children means nothing, so that they are sorted.
    fn sorts_children(self) -> bool {
        matches!(self, Gate::And | Gate::Or | Gate::AtLeast(_))
    }
}

/// A child: a literal, or another node.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Ref(u32);

pub enum Target {
    Literal(Literal),
    Node(u32),
}

impl Ref {
    fn literal(literal: Literal) -> Self {
        Ref(literal.0 << 1)
    }

    fn node(node: u32) -> Self {
        Ref(node << 1 | 1)
    }

    /// The same test where atoms and nodes have other numbers.
    fn mapped(self, nodes: &[u32], atom: &mut impl FnMut(u32) -> u32) -> Self {
        match self.target() {
            Target::Node(node) => Ref::node(nodes[node as usize]),
            Target::Literal(literal) => {
                Ref::literal(Literal::new(atom(literal.atom()), literal.is_negated()))
            }
        }
    }

    pub fn target(self) -> Target {
        if self.0 & 1 == 1 { Target::Node(self.0 >> 1) } else { Target::Literal(Literal(self.0 >> 1)) }
    }
}

/// The number of no node.
pub const NO_NODE: u32 = u32::MAX;

/// A graph can be laid over another one, which is only read: many threads may do so at a time.
#[derive(Default)]
pub struct Dag {
    below: Option<Arc<Dag>>,
    /// The number of the first node that is not below.
    first: u32,
    heads: Vec<Head>,
    children: Vec<Ref>,
    /// The nodes that are thresholds, rising, and how many children of each must be true.
    thresholds: Vec<(u32, u32)>,
    /// How many distinct nodes have this one as a child, up to 255; counted when all are there.
    parents: Vec<u8>,
    numbers: NumberTable,
    /// For the children of nodes that are being added.
    room: Vec<Ref>,
}

/// Where the children of a node are, how many there are, and in the upper bits the gate. There is one for each node of each
/// expression while a segment is built, so the number that a threshold asks for is elsewhere.
#[derive(Clone, Copy)]
struct Head {
    first_child: u32,
    gate_and_children: u32,
}

const GATE_SHIFT: u32 = 29;

impl Head {
    fn new(gate: Gate, first_child: usize, children: usize) -> Self {
        assert!(children < 1 << GATE_SHIFT, "a node has fewer than 2^29 children");
        Self {
            first_child: first_child as u32,
            gate_and_children: gate.code() << GATE_SHIFT | children as u32,
        }
    }

    fn children(self) -> std::ops::Range<usize> {
        let first = self.first_child as usize;
        first..first + (self.gate_and_children & ((1 << GATE_SHIFT) - 1)) as usize
    }
}

impl Dag {
    /// An empty graph over another one.
    pub fn over(below: Arc<Dag>) -> Self {
        debug_assert!(below.below.is_none(), "one is below, not several");
        Self { first: below.nodes() as u32, below: Some(below), ..Self::default() }
    }

    /// Lets go of the graph below. What is not below keeps its numbers.
    pub fn detach(self) -> Self {
        Self { below: None, ..self }
    }

    /// The node of a whole expression, its literals renumbered. A single literal becomes an AND of one.
    pub fn root(&mut self, form: &Form, renumbered: &impl Fn(Literal) -> Literal) -> u32 {
        let mut room = std::mem::take(&mut self.room);
        let reference = self.add(form, renumbered, &mut room);
        self.room = room;
        match self.single_test(reference).target() {
            Target::Node(node) => node,
            Target::Literal(_) => unreachable!("a single test is a node"),
        }
    }

    /// Adds a form. `room` is where the children of nodes are until their parent is known; it is left as it was.
    fn add(&mut self, form: &Form, renumbered: &impl Fn(Literal) -> Literal, room: &mut Vec<Ref>) -> Ref {
        let (gate, children) = match form {
            Form::Literal(literal) => return Ref::literal(renumbered(*literal)),
            Form::And(children) => (Gate::And, children),
            Form::Or(children) => (Gate::Or, children),
            // Parities share what is below them.
            _ => return self.add_shared(form, renumbered),
        };
        let start = room.len();
        for child in children {
            let child = self.add(child, renumbered, room);
            room.push(child);
        }
        room[start..].sort_unstable();
        let node = self.intern(gate, &room[start..]);
        room.truncate(start);
        node
    }

    fn add_shared(&mut self, form: &Form, renumbered: &impl Fn(Literal) -> Literal) -> Ref {
        form.fold(&mut |node: Node<'_, Ref>| match node {
            Node::True => self.intern(Gate::And, &[]),
            Node::False => self.intern(Gate::Or, &[]),
            Node::Literal(literal) => Ref::literal(renumbered(literal)),
            Node::And(children) => self.intern_sorted(Gate::And, children),
            Node::Or(children) => self.intern_sorted(Gate::Or, children),
            Node::AtLeast(least, children) => {
                let single: Vec<Ref> = children.iter().map(|child| self.single_test(*child)).collect();
                self.intern_sorted(Gate::AtLeast(least), &single)
            }
            Node::Parity { odd, children } => {
                let pairs: Vec<Ref> =
                    children.iter().flat_map(|(t, f)| [self.single_test(*t), self.single_test(*f)]).collect();
                self.intern(if odd { Gate::OddParity } else { Gate::EvenParity }, &pairs)
            }
        })
    }

    /// Children of parities and thresholds are tested one by one, so a literal there gets a node of its own.
    fn single_test(&mut self, child: Ref) -> Ref {
        match child.target() {
            Target::Node(_) => child,
            Target::Literal(_) => self.intern(Gate::And, &[child]),
        }
    }

    /// The node here that means what `root` means in another graph. `nodes` knows what was imported before,
    /// and `atom` says which numbers the other's atoms have here.
    pub fn import(
        &mut self,
        from: &Dag,
        root: u32,
        nodes: &mut [u32],
        atom: &mut impl FnMut(u32) -> u32,
    ) -> u32 {
        if nodes[root as usize] != NO_NODE {
            return nodes[root as usize];
        }
        for child in from.children(root) {
            if let Target::Node(child) = child.target() {
                self.import(from, child, nodes, atom);
            }
        }
        let mut children: Vec<Ref> =
            from.children(root).iter().map(|child| child.mapped(nodes, atom)).collect();
        let gate = from.gate(root);
        if gate.sorts_children() {
            children.sort_unstable();
        }
        let Target::Node(node) = self.intern(gate, &children).target() else {
            unreachable!("intern returns nodes")
        };
        nodes[root as usize] = node;
        node
    }

    fn intern_sorted(&mut self, gate: Gate, children: &[Ref]) -> Ref {
        let mut sorted = children.to_vec();
        sorted.sort_unstable();
        self.intern(gate, &sorted)
    }

    fn intern(&mut self, gate: Gate, children: &[Ref]) -> Ref {
        Ref::node(self.intern_hashed(hash_node(gate, children.iter().copied()), gate, children))
    }

    fn intern_hashed(&mut self, tag: u32, gate: Gate, children: &[Ref]) -> u32 {
        let below = self.below.as_ref().and_then(|below| below.find(tag, gate, children));
        if let Some(node) = below.or_else(|| self.find(tag, gate, children)) {
            return node;
        }
        let node = self.nodes() as u32;
        self.numbers.insert(tag, node);
        self.heads.push(Head::new(gate, self.children.len(), children.len()));
        if let Gate::AtLeast(least) = gate {
            self.thresholds.push((node, least));
        }
        self.children.extend_from_slice(children);
        node
    }

    fn find(&self, tag: u32, gate: Gate, children: &[Ref]) -> Option<u32> {
        self.numbers.find(tag, |node| self.gate(node) == gate && self.children(node) == children)
    }

    /// Begins to fetch what adding these forms will read. Many at a time, so that their
    /// memory accesses overlap. Only nodes of nothing but literals are known beforehand.
    pub fn fetch<'a>(&self, forms: impl Iterator<Item = &'a Form>) {
        let table = self.below.as_deref().unwrap_or(self);
        let mut tags = Vec::with_capacity(64);
        for form in forms {
            for_each_flat(form, &mut |gate, literals| {
                let tag = hash_node(gate, literals.iter().filter_map(as_literal));
                table.numbers.fetch(tag);
                tags.push(tag);
            });
        }
        let candidates = tags.iter().filter_map(|tag| table.numbers.candidate(*tag));
        let candidates: Vec<u32> =
            candidates.inspect(|node| prefetch(&table.heads[*node as usize])).collect();
        for node in candidates {
            if let Some(child) = table.children(node).first() {
                prefetch(child);
            }
        }
    }

    /// Adds the nodes of a graph that was laid over this one, and says which numbers they have here. `atom` gives those of
    /// atoms. Nodes of one level know nothing of one another, so what they need is fetched together.
    pub fn absorb(&mut self, other: Dag, atom: impl Fn(u32) -> u32) -> Absorbed {
        const TOGETHER: usize = 32;
        debug_assert!(self.below.is_none() && other.first as usize <= self.nodes());
        let first = other.first;
        let mut absorbed = Absorbed { first, nodes: vec![NO_NODE; other.heads.len()] };
        let mut children: Vec<Ref> = vec![];
        for level in other.own_levels() {
            for some in level.chunks(TOGETHER) {
                children.clear();
                let mut planned: Vec<(u32, u32, usize)> = Vec::with_capacity(some.len());
                for node in some {
                    let start = children.len();
                    let gate = other.gate(*node);
                    let mapped = other.children(*node).iter().map(|child| match child.target() {
                        Target::Node(node) => Ref::node(absorbed.node(node)),
                        Target::Literal(literal) => {
                            Ref::literal(Literal::new(atom(literal.atom()), literal.is_negated()))
                        }
                    });
                    children.extend(mapped);
                    if gate.sorts_children() {
                        children[start..].sort_unstable();
                    }
                    let tag = hash_node(gate, children[start..].iter().copied());
                    self.numbers.fetch(tag);
                    planned.push((*node, tag, start));
                }
                let mut ends = planned.iter().skip(1).map(|(_, _, start)| *start).collect::<Vec<_>>();
                ends.push(children.len());
                for ((node, tag, start), end) in planned.into_iter().zip(ends) {
                    let here = self.intern_hashed(tag, other.gate(node), &children[start..end]);
                    absorbed.nodes[(node - first) as usize] = here;
                }
            }
        }
        absorbed
    }

    /// The nodes that are not below, children before parents.
    fn own_levels(&self) -> Vec<Vec<u32>> {
        let mut level_of: Vec<u32> = Vec::with_capacity(self.heads.len());
        let mut levels: Vec<Vec<u32>> = vec![];
        for node in self.first..self.nodes() as u32 {
            let below = self.children(node).iter().filter_map(|child| match child.target() {
                Target::Node(child) if child >= self.first => {
                    Some(level_of[(child - self.first) as usize] + 1)
                }
                _ => None,
            });
            let level = below.max().unwrap_or(0);
            level_of.push(level);
            if levels.len() <= level as usize {
                levels.resize(level as usize + 1, vec![]);
            }
            levels[level as usize].push(node);
        }
        levels
    }

    pub fn child_count(&self) -> usize {
        self.children.len()
    }

    /// Makes room for up to this many more nodes and children.
    pub fn reserve(&mut self, nodes: usize, children: usize) {
        self.heads.reserve_exact(nodes);
        self.children.reserve_exact(children);
    }

    /// Ends the adding of nodes: gives back what only finding them needs.
    pub fn seal(&mut self) {
        self.numbers = NumberTable::default();
        self.heads.shrink_to_fit();
        self.children.shrink_to_fit();
        self.parents = vec![0; self.heads.len()];
        for child in &self.children {
            if let Target::Node(child) = child.target() {
                let parents = &mut self.parents[child as usize];
                *parents = parents.saturating_add(1);
            }
        }
    }

    /// How many nodes the expression of each node had when it was written, the two forms of a parity's child
    /// counted as one.
    pub fn written_nodes(&self) -> Vec<u64> {
        let mut written: Vec<u64> = Vec::with_capacity(self.nodes());
        for node in 0..self.nodes() as u32 {
            let children = self.children(node);
            let step = if matches!(self.gate(node), Gate::OddParity | Gate::EvenParity) { 2 } else { 1 };
            let below = children.iter().step_by(step).map(|child| match child.target() {
                Target::Literal(_) => 1,
                Target::Node(child) => written[child as usize],
            });
            // A node with one child stands for a single literal.
            let own = u64::from(children.len() != 1);
            written.push(below.fold(own, u64::saturating_add));
        }
        written
    }

    /// Bytes on the heap.
    pub fn bytes(&self) -> usize {
        self.heads.capacity() * size_of::<Head>()
            + 4 * self.children.capacity()
            + 8 * self.thresholds.capacity()
            + self.parents.capacity()
            + self.numbers.bytes()
    }

    /// How many distinct nodes there are.
    pub fn nodes(&self) -> usize {
        self.first as usize + self.heads.len()
    }

    pub fn gate(&self, node: u32) -> Gate {
        let home = self.home(node);
        match home.head(node).gate_and_children >> GATE_SHIFT {
            0 => Gate::And,
            1 => Gate::Or,
            2 => Gate::OddParity,
            3 => Gate::EvenParity,
            _ => {
                let at = home.thresholds.partition_point(|(threshold, _)| *threshold < node);
                Gate::AtLeast(home.thresholds[at].1)
            }
        }
    }

    #[inline]
    pub fn children(&self, node: u32) -> &[Ref] {
        let home = self.home(node);
        &home.children[home.head(node).children()]
    }

    /// The graph that holds a node.
    #[inline]
    fn home(&self, node: u32) -> &Dag {
        match &self.below {
            Some(below) if node < self.first => below,
            _ => self,
        }
    }

    #[inline]
    fn head(&self, node: u32) -> &Head {
        &self.heads[(node - self.first) as usize]
    }

    /// How many distinct nodes have this one as a child, up to 255; known once all nodes are there.
    pub fn parents(&self, node: u32) -> u8 {
        self.parents[node as usize]
    }

    /// Forgets all nodes but the first ones, and gives their memory back.
    pub fn truncate(&mut self, nodes: usize) {
        debug_assert!(self.below.is_none());
        if let Some(head) = self.heads.get(nodes) {
            self.children.truncate(head.first_child as usize);
            self.children.shrink_to_fit();
            self.heads.truncate(nodes);
            self.heads.shrink_to_fit();
        }
    }
}

/// Which numbers the nodes of an absorbed graph have.
pub struct Absorbed {
    first: u32,
    nodes: Vec<u32>,
}

impl Absorbed {
    pub fn node(&self, there: u32) -> u32 {
        match there.checked_sub(self.first) {
            Some(own) => self.nodes[own as usize],
            None => there,
        }
    }
}

/// Calls `visit` with every AND and OR that has nothing but literals as children, parities aside.
fn for_each_flat(form: &Form, visit: &mut impl FnMut(Gate, &[Form])) {
    let (gate, children) = match form {
        Form::And(children) => (Gate::And, children),
        Form::Or(children) => (Gate::Or, children),
        _ => return,
    };
    // Literals come before everything else.
    match children.last() {
        Some(Form::Literal(_)) => visit(gate, children),
        _ => children.iter().for_each(|child| for_each_flat(child, visit)),
    }
}

fn as_literal(form: &Form) -> Option<Ref> {
    match form {
        Form::Literal(literal) => Some(Ref::literal(*literal)),
        _ => None,
    }
}

fn hash_node(gate: Gate, children: impl Iterator<Item = Ref>) -> u32 {
    let gate = u64::from(gate.code()) + if let Gate::AtLeast(least) = gate { u64::from(least) } else { 0 };
    let mut hash = gate ^ 0x9E37_79B9_7F4A_7C15;
    for child in children {
        hash = (hash.rotate_left(5) ^ child.0 as u64).wrapping_mul(0x517C_C1B7_2722_0A95);
    }
    tag(hash)
}
