//! Dewey IDs and Interval IDs (Fontoura et al. 2010): each leaf carries its position in the expression.
//!
//! Each leaf gets an id from which, together with the ids of the other true leaves, the truth of the expression
//! follows: no tree is stored. For an event, the ids of all satisfied predicates are collected and sorted by
//! expression, and every expression with at least one is evaluated.
//!
//! ```text
//! (p1 OR p2 OR p3) AND p4 AND (p5 OR p6)
//!
//!            p1     p2     p3     p4    p5      p6
//! Dewey      1.1    1.2    1.3    2     3*.1    3*.2      * the last child of its AND
//! Interval   [1,3]  [1,3]  [1,3]  [4,4] [5,6]   [5,6]     true leaves must tile 1 to 6
//! ```

pub mod dewey;
pub mod interval;

use super::circuit::{Circuit, Tree};
use super::over_predicates::FilterAlgorithm;
use super::predicates::{Predicates, Satisfied};
use tamis_core::engine::contract::Work;
use tamis_core::event::{Event, Value};
use tamis_core::expr::Literal;
use tamis_core::{Error, Result};

/// Ids are counted in 16 bits.
const MAX_LEAVES: u64 = 8192;

/// The part that differs: the ids of one expression.
pub trait LeafIds: Default + Send + Sync {
    type Scratch: Default + Send;

    /// The ids of a tree, and its literals in the order of their numbers. Leaves are numbered in the order
    /// in which [`is_true`](Self::is_true) wants them.
    fn new(tree: &Tree) -> (Self, Vec<Literal>);

    /// Whether the expression is true, given the numbers of its true leaves in rising order.
    fn is_true(&self, leaves: impl Iterator<Item = u32>, scratch: &mut Self::Scratch) -> bool;

    fn bytes(&self) -> usize;
}

#[derive(Default)]
pub struct Annotated<I> {
    /// From a literal to (row, leaf).
    postings: Vec<Vec<(u32, u32)>>,
    expressions: Vec<Option<Expression<I>>>,
}

struct Expression<I> {
    ids: I,
    literals: Box<[Literal]>,
}

#[derive(Default)]
pub struct Scratch<S> {
    gathered: Vec<(u32, u32)>,
    ids: S,
}

impl<I: LeafIds> FilterAlgorithm for Annotated<I> {
    type Scratch = Scratch<I::Scratch>;

    const OPTIONS: &'static [&'static str] = &[];

    fn check(&self, circuit: &Circuit<'_>) -> Result<()> {
        let leaves = circuit.tree_leaves();
        if leaves <= MAX_LEAVES {
            return Ok(());
        }
        Err(Error::Unsupported(format!(
            "the ids of an expression's predicates are counted in 16 bits, so it has at most {MAX_LEAVES}; this one \
             has {leaves} once XOR is expanded; \"auto\" and \"a-tree\" hold it"
        )))
    }

    fn insert(&mut self, row: u32, tree: &Tree, predicates: &Predicates) {
        let (ids, literals) = I::new(tree);
        if self.postings.len() < predicates.literals() {
            self.postings.resize_with(predicates.literals(), Vec::new);
        }
        for (leaf, literal) in literals.iter().enumerate() {
            self.postings[literal.0 as usize].push((row, leaf as u32));
        }
        if self.expressions.len() <= row as usize {
            self.expressions.resize_with(row as usize + 1, || None);
        }
        self.expressions[row as usize] = Some(Expression { ids, literals: literals.into() });
    }

    fn remove(&mut self, row: u32, release: &mut dyn FnMut(Literal)) {
        let expression = self.expressions[row as usize].take().expect("a row that was inserted");
        for literal in expression.literals {
            self.postings[literal.0 as usize].retain(|(other, _)| *other != row);
            release(literal);
        }
    }

    fn matches(
        &self,
        satisfied: &Satisfied,
        _: &Event<'_>,
        scratch: &mut Self::Scratch,
        found: &mut dyn FnMut(u32),
    ) -> Work {
        let Scratch { gathered, ids } = scratch;
        gathered.clear();
        for literal in &satisfied.literals {
            if let Some(list) = self.postings.get(literal.0 as usize) {
                gathered.extend_from_slice(list);
            }
        }
        gathered.sort_unstable();
        let mut work = Work { candidates: gathered.len() as u64, ..Work::default() };
        for group in gathered.chunk_by(|a, b| a.0 == b.0) {
            work.evaluations += 1;
            let row = group[0].0;
            let expression = self.expressions[row as usize].as_ref().expect("only rows in use are posted");
            if expression.ids.is_true(group.iter().map(|(_, leaf)| *leaf), ids) {
                found(row);
            }
        }
        work
    }

    fn bytes(&self) -> Vec<(&'static str, usize)> {
        let postings: usize =
            self.postings.iter().map(|list| list.capacity() * size_of::<(u32, u32)>()).sum();
        let expressions = self.expressions.iter().flatten();
        let ids = expressions.map(|held| held.ids.bytes() + size_of_val(&*held.literals)).sum::<usize>();
        vec![
            ("postings", self.postings.capacity() * size_of::<Vec<(u32, u32)>>() + postings),
            ("ids", self.expressions.capacity() * size_of::<Option<Expression<I>>>() + ids),
        ]
    }

    fn set_option(&mut self, _: &str, _: &Value) -> Result<()> {
        unreachable!("there are no options")
    }
}
