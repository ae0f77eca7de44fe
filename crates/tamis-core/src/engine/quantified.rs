//! Finds which quantifiers over one array are true: an index inside the index.
//!
//! The bodies of all quantifiers over one array are subscriptions of an inner segment, and each element of the array is
//! one event of it, so that an event costs what matches and not what there is. An inner event has the fields of the
//! element, below `@e`, and the attributes of the outer event that some body names, below `@o`; no variable can be
//! called so.
//!
//! Each quantifier has up to two bodies in the segment. `exists` is true if its *any* body is true for some element, and
//! false if its *all* body, the negation, is true for all of them; `forall` is the other way round. Only those are held
//! that somebody asks for.

use std::cell::Cell;
use std::ops::ControlFlow;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::segment::matcher::Scratch;
use super::segment::{Segment, SegmentBuilder};
use super::{Id, Subscription};
use crate::event::{Event, TermId, Terms, Value, ValueRef};
use crate::expr::Expr;
use crate::expr::quantifier::{Elements, Named, Quantified, Quantifier};
use crate::predicate::block_lookup::{Fires, LookedUpBlock};
use crate::term::boolean::{BooleanTerm, EachInTurn, Finder, Finders, Member, value_of};
use crate::term::{NOW, Term};

/// An empty table of terms, whose Boolean terms are found by indexes of their own.
pub fn new_terms() -> Terms {
    Terms::with_finders(Arc::new(Indexed))
}

struct Indexed;

impl Finders for Indexed {
    fn finder(&self, members: &[Member]) -> Option<Box<dyn Finder>> {
        let quantified: Option<Vec<&Quantified>> =
            members.iter().map(|member| member.term.as_any().downcast_ref()).collect();
        Some(Box::new(InnerIndex::new(members, &quantified?)?))
    }
}

/// Elements that are looked up together: enough to wait for memory once, whatever the length of an array.
const TOGETHER: usize = 64;

const ELEMENT: &str = "@e";
const OUTER: &str = "@o";

/// What it says of a quantifier if a body is true.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    /// For some element.
    Any,
    /// For all elements.
    All,
}

struct InnerIndex {
    segment: Segment,
    terms: Terms,
    array: TermId,
    /// By row of the segment: the member, and which of its bodies the row is.
    rows: Vec<(u32, Side)>,
    /// What a member is if its body of that side is.
    any_means: Vec<bool>,
    takes_scalars: Vec<bool>,
    takes_any_scalar: bool,
    has_all: bool,
    element: Option<TermId>,
    /// The numbers of the fields of an element, by their paths.
    fields: FxHashMap<Box<str>, TermId>,
    /// The attributes of the event that bodies name, here and there.
    outer: Vec<(TermId, TermId)>,
    now: Option<TermId>,
    each_in_turn: EachInTurn,
}

impl InnerIndex {
    fn new(members: &[Member], quantified: &[&Quantified]) -> Option<Self> {
        let mut builder = SegmentBuilder::new(new_terms());
        let mut rows = vec![];
        for (number, (member, quantified)) in members.iter().zip(quantified).enumerate() {
            let body = quantified.renamed_body(&|name| match name {
                Named::OfElement("") => ELEMENT.into(),
                Named::OfElement(field) => format!("{ELEMENT}.{field}"),
                Named::Attribute(name) => format!("{OUTER}.{name}"),
            });
            let body = body.ok()?;
            let negated = Expr::Not(Box::new(body.clone()));
            let is_forall = quantified.quantifier == Quantifier::Forall;
            let [any, all] = if is_forall { [negated, body] } else { [body, negated] };
            for (side, expression) in [(Side::Any, any), (Side::All, all)] {
                let says_true = (side == Side::Any) != is_forall;
                if says_true || member.wants_false {
                    let id = Id::Int(rows.len() as i64);
                    builder.push(&Subscription::new(id, expression)).ok()?;
                    rows.push((number as u32, side));
                }
            }
        }
        let (segment, terms) = builder.finish(&[], 1).ok()?;
        let fields = terms.attributes().filter_map(|name| {
            let field = name.strip_prefix(ELEMENT)?.strip_prefix('.')?;
            Some((field.into(), terms.get(name)?))
        });
        let fields = fields.collect();
        let (mut outer, mut now) = (FxHashMap::default(), None);
        for (member, quantified) in members.iter().zip(quantified) {
            for (input, there) in quantified.inputs().iter().zip(&*member.inputs).skip(1) {
                match input {
                    Term::Attribute(name) if **name == *NOW => now = Some(*there),
                    input => {
                        let name = format!("{OUTER}.{}", input.name());
                        if let Some(here) = terms.get(&name) {
                            outer.insert(*there, here);
                        }
                    }
                }
            }
        }
        let takes_scalars: Vec<bool> =
            quantified.iter().map(|quantified| quantified.quantifier == Quantifier::Any).collect();
        Some(Self {
            segment,
            element: terms.get(ELEMENT),
            fields,
            array: members.first()?.inputs[0],
            has_all: rows.iter().any(|(_, side)| *side == Side::All),
            rows,
            any_means: quantified.iter().map(|one| one.quantifier != Quantifier::Forall).collect(),
            takes_any_scalar: takes_scalars.contains(&true),
            takes_scalars,
            outer: outer.into_iter().collect(),
            now,
            terms,
            each_in_turn: EachInTurn(members.to_vec()),
        })
    }

    /// The attributes of the outer event that bodies may name; `None` where one is an interval or another set.
    fn outer_values<'a>(&self, values: &[(TermId, ValueRef<'a>)]) -> Option<Vec<(TermId, ValueRef<'a>)>> {
        let mut outer = Vec::with_capacity(self.outer.len());
        for (there, here) in &self.outer {
            match value_of(values, *there) {
                ValueRef::Null => {}
                value if value.is_set() => return None,
                value => outer.push((*here, value)),
            }
        }
        Some(outer)
    }
}

impl InnerIndex {
    /// Looks up the values of all elements together, term by term, and matches the elements one after the other. Says how
    /// many there are.
    fn find_together<'a>(
        &self,
        elements: &Elements<'_, 'a>,
        outer: &[(TermId, ValueRef<'a>)],
        is_scalar: bool,
        space: &mut Space,
        found: &mut dyn FnMut(usize, bool),
    ) -> u32 {
        let catalog = &self.segment.layout.catalog;
        let mut looked_up = std::mem::take(&mut space.looked_up).emptied();
        let mut shown: Vec<(TermId, u32, ValueRef<'a>)> = vec![];
        let (mut left, mut total) = (elements.iter().peekable(), 0);
        while left.peek().is_some() {
            shown.clear();
            let mut count = 0;
            for element in left.by_ref().take(TOGETHER) {
                shown.extend(outer.iter().map(|(id, value)| (*id, count, *value)));
                self.values_of(element, |id, value| shown.push((id, count, value)));
                count += 1;
            }
            shown.sort_unstable_by_key(|(id, element, _)| (*id, *element));
            looked_up.clear(count as usize);
            for of_term in shown.chunk_by(|(one, ..), (other, ..)| one == other) {
                let values = of_term.iter().map(|(_, element, value)| (*element, *value));
                looked_up.place_values(catalog, of_term[0].0, values);
            }
            looked_up.arrange();
            for element in 0..count as usize {
                self.match_element(&looked_up.event(element), is_scalar, space, found);
            }
            total += count;
        }
        space.looked_up = looked_up.emptied();
        total
    }

    /// The same where something is computed for each element.
    fn find_one_by_one<'a>(
        &self,
        elements: &Elements<'_, 'a>,
        outer: &[(TermId, ValueRef<'a>)],
        is_scalar: bool,
        terms: &Terms,
        space: &mut Space,
        found: &mut dyn FnMut(usize, bool),
    ) -> u32 {
        let mut total = 0;
        for element in elements.iter() {
            total += 1;
            let mut values = outer.to_vec();
            self.values_of(element, |id, value| values.push((id, value)));
            values.sort_unstable_by_key(|(id, _)| *id);
            let mut room: Vec<Value> = vec![];
            terms.compute(&mut values, &mut room);
            self.match_element(&Event { values, ..Event::default() }, is_scalar, space, found);
        }
        total
    }

    /// Calls `add` with the terms that an element gives a value.
    #[inline]
    fn values_of<'a>(&self, element: ValueRef<'a>, mut add: impl FnMut(TermId, ValueRef<'a>)) {
        match element {
            ValueRef::Null => {}
            ValueRef::Fields(fields) => {
                self.element.into_iter().for_each(|id| add(id, ValueRef::Record));
                for (name, value) in fields {
                    if let Some(id) = self.fields.get(name) {
                        add(*id, value.as_ref());
                    }
                }
            }
            element => self.element.into_iter().for_each(|id| add(id, element)),
        }
    }

    /// Says which members some body of which is true for an element.
    #[inline]
    fn match_element(
        &self,
        event: &impl Fires,
        is_scalar: bool,
        space: &mut Space,
        found: &mut dyn FnMut(usize, bool),
    ) {
        let Space { scratch, counts, found: known, .. } = space;
        let layout = &self.segment.layout;
        layout.matching_units(event, scratch, &mut |unit: u32| {
            for &row in layout.rows_of(unit) {
                // Without *all* bodies, each member has one row, and none is a `forall`.
                let (member, side) = if self.has_all { self.rows[row as usize] } else { (row, Side::Any) };
                if is_scalar && !self.takes_scalars[member as usize] {
                    continue;
                }
                match side {
                    Side::Any => {
                        if known.insert(member, ()).is_none() {
                            found(member as usize, !self.has_all || self.any_means[member as usize]);
                        }
                    }
                    Side::All => *counts.entry(member).or_default() += 1,
                }
            }
            ControlFlow::Continue(())
        });
    }
}

/// Working memory, reused from event to event.
#[derive(Default)]
struct Space {
    scratch: Scratch,
    looked_up: LookedUpBlock<'static>,
    /// For how many elements the *all* body of each member is true.
    counts: FxHashMap<u32, u32>,
    /// Members whose *any* body was true already.
    found: FxHashMap<u32, ()>,
}

thread_local! {
    /// Taken while in use: a body may have quantifiers of its own.
    static SPACE: Cell<Option<Box<Space>>> = const { Cell::new(None) };
}

impl Finder for InnerIndex {
    fn find(&self, values: &[(TermId, ValueRef<'_>)], found: &mut dyn FnMut(usize, bool)) {
        let array = value_of(values, self.array);
        let (elements, is_scalar) = match array {
            ValueRef::Array(items) => (Elements::Array(items), false),
            ValueRef::Null | ValueRef::Record => return,
            scalar if self.takes_any_scalar && !scalar.is_set() => (Elements::Scalar(&array), true),
            _ => return,
        };
        let moment = match self.now.map(|now| value_of(values, now)) {
            Some(ValueRef::Timestamp(moment)) => Some(moment),
            _ => None,
        };
        let at_moment = moment.map(|moment| self.terms.at(moment));
        let terms = at_moment.as_ref().unwrap_or(&self.terms);
        let Some(outer) = self.outer_values(values) else {
            // Bodies that look at a set are undefined; which ones do is asked of each.
            return self.each_in_turn.find(values, found);
        };
        let mut space = SPACE.take().unwrap_or_default();
        space.counts.clear();
        space.found.clear();
        let total = if terms.has_computed() || terms.needs_now() {
            self.find_one_by_one(&elements, &outer, is_scalar, terms, &mut space, found)
        } else {
            self.find_together(&elements, &outer, is_scalar, &mut space, found)
        };
        if self.has_all {
            if total == 0 {
                for (member, side) in &self.rows {
                    if *side == Side::All {
                        found(*member as usize, !self.any_means[*member as usize]);
                    }
                }
            }
            for (member, count) in &space.counts {
                if *count == total {
                    found(*member as usize, !self.any_means[*member as usize]);
                }
            }
        }
        SPACE.set(Some(space));
    }
}
