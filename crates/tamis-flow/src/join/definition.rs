//! The definition of a join, in a form that is equal for queries that join the same windows: sources are
//! called `s0`, `s1` and so on, whatever their aliases.

use std::cell::RefCell;
use std::collections::BTreeSet;

use tamis_core::expr::{Expr, Outcome, Predicate};
use tamis_core::term::{Argument, NOW, STRINGS, Term};
use tamis_core::{ExpressionError, Result};

use crate::rule::attributes;
use crate::text::{SelectText, SourceText};

/// The terms of two sources must be equal.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Equality {
    pub left: usize,
    pub left_term: Term,
    pub right: usize,
    pub right_term: Term,
}

#[derive(Debug)]
pub(crate) struct Definition {
    pub equalities: Vec<Equality>,
    /// The remaining conditions of ON and WHERE, over `s0.…`, `s1.…`.
    pub residual: Expr,
    pub columns: Vec<(String, Term)>,
}

impl Definition {
    pub fn new(written: &SelectText) -> Result<Self> {
        let names = Names { sources: &written.sources };
        let mut equalities: Vec<Equality> = vec![];
        let mut residual = vec![];
        for condition in &written.conditions {
            let children = match condition {
                Expr::And(children) => children.clone(),
                other => vec![other.clone()],
            };
            for child in children {
                let renamed = names.expression(&child)?;
                match equality(&renamed) {
                    Some(equality) if !equalities.contains(&equality) => equalities.push(equality),
                    Some(_) => {}
                    None => residual.push(renamed),
                }
            }
        }
        equalities.sort_by_key(Equality::to_string);
        let residual = match residual.len() {
            0 => Expr::Constant(Outcome::TRUE),
            1 => residual.remove(0),
            _ => Expr::And(residual),
        };
        let columns = written.columns.iter().map(|(name, term)| Ok((name.clone(), names.term(term)?)));
        let columns = columns.collect::<Result<_, ExpressionError>>()?;
        Ok(Self { equalities, residual, columns })
    }

    /// The attributes that the residual names: as `s1.price`, and as the source and its `price`.
    pub fn residual_attributes(&self) -> Vec<(String, usize, Box<str>)> {
        let mut names = BTreeSet::new();
        attributes(&self.residual, &mut names);
        let parts = names.into_iter().filter_map(|qualified| {
            let (source, name) = source_and_name(&qualified)?;
            let name = name.into();
            Some((qualified, source, name))
        });
        parts.collect()
    }
}

/// The source and the attribute that `s1.price` speaks of.
pub(super) fn source_and_name(qualified: &str) -> Option<(usize, &str)> {
    let (source, name) = qualified.split_once('.')?;
    Some((source.strip_prefix('s')?.parse().ok()?, name))
}

impl std::fmt::Display for Equality {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "s{}({}) = s{}({})", self.left, self.left_term, self.right, self.right_term)
    }
}

/// `s0.x = s1.y`, if that is what a predicate says.
fn equality(expression: &Expr) -> Option<Equality> {
    let Expr::Predicate(Predicate { term: Term::Computed(computed), negated: false, .. }) = expression else {
        return None;
    };
    // The truth of a comparison of two terms, tested for being true.
    let is_true = expression.to_string() == format!("{}", Term::Computed(computed.clone()));
    if computed.function().name() != "=" || !is_true {
        return None;
    }
    let [Argument::Term(left), Argument::Term(right)] = computed.arguments() else { return None };
    let (left_source, right_source) = (source_of(left)?, source_of(right)?);
    let (left, right) = (unqualified(left)?, unqualified(right)?);
    match left_source.cmp(&right_source) {
        std::cmp::Ordering::Less => {
            Some(Equality { left: left_source, left_term: left, right: right_source, right_term: right })
        }
        std::cmp::Ordering::Greater => {
            Some(Equality { left: right_source, left_term: right, right: left_source, right_term: left })
        }
        std::cmp::Ordering::Equal => None,
    }
}

/// The one source that a term speaks of.
fn source_of(term: &Term) -> Option<usize> {
    let mut sources = BTreeSet::new();
    term.for_each_attribute(&mut |name| {
        sources.insert(source_and_name(name).map(|(source, _)| source));
    });
    match sources.into_iter().collect::<Vec<_>>()[..] {
        [Some(source)] => Some(source),
        _ => None,
    }
}

/// The term with the attributes of the source itself.
fn unqualified(term: &Term) -> Option<Term> {
    renamed(term, &|name| Ok(name.split_once('.').map_or(name, |(_, attribute)| attribute).to_owned())).ok()
}

struct Names<'s> {
    sources: &'s [SourceText],
}

impl Names<'_> {
    fn name(&self, name: &str) -> Result<String, ExpressionError> {
        if name == NOW {
            let error = ExpressionError::new("the answer of a join cannot depend on the time of asking");
            return Err(error.with_hint("compare the times of rows with each other"));
        }
        if name == STRINGS {
            let error = ExpressionError::new("a join does not look into all strings of a row");
            return Err(error.with_hint("name an attribute: a.message LIKE '%x%'"));
        }
        let qualified = |at: usize, attribute: &str| Ok(format!("s{at}.{attribute}"));
        if let Some((alias, attribute)) = name.split_once('.')
            && let Some(at) = self.sources.iter().position(|source| source.alias == alias)
        {
            return qualified(at, attribute);
        }
        if let [_] = self.sources {
            return qualified(0, name);
        }
        let aliases: Vec<&str> = self.sources.iter().map(|source| &*source.alias).collect();
        let error = ExpressionError::new(format!("`{name}` does not say of which window it is"));
        Err(error.with_hint(format!("write {}.{name}; the windows are {}", aliases[0], aliases.join(", "))))
    }

    fn term(&self, term: &Term) -> Result<Term, ExpressionError> {
        renamed(term, &|name| self.name(name))
    }

    fn expression(&self, expression: &Expr) -> Result<Expr, ExpressionError> {
        let each = |children: &[Expr]| {
            children.iter().map(|child| self.expression(child)).collect::<Result<Vec<_>, _>>()
        };
        Ok(match expression {
            Expr::Constant(outcome) => Expr::Constant(*outcome),
            Expr::Predicate(predicate) => {
                Expr::Predicate(Predicate { term: self.term(&predicate.term)?, ..predicate.clone() })
            }
            Expr::Not(child) => Expr::Not(Box::new(self.expression(child)?)),
            Expr::And(children) => Expr::And(each(children)?),
            Expr::Or(children) => Expr::Or(each(children)?),
            Expr::Xor(children) => Expr::Xor(each(children)?),
            Expr::Xnor(children) => Expr::Xnor(each(children)?),
            Expr::AtLeast(least, children) => Expr::AtLeast(*least, each(children)?),
        })
    }
}

/// The term with other names for its attributes.
fn renamed(
    term: &Term,
    name_of: &impl Fn(&str) -> Result<String, ExpressionError>,
) -> Result<Term, ExpressionError> {
    match term {
        Term::Attribute(name) => Ok(Term::attribute(&name_of(name)?)),
        Term::Computed(computed) => {
            let arguments = computed.arguments().iter().map(|argument| match argument {
                Argument::Constant(value) => Ok(Argument::Constant(value.clone())),
                Argument::Term(inner) => renamed(inner, name_of).map(Argument::Term),
            });
            Term::computed(computed.function(), arguments.collect::<Result<_, _>>()?)
        }
        Term::Boolean(boolean) => {
            let refused = RefCell::new(None);
            let name_or_refuse = |name: &str| {
                name_of(name).unwrap_or_else(|error| {
                    *refused.borrow_mut() = Some(error);
                    name.to_string()
                })
            };
            let renamed = boolean.renamed(&name_or_refuse)?;
            refused.into_inner().map_or(Ok(renamed), Err)
        }
    }
}

/// The attributes that a definition needs of a source.
pub(crate) fn attributes_of(source: usize, definition: &Definition) -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    attributes(&definition.residual, &mut all);
    for (_, term) in &definition.columns {
        term.for_each_attribute(&mut |name| {
            all.insert(name.to_string());
        });
    }
    let prefix = format!("s{source}.");
    let mut own: BTreeSet<String> =
        all.iter().filter_map(|name| name.strip_prefix(&prefix)).map(str::to_owned).collect();
    for equality in &definition.equalities {
        for (at, term) in [(equality.left, &equality.left_term), (equality.right, &equality.right_term)] {
            if at == source {
                term.for_each_attribute(&mut |name| {
                    own.insert(name.to_string());
                });
            }
        }
    }
    own
}
