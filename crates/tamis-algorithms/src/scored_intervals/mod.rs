//! Conjunctions of intervals on scored interval indexes (Machanavajjhala et al. 2008): one index for each
//! attribute, which returns the best first.
//!
//! Conjunctions on the same attributes are a *family*, with an index for each of them, ordered by priority. A match is
//! in the answers of all indexes of its family; these run in the same order and are intersected, so the k best by
//! priority are the first k. For relaxed queries there is one index for each attribute, ordered by weight, and the
//! Threshold Algorithm adds up.
//!
//! ```text
//! age, price   by priority   age ── index     price ── index      intersected
//! age          by priority   age ── index
//! relaxed      by weight     age ── index     price ── index      read in turn
//! ```
//!
//! Indexes are built on first use. A structure that supports updates then follows all changes; any other is
//! rebuilt. Intervals only find candidates, and each candidate is evaluated: positions have the precision of
//! doubles, but values can have more. An interval of the event is not looked up: the candidates then come
//! from the other attributes, or are all conjunctions of the family.

mod conjunction;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;

use conjunction::Conjunction;

use crate::algorithm::Algorithm;
use crate::options;
use crate::ranked::{
    BestFirst, Intersection, IntervalIndex, Merged, RoundRobin, ScoredInterval, Settings, Structure,
};
use crate::span::Span;
use tamis_core::engine::contract::Work;
use tamis_core::event::{Event, TermId, Terms, Value};
use tamis_core::query::{Measure, Scale, up};
use tamis_core::{Error, Result, Subscription};

#[derive(Default)]
pub struct ScoredIntervals {
    settings: Settings,
    held: Vec<Option<Conjunction>>,
    families: BTreeMap<Box<[TermId]>, Family>,
    relaxed: OnceLock<BTreeMap<TermId, Box<dyn IntervalIndex>>>,
}

/// The conjunctions on the same attributes.
#[derive(Default)]
struct Family {
    rows: BTreeSet<u32>,
    /// One index for each attribute.
    indexes: OnceLock<Vec<Box<dyn IntervalIndex>>>,
}

impl ScoredIntervals {
    fn conjunction(&self, row: u32) -> &Conjunction {
        self.held[row as usize].as_ref().expect("rows of a family are held")
    }

    fn indexes<'a>(&self, family: &'a Family, dimensions: usize) -> &'a [Box<dyn IntervalIndex>] {
        family.indexes.get_or_init(|| {
            let of_dimension = |at: usize| {
                let rows = family.rows.iter();
                self.settings.build(rows.map(|row| self.conjunction(*row).exact(*row, at)).collect())
            };
            (0..dimensions).map(of_dimension).collect()
        })
    }

    /// Candidates of a family, the best priority first; `None` if the event lacks one of its attributes.
    fn candidates<'a>(
        &'a self,
        terms: &[TermId],
        family: &'a Family,
        event: &Event<'_>,
    ) -> Option<Intersection<'a>> {
        let spans: Option<Vec<Span>> =
            terms.iter().map(|attribute| event.get(*attribute).map(Span::of_value)).collect();
        let spans = spans?;
        if spans.iter().any(|span| span.is_point()) {
            let indexes = self.indexes(family, terms.len()).iter().zip(spans);
            let points = indexes.filter(|(_, span)| span.is_point());
            let lists = points.map(|(index, span)| -> BestFirst<'a> { index.stab(span.low) });
            return Some(Intersection::new(lists.collect()));
        }
        let mut all: Vec<_> =
            family.rows.iter().map(|row| self.conjunction(*row).exact(*row, 0).scored).collect();
        all.sort_unstable();
        Some(Intersection::new(vec![Box::new(all.into_iter()) as BestFirst<'a>]))
    }

    fn all_candidates<'a>(&'a self, event: &Event<'_>) -> impl Iterator<Item = Intersection<'a>> {
        let families = self.families.iter();
        families.filter_map(move |(terms, family)| self.candidates(terms, family, event))
    }

    fn best_by_priority(
        &self,
        event: &Event<'_>,
        mut least_wanted: f64,
        offer: &mut dyn FnMut(u32) -> f64,
    ) -> Work {
        let mut work = Work::default();
        for candidate in Merged::new(self.all_candidates(event)) {
            if candidate.score < least_wanted {
                break;
            }
            work.candidates += 1;
            least_wanted = offer(candidate.id as u32);
        }
        work
    }

    fn relaxed_indexes(&self) -> &BTreeMap<TermId, Box<dyn IntervalIndex>> {
        self.relaxed.get_or_init(|| {
            let mut intervals: BTreeMap<TermId, Vec<ScoredInterval>> = BTreeMap::new();
            for (row, held) in self.held.iter().enumerate() {
                for dimension in held.iter().flat_map(|held| &held.dimensions) {
                    intervals.entry(dimension.attribute).or_default().push(dimension.relaxed(row as u32));
                }
            }
            intervals.into_iter().map(|(attribute, held)| (attribute, self.settings.build(held))).collect()
        })
    }

    /// `None` where a value is no point.
    fn best_relaxed(
        &self,
        event: &Event<'_>,
        scale: &Scale,
        mut least_wanted: f64,
        offer: &mut dyn FnMut(u32) -> f64,
    ) -> Option<Work> {
        let mut lists: Vec<(BestFirst<'_>, f64)> = vec![];
        for (attribute, value) in &event.values {
            let span = Span::of_value(*value);
            if scale.leaves_out(*attribute) {
                continue;
            }
            if !span.is_point() {
                return None;
            }
            if let Some(index) = self.relaxed_indexes().get(attribute) {
                lists.push((index.stab(span.low), scale.factor(*attribute)));
            }
        }
        let mut lists = RoundRobin::new(lists.into_iter());
        let mut work = Work::default();
        while let Some(row) = lists.next() {
            work.candidates += 1;
            least_wanted = least_wanted.max(offer(row as u32));
            // Scores are added up in the order of the predicates, the threshold in that of the lists.
            if up(lists.threshold()) < least_wanted {
                break;
            }
        }
        Some(work)
    }

    /// Whether the structures are as the paper promises.
    #[cfg(test)]
    pub fn check(&self) -> std::result::Result<(), String> {
        let relaxed = self.relaxed.get().into_iter().flat_map(BTreeMap::values);
        let exact = self.families.values().filter_map(|family| family.indexes.get()).flatten();
        relaxed.chain(exact).try_for_each(|index| index.check())
    }
}

/// Makes a change in an index that takes it; otherwise says that it must be rebuilt.
fn change(index: &mut dyn IntervalIndex, interval: &ScoredInterval, is_new: bool) -> bool {
    match index.as_dynamic() {
        Some(index) if is_new => index.insert(*interval),
        Some(index) => index.remove(interval),
        None => return false,
    }
    true
}

impl ScoredIntervals {
    /// Brings the indexes that are built up to date with a conjunction that comes or goes.
    fn update(&mut self, row: u32, conjunction: &Conjunction, is_new: bool) {
        let terms = conjunction.terms();
        let family = self.families.entry(terms.clone()).or_default();
        if is_new {
            family.rows.insert(row);
        } else {
            family.rows.remove(&row);
        }
        if let Some(indexes) = family.indexes.get_mut() {
            let changed = indexes
                .iter_mut()
                .enumerate()
                .all(|(at, index)| change(&mut **index, &conjunction.exact(row, at), is_new));
            if !changed {
                family.indexes.take();
            }
        }
        if family.rows.is_empty() {
            self.families.remove(&terms);
        }
        if let Some(relaxed) = self.relaxed.get_mut() {
            let settings = self.settings;
            let changed = conjunction.dimensions.iter().all(|dimension| {
                let index = relaxed.entry(dimension.attribute).or_insert_with(|| settings.build(vec![]));
                change(&mut **index, &dimension.relaxed(row), is_new)
            });
            if !changed {
                self.relaxed.take();
            }
        }
    }

    fn take(&mut self, row: u32) {
        let conjunction = self.held[row as usize].take().expect("only what was inserted is removed");
        self.update(row, &conjunction, false);
    }

    fn put(&mut self, row: u32, conjunction: Conjunction) {
        if self.held.len() <= row as usize {
            self.held.resize_with(row as usize + 1, || None);
        }
        self.update(row, &conjunction, true);
        self.held[row as usize] = Some(conjunction);
    }
}

impl Algorithm for ScoredIntervals {
    fn insert(&mut self, row: u32, subscription: &Subscription, terms: &mut Terms) -> Result<()> {
        let conjunction = Conjunction::new(subscription, terms)?;
        self.put(row, conjunction);
        Ok(())
    }

    fn remove(&mut self, row: u32, _: &Subscription, _: &Terms) {
        self.take(row);
    }

    fn matches(&self, event: &Event<'_>, _: &Terms, found: &mut dyn FnMut(u32)) -> Work {
        let mut work = Work::default();
        for candidate in self.all_candidates(event).flatten() {
            work.candidates += 1;
            if self.conjunction(candidate.id as u32).is_true(event, &mut work.evaluations) {
                found(candidate.id as u32);
            }
        }
        work
    }

    fn best_by(
        &self,
        event: &Event<'_>,
        measure: &Measure<'_>,
        least_wanted: f64,
        offer: &mut dyn FnMut(u32) -> f64,
    ) -> Option<Work> {
        match measure {
            Measure::Priority => Some(self.best_by_priority(event, least_wanted, offer)),
            Measure::Relaxed(scale) => self.best_relaxed(event, scale, least_wanted, offer),
            Measure::Relevance(_) | Measure::Function(..) => None,
        }
    }

    /// The row is inserted again, as its place in every index depends on its scores.
    fn rescore(&mut self, row: u32, subscription: &Subscription, terms: &Terms) {
        self.take(row);
        let conjunction = Conjunction::new(subscription, &mut terms.clone());
        self.put(row, conjunction.expect("the expression was taken before"));
    }

    fn bytes(&self) -> Vec<(&'static str, usize)> {
        let families = self.families.iter().map(|(terms, family)| {
            let indexes = family.indexes.get().into_iter().flatten().map(|index| index.bytes());
            size_of_val(&**terms) + family.rows.len() * size_of::<u32>() + indexes.sum::<usize>()
        });
        let relaxed = self.relaxed.get().into_iter().flat_map(BTreeMap::values).map(|index| index.bytes());
        let held: usize = self.held.iter().flatten().map(Conjunction::bytes).sum();
        vec![
            ("conjunctions", self.held.capacity() * size_of::<Option<Conjunction>>() + held),
            ("exact", families.sum()),
            ("relaxed", relaxed.sum()),
        ]
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        let conjunctions = self.held.iter().flatten().count();
        vec![("conjunctions", conjunctions as u64), ("families", self.families.len() as u64)]
    }

    fn set_option(&mut self, name: &str, value: &Value) -> Result<()> {
        match name {
            "structure" => self.settings.structure = Structure::named(options::text(name, value)?)?,
            "branching" => {
                let branching = options::size(name, value)? as usize;
                if branching < 2 {
                    return Err(Error::Argument("the option `branching` is at least 2, not 1".into()));
                }
                self.settings.branching = branching;
            }
            _ => return Err(options::unknown(name, &["structure", "branching"])),
        }
        Ok(())
    }
}
