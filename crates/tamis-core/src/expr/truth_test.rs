//! `(e) IS [NOT] TRUE | FALSE | UNKNOWN`, on any expression: pushed down to its predicates when it is written.
//!
//! | e | e IS TRUE | e IS FALSE | e IS NOT TRUE | e IS UNKNOWN |
//! |---|---|---|---|---|
//! | `NOT a` | a IS FALSE | a IS TRUE | a IS NOT FALSE | a IS UNKNOWN |
//! | `a AND b` | both IS TRUE | one IS FALSE | one IS NOT TRUE | both IS NOT FALSE, and one IS UNKNOWN |
//! | `a OR b` | one IS TRUE | both IS FALSE | both IS NOT TRUE | both IS NOT TRUE, and one IS UNKNOWN |
//! | `AT LEAST n OF (…)`, of m | n IS TRUE | m − n + 1 IS FALSE | m − n + 1 IS NOT TRUE | n IS NOT FALSE, m − n + 1 IS NOT TRUE, and one IS UNKNOWN |
//! | `a XOR b` | both IS NOT UNKNOWN, and `a XOR b` | … and `NOT (a XOR b)` | one IS UNKNOWN, or `NOT (a XOR b)` | one IS UNKNOWN |
//!
//! For point values, this follows from the meaning of the tests; for intervals, it defines it. Only tests of
//! single predicates remain. They are operators (`operators/truth_tested.rs`), so nothing else in the kernel
//! knows about truth tests. Tests that only an XOR needs have weight 0.

use super::ast::{Expr, Outcome, Predicate};
use super::limits::{MAX_PREDICATES, check_limits, too_many_predicates};
use super::operators::Operator;
use super::operators::truth_tested::Inner;
use crate::error::ExpressionError;
use crate::value::Value;

/// What an expression is tested for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TruthTest {
    True,
    False,
    Unknown,
    NotTrue,
    NotFalse,
    NotUnknown,
}

impl TruthTest {
    pub const ALL: [Self; 6] =
        [Self::True, Self::False, Self::Unknown, Self::NotTrue, Self::NotFalse, Self::NotUnknown];

    /// The name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::True => "is_true",
            Self::False => "is_false",
            Self::Unknown => "is_unknown",
            Self::NotTrue => "is_not_true",
            Self::NotFalse => "is_not_false",
            Self::NotUnknown => "is_not_unknown",
        }
    }

    /// The words behind an expression: `IS NOT TRUE`.
    pub fn words(self) -> &'static str {
        match self {
            Self::True => "IS TRUE",
            Self::False => "IS FALSE",
            Self::Unknown => "IS UNKNOWN",
            Self::NotTrue => "IS NOT TRUE",
            Self::NotFalse => "IS NOT FALSE",
            Self::NotUnknown => "IS NOT UNKNOWN",
        }
    }

    /// The test that is true when this one is false.
    pub fn opposite(self) -> Self {
        match self {
            Self::True => Self::NotTrue,
            Self::False => Self::NotFalse,
            Self::Unknown => Self::NotUnknown,
            Self::NotTrue => Self::True,
            Self::NotFalse => Self::False,
            Self::NotUnknown => Self::Unknown,
        }
    }

    /// The same test of an expression, asked of its negation.
    fn of_negation(self) -> Self {
        match self {
            Self::True => Self::False,
            Self::False => Self::True,
            Self::NotTrue => Self::NotFalse,
            Self::NotFalse => Self::NotTrue,
            known => known,
        }
    }

    /// Of a truth that is one of true, false and undefined.
    fn of_constant(self, outcome: Outcome) -> bool {
        match self {
            Self::True => outcome.can_be_true,
            Self::False => outcome.can_be_false,
            Self::Unknown => outcome == Outcome::UNDEFINED,
            negative => !negative.opposite().of_constant(outcome),
        }
    }
}

/// The test of an expression, in terms of tests of its predicates. Refused if that takes too many of them.
///
/// ```
/// use tamis_core::expr::parse;
/// let tested = parse("(a > 1 AND NOT b = 2) IS NOT TRUE")?;
/// assert_eq!(tested.to_string(), "(a > 1) IS NOT TRUE OR (b = 2) IS NOT FALSE");
/// # Ok::<_, tamis_core::ExpressionError>(())
/// ```
pub fn truth_test(expr: &Expr, test: TruthTest) -> Result<Expr, ExpressionError> {
    let mut pushing = Pushing { predicates_left: MAX_PREDICATES };
    let pushed = pushing.push(expr, test)?;
    check_limits(&pushed)?;
    Ok(pushed)
}

/// The same expression in two-valued logic: a predicate that is undefined, because the attribute is absent or of another
/// kind, counts as false, and so does NULL. With it comes each distinct predicate that was rewritten, as it was written.
///
/// ```
/// use tamis_core::expr::{parse, missing_is_false};
/// let (two_valued, rewritten) = missing_is_false(&parse("NOT user = 'root' AND host IS NOT NULL")?);
/// assert_eq!(two_valued.to_string(), "NOT (user = 'root') IS TRUE AND host IS NOT NULL");
/// assert_eq!(rewritten, ["user = 'root'"]);
/// # Ok::<_, tamis_core::ExpressionError>(())
/// ```
pub fn missing_is_false(expr: &Expr) -> (Expr, Vec<String>) {
    let mut rewritten = vec![];
    let two_valued = without_unknown(expr, &mut rewritten);
    (two_valued, rewritten)
}

fn without_unknown(expr: &Expr, rewritten: &mut Vec<String>) -> Expr {
    let mut all =
        |children: &[Expr]| children.iter().map(|child| without_unknown(child, rewritten)).collect();
    match expr {
        Expr::Constant(Outcome::UNDEFINED) => {
            note("NULL".into(), rewritten);
            Expr::Constant(Outcome::FALSE)
        }
        Expr::Predicate(predicate) if !is_total(predicate) => {
            note(super::explanation_text::predicate_text(predicate), rewritten);
            match null_safe(predicate) {
                None => tested(predicate, TruthTest::True),
                Some((equal, _)) => {
                    let is_equal = tested(&Predicate { negated: false, ..equal }, TruthTest::True);
                    if predicate.negated { not(is_equal) } else { is_equal }
                }
            }
        }
        Expr::Constant(_) | Expr::Predicate(_) => expr.clone(),
        Expr::Not(child) => Expr::Not(Box::new(without_unknown(child, rewritten))),
        Expr::And(children) => Expr::And(all(children)),
        Expr::Or(children) => Expr::Or(all(children)),
        Expr::Xor(children) => Expr::Xor(all(children)),
        Expr::Xnor(children) => Expr::Xnor(all(children)),
        Expr::AtLeast(least, children) => Expr::AtLeast(*least, all(children)),
    }
}

fn note(text: String, rewritten: &mut Vec<String>) {
    if !rewritten.contains(&text) {
        rewritten.push(text);
    }
}

/// Whether a predicate is true or false for every event of points.
fn is_total(predicate: &Predicate) -> bool {
    match predicate.operator {
        Operator::IS_TRUE | Operator::KNOWN | Operator::IS_NULL => true,
        Operator::NULL_SAFE_EQUAL => *predicate.operands == [Value::Null],
        _ => false,
    }
}

/// `x <=> 5` is `x = 5`, with another answer for an absent attribute: that, and the test for absence.
fn null_safe(predicate: &Predicate) -> Option<(Predicate, Predicate)> {
    (predicate.operator == Operator::NULL_SAFE_EQUAL).then(|| {
        let equal = Predicate { operator: Operator::EQUAL, ..predicate.clone() };
        let absent = Predicate {
            operator: Operator::IS_NULL,
            negated: false,
            operands: [].into(),
            ..predicate.clone()
        };
        (equal, absent)
    })
}

/// The test of a predicate that is undefined for an absent attribute.
fn tested(predicate: &Predicate, test: TruthTest) -> Expr {
    use TruthTest::{False, NotFalse, NotTrue, NotUnknown, Unknown};
    let Predicate { negated, operands, .. } = predicate;
    let asks_false = matches!(test, False | NotFalse);
    let (operator, inner_negated) = match test {
        Unknown | NotUnknown => (Operator::KNOWN, false),
        _ => (Operator::IS_TRUE, *negated != asks_false),
    };
    let inner = Inner { operator: predicate.operator, negated: inner_negated, operands };
    debug_assert!(operator.rules().is_canonical(&inner.written()), "{predicate:?}");
    Expr::Predicate(Predicate {
        operator,
        negated: matches!(test, NotTrue | NotFalse | Unknown),
        operands: inner.written().into(),
        ..predicate.clone()
    })
}

/// The predicate that a truth test looks at, not negated, and the test.
pub fn test_of(predicate: &Predicate) -> Option<(Predicate, TruthTest)> {
    let inner = predicate.operator.tested(&predicate.operands)?;
    let test = match (predicate.operator, inner.negated) {
        (Operator::KNOWN, _) => TruthTest::NotUnknown,
        (_, false) => TruthTest::True,
        (_, true) => TruthTest::False,
    };
    let test = if predicate.negated { test.opposite() } else { test };
    let looked_at = Predicate {
        term: predicate.term.clone(),
        operator: inner.operator,
        negated: false,
        operands: inner.operands.into(),
        weight: None,
    };
    Some((looked_at, test))
}

struct Pushing {
    predicates_left: usize,
}

type Pushed = Result<Expr, ExpressionError>;

impl Pushing {
    fn push(&mut self, expr: &Expr, test: TruthTest) -> Pushed {
        use TruthTest::{False, NotFalse, NotTrue, NotUnknown, True, Unknown};
        Ok(match (expr, test) {
            (Expr::Constant(outcome), _) => constant(test.of_constant(*outcome)),
            (Expr::Predicate(predicate), _) => return self.predicate(predicate, test),
            (Expr::Not(child), _) => return self.push(child, test.of_negation()),
            (Expr::And(children), True | NotFalse) | (Expr::Or(children), False | NotTrue) => {
                all(self.each(children, test)?)
            }
            (Expr::And(children), False | NotTrue) | (Expr::Or(children), True | NotFalse) => {
                any(self.each(children, test)?)
            }
            (Expr::And(children), Unknown) => {
                let mut parts = self.each(children, NotFalse)?;
                parts.push(any(self.each(children, Unknown)?));
                all(parts)
            }
            (Expr::Or(children), Unknown) => {
                let mut parts = self.each(children, NotTrue)?;
                parts.push(any(self.each(children, Unknown)?));
                all(parts)
            }
            (Expr::And(children), NotUnknown) => {
                let mut parts = self.each(children, False)?;
                parts.push(all(self.each(children, NotUnknown)?));
                any(parts)
            }
            (Expr::Or(children), NotUnknown) => {
                let mut parts = self.each(children, True)?;
                parts.push(all(self.each(children, NotUnknown)?));
                any(parts)
            }
            (Expr::AtLeast(least, children), True | NotFalse) => {
                Expr::AtLeast(*least, self.each(children, test)?)
            }
            (Expr::AtLeast(least, children), False | NotTrue) => {
                Expr::AtLeast(children.len() - least + 1, self.each(children, test)?)
            }
            (Expr::AtLeast(_, children), Unknown) => all(vec![
                self.push(expr, NotFalse)?,
                self.push(expr, NotTrue)?,
                any(self.each(children, Unknown)?),
            ]),
            (Expr::AtLeast(_, children), NotUnknown) => any(vec![
                self.push(expr, True)?,
                self.push(expr, False)?,
                all(self.each(children, NotUnknown)?),
            ]),
            (Expr::Xor(children) | Expr::Xnor(children), Unknown) => any(self.each(children, Unknown)?),
            (Expr::Xor(children) | Expr::Xnor(children), NotUnknown) => all(self.each(children, NotUnknown)?),
            (Expr::Xor(children) | Expr::Xnor(children), _) => {
                self.count(predicates_in(expr))?;
                let is_wanted = matches!(test, True | NotFalse);
                let parity = if is_wanted { expr.clone() } else { Expr::Not(Box::new(expr.clone())) };
                let is_positive = matches!(test, True | False);
                let mut parts = self.each(children, if is_positive { NotUnknown } else { Unknown })?;
                parts.iter_mut().for_each(weigh_nothing);
                parts.push(parity);
                if is_positive { all(parts) } else { any(parts) }
            }
        })
    }

    fn each(&mut self, children: &[Expr], test: TruthTest) -> Result<Vec<Expr>, ExpressionError> {
        children.iter().map(|child| self.push(child, test)).collect()
    }

    fn count(&mut self, predicates: usize) -> Result<(), ExpressionError> {
        self.predicates_left =
            self.predicates_left.checked_sub(predicates).ok_or_else(too_many_predicates)?;
        Ok(())
    }

    fn predicate(&mut self, predicate: &Predicate, test: TruthTest) -> Pushed {
        use TruthTest::{False, NotFalse, NotTrue, NotUnknown, True, Unknown};
        self.count(1)?;
        if is_total(predicate) {
            return Ok(match test {
                True | NotFalse => Expr::Predicate(predicate.clone()),
                False | NotTrue => not(Expr::Predicate(predicate.clone())),
                Unknown => constant(false),
                NotUnknown => constant(true),
            });
        }
        let Some((equal, absent)) = null_safe(predicate) else { return Ok(tested(predicate, test)) };
        self.count(1)?;
        // Where the attribute is absent, `x <=> 5` is false and its negation true.
        let (if_absent, unless_absent) = if predicate.negated { (True, NotTrue) } else { (False, NotFalse) };
        let equal = tested(&equal, test);
        Ok(if test == if_absent || test == NotUnknown {
            any(vec![equal, Expr::Predicate(absent)])
        } else if test == unless_absent || test == Unknown {
            let mut present = Expr::Predicate(Predicate { negated: true, ..absent });
            weigh_nothing(&mut present);
            all(vec![equal, present])
        } else {
            equal
        })
    }
}

fn predicates_in(expr: &Expr) -> usize {
    let mut count = 0;
    expr.for_each_predicate(&mut |_| count += 1);
    count
}

fn constant(truth: bool) -> Expr {
    Expr::Constant(truth.into())
}

/// NOT, inside a predicate that has a negated form.
fn not(expr: Expr) -> Expr {
    match expr {
        Expr::Predicate(predicate) if predicate.operator.rules().syntax().has_negated_form() => {
            Expr::Predicate(Predicate { negated: !predicate.negated, ..predicate })
        }
        other => Expr::Not(Box::new(other)),
    }
}

fn weigh_nothing(expr: &mut Expr) {
    expr.for_each_predicate_mut(&mut |predicate| predicate.weight = Some(0.0));
}

/// The AND of parts that are never undefined.
fn all(parts: Vec<Expr>) -> Expr {
    joined(parts, Outcome::TRUE, Outcome::FALSE, Expr::And)
}

fn any(parts: Vec<Expr>) -> Expr {
    joined(parts, Outcome::FALSE, Outcome::TRUE, Expr::Or)
}

fn joined(mut parts: Vec<Expr>, neutral: Outcome, deciding: Outcome, join: fn(Vec<Expr>) -> Expr) -> Expr {
    if parts.contains(&Expr::Constant(deciding)) {
        return Expr::Constant(deciding);
    }
    parts.retain(|part| *part != Expr::Constant(neutral));
    match parts.len() {
        0 => Expr::Constant(neutral),
        1 => parts.remove(0),
        _ => join(parts),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::expr::testing::{any_event, any_expr, any_interval_event, lookup};
    use crate::expr::{evaluate, parse};

    fn pushed(text: &str) -> String {
        parse(text).unwrap_or_else(|error| panic!("{text}: {error}")).to_string()
    }

    #[test]
    fn tests_are_pushed_down_to_predicates() {
        for (text, canonical) in [
            ("(a AND b > 1) IS TRUE", "a IS TRUE AND (b > 1) IS TRUE"),
            ("(a AND NOT b) IS FALSE", "a IS FALSE OR b IS TRUE"),
            ("NOT a IS TRUE", "NOT a IS TRUE"),
            ("(NOT a) IS NOT TRUE", "a IS NOT FALSE"),
            ("(a != 1) IS TRUE", "(a = 1) IS FALSE"),
            ("a > 1 is not unknown", "(a > 1) IS NOT UNKNOWN"),
            (
                "(a > 1 OR b > 1) IS NULL",
                "(a > 1) IS NOT TRUE AND (b > 1) IS NOT TRUE AND ((a > 1) IS UNKNOWN OR (b > 1) IS UNKNOWN)",
            ),
            ("(a XOR b) IS TRUE", "(a IS NOT UNKNOWN)^0 AND (b IS NOT UNKNOWN)^0 AND (a XOR b)"),
            ("(a XNOR b) IS NOT TRUE", "(a IS UNKNOWN)^0 OR (b IS UNKNOWN)^0 OR NOT (a XNOR b)"),
            ("(a IS NULL AND b) IS UNKNOWN", "a IS NULL AND b IS NOT FALSE AND b IS UNKNOWN"),
            ("(a IS TRUE) IS UNKNOWN", "FALSE"),
            ("(a IS TRUE) IS NOT TRUE", "a IS NOT TRUE"),
            ("NULL IS UNKNOWN", "TRUE"),
            ("(NULL AND TRUE) IS TRUE", "FALSE"),
            ("(a <=> 1) IS TRUE", "(a = 1) IS TRUE"),
            ("(a <=> 1) IS FALSE", "(a = 1) IS FALSE OR a IS NULL"),
            ("(a <=> NULL) IS UNKNOWN", "FALSE"),
            ("(a > 1)^2 IS TRUE", "((a > 1) IS TRUE)^2"),
        ] {
            assert_eq!(pushed(text), canonical, "{text}");
        }
    }

    #[test]
    fn a_test_of_a_large_expression_is_refused_before_it_takes_the_memory() {
        // Every level asks all of those below for two things.
        let leaf = vec!["x > 1"; 200].join(" AND ");
        let nest = (0..120).fold(leaf, |inner, at| {
            let other = if at % 2 == 0 { "OR" } else { "AND" };
            format!("({inner}) {other} y{at} > 1")
        });
        let small = parse(&format!("({nest}) IS TRUE")).unwrap();
        assert_eq!(predicates_in(&small), 320);
        let wide = vec!["x > 1"; 40_000].join(" AND ");
        assert!(parse(&format!("({wide}) IS TRUE")).is_ok());
        let error = parse(&format!("({wide}) IS UNKNOWN")).unwrap_err();
        assert!(error.message.contains("more than 65536 predicates"), "{error}");
    }

    #[test]
    fn two_valued_rules_say_what_was_rewritten() {
        let (expr, rewritten) =
            missing_is_false(&parse("NOT (a = 1 OR b IS NULL) XOR a = 1 AND NULL").unwrap());
        assert_eq!(expr.to_string(), "NOT ((a = 1) IS TRUE OR b IS NULL) XOR (a = 1) IS TRUE AND FALSE");
        assert_eq!(rewritten, ["a = 1", "NULL"]);
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

        #[test]
        fn for_points_a_test_says_what_its_words_do(
            expr in any_expr(4), event in any_event(), test in prop::sample::select(&TruthTest::ALL[..]),
        ) {
            let outcome = evaluate(&expr, &lookup(&event));
            let tested = truth_test(&expr, test).unwrap();
            prop_assert_eq!(evaluate(&tested, &lookup(&event)), test.of_constant(outcome).into(), "{}", tested);
        }

        #[test]
        fn what_can_be_true_can_pass_the_test(expr in any_expr(4), event in any_interval_event()) {
            let outcome = evaluate(&expr, &lookup(&event));
            for (test, can) in [(TruthTest::True, outcome.can_be_true), (TruthTest::False, outcome.can_be_false)] {
                let tested = truth_test(&expr, test).unwrap();
                prop_assert!(!can || evaluate(&tested, &lookup(&event)).can_be_true, "{}", tested);
            }
        }

        #[test]
        fn two_valued_rules_are_never_undefined(expr in any_expr(4), event in any_event()) {
            let (two_valued, rewritten) = missing_is_false(&expr);
            let outcome = evaluate(&two_valued, &lookup(&event));
            prop_assert_ne!(outcome, Outcome::UNDEFINED);
            prop_assert!(!rewritten.is_empty() || outcome == evaluate(&expr, &lookup(&event)));
        }
    }
}
