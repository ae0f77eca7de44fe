//! The finitely many ways in which values of one attribute can differ for a set of predicates.
//!
//! The operands of the predicates cut the values of each kind into cells: each operand is one, and so is
//! each gap between two neighbours. All values of a cell give every predicate the same outcome, so one
//! value stands for all of them. Two more cells are the absent attribute, and a value of a kind that
//! no predicate expects. A prefix is a range of strings; other patterns cut strings in ways that do not follow
//! their order (see [`string_cells`](super::string_cells)).

use std::cmp::Ordering;

use rustc_hash::FxHashMap;

use super::string_cells;
use crate::event::value::Kind;
use crate::event::{Value, ValueRef, timestamp};
use crate::expr::Outcome;
use crate::expr::atoms::Atom;
use crate::expr::operators::{Operator, Shape, Test};

/// A set of truths: which of true, false and undefined are possible.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Truths(u8);

impl Truths {
    pub const NONE: Self = Self(0);
    pub const TRUE: Self = Self(1);
    pub const FALSE: Self = Self(2);
    pub const UNDEFINED: Self = Self(4);
    pub const ANY: Self = Self(7);
    const ALL: [Self; 3] = [Self::TRUE, Self::FALSE, Self::UNDEFINED];

    pub fn or_also(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub fn can_be(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// Of an outcome for a point value.
    pub fn of(outcome: Outcome) -> Self {
        match outcome {
            Outcome::TRUE => Self::TRUE,
            Outcome::FALSE => Self::FALSE,
            _ => Self::UNDEFINED,
        }
    }

    fn outcome(self) -> Outcome {
        match self {
            Self::TRUE => Outcome::TRUE,
            Self::FALSE => Outcome::FALSE,
            _ => Outcome::UNDEFINED,
        }
    }

    /// That at least this many of these are true.
    pub fn at_least(least: usize, children: &[Self]) -> Self {
        let count = |is: &dyn Fn(Self) -> bool| children.iter().filter(|child| is(**child)).count();
        if children.contains(&Self::NONE) {
            return Self::NONE;
        }
        let spare = children.len() - least;
        let mut possible = Self::NONE;
        if count(&|child| child.can_be(Self::TRUE)) >= least {
            possible = possible.or_also(Self::TRUE);
        }
        if count(&|child| child.can_be(Self::FALSE)) > spare {
            possible = possible.or_also(Self::FALSE);
        }
        // Too few must be true and too few false, and whatever else is left can be either.
        let is_open =
            count(&|child| child == Self::TRUE) < least && count(&|child| child == Self::FALSE) <= spare;
        if is_open && count(&|child| child.can_be(Self::UNDEFINED)) > 0 {
            possible = possible.or_also(Self::UNDEFINED);
        }
        possible
    }

    pub fn combine(self, other: Self, connective: impl Fn(Outcome, Outcome) -> Outcome) -> Self {
        let mut possible = Self::NONE;
        for left in Self::ALL.into_iter().filter(|truth| self.can_be(*truth)) {
            for right in Self::ALL.into_iter().filter(|truth| other.can_be(*truth)) {
                possible = possible.or_also(Self::of(connective(left.outcome(), right.outcome())));
            }
        }
        possible
    }
}

impl std::ops::Not for Truths {
    type Output = Self;

    fn not(self) -> Self {
        Self(self.0 & 4 | (self.0 & 1) << 1 | (self.0 & 2) >> 1)
    }
}

/// One class of values.
#[derive(Clone, Debug)]
pub struct Cell {
    /// For each predicate, in their order.
    pub truths: Vec<Truths>,
    /// One of its values. Without one, the cell may be empty.
    pub example: Option<Example>,
}

/// A value, or `None` for an absent attribute.
pub type Example = Option<Value>;

/// The predicates on one attribute, compiled, to be evaluated many times.
pub(super) struct CompiledPredicates<'a> {
    pub atoms: Vec<&'a Atom>,
    tests: Vec<Option<Test>>,
}

impl<'a> CompiledPredicates<'a> {
    pub fn new(atoms: Vec<&'a Atom>) -> Self {
        let tests = atoms.iter().map(|atom| atom.operator.rules().compile(&atom.operands)).collect();
        Self { atoms, tests }
    }

    /// What each predicate is for one value.
    pub fn truths(&self, value: Option<ValueRef<'_>>) -> Vec<Truths> {
        let compiled = self.atoms.iter().zip(&self.tests);
        compiled
            .map(|(atom, test)| match (test, value) {
                (Some(test), Some(value)) => Truths::of(test(value)),
                _ => Truths::of(atom.outcome(value)),
            })
            .collect()
    }

    pub fn shapes(&self) -> impl Iterator<Item = Shape<'a>> {
        self.atoms.iter().map(|atom| atom.operator.rules().shape(&atom.operands))
    }
}

/// All cells of an attribute with these predicates, different ones only. Takes what it needs from the
/// budget, in evaluations; `None` if that is not enough.
pub fn cells(atoms: Vec<&Atom>, budget: &mut usize) -> Option<Vec<Cell>> {
    let predicates = CompiledPredicates::new(atoms);
    let mut cuts = Cuts::default();
    let mut strings = string_cells::Strings::default();
    let mut elements = vec![];
    let mut is_opaque = false;
    for (at, (atom, shape)) in predicates.atoms.iter().zip(predicates.shapes()).enumerate() {
        let shape = match atom.operator.tested(&atom.operands) {
            // Whether it is known changes where the kind of value does, or an array holds what it looks for.
            Some(inner) if atom.operator == Operator::KNOWN => {
                let (_, operands) = inner.alike();
                let a_boolean = [Value::Bool(true)];
                let kinds = operands.iter().chain(inner.operands).chain(&a_boolean);
                kinds.for_each(|operand| cuts.add(operand.as_ref(), &mut strings));
                match inner.operator.rules().shape(inner.operands) {
                    elements @ Shape::Elements(_) => elements,
                    // Whether a string is a document no kind tells.
                    Shape::Opaque if inner.deciding_kind().is_none() => Shape::Opaque,
                    _ => continue,
                }
            }
            Some(inner) => inner.operator.rules().shape(inner.operands),
            None => shape,
        };
        match shape {
            Shape::Points(points) => points.iter().for_each(|point| cuts.add(point.as_ref(), &mut strings)),
            Shape::Range { low, high } => {
                for bound in [low, high].into_iter().flatten() {
                    cuts.add(bound.value, &mut strings);
                }
            }
            Shape::Prefix(prefix) => strings.add_prefix(prefix),
            Shape::Elements(members) => elements.extend(members.iter().cloned()),
            // What is never true (ends in reverse order, say) can still be false.
            Shape::Absent | Shape::Never => {
                atom.operands.iter().for_each(|operand| cuts.add(operand.as_ref(), &mut strings))
            }
            pattern => {
                is_opaque |= atom.operator.is_about(&atom.operands) != Some(Kind::Str);
                strings.add_pattern(at, &pattern, truths_of_pattern(atom));
            }
        }
    }
    let expects_array = |atom: &&Atom| atom.operator.is_about(&atom.operands) == Some(Kind::Array);
    let has_arrays = predicates.atoms.iter().any(expects_array);
    let array_count = if has_arrays { 8 << MOST_ELEMENTS } else { 0 };
    let work = (cuts.len() + strings.cell_count() + array_count).saturating_mul(predicates.atoms.len());
    *budget = budget.checked_sub(work)?;

    let mut found = Found { predicates, cells: vec![], seen: FxHashMap::default() };
    found.add(None);
    found.add(Some(Value::Record));
    cuts.values().into_iter().for_each(|value| found.add(Some(value)));
    strings.cells(&mut found);
    let arrays = if has_arrays { arrays(elements) } else { Some(vec![]) };
    let all_arrays_known = arrays.is_some();
    arrays.into_iter().flatten().for_each(|array| found.add(Some(array)));
    if is_opaque || !all_arrays_known {
        found.suppose(vec![Truths::ANY; found.predicates.atoms.len()]);
    }
    Some(found.cells)
}

/// What a predicate on strings is where its pattern holds, and for other strings.
fn truths_of_pattern(atom: &Atom) -> [Truths; 2] {
    let is_two_valued = |operator: Operator, operands: &[Value]| operator.rules().is_two_valued(operands);
    match atom.operator.tested(&atom.operands) {
        None if is_two_valued(atom.operator, &atom.operands) => [Truths::TRUE, Truths::FALSE],
        None => [Truths::TRUE, Truths::FALSE.or_also(Truths::UNDEFINED)],
        Some(inner) if !inner.negated => [Truths::TRUE, Truths::FALSE],
        Some(inner) if is_two_valued(inner.operator, inner.operands) => [Truths::FALSE, Truths::TRUE],
        Some(_) => [Truths::FALSE, Truths::TRUE.or_also(Truths::FALSE)],
    }
}

/// Each distinct cell once.
pub(super) struct Found<'a> {
    pub predicates: CompiledPredicates<'a>,
    cells: Vec<Cell>,
    seen: FxHashMap<Vec<Truths>, usize>,
}

impl Found<'_> {
    /// The cell of a value.
    pub fn add(&mut self, example: Example) {
        let truths = self.predicates.truths(example.as_ref().map(Value::as_ref));
        let at = self.suppose(truths);
        self.cells[at].example.get_or_insert(example);
    }

    /// A cell that may be empty, unless a value is found for it. Returns its place.
    pub fn suppose(&mut self, truths: Vec<Truths>) -> usize {
        let Self { cells, seen, .. } = self;
        *seen.entry(truths).or_insert_with_key(|truths| {
            cells.push(Cell { truths: truths.clone(), example: None });
            cells.len() - 1
        })
    }
}

/// The operands of each kind that has an order, strings apart.
#[derive(Default)]
struct Cuts {
    numbers: Vec<Value>,
    timestamps: Vec<i64>,
    booleans: bool,
}

impl Cuts {
    fn add(&mut self, operand: ValueRef<'_>, strings: &mut string_cells::Strings) {
        match operand {
            ValueRef::Int(_) | ValueRef::Float(_) | ValueRef::Decimal(_) => {
                self.numbers.push(operand.to_owned());
            }
            ValueRef::Timestamp(at) => self.timestamps.push(at),
            ValueRef::Bool(_) => self.booleans = true,
            ValueRef::Str(text) => strings.add_point(text),
            _ => {}
        }
    }

    fn len(&self) -> usize {
        2 * (self.numbers.len() + self.timestamps.len()) + 6
    }

    /// One value of each cell.
    fn values(mut self) -> Vec<Value> {
        let mut values = vec![];
        if self.booleans {
            values.extend([Value::Bool(false), Value::Bool(true)]);
        }
        if let Some(first) = self.timestamps.iter().copied().min() {
            self.timestamps.extend(first.checked_sub(1));
            let after = self.timestamps.iter().filter_map(|at| at.checked_add(1)).collect::<Vec<_>>();
            self.timestamps.extend(after);
            // The first value of a cell, and the first cell that will do, become the example.
            self.timestamps.sort_by_key(|at| !timestamp::can_be_written(*at));
            values.extend(self.timestamps.into_iter().map(Value::Timestamp));
        }
        if !self.numbers.is_empty() {
            self.numbers.push(Value::Float(f64::NEG_INFINITY));
            self.numbers.sort_by(order);
            self.numbers.dedup_by(|a, b| order(a, b).is_eq());
            let next = self.numbers.iter().skip(1).map(Some).chain([None]);
            let after: Vec<Value> = self
                .numbers
                .iter()
                .zip(next)
                .filter_map(|(number, next)| number_after(number, next))
                .collect();
            values.extend(self.numbers.into_iter().chain(after));
        }
        values
    }
}

/// A number above this one and below the next operand, if there is one: the nearest integer or float that
/// will do, or else a decimal.
fn number_after(number: &Value, next: Option<&Value>) -> Option<Value> {
    let float = number.as_ref().nearest_float()?;
    let as_integer = match *number {
        Value::Int(i) => Some(i),
        // Beyond 2^53 floats are whole and further apart than integers.
        Value::Float(x) if x.trunc() == x && x >= -(2f64.powi(63)) && x < 2f64.powi(63) => Some(x as i64),
        _ => None,
    };
    let next_float = match float {
        _ if float.is_nan() => None,
        f64::INFINITY => Some(f64::NAN),
        _ => Some(float.next_up()),
    };
    let candidates = [
        as_integer.and_then(|i| i.checked_add(1)).map(Value::Int),
        Some(Value::Float(float)),
        next_float.map(Value::Float),
    ];
    let least = candidates.into_iter().flatten().filter(|value| order(value, number).is_gt()).min_by(order);
    match next {
        Some(next) if least.as_ref().is_none_or(|least| order(least, next).is_ge()) => {
            Value::number_between(number, next)
        }
        _ => least,
    }
}

fn order(a: &Value, b: &Value) -> Ordering {
    a.as_ref().compare(b.as_ref()).expect("two numbers")
}

/// How many elements are told apart before all arrays are one class of which nothing is known.
const MOST_ELEMENTS: usize = 6;

/// One array for every way to hold some of the elements that are asked for, with and without a null
/// (which hides what is not found), and with nothing but other elements. `None` if there are too many.
fn arrays(mut elements: Vec<Value>) -> Option<Vec<Value>> {
    elements.sort_by(|a, b| {
        a.kind().cmp(&b.kind()).then_with(|| a.as_ref().compare(b.as_ref()).expect("one kind"))
    });
    elements.dedup_by(|a, b| a.as_ref().compare(b.as_ref()).is_some_and(|order| order.is_eq()));
    let mut arrays = vec![vec![], vec![Value::Null]];
    for kind in [Kind::Bool, Kind::Number, Kind::Str, Kind::Timestamp] {
        let of_kind: Vec<&Value> = elements.iter().filter(|element| element.kind() == Some(kind)).collect();
        if of_kind.len() > MOST_ELEMENTS {
            return None;
        }
        for chosen in 0..1usize << of_kind.len() {
            let held = of_kind.iter().enumerate().filter(|(at, _)| chosen >> at & 1 == 1);
            let mut array: Vec<Value> = held.map(|(_, element)| (*element).clone()).collect();
            if array.is_empty() {
                array.extend(another(kind, &of_kind));
            }
            let with_null = array.iter().cloned().chain([Value::Null]).collect();
            arrays.extend([array, with_null]);
        }
    }
    Some(arrays.into_iter().map(Value::Array).collect())
}

/// A value of a kind that is none of these, if there is one.
fn another(kind: Kind, not_these: &[&Value]) -> Option<Value> {
    let candidates: Vec<Value> = match kind {
        Kind::Bool => vec![Value::Bool(false), Value::Bool(true)],
        Kind::Number => (0..=MOST_ELEMENTS as i64).map(Value::Int).collect(),
        Kind::Timestamp => (0..=MOST_ELEMENTS as i64).map(Value::Timestamp).collect(),
        _ => (0..=MOST_ELEMENTS).map(|length| Value::Str("x".repeat(length).into())).collect(),
    };
    let is_free = |value: &Value| {
        not_these.iter().all(|other| value.as_ref().compare(other.as_ref()).is_none_or(|order| order.is_ne()))
    };
    candidates.into_iter().find(is_free)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn between_two_operands_there_is_a_number() {
        let after = |value| number_after(&value, None);
        assert_eq!(after(Value::Int(1 << 53)), Some(Value::Int((1 << 53) + 1)));
        assert_eq!(after(Value::Int(0)), Some(Value::Float(0.0f64.next_up())));
        assert_eq!(after(Value::Float(-0.0)), Some(Value::Float(0.0f64.next_up())));
        assert_eq!(after(Value::Int(i64::MAX)), Some(Value::Float(2f64.powi(63))));
        assert_eq!(after(Value::Int((1 << 60) - 1)), Some(Value::Int(1 << 60)));
        assert_eq!(after(Value::Float(f64::MAX)), Some(Value::Float(f64::INFINITY)));
        assert!(matches!(after(Value::Float(f64::INFINITY)), Some(Value::Float(x)) if x.is_nan()));
        assert_eq!(after(Value::Float(f64::NAN)), None);
        assert_eq!(
            after(Value::decimal("0.10000000000000000001").unwrap()),
            Some(Value::Float(0.1f64.next_up()))
        );
        let between = number_after(&Value::Float(0.1), Some(&Value::Float(0.1f64.next_up())));
        assert_eq!(between, Some(Value::decimal("0.100000000000000001").unwrap()));
        let between = number_after(&Value::Int(i64::MIN), Some(&Value::Int(i64::MIN + 1)));
        assert_eq!(between, Some(Value::decimal("-9223372036854775807.9").unwrap()));
        assert_eq!(number_after(&Value::Float(f64::MAX), Some(&Value::Float(f64::INFINITY))), None);
    }

    #[test]
    fn truths_combine_as_their_members_do() {
        let unsure = Truths::TRUE.or_also(Truths::UNDEFINED);
        assert_eq!(unsure.combine(Truths::FALSE, Outcome::and), Truths::FALSE);
        assert_eq!(unsure.combine(Truths::TRUE, Outcome::and), unsure);
        assert_eq!(!unsure, Truths::FALSE.or_also(Truths::UNDEFINED));
        assert_eq!(unsure.combine(Truths::TRUE, Outcome::or), Truths::TRUE);
    }
}
