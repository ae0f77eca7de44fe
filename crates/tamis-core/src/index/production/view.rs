//! One consistent version of an index. Readers hold one; writers publish the next.

use std::ops::ControlFlow;
use std::sync::{Arc, OnceLock};

use super::buffer::Buffer;
use super::buffered::Presence;
use super::deaths::Deaths;
use super::expected::ExpectedKinds;
use crate::error::Result;
use crate::event::{Attributes, Event};
use crate::expr::eval::evaluate;
use crate::fork::get_or_init;
use crate::index::reader::{GO_ON, IdRef, STOP};
use crate::index::segment::Segment;
use crate::index::segment::layout::Layout;
use crate::index::segment::matcher::{Scratch, Work};
use crate::index::segment::walk::UnitCollector;
use crate::index::subscription::{Id, IdKind, Subscription};

/// A segment, and which of its rows have died.
#[derive(Clone)]
pub struct Part {
    pub segment: Arc<Segment>,
    pub deaths: Arc<Deaths>,
}

impl Part {
    pub fn new(segment: Segment) -> Self {
        let deaths = Arc::new(Deaths::new(segment.len()));
        Self { segment: Arc::new(segment), deaths }
    }

    pub fn living(&self) -> usize {
        self.segment.len() - self.deaths.count()
    }
}

#[derive(Clone)]
pub struct View {
    pub generation: u64,
    pub attributes: Attributes,
    pub id_kind: Option<IdKind>,
    pub len: usize,
    /// Shared by all versions between two changes of a segment.
    pub parts: Arc<Vec<Part>>,
    pub buffer: Buffer,
    /// Made when an event asks, and kept up to date by insertions from then on.
    pub expected: OnceLock<ExpectedKinds>,
}

impl Default for View {
    fn default() -> Self {
        Self {
            generation: 0,
            attributes: Attributes::default(),
            id_kind: None,
            len: 0,
            parts: Arc::default(),
            buffer: Buffer::default(),
            expected: OnceLock::new(),
        }
    }
}

/// Where a subscription is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Location {
    Row { part: u32, row: u32 },
    Buffer(u32),
}

/// Which matches a caller wants.
#[derive(Clone, Debug)]
pub struct Filter {
    /// Only subscriptions that have any of these tags; `None`: all.
    pub tags: Option<Vec<Box<str>>>,
    /// UTC microseconds; subscriptions that expired by then do not match.
    pub now: i64,
}

impl View {
    pub fn locate(&self, id: &Id) -> Option<Location> {
        if let Some(at) = self.buffer.iter().position(|buffered| buffered.subscription.id == *id) {
            return Some(Location::Buffer(at as u32));
        }
        self.parts.iter().enumerate().find_map(|(part, held)| {
            let row = held.segment.ledger.find(id)?;
            (!held.deaths.is_dead(row, self.generation)).then_some(Location::Row { part: part as u32, row })
        })
    }

    pub fn subscription_at(&self, location: Location) -> Result<Subscription> {
        match location {
            Location::Buffer(at) => Ok(self.buffer[at as usize].subscription.clone()),
            Location::Row { part, row } => {
                self.parts[part as usize].segment.subscription(row, &self.attributes)
            }
        }
    }

    pub fn get(&self, id: &Id) -> Result<Option<Subscription>> {
        self.locate(id).map(|location| self.subscription_at(location)).transpose()
    }

    /// Every living subscription's place, in no particular order.
    pub fn locations(&self) -> impl Iterator<Item = Location> + '_ {
        let rows = self.parts.iter().enumerate().flat_map(move |(part, held)| {
            (0..held.segment.len() as u32)
                .filter(move |row| !held.deaths.is_dead(*row, self.generation))
                .map(move |row| Location::Row { part: part as u32, row })
        });
        rows.chain((0..self.buffer.len() as u32).map(Location::Buffer))
    }

    pub fn id_at(&self, location: Location) -> Id {
        match location {
            Location::Buffer(at) => self.buffer[at as usize].subscription.id.clone(),
            Location::Row { part, row } => self.parts[part as usize].segment.ledger.id(row),
        }
    }

    pub fn id_ref(&self, location: Location) -> IdRef<'_> {
        match location {
            Location::Buffer(at) => self.buffer[at as usize].subscription.id.as_ref(),
            Location::Row { part, row } => self.parts[part as usize].segment.ledger.id_ref(row),
        }
    }

    /// How many values of an event are of a kind that no predicate expects.
    pub fn mismatches(&self, event: &Event<'_>) -> u64 {
        self.expected().mismatches(event)
    }

    /// The kinds of values that predicates expect.
    pub fn expected(&self) -> &ExpectedKinds {
        get_or_init(&self.expected, || ExpectedKinds::of(self))
    }

    /// Calls `found` with the place of every match, each once, in no particular order.
    pub fn for_each_match(
        &self,
        event: &Event<'_>,
        filter: &Filter,
        scratch: &mut Scratch,
        mut found: impl FnMut(Location),
    ) -> Work {
        let mut work = Work::default();
        for (part, held) in self.parts.iter().enumerate() {
            let keeps = RowFilter::new(self, held, filter, event);
            work += held.segment.layout.matching_units(event, scratch, &mut |unit| {
                for &row in held.segment.layout.rows_of(unit) {
                    if keeps.keeps(row) {
                        found(Location::Row { part: part as u32, row });
                    }
                }
                GO_ON
            });
            if event.has_intervals {
                for &row in held.segment.ledger.point_only.iter() {
                    // The normal form may have found it too: it is reported here alone.
                    if keeps.keeps_point_only(row) {
                        found(Location::Row { part: part as u32, row });
                    }
                }
            }
        }
        self.buffered_matches(event, filter).for_each(&mut found);
        work.candidates += self.buffer.len() as u64;
        work.mismatches = self.mismatches(event);
        work
    }

    /// The places of the matches in the buffer.
    pub fn buffered_matches(&self, event: &Event<'_>, filter: &Filter) -> impl Iterator<Item = Location> {
        let present = Presence::of(event);
        self.buffer.iter().enumerate().filter_map(move |(at, buffered)| {
            let holds =
                filter.keeps(&buffered.subscription) && buffered.holds(event, present, &self.attributes);
            holds.then_some(Location::Buffer(at as u32))
        })
    }

    /// The number of matches, without looking at single rows where it can be avoided.
    pub fn count(&self, event: &Event<'_>, filter: &Filter, scratch: &mut Scratch) -> (usize, Work) {
        let mut count = 0;
        let plain = filter.tags.is_none()
            && !event.has_intervals
            && self.parts.iter().all(|part| !part.deaths.any() && part.segment.ledger.expiries.is_empty());
        if !plain {
            let work = self.for_each_match(event, filter, scratch, |_| count += 1);
            return (count, work);
        }
        let mut work = Work::default();
        for part in self.parts.iter() {
            let mut counting = Counting { layout: &part.segment.layout, rows: 0 };
            work += part.segment.layout.matching_units(event, scratch, &mut counting);
            count += counting.rows;
        }
        count += self.buffered_matches(event, filter).count();
        work.mismatches = self.mismatches(event);
        (count, work)
    }

    /// Whether anything matches; stops at the first match.
    pub fn exists(&self, event: &Event<'_>, filter: &Filter, scratch: &mut Scratch) -> (bool, Work) {
        let mut work = Work { mismatches: self.mismatches(event), ..Work::default() };
        if self.buffered_matches(event, filter).next().is_some() {
            return (true, work);
        }
        if event.has_intervals {
            let mut any = false;
            let work = self.for_each_match(event, filter, scratch, |_| any = true);
            return (any, work);
        }
        for part in self.parts.iter() {
            let keeps = RowFilter::new(self, part, filter, event);
            let layout = &part.segment.layout;
            let mut search = AnyRow { layout, keeps: &keeps, found: false };
            work += layout.matching_units(event, scratch, &mut search);
            if search.found {
                return (true, work);
            }
        }
        (false, work)
    }

    pub fn priority(&self, location: Location) -> f64 {
        match location {
            Location::Row { part, row } => self.parts[part as usize].segment.ledger.priority(row),
            Location::Buffer(at) => self.buffer[at as usize].subscription.priority,
        }
    }
}

/// Counts the rows of the units that hold.
pub(crate) struct Counting<'a> {
    pub layout: &'a Layout,
    pub rows: usize,
}

impl UnitCollector for Counting<'_> {
    fn unit(&mut self, unit: u32, _: &[u64]) -> ControlFlow<()> {
        self.rows += self.layout.rows_of(unit).len();
        GO_ON
    }

    fn lone(&mut self, _: u32, bits: u64, _: &[u64]) -> ControlFlow<()> {
        self.rows += bits.count_ones() as usize;
        GO_ON
    }
}

/// Stops at the first row that is kept.
struct AnyRow<'a> {
    layout: &'a Layout,
    keeps: &'a RowFilter<'a>,
    found: bool,
}

impl UnitCollector for AnyRow<'_> {
    fn unit(&mut self, unit: u32, _: &[u64]) -> ControlFlow<()> {
        self.found = self.layout.rows_of(unit).iter().any(|row| self.keeps.keeps(*row));
        if self.found { STOP } else { GO_ON }
    }

    fn may_stop(&self) -> bool {
        true
    }
}

impl Filter {
    pub fn keeps(&self, subscription: &Subscription) -> bool {
        subscription.expires.is_none_or(|expires| expires > self.now)
            && self.tags.as_ref().is_none_or(|tags| subscription.tags.iter().any(|tag| tags.contains(tag)))
    }
}

/// The filter of one part: the living, the unexpired, the tagged, and for interval events the
/// verified.
pub struct RowFilter<'a> {
    view: &'a View,
    part: &'a Part,
    now: i64,
    tagged: Option<Vec<&'a [u32]>>,
    event: &'a Event<'a>,
    checks_deaths: bool,
    checks_expiry: bool,
}

impl<'a> RowFilter<'a> {
    pub fn new(view: &'a View, part: &'a Part, filter: &'a Filter, event: &'a Event<'a>) -> Self {
        let ledger = &part.segment.ledger;
        Self {
            view,
            part,
            now: filter.now,
            tagged: filter
                .tags
                .as_ref()
                .map(|tags| tags.iter().map(|tag| ledger.rows_with_tag(tag)).collect()),
            event,
            checks_deaths: part.deaths.any(),
            checks_expiry: !ledger.expiries.is_empty(),
        }
    }

    /// Whether there is nothing to filter.
    pub fn keeps_all(&self) -> bool {
        !self.checks_deaths && !self.checks_expiry && self.tagged.is_none() && !self.event.has_intervals
    }

    pub fn keeps(&self, row: u32) -> bool {
        self.keeps_row(row)
            && (!self.event.has_intervals
                || self.part.segment.ledger.point_only.binary_search(&row).is_err() && self.verified(row))
    }

    fn keeps_point_only(&self, row: u32) -> bool {
        self.keeps_row(row) && self.verified(row)
    }

    /// Whether the row is alive, unexpired and tagged.
    pub fn keeps_row(&self, row: u32) -> bool {
        !(self.checks_deaths && self.part.deaths.is_dead(row, self.view.generation)
            || self.checks_expiry && self.part.segment.ledger.expires(row) <= self.now)
            && self
                .tagged
                .as_ref()
                .is_none_or(|lists| lists.iter().any(|rows| rows.binary_search(&row).is_ok()))
    }

    fn verified(&self, row: u32) -> bool {
        let attributes = &self.view.attributes;
        self.part.segment.subscription(row, attributes).is_ok_and(|subscription| {
            evaluate(&subscription.expression, &|name| self.event.get(attributes.get(name)?)).can_be_true
        })
    }
}
