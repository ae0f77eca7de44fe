//! Evaluates one path, or one condition, from a node of a document.
//!
//! A path is followed through the elements below a node in one pass: the possible next steps are the bits of
//! a word, so that a path like `//a//a//a` in a document of nothing but `a` takes time linear in both. The
//! result of a nested condition for an element is cached, because many paths may lead to it.

use std::cell::RefCell;

use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;

use crate::ast::{Axis, Path};
use crate::compiled::{Condition, Kind, Labels, NameLabels, Step, Steps, passes};
use crate::document::{Document, Node};

/// One path, ready to be evaluated many times.
pub struct Selector {
    labels: Labels,
    pub(crate) steps: Steps,
    /// Whether weights are written in the path.
    pub(crate) is_scored: bool,
}

impl Selector {
    pub fn new(path: &Path) -> Self {
        let mut labels = Labels::default();
        let steps = labels.compile_steps(&path.steps);
        Self { labels, steps, is_scored: path.is_scored() }
    }

    /// Whether the path selects something.
    pub fn is_true(&self, document: &Document) -> bool {
        self.with_view(document, |view| view.select(Node::Document, &self.steps, &mut |_| true))
    }

    pub(crate) fn with_view<R>(&self, document: &Document, see: impl FnOnce(&View<'_>) -> R) -> R {
        let mut names = vec![];
        self.labels.resolve(&document.names, &mut names);
        see(&View::new(document, &names, &mut Memo::default()))
    }
}

/// The results of conditions, by the address of the step and the number of the element.
pub(crate) type Memo = HashMap<(usize, u32), bool, FxBuildHasher>;

/// A document as some paths see it.
pub(crate) struct View<'a> {
    pub document: &'a Document,
    pub names: &'a [NameLabels],
    memo: RefCell<&'a mut Memo>,
}

impl<'a> View<'a> {
    pub fn new(document: &'a Document, names: &'a [NameLabels], memo: &'a mut Memo) -> Self {
        Self { document, names, memo: RefCell::new(memo) }
    }

    #[inline]
    pub fn labels_of(&self, element: u32) -> NameLabels {
        self.names[self.document.elements[element as usize].name as usize]
    }

    /// Calls `found` with every node that the steps lead to from a node, each once, until it says that this is enough;
    /// says whether it did. The order is that of elements, with attributes and texts before the elements below.
    pub fn select(&self, from: Node, steps: &[Step], found: &mut dyn FnMut(Node) -> bool) -> bool {
        let element = match (from, steps) {
            (_, []) => return found(from),
            (Node::Attribute(_) | Node::Text(_), _) => return false,
            (Node::Document, _) => None,
            (Node::Element(element), _) => Some(element),
        };
        if let ([step], Some(element)) = (steps, element)
            && step.axis == Axis::Child
        {
            return self.one_step(element, step, found);
        }
        let is_descendant = |step: &Step| step.axis == Axis::Descendant;
        let descending =
            (0..).zip(steps).filter(|(_, step)| is_descendant(step)).fold(0, |mask, (at, _)| mask | 1 << at);
        Walk { view: self, steps, descending, found }.below(element, 1, 1)
    }

    /// The most frequent way to go: to children, attributes or texts.
    fn one_step(&self, element: u32, step: &Step, found: &mut dyn FnMut(Node) -> bool) -> bool {
        let document = self.document;
        let mut see = |node| self.all_hold(node, step) && found(node);
        match step.kind {
            Kind::Element => document
                .children(element)
                .any(|child| passes(step.label, self.labels_of(child)) && see(Node::Element(child))),
            Kind::Attribute => document.attributes_of(element).any(|at| {
                let name = self.names[document.attributes[at as usize].name as usize];
                passes(step.label, name) && see(Node::Attribute(at))
            }),
            Kind::Text => document.texts_of(element).any(|at| see(Node::Text(at))),
        }
    }

    pub fn holds(&self, node: Node, condition: &Condition) -> bool {
        match condition {
            Condition::And(parts) => parts.iter().all(|part| self.holds(node, part)),
            Condition::Or(parts) => parts.iter().any(|part| self.holds(node, part)),
            Condition::Not(inner) => !self.holds(node, inner),
            Condition::Exists(steps) => self.select(node, steps, &mut |_| true),
            Condition::Compare(steps, test) => {
                self.select(node, steps, &mut |found| test.holds(self.document.string_value(found)))
            }
            Condition::Contains(steps, text) => self.first_value(node, steps).contains(&**text),
            Condition::StartsWith(steps, text) => self.first_value(node, steps).starts_with(&**text),
            Condition::Weighted(inner, _) => self.holds(node, inner),
        }
    }

    /// The string value of the first node in document order; empty if there is none.
    fn first_value(&self, node: Node, steps: &[Step]) -> &str {
        self.first(node, steps).map_or("", |first| self.document.string_value(first))
    }

    /// The first node in document order that the steps lead to.
    pub fn first(&self, node: Node, steps: &[Step]) -> Option<Node> {
        let mut first: Option<Node> = None;
        self.select(node, steps, &mut |found| {
            if first.is_none_or(|first| self.document.offset(found) < self.document.offset(first)) {
                first = Some(found);
            }
            false
        });
        first
    }

    pub fn all_hold(&self, node: Node, step: &Step) -> bool {
        if step.conditions.is_empty() {
            return true;
        }
        let all = || step.conditions.iter().all(|condition| self.holds(node, condition));
        let Node::Element(element) = node else { return all() };
        let key = (std::ptr::from_ref(step) as usize, element);
        if let Some(known) = self.memo.borrow().get(&key) {
            return *known;
        }
        let truth = all();
        self.memo.borrow_mut().insert(key, truth);
        truth
    }
}

struct Walk<'w, 'v> {
    view: &'w View<'v>,
    steps: &'w [Step],
    /// The steps with the descendant axis.
    descending: u64,
    found: &'w mut dyn FnMut(Node) -> bool,
}

impl Walk<'_, '_> {
    /// Looks below an element (or the document), from which the steps `here` may be taken, and from it or from
    /// something above it those of `beneath`.
    fn below(&mut self, element: Option<u32>, here: u64, beneath: u64) -> bool {
        let document = self.view.document;
        let last = self.steps.len() - 1;
        if let Some(element) = element
            && beneath >> last & 1 == 1
            && self.steps[last].kind != Kind::Element
            && (self.steps[last].axis == Axis::Descendant || here >> last & 1 == 1)
            && self.view.one_step(element, &self.steps[last], self.found)
        {
            return true;
        }
        let Some(element) = element else {
            return !document.elements.is_empty() && self.child(0, here, beneath);
        };
        for child in document.children(element) {
            if self.child(child, here, beneath) {
                return true;
            }
        }
        false
    }

    fn child(&mut self, child: u32, here: u64, beneath: u64) -> bool {
        let labels = self.view.labels_of(child);
        let mut next = 0;
        let mut waiting = here | beneath & self.descending;
        while waiting != 0 {
            let at = waiting.trailing_zeros() as usize;
            waiting &= waiting - 1;
            let step = &self.steps[at];
            if step.kind == Kind::Element
                && passes(step.label, labels)
                && self.view.all_hold(Node::Element(child), step)
            {
                if at + 1 < self.steps.len() {
                    next |= 1 << (at + 1);
                } else if (self.found)(Node::Element(child)) {
                    return true;
                }
            }
        }
        let beneath = beneath & self.descending | next;
        beneath != 0 && self.below(Some(child), next, beneath)
    }
}
