//! How continuous queries are written: tokens, intervals, windowed terms, sequences.
//!
//! The language of expressions belongs to the kernel. Here the parts around it are read, and each expression inside
//! is handed to the kernel's parser where it stands, so that its errors name the place in the whole text.

mod cursor;
mod interval;
mod place;
mod select;
mod sequence;
mod token;
mod windowed;

pub(crate) use interval::interval_text;
pub use interval::parse_interval;
pub(crate) use place::fault;
pub(crate) use select::{SelectText, SourceText};
pub(crate) use sequence::{SequenceText, StepText};
pub(crate) use windowed::{ExpressionText, WINDOW_PREFIX, WindowedTerm};
