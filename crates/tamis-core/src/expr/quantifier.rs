//! Quantifiers: `exists(items, i -> i.price > 5)`, `forall`, and `any`, which takes a scalar as an array of one.
//!
//! A quantifier is a Boolean term. Its body is an expression in which the variable stands for an element; all other names
//! are attributes of the event. The truth is Spark's: `exists` is true if the body is true for some element, else
//! undefined if it is undefined for some, else false; `forall` is `NOT exists` of the negation.

use std::any::Any;
use std::sync::Arc;

use super::ast::{Expr, Outcome, Predicate};
use super::eval::evaluate;
use crate::error::ExpressionError;
use crate::term::{Argument, BooleanTerm, MAX_DEPTH, MAX_TEXT_BYTES, Term};
use crate::text::Name;
use crate::value::ValueRef;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantifier {
    Exists,
    Forall,
    /// Like `Exists`, but a value that is not an array counts as an array of one.
    Any,
}

impl Quantifier {
    pub fn named(name: &str) -> Option<Self> {
        [Self::Exists, Self::Forall, Self::Any].into_iter().find(|one| one.name().eq_ignore_ascii_case(name))
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Exists => "exists",
            Self::Forall => "forall",
            Self::Any => "any",
        }
    }
}

/// A quantified expression, as a term.
#[derive(Debug)]
pub struct Quantified {
    pub quantifier: Quantifier,
    /// The attribute that holds the array; [`STRINGS`](crate::term::STRINGS) for all strings of the event.
    pub array: Arc<str>,
    pub variable: Box<str>,
    pub body: Expr,
    text: Box<str>,
    family: Box<str>,
    /// The array, and the attributes of the event that the body names.
    inputs: Box<[Term]>,
    depth: usize,
}

impl Quantified {
    /// ```
    /// use tamis_core::expr::{parse, Quantified, Quantifier};
    /// let body = parse("i.price > least").unwrap();
    /// let term = Quantified::term(Quantifier::Exists, "items", "i", body).unwrap();
    /// assert_eq!(term.to_string(), "exists(items, i -> i.price > least)");
    /// ```
    pub fn term(
        quantifier: Quantifier,
        array: &str,
        variable: &str,
        mut body: Expr,
    ) -> Result<Term, ExpressionError> {
        // Truth tests write weights of 0. In here, nothing counts anyway.
        body.for_each_predicate_mut(&mut |predicate| {
            predicate.weight = predicate.weight.filter(|weight| *weight != 0.0);
        });
        let array_term = Term::attribute(array);
        let text = format!("{}({array_term}, {} -> {body})", quantifier.name(), Name(variable));
        if text.len() > MAX_TEXT_BYTES {
            return Err(ExpressionError::new(format!(
                "a quantifier of {} bytes is longer than the limit of {MAX_TEXT_BYTES}",
                text.len()
            )));
        }
        let mut inputs = vec![array_term];
        let (mut depth, mut has_weight) = (0, false);
        body.for_each_predicate(&mut |predicate| {
            has_weight |= predicate.weight.is_some() || predicate.is_scored_by_value();
            depth = depth.max(predicate.term.depth());
            for_each_name(&predicate.term, &mut |name| {
                let input = Term::attribute(name);
                if field_of(name, variable).is_none() && !inputs[1..].contains(&input) {
                    inputs.push(input);
                }
            });
        });
        if has_weight {
            return Err(ExpressionError::new("a predicate inside a quantifier has no weight")
                .with_hint("weigh the quantifier: exists(tags, t -> t = 'a')^2"));
        }
        if depth >= MAX_DEPTH {
            return Err(ExpressionError::new(format!(
                "quantifiers are nested deeper than {MAX_DEPTH} levels"
            )));
        }
        Ok(Term::Boolean(Arc::new(Self {
            quantifier,
            array: array.into(),
            variable: variable.into(),
            body,
            text: text.into(),
            family: format!("array {array}").into(),
            inputs: inputs.into(),
            depth: depth + 1,
        })))
    }

    /// The elements of a value; `None` if it has none.
    pub fn elements<'v, 'a>(&self, value: &'v ValueRef<'a>) -> Option<Elements<'v, 'a>> {
        match (value, self.quantifier) {
            (ValueRef::Array(items), _) => Some(Elements::Array(items)),
            (ValueRef::Null | ValueRef::Record, _) => None,
            (scalar, Quantifier::Any) if !scalar.is_set() => Some(Elements::Scalar(scalar)),
            _ => None,
        }
    }

    /// The body with other names: `rename` gives that of each field of the element, of the element itself, and of each
    /// attribute.
    pub fn renamed_body(&self, rename: &dyn Fn(Named<'_>) -> String) -> Result<Expr, ExpressionError> {
        let rename = |name: &str| match field_of(name, &self.variable) {
            Some(field) => rename(Named::OfElement(field)),
            None => rename(Named::Attribute(name)),
        };
        renamed(&self.body, &rename)
    }
}

/// A name in the body of a quantifier.
pub enum Named<'a> {
    /// A field of the element, or the element itself if it is empty.
    OfElement(&'a str),
    Attribute(&'a str),
}

pub enum Elements<'v, 'a> {
    Array(&'a [crate::value::Value]),
    Scalar(&'v ValueRef<'a>),
}

impl<'v, 'a> Elements<'v, 'a> {
    pub fn iter(&self) -> impl Iterator<Item = ValueRef<'a>> + use<'v, 'a> {
        let (items, scalar): (&'a [crate::value::Value], Option<ValueRef<'a>>) = match self {
            Self::Array(items) => (items, None),
            Self::Scalar(scalar) => (&[], Some(**scalar)),
        };
        items.iter().map(|item| item.as_ref()).chain(scalar)
    }
}

impl BooleanTerm for Quantified {
    fn text(&self) -> &str {
        &self.text
    }

    fn family(&self) -> &str {
        &self.family
    }

    fn inputs(&self) -> &[Term] {
        &self.inputs
    }

    fn truth(&self, inputs: &[ValueRef<'_>]) -> Option<bool> {
        if inputs.iter().any(|value| value.is_set()) {
            return None;
        }
        let outer = |name: &str| {
            let place = self.inputs[1..].iter().position(|input| input.name() == name)?;
            Some(inputs[place + 1])
        };
        // `forall` is false where the negation is true for some element.
        let found = if self.quantifier == Quantifier::Forall { Outcome::FALSE } else { Outcome::TRUE };
        let mut all_known = true;
        for element in self.elements(&inputs[0])?.iter() {
            let outcome = evaluate(&self.body, &|name| match field_of(name, &self.variable) {
                Some(field) => of_element(element, field),
                None => outer(name),
            });
            if outcome == found {
                return Some(found == Outcome::TRUE);
            }
            all_known &= outcome != Outcome::UNDEFINED;
        }
        all_known.then_some(found == Outcome::FALSE)
    }

    fn depth(&self) -> usize {
        self.depth
    }

    fn renamed(&self, rename: &dyn Fn(&str) -> String) -> Result<Term, ExpressionError> {
        let body = renamed(&self.body, &|name| match field_of(name, &self.variable) {
            Some(_) => name.to_owned(),
            None => rename(name),
        })?;
        Self::term(self.quantifier, &rename(&self.array), &self.variable, body)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// The field that a name means of a variable, empty for the variable itself; `None` if it means something else.
pub(crate) fn field_of<'n>(name: &'n str, variable: &str) -> Option<&'n str> {
    match name.strip_prefix(variable)? {
        "" => Some(""),
        rest => rest.strip_prefix('.'),
    }
}

/// The value of a field of an element, or of the element itself.
pub fn of_element<'a>(element: ValueRef<'a>, field: &str) -> Option<ValueRef<'a>> {
    match (element, field) {
        (ValueRef::Null, _) => None,
        (ValueRef::Fields(_), "") => Some(ValueRef::Record),
        (element, "") => Some(element),
        (ValueRef::Fields(fields), field) => {
            let at = fields.binary_search_by(|(name, _)| (**name).cmp(field)).ok()?;
            Some(fields[at].1.as_ref())
        }
        _ => None,
    }
}

/// Calls `visit` with every attribute that a term names, the moment of the query included.
fn for_each_name<'t>(term: &'t Term, visit: &mut dyn FnMut(&'t str)) {
    match term {
        Term::Attribute(name) => visit(name),
        Term::Computed(computed) => computed.arguments().iter().for_each(|argument| {
            if let Argument::Term(term) = argument {
                for_each_name(term, visit);
            }
        }),
        Term::Boolean(boolean) => boolean.inputs().iter().for_each(|input| for_each_name(input, visit)),
    }
}

fn renamed(expr: &Expr, rename: &dyn Fn(&str) -> String) -> Result<Expr, ExpressionError> {
    let all =
        |children: &[Expr]| children.iter().map(|child| renamed(child, rename)).collect::<Result<_, _>>();
    Ok(match expr {
        Expr::Constant(outcome) => Expr::Constant(*outcome),
        Expr::Predicate(predicate) => {
            Expr::Predicate(Predicate { term: predicate.term.renamed(rename)?, ..predicate.clone() })
        }
        Expr::Not(child) => Expr::Not(Box::new(renamed(child, rename)?)),
        Expr::And(children) => Expr::And(all(children)?),
        Expr::Or(children) => Expr::Or(all(children)?),
        Expr::Xor(children) => Expr::Xor(all(children)?),
        Expr::Xnor(children) => Expr::Xnor(all(children)?),
        Expr::AtLeast(least, children) => Expr::AtLeast(*least, all(children)?),
    })
}
