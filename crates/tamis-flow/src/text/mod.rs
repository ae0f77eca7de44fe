//! The syntax of continuous queries: tokens, intervals, windowed terms, sequences.
//!
//! The language of expressions belongs to the kernel. This module parses the parts around it and passes each
//! expression inside to the kernel's parser with its position, so that errors refer to the whole text.

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
