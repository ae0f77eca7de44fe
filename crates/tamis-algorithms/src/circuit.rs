//! An expression as a small acyclic graph of gates: the input of the published algorithms.
//!
//! It stays close to the written expression, because that is what the papers index: nested nodes of the same
//! operator are merged, duplicates and constants are removed, and nothing else is simplified. Every step is exact
//! for interval events too. The [`normal form`](tamis_core::expr::normal_form) does more, for the production index.
//!
//! Negations are either kept as gates, or pushed down to the leaves ([`Negations`]). Pushing them down
//! replaces `a XOR b` by `(a AND NOT b) OR (NOT a AND b)`. Both polarities of a child are shared gates, so
//! nested XORs grow linearly here. Written as a tree they grow exponentially: [`Circuit::tree_leaves`] gives the
//! size of that tree in advance. Thresholds, which the papers do not have, are expanded to shared ANDs and
//! ORs; those that need more than [`MAX_THRESHOLD_GATES`] are refused.

use rustc_hash::FxHashMap;

use super::predicates::Predicates;
use tamis_core::event::{Terms, Value};
use tamis_core::expr::{Expr, Literal, Operator, Outcome, Predicate};
use tamis_core::term::Term;
use tamis_core::{Error, Result};

/// One node; children are gates that come before it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Gate {
    True,
    False,
    /// Neither true nor false; only where negations are kept.
    Undefined,
    Leaf(u32),
    And(Vec<u32>),
    Or(Vec<u32>),
    // Only where negations are kept. Xor and Xnor mean their left fold.
    Not(u32),
    Xor(Vec<u32>),
    Xnor(Vec<u32>),
}

/// A predicate of the expression, or its negation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Leaf<'a> {
    pub term: &'a Term,
    pub operator: Operator,
    pub operands: &'a [Value],
    pub negated: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Negations {
    Kept,
    PushedDown,
}

pub struct Circuit<'a> {
    pub gates: Vec<Gate>,
    /// Distinct.
    pub leaves: Vec<Leaf<'a>>,
    pub root: u32,
}

/// The gates of a circuit without negations, written out as a tree.
#[derive(Clone, Debug, PartialEq)]
pub enum Tree {
    Leaf(Literal),
    And(Vec<Tree>),
    Or(Vec<Tree>),
}

/// How many gates one threshold may become.
pub const MAX_THRESHOLD_GATES: usize = 1 << 16;

/// Refuses an expression with a threshold that would become too many gates.
fn check_thresholds(expr: &Expr) -> Result<()> {
    match expr {
        Expr::Constant(_) | Expr::Predicate(_) => Ok(()),
        Expr::Not(child) => check_thresholds(child),
        Expr::And(children) | Expr::Or(children) | Expr::Xor(children) | Expr::Xnor(children) => {
            children.iter().try_for_each(check_thresholds)
        }
        Expr::AtLeast(least, children) => {
            let gates = least.saturating_mul(children.len() - least + 1);
            if gates > MAX_THRESHOLD_GATES {
                return Err(Error::Unsupported(format!(
                    "AT LEAST {least} OF {} expressions takes {gates} ANDs and ORs, and the published algorithms expand \
                     a threshold to at most {MAX_THRESHOLD_GATES}; \"auto\" holds it as it is",
                    children.len()
                )));
            }
            children.iter().try_for_each(check_thresholds)
        }
    }
}

impl<'a> Circuit<'a> {
    /// The circuit of an expression; an error if a threshold would make it too large.
    pub fn checked(expr: &'a Expr, negations: Negations) -> Result<Self> {
        check_thresholds(expr)?;
        Ok(Self::new(expr, negations))
    }

    fn new(expr: &'a Expr, negations: Negations) -> Self {
        let mut builder = Builder {
            negations,
            gates: vec![],
            leaves: vec![],
            gate_of: FxHashMap::default(),
            leaf_of: FxHashMap::default(),
            done: FxHashMap::default(),
        };
        let root = builder.gate(expr, true);
        let mut circuit = Self { gates: builder.gates, leaves: builder.leaves, root };
        circuit.drop_unreachable();
        circuit
    }

    /// Drops the polarity of an XOR that nobody asked for, and what else was folded away.
    fn drop_unreachable(&mut self) {
        let mut is_needed = vec![false; self.gates.len()];
        is_needed[self.root as usize] = true;
        let mut gate_at = vec![0; self.gates.len()];
        for at in (0..=self.root as usize).rev() {
            if is_needed[at] {
                self.gates[at].for_each_child(&mut |child| is_needed[*child as usize] = true);
            }
        }
        let (gates, leaves) = (std::mem::take(&mut self.gates), std::mem::take(&mut self.leaves));
        for (at, mut gate) in gates.into_iter().enumerate().filter(|(at, _)| is_needed[*at]) {
            if let Gate::Leaf(leaf) = &mut gate {
                self.leaves.push(leaves[*leaf as usize]);
                *leaf = self.leaves.len() as u32 - 1;
            }
            gate.for_each_child(&mut |child| *child = gate_at[*child as usize]);
            gate_at[at] = self.gates.len() as u32;
            self.gates.push(gate);
        }
        self.root = gate_at[self.root as usize];
    }

    pub fn root(&self) -> &Gate {
        &self.gates[self.root as usize]
    }

    /// The literals of the leaves, in their order, each used once more.
    pub fn acquire(&self, predicates: &mut Predicates, terms: &mut Terms) -> Vec<Literal> {
        let leaves = self.leaves.iter();
        leaves
            .map(|leaf| {
                let term = terms.intern_term(leaf.term);
                predicates.acquire(term, leaf.operator, leaf.operands, leaf.negated)
            })
            .collect()
    }

    /// How many leaves the circuit has when it is written as a tree.
    pub fn tree_leaves(&self) -> u64 {
        self.count(|gate, counts| match gate {
            Gate::Leaf(_) => 1,
            Gate::And(children) | Gate::Or(children) | Gate::Xor(children) | Gate::Xnor(children) => {
                children.iter().fold(0, |sum, &child| sum.saturating_add(counts[child as usize]))
            }
            Gate::Not(child) => counts[*child as usize],
            Gate::True | Gate::False | Gate::Undefined => 0,
        })
    }

    /// How many conjunctions the disjunctive normal form has.
    pub fn conjunctions(&self) -> u64 {
        self.count(|gate, counts| match gate {
            Gate::And(children) => {
                children.iter().fold(1, |product, &child| product.saturating_mul(counts[child as usize]))
            }
            Gate::Or(children) => {
                children.iter().fold(0, |sum, &child| sum.saturating_add(counts[child as usize]))
            }
            _ => 1,
        })
    }

    fn count(&self, of: impl Fn(&Gate, &[u64]) -> u64) -> u64 {
        let mut counts = Vec::with_capacity(self.gates.len());
        for gate in &self.gates {
            let count = of(gate, &counts);
            counts.push(count);
        }
        counts[self.root as usize]
    }

    /// The tree, or `None` for a constant. Check [`tree_leaves`](Self::tree_leaves) first.
    pub fn tree(&self, literals: &[Literal]) -> Option<Tree> {
        match self.root() {
            Gate::True | Gate::False => None,
            _ => Some(self.tree_at(self.root, literals)),
        }
    }

    fn tree_at(&self, gate: u32, literals: &[Literal]) -> Tree {
        let trees = |children: &[u32]| children.iter().map(|&child| self.tree_at(child, literals)).collect();
        match &self.gates[gate as usize] {
            Gate::Leaf(leaf) => Tree::Leaf(literals[*leaf as usize]),
            Gate::And(children) => Tree::And(trees(children)),
            Gate::Or(children) => Tree::Or(trees(children)),
            _ => unreachable!("negations are pushed down and constants folded"),
        }
    }
}

impl Gate {
    fn for_each_child(&mut self, visit: &mut impl FnMut(&mut u32)) {
        match self {
            Gate::True | Gate::False | Gate::Undefined | Gate::Leaf(_) => {}
            Gate::Not(child) => visit(child),
            Gate::And(children) | Gate::Or(children) | Gate::Xor(children) | Gate::Xnor(children) => {
                children.iter_mut().for_each(visit);
            }
        }
    }
}

impl Tree {
    /// Calls `visit` with every leaf, from left to right.
    pub fn for_each_leaf(&self, visit: &mut impl FnMut(Literal)) {
        match self {
            Tree::Leaf(literal) => visit(*literal),
            Tree::And(children) | Tree::Or(children) => {
                children.iter().for_each(|child| child.for_each_leaf(visit));
            }
        }
    }
}

struct Builder<'a> {
    negations: Negations,
    gates: Vec<Gate>,
    leaves: Vec<Leaf<'a>>,
    gate_of: FxHashMap<Gate, u32>,
    leaf_of: FxHashMap<Leaf<'a>, u32>,
    /// XORs that were built, by address and polarity: a nest of them asks for each of them often.
    done: FxHashMap<(*const Expr, bool), u32>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Connective {
    And,
    Or,
}

impl<'a> Builder<'a> {
    /// The gate that is true when `expr` is true (`polarity`) or when it is false.
    fn gate(&mut self, expr: &'a Expr, polarity: bool) -> u32 {
        match expr {
            Expr::Constant(outcome) => self.constant(*outcome, polarity),
            Expr::Predicate(predicate) => self.leaf(predicate, polarity),
            Expr::Not(child) if self.negations == Negations::Kept => {
                let child = self.gate(child, true);
                self.not(child)
            }
            Expr::Not(child) => self.gate(child, !polarity),
            Expr::And(children) | Expr::Or(children) => {
                let gates = children.iter().map(|child| self.gate(child, polarity)).collect();
                let connective =
                    if matches!(expr, Expr::And(_)) == polarity { Connective::And } else { Connective::Or };
                self.connect(connective, gates)
            }
            Expr::AtLeast(least, children) => {
                if let Some(&gate) = self.done.get(&(std::ptr::from_ref(expr), polarity)) {
                    return gate;
                }
                let least = if polarity { *least } else { children.len() - least + 1 };
                let gates: Vec<u32> = children.iter().map(|child| self.gate(child, polarity)).collect();
                let gate = self.expanded_threshold(least, &gates);
                self.done.insert((expr, polarity), gate);
                gate
            }
            Expr::Xor(children) | Expr::Xnor(children) => {
                if let Some(&gate) = self.done.get(&(std::ptr::from_ref(expr), polarity)) {
                    return gate;
                }
                let is_xor = matches!(expr, Expr::Xor(_));
                let gate = match self.negations {
                    Negations::Kept => self.kept_xor(children, is_xor),
                    Negations::PushedDown => {
                        // The left fold of XNOR is the XOR of all, negated if their number is even.
                        let odd = polarity == (is_xor || children.len() % 2 == 1);
                        self.expanded_xor(children, odd)
                    }
                };
                self.done.insert((expr, polarity), gate);
                gate
            }
        }
    }

    fn put(&mut self, gate: Gate) -> u32 {
        if let Some(&at) = self.gate_of.get(&gate) {
            return at;
        }
        let at = self.gates.len() as u32;
        self.gates.push(gate.clone());
        self.gate_of.insert(gate, at);
        at
    }

    fn constant(&mut self, outcome: Outcome, polarity: bool) -> u32 {
        let outcome = if polarity { outcome } else { !outcome };
        let gate = match (outcome.can_be_true, outcome.can_be_false) {
            (true, _) => Gate::True,
            (false, false) if self.negations == Negations::Kept => Gate::Undefined,
            _ => Gate::False,
        };
        self.put(gate)
    }

    fn leaf(&mut self, predicate: &'a Predicate, polarity: bool) -> u32 {
        let Predicate { term, operator, operands, .. } = predicate;
        let negated = predicate.negated == polarity;
        let complement = if negated { operator.rules().complement() } else { None };
        let (operator, negated) = match complement {
            Some(complement) => (complement, false),
            None => (*operator, negated),
        };
        let leaf = Leaf { term, operator, operands, negated };
        let leaves = &mut self.leaves;
        let number = *self.leaf_of.entry(leaf).or_insert_with(|| {
            leaves.push(leaf);
            leaves.len() as u32 - 1
        });
        self.put(Gate::Leaf(number))
    }

    fn not(&mut self, child: u32) -> u32 {
        let gate = match &self.gates[child as usize] {
            Gate::True => Gate::False,
            Gate::False => Gate::True,
            Gate::Undefined => Gate::Undefined,
            Gate::Not(inner) => return *inner,
            _ => Gate::Not(child),
        };
        self.put(gate)
    }

    /// Flattens, folds constants, removes duplicates; the order stays as it was written.
    fn connect(&mut self, connective: Connective, gates: Vec<u32>) -> u32 {
        let (neutral, deciding) = match connective {
            Connective::And => (Gate::True, Gate::False),
            Connective::Or => (Gate::False, Gate::True),
        };
        let mut children: Vec<u32> = Vec::with_capacity(gates.len());
        let mut seen = rustc_hash::FxHashSet::default();
        for gate in gates {
            match (&self.gates[gate as usize], connective) {
                (Gate::And(nested), Connective::And) | (Gate::Or(nested), Connective::Or) => {
                    children.extend(nested.iter().filter(|child| seen.insert(**child)));
                }
                (gate, _) if *gate == deciding => return self.put(deciding),
                (gate, _) if *gate == neutral => {}
                _ if seen.insert(gate) => children.push(gate),
                _ => {}
            }
        }
        match children[..] {
            [] => self.put(neutral),
            [only] => only,
            _ => self.put(match connective {
                Connective::And => Gate::And(children),
                Connective::Or => Gate::Or(children),
            }),
        }
    }

    fn kept_xor(&mut self, children: &'a [Expr], is_xor: bool) -> u32 {
        let mut flip = !is_xor && children.len().is_multiple_of(2);
        let mut gates = vec![];
        for child in children {
            let gate = self.gate(child, true);
            match &self.gates[gate as usize] {
                Gate::True => flip = !flip,
                Gate::False => {}
                Gate::Undefined => return gate,
                _ => gates.push(gate),
            }
        }
        let even = gates.len().is_multiple_of(2);
        match (&gates[..], flip) {
            ([], flip) => self.put(if flip { Gate::True } else { Gate::False }),
            ([only], false) => *only,
            ([only], true) => self.not(*only),
            (_, false) => self.put(Gate::Xor(gates)),
            (_, true) if even => self.put(Gate::Xnor(gates)),
            (_, true) => {
                let xor = self.put(Gate::Xor(gates));
                self.not(xor)
            }
        }
    }

    /// At least n of the children from here on: n of the others, or this one and n - 1 of the others. Gates are shared, so
    /// there are no more than n (m - n + 1) of these. It is monotone, so it is undefined exactly when the threshold is.
    fn expanded_threshold(&mut self, least: usize, children: &[u32]) -> u32 {
        let (always, never) = (self.put(Gate::True), self.put(Gate::False));
        // By how many are still needed.
        let mut from_here: Vec<u32> = vec![never; least + 1];
        from_here[0] = always;
        for (at, &child) in children.iter().enumerate().rev() {
            // Those before can give no more than one each.
            for needed in (least.saturating_sub(at).max(1)..=least.min(children.len() - at)).rev() {
                let with_this = self.connect(Connective::And, vec![child, from_here[needed - 1]]);
                from_here[needed] = self.connect(Connective::Or, vec![from_here[needed], with_this]);
            }
        }
        from_here[least]
    }

    /// The gate that is true when an odd (or even) number of children is true and the others are false.
    fn expanded_xor(&mut self, children: &'a [Expr], odd: bool) -> u32 {
        let mut so_far = (self.gate(&children[0], true), self.gate(&children[0], false));
        for (at, child) in children.iter().enumerate().skip(1) {
            let (is_true, is_false) = (self.gate(child, true), self.gate(child, false));
            // The last step needs one polarity only.
            let is_last = at + 1 == children.len();
            let mut join = |a: (u32, u32), b: (u32, u32)| {
                let cases = [a, b].map(|(x, y)| self.connect(Connective::And, vec![x, y]));
                self.connect(Connective::Or, cases.to_vec())
            };
            let differ = |join: &mut dyn FnMut((u32, u32), (u32, u32)) -> u32| {
                join((so_far.0, is_false), (so_far.1, is_true))
            };
            let agree = |join: &mut dyn FnMut((u32, u32), (u32, u32)) -> u32| {
                join((so_far.0, is_true), (so_far.1, is_false))
            };
            so_far = match (is_last, odd) {
                (true, true) => (differ(&mut join), 0),
                (true, false) => (0, agree(&mut join)),
                (false, _) => (differ(&mut join), agree(&mut join)),
            };
        }
        if odd { so_far.0 } else { so_far.1 }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use tamis_core::expr::testing::{any_event, any_expr, any_interval_event, compare, lookup};
    use tamis_core::expr::{evaluate, parse};

    fn outcome(circuit: &Circuit<'_>, of_leaf: &impl Fn(&Leaf<'_>) -> Outcome) -> Outcome {
        let mut outcomes: Vec<Outcome> = vec![];
        for gate in &circuit.gates {
            let each = |children: &[u32]| children.iter().map(|&c| outcomes[c as usize]).collect::<Vec<_>>();
            let outcome = match gate {
                Gate::True => Outcome::TRUE,
                Gate::False => Outcome::FALSE,
                Gate::Undefined => Outcome::UNDEFINED,
                Gate::Leaf(leaf) => of_leaf(&circuit.leaves[*leaf as usize]),
                Gate::And(children) => each(children).into_iter().reduce(Outcome::and).unwrap(),
                Gate::Or(children) => each(children).into_iter().reduce(Outcome::or).unwrap(),
                Gate::Not(child) => !outcomes[*child as usize],
                Gate::Xor(children) => each(children).into_iter().reduce(Outcome::xor).unwrap(),
                Gate::Xnor(children) => each(children).into_iter().reduce(|a, b| !a.xor(b)).unwrap(),
            };
            outcomes.push(outcome);
        }
        outcomes[circuit.root as usize]
    }

    proptest! {
        #[test]
        fn both_ways_mean_what_was_written(
            expr in any_expr(4), event in prop_oneof![any_event(), any_interval_event()]
        ) {
            let expected = evaluate(&expr, &lookup(&event));
            let of_leaf = |leaf: &Leaf<'_>| {
                let value = event.get(leaf.term.name()).map(|value| value.as_ref());
                let outcome = leaf.operator.outcome(value, leaf.operands);
                if leaf.negated { !outcome } else { outcome }
            };
            let kept = Circuit::new(&expr, Negations::Kept);
            prop_assert_eq!(outcome(&kept, &of_leaf), expected);
            let pushed = Circuit::new(&expr, Negations::PushedDown);
            prop_assert_eq!(outcome(&pushed, &of_leaf).can_be_true, expected.can_be_true);
            for gate in &pushed.gates {
                prop_assert!(!matches!(gate, Gate::Not(_) | Gate::Xor(_) | Gate::Xnor(_) | Gate::Undefined));
            }
        }
    }

    #[test]
    fn a_nest_of_xors_is_linear_as_a_circuit_and_exponential_as_a_tree() {
        let mut expr = compare("a", "=", 0);
        for value in 1..60 {
            expr = Expr::Xor(vec![expr, compare("a", "=", value)]);
        }
        let circuit = Circuit::new(&expr, Negations::PushedDown);
        assert!(circuit.gates.len() < 60 * 8, "{}", circuit.gates.len());
        assert_eq!(circuit.leaves.len(), 120);
        assert!(circuit.tree_leaves() > 1 << 59);
        assert!(circuit.conjunctions() > 1 << 58);
    }

    #[test]
    fn the_order_stays_as_it_was_written() {
        let expr =
            parse("b = 1 AND (c = 2 AND a = 3) AND (NOT (x < 1 OR b = 2) OR b = 1) AND b = 1").unwrap();
        let circuit = Circuit::new(&expr, Negations::PushedDown);
        let literals: Vec<Literal> = (0..circuit.leaves.len() as u32).map(Literal).collect();
        let leaf = |n: u32| Tree::Leaf(Literal(n));
        let inner = Tree::Or(vec![Tree::And(vec![leaf(3), leaf(4)]), leaf(0)]);
        assert_eq!(circuit.tree(&literals), Some(Tree::And(vec![leaf(0), leaf(1), leaf(2), inner])));
        assert_eq!(circuit.leaves[3].operator, Operator::GREATER_OR_EQUAL);
        assert!(circuit.leaves[4].negated);
        assert_eq!((circuit.tree_leaves(), circuit.conjunctions()), (6, 2));
    }
}
