//! Queries about an event, and the order of their matches.
//!
//! `definition` has the query, one value from every caller down to the engine; `filter` has its conditions on tags and
//! time; `collector` says what happens to matches as they are found. `score` defines the scores on the expression as
//! written; everything faster agrees with it to the last bit. `bounds` has upper bounds of a score, before anything is
//! evaluated. `top_k` keeps the best k, with ties to the smaller id. `scale` has the weights that an event gives to
//! attributes. `function` is a user's own monotone score. `measure` prepares one of these scores for one event.

pub(crate) mod bounds;
pub(crate) mod collector;
pub(crate) mod definition;
pub(crate) mod filter;
pub(crate) mod function;
pub(crate) mod measure;
pub(crate) mod scale;
pub(crate) mod score;
pub(crate) mod top_k;

pub use bounds::up;
pub use collector::Collector;
pub use definition::{Ask, Query, current_time};
pub use filter::{Filter, Tags};
pub use function::Function;
pub use measure::Measure;
pub use scale::Scale;
pub use score::{Ranking, Score, relaxed, relevance, weight_of};
pub use top_k::{Candidate, TopK};
