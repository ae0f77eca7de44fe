//! The terms of one index, each known by a small number, and the order in which they are computed.

use std::sync::{Arc, OnceLock};

use rustc_hash::{FxBuildHasher, FxHashMap};

use super::{Argument, Computed, Function, Term};
use crate::stamp::Stamp;
use crate::value::{Value, ValueRef};

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
    by_id: Arc<Vec<Term>>,
    recent_by_id: Arc<Vec<Term>>,
    computed: Arc<ComputedTerms>,
    stamp: Stamp,
}

/// The terms that are not attributes, and which of them are in use.
#[derive(Clone, Default)]
struct ComputedTerms {
    numbers: FxHashMap<Arc<Computed>, usize>,
    /// In the order of their ids.
    all: Vec<Known>,
    /// What an event needs: the steps for terms in use, and for their arguments, in order. Chosen when the first event
    /// asks, since many subscriptions may come before it.
    steps: OnceLock<Box<[Step]>>,
}

#[derive(Clone)]
struct Known {
    id: TermId,
    term: Arc<Computed>,
    inputs: Arc<[Input]>,
    /// How many predicates of living subscriptions look at it.
    uses: u64,
}

/// One computation.
#[derive(Clone)]
struct Step {
    id: TermId,
    function: Function,
    inputs: Arc<[Input]>,
}

enum Input {
    Constant(Value),
    Term(TermId),
}

impl Terms {
    /// The attribute of that name.
    pub fn get(&self, name: &str) -> Option<TermId> {
        self.ids.get(name).copied()
    }

    #[inline]
    pub fn find(&self, term: &Term) -> Option<TermId> {
        match term {
            Term::Attribute(name) => self.get(name),
            Term::Computed(computed) => {
                self.computed.numbers.get(computed).map(|at| self.computed.all[*at].id)
            }
        }
    }

    /// The term that weights and dimensions call so: an attribute, or the canonical text of a computed one.
    pub fn named(&self, name: &str) -> Option<TermId> {
        let of_that_text = |known: &&Known| *known.term.text == *name;
        self.get(name).or_else(|| self.computed.all.iter().find(of_that_text).map(|known| known.id))
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
        if self.ids.insert(name, id) == Folded::Yes {
            Arc::make_mut(&mut self.by_id).append(Arc::make_mut(&mut self.recent_by_id));
        }
        id
    }

    /// The number of a term, after the numbers of all that it is computed from.
    #[inline]
    pub fn intern_term(&mut self, term: &Term) -> TermId {
        match term {
            Term::Attribute(name) => self.intern(name),
            Term::Computed(computed) => self.intern_computed(term, computed),
        }
    }

    fn intern_computed(&mut self, term: &Term, computed: &Arc<Computed>) -> TermId {
        if let Some(id) = self.find(term) {
            return id;
        }
        let inputs = computed.arguments().iter().map(|argument| match argument {
            Argument::Constant(value) => Input::Constant(value.clone()),
            Argument::Term(term) => Input::Term(self.intern_term(term)),
        });
        let inputs = inputs.collect();
        let id = self.push(term.clone());
        let table = Arc::make_mut(&mut self.computed);
        table.numbers.insert(computed.clone(), table.all.len());
        table.all.push(Known { id, term: computed.clone(), inputs, uses: 0 });
        id
    }

    fn push(&mut self, term: Term) -> TermId {
        let id = TermId(self.len() as u32);
        self.stamp.renew();
        Arc::make_mut(&mut self.recent_by_id).push(term);
        id
    }

    /// Tells this table from every one with other terms.
    pub fn stamp(&self) -> Stamp {
        self.stamp
    }

    pub fn term(&self, id: TermId) -> &Term {
        let at = id.0 as usize;
        if at < self.by_id.len() { &self.by_id[at] } else { &self.recent_by_id[at - self.by_id.len()] }
    }

    /// The name of an attribute, or the text of another term.
    pub fn name(&self, id: TermId) -> &str {
        self.term(id).name()
    }

    /// How many there are of all kinds.
    pub fn len(&self) -> usize {
        self.by_id.len() + self.recent_by_id.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All terms in the order of their numbers.
    pub fn iter(&self) -> impl Iterator<Item = &Term> {
        self.by_id.iter().chain(self.recent_by_id.iter())
    }

    /// The names of the attributes in the order of their numbers.
    pub fn attributes(&self) -> impl Iterator<Item = &Arc<str>> {
        self.iter().filter_map(|term| match term {
            Term::Attribute(name) => Some(name),
            Term::Computed(_) => None,
        })
    }

    pub fn has_computed(&self) -> bool {
        !self.computed.all.is_empty()
    }

    /// How many terms are computed for an event.
    pub fn computed_per_event(&self) -> usize {
        self.computed.steps().len()
    }

    /// How many predicates of living subscriptions look at each computed term.
    pub fn uses(&self) -> impl Iterator<Item = (TermId, u64)> {
        self.computed.all.iter().map(|known| (known.id, known.uses))
    }

    /// Notes that so many more predicates look at a term, or so many fewer. A term that nobody looks at is not
    /// computed.
    pub fn add_uses(&mut self, term: &Term, more: i64) {
        let Term::Computed(computed) = term else { return };
        let table = Arc::make_mut(&mut self.computed);
        let at = *table.numbers.get(computed).expect("a term in use is in the table");
        let uses = &mut table.all[at].uses;
        let was_used = *uses > 0;
        // A damaged file may have said fewer than there are.
        *uses = uses.saturating_add_signed(more);
        if was_used != (*uses > 0) {
            table.steps = OnceLock::new();
        }
    }

    /// The same terms, none in use.
    pub fn without_uses(&self) -> Self {
        let mut terms = self.clone();
        if self.has_computed() {
            let table = Arc::make_mut(&mut terms.computed);
            table.all.iter_mut().for_each(|known| known.uses = 0);
            table.steps = OnceLock::new();
        }
        terms
    }

    /// The same terms, in use here or in an earlier version of the table.
    pub fn with_uses_of(mut self, earlier: &Self) -> Self {
        for known in &earlier.computed.all {
            self.add_uses(&Term::Computed(known.term.clone()), known.uses as i64);
        }
        self
    }

    /// Computes the terms in use from the values of an event, sorted by number, and puts them among these. `room` is
    /// where the new values live.
    pub fn compute<'a>(&self, values: &mut Vec<(TermId, ValueRef<'a>)>, room: &'a mut Vec<Value>) {
        let steps = self.computed.steps();
        if steps.is_empty() {
            return;
        }
        room.clear();
        for (at, step) in steps.iter().enumerate() {
            let value = Computation(step).value(&|term| {
                if let Ok(given) = values.binary_search_by_key(&term, |(id, _)| *id) {
                    return Some(values[given].1);
                }
                let computed = steps[..at].binary_search_by_key(&term, |step| step.id).ok()?;
                Some(room[computed].as_ref())
            });
            room.push(value);
        }
        let room: &'a [Value] = room;
        let computed = steps.iter().zip(room).filter(|(_, value)| !matches!(value, Value::Null));
        values.extend(computed.map(|(step, value)| (step.id, value.as_ref())));
        values.sort_unstable_by_key(|(id, _)| *id);
    }

    /// The terms that are computed for an event, in order, each with how it is computed from others.
    pub fn computations(&self) -> impl ExactSizeIterator<Item = (TermId, Computation<'_>)> {
        self.computed.steps().iter().map(|step| (step.id, Computation(step)))
    }
}

/// How one term is computed.
pub struct Computation<'a>(&'a Step);

impl Computation<'_> {
    /// Its value, given those of other terms; null when it is undefined.
    pub fn value<'v>(&self, of: &impl Fn(TermId) -> Option<ValueRef<'v>>) -> Value {
        let Step { function, inputs, .. } = self.0;
        const FEW: usize = 4;
        let mut few = [ValueRef::Null; FEW];
        let mut many = vec![];
        let values = match inputs.len() {
            count @ 0..=FEW => &mut few[..count],
            count => {
                many.resize(count, ValueRef::Null);
                &mut many[..]
            }
        };
        for (value, input) in values.iter_mut().zip(inputs.iter()) {
            *value = match input {
                Input::Constant(constant) => constant.as_ref(),
                Input::Term(id) => of(*id).unwrap_or(ValueRef::Null),
            };
        }
        function.compute(values).unwrap_or(Value::Null)
    }
}

impl ComputedTerms {
    fn steps(&self) -> &[Step] {
        self.steps.get_or_init(|| self.plan())
    }

    fn plan(&self) -> Box<[Step]> {
        let mut needed: Vec<bool> = self.all.iter().map(|known| known.uses > 0).collect();
        // Arguments lie before what is computed from them.
        for at in (0..self.all.len()).rev() {
            if !needed[at] {
                continue;
            }
            for input in self.all[at].inputs.iter() {
                if let Input::Term(id) = input
                    && let Ok(inner) = self.all.binary_search_by_key(id, |known| known.id)
                {
                    needed[inner] = true;
                }
            }
        }
        let used = self.all.iter().zip(needed).filter(|(_, needed)| *needed);
        let step = |known: &Known| Step {
            id: known.id,
            function: known.term.function(),
            inputs: known.inputs.clone(),
        };
        used.map(|(known, _)| step(known)).collect()
    }
}

type Names<V> = hashbrown::HashMap<Arc<str>, V, FxBuildHasher>;

/// Names on two levels: a new name copies only the small one of recent names, if somebody else holds
/// it, and that is folded into the large one when it reaches an eighth of its size.
#[derive(Clone)]
struct Layered<V> {
    settled: Arc<Names<V>>,
    recent: Arc<Names<V>>,
}

#[derive(PartialEq)]
enum Folded {
    Yes,
    No,
}

impl<V> Default for Layered<V> {
    fn default() -> Self {
        Self { settled: Arc::default(), recent: Arc::default() }
    }
}

impl<V: Clone> Layered<V> {
    fn get(&self, name: &str) -> Option<&V> {
        self.settled.get(name).or_else(|| self.recent.get(name))
    }

    fn insert(&mut self, name: Arc<str>, value: V) -> Folded {
        let recent = Arc::make_mut(&mut self.recent);
        recent.insert(name, value);
        if recent.len() <= 64 + self.settled.len() / 8 {
            return Folded::No;
        }
        Arc::make_mut(&mut self.settled).extend(recent.drain());
        Folded::Yes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        terms.add_uses(&inner, 2);
        let earlier = terms.clone();
        terms.add_uses(&outer, 1);
        let names = |terms: &Terms| values(terms, -3).into_iter().map(|(name, _)| name).collect::<Vec<_>>();
        assert_eq!(names(&terms), ["x", "x + 1", "abs(x + 1)", "abs(x + 1) * 2"]);
        assert_eq!(values(&terms, -3)[3].1, Value::Int(4));
        terms.add_uses(&inner, -2);
        assert_eq!(names(&terms).len(), 4, "it is still an argument");
        terms.add_uses(&outer, -1);
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
