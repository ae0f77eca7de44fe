//! A segment: an immutable set of subscriptions, laid out to be matched.
//!
//! `layout` and `matcher` answer "which rows hold?"; `subscription_table` answers "what is row 17?"; `scoring` answers
//! "how relevant is it?".

pub mod access_predicates;
pub mod best_first;
pub mod bit_parallel;
pub mod bit_sliced;
mod buckets;
pub mod buffered_subscription;
pub mod build;
pub mod counters;
pub mod dag;
pub mod device_plan;
mod entry_tests;
pub mod forms;
pub mod layout;
pub mod layout_planner;
pub mod layout_writer;
mod many_paths;
mod masks;
pub mod matcher;
mod one_path;
mod planned_code;
pub mod program;
pub mod record;
pub mod relaxed;
pub mod scoring;
pub mod sections;
pub mod selectivity;
pub mod single_row_set;
pub mod subscription_table;
#[cfg(test)]
mod tests;
pub mod threads;
pub mod unit_evaluation;
pub mod units;
pub mod validate;
pub mod walk;
pub mod walk_on_threads;

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::engine::contract::Work;
use crate::error::{Error, Result};
use crate::event::{Event, Terms};
use crate::fork::get_or_init;
use crate::subscription::Subscription;
use bit_sliced::BitSliced;
pub use build::{SegmentBuilder, build_on_threads};
use forms::Forms;
use layout::Layout;
use layout_planner::{LayoutBasis, Sharing};
use matcher::Scratch;
use relaxed::Relaxed;
use scoring::Scoring;
use sections::Origin;
use subscription_table::SubscriptionTable;
pub use threads::{Threads, all_cores};
use walk::UnitCollector;

#[derive(Default)]
pub struct Segment {
    pub layout: Layout,
    pub subscription_table: SubscriptionTable,
    pub scoring: Scoring,
    pub sharing: Sharing,
    pub layout_basis: LayoutBasis,
    /// Kept by small segments, which will soon be merged: it spares normalising their rows again.
    pub forms: Option<Forms>,
    /// The file it was mapped from, if it was.
    pub origin: Option<Origin>,
    /// The plan of a small segment, and how often it was looked for before it was made.
    bit_sliced: OnceLock<Option<Box<BitSliced>>>,
    unplanned: AtomicU32,
    /// Made when somebody asks.
    relaxed: OnceLock<std::result::Result<Relaxed, String>>,
}

/// Lookups per subscription before a small segment gets its plan. Making it takes as long as it saves in about that many events, and
/// small segments of an index that changes are soon merged. Tests do not wait.
const LOOKS_PER_ROW: usize = if cfg!(any(test, feature = "testing")) { 0 } else { 32 };

impl Segment {
    /// Its plan, if it is small and was looked for often enough.
    #[inline]
    pub fn bit_sliced(&self) -> Option<&BitSliced> {
        match self.bit_sliced.get() {
            Some(plan) => plan.as_deref(),
            None => self.plan_if_due(),
        }
    }

    #[cold]
    fn plan_if_due(&self) -> Option<&BitSliced> {
        let looks = self.unplanned.fetch_add(1, Ordering::Relaxed) as usize;
        if looks < self.len().saturating_mul(LOOKS_PER_ROW) && self.len() <= bit_sliced::MOST_RULES {
            return None;
        }
        get_or_init(&self.bit_sliced, || BitSliced::new(&self.layout).map(Box::new)).as_deref()
    }

    /// Hands every unit that is true for the event to the collector, as [`Layout::matching_units`] does.
    #[inline]
    pub fn matching_units(
        &self,
        event: &Event<'_>,
        scratch: &mut Scratch,
        collector: &mut impl UnitCollector,
    ) -> Work {
        if let Some(plan) = self.bit_sliced()
            && let Some(work) = plan.matching_units(&self.layout, event, scratch.for_plan(), collector)
        {
            return work;
        }
        self.layout.matching_units(event, scratch, collector)
    }

    /// Verifies what was mapped from a file, on first use.
    pub fn prepare(&self) -> Result<()> {
        match &self.origin {
            None => Ok(()),
            Some(origin) => origin.verify_once(&self.layout, &self.subscription_table, &self.scoring),
        }
    }

    /// Whether everything was verified and found right.
    pub fn is_prepared(&self) -> bool {
        self.origin.as_ref().is_none_or(|origin| origin.is_verified())
    }

    /// All there is to know of a row.
    pub fn subscription(&self, row: u32, terms: &Terms) -> Result<Subscription> {
        self.check_record(row)?;
        self.subscription_table.subscription(row, terms)
    }

    /// Verifies the record of a row, if it was mapped from a file.
    fn check_record(&self, row: u32) -> Result<()> {
        let [from, to] = [
            self.subscription_table.record_off[row as usize],
            self.subscription_table.record_off[row as usize + 1],
        ];
        self.origin.as_ref().map_or(Ok(()), |origin| origin.check_records(from, to))
    }

    /// What relaxed queries need, built by the first of them.
    pub fn relaxed(&self, terms: &Terms) -> Result<&Relaxed> {
        let built =
            get_or_init(&self.relaxed, || Relaxed::build(self, terms).map_err(|error| error.to_string()));
        built.as_ref().map_err(|message| Error::Snapshot(message.clone()))
    }

    /// The bytes of what relaxed queries need, if one was asked.
    pub fn relaxed_bytes(&self) -> usize {
        self.relaxed.get().and_then(|built| built.as_ref().ok()).map_or(0, Relaxed::bytes)
    }

    /// The bytes of its plan, if it has one.
    pub fn plan_bytes(&self) -> usize {
        self.bit_sliced.get().and_then(Option::as_ref).map_or(0, |plan| plan.bytes())
    }

    pub fn len(&self) -> usize {
        self.subscription_table.len()
    }
}
