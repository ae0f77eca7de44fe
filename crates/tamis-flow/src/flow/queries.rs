//! Adds and removes streams and continuous queries, between any two events.

use std::collections::BTreeSet;
use std::sync::Arc;

use tamis_core::{Error, Result, suggest};

use super::{Flow, Plan, Query, Start, StreamPlan};
use crate::join::JoinPlan;
use crate::stream::StreamOptions;
use crate::text::{SelectText, SequenceText};

impl Flow {
    /// Declares a stream.
    pub fn stream(&mut self, name: &str, options: StreamOptions) -> Result<()> {
        if self.streams.iter().any(|stream| &*stream.progress.name == name) {
            return Err(Error::DuplicateId(format!("stream {name:?} is already declared")));
        }
        self.streams.push(StreamPlan::new(name, options)?);
        self.note(|journal, flow| journal.stream(&flow.streams[flow.streams.len() - 1].progress));
        Ok(())
    }

    pub(super) fn stream_number(&self, name: &str) -> Result<usize> {
        let names = || self.streams.iter().map(|stream| &*stream.progress.name);
        names().position(|known| known == name).ok_or_else(|| {
            let hint = match (suggest(name, names()), self.streams.is_empty()) {
                (_, true) => "declare it first: flow.stream(…)".into(),
                (Some(known), _) => format!("did you mean {known:?}?"),
                (None, _) => format!("there is {}", names().collect::<Vec<_>>().join(", ")),
            };
            Error::UnknownId(format!("there is no stream {name:?} in the flow\nhint: {hint}"))
        })
    }

    /// Adds a continuous query. It starts empty, or with `backfill` from the rows that older queries hold. A rule
    /// needs no `on` if there is one stream.
    pub fn add(&mut self, name: &str, text: &str, on: Option<&str>, backfill: bool) -> Result<()> {
        if self.query_numbers.contains_key(name) {
            return Err(Error::DuplicateId(format!(
                "query {name:?} is already in the flow; remove it first to change it"
            )));
        }
        let stream = match (on, &*self.streams) {
            (None, _) if SelectText::is_one(text) => 0,
            (Some(on), _) => self.stream_number(on)?,
            (None, [_]) => 0,
            (None, _) => {
                return Err(Error::Argument(format!(
                    "query {name:?} does not say which stream it reads\nhint: name it, as in on=\"logins\""
                )));
            }
        };
        let number = self.next_query;
        self.insert(number, name, text, stream, if backfill { Start::Backfilled } else { Start::Empty })?;
        self.next_query += 1;
        self.note(|journal, flow| journal.add(name, text, &flow.streams[stream].progress.name, backfill));
        Ok(())
    }

    /// Puts a query in its place.
    pub(crate) fn insert(
        &mut self,
        number: u32,
        name: &str,
        text: &str,
        stream: usize,
        start: Start<'_>,
    ) -> Result<()> {
        let plan = if SelectText::is_one(text) {
            Plan::Join(self.add_join(number, text, start)?)
        } else if SequenceText::is_one(text) {
            Plan::Sequence(self.streams[stream].add_sequence(number, text, start)?)
        } else {
            Plan::Rule(self.streams[stream].add_rule(number, text, start)?)
        };
        match &plan {
            Plan::Join(streams) => streams.iter().for_each(|stream| self.streams[*stream].readers += 1),
            _ => self.streams[stream].readers += 1,
        }
        let name: Arc<str> = name.into();
        self.query_numbers.insert(name.clone(), number);
        self.queries.insert(number, Query { name, text: text.into(), stream, plan });
        Ok(())
    }

    /// Adds a join; returns the streams of its windows.
    pub(super) fn add_join(&mut self, number: u32, text: &str, start: Start<'_>) -> Result<Vec<usize>> {
        let written = SelectText::read(text)?;
        let birth = match start {
            Start::Stored(epochs) => epochs.first().copied().unwrap_or(0),
            Start::Empty => self.evaluations,
            Start::Backfilled => return Err(starts_empty("a join")),
        };
        let streams = written.sources.iter().map(|source| self.stream_number(&source.stream));
        let streams = streams.collect::<Result<Vec<_>>>()?;
        for (names, stream) in JoinPlan::attributes(&written)?.iter().zip(&streams) {
            names.iter().try_for_each(|name| self.streams[*stream].check_attribute(name))?;
        }
        self.joins.add(number, &written, &streams, birth)?;
        Ok(streams.into_iter().collect::<BTreeSet<_>>().into_iter().collect())
    }

    /// Removes a continuous query, and what no other needs.
    pub fn remove(&mut self, name: &str) -> Result<()> {
        let number = self.query_number(name)?;
        let query = self.queries.remove(&number).expect("its number is known");
        self.query_numbers.remove(name);
        if let Plan::Join(streams) = &query.plan {
            streams.iter().for_each(|stream| self.streams[*stream].readers -= 1);
            self.joins.remove(number)?;
        } else {
            let stream = &mut self.streams[query.stream];
            stream.readers -= 1;
            match &query.plan {
                Plan::Rule(rule) => stream.remove_rule(number, rule)?,
                Plan::Sequence(id) => stream.remove_sequence(number, *id)?,
                Plan::Join(_) => {}
            }
        }
        self.note(|journal, _| journal.remove(name));
        Ok(())
    }

    pub(super) fn query_number(&self, name: &str) -> Result<u32> {
        self.query_numbers.get(name).copied().ok_or_else(|| {
            let known = self.query_numbers.keys().map(|name| &**name);
            let hint = suggest(name, known)
                .map_or(String::new(), |known| format!("\nhint: did you mean {known:?}?"));
            Error::UnknownId(format!("there is no query {name:?} in the flow{hint}"))
        })
    }

    pub fn contains(&self, name: &str) -> bool {
        self.query_numbers.contains_key(name)
    }

    pub fn len(&self) -> usize {
        self.queries.len()
    }

    pub fn is_empty(&self) -> bool {
        self.queries.is_empty()
    }

    /// The names of the queries, in the order in which they were added.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.queries.values().map(|query| &*query.name)
    }

    /// The text of a query and the stream it reads.
    pub fn query(&self, name: &str) -> Result<(&str, &str)> {
        let query = &self.queries[&self.query_number(name)?];
        Ok((&query.text, &self.streams[query.stream].progress.name))
    }
}

pub(super) fn starts_empty(what: &str) -> Error {
    Error::Argument(format!(
        "{what} starts empty: older queries do not hold what it would need\nhint: leave backfill out"
    ))
}
