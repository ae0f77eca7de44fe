//! The traffic of `bench/flow/run.py` without Python, for a profiler:
//! `perf record cargo run --profile quick -p tamis-flow --example traffic -- counts 10000 400000`.

use std::time::{Duration, Instant};

use tamis_core::event::{Names, Record, Value};
use tamis_flow::{Flow, StreamOptions, TimeUnit};

const USERS: u64 = 10_000;
const WARM: i64 = 60_000;
const BATCH: usize = 10_000;

/// The generator of `bench/flow/traffic.py`.
struct Traffic {
    state: u64,
    rules: u64,
    names: Names,
}

impl Traffic {
    fn draw(&mut self, bound: u64) -> u64 {
        self.state =
            self.state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.state >> 33) % bound
    }

    fn event(&mut self, time: i64) -> Record {
        let user = self.draw(USERS);
        let kind = (user * 7919 + self.draw(3)) % self.rules;
        let values =
            [("kind", Value::Int(kind as i64)), ("ts", Value::Int(time)), ("user", Value::Int(user as i64))];
        let mut record = Record::new(values, []).expect("three names");
        // As those of an Arrow batch.
        record.share_names(&self.names);
        record
    }
}

fn rule(case: &str, kind: u64) -> String {
    match case {
        "counts" => format!("kind = {kind} AND count(* WHERE kind = {kind} BY user LAST 59999ms) >= 8"),
        "sequences" => {
            format!(
                "SEQUENCE (a: kind = {kind}){{6}} THEN (b: kind = {kind} AND b.ts > a.ts) WITHIN 60s BY user"
            )
        }
        "strict" => format!(
            "SEQUENCE STRICT (a: kind = {kind}){{6}} THEN (b: kind = {kind} AND b.ts > a.ts) WITHIN 60s BY user, kind"
        ),
        "joins" => format!(
            "SELECT x.ts FROM hits RANGE 60 SECONDS AS x JOIN hits ROWS 1 AS y ON x.user = y.user \
             WHERE x.kind = {kind} AND y.ts - x.ts BETWEEN 1 AND 40"
        ),
        other => panic!("counts, sequences, strict or joins, not {other}"),
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, case, rules, events] = &arguments[..] else { panic!("CASE RULES EVENTS") };
    let (rules, events): (u64, i64) = (rules.parse().expect("a number"), events.parse().expect("a number"));
    let mut flow = Flow::new(None);
    let options =
        StreamOptions { time: Some("ts".into()), unit: TimeUnit::Milliseconds, ..StreamOptions::default() };
    flow.stream("hits", options).expect("a stream");
    for kind in 0..rules {
        flow.add(&kind.to_string(), &rule(case, kind), None, false).expect("a rule");
    }
    let mut traffic = Traffic { state: 42, rules, names: ["kind", "ts", "user"].map(Into::into).into() };
    let (mut told, mut taken) = (0, Duration::ZERO);
    for first in (0..WARM + events).step_by(BATCH) {
        let batch: Vec<Record> = (first..first + BATCH as i64).map(|time| traffic.event(time)).collect();
        let started = Instant::now();
        let (outputs, outcome) = flow.push_many("hits", batch, None);
        outcome.expect("events");
        if first >= WARM {
            taken += started.elapsed();
            told += outputs.len();
        }
    }
    println!(
        "{:.2} µs per event, {told} told, {} bytes",
        taken.as_secs_f64() * 1e6 / events as f64,
        flow.bytes()
    );
}
