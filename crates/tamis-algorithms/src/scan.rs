//! Scan: evaluates every expression against every event. Slow, and obviously correct.

use super::algorithm::Algorithm;
use tamis_core::engine::contract::Work;
use tamis_core::event::{Event, Terms};
use tamis_core::expr::{Expr, evaluate};
use tamis_core::{Result, Subscription};

#[derive(Default)]
pub struct Scan {
    rows: Vec<Option<Expr>>,
}

impl Algorithm for Scan {
    fn insert(&mut self, row: u32, subscription: &Subscription, terms: &mut Terms) -> Result<()> {
        subscription.expression.for_each_predicate(&mut |predicate| {
            terms.intern_term(&predicate.term);
        });
        if self.rows.len() <= row as usize {
            self.rows.resize(row as usize + 1, None);
        }
        self.rows[row as usize] = Some(subscription.expression.clone());
        Ok(())
    }

    fn remove(&mut self, row: u32, _: &Subscription, _: &Terms) {
        self.rows[row as usize] = None;
    }

    fn matches(&self, event: &Event<'_>, terms: &Terms, found: &mut dyn FnMut(u32)) -> Work {
        let value_of = |name: &str| event.get(terms.get(name)?);
        let mut work = Work::default();
        for (row, expression) in self.rows.iter().enumerate() {
            if let Some(expression) = expression {
                work.candidates += 1;
                work.evaluations += 1;
                if evaluate(expression, &value_of).can_be_true {
                    found(row as u32);
                }
            }
        }
        work
    }

    fn bytes(&self) -> Vec<(&'static str, usize)> {
        vec![("expressions", self.rows.capacity() * size_of::<Option<Expr>>())]
    }
}
