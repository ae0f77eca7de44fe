//! Positions in the text of a query, and errors with a position.

use tamis_core::expr::{self, Expr};
use tamis_core::term::Term;
use tamis_core::{ExpressionError, Place};

/// Bytes of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub start: usize,
    pub end: usize,
}

impl Span {
    pub fn of(self, text: &str) -> &str {
        &text[self.start..self.end]
    }

    /// Reads an expression that stands here, with errors that name its place in the whole text.
    pub fn expression(self, text: &str) -> Result<Expr, ExpressionError> {
        self.read(text, expr::parse)
    }

    pub fn term(self, text: &str) -> Result<Term, ExpressionError> {
        self.read(text, expr::parse_term)
    }

    fn read<T>(
        self,
        text: &str,
        read: impl Fn(&str) -> Result<T, ExpressionError>,
    ) -> Result<T, ExpressionError> {
        // Read on its own first: what is right needs no place.
        read(self.of(text)).or_else(|_| {
            let blank = |c: char| if c == '\n' { '\n' } else { ' ' };
            let mut alone: String = text[..self.start].chars().map(blank).collect();
            alone.push_str(self.of(text));
            read(&alone).map_err(|error| relocated(error, text))
        })
    }
}

/// An error at a byte of the text.
pub(crate) fn fault(text: &str, at: usize, message: impl Into<String>) -> ExpressionError {
    let before = &text[..at];
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    let line = before.bytes().filter(|&byte| byte == b'\n').count() + 1;
    let column = before[line_start..].chars().count() + 1;
    let error = ExpressionError {
        place: Some(Place { line: line as u32, column: column as u32 }),
        ..ExpressionError::new(message)
    };
    relocated(error, text)
}

/// The error with the line of this text under it.
fn relocated(mut error: ExpressionError, text: &str) -> ExpressionError {
    if let Some(place) = error.place {
        let line = text.lines().nth(place.line as usize - 1).unwrap_or("");
        error.snippet = Some(snippet(line, place.column as usize));
    }
    error
}

/// The line with a caret under the column, cut around it if it is long.
fn snippet(line: &str, column: usize) -> String {
    const BEFORE: usize = 50;
    const AFTER: usize = 30;
    let skipped = (column - 1).saturating_sub(BEFORE);
    let mut shown = String::from(if skipped > 0 { "…" } else { "" });
    let mut rest = line.chars().skip(skipped);
    let width = column - 1 - skipped + AFTER;
    shown.extend(rest.by_ref().take(width).map(|c| if c.is_control() { ' ' } else { c }));
    if rest.next().is_some() {
        shown.push('…');
    }
    let indent = column - 1 - skipped + usize::from(skipped > 0);
    format!("{shown}\n{:indent$}^", "")
}
