//! Chooses the access predicates of an expression: it can only be true if at least one of them is.
//!
//! For an AND they are those of the child that is least often true, for an OR those of all children. The
//! production index chooses them the same way, and a sharded plan puts expressions with common access
//! predicates into the same shard.

use super::selectivity::Selectivities;
use super::tree::{Leaf, LeafId, Leaves, Tree};
use crate::expr::{Expr, Outcome};

/// The text that stands for "every event": the access predicate of TRUE.
pub const ALWAYS: &str = "TRUE";

/// The access predicates of many expressions, each distinct predicate written once.
pub struct AccessPlan {
    pub texts: Vec<String>,
    /// For each expression, places in `texts`, in the order of the texts. Empty for an expression that is never true.
    pub of_expression: Vec<Vec<u32>>,
}

/// The access predicates of many expressions: an event, also one with intervals, makes an expression
/// true only if it makes at least one of them true.
///
/// ```
/// use tamis_core::expr::parse;
/// use tamis_core::relate::{Selectivities, access_predicates};
///
/// let known = Selectivities::new([(parse("country = 'CA'")?, 0.3), (parse("age > 30")?, 0.6)])?;
/// let plan = access_predicates([&parse("age > 30 AND country = 'CA'")?].into_iter(), &known);
/// assert_eq!(plan.texts[plan.of_expression[0][0] as usize], "country = 'CA'");
/// # Ok::<_, tamis_core::Error>(())
/// ```
pub fn access_predicates<'e>(
    expressions: impl Iterator<Item = &'e Expr>,
    selectivities: &Selectivities,
) -> AccessPlan {
    let mut chooser = AccessChooser { leaves: Leaves::default(), shares: vec![], selectivities };
    let mut texts = vec![ALWAYS.to_string()];
    let mut place_of: Vec<u32> = vec![];
    let mut of_expression = vec![];
    for expr in expressions {
        let tree = chooser.leaves.tree(expr);
        let keys = chooser.of_tree(&tree).keys;
        place_of.resize(chooser.leaves.len(), u32::MAX);
        let mut places: Vec<u32> = match keys {
            None => vec![0],
            Some(keys) => {
                let place = |key: LeafId| {
                    let place = &mut place_of[key.0 as usize];
                    if *place == u32::MAX {
                        *place = texts.len() as u32;
                        texts.push(chooser.leaves.expr(key).to_string());
                    }
                    *place
                };
                keys.into_iter().map(place).collect()
            }
        };
        places.sort_unstable_by(|a, b| texts[*a as usize].cmp(&texts[*b as usize]));
        places.dedup();
        of_expression.push(places);
    }
    AccessPlan { texts, of_expression }
}

struct Access {
    /// How often one of the keys is true, at most.
    cost: f64,
    /// `None`: every event.
    keys: Option<Vec<LeafId>>,
}

impl Access {
    const ALWAYS: Self = Self { cost: f64::INFINITY, keys: None };
    const NEVER: Self = Self { cost: 0.0, keys: Some(vec![]) };

    fn or(self, other: Self) -> Self {
        match (self.keys, other.keys) {
            (Some(mut keys), Some(more)) => {
                keys.extend(more);
                Self { cost: self.cost + other.cost, keys: Some(keys) }
            }
            _ => Self::ALWAYS,
        }
    }

    fn or_rather(self, other: Self) -> Self {
        if other.cost < self.cost { other } else { self }
    }
}

struct AccessChooser<'s> {
    leaves: Leaves,
    shares: Vec<f64>,
    selectivities: &'s Selectivities,
}

impl AccessChooser<'_> {
    fn of_tree(&mut self, tree: &Tree) -> Access {
        match tree {
            Tree::True => Access::ALWAYS,
            Tree::False => Access::NEVER,
            Tree::Leaf(id) => match self.leaves.leaf(*id) {
                Leaf::Literal(_) => Access { cost: self.share(*id), keys: Some(vec![*id]) },
                Leaf::Part(part) => {
                    let part = part.clone();
                    self.of_part(&part)
                }
            },
            Tree::Or(children) => {
                children.iter().fold(Access::NEVER, |all, child| all.or(self.of_tree(child)))
            }
            Tree::And(children) => {
                children.iter().fold(Access::ALWAYS, |best, child| best.or_rather(self.of_tree(child)))
            }
        }
    }

    /// Of an XOR that is to be true: one of its children is, and each of them is defined.
    fn of_part(&mut self, part: &Expr) -> Access {
        let defined = self.of_defined(part);
        match part {
            Expr::Xor(children) => {
                let one_is_true = children.iter().fold(Access::NEVER, |all, child| {
                    let child = self.leaves.tree(child);
                    all.or(self.of_tree(&child))
                });
                defined.or_rather(one_is_true)
            }
            _ => defined,
        }
    }

    /// Of an expression that is to be true or false.
    fn of_defined(&mut self, expr: &Expr) -> Access {
        match expr {
            Expr::Constant(Outcome::UNDEFINED) => Access::NEVER,
            Expr::Constant(_) => Access::ALWAYS,
            Expr::Not(child) => self.of_defined(child),
            Expr::Predicate(_) => {
                let opposite = Expr::Not(Box::new(expr.clone()));
                let both = [expr, &opposite].map(|side| self.leaves.tree(side));
                self.of_tree(&both[0]).or(self.of_tree(&both[1]))
            }
            // One child at least is defined.
            Expr::And(children) | Expr::Or(children) | Expr::AtLeast(_, children) => {
                children.iter().fold(Access::NEVER, |all, child| all.or(self.of_defined(child)))
            }
            Expr::Xor(children) | Expr::Xnor(children) => {
                children.iter().fold(Access::ALWAYS, |best, child| best.or_rather(self.of_defined(child)))
            }
        }
    }

    fn share(&mut self, id: LeafId) -> f64 {
        if self.shares.len() < self.leaves.len() {
            self.shares.extend(self.selectivities.of_leaves(&self.leaves, self.shares.len()));
        }
        self.shares[id.0 as usize]
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::expr::testing::{any_expr, any_interval_event, lookup};
    use crate::expr::{evaluate, parse};

    fn keys(text: &str, known: &[(&str, f64)]) -> Vec<String> {
        let known = known.iter().map(|(text, share)| (parse(text).unwrap(), *share));
        let plan =
            access_predicates([&parse(text).unwrap()].into_iter(), &Selectivities::new(known).unwrap());
        plan.of_expression[0].iter().map(|place| plan.texts[*place as usize].clone()).collect()
    }

    #[test]
    fn the_rarest_child_of_an_and_and_all_children_of_an_or() {
        let known = [("a = 1", 0.01), ("b > 2", 0.4), ("c < 3", 0.2), ("d", 0.1)];
        assert_eq!(keys("b > 2 AND a = 1", &known), ["a = 1"]);
        assert_eq!(keys("b > 2 AND (c < 3 OR d)", &known), ["c < 3", "d"]);
        assert_eq!(keys("c < 3 OR b > 2 AND NOT (a != 1)", &known), ["a = 1", "c < 3"]);
        assert_eq!(keys("TRUE OR d", &known), ["TRUE"]);
        assert_eq!(keys("d AND FALSE", &known), [""; 0]);
        assert_eq!(keys("a = 1 XOR d", &known), ["a = 1", "d"]);
        assert_eq!(keys("NOT (b > 2 XOR d)", &[("b > 2", 0.4), ("b <= 2", 0.1)]), ["b <= 2", "b > 2"]);
    }

    proptest! {
        #[test]
        fn no_match_without_one_of_them(
            expr in any_expr(4), events in prop::collection::vec(any_interval_event(), 20)
        ) {
            let plan = access_predicates([&expr].into_iter(), &Selectivities::default());
            let texts = plan.of_expression[0].iter().map(|place| &plan.texts[*place as usize]);
            let keys: Vec<Expr> = match texts.map(|text| parse(text)).collect() {
                Ok(keys) => keys,
                Err(_) => return Ok(()), // An empty set has no text.
            };
            for event in &events {
                let lookup = lookup(event);
                if evaluate(&expr, &lookup).can_be_true {
                    prop_assert!(keys.iter().any(|key| evaluate(key, &lookup).can_be_true), "{expr}");
                }
            }
        }
    }
}
