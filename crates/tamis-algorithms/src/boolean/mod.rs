//! Boolean filtering (Bittner 2008): the counting algorithm for expressions that are not conjunctions.
//!
//! An expression can only be true if a minimum number of its predicates is. An event is matched in three
//! steps: find the satisfied predicates; count them for every subscription that uses them; evaluate those
//! that reach their minimum, on a tree encoded in a few bytes.
//!
//! ```text
//! Title = t AND (Condition = new AND Price < 15 OR Condition = used AND Price < 12) AND Ending < 1
//!
//! association     predicate → the subscriptions whose trees have it, once per leaf
//! minimum         AND adds, OR takes the least: 4
//! hits            one byte per subscription and event: candidates are those with hits >= minimum
//! encoded tree    01 03 04 ┊┊┊┊ 02 02 01 02 04 ┊┊┊┊ 04 ┊┊┊┊ 01 02 04 ┊┊┊┊ 04 ┊┊┊┊ 04 ┊┊┊┊  (38 bytes)
//! ```
//!
//! | file | contents |
//! |---|---|
//! | `encoding.rs` | trees as bytes, and how they are evaluated |
//! | `minimum.rs` | the least number of true predicates, by structure and by meaning |
//! | `order.rs` | which child first: learnt from events |
//! | `filter.rs` | the vectors and the three steps |
//! | `by_type.rs` | a set of vectors for each type of event |
//!
//! Numbers of subscriptions and of predicates are bytes, so an expression has at most 255 predicates.

pub mod by_type;
mod encoding;
mod filter;
mod minimum;
mod order;

#[cfg(test)]
mod tests;

pub use by_type::BooleanFiltering;
