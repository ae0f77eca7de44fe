//! The operators of the language. One operator is one file and one line in [`REGISTRY`].
//!
//! An operator says how it is written, which operands it takes, when it is true, and the *shape* of
//! its truth, from which an index chooses a structure. The negated form of an operator is undefined
//! exactly when the operator itself is, so operators describe their positive form only.

mod comparison;

use std::fmt;

use super::ast::Outcome;
use crate::event::value::Kind;
use crate::event::{Value, ValueRef};

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

/// One end of a range.
#[derive(Clone, Copy, Debug)]
pub struct Bound<'a> {
    pub value: ValueRef<'a>,
    pub inclusive: bool,
}

/// For which values an operator is true: what an index needs to know to find it again.
#[derive(Clone, Debug)]
pub enum Shape<'a> {
    /// Exactly these scalars, all of one kind, without null.
    Points(&'a [Value]),
    /// The scalars between two ends of one kind; at least one end is given.
    Range { low: Option<Bound<'a>>, high: Option<Bound<'a>> },
    /// Arrays that hold at least one of these scalars.
    Elements(&'a [Value]),
    /// Strings that start so.
    Prefix(&'a str),
    /// Strings that end so.
    Suffix(&'a str),
    /// Strings that contain this.
    Substring(&'a str),
    /// Only strings that contain at least one of these literals, and of those only some.
    Literals(Vec<String>),
    /// An absent attribute.
    Absent,
    /// No value at all: `x = NULL`.
    Never,
    /// Nothing is known: ask [`Rules::evaluate`].
    Opaque,
}

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

    /// The kind of value the attribute must have; another kind makes the predicate undefined.
    /// `None`: any kind will do.
    fn expects(&self, operands: &[Value]) -> Option<Kind>;

    /// The truth for one value. `None` is an absent attribute.
    ///
    /// Must be `UNDEFINED` for an absent value, except for null tests, and for a value of another
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

    /// A faster form of [`evaluate`](Self::evaluate) for present values, worth building once
    /// (a compiled regular expression).
    fn compile(&self, operands: &[Value]) -> Option<Test> {
        let _ = operands;
        None
    }
}

/// A handle to a registered operator.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Operator(u8);

/// Every operator of the language. Adding one is adding a file and a line here.
pub static REGISTRY: &[&dyn Rules] = &[
    &comparison::Equal,
    &comparison::Less,
    &comparison::LessOrEqual,
    &comparison::Greater,
    &comparison::GreaterOrEqual,
];

impl Operator {
    /// The operator of that name, or `None`.
    pub fn named(name: &str) -> Option<Self> {
        REGISTRY.iter().position(|rules| rules.name() == name).map(|at| Self(at as u8))
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
