//! What is asked about an event, and which matches come first.
//!
//! `definition` has the query, one value from every way in down to the engine; `filter` is what it wants of
//! subscriptions beside a match; `collector` has what becomes of matches while they are found.
//! `score` says what a score *is*, on the expression as it was written; everything faster agrees with it to
//! the last bit. `bounds` says what a score can be at most, before anything is evaluated. `top_k` keeps the
//! best k, ties to the smaller id. `scale` is what an event brings: its weights, and what it leaves out.
//! `function` is a user's own monotone score. `measure` is one of these scores, made ready for one event.

pub mod bounds;
pub(crate) mod collector;
pub(crate) mod definition;
pub(crate) mod filter;
pub mod function;
pub(crate) mod measure;
pub(crate) mod scale;
pub mod score;
pub(crate) mod top_k;

pub use collector::Collector;
pub use definition::{Ask, Query, current_time};
pub use filter::{Filter, Tags};
pub use measure::Measure;
pub use scale::Scale;
pub use score::{Ranking, Score, relaxed, relevance};
pub use top_k::{Candidate, TopK};
