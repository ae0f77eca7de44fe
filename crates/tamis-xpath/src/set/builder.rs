//! From paths to a [`PathSet`]: cuts each into skeleton and conditions, and chooses its access.

use std::cmp::Reverse;
use std::sync::Mutex;

use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;

use super::simple::{COMPARISONS, SimpleConditions, SimpleTest};
use super::text_index::{self, MakeTextIndex};
use super::tree::{Key, ROOT, Tree, TreeBuilder};
use super::values::{Access, ListNumbers, Lists, NONE, SubjectNumbers};
use super::verification::Head;
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
    make_text_index: Option<MakeTextIndex>,
}

/// A path cut into pieces.
struct Pieces {
    skeleton: Vec<Key>,
    /// Each at a step.
    conditions: Vec<(u32, Condition)>,
}

impl PathSetBuilder {
    /// Of a set that looks texts up in indexes made so.
    pub fn with_text_index(make: MakeTextIndex) -> Self {
        Self { make_text_index: Some(make), ..Self::default() }
    }

    /// Adds a path and says its number. Weights do not matter here.
    pub fn add(&mut self, path: &Path) -> u32 {
        let number = self.paths.len() as u32;
        let steps = match path.is_scored() {
            true => self.labels.compile_steps(&path.without_weights().steps),
            false => self.labels.compile_steps(&path.steps),
        };
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
            make_text_index,
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
        simple.finish();
        let mut uses = HashMap::default();
        for path in paths.iter().filter(|path| path.rest != PROVED) {
            count_uses(path, &written, &tree, &alternatives, &mut uses);
        }
        let numbers = ListNumbers::new(uses.keys().copied().collect(), labels.len(), &simple);
        let mut choice = Choice {
            tree: &tree,
            simple: &simple,
            alternatives: &alternatives,
            uses,
            numbers: &numbers,
            accesses: vec![],
            checked: vec![],
            rests: vec![],
        };
        for (number, path) in (0..).zip(&mut paths) {
            if path.rest != PROVED {
                choice.choose(number, path, &written);
            }
        }
        let Choice { accesses, mut checked, rests, .. } = choice;
        drop(written);
        let mut lists =
            Lists::new(accesses, numbers, &simple, make_text_index.unwrap_or(text_index::one_by_one));
        lists.anchor_nodes().iter().for_each(|node| tree.make_live(*node));
        checked.iter().for_each(|(node, _)| tree.make_live(*node));
        let (paths, rests, given) = in_order_of_entries(&paths, &rests, &mut lists);
        let mut inside = vec![0; given.len()];
        for (number, given) in (0..).zip(&given) {
            inside[*given as usize] = number;
        }
        plain.iter_mut().chain(&mut checked).for_each(|(_, path)| *path = inside[*path as usize]);
        plain.sort_unstable();
        plain.shrink_to_fit();
        checked.sort_unstable();
        checked.shrink_to_fit();
        let scratches = Mutex::default();
        PathSet {
            labels,
            tree,
            subjects,
            simple,
            opaque,
            lists,
            paths,
            rests,
            given,
            plain,
            checked,
            scratches,
        }
    }
}

/// Paths and what is left of them in the order in which entries name them, and the numbers that they were given.
fn in_order_of_entries(
    paths: &[PathEntry],
    rests: &[u32],
    lists: &mut Lists,
) -> (Vec<PathEntry>, Vec<u32>, Vec<u32>) {
    const UNNAMED: u32 = u32::MAX;
    let mut inside = vec![UNNAMED; paths.len()];
    let mut given = Vec::with_capacity(paths.len());
    lists.renumber(|path| {
        let number = &mut inside[path as usize];
        if *number == UNNAMED {
            *number = given.len() as u32;
            given.push(path);
        }
        *number
    });
    given.extend((0..paths.len() as u32).filter(|path| inside[*path as usize] == UNNAMED));
    let mut moved_rests = Vec::with_capacity(rests.len());
    let moved = given.iter().map(|path| {
        let PathEntry { node, rest } = paths[*path as usize];
        if rest == PROVED {
            return PathEntry { node, rest };
        }
        let start = moved_rests.len() as u32;
        moved_rests.extend_from_slice(Head(rests[rest as usize]).words(&rests[rest as usize..]));
        PathEntry { node, rest: start }
    });
    (moved.collect(), moved_rests, given)
}

/// How many paths have a simple condition at a step with a label.
type Uses = HashMap<(Label, u32), u32, FxBuildHasher>;

fn count_uses(path: &PathEntry, written: &[u32], tree: &Tree, alternatives: &[Box<[u32]>], uses: &mut Uses) {
    let nodes = tree.way_to(path.node);
    for pair in conditions(path, written).chunks_exact(2) {
        let label = tree.key(nodes[pair[0] as usize]).label();
        for part in parts(&pair[1], alternatives) {
            *uses.entry((label, *part)).or_default() += 1;
        }
    }
}

/// The simple conditions that a condition is, or is the OR of; none if it is something else.
fn parts<'c>(id: &'c ConditionId, alternatives: &'c [Box<[u32]>]) -> &'c [u32] {
    match id & OPAQUE {
        0 => std::slice::from_ref(id),
        _ => &alternatives[(id & !OPAQUE) as usize],
    }
}

/// Chooses the accesses of all paths.
struct Choice<'b> {
    tree: &'b Tree,
    simple: &'b SimpleConditions,
    alternatives: &'b [Box<[u32]>],
    uses: Uses,
    numbers: &'b ListNumbers,
    accesses: Vec<Access>,
    checked: Vec<(u32, u32)>,
    rests: Vec<u32>,
}

/// How good an access is: its kind, then how few paths have it, then how deep it lies.
type Merit = (u32, Reverse<u32>, u32);

impl Choice<'_> {
    fn merit(&self, label: Label, step: u32, id: ConditionId) -> Option<Merit> {
        let parts = parts(&id, self.alternatives);
        let rank = parts.iter().map(|part| self.simple.test(*part).rank()).min()?;
        Some((rank, Reverse(parts.iter().map(|part| self.uses[&(label, *part)]).sum()), step))
    }

    fn choose(&mut self, number: u32, path: &mut PathEntry, written: &[u32]) {
        let nodes = self.tree.way_to(path.node);
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
                let second = ranked(Some(at), true);
                let second =
                    second.map_or(NONE, |at| self.list(label(conditions[2 * at]), conditions[2 * at + 1]));
                let (label, node) = (label(access_step), nodes[access_step as usize]);
                for part in parts(&conditions[2 * at + 1], self.alternatives) {
                    let list = self.list(label, *part);
                    self.accesses.push(Access { label, list, node, path: number, second });
                }
            }
        }
        let others = conditions.len() / 2 - usize::from(access.is_some());
        if others == 0 && access_step == last {
            path.rest = PROVED;
            return;
        }
        let pairs = || {
            conditions.chunks_exact(2).enumerate().filter(|(at, _)| Some(*at) != access).map(|(_, pair)| pair)
        };
        let above = pairs().any(|pair| pair[0] < access_step);
        path.rest = self.rests.len() as u32;
        let head = Head::new(access_step, last + 1, others, above);
        self.rests.push(head.0);
        for pair in pairs() {
            let id = if pair[1] & OPAQUE == 0 { self.list(label(pair[0]), pair[1]) } else { pair[1] };
            self.rests.extend([pair[0], id]);
        }
        self.rests.extend(nodes[head.first_key()..].iter().map(|node| self.tree.key(*node).to_word()));
    }

    fn list(&self, label: Label, condition: u32) -> u32 {
        self.numbers.get(label, condition)
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
        // The empty text is also found where there is no node.
        Condition::Contains(steps, text) if !text.is_empty() => (steps, SimpleTest::Contains(text)),
        Condition::StartsWith(steps, text) if !text.is_empty() => (steps, SimpleTest::StartsWith(text)),
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
                let everywhere = Step {
                    axis: Axis::Descendant,
                    kind: Kind::Element,
                    label: ANY,
                    weight: 0.0,
                    conditions: [].into(),
                };
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
