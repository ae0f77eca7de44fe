//! The cells of strings: points, gaps between them, and the patterns that may hold in a gap.
//!
//! Strings are ordered by their bytes, and the next string after `s` is `s` followed by NUL. Those that start
//! with a prefix are a range, so prefixes only add two cuts. Suffixes, substrings and other patterns
//! are free inside a gap, except where one implies or excludes another. Each possible combination is a
//! cell, with an example if a string was found for it.

use super::cells::{Found, Truths};
use crate::event::{Value, ValueRef};
use crate::expr::operators::Shape;

/// How many patterns are told apart before any of them may hold or not.
const MOST_PATTERNS: usize = 6;

#[derive(Default)]
pub(super) struct Strings {
    points: Vec<String>,
    prefixes: Vec<String>,
    patterns: Vec<Pattern>,
}

struct Pattern {
    /// Its place among the predicates.
    at: usize,
    /// The strings of which one must occur.
    needs: Vec<String>,
    /// Whether it must occur at the end.
    at_end: bool,
    /// Whether its occurrence is enough.
    suffices: bool,
    /// What the predicate is where the pattern holds, and for other strings.
    truths: [Truths; 2],
}

impl Strings {
    pub fn add_point(&mut self, point: &str) {
        self.points.push(point.into());
    }

    pub fn add_prefix(&mut self, prefix: &str) {
        self.points.push(prefix.into());
        self.points.extend(first_after_prefix(prefix));
        self.prefixes.push(prefix.into());
    }

    /// `truths` is what the predicate is where the pattern holds, and for other strings.
    pub fn add_pattern(&mut self, at: usize, shape: &Shape<'_>, truths: [Truths; 2]) {
        let (needs, at_end, suffices) = match shape {
            Shape::Suffix(part) => (vec![part.to_string()], true, true),
            Shape::Substring(part) => (vec![part.to_string()], false, true),
            Shape::Literals(parts) => (parts.clone(), false, false),
            Shape::LowerCase(shape) => (shape.spelt(), false, false),
            _ => (vec![], false, false),
        };
        self.points.push(String::new());
        self.patterns.push(Pattern { at, needs, at_end, suffices, truths });
    }

    /// About how many cells there will be.
    pub fn cell_count(&self) -> usize {
        (1 + self.points.len()) * (1 + (1 << self.patterns.len().min(MOST_PATTERNS)))
    }

    pub fn cells(mut self, found: &mut Found<'_>) {
        if self.points.is_empty() {
            return;
        }
        self.points.push(String::new());
        self.points.sort_unstable();
        self.points.dedup();
        for (at, point) in self.points.iter().enumerate() {
            found.add(Some(Value::Str(point.as_str().into())));
            let first = format!("{point}\0");
            let end = self.points.get(at + 1);
            if end.is_none_or(|end| first < *end) {
                self.gap(&first, end, found);
            }
        }
    }

    /// The cells of the strings from `first` on and before `end`.
    fn gap(&self, first: &str, end: Option<&String>, found: &mut Found<'_>) {
        let mut try_text = |text: &str| {
            if text >= first && end.is_none_or(|end| text < end.as_str()) {
                found.add(Some(Value::Str(text.into())));
            }
        };
        try_text(first);
        if self.patterns.is_empty() {
            return;
        }
        for pattern in &self.patterns {
            pattern.needs.iter().for_each(|part| try_text(part));
        }
        let all_ways = 1usize << self.patterns.len().min(MOST_PATTERNS);
        for chosen in 0..all_ways {
            let parts = |at_end: bool| {
                let chosen = self.patterns.iter().enumerate().filter(move |(at, _)| chosen >> at & 1 == 1);
                chosen.filter(move |(_, pattern)| pattern.at_end == at_end).flat_map(|(_, p)| p.needs.first())
            };
            let text: Vec<&str> = parts(false).chain(parts(true)).map(String::as_str).collect();
            try_text(&format!("{first}{}", text.join("\0")));
        }

        // Whatever else might be, as far as the patterns' own words tell.
        let mut truths = found.predicates.truths(Some(ValueRef::Str(first)));
        if self.patterns.len() > MOST_PATTERNS {
            for Pattern { at, truths: [held, missed], .. } in &self.patterns {
                truths[*at] = held.or_also(*missed);
            }
            found.suppose(truths);
            return;
        }
        let prefix = self.prefixes.iter().filter(|prefix| first.starts_with(prefix.as_str()));
        let prefix = prefix.max_by_key(|prefix| prefix.len()).map_or("", String::as_str);
        for chosen in 0..all_ways {
            let holds = |at: usize| chosen >> at & 1 == 1;
            if self.is_possible(&holds, prefix) {
                for (at, pattern) in self.patterns.iter().enumerate() {
                    truths[pattern.at] = pattern.truths[usize::from(!holds(at))];
                }
                found.suppose(truths.clone());
            }
        }
    }

    /// Whether nothing is known that speaks against these patterns holding, and no others, for a string
    /// that starts with `prefix`.
    fn is_possible(&self, holds: &impl Fn(usize) -> bool, prefix: &str) -> bool {
        let patterns = || self.patterns.iter().enumerate();
        patterns().filter(|(at, _)| !holds(*at)).all(|(_, absent)| {
            !absent.follows_from_substring(prefix)
                && patterns().filter(|(at, _)| holds(*at)).all(|(_, present)| !absent.follows_from(present))
        }) && patterns().filter(|(at, pattern)| holds(*at) && pattern.at_end).all(|(_, a)| {
            patterns()
                .filter(|(at, pattern)| holds(*at) && pattern.at_end)
                .all(|(_, b)| a.needs[0].ends_with(&b.needs[0]) || b.needs[0].ends_with(&a.needs[0]))
        })
    }
}

impl Pattern {
    fn follows_from_substring(&self, part: &str) -> bool {
        self.suffices && !self.at_end && part.contains(&self.needs[0])
    }

    fn follows_from(&self, other: &Pattern) -> bool {
        if self.suffices && self.at_end {
            return other.at_end && other.needs[0].ends_with(&self.needs[0]);
        }
        !other.needs.is_empty() && other.needs.iter().all(|part| self.follows_from_substring(part))
    }
}

/// The first string, in byte order, after all those that start so. `None` if there is none.
fn first_after_prefix(prefix: &str) -> Option<String> {
    let mut chars: Vec<char> = prefix.chars().collect();
    while let Some(last) = chars.pop() {
        let next = match last {
            '\u{D7FF}' => Some('\u{E000}'),
            _ => char::from_u32(last as u32 + 1),
        };
        if let Some(next) = next {
            chars.push(next);
            return Some(chars.into_iter().collect());
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_end_before_the_next_one() {
        assert_eq!(first_after_prefix("ab").as_deref(), Some("ac"));
        assert_eq!(first_after_prefix("a\u{10FFFF}").as_deref(), Some("b"));
        assert_eq!(first_after_prefix("\u{D7FF}").as_deref(), Some("\u{E000}"));
        assert_eq!(first_after_prefix("\u{10FFFF}"), None);
        assert_eq!(first_after_prefix(""), None);
    }
}
