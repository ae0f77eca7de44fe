//! Binary decision diagrams (Bryant 1986; Campailla et al. 2001): one shared, reduced, ordered diagram for
//! all expressions.
//!
//! An expression is a graph of tests: each node tests one predicate and has a branch for each outcome. Equal
//! parts of all expressions share a node, and tests whose outcome does not matter are left out. An event walks one
//! path from every distinct root to TRUE or FALSE.
//!
//! ```text
//! a AND (b OR c)          a ──no──► FALSE
//!                         │yes
//!                         b ──yes─► TRUE
//!                         │no
//!                         c ──yes─► TRUE, no ─► FALSE
//! ```
//!
//! Both p and NOT p can be undefined, and an interval can satisfy both, so they are separate variables:
//! diagrams are built from literals, after negations have been pushed down. Variables are ordered by
//! the number of their literal. A diagram can be exponentially larger than its expression: at a limit,
//! building stops and the expression is refused.

mod diagram;

use rustc_hash::FxHashMap;

use self::diagram::{Apply, Diagram, TooLarge};
use super::algorithm::Algorithm;
use super::circuit::{Circuit, Gate, Negations};
use super::options;
use super::predicates::{Predicates, Satisfied};
use super::short_list::ShortList;
use tamis_core::engine::contract::Work;
use tamis_core::event::{Event, Terms, Value};
use tamis_core::expr::Literal;
use tamis_core::fork::Mutex;
use tamis_core::{Error, Result, Subscription};

/// A diagram is built recursively, one level per predicate.
const MAX_PREDICATES: usize = 2048;

pub struct Bdd {
    /// How many nodes may be made on the way to one diagram.
    max_nodes: usize,
    predicates: Predicates,
    diagram: Diagram,
    /// The distinct roots and the rows of each.
    roots: Vec<(u32, ShortList)>,
    place_of: FxHashMap<u32, u32>,
    root_of: Vec<u32>,
    scratch: Mutex<Vec<Satisfied>>,
}

impl Default for Bdd {
    fn default() -> Self {
        Self {
            max_nodes: 100_000,
            predicates: Predicates::default(),
            diagram: Diagram::default(),
            roots: vec![],
            place_of: FxHashMap::default(),
            root_of: vec![],
            scratch: Mutex::default(),
        }
    }
}

impl Bdd {
    /// The root of an expression, gates from the leaves up.
    fn build(&mut self, circuit: &Circuit<'_>, literals: &[Literal]) -> Result<u32, TooLarge> {
        let mut apply = Apply::new(&mut self.diagram, self.max_nodes);
        let mut roots: Vec<u32> = Vec::with_capacity(circuit.gates.len());
        for gate in &circuit.gates {
            let of = |children: &[u32]| children.iter().map(|&child| roots[child as usize]).collect();
            let root = match gate {
                Gate::True => Ok(diagram::TRUE),
                Gate::False => Ok(diagram::FALSE),
                Gate::Leaf(leaf) => apply.variable(literals[*leaf as usize]),
                Gate::And(children) => apply.all(of(children)),
                Gate::Or(children) => apply.any(of(children)),
                _ => unreachable!("negations are pushed down"),
            };
            match root {
                Ok(root) => roots.push(root),
                Err(error) => {
                    apply.give_up();
                    return Err(error);
                }
            }
        }
        let root = roots[circuit.root as usize];
        for literal in apply.keep(root) {
            self.predicates.acquire_again(literal);
        }
        Ok(root)
    }
}

impl Algorithm for Bdd {
    fn insert(&mut self, row: u32, subscription: &Subscription, terms: &mut Terms) -> Result<()> {
        let circuit = Circuit::checked(&subscription.expression, Negations::PushedDown)?;
        if circuit.leaves.len() > MAX_PREDICATES {
            return Err(Error::Unsupported(format!(
                "a decision diagram is built for at most {MAX_PREDICATES} distinct predicates, and this expression \
                 has {}; \"auto\" and \"a-tree\" hold it",
                circuit.leaves.len()
            )));
        }
        let literals = circuit.acquire(&mut self.predicates, terms);
        let built = self.build(&circuit, &literals);
        literals.into_iter().for_each(|literal| self.predicates.release(literal));
        let root = built.map_err(|TooLarge| {
            Error::Unsupported(format!(
                "the decision diagram of this expression takes more than {} nodes to build (option `max_nodes`); \
                 \"auto\" and \"a-tree\" hold it",
                self.max_nodes
            ))
        })?;
        let place = *self.place_of.entry(root).or_insert_with(|| {
            self.roots.push((root, ShortList::default()));
            self.roots.len() as u32 - 1
        });
        self.roots[place as usize].1.push(row);
        if self.root_of.len() <= row as usize {
            self.root_of.resize(row as usize + 1, diagram::FALSE);
        }
        self.root_of[row as usize] = root;
        Ok(())
    }

    fn remove(&mut self, row: u32, _: &Subscription, _: &Terms) {
        let root = std::mem::replace(&mut self.root_of[row as usize], diagram::FALSE);
        let place = self.place_of[&root] as usize;
        self.roots[place].1.remove(row);
        if self.roots[place].1.is_empty() {
            self.place_of.remove(&root);
            self.roots.swap_remove(place);
            if let Some((moved, _)) = self.roots.get(place) {
                self.place_of.insert(*moved, place as u32);
            }
        }
        self.diagram.release(root, &mut |literal| self.predicates.release(literal));
    }

    fn matches(&self, event: &Event<'_>, _: &Terms, found: &mut dyn FnMut(u32)) -> Work {
        let mut satisfied = self.scratch.lock().pop().unwrap_or_default();
        self.predicates.satisfied(event, &mut satisfied);
        let mut work = Work { candidates: self.roots.len() as u64, ..Work::default() };
        for (root, rows) in &self.roots {
            let (truth, steps) = self.diagram.is_true(*root, |literal| satisfied.holds(literal));
            work.evaluations += steps;
            if truth {
                rows.as_slice().iter().for_each(|&row| found(row));
            }
        }
        self.scratch.lock().push(satisfied);
        work
    }

    fn bytes(&self) -> Vec<(&'static str, usize)> {
        let rows: usize = self.roots.iter().map(|(_, rows)| rows.heap_bytes()).sum();
        vec![
            ("predicates", self.predicates.bytes()),
            ("diagram", self.diagram.bytes()),
            (
                "rows",
                self.roots.capacity() * size_of::<(u32, ShortList)>()
                    + rows
                    + self.place_of.capacity() * size_of::<(u32, u32)>()
                    + self.root_of.capacity() * size_of::<u32>(),
            ),
        ]
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        vec![
            ("predicates", self.predicates.len() as u64),
            ("nodes", self.diagram.len() as u64),
            ("roots", self.roots.len() as u64),
        ]
    }

    fn set_option(&mut self, name: &str, value: &Value) -> Result<()> {
        match name {
            "predicates" => self.predicates = Predicates::with_matcher(options::text(name, value)?)?,
            "max_nodes" => self.max_nodes = options::size(name, value)? as usize,
            _ => return Err(options::unknown(name, &["predicates", "max_nodes"])),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tamis_core::Id;
    use tamis_core::expr::parse;

    fn subscription(text: &str) -> Subscription {
        Subscription::new(Id::Int(0), parse(text).unwrap())
    }

    fn count(bdd: &Bdd, name: &str) -> u64 {
        bdd.counters().into_iter().find(|(counter, _)| *counter == name).unwrap().1
    }

    #[test]
    fn equal_functions_are_one_root() {
        let (mut bdd, mut terms) = (Bdd::default(), Terms::default());
        let texts = ["a AND (b OR c)", "a AND b OR c AND a", "(c OR b OR c) AND a AND (a OR d)"];
        for (row, text) in texts.into_iter().enumerate() {
            bdd.insert(row as u32, &subscription(text), &mut terms).unwrap();
        }
        // d does not matter; three questions are left.
        assert_eq!([count(&bdd, "roots"), count(&bdd, "nodes"), count(&bdd, "predicates")], [1, 3, 3]);
        for (row, text) in texts.into_iter().enumerate() {
            bdd.remove(row as u32, &subscription(text), &terms);
        }
        assert_eq!([count(&bdd, "roots"), count(&bdd, "nodes"), count(&bdd, "predicates")], [0, 0, 0]);
    }

    #[test]
    fn a_predicate_and_its_negation_are_two_variables() {
        let (mut bdd, mut terms) = (Bdd::default(), Terms::default());
        bdd.insert(0, &subscription("a = 1 OR NOT a = 1"), &mut terms).unwrap();
        assert_eq!(count(&bdd, "nodes"), 2, "an absent attribute makes neither true");
    }

    #[test]
    fn diagrams_that_grow_too_large_are_refused_and_leave_nothing_behind() {
        let (mut bdd, mut terms) = (Bdd::default(), Terms::default());
        bdd.set_option("max_nodes", &Value::Int(200)).unwrap();
        bdd.insert(0, &subscription("x0 AND y0"), &mut terms).unwrap();
        let before = bdd.counters();
        // With all x before all y, the diagram remembers every x.
        let all = |name: &str| (0..8).map(|at| format!("{name}{at}")).collect::<Vec<_>>();
        let pairs: Vec<String> = (0..8).map(|at| format!("x{at} AND y{at}")).collect();
        let order = format!("({}) AND ({})", all("x").join(" OR "), all("y").join(" OR "));
        let text = format!("({order}) AND ({})", pairs.join(" OR "));
        let error = bdd.insert(1, &subscription(&text), &mut terms).unwrap_err();
        assert!(matches!(error, Error::Unsupported(_)));
        assert!(error.to_string().contains("more than 200 nodes"), "{error}");
        assert_eq!(bdd.counters(), before);
    }
}
