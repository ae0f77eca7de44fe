//! Sequences: `SEQUENCE (a: NOT ok){3,} THEN (b: ok AND country != a.country) WITHIN 10 MINUTES BY user`.

use std::fmt::{self, Display, Formatter};

use tamis_core::ExpressionError;
use tamis_core::expr::Expr;
use tamis_core::term::Term;

use super::cursor::Cursor;
use super::interval::interval_text;
use super::place::fault;
use super::token::Kind;
use super::windowed::refuse_windows;

/// A sequence as written.
#[derive(Clone, Debug)]
pub(crate) struct SequenceText {
    pub strict: bool,
    pub steps: Vec<StepText>,
    pub within: i64,
    pub by: Vec<Term>,
    pub skip_to_next: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct StepText {
    pub name: Option<String>,
    pub condition: Expr,
    pub least: u32,
    pub most: Option<u32>,
    /// Conditions that must not occur between the previous step and this one.
    pub absent: Option<Expr>,
}

/// How many rows one step may be asked to take, and how many steps there may be.
const MAX_REPETITION: u32 = 10_000;
const MAX_STEPS: usize = 100;

impl SequenceText {
    /// Whether a text is a sequence, by its first word.
    pub fn is_one(text: &str) -> bool {
        Cursor::new(text).is_ok_and(|cursor| {
            cursor.is_word(0, "SEQUENCE") && (cursor.is_symbol(1, b'(') || cursor.is_word(1, "STRICT"))
        })
    }

    pub fn read(text: &str) -> Result<Self, ExpressionError> {
        let mut cursor = Cursor::new(text)?;
        refuse_windows(&cursor, "a step of a sequence cannot look at a window")?;
        cursor.expect("SEQUENCE")?;
        let strict = cursor.accept("STRICT");
        let mut steps = vec![step(&mut cursor, None, &[])?];
        while cursor.accept("THEN") {
            let mut absent: Option<Expr> = None;
            while cursor.accept("NOT") {
                let condition = cursor.parentheses()?.expression(|_, _| false)?;
                absent = Some(match absent {
                    None => condition,
                    Some(other) => Expr::Or(vec![other, condition]),
                });
                if !cursor.accept("THEN") {
                    let error = cursor.expected("THEN");
                    return Err(error.with_hint("NOT (…) stands between two steps: … THEN NOT (c) THEN (b)"));
                }
            }
            let names: Vec<_> = steps.iter().filter_map(|step| step.name.clone()).collect();
            steps.push(step(&mut cursor, absent, &names)?);
        }
        if steps.len() > MAX_STEPS {
            return Err(fault(text, 0, format!("a sequence has at most {MAX_STEPS} steps")));
        }
        if !cursor.accept("WITHIN") {
            let error = cursor.expected("THEN or WITHIN");
            return Err(error.with_hint("WITHIN 10 MINUTES bounds what the sequence has to remember"));
        }
        let within = cursor.interval()?;
        let by = if cursor.accept("BY") {
            cursor.terms(|cursor, ahead| cursor.is_word(ahead, "AFTER"))?
        } else {
            vec![]
        };
        let mut skip_to_next = false;
        if cursor.accept("AFTER") {
            cursor.expect("MATCH")?;
            cursor.expect("SKIP")?;
            if cursor.accept("TO") {
                cursor.expect("NEXT")?;
                skip_to_next = true;
            } else {
                cursor.expect("PAST")?;
                cursor.expect("LAST")?;
            }
            cursor.expect("ROW")?;
        }
        cursor.finish()?;
        Ok(Self { strict, steps, within, by, skip_to_next })
    }
}

fn step(
    cursor: &mut Cursor<'_>,
    absent: Option<Expr>,
    earlier: &[String],
) -> Result<StepText, ExpressionError> {
    let mut inside = cursor.parentheses()?;
    let mut name = None;
    if let Some(token) = inside.peek().filter(|token| matches!(token.kind, Kind::Word | Kind::Name))
        && inside.is_symbol(1, b':')
    {
        let written = token.span.of(inside.text).trim_matches('`').to_owned();
        if earlier.contains(&written) {
            let message = format!("there are two steps with the name {written}");
            return Err(fault(inside.text, token.span.start, message));
        }
        name = Some(written);
        inside.next();
        inside.next();
    }
    let condition = inside.expression(|_, _| false)?;
    let (mut least, mut most) = (1, Some(1));
    if cursor.accept_symbol(b'{') {
        least = cursor.whole("how many rows the step takes at least", 1)?;
        most = Some(least);
        if cursor.accept_symbol(b',') {
            most = if cursor.is_symbol(0, b'}') {
                None
            } else {
                Some(cursor.whole("how many rows the step takes at most", least)?)
            };
        }
        if least.max(most.unwrap_or(0)) > MAX_REPETITION {
            return Err(cursor.fault(format!("a step takes at most {MAX_REPETITION} rows")));
        }
        cursor.expect_symbol(b'}')?;
    }
    Ok(StepText { name, condition, least, most, absent })
}

/// The step itself, without what must be absent before it.
impl Display for StepText {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("(")?;
        if let Some(name) = &self.name {
            write!(f, "{}: ", Term::attribute(name))?;
        }
        write!(f, "{})", self.condition)?;
        match (self.least, self.most) {
            (1, Some(1)) => Ok(()),
            (least, Some(most)) if least == most => write!(f, "{{{least}}}"),
            (least, Some(most)) => write!(f, "{{{least},{most}}}"),
            (least, None) => write!(f, "{{{least},}}"),
        }
    }
}

/// The canonical text, which is also the identity of a sequence.
impl Display for SequenceText {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(if self.strict { "SEQUENCE STRICT" } else { "SEQUENCE" })?;
        for (at, step) in self.steps.iter().enumerate() {
            if at > 0 {
                f.write_str(" THEN")?;
            }
            if let Some(absent) = &step.absent {
                write!(f, " NOT ({absent}) THEN")?;
            }
            write!(f, " {step}")?;
        }
        write!(f, " WITHIN {}", interval_text(self.within))?;
        for (at, term) in self.by.iter().enumerate() {
            write!(f, "{}{term}", if at == 0 { " BY " } else { ", " })?;
        }
        if self.skip_to_next {
            f.write_str(" AFTER MATCH SKIP TO NEXT ROW")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_and_written_back() {
        for text in [
            "SEQUENCE (a: NOT ok){3,} THEN (b: ok AND b.country != a.country) WITHIN INTERVAL 10 MINUTES BY user",
            "SEQUENCE STRICT (x = 1){2} THEN NOT (y = 2) THEN (`b c`: x = 3){1,4} WITHIN INTERVAL 1 SECOND",
            "SEQUENCE (x = 1) WITHIN INTERVAL 1 HOUR BY lower(a), b AFTER MATCH SKIP TO NEXT ROW",
        ] {
            let read = SequenceText::read(text).unwrap();
            assert_eq!(SequenceText::read(&read.to_string()).unwrap().to_string(), read.to_string());
        }
        let text = "sequence (a: x = 1){2,2} then (y = 1) within 10m by k after match skip past last row";
        let canonical = "SEQUENCE (a: x = 1){2} THEN (y = 1) WITHIN INTERVAL 10 MINUTES BY k";
        assert_eq!(SequenceText::read(text).unwrap().to_string(), canonical);
        assert!(SequenceText::is_one(text) && !SequenceText::is_one("sequence = 3"));
    }

    #[test]
    fn errors_name_the_place_and_what_would_be_right() {
        for (text, column, message, hint) in [
            ("SEQUENCE (x = 1) THEN (y = 1)", 30, "expected THEN or WITHIN", "WITHIN 10 MINUTES"),
            ("SEQUENCE (x >> 1) WITHIN 1m", 14, "", ""),
            ("SEQUENCE (a: x = 1) THEN (a: x = 2) WITHIN 1m", 27, "two steps with the name a", ""),
            ("SEQUENCE (x = 1){0,2} WITHIN 1m", 18, "at least, a whole number from 1", ""),
            ("SEQUENCE (x = 1){3,2} WITHIN 1m", 20, "a whole number from 3", ""),
            ("SEQUENCE (x = 1) THEN NOT (y = 2) WITHIN 1m", 35, "expected THEN", "stands between two steps"),
            ("SEQUENCE (count(* LAST 1m) > 2) WITHIN 1m", 11, "cannot look at a window", ""),
        ] {
            let error = SequenceText::read(text).unwrap_err();
            assert_eq!(error.place.unwrap().column, column, "{text}: {error}");
            assert!(error.message.contains(message), "{error}");
            assert!(error.hint.clone().unwrap_or_default().contains(hint), "{error}");
        }
    }
}
