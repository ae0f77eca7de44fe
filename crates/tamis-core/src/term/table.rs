//! The terms of one index, each known by a small number, and the order in which they are computed.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use rustc_hash::FxBuildHasher;

use super::boolean::{EachInTurn, Finder, Finders, Member};
use super::{Argument, Function, NOW, STRINGS, Term};
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
    stamp: Stamp,
}

/// The terms that are not attributes, and which of them are in use.
#[derive(Clone, Default)]
struct ComputedTerms {
    /// By their text: places in `chunks`.
    numbers: Layered<usize>,
    /// In the order of their ids, in chunks, so that a new version copies few of them.
    chunks: Vec<Arc<Vec<Known>>>,
    len: usize,
    /// What an event needs. Chosen when the first event asks, since many subscriptions may come before it.
    plan: OnceLock<Arc<Plan>>,
    /// The last one that was chosen: what did not change is taken from it.
    last_plan: Option<Arc<Plan>>,
}

const CHUNK: usize = 64;

#[derive(Clone)]
struct Known {
    id: TermId,
    term: Term,
    inputs: Inputs,
    uses: Uses,
}

#[derive(Clone)]
enum Inputs {
    OfFunction(Arc<[Input]>),
    OfBoolean(Arc<[TermId]>),
}

/// How many predicates of living subscriptions look at a term.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Uses {
    pub all: i64,
    /// Those for which it matters whether it is false or undefined.
    pub of_false: i64,
}

/// What is computed for an event.
struct Plan {
    /// For terms in use, and for their arguments, in order.
    steps: Box<[Step]>,
    families: Vec<Family>,
    /// Whether some member of a family looks at `all_strings()`.
    reads_strings: bool,
}

/// The finders of one family. Together they find each member that is in use; large ones are made seldom.
#[derive(Clone)]
struct Family {
    name: Box<str>,
    parts: Vec<Arc<FamilyPart>>,
}

struct FamilyPart {
    /// Places among all computed terms, rising.
    places: Vec<usize>,
    ids: Vec<TermId>,
    members: Vec<Member>,
    finder: Box<dyn Finder>,
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

    /// The term `all_strings()`, if a reader of events has to give it a value: somebody looks at it now.
    pub fn strings(&self) -> Option<TermId> {
        self.strings.filter(|_| self.wants_strings || self.has_computed() && self.plan().reads_strings)
    }

    /// The same table, to read all strings of events, whether or not a subscription in use looks at them.
    pub fn with_strings(self) -> Self {
        Self { wants_strings: true, ..self }
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
        let recent = Arc::make_mut(&mut self.recent_by_id);
        recent.push(term);
        if recent.len() > 64 + self.by_id.len() / 8 {
            Arc::make_mut(&mut self.by_id).append(recent);
        }
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

    /// Computes the terms in use from the values of an event, sorted by number, and puts them among these. `room` is
    /// where the new values live.
    pub fn compute<'a>(&self, values: &mut Vec<(TermId, ValueRef<'a>)>, room: &'a mut Vec<Value>) {
        if let Some(now) = self.now() {
            values.insert(values.partition_point(|(id, _)| *id < now.0), now);
        }
        if !self.has_computed() {
            return;
        }
        let Plan { steps, families, .. } = self.plan();
        if !steps.is_empty() {
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
        if !families.is_empty() {
            self.find_booleans(values);
        }
    }

    /// Whether some terms are found together with others.
    pub fn has_families(&self) -> bool {
        self.has_computed() && !self.plan().families.is_empty()
    }

    /// Puts the Boolean terms that are true, and those that are false where that is asked, among the values of an event,
    /// which are sorted by number.
    pub fn find_booleans(&self, values: &mut Vec<(TermId, ValueRef<'_>)>) {
        let guessed: Vec<Value> =
            values.iter().filter_map(|(_, value)| super::guessed_cell(*value)).collect();
        if !guessed.is_empty() {
            let mut next = guessed.iter();
            let mut read: Vec<(TermId, ValueRef<'_>)> = values
                .iter()
                .map(|(id, value)| match (value, ()) {
                    (ValueRef::Cell(_), ()) => (*id, next.next().map_or(ValueRef::Null, Value::as_ref)),
                    _ => (*id, *value),
                })
                .collect();
            self.find_booleans(&mut read);
            let found: Vec<(TermId, bool)> = read
                .iter()
                .filter(|(id, _)| values.binary_search_by_key(id, |(known, _)| *known).is_err())
                .map(|(id, value)| (*id, matches!(value, ValueRef::Bool(true))))
                .collect();
            values.extend(found.into_iter().map(|(id, truth)| (id, ValueRef::Bool(truth))));
            values.sort_unstable_by_key(|(id, _)| *id);
            return;
        }
        let mut found = vec![];
        for part in self.plan().families.iter().flat_map(|family| &family.parts) {
            part.finder.find(values, &mut |place, truth| {
                found.push((part.ids[place], ValueRef::Bool(truth)));
            });
        }
        if !found.is_empty() {
            values.append(&mut found);
            values.sort_unstable_by_key(|(id, _)| *id);
            values.dedup_by_key(|(id, _)| *id);
        }
    }

    /// The terms that are computed for an event one by one, in order, each with how it is computed from others.
    pub fn computations(&self) -> impl ExactSizeIterator<Item = (TermId, Computation<'_>)> {
        self.plan().steps.iter().map(|step| (step.id, Computation(step)))
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
    fn at(&self, place: usize) -> &Known {
        &self.chunks[place / CHUNK][place % CHUNK]
    }

    fn iter(&self) -> impl DoubleEndedIterator<Item = &Known> {
        self.chunks.iter().flat_map(|chunk| chunk.iter())
    }

    fn find(&self, term: &Term) -> Option<usize> {
        self.numbers.get(term.name()).copied()
    }

    fn push(&mut self, known: Known) {
        if self.len.is_multiple_of(CHUNK) {
            self.chunks.push(Arc::new(Vec::with_capacity(CHUNK)));
        }
        self.numbers.insert(known.term.name().into(), self.len);
        Arc::make_mut(self.chunks.last_mut().expect("there is room")).push(known);
        self.len += 1;
    }

    fn place_of(&self, id: TermId) -> Option<usize> {
        let chunk = self.chunks.partition_point(|chunk| chunk[0].id <= id).checked_sub(1)?;
        let inside = self.chunks[chunk].binary_search_by_key(&id, |known| known.id).ok()?;
        Some(chunk * CHUNK + inside)
    }

    fn forget_plan(&mut self) {
        if let Some(plan) = self.plan.take() {
            self.last_plan = Some(plan);
        }
    }

    fn choose_plan(&self, finders: Option<&dyn Finders>, strings: Option<TermId>) -> Plan {
        let mut needed: Vec<bool> = self.iter().map(|known| known.uses.all > 0).collect();
        let (mut booleans, mut reads_strings) = (vec![], false);
        // Arguments lie before what is computed from them.
        for at in (0..self.len).rev() {
            let known = self.at(at);
            if !needed[at] {
                continue;
            }
            let mut need = |id: TermId| {
                if let Some(inner) = self.place_of(id) {
                    needed[inner] = true;
                }
            };
            match &known.inputs {
                Inputs::OfBoolean(inputs) => {
                    booleans.push(at);
                    reads_strings |= strings.is_some_and(|strings| inputs.contains(&strings));
                    inputs.iter().for_each(|id| need(*id));
                }
                Inputs::OfFunction(inputs) => inputs.iter().for_each(|input| match input {
                    Input::Term(id) => need(*id),
                    Input::Constant(_) => {}
                }),
            }
        }
        let step = |known: &Known| match (&known.term, &known.inputs) {
            (Term::Computed(computed), Inputs::OfFunction(inputs)) => {
                Some(Step { id: known.id, function: computed.function(), inputs: inputs.clone() })
            }
            _ => None,
        };
        let used = self.iter().zip(needed).filter(|(_, needed)| *needed);
        let steps = used.filter_map(|(known, _)| step(known)).collect();
        booleans.reverse();
        Plan { steps, families: self.families(&booleans, finders), reads_strings }
    }

    /// The families of Boolean terms in use, whose places are given.
    fn families(&self, in_use: &[usize], finders: Option<&dyn Finders>) -> Vec<Family> {
        let mut by_name: BTreeMap<&str, Vec<(usize, Member)>> = BTreeMap::new();
        for &at in in_use {
            let known = self.at(at);
            if let (Term::Boolean(term), Inputs::OfBoolean(inputs)) = (&known.term, &known.inputs) {
                let wants_false = known.uses.of_false > 0;
                let member = Member { term: term.clone(), inputs: inputs.clone(), wants_false };
                by_name.entry(term.family()).or_default().push((at, member));
            }
        }
        let last = |name: &str| {
            let plan = self.last_plan.as_deref()?;
            plan.families.iter().find(|family| *family.name == *name)
        };
        let family = |(name, members): (&str, Vec<(usize, Member)>)| Family {
            name: name.into(),
            parts: self.family_parts(members, last(name).map_or(&[], |family| &family.parts), finders),
        };
        by_name.into_iter().map(family).collect()
    }

    /// Finders for all members. Those of the last plan are kept, unless half of their members are gone; what is new gets
    /// one of its own, together with those that are not much larger, as segments of a log-structured store do.
    fn family_parts(
        &self,
        members: Vec<(usize, Member)>,
        last: &[Arc<FamilyPart>],
        finders: Option<&dyn Finders>,
    ) -> Vec<Arc<FamilyPart>> {
        let place_of = |at: &usize| members.binary_search_by_key(at, |(place, _)| *place).ok();
        let mut is_held = vec![false; members.len()];
        let held_by = |part: &FamilyPart| -> Vec<usize> {
            let held = part.places.iter().zip(&part.members);
            let fits = |member: &Member, now: &Member| member.wants_false == now.wants_false;
            held.filter_map(|(at, member)| place_of(at).filter(|now| fits(member, &members[*now].1)))
                .collect()
        };
        let mut parts: Vec<Arc<FamilyPart>> = vec![];
        for part in last {
            let held = held_by(part);
            if held.len() * 2 >= part.places.len() {
                held.iter().for_each(|now| is_held[*now] = true);
                parts.push(part.clone());
            }
        }
        parts.sort_by_key(|part| std::cmp::Reverse(part.places.len()));
        let mut new = is_held.iter().filter(|held| !**held).count();
        if new == 0 {
            return parts;
        }
        while let Some(smallest) = parts.pop_if(|part| part.places.len() <= 2 * new) {
            for now in held_by(&smallest) {
                is_held[now] = false;
            }
            new += smallest.places.len();
        }
        // What another part still holds stays there.
        for part in &parts {
            held_by(part).iter().for_each(|now| is_held[*now] = true);
        }
        let (mut places, mut ids, mut taken) = (vec![], vec![], vec![]);
        for ((at, member), held) in members.iter().zip(is_held) {
            if !held {
                places.push(*at);
                ids.push(self.at(*at).id);
                taken.push(member.clone());
            }
        }
        let finder =
            finders.and_then(|finders| finders.finder(&taken)).or_else(|| taken[0].term.finder(&taken));
        let finder = finder.unwrap_or_else(|| Box::new(EachInTurn(taken.clone())));
        parts.push(Arc::new(FamilyPart { places, ids, members: taken, finder }));
        parts
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

impl<V> Default for Layered<V> {
    fn default() -> Self {
        Self { settled: Arc::default(), recent: Arc::default() }
    }
}

impl<V: Clone> Layered<V> {
    fn get(&self, name: &str) -> Option<&V> {
        self.settled.get(name).or_else(|| self.recent.get(name))
    }

    fn insert(&mut self, name: Arc<str>, value: V) {
        let recent = Arc::make_mut(&mut self.recent);
        recent.insert(name, value);
        if recent.len() > 64 + self.settled.len() / 8 {
            Arc::make_mut(&mut self.settled).extend(recent.drain());
        }
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
