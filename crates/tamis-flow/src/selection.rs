//! All expressions about single events of a stream, in one index: filters of windows, steps of sequences, conditions of
//! joins. An event goes through it once.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use tamis_core::engine::{Answer, Index, Location, Workspace};
use tamis_core::event::{Event, NameResolver, Names, Record, TermId, Terms, Value, ValueRef};
use tamis_core::expr::Expr;
use tamis_core::query::Query;
use tamis_core::{Id, IdRef, Result, Subscription};

use crate::slots::Slots;
use crate::text::WINDOW_PREFIX;
use crate::window::AggregateId;

pub(crate) type SelectionId = u32;

/// An index of numbered expressions, and the memory that queries use from event to event.
pub(crate) struct Matcher {
    index: Index,
    query: Query,
    space: Workspace,
    resolver: NameResolver,
    windowed_terms: WindowedTerms,
    reserved: ReservedNames,
    /// Without values: memory for those of the next one.
    event: Event<'static>,
}

impl Default for Matcher {
    fn default() -> Self {
        let query = Query { now: Some(0), ..Query::default() };
        Self {
            index: Index::new(None),
            query,
            space: Workspace::default(),
            resolver: NameResolver::default(),
            windowed_terms: WindowedTerms::default(),
            reserved: ReservedNames::default(),
            event: Event::default(),
        }
    }
}

impl Matcher {
    pub fn add(&mut self, number: u32, expression: Expr) -> Result<()> {
        self.index.add(Subscription::new(Id::Int(number.into()), expression))
    }

    pub fn remove(&mut self, number: u32) -> Result<()> {
        self.index.remove(Id::Int(number.into()))
    }

    /// The numbers of the expressions that are true for a record, in order. `windowed` are values of windowed terms.
    pub fn matches(
        &mut self,
        record: &Record,
        time: i64,
        windowed: &[(AggregateId, Value)],
        found: &mut Vec<u32>,
    ) -> Result<()> {
        found.clear();
        let reader = self.index.reader()?;
        if reader.is_empty() {
            return Ok(());
        }
        // `current_timestamp()` is the time of the event, so that the same input gives the same output.
        let at_time = reader.terms().needs_now().then(|| reader.terms().at(time));
        let terms = at_time.as_ref().unwrap_or(reader.terms());
        let mut event = std::mem::take(&mut self.event).recycled();
        self.resolver.resolve(record, terms, &mut event);
        if self.reserved.are_in(record) {
            event.values.retain(|(term, _)| !terms.name(*term).starts_with(WINDOW_PREFIX));
        }
        for (id, value) in windowed {
            if let Some(term) = self.windowed_terms.get(*id, terms) {
                event.values.push((term, value.as_ref()));
            }
        }
        if !windowed.is_empty() {
            event.values.sort_unstable_by_key(|(term, _)| *term);
        }
        let mut room = Vec::new();
        terms.compute(&mut event.values, &mut room);
        let (answer, _) = self.index.ask(&*reader, &self.query, &event, &mut self.space)?;
        note(answer, |location| reader.id(location), found);
        self.event = event.recycled();
        Ok(())
    }

    /// The same for values that lie in several records; no expression asks for the time.
    pub fn matches_values<'v>(
        &mut self,
        values: impl FnOnce(&Terms) -> Vec<(TermId, ValueRef<'v>)>,
        found: &mut Vec<u32>,
    ) -> Result<()> {
        found.clear();
        let reader = self.index.reader()?;
        if reader.is_empty() {
            return Ok(());
        }
        let mut event = Event { values: values(reader.terms()), ..Event::default() };
        event.values.sort_unstable_by_key(|(term, _)| *term);
        let mut room = Vec::new();
        reader.terms().compute(&mut event.values, &mut room);
        let (answer, _) = self.index.ask(&*reader, &self.query, &event, &mut self.space)?;
        note(answer, |location| reader.id(location), found);
        Ok(())
    }
}

/// Adds the numbers of the subscriptions in an answer.
fn note<'r>(answer: Answer, id_of: impl Fn(Location) -> IdRef<'r>, found: &mut Vec<u32>) {
    let Answer::All(locations) = answer else { return };
    found.extend(locations.into_iter().filter_map(|location| match id_of(location) {
        IdRef::Int(number) => Some(number as u32),
        IdRef::Str(_) => None,
    }));
}

/// The attribute that stands for an aggregate in the expressions of rules.
pub(crate) fn windowed_attribute(id: AggregateId) -> String {
    format!("{WINDOW_PREFIX}{id}")
}

/// Whether a record brings an attribute with the name of an aggregate, whose value nobody but the flow may say. Records
/// of a stream share their names, so that most are not looked at.
#[derive(Default)]
struct ReservedNames {
    seen: Names,
    are_there: bool,
}

impl ReservedNames {
    fn are_in(&mut self, record: &Record) -> bool {
        if !Arc::ptr_eq(&self.seen, record.names()) {
            self.seen = record.names().clone();
            self.are_there = self.seen.iter().any(|name| name.starts_with(WINDOW_PREFIX));
        }
        self.are_there
    }
}

/// The terms of aggregates in an index, remembered from event to event.
#[derive(Default)]
struct WindowedTerms {
    /// How many terms the index had: their numbers never change.
    seen: usize,
    known: Vec<Option<TermId>>,
}

impl WindowedTerms {
    fn get(&mut self, id: AggregateId, terms: &Terms) -> Option<TermId> {
        if self.seen != terms.len() {
            self.seen = terms.len();
            self.known.clear();
        }
        let at = id as usize;
        if let Some(Some(term)) = self.known.get(at) {
            return Some(*term);
        }
        let term = terms.get(&windowed_attribute(id))?;
        if self.known.len() <= at {
            self.known.resize(at + 1, None);
        }
        self.known[at] = Some(term);
        Some(term)
    }
}

#[derive(Default)]
pub(crate) struct Selections {
    matcher: Matcher,
    by_text: FxHashMap<Arc<str>, SelectionId>,
    uses: Slots<(Arc<str>, usize)>,
}

impl Selections {
    /// The selection with this expression, which is used once more.
    pub fn acquire(&mut self, expression: &Expr) -> Result<SelectionId> {
        let text: Arc<str> = expression.to_string().into();
        if let Some(&id) = self.by_text.get(&text) {
            self.uses[id].1 += 1;
            return Ok(id);
        }
        let id = self.uses.insert((text.clone(), 1));
        if let Err(error) = self.matcher.add(id, expression.clone()) {
            self.uses.remove(id);
            return Err(error);
        }
        self.by_text.insert(text, id);
        Ok(id)
    }

    pub fn release(&mut self, id: SelectionId) -> Result<()> {
        let (text, uses) = &mut self.uses[id];
        *uses -= 1;
        if *uses == 0 {
            self.by_text.remove(text);
            self.uses.remove(id);
            self.matcher.remove(id)?;
        }
        Ok(())
    }

    pub fn len(&self) -> usize {
        self.uses.len()
    }

    /// The selections that are true for a record, in order.
    pub fn matches(&mut self, record: &Record, time: i64, found: &mut Vec<SelectionId>) -> Result<()> {
        self.matcher.matches(record, time, &[], found)
    }
}
