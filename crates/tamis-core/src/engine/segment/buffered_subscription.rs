//! The newest subscriptions, not yet in a segment: few enough to be evaluated one by one.

use crate::event::{Event, TermId, Terms};
use crate::expr::ast::Predicate;
use crate::expr::atoms::AtomTable;
use crate::expr::eval::evaluate;
use crate::expr::normal_form::{Form, NormalForm, normal_form};
use crate::subscription::Subscription;

#[derive(Clone)]
pub struct BufferedSubscription {
    pub subscription: Subscription,
    pub normal: NormalForm,
    /// The predicates of the subscription.
    pub atoms: AtomTable,
    /// The numbers of the terms that its predicates look at, in the order in which they are written.
    pub terms: Box<[TermId]>,
    needed: Presence,
}

impl BufferedSubscription {
    pub fn new(subscription: Subscription, terms: &mut Terms) -> Self {
        let mut numbers = Vec::with_capacity(16);
        let mut number = |predicate: &Predicate| numbers.push(terms.intern_term(&predicate.term));
        subscription.expression.for_each_predicate(&mut number);
        let mut atoms = AtomTable::with_room(numbers.len());
        let normal = normal_form(&subscription.expression, terms, &mut atoms);
        let needed = Presence::needed_by(&normal.root, &atoms);
        Self { subscription, normal, atoms, terms: numbers.into(), needed }
    }

    /// Whether it matches an event that has the attributes `present`.
    pub fn holds(&self, event: &Event<'_>, present: Presence, terms: &Terms) -> bool {
        if event.has_intervals {
            return evaluate(&self.subscription.expression, &|name| event.get(terms.get(name)?)).can_be_true;
        }
        present.has_all(self.needed)
            && self.normal.root.is_true(&|literal| {
                let atom = self.atoms.atom(literal.atom());
                literal.holds(atom.outcome(event.get(atom.attribute)))
            })
    }
}

/// Some attributes, a bit for each; one bit may stand for several, which makes a test less sharp, not wrong.
#[derive(Clone, Copy, Default)]
pub struct Presence(u64);

impl Presence {
    pub fn of(event: &Event<'_>) -> Self {
        event.values.iter().fold(Self::default(), |all, (attribute, _)| all.or(Self::of_one(*attribute)))
    }

    /// The attributes without which a form is never true.
    fn needed_by(form: &Form, atoms: &AtomTable) -> Self {
        match form {
            Form::Literal(literal) => {
                let atom = atoms.atom(literal.atom());
                if literal.holds(atom.outcome(None)) { Self::default() } else { Self::of_one(atom.attribute) }
            }
            Form::And(children) => {
                children.iter().map(|child| Self::needed_by(child, atoms)).fold(Self::default(), Self::or)
            }
            Form::Or(children) => {
                children.iter().map(|child| Self::needed_by(child, atoms)).fold(Self(u64::MAX), Self::and)
            }
            Form::True | Form::False | Form::AtLeast(..) | Form::Parity { .. } => Self::default(),
        }
    }

    fn of_one(attribute: TermId) -> Self {
        Self(1 << (attribute.0 % 64))
    }

    fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    fn has_all(self, others: Self) -> bool {
        self.0 & others.0 == others.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::json::read_record;
    use crate::expr::parser::parse;
    use crate::subscription::Id;

    fn needs_met(expression: &str, event: &str) -> bool {
        let mut terms = Terms::default();
        let subscription = Subscription::new(Id::Int(1), parse(expression).unwrap());
        let buffered = BufferedSubscription::new(subscription, &mut terms);
        let record = read_record(event.as_bytes()).unwrap();
        Presence::of(&record.resolve(&terms)).has_all(buffered.needed)
    }

    #[test]
    fn what_every_way_to_match_needs_must_be_there() {
        assert!(!needs_met("a = 1 AND b = 2", r#"{"a": 1}"#));
        assert!(needs_met("a = 1 AND b = 2", r#"{"a": 1, "b": 0}"#));
        assert!(!needs_met("(a = 1 AND c = 1) OR (b = 2 AND c = 2)", r#"{"a": 1, "b": 2}"#));
        assert!(needs_met("a = 1 OR b = 2", "{}"));
    }

    #[test]
    fn null_tests_need_nothing() {
        assert!(needs_met("a IS NULL", "{}"));
        assert!(needs_met("NOT a <=> 5", "{}"));
        assert!(!needs_met("a IS NOT NULL", "{}"));
    }
}
