//! The conditions of a step, as they are written in square brackets: comparisons, functions, `and`, `or` and `not`.

use super::Parser;
use crate::ast::{Comparison, Condition, Literal, RelativePath};
use crate::error::PathError;

/// Predicates inside predicates, and parentheses.
const MAX_NESTING: usize = 32;

/// One side of a comparison.
enum Operand {
    Path(RelativePath),
    Literal(Literal),
    Condition(Condition),
}

impl Parser<'_> {
    pub(super) fn nested<T>(
        &mut self,
        parse: impl FnOnce(&mut Self) -> Result<T, PathError>,
    ) -> Result<T, PathError> {
        if self.nesting == MAX_NESTING {
            return Err(self.error(format!("predicates are nested deeper than {MAX_NESTING} levels")));
        }
        self.nesting += 1;
        let parsed = parse(self);
        self.nesting -= 1;
        parsed
    }

    /// Conditions joined by `or` and `and`.
    pub(super) fn alternatives(&mut self) -> Result<Condition, PathError> {
        self.chain("or", Condition::Or, |parser| {
            parser.chain("and", Condition::And, |parser| parser.comparison())
        })
    }

    fn chain(
        &mut self,
        word: &str,
        join: fn(Vec<Condition>) -> Condition,
        mut part: impl FnMut(&mut Self) -> Result<Condition, PathError>,
    ) -> Result<Condition, PathError> {
        let mut parts = vec![part(self)?];
        while self.take_word(word) {
            parts.push(part(self)?);
        }
        Ok(if parts.len() == 1 { parts.remove(0) } else { join(parts) })
    }

    fn comparison(&mut self) -> Result<Condition, PathError> {
        self.space();
        let start = self.at;
        let left = self.operand()?;
        self.space();
        let operator_at = self.at;
        let Some(comparison) = self.comparison_symbol() else {
            return match left {
                Operand::Path(path) => Ok(Condition::Exists(path)),
                Operand::Condition(condition) => Ok(condition),
                Operand::Literal(Literal::Number(..)) => {
                    Err(PathError::new(start, "positions are not supported")
                        .with_hint("choose nodes by what they contain: item[price > 5], item[@id = '1']"))
                }
                Operand::Literal(Literal::Text(_)) => {
                    Err(PathError::new(start, "a text on its own is not a predicate")
                        .with_hint("compare it with something: [title = 'x']"))
                }
            };
        };
        let right_at = {
            self.space();
            self.at
        };
        let right = self.operand()?;
        let condition = match (left, right) {
            (Operand::Path(path), Operand::Literal(literal)) => Condition::Compare(path, comparison, literal),
            (Operand::Literal(literal), Operand::Path(path)) => {
                Condition::Compare(path, comparison.flipped(), literal)
            }
            (Operand::Path(_), Operand::Path(_)) => {
                return Err(PathError::new(right_at, "two paths are not compared with one another")
                    .with_hint("compare a path with a number or with a text in quotes"));
            }
            (Operand::Literal(_), Operand::Literal(_)) => {
                return Err(PathError::new(
                    operator_at,
                    "two values are compared, which does not depend on any document",
                ));
            }
            _ => {
                return Err(PathError::new(operator_at, "only paths are compared with values")
                    .with_hint("join conditions with and, or and not()"));
            }
        };
        self.space();
        if self.rest().starts_with(['=', '!', '<', '>']) {
            return Err(self.error("comparisons do not follow one another").with_hint("join them with and"));
        }
        if self.rest().starts_with('^') {
            return Err(self
                .error("a weight stands behind a predicate or a parenthesis, not behind a value")
                .with_hint("write [price > 5]^2 or (price > 5)^2"));
        }
        Ok(condition)
    }

    fn comparison_symbol(&mut self) -> Option<Comparison> {
        use Comparison::{Equal, Greater, GreaterOrEqual, Less, LessOrEqual, NotEqual};
        let all = [NotEqual, LessOrEqual, GreaterOrEqual, Equal, Less, Greater];
        all.into_iter().find(|comparison| self.take(comparison.symbol()))
    }

    fn operand(&mut self) -> Result<Operand, PathError> {
        self.space();
        if let Some(text) = self.quoted()? {
            return Ok(Operand::Literal(Literal::Text(text.into())));
        }
        if let Some(literal) = self.number()? {
            return Ok(Operand::Literal(literal));
        }
        if self.take("(") {
            let inner = self.nested(|parser| parser.alternatives())?;
            self.expect(")", "to close the parenthesis")?;
            // A path in parentheses is still a path, but only its existence is asked here.
            return self.weighted(inner).map(Operand::Condition);
        }
        if self.rest().starts_with('/') {
            return Err(self
                .error("a path in a predicate begins at the node, not at the document")
                .with_hint("write .//a, or another xpath() for what is elsewhere in the document"));
        }
        let start = self.at;
        if let Some(name) = self.peek_name()
            && !matches!(name, "text" | "node" | "comment" | "processing-instruction")
            && self.rest()[name.len()..].trim_start().starts_with('(')
        {
            self.at += name.len();
            self.take("(");
            return self.call(start, name).map(Operand::Condition);
        }
        self.relative_path().map(Operand::Path)
    }

    fn call(&mut self, start: usize, name: &str) -> Result<Condition, PathError> {
        let condition = match name {
            "not" => {
                let outside = std::mem::replace(&mut self.is_negated, true);
                let inner = self.nested(|parser| parser.alternatives())?;
                self.is_negated = outside;
                Condition::Not(Box::new(inner))
            }
            "contains" | "starts-with" => {
                let path = match self.operand()? {
                    Operand::Path(path) => path,
                    _ => {
                        return Err(PathError::new(start, format!("{name}() takes a path and a text"))
                            .with_hint(format!("write {name}(title, 'x') or {name}(., 'x')")));
                    }
                };
                self.expect(",", &format!("between the path and the text of {name}()"))?;
                let Some(text) = self.quoted()? else {
                    return Err(self.error(format!("{name}() takes a text in quotes")));
                };
                if name == "contains" {
                    Condition::Contains(path, text.into())
                } else {
                    Condition::StartsWith(path, text.into())
                }
            }
            _ => return Err(self.unknown_function(start, name)),
        };
        self.expect(")", &format!("at the end of {name}()"))?;
        self.weighted(condition)
    }

    fn relative_path(&mut self) -> Result<RelativePath, PathError> {
        if self.rest().starts_with('.') && !self.rest().starts_with("..") {
            self.at += 1;
            self.space();
            if self.rest().starts_with('/') {
                return self.steps(true).map(|steps| RelativePath { steps });
            }
            if self.rest().starts_with('[') {
                return Err(self.error("a predicate cannot follow .").with_hint("join conditions with and"));
            }
            if self.rest().starts_with('^') {
                return Err(self.error("a weight cannot follow .").with_hint("write (.)^2"));
            }
            return Ok(RelativePath { steps: vec![] });
        }
        let steps = self.steps(false)?;
        self.space();
        match self.rest().chars().next() {
            Some('|') => {
                Err(self.error("a union of paths is not supported").with_hint("join conditions with or"))
            }
            Some('+' | '*') => Err(self
                .error("arithmetic is not supported")
                .with_hint("compare a path with a number: [price > 5]")),
            _ => Ok(RelativePath { steps }),
        }
    }
}
