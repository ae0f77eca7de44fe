//! Searches for an event that makes one expression true, and another one true, or not true.
//!
//! Each attribute takes one of finitely many [cells](super::cells); a choice of one cell for every attribute
//! is an event. The search keeps, for each attribute, the cells that are still possible, and drops a cell if
//! the expressions cannot have the wanted truths with it, whatever the others are. For conjunctions this
//! alone decides; otherwise the attribute with the fewest cells left is split. A budget bounds the work,
//! because the problem includes satisfiability.
//!
//! Events are points here: an interval can satisfy `x < 3 AND x > 5`, which no event of points does.

use std::sync::Arc;

use super::cells::{Cell, Truths, cells};
use crate::event::{Terms, Value};
use crate::expr::atoms::AtomTable;
use crate::expr::{Expr, Outcome};

/// What was found out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Proven.
    Yes,
    /// Disproven.
    No,
    /// The budget ran out, or patterns say too little of themselves.
    Unknown,
}

impl std::ops::Not for Answer {
    type Output = Self;

    fn not(self) -> Self {
        match self {
            Answer::Yes => Answer::No,
            Answer::No => Answer::Yes,
            Answer::Unknown => Answer::Unknown,
        }
    }
}

/// How many steps (evaluations of one node for one cell) a decision may take unless told otherwise:
/// a few milliseconds.
pub const BUDGET: usize = 1_000_000;

/// What the second expression is to be while the first is true.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Second {
    True,
    NotTrue,
}

/// Whether some event makes `first` true and `second` as wanted.
pub(super) fn is_possible(first: &Expr, second: &Expr, wanted: Second, budget: usize) -> Answer {
    find(first, second, wanted, budget).0
}

/// The attributes that are present, and their values.
pub type ExampleEvent = Vec<(Arc<str>, Value)>;

/// The same, with such an event if there is one.
pub(super) fn find(
    first: &Expr,
    second: &Expr,
    wanted: Second,
    budget: usize,
) -> (Answer, Option<ExampleEvent>) {
    let mut pair = ExpressionPair::default();
    let first = pair.compile(first);
    let second = pair.compile(second);
    let Some(mut search) = Search::new(&pair, first, second, wanted, budget) else {
        return (Answer::Unknown, None);
    };
    let all = search.cells.iter().map(|cells| (0..cells.len()).collect()).collect();
    match search.run(all) {
        // Computed terms were given values of their own, which may not follow from those of the attributes, and an
        // example cannot say what time it is.
        Outlook::Found(_) if pair.terms.has_computed() || pair.terms.needs_now() => (Answer::Unknown, None),
        Outlook::Found(chosen) => {
            let names = pair.terms.attributes().cloned();
            let values =
                search.cells.iter().zip(chosen).map(|(cells, at)| cells[at].example.clone().flatten());
            let present = names.zip(values).filter_map(|(name, value)| Some((name, value?)));
            (Answer::Yes, Some(present.collect()))
        }
        Outlook::Exhausted => (Answer::Unknown, None),
        Outlook::Nothing if search.is_unsure => (Answer::Unknown, None),
        Outlook::Nothing => (Answer::No, None),
    }
}

/// Both expressions, over atoms that they share.
#[derive(Default)]
struct ExpressionPair {
    terms: Terms,
    atoms: AtomTable,
    /// Children before parents.
    nodes: Vec<Node>,
}

enum Node {
    Constant(Truths),
    Atom { atom: usize, negated: bool },
    Not(usize),
    And(Vec<usize>),
    Or(Vec<usize>),
    Xor(Vec<usize>),
    Xnor(Vec<usize>),
    AtLeast(usize, Vec<usize>),
}

impl ExpressionPair {
    fn compile(&mut self, expr: &Expr) -> usize {
        let mut all = |children: &[Expr]| children.iter().map(|child| self.compile(child)).collect();
        let node = match expr {
            Expr::Constant(outcome) => Node::Constant(Truths::of(*outcome)),
            Expr::Not(child) => Node::Not(self.compile(child)),
            Expr::And(children) => Node::And(all(children)),
            Expr::Or(children) => Node::Or(all(children)),
            Expr::Xor(children) => Node::Xor(all(children)),
            Expr::Xnor(children) => Node::Xnor(all(children)),
            Expr::AtLeast(least, children) => Node::AtLeast(*least, all(children)),
            Expr::Predicate(predicate) => {
                let attribute = self.terms.intern_term(&predicate.term);
                let atom = self.atoms.intern(attribute, predicate.operator, &predicate.operands);
                Node::Atom { atom: atom as usize, negated: predicate.negated }
            }
        };
        self.nodes.push(node);
        self.nodes.len() - 1
    }
}

struct Search<'q> {
    nodes: &'q [Node],
    first: usize,
    second: usize,
    wanted: Second,
    /// For each attribute, its atoms and its cells.
    atoms: Vec<Vec<usize>>,
    cells: Vec<Vec<Cell>>,
    /// What each atom can be in the branch that is being looked at.
    states: Vec<Truths>,
    truths: Vec<Truths>,
    budget: usize,
    /// An event was possible as far as could be told, but none was found.
    is_unsure: bool,
}

enum Outlook {
    /// One cell for each attribute.
    Found(Vec<usize>),
    Nothing,
    Exhausted,
}

impl<'q> Search<'q> {
    fn new(
        pair: &'q ExpressionPair,
        first: usize,
        second: usize,
        wanted: Second,
        mut budget: usize,
    ) -> Option<Self> {
        let mut atoms = vec![vec![]; pair.terms.len()];
        for (at, atom) in pair.atoms.iter().enumerate() {
            atoms[atom.attribute.0 as usize].push(at);
        }
        let cells = atoms
            .iter()
            .map(|group| cells(group.iter().map(|at| pair.atoms.atom(*at as u32)).collect(), &mut budget))
            .collect::<Option<Vec<_>>>()?;
        Some(Self {
            nodes: &pair.nodes,
            first,
            second,
            wanted,
            atoms,
            cells,
            states: vec![Truths::NONE; pair.atoms.len()],
            truths: Vec::with_capacity(pair.nodes.len()),
            budget,
            is_unsure: false,
        })
    }

    /// Looks for an event within these cells of each attribute.
    fn run(&mut self, mut left: Vec<Vec<usize>>) -> Outlook {
        for (attribute, cells) in left.iter().enumerate() {
            self.allow(attribute, cells);
        }
        if !self.can_be_as_wanted() {
            return Outlook::Nothing;
        }
        for (attribute, cells) in left.iter_mut().enumerate() {
            let mut possible = Vec::with_capacity(cells.len());
            for &cell in &*cells {
                if self.budget < self.nodes.len() {
                    return Outlook::Exhausted;
                }
                self.budget -= self.nodes.len();
                self.allow(attribute, &[cell]);
                if self.can_be_as_wanted() {
                    possible.push(cell);
                }
            }
            if possible.is_empty() {
                return Outlook::Nothing;
            }
            self.allow(attribute, &possible);
            *cells = possible;
        }
        if let Some(chosen) = self.guess(&left) {
            return Outlook::Found(chosen);
        }
        let open = (0..left.len()).filter(|attribute| left[*attribute].len() > 1);
        let Some(split) = open.min_by_key(|attribute| left[*attribute].len()) else {
            self.is_unsure = true;
            return Outlook::Nothing;
        };
        for cell in std::mem::take(&mut left[split]) {
            left[split] = vec![cell];
            match self.run(left.clone()) {
                Outlook::Nothing => {}
                decided => return decided,
            }
        }
        Outlook::Nothing
    }

    /// Lets an attribute be in any of these cells.
    fn allow(&mut self, attribute: usize, allowed: &[usize]) {
        for (place, &atom) in self.atoms[attribute].iter().enumerate() {
            let truths = allowed.iter().map(|cell| self.cells[attribute][*cell].truths[place]);
            self.states[atom] = truths.fold(Truths::NONE, Truths::or_also);
        }
    }

    /// The first cell of each attribute that is not empty, if together they make an event that will do.
    fn guess(&mut self, left: &[Vec<usize>]) -> Option<Vec<usize>> {
        let mut chosen = Vec::with_capacity(left.len());
        for (attribute, cells) in left.iter().enumerate() {
            let cell = *cells.iter().find(|cell| self.cells[attribute][**cell].example.is_some())?;
            self.allow(attribute, &[cell]);
            chosen.push(cell);
        }
        self.can_be_as_wanted().then_some(chosen)
    }

    /// Whether the expressions can be as wanted, given what the atoms can be. Exact when each can be one
    /// thing only.
    fn can_be_as_wanted(&mut self) -> bool {
        let truths = &mut self.truths;
        truths.clear();
        for node in self.nodes {
            let fold = |children: &[usize], connective: fn(Outcome, Outcome) -> Outcome| {
                let children = children.iter().map(|child| truths[*child]);
                children
                    .reduce(|left, right| left.combine(right, connective))
                    .expect("a connective has children")
            };
            let possible = match node {
                Node::Constant(truth) => *truth,
                Node::Atom { atom, negated: false } => self.states[*atom],
                Node::Atom { atom, negated: true } => !self.states[*atom],
                Node::Not(child) => !truths[*child],
                Node::And(children) => fold(children, Outcome::and),
                Node::Or(children) => fold(children, Outcome::or),
                Node::Xor(children) => fold(children, Outcome::xor),
                Node::Xnor(children) => fold(children, |left, right| !left.xor(right)),
                Node::AtLeast(least, children) => {
                    let children: Vec<Truths> = children.iter().map(|child| truths[*child]).collect();
                    Truths::at_least(*least, &children)
                }
            };
            truths.push(possible);
        }
        let second = match self.wanted {
            Second::True => Truths::TRUE,
            Second::NotTrue => Truths::FALSE.or_also(Truths::UNDEFINED),
        };
        truths[self.first].can_be(Truths::TRUE) && truths[self.second].can_be(second)
    }
}
