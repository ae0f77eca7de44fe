//! Subscription pruning (Bittner 2008, section 6.3): a smaller expression that is true whenever the original is.
//!
//! A *valid pruning* removes one child of an AND. The result is more general, so an index of pruned expressions may report
//! too many matches, but never too few. `measure` rates the costs and gains of a pruning, `options` lists the prunings of
//! one tree, `queue` applies the best ones of many trees first.

mod measure;
mod options;
mod queue;

pub use measure::{Estimate, Measure};
pub use queue::{Execution, PruningQueue};

use super::selectivity::Selectivities;
use crate::expr::Expr;

/// When to stop pruning. It also stops when nothing is left to prune.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// After this many prunings.
    Steps(usize),
    /// When all expressions together take at most this many bytes: 5 for a predicate, 2 for an AND or OR.
    Bytes(usize),
    /// When all expressions together have at most this many predicates.
    Predicates(usize),
}

/// How to prune.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Options {
    pub measure: Measure,
    pub execution: Execution,
    /// Whether an expression of which nothing can be removed any more may become TRUE, as a last resort.
    pub to_true: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self { measure: Measure::Accuracy, execution: Execution::Strict, to_true: false }
    }
}

/// A generalisation of one expression: every event that makes `expr` true makes the result true.
///
/// ```
/// use tamis_core::expr::parse;
/// use tamis_core::relate::{Selectivities, prune};
///
/// let known = Selectivities::new([(parse("title = 'Emma'")?, 0.001), (parse("price < 15")?, 0.7)])?;
/// let pruned = prune::prune(
///     &parse("title = 'Emma' AND price < 15")?, prune::Until::Steps(1), prune::Options::default(), &known);
/// assert_eq!(pruned.to_string(), "title = 'Emma'");
/// # Ok::<_, tamis_core::Error>(())
/// ```
pub fn prune(expr: &Expr, until: Until, options: Options, selectivities: &Selectivities) -> Expr {
    let mut queue = PruningQueue::new(options, selectivities.clone());
    let entry = queue.add(expr, 1);
    queue.prune(until);
    queue.expression(entry).expect("it was added")
}

/// Generalisations of many expressions, in their order, the globally best prunings first.
pub fn prune_many(
    expressions: &[impl std::ops::Deref<Target = Expr> + Sync],
    until: Until,
    options: Options,
    selectivities: &Selectivities,
) -> Vec<Expr> {
    let mut queue = PruningQueue::new(options, selectivities.clone());
    queue.add_many(expressions.iter().map(|expr| &**expr));
    queue.prune(until);
    queue.expressions()
}

#[cfg(test)]
mod tests;
