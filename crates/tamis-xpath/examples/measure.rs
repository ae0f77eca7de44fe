//! Measures the time per document, to parse XML files and to match them against a file of paths, one per line.
//!
//! `ROUNDS=4 cargo run --release -p tamis-xpath --example measure -- paths.txt *.xml`

use std::time::Instant;

use tamis_xpath::{Document, Limits, Path, PathSetBuilder};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let paths = std::fs::read_to_string(&arguments[0]).expect("a file of paths");
    let started = Instant::now();
    let mut builder = PathSetBuilder::default();
    for line in paths.lines() {
        builder.add(&Path::parse(line).expect("a path"));
    }
    let set = builder.finish();
    println!(
        "{} paths, built in {:?}, {} bytes each",
        set.len(),
        started.elapsed(),
        set.heap_bytes() / set.len()
    );
    let (mut parse, mut matching, mut found, mut bytes) = (0.0, 0.0, 0usize, 0);
    let texts: Vec<String> =
        arguments[1..].iter().map(|file| std::fs::read_to_string(file).expect("a document")).collect();
    let rounds: usize = std::env::var("ROUNDS").map_or(4, |text| text.parse().expect("a number"));
    for round in 0..rounds {
        if round == 1 {
            (parse, matching, found, bytes) = (0.0, 0.0, 0, 0);
        }
        for text in &texts {
            let mut document = Document::default();
            let (mut best_parse, mut best_match) = (f64::MAX, f64::MAX);
            for _ in 0..3 {
                let started = Instant::now();
                document.replace(text, &Limits::default()).expect("well-formed");
                let parsed = Instant::now();
                let mut count = 0;
                set.matches(&document, &mut |_| count += 1);
                best_match = best_match.min(parsed.elapsed().as_secs_f64());
                best_parse = best_parse.min((parsed - started).as_secs_f64());
                found += count;
            }
            parse += best_parse;
            matching += best_match;
            bytes += text.len();
        }
    }
    let documents = ((rounds - 1) * texts.len()) as f64;
    println!(
        "{:.0} bytes, {:.0} matches, parse {:.3} ms, match {:.3} ms; {} bytes per path",
        bytes as f64 / documents,
        found as f64 / documents / 3.0,
        1e3 * parse / documents,
        1e3 * matching / documents,
        set.heap_bytes() / set.len()
    );
}
