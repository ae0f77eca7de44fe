//! A flow: streams, continuous queries over them, and the order in which events are evaluated.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::sync::Arc;

use rustc_hash::FxHashMap;
use serde_json::{Value as Json, json};
use tamis_core::event::{Record, Schema, Value};
use tamis_core::expr::Expr;
use tamis_core::suggest::suggest;
use tamis_core::term::Term;
use tamis_core::{Error, Result};

use crate::join::{JoinOutput, JoinPlan, Row};
use crate::journal::Journal;
use crate::key::record_bytes;
use crate::rule::{attributes, over_aggregates};
use crate::selection::{Matcher, Selections};
use crate::sequence::{SequenceId, SequencePlan, Told};
use crate::stream::{Progress, StreamOptions};
use crate::text::{ExpressionText, SelectText, SequenceText};
use crate::window::{AggregateId, Fed, WindowPlan};

/// Whether an answer came or went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Added,
    Retracted,
}

/// Something that a continuous query tells.
#[derive(Clone, Debug)]
pub struct Output {
    pub query: Arc<str>,
    pub kind: Kind,
    /// UTC microseconds.
    pub time: i64,
    /// Names and values: for a rule its windowed terms, for a join its projection.
    pub row: Vec<(Arc<str>, Value)>,
    /// The events that made it true.
    pub events: Vec<Arc<Record>>,
}

/// What happens when the state would grow beyond the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnLimit {
    /// Events are refused until windows have become smaller.
    Refuse,
    /// The keys that were idle for longest are forgotten.
    Shed,
}

/// How many bytes the state of a flow may have.
#[derive(Clone, Copy, Debug)]
pub struct Limit {
    pub bytes: usize,
    pub then: OnLimit,
}

/// Continuous queries over named streams.
///
/// ```
/// use tamis_core::event::{Record, Value};
/// use tamis_flow::{Flow, StreamOptions};
///
/// let mut flow = Flow::new(None);
/// flow.stream("logins", StreamOptions { time: Some("ts".into()), ..StreamOptions::default() }).unwrap();
/// flow.add("burst", "count(* WHERE NOT ok BY user LAST 10m) >= 2", Some("logins"), false).unwrap();
/// let login = |ts| Record::new([("ts", Value::Int(ts)), ("ok", Value::Bool(false))], []).unwrap();
/// assert!(flow.push("logins", login(0), None).unwrap().is_empty());
/// assert_eq!(&*flow.push("logins", login(600), None).unwrap()[0].query, "burst");
/// assert!(flow.push("logins", login(1201), None).unwrap().is_empty());
/// ```
#[derive(Default)]
pub struct Flow {
    pub(crate) streams: Vec<Stream>,
    pub(crate) queries: BTreeMap<u32, Query>,
    pub(crate) query_numbers: FxHashMap<Arc<str>, u32>,
    pub(crate) next_query: u32,
    /// Events that wait for the clock: (time, arrival), and which.
    pub(crate) waiting: BinaryHeap<Reverse<Waiting>>,
    pub(crate) waiting_bytes: usize,
    pub(crate) arrivals: u64,
    pub(crate) limit: Option<Limit>,
    pub(crate) refused: u64,
    pub(crate) joins: JoinPlan,
    /// How many events were evaluated, of all streams.
    pub(crate) evaluations: u64,
    /// What came since the last checkpoint, if there was one.
    pub(crate) journal: Option<Journal>,
}

pub(crate) struct Stream {
    pub progress: Progress,
    pub selections: Selections,
    pub windows: WindowPlan,
    pub sequences: SequencePlan,
    pub sequence_users: FxHashMap<SequenceId, BTreeSet<u32>>,
    rules: Matcher,
    /// How many queries read it.
    pub readers: usize,
}

pub(crate) struct Query {
    pub name: Arc<str>,
    pub text: String,
    pub stream: usize,
    pub plan: Plan,
}

pub(crate) enum Plan {
    Rule(Rule),
    Sequence(SequenceId),
    /// Of these streams.
    Join(Vec<usize>),
}

pub(crate) struct Rule {
    pub aggregates: Vec<AggregateId>,
}

/// Which moments the parts of a query began at: now, or those of a query that was stored.
#[derive(Clone, Copy)]
pub(crate) enum Start<'e> {
    Empty,
    Backfilled,
    Stored(&'e [u64]),
}

pub(crate) struct Waiting {
    pub time: i64,
    pub arrival: u64,
    pub stream: usize,
    pub record: Arc<Record>,
}

impl PartialEq for Waiting {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Waiting {}

impl PartialOrd for Waiting {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Waiting {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.time, self.arrival).cmp(&(other.time, other.arrival))
    }
}

impl Flow {
    pub fn new(limit: Option<Limit>) -> Self {
        Self { limit, ..Self::default() }
    }

    // --- streams and queries -----------------------------------------------------------------------

    /// Declares a stream.
    pub fn stream(&mut self, name: &str, options: StreamOptions) -> Result<()> {
        if self.streams.iter().any(|stream| &*stream.progress.name == name) {
            return Err(Error::DuplicateId(format!("stream {name:?} is already declared")));
        }
        self.streams.push(Stream {
            progress: Progress::new(name, options)?,
            selections: Selections::default(),
            windows: WindowPlan::default(),
            sequences: SequencePlan::default(),
            sequence_users: FxHashMap::default(),
            rules: Matcher::default(),
            readers: 0,
        });
        self.note(|journal, flow| journal.stream(&flow.streams[flow.streams.len() - 1].progress));
        Ok(())
    }

    fn stream_number(&self, name: &str) -> Result<usize> {
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
    fn add_join(&mut self, number: u32, text: &str, start: Start<'_>) -> Result<Vec<usize>> {
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

    fn query_number(&self, name: &str) -> Result<u32> {
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

    // --- events ------------------------------------------------------------------------------------

    /// Takes in an event and tells what became of it, and of events that waited for it. `arrival` is its time in a
    /// stream that has none of its own.
    pub fn push(&mut self, stream: &str, record: Record, arrival: Option<i64>) -> Result<Vec<Output>> {
        let stream = self.stream_number(stream)?;
        let mut told = vec![];
        self.accept(stream, record, arrival, &mut told)?;
        Ok(told)
    }

    /// Takes in many events, one after the other. What was told before an event that is refused comes with the error.
    pub fn push_many(
        &mut self,
        stream: &str,
        records: impl IntoIterator<Item = Record>,
        arrival: Option<i64>,
    ) -> (Vec<Output>, Result<()>) {
        let mut told = vec![];
        let outcome = self.stream_number(stream).and_then(|stream| {
            records.into_iter().enumerate().try_for_each(|(row, record)| {
                self.accept(stream, record, arrival, &mut told)
                    .map_err(|error| error.within(&format!("row {row}")))
            })
        });
        (told, outcome)
    }

    fn accept(
        &mut self,
        number: usize,
        mut record: Record,
        arrival: Option<i64>,
        told: &mut Vec<Output>,
    ) -> Result<()> {
        if record.has_sets() {
            return Err(Error::Event(
                "an event of a flow holds values, not intervals or sets of values".into(),
            ));
        }
        let latest = self.latest();
        let progress = &mut self.streams[number].progress;
        if let Some(schema) = &progress.options.schema {
            schema.coerce(&mut record);
        }
        let time = match (&progress.options.time, arrival) {
            // Arrivals are in order, whatever a clock says.
            (None, Some(arrival)) => {
                progress.time_of(&record, Some(arrival.max(progress.latest.unwrap_or(i64::MIN))))?
            }
            _ => progress.time_of(&record, arrival)?,
        };
        let record = Arc::new(record);
        let before = progress.latest;
        if progress.watermark(latest).is_some_and(|watermark| time < watermark) {
            progress.keep_late(record.clone());
        } else {
            progress.latest = before.max(Some(time));
            if let Err(error) = self.make_room() {
                self.streams[number].progress.latest = before;
                return Err(error);
            }
            let arrival = self.arrivals;
            self.arrivals += 1;
            self.waiting_bytes += record_bytes(&record);
            self.waiting.push(Reverse(Waiting { time, arrival, stream: number, record: record.clone() }));
        }
        self.note(|journal, flow| journal.push(&flow.streams[number].progress, &record, time));
        self.evaluate_waiting(told)
    }

    fn latest(&self) -> Option<i64> {
        self.streams.iter().filter_map(|stream| stream.progress.latest).max()
    }

    /// Everything up to this time has come: the least watermark of the streams that some query reads.
    pub fn clock(&self) -> Option<i64> {
        let latest = self.latest();
        let read = self.streams.iter().filter(|stream| stream.readers > 0);
        let watermarks = read.map(|stream| stream.progress.watermark(latest));
        match watermarks.min() {
            Some(least) => least,
            // Nobody reads anything, so nobody waits.
            None => self.streams.iter().map(|stream| stream.progress.watermark(latest)).max().flatten(),
        }
    }

    fn evaluate_waiting(&mut self, told: &mut Vec<Output>) -> Result<()> {
        let Some(clock) = self.clock() else { return Ok(()) };
        while self.waiting.peek().is_some_and(|Reverse(first)| first.time <= clock) {
            let Some(Reverse(Waiting { time, stream, record, .. })) = self.waiting.pop() else { break };
            self.waiting_bytes -= record_bytes(&record);
            self.expire(time, told)?;
            self.evaluate(stream, time, &record, told)?;
        }
        self.expire(clock, told)
    }

    /// Lets sequences end, and rows of joins leave, whose time is over before this moment.
    fn expire(&mut self, now: i64, told: &mut Vec<Output>) -> Result<()> {
        let Self { streams, queries, joins, .. } = self;
        let mut ended = vec![];
        for stream in streams {
            for found in stream.sequences.expire(now) {
                let users = &stream.sequence_users[&found.sequence];
                ended.extend(
                    users
                        .iter()
                        .map(|number| ((found.order, *number), sequence_output(&queries[number], &found))),
                );
            }
        }
        ended.sort_by_key(|(order, _)| *order);
        told.extend(ended.into_iter().map(|(_, output)| output));
        told.extend(joins.expire(now)?.into_iter().map(|found| join_output(&queries[&found.query], found)));
        Ok(())
    }

    /// One event, in its turn.
    fn evaluate(
        &mut self,
        stream: usize,
        time: i64,
        record: &Arc<Record>,
        told: &mut Vec<Output>,
    ) -> Result<()> {
        let Self { streams, queries, joins, .. } = self;
        let number = stream;
        let stream = &mut streams[number];
        stream.progress.evaluated += 1;
        self.evaluations += 1;
        if stream.readers == 0 {
            return Ok(());
        }
        let (mut selected, mut values, mut fired) = (vec![], vec![], vec![]);
        stream.selections.matches(record, time, &mut selected)?;
        stream.windows.feed(record, time, &selected, &mut values);
        stream.rules.matches(record, time, &values, &mut fired)?;
        let mut outputs: Vec<(u32, Output)> = vec![];
        for number in fired {
            let query = &queries[&number];
            let Plan::Rule(rule) = &query.plan else { continue };
            let output = Output {
                query: query.name.clone(),
                kind: Kind::Added,
                time,
                row: stream.row(rule, &values),
                events: vec![record.clone()],
            };
            outputs.push((number, output));
        }
        if stream.sequences.len() > 0 {
            for found in stream.sequences.feed(stream.progress.evaluated, time, record, &selected) {
                let users = &stream.sequence_users[&found.sequence];
                outputs
                    .extend(users.iter().map(|number| (*number, sequence_output(&queries[number], &found))));
            }
            outputs.sort_by_key(|(number, _)| *number);
        }
        told.extend(outputs.into_iter().map(|(_, output)| output));
        let row = Row { number: self.evaluations, time, record: record.clone() };
        let joined = joins.feed(number, &row)?;
        told.extend(joined.into_iter().map(|found| join_output(&queries[&found.query], found)));
        Ok(())
    }

    /// Says that no event before this time will come on any stream.
    pub fn advance(&mut self, to: i64) -> Result<Vec<Output>> {
        for stream in &mut self.streams {
            stream.progress.floor = stream.progress.floor.max(Some(to));
        }
        let mut told = vec![];
        self.note(|journal, _| journal.advance(to));
        self.evaluate_waiting(&mut told)?;
        Ok(told)
    }

    /// Notes a change for the next checkpoint.
    fn note(&mut self, write: impl FnOnce(&mut Journal, &Self)) {
        if let Some(mut journal) = self.journal.take() {
            write(&mut journal, self);
            self.journal = Some(journal);
        }
    }

    /// The late events of a stream since the last call. A stream keeps ten thousand of them.
    pub fn late(&mut self, stream: &str) -> Result<Vec<Arc<Record>>> {
        let stream = self.stream_number(stream)?;
        Ok(std::mem::take(&mut self.streams[stream].progress.late))
    }

    // --- bounds ------------------------------------------------------------------------------------

    /// The bytes of all state.
    pub fn bytes(&self) -> usize {
        let streams = self.streams.iter();
        self.waiting_bytes
            + self.joins.bytes()
            + streams.map(|stream| stream.windows.bytes() + stream.sequences.bytes()).sum::<usize>()
    }

    fn make_room(&mut self) -> Result<()> {
        let Some(limit) = self.limit else { return Ok(()) };
        if self.bytes() <= limit.bytes {
            return Ok(());
        }
        // Events that wait still see the windows of their time.
        let waiting = self.waiting.peek().map(|Reverse(first)| first.time);
        if let Some(now) = self.clock().map(|clock| waiting.map_or(clock, |time| clock.min(time))) {
            self.streams.iter_mut().for_each(|stream| stream.windows.expire_all(now));
        }
        let bytes = self.bytes();
        if bytes <= limit.bytes {
            return Ok(());
        }
        match limit.then {
            OnLimit::Refuse => {
                self.refused += 1;
                Err(Error::Argument(format!(
                    "the state of the flow has {bytes} bytes, more than the limit of {}; the event is refused\n\
                     hint: shorten windows, raise limit=, or let the flow forget idle keys with on_limit=\"shed\"",
                    limit.bytes
                )))
            }
            OnLimit::Shed => {
                // A tenth more than needed, so that shedding is rare; each part keeps its share.
                let fixed = (self.waiting_bytes + self.joins.bytes()) as f64;
                let share = (limit.bytes as f64 * 0.9 - fixed).max(0.0) / (bytes as f64 - fixed).max(1.0);
                for stream in &mut self.streams {
                    let kept = |bytes: usize| (bytes as f64 * share) as usize;
                    stream.windows.shed(kept(stream.windows.bytes()));
                    stream.sequences.shed(kept(stream.sequences.bytes()));
                }
                Ok(())
            }
        }
    }

    // --- looking inside ----------------------------------------------------------------------------

    /// What a query looks at and, for the keys of a record, the values it has now.
    pub fn explain(&mut self, name: &str, key: Option<&Record>) -> Result<Json> {
        let number = self.query_number(name)?;
        let query = &self.queries[&number];
        let clock = self.clock().unwrap_or(0);
        let stream = &mut self.streams[query.stream];
        let mut explained = json!({
            "query": &*query.name,
            "text": query.text,
            "stream": &*stream.progress.name,
        });
        match &query.plan {
            Plan::Rule(rule) => {
                let values = key.map(|key| stream.windows.look(key, clock));
                let windows = rule.aggregates.iter().map(|id| {
                    let node = stream.windows.describe(*id);
                    let mut shown = json!({
                        "term": &*node.text,
                        "queries": node.uses,
                        "keys": node.keys,
                        "rows": node.rows,
                        "bytes": node.bytes,
                    });
                    if let Some(values) = &values {
                        let value = stream.value_of(*id, values);
                        shown["value"] = value.as_ref().map_or(Json::Null, json_of);
                    }
                    shown
                });
                explained["windows"] = windows.collect();
            }
            Plan::Sequence(id) => {
                let (text, queries, keys, partial_matches, bytes) = stream.sequences.describe(*id);
                explained["sequence"] = json!({
                    "sequence": text,
                    "queries": queries,
                    "keys": keys,
                    "partial_matches": partial_matches,
                    "bytes": bytes,
                });
                if let Some(key) = key {
                    explained["sequence"]["partial_matches_at_key"] = json!(stream.sequences.look(*id, key));
                }
            }
            Plan::Join(_) => explained["join"] = self.join_json(number),
        }
        Ok(explained)
    }

    /// What a join looks at.
    fn join_json(&self, number: u32) -> Json {
        let join = self.joins.describe(number);
        let name = |stream: usize| &*self.streams[stream].progress.name;
        let windows = join.windows.iter().map(|window| {
            json!({
                "stream": name(window.stream),
                "frame": window.frame.to_string(),
                "rows": window.rows,
                "bytes": window.bytes,
                "joins": window.uses,
            })
        });
        let steps = |order: &Vec<(usize, f64)>| {
            order
                .iter()
                .map(|(source, rows)| json!({ "window": source, "rows_expected": rows }))
                .collect::<Json>()
        };
        json!({
            "join": join.join,
            "windows": windows.collect::<Json>(),
            "equalities": join.equalities,
            "orders": join.orders.iter().map(steps).collect::<Json>(),
            "queries": join.queries,
        })
    }

    /// The shared plan: nodes with how many queries use each, and what feeds what.
    pub fn plan(&self) -> Json {
        let mut nodes = vec![];
        let mut edges = vec![];
        for (number, stream) in self.streams.iter().enumerate() {
            let [source, index, rules] =
                ["stream", "selections", "rules"].map(|kind| format!("{kind} {number}"));
            let readers = stream.readers;
            nodes.push(json!({ "id": source, "kind": "stream", "label": &*stream.progress.name, "queries": readers }));
            let selections = stream.selections.len();
            if selections > 0 {
                let label =
                    format!("index of {selections} selection{}", if selections == 1 { "" } else { "s" });
                nodes.push(json!({ "id": index, "kind": "index", "label": label, "queries": readers }));
                edges.push(json!([source, index]));
            }
            let mut rule_count = 0;
            for query in self.queries.values().filter(|query| query.stream == number) {
                rule_count += usize::from(matches!(query.plan, Plan::Rule(_)));
            }
            for id in stream.windows.ids() {
                let node = stream.windows.describe(id);
                let name = format!("window {number} {id}");
                edges.push(json!([if stream.windows.has_filter(id) { &index } else { &source }, name]));
                edges.push(json!([name, rules]));
                nodes.push(json!({
                    "id": name, "kind": "window", "label": &*node.text, "queries": node.uses,
                    "keys": node.keys, "rows": node.rows, "bytes": node.bytes,
                }));
            }
            for id in stream.sequence_users.keys().copied().collect::<BTreeSet<_>>() {
                let (text, queries, keys, rows, bytes) = stream.sequences.describe(id);
                let name = format!("sequence {number} {id}");
                edges.push(json!([if selections > 0 { &index } else { &source }, name]));
                nodes.push(json!({
                    "id": name, "kind": "sequence", "label": text, "queries": queries,
                    "keys": keys, "rows": rows, "bytes": bytes,
                }));
            }
            if rule_count > 0 {
                let label = format!("index of {rule_count} rule{}", if rule_count == 1 { "" } else { "s" });
                edges.push(json!([source, rules]));
                nodes.push(json!({ "id": rules, "kind": "index", "label": label, "queries": rule_count }));
            }
        }
        let (windows, joins) = self.joins.nodes();
        for (id, window) in windows {
            let name = format!("rows {id}");
            edges.push(json!([format!("stream {}", window.stream), name]));
            nodes.push(json!({
                "id": name, "kind": "window", "label": window.frame.to_string(), "queries": window.uses,
                "rows": window.rows, "bytes": window.bytes,
            }));
        }
        for (id, sources, equalities, queries) in joins {
            let name = format!("join {id}");
            edges.extend(sources.iter().map(|window| json!([format!("rows {window}"), name])));
            let label = if equalities.is_empty() { "all combinations".into() } else { equalities.join(", ") };
            nodes.push(json!({ "id": name, "kind": "join", "label": label, "queries": queries }));
        }
        json!({ "nodes": nodes, "edges": edges })
    }

    /// How many of everything there are, and how many bytes, by node and by query.
    pub fn statistics(&mut self) -> Json {
        let mut by_query: BTreeMap<String, usize> = BTreeMap::new();
        let mut streams = serde_json::Map::new();
        for (number, stream) in self.streams.iter_mut().enumerate() {
            stream.windows.sweep_dead();
            let mut nodes = vec![];
            let mut share = FxHashMap::default();
            for id in stream.windows.ids() {
                let node = stream.windows.describe(id);
                share.insert(id, node.bytes / node.uses.max(1));
                nodes.push(json!({
                    "node": &*node.text, "queries": node.uses, "keys": node.keys, "rows": node.rows, "bytes": node.bytes,
                }));
            }
            let mut sequence_share = FxHashMap::default();
            for id in stream.sequence_users.keys().copied().collect::<BTreeSet<_>>() {
                let (text, uses, keys, rows, bytes) = stream.sequences.describe(id);
                sequence_share.insert(id, bytes / uses.max(1));
                nodes.push(
                    json!({ "node": text, "queries": uses, "keys": keys, "rows": rows, "bytes": bytes }),
                );
            }
            for (id, query) in self.queries.iter().filter(|(_, query)| query.stream == number) {
                let bytes = match &query.plan {
                    Plan::Join(_) => {
                        let join = self.joins.describe(*id);
                        let windows = join
                            .windows
                            .iter()
                            .map(|window| window.bytes / window.uses.max(1) / join.queries);
                        join.bytes + windows.sum::<usize>()
                    }
                    Plan::Rule(rule) => rule.aggregates.iter().map(|id| share[id]).sum(),
                    Plan::Sequence(id) => sequence_share[id],
                };
                by_query.insert(query.name.to_string(), bytes);
            }
            let progress = &stream.progress;
            streams.insert(
                progress.name.to_string(),
                json!({
                    "evaluated": progress.evaluated,
                    "late": progress.late_count,
                    "latest": progress.latest,
                    "selections": stream.selections.len(),
                    "keys": stream.windows.keys(),
                    "shed_keys": stream.windows.shed_keys + stream.sequences.shed_keys,
                    "bytes": stream.windows.bytes() + stream.sequences.bytes(),
                    "nodes": nodes,
                }),
            );
        }
        json!({
            "queries": self.queries.len(),
            "waiting": self.waiting.len(),
            "clock": self.clock(),
            "refused": self.refused,
            "bytes": self.bytes(),
            "bytes_by_query": by_query,
            "streams": streams,
        })
    }
}

fn join_output(query: &Query, found: JoinOutput) -> Output {
    let JoinOutput { kind, time, row, events, .. } = found;
    Output { query: query.name.clone(), kind, time, row, events }
}

fn starts_empty(what: &str) -> Error {
    Error::Argument(format!(
        "{what} starts empty: older queries do not hold what it would need\nhint: leave backfill out"
    ))
}

fn sequence_output(query: &Query, found: &Told) -> Output {
    Output {
        query: query.name.clone(),
        kind: Kind::Added,
        time: found.time,
        row: found.counts.iter().map(|(name, count)| (name.clone(), Value::Int(*count))).collect(),
        events: found.events.clone(),
    }
}

fn json_of(value: &Value) -> Json {
    match value {
        Value::Bool(truth) => json!(truth),
        Value::Int(number) => json!(number),
        Value::Float(number) => json!(number),
        Value::Str(text) => json!(text),
        Value::Timestamp(micros) => json!(tamis_core::event::timestamp::format_timestamp_iso(*micros)),
        Value::Array(items) => items.iter().map(json_of).collect(),
        Value::Decimal(number) => json!(number.plain()),
        _ => Json::Null,
    }
}

impl Stream {
    fn add_sequence(&mut self, number: u32, text: &str, start: Start<'_>) -> Result<SequenceId> {
        let written = SequenceText::read(text)?;
        let epoch = match start {
            Start::Stored(epochs) => epochs.first().copied().unwrap_or(0),
            Start::Empty => self.progress.evaluated,
            Start::Backfilled => return Err(starts_empty("a sequence")),
        };
        self.check_steps(&written)?;
        let id = self.sequences.acquire(&written, &mut self.selections, epoch)?;
        self.sequence_users.entry(id).or_default().insert(number);
        Ok(id)
    }

    fn remove_sequence(&mut self, number: u32, id: SequenceId) -> Result<()> {
        if let Some(users) = self.sequence_users.get_mut(&id) {
            users.remove(&number);
            if users.is_empty() {
                self.sequence_users.remove(&id);
            }
        }
        self.sequences.release(id, &mut self.selections)
    }

    /// Refuses attributes that the schema of the stream does not know; `a.x` is the attribute `x` of a step.
    fn check_steps(&self, written: &SequenceText) -> Result<()> {
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
    fn check_attribute(&self, name: &str) -> Result<()> {
        self.check(&tamis_core::expr::parse(&format!("{} IS NULL", Term::attribute(name)))?)
    }

    fn add_rule(&mut self, number: u32, text: &str, start: Start<'_>) -> Result<Rule> {
        let ExpressionText { expression, windows } = ExpressionText::read(text)?;
        self.check(&expression)?;
        for window in &windows {
            window.filter.iter().try_for_each(|filter| self.check(filter))?;
        }
        let mut rule = Rule { aggregates: vec![] };
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
        let added = over_aggregates(&expression, &aggregates)
            .map_err(Error::from)
            .and_then(|expression| self.rules.add(number, expression));
        if let Err(error) = added {
            self.release_aggregates(&rule)?;
            return Err(error);
        }
        Ok(rule)
    }

    /// Refuses what the schema of the stream does not know.
    fn check(&self, expression: &Expr) -> Result<()> {
        self.progress.options.schema.as_ref().map_or(Ok(()), |schema| self.check_with(schema, expression))
    }

    fn check_with(&self, schema: &Schema, expression: &Expr) -> Result<()> {
        let mut outcome = Ok(());
        expression.for_each_predicate(&mut |predicate| {
            let mut names = BTreeSet::new();
            attributes(&Expr::Predicate(predicate.clone()), &mut names);
            let mut all = 0;
            predicate.term.for_each_attribute(&mut |_| all += 1);
            // A predicate that looks at a windowed term is about no attribute of the schema.
            if outcome.is_ok() && all > 0 && names.len() == all {
                outcome = schema.check_predicate(predicate);
            }
        });
        Ok(outcome?)
    }

    fn remove_rule(&mut self, number: u32, rule: &Rule) -> Result<()> {
        self.rules.remove(number)?;
        self.release_aggregates(rule)
    }

    fn release_aggregates(&mut self, rule: &Rule) -> Result<()> {
        for id in &rule.aggregates {
            if let Some(selection) = self.windows.release(*id) {
                self.selections.release(selection)?;
            }
        }
        Ok(())
    }

    /// The value of an aggregate among those that have rows.
    fn value_of(&self, id: AggregateId, values: &[Fed]) -> Option<Value> {
        match values.iter().find(|(known, _)| *known == id) {
            Some((_, value)) => Some(value.clone()),
            None => self.windows.counts(id).then_some(Value::Int(0)),
        }
    }

    fn row(&self, rule: &Rule, values: &[Fed]) -> Vec<(Arc<str>, Value)> {
        let cells = rule.aggregates.iter().map(|id| {
            let value = self.value_of(*id, values).unwrap_or(Value::Null);
            (self.windows.text(*id), value)
        });
        cells.collect()
    }
}
