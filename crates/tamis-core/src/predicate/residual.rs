//! Residual predicates: no table of points or cuts decides them, so each is evaluated. They are patterns,
//! operators without a shape, and comparisons with decimals that have more digits than a key.
//!
//! Literals rule most patterns out: one pass over a text finds which literals it contains, and only the patterns with
//! those are evaluated. The index of literals is built when an event first needs it, and stored in snapshots. Patterns are
//! compiled on first use.

use std::sync::OnceLock;

use super::paths::PathPredicates;
use super::patterns::{ArraysReader, ArraysWriter, Candidate, TextPredicates};
use crate::error::Result;
use crate::event::{TermId, ValueRef};
use crate::expr::ast::{Expr, Outcome, Predicate};
use crate::expr::atoms::Atom;
use crate::expr::codec;
use crate::expr::operands::Operands;
use crate::expr::operators::{LowerCaseTest, Operator, Test};
use crate::fork::get_or_init;
use crate::snapshot::SharedSlice;

#[derive(Clone, Debug)]
pub struct Residual {
    pub bit: u32,
    /// Set when the predicate is false; 0 if not used.
    pub false_bit: u32,
    pub operator: Operator,
    pub operands: Operands,
}

/// The predicates of one attribute: those that are asked one by one, and paths in documents, which are asked together. Paths
/// lie elsewhere, because they are large and most attributes have none.
pub type ResidualOfAttribute = (Vec<Residual>, Option<Box<PathPredicates>>);

#[derive(Default)]
pub struct ResidualPredicates {
    /// The encoded form, if it came from a file.
    stored: SharedSlice<u8>,
    /// What finds them, if that came from a file.
    arrays: Option<ArraysReader>,
    /// One list per attribute of the catalog.
    lists: OnceLock<Vec<ResidualList>>,
}

#[derive(Default)]
struct ResidualList {
    predicates: Vec<Residual>,
    paths: Option<Box<PathPredicates>>,
    /// Elsewhere, because it is large and most attributes have none.
    ready: OnceLock<Box<Ready>>,
}

struct Ready {
    texts: TextPredicates,
    /// Compiled tests, in the order of the list, each built when it is first asked.
    tests: Vec<OnceLock<Compiled>>,
    /// Predicates that no literal can rule out, also for values that are not strings.
    always: Vec<u32>,
}

enum Compiled {
    Test(Test),
    /// Of texts in lower case.
    LowerCase(LowerCaseTest),
    /// There is nothing to compile.
    No,
}

impl ResidualPredicates {
    pub fn new(by_attribute: Vec<ResidualOfAttribute>) -> Self {
        Self { lists: OnceLock::from(into_lists(by_attribute)), ..Self::default() }
    }

    /// From a file; decoded by [`validate`](Self::validate), before the first use.
    pub fn stored(bytes: SharedSlice<u8>, arrays: Option<ArraysReader>) -> Self {
        Self { stored: bytes, arrays, lists: OnceLock::new() }
    }

    /// Decodes what was stored and checks that every bit is one of the catalog's.
    pub fn validate(&self, terms: usize, bits: u32) -> Result<(), String> {
        let wrong = || "the section `residual` is inconsistent".to_string();
        if self.lists.get().is_none() {
            let lists = into_lists(decode(&self.stored).ok_or_else(wrong)?);
            if let Some(arrays) = &self.arrays {
                restore(&lists, arrays.clone()).ok_or("the sections of patterns are inconsistent")?;
            }
            let _ = self.lists.set(lists);
        }
        let lists = self.lists();
        let good = |residual: &Residual| residual.bit < bits && residual.false_bit < bits;
        let good = |list: &ResidualList| {
            list.predicates.iter().all(good)
                && list.paths.as_ref().is_none_or(|paths| paths.end_bit() <= bits)
        };
        if lists.len() == terms && lists.iter().all(good) { Ok(()) } else { Err(wrong()) }
    }

    fn lists(&self) -> &[ResidualList] {
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
        let ready = list.ready();
        let ask = |at: u32, candidate: Option<Candidate<'_>>, set: &mut dyn FnMut(u32)| {
            let residual = &list.predicates[at as usize];
            let lower_case = candidate.and_then(|candidate| candidate.lower_case);
            let outcome =
                match get_or_init(&ready.tests[at as usize], || residual.compile(lower_case.is_some())) {
                    Compiled::Test(test) => test(value),
                    Compiled::LowerCase(test) => {
                        test(lower_case.expect("it is one of texts in lower case")).into()
                    }
                    Compiled::No => residual.operator.outcome(Some(value), &residual.operands),
                };
            residual.report(outcome, set);
        };
        for &at in &ready.always {
            ask(at, None, set);
        }
        if let ValueRef::Str(text) = value {
            ready.texts.satisfied(text, &mut |at, candidate| match candidate {
                None => set(list.predicates[at as usize].bit),
                Some(_) => ask(at, candidate, set),
            });
        }
    }

    /// The bytes of what predicates on documents are found by.
    pub fn path_bytes(&self) -> usize {
        self.lists().iter().filter_map(|list| list.paths.as_deref()).map(PathPredicates::heap_bytes).sum()
    }

    /// The arrays of what finds patterns, which is built if it was not yet: per attribute that has any, the predicates
    /// that are always asked and the others.
    pub fn arrays(&self) -> ArraysWriter {
        let mut arrays = ArraysWriter::default();
        for list in self.lists().iter().filter(|list| !list.predicates.is_empty()) {
            let ready = list.ready();
            arrays.put(&ready.always);
            ready.texts.store(&mut arrays);
        }
        arrays
    }

    /// Appends the stored form: per attribute a count, then per predicate its bits and expression; then its paths.
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
            PathPredicates::encode(list.paths.as_deref(), out);
        }
    }
}

fn into_lists(by_attribute: Vec<ResidualOfAttribute>) -> Vec<ResidualList> {
    let list = |(predicates, paths)| ResidualList { predicates, paths, ready: OnceLock::new() };
    by_attribute.into_iter().map(list).collect()
}

/// Takes from the arrays of a file what finds the patterns of each list.
fn restore(lists: &[ResidualList], mut arrays: ArraysReader) -> Option<()> {
    for list in lists.iter().filter(|list| !list.predicates.is_empty()) {
        let always = arrays.take()?.to_vec();
        let texts = TextPredicates::restore(&mut arrays, list.predicates.len() as u32)?;
        always.iter().all(|at| (*at as usize) < list.predicates.len()).then_some(())?;
        let _ = list.ready.set(Box::new(Ready::of(texts, always, list.predicates.len())));
    }
    arrays.is_empty().then_some(())
}

impl ResidualList {
    fn ready(&self) -> &Ready {
        get_or_init(&self.ready, || Box::new(Ready::new(&self.predicates))).as_ref()
    }
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

fn decode(mut bytes: &[u8]) -> Option<Vec<ResidualOfAttribute>> {
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
        lists.push((list, PathPredicates::decode(&mut bytes)?.map(Box::new)));
    }
    Some(lists)
}

impl Residual {
    pub fn new(atom: &Atom, bit: u32, false_bit: u32) -> Self {
        Self { bit, false_bit, operator: atom.operator, operands: atom.operands.clone() }
    }

    fn compile(&self, in_lower_case: bool) -> Compiled {
        let rules = self.operator.rules();
        let lower_case = || rules.compile_lower_case(&self.operands).map(Compiled::LowerCase);
        let as_written = || rules.compile(&self.operands).map(Compiled::Test);
        in_lower_case.then(lower_case).flatten().or_else(as_written).unwrap_or(Compiled::No)
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
            let shape = residual.operator.rules().shape(&residual.operands);
            if residual.false_bit == 0 && shape.is_of_text() {
                texts.push((at as u32, shape));
            } else {
                always.push(at as u32);
            }
        }
        Self::of(TextPredicates::new(texts), always, list.len())
    }

    fn of(texts: TextPredicates, always: Vec<u32>, predicates: usize) -> Self {
        Self { texts, always, tests: (0..predicates).map(|_| OnceLock::new()).collect() }
    }
}
