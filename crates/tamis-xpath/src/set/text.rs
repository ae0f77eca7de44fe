//! Restores the text of the paths of a set from their parts. Snapshots store a set as these texts.
//!
//! A path may come back in another form (`/a/@x` as `/a[@x]`), but it is true for the same documents.

use super::builder::PROVED;
use super::simple::SimpleTest;
use super::verification::Head;
use super::{ConditionId, OPAQUE, PathSet};
use crate::ast::{self, Axis, Comparison, Literal, Path, RelativePath, Test};
use crate::compiled::{Condition, Kind, Label, Step, ValueTest};

/// True for no document.
const NEVER: &str = "/text()";

impl PathSet {
    /// Calls `see` with the text of each path, in order.
    pub fn for_each_text(&self, see: &mut dyn FnMut(&str)) {
        let mut accesses: Vec<(u32, u32)> = self.lists.accesses().collect();
        accesses.sort_unstable();
        let mut inside = vec![0; self.given.len()];
        for (number, given) in (0..).zip(&self.given) {
            inside[*given as usize] = number;
        }
        for path in inside {
            let start = accesses.partition_point(|(owner, _)| *owner < path);
            let own = accesses[start..].iter().take_while(|(owner, _)| *owner == path);
            let own: Vec<u32> = own.map(|(_, list)| *list).collect();
            match self.path(path, &own) {
                Some(path) => see(&path.to_string()),
                None => see(NEVER),
            }
        }
    }

    /// A path, given the lists that are its access.
    fn path(&self, path: u32, accesses: &[u32]) -> Option<Path> {
        let entry = self.paths[path as usize];
        if entry.node == super::builder::NOWHERE {
            return None;
        }
        let keys = self.tree.way_to(entry.node).into_iter().map(|node| self.tree.key(node));
        let mut steps: Vec<_> = keys.map(|key| self.element_step(key.axis(), key.label())).collect();
        let mut access_step = steps.len() - 1;
        if entry.rest != PROVED {
            let words = &self.rests[entry.rest as usize..];
            let head = Head(words[0]);
            access_step = head.access_step();
            for pair in head.conditions(words).chunks_exact(2) {
                steps[pair[0] as usize].conditions.push(self.condition(pair[1]));
            }
        }
        let mut alternatives: Vec<_> = accesses.iter().map(|list| self.condition(*list)).collect();
        let access = match alternatives.len() {
            0 => return Some(Path { steps }),
            1 => alternatives.remove(0),
            _ => ast::Condition::Or(alternatives),
        };
        steps[access_step].conditions.push(access);
        Some(Path { steps })
    }

    fn element_step(&self, axis: Axis, label: Label) -> ast::Step {
        ast::Step { axis, test: Test::Element(self.labels.test(label)), weight: None, conditions: vec![] }
    }

    fn condition(&self, id: ConditionId) -> ast::Condition {
        if id & OPAQUE != 0 {
            return self.written(&self.opaque[(id & !OPAQUE) as usize]);
        }
        let id = self.lists.condition(id);
        let subject = self.relative(&self.subjects[self.simple.subject(id) as usize]);
        match self.simple.test(id) {
            SimpleTest::Exists => ast::Condition::Exists(subject),
            SimpleTest::Text(text) => {
                ast::Condition::Compare(subject, Comparison::Equal, Literal::Text(text.into()))
            }
            SimpleTest::Contains(text) => ast::Condition::Contains(subject, text.into()),
            SimpleTest::StartsWith(text) => ast::Condition::StartsWith(subject, text.into()),
            SimpleTest::Number(comparison, number) => {
                ast::Condition::Compare(subject, comparison, self.labels.number_literal(comparison, number))
            }
        }
    }

    fn written(&self, condition: &Condition) -> ast::Condition {
        use ast::Condition as Written;
        let all = |parts: &[Condition]| parts.iter().map(|part| self.written(part)).collect();
        match condition {
            Condition::And(parts) => Written::And(all(parts)),
            Condition::Or(parts) => Written::Or(all(parts)),
            Condition::Not(inner) => Written::Not(Box::new(self.written(inner))),
            Condition::Exists(steps) => Written::Exists(self.relative(steps)),
            Condition::Compare(steps, ValueTest::Text { equal, text }) => {
                let comparison = if *equal { Comparison::Equal } else { Comparison::NotEqual };
                Written::Compare(self.relative(steps), comparison, Literal::Text(text.clone()))
            }
            Condition::Compare(steps, ValueTest::Number { comparison, number }) => Written::Compare(
                self.relative(steps),
                *comparison,
                self.labels.number_literal(*comparison, *number),
            ),
            Condition::Contains(steps, text) => Written::Contains(self.relative(steps), text.clone()),
            Condition::StartsWith(steps, text) => Written::StartsWith(self.relative(steps), text.clone()),
            Condition::Weighted(inner, _) => self.written(inner),
        }
    }

    fn relative(&self, steps: &[Step]) -> RelativePath {
        RelativePath { steps: steps.iter().map(|step| self.written_step(step)).collect() }
    }

    fn written_step(&self, step: &Step) -> ast::Step {
        let test = match step.kind {
            Kind::Element => Test::Element(self.labels.test(step.label)),
            Kind::Attribute => Test::Attribute(self.labels.test(step.label)),
            Kind::Text => Test::Text,
        };
        let conditions = step.conditions.iter().map(|condition| self.written(condition)).collect();
        ast::Step { axis: step.axis, test, weight: None, conditions }
    }
}
