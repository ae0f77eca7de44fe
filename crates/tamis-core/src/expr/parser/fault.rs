//! An error inside the parser, which becomes an [`ExpressionError`] with line, column and snippet.

use crate::error::{ExpressionError, Place};

/// Boxed, because the happy path should not carry the room for an error message.
pub(super) type Parsed<T> = Result<T, Box<Fault>>;

/// What is wrong, and at which byte of the text, where a character starts or the text ends.
#[derive(Debug)]
pub(super) struct Fault {
    at: usize,
    error: ExpressionError,
}

impl Fault {
    pub fn new(at: usize, message: impl Into<String>) -> Box<Self> {
        Self::from_error(at, ExpressionError::new(message))
    }

    pub fn from_error(at: usize, error: ExpressionError) -> Box<Self> {
        Box::new(Self { at, error })
    }

    pub fn hint(mut self: Box<Self>, hint: impl Into<String>) -> Box<Self> {
        self.error.hint = Some(hint.into());
        self
    }

    /// Another error at the same place.
    pub fn with_error(self, error: ExpressionError) -> Box<Self> {
        Self::from_error(self.at, error)
    }

    /// The error with its place in the text.
    pub fn locate(self, text: &str) -> ExpressionError {
        let (line, place) = find(text, self.at);
        ExpressionError {
            place: Some(place),
            snippet: Some(snippet(line, place.column as usize)),
            ..self.error
        }
    }
}

/// Where a byte of the text is, for people.
pub(super) fn place_of(text: &str, at: usize) -> Place {
    find(text, at).1
}

/// The line that holds a byte of the text, and the place of that byte.
fn find(text: &str, at: usize) -> (&str, Place) {
    let before = &text[..at];
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    let line = text[line_start..].lines().next().unwrap_or("");
    let number = before.bytes().filter(|&byte| byte == b'\n').count() + 1;
    let column = before[line_start..].chars().count() + 1;
    (line, Place { line: number as u32, column: column as u32 })
}

/// The line with a caret under the column. A long line is cut around it, and every control character is
/// shown as one space so that the caret stays in its column.
fn snippet(line: &str, column: usize) -> String {
    const SHOWN_BEFORE: usize = 50;
    const SHOWN_AFTER: usize = 30;
    let skipped = (column - 1).saturating_sub(SHOWN_BEFORE);
    let mut shown = String::from(if skipped > 0 { "…" } else { "" });
    let mut characters = line.chars().skip(skipped);
    let window = column - 1 - skipped + SHOWN_AFTER;
    shown.extend(characters.by_ref().take(window).map(|c| if c.is_control() { ' ' } else { c }));
    if characters.next().is_some() {
        shown.push('…');
    }
    let indent = column - 1 - skipped + (skipped > 0) as usize;
    format!("{shown}\n{:indent$}^", "")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn located(text: &str, at: usize) -> (u32, u32, String) {
        let error = Fault::new(at, "wrong").locate(text);
        let place = error.place.unwrap();
        (place.line, place.column, error.snippet.unwrap())
    }

    #[test]
    fn lines_and_columns_count_characters_from_one() {
        assert_eq!(located("abc", 0), (1, 1, "abc\n^".into()));
        assert_eq!(located("é = 1 AND\r\n  b >", 17), (2, 6, "  b >\n     ^".into()));
        assert_eq!(located("a\n", 2), (2, 1, "\n^".into()));
        assert_eq!(located("", 0), (1, 1, "\n^".into()));
    }

    #[test]
    fn tabs_keep_the_caret_in_its_column() {
        assert_eq!(located("\tx >\t?", 5), (1, 6, " x > ?\n     ^".into()));
    }

    #[test]
    fn long_lines_are_cut_around_the_place() {
        let text = format!("{}!{}", "é".repeat(200), "b".repeat(200));
        let (_, column, snippet) = located(&text, 400);
        assert_eq!(column, 201);
        let (line, caret) = snippet.split_once('\n').unwrap();
        assert_eq!(line.chars().count(), 82);
        assert_eq!(line.chars().nth(caret.chars().count() - 1), Some('!'));
    }
}
