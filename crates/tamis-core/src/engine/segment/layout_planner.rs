//! Plans the matching half of a segment from normal forms.
//!
//! Forms → nodes (each distinct subexpression once) → units (nodes with their own code: whole expressions, and
//! subexpressions that several nodes share) → accesses. `layout_writer` writes the arrays.

use super::access_predicates::{Access, PackedAccess, plan};
use super::dag::{Dag, Gate, Ref, Target};
use super::forms::Forms;
use super::layout::{Layout, MAX_CODE};
use super::layout_writer::Plan;
use super::program::{CodeKind, EVEN, Leaf, ODD, PlannedLeaf, THRESHOLD, Tree};
use super::scoring::{Scoring, ScoringBuilder};
use super::selectivity::Selectivity;
use super::units::{Compiled, CompiledUnit, Rows, Unit, parents_first};
use crate::error::{Error, Result};
use crate::event::Event;
use crate::expr::atoms::{AtomTable, Literal};
use crate::predicate::catalog::TRUE_BIT;
use crate::predicate::catalog_builder::{CatalogBuilder, LiteralTest};

const NOT_A_UNIT: u32 = u32::MAX;
/// Units that are worth a thread.
const LEAST_PER_THREAD: usize = 4096;
/// Units that a thread compiles before what came out is taken over, so that little of it is there twice.
const MOST_PER_THREAD: usize = 8 * 1024;

/// How far ahead of compiling memory is fetched, in units.
const FETCH_AHEAD: usize = 4;

/// What sharing achieved.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sharing {
    pub predicates: usize,
    pub nodes: usize,
    pub written_nodes: usize,
}

/// What a layout was chosen by.
#[derive(Clone, Copy, Debug, Default)]
pub struct LayoutBasis {
    /// The events that selectivities were learnt from; without any they were guessed.
    pub samples: usize,
    /// Candidates that an event like those is expected to have.
    pub candidates: f64,
}

/// Lays everything out. `priorities` is empty or has one value per row; it orders candidates, and the bounds
/// of `scoring` do where priorities are equal. The layout is the same whatever the number of threads.
pub fn lay_out(
    mut forms: Forms,
    samples: &[Event<'_>],
    priorities: &[f64],
    scoring: ScoringBuilder,
    threads: usize,
) -> Result<(Layout, Scoring)> {
    forms.seal();
    Ok(plan_layout(&mut forms, samples, threads, false)?.lay_out(priorities, scoring, threads))
}

/// All that a layout takes, without the forms: they can go before the arrays are written. Unless they are kept, their
/// predicates go as soon as each has its bits.
pub fn plan_layout(forms: &mut Forms, samples: &[Event<'_>], threads: usize, are_kept: bool) -> Result<Plan> {
    let (atoms, nodes) = (forms.atoms.len(), forms.dag.nodes());
    let sharing = Sharing { predicates: atoms, nodes: nodes + atoms, written_nodes: written_nodes(forms) };
    let rows = Rows::group(&forms.roots, nodes);
    let catalog = CatalogBuilder::new(&forms.atoms);
    if !are_kept {
        forms.atoms = AtomTable::default();
        forms.roots = vec![];
    }
    let dag = &forms.dag;
    let selectivity = Selectivity::estimate(&catalog.draft(), samples);
    let mut planner = Planner {
        dag,
        atoms,
        rows: &rows,
        unit_of: vec![NOT_A_UNIT; dag.nodes()],
        // Room costs nothing until it is used.
        units: Vec::with_capacity(dag.nodes()),
        node_selectivity: vec![-1.0; dag.nodes()],
        literal_selectivity: vec![],
        selectivity,
        catalog,
        code: vec![],
        accesses: vec![],
        expected_candidates: 0.0,
    };
    planner.choose_units();
    planner.compile_units(threads)?;
    let Planner { units, code, accesses, catalog, expected_candidates, .. } = planner;
    let basis = LayoutBasis { samples: samples.len(), candidates: expected_candidates };
    Ok(Plan { catalog, rows, units, code, accesses, sharing, basis })
}

/// How many nodes all expressions had together when they were written.
fn written_nodes(forms: &Forms) -> usize {
    let of_node = forms.dag.written_nodes();
    forms.roots.iter().map(|root| of_node[*root as usize]).fold(0, u64::saturating_add) as usize
}

struct Planner<'a> {
    dag: &'a Dag,
    /// How many atoms there are.
    atoms: usize,
    rows: &'a Rows,
    unit_of: Vec<u32>,
    units: Vec<Unit>,
    node_selectivity: Vec<f64>,
    /// By literal: each is asked for once per node that has it.
    literal_selectivity: Vec<f64>,
    selectivity: Selectivity,
    catalog: CatalogBuilder,
    code: Vec<u32>,
    accesses: Vec<PackedAccess>,
    /// By the selectivities of the accesses that are in use.
    expected_candidates: f64,
}

impl Planner<'_> {
    fn choose_units(&mut self) {
        for node in 0..self.dag.nodes() as u32 {
            let counts = !matches!(self.dag.gate(node), Gate::And | Gate::Or);
            let has_rows = !self.rows.of(node).is_empty();
            if has_rows || counts || self.dag.parents(node) >= 2 {
                self.make_unit(node);
            }
            if counts {
                for child in self.dag.children(node) {
                    if let Target::Node(child) = child.target() {
                        self.make_unit(child);
                    }
                }
            }
        }
    }

    fn make_unit(&mut self, node: u32) {
        if self.unit_of[node as usize] == NOT_A_UNIT {
            self.unit_of[node as usize] = self.units.len() as u32;
            self.units.push(Unit {
                node,
                code: 0..0,
                kind: CodeKind::Conjunction,
                accesses: 0..0,
                remembered: self.dag.parents(node) > 0,
                active: !self.rows.of(node).is_empty(),
            });
        }
    }

    /// Compiles every unit, several threads a run of them each; what comes out does not depend on how many.
    fn compile_units(&mut self, threads: usize) -> Result<()> {
        let literals = (0..2 * self.atoms as u32).map(Literal);
        self.literal_selectivity =
            literals.map(|literal| self.literal(self.catalog.find_test(literal)).selectivity()).collect();
        for node in 0..self.dag.nodes() as u32 {
            self.node_selectivity[node as usize] = self.estimate(node);
        }
        let order = parents_first(&self.units);
        let run = order.len().div_ceil(threads).clamp(LEAST_PER_THREAD, MOST_PER_THREAD);
        for round in order.chunks(run * threads) {
            let planner = &*self;
            let compiled: Vec<(&[u32], Compiled)> = std::thread::scope(|scope| {
                let (first, others) = round.split_at(run.min(round.len()));
                let others: Vec<_> = others
                    .chunks(run)
                    .map(|run| scope.spawn(move || (run, planner.compile_run(run))))
                    .collect();
                let first = (first, planner.compile_run(first));
                let others = others.into_iter().map(|thread| thread.join().expect("no thread panics"));
                std::iter::once(first).chain(others).collect()
            });
            if self.code.is_empty() {
                let expected = |count: usize| (count * order.len()).div_ceil(round.len());
                let all = |count: fn(&Compiled) -> usize| compiled.iter().map(|(_, part)| count(part)).sum();
                self.code.reserve_exact(expected(all(|part| part.code.len())));
                self.accesses.reserve_exact(expected(all(|part| part.accesses.len())));
            }
            for (run, compiled) in compiled {
                self.take(run, compiled)?;
            }
        }
        Ok(())
    }

    fn compile_run(&self, units: &[u32]) -> Compiled {
        let mut compiled = Compiled { units: Vec::with_capacity(units.len()), ..Compiled::default() };
        for (at, unit) in units.iter().enumerate() {
            if let Some(later) = units.get(at + FETCH_AHEAD) {
                self.fetch_tests(self.units[*later as usize].node);
            }
            self.compile_unit(*unit, &mut compiled);
        }
        compiled
    }

    /// Fetches what the literals of a node stand for.
    fn fetch_tests(&self, node: u32) {
        for child in self.dag.children(node) {
            if let Target::Literal(literal) = child.target() {
                self.catalog.fetch(literal);
            }
        }
    }

    /// Adds what was compiled of the next units, parents first: when a unit's turn comes, it is known
    /// whether anybody waits for it, and if nobody does it needs no access.
    fn take(&mut self, units: &[u32], compiled: Compiled) -> Result<()> {
        let first_code = self.code.len();
        let accesses = self.accesses.len() + compiled.accesses.len();
        if first_code + compiled.code.len() >= MAX_CODE || u32::try_from(accesses).is_err() {
            return Err(Error::Argument("too many subscriptions for one segment".into()));
        }
        self.code.extend(compiled.code);
        let (mut code_at, mut access_at) = (0, 0);
        for (at, part) in units.iter().zip(compiled.units) {
            let accesses = &compiled.accesses[access_at..part.accesses_end as usize];
            let unit = &mut self.units[*at as usize];
            unit.kind = part.kind;
            unit.remembered |= part.remembered;
            unit.code = first_code as u32 + code_at..first_code as u32 + part.code_end;
            let first_access = self.accesses.len();
            if unit.active {
                self.accesses.extend_from_slice(accesses);
                self.expected_candidates += part.candidates;
            }
            unit.accesses = first_access as u32..self.accesses.len() as u32;
            for awaited in self.accesses[first_access..].iter().filter_map(PackedAccess::awaited) {
                self.units[awaited as usize].active = true;
            }
            (code_at, access_at) = (part.code_end, part.accesses_end as usize);
        }
        Ok(())
    }

    fn compile_unit(&self, unit: u32, out: &mut Compiled) {
        let Unit { node, mut remembered, .. } = self.units[unit as usize];
        let candidates;
        let kind = match self.dag.gate(node) {
            Gate::And | Gate::Or => {
                let mut tree = self.tree(node).arrange();
                let (often, accesses) = self.plan_accesses(&tree);
                candidates = often;
                if accesses.len() > 1 {
                    remembered = true;
                } else if !remembered {
                    tree = without_implied(tree, &accesses[0]);
                }
                self.keep(&accesses, out);
                tree.compile(&mut out.code)
            }
            gate @ (Gate::OddParity | Gate::EvenParity) => {
                out.code.push(if gate == Gate::OddParity { ODD } else { EVEN });
                candidates = self.compile_parity(node, out);
                remembered = true;
                CodeKind::Count
            }
            Gate::AtLeast(least) => {
                out.code.push(THRESHOLD + least);
                candidates = self.compile_threshold(node, least as usize, out);
                remembered = true;
                CodeKind::Count
            }
        };
        out.units.push(CompiledUnit {
            kind,
            remembered,
            candidates,
            code_end: out.code.len() as u32,
            accesses_end: out.accesses.len() as u32,
        });
    }

    fn keep(&self, accesses: &[Access], out: &mut Compiled) {
        let tables = self.catalog.cut_tables();
        out.accesses.extend(accesses.iter().map(|access| PackedAccess::new(access, tables)));
    }

    /// A parity is undefined unless each child is true or false, so both forms of the child that is
    /// defined least often are its accesses. Returns how often they fire.
    fn compile_parity(&self, node: u32, out: &mut Compiled) -> f64 {
        let pairs: Vec<(u32, u32)> = self
            .dag
            .children(node)
            .chunks_exact(2)
            .map(|pair| (self.unit_of_ref(pair[0]), self.unit_of_ref(pair[1])))
            .collect();
        for (t, f) in &pairs {
            out.code.extend([Leaf::unit(*t).0, Leaf::unit(*f).0]);
        }
        let rarest = pairs.iter().min_by(|a, b| self.pair_cost(a).total_cmp(&self.pair_cost(b)));
        for child in rarest.into_iter().flat_map(|(t, f)| [*t, *f]) {
            let leaf = PlannedLeaf {
                leaf: Leaf::unit(child),
                selectivity: self.node_selectivity[self.units[child as usize].node as usize],
                cut: None,
            };
            // That one child is true or false does not make the parity true.
            let accesses = plan(&Tree::Leaf(leaf), &|_| 1.0).1.into_iter();
            let accesses: Vec<_> = accesses.map(|access| Access { suffices: false, ..access }).collect();
            self.keep(&accesses, out);
        }
        rarest.map_or(0.0, |pair| self.pair_cost(pair))
    }

    /// Of all children but fewer than are needed, one must be true: the rarest of them are the accesses. Returns how often
    /// they fire.
    fn compile_threshold(&self, node: u32, least: usize, out: &mut Compiled) -> f64 {
        let mut leaves: Vec<PlannedLeaf> =
            self.dag.children(node).iter().map(|child| self.single_leaf(*child)).collect();
        let cost = |leaf: &PlannedLeaf| if leaf.leaf.is_bit_clear() { 1.0 } else { leaf.selectivity };
        leaves.sort_by(|a, b| cost(a).total_cmp(&cost(b)));
        out.code.extend(leaves.iter().map(|leaf| leaf.leaf.0));
        let needed = leaves.len() - least + 1;
        for leaf in &leaves[..needed] {
            let accesses = plan(&Tree::Leaf(*leaf), &|_| 1.0).1.into_iter();
            let accesses: Vec<_> = accesses.map(|access| Access { suffices: false, ..access }).collect();
            self.keep(&accesses, out);
        }
        leaves[..needed].iter().map(cost).sum()
    }

    /// The one test that a child of a threshold is: a bit, or its unit.
    fn single_leaf(&self, child: Ref) -> PlannedLeaf {
        let unit = self.unit_of_ref(child);
        let node = self.units[unit as usize].node;
        if let [only] = self.dag.children(node)
            && let Target::Literal(literal) = only.target()
            && let Tree::Leaf(leaf) = self.literal(self.catalog.test(literal))
        {
            return leaf;
        }
        let selectivity = self.node_selectivity[node as usize];
        PlannedLeaf { leaf: Leaf::unit(unit), selectivity, cut: None }
    }

    fn pair_cost(&self, (t, f): &(u32, u32)) -> f64 {
        [t, f].iter().map(|unit| self.node_selectivity[self.units[**unit as usize].node as usize]).sum()
    }

    fn unit_of_ref(&self, child: Ref) -> u32 {
        match child.target() {
            Target::Node(node) => self.unit_of[node as usize],
            Target::Literal(_) => unreachable!("children of parities and thresholds are nodes"),
        }
    }

    fn plan_accesses(&self, tree: &Tree) -> (f64, Vec<Access>) {
        plan(tree, &|table| {
            let table = self.catalog.cut_table(table);
            // Present means above the first cut or below it.
            self.selectivity.of_bit(table.above) + self.selectivity.of_bit(table.below)
        })
    }

    /// The tree of a node down to literals and other units.
    fn tree(&self, node: u32) -> Tree {
        let children = self.dag.children(node).iter().map(|child| match child.target() {
            Target::Literal(literal) => self.literal(self.catalog.test(literal)),
            Target::Node(child) => match self.unit_of[child as usize] {
                NOT_A_UNIT => self.tree(child),
                unit => Tree::Leaf(PlannedLeaf {
                    leaf: Leaf::unit(unit),
                    selectivity: self.node_selectivity[child as usize],
                    cut: None,
                }),
            },
        });
        match self.dag.gate(node) {
            Gate::And => Tree::And(children.collect()),
            Gate::Or if self.dag.children(node).is_empty() => self.never(),
            Gate::Or => Tree::Or(children.collect()),
            _ => unreachable!("parities and thresholds are units"),
        }
    }

    fn literal(&self, test: LiteralTest) -> Tree {
        let bit = |bit: u32| PlannedLeaf {
            leaf: Leaf::set(bit),
            selectivity: self.selectivity.of_bit(bit),
            cut: None,
        };
        let side = |table: u32, cut: u32, above: bool| {
            let first =
                if above { self.catalog.cut_table(table).above } else { self.catalog.cut_table(table).below };
            Tree::Leaf(PlannedLeaf { cut: Some((table, cut, above)), ..bit(first + cut) })
        };
        match test {
            LiteralTest::Bit(set) => Tree::Leaf(bit(set)),
            LiteralTest::SetAndClear(set, clear) => {
                let defined = self.selectivity.of_bit(set).max(1e-9);
                let clear = PlannedLeaf {
                    leaf: Leaf::clear(clear),
                    selectivity: (1.0 - self.selectivity.of_bit(clear) / defined).clamp(0.0, 1.0),
                    cut: None,
                };
                Tree::And(vec![Tree::Leaf(bit(set)), Tree::Leaf(clear)])
            }
            LiteralTest::AbsentOr(absent, set, clear) => {
                Tree::Or(vec![Tree::Leaf(bit(absent)), self.literal(LiteralTest::SetAndClear(set, clear))])
            }
            LiteralTest::Between { table, above: Some(above), below: Some(below) } => {
                Tree::And(vec![side(table, above, true), side(table, below, false)])
            }
            LiteralTest::Between { table, above: Some(above), below: None } => side(table, above, true),
            LiteralTest::Between { table, above: None, below: Some(below) } => side(table, below, false),
            LiteralTest::Between { above: None, below: None, .. } | LiteralTest::Never => self.never(),
            LiteralTest::Outside { table, below, above } => {
                Tree::Or(vec![side(table, below, false), side(table, above, true)])
            }
        }
    }

    fn never(&self) -> Tree {
        Tree::Leaf(PlannedLeaf { leaf: Leaf::clear(TRUE_BIT), selectivity: 0.0, cut: None })
    }

    /// Assumes that predicates are independent.
    fn estimate(&self, node: u32) -> f64 {
        let of = |child: &Ref| match child.target() {
            Target::Literal(literal) => self.literal_selectivity[literal.0 as usize],
            Target::Node(node) => self.node_selectivity[node as usize],
        };
        let children = self.dag.children(node);
        match self.dag.gate(node) {
            Gate::And => children.iter().map(of).product(),
            Gate::Or => 1.0 - children.iter().map(|child| 1.0 - of(child)).product::<f64>(),
            Gate::OddParity | Gate::EvenParity => {
                0.5 * children
                    .chunks_exact(2)
                    .map(|pair| (of(&pair[0]) + of(&pair[1])).min(1.0))
                    .product::<f64>()
            }
            Gate::AtLeast(least) => {
                let children: Vec<f64> = children.iter().map(of).collect();
                how_often_at_least(least as usize, &children)
            }
        }
    }
}

/// How often at least this many of independent tests hold.
fn how_often_at_least(least: usize, tests: &[f64]) -> f64 {
    const MOST_STEPS: usize = 1 << 14;
    if least.saturating_mul(tests.len()) > MOST_STEPS {
        // Markov's bound.
        return (tests.iter().sum::<f64>() / least as f64).min(1.0);
    }
    // How often each number below `least` of them holds.
    let mut fewer = vec![0.0; least];
    fewer[0] = 1.0;
    for test in tests {
        for count in (1..least).rev() {
            fewer[count] = fewer[count] * (1.0 - test) + fewer[count - 1] * test;
        }
        fewer[0] *= 1.0 - test;
    }
    (1.0 - fewer.iter().sum::<f64>()).clamp(0.0, 1.0)
}

/// Drops from the top AND of a tree what its only access has already established.
fn without_implied(tree: Tree, access: &Access) -> Tree {
    let known =
        |leaf: &PlannedLeaf| access.implied.contains(&Some(leaf.leaf)) || leaf.leaf == access.test.leaf;
    match tree {
        Tree::Leaf(leaf) if known(&leaf) => Tree::And(vec![]),
        Tree::And(mut children) => {
            children.retain(|child| !matches!(child, Tree::Leaf(leaf) if known(leaf)));
            Tree::And(children)
        }
        other => other,
    }
}
