//! Looks up the values of a block of events in a catalog, before the events are matched.
//!
//! Looking up many values of one attribute together is fast: its tables stay in the cache, and memory accesses overlap. So
//! a block of events is looked up attribute by attribute, and matched event by event.

use std::ops::Range;

use super::bits::Bits;
use super::catalog::{AttributeEntry, Catalog, FETCHED, Fired, Lookups, NO_ATTRIBUTE};
use super::delegated::{Delegate, Delegated, Nobody};
use super::equality::{Lookup, NOWHERE};
use super::keys::{join, ordered_key, split};
use crate::event::arrow::{ArrowEvents, ColumnView, FoundBooleans, See};
use crate::event::value::Kind;
use crate::event::{Event, TermId, ValueRef};

/// Where a value lies in the tables of its attribute.
#[derive(Clone, Copy, Debug)]
pub struct FoundAt {
    /// The attribute's entry in the catalog; of a Boolean, the term.
    entry: u32,
    state: State,
    /// Its entry among the points of its kind.
    point: u32,
    /// How many cuts of its kind lie below it.
    rank: u32,
}

#[derive(Clone, Copy, Debug)]
enum State {
    LookedUp(Kind),
    /// It has to be looked at when its event is matched; `point` is its place among the values.
    Whole,
    /// A Boolean among very many terms.
    Boolean(bool),
}

impl FoundAt {
    /// The term and its truth, if it is a Boolean among very many.
    fn boolean(&self) -> Option<(TermId, bool)> {
        match self.state {
            State::Boolean(truth) => Some((TermId(self.entry), truth)),
            _ => None,
        }
    }
}

/// Anything that sets bits and fires keys of a catalog.
pub trait Fires {
    /// Sets the bits of all predicates that are satisfied and reports the access keys that fire.
    fn fire(&self, catalog: &Catalog, bits: &mut Bits, fired: &mut impl Fired);

    /// The event, if it has values that stand for several.
    fn with_intervals(&self) -> Option<&Event<'_>>;
}

/// Whoever is told what the values of a block satisfy, in no order of events.
pub trait ToldOfEvents {
    fn bit(&mut self, event: u32, bit: u32);

    fn point(&mut self, event: u32, point: u32);

    /// So many cuts of a table lie below the value.
    fn rank(&mut self, event: u32, table: u32, rank: u32);
}

impl Fires for Event<'_> {
    fn fire(&self, catalog: &Catalog, bits: &mut Bits, fired: &mut impl Fired) {
        catalog.fire(self, bits, fired);
    }

    fn with_intervals(&self) -> Option<&Event<'_>> {
        self.has_intervals.then_some(self)
    }
}

impl<F: Fires> Fires for &F {
    fn fire(&self, catalog: &Catalog, bits: &mut Bits, fired: &mut impl Fired) {
        (**self).fire(catalog, bits, fired);
    }

    fn with_intervals(&self) -> Option<&Event<'_>> {
        (**self).with_intervals()
    }
}

/// An event of a block: a point, whose values are looked up.
#[derive(Clone, Copy)]
pub struct LookedUpEvent<'a> {
    places: &'a [FoundAt],
    values: &'a [ValueRef<'a>],
    booleans: &'a [(TermId, bool)],
}

impl Fires for LookedUpEvent<'_> {
    fn fire(&self, catalog: &Catalog, bits: &mut Bits, fired: &mut impl Fired) {
        catalog.fire_always(bits, fired);
        let mut lookups: Option<Lookups> = None;
        let booleans = catalog.booleans_of_many(fired);
        for places in self.places.chunks(FETCHED) {
            if catalog.has_many_terms() {
                let others = places.iter().filter(|place| place.boolean().is_none());
                catalog.fetch_entries(others.map(|place| place.entry));
                let found = places.iter().filter_map(FoundAt::boolean);
                booleans.inspect(|booleans| found.for_each(|(term, truth)| booleans.fetch(term, truth)));
            }
            for place in places {
                match place.state {
                    State::Boolean(truth) => {
                        let term = TermId(place.entry);
                        catalog.fire_boolean(term, truth, booleans, bits, fired, &mut lookups);
                    }
                    State::Whole => {
                        let entry = &catalog.terms[place.entry as usize];
                        let value = self.values[place.point as usize];
                        catalog.fire_value(entry, value, bits, fired, &mut lookups);
                    }
                    State::LookedUp(kind) => {
                        let entry = &catalog.terms[place.entry as usize];
                        catalog.fire_present(entry, kind, bits, fired);
                        if place.point != NOWHERE {
                            catalog.fire_point(place.point, bits, fired);
                        }
                        if place.rank != NOWHERE
                            && let Some(table) =
                                catalog.cuts_of(entry).iter().find(|cut| cut.kind == kind as u32)
                        {
                            catalog.fire_rank(table, place.rank, bits, fired);
                        }
                    }
                }
            }
        }
        if !self.booleans.is_empty() {
            catalog.fire_booleans(self.booleans, bits, fired, &mut lookups);
        }
        catalog.fire_lookups(&mut lookups, bits, fired);
        catalog.fire_absent(bits, fired);
    }

    fn with_intervals(&self) -> Option<&Event<'_>> {
        None
    }
}

/// A block of events, looked up in one catalog.
#[derive(Default)]
pub struct LookedUpBlock<'v> {
    /// Where the places of each event end; they begin where those of the event before end.
    ends: Vec<u32>,
    /// By event.
    places: Vec<FoundAt>,
    /// By attribute, each with its event: as they are found.
    found: Vec<(u32, FoundAt)>,
    values: Vec<ValueRef<'v>>,
    /// The Boolean terms that were found in rows of a batch, and the row of event 0.
    booleans: Option<(&'v FoundBooleans, usize)>,
    gathered: Gathered<'v>,
    /// By attribute, the values of events that are being placed, each with its event.
    by_entry: Vec<Vec<(u32, ValueRef<'v>)>>,
}

/// The memory of a list for elements of the same size. The list is empty, so nothing is converted.
fn emptied<T, U>(mut list: Vec<T>, convert: impl FnMut(T) -> U) -> Vec<U> {
    list.clear();
    list.into_iter().map(convert).collect()
}

/// Values of one attribute and one kind, to be looked up together.
#[derive(Default)]
struct Gathered<'v> {
    /// Whether none can be looked up this way.
    none: bool,
    kind: Option<Kind>,
    events: Vec<u32>,
    /// One for each event, if the kind has keys; otherwise `texts`.
    keys: Vec<[u64; 2]>,
    texts: Vec<&'v str>,
    lookup: Lookup,
}

impl<'v> Gathered<'v> {
    fn clear(&mut self) {
        self.kind = None;
        self.events.clear();
        self.keys.clear();
        self.texts.clear();
    }

    /// Takes a scalar of the kind of those before it.
    #[inline(always)]
    fn take(&mut self, event: u32, value: ValueRef<'v>) -> bool {
        let Some(kind) = value.kind() else { return false };
        if self.none || self.kind.is_some_and(|known| known != kind) {
            return false;
        }
        match value {
            ValueRef::Str(text) => self.texts.push(text),
            _ => match ordered_key(value) {
                Some(key) => self.keys.push(split(key)),
                None => return false,
            },
        }
        self.kind = Some(kind);
        self.events.push(event);
        true
    }
}

/// Gathers the values of a column that can be looked up together; the others wait in the block.
struct Gathering<'a, 'v, D> {
    block: &'a mut LookedUpBlock<'v>,
    gathered: &'a mut Gathered<'v>,
    number: u32,
    first: usize,
    /// Which values are looked up elsewhere, and who takes them.
    delegated: Option<Delegated>,
    delegate: &'a mut D,
}

impl<'v, D: Delegate> See<'v> for Gathering<'_, 'v, D> {
    #[inline(always)]
    fn value(&mut self, row: usize, value: ValueRef<'v>) {
        let event = row - self.first;
        if D::TAKES
            && let Some(delegated) = &self.delegated
            && let Some((table, head)) = delegated.place(value)
        {
            table.into_iter().for_each(|table| self.delegate.value(event as u32, table, head));
        } else if !self.gathered.take(event as u32, value) {
            self.block.push_whole(event, self.number, value);
        }
    }
}

impl<'v> LookedUpBlock<'v> {
    /// Forgets what it holds; there are this many events to come.
    pub fn clear(&mut self, events: usize) {
        self.ends.clear();
        self.ends.resize(events, 0);
        self.found.clear();
        self.values.clear();
        self.booleans = None;
    }

    /// Sorts what was found by event, after the last of it: memory follows the values that are there.
    pub fn arrange(&mut self) {
        for (event, _) in &self.found {
            self.ends[*event as usize] += 1;
        }
        let mut first = 0;
        for end in &mut self.ends {
            (first, *end) = (first + *end, first);
        }
        let nothing = FoundAt { entry: 0, state: State::Whole, point: NOWHERE, rank: NOWHERE };
        self.places.resize(self.found.len(), nothing);
        for (event, place) in &self.found {
            let end = &mut self.ends[*event as usize];
            self.places[*end as usize] = *place;
            *end += 1;
        }
    }

    pub fn event(&self, event: usize) -> LookedUpEvent<'_> {
        let first = if event == 0 { 0 } else { self.ends[event - 1] };
        LookedUpEvent {
            places: &self.places[first as usize..self.ends[event] as usize],
            values: &self.values,
            booleans: self.booleans.map_or(&[], |(found, first)| found.of_row(first + event)),
        }
    }

    /// What values satisfy, attribute by attribute, before they are arranged: each bit, point and rank with its event. `None` if
    /// events have to be looked at one by one: for a value that could not be looked up, or for an attribute that is missing.
    pub fn tell(&self, catalog: &Catalog, told: &mut impl ToldOfEvents) -> Option<()> {
        if !self.values.is_empty() || self.booleans.is_some() || !catalog.asks_absence.is_empty() {
            return None;
        }
        let mut last = None;
        let (mut bits, mut table) = ([0; 2], NOWHERE);
        for &(event, place) in &self.found {
            let State::LookedUp(kind) = place.state else { return None };
            // Values of one attribute follow one another, and most are of one kind.
            if last.replace((place.entry, kind)) != Some((place.entry, kind)) {
                let entry = &catalog.terms[place.entry as usize];
                bits = [entry.present, entry.defined[kind as usize]];
                let cuts = catalog.cuts_of(entry).iter().find(|cut| cut.kind == kind as u32);
                table = cuts.map_or(NOWHERE, |cut| catalog.number_of(cut));
            }
            bits.into_iter().filter(|bit| *bit != 0).for_each(|bit| told.bit(event, bit));
            if place.point != NOWHERE {
                told.point(event, place.point);
            }
            if place.rank != NOWHERE && table != NOWHERE {
                told.rank(event, table, place.rank);
            }
        }
        Some(())
    }

    /// Places events, to be arranged. Values are looked up attribute by attribute, unless there are very many attributes.
    pub fn place_events(&mut self, catalog: &Catalog, events: &[Event<'v>]) {
        self.clear(events.len());
        let has_many_terms = catalog.has_many_terms();
        let mut by_entry = std::mem::take(&mut self.by_entry);
        if !has_many_terms && by_entry.len() < catalog.terms.len() {
            by_entry.resize_with(catalog.terms.len(), Vec::new);
        }
        for (at, event) in events.iter().enumerate() {
            for (attribute, value) in &event.values {
                if let (ValueRef::Bool(truth), true) = (value, has_many_terms) {
                    let state = State::Boolean(*truth);
                    self.push(at, FoundAt { entry: attribute.0, state, point: NOWHERE, rank: NOWHERE });
                    continue;
                }
                match catalog.entry_of.get(attribute.0 as usize) {
                    Some(&number) if number == NO_ATTRIBUTE => {}
                    Some(&number) if has_many_terms => self.push_whole(at, number, *value),
                    Some(&number) => by_entry[number as usize].push((at as u32, *value)),
                    None => {}
                }
            }
        }
        for (entry, values) in std::iter::zip(catalog.terms.iter(), &mut by_entry) {
            self.place_values_of(catalog, entry, values.drain(..));
        }
        self.by_entry = by_entry;
    }

    /// Places values of one term, each with its event, to be arranged after the last term. No value may stand for several.
    pub fn place_values(
        &mut self,
        catalog: &Catalog,
        term: TermId,
        values: impl Iterator<Item = (u32, ValueRef<'v>)>,
    ) {
        if let Some(entry) = catalog.entry(term) {
            self.place_values_of(catalog, entry, values);
        }
    }

    fn place_values_of(
        &mut self,
        catalog: &Catalog,
        entry: &AttributeEntry,
        values: impl Iterator<Item = (u32, ValueRef<'v>)>,
    ) {
        let number = catalog.attribute_index(entry) as u32;
        let mut gathered = std::mem::take(&mut self.gathered);
        gathered.clear();
        gathered.none = entry.residual > 0;
        for (event, value) in values {
            if !gathered.take(event, value) {
                self.push_whole(event as usize, number, value);
            }
        }
        self.place_gathered(catalog, number, &mut gathered);
        self.gathered = gathered;
    }

    /// The same memory, empty, for values that live elsewhere.
    pub fn emptied<'w>(self) -> LookedUpBlock<'w> {
        let Self { mut ends, mut places, mut found, values, gathered, .. } = self;
        ends.clear();
        places.clear();
        found.clear();
        let Gathered { none, events, keys, texts, lookup, .. } = gathered;
        let gathered = Gathered { none, kind: None, events, keys, texts: emptied(texts, |_| ""), lookup };
        let values = emptied(values, |_| ValueRef::Null);
        LookedUpBlock { ends, places, found, values, booleans: None, gathered, by_entry: vec![] }
    }

    /// Places rows of a batch, to be arranged: row `rows.start` is event 0. No value may stand for several.
    pub fn place_rows(&mut self, catalog: &Catalog, events: &'v ArrowEvents<'_>, rows: Range<usize>) {
        self.place_rows_but(catalog, events, rows, 0, &mut Nobody);
    }

    /// The same without the values that are looked up elsewhere: in fewer than `most` tables, or nowhere else.
    pub fn place_rows_but(
        &mut self,
        catalog: &Catalog,
        events: &'v ArrowEvents<'_>,
        rows: Range<usize>,
        most: usize,
        delegate: &mut impl Delegate,
    ) {
        self.clear(rows.len());
        // Rows of a column lie far from those of the next one. What is read of it is fetched while others are looked up.
        let mut next = events.columns().skip(1);
        let mut after_next = events.columns().skip(2);
        let is_asked = |(attribute, _): &(TermId, _)| catalog.entry(*attribute).is_some();
        for (attribute, column) in events.columns() {
            after_next.next().filter(is_asked).inspect(|(_, column)| column.fetch_presence(rows.clone()));
            next.next().filter(is_asked).inspect(|(_, column)| column.fetch(rows.clone()));
            if let Some(entry) = catalog.entry(attribute) {
                let delegated = catalog.delegated(entry, most);
                self.place_column(catalog, entry, column, rows.clone(), delegated, delegate);
            }
        }
        self.booleans = events.booleans().map(|found| (found, rows.start));
    }

    /// Places what rows of a column hold, to be arranged after the last one: row `rows.start` is event 0. No value may stand for several.
    fn place_column(
        &mut self,
        catalog: &Catalog,
        entry: &AttributeEntry,
        column: &'v ColumnView<'_>,
        rows: Range<usize>,
        delegated: Option<Delegated>,
        delegate: &mut impl Delegate,
    ) {
        let number = catalog.attribute_index(entry) as u32;
        let first = rows.start;
        let mut gathered = std::mem::take(&mut self.gathered);
        gathered.clear();
        gathered.none = entry.residual > 0 || column.is_made_of_arrays();
        let mut gathering =
            Gathering { block: self, gathered: &mut gathered, number, first, delegated, delegate };
        column.for_each(rows, &mut gathering);
        self.place_gathered(catalog, number, &mut gathered);
        self.gathered = gathered;
    }

    fn place_gathered(&mut self, catalog: &Catalog, number: u32, gathered: &mut Gathered<'v>) {
        let Gathered { kind, events, keys, texts, lookup, .. } = gathered;
        let Some(kind) = *kind else { return };
        let entry = &catalog.terms[number as usize];
        let points = catalog.points_of(entry);
        let points = points.iter().find(|table| table.kind == kind as u32 && table.of_elements == 0);
        match points {
            None => lookup.nowhere(events.len()),
            Some(table) if kind == Kind::Str => {
                catalog.points.find_texts(table, texts, &catalog.pool, lookup)
            }
            Some(table) => catalog.points.find_keys(table, keys, lookup),
        }
        let cuts = catalog.cuts_of(entry).iter().find(|table| table.kind == kind as u32);
        let is_heard_of = entry.present != 0 || entry.defined[kind as usize] != 0;
        for (at, &event) in events.iter().enumerate() {
            let rank = match cuts {
                None => NOWHERE,
                Some(table) if kind == Kind::Str => catalog.rank_of_text(table, texts[at]),
                Some(table) => catalog.cuts.rank_of_key(table, join(keys[at])),
            };
            let point = lookup.found[at];
            if !is_heard_of && point == NOWHERE && rank == NOWHERE {
                continue;
            }
            self.push(event as usize, FoundAt { entry: number, state: State::LookedUp(kind), point, rank });
        }
    }

    fn push_whole(&mut self, event: usize, entry: u32, value: ValueRef<'v>) {
        let point = self.values.len() as u32;
        self.values.push(value);
        self.push(event, FoundAt { entry, state: State::Whole, point, rank: NOWHERE });
    }

    #[inline]
    fn push(&mut self, event: usize, place: FoundAt) {
        self.found.push((event as u32, place));
    }
}
