//! Residual predicates: those that no table of points or cuts decides, so that each is evaluated. They are patterns,
//! whatever has no shape, and comparisons with decimals that have more digits than a key.
//!
//! Literals rule most patterns out: one automaton per attribute finds which literals a text contains, and only the
//! patterns behind those are evaluated. Automata and compiled tests are built when an event first needs them.

use std::sync::OnceLock;

use super::patterns::{Patterns, TextShape};
use crate::error::Result;
use crate::event::{TermId, Value, ValueRef};
use crate::expr::ast::{Expr, Outcome, Predicate};
use crate::expr::atoms::Atom;
use crate::expr::codec;
use crate::expr::operators::{Operator, Shape, Test};
use crate::fork::get_or_init;
use crate::snapshot::SharedSlice;

#[derive(Clone, Debug)]
pub struct Residual {
    pub bit: u32,
    /// Set when the predicate is false; 0 when nobody asks.
    pub false_bit: u32,
    pub operator: Operator,
    pub operands: Box<[Value]>,
}

#[derive(Default)]
pub struct ResidualPredicates {
    /// The encoded form, if it came from a file.
    stored: SharedSlice<u8>,
    /// One list per attribute of the catalog.
    lists: OnceLock<Vec<ResidualList>>,
}

#[derive(Default)]
struct ResidualList {
    predicates: Vec<Residual>,
    /// Elsewhere, because it is large and most attributes have none.
    ready: OnceLock<Box<Ready>>,
}

struct Ready {
    texts: Patterns,
    /// Compiled tests, in the order of the list, each built when it is first asked.
    tests: Vec<OnceLock<Option<Test>>>,
    /// Predicates that no literal can rule out, also for values that are not strings.
    always: Vec<u32>,
}

impl ResidualPredicates {
    pub fn new(by_attribute: Vec<Vec<Residual>>) -> Self {
        Self { stored: SharedSlice::default(), lists: OnceLock::from(into_lists(by_attribute)) }
    }

    /// From a file; decoded by [`validate`](Self::validate), before the first use.
    pub fn stored(bytes: SharedSlice<u8>) -> Self {
        Self { stored: bytes, lists: OnceLock::new() }
    }

    /// Decodes what was stored and checks that every bit is one of the catalog's.
    pub fn validate(&self, terms: usize, bits: u32) -> Result<(), String> {
        let wrong = || "the section `residual` is inconsistent".to_string();
        if self.lists.get().is_none() {
            let decoded = decode(&self.stored).ok_or_else(wrong)?;
            let _ = self.lists.set(into_lists(decoded));
        }
        let lists = self.lists();
        let good = |residual: &Residual| residual.bit < bits && residual.false_bit < bits;
        if lists.len() == terms && lists.iter().all(|list| list.predicates.iter().all(good)) {
            Ok(())
        } else {
            Err(wrong())
        }
    }

    fn lists(&self) -> &[ResidualList] {
        self.lists.get().map_or(&[], Vec::as_slice)
    }

    /// Calls `set` with the bits that `value` sets among the predicates of one attribute.
    pub fn fire(&self, attribute: usize, value: ValueRef<'_>, set: &mut impl FnMut(u32)) {
        let Some(list) = self.lists().get(attribute) else { return };
        let ready = get_or_init(&list.ready, || Box::new(Ready::new(&list.predicates)));
        let ask = |at: u32, set: &mut dyn FnMut(u32)| {
            let residual = &list.predicates[at as usize];
            let rules = residual.operator.rules();
            let outcome = match get_or_init(&ready.tests[at as usize], || rules.compile(&residual.operands)) {
                Some(test) => test(value),
                None => residual.operator.outcome(Some(value), &residual.operands),
            };
            residual.report(outcome, set);
        };
        for &at in &ready.always {
            ask(at, set);
        }
        if let ValueRef::Str(text) = value {
            let mut candidates = vec![];
            let predicates = &list.predicates;
            ready
                .texts
                .satisfied(text, &mut |at| set(predicates[at as usize].bit), &mut |at| candidates.push(at));
            for at in candidates {
                ask(at, set);
            }
        }
    }

    /// Appends the stored form: per attribute a count, then per predicate its bits and expression.
    pub fn encode(&self, out: &mut Vec<u8>) {
        for list in self.lists() {
            put(out, list.predicates.len() as u32);
            for residual in &list.predicates {
                put(out, residual.bit);
                put(out, residual.false_bit);
                let predicate = Expr::Predicate(Predicate {
                    term: "".into(),
                    operator: residual.operator,
                    negated: false,
                    operands: residual.operands.clone(),
                    weight: None,
                });
                let mut bytes = vec![];
                codec::encode(&predicate, &mut bytes, &mut |_| TermId(0));
                put(out, bytes.len() as u32);
                out.extend_from_slice(&bytes);
            }
        }
    }
}

fn into_lists(by_attribute: Vec<Vec<Residual>>) -> Vec<ResidualList> {
    by_attribute.into_iter().map(|predicates| ResidualList { predicates, ready: OnceLock::new() }).collect()
}

fn put(out: &mut Vec<u8>, number: u32) {
    out.extend_from_slice(&number.to_le_bytes());
}

fn decode(mut bytes: &[u8]) -> Option<Vec<Vec<Residual>>> {
    fn take<'a>(bytes: &mut &'a [u8], length: usize) -> Option<&'a [u8]> {
        let (head, tail) = bytes.split_at_checked(length)?;
        *bytes = tail;
        Some(head)
    }
    fn number(bytes: &mut &[u8]) -> Option<u32> {
        Some(u32::from_le_bytes(take(bytes, 4)?.try_into().ok()?))
    }
    let mut lists = vec![];
    while !bytes.is_empty() {
        let mut list = vec![];
        for _ in 0..number(&mut bytes)? {
            let (bit, false_bit) = (number(&mut bytes)?, number(&mut bytes)?);
            let length = number(&mut bytes)? as usize;
            let expression = codec::decode(take(&mut bytes, length)?, &|_| Some("".into())).ok()?;
            let Expr::Predicate(predicate) = expression else { return None };
            list.push(Residual {
                bit,
                false_bit,
                operator: predicate.operator,
                operands: predicate.operands,
            });
        }
        lists.push(list);
    }
    Some(lists)
}

impl Residual {
    pub fn new(atom: &Atom, bit: u32, false_bit: u32) -> Self {
        Self { bit, false_bit, operator: atom.operator, operands: atom.operands.clone() }
    }

    fn report(&self, outcome: Outcome, set: &mut dyn FnMut(u32)) {
        if outcome.can_be_true {
            set(self.bit);
        }
        if outcome.can_be_false && self.false_bit != 0 {
            set(self.false_bit);
        }
    }
}

impl Ready {
    fn new(list: &[Residual]) -> Self {
        let (mut texts, mut always) = (vec![], vec![]);
        for (at, residual) in list.iter().enumerate() {
            let shape = match residual.operator.rules().shape(&residual.operands) {
                _ if residual.false_bit != 0 => None,
                Shape::Prefix(text) => Some(TextShape::Prefix(text.into())),
                Shape::Suffix(text) => Some(TextShape::Suffix(text.into())),
                Shape::Substring(text) => Some(TextShape::Substring(text.into())),
                Shape::Literals(literals) => Some(TextShape::Literals(literals)),
                _ => None,
            };
            match shape {
                Some(shape) => texts.push((at as u32, shape)),
                None => always.push(at as u32),
            }
        }
        let tests = list.iter().map(|_| OnceLock::new()).collect();
        Self { texts: Patterns::new(texts), tests, always }
    }
}
