//! The plan of what to compute for an event: the terms in use and their arguments, in order, and the families
//! of Boolean terms.

use std::sync::Arc;

use super::computed::{ComputedTerms, Inputs, Known};
use super::families::Family;
use super::{TermId, Terms};
use crate::term::boolean::{Finder, Finders};
use crate::term::{Function, Term, guessed_cell};
use crate::value::{Value, ValueRef};

/// What is computed for an event.
pub(super) struct Plan {
    /// For terms in use, and for their arguments, in order.
    pub steps: Box<[Step]>,
    pub families: Vec<Family>,
    /// Whether some member of a family looks at `all_strings()`.
    pub reads_strings: bool,
}

/// One computation.
#[derive(Clone)]
pub(super) struct Step {
    pub id: TermId,
    pub function: Function,
    pub inputs: Arc<[Input]>,
}

pub(super) enum Input {
    Constant(Value),
    Term(TermId),
}

impl ComputedTerms {
    pub fn choose_plan(&self, finders: Option<&dyn Finders>, strings: Option<TermId>) -> Plan {
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
}

impl Terms {
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
            let computed = computed.map(|(step, value)| (step.id, value.as_ref()));
            insert_sorted(values, computed.clone().count(), computed.rev());
        }
        if !families.is_empty() {
            self.find_booleans(values);
        }
    }

    /// Whether some terms are found together with others.
    pub fn has_families(&self) -> bool {
        self.has_computed() && !self.plan().families.is_empty()
    }

    /// What finds Boolean terms, each with those that it finds.
    pub fn finders(&self) -> impl Iterator<Item = (&[TermId], &dyn Finder)> {
        let parts = self.plan().families.iter().flat_map(|family| &family.parts);
        parts.map(|part| (&part.ids[..], &*part.finder))
    }

    /// Puts the Boolean terms that are true, and those that are false where that is asked, among the values of an event,
    /// which are sorted by number.
    pub fn find_booleans(&self, values: &mut Vec<(TermId, ValueRef<'_>)>) {
        let mut found = vec![];
        self.find_booleans_by(self.finders(), values, &mut |id, truth| {
            found.push((id, ValueRef::Bool(truth)))
        });
        found.sort_unstable_by_key(|(id, _)| *id);
        found.dedup_by_key(|(id, _)| *id);
        insert_sorted(values, found.len(), found.into_iter().rev());
    }

    /// Calls `found` with what these finders find for the values of an event, which are sorted by number. A term may be
    /// found twice.
    pub fn find_booleans_by<'f>(
        &self,
        finders: impl IntoIterator<Item = (&'f [TermId], &'f dyn Finder)>,
        values: &[(TermId, ValueRef<'_>)],
        found: &mut dyn FnMut(TermId, bool),
    ) {
        let guessed: Vec<Value> = values.iter().filter_map(|(_, value)| guessed_cell(*value)).collect();
        let mut next = guessed.iter();
        let read: Vec<(TermId, ValueRef<'_>)>;
        let values = if guessed.is_empty() {
            values
        } else {
            let of_cells = values.iter().map(|(id, value)| match value {
                ValueRef::Cell(_) => (*id, next.next().map_or(ValueRef::Null, Value::as_ref)),
                value => (*id, *value),
            });
            read = of_cells.collect();
            &read
        };
        for (ids, finder) in finders {
            finder.find(values, &mut |place, truth| found(ids[place], truth));
        }
    }
}

/// How one term is computed.
pub struct Computation<'a>(pub(super) &'a Step);

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

/// Puts more values, so many and by falling number, among those of an event, which are sorted by number.
fn insert_sorted<'a>(
    values: &mut Vec<(TermId, ValueRef<'a>)>,
    count: usize,
    falling: impl Iterator<Item = (TermId, ValueRef<'a>)>,
) {
    let mut from = values.len();
    values.resize(from + count, (TermId(0), ValueRef::Null));
    let mut to = values.len();
    for (id, value) in falling {
        while from > 0 && values[from - 1].0 > id {
            from -= 1;
            to -= 1;
            values[to] = values[from];
        }
        to -= 1;
        values[to] = (id, value);
    }
}
