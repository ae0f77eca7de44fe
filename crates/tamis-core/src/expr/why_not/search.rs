//! Branch and bound for [`why_not`](super::why_not).
//!
//! If every predicate occurs once, the least number of changes that make a node true, or false, follows from
//! those of its children. Repeated predicates are decided first, by branch and bound. An undecided one may be
//! true in one place and false in another at no cost. That can only make the count too small, so it is a
//! lower bound. The search has a budget, because with repeated predicates the problem includes
//! satisfiability.

use rustc_hash::FxHashMap;

use crate::expr::ast::{Expr, Outcome, Predicate};
use crate::expr::operators::{Operator, Shape};
use crate::value::{Value, ValueRef};

/// The expression with its nodes in an array, children before parents, and its distinct predicates.
#[derive(Default)]
struct Tree<'e> {
    nodes: Vec<Node>,
    variables: Vec<Variable<'e>>,
    by_identity: FxHashMap<Identity<'e>, usize>,
}

/// A predicate without its weight and its negation, in one form for `<` and `>=`.
type Identity<'e> = (&'e crate::term::Term, Operator, &'e [Value]);

enum Node {
    Constant(Outcome),
    /// A variable; its written form may be the opposite of the variable.
    Leaf {
        variable: usize,
        flipped: bool,
    },
    Not(usize),
    And(Vec<usize>),
    Or(Vec<usize>),
    Xor(Vec<usize>),
    Xnor(Vec<usize>),
    AtLeast(usize, Vec<usize>),
}

/// A distinct predicate, positive, with all places where it or its opposite is written.
struct Variable<'e> {
    now: Outcome,
    /// What it could be for some event: `x = NULL` is never true.
    possible: Outcome,
    /// As written first.
    written: &'e Predicate,
    /// Whether it is written first as the opposite of the variable.
    flipped: bool,
    paths: Vec<Vec<usize>>,
}

impl Variable<'_> {
    fn cost(&self) -> Cost {
        let price = |now: bool, possible: bool| match (now, possible) {
            (true, _) => 0,
            (false, true) => 1,
            (false, false) => NEVER,
        };
        Cost {
            to_true: price(self.now.can_be_true, self.possible.can_be_true),
            to_false: price(self.now.can_be_false, self.possible.can_be_false),
        }
    }
}

/// What the search has settled about a variable.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// Written once: what it costs depends on what its one place needs.
    Free,
    /// Repeated and not decided yet: whatever is needed, at no cost.
    Undecided,
    /// Repeated and decided; paid for where it was decided.
    Decided(Outcome),
}

/// How many changes make a node true, and how many make it false; [`NEVER`] if none do.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Cost {
    to_true: u32,
    to_false: u32,
}

const NEVER: u32 = u32::MAX;

impl Cost {
    /// Of what cannot be changed.
    fn of(outcome: Outcome) -> Self {
        Self {
            to_true: if outcome.can_be_true { 0 } else { NEVER },
            to_false: if outcome.can_be_false { 0 } else { NEVER },
        }
    }

    fn not(self) -> Self {
        Self { to_true: self.to_false, to_false: self.to_true }
    }

    fn and(self, other: Self) -> Self {
        Self {
            to_true: self.to_true.saturating_add(other.to_true),
            to_false: self.to_false.min(other.to_false),
        }
    }

    fn or(self, other: Self) -> Self {
        self.not().and(other.not()).not()
    }

    fn xor(self, other: Self) -> Self {
        let either = |a: (u32, u32), b: (u32, u32)| a.0.saturating_add(a.1).min(b.0.saturating_add(b.1));
        Self {
            to_true: either((self.to_true, other.to_false), (self.to_false, other.to_true)),
            to_false: either((self.to_true, other.to_true), (self.to_false, other.to_false)),
        }
    }

    fn to_be(self, truth: bool) -> u32 {
        if truth { self.to_true } else { self.to_false }
    }
}

impl<'e> Tree<'e> {
    fn add<'a>(
        &mut self,
        expr: &'e Expr,
        path: &mut Vec<usize>,
        value_of: &impl Fn(&str) -> Option<ValueRef<'a>>,
    ) -> usize {
        let mut all = |tree: &mut Self, children: &'e [Expr]| -> Vec<usize> {
            let added = children.iter().enumerate().map(|(at, child)| {
                path.push(at);
                let node = tree.add(child, path, value_of);
                path.pop();
                node
            });
            added.collect()
        };
        let node = match expr {
            Expr::Constant(outcome) => Node::Constant(*outcome),
            Expr::Not(child) => Node::Not(all(self, std::slice::from_ref(child))[0]),
            Expr::And(children) => Node::And(all(self, children)),
            Expr::Or(children) => Node::Or(all(self, children)),
            Expr::Xor(children) => Node::Xor(all(self, children)),
            Expr::Xnor(children) => Node::Xnor(all(self, children)),
            Expr::AtLeast(least, children) => Node::AtLeast(*least, all(self, children)),
            Expr::Predicate(predicate) => {
                let (variable, flipped) =
                    predicate.term.with_value(value_of, |value| self.variable(predicate, value));
                self.variables[variable].paths.push(path.clone());
                Node::Leaf { variable, flipped }
            }
        };
        self.nodes.push(node);
        self.nodes.len() - 1
    }

    /// The variable that a predicate is, and whether it is written as its opposite.
    fn variable(&mut self, predicate: &'e Predicate, value: Option<ValueRef<'_>>) -> (usize, bool) {
        let Predicate { term, operator, negated, operands, .. } = predicate;
        let complement = operator.rules().complement();
        let (operator, flipped) = match complement {
            Some(complement) if complement < *operator => (complement, !negated),
            _ => (*operator, *negated),
        };
        let next = self.variables.len();
        let at = *self.by_identity.entry((term, operator, operands)).or_insert(next);
        if at == next {
            let now = predicate.outcome(value);
            let is_never_true = |operator: Operator| matches!(operator.rules().shape(operands), Shape::Never);
            let possible = Outcome {
                can_be_true: !is_never_true(operator),
                can_be_false: !operator.rules().complement().is_some_and(is_never_true),
            };
            let now = if flipped { !now } else { now };
            self.variables.push(Variable { now, possible, written: predicate, flipped, paths: Vec::new() });
        }
        (at, flipped)
    }

    /// The costs of all nodes, given what is settled about the variables.
    fn costs(&self, states: &[State], costs: &mut Vec<Cost>) {
        costs.clear();
        for node in &self.nodes {
            let cost = match node {
                Node::Constant(outcome) => Cost::of(*outcome),
                Node::Leaf { variable, flipped } => {
                    let cost = match states[*variable] {
                        State::Free => self.variables[*variable].cost(),
                        State::Undecided => Cost { to_true: 0, to_false: 0 },
                        State::Decided(outcome) => Cost::of(outcome),
                    };
                    if *flipped { cost.not() } else { cost }
                }
                Node::Not(child) => costs[*child].not(),
                Node::And(children) => fold(children, costs, Cost::and),
                Node::Or(children) => fold(children, costs, Cost::or),
                Node::Xor(children) => fold(children, costs, Cost::xor),
                Node::Xnor(children) => fold(children, costs, |left, right| left.xor(right).not()),
                Node::AtLeast(least, children) => {
                    let sum = |truth: bool, count: usize| {
                        let cheapest = cheapest(children, costs, truth, count).into_iter();
                        cheapest.fold(0u32, |sum, child| sum.saturating_add(costs[child].to_be(truth)))
                    };
                    Cost { to_true: sum(true, *least), to_false: sum(false, children.len() - least + 1) }
                }
            };
            costs.push(cost);
        }
    }

    /// What each variable becomes, if it changes: as it is settled, or as its one place needs it.
    fn changes(&self, states: &[State], root: usize, costs: &mut Vec<Cost>) -> Vec<Option<bool>> {
        let settled = states.iter().zip(&self.variables).map(|(state, variable)| match state {
            State::Decided(outcome) if *outcome != variable.now => Some(outcome.can_be_true),
            _ => None,
        });
        let mut becomes = settled.collect::<Vec<_>>();
        self.costs(states, costs);
        self.choose(root, true, costs, states, &mut becomes);
        becomes
    }

    /// Follows the cheapest way to make a node true (or false) down to the free variables.
    fn choose(
        &self,
        node: usize,
        truth: bool,
        costs: &[Cost],
        states: &[State],
        becomes: &mut [Option<bool>],
    ) {
        match &self.nodes[node] {
            Node::Constant(_) => {}
            Node::Leaf { variable, flipped } => {
                let truth = truth != *flipped;
                if states[*variable] == State::Free && self.variables[*variable].cost().to_be(truth) > 0 {
                    becomes[*variable] = Some(truth);
                }
            }
            Node::Not(child) => self.choose(*child, !truth, costs, states, becomes),
            Node::And(children) if truth => {
                children.iter().for_each(|child| self.choose(*child, true, costs, states, becomes))
            }
            Node::Or(children) if !truth => {
                children.iter().for_each(|child| self.choose(*child, false, costs, states, becomes))
            }
            Node::And(children) | Node::Or(children) => {
                let cheapest = children.iter().min_by_key(|child| costs[**child].to_be(truth));
                self.choose(*cheapest.expect("children"), truth, costs, states, becomes);
            }
            Node::AtLeast(least, children) => {
                let count = if truth { *least } else { children.len() - least + 1 };
                for child in cheapest(children, costs, truth, count) {
                    self.choose(child, truth, costs, states, becomes);
                }
            }
            Node::Xor(children) | Node::Xnor(children) => {
                let flips = matches!(self.nodes[node], Node::Xnor(_)) && children.len() % 2 == 0;
                self.choose_parity(children, truth != flips, costs, states, becomes);
            }
        }
    }

    /// Makes an odd (or even) number of children true. From the last to the first: which truth of
    /// this child leaves the cheapest rest?
    fn choose_parity(
        &self,
        children: &[usize],
        mut odd: bool,
        costs: &[Cost],
        states: &[State],
        becomes: &mut [Option<bool>],
    ) {
        let none_true = Cost { to_true: NEVER, to_false: 0 };
        let mut before = vec![none_true];
        for child in children {
            before.push(before[before.len() - 1].xor(costs[*child]));
        }
        for (at, child) in children.iter().enumerate().rev() {
            let total =
                |truth: bool| costs[*child].to_be(truth).saturating_add(before[at].to_be(odd != truth));
            let truth = total(true) < total(false);
            self.choose(*child, truth, costs, states, becomes);
            odd = odd != truth;
        }
    }
}

/// This many of the children that are made true (or false) most cheaply.
fn cheapest(children: &[usize], costs: &[Cost], truth: bool, count: usize) -> Vec<usize> {
    let mut sorted = children.to_vec();
    sorted.sort_by_key(|child| costs[*child].to_be(truth));
    sorted.truncate(count);
    sorted
}

fn fold(children: &[usize], costs: &[Cost], combine: impl Fn(Cost, Cost) -> Cost) -> Cost {
    children.iter().map(|child| costs[*child]).reduce(combine).expect("a connective has children")
}

/// Branch and bound over the repeated variables.
pub(super) struct Search<'e> {
    tree: Tree<'e>,
    root: usize,
    /// The most repeated first: they say most about the rest.
    repeated: Vec<usize>,
    states: Vec<State>,
    costs: Vec<Cost>,
    best: Option<Answer>,
    budget_left: usize,
}

struct Answer {
    cost: u32,
    states: Vec<State>,
}

impl<'e> Search<'e> {
    pub(super) fn new<'a>(
        expr: &'e Expr,
        value_of: &impl Fn(&str) -> Option<ValueRef<'a>>,
        budget: usize,
    ) -> Self {
        let mut tree = Tree::default();
        let root = tree.add(expr, &mut Vec::new(), value_of);
        let count = |at: usize| tree.variables[at].paths.len();
        let mut repeated: Vec<usize> = (0..tree.variables.len()).filter(|at| count(*at) > 1).collect();
        repeated.sort_by_key(|at| std::cmp::Reverse(count(*at)));
        let states = vec![State::Free; tree.variables.len()];
        Self { tree, root, repeated, states, costs: Vec::new(), best: None, budget_left: budget }
    }

    pub(super) fn run(&mut self) {
        self.guess();
        self.repeated.iter().for_each(|at| self.states[*at] = State::Undecided);
        self.decide_from(0, 0);
    }

    /// Whether everything was tried that could have been better.
    pub(super) fn is_complete(&self) -> bool {
        self.budget_left > 0
    }

    /// The variables that change in the best answer, with what their predicate as
    /// [`written`](Self::written) becomes.
    pub(super) fn answer(&self) -> Option<Vec<(usize, bool)>> {
        let best = self.best.as_ref()?;
        let becomes = self.tree.changes(&best.states, self.root, &mut Vec::new());
        let changed = becomes.into_iter().enumerate();
        Some(
            changed.filter_map(|(at, truth)| Some((at, truth? != self.tree.variables[at].flipped))).collect(),
        )
    }

    /// The predicate of a variable at the first of its places.
    pub(super) fn written(&self, variable: usize) -> &'e Predicate {
        self.tree.variables[variable].written
    }

    pub(super) fn paths(&self, variable: usize) -> &[Vec<usize>] {
        &self.tree.variables[variable].paths
    }

    /// A first answer, if luck has it: what would be chosen if every place were on its own.
    fn guess(&mut self) {
        let Self { tree, root, costs, .. } = self;
        tree.costs(&self.states, costs);
        if costs[*root].to_true == NEVER {
            return;
        }
        let becomes = tree.changes(&self.states, *root, costs);
        let mut states = self.states.clone();
        let mut paid = 0;
        for &at in &self.repeated {
            let outcome = becomes[at].map_or(tree.variables[at].now, Outcome::from);
            states[at] = State::Decided(outcome);
            paid += u32::from(becomes[at].is_some());
        }
        tree.costs(&states, costs);
        let cost = costs[*root].to_true.saturating_add(paid);
        if cost != NEVER {
            self.best = Some(Answer { cost, states });
        }
    }

    /// Tries all that is left to decide, having paid `paid` for what is decided.
    fn decide_from(&mut self, at: usize, paid: u32) {
        self.budget_left = self.budget_left.saturating_sub(self.tree.nodes.len());
        self.tree.costs(&self.states, &mut self.costs);
        let bound = paid.saturating_add(self.costs[self.root].to_true);
        if bound == NEVER || self.best.as_ref().is_some_and(|best| best.cost <= bound) {
            return;
        }
        let Some(&variable) = self.repeated.get(at) else {
            self.best = Some(Answer { cost: bound, states: self.states.clone() });
            return;
        };
        let now = self.tree.variables[variable].now;
        let cost = self.tree.variables[variable].cost();
        let keep = Some((now, 0));
        let to_true = (cost.to_true == 1).then_some((Outcome::TRUE, 1));
        let to_false = (cost.to_false == 1).then_some((Outcome::FALSE, 1));
        for (outcome, price) in [keep, to_true, to_false].into_iter().flatten() {
            if self.budget_left == 0 {
                break;
            }
            self.states[variable] = State::Decided(outcome);
            self.decide_from(at + 1, paid + price);
        }
        self.states[variable] = State::Undecided;
    }
}
