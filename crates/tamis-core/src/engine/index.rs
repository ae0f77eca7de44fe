//! The index that users hold: one of the algorithms, a schema if there is one, and what was observed.

use super::algorithm::ALGORITHMS;
use super::classic::Classic;
use super::options;
use super::production::{Change, NewScores, Production};
use super::reader::Reader;
use super::segment::matcher::Work;
use super::statistics::Observed;
use crate::error::{Error, Result};
use crate::event::{Event, Schema, Value};
use crate::expr::limits::check_limits;
use crate::subscription::{Id, Subscription};

/// The name under which the production index is asked for.
pub const AUTO: &str = "auto";

pub struct Index {
    engine: Engine,
    algorithm: &'static str,
    /// The options of the algorithm that were set.
    options: Vec<(String, Value)>,
    schema: Option<Schema>,
    pub(super) observed: Observed,
}

pub(super) enum Engine {
    Production(Production),
    Classic(Classic),
}

impl Default for Index {
    fn default() -> Self {
        Self::with_engine(AUTO, Engine::Production(Production::default()), None)
    }
}

impl Index {
    /// An empty index. `algorithm` is `auto` or a name from [`algorithm_names`](Self::algorithm_names).
    pub fn new(algorithm: &str, schema: Option<Schema>) -> Result<Self> {
        Self::with_options(algorithm, schema, &[])
    }

    /// The same, with options of the algorithm: `("zero_suppression", Value::Bool(false))`.
    pub fn with_options(
        algorithm: &str,
        schema: Option<Schema>,
        options: &[(String, Value)],
    ) -> Result<Self> {
        if algorithm == AUTO {
            if let Some((name, _)) = options.first() {
                return Err(options::unknown(name, &[]));
            }
            return Ok(Self::with_engine(AUTO, Engine::Production(Production::default()), schema));
        }
        let found = ALGORITHMS.iter().find(|(name, _)| *name == algorithm);
        let (name, make) = found.ok_or_else(|| {
            let names: Vec<&str> = Self::algorithm_names().collect();
            Error::Argument(format!(
                "there is no algorithm {algorithm:?}; choose one of {}",
                names.join(", ")
            ))
        })?;
        let mut made = make();
        options.iter().try_for_each(|(option, value)| made.set_option(option, value))?;
        let index = Self::with_engine(name, Engine::Classic(Classic::new(made)), schema);
        Ok(Self { options: options.to_vec(), ..index })
    }

    pub(super) fn with_engine(algorithm: &'static str, engine: Engine, schema: Option<Schema>) -> Self {
        Self { engine, algorithm, options: vec![], schema, observed: Observed::default() }
    }

    pub fn algorithm_names() -> impl Iterator<Item = &'static str> {
        std::iter::once(AUTO).chain(ALGORITHMS.iter().map(|(name, _)| *name))
    }

    pub fn algorithm(&self) -> &'static str {
        self.algorithm
    }

    pub fn options(&self) -> &[(String, Value)] {
        &self.options
    }

    pub fn schema(&self) -> Option<&Schema> {
        self.schema.as_ref()
    }

    pub(super) fn engine(&self) -> &Engine {
        &self.engine
    }

    pub fn add(&self, subscription: Subscription) -> Result<()> {
        self.check(&subscription)?;
        self.apply(Change::Add(subscription))
    }

    /// Puts another subscription in the place of one with the same id.
    pub fn replace(&self, subscription: Subscription) -> Result<()> {
        self.check(&subscription)?;
        self.apply(Change::Replace(subscription))
    }

    /// Adds or replaces.
    pub fn upsert(&self, subscription: Subscription) -> Result<()> {
        self.check(&subscription)?;
        self.apply(Change::Upsert(subscription))
    }

    pub fn remove(&self, id: Id) -> Result<()> {
        self.apply(Change::Remove(id))
    }

    /// Changes the priority of a subscription; its expression stays where it is.
    pub fn set_priority(&self, id: Id, priority: f64) -> Result<()> {
        self.apply(Change::Rescore(id, NewScores { priority: Some(priority), weights: None }))
    }

    /// Changes the weights per attribute of a subscription; its expression stays where it is.
    pub fn set_weights(&self, id: Id, weights: Vec<(Box<str>, f64)>) -> Result<()> {
        self.apply(Change::Rescore(id, NewScores { priority: None, weights: Some(weights) }))
    }

    fn apply(&self, change: Change) -> Result<()> {
        match &self.engine {
            Engine::Production(production) => production.apply(change),
            Engine::Classic(classic) => classic.apply(change),
        }
    }

    /// Whether this index accepts the subscription: limits, weights, priority and schema.
    pub fn check(&self, subscription: &Subscription) -> Result<()> {
        subscription.check()?;
        check_limits(&subscription.expression)?;
        if let Some(schema) = &self.schema {
            let mut outcome = Ok(());
            subscription.expression.for_each_predicate(&mut |predicate| {
                if outcome.is_ok() {
                    outcome = schema.check_predicate(predicate);
                }
            });
            outcome?;
        }
        Ok(())
    }

    /// The current version, its stored bytes verified if they came from a file.
    pub fn reader(&self) -> Result<Reader> {
        let reader = self.unchecked_reader();
        reader.prepare()?;
        Ok(reader)
    }

    /// The current version, for questions that read no matching structure.
    pub fn unchecked_reader(&self) -> Reader {
        match &self.engine {
            Engine::Production(production) => Reader::View(production.view()),
            Engine::Classic(classic) => Reader::Classic(classic.reader()),
        }
    }

    pub fn len(&self) -> usize {
        self.unchecked_reader().len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Lays the index out anew for the events seen so far. Matching goes on meanwhile.
    pub fn optimize(&self) -> Result<()> {
        match &self.engine {
            Engine::Production(production) => production.optimize(),
            Engine::Classic(_) => Ok(()),
        }
    }

    /// As [`optimize`](Self::optimize), on a thread of its own.
    pub fn optimize_in_background(&self) {
        if let Engine::Production(production) = &self.engine {
            production.optimize_in_background();
        }
    }

    /// Whether the index lays itself out anew by itself when events turn out to be others than it was laid
    /// out for; it does unless told otherwise. Algorithms that do not learn ignore this.
    pub fn optimize_automatically(&self, enabled: bool) {
        if let Engine::Production(production) = &self.engine {
            production.optimize_automatically(enabled);
        }
    }

    /// Whether a background thread is rewriting segments.
    pub fn is_optimizing(&self) -> bool {
        matches!(&self.engine, Engine::Production(production) if production.is_merging())
    }

    /// Notes what an event cost, and keeps some events to learn from.
    pub fn observe(&self, event: &Event<'_>, matches: usize, work: Work, nanoseconds: u64) {
        self.observe_many(1, matches, work, nanoseconds, |_, keep| keep(event));
    }

    /// The same for many events together; `see` calls what it is given with the event of a number.
    pub fn observe_many(
        &self,
        events: usize,
        matches: usize,
        work: Work,
        nanoseconds: u64,
        see: impl Fn(usize, &mut dyn FnMut(&Event<'_>)),
    ) {
        if let Engine::Production(production) = &self.engine {
            production.observe(events, &work, see);
        }
        self.observed.note(events, matches, work, nanoseconds);
    }
}
