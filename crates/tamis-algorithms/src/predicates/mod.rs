//! The distinct predicates of a published algorithm, and which of them an event satisfies.
//!
//! The published algorithms change while they are used, so uses of predicates are counted: a predicate without
//! users is removed and its number reused. All algorithms share this module, so that they are compared on the
//! same predicate index:
//!
//! ```text
//!                 acquire, release                    satisfied
//! algorithm ───────────────────────► Predicates ◄──────────────── event
//!                                     │      │
//!                     PredicateTable ─┘      └─ PredicateMatcher: Indexed or EvaluateEach
//! ```
//!
//! *Literals* are counted and reported: `p` is one, `NOT p` another. An absent attribute satisfies neither,
//! an interval possibly both, so an algorithm that uses both knows whether p is true, false or undefined.

mod evaluate_each;
mod indexed;
mod intervals;
mod residual;
mod table;

#[cfg(test)]
mod tests;

use evaluate_each::EvaluateEach;
use indexed::Indexed;
pub use table::PredicateTable;

use tamis_core::event::{Event, TermId, Value};
use tamis_core::expr::{Atom, Literal, Operator};
use tamis_core::predicate::Bits;
use tamis_core::{Error, Result};

/// Finds the satisfied literals among those that are watched.
pub trait PredicateMatcher: Send + Sync {
    /// Starts to report a literal. `other` says whether its negation is watched already.
    fn watch(&mut self, literal: Literal, atom: &Atom, other: bool);

    /// Stops. `other` says whether its negation is still watched.
    fn forget(&mut self, literal: Literal, atom: &Atom, other: bool);

    /// Reports every watched literal that is true for the event, each once.
    fn satisfied(&self, event: &Event<'_>, table: &PredicateTable, satisfied: &mut Satisfied);

    fn bytes(&self) -> usize;
}

/// The predicates in use, and the matcher that finds those that an event satisfies.
pub struct Predicates {
    table: PredicateTable,
    matcher: Box<dyn PredicateMatcher>,
}

impl Default for Predicates {
    fn default() -> Self {
        Self { table: PredicateTable::default(), matcher: Box::new(Indexed::default()) }
    }
}

impl Predicates {
    /// An empty set with the matcher of that name: `indexed` or `evaluate-each`.
    pub fn with_matcher(name: &str) -> Result<Self> {
        let matcher: Box<dyn PredicateMatcher> = match name {
            "indexed" => Box::new(Indexed::default()),
            "evaluate-each" => Box::new(EvaluateEach::default()),
            _ => {
                return Err(Error::Argument(format!(
                    "the option `predicates` is \"indexed\" or \"evaluate-each\", not {name:?}"
                )));
            }
        };
        Ok(Self { table: PredicateTable::default(), matcher })
    }

    /// The literal of a predicate or its negation, used once more.
    pub fn acquire(
        &mut self,
        attribute: TermId,
        operator: Operator,
        operands: &[Value],
        negated: bool,
    ) -> Literal {
        let literal = Literal::new(self.table.intern(attribute, operator, operands), negated);
        self.acquire_again(literal);
        literal
    }

    /// One more use of a literal; its predicate must be in use, or just interned.
    pub fn acquire_again(&mut self, literal: Literal) {
        if self.table.add_use(literal) {
            let other = self.table.is_used(literal.not());
            self.matcher.watch(literal, self.table.atom(literal.atom()), other);
        }
    }

    /// One use less.
    pub fn release(&mut self, literal: Literal) {
        if self.table.drop_use(literal) {
            let other = self.table.is_used(literal.not());
            self.matcher.forget(literal, self.table.atom(literal.atom()), other);
            if !other {
                self.table.forget(literal.atom());
            }
        }
    }

    /// Finds all literals in use that are true for the event.
    pub fn satisfied(&self, event: &Event<'_>, satisfied: &mut Satisfied) {
        satisfied.reset(self.literals());
        self.matcher.satisfied(event, &self.table, satisfied);
    }

    pub fn atom(&self, literal: Literal) -> &Atom {
        self.table.atom(literal.atom())
    }

    /// One more than the largest literal that was ever in use.
    pub fn literals(&self) -> usize {
        self.table.slots() * 2
    }

    /// Distinct predicates in use.
    pub fn len(&self) -> usize {
        self.table.in_use()
    }

    pub fn bytes(&self) -> usize {
        self.table.bytes() + self.matcher.bytes()
    }
}

/// What one event satisfies: the literals in the order they were found, and a bit for each.
#[derive(Default)]
pub struct Satisfied {
    pub literals: Vec<Literal>,
    bits: Bits,
}

impl Satisfied {
    fn reset(&mut self, literals: usize) {
        self.literals.clear();
        self.bits.reset(literals);
    }

    pub fn holds(&self, literal: Literal) -> bool {
        self.bits.get(literal.0)
    }

    /// Notes that a literal is true; more than once is once.
    fn report(&mut self, literal: Literal) {
        if !self.bits.replace(literal.0) {
            self.literals.push(literal);
        }
    }

    /// Notes that a predicate is true although nobody asks for it, only for its negation.
    fn note(&mut self, atom: u32) {
        self.bits.set(Literal::new(atom, false).0);
    }
}
