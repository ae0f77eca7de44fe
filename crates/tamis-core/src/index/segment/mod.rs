//! A segment: an immutable set of subscriptions, laid out to be matched.
//!
//! `layout` and `matcher` answer "which rows hold?"; `ledger` answers "what is row 17?".

pub mod access;
pub mod builder;
pub mod dag;
pub mod layout;
pub mod ledger;
pub mod matcher;
pub mod prefetch;
pub mod program;
pub mod record;
pub mod selectivity;
pub mod stored;
#[cfg(test)]
mod tests;
pub mod validate;

use crate::error::Result;
use crate::event::{Attributes, Event};
use crate::expr::atoms::AtomTable;
use crate::expr::normal_form::normal_form;
use crate::index::subscription::Subscription;
use builder::{LayoutBuilder, Sharing};
use layout::Layout;
use ledger::{Ledger, LedgerBuilder};
use stored::Origin;

#[derive(Default)]
pub struct Segment {
    pub layout: Layout,
    pub ledger: Ledger,
    pub sharing: Sharing,
    /// The file it was mapped from, if it was.
    pub origin: Option<Origin>,
}

impl Segment {
    /// Verifies what was mapped from a file, on first use.
    pub fn prepare(&self) -> Result<()> {
        match &self.origin {
            None => Ok(()),
            Some(origin) => origin.verify_once(&self.layout, &self.ledger),
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
}

impl<'a> SegmentBuilder<'a> {
    pub fn new(attributes: &'a mut Attributes) -> Self {
        Self {
            attributes,
            atoms: AtomTable::default(),
            layout: LayoutBuilder::default(),
            ledger: LedgerBuilder::default(),
        }
    }

    pub fn push(&mut self, subscription: &Subscription) -> Result<()> {
        let normal = normal_form(&subscription.expression, self.attributes, &mut self.atoms);
        self.layout.push(&normal.root);
        self.ledger.push(subscription, normal.point_only, self.attributes)
    }

    /// Adds a row of another segment of the same index.
    pub fn push_row(&mut self, segment: &Segment, row: u32) -> Result<()> {
        let subscription = segment.subscription(row, self.attributes)?;
        let normal = normal_form(&subscription.expression, self.attributes, &mut self.atoms);
        self.layout.push(&normal.root);
        self.ledger.push_copy(&subscription, normal.point_only, segment.ledger.record(row))
    }

    /// Lays the segment out, using sample events to choose access predicates.
    pub fn finish(self, samples: &[Event<'_>]) -> Result<Segment> {
        let (layout, sharing) = self.layout.finish(&self.atoms, samples, self.ledger.priorities())?;
        Ok(Segment { layout, ledger: self.ledger.finish(), sharing, origin: None })
    }
}
