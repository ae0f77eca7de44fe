//! The crate `a-tree`: all rules in one A-Tree. Run as `a-tree-peer RULES EVENTS SECONDS`; see common.py.

use a_tree::{ATree, AttributeDefinition};
use serde_json::{json, Value};
use std::collections::BTreeMap;
use std::fs;
use std::time::{Duration, Instant};

fn lines(path: &str) -> Vec<Value> {
    let text = fs::read_to_string(path).expect("a readable file");
    text.lines().map(|line| serde_json::from_str(line).expect("a JSON line")).collect()
}

fn peak_bytes() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap_or("");
    line.split_whitespace().nth(1).and_then(|text| text.parse::<u64>().ok()).unwrap_or(0) * 1024
}

/// Every attribute that rules or events may name, with its type: the tree wants to know them first.
fn definitions(events: &[Value], names: &Value) -> Vec<AttributeDefinition> {
    let mut is_text: BTreeMap<&str, bool> = BTreeMap::new();
    for name in names.as_array().expect("a list of names") {
        is_text.insert(name.as_str().expect("a name"), false);
    }
    for (name, value) in events.iter().flat_map(|event| event.as_object().expect("an object")) {
        is_text.insert(name, value.is_string());
    }
    is_text
        .into_iter()
        .map(|(name, text)| {
            if text { AttributeDefinition::string(name) } else { AttributeDefinition::integer(name) }
        })
        .collect()
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let mut rules = lines(&arguments[1]);
    let events = lines(&arguments[2]);
    let seconds: f64 = arguments[3].parse().expect("a number of seconds");
    // The first line of this language names the attributes.
    let names = rules.remove(0);
    let definitions = definitions(&events, &names);
    let idle = peak_bytes();

    let started = Instant::now();
    let mut tree = ATree::new(&definitions).expect("definitions");
    for rule in &rules {
        let id = rule[0].as_u64().expect("an id");
        tree.insert(&id, rule[1].as_str().expect("a rule")).expect("a rule that the tree can hold");
    }
    let build_seconds = started.elapsed().as_secs_f64();

    let deadline = Instant::now() + Duration::from_secs_f64(seconds);
    let (mut micros, mut counts) = (Vec::new(), Vec::new());
    for event in &events {
        let before = Instant::now();
        let mut builder = tree.make_event();
        for (name, value) in event.as_object().expect("an object") {
            match value {
                Value::String(text) => builder.with_string(name, text).expect("a string"),
                other => builder.with_integer(name, other.as_i64().expect("an integer")).expect("an integer"),
            };
        }
        let event = builder.build().expect("an event");
        counts.push(tree.search(&event).expect("an answer").matches().len());
        micros.push(before.elapsed().as_secs_f64() * 1e6);
        if Instant::now() > deadline {
            break;
        }
    }
    println!(
        "{}",
        json!({"build_seconds": build_seconds, "micros": micros, "counts": counts,
               "peak_bytes": peak_bytes(), "idle_bytes": idle})
    );
}
