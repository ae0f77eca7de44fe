//! A segment: an immutable set of subscriptions, laid out to be matched.
//!
//! `layout` and `matcher` answer "which rows hold?"; `ledger` answers "what is row 17?"; `scoring` answers
//! "how relevant is it?".

pub mod access;
pub mod builder;
pub mod dag;
pub mod layout;
pub mod ledger;
pub mod matcher;
pub mod prefetch;
pub mod program;
pub mod record;
pub mod relaxed;
pub mod scoring;
pub mod selectivity;
pub mod stored;
#[cfg(test)]
mod tests;
pub mod validate;

use std::sync::OnceLock;

use crate::error::{Error, Result};
use crate::event::{Attributes, Event};
use crate::expr::atoms::AtomTable;
use crate::expr::normal_form::normal_form;
use crate::fork::get_or_init;
use crate::index::subscription::Subscription;
use builder::{LayoutBuilder, Sharing};
use layout::Layout;
use ledger::{Ledger, LedgerBuilder};
use relaxed::Relaxed;
use scoring::{Scoring, ScoringBuilder};
use stored::Origin;

#[derive(Default)]
pub struct Segment {
    pub layout: Layout,
    pub ledger: Ledger,
    pub scoring: Scoring,
    pub sharing: Sharing,
    /// The file it was mapped from, if it was.
    pub origin: Option<Origin>,
    /// Made when somebody asks.
    relaxed: OnceLock<std::result::Result<Relaxed, String>>,
}

impl Segment {
    /// Verifies what was mapped from a file, on first use.
    pub fn prepare(&self) -> Result<()> {
        match &self.origin {
            None => Ok(()),
            Some(origin) => origin.verify_once(&self.layout, &self.ledger, &self.scoring),
        }
    }

    /// Whether everything was verified and found right.
    pub fn is_prepared(&self) -> bool {
        self.origin.as_ref().is_none_or(|origin| origin.is_verified())
    }

    /// All there is to know of a row.
    pub fn subscription(&self, row: u32, attributes: &Attributes) -> Result<Subscription> {
        if let Some(origin) = &self.origin {
            origin.check_records(
                self.ledger.record_off[row as usize],
                self.ledger.record_off[row as usize + 1],
            )?;
        }
        self.ledger.subscription(row, attributes)
    }

    /// What relaxed questions need, built by the first of them.
    pub fn relaxed(&self, attributes: &Attributes) -> Result<&Relaxed> {
        let built = get_or_init(&self.relaxed, || {
            Relaxed::build(self, attributes).map_err(|error| error.to_string())
        });
        built.as_ref().map_err(|message| Error::Snapshot(message.clone()))
    }

    /// The bytes of what relaxed questions need, if one was asked.
    pub fn relaxed_bytes(&self) -> usize {
        self.relaxed.get().and_then(|built| built.as_ref().ok()).map_or(0, Relaxed::bytes)
    }

    pub fn len(&self) -> usize {
        self.ledger.len()
    }

    pub fn is_empty(&self) -> bool {
        self.ledger.is_empty()
    }
}

/// Builds a segment from subscriptions in rising order of id.
pub struct SegmentBuilder<'a> {
    attributes: &'a mut Attributes,
    atoms: AtomTable,
    layout: LayoutBuilder,
    ledger: LedgerBuilder,
    scoring: ScoringBuilder,
}

impl<'a> SegmentBuilder<'a> {
    pub fn new(attributes: &'a mut Attributes) -> Self {
        Self {
            attributes,
            atoms: AtomTable::default(),
            layout: LayoutBuilder::default(),
            ledger: LedgerBuilder::default(),
            scoring: ScoringBuilder::default(),
        }
    }

    pub fn push(&mut self, subscription: &Subscription) -> Result<()> {
        let normal = normal_form(&subscription.expression, self.attributes, &mut self.atoms);
        self.layout.push(&normal.root);
        self.scoring.push(subscription, self.attributes, &mut self.atoms);
        self.ledger.push(subscription, normal.point_only, self.attributes)
    }

    /// Adds a row of another segment of the same index, which is this subscription, record and all.
    pub fn push_row(&mut self, subscription: &Subscription, segment: &Segment, row: u32) -> Result<()> {
        let normal = normal_form(&subscription.expression, self.attributes, &mut self.atoms);
        self.layout.push(&normal.root);
        self.scoring.push(subscription, self.attributes, &mut self.atoms);
        self.ledger.push_copy(subscription, normal.point_only, segment.ledger.record(row))
    }

    /// Lays the segment out, using sample events to choose access predicates.
    pub fn finish(self, samples: &[Event<'_>]) -> Result<Segment> {
        let (layout, scoring, sharing) =
            self.layout.finish(&self.atoms, samples, self.ledger.priorities(), self.scoring)?;
        Ok(Segment { layout, ledger: self.ledger.finish(), scoring, sharing, ..Segment::default() })
    }
}
