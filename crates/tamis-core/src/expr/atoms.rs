//! The distinct predicates of an index, each with a small number.
//!
//! An atom is a predicate without its negation and its weight. Two predicates share a number exactly when
//! they are equal; the hash only finds candidates, the structure decides.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use rustc_hash::FxHasher;

use super::ast::Outcome;
use super::operands::Operands;
use super::operators::Operator;
use crate::number_table::{NumberTable, tag};
use crate::prefetch::prefetch;
use crate::term::TermId;
use crate::value::{Value, ValueRef};

/// A positive predicate on an attribute of one index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Atom {
    pub attribute: TermId,
    pub operator: Operator,
    pub operands: Operands,
}

impl Atom {
    /// The outcome for one value of the attribute; `None` is an absent attribute.
    pub fn outcome(&self, value: Option<ValueRef<'_>>) -> Outcome {
        self.operator.outcome(value, &self.operands)
    }
}

/// An atom or its negation. `NOT p` is *true* when p can be false, so it is undefined when p is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Literal(pub u32);

impl Literal {
    /// Atom numbers must stay below 2^31.
    pub fn new(atom: u32, negated: bool) -> Self {
        debug_assert!(atom < 1 << 31);
        Self(atom << 1 | negated as u32)
    }

    pub fn atom(self) -> u32 {
        self.0 >> 1
    }

    pub fn is_negated(self) -> bool {
        self.0 & 1 == 1
    }

    /// The same atom with the other sign.
    #[allow(clippy::should_implement_trait)]
    pub fn not(self) -> Self {
        Self(self.0 ^ 1)
    }

    /// Whether the literal is true, given the outcome of its atom.
    pub fn holds(self, outcome: Outcome) -> bool {
        if self.is_negated() { outcome.can_be_false } else { outcome.can_be_true }
    }
}

/// The dictionary of atoms: numbers are given in order of first use and never change.
///
/// A dictionary can be laid over another one, which is only read: many threads may do so at a time.
#[derive(Clone, Default)]
pub struct AtomTable {
    below: Option<Arc<AtomTable>>,
    /// The number of the first atom that is not below.
    first: u32,
    atoms: Vec<Atom>,
    numbers: NumberTable,
}

/// Of the hash of a predicate. Nearly all have one scalar operand, whose bits say all.
fn tag_of(attribute: TermId, operator: Operator, operands: &[Value]) -> u32 {
    let (kind, bits) = match operands {
        [Value::Bool(b)] => (1u8, *b as u64),
        [Value::Int(i)] => (2, *i as u64),
        [Value::Float(x)] => (3, if x.is_nan() { f64::NAN } else { *x }.to_bits()),
        [Value::Timestamp(t)] => (4, *t as u64),
        others => {
            let mut hasher = FxHasher::default();
            others.hash(&mut hasher);
            (5, hasher.finish())
        }
    };
    let mut hasher = FxHasher::default();
    (u64::from(attribute.0) << 16 | u64::from(operator.code()) << 8 | u64::from(kind), bits)
        .hash(&mut hasher);
    tag(hasher.finish())
}

impl AtomTable {
    /// An empty dictionary with room for this many atoms.
    pub fn with_room(atoms: usize) -> Self {
        Self { atoms: Vec::with_capacity(atoms), numbers: NumberTable::with_room(atoms), ..Self::default() }
    }

    /// An empty dictionary over another one.
    pub fn over(below: Arc<AtomTable>) -> Self {
        debug_assert!(below.below.is_none(), "one is below, not several");
        Self { first: below.len() as u32, below: Some(below), ..Self::default() }
    }

    /// The number of the first atom that is not below.
    pub fn first(&self) -> u32 {
        self.first
    }

    /// The atoms that are not below, in the order of their numbers.
    pub fn into_own(self) -> Vec<Atom> {
        self.atoms
    }

    fn find(&self, tag: u32, attribute: TermId, operator: Operator, operands: &[Value]) -> Option<u32> {
        self.numbers.find(tag, |number| {
            let atom = &self.atoms[(number - self.first) as usize];
            atom.attribute == attribute && atom.operator == operator && *atom.operands == *operands
        })
    }

    /// The number of the predicate, a new one if it was not seen before.
    pub fn intern(&mut self, attribute: TermId, operator: Operator, operands: &[Value]) -> u32 {
        let tag = tag_of(attribute, operator, operands);
        match self.look_up(tag, attribute, operator, operands) {
            Some(number) => number,
            None => self.add(tag, Atom { attribute, operator, operands: operands.into() }),
        }
    }

    /// The number of an atom, a new one if it was not seen before.
    pub fn intern_atom(&mut self, atom: Atom) -> u32 {
        let tag = tag_of(atom.attribute, atom.operator, &atom.operands);
        match self.look_up(tag, atom.attribute, atom.operator, &atom.operands) {
            Some(number) => number,
            None => self.add(tag, atom),
        }
    }

    fn look_up(&self, tag: u32, attribute: TermId, operator: Operator, operands: &[Value]) -> Option<u32> {
        let below = self.below.as_ref().and_then(|below| below.find(tag, attribute, operator, operands));
        below.or_else(|| self.find(tag, attribute, operator, operands))
    }

    fn add(&mut self, tag: u32, atom: Atom) -> u32 {
        let number = self.len() as u32;
        assert!(number < 1 << 31, "an index holds fewer than 2^31 distinct predicates");
        self.atoms.push(atom);
        self.numbers.insert(tag, number);
        number
    }

    /// Begins to fetch what [`intern`](Self::intern) will read, and returns what [`fetch_atom`](Self::fetch_atom) goes on with.
    #[inline]
    pub fn fetch(&self, attribute: TermId, operator: Operator, operands: &[Value]) -> u32 {
        let tag = tag_of(attribute, operator, operands);
        self.below.as_ref().map_or(&self.numbers, |below| &below.numbers).fetch(tag);
        tag
    }

    /// Fetches the atom that is most likely looked for.
    #[inline]
    pub fn fetch_atom(&self, tag: u32) {
        let table = self.below.as_deref().unwrap_or(self);
        if let Some(number) = table.numbers.candidate(tag) {
            prefetch(&table.atoms[(number - table.first) as usize]);
        }
    }

    /// The number of the predicate, or `None` if it was never interned.
    pub fn get(&self, attribute: TermId, operator: Operator, operands: &[Value]) -> Option<u32> {
        self.look_up(tag_of(attribute, operator, operands), attribute, operator, operands)
    }

    #[inline]
    pub fn atom(&self, id: u32) -> &Atom {
        match &self.below {
            Some(below) if id < self.first => &below.atoms[id as usize],
            _ => &self.atoms[(id - self.first) as usize],
        }
    }

    pub fn len(&self) -> usize {
        self.first as usize + self.atoms.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Makes room for up to this many more predicates.
    pub fn reserve(&mut self, atoms: usize) {
        self.atoms.reserve_exact(atoms);
    }

    /// Ends the adding of predicates: gives back what only finding them needs. Their numbers stay.
    pub fn seal(&mut self) {
        self.numbers = NumberTable::default();
        self.atoms.shrink_to_fit();
    }

    /// Bytes on the heap, strings aside.
    pub fn bytes(&self) -> usize {
        let operands: usize = self.atoms.iter().map(|atom| atom.operands.bytes()).sum();
        self.atoms.capacity() * size_of::<Atom>() + operands + self.numbers.bytes()
    }

    /// All atoms in the order of their numbers.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Atom> {
        (0..self.len() as u32).map(|number| self.atom(number))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_predicate_gets_the_same_number() {
        let equal = Operator::named("=").unwrap();
        let less = Operator::named("<").unwrap();
        let mut atoms = AtomTable::default();
        let ids: Vec<u32> =
            (0..1000).map(|i| atoms.intern(TermId(i % 10), equal, &[Value::Int(i as i64)])).collect();
        assert_eq!(ids, (0..1000).collect::<Vec<_>>());
        for i in 0..1000 {
            assert_eq!(atoms.intern(TermId(i % 10), equal, &[Value::Int(i as i64)]), i);
            assert_eq!(atoms.get(TermId(i % 10), less, &[Value::Int(i as i64)]), None);
            assert_eq!(atoms.atom(i).attribute, TermId(i % 10));
        }
        assert_eq!(atoms.intern(TermId(0), equal, &[Value::Float(0.0)]), 1000, "as written, 0 is not 0.0");
        let nan = atoms.intern(TermId(0), equal, &[Value::Float(f64::NAN)]);
        assert_eq!(atoms.intern(TermId(0), equal, &[Value::Float(-f64::NAN)]), nan);
        assert_eq!(atoms.len(), 1002);
    }

    #[test]
    fn a_table_over_another_goes_on_with_its_numbers() {
        let equal = Operator::named("=").unwrap();
        let mut below = AtomTable::default();
        for i in 0..10 {
            below.intern(TermId(0), equal, &[Value::Int(i)]);
        }
        let mut over = AtomTable::over(Arc::new(below));
        assert_eq!(over.intern(TermId(0), equal, &[Value::Int(7)]), 7);
        assert_eq!(over.intern(TermId(0), equal, &[Value::Int(12)]), 10);
        assert_eq!(over.intern(TermId(0), equal, &[Value::Int(12)]), 10);
        assert_eq!(over.intern(TermId(0), equal, &[Value::Int(1), Value::Int(2)]), 11);
        assert_eq!((over.len(), over.iter().len()), (12, 12));
        assert_eq!(*over.atom(7).operands, [Value::Int(7)]);
        assert_eq!(*over.atom(11).operands, [Value::Int(1), Value::Int(2)]);
        assert_eq!(over.get(TermId(0), equal, &[Value::Int(13)]), None);
        assert_eq!(over.into_own().len(), 2);
    }

    #[test]
    fn literals_carry_their_sign() {
        let literal = Literal::new(7, true);
        assert_eq!((literal.atom(), literal.is_negated()), (7, true));
        assert_eq!(literal.not(), Literal::new(7, false));
        assert!(literal.holds(Outcome::FALSE) && !literal.not().holds(Outcome::FALSE));
        assert!(!literal.holds(Outcome::UNDEFINED) && !literal.not().holds(Outcome::UNDEFINED));
        assert!(literal.holds(Outcome::EITHER) && literal.not().holds(Outcome::EITHER));
    }
}
