//! A-Tree (Ji and Jacobsen 2021): all expressions in one graph, evaluated from the predicates upwards.
//!
//! Equal subexpressions share one node, in whatever order their parts were written. An event starts at the leaves
//! of the predicates it satisfies, and results travel to the parents, level by level, so that each node is
//! evaluated at most once. Because of two optimisations, most nodes are not touched at all:
//!
//! - *Zero suppression.* Negations are pushed down to the predicates first; AND and OR then only need to know
//!   about *true*, and *false* is never sent. Without it, three values are sent (two bits, in fact: an
//!   interval can be both true and false).
//! - *Propagation on demand.* One child of an AND, its access child, reports to it. When that one is true the
//!   AND looks up the others. This is only correct if no parent needs to know that the AND is false: without
//!   zero suppression, an AND below a NOT, XOR or XNOR gets reports from all its children.
//!
//! ```text
//! level 3            AND s1          AND s2                  s1: (p1 OR p2 OR p3) AND p4 AND (p5 OR p6)
//!                  ╱  │   ╲        ╱   ╲                     s2: (p5 OR p6) AND (p7 OR p8)
//! level 2        OR   │     ╲    ╱      OR
//!              ╱ │ ╲  │      OR        ╱  ╲
//! level 1    p1 p2 p3 p4    ╱  ╲      p7  p8
//!                          p5  p6
//! ```
//!
//! | file | question |
//! |---|---|
//! | `graph.rs` | what is a node, who reports to whom, at which level? |
//! | `build.rs` | which node is this expression? (Algorithms 1 to 4) |
//! | `remove.rs` | what goes when a subscription goes? (Algorithm 5) |
//! | `matching.rs` | which expressions are true? (Algorithm 6, Table 2) |
//! | `identity.rs` | when are two expressions the same? |
//!
//! Where the published algorithms leave something open or are wrong, a comment says what is done instead.

mod build;
#[cfg(test)]
mod check;
mod graph;
mod identity;
mod matching;
mod remove;
#[cfg(test)]
mod tests;

use rustc_hash::FxHashMap;

use self::graph::{Graph, NONE};
use self::matching::Scratch;
use super::algorithm::Algorithm;
use super::circuit::{Circuit, Gate, Negations};
use super::options;
use super::predicates::Predicates;
use tamis_core::engine::contract::Work;
use tamis_core::event::{Event, Terms, Value};
use tamis_core::fork::Mutex;
use tamis_core::{Result, Subscription};

/// The options of the paper's micro-experiments.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Equal subexpressions are one node.
    sharing: bool,
    /// AND and OR have as many children as were written, or two.
    shape: Shape,
    /// A new expression is put together from nodes that exist (Algorithm 2).
    reorganize: bool,
    /// Nodes that exist take a new node as their child (Algorithm 3).
    self_adjust: bool,
    zero_suppression: bool,
    propagation_on_demand: bool,
    /// Nodes are found by the paper's arithmetic ids.
    published_ids: bool,
    /// How many parents of one node are looked at when nodes to share are searched.
    search_limit: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    Multitree,
    Binary,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            sharing: true,
            shape: Shape::Multitree,
            reorganize: true,
            self_adjust: true,
            zero_suppression: true,
            propagation_on_demand: true,
            published_ids: false,
            search_limit: 64,
        }
    }
}

const OPTIONS: &[&str] = &[
    "predicates",
    "sharing",
    "shape",
    "reorganize",
    "self_adjust",
    "zero_suppression",
    "propagation_on_demand",
    "published_ids",
    "search_limit",
];

#[derive(Default)]
pub struct ATree {
    settings: Settings,
    predicates: Predicates,
    graph: Graph,
    /// The node of each row, or `NONE`.
    node_of: Vec<u32>,
    /// Rows that are true, or not, for every event.
    constant: FxHashMap<u32, bool>,
    scratch: Mutex<Vec<Scratch>>,
}

impl Algorithm for ATree {
    fn insert(&mut self, row: u32, subscription: &Subscription, terms: &mut Terms) -> Result<()> {
        let negations = if self.settings.zero_suppression { Negations::PushedDown } else { Negations::Kept };
        let circuit = Circuit::checked(&subscription.expression, negations)?;
        if matches!(circuit.root(), Gate::True | Gate::False | Gate::Undefined) {
            self.constant.insert(row, *circuit.root() == Gate::True);
            return Ok(());
        }
        let node = self.insert_circuit(&circuit, terms);
        if self.node_of.len() <= row as usize {
            self.node_of.resize(row as usize + 1, NONE);
        }
        self.node_of[row as usize] = node;
        self.graph.nodes[node as usize].rows.push(row);
        Ok(())
    }

    fn remove(&mut self, row: u32, _: &Subscription, _: &Terms) {
        if self.constant.remove(&row).is_some() {
            return;
        }
        let node = std::mem::replace(&mut self.node_of[row as usize], NONE);
        self.graph.nodes[node as usize].rows.remove(row);
        self.drop_use(node);
    }

    fn matches(&self, event: &Event<'_>, _: &Terms, found: &mut dyn FnMut(u32)) -> Work {
        self.constant.iter().filter(|(_, is_true)| **is_true).for_each(|(row, _)| found(*row));
        let mut scratch = self.scratch.lock().pop().unwrap_or_default();
        self.predicates.satisfied(event, &mut scratch.satisfied);
        let work = self.propagate(&mut scratch, found);
        self.scratch.lock().push(scratch);
        work
    }

    fn bytes(&self) -> Vec<(&'static str, usize)> {
        let mut parts = vec![("predicates", self.predicates.bytes())];
        parts.extend(self.graph.bytes());
        parts.push(("rows", self.node_of.capacity() * size_of::<u32>()));
        parts
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        vec![
            ("predicates", self.predicates.len() as u64),
            ("nodes", self.graph.len() as u64),
            ("links", self.graph.links() as u64),
            ("levels", self.graph.highest_level() as u64),
            ("reorganized", self.graph.reorganized),
            ("adjusted", self.graph.adjusted),
            ("id_collisions", self.graph.identities.collisions),
        ]
    }

    fn set_option(&mut self, name: &str, value: &Value) -> Result<()> {
        let settings = &mut self.settings;
        match name {
            "predicates" => self.predicates = Predicates::with_matcher(options::text(name, value)?)?,
            "sharing" => settings.sharing = options::boolean(name, value)?,
            "shape" => {
                settings.shape = match options::choice(name, value, &["multitree", "binary"])? {
                    0 => Shape::Multitree,
                    _ => Shape::Binary,
                }
            }
            "reorganize" => settings.reorganize = options::boolean(name, value)?,
            "self_adjust" => settings.self_adjust = options::boolean(name, value)?,
            "zero_suppression" => settings.zero_suppression = options::boolean(name, value)?,
            "propagation_on_demand" => settings.propagation_on_demand = options::boolean(name, value)?,
            "published_ids" => settings.published_ids = options::boolean(name, value)?,
            "search_limit" => settings.search_limit = options::size(name, value)? as usize,
            _ => return Err(options::unknown(name, OPTIONS)),
        }
        Ok(())
    }
}

impl Settings {
    /// Whether nodes of one operator may be put together from others of the same operator.
    fn may_regroup(&self) -> bool {
        self.sharing && self.shape == Shape::Multitree
    }
}
