//! Finds which quantifiers over one array are true: an index inside the index.
//!
//! The bodies of all quantifiers over one array are subscriptions of an inner segment, and each element of
//! the array is one event for it. So the cost of an event depends on the quantifiers that match, not on all
//! of them. An inner event has the fields of the element, below `@e`, and the attributes of the outer event
//! that some body uses, below `@o`. No variable can have these names.
//!
//! Each quantifier has up to two bodies in the segment. `exists` is true if its *any* body is true for some
//! element, and false if its *all* body, the negation, is true for all of them; `forall` is the other way
//! round. Only bodies that an expression needs are stored.

use std::any::Any;
use std::cell::Cell;
use std::ops::ControlFlow;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::segment::matcher::Scratch;
use super::segment::{Segment, SegmentBuilder, Threads};
use super::{Id, Subscription};
use crate::event::arrow::{ArrowEvents, ByColumns, ColumnFinder, ColumnView, ElementColumns, FoundInRow};
use crate::event::value::Kind;
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
        let index = Arc::new(InnerIndex::new(members, &quantified?)?);
        Some(Box::new(QuantifierFinder { by_columns: ByColumns(index.clone()), index }))
    }
}

struct QuantifierFinder {
    index: Arc<InnerIndex>,
    by_columns: ByColumns,
}

impl Finder for QuantifierFinder {
    fn find(&self, values: &[(TermId, ValueRef<'_>)], found: &mut dyn FnMut(usize, bool)) {
        self.index.find(values, found);
    }

    fn by_columns(&self) -> Option<&dyn Any> {
        Some(&self.by_columns)
    }
}

/// Elements that are looked up together: enough to wait for memory once, whatever the length of an array.
const TOGETHER: usize = 64;
/// The same of a batch, whose values lie in columns.
const MANY: usize = 512;

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
        let (segment, terms) = builder.finish(&[], &Threads::new(1)).ok()?;
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
    /// What the terms of the inner index are for the elements of a batch; `None` where outer attributes are sets.
    fn element_columns<'s>(
        &self,
        events: &'s ArrowEvents<'_>,
        elements: &'s ElementColumns<'_>,
    ) -> Option<Vec<(TermId, ColumnView<'s>)>> {
        let mut columns = vec![];
        for (there, here) in &self.outer {
            if let Some(column) = events.column(*there) {
                columns.push((*here, elements.repeated(column)?));
            }
        }
        if let Some(id) = self.element {
            columns.push((id, elements.element.borrowed()?));
        }
        for (name, column) in &elements.fields {
            if let Some(id) = self.fields.get(*name) {
                columns.push((*id, column.borrowed()?));
            }
        }
        columns.sort_by_key(|(id, _)| *id);
        Some(columns)
    }

    /// Looks up the values of all elements together, term by term, and matches the elements one after the other. Says how
    /// many there are.
    fn find_together<'a>(
        &self,
        elements: &Elements<'_, 'a>,
        outer: &[(TermId, ValueRef<'a>)],
        is_scalar: bool,
        space: &mut Space,
    ) -> usize {
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
                self.match_element(&looked_up.event(element), is_scalar, space);
            }
            total += count as usize;
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
    ) -> usize {
        let mut total = 0;
        for element in elements.iter() {
            total += 1;
            let mut values = outer.to_vec();
            self.values_of(element, |id, value| values.push((id, value)));
            values.sort_unstable_by_key(|(id, _)| *id);
            let mut room: Vec<Value> = vec![];
            terms.compute(&mut values, &mut room);
            self.match_element(&Event { values, ..Event::default() }, is_scalar, space);
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

    /// Notes which members some body of which is true for an element.
    #[inline]
    fn match_element(&self, event: &impl Fires, is_scalar: bool, space: &mut Space) {
        let Space { scratch, counts, any, .. } = space;
        let layout = &self.segment.layout;
        layout.matching_units(event, scratch, &mut |unit: u32| {
            for &row in layout.rows_of(unit) {
                // Without *all* bodies, each member has one row, and none is a `forall`.
                let (member, side) = if self.has_all { self.rows[row as usize] } else { (row, Side::Any) };
                if is_scalar && !self.takes_scalars[member as usize] {
                    continue;
                }
                match side {
                    Side::Any => any.push(member),
                    Side::All => *counts.entry(member).or_default() += 1,
                }
            }
            ControlFlow::Continue(())
        });
    }

    /// What was noted of an array with so many elements, in the order of members, each once.
    fn tell<'s>(&self, elements: usize, space: &'s mut Space) -> &'s [(u32, bool)] {
        let Space { any, counts, told, .. } = space;
        let any = any.members();
        told.clear();
        if !self.has_all {
            told.extend(any.iter().map(|member| (*member, true)));
            return told;
        }
        let means = |member: u32, side: Side| (side == Side::Any) == self.any_means[member as usize];
        told.extend(any.iter().map(|member| (*member, means(*member, Side::Any))));
        if elements == 0 {
            let all = self.rows.iter().filter(|(_, side)| *side == Side::All);
            told.extend(all.map(|(member, side)| (*member, means(*member, *side))));
        }
        let all = counts.iter().filter(|(_, count)| **count == elements);
        told.extend(all.map(|(member, _)| (*member, means(*member, Side::All))));
        told.sort_unstable();
        told
    }
}

/// Working memory, reused from event to event.
#[derive(Default)]
struct Space {
    scratch: Scratch,
    looked_up: LookedUpBlock<'static>,
    /// For how many elements the *all* body of each member is true.
    counts: FxHashMap<u32, usize>,
    any: Members,
    told: Vec<(u32, bool)>,
}

impl Space {
    /// For the elements of another array.
    fn clear(&mut self) {
        self.counts.clear();
        self.any.0.clear();
    }
}

/// Members whose *any* body is true, some of them several times.
#[derive(Default)]
struct Members(Vec<u32>);

impl Members {
    #[inline]
    fn push(&mut self, member: u32) {
        // Only where there is no room: a long array must not hold its members over and over again.
        if self.0.len() == self.0.capacity() && self.0.len() > 1000 {
            self.members();
            self.0.reserve(self.0.len());
        }
        self.0.push(member);
    }

    /// Each once, rising.
    fn members(&mut self) -> &[u32] {
        self.0.sort_unstable();
        self.0.dedup();
        &self.0
    }
}

thread_local! {
    /// Taken while in use: a body may have quantifiers of its own.
    static SPACE: Cell<Option<Box<Space>>> = const { Cell::new(None) };
}

impl InnerIndex {
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
        space.clear();
        let total = if terms.has_computed() || terms.needs_now() {
            self.find_one_by_one(&elements, &outer, is_scalar, terms, &mut space)
        } else {
            self.find_together(&elements, &outer, is_scalar, &mut space)
        };
        self.tell(total, &mut space).iter().for_each(|(member, truth)| found(*member as usize, *truth));
        SPACE.set(Some(space));
    }
}

impl ColumnFinder for InnerIndex {
    fn find_in_columns(&self, events: &ArrowEvents<'_>, found: &mut FoundInRow<'_>) -> bool {
        let Some(array) = events.column(self.array) else { return true };
        match array.kind() {
            Some(Kind::Array) => {}
            // Other values have no elements, unless they are taken for one.
            Some(_) => return !self.takes_any_scalar,
            None => return false,
        }
        let Some(elements) = array.elements() else { return false };
        let Some(columns) = self.element_columns(events, &elements) else { return false };
        let now = self.now.and_then(|now| events.column(now)).filter(|_| !events.is_empty());
        let at_moment = match now.and_then(|now| now.value(0)) {
            Some(ValueRef::Timestamp(moment)) => Some(self.terms.at(moment)),
            _ => None,
        };
        let terms = at_moment.as_ref().unwrap_or(&self.terms);
        let inner = ArrowEvents::of_columns(columns, elements.len, terms);
        let catalog = &self.segment.layout.catalog;
        let mut space = SPACE.take().unwrap_or_default();
        let mut looked_up = std::mem::take(&mut space.looked_up).emptied();
        let mut block = 0..0;
        for row in 0..events.len() {
            let Some(range) = elements.of_row(row) else { continue };
            space.clear();
            for element in range.clone() {
                if element == block.end {
                    block = element..elements.len.min(element + MANY);
                    looked_up.place_rows(catalog, &inner, block.clone());
                    looked_up.arrange();
                }
                self.match_element(&looked_up.event(element - block.start), false, &mut space);
            }
            let told = self.tell(range.len(), &mut space);
            if !told.is_empty() {
                found(row, told);
            }
        }
        space.looked_up = looked_up.emptied();
        SPACE.set(Some(space));
        true
    }
}
