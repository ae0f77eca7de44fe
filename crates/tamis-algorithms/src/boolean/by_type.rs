//! Separate vectors for each type of event.
//!
//! An event of one type cannot match a subscription to another: if predicates, counters and trees are
//! separated by type, the event does not even touch them. The type is an attribute that the option
//! `type_attribute` names; a subscription belongs to a type if `type = 'book'` is one of its top-level
//! conjuncts. All others are untyped, and every event is matched against them too.

use rustc_hash::FxHashMap;

use super::filter::BooleanFilter;
use crate::algorithm::Algorithm;
use crate::options;
use crate::over_predicates::{FilterAlgorithm, OverPredicates};
use tamis_core::engine::contract::Work;
use tamis_core::event::{Event, Terms, Value, ValueRef};
use tamis_core::expr::{Expr, Operator, Predicate};
use tamis_core::term::Term;
use tamis_core::{Result, Subscription};

type Vectors = OverPredicates<BooleanFilter>;

#[derive(Default)]
pub struct BooleanFiltering {
    type_attribute: Option<Box<str>>,
    /// What `predicates` was set to, for the vectors of types that come later.
    matcher: Option<Value>,
    untyped: Vectors,
    typed: FxHashMap<Box<str>, Vectors>,
}

impl BooleanFiltering {
    /// The type of the events that can satisfy the expression, if it names one.
    fn type_of<'a>(&self, expr: &'a Expr) -> Option<&'a str> {
        let attribute = self.type_attribute.as_deref()?;
        match expr {
            Expr::Predicate(Predicate {
                term: Term::Attribute(named),
                operator,
                negated: false,
                operands,
                ..
            }) if **named == *attribute && *operator == Operator::EQUAL => {
                operands.first().map(|operand| operand.as_ref().text()).filter(|name| !name.is_empty())
            }
            Expr::And(children) => children.iter().find_map(|child| self.type_of(child)),
            _ => None,
        }
    }

    fn all(&self) -> impl Iterator<Item = &Vectors> {
        std::iter::once(&self.untyped).chain(self.typed.values())
    }

    #[cfg(test)]
    pub fn types(&self) -> usize {
        self.typed.len()
    }

    #[cfg(test)]
    pub fn untyped(&self) -> &BooleanFilter {
        self.untyped.filter()
    }
}

impl Algorithm for BooleanFiltering {
    fn insert(&mut self, row: u32, subscription: &Subscription, terms: &mut Terms) -> Result<()> {
        let Some(name) = self.type_of(&subscription.expression) else {
            return self.untyped.insert(row, subscription, terms);
        };
        if !self.typed.contains_key(name) {
            let mut vectors = Vectors::default();
            *vectors.filter_mut() = BooleanFilter::with_settings(self.untyped.filter().settings());
            if let Some(matcher) = &self.matcher {
                vectors.set_option("predicates", matcher)?;
            }
            vectors.insert(row, subscription, terms)?;
            self.typed.insert(name.into(), vectors);
            return Ok(());
        }
        let vectors = self.typed.get_mut(name).expect("just looked up");
        vectors.insert(row, subscription, terms)
    }

    fn remove(&mut self, row: u32, subscription: &Subscription, terms: &Terms) {
        let vectors = match self.type_of(&subscription.expression) {
            Some(name) => self.typed.get_mut(name).expect("the type of a row that was inserted"),
            None => &mut self.untyped,
        };
        vectors.remove(row, subscription, terms);
    }

    fn matches(&self, event: &Event<'_>, terms: &Terms, found: &mut dyn FnMut(u32)) -> Work {
        let mut work = self.untyped.matches(event, terms, found);
        let type_attribute = self.type_attribute.as_deref().and_then(|name| terms.get(name));
        match type_attribute.and_then(|attribute| event.get(attribute)) {
            Some(ValueRef::Str(name)) => {
                if let Some(vectors) = self.typed.get(name) {
                    work += vectors.matches(event, terms, found);
                }
            }
            // An interval may hold several types.
            Some(value) if value.is_set() => {
                for vectors in self.typed.values() {
                    work += vectors.matches(event, terms, found);
                }
            }
            _ => {}
        }
        work
    }

    fn bytes(&self) -> Vec<(&'static str, usize)> {
        let mut parts: Vec<(&'static str, usize)> = vec![];
        for (name, bytes) in self.all().flat_map(Vectors::bytes) {
            match parts.iter_mut().find(|(known, _)| *known == name) {
                Some((_, sum)) => *sum += bytes,
                None => parts.push((name, bytes)),
            }
        }
        parts
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        let predicates = self.all().flat_map(Vectors::counters).filter(|(name, _)| *name == "predicates");
        vec![("predicates", predicates.map(|(_, count)| count).sum()), ("types", self.typed.len() as u64)]
    }

    fn set_option(&mut self, name: &str, value: &Value) -> Result<()> {
        match name {
            "type_attribute" => self.type_attribute = Some(options::text(name, value)?.into()),
            "predicates" => {
                self.untyped.set_option(name, value)?;
                self.matcher = Some(value.clone());
            }
            _ if BooleanFilter::OPTIONS.contains(&name) => self.untyped.set_option(name, value)?,
            _ => {
                let known = [&["predicates", "type_attribute"], BooleanFilter::OPTIONS].concat();
                return Err(options::unknown(name, &known));
            }
        }
        Ok(())
    }
}
