//! The normal forms of many rows: every distinct predicate and every distinct subexpression once.
//!
//! This is all that a layout is made from. Threads collect forms of their own and one takes over those
//! of the others; merges take over those of small segments. Taking over maps each distinct predicate and
//! node once, which is far cheaper than normalising every expression again.

use super::dag::{Dag, NO_NODE};
use crate::event::{TermId, Terms};
use crate::expr::Expr;
use crate::expr::atoms::{AtomTable, Literal};
use crate::expr::normal_form::{Form, normal_form};

#[derive(Default)]
pub struct Forms {
    pub atoms: AtomTable,
    pub dag: Dag,
    /// The node of each row.
    pub roots: Vec<u32>,
}

impl Forms {
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

    /// How many predicates, nodes and children of nodes there are.
    pub fn size(&self) -> [usize; 3] {
        [self.atoms.len(), self.dag.nodes(), self.dag.child_count()]
    }

    /// Makes room for more rows, predicates, nodes and children; of nodes there may be fewer.
    pub fn reserve(&mut self, rows: usize, [atoms, nodes, children]: [usize; 3]) {
        self.roots.reserve_exact(rows);
        self.atoms.reserve(atoms);
        self.dag.reserve(nodes, nodes.min(rows), children);
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

    /// The number here of a predicate there.
    pub fn atom(&mut self, there: u32, into: &mut Forms) -> u32 {
        import_atom(self.from, self.terms, &mut self.atoms, there, &mut into.atoms)
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
