//! The distinct predicates of an index, each known by a small number.
//!
//! An atom is a predicate without its negation and its weight. Two predicates share a number exactly
//! when they are written alike; the hash only finds candidates, the structure decides.

use std::hash::{Hash, Hasher};

use hashbrown::HashTable;
use rustc_hash::FxHasher;

use super::ast::Outcome;
use super::operators::Operator;
use crate::term::TermId;
use crate::value::{Value, ValueRef};

/// A positive predicate on an attribute of one index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Atom {
    pub attribute: TermId,
    pub operator: Operator,
    pub operands: Box<[Value]>,
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
#[derive(Clone, Default)]
pub struct AtomTable {
    atoms: Vec<Atom>,
    numbers: HashTable<Entry>,
}

/// What the hash table holds of an atom. Nearly all predicates have one scalar operand: it lies in the
/// table itself, so that finding one of millions of atoms reads no other memory.
#[derive(Clone, Copy)]
struct Entry {
    attribute: TermId,
    operator: Operator,
    operand: OperandKind,
    id: u32,
    /// The bits of the scalar; for other operands their hash.
    bits: u64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
enum OperandKind {
    Bool,
    Int,
    Float,
    Timestamp,
    /// Several operands, or one that is no scalar: the atom itself must be asked.
    Other,
}

impl Entry {
    fn new(attribute: TermId, operator: Operator, operands: &[Value]) -> Self {
        let (operand, bits) = match operands {
            [Value::Bool(b)] => (OperandKind::Bool, *b as u64),
            [Value::Int(i)] => (OperandKind::Int, *i as u64),
            [Value::Float(x)] => (OperandKind::Float, if x.is_nan() { f64::NAN } else { *x }.to_bits()),
            [Value::Timestamp(t)] => (OperandKind::Timestamp, *t as u64),
            others => {
                let mut hasher = FxHasher::default();
                others.hash(&mut hasher);
                (OperandKind::Other, hasher.finish())
            }
        };
        Self { attribute, operator, operand, id: u32::MAX, bits }
    }

    fn hash(&self) -> u64 {
        let mut hasher = FxHasher::default();
        (self.attribute, self.operator, self.operand as u8, self.bits).hash(&mut hasher);
        hasher.finish()
    }

    fn is(&self, other: &Entry, atoms: &[Atom], operands: &[Value]) -> bool {
        (self.attribute, self.operator, self.operand, self.bits)
            == (other.attribute, other.operator, other.operand, other.bits)
            && (self.operand != OperandKind::Other || *atoms[self.id as usize].operands == *operands)
    }
}

impl AtomTable {
    /// The number of the predicate, a new one if it was not seen before.
    pub fn intern(&mut self, attribute: TermId, operator: Operator, operands: &[Value]) -> u32 {
        let wanted = Entry::new(attribute, operator, operands);
        let hash = wanted.hash();
        let Self { atoms, numbers } = self;
        if let Some(found) = numbers.find(hash, |entry| entry.is(&wanted, atoms, operands)) {
            return found.id;
        }
        let id = atoms.len() as u32;
        assert!(id < 1 << 31, "an index holds fewer than 2^31 distinct predicates");
        atoms.push(Atom { attribute, operator, operands: operands.into() });
        numbers.insert_unique(hash, Entry { id, ..wanted }, Entry::hash);
        id
    }

    /// The number of the predicate, or `None` if it was never interned.
    pub fn get(&self, attribute: TermId, operator: Operator, operands: &[Value]) -> Option<u32> {
        let wanted = Entry::new(attribute, operator, operands);
        let same = |entry: &Entry| entry.is(&wanted, &self.atoms, operands);
        self.numbers.find(wanted.hash(), same).map(|entry| entry.id)
    }

    pub fn atom(&self, id: u32) -> &Atom {
        &self.atoms[id as usize]
    }

    pub fn len(&self) -> usize {
        self.atoms.len()
    }

    pub fn is_empty(&self) -> bool {
        self.atoms.is_empty()
    }

    /// Makes room for up to so many more predicates.
    pub fn reserve(&mut self, atoms: usize) {
        self.atoms.reserve_exact(atoms);
    }

    /// Ends the adding of predicates: gives back what only finding them needs. Their numbers stay.
    pub fn seal(&mut self) {
        self.numbers = HashTable::new();
        self.atoms.shrink_to_fit();
    }

    /// Bytes on the heap, strings aside.
    pub fn bytes(&self) -> usize {
        let operands: usize = self.atoms.iter().map(|atom| size_of_val(&*atom.operands)).sum();
        self.atoms.capacity() * size_of::<Atom>() + operands + self.numbers.allocation_size()
    }

    /// All atoms in the order of their numbers.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Atom> {
        self.atoms.iter()
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
    fn literals_carry_their_sign() {
        let literal = Literal::new(7, true);
        assert_eq!((literal.atom(), literal.is_negated()), (7, true));
        assert_eq!(literal.not(), Literal::new(7, false));
        assert!(literal.holds(Outcome::FALSE) && !literal.not().holds(Outcome::FALSE));
        assert!(!literal.holds(Outcome::UNDEFINED) && !literal.not().holds(Outcome::UNDEFINED));
        assert!(literal.holds(Outcome::EITHER) && literal.not().holds(Outcome::EITHER));
    }
}
