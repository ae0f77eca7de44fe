//! The patterns of LIKE: `%` is any text, `_` is any one character, and `\` escapes `%`, `_` and `\`.
//!
//! Its `%` split a pattern into *segments*. The first must be at the start of the text and the last at its
//! end. Each of the others is searched for after the one before it, and the first occurrence is the right
//! one: it leaves the most text. One literal is found in linear time. Several literals with `_` between them
//! are tried where the first occurs, as long as these attempts cost less than the text that was skipped. Then
//! [`ShiftAnd`] takes over, whose time does not depend on the text. So a text of n bytes and a pattern of m
//! characters take at most n × ⌈m / 64⌉ steps.

use std::sync::OnceLock;

use super::shift_and::ShiftAnd;
use super::text_shape::TextShape;
use crate::fork::get_or_init;

/// A pattern that has been read.
pub struct Wildcard {
    /// At least one; only the first and the last may be empty.
    segments: Vec<Segment>,
}

/// What stands between two `%`.
#[derive(Default)]
struct Segment {
    pieces: Vec<Piece>,
    /// Made when a text first needs it.
    search: OnceLock<Box<ShiftAnd>>,
}

/// Next to a piece is always one of the other kind.
pub enum Piece {
    /// Never empty.
    Literal(String),
    /// This many characters, whichever they are; never 0.
    Any(usize),
}

impl Wildcard {
    /// Reads a pattern whose escape character is `\`.
    pub fn parse(pattern: &str) -> Result<Self, String> {
        Self::parse_with_escape(pattern, '\\')
    }

    fn parse_with_escape(pattern: &str, escape: char) -> Result<Self, String> {
        let mut segments = vec![];
        let mut segment = Segment::default();
        let mut chars = pattern.chars();
        while let Some(c) = chars.next() {
            if c == escape {
                match chars.next() {
                    Some(next) if next == escape || next == '%' || next == '_' => segment.push_literal(next),
                    Some(next) => {
                        return Err(format!(
                            "in a LIKE pattern the escape {escape} cannot stand before {next}"
                        ));
                    }
                    None => {
                        return Err(format!("a LIKE pattern cannot end with its escape {escape}"));
                    }
                }
                continue;
            }
            match c {
                '%' if segments.is_empty() || !segment.pieces.is_empty() => {
                    segments.push(std::mem::take(&mut segment));
                }
                '%' => {}
                '_' => segment.push_any(),
                c => segment.push_literal(c),
            }
        }
        segments.push(segment);
        Ok(Self { segments })
    }

    pub fn matches(&self, text: &str) -> bool {
        self.matches_counting(text, &mut 0)
    }

    /// Adds to `steps` what the text cost beyond reading it once: see [`ShiftAnd::find_end`].
    fn matches_counting(&self, text: &str, steps: &mut usize) -> bool {
        match &self.segments[..] {
            [] => unreachable!("a pattern has at least one segment"),
            [only] => only.strip_prefix(text) == Some(""),
            [first, middle @ .., last] => first
                .strip_prefix(text)
                .and_then(|rest| last.strip_suffix(rest))
                .and_then(|rest| middle.iter().try_fold(rest, |rest, segment| segment.skip_past(rest, steps)))
                .is_some(),
        }
    }

    /// For which texts it is true.
    pub fn shape(&self) -> TextShape {
        let literal = |segment: &Segment| match &segment.pieces[..] {
            [] => Some(String::new()),
            [Piece::Literal(literal)] => Some(literal.clone()),
            _ => None,
        };
        let exact = match &self.segments[..] {
            [only] => literal(only).map(TextShape::Whole),
            [first, last] if last.pieces.is_empty() => literal(first).map(TextShape::Prefix),
            [first, last] if first.pieces.is_empty() => literal(last).map(TextShape::Suffix),
            [first, middle, last] if first.pieces.is_empty() && last.pieces.is_empty() => {
                literal(middle).map(TextShape::Substring)
            }
            _ => None,
        };
        let literals = || self.longest_literal().map(|literal| TextShape::Literals(vec![literal]));
        exact.or_else(literals).unwrap_or(TextShape::Opaque)
    }

    pub fn longest_literal(&self) -> Option<String> {
        self.literals().max_by_key(|literal| literal.len()).map(str::to_owned)
    }

    /// The literal parts, in order.
    fn literals(&self) -> impl Iterator<Item = &str> {
        self.segments.iter().flat_map(|segment| &segment.pieces).filter_map(|piece| match piece {
            Piece::Literal(literal) => Some(&**literal),
            Piece::Any(_) => None,
        })
    }
}

impl Segment {
    fn push_literal(&mut self, c: char) {
        match self.pieces.last_mut() {
            Some(Piece::Literal(literal)) => literal.push(c),
            _ => self.pieces.push(Piece::Literal(c.into())),
        }
    }

    fn push_any(&mut self) {
        match self.pieces.last_mut() {
            Some(Piece::Any(count)) => *count += 1,
            _ => self.pieces.push(Piece::Any(1)),
        }
    }

    /// What follows this segment at the start of `text`.
    fn strip_prefix<'t>(&self, text: &'t str) -> Option<&'t str> {
        strip_prefix(&self.pieces, text)
    }

    /// What precedes this segment at the end of `text`.
    fn strip_suffix<'t>(&self, text: &'t str) -> Option<&'t str> {
        self.pieces.iter().rev().try_fold(text, |text, piece| match piece {
            Piece::Literal(literal) => text.strip_suffix(&**literal),
            Piece::Any(count) => text.char_indices().nth_back(count - 1).map(|(at, _)| &text[..at]),
        })
    }

    /// What follows the first occurrence of this segment in `text`.
    fn skip_past<'t>(&self, text: &'t str, steps: &mut usize) -> Option<&'t str> {
        match &self.pieces[..] {
            [Piece::Any(before), core @ .., Piece::Any(after)] => {
                skip(self.skip_past_core(core, skip(text, *before)?, steps)?, *after)
            }
            [Piece::Any(before), core @ ..] => self.skip_past_core(core, skip(text, *before)?, steps),
            [core @ .., Piece::Any(after)] => skip(self.skip_past_core(core, text, steps)?, *after),
            core => self.skip_past_core(core, text, steps),
        }
    }

    /// `core` is this segment without the `_` at its ends: those only say how much text there must be.
    fn skip_past_core<'t>(&self, core: &[Piece], text: &'t str, steps: &mut usize) -> Option<&'t str> {
        match core {
            [Piece::Literal(literal)] => text.find(&**literal).map(|at| &text[at + literal.len()..]),
            [Piece::Literal(first), rest @ ..] => {
                let price = core.iter().map(Piece::words).sum::<usize>();
                let (mut at, mut spent) = (0, 0);
                loop {
                    at += text[at..].find(&**first)?;
                    let after = at + first.len();
                    // Nearly every text is decided by a few tries, for which the text that was skipped pays.
                    spent += price;
                    if spent > at {
                        let search = get_or_init(&self.search, || Box::new(ShiftAnd::new(first, core)));
                        return search.find_end(&text[at..], first, steps).map(|end| &text[at + end..]);
                    }
                    *steps += price;
                    if let Some(found) = strip_prefix(rest, &text[after..]) {
                        return Some(found);
                    }
                    at += text[at..].chars().next().map_or(0, char::len_utf8);
                }
            }
            _ => Some(text),
        }
    }
}

impl Piece {
    /// How many words of 64 characters are compared, at most.
    fn words(&self) -> usize {
        match self {
            Piece::Literal(literal) => literal.len().div_ceil(64),
            Piece::Any(count) => count.div_ceil(64),
        }
    }
}

/// What follows `pieces` at the start of `text`.
fn strip_prefix<'t>(pieces: &[Piece], text: &'t str) -> Option<&'t str> {
    pieces.iter().try_fold(text, |text, piece| match piece {
        Piece::Literal(literal) => text.strip_prefix(&**literal),
        Piece::Any(count) => skip(text, *count),
    })
}

/// `text` without its first `count` characters, if it has that many.
fn skip(text: &str, count: usize) -> Option<&str> {
    let (at, last) = text.char_indices().nth(count - 1)?;
    Some(&text[at + last.len_utf8()..])
}

/// Rewrites a pattern with another escape character into one whose escape is `\`.
pub fn with_standard_escape(pattern: &str, escape: char) -> Result<String, String> {
    let mut rewritten = String::with_capacity(pattern.len());
    for (at, segment) in Wildcard::parse_with_escape(pattern, escape)?.segments.iter().enumerate() {
        if at > 0 {
            rewritten.push('%');
        }
        for piece in &segment.pieces {
            match piece {
                Piece::Any(count) => rewritten.extend(std::iter::repeat_n('_', *count)),
                Piece::Literal(literal) => {
                    for c in literal.chars() {
                        if matches!(c, '%' | '_' | '\\') {
                            rewritten.push('\\');
                        }
                        rewritten.push(c);
                    }
                }
            }
        }
    }
    Ok(rewritten)
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use proptest::prelude::*;

    fn like(text: &str, pattern: &str) -> bool {
        Wildcard::parse(pattern).unwrap().matches(text)
    }

    /// What a pattern means: whether each of its beginnings takes each beginning of the text.
    pub fn reference(text: &str, pattern: &str) -> bool {
        let text: Vec<char> = text.chars().collect();
        let mut takes = vec![false; text.len() + 1];
        takes[0] = true;
        let mut pattern = pattern.chars();
        while let Some(c) = pattern.next() {
            let before = takes.clone();
            for end in 0..=text.len() {
                takes[end] = match c {
                    '%' => before[..=end].contains(&true),
                    _ if end == 0 => false,
                    '_' => before[end - 1],
                    '\\' => before[end - 1] && pattern.clone().next() == Some(text[end - 1]),
                    c => before[end - 1] && c == text[end - 1],
                };
            }
            if c == '\\' {
                pattern.next();
            }
        }
        takes[text.len()]
    }

    /// The answer and the steps it took.
    fn counted(text: &str, pattern: &str) -> (bool, usize) {
        let mut steps = 0;
        (Wildcard::parse(pattern).unwrap().matches_counting(text, &mut steps), steps)
    }

    fn allowed_steps(text: &str, pattern: &str) -> usize {
        text.len() * pattern.chars().count().div_ceil(64)
    }

    #[test]
    fn wildcards_and_escapes() {
        assert!(like("abc", "abc") && !like("abcd", "abc") && !like("ab", "abc"));
        assert!(like("", "") && like("", "%") && !like("", "_"));
        assert!(like("été", "_t_") && like("a\nb", "a_b"));
        assert!(like("50%", r"50\%") && !like("50x", r"50\%"));
        assert!(like(r"a\b", r"a\\b"));
        assert!(like("abab", "%ab") && like("aab", "%ab") && !like("aba", "%ab"));
        assert!(Wildcard::parse(r"a\b").is_err());
        assert!(Wildcard::parse(r"ab\").is_err());
    }

    #[test]
    fn another_escape_is_rewritten() {
        assert_eq!(with_standard_escape(r"50!%_\", '!').unwrap(), r"50\%_\\");
        assert!(with_standard_escape("a!b", '!').is_err());
        assert_eq!(with_standard_escape("%%_", '%').unwrap(), r"\%_");
    }

    #[test]
    fn long_patterns_take_few_steps() {
        let many = |part: &str, count| part.repeat(count);
        let cases = [
            ("%".to_string() + &many("a", 8000) + "_b", many("a", 120_000), false),
            ("%".to_string() + &many("a", 8000) + "_b%", many("a", 120_000), false),
            ("%".to_string() + &many("a", 8000) + "_b%", many("a", 120_000) + "xb", true),
            ("%".to_string() + &many("a_", 4000) + "b%", many("a", 120_000), false),
            ("%".to_string() + &many("ab_", 3000) + "%c", many("abc", 40_000), true),
            ("%".to_string() + &many("é_", 100) + "ü%", many("é", 20_000), false),
            ("%".to_string() + &many("a_b%", 300) + "c", many("a", 20_000) + &many("aab", 300), false),
            ("%".to_string() + &many("_", 8000) + "%", many("é", 7999), false),
            ("%a_b%".to_string(), many("a", 120_000), false),
            ("%".to_string() + &many("a", 8000) + "_b%", many("x", 60_000) + &many("a", 60_000), false),
        ];
        for (pattern, text, expected) in cases {
            let (answer, steps) = counted(&text, &pattern);
            let name: String = pattern.chars().take(20).collect();
            assert_eq!(answer, expected, "{name}");
            let allowed = allowed_steps(&text, &pattern);
            assert!(steps <= allowed, "{name}: {steps} steps, {allowed} allowed");
        }
    }

    #[test]
    fn steps_are_counted() {
        // Two words of pattern: once for the first literal, then for each character of the text after it.
        let (_, steps) = counted(&"a".repeat(1000), &format!("%{}_b%", "a".repeat(100)));
        assert_eq!(steps, 2 + 2 * 900);
        // One try at the `a`, a step for each piece.
        assert_eq!(counted("xxxxxaxxx", "%a_b%"), (false, 3));
        // Nothing to search for: the end is compared, the rest is one literal.
        assert_eq!(counted(&"a".repeat(1000), "%aaaa%a_b").1, 0);
    }

    #[test]
    fn many_distinct_characters_take_memory_in_proportion() {
        let distinct: String = (0x4e00..0x9000).filter_map(char::from_u32).collect();
        let pattern = format!("%{distinct}_b%");
        let (answer, steps) = counted(&format!("x{distinct}xb"), &pattern);
        assert!(answer && steps <= allowed_steps(&distinct, &pattern));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn agrees_with_the_reference(text in "[ab%é]{0,12}", pattern in "([ab_%é]|\\\\%){0,10}") {
            prop_assert_eq!(like(&text, &pattern), reference(&text, &pattern));
        }

        /// Patterns of several words, cut out of the text and damaged, so that many occur or nearly do.
        #[test]
        fn long_patterns_agree_with_the_reference(
            text in "([ab]{1,3}|é|\u{1f600}){60,260}",
            (from, length) in (0..200usize, 60..200usize),
            wild in prop::collection::vec((0..200usize, "[_%aé]"), 0..8),
            (before, after) in ("[%_]{0,3}", "[%_]{0,3}"),
        ) {
            let mut middle: Vec<char> = text.chars().skip(from).take(length).collect();
            for (at, c) in wild {
                if let Some(place) = middle.get_mut(at) {
                    *place = c.chars().next().unwrap();
                }
            }
            let pattern = before + &middle.into_iter().collect::<String>() + &after;
            let (answer, steps) = counted(&text, &pattern);
            prop_assert_eq!(answer, reference(&text, &pattern));
            prop_assert!(steps <= allowed_steps(&text, &pattern));
        }
    }
}
