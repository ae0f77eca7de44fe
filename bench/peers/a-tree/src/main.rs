//! The crate `a-tree`: all rules in one A-Tree. Run as `a-tree-peer RULES EVENTS SECONDS`; see common.py.

use a_tree::{ATree, AttributeDefinition};
use serde_json::{json, Value};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::time::{Duration, Instant};

/// Rules that are tried before anything is measured, with one event.
const TRIED: usize = 100;

fn lines(path: &str) -> Vec<Value> {
    let file = BufReader::new(File::open(path).expect("a readable file"));
    file.lines().map(|line| serde_json::from_str(&line.expect("text")).expect("a JSON line")).collect()
}

/// A line of /proc/self/status, in bytes.
fn resident(key: &str) -> i64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with(key)).unwrap_or("");
    line.split_whitespace().nth(1).and_then(|text| text.parse::<i64>().ok()).unwrap_or(0) * 1024
}

/// Returns free pages to the system.
fn give_back() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        extern "C" {
            fn malloc_trim(pad: usize) -> i32;
        }
        // SAFETY: a function of the C library that takes a number and may be called at any time.
        unsafe { malloc_trim(0) };
    }
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

fn build(definitions: &[AttributeDefinition], rules: &[Value]) -> ATree<u64> {
    let mut tree = ATree::new(definitions).expect("definitions");
    for rule in rules {
        let id = rule[0].as_u64().expect("an id");
        tree.insert(&id, rule[1].as_str().expect("a rule")).expect("a rule that the tree can hold");
    }
    tree
}

fn count(tree: &ATree<u64>, event: &Value) -> usize {
    let mut builder = tree.make_event();
    for (name, value) in event.as_object().expect("an object") {
        match value {
            Value::String(text) => builder.with_string(name, text).expect("a string"),
            other => builder.with_integer(name, other.as_i64().expect("an integer")).expect("an integer"),
        };
    }
    let event = builder.build().expect("an event");
    tree.search(&event).expect("an answer").matches().len()
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let mut rules = lines(&arguments[1]);
    let events = lines(&arguments[2]);
    let seconds: f64 = arguments[3].parse().expect("a number of seconds");
    // The first line of this language names the attributes.
    let names = rules.remove(0);
    let definitions = definitions(&events, &names);
    count(&build(&definitions, &rules[..rules.len().min(TRIED)]), &events[0]);
    give_back();
    // The peak is reset.
    let _ = fs::write("/proc/self/clear_refs", "5");
    let idle = resident("VmRSS");

    let started = Instant::now();
    let tree = build(&definitions, &rules);
    let build_seconds = started.elapsed().as_secs_f64();

    let deadline = Instant::now() + Duration::from_secs_f64(seconds);
    let (mut micros, mut counts) = (Vec::new(), Vec::new());
    for event in &events {
        let before = Instant::now();
        counts.push(count(&tree, event));
        micros.push(before.elapsed().as_secs_f64() * 1e6);
        if Instant::now() > deadline {
            break;
        }
    }
    let peak = resident("VmHWM") - idle;
    give_back();
    println!(
        "{}",
        json!({"build_seconds": build_seconds, "micros": micros, "counts": counts,
               "peak_bytes": peak, "settled_bytes": resident("VmRSS") - idle})
    );
}
