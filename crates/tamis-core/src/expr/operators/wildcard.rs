//! The patterns of LIKE: `%` is any text, `_` is any one character, `\` takes the next `%`, `_` or `\`
//! as it is.

/// A pattern that has been read.
pub struct Wildcard(Vec<Piece>);

enum Piece {
    /// Never empty, and never next to another literal.
    Literal(String),
    AnyOne,
    AnyText,
}

impl Wildcard {
    /// Reads a pattern whose escape character is `\`.
    pub fn parse(pattern: &str) -> Result<Self, String> {
        Self::parse_with_escape(pattern, '\\')
    }

    fn parse_with_escape(pattern: &str, escape: char) -> Result<Self, String> {
        let mut pieces = Vec::new();
        let mut literal = String::new();
        let mut chars = pattern.chars();
        while let Some(c) = chars.next() {
            let piece = if c == escape {
                match chars.next() {
                    Some(next) if next == escape || next == '%' || next == '_' => literal.push(next),
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
            } else {
                match c {
                    '%' => Piece::AnyText,
                    '_' => Piece::AnyOne,
                    c => {
                        literal.push(c);
                        continue;
                    }
                }
            };
            if !literal.is_empty() {
                pieces.push(Piece::Literal(std::mem::take(&mut literal)));
            }
            if !matches!((&piece, pieces.last()), (Piece::AnyText, Some(Piece::AnyText))) {
                pieces.push(piece);
            }
        }
        if !literal.is_empty() {
            pieces.push(Piece::Literal(literal));
        }
        Ok(Self(pieces))
    }

    /// Greedy from left to right; after a mismatch only the latest `%` needs to take more text.
    pub fn matches(&self, text: &str) -> bool {
        let pieces = &self.0;
        let (mut piece, mut at) = (0, 0);
        let mut retry: Option<(usize, usize)> = None;
        loop {
            let rest = &text[at..];
            let fits = match pieces.get(piece) {
                Some(Piece::AnyText) if piece + 1 == pieces.len() => return true,
                Some(Piece::AnyText) => {
                    retry = Some((piece + 1, at));
                    Some(0)
                }
                Some(Piece::Literal(literal)) => rest.starts_with(&**literal).then_some(literal.len()),
                Some(Piece::AnyOne) => rest.chars().next().map(char::len_utf8),
                None if rest.is_empty() => return true,
                None => None,
            };
            if let Some(taken) = fits {
                piece += 1;
                at += taken;
                continue;
            }
            let Some((after, start)) = retry else {
                return false;
            };
            let Some(skipped) = text[start..].chars().next() else {
                return false;
            };
            let from = start + skipped.len_utf8();
            at = match &pieces[after] {
                Piece::Literal(literal) => match text[from..].find(&**literal) {
                    Some(found) => from + found,
                    None => return false,
                },
                _ => from,
            };
            retry = Some((after, at));
            piece = after;
        }
    }

    /// The literal parts, in order.
    pub fn literals(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter_map(|piece| match piece {
            Piece::Literal(literal) => Some(&**literal),
            _ => None,
        })
    }
}

/// Rewrites a pattern with another escape character into one whose escape is `\`.
pub fn with_standard_escape(pattern: &str, escape: char) -> Result<String, String> {
    let mut rewritten = String::with_capacity(pattern.len());
    for piece in Wildcard::parse_with_escape(pattern, escape)?.0 {
        match piece {
            Piece::AnyOne => rewritten.push('_'),
            Piece::AnyText => rewritten.push('%'),
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
    Ok(rewritten)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn like(text: &str, pattern: &str) -> bool {
        Wildcard::parse(pattern).unwrap().matches(text)
    }

    /// What a pattern means, by exhaustion.
    fn reference(text: &[char], pattern: &[char]) -> bool {
        match pattern {
            [] => text.is_empty(),
            ['%', rest @ ..] => (0..=text.len()).any(|skip| reference(&text[skip..], rest)),
            ['_', rest @ ..] => !text.is_empty() && reference(&text[1..], rest),
            ['\\', c, rest @ ..] | [c, rest @ ..] => text.first() == Some(c) && reference(&text[1..], rest),
        }
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

    proptest! {
        #[test]
        fn agrees_with_exhaustion(text in "[ab%é]{0,8}", pattern in "([ab_%é]|\\\\%){0,7}") {
            let chars = |s: &str| s.chars().collect::<Vec<_>>();
            prop_assert_eq!(like(&text, &pattern), reference(&chars(&text), &chars(&pattern)));
        }
    }
}
