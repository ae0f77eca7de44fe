//! Inspection of a flow: the state of a query, the shared plan, and statistics.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;
use serde_json::{Value as Json, json};
use tamis_core::Result;
use tamis_core::event::{Record, Value};
use tamis_core::term::Term;

use super::{Flow, Plan};

impl Flow {
    /// The windows of a query and, for the keys of a record, their current values.
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
                        "partition_by": printed(node.partition),
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
                let described = &stream.sequences.describe()[id];
                explained["sequence"] = json!({
                    "sequence": described.text,
                    "by": printed(described.by),
                    "queries": described.uses,
                    "keys": described.keys,
                    "partial_matches": described.partial_matches,
                    "bytes": described.bytes,
                    "sequences_by_step": described.shared_by,
                });
                if let Some(key) = key {
                    explained["sequence"]["partial_matches_at_key"] = json!(stream.sequences.look(*id, key));
                }
            }
            Plan::Join(_) => explained["join"] = self.join_json(number),
        }
        Ok(explained)
    }

    /// The windows of a join.
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
            let first = if selections > 0 { &index } else { &source };
            let prefix_id = |tree: u32, node: u32| format!("steps {number} {tree} {node}");
            for prefix in stream.sequences.prefixes() {
                let name = prefix_id(prefix.tree, prefix.node);
                let before = prefix.after.map_or(first.clone(), |node| prefix_id(prefix.tree, node));
                let users = prefix.sequences.iter().map(|id| stream.sequence_users[id].len());
                edges.push(json!([before, name]));
                nodes.push(json!({
                    "id": name, "kind": "steps", "label": prefix.text, "queries": users.sum::<usize>(),
                    "rows": prefix.partial_matches, "bytes": prefix.bytes,
                }));
            }
            for (id, sequence) in stream.sequences.describe() {
                let name = format!("sequence {number} {id}");
                let before = sequence.after.map_or(first.clone(), |(tree, node)| prefix_id(tree, node));
                edges.push(json!([before, name]));
                nodes.push(json!({
                    "id": name, "kind": "sequence", "label": sequence.text, "queries": sequence.uses,
                    "keys": sequence.keys, "rows": sequence.partial_matches, "bytes": sequence.bytes,
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
            for (id, sequence) in stream.sequences.describe() {
                sequence_share.insert(id, sequence.bytes / sequence.uses.max(1));
                nodes.push(json!({
                    "node": sequence.text, "queries": sequence.uses, "keys": sequence.keys,
                    "rows": sequence.partial_matches, "bytes": sequence.bytes,
                }));
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
                    "late_dropped": progress.late_dropped,
                    "latest": progress.latest,
                    "selections": stream.selections.len(),
                    "keys": stream.windows.keys(),
                    "shed_keys": stream.windows.shed_keys + stream.sequences.shed_keys,
                    "bytes": stream.windows.bytes() + stream.sequences.bytes() + progress.late_bytes,
                    "nodes": nodes,
                }),
            );
        }
        json!({
            "queries": self.queries.len(),
            "waiting": self.waiting.len(),
            "clock": self.clock(),
            "refused": self.refused,
            "shed_rows": self.joins.shed_rows,
            "unequal_keys": self.joins.unequal_keys,
            "bytes": self.bytes(),
            "bytes_by_query": by_query,
            "streams": streams,
        })
    }
}

fn printed(terms: &[Term]) -> Vec<String> {
    terms.iter().map(Term::to_string).collect()
}

fn json_of(value: &Value) -> Json {
    match value {
        Value::Bool(truth) => json!(truth),
        Value::Int(number) => json!(number),
        Value::Float(number) => json!(number),
        Value::Str(text) => json!(text),
        Value::Timestamp(micros) => json!(tamis_core::event::format_timestamp_iso(*micros)),
        Value::Array(items) => items.iter().map(json_of).collect(),
        Value::Decimal(number) => json!(number.plain()),
        _ => Json::Null,
    }
}
