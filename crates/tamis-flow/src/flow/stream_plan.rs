//! What the queries over one stream share: an index of selections, windows, sequences, and an index of rules.

use std::collections::BTreeSet;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use tamis_core::event::{Schema, Value};
use tamis_core::expr::Expr;
use tamis_core::term::{STRINGS, Term};
use tamis_core::{Error, Result};

use super::queries::starts_empty;
use super::{Rule, Start};
use crate::guard::Guards;
use crate::rule::{attributes, note_attributes, over_aggregates};
use crate::selection::{Matcher, Selections};
use crate::sequence::{SequenceId, SequencePlan};
use crate::stream::{Progress, StreamOptions};
use crate::text::{ExpressionText, SequenceText, WINDOW_PREFIX};
use crate::window::{AggregateId, Fed, WindowPlan};

pub(crate) struct StreamPlan {
    pub progress: Progress,
    pub selections: Selections,
    pub windows: WindowPlan,
    pub sequences: SequencePlan,
    pub sequence_users: FxHashMap<SequenceId, BTreeSet<u32>>,
    pub rules: Matcher,
    pub guards: Guards,
    /// How many queries read it.
    pub readers: usize,
}

impl StreamPlan {
    pub fn new(name: &str, options: StreamOptions) -> Result<Self> {
        Ok(Self {
            progress: Progress::new(name, options)?,
            selections: Selections::default(),
            windows: WindowPlan::default(),
            sequences: SequencePlan::default(),
            sequence_users: FxHashMap::default(),
            rules: Matcher::default(),
            guards: Guards::default(),
            readers: 0,
        })
    }

    pub(super) fn add_sequence(&mut self, number: u32, text: &str, start: Start<'_>) -> Result<SequenceId> {
        let written = SequenceText::read(text)?;
        let epoch = match start {
            Start::Stored(epochs) => epochs.first().copied().unwrap_or(0),
            Start::Empty => self.progress.evaluated,
            Start::Backfilled => return Err(starts_empty("a sequence")),
        };
        self.check_steps(&written)?;
        self.check_terms(&written.by)?;
        let id = self.sequences.acquire(&written, &mut self.selections, epoch)?;
        self.sequence_users.entry(id).or_default().insert(number);
        Ok(id)
    }

    pub(super) fn remove_sequence(&mut self, number: u32, id: SequenceId) -> Result<()> {
        if let Some(users) = self.sequence_users.get_mut(&id) {
            users.remove(&number);
            if users.is_empty() {
                self.sequence_users.remove(&id);
            }
        }
        self.sequences.release(id, &mut self.selections)
    }

    /// Refuses attributes that the schema of the stream does not know; `a.x` is the attribute `x` of a step.
    pub(super) fn check_steps(&self, written: &SequenceText) -> Result<()> {
        let names: Vec<&str> = written.steps.iter().filter_map(|step| step.name.as_deref()).collect();
        for step in &written.steps {
            for expression in [Some(&step.condition), step.absent.as_ref()].into_iter().flatten() {
                let mut used = BTreeSet::new();
                attributes(expression, &mut used);
                for name in used {
                    let attribute = match name.split_once('.') {
                        Some((step, attribute)) if names.contains(&step) => attribute,
                        _ => &name,
                    };
                    self.check_attribute(attribute)?;
                }
            }
        }
        Ok(())
    }

    /// Refuses an attribute that the schema of the stream does not know.
    pub(super) fn check_attribute(&self, name: &str) -> Result<()> {
        if name == STRINGS {
            return Ok(());
        }
        self.check(&tamis_core::expr::parse(&format!("{} IS NULL", Term::attribute(name)))?)
    }

    /// Refuses terms that look at attributes which the schema of the stream does not know.
    fn check_terms<'t>(&self, terms: impl IntoIterator<Item = &'t Term>) -> Result<()> {
        let mut names = BTreeSet::new();
        terms.into_iter().for_each(|term| note_attributes(term, &mut names));
        names.iter().try_for_each(|name| self.check_attribute(name))
    }

    pub(super) fn add_rule(&mut self, number: u32, text: &str, start: Start<'_>) -> Result<Rule> {
        let ExpressionText { expression, windows } = ExpressionText::read(text)?;
        self.check(&expression)?;
        for window in &windows {
            window.filter.iter().try_for_each(|filter| self.check(filter))?;
            self.check_terms(window.argument.iter().chain(&window.partition))?;
        }
        let mut rule = Rule { aggregates: vec![], guard: None };
        for (at, window) in windows.iter().enumerate() {
            let (epoch, backfill) = match start {
                Start::Empty => (self.progress.evaluated, false),
                Start::Backfilled => (self.progress.evaluated, true),
                Start::Stored(epochs) => (epochs.get(at).copied().unwrap_or(0), false),
            };
            let selection = window.filter.as_ref().map(|filter| self.selections.acquire(filter)).transpose();
            let selection = match selection {
                Ok(selection) => selection,
                Err(error) => {
                    self.release_aggregates(&rule)?;
                    return Err(error);
                }
            };
            let (id, is_new) = self.windows.acquire(window, selection, epoch, backfill);
            if let (false, Some(selection)) = (is_new, selection) {
                self.selections.release(selection)?;
            }
            rule.aggregates.push(id);
        }
        let aggregates: Vec<_> = rule.aggregates.iter().map(|id| (*id, self.windows.counts(*id))).collect();
        let added = over_aggregates(&expression, &aggregates).map_err(Error::from).and_then(|expression| {
            self.rules.add(number, expression.clone())?;
            Ok(self.guards.add(&expression))
        });
        match added {
            Ok(guard) => rule.guard = guard,
            Err(error) => {
                self.release_aggregates(&rule)?;
                return Err(error);
            }
        }
        Ok(rule)
    }

    /// Refuses what the schema of the stream does not know.
    pub(super) fn check(&self, expression: &Expr) -> Result<()> {
        self.progress.options.schema.as_ref().map_or(Ok(()), |schema| self.check_with(schema, expression))
    }

    pub(super) fn check_with(&self, schema: &Schema, expression: &Expr) -> Result<()> {
        let mut outcome = Ok(());
        expression.for_each_predicate(&mut |predicate| {
            let mut is_windowed = false;
            predicate.term.for_each_attribute(&mut |name| is_windowed |= name.starts_with(WINDOW_PREFIX));
            if outcome.is_ok() {
                // No schema knows the kind of a windowed term: what stands beside one is checked by its names.
                outcome = if is_windowed {
                    self.check_terms([&predicate.term])
                } else {
                    schema.check_predicate(predicate).map_err(Error::from)
                };
            }
        });
        outcome
    }

    pub(super) fn remove_rule(&mut self, number: u32, rule: &Rule) -> Result<()> {
        self.rules.remove(number)?;
        self.guards.remove(rule.guard);
        self.release_aggregates(rule)
    }

    pub(super) fn release_aggregates(&mut self, rule: &Rule) -> Result<()> {
        for id in &rule.aggregates {
            if let Some(selection) = self.windows.release(*id) {
                self.selections.release(selection)?;
            }
        }
        Ok(())
    }

    /// The value of an aggregate among those that have rows.
    pub(super) fn value_of(&self, id: AggregateId, values: &[Fed]) -> Option<Value> {
        match values.iter().find(|(known, _)| *known == id) {
            Some((_, value)) => Some(value.clone()),
            None => self.windows.counts(id).then_some(Value::Int(0)),
        }
    }

    pub(super) fn row(&self, rule: &Rule, values: &[Fed]) -> Vec<(Arc<str>, Value)> {
        let cells = rule.aggregates.iter().map(|id| {
            let value = self.value_of(*id, values).unwrap_or(Value::Null);
            (self.windows.text(*id), value)
        });
        cells.collect()
    }
}
