//! What relevance needs of the rows of a segment: weights and leaves as written, ready to be added up.
//!
//! The layout has forgotten what was written (repetition, order, weights), so a row that is to be scored has
//! a small program of its own. It is there only in segments where some subscription has a weight; without
//! any, and for XORs nested deeply in one another, the record is decoded and scored by the definition
//! (`rank::score`).
//!
//! ```text
//! bounds        row → the highest relevance it can have for an event without weights; no array at all
//!               when no subscription has weights
//! code_off      row → its words in `code`; none for a row that must be scored by its record
//! code          the expression, NOT pushed down, in prefix order:
//!                 ALL n     n leaves without tests: a conjunction that holds has only true leaves
//!                 AND n     n nodes
//!                 OR n      n nodes
//!                 XOR n     n pairs of nodes: what counts when a child is true, and when it is false
//!                 LEAF      form and attribute; a weight in two words unless it is 1; the tests of the form
//! block_bounds  block of access entries → the highest bound of a row that it leads to
//! ```

use super::program::Leaf;
use crate::event::{AttrId, Attributes};
use crate::expr::atoms::{AtomTable, Literal};
use crate::expr::limits::MAX_DEPTH;
use crate::expr::normal_form::literal;
use crate::expr::{Expr, Predicate};
use crate::index::subscription::Subscription;
use crate::predicate::catalog::TRUE_BIT;
use crate::predicate::catalog_builder::{CatalogBuilder, LiteralTest};
use crate::rank::Scale;
use crate::rank::bounds::relevance_bound;
use crate::rank::score::weight_of;
use crate::snapshot::Buffer;

#[derive(Clone, Default)]
pub struct Scoring {
    pub bounds: Buffer<f64>,
    pub code_off: Buffer<u32>,
    pub code: Buffer<u32>,
    pub block_bounds: Buffer<f64>,
}

const OP_SHIFT: u32 = 30;
const ALL: u32 = 0 << OP_SHIFT;
const AND: u32 = 1 << OP_SHIFT;
const OR: u32 = 2 << OP_SHIFT;
const LEAF: u32 = 3 << OP_SHIFT;
const OPERAND: u32 = (1 << OP_SHIFT) - 1;

/// In an OR: it is a chain of XORs.
const XOR: u32 = OR | 1 << 29;
/// In an XOR: each step is negated (XNOR); the chain is asked to be false.
const NEGATES: u32 = 1 << 28;
const WANTS_FALSE: u32 = 1 << 27;
const XOR_OPERAND: u32 = WANTS_FALSE - 1;
/// XORs inside XORs that are written out: each level doubles the code below it.
const MAX_XOR_DEPTH: usize = 3;

/// In a leaf: its weight is 1 and not written.
const PLAIN: u32 = 1 << 29;
const FORM_SHIFT: u32 = 26;
const FORM: u32 = 7 << FORM_SHIFT;
/// The greatest number of an attribute that a leaf can name.
pub const MAX_ATTRIBUTE: u32 = (1 << FORM_SHIFT) - 1;

/// Which tests make a leaf true.
#[derive(Clone, Copy, Debug, PartialEq)]
#[repr(u32)]
enum Form {
    /// None is needed.
    True = 0,
    One = 1,
    Both = 2,
    Either = 3,
    /// The first, or the other two.
    OneOrBoth = 4,
}

impl Form {
    fn of(header: u32) -> Option<Self> {
        [Form::True, Form::One, Form::Both, Form::Either, Form::OneOrBoth]
            .get(((header & FORM) >> FORM_SHIFT) as usize)
            .copied()
    }

    fn tests(self) -> usize {
        match self {
            Form::True => 0,
            Form::One => 1,
            Form::Both | Form::Either => 2,
            Form::OneOrBoth => 3,
        }
    }
}

impl Scoring {
    /// Whether some subscription has weights.
    pub fn has_weights(&self) -> bool {
        !self.bounds.is_empty()
    }

    /// The highest relevance of a row for an event whose weights are at most 1.
    pub fn bound(&self, row: u32) -> f64 {
        self.bounds.get(row as usize).copied().unwrap_or(f64::INFINITY)
    }

    /// The relevance of a row that holds, given the bits of the event; `None` if the row has no program.
    #[inline]
    pub fn relevance(&self, row: u32, bits: &[u64], scale: &Scale) -> Option<f64> {
        let row = row as usize;
        let (from, to) = (*self.code_off.get(row)? as usize, self.code_off[row + 1] as usize);
        let first = *self.code[from..to].first()?;
        if first & !OPERAND == ALL && scale.is_plain() {
            // The bound of a conjunction is its sum, added up in the same order.
            return Some(self.bounds[row]);
        }
        let mut program = Program { code: &self.code[from..to], at: 0, bits, scale, relaxed: false };
        Some(program.node().1)
    }

    /// The sum of the true leaves of a row that was added as leaves; `None` if there is none that counts.
    #[inline]
    pub fn relaxed(&self, row: u32, bits: &[u64], scale: &Scale) -> Option<f64> {
        let (from, to) = (self.code_off[row as usize] as usize, self.code_off[row as usize + 1] as usize);
        let mut program = Program { code: &self.code[from..to], at: 0, bits, scale, relaxed: true };
        let (some, sum) = program.node();
        some.then_some(sum)
    }

    pub fn bytes(&self) -> usize {
        self.bounds.byte_len()
            + self.code_off.byte_len()
            + self.code.byte_len()
            + self.block_bounds.byte_len()
    }

    /// Whether every program ends where it should and names bits that exist; else the name of a section.
    pub fn validate(&self, rows: usize, blocks: usize, bits: u32) -> Result<(), &'static str> {
        let check = |holds: bool, section: &'static str| if holds { Ok(()) } else { Err(section) };
        check(self.bounds.is_empty() || self.bounds.len() == rows, "score_bounds")?;
        check(self.bounds.iter().all(|bound| *bound >= 0.0), "score_bounds")?;
        check(self.block_bounds.is_empty() || self.block_bounds.len() == blocks, "score_block_bounds")?;
        check(self.bounds.is_empty() == self.code_off.is_empty(), "score_code_offsets")?;
        if self.code_off.is_empty() {
            return check(self.code.is_empty(), "score_code");
        }
        check(self.code_off.len() == rows + 1 && self.code_off[0] == 0, "score_code_offsets")?;
        check(self.code_off[rows] as usize == self.code.len(), "score_code_offsets")?;
        check(self.code_off.is_sorted(), "score_code_offsets")?;
        for row in 0..rows {
            let code = &self.code[self.code_off[row] as usize..self.code_off[row + 1] as usize];
            let good = code.is_empty() || check_node(code, bits, true, MAX_DEPTH + 1) == Some(code.len());
            check(good, "score_code")?;
        }
        Ok(())
    }
}

/// The length of the node at the start of `code`, if it is sound.
fn check_node(code: &[u32], bits: u32, tested: bool, depth: usize) -> Option<usize> {
    let header = *code.first()?;
    if header & !OPERAND == LEAF {
        let form = Form::of(header)?;
        let weight = if header & PLAIN != 0 { 0 } else { 2 };
        let tests = code.get(1 + weight..1 + weight + form.tests())?;
        let good = |test: &u32| Leaf(*test).as_unit().is_none() && Leaf(*test).bit() < bits;
        let weight_is_good = weight == 0 || (0.0..f64::INFINITY).contains(&number(code[1], code[2]));
        return (tests.iter().all(good) && weight_is_good && (tested || tests.is_empty()))
            .then_some(1 + weight + form.tests());
    }
    let depth = depth.checked_sub(1)?;
    let mut at = 1;
    let (nodes, children) = match header & XOR == XOR {
        true => (2 * (header & XOR_OPERAND), header & XOR_OPERAND),
        false => (header & OPERAND, 1),
    };
    if children == 0 {
        return None;
    }
    for _ in 0..nodes {
        let is_leaf = code.get(at)? & !OPERAND == LEAF;
        if header & !OPERAND == ALL && !is_leaf {
            return None;
        }
        at += check_node(&code[at..], bits, header & !OPERAND != ALL, depth)?;
    }
    Some(at)
}

/// A program as it runs.
struct Program<'a> {
    code: &'a [u32],
    at: usize,
    bits: &'a [u64],
    scale: &'a Scale,
    /// Leaves of attributes that are left out are not true.
    relaxed: bool,
}

impl Program<'_> {
    fn word(&mut self) -> u32 {
        self.at += 1;
        self.code[self.at - 1]
    }

    /// Whether the next node is true, and what it counts.
    fn node(&mut self) -> (bool, f64) {
        let header = self.word();
        if header & !OPERAND == LEAF {
            return self.leaf(header);
        }
        if header & XOR == XOR {
            return self.xor(header);
        }
        let (mut all, mut any, mut sum) = (true, false, 0.0);
        for _ in 0..header & OPERAND {
            let (holds, amount) = self.node();
            all &= holds;
            any |= holds;
            sum += amount;
        }
        let holds = if header & !OPERAND == OR { any } else { all };
        (holds, if holds { sum } else { 0.0 })
    }

    /// A chain of XORs: what counts in its true case and in its false case, step by step.
    fn xor(&mut self, header: u32) -> (bool, f64) {
        let both = |a: (bool, f64), b: (bool, f64)| if a.0 && b.0 { (true, a.1 + b.1) } else { (false, 0.0) };
        let either = |a: (bool, f64), b: (bool, f64)| (a.0 || b.0, a.1 + b.1);
        let (mut if_true, mut if_false) = (self.node(), self.node());
        for _ in 1..header & XOR_OPERAND {
            let (t, f) = (self.node(), self.node());
            let differ = either(both(if_true, f), both(if_false, t));
            let agree = either(both(if_true, t), both(if_false, f));
            (if_true, if_false) = if header & NEGATES == 0 { (differ, agree) } else { (agree, differ) };
        }
        if header & WANTS_FALSE == 0 { if_true } else { if_false }
    }

    #[inline]
    fn leaf(&mut self, header: u32) -> (bool, f64) {
        let weight = if header & PLAIN != 0 { 1.0 } else { number(self.word(), self.word()) };
        let holds = match Form::of(header) {
            Some(Form::One) => self.test(),
            Some(Form::Both) => self.test() & self.test(),
            Some(Form::Either) => self.test() | self.test(),
            Some(Form::OneOrBoth) => self.test() | (self.test() & self.test()),
            Some(Form::True) | None => true,
        };
        let attribute = AttrId(header & MAX_ATTRIBUTE);
        let holds = holds && !(self.relaxed && self.scale.leaves_out(attribute));
        (holds, if holds { weight * self.scale.factor(attribute) } else { 0.0 })
    }

    fn test(&mut self) -> bool {
        let leaf = Leaf(self.word());
        let bit = leaf.bit();
        (self.bits[(bit >> 6) as usize] >> (bit & 63) ^ leaf.0 as u64) & 1 == 1
    }
}

fn number(low: u32, high: u32) -> f64 {
    f64::from_bits(low as u64 | (high as u64) << 32)
}

/// Collects the rows of a segment.
#[derive(Default)]
pub struct ScoringBuilder {
    bounds: Vec<f64>,
    code_off: Vec<u32>,
    /// As the finished code, but each leaf of a tree has its literal where its tests will be.
    code: Vec<u32>,
    /// Some subscription has a weight.
    weighted: bool,
}

/// In place of a literal: never true.
const NEVER: u32 = u32::MAX;

impl ScoringBuilder {
    /// Adds the next row. Before the first subscription with a weight nothing but a bound is kept.
    pub fn push(&mut self, subscription: &Subscription, attributes: &mut Attributes, atoms: &mut AtomTable) {
        let weight = |predicate: &Predicate| weight_of(predicate, &subscription.weights);
        self.weighted |= has_weights(subscription);
        self.bounds.push(relevance_bound(&subscription.expression, &weight));
        self.code_off.push(self.code.len() as u32);
        if self.weighted {
            let start = self.code.len();
            let mut writer =
                Writer { code: &mut self.code, weight: &weight, attributes, atoms, xor_depth: 0 };
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
    pub fn append(&mut self, other: Self, attributes: &[AttrId], mut atom: impl FnMut(u32) -> u32) {
        self.weighted |= other.weighted;
        self.bounds.extend_from_slice(&other.bounds);
        let ends = other.code_off.iter().skip(1).copied().chain([other.code.len() as u32]);
        for (from, to) in other.code_off.iter().copied().zip(ends) {
            self.code_off.push(self.code.len() as u32);
            let mut rest = &other.code[from as usize..to as usize];
            let is_flat = rest.first().is_some_and(|header| header & !OPERAND == ALL);
            while let Some((&header, after)) = rest.split_first() {
                rest = after;
                if header & !OPERAND != LEAF {
                    self.code.push(header);
                    continue;
                }
                let attribute = attributes[(header & MAX_ATTRIBUTE) as usize].0;
                self.code.push(header & !MAX_ATTRIBUTE | attribute);
                let weight = if header & PLAIN == 0 { 2 } else { 0 };
                self.code.extend_from_slice(&rest[..weight]);
                rest = &rest[weight..];
                if !is_flat {
                    self.code.push(match rest[0] {
                        NEVER => NEVER,
                        there => Literal::new(atom(Literal(there).atom()), Literal(there).is_negated()).0,
                    });
                    rest = &rest[1..];
                }
            }
        }
    }

    /// Adds the next row as a plain sum of leaves: attribute, weight, and the literal that makes it count.
    pub fn push_leaves(&mut self, leaves: &[(u32, f64, Option<Literal>)]) {
        self.weighted = true;
        self.code_off.push(self.code.len() as u32);
        self.code.push(OR | leaves.len() as u32);
        let mut bound = 0.0;
        for (attribute, weight, literal) in leaves {
            bound += weight;
            write_leaf(*attribute, *weight, &mut self.code);
            self.code.push(literal.map_or(NEVER, |literal| literal.0));
        }
        self.bounds.push(bound);
    }

    /// The bound of each row; empty when no subscription has weights.
    pub fn bounds(&self) -> &[f64] {
        if self.weighted { &self.bounds } else { &[] }
    }

    /// Puts tests in the place of literals.
    pub fn finish(mut self, catalog: &CatalogBuilder<'_>, block_bounds: Vec<f64>) -> Scoring {
        if !self.weighted || self.code.len() > u32::MAX as usize / 4 {
            return Scoring::default();
        }
        self.code_off.push(self.code.len() as u32);
        let (mut code, mut code_off) = (Vec::with_capacity(self.code.len()), vec![0]);
        for pair in self.code_off.windows(2) {
            let mut rest = &self.code[pair[0] as usize..pair[1] as usize];
            let is_flat = rest.first().is_some_and(|header| header & !OPERAND == ALL);
            while let Some((&header, after)) = rest.split_first() {
                let place = code.len();
                code.push(header);
                rest = after;
                if header & !OPERAND != LEAF {
                    continue;
                }
                if header & PLAIN == 0 {
                    code.extend_from_slice(&rest[..2]);
                    rest = &rest[2..];
                }
                if !is_flat {
                    let form = write_tests(rest[0], catalog, &mut code);
                    code[place] |= (form as u32) << FORM_SHIFT;
                    rest = &rest[1..];
                }
            }
            code_off.push(code.len() as u32);
        }
        code.shrink_to_fit();
        Scoring {
            bounds: self.bounds.into(),
            code_off: code_off.into(),
            code: code.into(),
            block_bounds: block_bounds.into(),
        }
    }
}

/// Whether a subscription has weights of any kind.
pub fn has_weights(subscription: &Subscription) -> bool {
    let mut boosted = !subscription.weights.is_empty();
    subscription.expression.for_each_predicate(&mut |predicate| boosted |= predicate.weight.is_some());
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
fn write_tests(of: u32, catalog: &CatalogBuilder<'_>, code: &mut Vec<u32>) -> Form {
    let cut = |table: u32, cut: u32, above: bool| {
        let table = catalog.cut_table(table);
        Leaf::set(if above { table.above } else { table.below } + cut).0
    };
    let test = if of == NEVER { LiteralTest::Never } else { catalog.test(Literal(of)) };
    let (form, tests) = match test {
        LiteralTest::Bit(bit) => (Form::One, vec![Leaf::set(bit).0]),
        LiteralTest::SetAndClear(set, clear) => (Form::Both, vec![Leaf::set(set).0, Leaf::clear(clear).0]),
        LiteralTest::AbsentOr(absent, set, clear) => {
            (Form::OneOrBoth, vec![Leaf::set(absent).0, Leaf::set(set).0, Leaf::clear(clear).0])
        }
        LiteralTest::Between { table, above: Some(above), below: Some(below) } => {
            (Form::Both, vec![cut(table, above, true), cut(table, below, false)])
        }
        LiteralTest::Between { table, above: Some(above), below: None } => {
            (Form::One, vec![cut(table, above, true)])
        }
        LiteralTest::Between { table, above: None, below: Some(below) } => {
            (Form::One, vec![cut(table, below, false)])
        }
        LiteralTest::Outside { table, below, above } => {
            (Form::Either, vec![cut(table, below, false), cut(table, above, true)])
        }
        LiteralTest::Between { above: None, below: None, .. } | LiteralTest::Never => {
            (Form::One, vec![Leaf::clear(TRUE_BIT).0])
        }
    };
    code.extend(tests);
    form
}

/// Writes the program of one row.
struct Writer<'a, W> {
    code: &'a mut Vec<u32>,
    weight: &'a W,
    attributes: &'a mut Attributes,
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
                self.code.push(ALL | leaves.len() as u32);
                leaves.into_iter().try_for_each(|predicate| self.leaf(predicate))
            }
        }
    }

    fn node(&mut self, expr: &Expr, polarity: bool) -> Option<()> {
        match expr {
            Expr::Constant(outcome) => {
                // An empty AND is true, an empty OR is not.
                let holds = if polarity { outcome.can_be_true } else { outcome.can_be_false };
                self.code.push(if holds { AND } else { OR });
                Some(())
            }
            Expr::Predicate(predicate) => {
                self.leaf(predicate)?;
                let literal = literal(predicate, polarity, self.attributes, self.atoms);
                self.code.push(literal.map_or(NEVER, |literal| literal.0));
                Some(())
            }
            Expr::Not(child) => self.node(child, !polarity),
            Expr::And(children) | Expr::Or(children) => {
                let is_and = matches!(expr, Expr::And(_)) == polarity;
                self.code.push(if is_and { AND } else { OR } | children.len() as u32);
                children.iter().try_for_each(|child| self.node(child, polarity))
            }
            Expr::Xor(children) | Expr::Xnor(children) => {
                if self.xor_depth == MAX_XOR_DEPTH {
                    return None;
                }
                let negates = if matches!(expr, Expr::Xnor(_)) { NEGATES } else { 0 };
                let wants = if polarity { 0 } else { WANTS_FALSE };
                self.code.push(XOR | negates | wants | children.len() as u32);
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

    /// Header and weight.
    fn leaf(&mut self, predicate: &Predicate) -> Option<()> {
        let attribute = self.attributes.intern(&predicate.attribute).0;
        if attribute > MAX_ATTRIBUTE {
            return None;
        }
        write_leaf(attribute, (self.weight)(predicate), self.code);
        Some(())
    }
}

fn write_leaf(attribute: u32, weight: f64, code: &mut Vec<u32>) {
    if weight == 1.0 {
        code.push(LEAF | PLAIN | attribute);
    } else {
        let bits = weight.to_bits();
        code.extend([LEAF | attribute, bits as u32, (bits >> 32) as u32]);
    }
}
