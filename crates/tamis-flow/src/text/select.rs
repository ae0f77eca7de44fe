//! Continuous select-project-join queries:
//! `SELECT t.id, q.bid FROM trades RANGE 10 MINUTES AS t JOIN quotes ROWS 100 AS q ON t.symbol = q.symbol WHERE …`.

use tamis_core::ExpressionError;
use tamis_core::expr::Expr;
use tamis_core::term::Term;

use super::cursor::Cursor;
use super::place::fault;
use super::token::Kind;
use super::windowed::{refuse_windows, sql_frame};
use crate::window::Frame;

#[derive(Clone, Debug)]
pub(crate) struct SelectText {
    pub distinct: bool,
    /// Names and terms; none: all attributes of all sources.
    pub columns: Vec<(String, Term)>,
    pub sources: Vec<SourceText>,
    /// ON and WHERE together: all of them must be true.
    pub conditions: Vec<Expr>,
}

#[derive(Clone, Debug)]
pub(crate) struct SourceText {
    pub stream: String,
    pub frame: Frame,
    pub alias: String,
}

/// How many windows one query may join.
const MAX_SOURCES: usize = 16;

impl SelectText {
    /// Whether a text is such a query, by its first word.
    pub fn is_one(text: &str) -> bool {
        Cursor::new(text).is_ok_and(|cursor| {
            let follows = cursor
                .look(1)
                .is_some_and(|token| !matches!(token.kind, Kind::Symbol(b'=' | b'<' | b'>' | b'!')));
            cursor.is_word(0, "SELECT")
                && follows
                && cursor.until(|cursor, ahead| cursor.is_word(ahead, "FROM")) > 1
        })
    }

    pub fn read(text: &str) -> Result<Self, ExpressionError> {
        let mut cursor = Cursor::new(text)?;
        refuse_windows(&cursor, "a join tells rows, not aggregates")
            .map_err(|error| error.with_hint("use a rule with windowed terms for aggregates"))?;
        cursor.expect("SELECT")?;
        let distinct = cursor.accept("DISTINCT");
        let mut columns = vec![];
        if !cursor.accept_symbol(b'*') {
            loop {
                let start = cursor.place();
                let (name, term) = column(&mut cursor)?;
                if columns.iter().any(|(known, _): &(String, Term)| *known == name) {
                    let error = fault(text, start, format!("two columns have the name {name}"));
                    return Err(error.with_hint("give one another name with AS"));
                }
                columns.push((name, term));
                if !cursor.accept_symbol(b',') {
                    break;
                }
            }
        }
        cursor.expect("FROM")?;
        let mut sources = vec![source(&mut cursor, &[])?];
        let mut conditions = vec![];
        while cursor.is_word(0, "JOIN") || cursor.is_word(0, "INNER") || cursor.is_symbol(0, b',') {
            if !cursor.accept_symbol(b',') {
                cursor.accept("INNER");
                cursor.expect("JOIN")?;
            }
            let joined = source(&mut cursor, &sources)?;
            sources.push(joined);
            if cursor.accept("ON") {
                let is_next = |cursor: &Cursor<'_>, ahead: usize| {
                    ["JOIN", "INNER", "WHERE"].iter().any(|word| cursor.is_word(ahead, word))
                        || cursor.is_symbol(ahead, b',')
                };
                conditions.push(cursor.expression(is_next)?);
            }
        }
        for unsupported in ["LEFT", "RIGHT", "FULL", "CROSS", "GROUP", "ORDER", "HAVING", "LIMIT"] {
            if cursor.is_word(0, unsupported) {
                let error = cursor.fault(format!("a continuous query has no {unsupported}"));
                return Err(error.with_hint("it selects, joins (JOIN … ON) and projects windows"));
            }
        }
        if cursor.accept("WHERE") {
            conditions.push(cursor.expression(|_, _| false)?);
        }
        cursor.finish()?;
        if sources.len() > MAX_SOURCES {
            return Err(fault(text, 0, format!("a query joins at most {MAX_SOURCES} windows")));
        }
        Ok(Self { distinct, columns, sources, conditions })
    }
}

fn column(cursor: &mut Cursor<'_>) -> Result<(String, Term), ExpressionError> {
    let count = cursor.until(|cursor, ahead| {
        cursor.is_symbol(ahead, b',') || cursor.is_word(ahead, "FROM") || cursor.is_word(ahead, "AS")
    });
    let term = cursor.take(count, "a term")?.term(cursor.text)?;
    if !cursor.accept("AS") {
        return Ok((term.name().to_owned(), term));
    }
    Ok((name(cursor, "a name")?, term))
}

fn name(cursor: &mut Cursor<'_>, what: &str) -> Result<String, ExpressionError> {
    match cursor.peek().filter(|token| matches!(token.kind, Kind::Word | Kind::Name)) {
        Some(token) => {
            cursor.next();
            Ok(token.span.of(cursor.text).trim_matches('`').to_owned())
        }
        None => Err(cursor.expected(what)),
    }
}

fn source(cursor: &mut Cursor<'_>, earlier: &[SourceText]) -> Result<SourceText, ExpressionError> {
    let start = cursor.place();
    let stream = name(cursor, "the name of a stream")?;
    if !["RANGE", "ROWS", "TUMBLING"].iter().any(|word| cursor.is_word(0, word)) {
        let error = fault(
            cursor.text,
            start,
            format!("stream {stream} has no window, so the join would grow for ever"),
        );
        return Err(error.with_hint(format!("{stream} RANGE 10 MINUTES AS t, or {stream} ROWS 100 AS t")));
    }
    let frame = sql_frame(cursor)?;
    if let Frame::Tumbling(_) = frame {
        let error = fault(cursor.text, start, "a join looks at sliding windows");
        return Err(error.with_hint("RANGE 10 MINUTES, or ROWS 100"));
    }
    let alias = if cursor.accept("AS") { name(cursor, "a name")? } else { stream.clone() };
    if earlier.iter().any(|source| source.alias == alias) {
        let error = fault(cursor.text, start, format!("two windows have the name {alias}"));
        return Err(error.with_hint("give one another name with AS"));
    }
    Ok(SourceText { stream, frame, alias })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_of_a_query_are_found() {
        let read = SelectText::read(
            "SELECT t.id, q.bid * 2 AS twice FROM trades RANGE 10 MINUTES AS t JOIN quotes ROWS 100 AS q \
             ON t.symbol = q.symbol WHERE t.price > q.ask * 1.01",
        )
        .unwrap();
        let names: Vec<_> = read.columns.iter().map(|(name, _)| &**name).collect();
        assert_eq!(names, ["t.id", "twice"]);
        assert_eq!(read.sources[0].frame, Frame::Range(600_000_000));
        assert_eq!(read.sources[1].frame, Frame::Rows(100));
        assert_eq!(read.conditions.len(), 2);
        assert!(SelectText::is_one("select * from s rows 5"));
        assert!(!SelectText::is_one("select = 3") && !SelectText::is_one("selected > 3"));
    }

    #[test]
    fn errors_name_the_place_and_what_would_be_right() {
        for (text, column, message, hint) in [
            ("SELECT * FROM trades", 15, "trades has no window", "trades RANGE 10 MINUTES"),
            ("SELECT * FROM a ROWS 5, a ROWS 6", 25, "two windows have the name a", "AS"),
            ("SELECT x, y AS x FROM a ROWS 5", 11, "two columns have the name x", "AS"),
            ("SELECT x, x FROM a ROWS 5", 11, "two columns have the name x", "AS"),
            ("SELECT count(*) FROM a ROWS 5", 8, "not aggregates", "windowed terms"),
            ("SELECT x FROM a ROWS 5 LEFT JOIN b ROWS 5 ON x = y", 24, "no LEFT", "JOIN"),
            ("SELECT x FROM a TUMBLING 5m", 15, "sliding windows", "RANGE"),
            ("SELECT x FROM a ROWS 5 JOIN b ROWS 2 ON a.x >> 3", 46, "", ""),
        ] {
            let error = SelectText::read(text).unwrap_err();
            assert_eq!(error.place.unwrap().column, column, "{text}: {error}");
            assert!(error.message.contains(message), "{error}");
            assert!(error.hint.clone().unwrap_or_default().contains(hint), "{error}");
        }
    }
}
