//! The algorithms by name, and indexes that run on them.

use crate::scored_intervals::ScoredIntervals;
use tamis_core::engine::Index;
use tamis_core::engine::contract::AUTO;
use tamis_core::event::{Schema, Value};
use tamis_core::{Error, Result};

use crate::a_tree::ATree;
use crate::algorithm::Algorithm;
use crate::bdd::Bdd;
use crate::be_trees::{BeStarTree, BeTree};
use crate::boolean::BooleanFiltering;
use crate::conjunctions::Translated;
use crate::conjunctions::access::AccessLists;
use crate::conjunctions::cluster::Clusters;
use crate::conjunctions::counting::Counting;
use crate::conjunctions::k_index::KIndex;
use crate::conjunctions::tree::ConjunctionTree;
use crate::leaf_ids::Annotated;
use crate::leaf_ids::dewey::DeweyIds;
use crate::leaf_ids::interval::IntervalIds;
use crate::locked::LockedEngine;
use crate::options;
use crate::over_predicates::{FilterAlgorithm, OverPredicates};
use crate::scan::Scan;

/// Makes an empty structure.
pub(crate) type Make = fn() -> Box<dyn Algorithm>;

/// The names that can be asked for, and how each is made.
pub(crate) static ALGORITHMS: &[(&str, Make)] = &[
    ("scan", || Box::new(Scan::default())),
    ("a-tree", || Box::new(ATree::default())),
    ("boolean", || Box::new(BooleanFiltering::default())),
    ("counting", || over_predicates::<Translated<Counting>>()),
    ("cluster", || over_predicates::<Translated<Clusters>>()),
    ("k-index", || over_predicates::<Translated<KIndex>>()),
    ("translation", || over_predicates::<Translated<ConjunctionTree>>()),
    ("propagation", || over_predicates::<Translated<AccessLists>>()),
    ("dewey-id", || over_predicates::<Annotated<DeweyIds>>()),
    ("interval-id", || over_predicates::<Annotated<IntervalIds>>()),
    ("be-tree", || Box::new(BeTree::default())),
    ("be-star-tree", || Box::new(BeStarTree::default())),
    ("interval", || Box::new(ScoredIntervals::default())),
    ("bdd", || Box::new(Bdd::default())),
];

fn over_predicates<F: FilterAlgorithm + 'static>() -> Box<dyn Algorithm> {
    Box::new(OverPredicates::<F>::default())
}

/// Every name that [`new_index`] takes, the production engine's first.
///
/// ```
/// assert!(tamis_algorithms::algorithm_names().any(|name| name == "be-tree"));
/// ```
pub fn algorithm_names() -> impl Iterator<Item = &'static str> {
    std::iter::once(AUTO).chain(ALGORITHMS.iter().map(|(name, _)| *name))
}

/// An empty index on an algorithm, with options such as `("zero_suppression", Value::Bool(false))`.
///
/// ```
/// let index = tamis_algorithms::new_index("a-tree", None, &[]).unwrap();
/// assert_eq!(index.algorithm(), "a-tree");
/// assert!(tamis_algorithms::new_index("b-tree", None, &[]).is_err());
/// ```
pub fn new_index(algorithm: &str, schema: Option<Schema>, options: &[(String, Value)]) -> Result<Index> {
    if algorithm == AUTO {
        return match options.first() {
            Some((name, _)) => Err(options::unknown(name, &[])),
            None => Ok(Index::new(schema)),
        };
    }
    let found = ALGORITHMS.iter().find(|(name, _)| *name == algorithm);
    let (name, make) = found.ok_or_else(|| {
        let names: Vec<&str> = algorithm_names().collect();
        Error::Argument(format!("there is no algorithm {algorithm:?}; choose one of {}", names.join(", ")))
    })?;
    let mut made = make();
    options.iter().try_for_each(|(option, value)| made.set_option(option, value))?;
    Ok(Index::with_engine(Box::new(LockedEngine::new(name, made)), options.to_vec(), schema))
}
