//! Why an event could not be read, and what would be right.

use std::fmt;

use crate::json::TextPlace;

/// The maximum nesting depth of lists and records in an event; the event itself does not count.
pub const MAX_DEPTH: usize = 100;

/// Why an event was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventError {
    pub message: String,
    /// The dotted path of the attribute, where one is to blame.
    pub path: Option<String>,
    /// `None` when the event did not come from text, or when no single place is to blame.
    pub place: Option<TextPlace>,
    /// The row of the batch, counted from 0, where the event came from one.
    pub row: Option<usize>,
    pub hint: Option<String>,
}

impl EventError {
    /// For more than [`MAX_DEPTH`] levels, whatever the event was read from.
    pub fn too_deep() -> Self {
        Self::new(format!("lists and records are nested deeper than {MAX_DEPTH} levels"))
    }

    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), path: None, place: None, row: None, hint: None }
    }

    /// Says which attribute is to blame; the empty path is the event itself and is not said.
    pub fn at_path(mut self, path: &str) -> Self {
        self.path = (!path.is_empty()).then(|| path.into());
        self
    }

    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl fmt::Display for EventError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(path) = &self.path {
            write!(f, "attribute `{path}`: ")?;
        }
        if let Some(row) = self.row {
            write!(f, "row {row}: ")?;
        }
        f.write_str(&self.message)?;
        if let Some(TextPlace { line, column, byte }) = self.place {
            write!(f, " (line {line}, column {column}, byte {byte})")?;
        }
        if let Some(hint) = &self.hint {
            write!(f, "\nhint: {hint}")?;
        }
        Ok(())
    }
}

impl std::error::Error for EventError {}

/// What many events gave for attributes and no value can hold: how much, and the first of it.
#[derive(Clone, Debug, Default)]
pub struct Unreadable {
    pub count: u64,
    pub first: Option<EventError>,
}

impl Unreadable {
    pub fn add(&mut self, other: Unreadable) {
        self.count += other.count;
        if self.first.is_none() {
            self.first = other.first;
        }
    }
}

impl From<&[EventError]> for Unreadable {
    fn from(errors: &[EventError]) -> Self {
        Self { count: errors.len() as u64, first: errors.first().cloned() }
    }
}

impl From<EventError> for crate::Error {
    fn from(error: EventError) -> Self {
        crate::Error::Event(error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_message_says_what_where_and_what_would_be_right() {
        let mut error = EventError::new("what is wrong").at_path("a.b").with_hint("what is right");
        error.place = Some(TextPlace { line: 1, column: 2, byte: 1 });
        let text = "attribute `a.b`: what is wrong (line 1, column 2, byte 1)\nhint: what is right";
        assert_eq!(error.to_string(), text);
    }
}
