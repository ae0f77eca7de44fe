//! Many paths in one structure.
//!
//! Every path is split into its *skeleton* (axes and names of its element steps) and its *conditions* (its predicates,
//! each at one step; attributes and texts at the end of a path are conditions of the last element).
//!
//! ```text
//! tree        all skeletons, as a prefix tree
//! states      for each path of names from the root that a document had: where in the tree it leads, kept between
//!             documents (`automaton`)
//! lists       for each (name of a step, condition) that is the *access* of some paths: (place in the tree, path) pairs
//! ```
//!
//! A path without conditions is true where a state says so. One with conditions has one of them as its access, the one that
//! is likely to be the most selective: equality, else a text to search for, else a range, else existence. For every element,
//! the subjects of conditions on elements of that name (`@lang`, `price`) are evaluated once, and their values are looked up
//! in hash tables, sorted thresholds (`values`, `lookups`) and indexes of texts (`text_index`). Of the lists that are found, only
//! entries whose place in the tree is active count: one bit each. The rest of a path is verified in the document
//! (`verification`). So the cost grows with the document and with the paths that it nearly satisfies. Paths whose conditions
//! are all negations or inequalities have no access: they are verified at every element that their skeleton leads to.
//!
//! The set is immutable. States and working memory are in a [`Scratch`]; there are as many of these as threads that ever
//! matched at the same time.

mod automaton;
mod builder;
mod lookups;
mod matching;
mod simple;
mod text;
mod text_index;
mod tree;
mod value_table;
mod values;
mod verification;

#[cfg(test)]
mod tests;

use std::sync::Mutex;

use crate::ast::Path;
use crate::compiled::{Condition, Labels, Steps};
use crate::document::Document;

pub use builder::PathSetBuilder;
use matching::Scratch;
use simple::SimpleConditions;
pub use text_index::{MakeTextIndex, TextIndex, TextTest};
use tree::Tree;
use values::Lists;

/// Immutable; knows for a document which of its paths select something. Paths are known by their numbers, in the
/// order in which they were added.
pub struct PathSet {
    labels: Labels,
    tree: Tree,
    /// What conditions look at: paths without conditions of their own, relative to an element.
    subjects: Vec<Steps>,
    simple: SimpleConditions,
    /// All other conditions.
    opaque: Vec<Condition>,
    lists: Lists,
    paths: Vec<PathEntry>,
    /// The parts of paths that remain to be verified; see [`PathEntry::rest`].
    rests: Vec<u32>,
    /// The number that each path was given when it was added; inside they are in the order in which lists name them.
    given: Vec<u32>,
    /// Tree node and path, sorted: paths without conditions, and those whose conditions are all asked.
    plain: Vec<(u32, u32)>,
    checked: Vec<(u32, u32)>,
    scratches: Mutex<Vec<Scratch>>,
}

#[derive(Clone, Copy)]
struct PathEntry {
    /// The last node of its skeleton.
    node: u32,
    /// Where what is left to verify begins, or [`PROVED`](builder::PROVED); see [`Head`](verification::Head).
    rest: u32,
}

/// A condition of a set: simple ones by their number, or that of their list; others with the highest bit.
type ConditionId = u32;
const OPAQUE: ConditionId = 1 << 31;

/// Scratches that are kept; more threads at once make their own and drop them.
const KEPT_SCRATCHES: usize = 64;

impl PathSet {
    pub fn new(paths: &[Path]) -> Self {
        let mut builder = PathSetBuilder::default();
        paths.iter().for_each(|path| {
            builder.add(path);
        });
        builder.finish()
    }

    pub fn len(&self) -> usize {
        self.paths.len()
    }

    pub fn is_empty(&self) -> bool {
        self.paths.is_empty()
    }

    /// Calls `found` with the number of each path that is true for the document, once, in no order.
    pub fn matches(&self, document: &Document, found: &mut dyn FnMut(u32)) {
        // Never waits, so that nothing is lost to a fork while another thread holds the lock.
        let kept = self.scratches.try_lock().ok().and_then(|mut kept| kept.pop());
        let mut scratch: Scratch = kept.unwrap_or_default();
        self.match_with(document, &mut scratch, found);
        if let Ok(mut kept) = self.scratches.try_lock()
            && kept.len() < KEPT_SCRATCHES
        {
            kept.push(scratch);
        }
    }

    /// The bytes that it holds, with what it has learnt from documents.
    pub fn heap_bytes(&self) -> usize {
        let kept = self.scratches.try_lock().map_or(0, |kept| kept.iter().map(|s| s.heap_bytes()).sum());
        self.fixed_bytes() + kept
    }

    fn fixed_bytes(&self) -> usize {
        self.labels.heap_bytes()
            + self.tree.heap_bytes()
            + self.subjects.iter().map(|steps| steps.len() * 48 + 16).sum::<usize>()
            + self.simple.heap_bytes()
            + self.opaque.iter().map(bytes_of).sum::<usize>()
            + self.lists.heap_bytes()
            + self.paths.capacity() * size_of::<PathEntry>()
            + (self.rests.capacity() + self.given.capacity()) * 4
            + (self.plain.capacity() + self.checked.capacity()) * 8
    }
}

/// About the bytes of a condition, with what it holds.
fn bytes_of(condition: &Condition) -> usize {
    let steps = |steps: &Steps| {
        steps.iter().map(|step| 40 + step.conditions.iter().map(bytes_of).sum::<usize>()).sum::<usize>()
    };
    size_of::<Condition>()
        + match condition {
            Condition::And(parts) | Condition::Or(parts) => parts.iter().map(bytes_of).sum(),
            Condition::Not(inner) | Condition::Weighted(inner, _) => bytes_of(inner),
            Condition::Exists(path) | Condition::Compare(path, _) => steps(path),
            Condition::Contains(path, text) | Condition::StartsWith(path, text) => steps(path) + text.len(),
        }
}
