//! Durations: `INTERVAL 10 MINUTES`, `'90' SECONDS`, `10m`.

use tamis_core::ExpressionError;

use super::cursor::Cursor;
use super::token::Kind;

const UNITS: [(&str, &[&str], i64); 7] = [
    ("MICROSECOND", &["us", "microsecond", "microseconds"], 1),
    ("MILLISECOND", &["ms", "millisecond", "milliseconds"], 1_000),
    ("SECOND", &["s", "sec", "second", "seconds"], 1_000_000),
    ("MINUTE", &["m", "min", "minute", "minutes"], 60_000_000),
    ("HOUR", &["h", "hour", "hours"], 3_600_000_000),
    ("DAY", &["d", "day", "days"], 86_400_000_000),
    ("WEEK", &["w", "week", "weeks"], 604_800_000_000),
];

impl Cursor<'_> {
    /// Whether a length of time is written here.
    pub fn is_interval(&self) -> bool {
        let Some(token) = self.peek() else { return false };
        let text = token.span.of(self.text);
        match token.kind {
            Kind::Number => !text.bytes().all(|byte| byte.is_ascii_digit()) || self.unit(1).is_some(),
            Kind::Text => true,
            _ => self.is_word(0, "INTERVAL"),
        }
    }

    fn unit(&self, ahead: usize) -> Option<i64> {
        let token = self.look(ahead).filter(|token| token.kind == Kind::Word)?;
        micros_of(token.span.of(self.text))
    }

    /// A length of time, in microseconds.
    pub fn interval(&mut self) -> Result<i64, ExpressionError> {
        let start = self.place();
        self.accept("INTERVAL");
        let Some(token) = self.next() else {
            return Err(self.expected("a length of time, such as 10 MINUTES"));
        };
        let mut text = token.span.of(self.text);
        match token.kind {
            Kind::Number => {}
            Kind::Text => text = text[1..text.len() - 1].trim(),
            _ => {
                return Err(super::fault(
                    self.text,
                    token.span.start,
                    format!("expected a length of time, such as 10 MINUTES, found `{text}`"),
                ));
            }
        }
        let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
        let (number, suffix) = (&text[..digits], text[digits..].trim());
        let unit = if suffix.is_empty() {
            let unit = self.unit(0);
            if unit.is_some() {
                self.next();
            }
            unit
        } else {
            micros_of(suffix)
        };
        let Some(unit) = unit else {
            let units: Vec<_> = UNITS.iter().map(|(name, ..)| *name).collect();
            let error = super::fault(self.text, start, "a length of time needs a unit");
            return Err(error.with_hint(format!("one of {}, as in 10 MINUTES or 10m", units.join(", "))));
        };
        match number.parse::<f64>().map(|number| number * unit as f64) {
            Ok(micros) if micros.fract() == 0.0 && (1.0..9e15).contains(&micros) => Ok(micros as i64),
            _ => Err(super::fault(
                self.text,
                start,
                "a length of time is a whole number of microseconds, more than none and less than 285 years",
            )),
        }
    }
}

/// Reads a length of time, in microseconds.
///
/// ```
/// assert_eq!(tamis_flow::parse_interval("10 MINUTES").unwrap(), 600_000_000);
/// assert!(tamis_flow::parse_interval("10").is_err());
/// ```
pub fn parse_interval(text: &str) -> Result<i64, ExpressionError> {
    let mut cursor = Cursor::new(text)?;
    let micros = cursor.interval()?;
    cursor.finish()?;
    Ok(micros)
}

fn micros_of(unit: &str) -> Option<i64> {
    let is = |(_, names, _): &&(&str, &[&str], i64)| names.iter().any(|name| name.eq_ignore_ascii_case(unit));
    UNITS.iter().find(is).map(|(.., micros)| *micros)
}

/// A length of time as it is written in canonical texts.
pub(crate) fn interval_text(micros: i64) -> String {
    let (name, _, unit) = UNITS.iter().rfind(|(.., unit)| micros % unit == 0).expect("all are microseconds");
    let number = micros / unit;
    format!("INTERVAL {number} {name}{}", if number == 1 { "" } else { "S" })
}
