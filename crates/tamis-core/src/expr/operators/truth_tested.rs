//! Truth tests of one predicate: `(x > 5) IS TRUE` and `(x > 5) IS NOT UNKNOWN`. Neither is ever undefined.
//!
//! The predicate inside is given by the operands: the code of its operator, whether it is negated, and its
//! own operands. It is always a predicate that is undefined for an absent attribute;
//! [`truth_test`](crate::expr::truth_test) rewrites the tests of all others.

use super::{LowerCaseTest, Operator, Rules, Shape, Syntax, Test};
use crate::expr::ast::Outcome;
use crate::value::{Kind, Value, ValueRef};

/// How many operands say what is tested.
const HEAD: usize = 2;

/// The predicate that a truth test looks at.
#[derive(Clone, Copy, Debug)]
pub struct Inner<'a> {
    pub operator: Operator,
    pub negated: bool,
    pub operands: &'a [Value],
}

impl<'a> Inner<'a> {
    fn read(operands: &'a [Value]) -> Option<Self> {
        let (head, rest) = operands.split_at_checked(HEAD)?;
        let [Value::Int(code), Value::Bool(negated)] = head else { return None };
        let operator = Operator::from_code(u8::try_from(*code).ok()?)?;
        let refused = [Operator::IS_TRUE, Operator::KNOWN, Operator::IS_NULL, Operator::NULL_SAFE_EQUAL]
            .contains(&operator);
        (!refused).then_some(Self { operator, negated: *negated, operands: rest })
    }

    /// Of operands that were checked.
    fn of(operands: &'a [Value]) -> Self {
        Self::read(operands).expect("operands of a truth test were checked")
    }

    /// The operands of a truth test of this predicate.
    pub fn written(&self) -> Vec<Value> {
        let head = [Value::Int(self.operator.code() as i64), Value::Bool(self.negated)];
        head.into_iter().chain(self.operands.iter().cloned()).collect()
    }

    fn outcome(&self, value: Option<ValueRef<'_>>) -> Outcome {
        let outcome = self.operator.outcome(value, self.operands);
        if self.negated { !outcome } else { outcome }
    }

    /// The kind of value whose presence alone makes the predicate defined, as far as points go.
    pub fn deciding_kind(&self) -> Option<Kind> {
        let rules = self.operator.rules();
        rules.expects(self.operands).filter(|_| rules.is_two_valued(self.operands))
    }

    /// A predicate that is defined for the same values, the same one for as many as possible.
    pub fn alike(&self) -> (Operator, Vec<Value>) {
        let rules = self.operator.rules();
        let an_interval = (Value::Str("".into()), Value::Str("".into()));
        let takes_intervals = || self.outcome(Some(ValueRef::Interval(&an_interval))) != Outcome::UNDEFINED;
        let shape = rules.shape(self.operands);
        let is_pattern = !matches!(shape, Shape::Points(_) | Shape::Range { .. });
        match self.deciding_kind() {
            Some(Kind::Bool) => (Operator::TRUTH, vec![]),
            Some(Kind::Number) if !is_pattern => (Operator::EQUAL, vec![Value::Int(0)]),
            Some(Kind::Timestamp) if !is_pattern => (Operator::EQUAL, vec![Value::Timestamp(0)]),
            Some(Kind::Str) if !is_pattern && takes_intervals() => {
                (Operator::EQUAL, vec![Value::Str("".into())])
            }
            Some(Kind::Str) if is_pattern && !matches!(shape, Shape::Never) && !takes_intervals() => {
                (Operator::STARTSWITH, vec![Value::Str("".into())])
            }
            _ => (self.operator, self.operands.to_vec()),
        }
    }
}

impl Operator {
    /// The predicate that this operator tests, if it is a truth test.
    pub fn tested(self, operands: &[Value]) -> Option<Inner<'_>> {
        matches!(self, Operator::IS_TRUE | Operator::KNOWN).then(|| Inner::of(operands))
    }

    /// The kind of value that it is about: what it [expects](Rules::expects), or what a tested predicate does.
    pub fn is_about(self, operands: &[Value]) -> Option<Kind> {
        match self.tested(operands) {
            Some(inner) => inner.operator.rules().expects(inner.operands),
            None => self.rules().expects(operands),
        }
    }
}

fn check(operands: Vec<Value>, may_be_negated: bool) -> Result<Vec<Value>, String> {
    let Some(inner) = Inner::read(&operands).filter(|inner| may_be_negated || !inner.negated) else {
        return Err(
            "a truth test takes the code of an operator, whether it is negated, and its operands".into()
        );
    };
    let (operator, negated) = (inner.operator, inner.negated);
    let operands = operator.rules().check(inner.operands.to_vec())?;
    Ok(Inner { operator, negated, operands: &operands }.written())
}

fn is_canonical(operands: &[Value], may_be_negated: bool) -> bool {
    Inner::read(operands).is_some_and(|inner| {
        (may_be_negated || !inner.negated) && inner.operator.rules().is_canonical(inner.operands)
    })
}

fn compiled(operands: &[Value], judge: fn(Outcome) -> Outcome) -> Option<Test> {
    let Inner { operator, negated, operands } = Inner::of(operands);
    let test = operator.rules().compile(operands)?;
    Some(Box::new(move |value| {
        let outcome = test(value);
        judge(if negated { !outcome } else { outcome })
    }))
}

/// What is undefined is not true.
fn is_true(outcome: Outcome) -> Outcome {
    if outcome == Outcome::UNDEFINED { Outcome::FALSE } else { outcome }
}

fn is_known(outcome: Outcome) -> Outcome {
    (outcome != Outcome::UNDEFINED).into()
}

pub struct IsTrue;

impl Rules for IsTrue {
    fn name(&self) -> &'static str {
        "IS TRUE"
    }

    fn syntax(&self) -> Syntax {
        Syntax::Keyword("IS TRUE")
    }

    fn check(&self, operands: Vec<Value>) -> Result<Vec<Value>, String> {
        check(operands, true)
    }

    fn is_canonical(&self, operands: &[Value]) -> bool {
        is_canonical(operands, true)
    }

    fn expects(&self, _operands: &[Value]) -> Option<Kind> {
        None
    }

    fn evaluate(&self, value: Option<ValueRef<'_>>, operands: &[Value]) -> Outcome {
        is_true(Inner::of(operands).outcome(value))
    }

    fn shape<'a>(&self, operands: &'a [Value]) -> Shape<'a> {
        let Inner { operator, negated, operands } = Inner::of(operands);
        match operator.rules().complement() {
            _ if !negated => operator.rules().shape(operands),
            Some(complement) => complement.rules().shape(operands),
            None => Shape::Opaque,
        }
    }

    fn compile(&self, operands: &[Value]) -> Option<Test> {
        compiled(operands, is_true)
    }

    fn compile_lower_case(&self, operands: &[Value]) -> Option<LowerCaseTest> {
        let Inner { operator, negated, operands } = Inner::of(operands);
        if negated { None } else { operator.rules().compile_lower_case(operands) }
    }
}

pub struct Known;

impl Rules for Known {
    fn name(&self) -> &'static str {
        "IS NOT UNKNOWN"
    }

    fn syntax(&self) -> Syntax {
        Syntax::Keyword("IS NOT UNKNOWN")
    }

    fn check(&self, operands: Vec<Value>) -> Result<Vec<Value>, String> {
        check(operands, false)
    }

    fn is_canonical(&self, operands: &[Value]) -> bool {
        is_canonical(operands, false)
    }

    fn expects(&self, _operands: &[Value]) -> Option<Kind> {
        None
    }

    fn evaluate(&self, value: Option<ValueRef<'_>>, operands: &[Value]) -> Outcome {
        let inner = Inner::of(operands);
        match (value, inner.deciding_kind()) {
            (Some(value), Some(kind)) if !value.is_set() => (value.kind() == Some(kind)).into(),
            _ => is_known(inner.outcome(value)),
        }
    }

    fn shape<'a>(&self, _operands: &'a [Value]) -> Shape<'a> {
        Shape::Opaque
    }

    fn compile(&self, operands: &[Value]) -> Option<Test> {
        let inner = Inner::of(operands);
        if inner.deciding_kind().is_some() { None } else { compiled(operands, is_known) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tested(operator: Operator, negated: bool, operands: &[Value]) -> Vec<Value> {
        Inner { operator, negated, operands }.written()
    }

    #[test]
    fn undefined_is_not_true_and_not_known() {
        let above = tested(Operator::GREATER, false, &[Value::Int(5)]);
        for (value, is_true, is_known) in [
            (Some(ValueRef::Int(6)), Outcome::TRUE, Outcome::TRUE),
            (Some(ValueRef::Int(5)), Outcome::FALSE, Outcome::TRUE),
            (Some(ValueRef::Str("6")), Outcome::FALSE, Outcome::FALSE),
            (None, Outcome::FALSE, Outcome::FALSE),
        ] {
            assert_eq!(Operator::IS_TRUE.outcome(value, &above), is_true);
            assert_eq!(Operator::KNOWN.outcome(value, &above), is_known);
        }
        let not_above = tested(Operator::GREATER, true, &[Value::Int(5)]);
        assert_eq!(Operator::IS_TRUE.outcome(Some(ValueRef::Int(5)), &not_above), Outcome::TRUE);
        assert_eq!(Operator::IS_TRUE.outcome(None, &not_above), Outcome::FALSE);
    }

    #[test]
    fn an_interval_can_be_either_and_is_known() {
        let above = tested(Operator::GREATER, false, &[Value::Int(5)]);
        let interval = Value::Interval(Box::new((Value::Int(1), Value::Int(9))));
        assert_eq!(Operator::IS_TRUE.outcome(Some(interval.as_ref()), &above), Outcome::EITHER);
        assert_eq!(Operator::KNOWN.outcome(Some(interval.as_ref()), &above), Outcome::TRUE);
    }

    #[test]
    fn operands_are_those_of_one_predicate() {
        let check = |operands: &[Value]| IsTrue.check(operands.to_vec());
        let (in_code, truth) = (Value::Int(Operator::IN.code() as i64), Value::Bool(false));
        let given = [in_code.clone(), truth.clone(), Value::Int(3), Value::Int(1)];
        let sorted = [in_code, truth.clone(), Value::Int(1), Value::Int(3)];
        assert!(!IsTrue.is_canonical(&given) && IsTrue.is_canonical(&sorted));
        assert_eq!(check(&given).unwrap(), sorted);
        for wrong in [Operator::IS_TRUE, Operator::KNOWN, Operator::IS_NULL, Operator::NULL_SAFE_EQUAL] {
            assert!(check(&[Value::Int(wrong.code() as i64), truth.clone(), Value::Int(1)]).is_err());
        }
        assert!(check(&[]).is_err() && check(&[Value::Int(99), truth]).is_err());
        assert!(Known.check(tested(Operator::LESS, true, &[Value::Int(1)])).is_err());
    }

    #[test]
    fn what_is_known_together_is_one_test() {
        let alike =
            |operator: Operator, operands: &[Value]| Inner { operator, negated: false, operands }.alike();
        let number = alike(Operator::GREATER, &[Value::Int(5)]);
        assert_eq!(alike(Operator::BETWEEN, &[Value::Int(1), Value::Int(2)]), number);
        let pattern = alike(Operator::LIKE, &[Value::Str("a%b".into())]);
        assert_eq!(alike(Operator::CONTAINS, &[Value::Str("x".into())]), pattern);
        assert_ne!(alike(Operator::EQUAL, &[Value::Str("x".into())]), pattern, "patterns take no intervals");
    }
}
