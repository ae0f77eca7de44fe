//! From paths to a [`PathSet`]: cuts each into skeleton and conditions, and chooses its access.

use std::sync::Mutex;

use super::tree::{Key, ROOT, TreeBuilder};
use super::values::{Access, COMPARISONS, Lists, SimpleConditions, SimpleTest, SubjectNumbers};
use super::{ConditionId, OPAQUE, PathEntry, PathSet};
use crate::ast::{Axis, Comparison, Path};
use crate::compiled::{ANY, Condition, Kind, Labels, Step, Steps, ValueTest};

/// Of a path of which nothing is left to verify.
pub(super) const PROVED: u32 = u32::MAX;
/// Of a path that is true for no document.
pub(super) const NOWHERE: u32 = u32::MAX;

/// Takes paths one by one, so that not all of them need to be in memory.
#[derive(Default)]
pub struct PathSetBuilder {
    labels: Labels,
    tree: TreeBuilder,
    subjects: Vec<Steps>,
    subject_numbers: SubjectNumbers,
    simple: SimpleConditions,
    opaque: Vec<Condition>,
    accesses: Vec<Access>,
    paths: Vec<PathEntry>,
    rests: Vec<u32>,
    plain: Vec<(u32, u32)>,
    checked: Vec<(u32, u32)>,
}

/// A path cut into pieces.
struct Pieces {
    skeleton: Vec<Key>,
    /// Each at a step.
    conditions: Vec<(u32, Condition)>,
}

impl PathSetBuilder {
    /// Adds a path and says its number.
    pub fn add(&mut self, path: &Path) -> u32 {
        let number = self.paths.len() as u32;
        let steps = self.labels.compile_steps(&path.steps);
        let Some(Pieces { skeleton, conditions }) = cut(steps.into_vec()) else {
            self.paths.push(PathEntry { node: NOWHERE, rest: PROVED });
            return number;
        };
        let mut nodes = Vec::with_capacity(skeleton.len());
        for key in &skeleton {
            nodes.push(self.tree.child(*nodes.last().unwrap_or(&ROOT), *key));
        }
        let last = skeleton.len() as u32 - 1;
        let node = nodes[last as usize];
        if conditions.is_empty() {
            self.plain.push((node, number));
            self.paths.push(PathEntry { node, rest: PROVED });
            return number;
        }
        let ranked = conditions
            .iter()
            .enumerate()
            .filter_map(|(at, (step, condition))| Some((access_rank(condition)?, *step, at)));
        let Some((_, access_step, access)) = ranked.max() else {
            self.checked.push((node, number));
            let rest = self.rest(last, conditions, None);
            self.paths.push(PathEntry { node, rest });
            return number;
        };
        let (label, anchor) = (skeleton[access_step as usize].label(), nodes[access_step as usize]);
        let alternatives: Vec<u32> = match &conditions[access].1 {
            Condition::Or(parts) => parts.iter().map(|part| self.intern_simple(part)).collect(),
            condition => vec![self.intern_simple(condition)],
        };
        for condition in &alternatives {
            self.accesses.push(Access { label, condition: *condition, node: anchor, path: number });
        }
        let nothing_left = conditions.len() == 1 && access_step == last;
        let rest = if nothing_left { PROVED } else { self.rest(access_step, conditions, Some(access)) };
        self.paths.push(PathEntry { node, rest });
        number
    }

    /// Writes down what is left to verify once the access is known to hold.
    fn rest(&mut self, access_step: u32, conditions: Vec<(u32, Condition)>, access: Option<usize>) -> u32 {
        let at = self.rests.len() as u32;
        let others = conditions.len() as u32 - u32::from(access.is_some());
        self.rests.push(access_step | others << 8);
        for (number, (step, condition)) in conditions.into_iter().enumerate() {
            if Some(number) != access {
                let id = self.intern(condition);
                self.rests.extend([step, id]);
            }
        }
        at
    }

    fn intern(&mut self, condition: Condition) -> ConditionId {
        if simple_test(&condition).is_some() {
            return self.intern_simple(&condition);
        }
        self.opaque.push(condition);
        OPAQUE | (self.opaque.len() as u32 - 1)
    }

    fn intern_simple(&mut self, condition: &Condition) -> u32 {
        let (steps, test) = simple_test(condition).expect("it is simple");
        let subject = self.subject(steps);
        self.simple.intern(subject, test)
    }

    fn subject(&mut self, steps: &[Step]) -> u32 {
        let key =
            steps.iter().map(|step| (step.axis == Axis::Descendant, step.kind as u8, step.label)).collect();
        *self.subject_numbers.0.entry(key).or_insert_with(|| {
            self.subjects.push(steps.into());
            self.subjects.len() as u32 - 1
        })
    }

    pub fn finish(self) -> PathSet {
        let Self {
            labels,
            tree,
            subjects,
            mut simple,
            opaque,
            mut accesses,
            mut paths,
            mut rests,
            mut plain,
            mut checked,
            ..
        } = self;
        let (mut tree, numbers) = tree.finish();
        for access in &mut accesses {
            access.node = numbers[access.node as usize];
        }
        for path in paths.iter_mut().filter(|path| path.node != NOWHERE) {
            path.node = numbers[path.node as usize];
        }
        for (node, _) in plain.iter_mut().chain(&mut checked) {
            *node = numbers[*node as usize];
            tree.make_live(*node);
        }
        plain.sort_unstable();
        checked.sort_unstable();
        simple.finish();
        let lists = Lists::new(accesses, labels.len(), &simple);
        lists.anchor_nodes().iter().for_each(|node| tree.make_live(*node));
        paths.shrink_to_fit();
        rests.shrink_to_fit();
        plain.shrink_to_fit();
        checked.shrink_to_fit();
        PathSet {
            labels,
            tree,
            subjects,
            simple,
            opaque,
            lists,
            paths,
            rests,
            plain,
            checked,
            scratches: Mutex::default(),
        }
    }
}

/// The subject and test of a condition that can be an access.
fn simple_test(condition: &Condition) -> Option<(&[Step], SimpleTest<'_>)> {
    let (steps, test) = match condition {
        Condition::Exists(steps) => (steps, SimpleTest::Exists),
        Condition::Compare(steps, ValueTest::Text { equal: true, text }) => (steps, SimpleTest::Text(text)),
        Condition::Compare(steps, ValueTest::Number { comparison, number })
            if is_simple(*comparison, *number) =>
        {
            (steps, SimpleTest::Number(*comparison, *number))
        }
        _ => return None,
    };
    let is_plain = steps.iter().all(|step| step.conditions.is_empty());
    is_plain.then_some((steps, test))
}

/// Nothing is equal to what is no number, or in an order with it.
fn is_simple(comparison: Comparison, number: f64) -> bool {
    COMPARISONS.contains(&comparison) && !number.is_nan()
}

/// How good an access a condition is, if it can be one.
fn access_rank(condition: &Condition) -> Option<u32> {
    match condition {
        Condition::Or(parts) => parts.iter().map(|part| Some(simple_test(part)?.1.rank())).min().flatten(),
        condition => Some(simple_test(condition)?.1.rank()),
    }
}

/// Cuts a path; `None` if it is true for no document.
fn cut(mut steps: Vec<Step>) -> Option<Pieces> {
    let leaf = steps.pop_if(|step| step.kind != Kind::Element);
    if let Some(leaf) = leaf {
        let leaf = match steps.last() {
            Some(_) => leaf,
            // The document itself has neither attributes nor texts.
            None if leaf.axis == Axis::Child => return None,
            None => {
                let everywhere =
                    Step { axis: Axis::Descendant, kind: Kind::Element, label: ANY, conditions: [].into() };
                steps.push(everywhere);
                Step { axis: Axis::Child, ..leaf }
            }
        };
        let last = steps.last_mut().expect("there is one");
        let mut conditions = std::mem::take(&mut last.conditions).into_vec();
        conditions.push(condition_of(leaf));
        last.conditions = conditions.into();
    }
    let mut pieces = Pieces { skeleton: vec![], conditions: vec![] };
    for (at, step) in (0..).zip(steps) {
        pieces.skeleton.push(Key::new(step.axis, step.label));
        for condition in step.conditions {
            conjuncts(condition, &mut |part| pieces.conditions.push((at, part)));
        }
    }
    // A comparison with what is no number.
    let is_never = |condition: &Condition| {
        matches!(condition, Condition::Compare(_, ValueTest::Number { comparison, number })
        if number.is_nan() && *comparison != Comparison::NotEqual)
    };
    if pieces.conditions.iter().any(|(_, condition)| is_never(condition)) {
        return None;
    }
    Some(pieces)
}

/// That an element has such an attribute or text.
fn condition_of(mut leaf: Step) -> Condition {
    if let [Condition::Compare(steps, _)] = &*leaf.conditions
        && steps.is_empty()
    {
        let condition = std::mem::take(&mut leaf.conditions).into_vec().pop();
        let Some(Condition::Compare(_, test)) = condition else { unreachable!("just seen") };
        return Condition::Compare([leaf].into(), test);
    }
    Condition::Exists([leaf].into())
}

fn conjuncts(condition: Condition, see: &mut impl FnMut(Condition)) {
    match condition {
        Condition::And(parts) => parts.into_iter().for_each(|part| conjuncts(part, see)),
        other => see(other),
    }
}
