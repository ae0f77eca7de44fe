//! The terms of one index, each known by a small number, and the order in which they are computed.

mod computed;
mod families;
mod layered;
mod plan;

use std::sync::Arc;

use computed::{CHUNK, ComputedTerms, Inputs, Known};
use families::Family;
use layered::{Chunked, Layered};
use plan::{Input, Plan};

pub use computed::Uses;
pub use plan::Computation;

use super::boolean::Finders;
use super::{Argument, NOW, STRINGS, Term};
use crate::stamp::Stamp;
use crate::value::ValueRef;

/// A term of one index. Numbers are given in order of first use and never change. Arguments come before the terms
/// that are computed from them, so the order of the numbers is an order of evaluation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TermId(pub u32);

/// The table of terms. Cheap to clone, so that readers can hold one version of it while a writer extends the next.
#[derive(Clone, Default)]
pub struct Terms {
    /// Of attributes.
    ids: Layered<TermId>,
    /// The records that hold some attribute: `a` and `a.b`, for the attribute `a.b.c`.
    records: Layered<()>,
    by_id: Chunked<Term>,
    computed: Arc<ComputedTerms>,
    /// Makes what finds Boolean terms.
    finders: Option<Arc<dyn Finders>>,
    /// The term `current_timestamp()`, if some subscription has looked at it.
    now: Option<TermId>,
    /// Its value: the moment of the query that events are read for.
    moment: Option<i64>,
    /// The term `all_strings()`, if some subscription has looked at it.
    strings: Option<TermId>,
    /// Whether it is wanted although no subscription in use looks at it.
    wants_strings: bool,
    /// Whether events keep them after the quantifiers over them were found.
    keeps_strings: bool,
    stamp: Stamp,
}

impl Terms {
    /// An empty table whose Boolean terms are found by these finders.
    pub fn with_finders(finders: Arc<dyn Finders>) -> Self {
        Self { finders: Some(finders), ..Self::default() }
    }

    /// The attribute of that name.
    pub fn get(&self, name: &str) -> Option<TermId> {
        self.ids.get(name).copied()
    }

    /// The attribute that a field of that name in an event is.
    pub fn of_field(&self, path: &str) -> Option<TermId> {
        self.get(path).filter(|id| self.now != Some(*id) && self.strings != Some(*id))
    }

    /// The term `all_strings()`, if it is in use, so that readers of events must supply it.
    pub fn strings(&self) -> Option<TermId> {
        self.strings.filter(|_| self.wants_strings || self.has_computed() && self.plan().reads_strings)
    }

    /// The same table, to read all strings of events, whether or not a subscription in use looks at them.
    pub fn with_strings(self) -> Self {
        Self { wants_strings: true, ..self }
    }

    /// The same table, for whoever evaluates expressions as they were written, scores of matches included: quantifiers
    /// over all strings are then asked again, although they were found when the event was read.
    pub fn keeping_strings(self) -> Self {
        Self { keeps_strings: true, ..self }
    }

    /// The term `all_strings()`, if an event without intervals need not keep its value: it was looked at already.
    pub fn passing_strings(&self) -> Option<TermId> {
        self.strings().filter(|_| !self.keeps_strings)
    }

    /// Whether a field of that name is an attribute, or lies inside one: in an element of an array.
    pub fn needs(&self, path: &str) -> bool {
        let around = path.match_indices('.').map(|(dot, _)| &path[..dot]);
        around.chain([path]).any(|path| self.of_field(path).is_some())
    }

    /// Whether the moment of a query decides something.
    pub fn needs_now(&self) -> bool {
        self.now.is_some()
    }

    /// The same table, to read events for a query at that moment.
    pub fn at(&self, moment: i64) -> Self {
        Self { moment: Some(moment), ..self.clone() }
    }

    /// The term `current_timestamp()` and its value, where both are known.
    pub fn now(&self) -> Option<(TermId, ValueRef<'static>)> {
        self.now.zip(self.moment.map(ValueRef::Timestamp))
    }

    /// Whether events get values that are not among their fields.
    #[inline]
    pub fn adds_values(&self) -> bool {
        self.has_computed() || self.now.is_some() || self.strings().is_some()
    }

    #[inline]
    pub fn find(&self, term: &Term) -> Option<TermId> {
        match term {
            Term::Attribute(name) => self.get(name),
            computed => self.computed.find(computed).map(|at| self.computed.at(at).id),
        }
    }

    /// The term that weights and dimensions call so: an attribute, or the canonical text of a computed one.
    pub fn named(&self, name: &str) -> Option<TermId> {
        let computed = || self.computed.numbers.get(name).map(|at| self.computed.at(*at).id);
        self.get(name).or_else(computed)
    }

    /// Whether some attribute is a field of this record, at any depth. What is neither an attribute
    /// nor such a record need not be looked at when an event is read.
    pub fn has_fields(&self, record: &str) -> bool {
        self.records.get(record).is_some()
    }

    /// The number of an attribute, a new one if it was not seen before.
    pub fn intern(&mut self, name: &str) -> TermId {
        if let Some(id) = self.get(name) {
            return id;
        }
        for (dot, _) in name.rmatch_indices('.') {
            if self.has_fields(&name[..dot]) {
                break;
            }
            self.records.insert(name[..dot].into(), ());
        }
        let name: Arc<str> = name.into();
        let id = self.push(Term::Attribute(name.clone()));
        if *name == *NOW {
            self.now = Some(id);
        }
        if *name == *STRINGS {
            self.strings = Some(id);
        }
        self.ids.insert(name, id);
        id
    }

    /// The number of a term, after the numbers of all that it is computed from.
    #[inline]
    pub fn intern_term(&mut self, term: &Term) -> TermId {
        match term {
            Term::Attribute(name) => self.intern(name),
            Term::Computed(_) | Term::Boolean(_) => self.intern_derived(term),
        }
    }

    fn intern_derived(&mut self, term: &Term) -> TermId {
        if let Some(id) = self.find(term) {
            return id;
        }
        let inputs = match term {
            Term::Attribute(name) => return self.intern(name),
            Term::Computed(computed) => {
                let inputs = computed.arguments().iter().map(|argument| match argument {
                    Argument::Constant(value) => Input::Constant(value.clone()),
                    Argument::Term(term) => Input::Term(self.intern_term(term)),
                });
                Inputs::OfFunction(inputs.collect())
            }
            Term::Boolean(boolean) => {
                Inputs::OfBoolean(boolean.inputs().iter().map(|input| self.intern_term(input)).collect())
            }
        };
        let id = self.push(term.clone());
        let table = Arc::make_mut(&mut self.computed);
        table.push(Known { id, term: term.clone(), inputs, uses: Uses::default() });
        id
    }

    fn push(&mut self, term: Term) -> TermId {
        let id = TermId(self.len() as u32);
        self.stamp.renew();
        self.by_id.push(term);
        id
    }

    /// Tells this table from every one with other terms.
    pub fn stamp(&self) -> Stamp {
        self.stamp
    }

    pub fn term(&self, id: TermId) -> &Term {
        self.by_id.at(id.0 as usize)
    }

    /// The name of an attribute, or the text of another term.
    pub fn name(&self, id: TermId) -> &str {
        self.term(id).name()
    }

    /// How many there are of all kinds.
    pub fn len(&self) -> usize {
        self.by_id.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All terms in the order of their numbers.
    pub fn iter(&self) -> impl Iterator<Item = &Term> {
        self.by_id.iter()
    }

    /// The names of the attributes that events bring, in the order of their numbers.
    pub fn attributes(&self) -> impl Iterator<Item = &Arc<str>> {
        self.iter().filter_map(|term| match term {
            Term::Attribute(name) => Some(name).filter(|name| !matches!(&***name, NOW | STRINGS)),
            _ => None,
        })
    }

    pub fn has_computed(&self) -> bool {
        self.computed.len > 0
    }

    /// How many terms are computed for an event, one by one or together with others.
    pub fn computed_per_event(&self) -> usize {
        let plan = self.plan();
        let in_use = |family: &Family| family.parts.iter().map(|part| part.ids.len()).sum::<usize>();
        plan.steps.len() + plan.families.iter().map(in_use).sum::<usize>()
    }

    /// How many predicates of living subscriptions look at each computed term.
    pub fn uses(&self) -> impl Iterator<Item = (TermId, Uses)> {
        self.computed.iter().map(|known| (known.id, known.uses))
    }

    /// Notes that so many more predicates look at a term, or so many fewer. A term that nobody looks at is not
    /// computed.
    pub fn add_uses(&mut self, term: &Term, more: Uses) {
        if !term.is_computed() {
            return;
        }
        let table = Arc::make_mut(&mut self.computed);
        let at = table.find(term).expect("a term in use is in the table");
        let uses = &mut Arc::make_mut(&mut table.chunks[at / CHUNK])[at % CHUNK].uses;
        let before = *uses;
        // A damaged file may have said fewer than there are.
        uses.all = before.all.saturating_add(more.all).max(0);
        uses.of_false = before.of_false.saturating_add(more.of_false).max(0);
        if (before.all > 0, before.of_false > 0) != (uses.all > 0, uses.of_false > 0) {
            table.forget_plan();
        }
    }

    /// The same terms, none in use.
    pub fn without_uses(&self) -> Self {
        let mut terms = self.clone();
        if self.has_computed() {
            let table = Arc::make_mut(&mut terms.computed);
            for chunk in &mut table.chunks {
                Arc::make_mut(chunk).iter_mut().for_each(|known| known.uses = Uses::default());
            }
            table.forget_plan();
        }
        terms
    }

    /// The same terms, in use here or in an earlier version of the table.
    pub fn with_uses_of(mut self, earlier: &Self) -> Self {
        for known in earlier.computed.iter() {
            self.add_uses(&known.term, known.uses);
        }
        self
    }

    fn plan(&self) -> &Plan {
        let choose = || Arc::new(self.computed.choose_plan(self.finders.as_deref(), self.strings));
        self.computed.plan.get_or_init(choose)
    }

    /// The terms that are computed for an event one by one, in order, each with how it is computed from others.
    pub fn computations(&self) -> impl ExactSizeIterator<Item = (TermId, Computation<'_>)> {
        self.plan().steps.iter().map(|step| (step.id, Computation(step)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::Value;

    #[test]
    fn ids_survive_folding_and_clones_stay_as_they_were() {
        let mut terms = Terms::default();
        let before = terms.clone();
        for i in 0..1000 {
            assert_eq!(terms.intern(&format!("a{i}")), TermId(i));
        }
        for i in 0..1000 {
            assert_eq!(terms.get(&format!("a{i}")), Some(TermId(i)));
            assert_eq!(terms.name(TermId(i)), format!("a{i}"));
        }
        assert_eq!(terms.attributes().count(), 1000);
        assert!(before.is_empty());
    }

    #[test]
    fn the_records_around_an_attribute_are_known() {
        let mut terms = Terms::default();
        for name in ["a.b.c", "a.x", "d", "..e"] {
            terms.intern(name);
        }
        for record in ["a", "a.b", "", "."] {
            assert!(terms.has_fields(record), "{record:?}");
            assert_eq!(terms.get(record), None);
        }
        for other in ["a.b.c", "a.x", "d", "e", "b"] {
            assert!(!terms.has_fields(other), "{other:?}");
        }
    }

    fn uses(all: i64) -> Uses {
        Uses { all, of_false: 0 }
    }

    fn computed(text: &str) -> Term {
        crate::expr::parse_term(text).unwrap()
    }

    fn values(terms: &Terms, x: i64) -> Vec<(String, Value)> {
        let mut event = vec![(terms.get("x").unwrap(), ValueRef::Int(x))];
        let mut room = vec![];
        terms.compute(&mut event, &mut room);
        event.into_iter().map(|(id, value)| (terms.name(id).to_string(), value.to_owned())).collect()
    }

    #[test]
    fn only_terms_in_use_and_their_arguments_are_computed() {
        let mut terms = Terms::default();
        let [outer, inner] = [computed("abs(x + 1) * 2"), computed("x + 1")];
        terms.intern_term(&outer);
        assert!(terms.find(&inner).unwrap() < terms.find(&outer).unwrap());
        assert_eq!(values(&terms, 3).len(), 1, "nobody looks at them yet");
        terms.add_uses(&inner, uses(2));
        let earlier = terms.clone();
        terms.add_uses(&outer, uses(1));
        let names = |terms: &Terms| values(terms, -3).into_iter().map(|(name, _)| name).collect::<Vec<_>>();
        assert_eq!(names(&terms), ["x", "x + 1", "abs(x + 1)", "abs(x + 1) * 2"]);
        assert_eq!(values(&terms, -3)[3].1, Value::Int(4));
        terms.add_uses(&inner, uses(-2));
        assert_eq!(names(&terms).len(), 4, "it is still an argument");
        terms.add_uses(&outer, uses(-1));
        assert_eq!(names(&terms), ["x"]);
        assert_eq!(names(&earlier), ["x", "x + 1"], "a version does not change");
        assert_eq!(values(&earlier, i64::MAX).len(), 1, "an overflow is undefined");
    }

    #[test]
    fn a_name_that_looks_like_a_term_is_an_attribute() {
        let mut terms = Terms::default();
        let term = computed("lower(x)");
        let (attribute, computed) = (terms.intern("lower(x)"), terms.intern_term(&term));
        assert_ne!(attribute, computed);
        assert_eq!(terms.get("lower(x)"), Some(attribute));
        assert_eq!(terms.find(&term), Some(computed));
        assert_eq!(terms.attributes().count(), 2);
    }
}
