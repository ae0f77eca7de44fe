//! The monotone form, and how to walk it.

use std::cmp::Ordering;
use std::hash::{Hash, Hasher};
use std::ops::Deref;
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHasher};

use crate::expr::ast::Outcome;
use crate::expr::atoms::Literal;

/// A monotone form: it is true exactly when the expression is, given which literals are true.
///
/// `And` and `Or` have at least two children, sorted and distinct, none a constant and none of the
/// same connective.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Form {
    True,
    False,
    Literal(Literal),
    And(Vec<Form>),
    Or(Vec<Form>),
    /// True when at least this many children are: more than one, fewer than all. They are sorted, and repeated ones count
    /// as often as they are there.
    AtLeast(u32, Vec<Form>),
    /// True when an odd (or even) number of children is true and none is undefined: the fold of
    /// [`Outcome::xor`], so that a child which can be both (an interval) counts as either.
    Parity {
        odd: bool,
        children: ParityChildren,
    },
}

/// The children of a parity: for each, the form that is true when it is true and the one that is
/// true when it is false.
///
/// The odd and the even parity of the same children share one list. A parity nested in another
/// occurs in both polarities there, so a walk that enters both doubles at every level of nesting:
/// use [`Form::fold`], or remember what was done for a list by its [`address`](Self::address).
#[derive(Clone, Debug, Eq)]
pub struct ParityChildren {
    /// Of the content, kept here so that hashing a nest looks at each list once.
    hash: u64,
    list: Arc<[(Form, Form)]>,
}

impl ParityChildren {
    pub(super) fn new(children: Vec<(Form, Form)>) -> Self {
        let mut hasher = FxHasher::default();
        children.hash(&mut hasher);
        Self { hash: hasher.finish(), list: children.into() }
    }

    pub(super) fn content_hash(&self) -> u64 {
        self.hash
    }

    /// Equal for lists that are shared, as long as one of them lives.
    pub fn address(&self) -> usize {
        self.list.as_ptr() as usize
    }
}

impl Deref for ParityChildren {
    type Target = [(Form, Form)];

    fn deref(&self) -> &Self::Target {
        &self.list
    }
}

impl<'a> IntoIterator for &'a ParityChildren {
    type Item = &'a (Form, Form);
    type IntoIter = std::slice::Iter<'a, (Form, Form)>;

    fn into_iter(self) -> Self::IntoIter {
        self.list.iter()
    }
}

/// Shared lists are equal without looking inside; that keeps comparing nested parities polynomial.
impl PartialEq for ParityChildren {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.list, &other.list) || self.hash == other.hash && self.list == other.list
    }
}

impl Hash for ParityChildren {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.hash.hash(state);
    }
}

impl Ord for ParityChildren {
    fn cmp(&self, other: &Self) -> Ordering {
        if Arc::ptr_eq(&self.list, &other.list) { Ordering::Equal } else { self.list.cmp(&other.list) }
    }
}

impl PartialOrd for ParityChildren {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// One node of a form whose children have been folded already.
pub enum Node<'a, T> {
    True,
    False,
    Literal(Literal),
    And(&'a [T]),
    Or(&'a [T]),
    AtLeast(u32, &'a [T]),
    Parity { odd: bool, children: &'a [(T, T)] },
}

impl Form {
    /// Folds the form from the leaves up, visiting shared parity children once.
    pub fn fold<T: Clone>(&self, visit: &mut impl FnMut(Node<'_, T>) -> T) -> T {
        self.fold_sharing(visit, &mut FxHashMap::default())
    }

    fn fold_sharing<T: Clone>(
        &self,
        visit: &mut impl FnMut(Node<'_, T>) -> T,
        seen: &mut FxHashMap<usize, Vec<(T, T)>>,
    ) -> T {
        match self {
            Form::True => visit(Node::True),
            Form::False => visit(Node::False),
            Form::Literal(literal) => visit(Node::Literal(*literal)),
            Form::And(children) => {
                let folded: Vec<T> = children.iter().map(|child| child.fold_sharing(visit, seen)).collect();
                visit(Node::And(&folded))
            }
            Form::Or(children) => {
                let folded: Vec<T> = children.iter().map(|child| child.fold_sharing(visit, seen)).collect();
                visit(Node::Or(&folded))
            }
            Form::AtLeast(least, children) => {
                let folded: Vec<T> = children.iter().map(|child| child.fold_sharing(visit, seen)).collect();
                visit(Node::AtLeast(*least, &folded))
            }
            Form::Parity { odd, children } => {
                let address = children.address();
                let folded = match seen.remove(&address) {
                    Some(folded) => folded,
                    None => children
                        .iter()
                        .map(|(t, f)| (t.fold_sharing(visit, seen), f.fold_sharing(visit, seen)))
                        .collect(),
                };
                let result = visit(Node::Parity { odd: *odd, children: &folded });
                seen.insert(address, folded);
                result
            }
        }
    }

    /// Whether the form is true, given which literals are.
    pub fn is_true(&self, holds: &impl Fn(Literal) -> bool) -> bool {
        match self {
            Form::True => true,
            Form::False => false,
            Form::Literal(literal) => holds(*literal),
            Form::And(children) => children.iter().all(|child| child.is_true(holds)),
            Form::Or(children) => children.iter().any(|child| child.is_true(holds)),
            Form::AtLeast(least, children) => {
                children.iter().filter(|child| child.is_true(holds)).count() >= *least as usize
            }
            Form::Parity { .. } => self.is_true_sharing(holds),
        }
    }

    /// The same without stopping early, but with a single visit to what nested parities share.
    fn is_true_sharing(&self, holds: &impl Fn(Literal) -> bool) -> bool {
        self.fold(&mut |node: Node<'_, bool>| match node {
            Node::True => true,
            Node::False => false,
            Node::Literal(literal) => holds(literal),
            Node::And(children) => children.iter().all(|&child| child),
            Node::Or(children) => children.iter().any(|&child| child),
            Node::AtLeast(least, children) => {
                children.iter().filter(|child| **child).count() >= least as usize
            }
            Node::Parity { odd, children } => {
                let parity = children
                    .iter()
                    .map(|&(can_be_true, can_be_false)| Outcome { can_be_true, can_be_false })
                    .fold(Outcome::FALSE, Outcome::xor);
                if odd { parity.can_be_true } else { parity.can_be_false }
            }
        })
    }

    /// How many nodes the form has, shared parity children counted once.
    pub fn node_count(&self) -> usize {
        let mut count = 0;
        self.fold(&mut |_: Node<'_, ()>| count += 1);
        count
    }
}
