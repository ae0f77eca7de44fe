//! The functions of the language. One function is one line in the table of [`functions`](super::builtins).
//!
//! A function says how it is written, which kinds of values it takes, and how it is computed. It is undefined
//! where Spark's `try_` functions are: on overflow, on division by zero, on a cast that fails. It is undefined for
//! absent arguments, for values of other kinds than it takes, and for intervals and other sets of values.

use std::fmt::{self, Display, Formatter};

use super::builtins::FUNCTIONS;
use super::{Argument, Term};
use crate::error::ExpressionError;
use crate::value::cell::{read_cell, read_pair};
use crate::value::{Kind, Value, ValueRef};

/// How a function is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notation {
    /// `lower(name)`.
    Call,
    /// `price * quantity`; a larger number binds more tightly.
    Infix(u8),
    /// `ts + INTERVAL 3 DAY`: the second argument counts the last of these units, and is written in the first that fits.
    Interval(&'static [(&'static str, i64)]),
    /// `CAST(price AS int)`, where the type is the name of the function after `CAST AS`.
    Cast(&'static str),
}

/// A comparison of two terms binds least of all.
pub const COMPARISON: u8 = 0;
pub const ADDITIVE: u8 = 1;
pub const MULTIPLICATIVE: u8 = 2;

/// What a function says of itself.
pub(super) struct Rules {
    pub name: &'static str,
    pub notation: Notation,
    /// The fewest and the most arguments.
    pub arity: (usize, usize),
    /// The kind that an argument must have, by its place; `None` where several will do. The last one also stands for
    /// the arguments after it.
    pub takes: &'static [Option<Kind>],
    /// The kind of its values, where there is only one.
    pub gives: Option<Kind>,
    /// Whether it is asked although an argument is absent (null).
    pub takes_nulls: bool,
    pub compute: fn(&[ValueRef<'_>]) -> Option<Value>,
}

/// A handle to a function.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Function(u8);

impl Function {
    /// The function of that name, in any case: `lower`, `+`, `cast as int`.
    pub fn named(name: &str) -> Option<Self> {
        FUNCTIONS.iter().position(|rules| rules.name.eq_ignore_ascii_case(name)).map(|at| Self(at as u8))
    }

    fn rules(self) -> &'static Rules {
        &FUNCTIONS[self.0 as usize]
    }

    pub fn name(self) -> &'static str {
        self.rules().name
    }

    pub fn notation(self) -> Notation {
        self.rules().notation
    }

    /// Whether its first argument is the name of a unit, which is written without quotes.
    pub fn starts_with_unit(self) -> bool {
        self.name() == "timestampdiff"
    }

    /// Every function there is.
    pub fn all() -> impl Iterator<Item = Self> {
        (0..FUNCTIONS.len() as u8).map(Self)
    }

    /// The names of all functions that are written as calls.
    pub fn call_names() -> impl Iterator<Item = &'static str> {
        FUNCTIONS.iter().filter(|rules| rules.notation == Notation::Call).map(|rules| rules.name)
    }

    /// The kind that the argument at this place must have, if only one will do.
    pub fn takes(self, place: usize) -> Option<Kind> {
        let takes = self.rules().takes;
        takes.get(place).or(takes.last()).copied().flatten()
    }

    /// The kind of its values, if there is only one.
    pub fn gives(self) -> Option<Kind> {
        self.rules().gives
    }

    /// Its value for these, where null stands for what is absent. `None` when it is undefined.
    pub fn compute(self, values: &[ValueRef<'_>]) -> Option<Value> {
        let rules = self.rules();
        if values.iter().any(|value| matches!(value, ValueRef::Cell(_))) {
            return self.compute_of_cells(values);
        }
        let refused =
            |value: &ValueRef<'_>| value.is_set() || matches!(value, ValueRef::Null) && !rules.takes_nulls;
        if values.iter().any(refused) {
            return None;
        }
        (rules.compute)(values).filter(|value| !matches!(value, Value::Null))
    }

    /// The same where some values are cells, which are read as the kind that the function takes there. The first value that
    /// is present stays what it is.
    #[cold]
    fn compute_of_cells(self, values: &[ValueRef<'_>]) -> Option<Value> {
        let rules = self.rules();
        let read: Vec<Value> = match rules.notation {
            Notation::Infix(COMPARISON) => read_pair([values[0], values[1]]).into(),
            _ => {
                let read =
                    values.iter().enumerate().map(|(place, value)| match (*value, self.takes(place)) {
                        (ValueRef::Cell(text), Some(kind)) => {
                            read_cell(text, kind).unwrap_or(Value::Str(text.into()))
                        }
                        (ValueRef::Cell(text), None) if !rules.takes_nulls => Value::Str(text.into()),
                        (value, _) => value.to_owned(),
                    });
                read.collect()
            }
        };
        let values: Vec<ValueRef<'_>> = read.iter().map(Value::as_ref).collect();
        if rules.takes_nulls && rules.notation == Notation::Call {
            return (rules.compute)(&values).filter(|value| !matches!(value, Value::Null));
        }
        self.compute(&values)
    }

    pub(super) fn check(self, arguments: &[Argument]) -> Result<(), ExpressionError> {
        let Rules { name, arity: (fewest, most), .. } = *self.rules();
        let count = arguments.len();
        if !(fewest..=most).contains(&count) {
            let takes = match (fewest, most) {
                (1, 1) => "one argument".into(),
                (fewest, most) if fewest == most => format!("{fewest} arguments"),
                (1, usize::MAX) => "at least one argument".into(),
                (fewest, usize::MAX) => format!("at least {fewest} arguments"),
                (fewest, most) => format!("{fewest} to {most} arguments"),
            };
            return Err(ExpressionError::new(format!("{name} takes {takes}, not {count}")));
        }
        for (place, argument) in arguments.iter().enumerate() {
            let (Some(wanted), Some(given)) = (self.takes(place), argument.kind()) else { continue };
            if wanted != given {
                let (wanted, given) = (wanted.with_article(), given.with_article());
                return Err(ExpressionError::new(format!(
                    "{name} takes {wanted}, but {argument} is {given}"
                )));
            }
        }
        self.check_constants(arguments)
    }

    /// Refuses constants for which the function is undefined whatever the other arguments are.
    fn check_constants(self, arguments: &[Argument]) -> Result<(), ExpressionError> {
        let text = |place: usize| match &arguments.get(place) {
            Some(Argument::Constant(Value::Str(text))) => Some(&**text),
            _ => None,
        };
        let is_constant = |argument: &Argument| matches!(argument, Argument::Constant(_));
        match self.name() {
            _ if self.notation() == Notation::Infix(COMPARISON) && arguments.iter().any(is_constant) => {
                Err(ExpressionError::new("a comparison with a value is a predicate, not a term")
                    .with_hint("combine predicates with AND, OR, XOR and XNOR: (a > 1) XNOR b is true where both are the same"))
            }
            "+ months" | "+ micros" => match &arguments[1] {
                Argument::Constant(Value::Int(_)) => Ok(()),
                _ => Err(ExpressionError::new("the length of an interval is a whole number")),
            },
            "timestampdiff" => match text(0) {
                Some(unit) if super::interval::fixed_unit(unit).is_some() => Ok(()),
                _ => Err(ExpressionError::new("timestampdiff takes the unit first").with_hint(
                    "units are week, day, hour, minute, second, millisecond and microsecond: timestampdiff(HOUR, start, end)",
                )),
            },
            "date_trunc" => match text(0) {
                Some(unit) if super::builtins::is_time_unit(unit) => Ok(()),
                unit => {
                    let message = match unit {
                        Some(unit) => format!("date_trunc knows no unit {unit:?}"),
                        None => "date_trunc takes the unit first, as a string".into(),
                    };
                    Err(ExpressionError::new(message).with_hint(
                        "units are year, quarter, month, week, day, hour, minute, second: date_trunc('HOUR', ts)",
                    ))
                }
            },
            "from_utc_timestamp" | "to_utc_timestamp" => match text(1) {
                Some(zone) if super::builtins::is_time_zone(zone) => Ok(()),
                _ => Err(ExpressionError::new(format!(
                    "{} takes the name of a time zone as a string",
                    self.name()
                ))
                .with_hint("write from_utc_timestamp(ts, 'Europe/Berlin')")),
            },
            _ => Ok(()),
        }
    }
}

impl Argument {
    /// The kind of its values, where it is known before any event.
    pub fn kind(&self) -> Option<Kind> {
        match self {
            Argument::Constant(value) => value.kind(),
            Argument::Term(term) => term.kind(),
        }
    }
}

impl fmt::Debug for Function {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A function with its arguments, as text that is read back as the same term.
pub(super) struct Written<'a> {
    pub function: Function,
    pub arguments: &'a [Argument],
}

impl Display for Written<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.function.notation() {
            Notation::Call => {
                write!(f, "{}(", self.function.name())?;
                for (at, argument) in self.arguments.iter().enumerate() {
                    f.write_str(if at > 0 { ", " } else { "" })?;
                    match argument {
                        Argument::Constant(Value::Str(unit))
                            if at == 0 && self.function.starts_with_unit() =>
                        {
                            f.write_str(&unit.to_ascii_uppercase())?;
                        }
                        argument => argument.fmt(f)?,
                    }
                }
                f.write_str(")")
            }
            Notation::Interval(units) => {
                operand(f, &self.arguments[0], ADDITIVE)?;
                let count = match self.arguments[1] {
                    Argument::Constant(Value::Int(count)) => count,
                    _ => 0,
                };
                let (unit, size) = units.iter().find(|(_, size)| count % size == 0).unwrap_or(&units[0]);
                let sign = if count < 0 { '-' } else { '+' };
                write!(f, " {sign} INTERVAL {} {unit}", count.unsigned_abs() / size.unsigned_abs())
            }
            Notation::Cast(to) => write!(f, "CAST({} AS {to})", self.arguments[0]),
            Notation::Infix(binding) => {
                operand(f, &self.arguments[0], binding)?;
                write!(f, " {} ", self.function.name())?;
                operand(f, &self.arguments[1], binding + 1)
            }
        }
    }
}

/// An operand in parentheses if it binds less tightly than `least`. Comparisons are never operands without them.
fn operand(f: &mut Formatter<'_>, argument: &Argument, least: u8) -> fmt::Result {
    let binding = match argument {
        Argument::Term(Term::Computed(computed)) => match computed.function().notation() {
            Notation::Infix(binding) => binding,
            Notation::Interval(_) => ADDITIVE,
            _ => u8::MAX,
        },
        _ => u8::MAX,
    };
    if binding < least.max(ADDITIVE) { write!(f, "({argument})") } else { argument.fmt(f) }
}
