//! Predicates whose truth has to be asked of their operator: patterns, whatever has no shape, and comparisons
//! with decimals that have more digits than a key.
//!
//! Literals rule most of them out: one automaton per attribute finds which literals a text contains,
//! and only the patterns behind those are asked. Automata and compiled tests are built when an event
//! first needs them.

use std::sync::OnceLock;

use super::paths::PathPredicates;
use super::patterns::{Patterns, TextShape};
use crate::error::Result;
use crate::event::{TermId, Value, ValueRef};
use crate::expr::ast::{Expr, Outcome, Predicate};
use crate::expr::atoms::Atom;
use crate::expr::codec;
use crate::expr::operators::{Operator, Shape, Test};
use crate::fork::get_or_init;
use crate::snapshot::Buffer;

#[derive(Clone, Debug)]
pub struct Asked {
    pub bit: u32,
    /// Set when the predicate is false; 0 when nobody asks.
    pub false_bit: u32,
    pub operator: Operator,
    pub operands: Box<[Value]>,
}

/// The predicates of one attribute: those that are asked one by one, and paths in documents, which are asked together.
pub type AskedOfAttribute = (Vec<Asked>, Option<PathPredicates>);

#[derive(Default)]
pub struct AskedPredicates {
    /// The encoded form, if it came from a file.
    stored: Buffer<u8>,
    /// One list per attribute of the catalog.
    lists: OnceLock<Vec<AskedList>>,
}

#[derive(Default)]
struct AskedList {
    predicates: Vec<Asked>,
    paths: Option<PathPredicates>,
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

impl AskedPredicates {
    pub fn new(by_attribute: Vec<AskedOfAttribute>) -> Self {
        Self { stored: Buffer::default(), lists: OnceLock::from(into_lists(by_attribute)) }
    }

    /// From a file; decoded by [`validate`](Self::validate), before the first use.
    pub fn stored(bytes: Buffer<u8>) -> Self {
        Self { stored: bytes, lists: OnceLock::new() }
    }

    /// Decodes what was stored and checks that every bit is one of the catalog's.
    pub fn validate(&self, terms: usize, bits: u32) -> Result<(), String> {
        let wrong = || "the section `asked` is inconsistent".to_string();
        if self.lists.get().is_none() {
            let decoded = decode(&self.stored).ok_or_else(wrong)?;
            let _ = self.lists.set(into_lists(decoded));
        }
        let lists = self.lists();
        let good = |asked: &Asked| asked.bit < bits && asked.false_bit < bits;
        let good = |list: &AskedList| {
            list.predicates.iter().all(good)
                && list.paths.as_ref().is_none_or(|paths| paths.end_bit() <= bits)
        };
        if lists.len() == terms && lists.iter().all(good) { Ok(()) } else { Err(wrong()) }
    }

    fn lists(&self) -> &[AskedList] {
        self.lists.get().map_or(&[], Vec::as_slice)
    }

    /// Calls `set` with the bits that `value` sets among the predicates of one attribute.
    pub fn fire(&self, attribute: usize, value: ValueRef<'_>, set: &mut impl FnMut(u32)) {
        let Some(list) = self.lists().get(attribute) else { return };
        if let (Some(paths), ValueRef::Str(text)) = (&list.paths, value) {
            paths.fire(text, set);
        }
        if list.predicates.is_empty() {
            return;
        }
        let ready = get_or_init(&list.ready, || Box::new(Ready::new(&list.predicates)));
        let ask = |at: u32, set: &mut dyn FnMut(u32)| {
            let asked = &list.predicates[at as usize];
            let rules = asked.operator.rules();
            let outcome = match get_or_init(&ready.tests[at as usize], || rules.compile(&asked.operands)) {
                Some(test) => test(value),
                None => asked.operator.outcome(Some(value), &asked.operands),
            };
            asked.report(outcome, set);
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

    /// The bytes of what predicates on documents are found by.
    pub fn path_bytes(&self) -> usize {
        self.lists().iter().filter_map(|list| list.paths.as_ref()).map(PathPredicates::heap_bytes).sum()
    }

    /// Appends the stored form: per attribute a count, then per predicate its bits and expression; then its paths.
    pub fn encode(&self, out: &mut Vec<u8>) {
        for list in self.lists() {
            put(out, list.predicates.len() as u32);
            for asked in &list.predicates {
                put(out, asked.bit);
                put(out, asked.false_bit);
                let predicate = Expr::Predicate(Predicate {
                    term: "".into(),
                    operator: asked.operator,
                    negated: false,
                    operands: asked.operands.clone(),
                    weight: None,
                });
                let mut bytes = vec![];
                codec::encode(&predicate, &mut bytes, &mut |_| TermId(0));
                put(out, bytes.len() as u32);
                out.extend_from_slice(&bytes);
            }
            PathPredicates::encode(list.paths.as_ref(), out);
        }
    }
}

fn into_lists(by_attribute: Vec<AskedOfAttribute>) -> Vec<AskedList> {
    let list = |(predicates, paths)| AskedList { predicates, paths, ready: OnceLock::new() };
    by_attribute.into_iter().map(list).collect()
}

pub(super) fn put(out: &mut Vec<u8>, number: u32) {
    out.extend_from_slice(&number.to_le_bytes());
}

pub(super) fn take<'a>(bytes: &mut &'a [u8], length: usize) -> Option<&'a [u8]> {
    let (head, tail) = bytes.split_at_checked(length)?;
    *bytes = tail;
    Some(head)
}

pub(super) fn number(bytes: &mut &[u8]) -> Option<u32> {
    Some(u32::from_le_bytes(take(bytes, 4)?.try_into().ok()?))
}

fn decode(mut bytes: &[u8]) -> Option<Vec<AskedOfAttribute>> {
    let mut lists = vec![];
    while !bytes.is_empty() {
        let mut list = vec![];
        for _ in 0..number(&mut bytes)? {
            let (bit, false_bit) = (number(&mut bytes)?, number(&mut bytes)?);
            let length = number(&mut bytes)? as usize;
            let expression = codec::decode(take(&mut bytes, length)?, &|_| Some("".into())).ok()?;
            let Expr::Predicate(predicate) = expression else { return None };
            list.push(Asked { bit, false_bit, operator: predicate.operator, operands: predicate.operands });
        }
        lists.push((list, PathPredicates::decode(&mut bytes)?));
    }
    Some(lists)
}

impl Asked {
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
    fn new(list: &[Asked]) -> Self {
        let (mut texts, mut always) = (vec![], vec![]);
        for (at, asked) in list.iter().enumerate() {
            let shape = match asked.operator.rules().shape(&asked.operands) {
                _ if asked.false_bit != 0 => None,
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
