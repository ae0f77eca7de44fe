//! The weights of a path: whether it has any, their sum, and the path without them.

use crate::ast::{Condition, Path, RelativePath, Step};

impl Path {
    /// Whether weights are written in it. A path without any counts 1 wherever it is true.
    ///
    /// ```
    /// use tamis_xpath::Path;
    /// let path = Path::parse("/news/item^2[price > 5]^3").unwrap();
    /// assert!(path.is_scored());
    /// assert_eq!(path.most_score(), 5.0);
    /// assert_eq!(path.without_weights().to_string(), "/news/item[price > 5]");
    /// ```
    pub fn is_scored(&self) -> bool {
        steps_are_scored(&self.steps)
    }

    /// What it counts at most, whatever the document: all its weights, added up in the order of a score. Adding floats is
    /// monotone, so no embedding is above it.
    pub fn most_score(&self) -> f64 {
        if self.is_scored() { most_of_steps(&self.steps) } else { 1.0 }
    }

    /// The path that is true for the same documents and has no weights.
    pub fn without_weights(&self) -> Self {
        Self { steps: plain_steps(&self.steps) }
    }
}

fn steps_are_scored(steps: &[Step]) -> bool {
    steps.iter().any(|step| step.weight.is_some() || step.conditions.iter().any(condition_is_scored))
}

fn condition_is_scored(condition: &Condition) -> bool {
    match condition {
        Condition::And(parts) | Condition::Or(parts) => parts.iter().any(condition_is_scored),
        Condition::Not(_) => false,
        Condition::Exists(path)
        | Condition::Compare(path, ..)
        | Condition::Contains(path, _)
        | Condition::StartsWith(path, _) => steps_are_scored(&path.steps),
        Condition::Weighted(..) => true,
    }
}

fn most_of_steps(steps: &[Step]) -> f64 {
    let of_step = |step: &Step| {
        step.conditions.iter().fold(step.weight.unwrap_or(0.0), |sum, condition| sum + most_of(condition))
    };
    steps.iter().fold(0.0, |sum, step| sum + of_step(step))
}

fn most_of(condition: &Condition) -> f64 {
    match condition {
        Condition::And(parts) | Condition::Or(parts) => {
            parts.iter().fold(0.0, |sum, part| sum + most_of(part))
        }
        Condition::Not(_) => 0.0,
        Condition::Exists(path)
        | Condition::Compare(path, ..)
        | Condition::Contains(path, _)
        | Condition::StartsWith(path, _) => most_of_steps(&path.steps),
        Condition::Weighted(inner, weight) => most_of(inner) + weight,
    }
}

fn plain_steps(steps: &[Step]) -> Vec<Step> {
    let plain = |step: &Step| Step {
        axis: step.axis,
        test: step.test.clone(),
        weight: None,
        conditions: step.conditions.iter().map(plain).collect(),
    };
    steps.iter().map(plain).collect()
}

fn plain(condition: &Condition) -> Condition {
    let all = |parts: &[Condition]| parts.iter().map(plain).collect();
    let path = |path: &RelativePath| RelativePath { steps: plain_steps(&path.steps) };
    match condition {
        Condition::And(parts) => Condition::And(all(parts)),
        Condition::Or(parts) => Condition::Or(all(parts)),
        Condition::Not(inner) => Condition::Not(Box::new(plain(inner))),
        Condition::Exists(steps) => Condition::Exists(path(steps)),
        Condition::Compare(steps, comparison, literal) => {
            Condition::Compare(path(steps), *comparison, literal.clone())
        }
        Condition::Contains(steps, text) => Condition::Contains(path(steps), text.clone()),
        Condition::StartsWith(steps, text) => Condition::StartsWith(path(steps), text.clone()),
        Condition::Weighted(inner, _) => plain(inner),
    }
}
