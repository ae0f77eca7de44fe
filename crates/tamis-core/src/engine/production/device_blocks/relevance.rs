//! The best matches of a block by relevance. The device scores rows that have programs; the processor scores
//! the others from their records.

use super::super::block::Block;
use super::super::view::View;
use super::{BlocksOnDevice, PartOnDevice};
use crate::engine::contract::{Location, Scored, Version};
use crate::engine::device::{
    BestByRelevance, DeviceResult, MOST_BY_RELEVANCE, RelevanceQuery, RowNumbers, ScoredRow,
};
use crate::error::Result;
use crate::event::Event;
use crate::query::{Filter, Measure, Ranking, Score, TopK};

/// What was found in the rows of one part, as the device numbers them.
pub(super) struct RankedPart {
    part: u32,
    rows: RowNumbers,
    found: BestByRelevance,
}

impl PartOnDevice<'_> {
    fn best_by_relevance(&self, query: RelevanceQuery) -> DeviceResult<Option<RankedPart>> {
        let found = self.rows.plan.best_by_relevance(self.tokens, self.kept().as_ref(), query)?;
        Ok(found.map(|found| RankedPart { part: self.number, rows: self.rows.rows.clone(), found }))
    }
}

impl RankedPart {
    fn location(&self, number: u32) -> Location {
        Location::Row { part: self.part, row: self.rows.row(number) }
    }

    fn best(&self, at: usize) -> impl Iterator<Item = Scored> + '_ {
        let found = self.found.best[at].iter();
        found.map(|&ScoredRow { row, score }| Scored { location: self.location(row), score })
    }

    fn by_record(&self, at: usize) -> &[u32] {
        self.found.by_record.as_ref().map_or(&[], |listed| listed.of(at))
    }
}

impl<'e> BlocksOnDevice<'e> {
    /// What the device finds; `None` if this processor is to answer.
    pub(super) fn ranked_by_relevance(
        &mut self,
        block: &Block<'e>,
        ranking: &Ranking,
    ) -> Option<Vec<RankedPart>> {
        let is_for_device = ranking.score == Score::Relevance
            && ranking.dimensions.is_none()
            && (1..=MOST_BY_RELEVANCE).contains(&ranking.k)
            && !block.has_weights();
        if !is_for_device {
            return None;
        }
        let query = RelevanceQuery { k: ranking.k, min_score: ranking.min_score };
        let mut is_left = false;
        let asked = self.try_each_part(block, &mut |part| {
            if is_left {
                return Ok(None); // one that the device leaves here is enough
            }
            let found = part.best_by_relevance(query)?;
            is_left = found.is_none();
            Ok(found)
        });
        let parts = asked.map_err(|error| self.memory.fail(error)).ok()?;
        let parts = parts.into_iter().collect::<Option<Vec<_>>>()?;
        self.memory.note_block();
        Some(parts)
    }
}

/// Replaces `found` by the best matches of an event by relevance, the best first.
pub(super) fn best_of(
    view: &View,
    filter: &Filter<'_>,
    block: &Block<'_>,
    at: usize,
    ranking: &Ranking,
    parts: &[RankedPart],
    found: &mut Vec<Scored>,
) -> Result<()> {
    found.clear();
    let needs_event = !view.buffer.is_empty() || parts.iter().any(|part| !part.by_record(at).is_empty());
    if let ([part], false) = (parts, needs_event) {
        found.extend(part.best(at));
        return Ok(());
    }
    let mut best = TopK::new(ranking.k, ranking.min_score);
    for scored in parts.iter().flat_map(|part| part.best(at)) {
        best.offer(view.id(scored.location), scored.score, scored.location);
    }
    let mut outcome = Ok(());
    if needs_event {
        block.with_event(at, |event| {
            outcome = offer_others(view, filter, event, at, ranking, parts, &mut best)
        });
    }
    outcome?;
    let sorted = best.into_sorted().into_iter();
    found.extend(sorted.map(|best| Scored { location: best.item, score: best.score }));
    Ok(())
}

/// Offers what the device does not score.
fn offer_others<'v>(
    view: &'v View,
    filter: &Filter<'_>,
    event: &Event<'_>,
    at: usize,
    ranking: &Ranking,
    parts: &[RankedPart],
    best: &mut TopK<'v, Location>,
) -> Result<()> {
    let measure = Measure::new(ranking, event, &view.terms);
    view.offer_buffered(event, &measure, filter, best);
    for part in parts {
        let segment = &view.parts[part.part as usize].segment;
        for number in part.by_record(at) {
            let row = part.rows.row(*number);
            if segment.scoring.bound(row) < best.least_wanted() {
                continue;
            }
            let subscription = segment.subscription(row, &view.terms)?;
            if let Some(score) = measure.of(&subscription, event, &view.terms) {
                let location = part.location(*number);
                best.offer(view.id(location), score, location);
            }
        }
    }
    Ok(())
}
