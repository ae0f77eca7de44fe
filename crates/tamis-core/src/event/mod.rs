//! Events: values, attributes, and the conversion of records and Arrow batches.

pub(crate) mod arrow;
pub(crate) mod error;
pub(crate) mod fields;
pub mod json;
mod known_fields;
mod order;
pub(crate) mod record;
pub(crate) mod schema;
pub(crate) mod source;
pub(crate) mod weighted;

pub use crate::term::{TermId, Terms};
pub use crate::value::cell::read_cell;
pub use crate::value::decimal::Decimal;
pub(crate) use crate::value::number;
pub use crate::value::set::ValueSet;
pub use crate::value::timestamp::{can_be_written, format_timestamp, format_timestamp_iso, parse_timestamp};
pub(crate) use crate::value::{self, timestamp};
pub use crate::value::{Kind, Value, ValueRef};
pub use arrow::ArrowEvents;
pub use error::{EventError, Unreadable};
pub use fields::{EventBuilder, Fields, Scratch, Wanted};
pub use known_fields::SeenField;
pub use record::{NameResolver, Names, Record, RecordBuilder};
pub use schema::{EpochUnit, Schema, Type};
pub use source::EventSource;
pub use weighted::{WeightedEvents, Weights};

/// One event, resolved against the attribute names of an index: what every index reads.
///
/// Holds only attributes that some subscription names, each at most once, sorted by id.
/// An absent attribute and a null one are the same: neither appears here.
#[derive(Clone, Debug, Default)]
pub struct Event<'a> {
    pub values: Vec<(TermId, ValueRef<'a>)>,
    /// Weight per attribute, where the event gives one; sorted by id.
    pub weights: Vec<(TermId, f64)>,
    /// Whether some attribute holds an interval, or another set of values, instead of a point.
    pub has_intervals: bool,
    /// What the event gave for attributes and no value can hold. They are absent.
    pub unreadable: Vec<EventError>,
}

impl<'a> Event<'a> {
    /// Forgets everything but its memory.
    #[inline]
    pub fn clear(&mut self) {
        self.values.clear();
        self.weights.clear();
        self.has_intervals = false;
        self.unreadable.clear();
    }

    /// An event without values in the memory of another, whatever that one borrowed from.
    pub fn recycled<'b>(mut self) -> Event<'b> {
        self.clear();
        let Self { values, weights, unreadable, .. } = self;
        // Nothing is mapped. Collecting into a vector of the same layout keeps its memory.
        let values = values.into_iter().map(|_| unreachable!("it was cleared")).collect();
        Event { values, weights, has_intervals: false, unreadable }
    }

    /// The value of one attribute, or `None` when it is absent.
    pub fn get(&self, attribute: TermId) -> Option<ValueRef<'a>> {
        self.values.binary_search_by_key(&attribute, |(id, _)| *id).ok().map(|at| self.values[at].1)
    }
}
