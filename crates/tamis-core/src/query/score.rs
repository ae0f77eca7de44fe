//! The definition of scores, computed on one expression as it was written.
//!
//! NOT is pushed down to the predicates and XOR is expanded into AND and OR; nothing is simplified and no
//! repetition is removed. Then
//!
//! - a predicate that is true counts its boost, else the subscription's weight for its attribute, else 1,
//!   times the event's weight for the attribute; `NOT p` is a predicate of its own, with the weight of p;
//! - for a path with weights, that number is multiplied by the score of its best embedding in the document;
//! - AND adds its children, OR and AT LEAST add their true children, from left to right in 64-bit floats;
//! - what is not true counts 0, and so do constants.
//!
//! Expanding n XORs in a row would take 2ⁿ terms, and it is not necessary: with the scores of each operand when it is
//! true and when it is false ([`Sides`]), those of the XOR follow from `(a AND NOT b) OR (NOT a AND b)`. Scoring is
//! therefore linear in the size of the written expression. Only for interval values can both cases of an XOR be true;
//! then both count.

use rustc_hash::FxHashSet;

use super::function::Function;
use crate::error::{Error, Result};
use crate::event::ValueRef;
use crate::expr::{Expr, Outcome, Predicate};
use crate::suggest::suggest;
use std::sync::Arc;

/// The score by which matches are ranked.
#[derive(Clone, Debug, PartialEq)]
pub enum Score {
    /// The fixed score of each subscription.
    Priority,
    /// The sum of the weights of what is true.
    Relevance,
    /// The same over every true predicate, of which one is enough to match.
    Relaxed,
    /// A monotone function of what each attribute contributes to the relevance.
    Function(Arc<Function>),
}

impl Score {
    /// A score by its name, or else a function of contributions.
    ///
    /// ```
    /// use tamis_core::query::Score;
    /// assert_eq!(Score::named("relevance").unwrap(), Score::Relevance);
    /// assert_eq!(Score::named("min(a, b)").unwrap().text(), "min(a, b)");
    /// ```
    pub fn named(text: &str) -> Result<Self> {
        match text {
            "priority" => Ok(Score::Priority),
            "relevance" => Ok(Score::Relevance),
            "relaxed" => Ok(Score::Relaxed),
            // A lone name is more likely a slip than a function.
            name if name.chars().all(|letter| letter.is_alphanumeric() || letter == '_') => {
                let meant = match suggest(name, ["priority", "relevance", "relaxed"]) {
                    Some(known) => format!("did you mean {known:?}? "),
                    None => String::new(),
                };
                Err(Error::Argument(format!(
                    "there is no score {name:?}: {meant}matches are scored by \"priority\", \"relevance\", \"relaxed\" \
                     or a function of terms such as \"min(a, b) + 0.5 * c\"; for one attribute write \"1 * {name}\""
                )))
            }
            function => Function::parse(function).map(|function| Score::Function(Arc::new(function))),
        }
    }

    /// The text that [`named`](Self::named) reads.
    pub fn text(&self) -> &str {
        match self {
            Score::Priority => "priority",
            Score::Relevance => "relevance",
            Score::Relaxed => "relaxed",
            Score::Function(function) => function.text(),
        }
    }
}

/// How many of the best are wanted unless a query says so.
pub const DEFAULT_K: usize = 10;

/// How many of the best matches are wanted, and by which score.
#[derive(Clone, Debug, PartialEq)]
pub struct Ranking {
    pub k: usize,
    pub score: Score,
    /// Matches with a lower score are left out; negative infinity for no minimum.
    pub min_score: f64,
    /// The attributes that count, or all of them. The others count 0, and make no relaxed match.
    pub dimensions: Option<Vec<Box<str>>>,
}

impl Default for Ranking {
    fn default() -> Self {
        Self::new(DEFAULT_K, Score::Priority)
    }
}

impl Ranking {
    pub fn new(k: usize, score: Score) -> Self {
        Self { k, score, min_score: f64::NEG_INFINITY, dimensions: None }
    }
}

/// What is added up: a number, or one number per attribute of interest.
pub trait Amount: Clone + Default {
    fn add(&mut self, other: &Self);
    /// Multiplies by a finite number that is not negative.
    fn multiply(&mut self, by: f64);
}

impl Amount for f64 {
    fn add(&mut self, other: &Self) {
        *self += other;
    }

    fn multiply(&mut self, by: f64) {
        // Infinity times nothing is nothing.
        *self = if by == 0.0 { 0.0 } else { *self * by };
    }
}

/// By position; missing ones are 0.
impl Amount for Vec<f64> {
    fn add(&mut self, other: &Self) {
        if self.len() < other.len() {
            self.resize(other.len(), 0.0);
        }
        for (sum, part) in self.iter_mut().zip(other) {
            *sum += part;
        }
    }

    fn multiply(&mut self, by: f64) {
        self.iter_mut().for_each(|part| part.multiply(by));
    }
}

/// A node of an expression: whether it can be true and false, and what counts in either case.
#[derive(Clone, Debug)]
struct Sides<A> {
    outcome: Outcome,
    /// Zero unless it can be true.
    if_true: A,
    /// Zero unless it can be false.
    if_false: A,
}

impl<A> std::ops::Not for Sides<A> {
    type Output = Self;

    fn not(self) -> Self {
        Self { outcome: !self.outcome, if_true: self.if_false, if_false: self.if_true }
    }
}

impl<A: Amount> Sides<A> {
    /// AND: true if all are, and then all count; false if some are, and then those count.
    fn all(children: impl Iterator<Item = Self>) -> Self {
        let mut sides = Self { outcome: Outcome::TRUE, if_true: A::default(), if_false: A::default() };
        for child in children {
            sides.outcome = sides.outcome.and(child.outcome);
            sides.if_true.add(&child.if_true);
            sides.if_false.add(&child.if_false);
        }
        if !sides.outcome.can_be_true {
            sides.if_true = A::default();
        }
        sides
    }

    /// A threshold: what it needs to be true or false counts, and all the more of it.
    fn at_least(least: usize, children: Vec<Self>) -> Self {
        let outcome = Outcome::at_least(least, children.iter().map(|child| child.outcome));
        let mut sides = Self { outcome, if_true: A::default(), if_false: A::default() };
        for child in &children {
            if outcome.can_be_true {
                sides.if_true.add(&child.if_true);
            }
            if outcome.can_be_false {
                sides.if_false.add(&child.if_false);
            }
        }
        sides
    }

    /// What counts when this one and another one, each on a given side, are joined by AND.
    fn both(&self, side: bool, other: &Self, other_side: bool) -> Option<A> {
        let (mut sum, added) = (self.on(side)?.clone(), other.on(other_side)?);
        sum.add(added);
        Some(sum)
    }

    fn on(&self, side: bool) -> Option<&A> {
        match side {
            true => self.outcome.can_be_true.then_some(&self.if_true),
            false => self.outcome.can_be_false.then_some(&self.if_false),
        }
    }

    fn xor(self, other: Self) -> Self {
        let either = |cases: [Option<A>; 2]| {
            let mut sum = A::default();
            cases.iter().flatten().for_each(|case| sum.add(case));
            sum
        };
        Self {
            outcome: self.outcome.xor(other.outcome),
            if_true: either([self.both(true, &other, false), self.both(false, &other, true)]),
            if_false: either([self.both(true, &other, true), self.both(false, &other, false)]),
        }
    }
}

fn sides<A: Amount>(expr: &Expr, leaf: &impl Fn(&Predicate) -> (Outcome, A)) -> Sides<A> {
    let each =
        |children: &[Expr]| -> Vec<Sides<A>> { children.iter().map(|child| sides(child, leaf)).collect() };
    let fold = |children: &[Expr], combine: fn(Sides<A>, Sides<A>) -> Sides<A>| {
        each(children).into_iter().reduce(combine).expect("a connective has children")
    };
    match expr {
        Expr::Constant(outcome) => Sides { outcome: *outcome, if_true: A::default(), if_false: A::default() },
        Expr::Predicate(predicate) => {
            let (outcome, amount) = leaf(predicate);
            let counts = |can: bool| if can { amount.clone() } else { A::default() };
            Sides { outcome, if_true: counts(outcome.can_be_true), if_false: counts(outcome.can_be_false) }
        }
        Expr::Not(child) => !sides(child, leaf),
        Expr::And(children) => Sides::all(each(children).into_iter()),
        Expr::Or(children) => !Sides::all(each(children).into_iter().map(|child| !child)),
        Expr::Xor(children) => fold(children, Sides::xor),
        Expr::Xnor(children) => fold(children, |left, right| !left.xor(right)),
        Expr::AtLeast(least, children) => Sides::at_least(*least, each(children)),
    }
}

/// The weight of a predicate in its subscription: its boost, else its attribute's weight, else 1.
pub fn weight_of(predicate: &Predicate, weights: &[(Box<str>, f64)]) -> f64 {
    let beside =
        || weights.iter().find(|(name, _)| **name == *predicate.term.name()).map(|(_, weight)| *weight);
    predicate.weight.or_else(beside).unwrap_or(1.0)
}

/// The relevance of an expression, or `None` if it is not true. `amount` is what a true predicate counts.
///
/// ```
/// use tamis_core::event::ValueRef;
/// use tamis_core::expr::parse;
/// use tamis_core::query::relevance;
///
/// let expr = parse("a AND (b^2 OR c^4 OR d)").unwrap();
/// let event = |name: &str| Some(ValueRef::Bool(name != "c"));
/// let score = relevance(&expr, &event, &|predicate| predicate.weight.unwrap_or(1.0));
/// assert_eq!(score, Some(1.0 + (2.0 + 1.0)));
/// ```
pub fn relevance<'a, A: Amount>(
    expr: &Expr,
    value_of: &impl Fn(&str) -> Option<ValueRef<'a>>,
    amount: &impl Fn(&Predicate) -> A,
) -> Option<A> {
    let scored = sides(expr, &|predicate: &Predicate| {
        let (outcome, score) = predicate.look_scored(value_of);
        let mut amount = amount(predicate);
        if score != 1.0 {
            amount.multiply(score);
        }
        (outcome, amount)
    });
    scored.outcome.can_be_true.then_some(scored.if_true)
}

/// A predicate, maybe negated, as NOT and XOR leave it: what a relaxed score counts once.
type LeafKey<'e> = (&'e crate::term::Term, crate::expr::Operator, &'e [crate::event::Value], bool);

/// The relaxed score of an expression: every true predicate counts, each distinct one once, where it is
/// first written; `None` if there is none. Below an XOR a predicate stands for itself and for its negation.
/// `amount` is what a true predicate counts, or `None` if it is left out.
pub fn relaxed<'a>(
    expr: &Expr,
    value_of: &impl Fn(&str) -> Option<ValueRef<'a>>,
    amount: &impl Fn(&Predicate) -> Option<f64>,
) -> Option<f64> {
    let mut sum = None;
    for (predicate, positive) in distinct_leaves(expr) {
        let (outcome, score) = predicate.look_scored(value_of);
        if (if positive { outcome.can_be_true } else { outcome.can_be_false })
            && let Some(mut amount) = amount(predicate)
        {
            amount.multiply(score);
            sum = Some(sum.unwrap_or(0.0) + amount);
        }
    }
    sum
}

/// The leaves of [`for_each_leaf`], each distinct one once, where it is first written.
pub fn distinct_leaves(expr: &Expr) -> Vec<(&Predicate, bool)> {
    let mut seen: FxHashSet<LeafKey<'_>> = FxHashSet::default();
    let mut leaves = vec![];
    for_each_leaf(expr, &mut |predicate, positive| {
        let negated = predicate.negated == positive;
        if seen.insert((&predicate.term, predicate.operator, &*predicate.operands, negated)) {
            leaves.push((predicate, positive));
        }
    });
    leaves
}

/// Calls `visit` with every predicate in written order, and whether it stands for itself or for its
/// negation once NOT is pushed down; below an XOR for both, itself first.
pub fn for_each_leaf<'e>(expr: &'e Expr, visit: &mut impl FnMut(&'e Predicate, bool)) {
    walk(expr, [true, false], visit);
}

/// `stands_for`: itself, its negation.
fn walk<'e>(expr: &'e Expr, stands_for: [bool; 2], visit: &mut impl FnMut(&'e Predicate, bool)) {
    match expr {
        Expr::Constant(_) => {}
        Expr::Predicate(predicate) => {
            for (wanted, positive) in stands_for.into_iter().zip([true, false]) {
                if wanted {
                    visit(predicate, positive);
                }
            }
        }
        Expr::Not(child) => walk(child, [stands_for[1], stands_for[0]], visit),
        Expr::And(children) | Expr::Or(children) | Expr::AtLeast(_, children) => {
            children.iter().for_each(|child| walk(child, stands_for, visit));
        }
        Expr::Xor(children) | Expr::Xnor(children) => {
            children.iter().for_each(|child| walk(child, [true, true], visit));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expr::parse;

    fn event(name: &str) -> Option<ValueRef<'static>> {
        match name {
            "t" | "u" | "v" => Some(ValueRef::Bool(true)),
            "f" | "g" => Some(ValueRef::Bool(false)),
            _ => None,
        }
    }

    fn relevant(text: &str) -> Option<f64> {
        relevance(&parse(text).unwrap(), &event, &|predicate| weight_of(predicate, &[("v".into(), 0.25)]))
    }

    fn relaxed_score(text: &str) -> Option<f64> {
        relaxed(&parse(text).unwrap(), &event, &|predicate| Some(weight_of(predicate, &[])))
    }

    #[test]
    fn and_adds_its_children_and_or_its_true_ones() {
        assert_eq!(relevant("t^2 AND u^3"), Some(5.0));
        assert_eq!(relevant("t^2 AND f^3"), None);
        assert_eq!(relevant("t^2 OR f^3 OR u"), Some(3.0));
        assert_eq!(relevant("t^2 OR (u^4 AND f)"), Some(2.0), "an AND that is not true counts 0");
        assert_eq!(
            relevant("t OR t OR v"),
            Some(2.25),
            "repetition counts, and so does the attribute's weight"
        );
        assert_eq!(relevant("TRUE"), Some(0.0));
    }

    #[test]
    fn a_threshold_adds_its_true_children() {
        assert_eq!(relevant("AT LEAST 2 OF (t^2, f^3, u^4, v^8)"), Some(14.0));
        assert_eq!(relevant("AT LEAST 3 OF (t^2, f^3, u^4)"), None);
        assert_eq!(relevant("AT LEAST 2 OF (t^2, t^2, f)"), Some(4.0), "duplicates count");
        assert_eq!(relevant("AT MOST 1 OF (t^2, f^3, g^4)"), Some(7.0), "two of the negations");
    }

    #[test]
    fn negated_predicates_count_like_others() {
        assert_eq!(relevant("NOT f^3"), Some(3.0));
        assert_eq!(relevant("NOT (t^2 AND f^3)"), Some(3.0), "is NOT t OR NOT f");
        assert_eq!(relevant("NOT (absent^2 OR f^3)"), None);
    }

    #[test]
    fn an_xor_counts_as_its_expansion_does() {
        assert_eq!(relevant("t^2 XOR f^3"), Some(5.0));
        assert_eq!(relevant("t^2 XOR u^3"), None);
        assert_eq!(relevant("t^2 XNOR u^3"), Some(5.0));
        assert_eq!(relevant("t XOR (f^4 OR g^8)"), Some(13.0), "NOT (f OR g) is NOT f AND NOT g");
        assert_eq!(relevant("t XOR (u AND f^4)"), Some(5.0), "of NOT u OR NOT f only one is true");
    }

    #[test]
    fn a_long_chain_of_xors_is_not_expanded() {
        let text = vec!["t"; 61].join(" XOR ");
        assert_eq!(relevant(&text), Some(61.0));
    }

    #[test]
    fn relaxed_counts_every_distinct_true_predicate_once() {
        assert_eq!(relaxed_score("t^2 AND f^3 AND t^2"), Some(2.0));
        assert_eq!(relaxed_score("t^2 AND NOT t"), Some(2.0));
        assert_eq!(relaxed_score("f AND NOT f^3"), Some(3.0));
        assert_eq!(relaxed_score("f XOR t^2"), Some(3.0), "the expansion has NOT f, too");
        assert_eq!(relaxed_score("f AND absent"), None);
        assert_eq!(relaxed_score("TRUE"), None, "a constant is no predicate");
    }
}
