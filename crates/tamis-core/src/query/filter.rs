//! The conditions of a query on subscriptions, apart from their score: tags and time.

use crate::subscription::Subscription;

/// Which tags a subscription must have, and which it must not have.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tags {
    /// At least one of these; `None`: any tags, or none at all.
    pub any: Option<Vec<Box<str>>>,
    /// All of these.
    pub all: Vec<Box<str>>,
    /// None of these.
    pub none: Vec<Box<str>>,
}

impl Tags {
    /// Whether every subscription is wanted.
    pub fn are_free(&self) -> bool {
        self.any.is_none() && self.all.is_empty() && self.none.is_empty()
    }

    /// Whether a subscription with these tags is wanted.
    ///
    /// ```
    /// use tamis_core::query::Tags;
    /// let wanted = Tags { any: Some(vec!["a".into(), "b".into()]), none: vec!["c".into()], ..Tags::default() };
    /// assert!(wanted.keep(&["b".into()]));
    /// assert!(!wanted.keep(&["b".into(), "c".into()]) && !wanted.keep(&[]));
    /// ```
    pub fn keep(&self, tags: &[Box<str>]) -> bool {
        self.any.as_ref().is_none_or(|any| any.iter().any(|tag| tags.contains(tag)))
            && self.all.iter().all(|tag| tags.contains(tag))
            && !self.none.iter().any(|tag| tags.contains(tag))
    }
}

/// Which matches a query wants at some moment.
#[derive(Clone, Copy, Debug)]
pub struct Filter<'q> {
    pub tags: &'q Tags,
    /// UTC microseconds; subscriptions that have not started, or expired by then, do not match.
    pub now: i64,
}

impl Filter<'_> {
    pub fn keeps(&self, subscription: &Subscription) -> bool {
        subscription.is_active(self.now) && self.tags.keep(&subscription.tags)
    }
}
