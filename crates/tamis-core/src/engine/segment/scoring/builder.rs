//! Collects the rows of a segment, and writes their programs once the bits are known.

use super::Scoring;
use super::entry_bounds::EntryBounds;
use super::node::{
    LeafNode, MAX_ATTRIBUTE, MAX_COUNTED, MAX_LEAST, Node, NodeKind, XorChain, weight, weight_words,
};
use super::row_sketches::RowSketchesBuilder;
use crate::engine::segment::program::Leaf;
use crate::event::{TermId, Terms};
use crate::expr::atoms::{AtomTable, Literal};
use crate::expr::normal_form::literal;
use crate::expr::{Expr, Predicate};
use crate::predicate::catalog::TRUE_BIT;
use crate::predicate::catalog_builder::{CatalogBuilder, LiteralTest};
use crate::query::bounds::relevance_bound;
use crate::query::score::weight_of;
use crate::subscription::Subscription;

/// XORs inside XORs that are written out: each level doubles the code below it.
const MAX_XOR_DEPTH: usize = 3;

/// Collects the rows of a segment.
#[derive(Default)]
pub struct ScoringBuilder {
    bounds: Vec<f64>,
    code_off: Vec<u32>,
    /// Drafts of the programs: each leaf of a tree has its literal where its tests will be.
    code: Vec<u32>,
    /// Some subscription has a weight.
    weighted: bool,
}

/// In place of a literal: never true.
const NEVER: u32 = u32::MAX;

impl ScoringBuilder {
    /// Adds the next row. Before the first subscription with a weight nothing but a bound is kept.
    pub fn push(&mut self, subscription: &Subscription, terms: &mut Terms, atoms: &mut AtomTable) {
        let weight = |predicate: &Predicate| weight_of(predicate, &subscription.weights);
        self.weighted |= has_weights(subscription);
        self.bounds.push(relevance_bound(&subscription.expression, &weight));
        self.code_off.push(self.code.len() as u32);
        if self.weighted {
            let start = self.code.len();
            let mut writer = Writer { code: &mut self.code, weight: &weight, terms, atoms, xor_depth: 0 };
            if writer.row(&subscription.expression).is_none() {
                self.code.truncate(start);
            }
        }
    }

    /// Adds the next row, of a segment without weights: should one come later, it is scored by its record.
    pub fn push_unweighted(&mut self) {
        self.bounds.push(f64::INFINITY);
        self.code_off.push(self.code.len() as u32);
    }

    /// Adds the rows of another behind its own; attributes and atoms get the numbers that they have here.
    pub fn append(&mut self, other: Self, terms: &[TermId], mut atom: impl FnMut(u32) -> u32) {
        self.weighted |= other.weighted;
        self.bounds.extend_from_slice(&other.bounds);
        let ends = other.code_off.iter().skip(1).copied().chain([other.code.len() as u32]);
        for (from, to) in other.code_off.iter().copied().zip(ends) {
            self.code_off.push(self.code.len() as u32);
            for part in draft(&other.code[from as usize..to as usize]) {
                match part {
                    Draft::Node(node) => self.code.push(node.word()),
                    Draft::Leaf { leaf, weight, literal } => {
                        write_leaf(terms[leaf.attribute.0 as usize].0, weight, &mut self.code);
                        self.code.extend(literal.map(|literal| match literal {
                            NEVER => NEVER,
                            there => Literal::new(atom(Literal(there).atom()), Literal(there).is_negated()).0,
                        }));
                    }
                }
            }
        }
    }

    /// Adds the next row as a plain sum of leaves: attribute, weight, and the literal that makes it count.
    pub fn push_leaves(&mut self, leaves: &[(u32, f64, Option<Literal>)]) {
        self.weighted = true;
        self.code_off.push(self.code.len() as u32);
        self.code.push(Node::Or(leaves.len() as u32).word());
        let mut bound = 0.0;
        for (attribute, weight, literal) in leaves {
            bound += weight;
            write_leaf(*attribute, *weight, &mut self.code);
            self.code.push(literal.map_or(NEVER, |literal| literal.0));
        }
        self.bounds.push(bound);
    }

    /// Adds the next row, which is scored by its record and counts at most so much.
    pub fn push_scored_by_record(&mut self, bound: f64) {
        self.weighted = true;
        self.bounds.push(bound);
        self.code_off.push(self.code.len() as u32);
    }

    /// The bound of each row; empty when no subscription has weights.
    pub fn bounds(&self) -> &[f64] {
        if self.weighted { &self.bounds } else { &[] }
    }

    /// Puts tests in the place of literals. `order` lists the rows as their units are numbered.
    pub fn finish(mut self, catalog: &CatalogBuilder, order: &[u32], block_bounds: Vec<f64>) -> Scoring {
        if !self.weighted || self.code.len() > u32::MAX as usize / 4 {
            return Scoring::default();
        }
        self.code_off.push(self.code.len() as u32);
        let (mut code, mut code_off) = (Vec::with_capacity(self.code.len()), vec![0]);
        let mut sketches = RowSketchesBuilder::default();
        for pair in self.code_off.windows(2) {
            for part in draft(&self.code[pair[0] as usize..pair[1] as usize]) {
                match part {
                    Draft::Node(node) => code.push(node.word()),
                    Draft::Leaf { leaf, weight, literal } => {
                        let place = code.len();
                        write_leaf(leaf.attribute.0, weight, &mut code);
                        if let Some(literal) = literal {
                            let first_test = code.len();
                            let form = write_tests(literal, catalog, &mut code);
                            code[place] = Node::Leaf(LeafNode { form, ..leaf }).word();
                            sketches.add_leaf(form, &code[first_test..], weight);
                        }
                    }
                }
            }
            code_off.push(code.len() as u32);
            sketches.end_row();
        }
        code.shrink_to_fit();
        Scoring {
            bounds: self.bounds.into(),
            sketches: sketches.finish(order),
            entry_bounds: EntryBounds::default(),
            code_off: code_off.into(),
            code: code.into(),
            block_bounds: block_bounds.into(),
        }
    }
}

/// A part of a draft.
enum Draft {
    /// Not a leaf.
    Node(Node),
    /// Leaves of a flat row have no literal.
    Leaf { leaf: LeafNode, weight: f64, literal: Option<u32> },
}

/// The parts of the draft of one row, in order.
fn draft(mut words: &[u32]) -> impl Iterator<Item = Draft> + '_ {
    let mut take = move || {
        let (first, rest) = words.split_first()?;
        words = rest;
        Some(*first)
    };
    let mut is_flat = false;
    std::iter::from_fn(move || {
        let node = Node::read(take()?)?;
        let Node::Leaf(leaf) = node else {
            is_flat |= matches!(node, Node::All(_));
            return Some(Draft::Node(node));
        };
        let weight = if leaf.plain { 1.0 } else { weight([take()?, take()?]) };
        let literal = if is_flat { None } else { Some(take()?) };
        Some(Draft::Leaf { leaf, weight, literal })
    })
}

/// Whether a subscription has weights of any kind.
pub fn has_weights(subscription: &Subscription) -> bool {
    let mut boosted = !subscription.weights.is_empty();
    subscription.expression.for_each_predicate(&mut |predicate| {
        boosted |= predicate.weight.is_some() || predicate.is_scored_by_value();
    });
    boosted
}

/// The predicate under any number of NOTs.
fn maybe_negated(expr: &Expr) -> Option<&Predicate> {
    match expr {
        Expr::Predicate(predicate) => Some(predicate),
        Expr::Not(child) => maybe_negated(child),
        _ => None,
    }
}

/// Writes the tests of a literal and says how they are joined.
fn write_tests(of: u32, catalog: &CatalogBuilder, code: &mut Vec<u32>) -> NodeKind {
    let cut = |table: u32, cut: u32, above: bool| {
        let table = catalog.cut_table(table);
        Leaf::set(if above { table.above } else { table.below } + cut).0
    };
    let test = if of == NEVER { LiteralTest::Never } else { catalog.test(Literal(of)) };
    let (form, tests) = match test {
        LiteralTest::Bit(bit) => (NodeKind::One, vec![Leaf::set(bit).0]),
        // The first test tells what attribute a leaf is about, so it may not be the bit that is always set.
        LiteralTest::SetAndClear(TRUE_BIT, clear) => (NodeKind::One, vec![Leaf::clear(clear).0]),
        LiteralTest::SetAndClear(set, clear) => {
            (NodeKind::Both, vec![Leaf::set(set).0, Leaf::clear(clear).0])
        }
        LiteralTest::AbsentOr(absent, set, clear) => {
            (NodeKind::OneOrBoth, vec![Leaf::set(absent).0, Leaf::set(set).0, Leaf::clear(clear).0])
        }
        LiteralTest::Between { table, above: Some(above), below: Some(below) } => {
            (NodeKind::Both, vec![cut(table, above, true), cut(table, below, false)])
        }
        LiteralTest::Between { table, above: Some(above), below: None } => {
            (NodeKind::One, vec![cut(table, above, true)])
        }
        LiteralTest::Between { table, above: None, below: Some(below) } => {
            (NodeKind::One, vec![cut(table, below, false)])
        }
        LiteralTest::Outside { table, below, above } => {
            (NodeKind::Either, vec![cut(table, below, false), cut(table, above, true)])
        }
        LiteralTest::Between { above: None, below: None, .. } | LiteralTest::Never => {
            (NodeKind::One, vec![Leaf::clear(TRUE_BIT).0])
        }
    };
    code.extend(tests);
    form
}

/// Writes the draft of one row.
struct Writer<'a, W> {
    code: &'a mut Vec<u32>,
    weight: &'a W,
    terms: &'a mut Terms,
    atoms: &'a mut AtomTable,
    /// How many XORs there are around what is being written.
    xor_depth: usize,
}

impl<W: Fn(&Predicate) -> f64> Writer<'_, W> {
    /// `None` if the expression is scored by its record.
    fn row(&mut self, expr: &Expr) -> Option<()> {
        let conjunction = match expr {
            Expr::And(children) => &children[..],
            single => std::slice::from_ref(single),
        };
        let leaves: Option<Vec<&Predicate>> = conjunction.iter().map(maybe_negated).collect();
        match leaves {
            None => self.node(expr, true),
            Some(leaves) => {
                self.write(Node::All(leaves.len() as u32));
                leaves.into_iter().try_for_each(|predicate| self.leaf(predicate))
            }
        }
    }

    fn node(&mut self, expr: &Expr, polarity: bool) -> Option<()> {
        match expr {
            Expr::Constant(outcome) => {
                // An empty AND is true, an empty OR is not.
                let holds = if polarity { outcome.can_be_true } else { outcome.can_be_false };
                self.write(if holds { Node::And(0) } else { Node::Or(0) });
                Some(())
            }
            Expr::Predicate(predicate) => {
                self.leaf(predicate)?;
                let literal = literal(predicate, polarity, self.terms, self.atoms);
                self.code.push(literal.map_or(NEVER, |literal| literal.0));
                Some(())
            }
            Expr::Not(child) => self.node(child, !polarity),
            Expr::And(children) | Expr::Or(children) => {
                let is_and = matches!(expr, Expr::And(_)) == polarity;
                let count = children.len() as u32;
                self.write(if is_and { Node::And(count) } else { Node::Or(count) });
                children.iter().try_for_each(|child| self.node(child, polarity))
            }
            Expr::AtLeast(least, children) => {
                let least = if polarity { *least } else { children.len() - least + 1 } as u32;
                if least > MAX_LEAST || children.len() as u32 > MAX_COUNTED {
                    return None;
                }
                self.write(Node::AtLeast(least, children.len() as u32));
                children.iter().try_for_each(|child| self.node(child, polarity))
            }
            Expr::Xor(children) | Expr::Xnor(children) => {
                if self.xor_depth == MAX_XOR_DEPTH {
                    return None;
                }
                self.write(Node::Xor(XorChain {
                    children: children.len() as u32,
                    negates: matches!(expr, Expr::Xnor(_)),
                    wants_false: !polarity,
                }));
                self.xor_depth += 1;
                for child in children {
                    self.node(child, true)?;
                    self.node(child, false)?;
                }
                self.xor_depth -= 1;
                Some(())
            }
        }
    }

    fn write(&mut self, node: Node) {
        self.code.push(node.word());
    }

    /// Header and weight.
    fn leaf(&mut self, predicate: &Predicate) -> Option<()> {
        let attribute = self.terms.intern_term(&predicate.term).0;
        if attribute > MAX_ATTRIBUTE || predicate.is_scored_by_value() {
            return None;
        }
        write_leaf(attribute, (self.weight)(predicate), self.code);
        Some(())
    }
}

/// Header and weight of a leaf; its tests, if it gets any, set the form.
fn write_leaf(attribute: u32, weight: f64, code: &mut Vec<u32>) {
    let plain = weight == 1.0;
    code.push(Node::Leaf(LeafNode { attribute: TermId(attribute), form: NodeKind::True, plain }).word());
    if !plain {
        code.extend(weight_words(weight));
    }
}
