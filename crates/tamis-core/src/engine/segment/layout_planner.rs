//! Plans the matching half of a segment from normal forms.
//!
//! Forms → nodes (each distinct subexpression once) → units (nodes with their own code: whole expressions, and
//! subexpressions that several nodes share) → accesses. `layout_writer` writes the arrays.

use std::ops::Range;

use super::access_predicates::{Access, MAX_KEYS, PackedAccess, plan};
use super::dag::{Dag, Gate, Ref, Target};
use super::forms::Forms;
use super::layout::{Layout, MAX_CODE};
use super::layout_writer::LayoutPlan;
use super::planned_code::put_words;
use super::program::{CodeKind, EVEN, Leaf, ODD, PlannedLeaf, THRESHOLD, Tree};
use super::scoring::{Scoring, ScoringBuilder};
use super::selectivity::Selectivity;
use super::threads::Threads;
use super::units::{Compiled, CompiledUnit, Rows, Units};
use crate::error::{Error, Result};
use crate::event::Event;
use crate::expr::atoms::{AtomTable, Literal};
use crate::heap::give_back_free_memory;
use crate::predicate::catalog::TRUE_BIT;
use crate::predicate::catalog_builder::{CatalogBuilder, LiteralTest};

const NOT_A_UNIT: u32 = u32::MAX;
/// Units that are worth a thread.
const LEAST_PER_THREAD: usize = 4096;
/// Units that a thread compiles before what came out is taken over, so that little of it is there twice.
const MOST_PER_THREAD: usize = 8 * 1024;

/// How far ahead of compiling memory is fetched, in units.
const FETCH_AHEAD: u32 = 4;

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
    threads: &Threads,
) -> Result<(Layout, Scoring)> {
    forms.seal();
    Ok(plan_layout(&mut forms, samples, threads, false)?.lay_out(priorities, scoring, threads))
}

/// All that a layout takes, without the forms. Unless they are kept, predicates go as soon as each has its bits, and nodes as
/// soon as they are compiled.
pub fn plan_layout(
    forms: &mut Forms,
    samples: &[Event<'_>],
    threads: &Threads,
    are_kept: bool,
) -> Result<LayoutPlan> {
    let (atoms, nodes) = (forms.atoms.len(), forms.dag.nodes());
    let sharing = Sharing { predicates: atoms, nodes: nodes + atoms, written_nodes: written_nodes(forms) };
    let rows = Rows::group(&forms.roots, nodes);
    let catalog = CatalogBuilder::new(&forms.atoms);
    if catalog.bits() >= MAX_KEYS {
        return Err(too_many());
    }
    if !are_kept {
        forms.atoms = AtomTable::default();
        forms.roots = vec![];
        // Operands are small and many: what they leave behind is no use for the arrays that follow.
        give_back_free_memory();
    }
    let dag = std::mem::take(&mut forms.dag);
    let selectivity = Selectivity::estimate(&catalog.draft(), samples);
    let mut planner = Planner {
        rows: &rows,
        unit_of: vec![NOT_A_UNIT; nodes],
        units: Units::default(),
        is_active: vec![],
        node_selectivity: Vec::with_capacity(nodes),
        dag,
        keeps_nodes: are_kept,
        selectivity,
        catalog,
        code: vec![],
        words: 0,
        accesses: vec![],
        expected_candidates: 0.0,
    };
    planner.choose_units();
    planner.estimate_nodes(atoms);
    planner.compile_units(threads)?;
    let Planner { dag, units, code, accesses, catalog, expected_candidates, .. } = planner;
    if are_kept {
        forms.dag = dag;
    }
    let basis = LayoutBasis { samples: samples.len(), candidates: expected_candidates };
    Ok(LayoutPlan { catalog, rows, units, code, accesses, sharing, basis })
}

/// How many nodes all expressions had together when they were written.
fn written_nodes(forms: &Forms) -> usize {
    let of_node = forms.dag.written_nodes();
    forms.roots.iter().map(|root| of_node[*root as usize]).fold(0, u64::saturating_add) as usize
}

struct Planner<'a> {
    dag: Dag,
    keeps_nodes: bool,
    rows: &'a Rows,
    unit_of: Vec<u32>,
    units: Units,
    /// By unit: a subscription, or some unit that has it as an access, waits for it to fire.
    is_active: Vec<bool>,
    node_selectivity: Vec<f64>,
    selectivity: Selectivity,
    catalog: CatalogBuilder,
    code: Vec<u8>,
    words: usize,
    accesses: Vec<PackedAccess>,
    /// By the selectivities of the accesses that are in use.
    expected_candidates: f64,
}

impl Planner<'_> {
    /// Numbers the units, parents first: children have lower nodes than their parents.
    fn choose_units(&mut self) {
        const CHOSEN: u32 = 0;
        let nodes = self.dag.nodes() as u32;
        let mut count = 0;
        for node in 0..nodes {
            let counts = !matches!(self.dag.gate(node), Gate::And | Gate::Or);
            let has_rows = !self.rows.of(node).is_empty();
            if has_rows || counts || self.dag.parents(node) >= 2 {
                self.unit_of[node as usize] = CHOSEN;
            }
            if counts {
                for child in self.dag.children(node) {
                    if let Target::Node(child) = child.target() {
                        self.unit_of[child as usize] = CHOSEN;
                    }
                }
            }
        }
        for unit in self.unit_of.iter_mut().rev().filter(|unit| **unit == CHOSEN) {
            *unit = count;
            count += 1;
        }
        let chosen = || (0..nodes).rev().filter(|node| self.unit_of[*node as usize] != NOT_A_UNIT);
        let units = chosen().map(|node| (node, self.dag.parents(node) > 0));
        self.is_active = chosen().map(|node| !self.rows.of(node).is_empty()).collect();
        self.units = Units::new(units, count as usize);
    }

    fn estimate_nodes(&mut self, atoms: usize) {
        // Each literal is asked for once per node that has it.
        let literals = (0..2 * atoms as u32).map(Literal);
        let literals: Vec<f64> =
            literals.map(|literal| self.literal(self.catalog.find_test(literal)).selectivity()).collect();
        for node in 0..self.dag.nodes() as u32 {
            let estimate = self.estimate(node, &literals);
            self.node_selectivity.push(estimate);
        }
    }

    /// Compiles every unit, several threads a run of them each; what comes out does not depend on how many.
    fn compile_units(&mut self, threads: &Threads) -> Result<()> {
        let units = self.units.len();
        if units >= MAX_KEYS {
            return Err(too_many());
        }
        let run = units.div_ceil(threads.all()).clamp(LEAST_PER_THREAD, MOST_PER_THREAD);
        let mut first = 0;
        while first < units {
            let others = threads.take((units - first).div_ceil(run) - 1);
            let end = units.min(first + run * (1 + others.count()));
            let planner = &*self;
            let compile = |start: usize| planner.compile_run(start as u32..end.min(start + run) as u32);
            let compiled: Vec<Compiled> = std::thread::scope(|scope| {
                let others = (first..end).step_by(run).skip(1);
                let others: Vec<_> = others.map(|start| scope.spawn(move || compile(start))).collect();
                let first = compile(first);
                let others = others.into_iter().map(|thread| thread.join().expect("no thread panics"));
                std::iter::once(first).chain(others).collect()
            });
            drop(others);
            if self.code.is_empty() {
                let expected = |count: usize| (count * units).div_ceil(end);
                let all = |count: fn(&Compiled) -> usize| compiled.iter().map(count).sum();
                self.code.reserve_exact(expected(all(|part| part.code.len())));
                self.accesses.reserve_exact(expected(all(|part| part.accesses.len())));
            }
            for (compiled, start) in compiled.into_iter().zip((first..end).step_by(run)) {
                self.take(start as u32, compiled)?;
            }
            if !self.keeps_nodes {
                self.forget_nodes(self.units.node(end as u32 - 1) as usize);
            }
            first = end;
        }
        Ok(())
    }

    /// Gives back what is known of the nodes from one on: no unit that is still to be compiled has them.
    fn forget_nodes(&mut self, from: usize) {
        self.dag.truncate(from);
        self.unit_of.truncate(from);
        self.unit_of.shrink_to_fit();
        self.node_selectivity.truncate(from);
        self.node_selectivity.shrink_to_fit();
    }

    fn compile_run(&self, units: Range<u32>) -> Compiled {
        let mut compiled = Compiled { units: Vec::with_capacity(units.len()), ..Compiled::default() };
        let mut code = vec![];
        for unit in units.clone() {
            if unit + FETCH_AHEAD < units.end {
                self.fetch_tests(self.units.node(unit + FETCH_AHEAD));
            }
            self.compile_unit(unit, &mut compiled, &mut code);
            put_words(&code, &mut compiled.code);
            code.clear();
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
    fn take(&mut self, first: u32, compiled: Compiled) -> Result<()> {
        let first_word = self.words;
        self.words += compiled.words;
        let accesses = self.accesses.len() + compiled.accesses.len();
        // Keys of intervals are fewer than accesses.
        if self.words >= MAX_CODE || accesses >= MAX_KEYS {
            return Err(too_many());
        }
        self.code.extend(compiled.code);
        let mut access_at = 0;
        for (unit, part) in (first..).zip(compiled.units) {
            if part.remembered {
                self.units.remember(unit);
            }
            if self.is_active[unit as usize] {
                self.expected_candidates += part.candidates;
                for access in &compiled.accesses[access_at..part.accesses_end as usize] {
                    let catalog = &mut self.catalog;
                    let access = PackedAccess::new(access, |table, above, below| {
                        catalog.want_interval(table, above, below)
                    });
                    if let Some(awaited) = access.awaited() {
                        self.is_active[awaited as usize] = true;
                    }
                    self.accesses.push(access);
                }
            }
            let code_end = first_word + part.code_end as usize;
            self.units.set_ends(unit, code_end, part.kind, self.accesses.len());
            access_at = part.accesses_end as usize;
        }
        Ok(())
    }

    /// Adds what a unit compiles to, its code to `code`.
    fn compile_unit(&self, unit: u32, out: &mut Compiled, code: &mut Vec<u32>) {
        let (node, mut remembered) = (self.units.node(unit), self.units.is_remembered(unit));
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
                out.accesses.extend(accesses);
                tree.compile(code)
            }
            gate @ (Gate::OddParity | Gate::EvenParity) => {
                code.push(if gate == Gate::OddParity { ODD } else { EVEN });
                candidates = self.compile_parity(node, out, code);
                remembered = true;
                CodeKind::Count
            }
            Gate::AtLeast(least) => {
                code.push(THRESHOLD + least);
                candidates = self.compile_threshold(node, least as usize, out, code);
                remembered = true;
                CodeKind::Count
            }
        };
        out.words += code.len();
        out.units.push(CompiledUnit {
            kind,
            remembered,
            candidates,
            code_end: out.words as u32,
            accesses_end: out.accesses.len() as u32,
        });
    }

    /// A parity is undefined unless each child is true or false, so both forms of the child that is
    /// defined least often are its accesses. Returns how often they fire.
    fn compile_parity(&self, node: u32, out: &mut Compiled, code: &mut Vec<u32>) -> f64 {
        let pairs: Vec<(u32, u32)> = self
            .dag
            .children(node)
            .chunks_exact(2)
            .map(|pair| (self.unit_of_ref(pair[0]), self.unit_of_ref(pair[1])))
            .collect();
        for (t, f) in &pairs {
            code.extend([Leaf::unit(*t).0, Leaf::unit(*f).0]);
        }
        let rarest = pairs.iter().min_by(|a, b| self.pair_cost(a).total_cmp(&self.pair_cost(b)));
        for child in rarest.into_iter().flat_map(|(t, f)| [*t, *f]) {
            let leaf = PlannedLeaf {
                leaf: Leaf::unit(child),
                selectivity: self.node_selectivity[self.units.node(child) as usize],
                cut: None,
            };
            // That one child is true or false does not make the parity true.
            let accesses = plan(&Tree::Leaf(leaf), &|_| 1.0).1.into_iter();
            out.accesses.extend(accesses.map(|access| Access { suffices: false, ..access }));
        }
        rarest.map_or(0.0, |pair| self.pair_cost(pair))
    }

    /// Of all children but fewer than are needed, one must be true: the rarest of them are the accesses. Returns how often
    /// they fire.
    fn compile_threshold(&self, node: u32, least: usize, out: &mut Compiled, code: &mut Vec<u32>) -> f64 {
        let mut leaves: Vec<PlannedLeaf> =
            self.dag.children(node).iter().map(|child| self.single_leaf(*child)).collect();
        let cost = |leaf: &PlannedLeaf| if leaf.leaf.is_bit_clear() { 1.0 } else { leaf.selectivity };
        leaves.sort_by(|a, b| cost(a).total_cmp(&cost(b)));
        code.extend(leaves.iter().map(|leaf| leaf.leaf.0));
        let needed = leaves.len() - least + 1;
        for leaf in &leaves[..needed] {
            let accesses = plan(&Tree::Leaf(*leaf), &|_| 1.0).1.into_iter();
            out.accesses.extend(accesses.map(|access| Access { suffices: false, ..access }));
        }
        leaves[..needed].iter().map(cost).sum()
    }

    /// The one test that a child of a threshold is: a bit, or its unit.
    fn single_leaf(&self, child: Ref) -> PlannedLeaf {
        let unit = self.unit_of_ref(child);
        let node = self.units.node(unit);
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
        [t, f].iter().map(|unit| self.node_selectivity[self.units.node(**unit) as usize]).sum()
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
    fn estimate(&self, node: u32, literals: &[f64]) -> f64 {
        let of = |child: &Ref| match child.target() {
            Target::Literal(literal) => literals[literal.0 as usize],
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

fn too_many() -> Error {
    Error::Argument("too many subscriptions for one segment".into())
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
