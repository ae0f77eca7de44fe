//! The best matches of a view: which blocks are worth a look, and what a row scores.
//!
//! Rows are scored in one of three ways, which agree to the last bit: from the arrays of their segment, from
//! their record by the definition (interval events, changed weights, segments without weights), or, in the
//! buffer, from the subscription itself.

use super::overlay::Raised;
use super::view::{Filter, Location, Part, RowFilter, View};
use crate::error::Result;
use crate::event::Event;
use crate::index::segment::matcher::{Limits, Scratch, Work};
use crate::index::segment::relaxed::Relaxed;
use crate::rank::{Measure, TopK};

impl View {
    /// Offers everything that may be among the best.
    pub fn offer_best<'v>(
        &'v self,
        event: &Event<'_>,
        measure: &Measure<'_>,
        filter: &Filter,
        scratch: &mut Scratch,
        best: &mut TopK<'v, Location>,
    ) -> Result<Work> {
        let is_relaxed = matches!(measure, Measure::Relaxed(_));
        if event.has_intervals && !is_relaxed {
            return self.offer_matches(event, measure, filter, scratch, best);
        }
        let candidates = self.buffer.len() as u64;
        let mut work = Work { candidates, mismatches: self.mismatches(event), ..Work::default() };
        for (at, buffered) in self.buffer.iter().enumerate() {
            if filter.keeps(&buffered.subscription)
                && let Some(score) = measure.of(&buffered.subscription, event, &self.attributes)
            {
                best.offer(buffered.subscription.id.as_ref(), score, Location::Buffer(at as u32));
            }
        }
        for (number, part) in self.parts.iter().enumerate() {
            let question = Question {
                view: self,
                part,
                number: number as u32,
                event,
                measure,
                keeps: RowFilter::new(self, part, filter, event),
            };
            work += if !is_relaxed {
                question.ask_best(None, scratch, best)?
            } else if event.has_intervals {
                question.ask_all(best)?
            } else {
                question.ask_best(Some(part.segment.relaxed(&self.attributes)?), scratch, best)?
            };
        }
        Ok(work)
    }

    /// Offers every match, scored by its definition: for intervals, of which the bits of an event do not
    /// say which leaves can be true.
    fn offer_matches<'v>(
        &'v self,
        event: &Event<'_>,
        measure: &Measure<'_>,
        filter: &Filter,
        scratch: &mut Scratch,
        best: &mut TopK<'v, Location>,
    ) -> Result<Work> {
        let mut found = vec![];
        let work = self.for_each_match(event, filter, scratch, |location| found.push(location));
        for location in found {
            let subscription = self.subscription_at(location)?;
            if let Some(score) = measure.of(&subscription, event, &self.attributes) {
                best.offer(self.id_ref(location), score, location);
            }
        }
        Ok(work)
    }
}

/// One question to one part.
struct Question<'a, 'v> {
    view: &'v View,
    part: &'v Part,
    number: u32,
    event: &'a Event<'a>,
    measure: &'a Measure<'a>,
    keeps: RowFilter<'a>,
}

impl<'v> Question<'_, 'v> {
    /// Every row by its record: relaxed questions with intervals.
    fn ask_all(&self, best: &mut TopK<'v, Location>) -> Result<Work> {
        let rows = self.part.segment.len() as u32;
        for row in 0..rows {
            self.ask(row, best)?;
        }
        Ok(Work { candidates: rows as u64, evaluations: rows as u64, mismatches: 0 })
    }

    /// Offers a row if it matches, by its record.
    fn ask(&self, row: u32, best: &mut TopK<'v, Location>) -> Result<()> {
        let outscored =
            matches!(self.measure, Measure::Priority) && self.part.priority(row) < best.least_wanted();
        if !outscored
            && self.keeps.keeps_row(row)
            && let Some(score) = self.by_record(row)?
        {
            self.offer(row, score, best);
        }
        Ok(())
    }

    fn by_record(&self, row: u32) -> Result<Option<f64>> {
        let subscription = self.part.subscription(row, &self.view.attributes)?;
        Ok(self.measure.of(&subscription, self.event, &self.view.attributes))
    }

    fn offer(&self, row: u32, score: f64, best: &mut TopK<'v, Location>) {
        let id = self.part.segment.ledger.id_ref(row);
        best.offer(id, score, Location::Row { part: self.number, row });
    }

    /// Best blocks first, as long as they can lead to something that is wanted.
    fn ask_best(
        &self,
        relaxed: Option<&Relaxed>,
        scratch: &mut Scratch,
        best: &mut TopK<'v, Location>,
    ) -> Result<Work> {
        let segment = &*self.part.segment;
        let layout = relaxed.map_or(&segment.layout, |relaxed| &relaxed.layout);
        let raised = self.raised();
        let floor = raised.floor().map_or(f64::NEG_INFINITY, |bound| self.measure.bound(bound));
        let limits = match self.measure {
            Measure::Priority => Limits::new(&layout.block_bounds, floor.max(0.0), |bound| bound.max(floor)),
            measure => {
                let scoring = relaxed.map_or(&segment.scoring, |relaxed| &relaxed.scoring);
                Limits::new(&scoring.block_bounds, f64::INFINITY, move |bound| {
                    measure.bound(bound).max(floor)
                })
            }
        };
        let mut failed = None;
        let wanted = best.least_wanted();
        let work = layout.best_units(self.event, scratch, &limits, wanted, |unit, bits| {
            for &row in layout.rows_of(unit) {
                if raised.rows().binary_search(&row).is_ok() {
                    continue;
                }
                match self.score(row, relaxed, bits, best.least_wanted()) {
                    Ok(Some(score)) if self.keeps.keeps(row) => self.offer(row, score, best),
                    Ok(_) => {}
                    Err(error) => failed = Some(error),
                }
            }
            if failed.is_some() { f64::INFINITY } else { best.least_wanted() }
        });
        if let Some(error) = failed {
            return Err(error);
        }
        for &row in raised.rows() {
            self.ask(row, best)?;
        }
        Ok(work)
    }

    /// The rows whose scores rose above what the bounds of the segment say.
    fn raised(&self) -> &Raised {
        match self.measure {
            Measure::Priority => &self.part.overlay.priority,
            Measure::Relaxed(_) => &self.part.overlay.relaxed,
            Measure::Relevance(_) | Measure::Function(..) => &self.part.overlay.relevance,
        }
    }

    /// The score of a row that holds, or `None` if it is below what is wanted.
    #[inline]
    fn score(&self, row: u32, relaxed: Option<&Relaxed>, bits: &[u64], wanted: f64) -> Result<Option<f64>> {
        let segment = &*self.part.segment;
        if let Measure::Priority = self.measure {
            let priority = self.part.priority(row);
            return Ok((priority >= wanted).then_some(priority));
        }
        if !self.part.overlay.is_empty() && self.part.overlay.get(row).is_some_and(|scores| scores.reweighted)
        {
            return self.by_record(row);
        }
        let scoring = relaxed.map_or(&segment.scoring, |relaxed| &relaxed.scoring);
        if self.measure.bound(scoring.bound(row)) < wanted {
            return Ok(None);
        }
        let score = match (self.measure, relaxed) {
            (Measure::Relaxed(scale), Some(_)) => return Ok(scoring.relaxed(row, bits, scale)),
            (Measure::Relevance(scale), _) => scoring.relevance(row, bits, scale),
            (Measure::Function(function, scales), _) => {
                let contributions: Option<Vec<f64>> =
                    scales.iter().map(|scale| scoring.relevance(row, bits, scale)).collect();
                contributions.map(|contributions| function.evaluate(&contributions))
            }
            _ => None,
        };
        match score {
            Some(score) => Ok(Some(score)),
            None => self.by_record(row),
        }
    }
}
