//! A subscription: an expression with an id, and its other data.

use std::fmt;

use crate::error::{Error, Result};
use crate::expr::Expr;

/// The name of a subscription. An index holds ids of one kind, fixed by the first one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Id {
    Int(i64),
    /// Ordered by UTF-8 bytes.
    Str(Box<str>),
}

/// An id where it is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum IdRef<'a> {
    Int(i64),
    Str(&'a str),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IdKind {
    Int,
    Str,
}

impl Id {
    pub fn as_ref(&self) -> IdRef<'_> {
        match self {
            Id::Int(id) => IdRef::Int(*id),
            Id::Str(id) => IdRef::Str(id),
        }
    }

    pub fn kind(&self) -> IdKind {
        match self {
            Id::Int(_) => IdKind::Int,
            Id::Str(_) => IdKind::Str,
        }
    }
}

impl IdRef<'_> {
    pub fn to_owned(self) -> Id {
        match self {
            IdRef::Int(id) => Id::Int(id),
            IdRef::Str(id) => Id::Str(id.into()),
        }
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Id::Int(id) => write!(f, "{id}"),
            Id::Str(id) => write!(f, "{id:?}"),
        }
    }
}

impl IdKind {
    /// What ids of this kind are called.
    pub fn plural(self) -> &'static str {
        match self {
            IdKind::Int => "integers",
            IdKind::Str => "strings",
        }
    }

    pub fn check(self, id: &Id) -> Result<()> {
        if id.kind() == self {
            return Ok(());
        }
        let (has, wants) = match self {
            IdKind::Int => ("a string", "64-bit integers"),
            IdKind::Str => ("an integer", "strings"),
        };
        Err(Error::Id(format!(
            "id {id} is {has}, but this index holds {wants}: the first id of an index fixes the type of all"
        )))
    }
}

/// Where a subscription is in a version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Location {
    Row { part: u32, row: u32 },
    Buffer(u32),
}

/// Errors about an id.
impl Error {
    pub fn duplicate(id: &Id) -> Self {
        Error::DuplicateId(format!(
            "subscription {id} is already in the index; use replace or upsert to change it"
        ))
    }

    pub fn missing(id: &Id) -> Self {
        Error::UnknownId(format!("there is no subscription {id} in the index"))
    }

    /// The same error, saying whose expression is wrong. Other errors of a subscription name it already.
    pub fn in_expression_of(self, id: &Id) -> Self {
        match self {
            Error::Expression(_) | Error::Unsupported(_) => self.within(&format!("subscription {id}")),
            other => other,
        }
    }
}

/// An expression with an id, and optionally a priority, weights, tags, an owner, a payload, a start and an expiry.
#[derive(Clone, Debug, PartialEq)]
pub struct Subscription {
    pub id: Id,
    pub expression: Expr,
    /// The score of top-k by priority; finite.
    pub priority: f64,
    /// Weight per attribute, for leaves without a boost of their own.
    pub weights: Vec<(Box<str>, f64)>,
    pub tags: Vec<Box<str>>,
    /// On whose behalf it is held. Several subscriptions may have the same owner.
    pub owner: Option<Box<str>>,
    pub payload: Option<Box<[u8]>>,
    /// UTC microseconds; before then it matches nothing.
    pub starts: Option<i64>,
    /// UTC microseconds; from then on it matches nothing.
    pub expires: Option<i64>,
}

impl Subscription {
    pub fn new(id: Id, expression: Expr) -> Self {
        Self {
            id,
            expression,
            priority: 0.0,
            weights: vec![],
            tags: vec![],
            owner: None,
            payload: None,
            starts: None,
            expires: None,
        }
    }

    /// Whether it has started and has not expired.
    pub fn is_active(&self, now: i64) -> bool {
        self.starts.is_none_or(|starts| starts <= now) && self.expires.is_none_or(|expires| now < expires)
    }

    /// Checks what the types do not: finite priority, finite and non-negative weights.
    pub fn check(&self) -> Result<()> {
        if !self.priority.is_finite() {
            return Err(Error::Argument(format!("subscription {}: the priority must be finite", self.id)));
        }
        for (attribute, weight) in &self.weights {
            if !weight.is_finite() || *weight < 0.0 {
                return Err(Error::Argument(format!(
                    "subscription {}: the weight of `{attribute}` must be finite and not negative, not {weight}",
                    self.id
                )));
            }
        }
        Ok(())
    }
}
