//! The contract of every algorithm that can hold subscriptions.
//!
//! Laws:
//! 1. *Agreement.* `matches` reports exactly the rows whose expression is true for the event by the
//!    reference evaluator (`expr::eval`), each once, in any order.
//! 2. *Refusal.* An expression that the algorithm cannot hold is refused by `insert` with
//!    [`Error::Unsupported`](crate::Error::Unsupported), and the structure is as it was before.
//! 3. *Removal.* After `remove` the row is never reported, its memory is free for reuse, and the
//!    structure is equivalent to one that never held it.
//! 4. *Determinism.* The same inserts, removals and events give the same answers on any machine.
//!
//! Scores, ties, tags and expiry are applied by the caller, the same way for all.

use crate::error::Result;
use crate::event::{Attributes, Event};
use crate::index::segment::matcher::Work;
use crate::index::subscription::Subscription;

pub trait Algorithm: Send + Sync {
    /// Holds `subscription` as `row`, a number that is not in use.
    fn insert(&mut self, row: u32, subscription: &Subscription, attributes: &mut Attributes) -> Result<()>;

    /// Forgets a row that was inserted with this subscription.
    fn remove(&mut self, row: u32, subscription: &Subscription, attributes: &Attributes);

    fn matches(&self, event: &Event<'_>, attributes: &Attributes, found: &mut dyn FnMut(u32)) -> Work;

    /// Bytes by part, the subscriptions' own data aside.
    fn bytes(&self) -> Vec<(&'static str, usize)>;
}

/// Makes an empty structure.
pub type Make = fn() -> Box<dyn Algorithm>;

/// The names that can be asked for, and how each is made.
pub static ALGORITHMS: &[(&str, Make)] = &[("scan", || Box::new(super::scan::Scan::default()))];
