//! The computed terms: their arguments, and how many predicates use each.

use std::sync::{Arc, OnceLock};

use super::TermId;
use super::layered::Layered;
use super::plan::{Input, Plan};
use crate::term::Term;

/// The terms that are not attributes, and which of them are in use.
#[derive(Clone, Default)]
pub(super) struct ComputedTerms {
    /// By their text: places in `chunks`.
    pub numbers: Layered<usize>,
    /// In the order of their ids, in chunks, so that a new version copies few of them.
    pub chunks: Vec<Arc<Vec<Known>>>,
    pub len: usize,
    /// What an event needs. Chosen when the first event asks, since many subscriptions may come before it.
    pub plan: OnceLock<Arc<Plan>>,
    /// The last one that was chosen: what did not change is taken from it.
    pub last_plan: Option<Arc<Plan>>,
}

pub(super) const CHUNK: usize = 64;

#[derive(Clone)]
pub(super) struct Known {
    pub id: TermId,
    pub term: Term,
    pub inputs: Inputs,
    pub uses: Uses,
}

#[derive(Clone)]
pub(super) enum Inputs {
    OfFunction(Arc<[Input]>),
    OfBoolean(Arc<[TermId]>),
}

/// How many predicates of living subscriptions look at a term.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Uses {
    pub all: i64,
    /// Those for which it matters whether it is false or undefined.
    pub of_false: i64,
}

impl ComputedTerms {
    pub fn at(&self, place: usize) -> &Known {
        &self.chunks[place / CHUNK][place % CHUNK]
    }

    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Known> {
        self.chunks.iter().flat_map(|chunk| chunk.iter())
    }

    pub fn find(&self, term: &Term) -> Option<usize> {
        self.numbers.get(term.name()).copied()
    }

    pub fn push(&mut self, known: Known) {
        if self.len.is_multiple_of(CHUNK) {
            self.chunks.push(Arc::new(Vec::with_capacity(CHUNK)));
        }
        self.numbers.insert(known.term.name().into(), self.len);
        Arc::make_mut(self.chunks.last_mut().expect("there is room")).push(known);
        self.len += 1;
    }

    pub fn place_of(&self, id: TermId) -> Option<usize> {
        let chunk = self.chunks.partition_point(|chunk| chunk[0].id <= id).checked_sub(1)?;
        let inside = self.chunks[chunk].binary_search_by_key(&id, |known| known.id).ok()?;
        Some(chunk * CHUNK + inside)
    }

    pub fn forget_plan(&mut self) {
        if let Some(plan) = self.plan.take() {
            self.last_plan = Some(plan);
        }
    }
}
