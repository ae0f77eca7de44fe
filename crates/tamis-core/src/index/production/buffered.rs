//! The newest subscriptions, not yet in a segment: few enough to be tried one by one.

use crate::event::{Attributes, Event};
use crate::expr::atoms::AtomTable;
use crate::expr::eval::evaluate;
use crate::expr::normal_form::{NormalForm, normal_form};
use crate::index::subscription::Subscription;

#[derive(Clone)]
pub struct Buffered {
    pub subscription: Subscription,
    pub normal: NormalForm,
    /// The predicates of the subscription.
    pub atoms: AtomTable,
}

impl Buffered {
    pub fn new(subscription: Subscription, attributes: &mut Attributes) -> Self {
        let mut atoms = AtomTable::default();
        let normal = normal_form(&subscription.expression, attributes, &mut atoms);
        Self { subscription, normal, atoms }
    }

    pub fn holds(&self, event: &Event<'_>, attributes: &Attributes) -> bool {
        if event.has_intervals {
            return evaluate(&self.subscription.expression, &|name| event.get(attributes.get(name)?))
                .can_be_true;
        }
        self.normal.root.is_true(&|literal| {
            let atom = self.atoms.atom(literal.atom());
            literal.holds(atom.outcome(event.get(atom.attribute)))
        })
    }
}
