//! Timestamps as text: the forms Spark reads, and the one this project writes.
//!
//! A timestamp is a count of microseconds since the epoch, in UTC. Text without a zone is taken as
//! UTC, whatever the machine's own zone is, so that an answer never depends on where it is computed.
//! The calendar is the proleptic Gregorian one, years 0001 to 9999, from chrono. Reading and writing are our own:
//! no format string covers all the forms that Spark reads.

use chrono::{Datelike, NaiveDate};

const MICROS_PER_SECOND: i64 = 1_000_000;
const SECONDS_PER_DAY: i64 = 86_400;
const MICROS_PER_DAY: i64 = SECONDS_PER_DAY * MICROS_PER_SECOND;
/// `0001-01-01 00:00:00`.
const EARLIEST: i64 = -62_135_596_800 * MICROS_PER_SECOND;
/// `9999-12-31 23:59:59.999999`.
const LATEST: i64 = 253_402_300_800 * MICROS_PER_SECOND - 1;
/// The calendar repeats after 400 years, which are this many days.
const DAYS_PER_CYCLE: i64 = 146_097;
/// The widest offset a zone may have, as in Java: 18 hours.
const WIDEST_OFFSET: i64 = 18 * 3600;

/// Whether a timestamp lies in the years that can be written; Arrow columns can bring others.
pub fn can_be_written(micros: i64) -> bool {
    (EARLIEST..=LATEST).contains(&micros)
}

/// Microseconds since the epoch, or `None` when the text is no timestamp between the years 0001 and 9999.
///
/// Read are `2026`, `2026-01`, `2026-01-31`, and a date followed by a space or `T` and a time:
/// `12`, `12:00`, `12:00:00`, `12:00:00.123456` (further digits are cut off). Months, days, hours,
/// minutes and seconds may have one digit. A time may end in a zone: `Z`, `UTC`, `GMT`, `UT`,
/// `+02`, `+0200`, `+02:00`, `+02:00:00`, or `UTC+02:00`. Names such as `Europe/Paris` are not read.
///
/// ```
/// use tamis_core::event::parse_timestamp;
/// assert_eq!(parse_timestamp("1970-01-02"), Some(86_400_000_000));
/// assert_eq!(parse_timestamp("1970-01-01T02:00:00+02:00"), Some(0));
/// assert_eq!(parse_timestamp("2026-02-30"), None);
/// ```
pub fn parse_timestamp(text: &str) -> Option<i64> {
    let mut rest = Rest(text.trim_ascii().as_bytes());
    let year = rest.digits(4, 4)?;
    let month = if rest.take(b'-') { rest.digits(1, 2)? } else { return rest.end().and(days(year, 1, 1)) };
    let day = if rest.take(b'-') { rest.digits(1, 2)? } else { return rest.end().and(days(year, month, 1)) };
    let midnight = days(year, month, day)?;
    if rest.end().is_some() {
        return Some(midnight);
    }
    if !rest.take(b'T') && !rest.take(b' ') {
        return None;
    }
    let hour = rest.digits(1, 2)?;
    let minute = if rest.take(b':') { rest.digits(1, 2)? } else { 0 };
    // The sign of a zone is no separator, so `12:00` may be followed by seconds or by a zone.
    let second = if rest.take(b':') { rest.digits(1, 2)? } else { 0 };
    if hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let fraction = if rest.take(b'.') { rest.fraction() } else { 0 };
    let offset = rest.zone()?;
    let seconds = hour * 3600 + minute * 60 + second - offset;
    let micros = midnight + seconds * MICROS_PER_SECOND + fraction;
    can_be_written(micros).then_some(micros)
}

/// The timestamp as SQL writes it, in UTC: `2026-01-31 12:00:00`, with a fraction only where there is one.
///
/// Years outside 0000 to 9999, which only Arrow columns can bring, are written with a sign.
///
/// ```
/// use tamis_core::event::format_timestamp;
/// assert_eq!(format_timestamp(0), "1970-01-01 00:00:00");
/// assert_eq!(format_timestamp(-500_000), "1969-12-31 23:59:59.5");
/// ```
pub fn format_timestamp(micros: i64) -> String {
    let (year, month, day) = date_of(micros.div_euclid(MICROS_PER_DAY));
    let in_day = micros.rem_euclid(MICROS_PER_DAY);
    let (second_of_day, fraction) = (in_day / MICROS_PER_SECOND, in_day % MICROS_PER_SECOND);
    let (hour, minute, second) = (second_of_day / 3600, second_of_day / 60 % 60, second_of_day % 60);
    let year = if (0..=9999).contains(&year) { format!("{year:04}") } else { format!("{year:+05}") };
    let mut text = format!("{year}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}");
    if fraction != 0 {
        text.push_str(format!(".{fraction:06}").trim_end_matches('0'));
    }
    text
}

/// The timestamp as JSON and ISO 8601 write it: `2026-01-31T12:00:00Z`.
pub fn format_timestamp_iso(micros: i64) -> String {
    let mut text = format_timestamp(micros).replace(' ', "T");
    text.push('Z');
    text
}

/// Microseconds from the epoch to the start of a day; `None` when there is no such day.
fn days(year: i64, month: i64, day: i64) -> Option<i64> {
    let date = NaiveDate::from_ymd_opt(year as i32, month as u32, day as u32)?;
    (year >= 1).then(|| i64::from(date.to_epoch_days()) * MICROS_PER_DAY)
}

/// Year, month and day of a day since the epoch. Arrow columns can bring years that chrono has not; it is asked
/// for the same day of the cycle that begins with the epoch.
fn date_of(days: i64) -> (i64, u32, u32) {
    let in_cycle = days.rem_euclid(DAYS_PER_CYCLE) as i32;
    let date = NaiveDate::from_epoch_days(in_cycle).expect("the years 1970 to 2369");
    (days.div_euclid(DAYS_PER_CYCLE) * 400 + i64::from(date.year()), date.month(), date.day())
}

/// What is still to be read.
struct Rest<'a>(&'a [u8]);

impl Rest<'_> {
    fn end(&self) -> Option<()> {
        self.0.is_empty().then_some(())
    }

    fn take(&mut self, byte: u8) -> bool {
        let found = self.0.first() == Some(&byte);
        if found {
            self.0 = &self.0[1..];
        }
        found
    }

    fn take_text(&mut self, text: &str) -> bool {
        let rest = self.0.strip_prefix(text.as_bytes());
        self.0 = rest.unwrap_or(self.0);
        rest.is_some()
    }

    /// A number of `least` to `most` digits, not followed by another digit.
    fn digits(&mut self, least: usize, most: usize) -> Option<i64> {
        let count = self.0.iter().take_while(|byte| byte.is_ascii_digit()).count();
        (least..=most).contains(&count).then(|| self.number(count))
    }

    fn number(&mut self, count: usize) -> i64 {
        let (digits, rest) = self.0.split_at(count);
        self.0 = rest;
        digits.iter().fold(0, |sum, digit| sum * 10 + (digit - b'0') as i64)
    }

    /// Microseconds from the digits after the point, of which the first six count.
    fn fraction(&mut self) -> i64 {
        let mut micros = 0;
        let mut unit = MICROS_PER_SECOND / 10;
        while let Some(digit) = self.0.first().filter(|byte| byte.is_ascii_digit()) {
            micros += (digit - b'0') as i64 * unit;
            unit /= 10;
            self.0 = &self.0[1..];
        }
        micros
    }

    /// Seconds east of UTC; reads to the end.
    fn zone(&mut self) -> Option<i64> {
        self.take(b' ');
        if self.0.is_empty() || self.0 == b"Z" {
            return Some(0);
        }
        if (self.take_text("UTC") || self.take_text("GMT") || self.take_text("UT")) && self.0.is_empty() {
            return Some(0);
        }
        let sign = if self.take(b'+') { 1 } else { self.take(b'-').then_some(-1)? };
        let leading = self.0.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let (hours, minutes, seconds) = match leading {
            4 => (self.number(2), self.number(2), 0),
            1 | 2 => {
                let hours = self.number(leading);
                let minutes = if self.take(b':') { self.digits(1, 2)? } else { 0 };
                (hours, minutes, if self.take(b':') { self.digits(1, 2)? } else { 0 })
            }
            _ => return None,
        };
        self.end()?;
        let offset = hours * 3600 + minutes * 60 + seconds;
        (minutes <= 59 && seconds <= 59 && offset <= WIDEST_OFFSET).then_some(sign * offset)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const NOON: i64 = 1_769_860_800_000_000;

    #[test]
    fn reads_every_documented_form() {
        for text in [
            "2026-01-31 12:00",
            "2026-1-31 12",
            "2026-01-31 12:00:00",
            "2026-01-31T12:00:00",
            "2026-01-31T12:00:00Z",
            "2026-01-31T12:00Z",
            "2026-01-31 12:00:00 UTC",
            "2026-01-31 12:00:00UTC",
            "2026-01-31T14:00:00+02:00",
            "2026-01-31T14:00:00+2:00",
            "2026-01-31T14:00:00+0200",
            "2026-01-31T14:00:00+02",
            "2026-01-31T14:00:00.0+02:00:00",
            "2026-01-31T06:30:00-05:30",
            "2026-01-31T14:00:00UTC+02:00",
            "  2026-01-31 12:00:00.000000999 ",
        ] {
            assert_eq!(parse_timestamp(text), Some(NOON), "{text}");
        }
        assert_eq!(parse_timestamp("2026-01-31"), Some(NOON - MICROS_PER_DAY / 2));
        assert_eq!(parse_timestamp("2026-01"), parse_timestamp("2026-01-01"));
        assert_eq!(parse_timestamp("2026"), parse_timestamp("2026-01-01"));
        assert_eq!(parse_timestamp("2026-01-31 12:00:00.5"), Some(NOON + 500_000));
        assert_eq!(parse_timestamp("2026-01-31 12:00:00.123456789"), Some(NOON + 123_456));
        assert_eq!(parse_timestamp("0001-01-01"), Some(EARLIEST));
        assert_eq!(parse_timestamp("9999-12-31 23:59:59.9999999"), Some(LATEST));
        assert_eq!(parse_timestamp("2000-02-29"), Some(951_782_400_000_000));
        assert_eq!(parse_timestamp("0004-02-29"), Some(EARLIEST + 1_154 * MICROS_PER_DAY));
        assert_eq!(parse_timestamp("9999-12-31 23:59:59.9999999+00:00"), Some(LATEST));
        assert_eq!(parse_timestamp("0001-01-01 00:00:00-18:00"), Some(EARLIEST + 18 * 3_600_000_000));
        assert_eq!(parse_timestamp("1970-01-01 00:00:00+18:00:00"), Some(-18 * 3_600_000_000));
    }

    #[test]
    fn refuses_what_is_no_timestamp() {
        for text in [
            "",
            "yesterday",
            "26-01-31",
            "02026-01-31",
            "0000-01-01",
            "2026-00-01",
            "2026-13-01",
            "2026-02-29",
            "1900-02-29",
            "2026-01-32",
            "2026-01-31x",
            "2026-01-31 24:00",
            "2026-01-31 12:60",
            "2026-01-31 12:00:60",
            "2016-12-31 23:59:60", // a leap second that there was
            "2100-02-29",
            "10000-01-01",
            "+2026-01-31",
            "-0001-01-01",
            "9999-12-31 23:59:59.9-00:01",
            "2026-01-31 12:00:00+18:00:01",
            "4294969322-01-31",
            "2026-99-99",
            "2026-01-31 12:00:00 Europe/Paris",
            "2026-01-31 12:00:00+19:00",
            "2026-01-31 12:00:00+",
            "2026-01-31 12:00:00+02:60",
            "2026-01-31 12:00:00ZZ",
            "0001-01-01 00:00:00+01:00",
            "2026-01-31\u{a0}12:00",
        ] {
            assert_eq!(parse_timestamp(text), None, "{text}");
        }
    }

    #[test]
    fn writes_the_fraction_only_where_there_is_one() {
        assert_eq!(format_timestamp(NOON), "2026-01-31 12:00:00");
        assert_eq!(format_timestamp(NOON + 120), "2026-01-31 12:00:00.00012");
        assert_eq!(format_timestamp_iso(NOON), "2026-01-31T12:00:00Z");
        assert_eq!(format_timestamp(EARLIEST), "0001-01-01 00:00:00");
        assert_eq!(format_timestamp(LATEST + 1), "+10000-01-01 00:00:00");
        assert_eq!(format_timestamp(i64::MIN), "-290308-12-21 19:59:05.224192");
    }

    proptest! {
        #[test]
        fn text_and_microseconds_round_trip(micros in EARLIEST..=LATEST) {
            prop_assert_eq!(parse_timestamp(&format_timestamp(micros)), Some(micros));
            prop_assert_eq!(parse_timestamp(&format_timestamp_iso(micros)), Some(micros));
        }

        #[test]
        fn days_follow_one_another(days in i64::MIN / MICROS_PER_DAY..i64::MAX / MICROS_PER_DAY) {
            let (date, next) = (date_of(days), date_of(days + 1));
            let (year, month, day) = date;
            prop_assert!(date < next);
            prop_assert!(
                next == (year, month, day + 1)
                    || next == (year, month + 1, 1) && day >= 28
                    || next == (year + 1, 1, 1) && (month, day) == (12, 31)
            );
        }

        #[test]
        fn arbitrary_text_never_panics(text in "\\PC{0,30}") {
            let _ = parse_timestamp(&text);
        }

        #[test]
        fn near_misses_never_panic(text in "[0-9TZ:+. UC-]{0,30}") {
            let _ = parse_timestamp(&text);
        }
    }
}
