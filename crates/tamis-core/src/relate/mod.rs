//! Relations between expressions (covers, overlaps, is disjoint), and how to generalise an expression.
//!
//! Relations are statements about all events at once. For events with point values they are exact within a budget, and err
//! on the safe side beyond it: [`Answer`] distinguishes a proof from an unknown answer.

mod access_predicates;
mod cells;
mod covers;
mod decide;
pub mod merge;
mod overlaps;
pub mod prune;
mod replace;
mod selectivity;
mod string_cells;
pub(crate) mod tree;

pub use access_predicates::{ALWAYS, AccessPlan, access_predicates};
pub use covers::{covers, covers_by_structure};
pub use decide::{Answer, BUDGET, ExampleEvent};
pub use overlaps::{example_of_overlap, may_overlap, overlaps};
pub use replace::replace_predicates;
pub use selectivity::Selectivities;
