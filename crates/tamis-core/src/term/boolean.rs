//! Boolean terms that are found together: quantifiers over one array, circles around one pair of coordinates.
//!
//! Each such term belongs to a *family*, all of whose members look at the same thing. An index does not
//! compute the members one by one. It builds one structure for the family, which takes an event once and
//! returns the members that are true. So the cost of an event depends on the true members, not on all of
//! them. False members are reported only where an expression needs that: under NOT, XOR and truth tests, but
//! not under AND and OR.

use std::any::Any;
use std::fmt::Debug;
use std::sync::Arc;

use super::{Term, TermId};
use crate::error::ExpressionError;
use crate::value::ValueRef;

/// A term that is true, false or undefined, and is found together with others.
pub trait BooleanTerm: Debug + Send + Sync {
    /// Canonical: it reads back as the same term, and no other term has it.
    fn text(&self) -> &str;

    /// What the members of its family have in common.
    fn family(&self) -> &str;

    /// The terms whose values decide it. None of them is a Boolean term of this sort.
    fn inputs(&self) -> &[Term];

    /// Its truth for these values of its inputs, null for what is absent. `None` when it is undefined, as it is for
    /// intervals and other sets.
    fn truth(&self, inputs: &[ValueRef<'_>]) -> Option<bool>;

    /// Levels of functions and quantifiers inside.
    fn depth(&self) -> usize;

    /// The same term of attributes with other names.
    fn renamed(&self, rename: &dyn Fn(&str) -> String) -> Result<Term, ExpressionError>;

    /// What finds those members of its family that are true, if that needs nothing but the members.
    fn finder(&self, _members: &[Member]) -> Option<Box<dyn Finder>> {
        None
    }

    /// For the finder of its family.
    fn as_any(&self) -> &dyn Any;
}

/// A member of a family that is in use.
#[derive(Clone)]
pub struct Member {
    pub term: Arc<dyn BooleanTerm>,
    /// The numbers of its inputs.
    pub inputs: Arc<[TermId]>,
    /// Whether an expression needs to know that it is false.
    pub wants_false: bool,
}

/// Finds those members that are true for an event.
pub trait Finder: Send + Sync {
    /// Calls `found` with the place of each member that is true, and of each that is false and wanted so. Values are
    /// sorted by their terms. A member may be found twice.
    fn find(&self, values: &[(TermId, ValueRef<'_>)], found: &mut dyn FnMut(usize, bool));

    /// The finder for batches, column by column; `None` if rows are evaluated one by one.
    fn by_columns(&self) -> Option<&dyn Any> {
        None
    }
}

/// Makes finders for families.
pub trait Finders: Send + Sync {
    /// A finder for members of one family; `None` if it knows no better way than to try each.
    fn finder(&self, members: &[Member]) -> Option<Box<dyn Finder>>;
}

/// The value of a term among those of an event; null when it is absent.
pub fn value_of<'a>(values: &[(TermId, ValueRef<'a>)], term: TermId) -> ValueRef<'a> {
    let place = values.binary_search_by_key(&term, |(id, _)| *id);
    place.map_or(ValueRef::Null, |at| values[at].1)
}

/// Tries each member.
pub struct EachInTurn(pub Vec<Member>);

impl Finder for EachInTurn {
    fn find(&self, values: &[(TermId, ValueRef<'_>)], found: &mut dyn FnMut(usize, bool)) {
        let mut inputs = vec![];
        for (place, member) in self.0.iter().enumerate() {
            inputs.clear();
            inputs.extend(member.inputs.iter().map(|input| value_of(values, *input)));
            if let Some(truth) = member.term.truth(&inputs).filter(|truth| *truth || member.wants_false) {
                found(place, truth);
            }
        }
    }
}
