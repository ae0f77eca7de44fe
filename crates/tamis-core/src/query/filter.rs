//! Which matches are wanted, whatever they score: by tag and by time.

use crate::subscription::Subscription;

/// Which matches a caller wants.
#[derive(Clone, Debug)]
pub struct Filter {
    /// Only subscriptions that have any of these tags; `None`: all.
    pub tags: Option<Vec<Box<str>>>,
    /// UTC microseconds; subscriptions that expired by then do not match.
    pub now: i64,
}

impl Filter {
    pub fn keeps(&self, subscription: &Subscription) -> bool {
        subscription.expires.is_none_or(|expires| expires > self.now)
            && self.tags.as_ref().is_none_or(|tags| subscription.tags.iter().any(|tag| tags.contains(tag)))
    }
}
