//! The operators of the language. One operator is one file and one line in [`REGISTRY`].
//!
//! An operator says how it is written, which operands it takes, when it is true, and the *shape* of
//! its truth, from which an index chooses a structure. The negated form of an operator is undefined
//! exactly when the operator itself is, so operators describe their positive form only.

mod arrays;
mod between;
mod boolean_attribute;
mod case_variants;
mod comparison;
mod is_null;
mod like;
mod membership;
mod null_safe_equal;
mod operands;
mod regex_literals;
mod rlike;
mod shift_and;
mod string_parts;
mod text_shape;
pub mod truth_tested;
pub(super) mod wildcard;
mod xpath;

use std::fmt;

pub use text_shape::TextShape;

use super::ast::Outcome;
use crate::value::Kind;
use crate::value::cell::read_cell;
use crate::value::{Value, ValueRef};

/// How an operator is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Syntax {
    /// `name OP operand`, with the symbol of its negation if it has one (`=` and `!=`).
    Infix { symbol: &'static str, negated: Option<&'static str> },
    /// A keyword form that the parser knows: `IN (…)`, `BETWEEN … AND …`, `LIKE … ESCAPE …`, `IS NULL`.
    Keyword(&'static str),
    /// `name(attribute, operand)`.
    Function(&'static str),
    /// A boolean attribute on its own.
    Bare,
}

impl Syntax {
    /// Whether the negated form has a spelling of its own: `!=`, `NOT IN`, `IS NOT NULL`.
    pub fn has_negated_form(self) -> bool {
        match self {
            Syntax::Infix { negated, .. } => negated.is_some(),
            Syntax::Keyword(_) => true,
            Syntax::Function(_) | Syntax::Bare => false,
        }
    }
}

/// One end of a range.
#[derive(Clone, Copy, Debug)]
pub struct Bound<'a> {
    pub value: ValueRef<'a>,
    pub inclusive: bool,
}

/// For which values an operator is true: what an index needs to know to find it again.
///
/// It speaks of present values only, except `Absent`: whether an operator is true or false for an
/// absent attribute (`x <=> 5` is false, so `NOT x <=> 5` is true) is what
/// [`Rules::evaluate`] says of `None`.
#[derive(Clone, Debug)]
pub enum Shape<'a> {
    /// Exactly these scalars, all of one kind, sorted, without null.
    Points(&'a [Value]),
    /// The scalars between two ends of one kind; at least one end is given, and if both are, then
    /// low <= high.
    Range { low: Option<Bound<'a>>, high: Option<Bound<'a>> },
    /// Arrays that hold at least one of these scalars.
    Elements(&'a [Value]),
    /// Strings that start so; empty for every string.
    Prefix(&'a str),
    /// Strings that end so; never empty.
    Suffix(&'a str),
    /// Strings that contain this; never empty.
    Substring(&'a str),
    /// Only strings that contain at least one of these literals, and of those only some; none is empty.
    Literals(Vec<String>),
    /// Strings that have this shape in lower case ([`str::to_lowercase`]).
    LowerCase(TextShape),
    /// An absent attribute.
    Absent,
    /// No value at all. The operator may be undefined for every value (`x = NULL`) or false for
    /// some (`x IN ()`), so nothing follows for its negated form.
    Never,
    /// Nothing is known: ask [`Rules::evaluate`].
    Opaque,
}

impl Shape<'_> {
    /// Whether the text alone decides: patterns, but not points.
    pub fn is_of_text(&self) -> bool {
        matches!(
            self,
            Shape::Prefix(_)
                | Shape::Suffix(_)
                | Shape::Substring(_)
                | Shape::Literals(_)
                | Shape::LowerCase(_)
        )
    }
}

/// A predicate ready to be asked many times of a text in lower case.
pub type LowerCaseTest = Box<dyn Fn(&str) -> bool + Send + Sync>;

/// A predicate ready to be asked many times.
pub type Test = Box<dyn Fn(ValueRef<'_>) -> Outcome + Send + Sync>;

/// What an operator must say of itself.
pub trait Rules: Sync {
    /// The name in JSON, in error messages and in stored expressions. Never changes.
    fn name(&self) -> &'static str;

    fn syntax(&self) -> Syntax;

    /// Brings operands into canonical form (sets sorted, duplicates removed), or says in one
    /// sentence what is wrong with them.
    fn check(&self, operands: Vec<Value>) -> Result<Vec<Value>, String>;

    /// Whether [`check`](Self::check) would return these operands as they are, as far as this can be
    /// told cheaply and without allocating: enough to evaluate them without a panic.
    fn is_canonical(&self, operands: &[Value]) -> bool;

    /// The kind of value the attribute must have; another kind makes the predicate undefined.
    /// `None`: any kind will do.
    fn expects(&self, operands: &[Value]) -> Option<Kind>;

    /// The truth for one value. `None` is an absent attribute.
    ///
    /// Must be `UNDEFINED` for an absent value, except for null and truth tests, and for a value of another
    /// kind than [`expects`](Self::expects) says. For an interval, both bits may be set.
    fn evaluate(&self, value: Option<ValueRef<'_>>, operands: &[Value]) -> Outcome;

    fn shape<'a>(&self, operands: &'a [Value]) -> Shape<'a>;

    /// The operator that is true when this one is false and undefined when this one is, if it is in
    /// the registry (`<` and `>=`).
    fn complement(&self) -> Option<Operator> {
        None
    }

    /// Whether its negated form is simply "defined, and not true" for point values: true for all
    /// operators but those that can be undefined for a present value of the right kind.
    fn is_two_valued(&self, _operands: &[Value]) -> bool {
        true
    }

    /// What it counts at most where it is true, if that depends on the value: a path with weights. All others count 1.
    fn most_score(&self, operands: &[Value]) -> Option<f64> {
        let _ = operands;
        None
    }

    /// The truth for one value, and what counts there: 1, unless [`most_score`](Self::most_score) says that it depends on
    /// the value.
    fn evaluate_scored(&self, value: Option<ValueRef<'_>>, operands: &[Value]) -> (Outcome, f64) {
        (self.evaluate(value, operands), 1.0)
    }

    /// The operands without what only scores depend on; `None` if there is nothing of that kind.
    fn without_weights(&self, operands: &[Value]) -> Option<Box<[Value]>> {
        let _ = operands;
        None
    }

    /// A faster form of [`evaluate`](Self::evaluate) for present values, worth building once
    /// (a compiled regular expression).
    fn compile(&self, operands: &[Value]) -> Option<Test> {
        let _ = operands;
        None
    }

    /// The same for strings that are in lower case already. Only where the shape is [`Shape::LowerCase`], and only
    /// if case makes no difference to the operator.
    fn compile_lower_case(&self, operands: &[Value]) -> Option<LowerCaseTest> {
        let _ = operands;
        None
    }
}

/// A handle to a registered operator.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Operator(u8);

macro_rules! registry {
    ($($code:literal $constant:ident = $rules:path;)*) => {
        /// Every operator of the language. Adding one is adding a file and a line here.
        pub static REGISTRY: &[&dyn Rules] = &[$(&$rules),*];

        impl Operator {
            $(pub const $constant: Self = Self($code);)*
        }
    };
}

// The number is the place in the registry and the code in stored expressions: lines are added at the
// end, never moved or removed.
registry! {
    0 EQUAL = comparison::Equal;
    1 LESS = comparison::Less;
    2 LESS_OR_EQUAL = comparison::LessOrEqual;
    3 GREATER = comparison::Greater;
    4 GREATER_OR_EQUAL = comparison::GreaterOrEqual;
    5 NULL_SAFE_EQUAL = null_safe_equal::NullSafeEqual;
    6 IN = membership::In;
    7 BETWEEN = between::Between;
    8 IS_NULL = is_null::IsNull;
    9 LIKE = like::Like;
    10 ILIKE = like::ILike;
    11 STARTSWITH = string_parts::StartsWith;
    12 ENDSWITH = string_parts::EndsWith;
    13 CONTAINS = string_parts::Contains;
    14 RLIKE = rlike::RLike;
    15 ARRAY_CONTAINS = arrays::ArrayContains;
    16 ARRAYS_OVERLAP = arrays::ArraysOverlap;
    17 TRUTH = boolean_attribute::Truth;
    18 IS_TRUE = truth_tested::IsTrue;
    19 KNOWN = truth_tested::Known;
    20 XPATH = xpath::XPath;
}

impl Operator {
    /// The truth for one value, or what it can be for a set of values. `None` is an absent attribute.
    #[inline]
    pub fn outcome(self, value: Option<ValueRef<'_>>, operands: &[Value]) -> Outcome {
        match value {
            Some(ValueRef::Set(set)) if self != Operator::IS_TRUE && self != Operator::KNOWN => {
                set.outcome(self, operands)
            }
            Some(ValueRef::Cell(text)) => {
                self.with_reading(text, operands, |value| self.rules().evaluate(Some(value), operands))
            }
            value => self.rules().evaluate(value, operands),
        }
    }

    /// The same, and what counts there before the weight of the predicate; see [`Rules::evaluate_scored`]. Of a set of values
    /// the best one counts, whichever that is.
    pub fn outcome_scored(self, value: Option<ValueRef<'_>>, operands: &[Value]) -> (Outcome, f64) {
        let rules = self.rules();
        match value {
            Some(ValueRef::Set(_)) => {
                (self.outcome(value, operands), rules.most_score(operands).unwrap_or(1.0))
            }
            Some(ValueRef::Cell(text)) => {
                self.with_reading(text, operands, |value| rules.evaluate_scored(Some(value), operands))
            }
            value => rules.evaluate_scored(value, operands),
        }
    }

    /// Shows a cell as this operator reads it.
    fn with_reading<R>(self, text: &str, operands: &[Value], see: impl FnOnce(ValueRef<'_>) -> R) -> R {
        let read = self.is_about(operands).and_then(|kind| read_cell(text, kind));
        see(read.as_ref().map_or(ValueRef::Str(text), Value::as_ref))
    }

    /// The operator of that name, or `None`.
    pub fn named(name: &str) -> Option<Self> {
        REGISTRY.iter().position(|rules| rules.name() == name).map(|at| Self(at as u8))
    }

    /// The operator with that code in stored expressions, or `None`.
    pub fn from_code(code: u8) -> Option<Self> {
        ((code as usize) < REGISTRY.len()).then_some(Self(code))
    }

    /// The number of this operator in stored expressions. Never changes.
    pub fn code(self) -> u8 {
        self.0
    }

    pub fn rules(self) -> &'static dyn Rules {
        REGISTRY[self.0 as usize]
    }
}

impl fmt::Debug for Operator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.rules().name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_constant_names_its_own_line_of_the_registry() {
        let constants = [
            (Operator::EQUAL, "="),
            (Operator::LESS, "<"),
            (Operator::LESS_OR_EQUAL, "<="),
            (Operator::GREATER, ">"),
            (Operator::GREATER_OR_EQUAL, ">="),
            (Operator::NULL_SAFE_EQUAL, "<=>"),
            (Operator::IN, "IN"),
            (Operator::BETWEEN, "BETWEEN"),
            (Operator::IS_NULL, "IS NULL"),
            (Operator::LIKE, "LIKE"),
            (Operator::ILIKE, "ILIKE"),
            (Operator::STARTSWITH, "startswith"),
            (Operator::ENDSWITH, "endswith"),
            (Operator::CONTAINS, "contains"),
            (Operator::RLIKE, "RLIKE"),
            (Operator::ARRAY_CONTAINS, "array_contains"),
            (Operator::ARRAYS_OVERLAP, "arrays_overlap"),
            (Operator::TRUTH, "truth"),
            (Operator::IS_TRUE, "IS TRUE"),
            (Operator::KNOWN, "IS NOT UNKNOWN"),
            (Operator::XPATH, "xpath"),
        ];
        assert_eq!(constants.len(), REGISTRY.len());
        for (at, (operator, name)) in constants.into_iter().enumerate() {
            assert_eq!(operator.code() as usize, at);
            assert_eq!(operator.rules().name(), name);
            assert_eq!(Operator::named(name), Some(operator));
            assert_eq!(Operator::from_code(at as u8), Some(operator));
        }
        assert_eq!(Operator::from_code(REGISTRY.len() as u8), None);
    }

    #[test]
    fn complements_come_in_pairs() {
        for code in 0..REGISTRY.len() as u8 {
            let operator = Operator(code);
            if let Some(complement) = operator.rules().complement() {
                assert_ne!(complement, operator);
                assert_eq!(complement.rules().complement(), Some(operator));
            }
        }
    }
}
