//! Errors in paths and documents, with their position.

use std::fmt::{self, Display, Formatter};

/// Why a text is not a path of the subset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathError {
    /// In bytes from the beginning of the text.
    pub offset: usize,
    pub message: String,
    /// What would work instead.
    pub hint: Option<String>,
}

impl PathError {
    pub(crate) fn new(offset: usize, message: impl Into<String>) -> Self {
        Self { offset, message: message.into(), hint: None }
    }

    pub(crate) fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl Display for PathError {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{} (at byte {} of the path)", self.message, self.offset)?;
        match &self.hint {
            Some(hint) => write!(f, "; {hint}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for PathError {}

/// Why a text is not a document that can be matched: not well-formed, or beyond a limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DocumentError {
    /// From 1.
    pub line: usize,
    /// In characters, from 1.
    pub column: usize,
    pub message: String,
}

impl DocumentError {
    pub(crate) fn at(text: &str, offset: usize, message: impl Into<String>) -> Self {
        let mut offset = offset.min(text.len());
        while !text.is_char_boundary(offset) {
            offset -= 1;
        }
        let before = &text[..offset];
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        Self {
            line: before.bytes().filter(|byte| *byte == b'\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
            message: message.into(),
        }
    }
}

impl Display for DocumentError {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}: {}", self.line, self.column, self.message)
    }
}

impl std::error::Error for DocumentError {}
