use proptest::prelude::*;

use super::{locate, parse};
use crate::error::ExpressionError;
use crate::expr::limits::{MAX_DEPTH, MAX_NAME_BYTES, MAX_PREDICATES, MAX_SET_MEMBERS, MAX_STRING_BYTES};
use crate::expr::{Expr, Operator, Outcome, Predicate};
use crate::value::Value;

/// A predicate in a few characters: `age NOT IN [Int(1)]`.
fn brief(expr: &Expr) -> String {
    let list = |name: &str, children: &[Expr]| {
        let children: Vec<String> = children.iter().map(brief).collect();
        format!("{name}({})", children.join(", "))
    };
    match expr {
        Expr::Constant(Outcome::TRUE) => "TRUE".into(),
        Expr::Constant(Outcome::FALSE) => "FALSE".into(),
        Expr::Constant(_) => "NULL".into(),
        Expr::Predicate(Predicate { term, operator, negated, operands, weight }) => {
            let not = if *negated { "NOT " } else { "" };
            let weight = weight.map_or(String::new(), |weight| format!("^{weight}"));
            match &**operands {
                [] if *operator == Operator::TRUTH => format!("{}{weight}", term.name()),
                operands => format!("{} {not}{operator:?} {operands:?}{weight}", term.name()),
            }
        }
        Expr::Not(child) => list("not", std::slice::from_ref(child)),
        Expr::And(children) => list("and", children),
        Expr::Or(children) => list("or", children),
        Expr::Xor(children) => list("xor", children),
        Expr::Xnor(children) => list("xnor", children),
        Expr::AtLeast(least, children) => list(&format!("least{least}"), children),
    }
}

#[track_caller]
fn reads(text: &str, expected: &str) {
    match parse(text) {
        Ok(expr) => assert_eq!(brief(&expr), expected, "{text}"),
        Err(error) => panic!("{text}: {error}"),
    }
}

/// The only operand of the only predicate.
#[track_caller]
fn operand(literal: &str) -> Value {
    match parse(&format!("x = {literal}")) {
        Ok(Expr::Predicate(predicate)) => predicate.operands[0].clone(),
        other => panic!("{literal}: {other:?}"),
    }
}

#[track_caller]
fn refused(text: &str, column: u32, message: &str, hint: &str) {
    let error = parse(text).expect_err(text);
    let place = error.place.expect("a place");
    assert!(error.message.contains(message), "{text}: {error}");
    assert_eq!((place.line, place.column), (1, column), "{text}: {error}");
    assert!(error.hint.as_deref().unwrap_or("").contains(hint), "{text}: {error}");
    let snippet = error.snippet.expect("a snippet");
    assert!(snippet.ends_with('^'), "{snippet}");
}

#[test]
fn connectives_bind_or_xor_and_not() {
    reads("a OR b AND c", "or(a, and(b, c))");
    reads("a AND b OR c AND d OR e", "or(and(a, b), and(c, d), e)");
    reads("a XOR b AND c OR d", "or(xor(a, and(b, c)), d)");
    reads("a OR b XNOR c", "or(a, xnor(b, c))");
    reads("NOT a AND NOT NOT b", "and(not(a), not(not(b)))");
    reads("!a AND ! b", "and(not(a), not(b))");
    reads("NOT a = 1 OR b", "or(not(a = [Int(1)]), b)");
    reads("a XOR b XOR c", "xor(a, b, c)");
    reads("a XOR b XOR c XNOR d XNOR e XOR f", "xor(xnor(xor(a, b, c), d, e), f)");
}

#[test]
fn parentheses_are_structure() {
    reads("(a AND b) AND c", "and(and(a, b), c)");
    reads("a AND (b AND c)", "and(a, and(b, c))");
    reads("a AND (b OR c) AND d", "and(a, or(b, c), d)");
    reads("NOT (a OR b)", "not(or(a, b))");
    reads("((a))", "a");
    reads("(age) > 30 AND ((x)) NOT IN (1)", "and(age > [Int(30)], x NOT IN [Int(1)])");
    reads("(a XOR b) XNOR c", "xnor(xor(a, b), c)");
}

#[test]
fn thresholds() {
    reads("AT LEAST 2 OF (a, b OR c, NOT d)", "least2(a, or(b, c), not(d))");
    reads("at  least 1 of (a AND (b OR c)) AND d", "and(least1(and(a, or(b, c))), d)");
    reads("NOT AT MOST 1 OF (a, (b))", "not(not(least2(a, b)))");
    reads("AT LEAST 1 OF (AT LEAST 2 OF (a, b, c), d)", "least1(least2(a, b, c), d)");
    reads("at = 1 AND exactly > 2 AND at", "and(at = [Int(1)], exactly > [Int(2)], at)");
    reads("AT LEAST 1 OF (a IS NULL, b IS NULL) IS UNKNOWN", "FALSE");
    refused("AT LEAST 2 (a, b)", 12, "expected OF, found (", "AT LEAST 2 OF");
    refused("AT LEAST two OF (a, b)", 10, "expected a whole number", "AT LEAST 2 OF");
    refused("AT LEAST 1.5 OF (a, b)", 10, "expected a whole number", "AT LEAST 2 OF");
    refused("AT LEAST 1 OF (a, b", 20, "expected ), found the end", "never closed");
    refused("AT LEAST 1 OF ()", 16, "expected a predicate", "");
    refused("AT LEAST 1 OF (a, b + 1)", 25, "expected a comparison", "");
    refused("a, b", 2, "found ,", "");
    refused("AT LEAST 1 OF ((a, b), c)", 18, "found ,", "");
    refused("(AT LEAST 1 OF (a, b))^2", 23, "only a predicate can have a weight", "");
}

#[test]
fn comparisons() {
    reads("x = 1", "x = [Int(1)]");
    reads("x == 1", "x = [Int(1)]");
    reads("x != 1", "x NOT = [Int(1)]");
    reads("x<>1", "x NOT = [Int(1)]");
    reads("x<1 AND x<=1 AND x>1 AND x>=1", "and(x < [Int(1)], x <= [Int(1)], x > [Int(1)], x >= [Int(1)])");
    reads("x <=> NULL", "x <=> [Null]");
    reads("flag = TRUE", "flag = [Bool(true)]");
}

#[test]
fn a_value_on_the_left_is_flipped() {
    reads("5 < age", "age > [Int(5)]");
    reads("5 <= age OR 5 > age OR 5 >= age", "or(age >= [Int(5)], age < [Int(5)], age <= [Int(5)])");
    reads("'x' = name AND 1 != x AND NULL <=> y", "and(name = [Str(\"x\")], x NOT = [Int(1)], y <=> [Null])");
    reads("-5 < a.b", "a.b > [Int(-5)]");
    reads("TRUE = flag", "flag = [Bool(true)]");
    reads("DATE '1970-01-02' < t", "t > [Timestamp(86400000000)]");
}

#[test]
fn keyword_predicates() {
    reads("x IN (2, 1, 2)", "x IN [Int(1), Int(2)]");
    reads("x NOT IN ('a', NULL)", "x NOT IN [Str(\"a\"), Null]");
    reads("x IN ()", "x IN []");
    reads("x between -1 and 1.5", "x BETWEEN [Int(-1), Float(1.5)]");
    reads("x NOT BETWEEN 1 AND 2 AND y", "and(x NOT BETWEEN [Int(1), Int(2)], y)");
    reads("x BETWEEN 1 AND NULL", "and(x >= [Int(1)], x <= [Null])");
    reads("x NOT BETWEEN NULL AND 2", "not(and(x >= [Null], x <= [Int(2)]))");
    reads("x IS NULL AND x is not null", "and(x IS NULL [], x NOT IS NULL [])");
    reads("x IS NULL IS NOT TRUE", "x NOT IS NULL []");
    reads("x LIKE 'a%' OR x NOT ILIKE '_b'", "or(x LIKE [Str(\"a%\")], x NOT ILIKE [Str(\"_b\")])");
    reads(r"x LIKE '50!%\\' ESCAPE '!'", r#"x LIKE [Str("50\\%\\\\")]"#);
    reads(r"x LIKE '50\%'", r#"x LIKE [Str("50\\%")]"#);
    reads("x RLIKE '^a+' AND x NOT REGEXP 'b'", "and(x RLIKE [Str(\"^a+\")], x NOT RLIKE [Str(\"b\")])");
    reads("x LIKE NULL", "x LIKE [Null]");
}

#[test]
fn functions() {
    reads("startswith(name, 'A')", "name startswith [Str(\"A\")]");
    reads(
        "EndsWith(a.b, 'A') AND contains(`x y`, '')",
        "and(a.b endswith [Str(\"A\")], x y contains [Str(\"\")])",
    );
    reads("array_contains(tags, 1)", "tags array_contains [Int(1)]");
    reads("arrays_overlap(tags, array('b', 'a'))", "tags arrays_overlap [Str(\"a\"), Str(\"b\")]");
    reads("arrays_overlap(tags, ARRAY())", "tags arrays_overlap []");
    reads("NOT contains(x, 'a')", "not(x contains [Str(\"a\")])");
    reads(
        "contains = 1 AND array AND timestamp > 2",
        "and(contains = [Int(1)], array, timestamp > [Int(2)])",
    );
}

#[test]
fn constants() {
    reads("TRUE", "TRUE");
    reads("false OR Null", "or(FALSE, NULL)");
    reads("NOT TRUE", "not(TRUE)");
}

#[test]
fn weights() {
    reads("(credit_score > 650)^0.4", "credit_score > [Int(650)]^0.4");
    reads("x > 1^2 AND y^.5", "and(x > [Int(1)]^2, y^0.5)");
    reads("NOT x IN (1)^1e-1", "not(x IN [Int(1)]^0.1)");
    reads("(((x > 1)))^0", "x > [Int(1)]^0");
    refused("x > 1^-1", 6, "a weight of -1 is refused", "not negative");
    refused("x > 1^1e999", 7, "too large", "");
    refused("(a AND b)^2", 10, "only a predicate can have a weight", "by itself");
    refused("(NOT a)^2", 8, "only a predicate", "NOT (x > 1)^0.4");
    refused("a^1^2", 4, "a weight already", "");
    refused("TRUE^1", 5, "only a predicate", "");
    refused("a^b", 3, "expected a weight after ^, found b", "^0.4");
}

#[test]
fn numbers() {
    let int = Value::Int;
    assert_eq!(operand("42"), int(42));
    assert_eq!(operand("-9223372036854775808"), int(i64::MIN));
    assert_eq!(operand("- 5"), int(-5));
    assert_eq!(operand("+5"), int(5));
    assert_eq!(operand("007"), int(7));
    assert_eq!((operand("42L"), operand("7s"), operand("-128Y")), (int(42), int(7), int(-128)));
    for (text, value) in [
        ("1.5", 1.5),
        ("1.", 1.0),
        (".5", 0.5),
        ("-2e-3", -0.002),
        ("1E+2", 100.0),
        ("3D", 3.0),
        ("2.5bd", 2.5),
        ("1e2BD", 100.0),
        ("1.5F", 1.5),
        ("0.1f", f64::from(0.1f32)),
        ("18446744073709552000.0", 18446744073709551616.0),
        ("1.152921504606847e18", (1u64 << 60) as f64),
        ("18446744073709551616D", 18446744073709551616.0),
        ("0.1000000000000000055D", 0.1),
        ("9223372036854775808", (1u64 << 63) as f64),
        ("DOUBLE 'Infinity'", f64::INFINITY),
        ("double('-infinity')", f64::NEG_INFINITY),
        ("DOUBLE 'NaN'", f64::NAN),
    ] {
        let Value::Float(read) = operand(text) else { panic!("{text}") };
        assert!(read == value || read.is_nan() && value.is_nan(), "{text}: {read}");
    }
    assert!(matches!(operand("-0.0"), Value::Float(zero) if zero.is_sign_negative()));
    for text in [
        "-9223372036854775809",
        "18446744073709551616",
        "0.1000000000000000055",
        "900719925474099.21BD",
        "1.2345678901234567890123e5",
        "1e-400",
    ] {
        let Value::Decimal(read) = operand(text) else { panic!("{text}") };
        assert_eq!(Ok(Value::Decimal(read)), Value::decimal(text.trim_end_matches("BD")));
    }
    assert_eq!(operand("72057594037927940.0"), int(72057594037927940));
    refused("x = 9223372036854775808L", 5, "does not fit into 64 bits", "suffix L");
    refused("x = 1e-500", 5, "nearer to zero", "suffix D");
    refused(&format!("x = 1.{}", "3".repeat(100)), 5, "more than 100 digits", "suffix D");
    refused("x = 128Y", 5, "does not fit its suffix", "between -128 and 127");
    refused("x = 40000S", 5, "does not fit its suffix", "");
    refused("x = 1e400", 5, "too large for a float", "Infinity");
    refused("x = 12abc", 5, "12abc is not a number", "backquotes");
    refused("x = 1_000", 5, "is not a number", "");
    refused("x = 1.5L", 5, "is not a number", "");
    refused("x = 1e", 5, "is not a number", "");
    refused("2nd = 1", 1, "2nd is not a number", "backquotes");
}

#[test]
fn strings() {
    let text = |literal: &str| match operand(literal) {
        Value::Str(text) => text.into_string(),
        other => panic!("{literal}: {other:?}"),
    };
    assert_eq!(text("'é'"), "é");
    assert_eq!(text(r#""it's""#), "it's");
    assert_eq!(text("'it''s'"), "it's");
    assert_eq!(text(r#""say ""hi""""#), "say \"hi\"");
    assert_eq!(text(r"'\'\\\n\t\r\b\0\Z'"), "'\\\n\t\r\u{8}\0\u{1a}");
    assert_eq!(text(r#"'\"'"#), "\"");
    assert_eq!(text(r"'\u00e9\U0001F600\uD83D\uDE00'"), "é😀😀");
    assert_eq!(text(r"'\101\177\012'"), "A\u{7f}\n");
    assert_eq!(text(r"'\09\200'"), "\u{0}9200", "no octal escapes");
    assert_eq!(text(r"'\%\_'"), r"\%\_");
    assert_eq!(text(r"'\q\é\u12'"), "qéu12");
    assert_eq!(text(r"r'a\n%'"), r"a\n%");
    assert_eq!(text(r#"R"a\""#), r"a\");
    assert_eq!(text("'a' \"b\"\n r'c'"), "abc");
    assert_eq!(text("''"), "");
    refused(r"x = 'a\uD800'", 7, "not a Unicode character", "partner");
    refused(r"x = '\UFFFFFFFF'", 6, "not a Unicode character", "");
    refused("x = 'abc", 5, "this string is never closed", "close it with '");
    refused(r"x = 'abc\'", 5, "this string is never closed", "");
    refused("x = r\"abc", 5, "this string is never closed", "close it with \"");
}

#[test]
fn timestamps() {
    assert_eq!(operand("TIMESTAMP '1970-01-01 00:00:01'"), Value::Timestamp(1_000_000));
    assert_eq!(operand("timestamp_ntz'1970-01-01'"), Value::Timestamp(0));
    assert_eq!(operand("TIMESTAMP_LTZ '1970-01-01T02:00:00+02:00'"), Value::Timestamp(0));
    assert_eq!(operand("DATE '1970-01-02'"), Value::Timestamp(86_400_000_000));
    assert_eq!(operand("DATE '1970-01-02 12:00'"), Value::Timestamp(86_400_000_000));
    refused("x = TIMESTAMP 'noon'", 15, "'noon' is not a timestamp", "2026-01-31 12:00:00");
    refused("x = DATE '2026-02-30'", 10, "is not a date", "a day that exists");
    refused("x = DOUBLE 'much'", 12, "is not a double", "NaN");
    refused("x = TIMSTAMP '2026'", 5, "TIMSTAMP cannot stand before a string", "did you mean TIMESTAMP?");
}

#[test]
fn names() {
    reads("Größe_1 = 1", "Größe_1 = [Int(1)]");
    reads("Age AND age", "and(Age, age)");
    reads("`first name` = 1", "first name = [Int(1)]");
    reads("`a``b`", "a`b");
    reads("a.b.`c d`.e AND `a.b` AND a . b", "and(a.b.c d.e, a.b, a.b)");
    reads("`and` AND x.and", "and(and, x.and)");
    refused("``", 1, "needs a name", "");
    refused("a.`` = 1", 3, "needs a name", "");
    refused("`abc = 1", 1, "this name is never closed", "`");
    refused("a.1 = 1", 2, "expected an operator", "");
    refused("a. = 1", 4, "expected a name after the dot, found =", "backquotes");
    refused("and = 1", 1, "expected a predicate, found and", "`and`");
    refused(&format!("a = 1 AND {} = 1", "x".repeat(MAX_NAME_BYTES + 1)), 11, "longer than the limit", "");
    refused(&format!("a{} = 1", ".b".repeat(1_000_000)), 1, "longer than the limit", "");
}

#[test]
fn comments_and_blanks_separate() {
    reads("a -- the first\n AND /* b /* nested */ */ c", "and(a, c)");
    reads("/**/a--", "a");
    reads("\u{a0}a\tAND\r\nb\u{3000}", "and(a, b)");
    refused("a /* b", 3, "this comment is never closed", "*/");
    refused("a /*/", 3, "this comment is never closed", "*/");
}

#[test]
fn the_place_counts_lines_and_characters() {
    let error = parse("é = 1 AND\n  b >").unwrap_err();
    assert_eq!(
        error.to_string(),
        "expected a value, found the end of the expression (line 2, column 6)\n  b >\n     ^"
    );
    let error = parse("a = 1 AND\n\tb BETWEN 1 AND 2").unwrap_err();
    assert_eq!(
        error.to_string(),
        "expected an operator after the attribute, found BETWEN (line 2, column 4)\n b BETWEN 1 AND 2\n   ^\n\
         hint: did you mean BETWEEN?"
    );
}

#[test]
fn misspelt_words_are_guessed() {
    refused("a = 1 AN b = 2", 7, "expected AND, OR or the end, found AN", "did you mean AND?");
    refused("(a = 1 ORR b)", 8, "expected AND, OR or ), found ORR", "did you mean OR?");
    refused("age BETWEN 1 AND 2", 5, "found BETWEN", "did you mean BETWEEN?");
    refused("name LIK 'a'", 6, "LIK", "did you mean LIKE?");
    refused("starts_with(name, 'A')", 1, "there is no function starts_with", "did you mean startswith?");
    refused("array_contain(x, 1)", 1, "there is no function", "did you mean array_contains?");
    refused("x LIKE 'a' ESCAP '!'", 12, "found ESCAP", "did you mean ESCAPE?");
}

#[test]
fn what_is_missing_or_too_much() {
    refused("", 1, "expected a predicate, found the end", "TRUE");
    refused("  ", 1, "expected a predicate, found the end", "TRUE");
    refused("a AND", 6, "expected a predicate, found the end", "");
    refused("a AND OR b", 7, "expected a predicate, found OR", "`OR`");
    refused("(a AND b", 9, "expected ), found the end", "line 1, column 1");
    refused("a)", 2, "this ) closes nothing", "");
    refused("()", 2, "expected a predicate, found )", "");
    refused("a b", 3, "expected an operator after the attribute, found b", "");
    refused("name 'x'", 1, "name cannot stand before a string", "name = 'text'");
    refused("`name` 'x'", 8, "expected an operator", "write name = value");
    refused("x > ", 4, "expected a value, found the end", "");
    refused(
        "(a) * 2",
        8,
        "expected a comparison after the term, found the end",
        "a number alone is not a predicate",
    );
    refused("((a) * 2) * 3 AND b", 15, "expected a comparison after the term, found AND", "a number alone");
    refused("x NOT 5", 7, "expected IN, BETWEEN, LIKE, ILIKE or RLIKE after NOT, found 5", "");
    refused("x IN 5", 6, "expected a list in parentheses, found 5", "");
    refused("x IN (1, )", 10, "expected a value, found )", "");
    refused("x IN (1 2)", 9, "expected a comma or ), found 2", "");
    refused("x BETWEEN 1 OR 2", 13, "expected AND and the upper end of BETWEEN, found OR", "");
    refused("x IS 5", 6, "expected NULL, TRUE, FALSE or UNKNOWN after IS, found 5", "");
    refused("x LIKE 'a' ESCAPE 'ab'", 19, "ESCAPE takes a string of one character", "ESCAPE '!'");
    refused("startswith(x)", 13, "expected a comma and the second argument, found )", "");
    refused("contains(x, 'a', 'b')", 16, "expected ), found ,", "");
}

#[test]
fn operands_are_checked_by_their_operator() {
    refused("x IN (1, 'a')", 6, "IN mixes a number and a string", "");
    refused("x BETWEEN 1 AND 'a'", 11, "BETWEEN mixes", "");
    refused("x LIKE 5", 8, "LIKE takes a string", "");
    refused(r"x LIKE 'a\\b'", 8, "cannot stand before b", "");
    refused("x RLIKE '('", 9, "", "");
    refused("x = ARRAY(1)", 5, "= takes a number", "");
    refused("x IN (ARRAY(1))", 7, "an array cannot be a member", "");
    refused("arrays_overlap(x, 1)", 19, "takes an array", "array_contains");
    refused("array_contains(x, NULL)", 19, "cannot look for NULL", "");
}

#[test]
fn what_the_language_does_not_have_is_refused_with_a_way_out() {
    refused("x IN (a, b)", 7, "found the attribute a", "quotes");
    refused("a + 1", 6, "expected a comparison after the term", "compare it with a value");
    refused("a && b", 3, "found &&", "write AND");
    refused("a || b", 7, "expected a comparison after the term", "write OR");
    refused("a = 1 || b = 2", 7, "concat takes a string, but 1 is a number", "write OR");
    refused("a => 1", 3, "found =>", "write >=");
    refused("a ≥ 1", 3, "found ≥", "write >=");
    refused("x = ‘a’", 5, "found ‘", "straight quotes");
    refused("a;", 2, "found ;", "leave out");
    refused("1 < x < 5", 7, "found <", "BETWEEN");
    refused("x > 1 > 2", 7, "found >", "do not chain");
    refused("5 < 6", 5, "expected an attribute", "TRUE and FALSE");
    refused("x = 'a' OR 'b'", 15, "expected a comparison after the value", "IN (1, 2)");
    refused("'x' IN (tags)", 1, "expected an attribute, found a value", "array_contains(tags, 'x')");
    refused("5 BETWEEN a AND b", 1, "expected an attribute, found a value", "before");
    refused("5 IS NULL", 1, "expected an attribute", "");
    refused("x IN (SELECT y FROM t)", 7, "SELECT", "no subqueries");
    refused("CASE WHEN a THEN b END", 6, "found WHEN", "write the cases");
    refused("CAST(x AS LIST) > 1", 11, "there is no cast to LIST", "types are");
    refused("CAST(x, INT) > 1", 7, "expected AS and a type", "CAST(price AS float)");
    refused("lower(x, y) = 'a'", 1, "lower takes one argument, not 2", "");
    refused("lower(5) = 'a'", 1, "lower takes a string, but 5 is a number", "");
    refused("hour(lower(x)) = 5", 1, "hour takes a timestamp, but lower(x) is a string", "");
    refused("date_trunc('decade', t) > TIMESTAMP '2026-01-01'", 1, "no unit \"decade\"", "units are");
    refused("date_trunc(t, t) > TIMESTAMP '2026-01-01'", 1, "takes the unit first", "units are");
    refused("hour(from_utc_timestamp(t, 'Mars')) = 5", 6, "the name of a time zone", "Europe/Berlin");
    refused("lowr(x) = 'a'", 1, "there is no function lowr", "did you mean lower?");
    refused("size(contains(x, 'a')) > 1", 6, "contains is true or false", "");
    refused("sum(x) OVER (ROWS 5) > 1", 1, "there is no function sum", "tamis.Flow");
    refused("isnull(x)", 1, "there is no function", "IS NULL");
    refused(
        "contains('abc', x)",
        10,
        "expected an attribute as the first argument",
        "contains(attribute, value)",
    );
    refused("x LIKE ANY ('a', 'b')", 8, "a call of ANY", "one predicate for each");
    refused("x IS DISTINCT FROM 5", 6, "found DISTINCT", "<=>");
    refused("x =! 3", 4, "found !", "write !=");
    refused("x IN 'a', 'b'", 6, "expected a list in parentheses", "IN ('CA', 'US')");
    refused("x BETWEEN 1, 5", 12, "expected AND", "BETWEEN 22 AND 36");
    refused("b - a BETWEEN INTERVAL 1 DAY, INTERVAL 2 DAY", 29, "expected AND", "BETWEEN 22 AND 36");
    refused(" select * from t where x > 1", 2, "found a SELECT statement", "after WHERE");
    refused("SELECT x FROM t", 1, "found a SELECT statement", "only a condition");
    refused("user agent = 'x'", 6, "expected an operator", "backquotes: `user agent`");
    refused("my long name IN ('x')", 4, "expected an operator", "backquotes: `my long name`");
    refused("user agent", 6, "expected an operator", "");
    // An attribute may have the name.
    reads("select = 'from where'", r#"select = [Str("from where")]"#);
}

#[test]
fn a_predicate_that_is_refused_later_is_found_in_the_text() {
    let place_of = |text: &str| {
        let is_refused = |predicate: &Predicate| predicate.operands.contains(&Value::Int(13));
        let located = locate(text, ExpressionError::new("unlucky").with_hint("take another"), &is_refused);
        assert_eq!((&*located.message, located.hint.as_deref()), ("unlucky", Some("take another")));
        located.place.map(|place| (place.line, place.column))
    };
    for (text, place) in [
        ("x = 13", (1, 1)),
        ("x = 1 AND\n  y > 13", (2, 3)),
        ("NOT (x = 1 OR 13 < y)", (1, 15)),
        ("(x + y) * 2 = 13 OR z", (1, 9)),
        ("AT LEAST 2 OF (x = 1, y = 13, z)", (1, 23)),
        ("x = 1 XOR (y IN (12, 13)) IS NOT TRUE", (1, 12)),
        ("(x > 1)^0.5 AND (y = 13)^2", (1, 18)),
    ] {
        assert_eq!(place_of(text), Some(place), "{text}");
    }
    assert_eq!(place_of("x = 12"), None);
}

#[test]
fn terms() {
    for (text, expected) in [
        ("a = b", "a = b"),
        ("a <=> b.`c d`", "a <=> b.`c d`"),
        ("a != b", "not(a = b)"),
        ("lower(name) = 'x'", "lower(name) = [Str(\"x\")]"),
        ("LCASE(name) LIKE 'x%'", "lower(name) LIKE [Str(\"x%\")]"),
        ("price*quantity > 1000", "price * quantity > [Int(1000)]"),
        ("1000 < price * quantity", "price * quantity > [Int(1000)]"),
        ("a - b - c = 0", "a - b - c = [Int(0)]"),
        ("a - (b - c) = 0", "a - (b - c) = [Int(0)]"),
        ("(a + b) * 2 > c", "(a + b) * 2 > c"),
        ("((a) + (b)) > (c)", "a + b > c"),
        ("-x > 5", "0 - x > [Int(5)]"),
        ("x > -y", "x > 0 - y"),
        ("x > 1 + 2 * 3", "x > [Int(7)]"),
        ("x = (5)", "x = [Int(5)]"),
        ("x > abs(-5)", "x > [Int(5)]"),
        ("x > 1 / 0", "x > [Null]"),
        ("a BETWEEN b AND 5", "and(a >= b, a <= [Int(5)])"),
        ("CAST(x AS bigint) IN (1, 2)", "CAST(x AS int) IN [Int(1), Int(2)]"),
        ("contains(lower(x), 'a')", "lower(x) contains [Str(\"a\")]"),
        ("coalesce(a, b) IS NULL", "coalesce(a, b) IS NULL []"),
        ("a || 'x' = 'yx'", "concat(a, 'x') = [Str(\"yx\")]"),
        (
            "element_at(tags, 1) = 'x' AND size(tags) > 2",
            "and(element_at(tags, 1) = [Str(\"x\")], size(tags) > [Int(2)])",
        ),
        (
            "hour(from_utc_timestamp(ts, 'Europe/Berlin')) BETWEEN 8 AND 18",
            "hour(from_utc_timestamp(ts, 'Europe/Berlin')) BETWEEN [Int(8), Int(18)]",
        ),
        ("(a < b) = TRUE", "a < b = [Bool(true)]"),
        ("(a < b)^2", "a < b^2"),
    ] {
        reads(text, expected);
        let expr = parse(text).unwrap();
        assert_eq!(parse(&expr.to_string()).unwrap(), expr, "{text}");
    }
}

/// Runs in a thread with a small stack, as a worker may have.
fn in_small_thread(check: impl FnOnce() + Send + 'static) {
    std::thread::Builder::new().stack_size(512 << 10).spawn(check).unwrap().join().unwrap();
}

#[test]
fn hostile_nesting_is_an_error_and_no_overflow() {
    in_small_thread(|| {
        let too_deep = |text: &str, limit: &str| {
            let error = parse(text).unwrap_err();
            assert!(error.message.contains(limit), "{error}");
            assert!(error.place.is_some());
        };
        let deep = |text: &str| too_deep(text, "nested deeper than 256");
        deep(&format!("{}a{}", "(".repeat(10_000), ")".repeat(10_000)));
        deep(&"(".repeat(1_000_000));
        deep(&format!("{}a", "NOT ".repeat(10_000)));
        deep(&"!".repeat(1_000_000));
        deep(&format!("a{}", " XOR a XNOR a".repeat(10_000)));
        // Few parentheses, but three levels of the tree for each.
        deep(&format!("{}a{}", "a OR b XOR c AND (".repeat(100), ")".repeat(100)));
        let functions = "functions are nested deeper than 32";
        too_deep(&format!("1 < {}a{}", "(".repeat(10_000), ")".repeat(10_000)), functions);
        too_deep(&format!("a = {}5", "- ".repeat(10_000)), functions);
        too_deep(&"exists(a, x -> ".repeat(10_000), "never closed");
        let nested = format!("{}x{}", "exists(a, x -> ".repeat(1000), ")".repeat(1000));
        too_deep(&nested, "quantifiers are nested deeper than 8");
        assert!(parse(&format!("{}a{} = 5", "abs(".repeat(10_000), ")".repeat(10_000))).is_err());
        assert!(parse(&format!("a{} = 5", " + a".repeat(10_000))).is_err());
        assert!(parse(&format!("a{} = 5", " + a".repeat(30))).is_ok());
    });
}

#[test]
fn the_deepest_allowed_expression_is_read_and_dropped() {
    in_small_thread(|| {
        let nots = MAX_DEPTH - 1;
        assert!(parse(&format!("{}a", "NOT ".repeat(nots))).is_ok());
        assert!(parse(&format!("{}a", "NOT ".repeat(nots + 1))).is_err());
        assert!(parse(&format!("{}a{}", "(".repeat(MAX_DEPTH), ")".repeat(MAX_DEPTH))).is_ok());
        assert!(parse(&format!("{}a{}", "a AND (".repeat(nots), ")".repeat(nots))).is_ok());
        assert!(parse(&format!("a{}", " XOR a XNOR a".repeat(nots / 2))).is_ok());
    });
}

#[test]
fn limits_are_clear_errors() {
    let refusal = |text: &str| parse(text).unwrap_err().message;
    let huge = format!("a = '{}'", "x".repeat(100 << 20));
    assert!(refusal(&huge).contains("longer than the limit of 16777216"));
    let long = "x".repeat(MAX_STRING_BYTES);
    assert!(parse(&format!("a = '{long}'")).is_ok());
    assert!(refusal(&format!("a = '{long}x'")).contains("a string literal of 1048577 bytes"));
    assert!(refusal(&format!("a = '{long}' 'x'")).contains("a string literal of 1048577 bytes"));
    assert!(
        refusal(&format!("a IN ({}1)", "1,".repeat(MAX_SET_MEMBERS))).contains("at most 1000000 members")
    );
    let many = |predicates: usize| format!("a{}", " OR a".repeat(predicates - 1));
    assert!(parse(&many(MAX_PREDICATES)).is_ok());
    assert!(refusal(&many(MAX_PREDICATES + 1)).contains("more than 65536 predicates"));
}

const SAMPLES: [&str; 12] = [
    "age BETWEEN 22 AND 36 AND country IN ('CA', 'US') OR NOT (opted_out)",
    "(credit_score > 650)^0.4 XOR `first name` <=> NULL XNOR a.b.`c d` IS NOT NULL",
    r"x LIKE '50!%' ESCAPE '!' AND y NOT ILIKE '\%\u00e9' AND z RLIKE '^a+(b|c)'",
    "startswith(name, 'A') OR arrays_overlap(tags, ARRAY(1, 2.5, NULL)) OR array_contains(t, TRUE)",
    "-5 <= x AND 1.5e3D != y AND 7S = z AND TIMESTAMP '2026-01-31 12:00:00' > t",
    "/* a /* b */ */ x -- c\n = r'raw' 'next'",
    "x NOT BETWEEN NULL AND 2 OR FALSE AND ! TRUE",
    "x IN () AND (((y)) > DATE '2026-01-31')",
    "DOUBLE 'NaN' = x OR double('-Infinity') < y",
    r"s = '\uD83D\uDE00\101' AND ``",
    "a + b < 3 && c || d",
    "Größe IS TRUE AND é = \"it's\"",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn never_panics_on_any_text(text in "\\PC{0,60}") {
        let _ = parse(&text).map_err(|error| error.to_string());
    }

    #[test]
    fn never_panics_on_the_characters_that_matter(text in r#"[ab1.'"`\\()^,<>=!\-+/*%_éruN\n ]{0,40}"#) {
        let _ = parse(&text).map_err(|error| error.to_string());
    }

    #[test]
    fn never_panics_on_damaged_expressions(
        sample in prop::sample::select(SAMPLES.to_vec()),
        other in prop::sample::select(SAMPLES.to_vec()),
        cut in any::<prop::sample::Index>(),
        splice in any::<prop::sample::Index>(),
        inserted in "\\PC{0,3}",
    ) {
        let characters: Vec<char> = sample.chars().collect();
        let others: Vec<char> = other.chars().collect();
        let mut damaged: String = characters[..cut.index(characters.len())].iter().collect();
        damaged.push_str(&inserted);
        damaged.extend(&others[splice.index(others.len())..]);
        if let Err(error) = parse(&damaged) {
            let place = error.place.expect("a place");
            prop_assert!(place.line >= 1 && place.column >= 1);
            prop_assert!(!error.to_string().is_empty());
        }
    }
}
