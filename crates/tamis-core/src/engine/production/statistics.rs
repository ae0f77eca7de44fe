//! Describes the parts of a version of the production engine.

use serde_json::{Value as Json, json};

use super::view::View;
use crate::engine::segment::forms::Forms;

pub fn statistics(view: &View) -> Json {
    let mut parts: Vec<(&'static str, usize)> = vec![];
    let (mut nodes, mut written, mut predicates, mut units, mut accesses) = (0, 0, 0, 0, 0);
    let mut add = |name: &'static str, count: usize| match parts.iter_mut().find(|(known, _)| *known == name)
    {
        Some((_, total)) => *total += count,
        None => parts.push((name, count)),
    };
    for part in view.parts.iter() {
        let segment = &part.segment;
        segment
            .layout
            .bytes()
            .into_iter()
            .chain(segment.subscription_table.bytes())
            .for_each(|(name, n)| add(name, n));
        add("removed rows", part.tombstones.bytes());
        add("kept for merging", segment.forms.as_ref().map_or(0, Forms::bytes));
        add("scores", segment.scoring.bytes());
        add("relaxed matching", segment.relaxed_bytes());
        add("plans for few rules", segment.plan_bytes());
        nodes += segment.sharing.nodes;
        written += segment.sharing.written_nodes;
        predicates += segment.sharing.predicates;
        units += segment.layout.units() as usize;
        accesses += segment.layout.entries.len();
    }
    let index_bytes: usize = parts
        .iter()
        .filter(|(name, _)| ["predicates", "access", "code", "rows"].contains(name))
        .map(|(_, count)| count)
        .sum();
    json!({
        "segments": view.parts.iter().map(|part| part.segment.len()).collect::<Vec<_>>(),
        "buffered": view.buffer.len(),
        "predicates": predicates,
        "nodes": nodes,
        "sharing_ratio": written as f64 / nodes.max(1) as f64,
        "units": units,
        "access_entries": accesses,
        "expected_candidates_per_event":
            view.parts.iter().map(|part| part.segment.layout_basis.candidates).sum::<f64>(),
        "bytes": parts.iter().map(|(name, count)| (name.to_string(), Json::from(*count))).collect::<serde_json::Map<_, _>>(),
        "index_bytes": index_bytes,
        "bytes_per_subscription": index_bytes as f64 / view.len.max(1) as f64,
    })
}
