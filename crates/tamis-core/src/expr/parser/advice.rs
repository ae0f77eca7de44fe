//! Hints for common attempts that the language does not support.

use super::fault::Fault;
use super::literals::TYPED_LITERALS;
use super::terms::NOW_NAMES;
use crate::expr::operators::{REGISTRY, Syntax};
use crate::suggest::suggest;
use crate::term::Function;
use crate::text::{RESERVED_WORDS, is_word_char};

const ARITHMETIC: &str = "arithmetic is written + - * / %";

pub(super) const TWO_ATTRIBUTES: &str =
    "write strings in quotes; only = < <= > >= <=> and BETWEEN compare with another attribute";

/// For a whole SQL statement, of which only the condition is an expression.
pub(super) fn for_statement(text: &str) -> Option<Box<Fault>> {
    let mut words = text.trim_start().split(|c: char| !is_word_char(c));
    let is = |word: &str, keyword: &str| word.eq_ignore_ascii_case(keyword);
    if !words.next().is_some_and(|first| is(first, "SELECT")) || !words.any(|word| is(word, "FROM")) {
        return None;
    }
    let hint = match words.any(|word| is(word, "WHERE")) {
        true => "write only the condition, after WHERE",
        false => "write only a condition, such as age > 30",
    };
    let start = text.len() - text.trim_start().len();
    Some(Fault::new(start, "expected an expression, found a SELECT statement").hint(hint))
}

/// For a symbol or a word that stands where it cannot.
pub(super) fn for_stray(token: &str) -> Option<String> {
    let hint = match token {
        "&&" | "&" => "write AND",
        "|" => "write OR",
        "=>" => "write >=",
        "=<" => "write <=",
        "~" | "=~" | "!~" => "write NOT, or RLIKE for a regular expression",
        ";" => "one text is one expression; leave out the ;",
        "[" | "]" | "{" | "}" => "sets are written x IN (1, 2), arrays ARRAY(1, 2)",
        "‘" | "’" | "“" | "”" | "´" => "use straight quotes: '…'",
        "≤" | "⩽" => "write <=",
        "≥" | "⩾" => "write >=",
        "≠" => "write !=",
        word => return for_word(word),
    };
    Some(hint.into())
}

/// For a word that starts something the language does not have.
pub(super) fn for_word(word: &str) -> Option<String> {
    let hint = match word.to_ascii_uppercase().as_str() {
        "CASE" | "IF" => "write the cases with AND and OR: (a AND b) OR (NOT a AND c)",
        "SELECT" => "there are no subqueries: list the values, x IN (1, 2)",
        "EXISTS" | "FORALL" => "write exists(tags, t -> t LIKE 'a%')",
        "WHERE" => "leave out WHERE: the expression starts with its first predicate",
        "ANY" | "ALL" | "SOME" => "write one predicate for each: x LIKE 'a%' OR x LIKE 'b%'",
        "INTERVAL" => "write a number and a unit: ts > current_timestamp() - INTERVAL 3 DAYS",
        "DIV" | "MOD" => ARITHMETIC,
        "SIMILAR" | "GLOB" | "MATCHES" => "write RLIKE for a regular expression, LIKE for a pattern",
        "DISTINCT" => "write NOT x <=> 5 for x IS DISTINCT FROM 5",
        "UNKNOWN" => "write x IS NULL",
        _ => return None,
    };
    Some(hint.into())
}

/// "did you mean …?" among the words that may stand here.
pub(super) fn did_you_mean<'k>(word: &str, known: impl IntoIterator<Item = &'k str>) -> Option<String> {
    suggest(word, known).map(|known| format!("did you mean {known}?"))
}

/// For a call of a function that does not exist.
pub(super) fn for_function(name: &str) -> String {
    let hint = match name.to_ascii_lowercase().as_str() {
        "isnull" => "write x IS NULL",
        "isnotnull" => "write x IS NOT NULL",
        "regexp_like" | "rlike" | "regexp" => "write x RLIKE 'pattern'",
        "like" | "ilike" => "write x LIKE 'pattern'",
        "starts_with" => "did you mean startswith?",
        "ends_with" => "did you mean endswith?",
        "list_contains" | "array_has" => "did you mean array_contains?",
        "list_has_any" | "array_overlap" => "did you mean arrays_overlap?",
        "count" | "sum" | "avg" | "mean" | "min" | "max" | "stddev" | "first" | "last" | "lag" => {
            "an aggregate looks at many events: add the rule to a tamis.Flow, as count(* BY user LAST 10m) >= 5"
        }
        "all_strings" => {
            "all strings of the event stand in a quantifier: write ANY(all_strings()) ILIKE '%a%'"
        }
        "date" | "to_date" => "write DATE '2026-01-31'",
        "timestamp" | "to_timestamp" => "write TIMESTAMP '2026-01-31 12:00:00'",
        lower => {
            if let Some(hint) = for_word(lower).or_else(|| did_you_mean(lower, function_names())) {
                return hint;
            }
            if let Some(hint) = did_you_mean(lower, RESERVED_WORDS) {
                return hint;
            }
            let known: Vec<&str> = function_names().collect();
            return format!(
                "the functions are {}; compute anything else beforehand and give it to the event as an attribute",
                known.join(", ")
            );
        }
    };
    hint.into()
}

/// For a word before a string: `TIMSTAMP '2026-01-31'`.
pub(super) fn for_typed_literal(word: &str) -> String {
    let operators = ["LIKE", "ILIKE", "RLIKE"];
    did_you_mean(word, TYPED_LITERALS.into_iter().chain(operators))
        .unwrap_or_else(|| "compare an attribute with a string so: name = 'text'".into())
}

pub(super) fn function_names() -> impl Iterator<Item = &'static str> {
    let tests = REGISTRY.iter().filter_map(|rules| match rules.syntax() {
        Syntax::Function(name) => Some(name),
        _ => None,
    });
    tests
        .chain(["ip_in", "exists", "forall", "any", "within_distance", "within_polygon"])
        .chain(NOW_NAMES)
        .chain(Function::call_names())
}
