//! All joins of a flow: windows shared by joins, joins shared by queries, and the order in which a join looks at windows.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::sync::Arc;

use rustc_hash::FxHashMap;
use tamis_core::Result;
use tamis_core::event::{Record, Terms, Value};
use tamis_core::term::Term;

use super::definition::{Definition, Equality, attributes_of, source_and_name};
use super::window_rows::{Row, WindowRows};
use crate::codec::{Damage, Reader, Writer};
use crate::flow::Kind;
use crate::key::{heap_bytes, join_value, normal, value_of};
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
    windows: Slots<WindowRows>,
    window_of: FxHashMap<(usize, Frame), u32>,
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

struct Join {
    text: String,
    sources: Vec<u32>,
    equalities: Vec<Equality>,
    /// What the queries ask beyond the equalities, by number of the query.
    residuals: Matcher,
    queries: BTreeMap<JoinQueryId, JoinQuery>,
    /// The attributes that residuals name.
    needed: BTreeMap<String, Needed>,
}

/// An attribute that residuals name, such as `s1.price`: which source it is of, its name there, and in how many queries.
struct Needed {
    source: usize,
    name: Box<str>,
    queries: usize,
}

struct JoinQuery {
    /// It sees rows with greater numbers.
    birth: u64,
    definition: Definition,
    names: Vec<Arc<str>>,
    /// How often each row of the answer occurs, for DISTINCT.
    distinct: Option<FxHashMap<Box<[Value]>, u32>>,
    bytes: usize,
}

/// A combination of rows that a query asks for.
struct Combination {
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
        let distinct = written.distinct.then(FxHashMap::default);
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

    fn enter(&mut self, id: u32, row: Row, come: &mut Vec<Combination>) -> Result<()> {
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
    fn tell(&mut self, mut combinations: Vec<Combination>, kind: Kind, time: i64) -> Vec<JoinOutput> {
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

    /// What a query looks at: its windows with their rows, bytes and users, its equalities, and how many queries share the
    /// join.
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

    // --- keeping -----------------------------------------------------------------------------------

    pub fn write(&self, to: &mut Writer) {
        let mut windows: Vec<&WindowRows> = self.windows.iter().map(|(_, window)| window).collect();
        windows.sort_by_key(|window| (window.stream, format!("{:?}", window.frame)));
        to.unsigned(self.shed_rows);
        to.unsigned(self.unequal_keys);
        to.unsigned(windows.len() as u64);
        for window in windows {
            to.unsigned(window.stream as u64);
            let (kind, size) = match window.frame {
                Frame::Range(length) => (0, length),
                Frame::Rows(rows) => (1, rows),
                Frame::Tumbling(length) => (2, length),
            };
            to.unsigned(kind);
            to.signed(size);
            to.unsigned(window.rows.len() as u64);
            for row in &window.rows {
                to.unsigned(row.number);
                to.signed(row.time);
                to.record(&row.record);
            }
        }
    }

    /// Reads what [`write`](Self::write) wrote into a plan with the same queries. Rows enter in the order in which they
    /// came, which also counts what DISTINCT has seen.
    pub fn read(&mut self, from: &mut Reader<'_>) -> std::result::Result<(), Damage> {
        self.shed_rows = from.unsigned()?;
        let unequal_keys = from.unsigned()?;
        let mut entering: Vec<(u64, u32, Row)> = vec![];
        let mut records: FxHashMap<u64, Arc<Record>> = FxHashMap::default();
        for _ in 0..from.unsigned()? {
            let stream = from.unsigned()? as usize;
            let (kind, size) = (from.unsigned()?, from.signed()?);
            let frame = match kind {
                0 => Frame::Range(size),
                1 => Frame::Rows(size),
                _ => return Err(Damage),
            };
            let window = *self.window_of.get(&(stream, frame)).ok_or(Damage)?;
            for _ in 0..from.length()? {
                let (number, time) = (from.unsigned()?, from.signed()?);
                let record = from.record()?;
                let record = records.entry(number).or_insert_with(|| Arc::new(record)).clone();
                entering.push((number, window, Row { number, time, record }));
            }
        }
        entering.sort_by_key(|(number, window, _)| (*number, *window));
        for (_, window, row) in entering {
            let mut come = vec![];
            let time = row.time;
            self.enter(window, row, &mut come).map_err(|_| Damage)?;
            self.tell(come, Kind::Added, time);
        }
        self.unequal_keys = unequal_keys;
        Ok(())
    }
}

/// What a query looks at.
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

/// The row whose combinations are looked for. Where it could stand in several sources, each combination is found once: from
/// the first source in which it stands.
struct Fixed {
    source: usize,
    window: u32,
    number: u64,
}

impl Join {
    /// One more query looks at what this one asks beyond the equalities.
    fn need(&mut self, definition: &Definition) {
        for (qualified, source, name) in definition.residual_attributes() {
            let new = || Needed { source, name, queries: 0 };
            self.needed.entry(qualified).or_insert_with(new).queries += 1;
        }
    }

    fn need_no_more(&mut self, definition: &Definition) {
        for (qualified, ..) in definition.residual_attributes() {
            if let Some(needed) = self.needed.get_mut(&qualified) {
                needed.queries -= 1;
                if needed.queries == 0 {
                    self.needed.remove(&qualified);
                }
            }
        }
    }

    /// The equality by which a source is found from those that are bound: its own term, and the other side.
    fn link<'j>(&'j self, source: usize, is_bound: &impl Fn(usize) -> bool) -> Option<Link<'j>> {
        self.equalities.iter().find_map(|equality| {
            if equality.left == source && is_bound(equality.right) {
                return Some((&equality.left_term, equality.right, &equality.right_term));
            }
            (equality.right == source && is_bound(equality.left)).then_some((
                &equality.right_term,
                equality.left,
                &equality.left_term,
            ))
        })
    }

    /// The next source: the one with the fewest rows to expect.
    fn next(&self, windows: &Slots<WindowRows>, is_bound: &impl Fn(usize) -> bool) -> Option<(usize, f64)> {
        let open = (0..self.sources.len()).filter(|source| !is_bound(*source));
        let cost = |source: usize| {
            let window = &windows[self.sources[source]];
            match self.link(source, is_bound) {
                Some((term, ..)) => window.rows_per_value(term),
                // Every row would do: only if nothing else is left.
                None => 1e9 + window.rows.len() as f64,
            }
        };
        open.map(|source| (source, cost(source))).min_by(|a, b| a.1.total_cmp(&b.1).then(a.0.cmp(&b.0)))
    }

    fn order_from(&self, windows: &Slots<WindowRows>, start: usize) -> Vec<(usize, f64)> {
        let mut bound = BTreeSet::from([start]);
        let mut order = vec![];
        while let Some((source, cost)) = self.next(windows, &|source| bound.contains(&source)) {
            bound.insert(source);
            order.push((source, if cost >= 1e9 { cost - 1e9 } else { cost }));
        }
        order
    }

    /// Adds all combinations with the rows that are bound.
    fn combine<'r>(
        &self,
        windows: &'r Slots<WindowRows>,
        fixed: &Fixed,
        bound: &mut Vec<Option<&'r Row>>,
        found: &mut Vec<Vec<Row>>,
    ) {
        let Some((source, _)) = self.next(windows, &|source| bound[source].is_some()) else {
            found.push(bound.iter().map(|row| (*row).expect("all are bound").clone()).collect());
            return;
        };
        let window = &windows[self.sources[source]];
        let is_excluded = |row: &Row| {
            source < fixed.source && self.sources[source] == fixed.window && row.number == fixed.number
        };
        let mut visit = |row: &'r Row, bound: &mut Vec<Option<&'r Row>>| {
            if is_excluded(row) || !self.agrees(source, row, bound) {
                return;
            }
            bound[source] = Some(row);
            self.combine(windows, fixed, bound, found);
            bound[source] = None;
        };
        match self.link(source, &|source| bound[source].is_some()) {
            Some((term, other, other_term)) => {
                let record = &bound[other].expect("it is bound").record;
                let key = join_value(other_term, record);
                for row in key.and_then(|key| window.having(term, &key)).into_iter().flatten() {
                    visit(row, bound);
                }
            }
            None => window.rows.iter().for_each(|row| visit(row, bound)),
        }
    }

    /// Whether a row fits those that are bound, by all equalities.
    fn agrees(&self, source: usize, row: &Row, bound: &[Option<&Row>]) -> bool {
        self.equalities.iter().all(|equality| {
            let (term, other, other_term) = match source {
                _ if equality.left == source => (&equality.left_term, equality.right, &equality.right_term),
                _ if equality.right == source => (&equality.right_term, equality.left, &equality.left_term),
                _ => return true,
            };
            let Some(other) = bound[other] else { return true };
            let value = join_value(term, &row.record);
            value.is_some() && value == join_value(other_term, &other.record)
        })
    }
}

/// The attribute and the row that a column is, if it is nothing else.
fn column_of<'r>(term: &Term, rows: &'r [Row]) -> Option<(Term, &'r Row)> {
    let Term::Attribute(name) = term else { return None };
    let (source, attribute) = source_and_name(name)?;
    Some((Term::attribute(attribute), rows.get(source)?))
}

type Link<'j> = (&'j Term, usize, &'j Term);

impl JoinQuery {
    /// The row of the answer that a combination makes.
    fn row(&self, rows: &[Row]) -> Vec<(Arc<str>, Value)> {
        if self.names.is_empty() {
            let cells = rows.iter().enumerate().flat_map(|(at, row)| {
                let is_alone = rows.len() == 1;
                row.record.values().map(move |(name, value)| {
                    let name = if is_alone { name.to_owned() } else { format!("{at}.{name}") };
                    (name.into(), value.clone())
                })
            });
            return cells.collect();
        }
        let get = |name: &str| {
            let (source, attribute) = source_and_name(name)?;
            rows.get(source)?.record.get(attribute).map(Value::as_ref)
        };
        let cells = self.definition.columns.iter().zip(&self.names).map(|((_, term), name)| {
            let value = match column_of(term, rows) {
                Some((attribute, row)) => value_of(&attribute, &row.record),
                None => term.with_value(&get, |value| value.map_or(Value::Null, |value| value.to_owned())),
            };
            (name.clone(), value)
        });
        cells.collect()
    }

    /// Counts a row for DISTINCT; says whether the answer changes.
    fn counts(&mut self, row: &[(Arc<str>, Value)], kind: Kind) -> bool {
        let Some(counts) = &mut self.distinct else { return true };
        let key: Box<[Value]> = row.iter().map(|(_, value)| normal(value.clone())).collect();
        let bytes = 64 + key.iter().map(|value| size_of::<Value>() + heap_bytes(value)).sum::<usize>();
        match kind {
            Kind::Added => {
                let count = counts.entry(key).or_insert(0);
                *count += 1;
                let is_new = *count == 1;
                self.bytes += if is_new { bytes } else { 0 };
                is_new
            }
            Kind::Retracted => {
                let Some(count) = counts.get_mut(&key) else { return false };
                *count -= 1;
                let is_gone = *count == 0;
                if is_gone {
                    counts.remove(&key);
                    self.bytes -= bytes;
                }
                is_gone
            }
        }
    }
}
