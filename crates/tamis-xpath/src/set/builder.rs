//! From paths to a [`PathSet`]: cuts each into skeleton and conditions, and chooses its access.

use std::cmp::Reverse;
use std::sync::Mutex;

use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;

use super::tree::{Key, ROOT, Tree, TreeBuilder};
use super::values::{Access, COMPARISONS, Lists, SimpleConditions, SimpleTest, SubjectNumbers};
use super::{ConditionId, OPAQUE, PathEntry, PathSet};
use crate::ast::{Axis, Comparison, Path};
use crate::compiled::{ANY, Condition, Kind, Label, Labels, Step, Steps, ValueTest};

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
    /// For each of them that is an OR of simple ones: these.
    alternatives: Vec<Box<[u32]>>,
    paths: Vec<PathEntry>,
    /// For each path with conditions how many there are, then for each its step and number.
    written: Vec<u32>,
    plain: Vec<(u32, u32)>,
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
        let rest = self.written.len() as u32;
        self.written.push(conditions.len() as u32);
        for (step, condition) in conditions {
            let id = self.intern(condition);
            self.written.extend([step, id]);
        }
        self.paths.push(PathEntry { node, rest });
        number
    }

    fn intern(&mut self, condition: Condition) -> ConditionId {
        if simple_test(&condition).is_some() {
            return self.intern_simple(&condition);
        }
        let alternatives = match &condition {
            Condition::Or(parts) if parts.iter().all(|part| simple_test(part).is_some()) => {
                parts.iter().map(|part| self.intern_simple(part)).collect()
            }
            _ => Box::default(),
        };
        self.opaque.push(condition);
        self.alternatives.push(alternatives);
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

    /// The set. Accesses are chosen now that it is known how many paths have each condition: one that few paths have
    /// is likely to be true for few documents.
    pub fn finish(self) -> PathSet {
        let Self {
            labels,
            tree,
            subjects,
            mut simple,
            opaque,
            alternatives,
            mut paths,
            written,
            mut plain,
            ..
        } = self;
        let (mut tree, numbers) = tree.finish();
        for path in paths.iter_mut().filter(|path| path.node != NOWHERE) {
            path.node = numbers[path.node as usize];
        }
        for (node, _) in &mut plain {
            *node = numbers[*node as usize];
            tree.make_live(*node);
        }
        plain.sort_unstable();
        plain.shrink_to_fit();
        simple.finish();
        let mut choice = Choice {
            tree: &tree,
            simple: &simple,
            alternatives: &alternatives,
            uses: HashMap::default(),
            accesses: vec![],
            checked: vec![],
            rests: vec![],
        };
        let conditional = |path: &&mut PathEntry| path.rest != PROVED;
        paths.iter_mut().filter(conditional).for_each(|path| choice.count(path, &written));
        for (number, path) in (0..).zip(&mut paths) {
            if path.rest != PROVED {
                choice.choose(number, path, &written);
            }
        }
        let Choice { uses, accesses, mut checked, mut rests, .. } = choice;
        drop(written);
        let lists = Lists::new(accesses, uses.into_keys().collect(), labels.len(), &simple);
        lists.anchor_nodes().iter().for_each(|node| tree.make_live(*node));
        checked.iter().for_each(|(node, _)| tree.make_live(*node));
        checked.sort_unstable();
        checked.shrink_to_fit();
        paths.shrink_to_fit();
        rests.shrink_to_fit();
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

/// Chooses the accesses of all paths.
struct Choice<'b> {
    tree: &'b Tree,
    simple: &'b SimpleConditions,
    alternatives: &'b [Box<[u32]>],
    /// How many paths have a simple condition at a step with a label.
    uses: HashMap<(Label, u32), u32, FxBuildHasher>,
    accesses: Vec<Access>,
    checked: Vec<(u32, u32)>,
    rests: Vec<u32>,
}

/// How good an access is: its kind, then how few paths have it, then how deep it lies.
type Merit = (u32, Reverse<u32>, u32);

impl Choice<'_> {
    /// The nodes of a path, from the first step to the last.
    fn nodes(&self, path: &PathEntry) -> Vec<u32> {
        let mut nodes = vec![];
        let mut node = path.node;
        while node != ROOT {
            nodes.push(node);
            node = self.tree.parent(node);
        }
        nodes.reverse();
        nodes
    }

    /// The simple conditions that a condition is, or is the OR of; none if it is something else.
    fn parts<'c>(&'c self, id: &'c ConditionId) -> &'c [u32] {
        match id & OPAQUE {
            0 => std::slice::from_ref(id),
            _ => &self.alternatives[(id & !OPAQUE) as usize],
        }
    }

    fn count(&mut self, path: &PathEntry, written: &[u32]) {
        let nodes = self.nodes(path);
        for pair in conditions(path, written).chunks_exact(2) {
            let label = self.tree.key(nodes[pair[0] as usize]).label();
            let parts = if pair[1] & OPAQUE == 0 {
                &pair[1..]
            } else {
                &*self.alternatives[(pair[1] & !OPAQUE) as usize]
            };
            for part in parts {
                *self.uses.entry((label, *part)).or_default() += 1;
            }
        }
    }

    fn merit(&self, label: Label, step: u32, id: ConditionId) -> Option<Merit> {
        let parts = self.parts(&id);
        let rank = parts.iter().map(|part| self.simple.test(*part).rank()).min()?;
        Some((rank, Reverse(parts.iter().map(|part| self.uses[&(label, *part)]).sum()), step))
    }

    fn choose(&mut self, number: u32, path: &mut PathEntry, written: &[u32]) {
        let nodes = self.nodes(path);
        let label = |step: u32| self.tree.key(nodes[step as usize]).label();
        let conditions = conditions(path, written);
        let ranked = |without: Option<usize>, simple_only: bool| {
            let pairs = conditions.chunks_exact(2).enumerate();
            let merits = pairs.filter_map(|(at, pair)| {
                let merit = self.merit(label(pair[0]), pair[0], pair[1])?;
                (Some(at) != without && !(simple_only && pair[1] & OPAQUE != 0)).then_some((merit, at))
            });
            merits.max().map(|(_, at)| at)
        };
        let access = ranked(None, false);
        let last = nodes.len() as u32 - 1;
        let access_step = access.map_or(last, |at| conditions[2 * at]);
        match access {
            None => self.checked.push((path.node, number)),
            Some(at) => {
                let second =
                    ranked(Some(at), true).map(|at| (label(conditions[2 * at]), conditions[2 * at + 1]));
                let (label, node) = (label(access_step), nodes[access_step as usize]);
                let id = conditions[2 * at + 1];
                let parts: Vec<u32> = self.parts(&id).to_vec();
                let access = |condition: u32| Access { label, condition, node, path: number, second };
                self.accesses.extend(parts.into_iter().map(access));
            }
        }
        let others = conditions.len() / 2 - usize::from(access.is_some());
        if others == 0 && access_step == last {
            path.rest = PROVED;
            return;
        }
        path.rest = self.rests.len() as u32;
        self.rests.push(access_step | (others as u32) << 8);
        for (at, pair) in conditions.chunks_exact(2).enumerate() {
            if Some(at) != access {
                self.rests.extend_from_slice(pair);
            }
        }
    }
}

/// Steps and conditions of a path, in turns.
fn conditions<'w>(path: &PathEntry, written: &'w [u32]) -> &'w [u32] {
    let start = path.rest as usize;
    &written[start + 1..start + 1 + 2 * written[start] as usize]
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
