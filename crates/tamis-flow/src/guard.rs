//! Guards: conditions on one window that must be true before a rule can be. For most events, the values of
//! the windows show that no rule is true, and the index of rules is not queried.
//!
//! The guard of `kind = 7 AND count(…) >= 8` is `count(…) >= 8`. Rules without a guard, such as
//! `count(…) < 8 OR …`, are evaluated for every event.

use smallvec::SmallVec;
use tamis_core::event::Value;
use tamis_core::expr::{Expr, Operator, Predicate};
use tamis_core::term::Term;

use crate::text::WINDOW_PREFIX;
use crate::window::{AggregateId, Fed};

/// Windows with more guards leave it to the index, which finds those that are true at once.
const FEW: usize = 4;

/// The guards of all rules over a stream.
#[derive(Default)]
pub(crate) struct Guards {
    /// By the number of the aggregate.
    of_aggregates: Vec<SmallVec<[Guard; 1]>>,
    /// How many rules have none.
    unguarded: usize,
    next_number: u32,
}

/// Rules that have the same one share it.
struct Guard {
    /// It is false of smaller integers: most values are, and need no look at the predicate, which lies elsewhere.
    least: i64,
    predicate: Box<Predicate>,
    uses: u32,
    number: u32,
}

/// Where the guard of a rule is; none: it has none.
pub(crate) type GuardId = Option<(AggregateId, u32)>;

impl Guards {
    /// Notes the guard of a rule, whose windowed terms are attributes.
    pub fn add(&mut self, rule: &Expr) -> GuardId {
        let Some((aggregate, predicate)) = guard(rule) else {
            self.unguarded += 1;
            return None;
        };
        let at = aggregate as usize;
        if self.of_aggregates.len() <= at {
            self.of_aggregates.resize_with(at + 1, SmallVec::new);
        }
        let guards = &mut self.of_aggregates[at];
        if let Some(same) = guards.iter_mut().find(|guard| *guard.predicate == *predicate) {
            same.uses += 1;
            return Some((aggregate, same.number));
        }
        let number = self.next_number;
        self.next_number = self.next_number.wrapping_add(1);
        let (least, predicate) = (least_integer(predicate), Box::new(predicate.clone()));
        guards.push(Guard { least, predicate, uses: 1, number });
        Some((aggregate, number))
    }

    pub fn remove(&mut self, id: GuardId) {
        let Some((aggregate, number)) = id else {
            self.unguarded -= 1;
            return;
        };
        let guards = &mut self.of_aggregates[aggregate as usize];
        guards.iter_mut().filter(|guard| guard.number == number).for_each(|guard| guard.uses -= 1);
        guards.retain(|guard| guard.uses > 0);
    }

    /// Whether a rule may be true of an event whose windows have these values. Windows without rows are not among them.
    pub fn may_let_pass(&self, values: &[Fed]) -> bool {
        self.unguarded > 0
            || values.iter().any(|(aggregate, value)| {
                let guards = self.of_aggregates.get(*aggregate as usize).map_or(&[][..], |guards| guards);
                guards.len() > FEW || guards.iter().any(|guard| guard.can_be_true(value))
            })
    }
}

impl Guard {
    fn can_be_true(&self, value: &Value) -> bool {
        match value {
            Value::Int(number) if *number < self.least => false,
            value => self.predicate.outcome(Some(value.as_ref())).can_be_true,
        }
    }
}

/// A predicate is false of all integers below this one.
fn least_integer(predicate: &Predicate) -> i64 {
    match (predicate.operator, predicate.negated, predicate.operands.first()) {
        (Operator::GREATER_OR_EQUAL, false, Some(Value::Int(least))) => *least,
        (Operator::GREATER, false, Some(Value::Int(most))) => most.saturating_add(1),
        _ => i64::MIN,
    }
}

/// A predicate on an aggregate that is true wherever the rule is.
fn guard(rule: &Expr) -> Option<(AggregateId, &Predicate)> {
    match rule {
        Expr::Predicate(predicate) => {
            let Term::Attribute(name) = &predicate.term else { return None };
            let aggregate = name.strip_prefix(WINDOW_PREFIX)?.parse().ok()?;
            // `count(…) IS NULL` is true of what is not told.
            (!predicate.outcome(None).can_be_true).then_some((aggregate, predicate))
        }
        Expr::And(children) => children.iter().find_map(guard),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use tamis_core::expr::parse;

    use super::*;
    use crate::selection::windowed_attribute;

    fn rule(text: &str) -> Expr {
        let text = text.replace("$1", &format!("`{}`", windowed_attribute(1)));
        parse(&text.replace("$2", &format!("`{}`", windowed_attribute(2)))).unwrap()
    }

    #[test]
    fn a_rule_passes_where_its_guard_is_true() {
        let mut guards = Guards::default();
        let id = guards.add(&rule("kind = 7 AND $1 >= 8 AND $2 < 3"));
        assert!(id.is_some());
        assert!(!guards.may_let_pass(&[]));
        assert!(!guards.may_let_pass(&[(1, Value::Int(7)), (2, Value::Int(1))]));
        assert!(guards.may_let_pass(&[(2, Value::Int(5)), (1, Value::Float(8.5))]));
        let greatest = guards.add(&rule(&format!("$2 > {}", i64::MAX)));
        assert!(!guards.may_let_pass(&[(2, Value::Int(i64::MAX))]));
        guards.remove(greatest);
        let same = guards.add(&rule("kind = 9 AND $1 >= 8"));
        assert_eq!(id, same);
        guards.remove(id);
        assert!(guards.may_let_pass(&[(1, Value::Int(8))]));
        guards.remove(same);
        assert!(!guards.may_let_pass(&[(1, Value::Int(8))]));
    }

    #[test]
    fn what_may_be_true_without_rows_has_no_guard() {
        for text in ["$1 >= 8 OR kind = 7", "NOT $1 >= 8", "$1 IS NULL", "kind = 7", "$1 + $2 > 3"] {
            let mut guards = Guards::default();
            let id = guards.add(&rule(text));
            assert!(id.is_none() && guards.may_let_pass(&[]), "{text}");
            guards.remove(id);
            assert!(!guards.may_let_pass(&[]));
        }
    }

    #[test]
    fn many_guards_of_a_window_are_left_to_the_index() {
        let mut guards = Guards::default();
        let ids: Vec<GuardId> =
            (0..10).map(|least| guards.add(&rule(&format!("$1 > {}", 100 + least)))).collect();
        assert!(guards.may_let_pass(&[(1, Value::Int(0))]));
        ids[3..].iter().for_each(|id| guards.remove(*id));
        assert!(!guards.may_let_pass(&[(1, Value::Int(100))]));
        assert!(guards.may_let_pass(&[(1, Value::Int(101))]));
    }
}
