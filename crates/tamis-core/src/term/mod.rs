//! Terms: what predicates look at.
//!
//! The first kind of term is an attribute, whose value comes from the event. The other kind is computed from
//! values by a [`Function`]: `lower(name)`, `price * quantity`, `a < b`. An index keeps one table of its
//! terms ([`Terms`]); each is computed at most once for an event, whatever the number of expressions that
//! name it, and its predicates are indexed like those of an attribute.

pub(crate) mod boolean;
mod builtins;
pub(crate) mod function;
pub mod interval;
mod network;
pub(crate) mod place;
mod table;
#[cfg(test)]
mod tests;

use std::fmt::{self, Display, Formatter};
use std::hash::{Hash, Hasher};
use std::sync::Arc;

pub use boolean::BooleanTerm;
pub use function::{Function, Notation};
pub use network::network_ends;
pub use place::WithinShape;
pub use table::{TermId, Terms, Uses};

use crate::error::ExpressionError;
use crate::text::{LiteralText, Name};
use crate::value::{Kind, Value, ValueRef, cell};

/// The name of `current_timestamp()`: an attribute that no event brings. Its value is the moment of the query.
pub const NOW: &str = "current_timestamp()";
/// The name of `all_strings()`: an attribute that no event brings. Its value is the array of all strings of the event,
/// wherever they lie, and only a quantifier looks into it.
pub const STRINGS: &str = "all_strings()";
/// Levels of functions inside functions.
pub const MAX_DEPTH: usize = 32;
/// Bytes of the text of a computed term.
pub const MAX_TEXT_BYTES: usize = 16 << 10;

/// What a predicate looks at.
#[derive(Clone)]
pub enum Term {
    /// By its dotted path: `address.city` is the field `city` of the record `address`.
    Attribute(Arc<str>),
    Computed(Arc<Computed>),
    /// True, false or undefined, and found together with others of its family.
    Boolean(Arc<dyn BooleanTerm>),
}

/// A function and what it is applied to.
#[derive(Debug)]
pub struct Computed {
    function: Function,
    arguments: Box<[Argument]>,
    text: Box<str>,
    depth: usize,
}

/// What a function is applied to. An argument is a term unless it is written as a value.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Argument {
    Constant(Value),
    Term(Term),
}

impl Term {
    pub fn attribute(name: &str) -> Self {
        Self::Attribute(name.into())
    }

    /// The moment of the query: `current_timestamp()`.
    pub fn now() -> Self {
        Self::attribute(NOW)
    }

    /// A function of at least one term.
    ///
    /// ```
    /// use tamis_core::term::{Argument, Function, Term};
    /// let name = Argument::Term(Term::attribute("name"));
    /// let term = Term::computed(Function::named("lower").unwrap(), vec![name]).unwrap();
    /// assert_eq!(term.to_string(), "lower(name)");
    /// ```
    pub fn computed(function: Function, arguments: Vec<Argument>) -> Result<Self, ExpressionError> {
        function.check(&arguments)?;
        if let Some(boolean) = arguments.iter().find(|one| matches!(one, Argument::Term(Term::Boolean(_)))) {
            let message = format!("{boolean} is true or false: it cannot be part of a term");
            return Err(ExpressionError::new(message).with_hint("combine it with AND, OR and NOT"));
        }
        let depth = 1 + arguments.iter().map(Argument::depth).max().unwrap_or(0);
        if depth > MAX_DEPTH {
            return Err(ExpressionError::new(format!("functions are nested deeper than {MAX_DEPTH} levels")));
        }
        let text = function::Written { function, arguments: &arguments }.to_string();
        if text.len() > MAX_TEXT_BYTES {
            return Err(ExpressionError::new(format!(
                "a term of {} bytes is longer than the limit of {MAX_TEXT_BYTES}",
                text.len()
            )));
        }
        Ok(Self::Computed(Arc::new(Computed {
            function,
            arguments: arguments.into(),
            text: text.into(),
            depth,
        })))
    }

    /// The name of an attribute; the canonical text of anything else. Weights and dimensions name terms so.
    pub fn name(&self) -> &str {
        match self {
            Term::Attribute(name) => name,
            Term::Computed(computed) => &computed.text,
            Term::Boolean(boolean) => boolean.text(),
        }
    }

    pub fn is_computed(&self) -> bool {
        !matches!(self, Term::Attribute(_))
    }

    /// Calls `visit` with every attribute that the term needs of an event, from left to right.
    pub fn for_each_attribute<'a>(&'a self, visit: &mut impl FnMut(&'a Arc<str>)) {
        match self {
            Term::Attribute(name) if **name == *NOW => {}
            Term::Attribute(name) => visit(name),
            Term::Computed(computed) => {
                for argument in &computed.arguments {
                    if let Argument::Term(term) = argument {
                        term.for_each_attribute(visit);
                    }
                }
            }
            Term::Boolean(boolean) => {
                boolean.inputs().iter().for_each(|input| input.for_each_attribute(visit));
            }
        }
    }

    /// Shows the value of the term, computed from those of attributes; `None` when it is absent.
    ///
    /// This is the plain reading; an index computes its terms by [`Terms::compute`].
    pub fn with_value<'a, R>(
        &self,
        value_of: &impl Fn(&str) -> Option<ValueRef<'a>>,
        see: impl FnOnce(Option<ValueRef<'_>>) -> R,
    ) -> R {
        let present = |value: ValueRef<'_>| !matches!(value, ValueRef::Null);
        match self {
            Term::Attribute(name) => see(value_of(name).filter(|value| present(*value))),
            Term::Computed(computed) => {
                let value = computed.value(&|name| value_of(name));
                see(value.as_ref().map(Value::as_ref).filter(|value| present(*value)))
            }
            Term::Boolean(boolean) => see(truth(&**boolean, &|name| value_of(name)).map(ValueRef::Bool)),
        }
    }

    /// The same term of attributes with other names. The moment of the query keeps its own.
    pub fn renamed(&self, rename: &dyn Fn(&str) -> String) -> Result<Self, ExpressionError> {
        match self {
            Term::Attribute(name) if **name == *NOW => Ok(self.clone()),
            Term::Attribute(name) => Ok(Self::attribute(&rename(name))),
            Term::Computed(computed) => {
                let arguments = computed.arguments().iter().map(|argument| match argument {
                    Argument::Constant(value) => Ok(Argument::Constant(value.clone())),
                    Argument::Term(term) => term.renamed(rename).map(Argument::Term),
                });
                Self::computed(computed.function(), arguments.collect::<Result<_, _>>()?)
            }
            Term::Boolean(boolean) => boolean.renamed(rename),
        }
    }

    /// The kind of its values, where it is known before any event.
    pub fn kind(&self) -> Option<Kind> {
        match self {
            Term::Attribute(name) if **name == *NOW => Some(Kind::Timestamp),
            Term::Attribute(_) => None,
            Term::Computed(computed) => computed.function().gives(),
            Term::Boolean(_) => Some(Kind::Bool),
        }
    }

    pub fn depth(&self) -> usize {
        match self {
            Term::Attribute(_) => 0,
            Term::Computed(computed) => computed.depth,
            Term::Boolean(boolean) => boolean.depth(),
        }
    }
}

impl Computed {
    pub fn function(&self) -> Function {
        self.function
    }

    pub fn arguments(&self) -> &[Argument] {
        &self.arguments
    }

    fn value<'a>(&self, value_of: &dyn Fn(&str) -> Option<ValueRef<'a>>) -> Option<Value> {
        let values: Vec<Value> = self
            .arguments
            .iter()
            .map(|argument| match argument {
                Argument::Constant(value) => value.clone(),
                Argument::Term(Term::Attribute(name)) => {
                    value_of(name).map_or(Value::Null, ValueRef::to_owned)
                }
                Argument::Term(Term::Computed(inner)) => inner.value(value_of).unwrap_or(Value::Null),
                Argument::Term(Term::Boolean(inner)) => {
                    truth(&**inner, value_of).map_or(Value::Null, Value::Bool)
                }
            })
            .collect();
        let values: Vec<ValueRef<'_>> = values.iter().map(Value::as_ref).collect();
        self.function.compute(&values)
    }
}

/// A cell as Boolean terms read it; `None` for all other values.
fn guessed_cell(value: ValueRef<'_>) -> Option<Value> {
    match value {
        ValueRef::Cell(text) => Some(cell::guessed(text)),
        _ => None,
    }
}

/// The truth of a Boolean term, given the values of attributes.
fn truth<'a>(boolean: &dyn BooleanTerm, value_of: &dyn Fn(&str) -> Option<ValueRef<'a>>) -> Option<bool> {
    let computed: Vec<Option<Value>> = boolean
        .inputs()
        .iter()
        .map(|input| match input {
            Term::Computed(computed) => computed.value(value_of),
            _ => None,
        })
        .collect();
    let inputs = boolean.inputs().iter().zip(&computed).map(|(input, computed)| match input {
        Term::Attribute(name) => value_of(name).unwrap_or(ValueRef::Null),
        _ => computed.as_ref().map_or(ValueRef::Null, Value::as_ref),
    });
    let mut inputs: Vec<ValueRef<'_>> = inputs.collect();
    let guessed: Vec<Option<Value>> = inputs.iter().map(|value| guessed_cell(*value)).collect();
    for (input, guessed) in inputs.iter_mut().zip(&guessed) {
        *input = guessed.as_ref().map_or(*input, Value::as_ref);
    }
    boolean.truth(&inputs)
}

impl PartialEq for Term {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Term::Attribute(a), Term::Attribute(b)) => a == b,
            (Term::Computed(a), Term::Computed(b)) => a == b,
            (Term::Boolean(a), Term::Boolean(b)) => a.text() == b.text(),
            _ => false,
        }
    }
}

impl Eq for Term {}

impl Hash for Term {
    fn hash<H: Hasher>(&self, state: &mut H) {
        match self {
            Term::Attribute(name) => name.hash(state),
            Term::Computed(computed) => computed.hash(state),
            Term::Boolean(boolean) => boolean.text().hash(state),
        }
    }
}

impl Argument {
    fn depth(&self) -> usize {
        match self {
            Argument::Constant(_) => 0,
            Argument::Term(term) => term.depth(),
        }
    }
}

impl PartialEq for Computed {
    fn eq(&self, other: &Self) -> bool {
        self.function == other.function && self.arguments == other.arguments
    }
}

impl Eq for Computed {}

impl Hash for Computed {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.function.hash(state);
        self.arguments.hash(state);
    }
}

impl From<&str> for Term {
    fn from(name: &str) -> Self {
        Self::attribute(name)
    }
}

impl Display for Term {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Term::Attribute(name) if matches!(&**name, NOW | STRINGS) => f.write_str(name),
            Term::Attribute(name) => Name(name).fmt(f),
            Term::Computed(computed) => f.write_str(&computed.text),
            Term::Boolean(boolean) => f.write_str(boolean.text()),
        }
    }
}

impl fmt::Debug for Term {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        Display::fmt(self, f)
    }
}

impl Display for Argument {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Argument::Constant(value) => LiteralText(value).fmt(f),
            Argument::Term(term) => term.fmt(f),
        }
    }
}
