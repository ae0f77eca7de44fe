//! Paths with numbers instead of names: the form that is evaluated.

use std::hash::BuildHasher;
use std::sync::Arc;

use hashbrown::{HashMap, HashTable};
use rustc_hash::FxBuildHasher;

use crate::ast::{self, Axis, Comparison, Literal, NameTest, Test};
use crate::document::Names;
use crate::number::number;

/// A name test of some paths, as a number.
pub(crate) type Label = u32;

/// Every name passes it.
pub(crate) const ANY: Label = u32::MAX;
/// What no test is about.
pub(crate) const NO_LABEL: Label = u32::MAX - 1;

/// The name tests of some paths, each with a number: names, and `n:*` as the name `*`, which no element has.
#[derive(Default)]
pub(crate) struct Labels {
    all: Vec<(Arc<str>, Arc<str>)>,
    by_name: HashTable<Label>,
    /// How numbers were written that the shortest form of their value would not give back, by their bits and by whether
    /// they are compared for equality, where texts are no numbers.
    odd_numbers: HashMap<(u64, bool), Literal, FxBuildHasher>,
}

/// What a name of a document is for some paths: the label of the name, and that of all names in its namespace.
pub(crate) type NameLabels = [Label; 2];

fn hash(namespace: &str, local: &str) -> u64 {
    FxBuildHasher.hash_one((namespace, local))
}

impl Labels {
    pub fn find(&self, namespace: &str, local: &str) -> Label {
        let same = |at: &Label| {
            let (known_namespace, known) = &self.all[*at as usize];
            **known == *local && **known_namespace == *namespace
        };
        self.by_name.find(hash(namespace, local), same).copied().unwrap_or(NO_LABEL)
    }

    pub fn intern(&mut self, test: &NameTest) -> Label {
        let (namespace, local) = match test {
            NameTest::Any => return ANY,
            NameTest::AnyIn(namespace) => (namespace.clone(), "*".into()),
            NameTest::Name(name) => (name.namespace.clone(), name.local.clone()),
        };
        let known = self.find(&namespace, &local);
        if known != NO_LABEL {
            return known;
        }
        let label = self.all.len() as Label;
        self.all.push((namespace.clone(), local.clone()));
        let all = &self.all;
        self.by_name.insert_unique(hash(&namespace, &local), label, |at| {
            let (namespace, local) = &all[*at as usize];
            hash(namespace, local)
        });
        label
    }

    /// The name test of a label.
    pub fn test(&self, label: Label) -> NameTest {
        if label == ANY {
            return NameTest::Any;
        }
        let (namespace, local) = self.all[label as usize].clone();
        match &*local {
            "*" => NameTest::AnyIn(namespace),
            _ => NameTest::Name(ast::Name { namespace, local }),
        }
    }

    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// What each name of a document is for these paths.
    pub fn resolve(&self, names: &Names, resolved: &mut Vec<NameLabels>) {
        resolved.clear();
        resolved.extend(
            names.iter().map(|(namespace, local)| [self.find(namespace, local), self.find(namespace, "*")]),
        );
    }

    pub fn heap_bytes(&self) -> usize {
        let texts: usize = self.all.iter().map(|(namespace, local)| namespace.len() + local.len() + 32).sum();
        texts + self.all.capacity() * 32 + self.by_name.capacity() * 5
    }
}

pub(crate) fn passes(label: Label, name: NameLabels) -> bool {
    label == ANY || label == name[0] || label == name[1]
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Step {
    pub axis: Axis,
    pub kind: Kind,
    pub label: Label,
    /// The weight of a node at this step.
    pub weight: f64,
    pub conditions: Box<[Condition]>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    Element,
    Attribute,
    Text,
}

pub(crate) type Steps = Box<[Step]>;

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Condition {
    And(Box<[Condition]>),
    Or(Box<[Condition]>),
    Not(Box<Condition>),
    Exists(Steps),
    Compare(Steps, ValueTest),
    Contains(Steps, Box<str>),
    StartsWith(Steps, Box<str>),
    Weighted(Box<Condition>, f64),
}

/// The test of a comparison on the value of one node.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ValueTest {
    Text { equal: bool, text: Box<str> },
    Number { comparison: Comparison, number: f64 },
}

impl ValueTest {
    pub fn holds(&self, value: &str) -> bool {
        match self {
            Self::Text { equal, text } => (value == &**text) == *equal,
            Self::Number { comparison, number: operand } => compare(number(value), *comparison, *operand),
        }
    }
}

pub(crate) fn compare(value: f64, comparison: Comparison, operand: f64) -> bool {
    match comparison {
        Comparison::Equal => value == operand,
        Comparison::NotEqual => value != operand,
        Comparison::Less => value < operand,
        Comparison::LessOrEqual => value <= operand,
        Comparison::Greater => value > operand,
        Comparison::GreaterOrEqual => value >= operand,
    }
}

fn reads_back(value: f64) -> bool {
    let text = value.to_string();
    value.is_finite() && text.len() < 32 && number(&text).to_bits() == value.to_bits()
}

impl Labels {
    pub fn compile_steps(&mut self, steps: &[ast::Step]) -> Steps {
        steps.iter().map(|step| self.compile_step(step)).collect()
    }

    fn compile_step(&mut self, step: &ast::Step) -> Step {
        let (kind, label) = match &step.test {
            Test::Element(name) => (Kind::Element, self.intern(name)),
            Test::Attribute(name) => (Kind::Attribute, self.intern(name)),
            Test::Text => (Kind::Text, ANY),
        };
        let conditions = step.conditions.iter().map(|condition| self.compile(condition)).collect();
        Step { axis: step.axis, kind, label, weight: step.weight.unwrap_or(0.0), conditions }
    }

    fn value_test(&mut self, comparison: Comparison, literal: &Literal) -> ValueTest {
        let written = match (comparison, literal) {
            (Comparison::Equal, Literal::Text(text)) => {
                return ValueTest::Text { equal: true, text: text.clone() };
            }
            (Comparison::NotEqual, Literal::Text(text)) => {
                return ValueTest::Text { equal: false, text: text.clone() };
            }
            (_, Literal::Text(text) | Literal::Number(text, _)) => text,
        };
        let number = number(written);
        if !reads_back(number) {
            self.odd_numbers.insert((number.to_bits(), comparison.is_equality()), literal.clone());
        }
        ValueTest::Number { comparison, number }
    }

    /// What reads as this number, which some path has.
    pub fn number_literal(&self, comparison: Comparison, number: f64) -> Literal {
        match self.odd_numbers.get(&(number.to_bits(), comparison.is_equality())) {
            Some(literal) => literal.clone(),
            None => Literal::Number(number.to_string().into(), number),
        }
    }

    pub fn compile(&mut self, condition: &ast::Condition) -> Condition {
        use ast::Condition as Written;
        match condition {
            Written::And(parts) => Condition::And(parts.iter().map(|part| self.compile(part)).collect()),
            Written::Or(parts) => Condition::Or(parts.iter().map(|part| self.compile(part)).collect()),
            Written::Not(inner) => Condition::Not(Box::new(self.compile(inner))),
            Written::Exists(path) => Condition::Exists(self.compile_steps(&path.steps)),
            Written::Compare(path, comparison, literal) => {
                let steps = self.compile_steps(&path.steps);
                Condition::Compare(steps, self.value_test(*comparison, literal))
            }
            Written::Weighted(inner, weight) => Condition::Weighted(Box::new(self.compile(inner)), *weight),
            Written::Contains(path, text) => {
                Condition::Contains(self.compile_steps(&path.steps), text.clone())
            }
            Written::StartsWith(path, text) => {
                Condition::StartsWith(self.compile_steps(&path.steps), text.clone())
            }
        }
    }
}
