//! Windowed terms: `count(*) FILTER (WHERE NOT ok) OVER (PARTITION BY user RANGE INTERVAL 10 MINUTES)`, or short,
//! `count(* WHERE NOT ok BY user LAST 10m)`.
//!
//! They are found in the text of an expression and replaced by names of the same width, so that the kernel
//! parses the rest and the positions in its errors stay correct.

use tamis_core::ExpressionError;
use tamis_core::expr::{self, Expr};
use tamis_core::term::Term;

use super::cursor::Cursor;
use super::place::{Span, fault};
use super::token::Kind;
use crate::window::{Aggregate, Frame};

/// The prefix of attribute names that represent windowed terms. No text can contain one.
pub(crate) const WINDOW_PREFIX: char = '\u{1}';

/// An aggregate over a window, as written.
#[derive(Clone, Debug)]
pub(crate) struct WindowedTerm {
    pub aggregate: Aggregate,
    pub argument: Option<Term>,
    pub filter: Option<Expr>,
    pub partition: Vec<Term>,
    pub frame: Frame,
}

/// An expression in which the attribute `\u{1}i` stands for the i-th windowed term.
#[derive(Debug)]
pub(crate) struct ExpressionText {
    pub expression: Expr,
    pub windows: Vec<WindowedTerm>,
}

impl ExpressionText {
    pub fn read(text: &str) -> Result<Self, ExpressionError> {
        if let Some(at) = text.find(WINDOW_PREFIX) {
            return Err(fault(text, at, "a query cannot hold the control character U+0001"));
        }
        let mut cursor = Cursor::new(text)?;
        let mut rest = String::with_capacity(text.len());
        let mut copied = 0;
        let mut windows = Vec::new();
        while let Some(token) = cursor.peek() {
            if aggregate_call(&cursor, 0).is_none() {
                cursor.next();
                continue;
            }
            let start = token.span.start;
            rest.push_str(&text[copied..start]);
            let name = format!("`{WINDOW_PREFIX}{}`", windows.len());
            windows.push(windowed_term(&mut cursor)?);
            let end = cursor.behind();
            let width = Span { start, end }.of(text).chars().count();
            // Line breaks stay where they are, behind the name: places in errors must not move.
            let mut blanks = text[start..end].chars().map(|c| if c == '\n' { '\n' } else { ' ' });
            let lines = text[start..end].contains('\n');
            rest.push_str(&name);
            if lines {
                rest.extend(blanks);
            } else {
                rest.extend(blanks.by_ref().take(width.saturating_sub(name.chars().count())));
            }
            copied = end;
        }
        rest.push_str(&text[copied..]);
        let expression = match windows.len() {
            0 => expr::parse(text)?,
            _ => expr::parse(&rest).map_err(|error| match error.place {
                Some(place) => {
                    let at = byte_of(text, place.line as usize, place.column as usize);
                    ExpressionError { hint: error.hint, ..fault(text, at, without_prefix(&error.message)) }
                }
                None => error,
            })?,
        };
        Ok(Self { expression, windows })
    }
}

fn without_prefix(message: &str) -> String {
    message.replace(WINDOW_PREFIX, "windowed term ")
}

fn byte_of(text: &str, line: usize, column: usize) -> usize {
    let start = match line {
        1 => 0,
        _ => text.match_indices('\n').nth(line - 2).map_or(text.len(), |(at, _)| at + 1),
    };
    text[start..].char_indices().nth(column - 1).map_or(text.len(), |(at, _)| start + at)
}

/// The aggregate that is called `ahead` tokens from here.
fn aggregate_call(cursor: &Cursor<'_>, ahead: usize) -> Option<Aggregate> {
    let token = cursor.look(ahead).filter(|token| token.kind == Kind::Word)?;
    if !cursor.is_symbol(ahead + 1, b'(') {
        return None;
    }
    Aggregate::named(token.span.of(cursor.text))
}

fn windowed_term(cursor: &mut Cursor<'_>) -> Result<WindowedTerm, ExpressionError> {
    let text = cursor.text;
    let name = cursor.peek().expect("a call starts here").span;
    let mut aggregate = aggregate_call(cursor, 0).expect("a call starts here");
    cursor.next();
    let mut inside = cursor.parentheses()?;
    refuse_nested(&inside)?;
    let argument = argument(&mut inside, &mut aggregate, name)?;
    let (filter, partition, frame);
    if !inside.is_done() {
        filter = inside.accept("WHERE").then(|| inside.expression(is_short_clause)).transpose()?;
        partition = if inside.accept("BY") { inside.terms(is_short_clause)? } else { vec![] };
        frame = period(&mut inside)?;
        inside.finish()?;
    } else {
        filter = if cursor.accept("FILTER") {
            let mut inside = cursor.parentheses()?;
            refuse_nested(&inside)?;
            inside.expect("WHERE")?;
            Some(inside.expression(|_, _| false)?)
        } else {
            None
        };
        if !cursor.accept("OVER") {
            let error = fault(text, name.start, format!("{} needs a window", name.of(text)));
            let word = name.of(text).to_lowercase();
            let shown = if matches!(aggregate, Aggregate::CountRows) { "*" } else { "x" };
            return Err(error.with_hint(format!(
                "say over what: {word}({shown}) OVER (PARTITION BY user RANGE INTERVAL 10 MINUTES), or short, \
                 {word}({shown} BY user LAST 10m)"
            )));
        }
        let mut inside = cursor.parentheses()?;
        refuse_nested(&inside)?;
        partition = if inside.accept("PARTITION") {
            inside.expect("BY")?;
            inside.terms(|cursor, ahead| {
                ["RANGE", "ROWS", "TUMBLING", "ORDER"].iter().any(|word| cursor.is_word(ahead, word))
            })?
        } else {
            vec![]
        };
        frame = sql_frame(&mut inside)?;
        inside.finish()?;
    }
    Ok(WindowedTerm { aggregate, argument, filter, partition, frame })
}

fn argument(
    inside: &mut Cursor<'_>,
    aggregate: &mut Aggregate,
    name: Span,
) -> Result<Option<Term>, ExpressionError> {
    if inside.accept_symbol(b'*') {
        return match aggregate {
            Aggregate::Count => {
                *aggregate = Aggregate::CountRows;
                Ok(None)
            }
            _ => Err(fault(inside.text, name.start, "only count takes *").with_hint("name a term")),
        };
    }
    if *aggregate == Aggregate::Count && inside.is_word(0, "DISTINCT") && inside.look(1).is_some() {
        inside.next();
        *aggregate = Aggregate::CountDistinct;
    }
    let count = inside
        .until(|cursor, ahead| ahead > 0 && is_short_clause(cursor, ahead) || cursor.is_symbol(ahead, b','));
    let term = inside.take(count, "a term")?.term(inside.text)?;
    if let Aggregate::Lag(rows) = aggregate
        && inside.accept_symbol(b',')
    {
        *rows = inside.whole("how many rows before", 1)?;
    }
    Ok(Some(term))
}

fn is_short_clause(cursor: &Cursor<'_>, ahead: usize) -> bool {
    ["WHERE", "BY", "LAST", "EVERY"].iter().any(|word| cursor.is_word(ahead, word))
}

fn refuse_nested(inside: &Cursor<'_>) -> Result<(), ExpressionError> {
    refuse_windows(inside, "a window inside a window has no meaning")
        .map_err(|error| error.with_hint("compare two windowed terms with each other instead"))
}

/// Refuses windowed terms from here on.
pub(crate) fn refuse_windows(cursor: &Cursor<'_>, message: &str) -> Result<(), ExpressionError> {
    let mut ahead = 0;
    while let Some(token) = cursor.look(ahead) {
        if aggregate_call(cursor, ahead).is_some() {
            return Err(fault(cursor.text, token.span.start, message));
        }
        ahead += 1;
    }
    Ok(())
}

const BOUND_HINT: &str = "such as RANGE INTERVAL 10 MINUTES, ROWS 100 or TUMBLING INTERVAL 1 HOUR";

fn period(inside: &mut Cursor<'_>) -> Result<Frame, ExpressionError> {
    if inside.accept("EVERY") {
        return inside.interval().map(Frame::Tumbling);
    }
    if !inside.accept("LAST") {
        let error = inside.expected("WHERE, BY, LAST or EVERY");
        return Err(error.with_hint("a window has a bound: LAST 10m, LAST 100 ROWS or EVERY 1h"));
    }
    if inside.is_interval() {
        return inside.interval().map(Frame::Range);
    }
    let rows = inside.whole("how many rows", 1)?;
    inside.expect("ROWS")?;
    Ok(Frame::Rows(rows.into()))
}

pub(crate) fn sql_frame(inside: &mut Cursor<'_>) -> Result<Frame, ExpressionError> {
    if inside.is_word(0, "ORDER") {
        let error = inside.fault("a window of a flow is always in the order of time");
        return Err(error.with_hint("leave ORDER BY out"));
    }
    if inside.accept("TUMBLING") {
        return inside.interval().map(Frame::Tumbling);
    }
    let is_range = inside.is_word(0, "RANGE");
    if !inside.accept("RANGE") && !inside.accept("ROWS") {
        let error = inside.expected("a bound of the window");
        return Err(error.with_hint(BOUND_HINT));
    }
    let between = inside.accept("BETWEEN");
    if inside.is_word(0, "UNBOUNDED") {
        let error = inside.fault("a window without a bound would grow for ever");
        return Err(error.with_hint(BOUND_HINT));
    }
    let frame = if is_range {
        let length = inside.interval()?;
        if !between {
            inside.accept("PRECEDING");
        }
        Frame::Range(length)
    } else {
        // The event itself is always there: `ROWS 0 PRECEDING` is one row, `ROWS 0` would be none.
        let precedes = between || inside.is_word(1, "PRECEDING");
        let rows = i64::from(inside.whole("how many rows", if precedes { 0 } else { 1 })?);
        Frame::Rows(rows + i64::from(between || inside.accept("PRECEDING")))
    };
    if between {
        for word in ["PRECEDING", "AND", "CURRENT", "ROW"] {
            inside.expect(word)?;
        }
    }
    Ok(frame)
}

/// The canonical text, which is also the identity of a windowed term.
impl std::fmt::Display for WindowedTerm {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.aggregate.write(f, self.argument.as_ref())?;
        if let Some(filter) = &self.filter {
            write!(f, " FILTER (WHERE {filter})")?;
        }
        f.write_str(" OVER (")?;
        for (at, term) in self.partition.iter().enumerate() {
            f.write_str(if at == 0 { "PARTITION BY " } else { ", " })?;
            write!(f, "{term}")?;
        }
        if !self.partition.is_empty() {
            f.write_str(" ")?;
        }
        write!(f, "{})", self.frame)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn windows(text: &str) -> Vec<String> {
        ExpressionText::read(text).unwrap().windows.iter().map(WindowedTerm::to_string).collect()
    }

    #[test]
    fn both_forms_mean_the_same() {
        let long = "count(*) FILTER (WHERE NOT ok) OVER (PARTITION BY user RANGE INTERVAL 10 MINUTES) >= 5";
        let short = "count(* WHERE NOT ok BY user LAST 10m) >= 5";
        assert_eq!(windows(long), windows(short));
        assert_eq!(windows(long), [&long[..long.len() - 5]]);
        assert_eq!(
            windows("lag(x, 2 LAST 5 ROWS) > lag(x) OVER (ROWS BETWEEN 4 PRECEDING AND CURRENT ROW)"),
            ["lag(x, 2) OVER (ROWS 5)", "lag(x) OVER (ROWS 5)"]
        );
        assert_eq!(
            windows("count(distinct x every 90 seconds) > 1"),
            ["count(DISTINCT x) OVER (TUMBLING INTERVAL 90 SECONDS)"]
        );
        assert_eq!(windows("count = 1 AND last IN (1) AND `count` > 'count(*) OVER ('"), [""; 0]);
        assert_eq!(
            windows("sum(price * quantity BY lower(a), b LAST '2' HOURS) > 1"),
            ["sum(price * quantity) OVER (PARTITION BY lower(a), b RANGE INTERVAL 2 HOURS)"]
        );
        assert_eq!(windows("sum(x) OVER (ROWS 99 PRECEDING) > 1"), ["sum(x) OVER (ROWS 100)"]);
        assert_eq!(windows("sum(x) OVER (ROWS 0 PRECEDING) > 1"), ["sum(x) OVER (ROWS 1)"]);
    }

    #[test]
    fn errors_name_the_place_and_what_would_be_right() {
        for (text, column, message, hint) in [
            ("a = 1 AND count(*) > 3", 11, "count needs a window", "count(* BY user LAST 10m)"),
            ("sum(x) OVER (PARTITION BY u) > 3", 28, "expected a bound", "RANGE INTERVAL 10 MINUTES"),
            ("sum(x) OVER (ROWS UNBOUNDED PRECEDING) > 3", 19, "grow for ever", "ROWS 100"),
            ("sum(x LAST 5) > 3", 13, "expected ROWS", ""),
            ("sum(sum(x LAST 5m) LAST 5m) > 3", 5, "window inside a window", ""),
            ("sum(x WHERE y >> 2 LAST 5m) > 3", 16, "", ""),
            ("sum(x LAST 5m) >> 3", 17, "", ""),
            ("sum(* LAST 5m) > 3", 1, "only count takes *", ""),
            ("sum(x BY LAST 5m) > 3", 10, "expected a term", ""),
            ("sum(x LAST 10 parsecs) > 3", 15, "expected ROWS", ""),
            ("sum(x LAST INTERVAL 10 parsecs) > 3", 12, "needs a unit", "MINUTE"),
            ("count(* OVER", 6, "never closed", ""),
        ] {
            let error = ExpressionText::read(text).unwrap_err();
            assert_eq!(error.place.unwrap().column, column, "{text}: {error}");
            assert!(error.message.contains(message), "{error}");
            assert!(error.hint.clone().unwrap_or_default().contains(hint), "{error}");
            assert!(error.snippet.clone().unwrap().starts_with(text), "{error}");
        }
    }
}
