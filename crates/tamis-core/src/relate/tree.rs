//! Expressions without NOT, as Bittner (2008) prunes and compares them.
//!
//! NOT is pushed into the predicates, AND and OR alternate, constants are folded, weights are dropped.
//! Nothing else is rewritten: repeated predicates stay repeated, and XOR and XNOR stay whole, each one leaf,
//! since expanding them can double the tree at every level. So the tree is *true* exactly when the expression
//! is, for every event, including events with intervals.

use rustc_hash::FxHashMap;

use crate::event::Terms;
use crate::expr::atoms::{AtomTable, Literal};
use crate::expr::{Expr, Outcome, Predicate};

/// A leaf of trees that share one [`Leaves`]; equal leaves have equal numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LeafId(pub u32);

/// `And` and `Or` have two children or more, none a constant and none of the same connective.
#[derive(Clone, Debug, PartialEq)]
pub enum Tree {
    True,
    False,
    Leaf(LeafId),
    And(Vec<Tree>),
    Or(Vec<Tree>),
}

/// What a leaf is.
pub enum Leaf {
    /// A predicate or its negation.
    Literal(Literal),
    /// An XOR or XNOR, or its negation.
    Part(Box<Expr>),
}

/// The distinct leaves of a set of expressions, numbered in order of first use.
#[derive(Default)]
pub struct Leaves {
    terms: Terms,
    atoms: AtomTable,
    leaves: Vec<Leaf>,
    literals: FxHashMap<Literal, LeafId>,
    /// By their text, which is equal for equal parts.
    parts: FxHashMap<String, LeafId>,
}

impl Leaves {
    pub fn len(&self) -> usize {
        self.leaves.len()
    }

    pub fn ids(&self) -> impl Iterator<Item = LeafId> + use<> {
        (0..self.leaves.len() as u32).map(LeafId)
    }

    pub fn leaf(&self, id: LeafId) -> &Leaf {
        &self.leaves[id.0 as usize]
    }

    pub fn atoms(&self) -> &AtomTable {
        &self.atoms
    }

    pub fn terms(&self) -> &Terms {
        &self.terms
    }

    /// The tree of an expression.
    pub fn tree(&mut self, expr: &Expr) -> Tree {
        self.tree_of(expr, true)
    }

    /// The number that a leaf of others has here, if it has one.
    pub fn find(&self, others: &Leaves, id: LeafId) -> Option<LeafId> {
        match others.leaf(id) {
            Leaf::Part(part) => self.parts.get(&part.to_string()).copied(),
            Leaf::Literal(literal) => {
                let atom = others.atoms.atom(literal.atom());
                let attribute = self.terms.find(others.terms.term(atom.attribute))?;
                let atom = self.atoms.get(attribute, atom.operator, &atom.operands)?;
                self.literals.get(&Literal::new(atom, literal.is_negated())).copied()
            }
        }
    }

    /// The leaf as an expression.
    pub fn expr(&self, id: LeafId) -> Expr {
        match self.leaf(id) {
            Leaf::Part(part) => (**part).clone(),
            Leaf::Literal(literal) => {
                let atom = self.atoms.atom(literal.atom());
                let has_negated_form = atom.operator.rules().syntax().has_negated_form();
                let predicate = Expr::Predicate(Predicate {
                    term: self.terms.term(atom.attribute).clone(),
                    operator: atom.operator,
                    negated: literal.is_negated() && has_negated_form,
                    operands: atom.operands.clone(),
                    weight: None,
                });
                match literal.is_negated() && !has_negated_form {
                    true => Expr::Not(Box::new(predicate)),
                    false => predicate,
                }
            }
        }
    }

    /// The tree as an expression.
    pub fn written(&self, tree: &Tree) -> Expr {
        let all = |children: &[Tree]| children.iter().map(|child| self.written(child)).collect();
        match tree {
            Tree::True => Expr::Constant(Outcome::TRUE),
            Tree::False => Expr::Constant(Outcome::FALSE),
            Tree::Leaf(id) => self.expr(*id),
            Tree::And(children) => Expr::And(all(children)),
            Tree::Or(children) => Expr::Or(all(children)),
        }
    }

    /// True when `expr` is true, or, without `polarity`, when it is false.
    fn tree_of(&mut self, expr: &Expr, polarity: bool) -> Tree {
        match expr {
            Expr::Constant(outcome) => {
                match if polarity { outcome.can_be_true } else { outcome.can_be_false } {
                    true => Tree::True,
                    false => Tree::False,
                }
            }
            Expr::Predicate(predicate) => Tree::Leaf(self.literal(predicate, polarity)),
            Expr::Not(child) => self.tree_of(child, !polarity),
            Expr::And(children) | Expr::Or(children) => {
                let trees = children.iter().map(|child| self.tree_of(child, polarity)).collect();
                if matches!(expr, Expr::And(_)) == polarity { Tree::and(trees) } else { Tree::or(trees) }
            }
            Expr::Xor(_) | Expr::Xnor(_) | Expr::AtLeast(..) => {
                let part = if polarity { expr.clone() } else { Expr::Not(Box::new(expr.clone())) };
                Tree::Leaf(self.part(part))
            }
        }
    }

    fn literal(&mut self, predicate: &Predicate, polarity: bool) -> LeafId {
        let negated = predicate.negated == polarity;
        let complement = if negated { predicate.operator.rules().complement() } else { None };
        let attribute = self.terms.intern_term(&predicate.term);
        let operator = complement.unwrap_or(predicate.operator);
        let atom = self.atoms.intern(attribute, operator, &predicate.operands);
        let literal = Literal::new(atom, negated && complement.is_none());
        *self.literals.entry(literal).or_insert_with(|| {
            self.leaves.push(Leaf::Literal(literal));
            LeafId(self.leaves.len() as u32 - 1)
        })
    }

    fn part(&mut self, part: Expr) -> LeafId {
        *self.parts.entry(part.to_string()).or_insert_with(|| {
            self.leaves.push(Leaf::Part(Box::new(part)));
            LeafId(self.leaves.len() as u32 - 1)
        })
    }
}

impl Tree {
    /// The AND of trees: flattened, constants folded, a single child standing for itself.
    pub fn and(children: Vec<Tree>) -> Tree {
        let mut joined = Vec::with_capacity(children.len());
        for child in children {
            match child {
                Tree::True => {}
                Tree::False => return Tree::False,
                Tree::And(nested) => joined.extend(nested),
                other => joined.push(other),
            }
        }
        match joined.len() {
            0 => Tree::True,
            1 => joined.remove(0),
            _ => Tree::And(joined),
        }
    }

    /// The OR of trees, likewise.
    pub fn or(children: Vec<Tree>) -> Tree {
        let mut joined = Vec::with_capacity(children.len());
        for child in children {
            match child {
                Tree::False => {}
                Tree::True => return Tree::True,
                Tree::Or(nested) => joined.extend(nested),
                other => joined.push(other),
            }
        }
        match joined.len() {
            0 => Tree::False,
            1 => joined.remove(0),
            _ => Tree::Or(joined),
        }
    }

    /// Calls `visit` with every leaf, from left to right.
    pub fn for_each_leaf(&self, visit: &mut impl FnMut(LeafId)) {
        match self {
            Tree::True | Tree::False => {}
            Tree::Leaf(id) => visit(*id),
            Tree::And(children) | Tree::Or(children) => {
                children.iter().for_each(|child| child.for_each_leaf(visit))
            }
        }
    }

    /// Whether the tree is true, given which leaves are.
    pub fn is_true(&self, holds: &impl Fn(LeafId) -> bool) -> bool {
        match self {
            Tree::True => true,
            Tree::False => false,
            Tree::Leaf(id) => holds(*id),
            Tree::And(children) => children.iter().all(|child| child.is_true(holds)),
            Tree::Or(children) => children.iter().any(|child| child.is_true(holds)),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::expr::testing::{any_expr, any_interval_event, lookup};
    use crate::expr::{evaluate, parse};

    fn rewritten(text: &str) -> String {
        let mut leaves = Leaves::default();
        let tree = leaves.tree(&parse(text).unwrap());
        leaves.written(&tree).to_string()
    }

    #[test]
    fn not_goes_into_predicates_and_connectives_alternate() {
        assert_eq!(rewritten("NOT (a < 1 OR NOT (b = 2 AND c))"), "a >= 1 AND b = 2 AND c");
        assert_eq!(
            rewritten("NOT (a IN (1, 2) AND startswith(b, 'x'))"),
            "a NOT IN (1, 2) OR NOT startswith(b, 'x')"
        );
        assert_eq!(rewritten("NOT (a XOR b) AND TRUE AND (x)^0.4"), "NOT (a XOR b) AND x");
        assert_eq!(rewritten("a = 1 AND (NULL OR FALSE)"), "FALSE");
        assert_eq!(rewritten("(a OR (b OR c)) AND (a AND a)"), "(a OR b OR c) AND a AND a");
    }

    proptest! {
        #[test]
        fn the_tree_is_true_when_the_expression_is(expr in any_expr(4), event in any_interval_event()) {
            let mut leaves = Leaves::default();
            let tree = leaves.tree(&expr);
            let lookup = lookup(&event);
            let truth = evaluate(&expr, &lookup).can_be_true;
            prop_assert_eq!(evaluate(&leaves.written(&tree), &lookup).can_be_true, truth);
            let holds = |id| evaluate(&leaves.expr(id), &lookup).can_be_true;
            prop_assert_eq!(tree.is_true(&holds), truth);
            // What is written back is read as the same tree, with the same leaves.
            let again = leaves.written(&tree);
            prop_assert_eq!(leaves.tree(&again), tree);
        }
    }
}
