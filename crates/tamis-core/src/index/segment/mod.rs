//! A segment: an immutable set of subscriptions, laid out to be matched.
//!
//! `layout` and `matcher` answer "which rows hold?"; `ledger` answers "what is row 17?".

pub mod access;
pub mod build;
pub mod builder;
pub mod dag;
pub mod forms;
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
use crate::event::Attributes;
use crate::index::subscription::Subscription;
pub use build::{SegmentBuilder, all_cores, build_on_threads};
use builder::{LayoutBasis, Sharing};
use forms::Forms;
use layout::Layout;
use ledger::Ledger;
use stored::Origin;

#[derive(Default)]
pub struct Segment {
    pub layout: Layout,
    pub ledger: Ledger,
    pub sharing: Sharing,
    pub layout_basis: LayoutBasis,
    /// Kept by small segments, which will soon be merged: it spares normalising their rows again.
    pub forms: Option<Forms>,
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
        self.check_record(row)?;
        self.ledger.subscription(row, attributes)
    }

    /// Verifies the record of a row, if it was mapped from a file.
    fn check_record(&self, row: u32) -> Result<()> {
        let [from, to] = [self.ledger.record_off[row as usize], self.ledger.record_off[row as usize + 1]];
        self.origin.as_ref().map_or(Ok(()), |origin| origin.check_records(from, to))
    }

    pub fn len(&self) -> usize {
        self.ledger.len()
    }

    pub fn is_empty(&self) -> bool {
        self.ledger.is_empty()
    }
}
