//! What one expression says about another: covers, overlaps, is disjoint; and how to generalise one.
//!
//! Relations are statements about all events at once. They are exact for events of points within a
//! budget, and on the safe side beyond it: [`Answer`] tells proof from ignorance.

mod access_predicates;
mod cells;
mod covers;
mod decide;
pub mod merge;
mod overlaps;
pub mod prune;
mod replace;
mod selectivity;
mod text;
pub(crate) mod tree;

pub use access_predicates::{ALWAYS, AccessPlan, access_predicates};
pub use covers::{covers, covers_by_structure};
pub use decide::{Answer, BUDGET, ExampleEvent};
pub use overlaps::{example_of_overlap, may_overlap, overlaps};
pub use replace::replace_predicates;
pub use selectivity::Selectivities;
