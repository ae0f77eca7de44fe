//! The kernel's side of `bench/small_indexes.py`: counts the matches of events that were read before.
//!
//! `small_indexes EXPRESSIONS EVENTS ROUNDS` reads one expression and one JSON object per line. It prints the nanoseconds per
//! event of each round, and the matches of all events. To profile it:
//! `perf record cargo run --profile quick -p tamis-core --example small_indexes -- rules.txt events.jsonl 1000`.

use std::fs::read_to_string;
use std::hint::black_box;
use std::time::Instant;

use tamis_core::engine::{Index, Workspace};
use tamis_core::event::json::read_record;
use tamis_core::event::{Event, Record};
use tamis_core::expr::parse;
use tamis_core::query::{Ask, Query, Tags};
use tamis_core::{Id, Subscription};

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, expressions, events, rounds] = &arguments[..] else { panic!("EXPRESSIONS EVENTS ROUNDS") };
    let index = Index::default();
    for (id, expression) in (0..).zip(read_to_string(expressions).expect("a file").lines()) {
        let expression = parse(expression).expect("an expression");
        index.add(Subscription::new(Id::Int(id), expression)).expect("a new id");
    }
    index.optimize().expect("it fits");
    let reader = index.reader().expect("it is in memory");
    let text = read_to_string(events).expect("a file");
    let records: Vec<Record> =
        text.lines().map(|line| read_record(line.as_bytes()).expect("an object")).collect();
    let events: Vec<Event<'_>> = records.iter().map(|record| record.resolve(reader.terms())).collect();
    let query = Query { ask: Ask::Count, tags: Tags::default(), now: None };
    let mut space = Workspace::default();
    let mut matches = 0;
    for _ in 0..rounds.parse().expect("a number") {
        let start = Instant::now();
        matches = 0;
        for event in &events {
            let (answer, _) = reader.ask(&query, black_box(event), &mut space).expect("an answer");
            matches += answer.matches();
        }
        println!("{}", start.elapsed().as_nanos() as f64 / events.len() as f64);
    }
    println!("{matches}");
}
