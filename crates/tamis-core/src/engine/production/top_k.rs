//! The best matches of a view: which blocks to visit, and the score of a row.
//!
//! Rows are scored in one of three ways, which agree to the last bit: from the arrays of their segment; from their record,
//! by the definition (interval events, segments without weights); or, in the buffer, from the subscription itself.

use std::iter::once;
use std::ops::ControlFlow;

use super::view::{Part, RowFilter, View};
use crate::engine::contract::{Location, Version, Work};
use crate::engine::segment::best_first::{Limits, RankingCollector, Wanted};
use crate::engine::segment::layout::Layout;
use crate::engine::segment::matcher::Scratch;
use crate::engine::segment::relaxed::Relaxed;
use crate::engine::segment::scoring::Scoring;
use crate::engine::segment::scoring::entry_bounds::{EntryBound, rounded_up};
use crate::engine::segment::scoring::row_sketches::{Factors, FactorsApart, RowSketches};
use crate::engine::segment::walk::UnitCollector;
use crate::error::{Error, Result};
use crate::event::Event;
use crate::predicate::block_lookup::Fires;
use crate::predicate::catalog::Catalog;
use crate::query::collector::All;
use crate::query::function::Function;
use crate::query::{Candidate, Filter, Measure, Score, TopK};

impl View {
    /// Offers everything that may be among the best.
    pub fn offer_ranked<'v>(
        &'v self,
        event: &Event<'_>,
        measure: &Measure<'_>,
        filter: &Filter<'_>,
        threads: usize,
        scratch: &mut Scratch,
        best: &mut TopK<'v, Location>,
    ) -> Result<Work> {
        let is_relaxed = matches!(measure, Measure::Relaxed(_));
        if event.has_intervals && !is_relaxed {
            return self.offer_matches(event, measure, filter, threads, scratch, best);
        }
        let candidates = self.buffer.len() as u64;
        let mut work = Work { candidates, ..self.mismatches(event) };
        self.offer_buffered(event, measure, filter, best);
        for number in 0..self.parts.len() {
            work += match event.has_intervals {
                true => self.query(number, event, measure, filter).ask_all(best)?,
                false => self.offer_part(number, event, event, measure, filter, threads, scratch, best)?,
            };
        }
        Ok(work)
    }

    /// Offers the matches in the buffer.
    pub(super) fn offer_buffered<'v>(
        &'v self,
        event: &Event<'_>,
        measure: &Measure<'_>,
        filter: &Filter<'_>,
        best: &mut TopK<'v, Location>,
    ) {
        for (at, buffered) in self.buffer.iter().enumerate() {
            if filter.keeps(&buffered.subscription)
                && let Some(score) = measure.of(&buffered.subscription, event, &self.terms)
            {
                best.offer(buffered.subscription.id.as_ref(), score, Location::Buffer(at as u32));
            }
        }
    }

    /// Offers what may be among the best of one part. `fires` is the event, a point, or what is known of where
    /// it lies in [`ranked_catalog`](Self::ranked_catalog).
    #[allow(clippy::too_many_arguments)]
    pub(super) fn offer_part<'v>(
        &'v self,
        number: usize,
        event: &Event<'_>,
        fires: &impl Fires,
        measure: &Measure<'_>,
        filter: &Filter<'_>,
        threads: usize,
        scratch: &mut Scratch,
        best: &mut TopK<'v, Location>,
    ) -> Result<Work> {
        let relaxed = match measure {
            Measure::Relaxed(_) => Some(self.parts[number].segment.relaxed(&self.terms)?),
            _ => None,
        };
        self.query(number, event, measure, filter).ask_best(relaxed, fires, threads, scratch, best)
    }

    /// The predicates in which the best of one part are looked up by a score.
    pub(super) fn ranked_catalog(&self, number: usize, score: &Score) -> Result<&Catalog> {
        let segment = &self.parts[number].segment;
        Ok(match score {
            Score::Relaxed => &segment.relaxed(&self.terms)?.layout.catalog,
            _ => &segment.layout.catalog,
        })
    }

    fn query<'a, 'v>(
        &'v self,
        number: usize,
        event: &'a Event<'a>,
        measure: &'a Measure<'a>,
        filter: &'a Filter<'a>,
    ) -> PartQuery<'a, 'v>
    where
        'v: 'a,
    {
        let part = &self.parts[number];
        let keeps = RowFilter::new(self, part, filter, event);
        PartQuery { view: self, part, number: number as u32, event, measure, keeps }
    }

    /// Offers every match, scored by its definition: for intervals, of which the bits of an event do not
    /// say which leaves can be true.
    fn offer_matches<'v>(
        &'v self,
        event: &Event<'_>,
        measure: &Measure<'_>,
        filter: &Filter<'_>,
        threads: usize,
        scratch: &mut Scratch,
        best: &mut TopK<'v, Location>,
    ) -> Result<Work> {
        let mut all = All::default();
        let work = self.collect(event, filter, threads, scratch, &mut all);
        for location in all.0 {
            let subscription = self.subscription(location)?;
            if let Some(score) = measure.of(&subscription, event, &self.terms) {
                best.offer(self.id(location), score, location);
            }
        }
        Ok(work)
    }
}

/// A query to one part.
struct PartQuery<'a, 'v> {
    view: &'v View,
    part: &'v Part,
    number: u32,
    event: &'a Event<'a>,
    measure: &'a Measure<'a>,
    keeps: RowFilter<'a>,
}

impl<'v> PartQuery<'_, 'v> {
    /// Every row by its record: relaxed queries with intervals.
    fn ask_all(&self, best: &mut TopK<'v, Location>) -> Result<Work> {
        let rows = self.part.segment.len() as u32;
        for row in 0..rows {
            if self.keeps.keeps_row(row)
                && let Some(score) = self.by_record(row)?
            {
                self.offer(row, score, best);
            }
        }
        Ok(Work { candidates: rows as u64, evaluations: rows as u64, ..Work::default() })
    }

    fn by_record(&self, row: u32) -> Result<Option<f64>> {
        let subscription = self.part.segment.subscription(row, &self.view.terms)?;
        Ok(self.measure.of(&subscription, self.event, &self.view.terms))
    }

    fn offer(&self, row: u32, score: f64, best: &mut TopK<'v, Location>) {
        let id = self.part.segment.subscription_table.id_ref(row);
        best.offer(id, score, Location::Row { part: self.number, row });
    }

    /// Whether a row could enter with the least score that is wanted. In one part, ids rise with rows.
    #[inline]
    fn could_tie(&self, row: u32, best: &TopK<'v, Location>) -> bool {
        match best.worst() {
            None => true,
            Some(Candidate { item: Location::Row { part, row: worst }, .. }) if *part == self.number => {
                row < *worst
            }
            Some(worst) => self.part.segment.subscription_table.id_ref(row) < worst.id,
        }
    }

    /// What may be among the best.
    fn ask_best(
        &self,
        relaxed: Option<&Relaxed>,
        fires: &impl Fires,
        threads: usize,
        scratch: &mut Scratch,
        best: &mut TopK<'v, Location>,
    ) -> Result<Work> {
        let segment = &*self.part.segment;
        let (layout, scoring) = match relaxed {
            Some(relaxed) => (&relaxed.layout, &relaxed.scoring),
            None => (&segment.layout, &segment.scoring),
        };
        // A bound of everything says next to nothing of what a function makes of a few attributes.
        let is_function = matches!(self.measure, Measure::Function(..));
        let score = |bound: f64| self.measure.bound(bound);
        let limits = match self.measure {
            Measure::Priority => Limits::new(&layout.block_bounds, 0.0, &score),
            _ => {
                let limits = Limits::new(&scoring.block_bounds, f64::INFINITY, &score);
                let limits = limits.loose(!scoring.sketches.words.is_empty() || is_function);
                if is_function { limits } else { limits.with_entry_bounds(&scoring.entry_bounds.0) }
            }
        };
        let wanted = Wanted { k: best.k(), least: best.least_wanted(), limits };
        let sketch = RowSketch::new(self.measure, self.event, &layout.catalog);
        let scorer = Scorer { query: self, layout, scoring, is_relaxed: relaxed.is_some(), sketch };
        let offering = |best| Offering {
            scorer: &scorer,
            best,
            rows: vec![],
            deferred: vec![],
            decoded: 0,
            failed: None,
        };
        if threads == 1 || !layout.may_need_threads() {
            let mut offering = offering(best);
            let mut work = layout.best_units(fires, scratch, &wanted, &mut offering);
            offering.settle();
            work.evaluations += offering.decoded;
            return offering.failed.map_or(Ok(work), Err);
        }
        let mut others: Vec<_> = (1..threads).map(|_| TopK::new(wanted.k, wanted.least)).collect();
        let mut offerings: Vec<_> = once(&mut *best).chain(&mut others).map(offering).collect();
        let mut work = layout.best_units_on_threads(fires, scratch, &wanted, &mut offerings);
        for offering in &mut offerings {
            offering.settle();
            work.evaluations += offering.decoded;
        }
        if let Some(error) = offerings.into_iter().find_map(|offering| offering.failed) {
            return Err(error);
        }
        for found in others.into_iter().flat_map(TopK::into_sorted) {
            best.offer(found.id, found.score, found.item);
        }
        Ok(work)
    }
}

/// What the rows of one layout score.
struct Scorer<'a, 'v> {
    query: &'a PartQuery<'a, 'v>,
    layout: &'a Layout,
    scoring: &'a Scoring,
    is_relaxed: bool,
    sketch: RowSketch<'a>,
}

/// What is known of a row that holds.
enum Standing {
    /// It is not among the best.
    Out,
    Score(f64),
    /// Only its record says what it scores.
    AskRecord,
}

impl From<Option<f64>> for Standing {
    fn from(score: Option<f64>) -> Self {
        score.map_or(Standing::Out, Standing::Score)
    }
}

impl<'v> Scorer<'_, 'v> {
    /// What a row that holds scores, if it may be among the best.
    #[inline]
    fn standing(&self, row: u32, bits: &[u64], best: &TopK<'v, Location>) -> Standing {
        let Self { query, scoring, .. } = self;
        let (part, measure, wanted) = (query.part, query.measure, best.least_wanted());
        if let Measure::Priority = measure {
            let priority = part.segment.subscription_table.priority(row);
            return (priority >= wanted).then_some(priority).into();
        }
        if wanted > f64::NEG_INFINITY {
            let sketch = self.sketch.bound(row, &scoring.sketches, bits);
            let bound = sketch.unwrap_or_else(|| measure.bound(scoring.bound(row)));
            if bound < wanted || bound == wanted && !query.could_tie(row, best) {
                return Standing::Out;
            }
        }
        let score = match measure {
            Measure::Relaxed(scale) if self.is_relaxed && !scoring.is_scored_by_record(row) => {
                return scoring.relaxed(row, bits, scale).into();
            }
            Measure::Relevance(scale) => scoring.relevance(row, bits, scale),
            Measure::Function(function, scales) => {
                let contributions: Option<Vec<f64>> =
                    scales.iter().map(|scale| scoring.relevance(row, bits, scale)).collect();
                contributions.map(|contributions| function.evaluate(&contributions))
            }
            _ => None,
        };
        score.map_or(Standing::AskRecord, Standing::Score)
    }
}

/// The sketches of rows, seen by the measure of an event.
enum RowSketch<'a> {
    None,
    Sum(Factors),
    Function(&'a Function, FactorsApart),
}

impl<'a> RowSketch<'a> {
    fn new(measure: &'a Measure<'a>, event: &Event<'_>, catalog: &Catalog) -> Self {
        match measure {
            Measure::Priority => RowSketch::None,
            Measure::Relevance(scale) | Measure::Relaxed(scale) => {
                RowSketch::Sum(Factors::new(scale, event, catalog))
            }
            Measure::Function(function, scales) => {
                RowSketch::Function(function, FactorsApart::new(scales, event, catalog))
            }
        }
    }

    /// What a row scores at most, if its sketch says so.
    #[inline]
    fn bound(&self, row: u32, sketches: &RowSketches, bits: &[u64]) -> Option<f64> {
        sketches.place_of(row).map(|place| self.bound_at(place, sketches, bits))
    }

    /// What the row whose sketch is at a place scores at most.
    #[inline]
    fn bound_at(&self, place: u32, sketches: &RowSketches, bits: &[u64]) -> f64 {
        match self {
            RowSketch::None => f64::INFINITY,
            RowSketch::Sum(factors) => sketches.bound_at(place, bits, factors),
            RowSketch::Function(function, factors) => with_zeros(function.attributes().len(), |most| {
                sketches.contributions_at(place, bits, factors, most);
                function.most(most)
            }),
        }
    }
}

/// Calls `use_them` with this many zeros.
fn with_zeros<T>(count: usize, use_them: impl FnOnce(&mut [f64]) -> T) -> T {
    let mut few = [0.0; 16];
    match few.get_mut(..count) {
        Some(zeros) => use_them(zeros),
        None => use_them(&mut vec![0.0; count]),
    }
}

/// How far ahead of scoring memory is fetched, in rows.
const FETCH_AHEAD: usize = 8;

/// Offers the rows of the units that hold.
struct Offering<'a, 'b, 'v> {
    scorer: &'a Scorer<'a, 'v>,
    best: &'b mut TopK<'v, Location>,
    rows: Vec<u32>,
    /// Rows that are scored by their records, which costs more than all others, with their bounds.
    deferred: Vec<(f64, u32)>,
    /// How many records were decoded.
    decoded: u64,
    failed: Option<Error>,
}

/// Rows that wait to be scored by their records, so that those with the highest bounds come first.
const MOST_DEFERRED: usize = 1024;

impl Offering<'_, '_, '_> {
    #[inline]
    fn row(&mut self, row: u32, bits: &[u64]) {
        let query = self.scorer.query;
        match self.scorer.standing(row, bits, self.best) {
            Standing::Score(score) if query.keeps.keeps(row) => query.offer(row, score, self.best),
            Standing::AskRecord if query.keeps.keeps(row) => {
                self.deferred.push((query.measure.bound(self.scorer.scoring.bound(row)), row));
                if self.deferred.len() == MOST_DEFERRED {
                    self.settle();
                }
            }
            _ => {}
        }
    }

    /// Scores the rows that wait, as long as one of them may be among the best.
    fn settle(&mut self) {
        let query = self.scorer.query;
        self.deferred.sort_unstable_by(|(a, first), (b, second)| b.total_cmp(a).then(first.cmp(second)));
        for (bound, row) in std::mem::take(&mut self.deferred) {
            let wanted = self.best.least_wanted();
            if self.failed.is_some() || bound < wanted {
                break;
            }
            if bound == wanted && !query.could_tie(row, self.best) {
                continue;
            }
            self.decoded += 1;
            match query.by_record(row) {
                Ok(Some(score)) => query.offer(row, score, self.best),
                Ok(None) => {}
                Err(error) => self.failed = Some(error),
            }
        }
    }
}

impl UnitCollector for Offering<'_, '_, '_> {
    fn unit(&mut self, unit: u32, bits: &[u64]) -> ControlFlow<()> {
        for &row in self.scorer.layout.rows_of(unit) {
            self.row(row, bits);
        }
        ControlFlow::Continue(())
    }

    fn least_wanted(&self) -> f64 {
        if self.failed.is_some() { f64::INFINITY } else { self.best.least_wanted() }
    }
}

impl RankingCollector for Offering<'_, '_, '_> {
    fn least_bound(&self, score: f64) -> f32 {
        let Scorer { query, sketch, .. } = &self.scorer;
        if let RowSketch::Sum(Factors::One) = sketch {
            return rounded_up(score);
        }
        // Scores rise with bounds, and floats that are not negative with their bits.
        let (mut allows, mut least) = (f32::INFINITY.to_bits(), 0);
        while least < allows {
            let middle = least.midpoint(allows);
            if query.measure.bound(f32::from_bits(middle) as f64) >= score {
                allows = middle;
            } else {
                least = middle + 1;
            }
        }
        f32::from_bits(least)
    }

    #[inline]
    fn promised(&self, entry_bound: EntryBound, bits: &[u64]) -> f64 {
        let Scorer { query, scoring, sketch, .. } = &self.scorer;
        match (entry_bound.sketch(), sketch) {
            (Some(place), _) => sketch.bound_at(place, &scoring.sketches, bits),
            (None, RowSketch::Sum(Factors::One)) => entry_bound.bound as f64,
            (None, _) => query.measure.bound(entry_bound.bound as f64),
        }
    }

    #[inline]
    fn fetch_promised(&self, entry_bound: EntryBound) {
        if let Some(place) = entry_bound.sketch() {
            self.scorer.scoring.sketches.fetch_at(place);
        }
    }

    #[inline]
    fn could_tie(&self, unit: u32) -> bool {
        let Scorer { query, layout, .. } = &self.scorer;
        layout.rows_of(unit).iter().any(|row| query.could_tie(*row, self.best))
    }

    fn units(&mut self, units: &[u32], bits: &[u64]) {
        let Scorer { layout, scoring, .. } = self.scorer;
        let mut rows = std::mem::take(&mut self.rows);
        rows.clear();
        for unit in units {
            rows.extend_from_slice(layout.rows_of(*unit));
        }
        for (at, row) in rows.iter().enumerate() {
            if let Some(later) = rows.get(at + 2 * FETCH_AHEAD) {
                scoring.fetch_places(*later);
            }
            if let Some(soon) = rows.get(at + FETCH_AHEAD) {
                scoring.fetch(*soon, self.best.least_wanted() == f64::NEG_INFINITY);
            }
            self.row(*row, bits);
        }
        self.rows = rows;
    }
}
