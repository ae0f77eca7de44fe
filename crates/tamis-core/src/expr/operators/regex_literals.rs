//! Literals that a string must contain to match a regular expression, for a prefilter.

use regex_syntax::hir::literal::Extractor;
use regex_syntax::hir::{Class, ClassUnicode, ClassUnicodeRange, Dot, Hir, HirKind, Repetition};

use super::{Shape, TextShape};

/// More alternatives than this are not worth searching for.
const MAX_LITERALS: usize = 64;

/// Where in a sequence a literal is looked for: at each of its first elements.
const MAX_STARTS: usize = 16;

/// Classes with more characters are taken for any character.
const MAX_CLASS: usize = 32;

/// The literals that a string needs, in lower case if that makes fewer of them or longer ones.
pub fn shape_of(hir: &Hir) -> Shape<'static> {
    let as_written = required_literals(hir);
    let in_lower_case = has_two_cases(hir).then(|| required_literals(&lower_case(hir))).flatten();
    let worth = |literals: &Option<Vec<String>>| literals.as_deref().map(worth);
    match (as_written, in_lower_case) {
        (as_written, Some(literals)) if worth(&Some(literals.clone())) > worth(&as_written) => {
            Shape::LowerCase(TextShape::Literals(literals))
        }
        (Some(literals), _) => Shape::Literals(literals),
        (None, _) => Shape::Opaque,
    }
}

/// Whether it has a class that holds a letter in both cases: elsewhere lower case does not help.
fn has_two_cases(hir: &Hir) -> bool {
    match hir.kind() {
        HirKind::Class(class) => members(class).is_some_and(|members| {
            members
                .iter()
                .any(|c| c.to_lowercase().next().is_some_and(|lower| lower != *c && members.contains(&lower)))
        }),
        HirKind::Concat(parts) | HirKind::Alternation(parts) => parts.iter().any(has_two_cases),
        HirKind::Capture(capture) => has_two_cases(&capture.sub),
        HirKind::Repetition(repetition) => has_two_cases(&repetition.sub),
        HirKind::Empty | HirKind::Literal(_) | HirKind::Look(_) => false,
    }
}

/// An expression that the lower case of every match of `hir` matches, as far as literals and their order go.
fn lower_case(hir: &Hir) -> Hir {
    let all = |parts: &[Hir]| parts.iter().map(lower_case).collect();
    match hir.kind() {
        HirKind::Literal(literal) => match std::str::from_utf8(&literal.0) {
            Ok(text) => Hir::concat(text.chars().map(lower_case_of).collect()),
            Err(_) => Hir::dot(Dot::AnyChar),
        },
        HirKind::Class(class) => match members(class) {
            Some(members) => Hir::alternation(members.into_iter().map(lower_case_of).collect()),
            None => Hir::dot(Dot::AnyChar),
        },
        HirKind::Concat(parts) => Hir::concat(all(parts)),
        HirKind::Alternation(parts) => Hir::alternation(all(parts)),
        HirKind::Capture(capture) => lower_case(&capture.sub),
        HirKind::Repetition(repetition) => {
            Hir::repetition(Repetition { sub: Box::new(lower_case(&repetition.sub)), ..repetition.clone() })
        }
        HirKind::Empty | HirKind::Look(_) => hir.clone(),
    }
}

/// What a character becomes.
fn lower_case_of(c: char) -> Hir {
    // It depends on what follows.
    if c == 'Σ' {
        let range = |c| ClassUnicodeRange::new(c, c);
        return Hir::class(Class::Unicode(ClassUnicode::new([range('σ'), range('ς')])));
    }
    Hir::literal(c.to_lowercase().collect::<String>().into_bytes())
}

/// The characters of a class, if they are few.
fn members(class: &Class) -> Option<Vec<char>> {
    let ranges: Vec<(char, char)> = match class {
        Class::Unicode(class) => class.iter().map(|range| (range.start(), range.end())).collect(),
        Class::Bytes(class) => class
            .is_ascii()
            .then(|| class.iter().map(|range| (range.start() as char, range.end() as char)).collect())?,
    };
    let count: usize = ranges.iter().map(|(start, end)| *end as usize - *start as usize + 1).sum();
    (count <= MAX_CLASS).then(|| ranges.into_iter().flat_map(|(start, end)| start..=end).collect())
}

/// Literals of which every match contains at least one, none of them empty; the choice whose shortest
/// literal is longest. `None` when nothing is certain.
fn required_literals(hir: &Hir) -> Option<Vec<String>> {
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
    choices.into_iter().max_by_key(|literals| worth(literals))
}

/// The greater, the better a prefilter: beyond a few bytes, fewer literals are better than longer ones.
fn worth(literals: &[String]) -> (Option<usize>, std::cmp::Reverse<usize>, Option<usize>) {
    let shortest = literals.iter().map(String::len).min();
    (shortest.min(Some(4)), std::cmp::Reverse(literals.len()), shortest)
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
