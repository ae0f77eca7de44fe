//! The normal forms of many rows, with each distinct predicate and subexpression stored once.
//!
//! A layout is made from these alone. Threads collect forms on top of the existing ones, and their new ones are absorbed
//! in order; merges take over the forms of small segments. Both map each distinct predicate and node once, which is far
//! cheaper than normalising every expression again.

use std::sync::Arc;

use super::dag::{Dag, NO_NODE};
use crate::event::{TermId, Terms};
use crate::expr::Expr;
use crate::expr::atoms::{Atom, AtomTable, Literal};
use crate::expr::normal_form::{Form, for_each_literal, normal_form};

/// How many atoms are fetched before the first of them is looked at.
const FETCHED_TOGETHER: usize = 64;

#[derive(Default)]
pub struct Forms {
    pub atoms: AtomTable,
    pub dag: Dag,
    /// The node of each row.
    pub roots: Vec<u32>,
}

/// Forms that others are collected over.
#[derive(Clone)]
pub struct Below {
    atoms: Arc<AtomTable>,
    dag: Arc<Dag>,
}

impl Below {
    /// The forms again, once nobody collects over them any more. They have no rows.
    pub fn into_forms(self) -> Forms {
        let alone = "whoever collected has let go of it";
        Forms {
            atoms: Arc::into_inner(self.atoms).expect(alone),
            dag: Arc::into_inner(self.dag).expect(alone),
            roots: vec![],
        }
    }
}

impl Forms {
    /// Forms without rows over others.
    pub fn over(below: &Below) -> Self {
        Self { atoms: AtomTable::over(below.atoms.clone()), dag: Dag::over(below.dag.clone()), roots: vec![] }
    }

    /// Lets others collect over these, but for the rows.
    pub fn lend(&mut self) -> Below {
        Below {
            atoms: Arc::new(std::mem::take(&mut self.atoms)),
            dag: Arc::new(std::mem::take(&mut self.dag)),
        }
    }

    /// Takes back what was lent.
    pub fn restore(&mut self, below: Below) {
        let Forms { atoms, dag, .. } = below.into_forms();
        (self.atoms, self.dag) = (atoms, dag);
    }

    /// Lets go of the forms below, so that they can change again.
    pub fn detach(self) -> Detached {
        let first_atom = self.atoms.first();
        Detached { first_atom, atoms: self.atoms.into_own(), dag: self.dag.detach(), roots: self.roots }
    }

    /// Adds the rows of forms that were collected over these. `terms` has the numbers that attributes there have here; it is
    /// empty if they are the same. Returns the numbers of atoms.
    pub fn absorb(&mut self, other: Detached, terms: &[TermId]) -> AbsorbedAtoms {
        let here = |mut atom: Atom| {
            atom.attribute = terms.get(atom.attribute.0 as usize).copied().unwrap_or(atom.attribute);
            atom
        };
        let mut numbers = Vec::with_capacity(other.atoms.len());
        let mut coming = other.atoms.into_iter().map(here);
        loop {
            let some: Vec<Atom> = coming.by_ref().take(FETCHED_TOGETHER).collect();
            if some.is_empty() {
                break;
            }
            let fetch = |atom: &Atom| self.atoms.fetch(atom.attribute, atom.operator, &atom.operands);
            some.iter().for_each(|atom| {
                fetch(atom);
            });
            numbers.extend(some.into_iter().map(|atom| self.atoms.intern_atom(atom)));
        }
        let atoms = AbsorbedAtoms { first: other.first_atom, numbers };
        let nodes = self.dag.absorb(other.dag, |atom| atoms.atom(atom));
        self.roots.extend(other.roots.into_iter().map(|root| nodes.node(root)));
        atoms
    }

    /// Begins to fetch what adding these expressions will read. Returns the numbers of the terms that their predicates look
    /// at, in the order in which they are written.
    pub fn fetch<'a>(&self, expressions: impl Iterator<Item = &'a Expr>, terms: &mut Terms) -> Vec<TermId> {
        let mut numbers = Vec::with_capacity(256);
        let mut tags = Vec::with_capacity(256);
        for expression in expressions {
            for_each_literal(expression, &mut |predicate, operators| {
                let number = terms.intern_term(&predicate.term);
                numbers.push(number);
                let fetch = |operator| self.atoms.fetch(number, operator, &predicate.operands);
                tags.extend(operators.into_iter().flatten().map(fetch));
            });
        }
        tags.into_iter().for_each(|tag| self.atoms.fetch_atom(tag));
        numbers
    }

    /// Adds the next row. True if its normal form is exact for point events only.
    pub fn push(&mut self, expression: &Expr, terms: &mut Terms) -> bool {
        let normal = normal_form(expression, terms, &mut self.atoms);
        self.push_form(&normal.root);
        normal.point_only
    }

    /// Adds the next row by its form, over these atoms.
    pub fn push_form(&mut self, form: &Form) {
        self.roots.push(self.dag.root(form, &|literal| literal));
    }

    /// Adds the next row by a form over other atoms of the same attributes.
    pub fn push_normal(&mut self, form: &Form, atoms: &AtomTable) {
        let own: Vec<u32> = (0..atoms.len() as u32)
            .map(|there| {
                let atom = atoms.atom(there);
                self.atoms.intern(atom.attribute, atom.operator, &atom.operands)
            })
            .collect();
        let renumbered = |literal: Literal| Literal::new(own[literal.atom() as usize], literal.is_negated());
        self.roots.push(self.dag.root(form, &renumbered));
    }

    /// Begins to fetch what adding rows by these forms will read.
    pub fn fetch_forms<'a>(&self, forms: impl Iterator<Item = &'a Form>) {
        self.dag.fetch(forms);
    }

    /// How many predicates, nodes and children of nodes there are.
    pub fn size(&self) -> [usize; 3] {
        [self.atoms.len(), self.dag.nodes(), self.dag.child_count()]
    }

    /// Makes room for more rows, predicates, nodes and children; of nodes there may be fewer.
    pub fn reserve(&mut self, rows: usize, [atoms, nodes, children]: [usize; 3]) {
        self.roots.reserve_exact(rows);
        self.atoms.reserve(atoms);
        self.dag.reserve(nodes, children);
    }

    /// Ends the adding of rows: gives back what only finding equal predicates and nodes needs.
    pub fn seal(&mut self) {
        self.atoms.seal();
        self.dag.seal();
        self.roots.shrink_to_fit();
    }

    /// Bytes on the heap, roughly.
    pub fn bytes(&self) -> usize {
        self.atoms.bytes() + self.dag.bytes() + 4 * self.roots.capacity()
    }
}

/// What was collected over other forms, apart from them.
pub struct Detached {
    first_atom: u32,
    atoms: Vec<Atom>,
    dag: Dag,
    roots: Vec<u32>,
}

/// Which numbers the atoms of absorbed forms have.
pub struct AbsorbedAtoms {
    first: u32,
    numbers: Vec<u32>,
}

impl AbsorbedAtoms {
    pub fn atom(&self, there: u32) -> u32 {
        match there.checked_sub(self.first) {
            Some(own) => self.numbers[own as usize],
            None => there,
        }
    }
}

/// Takes rows over from other forms, one by one; what they share is mapped once.
pub struct Import<'a> {
    from: &'a Forms,
    /// The numbers that the other's attributes have here; empty if they are the same.
    terms: &'a [TermId],
    /// By number there, the number here or [`NO_NODE`].
    atoms: Vec<u32>,
    nodes: Vec<u32>,
}

impl<'a> Import<'a> {
    pub fn new(from: &'a Forms, terms: &'a [TermId]) -> Self {
        Self { from, terms, atoms: vec![NO_NODE; from.atoms.len()], nodes: vec![NO_NODE; from.dag.nodes()] }
    }

    /// Adds a row of the others as the next row of `into`.
    pub fn row(&mut self, row: u32, into: &mut Forms) {
        let Self { from, terms, atoms, nodes } = self;
        let Forms { atoms: own_atoms, dag, roots } = into;
        let mut atom = |there: u32| import_atom(from, terms, atoms, there, own_atoms);
        roots.push(dag.import(&from.dag, from.roots[row as usize], nodes, &mut atom));
    }
}

fn import_atom(from: &Forms, terms: &[TermId], known: &mut [u32], there: u32, into: &mut AtomTable) -> u32 {
    let here = &mut known[there as usize];
    if *here == NO_NODE {
        let atom = from.atoms.atom(there);
        let attribute = terms.get(atom.attribute.0 as usize).unwrap_or(&atom.attribute);
        *here = into.intern(*attribute, atom.operator, &atom.operands);
    }
    *here
}
