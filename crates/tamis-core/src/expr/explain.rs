//! Explains the truth of an expression: the tree as written, with an outcome at every node and the value that every
//! predicate saw.

use serde_json::json;

use super::ast::{Expr, Outcome};
use super::explanation_text::{Seen, outcome_name, predicate_text};
use crate::value::ValueRef;

/// One node of the written expression with its outcome.
#[derive(Clone, Debug, PartialEq)]
pub struct Explanation {
    /// The predicate or constant as it is written; the word of a connective.
    pub text: String,
    pub outcome: Outcome,
    /// What a predicate saw; `None` for everything else.
    pub seen: Option<SeenAttribute>,
    /// In written order.
    pub children: Vec<Explanation>,
}

/// The attribute of a predicate and what the event had there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeenAttribute {
    pub attribute: String,
    pub seen: Seen,
}

/// Explains the outcome of an expression. `value_of` is that of [`evaluate`](super::eval::evaluate),
/// but every node is visited, also those that cannot change the outcome.
pub fn explain<'a>(expr: &Expr, value_of: &impl Fn(&str) -> Option<ValueRef<'a>>) -> Explanation {
    let all = |children: &[Expr]| children.iter().map(|child| explain(child, value_of)).collect();
    match expr {
        Expr::Constant(outcome) => {
            let text = match *outcome {
                Outcome::TRUE => "TRUE",
                Outcome::FALSE => "FALSE",
                _ => "NULL",
            };
            Explanation { text: text.into(), outcome: *outcome, seen: None, children: Vec::new() }
        }
        Expr::Predicate(predicate) => {
            let seen = predicate.term.with_value(value_of, |value| Seen::by(predicate, value));
            Explanation {
                text: predicate_text(predicate),
                outcome: predicate.look(value_of),
                seen: Some(SeenAttribute { attribute: predicate.term.name().into(), seen }),
                children: Vec::new(),
            }
        }
        Expr::Not(child) => {
            let child = explain(child, value_of);
            Explanation { text: "NOT".into(), outcome: !child.outcome, seen: None, children: vec![child] }
        }
        Expr::And(children) => joined("AND", all(children), Outcome::and),
        Expr::Or(children) => joined("OR", all(children), Outcome::or),
        Expr::Xor(children) => joined("XOR", all(children), Outcome::xor),
        Expr::Xnor(children) => joined("XNOR", all(children), |left, right| !left.xor(right)),
        Expr::AtLeast(least, children) => {
            let children: Vec<Explanation> = all(children);
            let outcome = Outcome::at_least(*least, children.iter().map(|child| child.outcome));
            Explanation { text: format!("AT LEAST {least} OF"), outcome, seen: None, children }
        }
    }
}

fn joined(
    word: &str,
    children: Vec<Explanation>,
    combine: impl Fn(Outcome, Outcome) -> Outcome,
) -> Explanation {
    let outcomes = children.iter().map(|child| child.outcome);
    let outcome = outcomes.reduce(combine).expect("a connective has children");
    Explanation { text: word.into(), outcome, seen: None, children }
}

impl Explanation {
    /// `text` and `outcome` for every node; `attribute`, `value`, `seen` (the value in words) and, where it
    /// is of another kind than the predicate needs, `problem` for predicates; `children` for connectives.
    pub fn to_json(&self) -> serde_json::Value {
        let mut node = json!({"text": self.text, "outcome": outcome_name(self.outcome)});
        if let Some(SeenAttribute { attribute, seen }) = &self.seen {
            node["attribute"] = json!(attribute);
            node["value"] = seen.value_json();
            node["seen"] = json!(seen.text());
            if let Seen::WrongKind { is, needs, .. } = seen {
                node["problem"] = json!({"is": is.name(), "needs": needs.name()});
            }
        }
        if !self.children.is_empty() {
            node["children"] = self.children.iter().map(Explanation::to_json).collect();
        }
        node
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::expr::eval::evaluate;
    use crate::expr::testing::{
        TestEvent, any_event, any_expr, any_interval_event, compare, lookup, predicate,
    };
    use crate::value::Value;

    fn example() -> (Expr, TestEvent) {
        let name = Expr::Predicate(predicate("name", ">", &[Value::Int(3)]));
        let expr = Expr::And(vec![
            compare("age", ">=", 22),
            Expr::Or(vec![compare("height", "<", 5), Expr::Not(Box::new(name))]),
            Expr::Constant(Outcome::TRUE),
        ]);
        (expr, TestEvent::from([("age", Value::Int(27)), ("name", Value::Str("Ada".into()))]))
    }

    #[test]
    fn becomes_json() {
        let (expr, event) = example();
        let json = explain(&expr, &lookup(&event)).to_json();
        assert_eq!(json["outcome"], "undefined");
        assert_eq!(
            json["children"][0],
            json!({"text": "age >= 22", "outcome": "true", "attribute": "age", "value": 27, "seen": "is 27"})
        );
        let name = &json["children"][1]["children"][1]["children"][0];
        assert_eq!(name["seen"], "is 'Ada', a string, but needs a number");
        assert_eq!(name["problem"], json!({"is": "string", "needs": "number"}));
        assert_eq!(json["children"][1]["children"][0]["seen"], "is absent");
        assert_eq!(json["children"][2], json!({"text": "TRUE", "outcome": "true"}));
    }

    fn assert_agrees(expr: &Expr, explanation: &Explanation, event: &TestEvent) {
        assert_eq!(explanation.outcome, evaluate(expr, &lookup(event)), "{expr:?}");
        let children: &[Expr] = match expr {
            Expr::Not(child) => std::slice::from_ref(child),
            Expr::And(children)
            | Expr::Or(children)
            | Expr::Xor(children)
            | Expr::Xnor(children)
            | Expr::AtLeast(_, children) => children,
            _ => &[],
        };
        assert_eq!(children.len(), explanation.children.len());
        for (child, explained) in children.iter().zip(&explanation.children) {
            assert_agrees(child, explained, event);
        }
    }

    proptest! {
        #[test]
        fn every_node_has_the_outcome_of_the_evaluator(
            expr in any_expr(4),
            event in prop_oneof![any_event(), any_interval_event()],
        ) {
            assert_agrees(&expr, &explain(&expr, &lookup(&event)), &event);
        }
    }
}
