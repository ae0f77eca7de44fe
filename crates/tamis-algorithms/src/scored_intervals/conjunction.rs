//! The conjunctions of an index: their predicates, with the intervals and weights of each.

use crate::ranked::{Extent, Scored, ScoredInterval};
use crate::span::Span;
use tamis_core::event::{Event, TermId, Terms};
use tamis_core::expr::{Atom, Expr, Literal, Predicate, Shape};
use tamis_core::query::weight_of;
use tamis_core::{Error, Result, Subscription};

pub struct Conjunction {
    leaves: Box<[(Literal, Atom)]>,
    /// One for each attribute, sorted.
    pub dimensions: Box<[Dimension]>,
    pub priority: f64,
}

/// Where the predicates of a conjunction on one attribute lie.
#[derive(Clone, Copy)]
pub struct Dimension {
    pub attribute: TermId,
    /// Holds every value for which all of them are true.
    all: Extent,
    /// Holds every value for which any of them is.
    any: Extent,
    /// Their total weight.
    weight: f64,
}

impl Conjunction {
    /// An error for anything but a conjunction of intervals.
    pub fn new(subscription: &Subscription, terms: &mut Terms) -> Result<Self> {
        let mut predicates = vec![];
        collect(&subscription.expression, true, &mut predicates)?;
        let leaf = |(predicate, is_wanted): &(&Predicate, bool)| {
            let atom = Atom {
                attribute: terms.intern_term(&predicate.term),
                operator: predicate.operator,
                operands: predicate.operands.clone(),
            };
            let literal = Literal::new(0, predicate.negated == *is_wanted);
            let span = Span::of_literal(literal, &atom);
            let extent = Extent { low: span.low, high: span.high };
            let weight = weight_of(predicate, &subscription.weights);
            let dimension = Dimension { attribute: atom.attribute, all: extent, any: extent, weight };
            ((literal, atom), dimension)
        };
        let (leaves, mut dimensions): (Vec<_>, Vec<_>) = predicates.iter().map(leaf).unzip();
        dimensions.sort_by_key(|dimension| dimension.attribute);
        dimensions.dedup_by(|next, first| first.absorb(next));
        Ok(Self { leaves: leaves.into(), dimensions: dimensions.into(), priority: subscription.priority })
    }

    /// Whether all predicates are true; adds how many were evaluated.
    pub fn is_true(&self, event: &Event<'_>, evaluations: &mut u64) -> bool {
        self.leaves.iter().all(|(literal, atom)| {
            *evaluations += 1;
            literal.holds(atom.outcome(event.get(atom.attribute)))
        })
    }

    pub fn terms(&self) -> Box<[TermId]> {
        self.dimensions.iter().map(|dimension| dimension.attribute).collect()
    }

    /// What the exact index of a dimension holds of it.
    pub fn exact(&self, row: u32, at: usize) -> ScoredInterval {
        // -0.0 and 0.0 are one score.
        let scored = Scored { score: self.priority + 0.0, id: row.into() };
        ScoredInterval { extent: self.dimensions[at].all, scored }
    }

    pub fn bytes(&self) -> usize {
        size_of_val(&*self.dimensions)
            + size_of_val(&*self.leaves)
            + self.leaves.iter().map(|(_, atom)| size_of_val(&*atom.operands)).sum::<usize>()
    }
}

impl Dimension {
    /// What the relaxed index of its attribute holds of it.
    pub fn relaxed(&self, row: u32) -> ScoredInterval {
        ScoredInterval { extent: self.any, scored: Scored { score: self.weight + 0.0, id: row.into() } }
    }

    /// Takes in a dimension of the same attribute. Where they have nothing in common no point satisfies both,
    /// and it does not matter where they lie.
    fn absorb(&mut self, next: &Dimension) -> bool {
        if self.attribute != next.attribute {
            return false;
        }
        let all = Extent { low: self.all.low.max(next.all.low), high: self.all.high.min(next.all.high) };
        self.all = if all.low <= all.high { all } else { self.all };
        self.any = self.any.hull(next.any);
        self.weight += next.weight;
        true
    }
}

/// The predicates of a conjunction, each with what it must be.
fn collect<'a>(expr: &'a Expr, is_wanted: bool, into: &mut Vec<(&'a Predicate, bool)>) -> Result<()> {
    match (expr, is_wanted) {
        (Expr::Predicate(predicate), _) if is_interval(predicate, is_wanted) => {
            into.push((predicate, is_wanted));
            Ok(())
        }
        (Expr::Predicate(predicate), _) => Err(unsupported(&format!(
            "`{}` is compared by {}{:?}",
            predicate.term,
            if predicate.negated == is_wanted { "NOT " } else { "" },
            predicate.operator
        ))),
        (Expr::And(children), true) | (Expr::Or(children), false) => {
            children.iter().try_for_each(|child| collect(child, is_wanted, into))
        }
        (Expr::Not(child), _) => collect(child, !is_wanted, into),
        (Expr::Constant(_), _) => Err(unsupported("a constant has no attribute")),
        (Expr::Or(_) | Expr::And(_), _) => Err(unsupported("it has alternatives")),
        (Expr::Xor(_) | Expr::Xnor(_), _) => Err(unsupported("it has XOR or XNOR")),
        (Expr::AtLeast(..), _) => Err(unsupported("it has a threshold")),
    }
}

/// Whether a predicate is true for the values of one interval and nothing else.
fn is_interval(predicate: &Predicate, is_wanted: bool) -> bool {
    let operator = match predicate.negated == is_wanted {
        false => Some(predicate.operator),
        true => predicate.operator.rules().complement(),
    };
    let shape = operator.map(|operator| operator.rules().shape(&predicate.operands));
    matches!(shape, Some(Shape::Range { .. } | Shape::Points([_])))
}

fn unsupported(why: &str) -> Error {
    Error::Unsupported(format!(
        "the algorithm \"interval\" holds conjunctions of intervals only (BETWEEN, =, <, <=, >, >=), and {why}; \
         \"auto\" and \"a-tree\" hold every expression"
    ))
}
