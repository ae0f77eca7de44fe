//! The dictionary of predicates: each distinct one has a number while it is in use.

use std::hash::{Hash, Hasher};

use hashbrown::HashTable;
use rustc_hash::FxHasher;

use tamis_core::event::{TermId, Value};
use tamis_core::expr::{Atom, Literal, Operator};

#[derive(Default)]
pub struct PredicateTable {
    slots: Vec<Slot>,
    numbers: HashTable<u32>,
    /// Numbers to be given away again.
    free: Vec<u32>,
}

struct Slot {
    atom: Atom,
    /// How often the predicate and its negation are used.
    uses: [u32; 2],
}

impl PredicateTable {
    /// The number of a predicate, a new or recycled one if it is not in use.
    pub fn intern(&mut self, attribute: TermId, operator: Operator, operands: &[Value]) -> u32 {
        let hash = hash_of(attribute, operator, operands);
        let Self { slots, numbers, free } = self;
        let same = |&id: &u32| {
            let atom = &slots[id as usize].atom;
            atom.attribute == attribute && atom.operator == operator && *atom.operands == *operands
        };
        if let Some(&id) = numbers.find(hash, same) {
            return id;
        }
        let slot = Slot { atom: Atom { attribute, operator, operands: operands.into() }, uses: [0, 0] };
        let id = match free.pop() {
            Some(id) => {
                slots[id as usize] = slot;
                id
            }
            None => {
                slots.push(slot);
                slots.len() as u32 - 1
            }
        };
        assert!(id < 1 << 31, "an index holds fewer than 2^31 distinct predicates");
        numbers.insert_unique(hash, id, |&id| slots[id as usize].hash());
        id
    }

    /// Returns whether this is the first use.
    pub(super) fn add_use(&mut self, literal: Literal) -> bool {
        let uses = &mut self.slots[literal.atom() as usize].uses[literal.is_negated() as usize];
        *uses += 1;
        *uses == 1
    }

    /// Returns whether this was the last use.
    pub(super) fn drop_use(&mut self, literal: Literal) -> bool {
        let uses = &mut self.slots[literal.atom() as usize].uses[literal.is_negated() as usize];
        *uses -= 1;
        *uses == 0
    }

    pub fn is_used(&self, literal: Literal) -> bool {
        self.slots[literal.atom() as usize].uses[literal.is_negated() as usize] > 0
    }

    pub(super) fn forget(&mut self, id: u32) {
        let hash = self.slots[id as usize].hash();
        let entry = self.numbers.find_entry(hash, |&other| other == id);
        entry.expect("a predicate in use is in the dictionary").remove();
        self.slots[id as usize].atom.operands = Default::default();
        self.free.push(id);
    }

    pub fn atom(&self, id: u32) -> &Atom {
        &self.slots[id as usize].atom
    }

    /// Numbers given so far, in use or free.
    pub fn slots(&self) -> usize {
        self.slots.len()
    }

    pub fn in_use(&self) -> usize {
        self.numbers.len()
    }

    pub fn bytes(&self) -> usize {
        let operands: usize = self.slots.iter().map(|slot| operand_bytes(&slot.atom.operands)).sum();
        self.slots.capacity() * size_of::<Slot>()
            + operands
            + self.numbers.capacity() * (size_of::<u32>() + 1)
            + self.free.capacity() * size_of::<u32>()
    }
}

impl Slot {
    fn hash(&self) -> u64 {
        hash_of(self.atom.attribute, self.atom.operator, &self.atom.operands)
    }
}

fn hash_of(attribute: TermId, operator: Operator, operands: &[Value]) -> u64 {
    let mut hasher = FxHasher::default();
    (attribute, operator, operands).hash(&mut hasher);
    hasher.finish()
}

fn operand_bytes(operands: &[Value]) -> usize {
    let text = |value: &Value| if let Value::Str(text) = value { text.len() } else { 0 };
    size_of_val(operands) + operands.iter().map(text).sum::<usize>()
}
