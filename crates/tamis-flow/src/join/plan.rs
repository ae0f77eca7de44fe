//! All joins of a flow: windows shared by joins, joins shared by queries, and the order in which a join
//! searches windows.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::sync::Arc;

use rustc_hash::FxHashMap;
use tamis_core::Result;
use tamis_core::event::{Record, Terms, Value};

use super::combine::{Fixed, Join};
use super::definition::{Definition, Equality, attributes_of};
use super::query::JoinQuery;
use super::window_rows::{Row, WindowRows};
use crate::flow::Kind;
use crate::key::ByValue;
use crate::selection::Matcher;
use crate::slots::Slots;
use crate::text::SelectText;
use crate::window::Frame;

pub(crate) type JoinQueryId = u32;

/// A join in the plan: its number, the windows it looks at, its equalities, and how many queries it has.
type JoinNode<'a> = (u32, &'a [u32], Vec<String>, usize);

/// Something that a join tells.
pub(crate) struct JoinOutput {
    pub query: JoinQueryId,
    pub kind: Kind,
    pub time: i64,
    pub row: Vec<(Arc<str>, Value)>,
    pub events: Vec<Arc<Record>>,
}

#[derive(Default)]
pub(crate) struct JoinPlan {
    pub(super) windows: Slots<WindowRows>,
    pub(super) window_of: FxHashMap<(usize, Frame), u32>,
    windows_of_stream: FxHashMap<usize, Vec<u32>>,
    joins: Slots<Join>,
    join_of_text: FxHashMap<String, u32>,
    join_of_query: FxHashMap<JoinQueryId, u32>,
    /// When the first row of a window leaves it: (time, row, window).
    ends: BinaryHeap<Reverse<(i64, u64, u32)>>,
    /// Of what DISTINCT has seen.
    distinct_bytes: usize,
    /// How many rows left a window early to stay below the limit.
    pub shed_rows: u64,
    /// How many values of ON terms were arrays or records, which equal nothing.
    pub unequal_keys: u64,
}

/// A combination of rows that a query asks for.
pub(super) struct Combination {
    query: JoinQueryId,
    join: u32,
    rows: Vec<Row>,
}

impl Combination {
    fn order(&self) -> (JoinQueryId, Vec<u64>) {
        (self.query, self.rows.iter().map(|row| row.number).collect())
    }
}

impl JoinPlan {
    /// Adds a query; `streams` are those of its sources, and rows up to number `birth` are not for it.
    pub fn add(
        &mut self,
        query: JoinQueryId,
        written: &SelectText,
        streams: &[usize],
        birth: u64,
    ) -> Result<()> {
        let definition = Definition::new(written)?;
        let identity = streams
            .iter()
            .zip(&written.sources)
            .map(|(stream, source)| format!("{stream} {:?}", source.frame));
        let equalities = definition.equalities.iter().map(Equality::to_string);
        let text = identity.chain(equalities).collect::<Vec<_>>().join(", ");
        let join = match self.join_of_text.get(&text) {
            Some(join) => *join,
            None => self.new_join(text, written, streams, &definition),
        };
        let held = &mut self.joins[join];
        if let Err(error) = held.residuals.add(query, definition.residual.clone()) {
            self.drop_if_unused(join);
            return Err(error);
        }
        let names = definition.columns.iter().map(|(name, _)| name.as_str().into()).collect();
        let distinct = written.distinct.then(ByValue::default);
        held.need(&definition);
        held.queries.insert(query, JoinQuery { birth, definition, names, distinct, bytes: 0 });
        self.join_of_query.insert(query, join);
        Ok(())
    }

    fn new_join(
        &mut self,
        text: String,
        written: &SelectText,
        streams: &[usize],
        definition: &Definition,
    ) -> u32 {
        let mut sources = vec![];
        for (stream, source) in streams.iter().zip(&written.sources) {
            let identity = (*stream, source.frame);
            let window = match self.window_of.get(&identity) {
                Some(window) => *window,
                None => {
                    let window = self.windows.insert(WindowRows::new(*stream, source.frame));
                    self.window_of.insert(identity, window);
                    self.windows_of_stream.entry(*stream).or_default().push(window);
                    window
                }
            };
            self.windows[window].uses += 1;
            sources.push(window);
        }
        for equality in &definition.equalities {
            self.windows[sources[equality.left]].acquire_index(&equality.left_term);
            self.windows[sources[equality.right]].acquire_index(&equality.right_term);
        }
        let join = self.joins.insert(Join {
            text: text.clone(),
            sources,
            equalities: definition.equalities.clone(),
            residuals: Matcher::default(),
            queries: BTreeMap::new(),
            needed: BTreeMap::new(),
        });
        for source in &self.joins[join].sources {
            self.windows[*source].joins.insert(join);
        }
        self.join_of_text.insert(text, join);
        join
    }

    pub fn remove(&mut self, query: JoinQueryId) -> Result<()> {
        let Some(join) = self.join_of_query.remove(&query) else { return Ok(()) };
        let held = &mut self.joins[join];
        if let Some(gone) = held.queries.remove(&query) {
            self.distinct_bytes -= gone.bytes;
            held.need_no_more(&gone.definition);
        }
        held.residuals.remove(query)?;
        self.drop_if_unused(join);
        Ok(())
    }

    fn drop_if_unused(&mut self, join: u32) {
        if !self.joins[join].queries.is_empty() {
            return;
        }
        let number = join;
        let join = self.joins.remove(join).expect("it is there");
        self.join_of_text.remove(&join.text);
        for equality in &join.equalities {
            self.windows[join.sources[equality.left]].release_index(&equality.left_term);
            self.windows[join.sources[equality.right]].release_index(&equality.right_term);
        }
        for id in join.sources {
            let window = &mut self.windows[id];
            window.joins.remove(&number);
            window.uses -= 1;
            if window.uses == 0 {
                self.window_of.remove(&(window.stream, window.frame));
                if let Some(windows) = self.windows_of_stream.get_mut(&window.stream) {
                    windows.retain(|window| *window != id);
                }
                self.windows.remove(id);
            }
        }
    }

    /// An event of a stream, in its turn: what it pushes out of windows is retracted, then it is joined.
    pub fn feed(&mut self, stream: usize, row: &Row) -> Result<Vec<JoinOutput>> {
        let Some(windows) = self.windows_of_stream.get(&stream).cloned() else { return Ok(vec![]) };
        let (mut gone, mut come) = (vec![], vec![]);
        for &id in &windows {
            if let Frame::Rows(most) = self.windows[id].frame
                && self.windows[id].rows.len() as i64 >= most
            {
                self.combinations(id, self.windows[id].rows[0].clone(), &mut gone)?;
                self.windows[id].remove_first();
            }
        }
        for &id in &windows {
            self.enter(id, row.clone(), &mut come)?;
        }
        let mut told = self.tell(gone, Kind::Retracted, row.time);
        told.extend(self.tell(come, Kind::Added, row.time));
        Ok(told)
    }

    pub(super) fn enter(&mut self, id: u32, row: Row, come: &mut Vec<Combination>) -> Result<()> {
        let window = &mut self.windows[id];
        self.unequal_keys += window.add(row.clone());
        if window.rows.len() == 1 {
            self.queue(id);
        }
        self.combinations(id, row, come)
    }

    fn queue(&mut self, id: u32) {
        if let Some((end, number)) = self.windows[id].first_end() {
            self.ends.push(Reverse((end, number, id)));
        }
    }

    /// Lets rows leave whose time is over before this moment.
    pub fn expire(&mut self, now: i64) -> Result<Vec<JoinOutput>> {
        let mut told = vec![];
        while let Some(Reverse((end, number, _))) = self.ends.peek().copied() {
            if end >= now {
                break;
            }
            // A row may leave several windows at once; what it takes part in goes together.
            let mut gone = vec![];
            while let Some(Reverse((other_end, other_number, id))) = self.ends.peek().copied()
                && (other_end, other_number) == (end, number)
            {
                self.ends.pop();
                let is_first = self.windows.get(id).and_then(WindowRows::first_end) == Some((end, number));
                if is_first {
                    self.combinations(id, self.windows[id].rows[0].clone(), &mut gone)?;
                    self.windows[id].remove_first();
                    self.queue(id);
                }
            }
            told.extend(self.tell(gone, Kind::Retracted, end));
        }
        Ok(told)
    }

    /// The combinations that a row of a window takes part in, for each query that asks for them.
    fn combinations(&mut self, window: u32, row: Row, found: &mut Vec<Combination>) -> Result<()> {
        let Self { windows, joins, .. } = self;
        for &id in &windows[window].joins {
            let join = &mut joins[id];
            let mut combined = vec![];
            for source in 0..join.sources.len() {
                if join.sources[source] == window {
                    let mut bound = vec![None; join.sources.len()];
                    bound[source] = Some(&row);
                    let fixed = Fixed { source, window, number: row.number };
                    join.combine(windows, &fixed, &mut bound, &mut combined);
                }
            }
            let mut asked = vec![];
            for rows in combined {
                let needed = &join.needed;
                let values = |terms: &Terms| {
                    let values = needed.iter().filter_map(|(qualified, needed)| {
                        let value = rows[needed.source].record.get(&needed.name)?;
                        Some((terms.of_field(qualified)?, value.as_ref()))
                    });
                    values.collect()
                };
                join.residuals.matches_values(values, &mut asked)?;
                for &query in &asked {
                    let birth = join.queries[&query].birth;
                    if rows.iter().all(|row| row.number > birth) {
                        found.push(Combination { query, join: id, rows: rows.clone() });
                    }
                }
            }
        }
        Ok(())
    }

    /// Combinations as additions or retractions of the answer.
    pub(super) fn tell(
        &mut self,
        mut combinations: Vec<Combination>,
        kind: Kind,
        time: i64,
    ) -> Vec<JoinOutput> {
        combinations.sort_by_cached_key(Combination::order);
        let mut told = vec![];
        for Combination { query, join, rows } in combinations {
            let asked = self.joins[join].queries.get_mut(&query).expect("it asked for this");
            let row = asked.row(&rows);
            if asked.distinct.is_some() {
                let before = asked.bytes;
                let changes = asked.counts(&row, kind);
                self.distinct_bytes = self.distinct_bytes - before + asked.bytes;
                if !changes {
                    continue;
                }
            }
            let events = rows.into_iter().map(|row| row.record).collect();
            told.push(JoinOutput { query, kind, time, row, events });
        }
        told
    }

    pub fn bytes(&self) -> usize {
        let windows = self.windows.iter().map(|(_, window)| window.bytes).sum::<usize>();
        windows + self.distinct_bytes
    }

    /// Lets the oldest rows leave their windows early, until the bytes are at most these. What they took part in is
    /// retracted, no earlier than at this moment.
    pub fn shed(&mut self, most: usize, now: i64) -> Result<Vec<JoinOutput>> {
        let mut told = vec![];
        let times = self.windows.iter().filter_map(|(_, window)| window.rows.back()).map(|row| row.time);
        let now = times.max().map_or(now, |latest| latest.max(now));
        while self.bytes() > most {
            let firsts =
                || self.windows.iter().filter_map(|(id, window)| Some((window.rows.front()?.number, id)));
            let Some((oldest, _)) = firsts().min() else { break };
            let holding: Vec<u32> =
                firsts().filter(|(number, _)| *number == oldest).map(|(_, id)| id).collect();
            let mut gone = vec![];
            for id in holding {
                self.combinations(id, self.windows[id].rows[0].clone(), &mut gone)?;
                self.windows[id].remove_first();
                self.queue(id);
                self.shed_rows += 1;
            }
            told.extend(self.tell(gone, Kind::Retracted, now));
        }
        Ok(told)
    }

    /// The state of a query: its windows with their rows, bytes and users, its equalities, and how many
    /// queries share the join.
    pub fn describe(&self, query: JoinQueryId) -> JoinDescription {
        let join = &self.joins[self.join_of_query[&query]];
        let windows = join.sources.iter().map(|id| self.windows[*id].describe());
        // Where a row of a source goes, by the estimates of this moment.
        let orders = (0..join.sources.len()).map(|start| join.order_from(&self.windows, start));
        JoinDescription {
            join: self.join_of_query[&query],
            windows: windows.collect(),
            equalities: join.equalities.iter().map(Equality::to_string).collect(),
            orders: orders.collect(),
            queries: join.queries.len(),
            bytes: join.queries[&query].bytes,
        }
    }

    /// The windows, by number, and the joins: which windows each looks at, its equalities, and how many queries it has.
    pub fn nodes(&self) -> (Vec<(u32, WindowDescription)>, Vec<JoinNode<'_>>) {
        let windows = self.windows.iter().map(|(id, window)| (id, window.describe()));
        let joins = self.joins.iter().map(|(id, join)| {
            let equalities = join.equalities.iter().map(Equality::to_string).collect();
            (id, &*join.sources, equalities, join.queries.len())
        });
        (windows.collect(), joins.collect())
    }

    pub fn birth(&self, query: JoinQueryId) -> u64 {
        self.joins[self.join_of_query[&query]].queries[&query].birth
    }

    /// The attributes that a query names, by source.
    pub fn attributes(written: &SelectText) -> Result<Vec<BTreeSet<String>>> {
        let definition = Definition::new(written)?;
        Ok((0..written.sources.len()).map(|source| attributes_of(source, &definition)).collect())
    }
}

/// The state of a query.
pub(crate) struct JoinDescription {
    pub join: u32,
    pub windows: Vec<WindowDescription>,
    pub equalities: Vec<String>,
    /// For each source, where its rows go next, with the rows expected there.
    pub orders: Vec<Vec<(usize, f64)>>,
    pub queries: usize,
    pub bytes: usize,
}

pub(crate) struct WindowDescription {
    pub stream: usize,
    pub frame: Frame,
    pub rows: usize,
    pub bytes: usize,
    pub uses: usize,
}

impl WindowRows {
    fn describe(&self) -> WindowDescription {
        WindowDescription {
            stream: self.stream,
            frame: self.frame,
            rows: self.rows.len(),
            bytes: self.bytes,
            uses: self.uses,
        }
    }
}
