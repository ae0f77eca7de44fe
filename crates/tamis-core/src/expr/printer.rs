//! Expressions as text: the canonical spelling, with parentheses only where they matter.
//!
//! The printed text parses to the same tree. So a chain inside a chain of its own kind keeps its parentheses,
//! `a AND (b AND c)`, and floats are written so that they stay floats, `1.0`.
//!
//! A predicate that is negated although its operator has no negated form is printed as `NOT` before it, as
//! [`build`](super::build) creates it.

use std::fmt::{self, Display, Formatter, Write};

use super::ast::{Expr, Outcome, Predicate};
use super::operators::{Operator, Syntax};
use super::truth_test::test_of;
use crate::term::function::COMPARISON;
use crate::term::{Notation, Term};
use crate::text::{List, LiteralText};

/// How tightly the parts of an expression hold together.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Binding {
    Or,
    Xor,
    And,
    Not,
    Leaf,
}

fn binding(expr: &Expr) -> Binding {
    match expr {
        Expr::Or(_) => Binding::Or,
        Expr::Xor(_) | Expr::Xnor(_) => Binding::Xor,
        Expr::And(_) => Binding::And,
        Expr::Not(_) => Binding::Not,
        Expr::Predicate(predicate) if prints_not(predicate) => Binding::Not,
        Expr::Constant(_) | Expr::Predicate(_) | Expr::AtLeast(..) => Binding::Leaf,
    }
}

/// Prints the expression in the canonical form.
///
/// ```
/// let expression = tamis_core::expr::parse("(age>30) and not (country in ('US','CA') or vip)")?;
/// assert_eq!(expression.to_string(), "age > 30 AND NOT (country IN ('CA', 'US') OR vip)");
/// # Ok::<_, tamis_core::ExpressionError>(())
/// ```
impl Display for Expr {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Expr::Constant(Outcome::TRUE) => f.write_str("TRUE"),
            Expr::Constant(Outcome::FALSE) => f.write_str("FALSE"),
            Expr::Constant(_) => f.write_str("NULL"),
            Expr::Predicate(predicate) => predicate.fmt(f),
            Expr::Not(child) => {
                f.write_str("NOT ")?;
                write_child(f, child, binding(child) < Binding::Not)
            }
            Expr::And(children) => write_chain(f, children, " AND ", Binding::And),
            Expr::Or(children) => write_chain(f, children, " OR ", Binding::Or),
            Expr::Xor(children) => write_chain(f, children, " XOR ", Binding::Xor),
            Expr::Xnor(children) => write_chain(f, children, " XNOR ", Binding::Xor),
            Expr::AtLeast(least, children) => {
                write!(f, "AT LEAST {least} OF (")?;
                for (at, child) in children.iter().enumerate() {
                    f.write_str(if at > 0 { ", " } else { "" })?;
                    child.fmt(f)?;
                }
                f.write_char(')')
            }
        }
    }
}

fn write_chain(f: &mut Formatter<'_>, children: &[Expr], connective: &str, own: Binding) -> fmt::Result {
    for (at, child) in children.iter().enumerate() {
        if at > 0 {
            f.write_str(connective)?;
        }
        write_child(f, child, binding(child) <= own)?;
    }
    Ok(())
}

fn write_child(f: &mut Formatter<'_>, child: &Expr, in_parentheses: bool) -> fmt::Result {
    if !in_parentheses {
        return child.fmt(f);
    }
    f.write_char('(')?;
    child.fmt(f)?;
    f.write_char(')')
}

impl Display for Predicate {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Some(weight) = self.weight else {
            return Unweighted(self).fmt(f);
        };
        f.write_str(if prints_not(self) { "NOT (" } else { "(" })?;
        write_test(f, self)?;
        f.write_str(")^")?;
        let weight = format!("{weight:?}");
        f.write_str(weight.strip_suffix(".0").unwrap_or(&weight))
    }
}

/// A predicate without its boost.
pub struct Unweighted<'a>(pub &'a Predicate);

impl Display for Unweighted<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if prints_not(self.0) {
            f.write_str("NOT ")?;
        }
        write_test(f, self.0)
    }
}

/// Whether a predicate is negated and its operator has no other way to say so.
fn prints_not(predicate: &Predicate) -> bool {
    predicate.negated && !predicate.operator.rules().syntax().has_negated_form()
}

/// The term of a predicate. A comparison of two terms whose truth is not all that is tested needs parentheses.
struct Tested<'a>(&'a Predicate);

impl Display for Tested<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Predicate { term, operator, .. } = self.0;
        let is_comparison = matches!(term, Term::Computed(computed)
            if computed.function().notation() == Notation::Infix(COMPARISON));
        if is_comparison && *operator != Operator::TRUTH { write!(f, "({term})") } else { term.fmt(f) }
    }
}

/// The predicate without its boost and without a NOT in front.
fn write_test(f: &mut Formatter<'_>, predicate: &Predicate) -> fmt::Result {
    let (name, operands) = (Tested(predicate), &*predicate.operands);
    match predicate.operator.rules().syntax() {
        Syntax::Bare => name.fmt(f),
        Syntax::Infix { symbol, negated } => {
            let symbol = negated.filter(|_| predicate.negated).unwrap_or(symbol);
            write!(f, "{name} {symbol} {}", LiteralText(&operands[0]))
        }
        Syntax::Function(function) if predicate.operator == Operator::ARRAYS_OVERLAP => {
            write!(f, "{function}({name}, ARRAY({}))", List(operands))
        }
        Syntax::Function(function) => write!(f, "{function}({name}, {})", List(operands)),
        Syntax::Keyword(_) if predicate.operator.tested(operands).is_some() => {
            let (looked_at, test) = test_of(predicate).expect("it is a truth test");
            match looked_at.operator {
                Operator::TRUTH => write!(f, "{} {}", Tested(predicate), test.words()),
                _ => write!(f, "({looked_at}) {}", test.words()),
            }
        }
        Syntax::Keyword(_) if predicate.operator == Operator::IS_NULL => {
            write!(f, "{name} {}", if predicate.negated { "IS NOT NULL" } else { "IS NULL" })
        }
        Syntax::Keyword(keyword) => {
            let not = if predicate.negated { "NOT " } else { "" };
            write!(f, "{name} {not}{keyword} ")?;
            match operands {
                _ if predicate.operator == Operator::IN => write!(f, "({})", List(operands)),
                [low, high] => write!(f, "{} AND {}", LiteralText(low), LiteralText(high)),
                operands => List(operands).fmt(f),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::expr::parse;
    use crate::expr::testing::{any_expr, any_expr_of_terms, predicate};
    use crate::value::Value;

    fn printed(text: &str) -> String {
        parse(text).unwrap_or_else(|error| panic!("{text}: {error}")).to_string()
    }

    #[test]
    fn canonical_text_prints_as_it_is() {
        for text in [
            "TRUE",
            "FALSE",
            "NULL",
            "age > 30",
            "age != 30",
            "age <=> NULL",
            "NOT age < 30",
            "country IN ('CA', 'US')",
            "country NOT IN ('CA', NULL)",
            "country IN ()",
            "age NOT BETWEEN 22 AND 36",
            "age IS NULL",
            "age IS NOT NULL",
            "AT LEAST 2 OF (a, b OR c, AT LEAST 1 OF (x > 1, NOT y))",
            "NOT AT LEAST 2 OF (a, a, b) AND c",
            "at > 5 AND exactly AND least = 1",
            "vip IS TRUE",
            "vip IS NOT FALSE",
            "vip IS UNKNOWN",
            "(age > 30) IS NOT UNKNOWN",
            "((name LIKE 'a%') IS FALSE)^0.4",
            "NOT (startswith(name, 'A')) IS TRUE",
            "name NOT LIKE 'a\\\\%b%'",
            "name ILIKE 'a%'",
            "name NOT RLIKE '^a\\\\d'",
            "startswith(name, 'A')",
            "NOT startswith(name, 'A')",
            "array_contains(tags, 1)",
            "arrays_overlap(tags, ARRAY(1, 2))",
            "arrays_overlap(tags, ARRAY())",
            "NOT opted_out",
            "NOT NOT opted_out",
            "(age > 30)^0.4",
            "NOT (contains(name, 'x'))^2",
            "(opted_out)^1e300",
            "t > TIMESTAMP '2026-01-31 12:00:00.5'",
            "a = 1 AND b = 2 OR c = 3",
            "a = 1 AND (b = 2 OR c = 3)",
            "a AND (b AND c)",
            "(a OR b) OR c",
            "a XOR b XOR c",
            "a XOR (b XOR c)",
            "(a XOR b) XNOR c",
            "a XOR b AND c OR d",
            "(a XOR b) AND NOT (c OR d)",
            "x = 1.0",
            "x = -0.0",
            "x = 1e300",
            "x = 5e-324",
            "x = double('NaN')",
            "x = double('-Infinity')",
            "x = -9223372036854775808",
            "s = 'it\\'s \\\\ \\n\\r\\t\\u0000 é'",
            "`a b`.c.`1st` = 1",
            "`and` = 1",
            "`back``quote` = 1",
            "`a..b` = 1",
            "été.日本 = 1",
        ] {
            assert_eq!(printed(text), text);
        }
    }

    #[test]
    fn other_spellings_become_canonical() {
        for (text, canonical) in [
            ("((a))", "a"),
            ("at most 1 of (a, b)", "NOT AT LEAST 2 OF (a, b)"),
            ("exactly 1 of (a, b)", "AT LEAST 1 OF (a, b) AND NOT AT LEAST 2 OF (a, b)"),
            ("AT LEAST 0 OF (a, b) XOR AT LEAST 3 OF (a, b)", "TRUE XOR FALSE"),
            ("AT MOST 2 OF (a, b) OR EXACTLY 0 OF (a)", "TRUE OR NOT AT LEAST 1 OF (a)"),
            ("EXACTLY 2 OF (a, b) AND EXACTLY 3 OF (a, b)", "AT LEAST 2 OF (a, b) AND FALSE"),
            ("(a = 1) AND ((b = 2))", "a = 1 AND b = 2"),
            ("a == 1 and b <> 2", "a = 1 AND b != 2"),
            ("`a.b` = 1.50", "a.b = 1.5"),
            ("x in (3, 1, 2, 1)", "x IN (1, 2, 3)"),
            ("x LIKE '50!%' ESCAPE '!'", "x LIKE '50\\\\%'"),
            ("DOUBLE 'NaN' = x", "x = double('NaN')"),
            ("(x > 1)^1.0", "(x > 1)^1"),
            ("NOT (a)", "NOT a"),
            ("NOT a AND b", "NOT a AND b"),
        ] {
            assert_eq!(printed(text), canonical);
        }
    }

    /// The tree that text gives: NOT instead of a negated operator that has no negated form.
    fn as_written(expr: Expr) -> Expr {
        let all = |children: Vec<Expr>| children.into_iter().map(as_written).collect();
        match expr {
            Expr::Predicate(predicate) if prints_not(&predicate) => {
                Expr::Not(Box::new(Expr::Predicate(Predicate { negated: false, ..predicate })))
            }
            Expr::Not(child) => Expr::Not(Box::new(as_written(*child))),
            Expr::And(children) => Expr::And(all(children)),
            Expr::Or(children) => Expr::Or(all(children)),
            Expr::Xor(children) => Expr::Xor(all(children)),
            Expr::Xnor(children) => Expr::Xnor(all(children)),
            Expr::AtLeast(least, children) => Expr::AtLeast(least, all(children)),
            leaf => leaf,
        }
    }

    fn operand() -> impl Strategy<Value = Value> {
        prop_oneof![
            any::<i64>().prop_map(Value::Int),
            any::<f64>().prop_map(Value::Float),
            (any::<u64>(), 1..11)
                .prop_map(|(bits, digits)| Value::Float((bits >> 11) as f64 / (1 << digits) as f64)),
            "-?[1-9][0-9]{0,30}\\.[0-9]{1,40}(e-?[1-9][0-9])?"
                .prop_map(|text| Value::decimal(&text).unwrap()),
            any::<String>().prop_map(|text| Value::Str(text.into())),
            (-62_135_596_800_000_000..253_402_300_800_000_000i64).prop_map(Value::Timestamp),
        ]
    }

    proptest! {
        #[test]
        fn what_is_printed_is_read_back(expr in prop_oneof![any_expr(5), any_expr_of_terms(4)]) {
            let expr = as_written(expr);
            prop_assert_eq!(parse(&expr.to_string()).unwrap(), expr);
        }

        #[test]
        fn any_name_operand_and_weight_is_read_back(
            name in any::<String>().prop_filter("a name", |name| !name.is_empty()),
            operand in operand(),
            weight in prop::option::of(0.0..f64::MAX),
        ) {
            let expr = Expr::Predicate(Predicate { weight, ..predicate(&name, "=", &[operand]) });
            prop_assert_eq!(parse(&expr.to_string()).unwrap(), expr);
        }
    }
}
