//! Literals that a string must contain to match a regular expression: what a prefilter looks for.

use regex_syntax::hir::literal::Extractor;
use regex_syntax::hir::{Hir, HirKind};

/// More alternatives than this are not worth searching for.
const MAX_LITERALS: usize = 64;

/// Where in a sequence a literal is looked for: at each of its first elements.
const MAX_STARTS: usize = 16;

/// Literals of which every match contains at least one, none of them empty; the choice whose shortest
/// literal is longest. `None` when nothing is certain.
pub fn required_literals(hir: &Hir) -> Option<Vec<String>> {
    let mut choices = Vec::from_iter(starting_literals(hir));
    match hir.kind() {
        HirKind::Concat(parts) => {
            choices.extend(parts.iter().filter_map(required_literals));
            for start in 1..parts.len().min(MAX_STARTS) {
                choices.extend(starting_literals(&Hir::concat(parts[start..].to_vec())));
            }
        }
        HirKind::Capture(capture) => choices.extend(required_literals(&capture.sub)),
        HirKind::Repetition(repetition) if repetition.min > 0 => {
            choices.extend(required_literals(&repetition.sub));
        }
        HirKind::Alternation(branches) => {
            let each: Option<Vec<_>> = branches.iter().map(required_literals).collect();
            choices.extend(each.map(|literals| literals.concat()));
        }
        _ => {}
    }
    choices.retain(|literals| literals.len() <= MAX_LITERALS);
    choices.into_iter().max_by_key(|literals| {
        let shortest = literals.iter().map(String::len).min();
        // Beyond a few bytes, fewer literals are better than longer ones.
        (shortest.min(Some(4)), std::cmp::Reverse(literals.len()), shortest)
    })
}

fn starting_literals(hir: &Hir) -> Option<Vec<String>> {
    let sequence = Extractor::new().extract(hir);
    let literals: Vec<String> =
        sequence.literals()?.iter().map(|literal| whole_chars(literal.as_bytes())).collect();
    let useful = !literals.is_empty() && literals.iter().all(|literal| !literal.is_empty());
    useful.then_some(literals)
}

/// An extracted literal may have been cut inside a character.
fn whole_chars(bytes: &[u8]) -> String {
    bytes.utf8_chunks().next().map_or_else(String::new, |chunk| chunk.valid().to_owned())
}
