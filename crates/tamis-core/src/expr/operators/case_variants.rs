//! The strings whose lower case is a given string: the literals of a case-insensitive pattern, as they can
//! occur in a value.

use std::collections::HashMap;
use std::sync::OnceLock;

/// More spellings than this are not worth searching for.
const MAX_VARIANTS: usize = 64;

/// Characters of a literal that are spelt out; more would multiply the spellings for little gain.
const WINDOW: usize = 4;

/// All spellings of a short part of `literal`, which is in lower case: every string whose lower case
/// contains `literal` contains at least one of them. `None` when there are too many to be useful.
pub fn spellings(literal: &str) -> Option<Vec<String>> {
    let chars: Vec<char> = literal.chars().collect();
    let windows = chars.windows(WINDOW.min(chars.len()).max(1));
    windows.filter_map(spell).min_by_key(Vec::len)
}

fn spell(window: &[char]) -> Option<Vec<String>> {
    let mut spelt = vec![String::new()];
    for c in window {
        // The one character with a longer lower case, İ, ends in this one: it has no spelling alone.
        if *c == '\u{307}' {
            return None;
        }
        let capitals = capitals().get(c).map_or(&[][..], Vec::as_slice);
        if spelt.len() * (1 + capitals.len()) > MAX_VARIANTS {
            return None;
        }
        spelt = spelt
            .iter()
            .flat_map(|start| std::iter::once(c).chain(capitals).map(move |next| format!("{start}{next}")))
            .collect();
    }
    Some(spelt)
}

/// For each character, the others that become it in lower case, alone or as the start of a longer one.
fn capitals() -> &'static HashMap<char, Vec<char>> {
    static CAPITALS: OnceLock<HashMap<char, Vec<char>>> = OnceLock::new();
    CAPITALS.get_or_init(|| {
        let mut capitals: HashMap<char, Vec<char>> = HashMap::new();
        for c in '\0'..=char::MAX {
            if let Some(lower) = c.to_lowercase().next()
                && lower != c
            {
                capitals.entry(lower).or_default().push(c);
            }
        }
        // At the end of a word a capital sigma becomes this one.
        capitals.entry('ς').or_default().push('Σ');
        capitals
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_spelling_of_a_literal_is_covered() {
        for text in ["DISK full", "dIsk", "DIS\u{212a}", "Straße ΟΔΥΣΣΕΥΣ", "ΟΔΟΣ", "İstanbul", "Ångström"]
        {
            let lower = text.to_lowercase();
            let chars: Vec<char> = lower.chars().collect();
            for start in 0..chars.len() {
                for end in start + 1..=chars.len() {
                    let literal: String = chars[start..end].iter().collect();
                    if let Some(spelt) = spellings(&literal) {
                        assert!(
                            spelt.iter().any(|s| text.contains(s.as_str())),
                            "{text}: {literal}: {spelt:?}"
                        );
                        assert!(spelt.iter().all(|s| !s.is_empty()));
                    }
                }
            }
        }
    }

    #[test]
    fn the_part_with_fewest_spellings_is_chosen() {
        assert_eq!(spellings("disk-2026"), Some(vec!["-202".to_string()]));
        assert_eq!(spellings("ab").map(|s| s.len()), Some(4));
        assert_eq!(spellings(""), None);
        assert_eq!(spellings("\u{307}"), None);
    }
}
