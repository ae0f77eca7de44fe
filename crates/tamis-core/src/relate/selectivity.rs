//! How often a predicate is true: given, counted on sample events, or estimated from similar predicates.
//!
//! For a predicate without data, others on the same attribute bound it (Bittner 2008, example 6.1): the value
//! of `x > 15` is between those of `x > 10` and `x > 20`, and that of `x = 15` is a share of their
//! difference. Without any data, the kind of predicate decides.

use rustc_hash::FxHashMap;

use super::tree::{Leaf, LeafId, Leaves, Tree};
use crate::error::{Error, ExpressionError};
use crate::event::{Event, EventSource, Terms, ValueRef};
use crate::expr::atoms::Literal;
use crate::expr::operators::{Operator, Shape};
use crate::expr::{Expr, evaluate};
use crate::predicate::bits::Bits;
use crate::predicate::catalog::Fired;
use crate::predicate::catalog_builder::{CatalogBuilder, LiteralTest};
use crate::term::Uses;

/// What is known of how often predicates are true.
#[derive(Clone, Default)]
pub struct Selectivities {
    known: std::sync::Arc<Known>,
}

#[derive(Default)]
struct Known {
    leaves: Leaves,
    /// By leaf, between 0 and 1.
    shares: Vec<f64>,
    /// By attribute: the numbers v of known `x > v` or `x >= v`, sorted, and how often those are true; the
    /// same for `<` and `<=`; and for `=`.
    above: FxHashMap<Box<str>, Vec<(f64, f64)>>,
    below: FxHashMap<Box<str>, Vec<(f64, f64)>>,
    equal: FxHashMap<Box<str>, Vec<(f64, f64)>>,
}

impl Selectivities {
    /// From predicates (or their negations) and how often they are true.
    pub fn new(known: impl IntoIterator<Item = (Expr, f64)>) -> Result<Self, Error> {
        let mut leaves = Leaves::default();
        let mut shares = vec![];
        for (expr, share) in known {
            if !(0.0..=1.0).contains(&share) {
                return Err(Error::Argument(format!(
                    "the selectivity of {expr} is {share}, which is not between 0 and 1"
                )));
            }
            let Tree::Leaf(id) = leaves.tree(&expr) else {
                let message = format!("{expr} has a selectivity, but it is not one predicate");
                return Err(ExpressionError::new(message)
                    .with_hint("give one for each of its predicates")
                    .into());
            };
            shares.resize(leaves.len(), share);
            shares[id.0 as usize] = share;
        }
        Ok(Self::with(leaves, shares))
    }

    /// Counted: how many of the events make each predicate of these expressions true.
    pub fn from_events<'e>(
        expressions: impl Iterator<Item = &'e Expr>,
        events: impl FnOnce(&Terms, &mut dyn FnMut(&dyn EventSource)) -> Result<(), Error>,
    ) -> Result<Self, Error> {
        let mut leaves = Leaves::default();
        expressions.for_each(|expr| drop(leaves.tree(expr)));
        // The parts that are XORs are evaluated as they stand, so their attributes must be read as well.
        let mut terms = leaves.terms().clone();
        let parts: Vec<(LeafId, &Expr)> = leaves
            .ids()
            .filter_map(|id| match leaves.leaf(id) {
                Leaf::Part(part) => Some((id, &**part)),
                Leaf::Literal(_) => None,
            })
            .collect();
        for (_, part) in &parts {
            part.for_each_predicate(&mut |predicate| {
                terms.intern_term(&predicate.term);
            });
        }
        for term in leaves.terms().iter() {
            terms.add_uses(term, Uses { all: 1, of_false: 1 });
        }
        let builder = CatalogBuilder::new(leaves.atoms());
        let catalog = builder.draft();
        let mut steps = vec![0i64; catalog.bits as usize + 1];
        let unnested = not_in_arrays(&leaves, &builder);
        let mut unnested_true = vec![0usize; unnested.len()];
        let mut parts_true = vec![0usize; parts.len()];
        let mut total = 0usize;
        events(&terms, &mut |source| {
            let (mut bits, mut event) = (Bits::default(), Event::default());
            for row in 0..source.len() {
                source.fill(row, &mut event);
                bits.reset(catalog.bits as usize);
                catalog.fire(&event, &mut bits, &mut Steps(&mut steps));
                for ((_, set, clear), count) in unnested.iter().zip(&mut unnested_true) {
                    *count += usize::from(bits.get(*set) && !bits.get(*clear));
                }
                let value_of = |name: &str| event.get(terms.get(name)?);
                for ((_, part), count) in parts.iter().zip(&mut parts_true) {
                    *count += usize::from(evaluate(part, &value_of).can_be_true);
                }
            }
            total += source.len();
        })?;
        let mut counts = steps;
        for bit in 1..counts.len() {
            counts[bit] += counts[bit - 1];
        }
        if total == 0 {
            return Ok(Self::default());
        }
        let mut shares = vec![0.0; leaves.len()];
        for id in leaves.ids() {
            if let Leaf::Literal(literal) = leaves.leaf(id) {
                let count = times_true(&builder, *literal, &counts);
                shares[id.0 as usize] = (count as f64 / total as f64).clamp(0.0, 1.0);
            }
        }
        for ((id, ..), count) in unnested.iter().zip(unnested_true) {
            shares[id.0 as usize] = count as f64 / total as f64;
        }
        for ((id, _), count) in parts.iter().zip(parts_true) {
            shares[id.0 as usize] = count as f64 / total as f64;
        }
        drop(builder);
        Ok(Self::with(leaves, shares))
    }

    fn with(leaves: Leaves, shares: Vec<f64>) -> Self {
        let mut known = Known { shares, ..Known::default() };
        for id in leaves.ids() {
            let Leaf::Literal(literal) = leaves.leaf(id) else { continue };
            let atom = leaves.atoms().atom(literal.atom());
            let table = match atom.operator {
                _ if literal.is_negated() => continue,
                Operator::GREATER | Operator::GREATER_OR_EQUAL => &mut known.above,
                Operator::LESS | Operator::LESS_OR_EQUAL => &mut known.below,
                Operator::EQUAL => &mut known.equal,
                _ => continue,
            };
            if let Some(number) = as_number(atom.operands[0].as_ref()) {
                let name = leaves.terms().name(atom.attribute);
                table.entry(name.into()).or_default().push((number, known.shares[id.0 as usize]));
            }
        }
        for table in [&mut known.above, &mut known.below, &mut known.equal] {
            table.values_mut().for_each(|list| list.sort_by(|a, b| a.0.total_cmp(&b.0)));
        }
        known.leaves = leaves;
        Self { known: known.into() }
    }

    /// How many predicates are known.
    pub fn len(&self) -> usize {
        self.known.shares.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All that is known: predicates and how often they are true.
    pub fn iter(&self) -> impl Iterator<Item = (Expr, f64)> {
        self.known.leaves.ids().map(|id| (self.known.leaves.expr(id), self.known.shares[id.0 as usize]))
    }

    /// How often an expression that is one predicate is true; `None` for others.
    pub fn of(&self, predicate: &Expr) -> Option<f64> {
        let mut leaves = Leaves::default();
        match leaves.tree(predicate) {
            Tree::Leaf(id) => Some(self.of_leaf(&leaves, id)),
            _ => None,
        }
    }

    /// For each leaf from number `first` on: how often it is true.
    pub(super) fn of_leaves(&self, leaves: &Leaves, first: usize) -> Vec<f64> {
        leaves.ids().skip(first).map(|id| self.of_leaf(leaves, id)).collect()
    }

    fn of_leaf(&self, leaves: &Leaves, id: LeafId) -> f64 {
        if let Some(known) = self.known.leaves.find(leaves, id) {
            return self.known.shares[known.0 as usize];
        }
        match leaves.leaf(id) {
            Leaf::Part(_) => 0.5,
            Leaf::Literal(literal) => {
                let atom = leaves.atoms().atom(literal.atom());
                let name = leaves.terms().name(atom.attribute);
                let positive = self.estimate(name, atom.operator.rules().shape(&atom.operands));
                if literal.is_negated() { 1.0 - positive } else { positive }
            }
        }
    }

    fn estimate(&self, name: &str, shape: Shape<'_>) -> f64 {
        let number = |bound: ValueRef<'_>| as_number(bound);
        match shape {
            Shape::Points(points) => {
                let each = points.iter().map(|point| {
                    as_number(point.as_ref()).and_then(|v| self.equal(name, v)).unwrap_or(PRIOR_POINT)
                });
                each.sum::<f64>().min(1.0)
            }
            Shape::Range { low: Some(low), high: None } => {
                number(low.value).and_then(|v| self.above(name, v)).unwrap_or(PRIOR_HALF_LINE)
            }
            Shape::Range { low: None, high: Some(high) } => {
                let above = number(high.value).and_then(|v| self.above(name, v));
                let below = number(high.value).and_then(|v| self.below(name, v));
                below.or(above.map(|above| 1.0 - above)).unwrap_or(PRIOR_HALF_LINE)
            }
            Shape::Range { low: Some(low), high: Some(high) } => {
                let share = |bound| number(bound).and_then(|v| self.above(name, v));
                match (share(low.value), share(high.value)) {
                    (Some(low), Some(high)) => (low - high).max(0.0),
                    _ => PRIOR_RANGE,
                }
            }
            Shape::Absent => PRIOR_ABSENT,
            Shape::Never => 0.0,
            _ => PRIOR_PATTERN,
        }
    }

    /// `x > v`, from what is known of other `>` and `<`.
    fn above(&self, name: &str, v: f64) -> Option<f64> {
        let by_above = self.known.above.get(name).and_then(|list| interpolate(list, v, (1.0, 0.0)));
        let by_below = || self.known.below.get(name).and_then(|list| interpolate(list, v, (0.0, 1.0)));
        by_above.or_else(|| by_below().map(|below| 1.0 - below))
    }

    fn below(&self, name: &str, v: f64) -> Option<f64> {
        self.known.below.get(name).and_then(|list| interpolate(list, v, (0.0, 1.0)))
    }

    /// `x = v`: the share that one value has of what lies between the neighbours, known values apart.
    fn equal(&self, name: &str, v: f64) -> Option<f64> {
        let list = self.known.above.get(name)?;
        let at = list.partition_point(|(operand, _)| *operand < v);
        let (low, high) = (list.get(at.checked_sub(1)?)?, list.get(at)?);
        let known: Vec<f64> = match self.known.equal.get(name) {
            Some(list) => list.iter().filter(|(x, _)| *x > low.0 && *x <= high.0).map(|(_, s)| *s).collect(),
            None => vec![],
        };
        let mass = (low.1 - high.1 - known.iter().sum::<f64>()).max(0.0);
        let values = ((high.0 - low.0).ceil() - known.len() as f64).max(1.0);
        Some(mass / values)
    }
}

/// Of which nothing is known.
const PRIOR_POINT: f64 = 0.05;
const PRIOR_HALF_LINE: f64 = 0.35;
const PRIOR_RANGE: f64 = 0.2;
const PRIOR_PATTERN: f64 = 0.05;
const PRIOR_ABSENT: f64 = 0.2;

/// On the line between the two neighbours; beyond the last, halfway to what it must tend to.
fn interpolate(list: &[(f64, f64)], v: f64, ends: (f64, f64)) -> Option<f64> {
    let at = list.partition_point(|(operand, _)| *operand < v);
    match (at.checked_sub(1).map(|before| list[before]), list.get(at)) {
        (Some(low), Some(high)) if high.0 > low.0 => {
            let share = (high.0 - v) / (high.0 - low.0);
            let share = if share.is_finite() { share } else { 0.5 };
            Some(high.1 + share * (low.1 - high.1))
        }
        (_, Some(high)) => Some(if high.0 == v { high.1 } else { (high.1 + ends.0) / 2.0 }),
        (Some(low), None) => Some((low.1 + ends.1) / 2.0),
        (None, None) => None,
    }
}

fn as_number(value: ValueRef<'_>) -> Option<f64> {
    match value {
        ValueRef::Timestamp(at) => Some(at as f64),
        _ => value.nearest_float().filter(|x| !x.is_nan()),
    }
}

/// The negated tests of array elements, each true when its first bit is set and its second is clear. An array
/// that holds the element and a null sets the second bit alone, so that the two cannot be counted apart.
fn not_in_arrays(leaves: &Leaves, builder: &CatalogBuilder) -> Vec<(LeafId, u32, u32)> {
    let on_arrays = |literal: &Literal| {
        let atom = leaves.atoms().atom(literal.atom());
        matches!(atom.operator.rules().shape(&atom.operands), Shape::Elements(_))
    };
    leaves
        .ids()
        .filter_map(|id| match leaves.leaf(id) {
            Leaf::Literal(literal) if on_arrays(literal) => match builder.test(*literal) {
                LiteralTest::SetAndClear(set, clear) => Some((id, set, clear)),
                _ => None,
            },
            _ => None,
        })
        .collect()
}

/// How many events made a literal true, given how many set each bit.
fn times_true(builder: &CatalogBuilder, literal: Literal, counts: &[i64]) -> i64 {
    let of = |bit: u32| counts[bit as usize];
    match builder.test(literal) {
        LiteralTest::Never => 0,
        LiteralTest::Bit(bit) => of(bit),
        LiteralTest::SetAndClear(set, clear) => of(set) - of(clear),
        LiteralTest::AbsentOr(absent, set, clear) => of(absent) + of(set) - of(clear),
        LiteralTest::Between { table, above, below } => {
            let table = builder.cut_table(table);
            let above = above.map(|cut| of(table.above + cut));
            let below = below.map(|cut| of(table.below + cut));
            match (above, below) {
                // Each value is above the one or below the other, or both, and on one side of every cut.
                (Some(above), Some(below)) => above + below - (of(table.above) + of(table.below)),
                (Some(one), None) | (None, Some(one)) => one,
                (None, None) => of(table.above) + of(table.below),
            }
        }
        LiteralTest::Outside { table, below, above } => {
            let table = builder.cut_table(table);
            of(table.below + below) + of(table.above + above)
        }
    }
}

/// Counts runs by where they start and end.
struct Steps<'a>(&'a mut [i64]);

impl Fired for Steps<'_> {
    fn key(&mut self, key: u32) {
        self.run(key, key + 1, 0);
    }

    fn run(&mut self, from: u32, to: u32, _: u32) {
        self.0[from as usize] += 1;
        self.0[to as usize] -= 1;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::event::Record;
    use crate::event::Unreadable;
    use crate::expr::parse;
    use crate::expr::testing::{any_event, any_expr, lookup};

    fn known(shares: &[(&str, f64)]) -> Selectivities {
        Selectivities::new(shares.iter().map(|(text, share)| (parse(text).unwrap(), *share))).unwrap()
    }

    #[test]
    fn neighbours_bound_what_was_never_seen() {
        let known =
            known(&[("x > 10", 0.8), ("x > 20", 0.4), ("x = 12", 0.1), ("y < 5", 0.3), ("NOT z", 0.2)]);
        let of = |text: &str| (known.of(&parse(text).unwrap()).unwrap() * 1e9).round() / 1e9;
        assert_eq!(of("x > 10"), 0.8);
        assert_eq!(of("x > 15"), 0.6, "halfway between its neighbours");
        assert_eq!(of("x > 30"), 0.2, "halfway to never");
        assert_eq!(of("x > 5"), 0.9, "halfway to always");
        assert_eq!(of("x = 15"), 0.033333333, "a ninth of what 12 leaves between 10 and 20");
        assert_eq!(of("x BETWEEN 15 AND 20"), 0.2);
        assert_eq!(of("x < 20"), 0.6, "what is not above");
        assert_eq!(of("y > 5"), 0.7, "what is not below");
        assert_eq!(of("NOT z"), 0.2);
        assert_eq!(known.of(&parse("x > 1 AND y > 1").unwrap()), None);
    }

    #[test]
    fn what_is_given_is_checked() {
        let refused = |text: &str, share| match Selectivities::new([(parse(text).unwrap(), share)]) {
            Ok(_) => panic!("{text} was taken"),
            Err(error) => error.to_string(),
        };
        assert!(refused("x > 1", 1.5).contains("not between 0 and 1"));
        assert!(refused("x > 1", f64::NAN).contains("not between 0 and 1"));
        assert!(refused("x > 1 AND y", 0.5).contains("not one predicate"));
    }

    proptest! {
        #[test]
        fn counts_are_what_evaluation_counts(
            exprs in prop::collection::vec(any_expr(3), 1..4), events in prop::collection::vec(any_event(), 1..12)
        ) {
            let record = |event: &crate::expr::testing::TestEvent| {
                let values = event.iter().map(|(name, value)| (*name, value.clone()));
                Record::new(values, []).unwrap()
            };
            let records: Vec<Record> = events.iter().map(record).collect();
            let counted = Selectivities::from_events(exprs.iter(), |terms, visit| {
                let resolved: Vec<Event<'_>> = records.iter().map(|record| record.resolve(terms)).collect();
                visit(&Rows(resolved));
                Ok(())
            }).unwrap();
            for (leaf, share) in counted.iter() {
                let is_true = |event: &&_| evaluate(&leaf, &lookup(event)).can_be_true;
                let expected = events.iter().filter(is_true).count() as f64 / events.len() as f64;
                prop_assert!((share - expected).abs() < 1e-9, "{} {} {}", leaf, share, expected);
            }
        }
    }

    struct Rows<'e>(Vec<Event<'e>>);

    impl EventSource for Rows<'_> {
        fn len(&self) -> usize {
            self.0.len()
        }

        fn fill<'a>(&'a self, row: usize, event: &mut Event<'a>) {
            event.clone_from(&self.0[row]);
        }

        fn unreadable(&self) -> Unreadable {
            Unreadable::default()
        }
    }
}
