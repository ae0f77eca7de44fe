//! The score of a path in a document: that of its best embedding.
//!
//! An embedding maps every step of a path to a node. Its score adds up, from the first step to the last, the weight of the
//! step and the scores of its conditions at the node, in written order. A condition that is true counts its weight and
//!
//! - `and`: its parts; `or`: those of its parts that are true; `not`: nothing;
//! - a path, or the path of a comparison: its best embedding from the node, among those that satisfy the comparison;
//!   of `contains` and `starts-with`, among those that end at the first node.
//!
//! Elements are visited once, and for each step only the best score of an embedding up to it is kept: adding floats is
//! monotone, so the best up to a step is the best whatever follows.

use std::cell::RefCell;

use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;

use crate::ast::Axis;
use crate::compiled::{Condition, Kind, Step, passes};
use crate::document::{Document, Node};
use crate::evaluation::{Selector, View};

/// Of a step that no embedding reaches.
const UNREACHED: f64 = f64::NEG_INFINITY;

impl Selector {
    /// The score of the path: that of its best embedding, 1 if it has no weights; `None` if it selects
    /// nothing.
    ///
    /// ```
    /// use tamis_xpath::{Document, Limits, Path, Selector};
    /// let path = Path::parse("//item^1[(@lang = 'en')^2 or (price < 5)^3 or .]").unwrap();
    /// let score = |text: &str| Selector::new(&path).score(&Document::read(text, &Limits::default()).unwrap());
    /// assert_eq!(score("<news><item lang='en'/><item><price>3</price></item></news>"), Some(4.0));
    /// assert_eq!(score("<news><item/></news>"), Some(1.0));
    /// assert_eq!(score("<news/>"), None);
    /// ```
    pub fn score(&self, document: &Document) -> Option<f64> {
        if !self.is_scored {
            return self.is_true(document).then_some(1.0);
        }
        self.with_view(document, |view| Scores::new(view).best(Node::Document, &self.steps, &mut |_| true))
    }
}

/// The scores of the steps and conditions of a path at the nodes of a document.
pub(crate) struct Scores<'s, 'v> {
    view: &'s View<'v>,
    /// The scores of steps at elements, by the address of the step; `None` where a condition fails.
    known: RefCell<HashMap<(usize, u32), Option<f64>, FxBuildHasher>>,
}

impl<'s, 'v> Scores<'s, 'v> {
    pub fn new(view: &'s View<'v>) -> Self {
        Self { view, known: RefCell::default() }
    }

    /// The score of the best embedding of some steps, from a node to one that is accepted.
    fn best(&self, from: Node, steps: &[Step], accepts: &mut dyn FnMut(Node) -> bool) -> Option<f64> {
        let element = match (from, steps) {
            (_, []) => return accepts(from).then_some(0.0),
            (Node::Attribute(_) | Node::Text(_), _) => return None,
            (Node::Document, _) => None,
            (Node::Element(element), _) => Some(element),
        };
        let mut search = Search { scores: self, steps, reached: vec![], accepts, best: UNREACHED };
        // Behind the first step there is nothing yet.
        search.reached.resize(2 * steps.len(), UNREACHED);
        (search.reached[0], search.reached[steps.len()]) = (0.0, 0.0);
        search.below(element, 0);
        Some(search.best).filter(|best| *best != UNREACHED)
    }

    /// The score of a step at a node that passes its name test; `None` if a condition fails there.
    pub fn of_step(&self, node: Node, step: &Step) -> Option<f64> {
        if step.conditions.is_empty() {
            return Some(step.weight);
        }
        let count = || {
            let parts = step.conditions.iter().map(|condition| self.of_condition(node, condition));
            parts.into_iter().try_fold(step.weight, |sum, part| Some(sum + part?))
        };
        let Node::Element(element) = node else { return count() };
        let key = (std::ptr::from_ref(step) as usize, element);
        if let Some(known) = self.known.borrow().get(&key) {
            return *known;
        }
        let counted = count();
        self.known.borrow_mut().insert(key, counted);
        counted
    }

    fn of_condition(&self, node: Node, condition: &Condition) -> Option<f64> {
        if !counts(condition) {
            return self.view.holds(node, condition).then_some(0.0);
        }
        let value = |found: Node| self.view.document.string_value(found);
        match condition {
            Condition::And(parts) => {
                parts.iter().try_fold(0.0, |sum, part| Some(sum + self.of_condition(node, part)?))
            }
            Condition::Or(parts) => parts
                .iter()
                .filter_map(|part| self.of_condition(node, part))
                .fold(None, |sum, part| Some(sum.unwrap_or(0.0) + part)),
            Condition::Exists(steps) => self.best(node, steps, &mut |_| true),
            Condition::Compare(steps, test) => self.best(node, steps, &mut |found| test.holds(value(found))),
            Condition::Contains(steps, _) | Condition::StartsWith(steps, _) => {
                let holds = self.view.holds(node, condition);
                // The empty text is found where there is no node.
                holds.then(|| match self.view.first(node, steps) {
                    Some(first) => self.best(node, steps, &mut |found| found == first).unwrap_or(0.0),
                    None => 0.0,
                })
            }
            Condition::Not(_) => unreachable!("it counts nothing"),
            Condition::Weighted(inner, weight) => Some(self.of_condition(node, inner)? + weight),
        }
    }
}

/// Whether a condition has weights, other than 0.
fn counts(condition: &Condition) -> bool {
    match condition {
        Condition::And(parts) | Condition::Or(parts) => parts.iter().any(counts),
        Condition::Not(_) => false,
        Condition::Exists(steps)
        | Condition::Compare(steps, _)
        | Condition::Contains(steps, _)
        | Condition::StartsWith(steps, _) => {
            steps.iter().any(|step| step.weight != 0.0 || step.conditions.iter().any(counts))
        }
        Condition::Weighted(..) => true,
    }
}

/// A walk through the elements below a node.
struct Search<'w, 's, 'v> {
    scores: &'w Scores<'s, 'v>,
    steps: &'w [Step],
    /// A stack with, for each level, two numbers per step: the best score of an embedding of the steps before it that ends at
    /// the element of this level, then that of one that ends there or above.
    reached: Vec<f64>,
    accepts: &'w mut dyn FnMut(Node) -> bool,
    best: f64,
}

impl Search<'_, '_, '_> {
    /// Looks below an element (or the document), of which `level` is the place in the stack.
    fn below(&mut self, element: Option<u32>, level: usize) {
        let document = self.scores.view.document;
        let Some(element) = element else {
            if !document.elements.is_empty() {
                self.child(0, level);
            }
            return;
        };
        let last = self.steps.len() - 1;
        if self.steps[last].kind != Kind::Element {
            let before = self.before(last, level);
            if before != UNREACHED {
                self.leaves(element, &self.steps[last], before);
            }
        }
        for child in document.children(element) {
            self.child(child, level);
        }
    }

    /// The best score of an embedding of the steps before this one, from which it can be taken.
    fn before(&self, step: usize, level: usize) -> f64 {
        match self.steps[step].axis {
            Axis::Child => self.reached[level + step],
            Axis::Descendant => self.reached[level + self.steps.len() + step],
        }
    }

    /// Attributes and texts of an element, at the last step.
    fn leaves(&mut self, element: u32, step: &Step, before: f64) {
        let view = self.scores.view;
        let Step { kind, label, weight, .. } = *step;
        let bare = Step { axis: Axis::Child, kind, label, weight, conditions: [].into() };
        let mut nodes = vec![];
        view.select(Node::Element(element), std::slice::from_ref(&bare), &mut |node| {
            nodes.push(node);
            false
        });
        for node in nodes {
            if let Some(counted) = self.scores.of_step(node, step) {
                self.end_at(node, before + counted);
            }
        }
    }

    fn end_at(&mut self, node: Node, score: f64) {
        if score > self.best && (self.accepts)(node) {
            self.best = score;
        }
    }

    fn child(&mut self, child: u32, level: usize) {
        let (steps, view) = (self.steps, self.scores.view);
        let labels = view.labels_of(child);
        let inner = level + 2 * steps.len();
        self.reached.resize(inner + 2 * steps.len(), UNREACHED);
        self.reached[inner..].fill(UNREACHED);
        let mut leads_on = false;
        for (at, step) in steps.iter().enumerate() {
            // What may be taken from above may be taken from further below.
            let above = self.reached[level + steps.len() + at];
            if step.axis == Axis::Descendant && above != UNREACHED {
                let beneath = &mut self.reached[inner + steps.len() + at];
                *beneath = beneath.max(above);
                leads_on = true;
            }
            let before = self.before(at, level);
            if before == UNREACHED || step.kind != Kind::Element || !passes(step.label, labels) {
                continue;
            }
            let Some(counted) = self.scores.of_step(Node::Element(child), step) else { continue };
            let score = before + counted;
            if at + 1 == steps.len() {
                self.end_at(Node::Element(child), score);
            } else {
                self.reached[inner + at + 1] = score;
                let beneath = &mut self.reached[inner + steps.len() + at + 1];
                *beneath = beneath.max(score);
                leads_on = true;
            }
        }
        if leads_on {
            self.below(Some(child), inner);
        }
        self.reached.truncate(inner);
    }
}
