//! All errors, worded for the person who must fix the input.

/// A place in the text of an expression, counted from 1; columns count characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    pub line: u32,
    pub column: u32,
}

/// Why an expression was refused, and what would be right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExpressionError {
    pub message: String,
    /// `None` when the expression did not come from text.
    pub place: Option<Place>,
    pub hint: Option<String>,
    /// The offending line with a caret under the place, ready to print.
    pub snippet: Option<String>,
}

impl ExpressionError {
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), place: None, hint: None, snippet: None }
    }

    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl std::fmt::Display for ExpressionError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)?;
        if let Some(place) = self.place {
            write!(f, " (line {}, column {})", place.line, place.column)?;
        }
        if let Some(snippet) = &self.snippet {
            write!(f, "\n{snippet}")?;
        }
        if let Some(hint) = &self.hint {
            write!(f, "\nhint: {hint}")?;
        }
        Ok(())
    }
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{0}")]
    Expression(ExpressionError),
    /// The chosen algorithm cannot hold this expression.
    #[error("{0}")]
    Unsupported(String),
    /// An event that cannot be read.
    #[error("{0}")]
    Event(String),
    /// An id of another type than the index's.
    #[error("{0}")]
    Id(String),
    /// An id that is already there.
    #[error("{0}")]
    DuplicateId(String),
    /// An id that is not there.
    #[error("{0}")]
    UnknownId(String),
    /// An argument out of range.
    #[error("{0}")]
    Argument(String),
    /// A snapshot file that is truncated, corrupted, foreign or from a later version.
    #[error("{0}")]
    Snapshot(String),
    #[error("{0}")]
    Io(#[from] std::io::Error),
}

impl Error {
    /// The same error, saying where it happened.
    pub fn within(self, place: &str) -> Self {
        let put = |message: String| format!("{place}: {message}");
        match self {
            Error::Expression(mut error) => {
                error.message = put(error.message);
                Error::Expression(error)
            }
            Error::Unsupported(message) => Error::Unsupported(put(message)),
            Error::Event(message) => Error::Event(put(message)),
            Error::Id(message) => Error::Id(put(message)),
            Error::DuplicateId(message) => Error::DuplicateId(put(message)),
            Error::UnknownId(message) => Error::UnknownId(put(message)),
            Error::Argument(message) => Error::Argument(put(message)),
            Error::Snapshot(message) => Error::Snapshot(put(message)),
            Error::Io(error) => Error::Io(std::io::Error::new(error.kind(), put(error.to_string()))),
        }
    }
}

impl From<ExpressionError> for Error {
    fn from(error: ExpressionError) -> Self {
        Error::Expression(error)
    }
}

pub type Result<T, E = Error> = std::result::Result<T, E>;
